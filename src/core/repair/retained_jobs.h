/*
 * Which ended jobs auto-repair still looks at: they must stay on record and cannot be archived
 * (core/queue/archiver.h). Repairs tell from the records of their jobs what was tried and how it
 * ended, and numbers of tries go on from those on record, so that a request id is never used twice.
 */
#pragma once

#include "core/config/ages.h"
#include "core/config/model.h"

struct retained_jobs;

/* Looks at the configuration once; valid until it changes. Borrows both. */
struct retained_jobs *retained_jobs_new(const struct config *config, struct ages *ages);
void retained_jobs_free(struct retained_jobs *kept);
/* Why the job has to stay, as the end of a sentence; NULL: it need not. Static text. */
const char *retained_jobs_why(const struct retained_jobs *kept, const struct job *job);

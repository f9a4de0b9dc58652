/* One entry of what `fettle why` tells: a decision, or a job. */
#pragma once

#include "cli/cli.h"

/* A row of why_fields (why_subject.h). */
void why_print_entry(const json_t *row);
bool why_is_of_job(const json_t *row);

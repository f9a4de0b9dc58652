/*
 * log/audit.log: one line of JSON for each login and each request that writes (core/api makes
 * them). It is synced by nobody. When it is full it becomes audit.log.1, and another one is begun.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct audit;

/* STORAGE: it cannot be opened. */
struct audit *audit_open(const char *path, guint64 most_bytes, GError **error);
void audit_free(struct audit *audit);
/* Appends it, with its end. What cannot be written is logged once, until it can be again: requests
 * go on. */
void audit_write(struct audit *audit, const char *line);

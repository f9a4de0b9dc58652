/*
 * A fettle-mond of one node in memory, for targets that ask it: one for a whole run, as a world for
 * each input would be most of the time.
 */
#pragma once

#include "core/monitor/monitor.h"
#include "helper/fake_env.h"

#define MONITOR_GUEST "aaaaaaaa-0000-4000-8000-000000000001"

/* A file as daemons, or the host, have left it. */
void monitor_world_put(enum file_area area, const char *name, const char *text);
/* Time passes, so that every collector runs anew. */
void monitor_world_pass(void);
/* The answer to a GET of the decoded path; to be freed. */
struct http_answer *monitor_world_get(const char *path, const char *accept);

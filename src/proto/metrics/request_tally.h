/*
 * Requests of the outside that a daemon has answered since it was started, for its metrics: how
 * many, by service and class of status, and how long they took. What a service is, is the
 * daemon's: few words, and no path that a client may make up. It knows no clock.
 */
#pragma once

#include "base/json.h"

struct request_tally;

/* `services`: all that there are, NULL at the end: they are told of from the beginning. */
struct request_tally *request_tally_new(const char *const *services);
void request_tally_free(struct request_tally *tally);
/* `us`: from its end to when its answer stood, or the answer's first bytes. */
void request_tally_add(struct request_tally *tally, const char *service, guint status, guint64 us);
/* {"requests": [{"service", "status": "4xx", "count"}, …], "seconds": [{"service", "seconds": a
 * histogram}, …]} */
json_t *request_tally_tell(const struct request_tally *tally);

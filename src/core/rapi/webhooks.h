/*
 * Delivers what happens to the receivers on record, on the master's node: at least once, and to
 * each in order (docs/design/outside.md, "Webhooks"). What there is to deliver, and how far it is,
 * are LuxiD's to know; elsewhere than on the master it says so, and nothing is delivered. Each
 * webhook has a task of its own, so none waits for another one's receiver.
 */
#pragma once

#include "core/rapi/luxid.h"
#include "proto/env.h"
#include "proto/webhook/webhook_out.h"

#define WEBHOOK_LOOK_MS 1000    /* between two looks at what is on record */
#define WEBHOOK_ANSWER_MS 5000  /* for a receiver to answer, look-up and connection included */
#define WEBHOOK_KEEP_MS 8000    /* what was delivered is on record so long after, */
#define WEBHOOK_AHEAD_MS 10000  /* and if it is not by then, nothing more is */
#define WEBHOOK_PAUSE_S 600     /* the longest pause between two tries; the first is 1 s */
#define WEBHOOK_GIVE_UP_S 86400 /* so long one event is tried */
#define WEBHOOK_STOP_MS 2000    /* that an orderly stop waits */

struct webhooks;

/* `luxid` and `out` are borrowed. */
struct webhooks *webhooks_new(const struct env *env, struct rapi_luxid *luxid,
                              struct webhook_out *out);
/* Before it starts: receivers have so many times as long to answer, for labs. */
void webhooks_be_patient(struct webhooks *webhooks, guint times);
/* Its tasks have ended, or the environment's were killed. */
void webhooks_free(struct webhooks *webhooks);
/* Starts its tasks. */
void webhooks_start(struct webhooks *webhooks);
/* In a task: delivers nothing more, and puts on record how far it is. */
void webhooks_stop(struct webhooks *webhooks);

/* --- an event as it is sent (webhook_event.c) --- */

/* A CloudEvent 1.0 in JSON, of an event of QueryHappened; free with g_free(). What would be longer
 * than LIMIT_WEBHOOK_BODY is without its longest parts, and says so. */
char *webhook_event_body(const char *cluster, const json_t *event);
/* "t=SECONDS,v1=HEX": HMAC-SHA256 of the secret over "SECONDS.BODY"; free with g_free(). */
char *webhook_event_signature(const char *secret, gint64 seconds, const char *body);

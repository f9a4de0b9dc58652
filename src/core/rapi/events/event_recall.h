/*
 * What LuxiD is asked for events: changes of WatchChanges, from where the window ends or from
 * before it, and decisions, which are on record. For event_hub.c.
 */
#pragma once

#include "core/rapi/events/event_window.h"
#include "core/rapi/luxid.h"
#include "proto/env.h"

/* Kinds and fields as they were wanted when it was made. */
struct event_question;

/* Of all views; of `view`, with the fields of decisions too, so that luxid looks at them. */
struct event_question *event_question_new(const struct event_window *window,
                                          const struct event_view *view);
void event_question_free(struct event_question *question);
/* In a task; waits, `wait_s` at most for a change. Errors as rapi_luxid's call. */
json_t *event_question_ask(const struct event_question *question, struct rapi_luxid *luxid,
                           const char *stream, guint64 serial, guint wait_s, GError **error);
/* Puts the changes in; `ret_rings`: true if there are decisions among them, which are not put. */
void event_question_take(const struct event_question *question, const json_t *answer,
                         struct event_window *window, bool *ret_rings);

/* In a task; waits. What luxid remembers from that serial of the stream on; if that is less, no
 * more is known than before. False with an error of the call. */
bool event_recall_now(struct rapi_luxid *luxid, struct event_window *window, guint64 serial,
                      GError **error);
/* The same of decisions that are on record, all of them, or as many as the window holds.
 * `*ret_newest`: up to which all that is wanted by now was asked for. LIMIT: they are too many for
 * an answer. */
bool event_recall_record(const struct env *env, struct rapi_luxid *luxid,
                         struct event_window *window, guint64 serial, guint64 *ret_newest,
                         GError **error);

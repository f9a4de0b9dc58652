/*
 * What fettle-mond tells of its node: requests of the outside in, reports and metrics out
 * (docs/design/outside.md). It knows of its own node only (MON-02), and needs nobody: what it shows
 * are files of the host, those that the node daemon leaves in run/stats, and, for little of it, an
 * answer of any ConfD. Each collector (proto/monitor/collector.def) runs when somebody asks and
 * what it told last is older than its interval; one that fails, or is slow, is one report.
 */
#pragma once

#include "proto/confd.h"
#include "proto/env.h"
#include "proto/http/http.h"

struct monitor;

/* In a task: the newest answer of all candidates' ConfD, a new reference; NULL with who did not
 * answer, and why. Takes at most MONITOR_CONFD_MS. `query` may be NULL. */
typedef json_t *(*monitor_ask_fn)(enum confd_type type, const char *query, void *data,
                                  GError **error);

/* `node`: name of this node. */
struct monitor *monitor_new(const struct env *env, const char *node, monitor_ask_fn ask,
                            void *data);
/* Takes samples of the processors, and asks for settings, from now on. */
void monitor_start(struct monitor *monitor);
/* Tasks under way keep what they need until they end; they answer to nobody any more. */
void monitor_free(struct monitor *monitor);

/* Takes the answer; not called if the process ends meanwhile. */
typedef void (*monitor_answer_fn)(struct http_answer *answer, void *data);
/* Answers within MONITOR_WAIT_MS, whatever the collectors do. The request is borrowed until then.
 */
void monitor_serve(struct monitor *monitor, const struct http_request *request,
                   monitor_answer_fn done, void *data);

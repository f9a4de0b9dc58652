/*
 * ConfD of all candidates, for fettle-mond: whom it may ask, and with what, the node daemon keeps
 * in var/mond/node.json, which is read before each question. A question blocks, so it runs in a
 * thread.
 */
#pragma once

#include "proto/confd.h"
#include "proto/env.h"

struct candidates;

/* `address`: of this node, borrowed; `port`: of ConfD, on every candidate. */
struct candidates *candidates_new(const struct env *env, const char *address, guint port);
/* After the environment: its tasks may still wait for an answer. */
void candidates_free(struct candidates *candidates);
/* As monitor_ask_fn; `data` is a struct candidates. */
json_t *candidates_ask(enum confd_type type, const char *query, void *data, GError **error);

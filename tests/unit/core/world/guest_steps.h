/* Steps that the tests of guests share: start, stop, and what an answer must say. */
#pragma once

#include "helper/node_world.h"

#define OTHER_REPLICA "55555555-5555-4555-8555-555555555555"

static inline json_t *start(struct node_world *nw, json_t *args, GError **error)
{
    return nw_call(nw, nw_node(nw, nw->web1.primary), "guest_start", args, error);
}

static inline void start_ok(struct node_world *nw, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = start(nw, args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

static inline json_t *stop(struct node_world *nw, guint timeout_ms, GError **error)
{
    return nw_call(nw, nw_node(nw, nw->web1.primary), "guest_stop", nw_stop_args(nw, timeout_ms),
                   error);
}

static inline bool answer_is(const json_t *answer, const char *field)
{
    return json_is_true(json_object_get(answer, field));
}

static inline bool runs(const struct test_node *node, guint64 generation)
{
    guint64 found;
    return fake_host_state(node->host, WEB1, &found) == GUEST_RUNNING && found == generation;
}

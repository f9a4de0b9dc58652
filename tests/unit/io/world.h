/*
 * What the tests of io share: a node's root folder under /tmp, running the loop until something has
 * happened, collecting complaints and answers.
 */
#pragma once

#include "io/loop.h"
#include "io/node_config.h"
#include "proto/rpc.h"

#define NODE_A "aaaaaaaa-0000-4000-8000-000000000001"
#define NODE_B "bbbbbbbb-0000-4000-8000-000000000002"
#define NODE_C "cccccccc-0000-4000-8000-000000000003"
#define CLUSTER "99999999-0000-4000-8000-000000000009"

/* A fresh root with its folders and a node.json for `node`; remove with world_remove(). */
struct node_paths *world_new(const char *node);
void world_remove(struct node_paths *paths);
/* This process sees mounts of its own from now on, and none of the disks of labs that run beside
 * it, which a copy of their mounts would keep busy. False: that cannot be had here. */
bool world_own_mounts(void);
/* A TCP port of 127.0.0.1 that was free a moment ago, and that no other test is told. */
guint world_free_port(void);

/* Runs the loop until *done; fails the test after 30 s, later on a busy machine
 * (helper/patience.h). */
void world_wait(const bool *done);
/* The same until *count reaches `wanted`. */
void world_wait_count(const guint *count, guint wanted);
void world_pause(guint ms);
/* Runs it in a task, to its end. */
void world_in_task(void (*fn)(void *unused));

/* A list of lines; `complain` for the modules that complain. */
void world_complain(const char *line, void *lines);
bool world_has_line(const GPtrArray *lines, const char *part);
/* Waits until a line with that part is there. */
void world_wait_line(const GPtrArray *lines, const char *part);

/* The answer to one call. */
struct answer {
    bool done;
    guint times;
    json_t *result;
    GError *error;
};
void answer_cb(json_t *result, const GError *error, void *data);
void answer_clear(struct answer *answer);

/* Asserts code and text of an error, and clears it. */
#define assert_error(error, NAME, part)                                                            \
    assert_error_at((error), FETTLE_ERROR_##NAME, (part), G_STRLOC)
void assert_error_at(GError **error, enum fettle_error code, const char *part, const char *where);

/*
 * Ceph's commands at the pool of a back end of kind `rbd`, each a child of its own, which can be
 * ended: a library call that waits for a monitor cannot. None is root, and what lets it in is
 * handed to it (SAF-110). For rbd_volumes.c; in tasks.
 */
#pragma once

#include <errno.h>

#include "backend/volume/rbd_conf.h"
#include "backend/volume/volume_children.h"
#include "base/json.h"
#include "proto/storage/volume_driver.h"

/* Where, and for whom, commands run. */
struct rbd_call {
    struct volume_children *children;
    struct rbd_confs *confs;
    const struct backend *backend;
    const char *from; /* UUID of another back end that is read, or NULL */
    guint64 more_ms;  /* volume_children_run() */
};

/* Adds all words of a command that reads its configuration as the file CHILD_TEXT, and NULL. */
void rbd_words(const struct rbd_call *call, const char *const *words, GPtrArray *ret);
/* Runs a command as POOL_USER, whose words (program first, NULL at the end) do not say which pool
 * it is about. What it ended with: 0, an errno, or of `rados` 1, of which only its words tell more;
 * -1 with an error if it came to no end. `ret_said` may be NULL. */
int rbd_run(const struct rbd_call *call, const char *const *words, char **ret_said, GError **error);
/* The error of a command that ended with `code`; UNKNOWN_ENTITY: what it names is not there. */
void rbd_judge(const struct rbd_call *call, int code, const char *said, GError **error);
/* Both: false, with the error, unless it ended with 0. */
bool rbd_do(const struct rbd_call *call, const char *const *words, GError **error);
/* JSON in what a command has said: untrusted, within limits. CORRUPT: there is none. */
json_t *rbd_parse(const struct rbd_call *call, const char *said, GError **error);
/* Of a command that has to end with 0. */
json_t *rbd_ask(const struct rbd_call *call, const char *const *words, GError **error);

/* Names of all images, ours or not. */
json_t *rbd_list_images(const struct rbd_call *call, GError **error);
/* Sizes by image: objects. One that is being made or removed may have none. */
json_t *rbd_list_sizes(const struct rbd_call *call, GError **error);

#define RBD(...) ((const char *const[]){"rbd", __VA_ARGS__, NULL})

/* The marker: a lock that nobody gives up, on an object of its own, whose cookie says whose the
 * place is. Of what Ceph's commands write it is what is there whole or not at all, and made by one.
 * True with NULL: there is none. ENVIRONMENT: there is no such pool, or no way to it. */
bool rbd_read_marker(const struct rbd_call *call, char **ret_text, GError **error);
/* True also if another was first. */
bool rbd_make_marker(const struct rbd_call *call, const char *text, GError **error);

/*
 * A master that renews the keys of its cluster, and nodes that let in whom they trust. What nodes
 * and the master's authority have outlives a wconfd.
 */
#pragma once

#include "core/wconfd/wconf_private.h"
#include "proto/records.h"
#include "wconf_world.h"

#define KEYS_WORLD_NODES 3

enum forgery { FORGED_NOT, FORGED_KEY, FORGED_PROOF, FORGED_NO_PROOF };

struct keys_world {
    char *trusts[KEYS_WORLD_NODES]; /* etc/ca.crt */
    char *issuer[KEYS_WORLD_NODES]; /* whose certificate it has: "ca1" */
    bool silent[KEYS_WORLD_NODES];
    bool away[KEYS_WORLD_NODES]; /* it is offline on record, and misses what happens */
    bool old[KEYS_WORLD_NODES];  /* of a version that knows no renewal */
    char *node_key[KEYS_WORLD_NODES];
    enum forgery forged[KEYS_WORLD_NODES]; /* who asks in its name has another key */
    char *key, *next;
    guint made;
    struct authority authority;
    struct env *cli;
    guint questions;
    guint looks;   /* for a key */
    guint dies_at; /* at this question, counted from 1, the master dies; 0: never */
    bool acts;     /* the question was carried out all the same */
    bool dead;
    GString *asked;
};
extern struct keys_world keys_world;

/* With initial_changes(), or these; the cluster has signed for all nodes before. */
void keys_world_set_up(void);
void keys_world_set_up_with(GPtrArray *objects);
void keys_world_tear_down(void);
/* A new wconfd gets the authority. */
void keys_world_give(void);
/* A node daemon's answer to a question of a renewal, as fake_script() takes it. */
json_t *keys_world_answer(const struct rpc_request *request, const char *to_node, void *data,
                          GError **error);

void keys_world_begin(void);
json_t *keys_world_progress(void);
/* "PHASE: first of what it waits for" */
char *keys_world_state(void);
char *keys_world_secret_now(void);

/* Authorities go by their names: "ca1". */
char *keys_world_fingerprint_of(const char *name);
bool keys_world_is_trusted(guint by, const char *name);
bool keys_world_is_first(guint node, const char *name);
bool keys_world_hear_each_other(guint one, guint other);
/* Nobody is locked out, at any moment. */
void keys_world_assert_nobody_out(void);
/* Every node has what this authority has signed, and trusts it alone. */
void keys_world_assert_all_by(const char *name);

/*
 * The key of the cluster's certificate authority on a candidate that is not the master
 * (docs/design/mastership.md, "The authority's key"): fetched from the master as soon as the node
 * is a candidate, removed when it is none any more and the master has it. Used by copying.c, which
 * knows which of the two it is; the master's side is wconf_key.c.
 */
#pragma once

#include "proto/env.h"

struct keyring;

struct keyring *keyring_new(const struct env *env);
void keyring_free(struct keyring *keyring);

/* Whether the key is here and fits, as far as is known. */
bool keyring_has(const struct keyring *keyring);
/* In a task. The node is a candidate, by the master's word: looks whether the key is here, and
 * fetches it. A failure is logged once and tried again later. */
void keyring_keep(struct keyring *keyring);
/* In a task. The node is no candidate, by the master's word: removes the key, unless the master
 * has none. The same for failures. */
void keyring_leave(struct keyring *keyring);

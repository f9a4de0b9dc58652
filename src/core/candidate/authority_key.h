/*
 * The key of the cluster's certificate authority on a candidate that is not the master
 * (docs/design/mastership.md, "The authority's key"): fetched from the master as soon as the node
 * is a candidate, removed when it is none any more and the master has it. Used by replication.c,
 * which knows which of the two it is; the master's side is wconf_authority_key.c.
 */
#pragma once

#include "proto/env.h"

struct candidate_key;

struct candidate_key *candidate_key_new(const struct env *env);
void candidate_key_free(struct candidate_key *keyring);

/* Whether the key is here and fits, as far as is known. */
bool candidate_key_has(const struct candidate_key *keyring);
/* SHA-256 of the authority whose key that is; "": it is not here. Borrowed until the next call. */
const char *candidate_key_of(const struct candidate_key *keyring);
/* In a task. The node is a candidate, by the master's word: looks whether the key is here, and
 * fetches it. A failure is logged once and tried again later. */
void candidate_key_keep(struct candidate_key *keyring);
/* In a task. The node is no candidate, by the master's word: removes the key, unless the master
 * has none. The same for failures. */
void candidate_key_leave(struct candidate_key *keyring);

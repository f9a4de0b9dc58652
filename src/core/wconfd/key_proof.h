/*
 * Who asks for a node's certificate while the keys are renewed (SAF-94): that a link has a
 * certificate of the node proves nothing then, as whoever has the key of the old authority makes
 * one. So the request is signed by the key that the node has, which is on record since a
 * certificate was made for it.
 */
#pragma once

#include "proto/authority.h"
#include "proto/records.h"

/* Gives the SHA-256 of the public key that the certificate would be for. PERMISSION: the request
 * comes neither from who has the key on record, nor is it for that key, which is asked for again
 * when its certificate did not arrive. A node whose key is not known is believed. In a task. */
bool key_proof_check(struct authority *authority, const struct node *node,
                     const struct keys_request *asked, char **ret_key_hash, GError **error);

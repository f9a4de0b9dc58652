/*
 * Network cards of a new instance: their addresses are given out from the pools of cluster and
 * networks or checked as they were asked for, and no two cards of the cluster have the same one.
 * Used by create.
 */
#pragma once

#include "core/ops/op.h"

/* Lower case with colons; NULL with WRONG_INPUT if `text` is no MAC address of one card (six bytes,
 * not a group's, not all zero). Free with g_free(). */
char *mac_normal(const char *text, GError **error);

/* WRONG_INPUT with the path of the card (`nics[1].mac: …`) for cards that nobody could have:
 * malformed addresses, one address twice, routed without an ip. */
bool nics_check(const GPtrArray *specs, GError **error);

/* Keeps the networks of the cards as they are, for a declaration; UNKNOWN_ENTITY with the card. */
bool nics_lock_networks(struct op *op, const GPtrArray *specs, GError **error);
/* How a card will be connected: as its network says, else as it was asked for. */
void nics_connect(const struct op *op, const struct nic_spec *spec, enum nic_mode *ret_mode,
                  const char **ret_link);

/* Cards as asked for by `specs` (struct nic_spec, checked): links filled in, addresses given out
 * (random ones that nobody has) or taken as they are. GPtrArray of struct nic that owns them.
 * ALREADY_EXISTS names the instance that has an address; LIMIT: no free one was found. Two
 * creations at the same moment may still have drawn or named the same one: wconfd refuses the
 * commit of the later one with ALREADY_EXISTS, and the cards are made anew from the newest
 * configuration. */
GPtrArray *nics_new(struct op *op, const GPtrArray *specs, GError **error);

/* By its number or its MAC address; G_MAXUINT: there is no such card. */
guint nics_find(const GPtrArray *nics, const char *text);
/* Makes of the cards `nics` what `changes` (struct nic_edit; NULL: none) say of them; each error
 * with the path of the change (`change_nics[1].mac: …`), as for new cards. A card stays in its
 * network. `ret_changed` (of LIMIT_NICS): which ones. */
bool nics_change(struct op *op, GPtrArray *nics, const GPtrArray *changes, bool *ret_changed,
                 GError **error);
/* Keeps the networks of cards that get another address as they are. */
void nics_lock_changed(struct op *op, const GPtrArray *nics, const GPtrArray *changes);

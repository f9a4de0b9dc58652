/*
 * Network cards of a new instance: their addresses are given out from the cluster's pool or checked
 * as they were asked for, and no two cards of the cluster have the same one. Used by create.
 */
#pragma once

#include "core/ops/op.h"

/* Lower case with colons; NULL with WRONG_INPUT if `text` is no MAC address of one card (six bytes,
 * not a group's, not all zero). Free with g_free(). */
char *mac_normal(const char *text, GError **error);

/* The instance that has a card with this address; NULL: nobody, or `skip` (UUID; NULL: nobody is
 * skipped). */
const struct instance *mac_owner(const struct config *config, const char *mac, const char *skip);

/* WRONG_INPUT with the path of the card (`nics[1].mac: …`) for cards that nobody could have:
 * malformed addresses, one address twice, routed without an ip. */
bool nics_check(const GPtrArray *specs, GError **error);

/* Cards as asked for by `specs` (struct nic_spec, checked): links filled in, addresses given out
 * (random ones that nobody has) or taken as they are. GPtrArray of struct nic that owns them.
 * ALREADY_EXISTS names the instance that has an address; LIMIT: no free one was found. */
GPtrArray *nics_new(struct op *op, const GPtrArray *specs, GError **error);

/* After the instance is on record: two creations may have drawn or named the same address at the
 * same moment. Whoever sees the other gives way: drawn addresses are drawn anew, a named one is
 * ALREADY_EXISTS. */
bool nics_settle(struct op *op, const char *uuid, const GPtrArray *specs, GError **error);

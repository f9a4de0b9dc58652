/*
 * Whether the members of etcd hold the same. etcd's own check at a start looks at nobody before a
 * member's first snapshot, and its check from time to time stops all members when one is wrong, so
 * neither is used: their contents are asked for here, at one revision, and most of them are right
 * (proto/engine/etcd_contents.h).
 */
#pragma once

#include "io/etcd/etcd_client.h"
#include "proto/engine/etcd_contents.h"

/* From the member at the end of `client` (one URL). */
bool etcd_content_ask(struct etcd_client *client, guint64 revision, struct etcd_content *ret,
                      GError **error);

/* From an answer; NULL: there is none. */
void etcd_content_parse(const json_t *answer, struct etcd_content *ret);

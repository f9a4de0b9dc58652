/*
 * The authority's signature over a mastership (SAF-102): (cluster, history, epoch, node), and
 * whether that has begun – a majority has promised it – or is only wished for. Every master
 * candidate has the authority's key and no other node has, so it proves that its maker may be
 * master; another node that repeats it does not become one by it, but proves what it has heard.
 * Made by wconfd with every mastership and before it asks for promises, checked by the node daemon
 * of who does not know the maker for a candidate, and by a master who is told that it is none any
 * more. In tasks: openssl does the work.
 */
#pragma once

#include "proto/env.h"

/* What this node's mastership shows; "" without the key. A key that cannot sign is logged. */
void voucher_sign(const struct env *env, const char *cluster, struct stamp stamp, bool begun,
                  char ret[LIMIT_VOUCHER_CHARS + 1]);

/* PERMISSION: it is not the authority's over that. TEMPORARY, ENVIRONMENT, STORAGE: not known. */
bool voucher_check(const struct env *env, const char *cluster, struct stamp stamp, bool begun,
                   const char *node, const char *signature, GError **error);

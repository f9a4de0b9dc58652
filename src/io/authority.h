/*
 * The real certificate authority (proto/authority.h): etc/ca.crt and etc/ca.key, signing with the
 * openssl command in a child process. Only fettle-wconfd has one.
 */
#pragma once

#include "io/node_config.h"
#include "proto/authority.h"

/* `paths` is kept by reference. Reads nothing yet: a node that is no master candidate has no key.
 * What a predecessor left under run/authority is removed. */
struct authority *authority_new(const struct node_paths *paths);
void authority_free(struct authority *authority);

/*
 * The real certificate authority (proto/authority.h): etc/ca.crt and etc/ca.key, signing with the
 * openssl command in a child process. fettle-wconfd has one, and fettle-noded, which has no key.
 */
#pragma once

#include "io/node_config.h"
#include "proto/authority.h"

/* `paths` is kept by reference. Reads nothing yet: a node that is no master candidate has no key.
 * Works in run/FOLDER, each process in its own; what a predecessor left there is removed. */
struct authority *authority_new(const struct node_paths *paths, const char *folder);
/* fn(data) is called when certificates of this node have changed on its disk, and says whether they
 * are in use. */
void authority_on_renewed(struct authority *authority, bool (*fn)(GError **error, void *data),
                          void *data);
void authority_free(struct authority *authority);

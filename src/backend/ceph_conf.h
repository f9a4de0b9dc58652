/*
 * What lets a client in at a Ceph – its configuration, and in it the key of its user – as one text,
 * for programs that can open no file of root's (tool_text()). In tasks.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Where the key of client.USER may be, by what the configuration file `conf` says or leaves out: a
 * list that ends with NULL. */
char **ceph_conf_places(const char *conf, const char *user, GError **error);

/* The first of `places` that is there has the key. `*ret_key`: false if none is, and then the text
 * is that of `conf` alone. */
char *ceph_conf_read(const char *conf, const char *user, const char *const *places, bool *ret_key,
                     GError **error);

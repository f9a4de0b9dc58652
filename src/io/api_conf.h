/*
 * etc/apid.conf: lines `name = value`, and comments that begin with `#`; names and limits are those
 * of the record api_conf. Read by fettle-apid, written by `fettle api init`.
 */
#pragma once

#include "io/node_config.h"

/* Free with api_conf_free(). UNKNOWN_ENTITY: there is none ("fettle api init"); WRONG_INPUT with
 * the file and the line. */
struct api_conf *api_conf_read(const struct node_paths *paths, GError **error);
bool api_conf_write(const struct node_paths *paths, const struct api_conf *conf, GError **error);
/* Absolute names of what a front end keeps; free with g_free(). */
char *api_conf_path(const struct node_paths *paths);
char *api_store_path(const struct node_paths *paths);
char *api_keys_path(const struct node_paths *paths);

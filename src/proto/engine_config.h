/*
 * Which engine the cluster uses and, for etcd, who its members are: rules for the record
 * engine_config beyond what its fields say, and what is derived from it. Used by whoever makes such
 * a record (the change of engine), writes it (noded) or goes by it.
 */
#pragma once

#include "proto/records.h"

/* WRONG_INPUT with the field's path: etcd needs a token and members, SQLite has none; nodes, names
 * and URLs occur once; a URL is https://ADDRESS:PORT with a numeric address, the two of a member
 * have the same one. */
bool engine_config_check(const struct engine_config *config, GError **error);

/* SQLite; free with engine_config_free(). */
struct engine_config *engine_config_sqlite(void);

/* NULL if the node has no member; borrowed. */
const struct engine_member *engine_config_member(const struct engine_config *config,
                                                 const char *node);

/* The number of that node's member, by the node's name or UUID, for who renews it. WRONG_STATE:
 * there are none; UNKNOWN_ENTITY: not there. */
bool engine_config_find(const struct engine_config *config, const char *node, guint *ret_number,
                        GError **error);

/* "https://10.0.0.1:2379", "https://[fd00::1]:2379"; free with g_free(). */
char *engine_url(const char *address, guint64 port);
/* The address in such a URL; NULL with WRONG_INPUT if it is none. */
char *engine_url_address(const char *url, GError **error);

/* "a=https://…:2380,b=…": what etcd wants as --initial-cluster; free with g_free(). */
char *engine_initial_cluster(const struct engine_config *config);
/* Client URLs of all members, that of `node` (may be NULL) first; free with g_strfreev(). */
char **engine_client_urls(const struct engine_config *config, const char *node);

/* Whether there is a master, as far as the wconfd of `node` knows, which says that of itself: what
 * it followed when it was told may be this very node. */
bool engine_has_master(const struct role_status *status, const char *node);

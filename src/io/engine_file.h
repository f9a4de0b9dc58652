/*
 * The file etc/engine.json: which engine this candidate uses (record engine_config; rules in
 * proto/engine_config.h). Written by noded; read by wconfd at its start, by noded and by the
 * command line. Blocking, and short.
 */
#pragma once

#include "io/node_config.h"
#include "proto/engine_config.h"

#define ENGINE_FILE_NAME "engine.json"

/* SQLite if there is no file. CORRUPT with the file, the field and the reason. Free with
 * engine_config_free(). */
struct engine_config *engine_file_read(const struct node_paths *paths, GError **error);
/* Whole or not at all, and safe from a power cut when it returns; fields of later versions that
 * were read are kept. WRONG_INPUT by engine_config_check(), STORAGE. */
bool engine_file_write(const struct node_paths *paths, const struct engine_config *config,
                       GError **error);
/* The same for its removal; no error if there is none. */
bool engine_file_remove(const struct node_paths *paths, GError **error);

/* Certificates and keys below etc/etcd, as absolute names; free with g_free(). */
#define ENGINE_FILE_MEMBER "member" /* of the member, which is also its client's to itself */
#define ENGINE_FILE_CLIENT "client" /* of this node's daemons */
char *engine_file_certificate(const struct node_paths *paths, const char *whose);
char *engine_file_key(const struct node_paths *paths, const char *whose);
/* Whom members and those who ask them trust: the issuer of these certificates alone. */
char *engine_file_authority(const struct node_paths *paths);

/*
 * What fettle-rapid of a node may read and write, and nobody else but root: its own folder below
 * run/, and var/rapi, where its users and the certificate stand that its node has for it. It is the
 * user RAPID_USER; where the host has none, as in a lab, it is root. Used by fettle-noded, and by
 * luxid, which lets that user come.
 */
#pragma once

#include <sys/types.h>

#include "io/node_config.h"

#define RAPID_USER "fettle-rapid" /* that the package makes, and the unit names */
#define RAPID_FOLDER_VAR "rapi"   /* of FILE_RAPI */

struct rapid_owner {
    uid_t uid;
    gid_t gid;
};

/* This process's own, if the host has no such user, or this is not root. */
struct rapid_owner rapid_user(void);
/* Makes the folders, or gives them to that user. What is written into var/rapi is its group's from
 * then on (io/files.h). STORAGE. */
bool rapid_place_make(const struct node_paths *paths, GError **error);
/* Names of certificate and key in one file; free with g_free(): the operator's, and the one that
 * the node has for it. */
char *rapid_pem_path(const struct node_paths *paths);
char *rapid_own_pem_path(const struct node_paths *paths);

/*
 * The place of a front end of the API on its node: whose it is, and what is given to that user. It
 * is whoever has the folder var/api, which lies in a folder of root's; where that is root, as in a
 * lab, nothing is given to anybody. Used by fettle-noded, which lets that user in at its socket as
 * role apid and no other; by `fettle api init`; by fettle-apid.
 */
#pragma once

#include <sys/types.h>

#include "io/node_config.h"

#define API_USER "fettle-apid" /* that the package makes, and the unit names */

struct api_owner {
    uid_t uid;
    gid_t gid;
};

/* By its name. UNKNOWN_ENTITY: the host has none. */
bool api_user_find(const char *name, struct api_owner *ret_user, GError **error);
/* Whose the front end of this node is; false: there is none, or it is root's. */
bool api_user_of(const struct node_paths *paths, struct api_owner *ret_user);

/* Makes the folders var/api, run/api and log/api, that user's from then on. STORAGE. */
bool api_place_make(const struct node_paths *paths, const struct api_owner *user, GError **error);
/* Makes what lies in them, and etc/api-keys and etc/apid.pem, that user's too. STORAGE. */
bool api_place_give(const struct node_paths *paths, const struct api_owner *user, GError **error);
/* Opens noded's socket to the user of this node's front end, or to root alone again. False with an
 * error if it cannot; one that is not there is opened by noded when it starts. */
bool api_place_admit(const struct node_paths *paths, GError **error);
/* Whether this process is who the front end is of: WRONG_STATE with what to do. */
bool api_place_check(const struct node_paths *paths, GError **error);

/* Names below etc, run, log; free with g_free(). */
char *api_audit_path(const struct node_paths *paths);
char *api_pem_path(const struct node_paths *paths);

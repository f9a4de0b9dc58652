/*
 * The files of a front end of the API, on the node that it is of: etc/apid.conf, etc/api-keys and
 * var/lib/fettle/api. Commands about them run on that node; in a lab they find it by its name.
 */
#pragma once

#include "cli/cli.h"
#include "io/api_place.h"

struct front_end {
    char *node;     /* its name */
    char *lab;      /* folder of the lab that it is in; NULL: it is a host */
    bool elsewhere; /* on another host: it can be put on record here, and has its files there */
    struct node_paths *paths;
    struct node_config *config;
};

/* `node`: NULL: this one. UNKNOWN_ENTITY: this host belongs to no cluster. Free with
 * front_end_free(). */
struct front_end *front_end_find(const struct cli *cli, const char *node, GError **error);
void front_end_free(struct front_end *end);
typedef struct front_end front_end_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(front_end_t, front_end_free)

/* Names of what is there already, joined by ", "; "": nothing is. */
char *front_end_left(const struct front_end *end);
/* Removes all of it. */
bool front_end_remove(const struct front_end *end, GError **error);
/* Whether all that a front end needs is there, and whose it is to be: `owner`, or another's. */
bool front_end_is_whole(const struct front_end *end);
bool front_end_is_of(const struct front_end *end, const struct api_owner *owner);
/* Whether that user can read the certificate and the key that the operator has named: WRONG_STATE.
 */
bool front_end_can_show(const struct front_end *end, const struct api_conf *conf,
                        const struct api_owner *owner, GError **error);
/* Where clients find it. */
char *front_end_url(const struct front_end *end, const struct api_conf *conf);

/*
 * What the files of identity v3 share.
 *   identity_token.c        tokens: made, read, checked, revoked
 *   identity_login.c        who gets one
 *   identity_catalog.c      services, endpoints, regions, domains: which nobody can change
 *   identity_answer.c       links, lists, bodies that change an object
 *   identity_users.c, identity_projects.c, identity_roles.c, identity_credentials.c
 */
#pragma once

#include "core/api/api_private.h"
#include "core/api/identity_model.h"
#include "proto/records.h"

#define IDENTITY_DOMAIN_NAME "Default"
#define TOKEN_LIFE_US (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)

/* --- identity_token.c --- */

/* What a token's text says, and what its user may now. PERMISSION: it is no good (any more). */
struct api_token *token_open(struct api *api, const char *text, GError **error);
/* Fills in what user, project and credential are now (of which the ids are set). PERMISSION: they
 * are not, or not enabled, or have nothing to do with each other. */
bool token_look_up(struct api *api, struct api_token *token, GError **error);
/* A token of now: with an audit id, and the times. */
void token_stamp(struct api *api, struct api_token *token);
char *token_seal(struct api *api, const struct api_token *token, GError **error);
/* The object `token` of answers. */
json_t *token_to_json(const struct api_call *call, const struct api_token *token);
struct api_token *token_new(const char *user_id, const char *project_id, const char *credential_id);
/* Random bytes as text of URL-safe base64, without padding; free it. */
char *random_text(struct api *api, size_t bytes);

/* --- identity_login.c --- */

/* Whether the secret is that which the user's is kept as; `kept` NULL: nobody's. Waits, and
 * refreshes. PERMISSION: it is not, or he has failed too often. */
bool login_check(struct api_call *call, const char *user_id, const char *kept, const char *secret,
                 GError **error);

/* --- identity_catalog.c --- */

/* Of a token for that project. */
json_t *catalog_of(const struct api_call *call, const char *project_id);
json_t *domain_reference(void);
/* Whether a domain is named, if one is, that is there. */
bool is_domain(const struct api_domain_named *domain);

/* --- identity_answer.c --- */

/* `links` of an object at v3/COLLECTION/id, into it. */
json_t *with_links(const struct api_call *call, json_t *object, const char *collection,
                   const char *id);
/* {WRAPPER: object}; `object` NULL: there is none of that id, 404. Stolen. */
struct http_answer *answer_one(const struct api_call *call, const char *wrapper, json_t *object,
                               const char *id, GError **error);
/* {WRAPPER: […], "links"}: those that fit what stands behind "?", of the members that they have.
 * Stolen. */
struct http_answer *answer_list(const struct api_call *call, const char *wrapper, json_t *array,
                                GError **error);
/* "Could not find user: ID." UNKNOWN_ENTITY; false. */
bool not_found(const char *what, const char *id, GError **error);
/* 32 hexadecimal digits; free it. */
char *identity_id(struct api *api);
/* Whether he asks about himself, or may ask about anybody. PERMISSION. */
bool is_own_or_admin(const struct api_call *call, const char *user_id, GError **error);
/* What the body's wrapper has, as it came. */
const json_t *given_of(const struct api_call *call);
/* A domain that is given is the one. WRONG_INPUT. */
bool check_domain(const char *domain_id, const char *member, GError **error);

/* A user, project or role as the body says, over what it was; `create`: new. `finish` (may be NULL)
 * sets what bodies do not say; asked again if others were first. Waits. ALREADY_EXISTS: another one
 * has its name. */
struct naming {
    struct api_call *call;
    const struct record *record;
    const char *id;
    bool create;
    void (*finish)(const struct naming *naming, void *value, const void *old);
    const char *kept;            /* for `finish`: a new password; NULL: there is none */
    const GPtrArray *properties; /* likewise of a project, KEY=VALUE */
};
bool put_named(struct naming *naming, GError **error);
/* Removes it, and whatever binds others to it. Waits. */
struct http_answer *take_away(struct api_call *call, const char *kind, const char *id,
                              GError **error);
/* Whether a user has a role in a project. */
bool has_role_in(const struct api *api, const char *user_id, const char *project_id);

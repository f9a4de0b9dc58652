/*
 * One or two front ends over one store of identities, without a cluster: for tests of identity v3.
 * There are the roles admin, member and reader, the projects red and blue, and the users root
 * (admin in red), ann (member in red, reader in blue), bob (reader in blue) and tim (nothing).
 * Everybody's password is "pw-NAME", everything's id "id-NAME".
 */
#pragma once

#include "core/api/api_private.h"
#include "helper/fake_env.h"
#include "helper/fake_identity.h"

struct identity_world {
    struct fake_world *world;
    struct fake_identity *store;
    struct fake_crypto *crypto;
    struct env *env[2];
    struct cell *cell[2];
    struct api *api[2];
    GPtrArray *audit;           /* char *, lines */
    guint front_end;            /* that is asked: 0 or 1 */
    struct http_answer *answer; /* the last one */
    json_t *json;               /* its body; NULL: none */
};

struct identity_world *identity_world_new(void);
void identity_world_free(struct identity_world *world);
/* Asks and waits; its status. `target` is path and query behind /identity, or a whole one
 * (/volume/…); `token` NULL: none;
 * `body` NULL: none, stolen. */
guint ask(struct identity_world *world, const char *method, const char *target, const char *token,
          json_t *body);
guint ask_text(struct identity_world *world, const char *method, const char *target,
               const char *token, const char *subject, const char *body);
/* Of the last answer; "" if it has none of that name. */
const char *header(const struct identity_world *world, const char *name);
/* The text, or number, or word, at a path of the answer: "token.project.id", "users.0.name"; "" if
 * there is none. Borrowed until the next one. */
const char *at(struct identity_world *world, const char *path);
/* A login by password, with its body; `project` NULL: the text unscoped; "": nothing is said. */
json_t *login_body(const char *user, const char *password, const char *project);
/* The token that a user gets with his password; free it. */
char *token_of(struct identity_world *world, const char *user, const char *project);

/* Each route of identity v3 as stock clients use it, and what it refuses. core/api/identity_*.c */
#include <string.h>

#include "unit/core/world/identity_world.h"
#include "unit/core/world/routes_seen.h"

static struct identity_world *world;
static char *root, *ann, *bob; /* tokens: of red, red and blue */

static void begin(void)
{
    world = identity_world_new();
    root = token_of(world, "root", "red");
    ann = token_of(world, "ann", "red");
    bob = token_of(world, "bob", "blue");
}

static void end(void)
{
    g_free(root);
    g_free(ann);
    g_free(bob);
    identity_world_free(world);
}

static guint get(const char *target, const char *token)
{
    return ask(world, "GET", target, token, NULL);
}

/* Names of a list: "ann bob". */
static char *names(const char *list, const char *member)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    json_t *object;
    json_array_foreach(json_object_get(world->json, list), i, object)
        g_string_append_printf(text, "%s%s", i ? " " : "",
                               json_string_value(json_object_get(object, member)));
    return g_strdup(text->str);
}

#define assert_at(path, text) g_assert_cmpstr(at(world, path), ==, text)
#define assert_status(status, expression) g_assert_cmpuint(expression, ==, status)
#define assert_names(list, text)                                                                   \
    do {                                                                                           \
        g_autofree char *found = names(list, "name");                                              \
        g_assert_cmpstr(found, ==, text);                                                          \
    } while (0)

static void check_users(void)
{
    json_t *body = json_make("{s:{s:s, s:s, s:s, s:s, s:b, s:n, s:s}}", "user", "name", "eve",
                             "password", "pw-eve", "domain_id", "default", "email", "e@example.org",
                             "enabled", true, "description", "default_project_id", "id-red");
    assert_status(201, ask(world, "POST", "/v3/users", root, json_incref(body)));
    g_autofree char *id = g_strdup(at(world, "user.id"));
    g_assert_cmpuint(strlen(id), ==, 32);
    assert_at("user.email", "e@example.org");
    assert_at("user.domain_id", "default");
    assert_at("user.enabled", "true");
    assert_at("user.password", "");
    g_autofree char *link = g_strconcat("http://api.example.org:8774/identity/v3/users/", id, NULL);
    assert_at("user.links.self", link);
    assert_status(409, ask(world, "POST", "/v3/users", root, body));
    assert_at("error.title", "Conflict");
    assert_status(200, get("/v3/users", root));
    assert_names("users", "ann bob eve root tim");
    assert_at("links.self", "http://api.example.org:8774/identity/v3/users");
    assert_at("links.next", "null");
    assert_at("links.previous", "null");
    assert_status(200, get("/v3/users?name=eve&domain_id=default", root));
    assert_names("users", "eve");
    assert_status(200, get("/v3/users?name=nobody", root));
    assert_names("users", "");
    assert_status(200, get("/v3/users?enabled=False", root));
    assert_names("users", "");
    assert_status(400, get("/v3/users?enabled=perhaps", root));
    g_autofree char *target = g_strconcat("/v3/users/", id, NULL);
    assert_status(200, get(target, root));
    assert_at("user.name", "eve");
    assert_status(404, get("/v3/users/eve", root)); /* clients look by name then */
    assert_at("error.message", "Could not find user: eve.");
    g_autofree char *eve = token_of(world, "eve", NULL);
    assert_status(200, get(target, eve)); /* oneself */
    assert_status(403, get("/v3/users/id-ann", eve));
    assert_status(403, get("/v3/users", ann));
    assert_status(200, ask(world, "PATCH", target, root,
                           json_make("{s:{s:s, s:s}}", "user", "name", "eva", "email", "")));
    assert_at("user.name", "eva");
    assert_at("user.email", "");
    assert_at("user.default_project_id", "id-red");
    assert_status(409,
                  ask(world, "PATCH", target, root, json_make("{s:{s:s}}", "user", "name", "ann")));
    assert_status(404, ask(world, "PATCH", "/v3/users/x", root, json_make("{s:{}}", "user")));
    assert_status(204, ask(world, "DELETE", target, root, NULL));
    g_assert_cmpuint(world->answer->body_len, ==, 0);
    assert_status(404, ask(world, "DELETE", target, root, NULL));
    assert_status(401, get(target, eve));
}

static void check_bad_bodies(void)
{
    static const char *const bodies[] = {
        "{",
        "[]",
        "{}",
        "{\"user\":null}",
        "{\"user\":[]}",
        "{\"user\":{}}",
        "{\"user\":{\"name\":\"\"}}",
        "{\"user\":{\"name\":7}}",
        "{\"user\":{\"name\":\"x\",\"id\":\"mine\"}}",
        "{\"user\":{\"name\":\"x\",\"tokens_before_us\":1}}",
        "{\"user\":{\"name\":\"x\",\"enabled\":\"yes\"}}",
        "{\"user\":{\"name\":\"x\",\"domain_id\":\"other\"}}",
        "{\"user\":{\"name\":\"x\\u0007\"}}",
    };
    for (guint i = 0; i < G_N_ELEMENTS(bodies); i++)
        assert_status(400, ask_text(world, "POST", "/v3/users", root, NULL, bodies[i]));
    assert_status(400, ask_text(world, "POST", "/v3/users", root, NULL,
                                "{\"user\":{\"name\":\"x\",\"shoe\":1}}"));
    g_assert_nonnull(strstr(at(world, "error.message"), "user.shoe"));
    assert_status(
        400, ask(world, "\xff", "/v3/users", root, NULL)); /* not text: nothing is made of it */
    assert_status(400, get("/v3/users?name=\xff", root));
    assert_status(400, get("/v3/users", "\xff"));
    assert_status(400, ask(world, "POST", "/v3/users?\xff", NULL, NULL));
    assert_status(404, get("/v3/nothing", root));
    assert_status(405, ask(world, "PUT", "/v3/users", root, NULL));
    g_assert_cmpstr(header(world, "Allow"), ==, "GET, POST");
}

static void check_passwords(void)
{
    const char *target = "/v3/users/id-ann/password";
    json_t *body =
        json_make("{s:{s:s, s:s}}", "user", "original_password", "pw-ann", "password", "new");
    assert_status(403, ask(world, "POST", target, bob, json_incref(body)));
    assert_status(403, ask(world, "POST", target, root, json_incref(body)));
    assert_status(401, ask(world, "POST", target, ann,
                           json_make("{s:{s:s, s:s}}", "user", "original_password", "pw-bob",
                                     "password", "new")));
    assert_status(204, ask(world, "POST", target, ann, body));
    assert_status(401, get("/v3/auth/projects", ann)); /* tokens of before */
    g_assert_nonnull(strstr(at(world, "error.message"), "from before the user's password"));
    assert_status(401,
                  ask(world, "POST", "/v3/auth/tokens", NULL, login_body("ann", "pw-ann", "red")));
    assert_status(201,
                  ask(world, "POST", "/v3/auth/tokens", NULL, login_body("ann", "new", "red")));
    g_autofree char *fresh = g_strdup(header(world, "X-Subject-Token"));
    assert_status(200, get("/v3/auth/projects", fresh)); /* though it is of the same moment */
    assert_status(200, ask(world, "PATCH", "/v3/users/id-ann", root,
                           json_make("{s:{s:s}}", "user", "password", "newer")));
    assert_status(401, get("/v3/auth/projects", fresh));
    world->crypto->full = true;
    assert_status(503, ask(world, "PATCH", "/v3/users/id-ann", root,
                           json_make("{s:{s:s}}", "user", "password", "x")));
    world->crypto->full = false;
}

static void check_projects(void)
{
    assert_status(201, ask(world, "POST", "/v3/projects", root,
                           json_make("{s:{s:s, s:s, s:s, s:b, s:s, s:b}}", "project", "name",
                                     "green", "domain_id", "default", "description", "grass",
                                     "enabled", true, "parent_id", "default", "is_domain", false)));
    g_autofree char *id = g_strdup(at(world, "project.id"));
    g_autofree char *target = g_strconcat("/v3/projects/", id, NULL);
    assert_at("project.description", "grass");
    assert_at("project.parent_id", "default");
    assert_at("project.is_domain", "false");
    assert_at("project.tags", "[]");
    assert_at("project.options", "{}");
    g_assert_cmpstr(at(world, "project.links.self"), !=, "");
    assert_status(200, get("/v3/projects", root));
    assert_names("projects", "blue green red");
    assert_status(403, get("/v3/projects", ann));
    assert_status(200, get("/v3/users/id-ann/projects", ann));
    assert_names("projects", "blue red");
    assert_status(403, get("/v3/users/id-ann/projects", bob));
    assert_status(404, get("/v3/users/x/projects", root));
    assert_status(200, get("/v3/auth/projects", bob));
    assert_names("projects", "blue");
    assert_status(200, get("/v3/projects/id-blue", ann));
    assert_status(403, get(target, ann));
    assert_status(200, get(target, root));
    assert_status(404, get("/v3/projects/green", root));
    assert_status(200,
                  ask(world, "PATCH", target, root,
                      json_make("{s:{s:b, s:[s]}}", "project", "enabled", false, "tags", "cold")));
    assert_at("project.enabled", "false");
    assert_at("project.name", "green");
    assert_at("project.tags", "[\"cold\"]");
    assert_status(200,
                  ask(world, "PATCH", target, root,
                      json_make("{s:{s:s, s:s}}", "project", "owner", "ann", "cost-of", "grass")));
    assert_at("project.owner", "ann");
    assert_at("project.name", "green");
    assert_status(200, ask(world, "PATCH", target, root,
                           json_make("{s:{s:s, s:n}}", "project", "owner", "bob", "cost-of")));
    assert_at("project.owner", "bob");
    g_assert_cmpstr(at(world, "project.cost-of"), !=, "grass");
    assert_status(400,
                  ask(world, "PATCH", target, root, json_make("{s:{s:[]}}", "project", "owner")));
    assert_status(
        409, ask(world, "PATCH", target, root, json_make("{s:{s:s}}", "project", "name", "red")));
    assert_status(400,
                  ask(world, "POST", "/v3/projects", root,
                      json_make("{s:{s:s, s:s}}", "project", "name", "x", "parent_id", "id-red")));
    assert_status(400, ask(world, "POST", "/v3/projects", root,
                           json_make("{s:{s:s, s:b}}", "project", "name", "x", "is_domain", true)));
    assert_status(204, ask(world, "DELETE", target, root, NULL));
    assert_status(204, ask(world, "DELETE", "/v3/projects/id-blue", root, NULL));
    assert_status(401, get("/v3/auth/projects", bob));
    assert_status(200, get("/v3/role_assignments?scope.project.id=id-blue", root));
    assert_at("role_assignments", "[]");
}

static void check_roles(void)
{
    assert_status(
        201, ask(world, "POST", "/v3/roles", root,
                 json_make("{s:{s:s, s:s}}", "role", "name", "auditor", "description", "looks")));
    g_autofree char *id = g_strdup(at(world, "role.id"));
    g_autofree char *target = g_strconcat("/v3/roles/", id, NULL);
    assert_at("role.domain_id", "null");
    assert_at("role.options", "{}");
    assert_status(200, get("/v3/roles", root));
    assert_names("roles", "admin auditor member reader");
    assert_at("roles.0.options", "{\"immutable\":true}");
    assert_status(200, get("/v3/roles?name=member", root));
    assert_names("roles", "member");
    assert_status(200, get(target, root));
    assert_status(
        200, ask(world, "PATCH", target, root, json_make("{s:{s:s}}", "role", "name", "looker")));
    assert_at("role.name", "looker");
    assert_at("role.description", "looks");
    assert_status(403, ask(world, "PATCH", "/v3/roles/id-admin", root,
                           json_make("{s:{s:s}}", "role", "name", "x")));
    assert_status(403, ask(world, "DELETE", "/v3/roles/id-admin", root, NULL));
    assert_status(400,
                  ask(world, "POST", "/v3/roles", root,
                      json_make("{s:{s:s, s:s}}", "role", "name", "x", "domain_id", "default")));
    g_autofree char *grant = g_strconcat("/v3/projects/id-red/users/id-tim/roles/", id, NULL);
    assert_status(404, ask(world, "HEAD", grant, root, NULL));
    assert_status(204, ask(world, "PUT", grant, root, NULL));
    assert_status(204, ask(world, "PUT", grant, root, NULL));
    assert_status(204, ask(world, "HEAD", grant, root, NULL));
    assert_status(403, ask(world, "PUT", grant, ann, NULL));
    static const char *const nowhere[] = {"/v3/projects/x/users/id-tim/roles/id-admin",
                                          "/v3/projects/id-red/users/x/roles/id-admin",
                                          "/v3/projects/id-red/users/id-tim/roles/x"};
    for (guint i = 0; i < G_N_ELEMENTS(nowhere); i++)
        assert_status(404, ask(world, "PUT", nowhere[i], root, NULL));
    assert_status(200, get("/v3/projects/id-red/users/id-tim/roles", root));
    assert_names("roles", "looker");
    assert_status(200, get("/v3/role_assignments?user.id=id-tim", root));
    g_autofree char *link = g_strconcat(
        "http://api.example.org:8774/identity/v3/projects/id-red/users/id-tim/roles/", id, NULL);
    assert_at("role_assignments.0.links.assignment", link);
    assert_at("role_assignments.0.scope", "{\"project\":{\"id\":\"id-red\"}}");
    assert_at("role_assignments.0.user", "{\"id\":\"id-tim\"}");
    assert_status(200, get("/v3/role_assignments?include_names&user.id=id-tim", root));
    assert_at("role_assignments.0.role.name", "looker");
    assert_at("role_assignments.0.user.domain.name", "Default");
    assert_at("role_assignments.0.scope.project.name", "red");
    assert_status(200, get("/v3/role_assignments?include_names=True&role.id=id-reader", root));
    g_assert_cmpuint(json_array_size(json_object_get(world->json, "role_assignments")), ==, 2);
    assert_status(200, get("/v3/role_assignments?group.id=x", root));
    assert_at("role_assignments", "[]");
    assert_status(204, ask(world, "DELETE", grant, root, NULL));
    assert_status(404, ask(world, "DELETE", grant, root, NULL));
    assert_status(204, ask(world, "PUT", grant, root, NULL));
    assert_status(204, ask(world, "DELETE", target, root, NULL));
    assert_status(200, get("/v3/role_assignments?user.id=id-tim", root));
    assert_at("role_assignments", "[]");
}

static void check_fixed(void)
{
    static const struct {
        const char *list, *type;
        guint count;
    } lists[] = {{"services", "identity", 3},
                 {"endpoints", NULL, 9},
                 {"regions", NULL, 1},
                 {"domains", NULL, 1}};
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *target = g_strconcat("/v3/", lists[i].list, NULL);
        assert_status(200, get(target, root));
        g_assert_cmpuint(json_array_size(json_object_get(world->json, lists[i].list)), ==,
                         lists[i].count);
        g_autofree char *path = g_strconcat(lists[i].list, ".0.links.self", NULL);
        g_autofree char *self = g_strdup(at(world, path));
        const char *one = self + strlen("http://api.example.org:8774/identity");
        assert_status(200, get(one, root));
        g_autofree char *missing = g_strconcat(target, "/x", NULL);
        assert_status(404, get(missing, root));
    }
    assert_status(200, get("/v3/domains?name=Default", root));
    assert_names("domains", "Default");
    assert_status(200, get("/v3/services?type=image", root));
    assert_names("services", "glance");
    assert_status(200, get("/v3/endpoints?interface=public", root));
    g_assert_cmpuint(json_array_size(json_object_get(world->json, "endpoints")), ==, 3);
    assert_at("endpoints.1.url", "http://api.example.org:8774/volume/v3/$(project_id)s");
    assert_status(403, get("/v3/services", ann));
}

static void check_versions(void)
{
    assert_status(300, get("/", NULL));
    assert_at("versions.values.0.id", "v3.14");
    g_assert_cmpstr(header(world, "Location"), ==, "http://api.example.org:8774/identity/v3/");
    assert_status(200, get("/v3", NULL));
    assert_at("version.links.0.href", "http://api.example.org:8774/identity/v3/");
    assert_status(300, get("/volume/", NULL));
    assert_at("versions.0.version", "3.70");
    assert_status(200, get("/volume/v3/", NULL));
    assert_at("versions.0.min_version", "3.0");
    assert_status(300, get("/image/", NULL));
    assert_at("versions.0.id", "v2.16");
    assert_status(200, get("/image/versions", NULL));
    assert_at("versions.0.status", "CURRENT");
}

static void check_all_routes(void)
{
    static const char *const routes[] = {"identity_", "volume_version", "image_choices",
                                         "image_versions", NULL};
    routes_seen_assert(routes);
}

/* --- tokens --- */

static guint subject(const char *method, const char *token, const char *of)
{
    return ask_text(world, method, "/v3/auth/tokens", token, of, NULL);
}

static void check_tokens(void)
{
    assert_status(200, subject("GET", ann, ann));
    assert_at("token.user.name", "ann");
    assert_at("token.roles.0.name", "member");
    g_assert_cmpstr(header(world, "X-Subject-Token"), ==, ann);
    assert_status(200, subject("GET", root, bob));
    assert_status(403, subject("GET", bob, ann));
    assert_status(404, subject("GET", root, "nonsense"));
    assert_status(404, subject("GET", root, NULL));
    assert_status(200, subject("HEAD", bob, bob));
    g_assert_cmpuint(world->answer->body_len, ==, 0);
    assert_status(401, subject("GET", NULL, ann));
    assert_status(401, subject("GET", "nonsense", ann));
    g_assert_cmpstr(header(world, "WWW-Authenticate"), !=, "");
    assert_status(403, subject("DELETE", bob, ann));
    assert_status(204, subject("DELETE", ann, ann));
    assert_status(401, get("/v3/auth/projects", ann));
    g_assert_nonnull(strstr(at(world, "error.message"), "was revoked"));
    assert_status(404, subject("GET", root, ann));
    world->front_end = 1; /* and at the other front end */
    assert_status(401, get("/v3/auth/projects", ann));
    assert_status(200, get("/v3/auth/projects", bob));
    world->front_end = 0;
    g_autofree char *none = token_of(world, "tim", NULL);
    assert_status(403, get("/v3/auth/catalog", none));
    assert_status(200, get("/v3/auth/catalog", bob));
    assert_at("catalog.2.name", "glance");
    assert_status(403, get("/v3/users", none));
}

static void check_expiry(void)
{
    fake_advance(world->world, 3599 * 1000);
    assert_status(200, get("/v3/auth/projects", bob));
    assert_status(204, subject("DELETE", ann, ann));
    fake_advance(world->world, 1000);
    assert_status(401, get("/v3/auth/projects", bob));
    g_assert_nonnull(strstr(at(world, "error.message"), "has expired"));
    g_autofree char *fresh = token_of(world, "root", "red");
    assert_status(204, subject("DELETE", fresh, fresh));
    guint revoked = 0; /* what has expired is not remembered any more */
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, world->store->objects);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        revoked += g_str_has_prefix(key, "api_revoked/") ? 1 : 0;
    g_assert_cmpuint(revoked, ==, 1);
}

/* What was changed by anybody counts at the next request, here and at the other front end. */
static void check_changes_bite(void)
{
    assert_status(200, get("/v3/users", root));
    world->front_end = 1;
    assert_status(200, ask(world, "PATCH", "/v3/users/id-bob", root,
                           json_make("{s:{s:b}}", "user", "enabled", false)));
    world->front_end = 0;
    assert_status(401, get("/v3/auth/projects", bob));
    assert_status(401,
                  ask(world, "POST", "/v3/auth/tokens", NULL, login_body("bob", "pw-bob", "blue")));
    assert_status(200, ask(world, "PATCH", "/v3/users/id-bob", root,
                           json_make("{s:{s:b}}", "user", "enabled", true)));
    assert_status(401, get("/v3/auth/projects", bob)); /* for good */
    g_autofree char *again = token_of(world, "bob", "blue");
    assert_status(200, ask(world, "PATCH", "/v3/projects/id-blue", root,
                           json_make("{s:{s:b}}", "project", "enabled", false)));
    assert_status(401, get("/v3/auth/projects", again));
    assert_status(200, ask(world, "PATCH", "/v3/projects/id-blue", root,
                           json_make("{s:{s:b}}", "project", "enabled", true)));
    assert_status(200, get("/v3/auth/projects", again));
    assert_status(403, get("/v3/users", again));
    const char *grant = "/v3/projects/id-blue/users/id-bob/roles/id-admin";
    assert_status(204, ask(world, "PUT", grant, root, NULL));
    assert_status(200, get("/v3/users", again));
    assert_status(204, ask(world, "DELETE", grant, root, NULL));
    assert_status(403, get("/v3/users", again));
    assert_status(
        204, ask(world, "DELETE", "/v3/projects/id-blue/users/id-bob/roles/id-reader", root, NULL));
    assert_status(401, get("/v3/auth/projects", again));
    world->crypto->key = 'b'; /* other keys */
    assert_status(401, get("/v3/auth/projects", root));
    g_assert_nonnull(strstr(at(world, "error.message"), "none of ours"));
}

/* --- application credentials --- */

static guint make_credential(const char *token, const char *user, json_t *body)
{
    g_autofree char *target = g_strdup_printf("/v3/users/id-%s/application_credentials", user);
    return ask(world, "POST", target, token, json_make("{s:o}", "application_credential", body));
}

static json_t *by_credential(const char *id, const char *secret)
{
    return json_make("{s:{s:{s:[s], s:{s:s, s:s}}}}", "auth", "identity", "methods",
                     "application_credential", "application_credential", "id", id, "secret",
                     secret);
}

static void check_credentials(void)
{
    assert_status(201, make_credential(
                           ann, "ann",
                           json_make("{s:s, s:n, s:n}", "name", "backup", "roles", "expires_at")));
    g_autofree char *id = g_strdup(at(world, "application_credential.id"));
    g_autofree char *secret = g_strdup(at(world, "application_credential.secret"));
    assert_at("application_credential.project_id", "id-red");
    assert_at("application_credential.roles.0.name", "member");
    assert_at("application_credential.unrestricted", "false");
    assert_at("application_credential.expires_at", "null");
    g_assert_cmpuint(strlen(secret), ==, 86);
    assert_status(409, make_credential(ann, "ann", json_make("{s:s}", "name", "backup")));
    assert_status(403, make_credential(root, "ann", json_make("{s:s}", "name", "other")));
    g_autofree char *target = g_strconcat("/v3/users/id-ann/application_credentials/", id, NULL);
    assert_status(200, get(target, ann));
    assert_at("application_credential.secret", "");
    g_assert_true(g_str_has_suffix(at(world, "application_credential.links.self"), target));
    assert_status(403, get(target, bob));
    assert_status(404, get("/v3/users/id-ann/application_credentials/x", ann));
    assert_status(200, get("/v3/users/id-ann/application_credentials?name=backup", ann));
    assert_names("application_credentials", "backup");
    assert_status(200, get("/v3/users/id-bob/application_credentials", root));
    assert_names("application_credentials", "");
    assert_status(401, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(id, "wrong")));
    assert_status(401, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential("x", secret)));
    assert_status(201, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(id, secret)));
    g_autofree char *token = g_strdup(header(world, "X-Subject-Token"));
    assert_at("token.project.id", "id-red");
    assert_at("token.methods", "[\"application_credential\"]");
    assert_at("token.application_credential.restricted", "true");
    assert_status(403, make_credential(token, "ann", json_make("{s:s}", "name", "second")));
    assert_status(403, ask(world, "DELETE", target, token, NULL));
    assert_status(204, ask(world, "DELETE", target, ann, NULL));
    assert_status(401, get("/v3/auth/projects", token));
    assert_status(401, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(id, secret)));
}

/* Nobody fills the store, which each change reads again. */
static void check_limits(void)
{
    for (guint i = 0; i < 100; i++) {
        g_autofree char *id = g_strdup_printf("credential%u", i);
        fake_identity_put(world->store, "api_credential", id,
                          json_make("{s:s, s:s, s:s, s:s, s:s}", "id", id, "name", id, "user_id",
                                    "id-ann", "project_id", "id-red", "secret", "kept x"));
    }
    assert_status(403, make_credential(ann, "ann", json_make("{s:s}", "name", "one-more")));
    assert_status(201, make_credential(bob, "bob", json_make("{s:s}", "name", "one")));
    json_int_t later = (json_int_t)world->env[0]->ops->wall_us(world->env[0]) + 3600000000;
    for (guint i = 0; i < 4096; i++) {
        g_autofree char *id = g_strdup_printf("revoked%u", i);
        fake_identity_put(world->store, "api_revoked", id,
                          json_make("{s:s, s:I}", "id", id, "expires_us", later));
    }
    assert_status(204, ask_text(world, "DELETE", "/v3/auth/tokens", ann, ann, NULL));
    assert_status(401, get("/v3/auth/projects", ann));
    assert_status(200, get("/v3/auth/projects", bob));
    guint count = 0;
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, world->store->objects);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        count += g_str_has_prefix(key, "api_revoked/") ? 1 : 0;
    g_assert_cmpuint(count, ==, 4096);
    g_autofree char *next = token_of(world, "ann", "red");
    assert_status(200, get("/v3/auth/projects", next));
}

/* What the store would not give back is not put into it: nobody could ask anything any more. */
static void check_unreadable(void)
{
    const char *path = "/v3/users/id-ann/application_credentials";
    assert_status(400, ask(world, "POST", path, ann,
                           json_make("{s:{s:s, s:s}}", "application_credential", "name", "x",
                                     "expires_at", "9999-12-31T00:00:00")));
    assert_status(200, get(path, ann));
    g_autofree char *long_id = g_strnfill(300, 'a');
    g_autofree char *quota = g_strdup_printf("/volume/v3/id-red/os-quota-sets/%s", long_id);
    assert_status(
        400, ask(world, "PUT", quota, root, json_make("{s:{s:i}}", "quota_set", "volumes", 1)));
    assert_status(200, get(path, ann));
}

static void check_credential_terms(void)
{
    g_autofree char *none = token_of(world, "ann", NULL);
    assert_status(400, make_credential(none, "ann", json_make("{s:s}", "name", "x")));
    assert_status(
        400, make_credential(ann, "ann",
                             json_make("{s:s, s:[{s:s}]}", "name", "x", "roles", "name", "admin")));
    assert_status(400, make_credential(ann, "ann",
                                       json_make("{s:s, s:s}", "name", "x", "expires_at", "soon")));
    assert_status(400, make_credential(ann, "ann",
                                       json_make("{s:s, s:s}", "name", "x", "expires_at",
                                                 "1990-01-01T00:00:00")));
    assert_status(400, make_credential(ann, "ann",
                                       json_make("{s:s, s:[{s:s}]}", "name", "x", "access_rules",
                                                 "path", "/")));
    gint64 now = world->env[0]->ops->wall_us(world->env[0]);
    g_autoptr(GDateTime) soon = g_date_time_new_from_unix_utc(now / G_USEC_PER_SEC + 60);
    g_autofree char *when = g_date_time_format(soon, "%Y-%m-%dT%H:%M:%S.250000");
    assert_status(201,
                  make_credential(ann, "ann",
                                  json_make("{s:s, s:s, s:s, s:b, s:[{s:s}]}", "name", "short",
                                            "expires_at", when, "secret", "mine", "unrestricted",
                                            true, "roles", "id", "id-member")));
    assert_at("application_credential.expires_at", when);
    g_autofree char *id = g_strdup(at(world, "application_credential.id"));
    assert_status(201, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(id, "mine")));
    g_autofree char *token = g_strdup(header(world, "X-Subject-Token"));
    assert_at("token.application_credential.restricted", "false");
    assert_status(201, make_credential(token, "ann", json_make("{s:s}", "name", "second")));
    json_t *named =
        json_make("{s:{s:{s:[s], s:{s:s, s:s, s:{s:s, s:{s:s}}}}}}", "auth", "identity", "methods",
                  "application_credential", "application_credential", "name", "short", "secret",
                  "mine", "user", "name", "ann", "domain", "id", "default");
    assert_status(201, ask(world, "POST", "/v3/auth/tokens", NULL, named));
    fake_advance(world->world, 61 * 1000);
    assert_status(401, get("/v3/auth/projects", token));
    assert_status(401, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(id, "mine")));
    /* its roles go with its user's */
    assert_status(201, make_credential(ann, "ann",
                                       json_make("{s:s, s:s}", "name", "third", "secret", "mine")));
    g_autofree char *third = g_strdup(at(world, "application_credential.id"));
    assert_status(201, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(third, "mine")));
    g_autofree char *late = g_strdup(header(world, "X-Subject-Token"));
    assert_status(
        204, ask(world, "DELETE", "/v3/projects/id-red/users/id-ann/roles/id-member", root, NULL));
    assert_status(204,
                  ask(world, "PUT", "/v3/projects/id-red/users/id-ann/roles/id-admin", root, NULL));
    assert_status(401, get("/v3/auth/projects", late));
    assert_status(204, ask(world, "DELETE", "/v3/users/id-ann", root, NULL));
    assert_status(401, ask(world, "POST", "/v3/auth/tokens", NULL, by_credential(third, "mine")));
}

/* --- several front ends, and a store that fails --- */

static void check_conflicts(void)
{
    world->store->conflicts = 3;
    assert_status(
        201, ask(world, "POST", "/v3/roles", root, json_make("{s:{s:s}}", "role", "name", "late")));
    world->store->conflicts = 1000;
    assert_status(503, ask(world, "POST", "/v3/roles", root,
                           json_make("{s:{s:s}}", "role", "name", "never")));
    world->store->conflicts = 0;
    world->store->broken = "the disk is gone";
    assert_status(500, get("/v3/users", root));
    world->store->broken = NULL;
    assert_status(200, get("/v3/roles", root));
    assert_names("roles", "admin late member reader");
    fake_identity_put(world->store, "api_user", "id-bad", json_make("{s:i}", "name", 7));
    assert_status(500, get("/v3/users", root));
    g_assert_nonnull(strstr(at(world, "error.message"), "api_user id-bad"));
}

/* The other front end takes the name while the password is made. */
static void take_name(void *unused)
{
    fake_identity_put(world->store, "api_user", "id-eve",
                      json_make("{s:s, s:s}", "id", "id-eve", "name", "eve"));
}

static void check_race(void)
{
    world->crypto->meanwhile = take_name;
    assert_status(409, ask(world, "POST", "/v3/users", root,
                           json_make("{s:{s:s, s:s}}", "user", "name", "eve", "password", "x")));
    world->store->meanwhile = take_name;
    fake_identity_put(world->store, "api_user", "id-eve", NULL);
    assert_status(
        409, ask(world, "POST", "/v3/users", root, json_make("{s:{s:s}}", "user", "name", "eve")));
}

static void check_audit(void)
{
    g_ptr_array_set_size(world->audit, 0);
    assert_status(200, get("/v3/users", root));
    g_assert_cmpuint(world->audit->len, ==, 0);
    assert_status(201,
                  ask(world, "POST", "/v3/users", root,
                      json_make("{s:{s:s, s:s}}", "user", "name", "eve", "password", "pw-secret")));
    g_autofree char *id = g_strdup(at(world, "user.id"));
    g_autofree char *token = token_of(world, "ann", "red");
    g_assert_nonnull(token);
    g_assert_cmpuint(world->audit->len, ==, 2);
    const char *line = world->audit->pdata[0];
    g_assert_nonnull(strstr(line, "\"user\":\"id-root\""));
    g_assert_nonnull(strstr(line, id));
    g_assert_nonnull(strstr(line, "\"status\":201"));
    g_assert_null(strstr(line, "pw-secret"));
    g_assert_nonnull(strstr(world->audit->pdata[1], "id-ann"));
    g_assert_null(strstr(world->audit->pdata[1], "pw-ann"));
}

static void test(const void *check)
{
    begin();
    ((void (*)(void))check)();
    end();
}

#define TEST(path, check) g_test_add_data_func("/identity/" path, check, test)
int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    TEST("users", check_users);
    TEST("bad bodies", check_bad_bodies);
    TEST("passwords", check_passwords);
    TEST("projects", check_projects);
    TEST("roles and assignments", check_roles);
    TEST("services, endpoints, region and domain", check_fixed);
    TEST("versions", check_versions);
    TEST("tokens, shown and revoked", check_tokens);
    TEST("tokens that expire", check_expiry);
    TEST("what was changed counts at the next request", check_changes_bite);
    TEST("application credentials", check_credentials);
    TEST("terms of application credentials", check_credential_terms);
    TEST("what cannot be kept", check_unreadable);
    TEST("as many as there may be", check_limits);
    TEST("stores that others change, or that fail", check_conflicts);
    TEST("a name that another takes meanwhile", check_race);
    TEST("the audit log", check_audit);
    g_test_add_func("/identity/each route was answered", check_all_routes);
    return g_test_run();
}

/* See identity_world.h. */
#include "unit/core/world/identity_world.h"

#include <string.h>

#include "unit/core/world/routes_seen.h"

#define NODE "11111111-0000-4000-8000-000000000001"

static void put(struct identity_world *world, const char *kind, const char *key, json_t *object)
{
    fake_identity_put(world->store, kind, key, object);
}

static void put_named(struct identity_world *world, const char *kind, const char *name)
{
    g_autofree char *id = g_strconcat("id-", name, NULL);
    g_autofree char *kept = g_strconcat("kept pw-", name, NULL);
    json_t *object = json_make("{s:s, s:s}", "id", id, "name", name);
    if (!strcmp(kind, "api_user"))
        json_object_set_new(object, "password", json_string(kept));
    put(world, kind, id, object);
}

static void assign(struct identity_world *world, const char *user, const char *project,
                   const char *role)
{
    g_autofree char *key = g_strdup_printf("id-%s/id-%s/id-%s", user, project, role);
    g_auto(GStrv) ids = g_strsplit(key, "/", -1);
    put(world, "api_assignment", key,
        json_make("{s:s, s:s, s:s}", "user_id", ids[0], "project_id", ids[1], "role_id", ids[2]));
}

static void keep_audit(const char *line, void *data)
{
    struct identity_world *world = data;
    g_ptr_array_add(world->audit, g_strdup(line));
}

struct identity_world *identity_world_new(void)
{
    struct identity_world *world = g_new0(struct identity_world, 1);
    world->world = fake_world_new();
    world->store = fake_identity_new();
    world->crypto = fake_crypto_new();
    world->audit = g_ptr_array_new_with_free_func(g_free);
    static const char *const roles[] = {"admin", "member", "reader"};
    for (guint i = 0; i < G_N_ELEMENTS(roles); i++)
        put_named(world, "api_role", roles[i]);
    static const char *const users[] = {"root", "ann", "bob", "tim"};
    for (guint i = 0; i < G_N_ELEMENTS(users); i++)
        put_named(world, "api_user", users[i]);
    put_named(world, "api_project", "red");
    put_named(world, "api_project", "blue");
    assign(world, "root", "red", "admin");
    assign(world, "ann", "red", "member");
    assign(world, "ann", "blue", "reader");
    assign(world, "bob", "blue", "reader");
    for (guint i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        world->env[i] = fake_process(world->world, NODE, i ? "apid-2" : ROLE_APID);
        world->cell[i] = cell_new(world->env[i]);
        struct api_options options = {
            .env = world->env[i],
            .cell = world->cell[i],
            .identity = &world->store->store,
            .crypto = &world->crypto->crypto,
            .public_url = "",
            .region = "RegionOne",
            .audit = keep_audit,
            .data = world,
        };
        world->api[i] = api_new(&options, &error);
        g_assert_no_error(error);
    }
    return world;
}

static void forget_answer(struct identity_world *world)
{
    http_answer_free(world->answer);
    json_decref(world->json);
    world->answer = NULL;
    world->json = NULL;
}

void identity_world_free(struct identity_world *world)
{
    forget_answer(world);
    for (guint i = 0; i < 2; i++) {
        fake_kill(world->env[i]);
        api_free(world->api[i]);
        cell_free(world->cell[i]);
    }
    g_ptr_array_unref(world->audit);
    fake_crypto_free(world->crypto);
    fake_identity_free(world->store);
    fake_world_free(world->world);
    g_free(world);
}

/* --- requests --- */

static void done_cb(struct http_answer *answer, void *data)
{
    struct identity_world *world = data;
    g_assert_null(world->answer);
    world->answer = answer;
}

guint ask_text(struct identity_world *world, const char *method, const char *target,
               const char *token, const char *subject, const char *body)
{
    g_auto(GStrv) parts = g_strsplit(target, "?", 2);
    struct http_request *request = g_new0(struct http_request, 1);
    request->method = g_strdup(method);
    bool whole = g_str_has_prefix(target, "/volume") || g_str_has_prefix(target, "/image");
    request->path = g_strconcat(whole ? "" : "/identity", parts[0], NULL);
    request->query = g_strdup(parts[0] && parts[1] ? parts[1] : "");
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    request->body = g_strdup(body ? body : "");
    request->body_len = strlen(request->body);
    request->peer = g_strdup("192.0.2.7:4000");
    g_hash_table_insert(request->headers, g_strdup("host"), g_strdup("api.example.org:8774"));
    if (body)
        g_hash_table_insert(request->headers, g_strdup("content-type"),
                            g_strdup("application/json"));
    if (token)
        g_hash_table_insert(request->headers, g_strdup("x-auth-token"), g_strdup(token));
    if (subject)
        g_hash_table_insert(request->headers, g_strdup("x-subject-token"), g_strdup(subject));
    forget_answer(world);
    api_serve(world->api[world->front_end], request, done_cb, world);
    fake_settle(world->world);
    g_assert_nonnull(world->answer);
    if (world->answer->body_len)
        world->json =
            json_parse_limited(world->answer->body, world->answer->body_len, MIB(1), NULL);
    routes_seen_note(method, request->path, api_service_newest(API_IDENTITY), NULL,
                     world->answer->status);
    http_request_free(request);
    return world->answer->status;
}

guint ask(struct identity_world *world, const char *method, const char *target, const char *token,
          json_t *body)
{
    g_autofree char *text = body ? json_to_text(body) : NULL;
    json_decref(body);
    return ask_text(world, method, target, token, NULL, text);
}

const char *header(const struct identity_world *world, const char *name)
{
    const GPtrArray *headers = world->answer->headers;
    for (guint i = 0; i + 1 < headers->len; i += 2)
        if (!strcmp(headers->pdata[i], name))
            return headers->pdata[i + 1];
    return "";
}

const char *at(struct identity_world *world, const char *path)
{
    static char *text;
    g_auto(GStrv) words = g_strsplit(path, ".", -1);
    const json_t *json = world->json;
    for (char **word = words; json && *word; word++)
        json = json_is_array(json) ? json_array_get(json, (size_t)g_ascii_strtoull(*word, NULL, 10))
                                   : json_object_get(json, *word);
    g_free(text);
    text = NULL;
    if (json_is_string(json) || !json)
        return text = g_strdup(json ? json_string_value(json) : "");
    g_autoptr(GString) out = g_string_new(NULL);
    json_append(out, json);
    return text = g_strdup(out->str);
}

json_t *login_body(const char *user, const char *password, const char *project)
{
    json_t *body = json_make("{s:{s:{s:[s], s:{s:{s:s, s:s, s:{s:s}}}}}}", "auth", "identity",
                             "methods", "password", "password", "user", "name", user, "password",
                             password, "domain", "id", "default");
    json_t *auth = json_object_get(body, "auth");
    if (!project)
        json_object_set_new(auth, "scope", json_string("unscoped"));
    else if (project[0])
        json_object_set_new(auth, "scope",
                            json_make("{s:{s:s, s:{s:s}}}", "project", "name", project, "domain",
                                      "name", "Default"));
    return body;
}

char *token_of(struct identity_world *world, const char *user, const char *project)
{
    g_autofree char *password = g_strconcat("pw-", user, NULL);
    guint status = ask(world, "POST", "/v3/auth/tokens", NULL, login_body(user, password, project));
    g_assert_cmpuint(status, ==, 201);
    return g_strdup(header(world, "X-Subject-Token"));
}

/* What tests of the API share; see api_world.h. */
#include "unit/core/world/api_world.h"

#include <string.h>

#include "core/api/api_private.h"
#include "helper/fake_identity.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"

static struct env *env;
static struct cell *cell;
static struct api *api;
static struct fake_identity *identities;
static struct fake_crypto *crypto;
static const char *whoever;
static guint minor_version;
static struct http_answer *last;
static GHashTable *seen; /* names of routes that were answered with their status */
static guint64 generation, scheduler;

/* --- who asks --- */

static const struct {
    const char *name, *project, *role;
} people[] = {{"admin", PROJECT1, "admin"},
              {"member", PROJECT1, "member"},
              {"reader", PROJECT1, "reader"},
              {"other", PROJECT2, "member"}};
static char *tokens[G_N_ELEMENTS(people)];

static void put_named(const char *kind, const char *id, const char *name)
{
    fake_identity_put(identities, kind, id, json_make("{s:s, s:s}", "id", id, "name", name));
}

static void put_person(guint i)
{
    g_autofree char *id = g_strconcat("user-of-", people[i].name, NULL);
    g_autofree char *key = g_strjoin("/", id, people[i].project, people[i].role, NULL);
    fake_identity_put(
        identities, "api_user", id,
        json_make("{s:s, s:s, s:s}", "id", id, "name", people[i].name, "password", "kept pw"));
    put_named("api_role", people[i].role, people[i].role);
    fake_identity_put(identities, "api_assignment", key,
                      json_make("{s:s, s:s, s:s}", "user_id", id, "project_id", people[i].project,
                                "role_id", people[i].role));
}

static void put_people(void)
{
    put_named("api_project", PROJECT1, "demo");
    put_named("api_project", PROJECT2, "others");
    for (guint i = 0; i < G_N_ELEMENTS(people); i++)
        put_person(i);
}

/* --- the world --- */

void api_set_up(GPtrArray *more)
{
    GPtrArray *all = more ? more : change_list_new();
    g_ptr_array_add(all, put("api_front_end", NODE2, 1, json_make("{s:s}", "node", NODE2)));
    storage_set_up(all);
    generation = storage_register(1);
    scheduler = storage_register_scheduler(1);
    env = fake_process(world.world, NODE2, ROLE_APID);
    cell = cell_new(env);
    cell_start(cell);
    fake_advance(world.world, 1000);
    g_assert_nonnull(cell_config(cell));
    identities = fake_identity_new();
    crypto = fake_crypto_new();
    put_people();
    const struct api_options options = {.env = env,
                                        .cell = cell,
                                        .identity = &identities->store,
                                        .crypto = &crypto->crypto,
                                        .public_url = "http://api:8774",
                                        .region = "RegionOne"};
    g_autoptr(GError) error = NULL;
    api = api_new(&options, &error);
    g_assert_no_error(error);
    api_be("admin");
    api_at(0);
}

void api_tear_down(void)
{
    fake_kill(env);
    g_clear_pointer(&last, http_answer_free);
    api_free(api);
    cell_free(cell);
    fake_identity_free(identities);
    fake_crypto_free(crypto);
    for (guint i = 0; i < G_N_ELEMENTS(tokens); i++)
        g_clear_pointer(&tokens[i], g_free);
    config_world_clear(&world);
}

void api_be(const char *who)
{
    whoever = who;
}

void api_at(guint minor)
{
    minor_version = minor;
}

/* --- requests --- */

static void set_header(struct http_request *request, const char *name, const char *value)
{
    g_hash_table_insert(request->headers, g_strdup(name), g_strdup(value));
}

static struct http_request *request_of(const char *method, const char *path, const char *query,
                                       const char *body)
{
    struct http_request *request = g_new0(struct http_request, 1);
    request->method = g_strdup(method);
    request->path = g_strdup(path);
    request->query = g_strdup(query);
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    request->body = g_strdup(body);
    request->body_len = strlen(body);
    request->peer = g_strdup("192.0.2.7:41234");
    set_header(request, "content-type", "application/json");
    return request;
}

static void done_cb(struct http_answer *answer, void *data)
{
    last = answer;
}

/* Takes the request. */
static void serve(struct http_request *request)
{
    g_clear_pointer(&last, http_answer_free);
    api_serve(api, request, done_cb, NULL);
    for (guint i = 0; i < 2000 && !last; i++)
        fake_advance(world.world, 10);
    g_assert_nonnull(last);
}

static const char *token_of(guint i)
{
    g_autofree char *body = g_strdup_printf(
        "{\"auth\": {\"identity\": {\"methods\": [\"password\"], \"password\": {\"user\": "
        "{\"id\": \"user-of-%s\", \"password\": \"pw\"}}}, \"scope\": {\"project\": {\"id\": "
        "\"%s\"}}}}",
        people[i].name, people[i].project);
    if (tokens[i])
        return tokens[i];
    serve(request_of("POST", "/identity/v3/auth/tokens", "", body));
    g_assert_cmpuint(last->status, ==, 201);
    return tokens[i] = g_strdup(api_header("X-Subject-Token"));
}

static void note_route(const struct http_request *request, guint status)
{
    enum api_service service;
    const char *rest;
    struct route_found found;
    if (!route_service(request->path, &service, &rest))
        return;
    route_find(service, request->method, rest, minor_version, &found);
    const struct route *route = found.route;
    json_autoptr body = json_parse_limited(request->body, request->body_len, MIB(1), NULL);
    if (route && *route->action)
        route = route_action(route, json_object_iter_key(json_object_iter(body)), minor_version);
    if (route && route->status == status)
        g_hash_table_add(seen, (char *)route->name);
    route_found_clear(&found);
}

static void ask(const char *method, const char *path, const char *body)
{
    guint who = 0;
    while (who < G_N_ELEMENTS(people) && strcmp(people[who].name, whoever) != 0)
        who++;
    bool known = who < G_N_ELEMENTS(people);
    size_t length = strcspn(path, "?");
    g_autofree char *version = g_strdup_printf("volume 3.%u", minor_version);
    g_autofree char *whole = g_strdup_printf(
        "/volume/v3/%s%.*s", known ? people[who].project : PROJECT1, (int)length, path);
    const char *query = path[length] ? path + length + 1 : "";
    struct http_request *request = request_of(method, whole, query, body);
    struct http_request *noted = request_of(method, whole, query, body);
    if (known)
        set_header(request, "x-auth-token", token_of(who));
    set_header(request, "openstack-api-version", version);
    if (!seen)
        seen = g_hash_table_new(g_str_hash, g_str_equal);
    serve(request);
    note_route(noted, last->status);
    http_request_free(noted);
}

char *api_ask(const char *method, const char *path, const char *body)
{
    ask(method, path, body);
    return g_strdup_printf("%u %.*s", last->status, (int)last->body_len,
                           last->body ? last->body : "");
}

json_t *api_get(guint status, const char *method, const char *path, const char *body)
{
    g_autofree char *said = api_ask(method, path, body);
    if (last->status != status)
        g_error("%s %s: %s", method, path, said);
    return last->body_len ? json_parse_limited(last->body, last->body_len, MIB(4), NULL) : NULL;
}

char *api_text(const json_t *json, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, ".", -1);
    for (char **name = names; *name; name++)
        json = g_ascii_isdigit(**name) && json_is_array(json)
                   ? json_array_get(json, (size_t)g_ascii_strtoull(*name, NULL, 10))
                   : json_object_get(json, *name);
    if (!json)
        return g_strdup("(absent)");
    if (json_is_string(json))
        return g_strdup(json_string_value(json));
    g_autofree char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    return g_strdup(json_is_null(json) ? "" : text);
}

void api_refused(guint status, const char *message, const char *method, const char *path,
                 const char *body)
{
    json_autoptr json = api_get(status, method, path, body);
    json_t *fault = json_object_iter_value(json_object_iter(json));
    g_assert_cmpstr(json_string_value(json_object_get(fault, "message")), ==, message);
    g_assert_cmpint(json_integer_value(json_object_get(fault, "code")), ==, status);
}

const char *api_header(const char *name)
{
    for (guint i = 0; i + 1 < last->headers->len; i += 2)
        if (!g_ascii_strcasecmp(last->headers->pdata[i], name))
            return last->headers->pdata[i + 1];
    return "";
}

/* --- what members do --- */

/* What ends work of that row well. */
static json_t *end_of(const struct worker *row, const char *key, guint64 claim)
{
    json_t *end = storage_end(key, claim);
    bool partners =
        !strcmp(row->operation, "restore-backup") || !strcmp(row->operation, "upload-volume");
    g_autofree char *data = volume_data_name(partners ? row->partner_id : row->resource_id, claim);
    g_autofree char *sum = g_strnfill(128, 'a'), *md5 = g_strnfill(32, 'b');
    if (g_str_has_prefix(row->operation, "delete"))
        return end;
    if (!strcmp(row->operation, "extend-volume"))
        return with(end, "size", json_integer((json_int_t)row->size));
    if (!strcmp(row->operation, "back-up-volume") || !strcmp(row->operation, "upload-volume")) {
        json_object_set_new(end, "bytes", json_integer(4096));
        json_object_set_new(end, "sum", json_string(sum));
    }
    if (!strcmp(row->operation, "upload-volume")) {
        json_object_set_new(end, "virtual_size", json_integer(MIB(1024)));
        json_object_set_new(end, "checksum", json_string(md5));
    }
    return with(end, "data", json_string(data));
}

static void step(const char *key, guint64 claim)
{
    g_autofree char *said = storage_ask(
        volumed[0], "step_work",
        json_make("{s:s, s:I, s:s, s:I, s:b}", "key", key, "claim", (json_int_t)claim, "service",
                  service_key(NODE1), "generation", (json_int_t)generation, "unname", 1));
    g_assert_nonnull(strstr(said, "serial"));
}

/* What is to be put anywhere is put on dir1. */
static void hand_on(void)
{
    g_autoptr(GPtrArray) rows = config_list(storage_committed(), "worker");
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        if (*row->backend)
            continue;
        g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
        json_t *args = with(storage_of_scheduler(1, scheduler), "key", json_string(key));
        g_autofree char *said =
            storage_ask(schedulers[0], "hand_on", with(args, "backend", json_string(DIR1)));
        g_assert_nonnull(strstr(said, "serial"));
    }
}

void api_work(void)
{
    hand_on();
    for (guint round = 0; round < 100; round++) {
        g_autoptr(GPtrArray) rows = config_backend_work(storage_committed(), DIR1);
        if (!rows->len)
            break;
        const struct worker *row = rows->pdata[rows->len - 1]; /* snapshots before their volume */
        g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
        bool deletes = g_str_has_prefix(row->operation, "delete");
        guint64 claim = storage_take(1, generation, key);
        if (deletes)
            step(key, claim);
        row = storage_row(key);
        json_t *end = end_of(row, key, claim);
        g_autofree char *said = storage_end_all(1, generation, json_make("[o]", end));
        g_assert_cmpstr(said, ==, "passed");
    }
    fake_advance(world.world, 100);
}

const char *api_volume(const char *name)
{
    g_autofree char *body = g_strdup_printf("{\"volume\": {\"name\": \"%s\", \"size\": 1}}", name);
    json_autoptr json = api_get(202, "POST", "/volumes", body);
    g_autofree char *id = api_text(json, "volume.id");
    api_work();
    return g_intern_string(id);
}

void api_assert_seen(const char *const *routes)
{
    size_t count;
    const struct route *table = route_table(&count);
    for (size_t i = 0; i < count; i++)
        for (const char *const *word = routes; *word; word++)
            if (g_str_has_prefix(table[i].name, *word) &&
                !g_hash_table_contains(seen, table[i].name))
                g_error("no test has seen %s answered with %u", table[i].name, table[i].status);
}

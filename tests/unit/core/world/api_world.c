/* What tests of the API share; see api_world.h. */
#include "unit/core/world/api_world.h"

#include <string.h>

#include "core/api/api_private.h"
#include "core/api/identity_private.h"
#include "helper/fake_identity.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/routes_seen.h"

static struct env *env;
static struct cell *cell;
static struct api *api;
static struct fake_identity *identities;
static struct fake_crypto *crypto;
static const char *whoever;
static guint minor_version;
static GPtrArray *more_headers; /* name and value by turns */
static struct http_answer *last;
struct image_pipe *api_images;
void (*api_meanwhile)(void);
static guint64 generation, scheduler;

/* --- who asks --- */

static const struct asker {
    const char *who, *project, *role;
} askers[] = {{"admin", PROJECT1, "admin"},
              {"member", PROJECT1, "member"},
              {"reader", PROJECT1, "reader"},
              {"other", PROJECT2, "member"}};

static void put_identity(const char *kind, const char *id, const char *name)
{
    fake_identity_put(identities, kind, id, json_make("{s:s, s:s}", "id", id, "name", name));
}

static void put_identities(void)
{
    static const char *const roles[] = {"admin", "member", "reader"};
    identities = fake_identity_new();
    crypto = fake_crypto_new();
    for (guint i = 0; i < G_N_ELEMENTS(roles); i++)
        put_identity("api_role", roles[i], roles[i]);
    put_identity("api_project", PROJECT1, "demo");
    put_identity("api_project", PROJECT2, "others");
    for (guint i = 0; i < G_N_ELEMENTS(askers); i++) {
        g_autofree char *user = g_strconcat("user-of-", askers[i].who, NULL);
        g_autofree char *key = g_strjoin("/", user, askers[i].project, askers[i].role, NULL);
        put_identity("api_user", user, askers[i].who);
        fake_identity_put(identities, "api_assignment", key,
                          json_make("{s:s, s:s, s:s}", "user_id", user, "project_id",
                                    askers[i].project, "role_id", askers[i].role));
    }
}

static char *seal_token(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(askers); i++) {
        if (strcmp(askers[i].who, whoever) != 0)
            continue;
        g_autofree char *user = g_strconcat("user-of-", whoever, NULL);
        struct api_token *token = token_new(user, askers[i].project, "");
        g_ptr_array_add(token->methods, g_strdup("password"));
        token_stamp(api, token);
        char *sealed = token_seal(api, token, NULL);
        api_token_free(token);
        return sealed;
    }
    return NULL;
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
    put_identities();
    const struct api_options options = {.env = env,
                                        .cell = cell,
                                        .identity = &identities->store,
                                        .crypto = &crypto->crypto,
                                        .images = api_images,
                                        .public_url = "http://api:8774",
                                        .region = "RegionOne",
                                        .address = "192.0.2.9"};
    api = api_new(&options, NULL);
    api_be("admin");
    api_at(0);
}

void api_tear_down(void)
{
    fake_kill(env);
    api_with(NULL, NULL);
    g_clear_pointer(&last, http_answer_free);
    api_free(api);
    cell_free(cell);
    fake_identity_free(identities);
    fake_crypto_free(crypto);
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

struct stream {
    struct http_bytes bytes;
    char *text;
    size_t used;
};

static gssize read_stream(struct http_bytes *bytes, void *place, gsize length, GError **error)
{
    struct stream *stream = (struct stream *)bytes;
    gsize left = strlen(stream->text + stream->used), some = MIN(left, MIN(length, 5));
    if (!left && g_str_has_suffix(stream->text, API_CLIENT_GONE)) {
        fettle_set_error(error, UNREACHABLE, "the client has gone in the middle of its body");
        return -1;
    }
    memcpy(place, stream->text + stream->used, some);
    stream->used += some;
    return (gssize)some;
}

static void free_stream(struct http_bytes *bytes)
{
    g_free(((struct stream *)bytes)->text);
    g_free(bytes);
}

struct http_bytes *api_stream(const char *text)
{
    struct stream *stream = g_new0(struct stream, 1);
    stream->bytes = (struct http_bytes){.read = read_stream, .free = free_stream};
    stream->text = g_strdup(text);
    return &stream->bytes;
}

void api_with(const char *name, const char *value)
{
    if (!more_headers)
        more_headers = g_ptr_array_new_with_free_func(g_free);
    if (!name) {
        g_ptr_array_set_size(more_headers, 0);
        return;
    }
    g_ptr_array_add(more_headers, g_strdup(name));
    g_ptr_array_add(more_headers, g_strdup(value));
}

static const char *from;

void api_from(const char *peer)
{
    from = peer;
}

static void set_header(struct http_request *request, const char *name, const char *value)
{
    g_hash_table_replace(request->headers, g_strdup(name), g_strdup(value));
}

static struct http_request *request_of(const char *method, const char *path, const char *body)
{
    struct http_request *request = g_new0(struct http_request, 1);
    size_t length = strcspn(path, "?");
    g_autofree char *version = g_strdup_printf("volume 3.%u", minor_version);
    const char *project = !strcmp(whoever, "other") ? PROJECT2 : PROJECT1;
    request->method = g_strdup(method);
    request->path = g_str_has_prefix(path, "/image/") || g_str_has_prefix(path, "/volume/") ||
                            g_str_has_prefix(path, "/metrics")
                        ? g_strndup(path, length)
                        : g_strdup_printf("/volume/v3/%s%.*s", project, (int)length, path);
    request->query = g_strdup(path[length] ? path + length + 1 : "");
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    request->body = g_strdup(body);
    request->body_len = strlen(body);
    request->peer = g_strdup(from ? from : "192.0.2.7:41234");
    g_autofree char *token = seal_token();
    if (token)
        set_header(request, "x-auth-token", token);
    set_header(request, "content-type", "application/json");
    set_header(request, "openstack-api-version", version);
    for (guint i = 0; more_headers && i < more_headers->len; i += 2)
        set_header(request, more_headers->pdata[i], more_headers->pdata[i + 1]);
    return request;
}

static void done_cb(struct http_answer *answer, void *data)
{
    last = answer;
}

static void ask(const char *method, const char *path, const char *body)
{
    struct http_request *request = request_of(method, path, body);
    struct http_request *noted = request_of(method, path, body);
    g_clear_pointer(&last, http_answer_free);
    if (api_wants_stream(request))
        request->stream = api_stream(body);
    api_serve(api, request, done_cb, NULL);
    for (guint i = 0; i < 4000 && !last; i++) {
        fake_advance(world.world, 10);
        if (api_meanwhile)
            api_meanwhile();
    }
    g_assert_nonnull(last);
    routes_seen_note(noted->method, noted->path, minor_version, noted->body, last->status);
    http_request_free(noted);
    http_request_free(request);
}

const struct http_answer *api_answered(void)
{
    return last;
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

guint64 api_take(const char *key)
{
    return storage_take(1, generation, key);
}

char *api_end(json_t *item)
{
    return storage_end_all(1, generation, json_make("[o]", item));
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

static json_t *answer_never(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    fettle_set_error(error, TIMEOUT, "no answer in time");
    return NULL;
}

const struct env *api_front(void)
{
    return env;
}

void api_deafen(bool deaf)
{
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", deaf ? answer_never : NULL, NULL);
    if (!deaf)
        return;
    fake_cut(world.world, NODE2, true);
    fake_advance(world.world, 61000); /* its question is given up */
    fake_cut(world.world, NODE2, false);
}

const char *api_volume(const char *name)
{
    g_autofree char *body = g_strdup_printf("{\"volume\": {\"name\": \"%s\", \"size\": 1}}", name);
    json_autoptr json = api_get(202, "POST", "/volumes", body);
    g_autofree char *id = api_text(json, "volume.id");
    api_work();
    return g_intern_string(id);
}

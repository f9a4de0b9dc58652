/* Front ends, as their main() runs them, and requests on their way to them; see storage_front.h. */
#include "storage_front.h"

#include <string.h>

#include "helper/fake_private.h"

#define RESTART_MS 3000u /* of a supervisor, at the most */
#define LOOK_MS 10u

static void exchange_free(void *data)
{
    struct storage_exchange *exchange = data;
    http_request_free(exchange->request);
    http_answer_free(exchange->answer);
    g_free(exchange->name);
    g_free(exchange);
}

/* --- who may ask --- */

static void put(struct fake_identity *identities, const char *kind, const char *id, json_t *object)
{
    json_object_set_new(object, "id", json_string(id));
    fake_identity_put(identities, kind, id, object);
}

static void put_user(struct fake_identity *identities, const char *name)
{
    g_autofree char *key = g_strjoin("/", name, FRONT_PROJECT, name, NULL);
    g_autofree char *kept = g_strconcat("kept pw-", name, NULL);
    put(identities, "api_user", name, json_make("{s:s, s:s}", "name", name, "password", kept));
    put(identities, "api_role", name, json_make("{s:s}", "name", name));
    fake_identity_put(identities, "api_assignment", key,
                      json_make("{s:s, s:s, s:s}", "user_id", name, "project_id", FRONT_PROJECT,
                                "role_id", name));
}

void storage_fronts_begin(struct storage_world *storage)
{
    struct storage_fronts *fronts = g_new0(struct storage_fronts, 1);
    storage->fronts = fronts;
    fronts->storage = storage;
    fronts->identities = fake_identity_new();
    fronts->crypto = fake_crypto_new();
    fronts->exchanges = g_ptr_array_new_with_free_func(exchange_free);
    fronts->requests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    fronts->ended = g_ptr_array_new_with_free_func((GDestroyNotify)worker_free);
    fronts->shown =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    put_user(fronts->identities, "admin");
    put_user(fronts->identities, "member");
    put(fronts->identities, "api_project", FRONT_PROJECT, json_make("{s:s}", "name", "demo"));
    put(fronts->identities, "api_quota", "default",
        json_make("{s:i, s:i, s:i, s:i}", "volumes", FRONT_VOLUMES, "gigabytes", FRONT_GIGABYTES,
                  "snapshots", -1, "backups", -1));
    for (guint i = 0; i < storage->ms->hosts_count; i++)
        fronts->fronts[i].host = &storage->hosts[i];
}

void storage_fronts_end(struct storage_world *storage)
{
    struct storage_fronts *fronts = storage->fronts;
    if (!fronts)
        return;
    g_ptr_array_unref(fronts->exchanges);
    g_hash_table_unref(fronts->requests);
    g_ptr_array_unref(fronts->ended);
    g_hash_table_unref(fronts->shown);
    g_free(fronts->tokens[0]);
    g_free(fronts->tokens[1]);
    fake_identity_free(fronts->identities);
    fake_crypto_free(fronts->crypto);
    g_free(fronts);
}

void storage_fronts_add(const struct ms *ms, GPtrArray *changes,
                        void (*add)(GPtrArray *changes, const char *kind, const char *key,
                                    json_t *object))
{
    for (guint i = 0; i < ms->hosts_count; i++)
        add(changes, "api_front_end", ms->hosts[i].uuid,
            json_make("{s:s}", "node", ms->hosts[i].uuid));
}

/* --- processes --- */

struct storage_front *storage_front_of(const struct storage_host *host)
{
    struct storage_fronts *fronts = host->storage->fronts;
    return fronts ? &fronts->fronts[host->host->index] : NULL;
}

void storage_front_start(struct storage_front *front)
{
    struct storage_fronts *fronts = front->host->storage->fronts;
    g_autoptr(GError) error = NULL;
    front->env = ms_process(front->host->host, ROLE_APID);
    front->cell = cell_new(front->env);
    cell_start(front->cell);
    const struct api_options options = {.env = front->env,
                                        .cell = front->cell,
                                        .identity = &fronts->identities->store,
                                        .crypto = &fronts->crypto->crypto,
                                        .public_url = "http://api:8774",
                                        .region = "RegionOne"};
    front->api = api_new(&options, &error);
    g_assert_no_error(error);
    front->floor = 0;
    front->astray = front->paused = front->whole = false;
}

/* Connections to it break. */
static void hang_up(const struct storage_front *front)
{
    const GPtrArray *all = front->host->storage->fronts->exchanges;
    for (guint i = 0; i < all->len; i++) {
        struct storage_exchange *exchange = all->pdata[i];
        if (exchange->front == front)
            exchange->done = true;
    }
}

static void no_restart(struct storage_front *front)
{
    if (front->restart)
        ms_timer_remove(front->host->storage->ms, front->restart);
    front->restart = 0;
}

void storage_front_end(struct storage_front *front)
{
    struct env *env = front->env;
    no_restart(front);
    front->env = NULL;
    if (!env)
        return;
    fake_kill(env);
    g_clear_pointer(&front->api, api_free);
    g_clear_pointer(&front->cell, cell_free);
    hang_up(front);
}

static void restart_cb(void *data)
{
    struct storage_front *front = data;
    front->restart = 0;
    storage_front_start(front);
}

void storage_front_kill(struct storage_front *front)
{
    struct ms *ms = front->host->storage->ms;
    if (!front->env)
        return;
    storage_front_end(front);
    front->restart = ms_timer(ms, 100 + ms_random(ms, RESTART_MS), restart_cb, front);
}

void storage_front_pause(struct storage_front *front, bool paused)
{
    front->paused = paused && front->env;
    paused = front->paused || front->host->host->paused;
    if (!front->env || fake_paused(front->env) == paused)
        return;
    if (paused)
        fake_pause(front->env);
    else
        (ms_now(front->host->storage->ms) % 2 ? fake_resume_reading : fake_resume)(front->env);
}

/* --- requests --- */

static void done_cb(struct http_answer *answer, void *data)
{
    struct storage_exchange *exchange = data;
    exchange->answer = answer;
    exchange->done = true;
    storage_answered(exchange);
}

static void set_header(struct http_request *request, const char *name, const char *value)
{
    g_hash_table_replace(request->headers, g_strdup(name), g_strdup(value));
}

static struct http_request *request_of(const char *token, const char *method, const char *path,
                                       json_t *body)
{
    struct http_request *request = g_new0(struct http_request, 1);
    size_t length = strcspn(path, "?");
    bool whole = g_str_has_prefix(path, "/image/") || g_str_has_prefix(path, "/identity/");
    request->method = g_strdup(method);
    request->path =
        g_strdup_printf("%s%.*s", whole ? "" : "/volume/v3/" FRONT_PROJECT, (int)length, path);
    request->query = g_strdup(path[length] ? path + length + 1 : "");
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    request->body = body ? json_to_text(body) : g_strdup("");
    request->body_len = strlen(request->body);
    request->peer = g_strdup("192.0.2.7:41234");
    if (token)
        set_header(request, "x-auth-token", token);
    set_header(request, "content-type", "application/json");
    set_header(request, "openstack-api-version", "volume 3.70");
    json_decref(body);
    return request;
}

/* What is stopped hears it when it goes on. */
static bool arrives(const struct env *client, const struct storage_exchange *exchange)
{
    const struct storage_front *front = exchange->front;
    while (front->env && fake_paused(front->env))
        if (!env_sleep(client, LOOK_MS))
            return false;
    return front->env;
}

guint storage_front_ask(const struct env *client, const struct storage_exchange *asks,
                        const char *token, const char *method, const char *path, json_t *body,
                        json_t **ret)
{
    struct storage_world *storage = asks->front->host->storage;
    struct ms *ms = storage->ms;
    struct storage_exchange *exchange = g_memdup2(asks, sizeof *asks);
    exchange->name = g_strdup(asks->name);
    exchange->request = request_of(token, method, path, body);
    g_ptr_array_add(storage->fronts->exchanges, exchange);
    if (!env_sleep(client, 1 + ms_random(ms, 5)) || !arrives(client, exchange)) {
        exchange->done = true;
        return 0;
    }
    exchange->begun_ms = ms_now(ms);
    api_serve(exchange->front->api, exchange->request, done_cb, exchange);
    while (!exchange->done)
        if (!env_sleep(client, LOOK_MS))
            return 0; /* it goes on without whoever asked */
    const struct http_answer *answer = exchange->answer;
    guint status = answer ? answer->status : 0;
    if (status == 201 && !token && ret) /* of a login */
        for (guint i = 0; i + 1 < answer->headers->len; i += 2)
            if (!strcmp(answer->headers->pdata[i], "X-Subject-Token"))
                *ret = json_string(answer->headers->pdata[i + 1]);
    if (token && ret && answer && answer->body_len)
        *ret = json_parse_limited(answer->body, answer->body_len, MIB(4), NULL);
    ms_tell(ms, "front end %u: %s %s: %u %.200s", exchange->front->host->host->index + 1, method,
            path, status, answer && status >= 400 ? answer->body : "");
    if (answer) /* else the front end may come to it yet */
        g_ptr_array_remove_fast(storage->fronts->exchanges, exchange);
    return status;
}

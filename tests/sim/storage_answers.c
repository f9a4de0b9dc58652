/*
 * What must hold of what clients of the API are answered: what was accepted is on record, once, and
 * is carried out; what was refused is not; and a front end never shows what is older than what it
 * has shown (docs/design/api.md). See storage_front.h.
 */
#include "storage_front.h"

#include <string.h>

#include "core/config/attachments.h"
#include "proto/change.h"

#define ANSWERED_MS 60000 /* a request that waits for a master, and then for the copy, twice */

/* The commit of a request. */
struct accepted {
    char id[40];
    guint64 serial;
};

/* What a volume was from a serial on, until the next one. */
struct state {
    guint64 serial;
    char text[128]; /* "": it is not there */
};

static struct ms *ms_of(const struct storage_exchange *exchange)
{
    return exchange->front->host->storage->ms;
}

/* --- what volumes were --- */

static void state_text(const char *name, const char *status, guint64 size, char *text)
{
    g_snprintf(text, sizeof((struct state *)0)->text, "%s is %s of %" G_GUINT64_FORMAT, name,
               status, size);
}

static void state_of(const struct volume *volume, char *text)
{
    *text = '\0';
    if (volume)
        state_text(volume->name, attachment_status_word(volume), volume->size, text);
}

static void state_shown(const json_t *view, char *text)
{
    const char *name = json_string_value(json_object_get(view, "name"));
    state_text(name ? name : "", json_string_value(json_object_get(view, "status")),
               (guint64)json_integer_value(json_object_get(view, "size")), text);
}

static void note_state(struct storage_fronts *fronts, const char *uuid, guint64 serial)
{
    struct state state = {.serial = serial};
    state_of(config_get(fronts->storage->truth, "volume", uuid, NULL), state.text);
    GArray *all = g_hash_table_lookup(fronts->shown, uuid);
    if (!all) {
        const struct state none = {0};
        all = g_array_new(FALSE, FALSE, sizeof(struct state));
        g_array_append_val(all, none);
        g_hash_table_insert(fronts->shown, g_strdup(uuid), all);
    }
    g_array_append_val(all, state);
}

/* The first moment not before `floor` at which it was so; false: there is none. */
static bool moment_of(const GArray *all, const char *text, guint64 floor, guint64 *ret_serial)
{
    for (guint i = 0; i < all->len; i++) {
        const struct state *state = &g_array_index(all, struct state, i);
        bool last = i + 1 == all->len;
        if (strcmp(state->text, text) != 0 || (!last && (state + 1)->serial <= floor))
            continue;
        *ret_serial = MAX(floor, state->serial);
        return true;
    }
    return false;
}

/* It was so at some moment since what this front end has shown last, which cannot be before that
 * any more. */
static void check_shown(struct storage_front *front, const char *uuid, const char *text)
{
    struct storage_world *storage = front->host->storage;
    const GArray *all = g_hash_table_lookup(storage->fronts->shown, uuid);
    if (front->astray || (!all && !*text))
        return;
    storage->counts->shown++;
    if (!all || !moment_of(all, text, front->floor, &front->floor))
        ms_problem(storage->ms,
                   "front end %u shows \"%s\" of volume %s, which was never so since serial "
                   "%" G_GUINT64_FORMAT,
                   front->host->host->index + 1, text, uuid, front->floor);
}

static void check_view(struct storage_front *front, const json_t *view)
{
    char text[sizeof((struct state *)0)->text];
    state_shown(view, text);
    check_shown(front, json_string_value(json_object_get(view, "id")), text);
}

static void check_body(const struct storage_exchange *exchange)
{
    const struct http_answer *answer = exchange->answer;
    size_t i;
    json_t *view;
    json_autoptr json = json_parse_limited(answer->body, answer->body_len, MIB(4), NULL);
    const json_t *one = json_object_get(json, "volume");
    if (one)
        check_view(exchange->front, one);
    json_array_foreach(json_object_get(json, "volumes"), i, view)
        check_view(exchange->front, view);
}

/* --- what was asked for --- */

static struct accepted *stored_of(const struct storage_fronts *fronts, const char *request)
{
    struct accepted *accepted = g_hash_table_lookup(fronts->requests, request);
    bool stored = accepted && g_hash_table_contains(fronts->storage->ms->ids, accepted->id);
    return stored ? accepted : NULL;
}

/* Whether some volume has, or had, that name. */
static bool was_named(const struct storage_fronts *fronts, const char *name)
{
    GHashTableIter iter;
    void *all;
    g_autofree char *begins = g_strconcat(name, " is ", NULL);
    g_hash_table_iter_init(&iter, fronts->shown);
    while (g_hash_table_iter_next(&iter, NULL, &all))
        for (guint i = 0; i < ((GArray *)all)->len; i++)
            if (g_str_has_prefix(g_array_index((GArray *)all, struct state, i).text, begins))
                return true;
    return false;
}

static const char *request_id(const struct http_answer *answer)
{
    for (guint i = 0; i + 1 < answer->headers->len; i += 2)
        if (!strcmp(answer->headers->pdata[i], "x-openstack-request-id"))
            return answer->headers->pdata[i + 1];
    return "";
}

/* What nobody has begun to make goes at once, without a row. */
static bool is_gone(const struct storage_exchange *exchange)
{
    g_autofree char *path = g_strdup(exchange->request->path);
    if (g_str_has_suffix(path, "/action"))
        *strrchr(path, '/') = '\0';
    const char *uuid = strrchr(path, '/') + 1;
    bool is = g_uuid_string_is_valid(uuid);
    for (guint type = 0; is && resource_type_words.words[type]; type++)
        is = !resource_of(exchange->front->host->storage->truth, type, uuid).exists;
    return is;
}

/* Whoever is told that it is accepted finds it on record, and who is told that it is not does not.
 */
static void check_done(const struct storage_exchange *exchange)
{
    struct storage_front *front = exchange->front;
    const struct storage_fronts *fronts = front->host->storage->fronts;
    const struct http_request *request = exchange->request;
    const struct http_answer *answer = exchange->answer;
    const char *id = request_id(answer);
    /* 503 says, too, that nothing was done; 504 says nothing. */
    bool good = answer->status < 300, refused = answer->status >= 400 && answer->status < 504;
    const struct accepted *stored = stored_of(fronts, id);
    bool done = exchange->works ? stored != NULL : was_named(fronts, exchange->name);
    bool lost = exchange->works ? g_hash_table_contains(fronts->requests, id) : front->astray;
    if (good && !done && !lost && !is_gone(exchange))
        ms_problem(ms_of(exchange), "%s %s is answered with %u, and not on record", request->method,
                   request->path, answer->status);
    bool since = answer->status == 404 && is_gone(exchange); /* somebody has deleted it meanwhile */
    if (refused && done && !since)
        ms_problem(ms_of(exchange), "%s %s is refused with %u (%.200s), and was done",
                   request->method, request->path, answer->status, answer->body);
    if (good && stored) {
        front->floor = MAX(front->floor, stored->serial);
        front->astray = false;
    }
    front->host->storage->counts->promised += good;
}

void storage_answered(const struct storage_exchange *exchange)
{
    static const guint good[] = {200, 201, 202, 204, 400, 401, 404, 409, 413, 503, 504};
    struct storage_counts *counts = exchange->front->host->storage->counts;
    const struct http_answer *answer = exchange->answer;
    bool is_good = false;
    for (guint i = 0; i < G_N_ELEMENTS(good); i++)
        is_good = is_good || answer->status == good[i];
    if (!is_good)
        ms_problem(ms_of(exchange), "%s %s is answered with %u %.200s", exchange->request->method,
                   exchange->request->path, answer->status, answer->body);
    counts->unavailable += answer->status >= 503;
    if (exchange->works || exchange->name)
        check_done(exchange);
    if (answer->status < 300)
        check_body(exchange);
    const char *uuid = strstr(exchange->request->path, "/volumes/");
    if (answer->status == 404 && !strcmp(exchange->request->method, "GET") && uuid)
        check_shown(exchange->front, uuid + strlen("/volumes/"), "");
}

/* --- commits --- */

/* Each request puts its rows on record by one commit. */
static void check_once(struct storage_fronts *fronts, const char *request, const char *id,
                       guint64 serial)
{
    const struct accepted *before = stored_of(fronts, request);
    if (before && strcmp(before->id, id) != 0)
        ms_problem(fronts->storage->ms,
                   "request %s is done twice: at serial %" G_GUINT64_FORMAT
                   " and at %" G_GUINT64_FORMAT,
                   request, before->serial, serial);
    struct accepted *accepted = g_new0(struct accepted, 1);
    accepted->serial = serial;
    fronts->asked = true;
    g_strlcpy(accepted->id, id, sizeof accepted->id);
    g_hash_table_replace(fronts->requests, g_strdup(request), accepted);
}

/* Force has put it in the place of the one that there was. */
static bool is_another(const struct worker *old, const struct change *change)
{
    return (guint64)json_integer_value(json_object_get(change->object, "id")) != old->id;
}

static guint64 gigabytes_of(const struct storage_world *storage)
{
    guint64 sum = 0;
    g_autoptr(GPtrArray) volumes = config_project_volumes(storage->truth, FRONT_PROJECT);
    g_autoptr(GPtrArray) snapshots = config_list(storage->truth, "snapshot");
    for (guint i = 0; i < volumes->len; i++)
        sum += ((const struct volume *)volumes->pdata[i])->size;
    for (guint i = 0; i < snapshots->len; i++) {
        const struct snapshot *snapshot = snapshots->pdata[i];
        sum += strcmp(snapshot->project, FRONT_PROJECT) ? 0 : snapshot->size;
    }
    return sum;
}

void storage_fronts_before(struct storage_world *storage, const char *id, guint64 serial,
                           const GPtrArray *changes)
{
    struct storage_fronts *fronts = storage->fronts;
    g_ptr_array_set_size(fronts->ended, 0);
    g_autoptr(GPtrArray) volumes = config_project_volumes(storage->truth, FRONT_PROJECT);
    fronts->asked = false;
    fronts->had_volumes = volumes->len;
    fronts->had_gigabytes = gigabytes_of(storage);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (strcmp(change->kind, "worker") != 0)
            continue;
        const struct worker *old = config_get(storage->truth, "worker", change->key, NULL);
        const char *request = json_string_value(json_object_get(change->object, "request_id"));
        if (change->op == CHANGE_DELETE && old)
            g_ptr_array_add(fronts->ended, worker_copy(old));
        else if ((!old || is_another(old, change)) && id && request &&
                 g_str_has_prefix(request, "req-"))
            check_once(fronts, request, id, serial);
    }
}

/* What was accepted is done, or says that it is not. */
static void check_effect(const struct storage_fronts *fronts, const struct worker *row)
{
    const struct resource is = resource_of_row(fronts->storage->truth, row);
    bool deletes = g_str_has_prefix(row->operation, "delete-");
    bool failed = is.exists && g_str_has_prefix(is.status, "error");
    bool grown = is.size >= row->size || strcmp(row->operation, "extend-volume") != 0;
    if (!failed && (deletes ? is.exists : !is.exists || !grown))
        ms_problem(fronts->storage->ms, "%s of %s has ended, and is not done: it is %s",
                   row->operation, row->resource_id, is.exists ? is.status : "gone");
}

/* A row that was cleaned, or whose resource a person has reset, has ended otherwise. */
static bool is_carried_out(const struct worker *row)
{
    return g_str_has_prefix(row->request_id, "req-") && row->service_id && !row->was_service_id &&
           row->resource_type != RESOURCE_IMAGE;
}

/* Persons at the command line ask for the project's volumes, and know no quota. */
static void check_quota(const struct storage_world *storage, guint64 serial)
{
    g_autoptr(GPtrArray) volumes = config_project_volumes(storage->truth, FRONT_PROJECT);
    const struct storage_fronts *fronts = storage->fronts;
    guint64 gigabytes = gigabytes_of(storage);
    if ((volumes->len > FRONT_VOLUMES && volumes->len > fronts->had_volumes) ||
        (gigabytes > FRONT_GIGABYTES && gigabytes > fronts->had_gigabytes))
        ms_problem(storage->ms,
                   "serial %" G_GUINT64_FORMAT ": the project has %u volumes and "
                   "%" G_GUINT64_FORMAT " GiB, more than it may have",
                   serial, volumes->len, gigabytes);
}

void storage_fronts_after(struct storage_world *storage, guint64 serial, bool resets,
                          const GPtrArray *changes)
{
    struct storage_fronts *fronts = storage->fronts;
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (!strcmp(change->kind, "volume"))
            note_state(fronts, change->key, serial);
    }
    for (guint i = 0; i < fronts->ended->len && !resets; i++)
        if (is_carried_out(fronts->ended->pdata[i]))
            check_effect(fronts, fronts->ended->pdata[i]);
    if (fronts->asked)
        check_quota(storage, serial);
}

void storage_fronts_lost(struct storage_world *storage)
{
    struct storage_fronts *fronts = storage->fronts;
    g_hash_table_remove_all(fronts->shown);
    g_autoptr(GPtrArray) volumes = config_list(storage->truth, "volume");
    for (guint i = 0; i < volumes->len; i++)
        note_state(fronts, ((const struct volume *)volumes->pdata[i])->uuid, 0);
    for (guint i = 0; i < storage->ms->hosts_count; i++) {
        fronts->fronts[i].floor = 0;
        fronts->fronts[i].astray = true;
    }
}

/* --- rest --- */

bool storage_is_on_record(const struct storage_world *storage, const json_t *volumes)
{
    size_t i;
    json_t *view;
    bool is = json_array_size(volumes) == config_count(storage->truth, "volume");
    json_array_foreach(volumes, i, view) {
        char shown[sizeof((struct state *)0)->text], text[sizeof shown];
        state_shown(view, shown);
        state_of(config_get(storage->truth, "volume",
                            json_string_value(json_object_get(view, "id")), NULL),
                 text);
        is = is && !strcmp(shown, text);
    }
    return is;
}

char *storage_fronts_unrest(const struct storage_world *storage)
{
    const struct storage_fronts *fronts = storage->fronts;
    for (guint i = 0; fronts && i < fronts->exchanges->len; i++) {
        const struct storage_exchange *exchange = fronts->exchanges->pdata[i];
        if (!exchange->done && ms_now(storage->ms) - exchange->begun_ms > ANSWERED_MS)
            return g_strdup_printf("%s %s is not answered", exchange->request->method,
                                   exchange->request->path);
    }
    for (guint i = 0; fronts && i < storage->ms->hosts_count; i++)
        if (!fronts->fronts[i].whole && !storage->ms->hosts[i].gone)
            return g_strdup_printf("front end %u does not show what is on record", i + 1);
    return NULL;
}

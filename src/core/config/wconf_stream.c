/*
 * wait_changes: what came since a serial. A log in memory says which objects changed when; an
 * answer carries their present state, each once, so a subscriber that is slow or away costs nothing
 * and gets less, not more. One whose serial the log does not reach gets a snapshot. Only committed
 * changes are seen here (SAF-03).
 */
#include <string.h>

#include "core/config/view.h"
#include "core/config/wconf_private.h"
#include "proto/change.h"

struct log_entry {
    guint64 serial;
    char *key;
    char kind[]; /* one of few words; short */
};

struct listener {
    struct wconf *wconf;
    struct rpc_request *request;
    guint64 serial; /* of its copy, which has everything */
    bool ids;       /* it is a candidate's, and gets the ids of commits too */
    guint timer;
};

static void log_entry_free(struct log_entry *entry)
{
    g_free(entry->key);
    g_free(entry);
}

void wconf_stream_add(struct wconf *wconf, guint64 serial, const char *kind, const char *key)
{
    size_t size = strlen(kind) + 1;
    struct log_entry *entry = g_malloc(sizeof *entry + size);
    entry->serial = serial;
    entry->key = g_strdup(key);
    memcpy(entry->kind, kind, size);
    g_queue_push_tail(&wconf->log, entry);
    while (g_queue_get_length(&wconf->log) > LIMIT_CHANGE_LOG) {
        struct log_entry *oldest = g_queue_pop_head(&wconf->log);
        wconf->log_floor = oldest->serial;
        log_entry_free(oldest);
    }
}

/* --- answers --- */

static struct change *present(const struct config *config, enum change_op op, const char *kind,
                              const char *key, guint64 version)
{
    json_t *object = op == CHANGE_PUT ? config_object_json(config, kind, key) : NULL;
    return change_make(op, kind, key, version, object);
}

static struct changes *changes_new_at(const struct wconf *wconf)
{
    struct changes *answer = changes_new();
    answer->history = config_history(wconf->committed);
    answer->epoch = wconf->epoch;
    answer->serial = config_serial(wconf->committed);
    g_ptr_array_unref(answer->changes);
    answer->changes = change_list_new();
    return answer;
}

/* The present state of one logged object; NULL if a later entry will bring it. */
static struct change *entry_change(const struct config *config, const struct log_entry *entry)
{
    guint64 version = 0;
    config_get(config, entry->kind, entry->key, &version);
    if (version == entry->serial)
        return present(config, CHANGE_PUT, entry->kind, entry->key, version);
    return version ? NULL : present(config, CHANGE_DELETE, entry->kind, entry->key, entry->serial);
}

/* `view` NULL: everything; `ids`: with the ids of commits. */
static json_t *deltas_since(const struct wconf *wconf, guint64 since, const struct view *view,
                            bool ids)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    GList *first = NULL;
    if (ids)
        wconf_ids_list(wconf, since, G_MAXUINT, answer->commits);
    for (GList *link = wconf->log.tail; link && ((struct log_entry *)link->data)->serial > since;
         link = link->prev)
        first = link;
    for (GList *link = first; link; link = link->next) {
        const struct log_entry *entry = link->data;
        bool wanted = !view || view_has(view, wconf->committed, entry->kind, entry->key);
        struct change *change = wanted ? entry_change(wconf->committed, entry) : NULL;
        if (change)
            g_ptr_array_add(answer->changes, change);
    }
    return changes_to_json(answer);
}

struct snapshot {
    const struct config *config;
    json_t *changes;
};

static void snapshot_object(const char *kind, const char *key, guint64 version, const void *value,
                            void *data)
{
    struct snapshot *snapshot = data;
    json_array_append_new(snapshot->changes,
                          json_make("{s:s,s:s,s:s,s:I,s:o}", "op", "put", "kind", kind, "key", key,
                                    "version", (json_int_t)version, "object",
                                    config_object_json(snapshot->config, kind, key)));
}

static json_t *snapshot_json(const struct wconf *wconf, const struct view *view)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    answer->snapshot = true;
    json_t *json = changes_to_json(answer);
    struct snapshot snapshot = {wconf->committed, json_array()};
    view_each(view, wconf->committed, snapshot_object, &snapshot);
    json_object_set_new(json, "changes", snapshot.changes);
    return json;
}

json_t *wconf_snapshot_in_pieces(const struct wconf *wconf, const char *why)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    answer->snapshot = true;
    answer->pieces = true;
    g_free(answer->why);
    answer->why = g_strdup(why);
    return changes_to_json(answer);
}

/* One object of a piece; false when it is full. */
static bool piece_add(json_t *changes, size_t *bytes, const struct config *config, const char *kind,
                      const char *key)
{
    guint64 version = 0;
    config_get(config, kind, key, &version);
    json_autoptr change =
        json_make("{s:s,s:s,s:s,s:I,s:o}", "op", "put", "kind", kind, "key", key, "version",
                  (json_int_t)version, "object", config_object_json(config, kind, key));
    size_t size = json_dumpb(change, NULL, 0, JSON_COMPACT);
    if (json_array_size(changes) > 0 && *bytes + size > LIMIT_SNAPSHOT_BYTES)
        return false;
    *bytes += size;
    json_array_append(changes, change);
    return true;
}

/* Objects behind (kind, key) in that order; whether there are more behind these. */
static bool piece_fill(json_t *changes, const struct config *config,
                       const struct snapshot_args *args)
{
    const struct view view = {.job = args->job};
    g_autoptr(GPtrArray) kinds = config_kinds(config);
    size_t bytes = 0;
    for (guint k = 0; k < kinds->len; k++) {
        const char *kind = kinds->pdata[k];
        int order = strcmp(kind, args->kind);
        if (order < 0)
            continue;
        g_autoptr(GPtrArray) keys = config_keys(config, kind);
        for (guint i = 0; i < keys->len; i++) {
            const char *key = keys->pdata[i];
            if ((order == 0 && strcmp(key, args->key) <= 0) || !view_has(&view, config, kind, key))
                continue;
            if (!piece_add(changes, &bytes, config, kind, key))
                return true;
        }
    }
    return false;
}

void wconf_handle_snapshot(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(snapshot_args) args = rpc_request_args(request, &snapshot_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    record_autoptr(snapshot_piece) piece = snapshot_piece_new();
    json_t *changes = json_array();
    piece->history = config_history(wconf->committed);
    piece->epoch = wconf->epoch;
    piece->serial = config_serial(wconf->committed);
    piece->more = piece_fill(changes, wconf->committed, args);
    json_t *answer = snapshot_piece_to_json(piece);
    json_object_set_new(answer, "changes", changes);
    rpc_answer(request, answer);
}

/* --- listeners --- */

static void listener_free(struct listener *listener)
{
    const struct env *env = listener->wconf->env;
    if (listener->timer)
        env->ops->timer_cancel(env, listener->timer);
    g_free(listener);
}

static void listener_timeout(void *data)
{
    struct listener *listener = data;
    struct wconf *wconf = listener->wconf;
    listener->timer = 0;
    g_ptr_array_remove_fast(wconf->listeners, listener);
    rpc_answer(listener->request,
               deltas_since(wconf, config_serial(wconf->committed), NULL, false));
    listener_free(listener);
}

/* What those are told who wait from the same serial and for the same: made once. */
struct shared_answer {
    guint64 serial;
    bool ids;
    char *text;
};

static void clear_shared_answer(void *data)
{
    g_free(((struct shared_answer *)data)->text);
}

/* Hardly more than two of them: nearly everybody waits from the newest serial. */
static const char *shared_answer(const struct wconf *wconf, GArray *answers,
                                 const struct listener *listener)
{
    for (guint i = 0; i < answers->len; i++) {
        const struct shared_answer *answer = &g_array_index(answers, struct shared_answer, i);
        if (answer->serial == listener->serial && answer->ids == listener->ids)
            return answer->text;
    }
    json_autoptr deltas = deltas_since(wconf, listener->serial, NULL, listener->ids);
    const struct shared_answer made = {listener->serial, listener->ids, json_to_text(deltas)};
    g_array_append_val(answers, made);
    return made.text;
}

static void wake_cb(void *data)
{
    struct wconf *wconf = data;
    g_autoptr(GPtrArray) listeners = wconf->listeners;
    g_autoptr(GArray) answers = g_array_new(FALSE, FALSE, sizeof(struct shared_answer));
    g_array_set_clear_func(answers, clear_shared_answer);
    wconf->wake_timer = 0;
    wconf->listeners = g_ptr_array_new();
    for (guint i = 0; i < listeners->len; i++) {
        struct listener *listener = listeners->pdata[i];
        rpc_answer_text(listener->request, shared_answer(wconf, answers, listener));
        listener_free(listener);
    }
}

void wconf_stream_wake(struct wconf *wconf)
{
    if (!wconf->wake_timer && wconf->listeners->len > 0)
        wconf->wake_timer = wconf->env->ops->timer(wconf->env, 0, wake_cb, wconf);
}

void wconf_stream_end(struct wconf *wconf)
{
    g_autoptr(GPtrArray) listeners = wconf->listeners;
    wconf->listeners = g_ptr_array_new();
    if (wconf->wake_timer)
        wconf->env->ops->timer_cancel(wconf->env, wconf->wake_timer);
    wconf->wake_timer = 0;
    for (guint i = 0; i < listeners->len; i++) {
        struct listener *listener = listeners->pdata[i];
        rpc_fail(listener->request, wconf->down);
        listener_free(listener);
    }
    struct log_entry *entry;
    while ((entry = g_queue_pop_head(&wconf->log)))
        log_entry_free(entry);
}

void wconf_stream_answer(struct wconf *wconf, struct rpc_request *request, guint64 since, bool ids,
                         guint wait_ms)
{
    const struct env *env = wconf->env;
    if (since < config_serial(wconf->committed) || wait_ms == 0) {
        rpc_answer(request, deltas_since(wconf, since, NULL, ids));
        return;
    }
    struct listener *listener = g_new0(struct listener, 1);
    listener->wconf = wconf;
    listener->request = request;
    listener->serial = since;
    listener->ids = ids;
    listener->timer = env->ops->timer(env, wait_ms, listener_timeout, listener);
    g_ptr_array_add(wconf->listeners, listener);
}

bool wconf_stream_reaches(const struct wconf *wconf, guint64 history, guint64 serial)
{
    return history == config_history(wconf->committed) && serial > 0 &&
           serial <= config_serial(wconf->committed) && serial >= wconf->log_floor;
}

/* What a job's process is given; it does not wait. */
static void answer_view(struct wconf *wconf, struct rpc_request *request,
                        const struct wait_changes_args *args, bool reached)
{
    struct view view = view_new(args->job, args->named, args->instances);
    rpc_answer(request, reached ? deltas_since(wconf, args->serial, &view, false)
                                : snapshot_json(wconf, &view));
    view_clear(&view);
}

void wconf_handle_wait_changes(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(wait_changes_args) args =
        rpc_request_args(request, &wait_changes_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    if (args->named && !args->job) {
        rpc_fail_new(request, FETTLE_ERROR_WRONG_INPUT,
                     "named: such a copy is for a job's process; "
                     "job: says for which");
        return;
    }
    bool reached = wconf_stream_reaches(wconf, args->history, args->serial);
    bool small = args->named || config_total(wconf->committed) <= LIMIT_SNAPSHOT_OBJECTS;
    if (!reached && !small)
        rpc_answer(request, wconf_snapshot_in_pieces(wconf, "the copy is to be fetched whole"));
    else if (!reached || args->job)
        answer_view(wconf, request, args, reached);
    else
        wconf_stream_answer(wconf, request, args->serial, false, (guint)args->wait_ms);
}

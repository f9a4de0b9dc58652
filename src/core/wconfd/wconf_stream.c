/*
 * wait_changes: what came since a serial. A log in memory says which objects changed when; an
 * answer carries their present state, each once, so a subscriber that is slow or away costs nothing
 * and gets less, not more. One whose serial the log does not reach gets a snapshot; what would be
 * too much for one answer is fetched in pieces. Only committed changes are seen here (SAF-03).
 */
#include <string.h>

#include "core/config/view.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

#define FILLING_BYTES 4096 /* of an answer about a few objects */

struct log_entry {
    guint64 serial;
    char *key;
    char kind[]; /* one of few words; short */
};

struct wconf_stream {
    GQueue log;           /* struct log_entry, oldest first */
    guint64 floor;        /* changes after this serial are all in it */
    guint64 epoch;        /* see wconf_stream_begin() */
    GPtrArray *listeners; /* struct listener: wait_changes with nothing new yet */
    guint wake_timer;
};

struct listener {
    struct wconf *wconf;
    struct rpc_request *request;
    struct stream_wish wish;
    guint timer;
};

struct wconf_stream *wconf_stream_new(void)
{
    struct wconf_stream *stream = g_new0(struct wconf_stream, 1);
    g_queue_init(&stream->log);
    stream->listeners = g_ptr_array_new();
    return stream;
}

void wconf_stream_free(struct wconf_stream *stream)
{
    g_queue_clear(&stream->log);
    g_ptr_array_unref(stream->listeners);
    g_free(stream);
}

/* --- the log --- */

static void log_entry_free(struct log_entry *entry)
{
    g_free(entry->key);
    g_free(entry);
}

void wconf_stream_begin(struct wconf *wconf, guint64 floor, guint64 epoch)
{
    wconf->stream->floor = floor;
    wconf->stream->epoch = epoch;
}

guint64 wconf_stream_epoch(const struct wconf *wconf)
{
    return wconf->stream->epoch ? wconf->stream->epoch : wconf->epoch;
}

void wconf_stream_add(struct wconf *wconf, guint64 serial, const char *kind, const char *key)
{
    struct wconf_stream *stream = wconf->stream;
    size_t size = strlen(kind) + 1;
    struct log_entry *entry = g_malloc(sizeof *entry + size);
    entry->serial = serial;
    entry->key = g_strdup(key);
    memcpy(entry->kind, kind, size);
    g_queue_push_tail(&stream->log, entry);
    while (g_queue_get_length(&stream->log) > LIMIT_CHANGE_LOG) {
        struct log_entry *oldest = g_queue_pop_head(&stream->log);
        stream->floor = oldest->serial;
        log_entry_free(oldest);
    }
}

GPtrArray *wconf_stream_keys(const struct wconf *wconf, guint64 serial, const char *kind)
{
    GPtrArray *keys = g_ptr_array_new();
    const GList *link = serial > wconf->stream->floor ? wconf->stream->log.tail : NULL;
    for (; link && ((const struct log_entry *)link->data)->serial >= serial; link = link->prev) {
        const struct log_entry *entry = link->data;
        if (entry->serial == serial && !strcmp(entry->kind, kind))
            g_ptr_array_add(keys, entry->key);
    }
    return keys;
}

/* --- answers --- */

/* The present state of one object as a change, at the end of `out`; `value` NULL: it is gone. By
 * hand, because a tree of everything that is told to everybody costs more than all the rest. */
static void append_change(GString *out, const char *kind, const char *key, guint64 version,
                          const void *value)
{
    g_string_append(out, value ? "{\"op\":\"put\",\"kind\":" : "{\"op\":\"delete\",\"kind\":");
    json_append_string(out, kind);
    g_string_append(out, ",\"key\":");
    json_append_string(out, key);
    g_string_append(out, ",\"version\":");
    json_append_integer(out, (gint64)version);
    if (value) {
        g_string_append(out, ",\"object\":");
        record_append(object_record(kind), value, out);
    }
    g_string_append_c(out, '}');
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

json_t *wconf_snapshot_in_pieces(const struct wconf *wconf, const char *why)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    answer->snapshot = true;
    answer->pieces = true;
    g_free(answer->why);
    answer->why = g_strdup(why);
    return changes_to_json(answer);
}

/* Another candidate's copy has them, by what is committed now; nobody else, whatever it says
 * (SAF-101). Its own has this node's wconfd in its store. */
static bool has_secrets(const struct wconf *wconf, const struct rpc_request *request)
{
    const struct node *node = config_get(wconf->committed, "node", request->from_node, NULL);
    return !strcmp(request->from_role, ROLE_WCONFD) && node && node->master_candidate;
}

static bool is_front(const struct rpc_request *request)
{
    return !strcmp(request->from_role, ROLE_APID);
}

/* The changes of one answer, as text. A copy with names is for one job, comes in one piece and is
 * never much; a single change of any size has come in one call, and fits into one. */
struct filling {
    const struct config *config;
    const struct view *view;
    GString *changes;
    bool unbounded;
    bool full; /* there are more than one answer takes */
};

static struct filling filling_new(const struct wconf *wconf, const struct view *view)
{
    return (struct filling){.config = wconf->committed,
                            .view = view,
                            .changes = g_string_sized_new(FILLING_BYTES),
                            .unbounded = view->names};
}

static void filling_add(struct filling *filling, const char *kind, const char *key, guint64 version,
                        const void *value)
{
    bool first = filling->changes->len == 0;
    if (!first)
        g_string_append_c(filling->changes, ',');
    append_change(filling->changes, kind, key, version, value);
    filling->full = !filling->unbounded && !first && filling->changes->len > LIMIT_CHANGES_BYTES;
}

/* A document with `changes`, which is freed, as the member of that name, which it has not. */
static char *with_changes(json_t *document, GString *changes)
{
    json_object_del(document, "changes");
    g_autofree char *rest = json_to_text(document);
    g_string_prepend(changes, "{\"changes\":[");
    g_string_append(changes, "],");
    g_string_append(changes, rest + 1);
    return g_string_free(changes, FALSE);
}

/* The answer with them in it, or that everything is to be fetched in pieces; free with g_free(). */
static char *filling_end(struct filling *filling, const struct wconf *wconf,
                         const struct changes *answer)
{
    if (filling->full) {
        json_autoptr pieces =
            wconf_snapshot_in_pieces(wconf, "what has changed is too much for one answer");
        g_string_free(filling->changes, TRUE);
        return json_to_text(pieces);
    }
    json_autoptr json = changes_to_json(answer);
    return with_changes(json, filling->changes);
}

/* What one logged object is now, unless a later entry will bring it. */
static void fill_entry(struct filling *filling, const struct log_entry *entry)
{
    guint64 version = 0;
    if (!view_has(filling->view, filling->config, entry->kind, entry->key)) {
        if (view_loses(filling->view, entry->kind))
            filling_add(filling, entry->kind, entry->key, entry->serial, NULL);
        return;
    }
    const void *value = config_get(filling->config, entry->kind, entry->key, &version);
    if (version == entry->serial || !version)
        filling_add(filling, entry->kind, entry->key, entry->serial, value);
}

static GList *first_after(const struct wconf *wconf, guint64 since)
{
    GList *first = NULL;
    for (GList *link = wconf->stream->log.tail;
         link && ((struct log_entry *)link->data)->serial > since; link = link->prev)
        first = link;
    return first;
}

/* `ids`: with the ids of commits. */
static char *deltas_since(const struct wconf *wconf, guint64 since, const struct view *view,
                          bool ids)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    struct filling filling = filling_new(wconf, view);
    if (ids)
        wconf_commit_ids_list(wconf, since, G_MAXUINT, answer->commits);
    for (GList *link = first_after(wconf, since); link && !filling.full; link = link->next)
        fill_entry(&filling, link->data);
    return filling_end(&filling, wconf, answer);
}

/* What one commit has changed, as far as no later one has changed it again; returns where the next
 * one begins. */
static GList *fill_commit(struct filling *filling, GList *link)
{
    guint64 serial = ((const struct log_entry *)link->data)->serial;
    for (; link && ((const struct log_entry *)link->data)->serial == serial; link = link->next)
        fill_entry(filling, link->data);
    return link;
}

/* Of the commits since a serial the first ones, so many as go into one piece; one that is larger
 * goes alone. However much is changed meanwhile, who asks on gets to the end if it is told faster
 * than that. */
static char *part_since(const struct wconf *wconf, guint64 since, const struct view *view)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    struct filling filling = filling_new(wconf, view);
    filling.unbounded = true; /* bounded by commits */
    for (GList *link = first_after(wconf, since); link && !answer->more;) {
        gsize before = filling.changes->len;
        guint64 serial = ((const struct log_entry *)link->data)->serial;
        link = fill_commit(&filling, link);
        answer->more = before > 0 && filling.changes->len > LIMIT_SNAPSHOT_BYTES;
        if (answer->more)
            g_string_truncate(filling.changes, before);
        else
            answer->serial = serial;
    }
    if (!answer->more)
        answer->serial = config_serial(wconf->committed);
    /* A single commit that no frame takes: an import. Who begins anew finds it in the pieces. */
    filling.full = filling.changes->len > LIMIT_FRAME_BYTES - LIMIT_SNAPSHOT_BYTES;
    return filling_end(&filling, wconf, answer);
}

static void snapshot_object(const char *kind, const char *key, guint64 version, const void *value,
                            void *data)
{
    struct filling *filling = data;
    if (!filling->full)
        filling_add(filling, kind, key, version, value);
}

static char *snapshot_text(const struct wconf *wconf, const struct view *view)
{
    record_autoptr(changes) answer = changes_new_at(wconf);
    struct filling filling = filling_new(wconf, view);
    answer->snapshot = true;
    view_each(view, wconf->committed, snapshot_object, &filling);
    return filling_end(&filling, wconf, answer);
}

/* One object of a piece; false when it is full. */
static bool piece_add(GString *changes, const struct config *config, const char *kind,
                      const char *key)
{
    guint64 version = 0;
    const void *value = config_get(config, kind, key, &version);
    gsize before = changes->len;
    if (before > 0)
        g_string_append_c(changes, ',');
    append_change(changes, kind, key, version, value);
    if (before == 0 || changes->len <= LIMIT_SNAPSHOT_BYTES)
        return true;
    g_string_truncate(changes, before);
    return false;
}

/* Objects behind (kind, key) in that order; whether there are more behind these. */
static bool piece_fill(GString *changes, const struct config *config,
                       const struct snapshot_args *args, const struct view *view)
{
    g_autoptr(GPtrArray) kinds = config_kinds(config);
    for (guint k = 0; k < kinds->len; k++) {
        const char *kind = kinds->pdata[k];
        int order = strcmp(kind, args->kind);
        if (order < 0 || !view_has_kind(view, kind))
            continue;
        g_autoptr(GPtrArray) keys = config_keys(config, kind);
        for (guint i = 0; i < keys->len; i++) {
            const char *key = keys->pdata[i];
            if ((order == 0 && strcmp(key, args->key) <= 0) || !view_has(view, config, kind, key))
                continue;
            if (!piece_add(changes, config, kind, key))
                return true;
        }
    }
    return false;
}

void wconf_handle_snapshot(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(snapshot_args) args = rpc_request_args(request, &snapshot_args_record, &error);
    struct view view = {.job = args ? args->job : 0,
                        .secrets = has_secrets(wconf, request),
                        .front = is_front(request)};
    if (!args || !view_want(&view, args->kinds, &error)) {
        rpc_fail(request, error);
        return;
    }
    wconf_followers_filling(wconf, request->from_node);
    record_autoptr(snapshot_piece) piece = snapshot_piece_new();
    GString *changes = g_string_sized_new(FILLING_BYTES);
    piece->history = config_history(wconf->committed);
    piece->epoch = wconf->epoch;
    piece->serial = config_serial(wconf->committed);
    piece->more = piece_fill(changes, wconf->committed, args, &view);
    json_autoptr answer = snapshot_piece_to_json(piece);
    g_autofree char *text = with_changes(answer, changes);
    rpc_answer_text(request, text);
}

/* --- who is told when --- */

/* An answer that the copies have to have first. */
struct copied_answer {
    struct wconf *wconf;
    struct rpc_request *request;
    char *text;
};

static void copied_cb(void *data)
{
    g_autofree struct copied_answer *answer = data;
    g_autofree char *text = answer->text;
    if (answer->wconf->down)
        rpc_fail(answer->request, answer->wconf->down);
    else
        rpc_answer_text(answer->request, text);
}

/* Copies are told first: what a subscriber knows, and says to clients, is to outlive this node as
 * much as the answer to the commit itself (SAF-07). With a replicated engine it does already. */
static void tell(struct wconf *wconf, struct rpc_request *request, const char *text)
{
    if (!strcmp(request->from_role, ROLE_WCONFD)) {
        rpc_answer_text(request, text);
        return;
    }
    struct copied_answer *answer = g_new(struct copied_answer, 1);
    *answer = (struct copied_answer){wconf, request, g_strdup(text)};
    wconf_followers_wait(wconf, config_serial(wconf->committed), copied_cb, answer);
}

/* --- listeners --- */

static char *news_for(const struct wconf *wconf, const struct rpc_request *request,
                      const struct stream_wish *wish)
{
    const struct view view = {
        .kinds = wish->kinds, .secrets = has_secrets(wconf, request), .front = is_front(request)};
    return deltas_since(wconf, wish->since, &view, wish->ids);
}

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
    g_ptr_array_remove_fast(wconf->stream->listeners, listener);
    g_autofree char *answer = news_for(wconf, listener->request, &listener->wish);
    /* Changes of this very moment are not told yet. */
    if (listener->wish.since < config_serial(wconf->committed))
        tell(wconf, listener->request, answer);
    else
        rpc_answer_text(listener->request, answer);
    listener_free(listener);
}

/* What those are told who wait from the same serial and for the same: made once. */
struct shared_answer {
    guint64 since;
    guint64 kinds; /* wanted_since() */
    bool ids;
    bool secrets;
    char *text;
};

static void clear_shared_answer(void *data)
{
    g_free(((struct shared_answer *)data)->text);
}

/* The kinds of what has changed, so far as they are wanted: mostly the same for all. */
static guint64 wanted_since(const struct wconf *wconf, const struct stream_wish *wish)
{
    guint64 kinds = 0;
    for (const GList *link = first_after(wconf, wish->since); link; link = link->next)
        kinds |= object_bit(((const struct log_entry *)link->data)->kind);
    return wish->kinds ? kinds & wish->kinds : kinds;
}

/* Hardly more than two of them: nearly everybody waits from the newest serial. */
static const char *shared_answer(const struct wconf *wconf, GArray *answers,
                                 const struct listener *listener)
{
    const struct stream_wish *wish = &listener->wish;
    struct shared_answer made = {.since = wish->since,
                                 .kinds = wanted_since(wconf, wish),
                                 .ids = wish->ids,
                                 .secrets = has_secrets(wconf, listener->request)};
    for (guint i = 0; i < answers->len; i++) {
        const struct shared_answer *answer = &g_array_index(answers, struct shared_answer, i);
        if (answer->since == made.since && answer->kinds == made.kinds && answer->ids == made.ids &&
            answer->secrets == made.secrets)
            return answer->text;
    }
    made.text = news_for(wconf, listener->request, wish);
    g_array_append_val(answers, made);
    return made.text;
}

static void wake_cb(void *data)
{
    struct wconf *wconf = data;
    struct wconf_stream *stream = wconf->stream;
    g_autoptr(GPtrArray) listeners = stream->listeners;
    g_autoptr(GArray) answers = g_array_new(FALSE, FALSE, sizeof(struct shared_answer));
    g_array_set_clear_func(answers, clear_shared_answer);
    stream->wake_timer = 0;
    stream->listeners = g_ptr_array_new();
    for (guint i = 0; i < listeners->len; i++) {
        struct listener *listener = listeners->pdata[i];
        tell(wconf, listener->request, shared_answer(wconf, answers, listener));
        listener_free(listener);
    }
}

void wconf_stream_wake(struct wconf *wconf)
{
    struct wconf_stream *stream = wconf->stream;
    if (!stream->wake_timer && stream->listeners->len > 0)
        stream->wake_timer = wconf->env->ops->timer(wconf->env, 0, wake_cb, wconf);
}

void wconf_stream_end(struct wconf *wconf)
{
    struct wconf_stream *stream = wconf->stream;
    g_autoptr(GPtrArray) listeners = stream->listeners;
    stream->listeners = g_ptr_array_new();
    if (stream->wake_timer)
        wconf->env->ops->timer_cancel(wconf->env, stream->wake_timer);
    stream->wake_timer = 0;
    for (guint i = 0; i < listeners->len; i++) {
        struct listener *listener = listeners->pdata[i];
        rpc_fail(listener->request, wconf->down);
        listener_free(listener);
    }
    struct log_entry *entry;
    while ((entry = g_queue_pop_head(&stream->log)))
        log_entry_free(entry);
}

void wconf_stream_answer(struct wconf *wconf, struct rpc_request *request,
                         const struct stream_wish *wish, guint wait_ms)
{
    const struct env *env = wconf->env;
    if (wish->since < config_serial(wconf->committed)) {
        g_autofree char *news = news_for(wconf, request, wish);
        tell(wconf, request, news);
        return;
    }
    if (wait_ms == 0) {
        g_autofree char *nothing = news_for(wconf, request, wish);
        rpc_answer_text(request, nothing);
        return;
    }
    struct listener *listener = g_new0(struct listener, 1);
    listener->wconf = wconf;
    listener->request = request;
    listener->wish = *wish;
    listener->timer = env->ops->timer(env, wait_ms, listener_timeout, listener);
    g_ptr_array_add(wconf->stream->listeners, listener);
}

bool wconf_stream_reaches(const struct wconf *wconf, guint64 history, guint64 serial)
{
    return history == config_history(wconf->committed) && serial > 0 &&
           serial <= config_serial(wconf->committed) && serial >= wconf->stream->floor;
}

/* A job's process does not wait, and tells nobody. */
static void answer_view(struct wconf *wconf, struct rpc_request *request, const struct view *view,
                        const struct wait_changes_args *args, bool reached)
{
    g_autofree char *answer =
        reached ? deltas_since(wconf, args->serial, view, false) : snapshot_text(wconf, view);
    rpc_answer_text(request, answer);
}

static void answer_snapshot(struct wconf *wconf, struct rpc_request *request,
                            const struct view *view)
{
    g_autofree char *answer = snapshot_text(wconf, view);
    tell(wconf, request, answer);
}

static void answer_part(struct wconf *wconf, struct rpc_request *request, const struct view *view,
                        guint64 since)
{
    g_autofree char *answer = part_since(wconf, since, view);
    tell(wconf, request, answer);
}

static void answer_changes(struct wconf *wconf, struct rpc_request *request,
                           const struct view *view, const struct wait_changes_args *args)
{
    const struct stream_wish wish = {.since = args->serial, .kinds = view->kinds};
    bool reached = wconf_stream_reaches(wconf, args->history, args->serial);
    bool small = args->named || view_count(view, wconf->committed) <= LIMIT_SNAPSHOT_OBJECTS;
    if (!reached && !small)
        rpc_answer(request, wconf_snapshot_in_pieces(wconf, "the copy is to be fetched whole"));
    else if (args->job)
        answer_view(wconf, request, view, args, reached);
    else if (!reached)
        answer_snapshot(wconf, request, view);
    else if (args->part)
        answer_part(wconf, request, view, args->serial);
    else
        wconf_stream_answer(wconf, request, &wish, (guint)args->wait_ms);
}

/* What is asked for must fit together. */
static bool check_wish(const struct wait_changes_args *args, struct view *view, GError **error)
{
    if (!args->named || args->job)
        return view_want(view, args->kinds, error);
    fettle_set_error(error, WRONG_INPUT,
                     "named: such a copy is for a job's process; job: says for which");
    return false;
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
    struct view view = view_new(args->job, args->named, args->instances);
    view.secrets = has_secrets(wconf, request);
    view.front = is_front(request);
    if (check_wish(args, &view, &error))
        answer_changes(wconf, request, &view, args);
    else
        rpc_fail(request, error);
    view_clear(&view);
}

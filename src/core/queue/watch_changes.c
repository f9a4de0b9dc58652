/* WatchChanges; see watch_changes.h. */
#include "core/queue/watch_changes.h"

#include <string.h>

#include "core/config/resource.h"
#include "core/query/query.h"
#include "core/queue/watch_changes_kinds.h"

/* An object that has changed, at the place of its last change. */
struct entry {
    GList link;
    guint64 serial;
    size_t kind;
    char key[];
};

struct watches {
    struct queue_context *context;
    char *stream;       /* UUID; NULL: nobody has asked yet */
    guint64 newest;     /* serial of the last change */
    guint64 floor;      /* changes up to this one are forgotten */
    GQueue log;         /* struct entry, by serial, each object once */
    GHashTable *by_key; /* set of struct entry, which owns them */
    GPtrArray *waiting; /* struct watch */
    guint gathering;    /* timer: the waiting are answered together */
    struct lock_watch *locks;
};

/* A call that waits. */
struct watch {
    struct watches *watches;
    struct rpc_request *request;
    GPtrArray *fields[WATCHED_KINDS]; /* of const struct query_field *; NULL: kind not asked for */
    guint64 serial;
    guint timer;
    struct luxi_watch_changes_args *args; /* while locks are looked at for it: what it asks … */
    const char *why;                      /* … or why it has to begin anew */
};

static guint entry_hash(gconstpointer data)
{
    const struct entry *entry = data;
    return g_str_hash(entry->key) + (guint)entry->kind;
}

static gboolean entry_equal(gconstpointer left, gconstpointer right)
{
    const struct entry *a = left, *b = right;
    return a->kind == b->kind && strcmp(a->key, b->key) == 0;
}

static void watch_free(struct watch *watch)
{
    const struct env *env = watch->watches->context->env;
    if (watch->timer != 0)
        env->ops->timer_cancel(env, watch->timer);
    for (size_t i = 0; i < WATCHED_KINDS; i++)
        g_clear_pointer(&watch->fields[i], g_ptr_array_unref);
    luxi_watch_changes_args_free(watch->args);
    g_free(watch);
}

static bool wants_locks(const struct watch *watch)
{
    return watch->fields[watch_changes_kinds_find("lock")] != NULL;
}

static void note(struct watches *watches, size_t kind, const char *key);

static void lock_changed(const char *name, void *watches)
{
    note(watches, watch_changes_kinds_find("lock"), name);
}

struct watches *watch_changes_new(struct queue_context *context)
{
    struct watches *watches = g_new0(struct watches, 1);
    watches->context = context;
    g_queue_init(&watches->log);
    watches->by_key = g_hash_table_new_full(entry_hash, entry_equal, g_free, NULL);
    watches->waiting = g_ptr_array_new();
    watches->locks = lock_watch_new(context, lock_changed, watches);
    return watches;
}

void watch_changes_free(struct watches *watches)
{
    if (!watches)
        return;
    const struct env *env = watches->context->env;
    if (watches->gathering != 0)
        env->ops->timer_cancel(env, watches->gathering);
    for (guint i = 0; i < watches->waiting->len; i++) {
        struct watch *watch = watches->waiting->pdata[i];
        rpc_fail_new(watch->request, FETTLE_ERROR_KILLED, "luxid has ended");
        watch_free(watch);
    }
    g_ptr_array_unref(watches->waiting);
    lock_watch_free(watches->locks);
    g_hash_table_unref(watches->by_key);
    g_free(watches->stream);
    g_free(watches);
}

/* --- answers --- */

/* `changes` and `serials`, those of each, are stolen; `why` NULL: the client can go on from where
 * it was. `record`: which decisions are told by it, and by Query at the same moment. */
static json_t *make_answer(const struct watches *watches, guint64 serial, const char *why,
                           json_t *changes, json_t *serials)
{
    guint64 record = config_serial(follow_config(watches->context->follow));
    return json_make("{ss, sI, sI, sb, ss, so, so}", "stream", watches->stream, "serial",
                     (json_int_t)serial, "record", (json_int_t)record, "anew", (int)(why != NULL),
                     "why", why ?: "", "changes", changes, "serials", serials);
}

static json_t *make_row(struct query_source *source, const GPtrArray *fields, const void *object)
{
    json_t *row = json_array();
    for (guint i = 0; i < fields->len; i++) {
        enum query_status status;
        json_t *value = query_field_value(fields->pdata[i], source, object, &status);
        json_array_append_new(row, json_make("[i, o]", (int)status, value));
    }
    return row;
}

/* [kind, key, row or null]. */
static json_t *make_change(const struct watches *watches, struct query_source *source,
                           const struct entry *entry, const GPtrArray *fields)
{
    const struct watched_world world = {watches->context, watches->locks};
    g_autofree void *made = NULL;
    const void *object = watch_changes_kinds_row(&world, entry->kind, entry->key, &made);
    json_t *row = object ? make_row(source, fields, object) : json_null();
    return json_make("[s, s, o]", watch_changes_kinds_name(entry->kind), entry->key, row);
}

/* The oldest entry behind a serial; NULL: none. */
static GList *first_after(const struct watches *watches, guint64 serial)
{
    GList *first = NULL;
    for (GList *link = watches->log.tail; link; link = link->prev) {
        if (((const struct entry *)link->data)->serial <= serial)
            break;
        first = link;
    }
    return first;
}

/* What is new to the client, as much of it as goes into one answer, and `serials`, of each;
 * `ret_serial`: what it knows then. */
static json_t *collect(const struct watch *watch, json_t *serials, guint64 *ret_serial)
{
    const struct watches *watches = watch->watches;
    struct query_source source = {.queries = &watches->context->queries,
                                  .config = follow_config(watches->context->follow),
                                  .face = watch->request->face};
    json_t *changes = json_array();
    size_t bytes = 0;
    *ret_serial = watch->serial;
    for (GList *link = first_after(watches, watch->serial); link; link = link->next) {
        const struct entry *entry = link->data;
        const GPtrArray *fields = watch->fields[entry->kind];
        json_autoptr change = fields ? make_change(watches, &source, entry, fields) : NULL;
        if (change) {
            bytes += json_dumpb(change, NULL, 0, JSON_COMPACT);
            if (json_array_size(changes) == LIMIT_WATCH_CHANGES ||
                (json_array_size(changes) > 0 && bytes > LIMIT_WATCH_BYTES))
                break;
            json_array_append(changes, change);
            json_array_append_new(serials, json_integer((json_int_t)entry->serial));
        }
        *ret_serial = entry->serial;
    }
    query_source_clear(&source);
    return changes;
}

static void begin_anew(struct watch *watch, const char *why)
{
    const struct watches *watches = watch->watches;
    rpc_answer(watch->request,
               make_answer(watches, watches->newest, why, json_array(), json_array()));
    watch_free(watch);
}

static void begin_anew_behind(struct watch *watch)
{
    g_autofree char *why =
        g_strdup_printf("too much has changed since %" G_GUINT64_FORMAT ": no more than the last "
                        "%d changed objects are remembered",
                        watch->serial, LIMIT_WATCH_LOG);
    begin_anew(watch, why);
}

/* True: it has its answer, and is freed. With `late` it is answered in any case. */
static bool answer(struct watch *watch, bool late)
{
    const struct watches *watches = watch->watches;
    if (watch->serial < watches->floor) {
        begin_anew_behind(watch);
        return true;
    }
    guint64 serial;
    json_autoptr serials = json_array();
    json_t *changes = collect(watch, serials, &serial);
    if (json_array_size(changes) == 0 && !late) {
        json_decref(changes);
        watch->serial = serial; /* nothing of interest up to there: it never falls behind */
        return false;
    }
    rpc_answer(watch->request, make_answer(watches, serial, NULL, changes, json_steal(&serials)));
    watch_free(watch);
    return true;
}

/* --- waiting --- */

static void wait_over(void *data)
{
    struct watch *watch = data;
    watch->timer = 0;
    g_ptr_array_remove_fast(watch->watches->waiting, watch);
    answer(watch, true);
}

static void gone_cb(struct rpc_request *request, void *data)
{
    struct watch *watch = data;
    g_ptr_array_remove_fast(watch->watches->waiting, watch);
    rpc_answer(request,
               make_answer(watch->watches, watch->serial, NULL, json_array(), json_array()));
    watch_free(watch);
}

static void gathered(void *data)
{
    struct watches *watches = data;
    guint kept = 0;
    watches->gathering = 0;
    for (guint i = 0; i < watches->waiting->len; i++) {
        struct watch *watch = watches->waiting->pdata[i];
        if (!answer(watch, false))
            watches->waiting->pdata[kept++] = watch;
    }
    g_ptr_array_set_size(watches->waiting, (gint)kept);
}

static void gather(struct watches *watches)
{
    const struct env *env = watches->context->env;
    if (watches->gathering == 0 && watches->waiting->len > 0)
        watches->gathering = env->ops->timer(env, WATCH_GATHER_MS, gathered, watches);
}

static bool has_lock_watcher(void *data)
{
    const struct watches *watches = data;
    for (guint i = 0; i < watches->waiting->len; i++)
        if (wants_locks(watches->waiting->pdata[i]))
            return true;
    return false;
}

static void keep(struct watch *watch, double timeout_s)
{
    struct watches *watches = watch->watches;
    const struct env *env = watches->context->env;
    watch->timer = env->ops->timer(env, (guint)(timeout_s * 1000), wait_over, watch);
    g_ptr_array_add(watches->waiting, watch);
    rpc_on_gone(watch->request, gone_cb, watch);
    if (wants_locks(watch))
        lock_watch_go_on(watches->locks, has_lock_watcher);
    if (watch->serial < watches->newest)
        gather(watches);
}

/* --- what is asked --- */

/* Whether the serial can be one of ours. */
static bool check_position(const struct watches *watches,
                           const struct luxi_watch_changes_args *args, GError **error)
{
    if (args->stream[0] == '\0' && args->serial > 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "stream: is missing, for serial %" G_GUINT64_FORMAT
                         "; to begin, leave out both",
                         args->serial);
        return false;
    }
    if (g_strcmp0(args->stream, watches->stream) == 0 && args->serial > watches->newest) {
        fettle_set_error(error, WRONG_INPUT,
                         "serial: the stream is at %" G_GUINT64_FORMAT
                         " and has no %" G_GUINT64_FORMAT " yet",
                         watches->newest, args->serial);
        return false;
    }
    if (watches->waiting->len >= LIMIT_WATCHERS) {
        fettle_set_error(error, TEMPORARY, "%d calls wait already; try again later",
                         LIMIT_WATCHERS);
        return false;
    }
    return true;
}

/* `error` is taken. */
static void refuse(struct watch *watch, GError *error)
{
    g_autoptr(GError) owned = error;
    g_prefix_error(&owned, "WatchChanges: ");
    rpc_fail(watch->request, owned);
    watch_free(watch);
}

static void begin(struct watch *watch, const struct luxi_watch_changes_args *args)
{
    struct watches *watches = watch->watches;
    g_autoptr(GError) error = NULL;
    if (!check_position(watches, args, &error)) {
        refuse(watch, g_steal_pointer(&error));
        return;
    }
    if (!watches->stream)
        watches->stream = env_uuid(watches->context->env);
    if (args->stream[0] == '\0')
        begin_anew(watch, "this is where the stream stands");
    else if (strcmp(args->stream, watches->stream) != 0)
        begin_anew(watch, "this is another stream: luxid was started anew, or has read the "
                          "configuration anew");
    else if (watch->serial < watches->floor)
        begin_anew_behind(watch);
    else if (args->timeout <= 0)
        answer(watch, true);
    else
        keep(watch, args->timeout);
}

/* What the client asks for next, it has to be told the changes of: so what is compared with is not
 * older. */
static void look_task(void *data)
{
    struct watch *watch = data;
    g_autoptr(GError) error = NULL;
    if (!lock_watch_look(watch->watches->locks, &error)) {
        g_prefix_error(&error, "locks: ");
        refuse(watch, g_steal_pointer(&error));
    } else if (watch->why) {
        begin_anew(watch, watch->why);
    } else {
        begin(watch, watch->args);
    }
}

void watch_changes_add(struct watches *watches, struct rpc_request *request,
                       const struct luxi_watch_changes_args *args)
{
    g_autoptr(GError) error = NULL;
    struct watch *watch = g_new0(struct watch, 1);
    watch->watches = watches;
    watch->request = request;
    watch->serial = args->serial;
    if (!watch_changes_kinds_parse(args->kinds, watch->fields, &error)) {
        refuse(watch, g_steal_pointer(&error));
    } else if (wants_locks(watch)) {
        watch->args = luxi_watch_changes_args_copy(args);
        task_spawn(watches->context->env->tasks, look_task, watch);
    } else {
        begin(watch, args);
    }
}

/* --- what changes --- */

static void forget_oldest(struct watches *watches)
{
    GList *link = g_queue_pop_head_link(&watches->log);
    const struct entry *entry = link->data;
    watches->floor = entry->serial;
    g_hash_table_remove(watches->by_key, entry);
}

static void note(struct watches *watches, size_t kind, const char *key)
{
    size_t size = strlen(key) + 1;
    if (!watches->stream)
        return;
    struct entry *entry = g_malloc0(sizeof(*entry) + size);
    entry->link.data = entry;
    entry->serial = ++watches->newest;
    entry->kind = kind;
    memcpy(entry->key, key, size);
    struct entry *former = g_hash_table_lookup(watches->by_key, entry);
    if (former) {
        g_queue_unlink(&watches->log, &former->link);
        g_hash_table_remove(watches->by_key, former);
    }
    g_hash_table_add(watches->by_key, entry);
    g_queue_push_tail_link(&watches->log, &entry->link);
    if (watches->log.length > LIMIT_WATCH_LOG)
        forget_oldest(watches);
    gather(watches);
}

/* A replica that is gone was told of by its instance, which names another one or none. */
static void note_replica(struct watches *watches, const char *key)
{
    const struct replica *replica =
        config_get(follow_config(watches->context->follow), "replica", key, NULL);
    if (replica)
        note(watches, watch_changes_kinds_find("instance"), replica->instance);
}

/* Of tags kind/uuid/tag, of faults kind/uuid: of what tells of them in a field. */
static void note_subject(struct watches *watches, const char *key)
{
    static const char *const kinds[] = {"instance", "node", "nodegroup", NULL};
    g_auto(GStrv) parts = g_strsplit(key, "/", 3);
    if (g_strv_length(parts) >= 2 && g_strv_contains(kinds, parts[0]))
        note(watches, watch_changes_kinds_of_object(parts[0]), parts[1]);
}

/* Of rows of work TYPE/uuid: the resource's fields tell of it. */
static void note_resource(struct watches *watches, const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);
    int type = g_strv_length(parts) == 2 ? enum_parse(&resource_type_words, parts[0]) : -1;
    if (type >= 0)
        note(watches, watch_changes_kinds_find(resource_kind((enum resource_type)type)), parts[1]);
}

/* It is told once, when it comes; that it is pruned a week later is no event. */
static void note_event(struct watches *watches, const char *key)
{
    const struct watched_world world = {watches->context, watches->locks};
    size_t kind = watch_changes_kinds_find("event");
    void *made;
    if (watch_changes_kinds_row(&world, kind, key, &made))
        note(watches, kind, key);
}

void watch_changes_config_changed(struct watches *watches, const char *kind, const char *key)
{
    size_t index = watch_changes_kinds_of_object(kind);
    if (index < WATCHED_KINDS)
        note(watches, index, key);
    if (strcmp(kind, "decision") == 0)
        note_event(watches, key);
    else if (strcmp(kind, "replica") == 0)
        note_replica(watches, key);
    else if (strcmp(kind, "tag") == 0 || strcmp(kind, "fault") == 0)
        note_subject(watches, key);
    else if (strcmp(kind, "worker") == 0)
        note_resource(watches, key);
}

void watch_changes_job_changed(struct watches *watches, guint64 id)
{
    char key[24];
    g_snprintf(key, sizeof(key), "%" G_GUINT64_FORMAT, id);
    note(watches, watch_changes_kinds_find("job"), key);
}

/* Nobody asks for locks before they were looked at. */
static void start_anew(struct watch *watch, const char *why)
{
    const struct env *env = watch->watches->context->env;
    if (!wants_locks(watch)) {
        begin_anew(watch, why);
        return;
    }
    watch->why = why;
    env->ops->timer_cancel(env, watch->timer);
    watch->timer = 0;
    rpc_on_gone(watch->request, NULL, NULL);
    task_spawn(watch->watches->context->env->tasks, look_task, watch);
}

void watch_changes_reset(struct watches *watches)
{
    if (!watches->stream)
        return;
    g_autoptr(GPtrArray) waiting = g_steal_pointer(&watches->waiting);
    g_free(watches->stream);
    watches->stream = env_uuid(watches->context->env);
    watches->newest = watches->floor = 0;
    g_queue_init(&watches->log);
    g_hash_table_remove_all(watches->by_key);
    watches->waiting = g_ptr_array_new();
    for (guint i = 0; i < waiting->len; i++)
        start_anew(waiting->pdata[i], "luxid has read the configuration anew");
}

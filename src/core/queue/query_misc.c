/* Fields of repairs, decisions and locks (proto/fields.def), and their rows. */
#include "core/queue/query_rows.h"

#include "core/repair/tags.h"

/* --- repairs: what the pending and result tags of instances say --- */

static void repair_free(gpointer data)
{
    struct query_repair *repair = data;

    g_free(repair->id);
    g_free(repair->instance);
    g_strfreev(repair->jobs);
    g_free(repair);
}

static void add_repair(GPtrArray *rows, const struct instance *instance, const char *text)
{
    struct repair_tag tag;
    struct query_repair *repair;
    bool pending;

    repair_tag_parse(text, &tag);
    pending = tag.kind == REPAIR_TAG_PENDING;
    if (pending || tag.kind == REPAIR_TAG_RESULT) {
        repair = g_new0(struct query_repair, 1);
        repair->id = g_strdup(tag.id);
        repair->instance = g_strdup(instance->name);
        repair->type = repair_type_name(tag.type);
        repair->state = pending ? "pending" : repair_outcome_name(tag.outcome);
        repair->started = pending ? tag.timestamp : 0;
        repair->ended = pending ? 0 : tag.timestamp;
        repair->jobs = g_strdupv(tag.jobs);
        g_ptr_array_add(rows, repair);
    }
    repair_tag_clear(&tag);
}

/* By instance; of one instance the oldest first. */
static gint compare_repairs(gconstpointer left, gconstpointer right)
{
    const struct query_repair *a = *(const struct query_repair *const *)left;
    const struct query_repair *b = *(const struct query_repair *const *)right;
    gint64 at = a->started + a->ended, bt = b->started + b->ended;
    gint order = g_strcmp0(a->instance, b->instance);

    if (order != 0)
        return order;
    if (at != bt)
        return at < bt ? -1 : 1;
    return g_strcmp0(a->id, b->id);
}

GPtrArray *query_repair_rows(const struct config *config)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(repair_free);
    g_autoptr(GPtrArray) instances = config_list(config, "instance");

    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = g_ptr_array_index(instances, i);
        g_autoptr(GPtrArray) tags = config_tags(config, TAG_INSTANCE, instance->uuid);

        for (guint k = 0; k < tags->len; k++)
            add_repair(rows, instance, g_ptr_array_index(tags, k));
    }
    g_ptr_array_sort(rows, compare_repairs);
    return rows;
}

json_t *query_get_repair_id(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->id);
}

json_t *query_get_repair_instance(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->instance);
}

json_t *query_get_repair_type(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->type);
}

json_t *query_get_repair_state(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->state);
}

json_t *query_get_repair_started(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    gint64 started = ((const struct query_repair *)row)->started;

    return started == 0 ? NULL : json_integer(started);
}

json_t *query_get_repair_ended(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    gint64 ended = ((const struct query_repair *)row)->ended;

    return ended == 0 ? NULL : json_integer(ended);
}

json_t *query_get_repair_jobs(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct query_repair *repair = row;
    json_t *jobs = json_array();

    for (char **job = repair->jobs; job != NULL && *job != NULL; job++) {
        guint64 id;

        if (g_ascii_string_to_unsigned(*job, 10, 1, G_MAXINT64, &id, NULL))
            json_array_append_new(jobs, json_integer((json_int_t)id));
        else
            json_array_append_new(jobs, json_string(*job));
    }
    return jobs;
}

/* --- decisions --- */

static gint compare_decisions(gconstpointer left, gconstpointer right)
{
    const struct decision *a = *(const struct decision *const *)left;
    const struct decision *b = *(const struct decision *const *)right;

    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    return g_strcmp0(a->uuid, b->uuid);
}

GPtrArray *query_decision_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "decision");

    g_ptr_array_sort(rows, compare_decisions);
    return rows;
}

json_t *query_get_decision_at(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_integer(
        (json_int_t)(((const struct decision *)row)->at_us / (guint64)G_USEC_PER_SEC));
}

/* --- locks --- */

static void lock_free(gpointer data)
{
    struct query_lock *lock = data;

    g_ptr_array_unref(lock->owners);
    g_ptr_array_unref(lock->waiting);
    g_free(lock);
}

static gint compare_locks(gconstpointer left, gconstpointer right)
{
    return g_strcmp0((*(const struct query_lock *const *)left)->name,
                     (*(const struct query_lock *const *)right)->name);
}

GPtrArray *query_lock_rows(const struct lock_states *states)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(lock_free);
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < states->locks->len; i++) {
        struct lock_state *state = g_ptr_array_index(states->locks, i);
        struct query_lock *lock = g_hash_table_lookup(by_name, state->name);

        if (lock == NULL) {
            lock = g_new0(struct query_lock, 1);
            lock->name = state->name;
            lock->owners = g_ptr_array_new();
            lock->waiting = g_ptr_array_new();
            g_hash_table_insert(by_name, state->name, lock);
            g_ptr_array_add(rows, lock);
        }
        g_ptr_array_add(state->waiting ? lock->waiting : lock->owners, state);
    }
    g_ptr_array_sort(rows, compare_locks);
    return rows;
}

json_t *query_get_lock_name(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return json_string(((const struct query_lock *)row)->name);
}

static json_t *mode_of(const struct lock_state *state)
{
    return json_string(enum_word(&lock_mode_words, (int)state->mode));
}

json_t *query_get_lock_mode(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct query_lock *lock = row;

    /* All owners of one lock hold it alike: shared, or it is one owner. */
    return lock->owners->len == 0 ? NULL : mode_of(g_ptr_array_index(lock->owners, 0));
}

json_t *query_get_lock_owner(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct query_lock *lock = row;
    json_t *owners = json_array();

    for (guint i = 0; i < lock->owners->len; i++) {
        const struct lock_state *state = g_ptr_array_index(lock->owners, i);

        json_array_append_new(owners, json_string(state->owner->job));
    }
    return owners;
}

json_t *query_get_lock_pending(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct query_lock *lock = row;
    json_t *waiting = json_array();

    for (guint i = 0; i < lock->waiting->len; i++) {
        const struct lock_state *state = g_ptr_array_index(lock->waiting, i);

        json_array_append_new(waiting, json_make("[o, [s]]", mode_of(state), state->owner->job));
    }
    return waiting;
}

/* Fields of invitations, reservations, decisions and locks (proto/fields.def), and their rows. */
#include "core/job/rules.h"
#include "core/query/query_rows.h"

/* --- invitations --- */

static gint compare_tokens(gconstpointer left, gconstpointer right)
{
    const struct join_token *a = *(const struct join_token *const *)left;
    const struct join_token *b = *(const struct join_token *const *)right;
    int order = g_strcmp0(a->node_name, b->node_name);
    if (order == 0 && a->made != b->made)
        order = a->made < b->made ? -1 : 1;
    return order != 0 ? order : g_strcmp0(a->uuid, b->uuid);
}

GPtrArray *query_invitation_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "join_token");
    g_ptr_array_sort(rows, compare_tokens);
    return rows;
}

json_t *query_get_invitation_group(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct join_token *token = row;
    const struct nodegroup *group = config_get(source->config, "nodegroup", token->group, NULL);
    return group ? json_string(group->name) : NULL;
}

json_t *query_get_invitation_state(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct join_token *token = row;
    guint64 now =
        (guint64)source->queries->env->ops->wall_us(source->queries->env) / (guint64)G_USEC_PER_SEC;
    return json_string(*token->node_uuid != '\0'                  ? "used"
                       : token->wrong_secrets >= LIMIT_JOIN_TRIES ? "void"
                       : token->expires <= now                    ? "expired"
                                                                  : "open");
}

/* --- filters --- */

static gint compare_filters(gconstpointer left, gconstpointer right)
{
    return rules_compare(*(const struct job_filter *const *)left,
                         *(const struct job_filter *const *)right);
}

GPtrArray *query_filter_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "job_filter");
    g_ptr_array_sort(rows, compare_filters);
    return rows;
}

/* --- decisions --- */

/* In the order in which they were made; those of one change by time. */
static gint compare_decisions(gconstpointer left, gconstpointer right, gpointer config)
{
    const struct decision *a = *(const struct decision *const *)left;
    const struct decision *b = *(const struct decision *const *)right;
    guint64 first = 0, second = 0;
    config_get(config, "decision", a->uuid, &first);
    config_get(config, "decision", b->uuid, &second);
    if (first != second)
        return first < second ? -1 : 1;
    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    return g_strcmp0(a->uuid, b->uuid);
}

GPtrArray *query_decision_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "decision");
    g_ptr_array_sort_with_data(rows, compare_decisions, (void *)config);
    return rows;
}

json_t *query_get_decision_serial_no(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return query_serial_no(source, "decision", ((const struct decision *)row)->uuid);
}

json_t *query_get_decision_at(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_integer(
        (json_int_t)(((const struct decision *)row)->at_us / (guint64)G_USEC_PER_SEC));
}

/* --- reservations --- */

json_t *query_get_reservation_job(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return json_string(((const struct reservation *)row)->owner->job);
}

json_t *query_get_reservation_nodes(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct reservation *reservation = row;
    json_t *nodes = json_array();
    for (guint i = 0; i < reservation->rooms->len; i++) {
        const struct reserved_room *room = reservation->rooms->pdata[i];
        json_array_append_new(nodes,
                              json_make("[s, I, I]", config_node_name(source->config, room->node),
                                        (json_int_t)room->memory, (json_int_t)room->disk));
    }
    return nodes;
}

json_t *query_get_reservation_port(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    guint64 port = ((const struct reservation *)row)->port;
    return port != 0 ? json_integer((json_int_t)port) : NULL;
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
        struct lock_state *state = states->locks->pdata[i];
        struct query_lock *lock = g_hash_table_lookup(by_name, state->name);
        if (!lock) {
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
    return lock->owners->len == 0 ? NULL : mode_of(lock->owners->pdata[0]);
}

json_t *query_get_lock_owner(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct query_lock *lock = row;
    json_t *owners = json_array();
    for (guint i = 0; i < lock->owners->len; i++) {
        const struct lock_state *state = lock->owners->pdata[i];
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
        const struct lock_state *state = lock->waiting->pdata[i];
        json_array_append_new(waiting, json_make("[o, [s]]", mode_of(state), state->owner->job));
    }
    return waiting;
}

/* --- who waits for locks --- */

GPtrArray *query_waiter_rows(const struct lock_waiters *waiters)
{
    GPtrArray *rows = g_ptr_array_new();
    for (guint i = 0; i < waiters->waiters->len; i++)
        g_ptr_array_add(rows, waiters->waiters->pdata[i]);
    return rows;
}

json_t *query_get_waiter_job(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return json_string(((const struct lock_waiter *)row)->owner->job);
}

json_t *query_get_waiter_locks(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct lock_waiter *waiter = row;
    json_t *locks = json_array();
    for (guint i = 0; i < waiter->locks->len; i++) {
        const struct lock_request *wanted = waiter->locks->pdata[i];
        json_array_append_new(locks, json_make("[s, s]", wanted->name,
                                               enum_word(&lock_mode_words, (int)wanted->mode)));
    }
    return locks;
}

static json_int_t seconds(guint64 us)
{
    return (json_int_t)(us / (guint64)G_USEC_PER_SEC);
}

json_t *query_get_waiter_since(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_integer(seconds(((const struct lock_waiter *)row)->since));
}

json_t *query_get_waiter_blockers(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct lock_waiter *waiter = row;
    json_t *blockers = json_array();
    for (guint i = 0; i < waiter->blockers->len; i++) {
        const struct lock_blocker *blocker = waiter->blockers->pdata[i];
        json_array_append_new(blockers,
                              json_make("[s, s, s, b, I]", blocker->owner->job, blocker->name,
                                        enum_word(&lock_mode_words, (int)blocker->mode),
                                        (int)blocker->waiting, seconds(blocker->since)));
    }
    return blockers;
}

json_t *query_get_waiter_nodes(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct lock_waiter *waiter = row;
    json_t *nodes = json_array();
    for (guint i = 0; i < waiter->pending_nodes->len; i++)
        json_array_append_new(
            nodes, json_string(config_node_name(source->config, waiter->pending_nodes->pdata[i])));
    return nodes;
}

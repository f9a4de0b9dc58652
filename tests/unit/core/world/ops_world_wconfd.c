/* The configuration daemon of ops_world.h: a configuration in memory, its changes, locks that are
 * always free. */
#include "unit/core/world/ops_world_private.h"

#include <string.h>

#include "core/config/invariants.h"
#include "core/config/named_change.h"
#include "core/config/view.h"
#include "core/config/view_questions.h"

/* --- commits --- */

static void apply(struct ops_world *world, const struct change *change)
{
    g_autoptr(GError) error = NULL;
    struct change *kept = change_copy(change);
    kept->version = config_serial(world->config) + 1;
    config_apply(world->config, kept, &error);
    g_assert_no_error(error);
    g_ptr_array_add(world->history, kept);
}

static void advance(struct ops_world *world)
{
    config_set_position(world->config, 1, config_serial(world->config) + 1);
}

void ops_put(struct ops_world *world, const char *kind, const char *key, json_t *object)
{
    record_autoptr(change) change = config_put(world->config, kind, key, object);
    apply(world, change);
    advance(world);
}

void ops_delete_object(struct ops_world *world, const char *kind, const char *key)
{
    record_autoptr(change) change = config_delete(world->config, kind, key);
    apply(world, change);
    advance(world);
}

void ops_set(struct ops_world *world, const char *kind, const char *key, const char *field,
             json_t *value)
{
    json_t *object = config_object_json(world->config, kind, key);
    json_object_set_new(object, field, value);
    ops_put(world, kind, key, object);
}

static const char *text_of(const struct change *change, const char *field)
{
    const char *text = json_string_value(json_object_get(change->object, field));
    return text ? text : "";
}

static json_int_t number_of(const struct change *change, const char *field)
{
    return json_integer_value(json_object_get(change->object, field));
}

static void trace_instance(struct ops_world *world, const struct change *change)
{
    const char *secondary = text_of(change, "secondary_node");
    const char *task = text_of(change, "task_state");
    g_string_append_printf(
        world->trace, "instance %s g%" JSON_INTEGER_FORMAT " %s @%s %s%s%s%s%s%s",
        text_of(change, "name"), number_of(change, "generation"), text_of(change, "admin_state"),
        ops_name_of(world, text_of(change, "holder")),
        ops_name_of(world, text_of(change, "primary_node")), *secondary ? "/" : "",
        *secondary ? ops_name_of(world, secondary) : "",
        json_is_true(json_object_get(change->object, "clean")) ? " clean" : "", *task ? " " : "",
        task);
    if (*text_of(change, "migration"))
        g_string_append_printf(world->trace, " >%s",
                               ops_name_of(world, text_of(change, "migration_node")));
}

static void trace_volume(struct ops_world *world, const struct change *change)
{
    const json_t *attachment = json_array_get(json_object_get(change->object, "attachments"), 0);
    const char *state = json_string_value(json_object_get(attachment, "state"));
    json_int_t leaving = json_integer_value(json_object_get(attachment, "leaving_us"));
    g_string_append_printf(world->trace, "volume %s %s%s", text_of(change, "name"),
                           state ? state : "free", leaving ? " leaving" : "");
}

static void trace_change(struct ops_world *world, const struct change *change)
{
    if (change->op == CHANGE_DELETE)
        g_string_append_printf(world->trace, "delete %s", change->kind);
    else if (!strcmp(change->kind, "instance"))
        trace_instance(world, change);
    else if (!strcmp(change->kind, "replica"))
        g_string_append_printf(
            world->trace, "replica %s g%" JSON_INTEGER_FORMAT " s%" JSON_INTEGER_FORMAT " %s",
            ops_name_of(world, text_of(change, "node")), number_of(change, "generation"),
            number_of(change, "sync"), text_of(change, "state"));
    else if (!strcmp(change->kind, "volume"))
        trace_volume(world, change);
    else if (!strcmp(change->kind, "tag"))
        g_string_append_printf(world->trace, "tag %s", text_of(change, "tag"));
    else if (!strcmp(change->kind, "removed"))
        g_string_append_printf(world->trace, "removed %s g%" JSON_INTEGER_FORMAT,
                               text_of(change, "name"), number_of(change, "generation"));
    else if (!strcmp(change->kind, "node"))
        g_string_append_printf(world->trace, "node %s%s %s", text_of(change, "name"),
                               json_is_true(json_object_get(change->object, "offline")) ? " offline"
                                                                                        : "",
                               text_of(change, "offline_statement"));
    else
        g_string_append_printf(world->trace, "%s %s", change->kind, text_of(change, "status"));
}

static bool versions_hold(const struct ops_world *world, const struct commit_args *args,
                          GError **error)
{
    for (guint i = 0; i < args->changes->len; i++) {
        const struct change *change = args->changes->pdata[i];
        guint64 version = 0;
        config_get(world->config, change->kind, change->key, &version);
        if (version != change->version) {
            fettle_set_error(error, VERSION_CONFLICT, "%s %s changed", change->kind, change->key);
            return false;
        }
    }
    return true;
}

/* Whatever a job commits must be a step that wconfd allows. */
static void apply_checked(struct ops_world *world, const GPtrArray *changes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) deltas = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        const void *before = config_get(world->config, change->kind, change->key, NULL);
        struct config_delta *delta = g_new0(struct config_delta, 1);
        delta->kind = change->kind;
        delta->key = change->key;
        delta->before = before ? record_copy(object_record(change->kind), before) : NULL;
        g_ptr_array_add(deltas, delta);
    }
    for (guint i = 0; i < changes->len; i++)
        apply(world, changes->pdata[i]);
    for (guint i = 0; i < deltas->len; i++) {
        struct config_delta *delta = deltas->pdata[i];
        delta->after = config_get(world->config, delta->kind, delta->key, NULL);
    }
    invariants_check_steps(world->config, deltas, AUTHOR_COMMIT, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < deltas->len; i++) {
        const struct config_delta *delta = deltas->pdata[i];
        record_free(object_record(delta->kind), (void *)delta->before);
    }
}

/* Reservations belong to the locks that they go with. */
static void trace_commit(struct ops_world *world, const GPtrArray *changes)
{
    const char *before = "commit ";
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (!strcmp(change->kind, "reservation") && !world->trace_locks)
            continue;
        g_string_append(world->trace, before);
        trace_change(world, change);
        before = "; ";
    }
    if (*before == ';')
        g_string_append_c(world->trace, '\n');
}

static json_t *answer_commit(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    struct ops_world *world = data;
    record_autoptr(commit_args) args = commit_args_parse(request->args, RECORD_STRICT, error);
    g_assert_nonnull(args);
    g_assert_cmpstr(args->owner->job, ==, "17");
    g_assert_cmpstr(args->owner->livelock, ==, LIVELOCK);
    if (world->on_commit)
        world->on_commit(world, ++world->commits);
    if (ops_faulty(world, "wconfd", "commit", error) || !versions_hold(world, args, error))
        return NULL;
    named_change_check(request->name, world->config, args->changes, error);
    g_assert_no_error(*error);
    trace_commit(world, args->changes);
    apply_checked(world, args->changes);
    advance(world);
    return json_make("{s:I}", "serial", (json_int_t)config_serial(world->config));
}

static json_t *answer_changes(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    struct ops_world *world = data;
    if (ops_faulty(world, "wconfd", "wait_changes", error))
        return NULL;
    record_autoptr(wait_changes_args) args =
        wait_changes_args_parse(request->args, RECORD_STRICT, error);
    g_assert_nonnull(args);
    struct view view = view_new(args->job, args->named, args->instances);
    guint64 since = args->serial;
    json_t *list = json_array();
    for (guint i = 0; i < world->history->len; i++) {
        const struct change *change = world->history->pdata[i];
        if (change->version <= since)
            continue;
        if (view_has(&view, world->config, change->kind, change->key))
            json_array_append_new(list, change_to_json(change));
        else if (view_loses(&view, change->kind))
            json_array_append_new(list, json_make("{ss ss ss sI}", "op", "delete", "kind",
                                                  change->kind, "key", change->key, "version",
                                                  (json_int_t)change->version));
    }
    view_clear(&view);
    return json_make("{s:i, s:i, s:I, s:b, s:o}", "history", 1, "epoch", 5, "serial",
                     (json_int_t)config_serial(world->config), "snapshot", since ? 0 : 1, "changes",
                     list);
}

static json_t *answer_look(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    struct ops_world *world = data;
    const struct record *record = method_find(ROLE_WCONFD, request->name)->args;
    if (ops_faulty(world, "wconfd", request->name, error))
        return NULL;
    void *args = record_parse(record, request->args, RECORD_STRICT, error);
    g_assert_nonnull(args);
    json_t *answer = view_questions_answer(world->config, request->name, args, error);
    record_free(record, args);
    return answer;
}

/* --- locks and status --- */

static json_t *answer_locks(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    struct ops_world *world = data;
    record_autoptr(update_locks_args) args =
        update_locks_args_parse(request->args, RECORD_STRICT, error);
    g_assert_nonnull(args);
    g_assert_cmpstr(args->owner->livelock, ==, LIVELOCK);
    g_assert_cmpuint(request->stamp.epoch, ==, 5);
    /* Whatever opcode it is: the configuration lock is no matter of jobs (FUT-11). */
    for (guint i = 0; i < args->locks->len; i++)
        g_assert_cmpstr(((struct lock_request *)args->locks->pdata[i])->name, !=, "cluster/config");
    if (ops_faulty(world, "wconfd", "update_locks", error))
        return NULL;
    if (world->trace_locks) {
        g_string_append(world->trace, "locks");
        for (guint i = 0; i < args->locks->len; i++) {
            const struct lock_request *lock = args->locks->pdata[i];
            const char *level = g_str_has_prefix(lock->name, "node/")       ? "node/"
                                : g_str_has_prefix(lock->name, "node-res/") ? "node-res/"
                                                                            : "";
            const char *rest = lock->name + strlen(level);
            g_string_append_printf(world->trace, " %s%s=%s", level,
                                   *level ? ops_name_of(world, rest) : rest,
                                   enum_word(&lock_mode_words, (int)lock->mode));
        }
        g_string_append_c(world->trace, '\n');
    }
    world->lock_priority = args->priority;
    world->lock_wait_ms = args->wait_ms;
    if (world->blocked) {
        world->blocked--;
        if (world->on_blocked)
            world->on_blocked(world);
        return json_make("{s:b, s:[{ss ss}], s:[s]}", "granted", 0, "blockers", "job", "16",
                         "livelock", "other", "pending_nodes", NODE3);
    }
    if (world->on_locks)
        world->on_locks(world);
    return json_make("{s:b}", "granted", 1);
}

static json_t *answer_free(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    struct ops_world *world = data;
    if (ops_faulty(world, "wconfd", "free_locks", error))
        return NULL;
    if (world->trace_locks)
        g_string_append(world->trace, "free\n");
    return json_object();
}

static json_t *answer_free_level(const struct rpc_request *request, const char *to_node, void *data,
                                 GError **error)
{
    struct ops_world *world = data;
    const char *level = json_string_value(json_object_get(request->args, "level"));
    bool rooms = !strcmp(level, "node-res");
    g_assert_true(rooms || !strcmp(level, "network"));
    if (world->trace_locks)
        g_string_append(world->trace, rooms ? "rooms are free\n" : "networks are free\n");
    return json_object();
}

static json_t *answer_status(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    struct ops_world *world = data;
    json_t *pending = json_array();
    for (guint i = 0; i < world->pending->len; i++)
        json_array_append_new(pending, json_string(world->pending->pdata[i]));
    if (world->pending_polls && !--world->pending_polls)
        g_ptr_array_set_size(world->pending, 0);
    return json_make("{s:i, s:i, s:i, s:s, s:o}", "history", 1, "epoch", 5, "serial", 1,
                     "master_node", NODE1, "nodes_pending", pending);
}
void ops_script_wconfd(struct ops_world *world)
{
    size_t count;
    const struct method *all = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (named_change_exists(all[i].name))
            fake_script(world->world, NODE1, ROLE_WCONFD, all[i].name, answer_commit, world);
    }
    fake_script(world->world, NODE1, ROLE_WCONFD, "free_locks_level", answer_free_level, world);
    fake_script(world->world, NODE1, ROLE_WCONFD, "wait_changes", answer_changes, world);
    static const char *const looks[] = {"promised", "address_user", "draw_address", "draw_port",
                                        "backend_empty"};
    for (guint i = 0; i < G_N_ELEMENTS(looks); i++)
        fake_script(world->world, NODE1, ROLE_WCONFD, looks[i], answer_look, world);
    fake_script(world->world, NODE1, ROLE_WCONFD, "update_locks", answer_locks, world);
    fake_script(world->world, NODE1, ROLE_WCONFD, "free_locks", answer_free, world);
    fake_script(world->world, NODE1, ROLE_WCONFD, "cluster_status", answer_status, world);
}

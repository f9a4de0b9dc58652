/* Which rows a member takes, and what becomes of them; whose turn it is says volume_turn.c. */
#include <string.h>

#include "base/log.h"
#include "core/storage/volume_private.h"

/* A volume's snapshots go before it. */
char *volume_work_before(const struct config *config, const struct worker *row)
{
    if (strcmp(row->operation, task_operation_words[TASK_OPERATION_DELETE_VOLUME]) != 0)
        return NULL;
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(config, row->resource_id);
    for (guint i = 0; i < snapshots->len; i++) {
        const struct snapshot *snapshot = snapshots->pdata[i];
        g_autofree char *key = config_work_key(RESOURCE_SNAPSHOT, snapshot->uuid);
        if (config_get(config, "worker", key, NULL))
            return g_steal_pointer(&key);
    }
    return NULL;
}

static bool comes_later(const struct config *config, const struct worker *row)
{
    g_autofree char *before = volume_work_before(config, row);
    return before != NULL;
}

struct volume_member *volume_reads_from(struct volume_member *member, const struct worker *row)
{
    const char *other = resource_read_from(volume_member_config(member), row);
    return *other ? g_hash_table_lookup(member->service->members, other) : member;
}

struct volume_member *volume_work_from(const struct volume_work *work, GError **error)
{
    struct volume_member *from = volume_reads_from(work->member, work->row);
    if (from)
        volume_member_ref(from);
    else
        fettle_set_error(error, WRONG_STATE, "this node does not serve back end %s any more",
                         resource_read_from(volume_member_config(work->member), work->row));
    return from;
}

static guint hanging(const struct volume_member *member)
{
    struct volume_driver *driver = member->service->env->volumes;
    return driver->ops->hanging(driver, member->backend);
}

/* What it reads from is served by this node, too. Where either of two hangs it takes nothing: what
 * hangs for the one is in the way at the other. */
static bool sees_source(struct volume_member *member, const struct worker *row)
{
    const struct volume_member *from = volume_reads_from(member, row);
    return from == member ||
           (from && from->caller.generation && !hanging(from) && !hanging(member));
}

/* Rows that it could carry out and nobody has, oldest first. */
static GPtrArray *rows_to_take(struct volume_member *member)
{
    const struct config *config = volume_member_config(member);
    GPtrArray *rows = config_backend_work(config, member->backend->uuid);
    for (guint i = rows->len; i > 0; i--) {
        const struct worker *row = rows->pdata[i - 1];
        if (row->service_id ||
            !work_row_of(work_rows, resource_task_kind(row->resource_type), row->operation) ||
            comes_later(config, row) || !sees_source(member, row))
            g_ptr_array_remove_index(rows, i - 1);
    }
    return rows;
}

/* One place is left to cleaning and looking: a copy may take hours. */
bool volume_has_place(const struct volume_member *member)
{
    return member->caller.working + member->reading < LIMIT_BACKEND_CHILDREN - 1 &&
           member->service->working < LIMIT_VOLUME_CHILDREN &&
           hanging(member) < LIMIT_BACKEND_CHILDREN;
}

/* --- one operation --- */

struct taking {
    struct volume_member *member, *from; /* from: whose back end is read, if that is another one */
    char *key;
    char *partner; /* NULL: it has none */
};

enum work_done volume_done(bool ok)
{
    return task_killed() ? WORK_IS_LOST : ok ? WORK_IS_DONE : WORK_HAS_FAILED;
}

enum work_done volume_operate(const struct volume_work *work, struct work_end *end, GError **error)
{
    static const struct {
        enum task_operation operation;
        enum work_done (*run)(const struct volume_work *work, struct work_end *end, GError **error);
    } operations[] = {{TASK_OPERATION_CREATE_VOLUME, volume_create},
                      {TASK_OPERATION_DELETE_VOLUME, volume_delete},
                      {TASK_OPERATION_EXTEND_VOLUME, volume_extend},
                      {TASK_OPERATION_MIGRATE_VOLUME, volume_create},
                      {TASK_OPERATION_RETYPE_VOLUME, volume_create},
                      {TASK_OPERATION_CREATE_SNAPSHOT, volume_create},
                      {TASK_OPERATION_DELETE_SNAPSHOT, volume_delete},
                      {TASK_OPERATION_BACK_UP_VOLUME, volume_back_up},
                      {TASK_OPERATION_RESTORE_BACKUP, volume_restore},
                      {TASK_OPERATION_DELETE_BACKUP, volume_delete},
                      {TASK_OPERATION_UPLOAD_VOLUME, volume_upload},
                      {TASK_OPERATION_DELETE_IMAGE, volume_delete},
                      {TASK_OPERATION_SAVE_IMAGE, volume_receive}};
    for (guint i = 0; work->table && i < G_N_ELEMENTS(operations); i++)
        if (operations[i].operation == work->table->operation)
            return operations[i].run(work, end, error);
    fettle_set_error(error, ENVIRONMENT, "this version does not know the operation %s",
                     work->row->operation);
    return WORK_HAS_FAILED;
}

/* What has failed, or was made and is named by nothing, has left something, and so has what took
 * the place of other data, of a move on the back end that was left: the sweep finds it. */
static bool has_left(const struct volume_work *work, const struct work_end *end)
{
    struct resource made =
        resource_made(volume_member_config(work->member), work->row, work->table);
    return end->failed || work->table->makes_partners || resource_is_moved(work->row) ||
           (end->data[0] && strcmp(made.data, end->data) != 0);
}

static void finish(const struct volume_work *work, struct work_end *end, GError **error)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_ptr_array_add(items, end);
    struct volume_member *from = volume_work_from(work, NULL); /* as long as the record says it */
    if (volume_work_finish(work->caller, work, items, "", error) && has_left(work, end)) {
        work->member->sweep_ms = 0;
        if (from)
            from->sweep_ms = 0;
    }
    g_clear_pointer(&from, volume_member_unref);
}

static void carry_out(const struct volume_work *work, GError **error)
{
    g_autoptr(GError) why = NULL;
    record_autoptr(work_end) end = volume_work_end(work);
    enum work_done done = WORK_IS_DONE;
    if (volume_work_stands(work))
        done = volume_operate(work, end, &why);
    else
        end->moved_on = true;
    if (done == WORK_IS_LOST) { /* without a reason: the process ends */
        if (why)
            g_propagate_error(error, g_steal_pointer(&why));
        return;
    }
    if (done == WORK_HAS_FAILED)
        volume_work_fails(end, why->message);
    if (fettle_error_is(why, NO_RESOURCES))
        volume_member_measures(work->member);
    finish(work, end, error);
}

static void take_task(void *data)
{
    struct taking *taking = data;
    struct volume_member *member = taking->member;
    struct volume_service *service = member->service;
    g_autoptr(GError) error = NULL;
    struct volume_work *work =
        task_killed() ? NULL : volume_work_take(&member->caller, taking->key, &error);
    if (work)
        carry_out(work, &error);
    else if (!task_killed())
        volume_put_off(&member->caller, taking->key);
    if (work && error && !task_killed())
        log_warning("", "%s: left alone: %s", taking->key, error->message);
    if (error && !task_killed())
        follow_refresh(service->follow, NULL);
    if (taking->from)
        taking->from->reading--;
    if (!task_killed()) {
        GHashTableIter iter;
        void *other;
        g_hash_table_iter_init(&iter, service->members);
        while (g_hash_table_iter_next(&iter, NULL, &other))
            volume_member_wake(other);
        service->working--;
    }
    member->caller.working--;
    g_hash_table_remove(member->caller.busy, taking->key);
    if (taking->partner)
        g_hash_table_remove(member->caller.busy, taking->partner);
    g_clear_pointer(&work, volume_work_free);
    g_clear_pointer(&taking->from, volume_member_unref);
    volume_member_unref(member);
    g_free(taking->key);
    g_free(taking->partner);
    g_free(taking);
}

static void begin(struct volume_member *member, struct volume_member *from, const char *key,
                  const char *partner)
{
    struct taking *taking = g_new0(struct taking, 1);
    *taking =
        (struct taking){member, from != member ? from : NULL, g_strdup(key), g_strdup(partner)};
    if (taking->from) {
        taking->from->reading++;
        volume_member_ref(taking->from);
    }
    g_hash_table_add(member->caller.busy, g_strdup(key));
    if (partner)
        g_hash_table_add(member->caller.busy, g_strdup(partner));
    member->caller.working++;
    member->service->working++;
    volume_member_ref(member);
    task_spawn(NULL, take_task, taking);
}

/* --- which --- */

/* One that finds no room, or its partner still worked on under a claim that is gone, is looked at
 * again when a task ends. */
static guint due(struct volume_caller *caller, const char *key, void *data)
{
    struct volume_member *member = caller->member;
    const struct worker *row = config_get(volume_member_config(member), "worker", key, NULL);
    struct volume_member *from = row ? volume_reads_from(member, row) : NULL;
    g_autofree char *partner =
        row && *row->partner_id ? config_work_key(row->partner_type, row->partner_id) : NULL;
    if (from && volume_has_place(member) && (from == member || volume_has_place(from)) &&
        (!partner || !g_hash_table_contains(caller->busy, partner)))
        begin(member, from, key, partner);
    return VOLUME_NEVER_MS;
}

guint volume_take(struct volume_member *member)
{
    g_autoptr(GPtrArray) rows = rows_to_take(member);
    return volume_turns(&member->caller, rows, due, NULL);
}

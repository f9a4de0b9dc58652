/*
 * Which rows a member takes, and when: of those that are up one begins at once, by a number that
 * all of them reckon alike, the next ones each a second later. So two do not race for each row, and
 * one that hangs costs a second.
 */
#include <string.h>

#include "core/storage/volume_lot.h"
#include "core/storage/volume_private.h"

#define NEXT_MS 1000
#define TAKE_AGAIN_MS 5000 /* after a row that could not be had */
#define NEVER_MS G_MAXUINT

struct volume_seen {
    guint64 row;
    gint64 since_ms;
};

/* How many go first; those that are to take nothing, or are not there to do it, do not count. */
static guint rank(const struct volume_member *member, const GPtrArray *services, guint64 row)
{
    guint before = 0;
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *other = services->pdata[i];
        before += strcmp(other->backend, member->backend->uuid) == 0 && other->id != member->id &&
                  other->state == STORAGE_UP && !other->disabled &&
                  volume_lot(row, other->id) > volume_lot(row, member->id);
    }
    return before;
}

static bool is_disabled(const struct volume_member *member)
{
    const struct storage_service *own =
        config_get(volume_member_config(member), "storage_service", member->uuid, NULL);
    return !own || own->disabled;
}

bool volume_work_waits(const struct config *config, const struct worker *row)
{
    bool waits = false;
    if (strcmp(row->operation, task_operation_words[TASK_OPERATION_DELETE_VOLUME]) != 0)
        return false;
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(config, row->resource_id);
    for (guint i = 0; i < snapshots->len && !waits; i++) {
        const struct snapshot *snapshot = snapshots->pdata[i];
        g_autofree char *key = config_work_key(RESOURCE_SNAPSHOT, snapshot->uuid);
        waits = config_get(config, "worker", key, NULL) != NULL;
    }
    return waits;
}

/* Rows that it could carry out and nobody has, oldest first. */
static GPtrArray *rows_to_take(const struct volume_member *member)
{
    const struct config *config = volume_member_config(member);
    GPtrArray *rows = config_backend_work(config, member->backend->uuid);
    for (guint i = rows->len; i > 0; i--) {
        const struct worker *row = rows->pdata[i - 1];
        if (row->service_id ||
            !work_row_of(work_rows, resource_task_kind(row->resource_type), row->operation) ||
            volume_work_waits(config, row))
            g_ptr_array_remove_index(rows, i - 1);
    }
    return rows;
}

static bool has_room(const struct volume_member *member)
{
    struct volume_driver *driver = member->service->env->volumes;
    return member->working < LIMIT_BACKEND_CHILDREN &&
           member->service->working < LIMIT_VOLUME_CHILDREN &&
           driver->ops->hanging(driver, member->backend) < LIMIT_BACKEND_CHILDREN;
}

/* --- one operation --- */

struct taking {
    struct volume_member *member;
    char *key;
};

enum work_done volume_operate(const struct volume_work *work, struct work_end *end, GError **error)
{
    static const struct {
        enum task_operation operation;
        enum work_done (*run)(const struct volume_work *work, struct work_end *end, GError **error);
    } operations[] = {{TASK_OPERATION_CREATE_VOLUME, volume_create},
                      {TASK_OPERATION_DELETE_VOLUME, volume_delete},
                      {TASK_OPERATION_EXTEND_VOLUME, volume_extend},
                      {TASK_OPERATION_CREATE_SNAPSHOT, volume_create},
                      {TASK_OPERATION_DELETE_SNAPSHOT, volume_delete}};
    for (guint i = 0; work->table && i < G_N_ELEMENTS(operations); i++)
        if (operations[i].operation == work->table->operation)
            return operations[i].run(work, end, error);
    fettle_set_error(error, ENVIRONMENT, "this version does not know the operation %s",
                     work->row->operation);
    return WORK_HAS_FAILED;
}

static struct volume_work *take(struct volume_member *member, const char *key, GError **error)
{
    g_autofree char *commit_id = env_uuid(member->service->env);
    struct take_work_args args = {.commit_id = commit_id,
                                  .key = (char *)key,
                                  .service = member->uuid,
                                  .generation = member->generation};
    record_autoptr(taken_work) taken = volume_call(member, NULL, "take_work", &args, error);
    if (!taken || !follow_wait(member->service->follow, taken->claim, error))
        return NULL;
    return volume_work_new(member, key, taken->claim);
}

/* What has failed, or was made and is named by nothing, has left something: the sweep finds it. */
static bool has_left(const struct volume_work *work, const struct work_end *end)
{
    struct resource resource = resource_of_row(volume_member_config(work->member), work->row);
    return end->failed || (end->data[0] && strcmp(resource.data, end->data) != 0);
}

static void finish(const struct volume_work *work, struct work_end *end, GError **error)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_ptr_array_add(items, end);
    if (volume_work_finish(work->member, work, items, error) && has_left(work, end))
        work->member->sweep_ms = 0;
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
    if (done == WORK_IS_LOST) {
        g_propagate_error(error, g_steal_pointer(&why));
        return;
    }
    if (done == WORK_HAS_FAILED) {
        end->failed = true;
        g_free(end->why);
        end->why = g_utf8_substring(why->message, 0, MIN(g_utf8_strlen(why->message, -1), 256));
    }
    finish(work, end, error);
}

/* It was refused, or the master does not know how: others and later times have their turn. */
static void put_off(struct volume_member *member, const char *key)
{
    const struct env *env = member->service->env;
    struct volume_seen *seen = g_hash_table_lookup(member->seen, key);
    if (seen)
        seen->since_ms = env->ops->boot_ms(env) + TAKE_AGAIN_MS;
}

static void take_task(void *data)
{
    struct taking *taking = data;
    struct volume_member *member = taking->member;
    struct volume_service *service = member->service;
    g_autoptr(GError) error = NULL;
    struct volume_work *work = task_killed() ? NULL : take(member, taking->key, &error);
    if (work)
        carry_out(work, &error);
    else if (!task_killed())
        put_off(member, taking->key);
    if (error && !task_killed())
        follow_refresh(service->follow, NULL);
    if (!task_killed()) {
        GHashTableIter iter;
        void *other;
        g_hash_table_iter_init(&iter, service->members);
        while (g_hash_table_iter_next(&iter, NULL, &other))
            volume_member_wake(other);
        service->working--;
    }
    member->working--;
    g_hash_table_remove(member->busy, taking->key);
    g_clear_pointer(&work, volume_work_free);
    volume_member_unref(member);
    g_free(taking->key);
    g_free(taking);
}

static void begin(struct volume_member *member, char *key)
{
    struct taking *taking = g_new0(struct taking, 1);
    *taking = (struct taking){member, key};
    g_hash_table_add(member->busy, g_strdup(key));
    member->working++;
    member->service->working++;
    volume_member_ref(member);
    task_spawn(NULL, take_task, taking);
}

/* --- which --- */

static gint64 since(struct volume_member *member, GHashTable *seen, const char *key, guint64 row,
                    gint64 now)
{
    const struct volume_seen *before = g_hash_table_lookup(member->seen, key);
    struct volume_seen *noted = g_new0(struct volume_seen, 1);
    *noted = (struct volume_seen){row, before && before->row == row ? before->since_ms : now};
    g_hash_table_insert(seen, g_strdup(key), noted);
    return noted->since_ms;
}

guint volume_take(struct volume_member *member)
{
    const struct env *env = member->service->env;
    gint64 now = env->ops->boot_ms(env);
    guint rest_ms = NEVER_MS;
    g_autoptr(GPtrArray) rows = rows_to_take(member);
    g_autoptr(GPtrArray) services = config_list(volume_member_config(member), "storage_service");
    GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint i = 0; i < rows->len && !is_disabled(member); i++) {
        const struct worker *row = rows->pdata[i];
        g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
        gint64 due = since(member, seen, key, row->id, now) +
                     (gint64)rank(member, services, row->id) * NEXT_MS;
        if (g_hash_table_contains(member->busy, key))
            continue;
        if (due > now)
            rest_ms = MIN(rest_ms, (guint)(due - now));
        else if (has_room(member))
            begin(member, g_steal_pointer(&key));
    }
    g_hash_table_unref(member->seen);
    member->seen = seen;
    return rest_ms;
}

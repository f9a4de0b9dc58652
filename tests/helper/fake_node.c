/* The fake world: what a host gives to its processes: files, lock files, starters of jobs. See
 * fake_env.h. */
#include "helper/fake_private.h"

#include <string.h>

static const char *area_word(enum file_area area)
{
    switch (area) {
    case FILE_STATE:
        return "state";
    case FILE_QUEUE:
        return "queue";
    case FILE_RUN:
        return "run";
    case FILE_STATS:
        return "stats";
    case FILE_MOND:
        return "mond";
    case FILE_RAPI:
        return "rapi";
    case FILE_PROC:
        return "proc";
    }
    return "";
}

static char *file_key(const char *node, enum file_area area, const char *name)
{
    return g_strdup_printf("%s/%s/%s", node, area_word(area), name);
}

static void string_free(void *data)
{
    g_string_free(data, TRUE);
}

/* Files of a node, by key: what lists them need not look at those of all nodes. */
static GHashTable *files_of(struct fake_world *world, const char *node)
{
    GHashTable *files = g_hash_table_lookup(world->files, node);
    if (!files) {
        files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, string_free);
        g_hash_table_insert(world->files, g_strdup(node), files);
    }
    return files;
}

/* A callback with a name, posted; dropped if its process is dead by then. */
struct named_event {
    struct fake_process *owner;
    void (*fn)(const char *name, void *data);
    char *name;
    void *data;
};

static void named_event_run(void *data)
{
    struct named_event *event = data;
    if (fake_late(event->owner, named_event_run, event))
        return;
    if (!event->owner->dead)
        event->fn(event->name, event->data);
    g_free(event->name);
    g_free(event);
}

static void post_named(struct fake_process *owner, void (*fn)(const char *name, void *data),
                       const char *name, void *data)
{
    struct named_event *event = g_new(struct named_event, 1);
    *event = (struct named_event){owner, fn, g_strdup(name), data};
    fake_post(owner->world, named_event_run, event);
}

/* --- files --- */

void fake_fail_files(struct fake_world *world, const char *part, guint count)
{
    g_free(world->fail_part);
    world->fail_part = g_strdup(part);
    world->fail_count = count;
}

void fake_set_read_only(struct fake_world *world, const char *node, bool read_only)
{
    if (read_only)
        g_hash_table_insert(world->read_only, g_strdup(node), "Read-only file system");
    else
        g_hash_table_remove(world->read_only, node);
}

void fake_fill_state(struct fake_world *world, const char *node)
{
    g_hash_table_insert(world->read_only, g_strdup(node), "No space left on device");
}

static bool state_may_fail(const struct env *env, enum file_area area, GError **error)
{
    const struct fake_world *world = fake_process_of(env)->world;
    const char *why =
        area == FILE_STATE ? g_hash_table_lookup(world->read_only, env->node_uuid) : NULL;
    if (!why)
        return true;
    fettle_set_error(error, STORAGE, "var: %s", why);
    return false;
}

void fake_set_hung(struct fake_world *world, const char *node, bool hung)
{
    if (hung)
        g_hash_table_add(world->hung, g_strdup(node));
    else
        g_hash_table_remove(world->hung, node);
}

void fake_set_slow(struct fake_world *world, const char *node, guint ms)
{
    world->slow_node = node;
    world->slow_ms = ms;
}

void fake_set_descriptors_used_up(struct fake_world *world, const char *node, bool used_up)
{
    if (used_up)
        g_hash_table_add(world->used_up, g_strdup(node));
    else
        g_hash_table_remove(world->used_up, node);
}

static bool are_used_up(const struct env *env)
{
    return g_hash_table_contains(fake_process_of(env)->world->used_up, env->node_uuid);
}

bool fake_descriptor_left(const struct env *env, GError **error)
{
    if (!are_used_up(env))
        return true;
    fettle_set_error(error, TEMPORARY, "var: Too many open files");
    return false;
}

/* False: killed meanwhile. */
static bool state_answers(const struct env *env)
{
    while (g_hash_table_contains(fake_process_of(env)->world->hung, env->node_uuid))
        if (!env_sleep(env, 100))
            return false;
    return true;
}

/* The same for a write. */
static bool state_has_taken(const struct env *env)
{
    struct fake_world *world = fake_process_of(env)->world;
    if (!state_answers(env))
        return false;
    if (g_strcmp0(world->slow_node, env->node_uuid) != 0)
        return true;
    world->slow_until_ms = MAX(world->slow_until_ms, world->now_ms) + world->slow_ms;
    return env_sleep(env, (guint)(world->slow_until_ms - world->now_ms));
}

static bool op_state_trial(const struct env *env, GError **error)
{
    return state_answers(env) && fake_descriptor_left(env, error) &&
           state_may_fail(env, FILE_STATE, error);
}

static void op_descriptors(const struct env *env, guint64 *ret_open, guint64 *ret_most)
{
    *ret_open = are_used_up(env) ? 1024 : 10;
    *ret_most = 1024;
}

static bool file_may_fail(struct fake_world *world, const char *key, GError **error)
{
    if (!world->fail_count || !world->fail_part || !strstr(key, world->fail_part))
        return true;
    world->fail_count--;
    fettle_set_error(error, STORAGE, "%s: input/output error (made by the test)", key);
    return false;
}

static void tell_watchers(struct fake_world *world, const char *key)
{
    const char *slash = strrchr(key, '/');
    for (guint i = 0; i < world->file_watches->len; i++) {
        const struct fake_file_watch *watch = world->file_watches->pdata[i];
        if (strlen(watch->folder) == (size_t)(slash - key) && g_str_has_prefix(key, watch->folder))
            post_named(watch->owner, watch->changed, slash + 1, watch->data);
    }
}

static bool op_file_write(const struct env *env, enum file_area area, const char *name,
                          const char *data, size_t len, GError **error)
{
    struct fake_world *world = fake_process_of(env)->world;
    g_autofree char *key = file_key(env->node_uuid, area, name);
    if (area == FILE_STATE && task_self() && !state_has_taken(env))
        return fettle_set_ended(error, "the process");
    if (!state_may_fail(env, area, error) || !file_may_fail(world, key, error))
        return false;
    GString *text = g_string_new_len(data, (gssize)len);
    g_hash_table_replace(files_of(world, env->node_uuid), g_strdup(key), text);
    tell_watchers(world, key);
    return true;
}

static bool op_file_append(const struct env *env, enum file_area area, const char *name,
                           const char *data, size_t len, GError **error)
{
    struct fake_world *world = fake_process_of(env)->world;
    g_autofree char *key = file_key(env->node_uuid, area, name);
    if (!state_may_fail(env, area, error) || !file_may_fail(world, key, error))
        return false;
    GString *text = g_hash_table_lookup(files_of(world, env->node_uuid), key);
    if (text)
        g_string_append_len(text, data, (gssize)len);
    else
        g_hash_table_insert(files_of(world, env->node_uuid), g_strdup(key),
                            g_string_new_len(data, (gssize)len));
    tell_watchers(world, key);
    return true;
}

static char *op_file_read(const struct env *env, enum file_area area, const char *name, size_t max,
                          size_t *ret_len, GError **error)
{
    struct fake_world *world = fake_process_of(env)->world;
    g_autofree char *key = file_key(env->node_uuid, area, name);
    if (!file_may_fail(world, key, error))
        return NULL;
    const GString *text = g_hash_table_lookup(files_of(world, env->node_uuid), key);
    if (!text) {
        fettle_set_error(error, UNKNOWN_ENTITY, "%s does not exist", key);
        return NULL;
    }
    if (text->len > max) {
        fettle_set_error(error, LIMIT, "%s has %zu bytes, more than %zu", key, text->len, max);
        return NULL;
    }
    if (ret_len)
        *ret_len = text->len;
    char *copy = g_malloc(text->len + 1);
    memcpy(copy, text->str, text->len + 1);
    return copy;
}

static bool op_file_remove(const struct env *env, enum file_area area, const char *name,
                           GError **error)
{
    struct fake_world *world = fake_process_of(env)->world;
    g_autofree char *key = file_key(env->node_uuid, area, name);
    if (!state_may_fail(env, area, error) || !file_may_fail(world, key, error))
        return false;
    g_hash_table_remove(files_of(world, env->node_uuid), key);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of files and folders directly below `prefix` ("node/area/folder/"), each once. */
static GPtrArray *names_below(GHashTable *table, const char *prefix)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    size_t len = strlen(prefix);
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        if (strncmp(key, prefix, len) != 0)
            continue;
        const char *name = (const char *)key + len;
        g_autofree char *first = g_strndup(name, strcspn(name, "/"));
        if (g_hash_table_contains(seen, first))
            continue;
        g_hash_table_add(seen, first);
        g_ptr_array_add(names, g_steal_pointer(&first));
    }
    g_ptr_array_sort(names, compare_names);
    return names;
}

static GPtrArray *op_file_list(const struct env *env, enum file_area area, const char *folder,
                               GError **error)
{
    struct fake_world *world = fake_process_of(env)->world;
    bool top = !folder || !*folder || !strcmp(folder, ".");
    g_autofree char *prefix = g_strdup_printf("%s/%s/%s%s", env->node_uuid, area_word(area),
                                              top ? "" : folder, top ? "" : "/");
    return file_may_fail(world, prefix, error)
               ? names_below(files_of(world, env->node_uuid), prefix)
               : NULL;
}

static void op_file_watch(const struct env *env, enum file_area area, const char *folder,
                          void (*changed)(const char *name, void *data), void *data)
{
    struct fake_process *process = fake_process_of(env);
    struct fake_file_watch *watch = g_new(struct fake_file_watch, 1);
    bool top = !folder || !*folder || !strcmp(folder, ".");
    char *key = g_strdup_printf("%s/%s%s%s", process->node, area_word(area), top ? "" : "/",
                                top ? "" : folder);
    *watch = (struct fake_file_watch){process, key, changed, data};
    g_ptr_array_add(process->world->file_watches, watch);
}

const char *fake_file(struct fake_world *world, const char *node, enum file_area area,
                      const char *name)
{
    g_autofree char *key = file_key(node, area, name);
    const GString *text = g_hash_table_lookup(files_of(world, node), key);
    return text ? text->str : NULL;
}

void fake_file_put(struct fake_world *world, const char *node, enum file_area area,
                   const char *name, const char *text)
{
    g_autofree char *key = file_key(node, area, name);
    g_hash_table_replace(files_of(world, node), g_strdup(key), g_string_new(text));
    tell_watchers(world, key);
}

/* --- lock files --- */

static char *lock_path(const char *node, const char *name)
{
    return g_strdup_printf("%s/%s", node, name);
}

static void livelock_free(void *data)
{
    struct fake_livelock *lock = data;
    g_free(lock->path);
    g_free(lock);
}

static void livelock_set(struct fake_world *world, const char *path,
                         const struct fake_process *holder, enum livelock_verdict verdict)
{
    struct fake_livelock *lock = g_new(struct fake_livelock, 1);
    *lock = (struct fake_livelock){g_strdup(path), holder, verdict};
    g_hash_table_replace(world->livelocks, lock->path, lock);
}

/* Tells those who watch it, once, that the lock is free or gone. */
static void livelock_tell(struct fake_world *world, const char *path)
{
    for (guint i = world->lock_watches->len; i > 0; i--) {
        struct fake_lock_watch *watch = world->lock_watches->pdata[i - 1];
        if (strcmp(watch->path, path))
            continue;
        post_named(watch->owner, watch->released, strchr(watch->path, '/') + 1, watch->data);
        g_ptr_array_remove_index(world->lock_watches, i - 1);
    }
}

static char *op_livelock_make(const struct env *env, const char *stem, GError **error)
{
    struct fake_process *process = fake_process_of(env);
    char *name = g_strdup_printf("%s-%u", stem, ++process->world->last_handle);
    g_autofree char *path = lock_path(process->node, name);
    livelock_set(process->world, path, process, LIVELOCK_ALIVE);
    return name;
}

static void op_livelock_drop(const struct env *env, const char *name)
{
    struct fake_world *world = fake_process_of(env)->world;
    g_autofree char *path = lock_path(env->node_uuid, name);
    g_hash_table_remove(world->livelocks, path);
    livelock_tell(world, path);
}

static enum livelock_verdict op_livelock_probe(const struct env *env, const char *name)
{
    g_autofree char *path = lock_path(env->node_uuid, name);
    const struct fake_livelock *lock =
        g_hash_table_lookup(fake_process_of(env)->world->livelocks, path);
    return lock ? lock->verdict : LIVELOCK_GONE;
}

static void op_livelock_watch(const struct env *env, const char *name,
                              void (*released)(const char *name, void *data), void *data)
{
    struct fake_process *process = fake_process_of(env);
    struct fake_lock_watch *watch = g_new(struct fake_lock_watch, 1);
    *watch = (struct fake_lock_watch){process, lock_path(process->node, name), released, data};
    g_ptr_array_add(process->world->lock_watches, watch);
    enum livelock_verdict verdict = op_livelock_probe(env, name);
    if (verdict == LIVELOCK_DEAD || verdict == LIVELOCK_GONE) {
        g_autofree char *path = g_strdup(watch->path);
        livelock_tell(process->world, path);
    }
}

static GPtrArray *op_livelock_list(const struct env *env)
{
    g_autofree char *prefix = g_strdup_printf("%s/", env->node_uuid);
    return names_below(fake_process_of(env)->world->livelocks, prefix);
}

static void op_livelock_remove(const struct env *env, const char *name)
{
    struct fake_world *world = fake_process_of(env)->world;
    g_autofree char *path = lock_path(env->node_uuid, name);
    g_hash_table_remove(world->livelocks, path);
}

void fake_livelock(struct fake_world *world, const char *node, const char *name,
                   enum livelock_verdict verdict)
{
    g_autofree char *path = lock_path(node, name);
    if (verdict == LIVELOCK_GONE)
        g_hash_table_remove(world->livelocks, path);
    else
        livelock_set(world, path, NULL, verdict);
    if (verdict == LIVELOCK_DEAD || verdict == LIVELOCK_GONE)
        livelock_tell(world, path);
}

/* --- starters --- */

struct hook_event {
    struct fake_world *world;
    guint index;
    bool confirmed;
};

static void hook_run(void *data)
{
    struct hook_event *event = data;
    event->world->starter_hook(event->index, event->confirmed, event->world->starter_hook_data);
    g_free(event);
}

static void hook_post(struct fake_world *world, guint index, bool confirmed)
{
    if (!world->starter_hook)
        return;
    struct hook_event *event = g_new(struct hook_event, 1);
    *event = (struct hook_event){world, index, confirmed};
    fake_post(world, hook_run, event);
}

void fake_set_starter_hook(struct fake_world *world, fake_starter_hook hook, void *data)
{
    world->starter_hook = hook;
    world->starter_hook_data = data;
}

static struct starter *op_starter_spawn(const struct env *env, guint64 job,
                                        const struct starter_events *events, void *data,
                                        GError **error)
{
    struct fake_process *process = fake_process_of(env);
    if (process->world->starters_busy > 0) {
        process->world->starters_busy--;
        fettle_set_error(error, TEMPORARY, "it is behind with its work");
        return NULL;
    }
    struct starter *starter = g_new0(struct starter, 1);
    *starter = (struct starter){process->world, process, job, *events, data, false, false};
    g_ptr_array_add(process->world->starters, starter);
    hook_post(process->world, process->world->starters->len - 1, false);
    return starter;
}

static bool op_starter_confirm(const struct env *env, struct starter *starter)
{
    if (starter->broken)
        return false;
    starter->confirmed = true;
    guint index = 0;
    g_ptr_array_find(starter->world->starters, starter, &index);
    hook_post(starter->world, index, true);
    return true;
}

static void starter_break(struct starter *starter);

static void op_starter_drop(const struct env *env, struct starter *starter)
{
    starter_break(starter);
}

void fake_starters_busy(struct fake_world *world, guint count)
{
    world->starters_busy = count;
}

guint fake_starters(const struct fake_world *world)
{
    return world->starters->len;
}

guint64 fake_starter_job(const struct fake_world *world, guint index)
{
    return ((struct starter *)world->starters->pdata[index])->job;
}

bool fake_starter_confirmed(const struct fake_world *world, guint index)
{
    return ((struct starter *)world->starters->pdata[index])->confirmed;
}

struct starter_event {
    struct starter *starter;
    char *livelock; /* NULL: broken */
};

static void starter_event_run(void *data)
{
    struct starter_event *event = data;
    struct starter *starter = event->starter;
    if (fake_late(starter->owner, starter_event_run, event))
        return;
    if (!starter->owner->dead) {
        if (event->livelock)
            starter->events.named(starter, event->livelock, 1000 + starter->job,
                                  5000 + starter->job, starter->data);
        else
            starter->events.broken(starter, starter->confirmed, starter->data);
    }
    g_free(event->livelock);
    g_free(event);
}

static void starter_post(struct starter *starter, const char *livelock)
{
    struct starter_event *event = g_new(struct starter_event, 1);
    *event = (struct starter_event){starter, g_strdup(livelock)};
    fake_post(starter->world, starter_event_run, event);
}

void fake_starter_named(struct fake_world *world, guint index, const char *livelock)
{
    struct starter *starter = world->starters->pdata[index];
    fake_livelock(world, starter->owner->node, livelock, LIVELOCK_ALIVE);
    starter_post(starter, livelock);
}

void fake_starter_report(struct fake_world *world, guint index, const char *livelock)
{
    starter_post(world->starters->pdata[index], livelock);
}

static void starter_break(struct starter *starter)
{
    if (starter->broken)
        return;
    starter->broken = true;
    starter_post(starter, NULL);
}

void fake_starter_break(struct fake_world *world, guint index)
{
    starter_break(world->starters->pdata[index]);
}

/* --- the host --- */

static void lock_watch_free(void *data)
{
    struct fake_lock_watch *watch = data;
    g_free(watch->path);
    g_free(watch);
}

static void file_watch_free(void *data)
{
    struct fake_file_watch *watch = data;
    g_free(watch->folder);
    g_free(watch);
}

void fake_node_process_died(struct fake_process *process)
{
    struct fake_world *world = process->world;
    for (guint i = world->lock_watches->len; i > 0; i--) {
        if (((struct fake_lock_watch *)world->lock_watches->pdata[i - 1])->owner == process)
            g_ptr_array_remove_index(world->lock_watches, i - 1);
    }
    for (guint i = world->file_watches->len; i > 0; i--) {
        if (((struct fake_file_watch *)world->file_watches->pdata[i - 1])->owner == process)
            g_ptr_array_remove_index(world->file_watches, i - 1);
    }
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, world->livelocks);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct fake_livelock *lock = value;
        if (lock->holder != process)
            continue;
        lock->holder = NULL;
        lock->verdict = LIVELOCK_DEAD;
        livelock_tell(world, lock->path);
    }
}

static gboolean has_prefix(void *key, void *value, void *prefix)
{
    return g_str_has_prefix(key, prefix);
}

void fake_reboot(struct fake_world *world, const char *node)
{
    g_autofree char *run = g_strdup_printf("%s/run/", node);
    g_autofree char *locks = g_strdup_printf("%s/", node);
    g_autofree char *stats = g_strdup_printf("%s/stats/", node);
    g_hash_table_foreach_remove(files_of(world, node), has_prefix, run);
    g_hash_table_foreach_remove(files_of(world, node), has_prefix, stats);
    g_hash_table_foreach_remove(world->livelocks, has_prefix, locks);
    g_hash_table_replace(world->boots, g_strdup(node),
                         g_strdup_printf("boot-%.8s-%u", node, ++world->last_handle));
}

void fake_lose_unsynced(struct fake_world *world, const char *node, guint (*chance)(void *data),
                        void *data)
{
    g_autofree char *prefix = g_strdup_printf("%s/queue/", node);
    g_autoptr(GPtrArray) names = names_below(files_of(world, node), prefix);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *key = g_strconcat(prefix, names->pdata[i], NULL);
        GString *text = g_hash_table_lookup(files_of(world, node), key);
        guint number = chance(data);
        if (number < 40)
            g_hash_table_remove(files_of(world, node), key);
        else if (number < 60)
            g_string_truncate(text, text->len * number / 100);
    }
}

void fake_node_init(struct fake_world *world)
{
    world->files =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_unref);
    world->livelocks = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, livelock_free);
    world->lock_watches = g_ptr_array_new_with_free_func(lock_watch_free);
    world->file_watches = g_ptr_array_new_with_free_func(file_watch_free);
    world->starters = g_ptr_array_new_with_free_func(g_free);
    world->signals = g_ptr_array_new_with_free_func(g_free);
    world->read_only = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world->hung = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world->used_up = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world->clocks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

void fake_node_clear(struct fake_world *world)
{
    g_hash_table_unref(world->files);
    g_hash_table_unref(world->livelocks);
    g_ptr_array_unref(world->lock_watches);
    g_ptr_array_unref(world->file_watches);
    g_ptr_array_unref(world->starters);
    g_ptr_array_unref(world->signals);
    g_hash_table_unref(world->read_only);
    g_hash_table_unref(world->hung);
    g_hash_table_unref(world->used_up);
    g_hash_table_unref(world->clocks);
    g_free(world->fail_part);
}

void fake_stop_clock(struct fake_world *world, const char *node)
{
    const gint64 *set = g_hash_table_lookup(world->clocks, node);
    const gint64 clock[] = {set ? set[0] : 0, world->now_ms};
    g_hash_table_replace(world->clocks, g_strdup(node), g_memdup2(clock, sizeof clock));
}

/* --- signals --- */

struct signal_event {
    struct fake_world *world;
    char *path; /* of the lock file */
    bool kill;
};

static void signal_run(void *data)
{
    struct signal_event *event = data;
    const struct fake_livelock *lock = g_hash_table_lookup(event->world->livelocks, event->path);
    struct fake_process *process = lock ? (struct fake_process *)(uintptr_t)lock->holder : NULL;
    if (process && !process->dead && event->kill && event->world->kill_hook)
        event->world->kill_hook(&process->env, event->world->kill_hook_data);
    else if (process && !event->kill && fake_late(process, signal_run, event))
        return;
    else if (process && !process->dead && !event->kill && process->asked)
        process->asked(process->asked_data);
    g_free(event->path);
    g_free(event);
}

static bool op_job_signal(const struct env *env, const struct job_process *job, bool kill)
{
    struct fake_world *world = fake_process_of(env)->world;
    if (job->pid == 0 && world->holders_hidden)
        return false;
    struct signal_event *event = g_new(struct signal_event, 1);
    *event = (struct signal_event){world, lock_path(env->node_uuid, job->livelock), kill};
    g_ptr_array_add(world->signals,
                    g_strdup_printf("%s %s", job->livelock, kill ? "KILL" : "TERM"));
    fake_post(world, signal_run, event);
    return true;
}

void fake_set_signed_by(struct fake_world *world, const char *fingerprint)
{
    world->signed_by = fingerprint;
}

void fake_set_face(struct fake_world *world, enum face face)
{
    world->face = face;
}

void fake_set_rest(struct fake_world *world, bool is_rest)
{
    world->is_rest = is_rest;
}

void fake_hide_holders(struct fake_world *world)
{
    world->holders_hidden = true;
}

static void op_on_asked(const struct env *env, void (*fn)(void *data), void *data)
{
    struct fake_process *process = fake_process_of(env);
    process->asked = fn;
    process->asked_data = data;
}

static void ask_run(void *data)
{
    struct fake_process *process = data;
    if (!process->dead && process->asked)
        process->asked(process->asked_data);
}

void fake_ask(struct env *env)
{
    fake_post(fake_process_of(env)->world, ask_run, fake_process_of(env));
}

const GPtrArray *fake_signals(const struct fake_world *world)
{
    return world->signals;
}

void fake_set_kill_hook(struct fake_world *world, fake_kill_hook hook, void *data)
{
    world->kill_hook = hook;
    world->kill_hook_data = data;
}

void fake_node_fill(struct env_ops *ops)
{
    ops->file_write = op_file_write;
    ops->file_append = op_file_append;
    ops->file_read = op_file_read;
    ops->file_remove = op_file_remove;
    ops->file_list = op_file_list;
    ops->file_watch = op_file_watch;
    ops->state_trial = op_state_trial;
    ops->descriptors = op_descriptors;
    ops->livelock_make = op_livelock_make;
    ops->livelock_drop = op_livelock_drop;
    ops->livelock_probe = op_livelock_probe;
    ops->livelock_watch = op_livelock_watch;
    ops->livelock_list = op_livelock_list;
    ops->livelock_remove = op_livelock_remove;
    ops->starter_spawn = op_starter_spawn;
    ops->starter_confirm = op_starter_confirm;
    ops->starter_drop = op_starter_drop;
    ops->job_signal = op_job_signal;
    ops->on_asked = op_on_asked;
}

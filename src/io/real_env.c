/* See real_env.h. */
#include "io/real_env.h"
#include "io/files.h"
#include "io/livelock.h"
#include "io/loop.h"
#include "io/net/rpc_client.h"
#include "io/process.h"
#include "io/starter.h"
#include "io/trial.h"

#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

struct real_env {
    struct env env;
    struct node_paths *paths;
    struct node_config *config;
    char *role;
    char *boot_id;
    struct nursery *nursery; /* of job processes */
    struct rpc_client *client;
    real_env_call call; /* instead of the client, NULL: none */
    void *carrier;
    GHashTable *livelocks;            /* name -> struct livelock: ours */
    struct livelock_watcher *watcher; /* when first needed */
    GPtrArray *watches;               /* struct file_watch */
};

struct file_watch {
    char *folder;
    struct folder_watch *watch;
    void (*changed)(const char *name, void *data);
    void *data;
};

static struct real_env *real(const struct env *env)
{
    return (struct real_env *)env;
}

/* --- time and chance --- */

static gint64 real_boot_ms(const struct env *env)
{
    return loop_boot_ms();
}

static gint64 real_wall_us(const struct env *env)
{
    return loop_wall_us();
}

static bool real_state_trial(const struct env *env, GError **error)
{
    return trial_write(real(env)->paths->var, error);
}

static void real_descriptors(const struct env *env, guint64 *ret_open, guint64 *ret_most)
{
    struct rlimit limit;
    g_autoptr(GDir) open = g_dir_open("/proc/self/fd", 0, NULL);
    *ret_open = 0;
    while (open != NULL && g_dir_read_name(open) != NULL)
        ++*ret_open;
    *ret_most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : G_MAXUINT64;
    if (open == NULL) /* there is none left to look with */
        *ret_open = *ret_most;
}

static guint real_timer(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    return loop_timer(ms, fn, data);
}

static void real_timer_cancel(const struct env *env, guint handle)
{
    loop_timer_cancel(handle);
}

static void real_random(const struct env *env, void *ret_bytes, size_t len)
{
    g_assert(getrandom(ret_bytes, len, 0) == (ssize_t)len);
}

/* --- calls --- */

static void real_call(const struct env *env, const struct rpc_call *call, rpc_reply_fn done,
                      void *data)
{
    if (real(env)->call != NULL)
        real(env)->call(real(env)->carrier, call, done, data);
    else
        rpc_client_call(real(env)->client, call, done, data);
}

/* --- files --- */

static bool real_file_write(const struct env *env, enum file_area area, const char *name,
                            const char *data, size_t len, GError **error)
{
    return files_write(real(env)->paths, area, name, data, len, error);
}

static bool real_file_append(const struct env *env, enum file_area area, const char *name,
                             const char *data, size_t len, GError **error)
{
    return files_append(real(env)->paths, area, name, data, len, error);
}

static char *real_file_read(const struct env *env, enum file_area area, const char *name,
                            size_t max, size_t *ret_len, GError **error)
{
    return files_read(real(env)->paths, area, name, max, ret_len, error);
}

static bool real_file_remove(const struct env *env, enum file_area area, const char *name,
                             GError **error)
{
    return files_remove(real(env)->paths, area, name, error);
}

static GPtrArray *real_file_list(const struct env *env, enum file_area area, const char *folder,
                                 GError **error)
{
    return files_list(real(env)->paths, area, folder, error);
}

static void folder_changed_cb(const char *name, void *data)
{
    struct file_watch *watch = data;
    const char *each;

    if (name != NULL) {
        if (name[0] != '.')
            watch->changed(name, watch->data);
        return;
    }
    /* Events were lost: every file may have changed. */
    g_autoptr(GDir) dir = g_dir_open(watch->folder, 0, NULL);
    while (dir != NULL && (each = g_dir_read_name(dir)) != NULL)
        if (each[0] != '.')
            watch->changed(each, watch->data);
}

static void file_watch_free(void *data)
{
    struct file_watch *watch = data;

    folder_watch_free(watch->watch);
    g_free(watch->folder);
    g_free(watch);
}

static void real_file_watch(const struct env *env, enum file_area area, const char *folder,
                            void (*changed)(const char *name, void *data), void *data)
{
    struct file_watch *watch = g_new0(struct file_watch, 1);
    g_autoptr(GError) error = NULL;

    watch->folder = files_folder(real(env)->paths, area, folder, &error);
    watch->changed = changed;
    watch->data = data;
    if (watch->folder != NULL)
        watch->watch = folder_watch_new(watch->folder, folder_changed_cb, watch, &error);
    /* Nobody could go on without it: a job's progress would never be seen. */
    if (watch->watch == NULL)
        g_error("%s", error->message);
    g_ptr_array_add(real(env)->watches, watch);
}

/* --- lock files --- */

static char *real_livelock_make(const struct env *env, const char *stem, GError **error)
{
    struct livelock *livelock = livelock_make(real(env)->paths, stem, error);

    if (livelock == NULL)
        return NULL;
    real_env_take_livelock((struct env *)env, livelock);
    return g_strdup(livelock_name(livelock));
}

static void real_livelock_drop(const struct env *env, const char *name)
{
    struct livelock *livelock = g_hash_table_lookup(real(env)->livelocks, name);

    g_hash_table_remove(real(env)->livelocks, name);
    livelock_drop(livelock);
}

static enum livelock_verdict real_livelock_probe(const struct env *env, const char *name)
{
    return livelock_probe(real(env)->paths, name);
}

static void real_livelock_watch(const struct env *env, const char *name,
                                void (*released)(const char *name, void *data), void *data)
{
    struct real_env *self = real(env);
    g_autoptr(GError) error = NULL;

    if (self->watcher == NULL)
        self->watcher = livelock_watcher_new(self->paths, &error);
    if (self->watcher == NULL)
        g_error("%s", error->message);
    livelock_watcher_add(self->watcher, name, released, data);
}

static GPtrArray *real_livelock_list(const struct env *env)
{
    return livelock_list(real(env)->paths);
}

static void real_livelock_remove(const struct env *env, const char *name)
{
    livelock_remove(real(env)->paths, name);
}

/* --- jobs --- */

static struct starter *real_starter_spawn(const struct env *env, guint64 job,
                                          const struct starter_events *events, void *data,
                                          GError **error)
{
    return starter_spawn(real(env)->nursery, job, events, data, error);
}

static bool real_job_signal(const struct env *env, const struct job_process *job, bool kill)
{
    g_autoptr(GError) gone = NULL;
    guint64 pid = job->pid, ticks = job->start_ticks;
    struct process *process;

    if (pid == 0 && !livelock_find_holder(real(env)->paths, job->livelock, &pid, &ticks))
        return false;
    process = process_adopt(pid, ticks, NULL, NULL, &gone);
    if (process == NULL)
        return true;
    process_signal(process, kill ? SIGKILL : SIGTERM);
    process_free(process);
    return true;
}

static void real_on_asked(const struct env *env, void (*fn)(void *data), void *data)
{
    sigset_t terminate;

    loop_on_terminate(fn, data);
    /* The starter has held it back since before anybody could send it. */
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &terminate, NULL);
}

static bool real_starter_confirm(const struct env *env, struct starter *starter)
{
    return starter_confirm(starter);
}

static void real_starter_drop(const struct env *env, struct starter *starter)
{
    starter_drop(starter);
}

static const struct env_ops ops = {
    .boot_ms = real_boot_ms,
    .wall_us = real_wall_us,
    .timer = real_timer,
    .timer_cancel = real_timer_cancel,
    .random = real_random,
    .call = real_call,
    .file_write = real_file_write,
    .file_append = real_file_append,
    .file_read = real_file_read,
    .file_remove = real_file_remove,
    .file_list = real_file_list,
    .file_watch = real_file_watch,
    .state_trial = real_state_trial,
    .descriptors = real_descriptors,
    .livelock_make = real_livelock_make,
    .livelock_drop = real_livelock_drop,
    .livelock_probe = real_livelock_probe,
    .livelock_watch = real_livelock_watch,
    .livelock_list = real_livelock_list,
    .livelock_remove = real_livelock_remove,
    .starter_spawn = real_starter_spawn,
    .starter_confirm = real_starter_confirm,
    .starter_drop = real_starter_drop,
    .job_signal = real_job_signal,
    .on_asked = real_on_asked,
};

/* --- life --- */

char *real_env_boot_id(GError **error)
{
    const char *given = g_getenv("FETTLE_BOOT_ID");

    if (given != NULL && given[0] != '\0')
        return g_strdup(given);
    char *text = NULL;
    if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &text, NULL, NULL)) {
        fettle_set_error(error, ENVIRONMENT, "cannot read the boot id of this host");
        return NULL;
    }
    return g_strstrip(text);
}

struct env *real_env_new(const char *root, const char *role, const struct real_env_options *options,
                         GError **error)
{
    struct real_env *self = g_new0(struct real_env, 1);

    loop_init();
    self->env.ops = &ops;
    self->env.tasks = task_group_new();
    self->role = g_strdup(role);
    self->livelocks = g_hash_table_new(g_str_hash, g_str_equal);
    self->watches = g_ptr_array_new_with_free_func(file_watch_free);
    self->env.role = self->role;
    self->paths = node_paths_new(root, error);
    bool made = options != NULL && options->folders_made;
    if (self->paths == NULL || (!made && !node_paths_make(self->paths, error)) ||
        (self->config = node_config_read(self->paths, error)) == NULL ||
        (self->boot_id = real_env_boot_id(error)) == NULL) {
        real_env_free(&self->env);
        return NULL;
    }
    self->env.node_uuid = self->config->node_uuid;
    self->env.boot_id = self->boot_id;
    self->env.storage_host = *self->config->storage_host ? self->config->storage_host : NULL;
    g_autofree char *programs = starter_bin_folder(options != NULL ? options->bin_folder : NULL);
    self->nursery = nursery_new(self->paths, programs);
    self->client = rpc_client_new(self->paths, self->config->node_uuid, role);
    return &self->env;
}

static void drop_livelocks(struct real_env *self)
{
    g_autoptr(GList) all = g_hash_table_get_values(self->livelocks);

    for (GList *link = all; link != NULL; link = link->next)
        livelock_drop(link->data);
    g_hash_table_unref(self->livelocks);
}

void real_env_free(struct env *env)
{
    struct real_env *self = real(env);

    if (self == NULL)
        return;
    task_group_kill(self->env.tasks);
    task_group_unref(self->env.tasks);
    rpc_client_free(self->client);
    nursery_free(self->nursery);
    livelock_watcher_free(self->watcher);
    g_ptr_array_unref(self->watches);
    drop_livelocks(self);
    node_paths_free(self->paths);
    node_config_free(self->config);
    g_free(self->boot_id);
    g_free(self->role);
    g_free(self);
}

void real_env_take_livelock(struct env *env, struct livelock *livelock)
{
    g_hash_table_insert(real(env)->livelocks, (char *)livelock_name(livelock), livelock);
}

const struct node_paths *real_env_paths(const struct env *env)
{
    return real(env)->paths;
}

const struct node_config *real_env_config(const struct env *env)
{
    return real(env)->config;
}

void real_env_set_call(struct env *env, real_env_call call, void *carrier)
{
    real(env)->call = call;
    real(env)->carrier = carrier;
}

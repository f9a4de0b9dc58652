/* A copy of the configuration that follows the master's wconfd; see follow.h. */
#include "core/config/follow.h"

#define FOLLOW_WAIT_MS 30000   /* of one wait_changes */
#define FOLLOW_PAUSE_MS 100    /* after a failure */
#define FOLLOW_REFUSED_MS 5000 /* after one that will not pass by itself */
#define FOLLOW_PATIENCE_MS                                                                         \
    10000 /* with a wconfd that is away, for a commit that has surely not arrived */
#define FOLLOW_UNKNOWN_MS 60000 /* the same for a commit that may have */

/* Somebody who waits until the copy has a serial. */
struct serial_wait {
    struct promise promise;
    guint64 serial;
    bool late; /* its time is over */
};

struct follow {
    const struct env *env;
    struct config *config;
    const char *node; /* whose wconfd it asks */
    guint64 epoch;
    guint64 job;                     /* the copy is for its process; 0: everything */
    GPtrArray *instances;            /* of char *: of all instances it has these; NULL: all */
    GHashTable *names;               /* set of the same, borrowed */
    GPtrArray *kinds;                /* borrowed names of those that it has; empty: all */
    bool (*wants)(const char *kind); /* NULL: all */
    bool all_kinds; /* this master knows not all of them, and is asked for everything */
    void (*changed)(const GPtrArray *changes, void *data);
    void *data;
    gint64 heard_ms;    /* boot clock: the last answer */
    bool silent;        /* none has come to the last question */
    bool following;     /* a task of its own keeps it up to date */
    bool ended;         /* freed by its owner; the task frees the rest */
    GPtrArray *waiting; /* struct serial_wait, of tasks */
};

struct follow *follow_new(const struct env *env,
                          void (*changed)(const GPtrArray *changes, void *data), void *data)
{
    struct follow *follow = g_new0(struct follow, 1);
    follow->env = env;
    follow->node = NODE_LOCAL;
    follow->config = config_new();
    follow->changed = changed;
    follow->data = data;
    follow->waiting = g_ptr_array_new();
    return follow;
}

void follow_from_anywhere(struct follow *follow)
{
    follow->node = NODE_MASTER;
}

void follow_only(struct follow *follow, bool (*wants)(const char *kind))
{
    size_t count;
    const struct record *const *kinds = object_table(&count);
    follow->wants = wants;
    follow->kinds = g_ptr_array_new();
    for (size_t i = 0; i < count; i++)
        if (wants(kinds[i]->name))
            g_ptr_array_add(follow->kinds, (char *)kinds[i]->name);
    config_set_kinds(follow->config, wants);
}

void follow_for_job(struct follow *follow, guint64 job, const GPtrArray *instances)
{
    follow->job = job;
    if (!instances)
        return;
    follow->instances = g_ptr_array_new_with_free_func(g_free);
    follow->names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < instances->len; i++) {
        g_ptr_array_add(follow->instances, g_strdup(instances->pdata[i]));
        g_hash_table_add(follow->names, follow->instances->pdata[i]);
    }
    config_set_names(follow->config, follow->names);
}

static void follow_destroy(struct follow *follow)
{
    config_free(follow->config);
    g_clear_pointer(&follow->names, g_hash_table_unref);
    g_clear_pointer(&follow->instances, g_ptr_array_unref);
    g_clear_pointer(&follow->kinds, g_ptr_array_unref);
    g_ptr_array_unref(follow->waiting);
    g_free(follow);
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    follow->ended = true;
    if (!follow->following)
        follow_destroy(follow);
}

const struct config *follow_config(const struct follow *follow)
{
    return follow->config;
}

guint64 follow_epoch(const struct follow *follow)
{
    return follow->epoch;
}

struct stamp follow_stamp(const struct follow *follow)
{
    return (struct stamp){config_history(follow_config(follow)), follow_epoch(follow)};
}

gint64 follow_silent_ms(const struct follow *follow)
{
    return follow->silent ? MAX(1, follow->env->ops->boot_ms(follow->env) - follow->heard_ms) : 0;
}

/* --- reading --- */

/* wconfd is away, starting, or not the master: it may be back soon. */
static bool is_passing(const GError *error)
{
    return fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, TIMEOUT) ||
           fettle_error_is(error, UNKNOWN_RESULT) || fettle_error_is(error, TEMPORARY) ||
           fettle_error_is(error, NOT_MASTER);
}

static void wake_waiting(struct follow *follow)
{
    for (guint i = follow->waiting->len; i > 0; i--) {
        struct serial_wait *wait = follow->waiting->pdata[i - 1];
        if (config_serial(follow->config) < wait->serial)
            continue;
        g_ptr_array_remove_index(follow->waiting, i - 1);
        if (!wait->promise.done) /* it was late in this very turn */
            promise_complete(&wait->promise);
    }
}

/* A newer master has objects of kinds that this process knows nothing of, and does without; an
 * older one sends kinds that were not asked for. */
static void drop_others(const struct follow *follow, GPtrArray *changes)
{
    guint kept = 0;
    for (guint i = 0; i < changes->len; i++) {
        struct change *change = changes->pdata[i];
        if (!object_record(change->kind) || (follow->wants && !follow->wants(change->kind)))
            continue;
        changes->pdata[i] = changes->pdata[kept];
        changes->pdata[kept++] = change;
    }
    g_ptr_array_set_size(changes, (gint)kept);
}

/* A snapshot is read into a new copy first, so that a bad one leaves the old copy whole. */
static bool apply_snapshot(struct follow *follow, const struct changes *answer, GError **error)
{
    struct config *fresh = config_new();
    config_set_names(fresh, follow->names);
    config_set_kinds(fresh, follow->wants);
    for (guint i = 0; i < answer->changes->len; i++) {
        if (!config_apply(fresh, answer->changes->pdata[i], error)) {
            config_free(fresh);
            return false;
        }
    }
    config_free(follow->config);
    follow->config = fresh;
    return true;
}

static bool apply_deltas(struct follow *follow, const struct changes *answer, GError **error)
{
    for (guint i = 0; i < answer->changes->len; i++) {
        if (!config_apply(follow->config, answer->changes->pdata[i], error)) {
            config_set_position(follow->config, 0,
                                0); /* half of it: a snapshot is asked for next */
            return false;
        }
    }
    return true;
}

/* Two fetches may be under way at once; what an older one brings is dropped. */
static bool apply(struct follow *follow, const struct changes *answer, GError **error)
{
    const struct stamp told = {answer->history, answer->epoch};
    bool other = answer->history != config_history(follow->config);
    if (stamp_compare(told, follow_stamp(follow)) < 0)
        return true;
    other = other || answer->epoch != follow->epoch;
    follow->all_kinds = follow->all_kinds && answer->epoch == follow->epoch;
    follow->epoch = answer->epoch;
    drop_others(follow, answer->changes);
    if (!other && !answer->snapshot && answer->serial <= config_serial(follow->config))
        return true;
    if (!other && answer->snapshot && answer->serial < config_serial(follow->config))
        return true;
    if (!(answer->snapshot ? apply_snapshot(follow, answer, error)
                           : apply_deltas(follow, answer, error)))
        return false;
    config_set_position(follow->config, answer->history, answer->serial);
    wake_waiting(follow);
    if (follow->changed)
        follow->changed(answer->snapshot ? NULL : answer->changes, follow->data);
    return true;
}

static void *ask(const struct follow *follow, const char *method, const void *args, GError **error)
{
    struct stamp stamp = {config_history(follow->config), follow->epoch};
    return env_call_record(follow->env, follow->node, ROLE_WCONFD, method, args, stamp, 0, 0,
                           error);
}

/* What is too much for one answer comes in pieces, of different moments. The position is that of
 * the first. */
static bool fetch_pieces(const struct follow *follow, struct changes *whole, GError **error)
{
    for (bool more = true; more;) {
        char none[] = "";
        const struct change *last =
            whole->changes->len ? whole->changes->pdata[whole->changes->len - 1] : NULL;
        struct snapshot_args args = {.kind = last ? last->kind : none,
                                     .key = last ? last->key : none,
                                     .job = follow->job,
                                     .kinds = follow->all_kinds ? NULL : follow->kinds};
        record_autoptr(snapshot_piece) piece = ask(follow, "snapshot", &args, error);
        if (!piece)
            return false;
        if (last && (piece->history != whole->history || piece->epoch != whole->epoch)) {
            fettle_set_error(error, TEMPORARY, "the master has changed in between; try again");
            return false;
        }
        if (!last) {
            whole->history = piece->history;
            whole->epoch = piece->epoch;
            whole->serial = piece->serial;
        }
        more = piece->more && piece->changes->len > 0;
        g_ptr_array_extend_and_steal(whole->changes, g_ptr_array_ref(piece->changes));
    }
    return true;
}

/* With all that has changed since the first piece they are what the master had at the end. */
static bool add_rest(struct changes *whole, struct changes *rest, GError **error)
{
    if (rest->snapshot || rest->history != whole->history || rest->epoch != whole->epoch ||
        (rest->more && rest->serial <= whole->serial)) {
        fettle_set_error(error, TEMPORARY,
                         "while the configuration was fetched the master has changed, or more "
                         "has changed than it can tell; try again");
        return false;
    }
    g_ptr_array_extend_and_steal(whole->changes, g_ptr_array_ref(rest->changes));
    whole->serial = rest->serial;
    return true;
}

/* A master of the version before may know not all of the kinds. */
static struct changes *ask_changes(struct follow *follow, guint64 history, guint64 serial,
                                   guint wait_ms, bool part, GError **error)
{
    struct wait_changes_args args = {.history = history,
                                     .serial = serial,
                                     .wait_ms = wait_ms,
                                     .job = follow->job,
                                     .named = follow->instances != NULL,
                                     .instances = follow->instances,
                                     .part = part,
                                     .kinds = follow->all_kinds ? NULL : follow->kinds};
    g_autoptr(GError) local = NULL;
    struct changes *answer = ask(follow, "wait_changes", &args, &local);
    if (!answer && args.kinds && fettle_error_is(local, WRONG_INPUT)) {
        g_clear_error(&local);
        follow->all_kinds = true;
        args.kinds = NULL;
        answer = ask(follow, "wait_changes", &args, &local);
    }
    if (local)
        g_propagate_error(error, g_steal_pointer(&local));
    return answer;
}

/* Everything, from a master that has said so. */
static bool fetch_whole(struct follow *follow, struct changes *whole, GError **error)
{
    bool more = true, ok = fetch_pieces(follow, whole, error);
    while (more && ok) {
        record_autoptr(changes) rest =
            ask_changes(follow, whole->history, whole->serial, 0, true, error);
        ok = rest && add_rest(whole, rest, error);
        more = ok && rest->more;
    }
    return ok;
}

/* What came since that position. */
static struct changes *fetch_since(struct follow *follow, guint64 history, guint64 serial,
                                   guint wait_ms, GError **error)
{
    record_autoptr(changes) answer = ask_changes(follow, history, serial, wait_ms, false, error);
    if (!answer || (answer->pieces && !fetch_whole(follow, answer, error)))
        return NULL;
    return g_steal_pointer(&answer);
}

/* A later mastership tells what came since a serial of the one before. It may lack what that one
 * has told last, and have used its serials for something else. */
static bool may_be_astray(const struct follow *follow, const struct changes *answer)
{
    return !answer->snapshot && follow->epoch && answer->epoch > follow->epoch;
}

static bool fetch(struct follow *follow, guint wait_ms, GError **error)
{
    const struct config *copy = follow->config;
    record_autoptr(changes) answer =
        fetch_since(follow, config_history(copy), config_serial(copy), wait_ms, error);
    if (answer && !follow->ended && may_be_astray(follow, answer)) {
        changes_free(answer);
        answer = fetch_since(follow, 0, 0, 0, error);
    }
    if (answer) {
        follow->silent = false;
        follow->heard_ms = follow->env->ops->boot_ms(follow->env);
    }
    return answer && (follow->ended || apply(follow, answer, error));
}

bool follow_refresh(struct follow *follow, GError **error)
{
    return fetch(follow, 0, error);
}

static void follow_task(void *data)
{
    struct follow *follow = data;
    bool alive = true;
    while (alive && !follow->ended) {
        g_autoptr(GError) error = NULL;
        guint wait_ms =
            follow->silent ? 0 : FOLLOW_WAIT_MS; /* what is said shows that it is there */
        if (fetch(follow, wait_ms, &error) || follow->ended)
            continue;
        follow->silent = true;
        alive = env_sleep(follow->env, is_passing(error) ? FOLLOW_PAUSE_MS : FOLLOW_REFUSED_MS);
    }
    follow->following = false;
    if (follow->ended)
        follow_destroy(follow);
}

bool follow_start(struct follow *follow, GError **error)
{
    for (;;) {
        g_autoptr(GError) local = NULL;
        if (fetch(follow, 0, &local))
            break;
        if (!is_passing(local) || !env_sleep(follow->env, FOLLOW_PAUSE_MS)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
    }
    follow->following = true;
    task_spawn(follow->env->tasks, follow_task, follow);
    return true;
}

/* --- committing --- */

/* The change is stored; that wconfd is restarted at this moment must not look like a failure. */
static bool refresh_after_commit(struct follow *follow, GError **error)
{
    gint64 begun = follow->env->ops->boot_ms(follow->env);
    for (;;) {
        g_autoptr(GError) local = NULL;
        if (follow_refresh(follow, &local))
            return true;
        gint64 waited = follow->env->ops->boot_ms(follow->env) - begun;
        if (is_passing(local) && waited < FOLLOW_UNKNOWN_MS &&
            env_sleep(follow->env, FOLLOW_PAUSE_MS))
            continue;
        fettle_set_error(error, UNKNOWN_RESULT,
                         "the change is stored, but the configuration cannot be read: %s",
                         local->message);
        return false;
    }
}

static void late_cb(void *data)
{
    struct serial_wait *wait = data;
    wait->late = true;
    if (!wait->promise.done) /* what it waits for may have come in this very turn */
        promise_complete(&wait->promise);
}

bool follow_wait_ms(struct follow *follow, guint64 serial, guint ms)
{
    struct serial_wait wait = {.serial = serial};
    if (config_serial(follow->config) >= serial)
        return true;
    g_ptr_array_add(follow->waiting, &wait);
    guint timer = follow->env->ops->timer(follow->env, ms, late_cb, &wait);
    bool alive = promise_wait(&wait.promise);
    if (!wait.late)
        follow->env->ops->timer_cancel(follow->env, timer);
    g_ptr_array_remove_fast(follow->waiting, &wait);
    return alive && config_serial(follow->config) >= serial;
}

bool follow_wait(struct follow *follow, guint64 serial, GError **error)
{
    struct serial_wait wait = {.serial = serial};
    if (!follow->following)
        return refresh_after_commit(follow, error);
    if (config_serial(follow->config) >= serial)
        return true;
    g_ptr_array_add(follow->waiting, &wait);
    if (promise_wait(&wait.promise))
        return true;
    g_ptr_array_remove_fast(follow->waiting, &wait);
    fettle_set_error(error, KILLED,
                     "the process ended while it waited for its copy of the configuration");
    return false;
}

/* Whether to ask once more, with the same id. `*unknown` remembers that an earlier try may have
 * been stored. */
static bool ask_again(const struct follow *follow, const GError *error, gint64 begun, bool *unknown)
{
    gint64 waited = follow->env->ops->boot_ms(follow->env) - begun;
    *unknown =
        *unknown || fettle_error_is(error, TIMEOUT) || fettle_error_is(error, UNKNOWN_RESULT);
    return is_passing(error) && waited < (*unknown ? FOLLOW_UNKNOWN_MS : FOLLOW_PATIENCE_MS) &&
           env_sleep(follow->env, FOLLOW_PAUSE_MS);
}

/* The serial of what is stored; 0: nothing is. */
static guint64 commit(struct follow *follow, const char *change, const struct owner *owner,
                      GPtrArray *changes, struct stamp stamp, guint job, GError **error)
{
    g_autofree char *commit_id = env_uuid(follow->env);
    struct commit_args args = {
        .owner = (struct owner *)owner, .commit_id = commit_id, .changes = changes};
    gint64 begun = follow->env->ops->boot_ms(follow->env);
    bool unknown = false;
    for (;;) {
        g_autoptr(GError) local = NULL;
        record_autoptr(commit_result) result = env_call_record(
            follow->env, NODE_LOCAL, ROLE_WCONFD, change, &args, stamp, job, 0, &local);
        if (result)
            return result->serial;
        if (ask_again(follow, local, begun, &unknown))
            continue;
        if (unknown && is_passing(local))
            fettle_set_error(error, UNKNOWN_RESULT, "whether the change is stored is unknown: %s",
                             local->message);
        else
            g_propagate_error(error, g_steal_pointer(&local));
        return 0;
    }
}

bool follow_commit(struct follow *follow, const char *change, const struct owner *owner,
                   GPtrArray *changes, struct stamp stamp, guint job, GError **error)
{
    guint64 serial = commit(follow, change, owner, changes, stamp, job, error);

    return serial > 0 && follow_wait(follow, serial, error);
}

bool follow_commit_last(struct follow *follow, const char *change, const struct owner *owner,
                        GPtrArray *changes, struct stamp stamp, guint job, GError **error)
{
    return commit(follow, change, owner, changes, stamp, job, error) > 0;
}

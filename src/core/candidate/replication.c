/* See replication.h. */
#include "core/candidate/replication.h"

#include <string.h>

#include "base/log.h"
#include "core/candidate/authority_key.h"
#include "core/host/announced.h"
#include "proto/records.h"

#define COPYING_WAIT_MS 20000u
#define COPYING_PAUSE_MS 300u /* after a failure */
#define COPYING_LOOK_MS 1000u /* between two looks whether there is somebody to ask */
#define COPYING_GATHER_MS                                                                          \
    100u /* with a replicated engine: what comes meanwhile comes in one answer, and is synced once \
          */

struct replication {
    const struct env *env;
    struct copy *copy;
    struct task_group *tasks; /* of its own, so that a question that waits can be given up */
    bool idle;                /* the task waits for an answer, or for its next question */
    bool own;                 /* this node's wconfd is the master */
    struct candidate_key *keyring;
    void (*changed)(void *data);
    void *data;
    gint64 contact_ms;
    char *why;
    char *damage; /* what of the copy is damaged; NULL: nothing that is known */
    gint64 scrub_ms;
    bool not_wanted;
    bool running; /* the task lives, and frees it if it has ended */
    bool stopping, ended;
    struct stamp
        asked_of; /* the newest mastership that was announced when the question was asked */
    guint watch;  /* timer: whether it still is */
    bool turns;   /* it is not: the question is given up, and the task starts anew */
    struct promise *stopped; /* of replication_stop() */
};

struct replication *replication_new(const struct env *env, struct copy *copy,
                                    void (*changed)(void *data), void *data)
{
    struct replication *copying = g_new0(struct replication, 1);
    copying->env = env;
    copying->copy = copy;
    copying->tasks = task_group_new();
    copying->keyring = candidate_key_new(env);
    copying->changed = changed;
    copying->data = data;
    copying->contact_ms = -1;
    return copying;
}

static void copying_destroy(struct replication *copying)
{
    task_group_unref(copying->tasks);
    candidate_key_free(copying->keyring);
    g_free(copying->why);
    g_free(copying->damage);
    g_free(copying);
}

void replication_free(struct replication *copying)
{
    if (!copying)
        return;
    copying->ended = copying->stopping = true;
    if (copying->running)
        task_group_kill(copying->tasks);
    else
        copying_destroy(copying);
}

bool replication_stop(struct replication *copying)
{
    struct promise stopped = {0};
    copying->stopping = true;
    if (!copying->running)
        return true;
    copying->stopped = &stopped;
    if (copying->idle)
        task_group_kill(copying->tasks);
    bool alive = promise_wait(&stopped);
    copying->stopped = NULL;
    return alive;
}

void replication_state(const struct replication *copying, struct replication_state *ret_state)
{
    *ret_state = (struct replication_state){copying->contact_ms,
                                            copying->damage ? copying->damage : copying->why,
                                            copying->not_wanted, copying->damage != NULL};
}

/* --- what is told --- */

/* `why` NULL: all is well. Said once when it changes. */
static void tell(struct replication *copying, const char *why)
{
    if (copying->ended || g_strcmp0(copying->why, why) == 0)
        return;
    g_free(copying->why);
    copying->why = g_strdup(why);
    if (why && copying->not_wanted)
        log_info("", "no copy of the configuration is kept here: %s", why);
    else if (why)
        log_warning("", "the copy of the configuration does not go on: %s", why);
    else
        log_info("", "the copy of the configuration follows its master");
    if (copying->changed)
        copying->changed(copying->data);
}

static void heard(struct replication *copying)
{
    copying->contact_ms = copying->env->ops->boot_ms(copying->env);
    copying->not_wanted = false;
}

/* --- calls to the master --- */

/* What is on its way to the disk is not given up, a question is. */
static void *call_master(struct replication *copying, const char *method, const void *args,
                         struct stamp stamp, guint timeout_ms, GError **error)
{
    const char *master = copying->own ? NODE_LOCAL : NODE_MASTER;
    if (copying->stopping) {
        fettle_set_error(error, KILLED, "the copy is not kept up to date any more");
        return NULL;
    }
    copying->idle = true;
    void *answer = env_call_record(copying->env, master, ROLE_WCONFD, method, args, stamp, 0,
                                   timeout_ms, error);
    copying->idle = false;
    return answer;
}

/* --- a master that is not the newest any more --- */

static struct stamp announced_stamp(const struct replication *copying)
{
    record_autoptr(announce_args) announced = announced_read(copying->env);
    return announced ? (struct stamp){announced->history, announced->epoch} : (struct stamp){0};
}

/* One that stands still would keep the question for as long as the question may take. */
static void watch_cb(void *data)
{
    struct replication *copying = data;
    struct stamp stamp = announced_stamp(copying);
    copying->watch = 0;
    copying->turns = stamp_compare(stamp, copying->asked_of) > 0;
    if (copying->turns)
        task_group_kill(copying->tasks);
    else
        copying->watch = copying->env->ops->timer(copying->env, COPYING_LOOK_MS, watch_cb, copying);
}

static void watch_master(struct replication *copying)
{
    if (copying->own)
        return;
    copying->asked_of = announced_stamp(copying);
    copying->watch = copying->env->ops->timer(copying->env, COPYING_LOOK_MS, watch_cb, copying);
}

static void watch_end(struct replication *copying)
{
    if (copying->watch)
        copying->env->ops->timer_cancel(copying->env, copying->watch);
    copying->watch = 0;
}

static struct changes *ask(struct replication *copying, GError **error)
{
    struct copy_position at;
    char digest[20];
    copying->copy->ops->position(copying->copy, &at);
    g_snprintf(digest, sizeof digest, "%" G_GINT64_MODIFIER "x", at.digest);
    /* A retired copy may have missed anything: it begins anew. So does a damaged one, which the
     * master does not count any more from then on. */
    bool usable = at.role == COPY_FOLLOWS && !copying->damage;
    /* The first answer tells that there is a master, and is not waited for. */
    guint64 wait_ms = copying->contact_ms < 0 ? 0 : COPYING_WAIT_MS;
    struct follow_args args = {.history = usable ? at.history : 0,
                               .serial = usable ? at.serial : 0,
                               .digest = digest,
                               .authority = candidate_key_has(copying->keyring),
                               .wait_ms = wait_ms};
    struct stamp stamp = {at.history, at.epoch};
    watch_master(copying);
    struct changes *answer =
        call_master(copying, "follow", &args, stamp, COPYING_WAIT_MS + TIMEOUT_QUICK_MS, error);
    watch_end(copying);
    return answer;
}

/* Both are marked with the copy's own position: they are answered under any. */
static struct stamp copy_stamp(const struct replication *copying)
{
    struct copy_position at;
    copying->copy->ops->position(copying->copy, &at);
    return (struct stamp){at.history, at.epoch};
}

static struct snapshot_piece *ask_piece(struct replication *copying, const struct change *last,
                                        GError **error)
{
    char none[] = "";
    struct snapshot_args args = {.kind = last ? last->kind : none, .key = last ? last->key : none};
    return call_master(copying, "snapshot", &args, copy_stamp(copying), 0, error);
}

static struct commit_ids_piece *ask_ids(struct replication *copying, guint64 after, GError **error)
{
    struct commit_ids_args args = {.after = after};
    return call_master(copying, "commit_ids", &args, copy_stamp(copying), 0, error);
}

/* What has changed while the pieces came, or the first part of it. */
static struct changes *ask_rest(struct replication *copying, const struct copy_batch *at,
                                GError **error)
{
    struct wait_changes_args args = {.history = at->history, .serial = at->serial, .part = true};
    return call_master(copying, "wait_changes", &args, copy_stamp(copying), 0, error);
}

/* --- a refill --- */

static bool is_same_master(guint64 history, guint64 epoch, const struct copy_batch *at,
                           GError **error)
{
    if (history == at->history && epoch == at->epoch)
        return true;
    fettle_set_error(error, TEMPORARY, "the master has changed while the copy was filled");
    return false;
}

/* The objects behind `last`, which becomes the last one of them. The first piece says where `at` is
 * to begin. */
static bool fetch_piece(struct replication *copying, struct change **last, struct copy_batch *at,
                        bool *ret_more, GError **error)
{
    struct copy *copy = copying->copy;
    record_autoptr(snapshot_piece) piece = ask_piece(copying, *last, error);
    if (!piece || copying->stopping)
        return false;
    if (at->history == 0)
        *at = (struct copy_batch){piece->history, piece->epoch, piece->serial, NULL, at->ids};
    if (!is_same_master(piece->history, piece->epoch, at, error) ||
        !copy->ops->refill_piece(copy, piece->changes, error))
        return false;
    *ret_more = piece->more && piece->changes->len > 0;
    if (*ret_more) {
        if (*last)
            change_free(*last);
        *last = change_copy(piece->changes->pdata[piece->changes->len - 1]);
    }
    return true;
}

/* The pieces are of different moments; with what has changed since the first, up to `at`, they are
 * what the master had there. It is fetched behind each piece, part by part: so it never is more
 * than the master's log of changes reaches. */
static bool fetch_rest(struct replication *copying, struct copy_batch *at, GError **error)
{
    for (bool more = true; more;) {
        record_autoptr(changes) rest = ask_rest(copying, at, error);
        if (!rest)
            return false;
        more = rest->more;
        if (rest->snapshot || rest->history != at->history || rest->epoch != at->epoch ||
            (more && rest->serial <= at->serial)) {
            fettle_set_error(error, TEMPORARY,
                             "while the copy was filled the master has changed, or more has "
                             "changed than it can tell; it is filled again");
            return false;
        }
        if (copying->stopping ||
            !copying->copy->ops->refill_piece(copying->copy, rest->changes, error))
            return false;
        at->serial = rest->serial;
    }
    return true;
}

/* All objects, as one master had them at the serial that `at` has then. */
static bool fetch_all(struct replication *copying, struct copy_batch *at, GError **error)
{
    struct change *last = NULL;
    bool more = true, ok = true;
    while (more && ok)
        ok = fetch_piece(copying, &last, at, &more, error) && fetch_rest(copying, at, error);
    if (last)
        change_free(last);
    return ok;
}

/* Of the commits that the copy has then: by them it knows those that are repeated, should it be
 * the engine one day. */
static bool fetch_ids(struct replication *copying, const struct copy_batch *at, GPtrArray *ids,
                      GError **error)
{
    guint64 after = 0;
    bool more = true, ok = true;
    while (more && ok) {
        record_autoptr(commit_ids_piece) piece = ask_ids(copying, after, error);
        if (!piece && error && fettle_error_is(*error, PROTOCOL)) {
            g_clear_error(error); /* a master of the version before knows nothing of them */
            return true;
        }
        ok = piece && !copying->stopping;
        ok = ok && is_same_master(piece->history, piece->epoch, at, error);
        more = ok && piece->more;
        for (guint i = 0; ok && i < piece->commits->len; i++) {
            const struct stored_commit *commit = piece->commits->pdata[i];
            more = more && commit->serial > after;
            after = commit->serial;
            if (after <= at->serial)
                g_ptr_array_add(ids, stored_commit_copy(commit));
        }
        more = more && piece->commits->len > 0;
    }
    return ok;
}

/* A master that is over, and has not heard so, would give what the copy had long ago. */
static bool is_not_older(const struct replication *copying, guint64 history, guint64 epoch,
                         GError **error)
{
    struct copy_position at;
    copying->copy->ops->position(copying->copy, &at);
    if (at.history != history || epoch >= at.epoch)
        return true;
    fettle_set_error(error, TEMPORARY,
                     "who was asked is master of epoch %" G_GUINT64_FORMAT
                     ", and the copy is of epoch %" G_GUINT64_FORMAT " already",
                     epoch, at.epoch);
    return false;
}

/* Only now, as there is a master that gives another: what is damaged may be all that is left. */
static bool put_damaged_away(struct replication *copying, GError **error)
{
    if (!copying->damage)
        return true;
    if (!copying->copy->ops->renew(copying->copy, error))
        return false;
    g_clear_pointer(&copying->damage, g_free);
    return true;
}

static bool refill(struct replication *copying, const char *why, GError **error)
{
    struct copy *copy = copying->copy;
    struct copy_batch at = {0};
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func((GDestroyNotify)stored_commit_free);
    log_info("", "the copy of the configuration is filled anew: %s", why);
    at.ids = ids;
    return put_damaged_away(copying, error) && copy->ops->refill_begin(copy, error) &&
           fetch_all(copying, &at, error) && fetch_ids(copying, &at, ids, error) &&
           is_not_older(copying, at.history, at.epoch, error) &&
           copy->ops->refill_end(copy, &at, error);
}

/* --- the task --- */

static bool take(struct replication *copying, const struct changes *answer, GError **error)
{
    struct copy_position at;
    copying->copy->ops->position(copying->copy, &at);
    if (!is_not_older(copying, answer->history, answer->epoch, error))
        return false;
    if (answer->snapshot)
        return refill(copying, answer->why && *answer->why ? answer->why : "the master says so",
                      error);
    if (answer->serial <= at.serial && answer->epoch <= at.epoch)
        return true;
    struct copy_batch batch = {answer->history, answer->epoch, answer->serial, answer->changes,
                               answer->commits};
    return copying->copy->ops->apply(copying->copy, &batch, error);
}

/* Not a candidate: nobody is to answer from what is here. */
static void retire(struct replication *copying)
{
    struct copy_position at;
    g_autoptr(GError) error = NULL;
    copying->not_wanted = true;
    copying->copy->ops->position(copying->copy, &at);
    if (at.role == COPY_FOLLOWS && at.history &&
        !copying->copy->ops->set_role(copying->copy, COPY_RETIRED, NULL, &error))
        log_error("", "%s", error->message);
}

static bool is_candidate(const struct announce_args *announced, const char *uuid)
{
    for (guint i = 0; i < announced->members->len; i++) {
        const struct member *member = announced->members->pdata[i];
        if (!strcmp(member->uuid, uuid))
            return member->master_candidate;
    }
    return false;
}

/* Whether there is somebody to ask, by what was announced here. A copy that is in use asks in any
 * case: it has to be told that it is not wanted any more. */
static bool may_ask(struct replication *copying)
{
    const char *self = copying->env->node_uuid;
    struct copy_position at;
    if (copying->own)
        return true;
    record_autoptr(announce_args) announced = announced_read(copying->env);
    copying->copy->ops->position(copying->copy, &at);
    if (announced && !strcmp(announced->master_node, self)) {
        /* With a replicated engine the seat looks for the next one. */
        if (!copying->env->engine)
            tell(copying, "this node was announced as the master, but its store is missing or was "
                          "put away; it waits for another one");
        return false;
    }
    if (!announced || (at.role == COPY_FOLLOWS && at.history) || is_candidate(announced, self))
        return true;
    if (!copying->not_wanted) {
        copying->not_wanted = true;
        tell(copying, "this node is no master candidate");
    }
    candidate_key_leave(copying->keyring);
    return false;
}

/* Nobody waits for a copy of what a replicated engine has stored already, so it need not be synced
 * for every commit: that would cost the nodes as much as the engine itself. */
static guint gather_ms(const struct replication *copying)
{
    const struct engine *engine = copying->env->engine;
    return engine && engine->replicated ? COPYING_GATHER_MS : 0;
}

/* --- the scrub --- */

void replication_damaged(struct replication *copying, const char *what)
{
    if (copying->ended || copying->damage)
        return;
    copying->damage = g_strdup(what);
    log_error("", "the copy of the configuration does not count any more: %s", what);
    if (copying->changed)
        copying->changed(copying->data);
}

/* Behind an answer that has brought nothing, so that nobody waits for what the copy has; sometimes
 * behind any. */
static void scrub(struct replication *copying, bool idle)
{
    struct copy *copy = copying->copy;
    g_autoptr(GError) error = NULL;
    gint64 now = copying->env->ops->boot_ms(copying->env);
    if (!copy->ops->scrub || copying->damage ||
        now - copying->scrub_ms < (idle ? SCRUB_STEP_MS : SCRUB_LONGEST_MS))
        return;
    copying->scrub_ms = now;
    if (!copy->ops->scrub(copy, &error) && fettle_error_is(error, CORRUPT))
        replication_damaged(copying, error->message);
}

/* How long to pause before the next question. */
static guint once(struct replication *copying)
{
    g_autoptr(GError) error = NULL;
    if (!may_ask(copying))
        return COPYING_LOOK_MS;
    record_autoptr(changes) answer = ask(copying, &error);
    if (copying->stopping || task_killed())
        return 0;
    if (answer) {
        heard(copying);
        if (take(copying, answer, &error)) {
            tell(copying, NULL);
            if (!copying->own)
                candidate_key_keep(copying->keyring);
            scrub(copying, answer->changes->len == 0);
            return answer->changes->len > 0 ? gather_ms(copying) : 0;
        }
    } else if (fettle_error_is(error, PERMISSION)) {
        heard(copying);
        retire(copying);
        tell(copying, error->message);
        candidate_key_leave(copying->keyring);
        return COPYING_LOOK_MS;
    }
    if (error && !fettle_error_is(error, KILLED))
        tell(copying, error->message);
    scrub(copying, true);
    return COPYING_PAUSE_MS;
}

static void copying_task(void *data)
{
    struct replication *copying = data;
    bool alive = true;
    while (alive && !copying->stopping && !task_killed()) {
        guint pause = once(copying);
        copying->idle = true;
        alive = pause == 0 || copying->stopping || env_sleep(copying->env, pause);
        copying->idle = false;
    }
    copying->running = false;
    if (copying->stopped)
        promise_complete(copying->stopped);
    if (copying->ended)
        copying_destroy(copying);
    else if (copying->turns && !copying->stopping)
        replication_start(copying);
}

void replication_start(struct replication *copying)
{
    if (copying->running)
        return;
    copying->running = true;
    copying->stopping = copying->turns = false;
    task_group_unref(copying->tasks);
    copying->tasks = task_group_new();
    task_spawn(copying->tasks, copying_task, copying);
}

void replication_own(struct replication *copying)
{
    copying->own = true;
}

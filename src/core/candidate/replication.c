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
    struct replication *replication = g_new0(struct replication, 1);
    replication->env = env;
    replication->copy = copy;
    replication->tasks = task_group_new();
    replication->keyring = candidate_key_new(env);
    replication->changed = changed;
    replication->data = data;
    replication->contact_ms = -1;
    return replication;
}

static void replication_destroy(struct replication *replication)
{
    task_group_unref(replication->tasks);
    candidate_key_free(replication->keyring);
    g_free(replication->why);
    g_free(replication->damage);
    g_free(replication);
}

void replication_free(struct replication *replication)
{
    if (!replication)
        return;
    replication->ended = replication->stopping = true;
    if (replication->running)
        task_group_kill(replication->tasks);
    else
        replication_destroy(replication);
}

bool replication_stop(struct replication *replication)
{
    struct promise stopped = {0};
    replication->stopping = true;
    if (!replication->running)
        return true;
    replication->stopped = &stopped;
    if (replication->idle)
        task_group_kill(replication->tasks);
    bool alive = promise_wait(&stopped);
    replication->stopped = NULL;
    return alive;
}

void replication_state(const struct replication *replication, struct replication_state *ret_state)
{
    *ret_state = (struct replication_state){
        replication->contact_ms, replication->damage ? replication->damage : replication->why,
        replication->not_wanted, replication->damage != NULL};
}

/* --- what is told --- */

/* `why` NULL: all is well. Said once when it changes. */
static void tell(struct replication *replication, const char *why)
{
    if (replication->ended || g_strcmp0(replication->why, why) == 0)
        return;
    g_free(replication->why);
    replication->why = g_strdup(why);
    if (why && replication->not_wanted)
        log_info("", "no copy of the configuration is kept here: %s", why);
    else if (why)
        log_warning("", "the copy of the configuration does not go on: %s", why);
    else
        log_info("", "the copy of the configuration follows its master");
    if (replication->changed)
        replication->changed(replication->data);
}

static void heard(struct replication *replication)
{
    replication->contact_ms = replication->env->ops->boot_ms(replication->env);
    replication->not_wanted = false;
}

/* --- calls to the master --- */

/* What is on its way to the disk is not given up, a question is. */
static void *call_master(struct replication *replication, const char *method, const void *args,
                         struct stamp stamp, guint timeout_ms, GError **error)
{
    const char *master = replication->own ? NODE_LOCAL : NODE_MASTER;
    if (replication->stopping) {
        fettle_set_error(error, KILLED, "the copy is not kept up to date any more");
        return NULL;
    }
    replication->idle = true;
    void *answer = env_call_record(replication->env, master, ROLE_WCONFD, method, args, stamp, 0,
                                   timeout_ms, error);
    replication->idle = false;
    return answer;
}

/* --- a master that is not the newest any more --- */

static struct stamp announced_stamp(const struct replication *replication)
{
    record_autoptr(announce_args) announced = announced_read(replication->env);
    return announced ? (struct stamp){announced->history, announced->epoch} : (struct stamp){0};
}

/* One that stands still would keep the question for as long as the question may take. */
static void watch_cb(void *data)
{
    struct replication *replication = data;
    struct stamp stamp = announced_stamp(replication);
    replication->watch = 0;
    replication->turns = stamp_compare(stamp, replication->asked_of) > 0;
    if (replication->turns)
        task_group_kill(replication->tasks);
    else
        replication->watch =
            replication->env->ops->timer(replication->env, COPYING_LOOK_MS, watch_cb, replication);
}

static void watch_master(struct replication *replication)
{
    if (replication->own)
        return;
    replication->asked_of = announced_stamp(replication);
    replication->watch =
        replication->env->ops->timer(replication->env, COPYING_LOOK_MS, watch_cb, replication);
}

static void watch_end(struct replication *replication)
{
    if (replication->watch)
        replication->env->ops->timer_cancel(replication->env, replication->watch);
    replication->watch = 0;
}

static struct changes *ask(struct replication *replication, GError **error)
{
    struct copy_position at;
    char digest[20];
    replication->copy->ops->position(replication->copy, &at);
    g_snprintf(digest, sizeof digest, "%" G_GINT64_MODIFIER "x", at.digest);
    /* A retired copy may have missed anything: it begins anew. So does a damaged one, which the
     * master does not count any more from then on. */
    bool usable = at.role == COPY_FOLLOWS && !replication->damage;
    /* The first answer tells that there is a master, and is not waited for. */
    guint64 wait_ms = replication->contact_ms < 0 ? 0 : COPYING_WAIT_MS;
    struct follow_args args = {.history = usable ? at.history : 0,
                               .serial = usable ? at.serial : 0,
                               .digest = digest,
                               .authority = candidate_key_has(replication->keyring),
                               .key_of = (char *)candidate_key_of(replication->keyring),
                               .wait_ms = wait_ms,
                               .version = (char *)FETTLE_VERSION};
    struct stamp stamp = {at.history, at.epoch};
    watch_master(replication);
    struct changes *answer =
        call_master(replication, "follow", &args, stamp, COPYING_WAIT_MS + TIMEOUT_QUICK_MS, error);
    watch_end(replication);
    return answer;
}

/* Both are marked with the copy's own position: they are answered under any. */
static struct stamp copy_stamp(const struct replication *replication)
{
    struct copy_position at;
    replication->copy->ops->position(replication->copy, &at);
    return (struct stamp){at.history, at.epoch};
}

static struct snapshot_piece *ask_piece(struct replication *replication, const struct change *last,
                                        GError **error)
{
    char none[] = "";
    struct snapshot_args args = {.kind = last ? last->kind : none, .key = last ? last->key : none};
    return call_master(replication, "snapshot", &args, copy_stamp(replication), 0, error);
}

static struct commit_ids_piece *ask_ids(struct replication *replication, guint64 after,
                                        GError **error)
{
    struct commit_ids_args args = {.after = after};
    return call_master(replication, "commit_ids", &args, copy_stamp(replication), 0, error);
}

/* What has changed while the pieces came, or the first part of it. */
static struct changes *ask_rest(struct replication *replication, const struct copy_batch *at,
                                GError **error)
{
    struct wait_changes_args args = {.history = at->history, .serial = at->serial, .part = true};
    return call_master(replication, "wait_changes", &args, copy_stamp(replication), 0, error);
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
static bool fetch_piece(struct replication *replication, struct change **last,
                        struct copy_batch *at, bool *ret_more, GError **error)
{
    struct copy *copy = replication->copy;
    record_autoptr(snapshot_piece) piece = ask_piece(replication, *last, error);
    if (!piece || replication->stopping)
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
static bool fetch_rest(struct replication *replication, struct copy_batch *at, GError **error)
{
    for (bool more = true; more;) {
        record_autoptr(changes) rest = ask_rest(replication, at, error);
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
        if (replication->stopping ||
            !replication->copy->ops->refill_piece(replication->copy, rest->changes, error))
            return false;
        at->serial = rest->serial;
    }
    return true;
}

/* All objects, as one master had them at the serial that `at` has then. */
static bool fetch_all(struct replication *replication, struct copy_batch *at, GError **error)
{
    struct change *last = NULL;
    bool more = true, ok = true;
    while (more && ok)
        ok =
            fetch_piece(replication, &last, at, &more, error) && fetch_rest(replication, at, error);
    if (last)
        change_free(last);
    return ok;
}

/* Of the commits that the copy has then: by them it knows those that are repeated, should it be
 * the engine one day. */
static bool fetch_ids(struct replication *replication, const struct copy_batch *at, GPtrArray *ids,
                      GError **error)
{
    guint64 after = 0;
    bool more = true, ok = true;
    while (more && ok) {
        record_autoptr(commit_ids_piece) piece = ask_ids(replication, after, error);
        if (!piece && error && fettle_error_is(*error, PROTOCOL)) {
            g_clear_error(error); /* a master of the version before knows nothing of them */
            return true;
        }
        ok = piece && !replication->stopping;
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
static bool is_not_older(const struct replication *replication, guint64 history, guint64 epoch,
                         GError **error)
{
    struct copy_position at;
    replication->copy->ops->position(replication->copy, &at);
    if (at.history != history || epoch >= at.epoch)
        return true;
    fettle_set_error(error, TEMPORARY,
                     "who was asked is master of epoch %" G_GUINT64_FORMAT
                     ", and the copy is of epoch %" G_GUINT64_FORMAT " already",
                     epoch, at.epoch);
    return false;
}

/* Only now, as there is a master that gives another: what is damaged may be all that is left. */
static bool put_damaged_away(struct replication *replication, GError **error)
{
    if (!replication->damage)
        return true;
    if (!replication->copy->ops->renew(replication->copy, error))
        return false;
    g_clear_pointer(&replication->damage, g_free);
    return true;
}

static bool refill(struct replication *replication, const char *why, GError **error)
{
    struct copy *copy = replication->copy;
    struct copy_batch at = {0};
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func((GDestroyNotify)stored_commit_free);
    log_info("", "the copy of the configuration is filled anew: %s", why);
    at.ids = ids;
    return put_damaged_away(replication, error) && copy->ops->refill_begin(copy, error) &&
           fetch_all(replication, &at, error) && fetch_ids(replication, &at, ids, error) &&
           is_not_older(replication, at.history, at.epoch, error) &&
           copy->ops->refill_end(copy, &at, error);
}

/* --- the task --- */

static bool take(struct replication *replication, const struct changes *answer, GError **error)
{
    struct copy_position at;
    replication->copy->ops->position(replication->copy, &at);
    if (!is_not_older(replication, answer->history, answer->epoch, error))
        return false;
    if (answer->snapshot)
        return refill(replication, answer->why && *answer->why ? answer->why : "the master says so",
                      error);
    if (answer->serial <= at.serial && answer->epoch <= at.epoch)
        return true;
    struct copy_batch batch = {answer->history, answer->epoch, answer->serial, answer->changes,
                               answer->commits};
    return replication->copy->ops->apply(replication->copy, &batch, error);
}

/* Not a candidate: nobody is to answer from what is here. */
static void retire(struct replication *replication)
{
    struct copy_position at;
    g_autoptr(GError) error = NULL;
    replication->not_wanted = true;
    replication->copy->ops->position(replication->copy, &at);
    if (at.role == COPY_FOLLOWS && at.history &&
        !replication->copy->ops->set_role(replication->copy, COPY_RETIRED, NULL, &error))
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
static bool may_ask(struct replication *replication)
{
    const char *self = replication->env->node_uuid;
    struct copy_position at;
    if (replication->own)
        return true;
    record_autoptr(announce_args) announced = announced_read(replication->env);
    replication->copy->ops->position(replication->copy, &at);
    if (announced && !strcmp(announced->master_node, self)) {
        /* With a replicated engine the seat looks for the next one. */
        if (!replication->env->engine)
            tell(replication,
                 "this node was announced as the master, but its store is missing or was "
                 "put away; it waits for another one");
        return false;
    }
    if (!announced || (at.role == COPY_FOLLOWS && at.history) || is_candidate(announced, self))
        return true;
    if (!replication->not_wanted) {
        replication->not_wanted = true;
        tell(replication, "this node is no master candidate");
    }
    candidate_key_leave(replication->keyring);
    return false;
}

/* Nobody waits for a copy of what a replicated engine has stored already, so it need not be synced
 * for every commit: that would cost the nodes as much as the engine itself. */
static guint gather_ms(const struct replication *replication)
{
    const struct engine *engine = replication->env->engine;
    return engine && engine->replicated ? COPYING_GATHER_MS : 0;
}

/* --- the scrub --- */

void replication_damaged(struct replication *replication, const char *what)
{
    if (replication->ended || replication->damage)
        return;
    replication->damage = g_strdup(what);
    log_error("", "the copy of the configuration does not count any more: %s", what);
    if (replication->changed)
        replication->changed(replication->data);
}

/* Behind an answer that has brought nothing, so that nobody waits for what the copy has; sometimes
 * behind any. */
static void scrub(struct replication *replication, bool idle)
{
    struct copy *copy = replication->copy;
    g_autoptr(GError) error = NULL;
    gint64 now = replication->env->ops->boot_ms(replication->env);
    if (!copy->ops->scrub || replication->damage ||
        now - replication->scrub_ms < (idle ? SCRUB_STEP_MS : SCRUB_LONGEST_MS))
        return;
    replication->scrub_ms = now;
    if (!copy->ops->scrub(copy, &error) && fettle_error_is(error, CORRUPT))
        replication_damaged(replication, error->message);
}

/* How long to pause before the next question. */
static guint once(struct replication *replication)
{
    g_autoptr(GError) error = NULL;
    if (!may_ask(replication))
        return COPYING_LOOK_MS;
    record_autoptr(changes) answer = ask(replication, &error);
    if (replication->stopping || task_killed())
        return 0;
    if (answer) {
        heard(replication);
        if (take(replication, answer, &error)) {
            tell(replication, NULL);
            if (!replication->own)
                candidate_key_keep(replication->keyring);
            scrub(replication, answer->changes->len == 0);
            return answer->changes->len > 0 ? gather_ms(replication) : 0;
        }
    } else if (fettle_error_is(error, PERMISSION)) {
        heard(replication);
        retire(replication);
        tell(replication, error->message);
        candidate_key_leave(replication->keyring);
        return COPYING_LOOK_MS;
    }
    if (error && !fettle_error_is(error, KILLED))
        tell(replication, error->message);
    scrub(replication, true);
    return COPYING_PAUSE_MS;
}

static void replication_task(void *data)
{
    struct replication *replication = data;
    bool alive = true;
    while (alive && !replication->stopping && !task_killed()) {
        guint pause = once(replication);
        replication->idle = true;
        alive = pause == 0 || replication->stopping || env_sleep(replication->env, pause);
        replication->idle = false;
    }
    replication->running = false;
    if (replication->stopped)
        promise_complete(replication->stopped);
    if (replication->ended)
        replication_destroy(replication);
    else if (replication->turns && !replication->stopping)
        replication_start(replication);
}

void replication_start(struct replication *replication)
{
    if (replication->running)
        return;
    replication->running = true;
    replication->stopping = replication->turns = false;
    task_group_unref(replication->tasks);
    replication->tasks = task_group_new();
    task_spawn(replication->tasks, replication_task, replication);
}

void replication_own(struct replication *replication)
{
    replication->own = true;
}

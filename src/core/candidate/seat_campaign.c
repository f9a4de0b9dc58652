/*
 * Becoming master (docs/design/mastership.md): with the engine of this node's store at the start of
 * the process, with a replicated one whenever the seat is free.
 */
#include <string.h>

#include "base/log.h"
#include "core/candidate/seat_private.h"

#define OBSERVE_PAUSE_MS 500u

static void stepped_down(const GError *reason, void *data)
{
    seat_end(data, reason);
}

static bool has_begun(const struct wconf *wconf)
{
    guint64 history, epoch, serial;
    wconf_position(wconf, &history, &epoch, &serial);
    return epoch != 0;
}

bool seat_become_master(struct seat *seat, GError **error)
{
    GError *reason = NULL;
    seat->state = CAMPAIGNS;
    seat->wconf = wconf_new(seat->env);
    if (seat->word)
        wconf_put_on_record(seat->wconf, g_ptr_array_ref(seat->word), seat->word_since);
    if (wconf_start(seat->wconf, &reason)) {
        wconf_on_step_down(seat->wconf, stepped_down, seat);
        seat->state = IS_MASTER;
        g_clear_pointer(&seat->word, g_ptr_array_unref);
        seat_tell_role(seat);
        return true;
    }
    /* The seat is this node's, and what was begun with it may still be on its way in the engine:
     * the next process goes on with it. */
    if (seat->env->engine->replicated && has_begun(seat->wconf))
        seat_end(seat, reason);
    else
        wconf_free(g_steal_pointer(&seat->wconf));
    g_propagate_error(error, reason);
    return false;
}

/* --- a replicated engine --- */

/* `why` NULL: nothing keeps this node from being chosen. Said once when it changes. */
static void tell_trouble(struct seat *seat, const char *why)
{
    if (g_strcmp0(seat->trouble, why) == 0)
        return;
    g_free(seat->trouble);
    seat->trouble = g_strdup(why);
    if (why)
        log_warning("", "this node cannot become master: %s; trying on", why);
    else
        log_info("", "what kept this node from becoming master is over");
}

static void each_cluster(const char *kind, const char *key, guint64 version, json_t *object,
                         void *data)
{
    guint64 *engine = data;
    if (strcmp(kind, "cluster") != 0)
        return;
    record_autoptr(cluster) cluster = cluster_parse(object, RECORD_LAX, NULL);
    if (cluster)
        *engine = cluster->engine;
}

static bool copy_names(struct copy *copy, enum engine_kind kind)
{
    guint64 engine = G_MAXUINT64;
    return copy->ops->load(copy, each_cluster, &engine, NULL) && engine == kind;
}

/* A copy that names the engine has that from the step itself, or from a master of that engine. */
static bool copy_says_so(const struct seat *seat)
{
    return copy_names(seat->copy, ENGINE_KIND_ETCD);
}

bool seat_not_made(struct copy *copy, guint64 serial)
{
    struct copy_position at;
    copy->ops->position(copy, &at);
    return serial && at.role == COPY_FOLLOWS && at.serial >= serial &&
           copy_names(copy, ENGINE_KIND_SQLITE);
}

/* While a change of engine is under way the seat is free in the new one although the old one may
 * still have its master: only what follows the step is proof. */
static bool may_try(struct seat *seat)
{
    if (seat->undecided && (seat->observed.epoch || copy_says_so(seat))) {
        seat->undecided = false;
        g_clear_pointer(&seat->barred, g_free);
        log_info("", "the change of the engine was made");
    }
    if (seat->undecided && seat_not_made(seat->copy, seat->step)) {
        g_autoptr(GError) end = NULL;
        fettle_set_error(&end, TEMPORARY,
                         "the change of the engine was not made: the copy of this node has later "
                         "changes of the engine sqlite; starting anew");
        seat_end(seat, end);
    }
    return !seat->barred && !seat->demoted && seat->state == FOLLOWS;
}

static bool is_wanted(const struct seat *seat)
{
    struct replication_state state;
    replication_state(seat->replication, &state);
    return !state.not_wanted;
}

/* The copy goes on from this node's own stream, so that the next process, which may be a follower,
 * and rconfd find it up to date. */
static bool try_to_win(struct seat *seat, GError **error)
{
    if (!seat_become_master(seat, error)) {
        if (seat->state != ENDED)
            seat->state = FOLLOWS;
        return false;
    }
    if (replication_stop(seat->replication)) {
        replication_own(seat->replication);
        replication_start(seat->replication);
    }
    return true;
}

static bool is_passing(const GError *error)
{
    return fettle_error_is(error, NOT_MASTER) || fettle_error_is(error, TEMPORARY) ||
           fettle_error_is(error, PERMISSION);
}

/* That it is no candidate is true until there was another master: seen in the engine, or heard by
 * this node's copy between two looks. */
static void note_demotion(struct seat *seat, bool seen, const GError *error)
{
    struct replication_state copy;
    replication_state(seat->replication, &copy);
    if (error && fettle_error_is(error, PERMISSION)) {
        seat->demoted = true;
        seat->demoted_ms = seat->env->ops->boot_ms(seat->env);
    } else if ((seen && seat->observed.epoch &&
                strcmp(seat->observed.node, seat->env->node_uuid) != 0) ||
               copy.contact_ms > seat->demoted_ms) {
        seat->demoted = false;
    }
}

/* One look, and a try if the seat is free, or still kept for the process that was master here a
 * moment ago. */
static void look(struct seat *seat)
{
    struct engine *engine = seat->env->engine;
    g_autoptr(GError) error = NULL;
    struct mastership master;
    bool seen = engine->ops->observe(engine, &master, &error);
    if (task_killed())
        return;
    if (seen)
        seat->observed = master;
    bool is_free = seen && (!master.epoch || !strcmp(master.node, seat->env->node_uuid));
    if (may_try(seat) && is_free && is_wanted(seat) && try_to_win(seat, &error)) {
        tell_trouble(seat, NULL);
        return;
    }
    if (task_killed() || seat->state == ENDED)
        return;
    g_autoptr(GError) unfit = NULL;
    if (error && fettle_error_is(error, NOT_MASTER) && seat_take_engine(seat, &unfit))
        return;
    if (task_killed())
        return;
    note_demotion(seat, seen, error);
    if (unfit)
        tell_trouble(seat, unfit->message);
    else if (error && !is_passing(error))
        seat_end(seat, error);
    else if (error || !seat->demoted)
        tell_trouble(seat, error ? error->message : NULL);
}

static void candidate_task(void *data)
{
    struct seat *seat = data;
    bool alive = !task_killed(); /* else the engine is closed */
    while (alive && seat->state == FOLLOWS) {
        look(seat);
        alive = seat->state != FOLLOWS || env_sleep(seat->env, OBSERVE_PAUSE_MS);
    }
}

void seat_candidate_start(struct seat *seat)
{
    if (seat->barred)
        log_warning("", "this node does not become master by itself: %s", seat->barred);
    task_spawn(seat->env->tasks, candidate_task, seat);
}

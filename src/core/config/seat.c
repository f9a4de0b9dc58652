/* See seat.h. */
#include "core/config/seat.h"

#include <string.h>

#include "base/log.h"
#include "core/config/announced.h"
#include "core/config/copying.h"
#include "core/config/takeover.h"
#include "core/config/wconf.h"
#include "proto/records.h"

#define OBSERVE_PAUSE_MS 500u
#define END_PAUSE_MS 50u

/* A wait_role with nothing new yet. */
struct role_wait {
    struct seat *seat;
    struct rpc_request *request;
    guint timer;
};

struct seat {
    const struct env *env;
    struct copy *copy;
    enum engine_kind engine; /* also when that is closed already */
    enum { FOLLOWS, CAMPAIGNS, IS_MASTER, ENDED } state;
    struct copying *copying;
    struct wconf *wconf; /* while it campaigns and as master */
    struct mastership observed;
    GPtrArray *waits; /* struct role_wait */
    bool taking_over; /* a person's word is being carried out */
    guint end_timer;
    GError *end;
    void (*on_end)(const GError *reason, void *data);
    void *on_end_data;
};

void seat_on_end(struct seat *seat, void (*fn)(const GError *reason, void *data), void *data)
{
    seat->on_end = fn;
    seat->on_end_data = data;
}

/* --- wait_role --- */

static struct role_status *status_of(const struct seat *seat)
{
    static const enum seat_role seats[] = {[FOLLOWS] = SEAT_FOLLOWS,
                                           [CAMPAIGNS] = SEAT_CAMPAIGNS,
                                           [IS_MASTER] = SEAT_MASTER,
                                           [ENDED] = SEAT_FOLLOWS};
    struct role_status *status = role_status_new();
    status->seat = seats[seat->state];
    status->engine = seat->engine;
    if (seat->wconf && seat->state != ENDED) {
        wconf_position(seat->wconf, &status->history, &status->epoch, &status->serial);
        g_free(status->master_node);
        status->master_node = g_strdup(seat->env->node_uuid);
    } else if (seat->copy) {
        struct copy_position at;
        struct copying_state state;
        gint64 now = seat->env->ops->boot_ms(seat->env);
        seat->copy->ops->position(seat->copy, &at);
        copying_state(seat->copying, &state);
        status->history = at.history;
        status->epoch = at.epoch;
        status->serial = at.serial;
        status->contact_ms =
            state.contact_ms < 0 ? (guint64)now : (guint64)(now - state.contact_ms);
        if (at.role == COPY_RETIRED)
            status->seat = SEAT_RETIRED;
        g_free(status->why);
        status->why = g_strdup(state.why);
        g_free(status->master_node);
        record_autoptr(announce_args) announced = announced_read(seat->env);
        status->master_node = g_strdup(announced ? announced->master_node : seat->observed.node);
    }
    return status;
}

static void answer_role(struct seat *seat, struct rpc_request *request)
{
    record_autoptr(role_status) status = status_of(seat);
    rpc_answer(request, role_status_to_json(status));
}

static void role_wait_end(struct role_wait *wait)
{
    if (wait->timer)
        wait->seat->env->ops->timer_cancel(wait->seat->env, wait->timer);
    answer_role(wait->seat, wait->request);
    g_free(wait);
}

static void role_timeout(void *data)
{
    struct role_wait *wait = data;
    wait->timer = 0;
    g_ptr_array_remove(wait->seat->waits, wait);
    role_wait_end(wait);
}

static void tell_role(struct seat *seat)
{
    g_autoptr(GPtrArray) waits = seat->waits;
    seat->waits = g_ptr_array_new();
    for (guint i = 0; i < waits->len; i++)
        role_wait_end(waits->pdata[i]);
}

static void handle_wait_role(struct seat *seat, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(wait_role_args) args = wait_role_args_parse(request->args, RECORD_LAX, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    record_autoptr(role_status) status = status_of(seat);
    if (args->wait_ms == 0 || status->seat != args->seat || status->epoch != args->epoch) {
        rpc_answer(request, role_status_to_json(status));
        return;
    }
    struct role_wait *wait = g_new0(struct role_wait, 1);
    wait->seat = seat;
    wait->request = request;
    wait->timer = seat->env->ops->timer(seat->env, (guint)args->wait_ms, role_timeout, wait);
    g_ptr_array_add(seat->waits, wait);
}

/* --- calls --- */

static void refuse(struct seat *seat, struct rpc_request *request)
{
    if (seat->state == ENDED)
        rpc_fail(request, seat->end);
    else if (seat->state == CAMPAIGNS)
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, "this node is becoming master; try again");
    else
        announced_refuse(seat->env, request);
}

static void handle_candidates(struct seat *seat, struct rpc_request *request);
static void handle_take_over(struct seat *seat, struct rpc_request *request);

void seat_handle(struct seat *seat, struct rpc_request *request)
{
    static const struct {
        const char *method;
        void (*handle)(struct seat *seat, struct rpc_request *request);
    } own[] = {{"wait_role", handle_wait_role},
               {"candidates", handle_candidates},
               {"take_over", handle_take_over}};
    for (guint i = 0; i < G_N_ELEMENTS(own); i++) {
        if (strcmp(request->name, own[i].method) != 0)
            continue;
        own[i].handle(seat, request);
        return;
    }
    if (seat->state == IS_MASTER)
        wconf_handle(seat->wconf, request);
    else
        refuse(seat, request);
}

/* --- becoming master --- */

static void seat_end(struct seat *seat, const GError *reason)
{
    if (seat->state == ENDED)
        return;
    seat->state = ENDED;
    seat->end = g_error_copy(reason);
    tell_role(seat);
    if (seat->on_end)
        seat->on_end(reason, seat->on_end_data);
}

static void stepped_down(const GError *reason, void *data)
{
    seat_end(data, reason);
}

/* In a task. NOT_MASTER and TEMPORARY: nothing has begun. */
static bool become_master(struct seat *seat, GError **error)
{
    seat->state = CAMPAIGNS;
    seat->wconf = wconf_new(seat->env);
    if (!wconf_start(seat->wconf, error)) {
        wconf_free(g_steal_pointer(&seat->wconf));
        return false;
    }
    wconf_on_step_down(seat->wconf, stepped_down, seat);
    seat->state = IS_MASTER;
    tell_role(seat);
    return true;
}

static bool try_to_win(struct seat *seat, GError **error)
{
    struct copying_state state;
    copying_state(seat->copying, &state);
    if (state.not_wanted || !copying_stop(seat->copying))
        return false;
    if (become_master(seat, error))
        return true;
    seat->state = FOLLOWS;
    copying_start(seat->copying);
    return false;
}

/* A replicated engine: looks who is master, and takes the seat when it is free. The first look is
 * also for a process that was master a moment ago, whose seat is still kept for it. */
static void candidate_task(void *data)
{
    struct seat *seat = data;
    struct engine *engine = seat->env->engine;
    bool alive = true;
    while (alive && seat->state == FOLLOWS) {
        g_autoptr(GError) error = NULL;
        struct mastership master;
        bool free_seat = engine->ops->observe(engine, &master, &error) &&
                         (master.epoch == 0 || !strcmp(master.node, seat->env->node_uuid));
        if (task_killed())
            return;
        if (!error)
            seat->observed = master;
        if (free_seat && try_to_win(seat, &error))
            return;
        if (task_killed())
            return;
        if (error && !fettle_error_is(error, NOT_MASTER) && !fettle_error_is(error, TEMPORARY)) {
            seat_end(seat, error);
            return;
        }
        alive = env_sleep(seat->env, OBSERVE_PAUSE_MS);
    }
}

/* --- other candidates, and a person's word --- */

/* What this node knows; NULL with TEMPORARY: nothing yet. To be freed. */
static struct config *known_config(const struct seat *seat, GError **error)
{
    struct config_loading loading = {.config = config_new()};
    struct copy_position at = {0};
    if (seat->wconf && seat->state != ENDED) {
        wconf_position(seat->wconf, &at.history, &at.epoch, &at.serial);
        config_share(wconf_config(seat->wconf), loading.config);
    } else if (seat->state == FOLLOWS && seat->copy) {
        seat->copy->ops->position(seat->copy, &at);
        if (!seat->copy->ops->load(seat->copy, config_load_object, &loading, &loading.error) &&
            !loading.error)
            fettle_set_error(&loading.error, CORRUPT, "the copy cannot be read");
    }
    config_set_position(loading.config, at.history, at.serial);
    if (!loading.error && !config_cluster(loading.config))
        fettle_set_error(&loading.error, TEMPORARY,
                         "this node has no whole copy of the configuration yet");
    if (!loading.error)
        return loading.config;
    g_propagate_error(error, loading.error);
    config_free(loading.config);
    return NULL;
}

static struct seat_candidates *look(const struct seat *seat, const struct config *config,
                                    GError **error)
{
    record_autoptr(role_status) own = status_of(seat);
    return takeover_look(seat->env, config, own, error);
}

struct person_call {
    struct seat *seat;
    struct rpc_request *request;
};

static void person_call_start(struct seat *seat, struct rpc_request *request, task_fn fn)
{
    struct person_call *call = g_new(struct person_call, 1);
    *call = (struct person_call){seat, request};
    task_spawn(seat->env->tasks, fn, call);
}

static void candidates_task(void *data)
{
    g_autofree struct person_call *call = data;
    g_autoptr(GError) error = NULL;
    struct config *config = known_config(call->seat, &error);
    record_autoptr(seat_candidates) candidates = config ? look(call->seat, config, &error) : NULL;
    if (candidates)
        rpc_answer(call->request, seat_candidates_to_json(candidates));
    else
        rpc_fail(call->request, error);
    if (config)
        config_free(config);
}

static void handle_candidates(struct seat *seat, struct rpc_request *request)
{
    person_call_start(seat, request, candidates_task);
}

static void end_cb(void *data)
{
    struct seat *seat = data;
    seat->end_timer = 0;
    if (seat->on_end)
        seat->on_end(seat->end, seat->on_end_data);
}

/* The answer has to reach who asked, first. */
static void end_soon(struct seat *seat)
{
    seat->state = ENDED;
    fettle_set_error(&seat->end, TEMPORARY, "this node becomes the master; starting anew");
    tell_role(seat);
    seat->end_timer = seat->env->ops->timer(seat->env, END_PAUSE_MS, end_cb, seat);
}

/* Here; nothing may change in the copy meanwhile. */
static struct take_over_result *take_over_here(struct seat *seat, const struct config *config,
                                               const struct seat_candidates *candidates,
                                               const struct take_over_args *args, GError **error)
{
    struct copy_position at;
    if (!copying_stop(seat->copying)) {
        fettle_set_error(error, KILLED, "the process has ended");
        return NULL;
    }
    seat->copy->ops->position(seat->copy, &at);
    struct take_over_result *result = NULL;
    if (at.serial == config_serial(config) && at.history == config_history(config))
        result = takeover(seat->env, seat->copy, config, candidates, args, error);
    else
        fettle_set_error(error, TEMPORARY, "a master has changed this node's copy; look again");
    if (result)
        end_soon(seat);
    else if (!task_killed())
        copying_start(seat->copying);
    return result;
}

/* The store of this node is the engine: only the others' promises are missing. */
static struct take_over_result *go_alone(struct seat *seat, const struct config *config,
                                         const struct seat_candidates *candidates,
                                         const struct take_over_args *args, GError **error)
{
    struct take_over_result *result = NULL;
    GPtrArray *changes = takeover_word(seat->env, config, candidates, args, &result, error);
    if (changes && seat->state == CAMPAIGNS && seat->wconf) {
        wconf_go_alone(seat->wconf, changes);
        return result;
    }
    if (changes) {
        fettle_set_error(error, TEMPORARY, "the promises have come meanwhile; look again");
        g_ptr_array_unref(changes);
        take_over_result_free(result);
    }
    return NULL;
}

static struct take_over_result *take_over(struct seat *seat, const struct config *config,
                                          struct take_over_args *args, GError **error)
{
    record_autoptr(seat_candidates) candidates = look(seat, config, error);
    const struct seat_candidate *chosen =
        candidates ? takeover_pick(seat->env, candidates, args->node, error) : NULL;
    if (!chosen)
        return NULL;
    bool here = !strcmp(chosen->node, seat->env->node_uuid);
    if (here && seat->state != FOLLOWS)
        return go_alone(seat, config, candidates, args, error);
    if (here)
        return take_over_here(seat, config, candidates, args, error);
    g_free(args->node);
    args->node = g_strdup(chosen->node);
    struct stamp stamp = {config_history(config), 0};
    struct take_over_result *result = env_call_record(seat->env, chosen->node, ROLE_WCONFD,
                                                      "take_over", args, stamp, 0, 0, error);
    if (!result)
        g_prefix_error(error, "node %s: ", chosen->name);
    return result;
}

static void take_over_task(void *data)
{
    g_autofree struct person_call *call = data;
    struct seat *seat = call->seat;
    g_autoptr(GError) error = NULL;
    record_autoptr(take_over_args) args =
        take_over_args_parse(call->request->args, RECORD_LAX, &error);
    struct config *config = args ? known_config(seat, &error) : NULL;
    struct take_over_result *result = config ? take_over(seat, config, args, &error) : NULL;
    if (result)
        rpc_answer(call->request, take_over_result_to_json(result));
    else
        rpc_fail(call->request, error);
    if (result)
        take_over_result_free(result);
    if (config)
        config_free(config);
    seat->taking_over = false;
}

static void handle_take_over(struct seat *seat, struct rpc_request *request)
{
    if (seat->env->engine && seat->env->engine->replicated) {
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE,
                     "with the engine etcd the candidates choose the next master themselves");
    } else if (seat->state == IS_MASTER || seat->state == ENDED) {
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE, "this node is %s",
                     seat->state == IS_MASTER ? "the master" : "about to become the master");
    } else if (seat->taking_over) {
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE,
                     "somebody else is at it, on this node, at this moment");
    } else {
        seat->taking_over = true;
        person_call_start(seat, request, take_over_task);
    }
}

/* --- life --- */

bool seat_start(struct seat *seat, GError **error)
{
    struct engine *engine = seat->env->engine;
    if (engine && !engine->replicated)
        return become_master(seat, error);
    copying_start(seat->copying);
    if (engine)
        task_spawn(seat->env->tasks, candidate_task, seat);
    return true;
}

static void copy_changed(void *data)
{
    tell_role(data);
}

struct seat *seat_new(const struct env *env, struct copy *copy)
{
    struct seat *seat = g_new0(struct seat, 1);
    seat->env = env;
    seat->copy = copy;
    seat->engine = env->engine && env->engine->replicated ? ENGINE_KIND_ETCD : ENGINE_KIND_SQLITE;
    seat->state = env->engine && !env->engine->replicated ? CAMPAIGNS : FOLLOWS;
    seat->waits = g_ptr_array_new();
    if (copy)
        seat->copying = copying_new(env, copy, copy_changed, seat);
    return seat;
}

void seat_free(struct seat *seat)
{
    if (!seat)
        return;
    seat->on_end = NULL;
    if (seat->end_timer)
        seat->env->ops->timer_cancel(seat->env, seat->end_timer);
    tell_role(seat);
    copying_free(seat->copying);
    wconf_free(seat->wconf);
    g_ptr_array_unref(seat->waits);
    g_clear_error(&seat->end);
    g_free(seat);
}

/*
 * The other candidates, and a person's word that makes one of them the master
 * (docs/design/mastership.md, "Becoming master with SQLite"). With a replicated engine it is
 * seat_handover.c that carries it out.
 */
#include <string.h>

#include "core/candidate/seat_private.h"
#include "core/candidate/takeover.h"

/* What this node knows; NULL with TEMPORARY: nothing yet. To be freed. */
struct config *seat_known_config(const struct seat *seat, GError **error)
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
        if (loading.error && fettle_error_is(loading.error, CORRUPT))
            replication_damaged(seat->replication, loading.error->message);
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
    record_autoptr(role_status) own = seat_status(seat);
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
    struct config *config = seat_known_config(call->seat, &error);
    record_autoptr(seat_candidates) candidates = config ? look(call->seat, config, &error) : NULL;
    if (candidates)
        rpc_answer(call->request, seat_candidates_to_json(candidates));
    else
        rpc_fail(call->request, error);
    if (config)
        config_free(config);
}

void seat_handle_candidates(struct seat *seat, struct rpc_request *request)
{
    person_call_start(seat, request, candidates_task);
}

static void end_soon(struct seat *seat)
{
    GError *end = NULL;
    fettle_set_error(&end, TEMPORARY, "this node becomes the master; starting anew");
    seat_end_soon(seat, end);
}

/* Here; nothing may change in the copy meanwhile. */
static struct take_over_result *take_over_here(struct seat *seat, const struct config *config,
                                               const struct seat_candidates *candidates,
                                               const struct take_over_args *args, GError **error)
{
    struct copy_position at;
    if (!replication_stop(seat->replication)) {
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
        replication_start(seat->replication);
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
        wconf_go_alone(seat->wconf, changes, result->serial - 1);
        return result;
    }
    if (changes) {
        fettle_set_error(error, TEMPORARY, "the promises have come meanwhile; look again");
        g_ptr_array_unref(changes);
        take_over_result_free(result);
    }
    return NULL;
}

struct take_over_result *seat_word_result(const struct seat_candidate *to)
{
    struct take_over_result *result = take_over_result_new();
    g_free(result->node);
    result->node = g_strdup(to->node);
    g_free(result->name);
    result->name = g_strdup(to->name);
    result->epoch = to->status->epoch;
    result->serial = to->status->serial;
    return result;
}

struct take_over_result *seat_ask_other(struct seat *seat, const struct config *config,
                                        const struct seat_candidate *to,
                                        struct take_over_args *args, GError **error)
{
    struct stamp stamp = {config_history(config), 0};
    g_free(args->node);
    args->node = g_strdup(to->node);
    struct take_over_result *result =
        env_call_record(seat->env, to->node, ROLE_WCONFD, "take_over", args, stamp, 0, 0, error);
    if (!result)
        g_prefix_error(error, "node %s: ", to->name);
    return result;
}

/* Another word was faster, or the same one when it was given before and its answer was lost: that
 * made a master, which may be all that is wanted. */
static struct take_over_result *has_happened(struct seat *seat, const struct config *config,
                                             const char *wanted, bool alone, const GError *reason)
{
    if (!fettle_error_is(reason, STALE_EPOCH) || alone || task_killed())
        return NULL;
    record_autoptr(seat_candidates) candidates = look(seat, config, NULL);
    const struct seat_candidate *master = candidates ? takeover_master(candidates) : NULL;
    if (!master || !strcmp(master->node, seat->env->node_uuid) ||
        (*wanted && strcmp(wanted, master->name) != 0 && strcmp(wanted, master->node) != 0))
        return NULL;
    return seat_word_result(master);
}

static struct take_over_result *try_take_over(struct seat *seat, const struct config *config,
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
    return seat_ask_other(seat, config, chosen, args, error);
}

static struct take_over_result *take_over(struct seat *seat, const struct config *config,
                                          struct take_over_args *args, GError **error)
{
    g_autofree char *wanted = g_strdup(args->node);
    g_autoptr(GError) reason = NULL;
    struct take_over_result *result = try_take_over(seat, config, args, &reason);
    if (!result)
        result = has_happened(seat, config, wanted, args->alone, reason);
    if (!result)
        g_propagate_error(error, g_steal_pointer(&reason));
    return result;
}

/* Without a replicated engine; why this node cannot carry out the word. */
static bool may_take_over(const struct seat *seat, GError **error)
{
    if (seat->barred)
        fettle_set_error(error, WRONG_STATE, "%s", seat->barred);
    else if (seat->state == IS_MASTER || seat->state == ENDED)
        fettle_set_error(error, WRONG_STATE, "this node is %s",
                         seat->state == IS_MASTER ? "the master" : "about to become the master");
    else
        return true;
    return false;
}

static struct take_over_result *carry_out(struct seat *seat, struct take_over_args *args,
                                          GError **error)
{
    struct config *config = seat_known_config(seat, error);
    if (!config)
        return NULL;
    struct take_over_result *result = seat->env->engine && seat->env->engine->replicated
                                          ? seat_hand_over(seat, config, args, error)
                                          : take_over(seat, config, args, error);
    config_free(config);
    return result;
}

static void take_over_task(void *data)
{
    g_autofree struct person_call *call = data;
    struct seat *seat = call->seat;
    g_autoptr(GError) error = NULL;
    record_autoptr(take_over_args) args =
        rpc_request_args(call->request, &take_over_args_record, &error);
    record_autoptr(take_over_result) result = args ? carry_out(seat, args, &error) : NULL;
    if (result)
        rpc_answer(call->request, take_over_result_to_json(result));
    else
        rpc_fail(call->request, error);
    seat->person = false;
}

void seat_handle_take_over(struct seat *seat, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    bool replicated = seat->env->engine && seat->env->engine->replicated;
    if (!replicated && !may_take_over(seat, &error)) {
        rpc_fail(request, error);
    } else if (seat->person) {
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE,
                     "somebody else is at it, on this node, at this moment");
    } else {
        seat->person = true;
        person_call_start(seat, request, take_over_task);
    }
}

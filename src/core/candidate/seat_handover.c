/*
 * A person's word with a replicated engine: there is a master, or the candidates choose one by
 * themselves within seconds, so all that is left to say is who shall be the next. The master gives
 * its seat up in favour of that node, which is the first to try (engine_ops.resign).
 */
#include <string.h>

#include "base/log.h"
#include "core/candidate/seat_private.h"
#include "core/candidate/takeover.h"

/* --- who --- */

static const struct node *find_node(GPtrArray *nodes, const char *name)
{
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!strcmp(node->name, name) || !strcmp(node->uuid, name))
            return node;
    }
    return NULL;
}

static bool is_eligible(const struct seat *seat, const struct node *node, GError **error)
{
    if (!strcmp(node->uuid, seat->env->node_uuid))
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is the master already", node->name);
    else if (!node->master_candidate)
        fettle_set_error(error, WRONG_STATE,
                         "node \"%s\" is no master candidate; make it one first: fettle node "
                         "modify %s --master-candidate yes",
                         node->name, node->name);
    else if (node->offline)
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is offline on record", node->name);
    else
        return true;
    return false;
}

/* What its own wconfd says of itself. */
static bool is_ready(const struct seat *seat, const char *name, const struct role_status *status,
                     GError **error)
{
    guint64 history, epoch, serial;
    wconf_position(seat->wconf, &history, &epoch, &serial);
    if (*status->why)
        fettle_set_error(error, WRONG_STATE, "node %s cannot become the master now: %s", name,
                         status->why);
    else if (status->engine != ENGINE_KIND_ETCD)
        fettle_set_error(error, WRONG_STATE,
                         "node %s does not know that the engine is etcd: its etc/engine.json is "
                         "missing, or its wconfd was not started since",
                         name);
    else if (status->seat != SEAT_FOLLOWS)
        fettle_set_error(error, WRONG_STATE, "node %s is no follower of this master (it says: %s)",
                         name, enum_word(&seat_role_words, (int)status->seat));
    else if (status->history != history || status->epoch != epoch ||
             status->serial + LIMIT_HANDOVER_LAG < serial)
        fettle_set_error(error, WRONG_STATE,
                         "the copy of node %s is far behind: it has serial %" G_GUINT64_FORMAT
                         " of epoch %" G_GUINT64_FORMAT ", the master serial %" G_GUINT64_FORMAT
                         " of epoch %" G_GUINT64_FORMAT "; wait until it has caught up",
                         name, status->serial, status->epoch, serial, epoch);
    else
        return true;
    return false;
}

static bool ask_whether_ready(const struct seat *seat, const struct config *config,
                              const struct node *node, GError **error)
{
    static const struct wait_role_args at_once = {0};
    struct stamp stamp = {config_history(config), 0};
    g_autoptr(GError) reason = NULL;
    record_autoptr(role_status) status = env_call_record(
        seat->env, node->uuid, ROLE_WCONFD, "wait_role", &at_once, stamp, 0, 0, &reason);
    if (status)
        return is_ready(seat, node->name, status, error);
    fettle_set_error(error, WRONG_STATE, "wconfd of node %s does not answer: %s", node->name,
                     reason->message);
    return false;
}

/* The candidate with the newest copy of those that are ready. */
static const struct node *pick(const struct seat *seat, const struct config *config,
                               GPtrArray *nodes, GError **error)
{
    record_autoptr(role_status) own = seat_status(seat);
    record_autoptr(seat_candidates) seen = takeover_look(seat->env, config, own, error);
    const struct seat_candidate *best = NULL;
    if (!seen)
        return NULL;
    for (guint i = 0; i < seen->nodes->len; i++) {
        const struct seat_candidate *one = seen->nodes->pdata[i];
        const struct node *node = find_node(nodes, one->node);
        if (one->status && node && is_eligible(seat, node, NULL) &&
            is_ready(seat, one->name, one->status, NULL) &&
            (!best || one->status->serial > best->status->serial))
            best = one;
    }
    if (best)
        return find_node(nodes, best->node);
    fettle_set_error(error, WRONG_STATE,
                     "no other candidate is ready to become the master; --to NODE says what keeps "
                     "a certain one");
    return NULL;
}

/* --- the master gives its seat up --- */

static struct take_over_result *make_result(const struct seat *seat, const struct node *node)
{
    guint64 history;
    struct take_over_result *result = take_over_result_new();
    g_free(result->node);
    g_free(result->name);
    result->node = g_strdup(node->uuid);
    result->name = g_strdup(node->name);
    wconf_position(seat->wconf, &history, &result->epoch, &result->serial);
    return result;
}

static struct take_over_result *give_up(struct seat *seat, const struct node *node, GError **error)
{
    g_autoptr(GError) reason = NULL;
    log_info("", "handing the mastership to node %s, by a person's word", node->name);
    bool done = wconf_hand_over(seat->wconf, node->uuid, node->name, &reason);
    struct take_over_result *result = done ? make_result(seat, node) : NULL;
    if (done && seat->state == IS_MASTER)
        seat_end_soon(seat,
                      g_error_new(FETTLE_ERROR, FETTLE_ERROR_NOT_MASTER,
                                  "mastership was handed to node %s; starting anew", node->name));
    if (reason)
        g_propagate_error(error, g_steal_pointer(&reason));
    return result;
}

static struct take_over_result *hand_over_here(struct seat *seat, const struct config *config,
                                               const struct take_over_args *args, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    const struct node *node = *args->node ? find_node(nodes, args->node) : NULL;
    if (*args->node && !node)
        fettle_set_error(error, UNKNOWN_ENTITY, "node \"%s\" does not exist", args->node);
    else if (!node)
        node = pick(seat, config, nodes, error);
    else if (!is_eligible(seat, node, error) || !ask_whether_ready(seat, config, node, error))
        return NULL;
    if (!node)
        return NULL;
    if (seat->state == IS_MASTER)
        return give_up(seat, node, error);
    fettle_set_error(error, TEMPORARY, "this node is the master no more; look again");
    return NULL;
}

/* --- a follower asks its master --- */

static struct take_over_result *ask_master(struct seat *seat, const struct config *config,
                                           struct take_over_args *args, GError **error)
{
    const char *master = seat->observed.node;
    struct stamp stamp = {config_history(config), 0};
    if (!*args->node && !seat->trouble) {
        g_free(args->node);
        args->node = g_strdup(seat->env->node_uuid);
    }
    struct take_over_result *result =
        env_call_record(seat->env, master, ROLE_WCONFD, "take_over", args, stamp, 0, 0, error);
    if (!result)
        g_prefix_error(error, "node %s: ", config_node_name(config, master));
    return result;
}

/* --- a change of engine that nobody knows the end of --- */

/* The node that made it is lost for good, and no copy in reach has what came after it. Etcd was
 * filled with everything that was stored before the step: so it is the engine from now on, whether
 * the step was done or not. A copy in reach that had a later serial would prove that it was not,
 * and would be the newest. */
static struct take_over_result *decide(struct seat *seat, const struct config *config,
                                       struct take_over_args *args, GError **error)
{
    record_autoptr(role_status) own = seat_status(seat);
    record_autoptr(seat_candidates) seen = takeover_look(seat->env, config, own, error);
    const struct seat_candidate *chosen =
        seen ? takeover_pick(seat->env, seen, args->node, error) : NULL;
    if (!chosen)
        return NULL;
    if (strcmp(chosen->node, seat->env->node_uuid) != 0)
        return seat_ask_other(seat, config, chosen, args, error);
    if (seat->trouble || !seat->undecided || seat->state != FOLLOWS) {
        fettle_set_error(error, TEMPORARY,
                         "whether the engine is etcd can be decided with a majority of its members "
                         "only: %s",
                         seat->trouble ? seat->trouble
                                       : "this node has just heard of it; look "
                                         "again");
        return NULL;
    }
    if (seat->word)
        g_ptr_array_unref(seat->word);
    seat->word = takeover_record(seat->env, seen, chosen, args);
    seat->word_since = MAX(seen->alone_since, 1);
    seat->undecided = false;
    g_clear_pointer(&seat->barred, g_free);
    log_warning("", "the engine is etcd from now on, by a person's word");
    return seat_word_result(chosen);
}

/* --- the word --- */

static bool check_args(const struct take_over_args *args, GError **error)
{
    if (!args->alone && !*args->statement)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "alone, statement: are for the engine sqlite; with etcd nobody is master "
                     "without a majority of its members, and nothing of what they have is lost");
    return false;
}

struct take_over_result *seat_hand_over(struct seat *seat, const struct config *config,
                                        struct take_over_args *args, GError **error)
{
    if (!check_args(args, error))
        return NULL;
    if (seat->state == IS_MASTER)
        return hand_over_here(seat, config, args, error);
    if (seat->undecided && !seat->observed.epoch && seat->state == FOLLOWS)
        return decide(seat, config, args, error);
    if (seat->barred)
        fettle_set_error(error, WRONG_STATE, "%s", seat->barred);
    else if (seat->state != FOLLOWS)
        fettle_set_error(error, TEMPORARY, "this node is about to become the master; look again");
    else if (seat->observed.epoch && strcmp(seat->observed.node, seat->env->node_uuid) != 0)
        return ask_master(seat, config, args, error);
    else if (seat->trouble)
        fettle_set_error(error, TEMPORARY,
                         "nobody is known to be the master, and this node cannot ask etcd: %s; "
                         "with a majority of its members the candidates choose the next master "
                         "themselves: fettle cluster engine status",
                         seat->trouble);
    else
        fettle_set_error(error, TEMPORARY,
                         "nobody is the master at this moment; the candidates choose the next one "
                         "themselves, within seconds");
    return NULL;
}

/* See takeover.h. */
#include "core/candidate/takeover.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/config/unheard.h"
#include "core/wconfd/promises.h"
#include "proto/change.h"
#include "proto/env_many.h"
#include "proto/horizon.h"

/* --- a look at all candidates --- */

static int compare_names(const void *a, const void *b)
{
    const struct seat_candidate *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static struct seat_candidates *candidates_of(const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    struct seat_candidates *candidates = seat_candidates_new();
    text_set(&candidates->cluster_name, cluster->name);
    text_set(&candidates->cluster, cluster->uuid);
    text_set(&candidates->master_node, cluster->master_node);
    text_set(&candidates->master_name, config_node_name(config, cluster->master_node));
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->master_candidate && strcmp(node->uuid, cluster->master_node) != 0)
            continue;
        struct seat_candidate *candidate = seat_candidate_new();
        text_set(&candidate->node, node->uuid);
        text_set(&candidate->name, node->name);
        g_ptr_array_add(candidates->nodes, candidate);
    }
    g_ptr_array_sort(candidates->nodes, compare_names);
    return candidates;
}

struct look {
    GPtrArray *asked; /* struct seat_candidate */
};

static bool take_status(struct env_answer *heard, void *data)
{
    const struct look *look = data;
    struct seat_candidate *candidate = look->asked->pdata[heard->index];
    candidate->answers = heard->record != NULL;
    candidate->status = g_steal_pointer(&heard->record);
    return false;
}

static bool ask_candidates(const struct env *env, const struct seat_candidates *candidates,
                           const struct role_status *own, struct stamp stamp)
{
    static const struct wait_role_args at_once = {0};
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    g_autoptr(GPtrArray) asked = g_ptr_array_new();
    struct look look = {asked};
    for (guint i = 0; i < candidates->nodes->len; i++) {
        struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (!strcmp(candidate->node, env->node_uuid)) {
            candidate->answers = true;
            candidate->status = role_status_copy(own);
            continue;
        }
        g_ptr_array_add(uuids, candidate->node);
        g_ptr_array_add(asked, candidate);
    }
    const struct env_question question = {.nodes = uuids,
                                          .role = ROLE_WCONFD,
                                          .method = "wait_role",
                                          .args = &at_once,
                                          .stamp = stamp};
    return env_many(env, &question, take_status, &look);
}

static bool is_usable(const struct seat_candidate *candidate)
{
    return candidate->status && candidate->status->history > 0 &&
           candidate->status->seat != SEAT_RETIRED && candidate->status->seat != SEAT_NONE;
}

/* Order of (history, epoch, serial): what a newer master has done counts for more than what an
 * older one has done after it. */
static int compare_copies(const struct role_status *a, const struct role_status *b)
{
    int order =
        stamp_compare((struct stamp){a->history, a->epoch}, (struct stamp){b->history, b->epoch});
    if (order)
        return order;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static void mark_newest(const struct seat_candidates *candidates)
{
    const struct role_status *newest = NULL;
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (is_usable(candidate) && (!newest || compare_copies(candidate->status, newest) > 0))
            newest = candidate->status;
    }
    for (guint i = 0; newest && i < candidates->nodes->len; i++) {
        struct seat_candidate *candidate = candidates->nodes->pdata[i];
        candidate->newest = is_usable(candidate) && compare_copies(candidate->status, newest) == 0;
    }
}

/* Of the newest copies the one that heard its master last knows how long nothing was missing. */
static void find_alone_since(const struct env *env, struct seat_candidates *candidates)
{
    guint64 silent_ms = G_MAXUINT64;
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->newest)
            silent_ms = MIN(silent_ms, candidate->status->contact_ms);
    }
    guint64 now_ms = (guint64)env->ops->wall_us(env) / 1000;
    if (silent_ms < now_ms)
        candidates->alone_since = MAX((now_ms - silent_ms) / 1000, 1);
}

static bool no_answer(const GError *error)
{
    return fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, TIMEOUT) ||
           fettle_error_is(error, UNKNOWN_RESULT);
}

/* Somebody who is master, or may be at any moment; or the node of the master on record, whose
 * wconfd is perhaps only being restarted. */
static bool find_master(const struct env *env, struct seat_candidates *candidates,
                        struct stamp stamp, GError **error)
{
    bool answered = !strcmp(candidates->master_node, env->node_uuid);
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        enum seat_role seat =
            candidate->status ? (enum seat_role)candidate->status->seat : SEAT_NONE;
        bool own = !strcmp(candidate->node, env->node_uuid);
        answered =
            answered || (candidate->status && !strcmp(candidate->node, candidates->master_node));
        if (seat != SEAT_MASTER && (seat != SEAT_CAMPAIGNS || own))
            continue;
        g_free(candidates->master_lives);
        candidates->master_lives =
            g_strdup_printf("node %s %s", candidate->name,
                            seat == SEAT_MASTER ? "is the master, and answers"
                                                : "answers, and is about to become master");
        return true;
    }
    if (answered)
        return true;
    g_autoptr(GError) local = NULL;
    record_autoptr(node_report) report = env_call_record(env, candidates->master_node, ROLE_NODED,
                                                         "node_report", NULL, stamp, 0, 0, &local);
    if (task_killed()) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (report || !no_answer(local)) {
        g_free(candidates->master_lives);
        candidates->master_lives = g_strdup_printf(
            "the node daemon of node %s, which is the master, answers", candidates->master_name);
    }
    return true;
}

struct seat_candidates *takeover_look(const struct env *env, const struct config *config,
                                      const struct role_status *own, GError **error)
{
    struct seat_candidates *candidates = candidates_of(config);
    struct stamp stamp = {own->history, own->epoch};
    if (ask_candidates(env, candidates, own, stamp) && find_master(env, candidates, stamp, error)) {
        mark_newest(candidates);
        find_alone_since(env, candidates);
        return candidates;
    }
    if (error && !*error)
        fettle_set_error(error, KILLED, "the process has ended");
    seat_candidates_free(candidates);
    return NULL;
}

/* --- which one --- */

const struct seat_candidate *takeover_master(const struct seat_candidates *candidates)
{
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->status &&
            (candidate->status->seat == SEAT_MASTER || candidate->status->seat == SEAT_CAMPAIGNS))
            return candidate;
    }
    return NULL;
}

static const struct seat_candidate *find_named(const struct seat_candidates *candidates,
                                               const char *node, GError **error)
{
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (!strcmp(candidate->name, node) || !strcmp(candidate->node, node))
            return candidate;
    }
    fettle_set_error(error, UNKNOWN_ENTITY, "node \"%s\" is no master candidate", node);
    return NULL;
}

static const struct seat_candidate *find_newest(const struct env *env,
                                                const struct seat_candidates *candidates)
{
    const struct seat_candidate *found = NULL;
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->newest && (!found || !strcmp(candidate->node, env->node_uuid)))
            found = candidate;
    }
    return found;
}

/* One that was told of a change to etcd, which may have been made as far as the newest copy knows;
 * `named`, or this node, rather than others. NULL: nobody. */
static const struct seat_candidate *find_undecided(const struct env *env,
                                                   const struct seat_candidates *candidates,
                                                   const struct seat_candidate *newest,
                                                   const struct seat_candidate *named)
{
    const struct seat_candidate *found = NULL;
    for (guint i = 0; newest && i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (!candidate->status || candidate->status->undecided <= newest->status->serial)
            continue;
        if (candidate == named)
            return candidate;
        if (!found || !strcmp(candidate->node, env->node_uuid))
            found = candidate;
    }
    return found;
}

const struct seat_candidate *takeover_pick(const struct env *env,
                                           const struct seat_candidates *candidates,
                                           const char *node, GError **error)
{
    const struct seat_candidate *newest = find_newest(env, candidates);
    const struct seat_candidate *named = *node ? find_named(candidates, node, error) : newest;
    if (*node && !named)
        return NULL;
    const struct seat_candidate *master = takeover_master(candidates);
    const struct seat_candidate *undecided = find_undecided(env, candidates, newest, named);
    if (!*node && undecided)
        named = undecided;
    if (*node && named == master && master->status->seat == SEAT_MASTER)
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is the master already", named->name);
    else if (*candidates->master_lives)
        fettle_set_error(error, UNSAFE, "%s; power it off first if it cannot be master any more",
                         candidates->master_lives);
    else if (!newest)
        fettle_set_error(error, WRONG_STATE,
                         "no candidate that can be reached has a whole copy of the configuration");
    else if (!named->answers)
        fettle_set_error(error, WRONG_STATE, "wconfd of node %s does not answer", named->name);
    else if (undecided && named != undecided)
        fettle_set_error(error, UNSAFE,
                         "node %s was told of a change of the engine to etcd, which may have been "
                         "made, and node %s was not; say it for that one: fettle cluster "
                         "master-failover --to %s",
                         undecided->name, named->name, undecided->name);
    else if (!undecided && !named->newest)
        fettle_set_error(error, UNSAFE,
                         "the copy of node %s is newer: it has serial %" G_GUINT64_FORMAT
                         " of epoch %" G_GUINT64_FORMAT
                         ", that of node %s serial %" G_GUINT64_FORMAT
                         " of epoch %" G_GUINT64_FORMAT,
                         newest->name, newest->status->serial, newest->status->epoch, named->name,
                         named->status->serial, named->status->epoch);
    else
        return named;
    return NULL;
}

/* --- the step --- */

static void add_put(GPtrArray *changes, const char *kind, const char *key, guint64 version,
                    json_t *object)
{
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, version, object));
}

static char *heard_text(const struct role_status *status)
{
    return status->contact ? g_strdup_printf("heard of its master %" G_GUINT64_FORMAT " s ago",
                                             status->contact_ms / 1000)
                           : g_strdup("has not heard of its master since it began");
}

static void add_evidence(struct decision *decision, const struct seat_candidates *candidates)
{
    for (guint i = 0; i < candidates->nodes->len && decision->evidence->len < 32; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        const struct role_status *status = candidate->status;
        g_autofree char *heard = status ? heard_text(status) : NULL;
        char *text = status ? g_strdup_printf("node %s: serial %" G_GUINT64_FORMAT
                                              " of epoch %" G_GUINT64_FORMAT ", %s",
                                              candidate->name, status->serial, status->epoch, heard)
                            : g_strdup_printf("node %s: does not answer", candidate->name);
        g_ptr_array_add(decision->evidence, text);
    }
}

static void add_alone(struct decision *decision, const struct seat_candidates *candidates)
{
    g_autofree char *since = unheard_time(candidates->alone_since);
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("what node %s answered from %s on is lost if these copies had "
                                    "been counted out by then",
                                    candidates->master_name, since));
}

static void add_record(const struct env *env, GPtrArray *changes, guint64 version,
                       const struct seat_candidates *candidates, const struct seat_candidate *self,
                       const struct take_over_args *args)
{
    record_autoptr(decision) decision = decision_new();
    g_free(decision->uuid);
    decision->uuid = env_uuid(env);
    text_set(&decision->author, "master-failover");
    text_set(&decision->subject_kind, "node");
    text_set(&decision->subject, self->node);
    text_set(&decision->subject_name, self->name);
    decision->at_us = (guint64)env->ops->wall_us(env);
    text_set(&decision->state, "master");
    decision->verdict = VERDICT_DONE;
    bool stays = !strcmp(candidates->master_node, self->node);
    g_free(decision->summary);
    decision->summary =
        stays ? g_strdup_printf("goes on as the master without the candidates that are silent, by "
                                "a person's word: %s",
                                args->statement)
              : g_strdup_printf("made the master in the place of node %s by a person's word%s%s",
                                candidates->master_name, *args->statement ? ": " : "",
                                args->statement);
    add_evidence(decision, candidates);
    if (!stays)
        add_alone(decision, candidates);
    add_put(changes, "decision", decision->uuid, version, decision_to_json(decision));
}

static bool is_silent(const struct seat_candidates *candidates, const char *node)
{
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (!strcmp(candidate->node, node))
            return !candidate->answers;
    }
    return false;
}

/* No node has told the new master what it runs (SAF-09). `alone`: candidates that are gone for good
 * must not be asked for promises for ever; if one returns after all, a person says what it shall
 * be. */
static void add_nodes(GPtrArray *changes, guint64 version, const struct config *config,
                      const struct seat_candidates *candidates, bool alone)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        json_t *object = unheard_node(config, node, candidates->alone_since);
        if (alone && is_silent(candidates, node->uuid)) {
            json_object_set_new(object, "master_candidate", json_false());
            json_object_set_new(object, "master_capable", json_false());
        }
        add_put(changes, "node", node->uuid, version, object);
    }
}

GPtrArray *takeover_record(const struct env *env, const struct seat_candidates *candidates,
                           const struct seat_candidate *self, const struct take_over_args *args)
{
    GPtrArray *changes = change_list_new();
    add_record(env, changes, 0, candidates, self, args);
    return changes;
}

static GPtrArray *last_changes(const struct env *env, guint64 version, const struct config *config,
                               const struct seat_candidates *candidates,
                               const struct seat_candidate *self, const struct take_over_args *args)
{
    GPtrArray *changes = change_list_new();
    json_t *cluster = config_object_json(config, "cluster", candidates->cluster);
    json_object_set_new(cluster, "master_node", json_string(self->node));
    json_object_set_new(cluster, "engine", json_string("sqlite")); /* etcd is lost for good */
    if (args->alone)
        json_object_set_new(cluster, "alone", json_true());
    add_put(changes, "cluster", candidates->cluster, version, cluster);
    add_nodes(changes, version, config, candidates, args->alone);
    add_record(env, changes, version, candidates, self, args);
    return changes;
}

static bool check_args(const struct take_over_args *args, GError **error)
{
    g_autofree char *control = text_control(args->statement);
    if (control != NULL) {
        fettle_set_error(error, WRONG_INPUT, "statement: must have no control characters, has %s",
                         control);
        return false;
    }
    if (args->alone == (*args->statement != '\0'))
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s",
                     args->alone ? "statement: --alone needs one: who says that the silent "
                                   "candidates are gone for good, and why"
                                 : "statement: goes with --alone only");
    return false;
}

/* What other nodes would not believe is not begun (SAF-103). */
static bool check_numbers(const struct env *env, guint64 epoch, guint64 epoch_here, guint64 serial,
                          guint64 serial_here, GError **error)
{
    gint64 now = env->ops->wall_us(env);
    return horizon_check(HORIZON_EPOCH, epoch, epoch_here, now, error) &&
           horizon_check(HORIZON_SERIAL, serial, serial_here, now, error);
}

static struct take_over_result *make_result(const struct seat_candidate *self, guint64 epoch,
                                            guint64 serial)
{
    struct take_over_result *result = take_over_result_new();
    text_set(&result->node, self->node);
    text_set(&result->name, self->name);
    result->epoch = epoch;
    result->serial = serial;
    return result;
}

GPtrArray *takeover_word(const struct env *env, const struct config *config,
                         const struct seat_candidates *candidates,
                         const struct take_over_args *args, struct take_over_result **ret_result,
                         GError **error)
{
    const struct seat_candidate *self = find_named(candidates, env->node_uuid, error);
    if (!self || !check_args(args, error))
        return NULL;
    if (!args->alone) {
        fettle_set_error(error, WRONG_STATE,
                         "this node has the store of the last master, and becomes master by itself "
                         "when a majority of the candidates answers. If those that are silent are "
                         "gone for good, say so: --alone --statement TEXT");
        return NULL;
    }
    /* Another word, of which nobody here has heard, may have made a master that went further. */
    guint64 leap = engine_leap(config_serial(config), env->ops->wall_us(env));
    if (!check_numbers(env, 0, 0, leap, config_serial(config), error))
        return NULL;
    struct promise_wish wish = {.epoch = self->status->epoch + 1};
    promises_alone(env, &wish);
    *ret_result = make_result(self, wish.epoch, leap + 1);
    return last_changes(env, leap + 1, config, candidates, self, args);
}

struct take_over_result *takeover(const struct env *env, struct copy *copy,
                                  const struct config *config,
                                  const struct seat_candidates *candidates,
                                  const struct take_over_args *args, GError **error)
{
    struct copy_position at;
    copy->ops->position(copy, &at);
    const struct seat_candidate *self = find_named(candidates, env->node_uuid, error);
    struct promise_wish wish = {.epoch = at.epoch + 1, .since = at.epoch, .by_copy = true};
    if (args->alone)
        promises_alone(env, &wish);
    if (!self || !check_args(args, error) || !promises_ask(env, config, &wish, error))
        return NULL;
    /* Above all that the old master may have stored: of ConfD's answers the highest serial counts,
     * whichever mastership it is of. */
    guint64 serial = engine_leap(at.serial, env->ops->wall_us(env));
    if (!check_numbers(env, wish.epoch, at.epoch, serial, at.serial, error))
        return NULL;
    g_autoptr(GPtrArray) changes = last_changes(env, serial, config, candidates, self, args);
    struct copy_batch last = {at.history, wish.epoch, serial, changes, NULL};
    if (!copy->ops->set_role(copy, COPY_ENGINE, &last, error))
        return NULL;
    log_warning("", "this node becomes master by a person's word%s%s", *args->statement ? ": " : "",
                args->statement);
    return make_result(self, wish.epoch, last.serial);
}

/* See promises.h. */
#include "core/wconfd/promises.h"

#include <string.h>

#include "base/log.h"
#include "core/config/majority.h"
#include "core/config/voucher.h"
#include "proto/env_many.h"
#include "proto/records.h"

#define PROMISE_PAUSE_MS 1000
#define WITNESS_PATIENCE_MS 30000

/* Who is asked. */
typedef struct voters {
    GPtrArray *nodes; /* struct node; this one first, witnesses last */
    guint count;      /* of these, candidates: only their word is needed */
} voters_t;

/* What one question to all candidates brought. */
struct round {
    const struct voters *voters;
    guint64 history;
    guint needed; /* grants, this node's own among them */
    bool hurry;   /* when they are there nobody else is waited for */
    guint granted;
    bool heard;      /* a node other than this one has given its word */
    bool own;        /* this node's own grant is among them */
    guint64 seen;    /* highest epoch of a refusal; 0: none */
    bool seen_begun; /* that one is more than a promise */
    char *seen_node;
    char *seen_by;     /* name of the node that has said so */
    GString *silent;   /* names of those that gave no word, and why if they said */
    GPtrArray *claims; /* struct claim, of who is no candidate */
};

/* A refusal that has to be proven. */
struct claim {
    guint index; /* of the node */
    struct promise_epoch_result *answer;
};

static void claim_free(void *data)
{
    struct claim *claim = data;
    promise_epoch_result_free(claim->answer);
    g_free(claim);
}

static void round_clear(struct round *round)
{
    g_ptr_array_unref(round->claims);
    g_free(round->seen_node);
    g_free(round->seen_by);
    g_string_free(round->silent, TRUE);
}

/* --- one round --- */

static void take_refusal(struct round *round, const struct node *node,
                         const struct promise_epoch_result *answer)
{
    bool later = answer->history > round->history;
    guint64 seen = later ? RECORD_NUMBER_MAX : answer->epoch;
    bool begun = later || answer->begun;
    if ((round->seen_begun && !begun) || (round->seen_begun == begun && seen < round->seen))
        return;
    round->seen = seen;
    round->seen_begun = begun;
    g_free(round->seen_node);
    round->seen_node = g_strdup(answer->node);
    g_free(round->seen_by);
    round->seen_by = g_strdup(node->name);
}

static void take_silence(struct round *round, const struct node *node, const GError *error)
{
    bool answered = error && !fettle_error_is(error, UNREACHABLE) &&
                    !fettle_error_is(error, TIMEOUT) && !fettle_error_is(error, UNKNOWN_RESULT);
    g_string_append_printf(round->silent, "%s%s", round->silent->len ? ", " : "", node->name);
    if (answered)
        g_string_append_printf(round->silent, " (%s)", error->message);
}

static bool take_answer(struct env_answer *heard, void *data)
{
    struct round *round = data;
    const struct promise_epoch_result *answer = heard->record;
    const struct node *node = round->voters->nodes->pdata[heard->index];
    bool witness = heard->index >= round->voters->count;
    round->heard = round->heard || (answer && heard->index > 0);
    if (!answer && !witness) {
        take_silence(round, node, heard->error);
    } else if (answer && !answer->granted && witness) {
        struct claim *claim = g_new(struct claim, 1);
        *claim = (struct claim){heard->index, g_steal_pointer(&heard->record)};
        g_ptr_array_add(round->claims, claim);
    } else if (answer && !answer->granted) {
        take_refusal(round, node, answer);
    } else if (!witness) {
        round->granted++;
        round->own = round->own || heard->index == 0;
    }
    return round->hurry && round->own && round->granted >= round->needed;
}

/* Any node can say what it likes, and repeat what was signed for others. So what it tells must be
 * signed, and be in the way of what was asked for: the asker's own signature never is. */
static bool is_proven(const struct env *env, const struct config *config,
                      const struct promise_epoch_args *asked,
                      const struct promise_epoch_result *answer)
{
    const struct cluster *cluster = config_cluster(config);
    struct stamp told = {answer->history, answer->epoch};
    struct stamp since = {asked->history, asked->since};
    int order = stamp_compare(told, (struct stamp){asked->history, asked->epoch});
    bool other = strcmp(answer->node, asked->node) != 0;
    bool passed_over = answer->begun && stamp_compare(told, since) > 0;
    return cluster && *answer->signature && (order > 0 || (other && (order == 0 || passed_over))) &&
           voucher_check(env, cluster->uuid, told, answer->begun, answer->node, answer->signature,
                         NULL);
}

static void take_claims(const struct env *env, const struct config *config,
                        const struct promise_epoch_args *asked, struct round *round)
{
    for (guint i = 0; i < round->claims->len && !task_killed(); i++) {
        const struct claim *claim = round->claims->pdata[i];
        if (is_proven(env, config, asked, claim->answer))
            take_refusal(round, round->voters->nodes->pdata[claim->index], claim->answer);
    }
}

/* What it has of the engine sqlite. */
static guint64 serial_of(const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    return cluster && cluster->engine == ENGINE_KIND_SQLITE ? config_serial(config) : 0;
}

static bool ask_all(const struct env *env, const struct config *config,
                    const struct promise_wish *wish, bool begins, struct round *round)
{
    struct promise_epoch_args args = {.history = config_history(config),
                                      .epoch = wish->epoch,
                                      .since = wish->alone ? RECORD_NUMBER_MAX : wish->since,
                                      .node = (char *)env->node_uuid,
                                      .begins = begins,
                                      .serial = serial_of(config),
                                      .signature = (char *)wish->signature};
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    const struct env_question question = {.nodes = uuids,
                                          .role = ROLE_NODED,
                                          .method = "promise_epoch",
                                          .args = &args,
                                          .stamp = {args.history, args.epoch}};
    for (guint i = 0; i < round->voters->nodes->len; i++)
        g_ptr_array_add(uuids, ((const struct node *)round->voters->nodes->pdata[i])->uuid);
    round->history = args.history;
    round->silent = g_string_new(NULL);
    round->claims = g_ptr_array_new_with_free_func(claim_free);
    if (!env_many(env, &question, take_answer, round))
        return false;
    take_claims(env, config, &args, round);
    return !task_killed();
}

/* --- who is asked --- */

static void free_node(void *data)
{
    node_free(data);
}

static void voters_clear(struct voters *voters)
{
    g_ptr_array_unref(voters->nodes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(voters_t, voters_clear)

/* This node first, whatever is on record about it: what it has promised counts like all others.
 * Copies: the configuration may change while they are asked. */
static voters_t candidates(const struct env *env, const struct config *config)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(free_node);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!strcmp(node->uuid, env->node_uuid))
            g_ptr_array_insert(found, 0, node_copy(node));
        else if (majority_counts(node))
            g_ptr_array_add(found, node_copy(node));
    }
    return (voters_t){found, found->len};
}

/* Where a person's word has stood for candidates once, a majority of those that are left proves
 * nothing: another such word may have made a master among the others. All nodes hear of a master,
 * so any of them may know of it. */
static voters_t with_witnesses(const struct env *env, const struct config *config)
{
    voters_t voters = candidates(env, config);
    const struct cluster *cluster = config_cluster(config);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; cluster && cluster->alone && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->master_candidate && !node->offline && strcmp(node->uuid, env->node_uuid) != 0)
            g_ptr_array_add(voters.nodes, node_copy(node));
    }
    return voters;
}

/* --- what follows from it --- */

enum next { NEXT_DONE, NEXT_HIGHER, NEXT_AGAIN, NEXT_END };

static enum next judge(const struct env *env, const struct config *config,
                       const struct promise_wish *wish, const struct round *round, GError **error)
{
    bool ours = round->seen_node && !strcmp(round->seen_node, env->node_uuid);
    if (round->seen_begun && !ours) {
        fettle_set_error(error, STALE_EPOCH,
                         "node %s has become master meanwhile: %s (node %s says so)",
                         config_node_name(config, round->seen_node),
                         wish->by_copy ? "this one is made it no more"
                                       : "the store of this node is not the engine any more",
                         round->seen_by);
        return NEXT_END;
    }
    bool enough = round->own && round->granted >= round->needed;
    /* Whoever has promised more would refuse this mastership: in the first round, in which
     * everybody is waited for, it goes beyond that. */
    if (round->seen && !(enough && round->hurry))
        return NEXT_HIGHER;
    return enough ? NEXT_DONE : NEXT_AGAIN;
}

void promises_alone(const struct env *env, struct promise_wish *wish)
{
    guint64 now_ms = (guint64)MAX(env->ops->wall_us(env) / 1000, 0);
    if (!wish->alone)
        wish->epoch = MAX(wish->epoch + LIMIT_EPOCH_LEAP, now_ms);
    wish->alone = true;
}

/* What came of a question. */
struct outcome {
    char *silent; /* who gave no answer */
    bool heard;   /* somebody else did */
};

static void outcome_clear(struct outcome *outcome)
{
    g_free(outcome->silent);
}
typedef struct outcome outcome_t;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(outcome_t, outcome_clear)

/* For those who do not know this node for a candidate, and for whom they tell of it. */
static void sign(const struct env *env, const struct config *config, struct promise_wish *wish,
                 bool begins)
{
    const struct cluster *cluster = config_cluster(config);
    struct stamp stamp = {config_history(config), wish->epoch};
    if (!cluster || (wish->signed_epoch == stamp.epoch && wish->signed_begun == begins))
        return;
    voucher_sign(env, cluster->uuid, stamp, begins, wish->signature);
    wish->signed_epoch = stamp.epoch;
    wish->signed_begun = begins;
}

static enum next ask(const struct env *env, const struct config *config,
                     const struct voters *voters, struct promise_wish *wish, bool begins,
                     struct outcome *ret_outcome, GError **error)
{
    struct round round = {.voters = voters, .needed = majority_of(voters->count), .hurry = begins};
    enum next next = NEXT_END;
    if (voters->nodes->len > 1)
        sign(env, config, wish, begins);
    guint64 asked = wish->epoch;
    if (wish->alone)
        round.needed = 1;
    if (ask_all(env, config, wish, begins, &round)) {
        next = judge(env, config, wish, &round, error);
    } else {
        fettle_set_error(error, KILLED, "the process has ended");
    }
    if (next == NEXT_HIGHER)
        wish->epoch =
            MAX(wish->epoch, round.seen) + 1; /* promised to an attempt that came to nothing */
    else if (next == NEXT_DONE && wish->epoch != asked)
        next = NEXT_HIGHER; /* a person's word has come meanwhile */
    ret_outcome->silent = g_strdup(round.silent->str);
    ret_outcome->heard = round.heard;
    round_clear(&round);
    return next;
}

static void complain(const struct voters *voters, enum next next, const char *silent)
{
    if (next == NEXT_AGAIN)
        log_warning("",
                    "this node becomes master when a majority of the %u candidates promises to "
                    "follow it; silent: %s. If they are gone for good: fettle cluster "
                    "master-failover --alone",
                    voters->count, silent);
    else
        log_warning("",
                    "no other node answers: one of them may be the master by a person's word. This "
                    "node goes on without them in %u s",
                    WITNESS_PATIENCE_MS / 1000);
}

bool promises_get(const struct env *env, const struct config *config, struct promise_wish *wish,
                  GError **error)
{
    g_auto(voters_t) voters = with_witnesses(env, config);
    gint64 until = env->ops->boot_ms(env) + WITNESS_PATIENCE_MS;
    bool complained = false, begins = false;
    while (voters.nodes->len > 1) {
        g_auto(outcome_t) outcome = {NULL, false};
        enum next next = ask(env, config, &voters, wish, begins, &outcome, error);
        if (next == NEXT_END)
            return false;
        if (next == NEXT_DONE && begins)
            return true;
        bool lonely =
            next == NEXT_DONE && !outcome.heard && !wish->alone && env->ops->boot_ms(env) < until;
        if ((next == NEXT_AGAIN || lonely) && !complained)
            complain(&voters, next, outcome.silent);
        complained = complained || next == NEXT_AGAIN || lonely;
        begins = !lonely && (next == NEXT_DONE || (next == NEXT_AGAIN && begins));
        if (next == NEXT_AGAIN || lonely)
            env_sleep(env, PROMISE_PAUSE_MS); /* the next round sees if this is the end */
    }
    return true;
}

bool promises_ask(const struct env *env, const struct config *config, struct promise_wish *wish,
                  GError **error)
{
    g_auto(voters_t) voters = candidates(env, config);
    enum next next = NEXT_HIGHER;
    while (next == NEXT_HIGHER) {
        g_auto(outcome_t) outcome = {NULL, false};
        next = ask(env, config, &voters, wish, false, &outcome, error);
        if (next == NEXT_AGAIN)
            fettle_set_error(error, TEMPORARY,
                             "a majority of the %u candidates must promise to follow this node; no "
                             "answer of their node daemons: %s. If they are gone for good, say so: "
                             "--alone --statement TEXT",
                             voters.count, outcome.silent);
    }
    return next == NEXT_DONE;
}

bool promises_go_on(const struct env *env, const struct config *config, guint64 epoch,
                    GError **error)
{
    g_auto(voters_t) voters = with_witnesses(env, config);
    struct promise_wish wish = {.epoch = epoch, .since = epoch};
    bool complained = false;
    if (voters.nodes->len <= 1)
        return true;
    g_ptr_array_set_size(voters.nodes, 1);
    voters.count = 1;
    for (;;) {
        g_auto(outcome_t) outcome = {NULL, false};
        enum next next = ask(env, config, &voters, &wish, true, &outcome, error);
        if (next == NEXT_DONE || next == NEXT_END)
            return next == NEXT_DONE;
        if (next == NEXT_HIGHER) {
            fettle_set_error(error, TEMPORARY,
                             "this node has promised to follow a later mastership, which may have "
                             "come to nothing; a new one is begun");
            return false;
        }
        if (!complained)
            log_warning("", "the node daemon of this node does not answer; waiting for it");
        complained = true;
        env_sleep(env, PROMISE_PAUSE_MS);
    }
}

static bool hold_all(const struct env *env, const struct config *config,
                     const struct voters *voters, guint64 epoch, GError **error)
{
    struct promise_wish wish = {.epoch = epoch, .since = epoch};
    struct round round = {.voters = voters, .needed = voters->count};
    bool hold = !ask_all(env, config, &wish, true, &round) || round.seen == 0;
    if (!hold)
        fettle_set_error(error, STALE_EPOCH, "node %s follows a later mastership, of node %s",
                         round.seen_by, config_node_name(config, round.seen_node));
    round_clear(&round);
    return hold;
}

bool promises_hold(const struct env *env, const struct config *config, guint64 epoch,
                   GError **error)
{
    g_auto(voters_t) voters = with_witnesses(env, config);
    return voters.nodes->len <= 1 || hold_all(env, config, &voters, epoch, error);
}

bool promises_hold_of(const struct env *env, const struct config *config, const struct node *node,
                      guint64 epoch, GError **error)
{
    g_auto(voters_t) voters = {g_ptr_array_new_with_free_func(free_node), 0};
    g_ptr_array_add(voters.nodes, node_copy(node));
    return hold_all(env, config, &voters, epoch, error);
}

/*
 * An ordinary member that lies (SAF-102, 103): it announces masterships of its own and asks for
 * promises, and it answers announcements, questions for promises and everything else with refusals,
 * with any numbers and any signature that it can have, all the time. Nobody may take its word: no
 * host follows it, none promises it anything, no master steps down for it, and so no epoch or
 * history of anybody else moves by it. What a candidate has signed it may tell, as an honest node
 * does: only by that may it end anything. It has a source of chance of its own.
 */
#include <string.h>

#include "core/config/voucher.h"
#include "mastership.h"

#define LIE_MS 700u

struct lie {
    struct ms *ms;
    struct ms_host *host;
    bool announces;
};

static guint64 chance(struct ms *ms, guint64 below)
{
    ms->liar_random = ms->liar_random * G_GUINT64_CONSTANT(6364136223846793005) +
                      G_GUINT64_CONSTANT(1442695040888963407);
    return (ms->liar_random >> 11) % below;
}

/* --- what it has been shown --- */

static bool is_later(struct stamp stamp, struct stamp than)
{
    return stamp.history != than.history ? stamp.history > than.history : stamp.epoch > than.epoch;
}

static void keep(struct ms *ms, const struct rpc_request *request, bool begun, const char *maker)
{
    const char *signature = json_string_value(json_object_get(request->args, "signature"));
    const json_t *history = json_object_get(request->args, "history");
    const json_t *epoch = json_object_get(request->args, "epoch");
    struct ms_proof proof = {.begun = begun};
    if (!signature || !*signature)
        return;
    proof.stamp =
        (struct stamp){(guint64)json_integer_value(history), (guint64)json_integer_value(epoch)};
    g_strlcpy(proof.node, maker, sizeof proof.node);
    g_strlcpy(proof.signature, signature, sizeof proof.signature);
    if (!ms->proofs)
        ms->proofs = g_array_new(FALSE, FALSE, sizeof(struct ms_proof));
    g_array_append_val(ms->proofs, proof);
}

bool ms_liar_may_end(const struct ms_host *host, struct stamp mastership)
{
    const struct ms *ms = host->ms;
    for (guint i = 0; ms->proofs && i < ms->proofs->len; i++) {
        const struct ms_proof *proof = &g_array_index(ms->proofs, struct ms_proof, i);
        if (is_later(proof->stamp, mastership) ||
            (proof->stamp.epoch == mastership.epoch && strcmp(proof->node, host->uuid) != 0))
            return true;
    }
    return false;
}

/* Near what is there, as a clock would have it, or as high as a number can be. */
static guint64 number(struct ms *ms, guint64 seen)
{
    switch (chance(ms, 5)) {
    case 0:
        return seen;
    case 1:
        return seen + 1;
    case 2:
        return seen + chance(ms, 2000000);
    case 3:
        return G_GUINT64_CONSTANT(1700000000) * (chance(ms, 2) ? 1 : 1000);
    default:
        return RECORD_NUMBER_MAX - chance(ms, 3);
    }
}

/* None, nonsense, or what a candidate has signed for itself. */
static void signature_of(struct ms *ms, const struct ms_host *host, struct stamp stamp,
                         char ret[LIMIT_VOUCHER_CHARS + 1])
{
    *ret = '\0';
    if (chance(ms, 3) == 0)
        g_strlcpy(ret, "ca/0000", LIMIT_VOUCHER_CHARS);
    else if (host->wconfd && chance(ms, 2))
        voucher_sign(host->wconfd, MS_CLUSTER, stamp, chance(ms, 2), ret);
}

static json_t *members(const struct ms *ms)
{
    json_t *list = json_array();
    json_array_append_new(list,
                          json_make("{s:s,s:s,s:s,s:i,s:b}", "uuid", MS_LIAR, "name", "liar",
                                    "address", "10.0.0.99", "port", 1811, "master_candidate", 1));
    return list;
}

static void told(json_t *result, const GError *error, void *data)
{
    g_autofree struct lie *lie = data;
    struct ms *ms = lie->ms;
    bool granted = result && json_is_true(json_object_get(result, "granted"));
    if (!ms->over && result && (lie->announces || granted))
        ms_problem(ms, "%s %s a member that lies", lie->host->uuid,
                   lie->announces ? "believes" : "promises a mastership to");
}

static void say(struct ms *ms, struct ms_host *host)
{
    struct stamp seen = host->fence ? epoch_fence_highest(host->fence) : (struct stamp){0, 0};
    struct stamp stamp = {number(ms, seen.history), MAX(number(ms, seen.epoch), 1)};
    struct lie *lie = g_new(struct lie, 1);
    char signature[LIMIT_VOUCHER_CHARS + 1];
    *lie = (struct lie){ms, host, chance(ms, 2) == 0};
    signature_of(ms, host, stamp, signature);
    json_t *args = json_make("{s:I,s:I,s:s}", "history", (json_int_t)stamp.history, "epoch",
                             (json_int_t)stamp.epoch, "signature", signature);
    if (lie->announces) {
        json_object_update_new(args, json_make("{s:s,s:s,s:I,s:o}", "cluster", MS_CLUSTER,
                                               "master_node", MS_LIAR, "serial",
                                               (json_int_t)number(ms, 1), "members", members(ms)));
    } else {
        json_object_update_new(args, json_make("{s:s,s:I,s:b}", "node", MS_LIAR, "since",
                                               (json_int_t)number(ms, seen.epoch), "begins",
                                               (int)chance(ms, 2)));
    }
    const struct rpc_call call = {.to_node = host->uuid,
                                  .to_role = ROLE_NODED,
                                  .method = lie->announces ? "announce" : "promise_epoch",
                                  .args = args,
                                  .stamp = stamp};
    ms->liar->ops->call(ms->liar, &call, told, lie);
}

static void check(struct ms *ms, const struct ms_host *host)
{
    if (host->fence && !strcmp(epoch_fence_announced(host->fence)->master_node, MS_LIAR))
        ms_problem(ms, "%s follows a member that lies", host->uuid);
}

static void lie_cb(void *data)
{
    struct ms *ms = data;
    if (ms->over)
        return;
    for (guint i = 0; i < ms->hosts_count; i++)
        check(ms, &ms->hosts[i]);
    say(ms, &ms->hosts[chance(ms, ms->hosts_count)]);
    ms_timer(ms, LIE_MS, lie_cb, ms);
}

/* --- answers --- */

/* What it says that it follows: any numbers and any node, with what somebody has signed, for that
 * or for something else, or with nothing. */
static json_t *refusal(struct ms *ms, const struct rpc_request *request)
{
    struct stamp stamp = {number(ms, request->stamp.history),
                          MAX(number(ms, request->stamp.epoch), 1)};
    const char *node = chance(ms, 3) ? ms->hosts[chance(ms, ms->hosts_count)].uuid : MS_LIAR;
    const char *signature = chance(ms, 2) ? "ca/0000" : "";
    bool begun = chance(ms, 2);
    if (ms->proofs && chance(ms, 2)) {
        const struct ms_proof *proof =
            &g_array_index(ms->proofs, struct ms_proof, chance(ms, ms->proofs->len));
        signature = proof->signature;
        node = chance(ms, 4) ? proof->node : node;
        begun = chance(ms, 4) ? proof->begun : begun;
        stamp = chance(ms, 4) ? proof->stamp : stamp;
    }
    return json_make("{s:b,s:I,s:I,s:s,s:b,s:s}", "granted", 0, "history",
                     (json_int_t)stamp.history, "epoch", (json_int_t)stamp.epoch, "node", node,
                     "begun", begun, "signature", signature);
}

static void answers(struct rpc_request *request, void *data)
{
    struct ms *ms = data;
    const json_t *maker = json_object_get(request->args, "node");
    bool announces = !strcmp(request->name, "announce");
    bool promises = !strcmp(request->name, "promise_epoch");
    if (announces)
        keep(ms, request, true, request->from_node);
    else if (promises && json_is_string(maker))
        keep(ms, request, json_is_true(json_object_get(request->args, "begins")),
             json_string_value(maker));
    guint way = (guint)chance(ms, 8);
    if (way == 0)
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, "not now");
    else if (way == 1 && promises)
        rpc_answer(request, json_make("{s:b}", "granted", 1));
    else if (way == 1 && announces)
        rpc_answer(request, json_object());
    else if (promises)
        rpc_answer(request, refusal(ms, request));
    else
        rpc_fail_new(request, FETTLE_ERROR_STALE_EPOCH, "the request is of an epoch that is over");
}

void ms_liar_free(struct ms *ms)
{
    if (ms->proofs)
        g_array_unref(ms->proofs);
}

void ms_liar_start(struct ms *ms, guint64 seed)
{
    ms->liar_random = seed;
    ms->liar = fake_process(ms->world, MS_LIAR, ROLE_WCONFD);
    fake_serve(fake_process(ms->world, MS_LIAR, ROLE_NODED), answers, ms);
    ms_timer(ms, LIE_MS, lie_cb, ms);
}

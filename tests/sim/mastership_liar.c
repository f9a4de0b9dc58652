/*
 * An ordinary member that lies (SAF-102, 103): it announces masterships of its own and asks for
 * promises, with any numbers and any signature that it can have, all the time. Nobody may take its
 * word: no host follows it, none promises it anything, and so no epoch or history of anybody else
 * moves by it. It has a source of chance of its own, so that a seed stays the run that it was.
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
    struct stamp seen = host->fence ? fence_highest(host->fence) : (struct stamp){0, 0};
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
    if (host->fence && !strcmp(fence_announced(host->fence)->master_node, MS_LIAR))
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

void ms_liar_start(struct ms *ms, guint64 seed)
{
    ms->liar_random = seed;
    ms->liar = fake_process(ms->world, MS_LIAR, ROLE_WCONFD);
    ms_timer(ms, LIE_MS, lie_cb, ms);
}

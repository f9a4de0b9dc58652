/* See believe.h. */
#include "core/epoch/believe.h"

#include <string.h>

#include "base/log.h"
#include "core/config/voucher.h"
#include "proto/env_many.h"
#include "proto/horizon.h"

#define HEARSAY_MS 1000u      /* each of two questions to the other candidates */
#define MASTER_HEARD_MS 5000u /* a candidate that has heard its master since has one */

bool epoch_fence_is_local(const struct epoch_fence *fence, const char *node)
{
    return strcmp(node, fence->env->node_uuid) == 0;
}

static const char *name_of(const struct epoch_fence *fence, const char *node)
{
    const struct member *member = epoch_fence_member(fence, node);
    return member ? member->name : node;
}

/* Once for each node, until an announcement is taken over: a frame costs its sender nothing. */
static void say_doubt(struct epoch_fence *fence, const char *from_node, const GError *error)
{
    if (g_hash_table_size(fence->doubted) >= LIMIT_NODES || fettle_error_is(error, KILLED) ||
        !g_hash_table_add(fence->doubted, g_strdup(from_node)))
        return;
    log_warning("", "not taken from node %s: %s", name_of(fence, from_node), error->message);
}

/* --- numbers --- */

static bool check_numbers(const struct epoch_fence *fence, const char *from_node,
                          struct stamp stamp, guint64 serial, GError **error)
{
    gint64 now = fence->env->ops->wall_us(fence->env);
    struct stamp seen = epoch_fence_highest(fence);
    guint64 epoch = MAX(fence->announced->epoch, fence->promised->epoch);
    if (horizon_check(HORIZON_HISTORY, stamp.history, seen.history, now, error) &&
        horizon_check(HORIZON_EPOCH, stamp.epoch, epoch, now, error) &&
        horizon_check(HORIZON_SERIAL, serial, fence->announced->serial, now, error))
        return true;
    g_autofree char *from = g_strdup_printf("; not believed (from %s)", name_of(fence, from_node));
    if (error && *error) {
        g_autofree char *text = g_strconcat((*error)->message, from, NULL);
        g_clear_error(error);
        fettle_set_error(error, WRONG_INPUT, "%s", text);
    }
    return false;
}

/* --- what the other candidates say of it --- */

struct hearsay {
    struct stamp stamp;
    const char *node; /* whose it is to be */
    guint answered;
    bool heard;  /* one has promised it, or follows it */
    bool served; /* one has a master, which is another node */
    bool later;  /* one follows what came after it */
};

static bool take_known(struct env_answer *heard, void *data)
{
    const struct promise_epoch_result *answer = heard->record;
    struct hearsay *hearsay = data;
    if (!answer)
        return false;
    struct stamp known = {answer->history, answer->epoch};
    int order = stamp_compare(known, hearsay->stamp);
    hearsay->answered++;
    hearsay->heard = hearsay->heard || (order == 0 && !strcmp(answer->node, hearsay->node));
    hearsay->later = hearsay->later || (order > 0 && answer->begun);
    return hearsay->heard || hearsay->later;
}

/* Who is master in etcd only their wconfd can see. */
static bool take_role(struct env_answer *heard, void *data)
{
    const struct role_status *status = heard->record;
    struct hearsay *hearsay = data;
    if (!status)
        return false;
    bool follows = !strcmp(status->master_node, hearsay->node);
    bool hears =
        status->seat == SEAT_MASTER || (status->contact && status->contact_ms < MASTER_HEARD_MS);
    hearsay->heard = hearsay->heard || (follows && status->engine == ENGINE_KIND_ETCD);
    hearsay->served = hearsay->served || (!follows && hears);
    return hearsay->heard;
}

static GPtrArray *other_candidates(const struct epoch_fence *fence, const char *announcer)
{
    GPtrArray *others = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < fence->announced->members->len; i++) {
        const struct member *member = fence->announced->members->pdata[i];
        if (member->master_candidate && !epoch_fence_is_local(fence, member->uuid) &&
            strcmp(member->uuid, announcer) != 0)
            g_ptr_array_add(others, g_strdup(member->uuid));
    }
    return others;
}

/* A mastership that was never promised here, is not signed, and is of another node than the master:
 * a failover by a majority would have been promised elsewhere, one in etcd is seen there. A
 * person's word, of a master that cannot sign, is known to nobody; but then nobody has a master.
 * Silence refuses nothing. */
static bool ask_others(const struct epoch_fence *fence, const char *announcer, struct stamp stamp,
                       GError **error)
{
    const struct env *env = fence->env;
    struct hearsay hearsay = {.stamp = stamp, .node = announcer};
    g_autoptr(GPtrArray) others = other_candidates(fence, announcer);
    struct promise_epoch_args known = {.history = stamp.history, .node = (char *)env->node_uuid};
    struct wait_role_args role = {.seat = SEAT_FOLLOWS};
    struct env_question question = {.nodes = others,
                                    .role = ROLE_NODED,
                                    .method = "promise_epoch",
                                    .args = &known,
                                    .stamp = epoch_fence_stamp(fence),
                                    .limit_ms = HEARSAY_MS};
    g_autofree char *name = g_strdup(name_of(fence, announcer));
    if (!env_many(env, &question, take_known, &hearsay))
        return fettle_set_ended(error, "the node daemon");
    bool many = hearsay.answered * 2 > others->len;
    question.role = ROLE_WCONFD;
    question.method = "wait_role";
    question.args = &role;
    if (many && !hearsay.heard && !hearsay.later && !env_many(env, &question, take_role, &hearsay))
        return fettle_set_ended(error, "the node daemon");
    if (hearsay.heard || (!hearsay.later && !(many && hearsay.served)))
        return true;
    fettle_set_error(error, TEMPORARY, "%s of the mastership that node \"%s\" announces; try again",
                     hearsay.later ? "another candidate follows a later one than that"
                                   : "no other candidate has promised or heard",
                     name);
    return false;
}

/* --- who says it --- */

static bool is_candidate(const struct epoch_fence *fence, const char *node)
{
    const struct member *member = epoch_fence_member(fence, node);
    return member && member->master_candidate;
}

/* Whether it shows the authority's signature. One that could not be looked at proves nothing, but
 * its maker is told to try again: `*ret_unknown`. */
static bool is_signed(const struct epoch_fence *fence, const char *node, struct stamp stamp,
                      bool begun, const char *signature, GError **ret_unknown)
{
    g_autoptr(GError) why = NULL;
    if (!*signature)
        return false;
    if (voucher_check(fence->env, fence->cluster_uuid, stamp, begun, node, signature, &why))
        return true;
    if (!fettle_error_is(why, PERMISSION))
        g_propagate_error(ret_unknown, g_steal_pointer(&why));
    return false;
}

static void refuse_maker(const struct epoch_fence *fence, const char *node, const char *what,
                         GError **error)
{
    fettle_set_error(error, PERMISSION, "node \"%s\" is no master candidate; %s candidates only",
                     name_of(fence, node), what);
}

/* Of a mastership that is not the one announced here. */
static bool check_announcer(const struct epoch_fence *fence, const char *node, struct stamp stamp,
                            const char *signature, GError **error)
{
    g_autoptr(GError) unknown = NULL;
    bool expected = !strcmp(node, fence->announced->master_node) ||
                    stamp_compare(stamp, epoch_fence_promised(fence)) == 0;
    if (expected && is_candidate(fence, node))
        return true;
    if (is_signed(fence, node, stamp, true, signature, &unknown))
        return true;
    if (is_candidate(fence, node))
        return ask_others(fence, node, stamp, error);
    if (unknown)
        g_propagate_error(error, g_steal_pointer(&unknown));
    else
        refuse_maker(fence, node, "announcements of a mastership are taken from", error);
    return false;
}

static bool check_asker(const struct epoch_fence *fence, const struct promise_epoch_args *args,
                        GError **error)
{
    struct stamp stamp = {args->history, args->epoch};
    g_autoptr(GError) unknown = NULL;
    if (is_candidate(fence, args->node) ||
        is_signed(fence, args->node, stamp, args->begins, args->signature, &unknown))
        return true;
    if (unknown)
        g_propagate_error(error, g_steal_pointer(&unknown));
    else
        refuse_maker(fence, args->node, "promises are given to", error);
    return false;
}

bool epoch_fence_believes(struct epoch_fence *fence, const char *from_node,
                          const struct announce_args *args, GError **error)
{
    g_autoptr(GError) why = NULL;
    struct stamp stamp = {args->history, args->epoch};
    bool known = stamp_compare(stamp, epoch_fence_stamp(fence)) == 0;
    if (epoch_fence_is_local(fence, from_node))
        return true;
    if (check_numbers(fence, from_node, stamp, args->serial, &why) &&
        (known || check_announcer(fence, from_node, stamp, args->signature, &why)))
        return true;
    say_doubt(fence, from_node, why);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool epoch_fence_trusts(struct epoch_fence *fence, const char *from_node,
                        const struct promise_epoch_args *args, GError **error)
{
    g_autoptr(GError) why = NULL;
    struct stamp stamp = {args->history, args->epoch};
    bool known = stamp_compare(stamp, epoch_fence_highest(fence)) == 0;
    if (epoch_fence_is_local(fence, from_node))
        return true;
    if (check_numbers(fence, from_node, stamp, 0, &why) &&
        (known || check_asker(fence, args, &why)))
        return true;
    say_doubt(fence, from_node, why);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

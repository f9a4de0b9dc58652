/*
 * Members of etcd in a renewal of keys; see key_renewal_private.h. A member reads its certificate
 * and key anew for each connection, but whom it trusts only when it starts: so it is started anew
 * twice, in `spread` and in `drop`, one after the other, and the master's own at the end.
 */
#include <string.h>

#include "core/wconfd/engine_nodes.h"
#include "core/wconfd/key_renewal_private.h"

/* One that is away would be the second that is missing, while another starts. */
#define AWAY                                                                                       \
    "is offline, and with it its member of etcd, so that no other one can be started anew: make "  \
    "it no candidate (fettle node modify %s --master-candidate no)"

/* One of the version before goes through the phases without members, and says that it is over. */
bool key_renewal_known(const struct wconf *wconf, GError **error)
{
    const char *older = wconf->engine->replicated ? wconf_older_candidate(wconf) : NULL;
    if (older)
        fettle_set_error(error, TEMPORARY,
                         "the keys of etcd are not renewed while the master candidate %s runs "
                         "another version, which as the master may leave them as they are; bring "
                         "all to one version",
                         older);
    return !older;
}

struct round {
    const struct key_pass *pass;
    struct engine_asker asker;
    char *wanted; /* digest of whom members are to trust */
    bool stopped; /* one is not well, or was started anew in this pass: no other one is */
};

/* What was found of a candidate's member at the begin of a pass. */
struct look {
    const struct node *node;
    bool asked; /* it is in reach, and not known to have all */
    struct engine_report *report;
    GError *why; /* there is none */
};

static void look_free(void *data)
{
    struct look *look = data;
    engine_report_free(look->report);
    g_clear_error(&look->why);
    g_free(look);
}

static void wait_for(const struct round *round, const struct node *node, const char *why)
{
    bool named = g_str_has_prefix(why, "node "); /* as errors of engine_nodes.h are */
    g_ptr_array_add(round->pass->waits,
                    named ? g_strdup(why) : g_strdup_printf("node %s: %s", node->name, why));
}

static bool is_there(const struct member_status *member)
{
    enum member_state state = (enum member_state)member->state;
    return state != MEMBER_ABSENT && state != MEMBER_LOST && state != MEMBER_STOPPED;
}

static bool has_vote(const struct member_status *member)
{
    return is_there(member) && !member->learner;
}

static bool is_done(const struct round *round, const struct member_status *member)
{
    enum renewal_phase phase = (enum renewal_phase)round->pass->cluster->renewal;
    bool told = strcmp(member->trusts, round->wanted) == 0;
    bool started = phase == RENEWAL_REISSUE || strcmp(member->started_with, round->wanted) == 0;
    return told && started && (phase == RENEWAL_SPREAD || member->by_first) && member->healthy &&
           has_vote(member);
}

/* Files alone, which any number of nodes may change. One whose certificate is of another time would
 * not be let in by the list, and refuses that: so it gets both at once. */
static bool give(const struct round *round, const struct node *node,
                 const struct member_status *member, GError **error)
{
    const struct cluster *cluster = round->pass->cluster;
    bool spread = cluster->renewal == RENEWAL_SPREAD;
    g_autoptr(GError) why = NULL;
    bool told = strcmp(member->trusts, round->wanted) == 0 ||
                engine_node_trust(&round->asker, node, cluster->etcd_authority, &why);
    if (told && (spread || member->by_first))
        return true;
    if (told || (!spread && fettle_error_is(why, WRONG_STATE)))
        return engine_node_certify(&round->asker, cluster, node, true, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* A node refuses it while others are not well: then the turn is that of the one that is not. */
static bool start_anew(struct round *round, const struct node *node,
                       const struct member_status *member, GError **error)
{
    bool started = round->pass->cluster->renewal == RENEWAL_REISSUE ||
                   strcmp(member->started_with, round->wanted) == 0;
    g_autoptr(GError) why = NULL;
    if (started && member->healthy && has_vote(member))
        return true;
    if (started) {
        wait_for(round, node,
                 *member->why      ? member->why
                 : member->learner ? "its member of etcd has no vote yet"
                                   : "its member of etcd does not answer");
        round->stopped = true;
    } else if (round->stopped || engine_node_restart(&round->asker, node, &why)) {
        wait_for(round, node, "its member of etcd is to be started anew");
        round->stopped = true;
    }
    if (!why)
        return true;
    round->stopped = !fettle_error_is(why, TEMPORARY);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool tend(struct round *round, const struct node *node, const struct look *look,
                 GError **error)
{
    const struct engine_report *report = look->report;
    if (!report) {
        g_propagate_error(error, g_error_copy(look->why));
        return false;
    }
    if (!is_there(report->member)) {
        wait_for(round, node,
                 "its member of etcd is not there yet; what it waits for is in the log of the "
                 "master's fettle-wconfd");
        return true;
    }
    if (is_done(round, report->member)) {
        if (round->pass->cluster->renewal == RENEWAL_NONE)
            g_hash_table_add(round->pass->keeper->settled, g_strdup(node->uuid));
        return true;
    }
    if (!give(round, node, report->member, error) || !key_renewal_alive(round->pass->keeper))
        return false;
    record_autoptr(engine_report) now = engine_node_report(&round->asker, node, error);
    return now && start_anew(round, node, now->member, error);
}

static void tend_node(struct round *round, const struct look *look)
{
    g_autoptr(GError) error = NULL;
    const struct key_pass *pass = round->pass;
    const struct node *node = look->node;
    if (!look->asked && (!node->offline || pass->cluster->renewal == RENEWAL_NONE))
        return;
    if (node->offline) {
        g_autofree char *why = g_strdup_printf(AWAY, node->name);
        wait_for(round, node, why);
        round->stopped = true;
    } else if (!tend(round, node, look, &error) && error) {
        round->stopped = round->stopped || !fettle_error_is(error, TEMPORARY);
        wait_for(round, node,
                 fettle_error_is(error, PROTOCOL)
                     ? "its version knows no renewal of keys of etcd; upgrade it"
                     : error->message);
    }
}

/* A candidate without a vote in etcd: of those who have one, none may be away. What a member asks
 * of others by etc/engine.json does not tell it, as that lists no member which has gone. So all are
 * looked at first. */
static GPtrArray *look_at_all(struct round *round, const GPtrArray *nodes)
{
    GPtrArray *looks = g_ptr_array_new_with_free_func(look_free);
    const struct key_pass *pass = round->pass;
    bool over = pass->cluster->renewal == RENEWAL_NONE;
    for (guint i = 0; i < nodes->len; i++) {
        struct look *look = g_new0(struct look, 1);
        look->node = nodes->pdata[i];
        look->asked = !look->node->offline &&
                      !(over && g_hash_table_contains(pass->keeper->settled, look->node->uuid));
        if (look->asked)
            look->report = engine_node_report(&round->asker, look->node, &look->why);
        round->stopped = round->stopped || (look->report && !has_vote(look->report->member));
        g_ptr_array_add(looks, look);
    }
    return looks;
}

void key_renewal_bring_members(const struct key_pass *pass)
{
    const struct key_renewal *keeper = pass->keeper;
    struct round round = {.pass = pass,
                          .asker = {keeper->env, keeper->stamp},
                          .wanted = g_compute_checksum_for_string(
                              G_CHECKSUM_SHA256, pass->cluster->etcd_authority, -1)};
    g_autoptr(GPtrArray) nodes = engine_candidates(keeper->env, keeper->wconf->committed);
    g_autoptr(GPtrArray) looks = look_at_all(&round, nodes);
    for (guint i = 0; i < looks->len && key_renewal_alive(keeper); i++)
        tend_node(&round, looks->pdata[(i + 1) % looks->len]); /* this one is first there */
    g_free(round.wanted);
}

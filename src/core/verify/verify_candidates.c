/*
 * Daemons, and what the other candidates could do as master: whether their wconfd answers, how far
 * their copies are, whether there are enough of them. What cannot be asked is said to be silent,
 * never well. See verify_look.h.
 */
#include "core/query/query_rows.h"
#include "core/report/faults.h"
#include "core/verify/verify_look.h"
#include "core/watcher/candidate_pool.h"
#include "proto/env_many.h"

/* --- asking --- */

static void candidate_free(void *data)
{
    struct candidate *candidate = data;
    role_status_free(candidate->role);
    g_free(candidate->refusal);
    g_free(candidate);
}

static bool take_answer(struct env_answer *answer, void *data)
{
    struct candidate *candidate =
        g_hash_table_lookup(((struct look *)data)->candidates, answer->node);
    if (answer->record)
        candidate->role = g_steal_pointer(&answer->record);
    else if (!env_no_answer(answer->error))
        candidate->refusal = g_strdup(answer->error->message);
    return false;
}

bool candidates_ask(struct look *look)
{
    static const struct wait_role_args at_once = {0};
    const struct config *config = follow_config(look->queries->follow);
    const struct cluster *cluster = config_cluster(config);
    g_autoptr(GPtrArray) nodes = config_list(config, "node"), asked = g_ptr_array_new();
    look->candidates = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, candidate_free);
    for (guint i = 0; cluster && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->master_candidate || node->offline ||
            g_str_equal(node->uuid, cluster->master_node) || !reports_of(look->reports, node->uuid))
            continue;
        g_hash_table_insert(look->candidates, g_strdup(node->uuid), g_new0(struct candidate, 1));
        g_ptr_array_add(asked, node->uuid);
    }
    const struct env_question question = {.nodes = asked,
                                          .role = ROLE_WCONFD,
                                          .method = "wait_role",
                                          .args = &at_once,
                                          .stamp = follow_stamp(look->queries->follow),
                                          .limit_ms = LIMIT_REPORT_WAIT_MS};
    return env_many(look->queries->env, &question, take_answer, look);
}

/* --- daemons --- */

/* A front end is one because a person said so, whom nothing else reminds: its package may be gone.
 */
static char *advice_on(const char *binary, const char *node)
{
    return g_str_equal(binary, "fettle-apid")
               ? g_strdup_printf("; if that node is to have no front end of the API: fettle api "
                                 "remove --node %s",
                                 node)
               : g_strdup("");
}

static void verify_service(struct look *look, const void *row)
{
    g_autofree char *state = look_field(look, "service", "state", row);
    g_autofree char *process = look_field(look, "service", "process", row);
    g_autofree char *binary = look_field(look, "service", "binary", row);
    g_autofree char *why = look_field(look, "service", "why", row);
    const char *node = query_service_node(row)->name;
    g_autofree char *advice = advice_on(binary, node);
    if (g_str_equal(process, "stopped") && query_service_may_stop(row))
        return;
    if (g_str_equal(state, "down"))
        look_problem(look, "node %s: %s is down%s%s%s", node, binary, *why ? ": " : "", why,
                     advice);
    else if (!*state && g_str_equal(process, "unknown"))
        look_problem(look, "node %s: whether %s runs cannot be told%s%s", node, binary,
                     *why ? ": " : "", why);
}

void verify_services(struct look *look)
{
    g_autoptr(GPtrArray) rows = query_service_rows(look->config);
    for (guint i = 0; i < rows->len && look_pause(look); i++)
        if (look_concerns(look, query_service_node(rows->pdata[i])->uuid))
            verify_service(look, rows->pdata[i]);
}

static bool is_down(const struct look *look, const char *node, const char *name)
{
    const struct node_report *report = reports_of(look->reports, node);
    for (guint i = 0; report && i < report->services->len; i++) {
        const struct service_report *service = report->services->pdata[i];
        if (g_str_equal(service->name, name))
            return service->state == SERVICE_STOPPED || service->state == SERVICE_RESTARTING;
    }
    return report && report->services->len > 0;
}

/* --- candidates --- */

/* What is on no disk but the master's is lost with it. */
static void verify_copy(struct look *look, const struct copy_status *copy)
{
    const char *name = look_node_name(look, copy->node);
    g_autofree char *at = copy->serial
                              ? g_strdup_printf("stands at serial %" G_GUINT64_FORMAT, copy->serial)
                              : g_strdup("has not been heard of");
    if (copy->filling)
        look_note(look, "node %s: its copy of the configuration is being made anew", name);
    else if (!copy->reachable)
        look_problem(look,
                     "node %s: its copy of the configuration %s, and no change waits for it: as "
                     "master it would lack what has changed since. See whether its fettle-wconfd "
                     "runs, and what its log says",
                     name, at);
    else if (!copy->authority)
        look_problem(look,
                     "node %s: does not have the key of the cluster's authority, so as master it "
                     "could let no host in; the log of its fettle-wconfd says why",
                     name);
}

/* Whether it could become the master now. */
static void verify_role(struct look *look, const struct node *node,
                        const struct candidate *candidate)
{
    if (candidate->role && *candidate->role->why)
        look_problem(look, "node %s: its fettle-wconfd says: %s", node->name, candidate->role->why);
    else if (candidate->refusal)
        look_problem(look, "node %s: its fettle-wconfd answers with an error: %s", node->name,
                     candidate->refusal);
    else if (!candidate->role && !is_down(look, node->uuid, "wconfd"))
        look_problem(look,
                     "node %s: its fettle-wconfd does not answer: it takes no change, and cannot "
                     "become the master. What its log says, and whether it stands still, shows "
                     "there",
                     node->name);
}

static bool is_well_member(const struct look *look, const struct node *node)
{
    const struct node_report *report = reports_of(look->reports, node->uuid);
    return report && !faults_find(report, FAULT_MEMBER) && !is_down(look, node->uuid, "etcd");
}

/* Each of them is named by its own fault; this is what all together can bear. */
static void tell_majority(struct look *look, guint well, guint members)
{
    guint majority = members / 2 + 1;
    if (well < majority)
        look_problem(look,
                     "etcd: %u of %u members are well, and that is no majority: nothing can be "
                     "changed, and no master is chosen: fettle cluster engine status",
                     well, members);
    else if (well == majority)
        look_problem(look,
                     "etcd: %u of %u members are well; if one more is lost nothing can be changed, "
                     "and no master is chosen: fettle cluster engine status",
                     well, members);
    else
        look_problem(look,
                     "etcd: %u of %u members are well; %u more may be lost before nothing can be "
                     "changed",
                     well, members, well - majority);
}

static void verify_majority(struct look *look)
{
    g_autoptr(GPtrArray) nodes = config_list(look->config, "node");
    guint members = 0, well = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        bool member = node->master_candidate || g_str_equal(node->uuid, look->cluster->master_node);
        members += member;
        well += member && is_well_member(look, node);
    }
    if (look->cluster->engine == ENGINE_KIND_ETCD && well < members)
        tell_majority(look, well, members);
}

/* As `fettle why cluster` has it once it has lasted (watcher/candidates.c). */
static void verify_pool(struct look *look)
{
    const struct env *env = look->queries->env;
    g_autoptr(GPtrArray) nodes = config_list(look->config, "node");
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(struct candidate_pool_node));
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = reports_of(look->reports, node->uuid);
        struct candidate_pool_node one = {.node = node,
                                          .unheard_ms = report ? 0 : 1,
                                          .disks_failed =
                                              faults_proven(report, FAULT_DISKS) != NULL,
                                          .unable = report ? faults_forbids(report, false) : NULL,
                                          .faults = report ? faults_rank(report) : 0};
        g_array_append_val(seen, one);
    }
    struct candidate_pool_judgement pool =
        candidate_pool_judge(look->config, seen, env->ops->wall_us(env) / G_USEC_PER_SEC);
    g_ptr_array_add(pool.evidence, NULL);
    g_autofree char *evidence = g_strjoinv(", ", (char **)pool.evidence->pdata);
    if (pool.verdict != POOL_FULL)
        look_problem(look,
                     "cluster: %u of %u master candidates %s usable (candidate_pool_size)%s%s; "
                     "what is done about it: fettle why cluster",
                     pool.usable, pool.goal, pool.usable == 1 ? "is" : "are", *evidence ? ": " : "",
                     evidence);
    candidate_pool_judgement_clear(&pool);
}

void verify_candidates(struct look *look)
{
    for (guint i = 0; i < look->status->copies->len; i++) {
        const struct copy_status *copy = look->status->copies->pdata[i];
        const struct candidate *candidate = g_hash_table_lookup(look->candidates, copy->node);
        const struct node *node = config_get(look->config, "node", copy->node, NULL);
        if (!node || !look_concerns(look, copy->node))
            continue;
        if (candidate)
            verify_role(look, node, candidate);
        if (reports_of(look->reports, copy->node)) /* else it says less than its silence */
            verify_copy(look, copy);
    }
    if (!look_whole(look))
        return;
    verify_majority(look);
    verify_pool(look);
}

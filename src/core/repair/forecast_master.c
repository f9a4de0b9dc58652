/* See forecast_master.h. */
#include "core/repair/forecast_master.h"

#include <string.h>

#include "core/config/majority.h"
#include "core/report/faults.h"

/* --- who is left --- */

static const struct node_report *report_of(const GPtrArray *reports, const char *node)
{
    for (guint i = 0; i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        if (strcmp(report->node, node) == 0)
            return report;
    }
    return NULL;
}

/* By the word of its node; one of an older version says nothing of its daemons. */
static bool runs(const struct node_report *report, const char *daemon)
{
    for (guint i = 0; i < report->services->len; i++) {
        const struct service_report *service = report->services->pdata[i];
        if (strcmp(service->name, daemon) == 0)
            return service->state == SERVICE_RUNNING || service->state == SERVICE_UNKNOWN;
    }
    return report->services->len == 0;
}

/* Whether a candidate could do its part when the master is lost: for the majority, or with its copy
 * of the configuration. */
static bool serves(const struct config *config, const GPtrArray *reports, const struct node *node)
{
    const struct node_report *report = report_of(reports, node->uuid);
    bool etcd = config_cluster(config)->engine == ENGINE_KIND_ETCD;
    if (node->offline || report == NULL)
        return false;
    if (etcd)
        return runs(report, "etcd") && faults_find(report, FAULT_MEMBER) == NULL;
    return runs(report, "wconfd") && (report->copy_history != 0 || !report->faults_known);
}

static guint count_left(const struct config *config, const GPtrArray *reports,
                        const struct node *node, guint *ret_candidates)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    const struct cluster *cluster = config_cluster(config);
    guint left = 0;
    *ret_candidates = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *other = nodes->pdata[i];
        bool master = strcmp(other->uuid, cluster->master_node) == 0; /* whatever its record says */
        bool candidate = other->master_candidate || master;
        *ret_candidates += candidate;
        left += candidate && other != node && (master || serves(config, reports, other));
    }
    return left;
}

/* Whether those that answer can promise to follow another one: node daemons do, with a copy of the
 * configuration or without. */
static bool promise_enough(const struct config *config, const GPtrArray *reports,
                           const struct node *node)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    guint count = 0, granted = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *other = nodes->pdata[i];
        bool counts = majority_counts(other);
        count += counts;
        granted += counts && other != node && report_of(reports, other->uuid);
    }
    return granted >= majority_of(count);
}

struct forecast_master forecast_master_of(const struct config *config, const GPtrArray *reports,
                                          const struct node *node)
{
    const struct cluster *cluster = config_cluster(config);
    struct forecast_master seen = {.heir = HEIR_BY_ITSELF};
    guint candidates;
    if (cluster == NULL)
        return seen;
    guint left = count_left(config, reports, node, &candidates);
    bool etcd = cluster->engine == ENGINE_KIND_ETCD;
    bool minority = etcd && 2 * left <= candidates;
    seen.master = strcmp(cluster->master_node, node->uuid) == 0;
    seen.minority = minority && !seen.master && node->master_candidate;
    if (seen.master && etcd)
        seen.heir = minority ? HEIR_NONE : HEIR_BY_ITSELF;
    else if (seen.master)
        seen.heir = left > 0 ? HEIR_BY_WORD : HEIR_NONE;
    seen.alone = seen.heir == HEIR_BY_WORD && !promise_enough(config, reports, node);
    return seen;
}

bool forecast_master_repairs(const struct forecast_master *master)
{
    return master->heir == HEIR_BY_ITSELF && !master->minority;
}

/* --- in words --- */

char *forecast_master_without(const struct forecast_master *master, const struct instance *instance,
                              const struct node *node)
{
    bool word = master->heir == HEIR_BY_WORD;
    if (master->minority)
        return g_strdup("nothing can be put on record without a majority of etcd's members, so it "
                        "stays as it is until there is one again");
    if (*instance->holder == '\0')
        return g_strdup(
            "it stays as it is: the master, which would do something about it, is away");
    if (strcmp(instance->primary_node, node->uuid) == 0)
        return g_strconcat("it is down until its node, the master, is back",
                           word ? ", or you make another node the master and say that this one is "
                                  "dead"
                                : "",
                           NULL);
    return g_strconcat(
        "it runs, but what it writes waits until the master, which has its replica, is back",
        word ? ", or you make another node the master" : "", NULL);
}

/* The other candidates, but for those that are offline; g_free(). */
static char *other_candidates(const struct config *config, const struct node *node)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *other = nodes->pdata[i];
        if (other != node && other->master_candidate && !other->offline)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", other->name);
    }
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static json_t *by_word(const struct node *node, bool alone)
{
    return json_sprintf("What to do: bring %s back, with its disk: it starts its own guests "
                        "again, and the repair of all others goes on by itself. If it is gone "
                        "for longer, power it off and make another candidate the master, on "
                        "that one: fettle cluster master-failover%s. Then say that %s is dead: "
                        "fettle node modify %s --offline yes --statement \"…\".",
                        node->name,
                        alone ? " --alone --statement \"…\", as those that are left are no "
                                "majority of the candidates"
                              : "",
                        node->name, node->name);
}

static json_t *by_nobody(const struct config *config, const struct node *node)
{
    bool etcd = config_cluster(config)->engine == ENGINE_KIND_ETCD;
    g_autofree char *others = other_candidates(config, node);
    bool lame = !etcd && *others;
    g_autofree char *why =
        lame ? g_strdup_printf("no other candidate (%s) shows a whole copy of the configuration "
                               "now; what is wrong with them: fettle cluster verify",
                               others)
             : g_strdup(etcd ? "no majority of the members of etcd is left without it, so nobody "
                               "becomes the master"
                             : "no other node has a copy of the configuration");
    return json_sprintf("What to do: bring %s back, with its disk; %s. Then it starts its own "
                        "guests again, and the repair of all others goes on by itself. So that "
                        "another node can take its place, %s.",
                        node->name, why,
                        lame   ? "mend one of those before"
                        : etcd ? "have three candidates that run before: fettle node modify NODE "
                                 "--master-candidate yes"
                               : "have another candidate before: fettle node modify NODE "
                                 "--master-candidate yes");
}

/* The same holds for instances that have nothing to do with that node. */
void forecast_master_note(const struct forecast_master *master, const struct config *config,
                          const struct node *node, json_t *notes)
{
    if (master->minority)
        json_array_append_new(
            notes, json_sprintf("Without %s no majority of etcd's members is left: nothing can be "
                                "changed, and nobody repairs anything, on no node, until more of "
                                "them are back. How they are: fettle cluster engine status.",
                                node->name));
    if (!master->master)
        return;
    if (master->heir == HEIR_BY_ITSELF) {
        json_array_append_new(
            notes,
            json_sprintf("%s is the master. The other candidates choose the next one, within "
                         "seconds; jobs that run end with an error, waiting ones go on. That "
                         "master does what is listed here once you say that %s is dead.",
                         node->name, node->name));
        return;
    }
    json_array_append_new(
        notes, json_sprintf("%s is the master. While there is none no job runs and nobody repairs "
                            "anything, on no node: guests elsewhere run on, but one that ends is "
                            "not started again, and one that loses its replica writes nothing "
                            "until a master has put that on record.",
                            node->name));
    json_array_append_new(notes, master->heir == HEIR_BY_WORD ? by_word(node, master->alone)
                                                              : by_nobody(config, node));
}

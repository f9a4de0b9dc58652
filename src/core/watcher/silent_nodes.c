/*
 * A record about each node that is not offline and does not answer (ARP-68): what waits for it, and
 * what a person can do. Silence is no proof of death, so nothing follows from it. See
 * watcher_private.h.
 */
#include "core/watcher/watcher_private.h"

#include <string.h>

#define AUTHOR "watcher/node"

static bool is_silent(const struct watcher *watcher, const struct node *node)
{
    const struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node->uuid);
    return memory != NULL && memory->unheard_ms != 0 &&
           watcher->env->ops->boot_ms(watcher->env) - memory->unheard_ms >=
               LIMIT_REPAIR_SILENT_S * G_GINT64_CONSTANT(1000);
}

static void count(const struct watcher *watcher, const struct node *node, guint *ret_primary,
                  guint *ret_secondary)
{
    g_autoptr(GPtrArray) instances = config_list(follow_config(watcher->follow), "instance");
    *ret_primary = *ret_secondary = 0;
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        *ret_primary += strcmp(instance->primary_node, node->uuid) == 0;
        *ret_secondary += strcmp(instance->secondary_node, node->uuid) == 0;
    }
}

static struct decision *decide_silent(const struct watcher *watcher, const struct node *node)
{
    guint primary, secondary;
    struct decision *decision =
        decision_about("node", node->uuid, node->name, AUTHOR, VERDICT_WAIT, "Silent");
    decision_set(
        &decision->summary,
        "It does not answer, which does not prove that it is dead: what needs it waits. If "
        "it is dead: fettle node modify %s --offline yes --statement \"…\".",
        node->name);
    count(watcher, node, &primary, &secondary);
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("no answer for %d s and more", LIMIT_REPAIR_SILENT_S));
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("it is the primary node of %u instances, the secondary of %u",
                                    primary, secondary));
    g_ptr_array_add(decision->rejected,
                    g_strdup("failover of its instances: it may run them, and only its link be "
                             "cut"));
    decision_set(&decision->next_check, "when it answers, or is marked offline");
    return decision;
}

static struct decision *decide_over(const struct node *node)
{
    struct decision *decision = decision_about("node", node->uuid, node->name, AUTHOR, VERDICT_DONE,
                                               node->offline ? "Offline" : "Answers");
    decision_set(&decision->summary, "%s",
                 node->offline ? "It is offline on record: its instances are repaired as their "
                                 "policies allow."
                               : "It answers again.");
    return decision;
}

/* Each turn to silence and back has one record. */
static struct decision *decide(const struct watcher *watcher, const struct node *node)
{
    const struct decision *latest = watcher_latest(watcher, node->uuid, AUTHOR);
    bool told = latest != NULL && latest->verdict == VERDICT_WAIT;
    const struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node->uuid);
    bool over = node->offline || (memory != NULL && memory->unheard_ms == 0);
    if (!told && !node->offline && is_silent(watcher, node))
        return decide_silent(watcher, node);
    return told && over ? decide_over(node) : NULL;
}

void watcher_tell_silent_nodes(struct watcher *watcher)
{
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    g_autoptr(GPtrArray) nodes = config_list(follow_config(watcher->follow), "node");
    for (guint i = 0; i < nodes->len; i++) {
        struct decision *decision = decide(watcher, nodes->pdata[i]);
        if (decision == NULL)
            continue;
        GPtrArray *changes = watcher_changes_new();
        watcher_record(watcher, decision, changes);
        watcher_batch_add(batch, changes);
    }
    watcher_batch_commit(watcher, batch);
}

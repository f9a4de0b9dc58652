/*
 * Whether the loss of each node could be taken (ARP-71): for the guests that run there, is there
 * memory where their replicas are, or anywhere for those that can run everywhere? One record about
 * the cluster; nothing is moved. Judged only after the configuration or the size of a node has
 * changed, and only when every node answers. See repair_private.h.
 */
#include "core/repair/repair_private.h"
#include "proto/change.h"

#include <string.h>

#define AUTHOR "watcher/room"

struct n1_check {
    guint64 sizes; /* what the nodes have, as one number: another number, other sizes */
    bool changed;  /* something that the room depends on, since it was judged */
};

struct n1_check *n1_check_new(void)
{
    return g_new0(struct n1_check, 1);
}

void n1_check_free(struct n1_check *spare)
{
    g_free(spare);
}

void n1_check_changed(struct n1_check *spare, const GPtrArray *changes)
{
    spare->changed |= changes == NULL;
    for (guint i = 0; changes != NULL && i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        spare->changed |= g_str_equal(change->kind, "instance") ||
                          g_str_equal(change->kind, "node") || g_str_equal(change->kind, "cluster");
    }
}

void n1_check_sizes(struct n1_check *spare, guint64 sizes)
{
    spare->changed |= sizes != spare->sizes;
    spare->sizes = sizes;
}

/* One guest that runs. */
struct lodger {
    const struct instance *instance;
    guint64 memory;
    bool anywhere;       /* it can run on every node … */
    struct host *target; /* … or only where its replica is; NULL: nowhere */
};

/* One node that is not offline. */
struct host {
    const struct node *node;
    gint64 spare;   /* memory that is promised to nobody, in MiB */
    gint64 left;    /* of that, while a loss is played through */
    GArray *guests; /* struct lodger: run here */
};

struct hosts {
    GPtrArray *list; /* struct host */
    GHashTable *by_uuid;
};

static void host_free(void *data)
{
    struct host *host = data;
    g_array_unref(host->guests);
    g_free(host);
}

/* False if one that should answer does not. */
static bool find_hosts(const struct watcher *watcher, struct hosts *hosts)
{
    double ratio = watcher_cluster(watcher)->memory_ratio;
    g_autoptr(GPtrArray) nodes = config_list(follow_config(watcher->follow), "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = reports_of(watcher->reports, node->uuid);
        if (node->offline)
            continue;
        if (report == NULL)
            return false;
        struct host *host = g_new0(struct host, 1);
        host->node = node;
        host->spare = (gint64)((double)report->memory_total * ratio);
        host->guests = g_array_new(false, false, sizeof(struct lodger));
        g_ptr_array_add(hosts->list, host);
        g_hash_table_insert(hosts->by_uuid, node->uuid, host);
    }
    return true;
}

static void count_guests(const struct watcher *watcher, const struct hosts *hosts)
{
    g_autoptr(GPtrArray) instances = config_list(follow_config(watcher->follow), "instance");
    for (guint i = 0; i < instances->len; i++) {
        struct instance *instance = instances->pdata[i];
        struct host *host = g_hash_table_lookup(hosts->by_uuid, instance->primary_node);
        if (host == NULL)
            continue;
        host->spare -= (gint64)allocated_need(instance);
        if (instance->admin_state != ADMIN_UP)
            continue;
        bool mirrored = repair_template_mirrored(instance->disk_template);
        struct lodger lodger = {
            .instance = instance,
            .memory = allocated_next(instance),
            .anywhere = repair_template_shared(instance->disk_template),
            .target =
                mirrored ? g_hash_table_lookup(hosts->by_uuid, instance->secondary_node) : NULL,
        };
        g_array_append_val(host->guests, lodger);
    }
}

static gint larger_first(gconstpointer a, gconstpointer b)
{
    const struct lodger *left = *(const struct lodger *const *)a;
    const struct lodger *right = *(const struct lodger *const *)b;
    if (left->memory != right->memory)
        return left->memory > right->memory ? -1 : 1;
    return strcmp(left->instance->uuid, right->instance->uuid);
}

static struct host *roomiest(const struct hosts *hosts, const struct host *lost)
{
    struct host *best = NULL;
    for (guint i = 0; i < hosts->list->len; i++) {
        struct host *host = hosts->list->pdata[i];
        if (host != lost && !host->node->drained && (best == NULL || host->left > best->left))
            best = host;
    }
    return best;
}

/* Guests with a replica first: they have no choice. Returns how many find no room; what has its
 * data on the lost node alone is no matter of room. */
static guint play_loss(const struct hosts *hosts, const struct host *lost)
{
    guint homeless = 0;
    g_autoptr(GPtrArray) free_to_go = g_ptr_array_new();
    for (guint i = 0; i < hosts->list->len; i++) {
        struct host *host = hosts->list->pdata[i];
        host->left = host->spare;
    }
    for (guint i = 0; i < lost->guests->len; i++) {
        struct lodger *lodger = &g_array_index(lost->guests, struct lodger, i);
        if (lodger->anywhere)
            g_ptr_array_add(free_to_go, lodger);
        if (lodger->target == NULL)
            continue;
        lodger->target->left -= (gint64)lodger->memory;
        homeless += lodger->target->left < 0;
    }
    g_ptr_array_sort(free_to_go, larger_first);
    for (guint i = 0; i < free_to_go->len; i++) {
        const struct lodger *lodger = free_to_go->pdata[i];
        struct host *target = roomiest(hosts, lost);
        if (target == NULL || target->left < (gint64)lodger->memory)
            homeless++;
        else
            target->left -= (gint64)lodger->memory;
    }
    return homeless;
}

static struct decision *judge(const struct watcher *watcher, const struct hosts *hosts)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    struct decision *decision = decision_about("cluster", cluster->uuid, cluster->name, AUTHOR,
                                               VERDICT_LEAVE, "No room for a loss");
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < hosts->list->len; i++) {
        const struct host *host = hosts->list->pdata[i];
        if (host->guests->len == 0 || play_loss(hosts, host) == 0)
            continue;
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", host->node->name);
        g_ptr_array_add(decision->evidence,
                        g_strdup_printf("the other nodes have too little memory for what runs on "
                                        "%s: fettle plan fail %s",
                                        host->node->name, host->node->name));
    }
    if (names->len > 0) {
        decision_set(&decision->summary,
                     "No room for loss of node %s. Add memory or a node, or move or stop guests.",
                     names->str);
        decision_set(&decision->next_check, "when nodes or instances change");
        return decision;
    }
    decision->verdict = VERDICT_DONE;
    decision_set(&decision->state, "Room for a loss");
    decision_set(&decision->summary, "The loss of any one node can be taken.");
    return decision;
}

void watcher_n1_check(struct watcher *watcher)
{
    if (!watcher->repair->n1->changed || task_killed())
        return;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(host_free);
    g_autoptr(GHashTable) by_uuid = g_hash_table_new(g_str_hash, g_str_equal);
    struct hosts hosts = {list, by_uuid};
    if (!find_hosts(watcher, &hosts))
        return;
    watcher->repair->n1->changed = false;
    if (list->len < 2)
        return; /* a single host has nowhere to go, and nobody expects it to */
    count_guests(watcher, &hosts);
    const struct cluster *cluster = watcher_cluster(watcher);
    const struct decision *latest = watcher_latest(watcher, cluster->uuid, AUTHOR);
    struct decision *decision = judge(watcher, &hosts);
    if (decision->verdict == VERDICT_DONE && latest == NULL) {
        decision_free(decision);
        return;
    }
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}

/* What an operator does in a random campaign, sensible or not; see campaign.h. */
#include <string.h>

#include "campaign.h"

static void submit(const struct campaign *campaign, json_t *opcode)
{
    campaign->counts->jobs += sim_submit(campaign->sim, opcode, NULL) != 0 ? 1 : 0;
}

static void set_node(const struct campaign *campaign, const char *node, const char *field,
                     const char *value)
{
    json_t *opcode =
        json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", node, field, value);
    if (strcmp(field, "offline") == 0 && strcmp(value, "yes") == 0)
        json_object_set_new(opcode, "statement", json_string("random"));
    submit(campaign, opcode);
}

static void set_tag(const struct campaign *campaign, const char *op, const char *kind,
                    const char *name, const char *tag)
{
    g_autofree char *text = g_strconcat("ganeti:watcher:autorepair:", tag, NULL);
    submit(campaign,
           json_make("{ss ss ss s[s]}", "OP_ID", op, "kind", kind, "name", name, "tags", text));
}

/* --- instances --- */

static void create(const struct campaign *campaign, guint number)
{
    static const char *const templates[] = {"mirror",   "mirror", "sharedfile",
                                            "diskless", "file",   "mirror"};
    guint kinds = G_N_ELEMENTS(templates), kind = (number - 1) % kinds;
    g_autofree char *name = g_strdup_printf("web%u", number);
    json_t *opcode = json_make("{ss ss ss si s[]}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name",
                               name, "disk_template", templates[kind], "memory", 64, "disks");
    json_t *disks = json_object_get(opcode, "disks");
    if (strcmp(templates[kind], "diskless") != 0)
        json_array_append_new(disks, json_make("{si}", "size", 4));
    if (kind == kinds - 1)
        json_array_append_new(disks, json_make("{si}", "size", 4));
    else if (json_array_size(disks) > 0 && number % 2 == 0)
        json_object_set_new(opcode, "os_type", json_string("tick"));
    submit(campaign, opcode);
}

void campaign_create(const struct campaign *campaign)
{
    static const char *const policies[] = {"failover", "failover", "reinstall", "migrate",
                                           "fix-storage"};
    set_tag(campaign, "OP_TAGS_SET", "cluster", "",
            policies[sim_random(campaign->sim, G_N_ELEMENTS(policies))]);
    for (guint i = 1; i <= campaign->shape->instances; i++)
        create(campaign, i);
    sim_pass(campaign->sim, 5000);
}

static void remove_instance(const struct campaign *campaign, const char *name)
{
    submit(campaign, json_make("{ss ss si}", "OP_ID", "OP_INSTANCE_REMOVE", "instance_name", name,
                               "shutdown_timeout", 0));
}

void campaign_make_again(const struct campaign *campaign, const char *name)
{
    remove_instance(campaign, name);
    create(campaign, (guint)g_ascii_strtoull(name + strlen("web"), NULL, 10));
}

/* Of one that runs for its next start; small enough to find room everywhere. */
static void change_sizes(const struct campaign *campaign, const char *name)
{
    int memory = (int)(32 + 32 * sim_random(campaign->sim, 4));
    int vcpus = (int)(1 + sim_random(campaign->sim, 3));
    submit(campaign, json_make("{ss ss si si}", "OP_ID", "OP_INSTANCE_SET_PARAMS", "instance_name",
                               name, "memory", memory, "vcpus", vcpus));
}

static void change_instance(const struct campaign *campaign)
{
    static const char *const ops[] = {"OP_INSTANCE_STARTUP",       "OP_INSTANCE_SHUTDOWN",
                                      "OP_INSTANCE_REBOOT",        "OP_INSTANCE_FAILOVER",
                                      "OP_INSTANCE_REPLACE_DISKS", "OP_INSTANCE_MIGRATE",
                                      "OP_INSTANCE_MIGRATE",       "OP_INSTANCE_MIGRATE"};
    g_autofree char *name = campaign_pick_instance(campaign);
    guint what = sim_random(campaign->sim, G_N_ELEMENTS(ops) + 2);
    if (what >= G_N_ELEMENTS(ops))
        change_sizes(campaign, name);
    else
        submit(campaign, json_make("{ss ss}", "OP_ID", ops[what], "instance_name", name));
}

/* Rarer things: what is under the guests changes, or the guests come and go. */
static void change_disks(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    g_autofree char *name = campaign_pick_instance(campaign);
    const char *op = "OP_INSTANCE_RECREATE_DISKS";
    switch (sim_random(sim, 8)) {
    case 0:
    case 1:
        submit(campaign,
               json_make("{ss ss si si}", "OP_ID", "OP_INSTANCE_GROW_DISK", "instance_name", name,
                         "disk", (int)sim_random(sim, 2), "amount", 1));
        return;
    case 2:
        op = "OP_INSTANCE_ACTIVATE_DISKS";
        break;
    case 3:
        op = "OP_INSTANCE_DEACTIVATE_DISKS";
        break;
    case 4:
        op = "OP_INSTANCE_REINSTALL";
        break;
    case 5:
        op = "OP_INSTANCE_VERIFY";
        break;
    case 6:
        op = "OP_INSTANCE_REMOVE";
        break;
    default:
        break;
    }
    submit(campaign, json_make("{ss ss}", "OP_ID", op, "instance_name", name));
    if (strcmp(op, "OP_INSTANCE_REMOVE") == 0) /* its name is used again at once */
        create(campaign, (guint)g_ascii_strtoull(name + strlen("web"), NULL, 10));
}

/* --- nodes, policies --- */

static void change_node(const struct campaign *campaign)
{
    g_autofree char *node = campaign_pick_node(campaign, true);
    switch (sim_random(campaign->sim, 5)) {
    case 0:
        set_node(campaign, node, "drained", "yes");
        break;
    case 1:
    case 2:
        set_node(campaign, node, "drained", "no");
        break;
    case 3:
        submit(campaign, json_make("{ss ss}", "OP_ID", "OP_NODE_EVACUATE", "node_name", node));
        break;
    default:
        submit(campaign, json_make("{ss ss}", "OP_ID", "OP_NODE_MIGRATE", "node_name", node));
    }
}

static void change_policy(const struct campaign *campaign)
{
    static const char *const types[] = {"fix-storage", "migrate", "failover"};
    struct sim *sim = campaign->sim;
    g_autofree char *name = campaign_pick_instance(campaign);
    const char *type = types[sim_random(sim, G_N_ELEMENTS(types))];
    g_autofree char *pending =
        g_strdup_printf("pending:%s:outside-%u:%u:", type, sim_random(sim, G_MAXINT32),
                        1700000000 + sim_random(sim, 1000));
    switch (sim_random(sim, 6)) {
    case 0:
        set_tag(campaign, "OP_TAGS_SET", "instance", name, "suspend");
        break;
    case 1:
        set_tag(campaign, "OP_TAGS_DEL", "instance", name, "suspend");
        break;
    case 2:
        set_tag(campaign, "OP_TAGS_SET", "instance", name, pending);
        break;
    case 3:
        set_tag(campaign, "OP_TAGS_SET", "instance", name, type);
        break;
    case 4:
        submit(campaign, json_make("{ss si}", "OP_ID", "OP_CLUSTER_SET_PARAMS",
                                   "repair_max_per_hour", (int)(1 + sim_random(sim, 40))));
        break;
    default:
        submit(campaign, json_make("{ss}", "OP_ID", "OP_REPAIR_CONTINUE"));
    }
}

void campaign_operator_acts(const struct campaign *campaign)
{
    guint what = sim_random(campaign->sim, 12);
    if (what < 6)
        change_instance(campaign);
    else if (what < 8)
        change_disks(campaign);
    else if (what < 10)
        change_node(campaign);
    else
        change_policy(campaign);
}

/* --- the person who knows --- */

void campaign_person_looks(const struct campaign *campaign)
{
    g_autofree char *node = campaign_pick_node(campaign, false);
    if (!sim_powered(campaign->sim, "node1"))
        return;
    if (!sim_powered(campaign->sim, node))
        set_node(campaign, node, "offline", "yes");
    else if (sim_linked(campaign->sim, node))
        set_node(campaign, node, "offline", "no");
}

void campaign_person_returns(const struct campaign *campaign)
{
    for (guint i = 1; i <= campaign->shape->nodes; i++) {
        g_autofree char *name = g_strdup_printf("node%u", i);
        const struct node *node =
            config_get(sim_config(campaign->sim), "node", sim_node_uuid(campaign->sim, name), NULL);
        if (node->offline)
            set_node(campaign, name, "offline", "no");
        if (node->drained)
            set_node(campaign, name, "drained", "no");
    }
    submit(campaign,
           json_make("{ss si}", "OP_ID", "OP_CLUSTER_SET_PARAMS", "repair_max_per_hour", 10000));
}

static bool ends_by_hand(const struct tag *tag)
{
    return tag->kind == TAG_INSTANCE &&
           (strstr(tag->tag, ":failure:") != NULL || g_str_has_suffix(tag->tag, ":suspend"));
}

static void remove_tags(const struct campaign *campaign)
{
    g_autoptr(GPtrArray) tags = config_list(sim_config(campaign->sim), "tag");
    g_autoptr(GPtrArray) opcodes = g_ptr_array_new();
    for (guint i = 0; i < tags->len; i++) {
        const struct tag *tag = tags->pdata[i];
        if (ends_by_hand(tag))
            g_ptr_array_add(opcodes, json_make("{ss ss ss s[s]}", "OP_ID", "OP_TAGS_DEL", "kind",
                                               "instance", "name", tag->object, "tags", tag->tag));
    }
    for (guint i = 0; i < opcodes->len; i++)
        sim_submit(campaign->sim, opcodes->pdata[i], NULL);
}

/* Ended on disks that failed, and its policy allows no failover: `why` says to do it by hand. */
static bool waits_for_failover(const struct campaign *campaign, const struct instance *instance)
{
    const struct replica *replica =
        config_get(sim_config(campaign->sim), "replica", instance->replica, NULL);
    return instance->admin_state == ADMIN_UP && *instance->holder == '\0' &&
           instance->task_state == TASK_NONE && !instance->clean && instance->sound != SOUND_YES &&
           replica != NULL && replica->state == REPLICA_IN_SYNC;
}

/* A shutdown that failed says to try again. */
static bool waits_for_shutdown(const struct instance *instance)
{
    return instance->admin_state == ADMIN_DOWN && *instance->holder != '\0' &&
           instance->task_state == TASK_NONE && *instance->migration == '\0';
}

static void go_on(const struct campaign *campaign)
{
    g_autoptr(GPtrArray) instances = config_list(sim_config(campaign->sim), "instance");
    g_autoptr(GPtrArray) opcodes = g_ptr_array_new();
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        const char *opcode = waits_for_failover(campaign, instance) ? "OP_INSTANCE_FAILOVER"
                             : waits_for_shutdown(instance)         ? "OP_INSTANCE_SHUTDOWN"
                                                                    : NULL;
        if (opcode != NULL)
            g_ptr_array_add(opcodes,
                            json_make("{ss ss}", "OP_ID", opcode, "instance_name", instance->name));
    }
    for (guint i = 0; i < opcodes->len; i++)
        sim_submit(campaign->sim, opcodes->pdata[i], NULL);
}

void campaign_person_tidies(const struct campaign *campaign)
{
    remove_tags(campaign);
    go_on(campaign);
    if (config_get(sim_config(campaign->sim), "repair_brake", "cluster", NULL) != NULL)
        sim_submit(campaign->sim, json_make("{ss}", "OP_ID", "OP_REPAIR_CONTINUE"), NULL);
}

/* See what_next.h. */
#include "core/repair/what_next.h"

#include "core/repair/policy.h"
#include "core/report/faults.h"

/* `commands` is stolen; NULL: none. */
static void say(json_t *list, const char *about, json_t *commands, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
static void say(json_t *list, const char *about, json_t *commands, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    json_array_append_new(list, json_make("{ss, ss, so}", "about", about, "text", text, "commands",
                                          commands ? commands : json_array()));
}

/* --- suspensions --- */

/* Adds what ends that of one object. Whether what is farther away does not count, because this one
 * has a policy of its own. */
static bool add_suspension(json_t *commands, const struct config *config, enum tag_kind kind,
                           const char *uuid, const char *name)
{
    g_autoptr(GPtrArray) tags = repair_policy_tags(config, kind, uuid);
    bool suspended = false, other = false;
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        suspended = suspended || tag.kind == REPAIR_TAG_SUSPEND;
        other = other || tag.kind != REPAIR_TAG_SUSPEND;
        repair_tag_clear(&tag);
    }
    g_autofree char *command =
        g_strdup_printf("fettle repair resume %s%s%s", enum_word(&tag_kind_words, (int)kind),
                        name ? " " : "", name ? name : "");
    if (suspended)
        json_array_append_new(commands, json_string(command));
    return other;
}

/* The nearest first. */
static json_t *resumptions(const struct config *config, enum tag_kind kind, const char *uuid,
                           const char *name)
{
    const struct cluster *cluster = config_cluster(config);
    json_t *commands = json_array();
    const struct nodegroup *group = NULL;
    if (kind == TAG_INSTANCE) {
        const struct instance *instance = config_get(config, "instance", uuid, NULL);
        const struct node *node =
            instance ? config_get(config, "node", instance->primary_node, NULL) : NULL;
        group = node ? config_get(config, "nodegroup", node->group, NULL) : NULL;
        if (add_suspension(commands, config, TAG_INSTANCE, uuid, name))
            return commands;
    } else if (kind == TAG_NODEGROUP) {
        group = config_get(config, "nodegroup", uuid, NULL);
    }
    bool nearer =
        group && add_suspension(commands, config, TAG_NODEGROUP, group->uuid, group->name);
    if (!nearer && cluster)
        add_suspension(commands, config, TAG_CLUSTER, cluster->uuid, NULL);
    return commands;
}

json_t *what_next_suspended(const struct config *config, enum tag_kind kind, const char *uuid,
                            const char *name)
{
    json_t *list = json_array(), *commands = resumptions(config, kind, uuid, name);
    if (json_array_size(commands) > 0)
        say(list, "suspension", json_incref(commands),
            "Repair of %s goes on when you say:", name ? name : "the cluster");
    json_decref(commands);
    return list;
}

/* --- instances --- */

/* Each failure stands in the way until its tag is taken away; of what else it has ended with the
 * newest counts. */
static void add_results(json_t *list, const struct config *config, const struct instance *instance)
{
    g_autoptr(GPtrArray) tags = config_tags(config, TAG_INSTANCE, instance->uuid);
    gint64 newest = -1;
    bool forbidden = false;
    enum repair_type type = REPAIR_FIX_STORAGE;
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        bool ended = tag.kind == REPAIR_TAG_RESULT;
        if (ended && tag.outcome == REPAIR_FAILURE)
            say(list, "failure",
                json_make("[s++++]", "fettle tag remove instance ", instance->name, " ",
                          (const char *)tags->pdata[i], ""),
                "Nothing more is done for %s until you have looked into the failure and taken its "
                "tag away:",
                instance->name);
        if (ended && tag.timestamp >= newest) {
            newest = tag.timestamp;
            forbidden = tag.outcome == REPAIR_ENOPERM;
            type = tag.type;
        }
        repair_tag_clear(&tag);
    }
    if (forbidden)
        say(list, "permission",
            json_make("[s+++]", "fettle repair policy instance ", instance->name, " ",
                      repair_type_name(type)),
            "To allow the repair that it needs:");
}

json_t *what_next_instance(const struct config *config, const struct instance *instance, gint64 now)
{
    bool suspended = repair_policy_of(config, instance, now).kind == REPAIR_POLICY_SUSPENDED;
    json_t *list = suspended
                       ? what_next_suspended(config, TAG_INSTANCE, instance->uuid, instance->name)
                       : json_array();
    add_results(list, config, instance);
    return list;
}

/* --- nodes --- */

static void add_faults(json_t *list, const struct node *node, const struct node_report *report)
{
    for (guint i = 0; i < report->faults->len; i++) {
        g_autofree char *text = faults_one_text(report->faults->pdata[i]);
        say(list, "faults", NULL, "%s %s", node->name, text);
    }
    say(list, "faults", NULL,
        "While that lasts it is chosen last for guests and replicas. What runs there is left "
        "alone, but for guests whose disks there have failed, if their policy allows it.");
}

static void add_offline(json_t *list, const struct node *node)
{
    say(list, "offline", NULL, "%s is offline since {since}: %s", node->name,
        *node->offline_statement ? node->offline_statement
                                 : "a person's word, without a statement");
    json_object_set_new(json_array_get(list, json_array_size(list) - 1), "since",
                        json_integer((json_int_t)node->offline_since));
    say(list, "offline", json_make("[s++]", "fettle node modify ", node->name, " --offline no"),
        "When it works again:");
}

/* A node that answers with an error has said which; one that says nothing may be dead. */
static void add_unknown(json_t *list, const struct node *node, bool answers)
{
    if (answers) {
        say(list, "unknown", NULL,
            "While that lasts it is not known what %s has and runs. It is not dead.", node->name);
        return;
    }
    say(list, "silent",
        json_make("[s++]", "fettle node modify ", node->name, " --offline yes --statement \"…\""),
        "%s does not answer. What runs there may still run, so nothing is done until it answers, "
        "or you say that it is dead:",
        node->name);
    say(list, "silent", json_make("[s+]", "fettle plan fail ", node->name),
        "What would be done then:");
}

json_t *what_next_node(const struct node *node, const struct reports *reports)
{
    json_t *list = json_array();
    const struct node_report *report = reports_of(reports, node->uuid);
    if (report && report->faults->len > 0)
        add_faults(list, node, report);
    else if (node->offline)
        add_offline(list, node);
    else if (!report)
        add_unknown(list, node, reports_refusal(reports, node->uuid) != NULL);
    return list;
}

/* See policy.h. */
#include "core/repair/policy.h"

/* What the tags of one object say, as if it were alone. */
static struct repair_policy policy_of_object(const struct config *config, enum tag_kind kind,
                                             const char *object, gint64 now)
{
    struct repair_policy policy = {.kind = REPAIR_POLICY_ABSENT};
    g_autoptr(GPtrArray) tags = config_tags(config, kind, object);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_SUSPEND && (tag.forever || tag.timestamp > now)) {
            bool first = policy.kind != REPAIR_POLICY_SUSPENDED;
            policy.kind = REPAIR_POLICY_SUSPENDED;
            policy.forever = tag.forever || (!first && policy.forever);
            policy.until = first ? tag.timestamp : MAX(policy.until, tag.timestamp);
        } else if (tag.kind == REPAIR_TAG_ENABLE && policy.kind != REPAIR_POLICY_SUSPENDED) {
            policy.type =
                policy.kind == REPAIR_POLICY_ENABLED ? MIN(policy.type, tag.type) : tag.type;
            policy.kind = REPAIR_POLICY_ENABLED;
        }
        repair_tag_clear(&tag);
    }
    return policy;
}

static void describe_suspension(struct repair_policy *policy, const char *where)
{
    g_autofree char *until = text_time(policy->until);
    if (policy->forever)
        g_snprintf(policy->text, sizeof(policy->text), "suspended, by a tag of the %s", where);
    else
        g_snprintf(policy->text, sizeof(policy->text), "suspended until %s, by a tag of the %s",
                   until, where);
}

static void describe(struct repair_policy *policy, const char *where)
{
    switch (policy->kind) {
    case REPAIR_POLICY_ENABLED:
        g_snprintf(policy->text, sizeof(policy->text), "%s, by a tag of the %s",
                   repair_type_name(policy->type), where);
        break;
    case REPAIR_POLICY_SUSPENDED:
        describe_suspension(policy, where);
        break;
    case REPAIR_POLICY_ABSENT:
        g_strlcpy(policy->text,
                  "not enabled: no policy tag on the instance, its node group or the cluster",
                  sizeof(policy->text));
        break;
    }
}

struct level {
    enum tag_kind kind;
    const char *object, *where;
};

static struct repair_policy nearest(const struct config *config, const struct level *levels,
                                    guint count, gint64 now)
{
    struct repair_policy policy = {.kind = REPAIR_POLICY_ABSENT};
    const char *where = "";
    for (guint i = 0; i < count && policy.kind == REPAIR_POLICY_ABSENT; i++) {
        if (levels[i].object == NULL)
            continue;
        policy = policy_of_object(config, levels[i].kind, levels[i].object, now);
        where = levels[i].where;
    }
    describe(&policy, where);
    return policy;
}

static struct repair_policy policy_of_levels(const struct config *config, const char *instance,
                                             const char *group, gint64 now)
{
    const struct cluster *cluster = config_cluster(config);
    const struct level levels[] = {
        {TAG_INSTANCE, instance, "instance"},
        {TAG_NODEGROUP, group, "node group"},
        {TAG_CLUSTER, cluster != NULL ? cluster->uuid : NULL, "cluster"},
    };
    return nearest(config, levels, G_N_ELEMENTS(levels), now);
}

struct repair_policy repair_policy_of(const struct config *config, const struct instance *instance,
                                      gint64 now)
{
    const struct node *primary = config_get(config, "node", instance->primary_node, NULL);
    return policy_of_levels(config, instance->uuid, primary != NULL ? primary->group : NULL, now);
}

struct repair_policies {
    const struct config *config;
    gint64 now;
    GHashTable *suspended; /* uuid of a primary node -> whether its group or the cluster is */
};

struct repair_policies *repair_policies_new(const struct config *config, gint64 now)
{
    struct repair_policies *policies = g_new(struct repair_policies, 1);
    *policies = (struct repair_policies){
        config, now, g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    return policies;
}

void repair_policies_free(struct repair_policies *policies)
{
    g_hash_table_unref(policies->suspended);
    g_free(policies);
}

bool repair_policies_suspend(struct repair_policies *policies, const struct instance *instance)
{
    gpointer known;
    if (config_has_tags(policies->config, TAG_INSTANCE, instance->uuid))
        return repair_policy_of(policies->config, instance, policies->now).kind ==
               REPAIR_POLICY_SUSPENDED;
    if (g_hash_table_lookup_extended(policies->suspended, instance->primary_node, NULL, &known))
        return GPOINTER_TO_INT(known);
    bool suspended =
        repair_policy_of(policies->config, instance, policies->now).kind == REPAIR_POLICY_SUSPENDED;
    g_hash_table_insert(policies->suspended, g_strdup(instance->primary_node),
                        GINT_TO_POINTER(suspended));
    return suspended;
}

struct repair_policy repair_policy_of_object(const struct config *config, enum tag_kind kind,
                                             const char *uuid, gint64 now)
{
    const struct instance *instance =
        kind == TAG_INSTANCE ? config_get(config, "instance", uuid, NULL) : NULL;
    if (instance != NULL)
        return repair_policy_of(config, instance, now);
    return policy_of_levels(config, NULL, kind == TAG_NODEGROUP ? uuid : NULL, now);
}

GPtrArray *repair_policy_tags(const struct config *config, enum tag_kind kind, const char *uuid)
{
    GPtrArray *texts = g_ptr_array_new();
    g_autoptr(GPtrArray) tags = config_tags(config, kind, uuid);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_ENABLE || tag.kind == REPAIR_TAG_SUSPEND)
            g_ptr_array_add(texts, tags->pdata[i]);
        repair_tag_clear(&tag);
    }
    return texts;
}

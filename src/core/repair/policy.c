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

static void describe(struct repair_policy *policy, const char *where)
{
    switch (policy->kind) {
    case REPAIR_POLICY_ENABLED:
        g_snprintf(policy->text, sizeof(policy->text), "%s, by a tag of the %s",
                   repair_type_name(policy->type), where);
        break;
    case REPAIR_POLICY_SUSPENDED:
        if (policy->forever)
            g_snprintf(policy->text, sizeof(policy->text), "suspended, by a tag of the %s", where);
        else
            g_snprintf(policy->text, sizeof(policy->text),
                       "suspended until %" G_GINT64_FORMAT ", by a tag of the %s", policy->until,
                       where);
        break;
    case REPAIR_POLICY_ABSENT:
        g_strlcpy(policy->text,
                  "not enabled: no policy tag on the instance, its node group or the cluster",
                  sizeof(policy->text));
        break;
    }
}

struct repair_policy repair_policy_of(const struct config *config, const struct instance *instance,
                                      gint64 now)
{
    const struct node *primary = config_get(config, "node", instance->primary_node, NULL);
    const struct cluster *cluster = config_cluster(config);
    const struct {
        enum tag_kind kind;
        const char *object, *where;
    } levels[] = {
        {TAG_INSTANCE, instance->uuid, "instance"},
        {TAG_NODEGROUP, primary != NULL ? primary->group : NULL, "node group"},
        {TAG_CLUSTER, cluster != NULL ? cluster->uuid : NULL, "cluster"},
    };
    struct repair_policy policy = {.kind = REPAIR_POLICY_ABSENT};
    const char *where = "";
    for (guint i = 0; i < G_N_ELEMENTS(levels) && policy.kind == REPAIR_POLICY_ABSENT; i++) {
        if (levels[i].object == NULL)
            continue;
        policy = policy_of_object(config, levels[i].kind, levels[i].object, now);
        where = levels[i].where;
    }
    describe(&policy, where);
    return policy;
}

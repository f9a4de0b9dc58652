/* Rules of operators, and limits that jobs bring along in their reasons; see hold_private.h. */
#include "core/queue/hold_private.h"

#define KEY_RULE "rule "
#define KEY_REASON "reason "

const struct rules *hold_rules(struct holds *holds)
{
    if (!holds->rules)
        holds->rules = rules_new(follow_config(holds->context->follow));
    return holds->rules;
}

char *holds_rule_name(const struct rule *rule)
{
    const json_t *trail = rule->filter->reason;
    const json_t *last = json_array_get(trail, json_array_size(trail) - 1);
    const char *text = json_string_value(json_array_get(last, 1));
    return text && *text != '\0' ? g_strdup_printf("filter %s (\"%s\")", rule->filter->uuid, text)
                                 : g_strdup_printf("filter %s", rule->filter->uuid);
}

static guint count_of(const struct holds *holds, const char *key)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(holds->counts, key));
}

static void count(struct holds *holds, const char *key, int by)
{
    guint now = count_of(holds, key) + (guint)by;
    if (now == 0)
        g_hash_table_remove(holds->counts, key);
    else
        g_hash_table_insert(holds->counts, g_strdup(key), GUINT_TO_POINTER(now));
}

static char *rule_key(const struct rule *rule)
{
    return g_strconcat(KEY_RULE, rule->filter->uuid, NULL);
}

char *hold_rule_why(struct holds *holds, const struct rule *rule)
{
    g_autofree char *name = rule ? holds_rule_name(rule) : NULL;
    g_autofree char *key = rule ? rule_key(rule) : NULL;
    if (!rule || rule->action == RULE_ACCEPT)
        return NULL;
    if (rule->action == RULE_REJECT)
        return g_strdup_printf("%s rejects it", name);
    if (rule->action == RULE_PAUSE)
        return g_strdup_printf("%s pauses it", name);
    if (count_of(holds, key) < rule->limit)
        return NULL;
    return g_strdup_printf("%s lets %" G_GUINT64_FORMAT " run at once, and %u do", name,
                           rule->limit, count_of(holds, key));
}

static bool rule_allows(struct holds *holds, struct queue_job *job, const struct job *record)
{
    const struct rule *rule = rules_judge(hold_rules(holds), record);
    char *why = hold_rule_why(holds, rule);
    if (!why)
        return true;
    if (rule->action == RULE_REJECT)
        queue_doom(holds->context->queue, job, JOB_CANCELED, why);
    else
        hold_set_aside(holds, job, rule_key(rule), why);
    return false;
}

char *hold_limit_why(const struct holds *holds, const char *text)
{
    g_autofree char *key = g_strconcat(KEY_REASON, text, NULL);
    guint running = count_of(holds, key);
    return running < rules_own_limit(text)
               ? NULL
               : g_strdup_printf("its reason \"%s\" allows no more at once, and %u run", text,
                                 running);
}

static bool own_limits_allow(struct holds *holds, struct queue_job *job, const struct job *record)
{
    g_autoptr(GPtrArray) limits = rules_own_limits(record);
    for (guint i = 0; i < limits->len; i++) {
        const char *text = limits->pdata[i];
        char *why = hold_limit_why(holds, text);
        if (!why)
            continue;
        hold_set_aside(holds, job, g_strconcat(KEY_REASON, text, NULL), why);
        return false;
    }
    return true;
}

/* Keys under which a job counts while it runs. */
static GPtrArray *limits_of(struct holds *holds, const struct job *record)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    const struct rule *rule = rules_judge(hold_rules(holds), record);
    g_autoptr(GPtrArray) own = rules_own_limits(record);
    if (rule && rule->action == RULE_RATE_LIMIT)
        g_ptr_array_add(keys, rule_key(rule));
    for (guint i = 0; i < own->len; i++)
        g_ptr_array_add(keys, g_strconcat(KEY_REASON, own->pdata[i], NULL));
    return keys;
}

bool hold_limits_allow_new(struct holds *holds, const struct job *record)
{
    g_autoptr(GPtrArray) limits = rules_own_limits(record);
    g_autofree char *why = hold_rule_why(holds, rules_judge(hold_rules(holds), record));
    for (guint i = 0; !why && i < limits->len; i++)
        why = hold_limit_why(holds, limits->pdata[i]);
    return !why;
}

bool hold_limits_allow(struct holds *holds, struct queue_job *job, const struct job *record)
{
    return rule_allows(holds, job, record) && own_limits_allow(holds, job, record);
}

void hold_count(struct holds *holds, struct runner *runner, const struct job *record)
{
    g_autoptr(GPtrArray) before = runner->limits;
    runner->limits = record ? limits_of(holds, record) : g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < runner->limits->len; i++)
        count(holds, runner->limits->pdata[i], 1);
    for (guint i = 0; before && i < before->len; i++) {
        const char *key = before->pdata[i];
        count(holds, key, -1);
        hold_release(holds, key);
    }
}

/* See decisions.h. */
#include "core/repair/decisions.h"

/* What is known of one subject. Copies, because the configuration changes while the watcher waits.
 */
struct subject {
    struct decision *latest;
    GPtrArray *keys; /* char *: of its records, oldest first */
};

struct decisions {
    const struct config *config;
    GHashTable *by_subject; /* uuid -> struct subject */
};

static void subject_free(struct subject *subject)
{
    decision_free(subject->latest);
    g_ptr_array_unref(subject->keys);
    g_free(subject);
}

static gint by_age(gconstpointer a, gconstpointer b)
{
    const struct decision *left = *(const struct decision *const *)a,
                          *right = *(const struct decision *const *)b;
    return left->at_us < right->at_us ? -1 : left->at_us > right->at_us;
}

/* The newest record of its subject so far. */
static void remember(struct decisions *decisions, const struct decision *decision)
{
    struct subject *subject = g_hash_table_lookup(decisions->by_subject, decision->subject);
    if (subject == NULL) {
        subject = g_new0(struct subject, 1);
        subject->keys = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(decisions->by_subject, g_strdup(decision->subject), subject);
    }
    decision_free(subject->latest);
    subject->latest = decision_copy(decision);
    g_ptr_array_add(subject->keys, g_strdup(decision->uuid));
}

struct decisions *decisions_new(const struct config *config)
{
    struct decisions *decisions = g_new0(struct decisions, 1);
    decisions->config = config;
    decisions->by_subject =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)subject_free);
    g_autoptr(GPtrArray) all = config_list(config, "decision");
    g_ptr_array_sort(all, by_age);
    for (guint i = 0; i < all->len; i++)
        remember(decisions, all->pdata[i]);
    return decisions;
}

void decisions_free(struct decisions *decisions)
{
    if (decisions == NULL)
        return;
    g_hash_table_unref(decisions->by_subject);
    g_free(decisions);
}

const struct decision *decisions_latest(const struct decisions *decisions, const char *subject)
{
    const struct subject *known = g_hash_table_lookup(decisions->by_subject, subject);
    return known == NULL ? NULL : known->latest;
}

/* Whether two records say the same; identity and time aside. */
static bool same(const struct decision *old, const struct decision *new)
{
    json_autoptr left = decision_to_json(old);
    json_autoptr right = decision_to_json(new);
    for (const char *const *key = (const char *const[]){"uuid", "at_us", NULL}; *key != NULL;
         key++) {
        json_object_del(left, *key);
        json_object_del(right, *key);
    }
    return json_equal(left, right) == 1;
}

bool decisions_record(struct decisions *decisions, const struct env *env, struct decision *decision,
                      GPtrArray *changes)
{
    record_autoptr(decision) mine = decision;
    const struct decision *latest = decisions_latest(decisions, mine->subject);
    if (latest != NULL && same(latest, mine))
        return false;
    g_free(mine->uuid);
    mine->uuid = env_uuid(env);
    mine->at_us = (guint64)env->ops->wall_us(env);
    /* The newest stays the newest, also when the wall clock was set back. */
    if (latest != NULL)
        mine->at_us = MAX(mine->at_us, latest->at_us + 1);
    g_ptr_array_add(changes,
                    config_put(decisions->config, "decision", mine->uuid, decision_to_json(mine)));
    remember(decisions, mine);
    struct subject *subject = g_hash_table_lookup(decisions->by_subject, mine->subject);
    while (subject->keys->len > LIMIT_DECISIONS_PER_SUBJECT) {
        g_ptr_array_add(changes,
                        config_delete(decisions->config, "decision", subject->keys->pdata[0]));
        g_ptr_array_remove_index(subject->keys, 0);
    }
    return true;
}

struct decision *decision_about_instance(const struct instance *instance, const char *author,
                                         enum verdict verdict, const char *state)
{
    struct decision *decision = decision_new();
    g_free(decision->author);
    decision->author = g_strdup(author);
    g_free(decision->subject_kind);
    decision->subject_kind = g_strdup("instance");
    g_free(decision->subject);
    decision->subject = g_strdup(instance->uuid);
    g_free(decision->subject_name);
    decision->subject_name = g_strdup(instance->name);
    g_free(decision->state);
    decision->state = g_strdup(state);
    decision->verdict = verdict;
    return decision;
}

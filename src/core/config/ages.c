/* See ages.h. */
#include "core/config/ages.h"

#define AGES_KEPT_MS (24 * 3600 * G_GINT64_CONSTANT(1000))

struct age {
    guint64 at_us;   /* the date */
    gint64 seen_ms;  /* boot clock: when it was read … */
    gint64 old_us;   /* … and how old the thing was then */
    gint64 asked_ms; /* when it was asked for last */
};

struct ages {
    const struct env *env;
    GHashTable *known; /* key -> struct age */
    gint64 swept_ms;
    gint64 apart_ms; /* by how much the clocks differed when they were looked at last … */
    bool looked;     /* … if they were */
};

struct ages *ages_new(const struct env *env)
{
    struct ages *ages = g_new0(struct ages, 1);
    ages->env = env;
    ages->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return ages;
}

void ages_free(struct ages *ages)
{
    if (ages == NULL)
        return;
    g_hash_table_unref(ages->known);
    g_free(ages);
}

static struct age *read_date(struct ages *ages, const char *key, guint64 at_us)
{
    struct age *age = g_new(struct age, 1);
    gint64 wall_us = ages->env->ops->wall_us(ages->env);
    gint64 old_us = at_us > (guint64)MAX(wall_us, 0) ? 0 : wall_us - (gint64)at_us;
    *age = (struct age){at_us, ages->env->ops->boot_ms(ages->env), old_us};
    g_hash_table_replace(ages->known, g_strdup(key), age);
    return age;
}

static void sweep(struct ages *ages, gint64 now_ms)
{
    GHashTableIter iter;
    void *value;
    if (now_ms - ages->swept_ms < AGES_KEPT_MS)
        return;
    ages->swept_ms = now_ms;
    g_hash_table_iter_init(&iter, ages->known);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (now_ms - ((const struct age *)value)->asked_ms >= AGES_KEPT_MS)
            g_hash_table_iter_remove(&iter);
}

gint64 ages_us(struct ages *ages, const char *key, guint64 at_us)
{
    struct age *age = g_hash_table_lookup(ages->known, key);
    if (age == NULL || age->at_us != at_us)
        age = read_date(ages, key, at_us);
    age->asked_ms = ages->env->ops->boot_ms(ages->env);
    gint64 old_us = age->old_us + (age->asked_ms - age->seen_ms) * 1000;
    sweep(ages, age->asked_ms);
    return old_us;
}

gint64 ages_step_ms(struct ages *ages)
{
    const struct env *env = ages->env;
    gint64 apart_ms = env->ops->wall_us(env) / 1000 - env->ops->boot_ms(env);
    gint64 step_ms = apart_ms - ages->apart_ms;
    bool first = !ages->looked;
    if (!first && ABS(step_ms) < LIMIT_CLOCK_OFF_MS)
        return 0;
    ages->looked = true;
    ages->apart_ms = apart_ms;
    return first ? 0 : step_ms;
}

/* See sqlite_damage.h. */
#include "io/sqlite/sqlite_damage.h"

#include "io/loop.h"

struct store_damage {
    gatomicrefcount refs; /* the owner, each finding on its way */
    char *text;
    void (*tell)(const char *what);
    bool freed;
    bool found; /* of the thread that looks: something, and no whole pass since */
};

struct finding {
    struct store_damage *damage;
    char *what;
};

struct store_damage *store_damage_new(void)
{
    struct store_damage *damage = g_new0(struct store_damage, 1);

    g_atomic_ref_count_init(&damage->refs);
    return damage;
}

static void damage_unref(struct store_damage *damage)
{
    if (!g_atomic_ref_count_dec(&damage->refs))
        return;
    g_free(damage->text);
    g_free(damage);
}

void store_damage_free(struct store_damage *damage)
{
    damage->freed = true;
    damage_unref(damage);
}

static void found_cb(void *data)
{
    struct finding *finding = data;
    struct store_damage *damage = finding->damage;

    if (!damage->freed && g_strcmp0(damage->text, finding->what) != 0) {
        g_free(damage->text);
        damage->text = g_strdup(finding->what);
        if (damage->tell != NULL)
            damage->tell(damage->text);
    }
    damage_unref(damage);
    g_free(finding->what);
    g_free(finding);
}

void store_damage_look(struct store_damage *damage, struct sqlite_store *store)
{
    g_autoptr(GError) error = NULL;
    bool end;

    bool whole = sqlite_store_scrub(store, &end, &error) && end;
    bool corrupt = error != NULL && fettle_error_is(error, CORRUPT);
    if (!corrupt && !(whole && damage->found))
        return;
    damage->found = corrupt;
    struct finding *finding = g_new(struct finding, 1);
    *finding = (struct finding){damage, corrupt ? g_strdup(error->message) : NULL};
    g_atomic_ref_count_inc(&damage->refs);
    loop_post(found_cb, finding);
}

const char *store_damage_text(const struct store_damage *damage)
{
    return damage->text;
}

void store_damage_on(struct store_damage *damage, void (*tell)(const char *what))
{
    damage->tell = tell;
}

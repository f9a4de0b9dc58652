/* What is no fault, and a person may have forgotten; see verify_look.h. */
#include "core/query/query_rows.h"
#include "core/verify/verify_look.h"

#include <string.h>

/* --- versions (FUT-12) --- */

#define NAMES_MOST 20 /* of daemons that one line names */

static gint longest_first(gconstpointer a, gconstpointer b, gpointer by_version)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    guint lefts = ((GPtrArray *)g_hash_table_lookup(by_version, left))->len;
    guint rights = ((GPtrArray *)g_hash_table_lookup(by_version, right))->len;
    return lefts != rights ? (lefts > rights ? -1 : 1) : strcmp(right, left);
}

/* "luxid of node1, noded of node2 (last known) and 3 more"; free with g_free(). */
static char *names_text(const GPtrArray *names)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < MIN(names->len, NAMES_MOST); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", (const char *)names->pdata[i]);
    if (names->len > NAMES_MOST)
        g_string_append_printf(text, " and %u more", names->len - NAMES_MOST);
    return g_string_free(text, FALSE);
}

static void add_service(struct look *look, const void *row, GHashTable *table)
{
    g_autofree char *version = look_field(look, "service", "version", row);
    GPtrArray *names = g_hash_table_lookup(table, version);
    if (*version == '\0')
        return;
    g_autofree char *known = look_field(look, "service", "known", row);
    g_autofree char *name = look_field(look, "service", "name", row);
    if (!names) {
        names = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(table, g_strdup(version), names);
    }
    g_ptr_array_add(names,
                    g_strdup_printf("%s of %s%s", name, query_service_node(row)->name,
                                    g_str_equal(known, "last known") ? " (last known)" : ""));
}

/* No fault while an upgrade is under way; a person should know of one that was left half done. */
static void note_versions(struct look *look)
{
    g_autoptr(GPtrArray) rows = query_service_rows(look->config);
    g_autoptr(GHashTable) table =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    g_autoptr(GPtrArray) versions = g_ptr_array_new();
    for (guint i = 0; i < rows->len && look_pause(look); i++)
        add_service(look, rows->pdata[i], table);
    GHashTableIter iter;
    void *version;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &version, NULL))
        g_ptr_array_add(versions, version);
    g_ptr_array_sort_with_data(versions, longest_first, table);
    for (guint i = 1; i < versions->len; i++) {
        g_autofree char *names = names_text(g_hash_table_lookup(table, versions->pdata[i]));
        look_note(look,
                  "version %s of Fettle: %s; others run version %s. Unless an upgrade is under "
                  "way, install the same version there and restart them",
                  (const char *)versions->pdata[i], names, (const char *)versions->pdata[0]);
    }
}

/* --- invitations: of one that nobody uses, or that somebody tries to guess --- */

static void note_invitation(struct look *look, const struct join_token *token)
{
    g_autofree char *state = look_field(look, "invitation", "state", token);
    g_autofree char *when = look_time_text((gint64)token->expires);
    if (g_str_equal(state, "used"))
        return;
    if (g_str_equal(state, "expired"))
        look_note(look,
                  "invitation of %s: ended at %s and was not used; forget it with: fettle node "
                  "invite --withdraw %s",
                  token->node_name, when, token->node_name);
    if (token->wrong_secrets)
        look_note(look,
                  "invitation of %s: hosts came with a wrong secret %" G_GUINT64_FORMAT
                  " time%s%s; if that was none of yours: fettle node invite --withdraw %s",
                  token->node_name, token->wrong_secrets, token->wrong_secrets == 1 ? "" : "s",
                  g_str_equal(state, "void") ? ", so it is void" : "", token->node_name);
}

static void note_invitations(struct look *look)
{
    g_autoptr(GPtrArray) rows = query_invitation_rows(look->config);
    for (guint i = 0; i < rows->len; i++)
        note_invitation(look, rows->pdata[i]);
}

/* --- what stands still on purpose --- */

/* Nothing is wrong with what is there, but nothing will be mended either. */
static void note_brake(struct look *look)
{
    g_autoptr(GPtrArray) rows = config_list(look->config, "repair_brake");
    for (guint i = 0; i < rows->len; i++) {
        const struct repair_brake *brake = rows->pdata[i];
        g_autofree char *since = look_time_text((gint64)brake->since);
        look_note(look,
                  "auto-repair stands still, its storm brake is on since %s: %s Look around, then: "
                  "fettle repair continue",
                  since, brake->why);
    }
}

/* What a person has stopped on purpose, and may have forgotten. */
static void note_stopped(struct look *look)
{
    const struct switches *switches = config_switches(look->config);
    const struct env *env = look->queries->env;
    if (look->cluster->repair_shadow)
        look_note(look, "auto-repair is in shadow mode: what it would do is only put on record; to "
                        "end that: fettle cluster modify --repair-shadow no");
    if (look->cluster->upgrading)
        look_note(look, "the cluster is marked as being upgraded, so that no cleanup of storage "
                        "services can be asked for; to end that: fettle cluster modify --upgrading "
                        "no");
    if (switches && switches->drained)
        look_note(look, "the queue is drained: no job is taken, none of auto-repair either, until: "
                        "fettle queue undrain");
    if (switches &&
        (gint64)switches->watcher_paused_until > env->ops->wall_us(env) / G_USEC_PER_SEC) {
        g_autofree char *until = look_time_text((gint64)switches->watcher_paused_until);
        look_note(look,
                  "the watcher is paused until %s, so nothing is repaired; to end that: fettle "
                  "queue pause-watcher 0",
                  until);
    }
}

/* Nobody tries any more. */
static void note_webhooks(struct look *look)
{
    g_autoptr(GPtrArray) rows = config_list(look->config, "webhook");
    for (guint i = 0; i < rows->len; i++) {
        const struct webhook *webhook = rows->pdata[i];
        const struct webhook_mark *mark =
            config_get(look->config, "webhook_mark", webhook->uuid, NULL);
        if (mark && mark->failing && mark->round == webhook->round && !webhook->paused)
            look_note(
                look,
                "webhook %s has failed for a day (%s), and what happens is kept for it until: "
                "fettle webhook modify %s --resume",
                webhook->name, mark->said, webhook->name);
    }
}

/* --- what the watcher has on record about the cluster, and would be told by nobody else --- */

/* Each of these is told from what is seen now. */
static bool told_apart(const char *author)
{
    static const char *const authors[] = {"watcher/brake", "watcher/candidates", "watcher/suspend",
                                          "watcher/tags", NULL};
    return g_strv_contains(authors, author);
}

/* The newest record of each author; author -> const struct decision *, all borrowed. */
static GHashTable *newest_about_cluster(const struct look *look)
{
    g_autoptr(GPtrArray) all = config_list(look->config, "decision");
    GHashTable *newest = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < all->len; i++) {
        struct decision *decision = all->pdata[i];
        if (!g_str_equal(decision->subject, look->cluster->uuid) || told_apart(decision->author))
            continue;
        const struct decision *other = g_hash_table_lookup(newest, decision->author);
        guint64 version = 0, before = 0;
        config_get(look->config, "decision", decision->uuid, &version);
        if (other)
            config_get(look->config, "decision", other->uuid, &before);
        if (!other || version > before)
            g_hash_table_insert(newest, decision->author, decision);
    }
    return newest;
}

static void note_decisions(struct look *look)
{
    g_autoptr(GHashTable) newest = newest_about_cluster(look);
    g_autoptr(GList) authors = g_list_sort(g_hash_table_get_keys(newest), (GCompareFunc)strcmp);
    for (const GList *at = authors; at; at = at->next) {
        const struct decision *decision = g_hash_table_lookup(newest, at->data);
        if (decision->verdict != VERDICT_DONE)
            look_note(look, "cluster: %s See: fettle why cluster", decision->summary);
    }
}

void verify_notes(struct look *look)
{
    note_versions(look);
    note_invitations(look);
    note_brake(look);
    note_stopped(look);
    note_webhooks(look);
    note_decisions(look);
}

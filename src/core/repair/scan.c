/*
 * All tags of all objects, once after they changed: suspensions that have ended are removed
 * (ARP-21), and tags of ours that nobody can read are reported, never removed. One record for
 * each object, by an author of its own for each of the two. Also advice that has ended, and, once
 * an hour, records about what exists no more and tokens that have ended long ago.
 */
#include "core/repair/repair_private.h"
#include "proto/change.h"

#include <string.h>

#define AUTHOR_SUSPEND "watcher/suspend"
#define AUTHOR_TAGS "watcher/tags"
#define AUTHOR_ADVICE "watcher/advice"

struct repair_scan {
    bool tags_changed;    /* since they were scanned */
    gint64 next_expiry;   /* when the next suspension or advice ends, in seconds since 1970 */
    gint64 next_sweep_ms; /* boot clock: when records of removed objects are looked for */
};

struct repair_scan *repair_scan_new(void)
{
    struct repair_scan *scan = g_new0(struct repair_scan, 1);
    scan->tags_changed = true;
    return scan;
}

void repair_scan_free(struct repair_scan *scan)
{
    g_free(scan);
}

void repair_scan_changed(struct repair_scan *scan, const GPtrArray *changes)
{
    scan->tags_changed |= changes == NULL;
    for (guint i = 0; changes != NULL && i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        scan->tags_changed |=
            g_str_equal(change->kind, "tag") || g_str_equal(change->kind, "advice");
    }
}

/* What is found on one object. */
struct found {
    enum tag_kind kind;
    const char *object;    /* borrowed, as all of it */
    GPtrArray *expired;    /* char *: texts of suspend tags */
    GPtrArray *unreadable; /* char *: texts */
};

static const char *object_name(const struct config *config, enum tag_kind kind, const char *uuid)
{
    const char *record = enum_word(&tag_kind_words, (int)kind);
    const struct record *type = object_record(record);
    const void *object = config_get(config, record, uuid, NULL);
    const struct field *name = type == NULL ? NULL : record_field(type, "name");
    if (object == NULL || name == NULL)
        return uuid;
    return *(char *const *)((const char *)object + name->offset);
}

static struct decision *about(const struct config *config, const struct found *found,
                              const char *author, enum verdict verdict, const char *state)
{
    return decision_about(enum_word(&tag_kind_words, (int)found->kind), found->object,
                          object_name(config, found->kind, found->object), author, verdict, state);
}

static void remove_expired(struct watcher *watcher, const struct found *found, GPtrArray *changes)
{
    const struct config *config = follow_config(watcher->follow);
    if (found->expired->len == 0)
        return;
    if (watcher_shadow(watcher)) { /* no tag is touched; it counts as absent all the same */
        watcher->repair->scan->next_expiry = 0;
        return;
    }
    struct decision *decision =
        about(config, found, AUTHOR_SUSPEND, VERDICT_ACT, "Suspension ended");
    decision_set(&decision->summary, "The time of a suspension has passed; its tag is removed.");
    for (guint i = 0; i < found->expired->len; i++) {
        g_autofree char *key = config_tag_key(found->kind, found->object, found->expired->pdata[i]);
        g_ptr_array_add(changes, config_delete(config, "tag", key));
        g_ptr_array_add(decision->evidence, g_strdup(found->expired->pdata[i]));
    }
    decisions_record(watcher->decisions, config, watcher->env, decision, changes);
}

static void report_unreadable(struct watcher *watcher, const struct found *found,
                              GPtrArray *changes)
{
    const struct config *config = follow_config(watcher->follow);
    bool bad = found->unreadable->len > 0;
    const struct decision *latest =
        decisions_latest(watcher->decisions, config, found->object, AUTHOR_TAGS);
    if (!bad && (latest == NULL || latest->verdict == VERDICT_DONE))
        return;
    struct decision *decision =
        about(config, found, AUTHOR_TAGS, bad ? VERDICT_LEAVE : VERDICT_DONE,
              bad ? "Unreadable tags" : "Tags readable");
    if (bad)
        decision_set(&decision->summary,
                     "Some of its tags of auto-repair cannot be read: they are left alone, and "
                     "a suspension without a readable end has none. Mend or remove them.");
    else
        decision_set(&decision->summary, "All its tags of auto-repair can be read.");
    for (guint i = 0; i < found->unreadable->len; i++)
        g_ptr_array_add(decision->evidence, g_strdup(found->unreadable->pdata[i]));
    decision_set(&decision->next_check, "when its tags change");
    decisions_record(watcher->decisions, config, watcher->env, decision, changes);
}

static void end_object(struct watcher *watcher, struct found *found, GPtrArray *batch)
{
    if (found->object == NULL)
        return;
    GPtrArray *changes = watcher_changes_new();
    remove_expired(watcher, found, changes);
    report_unreadable(watcher, found, changes);
    watcher_batch_add(batch, changes);
    g_ptr_array_set_size(found->expired, 0);
    g_ptr_array_set_size(found->unreadable, 0);
}

static void judge(struct watcher *watcher, const struct tag *object, struct found *found,
                  gint64 now)
{
    struct repair_tag tag;
    repair_tag_parse(object->tag, &tag);
    if (tag.kind == REPAIR_TAG_MALFORMED || tag.unreadable)
        g_ptr_array_add(found->unreadable, object->tag);
    else if (tag.kind == REPAIR_TAG_SUSPEND && !tag.forever && tag.timestamp <= now)
        g_ptr_array_add(found->expired, object->tag);
    else if (tag.kind == REPAIR_TAG_SUSPEND && !tag.forever)
        watcher->repair->scan->next_expiry = MIN(watcher->repair->scan->next_expiry, tag.timestamp);
    repair_tag_clear(&tag);
}

/* --- advice --- */

static void end_advice(struct watcher *watcher, gint64 now, GPtrArray *batch)
{
    const struct config *config = follow_config(watcher->follow);
    g_autoptr(GPtrArray) all = config_list(config, "advice");
    for (guint i = 0; i < all->len; i++) {
        const struct advice *advice = all->pdata[i];
        if (advice->until == 0)
            continue;
        if ((gint64)advice->until > now) {
            watcher->repair->scan->next_expiry =
                MIN(watcher->repair->scan->next_expiry, (gint64)advice->until);
            continue;
        }
        GPtrArray *changes = watcher_changes_new();
        g_ptr_array_add(changes, config_delete(config, "advice", advice->uuid));
        struct decision *decision = decision_about(advice->subject_kind, advice->subject,
                                                   config_node_name(config, advice->subject),
                                                   AUTHOR_ADVICE, VERDICT_ACT, "Advice ended");
        decision_set(&decision->summary, "The time of the advice of %s to avoid it has passed.",
                     advice->author);
        watcher_record(watcher, decision, changes);
        watcher_batch_add(batch, changes);
    }
}

/* --- what nobody needs any more --- */

/* Invitations that ended long ago: until then who comes with one is told what became of it. */
static void sweep_tokens(struct watcher *watcher, gint64 now, GPtrArray *batch)
{
    const struct config *config = follow_config(watcher->follow);
    g_autoptr(GPtrArray) all = config_list(config, "join_token");
    for (guint i = 0; i < all->len; i++) {
        const struct join_token *token = all->pdata[i];
        if ((gint64)token->expires + JOIN_TOKEN_KEPT_S >= now)
            continue;
        GPtrArray *changes = watcher_changes_new();
        g_ptr_array_add(changes, config_delete(config, "join_token", token->uuid));
        watcher_batch_add(batch, changes);
    }
}

static bool is_of_gone(const struct watcher *watcher, const struct decision *decision)
{
    const struct config *config = follow_config(watcher->follow);
    return decision->event == EVENT_NONE && object_record(decision->subject_kind) != NULL &&
           config_get(config, decision->subject_kind, decision->subject, NULL) == NULL &&
           decision_age_us(watcher->ages, decision) >
               LIMIT_DECISIONS_GONE_S * (gint64)G_USEC_PER_SEC;
}

/* As many as one commit takes; false: there are more. */
static bool sweep_records(struct watcher *watcher, GPtrArray *batch)
{
    const struct config *config = follow_config(watcher->follow);
    g_autoptr(GPtrArray) all = config_list(config, "decision");
    g_autoptr(GPtrArray) old = decisions_old_events(watcher->decisions, config, watcher->ages);
    for (guint i = 0; i < all->len; i++)
        if (is_of_gone(watcher, all->pdata[i]))
            g_ptr_array_add(old, all->pdata[i]);
    for (guint i = 0; i < MIN(old->len, LIMIT_REPAIR_BATCH); i++) {
        const struct decision *decision = old->pdata[i];
        GPtrArray *changes = watcher_changes_new();
        g_ptr_array_add(changes, config_delete(config, "decision", decision->uuid));
        watcher_batch_add(batch, changes);
    }
    return old->len <= LIMIT_REPAIR_BATCH;
}

/* Once an hour, and sooner if so many events came meanwhile. */
static bool sweep_is_due(const struct watcher *watcher, gint64 now_ms)
{
    return now_ms >= watcher->repair->scan->next_sweep_ms ||
           decisions_events(watcher->decisions) > LIMIT_EVENTS + LIMIT_REPAIR_BATCH;
}

/* --- the pass --- */

static void scan_tags(struct watcher *watcher, gint64 now, GPtrArray *batch)
{
    g_autoptr(GPtrArray) expired = g_ptr_array_new();
    g_autoptr(GPtrArray) unreadable = g_ptr_array_new();
    struct found found = {.expired = expired, .unreadable = unreadable};
    /* Keys begin with the object, so its tags stand together. */
    g_autoptr(GPtrArray) tags = config_list(follow_config(watcher->follow), "tag");
    for (guint i = 0; i < tags->len; i++) {
        const struct tag *tag = tags->pdata[i];
        if (found.object == NULL || found.kind != tag->kind ||
            strcmp(found.object, tag->object) != 0) {
            end_object(watcher, &found, batch);
            found.kind = tag->kind;
            found.object = tag->object;
        }
        judge(watcher, tag, &found, now);
    }
    end_object(watcher, &found, batch);
}

void watcher_scan(struct watcher *watcher)
{
    struct repair_scan *scan = watcher->repair->scan;
    gint64 now = watcher_now(watcher);
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    if (scan->tags_changed || now >= scan->next_expiry) {
        scan->next_expiry = G_MAXINT64;
        scan->tags_changed = false;
        scan_tags(watcher, now, batch);
        end_advice(watcher, now, batch);
    }
    if (sweep_is_due(watcher, now_ms)) {
        bool all = sweep_records(watcher, batch);
        scan->next_sweep_ms =
            all ? now_ms + LIMIT_DECISION_SWEEP_S * G_GINT64_CONSTANT(1000) : now_ms;
        sweep_tokens(watcher, now, batch);
    }
    if (!watcher_batch_commit(watcher, batch))
        scan->tags_changed = true;
}

/* See decisions.h. */
#include "core/config/decisions.h"

#include <string.h>

#include "proto/change.h"

/* One record, as the index knows it. */
struct entry {
    char *key;
    char *author;
    guint64 version; /* the serial of the change that made it */
    guint64 at_us;   /* for those of one change */
    bool done;       /* its verdict says that all is well */
    enum event_kind event;
};

struct subject {
    GPtrArray *entries; /* struct entry, oldest first */
};

struct decisions {
    GHashTable *by_subject; /* uuid of the subject -> struct subject */
    GHashTable *subject_of; /* key of a record -> uuid of its subject */
    guint events;           /* records that are events */
};

static void entry_free(struct entry *entry)
{
    g_free(entry->key);
    g_free(entry->author);
    g_free(entry);
}

static void subject_free(struct subject *subject)
{
    g_ptr_array_unref(subject->entries);
    g_free(subject);
}

struct decisions *decisions_new(void)
{
    struct decisions *decisions = g_new0(struct decisions, 1);
    decisions->by_subject =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)subject_free);
    decisions->subject_of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return decisions;
}

void decisions_free(struct decisions *decisions)
{
    if (decisions == NULL)
        return;
    g_hash_table_unref(decisions->by_subject);
    g_hash_table_unref(decisions->subject_of);
    g_free(decisions);
}

/* --- the index --- */

static void forget(struct decisions *decisions, const char *key)
{
    const char *uuid = g_hash_table_lookup(decisions->subject_of, key);
    struct subject *subject =
        uuid == NULL ? NULL : g_hash_table_lookup(decisions->by_subject, uuid);
    for (guint i = 0; subject != NULL && i < subject->entries->len; i++) {
        const struct entry *entry = subject->entries->pdata[i];
        if (g_str_equal(entry->key, key)) {
            decisions->events -= entry->event != EVENT_NONE;
            g_ptr_array_remove_index(subject->entries, i);
            break;
        }
    }
    if (subject != NULL && subject->entries->len == 0)
        g_hash_table_remove(decisions->by_subject, uuid);
    g_hash_table_remove(decisions->subject_of, key);
}

/* In the order in which they were made: clocks can be set (SAF-93). */
static bool is_later(const struct entry *a, const struct entry *b)
{
    return a->version != b->version ? a->version > b->version : a->at_us > b->at_us;
}

static void remember(struct decisions *decisions, const struct config *config,
                     const struct decision *decision)
{
    guint64 version = 0;
    config_get(config, "decision", decision->uuid, &version);
    forget(decisions, decision->uuid);
    struct subject *subject = g_hash_table_lookup(decisions->by_subject, decision->subject);
    if (subject == NULL) {
        subject = g_new0(struct subject, 1);
        subject->entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
        g_hash_table_insert(decisions->by_subject, g_strdup(decision->subject), subject);
    }
    struct entry *entry = g_new0(struct entry, 1);
    *entry = (struct entry){
        g_strdup(decision->uuid), g_strdup(decision->author),        version,
        decision->at_us,          decision->verdict == VERDICT_DONE, decision->event};
    decisions->events += entry->event != EVENT_NONE;
    guint at = subject->entries->len;
    while (at > 0 && is_later(subject->entries->pdata[at - 1], entry))
        at--;
    g_ptr_array_insert(subject->entries, (gint)at, entry);
    g_hash_table_insert(decisions->subject_of, g_strdup(decision->uuid),
                        g_strdup(decision->subject));
}

void decisions_update(struct decisions *decisions, const struct config *config,
                      const GPtrArray *changes)
{
    if (changes == NULL) {
        g_hash_table_remove_all(decisions->by_subject);
        g_hash_table_remove_all(decisions->subject_of);
        decisions->events = 0;
        g_autoptr(GPtrArray) all = config_list(config, "decision");
        for (guint i = 0; i < all->len; i++)
            remember(decisions, config, all->pdata[i]);
        return;
    }
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (strcmp(change->kind, "decision") != 0)
            continue;
        const struct decision *decision = config_get(config, "decision", change->key, NULL);
        if (decision != NULL)
            remember(decisions, config, decision);
        else
            forget(decisions, change->key);
    }
}

/* --- reading and writing --- */

static const struct entry *newest_of(const struct subject *subject, const char *author, bool events)
{
    for (guint i = subject == NULL ? 0 : subject->entries->len; i > 0; i--) {
        const struct entry *entry = subject->entries->pdata[i - 1];
        if (g_str_equal(entry->author, author) && (!events || entry->event != EVENT_NONE))
            return entry;
    }
    return NULL;
}

static const struct entry *latest_of(const struct subject *subject, const char *author)
{
    return newest_of(subject, author, false);
}

const struct decision *decisions_latest(const struct decisions *decisions,
                                        const struct config *config, const char *subject,
                                        const char *author)
{
    const struct entry *entry =
        latest_of(g_hash_table_lookup(decisions->by_subject, subject), author);
    return entry == NULL ? NULL : config_get(config, "decision", entry->key, NULL);
}

const struct decision *decisions_latest_event(const struct decisions *decisions,
                                              const struct config *config, const char *subject,
                                              const char *author)
{
    const struct entry *entry =
        newest_of(g_hash_table_lookup(decisions->by_subject, subject), author, true);
    return entry == NULL ? NULL : config_get(config, "decision", entry->key, NULL);
}

bool decisions_open(const struct decisions *decisions, const char *subject, const char *author)
{
    const struct entry *entry =
        latest_of(g_hash_table_lookup(decisions->by_subject, subject), author);
    return entry != NULL && !entry->done;
}

GPtrArray *decisions_open_subjects(const struct decisions *decisions, const char *author)
{
    GPtrArray *subjects = g_ptr_array_new();
    GHashTableIter iter;
    gpointer uuid, subject;
    g_hash_table_iter_init(&iter, decisions->by_subject);
    while (g_hash_table_iter_next(&iter, &uuid, &subject)) {
        const struct entry *entry = latest_of(subject, author);
        if (entry != NULL && !entry->done)
            g_ptr_array_add(subjects, uuid);
    }
    return subjects;
}

/* Whether two records say the same; identity and time aside. */
static bool same(const struct decision *old, const struct decision *new)
{
    if (strcmp(old->summary, new->summary) != 0)
        return false;
    json_autoptr left = decision_to_json(old);
    json_autoptr right = decision_to_json(new);
    for (const char *const *key = (const char *const[]){"uuid", "at_us", NULL}; *key != NULL;
         key++) {
        json_object_del(left, *key);
        json_object_del(right, *key);
    }
    return json_equal(left, right) == 1;
}

static void cut(char **text, glong chars)
{
    if (!g_utf8_validate(*text, -1, NULL)) {
        char *valid = g_utf8_make_valid(*text, -1);
        g_free(*text);
        *text = valid;
    }
    if (g_utf8_strlen(*text, -1) <= chars)
        return;
    *g_utf8_offset_to_pointer(*text, chars - 1) = '\0';
    decision_set(text, "%s…", *text);
}

static void cut_list(GPtrArray *list)
{
    if (list->len > LIMIT_REPAIR_EVIDENCE)
        g_ptr_array_set_size(list, LIMIT_REPAIR_EVIDENCE);
    for (guint i = 0; i < list->len; i++)
        cut((char **)&list->pdata[i], LIMIT_STRING_CHARS);
}

/* A message from elsewhere must not make a record that nobody takes. */
static void fit(struct decision *decision)
{
    cut(&decision->summary, (glong)record_field(&decision_record, "summary")->max);
    cut(&decision->policy, (glong)record_field(&decision_record, "policy")->max);
    cut(&decision->next_check, (glong)record_field(&decision_record, "next_check")->max);
    cut_list(decision->evidence);
    cut_list(decision->rejected);
}

/* The oldest go; the newest of an author stays, because the author compares with it. Events go by
 * their age and by how many there are (decisions_old_events()); they count for nothing here. */
static void trim(const struct subject *subject, const struct config *config, const char *author,
                 GPtrArray *changes)
{
    guint left = 0;
    for (guint i = 0; subject != NULL && i < subject->entries->len; i++)
        left += ((const struct entry *)subject->entries->pdata[i])->event == EVENT_NONE;
    for (guint i = 0; left >= LIMIT_DECISIONS_PER_SUBJECT && i < subject->entries->len; i++) {
        const struct entry *entry = subject->entries->pdata[i];
        if (entry->event != EVENT_NONE ||
            (latest_of(subject, entry->author) == entry && !g_str_equal(entry->author, author)))
            continue;
        /* Another one of this commit may have it go already. */
        if (!change_list_has(changes, "decision", entry->key))
            g_ptr_array_add(changes, config_delete(config, "decision", entry->key));
        left--;
    }
}

static void record(const struct decisions *decisions, const struct config *config,
                   const struct env *env, struct decision *mine, GPtrArray *changes)
{
    const struct subject *subject = g_hash_table_lookup(decisions->by_subject, mine->subject);
    if (!*mine->uuid) {
        g_free(mine->uuid);
        mine->uuid = env_uuid(env);
    }
    mine->at_us = (guint64)env->ops->wall_us(env);
    /* Several of one moment stay in order; a time that the clock was set back from does not. */
    if (subject != NULL) {
        const struct entry *newest = subject->entries->pdata[subject->entries->len - 1];
        bool of_one_moment = newest->at_us < mine->at_us + G_USEC_PER_SEC / 1000;
        mine->at_us = of_one_moment ? MAX(mine->at_us, newest->at_us + 1) : mine->at_us;
    }
    g_ptr_array_add(changes, config_put(config, "decision", mine->uuid, decision_to_json(mine)));
    if (mine->event == EVENT_NONE)
        trim(subject, config, mine->author, changes);
}

bool decisions_record(const struct decisions *decisions, const struct config *config,
                      const struct env *env, struct decision *decision, GPtrArray *changes)
{
    record_autoptr(decision) mine = decision;
    const struct decision *latest =
        decisions_latest(decisions, config, mine->subject, mine->author);
    fit(mine);
    if (latest != NULL && same(latest, mine))
        return false;
    record(decisions, config, env, mine, changes);
    return true;
}

void decisions_add(const struct decisions *decisions, const struct config *config,
                   const struct env *env, struct decision *decision, GPtrArray *changes)
{
    record_autoptr(decision) mine = decision;
    fit(mine);
    record(decisions, config, env, mine, changes);
}

/* --- events that are old --- */

static gint newest_first(gconstpointer left, gconstpointer right)
{
    const struct entry *a = *(const struct entry *const *)left;
    const struct entry *b = *(const struct entry *const *)right;
    return is_later(a, b) ? -1 : is_later(b, a) ? 1 : 0;
}

static GPtrArray *all_events(const struct decisions *decisions)
{
    GPtrArray *events = g_ptr_array_sized_new(decisions->events);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, decisions->by_subject);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct subject *subject = value;
        for (guint i = 0; i < subject->entries->len; i++)
            if (((const struct entry *)subject->entries->pdata[i])->event != EVENT_NONE)
                g_ptr_array_add(events, subject->entries->pdata[i]);
    }
    g_ptr_array_sort(events, newest_first);
    return events;
}

/* The word that something without a record is there holds until there is one that it is gone. */
static bool is_there_still(const struct decisions *decisions, const struct decision *decision)
{
    const struct subject *subject = g_hash_table_lookup(decisions->by_subject, decision->subject);
    const struct entry *newest = subject->entries->pdata[subject->entries->len - 1];
    return decision->event == EVENT_FINDING && g_str_equal(decision->subject_kind, "thing") &&
           g_str_equal(newest->key, decision->uuid);
}

gint64 decision_age_us(struct ages *ages, const struct decision *decision)
{
    g_autofree char *key = g_strconcat("record ", decision->uuid, NULL);
    return ages_us(ages, key, decision->at_us);
}

GPtrArray *decisions_old_events(const struct decisions *decisions, const struct config *config,
                                struct ages *ages)
{
    g_autoptr(GPtrArray) events = all_events(decisions);
    GPtrArray *old = g_ptr_array_new();
    /* The oldest first, as not all go at once: no word that a thing is gone goes before that it was
     * there. */
    for (guint i = events->len; i > 0; i--) {
        const struct entry *entry = events->pdata[i - 1];
        const struct decision *decision = config_get(config, "decision", entry->key, NULL);
        bool kept = decision == NULL ||
                    (i <= LIMIT_EVENTS &&
                     decision_age_us(ages, decision) <= LIMIT_EVENT_AGE_S * (gint64)G_USEC_PER_SEC);
        if (!kept && !is_there_still(decisions, decision))
            g_ptr_array_add(old, (void *)decision);
    }
    return old;
}

guint decisions_events(const struct decisions *decisions)
{
    return decisions->events;
}

/* --- making --- */

void decision_set(char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *fresh = g_strdup_vprintf(format, args);
    va_end(args);
    g_free(*text);
    *text = fresh;
}

struct decision *decision_about(const char *kind, const char *uuid, const char *name,
                                const char *author, enum verdict verdict, const char *state)
{
    struct decision *decision = decision_new();
    decision_set(&decision->author, "%s", author);
    decision_set(&decision->subject_kind, "%s", kind);
    decision_set(&decision->subject, "%s", uuid);
    decision_set(&decision->subject_name, "%s", name);
    decision_set(&decision->state, "%s", state);
    decision->verdict = verdict;
    return decision;
}

struct decision *decision_about_instance(const struct instance *instance, const char *author,
                                         enum verdict verdict, const char *state)
{
    return decision_about("instance", instance->uuid, instance->name, author, verdict, state);
}

/* The lock journal; see journal.h. */
#include "core/config/journal.h"

#include <string.h>

#define JOURNAL_VERSION 1

struct journal {
    const struct env *env;
    char *id;
    guint64 epoch;
    guint64 entries; /* written since it was begun */
};

/* --- writing --- */

static json_t *entry_json(const struct owner *owner, const char *name, enum lock_mode mode)
{
    return json_make("[s,s,I,s,s]", owner->job, owner->livelock, (json_int_t)owner->pid, name,
                     enum_word(&lock_mode_words, (int)mode));
}

static void add_line(GString *text, const json_t *line)
{
    g_autofree char *plain = json_to_text(line);
    g_string_append(text, plain);
    g_string_append_c(text, '\n');
}

bool journal_begin(struct journal *journal, const struct locks *locks, guint64 epoch,
                   GError **error)
{
    const struct env *env = journal->env;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GPtrArray) held = locks_list(locks, NULL);
    json_autoptr head = json_make("{s:s,s:I,s:i}", "journal", journal->id, "epoch",
                                  (json_int_t)epoch, "version", JOURNAL_VERSION);
    add_line(text, head);
    journal->entries = 0;
    for (guint i = 0; i < held->len; i++) {
        const struct lock_state *state = held->pdata[i];
        if (state->waiting)
            continue;
        json_autoptr line = json_array();
        json_array_append_new(line, entry_json(state->owner, state->name, state->mode));
        add_line(text, line);
        journal->entries++;
    }
    journal->epoch = epoch;
    return env->ops->file_write(env, FILE_RUN, JOURNAL_FILE, text->str, text->len, error);
}

bool journal_append(struct journal *journal, const struct locks *locks, const GPtrArray *events,
                    GError **error)
{
    const struct env *env = journal->env;
    if (events->len == 0)
        return true;
    journal->entries += events->len;
    if (journal->entries > LIMIT_JOURNAL_SLACK + 2 * (guint64)locks_count(locks))
        return journal_begin(journal, locks, journal->epoch, error);
    g_autoptr(GString) text = g_string_new(NULL);
    json_autoptr line = json_array();
    for (guint i = 0; i < events->len; i++) {
        const struct locks_event *event = events->pdata[i];
        json_array_append_new(line, entry_json(event->owner, event->name, event->mode));
    }
    add_line(text, line);
    return env->ops->file_append(env, FILE_RUN, JOURNAL_FILE, text->str, text->len, error);
}

/* --- reading --- */

static bool read_head(struct journal *journal, const char *line, size_t len)
{
    json_autoptr head = json_parse_limited(line, len, KIB(4), NULL);
    const char *id;
    json_int_t epoch;
    int version;
    if (!head || json_unpack(head, "{s:s,s:I,s:i}", "journal", &id, "epoch", &epoch, "version",
                             &version) != 0)
        return false;
    if (version != JOURNAL_VERSION || strlen(id) != 36 || epoch < 0)
        return false;
    journal->id = g_strdup(id);
    journal->epoch = (guint64)epoch;
    return true;
}

static bool read_entry(struct locks *locks, json_t *entry)
{
    const char *job;
    const char *livelock;
    const char *name;
    const char *mode_word;
    json_int_t pid;
    if (json_unpack(entry, "[s,s,I,s,s!]", &job, &livelock, &pid, &name, &mode_word) != 0)
        return false;
    int mode = enum_parse(&lock_mode_words, mode_word);
    if (mode < 0 || pid < 0 || !locks_check_name(name, NULL))
        return false;
    struct owner owner = {.job = (char *)job, .livelock = (char *)livelock, .pid = (guint64)pid};
    locks_restore(locks, &owner, name, (enum lock_mode)mode);
    return true;
}

static bool read_batch(struct journal *journal, struct locks *locks, const char *line, size_t len)
{
    json_autoptr batch = json_parse_limited(line, len, LIMIT_FRAME_BYTES, NULL);
    size_t index;
    json_t *entry;
    if (!json_is_array(batch))
        return false;
    json_array_foreach(batch, index, entry)
    {
        if (!read_entry(locks, entry))
            return false;
        journal->entries++;
    }
    return true;
}

/* What is wrong; NULL: nothing. */
static char *read_text(struct journal *journal, struct locks *locks, const char *text, size_t len)
{
    const char *end = text + len;
    guint number = 1;
    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            break; /* torn by the death of its writer, who had answered nobody yet */
        size_t size = (size_t)(stop - line);
        bool whole =
            number == 1 ? read_head(journal, line, size) : read_batch(journal, locks, line, size);
        if (!whole)
            return g_strdup_printf("line %u is damaged", number);
        line = stop + 1;
    }
    return journal->id ? NULL : g_strdup("it has no first line");
}

struct journal *journal_open(const struct env *env, struct locks *locks, char **ret_note,
                             GError **error)
{
    g_autoptr(GError) local = NULL;
    struct journal *journal = g_new0(struct journal, 1);
    size_t len = 0;
    journal->env = env;
    g_autofree char *text =
        env->ops->file_read(env, FILE_RUN, JOURNAL_FILE, LIMIT_JOURNAL_BYTES, &len, &local);
    if (!text && !fettle_error_is(local, UNKNOWN_ENTITY) && !fettle_error_is(local, LIMIT)) {
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "lock journal: ");
        journal_free(journal);
        return NULL;
    }
    char *note = text ? read_text(journal, locks, text, len)
                      : g_strdup(fettle_error_is(local, LIMIT) ? "it is too large" : "none");
    if (note) {
        locks_reset(locks);
        g_free(journal->id);
        journal->id = env_uuid(env);
        journal->epoch = 0;
        journal->entries = 0;
    }
    *ret_note = note;
    return journal;
}

const char *journal_id(const struct journal *journal)
{
    return journal->id;
}

guint64 journal_epoch(const struct journal *journal)
{
    return journal->epoch;
}

void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    g_free(journal->id);
    g_free(journal);
}

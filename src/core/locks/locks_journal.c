/* The lock journal; see locks_journal.h. */
#include "core/locks/locks_journal.h"

#include <string.h>

#include "proto/seal.h"

/* Version 1 had neither times nor waiting requests, version 2 no checksums. */
#define JOURNAL_VERSION 3
#define CHECK_SIZE (SEAL_DIGITS + 1) /* in front of a line, with the space */

struct locks_journal {
    const struct env *env;
    char *id;
    guint64 epoch;
    guint64 entries; /* written since it was begun */
    guint64 bytes;   /* of all of it */
    guint64 begun;   /* of what it was begun with */
    GString *text;   /* of a batch; kept for the next one */
};

/* --- writing --- */

static void add_json(GString *text, const json_t *json)
{
    g_autofree char *plain = json_to_text(json);
    g_string_append(text, plain);
}

/* By hand, because this is written for every change of a lock. */
static void add_text(GString *text, const char *value)
{
    bool plain = true;
    for (const char *c = value; *c && plain; c++)
        plain = (guchar)*c >= ' ' && *c != '"' && *c != '\\';
    if (plain) {
        g_string_append_c(text, '"');
        g_string_append(text, value);
        g_string_append_c(text, '"');
        return;
    }
    json_autoptr json = json_string(value);
    add_json(text, json);
}

static void add_number(GString *text, guint64 number)
{
    char digits[20];
    guint at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    g_string_append_len(text, digits + at, (gssize)(sizeof digits - at));
}

static void add_hold(GString *text, const struct owner *owner, const char *name,
                     enum lock_mode mode, guint64 since)
{
    g_string_append_c(text, '[');
    add_text(text, owner->job);
    g_string_append_c(text, ',');
    add_text(text, owner->livelock);
    g_string_append_c(text, ',');
    add_number(text, owner->pid);
    g_string_append_c(text, ',');
    add_text(text, name);
    g_string_append_c(text, ',');
    add_text(text, enum_word(&lock_mode_words, (int)mode));
    g_string_append_c(text, ',');
    add_number(text, since);
    g_string_append_c(text, ']');
}

static void add_wait(GString *text, const struct lock_waiter *waiter)
{
    json_autoptr json = lock_waiter_to_json(waiter);
    add_json(text, json);
}

static void add_over(GString *text, const struct owner *owner)
{
    json_autoptr json = json_make("{s:o}", "over", owner_to_json(owner));
    add_json(text, json);
}

static void add_event(GString *text, const struct locks_event *event)
{
    if (event->name)
        add_hold(text, event->owner, event->name, event->mode, event->since);
    else if (event->waiter)
        add_wait(text, event->waiter);
    else
        add_over(text, event->owner);
}

/* A line begins with room for its checksum, which is filled in at its end. */
static gsize begin_line(GString *text)
{
    gsize at = text->len;
    for (guint i = 0; i < CHECK_SIZE; i++)
        g_string_append_c(text, ' ');
    return at;
}

static void end_line(GString *text, gsize begin)
{
    char digits[SEAL_DIGITS + 1];
    gsize body = begin + CHECK_SIZE;
    seal_digits(text->str + body, text->len - body, digits);
    memcpy(text->str + begin, digits, SEAL_DIGITS);
    g_string_append_c(text, '\n');
}

bool locks_journal_begin(struct locks_journal *journal, struct locks *locks, guint64 epoch,
                         GError **error)
{
    const struct env *env = journal->env;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GPtrArray) held = locks_list(locks, NULL);
    g_autoptr(GPtrArray) waiting = locks_waiters(locks);
    json_autoptr head = json_make("{s:s,s:I,s:i}", "journal", journal->id, "epoch",
                                  (json_int_t)epoch, "version", JOURNAL_VERSION);
    gsize line = begin_line(text);
    add_json(text, head);
    end_line(text, line);
    journal->entries = 0;
    for (guint i = 0; i < held->len; i++) {
        const struct lock_state *state = held->pdata[i];
        if (state->waiting)
            continue;
        line = begin_line(text);
        g_string_append_c(text, '[');
        add_hold(text, state->owner, state->name, state->mode, state->since);
        g_string_append_c(text, ']');
        end_line(text, line);
        journal->entries++;
    }
    for (guint i = 0; i < waiting->len; i++) {
        struct lock_waiter *waiter = waiting->pdata[i];
        if (waiter->count > 0)
            continue; /* a union: see locks_journal.h */
        g_ptr_array_set_size(waiter->blockers, 0);
        g_ptr_array_set_size(waiter->pending_nodes, 0);
        line = begin_line(text);
        g_string_append_c(text, '[');
        add_wait(text, waiter);
        g_string_append_c(text, ']');
        end_line(text, line);
        journal->entries++;
    }
    journal->epoch = epoch;
    journal->bytes = journal->begun = text->len;
    return env->ops->file_write(env, FILE_RUN, JOURNAL_FILE, text->str, text->len, error);
}

/* Far beyond what it says, in number or in size: a request can name many locks. */
static bool has_grown(const struct locks_journal *journal, const struct locks *locks)
{
    guint64 kept = (guint64)locks_count(locks) + locks_waiting_count(locks);
    return journal->entries > LIMIT_JOURNAL_SLACK + 2 * kept ||
           journal->bytes > MAX(LIMIT_JOURNAL_BYTES / 4, 2 * journal->begun);
}

bool locks_journal_append(struct locks_journal *journal, struct locks *locks,
                          const GPtrArray *events, GError **error)
{
    const struct env *env = journal->env;
    if (events->len == 0)
        return true;
    journal->entries += events->len;
    if (has_grown(journal, locks))
        return locks_journal_begin(journal, locks, journal->epoch, error);
    GString *text = g_string_truncate(journal->text, 0);
    gsize line = begin_line(text);
    for (guint i = 0; i < events->len; i++) {
        g_string_append_c(text, i ? ',' : '[');
        add_event(text, events->pdata[i]);
    }
    g_string_append_c(text, ']');
    end_line(text, line);
    journal->bytes += text->len;
    return env->ops->file_append(env, FILE_RUN, JOURNAL_FILE, text->str, text->len, error);
}

/* --- reading --- */

static bool read_head(struct locks_journal *journal, const char *line, size_t len)
{
    json_autoptr head = json_parse_limited(line, len, KIB(4), NULL);
    const char *id;
    json_int_t epoch;
    int version;
    if (!head || json_unpack(head, "{s:s,s:I,s:i}", "journal", &id, "epoch", &epoch, "version",
                             &version) != 0)
        return false;
    if (version < 1 || version > JOURNAL_VERSION || strlen(id) != 36 || epoch < 0)
        return false;
    journal->id = g_strdup(id);
    journal->epoch = (guint64)epoch;
    return true;
}

static bool read_hold(struct locks *locks, json_t *entry)
{
    const char *job;
    const char *livelock;
    const char *name;
    const char *mode_word;
    json_int_t pid;
    json_int_t since = 0;
    if (json_unpack(entry, json_array_size(entry) == 5 ? "[s,s,I,s,s!]" : "[s,s,I,s,s,I!]", &job,
                    &livelock, &pid, &name, &mode_word, &since) != 0)
        return false;
    int mode = enum_parse(&lock_mode_words, mode_word);
    if (mode < 0 || pid < 0 || since < 0 || !locks_check_name(name, NULL))
        return false;
    struct owner owner = {.job = (char *)job, .livelock = (char *)livelock, .pid = (guint64)pid};
    locks_restore(locks, &owner, name, (enum lock_mode)mode, (guint64)since);
    return true;
}

static bool read_over(struct locks *locks, const json_t *json)
{
    record_autoptr(owner) owner = owner_parse(json, RECORD_LAX, NULL);
    if (owner)
        locks_restore_over(locks, owner);
    return owner != NULL;
}

static bool read_entry(struct locks *locks, json_t *entry)
{
    if (json_is_array(entry))
        return read_hold(locks, entry);
    const json_t *over = json_object_get(entry, "over");
    if (over)
        return read_over(locks, over);
    record_autoptr(lock_waiter) waiter = lock_waiter_parse(entry, RECORD_LAX, NULL);
    return waiter && locks_restore_waiter(locks, waiter);
}

static bool read_batch(struct locks_journal *journal, struct locks *locks, const char *line,
                       size_t len)
{
    json_autoptr batch = json_parse_limited(line, len, LIMIT_FRAME_BYTES, NULL);
    size_t index;
    json_t *entry;
    if (!json_is_array(batch))
        return false;
    json_array_foreach(batch, index, entry) {
        if (!read_entry(locks, entry))
            return false;
        journal->entries++;
    }
    return true;
}

/* Whether a line begins with the checksum of its rest. */
static bool is_sealed(const char *line, size_t len)
{
    char digits[SEAL_DIGITS + 1];
    if (len <= CHECK_SIZE || line[SEAL_DIGITS] != ' ')
        return false;
    seal_digits(line + CHECK_SIZE, len - CHECK_SIZE, digits);
    return memcmp(line, digits, SEAL_DIGITS) == 0;
}

static bool read_line(struct locks_journal *journal, struct locks *locks, const char *line,
                      size_t len, bool sealed)
{
    if (sealed && !is_sealed(line, len))
        return false;
    size_t skip = sealed ? CHECK_SIZE : 0;
    return journal->id ? read_batch(journal, locks, line + skip, len - skip)
                       : read_head(journal, line + skip, len - skip);
}

/* What is wrong; NULL: nothing. */
static char *read_text(struct locks_journal *journal, struct locks *locks, const char *text,
                       size_t len)
{
    const char *end = text + len;
    bool sealed = len > 0 && *text != '{';
    guint number = 1;
    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop ? stop : end) - line);
        /* Torn by the death of its writer, who had answered nobody yet; but one that is whole in
         * front of its last byte had its end. */
        if (!stop && !(sealed && is_sealed(line, size - 1)))
            break;
        if (!stop || !read_line(journal, locks, line, size, sealed))
            return g_strdup_printf("line %u is damaged", number);
        line = stop + 1;
    }
    return journal->id ? NULL : g_strdup("it has no first line");
}

struct locks_journal *locks_journal_open(const struct env *env, struct locks *locks,
                                         char **ret_note, GError **error)
{
    g_autoptr(GError) local = NULL;
    struct locks_journal *journal = g_new0(struct locks_journal, 1);
    size_t len = 0;
    journal->env = env;
    journal->text = g_string_new(NULL);
    g_autofree char *text =
        env->ops->file_read(env, FILE_RUN, JOURNAL_FILE, LIMIT_JOURNAL_BYTES, &len, &local);
    if (!text && !fettle_error_is(local, UNKNOWN_ENTITY) && !fettle_error_is(local, LIMIT)) {
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "lock journal: ");
        locks_journal_free(journal);
        return NULL;
    }
    char *note = text ? read_text(journal, locks, text, len)
                      : g_strdup(fettle_error_is(local, LIMIT) ? "it is too large" : "none");
    if (!note)
        locks_restored(locks);
    if (note) {
        locks_reset(locks);
        g_free(journal->id);
        journal->id = env_uuid(env);
        journal->epoch = 0;
        journal->entries = 0;
        len = 0;
    }
    journal->bytes = len;
    *ret_note = note;
    return journal;
}

const char *locks_journal_id(const struct locks_journal *journal)
{
    return journal->id;
}

guint64 locks_journal_epoch(const struct locks_journal *journal)
{
    return journal->epoch;
}

void locks_journal_free(struct locks_journal *journal)
{
    if (!journal)
        return;
    g_string_free(journal->text, TRUE);
    g_free(journal->id);
    g_free(journal);
}

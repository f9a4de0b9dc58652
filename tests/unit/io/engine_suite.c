/* See engine_suite.h. */
#include "engine_suite.h"
#include "world.h"

#include "proto/change.h"

#include <string.h>

struct suite *suite;

/* --- intended differences --- */

static const struct difference {
    const char *when, *kind;
    enum engine_result result;
    enum fettle_error code;
    const char *text; /* a pattern with *; or one of several, with | between them */
    const char *why;
} differences[] = {
    {"nothing", "etcd", ENGINE_REFUSED, FETTLE_ERROR_CORRUPT,
     "etcd has no configuration of this cluster below /fettle/" NODE_C "/",
     "members are there for a cluster that has moved in; a store may never have been made"},
    {"replaced", "etcd", ENGINE_REFUSED, FETTLE_ERROR_NOT_MASTER,
     "somebody else has written the configuration in etcd|the lease has ended: etcd does not know "
     "the lease any more",
     "the master hears of its end from etcd; with a store its own record tells"},
    {"full", "etcd", ENGINE_UNKNOWN, FETTLE_ERROR_NOT_MASTER,
     "etcd takes no changes: a member's file has reached its limit; see fettle cluster engine "
     "status",
     "etcd says so of what it has just done too, and then nothing can be fenced out"},
};

static const struct difference *difference_at(const char *when)
{
    for (guint i = 0; i < G_N_ELEMENTS(differences); i++)
        if (!strcmp(differences[i].when, when) && !strcmp(differences[i].kind, suite->kind->name))
            return &differences[i];
    return NULL;
}

static bool is_one_of(const char *patterns, const char *text)
{
    g_auto(GStrv) all = g_strsplit(patterns, "|", -1);
    bool found = false;
    for (guint i = 0; all[i] && !found; i++)
        found = g_pattern_match_simple(all[i], text);
    return found;
}

void suite_expect_error(const GError *error, const char *when, enum fettle_error code,
                        const char *text)
{
    const struct difference *other = difference_at(when);
    code = other ? other->code : code;
    text = other ? other->text : text;
    if (!error)
        g_error("%s, %s: no error, expected: %s", suite->kind->name, when, text);
    if (!g_error_matches(error, FETTLE_ERROR, (int)code) || !is_one_of(text, error->message))
        g_error("%s, %s: got %s: %s; expected %d: %s", suite->kind->name, when,
                fettle_error_name(error), error->message, (int)code, text);
}

void suite_expect_refusal(struct outcome *outcome, const char *when, enum fettle_error code,
                          const char *text)
{
    const struct difference *other = difference_at(when);
    suite->kind->wait(suite->rig, &outcome->done);
    g_assert_cmpint(outcome->result, ==, other ? other->result : ENGINE_REFUSED);
    suite_expect_error(outcome->error, when, code, text);
}

/* --- changes --- */

struct change *suite_put(const char *kind, const char *key, json_t *object)
{
    return change_make(CHANGE_PUT, kind, key, 0, object);
}

struct change *suite_drop(const char *kind, const char *key)
{
    return change_make(CHANGE_DELETE, kind, key, 0, NULL);
}

GPtrArray *suite_list(struct change *first, ...)
{
    GPtrArray *changes = change_list_new();
    va_list more;
    va_start(more, first);
    for (struct change *change = first; change; change = va_arg(more, struct change *))
        g_ptr_array_add(changes, change);
    va_end(more);
    return changes;
}

json_t *suite_object(const char *text)
{
    return json_make("{s:s}", "text", text);
}

GPtrArray *suite_tag(const char *key, const char *text)
{
    return suite_list(suite_put("tag", key, suite_object(text)), NULL);
}

/* --- tasks --- */

struct asked {
    struct mastership *me;
    const char *next;
    bool ok;
    GError *error;
};

static void campaign_task(void *data)
{
    struct asked *asked = data;
    asked->ok = suite->engine->ops->campaign(suite->engine, asked->me, &asked->error);
}

static void resign_task(void *data)
{
    struct asked *asked = data;
    asked->ok = suite->engine->ops->resign(suite->engine, asked->next, &asked->error);
}

bool suite_campaign(struct mastership *me, GError **error)
{
    struct asked asked = {.me = me};
    suite->kind->run(suite->rig, campaign_task, &asked);
    if (asked.error)
        g_propagate_error(error, asked.error);
    return asked.ok;
}

static void observe_task(void *data)
{
    struct asked *asked = data;
    asked->ok = suite->engine->ops->observe(suite->engine, asked->me, &asked->error);
}

bool suite_observe(struct mastership *ret_master)
{
    struct asked asked = {.me = ret_master};
    suite->kind->run(suite->rig, observe_task, &asked);
    g_assert_no_error(asked.error);
    return asked.ok;
}

bool suite_resign(const char *next, GError **error)
{
    struct asked asked = {.next = next};
    suite->kind->run(suite->rig, resign_task, &asked);
    if (asked.error)
        g_propagate_error(error, asked.error);
    return asked.ok;
}

void suite_set_seat(struct mastership *seat, const char *node, const char *boot,
                    const char *journal)
{
    memset(seat, 0, sizeof *seat);
    g_strlcpy(seat->node, node, sizeof seat->node);
    g_strlcpy(seat->boot_id, boot, sizeof seat->boot_id);
    g_strlcpy(seat->journal_id, journal, sizeof seat->journal_id);
}

/* --- reading everything --- */

static void each_cb(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    struct loaded *loaded = data;
    if (!object) {
        g_ptr_array_add(loaded->deleted,
                        g_strdup_printf("%s %s %" G_GUINT64_FORMAT, kind, key, version));
        return;
    }
    g_autofree char *text = json_to_text(object);
    g_assert_cmpuint(loaded->deleted->len, ==, 0);
    g_ptr_array_add(loaded->lines,
                    g_strdup_printf("%s %s %" G_GUINT64_FORMAT " %s", kind, key, version, text));
}

void suite_load_task(void *data)
{
    struct loaded *loaded = data;
    loaded->ok = suite->engine->ops->load(suite->engine, &loaded->history, &loaded->serial, each_cb,
                                          loaded, &loaded->error);
}

int suite_compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *suite_load(guint64 wanted_serial)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
    struct loaded loaded = {.lines = lines, .deleted = deleted};
    suite->kind->run(suite->rig, suite_load_task, &loaded);
    g_assert_no_error(loaded.error);
    g_assert_true(loaded.ok);
    g_assert_cmpuint(loaded.history, ==, RIG_HISTORY);
    g_assert_cmpuint(loaded.serial, ==, wanted_serial);
    g_ptr_array_sort(lines, suite_compare_lines);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

char *suite_load_deleted(void)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
    struct loaded loaded = {.lines = lines, .deleted = deleted};
    suite->kind->run(suite->rig, suite_load_task, &loaded);
    g_assert_true(loaded.ok);
    g_ptr_array_add(deleted, NULL);
    return g_strjoinv(", ", (char **)deleted->pdata);
}

/* --- life of a process --- */

void suite_open(void)
{
    suite->engine = suite->kind->open(suite->rig);
}

void suite_close(void)
{
    suite->kind->close(suite->rig, suite->engine);
    suite->engine = NULL;
}

/* A store is read before the campaign, a replicated engine after it. */
void suite_take_seat(void)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
    struct loaded loaded = {.lines = lines, .deleted = deleted};
    g_autoptr(GError) error = NULL;
    if (!suite->engine->replicated)
        suite->kind->run(suite->rig, suite_load_task, &loaded);
    g_assert_no_error(loaded.error);
    suite_campaign(&suite->me, &error);
    g_assert_no_error(error);
}

void suite_become_master(guint64 serial)
{
    suite_take_seat();
    g_free(suite_load(serial));
}

void suite_restart(guint64 serial)
{
    guint64 epoch = suite->me.epoch;
    suite_close();
    suite_open();
    suite_become_master(serial);
    g_assert_cmpuint(suite->me.epoch, >=, epoch);
    g_assert_true(suite->me.epoch == epoch || suite->kind->expire);
}

/* --- commits --- */

static void committed(enum engine_result result, const GError *error, void *data)
{
    struct outcome *outcome = data;
    g_assert_false(outcome->done);
    g_assert_nonnull(suite->engine); /* a process that was ended hears nothing */
    outcome->done = true;
    outcome->order = ++suite->order;
    outcome->result = result;
    outcome->error = error ? g_error_copy(error) : NULL;
}

void suite_outcome_free(void *data)
{
    struct outcome *outcome = data;
    g_clear_error(&outcome->error);
    g_clear_pointer(&outcome->changes, g_ptr_array_unref);
    g_free(outcome);
}

static struct outcome *outcome_new(void)
{
    struct outcome *outcome = g_new0(struct outcome, 1);
    g_ptr_array_add(suite->parked, outcome);
    return outcome;
}

struct outcome *suite_commit_as(guint64 epoch, const char *id, guint64 serial, GPtrArray *changes)
{
    struct outcome *outcome = outcome_new();
    for (guint i = 0; i < changes->len; i++)
        ((struct change *)changes->pdata[i])->version = serial;
    suite->engine->ops->commit(suite->engine, &(struct engine_commit){id, epoch, serial, changes},
                               committed, outcome);
    outcome->changes = changes;
    return outcome;
}

void suite_commit(const char *id, guint64 serial, GPtrArray *changes)
{
    struct outcome *outcome = suite_commit_as(suite->me.epoch, id, serial, changes);
    suite->kind->wait(suite->rig, &outcome->done);
    g_assert_no_error(outcome->error);
    g_assert_cmpint(outcome->result, ==, ENGINE_DONE);
}

guint64 suite_lookup(const char *id)
{
    return suite->engine->ops->lookup(suite->engine, id);
}

static void passed(bool still_master, void *data)
{
    committed(still_master ? ENGINE_DONE : ENGINE_REFUSED, NULL, data);
}

struct outcome *suite_barrier(void)
{
    struct outcome *outcome = outcome_new();
    suite->engine->ops->barrier(suite->engine, passed, outcome);
    return outcome;
}

/*
 * One suite for everything that is an engine (proto/engine.h): what the real ones must do alike,
 * and what the stand-ins of other tests must do as they do. Where they differ on purpose it stands
 * in the table `differences`, with the reason; every other word is the same.
 */
#include "engine_rigs.h"
#include "world.h"

#include "base/limits.h"
#include "proto/change.h"

#include <string.h>

#define BOOT "11111111-2222-4333-8444-555555555555"
#define JOURNAL "66666666-7777-4888-8999-000000000000"
#define OTHER_JOURNAL "66666666-7777-4888-8999-000000000001"

struct outcome {
    bool done;
    guint order;
    enum engine_result result;
    GError *error;
    GPtrArray *changes; /* of a commit, which borrows them */
};

struct fixture {
    const struct rig_kind *kind;
    struct rig *rig;
    struct engine *engine;
    struct mastership me;
    guint order;       /* of the answers */
    GPtrArray *parked; /* struct outcome: what comes too late is not to find them gone */
};

static struct fixture *fixture; /* of the case that runs */

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
     "somebody else has written the configuration in etcd|the lease has ended: etcd does not know the lease any more",
     "the master hears of its end from etcd; with a store its own record tells"},
    {"full", "etcd", ENGINE_UNKNOWN, FETTLE_ERROR_NOT_MASTER,
     "etcd takes no changes: a member's file has reached its limit; see fettle cluster engine "
     "status",
     "etcd says so of what it has just done too, and then nothing can be fenced out"},
};

static const struct difference *difference_at(const char *when)
{
    for (guint i = 0; i < G_N_ELEMENTS(differences); i++)
        if (!strcmp(differences[i].when, when) && !strcmp(differences[i].kind, fixture->kind->name))
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

/* This code with exactly this text (a pattern where a path stands), or what the table has. */
static void expect_error(const GError *error, const char *when, enum fettle_error code,
                         const char *text)
{
    const struct difference *other = difference_at(when);
    code = other ? other->code : code;
    text = other ? other->text : text;
    if (!error)
        g_error("%s, %s: no error, expected: %s", fixture->kind->name, when, text);
    if (!g_error_matches(error, FETTLE_ERROR, (int)code) ||
        !is_one_of(text, error->message))
        g_error("%s, %s: got %s: %s; expected %d: %s", fixture->kind->name, when,
                fettle_error_name(error), error->message, (int)code, text);
}

static void expect_refusal(struct outcome *outcome, const char *when, enum fettle_error code,
                           const char *text)
{
    const struct difference *other = difference_at(when);
    fixture->kind->wait(fixture->rig, &outcome->done);
    g_assert_cmpint(outcome->result, ==, other ? other->result : ENGINE_REFUSED);
    expect_error(outcome->error, when, code, text);
}

/* --- changes --- */

static struct change *put(const char *kind, const char *key, json_t *object)
{
    return change_make(CHANGE_PUT, kind, key, 0, object);
}

static struct change *drop(const char *kind, const char *key)
{
    return change_make(CHANGE_DELETE, kind, key, 0, NULL);
}

/* `version` of each is set when it is committed. */
static GPtrArray *list(struct change *first, ...)
{
    GPtrArray *changes = change_list_new();
    va_list more;
    va_start(more, first);
    for (struct change *change = first; change; change = va_arg(more, struct change *))
        g_ptr_array_add(changes, change);
    va_end(more);
    return changes;
}

static json_t *text_object(const char *text)
{
    return json_make("{s:s}", "text", text);
}

static GPtrArray *one_tag(const char *key, const char *text)
{
    return list(put("tag", key, text_object(text)), NULL);
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
    asked->ok = fixture->engine->ops->campaign(fixture->engine, asked->me, &asked->error);
}

static void resign_task(void *data)
{
    struct asked *asked = data;
    asked->ok = fixture->engine->ops->resign(fixture->engine, asked->next, &asked->error);
}

static bool campaign(struct mastership *me, GError **error)
{
    struct asked asked = {.me = me};
    fixture->kind->run(fixture->rig, campaign_task, &asked);
    if (asked.error)
        g_propagate_error(error, asked.error);
    return asked.ok;
}

static bool resign(const char *next, GError **error)
{
    struct asked asked = {.next = next};
    fixture->kind->run(fixture->rig, resign_task, &asked);
    if (asked.error)
        g_propagate_error(error, asked.error);
    return asked.ok;
}

static void set_seat(struct mastership *seat, const char *node, const char *boot,
                     const char *journal)
{
    memset(seat, 0, sizeof *seat);
    g_strlcpy(seat->node, node, sizeof seat->node);
    g_strlcpy(seat->boot_id, boot, sizeof seat->boot_id);
    g_strlcpy(seat->journal_id, journal, sizeof seat->journal_id);
}

/* --- reading everything --- */

struct loaded {
    GPtrArray *lines; /* "kind key version json" of each object */
    GPtrArray *deleted;
    guint64 history, serial;
    bool ok;
    GError *error;
};

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

static void load_task(void *data)
{
    struct loaded *loaded = data;
    loaded->ok = fixture->engine->ops->load(fixture->engine, &loaded->history, &loaded->serial,
                                            each_cb, loaded, &loaded->error);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What is there as one text, sorted; to be freed. */
static char *load(guint64 wanted_serial)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
    struct loaded loaded = {.lines = lines, .deleted = deleted};
    fixture->kind->run(fixture->rig, load_task, &loaded);
    g_assert_no_error(loaded.error);
    g_assert_true(loaded.ok);
    g_assert_cmpuint(loaded.history, ==, RIG_HISTORY);
    g_assert_cmpuint(loaded.serial, ==, wanted_serial);
    g_ptr_array_sort(lines, compare_lines);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

/* The deletions that are told with everything else, in the order of the log. */
static char *load_deleted(void)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
    struct loaded loaded = {.lines = lines, .deleted = deleted};
    fixture->kind->run(fixture->rig, load_task, &loaded);
    g_assert_true(loaded.ok);
    g_ptr_array_add(deleted, NULL);
    return g_strjoinv(", ", (char **)deleted->pdata);
}

/* --- life of a process --- */

static void open_engine(void)
{
    fixture->engine = fixture->kind->open(fixture->rig);
}

static void close_engine(void)
{
    fixture->kind->close(fixture->rig, fixture->engine);
    fixture->engine = NULL;
}

/* A store is read before the campaign, a replicated engine after it. */
static void take_seat(void)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
    struct loaded loaded = {.lines = lines, .deleted = deleted};
    g_autoptr(GError) error = NULL;
    if (!fixture->engine->replicated)
        fixture->kind->run(fixture->rig, load_task, &loaded);
    g_assert_no_error(loaded.error);
    campaign(&fixture->me, &error);
    g_assert_no_error(error);
}

static void become_master(guint64 serial)
{
    take_seat();
    g_free(load(serial));
}

/* The next process of the same seat. It keeps the epoch, unless there is a lease, and it was away
 * for longer than that because this machine has too much to do. */
static void restart(guint64 serial)
{
    guint64 epoch = fixture->me.epoch;
    close_engine();
    open_engine();
    become_master(serial);
    g_assert_cmpuint(fixture->me.epoch, >=, epoch);
    g_assert_true(fixture->me.epoch == epoch || fixture->kind->expire);
}

/* --- commits --- */

static void committed(enum engine_result result, const GError *error, void *data)
{
    struct outcome *outcome = data;
    g_assert_false(outcome->done);
    g_assert_nonnull(fixture->engine); /* a process that was ended hears nothing */
    outcome->done = true;
    outcome->order = ++fixture->order;
    outcome->result = result;
    outcome->error = error ? g_error_copy(error) : NULL;
}

static void outcome_free(void *data)
{
    struct outcome *outcome = data;
    g_clear_error(&outcome->error);
    g_clear_pointer(&outcome->changes, g_ptr_array_unref);
    g_free(outcome);
}

static struct outcome *outcome_new(void)
{
    struct outcome *outcome = g_new0(struct outcome, 1);
    g_ptr_array_add(fixture->parked, outcome);
    return outcome;
}

/* Begun, not waited for; `changes` is stolen. */
static struct outcome *commit_as(guint64 epoch, const char *id, guint64 serial, GPtrArray *changes)
{
    struct outcome *outcome = outcome_new();
    for (guint i = 0; i < changes->len; i++)
        ((struct change *)changes->pdata[i])->version = serial;
    fixture->engine->ops->commit(
        fixture->engine, &(struct engine_commit){id, epoch, serial, changes}, committed, outcome);
    outcome->changes = changes;
    return outcome;
}

static void must_commit(const char *id, guint64 serial, GPtrArray *changes)
{
    struct outcome *outcome = commit_as(fixture->me.epoch, id, serial, changes);
    fixture->kind->wait(fixture->rig, &outcome->done);
    g_assert_no_error(outcome->error);
    g_assert_cmpint(outcome->result, ==, ENGINE_DONE);
}

static guint64 lookup(const char *id)
{
    return fixture->engine->ops->lookup(fixture->engine, id);
}

static void passed(bool still_master, void *data)
{
    committed(still_master ? ENGINE_DONE : ENGINE_REFUSED, NULL, data);
}

static struct outcome *barrier(void)
{
    struct outcome *outcome = outcome_new();
    fixture->engine->ops->barrier(fixture->engine, passed, outcome);
    return outcome;
}

/* --- the cases --- */

#define FIRST                                                                                      \
    "node n1 1 {\"text\":\"first\"}\n"                                                              \
    "node n2 1 {\"text\":\"second\"}"

static void case_first(void)
{
    g_autofree char *text = load(1);
    g_assert_cmpstr(text, ==, FIRST);
    g_assert_cmpuint(lookup("never"), ==, 0);
}

/* A configuration without anything in it, as opposed to none. */
static void case_empty(void)
{
    g_autofree char *text = load(1);
    g_assert_cmpstr(text, ==, "");
    must_commit("c2", 2, one_tag("a", "b"));
    restart(2);
    g_autofree char *one = load(2);
    g_assert_cmpstr(one, ==, "tag a 2 {\"text\":\"b\"}");
}

static void case_nothing(void)
{
    g_autoptr(GError) error = NULL;
    fixture->kind->try_nothing(fixture->rig, &error);
    expect_error(error, "nothing", FETTLE_ERROR_UNKNOWN_ENTITY,
                 "no cluster here: there is no */store.db.none. Make one: fettle cluster init; join "
                 "one: fettle node invite, there; put one back: fettle cluster restore FILE");
}

/* Whatever text can hold comes back as it was, from this process and from the next. */
static void case_bytes(void)
{
    static const char *const texts[] = {
        "{\"text\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb4\\\"\\\\/\\n\\u0001\x7f\"}",
        "{}",
        "{\"a\":[],\"b\":{},\"c\":null,\"d\":[true,false,[[]]]}",
        "{\"big\":9223372036854775807,\"small\":-9223372036854775808,\"half\":0.5}",
        "{\"\":\"\",\"version\":7,\"object\":{\"version\":8}}",
        "{\"z\":1,\"a\":2,\",\\\"version\\\":3}\":4}",
    };
    static const char *const keys[] = {
        "plain", "with/slash/es", "cluster/" CLUSTER "/a:b", "\xc3\xa4", "a b\"c", "%s'",
    };
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        json_t *object = json_parse_limited(texts[i], strlen(texts[i]), KIB(4), NULL);
        g_autofree char *text = json_to_text(object);
        g_ptr_array_add(lines, g_strdup_printf("tag %s 2 %s", keys[i], text));
        g_ptr_array_add(changes, put("tag", keys[i], object));
    }
    must_commit("c2", 2, changes);
    g_ptr_array_sort(lines, compare_lines);
    g_ptr_array_add(lines, NULL);
    g_autofree char *tags = g_strjoinv("\n", (char **)lines->pdata);
    g_autofree char *all = g_strdup_printf("%s\n%s", FIRST, tags);
    for (guint i = 0; i < 2; i++) {
        g_autofree char *text = load(2);
        g_assert_cmpstr(text, ==, all);
        restart(2);
    }
}

/* One transaction: all of it under one serial, deletions too, also of what was not there. */
static void case_several(void)
{
    must_commit("c2", 2,
                list(put("node", "n1", text_object("changed")), drop("node", "n2"),
                     put("tag", "a", text_object("1")), drop("tag", "never-was"), NULL));
    must_commit("c3", 3, list(drop("tag", "a"), put("node", "n2", text_object("again")), NULL));
    for (guint i = 0; i < 2; i++) {
        g_autofree char *text = load(3);
        g_assert_cmpstr(text, ==,
                        "node n1 2 {\"text\":\"changed\"}\n"
                        "node n2 3 {\"text\":\"again\"}");
        restart(3);
    }
}

/* Who can tell what was changed since it began tells deletions too, with their serials. */
static void case_deletions(void)
{
    guint64 epoch = 0;
    must_commit("c2", 2, list(drop("node", "n2"), NULL));
    must_commit("c3", 3, list(put("tag", "a", text_object("1")), NULL));
    must_commit("c4", 4, list(drop("tag", "a"), NULL));
    restart(4);
    struct engine *engine = fixture->engine;
    g_autofree char *deleted = load_deleted();
    guint64 from = engine->ops->log_from ? engine->ops->log_from(engine, &epoch) : 0;
    g_assert_cmpstr(deleted, ==, engine->replicated ? "node n2 2, tag a 4" : "");
    g_assert_cmpuint(from > 0 && from <= 4, ==, engine->replicated);
    g_assert_cmpuint(epoch, <=, fixture->me.epoch);
}

/* A commit that does not follow is refused alone: those beside it are not. */
static void case_refused(void)
{
    guint64 epoch = fixture->me.epoch;
    g_autofree char *late = g_strdup_printf("the commit is of epoch %" G_GUINT64_FORMAT
                                            ", the engine of epoch %" G_GUINT64_FORMAT,
                                            epoch + 7, epoch);
    struct outcome *gap = commit_as(epoch, "gap", 3, one_tag("gap", "x"));
    struct outcome *good = commit_as(epoch, "good", 2, one_tag("good", "x"));
    struct outcome *twice = commit_as(epoch, "twice", 2, one_tag("twice", "x"));
    struct outcome *other = commit_as(epoch + 7, "other", 3, one_tag("other", "x"));
    struct outcome *next = commit_as(epoch, "next", 3, one_tag("next", "x"));
    expect_refusal(gap, "gap", FETTLE_ERROR_INTERNAL, "serial 3 does not follow 1");
    expect_refusal(twice, "twice", FETTLE_ERROR_INTERNAL, "serial 2 does not follow 2");
    expect_refusal(other, "other epoch", FETTLE_ERROR_NOT_MASTER, late);
    fixture->kind->wait(fixture->rig, &next->done);
    g_assert_no_error(next->error);
    g_assert_cmpint(good->result, ==, ENGINE_DONE);
    g_assert_cmpint(next->result, ==, ENGINE_DONE);
    restart(3);
    g_assert_cmpuint(lookup("gap"), ==, 0);
    g_assert_cmpuint(lookup("twice"), ==, 0);
    g_assert_cmpuint(lookup("other"), ==, 0);
    g_assert_cmpuint(lookup("good"), ==, 2);
    g_assert_cmpuint(lookup("next"), ==, 3);
    g_autofree char *text = load(3);
    g_assert_cmpstr(text, ==,
                    FIRST "\ntag good 2 {\"text\":\"x\"}\ntag next 3 {\"text\":\"x\"}");
}

struct id_list {
    guint64 last;
    guint count, known;
};

static void each_id_cb(const char *id, guint64 serial, void *data)
{
    struct id_list *ids = data;
    g_assert_cmpuint(serial, >, ids->last);
    ids->last = serial;
    ids->count++;
    if (g_str_has_prefix(id, "00000000-")) {
        g_autofree char *wanted = g_strdup_printf("00000000-0000-4000-8000-%012u", (guint)serial);
        g_assert_cmpstr(id, ==, wanted);
        ids->known++;
    }
}

/* An id that was stored has its serial, for this process and the next, and all of them are listed
 * in order; one that was not has none. */
static void case_ids(void)
{
    enum { COMMITS = 600 };
    struct outcome *last = NULL;
    for (guint i = 2; i < 2 + COMMITS; i++) {
        g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", i);
        last = commit_as(fixture->me.epoch, id, i, one_tag(i % 2 ? "a" : "b", id));
    }
    fixture->kind->wait(fixture->rig, &last->done);
    for (guint i = 0; i < 3; i++) {
        struct id_list ids = {0};
        g_autoptr(GError) error = NULL;
        g_assert_cmpuint(lookup("00000000-0000-4000-8000-000000000002"), ==, 2);
        g_assert_cmpuint(lookup("00000000-0000-4000-8000-000000000601"), ==, 601);
        g_assert_cmpuint(lookup("00000000-0000-4000-8000-000000000602"), ==, 0);
        g_assert_cmpuint(lookup(""), ==, 0);
        fixture->engine->ops->each_id(fixture->engine, each_id_cb, &ids, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(ids.known, ==, COMMITS);
        g_assert_cmpuint(ids.count, <=, COMMITS + 1); /* the first content may have one */
        if (i == 0)
            g_free(load(1 + COMMITS)); /* those that are read again are known already */
        else
            restart(1 + COMMITS);
    }
}

/* Answers come in the order of the commits, and a barrier behind all that was begun before it. */
static void case_order(void)
{
    enum { COMMITS = LIMIT_COMMITS_PER_BATCH + 40 };
    struct outcome *outcomes[COMMITS];
    struct outcome *before = barrier(), *middle = NULL;
    for (guint i = 0; i < COMMITS; i++) {
        g_autofree char *id = g_strdup_printf("c%u", i);
        if (i == COMMITS / 2)
            middle = barrier();
        outcomes[i] = commit_as(fixture->me.epoch, id, 2 + i, one_tag(i % 3 ? "a" : id, id));
    }
    struct outcome *after = barrier();
    fixture->kind->wait(fixture->rig, &after->done);
    g_assert_cmpint(before->result, ==, ENGINE_DONE);
    g_assert_cmpint(after->result, ==, ENGINE_DONE);
    for (guint i = 0; i < COMMITS; i++) {
        g_assert_cmpint(outcomes[i]->result, ==, ENGINE_DONE);
        g_assert_cmpuint(outcomes[i]->order, ==, outcomes[0]->order + i + (i >= COMMITS / 2));
    }
    g_assert_cmpuint(before->order, <, outcomes[0]->order);
    g_assert_cmpuint(middle->order, ==, outcomes[COMMITS / 2]->order - 1);
    g_assert_cmpuint(after->order, ==, outcomes[COMMITS - 1]->order + 1);
}

/* Behind the answer of a commit also if that is stored by now, and its answer on its way. */
static void case_barrier(void)
{
    for (guint serial = 2; serial < 12; serial++) {
        g_autofree char *id = g_strdup_printf("c%u", serial);
        struct outcome *outcome = commit_as(fixture->me.epoch, id, serial, one_tag("a", id));
        lookup(id); /* an engine that has a thread waits for it */
        struct outcome *after = barrier();
        fixture->kind->wait(fixture->rig, &after->done);
        g_assert_true(outcome->done);
        g_assert_cmpint(outcome->result, ==, ENGINE_DONE);
        g_assert_cmpuint(outcome->order, <, after->order);
        g_assert_cmpint(after->result, ==, ENGINE_DONE);
    }
}

/* The process is ended while its commit is on its way, or hears that nobody knows: the next one
 * finds it by its id, or it was never made and can be. */
static void case_lost_answer(void)
{
    guint64 serial = 1;
    for (guint turn = 0; turn < fixture->kind->losses; turn++) {
        g_autofree char *id = g_strdup_printf("lost-%u", turn);
        g_autofree char *key = g_strdup_printf("tag %s ", id);
        bool answers = fixture->kind->lose_answer(fixture->rig, turn);
        struct outcome *outcome =
            commit_as(fixture->me.epoch, id, serial + 1, one_tag(id, "x"));
        if (answers)
            fixture->kind->wait(fixture->rig, &outcome->done);
        close_engine();
        g_assert_true(!answers || outcome->result != ENGINE_DONE);
        open_engine();
        take_seat();
        g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
        struct loaded loaded = {.lines = lines, .deleted = deleted};
        fixture->kind->run(fixture->rig, load_task, &loaded);
        g_assert_true(loaded.ok);
        bool stored = loaded.serial == serial + 1;
        bool found = false;
        for (guint i = 0; i < lines->len; i++)
            found = found || g_str_has_prefix(lines->pdata[i], key);
        g_assert_cmpint(found, ==, stored);
        g_assert_cmpuint(lookup(id), ==, stored ? serial + 1 : 0);
        g_assert_true(stored || !outcome->done || outcome->result != ENGINE_DONE);
        g_assert_true(!stored || !outcome->done || outcome->result != ENGINE_REFUSED);
        if (!stored)
            must_commit(id, serial + 1, one_tag(id, "x"));
        g_assert_cmpuint(lookup(id), ==, ++serial);
    }
}

/* The epoch stays with node, boot and journal, and grows with any other. */
static void case_epochs(void)
{
    static const char *const others[][3] = {
        {NODE_A, BOOT, OTHER_JOURNAL},
        {NODE_A, "another boot", OTHER_JOURNAL},
        {NODE_B, BOOT, JOURNAL},
        {NODE_A, BOOT, JOURNAL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        guint64 epoch = fixture->me.epoch;
        g_assert_cmpuint(epoch, >, 0);
        restart(1);
        if (fixture->kind->expire)
            fixture->kind->expire(fixture->rig);
        close_engine();
        open_engine();
        set_seat(&fixture->me, others[i][0], others[i][1], others[i][2]);
        take_seat();
        g_assert_cmpuint(fixture->me.epoch, >, epoch);
        g_free(load(1));
    }
}

static void observe_task(void *data)
{
    struct asked *asked = data;
    asked->ok = fixture->engine->ops->observe(fixture->engine, asked->me, &asked->error);
}

/* Who is master is said to everybody. */
static void case_observe(void)
{
    struct mastership seen;
    struct asked asked = {.me = &seen};
    fixture->kind->run(fixture->rig, observe_task, &asked);
    g_assert_true(asked.ok);
    g_assert_cmpuint(seen.epoch, ==, fixture->me.epoch);
    g_assert_cmpstr(seen.node, ==, NODE_A);
    g_assert_cmpstr(seen.boot_id, ==, BOOT);
    g_assert_cmpstr(seen.journal_id, ==, JOURNAL);
}

/* A mastership that another one has followed commits nothing, and its barriers say so. */
static void case_replaced(void)
{
    struct engine *old = fixture->engine;
    guint64 epoch = fixture->me.epoch;
    g_autoptr(GError) error = NULL;
    must_commit("c2", 2, one_tag("a", "1"));
    if (fixture->kind->expire) {
        fixture->kind->expire(fixture->rig);
        open_engine();
    }
    set_seat(&fixture->me, NODE_B, BOOT, JOURNAL);
    campaign(&fixture->me, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(fixture->me.epoch, >, epoch);
    g_free(load(2));
    must_commit("c3", 3, one_tag("a", "2"));
    struct engine *new = fixture->engine;
    fixture->engine = old;
    g_autofree char *late = g_strdup_printf("the commit is of epoch %" G_GUINT64_FORMAT
                                            ", the engine of epoch %" G_GUINT64_FORMAT,
                                            epoch, fixture->me.epoch);
    expect_refusal(commit_as(epoch, "late", 3, one_tag("a", "late")), "replaced",
                   FETTLE_ERROR_NOT_MASTER, late);
    if (old != new) { /* one of the same process is of the new mastership */
        struct outcome *after = barrier();
        fixture->kind->wait(fixture->rig, &after->done);
        g_assert_cmpint(after->result, ==, ENGINE_REFUSED);
        close_engine();
    }
    fixture->engine = new;
    g_autofree char *text = load(3);
    g_assert_cmpstr(text, ==, FIRST "\ntag a 3 {\"text\":\"2\"}");
    g_assert_cmpuint(lookup("late"), ==, 0);
}

/* A seat that is taken, one that is handed over, one that stays with its store. */
static void case_resign(void)
{
    struct mastership other;
    g_autoptr(GError) error = NULL;
    set_seat(&other, NODE_B, BOOT, JOURNAL);
    if (!fixture->kind->expire) {
        g_assert_false(resign(NODE_B, &error));
        expect_error(error, "resign", FETTLE_ERROR_WRONG_STATE,
                     "the store of this node is the engine; another node becomes master by `fettle "
                     "cluster master-failover` there");
        must_commit("c2", 2, one_tag("a", "1"));
        return;
    }
    struct engine *old = fixture->engine;
    open_engine();
    g_assert_false(campaign(&other, &error));
    expect_error(error, "taken", FETTLE_ERROR_NOT_MASTER, "the master is node " NODE_A);
    g_clear_error(&error);
    struct engine *new = fixture->engine;
    fixture->engine = old;
    g_assert_true(resign(NODE_C, &error));
    fixture->engine = new;
    g_assert_false(campaign(&other, &error));
    expect_error(error, "handed over", FETTLE_ERROR_NOT_MASTER,
                 "mastership was handed to node " NODE_C);
    g_clear_error(&error);
    fixture->engine = old;
    g_autofree char *over = g_strdup_printf("the commit is of epoch %" G_GUINT64_FORMAT
                                            ", the engine of epoch 0",
                                            fixture->me.epoch);
    expect_refusal(commit_as(fixture->me.epoch, "late", 2, one_tag("a", "late")), "resigned",
                   FETTLE_ERROR_NOT_MASTER, over);
    if (old != new)
        close_engine();
    fixture->engine = new;
    set_seat(&fixture->me, NODE_C, BOOT, JOURNAL);
    become_master(1);
    must_commit("c2", 2, one_tag("a", "1"));
}

/* As large as a transaction may be: in number, as a whole, and one value. */
static void case_limits(void)
{
    g_autofree char *text = g_strnfill(LIMIT_COMMIT_BYTES / LIMIT_CHANGES_PER_COMMIT - 100, 'x');
    g_autofree char *large = g_strnfill(MIB(4), 'y');
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < LIMIT_CHANGES_PER_COMMIT; i++) {
        g_autofree char *key = g_strdup_printf("k%04u", i);
        g_ptr_array_add(changes, put("tag", key, text_object(text)));
    }
    must_commit("many", 2, changes);
    must_commit("large", 3, list(put("tag", "large", text_object(large)), NULL));
    restart(3);
    g_autofree char *all = load(3);
    g_auto(GStrv) lines = g_strsplit(all, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 2 + LIMIT_CHANGES_PER_COMMIT + 1);
    g_autofree char *first = g_strdup_printf("tag k0000 2 {\"text\":\"%s\"}", text);
    g_autofree char *last = g_strdup_printf("tag large 3 {\"text\":\"%s\"}", large);
    g_assert_cmpstr(lines[2], ==, first);
    g_assert_cmpstr(lines[2 + LIMIT_CHANGES_PER_COMMIT], ==, last);
}

/* No room: nothing of the commit is there, it is said, and when there is room it can be made. */
static void case_full(void)
{
    g_autofree char *large = g_strnfill(MIB(1), 'x');
    must_commit("before", 2, one_tag("a", "1"));
    if (!fixture->kind->fill_up(fixture->rig)) {
        g_test_skip("no mount namespace can be made here");
        return;
    }
    expect_refusal(commit_as(fixture->me.epoch, "refused", 3, one_tag("a", large)), "full",
                   FETTLE_ERROR_STORAGE,
                   "*/store.db: no space left on its disk (*); free some, nothing was changed");
    fixture->kind->make_room(fixture->rig);
    restart(2);
    g_assert_cmpuint(lookup("refused"), ==, 0);
    must_commit("refused", 3, one_tag("a", large));
    g_assert_cmpuint(lookup("refused"), ==, 3);
}

/* --- which engine has to pass which --- */

static GPtrArray *first_content(void)
{
    return list(put("node", "n1", text_object("first")), put("node", "n2", text_object("second")),
                NULL);
}

struct row {
    const char *name;
    void (*fn)(void);
    bool empty;
    bool (*applies)(const struct rig_kind *kind);
};

static bool has_nothing(const struct rig_kind *kind)
{
    return kind->try_nothing != NULL;
}

static bool can_be_full(const struct rig_kind *kind)
{
    return kind->fill_up != NULL;
}

/* What is in memory has no limits. */
static bool is_real(const struct rig_kind *kind)
{
    return !kind->stand_in;
}

static const struct row rows[] = {
    {"first#SAF-01", case_first},
    {"empty", case_empty, .empty = true},
    {"nothing", case_nothing, .applies = has_nothing},
    {"bytes#WCF-16", case_bytes},
    {"several-changes#WCF-16", case_several},
    {"deletions#WCF-04", case_deletions},
    {"refused#SAF-03,SAF-04", case_refused},
    {"ids#SAF-04", case_ids},
    {"order#SAF-03", case_order},
    {"barrier#SAF-03", case_barrier},
    {"lost-answer#SAF-04,WCF-16", case_lost_answer},
    {"epochs#SAF-01", case_epochs},
    {"observe#SAF-01", case_observe},
    {"replaced#SAF-01,SAF-03,SAF-08", case_replaced},
    {"resign#SAF-01,SAF-08", case_resign},
    {"limits", case_limits, .applies = is_real},
    {"full#SAF-04,SAF-08", case_full, .applies = can_be_full},
};

struct test {
    const struct rig_kind *kind;
    const struct row *row;
};

static void run_test(gconstpointer data)
{
    const struct test *test = data;
    g_autoptr(GPtrArray) changes = test->row->empty ? change_list_new() : first_content();
    struct fixture now = {.kind = test->kind,
                          .parked = g_ptr_array_new_with_free_func(outcome_free)};
    fixture = &now;
    loop_init();
    now.rig = now.kind->make(changes);
    set_seat(&now.me, NODE_A, BOOT, JOURNAL);
    open_engine();
    become_master(1);
    test->row->fn();
    close_engine();
    now.kind->free(now.rig);
    g_ptr_array_unref(now.parked);
}

int main(int argc, char **argv)
{
    static const struct rig_kind *const kinds[] = {&rig_sqlite, &rig_etcd, &rig_fake,
                                                   &rig_fake_replicated, &rig_model};
    rigs_init();
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        for (guint j = 0; j < G_N_ELEMENTS(rows); j++) {
            g_autofree char *path =
                g_strdup_printf("/engines/%s/%s", kinds[i]->name, rows[j].name);
            struct test *test = g_new(struct test, 1);
            *test = (struct test){kinds[i], &rows[j]};
            if (rows[j].applies && !rows[j].applies(kinds[i]))
                g_free(test);
            else
                g_test_add_data_func_full(path, test, run_test, g_free);
        }
    }
    return g_test_run();
}

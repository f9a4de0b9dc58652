/*
 * One suite for everything that is an engine (proto/engine.h): what the real ones must do alike,
 * and what the stand-ins of other tests must do as they do. Where they differ on purpose it stands
 * in the table of engine_suite.c, with the reason; every other word is the same.
 */
#include "engine_suite.h"
#include "world.h"

#include "base/limits.h"
#include "proto/change.h"

#include <string.h>

#define BOOT SUITE_BOOT
#define JOURNAL SUITE_JOURNAL
#define OTHER_JOURNAL "66666666-7777-4888-8999-000000000001"

/* --- the cases --- */

#define FIRST                                                                                      \
    "node n1 1 {\"text\":\"first\"}\n"                                                             \
    "node n2 1 {\"text\":\"second\"}"

static void case_first(void)
{
    g_autofree char *text = suite_load(1);
    g_assert_cmpstr(text, ==, FIRST);
    g_assert_cmpuint(suite_lookup("never"), ==, 0);
}

/* A configuration without anything in it, as opposed to none. */
static void case_empty(void)
{
    g_autofree char *text = suite_load(1);
    g_assert_cmpstr(text, ==, "");
    suite_commit("c2", 2, suite_tag("a", "b"));
    suite_restart(2);
    g_autofree char *one = suite_load(2);
    g_assert_cmpstr(one, ==, "tag a 2 {\"text\":\"b\"}");
}

static void case_nothing(void)
{
    g_autoptr(GError) error = NULL;
    suite->kind->try_nothing(suite->rig, &error);
    suite_expect_error(
        error, "nothing", FETTLE_ERROR_UNKNOWN_ENTITY,
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
        g_ptr_array_add(changes, suite_put("tag", keys[i], object));
    }
    suite_commit("c2", 2, changes);
    g_ptr_array_sort(lines, suite_compare_lines);
    g_ptr_array_add(lines, NULL);
    g_autofree char *tags = g_strjoinv("\n", (char **)lines->pdata);
    g_autofree char *all = g_strdup_printf("%s\n%s", FIRST, tags);
    for (guint i = 0; i < 2; i++) {
        g_autofree char *text = suite_load(2);
        g_assert_cmpstr(text, ==, all);
        suite_restart(2);
    }
}

/* One transaction: all of it under one serial, deletions too, also of what was not there. */
static void case_several(void)
{
    suite_commit("c2", 2,
                 suite_list(suite_put("node", "n1", suite_object("changed")),
                            suite_drop("node", "n2"), suite_put("tag", "a", suite_object("1")),
                            suite_drop("tag", "never-was"), NULL));
    suite_commit(
        "c3", 3,
        suite_list(suite_drop("tag", "a"), suite_put("node", "n2", suite_object("again")), NULL));
    for (guint i = 0; i < 2; i++) {
        g_autofree char *text = suite_load(3);
        g_assert_cmpstr(text, ==,
                        "node n1 2 {\"text\":\"changed\"}\n"
                        "node n2 3 {\"text\":\"again\"}");
        suite_restart(3);
    }
}

/* Who can tell what was changed since it began tells deletions too, with their serials. */
static void case_deletions(void)
{
    guint64 epoch = 0;
    suite_commit("c2", 2, suite_list(suite_drop("node", "n2"), NULL));
    suite_commit("c3", 3, suite_list(suite_put("tag", "a", suite_object("1")), NULL));
    suite_commit("c4", 4, suite_list(suite_drop("tag", "a"), NULL));
    suite_restart(4);
    struct engine *engine = suite->engine;
    g_autofree char *deleted = suite_load_deleted();
    guint64 from = engine->ops->log_from ? engine->ops->log_from(engine, &epoch) : 0;
    g_assert_cmpstr(deleted, ==, engine->replicated ? "node n2 2, tag a 4" : "");
    g_assert_cmpuint(from > 0 && from <= 4, ==, engine->replicated);
    g_assert_cmpuint(epoch, <=, suite->me.epoch);
}

/* A commit that does not follow is refused alone: those beside it are not. */
static void case_refused(void)
{
    guint64 epoch = suite->me.epoch;
    g_autofree char *late = g_strdup_printf("the commit is of epoch %" G_GUINT64_FORMAT
                                            ", the engine of epoch %" G_GUINT64_FORMAT,
                                            epoch + 7, epoch);
    struct outcome *gap = suite_commit_as(epoch, "gap", 3, suite_tag("gap", "x"));
    struct outcome *good = suite_commit_as(epoch, "good", 2, suite_tag("good", "x"));
    struct outcome *twice = suite_commit_as(epoch, "twice", 2, suite_tag("twice", "x"));
    struct outcome *other = suite_commit_as(epoch + 7, "other", 3, suite_tag("other", "x"));
    struct outcome *next = suite_commit_as(epoch, "next", 3, suite_tag("next", "x"));
    suite_expect_refusal(gap, "gap", FETTLE_ERROR_INTERNAL, "serial 3 does not follow 1");
    suite_expect_refusal(twice, "twice", FETTLE_ERROR_INTERNAL, "serial 2 does not follow 2");
    suite_expect_refusal(other, "other epoch", FETTLE_ERROR_NOT_MASTER, late);
    suite->kind->wait(suite->rig, &next->done);
    g_assert_no_error(next->error);
    g_assert_cmpint(good->result, ==, ENGINE_DONE);
    g_assert_cmpint(next->result, ==, ENGINE_DONE);
    suite_restart(3);
    g_assert_cmpuint(suite_lookup("gap"), ==, 0);
    g_assert_cmpuint(suite_lookup("twice"), ==, 0);
    g_assert_cmpuint(suite_lookup("other"), ==, 0);
    g_assert_cmpuint(suite_lookup("good"), ==, 2);
    g_assert_cmpuint(suite_lookup("next"), ==, 3);
    g_autofree char *text = suite_load(3);
    g_assert_cmpstr(text, ==, FIRST "\ntag good 2 {\"text\":\"x\"}\ntag next 3 {\"text\":\"x\"}");
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
        last = suite_commit_as(suite->me.epoch, id, i, suite_tag(i % 2 ? "a" : "b", id));
    }
    suite->kind->wait(suite->rig, &last->done);
    for (guint i = 0; i < 3; i++) {
        struct id_list ids = {0};
        g_autoptr(GError) error = NULL;
        g_assert_cmpuint(suite_lookup("00000000-0000-4000-8000-000000000002"), ==, 2);
        g_assert_cmpuint(suite_lookup("00000000-0000-4000-8000-000000000601"), ==, 601);
        g_assert_cmpuint(suite_lookup("00000000-0000-4000-8000-000000000602"), ==, 0);
        g_assert_cmpuint(suite_lookup(""), ==, 0);
        suite->engine->ops->each_id(suite->engine, each_id_cb, &ids, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(ids.known, ==, COMMITS);
        g_assert_cmpuint(ids.count, <=, COMMITS + 1); /* the first content may have one */
        if (i == 0)
            g_free(suite_load(1 + COMMITS)); /* those that are read again are known already */
        else
            suite_restart(1 + COMMITS);
    }
}

/* Answers come in the order of the commits, and a barrier behind all that was begun before it. */
static void case_order(void)
{
    enum { COMMITS = LIMIT_COMMITS_PER_BATCH + 40 };
    struct outcome *outcomes[COMMITS];
    struct outcome *before = suite_barrier(), *middle = NULL;
    for (guint i = 0; i < COMMITS; i++) {
        g_autofree char *id = g_strdup_printf("c%u", i);
        if (i == COMMITS / 2)
            middle = suite_barrier();
        outcomes[i] = suite_commit_as(suite->me.epoch, id, 2 + i, suite_tag(i % 3 ? "a" : id, id));
    }
    struct outcome *after = suite_barrier();
    suite->kind->wait(suite->rig, &after->done);
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
        struct outcome *outcome = suite_commit_as(suite->me.epoch, id, serial, suite_tag("a", id));
        suite_lookup(id); /* an engine that has a thread waits for it */
        struct outcome *after = suite_barrier();
        suite->kind->wait(suite->rig, &after->done);
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
    for (guint turn = 0; turn < suite->kind->losses; turn++) {
        g_autofree char *id = g_strdup_printf("lost-%u", turn);
        g_autofree char *key = g_strdup_printf("tag %s ", id);
        bool answers = suite->kind->lose_answer(suite->rig, turn);
        struct outcome *outcome =
            suite_commit_as(suite->me.epoch, id, serial + 1, suite_tag(id, "x"));
        if (answers)
            suite->kind->wait(suite->rig, &outcome->done);
        suite_close();
        g_assert_true(!answers || outcome->result != ENGINE_DONE);
        suite_open();
        suite_take_seat();
        g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GPtrArray) deleted = g_ptr_array_new_with_free_func(g_free);
        struct loaded loaded = {.lines = lines, .deleted = deleted};
        suite->kind->run(suite->rig, suite_load_task, &loaded);
        g_assert_true(loaded.ok);
        bool stored = loaded.serial == serial + 1;
        bool found = false;
        for (guint i = 0; i < lines->len; i++)
            found = found || g_str_has_prefix(lines->pdata[i], key);
        g_assert_cmpint(found, ==, stored);
        g_assert_cmpuint(suite_lookup(id), ==, stored ? serial + 1 : 0);
        g_assert_true(stored || !outcome->done || outcome->result != ENGINE_DONE);
        g_assert_true(!stored || !outcome->done || outcome->result != ENGINE_REFUSED);
        if (!stored)
            suite_commit(id, serial + 1, suite_tag(id, "x"));
        g_assert_cmpuint(suite_lookup(id), ==, ++serial);
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
        guint64 epoch = suite->me.epoch;
        g_assert_cmpuint(epoch, >, 0);
        suite_restart(1);
        if (suite->kind->expire)
            suite->kind->expire(suite->rig);
        suite_close();
        suite_open();
        suite_set_seat(&suite->me, others[i][0], others[i][1], others[i][2]);
        suite_take_seat();
        g_assert_cmpuint(suite->me.epoch, >, epoch);
        g_free(suite_load(1));
    }
}

/* Who is master is said to everybody. */
static void case_observe(void)
{
    struct mastership seen;
    g_assert_true(suite_observe(&seen));
    g_assert_cmpuint(seen.epoch, ==, suite->me.epoch);
    g_assert_cmpstr(seen.node, ==, NODE_A);
    g_assert_cmpstr(seen.boot_id, ==, BOOT);
    g_assert_cmpstr(seen.journal_id, ==, JOURNAL);
}

/* A mastership that another one has followed commits nothing, and its barriers say so. */
static void case_replaced(void)
{
    struct engine *old = suite->engine;
    guint64 epoch = suite->me.epoch;
    g_autoptr(GError) error = NULL;
    suite_commit("c2", 2, suite_tag("a", "1"));
    if (suite->kind->expire) {
        suite->kind->expire(suite->rig);
        suite_open();
    }
    suite_set_seat(&suite->me, NODE_B, BOOT, JOURNAL);
    suite_campaign(&suite->me, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(suite->me.epoch, >, epoch);
    g_free(suite_load(2));
    suite_commit("c3", 3, suite_tag("a", "2"));
    struct engine *new = suite->engine;
    suite->engine = old;
    g_autofree char *late = g_strdup_printf("the commit is of epoch %" G_GUINT64_FORMAT
                                            ", the engine of epoch %" G_GUINT64_FORMAT,
                                            epoch, suite->me.epoch);
    suite_expect_refusal(suite_commit_as(epoch, "late", 3, suite_tag("a", "late")), "replaced",
                         FETTLE_ERROR_NOT_MASTER, late);
    if (old != new) { /* one of the same process is of the new mastership */
        struct outcome *after = suite_barrier();
        suite->kind->wait(suite->rig, &after->done);
        g_assert_cmpint(after->result, ==, ENGINE_REFUSED);
        suite_close();
    }
    suite->engine = new;
    g_autofree char *text = suite_load(3);
    g_assert_cmpstr(text, ==, FIRST "\ntag a 3 {\"text\":\"2\"}");
    g_assert_cmpuint(suite_lookup("late"), ==, 0);
}

/* A person's word on a store: what is there stays, and its serial is higher. */
static void case_leap(void)
{
    static const char *const id =
        "12345678-0000-4000-8000-000000000002"; /* as all of clients are */
    g_autoptr(GError) error = NULL;
    suite_commit(id, 2, suite_tag("a", "1"));
    suite_set_seat(&suite->me, NODE_A, BOOT, "another journal");
    suite->me.leap = 5000000002;
    g_assert_true(suite_campaign(&suite->me, &error));
    g_assert_no_error(error);
    struct mastership stored;
    g_assert_true(suite_observe(&stored));
    g_assert_cmpuint(stored.leap, ==, 0);
    g_assert_cmpuint(stored.epoch, ==, suite->me.epoch);
    suite->me.leap = 0;
    suite_restart(5000000002); /* a death before the word is stored */
    /* Who goes on leaps no further. */
    suite->me.leap = 7000000002;
    g_assert_true(suite_campaign(&suite->me, &error));
    suite->me.leap = 0;
    suite_commit("c3", 5000000003, suite_tag("b", "2"));
    suite_restart(5000000003);
    g_autofree char *text = suite_load(5000000003);
    g_assert_cmpstr(text, ==,
                    FIRST "\ntag a 2 {\"text\":\"1\"}\ntag b 5000000003 {\"text\":\"2\"}");
    g_assert_cmpuint(suite_lookup(id), ==, 2);
    g_assert_cmpuint(suite_lookup("c3"), ==, 5000000003);
}

/* A seat that is taken, one that is handed over, one that stays with its store. */
static void case_resign(void)
{
    struct mastership other;
    g_autoptr(GError) error = NULL;
    suite_set_seat(&other, NODE_B, BOOT, JOURNAL);
    if (!suite->kind->expire) {
        g_assert_false(suite_resign(NODE_B, &error));
        suite_expect_error(
            error, "resign", FETTLE_ERROR_WRONG_STATE,
            "the store of this node is the engine; another node becomes master by `fettle "
            "cluster master-failover` there");
        suite_commit("c2", 2, suite_tag("a", "1"));
        return;
    }
    struct engine *old = suite->engine;
    suite_open();
    g_assert_false(suite_campaign(&other, &error));
    suite_expect_error(error, "taken", FETTLE_ERROR_NOT_MASTER, "the master is node " NODE_A);
    g_clear_error(&error);
    struct engine *new = suite->engine;
    suite->engine = old;
    g_assert_true(suite_resign(NODE_C, &error));
    suite->engine = new;
    g_assert_false(suite_campaign(&other, &error));
    suite_expect_error(error, "handed over", FETTLE_ERROR_NOT_MASTER,
                       "mastership was handed to node " NODE_C);
    g_clear_error(&error);
    suite->engine = old;
    g_autofree char *over = g_strdup_printf(
        "the commit is of epoch %" G_GUINT64_FORMAT ", the engine of epoch 0", suite->me.epoch);
    suite_expect_refusal(suite_commit_as(suite->me.epoch, "late", 2, suite_tag("a", "late")),
                         "resigned", FETTLE_ERROR_NOT_MASTER, over);
    if (old != new)
        suite_close();
    suite->engine = new;
    suite_set_seat(&suite->me, NODE_C, BOOT, JOURNAL);
    suite_become_master(1);
    suite_commit("c2", 2, suite_tag("a", "1"));
}

/* As large as a transaction may be: in number, as a whole, and one value. */
static void case_limits(void)
{
    g_autofree char *text = g_strnfill(LIMIT_COMMIT_BYTES / LIMIT_CHANGES_PER_COMMIT - 100, 'x');
    g_autofree char *large = g_strnfill(MIB(4), 'y');
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < LIMIT_CHANGES_PER_COMMIT; i++) {
        g_autofree char *key = g_strdup_printf("k%04u", i);
        g_ptr_array_add(changes, suite_put("tag", key, suite_object(text)));
    }
    suite_commit("many", 2, changes);
    suite_commit("large", 3, suite_list(suite_put("tag", "large", suite_object(large)), NULL));
    suite_restart(3);
    g_autofree char *all = suite_load(3);
    g_auto(GStrv) lines = g_strsplit(all, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 2 + LIMIT_CHANGES_PER_COMMIT + 1);
    g_autofree char *first = g_strdup_printf("tag k0000 2 {\"text\":\"%s\"}", text);
    g_autofree char *last = g_strdup_printf("tag large 3 {\"text\":\"%s\"}", large);
    g_assert_cmpstr(lines[2], ==, first);
    g_assert_cmpstr(lines[2 + LIMIT_CHANGES_PER_COMMIT], ==, last);
}

static GPtrArray *so_many(guint count)
{
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < count; i++) {
        g_autofree char *key = g_strdup_printf("k%05u", i);
        g_ptr_array_add(changes, suite_put("tag", key, suite_object("x")));
    }
    return changes;
}

/* What no commit of wconfd has: stored, or refused without a word about anything else. */
static void case_too_many(void)
{
    suite_commit("many", 2, so_many(LIMIT_COMMIT_CHANGES));
    struct outcome *outcome =
        suite_commit_as(suite->me.epoch, "too-many", 3, so_many(LIMIT_COMMIT_CHANGES + 1000));
    suite->kind->wait(suite->rig, &outcome->done);
    bool done = outcome->result == ENGINE_DONE;
    if (!done) {
        g_assert_cmpint(outcome->result, ==, ENGINE_REFUSED);
        g_assert_error(outcome->error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
        g_assert_cmpstr(outcome->error->message, ==,
                        "a commit of 9000 changes; a transaction of etcd takes 8000");
    }
    suite_commit("next", done ? 4 : 3, suite_tag("a", "1"));
    g_assert_cmpuint(suite_lookup("too-many"), ==, done ? 3 : 0);
}

/* No room: nothing of the commit is there, it is said, and when there is room it can be made. */
static void case_full(void)
{
    g_autofree char *large = g_strnfill(MIB(1), 'x');
    suite_commit("before", 2, suite_tag("a", "1"));
    if (!suite->kind->fill_up(suite->rig)) {
        g_test_skip("no mount namespace can be made here");
        return;
    }
    suite_expect_refusal(
        suite_commit_as(suite->me.epoch, "refused", 3, suite_tag("a", large)), "full",
        FETTLE_ERROR_STORAGE,
        "*/store.db: no space left on its disk (*); free some, nothing was changed");
    suite->kind->make_room(suite->rig);
    suite_restart(2);
    g_assert_cmpuint(suite_lookup("refused"), ==, 0);
    suite_commit("refused", 3, suite_tag("a", large));
    g_assert_cmpuint(suite_lookup("refused"), ==, 3);
}

/* --- which engine has to pass which --- */

static GPtrArray *first_content(void)
{
    return suite_list(suite_put("node", "n1", suite_object("first")),
                      suite_put("node", "n2", suite_object("second")), NULL);
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

static bool is_store(const struct rig_kind *kind)
{
    return kind->expire == NULL;
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
    {"leap#SAF-07,RCF-05", case_leap, .applies = is_store},
    {"resign#SAF-01,SAF-08", case_resign},
    {"limits", case_limits, .applies = is_real},
    {"too-many#SAF-08", case_too_many, .applies = is_real},
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
    struct suite now = {.kind = test->kind,
                        .parked = g_ptr_array_new_with_free_func(suite_outcome_free)};
    suite = &now;
    loop_init();
    now.rig = now.kind->make(changes);
    suite_set_seat(&now.me, NODE_A, BOOT, JOURNAL);
    suite_open();
    suite_become_master(1);
    test->row->fn();
    suite_close();
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
            g_autofree char *path = g_strdup_printf("/engines/%s/%s", kinds[i]->name, rows[j].name);
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

/* The SQLite engine: sqlite_engine.c, sqlite_store.c, sqlite_check.c. */
#include "world.h"

#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_engine.h"
#include "io/sqlite/sqlite_store.h"
#include "io/sqlite/store_reader.h"
#include "proto/change.h"
#include "proto/records.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOOT "11111111-2222-4333-8444-555555555555"
#define JOURNAL "66666666-7777-4888-8999-000000000000"

struct fixture {
    struct node_paths *paths;
    char *path;
    struct engine *engine;
    struct mastership me;
};

/* --- helpers --- */

static struct change *put(const char *kind, const char *key, const char *text, guint64 version)
{
    return change_make(CHANGE_PUT, kind, key, version, json_make("{s:s}", "text", text));
}

static struct change *drop(const char *kind, const char *key, guint64 version)
{
    return change_make(CHANGE_DELETE, kind, key, version, NULL);
}

static GPtrArray *one(struct change *change)
{
    GPtrArray *changes = change_list_new();

    g_ptr_array_add(changes, change);
    return changes;
}

struct outcome {
    bool done;
    enum engine_result result;
    GError *error;
    guint order;
};

static guint order;

static void committed(enum engine_result result, const GError *error, void *data)
{
    struct outcome *outcome = data;

    outcome->done = true;
    outcome->result = result;
    outcome->error = error != NULL ? g_error_copy(error) : NULL;
    outcome->order = ++order;
}

struct barrier {
    bool done;
    bool master;
    guint order;
};

static void passed(bool still_master, void *data)
{
    struct barrier *barrier = data;

    *barrier = (struct barrier){true, still_master, ++order};
}

static void commit_as(struct fixture *fixture, const char *id, guint64 epoch, guint64 serial,
                      GPtrArray *changes, struct outcome *outcome)
{
    const struct engine_commit commit = {id, epoch, serial, changes};

    fixture->engine->ops->commit(fixture->engine, &commit, committed, outcome);
}

/* Commits one change and waits. */
static void commit_one(struct fixture *fixture, const char *id, guint64 serial,
                       struct change *change)
{
    g_autoptr(GPtrArray) changes = one(change);
    struct outcome outcome = {0};

    commit_as(fixture, id, fixture->me.epoch, serial, changes, &outcome);
    world_wait(&outcome.done);
    g_assert_no_error(outcome.error);
    g_assert_cmpint(outcome.result, ==, ENGINE_DONE);
}

static void each_cb(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    g_autofree char *text = json_to_text(object);
    g_string_append_printf(data, "%s %s %u %s\n", kind, key, (guint)version, text);
}

static bool load(struct engine *engine, char **ret_text, guint64 *ret_serial, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 history = 0;

    if (!engine->ops->load(engine, &history, ret_serial, each_cb, text, error))
        return false;
    g_assert_cmpuint(history, ==, 4);
    if (ret_text != NULL)
        *ret_text = g_strdup(text->str);
    return true;
}

static void open_engine(struct fixture *fixture, const char *boot, const char *journal)
{
    g_autoptr(GError) error = NULL;
    guint64 serial;

    fixture->engine = sqlite_engine_open(fixture->path, &error);
    g_assert_no_error(error);
    load(fixture->engine, NULL, &serial, &error);
    g_assert_no_error(error);
    g_strlcpy(fixture->me.node, NODE_A, sizeof fixture->me.node);
    g_strlcpy(fixture->me.boot_id, boot, sizeof fixture->me.boot_id);
    g_strlcpy(fixture->me.journal_id, journal, sizeof fixture->me.journal_id);
    fixture->engine->ops->campaign(fixture->engine, &fixture->me, &error);
    g_assert_no_error(error);
}

static void close_engine(struct fixture *fixture)
{
    if (fixture->engine != NULL)
        fixture->engine->ops->close(fixture->engine);
    fixture->engine = NULL;
}

static void create(const char *path)
{
    g_autoptr(GPtrArray) changes = one(put("node", "n1", "first", 1));
    g_autoptr(GError) error = NULL;

    g_ptr_array_add(changes, put("node", "n2", "second", 1));
    sqlite_engine_create(path, 4, changes, &error);
    g_assert_no_error(error);
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->paths = world_new(NODE_A);
    fixture->path = g_build_filename(fixture->paths->var, "store.db", NULL);
    create(fixture->path);
    open_engine(fixture, BOOT, JOURNAL);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    close_engine(fixture);
    world_pause(1);
    world_remove(fixture->paths);
    g_free(fixture->path);
}

/* --- keeping what it is given --- */

static void test_keeps(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    guint64 serial = 0;

    g_assert_cmpuint(fixture->me.epoch, ==, 1);
    commit_one(fixture, "c2", 2, put("instance", "web1", "up \xc3\xa4\"\\", 2));
    commit_one(fixture, "c3", 3, put("node", "n1", "changed", 3));
    commit_one(fixture, "c4", 4, drop("node", "n2", 4));
    commit_one(fixture, "c5", 5, drop("node", "never-was", 5));
    for (int i = 0; i < 2; i++) {
        g_clear_pointer(&text, g_free);
        g_assert_true(load(fixture->engine, &text, &serial, &error));
        g_assert_cmpstr(text, ==,
                        "instance web1 2 {\"text\":\"up \xc3\xa4\\\"\\\\\"}\n"
                        "node n1 3 {\"text\":\"changed\"}\n");
        g_assert_cmpuint(serial, ==, 5);
        close_engine(fixture);
        open_engine(fixture, BOOT, JOURNAL);
    }
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "c3"), ==, 3);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "c9"), ==, 0);
}

/* Of the store as the engine has left it. */
static bool log_since(struct fixture *fixture, guint64 since, guint max, GPtrArray *ret_changes)
{
    g_autoptr(GError) error = NULL;

    close_engine(fixture);
    struct sqlite_store *store = sqlite_store_open(fixture->path, &error);
    g_assert_no_error(error);
    bool reaches = sqlite_store_changes(store, since, max, ret_changes);
    sqlite_store_close(store);
    return reaches;
}

static void test_changes(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GPtrArray) all = change_list_new();
    g_autoptr(GPtrArray) few = change_list_new();

    commit_one(fixture, "c2", 2, put("node", "n1", "x", 2));
    commit_one(fixture, "c3", 3, drop("node", "n2", 3));
    g_assert_true(log_since(fixture, 1, 100, all));
    g_assert_cmpuint(all->len, ==, 2);
    const struct change *first = all->pdata[0], *second = all->pdata[1];
    g_assert_cmpuint(first->version, ==, 2);
    g_assert_cmpint(first->op, ==, CHANGE_PUT);
    g_assert_cmpstr(json_string_value(json_object_get(first->object, "text")), ==, "x");
    g_assert_cmpint(second->op, ==, CHANGE_DELETE);
    g_assert_cmpstr(second->key, ==, "n2");
    g_assert_true(log_since(fixture, 0, 3, few));
    g_assert_cmpuint(few->len, ==, 3);
    g_ptr_array_set_size(few, 0);
    g_assert_true(log_since(fixture, 3, 3, few));
    g_assert_cmpuint(few->len, ==, 0);
    /* From the future: another history. */
    g_assert_false(log_since(fixture, 4, 3, few));
}

/* Many commits at once: in order, one serial after another, the barrier behind them. */
static void test_batch(struct fixture *fixture, gconstpointer unused)
{
    enum { COMMITS = 1000 };
    struct outcome *outcomes = g_new0(struct outcome, COMMITS);
    struct barrier before = {0}, after = {0};
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);

    fixture->engine->ops->barrier(fixture->engine, passed, &before);
    for (guint i = 0; i < COMMITS; i++) {
        g_autofree char *id = g_strdup_printf("commit-%u", i);
        GPtrArray *changes = one(put("tag", id, "t", 2 + i));
        g_ptr_array_add(kept, changes);
        commit_as(fixture, id, 1, 2 + i, changes, &outcomes[i]);
    }
    fixture->engine->ops->barrier(fixture->engine, passed, &after);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "commit-999"), ==, 1001);
    world_wait(&after.done);
    g_assert_true(before.done && before.master && after.master);
    for (guint i = 0; i < COMMITS; i++) {
        g_assert_no_error(outcomes[i].error);
        g_assert_cmpint(outcomes[i].result, ==, ENGINE_DONE);
        g_assert_cmpuint(outcomes[i].order, ==, outcomes[0].order + i);
    }
    g_assert_cmpuint(before.order, <, outcomes[0].order);
    g_assert_cmpuint(after.order, >, outcomes[COMMITS - 1].order);
    g_free(outcomes);
}

static void test_refused(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GPtrArray) changes = one(put("node", "n3", "x", 2));
    struct outcome gap = {0}, good = {0}, again = {0}, old = {0};

    commit_as(fixture, "gap", 1, 3, changes, &gap);
    commit_as(fixture, "good", 1, 2, changes, &good);
    commit_as(fixture, "again", 1, 2, changes, &again);
    commit_as(fixture, "old", 7, 3, changes, &old);
    world_wait(&old.done);
    g_assert_cmpint(gap.result, ==, ENGINE_REFUSED);
    assert_error(&gap.error, INTERNAL, "serial 3 does not follow 1");
    g_assert_cmpint(good.result, ==, ENGINE_DONE);
    assert_error(&again.error, INTERNAL, "serial 2 does not follow 2");
    g_assert_cmpint(old.result, ==, ENGINE_REFUSED);
    assert_error(&old.error, NOT_MASTER, "the commit is of epoch 7, the engine of epoch 1");
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "gap"), ==, 0);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "good"), ==, 2);
}

static void test_epoch(struct fixture *fixture, gconstpointer unused)
{
    g_assert_cmpuint(fixture->me.epoch, ==, 1);
    close_engine(fixture);
    open_engine(fixture, BOOT, JOURNAL); /* wconfd restarted */
    g_assert_cmpuint(fixture->me.epoch, ==, 1);
    close_engine(fixture);
    open_engine(fixture, BOOT, "another-journal"); /* its journal was lost */
    g_assert_cmpuint(fixture->me.epoch, ==, 2);
    close_engine(fixture);
    open_engine(fixture, "another-boot", "another-journal"); /* power cut */
    g_assert_cmpuint(fixture->me.epoch, ==, 3);
    close_engine(fixture);
    open_engine(fixture, BOOT, JOURNAL); /* an old one is as new as any other */
    g_assert_cmpuint(fixture->me.epoch, ==, 4);
}

static void test_log_is_cut(struct fixture *fixture, gconstpointer unused)
{
    enum { EACH = 4096, COMMITS = 18 };
    g_autoptr(GPtrArray) rest = change_list_new();
    g_autoptr(GError) error = NULL;
    guint64 serial = 0;

    for (guint i = 0; i < COMMITS; i++) {
        g_autoptr(GPtrArray) changes = change_list_new();
        g_autofree char *id = g_strdup_printf("c%u", i);
        struct outcome outcome = {0};
        for (guint j = 0; j < EACH; j++) {
            g_autofree char *key = g_strdup_printf("k%u", j);
            g_ptr_array_add(changes, put("tag", key, id, 2 + i));
        }
        commit_as(fixture, id, 1, 2 + i, changes, &outcome);
        world_wait(&outcome.done);
        g_assert_no_error(outcome.error);
    }
    g_assert_false(log_since(fixture, 1, 10, rest));
    g_assert_true(log_since(fixture, 1 + COMMITS - 15, G_MAXINT, rest));
    g_assert_cmpuint(rest->len, ==, 15 * EACH);
    open_engine(fixture, BOOT, JOURNAL);
    g_assert_true(load(fixture->engine, NULL, &serial, &error));
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "c0"), ==, 0);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "c17"), ==, 19);
}

/* --- opening what is not right --- */

static void test_missing(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(sqlite_engine_open("/nonexistent/store.db", &error));
    assert_error(&error, UNKNOWN_ENTITY,
                 "no cluster here: there is no /nonexistent/store.db. Make one: fettle cluster "
                 "init; join one: fettle node invite, there; put one back: fettle cluster restore "
                 "FILE");
}

static void test_taken(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GPtrArray) changes = one(put("node", "n1", "x", 1));
    g_autoptr(GError) error = NULL;

    g_assert_null(sqlite_engine_open(fixture->path, &error));
    assert_error(&error, WRONG_STATE, "is in use by another process");
    g_assert_false(sqlite_engine_create(fixture->path, 4, changes, &error));
    assert_error(&error, ALREADY_EXISTS, "it is not overwritten");
}

/* Opens and loads a store file that somebody has harmed; what it holds, NULL with the error. */
static char *try_store(const char *path, GError **error)
{
    struct engine *engine = sqlite_engine_open(path, error);
    char *text = NULL;
    guint64 serial;

    if (engine == NULL)
        return NULL;
    load(engine, &text, &serial, error);
    engine->ops->close(engine);
    return text;
}

static void expect_corrupt(const char *path, const char *bytes, size_t len)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(g_file_set_contents(path, bytes, (gssize)len, NULL));
    g_autofree char *text = try_store(path, &error);
    g_assert_null(text);
    g_assert_nonnull(strstr(error->message, path));
    assert_error(&error, CORRUPT,
                 "The cluster does not start from it. Look at the disk it is on. If another "
                 "candidate has a copy: systemctl stop fettle.target here, then fettle cluster "
                 "master-failover there. If none has: fettle cluster restore FILE, with a backup");
}

static void test_damaged(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *bytes = NULL;
    g_autofree char *whole = NULL;
    g_autoptr(GError) error = NULL;
    gsize len = 0;
    guint found = 0;

    commit_one(fixture, "c2", 2, put("instance", "web1", "up", 2));
    close_engine(fixture);
    g_assert_true(g_file_get_contents(fixture->path, &bytes, &len, NULL));
    whole = try_store(fixture->path, &error);
    g_assert_no_error(error);

    expect_corrupt(fixture->path, "", 0);
    expect_corrupt(fixture->path, "this is no store\n", 17);
    expect_corrupt(fixture->path, bytes, len / 2);
    expect_corrupt(fixture->path, bytes, len - 4096);
    expect_corrupt(fixture->path, bytes, 100);
    /* One bit at a time: either the damage is found or nothing is different. */
    for (gsize at = 0; at < len; at += 7) {
        g_autofree char *flipped = g_memdup2(bytes, len);
        g_autoptr(GError) why = NULL;
        flipped[at] = (char)(flipped[at] ^ (1 << (at % 8)));
        g_assert_true(g_file_set_contents(fixture->path, flipped, (gssize)len, NULL));
        g_autofree char *text = try_store(fixture->path, &why);
        if (text != NULL) {
            g_assert_cmpstr(text, ==, whole);
            continue;
        }
        found++;
        assert_error(&why, CORRUPT, fixture->path);
    }
    g_assert_cmpuint(found, >, 20);
}

static bool reader_keeps(const char *kind)
{
    return true;
}

static void reader_turns(void *data)
{
}

static bool reader_takes(const struct change *change, void *data, GError **error)
{
    return true;
}

static void reader_has(const struct store_position *position, void *data)
{
}

/* rconfd, which may have the last handle of the store. */
static struct store_reader *reader_beside(const char *path)
{
    static const struct store_reader_client client = {.keeps = reader_keeps,
                                                      .begin = reader_turns,
                                                      .change = reader_takes,
                                                      .done = reader_has,
                                                      .gone = reader_turns};
    struct store_reader *reader = store_reader_new(path, &client);
    g_autoptr(GError) ignored = NULL; /* what is not whole it may read or not */
    store_reader_refresh(reader, &ignored);
    return reader;
}

/* A log that is lost or cut takes answered commits with it: noticed, because the lock file knows
 * better. */
static void test_lost_log(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *log = g_strconcat(fixture->path, "-wal", NULL);
    g_autofree char *lock = g_strconcat(fixture->path, ".lock", NULL);
    g_autofree char *bytes = NULL;
    g_autofree char *log_bytes = NULL;
    g_autoptr(GError) error = NULL;
    gsize len, log_len;

    commit_one(fixture, "c2", 2, put("tag", "a", "t", 2));
    commit_one(fixture, "c3", 3, put("tag", "b", "t", 3));
    /* As a killed process leaves it: closing would empty the log. */
    g_assert_true(g_file_get_contents(fixture->path, &bytes, &len, NULL));
    g_assert_true(g_file_get_contents(log, &log_bytes, &log_len, NULL));
    close_engine(fixture);
    const gssize half = (gssize)log_len / 2, most = (gssize)log_len - 1;
    const gssize kept[] = {-1, -1, 0, 0, half, half, most, most};
    for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
        g_assert_true(g_file_set_contents(fixture->path, bytes, (gssize)len, NULL));
        g_unlink(log);
        if (kept[i] >= 0)
            g_assert_true(g_file_set_contents(log, log_bytes, kept[i], NULL));
        enum copy_role role;
        struct store_reader *beside = i % 2 ? reader_beside(fixture->path) : NULL;
        sqlite_copy_role(fixture->path, &role, NULL);
        g_autofree char *text = try_store(fixture->path, &error);
        g_assert_null(text);
        assert_error(&error, CORRUPT, "it ends before what was answered");
        g_clear_pointer(&beside, store_reader_free);
        /* What could still be saved from it is not cut off. */
        g_autofree char *left = NULL;
        gsize left_len = 0;
        if (kept[i] > 0) {
            g_assert_true(g_file_get_contents(log, &left, &left_len, NULL));
            g_assert_cmpuint(left_len, ==, (gsize)kept[i]);
            g_assert_cmpint(memcmp(left, log_bytes, left_len), ==, 0);
        }
    }
    g_assert_true(g_file_set_contents(fixture->path, bytes, (gssize)len, NULL));
    g_assert_true(g_file_set_contents(log, log_bytes, (gssize)log_len, NULL));
    g_autofree char *whole = try_store(fixture->path, &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(whole, "tag b 3"));
    /* A person who puts back an old copy says so by removing the lock file. */
    g_unlink(log);
    g_assert_true(g_file_set_contents(fixture->path, bytes, (gssize)len, NULL));
    g_unlink(lock);
    g_autofree char *old = try_store(fixture->path, &error);
    g_assert_no_error(error);
    g_assert_nonnull(old);
}

/* --- the disk --- */

/* Runs `fn` in a child with a small file system of its own, so that nothing else is touched. */
static int in_child_with_disk(struct fixture *fixture, int (*fn)(struct fixture *fixture))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        if (!world_own_mounts() || mount("tmpfs", fixture->paths->var, "tmpfs", 0, "size=1m") != 0)
            _exit(77);
        _exit(fn(fixture));
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Nothing is wrong with a store for which there is no room to be opened, so it is no copy to be put
 * away. */
static int open_on_full_disk(struct fixture *fixture)
{
    g_autofree char *ballast = g_build_filename(fixture->paths->var, "ballast", NULL);
    g_autofree char *index = g_strconcat(fixture->path, "-shm", NULL);
    g_autofree char *large = g_strnfill(MIB(2), 'x');
    g_autoptr(GError) error = NULL;
    enum copy_role role;

    create(fixture->path);
    g_unlink(index);
    int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && write(fd, large, MIB(2)) > 0)
        continue;
    close(fd);
    bool opened = sqlite_copy_role(fixture->path, &role, &error);
    if (opened || !fettle_error_is(error, STORAGE) ||
        strstr(error->message, "nothing says that the file is damaged") == NULL) {
        g_printerr("%s\n", error ? error->message : "opened");
        return 1;
    }
    g_unlink(ballast);
    g_clear_error(&error);
    return sqlite_copy_role(fixture->path, &role, &error) && role == COPY_ENGINE ? 0 : 2;
}

/* Commits until the disk is full; then frees some and goes on. */
static int fill_disk(struct fixture *fixture)
{
    g_autofree char *ballast = g_build_filename(fixture->paths->var, "ballast", NULL);
    g_autofree char *large = g_strnfill(200000, 'x');
    g_autoptr(GError) error = NULL;
    guint64 serial = 1;
    struct outcome outcome = {0};

    create(fixture->path);
    open_engine(fixture, BOOT, JOURNAL);
    g_assert_true(g_file_set_contents(ballast, large, 200000, NULL));
    for (;;) {
        g_autofree char *id = g_strdup_printf("c%u", (guint)serial);
        g_autoptr(GPtrArray) changes = one(put("tag", id, large, serial + 1));
        outcome = (struct outcome){0};
        commit_as(fixture, id, fixture->me.epoch, serial + 1, changes, &outcome);
        world_wait(&outcome.done);
        if (outcome.result != ENGINE_DONE)
            break;
        serial++;
    }
    if (outcome.result != ENGINE_REFUSED || !fettle_error_is(outcome.error, STORAGE) ||
        strstr(outcome.error->message, "no space left on its disk") == NULL) {
        g_printerr("%d %s\n", outcome.result, outcome.error->message);
        return 1;
    }
    g_unlink(ballast);
    commit_one(fixture, "after", serial + 1, put("tag", "small", "t", serial + 1));
    close_engine(fixture);
    g_autofree char *text = try_store(fixture->path, &error);
    return text != NULL && strstr(text, "small") != NULL ? 0 : 2;
}

static void test_full_disk(struct fixture *fixture, gconstpointer unused)
{
    close_engine(fixture);
    int result = in_child_with_disk(fixture, fill_disk);
    if (result == 0)
        result = in_child_with_disk(fixture, open_on_full_disk);
    if (result == 77)
        g_test_skip("no mount namespace can be made here");
    else
        g_assert_cmpint(result, ==, 0);
}

/* A process killed at each crash point of three commits: what was answered is there, the rest
 * wholly or not at all. */
static int commit_until_killed(struct fixture *fixture, int answers)
{
    open_engine(fixture, BOOT, JOURNAL);
    for (guint64 serial = 2; serial <= 4; serial++) {
        g_autofree char *id = g_strdup_printf("c%u", (guint)serial);
        g_autoptr(GPtrArray) changes = one(put("tag", id, "a", serial));
        g_ptr_array_add(changes, put("node", "n1", id, serial));
        struct outcome outcome = {0};
        commit_as(fixture, id, fixture->me.epoch, serial, changes, &outcome);
        world_wait(&outcome.done);
        if (outcome.result != ENGINE_DONE || write(answers, "x", 1) != 1)
            return 1;
    }
    close_engine(fixture);
    return 0;
}

static void check_after_kill(struct fixture *fixture, guint answered, guint64 *ret_serial)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    struct engine *engine = sqlite_engine_open(fixture->path, &error);

    g_assert_no_error(error);
    load(engine, &text, ret_serial, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(*ret_serial, >=, 1 + answered);
    g_assert_cmpuint(*ret_serial, <=, 2 + answered);
    for (guint64 serial = 2; serial <= 4; serial++) {
        g_autofree char *line = g_strdup_printf("tag c%u %u ", (guint)serial, (guint)serial);
        g_assert_true((strstr(text, line) != NULL) == (serial <= *ret_serial));
    }
    g_autofree char *node = g_strdup_printf("node n1 %u ", (guint)*ret_serial);
    g_assert_nonnull(strstr(text, node));
    engine->ops->close(engine);
}

static void test_killed(struct fixture *fixture, gconstpointer unused)
{
    bool finished = false;

    close_engine(fixture);
    for (guint at = 1; !finished; at++) {
        g_autofree char *text = g_strdup_printf("%u", at);
        int pipe_fds[2], status;
        guint answered = 0;
        guint64 serial;
        char byte;
        g_unlink(fixture->path);
        create(fixture->path);
        g_assert_cmpint(pipe(pipe_fds), ==, 0);
        pid_t child = fork();
        if (child == 0) {
            g_autofree char *fd = g_strdup_printf("%d", pipe_fds[1]);
            g_setenv("FETTLE_CRASH_AT", text, TRUE);
            execl("/proc/self/exe", "test_sqlite", "--child", fixture->path, fd, NULL);
            _exit(9);
        }
        g_assert_cmpint(waitpid(child, &status, 0), ==, child);
        close(pipe_fds[1]);
        while (read(pipe_fds[0], &byte, 1) == 1)
            answered++;
        close(pipe_fds[0]);
        finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        g_assert_true(finished || WIFSIGNALED(status));
        check_after_kill(fixture, answered, &serial);
        g_assert_true(at < 100);
    }
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

/* "--child STORE FD": the process of test_killed() that is killed. */
static int run_child(char **argv)
{
    struct fixture fixture = {.path = argv[2]};

    loop_init();
    return commit_until_killed(&fixture, atoi(argv[3]));
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return run_child(argv);
    g_test_init(&argc, &argv, NULL);
    ADD("/sqlite/keeps#SAF-01,WCF-16", test_keeps);
    ADD("/sqlite/changes", test_changes);
    ADD("/sqlite/batch#SAF-03", test_batch);
    ADD("/sqlite/refused#SAF-04", test_refused);
    ADD("/sqlite/epoch#SAF-01", test_epoch);
    ADD("/sqlite/log-is-cut", test_log_is_cut);
    g_test_add_func("/sqlite/missing", test_missing);
    ADD("/sqlite/taken", test_taken);
    ADD("/sqlite/damaged", test_damaged);
    ADD("/sqlite/lost-log", test_lost_log);
    ADD("/sqlite/full-disk#SAF-08", test_full_disk);
    ADD("/sqlite/killed#WCF-16", test_killed);
    return g_test_run();
}

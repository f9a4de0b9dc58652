/*
 * A candidate's copy in the SQLite store: sqlite_copy.c. That it equals what its master has, stays
 * whole through a death at every crash point, and is made anew where it is damaged.
 */
#include "world.h"

#include "base/limits.h"
#include "io/sqlite/sqlite_backup.h"
#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_engine.h"
#include "proto/change.h"
#include "proto/digest.h"
#include "proto/records.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HISTORY 3

static struct node_paths *paths;
static char *path;

static struct change *put(const char *key, guint64 version)
{
    g_autofree char *text = g_strdup_printf("of %" G_GUINT64_FORMAT, version);

    return change_make(CHANGE_PUT, "tag", key, version, json_make("{s:s}", "text", text));
}

static struct change *drop(const char *key, guint64 version)
{
    return change_make(CHANGE_DELETE, "tag", key, version, NULL);
}

static GPtrArray *list(struct change *first, ...)
{
    GPtrArray *changes = change_list_new();
    va_list more;

    va_start(more, first);
    for (struct change *change = first; change != NULL; change = va_arg(more, struct change *))
        g_ptr_array_add(changes, change);
    va_end(more);
    return changes;
}

/* --- what is done to a copy --- */

static struct copy *open_copy(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = sqlite_copy_open(path, &error);

    g_assert_no_error(error);
    return copy;
}

static void close_copy(struct copy *copy)
{
    copy->ops->close(copy);
}

static bool apply(struct copy *copy, guint64 epoch, guint64 serial, GPtrArray *changes,
                  GError **error)
{
    struct copy_batch batch = {HISTORY, epoch, serial, changes, NULL};
    bool ok = copy->ops->apply(copy, &batch, error);

    g_ptr_array_unref(changes);
    return ok;
}

static bool piece(struct copy *copy, GPtrArray *changes, GError **error)
{
    bool ok = copy->ops->refill_piece(copy, changes, error);

    g_ptr_array_unref(changes);
    return ok;
}

/* As replication.c does: two pieces, of different moments, and what has come since the first. */
static bool refill(struct copy *copy, GError **error)
{
    return copy->ops->refill_begin(copy, error) &&
           piece(copy, list(put("a", 5), put("b", 6), NULL), error) &&
           piece(copy, list(put("c", 7), put("d", 12), NULL), error) &&
           piece(copy, list(put("a", 11), drop("b", 13), put("d", 12), NULL), error) &&
           copy->ops->refill_end(copy, &(struct copy_batch){HISTORY, 2, 13, NULL, NULL}, error);
}

/* --- what it is then --- */

static void add_object(const char *kind, const char *key, guint64 version, json_t *object,
                       void *text)
{
    g_string_append_printf(text, "%s%s@%" G_GUINT64_FORMAT, ((GString *)text)->len ? " " : "", key,
                           version);
}

/* "role history/epoch/serial: key@version …"; and its digest is that of these objects. */
static char *describe(struct copy *copy)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) objects = g_string_new(NULL);
    struct copy_position at;
    guint64 digest = 0;

    copy->ops->position(copy, &at);
    g_assert_true(copy->ops->load(copy, add_object, objects, &error));
    g_assert_no_error(error);
    g_auto(GStrv) parts = g_strsplit(objects->str, " ", -1);
    for (char **part = parts; *part != NULL && **part != '\0'; part++) {
        char *mark = strchr(*part, '@');
        *mark = '\0';
        digest ^= digest_object("tag", *part, g_ascii_strtoull(mark + 1, NULL, 10));
    }
    g_assert_cmphex(digest, ==, at.digest);
    return g_strdup_printf("%d %d/%d/%d: %s", (int)at.role, (int)at.history, (int)at.epoch,
                           (int)at.serial, objects->str);
}

#define assert_copy(copy, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = describe(copy);                                                   \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

#define EMPTY "1 0/0/1: "
#define REFILLED "1 3/2/13: a@11 c@7 d@12"

/* --- tests --- */

static void test_follows(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = open_copy();

    assert_copy(copy, EMPTY);
    g_assert_true(refill(copy, &error));
    assert_copy(copy, REFILLED);
    g_assert_true(apply(copy, 2, 15, list(put("e", 14), put("a", 15), NULL), &error));
    assert_copy(copy, "1 3/2/15: a@15 c@7 d@12 e@14");
    g_assert_true(apply(copy, 2, 16, list(drop("c", 16), drop("nothing", 16), NULL), &error));
    assert_copy(copy, "1 3/2/16: a@15 d@12 e@14");
    /* A later master, and nothing else. */
    g_assert_true(apply(copy, 4, 16, list(NULL), &error));
    assert_copy(copy, "1 3/4/16: a@15 d@12 e@14");

    g_assert_false(apply(copy, 4, 16, list(put("x", 16), NULL), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_INTERNAL);
    g_assert_cmpstr(error->message, ==,
                    "changes up to history 3 serial 16 do not follow history 3 serial 16");
    close_copy(copy);
    copy = open_copy();
    assert_copy(copy, "1 3/4/16: a@15 d@12 e@14");
    close_copy(copy);
}

/* A refill that comes to nothing leaves what was there; the next one begins anew. */
static void test_refill_cut_off(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = open_copy();

    g_assert_true(refill(copy, &error));
    g_assert_true(copy->ops->refill_begin(copy, &error));
    g_assert_true(piece(copy, list(put("z", 20), NULL), &error));
    assert_copy(copy, REFILLED);
    close_copy(copy);
    copy = open_copy();
    assert_copy(copy, REFILLED);
    g_assert_true(apply(copy, 2, 14, list(put("e", 14), NULL), &error));
    g_assert_true(refill(copy, &error));
    assert_copy(copy, REFILLED);
    close_copy(copy);
}

static void ignore_object(const char *kind, const char *key, guint64 version, json_t *object,
                          void *data)
{
}

static guint64 campaign(const char *boot)
{
    g_autoptr(GError) error = NULL;
    struct engine *engine = sqlite_engine_open(path, &error);
    struct mastership me = {.node = NODE_A, .journal_id = "journal"};

    g_assert_no_error(error);
    guint64 history, serial;
    g_assert_true(engine->ops->load(engine, &history, &serial, ignore_object, NULL, &error));
    g_strlcpy(me.boot_id, boot, sizeof me.boot_id);
    g_assert_true(engine->ops->campaign(engine, &me, &error));
    engine->ops->close(engine);
    return me.epoch;
}

/* It becomes the engine with its last change, under an epoch that never falls, and a follower
 * again. */
static void test_roles(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = open_copy();
    enum copy_role role;

    g_assert_true(refill(copy, &error));
    g_assert_true(sqlite_copy_role(path, &role, &error) || fettle_error_is(error, WRONG_STATE));
    g_clear_error(&error);
    g_autoptr(GPtrArray) last = list(put("master", 14), NULL);
    struct copy_batch batch = {HISTORY, 9, 14, last, NULL};
    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, &batch, &error));
    close_copy(copy);
    g_assert_true(sqlite_copy_role(path, &role, &error));
    g_assert_cmpint(role, ==, COPY_ENGINE);
    g_assert_cmpuint(campaign("boot 1"), ==, 10);
    g_assert_cmpuint(campaign("boot 1"), ==, 10);

    g_assert_true(sqlite_copy_put_away(path, 10, &error));
    g_assert_false(sqlite_copy_role(path, &role, &error));
    g_assert_no_error(error);
    g_autofree char *aside = g_strconcat(path, ".epoch-10", NULL);
    g_assert_true(g_file_test(aside, G_FILE_TEST_EXISTS));
    copy = open_copy();
    assert_copy(copy, EMPTY);
    g_assert_true(refill(copy, &error));
    g_assert_true(copy->ops->set_role(copy, COPY_RETIRED, NULL, &error));
    assert_copy(copy, "2 3/2/13: a@11 c@7 d@12");
    g_assert_true(refill(copy, &error));
    assert_copy(copy, REFILLED);
    close_copy(copy);
}

#define ID(number) "00000000-0000-4000-8000-00000000000" #number

/* GPtrArray of struct stored_commit from "ID SERIAL ID SERIAL …". */
static GPtrArray *ids(const char *text)
{
    GPtrArray *commits = g_ptr_array_new_with_free_func((GDestroyNotify)stored_commit_free);
    g_auto(GStrv) parts = g_strsplit(text, " ", -1);

    for (char **part = parts; part[0] != NULL && part[1] != NULL; part += 2) {
        struct stored_commit from = {.id = part[0], .serial = g_ascii_strtoull(part[1], NULL, 10)};
        g_ptr_array_add(commits, stored_commit_copy(&from));
    }
    return commits;
}

static void add_id(const char *id, guint64 serial, void *text)
{
    g_string_append_printf(text, "%c@%" G_GUINT64_FORMAT " ", id[strlen(id) - 1], serial);
}

/* What the store as an engine knows: "last digit of the id@serial " of each. */
static char *known(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 history, serial;
    struct engine *engine = sqlite_engine_open(path, &error);

    g_assert_no_error(error);
    g_assert_true(engine->ops->load(engine, &history, &serial, add_object, text, &error));
    g_string_truncate(text, 0);
    g_assert_true(engine->ops->each_id(engine, add_id, text, &error));
    g_assert_cmpuint(engine->ops->lookup(engine, ID(1)), ==, strstr(text->str, "1@") ? 12 : 0);
    g_assert_cmpuint(engine->ops->lookup(engine, ID(4)), ==, strstr(text->str, "4@") ? 16 : 0);
    g_assert_cmpuint(engine->ops->lookup(engine, "copy-3-14"), ==, 0);
    engine->ops->close(engine);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static bool apply_with(struct copy *copy, guint64 serial, const char *commits, GError **error)
{
    g_autoptr(GPtrArray) changes = list(put("a", serial), NULL);
    g_autoptr(GPtrArray) of = ids(commits);
    struct copy_batch batch = {HISTORY, 2, serial, changes, of};
    return copy->ops->apply(copy, &batch, error);
}

/* Refilled, with two commits more in one batch. */
static struct copy *copy_with_ids(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) before = ids(ID(1) " 12 " ID(2) " 13");
    struct copy *copy = open_copy();

    g_assert_true(refill(copy, &error));
    g_assert_true(
        copy->ops->refill_begin(copy, &error) && piece(copy, list(put("a", 13), NULL), &error) &&
        copy->ops->refill_end(copy, &(struct copy_batch){HISTORY, 2, 13, NULL, before}, &error));
    g_assert_true(apply_with(copy, 15, ID(3) " 14 " ID(9) " 15", &error));
    return copy;
}

/* A commit that its master has stored is known when the copy becomes the engine. */
static void test_ids(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = copy_with_ids();

    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, NULL, &error));
    close_copy(copy);
    g_autofree char *all = known();
    g_assert_cmpstr(all, ==, "1@12 2@13 3@14 9@15 ");

    /* Its own commits as well, once it has been a copy again; a refill has those of its master. */
    struct engine *engine = sqlite_engine_open(path, &error);
    struct mastership me = {.node = NODE_A, .boot_id = "b", .journal_id = "j"};
    guint64 history, serial;
    g_autoptr(GString) unused = g_string_new(NULL);
    g_assert_true(engine->ops->load(engine, &history, &serial, add_object, unused, &error));
    g_assert_true(engine->ops->campaign(engine, &me, &error));
    g_autoptr(GPtrArray) last = list(put("engine", 16), NULL);
    struct engine_commit step = {ID(4), me.epoch, 16, last};
    g_assert_cmpint(engine->ops->leave(engine, &step, NODE_A, &error), ==, ENGINE_DONE);
    engine->ops->close(engine);
    copy = open_copy();
    g_assert_true(apply_with(copy, 18, ID(5) " 17 " ID(6) " 18", &error));
    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, NULL, &error));
    close_copy(copy);
    g_autofree char *both = known();
    g_assert_cmpstr(both, ==, "1@12 2@13 3@14 9@15 4@16 5@17 6@18 ");
    g_assert_true(sqlite_copy_put_away(path, 9, &error));
    copy = open_copy();
    g_assert_true(refill(copy, &error));
    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, NULL, &error));
    close_copy(copy);
    g_autofree char *none = known();
    g_assert_cmpstr(none, ==, "");
}

/* As many as are promised, and hardly more. */
static void test_old_ids(void)
{
    enum { MANY = LIMIT_COMMIT_IDS + LIMIT_IDS_PIECE };
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) nothing = list(NULL, NULL);
    g_autoptr(GPtrArray) commits =
        g_ptr_array_new_with_free_func((GDestroyNotify)stored_commit_free);
    struct copy *copy = copy_with_ids();

    for (guint64 serial = 16; serial < 16 + MANY; serial++) {
        g_autofree char *id = g_strdup_printf("00000000-0000-4000-9000-%011d7", (int)serial);
        struct stored_commit from = {.id = id, .serial = serial};
        g_ptr_array_add(commits, stored_commit_copy(&from));
    }
    struct copy_batch batch = {3, 2, 15 + MANY, nothing, commits};
    g_assert_true(copy->ops->apply(copy, &batch, &error));
    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, NULL, &error));
    close_copy(copy);
    g_autofree char *left = known();
    g_assert_null(strstr(left, "9@15 "));
    g_auto(GStrv) all = g_strsplit(left, " ", -1);
    g_assert_cmpuint(g_strv_length(all) - 1, ==, LIMIT_COMMIT_IDS);
    g_assert_nonnull(strstr(left, "7@69647 "));
}

/* A person's failover leaps: what was stored before it is known all the same. */
static void test_ids_and_leap(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = copy_with_ids();
    guint64 serial = 16 + LIMIT_SERIAL_LEAP;
    g_autoptr(GPtrArray) changes = list(put("x", serial), NULL);
    struct copy_batch last = {3, 4, serial, changes, NULL};

    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, &last, &error));
    close_copy(copy);
    for (guint i = 0; i < 2; i++) {
        g_autofree char *all = known();
        g_assert_cmpstr(all, ==, "1@12 2@13 3@14 9@15 ");
    }
}

/* An empty engine, or one that somebody has open, is not taken for a copy. */
static void test_in_use(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = open_copy();

    g_assert_null(sqlite_copy_open(path, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_clear_error(&error);
    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, NULL, &error));
    close_copy(copy);
    g_assert_null(sqlite_copy_open(path, &error));
    g_autofree char *expected = g_strdup_printf("%s is the engine of a master, not a copy", path);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==, expected);
}

static void sql(const char *text)
{
    sqlite3 *db;

    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, text, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

/* Whatever is wrong with it: it is kept aside, and an empty one takes its place. */
static void test_damaged(void)
{
    static const char *const damages[] = {
        "UPDATE objects SET json='{}' WHERE key='a'",
        "DELETE FROM objects WHERE key='a'",
        "UPDATE objects SET version=12 WHERE key='a'",
        "UPDATE meta SET value='14' WHERE key='serial'",
        "DELETE FROM meta WHERE key='role'",
        "UPDATE meta SET value='7' WHERE key='versions'",
        "DELETE FROM changes WHERE place=1",
    };

    for (guint i = 0; i < G_N_ELEMENTS(damages); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *aside = g_strconcat(path, ".damaged", NULL);
        struct copy *copy = open_copy();
        g_assert_true(refill(copy, &error));
        g_assert_true(apply(copy, 2, 15, list(put("e", 14), put("f", 15), NULL), &error));
        close_copy(copy);
        sql(damages[i]);
        copy = open_copy();
        assert_copy(copy, EMPTY);
        close_copy(copy);
        g_assert_true(g_file_test(aside, G_FILE_TEST_EXISTS));
        g_assert_cmpint(g_unlink(aside), ==, 0);
    }
}

/* Until the end of a pass, or what is found: g_free() it; NULL: nothing. */
static char *scrub(struct copy *copy)
{
    for (guint i = 0; i < 2 * (5 + 2 * LIMIT_CHANGE_LOG / LIMIT_SCRUB_ROWS); i++) {
        g_autoptr(GError) error = NULL;
        if (!copy->ops->scrub(copy, &error)) {
            g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
            return g_strdup(error->message);
        }
    }
    return NULL;
}

/* Every row of every table, in the copy of a process that goes on. */
static void test_rots(void)
{
    static const struct {
        const char *damage, *found;
    } cases[] = {
        {"UPDATE objects SET json='{}' WHERE key='a'", "object tag a does not match its checksum"},
        {"UPDATE objects SET sum=sum+1 WHERE key='f'", "object tag f does not match its checksum"},
        {"DELETE FROM objects WHERE key='a'",
         "an object is missing, or older than what was committed"},
        {"UPDATE objects SET key='aa' WHERE key='a'", "object tag aa does not match its checksum"},
        {"UPDATE meta SET value='14' WHERE key='serial'",
         "its table meta does not match its checksum"},
        {"UPDATE changes SET json='{}' WHERE place=1",
         "a change of serial 16 does not match its checksum"},
        {"UPDATE commits SET count=3 WHERE serial=16",
         "commit copy-3-16 does not match its checksum"},
        {"UPDATE ids SET commit_id='x' WHERE serial=12",
         "the id of the commit of serial 12 does not match its checksum"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *aside = g_strconcat(path, ".damaged", NULL);
        struct copy *copy = copy_with_ids();
        g_assert_true(apply(copy, 2, 16, list(put("e", 16), put("f", 16), NULL), &error));
        g_assert_null(scrub(copy));
        sql(cases[i].damage);
        g_autofree char *found = scrub(copy);
        g_autofree char *expected =
            g_strdup_printf("%s is damaged: %s. It is a copy: look at the disk it is on; wconfd "
                            "puts it away as %s.damaged and makes it anew from the master, when "
                            "there is one",
                            path, cases[i].found, path);
        g_assert_cmpstr(found, ==, expected);
        g_assert_true(copy->ops->renew(copy, &error));
        g_assert_true(g_file_test(aside, G_FILE_TEST_EXISTS));
        assert_copy(copy, EMPTY);
        g_assert_true(refill(copy, &error));
        g_assert_null(scrub(copy));
        assert_copy(copy, REFILLED);
        close_copy(copy);
        copy = open_copy();
        assert_copy(copy, REFILLED);
        close_copy(copy);
        g_assert_cmpint(g_unlink(aside), ==, 0);
        g_assert_cmpint(g_unlink(path), ==, 0);
    }
}

/* A pass that goes on beside changes, before and behind where it is, finds them right; with one
 * object lost in the middle of it, it does not. */
static void test_scrub_beside_changes(void)
{
    enum { OBJECTS = 3 * LIMIT_SCRUB_ROWS };
    g_autoptr(GError) error = NULL;
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    struct copy *copy = open_copy();
    guint64 serial = 20;

    g_assert_true(refill(copy, &error));
    for (guint i = 0; i < 60; i++) {
        GPtrArray *changes = change_list_new();
        for (guint j = 0; j < (i ? 40 : OBJECTS); j++) {
            g_autofree char *key =
                g_strdup_printf("k%05d", i ? g_rand_int_range(random, 0, 2 * OBJECTS) : (int)j);
            bool gone = i && g_rand_boolean(random);
            g_ptr_array_add(changes, gone ? drop(key, serial) : put(key, serial));
        }
        g_assert_true(apply(copy, 2, serial, changes, &error));
        serial++;
        g_assert_true(copy->ops->scrub(copy, &error));
        g_assert_no_error(error);
    }
    g_assert_true(apply(copy, 2, serial, list(put("a", serial), put("zz", serial), NULL), &error));
    sql("DELETE FROM objects WHERE key='zz'");
    g_autofree char *found = scrub(copy);
    g_assert_nonnull(strstr(found, "an object is missing, or older than what was committed"));
    close_copy(copy);
}

/* One bit of the file of a copy that is open: whatever is damaged at the next start is found. What
 * a page cache of this process has would hide it. */
static void test_rots_on_the_disk(void)
{
    g_autoptr(GError) error = NULL;
    struct copy *copy = open_copy();
    char byte;
    g_autofree char *bytes = NULL;
    gsize len;

    g_assert_true(refill(copy, &error));
    close_copy(copy); /* all is in the file */
    copy = open_copy();
    g_assert_null(scrub(copy));
    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    const char *value = memmem(bytes, len, "of 11", 5);
    g_assert_nonnull(value);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    byte = (char)(value[4] ^ 1);
    g_assert_cmpint(pwrite(fd, &byte, 1, value + 4 - bytes), ==, 1);
    /* A close here would drop the locks that SQLite has. */
    g_autofree char *found = scrub(copy);
    g_assert_nonnull(found);
    g_assert_nonnull(strstr(found, "object tag a does not match its checksum"));
    close_copy(copy);
    close(fd);
}

static void try_bytes(const char *bytes, gsize len, guint *found)
{
    g_autofree char *aside = g_strconcat(path, ".damaged", NULL);
    g_assert_true(g_file_set_contents(path, bytes, (gssize)len, NULL));
    struct copy *copy = open_copy();
    bool kept_aside = g_file_test(aside, G_FILE_TEST_EXISTS);
    assert_copy(copy, kept_aside ? EMPTY : REFILLED);
    close_copy(copy);
    g_unlink(aside);
    *found += kept_aside;
}

/* Half of it, or one bit of it another: either nothing is different, or it is not used. */
static void test_torn(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *bytes = NULL;
    gsize len;
    guint found = 0, tried = 0;
    struct copy *copy = open_copy();

    g_assert_true(refill(copy, &error));
    close_copy(copy);
    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    try_bytes(bytes, 0, &found);
    try_bytes(bytes, 100, &found);
    try_bytes(bytes, len / 2, &found);
    try_bytes(bytes, len - 4096, &found);
    g_assert_cmpuint(found, ==, 4);
    for (gsize at = 0; at < len; at += 29) {
        g_autofree char *flipped = g_memdup2(bytes, len);
        flipped[at] = (char)(flipped[at] ^ (1 << (at % 8)));
        try_bytes(flipped, len, &found);
        tried++;
    }
    g_assert_cmpuint(found, >, 20);
    g_assert_cmpuint(found, <, tried);
}

/* --- deaths --- */

/* "--child STORE FD": everything from a refill to a change of role. What it was told is done it
 * says through the pipe. */
static int run_child(char **argv)
{
    path = argv[2];
    int say = atoi(argv[3]);
    struct copy *copy = sqlite_copy_open(path, NULL);
    g_autoptr(GPtrArray) last = list(put("master", 15), NULL);
    struct copy_batch batch = {HISTORY, 9, 15, last, NULL};
    bool ok = copy != NULL && refill(copy, NULL) && write(say, "r", 1) == 1 &&
              apply(copy, 2, 14, list(put("e", 14), NULL), NULL) && write(say, "a", 1) == 1 &&
              copy->ops->set_role(copy, COPY_ENGINE, &batch, NULL) && write(say, "m", 1) == 1;

    if (copy != NULL)
        close_copy(copy);
    return ok ? 0 : 1;
}

/* "--step-down STORE FD": the store of a master becomes a copy. */
static int run_step_down(char **argv)
{
    path = argv[2];
    return sqlite_copy_step_down(path, 7, NULL) && write(atoi(argv[3]), "d", 1) == 1 ? 0 : 1;
}

/* Does that, and dies at its n-th crash point; false if there is none. `said` gets what was done
 * before. */
static bool die_at(const char *what, guint n, char *said, size_t len)
{
    int ends[2];
    int status = 0;
    g_autofree char *number = g_strdup_printf("%u", n);

    memset(said, 0, len);
    g_assert_cmpint(pipe(ends), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        g_autofree char *fd = g_strdup_printf("%d", ends[1]);
        g_setenv("FETTLE_CRASH_AT", number, TRUE);
        execl("/proc/self/exe", "test_sqlite_copy", what, path, fd, NULL);
        _exit(9);
    }
    close(ends[1]);
    size_t got = 0;
    ssize_t more;
    while (got < len - 1 && (more = read(ends[0], said + got, len - 1 - got)) > 0)
        got += (size_t)more;
    close(ends[0]);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void clean(void)
{
    static const char *const endings[] = {"",     "-wal",     "-shm",    ".lock",
                                          ".new", ".new-wal", ".new-shm"};

    for (guint i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *name = g_strconcat(path, endings[i], NULL);
        g_unlink(name);
    }
}

/* After it: what was said to be done is there, and nothing is half done. */
static void check_after(guint n, const char *said)
{
    static const char *const states[] = {EMPTY, REFILLED, "1 3/2/14: a@11 c@7 d@12 e@14"};
    enum copy_role role = COPY_FOLLOWS;
    g_autoptr(GError) error = NULL;
    bool there = sqlite_copy_role(path, &role, &error);

    g_assert_no_error(error);
    if (there && role == COPY_ENGINE) {
        g_assert_true(g_str_has_prefix(said, "ra"));
        g_assert_cmpuint(campaign("boot 1"), ==, 10);
        return;
    }
    struct copy *copy = open_copy();
    g_autofree char *text = describe(copy);
    size_t done = strlen(said);
    if (done > 2 ||
        (strcmp(text, states[done]) != 0 && (done == 2 || strcmp(text, states[done + 1]) != 0)))
        g_error("after a death at point %u, which had said \"%s\": %s", n, said, text);
    g_assert_true(refill(copy, &error));
    assert_copy(copy, REFILLED);
    close_copy(copy);
}

static void test_deaths(void)
{
    char said[8];
    guint n = 1;

    while (die_at("--child", n, said, sizeof said)) {
        check_after(n, said);
        clean();
        n++;
    }
    g_assert_cmpstr(said, ==, "ram");
    g_assert_cmpuint(n, >, 15);
}

/* The engine of a master, with what that has committed. */
static void make_engine(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) last = list(put("master", 15), NULL);
    struct copy_batch batch = {HISTORY, 9, 15, last, NULL};
    struct copy *copy = open_copy();
    g_assert_true(refill(copy, &error));
    g_assert_true(apply(copy, 2, 14, list(put("e", 14), NULL), &error));
    g_assert_true(copy->ops->set_role(copy, COPY_ENGINE, &batch, &error));
    close_copy(copy);
}

/* Of a store that has all. */
static enum copy_role role_of(const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *looked = g_strdup_printf("%s.looked", name);
    struct store_summary summary;
    sqlite_store_copy(name, looked, &summary, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(summary.history, ==, HISTORY);
    g_assert_cmpuint(summary.serial, ==, 15);
    g_unlink(looked);
    return summary.role;
}

/* A master that was replaced and dies at any moment of stepping down has its engine, or has a copy
 * with all that it had and the engine beside it; and the next start does the rest. */
static void test_step_down_deaths(void)
{
    char said[8];
    guint n = 1, engines = 0, copies = 0;
    g_autofree char *aside = g_strconcat(path, ".epoch-7", NULL);

    for (bool died = true; died; n++) {
        g_autoptr(GError) error = NULL;
        make_engine();
        died = die_at("--step-down", n, said, sizeof said);
        bool engine = role_of(path) == COPY_ENGINE;
        *(engine ? &engines : &copies) += 1;
        if (engine)
            g_assert_true(*said == '\0' && sqlite_copy_step_down(path, 7, &error));
        g_assert_no_error(error);
        g_assert_true(role_of(aside) == COPY_ENGINE);
        struct copy *copy = open_copy();
        assert_copy(copy, "1 3/9/15: a@11 c@7 d@12 e@14 master@15");
        close_copy(copy);
        clean();
        g_unlink(aside);
    }
    g_assert_cmpstr(said, ==, "d");
    g_assert_cmpuint(engines, >, 1);
    g_assert_cmpuint(copies, >, 1);
}

static void run(const void *test)
{
    void (*const *fn)(void) = test;

    loop_init();
    paths = world_new(NODE_A);
    path = g_build_filename(paths->var, "store.db", NULL);
    (*fn)();
    g_free(path);
    world_remove(paths);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *title;
        void (*test)(void);
    } tests[] = {
        {"/sqlite-copy/follows#SAF-07,WCF-04", test_follows},
        {"/sqlite-copy/refill-cut-off#SAF-07", test_refill_cut_off},
        {"/sqlite-copy/roles#SAF-01,SAF-07", test_roles},
        {"/sqlite-copy/ids#SAF-04", test_ids},
        {"/sqlite-copy/old-ids#SAF-04", test_old_ids},
        {"/sqlite-copy/ids-and-leap#SAF-04,RCF-05", test_ids_and_leap},
        {"/sqlite-copy/in-use", test_in_use},
        {"/sqlite-copy/damaged#SAF-07", test_damaged},
        {"/sqlite-copy/torn#SAF-07", test_torn},
        {"/sqlite-copy/rots#SAF-07", test_rots},
        {"/sqlite-copy/rots-on-the-disk#SAF-07", test_rots_on_the_disk},
        {"/sqlite-copy/scrub-beside-changes#SAF-07", test_scrub_beside_changes},
        {"/sqlite-copy/deaths#SAF-07,WCF-05", test_deaths},
        {"/sqlite-copy/step-down-deaths#SAF-07,SAF-102", test_step_down_deaths},
    };
    if (argc == 4 && g_str_has_prefix(argv[1], "--")) {
        loop_init();
        return strcmp(argv[1], "--child") == 0 ? run_child(argv) : run_step_down(argv);
    }
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add_data_func(tests[i].title, &tests[i].test, run);
    return g_test_run();
}

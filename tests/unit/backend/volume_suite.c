/* Tests of any volume driver; see volume_suite.h. */
#include "unit/backend/volume_suite.h"

#include <string.h>

#include "base/task.h"

#define VOLUME "11111111-0000-4000-8000-000000000001"
#define NAME VOLUME ".17"
#define SNAPSHOT "22222222-0000-4000-8000-000000000002.18"
#define SHORT "22222222-0000-4000-8000-000000000002.20"
#define GIB (G_GUINT64_CONSTANT(1) << 30)

static struct volume_suite *suite;
static void (*body)(void);

#define ops (suite->driver->ops)
#define DO(call)                                                                                   \
    do {                                                                                           \
        g_autoptr(GError) do_error = NULL;                                                         \
        bool do_ok = (call);                                                                       \
        g_assert_no_error(do_error);                                                               \
        g_assert_true(do_ok);                                                                      \
    } while (0)
#define FAILS(call, CODE)                                                                          \
    do {                                                                                           \
        g_autoptr(GError) do_error = NULL;                                                         \
        g_assert_false(call);                                                                      \
        g_assert_error(do_error, FETTLE_ERROR, FETTLE_ERROR_##CODE);                               \
        g_assert_true(names_one(do_error->message));                                               \
    } while (0)

static bool begins_with(const char *text, const struct backend *backend)
{
    return g_str_has_prefix(text, backend->name) && text[strlen(backend->name)] == ':';
}

static bool names_one(const char *text)
{
    return begins_with(text, suite->first) || begins_with(text, suite->second) ||
           begins_with(text, suite->backups);
}

static void open_both(void)
{
    DO(ops->open(suite->driver, suite->first, suite->cluster, true, &do_error));
    DO(ops->open(suite->driver, suite->second, suite->cluster, true, &do_error));
    DO(ops->open(suite->driver, suite->backups, suite->cluster, true, &do_error));
}

static bool create(const char *name, guint64 gib, GError **error)
{
    return ops->create(suite->driver, suite->first, RESOURCE_VOLUME, name, gib, error);
}

static void assert_has(enum resource_type type, const char *name, guint64 bytes, bool whole)
{
    g_autoptr(GError) error = NULL;
    struct volume_data *data = ops->look(suite->driver, suite->first, type, name, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(data->name, ==, name);
    g_assert_cmpuint(data->bytes, ==, bytes);
    g_assert_cmpint(data->whole, ==, whole);
    g_assert_cmpint(data->type, ==, type);
    volume_data_free(data);
}

static void assert_is(const char *name, guint64 bytes, bool whole)
{
    assert_has(RESOURCE_VOLUME, name, bytes, whole);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void assert_list(const struct backend *backend, const char *names)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list = ops->list(suite->driver, backend, &error);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_assert_no_error(error);
    for (guint i = 0; i < list->len; i++)
        g_ptr_array_add(found, ((struct volume_data *)list->pdata[i])->name);
    g_ptr_array_sort(found, by_name);
    g_ptr_array_add(found, NULL);
    g_autofree char *text = g_strjoinv(" ", (char **)found->pdata);
    g_assert_cmpstr(text, ==, names);
}

static void test_markers(void)
{
    FAILS(ops->open(suite->driver, suite->first, suite->cluster, false, &do_error), ENVIRONMENT);
    FAILS(create(NAME, 1, &do_error), ENVIRONMENT);
    open_both();
    DO(ops->open(suite->driver, suite->first, suite->cluster, false, &do_error));
    record_autoptr(cluster) other = cluster_copy(suite->cluster);
    g_free(other->uuid);
    other->uuid = g_strdup("99999999-0000-4000-8000-000000000009");
    FAILS(ops->open(suite->driver, suite->first, other, true, &do_error), UNSAFE);
    DO(ops->open(suite->driver, suite->first, suite->cluster, true, &do_error));
}

static void test_creates(void)
{
    guint64 room = 0, total = 0;
    open_both();
    assert_list(suite->first, "");
    DO(create(NAME, 2, &do_error));
    assert_is(NAME, 2 * GIB, true);
    FAILS(create(NAME, 1, &do_error), ALREADY_EXISTS);
    assert_is(NAME, 2 * GIB, true);
    assert_list(suite->first, NAME);
    assert_list(suite->second, "");
    DO(ops->space(suite->driver, suite->first, &room, &total, &do_error));
    g_assert_cmpuint(total, >, 0);
    g_assert_cmpuint(total, >=, room);
}

static gint by_text(gconstpointer left, gconstpointer right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* "NAME BYTES whole open; …", in the order of names. */
static void assert_finds(enum resource_type type, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list = ops->find(suite->driver, suite->first, type, VOLUME, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < list->len; i++) {
        const struct volume_data *data = list->pdata[i];
        g_assert_cmpint(data->type, ==, type);
        g_ptr_array_add(words,
                        g_strdup_printf("%s %" G_GUINT64_FORMAT "%s%s", data->name, data->bytes,
                                        data->whole ? " whole" : "", data->open ? " open" : ""));
    }
    g_ptr_array_sort(words, by_text);
    g_ptr_array_add(words, NULL);
    g_autofree char *said = g_strjoinv("; ", (char **)words->pdata);
    g_assert_cmpstr(said, ==, expected);
}

static bool copy(const char *source, enum resource_type type, const char *name, guint64 gib,
                 GError **error)
{
    enum resource_type of = type == RESOURCE_VOLUME ? RESOURCE_SNAPSHOT : RESOURCE_VOLUME;
    return ops->copy(suite->driver, suite->first, of, source, suite->first, type, name, gib, error);
}

/* Of a kind of its own, though it had the same name; and nothing of that name is made twice. */
static void test_copies(void)
{
    open_both();
    FAILS(copy(NAME, RESOURCE_SNAPSHOT, SNAPSHOT, 2, &do_error), UNKNOWN_ENTITY);
    assert_list(suite->first, "");
    DO(create(NAME, 2, &do_error));
    if (!suite->clones) {
        suite->lock(suite->first, NAME, true); /* somebody may write to it (SAF-120) */
        FAILS(copy(NAME, RESOURCE_SNAPSHOT, SNAPSHOT, 2, &do_error), WRONG_STATE);
        suite->lock(suite->first, NAME, false);
    }
    DO(copy(NAME, RESOURCE_SNAPSHOT, SNAPSHOT, 2, &do_error));
    FAILS(copy(NAME, RESOURCE_SNAPSHOT, SNAPSHOT, 2, &do_error), ALREADY_EXISTS);
    FAILS(copy(SNAPSHOT, RESOURCE_SNAPSHOT, VOLUME ".18", 2, &do_error), UNKNOWN_ENTITY);
    assert_has(RESOURCE_SNAPSHOT, SNAPSHOT, 2 * GIB, true);
    assert_list(suite->first, NAME " " SNAPSHOT);
    FAILS(ops->look(suite->driver, suite->first, RESOURCE_VOLUME, SNAPSHOT, &do_error),
          UNKNOWN_ENTITY);
    DO(copy(SNAPSHOT, RESOURCE_VOLUME, VOLUME ".19", 3, &do_error));
    assert_is(VOLUME ".19", 3 * GIB, true);
    DO(copy(NAME, RESOURCE_SNAPSHOT, SHORT, 1, &do_error));
    assert_has(RESOURCE_SNAPSHOT, SHORT, GIB, true);
    DO(ops->remove(suite->driver, suite->first, RESOURCE_SNAPSHOT, SHORT, &do_error));
    DO(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, SNAPSHOT, &do_error));
    assert_has(RESOURCE_SNAPSHOT, SNAPSHOT, 2 * GIB, true);
    if (suite->clones) {
        FAILS(ops->remove(suite->driver, suite->first, RESOURCE_SNAPSHOT, SNAPSHOT, &do_error),
              WRONG_STATE);
        assert_is(VOLUME ".19", 3 * GIB, true);
        DO(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, VOLUME ".19", &do_error));
    }
    DO(ops->remove(suite->driver, suite->first, RESOURCE_SNAPSHOT, SNAPSHOT, &do_error));
    assert_list(suite->first, suite->clones ? NAME : NAME " " VOLUME ".19");
}

static bool copy_to(const struct backend *from, const char *source, const struct backend *to,
                    const char *name, GError **error)
{
    return ops->copy(suite->driver, from, RESOURCE_VOLUME, source, to, RESOURCE_VOLUME, name, 2,
                     error);
}

/* Both are what they are said to be, and what is open is not read. */
static void test_copies_between(void)
{
    static const char *const other = VOLUME ".18";
    DO(ops->open(suite->driver, suite->first, suite->cluster, true, &do_error));
    DO(create(NAME, 2, &do_error));
    FAILS(copy_to(suite->first, NAME, suite->second, other, &do_error), ENVIRONMENT);
    FAILS(copy_to(suite->second, other, suite->first, VOLUME ".19", &do_error), ENVIRONMENT);
    open_both();
    if (!suite->clones) {
        suite->lock(suite->first, NAME, true);
        FAILS(copy_to(suite->first, NAME, suite->second, other, &do_error), WRONG_STATE);
        suite->lock(suite->first, NAME, false);
    }
    assert_list(suite->second, "");
    DO(copy_to(suite->first, NAME, suite->second, other, &do_error));
    FAILS(copy_to(suite->first, NAME, suite->second, other, &do_error), ALREADY_EXISTS);
    FAILS(copy_to(suite->first, other, suite->second, VOLUME ".19", &do_error), UNKNOWN_ENTITY);
    assert_list(suite->first, NAME);
    assert_list(suite->second, other);
    DO(copy_to(suite->second, other, suite->first, VOLUME ".19", &do_error));
    assert_is(VOLUME ".19", 2 * GIB, true);
}

#define BACKUP "33333333-0000-4000-8000-000000000003.19"

static bool back_up(const char *source, struct backup *backup, GError **error)
{
    g_clear_pointer(&backup->sum, g_free);
    return ops->back_up(suite->driver, suite->first, RESOURCE_VOLUME, source, suite->backups,
                        BACKUP, 1, &backup->bytes, &backup->sum, error);
}

/* From one back end to another and back; what is open is not read, and what is not what was written
 * makes nothing. */
static void test_backs_up(void)
{
    g_autofree char *data = g_strdup(BACKUP);
    struct backup backup = {.data = data};
    open_both();
    FAILS(back_up(NAME, &backup, &do_error), UNKNOWN_ENTITY);
    DO(create(NAME, 1, &do_error));
    if (!suite->clones) {
        suite->lock(suite->first, NAME, true);
        FAILS(back_up(NAME, &backup, &do_error), WRONG_STATE);
        suite->lock(suite->first, NAME, false);
    }
    assert_list(suite->backups, "");
    DO(back_up(NAME, &backup, &do_error));
    g_assert_cmpuint(strlen(backup.sum), ==, 128);
    g_assert_cmpuint(backup.bytes, >, 0);
    assert_list(suite->backups, BACKUP);
    FAILS(back_up(NAME, &backup, &do_error), ALREADY_EXISTS);
    g_free(backup.sum);
    DO(ops->remove(suite->driver, suite->backups, RESOURCE_BACKUP, BACKUP, &do_error));
    DO(back_up(NAME, &backup, &do_error));
    DO(ops->restore(suite->driver, suite->backups, &backup, suite->first, VOLUME ".20", 2,
                    &do_error));
    assert_is(VOLUME ".20", 2 * GIB, true);
    backup.sum[0] = backup.sum[0] == '0' ? '1' : '0';
    FAILS(ops->restore(suite->driver, suite->backups, &backup, suite->first, VOLUME ".21", 1,
                       &do_error),
          CORRUPT);
    assert_list(suite->first, NAME " " VOLUME ".20");
    g_free(backup.sum);
}

#define IMAGE "44444444-0000-4000-8000-000000000004.19"

static bool upload(const char *source, struct image_sums *sums, GError **error)
{
    return ops->upload(suite->driver, suite->first, source, suite->backups, IMAGE, FORMAT_QCOW2, 1,
                       sums, error);
}

/* As backups; and what came otherwise is known by the same sums once nobody writes to it. */
static void test_images(void)
{
    struct image_sums sums, again;
    const struct image image = {.data = (char *)IMAGE, .disk_format = FORMAT_QCOW2};
    open_both();
    FAILS(upload(NAME, &sums, &do_error), UNKNOWN_ENTITY);
    FAILS(ops->measure(suite->driver, suite->backups, IMAGE, FORMAT_QCOW2, &(struct image_sums){0},
                       &sums, &do_error),
          UNKNOWN_ENTITY);
    DO(create(NAME, 1, &do_error));
    if (!suite->clones) {
        suite->lock(suite->first, NAME, true);
        FAILS(upload(NAME, &sums, &do_error), WRONG_STATE);
        suite->lock(suite->first, NAME, false);
    }
    assert_list(suite->backups, "");
    DO(upload(NAME, &sums, &do_error));
    g_assert_cmpuint(strlen(sums.os_hash_value), ==, 128);
    g_assert_cmpuint(strlen(sums.checksum), ==, 32);
    g_assert_cmpuint(sums.virtual_size, ==, GIB);
    assert_list(suite->backups, IMAGE);
    FAILS(upload(NAME, &sums, &do_error), ALREADY_EXISTS);
    DO(ops->measure(suite->driver, suite->backups, IMAGE, FORMAT_QCOW2, &(struct image_sums){0},
                    &again, &do_error));
    g_assert_cmpuint(again.size, ==, sums.size);
    g_assert_cmpstr(again.os_hash_value, ==, sums.os_hash_value);
    g_assert_cmpstr(again.checksum, ==, sums.checksum);
    DO(ops->download(suite->driver, suite->backups, &image, suite->first, VOLUME ".20", 2,
                     &do_error));
    assert_is(VOLUME ".20", 2 * GIB, true);
    FAILS(ops->download(suite->driver, suite->backups, &image, suite->first, VOLUME ".20", 2,
                        &do_error),
          ALREADY_EXISTS);
    DO(ops->remove(suite->driver, suite->backups, RESOURCE_IMAGE, IMAGE, &do_error));
    FAILS(ops->download(suite->driver, suite->backups, &image, suite->first, VOLUME ".21", 2,
                        &do_error),
          UNKNOWN_ENTITY);
    assert_list(suite->first, NAME " " VOLUME ".20");
}

static void test_grows(void)
{
    open_both();
    FAILS(ops->grow(suite->driver, suite->first, NAME, 1, &do_error), UNKNOWN_ENTITY);
    DO(create(NAME, 1, &do_error));
    DO(ops->grow(suite->driver, suite->first, NAME, 3, &do_error));
    assert_is(NAME, 3 * GIB, true);
    DO(ops->grow(suite->driver, suite->first, NAME, 2, &do_error));
    DO(ops->grow(suite->driver, suite->first, NAME, 3, &do_error));
    assert_is(NAME, 3 * GIB, true);
}

static bool prepare(enum resource_type type, GError **error)
{
    return ops->prepare(suite->driver, suite->first, type, NAME, 2, error);
}

static bool settle(enum resource_type type, GError **error)
{
    return ops->settle(suite->driver, suite->first, type, NAME, 2, error);
}

/* What others fill in is whole once they have; a volume's copy of one moment never is. */
static void test_filled_by_others(void)
{
    for (guint type = RESOURCE_VOLUME; type <= RESOURCE_SNAPSHOT; type++) {
        open_both();
        FAILS(settle(type, &do_error), UNKNOWN_ENTITY);
        DO(prepare(type, &do_error));
        assert_has(type, NAME, 2 * GIB, false);
        FAILS(prepare(type, &do_error), ALREADY_EXISTS);
        DO(settle(type, &do_error));
        assert_has(type, NAME, 2 * GIB, type == RESOURCE_SNAPSHOT);
        DO(ops->remove(suite->driver, suite->first, type, NAME, &do_error));
    }
}

static void test_removes(void)
{
    open_both();
    DO(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, NAME, &do_error));
    DO(create(NAME, 1, &do_error));
    suite->lock(suite->first, NAME, true);
    FAILS(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, NAME, &do_error), WRONG_STATE);
    assert_is(NAME, GIB, true);
    suite->lock(suite->first, NAME, false);
    DO(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, NAME, &do_error));
    DO(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, NAME, &do_error));
    FAILS(ops->look(suite->driver, suite->first, RESOURCE_VOLUME, NAME, &do_error), UNKNOWN_ENTITY);
}

static void test_halves_and_others(void)
{
    open_both();
    DO(create(VOLUME ".9", 1, &do_error));
    suite->put(suite->first, NAME);
    suite->put(suite->first, "notes.txt");
    suite->put(suite->first, VOLUME);
    suite->put(suite->first, VOLUME ".0");
    suite->put(suite->first, VOLUME ".1x");
    suite->put(suite->first, "11111111-0000-4000-8000-00000000000G.5");
    assert_is(NAME, 1, false);
    assert_list(suite->first, NAME " " VOLUME ".9");
    FAILS(create(NAME, 1, &do_error), ALREADY_EXISTS);
}

/* RCV-17: what there is of one resource, under whatever claim, and who has it open. */
static void test_finds(void)
{
    open_both();
    DO(create(VOLUME ".9", 1, &do_error));
    DO(create(NAME, 2, &do_error));
    suite->put(suite->first, VOLUME ".11");
    suite->put(suite->first, VOLUME);
    suite->put(suite->first, "11111111-0000-4000-8000-000000000009.9");
    suite->lock(suite->first, NAME, true);
    assert_finds(RESOURCE_VOLUME,
                 VOLUME ".11 1; " NAME " 2147483648 whole open; " VOLUME ".9 1073741824 whole");
    suite->lock(suite->first, NAME, false);
    assert_finds(RESOURCE_SNAPSHOT, "");
    DO(ops->remove(suite->driver, suite->first, RESOURCE_VOLUME, NAME, &do_error));
    assert_finds(RESOURCE_VOLUME, VOLUME ".11 1; " VOLUME ".9 1073741824 whole");
}

static void list_task(void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list = ops->list(suite->driver, suite->first, &error);
    g_assert_null(list);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    struct promise *promise = data;
    promise_complete(promise);
}

/* More calls than may be under way at once: each ends, and the other back end does not notice. */
static void test_hangs(void)
{
    struct promise over[LIMIT_BACKEND_CHILDREN + 2] = {0};
    open_both();
    suite->hang(suite->first, true);
    for (guint i = 0; i < G_N_ELEMENTS(over); i++)
        task_spawn(NULL, list_task, &over[i]);
    assert_list(suite->second, "");
    g_assert_false(over[0].done);
    for (guint i = 0; i < G_N_ELEMENTS(over); i++)
        g_assert_true(promise_wait(&over[i]));
    suite->hang(suite->first, false);
    assert_list(suite->first, "");
    g_assert_cmpuint(ops->hanging(suite->driver, suite->first), ==, 0);
}

static void run_body(void *data)
{
    body();
}

static void run_test(const void *data)
{
    memcpy(&body, data, sizeof body);
    suite->set_up();
    suite->run(run_body, NULL);
    suite->tear_down();
}

static void (*const tests[])(void) = {test_markers,        test_creates,  test_copies,
                                      test_copies_between, test_backs_up, test_images,
                                      test_grows,          test_removes,  test_halves_and_others,
                                      test_finds,          test_hangs,    test_filled_by_others};
static const char *const names[] = {
    "markers#SAF-123",   "creates#SAF-52", "copies#SAF-52", "copies-between#SAF-123",
    "backs-up#SAF-52",   "images#SAF-60",  "grows#SAF-53",  "removes#SAF-53",
    "halves-and-others", "finds#RCV-17",   "hangs",         "filled-by-others#SAF-59"};

void volume_suite_add(const char *path, struct volume_suite *tested)
{
    suite = tested;
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_autofree char *name = g_strdup_printf("%s/%s", path, names[i]);
        g_test_add_data_func(name, &tests[i], run_test);
    }
}

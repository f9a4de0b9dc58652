/*
 * io/sqlite/store_reader.c beside a writing store: what is new arrives once and in order, a store
 * that was replaced or does not go on where the reader was arrives anew, damage changes nothing,
 * and the reader never writes. Also io/net/udp.c and io/net/confd_client.c, with servers of made-up
 * candidates.
 */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "io/loop.h"
#include "io/net/confd_client.h"
#include "io/net/udp.h"
#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_store.h"
#include "io/sqlite/store_reader.h"

/* --- a store, and who follows it --- */

struct world {
    char *folder, *path;
    struct sqlite_store *store;
    struct store_reader *reader;
    GHashTable *objects; /* key -> JSON text, of tags */
    GHashTable *fresh;
    guint anew, gone;
    struct store_position position;
};

static bool keeps(const char *kind)
{
    return strcmp(kind, "tag") == 0;
}

static void begin(void *data)
{
    struct world *world = data;
    g_clear_pointer(&world->fresh, g_hash_table_unref);
    world->fresh = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    world->anew++;
}

static bool change(const struct change *change, void *data, GError **error)
{
    struct world *world = data;
    GHashTable *table = world->fresh ? world->fresh : world->objects;
    g_assert_cmpstr(change->kind, ==, "tag");
    if (change->op == CHANGE_PUT)
        g_hash_table_insert(table, g_strdup(change->key), json_to_text(change->object));
    else
        g_hash_table_remove(table, change->key);
    return true;
}

static void done(const struct store_position *position, void *data)
{
    struct world *world = data;
    world->position = *position;
    if (!world->fresh)
        return;
    g_clear_pointer(&world->objects, g_hash_table_unref);
    world->objects = g_steal_pointer(&world->fresh);
}

static void gone(void *data)
{
    struct world *world = data;
    world->gone++;
    g_clear_pointer(&world->objects, g_hash_table_unref);
}

static GPtrArray *rows_of(enum change_op op, const char *kind, const char *key, const char *json)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func((GDestroyNotify)store_row_free);
    struct store_row *row = g_new0(struct store_row, 1);
    *row = (struct store_row){op, g_strdup(kind), g_strdup(key), g_strdup(json)};
    g_ptr_array_add(rows, row);
    return rows;
}

static void create(struct world *world, guint64 history, const char *key)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) rows = rows_of(CHANGE_PUT, "tag", key, "{\"n\":0}");
    sqlite_store_create(world->path, COPY_ENGINE, history, rows, &error);
    g_assert_no_error(error);
    world->store = sqlite_store_open(world->path, &error);
    g_assert_no_error(error);
    g_assert_true(sqlite_store_load(world->store, NULL, NULL, &error));
}

static void commit(struct world *world, enum change_op op, const char *kind, const char *key,
                   const char *json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) rows = rows_of(op, kind, key, json);
    g_autofree char *id = g_uuid_string_random();
    bool refused, unknown;
    g_assert_true(sqlite_store_begin(world->store, &error));
    g_assert_true(sqlite_store_add(world->store, id, 0, sqlite_store_serial(world->store) + 1, rows,
                                   &refused, &error));
    g_assert_true(sqlite_store_finish(world->store, &unknown, &error));
}

static void refresh(struct world *world)
{
    g_autoptr(GError) error = NULL;
    store_reader_refresh(world->reader, &error);
    g_assert_no_error(error);
}

static void world_init(struct world *world, gconstpointer data)
{
    const struct store_reader_client client = {keeps, begin, change, done, gone, world};
    world->folder = g_dir_make_tmp("reader-XXXXXX", NULL);
    world->path = g_build_filename(world->folder, "store.db", NULL);
    world->reader = store_reader_new(world->path, &client);
}

static void close_store(struct world *world)
{
    sqlite_store_close(g_steal_pointer(&world->store));
}

static void world_clear(struct world *world, gconstpointer data)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", world->folder);
    store_reader_free(world->reader);
    close_store(world);
    g_clear_pointer(&world->objects, g_hash_table_unref);
    g_clear_pointer(&world->fresh, g_hash_table_unref);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(world->folder);
    g_free(world->path);
}

static const char *value_of(const struct world *world, const char *key)
{
    return world->objects ? g_hash_table_lookup(world->objects, key) : NULL;
}

static void test_follows(struct world *world, gconstpointer data)
{
    refresh(world); /* there is none yet: that is no error */
    g_assert_cmpuint(world->anew + world->gone, ==, 0);
    create(world, 4, "a");
    refresh(world);
    g_assert_cmpuint(world->anew, ==, 1);
    g_assert_cmpuint(world->position.history, ==, 4);
    g_assert_cmpuint(world->position.serial, ==, 1);
    for (guint i = 0; i < 50; i++) {
        g_autofree char *json = g_strdup_printf("{\"n\":%u}", i);
        commit(world, CHANGE_PUT, "tag", "b", json);
        commit(world, CHANGE_PUT, "job", "17", "{\"id\":17}");
        if (i % 7 != 0)
            continue;
        refresh(world);
        g_assert_cmpstr(value_of(world, "b"), ==, json);
        g_assert_cmpuint(world->position.serial, ==, sqlite_store_serial(world->store));
    }
    commit(world, CHANGE_DELETE, "tag", "a", NULL);
    refresh(world);
    g_assert_null(value_of(world, "a"));
    g_assert_cmpuint(world->anew, ==, 1);
}

/* What was committed stays to be had when the writer has ended, and for a reader that begins then.
 */
static void test_writer_ends(struct world *world, gconstpointer data)
{
    struct stat log;
    create(world, 1, "a");
    refresh(world);
    commit(world, CHANGE_PUT, "tag", "b", "{\"n\":1}");
    close_store(world);
    /* All of it is in the one file, though the reader is still there. */
    g_autofree char *wal = g_strconcat(world->path, "-wal", NULL);
    g_assert_true(stat(wal, &log) != 0 || log.st_size == 0);
    refresh(world);
    g_assert_cmpstr(value_of(world, "b"), ==, "{\"n\":1}");
    const struct store_reader_client client = {keeps, begin, change, done, gone, world};
    store_reader_free(world->reader);
    world->reader = store_reader_new(world->path, &client);
    refresh(world);
    g_assert_cmpuint(world->anew, ==, 2);
    g_assert_cmpstr(value_of(world, "b"), ==, "{\"n\":1}");
}

static void test_replaced(struct world *world, gconstpointer data)
{
    create(world, 1, "a");
    commit(world, CHANGE_PUT, "tag", "b", "{\"n\":1}");
    refresh(world);
    close_store(world);
    g_assert_cmpint(g_unlink(world->path), ==, 0);
    refresh(world);
    g_assert_cmpuint(world->gone, ==, 1);
    g_assert_null(world->objects);
    create(world, 2, "c");
    refresh(world);
    g_assert_cmpuint(world->anew, ==, 2);
    g_assert_cmpuint(world->position.history, ==, 2);
    g_assert_nonnull(value_of(world, "c"));
    g_assert_null(value_of(world, "b"));
}

static void run_sql(const struct world *world, const char *sql)
{
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(world->path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

/* The log has another commit where the reader was: it is another store, whatever its serial. */
static void test_other_past(struct world *world, gconstpointer data)
{
    create(world, 1, "a");
    commit(world, CHANGE_PUT, "tag", "b", "{\"n\":1}");
    refresh(world);
    g_assert_cmpuint(world->anew, ==, 1);
    run_sql(world, "UPDATE commits SET commit_id='other' WHERE serial=2");
    commit(world, CHANGE_PUT, "tag", "b", "{\"n\":2}");
    refresh(world);
    g_assert_cmpuint(world->anew, ==, 2);
    g_assert_cmpstr(value_of(world, "b"), ==, "{\"n\":2}");
}

static void test_idle_commit(struct world *world, gconstpointer data)
{
    create(world, 1, "a");
    refresh(world);
    g_assert_cmpint(world->position.role, ==, COPY_ENGINE);
    run_sql(world, "UPDATE objects SET version=version"); /* a commit that changes nothing */
    refresh(world);
    g_assert_cmpuint(world->anew, ==, 1);
}

/* A store says what it is and of what moment; also that of a node that is no candidate any more. */
static void test_says_what_it_is(struct world *world, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) nothing = g_ptr_array_new();
    sqlite_store_create(world->path, COPY_FOLLOWS, 0, nothing, &error);
    g_assert_no_error(error);
    refresh(world);
    g_assert_cmpint(world->position.role, ==, COPY_FOLLOWS);
    g_assert_cmpuint(world->position.history, ==, 0);
    struct copy *copy = sqlite_copy_open(world->path, &error);
    g_assert_no_error(error);
    const struct copy_batch filled = {5, 7, 3, NULL, nothing};
    g_assert_true(copy->ops->refill_begin(copy, &error));
    g_assert_true(copy->ops->refill_end(copy, &filled, &error));
    refresh(world);
    g_assert_cmpint(world->position.role, ==, COPY_FOLLOWS);
    g_assert_cmpuint(world->position.history, ==, 5);
    g_assert_cmpuint(world->position.epoch, ==, 7);
    g_assert_cmpuint(world->position.serial, ==, 3);
    g_assert_true(copy->ops->set_role(copy, COPY_RETIRED, NULL, &error));
    refresh(world);
    g_assert_cmpint(world->position.role, ==, COPY_RETIRED);
    g_assert_true(copy->ops->set_role(copy, COPY_FOLLOWS, NULL, &error));
    refresh(world);
    g_assert_cmpint(world->position.role, ==, COPY_FOLLOWS);
    copy->ops->close(copy);
}

/* Damage is told, and what the reader had stays. */
static void test_damaged(struct world *world, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    create(world, 1, "a");
    refresh(world);
    commit(world, CHANGE_PUT, "tag", "b", "{\"n\":1}");
    run_sql(world, "UPDATE changes SET json='{\"n\":9}' WHERE serial=2;"
                   "UPDATE objects SET json='{\"n\":9}' WHERE key='b'");
    g_assert_false(store_reader_refresh(world->reader, &error));
    g_assert_true(fettle_error_is(error, CORRUPT));
    g_autofree char *message =
        g_strdup_printf("%s is damaged: object tag b does not match its checksum", world->path);
    g_assert_cmpstr(error->message, ==, message);
    g_assert_nonnull(value_of(world, "a"));
    g_assert_null(value_of(world, "b"));
    g_assert_cmpuint(world->position.serial, ==, 1);
    refresh(world); /* not read again before it changes */
    commit(world, CHANGE_PUT, "tag", "b", "{\"n\":2}");
    refresh(world);
    g_assert_cmpstr(value_of(world, "b"), ==, "{\"n\":2}");
}

static void test_foreign(struct world *world, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(
        g_file_set_contents(world->path, "no database, but long enough to be one", -1, NULL));
    g_assert_false(store_reader_refresh(world->reader, &error));
    g_assert_true(fettle_error_is(error, CORRUPT));
    g_assert_cmpuint(world->anew, ==, 0);
}

/* --- datagrams --- */

#define KEY "00112233445566778899aabbccddeeff"

/* A candidate: answers with its serial, or nothing; signed with `key`. */
struct candidate {
    guint64 serial;
    const char *key;
    guint silent; /* so many questions are not answered */
    guint port;
    char from[64]; /* who asked last */
};

static char *candidate_answer(const char *from, const char *data, size_t len, size_t *ret_len,
                              void *user)
{
    struct candidate *candidate = user;
    g_strlcpy(candidate->from, from, sizeof candidate->from);
    g_autoptr(confd_key_t) right = confd_key_new(KEY, strlen(KEY));
    g_autoptr(confd_key_t) own = confd_key_new(candidate->key, strlen(candidate->key));
    enum confd_fault fault;
    g_autoptr(confd_request_t) request =
        confd_request_open(right, loop_wall_us() / G_USEC_PER_SEC, data, len, &fault);
    if (!request || candidate->silent-- > 0)
        return NULL;
    candidate->silent = 0;
    const struct confd_reply reply = {CONFD_OK, json_string("node1"), candidate->serial};
    char *datagram = confd_reply_seal(own, &reply, request->rsalt, ret_len);
    json_decref(reply.answer);
    return datagram;
}

struct asked {
    const char *candidates;
    guint timeout_ms;
    GPtrArray *list, *heard;
    bool done;
    const char *from; /* NULL: any address */
};

static gpointer ask_thread(gpointer data)
{
    struct asked *asked = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(confd_key_t) key = confd_key_new(KEY, strlen(KEY));
    asked->list = confd_candidates_parse(asked->candidates, &error);
    g_assert_no_error(error);
    asked->heard = confd_ask_from(asked->from, asked->list, key, CONFD_TYPE_cluster_master, NULL,
                                  asked->timeout_ms);
    asked->done = true;
    g_main_context_wakeup(NULL);
    return NULL;
}

/* Asks servers of the candidates, which run in this thread. */
static void ask_from(const char *from, struct candidate *candidates, guint count,
                     const char *address, guint timeout_ms, struct asked *ret_asked)
{
    struct udp_server *servers[8];
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < count; i++) {
        const struct udp_options options = {address, 0, LIMIT_CONFD_REQUEST_BYTES, candidate_answer,
                                            &candidates[i]};
        servers[i] = udp_server_new(&options, &error);
        g_assert_no_error(error);
        candidates[i].port = udp_server_port(servers[i]);
        g_string_append_printf(names, "%s[%s]:%u", i > 0 ? "," : "", address, candidates[i].port);
    }
    *ret_asked = (struct asked){.candidates = names->str, .timeout_ms = timeout_ms, .from = from};
    GThread *thread = g_thread_new("ask", ask_thread, ret_asked);
    g_assert_true(loop_run_until(&ret_asked->done, 300000));
    g_thread_join(thread);
    for (guint i = 0; i < count; i++)
        udp_server_free(servers[i]);
}

static void ask(struct candidate *candidates, guint count, const char *address, guint timeout_ms,
                struct asked *ret_asked)
{
    ask_from(NULL, candidates, count, address, timeout_ms, ret_asked);
}

static void asked_clear(struct asked *asked)
{
    g_ptr_array_unref(asked->heard);
    g_ptr_array_unref(asked->list);
}

/* Whoever comes first, and even if it has to be asked again: the newest counts. */
static void test_newest(void)
{
    for (guint late = 0; late < 3; late++) {
        struct candidate candidates[] = {{6, KEY, 0, 0}, {7, KEY, 0, 0}, {6, KEY, 0, 0}};
        struct asked asked;
        candidates[late].silent = 1;
        ask(candidates, 3, late == 2 ? "::1" : "127.0.0.1", 60000, &asked);
        const struct confd_heard *newest = confd_newest(asked.heard);
        g_assert_nonnull(newest);
        g_assert_cmpuint(newest->reply.serial, ==, 7);
        g_assert_cmpuint(newest->from->port, ==, candidates[1].port);
        g_autofree char *silent = confd_silent_text(asked.heard);
        g_assert_cmpstr(silent, ==, "");
        asked_clear(&asked);
    }
}

static void test_few(void)
{
    struct candidate candidates[] = {{6, KEY, 1000, 0}, {5, KEY, 0, 0}, {9, "another key", 0, 0}};
    struct asked asked;
    ask(candidates, 3, "127.0.0.1", 5000, &asked);
    g_assert_cmpuint(confd_newest(asked.heard)->reply.serial, ==, 5);
    g_autofree char *silent = confd_silent_text(asked.heard);
    g_assert_cmpstr(silent, ==,
                    "127.0.0.1: no answer; 127.0.0.1: an answer that cannot be trusted (hmac)");
    asked_clear(&asked);
    /* The servers are gone: the host says so at once. */
    g_autofree char *place = g_strdup_printf("127.0.0.1:%u", candidates[0].port);
    asked = (struct asked){.candidates = place, .timeout_ms = 10000};
    ask_thread(&asked);
    g_assert_null(confd_newest(asked.heard));
    g_autofree char *nobody = confd_silent_text(asked.heard);
    g_assert_cmpstr(nobody, ==, "127.0.0.1: nobody answers ConfD there");
    asked_clear(&asked);
}

/* A node's own key is believed from its own address. */
static void test_from(void)
{
    struct candidate one = {6, KEY, 0, 0};
    struct asked asked;
    ask_from("127.0.0.9", &one, 1, "127.0.0.1", 60000, &asked);
    g_assert_nonnull(confd_newest(asked.heard));
    g_assert_cmpstr(one.from, ==, "127.0.0.9");
    asked_clear(&asked);
    ask_from("127.0.0.9", &one, 1, "::1", 60000, &asked); /* which cannot reach that one */
    g_assert_nonnull(confd_newest(asked.heard));
    g_assert_cmpstr(one.from, ==, "::1");
    asked_clear(&asked);
    ask_from("192.0.2.77", &one, 1, "127.0.0.1", 60000, &asked); /* no address of this host */
    g_autofree char *silent = confd_silent_text(asked.heard);
    g_assert_true(g_str_has_suffix(silent, "Cannot assign requested address"));
    asked_clear(&asked);
}

static void expect_places(const char *text, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list = confd_candidates_parse(text, &error);
    g_autoptr(GString) found = g_string_new(error ? error->message : NULL);
    for (guint i = 0; list && i < list->len; i++) {
        const struct confd_candidate *candidate = list->pdata[i];
        g_string_append_printf(found, "%s %u;", candidate->address, candidate->port);
    }
    g_assert_cmpstr(found->str, ==, expected);
}

static void test_places(void)
{
    expect_places("10.0.0.1", "10.0.0.1 1814;");
    expect_places("10.0.0.1:99,fd00::1,[fd00::2]:7,[fd00::3]",
                  "10.0.0.1 99;fd00::1 1814;fd00::2 7;fd00::3 1814;");
    expect_places("", "--candidates: is empty");
    expect_places("node1", "--candidates: \"node1\" is no IP address, or address and port");
    expect_places("10.0.0.1:0",
                  "--candidates: \"10.0.0.1:0\" is no IP address, or address and port");
    expect_places("10.0.0.1:65536",
                  "--candidates: \"10.0.0.1:65536\" is no IP address, or address and port");
    expect_places("10.0.0.1,,", "--candidates: \"\" is no IP address, or address and port");
    expect_places("[fd00::1", "--candidates: \"[fd00::1\" is no IP address, or address and port");
}

static void test_taken(void)
{
    g_autoptr(GError) error = NULL;
    struct candidate candidate = {1, KEY, 0, 0};
    struct udp_options options = {"127.0.0.1", 0, 100, candidate_answer, &candidate};
    struct udp_server *server = udp_server_new(&options, &error);
    g_assert_no_error(error);
    options.port = udp_server_port(server);
    g_assert_null(udp_server_new(&options, &error));
    g_autofree char *message = g_strdup_printf(
        "cannot take datagrams at 127.0.0.1 port %u: Address already in use", options.port);
    g_assert_cmpstr(error->message, ==, message);
    g_clear_error(&error);
    options.address = "node1";
    g_assert_null(udp_server_new(&options, &error));
    g_assert_cmpstr(error->message, ==, "\"node1\" is no IP address");
    udp_server_free(server);
}

#define ADD(path, test) g_test_add(path, struct world, NULL, world_init, test, world_clear)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    ADD("/reader/follows#RCF-03", test_follows);
    ADD("/reader/writer-ends#RCF-03", test_writer_ends);
    ADD("/reader/replaced", test_replaced);
    ADD("/reader/other-past", test_other_past);
    ADD("/reader/idle-commit", test_idle_commit);
    ADD("/reader/says-what-it-is#RCF-01", test_says_what_it_is);
    ADD("/reader/damaged", test_damaged);
    ADD("/reader/foreign", test_foreign);
    g_test_add_func("/confd-client/newest#RCF-05", test_newest);
    g_test_add_func("/confd-client/few#RCF-04", test_few);
    g_test_add_func("/confd-client/from#MON-04", test_from);
    g_test_add_func("/confd-client/places", test_places);
    g_test_add_func("/udp/taken", test_taken);
    return g_test_run();
}

/* Who may ask REST: the file, those on record, passwords, addresses. core/rapi/rapi_users*.c. */
#include <string.h>

#include "core/rapi/rapi_users.h"
#include "core/rapi/rapi_users_file.h"
#include "helper/fake_env.h"

#define NODE1 "11111111-0000-4000-8000-000000000001"
#define HA1_OF_BOB "5e5d6d1a2e9d9aa2a4e7c7bd4d9b3d0e" /* of nobody's password */

/* --- the file --- */

static void note(const char *line, void *data)
{
    g_string_append_printf(data, "%s\n", line);
}

static void test_file(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    g_autoptr(GHashTable) users = rapi_users_file_parse("# of this node\n\n"
                                                        "alice  secret\twrite\r\n"
                                                        "broken\n"
                                                        "  bob {CLEARTEXT}two read\n"
                                                        "carol {ha1}" HA1_OF_BOB " read,write\n"
                                                        "dave {CRYPT}$y$j9T$abc$def\n"
                                                        "x {HA1}12\n"
                                                        "y {SHA}abc\n"
                                                        "z {CRYPT}plain\n"
                                                        "a:b c\n"
                                                        "e\x1b f\n"
                                                        "\xff g\n"
                                                        "w {CLEARTEXT}\n"
                                                        "bob again write",
                                                        note, said);
    g_assert_cmpstr(
        said->str, ==,
        "rapi/users: line 4: two fields are needed, a name and a password\n"
        "rapi/users: line 8: behind {HA1} stand 32 hexadecimal digits\n"
        "rapi/users: line 9: a password stands in clear, or behind {CLEARTEXT}, {HA1} or {CRYPT}\n"
        "rapi/users: line 10: behind {CRYPT} stands a password as crypt(3) keeps one, as $y$…\n"
        "rapi/users: line 11: a name has at most 64 characters, none of them \":\" or a control "
        "character\n"
        "rapi/users: line 12: a name has at most 64 characters, none of them \":\" or a control "
        "character\n"
        "rapi/users: line 13: it is no UTF-8\n"
        "rapi/users: line 14: the password is empty\n");
    const struct {
        const char *name;
        enum rapi_scheme scheme;
        const char *kept;
        bool write;
    } good[] = {{"alice", RAPI_CLEARTEXT, "secret", true},
                {"bob", RAPI_CLEARTEXT, "again", true},
                {"carol", RAPI_HA1, HA1_OF_BOB, true},
                {"dave", RAPI_CRYPT, "$y$j9T$abc$def", false}};
    g_assert_cmpuint(g_hash_table_size(users), ==, G_N_ELEMENTS(good));
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        const struct rapi_listed *listed = g_hash_table_lookup(users, good[i].name);
        g_assert_nonnull(listed);
        g_assert_cmpint(listed->scheme, ==, good[i].scheme);
        g_assert_cmpstr(listed->kept, ==, good[i].kept);
        g_assert_cmpint(listed->write, ==, good[i].write);
    }
}

/* --- requests --- */

struct fixture {
    struct rapi_luxid luxid; /* first */
    struct crypto crypto;
    struct fake_world *world;
    struct env *env;
    struct rapi_users *users;
    json_t *record;  /* what luxid answers; NULL: `failure` */
    GError *failure; /* of luxid */
    guint asked, hashed;
    guint answer_ms; /* until luxid answers */
    guint hash_ms;   /* until a password is checked */
};

static struct fixture *the; /* crypto's functions know no other way */

static json_t *call(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                    const char *user, guint timeout_ms, GError **error)
{
    json_autoptr owned = args;
    g_assert_cmpint(face, ==, FACE_OWN);
    g_assert_cmpstr(method, ==, "QueryRapiUsers");
    g_assert_cmpuint(json_array_size(owned), ==, 0);
    the->asked++;
    if (!env_sleep(the->env, the->answer_ms)) {
        fettle_set_error(error, KILLED, "the calling process ends");
        return NULL;
    }
    if (!the->record)
        g_propagate_error(error, g_error_copy(the->failure));
    return json_incref(the->record);
}

/* A hash is "$y$" and the password; it takes its time, as the real one does. */
static bool password_is(struct crypto *crypto, const char *kept, const char *password, bool *ret_is,
                        GError **error)
{
    the->hashed++;
    *ret_is = g_str_has_prefix(kept, "$y$") && strcmp(kept + 3, password) == 0;
    return env_sleep(the->env, the->hash_ms);
}

static void random_bytes(struct crypto *crypto, void *ret_bytes, size_t len)
{
    memset(ret_bytes, 7, len);
}

static const struct crypto_ops ops = {.password_is = password_is, .random = random_bytes};

static void set_up(struct fixture *f, gconstpointer unused)
{
    the = f;
    f->luxid.call = call;
    f->answer_ms = 5;
    f->hash_ms = 20;
    f->crypto.ops = &ops;
    f->world = fake_world_new();
    f->env = fake_process(f->world, NODE1, ROLE_RAPID);
    f->users = rapi_users_new(f->env, &f->luxid, &f->crypto);
    f->record =
        json_make("{sb s[{ss ss sb}{ss ss sb}]}", "anonymous_reads", 0, "users", "name", "alice",
                  "hash", "$y$one", "write", 1, "name", "bob", "hash", "$y$two", "write", 0);
    fake_file_put(f->world, NODE1, FILE_RAPI, "users", "carol three write\n");
}

static void tear_down(struct fixture *f, gconstpointer unused)
{
    rapi_users_free(f->users);
    fake_kill(f->env);
    fake_world_free(f->world);
    json_decref(f->record);
    g_clear_error(&f->failure);
}

struct asking {
    const char *who; /* "alice:one"; NULL: nobody */
    const char *header;
    const char *peer;
    enum rapi_access access;
    char *name;
    GError *error;
    bool done;
};

static void ask_task(void *data)
{
    struct asking *asking = data;
    g_autoptr(GHashTable) headers = g_hash_table_new(g_str_hash, g_str_equal);
    g_autofree char *coded =
        asking->who ? g_base64_encode((const guchar *)asking->who, strlen(asking->who)) : NULL;
    g_autofree char *header =
        asking->header ? g_strdup(asking->header) : g_strconcat("Basic ", coded, NULL);
    if (coded || asking->header)
        g_hash_table_insert(headers, (char *)"authorization", header);
    const struct http_request request = {.headers = headers, .peer = (char *)asking->peer};
    asking->access = rapi_users_check(the->users, &request, &asking->name, &asking->error);
    g_assert_cmpint(asking->error != NULL, ==, asking->access == RAPI_FAILED);
    g_assert_cmpint(asking->name != NULL, ==, asking->access >= RAPI_READ);
    asking->done = true;
}

static void assert_access(const char *who, const char *peer, enum rapi_access access,
                          const char *name)
{
    struct asking asking = {.who = who, .peer = peer};
    fake_run(the->env, ask_task, &asking);
    g_assert_no_error(asking.error);
    g_assert_cmpint(asking.access, ==, access);
    g_assert_cmpstr(asking.name, ==, name);
    g_free(asking.name);
}

#define PEER "192.0.2.7:41234"

static void test_access(struct fixture *f, gconstpointer unused)
{
    assert_access("alice:one", PEER, RAPI_WRITE, "alice");
    assert_access("bob:two", PEER, RAPI_READ, "bob");
    assert_access("carol:three", PEER, RAPI_WRITE, "carol");
    assert_access("alice:two", PEER, RAPI_UNKNOWN, NULL);
    assert_access("alice:", PEER, RAPI_UNKNOWN, NULL);
    assert_access("carol:one", PEER, RAPI_UNKNOWN, NULL);
    assert_access("nobody:one", PEER, RAPI_UNKNOWN, NULL);
    assert_access(NULL, PEER, RAPI_UNKNOWN, NULL);
    json_object_set_new(f->record, "anonymous_reads", json_true());
    fake_advance(f->world, 1100);
    assert_access(NULL, PEER, RAPI_READ, "");
    assert_access("bob:wrong", PEER, RAPI_UNKNOWN, NULL); /* who says a name has to be that one */
}

static void test_headers(struct fixture *f, gconstpointer unused)
{
    const char *const bad[] = {"Bearer abc", "Basic", "Basic !!!", "Basic YWxpY2U=" /* "alice" */,
                               "Basic YWxpY2U6b25lAA==" /* with a NUL */};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct asking asking = {.header = bad[i], .peer = PEER};
        fake_run(f->env, ask_task, &asking);
        g_assert_cmpint(asking.access, ==, RAPI_UNKNOWN);
    }
    struct asking small = {.header = "basic YWxpY2U6b25l", .peer = PEER};
    fake_run(f->env, ask_task, &small);
    g_assert_cmpint(small.access, ==, RAPI_WRITE);
    g_free(small.name);
}

/* The digest of Ganeti's own tool: MD5 of "bob:Ganeti Remote API:secret". */
static void test_ha1(struct fixture *f, gconstpointer unused)
{
    g_autofree char *sum =
        g_compute_checksum_for_string(G_CHECKSUM_MD5, "bob:Ganeti Remote API:secret", -1);
    g_autofree char *upper = g_ascii_strup(sum, -1);
    g_autofree char *line = g_strdup_printf("bob {HA1}%s\n", upper);
    fake_file_put(f->world, NODE1, FILE_RAPI, "users", line);
    assert_access("bob:secret", PEER, RAPI_READ, "bob");
    assert_access("bob:two", PEER, RAPI_UNKNOWN, NULL); /* the file goes before the record */
}

/* Whoever is changed or removed is so within a second, also with a password that was right. */
static void test_changes(struct fixture *f, gconstpointer unused)
{
    assert_access("alice:one", PEER, RAPI_WRITE, "alice");
    guint hashed = f->hashed;
    for (guint i = 0; i < 20; i++)
        assert_access("alice:one", PEER, RAPI_WRITE, "alice");
    g_assert_cmpuint(f->hashed, ==, hashed); /* computed once */
    json_t *alice = json_array_get(json_object_get(f->record, "users"), 0);
    json_object_set_new(alice, "hash", json_string("$y$new"));
    fake_advance(f->world, 1100);
    assert_access("alice:one", PEER, RAPI_UNKNOWN, NULL);
    assert_access("alice:new", PEER, RAPI_WRITE, "alice");
    json_array_remove(json_object_get(f->record, "users"), 0);
    fake_file_put(f->world, NODE1, FILE_RAPI, "users", "dave four\n");
    fake_advance(f->world, 1100);
    assert_access("alice:new", PEER, RAPI_UNKNOWN, NULL);
    assert_access("carol:three", PEER, RAPI_UNKNOWN, NULL);
    assert_access("dave:four", PEER, RAPI_READ, "dave");
}

/* Ten wrong ones of an address; others are not asked to wait, and a right one is not counted. */
static void test_barred(struct fixture *f, gconstpointer unused)
{
    for (guint i = 0; i < RAPI_FAILURES; i++) {
        g_autofree char *peer = g_strdup_printf("192.0.2.7:%u", 1000 + i);
        assert_access("alice:one", peer, RAPI_WRITE, "alice");
        assert_access("alice:wrong", peer, RAPI_UNKNOWN, NULL);
    }
    assert_access("alice:wrong", "192.0.2.7:5", RAPI_BARRED, NULL);
    assert_access("alice:one", "192.0.2.7:5", RAPI_BARRED, NULL);
    assert_access("alice:one", "[::ffff:192.0.2.7]:5", RAPI_BARRED, NULL);
    assert_access("alice:one", "[::ffff:192.0.2.8]:5", RAPI_WRITE, "alice");
    assert_access("alice:one", "192.0.2.8:5", RAPI_WRITE, "alice");
    fake_advance(f->world, RAPI_FAILURES_MS);
    assert_access("alice:one", "192.0.2.7:5", RAPI_WRITE, "alice");
}

/* Whoever has one address of IPv6 mostly has 2^64 of them. */
static void test_barred_network(struct fixture *f, gconstpointer unused)
{
    for (guint i = 0; i < RAPI_FAILURES; i++) {
        g_autofree char *peer = g_strdup_printf("[2001:db8:0:7:%x::1]:1000", i);
        assert_access("alice:wrong", peer, RAPI_UNKNOWN, NULL);
    }
    assert_access("alice:one", "[2001:db8:0:7::99]:5", RAPI_BARRED, NULL);
    assert_access("alice:one", "[2001:db8:0:8::99]:5", RAPI_WRITE, "alice");
    assert_access("alice:wrong", "[fe80::1%eth0]:5", RAPI_UNKNOWN, NULL);
    fake_advance(f->world, RAPI_FAILURES_MS);
    assert_access("alice:one", "[2001:db8:0:7::99]:5", RAPI_WRITE, "alice");
}

/* More addresses than are remembered keep nobody out: the oldest one is forgotten. */
static void test_many_addresses(struct fixture *f, gconstpointer unused)
{
    const guint many = LIMIT_RAPI_ADDRESSES;
    f->hash_ms = 1;
    for (guint i = 0; i < RAPI_FAILURES; i++)
        assert_access("alice:wrong", "10.0.0.0:5", RAPI_UNKNOWN, NULL);
    for (guint i = 1; i < many; i++) {
        g_autofree char *peer = g_strdup_printf("10.0.%u.%u:5", i / 256, i % 256);
        for (guint tries = i == many - 1 ? RAPI_FAILURES : 1; tries; tries--)
            assert_access("alice:wrong", peer, RAPI_UNKNOWN, NULL);
    }
    assert_access("alice:one", "10.0.0.0:5", RAPI_BARRED, NULL);
    assert_access("alice:one", PEER, RAPI_WRITE, "alice");
    assert_access("alice:wrong", PEER, RAPI_UNKNOWN, NULL);
    assert_access("alice:one", "10.0.0.0:5", RAPI_WRITE, "alice"); /* forgotten */
    assert_access("alice:one", "10.0.15.255:5", RAPI_BARRED, NULL);
}

/* Of those that wait for their answer none is forgotten, however many they are. */
static void test_many_waiting(struct fixture *f, gconstpointer unused)
{
    const guint many = LIMIT_RAPI_ADDRESSES + 10;
    g_autofree struct asking *waiting = g_new0(struct asking, many);
    g_autoptr(GPtrArray) peers = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < many; i++) {
        g_ptr_array_add(peers, g_strdup_printf("10.0.%u.%u:5", i / 256, i % 256));
        waiting[i] = (struct asking){.who = "alice:wrong", .peer = peers->pdata[i]};
        task_spawn(f->env->tasks, ask_task, &waiting[i]);
    }
    fake_settle(f->world);
    fake_advance(f->world, 10000);
    for (guint i = 0; i < many; i++)
        g_assert_true(waiting[i].done && waiting[i].access == RAPI_UNKNOWN);
}

/* Many at once do not try more than one after the other would. */
static void test_crowd(struct fixture *f, gconstpointer unused)
{
    struct asking crowd[64];
    guint unknown = 0, barred = 0;
    for (guint i = 0; i < G_N_ELEMENTS(crowd); i++) {
        crowd[i] = (struct asking){.who = "alice:wrong", .peer = PEER};
        task_spawn(f->env->tasks, ask_task, &crowd[i]);
    }
    fake_settle(f->world);
    fake_advance(f->world, 10000);
    for (guint i = 0; i < G_N_ELEMENTS(crowd); i++) {
        g_assert_true(crowd[i].done);
        unknown += crowd[i].access == RAPI_UNKNOWN;
        barred += crowd[i].access == RAPI_BARRED;
    }
    g_assert_cmpuint(unknown, ==, RAPI_FAILURES);
    g_assert_cmpuint(unknown + barred, ==, G_N_ELEMENTS(crowd));
    g_assert_cmpuint(f->hashed, ==, RAPI_FAILURES);
    g_assert_cmpuint(f->asked, ==, 1); /* of luxid too */
}

/* Users of the file are known without luxid; of others the reason is told. */
static void test_without_luxid(struct fixture *f, gconstpointer unused)
{
    g_clear_pointer(&f->record, json_decref);
    fettle_set_error(&f->failure, UNREACHABLE, "luxid does not answer");
    assert_access("carol:three", PEER, RAPI_WRITE, "carol");
    const char *const who[] = {"alice:one", NULL};
    for (size_t i = 0; i < G_N_ELEMENTS(who); i++) {
        struct asking asking = {.who = who[i], .peer = PEER};
        fake_run(f->env, ask_task, &asking);
        g_assert_cmpint(asking.access, ==, RAPI_FAILED);
        g_assert_error(asking.error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
        g_assert_cmpstr(asking.error->message, ==, "luxid does not answer");
        g_clear_error(&asking.error);
    }
}

static void start(struct fixture *f, struct asking *asking, const char *who, guint ms)
{
    *asking = (struct asking){.who = who, .peer = PEER};
    task_spawn(f->env->tasks, ask_task, asking);
    fake_settle(f->world);
    fake_advance(f->world, ms);
}

/* A luxid that stands still is asked once, and all who wait hear of it when that is over; whoever
 * is in the file does not wait. */
static void test_silent_luxid(struct fixture *f, gconstpointer unused)
{
    struct asking waiting[4], of_file;
    g_clear_pointer(&f->record, json_decref);
    fettle_set_error(&f->failure, TIMEOUT, "luxid: QueryRapiUsers: no answer within 60000 ms");
    f->answer_ms = LIMIT_RAPI_CALL_MS;
    start(f, &waiting[0], "alice:one", LIMIT_RAPI_CALL_MS / 6);
    start(f, &waiting[1], "bob:two", LIMIT_RAPI_CALL_MS / 6);
    start(f, &waiting[2], NULL, LIMIT_RAPI_CALL_MS / 6);
    start(f, &of_file, "carol:three", 0);
    g_assert_true(of_file.done);
    g_assert_cmpint(of_file.access, ==, RAPI_WRITE);
    g_free(of_file.name);
    start(f, &waiting[3], "nobody:one", LIMIT_RAPI_CALL_MS / 2 - 1);
    for (size_t i = 0; i < G_N_ELEMENTS(waiting); i++)
        g_assert_false(waiting[i].done);
    fake_advance(f->world, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(waiting); i++) {
        g_assert_true(waiting[i].done);
        g_assert_cmpint(waiting[i].access, ==, RAPI_FAILED);
        g_assert_error(waiting[i].error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
        g_clear_error(&waiting[i].error);
    }
    g_assert_cmpuint(f->asked, ==, 1);
    g_clear_error(&f->failure); /* the next one asks anew */
    f->record = json_make("{sb s[]}", "anonymous_reads", 1, "users");
    f->answer_ms = 5;
    assert_access(NULL, PEER, RAPI_READ, "");
    g_assert_cmpuint(f->asked, ==, 2);
}

/* What a slow luxid says at last is good for all who have waited for it, and for nobody later. */
static void test_slow_luxid(struct fixture *f, gconstpointer unused)
{
    struct asking waiting[3];
    f->answer_ms = 30000;
    start(f, &waiting[0], "alice:one", 10000);
    start(f, &waiting[1], "alice:one", 10000);
    start(f, &waiting[2], "bob:two", 10100);
    for (size_t i = 0; i < G_N_ELEMENTS(waiting); i++) {
        g_assert_true(waiting[i].done);
        g_assert_no_error(waiting[i].error);
        g_assert_cmpint(waiting[i].access, ==, i < 2 ? RAPI_WRITE : RAPI_READ);
        g_free(waiting[i].name);
    }
    g_assert_cmpuint(f->asked, ==, 1);
    assert_access("alice:one", PEER, RAPI_WRITE, "alice");
    g_assert_cmpuint(f->asked, ==, 2);
}

/* The process ends while passwords are being checked. */
static void test_killed(struct fixture *f, gconstpointer unused)
{
    struct asking one = {.who = "alice:one", .peer = PEER}, two = one;
    task_spawn(f->env->tasks, ask_task, &one);
    task_spawn(f->env->tasks, ask_task, &two);
    fake_settle(f->world);
    fake_kill(f->env);
    fake_settle(f->world);
    g_assert_true(one.done && two.done);
    g_assert_cmpint(one.access, ==, RAPI_FAILED);
    g_clear_error(&one.error);
    g_clear_error(&two.error);
    f->env = fake_process(f->world, NODE1, ROLE_RAPID);
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rapi-users/file", test_file);
    ADD("/rapi-users/access", test_access);
    ADD("/rapi-users/headers", test_headers);
    ADD("/rapi-users/ha1", test_ha1);
    ADD("/rapi-users/changes", test_changes);
    ADD("/rapi-users/barred", test_barred);
    ADD("/rapi-users/barred-network", test_barred_network);
    ADD("/rapi-users/many-addresses", test_many_addresses);
    ADD("/rapi-users/many-waiting", test_many_waiting);
    ADD("/rapi-users/crowd", test_crowd);
    ADD("/rapi-users/without-luxid", test_without_luxid);
    ADD("/rapi-users/silent-luxid", test_silent_luxid);
    ADD("/rapi-users/slow-luxid", test_slow_luxid);
    ADD("/rapi-users/killed", test_killed);
    return g_test_run();
}

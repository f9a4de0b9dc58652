/* What fettle-mond tells: paths, reports, metrics, whatever its sources are like. core/monitor/. */
#include <string.h>

#include "core/monitor/monitor.h"
#include "helper/fake_env.h"
#include "proto/monitor/collector_table.h"

#define NODE1 "11111111-0000-4000-8000-000000000001"
#define WEB1 "aaaaaaaa-0000-4000-8000-000000000001"
#define DB1 "aaaaaaaa-0000-4000-8000-000000000002"
#define REPLICA "bbbbbbbb-0000-4000-8000-000000000001"

#define STAT                                                                                       \
    "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0 0 0\n"                               \
    "cpu1 50 0 50 400 0 0 0 0 0 0\nintr 5\n"
#define MEMINFO                                                                                    \
    "MemTotal: 1000 kB\nMemFree: 5 kB\nMemAvailable: 600 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"

/* --- a node --- */

struct answers {
    json_t *settings, *instances; /* NULL: no ConfD answers */
    guint asked;
    guint slow_ms; /* of a question for instances */
    const struct env *env;
};

static json_t *ask(enum confd_type type, const char *query, void *data, GError **error)
{
    struct answers *answers = data;
    json_t *answer = type == CONFD_TYPE_data_collectors ? answers->settings : answers->instances;
    answers->asked++;
    g_assert_true(type == CONFD_TYPE_data_collectors || strcmp(query, "node1") == 0);
    if (type != CONFD_TYPE_data_collectors && answers->slow_ms &&
        !env_sleep(answers->env, answers->slow_ms))
        return NULL;
    if (!answer)
        fettle_set_error(error, TIMEOUT, "node2 (10.0.0.2): no answer");
    return answer ? json_incref(answer) : NULL;
}

struct fixture {
    struct fake_world *world;
    struct env *env;
    struct answers answers;
    struct monitor *monitor;
};

static void put(struct fixture *f, enum file_area area, const char *name, const char *text)
{
    fake_file_put(f->world, NODE1, area, name, text);
}

static void put_proc(struct fixture *f)
{
    put(f, FILE_PROC, "stat", STAT);
    put(f, FILE_PROC, "loadavg", "0.50 0.25 0.10 1/2 3\n");
    put(f, FILE_PROC, "meminfo", MEMINFO);
    put(f, FILE_PROC, "uptime", "12.50 20.00\n");
    put(f, FILE_PROC, "diskstats",
        "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        " 253       0 vda 10 1 80 4 20 2 160 6 0 9 10 0 0 0 0 1 2\nnonsense\n");
}

/* Written `age_s` ago. */
static char *stats_text(const struct fixture *f, const char *rest, gint64 age_s)
{
    gint64 now_us = f->env->ops->wall_us(f->env);
    return g_strdup_printf("{\"format\": 1, \"written_us\": %" G_GINT64_FORMAT "%s}",
                           now_us - age_s * G_USEC_PER_SEC, rest);
}

static void put_stats(struct fixture *f, const char *file, const char *rest, gint64 age_s)
{
    g_autofree char *text = stats_text(f, rest, age_s);
    put(f, FILE_STATS, file, text);
}

#define GUEST(uuid, name, state, more)                                                             \
    ", \"instance\": \"" uuid "\", \"name\": \"" name "\", \"generation\": 3, \"state\": \"" state \
    "\"" more

static void put_node(struct fixture *f)
{
    put_stats(f, "node.stats",
              ", \"services\": [{\"name\": \"noded\", \"state\": \"running\", \"restarts\": 2}, "
              "{\"name\": \"luxid\", \"state\": \"restarting\", \"why\": \"it was killed\"}], "
              "\"replicas\": [{\"instance\": \"" DB1 "\", \"replica\": \"" REPLICA
              "\", \"generation\": 4, \"exported\": true}], \"master_heard_ms\": 500",
              0);
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->world = fake_world_new();
    f->env = fake_process(f->world, NODE1, ROLE_MOND);
    f->answers.env = f->env;
    put_proc(f);
    put_node(f);
    f->monitor = monitor_new(f->env, "node1", ask, &f->answers);
    monitor_start(f->monitor);
    fake_settle(f->world);
}

static void end(struct fixture *f)
{
    monitor_free(f->monitor);
    fake_settle(f->world);
    fake_kill(f->env);
    fake_world_free(f->world);
    json_decref(f->answers.settings);
    json_decref(f->answers.instances);
}

/* --- asking --- */

static void take(struct http_answer *answer, void *data)
{
    struct http_answer **place = data;
    g_assert_null(*place);
    *place = answer;
}

static struct http_answer *ask_for(struct fixture *f, const char *method, const char *path,
                                   const char *accept, guint refused)
{
    struct http_request request = {.method = (char *)method,
                                   .path = (char *)path,
                                   .query = "",
                                   .refused = refused,
                                   .refused_why = "refused"};
    struct http_answer *answer = NULL;
    gint64 began_ms = fake_now_ms(f->world);
    request.headers = g_hash_table_new(g_str_hash, g_str_equal);
    if (accept)
        g_hash_table_insert(request.headers, "accept", (void *)accept);
    monitor_serve(f->monitor, &request, take, &answer);
    fake_settle(f->world);
    for (guint i = 0; i < 100 && !answer; i++)
        fake_advance(f->world, 10);
    g_hash_table_unref(request.headers);
    g_assert_nonnull(answer);
    g_assert_cmpint(fake_now_ms(f->world) - began_ms, <=, 1000); /* of virtual time */
    return answer;
}

static char *body_of(struct fixture *f, const char *path, guint status)
{
    struct http_answer *answer = ask_for(f, "GET", path, NULL, 0);
    char *body = g_strdup(answer->body);
    g_assert_cmpuint(answer->status, ==, status);
    http_answer_free(answer);
    return body;
}

static json_t *json_of(struct fixture *f, const char *path)
{
    g_autofree char *body = body_of(f, path, 200);
    json_t *json = json_loads(body, JSON_DECODE_ANY, NULL);
    g_assert_nonnull(json);
    return json;
}

static json_t *data_of(struct fixture *f, const char *path)
{
    json_autoptr report = json_of(f, path);
    return json_incref(json_object_get(report, "data"));
}

#define assert_body(f, path, status, expected)                                                     \
    do {                                                                                           \
        g_autofree char *body = body_of(f, path, status);                                          \
        g_assert_cmpstr(body, ==, expected);                                                       \
    } while (0)

#define assert_status(data, code_wanted, message_wanted)                                           \
    do {                                                                                           \
        const json_t *status = json_object_get(data, "status");                                    \
        g_assert_cmpstr(json_string_value(json_object_get(status, "message")), ==,                 \
                        message_wanted);                                                           \
        g_assert_cmpint(json_integer_value(json_object_get(status, "code")), ==, code_wanted);     \
    } while (0)

static const char *text_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static json_int_t number_at(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* --- paths --- */

static void test_paths(void)
{
    struct fixture f;
    begin(&f);
    assert_body(&f, "/", 200, "[1]");
    assert_body(&f, "/1", 200, "null");
    assert_body(&f, "/1/", 200, "null");
    assert_body(&f, "/1/list/collectors", 200,
                "[[\"cpu-avg-load\",\"default\",0],[\"host\",\"default\",0],"
                "[\"inst-status-fettle\",\"instance\",1],[\"guests\",\"instance\",0],"
                "[\"diskstats\",\"storage\",0],[\"drbd\",\"storage\",1],[\"lv\",\"storage\",0],"
                "[\"replicas\",\"storage\",1],[\"relay\",\"storage\",1],"
                "[\"volumes\",\"storage\",0],[\"services\",\"daemon\",1]]");
    static const char *const none[] = {"/nope",
                                       "/1/list",
                                       "/1/report",
                                       "/1/report/",
                                       "/1/report/storage",
                                       "/1/report/storage/",
                                       "/1/report/default/lv",
                                       "/1/report/storage/nosuch",
                                       "/1/report/all/x",
                                       "/2",
                                       "///",
                                       "/metrics/x",
                                       "/1/report//cpu-avg-load"};
    for (guint i = 0; i < G_N_ELEMENTS(none); i++)
        assert_body(&f, none[i], 404, "Resource not found");
    struct http_answer *answer = ask_for(&f, "POST", "/", NULL, 0);
    g_assert_cmpuint(answer->status, ==, 405);
    g_assert_cmpstr(answer->headers->pdata[0], ==, "Allow");
    g_assert_cmpstr(answer->headers->pdata[1], ==, "GET, HEAD");
    http_answer_free(answer);
    answer = ask_for(&f, "HEAD", "/", NULL, 0);
    g_assert_cmpuint(answer->status, ==, 200);
    http_answer_free(answer);
    answer = ask_for(&f, "GET", "/", NULL, 431);
    g_assert_cmpuint(answer->status, ==, 431);
    g_assert_cmpstr(answer->body, ==, "refused");
    http_answer_free(answer);
    end(&f);
}

/* The recorded form of Ganeti's report. */
static void test_report(void)
{
    struct fixture f;
    begin(&f);
    json_autoptr report = json_of(&f, "/1/report/default/cpu-avg-load");
    const char *key;
    json_t *value;
    g_autoptr(GString) keys = g_string_new(NULL);
    json_object_foreach(report, key, value)
        g_string_append_printf(keys, "%s ", key);
    g_assert_cmpstr(keys->str, ==, "name version format_version timestamp category kind data ");
    g_assert_cmpstr(text_at(report, "version"), ==, "B");
    g_assert_true(json_is_null(json_object_get(report, "category")));
    g_assert_cmpint(number_at(report, "kind"), ==, 0);
    g_assert_cmpint(number_at(report, "timestamp"), ==, f.env->ops->wall_us(f.env) * 1000);
    json_autoptr one = json_of(&f, "/1/report/storage/drbd");
    g_assert_cmpstr(text_at(one, "category"), ==, "storage");
    g_assert_cmpint(number_at(one, "kind"), ==, 1);
    json_autoptr all = json_of(&f, "/1/report/all");
    g_assert_cmpuint(json_array_size(all), ==, COLLECTOR_COUNT);
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        g_assert_cmpstr(text_at(json_array_get(all, i), "name"), ==, collectors[i].name);
    end(&f);
}

/* --- /proc --- */

static void test_cpu(void)
{
    struct fixture f;
    begin(&f);
    json_autoptr boot = data_of(&f, "/1/report/default/cpu-avg-load");
    g_assert_cmpint(number_at(boot, "cpu_number"), ==, 2);
    g_assert_cmpfloat(json_real_value(json_object_get(boot, "cpu_total")), ==, 0.4);
    put(&f, FILE_PROC, "stat",
        "cpu  200 0 100 900 0 0 0 0 0 0\ncpu0 150 0 50 400 0 0 0 0 0 0\n"
        "cpu1 50 0 50 450 50 0 0 0 0 0\n");
    fake_advance(f.world, 6000);
    json_autoptr later = data_of(&f, "/1/report/default/cpu-avg-load");
    const json_t *cpus = json_object_get(later, "cpus");
    g_assert_cmpfloat(json_real_value(json_array_get(cpus, 0)), ==, 1.0);
    g_assert_cmpfloat(json_real_value(json_array_get(cpus, 1)), ==, 0.0);
    fake_advance(f.world, 700000); /* the busy time is out of the window */
    json_autoptr rest = data_of(&f, "/1/report/default/cpu-avg-load");
    g_assert_cmpfloat(json_real_value(json_object_get(rest, "cpu_total")), ==, 0.0);
    put(&f, FILE_PROC, "stat", "cpu  1 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\n");
    fake_advance(f.world, 6000); /* a processor went */
    json_autoptr fewer = data_of(&f, "/1/report/default/cpu-avg-load");
    g_assert_cmpint(number_at(fewer, "cpu_number"), ==, 1);
    end(&f);
}

static void test_host(void)
{
    struct fixture f;
    begin(&f);
    json_autoptr host = data_of(&f, "/1/report/default/host");
    g_assert_cmpint(number_at(host, "memory_bytes"), ==, 1024000);
    g_assert_cmpint(number_at(host, "available_bytes"), ==, 614400);
    g_assert_cmpint(number_at(host, "uptime_us"), ==, 12500000);
    g_assert_cmpint(number_at(host, "cpus"), ==, 2);
    g_assert_cmpfloat(json_real_value(json_object_get(host, "load5")), ==, 0.25);
    json_autoptr disks = data_of(&f, "/1/report/storage/diskstats");
    g_assert_cmpuint(json_array_size(disks), ==, 1);
    const json_t *vda = json_array_get(disks, 0);
    g_assert_cmpstr(text_at(vda, "name"), ==, "vda");
    g_assert_cmpint(number_at(vda, "major"), ==, 253);
    g_assert_cmpint(number_at(vda, "readsNum"), ==, 10);
    g_assert_cmpint(number_at(vda, "secWritten"), ==, 160);
    g_assert_cmpint(number_at(vda, "wIOmillis"), ==, 10);
    json_autoptr lv = data_of(&f, "/1/report/storage/lv");
    g_assert_true(json_is_array(lv) && json_array_size(lv) == 0);
    json_autoptr drbd = data_of(&f, "/1/report/storage/drbd");
    assert_status(drbd, 0, "none here: QEMU keeps the replicas");
    end(&f);
}

/* One that fails is one report, and the others are there. */
static void test_failing(void)
{
    struct fixture f;
    begin(&f);
    put(&f, FILE_PROC, "diskstats", "");
    put(&f, FILE_PROC, "meminfo", "MemFree: 1 kB\n");
    fake_fail_files(f.world, "diskstats", 1);
    json_autoptr all = json_of(&f, "/1/report/all");
    g_assert_cmpuint(json_array_size(all), ==, COLLECTOR_COUNT);
    const json_t *host = json_object_get(json_array_get(all, COLLECTOR_host), "data");
    assert_status(host, 8, "/proc/meminfo does not tell how much memory there is");
    put_proc(&f);
    fake_advance(f.world, 5000);
    json_autoptr again = data_of(&f, "/1/report/default/host");
    g_assert_null(json_object_get(again, "status"));
    end(&f);
}

/* --- what noded leaves --- */

static void test_guests(void)
{
    struct fixture f;
    begin(&f);
    json_autoptr none = data_of(&f, "/1/report/instance/guests");
    g_assert_cmpuint(json_array_size(json_object_get(none, "guests")), ==, 0);
    assert_status(none, 0, "");
    fake_advance(f.world, 6000);
    put_stats(&f, WEB1 ".stats",
              GUEST(WEB1, "web1", "running",
                    ", \"cpu_us\": 1500000, \"memory\": 256, \"drives\": [{\"name\": \"vd0\", "
                    "\"read_bytes\": 512, \"read_us\": 1, \"write_us\": 2, \"flush_us\": 3}], "
                    "\"cards\": [{\"index\": 0, \"sent_bytes\": 99}], \"of_tomorrow\": [1]"),
              2);
    json_autoptr one = data_of(&f, "/1/report/instance/guests");
    const json_t *web1 = json_array_get(json_object_get(one, "guests"), 0);
    assert_status(one, 0, "");
    g_assert_cmpstr(text_at(web1, "name"), ==, "web1");
    g_assert_cmpint(number_at(web1, "cpu_us"), ==, 1500000);
    g_assert_cmpint(number_at(web1, "age_us"), ==, 2000000);
    g_assert_cmpint(number_at(json_array_get(json_object_get(web1, "drives"), 0), "wait_us"), ==,
                    6);
    g_assert_null(json_object_get(web1, "relay"));
    fake_advance(f.world, 20000);
    json_autoptr old = data_of(&f, "/1/report/instance/guests");
    assert_status(old, 2, "what fettle-noded has left is 22 s old: it is down, or has no time");
    g_assert_cmpint(number_at(json_array_get(json_object_get(old, "guests"), 0), "cpu_us"), ==,
                    1500000);
    end(&f);
}

/* Torn, huge, odd: each is a sentence of its own, and the good one is there. */
static void test_bad_files(void)
{
    struct fixture f;
    begin(&f);
    g_autofree char *huge = g_strnfill(LIMIT_STATS_FILE_BYTES + 1, ' ');
    put_stats(&f, WEB1 ".stats", GUEST(WEB1, "web1", "running", ""), 0);
    put(&f, FILE_STATS, "aaaaaaaa-0000-4000-8000-000000000003.stats", "{\"format\": 1, \"wri");
    put(&f, FILE_STATS, "aaaaaaaa-0000-4000-8000-000000000004.stats", huge);
    put_stats(&f, "aaaaaaaa-0000-4000-8000-000000000005.stats", GUEST(WEB1, "web1", "running", ""),
              0);
    put_stats(&f, "aaaaaaaa-0000-4000-8000-000000000006.stats", GUEST(WEB1, "web1", "flying", ""),
              0);
    put(&f, FILE_STATS, "aaaaaaaa-0000-4000-8000-000000000007.stats", "");
    put(&f, FILE_STATS, "not-a-uuid.stats", "{");
    put(&f, FILE_STATS, "aaaaaaaa-0000-4000-8000-000000000008.txt", "{");
    json_autoptr data = data_of(&f, "/1/report/instance/guests");
    const json_t *list = json_object_get(data, "guests");
    static const char *const why[] = {
        NULL, "premature end", "1048577 bytes", "it is the file of instance " WEB1, "state: ",
        "'['"};
    g_assert_cmpuint(json_array_size(list), ==, G_N_ELEMENTS(why));
    for (guint i = 0; i < G_N_ELEMENTS(why); i++) {
        const json_t *guest = json_array_get(list, i), *status = json_object_get(guest, "status");
        g_test_message("%s", text_at(status, "message"));
        g_assert_cmpint(number_at(status, "code"), ==, why[i] ? 8 : 0);
        if (why[i]) {
            g_assert_nonnull(strstr(text_at(status, "message"), why[i]));
            g_assert_true(g_str_has_prefix(text_at(status, "message"), "run/stats/aaaaaaaa-"));
        }
    }
    g_assert_cmpint(number_at(json_object_get(data, "status"), "code"), ==, 8);
    end(&f);
}

static void test_replicas(void)
{
    struct fixture f;
    begin(&f);
    put_stats(&f, WEB1 ".stats",
              GUEST(WEB1, "web1", "running",
                    ", \"replica\": \"" REPLICA "\", \"replica_state\": \"syncing\", \"mirror\": "
                    "\"syncing\", \"progress\": 40, \"lag_bytes\": 600, \"relay\": \"away\", "
                    "\"relay_away_ms\": 70, \"relay_starts\": 3"),
              0);
    put_stats(&f, DB1 ".stats", GUEST(DB1, "db1", "running", ""), 0);
    json_autoptr data = data_of(&f, "/1/report/storage/replicas");
    const json_t *list = json_object_get(data, "replicas");
    g_assert_cmpuint(json_array_size(list), ==, 1);
    g_assert_cmpstr(text_at(json_array_get(list, 0), "name"), ==, "web1");
    g_assert_cmpint(number_at(json_array_get(list, 0), "lag_bytes"), ==, 600);
    assert_status(data, 1, "it is being copied");
    const json_t *kept = json_array_get(json_object_get(data, "kept"), 0);
    g_assert_cmpstr(text_at(kept, "replica"), ==, REPLICA);
    json_autoptr relay = data_of(&f, "/1/report/storage/relay");
    g_assert_cmpuint(json_array_size(json_object_get(relay, "relays")), ==, 1);
    assert_status(relay, 1, "there is none that is well; another one is being started");
    fake_advance(f.world, 6000);
    put_node(&f);
    put_stats(&f, WEB1 ".stats",
              GUEST(WEB1, "web1", "running",
                    ", \"replica\": \"" REPLICA "\", \"held\": \"its node cannot note that\""),
              0);
    json_autoptr held = data_of(&f, "/1/report/storage/replicas");
    assert_status(held, 4, "its node cannot note that");
    end(&f);
}

static void test_services(void)
{
    struct fixture f;
    begin(&f);
    json_autoptr data = data_of(&f, "/1/report/daemon/services");
    assert_status(data, 1, "luxid: it was killed");
    g_assert_cmpint(number_at(data, "master_heard_ms"), ==, 500);
    g_assert_cmpuint(json_array_size(json_object_get(data, "services")), ==, 2);
    json_autoptr volumes = data_of(&f, "/1/report/storage/volumes");
    assert_status(volumes, 0, "none here: fettle-volumed has told nothing");
    put_stats(&f, "volumed.stats",
              ", \"backends\": [{\"backend\": \"nfs\", \"registered\": true, \"hanging\": 1}, "
              "{\"backend\": \"pool\"}]",
              0);
    fake_advance(f.world, 6000);
    json_autoptr two = data_of(&f, "/1/report/storage/volumes");
    assert_status(two, 4, "calls of it do not come back");
    end(&f);
}

/* A node whose noded never ran since the boot. */
static void test_no_stats(void)
{
    struct fixture f;
    begin(&f);
    fake_reboot(f.world, NODE1);
    put_proc(&f);
    fake_advance(f.world, 6000);
    json_autoptr guests = data_of(&f, "/1/report/instance/guests");
    assert_status(guests, 0, "");
    json_autoptr services = data_of(&f, "/1/report/daemon/services");
    const char *message = text_at(json_object_get(services, "status"), "message");
    g_assert_true(g_str_has_prefix(message, "run/stats/node.stats: "));
    json_autoptr all = json_of(&f, "/1/report/all");
    g_assert_cmpuint(json_array_size(all), ==, COLLECTOR_COUNT);
    end(&f);
}

/* --- what ConfD tells --- */

static json_t *instances_of(const char *web1, const char *db1)
{
    return json_make("[[{ss ss ss}, {ss ss ss}], []]", "name", "web1", "uuid", WEB1, "admin_state",
                     web1, "name", "db1", "uuid", DB1, "admin_state", db1);
}

static void test_instances(void)
{
    struct fixture f;
    begin(&f);
    put_stats(&f, WEB1 ".stats", GUEST(WEB1, "web1", "running", ", \"uptime_us\": 2500000"), 0);
    f.answers.instances = instances_of("up", "up");
    json_autoptr data = data_of(&f, "/1/report/instance/inst-status-fettle");
    const json_t *list = json_object_get(data, "instances");
    g_assert_cmpuint(json_array_size(list), ==, 2);
    const json_t *web1 = json_array_get(list, 0), *db1 = json_array_get(list, 1);
    g_assert_cmpstr(text_at(web1, "adminState"), ==, "up");
    g_assert_cmpstr(text_at(web1, "actualState"), ==, "running");
    g_assert_cmpfloat(json_real_value(json_object_get(web1, "uptime")), ==, 2.5);
    assert_status(web1, 0, "");
    g_assert_cmpstr(text_at(db1, "actualState"), ==, "absent");
    assert_status(db1, 4, "it is meant to run, and is absent");
    assert_status(data, 4, "it is meant to run, and is absent");
    json_decref(f.answers.instances);
    f.answers.instances = instances_of("down", "down");
    fake_advance(f.world, 5000);
    json_autoptr down = data_of(&f, "/1/report/instance/inst-status-fettle");
    assert_status(down, 4, "it is not meant to run, and does");
    json_decref(f.answers.instances);
    f.answers.instances = json_make("[[], []]");
    fake_advance(f.world, 5000);
    json_autoptr other = data_of(&f, "/1/report/instance/inst-status-fettle");
    assert_status(other, 2, "this node is not on record as its primary");
    end(&f);
}

static void test_no_configuration(void)
{
    struct fixture f;
    begin(&f);
    put_stats(&f, WEB1 ".stats", GUEST(WEB1, "web1", "running", ""), 0);
    json_autoptr data = data_of(&f, "/1/report/instance/inst-status-fettle");
    assert_status(data, 8, "no configuration: node2 (10.0.0.2): no answer");
    const json_t *web1 = json_array_get(json_object_get(data, "instances"), 0);
    g_assert_cmpstr(text_at(web1, "actualState"), ==, "running");
    g_assert_true(json_is_null(json_object_get(web1, "adminState")));
    json_autoptr guests = data_of(&f, "/1/report/instance/guests");
    assert_status(guests, 0, "");
    end(&f);
}

/* What it told last is told again, with the time of then. */
static void test_slow(void)
{
    struct fixture f;
    begin(&f);
    f.answers.instances = instances_of("down", "down");
    json_autoptr first = json_of(&f, "/1/report/instance/inst-status-fettle");
    fake_advance(f.world, 6000);
    f.answers.slow_ms = 60000;
    json_autoptr all = json_of(&f, "/1/report/all");
    const json_t *slow = json_array_get(all, COLLECTOR_inst_status);
    g_assert_cmpint(number_at(slow, "timestamp"), ==, number_at(first, "timestamp"));
    g_assert_true(json_equal(json_object_get(slow, "data"), json_object_get(first, "data")));
    g_assert_cmpint(number_at(json_array_get(all, 0), "timestamp"), >,
                    number_at(first, "timestamp"));
    guint asked = f.answers.asked;
    json_autoptr again = json_of(&f, "/1/report/instance/inst-status-fettle");
    g_assert_cmpuint(f.answers.asked, ==, asked); /* it is at it */
    fake_advance(f.world, 60000);
    f.answers.slow_ms = 0;
    json_autoptr last = json_of(&f, "/1/report/instance/inst-status-fettle");
    g_assert_cmpint(number_at(last, "timestamp"), >, number_at(first, "timestamp"));
    end(&f);
}

static void test_slow_from_the_beginning(void)
{
    struct fixture f;
    begin(&f);
    f.answers.slow_ms = 60000;
    json_autoptr all = json_of(&f, "/1/report/all");
    const json_t *data = json_object_get(json_array_get(all, COLLECTOR_inst_status), "data");
    assert_status(data, 8, "it has told nothing yet; ask again");
    end(&f);
}

/* --- settings --- */

static void test_settings(void)
{
    struct fixture f;
    begin(&f);
    f.answers.settings =
        json_make("{s{sb si} s{sb si} s{} si}", "lv", "active", 0, "interval", 5000000, "diskstats",
                  "active", 1, "interval", 60000000, "guests", "host", 5);
    json_autoptr before = json_of(&f, "/1/report/storage/diskstats");
    fake_advance(f.world, 10000);
    assert_body(&f, "/1/report/storage/lv", 404,
                "the data collector lv is switched off in this cluster; on again: fettle cluster "
                "modify --data-collectors lv=yes");
    json_autoptr all = json_of(&f, "/1/report/all");
    g_assert_cmpuint(json_array_size(all), ==, COLLECTOR_COUNT - 1);
    json_autoptr list = json_of(&f, "/1/list/collectors");
    g_assert_cmpuint(json_array_size(list), ==, COLLECTOR_COUNT - 1);
    json_autoptr same = json_of(&f, "/1/report/storage/diskstats");
    g_assert_cmpint(number_at(same, "timestamp"), ==, number_at(before, "timestamp"));
    fake_advance(f.world, 50000);
    json_autoptr later = json_of(&f, "/1/report/storage/diskstats");
    g_assert_cmpint(number_at(later, "timestamp"), >, number_at(before, "timestamp"));
    json_decref(json_steal(&f.answers.settings)); /* no candidate answers: as it was */
    fake_advance(f.world, 20000);
    g_autofree char *off = body_of(&f, "/1/report/storage/lv", 404);
    f.answers.settings = json_object();
    fake_advance(f.world, 10000);
    json_autoptr on = json_of(&f, "/1/report/storage/lv");
    g_assert_nonnull(on);
    end(&f);
}

/* A long interval of the sampled one ends when it is taken back, not a day later. */
static void test_sampled_interval(void)
{
    struct fixture f;
    begin(&f);
    f.answers.settings = json_make("{s{sb sI}}", "cpu-avg-load", "active", 1, "interval",
                                   (json_int_t)86400 * G_USEC_PER_SEC);
    fake_advance(f.world, 20000);
    json_decref(f.answers.settings);
    f.answers.settings = json_object();
    fake_advance(f.world, 20000);
    json_autoptr before = data_of(&f, "/1/report/default/cpu-avg-load");
    put(&f, FILE_PROC, "stat",
        "cpu  200 0 100 900 0 0 0 0 0 0\ncpu0 150 0 50 400 0 0 0 0 0 0\n"
        "cpu1 50 0 50 450 50 0 0 0 0 0\n");
    fake_advance(f.world, 20000);
    json_autoptr later = data_of(&f, "/1/report/default/cpu-avg-load");
    g_assert_cmpfloat(json_real_value(json_object_get(before, "cpu_total")), <,
                      json_real_value(json_object_get(later, "cpu_total")));
    end(&f);
}

/* While somebody waits for it. */
static void test_switched_off_meanwhile(void)
{
    struct fixture f;
    begin(&f);
    fake_advance(f.world, 9700);
    f.answers.slow_ms = 500;
    f.answers.settings = json_make("{s{sb}}", "inst-status-fettle", "active", 0);
    g_autofree char *off = body_of(&f, "/1/report/instance/inst-status-fettle", 404);
    g_assert_true(g_str_has_prefix(off, "the data collector inst-status-fettle is switched off"));
    end(&f);
}

/* --- metrics --- */

static char *metrics_of(struct fixture *f, const char *accept, const char *type)
{
    struct http_answer *answer = ask_for(f, "GET", "/metrics", accept, 0);
    char *body = g_strdup(answer->body);
    g_assert_cmpuint(answer->status, ==, 200);
    g_assert_true(g_str_has_prefix(answer->headers->pdata[1], type));
    http_answer_free(answer);
    return body;
}

static void assert_line(const char *text, const char *line)
{
    g_autofree char *whole = g_strdup_printf("\n%s\n", line);
    g_test_message("%s", line);
    g_assert_nonnull(strstr(text, whole));
}

static void test_metrics(void)
{
    struct fixture f;
    begin(&f);
    put_stats(&f, WEB1 ".stats",
              GUEST(WEB1, "we\\\"b\\n", "running",
                    ", \"cpu_us\": 1500000, \"memory\": 1, \"drives\": [{\"name\": \"vd0\", "
                    "\"read_bytes\": 512, \"read_us\": 500000}], \"cards\": [{\"index\": 1, "
                    "\"sent_bytes\": 99}], \"replica\": \"" REPLICA
                    "\", \"replica_state\": \"in-sync\", \"relay\": \"forwarding\""),
              0);
    f.answers.settings = json_object();
    fake_advance(f.world, 10000);
    put_node(&f);
    g_autofree char *text = metrics_of(&f, NULL, "text/plain; version=0.0.4");
#define WHO "{instance=\"we\\\"b\\n\",uuid=\"" WEB1 "\""
    assert_line(text, "fettle_guest_cpu_seconds_total" WHO "} 1.5");
    assert_line(text, "fettle_guest_memory_bytes" WHO "} 1048576");
    assert_line(text, "fettle_guest_up" WHO "} 1");
    assert_line(text, "fettle_guest_drive_read_bytes_total" WHO ",drive=\"vd0\"} 512");
    assert_line(text, "fettle_guest_drive_wait_seconds_total" WHO ",drive=\"vd0\"} 0.5");
    assert_line(text, "fettle_guest_card_sent_bytes_total" WHO ",card=\"1\"} 99");
    assert_line(text, "fettle_replica_in_sync" WHO "} 1");
    assert_line(text, "fettle_relay_forwarding" WHO "} 1");
    assert_line(text, "fettle_node_memory_bytes 1024000");
    assert_line(text, "fettle_node_cpu_seconds_total{mode=\"idle\"} 8");
    assert_line(text, "fettle_disk_written_bytes_total{disk=\"vda\"} 81920");
    assert_line(text, "fettle_service_up{service=\"luxid\"} 0");
    assert_line(text, "fettle_service_restarts_total{service=\"noded\"} 2");
    assert_line(text, "fettle_collector_up{collector=\"diskstats\"} 1");
    assert_line(text, "fettle_master_heard_seconds 0.5");
    assert_line(text, "fettle_configuration_age_seconds 0");
    g_assert_null(strstr(text, "# EOF"));
    g_autofree char *open = metrics_of(&f, "application/openmetrics-text", "application/openm");
    g_assert_true(g_str_has_suffix(open, "\n# EOF\n"));
    put(&f, FILE_PROC, "meminfo", "");
    fake_advance(f.world, 6000);
    g_autofree char *failed = metrics_of(&f, NULL, "text/plain");
    assert_line(failed, "fettle_collector_up{collector=\"host\"} 0");
    g_assert_null(strstr(failed, "fettle_node_memory_bytes"));
    end(&f);
}

/* It ends while somebody waits. */
static void test_end(void)
{
    struct fixture f;
    struct http_answer *answer = NULL;
    struct http_request request = {.method = "GET", .path = "/1/report/all", .query = ""};
    begin(&f);
    request.headers = g_hash_table_new(g_str_hash, g_str_equal);
    f.answers.slow_ms = 500;
    monitor_serve(f.monitor, &request, take, &answer);
    fake_settle(f.world);
    monitor_free(f.monitor);
    fake_kill(f.env);
    g_assert_null(answer);
    fake_world_free(f.world);
    g_hash_table_unref(request.headers);
}

/* What a ConfD of Ganeti 3.0 answers, as it was recorded (MON-04). */
static void test_ganeti(void)
{
    struct fixture f;
    begin(&f);
    f.answers.settings = json_loads(
        "{\"cpu-avg-load\": {\"active\": true, \"interval\": 5000000}, \"diskstats\": {\"active\": "
        "false, \"interval\": 5000000}, \"inst-status-xen\": {\"active\": true, \"interval\": "
        "5000000}}",
        0, NULL);
    f.answers.instances = json_loads(
        "[[{\"name\": \"i1\", \"primary_node\": \"" NODE1 "\", \"os\": \"noop\", \"hypervisor\": "
        "\"fake\", \"hvparams\": {}, \"beparams\": {}, \"osparams\": {}, \"admin_state\": \"up\", "
        "\"nics\": [], \"disks\": [], \"disks_active\": true, \"ctime\": 1795190036.1, \"mtime\": "
        "1795190036.2, \"uuid\": \"" WEB1 "\", \"serial_no\": 1, \"tags\": []}], []]",
        0, NULL);
    put_stats(&f, WEB1 ".stats", GUEST(WEB1, "i1", "running", ""), 0);
    fake_advance(f.world, 10000);
    put_stats(&f, WEB1 ".stats", GUEST(WEB1, "i1", "running", ""), 0);
    g_autofree char *off = body_of(&f, "/1/report/storage/diskstats", 404);
    json_autoptr data = data_of(&f, "/1/report/instance/inst-status-fettle");
    const json_t *i1 = json_array_get(json_object_get(data, "instances"), 0);
    g_assert_cmpstr(text_at(i1, "adminState"), ==, "up");
    g_assert_cmpfloat(json_real_value(json_object_get(i1, "mtime")), ==, 1795190036.2);
    assert_status(data, 0, "");
    end(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/monitor/paths", test_paths);
    g_test_add_func("/monitor/report#MON-03", test_report);
    g_test_add_func("/monitor/cpu", test_cpu);
    g_test_add_func("/monitor/host", test_host);
    g_test_add_func("/monitor/failing", test_failing);
    g_test_add_func("/monitor/guests", test_guests);
    g_test_add_func("/monitor/bad-files", test_bad_files);
    g_test_add_func("/monitor/replicas", test_replicas);
    g_test_add_func("/monitor/services", test_services);
    g_test_add_func("/monitor/no-stats", test_no_stats);
    g_test_add_func("/monitor/instances", test_instances);
    g_test_add_func("/monitor/no-configuration#MON-05", test_no_configuration);
    g_test_add_func("/monitor/ganeti#MON-04", test_ganeti);
    g_test_add_func("/monitor/slow", test_slow);
    g_test_add_func("/monitor/slow-from-the-beginning", test_slow_from_the_beginning);
    g_test_add_func("/monitor/settings", test_settings);
    g_test_add_func("/monitor/switched-off-meanwhile", test_switched_off_meanwhile);
    g_test_add_func("/monitor/sampled-interval", test_sampled_interval);
    g_test_add_func("/monitor/metrics", test_metrics);
    g_test_add_func("/monitor/end", test_end);
    return g_test_run();
}

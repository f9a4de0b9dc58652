/* What daemons say of themselves, and what the node's report makes of it. core/host/services.c. */
#include <string.h>

#include "core/host/services.h"
#include "helper/fake_env.h"

#define NODE1 "11111111-0000-4000-8000-000000000001"

struct begin {
    struct env *env;
    const char *name;
    struct own_service *service;
    GError *error;
};

static void begin_task(void *data)
{
    struct begin *begin = data;
    begin->service = service_begin(begin->env, begin->name, 77, &begin->error);
}

/* A new process of that role, which has written itself down. */
static struct begin start(struct fake_world *world, const char *role)
{
    struct begin begin = {.env = fake_process(world, NODE1, role), .name = role};
    fake_run(begin.env, begin_task, &begin);
    g_assert_no_error(begin.error);
    g_assert_nonnull(begin.service);
    return begin;
}

/* SIGKILL: it never comes to its end. */
static void die(struct begin *begin)
{
    static GPtrArray *memory_of_the_dead;
    if (memory_of_the_dead == NULL)
        memory_of_the_dead = g_ptr_array_new();
    g_ptr_array_add(memory_of_the_dead, begin->service);
    fake_kill(begin->env);
}

/* "name state restarts pid version (why)", one line each; times apart, which differ. */
static char *report(const struct env *env)
{
    g_autoptr(GPtrArray) lines =
        g_ptr_array_new_with_free_func((GDestroyNotify)service_report_free);
    GString *text = g_string_new(NULL);
    services_report(env, lines);
    for (guint i = 0; i < lines->len; i++) {
        const struct service_report *line = lines->pdata[i];
        g_string_append_printf(
            text, "%s %s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s(%s)\n", line->name,
            enum_word(&service_state_words, (int)line->state), line->restarts, line->pid,
            strcmp(line->version, FETTLE_VERSION) == 0 ? "" : line->version, line->why);
    }
    return g_string_free(text, FALSE);
}

#define assert_report(env, expected)                                                               \
    do {                                                                                           \
        g_autofree char *report_ = report(env);                                                    \
        g_assert_cmpstr(report_, ==, expected);                                                    \
    } while (0)

static guint64 since(const struct env *env)
{
    g_autoptr(GPtrArray) lines =
        g_ptr_array_new_with_free_func((GDestroyNotify)service_report_free);
    services_report(env, lines);
    g_assert_cmpuint(lines->len, ==, 1);
    return ((struct service_report *)lines->pdata[0])->since;
}

static guint64 now_s(const struct env *env)
{
    return (guint64)(env->ops->wall_us(env) / G_USEC_PER_SEC);
}

#define WITHOUT_A_WORD "it ended without a word: it was killed, or has crashed"

/* Born, killed, born again, asked to end, ended with an error: what each leaves. */
static void test_lives(void)
{
    struct fake_world *world = fake_world_new();
    struct env *noded = fake_process(world, NODE1, ROLE_NODED);
    assert_report(noded, "");
    struct begin luxid = start(world, ROLE_LUXID);
    guint64 began = now_s(noded);
    fake_advance(world, 5000);
    assert_report(noded, "luxid running 0 77 ()\n");
    g_assert_cmpuint(since(noded), ==, began);
    die(&luxid);
    assert_report(noded, "luxid restarting 0 0 (" WITHOUT_A_WORD ")\n");
    g_assert_cmpuint(since(noded), ==, 0);
    luxid = start(world, ROLE_LUXID);
    assert_report(noded, "luxid running 1 77 ()\n");
    g_assert_cmpuint(since(noded), ==, now_s(noded));
    fake_advance(world, 5000);
    service_end(luxid.service, NULL);
    assert_report(noded, "luxid stopped 1 0 ()\n");
    g_assert_cmpuint(since(noded), ==, now_s(noded));
    luxid = start(world, ROLE_LUXID); /* as it was to end, this is no restart */
    assert_report(noded, "luxid running 1 77 ()\n");
    service_end(luxid.service, "the mastership of epoch 7 is over; starting anew");
    assert_report(noded,
                  "luxid restarting 1 0 (the mastership of epoch 7 is over; starting anew)\n");
    luxid = start(world, ROLE_LUXID);
    assert_report(noded, "luxid running 2 77 ()\n");
    g_autoptr(GPtrArray) locks = noded->ops->livelock_list(noded);
    g_assert_cmpuint(locks->len, ==, 1); /* the dead have left none */
    service_end(luxid.service, NULL);
    fake_world_free(world);
}

static void test_several(void)
{
    struct fake_world *world = fake_world_new();
    struct begin noded = start(world, ROLE_NODED);
    struct begin wconfd = start(world, ROLE_WCONFD);
    assert_report(noded.env, "noded running 0 77 ()\nwconfd running 0 77 ()\n");
    die(&wconfd);
    assert_report(noded.env, "noded running 0 77 ()\nwconfd restarting 0 0 (" WITHOUT_A_WORD ")\n");
    service_end(noded.service, NULL);
    service_end(NULL, NULL);
    fake_world_free(world);
}

static void put(struct fake_world *world, const char *name, const char *text)
{
    g_autofree char *file = g_strdup_printf("services/%s", name);
    fake_file_put(world, NODE1, FILE_RUN, file, text);
}

/* What cannot be read is told, and keeps nobody from starting. */
static void test_damage(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"name\": \"lux", "run/services/luxid.json: "},
        {"{\"name\": \"luxid\"}", "run/services/luxid.json: livelock: "},
        {"{\"name\": \"luxid\", \"livelock\": \"x\", \"format\": 2}",
         "run/services/luxid.json: format: "},
        {"{\"name\": \"noded\", \"livelock\": \"x\"}",
         "run/services/luxid.json: it is the file of noded"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct fake_world *world = fake_world_new();
        struct env *noded = fake_process(world, NODE1, ROLE_NODED);
        g_autofree char *expected = g_strdup_printf("luxid unknown 0 0 (%s", cases[i].why);
        put(world, "luxid.json", cases[i].text);
        g_autofree char *text = report(noded);
        if (!g_str_has_prefix(text, expected))
            g_error("%s", text);
        struct begin luxid = start(world, ROLE_LUXID);
        assert_report(noded, "luxid running 0 77 ()\n");
        service_end(luxid.service, NULL);
        fake_world_free(world);
    }
}

/* Fields of a later version stay nobody's trouble; names that are none are passed over; not more
 * than a bounded number. */
static void test_others(void)
{
    struct fake_world *world = fake_world_new();
    struct env *noded = fake_process(world, NODE1, ROLE_NODED);
    put(world, "volumed.json",
        "{\"name\": \"volumed\", \"livelock\": \"v-1\", \"version\": \"9.0\", \"colour\": "
        "\"red\"}");
    put(world, ".json", "{}");
    put(world, "readme", "{}");
    put(world, "a-name-of-more-than-thirty-two-bytes.json", "{}");
    fake_livelock(world, NODE1, "v-1", LIVELOCK_ALIVE);
    assert_report(noded, "volumed running 0 0 9.0()\n");
    fake_livelock(world, NODE1, "v-1", LIVELOCK_UNSURE);
    assert_report(noded, "volumed unknown 0 0 9.0(its lock file cannot be probed)\n");
    for (guint i = 0; i < LIMIT_SERVICES + 5; i++) {
        g_autofree char *name = g_strdup_printf("s%u.json", i);
        put(world, name, "{}");
    }
    g_autoptr(GPtrArray) lines =
        g_ptr_array_new_with_free_func((GDestroyNotify)service_report_free);
    services_report(noded, lines);
    g_assert_cmpuint(lines->len, ==, LIMIT_SERVICES);
    fake_world_free(world);
}

/* It may be of another user, whose word counts for itself alone, and not by another's lock file. */
static void test_api(void)
{
    struct fake_world *world = fake_world_new();
    struct env *noded = fake_process(world, NODE1, ROLE_NODED);
    struct begin apid = start(world, ROLE_APID);
    const char alive[] = "apid running 0 77 ()\n";
    assert_report(noded, alive);
    put(world, "apid.json", "{\"name\": \"apid\", \"livelock\": \"v-1\"}");
    assert_report(noded, alive); /* that is not its place */
    g_autoptr(GError) error = NULL;
    const char foreign[] = "{\"name\": \"apid\", \"livelock\": \"v-1\", \"version\": \"9.0\"}";
    fake_livelock(world, NODE1, "v-1", LIVELOCK_ALIVE);
    noded->ops->file_write(noded, FILE_RUN, "api/apid.json", foreign, strlen(foreign), &error);
    g_assert_no_error(error);
    assert_report(noded, "apid unknown 0 0 9.0(its lock file cannot be probed)\n");
    die(&apid);
    fake_world_free(world);
}

/* So may monitoring be of another user; and what one of them says of the other's lock file, or of
 * root's, is nothing. */
static void test_places(void)
{
    struct fake_world *world = fake_world_new();
    struct env *noded = fake_process(world, NODE1, ROLE_NODED);
    struct begin apid = start(world, ROLE_APID), mond = start(world, ROLE_MOND);
    struct begin wconfd = start(world, ROLE_WCONFD), luxid = start(world, ROLE_LUXID);
    assert_report(noded, "apid running 0 77 ()\nluxid running 0 77 ()\nmond running 0 77 ()\n"
                         "wconfd running 0 77 ()\n");
    put(world, "mond.json", "{\"name\": \"mond\", \"livelock\": \"v-1\"}"); /* not its place */
    static const char *const foreign[] = {"api/service-apid", "v-1"};
    fake_livelock(world, NODE1, "v-1", LIVELOCK_ALIVE);
    for (guint i = 0; i < G_N_ELEMENTS(foreign); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("{\"name\": \"mond\", \"livelock\": \"%s\"}", foreign[i]);
        noded->ops->file_write(noded, FILE_RUN, "mond/mond.json", text, strlen(text), &error);
        g_assert_no_error(error);
        assert_report(noded, "apid running 0 77 ()\nluxid running 0 77 ()\n"
                             "mond unknown 0 0 (its lock file cannot be probed)\n"
                             "wconfd running 0 77 ()\n");
    }
    die(&apid);
    die(&mond);
    die(&wconfd);
    die(&luxid);
    fake_world_free(world);
}

/* A disk that takes nothing: the error says so, and no lock file is left. */
static void test_cannot_write(void)
{
    struct fake_world *world = fake_world_new();
    struct begin begin = {.env = fake_process(world, NODE1, ROLE_LUXID), .name = ROLE_LUXID};
    fake_fail_files(world, "services/luxid.json", 3); /* reading what was before twice, and this */
    fake_run(begin.env, begin_task, &begin);
    g_assert_null(begin.service);
    g_assert_true(fettle_error_is(begin.error, STORAGE));
    g_clear_error(&begin.error);
    g_autoptr(GPtrArray) locks = begin.env->ops->livelock_list(begin.env);
    g_assert_cmpuint(locks->len, ==, 0);
    assert_report(begin.env, "");
    fake_world_free(world);
}

/* Somebody starts it once more beside the one that runs: that one stays on record. */
static void test_beside(void)
{
    struct fake_world *world = fake_world_new();
    struct begin begin = {.env = fake_process(world, NODE1, ROLE_LUXID), .name = ROLE_LUXID};
    put(world, "luxid.json", "{\"name\": \"luxid\", \"livelock\": \"l-1\", \"pid\": 77}");
    fake_livelock(world, NODE1, "l-1", LIVELOCK_ALIVE);
    fake_run(begin.env, begin_task, &begin);
    g_assert_null(begin.service);
    g_assert_error(begin.error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(begin.error->message, ==, "process 77 of luxid is there already");
    g_clear_error(&begin.error);
    fake_world_free(world);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/services/lives#LUX-04", test_lives);
    g_test_add_func("/services/several#LUX-04", test_several);
    g_test_add_func("/services/damage", test_damage);
    g_test_add_func("/services/others", test_others);
    g_test_add_func("/services/beside", test_beside);
    g_test_add_func("/services/api#SAF-104", test_api);
    g_test_add_func("/services/places#SAF-104", test_places);
    g_test_add_func("/services/cannot-write", test_cannot_write);
    return g_test_run();
}

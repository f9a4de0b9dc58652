/* What a node shows of instances whose tasks were left behind, and the door that it closes first:
 * core/node/collect.c, ended_jobs.c (SAF-81). The dead job is the world's own, 1. */
#include "unit/core/world/guest_steps.h"

#include "base/limits.h"
#include "core/node/guest.h"

#define ENDED_FILE "node/ended_jobs.json"
#define GIVEN_UP "job 1 has been given up for instance \"web1\"; nothing was done"

static json_t *subject(const struct node_world *nw, const char *uuid, guint dead_job)
{
    record_autoptr(instance) record = nw_instance(nw);
    json_autoptr instance = instance_to_json(record);
    return json_make("{s:s,s:i,s:O,s:O}", "instance", uuid, "dead_job", (int)dead_job, "disks",
                     json_object_get(instance, "disks"), "disk_template",
                     json_object_get(instance, "disk_template"));
}

static json_t *asks(const struct node_world *nw, guint dead_job)
{
    return json_make("{s:[o]}", "subjects", subject(nw, WEB1, dead_job));
}

/* The one sight of WEB1. */
static struct sight *collect(struct node_world *nw, guint dead_job)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = nw_call(nw, &nw->a, "collect", asks(nw, dead_job), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(answer, "node")), ==, NODE_A);
    const json_t *sights = json_object_get(answer, "sights");
    g_assert_cmpuint(json_array_size(sights), ==, 1);
    struct sight *sight =
        record_parse(&sight_record, json_array_get(sights, 0), RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(sight->instance, ==, WEB1);
    g_assert_cmpuint(sight->taken_us, >, 0);
    return sight;
}

static void expect_state(struct node_world *nw, enum guest_state state, guint64 generation)
{
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpstr(sight->busy, ==, "");
    g_assert_cmpstr(sight->silent, ==, "");
    g_assert_cmpint(sight->state, ==, state);
    g_assert_cmpuint(sight->generation, ==, generation);
}

static struct node_world *world_with(enum disk_template disk_template, bool running)
{
    g_autoptr(GError) error = NULL;
    struct node_world *nw = node_world_new(1);
    nw->web1.disk_template = disk_template;
    nw_create(nw, NODE_A, "", 2, &error);
    g_assert_no_error(error);
    if (running)
        g_assert_true(nw_start(nw, &error));
    return nw;
}

static void test_unknown(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.disks = 2;
    nw->web1.disk_template = TEMPLATE_FILE;
    nw->web1.primary = NODE_A;
    nw->web1.holder = nw->web1.secondary = "";
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpint(sight->state, ==, GUEST_ABSENT);
    g_assert_cmpuint(sight->images->len, ==, 0);
    g_assert_cmpuint(sight->disks->len, ==, 2);
    g_assert_cmpuint(((struct sight_disk *)sight->disks->pdata[0])->bytes, ==, 0);
    g_assert_cmpstr(sight->silent, ==, "");
    g_assert_null(
        guest_lookup((struct node_core *)nw->a.core, WEB1)); /* and nothing is remembered of it */
    node_world_free(nw);
}

static void test_states(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    expect_state(nw, GUEST_RUNNING, 2);
    record_autoptr(sight) running = collect(nw, 0);
    g_assert_cmpuint(running->drives->len, ==, 2);
    g_assert_cmpstr(running->drives->pdata[1], ==, "vd1");
    fake_host_guest_pause(nw->a.host, WEB1, true);
    expect_state(nw, GUEST_PAUSED, 2);
    fake_host_guest_pause(nw->a.host, WEB1, false);
    fake_host_guest_poweroff(nw->a.host, WEB1);
    nw_pass(nw, 100);
    expect_state(nw, GUEST_SHUTDOWN, 2);
    node_world_free(nw);
}

/* It runs: it goes on by itself when there is room. */
static void test_no_room(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    fake_host_set_full(nw->a.host, true);
    nw_until(nw, fake_host_io_stop(nw->a.host, WEB1) != IO_STOP_NONE);
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpint(sight->state, ==, GUEST_RUNNING);
    g_assert_cmpint(sight->io_stop, ==, IO_STOP_NO_SPACE);
    node_world_free(nw);
}

static void expect_crashed(struct node_world *nw, const char *words)
{
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpint(sight->state, ==, GUEST_ABSENT);
    g_assert_cmpuint(sight->generation, >=, 2);
    g_assert_cmpstr(sight->crashed, ==, words);
}

/* Remembered until something is done about it, and across a restart. */
static void test_crashed(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_pass(nw, 100);
    expect_crashed(nw, "it said nothing");
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    expect_crashed(nw, "it said nothing");
    g_assert_true(nw_stop(nw, 0, &error));
    expect_crashed(nw, "");
    node_world_free(nw);
}

/* Neither who was ended nor who has switched itself off has crashed. */
static void test_not_crashed(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    g_assert_true(nw_stop(nw, 0, &error));
    expect_crashed(nw, "");
    g_assert_true(nw_start(nw, &error));
    fake_host_guest_poweroff(nw->a.host, WEB1);
    nw_pass(nw, 100);
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_pass(nw, 100);
    expect_crashed(nw, "");
    node_world_free(nw);
}

static void test_images(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, false);
    guint64 mib = fake_host_disk_mib(nw->a.host, WEB1, "", 0);
    fake_host_lose_disk(nw->a.host, WEB1, "", 1);
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpuint(sight->images->len, ==, 1);
    g_assert_cmpuint(((struct image_set *)sight->images->pdata[0])->disks, ==, 1);
    g_assert_cmpuint(((struct sight_disk *)sight->disks->pdata[0])->bytes, ==, mib << 20);
    g_assert_cmpuint(((struct sight_disk *)sight->disks->pdata[1])->bytes, ==, 0);
    node_world_free(nw);
}

static void expect_silent(struct node_world *nw, const char *why)
{
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpstr(sight->silent, ==, why);
    g_assert_cmpstr(sight->busy, ==, "");
}

/* What does not answer is never told as missing, and the lock is free again. */
static void test_silent(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    fake_host_hang(nw->a.host, WEB1, true);
    expect_silent(nw, "its monitor does not answer");
    fake_host_hang(nw->a.host, WEB1, false);
    static const char *const ops[] = {"list", "space", "sizes"};
    for (guint i = 0; i < G_N_ELEMENTS(ops); i++) {
        fake_host_hang(nw->a.host, ops[i], true);
        expect_silent(nw,
                      "the disks do not answer here: whether the images are there is not known");
        fake_host_hang(nw->a.host, ops[i], false);
        nw_pass(nw, 100);
    }
    fake_host_set_disks_failed(nw->a.host, true);
    expect_silent(nw, "the disks here do not work: whether the images are there is not known");
    fake_host_set_disks_failed(nw->a.host, false);
    g_assert_true(nw_stop(nw, 0, &error));
    node_world_free(nw);
}

static void test_shared(void)
{
    struct node_world *nw = world_with(TEMPLATE_SHAREDFILE, false);
    record_autoptr(sight) sight = collect(nw, 0);
    g_assert_cmpuint(((struct sight_disk *)sight->disks->pdata[1])->bytes, >, 0);
    fake_host_set_shared(nw->a.host, false);
    expect_silent(nw, "the shared folder is not mounted here, or its server does not answer: "
                      "whether the images are there is not known");
    node_world_free(nw);
}

/* A job that lives is told, and its work goes on; that of a dead one is given up. */
static void test_busy(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    struct fake_reply stopping = {0};
    fake_host_set_powerdown_ms(nw->a.host, 0);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 60000), &stopping);
    nw_pass(nw, 1000);
    record_autoptr(sight) busy = collect(nw, 0);
    g_assert_cmpstr(busy->busy, ==, "guest_stop for job 1 is under way");
    g_assert_cmpuint(busy->images->len, ==, 0);
    g_assert_false(stopping.done);
    record_autoptr(sight) free = collect(nw, 1);
    g_assert_cmpstr(free->busy, ==, "");
    g_assert_cmpint(free->state, ==, GUEST_RUNNING);
    g_assert_error(stopping.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    fake_reply_clear(&stopping);
    node_world_free(nw);
}

static void expect_given_up(struct fake_reply *reply)
{
    g_assert_true(reply->done);
    g_assert_null(reply->result);
    g_assert_error(reply->error, FETTLE_ERROR, FETTLE_ERROR_STALE_EPOCH);
    g_assert_cmpstr(reply->error->message, ==, GIVEN_UP);
    fake_reply_clear(reply);
}

static void expect_door(struct node_world *nw, bool closed)
{
    struct fake_reply reply = {0};
    nw_call_start(nw, &nw->a, "disks_progress", nw->stamp, json_make("{s:s}", "instance", WEB1),
                  &reply);
    nw_until(nw, reply.done);
    if (closed) {
        expect_given_up(&reply);
    } else {
        g_assert_no_error(reply.error);
        fake_reply_clear(&reply);
    }
}

/* The removal that lay in the node daemon's socket, and the one that waits for its turn. */
static void test_late_request(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    struct fake_reply stopping = {0}, removing = {0}, late = {0};
    fake_host_set_powerdown_ms(nw->a.host, 0);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 60000), &stopping);
    nw_call_start(nw, &nw->a, "disks_remove", nw->stamp, nw_guest_args(nw), &removing);
    nw_pass(nw, 1000);
    g_assert_false(removing.done);
    record_autoptr(sight) sight = collect(nw, 1);
    g_assert_cmpint(sight->state, ==, GUEST_RUNNING);
    g_assert_cmpuint(sight->images->len, ==, 1);
    expect_given_up(&removing);
    nw_call_start(nw, &nw->a, "disks_remove", nw->stamp, nw_guest_args(nw), &late);
    nw_until(nw, late.done);
    expect_given_up(&late);
    g_assert_cmpuint(fake_host_count(nw->a.host, "remove "), ==, 0);
    g_assert_true(runs(&nw->a, 2));
    /* Another job, and other instances, are as before. */
    json_autoptr other =
        nw_call_as_job(nw, &nw->a, 2, "disks_progress", json_make("{s:s}", "instance", WEB1));
    g_assert_nonnull(other);
    fake_reply_clear(&stopping);
    node_world_free(nw);
}

/* Who only looks refuses nobody anything, gives nothing up, and writes nothing. */
static void test_closes_no_door(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    struct fake_reply stopping = {0};
    fake_host_set_powerdown_ms(nw->a.host, 0);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 60000), &stopping);
    nw_pass(nw, 1000);
    fake_fail_files(nw->world, ENDED_FILE, 1);
    record_autoptr(sight) busy = collect(nw, 0);
    g_assert_cmpuint(busy->busy_job, ==, 1);
    g_assert_false(stopping.done);
    nw_pass(nw, 60000);
    g_assert_true(stopping.done);
    g_assert_no_error(stopping.error);
    expect_door(nw, false);
    g_assert_null(fake_file(nw->world, NODE_A, FILE_STATE, ENDED_FILE));
    fake_reply_clear(&stopping);
    node_world_free(nw);
}

static json_t *fill(const struct record *record);

static json_t *fill_field(const struct field *field)
{
    switch (field->type) {
    case FIELD_TYPE_UUID:
        return json_string(WEB1);
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME: {
        g_autofree char *text = g_strnfill(MAX(1, (gsize)MAX(field->min, 0)), 'a');
        return json_string(text);
    }
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
    case FIELD_TYPE_FLOAT:
        return json_integer(MAX(1, (json_int_t)MAX(field->min, 0)));
    case FIELD_TYPE_BOOL:
        return json_true();
    case FIELD_TYPE_ENUM:
        return json_string(field->words->words[1]);
    case FIELD_TYPE_OBJECT:
        return fill(field->record);
    case FIELD_TYPE_STRINGS:
    case FIELD_TYPE_OBJECTS:
    case FIELD_TYPE_JSON:
        break;
    }
    return json_array();
}

static json_t *fill(const struct record *record)
{
    json_t *object = json_object();
    for (const struct field *field = record->fields(); field->name; field++)
        if (field->required)
            json_object_set_new(object, field->name, fill_field(field));
    if (record == &instance_record)
        json_object_set_new(object, "uuid", json_string(WEB1));
    return object;
}

/* Whatever names an instance, and not what somebody has remembered to list. */
static void test_every_method(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    record_autoptr(sight) sight = collect(nw, 1);
    guint asked = 0;
    size_t count = 0;
    const struct method *methods = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct method *method = &methods[i];
        bool ours = !strcmp(method->server, ROLE_NODED) && method_allows(method, ROLE_JOB) &&
                    record_field(method->args, "instance");
        if (!ours)
            continue;
        struct fake_reply reply = {0};
        nw_call_start(nw, &nw->a, method->name, nw->stamp, fill(method->args), &reply);
        nw_until(nw, reply.done);
        g_test_message("%s", method->name);
        expect_given_up(&reply);
        asked++;
    }
    g_assert_cmpuint(asked, >=, 20);
    g_assert_true(runs(&nw->a, 2));
    node_world_free(nw);
}

/* Recovery may ask a node, and nothing else. */
static void test_only_questions(void)
{
    size_t count = 0;
    const struct method *methods = method_table(&count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(methods[i].server, ROLE_NODED) && method_allows(&methods[i], ROLE_WATCHER))
            g_assert_true(!strcmp(methods[i].name, "node_report") ||
                          !strcmp(methods[i].name, "collect") ||
                          !strcmp(methods[i].name, "list_strays"));
}

/* A thousand are one write; a second question about them is none. */
static void test_one_write(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, false);
    g_autoptr(GError) error = NULL;
    json_t *args = json_make("{s:[]}", "subjects");
    for (guint i = 0; i < LIMIT_COLLECT; i++) {
        g_autofree char *uuid = g_strdup_printf("22222222-2222-4222-8222-%012u", i);
        json_array_append_new(json_object_get(args, "subjects"), subject(nw, uuid, 1 + i % 3));
    }
    json_t *again = json_deep_copy(args);
    fake_set_slow(nw->world, NODE_A, 1500); /* two would be more than the patience for them */
    json_autoptr answer = nw_call(nw, &nw->a, "collect", args, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(json_array_size(json_object_get(answer, "sights")), ==, LIMIT_COLLECT);
    fake_set_slow(nw->world, NODE_A, 0);
    fake_fail_files(nw->world, ENDED_FILE, 1);
    json_autoptr second = nw_call(nw, &nw->a, "collect", again, &error);
    g_assert_no_error(error);
    g_assert_nonnull(second);
    node_world_free(nw);
}

/* What is not on the disk was not said; those jobs are refused all the same. */
static void test_not_written(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    fake_fail_files(nw->world, ENDED_FILE, 1);
    json_t *answer = nw_call(nw, &nw->a, "collect", asks(nw, 1), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_nonnull(strstr(error->message, "var/" ENDED_FILE));
    expect_door(nw, true);
    g_assert_null(fake_file(nw->world, NODE_A, FILE_STATE, ENDED_FILE));
    record_autoptr(sight) sight = collect(nw, 1);
    g_assert_nonnull(fake_file(nw->world, NODE_A, FILE_STATE, ENDED_FILE));
    node_world_free(nw);
}

static void test_restart_and_epoch(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    expect_door(nw, false);
    record_autoptr(sight) sight = collect(nw, 0);
    expect_door(nw, false); /* who asks for nobody fences nobody */
    record_autoptr(sight) given_up = collect(nw, 1);
    expect_door(nw, true);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    expect_door(nw, true);
    nw->stamp.epoch++;
    g_assert_true(nw_announce(nw, &nw->a, &error));
    expect_door(nw, false);
    node_world_free(nw);
}

/* The node daemon dies at each moment of a look, with its host or alone: when it is back it refuses
 * that job, or it has never said so. False: the look was over before. */
static bool die_at(guint moment, bool power)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    struct fake_reply reply = {0};
    fake_set_slow(nw->world, NODE_A, 20);
    nw_call_start(nw, &nw->a, "collect", nw->stamp, asks(nw, 1), &reply);
    for (guint i = 0; i < moment && !reply.done; i++)
        fake_step(nw->world, fake_now_ms(nw->world) + 5);
    bool said = reply.done && reply.error == NULL;
    if (power)
        nw_power_cut(nw, &nw->a);
    else
        nw_daemon_kill(nw, &nw->a);
    fake_settle(nw->world);
    g_assert_true(reply.done);
    fake_reply_clear(&reply);
    fake_set_slow(nw->world, NODE_A, 0);
    nw_daemon_start(nw, &nw->a);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    if (said)
        expect_door(nw, true);
    record_autoptr(sight) sight = collect(nw, 1);
    expect_door(nw, true);
    node_world_free(nw);
    return !said;
}

static void test_dies(void)
{
    guint moment = 0;
    while (die_at(moment, false) && moment < 1000) {
        die_at(moment, true);
        moment++;
    }
    die_at(moment, true);
    g_assert_cmpuint(moment, >, 3);
    g_assert_cmpuint(moment, <, 1000);
}

static void test_damaged(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, false);
    record_autoptr(sight) sight = collect(nw, 1);
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_STATE, ENDED_FILE, "{\"history\":1");
    g_autofree char *said = nw_daemon_refuses(nw, &nw->a);
    g_assert_nonnull(strstr(said, "var/" ENDED_FILE " is damaged"));
    node_world_free(nw);
}

static void test_limit(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    for (guint done = 0; done + LIMIT_COLLECT <= LIMIT_ENDED_JOBS; done += LIMIT_COLLECT) {
        json_t *args = json_make("{s:[]}", "subjects");
        for (guint i = 0; i < LIMIT_COLLECT; i++)
            json_array_append_new(json_object_get(args, "subjects"),
                                  json_make("{s:s,s:i,s:s}", "instance", WEB1, "dead_job",
                                            (int)(1000 + done + i), "disk_template", "diskless"));
        json_autoptr answer = nw_call(nw, &nw->a, "collect", args, &error);
        g_assert_no_error(error);
    }
    json_t *args = json_make("{s:[]}", "subjects");
    for (guint i = 0; i < LIMIT_COLLECT; i++)
        json_array_append_new(json_object_get(args, "subjects"),
                              json_make("{s:s,s:i,s:s}", "instance", WEB1, "dead_job", (int)(1 + i),
                                        "disk_template", "diskless"));
    json_t *refused = nw_call(nw, &nw->a, "collect", args, &error);
    g_assert_null(refused);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    expect_door(nw, false); /* of those none was noted */
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/collect/unknown#RCV-15", test_unknown);
    g_test_add_func("/collect/states#RCV-16", test_states);
    g_test_add_func("/collect/no-room#RCV-16", test_no_room);
    g_test_add_func("/collect/crashed#RCV-16", test_crashed);
    g_test_add_func("/collect/not-crashed#RCV-16", test_not_crashed);
    g_test_add_func("/collect/images#RCV-15", test_images);
    g_test_add_func("/collect/silent#RCV-15,SAF-91", test_silent);
    g_test_add_func("/collect/shared#RCV-15", test_shared);
    g_test_add_func("/collect/busy#RCV-20,SAF-81", test_busy);
    g_test_add_func("/collect/late-request#SAF-81", test_late_request);
    g_test_add_func("/collect/closes-no-door#RCV-15,SAF-81", test_closes_no_door);
    g_test_add_func("/collect/every-method#SAF-81", test_every_method);
    g_test_add_func("/collect/only-questions#SAF-81", test_only_questions);
    g_test_add_func("/collect/one-write#SAF-81", test_one_write);
    g_test_add_func("/collect/not-written#SAF-81", test_not_written);
    g_test_add_func("/collect/restart-and-epoch#SAF-81", test_restart_and_epoch);
    g_test_add_func("/collect/damaged#SAF-81", test_damaged);
    g_test_add_func("/collect/dies-at-any-moment#SAF-81,RCV-31", test_dies);
    g_test_add_func("/collect/limit#SAF-81", test_limit);
    return g_test_run();
}

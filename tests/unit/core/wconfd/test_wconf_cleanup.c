/* Cleanup by others: asked for, claimed, counted, ended, handed to another (CLN-13 to 56). */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

static guint64 serial(void)
{
    return config_serial(world.wconf->committed);
}

static const char *const nodes[] = {NODE1, NODE2, NODE3};

static json_t *call_of(guint node, guint64 generation)
{
    return json_make("{s:s,s:i}", "service", service_key(nodes[node - 1]), "generation",
                     generation);
}

static const struct storage_service *service_of(guint node)
{
    return config_get(world.wconf->committed, "storage_service", service_key(nodes[node - 1]),
                      NULL);
}

static const struct cleanup *cleanup_of(const char *key)
{
    return config_get(world.wconf->committed, "cleanup", key, NULL);
}

/* --- time --- */

static bool beats[3]; /* members that give a sign of life each second; schedulers[0] as well if … */
static guint64 generations[3], of_scheduler; /* … it is registered */

static void beat(const struct env *from, json_t *who)
{
    g_free(storage_ask(from, "beat", json_make("{s:[o]}", "services", who)));
}

static void wait_s(guint seconds)
{
    for (guint i = 0; i < seconds; i++) {
        fake_advance(world.world, 1000);
        for (guint node = 1; node <= 3; node++)
            if (beats[node - 1])
                beat(volumed[node - 1], call_of(node, generations[node - 1]));
        if (of_scheduler)
            beat(schedulers[0], storage_of_scheduler(1, of_scheduler));
    }
    fake_settle(world.world);
}

/* Members of dir1 on node1 and node2, one of dir2 on none. */
static void set_up(void)
{
    storage_set_up(NULL);
    of_scheduler = 0;
    for (guint i = 0; i < 3; i++)
        beats[i] = false;
    for (guint node = 1; node <= 2; node++) {
        generations[node - 1] = storage_register(node);
        beats[node - 1] = true;
    }
}

/* data1 … being created by node 1 when that dies; keys. */
static void kill_at_work(const char **keys, guint64 *claims, guint count)
{
    for (guint i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("data%u", i + 1);
        keys[i] = storage_create(name);
        claims[i] = storage_take(1, generations[0], keys[i]);
    }
    beats[0] = false;
    wait_s(61);
    g_assert_cmpint(service_of(1)->state, ==, STORAGE_DOWN);
}

static void come_back(guint node)
{
    generations[node - 1] = storage_register(node);
    beats[node - 1] = true;
}

/* --- calls --- */

static char *asks(json_t *args)
{
    return storage_ask(storage_cli, "request_cleanup", args);
}

/* `cleaning: 1 by node2@dir1 (3); unavailable: 2 (1)`. */
static char *lists(char *said_in)
{
    g_autofree char *said = said_in;
    if (*said != '{')
        return g_steal_pointer(&said);
    static const char *const names[] = {"cleaning", "unavailable"};
    GString *text = g_string_new(NULL);
    json_autoptr json = json_parse_limited(said, strlen(said), MIB(1), NULL);
    for (guint n = 0; n < 2; n++) {
        json_t *list = json_object_get(json, names[n]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            json_t *item = json_array_get(list, i);
            const char *by = json_string_value(json_object_get(item, "by"));
            g_string_append_printf(text, "%s%s %s%s%s (%d)", text->len ? "; " : "", names[n],
                                   json_string_value(json_object_get(item, "host")),
                                   by && *by ? " by " : "", by ? by : "",
                                   (int)json_integer_value(json_object_get(item, "found")));
        }
    }
    return g_string_free(text, FALSE);
}

static void assert_asked(json_t *args, const char *expected)
{
    assert_says(lists(asks(args)), expected);
}

static char *automatic(const struct env *from)
{
    return lists(storage_ask(from, "request_cleanup", json_make("{s:b}", "automatic", true)));
}

static guint64 version_of(const char *key)
{
    guint64 version = 0;
    config_get(world.wconf->committed, "worker", key, &version);
    return version;
}

static json_t *item_of(const char *key)
{
    return json_make("{s:s,s:i}", "key", key, "version", version_of(key));
}

static char *claims_for(guint node, const char *cleanup, json_t *items)
{
    json_t *args = with(with(call_of(node, generations[node - 1]), "items", items), "cleanup",
                        json_string(cleanup));
    return storage_verdicts(storage_ask(volumed[node - 1], "claim_work", args));
}

static char *ends_for(guint node, const char *cleanup, json_t *items)
{
    json_t *args = with(with(call_of(node, generations[node - 1]), "items", items), "cleanup",
                        json_string(cleanup));
    return storage_verdicts(storage_ask(volumed[node - 1], "end_work", args));
}

static json_t *failed(const char *key)
{
    return with(storage_end(key, storage_row(key)->claim), "failed", json_true());
}

static char *gives_back(guint node, const char *cleanup, const char *key)
{
    json_t *args = with(with(with(call_of(node, generations[node - 1]), "key", json_string(key)),
                             "claim", json_integer((json_int_t)storage_row(key)->claim)),
                        "cleanup", json_string(cleanup));
    return storage_ask(volumed[node - 1], "give_back", args);
}

static char *is_done(guint node, const char *cleanup, guint64 requested_us)
{
    return storage_ask(
        volumed[node - 1], "end_cleanup",
        with(with(call_of(node, generations[node - 1]), "cleanup", json_string(cleanup)),
             "requested_us", json_integer((json_int_t)requested_us)));
}

static void assert_committed(char *said)
{
    g_autofree char *expected = g_strdup_printf("{\"serial\":%" G_GUINT64_FORMAT "}", serial());
    assert_says(said, expected);
}

/* --- a whole one --- */

/* CLN-28, 38, 44: A of {A, B} is gone; B cleans for it, and is counted. */
static void test_whole(void)
{
    const char *keys[3];
    guint64 claims[3];
    set_up();
    kill_at_work(keys, claims, 3);
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (3)");
    const struct cleanup *cleanup = cleanup_of("1");
    g_assert_cmpuint(cleanup->by, ==, 2);
    g_assert_cmpint(cleanup->state, ==, CLEANUP_ASKED);
    g_assert_cmpuint(cleanup->found, ==, 3);
    g_assert_cmpuint(cleanup->died_us, ==, service_of(1)->state_since_us);
    g_assert_true(cleanup->manual && !cleanup->is_up);
    guint64 requested_us = cleanup->requested_us;
    assert_says(
        claims_for(2, "1",
                   json_make("[o,o,o]", item_of(keys[0]), item_of(keys[1]), item_of(keys[2]))),
        "passed; passed; passed");
    g_assert_cmpint(cleanup_of("1")->state, ==, CLEANUP_RUNNING);
    g_assert_cmpuint(storage_row(keys[0])->service_id, ==, 2);
    g_assert_cmpuint(storage_row(keys[0])->was_service_id, ==, 1);
    g_assert_cmpuint(storage_row(keys[0])->updated_us, >, requested_us);
    /* One is cleaned, a person has settled one meanwhile, one cannot be cleaned (CLN-17, 21). */
    g_free(storage_ask(storage_cli, "change_volume",
                       json_make("{s:s,s:s}", "volume", "data1", "name", "data9")));
    assert_says(ends_for(2, "1", json_make("[o]", failed(keys[0]))), "passed");
    assert_committed(gives_back(2, "1", keys[1]));
    assert_says(ends_for(2, "1", json_make("[o]", failed(keys[2]))), "passed");
    g_assert_cmpuint(storage_row(keys[1])->service_id, ==, 1);
    g_assert_cmpuint(cleanup_of("1")->cleaned, ==, 2);
    g_assert_cmpuint(cleanup_of("1")->failed, ==, 1);
    assert_committed(is_done(2, "1", requested_us));
    g_assert_cmpint(cleanup_of("1")->state, ==, CLEANUP_DONE);
    g_assert_cmpuint(cleanup_of("1")->failed, ==, 1);
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[1]))),
                "superseded: cleanup 1 is done");
    /* It finds that one again, when it is asked for anew. */
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (1)");
    g_assert_cmpuint(cleanup_of("1")->requested_us, >, requested_us);
    g_assert_cmpuint(cleanup_of("1")->failed, ==, 0);
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[1]))), "passed");
    world_tear_down();
}

/* A volume that the dead one has made, and that a living one works on. */
static void test_of_a_living_one(void)
{
    set_up();
    const char *key = storage_create("data1");
    storage_made(key, generations[0]);
    g_assert_cmpstr(storage_volume(key)->host, ==, "node1@dir1");
    storage_accept("delete-volume", "data1", 0);
    guint64 claim = storage_take(2, generations[1], key);
    beats[0] = false;
    wait_s(61);
    g_assert_cmpint(service_of(1)->state, ==, STORAGE_DOWN);
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (0)");
    g_assert_null(cleanup_of("1"));
    g_assert_cmpuint(storage_row(key)->service_id, ==, 2);
    g_assert_cmpuint(storage_row(key)->claim, ==, claim);
    assert_says(storage_end_all(2, generations[1], json_make("[o]", failed(key))), "passed");
    world_tear_down();
}

/* What each service in either list says of itself. */
static void test_answer(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    for (guint dead = 1; dead <= 2; dead++) {
        g_autofree char *said = asks(json_object());
        json_autoptr json = json_parse_limited(said, strlen(said), MIB(1), NULL);
        json_t *list = json_object_get(json, dead == 1 ? "cleaning" : "unavailable");
        g_assert_cmpuint(json_array_size(list), ==, dead);
        for (guint i = 0; i < dead; i++) {
            const json_t *service = json_array_get(list, i);
            g_autofree char *host = g_strdup_printf("node%u@dir1", i + 1);
            g_assert_cmpint(json_integer_value(json_object_get(service, "id")), ==, i + 1);
            g_assert_cmpstr(json_string_value(json_object_get(service, "host")), ==, host);
            g_assert_cmpstr(json_string_value(json_object_get(service, "state")), ==, "down");
        }
        beats[1] = false; /* nobody is left who could */
        wait_s(61);
    }
    world_tear_down();
}

static char *decision_of(const char *subject, const char *author)
{
    g_autoptr(GPtrArray) all = config_list(world.wconf->committed, "decision");
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        if (!strcmp(decision->subject, subject) && !strcmp(decision->author, author))
            return g_strdup(decision->summary);
    }
    return g_strdup("none");
}

/* CLN-44; of one resource the object goes, the record stays. */
static void test_decision(void)
{
    const char *keys[2];
    guint64 claims[2];
    set_up();
    kill_at_work(keys, claims, 2);
    const char *uuid = strchr(keys[0], '/') + 1;
    assert_asked(json_make("{s:s,s:s}", "resource_id", uuid, "requester", "gnt@here"),
                 "cleaning node1@dir1 by node2@dir1 (1)");
    g_autofree char *key = g_strdup_printf("1/%s", keys[0]);
    g_assert_nonnull(cleanup_of(key));
    g_autofree char *other =
        g_strdup_printf("refused: volume data2: its work is none that cleanup of service 1 is "
                        "about, or was touched since that was asked for");
    assert_says(claims_for(2, key, json_make("[o]", item_of(keys[1]))), other);
    g_assert_cmpint(cleanup_of(key)->state, ==, CLEANUP_ASKED);
    assert_says(claims_for(2, key, json_make("[o]", item_of(keys[0]))), "passed");
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", "data1",
                                 "status", "error")));
    assert_committed(is_done(2, key, cleanup_of(key)->requested_us));
    g_assert_null(cleanup_of(key));
    assert_says(decision_of(service_key(NODE1), "wconfd/cleanup"),
                "cinder-volume node2@dir1 has cleaned for cinder-volume node1@dir1: found 1 rows, "
                "cleaned 0, left alone 0, could not clean 0.");
    world_tear_down();
}

/* --- claims --- */

/* CLN-13 to 16: what was touched since, what another has, what was read before; once. */
static void test_claims(void)
{
    const char *keys[2];
    guint64 claims[2];
    set_up();
    kill_at_work(keys, claims, 2);
    g_autofree char *nothing = g_strdup_printf("superseded: cleanup 1, or its service, is off "
                                               "record");
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[0]))), nothing);
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (2)");
    json_t *stale = json_make("{s:s,s:i}", "key", keys[0], "version", version_of(keys[0]) - 1);
    g_autofree char *read =
        g_strdup_printf("refused: volume data1: its work was read at version %" G_GUINT64_FORMAT
                        ", it is at %" G_GUINT64_FORMAT " now; passed",
                        version_of(keys[0]) - 1, version_of(keys[0]));
    json_t *first = item_of(keys[1]);
    assert_says(claims_for(2, "1", json_make("[o,O]", stale, first)), read);
    /* The same again finds it claimed; a second request does not cover what the first has claimed.
     */
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (1)");
    g_autofree char *again = g_strdup_printf(
        "refused: volume data2: its work is none that cleanup of service 1 is about, or was "
        "touched since that was asked for");
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[1]))), again);
    json_decref(first);
    world_tear_down();
}

/* It is refused to any other than the one that was chosen. */
static void test_by_another(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (1)");
    const struct cleanup *cleanup = cleanup_of("1");
    guint64 requested_us = cleanup->requested_us;
    come_back(1);
    assert_says(claims_for(1, "1", json_make("[o]", item_of(keys[0]))),
                "superseded: cleanup 1: service 2 does it");
    /* SAF-55: nothing of a service that is up again is claimed. */
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[0]))),
                "superseded: cleanup 1: cinder-volume node1@dir1 is up again");
    assert_says(is_done(2, "1", requested_us + 1), "superseded: cleanup 1 was asked for anew");
    /* And the object goes. */
    wait_s(2);
    g_assert_null(cleanup_of("1"));
    assert_says(is_done(2, "1", requested_us),
                "superseded: cleanup 1, or its service, is off record");
    world_tear_down();
}

/* CLN-21: what a stand-in gives back to one that has come back meanwhile is for that to clean; and
 * while it is being cleaned its service stays on record. */
static void test_given_back_to_the_living(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (1)");
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[0]))), "passed");
    guint64 version = 0;
    config_get(world.wconf->committed, "backend", DIR1, &version);
    g_autofree char *leaves =
        job_change(&world, 17, "change_backend",
                   changes_of(put("backend", DIR1, version,
                                  with(object_backend(DIR1), "nodes", json_make("[s]", NODE2))),
                              NULL));
    g_assert_nonnull(strstr(leaves, "node1 cannot leave, the work of cinder-volume node1@dir1 on "
                                    "volume data1 is under way"));
    come_back(1);
    assert_committed(gives_back(2, "1", keys[0]));
    g_assert_cmpuint(storage_row(keys[0])->service_id, ==, 1);
    json_t *args = with(call_of(1, generations[0]), "items", json_make("[o]", item_of(keys[0])));
    assert_says(storage_verdicts(storage_ask(volumed[0], "claim_work", args)), "passed");
    args = with(call_of(1, generations[0]), "items", json_make("[o]", item_of(keys[0])));
    g_autofree char *twice = storage_verdicts(storage_ask(volumed[0], "claim_work", args));
    g_assert_nonnull(strstr(twice, "was touched since registration"));
    world_tear_down();
}

/* On a person's word also of one that is up. */
static void test_of_one_that_is_up(void)
{
    set_up();
    const char *key = storage_create("data1");
    storage_take(1, generations[0], key);
    assert_asked(json_object(), "");
    assert_asked(json_make("{s:s,s:s}", "is_up", "true", "service_id", "1"),
                 "cleaning node1@dir1 by node2@dir1 (1)");
    wait_s(5);
    g_assert_true(cleanup_of("1")->is_up);
    assert_says(claims_for(2, "1", json_make("[o]", item_of(key))), "passed");
    assert_says(ends_for(2, "1", json_make("[o]", failed(key))), "passed");
    assert_committed(is_done(2, "1", cleanup_of("1")->requested_us));
    wait_s(2);
    g_assert_null(cleanup_of("1"));
    world_tear_down();
}

/* SAF-04: repeated calls are answered by what they have done. */
static void test_repeated(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    json_t *args = json_make("{s:s}", "commit_id", ID_A);
    assert_asked(json_deep_copy(args), "cleaning node1@dir1 by node2@dir1 (1)");
    guint64 before = serial();
    assert_asked(json_deep_copy(args), "cleaning node1@dir1 by node2@dir1 (1)");
    storage_restart();
    assert_asked(args, "cleaning node1@dir1 by node2@dir1 (1)");
    g_assert_cmpuint(storage_writes(before, "cleanup"), ==, 0);
    world_tear_down();
}

/* SAF-51: the stamps go on above that of a request. */
static void test_stamp_after_restart(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    fake_set_clock(world.world, NODE1, 3600 * 1000);
    assert_asked(json_object(), "cleaning node1@dir1 by node2@dir1 (1)");
    guint64 requested_us = cleanup_of("1")->requested_us;
    fake_set_clock(world.world, NODE1, -3600 * 1000);
    storage_restart();
    const char *key = storage_create("data2");
    g_assert_cmpuint(storage_row(key)->updated_us, >, requested_us);
    world_tear_down();
}

/* --- stand-ins --- */

static char *stands_in(const char *key)
{
    return storage_ask(schedulers[0], "stand_in", json_make("{s:s}", "cleanup", key));
}

/* CLN-24: the stand-in dies; any scheduler has another one go on, automatic cleanup or not. What
 * the dead one had claimed is its own. */
static void test_stand_in_dies(void)
{
    const char *keys[2];
    guint64 claims[2];
    storage_set_up(changes_of(
        put("backend", DIR1, 1,
            with(object_backend(DIR1), "nodes", json_make("[s,s,s]", NODE1, NODE2, NODE3))),
        NULL));
    of_scheduler = 0;
    for (guint node = 1; node <= 3; node++)
        come_back(node);
    kill_at_work(keys, claims, 2);
    g_free(asks(json_object()));
    guint first = (guint)cleanup_of("1")->by;
    guint other = first == 2 ? 3 : 2;
    guint64 requested_us = cleanup_of("1")->requested_us;
    assert_says(claims_for(first, "1", json_make("[o]", item_of(keys[0]))), "passed");
    guint64 before = serial();
    assert_committed(stands_in("1"));
    assert_committed(stands_in("7"));
    g_assert_cmpuint(serial(), ==, before);
    beats[first - 1] = false;
    wait_s(61);
    assert_committed(stands_in("1"));
    g_assert_cmpuint(cleanup_of("1")->by, ==, other);
    g_assert_cmpint(cleanup_of("1")->state, ==, CLEANUP_ASKED);
    g_assert_cmpuint(cleanup_of("1")->requested_us, ==, requested_us);
    assert_says(claims_for(other, "1", json_make("[o]", item_of(keys[1]))), "passed");
    g_autofree char *by = g_strdup_printf("cleaning node%u@dir1 by node%u@dir1 (1)", first, other);
    g_autofree char *number = g_strdup_printf("%u", first);
    assert_asked(json_make("{s:s}", "service_id", number), by);
    assert_says(claims_for(other, number, json_make("[o]", item_of(keys[0]))), "passed");
    g_assert_cmpuint(storage_row(keys[0])->was_service_id, ==, 1);
    world_tear_down();
}

/* CLN-30: of a cluster of one nobody, and no member of another one; with nobody left it stays. */
static void test_unavailable(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    beats[1] = false;
    wait_s(61);
    assert_asked(json_object(), "unavailable node1@dir1 (1); unavailable node2@dir1 (0)");
    g_assert_cmpint(cleanup_of("1")->state, ==, CLEANUP_UNAVAILABLE);
    g_assert_cmpuint(cleanup_of("1")->by, ==, 0);
    g_assert_null(cleanup_of("2"));
    /* CLN-56: it was asked for, so it is done once somebody can. */
    guint64 before = serial();
    assert_committed(stands_in("1"));
    g_assert_cmpuint(serial(), ==, before);
    come_back(2);
    assert_committed(stands_in("1"));
    g_assert_cmpuint(cleanup_of("1")->by, ==, 2);
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[0]))), "passed");
    world_tear_down();
}

/* CLN-31: rows of a dead scheduler by any that lives. */
static void test_scheduler(void)
{
    set_up();
    guint64 second = storage_register_scheduler(2);
    const char *key = storage_create_anywhere("data1");
    of_scheduler = storage_register_scheduler(1);
    g_free(storage_ask(schedulers[1], "take_work",
                       with(storage_of_scheduler(2, second), "key", json_string(key))));
    wait_s(61);
    assert_asked(json_make("{s:s}", "binary", "cinder-scheduler"), "cleaning node2 by node1 (1)");
    json_t *args =
        with(with(storage_of_scheduler(1, of_scheduler), "items", json_make("[o]", item_of(key))),
             "cleanup", json_string("3"));
    assert_says(storage_verdicts(storage_ask(schedulers[0], "claim_work", args)), "passed");
    g_autofree char *cleaned =
        storage_ask(schedulers[0], "hand_on",
                    with(with(with(storage_of_scheduler(1, of_scheduler), "key", json_string(key)),
                              "backend", json_string(DIR1)),
                         "claim", json_integer((json_int_t)storage_row(key)->claim)));
    g_assert_cmpstr(cleaned, ==, "wrong_state: volume data1: its work is being cleaned");
    args = with(with(storage_of_scheduler(1, of_scheduler), "items", json_make("[o]", failed(key))),
                "cleanup", json_string("3"));
    assert_says(storage_verdicts(storage_ask(schedulers[0], "end_work", args)), "passed");
    g_assert_cmpint(storage_volume(key)->status, ==, VOLUME_ERROR);
    g_assert_cmpuint(cleanup_of("3")->cleaned, ==, 1);
    world_tear_down();
}

/* --- by itself --- */

static void enable(json_t *fields)
{
    guint64 version = 0;
    const struct cluster *cluster = config_cluster(world.wconf->committed);
    config_get(world.wconf->committed, "cluster", cluster->uuid, &version);
    json_t *json = cluster_to_json(cluster);
    json_object_update(json, fields);
    json_decref(fields);
    g_free(job_locks(&world, 17, "x cluster/BGL", false));
    g_assert_cmpuint(
        storage_number(job_change(&world, 17, "change_cluster",
                                  changes_of(put("cluster", cluster->uuid, version, json), NULL)),
                       "serial"),
        >, 0);
}

/* CLN-47, 49, 50, 52: not before the time, once for each death; off unless it is on, but a person
 * may have a pass now. */
static void test_automatic(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    of_scheduler = storage_register_scheduler(1);
    kill_at_work(keys, claims, 1); /* it went down about now */
    assert_says(automatic(schedulers[0]),
                "wrong_state: automatic cleanup is off (auto_cleanup_enabled)");
    wait_s(177);
    assert_says(automatic(storage_cli), "");
    wait_s(5);
    guint64 before = serial();
    assert_says(automatic(schedulers[0]),
                "wrong_state: automatic cleanup is off (auto_cleanup_enabled)");
    enable(json_make("{s:b}", "auto_cleanup_enabled", true));
    assert_says(automatic(schedulers[0]), "cleaning node1@dir1 by node2@dir1 (1)");
    g_assert_false(cleanup_of("1")->manual);
    assert_says(automatic(schedulers[0]), "");
    assert_says(automatic(storage_cli), "");
    g_assert_cmpuint(storage_writes(before, "cleanup"), ==, 1);
    /* CLN-21: what failed is tried again by the next pass. */
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[0]))), "passed");
    assert_committed(gives_back(2, "1", keys[0]));
    assert_committed(is_done(2, "1", cleanup_of("1")->requested_us));
    assert_says(automatic(schedulers[0]), "cleaning node1@dir1 by node2@dir1 (1)");
    assert_says(claims_for(2, "1", json_make("[o]", item_of(keys[0]))), "passed");
    assert_says(ends_for(2, "1", json_make("[o]", failed(keys[0]))), "passed");
    assert_committed(is_done(2, "1", cleanup_of("1")->requested_us));
    assert_says(automatic(schedulers[0]), "");
    world_tear_down();
}

/* CLN-48, 54: its next failure is counted from the start, and cleaned again; a death is a `down`.
 */
static void test_next_death(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    enable(json_make("{s:b}", "auto_cleanup_enabled", true));
    kill_at_work(keys, claims, 1);
    wait_s(120);
    beats[0] = true; /* the same process was cut off */
    wait_s(60);
    g_assert_cmpint(service_of(1)->state, ==, STORAGE_UP);
    beats[0] = false;
    wait_s(61 + 170);
    assert_says(automatic(schedulers[0]), "");
    wait_s(15);
    assert_says(automatic(schedulers[0]), "cleaning node1@dir1 by node2@dir1 (1)");
    guint64 died_us = cleanup_of("1")->died_us;
    beats[0] = true;
    wait_s(2);
    g_assert_null(cleanup_of("1"));
    beats[0] = false;
    wait_s(61 + 185);
    assert_says(automatic(schedulers[0]), "cleaning node1@dir1 by node2@dir1 (1)");
    g_assert_cmpuint(cleanup_of("1")->died_us, >, died_us);
    world_tear_down();
}

/* CLN-22, 45, SAF-55: the boot clock; a gap of the master's begins all counts anew. */
static void test_gap(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    wait_s(100);
    fake_pause(world.wconfd);
    fake_advance(world.world, 300 * 1000);
    fake_resume(world.wconfd);
    wait_s(170);
    assert_says(automatic(storage_cli), "");
    wait_s(20);
    assert_says(automatic(storage_cli), "cleaning node1@dir1 by node2@dir1 (1)");
    world_tear_down();
}

/* CLN-56: nobody can; then somebody has come, and stayed for a while. */
static void test_automatic_unavailable(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    beats[1] = false;
    wait_s(250);
    assert_says(automatic(storage_cli), "unavailable node1@dir1 (1)");
    guint64 before = serial();
    assert_says(automatic(storage_cli), "unavailable node1@dir1 (1)");
    g_assert_cmpuint(serial(), ==, before);
    come_back(2);
    wait_s(15);
    assert_says(automatic(storage_cli), "unavailable node1@dir1 (1)");
    wait_s(10);
    assert_says(automatic(storage_cli), "cleaning node1@dir1 by node2@dir1 (1)");
    world_tear_down();
}

/* --- refused --- */

/* CLN-43: on a person's word, or by two versions that live. */
static void test_upgrade(void)
{
    const char *keys[1];
    guint64 claims[1];
    set_up();
    kill_at_work(keys, claims, 1);
    enable(json_make("{s:b}", "upgrading", true));
    guint64 before = serial();
    const char *said = "wrong_input: Cannot perform workers cleanup during system upgrade.";
    assert_asked(json_object(), said);
    assert_says(automatic(storage_cli), said);
    enable(json_make("{s:b}", "upgrading", false));
    g_free(storage_ask(volumed[1], "register_storage",
                       json_make("{s:s,s:s,s:s,s:i,s:s}", "binary", "cinder-volume", "host",
                                 "node2b", "backend", DIR1, "wire", 2, "version", "0.2")));
    assert_asked(json_object(), said);
    g_assert_cmpuint(storage_writes(before, "cleanup"), ==, 0);
    /* CLN-33: at its start a member cleans all the same. */
    come_back(1);
    json_t *args = with(call_of(1, generations[0]), "items", json_make("[o]", item_of(keys[0])));
    assert_says(storage_verdicts(storage_ask(volumed[0], "claim_work", args)), "passed");
    world_tear_down();
}

static void test_change_service(void)
{
    set_up();
    json_t *args = json_make("{s:s,s:b,s:s}", "service", service_key(NODE1), "disabled", true,
                             "reason", "broken disk");
    g_free(storage_ask(storage_cli, "change_storage_service", json_deep_copy(args)));
    g_assert_true(service_of(1)->disabled);
    g_assert_cmpstr(service_of(1)->disabled_reason, ==, "broken disk");
    const char *key = storage_create("data1");
    assert_says(storage_ask(volumed[0], "take_work",
                            with(call_of(1, generations[0]), "key", json_string(key))),
                "wrong_state: cinder-volume node1@dir1 is disabled: broken disk");
    come_back(1);
    g_assert_true(service_of(1)->disabled);
    assert_says(storage_ask(storage_cli, "change_storage_service",
                            with(json_deep_copy(args), "disabled", json_false())),
                "wrong_input: reason: of a service that is disabled alone");
    g_autofree char *off =
        g_strdup_printf("unknown_entity: storage service %s is off record", DISK1);
    assert_says(storage_ask(storage_cli, "change_storage_service",
                            with(json_deep_copy(args), "service", json_string(DISK1))),
                off);
    g_free(storage_ask(storage_cli, "change_storage_service",
                       with(with(args, "disabled", json_false()), "reason", json_string(""))));
    g_assert_false(service_of(1)->disabled);
    g_assert_cmpstr(service_of(1)->disabled_reason, ==, "");
    storage_take(1, generations[0], key);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_cleanup/whole#CLN-21,CLN-28,CLN-38,CLN-40", test_whole);
    g_test_add_func("/wconf_cleanup/of-a-living-one#CLN-19", test_of_a_living_one);
    g_test_add_func("/wconf_cleanup/answer#CLN-39", test_answer);
    g_test_add_func("/wconf_cleanup/decision#CLN-37,CLN-44", test_decision);
    g_test_add_func("/wconf_cleanup/claims#CLN-13,CLN-14,CLN-15,CLN-16", test_claims);
    g_test_add_func("/wconf_cleanup/by-another#CLN-14,SAF-55", test_by_another);
    g_test_add_func("/wconf_cleanup/given-back#CLN-21", test_given_back_to_the_living);
    g_test_add_func("/wconf_cleanup/is-up", test_of_one_that_is_up);
    g_test_add_func("/wconf_cleanup/repeated#SAF-04", test_repeated);
    g_test_add_func("/wconf_cleanup/stamp#CLN-22,SAF-51", test_stamp_after_restart);
    g_test_add_func("/wconf_cleanup/stand-in-dies#CLN-24", test_stand_in_dies);
    g_test_add_func("/wconf_cleanup/unavailable#CLN-30,CLN-38,CLN-56", test_unavailable);
    g_test_add_func("/wconf_cleanup/scheduler#CLN-31", test_scheduler);
    g_test_add_func("/wconf_cleanup/automatic#CLN-21,CLN-47,CLN-49,CLN-50,CLN-51,CLN-52,CLN-53",
                    test_automatic);
    g_test_add_func("/wconf_cleanup/next-death#CLN-48,CLN-54", test_next_death);
    g_test_add_func("/wconf_cleanup/gap#CLN-22,CLN-45,SAF-55", test_gap);
    g_test_add_func("/wconf_cleanup/automatic-unavailable#CLN-56", test_automatic_unavailable);
    g_test_add_func("/wconf_cleanup/upgrade#CLN-33,CLN-43", test_upgrade);
    g_test_add_func("/wconf_cleanup/change-service", test_change_service);
    return g_test_run();
}

/* Things without a record in the watcher's loop (RCV-26): told once each, and once when they are
 * gone. */
#include "unit/core/world/watcher_world.h"

#include "base/limits.h"
#include "core/config/follow.h"

#include <string.h>

#define STRANGE "eeeeeeee-0000-4000-8000-00000000000e"
#define STRANGER "eeeeeeee-0000-4000-8000-00000000000f"
#define INTERVAL 60 /* of recovery_interval_period, in seconds and so in passes */
#define HOUR LIMIT_STRAYS_PERIOD_S

static struct watcher_world *fresh_with(GPtrArray *more)
{
    struct watcher_world *w = watcher_world_new_with("sqlite", more);
    w->things = json_object();
    w->strays = json_object();
    passes(w, 2);
    return w;
}

static struct watcher_world *fresh(void)
{
    return fresh_with(NULL);
}

static void report_more(struct watcher_world *w, const char *node, json_t *lists)
{
    json_object_set_new(w->things, node, lists);
}

static void answer(struct watcher_world *w, const char *node, json_t *processes, json_t *files)
{
    json_object_set_new(w->strays, node,
                        json_make("{s:s,s:b,s:b,s:o,s:o}", "node", node, "processes_known", true,
                                  "files_known", true, "processes", processes, "files", files));
}

static json_t *process(const char *name, const char *instance)
{
    return json_make("{s:o,s:s,s:s,s:i}", "identity", json_sprintf("name %s", name), "name", name,
                     "instance", instance, "pid", 4711);
}

/* So many seconds in which nothing comes that a pass would be too late for: one in ten of them. */
static void hours(struct watcher_world *w, guint seconds)
{
    change_object(w, "cluster", CLUSTER, json_make("{s:i}", "watcher_interval_ms", 10000));
    passes(w, seconds);
    change_object(w, "cluster", CLUSTER, json_make("{s:i}", "watcher_interval_ms", 1000));
    passes(w, 2);
}

/* Events of one kind, oldest first, as "HOST KIND NAME LEVEL, …"; free with g_free(). */
static gint compare_versions(gconstpointer a, gconstpointer b)
{
    const struct decision *const *one = a, *const *two = b;
    return (*one)->at_us < (*two)->at_us ? -1 : (*one)->at_us > (*two)->at_us;
}

static char *events(struct watcher_world *w, enum event_kind event)
{
    look(w);
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    g_ptr_array_sort(all, compare_versions);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        if (decision->event != event)
            continue;
        g_assert_cmpstr(decision->subject_kind, ==, "thing");
        g_assert_nonnull(strstr(decision->summary, decision->host));
        g_assert_nonnull(strstr(decision->summary, decision->subject_name));
        g_string_append_printf(text, "%s%s %s %s %s", text->len > 0 ? ", " : "", decision->host,
                               decision->state, decision->subject_name,
                               enum_word(&event_level_words, (int)decision->level));
    }
    return g_string_free(text, FALSE);
}

static void assert_events(struct watcher_world *w, const char *found, const char *gone)
{
    g_autofree char *there = events(w, EVENT_FINDING);
    g_autofree char *over = events(w, EVENT_GONE);
    g_assert_cmpstr(there, ==, found);
    g_assert_cmpstr(over, ==, gone);
}

static json_t *lists(const char *part, json_t *one)
{
    return json_make("{s:[o]}", part, one);
}

static json_t *guest_of(const char *instance, const char *name)
{
    return json_make("{s:s,s:s,s:i,s:s}", "instance", instance, "name", name, "generation", 3,
                     "state", "running");
}

/* --- each kind --- */

/* One kind of the reports: told once, however many passes, across another watcher; gone once; and
 * once more when it is there again. */
static void check_report(json_t *part, const char *told, const char *gone)
{
    struct watcher_world *w = fresh();
    report_more(w, NODE2, part);
    passes(w, INTERVAL - 2);
    assert_events(w, "", "");
    passes(w, 4);
    assert_events(w, told, "");
    passes(w, 10 * INTERVAL);
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, 3 * INTERVAL);
    assert_events(w, told, "");
    g_assert_cmpuint(jobs(w), ==, 0);
    json_autoptr back = json_incref(part);
    json_object_del(w->things, NODE2);
    passes(w, INTERVAL + 3);
    assert_events(w, told, gone);
    passes(w, 3 * INTERVAL);
    assert_events(w, told, gone);
    report_more(w, NODE2, json_incref(back));
    passes(w, INTERVAL + 3);
    g_autofree char *twice = g_strdup_printf("%s, %s", told, told);
    assert_events(w, twice, gone);
    watcher_world_free(w);
}

static void test_guest(void)
{
    check_report(lists("guests", guest_of(STRANGE, "old1")), "node2 guest old1 warning",
                 "node2 guest old1 info");
}

static void test_images(void)
{
    check_report(lists("image_sets", json_make("{s:s,s:i}", "instance", STRANGE, "disks", 1)),
                 "node2 images " STRANGE " warning", "node2 images " STRANGE " info");
}

static void test_bridge(void)
{
    check_report(lists("bridges", json_string("br7")), "node2 bridge br7 info",
                 "node2 bridge br7 info");
}

/* What is looked for: at once by nobody, after the interval by two looks, then once an hour. */
static void test_looks(void)
{
    struct watcher_world *w = fresh();
    answer(w, NODE2, json_make("[o]", process("foreign", "")), json_make("[s]", "notes.txt"));
    passes(w, INTERVAL - 4);
    g_assert_cmpuint(w->strays_asked, ==, 0);
    passes(w, 5);
    g_assert_cmpuint(w->strays_asked, ==, 3);
    assert_events(w, "", "");
    passes(w, INTERVAL + 3);
    g_assert_cmpuint(w->strays_asked, ==, 4); /* only who has something */
    assert_events(w, "node2 process foreign warning, node2 file notes.txt warning", "");
    hours(w, HOUR - 3 * INTERVAL);
    g_assert_cmpuint(w->strays_asked, ==, 5); /* once more, had that not been committed */
    json_object_del(w->strays, NODE2);
    passes(w, 5 * INTERVAL);
    assert_events(w, "node2 process foreign warning, node2 file notes.txt warning",
                  "node2 process foreign info, node2 file notes.txt info");
    hours(w, 2 * HOUR);
    assert_events(w, "node2 process foreign warning, node2 file notes.txt warning",
                  "node2 process foreign info, node2 file notes.txt info");
    watcher_world_free(w);
}

/* --- of back ends --- */

#define DIR1 "dddddddd-7777-4000-8000-000000000001"
#define DATA STRANGE ".1"

struct stored {
    json_t *unknown; /* NULL: nobody answers */
    guint asked;
};

static json_t *compare_stored(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    struct stored *stored = data;
    stored->asked++;
    if (stored->unknown)
        return json_make("{s:s,s:O}", "node", to_node, "unknown", stored->unknown);
    fettle_set_error(error, TIMEOUT, "dir1: 4 calls before this one hang in it");
    return NULL;
}

static struct change *service(const char *node, const char *host)
{
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, DIR1);
    return put("storage_service", key, 1,
               json_make("{ss ss si ss ss ss ss si ss}", "uuid", key, "binary", "cinder-volume",
                         "id", host[4] - '0', "host", host, "backend", DIR1, "node", node, "state",
                         "up", "state_since_us", 0, "version", "1"));
}

/* What no sweep may remove: told of the back end, by whichever node; not what the next one does. */
static void test_data(void)
{
    struct watcher_world *w = fresh_with(
        changes_of(put("backend", DIR1, 1,
                       json_make("{ss ss ss s[ss] ss}", "uuid", DIR1, "name", "dir1", "kind", "dir",
                                 "nodes", NODE1, NODE2, "path", "/mnt/v")),
                   service(NODE1, "node1"), service(NODE2, "node2"), NULL));
    json_autoptr unknown =
        json_make("[{ss ss si sb}{ss ss si}]", "resource_type", "Volume", "name", DATA, "bytes",
                  3 << 20, "kept", 1, "resource_type", "Volume", "name", STRANGER ".8", "bytes", 1);
    json_autoptr nothing = json_array();
    struct stored stored = {.unknown = unknown};
    fake_script(w->base.world, NULL, ROLE_VOLUMED, "compare_stored", compare_stored, &stored);
    change_object(w, "cluster", CLUSTER, json_make("{s:i}", "service_down_time", 86400));
    passes(w, INTERVAL + 5);
    g_assert_cmpuint(stored.asked, ==, 1);
    assert_events(w, "", "");
    passes(w, INTERVAL + 5);
    assert_events(w, "back end dir1 data volumes/" DATA " warning", "");
    /* Nobody's silence says that it is gone; and it is told once. */
    stored.unknown = NULL;
    hours(w, HOUR + 3 * INTERVAL);
    stored.unknown = unknown;
    passes(w, 3 * INTERVAL);
    assert_events(w, "back end dir1 data volumes/" DATA " warning", "");
    stored.unknown = nothing;
    hours(w, HOUR + 3 * INTERVAL);
    assert_events(w, "back end dir1 data volumes/" DATA " warning",
                  "back end dir1 data volumes/" DATA " info");
    watcher_world_free(w);
}

/* What a look at it shows; what the configuration daemon is asked to discard then. */
struct discarding {
    json_t *seen;
    guint looks;
    GString *names;
};

static json_t *collect_stored(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    struct discarding *discarding = data;
    discarding->looks++;
    return json_make("{s:s,s:[{ss ss so}]}", "node", to_node, "sights", "resource_type", "Volume",
                     "resource", STRANGE, "data", json_deep_copy(discarding->seen));
}

static json_t *discard_data(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    struct discarding *discarding = data;
    g_string_append_printf(discarding->names, "%s ",
                           json_string_value(json_object_get(request->args, "name")));
    return json_make("{s:i}", "serial", 1);
}

struct planning {
    struct watcher_world *w;
    json_t *answer;
};

static void plan_task(void *data)
{
    struct planning *planning = data;
    const struct recovery_question all = {0};
    struct follow *follow = follow_new(planning->w->base.luxid, NULL, NULL);
    follow_start(follow, NULL);
    planning->answer = repair_plan_recovery(planning->w->base.luxid, follow, &all);
    follow_free(follow);
}

static void assert_planned(struct watcher_world *w, bool goes)
{
    struct planning planning = {w, NULL};
    fake_run(w->base.luxid, plan_task, &planning);
    const json_t *rows = json_object_get(planning.answer, "rows"), *row = json_array_get(rows, 0);
    g_assert_cmpuint(json_array_size(rows), ==, goes);
    if (goes) {
        g_assert_cmpstr(json_string_value(json_object_get(row, "outcome")), ==, "discarded");
        g_assert_cmpstr(json_string_value(json_object_get(row, "subject_name")), ==,
                        "volumes/" DATA);
        g_assert_cmpstr(json_string_value(json_object_get(row, "why")), ==,
                        "it is not marked whole, no record names it, and recovery_rectify_unstable "
                        "is all; 3 MiB of back end dir1");
    }
    json_decref(planning.answer);
}

/* Half made data goes where a person has said that it may: never before it was told, never what is
 * whole, open, or does not say that it is half made, as where nothing can say so, and of a service
 * of the version before. */
static void test_discards(void)
{
    static const struct {
        const char *policy;
        bool half;
        const char *mark;
        bool goes;
    } cases[] = {{"jobs", true, NULL, false},
                 {"all", true, NULL, true},
                 {"all", false, "whole", false},
                 {"all", true, "open", false},
                 {"all", false, NULL, false}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct watcher_world *w = fresh_with(
            changes_of(put("backend", DIR1, 1,
                           json_make("{ss ss ss s[ss] ss}", "uuid", DIR1, "name", "dir1", "kind",
                                     "dir", "nodes", NODE1, NODE2, "path", "/mnt/v")),
                       service(NODE1, "node1"), NULL));
        json_autoptr unknown = json_make("[{ss ss si sb}]", "resource_type", "Volume", "name", DATA,
                                         "bytes", 3 << 20, "kept", 1);
        json_autoptr seen =
            json_make("[{ss ss si}]", "resource_type", "Volume", "name", DATA, "bytes", 3 << 20);
        if (cases[i].half)
            json_object_set_new(json_array_get(seen, 0), "half", json_true());
        if (cases[i].mark)
            json_object_set_new(json_array_get(seen, 0), cases[i].mark, json_true());
        struct stored stored = {.unknown = unknown};
        struct discarding discarding = {seen, 0, g_string_new(NULL)};
        fake_script(w->base.world, NULL, ROLE_VOLUMED, "compare_stored", compare_stored, &stored);
        fake_script(w->base.world, NULL, ROLE_VOLUMED, "collect_stored", collect_stored,
                    &discarding);
        fake_script(w->base.world, NULL, ROLE_WCONFD, "discard_data", discard_data, &discarding);
        change_object(w, "cluster", CLUSTER,
                      json_make("{s:i,s:s}", "service_down_time", 86400,
                                "recovery_rectify_unstable", cases[i].policy));
        passes(w, INTERVAL + 5);
        g_assert_cmpuint(discarding.looks, ==, 0);
        passes(w, INTERVAL + 5);
        assert_events(w, "back end dir1 data volumes/" DATA " warning", "");
        g_assert_cmpuint(discarding.looks, ==, 0);
        passes(w, 2 * INTERVAL);
        g_assert_cmpstr(discarding.names->str, ==, cases[i].goes ? DATA " " : "");
        g_assert_cmpint(discarding.looks > 0, ==, i > 0);
        assert_planned(w, cases[i].goes);
        /* It stays on record as told until a watcher looks. */
        watcher_world_kill(w);
        change_object(w, "cluster", CLUSTER, json_make("{ss}", "recovery_ignore", "x volumes/*"));
        assert_planned(w, false);
        watcher_world_start(w);
        g_string_free(discarding.names, TRUE);
        watcher_world_free(w);
    }
}

/* --- what is none --- */

/* It is on record, or was until a moment ago, or lives shorter than two looks. */
static void test_known(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "removed", STRANGE,
                  json_make("{s:s,s:s,s:i}", "uuid", STRANGE, "name", "more1", "generation", 4));
    report_more(w, NODE2,
                json_make("{s:[o],s:[s,s]}", "guests", guest_of(STRANGE, "more1"), "bridges", "br0",
                          "docker0"));
    answer(w, NODE2, json_make("[o]", process("web1", WEB1)), json_array());
    passes(w, 4 * INTERVAL);
    assert_events(w, "", "");
    report_more(w, NODE2, lists("bridges", json_string("br8")));
    passes(w, INTERVAL / 2);
    json_object_del(w->things, NODE2);
    passes(w, 2 * INTERVAL);
    assert_events(w, "", "");
    watcher_world_free(w);
}

/* What did not answer shows nothing, and so nothing is gone. */
static void test_unseen(void)
{
    static const char *const found = "node2 images " STRANGE " warning, node2 bridge br7 info";
    struct watcher_world *w = fresh();
    report_more(w, NODE2,
                json_make("{s:[{s:s,s:i}],s:[s]}", "image_sets", "instance", STRANGE, "disks", 1,
                          "bridges", "br7"));
    answer(w, NODE3, json_array(), json_make("[s]", "notes.txt"));
    passes(w, 3 * INTERVAL);
    g_autofree char *all = g_strdup_printf("%s, node3 file notes.txt warning", found);
    assert_events(w, all, "");
    w->silent = NODE2;
    json_object_set_new(
        w->strays, NODE3,
        json_make("{s:s,s:b,s:b}", "node", NODE3, "processes_known", true, "files_known", false));
    hours(w, HOUR + 5 * INTERVAL);
    assert_events(w, all, "");
    w->silent = NULL;
    report_more(w, NODE2,
                json_make("{s:[{s:s,s:i},{s:s,s:i}]}", "late", "part", "disks", "age_ms", 9, "part",
                          "bridges", "age_ms", 9));
    passes(w, 3 * INTERVAL);
    assert_events(w, all, "");
    /* Nor does it if it answers as another node, or does not know the question. */
    answer(w, NODE3, json_array(), json_array());
    json_object_set_new(json_object_get(w->strays, NODE3), "node", json_string(NODE1));
    hours(w, HOUR + 5 * INTERVAL);
    json_object_set_new(w->strays, NODE3, json_null());
    hours(w, HOUR + 5 * INTERVAL);
    assert_events(w, all, "");
    json_object_del(w->things, NODE2);
    json_object_del(w->strays, NODE3);
    hours(w, HOUR + 5 * INTERVAL);
    assert_events(
        w, all, "node2 images " STRANGE " info, node2 bridge br7 info, node3 file notes.txt info");
    watcher_world_free(w);
}

/* A node that is there again is looked at soon after. */
static void test_return(void)
{
    struct watcher_world *w = fresh();
    passes(w, 3 * INTERVAL);
    guint before = w->strays_asked;
    w->silent = NODE2;
    passes(w, INTERVAL);
    w->silent = NULL;
    answer(w, NODE2, json_array(), json_make("[s]", "notes.txt"));
    passes(w, INTERVAL + 3);
    g_assert_cmpuint(w->strays_asked, ==, before + 1);
    passes(w, INTERVAL + 3);
    assert_events(w, "node2 file notes.txt warning", "");
    watcher_world_free(w);
}

/* --- what is ignored --- */

static void ignore(struct watcher_world *w, const char *patterns)
{
    change_object(w, "cluster", CLUSTER, json_make("{s:s}", "recovery_ignore", patterns));
}

/* At once, and without a word; what is not ignored any more is told like any other. */
static void test_ignored(void)
{
    struct watcher_world *w = fresh();
    report_more(w, NODE2, json_make("{s:[s,s]}", "bridges", "br7", "lab-a"));
    passes(w, INTERVAL + 3);
    look(w);
    guint before = decisions_count(w);
    ignore(w, "docker* br?");
    passes(w, 3);
    g_assert_cmpuint(decisions_count(w), ==, before - 1);
    passes(w, 3 * INTERVAL);
    assert_events(w, "node2 bridge lab-a info", "");
    ignore(w, "");
    passes(w, INTERVAL + 3);
    assert_events(w, "node2 bridge lab-a info, node2 bridge br7 info", "");
    watcher_world_free(w);
}

static void assert_nothing_new(struct watcher_world *w)
{
    static const char *const kinds[] = {
#define OBJECT(kind, cover, view, writers, since, reach) #kind,
#include "proto/objects.def"
#undef OBJECT
    };
    guint new = 0;
    look(w);
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (!object_is_new(kinds[i]))
            continue;
        new ++;
        if (config_count(w->view, kinds[i]) > 0)
            g_error("%s", kinds[i]);
    }
    g_assert_cmpuint(new, >, 0);
}

/* What is told goes by the words on record, which a candidate of the version before can load: once,
 * over new masters and the end of the upgrade, and never what is ignored. */
static void test_ignored_in_an_upgrade(void)
{
    struct watcher_world *w = watcher_world_new();
    w->things = json_object();
    w->strays = json_object();
    w->services = json_make("{s:[{ss ss ss si}]}", NODE3, "name", "wconfd", "state", "running",
                            "version", "0.9", "since", 5);
    change_object(w, "node", NODE3, json_make("{sb}", "master_candidate", 1));
    ignore(w, "lab-*");
    report_more(w, NODE2, json_make("{s:[s,s]}", "bridges", "br7", "lab-a"));
    answer(w, NODE2, json_make("[o,o]", process("old1", ""), process("lab-b", "")),
           json_make("[s,s]", "notes.txt", "lab-c"));
    for (guint masters = 0; masters < 3; masters++) {
        passes(w, 3 * INTERVAL);
        assert_events(w,
                      "node2 bridge br7 info, node2 process old1 warning, node2 file notes.txt "
                      "warning",
                      "");
        assert_nothing_new(w);
        watcher_world_kill(w);
        watcher_world_start(w);
    }
    json_object_clear(w->services);
    hours(w, HOUR + 3 * INTERVAL);
    assert_events(
        w, "node2 bridge br7 info, node2 process old1 warning, node2 file notes.txt warning", "");
    watcher_world_free(w);
}

/* --- many --- */

static void test_many(void)
{
    struct watcher_world *w = fresh();
    json_t *names = json_array();
    for (guint i = 0; i < LIMIT_THINGS + 9; i++)
        json_array_append_new(names, json_sprintf("br%u", i + 1));
    report_more(w, NODE2, json_make("{s:O}", "bridges", names));
    passes(w, 3 * INTERVAL);
    g_autofree char *found = events(w, EVENT_FINDING);
    g_auto(GStrv) each = g_strsplit(found, ", ", -1);
    g_assert_cmpuint(g_strv_length(each), ==, LIMIT_THINGS + 1);
    g_assert_nonnull(strstr(found, "node2 more more than 256 warning"));
    while (json_array_size(names) > LIMIT_THINGS)
        json_array_remove(names, 0);
    hours(w, 2 * HOUR);
    g_autofree char *gone = events(w, EVENT_GONE);
    g_assert_nonnull(strstr(gone, "node2 more more than 256 info"));
    g_autofree char *now = events(w, EVENT_FINDING);
    g_assert_nonnull(strstr(now, "bridge br265 "));
    json_decref(names);
    watcher_world_free(w);
}

/* Whoever may run QEMU on a host can start any number, under any name: they leave the others their
 * room, and are told as one. */
static void test_many_processes(void)
{
    struct watcher_world *w = fresh();
    json_t *processes = json_array();
    for (guint i = 0; i < LIMIT_THINGS; i++) {
        g_autofree char *name = g_strdup_printf("stray%u", i);
        json_array_append_new(processes, process(name, ""));
    }
    answer(w, NODE2, processes, json_make("[s]", "notes.txt"));
    hours(w, HOUR);
    g_autofree char *found = events(w, EVENT_FINDING);
    g_auto(GStrv) each = g_strsplit(found, ", ", -1);
    g_assert_cmpuint(g_strv_length(each), ==, LIMIT_THING_PROCESSES + 2);
    g_assert_nonnull(strstr(found, "node2 file notes.txt warning"));
    g_assert_nonnull(strstr(found, "node2 more more than 16 processes warning"));
    hours(w, 2 * HOUR);
    g_autofree char *later = events(w, EVENT_FINDING);
    g_assert_cmpstr(later, ==, found);
    while (json_array_size(processes) > LIMIT_THING_PROCESSES)
        json_array_remove(processes, LIMIT_THING_PROCESSES);
    hours(w, 2 * HOUR);
    g_autofree char *gone = events(w, EVENT_GONE);
    g_assert_nonnull(strstr(gone, "node2 more more than 16 processes info"));
    watcher_world_free(w);
}

/* --- exactly once --- */

/* Another watcher on the same record, in step with the first: what both decide is one object, and
 * one of the two commits is refused. */
static void test_two_watchers(void)
{
    struct watcher_world *w = watcher_world_new();
    struct env *first_env = w->env;
    struct watcher *first = w->watcher;
    watcher_world_start(w);
    w->things = json_object();
    w->strays = json_object();
    passes(w, 2);
    report_more(w, NODE2, json_make("{s:[s,s]}", "bridges", "br7", "br8"));
    passes(w, 3 * INTERVAL);
    json_object_del(w->things, NODE2);
    passes(w, 3 * INTERVAL);
    g_autofree char *found = events(w, EVENT_FINDING);
    g_autofree char *gone = events(w, EVENT_GONE);
    g_auto(GStrv) each = g_strsplit(found, ", ", -1), over = g_strsplit(gone, ", ", -1);
    g_assert_cmpuint(g_strv_length(each), ==, 2);
    g_assert_cmpuint(g_strv_length(over), ==, 2);
    struct watcher *second = w->watcher;
    struct env *second_env = w->env;
    w->watcher = first;
    w->env = first_env;
    watcher_world_kill(w);
    w->watcher = second;
    w->env = second_env;
    watcher_world_free(w);
}

/* After a restore everything that was made since is without a record: nobody is told. */
static void test_restored(void)
{
    struct watcher_world *w = fresh();
    change_object(
        w, "repair_brake", "cluster",
        json_make("{s:i,s:s,s:b}", "since", 1600000000, "why", "a test", "restored", true));
    report_more(w, NODE2, lists("guests", guest_of(STRANGER, "new1")));
    passes(w, 3 * INTERVAL);
    assert_events(w, "", "");
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/things/guest#RCV-26", test_guest);
    g_test_add_func("/things/images#RCV-26", test_images);
    g_test_add_func("/things/bridge#RCV-26", test_bridge);
    g_test_add_func("/things/looks#RCV-26", test_looks);
    g_test_add_func("/things/data-of-a-back-end#RCV-26,SAF-54", test_data);
    g_test_add_func("/things/discards#RCV-23", test_discards);
    g_test_add_func("/things/known", test_known);
    g_test_add_func("/things/unseen#SAF-91", test_unseen);
    g_test_add_func("/things/return", test_return);
    g_test_add_func("/things/ignored", test_ignored);
    g_test_add_func("/things/ignored/in-an-upgrade#RCV-26,FUT-12", test_ignored_in_an_upgrade);
    g_test_add_func("/things/many", test_many);
    g_test_add_func("/things/many-processes#RCV-26", test_many_processes);
    g_test_add_func("/things/two-watchers#RCV-26", test_two_watchers);
    g_test_add_func("/things/restored", test_restored);
    return g_test_run();
}

/* Resources in a status of work that nobody has: what is on record of them afterwards, by what
 * their back end has (RCV-73 to 78, 83 to 85 as far as there are operations). */
#include <string.h>

#include "core/config/fault.h"
#include "core/repair/duties.h"
#include "unit/core/world/volume_world.h"

#define GIB (1024 * MIB(1))
#define DATA7 VOLUME1 ".7"
#define DATA8 VOLUME1 ".8"
#define VOLUME1_IS "volume data1 (" VOLUME1 "): "

static struct watcher *watcher;
static struct env *watcher_env;
static const char *silent_node; /* gives no report; NULL: all do */

/* --- the world --- */

static json_t *report(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    if (!g_strcmp0(silent_node, to_node)) {
        fettle_set_error(error, UNREACHABLE, "it is silent");
        return NULL;
    }
    json_t *guests = json_array();
    if (!strcmp(to_node, NODE1))
        json_array_append_new(guests, json_make("{s:s,s:i,s:s,s:s}", "instance", WEB1, "generation",
                                                4, "state", "running", "mirror", "ready"));
    return json_make("{s:s,s:i,s:i,s:i,s:i,s:o}", "node", to_node, "memory_total", 4096,
                     "memory_free", 4096, "disk_total", 4096, "disk_free", 4096, "guests", guests);
}

static void start_task(void *data)
{
    g_autoptr(GError) error = NULL;
    watcher_start(watcher, &error);
    g_assert_no_error(error);
}

static void start_watcher(void)
{
    watcher_env = fake_process(world.world, NODE1, ROLE_WATCHER);
    watcher = watcher_new(watcher_env, &repair_duties);
    fake_run(watcher_env, start_task, NULL);
}

static void stop_watcher(void)
{
    fake_kill(watcher_env);
    watcher_free(g_steal_pointer(&watcher));
}

static json_t *volume_in(const char *status, const char *data)
{
    return with(with(object_volume1(), "status", json_string(status)), "data", json_string(data));
}

static struct change *put_volume(json_t *object)
{
    return put("volume", VOLUME1, 1, object);
}

/* dir1 has been there for long, and this is on record. */
static void set_up(GPtrArray *more)
{
    volumes_set_up(more);
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    fake_script(world.world, NULL, ROLE_NODED, "node_report", report, NULL);
    silent_node = NULL;
}

static void begin(void)
{
    volumed_start(1);
    volumed_start(2);
    fake_advance(world.world, 20000); /* they serve it */
    start_watcher();
    fake_advance(world.world, 15000);
}

static void tear_down(void)
{
    stop_watcher();
    volumes_tear_down();
}

static const struct config *config(void)
{
    return wconf_config(world.wconf);
}

/* "recovered RCV-73 creating>available", of those about it. */
static char *told(const char *uuid)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) all = config_list(config(), "decision");
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        if (strcmp(decision->subject, uuid) != 0 || decision->event == EVENT_NONE)
            continue;
        g_ptr_array_add(words, g_strdup_printf("%s %s %s>%s",
                                               enum_word(&event_kind_words, (int)decision->event),
                                               decision->rule, decision->task, decision->new));
    }
    g_ptr_array_add(words, NULL);
    return g_strjoinv("; ", (char **)words->pdata);
}

/* --- the arrows --- */

struct arrow {
    const char *status, *data; /* on record */
    const char *name;          /* that is there; NULL: nothing is */
    guint64 bytes;
    bool whole, open;
    const char *then; /* as volume_said() */
    const char *rule;
    bool alert;
};

static void check(const struct arrow *arrow, const char *uuid)
{
    g_autofree char *events = told(uuid);
    g_autofree char *rule = g_strdup_printf(" %s %s>", arrow->rule, arrow->status);
    if (g_str_has_prefix(arrow->then, "stays")) {
        g_assert_cmpstr(events, ==, "");
        return;
    }
    assert_says(volume_said(uuid), arrow->then);
    g_assert_nonnull(strstr(events, "recovered"));
    g_assert_nonnull(strstr(events, rule));
    g_assert_true(arrow->alert == (strstr(events, "alert") != NULL));
}

static void test_arrow_of_volume(const struct arrow *arrow)
{
    set_up(changes_of(put_volume(volume_in(arrow->status, arrow->data)), NULL));
    if (arrow->name)
        fake_volumes_put(volumes, DIR1, arrow->name, arrow->bytes, arrow->whole);
    if (arrow->open)
        fake_volumes_lock(volumes, arrow->name, true);
    guint there = fake_volumes_count(volumes);
    begin();
    check(arrow, VOLUME1);
    g_assert_cmpuint(fake_volumes_count(volumes), ==, there); /* it removes nothing (RCV-22) */
    tear_down();
}

#define ARROWS(...)                                                                                \
    static const struct arrow arrows[] = {__VA_ARGS__};                                            \
    for (guint i = 0; i < G_N_ELEMENTS(arrows); i++) {                                             \
        g_test_message("arrow %u", i);                                                             \
        test_arrow_of_volume(&arrows[i]);                                                          \
    }

static void test_created(void)
{
    ARROWS({"creating", "", DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-73", false},
           {"downloading", "", DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-73", false},
           {"creating", "", DATA7, 2 * GIB, false, false, "error 2 GiB, no data", "RCV-73", false},
           {"creating", "", DATA7, GIB, true, false, "error 2 GiB, no data", "RCV-73", false},
           {"creating", "", NULL, 0, false, false, "error 2 GiB, no data", "RCV-73", false})
}

static void test_deleted(void)
{
    ARROWS(
        {"deleting", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-73", true},
        {"deleting", DATA7, NULL, 0, false, false, "gone", "RCV-73", false},
        {"deleting", "", NULL, 0, false, false, "gone", "RCV-73", false},
        {"deleting", DATA7, DATA7, 2 * GIB, false, false, "error_deleting 2 GiB", "RCV-73", true})
}

static void test_extended(void)
{
    ARROWS({"extending", DATA7, DATA7, 3 * GIB, true, false, "available 3 GiB", "RCV-74", false},
           {"extending", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-74", false},
           {"extending", DATA7, DATA7, 2 * GIB + 4096, true, false, "error_extending 2 GiB",
            "RCV-74", true})
}

/* What is moved is where the record has it, until the end of that. */
static void test_others(void)
{
    ARROWS({"uploading", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-73", false},
           {"migrating", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-76", false},
           {"retyping", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-76", false},
           {"migrating", DATA7, DATA7, 2 * GIB, true, true, "error 2 GiB", "RCV-82", true},
           {"backing-up", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-77", false},
           {"restoring-backup", DATA7, DATA7, 2 * GIB, true, false, "available 2 GiB", "RCV-77",
            false},
           {"restoring-backup", DATA7, DATA7, 2 * GIB, false, false, "error_restoring 2 GiB",
            "RCV-77", false},
           {"backing-up", "", NULL, 0, false, false, "error 2 GiB, no data", "RCV-82", true},
           {"uploading", "", DATA7, GIB, true, false, "error 2 GiB, no data", "RCV-82", true},
           /* A guest has it that nobody knows of. */
           {"deleting", DATA7, DATA7, 2 * GIB, true, true, "error 2 GiB", "RCV-82", true},
           {"creating", "", DATA7, 2 * GIB, true, true, "stays", "", false})
}

/* --- of a snapshot --- */

static void test_snapshots(void)
{
    static const struct arrow arrows[] = {
        {"creating", "", VOLUME2 ".8", 2 * GIB, true, false, "available 2 GiB", "RCV-78", false},
        {"creating", "", NULL, 0, false, false, "error 2 GiB, no data", "RCV-78", false},
        {"deleting", VOLUME2 ".8", VOLUME2 ".8", 2 * GIB, true, false, "available 2 GiB", "RCV-78",
         true},
        {"deleting", VOLUME2 ".8", NULL, 0, false, false, "gone", "RCV-78", false},
        {"updating", VOLUME2 ".8", VOLUME2 ".8", 2 * GIB, true, false, "available 2 GiB", "RCV-78",
         false},
        {"backing-up", "", NULL, 0, false, false, "error 2 GiB, no data", "RCV-78", false}};
    for (guint i = 0; i < G_N_ELEMENTS(arrows); i++) {
        const struct arrow *arrow = &arrows[i];
        json_t *snapshot = with(with(object_snapshot2(), "status", json_string(arrow->status)),
                                "data", json_string(arrow->data));
        g_test_message("arrow %u", i);
        set_up(
            changes_of(put_volume(object_volume1()), put("snapshot", VOLUME2, 1, snapshot), NULL));
        fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
        if (arrow->name)
            fake_volumes_put_as(volumes, DIR1, RESOURCE_SNAPSHOT, arrow->name, arrow->bytes,
                                arrow->whole);
        begin();
        check(arrow, VOLUME2);
        tear_down();
    }
}

/* --- of a backup --- */

/* Its length is that on record, whatever its volume has. Of one that was being made nobody knows
 * length and sum, so its data is never named. */
static void test_backups(void)
{
    static const char named[] = BACKUP3 ".9";
    static const struct arrow arrows[] = {
        {"creating", "", named, 4096, true, false, "error 2 GiB, no data", "RCV-77", false},
        {"creating", "", named, 2 * GIB, true, false, "error 2 GiB, no data", "RCV-77", false},
        {"creating", "", named, 0, true, false, "error 2 GiB, no data", "RCV-77", false},
        {"creating", "", NULL, 0, false, false, "error 2 GiB, no data", "RCV-77", false},
        {"restoring", named, named, 4096, true, false, "available 2 GiB", "RCV-77", false},
        {"restoring", "", named, 4096, true, false, "error 2 GiB, no data", "RCV-82", true},
        {"deleting", named, named, 4096, true, false, "available 2 GiB", "RCV-77", false},
        {"deleting", named, NULL, 0, false, false, "gone", "RCV-77", false},
        {"deleting", "", named, 4096, true, false, "error_deleting 2 GiB, no data", "RCV-77",
         false}};
    for (guint i = 0; i < G_N_ELEMENTS(arrows); i++) {
        const struct arrow *arrow = &arrows[i];
        json_t *backup = with(object_backup3(), "status", json_string(arrow->status));
        if (!*arrow->data)
            with(with(with(backup, "data", json_string("")), "bytes", json_integer(0)), "sum",
                 json_string(""));
        g_test_message("arrow %u", i);
        set_up(changes_of(put("backup", BACKUP3, 1, backup), NULL));
        if (arrow->name)
            fake_volumes_put_as(volumes, DIR1, RESOURCE_BACKUP, arrow->name, arrow->bytes,
                                arrow->whole);
        begin();
        check(arrow, BACKUP3);
        tear_down();
    }
}

/* RCV-83 to 85, of records: nothing imports. As with backups nobody knows sums of what was being
 * saved, so what there is of that is never named. */
static void test_images(void)
{
    static const char named[] = BACKUP3 ".8";
    static const struct arrow arrows[] = {
        {"saving", named, named, 4096, true, false, "active 2 GiB", "RCV-83", false},
        {"saving", "", named, 4096, true, false, "killed 2 GiB, no data", "RCV-83", true},
        {"saving", "", NULL, 0, false, false, "queued 0 GiB, no data", "RCV-83", false},
        {"uploading", named, named, 4096, true, false, "active 2 GiB", "RCV-84", false},
        {"importing", "", named, 4096, false, false, "queued 0 GiB, no data", "RCV-84", false},
        {"importing", "", NULL, 0, false, false, "queued 0 GiB, no data", "RCV-84", false},
        {"deleting", named, named, 4096, true, false, "active 2 GiB", "RCV-85", true},
        {"deleting", named, NULL, 0, false, false, "gone", "RCV-85", false},
        {"pending_delete", named, named, 4095, true, false, "killed 2 GiB", "RCV-85", true},
        {"deleting", "", named, 4096, true, false, "killed 2 GiB, no data", "RCV-85", true}};
    for (guint i = 0; i < G_N_ELEMENTS(arrows); i++) {
        const struct arrow *arrow = &arrows[i];
        json_t *image = with(object_image(BACKUP3, 4096), "status", json_string(arrow->status));
        if (!*arrow->data)
            with(with(with(image, "data", json_string("")), "size", json_integer(0)),
                 "os_hash_value", json_string(""));
        g_test_message("arrow %u", i);
        set_up(changes_of(put("image", BACKUP3, 1, image), NULL));
        if (arrow->name)
            fake_volumes_put_as(volumes, DIR1, RESOURCE_IMAGE, arrow->name, arrow->bytes,
                                arrow->whole);
        begin();
        check(arrow, BACKUP3);
        tear_down();
    }
}

/* A volume goes after its snapshots, and not while it has one that is whole. */
static void test_cascade(void)
{
    for (guint whole = 0; whole < 2; whole++) {
        set_up(changes_of(put_volume(volume_in("deleting", DATA7)),
                          put("snapshot", VOLUME2, 1,
                              with(object_snapshot2(), "status", json_string("deleting"))),
                          NULL));
        if (whole)
            fake_volumes_put_as(volumes, DIR1, RESOURCE_SNAPSHOT, VOLUME2 ".8", 2 * GIB, true);
        begin();
        fake_advance(world.world, 30000);
        assert_says(volume_said(VOLUME2), whole ? "available 2 GiB" : "gone");
        const struct volume *volume = config_get(config(), "volume", VOLUME1, NULL);
        g_assert_true(!whole == !volume);
        g_assert_true(!volume || volume->status == VOLUME_ERROR_DELETING);
        tear_down();
    }
}

/* --- who is none of its patients --- */

/* RCV-13 */
static void test_row(void)
{
    set_up(changes_of(put_volume(volume_in("deleting", DATA7)),
                      put("worker", ROW1, 1, object_row1()), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    start_watcher();
    fake_advance(world.world, 60000);
    g_autofree char *events = told(VOLUME1);
    g_assert_cmpstr(events, ==, "");
    assert_says(volume_said(VOLUME1), "deleting 2 GiB");
    tear_down();
}

/* SAF-54, 82: nothing is swept of what is still to be judged. */
static void test_sweep_waits(void)
{
    set_up(changes_of(put_volume(volume_in("creating", "")), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    volumed_start(1);
    fake_advance(world.world, 3 * 3600 * 1000);
    g_assert_true(fake_volumes_has(volumes, DATA7));
    start_watcher();
    fake_advance(world.world, 15000);
    assert_says(volume_said(VOLUME1), "available 2 GiB");
    tear_down();
}

/* SAF-53: what stands in the trash is nobody's any more; of what is whole the youngest counts. */
static void test_which_data(void)
{
    g_autofree char *key = config_trash_key(DIR1, DATA8);
    set_up(changes_of(put_volume(volume_in("creating", "")),
                      put("trash", key, 1, object_trash(DATA8)), NULL));
    fake_volumes_put(volumes, DIR1, VOLUME1 ".5", 2 * GIB, true);
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    fake_volumes_put(volumes, DIR1, DATA8, 2 * GIB, true);
    fake_volumes_lock(volumes, DATA8, true); /* it stays for now */
    begin();
    const struct volume *volume = config_get(config(), "volume", VOLUME1, NULL);
    g_assert_cmpstr(volume->data, ==, DATA7);
    tear_down();
}

/* --- what cannot be looked at --- */

/* RCV-35 to 40: tried, counted, given up, and judged anew by who can look. */
static void test_blind(void)
{
    set_up(changes_of(put_volume(volume_in("deleting", DATA7)), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    start_watcher();
    fake_advance(world.world, 60000);
    assert_says(volume_said(VOLUME1), "deleting 2 GiB");
    g_assert_cmpuint(config_count(config(), "stuck"), ==, 1);
    fake_advance(world.world, 6 * 60000);
    assert_says(volume_said(VOLUME1), "error 2 GiB");
    g_assert_cmpuint(config_count(config(), "stuck"), ==, 0);
    const struct fault *fault = fault_of(config(), "volume", VOLUME1);
    g_assert_true(fault->blind);
    g_assert_cmpstr(fault->task, ==, "deleting");
    volumed_start(1);
    fake_advance(world.world, 90000);
    assert_says(volume_said(VOLUME1), "available 2 GiB");
    g_assert_cmpuint(config_count(config(), "fault"), ==, 0);
    tear_down();
}

/* Who could look at last, and found nothing, has said it once. */
static void test_blind_then_error(void)
{
    guint64 version = 0, later = 0;
    set_up(changes_of(put_volume(volume_in("creating", "")), NULL));
    start_watcher();
    fake_advance(world.world, 8 * 60000);
    g_assert_true(fault_of(config(), "volume", VOLUME1)->blind);
    volumed_start(1);
    fake_advance(world.world, 90000);
    assert_says(volume_said(VOLUME1), "error 2 GiB, no data");
    g_assert_null(fault_of(config(), "volume", VOLUME1));
    config_get(config(), "volume", VOLUME1, &version);
    fake_advance(world.world, 10 * 60000);
    config_get(config(), "volume", VOLUME1, &later);
    g_assert_cmpuint(version, ==, later);
    tear_down();
}

/* SAF-52: what is judged anew has its data until then; what is settled has none that is unnamed. */
static void test_sweep_of_faults(void)
{
    static const char *const words[] = {"blind", "again", "alone"};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        json_t *fault = json_make("{s:s,s:s,s:i,s:s,s:s}", "subject_kind", "volume", "subject",
                                  VOLUME1, "at_us", 5, "message", "so", "task", "creating");
        bool settled = !strcmp(words[i], "alone");
        if (!settled)
            with(fault, words[i], json_true());
        set_up(changes_of(put_volume(volume_in("error", "")),
                          put("fault", "volume/" VOLUME1, 1, fault), NULL));
        fake_volumes_put(volumes, DIR1, VOLUME1 ".1", 2 * GIB, true);
        volumed_start(1);
        fake_advance(world.world, 3 * 3600 * 1000);
        g_assert_true(fake_volumes_has(volumes, VOLUME1 ".1") != settled);
        start_watcher();
        fake_advance(world.world, 90000);
        assert_says(volume_said(VOLUME1), settled ? "error 2 GiB, no data" : "available 2 GiB");
        tear_down();
    }
}

/* A back end that hangs holds up no answer, and what it cannot say is no absence. */
static void test_hangs(void)
{
    set_up(changes_of(put_volume(volume_in("deleting", DATA7)), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    volumed_start(1);
    volumed_start(2);
    fake_advance(world.world, 20000);
    fake_volumes_hang(volumes, DIR1, true);
    start_watcher();
    fake_advance(world.world, 150000);
    assert_says(volume_said(VOLUME1), "deleting 2 GiB");
    fake_volumes_hang(volumes, DIR1, false);
    fake_advance(world.world, 150000);
    assert_says(volume_said(VOLUME1), "available 2 GiB");
    tear_down();
}

/* RCV-30: what is in ERROR goes with a person's word. */
static void test_reset(void)
{
    set_up(changes_of(put_volume(volume_in("deleting", DATA7)), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, false);
    begin();
    assert_says(volume_said(VOLUME1), "error_deleting 2 GiB");
    g_assert_nonnull(fault_of(config(), "volume", VOLUME1));
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", VOLUME1,
                                 "status", "available")));
    g_assert_null(fault_of(config(), "volume", VOLUME1));
    tear_down();
}

/* SAF-122: rows of before a restore end without an act, and what was being deleted is judged. */
static void test_restored(void)
{
    set_up(changes_of(put("repair_brake", "cluster", 1,
                          json_make("{s:i,s:s,s:b}", "since", 1, "why", "restored", "restored", 1)),
                      put_volume(volume_in("deleting", DATA7)),
                      put("worker", ROW1, 1, object_row1()), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    begin();
    fake_advance(world.world, 3600 * 1000);
    assert_says(volume_said(VOLUME1), "deleting 2 GiB");
    g_free(job_locks(&world, 17, "x cluster/BGL", false));
    g_autofree char *said = job_change(&world, 17, "adopt_restored",
                                       changes_of(del("repair_brake", "cluster", 1), NULL));
    g_assert_nonnull(strstr(said, "serial"));
    g_assert_cmpuint(config_count(config(), "worker"), ==, 0);
    fake_advance(world.world, 90000); /* the first look may come before they serve it */
    assert_says(volume_said(VOLUME1), "available 2 GiB");
    g_assert_true(fake_volumes_has(volumes, DATA7));
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "remove"), ==, 0);
    tear_down();
}

/* --- the method --- */

static char *settle(const char *status, const char *data, guint64 version)
{
    return storage_verdicts(storage_ask(
        watcher_env, "settle_resources",
        json_make("{s:[{s:s,s:s,s:I,s:s,s:s,s:s,s:s,s:s}]}", "items", "resource_type", "Volume",
                  "resource", VOLUME1, "version", (json_int_t)version, "status", status, "data",
                  data, "rule", "RCV-73", "level", "info", "summary", "It is so.")));
}

static void test_method(void)
{
    set_up(changes_of(put_volume(volume_in("creating", "")), NULL));
    watcher_env = fake_process(world.world, NODE1, ROLE_WATCHER);
    assert_says(settle("available", "", 1),
                "refused: " VOLUME1_IS "status: available, but it has no data");
    assert_says(settle("deleting", "", 1), "refused: status: a volume can be no \"deleting\"");
    assert_says(settle("available", VOLUME2 ".7", 1),
                "refused: " VOLUME1_IS "data: \"" VOLUME2 ".7\" is not " VOLUME1 ".CLAIM (SAF-52)");
    assert_says(settle("error", "", 2),
                "refused: volume data1 has changed since it was looked at (SAF-80)");
    assert_says(settle("available", DATA7, 1), "passed");
    guint64 version = 0;
    config_get(config(), "volume", VOLUME1, &version);
    assert_says(settle("error", "", version),
                "refused: volume data1 is available; nothing was left of it");
    volumes_tear_down();
}

static char *discard(const char *name)
{
    return storage_ask(
        watcher_env, "discard_data",
        json_make("{s:s,s:s,s:s}", "backend", DIR1, "resource_type", "Volume", "name", name));
}

/* RCV-23: only on a person's word, and never what a record names, or may come to. */
static void test_discard(void)
{
    set_up(changes_of(put_volume(volume_in("available", VOLUME1 ".7")),
                      put("volume", VOLUME2, 1,
                          with(with(volume_in("error", ""), "uuid", json_string(VOLUME2)), "name",
                               json_string("data2"))),
                      NULL));
    watcher_env = fake_process(world.world, NODE1, ROLE_WATCHER);
    const char *other = "eeeeeeee-9999-4000-8000-000000000009.1";
    const char *later = "eeeeeeee-9999-4000-8000-000000000009.99999";
    assert_says(discard(other), "wrong_state: recovery_rectify_unstable is not all");
    volumes_set_cluster(json_make("{s:s}", "recovery_rectify_unstable", "all"));
    assert_says(discard(VOLUME1 ".7"), "superseded: " VOLUME1 ".7 is what volume data1 has");
    assert_says(discard(VOLUME2 ".7"),
                "superseded: volume data2 has no data, and this may be its own");
    g_autofree char *claim = g_strdup_printf("superseded: %s: its claim is still to come", later);
    assert_says(discard(later), claim);
    assert_says(discard("x"), "wrong_input: name: \"x\" is no name of data");
    storage_accept("extend-volume", "data1", 3);
    assert_says(discard(VOLUME1 ".1"),
                "superseded: volume data1: work on it is on record (RCV-13)");
    storage_number(discard(other), "serial");
    g_autofree char *key = config_trash_key(DIR1, other);
    g_assert_nonnull(config_get(config(), "trash", key, NULL));
    g_autofree char *again = g_strdup_printf("superseded: %s is trash already", other);
    assert_says(discard(other), again);
    volumes_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recovery/stored/created#RCV-73,RCV-17,SAF-52", test_created);
    g_test_add_func("/recovery/stored/deleted#RCV-73,RCV-22", test_deleted);
    g_test_add_func("/recovery/stored/extended#RCV-74", test_extended);
    g_test_add_func("/recovery/stored/others#RCV-73,RCV-76,RCV-77,RCV-19,RCV-82", test_others);
    g_test_add_func("/recovery/stored/snapshots#RCV-78", test_snapshots);
    g_test_add_func("/recovery/stored/backups#RCV-77", test_backups);
    g_test_add_func("/recovery/stored/images#RCV-83,84,85", test_images);
    g_test_add_func("/recovery/stored/cascade#RCV-73", test_cascade);
    g_test_add_func("/recovery/stored/row#RCV-13", test_row);
    g_test_add_func("/recovery/stored/sweep-waits#SAF-54", test_sweep_waits);
    g_test_add_func("/recovery/stored/which-data#SAF-53", test_which_data);
    g_test_add_func("/recovery/stored/blind#RCV-35,RCV-36,RCV-39,RCV-40", test_blind);
    g_test_add_func("/recovery/stored/blind-then-error#RCV-40", test_blind_then_error);
    g_test_add_func("/recovery/stored/sweep-of-faults#SAF-52,RCV-40", test_sweep_of_faults);
    g_test_add_func("/recovery/stored/hangs#RCV-35", test_hangs);
    g_test_add_func("/recovery/stored/reset#RCV-30", test_reset);
    g_test_add_func("/recovery/stored/restored#SAF-122", test_restored);
    g_test_add_func("/recovery/stored/method#SAF-52,SAF-80,RCV-21", test_method);
    g_test_add_func("/recovery/stored/discard#RCV-23", test_discard);
    return g_test_run();
}

/* Where guests and replicas can go: room, refusals, ranking. */
#include "core/placement/placement.h"

#include "core/config/view_questions.h"

#include <string.h>

#define NODE1 "00000000-0000-4000-8000-000000000001"
#define NODE2 "00000000-0000-4000-8000-000000000002"
#define NODE3 "00000000-0000-4000-8000-000000000003"
#define GROUP "00000000-0000-4000-8000-0000000000a1"

struct fixture {
    struct config *config;
    GPtrArray *reports;
    guint instances;
};

static void report_unref(void *report)
{
    node_report_free(report);
}

static void put(struct fixture *fixture, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(fixture->config, kind, key, object);
    change->version = config_serial(fixture->config) + 1;
    config_apply(fixture->config, change, &error);
    g_assert_no_error(error);
    config_set_position(fixture->config, 1, change->version);
}

static void put_node(struct fixture *fixture, const char *uuid, const char *name, const char *flag)
{
    put(fixture, "node", uuid,
        json_make("{ss ss ss ss sb sb}", "uuid", uuid, "name", name, "primary_ip", "10.0.0.1",
                  "group", GROUP, "offline", g_str_equal(flag, "offline"), "drained",
                  g_str_equal(flag, "drained")));
}

static struct node_report *put_report(struct fixture *fixture, const char *node, int memory,
                                      int disk)
{
    json_autoptr json = json_make("{ss si si si si}", "node", node, "memory_total", memory,
                                  "memory_free", memory, "disk_total", disk, "disk_free", disk);
    struct node_report *report = node_report_parse(json, RECORD_STRICT, NULL);
    g_ptr_array_add(fixture->reports, report);
    return report;
}

static void run_guest(struct node_report *report, const char *uuid)
{
    struct guest_report *guest = guest_report_new();
    g_free(guest->instance);
    guest->instance = g_strdup(uuid);
    guest->state = GUEST_RUNNING;
    g_ptr_array_add(report->guests, guest);
}

static char *put_instance(struct fixture *fixture, const char *primary, const char *secondary,
                          int memory, int disk, int generation)
{
    guint number = ++fixture->instances;
    char *uuid = g_strdup_printf("00000000-0000-4000-8000-0000000001%02u", number);
    g_autofree char *name = g_strdup_printf("web%u", number);
    put(fixture, "instance", uuid,
        json_make("{ss ss ss si s[{ss si}] ss ss si}", "uuid", uuid, "name", name, "disk_template",
                  "mirror", "memory", memory, "disks", "uuid", uuid, "size", disk, "primary_node",
                  primary, "secondary_node", secondary, "generation", generation));
    return uuid;
}

static void set_up(struct fixture *fixture, const void *data)
{
    fixture->config = config_new();
    fixture->reports = g_ptr_array_new_with_free_func(report_unref);
    put_node(fixture, NODE1, "node1", "");
    put_node(fixture, NODE2, "node2", "");
    put_node(fixture, NODE3, "node3", "");
}

static void tear_down(struct fixture *fixture, const void *data)
{
    config_free(fixture->config);
    g_ptr_array_unref(fixture->reports);
}

static void assert_room(struct fixture *fixture, guint report, gint64 memory, gint64 disk)
{
    struct placement_room room;
    placement_room(fixture->config, fixture->reports->pdata[report], NULL, &room);
    g_assert_cmpint(room.memory, ==, memory);
    g_assert_cmpint(room.disk, ==, disk);
}

/* --- room --- */

static void test_room_promised(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 1000, 5000);
    put_report(fixture, NODE2, 1000, 5000);
    g_free(put_instance(fixture, NODE1, NODE2, 300, 700, 1));
    assert_room(fixture, 0, 700, 4300); /* memory is promised to the primary only */
    assert_room(fixture, 1, 1000, 4300);
}

static void test_room_running_is_not_counted_twice(struct fixture *fixture, const void *data)
{
    struct node_report *report = put_report(fixture, NODE1, 1000, 5000);
    g_autofree char *uuid = put_instance(fixture, NODE1, "", 300, 700, 1);
    run_guest(report, uuid);
    report->memory_free = 650; /* its memory is in use by now */
    report->disk_free = 4300;
    assert_room(fixture, 0, 650, 4300);
}

static void put_next(struct fixture *fixture, const char *uuid, int memory)
{
    json_t *instance = config_object_json(fixture->config, "instance", uuid);
    json_object_set_new(instance, "memory_next", json_integer(memory));
    put(fixture, "instance", uuid, instance);
}

static void test_room_more_at_the_next_start(struct fixture *fixture, const void *data)
{
    struct node_report *report = put_report(fixture, NODE1, 1000, 5000);
    g_autofree char *uuid = put_instance(fixture, NODE1, "", 300, 700, 1);
    run_guest(report, uuid);
    report->memory_free = 650; /* without what it gets more, which nobody else may have */
    put_next(fixture, uuid, 500);
    assert_room(fixture, 0, 450, 4300);
    put_next(fixture, uuid, 100);
    assert_room(fixture, 0, 650, 4300);
}

static void test_room_untouched_memory_is_not_given_away(struct fixture *fixture, const void *data)
{
    struct node_report *report = put_report(fixture, NODE1, 1000, 5000);
    g_autofree char *uuid = put_instance(fixture, NODE1, "", 900, 4900, 1);
    run_guest(report, uuid);
    assert_room(fixture, 0, 100, 100); /* although the node says that nearly all is free */
}

static void test_room_images_not_made_yet(struct fixture *fixture, const void *data)
{
    struct node_report *report = put_report(fixture, NODE1, 1000, 5000);
    g_free(put_instance(fixture, NODE1, "", 100, 700, 0));
    report->disk_free = 1000;
    assert_room(fixture, 0, 900, 300);
}

static void put_reservation(struct fixture *fixture, const char *uuid, const char *name,
                            const char *node, int memory, int disk)
{
    put(fixture, "reservation", uuid,
        json_make("{ss ss s{ss ss} s[{ss si si}]}", "uuid", uuid, "name", name, "owner", "job",
                  "18", "livelock", "job-18", "rooms", "node", node, "memory", memory, "disk",
                  disk));
}

/* Room that is reserved counts, until it turns into an instance; never twice, never not at all. */
static void test_room_reserved(struct fixture *fixture, const void *data)
{
    static const char *const uuid = "00000000-0000-4000-8000-000000000101";
    put_report(fixture, NODE1, 8192, 5000);
    put_reservation(fixture, uuid, "web1", NODE1, 6144, 700);
    assert_room(fixture, 0, 2048, 4300);
    struct change *gone = config_delete(fixture->config, "reservation", uuid);
    config_apply(fixture->config, gone, NULL);
    change_free(gone);
    assert_room(fixture, 0, 8192, 5000);
    g_free(put_instance(fixture, NODE1, "", 6144, 700, 0));
    assert_room(fixture, 0, 2048, 4300);
}

static void test_reserved_is_named(struct fixture *fixture, const void *data)
{
    struct placement_need need = {.what = "the primary node", .memory = 4096};
    g_autoptr(GError) error = NULL;
    put_report(fixture, NODE1, 8192, 5000);
    put_reservation(fixture, "00000000-0000-4000-8000-000000000101", "web1", NODE1, 6144, 700);
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(error->message, ==,
                    "no node can be the primary node: node1 has 2048 MiB of memory left, 4096 MiB "
                    "are needed; 6144 MiB are reserved for web1 (job 18); node2 does not answer; "
                    "node3 does not answer");
}

/* --- choice --- */

static void assert_choice(struct fixture *fixture, const struct placement_need *need,
                          const char *name)
{
    g_autoptr(GError) error = NULL;
    const struct node *node = placement_choose(fixture->config, fixture->reports, need, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(node->name, ==, name);
}

static void test_choose_most_memory(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 1000, 9000);
    put_report(fixture, NODE2, 3000, 5000);
    put_report(fixture, NODE3, 2000, 9900);
    struct placement_need need = {.what = "it", .memory = 100, .disk = 100};
    assert_choice(fixture, &need, "node2");
    need.rank_by_disk = true;
    assert_choice(fixture, &need, "node3");
    need.excluded[0] = NODE3;
    need.because[0] = "is out";
    assert_choice(fixture, &need, "node1");
    need.prefer = NODE2;
    assert_choice(fixture, &need, "node2");
}

static void test_choose_ties(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE3, 1000, 5000);
    put_report(fixture, NODE2, 1000, 5000);
    put_report(fixture, NODE1, 1000, 5000);
    struct placement_need need = {.what = "it", .memory = 100};
    assert_choice(fixture, &need, "node1");
}

static void test_choose_none(struct fixture *fixture, const void *data)
{
    g_autoptr(GError) error = NULL;
    put_node(fixture, NODE2, "node2", "offline");
    put_report(fixture, NODE1, 1000, 50);
    struct placement_need need = {.what = "the secondary node of instance \"web1\"", .disk = 100};
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_true(fettle_error_is(error, NO_RESOURCES));
    g_assert_cmpstr(error->message, ==,
                    "no node can be the secondary node of instance \"web1\": node1 has 50 MiB of "
                    "disk left, 100 MiB are needed; node2 is offline; node3 does not answer");
}

static void test_choose_none_each_reason(struct fixture *fixture, const void *data)
{
    g_autoptr(GError) error = NULL;
    put_node(fixture, NODE2, "node2", "drained");
    put_report(fixture, NODE2, 1000, 1000);
    put_report(fixture, NODE3, 1000, 1000);
    g_free(put_instance(fixture, NODE3, "", 2000, 1, 1)); /* more than there is */
    struct placement_need need = {
        .what = "it", .memory = 64, .excluded = {NODE1}, .because = {"is its primary node"}};
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(error->message, ==,
                    "no node can be it: node1 is its primary node; node2 is drained; node3 has 0 "
                    "MiB of memory left, 64 MiB are needed");
}

static void test_choose_empty_cluster(struct fixture *fixture, const void *data)
{
    g_autoptr(GError) error = NULL;
    struct placement_need need = {.what = "it"};
    config_reset(fixture->config);
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(error->message, ==, "no node can be it: the cluster has no nodes");
}

/* --- policy --- */

static void put_cluster(struct fixture *fixture, double memory_ratio, double disk_ratio)
{
    put(fixture, "cluster", GROUP,
        json_make("{ss ss ss sf sf}", "uuid", GROUP, "name", "c", "master_node", NODE1,
                  "memory_ratio", memory_ratio, "disk_ratio", disk_ratio));
}

static void test_overcommit_by_policy_only(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 1000, 5000);
    g_free(put_instance(fixture, NODE1, "", 900, 4900, 0));
    put_cluster(fixture, 1, 1);
    assert_room(fixture, 0, 100, 100);
    put_cluster(fixture, 1.5, 2);
    assert_room(fixture, 0, 600, 5100);
    put_cluster(fixture, 0.5, 1);
    assert_room(fixture, 0, -400, 100);
}

static void test_overcommit_of_what_is_used(struct fixture *fixture, const void *data)
{
    struct node_report *report = put_report(fixture, NODE1, 1000, 5000);
    put_cluster(fixture, 1.5, 1);
    report->memory_free = 100; /* somebody else uses it */
    assert_room(fixture, 0, 600, 5000);
}

/* --- what counts where --- */

static void test_shared_images_take_no_space(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 1000, 5000);
    g_autofree char *uuid = put_instance(fixture, NODE1, "", 300, 700, 1);
    json_t *shared = config_object_json(fixture->config, "instance", uuid);
    json_object_set_new(shared, "disk_template", json_string("sharedfile"));
    put(fixture, "instance", uuid, shared);
    assert_room(fixture, 0, 700, 5000);
    /* They take that of their own folder, and nothing of a node counts there. */
    g_free(put_instance(fixture, NODE1, "", 300, 700, 1));
    struct allocated folder = config_promised(fixture->config, SHARED_FOLDER_ROOM);
    g_assert_cmpuint(folder.disk, ==, 700);
    g_assert_cmpuint(folder.disk_waiting, ==, 0);
    g_assert_cmpuint(folder.memory, ==, 0);
    record_autoptr(change) gone = config_delete(fixture->config, "instance", uuid);
    g_assert_true(config_apply(fixture->config, gone, NULL));
    folder = config_promised(fixture->config, SHARED_FOLDER_ROOM);
    g_assert_cmpuint(folder.disk, ==, 0);
}

static void test_migration_counts_on_both(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 1000, 5000);
    put_report(fixture, NODE2, 1000, 5000);
    g_autofree char *uuid = put_instance(fixture, NODE1, "", 300, 700, 1);
    json_t *moving = config_object_json(fixture->config, "instance", uuid);
    json_object_set_new(moving, "disk_template", json_string("file"));
    json_object_set_new(moving, "migration_node", json_string(NODE2));
    put(fixture, "instance", uuid, moving);
    assert_room(fixture, 0, 700, 4300);
    assert_room(fixture, 1, 700, 4300);
}

static void test_sums_agree(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 1000, 5000);
    put_report(fixture, NODE2, 1000, 5000);
    g_free(put_instance(fixture, NODE1, NODE2, 300, 700, 1));
    g_autofree char *uuid = put_instance(fixture, NODE1, "", 400, 1, 0);
    struct placement_sums *sums = placement_sums_new(fixture->config, fixture->reports);
    struct placement_need need = {.what = "it", .memory = 400, .sums = sums};
    assert_choice(fixture, &need, "node2");
    /* What if the second one stood on node2? */
    const struct instance *before = config_get(fixture->config, "instance", uuid, NULL);
    record_autoptr(instance) after = instance_copy(before);
    g_free(after->primary_node);
    after->primary_node = g_strdup(NODE2);
    placement_sums_move(sums, before, after);
    need.memory = 650;
    assert_choice(fixture, &need, "node1");
    placement_sums_move(sums, after, NULL);
    assert_choice(fixture, &need, "node2");
    placement_sums_free(sums);
}

/* What the configuration daemon counts leads to the same room as what is counted here. */
static void test_sums_given(struct fixture *fixture, const void *data)
{
    g_autoptr(GError) error = NULL;
    put_report(fixture, NODE1, 1000, 5000);
    put_report(fixture, NODE2, 1000, 5000);
    g_autofree char *runs = put_instance(fixture, NODE1, NODE2, 300, 700, 1);
    g_autofree char *waits = put_instance(fixture, NODE1, "", 400, 900, 0);
    run_guest(fixture->reports->pdata[0], runs);
    put_next(fixture, runs, 500);
    ((struct node_report *)fixture->reports->pdata[0])->memory_free = 650;
    json_autoptr json =
        json_make("{s:[{s:s,s:[s]},{s:s}]}", "nodes", "node", NODE1, "guests", runs, "node", NODE2);
    record_autoptr(promised_args) args = promised_args_parse(json, RECORD_STRICT, &error);
    g_assert_no_error(error);
    json_autoptr answer = view_questions_answer(fixture->config, "promised", args, &error);
    record_autoptr(promised_result) result = promised_result_parse(answer, RECORD_STRICT, &error);
    g_assert_no_error(error);
    struct placement_sums *sums = placement_sums_given(fixture->reports, result->nodes, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < fixture->reports->len; i++) {
        struct placement_room counted, told;
        placement_room(fixture->config, fixture->reports->pdata[i], NULL, &counted);
        placement_room(fixture->config, fixture->reports->pdata[i], sums, &told);
        g_assert_cmpint(memcmp(&counted, &told, sizeof(told)), ==, 0);
    }
    /* Without one of them: as if it were not there. */
    const struct instance *waiting = config_get(fixture->config, "instance", waits, NULL);
    placement_sums_move(sums, waiting, NULL);
    struct placement_room room;
    placement_room(fixture->config, fixture->reports->pdata[0], sums, &room);
    g_assert_cmpint(room.memory, ==, 450);
    g_assert_cmpint(room.disk, ==, 4300);
    placement_sums_move(sums, config_get(fixture->config, "instance", runs, NULL), NULL);
    placement_room(fixture->config, fixture->reports->pdata[0], sums, &room);
    g_assert_cmpint(room.memory, ==, 650);
    placement_sums_free(sums);
    /* An answer about other nodes. */
    g_ptr_array_remove_index(result->nodes, 0);
    g_assert_null(placement_sums_given(fixture->reports, result->nodes, &error));
    g_assert_cmpstr(error->message, ==, "the answer is for other nodes than were asked for");
}

/* --- advice and bridges --- */

static void put_advice(struct fixture *fixture, const char *node, const char *reason, int until)
{
    put(fixture, "advice", GROUP,
        json_make("{ss ss ss ss ss ss si}", "uuid", GROUP, "author", "smartd", "subject_kind",
                  "node", "subject", node, "advice", ADVICE_AVOID, "reason", reason, "until",
                  until));
}

static void test_advice(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 3000, 5000);
    put_report(fixture, NODE2, 1000, 5000);
    put_advice(fixture, NODE1, "disk sda is failing", 2000);
    struct placement_need need = {.what = "it", .memory = 100, .prefer = NODE1, .now = 1000};
    assert_choice(fixture, &need, "node2");
    need.memory = 2000;
    g_autoptr(GError) error = NULL;
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(error->message, ==,
                    "no node can be it: node1 is to be avoided until 1970-01-01 00:33:20 UTC, says "
                    "smartd: disk sda is failing; node2 has 1000 MiB of memory left, 2000 MiB are "
                    "needed; node3 does not answer");
    /* Somebody who names the node knows what he does. */
    g_assert_true(placement_fits(fixture->config, config_get(fixture->config, "node", NODE1, NULL),
                                 fixture->reports->pdata[0], &need, NULL));
    need.now = 2000;
    assert_choice(fixture, &need, "node1");
    put_advice(fixture, NODE1, "", 0);
    g_clear_error(&error);
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_true(g_str_has_prefix(
        error->message, "no node can be it: node1 is to be avoided, says smartd; node2 has "));
}

static void test_bridges(struct fixture *fixture, const void *data)
{
    put_report(fixture, NODE1, 3000, 5000);
    struct node_report *with = put_report(fixture, NODE2, 1000, 5000);
    g_ptr_array_add(with->bridges, g_strdup("br7"));
    struct nic wanted = {.mode = NIC_BRIDGED, .link = (char *)"br7"};
    struct nic routed = {.mode = NIC_ROUTED, .link = (char *)"100"};
    g_autoptr(GPtrArray) nics = g_ptr_array_new();
    struct placement_need need = {.what = "it", .memory = 100, .nics = nics};
    g_ptr_array_add(nics, &routed); /* its link is a routing table */
    assert_choice(fixture, &need, "node1");
    g_ptr_array_add(nics, &wanted);
    assert_choice(fixture, &need, "node2");
    g_autofree char *why = NULL;
    g_assert_false(placement_fits(fixture->config, config_get(fixture->config, "node", NODE1, NULL),
                                  fixture->reports->pdata[0], &need, &why));
    g_assert_cmpstr(why, ==, "has no bridge \"br7\"");
}

static void set_qemu(struct node_report *report, const char *version)
{
    g_free(report->qemu_version);
    report->qemu_version = g_strdup(version);
}

/* What goes over as it runs goes to the same QEMU or a newer one. */
static void test_versions(struct fixture *fixture, const void *data)
{
    set_qemu(put_report(fixture, NODE1, 3000, 5000), "7.2.22");
    set_qemu(put_report(fixture, NODE2, 1000, 5000), "99.1.0");
    set_qemu(put_report(fixture, NODE3, 2000, 5000), "");
    struct placement_need need = {.what = "it", .memory = 100, .qemu_from = "99.1"};
    assert_choice(fixture, &need, "node2");
    need.qemu_from = "7.2.22";
    assert_choice(fixture, &need, "node1");
    need.qemu_from = ""; /* of a node of an older version nothing is known */
    assert_choice(fixture, &need, "node1");
    need.qemu_from = "100";
    g_autoptr(GError) error = NULL;
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(
        error->message, ==,
        "no node can be it: node1 has QEMU 7.2.22, and the guest runs under 100, which "
        "is newer; node2 has QEMU 99.1.0, and the guest runs under 100, which is newer; "
        "node3 has QEMU of an unknown version, and the guest runs under 100, which is "
        "newer");
}

static void test_shared_folder(struct fixture *fixture, const void *data)
{
    static const char one[] = "00000000-0000-4000-8000-0000000000e1",
                      other[] = "00000000-0000-4000-8000-0000000000e2";
    struct node_report *first = put_report(fixture, NODE1, 3000, 5000);
    struct node_report *second = put_report(fixture, NODE2, 1000, 5000);
    g_free(second->shared);
    second->shared = g_strdup(one);
    struct placement_need need = {.what = "it", .memory = 100};
    need.shared = placement_shared(fixture->reports, TEMPLATE_FILE, NODE1);
    assert_choice(fixture, &need, "node1");
    need.shared = placement_shared(fixture->reports, TEMPLATE_SHAREDFILE, NODE1);
    g_assert_cmpstr(placement_unshared(first, need.shared), ==, "does not mount the shared folder");
    assert_choice(fixture, &need, "node2");
    g_free(first->shared);
    first->shared = g_strdup(other);
    need.shared = placement_shared(fixture->reports, TEMPLATE_SHAREDFILE, NODE2);
    g_assert_cmpstr(placement_unshared(first, need.shared), ==, "mounts another shared folder");
    assert_choice(fixture, &need, "node2");
}

static void tell_sources(struct node_report *report, const char *name)
{
    g_ptr_array_add(report->sources, g_strdup(name));
    report->sources_whole = true;
}

/* node3 tells nothing, node2 has all, node1, with the most memory, lacks one. */
static void test_files(struct fixture *fixture, const void *data)
{
    struct node_report *first = put_report(fixture, NODE1, 3000, 5000);
    struct node_report *second = put_report(fixture, NODE2, 2000, 5000);
    put_report(fixture, NODE3, 1000, 5000);
    tell_sources(first, "vmlinuz");
    tell_sources(second, "vmlinuz");
    tell_sources(second, "debian.qcow2");
    struct placement_need need = {.what = "it", .memory = 100, .files = {"vmlinuz", "", NULL}};
    assert_choice(fixture, &need, "node1");
    need.files[2] = "debian";
    assert_choice(fixture, &need, "node2");
    need.excluded[0] = NODE2;
    need.because[0] = "is out";
    assert_choice(fixture, &need, "node3");
    need.excluded[1] = NODE3;
    need.because[1] = "is out";
    g_autoptr(GError) error = NULL;
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(error->message, ==,
                    "no node can be it: node1 does not have \"debian\" in var/images; node2 is "
                    "out; node3 is out");
    /* NAME stands for NAME.raw and NAME.qcow2, and for nothing else. */
    g_assert_true(placement_file_is_known(fixture->reports, "debian.qcow2"));
    g_assert_true(placement_file_is_known(fixture->reports, "debian"));
    g_assert_false(placement_file_is_known(fixture->reports, "debian.raw"));
    g_assert_false(placement_file_is_known(fixture->reports, "deb"));
    g_assert_false(placement_lacks_file(second, ""));
    g_assert_true(placement_lacks_file(second, "deb"));
}

static void add(const char *path, void (*fn)(struct fixture *, const void *))
{
    g_test_add(path, struct fixture, NULL, (void (*)(struct fixture *, gconstpointer))set_up,
               (void (*)(struct fixture *, gconstpointer))fn,
               (void (*)(struct fixture *, gconstpointer))tear_down);
}

/* --- faults (SAF-92) --- */

static void add_fault(struct node_report *report, const char *kind, const char *text, bool silent)
{
    struct node_fault *fault = node_fault_new();
    g_free(fault->kind);
    g_free(fault->text);
    fault->kind = g_strdup(kind);
    fault->text = g_strdup(text);
    fault->silent = silent;
    g_ptr_array_add(report->faults, fault);
}

/* The one with most room is sick: it comes last, and is taken if nothing else fits. */
static void test_sick_is_last(struct fixture *fixture, const void *data)
{
    struct node_report *first = put_report(fixture, NODE1, 4096, 4096);
    struct node_report *second = put_report(fixture, NODE2, 2048, 4096);
    struct placement_need need = {.what = "it", .memory = 512, .prefer = NODE1};
    add_fault(first, "clock", "has a clock that is 5.0 s ahead of the others'", false);
    assert_choice(fixture, &need, "node2");
    add_fault(second, "memory", "has less than 1 % of its memory available", false);
    add_fault(second, "member", "does not run its member of etcd: x", false);
    assert_choice(fixture, &need, "node1");
    need.excluded[0] = NODE1;
    need.because[0] = "is out";
    assert_choice(fixture, &need, "node2");
}

/* A step that the very fault makes impossible is not tried, unless nothing else has the data; what
 * does not answer proves nothing. */
static void test_sick_cannot(struct fixture *fixture, const void *data)
{
    g_autoptr(GError) error = NULL;
    struct node_report *first = put_report(fixture, NODE1, 4096, 4096);
    struct placement_need need = {
        .what = "it", .memory = 512, .excluded = {NODE2, NODE3}, .because = {"is out", "is out"}};
    g_autofree char *why = NULL;
    const struct node *node1 = config_get(fixture->config, "node", NODE1, NULL);
    add_fault(first, "state", "gets no answer from the disk of its state", true);
    assert_choice(fixture, &need, "node1");
    g_ptr_array_set_size(first->faults, 0);
    add_fault(first, "disks", "cannot write to its disks: x", false);
    assert_choice(fixture, &need, "node1"); /* which needs none */
    need.disk = 1;
    g_assert_null(placement_choose(fixture->config, fixture->reports, &need, &error));
    g_assert_cmpstr(error->message, ==,
                    "no node can be it: node1 cannot write to its disks: x; node2 is out; node3 is "
                    "out");
    need.disk = 0;
    add_fault(first, "state", "cannot write its state: y", false);
    g_assert_false(placement_fits(fixture->config, node1, first, &need, &why));
    g_assert_cmpstr(why, ==, "cannot write its state: y");
    need.only_copy = true;
    g_assert_true(placement_fits(fixture->config, node1, first, &need, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/placement/sick-comes-last#SAF-92", test_sick_is_last);
    add("/placement/sick-and-impossible#SAF-92", test_sick_cannot);
    add("/placement/room/promised", test_room_promised);
    add("/placement/room/running", test_room_running_is_not_counted_twice);
    add("/placement/room/more-at-the-next-start", test_room_more_at_the_next_start);
    add("/placement/room/untouched", test_room_untouched_memory_is_not_given_away);
    add("/placement/room/images", test_room_images_not_made_yet);
    add("/placement/room/reserved#FUT-06,FUT-07", test_room_reserved);
    add("/placement/room/reserved-is-named#FUT-06", test_reserved_is_named);
    add("/placement/choose/most", test_choose_most_memory);
    add("/placement/choose/ties", test_choose_ties);
    add("/placement/choose/none#ARP-57", test_choose_none);
    add("/placement/choose/reasons", test_choose_none_each_reason);
    add("/placement/overcommit", test_overcommit_by_policy_only);
    add("/placement/overcommit/used", test_overcommit_of_what_is_used);
    add("/placement/room/sharedfile", test_shared_images_take_no_space);
    add("/placement/room/migration", test_migration_counts_on_both);
    add("/placement/sums", test_sums_agree);
    add("/placement/sums/given#FUT-08", test_sums_given);
    add("/placement/advice#ARP-69", test_advice);
    add("/placement/bridges", test_bridges);
    add("/placement/versions#SAF-17", test_versions);
    add("/placement/shared-folder", test_shared_folder);
    add("/placement/files", test_files);
    add("/placement/choose/empty", test_choose_empty_cluster);
    return g_test_run();
}

/* What must be true of what is stored, and of every step of it (SAF-50 to 53): every rule with the
 * exact refusal. */
#include <string.h>

#include "unit/core/world/storage_world.h"

#define VOLUME1_IS "volume data1 (" VOLUME1 "): "
#define DIR1_IS "backend dir1 (" DIR1 "): "
#define ROW1_IS "worker " ROW1 ": "
#define COUNTER put("counter", "storage-service", 1, json_make("{s:i}", "value", 2))
#define BACKENDS                                                                                   \
    put("backend", DIR1, 1, object_backend(DIR1)), put("backend", DIR2, 1, object_backend(DIR2))
#define SERVICES                                                                                   \
    COUNTER, put("storage_service", service_key(NODE1), 1, object_service(NODE1)),                 \
        put("storage_service", service_key(NODE2), 1, object_service(NODE2))
#define TRASH7_IS "trash " VOLUME1 ".7 (" DIR1 "/" VOLUME1 ".7): "
#define TRASH7 put("trash", DIR1 "/" VOLUME1 ".7", 9, object_trash(VOLUME1 ".7"))
#define TEXT(text) json_string(text)
#define NUMBER(number) json_integer(number)

/* As a commit of serial 9 sees it: objects of now are of it, those before of 1. */
static char *check(GPtrArray *setup, GPtrArray *changes)
{
    return check_as(setup, changes, AUTHOR_COMMIT);
}

static char *work(GPtrArray *setup, GPtrArray *changes)
{
    return check_as(setup, changes, AUTHOR_WORK);
}

static struct change *backend1(const char *member, json_t *value)
{
    return put("backend", DIR1, 9, with(object_backend(DIR1), member, value));
}

static struct change *volume1(const char *member, json_t *value)
{
    return put("volume", VOLUME1, 9, with(object_volume1(), member, value));
}

static struct change *row1(json_t *row)
{
    return put("worker", ROW1, 9, row);
}

static struct change *old_volume1(void)
{
    return put("volume", VOLUME1, 1, object_volume1());
}

static struct change *deleting(void)
{
    return put("volume", VOLUME1, 1, with(object_volume1(), "status", TEXT("deleting")));
}

/* Node1 has it under claim 8. */
static json_t *taken(void)
{
    return with(with(object_row1(), "service_id", NUMBER(1)), "claim", NUMBER(8));
}

static void test_backend(void)
{
    assert_says(check(NULL, changes_of(BACKENDS, NULL)), "ok");
    assert_says(check(changes_of(BACKENDS, NULL), changes_of(backend1("name", TEXT("dir2")), NULL)),
                "already_exists: backend dir2 (" DIR1
                "): name: another backend has the name \"dir2\" already");
    assert_says(check(NULL, changes_of(backend1("nodes", json_make("[s]", DISK1)), NULL)),
                "unknown_entity: " DIR1_IS "nodes[0]: there is no node " DISK1);
    assert_says(check(NULL, changes_of(backend1("nodes", json_make("[s,s]", NODE1, NODE1)), NULL)),
                "wrong_input: " DIR1_IS "nodes[1]: node1 is named twice");
    static const char *const paths[] = {"", "/", "mnt/a", "/mnt/a/", "/mnt/../a"};
    for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *expected = g_strdup_printf(
            "wrong_input: " DIR1_IS "path: \"%s\" is not the path of a directory below /, as short "
            "as can be",
            paths[i]);
        assert_says(check(NULL, changes_of(backend1("path", TEXT(paths[i])), NULL)), expected);
    }
    assert_says(check(changes_of(BACKENDS, NULL),
                      changes_of(put("backend", DIR2, 9,
                                     with(with(object_backend(DIR1), "uuid", TEXT(DIR2)), "name",
                                          TEXT("dir3"))),
                                 NULL)),
                "unsafe: backend dir3 (" DIR2 "): path: never changes");
    assert_says(check(changes_of(put("backend", DIR1, 1, object_backend(DIR1)), NULL),
                      changes_of(put("backend", DIR2, 9,
                                     with(object_backend(DIR2), "path", TEXT("/mnt/a"))),
                                 NULL)),
                "already_exists: backend dir2 (" DIR2 "): path: /mnt/a is that of back end dir1 "
                "already");
    assert_says(check(changes_of(put("backend", DIR1, 1, object_backend(DIR1)), NULL),
                      changes_of(put("backend", DIR2, 9,
                                     with(object_backend(DIR2), "path", TEXT("/mnt/a/b"))),
                                 NULL)),
                "wrong_input: backend dir2 (" DIR2
                "): path: /mnt/a/b is below /mnt/a, that of back "
                "end dir1; take a directory beside it");
    assert_says(check(changes_of(put("backend", DIR1, 1,
                                     with(object_backend(DIR1), "path", TEXT("/mnt/a/b"))),
                                 NULL),
                      changes_of(put("backend", DIR2, 9,
                                     with(object_backend(DIR2), "path", TEXT("/mnt/a"))),
                                 NULL)),
                "wrong_input: backend dir2 (" DIR2
                "): path: /mnt/a is above /mnt/a/b, that of back "
                "end dir1; take a directory beside it");
}

static void test_backend_goes(void)
{
    struct change *const users[] = {
        old_volume1(), put("worker", ROW1, 1, object_row1()),
        put("trash", DIR1 "/" VOLUME1 ".3", 1, object_trash(VOLUME1 ".3")),
        put("storage_service", service_key(NODE1), 1, object_service(NODE1))};
    static const char *const expected[] = {
        "wrong_state: back end dir1 has 1 volume; delete it first",
        "wrong_state: " DIR1_IS "cannot be deleted, worker " VOLUME1 " refers to it",
        "wrong_state: back end dir1 still has data of 1 deleted volume; a volume service of it "
        "removes that",
        "wrong_state: " DIR1_IS "cannot be deleted, storage service cinder-volume node1@" DIR1
        " refers to it"};
    for (guint i = 0; i < G_N_ELEMENTS(users); i++)
        assert_says(
            check(changes_of(BACKENDS, users[i], NULL), changes_of(del("backend", DIR1, 1), NULL)),
            expected[i]);
    assert_says(check(changes_of(BACKENDS, NULL), changes_of(del("backend", DIR1, 1), NULL)), "ok");
    assert_says(check(changes_of(BACKENDS, NULL), changes_of(del("node", NODE2, 1), NULL)),
                "wrong_state: node node2 (" NODE2 "): cannot be deleted, instance web1 refers to "
                "it");
    assert_says(check(changes_of(backend1("nodes", json_make("[s]", NODE3)), NULL),
                      changes_of(del("node", NODE3, 1), NULL)),
                "wrong_state: node node3 (" NODE3 "): cannot be deleted, backend dir1 refers to "
                "it");
}

static struct change *service1(const char *member, json_t *value)
{
    return put("storage_service", service_key(NODE1), 9,
               with(with(object_service(NODE1), "generation", NUMBER(9)), member, value));
}

static char *service_said(const char *code, const char *what)
{
    return g_strdup_printf("%s: storage_service %s: %s", code, service_key(NODE1), what);
}

static void test_service(void)
{
    g_autofree char *other =
        g_strdup_printf("uuid: that of cinder-volume node9@dir1 is %s", service_key("9"));
    const struct {
        const char *member;
        json_t *value;
        const char *code, *what;
    } cases[] = {
        {"host", TEXT("node9"), "wrong_input", other},
        {"node", TEXT(DISK1), "unknown_entity", "node: there is no node " DISK1},
        {"id", NUMBER(2), "already_exists", "id: 2 is that of cinder-volume node2@dir1"},
        {"id", NUMBER(3), "wrong_input", "id: 3 was not given out (counter storage-service: 2)"},
        {"generation", NUMBER(8), "unsafe",
         "generation: becomes 8 in commit 9, and is the serial of its own (SAF-51)"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *expected = service_said(cases[i].code, cases[i].what);
        assert_says(
            work(changes_of(BACKENDS, COUNTER,
                            put("storage_service", service_key(NODE2), 1, object_service(NODE2)),
                            NULL),
                 changes_of(service1(cases[i].member, cases[i].value), NULL)),
            expected);
    }
    g_autofree char *theirs =
        service_said("unsafe", "is written only by the methods of work (SAF-50)");
    assert_says(
        check(changes_of(BACKENDS, COUNTER, NULL), changes_of(service1("wire", NUMBER(1)), NULL)),
        theirs);
    g_autofree char *renumbered = service_said("unsafe", "id: never changes");
    assert_says(
        work(changes_of(BACKENDS, SERVICES, NULL), changes_of(service1("id", NUMBER(2)), NULL)),
        renumbered);
}

#define UNDER_WAY                                                                                  \
    "the work of cinder-volume node1@dir1 on volume data1 is under way: fettle volume "            \
    "reset-state data1 --status error, or wait for a service of that name to clean it"

static void test_service_goes(void)
{
    GPtrArray *before =
        changes_of(BACKENDS, SERVICES, deleting(), put("worker", ROW1, 1, taken()), NULL);
    g_autofree char *used = service_said("wrong_state", "cannot be deleted, " UNDER_WAY);
    assert_says(check(g_ptr_array_ref(before),
                      changes_of(del("storage_service", service_key(NODE1), 1), NULL)),
                used);
    g_autofree char *left =
        service_said("wrong_state",
                     "cannot be deleted, the work of cinder-volume node1@dir1 on volume " VOLUME1
                     ", which is gone, is under way: wait for a service of that name to clean it");
    assert_says(check(changes_of(BACKENDS, SERVICES, put("worker", ROW1, 1, taken()), NULL),
                      changes_of(del("storage_service", service_key(NODE1), 1), NULL)),
                left);
    /* A node leaves its back end with its service, which has no work. */
    assert_says(check(g_ptr_array_ref(before),
                      changes_of(backend1("nodes", json_make("[s]", NODE2)), NULL)),
                "wrong_state: " DIR1_IS "nodes: node1 cannot leave, " UNDER_WAY);
    assert_says(check(before, changes_of(backend1("nodes", json_make("[s]", NODE1)),
                                         del("storage_service", service_key(NODE2), 1), NULL)),
                "ok");
}

/* Who is late once is not down. */
static void test_beats(void)
{
    json_t *cluster =
        json_make("{s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1);
    assert_says(
        check(NULL, changes_of(put("cluster", CLUSTER, 9,
                                   with(json_deep_copy(cluster), "report_interval", NUMBER(30))),
                               NULL)),
        "ok");
    assert_says(check(NULL, changes_of(put("cluster", CLUSTER, 9,
                                           with(cluster, "report_interval", NUMBER(3600))),
                                       NULL)),
                "wrong_input: cluster c1 (" CLUSTER
                "): report_interval: 3600 s is more than half of service_down_time, 60 s");
}

static void test_row(void)
{
    assert_says(work(changes_of(BACKENDS, deleting(), NULL), changes_of(row1(object_row1()), NULL)),
                "ok");
    assert_says(
        check(changes_of(BACKENDS, deleting(), NULL), changes_of(row1(object_row1()), NULL)),
        "unsafe: " ROW1_IS "is written only by the methods of work (SAF-50)");
    const struct {
        json_t *row;
        const char *said;
    } born[] = {
        {with(object_row1(), "id", NUMBER(8)),
         "unsafe: " ROW1_IS "id: becomes 8 in commit 9, and is the serial of its own (SAF-51)"},
        {with(object_row1(), "claim", NUMBER(9)),
         "unsafe: " ROW1_IS "service_id: a new row is with nobody (CLN-10)"},
        {with(object_row1(), "status", TEXT("extending")),
         "unsafe: " ROW1_IS "status: extending, but its resource is deleting"},
        {with(object_row1(), "resource_id", TEXT(VOLUME2)),
         "unsafe: " ROW1_IS "status: deleting, but its resource is gone"},
        {with(object_row1(), "backend", TEXT(DISK1)),
         "unknown_entity: " ROW1_IS "backend: there is no backend " DISK1},
    };
    for (guint i = 0; i < G_N_ELEMENTS(born); i++)
        assert_says(
            work(changes_of(BACKENDS, deleting(), NULL), changes_of(row1(born[i].row), NULL)),
            born[i].said);
    assert_says(work(changes_of(BACKENDS, deleting(), NULL),
                     changes_of(put("worker", "Volume/x", 9, object_row1()), NULL)),
                "wrong_input: worker Volume/x: its key is not " ROW1);
}

static json_t *touched(json_t *row)
{
    return with(row, "updated_us", NUMBER(200));
}

static void test_row_goes_on(void)
{
    const struct {
        json_t *row;
        const char *said;
    } steps[] = {
        {touched(taken()), "ok"},
        {touched(with(taken(), "claim", NUMBER(9))), "ok"},
        {taken(),
         "unsafe: " ROW1_IS "updated_us: goes from 100 to 100; each touch is later (SAF-51)"},
        {touched(with(taken(), "claim", NUMBER(7))),
         "unsafe: " ROW1_IS "claim: becomes 7 in commit 9, and is the serial of its own (SAF-51)"},
        {touched(with(taken(), "service_id", NUMBER(2))),
         "unsafe: " ROW1_IS "service_id: another owner under the same claim (SAF-51)"},
        {touched(with(with(taken(), "service_id", NUMBER(3)), "claim", NUMBER(9))),
         "unknown_entity: " ROW1_IS "service_id: there is no storage service 3"},
        {touched(with(taken(), "created_us", NUMBER(1))),
         "unsafe: " ROW1_IS "created_us: never changes"},
        {touched(with(taken(), "operation", TEXT("extend-volume"))),
         "unsafe: " ROW1_IS "operation: never changes"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++)
        assert_says(
            work(changes_of(BACKENDS, SERVICES, deleting(), put("worker", ROW1, 1, taken()), NULL),
                 changes_of(row1(steps[i].row), NULL)),
            steps[i].said);
    assert_says(work(changes_of(BACKENDS, SERVICES, deleting(),
                                put("worker", ROW1, 1, object_row1()), NULL),
                     changes_of(row1(touched(with(object_row1(), "service_id", NUMBER(1)))), NULL)),
                "unsafe: " ROW1_IS "service_id: another owner under the same claim (SAF-51)");
}

/* Force puts another row in the place of the one that there is: nobody has that yet. */
static void test_row_is_replaced(void)
{
    const struct {
        json_t *row;
        const char *said;
    } steps[] = {
        {object_row1(), "ok"},
        {with(object_row1(), "operation", TEXT("extend-volume")), "ok"},
        {with(object_row1(), "claim", NUMBER(9)),
         "unsafe: " ROW1_IS "service_id: a new row is with nobody (CLN-10)"},
        {with(object_row1(), "id", NUMBER(8)),
         "unsafe: " ROW1_IS "id: becomes 8 in commit 9, and is the serial of its own (SAF-51)"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++)
        assert_says(work(changes_of(BACKENDS, SERVICES, deleting(),
                                    put("worker", ROW1, 1, with(taken(), "id", NUMBER(7))), NULL),
                         changes_of(row1(steps[i].row), NULL)),
                    steps[i].said);
}

/* CLN-21: the time goes back with the owner, and nothing else does so. */
static void test_row_goes_back(void)
{
    json_t *claimed =
        with(with(with(taken(), "was_service_id", NUMBER(2)), "was_updated_us", NUMBER(50)),
             "claim", NUMBER(8));
    json_t *back = with(with(taken(), "service_id", NUMBER(2)), "updated_us", NUMBER(50));
    GPtrArray *before =
        changes_of(BACKENDS, SERVICES, deleting(), put("worker", ROW1, 1, claimed), NULL);
    assert_says(work(g_ptr_array_ref(before), changes_of(row1(json_incref(back)), NULL)), "ok");
    assert_says(work(before, changes_of(row1(with(back, "updated_us", NUMBER(51))), NULL)),
                "unsafe: " ROW1_IS "updated_us: goes from 100 to 51; each touch is later (SAF-51)");
}

static void test_volume(void)
{
    static const struct {
        const char *member, *value, *said;
    } states[] = {
        {"status", "attaching",
         "wrong_input: " VOLUME1_IS
         "status: attaching is what an attachment says, and never on record"},
        {"status", "reserved",
         "wrong_input: " VOLUME1_IS
         "status: reserved is what an attachment says, and never on record"},
        {"backend", DISK1, "unknown_entity: " VOLUME1_IS "backend: there is no backend " DISK1},
    };
    for (guint i = 0; i < G_N_ELEMENTS(states); i++)
        assert_says(
            work(
                changes_of(BACKENDS,
                           put("volume", VOLUME1, 1,
                               with(with(object_volume1(), "backend", TEXT("")), "data", TEXT(""))),
                           put("trash", "/" VOLUME1 ".7", 1, object_trash(VOLUME1 ".7")), NULL),
                changes_of(put("volume", VOLUME1, 9,
                               with(with(with(object_volume1(), "data", TEXT("")), "status",
                                         TEXT("error")),
                                    states[i].member, TEXT(states[i].value))),
                           NULL)),
            states[i].said);
    static const char *const guarded[][2] = {
        {"status", "error"}, {"data", ""}, {"backend", DIR2}, {"host", "node2@dir1"}};
    for (guint i = 0; i < G_N_ELEMENTS(guarded); i++) {
        g_autofree char *said = g_strdup_printf("unsafe: " VOLUME1_IS
                                                "%s: changes only by the methods of work (SAF-50)",
                                                guarded[i][0]);
        assert_says(check(changes_of(BACKENDS, old_volume1(), NULL),
                          changes_of(volume1(guarded[i][0], TEXT(guarded[i][1])), NULL)),
                    said);
    }
    assert_says(check(changes_of(BACKENDS, old_volume1(), NULL),
                      changes_of(volume1("size", NUMBER(3)), NULL)),
                "unsafe: " VOLUME1_IS "size: changes only by the methods of work (SAF-50)");
    assert_says(check(changes_of(BACKENDS, old_volume1(), NULL),
                      changes_of(volume1("description", TEXT("of web1")), NULL)),
                "ok");
    assert_says(check(changes_of(BACKENDS, NULL), changes_of(volume1("size", NUMBER(3)), NULL)),
                "unsafe: " VOLUME1_IS "is made only by the methods of work (SAF-50)");
    assert_says(check(changes_of(BACKENDS, old_volume1(), NULL),
                      changes_of(del("volume", VOLUME1, 1), NULL)),
                "unsafe: " VOLUME1_IS "goes only by the methods of work (SAF-50)");
    assert_says(work(changes_of(BACKENDS, old_volume1(), NULL),
                     changes_of(volume1("size", NUMBER(1)), NULL)),
                "unsafe: " VOLUME1_IS "size: falls from 2 to 1 GiB; data is never shortened "
                "(SAF-53)");
}

static json_t *attached(const char *uuid, const char *instance, int slot)
{
    return with(object_volume1(), "attachments",
                json_make("[{s:s,s:s,s:i,s:s}]", "uuid", uuid, "instance", instance, "slot", slot,
                          "state", "attached"));
}

/* Of all that it has a job may change this alone, and what it forbids holds for the methods of
 * work, too. */
static void test_attachments(void)
{
    GPtrArray *free_one = changes_of(BACKENDS, old_volume1(), NULL);
    GPtrArray *before =
        changes_of(BACKENDS, put("volume", VOLUME1, 1, attached(DISK1, WEB1, 30)), NULL);
    struct change *taken_up = put("volume", VOLUME1, 9, attached(DISK1, WEB1, 30));
    assert_says(check(g_ptr_array_ref(free_one), changes_of(taken_up, NULL)), "ok");
    assert_says(check(g_ptr_array_ref(free_one),
                      changes_of(put("volume", VOLUME1, 9, attached(DISK1, DISK1, 30)), NULL)),
                "unknown_entity: " VOLUME1_IS
                "attachments[0].instance: there is no instance " DISK1);
    assert_says(check(g_ptr_array_ref(free_one),
                      changes_of(put("volume", VOLUME1, 9, attached(DISK1, WEB1, 2)), NULL)),
                "insufficient_resources: " VOLUME1_IS "web1 has no free place on its bus: 1 disks, "
                "0 cards and 1 volumes");
    assert_says(check(changes_of(BACKENDS, deleting(), NULL),
                      changes_of(put("volume", VOLUME1, 9,
                                     with(attached(DISK1, WEB1, 30), "status", TEXT("deleting"))),
                                 NULL)),
                "wrong_state: " VOLUME1_IS "attachments: the volume is deleting");
    assert_says(check(g_ptr_array_ref(before), changes_of(volume1("name", TEXT("data1")), NULL)),
                "ok");
    assert_says(check(g_ptr_array_ref(before),
                      changes_of(put("volume", VOLUME1, 9, attached(REPLICA1, WEB1, 30)), NULL)),
                "unsafe: " VOLUME1_IS "attachments: one becomes another in one step (SAF-57)");
    assert_says(work(g_ptr_array_ref(before), changes_of(del("volume", VOLUME1, 1), TRASH7, NULL)),
                "unsafe: " VOLUME1_IS
                "data: changes, or goes, while the volume is attached (SAF-53)");
    /* Another one at its place. */
    assert_says(check(g_ptr_array_ref(before),
                      changes_of(put("volume", VOLUME2, 9,
                                     with(with(attached(REPLICA1, WEB1, 30), "uuid", TEXT(VOLUME2)),
                                          "data", TEXT(VOLUME2 ".7"))),
                                 NULL)),
                "unsafe: "
                "volume data1 (" VOLUME2 "): is made only by the methods of work (SAF-50)");
    /* The guest needs its node to see it, and disks and cards need theirs of the bus. */
    assert_says(check(g_ptr_array_ref(before),
                      changes_of(backend1("nodes", json_make("[s]", NODE2)), NULL)),
                "wrong_state: " DIR1_IS "nodes: node1 cannot leave, volume data1 is attached to "
                "web1 there");
    /* SAF-21 */
    assert_says(check(before, changes_of(put("node", NODE1, 9,
                                             with(object_node(NODE1), "offline", json_true())),
                                         NULL)),
                "unsafe: node node1 (" NODE1 "): offline: instance web1 may run there, on disks "
                "that other nodes use too; the statement must say that its power is off (SAF-21)");
    g_ptr_array_unref(free_one);
}

static void test_data(void)
{
    GPtrArray *before =
        changes_of(BACKENDS, SERVICES, old_volume1(), put("worker", ROW1, 1, taken()), NULL);
    /* Named by the end of the work under its claim, and by nothing else. */
    assert_says(work(g_ptr_array_ref(before), changes_of(volume1("data", TEXT(VOLUME1 ".8")),
                                                         del("worker", ROW1, 1), TRASH7, NULL)),
                "ok");
    static const char *const wrong[] = {VOLUME1 ".9", VOLUME2 ".8", "x", VOLUME1 ".3"};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        bool other = i == 1; /* its claim is right, but it is another volume's */
        g_autofree char *said = g_strdup_printf(
            other ? "wrong_input: " VOLUME1_IS "data: \"%s\" is not " VOLUME1 ".CLAIM (SAF-52)"
                  : "unsafe: " VOLUME1_IS
                    "data: becomes %s, and not at the end of the work under its claim (SAF-52)",
            wrong[i]);
        assert_says(work(g_ptr_array_ref(before), changes_of(volume1("data", TEXT(wrong[i])),
                                                             del("worker", ROW1, 1), TRASH7, NULL)),
                    said);
    }
    assert_says(work(g_ptr_array_ref(before),
                     changes_of(volume1("data", TEXT(VOLUME1 ".8")), TRASH7, NULL)),
                "unsafe: " VOLUME1_IS "data: becomes " VOLUME1
                ".8, and not at the end of the work under its claim (SAF-52)");
    assert_says(work(g_ptr_array_ref(before),
                     changes_of(volume1("data", TEXT(VOLUME1 ".8")), del("worker", ROW1, 1), NULL)),
                "unsafe: " VOLUME1_IS "data: " VOLUME1 ".7 is named no more, and not in the trash "
                "(SAF-53)");
    assert_says(work(g_ptr_array_ref(before), changes_of(del("volume", VOLUME1, 1), NULL)),
                "unsafe: " VOLUME1_IS "data: " VOLUME1 ".7 is named no more, and not in the trash "
                "(SAF-53)");
    assert_says(work(g_ptr_array_ref(before), changes_of(volume1("backend", TEXT(DIR2)), NULL)),
                "unsafe: " VOLUME1_IS "backend: changes, and its data does not (SAF-53)");
    assert_says(work(g_ptr_array_ref(before), changes_of(volume1("data", TEXT("")), TRASH7, NULL)),
                "unsafe: " VOLUME1_IS "status: available, but it has no data");
    assert_says(work(before, changes_of(TRASH7, NULL)),
                "unsafe: " TRASH7_IS "volume data1 names it (SAF-53)");
}

static void test_trash(void)
{
    assert_says(check(changes_of(BACKENDS, NULL), changes_of(TRASH7, NULL)),
                "unsafe: " TRASH7_IS "is written only by the methods of work (SAF-50)");
    assert_says(work(changes_of(BACKENDS, NULL),
                     changes_of(put("trash", "x", 9, object_trash(VOLUME1 ".7")), NULL)),
                "wrong_input: trash " VOLUME1 ".7 (x): its key is not " DIR1 "/" VOLUME1 ".7");
    assert_says(work(changes_of(BACKENDS, NULL),
                     changes_of(put("trash", DIR1 "/x", 9, object_trash("x")), NULL)),
                "wrong_input: trash x (" DIR1 "/x): name: \"x\" is no name of data");
}

#define SNAPSHOT1 VOLUME2
#define SNAPSHOT1_IS "snapshot before (" SNAPSHOT1 "): "

static struct change *snapshot1(const char *member, json_t *value)
{
    return put("snapshot", SNAPSHOT1, 9, with(object_snapshot2(), member, value));
}

static struct change *old_snapshot1(void)
{
    return put("snapshot", SNAPSHOT1, 1, object_snapshot2());
}

#define WITH_SNAPSHOT changes_of(BACKENDS, old_volume1(), old_snapshot1(), NULL)

/* The rules of volumes are those of resources; and what snapshots have besides. */
static void test_snapshot(void)
{
    assert_says(check(WITH_SNAPSHOT, changes_of(snapshot1("name", TEXT("first")), NULL)), "ok");
    assert_says(check(WITH_SNAPSHOT, changes_of(snapshot1("status", TEXT("error")), NULL)),
                "unsafe: " SNAPSHOT1_IS "status: changes only by the methods of work (SAF-50)");
    assert_says(check(WITH_SNAPSHOT, changes_of(snapshot1("volume", TEXT(NODE1)), NULL)),
                "unsafe: " SNAPSHOT1_IS "volume: never changes");
    assert_says(work(WITH_SNAPSHOT, changes_of(snapshot1("data", TEXT(SNAPSHOT1 ".9")), NULL)),
                "unsafe: " SNAPSHOT1_IS "data: becomes " SNAPSHOT1
                ".9, and not at the end of the work under its claim (SAF-52)");
    json_t *orphan = with(with(object_snapshot2(), "data", TEXT("")), "status", TEXT("error"));
    assert_says(
        work(changes_of(BACKENDS, NULL), changes_of(put("snapshot", SNAPSHOT1, 9, orphan), NULL)),
        "unknown_entity: " SNAPSHOT1_IS "volume: there is no volume " VOLUME1);
    /* A volume goes after it. */
    assert_says(work(WITH_SNAPSHOT, changes_of(TRASH7, del("volume", VOLUME1, 1), NULL)),
                "wrong_state: " VOLUME1_IS "cannot be deleted, snapshot " SNAPSHOT1
                " refers to it");
    /* Its trash says where it lay. */
    json_t *trash = object_trash(SNAPSHOT1 ".8");
    assert_says(
        work(WITH_SNAPSHOT,
             changes_of(del("snapshot", SNAPSHOT1, 1),
                        put("trash", DIR1 "/" SNAPSHOT1 ".8", 9, json_deep_copy(trash)), NULL)),
        "unsafe: " SNAPSHOT1_IS "data: " SNAPSHOT1
        ".8 is named no more, and not in the trash (SAF-53)");
    assert_says(work(WITH_SNAPSHOT, changes_of(del("snapshot", SNAPSHOT1, 1),
                                               put("trash", DIR1 "/" SNAPSHOT1 ".8", 9,
                                                   with(trash, "resource_type", TEXT("Snapshot"))),
                                               NULL)),
                "ok");
}

/* What tells its data from anything else is written with it. */
static void test_backup(void)
{
    g_autofree char *sum = g_strnfill(128, 'b');
    struct change *const changes[] = {
        put("backup", BACKUP3, 9, with(object_backup3(), "bytes", NUMBER(5))),
        put("backup", BACKUP3, 9, with(object_backup3(), "sum", TEXT(sum)))};
    static const char *const words[] = {"bytes", "sum"};
    for (guint i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_autofree char *expected = g_strdup_printf(
            "unsafe: backup monday (" BACKUP3 "): %s: changes only by the methods of work (SAF-50)",
            words[i]);
        assert_says(check(changes_of(BACKENDS, put("backup", BACKUP3, 1, object_backup3()), NULL),
                          changes_of(changes[i], NULL)),
                    expected);
    }
}

/* SAF-60: nobody but the methods of work says by what an image is known, or makes it active. */
static void test_image(void)
{
    g_autofree char *sum = g_strnfill(128, 'c'), *md5 = g_strnfill(32, 'c');
    static const char id[] = BACKUP3;
    struct change *const changes[] = {
        put("image", id, 9, with(object_image(id, 4096), "size", NUMBER(5))),
        put("image", id, 9, with(object_image(id, 4096), "os_hash_value", TEXT(sum))),
        put("image", id, 9, with(object_image(id, 4096), "checksum", TEXT(md5))),
        put("image", id, 9, with(object_image(id, 4096), "virtual_size", NUMBER(1610612000))),
        put("image", id, 9, with(object_image(id, 4096), "status", TEXT("killed"))),
        put("image", id, 9, with(object_image(id, 4096), "disk_format", TEXT("raw")))};
    static const char *const words[] = {"bytes: changes",    "sum: changes",
                                        "checksum: changes", "virtual_size: changes",
                                        "status: changes",   "disk_format: never changes"};
    for (guint i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_autofree char *said =
            check(changes_of(BACKENDS, put("image", id, 1, object_image(id, 4096)), NULL),
                  changes_of(changes[i], NULL));
        g_autofree char *expected =
            g_strdup_printf("unsafe: image tick (" BACKUP3 "): %s", words[i]);
        if (!g_str_has_prefix(said, expected))
            g_error("%s", said);
    }
}

static void test_partner(void)
{
    assert_says(
        work(changes_of(
                 BACKENDS,
                 put("volume", VOLUME1, 1, with(object_volume1(), "status", TEXT("deleting"))),
                 put("worker", ROW1, 1, object_row1()), old_snapshot1(), NULL),
             changes_of(
                 snapshot1("status", TEXT("deleting")),
                 put("worker", "Snapshot/" SNAPSHOT1, 9,
                     with(with(with(with(with(object_row1(), "resource_type", TEXT("Snapshot")),
                                         "resource_id", TEXT(SNAPSHOT1)),
                                    "operation", TEXT("delete-snapshot")),
                               "partner_type", TEXT("Volume")),
                          "partner_id", TEXT(VOLUME1))),
                 NULL)),
        "unsafe: worker Snapshot/" SNAPSHOT1 ": partner_id: " ROW1
        " has a row of its own (SAF-121)");
}

/* SAF-122 */
static void test_restored(void)
{
    struct change *brake = put("repair_brake", "cluster", 1,
                               json_make("{s:s,s:i,s:b}", "why", "x", "since", 1, "restored", 1));
    GPtrArray *before =
        changes_of(BACKENDS, SERVICES, deleting(), put("worker", ROW1, 1, taken()), brake, NULL);
    assert_says(work(g_ptr_array_ref(before), changes_of(row1(touched(taken())), NULL)),
                "wrong_state: " ROW1_IS
                "the configuration was restored from a backup and is not compared with the nodes "
                "yet, so nothing starts, stops or moves: look at `fettle cluster verify`, then say "
                "`fettle repair continue`");
    assert_says(check(g_ptr_array_ref(before), changes_of(del("worker", ROW1, 1), NULL)),
                "unsafe: " ROW1_IS "is written only by the methods of work (SAF-50)");
    assert_says(work(g_ptr_array_ref(before), changes_of(del("worker", ROW1, 1), NULL)), "ok");
    assert_says(
        check(before, changes_of(del("worker", ROW1, 1), del("repair_brake", "cluster", 1), NULL)),
        "ok");
}

/* --- what is found --- */

static void test_found(void)
{
    struct config *config = config_new();
    g_autoptr(GPtrArray) all = changes_of(
        BACKENDS, SERVICES, old_volume1(),
        put("volume", VOLUME2, 1,
            with(with(with(object_volume1(), "uuid", TEXT(VOLUME2)), "data", TEXT("")), "status",
                 TEXT("error"))),
        put("worker", ROW1, 1, taken()),
        put("worker", "Volume/" VOLUME2, 1,
            with(with(object_row1(), "resource_id", TEXT(VOLUME2)), "created_us", NUMBER(50))),
        put("trash", DIR1 "/" VOLUME1 ".3", 1, object_trash(VOLUME1 ".3")), NULL);
    for (guint i = 0; i < all->len; i++)
        g_assert_true(config_apply(config, all->pdata[i], NULL));
    g_autoptr(GError) error = NULL;
    g_assert_null(config_find(config, "volume", "data1", &error));
    g_assert_cmpstr(error->message, ==,
                    "volume \"data1\" is the name of 2 volumes: " VOLUME1 ", " VOLUME2
                    "; use a UUID");
    g_clear_error(&error);
    g_assert_null(config_find(config, "volume", "x", &error));
    g_assert_cmpstr(error->message, ==, "volume \"x\" does not exist");
    g_clear_error(&error);
    g_assert_null(config_find(config, "volume", "", &error));
    g_assert_nonnull(config_find(config, "volume", VOLUME2, NULL));
    g_assert_nonnull(config_find(config, "backend", "dir2", NULL));
    /* Somebody's name for his own is not taken for the other's UUID. */
    g_autoptr(GPtrArray) named = changes_of(
        put("volume", VOLUME2, 2,
            with(with(with(object_volume1(), "uuid", TEXT(VOLUME2)), "name", TEXT(VOLUME1)), "data",
                 TEXT(VOLUME2 ".7"))),
        NULL);
    g_assert_true(config_apply(config, named->pdata[0], NULL));
    const struct volume *found = config_find(config, "volume", VOLUME1, NULL);
    g_assert_cmpstr(found->uuid, ==, VOLUME1);

    g_autoptr(GPtrArray) rows = config_backend_work(config, DIR1);
    g_assert_cmpuint(rows->len, ==, 2);
    g_assert_cmpuint(((const struct worker *)rows->pdata[0])->created_us, ==, 50);
    g_autoptr(GPtrArray) own = config_service_work(config, 1);
    g_assert_cmpuint(own->len, ==, 1);
    g_autoptr(GPtrArray) nobodys = config_service_work(config, 0);
    g_assert_cmpuint(nobodys->len, ==, 1);
    g_autoptr(GPtrArray) volumes = config_backend_volumes(config, DIR1);
    g_assert_cmpuint(volumes->len, ==, 2);
    g_autoptr(GPtrArray) trash = config_backend_trash(config, DIR1);
    g_assert_cmpuint(trash->len, ==, 1);
    g_autoptr(GPtrArray) none = config_backend_volumes(config, DIR2);
    g_assert_cmpuint(none->len, ==, 0);
    g_assert_cmpstr(config_storage_service_of(config, 2)->host, ==, "node2");
    g_assert_null(config_storage_service_of(config, 3));
    config_free(config);
}

/* A back end is chosen once. */
static void test_row_back_end(void)
{
    json_t *waits = with(object_row1(), "backend", TEXT(""));
    json_t *chosen = with(object_row1(), "updated_us", NUMBER(101));
    assert_says(
        work(changes_of(BACKENDS, SERVICES, deleting(), put("worker", ROW1, 1, waits), NULL),
             changes_of(row1(json_deep_copy(chosen)), NULL)),
        "ok");
    json_t *other = with(chosen, "backend", TEXT(DIR2));
    assert_says(work(changes_of(BACKENDS, SERVICES, deleting(),
                                put("worker", ROW1, 1, object_row1()), NULL),
                     changes_of(row1(other), NULL)),
                "unsafe: " ROW1_IS "backend: never changes");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/storage_rules/backend", test_backend);
    g_test_add_func("/storage_rules/backend-goes", test_backend_goes);
    g_test_add_func("/storage_rules/service#SAF-51,SAF-56", test_service);
    g_test_add_func("/storage_rules/service-goes", test_service_goes);
    g_test_add_func("/storage_rules/beats#SAF-55", test_beats);
    g_test_add_func("/storage_rules/row#CLN-04,CLN-10,SAF-50,SAF-51", test_row);
    g_test_add_func("/storage_rules/row-goes-on#CLN-08,SAF-51", test_row_goes_on);
    g_test_add_func("/storage_rules/row-is-replaced#SAF-51", test_row_is_replaced);
    g_test_add_func("/storage_rules/row-goes-back#CLN-21", test_row_goes_back);
    g_test_add_func("/storage_rules/volume#SAF-50,SAF-53", test_volume);
    g_test_add_func("/storage_rules/attachments#SAF-53,SAF-57,SAF-21", test_attachments);
    g_test_add_func("/storage_rules/data#SAF-52,SAF-53", test_data);
    g_test_add_func("/storage_rules/trash#SAF-53", test_trash);
    g_test_add_func("/storage_rules/snapshot#SAF-50,SAF-53", test_snapshot);
    g_test_add_func("/storage_rules/backup#SAF-50", test_backup);
    g_test_add_func("/storage_rules/image#SAF-60", test_image);
    g_test_add_func("/storage_rules/partner#SAF-121", test_partner);
    g_test_add_func("/storage_rules/restored#SAF-122", test_restored);
    g_test_add_func("/storage_rules/found", test_found);
    g_test_add_func("/storage_rules/row-back-end", test_row_back_end);
    return g_test_run();
}

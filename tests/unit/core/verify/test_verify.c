/* What is not as it should be (core/verify): each part of a look, and what concerns one node. */
#include "core/config/model.h"
#include "unit/core/world/query_world.h"

#include <string.h>

#define BRAKE "cluster"

/* --- asking --- */

static void append(GString *text, const char *prefix, const json_t *list)
{
    size_t i;
    const json_t *line;
    json_array_foreach(list, i, line)
        g_string_append_printf(text, "%s%s\n", prefix, json_string_value(line));
}

/* Problems and notes, one a line; free with g_free(). */
static char *ask(struct queue_world *w, const char *node)
{
    g_autoptr(GError) error = NULL;
    json_autoptr found = queue_call(w, "Verify", json_make("[s]", node), &error);
    GString *text = g_string_new(NULL);
    g_assert_no_error(error);
    append(text, "", json_object_get(found, "problems"));
    append(text, "note: ", json_object_get(found, "notes"));
    return g_string_free(text, FALSE);
}

static void check(struct queue_world *w, const char *node, const char *expected)
{
    g_autofree char *text = ask(w, node);
    g_assert_cmpstr(text, ==, expected);
}

/* --- what nodes say --- */

static json_t *services(const char *const *names)
{
    json_t *list = json_array();
    for (; *names; names++)
        json_array_append_new(
            list, json_make("{ss, ss, ss}", "name", *names, "state", "running", "version", "1.0"));
    return list;
}

static json_t *services_of_candidate(void)
{
    static const char *const names[] = {"luxid",   "noded",  "rconfd", "volumed",
                                        "watcher", "wconfd", NULL};
    return services(names);
}

/* Every node answers, web1 runs where it should; node2 tells of what the test has put into
 * `data`. */
static json_t *answer_well(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    static const char *const of_others[] = {"noded", "rconfd", "volumed", NULL};
    bool master = g_str_equal(to_node, MASTER);
    json_t *report = query_report(to_node, master ? WEB1 : NULL, "running");
    json_object_set_new(report, "services", master ? services_of_candidate() : services(of_others));
    if (g_str_equal(to_node, NODE2))
        json_object_update(report, data);
    return report;
}

/* web10 lies on a node that is offline, and web2 has never had a replica. */
#define WEB10_LINES "instance web10: status is ERROR_nodeoffline\ninstance web10: has no replica\n"
#define WEB2_LINES "instance web2: has no replica\n"
#define ALWAYS "node node3: is offline\n" WEB10_LINES WEB2_LINES

static void set_cluster(struct queue_world *w, const char *member, json_t *value)
{
    json_autoptr cluster = json_deep_copy(store_get(w->store, "cluster", CLUSTER));
    json_object_set_new(cluster, member, value);
    store_put(w->store, "cluster", CLUSTER, json_incref(cluster));
    fake_settle(w->world);
}

static struct queue_world *world_new(json_t *of_node2)
{
    struct queue_world *w = query_world_new();
    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_well, of_node2);
    store_set_status(w->store, json_make("{sb}", "authority", true));
    set_cluster(w, "candidate_pool_size", json_integer(1));
    return w;
}

/* --- the master --- */

static void test_master(void)
{
    struct queue_world *w = world_new(NULL);
    check(w, "", ALWAYS);
    store_set_status(w->store, json_make("{s[ss]}", "problems", "one", "two"));
    store_set_pending(w->store, NODE2);
    check(w, "",
          "configuration: one\nconfiguration: two\n"
          "node node2: has not answered this epoch yet; no lock that covers it is granted\n"
          "master: /etc/fettle/ca.key is missing, so no host can join; put it back from a backup "
          "or from a node that has it, with mode 0600\n" ALWAYS);
    queue_world_free(w);
}

/* --- candidates: node2 is one --- */

static json_t *answer_role(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    return json_make("{ss ss}", "seat", "follows", "why", data ? (const char *)data : "");
}

static json_t *answer_refusal(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    if (data)
        fettle_set_error(error, ENVIRONMENT, "%s", (const char *)data);
    else
        fettle_set_error(error, UNREACHABLE, "no answer in time");
    return NULL;
}

static void put_candidate(struct queue_world *w)
{
    store_put(w->store, "node", NODE2,
              json_make("{ss, ss, ss, ss, sb}", "uuid", NODE2, "name", "node2", "primary_ip",
                        "192.0.2.2", "group", GROUP, "master_candidate", true));
    set_cluster(w, "candidate_pool_size", json_integer(2));
}

static json_t *status_of(int serial, bool reachable, bool authority)
{
    return json_make("{sb s[{ss si sb sb}]}", "authority", true, "copies", "node", NODE2, "serial",
                     serial, "reachable", reachable, "authority", authority);
}

static struct queue_world *candidate_world_new(json_t *of_node2, fake_answer role, const char *data)
{
    struct queue_world *w;
    if (!json_object_get(of_node2, "services"))
        json_object_set_new(of_node2, "services", services_of_candidate());
    w = world_new(of_node2);
    if (role)
        fake_script(w->world, NODE2, ROLE_WCONFD, "wait_role", role, (void *)data);
    put_candidate(w);
    store_set_status(w->store, status_of(17, true, true));
    return w;
}

#define LAGS(at)                                                                                   \
    "node node2: its copy of the configuration " at ", and no change waits for it: as master it "  \
    "would lack what has changed since. See whether its fettle-wconfd runs, and what its log "     \
    "says\n"

static void test_candidate_well(void)
{
    json_autoptr node2 = json_object();
    struct queue_world *w = candidate_world_new(node2, answer_role, NULL);
    check(w, "", ALWAYS);
    store_set_status(w->store, status_of(17, true, false));
    check(w, "node2",
          "node node2: does not have the key of the cluster's authority, so as master it could "
          "let no host in; the log of its fettle-wconfd says why\n" WEB2_LINES);
    store_set_status(w->store, status_of(17, false, true));
    check(w, "node2", LAGS("stands at serial 17") WEB2_LINES);
    store_set_status(w->store, json_make("{sb s[{ss sb}]}", "authority", true, "copies", "node",
                                         NODE2, "filling", true));
    check(w, "node2",
          WEB2_LINES "note: node node2: its copy of the configuration is being made anew\n");
    queue_world_free(w);
}

/* Daemons that stand still, one that never ran, one that cannot do its duty: never green. */
static void test_candidate_silent(void)
{
    json_autoptr node2 = json_object();
    struct queue_world *w = candidate_world_new(node2, answer_refusal, NULL);
    check(w, "node2",
          "node node2: its fettle-wconfd does not answer: it takes no change, and cannot become "
          "the master. What its log says, and whether it stands still, shows there\n" WEB2_LINES);
    fake_script(w->world, NODE2, ROLE_WCONFD, "wait_role", answer_refusal, "no memory");
    check(w, "node2",
          "node node2: its fettle-wconfd answers with an error: no memory\n" WEB2_LINES);
    fake_script(w->world, NODE2, ROLE_WCONFD, "wait_role", answer_role, "its store is damaged");
    check(w, "node2", "node node2: its fettle-wconfd says: its store is damaged\n" WEB2_LINES);
    static const char *const some[] = {"luxid", "noded", "rconfd", "volumed", NULL};
    json_object_set_new(node2, "services", services(some));
    fake_script(w->world, NODE2, ROLE_WCONFD, "wait_role", answer_refusal, NULL);
    store_set_status(w->store, status_of(0, false, false));
    check(w, "node2",
          "node node2: fettle-watcher is down: it has not run since the node's boot\n"
          "node node2: fettle-wconfd is down: it has not run since the node's boot\n" LAGS(
              "has not been heard of") WEB2_LINES);
    queue_world_free(w);
}

/* One that is on record, and whose package may be gone; monitoring that a person has stopped for
 * good, as the guide says, is nobody's problem. */
static void test_front_end(void)
{
    json_autoptr node2 = json_object();
    struct queue_world *w = candidate_world_new(node2, answer_role, NULL);
    store_put(w->store, "api_front_end", NODE2, json_make("{ss}", "node", NODE2));
    store_put(w->store, "service", NODE2 "/mond",
              json_make("{ss ss ss}", "uuid", NODE2 "/mond", "node", NODE2, "name", "mond"));
    fake_settle(w->world);
    check(w, "node2",
          "node node2: fettle-apid is down: it has not run since the node's boot; if that node is "
          "to have no front end of the API: fettle api remove --node node2\n" WEB2_LINES);
    queue_world_free(w);
}

/* A daemon that hangs is waited for within the bound. */
static void test_candidate_hangs(void)
{
    json_autoptr node2 = json_object();
    struct queue_world *w = candidate_world_new(node2, NULL, NULL);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    struct env *hanging = fake_process(w->world, NODE2, ROLE_WCONFD);
    fake_serve(hanging, query_never_answer, kept);
    gint64 before = fake_now_ms(w->world);
    g_autofree char *text = ask(w, "node2");
    g_assert_nonnull(strstr(text, "node node2: its fettle-wconfd does not answer:"));
    g_assert_cmpint(fake_now_ms(w->world) - before, <=, LIMIT_REPORT_WAIT_MS + 100);
    for (guint i = 0; i < kept->len; i++)
        rpc_request_free(kept->pdata[i]);
    queue_world_free(w);
}

/* One member of two is lost, or ails. */
static void test_etcd(void)
{
    static const char *const names[] = {"luxid",   "noded",  "rconfd", "volumed",
                                        "watcher", "wconfd", "etcd",   NULL};
    json_autoptr node2 = json_make("{so}", "services", services(names));
    struct queue_world *w = candidate_world_new(node2, answer_role, NULL);
    set_cluster(w, "engine", json_string("etcd"));
    g_autofree char *text = ask(w, ""); /* the master's tells of no member */
    g_assert_nonnull(strstr(text, "node node1: etcd is down: it has not run since the node's "
                                  "boot\n"));
    g_assert_nonnull(strstr(text, "etcd: 1 of 2 members are well, and that is no majority: nothing "
                                  "can be changed, and no master is chosen: fettle cluster engine "
                                  "status\n"));
    json_object_set_new(node2, "faults",
                        json_make("[{ss ss}]", "kind", "member", "text", "has a member that ails"));
    g_autofree char *none = ask(w, "");
    g_assert_nonnull(strstr(none, "node node2: has a member that ails\n"));
    g_assert_nonnull(strstr(none, "etcd: 0 of 2 members are well, "));
    store_put(w->store, "node", NODE3,
              json_make("{ss, ss, ss, ss, sb}", "uuid", NODE3, "name", "node3", "primary_ip",
                        "192.0.2.3", "group", GROUP, "master_candidate", true));
    json_object_del(node2, "faults");
    fake_settle(w->world);
    g_autofree char *three = ask(w, "");
    g_assert_nonnull(strstr(three, "etcd: 1 of 3 members are well, "));
    queue_world_free(w);
}

static void test_pool(void)
{
    struct queue_world *w = world_new(NULL);
    set_cluster(w, "candidate_pool_size", json_integer(3));
    check(w, "",
          "node node3: is offline\ncluster: 1 of 3 master candidates is usable "
          "(candidate_pool_size); what is done about it: fettle why cluster\n" WEB10_LINES
              WEB2_LINES);
    queue_world_free(w);
}

/* --- what is on nodes, and not on record --- */

#define STRAY "12121212-0000-4000-8000-000000000001"

static void test_strays(void)
{
    json_autoptr node2 =
        json_make("{s[{ss si ss ss}] s[s] s[{ss si}] s[s, s]}", "guests", "instance", STRAY,
                  "generation", 2, "state", "running", "name", "i2", "images", STRAY, "image_sets",
                  "instance", STRAY, "disks", 1, "leftovers", WEB1 " 3", STRAY " 4");
    struct queue_world *w = world_new(node2);
    check(w, "node2",
          WEB2_LINES
          "node node2: runs a guest that is not on record: i2, " STRAY " (guest=i2 in the command "
          "line of its QEMU). No command reaches it. To keep what it has, shut it down from "
          "inside, and make an instance of its images, var/disks/" STRAY ".* there; to end it, "
          "kill that process (docs/guide/backup.md)\n"
          "note: node node2: keeps images of instance web1 aside, generation 3; they go when it "
          "holds an in-sync replica again. If nobody needs them: they are the files "
          "var/disks/aside/" WEB1 ".* there\n"
          "note: node node2: keeps images of an instance that is not on record, " STRAY
          " aside, generation 4; they go when it holds an in-sync replica again. If nobody needs "
          "them: they are the files var/disks/aside/" STRAY ".* there\n"
          "note: node node2: has images of an instance that is not on record, " STRAY
          ": var/disks/" STRAY ".*\n");
    json_object_clear(node2);
    json_object_set_new(
        node2, "guests",
        json_make("[{ss si ss}]", "instance", WEB10, "generation", 9, "state", "paused"));
    check(w, "node2",
          WEB2_LINES "instance web10: its guest of generation 9 is paused on node node2, which has "
                     "nothing to do with it\n");
    queue_world_free(w);
}

static void test_held(void)
{
    json_autoptr node2 = json_make("{s[{ss si ss ss}]}", "guests", "instance", WEB2, "generation",
                                   1, "state", "running", "held", "var: Read-only file system");
    struct queue_world *w = world_new(node2);
    check(w, "node2",
          "instance web2: status is ERROR_up\n"
          "instance web2: its writes are held: its replica is lost, and node2 cannot note that "
          "(var: Read-only file system), nor is another candidate known to have it on record; "
          "mend what the state of node2 is written to, or bring another candidate back, and it "
          "goes on by itself\n" WEB2_LINES);
    queue_world_free(w);
}

/* Removed after its node had answered: no stray. */
static void test_removed(void)
{
    json_autoptr node2 = json_make("{s[{ss si ss ss}] s[s] s[{ss si}]}", "guests", "instance",
                                   STRAY, "generation", 2, "state", "running", "name", "i2",
                                   "images", STRAY, "image_sets", "instance", STRAY, "disks", 1);
    struct queue_world *w = world_new(node2);
    store_put(w->store, "removed", STRAY,
              json_make("{ss ss si}", "uuid", STRAY, "name", "i2", "generation", 3));
    fake_settle(w->world);
    check(w, "node2", WEB2_LINES);
    queue_world_free(w);
}

/* --- tags --- */

static void test_tags(void)
{
    struct queue_world *w = world_new(NULL);
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:failovr");
    query_put_tag(w, WEB2,
                  "ganeti:watcher:autorepair:result:failover:" STRAY ":1600000000:failure:7");
    fake_settle(w->world);
    check(w, "",
          ALWAYS
          "instance web1: its tag ganeti:watcher:autorepair:failovr cannot be read as a policy of "
          "auto-repair, so it allows nothing and forbids nothing; remove it: fettle tag remove "
          "instance web1 ganeti:watcher:autorepair:failovr. Policies are set with: fettle repair "
          "policy\n"
          "instance web2: an earlier repair failed, and nothing is repaired there until somebody "
          "has looked into that and taken its tag away: fettle tag remove instance web2 "
          "ganeti:watcher:autorepair:result:failover:" STRAY ":1600000000:failure:7\n");
    queue_world_free(w);
}

/* --- keys --- */

#define AUTHORITY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_keys(void)
{
    json_autoptr node2 =
        json_make("{s{s[s] ss si}}", "keys", "trusts", AUTHORITY, "issuer", "", "ends", 86400);
    struct queue_world *w = world_new(node2);
    store_set_status(w->store, json_make("{sb s{si}}", "authority", true, "keys", "ends", 86400));
    g_autofree char *text = ask(w, "");
    g_assert_true(strstr(text, "keys: the certificate of the authority has ended 1970-01-02 "));
    g_assert_true(strstr(text, "node node2: its certificate has ended 1970-01-02 "));
    g_assert_true(strstr(text, "; renew the keys: fettle cluster renew-keys\n"));
    g_assert_true(strstr(text, "node node2: its certificate is of no authority that it trusts: its "
                               "next connections are refused; put back etc/node.crt and "
                               "etc/ca.crt\n"));
    store_set_status(w->store, json_make("{sb s{ss s[s]}}", "authority", true, "keys", "phase",
                                         "spread", "waits", "node node2: no answer"));
    g_autofree char *waits = ask(w, "");
    g_assert_true(strstr(waits, "keys: the renewal waits for node node2: no answer\n"));
    g_assert_true(strstr(waits, "note: the keys of the cluster are being renewed (spread); follow "
                                "it on the master with: fettle cluster renew-keys\n"));
    queue_world_free(w);
}

/* Of a node whose front end is on record. */
static char *verify_front_end(guint64 ends, bool strange)
{
    json_autoptr node2 =
        json_make("{s{s[s] ss sI sb}}", "keys", "trusts", AUTHORITY, "issuer", AUTHORITY,
                  "front_end_ends", (json_int_t)ends, "front_end_strange", strange);
    struct queue_world *w = world_new(node2);
    store_put(w->store, "api_front_end", NODE2, json_make("{ss}", "node", NODE2));
    char *text = ask(w, "");
    queue_world_free(w);
    return text;
}

static void test_front_end_keys(void)
{
    g_autofree char *good = verify_front_end(G_MAXUINT32 * 10ULL, false);
    g_assert_null(strstr(good, "certificate of its front end"));
    g_autofree char *none = verify_front_end(0, false); /* an operator's, or without TLS */
    g_assert_null(strstr(none, "certificate of its front end"));
    g_autofree char *ends = verify_front_end(86400, false);
    g_assert_true(strstr(ends, "node node2: the certificate of its front end of the API has ended "
                               "1970-01-02 "));
    g_assert_true(strstr(ends, "; make another one there: fettle api renew-certificate\n"));
    g_autofree char *other = verify_front_end(G_MAXUINT32 * 10ULL, true);
    g_assert_true(strstr(other, "node node2: the certificate of its front end of the API is of no "
                                "authority of the cluster any more, so clients with the new "
                                "ca.crt refuse it; there: fettle api renew-certificate\n"));
}

/* --- nodes --- */

static void test_node_faults(void)
{
    json_autoptr node2 = json_make(
        "{si si s[{ss ss si}] s[{ss si}] s[s] ss}", "disk_total", 1000, "disk_free", 40, "faults",
        "kind", "disks", "text", "has disks that fail", "age_s", 7, "late", "part", "shared",
        "age_ms", 12000, "leftovers", WEB1 " 3", "without_kvm", "it is broken");
    struct queue_world *w = world_new(node2);
    check(w, NODE2,
          "node node2: shared: no answer, last heard 12 s ago\n"
          "node node2: has disks that fail (for 7 s)\n"
          "node node2: 96 % of its disk space are used (40 MiB left), guests there stand still "
          "when there is none left; make room, or: fettle node evacuate node2\n"
          "instance web2: has no replica\n"
          "note: node node2: keeps images of instance web1 aside, generation 3; they go when it "
          "holds an in-sync replica again. If nobody needs them: they are the files "
          "var/disks/aside/" WEB1 ".* there\n"
          "note: node node2: has /dev/kvm, and its guests run without it: it is broken. If that "
          "is how it shall be: fettle cluster modify --accelerator tcg\n");
    queue_world_free(w);
}

/* --- back ends: of node1, node2 and one that is offline --- */

#define BACKEND "b0b0b0b0-0000-4000-8000-000000000001"
#define UNSERVED(why, as)                                                                          \
    "node node2: does not serve back end dir1: its volume service " why                            \
    "; see whether /mnt/v is mounted there" as ", and what the log of its fettle-volumed says\n"

static void put_service(struct queue_world *w, const char *node, const char *host,
                        const char *state)
{
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, BACKEND);
    store_put(w->store, "storage_service", key,
              json_make("{ss ss si ss ss ss ss si ss}", "uuid", key, "binary", "cinder-volume",
                        "id", host[4] - '0', "host", host, "backend", BACKEND, "node", node,
                        "state", state, "state_since_us", 0, "version", "1"));
    fake_settle(w->world);
}

/* What a member has to say of its back end; `data` NULL: nothing. */
static json_t *answer_compared(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    if (data)
        return json_incref(data);
    fettle_set_error(error, UNREACHABLE, "no link");
    return NULL;
}

#define DATA1 "eeeeeeee-1111-4000-8000-000000000001"
#define BACKUP1 "eeeeeeee-2222-4000-8000-000000000002"

/* #RCV-17, RCV-19: data without a record, records without data, and who cannot tell. */
static void test_stored(void)
{
    struct queue_world *w = world_new(NULL);
    json_autoptr differs =
        json_make("{ss s[{ss ss si}] s[{ss ss ss sb si}{ss ss ss sb}{ss ss ss sb si}] sb}", "node",
                  MASTER, "unknown", "resource_type", "Snapshot", "name", DATA1 ".9", "bytes",
                  1 << 20, "missing", "resource_type", "Volume", "resource", DATA1, "name",
                  DATA1 ".7", "there", 1, "bytes", 3 << 20, "resource_type", "Volume", "resource",
                  DATA1, "name", DATA1 ".6", "there", 0, "resource_type", "Backup", "resource",
                  BACKUP1, "name", BACKUP1 ".9", "there", 1, "bytes", 4095, "more", 1);
    g_autofree char *sum = g_strnfill(128, 'a');
    store_put(w->store, "backend", BACKEND,
              json_make("{ss ss ss s[s] ss}", "uuid", BACKEND, "name", "dir1", "kind", "dir",
                        "nodes", MASTER, "path", "/mnt/v"));
    store_put(w->store, "volume", DATA1,
              json_make("{ss ss si ss ss ss}", "uuid", DATA1, "name", "data1", "size", 2, "status",
                        "available", "backend", BACKEND, "data", DATA1 ".7"));
    store_put(w->store, "backup", BACKUP1,
              json_make("{ss ss ss si ss ss ss si ss}", "uuid", BACKUP1, "name", "monday", "volume",
                        DATA1, "size", 2, "status", "available", "backend", BACKEND, "data",
                        BACKUP1 ".9", "bytes", 4096, "sum", sum));
    put_service(w, MASTER, "node1", "up");
    fake_script(w->world, NULL, ROLE_VOLUMED, "compare_stored", answer_compared, differs);
    g_autofree char *said = ask(w, "");
    g_assert_nonnull(strstr(said, "volume data1: its data " DATA1
                                  ".7 has 3 MiB of 2 GiB on back end dir1; whoever uses it gets "
                                  "errors. If it cannot be put back: fettle volume reset-state "
                                  "data1 --status error, and delete it\n"));
    g_assert_nonnull(strstr(said, "backup monday: its data " BACKUP1 ".9 has 4095 of 4096 bytes on "
                                  "back end dir1; "));
    g_assert_null(strstr(said, DATA1 ".6")); /* it has other data by now */
    g_assert_nonnull(strstr(said, "note: back end dir1: has data of a snapshot that no record "
                                  "knows: snapshots/" DATA1 ".9, 1 MiB."));
    g_assert_nonnull(strstr(said, "note: back end dir1: there is more of that than is told\n"));
    fake_script(w->world, NULL, ROLE_VOLUMED, "compare_stored", answer_compared, NULL);
    g_autofree char *silent = ask(w, "");
    g_assert_nonnull(strstr(silent, "back end dir1: what it has could not be compared with the "
                                    "record: node node1: no answer\n"));
    queue_world_free(w);
}

static void test_backends(void)
{
    struct queue_world *w = world_new(NULL);
    json_autoptr same = json_make("{ss}", "node", MASTER);
    fake_script(w->world, NULL, ROLE_VOLUMED, "compare_stored", answer_compared, same);
    store_put(w->store, "backend", BACKEND,
              json_make("{ss ss ss s[sss] ss}", "uuid", BACKEND, "name", "dir1", "kind", "dir",
                        "nodes", MASTER, NODE2, NODE3, "path", "/mnt/v"));
    fake_settle(w->world);
    check(w, NODE2, UNSERVED("has not registered", "") WEB2_LINES);
    put_service(w, MASTER, "node1", "up");
    check(w, NODE2, UNSERVED("has not registered", ", the same directory as on node1") WEB2_LINES);
    put_service(w, NODE2, "node2", "down");
    check(w, "",
          "node node3: is offline\n" UNSERVED("is down", ", the same directory as on node1")
              WEB10_LINES WEB2_LINES);
    put_service(w, NODE2, "node2", "up");
    check(w, "", ALWAYS);
    /* One that is nearly full, and one in which calls hang. */
    store_set_status(w->store, json_make("{sb s[{ss si si}]}", "authority", true, "spaces",
                                         "backend", BACKEND, "free_mib", 51, "total_mib", 1000));
    check(w, "", ALWAYS);
    store_set_status(w->store, json_make("{sb s[{ss si si}]}", "authority", true, "spaces",
                                         "backend", BACKEND, "free_mib", 50, "total_mib", 1000));
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, "node2", BACKEND);
    store_put(w->store, "storage_service", key,
              json_make("{ss ss si ss ss ss ss si ss si}", "uuid", key, "binary", "cinder-volume",
                        "id", 2, "host", "node2", "backend", BACKEND, "node", NODE2, "state", "up",
                        "state_since_us", 0, "version", "1", "hanging", 2));
    fake_settle(w->world);
    g_autofree char *said = ask(w, "");
    g_assert_nonnull(strstr(said, "back end dir1: 50 of 1000 MiB are left; make room in /mnt/v, or "
                                  "move volumes from there: guests stand still when there is "
                                  "none\n"));
    g_assert_nonnull(strstr(said, "node node2: 2 calls of its volume service hang in back end "
                                  "dir1; see whether /mnt/v answers there\n"));
    queue_world_free(w);
}

/* What has failed is named, with what to do. */
static void test_in_error(void)
{
    static const struct {
        const char *uuid, *name, *status, *data;
    } volumes[] = {
        {"eeeeeeee-0000-4000-8000-000000000001", "a", "error", ""},
        {"eeeeeeee-0000-4000-8000-000000000002", "b", "error", "x.7"},
        {"eeeeeeee-0000-4000-8000-000000000003", "c", "error_extending", "x.8"},
        {"eeeeeeee-0000-4000-8000-000000000004", "d", "error_deleting", "x.9"},
        {"eeeeeeee-0000-4000-8000-000000000005", "e", "available", "x.10"},
    };
    struct queue_world *w = world_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(volumes); i++)
        store_put(w->store, "volume", volumes[i].uuid,
                  json_make("{ss ss si ss ss ss}", "uuid", volumes[i].uuid, "name", volumes[i].name,
                            "size", 1, "status", volumes[i].status, "data", volumes[i].data,
                            "status_why", i == 0 ? "no room." : ""));
    store_put(w->store, "snapshot", "eeeeeeee-0000-4000-8000-000000000006",
              json_make("{ss ss ss si ss}", "uuid", "eeeeeeee-0000-4000-8000-000000000006", "name",
                        "s", "volume", volumes[4].uuid, "size", 1, "status", "error"));
    fake_settle(w->world);
    g_autofree char *text = ask(w, "");
    static const char *const lines[] = {
        "volume a: is error: no room; fettle volume delete a\n",
        "volume b: is error; if you know its data to be well: fettle volume reset-state b --status "
        "available; else: fettle volume delete b\n",
        "volume c: is error_extending; its data is as it was; ask again: fettle volume extend c "
        "--size …\n",
        "volume d: is error_deleting; fettle volume delete d\n",
        "snapshot s: is error; fettle snapshot delete s\n"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        g_assert_nonnull(strstr(text, lines[i]));
    g_assert_null(strstr(text, "volume e:"));
    g_autofree char *of_node = ask(w, NODE2); /* they are no node's */
    g_assert_null(strstr(of_node, "volume a:"));
    queue_world_free(w);
}

static json_t *answer_refusing(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    if (g_str_equal(to_node, MASTER))
        fettle_set_error(error, ENVIRONMENT, "no memory");
    else
        fettle_set_error(error, UNREACHABLE, "no link");
    return NULL;
}

static void test_silent(void)
{
    struct queue_world *w = world_new(NULL);
    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_refusing, NULL);
    check(w, "",
          "node node1: report: its node daemon answers with an error: no memory\n"
          "node node2: does not answer\nnode node3: is offline\n"
          "instance web1: status is unknown\n"
          "instance web1: is not told of by node1, which answers with an error: no memory\n"
          "instance web10: status is ERROR_nodeoffline\ninstance web10: has no replica\n"
          "instance web2: status is ERROR_nodedown\ninstance web2: has no replica\n");
    queue_world_free(w);
}

/* --- locks --- */

static json_t *lock(const char *name, const char *job)
{
    return json_make("{ss ss s{ss ss}}", "name", name, "mode", "exclusive", "owner", "job", job,
                     "livelock", "job-1-x");
}

static void test_locks(void)
{
    struct queue_world *w = world_new(NULL);
    guint64 id = queue_submit_running(w);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    store_set_locks(w->store,
                    json_make("[o, o, o]", lock("node/node2", job),
                              lock("instance/web1", "watcher"), lock("node/node1", "99")));
    check(w, "", ALWAYS "lock node/node1: is held by job 99, which has ended\n");
    check(w, "node2", "instance web2: has no replica\n");
    queue_job_ends(w, id);
    g_autofree char *text = g_strdup_printf("instance web2: has no replica\n"
                                            "lock node/node2: is held by job %s, which has ended\n",
                                            job);
    check(w, "node2", text);
    queue_world_free(w);
}

/* A job that acts on a node which is silent; jobs of a master that is lost. */
static void test_held_up_jobs(void)
{
    struct queue_world *w = world_new(NULL);
    guint64 id = queue_submit_running(w);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    store_set_locks(w->store, json_make("[o]", lock("node/node2", job)));
    fake_script(w->world, NODE2, ROLE_NODED, "node_report", answer_refusal, NULL);
    g_autofree char *text = ask(w, "node2");
    g_autofree char *acts = g_strdup_printf("job %s: acts on node node2, which does not answer, "
                                            "and may wait for it: fettle why %s\n",
                                            job, job);
    g_assert_nonnull(strstr(text, acts));
    store_set_locks(w->store, json_array());
    store_set_status(w->store, json_make("{sb si}", "authority", true, "epoch", 7));
    store_set_pending(w->store, NODE2);
    g_autofree char *lost = ask(w, "");
    g_autofree char *before =
        g_strdup_printf("jobs that began under a master before this one: %s; they end, and what "
                        "waits for them goes on, when every node has answered this master. "
                        "Missing: node2. Whoever of them is dead: fettle node modify NODE "
                        "--offline yes --statement \"…\"\n",
                        job);
    g_assert_nonnull(strstr(lost, before));
    queue_world_free(w);
}

/* --- notes, which only the whole cluster has --- */

static void test_notes(void)
{
    struct queue_world *w = world_new(NULL);
    store_put(
        w->store, "switches", "switches",
        json_make("{ss sb si}", "uuid", "switches", "drained", true, "watcher_paused_until", 0));
    store_put(w->store, "repair_brake", BRAKE,
              json_make("{si ss}", "since", 1700000000, "why", "Two nodes were lost at once."));
    fake_settle(w->world);
    g_autofree char *text = ask(w, "");
    g_assert_nonnull(strstr(text, ALWAYS "note: auto-repair stands still, its storm brake is on "
                                         "since 2023-11-"));
    g_assert_nonnull(strstr(text, ": Two nodes were lost at once. Look around, then: fettle "
                                  "repair continue\n"
                                  "note: the queue is drained: no job is taken, none of "
                                  "auto-repair either, until: fettle queue undrain\n"));
    check(w, "node2", "instance web2: has no replica\n");
    set_cluster(w, "upgrading", json_true());
    g_autofree char *upgrading = ask(w, "");
    g_assert_nonnull(strstr(upgrading, "note: the cluster is marked as being upgraded, so that no "
                                       "cleanup of storage services can be asked for; to end that: "
                                       "fettle cluster modify --upgrading no\n"));
    queue_world_free(w);
}

static void put_decision(struct queue_world *w, int number, const char *author, const char *verdict,
                         const char *summary)
{
    g_autofree char *uuid = g_strdup_printf("cdcdcdcd-0000-4000-8000-%012d", number);
    store_put(w->store, "decision", uuid,
              json_make("{ss ss ss ss ss si ss ss}", "uuid", uuid, "author", author, "subject_kind",
                        "cluster", "subject", CLUSTER, "subject_name", "lab", "at_us", 1, "verdict",
                        verdict, "summary", summary));
    fake_settle(w->world);
}

/* Only the newest of an author counts, and what is found anyway is not told twice. */
static void test_decisions(void)
{
    struct queue_world *w = world_new(NULL);
    put_decision(w, 9, "watcher/room", "done", "All is well.");
    put_decision(w, 1, "watcher/room", "leave", "No room for loss of node node1.");
    put_decision(w, 2, "watcher/tags", "leave", "Some tags cannot be read.");
    check(w, "", ALWAYS "note: cluster: No room for loss of node node1. See: fettle why cluster\n");
    check(w, "node2", WEB2_LINES);
    put_decision(w, 5, "watcher/room", "done", "The loss of any one node can be taken.");
    check(w, "", ALWAYS);
    queue_world_free(w);
}

/* --- parts --- */

static void check_part(struct queue_world *w, const char *group, bool no_node, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr found =
        queue_call(w, "Verify", json_make("[s, s, b]", "", group, (int)no_node), &error);
    g_autoptr(GString) text = g_string_new(NULL);
    g_assert_no_error(error);
    append(text, "", json_object_get(found, "problems"));
    append(text, "note: ", json_object_get(found, "notes"));
    g_assert_cmpstr(text->str, ==, expected);
}

/* What belongs to no node, and what belongs to the nodes of a group, is the whole, and nothing
 * twice. */
static void test_parts(void)
{
    struct queue_world *w = world_new(NULL);
    store_set_status(w->store, json_make("{sb s[s]}", "authority", true, "problems", "one"));
    store_put(
        w->store, "switches", "switches",
        json_make("{ss sb si}", "uuid", "switches", "drained", true, "watcher_paused_until", 0));
    fake_settle(w->world);
    check_part(w, "default", false, ALWAYS);
    check_part(w, "", true,
               "configuration: one\nnote: the queue is drained: no job is taken, none of "
               "auto-repair either, until: fettle queue undrain\n");
    queue_world_free(w);
}

/* --- bad input --- */

static void test_bad_input(void)
{
    struct queue_world *w = world_new(NULL);
    queue_refuse(w, "Verify", json_make("[s]", "nix"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "node \"nix\" does not exist");
    queue_refuse(w, "Verify", json_make("[s, s]", "", "nix"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "nodegroup \"nix\" does not exist");
    queue_refuse(w, "Verify", json_make("[i]", 7), FETTLE_ERROR_WRONG_INPUT,
                 "Verify: node: must be a text");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/verify/master#ARP-70", test_master);
    g_test_add_func("/verify/keys#SAF-94", test_keys);
    g_test_add_func("/verify/keys-of-front-ends#SAF-94", test_front_end_keys);
    g_test_add_func("/verify/candidate-well#ARP-70", test_candidate_well);
    g_test_add_func("/verify/candidate-silent#ARP-70", test_candidate_silent);
    g_test_add_func("/verify/candidate-hangs#ARP-70", test_candidate_hangs);
    g_test_add_func("/verify/front-end", test_front_end);
    g_test_add_func("/verify/etcd#ARP-70", test_etcd);
    g_test_add_func("/verify/pool#ARP-70,ARP-71", test_pool);
    g_test_add_func("/verify/strays#ARP-70", test_strays);
    g_test_add_func("/verify/writes-are-held#SAF-09", test_held);
    g_test_add_func("/verify/removed#ARP-70", test_removed);
    g_test_add_func("/verify/tags#ARP-70", test_tags);
    g_test_add_func("/verify/held-up-jobs#ARP-70", test_held_up_jobs);
    g_test_add_func("/verify/node-faults#ARP-70,SAF-92", test_node_faults);
    g_test_add_func("/verify/back-ends", test_backends);
    g_test_add_func("/verify/stored#RCV-17,RCV-19", test_stored);
    g_test_add_func("/verify/in-error", test_in_error);
    g_test_add_func("/verify/silent#ARP-70,SAF-91", test_silent);
    g_test_add_func("/verify/locks#ARP-70", test_locks);
    g_test_add_func("/verify/notes#ARP-70", test_notes);
    g_test_add_func("/verify/decisions#ARP-70,ARP-71", test_decisions);
    g_test_add_func("/verify/parts#ARP-70", test_parts);
    g_test_add_func("/verify/bad-input#ARP-70", test_bad_input);
    return g_test_run();
}

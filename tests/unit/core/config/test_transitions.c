/* How an instance comes to another node, and what its disks and network cards may be: every rule
 * with the exact refusal. */
#include "unit/core/world/config_world.h"

#include <string.h>

#define MIGRATION "eeeeeeee-0000-4000-8000-000000000001"
#define OTHER "eeeeeeee-0000-4000-8000-000000000002"
#define DISK2 "dddddddd-0000-4000-8000-000000000002"
#define WEB1_IS "instance web1 (" WEB1 "): "
#define DB1_IS "instance db1 (" DB1 "): "

static char *check(GPtrArray *setup, GPtrArray *changes)
{
    return check_as(setup, changes, AUTHOR_COMMIT);
}

/* Sets members: name, value (stolen), …, NULL. */
static json_t *set_all(json_t *json, va_list rest)
{
    for (const char *name = va_arg(rest, const char *); name; name = va_arg(rest, const char *))
        json_object_set_new(json, name, va_arg(rest, json_t *));
    return json;
}

/* `unused` is there because a list of arguments begins after one. */
static struct change *web1(int unused, ...)
{
    va_list rest;
    va_start(rest, unused);
    json_t *json = set_all(object_web1(), rest);
    va_end(rest);
    return put("instance", WEB1, 1, json);
}

static struct change *db1(int unused, ...)
{
    va_list rest;
    va_start(rest, unused);
    json_t *json = set_all(object_db1(), rest);
    va_end(rest);
    return put("instance", DB1, 1, json);
}

#define TEXT(text) json_string(text)
#define NUMBER(number) json_integer(number)
#define WEB1_WITH(...) web1(0, __VA_ARGS__, NULL)
#define DB1_WITH(...) db1(0, __VA_ARGS__, NULL)
#define MIGRATING                                                                                  \
    "task_state", TEXT("migrating"), "migration", TEXT(MIGRATION), "migration_node", TEXT(NODE2)

static struct change *replica_in(const char *state)
{
    return put("replica", REPLICA1, 1, with(object_replica1(), "state", TEXT(state)));
}

static struct change *offline(const char *node)
{
    return put("node", node, 1, with(object_node(node), "offline", json_true()));
}

/* --- a migration begins and ends --- */

static void test_begin(void)
{
    assert_says(check(NULL, changes_of(WEB1_WITH(MIGRATING), NULL)), "ok");
    assert_says(
        check(NULL,
              changes_of(WEB1_WITH("migration", TEXT(MIGRATION), "migration_node", TEXT(NODE2)),
                         NULL)),
        "wrong_state: " WEB1_IS "migration: begins without the mark \"migrating\", by which "
        "it is found when its job dies");
    assert_says(check(NULL, changes_of(WEB1_WITH(MIGRATING, "migration_node", TEXT("")), NULL)),
                "wrong_state: " WEB1_IS "migration \"" MIGRATION
                "\" and migration_node \"\": either both or none");
    assert_says(check(NULL, changes_of(WEB1_WITH(MIGRATING, "migration_node", TEXT(NODE1)), NULL)),
                "wrong_state: " WEB1_IS "migration_node: node1 is the primary node already");
    assert_says(check(NULL, changes_of(WEB1_WITH(MIGRATING, "migration_node", TEXT(NODE3)), NULL)),
                "unsafe: " WEB1_IS "migration_node: node3 has no replica of it (node2 has), so it "
                "cannot take the guest over");
    assert_says(check(NULL, changes_of(DB1_WITH("task_state", TEXT("migrating"), "migration",
                                                TEXT(MIGRATION), "migration_node", TEXT(OTHER),
                                                "holder", TEXT(NODE1), "generation", NUMBER(3)),
                                       NULL)),
                "unsafe: " DB1_IS
                "migration: begins although generation 3 does not run (holder: node1)");
}

static void test_begin_needs_both_nodes(void)
{
    assert_says(check(changes_of(offline(NODE2), NULL), changes_of(WEB1_WITH(MIGRATING), NULL)),
                "unsafe: " WEB1_IS "migration_node: node2 is offline");
    static const char *const states[] = {"stale", "syncing"};
    for (guint i = 0; i < G_N_ELEMENTS(states); i++)
        assert_says(
            check(changes_of(replica_in(states[i]), NULL), changes_of(WEB1_WITH(MIGRATING), NULL)),
            "unsafe: " WEB1_IS "migration_node: the replica on node2 is not in-sync");
    assert_says(check(NULL, changes_of(DB1_WITH("task_state", TEXT("migrating"), "migration",
                                                TEXT(MIGRATION), "migration_node", TEXT(NODE2)),
                                       NULL)),
                "unsafe: " DB1_IS
                "migration: begins although generation 2 does not run (holder: nobody)");
}

static void test_under_way(void)
{
    GPtrArray *begun = changes_of(WEB1_WITH(MIGRATING), NULL);
    assert_says(check(g_ptr_array_ref(begun),
                      changes_of(WEB1_WITH(MIGRATING, "generation", NUMBER(5), "holder", TEXT("")),
                                 put("replica", REPLICA1, 1,
                                     with(with(object_replica1(), "state", TEXT("stale")), "sync",
                                          NUMBER(8))),
                                 NULL)),
                "unsafe: " WEB1_IS
                "generation: goes from 4 to 5 although a migration to node2 is on "
                "record; that is settled first (SAF-17)");
    assert_says(check(g_ptr_array_ref(begun),
                      changes_of(WEB1_WITH(MIGRATING, "migration", TEXT(OTHER)), NULL)),
                "unsafe: " WEB1_IS "migration: another one (" MIGRATION
                ", to node2) is on record; it is settled before the next begins");
    assert_says(check(g_ptr_array_ref(begun),
                      changes_of(WEB1_WITH(MIGRATING, "migration_node", TEXT(NODE3)), NULL)),
                "unsafe: " WEB1_IS "migration_node: goes from node2 to node3 within one migration");
    assert_says(check(g_ptr_array_ref(begun), changes_of(WEB1_WITH("memory", NUMBER(128)), NULL)),
                "ok");
    assert_says(check(begun, changes_of(del("node", NODE2, 1), NULL)),
                "wrong_state: node node2 (" NODE2
                "): cannot be deleted, instance web1 refers to it");
}

static void test_born_migrating(void)
{
    json_t *json = with(with(object_db1(), "uuid", TEXT(OTHER)), "name", TEXT("db2"));
    assert_says(check(NULL, changes_of(put("instance", OTHER, 0,
                                           with(with(json, "migration", TEXT(MIGRATION)),
                                                "migration_node", TEXT(NODE2))),
                                       NULL)),
                "unsafe: instance db2 (" OTHER
                "): migration: is set in a new instance; nothing of it runs");
}

/* --- the guest has gone over --- */

static struct change *left_on(const char *node, const char *state)
{
    return put("replica", MIGRATION, 0,
               json_make("{s:s,s:s,s:s,s:i,s:i,s:s}", "uuid", MIGRATION, "instance", WEB1, "node",
                         node, "generation", 5, "sync", 1, "state", state));
}

#define MOVED                                                                                      \
    MIGRATING, "primary_node", TEXT(NODE2), "holder", TEXT(NODE2), "generation", NUMBER(5),        \
        "secondary_node", TEXT(NODE1), "replica", TEXT(MIGRATION)

static char *moved(enum invariants_author author, struct change *instance, struct change *left)
{
    return check_as(changes_of(WEB1_WITH(MIGRATING), NULL),
                    changes_of(instance, left, del("replica", REPLICA1, 1), NULL), author);
}

#define NOT_THE_RECORDED(to)                                                                       \
    "unsafe: " WEB1_IS "primary_node: goes from node1 to " to                                      \
    " although the migration on record goes to node2 (SAF-17)"

static void test_moved(void)
{
    assert_says(moved(AUTHOR_HOLDER, WEB1_WITH(MOVED), left_on(NODE1, "syncing")), "ok");
    assert_says(moved(AUTHOR_HOLDER, WEB1_WITH(MOVED), left_on(NODE1, "stale")), "ok");
    /* A job has no way to say so: the old holder is alive, and holds it. */
    assert_says(moved(AUTHOR_COMMIT, WEB1_WITH(MOVED), left_on(NODE1, "stale")),
                "unsafe: " WEB1_IS
                "primary_node: node1 still holds generation 4 and is not offline; stop the "
                "instance there first, or give evidence that the node is dead");
    assert_says(moved(AUTHOR_HOLDER,
                      WEB1_WITH(MOVED, "primary_node", TEXT(NODE3), "holder", TEXT(NODE3)),
                      left_on(NODE1, "stale")),
                NOT_THE_RECORDED("node3"));
    assert_says(moved(AUTHOR_HOLDER, WEB1_WITH(MOVED, "holder", TEXT("")), left_on(NODE1, "stale")),
                NOT_THE_RECORDED("node2"));
    assert_says(moved(AUTHOR_HOLDER, WEB1_WITH(MOVED), left_on(NODE3, "stale")),
                NOT_THE_RECORDED("node2"));
    assert_says(
        moved(AUTHOR_HOLDER, WEB1_WITH(MOVED, "generation", NUMBER(4)), left_on(NODE1, "stale")),
        "unsafe: " WEB1_IS "generation: stays 4 although holder goes from node1 to node2 "
        "and primary_node from node1 to node2");
}

static void test_moved_is_no_promise(void)
{
    assert_says(moved(AUTHOR_HOLDER, WEB1_WITH(MOVED), left_on(NODE1, "in-sync")),
                NOT_THE_RECORDED("node2"));
    /* Without a migration on record nobody moves a running guest. */
    assert_says(
        check_as(NULL,
                 changes_of(WEB1_WITH(MOVED, "migration", TEXT(""), "migration_node", TEXT("")),
                            left_on(NODE1, "stale"), del("replica", REPLICA1, 1), NULL),
                 AUTHOR_HOLDER),
        "unsafe: " WEB1_IS "primary_node: goes from node1 to node2 although the migration "
        "on record goes to nobody (SAF-17)");
}

/* Afterwards it stays on record until a job has settled it, and hinders nothing. */
static void test_moved_and_settled(void)
{
    assert_says(check(changes_of(WEB1_WITH(MOVED), left_on(NODE1, "syncing"),
                                 del("replica", REPLICA1, 1), NULL),
                      changes_of(WEB1_WITH(MOVED, "migration", TEXT(""), "migration_node", TEXT(""),
                                           "task_state", TEXT("")),
                                 NULL)),
                "ok");
    assert_says(check(changes_of(WEB1_WITH(MOVED), left_on(NODE1, "syncing"),
                                 del("replica", REPLICA1, 1), NULL),
                      changes_of(WEB1_WITH(MOVED, "generation", NUMBER(6)), NULL)),
                "ok");
}

/* A dead holder: the migration ends in the commit that promotes. */
static void test_failover_ends_migration(void)
{
    assert_says(
        check(changes_of(WEB1_WITH(MIGRATING), offline(NODE1), NULL),
              changes_of(WEB1_WITH("primary_node", TEXT(NODE2), "holder", TEXT(NODE2), "generation",
                                   NUMBER(5), "secondary_node", TEXT(""), "replica", TEXT("")),
                         del("replica", REPLICA1, 1), NULL)),
        "ok");
}

/* --- templates --- */

static struct change *local(const char *disk_template, const char *node)
{
    return DB1_WITH("disk_template", TEXT(disk_template), "disks",
                    json_make("[{s:s,s:i}]", "uuid", DISK2, "size", 64), "primary_node", TEXT(node),
                    "generation", NUMBER(strcmp(node, NODE1) ? 3 : 2));
}

static void test_templates(void)
{
    assert_says(check(changes_of(local("sharedfile", NODE1), NULL),
                      changes_of(local("sharedfile", NODE3), NULL)),
                "ok");
    assert_says(check(changes_of(local("file", NODE1), offline(NODE1), NULL),
                      changes_of(local("file", NODE3), NULL)),
                "unsafe: " DB1_IS "primary_node: its disks are on node1 only; they go to node3 by "
                "migration, or are made anew there");
}

static struct change *shared_held(void)
{
    return DB1_WITH("disk_template", TEXT("sharedfile"), "disks",
                    json_make("[{s:s,s:i}]", "uuid", DISK2, "size", 64), "holder", TEXT(NODE1));
}

static void test_shared_needs_a_statement(void)
{
    static const char refusal[] =
        "unsafe: node node1 (" NODE1 "): offline: instance db1 may run there, on disks that other "
        "nodes use too; the statement must say that its power is off (SAF-21)";
    json_t *stated = with(with(object_node(NODE1), "offline", json_true()), "offline_statement",
                          TEXT("al: plug pulled"));
    assert_says(check(changes_of(shared_held(), NULL), changes_of(offline(NODE1), NULL)), refusal);
    assert_says(check(changes_of(shared_held(), NULL),
                      changes_of(put("node", NODE1, 1, json_incref(stated)), NULL)),
                "ok");
    assert_says(check(changes_of(shared_held(), put("node", NODE1, 1, stated), NULL),
                      changes_of(offline(NODE1), NULL)),
                refusal);
    assert_says(check(changes_of(shared_held(), NULL), changes_of(offline(NODE3), NULL)), "ok");
}

/* --- disks made anew --- */

#define NEW_DISKS "disks", json_make("[{s:s,s:i}]", "uuid", DISK2, "size", 64)
#define RECREATING "task_state", TEXT("recreating-disks"), "task_owner", NUMBER(17)
#define ANEW                                                                                       \
    RECREATING, NEW_DISKS, "primary_node", TEXT(NODE3), "holder", TEXT(""), "generation",          \
        NUMBER(5), "replica", TEXT(""), "secondary_node", TEXT("")

static char *anew(struct change *before, const char *replica_state, struct change *after)
{
    return check(changes_of(before, offline(NODE1), replica_in(replica_state), NULL),
                 changes_of(after, del("replica", REPLICA1, 1), NULL));
}

#define OTHER_DISKS(kept, holder)                                                                  \
    "unsafe: " WEB1_IS "primary_node: new disks on node3 are other disks (" kept                   \
    " keep their UUID), without the old replica, and nobody holds them yet (holder: " holder ")"

static void test_recreate(void)
{
    assert_says(anew(WEB1_WITH(RECREATING), "stale", WEB1_WITH(ANEW)), "ok");
    /* It is no way around a promotion: with the old disks, or a guest that may run at once. */
    assert_says(anew(WEB1_WITH(RECREATING), "stale",
                     WEB1_WITH(ANEW, "disks", json_make("[{s:s,s:i}]", "uuid", DISK1, "size", 64))),
                OTHER_DISKS("1", "nobody"));
    assert_says(anew(WEB1_WITH(RECREATING), "stale", WEB1_WITH(ANEW, "holder", TEXT(NODE3))),
                OTHER_DISKS("0", "node3"));
    /* The mark stands there before, and is the same job's. */
    assert_says(anew(WEB1_WITH("task_owner", NUMBER(17)), "stale", WEB1_WITH(ANEW)),
                "unsafe: " WEB1_IS "primary_node: node3 has no replica of it (replica: node2)");
    assert_says(anew(WEB1_WITH(RECREATING, "task_owner", NUMBER(16)), "stale", WEB1_WITH(ANEW)),
                "unsafe: " WEB1_IS "primary_node: node3 has no replica of it (replica: node2)");
}

static void test_recreate_gives_up_nothing_good(void)
{
    assert_says(anew(WEB1_WITH(RECREATING), "in-sync", WEB1_WITH(ANEW)),
                "unsafe: " WEB1_IS "primary_node: the replica on node2 has its data; fail over to "
                "it in place of making new disks");
    assert_says(check(changes_of(WEB1_WITH(RECREATING), offline(NODE1), offline(NODE2), NULL),
                      changes_of(WEB1_WITH(ANEW), del("replica", REPLICA1, 1), NULL)),
                "ok");
    assert_says(check(changes_of(WEB1_WITH(RECREATING), replica_in("stale"), NULL),
                      changes_of(WEB1_WITH(ANEW), del("replica", REPLICA1, 1), NULL)),
                "unsafe: " WEB1_IS
                "primary_node: node1 still holds generation 4 and is not offline; stop the "
                "instance there first, or give evidence that the node is dead");
}

#define UNSETTLED(mark, then)                                                                      \
    "unsafe: " WEB1_IS "task_state: goes from recreating-disks to " mark                           \
    " (generation 4, then " then ") although job 17 has not settled which disks it has (SAF-22)"

/* Whatever a job computes, nothing goes on with an instance while its disks are not settled. */
static void test_recreate_unsettled(void)
{
    struct change *next = WEB1_WITH("task_state", TEXT("starting"), "generation", NUMBER(5));
    assert_says(check(changes_of(WEB1_WITH(RECREATING), NULL), changes_of(next, NULL)),
                UNSETTLED("starting", "5"));
    assert_says(check(changes_of(WEB1_WITH(RECREATING), NULL),
                      changes_of(WEB1_WITH("task_state", TEXT("failing-over")), NULL)),
                UNSETTLED("failing-over", "4"));
    assert_says(check(changes_of(WEB1_WITH(RECREATING), NULL),
                      changes_of(WEB1_WITH("generation", NUMBER(5)), NULL)),
                UNSETTLED("no mark", "5"));
    assert_says(check(changes_of(WEB1_WITH(RECREATING), NULL),
                      changes_of(WEB1_WITH("task_state", TEXT("removing")), NULL)),
                "ok");
    assert_says(check(changes_of(WEB1_WITH(RECREATING), NULL),
                      changes_of(WEB1_WITH("admin_state", TEXT("up")), NULL)),
                "ok");
}

static void test_disks(void)
{
    assert_says(check(NULL, changes_of(WEB1_WITH(NEW_DISKS), NULL)),
                "unsafe: " WEB1_IS "disks[0]: is another one (" DISK1
                " before) although nothing has marked the instance as recreating-disks");
    assert_says(check(changes_of(WEB1_WITH(RECREATING), NULL),
                      changes_of(WEB1_WITH(RECREATING, NEW_DISKS), NULL)),
                "unsafe: " WEB1_IS "disks[0]: is made anew, so no replica can equal it");
    /* Where they were, too, they are given up as a whole. */
    assert_says(check(changes_of(WEB1_WITH(RECREATING), replica_in("stale"), NULL),
                      changes_of(WEB1_WITH(RECREATING, NEW_DISKS), NULL)),
                "unsafe: " WEB1_IS
                "primary_node: node1 still holds generation 4 and is not offline; stop the "
                "instance there first, or give evidence that the node is dead");
    assert_says(
        check(changes_of(WEB1_WITH(RECREATING, "holder", TEXT("")), replica_in("stale"), NULL),
              changes_of(WEB1_WITH(RECREATING, NEW_DISKS, "holder", TEXT("")), NULL)),
        "unsafe: " WEB1_IS "primary_node: new disks on node1 are other disks (0 keep their "
        "UUID), without the old replica, and nobody holds them yet (holder: nobody)");
    assert_says(
        check(changes_of(WEB1_WITH(RECREATING, "holder", TEXT("")), replica_in("stale"), NULL),
              changes_of(WEB1_WITH(ANEW, "primary_node", TEXT(NODE1)), del("replica", REPLICA1, 1),
                         NULL)),
        "ok");
    assert_says(check(NULL, changes_of(WEB1_WITH("disks", json_make("[{s:s,s:i}]", "uuid", DISK1,
                                                                    "size", 63)),
                                       NULL)),
                "unsafe: " WEB1_IS "disks[0].size: falls from 64 to 63 MiB; a disk only grows");
    assert_says(
        check(NULL, changes_of(WEB1_WITH("disks", json_make("[{s:s,s:i},{s:s,s:i}]", "uuid", DISK1,
                                                            "size", 64, "uuid", DISK1, "size", 1)),
                               NULL)),
        "already_exists: " WEB1_IS "disks[1].uuid: " DISK1 " is disks[0] already");
    assert_says(
        check(NULL, changes_of(WEB1_WITH("disks", json_make("[{s:s,s:i,s:s}]", "uuid", DISK1,
                                                            "size", 64, "format", "qcow2")),
                               NULL)),
        "wrong_state: " WEB1_IS "disks[0].format: is qcow2; a mirrored disk is always raw");
}

#define SECOND_DISK "33333333-3333-4333-8333-0000000000f2"

static json_t *two_disks(bool turned)
{
    return json_make("[{s:s,s:i},{s:s,s:i}]", "uuid", turned ? SECOND_DISK : DISK1, "size", 64,
                     "uuid", turned ? DISK1 : SECOND_DISK, "size", 64);
}

/* From two disks to one while nobody holds it. */
static char *last_goes(guint generation, const char *holder, const char *left)
{
    return check(changes_of(WEB1_WITH("disks", two_disks(!strcmp(left, SECOND_DISK)), "holder",
                                      TEXT(""), "generation", NUMBER(5)),
                            replica_in("stale"), NULL),
                 changes_of(WEB1_WITH("disks", json_make("[{s:s,s:i}]", "uuid", DISK1, "size", 64),
                                      "holder", TEXT(holder), "generation", NUMBER(generation)),
                            NULL));
}

static void test_last_disk(void)
{
    assert_says(last_goes(6, "", DISK1), "ok");
    assert_says(last_goes(5, "", DISK1),
                "unsafe: " WEB1_IS "disks[1]: is another one (" SECOND_DISK
                " before) although nothing has marked the instance as recreating-disks");
    assert_says(last_goes(6, NODE1, DISK1),
                "unsafe: " WEB1_IS "disks[1]: is another one (" SECOND_DISK
                " before) although nothing has marked the instance as recreating-disks");
    assert_says(last_goes(6, "", SECOND_DISK), /* the first one goes */
                "unsafe: " WEB1_IS "disks[0]: is another one (" SECOND_DISK
                " before) although nothing has marked the instance as recreating-disks");
}

/* --- network cards --- */

static json_t *card(const char *mac, const char *mode, const char *link, const char *ip)
{
    return json_make("{s:s,s:s,s:s,s:s,s:s}", "uuid", OTHER, "mac", mac, "mode", mode, "link", link,
                     "ip", ip);
}

static char *with_card(const char *mac, const char *mode, const char *link, const char *ip)
{
    return check(NULL,
                 changes_of(WEB1_WITH("nics", json_make("[o]", card(mac, mode, link, ip))), NULL));
}

#define MAC "aa:00:00:12:34:56"

static void test_mac_taken(void)
{
    struct change *first = WEB1_WITH("nics", json_make("[o]", card(MAC, "bridged", "br0", "")));
    assert_says(
        check(
            changes_of(first, NULL),
            changes_of(DB1_WITH("nics", json_make("[o]", card(MAC, "bridged", "br1", ""))), NULL)),
        "already_exists: " DB1_IS "nics[0].mac: " MAC
        " is taken by instance \"web1\"; choose another, or mac=auto");
    assert_says(
        check(NULL, changes_of(WEB1_WITH("nics", json_make("[o,o]", card(MAC, "bridged", "br0", ""),
                                                           card(MAC, "bridged", "br0", ""))),
                               NULL)),
        "already_exists: " WEB1_IS "nics[1].mac: " MAC
        " is taken by nics[0]; choose another, or mac=auto");
    /* Given back, it is free: the same commit may pass it on. */
    assert_says(
        check(
            changes_of(WEB1_WITH("nics", json_make("[o]", card(MAC, "bridged", "br0", ""))), NULL),
            changes_of(WEB1_WITH("nics", json_array()),
                       DB1_WITH("nics", json_make("[o]", card(MAC, "bridged", "br1", ""))), NULL)),
        "ok");
}

static void test_cards(void)
{
    assert_says(with_card(MAC, "bridged", "br0", ""), "ok");
    assert_says(with_card(MAC, "routed", "", "10.1.2.3"), "ok");
    static const char *const macs[] = {"AA:00:00:12:34:56", "ab:00:00:12:34:5g",
                                       "aa-00-00-12-34-56", "ab:00:00:12:34:56",
                                       "00:00:00:00:00:00"};
    for (guint i = 0; i < G_N_ELEMENTS(macs); i++) {
        g_autofree char *refusal = g_strdup_printf(
            "wrong_input: " WEB1_IS "nics[0].mac: \"%s\" is not the address of one card, such as "
            "aa:00:00:12:34:56 in lower case",
            macs[i]);
        assert_says(with_card(macs[i], "bridged", "br0", ""), refusal);
    }
    assert_says(with_card(MAC, "openvswitch", "", ""),
                "wrong_input: " WEB1_IS "nics[0].link: a card in mode openvswitch needs a bridge");
    assert_says(with_card(MAC, "routed", "", ""),
                "wrong_input: " WEB1_IS "nics[0].ip: a routed card needs an address");
    assert_says(with_card(MAC, "bridged", "br0", "10.1.2"),
                "wrong_input: " WEB1_IS "nics[0].ip: \"10.1.2\" is no address");
}

/* --- what needs no lock --- */

static struct change *advice(const char *node, const char *word)
{
    return put("advice", OTHER, 0,
               json_make("{s:s,s:s,s:s,s:s,s:s}", "uuid", OTHER, "author", "rack", "subject_kind",
                         "node", "subject", node, "advice", word));
}

static void test_advice(void)
{
    assert_says(check(NULL, changes_of(advice(NODE3, "avoid"), NULL)), "ok");
    assert_says(check(NULL, changes_of(advice(NODE3, "like"), NULL)),
                "wrong_input: advice " OTHER ": advice: \"like\" is unknown; there is: avoid");
    assert_says(check(NULL, changes_of(advice(WEB1, "avoid"), NULL)),
                "unknown_entity: advice " OTHER ": subject: there is no node " WEB1);
    json_t *about = json_make("{s:s,s:s,s:s,s:s,s:s}", "uuid", OTHER, "author", "rack",
                              "subject_kind", "instance", "subject", WEB1, "advice", "avoid");
    assert_says(check(NULL, changes_of(put("advice", OTHER, 0, about), NULL)),
                "wrong_input: advice " OTHER
                ": subject_kind: there is advice about nodes only, not about \"instance\"");
    assert_says(
        check(changes_of(advice(NODE3, "avoid"), NULL), changes_of(del("node", NODE3, 1), NULL)),
        "wrong_state: node node3 (" NODE3 "): cannot be deleted, advice " OTHER " refers to it");
}

static void test_brake(void)
{
    assert_says(check(NULL, changes_of(put("repair_brake", "cluster", 0,
                                           json_make("{s:i,s:s}", "since", 1, "why", "storm")),
                                       NULL)),
                "ok");
    assert_says(check(NULL, changes_of(put("repair_brake", "other", 0,
                                           json_make("{s:i,s:s}", "since", 1, "why", "storm")),
                                       NULL)),
                "wrong_input: repair_brake other: there is one brake for all; its key is "
                "\"cluster\"");
}

static void test_mac_prefix(void)
{
    json_t *cluster = json_make("{s:s,s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node",
                                NODE1, "mac_prefix", "ab:00:00");
    assert_says(check(NULL, changes_of(put("cluster", CLUSTER, 1, cluster), NULL)),
                "wrong_input: cluster c1 (" CLUSTER
                "): mac_prefix: \"ab:00:00\" does not begin the address of a card, as aa:00:00 "
                "does");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moves/migration/begin#SAF-17", test_begin);
    g_test_add_func("/moves/migration/begin/nodes#SAF-17", test_begin_needs_both_nodes);
    g_test_add_func("/moves/migration/under-way#SAF-17", test_under_way);
    g_test_add_func("/moves/migration/born#SAF-17", test_born_migrating);
    g_test_add_func("/moves/migration/moved#SAF-17", test_moved);
    g_test_add_func("/moves/migration/no-promise#SAF-17,SAF-13", test_moved_is_no_promise);
    g_test_add_func("/moves/migration/settled#SAF-17", test_moved_and_settled);
    g_test_add_func("/moves/migration/failover#SAF-16,SAF-17", test_failover_ends_migration);
    g_test_add_func("/moves/templates#SAF-16", test_templates);
    g_test_add_func("/moves/shared#SAF-21", test_shared_needs_a_statement);
    g_test_add_func("/moves/recreate#SAF-16,SAF-22", test_recreate);
    g_test_add_func("/moves/recreate/good#SAF-16,SAF-22", test_recreate_gives_up_nothing_good);
    g_test_add_func("/moves/recreate/unsettled#SAF-22", test_recreate_unsettled);
    g_test_add_func("/moves/disks#SAF-13", test_disks);
    g_test_add_func("/moves/last-disk#SAF-22", test_last_disk);
    g_test_add_func("/moves/cards/mac-taken", test_mac_taken);
    g_test_add_func("/moves/cards", test_cards);
    g_test_add_func("/moves/advice", test_advice);
    g_test_add_func("/moves/brake", test_brake);
    g_test_add_func("/moves/mac-prefix", test_mac_prefix);
    return g_test_run();
}

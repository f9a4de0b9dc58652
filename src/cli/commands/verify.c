/*
 * `fettle cluster verify` and `fettle node verify`: what is not as it should be, of the whole
 * cluster or only as far as it concerns one node (ARP-70). Both only ask. The check of one
 * instance, which looks at its images and its replica, is a job: OP_INSTANCE_VERIFY.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

struct findings {
    GPtrArray *lines; /* what is not as it should be */
    GPtrArray *notes; /* what is worth knowing, and no fault */
    const char *node; /* only what concerns this one is asked and found; NULL: all */
};

static bool concerns(const struct findings *findings, const char *node)
{
    return findings->node == NULL || g_strcmp0(findings->node, node) == 0;
}

static void find(struct findings *findings, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void find(struct findings *findings, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(findings->lines, g_strdup_vprintf(format, args));
    va_end(args);
}

static void note(struct findings *findings, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void note(struct findings *findings, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(findings->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

/* Hosts can join as long as the master has the key, whoever that is. */
static void verify_authority(struct findings *findings, const json_t *info)
{
    size_t index;
    const json_t *copy;
    const char *master = json_string_value(json_object_get(info, "master"));
    if (concerns(findings, master) && !json_is_true(json_object_get(info, "authority_key")))
        find(findings, "master: /etc/fettle/ca.key is missing, so no host can join; put it back "
                       "from a backup or from a node that has it, with mode 0600");
    json_array_foreach(json_object_get(info, "copies"), index, copy) {
        const char *node = json_string_value(json_object_get(copy, "node"));
        bool reachable = json_is_true(json_object_get(copy, "reachable"));
        if (concerns(findings, node) && reachable &&
            !json_is_true(json_object_get(copy, "authority")))
            find(findings,
                 "node %s: does not have the key of the cluster's authority, so as master it "
                 "could let no host in; the log of its fettle-wconfd says why",
                 node);
    }
}

/* Filters for cli_query(): the node, and the instances whose primary or secondary node it is. */
static json_t *only_node(const struct findings *findings)
{
    return findings->node != NULL ? json_make("[sss]", "=", "name", findings->node) : NULL;
}

static json_t *only_its_instances(const struct findings *findings)
{
    const char *node = findings->node;
    return node != NULL ? json_make("[s[sss][sss]]", "|", "=", "pnode", node, "=[]", "snodes", node)
                        : NULL;
}

/* Carried by the master's node, on its device, and nowhere else. */
static void verify_carrier(struct findings *findings, const json_t *info, const json_t *row)
{
    const char *address = json_string_value(json_object_get(info, "master_ip"));
    const char *netdev = json_string_value(json_object_get(info, "master_netdev"));
    const char *master = json_string_value(json_object_get(info, "master"));
    const char *name = cli_cell_string(row, 0);
    const json_t *devices = cli_cell_value(row, 1), *device;
    bool is_master = g_strcmp0(name, master) == 0, carries = false;
    size_t index;
    json_array_foreach(devices, index, device) {
        const char *on = json_string_value(device);
        if (is_master && g_strcmp0(on, netdev) == 0)
            carries = true;
        else
            find(findings,
                 "node %s: has the master IP %s on %s%s; remove it there: ip address del "
                 "%s/%" G_GINT64_FORMAT " dev %s",
                 name, address, on,
                 is_master ? ", which is not its device" : ", and is not the master", address,
                 (gint64)json_integer_value(json_object_get(info, "master_netmask")), on);
    }
    if (is_master && devices != NULL && !carries)
        find(findings,
             "node %s: is the master and does not carry the master IP %s on %s; the log of its "
             "fettle-noded says why",
             name, address, netdev != NULL ? netdev : "");
}

static bool verify_master_ip(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "master_ip", NULL};
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    const char *address = json_string_value(json_object_get(info, "master_ip"));
    if (address == NULL || *address == '\0')
        return info != NULL;
    json_autoptr rows = cli_query(cli, "node", fields, only_node(findings), error);
    for (size_t i = 0; i < json_array_size(rows); i++)
        verify_carrier(findings, info, json_array_get(rows, i));
    return rows != NULL;
}

/* "run/queue/bad-job-17-TIME": what luxid could not read, and has set aside (job_file.h). */
static void find_bad_job_file(struct findings *findings, const char *node, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    g_auto(GStrv) words = g_strsplit(name, "-", 4);
    find(findings,
         "job file %s of node %s: is no record of job %s and was set aside; the log of its "
         "fettle-luxid says why. What became of the job is on record: fettle job info %s. Look at "
         "the disk and at the file, then remove it",
         path, node, words[2], words[2]);
}

static bool verify_master(struct cli *cli, struct findings *findings, GError **error)
{
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL)
        return false;
    size_t index;
    const json_t *value;
    json_array_foreach(json_object_get(info, "problems"), index, value) {
        if (findings->node == NULL)
            find(findings, "configuration: %s", json_string_value(value));
    }
    json_array_foreach(json_object_get(info, "nodes_pending"), index, value) {
        const char *node = json_string_value(value);
        if (concerns(findings, node))
            find(findings,
                 "node %s: has not answered this epoch yet; no lock that covers it is granted",
                 node);
    }
    json_array_foreach(json_object_get(info, "bad_job_files"), index, value) {
        if (concerns(findings, json_string_value(json_object_get(info, "master"))))
            find_bad_job_file(findings, json_string_value(json_object_get(info, "master")),
                              json_string_value(value));
    }
    verify_authority(findings, info);
    return true;
}

/* Images that a returned node keeps aside (SAF-19) are no fault; a person should know of them. */
static void note_leftovers(struct findings *findings, const char *node, const json_t *leftovers)
{
    size_t i;
    const json_t *image;
    json_array_foreach(leftovers, i, image)
        note(findings,
             "node %s: keeps images aside of %s (instance, generation); they go when it holds an "
             "in-sync replica again, or remove them from var/disks/aside",
             node, json_string_value(image));
}

/* What only shows beside the others' is in there, too (SAF-92, SAF-93). */
static bool find_faults(struct findings *findings, const char *node, const json_t *faults)
{
    size_t i;
    const json_t *fault;
    json_array_foreach(faults, i, fault)
        find(findings, "node %s: %s", node, json_string_value(fault));
    return json_array_size(faults) > 0;
}

/* Before guests find no room: what a person can still do something about. */
static void verify_room(struct findings *findings, const char *name, json_int_t total,
                        json_int_t left)
{
    json_int_t used = (total - MIN(left, total)) * 100 / total;
    bool full = used >= LIMIT_DISK_FULL_PERCENT;
    if (used >= LIMIT_DISK_WARN_PERCENT)
        find(findings,
             "node %s: %" G_GINT64_FORMAT " %% of its disk space are used (%" G_GINT64_FORMAT
             " MiB left)%s; make room, or: fettle node evacuate %s",
             name, (gint64)used, (gint64)left,
             full ? ", guests there stand still when there is none left" : "", name);
}

/* What does not answer there although the node daemon does; whether its disks are of that. */
static bool find_late(struct findings *findings, const char *node, const json_t *late)
{
    size_t i;
    const json_t *part;
    bool disks = false;
    json_array_foreach(late, i, part) {
        const char *words = json_string_value(part);
        find(findings, "node %s: %s", node, words);
        disks = disks || g_str_has_prefix(words, "disks:");
    }
    return disks;
}

/* No fault of the cluster's, and many hosts have no KVM that works; but guests are slow there. */
static void note_accelerator(struct findings *findings, const char *node, const char *why)
{
    if (*why)
        note(findings,
             "node %s: has /dev/kvm, and its guests run without it: %s. If that is how it shall "
             "be: fettle cluster modify --accelerator tcg",
             node, why);
}

/* Of a node that answers: what is on no disk but the master's is lost with it. */
static void verify_copy(struct findings *findings, const json_t *info, const char *node)
{
    size_t index;
    const json_t *copy;
    json_array_foreach(json_object_get(info, "copies"), index, copy) {
        gint64 serial = (gint64)json_integer_value(json_object_get(copy, "serial"));
        g_autofree char *at = serial > 0
                                  ? g_strdup_printf("stands at serial %" G_GINT64_FORMAT, serial)
                                  : g_strdup("has not been heard of");
        if (strcmp(json_string_value(json_object_get(copy, "node")), node) == 0 &&
            !json_is_true(json_object_get(copy, "reachable")) &&
            !json_is_true(json_object_get(copy, "filling")))
            find(findings,
                 "node %s: its copy of the configuration %s, and no change waits for it: as master "
                 "it would lack what has changed since. See whether its fettle-wconfd runs, and "
                 "what its log says",
                 node, at);
    }
}

static bool verify_nodes(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name",   "offline", "mfree", "dtotal",      "leftovers",
                                         "faults", "dfree",   "late",  "without_kvm", NULL};
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    json_autoptr rows =
        info != NULL ? cli_query(cli, "node", fields, only_node(findings), error) : NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0);
        if (json_is_true(cli_cell_value(row, 1))) {
            find(findings, "node %s: is offline", name);
            continue;
        }
        bool disks_late = find_late(findings, name, cli_cell_value(row, 7));
        bool refuses =
            cli_cell_value(row, 2) == NULL && json_array_size(cli_cell_value(row, 7)) > 0;
        if (refuses) /* it answers, with an error, which is said */
            continue;
        if (cli_cell_value(row, 2) == NULL)
            find(findings, "node %s: does not answer", name);
        else if (!find_faults(findings, name, cli_cell_value(row, 5)) && !disks_late &&
                 json_integer_value(cli_cell_value(row, 3)) == 0)
            find(findings, "node %s: the folder of its disks cannot be read", name);
        else if (json_integer_value(cli_cell_value(row, 3)) > 0)
            verify_room(findings, name, json_integer_value(cli_cell_value(row, 3)),
                        json_integer_value(cli_cell_value(row, 6)));
        if (cli_cell_value(row, 2) != NULL)
            verify_copy(findings, info, name);
        note_leftovers(findings, name, cli_cell_value(row, 4));
        note_accelerator(findings, name, cli_cell_string(row, 8));
    }
    return rows != NULL;
}

static void verify_replica(struct findings *findings, const json_t *row)
{
    const char *name = cli_cell_string(row, 0);
    const char *state = cli_cell_string(row, 3), *why = cli_cell_string(row, 6);
    if (strcmp(cli_cell_string(row, 2), "mirror") != 0)
        return;
    if (*state == '\0')
        find(findings, "instance %s: has no replica", name);
    else if (strcmp(state, "in-sync") != 0)
        find(findings, "instance %s: its replica is %s%s%s", name, state, *why ? ": " : "", why);
}

static void verify_io(struct findings *findings, const json_t *row)
{
    json_int_t failed = json_integer_value(cli_cell_value(row, 8));
    if (failed > 0 && concerns(findings, cli_cell_string(row, 7)))
        find(findings,
             "instance %s: %" G_GINT64_FORMAT
             " requests of its disks on %s have failed since it was "
             "started, the last of disk %" G_GINT64_FORMAT,
             cli_cell_string(row, 0), (gint64)failed, cli_cell_string(row, 7),
             (gint64)json_integer_value(cli_cell_value(row, 9)));
}

/* How a guest runs concerns the node where it has to run; its replica concerns both its nodes. */
static bool verify_instances(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {
        "name",        "status", "disk_template", "replica.state", "task_state", "task_owner",
        "replica.why", "pnode",  "io.errors",     "io.disk",       "guest.late", NULL};
    json_autoptr rows = cli_query(cli, "instance", fields, only_its_instances(findings), error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0), *status = cli_cell_string(row, 1);
        bool well = strcmp(status, "running") == 0 || strcmp(status, "ADMIN_down") == 0;
        bool its = concerns(findings, cli_cell_string(row, 7)) ||
                   strcmp(status, "ERROR_wrongnode") == 0; /* it runs on its secondary node */
        if (!well && its)
            find(findings, "instance %s: status is %s%s", name, *status ? status : "unknown",
                 strcmp(status, "ERROR_nospace") == 0
                     ? ": it stands still until there is room for its disks"
                     : "");
        verify_io(findings, row);
        if (its && *cli_cell_string(row, 10))
            find(findings, "instance %s: %s", name, cli_cell_string(row, 10));
        if (*cli_cell_string(row, 4))
            find(findings, "instance %s: job %" G_GINT64_FORMAT " is or was %s it", name,
                 (gint64)json_integer_value(cli_cell_value(row, 5)), cli_cell_string(row, 4));
        verify_replica(findings, row);
    }
    return rows != NULL;
}

/* --- versions (FUT-12) --- */

#define NAMES_MOST 20 /* of daemons that one line names */

static gint longest_first(gconstpointer a, gconstpointer b, gpointer by_version)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    guint lefts = ((GPtrArray *)g_hash_table_lookup(by_version, left))->len;
    guint rights = ((GPtrArray *)g_hash_table_lookup(by_version, right))->len;
    return lefts != rights ? (lefts > rights ? -1 : 1) : strcmp(right, left);
}

/* "luxid of node1, noded of node2 (last known) and 3 more"; free with g_free(). */
static char *names_text(const GPtrArray *names)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < MIN(names->len, NAMES_MOST); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", (const char *)names->pdata[i]);
    if (names->len > NAMES_MOST)
        g_string_append_printf(text, " and %u more", names->len - NAMES_MOST);
    return g_string_free(text, FALSE);
}

static GHashTable *by_version(const json_t *rows)
{
    GHashTable *table =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *version = cli_cell_string(row, 2);
        GPtrArray *names = g_hash_table_lookup(table, version);
        if (*version == '\0')
            continue;
        if (names == NULL) {
            names = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(table, g_strdup(version), names);
        }
        bool past = strcmp(cli_cell_string(row, 3), "last known") == 0;
        g_ptr_array_add(names,
                        g_strdup_printf("%s of %s%s", cli_cell_string(row, 0),
                                        cli_cell_string(row, 1), past ? " (last known)" : ""));
    }
    return table;
}

/* No fault while an upgrade is under way; a person should know of one that was left half done. */
static bool note_versions(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "node", "version", "known", NULL};
    json_autoptr rows = cli_query(cli, "service", fields, NULL, error);
    g_autoptr(GHashTable) table = by_version(rows);
    g_autoptr(GPtrArray) versions = g_ptr_array_new();
    GHashTableIter iter;
    void *version;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &version, NULL))
        g_ptr_array_add(versions, version);
    g_ptr_array_sort_with_data(versions, longest_first, table);
    for (guint i = 1; i < versions->len; i++) {
        g_autofree char *names = names_text(g_hash_table_lookup(table, versions->pdata[i]));
        note(findings,
             "version %s of Fettle: %s; others run version %s. Unless an upgrade is under way, "
             "install "
             "the same version there and restart them",
             (const char *)versions->pdata[i], names, (const char *)versions->pdata[0]);
    }
    return rows != NULL;
}

/* An invitation is no fault; a person should know of one that nobody uses, or that somebody tries
 * to guess. */
static bool note_invitations(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "state", "expires", "wrong_secrets", NULL};
    json_autoptr rows = cli_query(cli, "invitation", fields,
                                  json_make("[s[sss]]", "!", "=", "state", "used"), error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0), *state = cli_cell_string(row, 1);
        g_autofree char *when = cli_time_text(json_integer_value(cli_cell_value(row, 2)));
        int wrong = (int)json_integer_value(cli_cell_value(row, 3));
        if (strcmp(state, "expired") == 0)
            note(findings,
                 "invitation of %s: ended at %s and was not used; forget it with: fettle node "
                 "invite --withdraw %s",
                 name, when, name);
        if (wrong > 0)
            note(
                findings,
                "invitation of %s: hosts came with a wrong secret %d time%s%s; if that was none of "
                "yours: fettle node invite --withdraw %s",
                name, wrong, wrong == 1 ? "" : "s",
                strcmp(state, "void") == 0 ? ", so it is void" : "", name);
    }
    return rows != NULL;
}

/* Locks of jobs that have ended: none may outlive its owner. */
static bool verify_locks(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "owner", NULL};
    g_autofree char *its = g_strdup_printf("node/%s", findings->node ? findings->node : "");
    json_t *filter = findings->node != NULL ? json_make("[sss]", "=", "name", its) : NULL;
    json_autoptr locks = cli_query(cli, "lock", fields, filter, error);
    json_autoptr jobs =
        locks == NULL
            ? NULL
            : cli_query(cli, "job", (const char *const[]){"id", "status", NULL}, NULL, error);
    if (jobs == NULL)
        return false;
    g_autoptr(GHashTable) live = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *row = json_array_get(jobs, i);
        const char *status = cli_cell_string(row, 1);
        if (strcmp(status, "success") != 0 && strcmp(status, "error") != 0 &&
            strcmp(status, "canceled") != 0)
            g_hash_table_add(live,
                             g_strdup_printf("%" G_GINT64_FORMAT,
                                             (gint64)json_integer_value(cli_cell_value(row, 0))));
    }
    for (size_t i = 0; i < json_array_size(locks); i++) {
        const json_t *row = json_array_get(locks, i);
        const json_t *owners = cli_cell_value(row, 1), *owner;
        size_t index;
        json_array_foreach(owners, index, owner) {
            const char *text = json_string_value(owner);
            if (text != NULL && g_ascii_isdigit(text[0]) && !g_hash_table_contains(live, text))
                find(findings, "lock %s: is held by job %s, which has ended",
                     cli_cell_string(row, 0), text);
        }
    }
    return true;
}

static json_t *texts(const GPtrArray *lines)
{
    json_t *list = json_array();
    for (guint i = 0; i < lines->len; i++)
        json_array_append_new(list, json_string(lines->pdata[i]));
    return list;
}

/* `whole`: the sentence if nothing was found. Returns the exit code. */
static int print_findings(const struct cli *cli, const struct findings *findings, const char *whole)
{
    guint count = findings->lines->len;
    for (guint i = 0; i < count && !cli->json; i++)
        printf("%s\n", (const char *)findings->lines->pdata[i]);
    for (guint i = 0; i < findings->notes->len && !cli->json; i++)
        printf("note: %s\n", (const char *)findings->notes->pdata[i]);
    json_t *object =
        json_make("{so so}", "problems", texts(findings->lines), "notes", texts(findings->notes));
    if (count == 0)
        cli_say(cli, object, "%s", whole);
    else
        cli_say(cli, object, "%u thing%s not as it should be.", count,
                count == 1 ? " is" : "s are");
    return count == 0 ? 0 : 1;
}

static bool verify(struct cli *cli, struct findings *findings, GError **error)
{
    return verify_master(cli, findings, error) && verify_nodes(cli, findings, error) &&
           verify_master_ip(cli, findings, error) && verify_instances(cli, findings, error) &&
           verify_locks(cli, findings, error);
}

/* Nothing is wrong with what is there, but nothing will be mended either. */
static bool note_brake(struct cli *cli, struct findings *findings, GError **error)
{
    json_autoptr rows =
        cli_query(cli, "brake", (const char *const[]){"since", "why", NULL}, NULL, error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *since = cli_time_text((gint64)json_number_value(cli_cell_value(row, 0)));
        note(findings,
             "auto-repair stands still, its storm brake is on since %s: %s Look around, then: "
             "fettle repair continue",
             since, cli_cell_string(row, 1));
    }
    return rows != NULL;
}

/* What a person has stopped on purpose, and may have forgotten. */
static bool note_stopped(struct cli *cli, struct findings *findings, GError **error)
{
    json_autoptr values = cli_call(cli, "QueryConfigValues",
                                   json_make("[[ss]]", "drain_flag", "watcher_pause"), error);
    const json_t *pause = json_array_get(values, 1);
    if (json_is_true(json_array_get(values, 0)))
        note(findings, "the queue is drained: no job is taken, none of auto-repair either, until: "
                       "fettle queue undrain");
    if (json_is_integer(pause)) {
        g_autofree char *until = cli_time_text((gint64)json_integer_value(pause));
        note(findings,
             "the watcher is paused until %s, so nothing is repaired; to end that: fettle queue "
             "pause-watcher 0",
             until);
    }
    return values != NULL;
}

static int cluster_verify(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "cluster verify", error))
        return -1;
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    struct findings findings = {lines, notes, NULL};
    if (!verify(cli, &findings, error) || !note_versions(cli, &findings, error) ||
        !note_invitations(cli, &findings, error) || !note_brake(cli, &findings, error) ||
        !note_stopped(cli, &findings, error))
        return -1;
    return print_findings(cli, &findings, "The cluster is as it should be.");
}

/* The name of the node with this name or UUID; NULL with UNKNOWN_ENTITY. */
static char *find_node(struct cli *cli, const char *word, GError **error)
{
    static const char *const fields[] = {"name", NULL};
    json_autoptr rows =
        cli_query(cli, "node", fields,
                  json_make("[s[sss][sss]]", "|", "=", "name", word, "=", "uuid", word), error);
    if (rows == NULL)
        return NULL;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "node \"%s\" does not exist", word);
        return NULL;
    }
    return g_strdup(cli_cell_string(json_array_get(rows, 0), 0));
}

static int node_verify(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "node verify NODE", error))
        return -1;
    g_autofree char *node = find_node(cli, argv[0], error);
    if (node == NULL)
        return -1;
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    struct findings findings = {lines, notes, node};
    if (!verify(cli, &findings, error))
        return -1;
    g_autofree char *whole = g_strdup_printf("Node %s is as it should be.", node);
    return print_findings(cli, &findings, whole);
}

const struct command verify_commands[] = {
    {"cluster", "verify", "", "Say what is not as it should be; exit code 1 if anything is.",
     cluster_verify},
    {"node", "verify", "NODE",
     "Say what is not as it should be with a node and the instances on it; exit code 1 if anything "
     "is.",
     node_verify},
    {0},
};

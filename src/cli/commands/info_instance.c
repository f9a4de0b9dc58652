/* The page of one instance; see info.h. */
#include "cli/commands/info.h"

#include <stdio.h>
#include <string.h>

#define RECORDS_SHOWN 3

static const char *mirror_node(const json_t *cells)
{
    const char *node = json_string_value(json_array_get(info_value(cells, "snodes"), 0));
    return node != NULL ? node : "";
}

static void print_state(const json_t *cells)
{
    const char *status = info_string(cells, "status");
    g_autofree char *rest = g_strdup_printf(", should be %s", info_string(cells, "admin_state"));
    g_autofree char *late = g_strdup_printf(": it %s", info_string(cells, "guest.late"));
    info_word("State", *status ? status : "unknown", rest);
    g_autofree char *since = cli_time_text(info_number(cells, "fault.since"));
    g_autofree char *fault =
        g_strdup_printf(" since %s: %s", since, info_string(cells, "fault.message"));
    if (*info_string(cells, "fault.message"))
        info_word("ERROR", "error", fault);
    if (*info_string(cells, "guest.late"))
        info_word("Guest", "error", late);
    g_autofree char *held =
        g_strdup_printf(": its replica is lost, and %s cannot note that (%s)",
                        info_string(cells, "pnode"), info_string(cells, "guest.held"));
    if (*info_string(cells, "guest.held"))
        info_word("Writes", "held", held);
    info_line("Node", "%s (group %s)", info_string(cells, "pnode"),
              info_string(cells, "pnode.group"));
    info_line("Memory", "%" G_GINT64_FORMAT " MiB, %" G_GINT64_FORMAT " processor%s",
              info_number(cells, "be/memory"), info_number(cells, "vcpus"),
              info_number(cells, "vcpus") == 1 ? "" : "s");
    if (*info_string(cells, "pending"))
        info_line("Pending", "%s, from its next start on", info_string(cells, "pending"));
}

static void print_replica(const json_t *cells)
{
    const char *state = info_string(cells, "replica.state"),
               *why = info_string(cells, "replica.why");
    if (strcmp(info_string(cells, "disk_template"), "mirror") != 0)
        return;
    if (*state == '\0') {
        info_word("Replica", "none", ": the disks are on one node only");
        return;
    }
    g_autofree char *since = cli_time_text(info_number(cells, "replica.since"));
    g_autoptr(GString) rest = g_string_new(NULL);
    g_string_printf(rest, " on %s", mirror_node(cells));
    if (strcmp(state, "syncing") == 0 && info_value(cells, "mirror.progress") != NULL)
        g_string_append_printf(rest, ", %" G_GINT64_FORMAT " %% copied",
                               info_number(cells, "mirror.progress"));
    g_string_append_printf(rest, ", since %s%s%s", since, *why ? ": " : "", why);
    info_word("Replica", state, rest->str);
}

/* Nothing is to be said of images that are sound, nor while somebody writes to them. Not known to
 * be so they are refused as the source of a copy over the replica (SAF-24). */
static bool images_doubtful(const json_t *cells)
{
    const char *sound = info_string(cells, "sound");
    bool copied = strcmp(info_string(cells, "replica.state"), "in-sync") == 0 &&
                  !json_is_true(info_value(cells, "clean"));
    return !*info_string(cells, "holder") &&
           (strcmp(sound, "no") == 0 || (strcmp(sound, "unknown") == 0 && copied));
}

static void print_soundness(const json_t *cells)
{
    bool bad = strcmp(info_string(cells, "sound"), "no") == 0;
    g_autofree char *rest = g_strdup_printf(
        bad ? ": when it ended, a write to its images on %s had failed, or they could not be "
              "synced or read"
            : ": %s has not said whether a write to its images had failed when it ended",
        info_string(cells, "pnode"));
    if (images_doubtful(cells))
        info_word("Images", bad ? "not sound" : "unknown", rest);
}

/* The i-th element of a list as text, "" if there is none. */
static char *element(const json_t *cells, const char *field, size_t i)
{
    const json_t *value = json_array_get(info_value(cells, field), i);
    json_autoptr cell = value != NULL ? json_make("[iO]", 0, value) : NULL;
    return cell != NULL ? cli_cell_text(NULL, field, cell) : g_strdup("");
}

static void print_disks(const json_t *cells)
{
    size_t count = json_array_size(info_value(cells, "disk.sizes"));
    info_line("Disks", "%zu, template %s", count, info_string(cells, "disk_template"));
    for (size_t i = 0; i < count; i++) {
        g_autofree char *size = element(cells, "disk.sizes", i);
        g_autofree char *format = element(cells, "disk.formats", i);
        g_autofree char *uuid = element(cells, "disk.uuids", i);
        printf("  %-14s %zu: %s MiB  %s  %s\n", "", i, size, *format ? format : "raw", uuid);
    }
}

static void print_nics(const json_t *cells)
{
    size_t count = json_array_size(info_value(cells, "nic.macs"));
    if (info_value(cells, "nic.macs") == NULL)
        return;
    info_line("Network cards", "%zu", count);
    for (size_t i = 0; i < count; i++) {
        g_autofree char *mac = element(cells, "nic.macs", i);
        g_autofree char *mode = element(cells, "nic.modes", i);
        g_autofree char *link = element(cells, "nic.links", i);
        g_autofree char *ip = element(cells, "nic.ips", i);
        g_autofree char *network = element(cells, "nic.networks.names", i);
        printf("  %-14s %zu: %s  %s%s%s%s%s%s%s\n", "", i, mac, mode, *link ? " on " : "", link,
               *ip ? "  " : "", ip, *network ? "  network " : "", network);
    }
}

static void print_display(const json_t *cells)
{
    const char *bind = info_string(cells, "hv/vnc_bind_address");
    if (*bind)
        info_line("Display", "VNC at port %" G_GINT64_FORMAT " of %s, bound to %s",
                  info_number(cells, "network_port"), info_string(cells, "pnode"), bind);
}

static void print_work(const json_t *cells)
{
    const char *task = info_string(cells, "task_state"), *to = info_string(cells, "migration_node");
    if (*to != '\0')
        info_line("Migration", "to %s", to);
    if (*task == '\0')
        return;
    g_autofree char *since = cli_time_text(info_number(cells, "task_since"));
    info_line("Work", "%s, by job %" G_GINT64_FORMAT " since %s", task,
              info_number(cells, "task_owner"), since);
}

static void print_identity(const json_t *cells)
{
    g_autofree char *made = cli_time_text(info_number(cells, "ctime"));
    g_autofree char *tags = info_list(cells, "tags");
    const char *image = info_string(cells, "os"), *holder = info_string(cells, "holder");
    info_line("Image", "%s", *image ? image : "none");
    info_line("Tags", "%s", tags);
    info_line("Made", "%s, machine type %s", made, info_string(cells, "machine_type"));
    info_line("Generation", "%" G_GINT64_FORMAT "%s%s", info_number(cells, "generation"),
              *holder ? ", runs on " : ", runs nowhere", holder);
    info_line("UUID", "%s", info_string(cells, "uuid"));
}

/* --- volumes --- */

static void print_volumes(struct cli *cli, const char *name)
{
    static const char *const fields[] = {"name", "status", "size", "backend", "device", NULL};
    json_autoptr rows =
        cli_query(cli, "volume", fields, json_make("[sss]", "=", "instance", name), NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        info_line("Volume", "%s, %" JSON_INTEGER_FORMAT " GiB on %s, %s as %s",
                  cli_cell_string(row, 0), json_integer_value(cli_cell_value(row, 2)),
                  cli_cell_string(row, 3), cli_cell_string(row, 1), cli_cell_string(row, 4));
    }
}

/* --- repair --- */

static void print_repairs(struct cli *cli, const char *name)
{
    static const char *const fields[] = {"type", "state", "jobs", NULL};
    json_autoptr rows =
        cli_query(cli, "repair", fields, json_make("[sss]", "=", "instance", name), NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *jobs = cli_cell_text("repair", "jobs", json_array_get(row, 2));
        g_autofree char *rest =
            g_strdup_printf(": %s%s%s", cli_cell_string(row, 0), *jobs ? ", jobs " : "", jobs);
        info_word("Repair", cli_cell_string(row, 1), rest);
    }
}

/* Oldest first, as the cluster answers them. */
void info_print_records(struct cli *cli, const char *what, const char *word, const char *all,
                        const char *name)
{
    const char *const fields[] = {"at", word, "summary", NULL};
    json_autoptr rows =
        cli_query(cli, what, fields, json_make("[sss]", "=", "subject_name", name), NULL);
    size_t count = json_array_size(rows);
    if (count > 0)
        printf("\nLast %ss (all: %s %s)\n", what, all, name);
    for (size_t i = count > RECORDS_SHOWN ? count - RECORDS_SHOWN : 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *when = cli_time_text((gint64)json_number_value(cli_cell_value(row, 0)));
        printf("  %s  %s: %s\n", when, cli_cell_string(row, 1), cli_cell_string(row, 2));
    }
}

/* --- what to do next --- */

/* Whether its node being offline leaves a way to run it elsewhere depends on its disks. */
static void next_without_node(const json_t *cells, const char *name)
{
    const char *template = info_string(cells, "disk_template");
    bool anywhere = strcmp(template, "sharedfile") == 0 || strcmp(template, "diskless") == 0;
    if (strcmp(info_string(cells, "replica.state"), "in-sync") == 0)
        printf("  Run it on %s: fettle instance failover %s\n", mirror_node(cells), name);
    else if (anywhere)
        printf("  Run it on another node: fettle instance failover %s\n", name);
    else
        printf("  Its disks are on %s, which is offline. See: fettle why %s\n",
               info_string(cells, "pnode"), name);
}

/* Moved to its replica's node it finds the room of that one, but for its volumes. */
static void next_without_room(const json_t *cells, const char *name)
{
    printf("  It stands still, as %s. Make room there, and it goes on by itself.\n",
           info_string(cells, "io.why"));
    if (strcmp(info_string(cells, "replica.state"), "in-sync") == 0 &&
        !*info_string(cells, "io.volume"))
        printf("  Or move it to %s: fettle instance migrate %s\n", mirror_node(cells), name);
}

static void next_by_status(const json_t *cells, const char *name)
{
    const char *status = info_string(cells, "status"), *node = info_string(cells, "pnode");
    if (strcmp(status, "ERROR_nodedown") == 0)
        printf("  %s does not answer, but may still run it. If it is really dead, say so:\n"
               "      fettle node modify %s --offline yes --statement \"…\"\n",
               node, node);
    else if (strcmp(status, "ERROR_nodeoffline") == 0)
        next_without_node(cells, name);
    else if (strcmp(status, "ERROR_down") == 0)
        printf("  It should run and does not. See why: fettle why %s; start it: fettle instance "
               "startup %s\n",
               name, name);
    else if (strcmp(status, "ERROR_up") == 0)
        printf("  It runs and should not: fettle instance shutdown %s\n", name);
    else if (strcmp(status, "ERROR_task") == 0)
        printf("  What a job has left of it could not be settled: fettle recovery show instance "
               "%s\n",
               name);
    else if (strcmp(status, "ERROR_nospace") == 0)
        next_without_room(cells, name);
    else if (strcmp(status, "ERROR_diskfailed") == 0)
        printf("  It stands still, as its disk on %s fails. See: fettle why %s\n", node, name);
    else if (strcmp(status, "ADMIN_down") == 0 && images_doubtful(cells) &&
             strcmp(info_string(cells, "replica.state"), "in-sync") == 0)
        printf("  Go on from its replica on %s: fettle instance failover %s\n", mirror_node(cells),
               name);
    else if (strcmp(status, "ADMIN_down") == 0)
        printf("  Start it: fettle instance startup %s\n", name);
    else if (*info_string(cells, "guest.held"))
        printf("  Mend what the state of %s is written to, or bring another master candidate "
               "back; it goes on by itself.\n",
               node);
    else if (strcmp(status, "running") == 0)
        printf("  See its console: fettle instance console %s%s\n", name,
               *info_string(cells, "hv/vnc_bind_address") ? ", or its screen: the same with --vnc"
                                                          : "");
    else
        printf("  Check it: fettle instance verify %s\n", name);
}

static void print_next(const json_t *cells, const char *name)
{
    const char *state = info_string(cells, "replica.state");
    printf("\nNext\n");
    if (*info_string(cells, "task_state"))
        printf("  Follow the job: fettle job watch %" G_GINT64_FORMAT "\n",
               info_number(cells, "task_owner"));
    next_by_status(cells, name);
    if (strcmp(info_string(cells, "disk_template"), "mirror") != 0)
        return;
    if (strcmp(state, "syncing") == 0)
        printf("  Until the copy is complete it is safe on one node only.\n");
    else if (strcmp(state, "in-sync") != 0)
        printf("  Give it a new replica: fettle instance replace-disks %s\n", name);
}

void info_print_instance(struct cli *cli, const json_t *cells)
{
    const char *name = info_string(cells, "name");
    printf("Instance %s\n", name);
    print_state(cells);
    print_replica(cells);
    print_soundness(cells);
    print_disks(cells);
    print_volumes(cli, name);
    print_nics(cells);
    print_display(cells);
    print_work(cells);
    print_repairs(cli, name);
    print_identity(cells);
    info_print_records(cli, "decision", "state", "fettle why", name);
    print_next(cells, name);
}

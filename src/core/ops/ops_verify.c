/*
 * OP_INSTANCE_VERIFY (ARP-70): one instance, its record against what its nodes have. It changes
 * nothing; its answer is the list of problems, each a sentence. An empty list: everything is as the
 * record says.
 */
#include "core/config/fault.h"
#include "core/ops/instance.h"
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"
#include "core/placement/placement.h"
#include "core/report/faults.h"
#include "core/report/late.h"
#include "core/report/stop_why.h"

#include <string.h>

static bool verify_declare(struct op *op, GError **error)
{
    const struct op_instance_verify *params = op->params;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    g_autofree char *lock = g_strdup_printf("instance/%s", instance->name);
    op_lock(op, lock, LOCK_SHARED);
    op_lock_node(op, instance->primary_node, LOCK_SHARED);
    op_lock_node(op, instance->secondary_node, LOCK_SHARED);
    return true;
}

/* A guest or an image may be where it should not be, so every node is asked. */
static bool verify_check(struct op *op, GError **error)
{
    const struct op_instance_verify *params = op->params;
    if (!op_find_instance(op, params->instance_name, error))
        return false;
    return instance_gather_online(op, error);
}

/* --- findings --- */

struct verify {
    struct op *op;
    const struct instance *instance;
    json_t *problems;
};

static void problem(struct verify *verify, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void problem(struct verify *verify, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    op_log(verify->op, "%s", text);
    json_array_append_new(verify->problems, json_string(text));
}

static const char *name(const struct verify *verify, const char *node)
{
    return op_node_name(verify->op, node);
}

static void late_problem(struct verify *verify, const struct node_report *report, const char *part)
{
    g_autofree char *words = late_part_words(late_part_of(report, part));
    problem(verify, "the %s of %s: %s", part, name(verify, report->node), words);
}

/* The report of one of its nodes; a problem if there is none. */
static const struct node_report *node_there(struct verify *verify, const char *node,
                                            const char *role)
{
    const struct node_report *report = op_report(verify->op, node);
    const struct node_fault *fault = faults_proven(report, FAULT_DISKS);
    g_autofree char *why = report ? NULL : op_no_report(verify->op, node);
    if (op_node_offline(verify->op, node))
        problem(verify, "%s, its %s node, is offline", name(verify, node), role);
    else if (!report)
        problem(verify, "%s, its %s node, %s", name(verify, node), role, why);
    else if (fault && verify->instance->disks->len)
        problem(verify, "%s, its %s node, %s", name(verify, node), role, fault->text);
    else if (verify->instance->disks->len && late_part_of(report, PART_DISKS))
        late_problem(verify, report, PART_DISKS);
    return report;
}

static void look_at_marks(struct verify *verify)
{
    const struct instance *instance = verify->instance;
    const struct fault *fault = fault_of(op_config(verify->op), "instance", instance->uuid);
    if (fault)
        problem(verify, "it is in ERROR: %s; more: fettle recovery show instance %s",
                fault->message, instance->name);
    else if (instance->task_state != TASK_NONE)
        problem(verify, "job %" G_GUINT64_FORMAT " has left the mark %s on it",
                instance->task_owner, enum_word(&task_state_words, (int)instance->task_state));
    if (*instance->migration)
        problem(verify, "its migration to %s has not been settled",
                name(verify, instance->migration_node));
}

/* What its disks answer. */
static void look_at_io(struct verify *verify, const struct guest_report *guest, const char *node)
{
    g_autofree char *why = stop_why(op_config(verify->op), guest, verify->instance->primary_node);
    if (why)
        problem(verify, "it stands still, because %s%s", why,
                guest->io_stop == IO_STOP_NO_SPACE ? "; it goes on by itself when there is" : "");
    if (*guest->held)
        problem(verify,
                "its writes are held: its replica is lost, and %s cannot note that (%s), nor is "
                "another candidate known to have it on record; mend what the state of %s is "
                "written to, or bring another candidate back, and it goes on by itself",
                node, guest->held, node);
    if (guest->io_errors)
        problem(verify,
                "%" G_GUINT64_FORMAT " requests of its disks on %s have failed since it was "
                "started, the last of disk %" G_GUINT64_FORMAT,
                guest->io_errors, node, guest->io_disk);
}

static void look_at_guest(struct verify *verify, const struct node_report *report)
{
    const struct instance *instance = verify->instance;
    const struct guest_report *guest = report_guest(report, instance);
    const char *node = name(verify, instance->primary_node);
    bool up = instance->admin_state == ADMIN_UP;
    bool current = guest && *instance->holder && guest->generation == instance->generation;
    if (guest && guest->late) {
        g_autofree char *words = late_guest_words(guest);
        problem(verify, "its guest on %s %s", node, words);
    }
    if (guest && !current)
        problem(verify,
                "generation %" G_GUINT64_FORMAT " of it is on %s, but %" G_GUINT64_FORMAT
                " is on record",
                guest->generation, node, instance->generation);
    else if (up && !guest)
        problem(verify, "it should run on %s and does not", node);
    else if (up && guest->state != GUEST_RUNNING && !guest->late)
        problem(verify, "it should run on %s and is %s", node,
                enum_word(&guest_state_words, (int)guest->state));
    else if (!up && guest && guest->state == GUEST_RUNNING)
        problem(verify, "it should be stopped and runs on %s", node);
    if (current)
        look_at_io(verify, guest, node);
}

/* Wherever it may have to go. */
static void look_at_shared(struct verify *verify)
{
    const struct instance *instance = verify->instance;
    const GPtrArray *reports = reports_list(verify->op->reports);
    bool shared = instance->disks->len && instance->disk_template == TEMPLATE_SHAREDFILE;
    const char *folder = placement_shared(reports, instance->disk_template, instance->primary_node);
    if (shared && !*folder)
        problem(verify, "no node mounts the shared folder with its disks");
    for (guint i = 0; shared && reports && i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        const char *why = placement_unshared(report, folder);
        if (why)
            problem(verify, "%s %s", name(verify, report->node), why);
    }
}

static void look_at_bridges(struct verify *verify, const struct node_report *report)
{
    const char *bridge = placement_missing_bridge(report, verify->instance->nics);
    if (bridge && late_part_of(report, PART_BRIDGES))
        late_problem(verify, report, PART_BRIDGES);
    else if (bridge)
        problem(verify, "%s has no bridge \"%s\" for its network card", name(verify, report->node),
                bridge);
}

/* Shared images belong to no node, so none reports them. */
static void look_at_images(struct verify *verify, const struct node_report *report,
                           const char *replica)
{
    const struct instance *instance = verify->instance;
    guint64 disks = report_images(report, instance, replica);
    if (instance->disk_template == TEMPLATE_SHAREDFILE || images_are_whole(instance, disks))
        return;
    g_autofree char *missing = images_missing(instance, disks);
    if (*replica)
        problem(verify, "%s does not have %s of its replica", name(verify, report->node), missing);
    else
        problem(verify, "%s does not have %s%s", name(verify, report->node), missing,
                disks ? "" : " of its disks");
}

/* --- the replica --- */

static const struct replica_report *replica_on(const struct node_report *report,
                                               const char *replica)
{
    for (guint i = 0; report->replicas && i < report->replicas->len; i++) {
        const struct replica_report *line = report->replicas->pdata[i];
        if (!strcmp(line->replica, replica))
            return line;
    }
    return NULL;
}

/* What the record promises must go on: a mirror that runs, onto an export that lives. */
static void look_at_mirror(struct verify *verify, const struct replica *replica,
                           const struct node_report *primary, const struct node_report *secondary)
{
    const struct instance *instance = verify->instance;
    const struct guest_report *guest = report_guest(primary, instance);
    bool promised = replica->state != REPLICA_STALE;
    if (!promised || !guest || guest->late || guest->generation != instance->generation)
        return;
    const struct replica_report *line = secondary ? replica_on(secondary, replica->uuid) : NULL;
    if (guest->mirror == MIRROR_NONE || guest->mirror == MIRROR_LOST)
        problem(verify, "its replica is on record as %s, but its mirror is %s",
                enum_word(&replica_state_words, (int)replica->state),
                guest->mirror == MIRROR_LOST ? "lost" : "not attached");
    else if (secondary && (!line || !line->exported))
        problem(verify, "its replica on %s is not exported", name(verify, secondary->node));
}

static void look_at_replica(struct verify *verify, const struct node_report *primary)
{
    const struct instance *instance = verify->instance;
    const struct replica *replica = op_replica_of(verify->op, instance);
    if (instance->disk_template != TEMPLATE_MIRROR)
        return;
    if (!replica) {
        problem(verify, "it has no replica");
        return;
    }
    if (replica->state != REPLICA_IN_SYNC)
        problem(verify, "its replica on %s is %s%s%s", name(verify, replica->node),
                enum_word(&replica_state_words, (int)replica->state), *replica->why ? ": " : "",
                replica->why);
    const struct node_report *report = node_there(verify, replica->node, "secondary");
    if (report) {
        look_at_images(verify, report, replica->uuid);
        look_at_bridges(verify, report);
    }
    if (primary)
        look_at_mirror(verify, replica, primary, report);
}

/* --- where it should not be --- */

static bool belongs_there(const struct verify *verify, const char *node, const char *replica)
{
    const struct instance *instance = verify->instance;
    bool primary = !strcmp(instance->primary_node, node) && !*replica;
    bool secondary = !strcmp(instance->secondary_node, node) && !strcmp(instance->replica, replica);
    bool moving = *instance->migration && !strcmp(instance->migration, replica);
    return primary || secondary || moving;
}

static void look_at_strays(struct verify *verify, const struct node_report *report)
{
    const struct instance *instance = verify->instance;
    const struct guest_report *guest = report_guest(report, instance);
    bool target = *instance->migration && !strcmp(instance->migration_node, report->node);
    if (guest && strcmp(instance->primary_node, report->node) && !target)
        problem(verify, "generation %" G_GUINT64_FORMAT " of it is %s on %s, which is not its node",
                guest->generation, enum_word(&guest_state_words, (int)guest->state),
                name(verify, report->node));
    bool seen = !late_part_of(report, PART_DISKS);
    for (guint i = 0; seen && report->images && i < report->images->len; i++) {
        g_auto(GStrv) words = g_strsplit(report->images->pdata[i], " ", 2);
        if (!words[0] || strcmp(words[0], instance->uuid) ||
            belongs_there(verify, report->node, words[1] ? words[1] : ""))
            continue;
        problem(verify, "%s has images of it that the record does not know%s%s",
                name(verify, report->node), words[1] ? ": replica " : "", words[1] ? words[1] : "");
    }
}

static bool verify_exec(struct op *op, GError **error)
{
    const struct op_instance_verify *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    struct verify verify = {op, instance, json_array()};
    look_at_marks(&verify);
    const struct node_report *primary = node_there(&verify, instance->primary_node, "primary");
    if (primary) {
        look_at_guest(&verify, primary);
        look_at_images(&verify, primary, "");
        look_at_bridges(&verify, primary);
    }
    look_at_replica(&verify, primary);
    look_at_shared(&verify);
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; reports && i < reports->len; i++)
        look_at_strays(&verify, reports->pdata[i]);
    op->result = verify.problems;
    return true;
}

const struct op_impl ops_verify[] = {
    {"OP_INSTANCE_VERIFY", verify_declare, verify_check, verify_exec, SEES_NAMED},
    {NULL},
};

/* Instances: whether they are what they are to be, and their replicas; see verify_look.h. */
#include "core/config/fault.h"
#include "core/verify/verify_look.h"

#include <string.h>

static void verify_status(struct look *look, const struct instance *instance)
{
    g_autofree char *status = look_field(look, "instance", "status", instance);
    bool well = g_str_equal(status, "running") || g_str_equal(status, "ADMIN_down") ||
                g_str_equal(status, "ERROR_task"); /* its fault says it */
    bool its = look_concerns(look, instance->primary_node) ||
               (!look->no_node &&
                g_str_equal(status, "ERROR_wrongnode")); /* it runs on its secondary node */
    g_autofree char *why = look_field(look, "instance", "io.why", instance);
    if (!well && its)
        look_problem(look, "instance %s: status is %s%s%s", instance->name,
                     *status ? status : "unknown", *why ? ": it stands still: " : "", why);
}

static void verify_io(struct look *look, const struct instance *instance)
{
    const struct guest_report *guest =
        reports_guest(look->reports, instance->primary_node, instance->uuid);
    if (guest && guest->io_errors && look_concerns(look, instance->primary_node))
        look_problem(look,
                     "instance %s: %" G_GUINT64_FORMAT " requests of its disks on %s have failed "
                     "since it was started, the last of disk %" G_GUINT64_FORMAT,
                     instance->name, guest->io_errors, look_node_name(look, instance->primary_node),
                     guest->io_disk);
}

static void verify_held(struct look *look, const struct instance *instance)
{
    g_autofree char *held = look_field(look, "instance", "guest.held", instance);
    const char *node = look_node_name(look, instance->primary_node);
    if (*held && look_concerns(look, instance->primary_node))
        look_problem(look,
                     "instance %s: its writes are held: its replica is lost, and %s cannot note "
                     "that (%s), nor is another candidate known to have it on record; mend what "
                     "the state of %s is written to, or bring another candidate back, and it goes "
                     "on by itself",
                     instance->name, node, held, node);
}

static void verify_late(struct look *look, const struct instance *instance)
{
    g_autofree char *late = look_field(look, "instance", "guest.late", instance);
    if (*late && look_concerns(look, instance->primary_node))
        look_problem(look, "instance %s: %s", instance->name, late);
}

static void verify_replica(struct look *look, const struct instance *instance)
{
    const struct replica *replica = config_get(look->config, "replica", instance->replica, NULL);
    if (instance->disk_template != TEMPLATE_MIRROR)
        return;
    if (!replica)
        look_problem(look, "instance %s: has no replica", instance->name);
    else if (replica->state != REPLICA_IN_SYNC)
        look_problem(look, "instance %s: its replica is %s%s%s", instance->name,
                     enum_word(&replica_state_words, (int)replica->state),
                     *replica->why ? ": " : "", replica->why);
}

static void verify_fault(struct look *look, const struct instance *instance)
{
    const struct fault *fault = fault_of(look->config, "instance", instance->uuid);
    g_autofree char *since = fault ? text_time((gint64)(fault->at_us / G_USEC_PER_SEC)) : NULL;
    if (fault)
        look_problem(look,
                     "instance %s: in ERROR since %s: %s; more: fettle recovery show instance %s",
                     instance->name, since, fault->message, instance->name);
}

static void verify_instance(struct look *look, const struct instance *instance)
{
    verify_status(look, instance);
    verify_io(look, instance);
    verify_held(look, instance);
    verify_late(look, instance);
    if (instance->task_state != TASK_NONE)
        look_problem(look, "instance %s: job %" G_GUINT64_FORMAT " is or was %s it", instance->name,
                     instance->task_owner, enum_word(&task_state_words, (int)instance->task_state));
    verify_fault(look, instance);
    verify_replica(look, instance);
}

/* How a guest runs concerns the node where it has to run; its replica concerns both its nodes. */
void verify_instances(struct look *look)
{
    g_autoptr(GPtrArray) instances = config_list(look->config, "instance");
    for (guint i = 0; i < instances->len && look_pause(look); i++) {
        const struct instance *instance = instances->pdata[i];
        if (look_concerns(look, instance->primary_node) ||
            look_concerns(look, instance->secondary_node))
            verify_instance(look, instance);
    }
}

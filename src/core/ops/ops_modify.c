/*
 * OP_INSTANCE_SET_PARAMS: what a guest is made of, changed while there is none. The devices of a
 * running one are what its process was started with, and both sides of a migration must have the
 * same; of its memory and processors the record keeps what its next start is to give it.
 */
#include "core/ops/display.h"
#include "core/ops/instance.h"
#include "core/ops/modify_disks.h"
#include "core/ops/nics.h"
#include "core/ops/ops.h"
#include "core/placement/placement.h"
#include "core/placement/placement_refusal.h"

#include <string.h>

#define NONE "none" /* takes a text away; "" leaves it as it is */

/* What is said of the cards of a new instance (nics.h) is said of those that are added. */
static bool fail_cards(GError **error)
{
    if (error && g_str_has_prefix((*error)->message, "nics["))
        g_prefix_error(error, "add_");
    return false;
}

static guint count_of(const GPtrArray *list)
{
    return list ? list->len : 0;
}

static bool modify_declare(struct op *op, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    if (!op_declare_instance(op, params->instance_name, error))
        return false;
    if (!nics_lock_networks(op, params->add_nics, error))
        return fail_cards(error);
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    nics_lock_changed(op, instance->nics, params->change_nics);
    if (modify_disks_asked(params))
        modify_disks_lock_room(op, instance);
    if (params->memory > instance->memory &&
        (!count_of(params->add_disks) || instance->disk_template == TEMPLATE_SHAREDFILE))
        op_lock_room(op, instance->primary_node);
    return true;
}

/* --- what is asked for --- */

static bool names_only_sizes(const struct op_instance_set_params *params)
{
    return !*params->kernel_path && !*params->initrd_path && !*params->kernel_args &&
           !count_of(params->add_nics) && !count_of(params->remove_nics) &&
           !count_of(params->change_nics) && !*params->vnc_bind_address && !params->network_port &&
           !modify_disks_asked(params);
}

static bool names_only_disks(const struct op_instance_set_params *params)
{
    return !params->memory && !params->vcpus && !*params->kernel_path && !*params->initrd_path &&
           !*params->kernel_args && !count_of(params->add_nics) && !count_of(params->remove_nics) &&
           !count_of(params->change_nics) && !*params->vnc_bind_address && !params->network_port;
}

static bool names_nothing(const struct op_instance_set_params *params)
{
    return names_only_disks(params) && !modify_disks_asked(params);
}

static guint64 number_to_be(guint64 asked, guint64 now)
{
    return asked ? asked : now;
}

/* What its next start gives it, as things are. */
static guint64 next_memory(const struct instance *instance)
{
    return number_to_be(instance->memory_next, instance->memory);
}

static guint64 next_vcpus(const struct instance *instance)
{
    return number_to_be(instance->vcpus_next, instance->vcpus);
}

static const char *text_to_be(const char *asked, const char *now)
{
    return !*asked ? now : !strcmp(asked, NONE) ? "" : asked;
}

/* Without its kernel, what it is booted with has no meaning. */
static const char *boot_text_to_be(const struct op_instance_set_params *params, const char *asked,
                                   const char *now)
{
    bool disk = !strcmp(params->kernel_path, NONE);
    return text_to_be(asked, disk ? "" : now);
}

/* The address of the display as it is to be. */
static const char *wanted_address(const struct op *op, const struct instance *instance)
{
    const struct op_instance_set_params *params = op->params;
    return *params->vnc_bind_address ? display_address(params->vnc_bind_address)
                                     : instance->vnc_bind_address;
}

static bool is_so_already(const struct op *op, const struct instance *instance)
{
    const struct op_instance_set_params *params = op->params;
    return !count_of(params->add_nics) && !count_of(params->remove_nics) &&
           !count_of(params->change_nics) && !modify_disks_asked(params) &&
           number_to_be(params->memory, next_memory(instance)) == next_memory(instance) &&
           number_to_be(params->vcpus, next_vcpus(instance)) == next_vcpus(instance) &&
           !strcmp(text_to_be(params->kernel_path, instance->kernel_path), instance->kernel_path) &&
           !strcmp(boot_text_to_be(params, params->initrd_path, instance->initrd_path),
                   instance->initrd_path) &&
           !strcmp(boot_text_to_be(params, params->kernel_args, instance->kernel_args),
                   instance->kernel_args) &&
           !strcmp(wanted_address(op, instance), instance->vnc_bind_address) &&
           number_to_be(params->network_port, instance->network_port) == instance->network_port;
}

static bool can_change(const struct op *op, const struct instance *instance, GError **error)
{
    if (!instance_need_whole(op, instance, error) ||
        !instance_need_settled(op, instance, TASK_NONE, error))
        return false;
    if (names_nothing(op->params))
        fettle_set_error(error, WRONG_INPUT, "nothing to change: name at least one parameter");
    else if (is_so_already(op, instance))
        fettle_set_error(error, WRONG_INPUT, "nothing to change: instance \"%s\" is so already",
                         instance->name);
    else if (*instance->holder && !names_only_sizes(op->params))
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" is not stopped, and a running guest keeps the devices "
                         "that it was started with; stop it first: fettle instance shutdown %s",
                         instance->name, instance->name);
    else
        return true;
    return false;
}

/* --- memory, processors, kernel --- */

static bool set_boot(const struct op *op, struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    g_autofree char *kernel = g_strdup(text_to_be(params->kernel_path, instance->kernel_path));
    g_autofree char *initrd =
        g_strdup(boot_text_to_be(params, params->initrd_path, instance->initrd_path));
    g_autofree char *args =
        g_strdup(boot_text_to_be(params, params->kernel_args, instance->kernel_args));
    if (!*kernel && (*initrd || *args)) {
        fettle_set_error(error, WRONG_INPUT, "%s: needs a kernel_path that it is for",
                         *initrd ? "initrd_path" : "kernel_args");
        return false;
    }
    text_set(&instance->kernel_path, kernel);
    text_set(&instance->initrd_path, initrd);
    text_set(&instance->kernel_args, args);
    return true;
}

/* --- network cards --- */

static bool remove_cards(const struct op *op, struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    bool gone[LIMIT_NICS] = {false};
    for (guint i = 0; i < count_of(params->remove_nics); i++) {
        const char *text = params->remove_nics->pdata[i];
        guint card = nics_find(instance->nics, text);
        if (card == G_MAXUINT) {
            fettle_set_error(error, WRONG_INPUT,
                             "remove_nics[%u]: \"%s\" is neither the number nor the MAC address of "
                             "a network card of instance \"%s\", which has %u",
                             i, text, instance->name, instance->nics->len);
            return false;
        }
        gone[card] = true;
    }
    for (guint i = instance->nics->len; i > 0; i--)
        if (gone[i - 1])
            g_ptr_array_remove_index(instance->nics, i - 1);
    return true;
}

static bool add_cards(struct op *op, struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    guint count = instance->nics->len + count_of(params->add_nics);
    if (count > LIMIT_NICS) {
        fettle_set_error(error, LIMIT,
                         "add_nics: instance \"%s\" would have %u network cards; %d are the limit",
                         instance->name, count, LIMIT_NICS);
        return false;
    }
    g_autoptr(GPtrArray) cards =
        nics_check(params->add_nics, error) ? nics_new(op, params->add_nics, error) : NULL;
    if (!cards)
        return fail_cards(error);
    for (guint i = 0; i < cards->len; i++)
        g_ptr_array_add(instance->nics, nic_copy(cards->pdata[i]));
    return true;
}

/* --- the display --- */

/* A port that it has already may be of an earlier range. */
static bool set_display(const struct op *op, struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    g_autofree char *address = g_strdup(wanted_address(op, instance));
    bool has_it = *address && params->network_port == instance->network_port;
    return display_check(op, address, has_it ? 0 : params->network_port, error) &&
           display_set(op, instance, address, params->network_port, error);
}

/* Of an instance that somebody may run what it has stays, also for a migration, which needs both
 * sides alike. */
static void set_size(const struct instance *instance, guint64 *now, guint64 *next, guint64 asked)
{
    if (!asked)
        return;
    bool runs = *instance->holder != '\0';
    if (!runs)
        *now = asked;
    *next = runs && asked != *now ? asked : 0;
}

/* Everything, on a copy. */
static bool apply(struct op *op, struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    bool changed[LIMIT_NICS] = {false};
    if (!can_change(op, instance, error) || !set_boot(op, instance, error) ||
        !nics_change(op, instance->nics, params->change_nics, changed, error) ||
        !remove_cards(op, instance, error) || !add_cards(op, instance, error) ||
        !set_display(op, instance, error))
        return false;
    set_size(instance, &instance->memory, &instance->memory_next, params->memory);
    set_size(instance, &instance->vcpus, &instance->vcpus_next, params->vcpus);
    return true;
}

/* --- whether its nodes can do that --- */

static bool memory_is_there(struct op *op, const struct instance *now, const struct instance *then,
                            GError **error)
{
    struct placement_room room;
    guint64 before = allocated_need(now), after = allocated_need(then);
    guint64 more = after > before ? after - before : 0;
    if (!more)
        return true;
    if (!instance_need_node(op, now, now->primary_node, "primary", error) ||
        !op_gather_room(op, NULL, error))
        return false;
    placement_room(op_config(op), op_report(op, now->primary_node), op->sums, &room);
    if ((gint64)more <= room.memory)
        return true;
    fettle_set_error(error, NO_RESOURCES,
                     "memory: %s has %" G_GINT64_FORMAT " MiB of memory left, instance \"%s\" "
                     "needs %" G_GUINT64_FORMAT " MiB more",
                     op_node_name(op, now->primary_node), MAX(room.memory, 0), now->name, more);
    return false;
}

static const struct nic *card_before(const struct instance *before, const struct nic *card)
{
    for (guint i = 0; i < before->nics->len; i++) {
        const struct nic *nic = before->nics->pdata[i];
        if (!strcmp(nic->uuid, card->uuid))
            return nic;
    }
    return NULL;
}

/* Whether the card was added, or was another one before. */
static bool is_other_card(const struct instance *before, const struct nic *card)
{
    const struct nic *nic = card_before(before, card);
    return !nic || nic->mode != card->mode || strcmp(nic->link, card->link) != 0 ||
           strcmp(nic->mac, card->mac) != 0 || strcmp(nic->ip, card->ip) != 0;
}

static bool bridges_are_there(const struct op *op, const struct node_report *report,
                              const struct instance *now, const struct instance *then,
                              GError **error)
{
    for (guint i = 0; i < then->nics->len; i++) {
        g_autoptr(GPtrArray) one = g_ptr_array_new();
        const struct nic *card = then->nics->pdata[i];
        g_ptr_array_add(one, (void *)card);
        const struct nic *was = card_before(now, card);
        bool stays = was && was->mode == card->mode && !strcmp(was->link, card->link);
        const char *bridge = stays ? NULL : placement_missing_bridge(report, one);
        if (!bridge)
            continue;
        fettle_set_error(error, ENVIRONMENT,
                         "%s: node \"%s\" has no bridge \"%s\"" PLACEMENT_REFUSAL_NO_BRIDGE,
                         was ? "change_nics" : "add_nics", op_node_name(op, report->node), bridge);
        return false;
    }
    return true;
}

/* A node that is away is asked when the guest is to start there. */
static bool node_takes_it(struct op *op, const char *node, const struct instance *now,
                          const struct instance *then, GError **error)
{
    const struct node_report *report = *node ? op_report(op, node) : NULL;
    if (!report)
        return true;
    if (!bridges_are_there(op, report, now, then, error))
        return false;
    bool same = !strcmp(then->kernel_path, now->kernel_path) &&
                !strcmp(then->initrd_path, now->initrd_path);
    return same || instance_need_boot_files(op, node, then->kernel_path, then->initrd_path, error);
}

static bool modify_check(struct op *op, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) now = instance_copy(found);
    record_autoptr(instance) then = instance_copy(found);
    return apply(op, then, error) &&
           instance_gather(op, now->primary_node, now->secondary_node, error) &&
           memory_is_there(op, now, then, error) &&
           node_takes_it(op, now->primary_node, now, then, error) &&
           node_takes_it(op, now->secondary_node, now, then, error) &&
           (!modify_disks_asked(params) || modify_disks_check(op, now, error));
}

/* --- exec --- */

struct modifying {
    bool built; /* Nothing stood in the way when this was last looked at. */
};

static bool edit_params(struct instance_edit *edit, void *data, GError **error)
{
    struct modifying *modifying = data;
    modifying->built = false;
    modifying->built = apply(edit->op, edit->instance, error);
    return modifying->built;
}

/* As with reservations: another job may have been given the same address or port at the same
 * moment. */
static bool modify(struct op *op, const char *uuid, GError **error)
{
    for (guint tries = 1;; tries++) {
        struct modifying modifying = {false};
        g_autoptr(GError) local = NULL;
        if (instance_edit(op, "modify_instance", uuid, edit_params, &modifying, &local))
            return true;
        bool overtaken = modifying.built && fettle_error_is(local, ALREADY_EXISTS);
        if (!overtaken || tries >= LIMIT_RESERVE_TRIES) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
    }
}

/* Their addresses may have been drawn. */
static void tell_cards(struct op *op, const struct instance *before, const struct instance *now)
{
    for (guint i = 0; i < now->nics->len; i++) {
        const struct nic *nic = now->nics->pdata[i];
        if (is_other_card(before, nic))
            op_log(op, "network card %u of %s is %s%s%s", i, now->name, nic->mac,
                   *nic->ip ? ", " : "", nic->ip);
    }
}

/* Everything but the disks. */
static bool modify_record(struct op *op, const struct instance *before, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    if (!modify(op, before->uuid, error))
        return false;
    record_autoptr(instance) now = instance_now(op, before->uuid, error);
    if (!now)
        return false;
    tell_cards(op, before, now);
    if (now->memory_next || now->vcpus_next)
        op_log(op,
               "the guest keeps its %" G_GUINT64_FORMAT " MiB of memory and %" G_GUINT64_FORMAT
               " processor(s) until its next start, which gives it %" G_GUINT64_FORMAT
               " MiB and %" G_GUINT64_FORMAT ": fettle instance reboot --reboot-type full %s",
               now->memory, now->vcpus, next_memory(now), next_vcpus(now), now->name);
    if (*params->vnc_bind_address || params->network_port)
        display_warn(op, now);
    return true;
}

static bool modify_exec(struct op *op, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) before = instance_copy(found);
    bool record = !names_only_disks(params);
    if (record && !modify_record(op, before, error))
        return false;
    if (!modify_disks_asked(params) || modify_disks(op, before->uuid, error))
        return true;
    if (record && !fettle_error_is(*error, KILLED))
        g_prefix_error(error, "all but its disks is changed: ");
    return false;
}

const struct op_impl ops_modify[] = {
    {"OP_INSTANCE_SET_PARAMS", modify_declare, modify_check, modify_exec, SEES_NAMED},
    {NULL},
};

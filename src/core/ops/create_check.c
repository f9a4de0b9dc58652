/*
 * Creation of an instance before anything is done: which locks, which nodes, and every reason why
 * it cannot be. See create.h.
 */
#include "core/ops/create.h"

#include "core/ops/display.h"
#include "core/ops/instance.h"
#include "core/ops/nics.h"
#include "core/ops/replica_copy.h"
#include "core/placement/placement.h"
#include "core/placement/placement_refusal.h"
#include "core/report/faults.h"

#include <string.h>

#define FILES_NAMED 10 /* of those that nodes have, where a name is wrong */

const char *create_image(const struct op_instance_create *params)
{
    return params->disk_template == TEMPLATE_DISKLESS ? "" : params->os_type;
}

bool create_is_mirror(const struct op_instance_create *params)
{
    return params->disk_template == TEMPLATE_MIRROR;
}

static guint64 wanted_disk(const struct op_instance_create *params)
{
    guint64 sum = 0;
    for (guint i = 0; params->disks && i < params->disks->len; i++)
        sum += ((const struct disk_spec *)params->disks->pdata[i])->size;
    return sum;
}

/* Of a node's own space: images in the folder that all nodes mount take none. */
guint64 create_wanted_space(const struct op_instance_create *params)
{
    return params->disk_template == TEMPLATE_SHAREDFILE ? 0 : wanted_disk(params);
}

guint64 create_shared_space(const struct op_instance_create *params)
{
    return params->disk_template == TEMPLATE_SHAREDFILE ? wanted_disk(params) : 0;
}

/* --- declare --- */

static const char *noun(const struct op_instance_create *params)
{
    static const char *const nouns[] = {
        [TEMPLATE_DISKLESS] = "a diskless instance",
        [TEMPLATE_MIRROR] = "a mirrored instance",
        [TEMPLATE_FILE] = "an instance of template file",
        [TEMPLATE_SHAREDFILE] = "an instance of template sharedfile",
    };
    return nouns[params->disk_template];
}

static bool disks_are_right(const struct op_instance_create *params, GError **error)
{
    guint disks = params->disks ? params->disks->len : 0;
    bool diskless = params->disk_template == TEMPLATE_DISKLESS;
    if (diskless && disks) {
        fettle_set_error(error, WRONG_INPUT, "disks: %s has none", noun(params));
        return false;
    }
    if (!diskless && !disks) {
        fettle_set_error(error, WRONG_INPUT, "disks: %s needs at least one", noun(params));
        return false;
    }
    for (guint i = 0; i < disks && create_is_mirror(params); i++) {
        if (((const struct disk_spec *)params->disks->pdata[i])->format == FORMAT_RAW)
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "disks[%u].format: %s has raw disks only; the copy is byte by byte", i,
                         noun(params));
        return false;
    }
    return true;
}

static bool shape_is_right(const struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    guint nodes = config_count(op_config(op), "node");
    if (!disks_are_right(params, error) || !nics_check(params->nics, error) ||
        !display_check(op, params->vnc_bind_address, params->network_port, error))
        return false;
    if (!create_is_mirror(params) && *params->snode)
        fettle_set_error(error, WRONG_INPUT, "snode: %s has no secondary node", noun(params));
    else if (!*params->kernel_path && (*params->initrd_path || *params->kernel_args))
        fettle_set_error(error, WRONG_INPUT, "%s: needs a kernel_path that it is for",
                         *params->initrd_path ? "initrd_path" : "kernel_args");
    else if (create_is_mirror(params) && nodes < 2)
        fettle_set_error(error, WRONG_STATE,
                         "a mirrored instance needs two nodes, the cluster has %u", nodes);
    else
        return true;
    return false;
}

bool create_name_is_free(const struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    if (!config_find(op_config(op), "instance", params->instance_name, NULL))
        return true;
    fettle_set_error(error, ALREADY_EXISTS, "instance \"%s\" exists already",
                     params->instance_name);
    return false;
}

/* Its cards as far as nodes matter to them: no addresses yet. */
static GPtrArray *cards_without_mac(const struct op *op)
{
    const struct op_instance_create *params = op->params;
    GPtrArray *cards = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; params->nics && i < params->nics->len; i++) {
        const struct nic_spec *spec = params->nics->pdata[i];
        const char *link = NULL;
        struct nic *card = g_new0(struct nic, 1); /* borrows its texts */
        nics_connect(op, spec, &card->mode, &link);
        card->link = (char *)link;
        g_ptr_array_add(cards, card);
    }
    return cards;
}

/* What a node must offer to take the part. */
static struct placement_need need_of(const struct op *op, bool primary, const GPtrArray *cards)
{
    const struct op_instance_create *params = op->params;
    return (struct placement_need){
        .what = primary ? "the primary node" : "the secondary node",
        .memory = primary ? params->memory : 0,
        .disk = create_wanted_space(params),
        .prefer = primary ? op->primary : op->secondary,
        .rank_by_disk = !primary,
        .nics = cards,
        .shared = placement_shared(reports_list(op->reports), params->disk_template, ""),
        .now = op_now_seconds(op),
        .sums = op->sums,
        .refused = reports_refusals(op->reports),
    };
}

/* What nobody has is no reason against one node and for another: the check says it better. */
static const char *file_to_look_for(const struct op *op, const char *name)
{
    return placement_file_is_known(reports_list(op->reports), name) ? name : NULL;
}

static int by_name(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* "; there are: debian, tick", of all nodes; g_free() it. */
static char *files_there(const GPtrArray *reports)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        for (guint k = 0; k < report->sources->len; k++)
            if (!g_ptr_array_find_with_equal_func(names, report->sources->pdata[k], g_str_equal,
                                                  NULL))
                g_ptr_array_add(names, report->sources->pdata[k]);
    }
    g_ptr_array_sort(names, by_name);
    if (names->len > FILES_NAMED)
        g_ptr_array_set_size(names, FILES_NAMED + 1);
    bool more = names->len > FILES_NAMED;
    if (more)
        names->pdata[FILES_NAMED] = "…";
    g_ptr_array_add(names, NULL);
    g_autofree char *list = g_strjoinv(", ", (char **)names->pdata);
    return names->len > 1 ? g_strconcat("; there are: ", list, NULL) : g_strdup("");
}

/* What no node has is nothing that one of them lacks. Only if all that answer have told it. */
static bool somebody_has(const struct op *op, const char *field, const char *what, const char *name,
                         GError **error)
{
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; i < reports->len; i++)
        if (!placement_lacks_file(reports->pdata[i], name))
            return true;
    if (reports->len == 0)
        return true;
    g_autofree char *there = files_there(reports);
    fettle_set_error(error, UNKNOWN_ENTITY,
                     "%s: no node has %s \"%s\" in var/images%s; put it there, on each node that "
                     "may need it",
                     field, what, name, there);
    return false;
}

static bool somebody_has_all(const struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    return somebody_has(op, "os_type", "an image", create_image(params), error) &&
           somebody_has(op, "kernel_path", "a kernel", params->kernel_path, error) &&
           somebody_has(op, "initrd_path", "a file", params->initrd_path, error);
}

static bool choose(struct op *op, bool primary, const char *taken, GError **error)
{
    const struct op_instance_create *params = op->params;
    g_autoptr(GPtrArray) cards = cards_without_mac(op);
    struct placement_need need = need_of(op, primary, cards);
    need.files[0] = file_to_look_for(op, params->kernel_path);
    need.files[1] = file_to_look_for(op, params->initrd_path);
    need.files[2] = primary ? file_to_look_for(op, create_image(params)) : NULL;
    need.excluded[0] = taken;
    need.because[0] = primary ? "is to be the secondary node" : "is to be the primary node";
    const struct node *node =
        placement_choose(op_config(op), reports_list(op->reports), &need, error);
    if (node)
        text_set(primary ? &op->primary : &op->secondary, node->uuid);
    return node != NULL;
}

static bool named_node(struct op *op, const char *name, char **ret_uuid, GError **error)
{
    const struct node *node = op_find_node(op, name, error);
    if (node)
        text_set(ret_uuid, node->uuid);
    return node != NULL;
}

/* A choice that was made before the locks were granted is kept as long as it fits. */
static bool find_nodes(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    bool second = create_is_mirror(params);
    if (*params->pnode && !named_node(op, params->pnode, &op->primary, error))
        return false;
    if (second && *params->snode && !named_node(op, params->snode, &op->secondary, error))
        return false;
    bool choose_second = second && !*params->snode;
    if ((!*params->pnode || choose_second) &&
        (!instance_gather_online(op, error) || !op_gather_room(op, NULL, error)))
        return false;
    if (!*params->pnode && !somebody_has_all(op, error))
        return false;
    if (!*params->pnode && !choose(op, true, *params->snode ? op->secondary : NULL, error))
        return false;
    return !choose_second || choose(op, false, op->primary, error);
}

bool create_declare(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    if (!shape_is_right(op, error) || !create_name_is_free(op, error) || !find_nodes(op, error))
        return false;
    op_lock_instance(op, params->instance_name);
    op_lock_node(op, op->primary, LOCK_SHARED);
    op_lock_node(op, op->secondary, LOCK_SHARED);
    op_lock_room(op, op->primary);
    op_lock_room(op, op->secondary);
    if (create_shared_space(params))
        op_lock_room(op, SHARED_FOLDER_ROOM);
    return nics_lock_networks(op, params->nics, error);
}

/* --- check --- */

/* What is there goes on as the user that they share; a new one can be elsewhere. */
static bool has_free_user(const struct node *node, const struct node_report *report, bool primary,
                          GError **error)
{
    const struct node_fault *fault = report != NULL ? faults_find(report, FAULT_USERS) : NULL;
    if (fault == NULL)
        return true;
    fettle_set_error(error, NO_RESOURCES, "%s: node \"%s\" %s", primary ? "pnode" : "snode",
                     node->name, fault->text);
    return false;
}

static bool node_takes_it(struct op *op, bool primary, GError **error)
{
    const char *uuid = primary ? op->primary : op->secondary;
    const struct node *node = config_get(op_config(op), "node", uuid, NULL);
    const struct node_report *report = op_report(op, uuid);
    g_autoptr(GPtrArray) cards = cards_without_mac(op);
    struct placement_need need = need_of(op, primary, cards);
    g_autofree char *why = NULL;
    if (!has_free_user(node, report, primary, error))
        return false;
    if (placement_fits(op_config(op), node, report, &need, &why)) {
        op_log_faults(op, uuid);
        return true;
    }
    g_autofree char *sentence =
        g_strdup_printf("%s: node \"%s\" %s", primary ? "pnode" : "snode", node->name, why);
    placement_refusal_set(op_config(op), error, node, report, &need, sentence);
    return false;
}

/* It is booted wherever the instance may run. */
static bool kernel_is_there(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    return instance_need_boot_files(op, op->primary, params->kernel_path, params->initrd_path,
                                    error) &&
           (!create_is_mirror(params) ||
            instance_need_boot_files(op, op->secondary, params->kernel_path, params->initrd_path,
                                     error));
}

static bool image_fits(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    if (!*create_image(params))
        return true;
    record_autoptr(image_info) info =
        instance_need_image(op, op->primary, "os_type", "image", params->os_type, error);
    if (!info)
        return false;
    const struct disk_spec *first = params->disks->pdata[0];
    guint64 mib = (info->bytes + MIB(1) - 1) / MIB(1);
    if (mib <= first->size)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "disks[0].size: image \"%s\" has %" G_GUINT64_FORMAT
                     " MiB, the disk only %" G_GUINT64_FORMAT " MiB",
                     params->os_type, mib, first->size);
    return false;
}

/* Whether cards and display can be had; they are made, with other addresses, when the record is. */
static bool devices_can_be_had(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    g_autoptr(GPtrArray) cards = nics_new(op, params->nics, error);
    record_autoptr(instance) trial = instance_new();
    return cards && display_set(op, trial, params->vnc_bind_address, params->network_port, error);
}

static bool folder_takes_it(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    g_autofree char *who = g_strdup_printf("instance \"%s\"", params->instance_name);
    return op_need_shared_room(op, who, create_shared_space(params), error);
}

bool create_room_is_there(struct op *op, GError **error)
{
    return folder_takes_it(op, error) && op_gather_room(op, NULL, error) &&
           node_takes_it(op, true, error) &&
           (!create_is_mirror(op->params) || node_takes_it(op, false, error));
}

/* Whether a guest of that name, which no record has, runs on a node that was asked: two processes
 * of one name would be told apart by nobody. What to do about it says cluster verify. */
static bool name_runs_nowhere(const struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        for (guint k = 0; k < report->guests->len; k++) {
            const struct guest_report *guest = report->guests->pdata[k];
            if (strcmp(guest->name, params->instance_name) || guest->state == GUEST_ABSENT ||
                config_get(op_config(op), "instance", guest->instance, NULL))
                continue; /* also one that has another name on record by now */
            fettle_set_error(error, ALREADY_EXISTS,
                             "a guest \"%s\" runs on %s that is not on record (%s): what can be "
                             "done about it says: fettle cluster verify",
                             params->instance_name, op_node_name(op, report->node),
                             guest->instance);
            return false;
        }
    }
    return true;
}

bool create_check(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    for (guint i = 0; params->tags && i < params->tags->len; i++) {
        if (!op_check_tag(params->tags->pdata[i], error))
            return false;
    }
    if (create_is_mirror(params) && !strcmp(op->primary, op->secondary)) {
        fettle_set_error(error, WRONG_INPUT,
                         "snode: \"%s\" is the primary node; the replica needs another",
                         op_node_name(op, op->secondary));
        return false;
    }
    /* Which shared folder is meant, others say. */
    bool shared = params->disk_template == TEMPLATE_SHAREDFILE;
    return (shared ? instance_gather_online(op, error)
                   : instance_gather(op, op->primary, op->secondary, error)) &&
           name_runs_nowhere(op, error) && create_room_is_there(op, error) &&
           devices_can_be_had(op, error) && image_fits(op, error) && kernel_is_there(op, error);
}

/*
 * What a job asks the configuration daemon of all instances, because its own copy has only those
 * that it names (core/config/view.h). Questions only: a configuration daemon that is away is waited
 * for, as when a job begins, until the job is asked to give up. See op.h.
 */
#include "core/ops/op.h"

#include "core/config/allocated.h"
#include "core/placement/placement.h"

struct question {
    const struct op *op;
    const char *method;
    const void *args;
    const char *what; /* before the words of an error */
    void *answer;
};

static bool ask(void *data, GError **error)
{
    struct question *question = data;
    const struct op *op = question->op;
    question->answer = env_call_record(op->env, NODE_LOCAL, ROLE_WCONFD, question->method,
                                       question->args, op->stamp, (guint)op->job, 0, error);
    if (!question->answer)
        g_prefix_error(error, "%s", question->what);
    return question->answer != NULL;
}

static void *look(const struct op *op, const char *method, const void *args, const char *what,
                  GError **error)
{
    struct question question = {op, method, args, what, NULL};
    op_insist(op->env, op->asked, ask, &question, error);
    return question.answer;
}

/* --- room --- */

static void node_guests_unref(void *node)
{
    node_guests_free(node);
}

static struct node_guests *guests_of(const struct node_report *report)
{
    struct node_guests *node = node_guests_new();
    text_set(&node->node, report->node);
    for (guint i = 0; i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (guest->state != GUEST_ABSENT)
            g_ptr_array_add(node->guests, g_strdup(guest->instance));
    }
    return node;
}

bool op_gather_room(struct op *op, const struct instance *skip, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(node_guests_unref);
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; reports && i < reports->len; i++)
        g_ptr_array_add(nodes, guests_of(reports->pdata[i]));
    struct promised_args args = {.nodes = nodes};
    static const char what[] = "what is promised of the nodes: ";
    record_autoptr(promised_result) promised = look(op, "promised", &args, what, error);
    g_clear_pointer(&op->sums, placement_sums_free);
    if (!promised)
        return false;
    op->sums = placement_sums_given(reports_list(op->reports), promised->nodes, error);
    if (!op->sums) {
        g_prefix_error(error, "%s", what);
        return false;
    }
    if (skip)
        placement_sums_move(op->sums, skip, NULL);
    return true;
}

/* All that is promised of the folder that all nodes mount. */
static bool promised_of_folder(const struct op *op, struct node_promised **ret, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(node_guests_unref);
    struct node_guests *folder = node_guests_new();
    text_set(&folder->node, SHARED_FOLDER_ROOM);
    g_ptr_array_add(nodes, folder);
    struct promised_args args = {.nodes = nodes};
    record_autoptr(promised_result) promised =
        look(op, "promised", &args, "what is promised of the shared folder: ", error);
    bool answered = promised && promised->nodes->len == 1;
    if (answered)
        *ret = node_promised_copy(promised->nodes->pdata[0]);
    else if (promised)
        fettle_set_error(error, CORRUPT, "the answer is for other nodes than were asked for");
    return answered;
}

bool op_need_shared_room(struct op *op, const char *who, guint64 mib, GError **error)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    const struct node_report *report = NULL;
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; reports && i < reports->len && !report; i++) {
        const struct node_report *each = reports->pdata[i];
        report = each->shared_total ? each : NULL;
    }
    record_autoptr(node_promised) promised = NULL;
    if (!report || !mib)
        return true;
    if (!promised_of_folder(op, &promised, error))
        return false;
    gint64 granted = (gint64)((double)report->shared_total * (cluster->disk_ratio - 1));
    gint64 spare = (gint64)report->shared_total + granted - (gint64)promised->disk;
    gint64 left = (gint64)report->shared_free + granted - (gint64)promised->disk_waiting;
    if ((gint64)mib <= MIN(spare, left))
        return true;
    fettle_set_error(error, NO_RESOURCES,
                     "the shared folder has %" G_GINT64_FORMAT
                     " MiB left, %s needs %" G_GUINT64_FORMAT
                     " MiB; make it larger, or allow more than it has: fettle cluster modify "
                     "--disk-ratio",
                     MAX(MIN(spare, left), 0), who, mib);
    return false;
}

/* --- addresses --- */

bool op_address_user(const struct op *op, const char *address, char **ret_user, GError **error)
{
    struct address_user_args args = {.address = (char *)address};
    g_autofree char *what = g_strdup_printf("who has %s: ", address);
    record_autoptr(address_user_result) result = look(op, "address_user", &args, what, error);
    if (!result)
        return false;
    *ret_user = *result->user ? g_strdup(result->user) : NULL;
    return true;
}

char *op_draw_address(const struct op *op, const struct network *network, const GPtrArray *nics,
                      GError **error)
{
    struct draw_address_args args = {.network = network->uuid, .nics = (GPtrArray *)nics};
    record_autoptr(draw_address_result) result = look(op, "draw_address", &args, "", error);
    return result ? g_strdup(result->address) : NULL;
}

bool op_draw_port(const struct op *op, guint64 *ret_port, GError **error)
{
    const struct nothing args = {0};
    record_autoptr(draw_port_result) result = look(op, "draw_port", &args, "", error);
    if (result)
        *ret_port = result->port;
    return result != NULL;
}

bool op_backend_empty(const struct op *op, const struct backend *backend, GError **error)
{
    struct backend_empty_args args = {.backend = backend->uuid};
    record_autoptr(nothing) result = look(op, "backend_empty", &args, "", error);
    return result != NULL;
}

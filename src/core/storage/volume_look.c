/*
 * What others ask a member about: what there is of resources that recovery judges, where back end
 * and record differ, and whether the place works. It touches no data. Nobody hangs for a back end
 * that does: while children of that do, none is asked.
 */
#include <string.h>

#include "base/text.h"
#include "core/config/decisions.h"
#include "core/config/fault.h"
#include "core/storage/volume_private.h"

bool volume_is_left(const struct config *config, const struct resource *resource)
{
    enum task_kind kind = resource_task_kind(resource->type);
    const struct task_row *task = task_row_of(kind, resource->status);
    const struct fault *fault = fault_of(config, resource_kind(resource->type), resource->uuid);
    if (!task && fault && (fault->blind || fault->again))
        task = task_row_of(kind, fault->task);
    return resource->exists && task && task->owner == TASK_BY_ROW &&
           !volume_is_under_way(config, resource->type, resource->uuid, 0);
}

/* A request, with the member that it is about. */
struct question {
    struct volume_member *member;
    struct rpc_request *request;
    void (*answer)(struct question *question);
    const struct record *record;
    void *args;
};

static void hangs_error(const struct volume_member *member, guint hanging, GError **error)
{
    fettle_set_error(error, TIMEOUT, "%s: %u calls before this one hang in it",
                     member->backend->name, hanging);
}

struct volume_member *volume_member_of(struct volume_service *service, const char *backend,
                                       bool anyhow, GError **error)
{
    struct volume_member *member = g_hash_table_lookup(service->members, backend);
    const struct config *config = follow_config(service->follow);
    const char *node = config_node_name(config, service->env->node_uuid);
    if (!member)
        fettle_set_error(error, UNKNOWN_ENTITY, "%s has no member of back end %s", node, backend);
    else if (member->caller.generation || anyhow)
        return member;
    else
        fettle_set_error(error, WRONG_STATE, "%s does not serve back end %s%s%s", node,
                         member->backend->name, member->caller.complaint ? ": " : "",
                         member->caller.complaint ? member->caller.complaint : "");
    return NULL;
}

static void question_run(void *data)
{
    struct question *question = data;
    if (!task_killed())
        question->answer(question);
    record_free(question->record, question->args);
    volume_member_unref(question->member);
    g_free(question);
}

/* --- collect_stored --- */

static void add_data(struct stored_sight *sight, const GPtrArray *found)
{
    for (guint i = 0; i < MIN(found->len, LIMIT_STORED_DATA); i++) {
        const struct volume_data *data = found->pdata[i];
        const struct stored_data told = {.resource_type = data->type,
                                         .name = data->name,
                                         .bytes = data->bytes,
                                         .whole = data->whole,
                                         .half = !data->whole && !data->mute,
                                         .open = data->open};
        g_ptr_array_add(sight->data, stored_data_copy(&told));
    }
    if (found->len > LIMIT_STORED_DATA)
        decision_set(&sight->silent, "it has %u names of data, and %d are told", found->len,
                     LIMIT_STORED_DATA);
}

/* What this process still does to it, under a claim that may be lost, has an end to come. */
static bool is_busy(const struct volume_member *member, const struct stored_subject *subject)
{
    g_autofree char *key = config_work_key(subject->resource_type, subject->resource);
    return g_hash_table_contains(member->caller.busy, key);
}

static void look(struct volume_member *member, const struct stored_subject *subject,
                 struct stored_sight *sight)
{
    struct volume_driver *driver = member->service->env->volumes;
    guint hanging = driver->ops->hanging(driver, member->backend);
    g_autoptr(GError) error = NULL;
    if (hanging)
        hangs_error(member, hanging, &error);
    g_autoptr(GPtrArray) found =
        hanging ? NULL
                : driver->ops->find(driver, member->backend, subject->resource_type,
                                    subject->resource, &error);
    if (task_killed())
        return;
    sight->taken_us = (guint64)member->service->env->ops->wall_us(member->service->env);
    if (is_busy(member, subject))
        text_set(&sight->busy, "its member works on it");
    else if (found)
        add_data(sight, found);
    else
        decision_set(&sight->silent, "%.500s", error->message);
}

static void collect(struct question *question)
{
    const struct collect_stored_args *args = question->args;
    struct volume_member *member = question->member;
    const struct env *env = member->service->env;
    gint64 until = env->ops->boot_ms(env) + LIMIT_COLLECT_LOOK_MS;
    record_autoptr(collect_stored_result) result = collect_stored_result_new();
    text_set(&result->node, env->node_uuid);
    for (guint i = 0; i < args->subjects->len && !task_killed(); i++) {
        const struct stored_subject *subject = args->subjects->pdata[i];
        struct stored_sight *sight = stored_sight_new();
        sight->resource_type = subject->resource_type;
        text_set(&sight->resource, subject->resource);
        g_ptr_array_add(result->sights, sight);
        if (is_busy(member, subject))
            text_set(&sight->busy, "its member works on it");
        else if (env->ops->boot_ms(env) >= until)
            text_set(&sight->busy, "there was no time for it");
        else
            look(member, subject, sight);
    }
    if (!task_killed())
        rpc_answer(question->request, collect_stored_result_to_json(result));
}

/* --- compare_stored --- */

struct comparison {
    const struct volume_member *member;
    const struct config *config;
    struct volume_proof proof;
    GHashTable *there; /* "TYPE/NAME" -> const struct volume_data */
    struct compare_stored_result *result;
};

static char *there_key(enum resource_type type, const char *name)
{
    return g_strdup_printf("%d/%s", (int)type, name);
}

/* A row makes it, or may; the sweep takes care of what has no record any more, once that is proven
 * (SAF-54), and is told here until then. */
static bool is_known(const struct comparison *comparison, const struct volume_data *data)
{
    const struct config *config = comparison->config;
    g_autofree char *uuid = NULL;
    guint64 claim;
    if (!volume_data_parse(data->name, &uuid, &claim))
        return true;
    g_autofree char *trash = config_trash_key(comparison->member->backend->uuid, data->name);
    struct resource resource = resource_of(config, data->type, uuid);
    return strcmp(resource.data, data->name) == 0 ||
           volume_is_under_way(config, data->type, uuid, 0) ||
           config_get(config, "trash", trash, NULL) || volume_is_left(config, &resource);
}

static bool has_room(struct compare_stored_result *result, const GPtrArray *list)
{
    bool room = list->len < LIMIT_STRAYS;
    result->more = result->more || !room;
    return room;
}

static void add_unknown(struct comparison *comparison, const GPtrArray *list)
{
    struct compare_stored_result *result = comparison->result;
    for (guint i = 0; i < list->len; i++) {
        const struct volume_data *data = list->pdata[i];
        bool kept = false;
        volume_sweep_may(comparison->member, &comparison->proof, data->type, data->name, &kept);
        const struct stored_data told = {
            .resource_type = data->type, .name = data->name, .bytes = data->bytes, .kept = kept};
        g_hash_table_insert(comparison->there, there_key(data->type, data->name), list->pdata[i]);
        if (!is_known(comparison, data) && has_room(result, result->unknown))
            g_ptr_array_add(result->unknown, stored_data_copy(&told));
    }
}

/* Of what is under way there is no saying yet. */
static void compare_one(struct comparison *comparison, const struct resource *resource)
{
    struct compare_stored_result *result = comparison->result;
    g_autofree char *key = there_key(resource->type, resource->data);
    g_autofree char *row = config_work_key(resource->type, resource->uuid);
    const struct volume_data *data = g_hash_table_lookup(comparison->there, key);
    if (!*resource->data || strcmp(resource->backend, comparison->member->backend->uuid) != 0 ||
        (data && resource_is_full(resource, data->bytes)) ||
        config_get(comparison->config, "worker", row, NULL) || !has_room(result, result->missing))
        return;
    const struct missing_data told = {.resource_type = resource->type,
                                      .resource = (char *)resource->uuid,
                                      .name = (char *)resource->data,
                                      .there = data != NULL,
                                      .bytes = data ? data->bytes : 0};
    g_ptr_array_add(result->missing, missing_data_copy(&told));
}

static void compare_records(struct comparison *comparison)
{
    for (guint type = 0; resource_type_words.words[type]; type++) {
        const char *kind = resource_kind((enum resource_type)type);
        g_autoptr(GPtrArray) all = config_list(comparison->config, kind);
        for (guint i = 0; i < all->len; i++) {
            struct resource resource = resource_read((enum resource_type)type, all->pdata[i]);
            compare_one(comparison, &resource);
        }
    }
}

static const struct volume_data *in_list(const GPtrArray *list, const char *name)
{
    for (guint i = 0; i < list->len; i++) {
        const struct volume_data *data = list->pdata[i];
        if (strcmp(data->name, name) == 0)
            return data;
    }
    return NULL;
}

/* What came or went between the first look and its record is no difference. */
static void look_again(struct compare_stored_result *result, const struct config *config,
                       const GPtrArray *list)
{
    for (guint i = result->unknown->len; i > 0; i--) {
        const struct stored_data *data = result->unknown->pdata[i - 1];
        if (!in_list(list, data->name))
            g_ptr_array_remove_index(result->unknown, i - 1);
    }
    for (guint i = result->missing->len; i > 0; i--) {
        const struct missing_data *data = result->missing->pdata[i - 1];
        const struct volume_data *now = in_list(list, data->name);
        struct resource resource = resource_of(config, data->resource_type, data->resource);
        if (now && resource_is_full(&resource, now->bytes))
            g_ptr_array_remove_index(result->missing, i - 1);
    }
}

static GPtrArray *list_now(struct volume_member *member, GError **error)
{
    struct volume_driver *driver = member->service->env->volumes;
    guint hanging = driver->ops->hanging(driver, member->backend);
    if (hanging)
        hangs_error(member, hanging, error);
    return hanging ? NULL : driver->ops->list(driver, member->backend, error);
}

static bool compare_with(struct volume_member *member, struct compare_stored_result *result,
                         GError **error)
{
    g_autoptr(GPtrArray) list = list_now(member, error);
    if (!list || task_killed() || !follow_refresh(member->service->follow, error))
        return false;
    g_autoptr(GHashTable) there = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct comparison comparison = {member, volume_member_config(member), volume_proof_of(member),
                                    there, result};
    add_unknown(&comparison, list);
    compare_records(&comparison);
    if (!result->unknown->len && !result->missing->len)
        return true;
    g_autoptr(GPtrArray) again = list_now(member, error);
    if (again && !task_killed())
        look_again(result, volume_member_config(member), again);
    return again != NULL;
}

static void compare(struct question *question)
{
    struct volume_member *member = question->member;
    g_autoptr(GError) error = NULL;
    record_autoptr(compare_stored_result) result = compare_stored_result_new();
    text_set(&result->node, member->service->env->node_uuid);
    bool ok = compare_with(member, result, &error);
    if (task_killed())
        return;
    if (ok)
        rpc_answer(question->request, compare_stored_result_to_json(result));
    else
        rpc_fail(question->request, error);
}

/* --- backend_check --- */

static void try_out(struct volume_member *member, struct volume_check *check)
{
    struct volume_driver *driver = member->service->env->volumes;
    guint hanging = driver->ops->hanging(driver, member->backend);
    g_autoptr(GError) error = NULL;
    if (hanging)
        hangs_error(member, hanging, &error);
    else if (volume_member_open(member, &error))
        driver->ops->check(driver, member->backend, check, &error);
    if (error)
        g_ptr_array_add(check->problems, g_strdup(error->message));
}

static void check(struct question *question)
{
    const struct backend_check_args *args = question->args;
    struct volume_member *member = question->member;
    record_autoptr(backend_check_result) result = backend_check_result_new();
    struct volume_check check = {.token = args->token,
                                 .place = (guint)args->place,
                                 .nodes = (guint)args->nodes,
                                 .problems = result->problems,
                                 .notes = result->notes};
    text_set(&result->node, member->service->env->node_uuid);
    try_out(member, &check);
    result->unseen = check.unseen;
    result->free_mib = member->caller.free_mib;
    result->total_mib = member->caller.total_mib;
    if (!task_killed())
        rpc_answer(question->request, backend_check_result_to_json(result));
}

/* --- requests --- */

static const struct {
    const char *method;
    const struct record *args;
    size_t backend; /* where its UUID is in them */
    void (*answer)(struct question *question);
    bool anyhow; /* of one that has not registered, too */
} methods[] = {{"collect_stored", &collect_stored_args_record,
                offsetof(struct collect_stored_args, backend), collect, false},
               {"compare_stored", &compare_stored_args_record,
                offsetof(struct compare_stored_args, backend), compare, false},
               {"backend_check", &backend_check_args_record,
                offsetof(struct backend_check_args, backend), check, true}};

static void begin(struct volume_service *service, struct rpc_request *request, guint method)
{
    g_autoptr(GError) error = NULL;
    void *args = rpc_request_args(request, methods[method].args, &error);
    struct volume_member *member =
        args ? volume_member_of(service, G_STRUCT_MEMBER(char *, args, methods[method].backend),
                                methods[method].anyhow, &error)
             : NULL;
    if (!member) {
        rpc_fail(request, error);
        if (args)
            record_free(methods[method].args, args);
        return;
    }
    struct question *question = g_new(struct question, 1);
    *question =
        (struct question){member, request, methods[method].answer, methods[method].args, args};
    volume_member_ref(member);
    task_spawn(service->env->tasks, question_run, question);
}

void volume_service_handle(struct volume_service *service, struct rpc_request *request)
{
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        if (strcmp(methods[i].method, request->name) == 0) {
            begin(service, request, i);
            return;
        }
    if (!volume_receive_handle(service, request))
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "no such method: %s", request->name);
}

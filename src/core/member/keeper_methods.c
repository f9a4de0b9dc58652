/*
 * The methods of the care for this node's member of etcd. See keeper_private.h. Whatever changes
 * the member is done under the keeper's lock.
 */
#include "core/member/keeper_private.h"

#include "base/log.h"

static bool exists(const struct keeper *keeper, GError **error)
{
    if (keeper == NULL)
        fettle_set_error(error, WRONG_STATE, "this node daemon cares for no member of etcd");
    return keeper != NULL;
}

/* Locks it. */
static bool enter(struct keeper *keeper, GError **error)
{
    if (!exists(keeper, error))
        return false;
    keeper->users++;
    if (task_mutex_lock(&keeper->lock))
        return true;
    keeper_release(keeper);
    return fettle_set_ended(error, "the node daemon");
}

static json_t *leave(struct keeper *keeper, bool ok)
{
    task_mutex_unlock(&keeper->lock);
    keeper_release(keeper);
    return ok ? json_object() : NULL;
}

json_t *keeper_engine_set(struct keeper *keeper, const void *args, GError **error)
{
    const struct engine_config_args *set = args;
    if (!enter(keeper, error))
        return NULL;
    bool ok = keeper->members->ops->config_write(keeper->members, set->config, error);
    if (ok)
        log_info(
            "", "engine: %s, %s",
            enum_word(&engine_kind_words,
                      set->config ? (int)set->config->kind : ENGINE_KIND_SQLITE),
            enum_word(&engine_phase_words, set->config ? (int)set->config->state : ENGINE_ACTIVE));
    return leave(keeper, ok);
}

bool keeper_may_promise(const struct keeper *keeper, const char *node, const char *master,
                        guint64 serial, GError **error)
{
    if (keeper == NULL || strcmp(node, keeper->env->node_uuid) == 0)
        return true;
    record_autoptr(engine_config) config =
        keeper->members->ops->config_read(keeper->members, error);
    if (config == NULL)
        return false;
    if (config->kind == ENGINE_KIND_SQLITE || config->state == ENGINE_PREPARING)
        return true;
    bool not_made = config->serial && serial >= config->serial;
    if (config->state == ENGINE_DECIDING && (strcmp(node, master) == 0 || not_made))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "this node promises no mastership of the engine sqlite: etc/engine.json says "
                     "etcd, %s",
                     enum_word(&engine_phase_words, (int)config->state));
    return false;
}

static enum member_state state_of(const struct keeper *keeper)
{
    if (keeper->members->ops->running(keeper->members))
        return MEMBER_RUNNING;
    if (keeper_is_lost(keeper))
        return MEMBER_LOST;
    if (keeper->record == NULL)
        return MEMBER_ABSENT;
    return keeper->record->run ? MEMBER_WAITING : MEMBER_STOPPED;
}

/* What the keeper knows, on top of what the member says. Not locked: a status is no change. */
static void complete(const struct keeper *keeper, struct member_status *status)
{
    status->state = state_of(keeper);
    status->restarts = keeper->failures;
    text_set(&status->token, keeper->record != NULL ? keeper->record->token : "");
    if (status->state == MEMBER_LOST)
        text_set(&status->why, WHY_LOST);
    else if (status->state != MEMBER_RUNNING)
        text_set(&status->why, keeper->why != NULL ? keeper->why : "");
}

struct service_report *keeper_service(const struct keeper *keeper)
{
    static const enum service_state states[] = {
        [MEMBER_ABSENT] = SERVICE_STOPPED,  [MEMBER_STOPPED] = SERVICE_STOPPED,
        [MEMBER_RUNNING] = SERVICE_RUNNING, [MEMBER_WAITING] = SERVICE_RESTARTING,
        [MEMBER_LOST] = SERVICE_STOPPED,
    };
    if (keeper == NULL || keeper->record == NULL)
        return NULL;
    const struct env *env = keeper->env;
    record_autoptr(member_status) status = member_status_new();
    complete(keeper, status);
    struct service_report *service = service_report_new();
    text_set(&service->name, "etcd");
    service->state = states[status->state];
    service->restarts = keeper->restarts;
    if (status->state == MEMBER_RUNNING) {
        gint64 up_ms = env->ops->boot_ms(env) - keeper->running_since_ms;
        service->since = (guint64)(env->ops->wall_us(env) / G_USEC_PER_SEC - up_ms / 1000);
    }
    text_set(&service->why, status->why);
    return service;
}

json_t *keeper_engine_status(struct keeper *keeper, const void *args, GError **error)
{
    if (!exists(keeper, error))
        return NULL;
    struct members *members = keeper->members;
    record_autoptr(engine_report) report = engine_report_new();
    report->config = members->ops->config_read(members, error);
    report->member = member_status_new();
    if (report->config == NULL)
        return NULL;
    keeper->users++;
    bool ok = members->ops->ask(members, report->member, error);
    complete(keeper, report->member);
    keeper_release(keeper);
    return ok ? engine_report_to_json(report) : NULL;
}

json_t *keeper_member_prepare(struct keeper *keeper, const void *args, GError **error)
{
    record_autoptr(member_requests) requests = member_requests_new();
    if (!enter(keeper, error))
        return NULL;
    g_autofree char *member = NULL;
    g_autofree char *client = NULL;
    bool ok = keeper->members->ops->prepare(keeper->members, &member, &client, error);
    json_decref(leave(keeper, ok));
    text_set(&requests->member, member);
    text_set(&requests->client, client);
    return ok ? member_requests_to_json(requests) : NULL;
}

json_t *keeper_member_certify(struct keeper *keeper, const void *args, GError **error)
{
    const struct member_certificates *given = args;
    if (!enter(keeper, error))
        return NULL;
    return leave(keeper, keeper->members->ops->certify(keeper->members, given->member,
                                                       given->client, error));
}

/* The record with which the member of etc/engine.json begins; NULL with an error. */
static struct member_record *begin(struct keeper *keeper, enum member_initial initial,
                                   GError **error)
{
    struct members *members = keeper->members;
    record_autoptr(engine_config) config = members->ops->config_read(members, error);
    const struct member_record *before = keeper->record;
    if (config == NULL)
        return NULL;
    if (!engine_config_member(config, keeper->env->node_uuid)) {
        fettle_set_error(error, WRONG_STATE,
                         "etc/engine.json has no member for this node; it is to be written first");
        return NULL;
    }
    bool same = before != NULL && strcmp(before->token, config->token) == 0;
    if (!same && members->ops->has_data(members)) {
        fettle_set_error(error, WRONG_STATE,
                         "var/etcd has data of %s%s, not of the founding %s; put it aside first",
                         before != NULL ? "the founding " : "an unknown founding",
                         before != NULL ? before->token : "", config->token);
        return NULL;
    }
    struct member_record *record = same ? member_record_copy(before) : member_record_new();
    record->run = true;
    text_set(&record->token, config->token);
    if (!record->made)
        record->initial = initial;
    return record;
}

static bool start_member(struct keeper *keeper, enum member_initial initial, GError **error)
{
    record_autoptr(member_record) record = begin(keeper, initial, error);
    if (record == NULL || !keeper_save(keeper, record, error))
        return false;
    keeper->failures = 0;
    g_clear_pointer(&keeper->why, g_free);
    if (keeper_start_process(keeper, error)) {
        keeper_turn_later(keeper, MEMBER_FIRST_LOOK_MS);
        return true;
    }
    keeper_save_run(keeper, false, NULL);
    return false;
}

json_t *keeper_member_start(struct keeper *keeper, const void *args, GError **error)
{
    const struct member_start_args *start = args;
    if (!enter(keeper, error))
        return NULL;
    return leave(keeper, start_member(keeper, start->initial, error));
}

static bool stop_member(struct keeper *keeper, GError **error)
{
    keeper_no_turn(keeper);
    g_clear_pointer(&keeper->why, g_free);
    return keeper_save_run(keeper, false, error) &&
           keeper->members->ops->stop(keeper->members, error);
}

json_t *keeper_member_stop(struct keeper *keeper, const void *args, GError **error)
{
    return enter(keeper, error) ? leave(keeper, stop_member(keeper, error)) : NULL;
}

/* The data goes first: a death in between leaves a member that is lost, not one that begins anew.
 */
static bool put_aside(struct keeper *keeper, char **ret_folder, GError **error)
{
    return keeper->members->ops->aside(keeper->members, ret_folder, error) &&
           keeper_forget(keeper, error);
}

json_t *keeper_member_aside(struct keeper *keeper, const void *args, GError **error)
{
    record_autoptr(member_aside_result) result = member_aside_result_new();
    g_autofree char *folder = NULL;
    if (!enter(keeper, error))
        return NULL;
    bool ok = put_aside(keeper, &folder, error);
    json_decref(leave(keeper, ok));
    text_set(&result->folder, folder != NULL ? folder : "");
    return ok ? member_aside_result_to_json(result) : NULL;
}

json_t *keeper_member_remove(struct keeper *keeper, const void *args, GError **error)
{
    g_autofree char *folder = NULL;
    if (!enter(keeper, error))
        return NULL;
    return leave(keeper, stop_member(keeper, error) && put_aside(keeper, &folder, error) &&
                             keeper->members->ops->forget(keeper->members, error));
}

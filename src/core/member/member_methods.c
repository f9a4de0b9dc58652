/*
 * The methods of the care for this node's member of etcd. See member_private.h. Whatever
 * changes the member is done under its lock.
 */
#include "core/member/member_private.h"

#include "base/log.h"

static bool exists(const struct member_care *care, GError **error)
{
    if (care == NULL)
        fettle_set_error(error, WRONG_STATE, "this node daemon cares for no member of etcd");
    return care != NULL;
}

/* Locks it. */
static bool enter(struct member_care *care, GError **error)
{
    if (!exists(care, error))
        return false;
    care->users++;
    if (task_mutex_lock(&care->lock))
        return true;
    member_care_release(care);
    return fettle_set_ended(error, "the node daemon");
}

static json_t *leave(struct member_care *care, bool ok)
{
    task_mutex_unlock(&care->lock);
    member_care_release(care);
    return ok ? json_object() : NULL;
}

json_t *member_methods_engine_set(struct member_care *care, const void *args, GError **error)
{
    const struct engine_config_args *set = args;
    if (!enter(care, error))
        return NULL;
    bool ok = care->members->ops->config_write(care->members, set->config, error);
    if (ok)
        log_info(
            "", "engine: %s, %s",
            enum_word(&engine_kind_words,
                      set->config ? (int)set->config->kind : ENGINE_KIND_SQLITE),
            enum_word(&engine_phase_words, set->config ? (int)set->config->state : ENGINE_ACTIVE));
    return leave(care, ok);
}

bool member_care_may_promise(const struct member_care *care, const char *node, const char *master,
                             guint64 serial, GError **error)
{
    if (care == NULL || strcmp(node, care->env->node_uuid) == 0)
        return true;
    record_autoptr(engine_config) config = care->members->ops->config_read(care->members, error);
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

static enum member_state state_of(const struct member_care *care)
{
    if (care->members->ops->running(care->members))
        return MEMBER_RUNNING;
    if (member_care_is_lost(care))
        return MEMBER_LOST;
    if (care->record == NULL)
        return MEMBER_ABSENT;
    return care->record->run ? MEMBER_WAITING : MEMBER_STOPPED;
}

/* What is known here, on top of what the member says. Not locked: a status is no change. */
static void complete(const struct member_care *care, struct member_status *status)
{
    status->state = state_of(care);
    status->restarts = care->failures;
    text_set(&status->token, care->record != NULL ? care->record->token : "");
    if (status->state == MEMBER_LOST)
        text_set(&status->why, WHY_LOST);
    else if (status->state != MEMBER_RUNNING)
        text_set(&status->why, care->why != NULL ? care->why : "");
}

struct service_report *member_care_service(const struct member_care *care)
{
    static const enum service_state states[] = {
        [MEMBER_ABSENT] = SERVICE_STOPPED,  [MEMBER_STOPPED] = SERVICE_STOPPED,
        [MEMBER_RUNNING] = SERVICE_RUNNING, [MEMBER_WAITING] = SERVICE_RESTARTING,
        [MEMBER_LOST] = SERVICE_STOPPED,
    };
    if (care == NULL || care->record == NULL)
        return NULL;
    const struct env *env = care->env;
    record_autoptr(member_status) status = member_status_new();
    complete(care, status);
    struct service_report *service = service_report_new();
    text_set(&service->name, "etcd");
    service->state = states[status->state];
    service->restarts = care->restarts;
    if (status->state == MEMBER_RUNNING) {
        gint64 up_ms = env->ops->boot_ms(env) - care->running_since_ms;
        service->since = (guint64)(env->ops->wall_us(env) / G_USEC_PER_SEC - up_ms / 1000);
    }
    text_set(&service->why, status->why);
    return service;
}

json_t *member_methods_engine_status(struct member_care *care, const void *args, GError **error)
{
    if (!exists(care, error))
        return NULL;
    struct members *members = care->members;
    record_autoptr(engine_report) report = engine_report_new();
    report->config = members->ops->config_read(members, error);
    report->member = member_status_new();
    if (report->config == NULL)
        return NULL;
    care->users++;
    bool ok = members->ops->ask(members, report->member, error);
    complete(care, report->member);
    member_care_release(care);
    return ok ? engine_report_to_json(report) : NULL;
}

json_t *member_methods_prepare(struct member_care *care, const void *args, GError **error)
{
    const struct member_prepare_args *asked = args;
    record_autoptr(member_requests) requests = member_requests_new();
    if (!enter(care, error))
        return NULL;
    g_autofree char *member = NULL;
    g_autofree char *client = NULL;
    bool ok = care->members->ops->prepare(care->members, asked->anew, &member, &client, error);
    json_decref(leave(care, ok));
    text_set(&requests->member, member);
    text_set(&requests->client, client);
    return ok ? member_requests_to_json(requests) : NULL;
}

json_t *member_methods_certify(struct member_care *care, const void *args, GError **error)
{
    const struct member_certificates *given = args;
    if (!enter(care, error))
        return NULL;
    return leave(care, care->members->ops->certify(care->members, given->member, given->client,
                                                   given->authority, error));
}

json_t *member_methods_trust(struct member_care *care, const void *args, GError **error)
{
    const struct member_trust_args *told = args;
    if (!enter(care, error))
        return NULL;
    return leave(care, care->members->ops->trust(care->members, told->authority, error));
}

/* One that is not well takes none away, and might be asked in vain. */
static bool take_turn(struct member_care *care, const struct member_status *status, GError **error)
{
    if (!status->healthy)
        return true;
    care->in_turn = care->members->ops->turn_take(care->members, error);
    if (!care->in_turn)
        g_prefix_error(error, "its member of etcd is not started anew: ");
    return care->in_turn;
}

/* It answers nobody meanwhile: no other one does the same, and none is away. */
static bool may_restart(struct member_care *care, GError **error)
{
    struct members_others others = {0};
    record_autoptr(member_status) status = member_status_new();
    if (!care->record || !care->record->run) {
        fettle_set_error(error, WRONG_STATE, "the member of this node is not to run");
        return false;
    }
    if (!care->members->ops->running(care->members))
        return true;
    if (!care->members->ops->ask(care->members, status, error) || !take_turn(care, status, error))
        return false;
    bool asked = care->members->ops->ask_others(care->members, status->id, &others, error);
    if (asked && others.silent == 0)
        return true;
    member_care_give_turn(care);
    if (asked)
        fettle_set_error(error, TEMPORARY,
                         "its member of etcd is not started anew: of %u others %u are not well",
                         others.count, others.silent);
    return false;
}

/* Whatever becomes of it, it is to run, and the next turn sees to that. */
static bool restart_member(struct member_care *care, GError **error)
{
    if (!may_restart(care, error))
        return false;
    member_care_no_turn(care);
    bool ok =
        care->members->ops->stop(care->members, error) && member_care_start_process(care, error);
    member_care_turn_later(care, MEMBER_FIRST_LOOK_MS);
    if (ok)
        log_info("", "member of etcd: started anew, with whom it trusts now");
    return ok;
}

json_t *member_methods_restart(struct member_care *care, const void *args, GError **error)
{
    return enter(care, error) ? leave(care, restart_member(care, error)) : NULL;
}

/* The record with which the member of etc/engine.json begins; NULL with an error. */
static struct member_record *begin(struct member_care *care, enum member_initial initial,
                                   GError **error)
{
    struct members *members = care->members;
    record_autoptr(engine_config) config = members->ops->config_read(members, error);
    const struct member_record *before = care->record;
    if (config == NULL)
        return NULL;
    if (!engine_config_member(config, care->env->node_uuid)) {
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

static bool start_member(struct member_care *care, enum member_initial initial, GError **error)
{
    record_autoptr(member_record) record = begin(care, initial, error);
    if (record == NULL || !member_care_save(care, record, error))
        return false;
    care->failures = 0;
    g_clear_pointer(&care->why, g_free);
    if (member_care_start_process(care, error)) {
        member_care_turn_later(care, MEMBER_FIRST_LOOK_MS);
        return true;
    }
    member_care_save_run(care, false, NULL);
    return false;
}

json_t *member_methods_start(struct member_care *care, const void *args, GError **error)
{
    const struct member_start_args *start = args;
    if (!enter(care, error))
        return NULL;
    return leave(care, start_member(care, start->initial, error));
}

static bool stop_member(struct member_care *care, GError **error)
{
    member_care_no_turn(care);
    g_clear_pointer(&care->why, g_free);
    return member_care_save_run(care, false, error) &&
           care->members->ops->stop(care->members, error);
}

json_t *member_methods_stop(struct member_care *care, const void *args, GError **error)
{
    return enter(care, error) ? leave(care, stop_member(care, error)) : NULL;
}

/* The data goes first: a death in between leaves a member that is lost, not one that begins anew.
 */
static bool put_aside(struct member_care *care, char **ret_folder, GError **error)
{
    return care->members->ops->aside(care->members, ret_folder, error) &&
           member_care_forget(care, error);
}

json_t *member_methods_aside(struct member_care *care, const void *args, GError **error)
{
    record_autoptr(member_aside_result) result = member_aside_result_new();
    g_autofree char *folder = NULL;
    if (!enter(care, error))
        return NULL;
    bool ok = put_aside(care, &folder, error);
    json_decref(leave(care, ok));
    text_set(&result->folder, folder != NULL ? folder : "");
    return ok ? member_aside_result_to_json(result) : NULL;
}

json_t *member_methods_remove(struct member_care *care, const void *args, GError **error)
{
    g_autofree char *folder = NULL;
    if (!enter(care, error))
        return NULL;
    return leave(care, stop_member(care, error) && put_aside(care, &folder, error) &&
                           care->members->ops->forget(care->members, error));
}

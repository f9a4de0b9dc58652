/* Which calls wconfd answers, and whom it lets pass. See wconf.h and wconf_private.h. */
#include <string.h>

#include "core/config/named_change.h"
#include "core/config/view_questions.h"
#include "core/wconfd/engine_members.h"
#include "core/wconfd/key_renewal.h"
#include "core/wconfd/wconf_private.h"

/* Adds every broken rule of what is committed. All objects are looked at for it, so once at each
 * serial: monitoring asks again and again. */
static void add_problems(struct wconf *wconf, GPtrArray *texts)
{
    guint64 history = config_history(wconf->committed), serial = config_serial(wconf->committed);
    if (wconf->problems_history != history || wconf->problems_serial != serial)
        g_clear_pointer(&wconf->problems, g_ptr_array_unref);
    if (!wconf->problems)
        wconf->problems = invariants_problems(wconf->committed, LIMIT_PROBLEMS);
    wconf->problems_history = history;
    wconf->problems_serial = serial;
    for (guint i = 0; i < wconf->problems->len; i++)
        g_ptr_array_add(texts, g_strdup(wconf->problems->pdata[i]));
}

static void handle_cluster_status(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(cluster_status) status = cluster_status_new();
    const struct cluster *cluster = config_cluster(wconf->committed);
    status->history = config_history(wconf->committed);
    status->epoch = wconf->epoch;
    status->serial = config_serial(wconf->committed);
    g_free(status->master_node);
    status->master_node = g_strdup(cluster->master_node);
    g_ptr_array_unref(status->nodes_pending);
    status->nodes_pending = wconf_nodes_pending(wconf);
    add_problems(wconf, status->problems);
    const char *odd = engine_members_odd(wconf);
    if (odd)
        g_ptr_array_add(status->problems, g_strdup_printf("members of etcd: %s", odd));
    const char *damage = wconf_damage(wconf);
    if (damage)
        g_ptr_array_add(status->problems, g_strdup(damage));
    wconf_list_doubted(wconf, status->problems);
    wconf_followers_list(wconf, status->copies);
    wconf_services_spaces(wconf, status->spaces);
    struct authority *authority = wconf->env->authority;
    status->authority = authority && authority->ops->has_key(authority);
    keys_progress_free(status->keys);
    status->keys = key_renewal_progress(wconf);
    rpc_answer(request, cluster_status_to_json(status));
}

/* Of what is on its way to the store too: another job may be about to take it. */
static void handle_look(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    const struct record *record = method_find(ROLE_WCONFD, request->name)->args;
    void *args = rpc_request_args(request, record, &error);
    json_t *answer = args ? view_questions_answer(wconf->head, request->name, args, &error) : NULL;
    if (answer)
        rpc_answer(request, answer);
    else
        rpc_fail(request, error);
    record_free(record, args);
}

static void handle_ping(struct wconf *wconf, struct rpc_request *request)
{
    rpc_answer(request, NULL);
}

/* --- jobs of the API's clients: luxid takes none from other nodes --- */

static bool is_of_volumes(const json_t *opcode, GError **error)
{
    static const char *const allowed[] = {"OP_INSTANCE_ATTACH_VOLUME", "OP_INSTANCE_DETACH_VOLUME",
                                          NULL};
    const char *id = json_string_value(json_object_get(opcode, "OP_ID"));
    if (id && g_strv_contains(allowed, id))
        return true;
    fettle_set_error(error, PERMISSION, "opcode: a front end of the API submits %s and %s alone",
                     allowed[0], allowed[1]);
    return false;
}

static void submit_cb(json_t *result, const GError *error, void *data)
{
    struct rpc_request *request = data;
    if (error)
        rpc_fail(request, error);
    else if (json_is_integer(result) && json_integer_value(result) > 0)
        rpc_answer(request, json_make("{s:O}", "job", result));
    else
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL,
                     "luxid answered SubmitJob with something that is no job id");
}

static void handle_submit_job(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(submit_job_args) args =
        rpc_request_args(request, &submit_job_args_record, &error);
    if (!args || !is_of_volumes(args->opcode, &error)) {
        rpc_fail(request, error);
        return;
    }
    json_object_set_new(args->opcode, "request_id", json_string(args->request_id));
    struct rpc_call call = {.to_node = NODE_LOCAL,
                            .to_role = ROLE_LUXID,
                            .method = "SubmitJob",
                            .args = json_make("[[O]]", args->opcode)};
    wconf->env->ops->call(wconf->env, &call, submit_cb, request);
}

static const struct {
    const char *name;
    void (*handle)(struct wconf *wconf, struct rpc_request *request);
} calls[] = {
    {"wait_changes", wconf_handle_wait_changes},
    {"snapshot", wconf_handle_snapshot},
    {"follow", wconf_handle_follow},
    {"flush_config", wconf_handle_flush_config},
    {"commit_ids", wconf_handle_commit_ids},
    {"commit", wconf_handle_commit},
    {"confirm", wconf_handle_confirm},
    {"set_replica_state", wconf_handle_set_replica_state},
    {"set_attachment", wconf_handle_set_attachment},
    {"set_migrated", wconf_handle_set_migrated},
    {"cluster_status", handle_cluster_status},
    {"promised", handle_look},
    {"address_user", handle_look},
    {"draw_address", handle_look},
    {"draw_port", handle_look},
    {"backend_empty", handle_look},
    {"write_config", wconf_handle_write_config},
    {"update_locks", wconf_handle_update_locks},
    {"list_locks", wconf_handle_list_locks},
    {"list_all_locks", wconf_handle_list_all_locks},
    {"list_lock_waiters", wconf_handle_list_lock_waiters},
    {"union_locks", wconf_handle_union_locks},
    {"guarded_union_locks", wconf_handle_guarded_union_locks},
    {"intersect_locks", wconf_handle_intersect_locks},
    {"free_locks", wconf_handle_free_locks},
    {"free_locks_level", wconf_handle_free_locks_level},
    {"downgrade_locks_level", wconf_handle_downgrade_locks_level},
    {"set_lock_priority", wconf_handle_set_lock_priority},
    {"ping", handle_ping},
    {"owner_gone", wconf_handle_owner_gone},
    {"ca_info", wconf_handle_ca_info},
    {"join", wconf_handle_join},
    {"change_engine", wconf_handle_change_engine},
    {"engine_progress", wconf_handle_engine_progress},
    {"renew_keys", key_renewal_handle_begin},
    {"keys_progress", key_renewal_handle_progress},
    {"authority_key", wconf_handle_authority_key},
    {"monitor_key", wconf_handle_monitor_key},
    {"register_storage", wconf_handle_register_storage},
    {"beat", wconf_handle_beat},
    {"change_storage_service", wconf_handle_change_storage_service},
    {"request_cleanup", wconf_handle_request_cleanup},
    {"stand_in", wconf_handle_stand_in},
    {"end_cleanup", wconf_handle_end_cleanup},
    {"accept_work", wconf_handle_accept_work},
    {"hand_on", wconf_handle_hand_on},
    {"reset_state", wconf_handle_reset_state},
    {"change_volume", wconf_handle_change_volume},
    {"change_snapshot", wconf_handle_change_snapshot},
    {"change_backup", wconf_handle_change_backup},
    {"add_image", wconf_handle_add_image},
    {"change_image", wconf_handle_change_image},
    {"add_volume_type", wconf_handle_add_volume_type},
    {"change_volume_type", wconf_handle_change_volume_type},
    {"remove_volume_type", wconf_handle_remove_volume_type},
    {"add_rapi_user", wconf_handle_add_rapi_user},
    {"change_rapi_user", wconf_handle_change_rapi_user},
    {"remove_rapi_user", wconf_handle_remove_rapi_user},
    {"add_webhook", wconf_handle_add_webhook},
    {"change_webhook", wconf_handle_change_webhook},
    {"remove_webhook", wconf_handle_remove_webhook},
    {"take_work", wconf_handle_take_work},
    {"step_work", wconf_handle_step_work},
    {"end_work", wconf_handle_end_work},
    {"claim_work", wconf_handle_claim_work},
    {"give_back", wconf_handle_give_back},
    {"empty_trash", wconf_handle_empty_trash},
    {"settle_resources", wconf_handle_settle_resources},
    {"add_front_end", wconf_handle_add_front_end},
    {"remove_front_end", wconf_handle_remove_front_end},
    {"certify_front_end", wconf_handle_certify_front_end},
    {"submit_job", handle_submit_job},
    {"discard_data", wconf_handle_discard_data},
};

/* Role apid is heard from nodes that a person has put on record for that (SAF-100). */
static bool may_be_apid(const struct wconf *wconf, const struct rpc_request *request,
                        GError **error)
{
    if (strcmp(request->from_role, ROLE_APID) != 0 ||
        config_get(wconf->head, "api_front_end", request->from_node, NULL))
        return true;
    fettle_set_error(error, PERMISSION,
                     "node \"%s\" has no front end of the API on record; see: fettle api init",
                     config_node_name(wconf->head, request->from_node));
    return false;
}

/* SAF-05: what was decided under an older mastership is over. */
static bool may_pass(const struct wconf *wconf, const struct rpc_request *request, GError **error)
{
    guint64 history = config_history(wconf->committed);
    if (!method_fences(request->method, request->from_role) ||
        (request->stamp.history == history && request->stamp.epoch == wconf->epoch))
        return true;
    g_autofree char *who = strcmp(request->from_role, ROLE_JOB) != 0
                               ? g_strdup(request->from_role)
                               : g_strdup_printf("job %u", request->from_job);
    fettle_set_error(
        error, STALE_EPOCH,
        "%s of %s: it belongs to history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
        ", the master is at history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT,
        request->name, who, request->stamp.history, request->stamp.epoch, history, wconf->epoch);
    return false;
}

void wconf_handle(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    if (wconf->down) {
        rpc_fail(request, wconf->down);
        return;
    }
    if (wconf->leaving) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "the mastership is being handed to another node; try again");
        return;
    }
    if (!wconf->serving) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "the configuration daemon is starting; try again");
        return;
    }
    if (!may_be_apid(wconf, request, &error) || !may_pass(wconf, request, &error)) {
        rpc_fail(request, error);
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (!strcmp(calls[i].name, request->name)) {
            calls[i].handle(wconf, request);
            return;
        }
    }
    if (named_change_exists(request->name))
        wconf_handle_commit(wconf, request);
    else
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "wconfd has no method %s", request->name);
}

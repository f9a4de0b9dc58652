/* The method check_renewal: asks all members, judges, and waits a moment for a master; see
 * renewal.h. */
#include "base/text.h"
#include "core/candidate/renewal.h"
#include "core/candidate/seat_private.h"

#define MASTER_PATIENCE_MS 10000
#define PAUSE_MS 500

struct check {
    struct seat *seat;
    struct rpc_request *request;
    char *node; /* name or UUID */
};

static struct check_renewal_result *result_of(const struct engine_config *config, guint one,
                                              gint other, bool disputed)
{
    const struct engine_member *member = config->members->pdata[one];
    struct check_renewal_result *result = check_renewal_result_new();
    text_set(&result->member, member->name);
    text_set(&result->node, member->node);
    text_set(&result->peer_url, member->peer_url);
    text_set(&result->other, ((const struct engine_member *)config->members->pdata[other])->name);
    result->disputed = disputed;
    return result;
}

static struct check_renewal_result *judge(const struct check *check,
                                          const struct engine_config *config, guint one,
                                          GError **error)
{
    struct ensemble *ensemble = check->seat->env->ensemble;
    guint count = config->members->len;
    g_autofree struct ensemble_seen *seen = g_new0(struct ensemble_seen, count);
    enum etcd_verdict verdict;
    bool disputed;
    if (!ensemble->ops->survey(ensemble, config, seen, &verdict, error) ||
        !renewal_may_leave(config, seen, verdict, one, &disputed, error))
        return NULL;
    return result_of(config, one, renewal_other(seen, count, one), disputed);
}

/* Who lets it in again; an election may be under way. */
static bool has_master(const struct seat *seat, GError **error)
{
    const struct env *env = seat->env;
    gint64 until = env->ops->boot_ms(env) + MASTER_PATIENCE_MS;
    for (;;) {
        record_autoptr(role_status) status = seat_status(seat);
        if (engine_has_master(status, env->node_uuid))
            return true;
        if (env->ops->boot_ms(env) >= until) {
            fettle_set_error(
                error, WRONG_STATE,
                "this node sees no master, who would let the member come in again%s%s; "
                "nothing has changed; run it on the master, or see fettle cluster "
                "engine status and the log of fettle-wconfd",
                status->why ? ": " : "", status->why ? status->why : "");
            return false;
        }
        if (!env_sleep(env, PAUSE_MS)) {
            fettle_set_error(error, KILLED, "wconfd has ended");
            return false;
        }
    }
}

static struct check_renewal_result *check_now(const struct check *check, GError **error)
{
    struct ensemble *ensemble = check->seat->env->ensemble;
    guint one;
    record_autoptr(engine_config) config =
        ensemble ? ensemble->ops->config_read(ensemble, error) : engine_config_sqlite();
    if (!config || !engine_config_find(config, check->node, &one, error))
        return NULL;
    record_autoptr(check_renewal_result) result = judge(check, config, one, error);
    return result && has_master(check->seat, error) ? g_steal_pointer(&result) : NULL;
}

static void check_task(void *data)
{
    struct check *check = data;
    g_autoptr(GError) error = NULL;
    record_autoptr(check_renewal_result) result = check_now(check, &error);
    if (result)
        rpc_answer(check->request, check_renewal_result_to_json(result));
    else
        rpc_fail(check->request, error);
    g_free(check->node);
    g_free(check);
}

void seat_handle_check_renewal(struct seat *seat, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(check_renewal_args) args =
        rpc_request_args(request, &check_renewal_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    struct check *check = g_new(struct check, 1);
    *check = (struct check){seat, request, g_strdup(args->node)};
    task_spawn(seat->env->tasks, check_task, check);
}

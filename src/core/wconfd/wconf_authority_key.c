/*
 * The master's side of the authority's key: who may have it, and whether it is here
 * (docs/design/mastership.md, "The authority's key"). Reading it waits, and comes after a barrier:
 * a master that was replaced gives it to nobody. While two authorities are believed, the key of the
 * one that signs goes to nobody who is a candidate by the other's word only (SAF-94).
 */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/wconf_private.h"

struct key_call {
    const struct env *env;
    struct rpc_request *request;
    char *name;    /* of the asking node */
    bool give;     /* the key itself; else: whether it is here */
    bool renewing; /* two authorities may be believed now */
};

static void call_free(struct key_call *call)
{
    g_free(call->name);
    g_free(call);
}

/* --- answers --- */

/* Which authority signs is looked up after its key was read: it may be another one by then, and
 * whoever has the certificate of that one may know the key of the one before. */
static bool is_signed_by_it(const struct key_call *call, GError **error)
{
    struct authority *authority = call->env->authority;
    const char *signed_by = call->request->signed_by;
    g_autofree char *certificate = NULL;
    g_autofree char *fingerprint = NULL;
    if (!authority->ops->show(authority, &certificate, &fingerprint, error))
        return false;
    if (signed_by ? strcmp(signed_by, fingerprint) == 0 : !call->renewing)
        return true;
    fettle_set_error(error, TEMPORARY,
                     "the certificate with which node %s asks is not signed by the authority whose "
                     "key this is; it gets one of that first",
                     call->name);
    return false;
}

static json_t *give(const struct key_call *call, GError **error)
{
    struct authority *authority = call->env->authority;
    struct authority_key given = {0};
    if (!authority->ops->read_key(authority, &given.key, error))
        return NULL;
    json_t *answer = is_signed_by_it(call, error) ? authority_key_to_json(&given) : NULL;
    g_free(given.key);
    if (!answer)
        return NULL;
    log_info("", "the key of the cluster's authority goes to the candidate %s", call->name);
    return answer;
}

static json_t *tell(const struct key_call *call, GError **error)
{
    struct authority *authority = call->env->authority;
    g_autofree char *certificate = NULL;
    g_autofree char *fingerprint = NULL;
    g_autofree char *key = NULL;
    g_autoptr(GError) why = NULL;
    if (!authority->ops->show(authority, &certificate, &fingerprint, error))
        return NULL;
    bool here = authority->ops->read_key(authority, &key, &why);
    if (why && !fettle_error_is(why, STORAGE) && !fettle_error_is(why, CORRUPT)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return NULL;
    }
    const struct ca_info info = {.fingerprint = fingerprint, .key = here};
    return ca_info_to_json(&info);
}

static void call_task(void *data)
{
    struct key_call *call = data;
    g_autoptr(GError) error = NULL;
    json_t *answer = call->give ? give(call, &error) : tell(call, &error);
    if (answer)
        rpc_answer(call->request, answer);
    else {
        if (fettle_error_is(error, TEMPORARY))
            log_warning("", "%s", error->message);
        rpc_fail(call->request, error);
    }
    call_free(call);
}

static void after_barrier(struct wconf *wconf, void *data)
{
    struct key_call *call = data;
    if (!wconf->down) {
        task_spawn(wconf->env->tasks, call_task, call);
        return;
    }
    rpc_fail(call->request, wconf->down);
    call_free(call);
}

static void begin(struct wconf *wconf, struct rpc_request *request, bool gives)
{
    struct key_call *call = g_new0(struct key_call, 1);
    call->env = wconf->env;
    call->request = request;
    call->name = g_strdup(config_node_name(wconf->committed, request->from_node));
    call->give = gives;
    call->renewing = config_cluster(wconf->committed)->renewal != RENEWAL_NONE;
    wconf_barrier(wconf, after_barrier, call);
}

/* --- calls --- */

/* By what is committed: a change on its way gives nobody a right yet. */
static bool may_have_key(const struct wconf *wconf, const struct rpc_request *request,
                         GError **error)
{
    const struct node *node = config_get(wconf->committed, "node", request->from_node, NULL);
    const char *who = node ? node->name : request->from_node;
    struct stamp now = {config_history(wconf->committed), wconf->epoch};
    if (!node || !node->master_candidate || node->offline) {
        fettle_set_error(
            error, PERMISSION, "node %s is %s: it does not get the key of the cluster's authority",
            who, node && node->master_candidate ? "offline on record" : "no master candidate");
        return false;
    }
    if (request->stamp.history == now.history && request->stamp.epoch == now.epoch)
        return true;
    fettle_set_error(error, STALE_EPOCH,
                     "the key of the cluster's authority was asked for under history "
                     "%" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                     ", the master is at history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT,
                     request->stamp.history, request->stamp.epoch, now.history, now.epoch);
    return false;
}

void wconf_handle_authority_key(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    if (!wconf->env->authority)
        fettle_set_error(&error, WRONG_STATE, "this process has no certificate authority");
    else if (may_have_key(wconf, request, &error)) {
        begin(wconf, request, true);
        return;
    }
    log_warning("", "%s", error->message);
    rpc_fail(request, error);
}

void wconf_handle_authority_look(struct wconf *wconf, struct rpc_request *request)
{
    begin(wconf, request, false);
}

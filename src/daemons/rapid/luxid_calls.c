/* See luxid_calls.h. */
#include "daemons/rapid/luxid_calls.h"

#include <string.h>

#include "core/rapi/rapi_turns.h"
#include "io/net/luxi_client.h"
#include "io/real_env.h"

struct calls {
    struct rapi_luxid base;
    struct luxi_client *clients[FACES];
    struct rapi_turns *turns;
};

/* One that is under way; on the heap, as the task may be killed meanwhile. */
struct asking {
    struct promise promise;
    struct calls *calls;
    bool is_long, left;
    json_t *result;
    char *text;
    GError *error;
};

static void asking_free(struct asking *asking)
{
    json_decref(asking->result);
    g_free(asking->text);
    g_clear_error(&asking->error);
    g_free(asking);
}

static void answered(struct asking *asking)
{
    rapi_turns_give_back(asking->calls->turns, asking->is_long);
    if (asking->left)
        asking_free(asking);
    else
        promise_complete(&asking->promise);
}

static void reply_cb(json_t *result, const GError *error, void *data)
{
    struct asking *asking = data;
    asking->result = json_incref(result);
    asking->error = error ? g_error_copy(error) : NULL;
    answered(asking);
}

static void text_cb(char *text, size_t len, const GError *error, void *data)
{
    struct asking *asking = data;
    asking->text = text;
    asking->error = error ? g_error_copy(error) : NULL;
    answered(asking);
}

/* What it says of a luxid that is not there is the same for each method; what luxid has answered is
 * told in its own words. */
static void take_error(struct asking *asking, const char *method, GError **error)
{
    g_autofree char *before = g_strdup_printf("luxid: %s: ", method);
    const char *text = asking->error->message;
    bool unsure =
        fettle_error_is(asking->error, UNKNOWN_RESULT) || fettle_error_is(asking->error, TIMEOUT);
    if (fettle_error_is(asking->error, UNREACHABLE))
        fettle_set_error(error, UNREACHABLE, "luxid does not answer");
    else if (!unsure && g_str_has_prefix(text, before))
        g_set_error_literal(error, asking->error->domain, asking->error->code,
                            text + strlen(before));
    else
        g_propagate_error(error, g_steal_pointer(&asking->error));
}

/* Its answer, to be freed; NULL with an error. The wait for its turn is taken off its time. */
static struct asking *ask(struct calls *calls, enum face face, struct rpc_call *call, bool text,
                          GError **error)
{
    bool is_long = rapi_turns_is_long(call->method);
    if (!rapi_turns_take(calls->turns, is_long, &call->timeout_ms, error)) {
        json_decref(call->args);
        return NULL;
    }
    struct asking *asking = g_new0(struct asking, 1);
    asking->calls = calls;
    asking->is_long = is_long;
    if (text)
        luxi_client_call_text(calls->clients[face], call, text_cb, asking);
    else
        luxi_client_call(calls->clients[face], call, reply_cb, asking);
    if (!promise_wait(&asking->promise)) {
        fettle_set_error(error, KILLED, "luxid: %s: the calling process ends", call->method);
        if (asking->promise.done)
            asking_free(asking);
        else
            asking->left = true;
        return NULL;
    }
    if (!asking->error)
        return asking;
    take_error(asking, call->method, error);
    asking_free(asking);
    return NULL;
}

static struct rpc_call call_of(const char *method, json_t *args, const char *user, guint timeout_ms)
{
    return (struct rpc_call){.to_role = ROLE_LUXID,
                             .method = method,
                             .args = args,
                             .user = user,
                             .timeout_ms = timeout_ms ? MIN(timeout_ms, LIMIT_RAPI_CALL_MS)
                                                      : LIMIT_RAPI_CALL_MS};
}

static json_t *call(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                    const char *user, guint timeout_ms, GError **error)
{
    struct rpc_call made = call_of(method, args, user, timeout_ms);
    struct asking *asking = ask((struct calls *)luxid, face, &made, false, error);
    json_t *result = asking ? g_steal_pointer(&asking->result) : NULL;
    if (asking)
        asking_free(asking);
    return result;
}

static char *call_text(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                       const char *user, guint timeout_ms, GError **error)
{
    struct rpc_call made = call_of(method, args, user, timeout_ms);
    struct asking *asking = ask((struct calls *)luxid, face, &made, true, error);
    char *text = asking ? g_steal_pointer(&asking->text) : NULL;
    if (asking)
        asking_free(asking);
    return text;
}

struct rapi_luxid *luxid_calls_new(const struct env *env)
{
    struct calls *calls = g_new0(struct calls, 1);
    calls->base = (struct rapi_luxid){call, call_text};
    calls->turns = rapi_turns_new(env);
    for (enum face face = 0; face < FACES; face++) {
        g_autofree char *path = node_paths_face(real_env_paths(env), face);
        calls->clients[face] = luxi_client_new(path);
    }
    return &calls->base;
}

void luxid_calls_free(struct rapi_luxid *luxid)
{
    struct calls *calls = (struct calls *)luxid;
    for (enum face face = 0; face < FACES; face++)
        luxi_client_free(calls->clients[face]);
    rapi_turns_free(calls->turns);
    g_free(calls);
}

/*
 * See the end of env.h. What a callback may outlive (its task can be killed while it waits) lies on
 * the heap and belongs to whoever comes last.
 */
#include "proto/env.h"

#include "proto/records.h"

/* --- calls --- */

struct waiting_call {
    struct promise promise;
    bool abandoned; /* the task was killed: nobody waits any more */
    json_t *result;
    GError *error;
};

static void waiting_call_free(struct waiting_call *waiting)
{
    json_decref(waiting->result);
    g_clear_error(&waiting->error);
    g_free(waiting);
}

static void call_cb(json_t *result, const GError *error, void *data)
{
    struct waiting_call *waiting = data;
    if (waiting->abandoned) {
        waiting_call_free(waiting);
        return;
    }
    waiting->result = json_incref(result);
    waiting->error = error != NULL ? g_error_copy(error) : NULL;
    promise_complete(&waiting->promise);
}

static json_t *killed(const struct rpc_call *call, GError **error)
{
    fettle_set_error(error, KILLED, "%s/%s: the calling process has ended", call->to_role,
                     call->method);
    return NULL;
}

json_t *env_call_wait(const struct env *env, const struct rpc_call *call, GError **error)
{
    if (task_killed()) {
        json_decref(call->args);
        return killed(call, error);
    }
    struct waiting_call *waiting = g_new0(struct waiting_call, 1);
    env->ops->call(env, call, call_cb, waiting);
    if (!promise_wait(&waiting->promise)) {
        waiting->abandoned = true;
        if (waiting->promise.done)
            waiting_call_free(waiting);
        return killed(call, error);
    }
    json_t *result = json_steal(&waiting->result);
    if (waiting->error != NULL)
        g_propagate_error(error, g_steal_pointer(&waiting->error));
    waiting_call_free(waiting);
    return result;
}

void *env_call_record(const struct env *env, const char *to_node, const char *to_role,
                      const char *method, const void *args, struct stamp stamp, guint job,
                      guint timeout_ms, GError **error)
{
    const struct method *row = method_find(to_role, method);
    if (row == NULL)
        g_error("%s has no method %s", to_role, method);
    struct rpc_call call = {
        .to_node = to_node,
        .to_role = to_role,
        .method = method,
        .args = args != NULL ? record_to_json(row->args, args) : json_object(),
        .stamp = stamp,
        .job = job,
        .timeout_ms = timeout_ms,
    };
    json_autoptr result = env_call_wait(env, &call, error);
    if (result == NULL)
        return NULL;
    g_autoptr(GError) problem = NULL;
    void *answer = record_parse(row->answer, result, RECORD_LAX, &problem);
    if (answer == NULL)
        fettle_set_error(error, PROTOCOL, "answer of %s/%s: %s", to_role, method, problem->message);
    return answer;
}

/* --- time --- */

static void sleep_cb(void *data)
{
    struct promise *promise = data;
    promise_complete(promise);
}

bool env_no_answer(const GError *error)
{
    return fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, TIMEOUT) ||
           fettle_error_is(error, UNKNOWN_RESULT);
}

bool env_sleep(const struct env *env, guint ms)
{
    if (task_killed())
        return false;
    struct promise over = {0};
    guint handle = env->ops->timer(env, ms, sleep_cb, &over);
    bool alive = promise_wait(&over);
    if (!over.done)
        env->ops->timer_cancel(env, handle);
    return alive;
}

static void pause_cb(void *data)
{
    env_pause_end(data);
}

bool env_pause(const struct env *env, struct env_pause *pause, guint ms)
{
    bool alive = !task_killed();
    if (alive && !pause->ended) {
        struct promise over = {0};
        pause->over = &over;
        guint timer = env->ops->timer(env, ms, pause_cb, pause);
        alive = promise_wait(&over);
        pause->over = NULL;
        env->ops->timer_cancel(env, timer);
    }
    pause->ended = false;
    return alive;
}

void env_pause_end(struct env_pause *pause)
{
    pause->ended = true;
    if (pause->over && !pause->over->done)
        promise_complete(pause->over);
}

/* --- names --- */

char *env_uuid(const struct env *env)
{
    unsigned char b[16];
    env->ops->random(env, b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    return g_strdup_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                           b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
                           b[12], b[13], b[14], b[15]);
}

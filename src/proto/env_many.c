/* See env_many.h. What is under way lives on if the asker needs no more answers. */
#include "proto/env_many.h"

#include "proto/records.h"

struct many {
    guint refs; /* the asker, and each node that was asked */
    const struct env *env;
    const struct method *method; /* by which answers are read; NULL: they are not */
    guint left;
    bool over; /* it was enough, or the asker is gone: nobody is told any more */
    struct promise end;
    env_answer_fn fn;
    void *data;
};

struct asked {
    struct many *many;
    guint index;
    char *node;
};

static void many_unref(struct many *many)
{
    if (--many->refs == 0)
        g_free(many);
}

static bool tell(const struct asked *asked, json_t *json, const GError *error)
{
    const struct many *many = asked->many;
    const struct method *method = many->method;
    struct env_answer answer = {
        .index = asked->index, .node = asked->node, .json = json, .error = error};
    g_autoptr(GError) unread = NULL;
    if (json && method) {
        g_autoptr(GError) problem = NULL;
        answer.record = record_parse(method->answer, json, RECORD_LAX, &problem);
        if (!answer.record)
            fettle_set_error(&unread, PROTOCOL, "answer of %s/%s: %s", method->server, method->name,
                             problem->message);
        answer.error = unread;
    }
    bool enough = many->fn(&answer, many->data);
    if (answer.record)
        record_free(method->answer, answer.record);
    return enough;
}

static void ask_cb(json_t *json, const GError *error, void *data)
{
    struct asked *asked = data;
    struct many *many = asked->many;
    many->left--;
    if (!many->over && !task_group_killed(many->env->tasks)) {
        many->over = tell(asked, json, error) || many->left == 0;
        if (many->over)
            promise_complete(&many->end);
    }
    many_unref(many);
    g_free(asked->node);
    g_free(asked);
}

static void ask(struct many *many, const struct env_question *question, json_t *args, guint index)
{
    struct asked *asked = g_new(struct asked, 1);
    *asked = (struct asked){many, index, g_strdup(question->nodes->pdata[index])};
    struct rpc_call call = {.to_node = asked->node,
                            .to_role = question->role,
                            .method = question->method,
                            .args = json_incref(question->each ? question->each[index] : args),
                            .stamp = question->stamp,
                            .job = question->job,
                            .timeout_ms = question->limit_ms};
    many->env->ops->call(many->env, &call, ask_cb, asked);
}

static json_t *args_of(const struct env_question *question, const struct method *method)
{
    if (question->json)
        return json_incref((json_t *)question->json);
    return question->args ? record_to_json(method->args, question->args) : json_object();
}

bool env_many(const struct env *env, const struct env_question *question, env_answer_fn fn,
              void *data)
{
    const struct method *method = method_find(question->role, question->method);
    if (!method)
        g_error("%s has no method %s", question->role, question->method);
    json_autoptr args = args_of(question, method);
    guint count = question->nodes->len;
    if (count == 0)
        return true;
    if (task_killed())
        return false;
    struct many *many = g_new0(struct many, 1);
    *many = (struct many){.refs = 1 + count,
                          .env = env,
                          .method = question->json ? NULL : method,
                          .left = count,
                          .fn = fn,
                          .data = data};
    for (guint i = 0; i < count; i++)
        ask(many, question, args, i);
    bool alive = promise_wait(&many->end);
    many->over = true;
    many_unref(many);
    return alive;
}

/* See rapi.h. */
#include "core/rapi/rapi.h"

#include <string.h>

struct rapi {
    const struct env *env;
    struct rapi_luxid *luxid;
    struct rapi_users *users;
};

struct rapi *rapi_new(const struct rapi_options *options, GError **error)
{
    struct rapi *rapi = g_new(struct rapi, 1);
    *rapi = (struct rapi){.env = options->env, .luxid = options->luxid, .users = options->users};
    return rapi;
}

void rapi_free(struct rapi *rapi)
{
    g_free(rapi);
}

struct serving {
    struct rapi *rapi;
    const struct http_request *request;
    void (*done)(struct http_answer *answer, void *data);
    void *data;
};

static void serve_task(void *data)
{
    g_autofree struct serving *serving = data;
    bool version = strcmp(serving->request->path, "/version") == 0;
    struct http_answer *answer = http_answer_new(version ? 200 : 404);
    http_answer_set_body(
        answer, "application/json",
        g_strdup(version ? "2" : "{\"code\": 404, \"message\": \"Not Found\", \"explain\": \"\"}"));
    serving->done(answer, serving->data);
}

void rapi_serve(struct rapi *rapi, const struct http_request *request,
                void (*done)(struct http_answer *answer, void *data), void *data)
{
    struct serving *serving = g_new(struct serving, 1);
    *serving = (struct serving){rapi, request, done, data};
    task_spawn(rapi->env->tasks, serve_task, serving);
}

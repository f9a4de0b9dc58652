/* See env_many.h: a task for each node, which lives on if the asker needs no more answers. */
#include "proto/env_many.h"

struct gathering {
    guint refs; /* the asker, and each task */
    const struct env *env;
    const struct method *method;
    void *args;
    struct stamp stamp;
    guint limit_ms;
    guint left;
    bool enough; /* or the asker is gone: nobody is told any more */
    struct promise *news;
    gather_fn fn;
    void *data;
};

struct question {
    struct gathering *gathering;
    guint index;
    char *node;
};

static void gathering_unref(struct gathering *gathering)
{
    if (--gathering->refs > 0)
        return;
    if (gathering->args)
        record_free(gathering->method->args, gathering->args);
    g_free(gathering);
}

static void question_task(void *data)
{
    struct question *question = data;
    struct gathering *gathering = question->gathering;
    const struct method *method = gathering->method;
    g_autoptr(GError) error = NULL;
    void *answer =
        env_call_record(gathering->env, question->node, method->server, method->name,
                        gathering->args, gathering->stamp, 0, gathering->limit_ms, &error);
    gathering->left--;
    if (!gathering->enough && !task_killed()) {
        gathering->enough = gathering->fn(question->index, answer, error, gathering->data);
        if (!gathering->news->done)
            promise_complete(gathering->news);
    }
    if (answer)
        record_free(method->answer, answer);
    gathering_unref(gathering);
    g_free(question->node);
    g_free(question);
}

bool gather_within(const struct env *env, const GPtrArray *nodes, const char *role,
                   const char *method, const void *args, struct stamp stamp, guint limit_ms,
                   gather_fn fn, void *data)
{
    struct promise news = {0};
    struct gathering *gathering = g_new0(struct gathering, 1);
    gathering->refs = 1 + nodes->len;
    gathering->env = env;
    gathering->method = method_find(role, method);
    gathering->args = args ? record_copy(gathering->method->args, args) : NULL;
    gathering->stamp = stamp;
    gathering->limit_ms = limit_ms;
    gathering->left = nodes->len;
    gathering->news = &news;
    gathering->fn = fn;
    gathering->data = data;
    for (guint i = 0; i < nodes->len; i++) {
        struct question *question = g_new(struct question, 1);
        *question = (struct question){gathering, i, g_strdup(nodes->pdata[i])};
        task_spawn(env->tasks, question_task, question);
    }
    bool alive = true;
    while (alive && gathering->left > 0 && !gathering->enough) {
        news = (struct promise){0};
        alive = promise_wait(&news);
    }
    gathering->enough = true;
    gathering_unref(gathering);
    return alive;
}

bool gather(const struct env *env, const GPtrArray *nodes, const char *role, const char *method,
            const void *args, struct stamp stamp, gather_fn fn, void *data)
{
    return gather_within(env, nodes, role, method, args, stamp, 0, fn, data);
}

/* See candidates.h. */
#include "daemons/mond/candidates.h"

#include <string.h>

#include "io/net/confd_client.h"
#include "io/pool.h"

#define TOLD "node.json"
#define THREADS 2 /* questions for settings, and for instances */
#define WAITING 8

struct candidates {
    const struct env *env;
    char *address;
    guint port;
    struct pool *pool;
};

struct candidates *candidates_new(const struct env *env, const char *address, guint port)
{
    struct candidates *candidates = g_new(struct candidates, 1);
    *candidates = (struct candidates){env, g_strdup(address), port,
                                      pool_new("questions to ConfD", THREADS, WAITING)};
    return candidates;
}

void candidates_free(struct candidates *candidates)
{
    pool_free(candidates->pool);
    g_free(candidates->address);
    g_free(candidates);
}

/* --- one question --- */

struct question {
    const char *from;
    GPtrArray *candidates;
    struct confd_key *key;
    enum confd_type type;
    json_t *query;
    GPtrArray *heard;
};

static void question_free(void *data)
{
    struct question *question = data;
    g_clear_pointer(&question->heard, g_ptr_array_unref);
    g_ptr_array_unref(question->candidates);
    confd_key_free(question->key);
    json_decref(question->query);
    g_free(question);
}

/* In a thread. */
static void put_question(void *data)
{
    struct question *question = data;
    question->heard = confd_ask_from(question->from, question->candidates, question->key,
                                     question->type, question->query, MONITOR_CONFD_MS);
}

static struct monitor_config *read_told(const struct candidates *candidates, GError **error)
{
    const struct env *env = candidates->env;
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_MOND, TOLD, LIMIT_STATE_FILE_BYTES, &len, &why);
    json_autoptr json = text ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &why) : NULL;
    record_autoptr(monitor_config) config =
        json ? monitor_config_parse(json, RECORD_LAX, &why) : NULL;
    if (config && config->candidates->len > 0 && *config->key)
        return g_steal_pointer(&config);
    if (!config)
        fettle_set_error(error, UNKNOWN_ENTITY, "%s", why->message);
    else
        fettle_set_error(error, UNKNOWN_ENTITY, "%s",
                         *config->key
                             ? "this node was told of no master candidate yet"
                             : "no master has given the monitoring of this node its key yet");
    return NULL;
}

static json_t *take_answer(const struct question *question, GError **error)
{
    const struct confd_heard *newest = confd_newest(question->heard);
    if (!newest) {
        g_autofree char *silent = confd_silent_text(question->heard);
        fettle_set_error(error, TIMEOUT, "%s", silent);
        return NULL;
    }
    if (newest->reply.status == CONFD_OK)
        return json_incref(newest->reply.answer);
    g_autofree char *text = json_dumps(newest->reply.answer, JSON_ENCODE_ANY);
    fettle_set_error(error, WRONG_STATE, "%s answers: %s", newest->from->name, text);
    return NULL;
}

json_t *candidates_ask(enum confd_type type, const char *query, void *data, GError **error)
{
    struct candidates *candidates = data;
    record_autoptr(monitor_config) config = read_told(candidates, error);
    if (!config)
        return NULL;
    struct question *question = g_new0(struct question, 1);
    *question = (struct question){.from = candidates->address,
                                  .candidates = confd_candidates_of(config, candidates->port),
                                  .key = confd_key_new(config->key, strlen(config->key)),
                                  .type = type,
                                  .query = query ? json_string(query) : json_null()};
    if (!pool_run(candidates->pool, put_question, question_free, question, error))
        return NULL;
    json_t *answer = take_answer(question, error);
    question_free(question);
    return answer;
}

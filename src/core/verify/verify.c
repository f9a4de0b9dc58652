/* What a look goes by, and the call; see verify.h. */
#include "core/verify/verify.h"

#include "core/verify/verify_look.h"

#define ROWS_BETWEEN_TURNS 500
#define JOB_ENDS_MS 1000

/* --- findings --- */

bool look_concerns(const struct look *look, const char *node)
{
    const struct node *its = look->group ? config_get(look->config, "node", node, NULL) : NULL;
    return !look->no_node && (!look->node || g_str_equal(look->node->uuid, node)) &&
           (!look->group || (its && g_str_equal(its->group, look->group->uuid)));
}

bool look_whole(const struct look *look)
{
    return !look->node && !look->group;
}

const char *look_node_name(const struct look *look, const char *node)
{
    return config_node_name(look->config, node);
}

void look_problem(struct look *look, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(look->found->problems, g_strdup_vprintf(format, args));
    va_end(args);
}

void look_note(struct look *look, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(look->found->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

char *look_field(struct look *look, const char *resource, const char *name, const void *row)
{
    enum query_status status;
    json_autoptr value =
        query_field_value(query_field_find(resource, name), &look->source, row, &status);
    return g_strdup(json_is_string(value) ? json_string_value(value) : "");
}

char *look_time_text(gint64 seconds)
{
    g_autoptr(GDateTime) time = seconds > 0 ? g_date_time_new_from_unix_local(seconds) : NULL;
    return time ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S") : g_strdup("-");
}

bool look_pause(struct look *look)
{
    if (++look->rows % ROWS_BETWEEN_TURNS == 0)
        look->stopped |= *look->gone || !env_sleep(look->queries->env, 1);
    return !look->stopped;
}

static struct verified *verified_new(const struct node *node)
{
    struct verified *verified = g_new0(struct verified, 1);
    verified->node = node ? g_strdup(node->name) : NULL;
    verified->problems = g_ptr_array_new_with_free_func(g_free);
    verified->notes = g_ptr_array_new_with_free_func(g_free);
    return verified;
}

static void verified_free(struct verified *verified)
{
    if (!verified)
        return;
    g_free(verified->node);
    g_ptr_array_unref(verified->problems);
    g_ptr_array_unref(verified->notes);
    g_free(verified);
}

/* --- gathering --- */

static void look_clear(struct look *look)
{
    query_source_clear(&look->source);
    lock_states_free(look->locks);
    g_clear_pointer(&look->candidates, g_hash_table_unref);
    g_clear_pointer(&look->stored, g_ptr_array_unref);
    cluster_status_free(look->status);
    config_free(look->config);
    verified_free(look->found);
}

static bool given_up(const struct look *look, GError **error)
{
    fettle_set_error(error, KILLED, *look->gone ? "the client has gone" : "the process ends");
    return false;
}

static bool fetch_locks(struct look *look, GError **error)
{
    struct queries *queries = look->queries;
    lock_states_free(look->locks);
    look->locks = env_call_record(queries->env, NODE_LOCAL, ROLE_WCONFD, "list_all_locks", NULL,
                                  follow_stamp(queries->follow), 0, 0, error);
    return look->locks != NULL;
}

/* A job's process frees its locks a moment after its end is on record. */
static bool ask_locks(struct look *look, GError **error)
{
    if (!fetch_locks(look, error))
        return false;
    if (!verify_locks_are_stale(look))
        return true;
    if (env_sleep(look->queries->env, JOB_ENDS_MS))
        return fetch_locks(look, error);
    return given_up(look, error);
}

/* Whoever may have to be waited for. */
static bool ask(struct look *look, GError **error)
{
    const struct env *env = look->queries->env;
    struct follow *follow = look->queries->follow;
    look->status = env_call_record(env, NODE_LOCAL, ROLE_WCONFD, "cluster_status", NULL,
                                   follow_stamp(follow), 0, 0, error);
    if (!look->status)
        return false;
    look->reports = reports_ask(env, follow, NULL);
    look->source.reports = look->reports;
    return (look->reports && candidates_ask(look) && stored_ask(look)) || given_up(look, error);
}

/* What is on record may change while they are waited for. */
static bool take(struct look *look, const struct luxi_verify_args *args, GError **error)
{
    config_share(follow_config(look->queries->follow), look->config);
    look->source.config = look->config;
    look->cluster = config_cluster(look->config);
    if (!look->cluster) {
        fettle_set_error(error, TEMPORARY,
                         "the configuration has no cluster yet; run `fettle cluster init`");
        return false;
    }
    look->no_node = args->no_node;
    look->node = *args->node ? config_find(look->config, "node", args->node, error) : NULL;
    if (*args->node && !look->node)
        return false;
    look->group = *args->group ? config_find(look->config, "nodegroup", args->group, error) : NULL;
    if (*args->group && !look->group)
        return false;
    look->found = verified_new(look->node);
    return true;
}

static bool look_at_all(struct look *look, GError **error)
{
    verify_master(look);
    verify_nodes(look);
    verify_keys(look);
    verify_services(look);
    verify_backends(look);
    verify_stored(look);
    verify_resources(look);
    verify_candidates(look);
    verify_master_ip(look);
    verify_instances(look);
    verify_strays(look);
    verify_tags(look);
    if (look->stopped)
        return given_up(look, error);
    if (!look->group) {
        if (!ask_locks(look, error))
            return false;
        verify_jobs(look);
    }
    if (look_whole(look))
        verify_notes(look);
    return !look->stopped || given_up(look, error);
}

/* As queries that take long: one after the other, so that one set of references to all objects is
 * there at a time (query_run.c). All is asked within the turn: what was said before it may not be
 * true any more. */
static bool look_in_turn(struct look *look, const struct luxi_verify_args *args, GError **error)
{
    struct queries *queries = look->queries;
    if (!task_mutex_lock(&queries->slow_turn))
        return given_up(look, error);
    bool done = *look->gone
                    ? given_up(look, error)
                    : ask(look, error) && take(look, args, error) && look_at_all(look, error);
    task_mutex_unlock(&queries->slow_turn);
    return done;
}

/* Before anybody is asked. */
static bool exists(const struct config *config, const struct luxi_verify_args *args, GError **error)
{
    return (!*args->node || config_find(config, "node", args->node, error)) &&
           (!*args->group || config_find(config, "nodegroup", args->group, error));
}

/* --- the call --- */

struct call {
    struct queries *queries;
    struct rpc_request *request;
    struct luxi_verify_args *args;
    bool gone; /* who asked */
};

static void gone_cb(struct rpc_request *request, void *data)
{
    ((struct call *)data)->gone = true;
}

static struct verified *look_by(const struct call *call, GError **error)
{
    struct look look = {.queries = call->queries,
                        .config = config_new(),
                        .source.queries = call->queries,
                        .gone = &call->gone};
    struct verified *found = NULL;
    if (exists(follow_config(call->queries->follow), call->args, error) &&
        look_in_turn(&look, call->args, error))
        found = g_steal_pointer(&look.found);
    look_clear(&look);
    return found;
}

static json_t *texts(const GPtrArray *list)
{
    json_t *json = json_array();
    for (guint i = 0; i < list->len; i++)
        json_array_append_new(json, json_string(list->pdata[i]));
    return json;
}

static void call_task(void *data)
{
    struct call *call = data;
    g_autoptr(GError) error = NULL;
    rpc_on_gone(call->request, gone_cb, call);
    struct verified *found = look_by(call, &error);
    if (found)
        rpc_answer(call->request, json_make("{ss?, so, so}", "node", found->node, "problems",
                                            texts(found->problems), "notes", texts(found->notes)));
    else
        rpc_fail(call->request, error);
    verified_free(found);
    call->queries->slow--;
    luxi_verify_args_free(call->args);
    g_free(call);
}

void verify_call(struct queries *queries, struct rpc_request *request,
                 const struct luxi_verify_args *args)
{
    /* Jobs try again (ops_verify_cluster.c), and leave half of it to persons. */
    bool by_job = g_str_equal(request->from_role, ROLE_JOB);
    if (queries->slow >= (by_job ? LIMIT_LONG_QUERIES / 2 : LIMIT_LONG_QUERIES)) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "%u queries that take long are under way already; try again later",
                     queries->slow);
        return;
    }
    struct call *call = g_new(struct call, 1);
    *call = (struct call){queries, request, luxi_verify_args_copy(args), false};
    queries->slow++;
    task_spawn(queries->env->tasks, call_task, call);
}

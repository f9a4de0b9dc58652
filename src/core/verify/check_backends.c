/* Nodes that try back ends out; see check_backends.h. */
#include "core/verify/check_backends.h"

#include <string.h>

#include "base/limits.h"
#include "proto/env_many.h"

/* One node of one back end. */
struct part {
    const struct backend *backend; /* of `config` */
    const struct node *node;
    struct backend_check_result *alone; /* NULL: it has not answered, and that is said */
};

/* What of them are asked at once. */
struct asked {
    struct checks *checks;
    GPtrArray *parts;
    struct backend_check_result **results;
};

struct checks {
    struct queries *queries;
    struct rpc_request *request;
    struct luxi_verify_backends_args *args;
    struct config *config; /* as it was when they were asked */
    GPtrArray *parts;      /* struct part */
    json_t *problems, *notes;
};

static void part_free(void *data)
{
    struct part *part = data;
    if (part->alone)
        backend_check_result_free(part->alone);
    g_free(part);
}

static void say(json_t *list, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void say(json_t *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    json_array_append_new(list, json_string(text));
}

/* --- whom --- */

static void add_backend(struct checks *checks, const struct backend *backend)
{
    for (guint i = 0; i < backend->nodes->len; i++) {
        const struct node *node =
            config_get(checks->config, "node", backend->nodes->pdata[i], NULL);
        if (node && node->offline)
            say(checks->notes, "back end %s: node %s: was not asked, as it is offline",
                backend->name, node->name);
        if (!node || node->offline)
            continue;
        struct part *part = g_new0(struct part, 1);
        *part = (struct part){.backend = backend, .node = node};
        g_ptr_array_add(checks->parts, part);
    }
}

static bool add_all(struct checks *checks, GError **error)
{
    const GPtrArray *names = checks->args->names;
    config_share(follow_config(checks->queries->follow), checks->config);
    g_autoptr(GPtrArray) all = config_list(checks->config, "backend");
    for (guint i = 0; i < all->len && names->len == 0; i++)
        add_backend(checks, all->pdata[i]);
    for (guint i = 0; i < names->len; i++) {
        const struct backend *backend =
            config_find(checks->config, "backend", names->pdata[i], error);
        if (!backend)
            return false;
        add_backend(checks, backend);
    }
    return true;
}

/* --- asking --- */

/* An error says of which back end it is, as these sentences do. */
static const char *without_name(const char *line, const struct backend *backend)
{
    size_t length = strlen(backend->name);
    bool named = strncmp(line, backend->name, length) == 0 && strncmp(line + length, ": ", 2) == 0;
    return named ? line + length + 2 : line;
}

static bool take_answer(struct env_answer *answer, void *data)
{
    struct asked *asked = data;
    const struct part *part = asked->parts->pdata[answer->index];
    if (answer->record)
        asked->results[answer->index] = g_steal_pointer(&answer->record);
    else
        say(asked->checks->problems, "back end %s: node %s: %s", part->backend->name,
            part->node->name,
            env_no_answer(answer->error) ? "its volume service does not answer"
                                         : without_name(answer->error->message, part->backend));
    return false;
}

/* `together`: they are nodes of one back end, which take places in one check. `results`: as many,
 * to be filled in; NULL: of one that has not answered, and that is said. False: the process ends.
 */
static bool ask(struct checks *checks, GPtrArray *parts, bool together,
                struct backend_check_result **results)
{
    const struct env *env = checks->queries->env;
    g_autofree char *token = env_uuid(env);
    g_autofree json_t **each = g_new0(json_t *, parts->len + 1);
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    struct asked asked = {checks, parts, results};
    for (guint i = 0; i < parts->len; i++) {
        const struct part *part = parts->pdata[i];
        g_autofree char *own = env_uuid(env);
        const struct backend_check_args args = {.backend = part->backend->uuid,
                                                .token = together ? token : own,
                                                .place = together ? i : 0,
                                                .nodes = together ? parts->len : 1};
        each[i] = backend_check_args_to_json(&args);
        g_ptr_array_add(nodes, part->node->uuid);
    }
    const struct env_question question = {.nodes = nodes,
                                          .role = ROLE_VOLUMED,
                                          .method = "backend_check",
                                          .each = each,
                                          .stamp = follow_stamp(checks->queries->follow)};
    bool alive = nodes->len == 0 || env_many(env, &question, take_answer, &asked);
    for (guint i = 0; i < parts->len; i++)
        json_decref(each[i]);
    return alive;
}

/* --- what they say --- */

static void tell_lines(const struct part *part, const GPtrArray *lines, json_t *list)
{
    for (guint i = 0; i < lines->len; i++)
        say(list, "back end %s: node %s: %s", part->backend->name, part->node->name,
            without_name(lines->pdata[i], part->backend));
}

/* What each finds by itself. */
static bool check_alone(struct checks *checks)
{
    GPtrArray *parts = checks->parts;
    g_autofree struct backend_check_result **results =
        g_new0(struct backend_check_result *, parts->len + 1);
    bool alive = ask(checks, parts, false, results);
    const struct backend *told = NULL;
    for (guint i = 0; i < parts->len; i++) {
        struct part *part = parts->pdata[i];
        const struct backend_check_result *result = part->alone = results[i];
        if (!result)
            continue;
        tell_lines(part, result->problems, checks->problems);
        tell_lines(part, result->notes, checks->notes);
        /* By its last beat, before it was full, say. */
        if (result->problems->len || !result->total_mib || told == part->backend)
            continue;
        told = part->backend;
        say(checks->notes,
            "back end %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " MiB are free",
            part->backend->name, result->free_mib, result->total_mib);
    }
    return alive;
}

static void tell_together(struct checks *checks, const GPtrArray *parts,
                          struct backend_check_result *const *results)
{
    const struct part *first = parts->pdata[0];
    bool held = results[0] && results[0]->problems->len == 0;
    for (guint i = 0; i < parts->len; i++) {
        const struct part *part = parts->pdata[i];
        if (!results[i])
            continue;
        tell_lines(part, results[i]->problems, checks->problems);
        if (results[i]->unseen && held)
            say(checks->problems,
                "back end %s: node %s: does not see what node %s has just made there; %s is "
                "another directory on it: mount the same one on both",
                part->backend->name, part->node->name, first->node->name, part->backend->path);
    }
}

/* The nodes of one back end for which it works alone. */
static bool check_together(struct checks *checks, const struct backend *backend)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    for (guint i = 0; i < checks->parts->len; i++) {
        struct part *part = checks->parts->pdata[i];
        if (part->backend == backend && part->alone && part->alone->problems->len == 0)
            g_ptr_array_add(parts, part);
    }
    if (parts->len < 2)
        return true;
    g_autofree struct backend_check_result **results =
        g_new0(struct backend_check_result *, parts->len);
    bool alive = ask(checks, parts, true, results);
    if (alive)
        tell_together(checks, parts, results);
    for (guint i = 0; i < parts->len; i++)
        if (results[i])
            backend_check_result_free(results[i]);
    return alive;
}

static bool check_all(struct checks *checks)
{
    const struct backend *last = NULL;
    bool alive = check_alone(checks);
    for (guint i = 0; alive && i < checks->parts->len; i++) {
        const struct part *part = checks->parts->pdata[i];
        alive = part->backend == last || check_together(checks, part->backend);
        last = part->backend;
    }
    return alive;
}

/* --- the call --- */

static void call_task(void *data)
{
    struct checks *checks = data;
    g_autoptr(GError) error = NULL;
    bool alive = !task_killed() && add_all(checks, &error) && check_all(checks);
    if (alive)
        rpc_answer(checks->request,
                   json_make("{sO, sO}", "problems", checks->problems, "notes", checks->notes));
    else if (error)
        rpc_fail(checks->request, error);
    checks->queries->slow--;
    g_ptr_array_unref(checks->parts);
    config_free(checks->config);
    json_decref(checks->problems);
    json_decref(checks->notes);
    luxi_verify_backends_args_free(checks->args);
    g_free(checks);
}

void check_backends_call(struct queries *queries, struct rpc_request *request,
                         const struct luxi_verify_backends_args *args)
{
    if (queries->slow >= LIMIT_LONG_QUERIES) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "%u queries that take long are under way already; try again later",
                     queries->slow);
        return;
    }
    struct checks *checks = g_new(struct checks, 1);
    *checks = (struct checks){.queries = queries,
                              .request = request,
                              .args = luxi_verify_backends_args_copy(args),
                              .config = config_new(),
                              .parts = g_ptr_array_new_with_free_func(part_free),
                              .problems = json_array(),
                              .notes = json_array()};
    queries->slow++;
    task_spawn(queries->env->tasks, call_task, checks);
}

/*
 * The calls of a change of engine: its begin, what it says, and its end. The steps are
 * engine_change.c. What a change has left on the nodes that came to no step is taken back, also by
 * the master after a restart, until all of them have answered.
 */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/engine_change.h"
#include "core/wconfd/engine_members.h"

#define LEAVE_PAUSE_MS 100 /* in which who asks for progress gets the last lines */
#define CLEAR_PAUSE_MS 2000

struct wconf_engine {
    struct engine_change *change; /* the last one, under way or not; NULL: none */
    struct clearing *clearing;    /* of what an earlier one has left; NULL: none is under way */
};

/* A question for progress that has nothing new yet. */
struct progress_wait {
    struct engine_change *change;
    struct rpc_request *request;
    guint seen;
    guint timer;
};

/* The task that takes a change back; outlives its wconf. */
struct clearing {
    struct wconf *wconf; /* NULL: it has ended */
    struct engine_asker asker;
    GPtrArray *nodes; /* struct node: that are not clear yet */
    char *why;        /* what is in its way */
};

struct wconf_engine *wconf_engine_new(void)
{
    return g_new0(struct wconf_engine, 1);
}

void wconf_engine_free(struct wconf_engine *changing)
{
    g_free(changing);
}

/* --- what it says --- */

static void change_unref(struct engine_change *change)
{
    if (--change->users > 0)
        return;
    g_assert(change->waits->len == 0);
    g_ptr_array_unref(change->waits);
    g_ptr_array_unref(change->lines);
    g_ptr_array_unref(change->nodes);
    engine_config_free(change->config);
    g_clear_error(&change->error);
    g_free(change);
}

static void answer_progress(const struct engine_change *change, enum engine_kind engine, guint seen,
                            struct rpc_request *request)
{
    record_autoptr(engine_progress) progress = engine_progress_new();
    progress->engine = engine;
    for (guint i = seen; change && i < change->lines->len; i++)
        g_ptr_array_add(progress->lines, g_strdup(change->lines->pdata[i]));
    progress->running = change && change->running;
    /* Not while it is being taken back: who is told may ask for the next one. */
    if (change && change->error && !change->running) {
        g_free(progress->code);
        progress->code = g_strdup(fettle_error_name(change->error));
        g_free(progress->why);
        progress->why = g_strdup(change->error->message);
    }
    rpc_answer(request, engine_progress_to_json(progress));
}

static enum engine_kind engine_of(const struct wconf *wconf)
{
    return wconf->engine->replicated ? ENGINE_KIND_ETCD : ENGINE_KIND_SQLITE;
}

static void wait_end(struct progress_wait *wait)
{
    struct engine_change *change = wait->change;
    if (wait->timer)
        change->asker.env->ops->timer_cancel(change->asker.env, wait->timer);
    answer_progress(change, engine_of(change->wconf), wait->seen, wait->request);
    g_free(wait);
}

static void wait_timeout(void *data)
{
    struct progress_wait *wait = data;
    wait->timer = 0;
    g_ptr_array_remove(wait->change->waits, wait);
    wait_end(wait);
}

static void tell(struct engine_change *change)
{
    g_autoptr(GPtrArray) waits = change->waits;
    change->waits = g_ptr_array_new();
    for (guint i = 0; i < waits->len; i++)
        wait_end(waits->pdata[i]);
}

void engine_change_say(struct engine_change *change, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *line = g_strdup_vprintf(format, args);
    va_end(args);
    if (!change->wconf)
        return;
    log_info("", "change of engine: %s", line);
    g_ptr_array_add(change->lines, g_steal_pointer(&line));
    tell(change);
}

/* --- taking back --- */

static void clearing_free(struct clearing *clearing)
{
    if (clearing->wconf)
        clearing->wconf->changing->clearing = NULL;
    g_ptr_array_unref(clearing->nodes);
    g_free(clearing->why);
    g_free(clearing);
}

/* Who is a node no more, or offline on a person's word, is not waited for. */
static void forget_gone(struct clearing *clearing)
{
    for (guint i = clearing->nodes->len; i > 0; i--) {
        const struct node *node = clearing->nodes->pdata[i - 1];
        const struct node *now = config_get(clearing->wconf->committed, "node", node->uuid, NULL);
        if (!now || now->offline)
            g_ptr_array_remove_index(clearing->nodes, i - 1);
    }
}

static void clearing_task(void *data)
{
    struct clearing *clearing = data;
    bool alive = true;
    while (alive && clearing->wconf && clearing->nodes->len > 0) {
        g_autoptr(GError) error = NULL;
        if (engine_change_clear(&clearing->asker, clearing->nodes, &error))
            break;
        g_free(clearing->why);
        clearing->why = g_strdup(error ? error->message : "a node does not answer");
        alive = env_sleep(clearing->asker.env, CLEAR_PAUSE_MS);
        if (clearing->wconf)
            forget_gone(clearing);
    }
    if (clearing->wconf && alive)
        log_info("", "nothing of etcd is left on the nodes");
    clearing_free(clearing);
}

static void clear_later(struct wconf *wconf, GPtrArray *nodes, guint64 epoch)
{
    struct clearing *clearing = g_new0(struct clearing, 1);
    *clearing = (struct clearing){.wconf = wconf,
                                  .asker = {wconf->env, {config_history(wconf->committed), epoch}},
                                  .nodes = nodes};
    wconf->changing->clearing = clearing;
    task_spawn(wconf->env->tasks, clearing_task, clearing);
}

static GPtrArray *left_nodes(const struct wconf *wconf, const struct engine_config *config)
{
    GPtrArray *nodes = engine_candidates(wconf->env, wconf->committed);
    for (guint i = 0; i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        const struct node *node = config_get(wconf->committed, "node", member->node, NULL);
        if (node && !node->master_candidate)
            g_ptr_array_add(nodes, node_copy(node));
    }
    return nodes;
}

/* Whatever engine.json says: a change to etcd has not come to its step, or etcd was left. */
void wconf_engine_clear(struct wconf *wconf, guint64 epoch)
{
    struct ensemble *ensemble = wconf->env->ensemble;
    g_autoptr(GError) error = NULL;
    if (!ensemble)
        return;
    record_autoptr(engine_config) config = ensemble->ops->config_read(ensemble, &error);
    if (!config)
        log_error("", "%s", error->message);
    else if (config->kind == ENGINE_KIND_ETCD)
        clear_later(wconf, left_nodes(wconf, config), epoch);
}

void wconf_engine_start(struct wconf *wconf)
{
    struct clearing *clearing = wconf->changing->clearing;
    if (clearing)
        clearing->asker.stamp.epoch = wconf->epoch;
    engine_members_start(wconf);
}

/* --- the task --- */

/* Nothing has come to its step: what waited goes on. */
static void take_back(struct engine_change *change)
{
    struct wconf *wconf = change->wconf;
    g_autoptr(GError) error = NULL;
    wconf_release_commits(wconf);
    log_error("", "the change of engine is taken back: %s", change->error->message);
    if (change->to == ENGINE_KIND_SQLITE) {
        engine_members_start(wconf);
        return;
    }
    if (engine_change_clear(&change->asker, change->nodes, &error) || !change->wconf)
        return;
    clear_later(wconf, g_ptr_array_ref(change->nodes), wconf->epoch);
    change->nodes = g_ptr_array_new();
}

static void change_task(void *data)
{
    struct engine_change *change = data;
    const struct env *env = change->asker.env;
    bool ok = engine_change_run(change, &change->error);
    if (!ok && !change->stepped && change->wconf && !task_killed())
        take_back(change);
    change->running = false;
    if (change->wconf)
        tell(change);
    if (change->stepped && env_sleep(env, LEAVE_PAUSE_MS) && change->wconf)
        wconf_step_down(change->wconf, FETTLE_ERROR_TEMPORARY, "%s",
                        change->error ? change->error->message
                                      : "the engine has changed; starting anew");
    change_unref(change);
}

/* --- calls --- */

static bool begin(struct wconf *wconf, enum engine_kind to, GError **error)
{
    struct wconf_engine *changing = wconf->changing;
    const struct clearing *clearing = changing->clearing;
    if (changing->change && changing->change->running) {
        fettle_set_error(error, WRONG_STATE,
                         "a change of engine is under way; how far it is: fettle cluster engine "
                         "status");
        return false;
    }
    if (clearing) {
        fettle_set_error(error, TEMPORARY,
                         "an earlier change of engine is still being taken back: %s",
                         clearing->why ? clearing->why : "the nodes are being asked; try again");
        return false;
    }
    if (!engine_change_check(wconf, to, error))
        return false;
    if (changing->change)
        change_unref(changing->change);
    struct engine_change *change = g_new0(struct engine_change, 1);
    *change = (struct engine_change){
        .users = 2,
        .wconf = wconf,
        .asker = {wconf->env, {config_history(wconf->committed), wconf->epoch}},
        .to = to,
        .nodes = engine_candidates(wconf->env, wconf->committed),
        .lines = g_ptr_array_new_with_free_func(g_free),
        .waits = g_ptr_array_new(),
        .running = true};
    changing->change = change;
    task_spawn(wconf->env->tasks, change_task, change);
    return true;
}

void wconf_handle_change_engine(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_engine_args) args =
        rpc_request_args(request, &change_engine_args_record, &error);
    if (args && begin(wconf, (enum engine_kind)args->engine, &error))
        rpc_answer(request, NULL);
    else
        rpc_fail(request, error);
}

void wconf_handle_engine_progress(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(engine_progress_args) args =
        rpc_request_args(request, &engine_progress_args_record, &error);
    struct engine_change *change = wconf->changing->change;
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    guint seen = (guint)MIN(args->seen, G_MAXUINT);
    if (!change || !change->running || seen < change->lines->len || args->wait_ms == 0) {
        answer_progress(change, engine_of(wconf), seen, request);
        return;
    }
    struct progress_wait *wait = g_new0(struct progress_wait, 1);
    *wait = (struct progress_wait){change, request, seen, 0};
    wait->timer = wconf->env->ops->timer(wconf->env, (guint)args->wait_ms, wait_timeout, wait);
    g_ptr_array_add(change->waits, wait);
}

void wconf_engine_end(struct wconf *wconf)
{
    struct wconf_engine *changing = wconf->changing;
    struct engine_change *change = g_steal_pointer(&changing->change);
    engine_members_end(wconf);
    if (changing->clearing)
        changing->clearing->wconf = NULL;
    changing->clearing = NULL;
    if (!change)
        return;
    tell(change);
    change->wconf = NULL;
    change_unref(change);
}

bool wconf_engine_changing(const struct wconf *wconf)
{
    const struct wconf_engine *changing = wconf->changing;
    return changing->clearing || (changing->change && changing->change->running);
}

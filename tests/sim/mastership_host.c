/*
 * A host: its node daemon, of which the fence counts, its wconfd as main() of the daemon runs it,
 * its life; see mastership.h.
 */
#include <string.h>

#include "core/host/announced.h"
#include "helper/fake_private.h"
#include "helper/fence_calls.h"
#include "io/etcd/etcd_engine.h"
#include "mastership.h"

#define RESTART_MS 900u /* of a supervisor, at the most */

static void end_process(struct env **env)
{
    struct env *ended = *env;
    *env = NULL;
    if (ended)
        fake_kill(ended);
}

/* --- node daemons: the fence alone --- */

struct asked {
    struct ms_host *host;
    struct rpc_request *request;
};

static json_t *report_of(const struct ms_host *host)
{
    return json_make("{s:s,s:i,s:i,s:i,s:i}", "node", host->uuid, "memory_total", 1024,
                     "memory_free", 1024, "disk_total", 1024, "disk_free", 1024);
}

static json_t *noded_answers(struct ms_host *host, struct rpc_request *request, GError **error)
{
    const struct ms_theme *theme = host->ms->theme;
    if (theme && theme->noded &&
        (g_str_has_prefix(request->name, "point_") || g_str_has_prefix(request->name, "volume_")))
        return theme->noded(host, request, error);
    if (!strcmp(request->name, "node_report"))
        return report_of(host);
    struct stamp promised;
    json_t *answer = fence_call(host->fence, request, &promised, error);
    if (promised.epoch)
        ms_saw_promise(host, promised.history, promised.epoch);
    return answer;
}

static void asked_task(void *data)
{
    g_autofree struct asked *asked = data;
    g_autoptr(GError) error = NULL;
    json_t *answer = noded_answers(asked->host, asked->request, &error);
    if (answer)
        rpc_answer(asked->request, answer);
    else
        rpc_fail(asked->request, error);
}

static bool admitted(const struct ms_host *host, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    if (host->fence && epoch_fence_admit(host->fence, request->from_node, request->from_role,
                                         request->method, request->stamp, &error))
        return true;
    if (!error)
        fettle_set_error(&error, UNREACHABLE, "the node daemon does not run");
    rpc_fail(request, error);
    return false;
}

static void noded_handle(struct rpc_request *request, void *data)
{
    struct ms_host *host = data;
    if (!admitted(host, request))
        return;
    struct asked *asked = g_new(struct asked, 1);
    *asked = (struct asked){host, request};
    task_spawn(host->noded->tasks, asked_task, asked);
}

static void load_task(void *data)
{
    struct ms_host *host = data;
    g_autoptr(GError) error = NULL;
    host->fence_ready = epoch_fence_load(host->fence, &error);
    if (host->fence_ready) {
        fake_serve(host->noded, noded_handle, host);
        ms_load_noded(host);
        if (host->ms->theme && host->ms->theme->noded_starts)
            host->ms->theme->noded_starts(host);
    } else {
        ms_problem(host->ms, "%s: noded cannot read what it has written: %s", host->uuid,
                   error->message);
    }
}

void ms_start_noded(struct ms_host *host)
{
    host->noded = ms_process(host, ROLE_NODED);
    host->fence = epoch_fence_new(host->noded, MS_CLUSTER);
    ms_unsteady(host);
    task_spawn(host->noded->tasks, load_task, host);
}

void ms_kill_noded(struct ms_host *host)
{
    if (!host->noded)
        return;
    ms_unsteady(host);
    ms_operations_end(host);
    host->fence_ready = false;
    end_process(&host->noded);
    g_clear_pointer(&host->fence, epoch_fence_free);
}

/* --- wconfd --- */

static void wconfd_handle(struct rpc_request *request, void *data)
{
    struct ms_host *host = data;
    if (strcmp(request->from_node, host->uuid) != 0 && !admitted(host, request))
        return;
    ms_saw_request(host, request);
    if (host->ms->theme)
        host->ms->theme->asked(host, request);
    seat_handle(host->seat, request);
}

static struct ms_host *host_of_engine(struct engine *engine)
{
    ms_current = (struct ms_host *)((char *)engine - offsetof(struct ms_host, engine));
    return ms_current;
}

static bool looked_campaign(struct engine *engine, struct mastership *me, GError **error)
{
    struct ms_host *host = host_of_engine(engine);
    bool ok = host->real->ops->campaign(host->real, me, error);
    ms_current = host;
    if (ok)
        ms_saw_campaign(host, me);
    return ok;
}

static bool looked_load(struct engine *engine, guint64 *ret_history, guint64 *ret_serial,
                        void (*each)(const char *kind, const char *key, guint64 version,
                                     json_t *object, void *data),
                        void *data, GError **error)
{
    struct engine *real = host_of_engine(engine)->real;
    return real->ops->load(real, ret_history, ret_serial, each, data, error);
}

static bool looked_observe(struct engine *engine, struct mastership *ret_master, GError **error)
{
    struct engine *real = host_of_engine(engine)->real;
    return real->ops->observe(real, ret_master, error);
}

static bool looked_resign(struct engine *engine, const char *next, GError **error)
{
    struct engine *real = host_of_engine(engine)->real;
    return real->ops->resign(real, next, error);
}

static void looked_on_lost(struct engine *engine, void (*lost)(const char *why, void *data),
                           void *data)
{
    struct engine *real = host_of_engine(engine)->real;
    real->ops->on_lost(real, lost, data);
}

static void looked_commit(struct engine *engine, const struct engine_commit *commit,
                          engine_commit_fn done, void *data)
{
    struct ms_host *host = host_of_engine(engine);
    ms_saw_given(host->ms, commit);
    if (host->ms->theme)
        host->ms->theme->given(host, commit->changes);
    host->real->ops->commit(host->real, commit, done, data);
}

static void looked_barrier(struct engine *engine, engine_barrier_fn done, void *data)
{
    struct engine *real = host_of_engine(engine)->real;
    real->ops->barrier(real, done, data);
}

static guint64 looked_lookup(struct engine *engine, const char *commit_id)
{
    struct engine *real = host_of_engine(engine)->real;
    return real->ops->lookup(real, commit_id);
}

static bool looked_each_id(struct engine *engine,
                           void (*each)(const char *commit_id, guint64 serial, void *data),
                           void *data, GError **error)
{
    struct engine *real = host_of_engine(engine)->real;
    return real->ops->each_id(real, each, data, error);
}

/* Of etcd only: the log of a store's master begins with it. */
static guint64 looked_log_from(struct engine *engine, guint64 *ret_epoch)
{
    struct engine *real = host_of_engine(engine)->real;
    return real->ops->log_from ? real->ops->log_from(real, ret_epoch) : 0;
}

static const struct engine_ops looked_ops = {
    .load = looked_load,
    .observe = looked_observe,
    .campaign = looked_campaign,
    .resign = looked_resign,
    .on_lost = looked_on_lost,
    .commit = looked_commit,
    .barrier = looked_barrier,
    .lookup = looked_lookup,
    .each_id = looked_each_id,
    .log_from = looked_log_from,
};

static void wconfd_start(struct ms_host *host);
static void restart_soon(struct ms_host *host);

static void restart_cb(void *data)
{
    struct ms_host *host = data;
    host->restart = 0;
    ms_kill_wconfd(host);
    wconfd_start(host);
}

void ms_restart_wconfd(struct ms_host *host)
{
    ms_kill_wconfd(host);
    restart_soon(host);
}

static void restart_soon(struct ms_host *host)
{
    if (!host->restart)
        host->restart = fake_timer_add(host->ms->world, NULL, 100 + ms_random(host->ms, RESTART_MS),
                                       restart_cb, host);
}

/* The word of the member that lies ends nothing that it cannot prove. */
static void check_end(const struct ms_host *host, const GError *reason)
{
    struct mastership record = {0};
    struct stamp ended = {host->ms->history, host->epoch};
    if (!strstr(reason->message, "node liar"))
        return;
    if (!ended.epoch && host->real && host->real->ops->observe(host->real, &record, NULL))
        ended.epoch = record.epoch;
    if (!ms_liar_may_end(host, ended))
        ms_problem(host->ms, "%s steps down for a member that lies: %s", host->uuid,
                   reason->message);
}

static void ended(const GError *reason, void *data)
{
    check_end(data, reason);
    restart_soon(data);
}

/* As start() of wconfd's main(): a store that was replaced is a copy before the next start. */
static void start_task(void *data)
{
    struct ms_host *host = data;
    struct env *env = host->wconfd;
    g_autoptr(GError) error = NULL;
    struct mastership record = {0};
    if (seat_start(host->seat, &error) || task_killed() || host->wconfd != env)
        return;
    check_end(host, error);
    if (host->engine.ops && !host->engine.replicated && fettle_error_is(error, STALE_EPOCH) &&
        host->real->ops->observe(host->real, &record, NULL))
        host->replaced = record.epoch;
    restart_soon(host);
}

/* As open_store() of wconfd's main(). */
static bool open_store(struct ms_host *host)
{
    enum copy_role role = COPY_ENGINE;
    bool there = model_store_role(host->store, &role);
    bool damaged = model_store_is_damaged(host->store);
    record_autoptr(announce_args) announced = announced_read(host->wconfd);
    if (host->ms->etcd || (there && role != COPY_ENGINE) ||
        (!there && announced && (!damaged || strcmp(announced->master_node, host->uuid) != 0))) {
        host->copy = model_store_copy(host->store, host->wconfd);
        return true;
    }
    if (!there)
        return false;
    host->real = model_store_engine(host->store, host->wconfd);
    return true;
}

static void wconfd_start(struct ms_host *host)
{
    host->wconfd = ms_process(host, ROLE_WCONFD);
    host->copy = NULL;
    host->real = NULL;
    host->engine = (struct engine){0};
    if (!open_store(host)) {
        restart_soon(host);
        return;
    }
    ms_current = host;
    if (host->ms->etcd) {
        host->client = model_client_new(host);
        host->real = etcd_engine_new(host->client, MS_CLUSTER);
    }
    if (host->real) {
        host->engine = (struct engine){&looked_ops, host->ms->etcd};
        host->wconfd->engine = &host->engine;
    }
    host->wconfd->authority = fake_authority_base(host->authority);
    host->seat = seat_new(host->wconfd, host->copy);
    seat_on_end(host->seat, ended, host);
    fake_serve(host->wconfd, wconfd_handle, host);
    task_spawn(host->wconfd->tasks, start_task, host);
}

static void no_restart(struct ms_host *host)
{
    if (host->restart)
        fake_timer_remove(host->ms->world, host->restart);
    host->restart = 0;
}

void ms_kill_wconfd(struct ms_host *host)
{
    struct ms *ms = host->ms;
    no_restart(host);
    if (!host->wconfd)
        return;
    ms->counts->restarts++;
    ms_unsteady(host);
    host->epoch = 0;
    host->frozen = false;
    ms_current = host;
    if (host->client)
        model_client_end(host->client);
    if (host->real)
        host->real->ops->close(host->real);
    struct env *env = host->wconfd;
    fake_kill(env);
    seat_free(host->seat);
    fake_settle(ms->world);
    host->wconfd = NULL;
    host->seat = NULL;
    host->client = NULL;
    if (host->real && !ms->etcd)
        g_free(host->real);
    host->real = NULL;
    if (host->copy)
        host->copy->ops->close(host->copy);
    host->copy = NULL;
    if (host->replaced)
        model_store_step_down(host->store);
    if (host->replaced)
        host->taken.now = false;
    host->replaced = 0;
    no_restart(host); /* its last words were that it wants one */
}

/* --- life of a host --- */

void ms_boot(struct ms_host *host)
{
    struct ms *ms = host->ms;
    if (host->powered)
        return;
    host->powered = true;
    ms_unsteady(host);
    fake_reboot(ms->world, host->uuid);
    ms_start_noded(host);
    host->member = true;
    host->luxid = ms_process(host, ROLE_LUXID);
    host->job = ms_process(host, ROLE_JOB);
    host->cli = ms_process(host, ROLE_CLI);
    wconfd_start(host);
    if (ms->theme)
        ms->theme->boots(host);
    else
        ms_load_start(host);
    model_members_changed(ms);
}

void ms_power_off(struct ms_host *host)
{
    if (!host->powered)
        return;
    ms_pause(host, false);
    if (host->ms->theme)
        host->ms->theme->ends(host);
    ms_kill_wconfd(host);
    ms_kill_noded(host);
    end_process(&host->luxid);
    end_process(&host->job);
    end_process(&host->cli);
    host->powered = false;
    ms_unsteady(host);
    model_members_changed(host->ms);
}

/* Requests of its pause come before the timers that were due in it, or in their order: a loop has
 * both ready at once. */
static void goes_on(const struct ms_host *host, const struct env *env)
{
    bool reads_first = ms_now(host->ms) % 2 == 0;
    (reads_first ? fake_resume_reading : fake_resume)(env);
}

void ms_freeze(struct ms_host *host, bool frozen)
{
    if (!host->wconfd || host->paused || host->frozen == frozen)
        return;
    host->frozen = frozen;
    ms_unsteady(host);
    if (frozen)
        fake_pause(host->wconfd);
    else
        goes_on(host, host->wconfd);
}

/* With its clock, or without: whoever wakes up then has every reason to think that its lease is
 * good, and only the barrier knows better (SAF-03). */
static void stop_clock(struct ms_host *host, bool stopped)
{
    gint64 now = ms_now(host->ms);
    if (stopped && now / 2 % 4 != 0)
        host->stopped_ms = now;
    if (stopped || !host->stopped_ms)
        return;
    host->stood_ms += now - host->stopped_ms;
    host->stopped_ms = 0;
}

void ms_pause(struct ms_host *host, bool paused)
{
    struct env *const all[] = {host->noded, host->wconfd, host->luxid, host->job, host->cli};
    if (!host->powered || host->paused == paused)
        return;
    host->paused = paused;
    host->frozen = false;
    stop_clock(host, paused);
    ms_unsteady(host);
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i] && paused)
            fake_pause(all[i]);
        else if (all[i])
            goes_on(host, all[i]);
    if (host->ms->theme)
        host->ms->theme->pauses(host, paused);
    model_members_changed(host->ms);
}

/* Its successor knows nothing but its identity, until the master has announced itself. */
void ms_lose_disk(struct ms_host *host)
{
    struct ms *ms = host->ms;
    ms_power_off(host);
    model_store_lose(host->store);
    host->taken.now = false;
    ms->fenced[host->index] = (struct stamp){0};
    g_hash_table_remove(ms->world->files, host->uuid);
}

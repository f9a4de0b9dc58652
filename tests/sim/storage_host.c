/* The processes of a host that have to do with storage, as their main()s run them; see
 * storage_sim.h. */
#include "storage_front.h"

#include "helper/fake_private.h"

#define RESTART_MS 3000u /* of a supervisor, at the most */

/* One process of the volume services; lives until the end of the run. */
struct storage_process {
    struct storage_host *host;
    struct env *env;
    struct volume_service *service; /* NULL: it is dead */
};

void storage_process_free(void *data)
{
    struct storage_process *life = data;
    volume_service_free(life->service);
    g_free(life);
}

static void life_end(struct storage_process **at)
{
    struct storage_process *life = *at;
    *at = NULL;
    if (!life)
        return;
    fake_kill(life->env);
    g_clear_pointer(&life->service, volume_service_free);
}

static void restart_cb(void *data)
{
    struct storage_host *host = data;
    host->restart = 0;
    life_end(&host->volumed);
    storage_start_volumed(host);
}

static void restart_soon(struct storage_host *host)
{
    struct ms *ms = host->storage->ms;
    if (!host->restart)
        host->restart = ms_timer(ms, 100 + ms_random(ms, RESTART_MS), restart_cb, host);
}

static void former_ends(void *data)
{
    life_end(&((struct storage_host *)data)->former);
}

static void ended(const GError *error, void *data)
{
    struct storage_process *life = data;
    struct storage_host *host = life->host;
    host->storage->counts->ended++;
    storage_tell(host->storage, "node%u: %s ends: %s", host->host->index + 1,
                 life == host->former ? "its former volumed" : "volumed", error->message);
    if (life == host->former)
        ms_timer(host->storage->ms, 0, former_ends, host);
    else
        restart_soon(host);
}

static void handle(struct rpc_request *request, void *data)
{
    volume_service_handle(((struct storage_process *)data)->service, request);
}

void storage_start_volumed(struct storage_host *host)
{
    struct storage_process *life = g_new0(struct storage_process, 1);
    life->host = host;
    life->env = ms_process(host->host, ROLE_VOLUMED);
    life->env->volumes = storage_place_new(host, life->env);
    life->service = volume_service_new(life->env, ended, life);
    g_ptr_array_add(host->storage->lives, life);
    host->volumed = life;
    host->paused = false;
    fake_serve(life->env, handle, life);
    volume_service_start(life->service);
}

void storage_end_volumed(struct storage_host *host)
{
    if (host->restart)
        ms_timer_remove(host->storage->ms, host->restart);
    host->restart = 0;
    life_end(&host->volumed);
}

void storage_kill_volumed(struct storage_host *host)
{
    bool meant = host->volumed || host->restart;
    storage_end_volumed(host);
    if (meant)
        restart_soon(host);
}

/* --- schedulers --- */

static void scheduler_start(struct storage_host *host);

static void scheduler_end(struct storage_host *host)
{
    if (host->scheduler_restart)
        ms_timer_remove(host->storage->ms, host->scheduler_restart);
    host->scheduler_restart = 0;
    if (host->scheduler)
        fake_kill(host->scheduler);
    host->scheduler = NULL;
    g_clear_pointer(&host->part, volume_scheduler_free);
}

static void scheduler_restart_cb(void *data)
{
    struct storage_host *host = data;
    host->scheduler_restart = 0;
    scheduler_end(host);
    scheduler_start(host);
}

static void scheduler_soon(struct storage_host *host)
{
    struct ms *ms = host->storage->ms;
    if (!host->scheduler_restart)
        host->scheduler_restart =
            ms_timer(ms, 100 + ms_random(ms, RESTART_MS), scheduler_restart_cb, host);
}

static void scheduler_ended(const GError *error, void *data)
{
    struct storage_host *host = data;
    storage_tell(host->storage, "node%u: scheduler ends: %s", host->host->index + 1,
                 error->message);
    scheduler_soon(host);
}

static void scheduler_start(struct storage_host *host)
{
    host->scheduler = ms_process(host->host, ROLE_SCHEDULER);
    host->part = volume_scheduler_new(host->scheduler, scheduler_ended, host);
    volume_scheduler_start(host->part);
}

void storage_kill_scheduler(struct storage_host *host)
{
    if (!host->scheduler)
        return;
    scheduler_end(host);
    scheduler_soon(host);
}

void storage_end_scheduler(struct storage_host *host)
{
    scheduler_end(host);
}

void storage_start_scheduler(struct storage_host *host)
{
    scheduler_end(host);
    scheduler_start(host);
}

/* --- the host --- */

void storage_boots(struct ms_host *base)
{
    struct storage_host *host = &storage_of(base->ms)->hosts[base->index];
    struct storage_front *front = storage_front_of(host);
    host->cli = ms_process(base, ROLE_CLI);
    if (front)
        storage_front_start(front);
    scheduler_start(host);
    storage_start_volumed(host);
    storage_load_start(host);
    host->recovery = ms_process(base, ROLE_WATCHER);
    if (storage_has_guests(base->ms))
        storage_jobs_start(host);
}

void storage_ends(struct ms_host *base)
{
    struct storage_host *host = &storage_of(base->ms)->hosts[base->index];
    life_end(&host->former);
    storage_end_volumed(host);
    scheduler_end(host);
    if (storage_front_of(host))
        storage_front_end(storage_front_of(host));
    fake_kill(host->cli);
    fake_kill(host->recovery);
    host->cli = host->recovery = NULL;
    storage_guests_end(host);
}

static void apply_pause(struct storage_host *host, const struct storage_process *life, bool paused)
{
    paused = paused || host->host->paused;
    if (!life || fake_paused(life->env) == paused)
        return;
    if (paused) {
        fake_pause(life->env);
        return;
    }
    host->resumed_ms = ms_now(host->storage->ms);
    (host->resumed_ms % 2 ? fake_resume_reading : fake_resume)(life->env);
}

void storage_pauses(struct ms_host *base, bool paused)
{
    struct storage_host *host = &storage_of(base->ms)->hosts[base->index];
    struct env *const others[] = {host->scheduler, host->cli, host->recovery};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        if (others[i])
            (paused ? fake_pause : fake_resume)(others[i]);
    if (storage_front_of(host))
        storage_front_pause(storage_front_of(host), storage_front_of(host)->paused);
    apply_pause(host, host->volumed, host->paused);
    apply_pause(host, host->former, host->former_paused);
}

void storage_pause_volumed(struct storage_host *host, bool paused)
{
    host->paused = paused && host->volumed;
    apply_pause(host, host->volumed, host->paused);
}

void storage_namesake(struct storage_host *host)
{
    if (host->former || !host->volumed || host->host->paused)
        return;
    storage_pause_volumed(host, true);
    host->former = host->volumed;
    host->former_paused = true;
    storage_start_volumed(host);
}

void storage_former_goes(struct storage_host *host)
{
    host->former_paused = false;
    apply_pause(host, host->former, false);
}

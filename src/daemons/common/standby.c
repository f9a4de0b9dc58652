/* See standby.h. */
#include "daemons/common/standby.h"

#include "base/log.h"
#include "core/host/announced.h"
#include "daemons/common/daemon.h"
#include "proto/records.h"

#define STANDBY_WAIT_MS 20000
#define STANDBY_PAUSE_MS 100 /* after a wconfd that did not answer */

struct standby {
    const struct env *env;
    bool (*start)(GError **error);
    bool active;
    enum seat_role seat; /* as it was told last */
    guint64 history, epoch;
    void (*on_epoch)(const struct env *env, struct stamp newest);
};

struct standby *standby_new(const struct env *env, bool (*start)(GError **error))
{
    struct standby *standby = g_new0(struct standby, 1);
    standby->env = env;
    standby->start = start;
    return standby;
}

void standby_on_epoch(struct standby *standby,
                      void (*fn)(const struct env *env, struct stamp newest))
{
    standby->on_epoch = fn;
}

void standby_free(struct standby *standby)
{
    g_free(standby);
}

bool standby_active(const struct standby *standby)
{
    return standby->active;
}

void standby_refuse(const struct standby *standby, struct rpc_request *request)
{
    if (standby->seat == SEAT_NONE)
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "this node does not know yet whether it is the master; try again");
    else if (standby->seat == SEAT_CAMPAIGNS)
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "this node is becoming the master; `fettle cluster master-failover` shows "
                     "what it waits for");
    else
        announced_refuse(standby->env, request);
}

/* What wconfd is, when that is something else than what is known. False: no answer; the process may
 * have ended. */
static bool ask(struct standby *standby)
{
    struct wait_role_args args = {
        .seat = standby->seat, .epoch = standby->epoch, .wait_ms = STANDBY_WAIT_MS};
    record_autoptr(role_status) status =
        env_call_record(standby->env, NODE_LOCAL, ROLE_WCONFD, "wait_role", &args,
                        (struct stamp){0}, 0, STANDBY_WAIT_MS + TIMEOUT_QUICK_MS, NULL);
    if (!status)
        return false;
    bool other = status->history != standby->history || status->epoch != standby->epoch;
    standby->seat = status->seat;
    standby->history = status->history;
    standby->epoch = status->epoch;
    if (other && standby->on_epoch && !standby->active && standby->seat == SEAT_FOLLOWS)
        standby->on_epoch(standby->env, (struct stamp){standby->history, standby->epoch});
    return true;
}

/* Whether wconfd has made up its mind. */
static bool is_decided(const struct standby *standby)
{
    return standby->seat != SEAT_NONE && standby->seat != SEAT_CAMPAIGNS;
}

static bool activate(struct standby *standby, GError **error)
{
    log_info("", "this node is the master, epoch %" G_GUINT64_FORMAT, standby->epoch);
    standby->active = true;
    return standby->start(error);
}

/* Until this mastership, or standing by, is over. */
static void watch_task(void *data)
{
    struct standby *standby = data;
    guint64 epoch = standby->epoch;
    bool alive = true;
    while (alive) {
        if (!ask(standby)) {
            alive = env_sleep(standby->env, STANDBY_PAUSE_MS);
            continue;
        }
        g_autoptr(GError) error = NULL;
        bool master = standby->seat == SEAT_MASTER;
        if (!is_decided(standby) || (standby->active && master && standby->epoch == epoch) ||
            (!standby->active && !master))
            continue;
        if (standby->active)
            fettle_set_error(&error, NOT_MASTER,
                             "the mastership of epoch %" G_GUINT64_FORMAT " is over; starting anew",
                             epoch);
        else if (activate(standby, &error))
            epoch = standby->epoch;
        if (error) {
            daemon_quit(error);
            return;
        }
    }
}

bool standby_start(struct standby *standby, GError **error)
{
    while (!is_decided(standby)) {
        if (ask(standby) || env_sleep(standby->env, STANDBY_PAUSE_MS))
            continue;
        fettle_set_error(error, KILLED, "the process has ended");
        return false;
    }
    if (standby->seat == SEAT_MASTER && !activate(standby, error))
        return false;
    if (!standby->active)
        log_info("", "standing by: this node is not the master");
    task_spawn(standby->env->tasks, watch_task, standby);
    return true;
}

/*
 * fettle-luxid: the LUXI socket of the master: queries, and the job queue. All thinking is
 * core/queue's; here it gets its environment and its sockets, one for each face (face.def). On
 * other candidates it stands by, and tells clients who the master is.
 */
#include <sys/stat.h>

#include "base/limits.h"
#include "base/log.h"
#include "core/queue/luxi.h"
#include "core/queue/old_jobs.h"
#include "daemons/common/daemon.h"
#include "daemons/common/standby.h"
#include "io/loop.h"
#include "io/net/luxi_server.h"
#include "io/rapid_place.h"
#include "io/real_env.h"

static struct {
    struct env *env;
    struct luxi *luxi;
    struct standby *standby;
    struct luxi_server *servers[FACES];
    gint64 drained_ms; /* when it ends in any case; 0: it was not asked to */
    guint drain;       /* timer */
} luxid;

static void handle(struct rpc_request *request, void *data)
{
    if (standby_active(luxid.standby))
        luxi_handle(luxid.luxi, request);
    else
        standby_refuse(luxid.standby, request);
}

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

static bool start_luxi(GError **error)
{
    return luxi_start(luxid.luxi, error);
}

/* SIGTERM, at an upgrade for example: jobs that are being started would end in error. */
static void drain_cb(void *unused)
{
    luxid.drain = 0;
    if (luxi_drain(luxid.luxi) || loop_boot_ms() >= luxid.drained_ms)
        daemon_quit(NULL);
    else
        luxid.drain = loop_timer(QUEUE_DRAIN_LOOK_MS, drain_cb, NULL);
}

static void terminate(void *unused)
{
    if (luxid.drained_ms != 0)
        return;
    luxid.drained_ms = loop_boot_ms() + QUEUE_DRAIN_MS;
    drain_cb(NULL);
}

static bool listen_as(enum face face, GError **error)
{
    g_autofree char *socket = node_paths_face(real_env_paths(luxid.env), face);
    luxid.servers[face] =
        luxi_server_new(&(struct luxi_server_options){.path = socket,
                                                      .face = face,
                                                      .speaker = rapid_user().uid,
                                                      .node_uuid = luxid.env->node_uuid,
                                                      .handle = handle,
                                                      .complain = complain},
                        error);
    return luxid.servers[face] != NULL;
}

static struct env *setup(const char *root, GError **error)
{
    luxid.env = real_env_new(root, ROLE_LUXID, NULL, error);
    if (luxid.env == NULL)
        return NULL;
    luxid.luxi = luxi_new(luxid.env);
    luxid.standby = standby_new(luxid.env, start_luxi);
    standby_on_epoch(luxid.standby, old_jobs_end);
    loop_on_terminate(terminate, NULL);
    for (enum face face = 0; face < FACES; face++)
        if (!listen_as(face, error))
            return NULL;
    return luxid.env;
}

static bool start(GError **error)
{
    return standby_start(luxid.standby, error);
}

static void stop(void)
{
    loop_timer_cancel(luxid.drain);
    loop_on_terminate(NULL, NULL);
    g_clear_pointer(&luxid.luxi, luxi_free);
    for (enum face face = 0; face < FACES; face++)
        g_clear_pointer(&luxid.servers[face], luxi_server_free);
    g_clear_pointer(&luxid.env, real_env_free);
    standby_free(luxid.standby);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    return daemon_main(argc, argv,
                       &(struct daemon){.name = "luxid",
                                        .summary = "Serve queries and run the job queue.",
                                        .setup = setup,
                                        .start = start,
                                        .stop = stop});
}

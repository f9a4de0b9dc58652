/* The real engines; see engine_rigs.h. */
#include "engine_rigs.h"
#include "etcd_side.h"
#include "world.h"

#include "io/etcd/etcd_engine.h"
#include "io/etcd/etcd_kv.h"
#include "io/net/certs.h"
#include "io/sqlite/sqlite_engine.h"
#include "proto/change.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define MASTER_KEY "/fettle/" CLUSTER "/master"
#define CLIENT_MS 10000
#define LEASE_S 60 /* it is taken away where it is to end */
#define DISK "size=128m"

struct rig {
    struct node_paths *paths;
    /* SQLite */
    char *path;
    bool mounted;
    guint turns; /* of the loop, before a process is ended */
    /* etcd */
    struct authority *authority;
    struct etcd_side member;
    struct etcd_client *client;
    const GPtrArray *changes; /* of the import */
};

/* --- both: a real loop --- */

struct body {
    task_fn fn;
    void *data;
    bool done;
};

static void body_task(void *data)
{
    struct body *body = data;
    body->fn(body->data);
    body->done = true;
}

static void real_run(struct rig *rig, task_fn fn, void *data)
{
    struct body body = {fn, data, false};
    struct task_group *group = task_group_new();
    task_spawn(group, body_task, &body);
    world_wait(&body.done);
    task_group_unref(group);
}

static void real_wait(struct rig *rig, const bool *done)
{
    world_wait(done);
}

/* The process lives for so many turns of its loop more. */
static void real_close(struct rig *rig, struct engine *engine)
{
    for (guint i = 0; i < rig->turns; i++)
        g_main_context_iteration(NULL, FALSE);
    rig->turns = 0;
    engine->ops->close(engine);
}

static bool real_lose_answer(struct rig *rig, guint turn)
{
    rig->turns = turn * turn * turn;
    return false;
}

/* --- SQLite --- */

static bool own_mounts;

void rigs_init(void)
{
    own_mounts = world_own_mounts();
}

static struct rig *sqlite_make(const GPtrArray *changes)
{
    struct rig *rig = g_new0(struct rig, 1);
    g_autoptr(GError) error = NULL;
    rig->paths = world_new(NODE_A);
    rig->mounted = own_mounts && mount("tmpfs", rig->paths->var, "tmpfs", 0, DISK) == 0;
    rig->path = g_build_filename(rig->paths->var, "store.db", NULL);
    sqlite_engine_create(rig->path, RIG_HISTORY, changes, &error);
    g_assert_no_error(error);
    return rig;
}

static void sqlite_free(struct rig *rig)
{
    world_pause(1);
    if (rig->mounted)
        umount(rig->paths->var);
    world_remove(rig->paths);
    g_free(rig->path);
    g_free(rig);
}

static struct engine *sqlite_open(struct rig *rig)
{
    g_autoptr(GError) error = NULL;
    struct engine *engine = sqlite_engine_open(rig->path, &error);
    g_assert_no_error(error);
    return engine;
}

static char *ballast(const struct rig *rig)
{
    return g_build_filename(rig->paths->var, "ballast", NULL);
}

static bool sqlite_fill_up(struct rig *rig)
{
    static const char zeros[65536];
    g_autofree char *path = ballast(rig);
    FILE *file = rig->mounted ? g_fopen(path, "w") : NULL;
    if (file == NULL)
        return false;
    setvbuf(file, NULL, _IONBF, 0);
    while (fwrite(zeros, 1, sizeof zeros, file) == sizeof zeros)
        ;
    fclose(file);
    return true;
}

static void sqlite_make_room(struct rig *rig)
{
    g_autofree char *path = ballast(rig);
    g_unlink(path);
}

static void sqlite_try_nothing(struct rig *rig, GError **error)
{
    g_autofree char *path = g_strconcat(rig->path, ".none", NULL);
    g_assert_null(sqlite_engine_open(path, error));
}

const struct rig_kind rig_sqlite = {
    .name = "sqlite",
    .make = sqlite_make,
    .free = sqlite_free,
    .open = sqlite_open,
    .close = real_close,
    .run = real_run,
    .wait = real_wait,
    .lose_answer = real_lose_answer,
    .losses = 6,
    .fill_up = sqlite_fill_up,
    .make_room = sqlite_make_room,
    .try_nothing = sqlite_try_nothing,
};

/* --- etcd --- */

static struct etcd_client *new_client(const struct rig *rig)
{
    const char *urls[] = {rig->member.client_url, NULL};
    return etcd_side_client(rig->paths, urls, "client", "authority.crt", CLIENT_MS);
}

static void import_objects(void (*each)(const char *kind, const char *key, guint64 version,
                                        json_t *object, void *data),
                           void *data, void *source)
{
    const struct rig *rig = source;
    for (guint i = 0; i < rig->changes->len; i++) {
        const struct change *change = rig->changes->pdata[i];
        each(change->kind, change->key, 1, change->object, data);
    }
}

/* Signing waits for a program; the import until the member is up. */
static void found_task(void *data)
{
    struct rig *rig = data;
    const struct etcd_import all = {.history = RIG_HISTORY,
                                    .serial = 1,
                                    .epoch_base = 100,
                                    .objects = import_objects,
                                    .source = rig};
    g_autoptr(GError) error = NULL;
    etcd_side_certificates(rig->paths, rig->authority);
    etcd_side_start(rig->paths, &rig->member, 0, 1, "new", "member");
    rig->client = new_client(rig);
    while (!etcd_engine_import(rig->client, CLUSTER, &all, &error) &&
           !fettle_error_is(error, PROTOCOL) && loop_sleep(100))
        g_clear_error(&error);
    g_assert_no_error(error);
}

static struct rig *etcd_make(const GPtrArray *changes)
{
    struct rig *rig = g_new0(struct rig, 1);
    g_autoptr(GError) error = NULL;
    rig->paths = world_new(NODE_A);
    rig->authority = authority_new(rig->paths, "authority");
    g_autofree char *ca = etcd_side_path(rig->paths, "ca.crt");
    g_autofree char *key = etcd_side_path(rig->paths, "ca.key");
    g_assert_true(certs_make_ca(ca, key, CLUSTER, &error));
    etcd_side_init(&rig->member, rig->paths, 0);
    rig->changes = changes;
    real_run(rig, found_task, rig);
    return rig;
}

static void etcd_free(struct rig *rig)
{
    etcd_client_free(rig->client);
    world_pause(1);
    etcd_side_clear(&rig->member);
    authority_free(rig->authority);
    world_remove(rig->paths);
    g_free(rig);
}

static struct engine *etcd_open(struct rig *rig)
{
    struct engine *engine = etcd_engine_new(rig->client, CLUSTER);
    etcd_engine_set_lease(engine, LEASE_S);
    return engine;
}

static json_t *must_call(const struct rig *rig, const char *path, json_t *body)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = etcd_call_wait(rig->client, path, body, CLIENT_MS, &error);
    g_assert_no_error(error);
    return answer;
}

static void expire_task(void *data)
{
    const struct rig *rig = data;
    json_autoptr answer = must_call(rig, ETCD_RANGE, etcd_range(MASTER_KEY));
    g_autoptr(GPtrArray) kvs = etcd_kvs(answer, NULL, NULL);
    g_assert_cmpuint(kvs->len, ==, 1);
    const struct etcd_kv *master = kvs->pdata[0];
    json_autoptr gone =
        must_call(rig, ETCD_LEASE_REVOKE, json_make("{s:I}", "ID", (json_int_t)master->lease));
}

static void etcd_expire(struct rig *rig)
{
    real_run(rig, expire_task, rig);
}

struct alarm {
    const struct rig *rig;
    const char *action;
};

static void alarm_task(void *data)
{
    const struct alarm *alarm = data;
    json_autoptr status = must_call(alarm->rig, "/v3/maintenance/status", json_object());
    const char *id =
        json_string_value(json_object_get(json_object_get(status, "header"), "member_id"));
    g_assert_nonnull(id);
    json_autoptr done = must_call(
        alarm->rig, "/v3/maintenance/alarm",
        json_make("{s:s, s:s, s:s}", "action", alarm->action, "memberID", id, "alarm", "NOSPACE"));
}

static bool etcd_fill_up(struct rig *rig)
{
    struct alarm alarm = {rig, "ACTIVATE"};
    real_run(rig, alarm_task, &alarm);
    return true;
}

static void etcd_make_room(struct rig *rig)
{
    struct alarm alarm = {rig, "DEACTIVATE"};
    real_run(rig, alarm_task, &alarm);
}

struct lack {
    const struct rig *rig;
    GError *error;
};

static void give_nothing(const char *kind, const char *key, guint64 version, json_t *object,
                         void *data)
{
    g_assert_not_reached();
}

static void nothing_task(void *data)
{
    struct lack *lack = data;
    guint64 history = 0, serial = 0;
    struct engine *engine = etcd_engine_new(lack->rig->client, NODE_C);
    g_assert_false(engine->ops->load(engine, &history, &serial, give_nothing, NULL, &lack->error));
    engine->ops->close(engine);
}

static void etcd_try_nothing(struct rig *rig, GError **error)
{
    struct lack lack = {.rig = rig};
    real_run(rig, nothing_task, &lack);
    g_propagate_error(error, lack.error);
}

const struct rig_kind rig_etcd = {
    .name = "etcd",
    .make = etcd_make,
    .free = etcd_free,
    .open = etcd_open,
    .close = real_close,
    .run = real_run,
    .wait = real_wait,
    .expire = etcd_expire,
    .lose_answer = real_lose_answer,
    .losses = 6,
    .fill_up = etcd_fill_up,
    .make_room = etcd_make_room,
    .try_nothing = etcd_try_nothing,
};

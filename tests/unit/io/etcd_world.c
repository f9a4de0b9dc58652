/* See etcd_world.h. */
#include "etcd_world.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/limits.h"

/* --- a member --- */

static void start_member(struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *cluster = g_strdup_printf("default=%s", fixture->peer_url);
    char *argv[] = {"etcd",
                    "--data-dir",
                    fixture->data,
                    "--listen-client-urls",
                    fixture->client_url,
                    "--advertise-client-urls",
                    fixture->client_url,
                    "--listen-peer-urls",
                    fixture->peer_url,
                    "--initial-advertise-peer-urls",
                    fixture->peer_url,
                    "--initial-cluster",
                    cluster,
                    "--max-txn-ops",
                    "8192",
                    "--max-request-bytes",
                    "33554432",
                    "--heartbeat-interval",
                    "20",
                    "--election-timeout",
                    "200",
                    NULL};

    g_spawn_async(NULL, argv, NULL,
                  G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                      G_SPAWN_STDERR_TO_DEV_NULL,
                  NULL, NULL, &fixture->member, &error);
    g_assert_no_error(error);
}

static void stop_member(struct fixture *fixture)
{
    if (fixture->member == 0)
        return;
    kill(fixture->member, SIGKILL);
    waitpid(fixture->member, NULL, 0);
    fixture->member = 0;
}

/* --- in a task, from a test --- */

struct step {
    struct fixture *fixture;
    bool (*fn)(struct fixture *fixture, GError **error);
    bool done, ok;
    GError *error;
};

static void step_task(void *data)
{
    struct step *step = data;
    step->ok = step->fn(step->fixture, &step->error);
    step->done = true;
}

bool run_step(struct fixture *fixture, bool (*fn)(struct fixture *, GError **), GError **error)
{
    struct step step = {.fixture = fixture, .fn = fn};
    struct task_group *group = task_group_new();

    task_spawn(group, step_task, &step);
    world_wait(&step.done);
    task_group_unref(group);
    if (step.error != NULL)
        g_propagate_error(error, step.error);
    return step.ok;
}

/* --- what is stored --- */

static void import_objects(void (*each)(const char *kind, const char *key, guint64 version,
                                        json_t *object, void *data),
                           void *data, void *source)
{
    for (guint i = 0; i < 2500; i++) {
        g_autofree char *key = g_strdup_printf("n%u", i);
        json_autoptr object = json_make("{s:i}", "number", (int)i);
        each("node", key, 1, object, data);
    }
}

guint64 import_serial = 7;
guint64 import_last; /* of the ids; 0: the one before that */
const char *import_next;

static void import_ids(void (*each)(const char *commit_id, guint64 serial, void *data), void *data,
                       void *source)
{
    guint64 last = import_last ? import_last : import_serial - 1;
    for (guint64 serial = last > CARRIED ? last - CARRIED + 1 : 4; serial <= last; serial++) {
        g_autofree char *id = g_strdup_printf("before-%" G_GUINT64_FORMAT, serial);
        each(id, serial, data);
    }
}

static bool import_once(struct fixture *fixture, GError **error)
{
    struct etcd_import all = {.history = 4,
                              .serial = import_serial,
                              .epoch_base = 100,
                              .next = import_next,
                              .objects = import_objects,
                              .ids = import_ids};
    return etcd_engine_import(fixture->client, CLUSTER, &all, error);
}

bool campaign(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->campaign(fixture->engine, &fixture->me, error);
}

bool observe(struct fixture *fixture, GError **error)
{
    struct mastership master;
    return fixture->engine->ops->observe(fixture->engine, &master, error);
}

struct loaded loaded;
guint64 loaded_serial, loaded_history;

static void each_cb(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    loaded.count += object != NULL;
    if (object == NULL) {
        loaded.deleted++;
        loaded.last_deleted = version;
        g_assert_cmpstr(kind, ==, "tag");
        g_assert_cmpstr(key, ==, "a");
        return;
    }
    if (strcmp(kind, "node") == 0)
        return;
    g_autofree char *text = json_to_text(object);
    g_string_append_printf(loaded.text, "%s %s %u %s\n", kind, key, (guint)version, text);
}

bool load(struct fixture *fixture, GError **error)
{
    loaded.count = loaded.deleted = 0;
    if (loaded.text != NULL)
        g_string_free(loaded.text, TRUE);
    loaded.text = g_string_new(NULL);
    return fixture->engine->ops->load(fixture->engine, &loaded_history, &loaded_serial, each_cb,
                                      NULL, error);
}

void open_engine(struct fixture *fixture, const char *node, const char *boot)
{
    const char *urls[] = {fixture->client_url, NULL};
    g_autoptr(GError) error = NULL;

    fixture->client = etcd_client_new(&(struct etcd_options){.urls = urls}, &error);
    g_assert_no_error(error);
    fixture->engine = etcd_engine_new(fixture->client, CLUSTER);
    etcd_engine_set_lease(fixture->engine, LEASE_S);
    g_strlcpy(fixture->me.node, node, sizeof fixture->me.node);
    g_strlcpy(fixture->me.boot_id, boot, sizeof fixture->me.boot_id);
    g_strlcpy(fixture->me.journal_id, JOURNAL, sizeof fixture->me.journal_id);
}

void close_engine(struct fixture *fixture)
{
    fixture->engine->ops->close(fixture->engine);
    etcd_client_free(fixture->client);
}

void import(struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < 300 && !run_step(fixture, import_once, &error); i++) {
        g_clear_error(&error);
        world_pause(100);
    }
    g_assert_no_error(error);
}

/* A member of its own, with the cluster's configuration. */
void fill_member(struct fixture *fixture, const char *folder)
{
    fixture->data = g_build_filename(fixture->paths->var, folder, NULL);
    fixture->client_url = g_strdup_printf("http://127.0.0.1:%u", world_free_port());
    fixture->peer_url = g_strdup_printf("http://127.0.0.1:%u", world_free_port());
    start_member(fixture);
    open_engine(fixture, NODE_A, "boot1");
    import(fixture);
}

void end_member(struct fixture *fixture)
{
    close_engine(fixture);
    stop_member(fixture);
    g_free(fixture->data);
    g_free(fixture->client_url);
    g_free(fixture->peer_url);
}

void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->paths = world_new(NODE_A);
    fill_member(fixture, "etcd");
}

void tear_down(struct fixture *fixture, gconstpointer unused)
{
    end_member(fixture);
    world_pause(10);
    world_remove(fixture->paths);
    if (loaded.text != NULL)
        g_string_free(g_steal_pointer(&loaded.text), TRUE);
}

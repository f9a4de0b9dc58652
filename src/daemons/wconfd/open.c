/* See open.h. */
#include "daemons/wconfd/open.h"

#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "core/candidate/seat.h"
#include "core/host/announced.h"
#include "io/engine_file.h"
#include "io/etcd/etcd_engine.h"
#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_engine.h"

#define UNDECIDED                                                                                  \
    "the change of the engine to etcd has begun, and nothing here proves yet that it was made: "   \
    "the node that makes it decides when it runs again; if that is lost for good, a person does: " \
    "fettle cluster master-failover"

/* --- etc/engine.json --- */

static bool is_etcd(const struct engine_config *config)
{
    return config && config->kind == ENGINE_KIND_ETCD &&
           (config->state == ENGINE_DECIDING || config->state == ENGINE_ACTIVE);
}

/* The same of a node with a copy, which may know that the step was not done. */
static bool uses_etcd(const struct opened *opened, const struct engine_config *config)
{
    return is_etcd(config) &&
           !(config->state == ENGINE_DECIDING && seat_not_made(opened->copy, config->serial));
}

/* Whether it is another file than it was; remembers it. */
static bool look_at_file(struct opened *opened)
{
    g_autofree char *path =
        g_build_filename(real_env_paths(opened->env)->etc, ENGINE_FILE_NAME, NULL);
    struct stat status = {0};
    gint64 now[3] = {0};
    if (stat(path, &status) == 0) {
        now[0] = (gint64)status.st_mtim.tv_sec * G_USEC_PER_SEC + status.st_mtim.tv_nsec / 1000;
        now[1] = (gint64)status.st_ino;
        now[2] = (gint64)status.st_size;
    }
    bool other = memcmp(now, opened->changed, sizeof now) != 0;
    memcpy(opened->changed, now, sizeof now);
    return other;
}

/* --- the engine beside a copy --- */

static bool has_certificates(const char *authority, const char *certificate, const char *key,
                             GError **error)
{
    const char *files[] = {authority, certificate, key};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        if (g_file_test(files[i], G_FILE_TEST_EXISTS))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "there is no %s, with which this node would talk to etcd; it is made when "
                         "the node is prepared for etcd",
                         files[i]);
        return false;
    }
    return true;
}

static struct etcd_client *make_client(const struct node_paths *paths, const char *const *urls,
                                       GError **error)
{
    g_autofree char *authority = engine_file_authority(paths);
    g_autofree char *certificate = engine_file_certificate(paths, ENGINE_FILE_CLIENT);
    g_autofree char *key = engine_file_key(paths, ENGINE_FILE_CLIENT);
    const struct etcd_options options = {
        .urls = urls, .ca = authority, .certificate = certificate, .key = key};
    return has_certificates(authority, certificate, key, error) ? etcd_client_new(&options, error)
                                                                : NULL;
}

static void say_damaged(const char *what)
{
    log_error("", "%s", what);
}

static bool open_etcd(struct opened *opened, const struct engine_config *config, GError **error)
{
    const struct env *env = opened->env;
    g_auto(GStrv) urls = engine_client_urls(config, env->node_uuid);
    opened->client = make_client(real_env_paths(env), (const char *const *)urls, error);
    if (!opened->client)
        return false;
    opened->env->engine = etcd_engine_new(opened->client, real_env_config(env)->cluster_uuid);
    etcd_engine_on_damaged(opened->env->engine, say_damaged);
    return true;
}

/* `config` NULL: `broken` says why. */
static void open_engine(struct opened *opened, const struct engine_config *config,
                        const GError *broken)
{
    g_autoptr(GError) error = NULL;
    if (uses_etcd(opened, config)) {
        opened->kind = ENGINE_KIND_ETCD;
        opened->undecided = config->state == ENGINE_DECIDING;
        opened->step = config->serial;
        if (open_etcd(opened, config, &error))
            opened->barred = opened->undecided ? g_strdup(UNDECIDED) : NULL;
        broken = error;
    }
    if (broken)
        opened->barred = g_strdup(broken->message);
    if (broken)
        log_error("", "this node keeps a copy, and cannot become master: %s", broken->message);
}

/* --- the store --- */

static void say_store(const char *what)
{
    if (what)
        log_error("", "%s", what);
    else
        log_info("", "the store was read anew and is whole");
}

static struct engine *open_store(const char *path, GError **error)
{
    struct engine *engine = sqlite_engine_open(path, error);
    if (engine)
        sqlite_engine_on_damaged(engine, say_store);
    return engine;
}

/* Whether a store that is missing, or does not say what it is, can only be a copy: there is a
 * master, and it is another node; or no store is the engine. */
static bool is_copy(const struct opened *opened, const struct engine_config *config,
                    const GError *damaged)
{
    record_autoptr(announce_args) announced = announced_read(opened->env);
    bool readable = !damaged || fettle_error_is(damaged, CORRUPT);
    if (is_etcd(config) && config->state == ENGINE_ACTIVE)
        return readable;
    if (!announced)
        return false;
    return !damaged || (readable && strcmp(announced->master_node, opened->env->node_uuid) != 0);
}

/* A node that was told about a cluster keeps a copy, if there is nothing else; any other has no
 * cluster yet. A store that says that it is the engine is that whatever else is said: it is written
 * in the very step that decides. */
bool opened_init(struct opened *opened, struct env *env, GError **error)
{
    const struct node_paths *paths = real_env_paths(env);
    g_autoptr(GError) damaged = NULL;
    g_autoptr(GError) broken = NULL;
    enum copy_role role = COPY_ENGINE;
    opened->env = env;
    opened->path = g_build_filename(paths->var, "store.db", NULL);
    look_at_file(opened);
    record_autoptr(engine_config) config = engine_file_read(paths, &broken);
    bool there = sqlite_copy_role(opened->path, &role, &damaged);
    if (there ? role != COPY_ENGINE : is_copy(opened, config, damaged))
        opened->copy = sqlite_copy_open(opened->path, error);
    else if (!damaged)
        env->engine = open_store(opened->path, error);
    else
        g_propagate_error(error, g_steal_pointer(&damaged));
    if (opened->copy && sqlite_copy_damage(opened->copy))
        log_warning("", "%s", sqlite_copy_damage(opened->copy));
    if (opened->copy)
        open_engine(opened, config, broken);
    return env->engine || opened->copy;
}

/* --- later --- */

bool opened_refresh(struct opened *opened, bool *ret_changed, GError **error)
{
    if (!opened->copy || !look_at_file(opened))
        return true;
    record_autoptr(engine_config) config = engine_file_read(real_env_paths(opened->env), NULL);
    if (!config || uses_etcd(opened, config) != (opened->client != NULL)) {
        fettle_set_error(error, TEMPORARY, "etc/" ENGINE_FILE_NAME " has changed; starting anew");
        return false;
    }
    if (!opened->client)
        return true;
    g_auto(GStrv) urls = engine_client_urls(config, opened->env->node_uuid);
    etcd_client_set_urls(opened->client, (const char *const *)urls);
    *ret_changed = true;
    if (config->state == ENGINE_ACTIVE) {
        opened->undecided = false;
        g_clear_pointer(&opened->barred, g_free);
    }
    return true;
}

void opened_close_engine(struct opened *opened)
{
    if (opened->env && opened->env->engine)
        opened->env->engine->ops->close(opened->env->engine);
}

void opened_clear(struct opened *opened)
{
    if (opened->copy)
        opened->copy->ops->close(opened->copy);
    etcd_client_free(opened->client);
    g_clear_pointer(&opened->barred, g_free);
    g_clear_pointer(&opened->path, g_free);
}

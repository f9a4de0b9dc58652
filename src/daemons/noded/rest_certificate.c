/* See rest_certificate.h. */
#include "daemons/noded/rest_certificate.h"

#include <glib/gstdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "io/files.h"
#include "io/net/certs.h"
#include "io/pool.h"
#include "io/rapid_place.h"
#include "proto/records.h"

#define FILE_NAME "rapi.pem"
#define LOOK_MS 60000u
#define AGAIN_MS 5000u
#define LEFT_S (30 * 24 * 3600) /* so long before its end it is made anew */

struct rest_certificate {
    const struct env *env;
    const struct node_paths *paths;
    const struct node_core *core;
    struct pool *pool;
    struct env_pause pause;
    char *said; /* the last complaint */
    guint users;
    bool ended;
};

static void unref(struct rest_certificate *certificate)
{
    if (--certificate->users > 0)
        return;
    pool_free(certificate->pool);
    g_free(certificate->said);
    g_free(certificate);
}

/* --- whether there is a good one --- */

/* Only candidates may become the master, and only with them REST is of use. */
static bool is_candidate(const struct rest_certificate *certificate)
{
    const GPtrArray *members = node_core_members(certificate->core);
    const char *self = certificate->env->node_uuid;
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (strcmp(member->uuid, self) == 0)
            return member->master_candidate ||
                   strcmp(self, node_core_master(certificate->core)) == 0;
    }
    return false;
}

static bool is_good(const struct rest_certificate *certificate)
{
    g_autofree char *trusted = g_build_filename(certificate->paths->etc, "ca.crt", NULL);
    g_autofree char *path = rapid_own_pem_path(certificate->paths);
    g_autofree char *text = files_read_path(path, LIMIT_PEM_CHARS * 2, NULL, NULL);
    g_autofree char *authorities = files_read_path(trusted, LIMIT_TRUST_CHARS, NULL, NULL);
    g_autoptr(GPtrArray) all = authorities ? certs_split(authorities, NULL) : NULL;
    gint64 now_s = certificate->env->ops->wall_us(certificate->env) / G_USEC_PER_SEC;
    return text && all && certs_issuer(text, all) == all->pdata[0] &&
           certs_end(text) > (guint64)(now_s + LEFT_S);
}

/* --- another one --- */

struct making {
    char *folder, *key, *request;
    GError *error;
};

static void making_free(void *data)
{
    struct making *making = data;
    g_free(making->folder);
    g_free(making->key);
    g_free(making->request);
    g_clear_error(&making->error);
    g_free(making);
}

/* In a thread. */
static void make_key(void *data)
{
    struct making *making = data;
    if (!g_mkdtemp(making->folder)) {
        files_error("make", making->folder, &making->error);
        return;
    }
    g_autofree char *key = g_build_filename(making->folder, "key", NULL);
    g_autofree char *request = g_build_filename(making->folder, "request", NULL);
    if (certs_make_key(key, &making->error) && certs_make_request(key, request, &making->error)) {
        making->key = files_read_path(key, LIMIT_PEM_CHARS, NULL, &making->error);
        if (making->key)
            making->request = files_read_path(request, LIMIT_PEM_CHARS, NULL, &making->error);
    }
    g_unlink(key);
    g_unlink(request);
    g_rmdir(making->folder);
}

/* NULL: no master has signed it. */
static struct front_end_certificate *have_signed(const struct rest_certificate *certificate,
                                                 const char *request, GError **error)
{
    const struct certify_front_end_args args = {.request = (char *)request};
    return env_call_record(certificate->env, NODE_MASTER, ROLE_WCONFD, "certify_front_end", &args,
                           node_core_stamp(certificate->core), 0, 0, error);
}

static bool renew(struct rest_certificate *certificate, GError **error)
{
    struct making *making = g_new0(struct making, 1);
    making->folder = g_build_filename(certificate->paths->run, "rest-XXXXXX", NULL);
    if (!pool_run(certificate->pool, make_key, making_free, making, error))
        return false;
    bool done = making->request;
    if (!done)
        g_propagate_error(error, g_steal_pointer(&making->error));
    record_autoptr(front_end_certificate) answer =
        done && !certificate->ended ? have_signed(certificate, making->request, error) : NULL;
    g_autofree char *text = answer ? g_strconcat(answer->certificate, making->key, NULL) : NULL;
    making_free(making);
    return text && certificate->env->ops->file_write(certificate->env, FILE_RAPI, FILE_NAME, text,
                                                     strlen(text), error);
}

/* Whether nothing is to be done for a while. Who has refused says the same in a moment – a master
 * of an older version knows no node that asks –, and each time a key is made. */
static bool look(struct rest_certificate *certificate)
{
    g_autoptr(GError) error = NULL;
    if (!is_candidate(certificate) || is_good(certificate))
        return true;
    bool done = renew(certificate, &error);
    if (done)
        log_info("", "the REST daemon of this node has a certificate of the cluster's authority");
    else if (error && !env_no_answer(error) && !fettle_error_is(error, KILLED) &&
             g_strcmp0(certificate->said, error->message) != 0)
        log_warning("", "the REST daemon of this node gets no certificate: %s", error->message);
    text_set(&certificate->said, error ? error->message : NULL);
    return done || fettle_error_is(error, PERMISSION) || fettle_error_is(error, PROTOCOL);
}

static void run_task(void *data)
{
    struct rest_certificate *certificate = data;
    bool alive = true;
    while (alive && !certificate->ended) {
        bool done = look(certificate);
        if (!certificate->ended)
            alive = env_pause(certificate->env, &certificate->pause, done ? LOOK_MS : AGAIN_MS);
    }
    unref(certificate);
}

struct rest_certificate *rest_certificate_new(const struct env *env, const struct node_paths *paths,
                                              const struct node_core *core)
{
    struct rest_certificate *certificate = g_new0(struct rest_certificate, 1);
    *certificate = (struct rest_certificate){.env = env,
                                             .paths = paths,
                                             .core = core,
                                             .pool = pool_new("certificates", 1, 1),
                                             .users = 2};
    task_spawn(env->tasks, run_task, certificate);
    return certificate;
}

void rest_certificate_kick(struct rest_certificate *certificate)
{
    if (certificate)
        env_pause_end(&certificate->pause);
}

void rest_certificate_free(struct rest_certificate *certificate)
{
    if (!certificate)
        return;
    certificate->ended = true;
    rest_certificate_kick(certificate);
    unref(certificate);
}

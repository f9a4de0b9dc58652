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
#include "proto/rapi/front_names.h"
#include "proto/records.h"

#define FILE_NAME "rapi.pem"
#define LOOK_MS 60000u
#define AGAIN_MS 5000u
#define LEFT_S (30 * 24 * 3600) /* so long before its end it is made anew */

struct rest_certificate {
    const struct env *env;
    const struct node_paths *paths;
    struct node_core *core;
    struct pool *pool;
    struct env_pause pause;
    char *said;                /* the last complaint */
    struct stamp signed_stamp; /* what was announced before a master has signed last: one of an */
    guint64 signed_serial;     /* older version leaves out the cluster's names */
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

/* NULL: it is no member, as far as it knows. */
static const struct member *find_self(const struct rest_certificate *certificate)
{
    const GPtrArray *members = node_core_members(certificate->core);
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (strcmp(member->uuid, certificate->env->node_uuid) == 0)
            return member;
    }
    return NULL;
}

/* Only candidates may become the master, and only with them REST is of use. */
static bool is_candidate(const struct rest_certificate *certificate, const struct member *self)
{
    return self &&
           (self->master_candidate || strcmp(self->uuid, node_core_master(certificate->core)) == 0);
}

/* Whether it has the names that are on record, or the master was asked since these are. */
static bool is_named(const struct rest_certificate *certificate, const struct member *self,
                     const char *text)
{
    const struct announce_args *announced = node_core_announced(certificate->core);
    g_auto(GStrv) names =
        front_names(self->name, self->address, announced->cluster_name, announced->master_ip);
    return certs_is_for(text, (const char *const *)names) ||
           (announced->serial == certificate->signed_serial &&
            stamp_compare(node_core_stamp(certificate->core), certificate->signed_stamp) == 0);
}

/* What is there. */
typedef struct found {
    char *text;         /* NULL: none */
    const char *issuer; /* of `trusted`; NULL: none of them */
    GPtrArray *trusted; /* NULL: that is not known */
    gint64 left_s;      /* until its end */
} found_t;

static void found_clear(found_t *found)
{
    g_free(found->text);
    g_clear_pointer(&found->trusted, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(found_t, found_clear)

static found_t find(const struct rest_certificate *certificate)
{
    g_autofree char *ca = g_build_filename(certificate->paths->etc, "ca.crt", NULL);
    g_autofree char *path = rapid_own_pem_path(certificate->paths);
    g_autofree char *authorities = files_read_path(ca, LIMIT_TRUST_CHARS, NULL, NULL);
    gint64 now_s = certificate->env->ops->wall_us(certificate->env) / G_USEC_PER_SEC;
    found_t found = {.text = files_read_path(path, LIMIT_PEM_CHARS * 2, NULL, NULL),
                     .trusted = authorities ? certs_split(authorities, NULL) : NULL};
    if (found.text && found.trusted)
        found.issuer = certs_issuer(found.text, found.trusted);
    if (found.text)
        found.left_s = (gint64)certs_end(found.text) - now_s;
    return found;
}

static bool is_good(const struct rest_certificate *certificate, const struct member *self)
{
    g_auto(found_t) found = find(certificate);
    return found.issuer && found.issuer == found.trusted->pdata[0] && found.left_s > LEFT_S &&
           is_named(certificate, self, found.text);
}

/* Why clients refuse it; NULL: they do not, or are shown the operator's own. */
static const char *why_bad(const struct rest_certificate *certificate)
{
    g_autofree char *given = rapid_pem_path(certificate->paths);
    g_auto(found_t) found = find(certificate);
    return g_file_test(given, G_FILE_TEST_EXISTS) ? NULL
           : !found.text                          ? "has no certificate for REST"
           : !found.issuer ? "shows clients of REST a certificate that is of no authority of the "
                             "cluster any more"
           : found.left_s <= 0 ? "shows clients of REST a certificate that has ended"
                               : NULL;
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
    struct stamp stamp = node_core_stamp(certificate->core);
    guint64 serial = node_core_announced(certificate->core)->serial;
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
    if (!text || !certificate->env->ops->file_write(certificate->env, FILE_RAPI, FILE_NAME, text,
                                                    strlen(text), error))
        return false;
    certificate->signed_stamp = stamp;
    certificate->signed_serial = serial;
    return true;
}

/* That it did not get another one; NULL: it did, or needs none. */
static void tell_fault(const struct rest_certificate *certificate, const GError *error)
{
    const char *bad = error ? why_bad(certificate) : NULL;
    g_autofree char *text =
        bad ? g_strdup_printf("%s, and gets no other: %s", bad, error->message) : NULL;
    node_core_set_rest_fault(certificate->core, text);
}

/* Whether nothing is to be done for a while. Who has refused says the same in a moment – a master
 * of an older version knows no node that asks –, and each time a key is made. */
static bool look(struct rest_certificate *certificate)
{
    g_autoptr(GError) error = NULL;
    const struct member *self = find_self(certificate);
    bool good = !is_candidate(certificate, self) || is_good(certificate, self);
    bool done = good || renew(certificate, &error);
    bool silent = error && (env_no_answer(error) || fettle_error_is(error, KILLED));
    if (certificate->ended)
        return done;
    if (done && !good)
        log_info("", "the REST daemon of this node has a certificate of the cluster's authority");
    else if (error && !silent && g_strcmp0(certificate->said, error->message) != 0)
        log_warning("", "the REST daemon of this node gets no certificate: %s", error->message);
    if (!silent)
        tell_fault(certificate, error);
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
                                              struct node_core *core)
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

/*
 * See authority.h. openssl works on files, in run/authority, which only root may enter: what a host
 * asks for, what it gets. All of them are removed again.
 */
#include "io/authority.h"
#include "io/certs.h"
#include "io/files.h"
#include "io/process.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

struct real_authority {
    struct authority base;
    const struct node_paths *paths;
    char *folder;
    guint count;
};

/* Files of one piece of work. */
struct desk {
    char *request;
    char *extensions;
    char *product;
    char *complaint;
};

static struct real_authority *real(struct authority *authority)
{
    return (struct real_authority *)authority;
}

/* --- files --- */

static bool make_folder(const struct real_authority *self, GError **error)
{
    if (g_mkdir_with_parents(self->folder, 0700) == 0)
        return true;
    int code = errno;
    fettle_set_error(error, STORAGE, "cannot make the folder %s: %s", self->folder,
                     g_strerror(code));
    return false;
}

static void empty_folder(const struct real_authority *self)
{
    g_autoptr(GDir) dir = g_dir_open(self->folder, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(self->folder, name, NULL);
        g_unlink(path);
    }
}

static struct desk *desk_new(struct real_authority *self)
{
    struct desk *desk = g_new0(struct desk, 1);
    guint number = ++self->count;

    desk->request = g_strdup_printf("%s/%u.request", self->folder, number);
    desk->extensions = g_strdup_printf("%s/%u.extensions", self->folder, number);
    desk->product = g_strdup_printf("%s/%u.product", self->folder, number);
    desk->complaint = g_strdup_printf("%s/%u.complaint", self->folder, number);
    return desk;
}

static void clear_file(char *path)
{
    g_unlink(path);
    g_free(path);
}

typedef struct desk desk_t;
static void desk_free(struct desk *desk)
{
    clear_file(desk->request);
    clear_file(desk->extensions);
    clear_file(desk->product);
    clear_file(desk->complaint);
    g_free(desk);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(desk_t, desk_free)

/* --- openssl --- */

static void complain(const struct desk *desk, const char *command, GError **error)
{
    g_autofree char *text = files_read_path(desk->complaint, LIMIT_COMPLAINT_BYTES, NULL, NULL);

    fettle_set_error(error, ENVIRONMENT, "openssl %s failed: %s", command,
                     text != NULL ? g_strstrip(text) : "it said nothing");
}

/* Runs openssl and waits for it; the result is what it wrote into the desk's product. */
static char *run(const struct desk *desk, const char *const *argv, GError **error)
{
    const struct process_options options = {.argv = argv, .errors_path = desk->complaint};
    struct process *process = process_spawn(&options, error);
    char *product = NULL;

    if (process == NULL)
        return NULL;
    if (!process_wait(process, JOIN_SIGN_MS)) {
        process_kill(process, NULL);
        fettle_set_error(error, TEMPORARY, "openssl %s does not come to an end; try again",
                         argv[1]);
    } else if (process_exit_code(process) != 0) {
        complain(desk, argv[1], error);
    } else {
        product = files_read_path(desk->product, LIMIT_PEM_CHARS, NULL, error);
    }
    process_free(process);
    return product;
}

static struct desk *desk_with(struct real_authority *self, const char *request,
                              const char *extensions, GError **error)
{
    g_autoptr(desk_t) desk = desk_new(self);

    if (!make_folder(self, error) ||
        !files_write_path(desk->request, request, strlen(request), 0600, false, error) ||
        !files_write_path(desk->extensions, extensions, strlen(extensions), 0600, false, error))
        return NULL;
    return g_steal_pointer(&desk);
}

/* --- what wconfd asks --- */

static bool real_read_request(struct authority *authority, const char *request, char **ret_key_hash,
                              GError **error)
{
    g_autoptr(desk_t) desk = desk_with(real(authority), request, certs_extensions, error);
    g_autoptr(GError) failure = NULL;

    if (desk == NULL)
        return false;
    const char *const argv[] = {"openssl", "req",     "-in",  desk->request, "-verify",
                                "-noout",  "-pubkey", "-out", desk->product, NULL};
    g_autofree char *key = run(desk, argv, &failure);
    if (key == NULL && fettle_error_is(failure, ENVIRONMENT)) {
        fettle_set_error(error, WRONG_INPUT, "request: is no certificate request");
        return false;
    }
    if (key == NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    *ret_key_hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, key, -1);
    return true;
}

static bool sign_as(struct authority *authority, const char *request, const char *extensions,
                    const char *cluster_uuid, const char *name, char **ret_certificate,
                    GError **error)
{
    const struct node_paths *paths = real(authority)->paths;
    g_autoptr(desk_t) desk = desk_with(real(authority), request, extensions, error);
    g_autofree char *certificate = g_build_filename(paths->etc, "ca.crt", NULL);
    g_autofree char *key = g_build_filename(paths->etc, "ca.key", NULL);

    if (desk == NULL)
        return false;
    if (!g_file_test(key, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, STORAGE,
                         "the key of the cluster's authority is not here: there is no %s; put it "
                         "back",
                         key);
        return false;
    }
    g_auto(GStrv) argv = certs_sign_command(certificate, key, desk->request, desk->extensions,
                                            cluster_uuid, name, desk->product);
    *ret_certificate = run(desk, (const char *const *)argv, error);
    return *ret_certificate != NULL;
}

static bool real_sign(struct authority *authority, const char *request, const char *cluster_uuid,
                      const char *node_uuid, char **ret_certificate, GError **error)
{
    return sign_as(authority, request, certs_extensions, cluster_uuid, node_uuid, ret_certificate,
                   error);
}

static bool real_sign_etcd(struct authority *authority, const char *request,
                           const char *cluster_uuid, const char *address, char **ret_certificate,
                           GError **error)
{
    g_autofree char *extensions = certs_etcd_extensions(address);
    const char *name = address != NULL ? CERTS_ETCD_MEMBER : CERTS_ETCD_CLIENT;
    return sign_as(authority, request, extensions, cluster_uuid, name, ret_certificate, error);
}

static bool real_show(struct authority *authority, char **ret_certificate, char **ret_fingerprint,
                      GError **error)
{
    g_autofree char *path = g_build_filename(real(authority)->paths->etc, "ca.crt", NULL);
    g_autofree char *text = files_read_path(path, LIMIT_PEM_CHARS, NULL, error);
    g_autofree char *fingerprint = text != NULL ? certs_fingerprint(text, error) : NULL;

    if (fingerprint == NULL) {
        g_prefix_error(error, "%s: ", path);
        return false;
    }
    *ret_certificate = g_steal_pointer(&text);
    *ret_fingerprint = g_steal_pointer(&fingerprint);
    return true;
}

static const struct authority_ops ops = {
    .read_request = real_read_request,
    .sign = real_sign,
    .sign_etcd = real_sign_etcd,
    .show = real_show,
};

struct authority *authority_new(const struct node_paths *paths)
{
    struct real_authority *self = g_new0(struct real_authority, 1);

    self->base.ops = &ops;
    self->paths = paths;
    self->folder = g_build_filename(paths->run, "authority", NULL);
    empty_folder(self);
    return &self->base;
}

void authority_free(struct authority *authority)
{
    if (authority == NULL)
        return;
    g_free(real(authority)->folder);
    g_free(authority);
}

/* See node_config.h. */
#include "io/node_config.h"
#include "io/files.h"
#include "io/volume_user.h"
#include "proto/api/place.h"
#include "proto/record_private.h"
#include "proto/rpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/un.h>

#define GUEST_USERS 4096u       /* as delivered; backend/guest_users.c */
#define GUEST_USER_LEAST 65536u /* below are users of hosts, and "nobody" */
#define CONFIG_BYTES KIB(64)
#define LONGEST_SOCKET "/run/guests/01234567-0123-0123-0123-0123456789ab/qmp.sock"

static void set_folders(struct node_paths *paths)
{
    bool host = strcmp(paths->root, "/") == 0;

    paths->etc = host ? g_strdup("/etc/fettle") : g_build_filename(paths->root, "etc", NULL);
    paths->var = host ? g_strdup("/var/lib/fettle") : g_build_filename(paths->root, "var", NULL);
    paths->run = host ? g_strdup("/run/fettle") : g_build_filename(paths->root, "run", NULL);
    paths->log = host ? g_strdup("/var/log/fettle") : g_build_filename(paths->root, "log", NULL);
}

struct node_paths *node_paths_new(const char *option, GError **error)
{
    const char *chosen = option != NULL ? option : g_getenv("FETTLE_ROOT");

    if (chosen == NULL || chosen[0] == '\0')
        chosen = "/";
    g_autofree char *root = g_canonicalize_filename(chosen, NULL);
    if (!g_file_test(root, G_FILE_TEST_IS_DIR)) {
        fettle_set_error(error, WRONG_INPUT, "root folder %s: there is no such folder", root);
        return NULL;
    }
    size_t room = sizeof((struct sockaddr_un *)NULL)->sun_path - strlen(LONGEST_SOCKET);
    if (strlen(root) >= room) {
        fettle_set_error(error, WRONG_INPUT,
                         "root folder %s: its name may have at most %zu characters, because names "
                         "of sockets are short",
                         root, room - 1);
        return NULL;
    }
    struct node_paths *paths = g_new0(struct node_paths, 1);
    paths->root = g_steal_pointer(&root);
    set_folders(paths);
    return paths;
}

void node_paths_free(struct node_paths *paths)
{
    if (paths == NULL)
        return;
    g_free(paths->root);
    g_free(paths->etc);
    g_free(paths->var);
    g_free(paths->run);
    g_free(paths->log);
    g_free(paths);
}

/* The users of guests, exports and members of etcd pass through those that end in 1 or 5. */
bool node_paths_make(const struct node_paths *paths, GError **error)
{
    const struct {
        const char *above, *name;
        guint mode;
    } folders[] = {
        {paths->etc, "", 0755},
        {paths->var, "", 0755},
        {paths->var, "queue", 0700},
        {paths->var, "node", 0700},
        {paths->var, "node/guests", 0700},
        {paths->var, "disks", 0711},
        {paths->var, "disks/aside", 0700},
        {paths->var, "images", 0755}, /* a person's */
        {paths->run, "", 0755},
        {paths->run, "queue", 0700},
        {paths->run, "livelocks", 0700},
        {paths->run, "guests", 0711},
        {paths->run, "exports", 0711},
        {paths->log, "", 0755},
        {paths->log, "guests", 0700},
    };
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_build_filename(folders[i].above, folders[i].name, NULL);
        if (!files_make_folder(path, folders[i].mode, error))
            return false;
    }
    g_autofree char *of_members = g_build_filename(paths->etc, "etcd", NULL);
    files_sweep(paths->etc);
    files_sweep(of_members);
    return true;
}

char *node_paths_socket(const struct node_paths *paths, const char *role)
{
    return g_strdup_printf("%s/%s.sock", paths->run, role);
}

char *node_ready_name(const char *daemon)
{
    return g_strconcat(place_of_daemon(daemon), daemon, ".ready", NULL);
}

char *node_paths_face(const struct node_paths *paths, enum face face)
{
    return g_build_filename(paths->run, face_socket(face), NULL);
}

/* 0 stands for defaults, which are others. */
static bool is_taken(guint64 first, guint64 count)
{
    return first && first <= VOLUME_USER && first + count > POOL_USER;
}

static bool check_guest_users(const struct node_config *config, GError **error)
{
    guint64 count = config->guest_users ? config->guest_users : GUEST_USERS;
    if (is_taken(config->guest_user_first, count + 1) || is_taken(config->qemu_uid, 1)) {
        fettle_set_error(error, WRONG_INPUT,
                         "users %u and %u are those of the programs of volume services, and one is "
                         "among those of guests (guest_user_first, guest_users, qemu_uid); take "
                         "others in node.json, or none of the three: as delivered they leave them "
                         "out",
                         POOL_USER, VOLUME_USER);
        return false;
    }
    if (config->guest_user_first == 0 || config->guest_user_first >= GUEST_USER_LEAST)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "guest_user_first: %" G_GUINT64_FORMAT
                     " may be a user of the host; %u or more is needed",
                     config->guest_user_first, GUEST_USER_LEAST);
    return false;
}

static bool check_storage_host(const struct node_config *config, GError **error)
{
    const char *host = config->storage_host;
    if (!*host || record_name_is_good(host, strlen(host)))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "storage_host: \"%s\" is no name of a host: a-z, 0-9, '.' and '-'", host);
    return false;
}

struct node_config *node_config_read(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = g_build_filename(paths->etc, "node.json", NULL);
    g_autoptr(GError) local = NULL;
    size_t len = 0;

    g_autofree char *text = files_read_path(path, CONFIG_BYTES, &len, &local);
    if (text == NULL && fettle_error_is(local, UNKNOWN_ENTITY)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "this host belongs to no cluster (there is no %s); run `fettle cluster "
                         "init` here, or `fettle-noded join` with a token of `fettle node invite`",
                         path);
        return NULL;
    }
    json_autoptr json = NULL;
    if (text != NULL)
        json = json_parse_limited(text, len, CONFIG_BYTES, &local);
    struct node_config *config = json != NULL ? node_config_parse(json, RECORD_KEEP, &local) : NULL;
    if (config != NULL &&
        (!check_guest_users(config, &local) || !check_storage_host(config, &local)))
        g_clear_pointer(&config, node_config_free);
    if (config == NULL)
        fettle_set_error(error, CORRUPT, "%s: %s; put back the file as it was", path,
                         local->message);
    return config;
}

static bool check_address(const struct node_config *config, GError **error)
{
    unsigned char address[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, config->address, address) == 1 ||
        inet_pton(AF_INET6, config->address, address) == 1)
        return true;
    fettle_set_error(error, WRONG_INPUT, "address: \"%s\" is no IP address", config->address);
    return false;
}

bool node_config_write(const struct node_paths *paths, const struct node_config *config,
                       GError **error)
{
    g_autofree char *path = g_build_filename(paths->etc, "node.json", NULL);

    if (!check_address(config, error))
        return false;
    json_autoptr json = node_config_to_json(config);
    g_autofree char *text = json_to_text(json);
    return files_write_path(path, text, strlen(text), 0644, true, error);
}

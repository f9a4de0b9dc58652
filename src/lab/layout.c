/*
 * Names, paths and the description file of a lab (layout.h).
 */
#include "lab/layout.h"

#include "base/error.h"
#include "base/limits.h"
#include "lab/lab.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYOUT_VERSION 1
#define PREFIX_HEX_DIGITS 6
#define SWITCH 254 /* in place of a node's number */

static void daemon_free(void *data)
{
    struct layout_daemon *daemon = data;
    g_free(daemon->name);
    g_strfreev(daemon->command);
    g_free(daemon);
}

static struct layout *layout_empty(const char *dir)
{
    struct layout *layout = g_new0(struct layout, 1);
    layout->dir = g_strdup(dir);
    layout->prefix = layout_prefix(dir);
    layout->node_uuids = g_ptr_array_new_with_free_func(g_free);
    layout->daemons = g_ptr_array_new_with_free_func(daemon_free);
    return layout;
}

struct layout *layout_new(const char *dir, guint nodes)
{
    struct layout *layout = layout_empty(dir);
    layout->nodes = nodes;
    layout->candidates = 1;
    layout->cluster_uuid = g_uuid_string_random();
    for (guint i = 0; i < nodes; i++)
        g_ptr_array_add(layout->node_uuids, g_uuid_string_random());
    return layout;
}

void layout_free(struct layout *layout)
{
    if (!layout)
        return;
    g_free(layout->dir);
    g_free(layout->prefix);
    g_free(layout->cluster_uuid);
    g_ptr_array_unref(layout->node_uuids);
    g_ptr_array_unref(layout->daemons);
    g_free(layout);
}

void layout_free_ptr(struct layout **layout)
{
    layout_free(*layout);
}

void layout_add_daemon(struct layout *layout, const char *name, const char *const *command,
                       bool master_only)
{
    struct layout_daemon *daemon = g_new0(struct layout_daemon, 1);
    daemon->name = g_strdup(name);
    daemon->command = g_strdupv((char **)command);
    daemon->master_only = master_only;
    g_ptr_array_add(layout->daemons, daemon);
}

static json_t *layout_to_json(const struct layout *layout)
{
    json_autoptr uuids = json_array();
    for (guint i = 0; i < layout->node_uuids->len; i++)
        json_array_append_new(uuids, json_string(g_ptr_array_index(layout->node_uuids, i)));
    json_autoptr daemons = json_array();
    for (guint i = 0; i < layout->daemons->len; i++) {
        const struct layout_daemon *daemon = g_ptr_array_index(layout->daemons, i);
        json_t *command = json_array();
        for (char **word = daemon->command; *word; word++)
            json_array_append_new(command, json_string(*word));
        json_array_append_new(daemons, json_make("{s:s, s:o, s:b}", "name", daemon->name, "command",
                                                 command, "master_only", daemon->master_only));
    }
    return json_make("{s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:b, s:s, s:O, s:O}", "version",
                     LAYOUT_VERSION, "nodes", (int)layout->nodes, "candidates",
                     (int)layout->candidates, "root_mib", (int)layout->root_mib, "disks_mib",
                     (int)layout->disks_mib, "made_dir", layout->made_dir, "identity",
                     layout->identity, "ipv6", layout->ipv6, "ceph", layout->ceph, "cluster_uuid",
                     layout->cluster_uuid, "node_uuids", uuids, "daemons", daemons);
}

static bool make_lock_file(const struct layout *layout, GError **error)
{
    g_autofree char *path = layout_file(layout, "lab.lock");
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        fettle_set_error(error, STORAGE, "cannot make %s: %s", path, g_strerror(errno));
    else
        close(fd);
    return fd >= 0;
}

bool layout_save(const struct layout *layout, GError **error)
{
    if (!make_lock_file(layout, error))
        return false;
    g_autofree char *path = layout_file(layout, "lab.json");
    g_autofree char *temporary = g_strdup_printf("%s.%d", path, (int)getpid());
    json_autoptr json = layout_to_json(layout);
    g_autofree char *text = json_to_text(json);
    if (!g_file_set_contents(temporary, text, -1, error))
        return false;
    /* A link, not a rename: of two that make a lab here at the same moment, one fails. */
    int failed = link(temporary, path) == 0 ? 0 : errno;
    unlink(temporary);
    if (failed == EEXIST)
        fettle_set_error(error, ALREADY_EXISTS, "there is a lab in %s already", layout->dir);
    else if (failed)
        fettle_set_error(error, STORAGE, "cannot write %s: %s", path, g_strerror(failed));
    return !failed;
}

static bool daemons_from_json(struct layout *layout, json_t *daemons)
{
    size_t index;
    json_t *item;
    json_array_foreach(daemons, index, item) {
        const char *name;
        json_t *words;
        int master_only;
        if (json_unpack(item, "{s:s, s:o, s:b}", "name", &name, "command", &words, "master_only",
                        &master_only) != 0 ||
            json_array_size(words) == 0)
            return false;
        g_autoptr(GPtrArray) command = g_ptr_array_new();
        size_t position;
        json_t *word;
        json_array_foreach(words, position, word) {
            if (!json_is_string(word))
                return false;
            g_ptr_array_add(command, (void *)json_string_value(word));
        }
        g_ptr_array_add(command, NULL);
        layout_add_daemon(layout, name, (const char *const *)command->pdata, master_only);
    }
    return true;
}

static bool layout_from_json(struct layout *layout, json_t *json)
{
    int version, nodes, candidates, root_mib, disks_mib, made_dir, identity, ipv6 = 0, ceph = 0;
    const char *cluster_uuid;
    json_t *uuids, *daemons;
    if (json_unpack(json, "{s:i, s:i, s:i, s:i, s:i, s:b, s:b, s?b, s?b, s:s, s:o, s:o}", "version",
                    &version, "nodes", &nodes, "candidates", &candidates, "root_mib", &root_mib,
                    "disks_mib", &disks_mib, "made_dir", &made_dir, "identity", &identity, "ipv6",
                    &ipv6, "ceph", &ceph, "cluster_uuid", &cluster_uuid, "node_uuids", &uuids,
                    "daemons", &daemons) != 0)
        return false;
    if (version != LAYOUT_VERSION || nodes < 1 || nodes > LIMIT_LAB_NODES || candidates < 1 ||
        candidates > nodes || root_mib < 1 || disks_mib < 1 ||
        json_array_size(uuids) != (size_t)nodes)
        return false;
    layout->nodes = (guint)nodes;
    layout->candidates = (guint)candidates;
    layout->root_mib = (guint)root_mib;
    layout->disks_mib = (guint)disks_mib;
    layout->made_dir = made_dir;
    layout->identity = identity;
    layout->ipv6 = ipv6;
    layout->ceph = ceph;
    layout->cluster_uuid = g_strdup(cluster_uuid);
    for (int i = 0; i < nodes; i++) {
        const char *uuid = json_string_value(json_array_get(uuids, (size_t)i));
        if (!uuid)
            return false;
        g_ptr_array_add(layout->node_uuids, g_strdup(uuid));
    }
    return daemons_from_json(layout, daemons);
}

struct layout *layout_load(const char *dir, GError **error)
{
    g_autofree char *resolved = layout_resolve(dir, error);
    if (!resolved)
        return NULL;
    layout_autoptr layout = layout_empty(resolved);
    g_autofree char *path = layout_file(layout, "lab.json");
    g_autofree char *text = NULL;
    size_t len;
    g_autoptr(GError) local = NULL;
    if (!g_file_get_contents(path, &text, &len, &local)) {
        if (g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT))
            fettle_set_error(error, UNKNOWN_ENTITY,
                             "there is no lab in %s; `fettle lab up --dir %s` makes one", resolved,
                             resolved);
        else
            fettle_set_error(error, STORAGE, "%s", local->message);
        return NULL;
    }
    json_autoptr json = json_parse_limited(text, len, LIMIT_LAB_JSON_BYTES, NULL);
    if (!json || !layout_from_json(layout, json)) {
        fettle_set_error(error, CORRUPT,
                         "%s is damaged; `fettle lab down --dir %s` removes the lab", path,
                         resolved);
        return NULL;
    }
    return g_steal_pointer(&layout);
}

char *layout_resolve(const char *dir, GError **error)
{
    g_autofree char *absolute = g_canonicalize_filename(dir, NULL);
    g_autofree char *parent = g_path_get_dirname(absolute);
    g_autofree char *name = g_path_get_basename(absolute);
    char *real = realpath(absolute, NULL);
    g_autofree char *result = g_strdup(real);
    free(real);
    if (!result) {
        char *real_parent = realpath(parent, NULL);
        result = real_parent ? g_build_filename(real_parent, name, NULL) : g_strdup(absolute);
        free(real_parent);
    }
    if (strcmp(result, "/") == 0) {
        fettle_set_error(error, WRONG_INPUT, "a lab cannot be in the folder /");
        return NULL;
    }
    if (strlen(result) > LIMIT_LAB_DIR_CHARS) {
        fettle_set_error(error, WRONG_INPUT,
                         "the lab's folder %s has %zu characters, but names of sockets below it "
                         "must stay short: choose one of at most %d",
                         result, strlen(result), LIMIT_LAB_DIR_CHARS);
        return NULL;
    }
    return g_steal_pointer(&result);
}

char *layout_prefix(const char *dir)
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, dir, -1);
    return g_strdup_printf("ft%.*s", PREFIX_HEX_DIGITS, sum);
}

bool layout_exists(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "lab.json", NULL);
    return access(path, F_OK) == 0;
}

guint layout_node_number(const char *name)
{
    guint64 number;
    if (!g_str_has_prefix(name, "node") || name[4] == '0' ||
        !g_ascii_string_to_unsigned(name + 4, 10, 1, LIMIT_LAB_NODES, &number, NULL))
        return 0;
    return (guint)number;
}

char *layout_file(const struct layout *layout, const char *name)
{
    return g_build_filename(layout->dir, name, NULL);
}

char *layout_root(const struct layout *layout, guint node)
{
    return g_strdup_printf("%s/node%u", layout->dir, node);
}

char *layout_below_root(const struct layout *layout, guint node, const char *name)
{
    return g_strdup_printf("%s/node%u/%s", layout->dir, node, name);
}

char *layout_log(const struct layout *layout, guint node)
{
    return g_strdup_printf("%s/log/node%u", layout->dir, node);
}

char *layout_root_image(const struct layout *layout, guint node)
{
    return g_strdup_printf("%s/node%u.img", layout->dir, node);
}

char *layout_disks_image(const struct layout *layout, guint node)
{
    return g_strdup_printf("%s/node%u-disks.img", layout->dir, node);
}

char *layout_shared(const struct layout *layout)
{
    return layout_file(layout, "shared");
}

char *layout_shared_image(const struct layout *layout)
{
    return layout_file(layout, "shared.img");
}

char *layout_ceph(const struct layout *layout)
{
    return layout_file(layout, "ceph");
}

char *layout_shared_in(const struct layout *layout, guint node)
{
    return layout_below_root(layout, node, "var/shared");
}

char *layout_programs(const struct layout *layout, guint node)
{
    g_autofree char *name = g_strdup_printf("node%u.programs", node);
    return layout_file(layout, name);
}

char *layout_netns(const struct layout *layout, guint node)
{
    return g_strdup_printf("%s-n%u", layout->prefix, node);
}

char *layout_switch(const struct layout *layout)
{
    return g_strdup_printf("%s-sw", layout->prefix);
}

char *layout_address(const struct layout *layout, guint node)
{
    return g_strdup_printf(layout->ipv6 ? "fd99::%x" : "10.99.0.%u", node);
}

char *layout_switch_address(const struct layout *layout)
{
    return layout_address(layout, SWITCH);
}

char *layout_with_prefix(const struct layout *layout, const char *address)
{
    return g_strconcat(address, layout->ipv6 ? "/64" : "/24", NULL);
}

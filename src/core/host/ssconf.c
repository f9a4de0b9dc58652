/* See ssconf.h. */
#include "core/host/ssconf.h"

#include <string.h>

#include "base/log.h"
#include "proto/records.h"

#define FOLDER "ssconf/"

/* --- the facts --- */

static void free_file(void *data)
{
    struct ssconf_file *file = data;
    g_free(file->text);
    g_free(file);
}

static int compare_members(const void *a, const void *b)
{
    const struct member *one = *(const struct member *const *)a;
    const struct member *other = *(const struct member *const *)b;
    return strcmp(one->name, other->name);
}

static bool is_any(const struct member *member)
{
    return true;
}

static bool is_candidate(const struct member *member)
{
    return member->master_candidate;
}

static bool is_online(const struct member *member)
{
    return !member->offline;
}

static bool is_offline(const struct member *member)
{
    return member->offline;
}

enum what { NAME, ADDRESS, NAME_AND_ADDRESS };

/* A line for each of them. */
static const struct {
    const char *name;
    bool (*wanted)(const struct member *member);
    enum what what;
} lists[] = {
    {"node_list", is_any, NAME},
    {"node_primary_ips", is_any, NAME_AND_ADDRESS},
    {"master_candidates", is_candidate, NAME},
    {"master_candidates_ips", is_candidate, ADDRESS},
    {"online_nodes", is_online, NAME},
    {"offline_nodes", is_offline, NAME},
};

static void add(GPtrArray *files, const char *name, char *text)
{
    struct ssconf_file *file = g_new(struct ssconf_file, 1);
    *file = (struct ssconf_file){name, text};
    g_ptr_array_add(files, file);
}

static void add_line(GPtrArray *files, const char *name, const char *text)
{
    add(files, name, g_strdup_printf("%s\n", text));
}

static char *list_text(const GPtrArray *members, bool (*wanted)(const struct member *member),
                       enum what what)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (!wanted(member))
            continue;
        if (what == NAME_AND_ADDRESS)
            g_string_append_printf(text, "%s %s\n", member->name, member->address);
        else
            g_string_append_printf(text, "%s\n", what == NAME ? member->name : member->address);
    }
    return g_string_free(text, FALSE);
}

static GPtrArray *sorted_members(const struct announce_args *announced)
{
    GPtrArray *members = g_ptr_array_new();
    for (guint i = 0; i < announced->members->len; i++)
        g_ptr_array_add(members, announced->members->pdata[i]);
    g_ptr_array_sort(members, compare_members);
    return members;
}

GPtrArray *ssconf_files(const struct announce_args *announced)
{
    GPtrArray *files = g_ptr_array_new_with_free_func(free_file);
    g_autoptr(GPtrArray) members = sorted_members(announced);
    add_line(files, "cluster_name", announced->cluster_name);
    add_line(files, "cluster_uuid", announced->cluster);
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (strcmp(member->uuid, announced->master_node) != 0)
            continue;
        add_line(files, "master_node", member->name);
        add_line(files, "master_ip",
                 *announced->master_ip ? announced->master_ip : member->address);
    }
    if (*announced->master_ip) {
        g_autofree char *netmask = g_strdup_printf("%" G_GUINT64_FORMAT, announced->master_netmask);
        add_line(files, "master_netmask", netmask);
        add_line(files, "master_netdev", announced->master_netdev);
    }
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++)
        add(files, lists[i].name, list_text(members, lists[i].wanted, lists[i].what));
    return files;
}

/* --- the files --- */

static bool is_there(const struct env *env, const char *path, const char *text)
{
    size_t wanted = strlen(text), len = 0;
    g_autofree char *now = env->ops->file_read(env, FILE_STATE, path, MAX(wanted, 1), &len, NULL);
    return now && len == wanted && !memcmp(now, text, len);
}

/* `ret_written`: it was another one before. */
static bool update_file(const struct env *env, const char *name, const char *text,
                        bool *ret_written)
{
    g_autofree char *path = g_strconcat(FOLDER, name, NULL);
    g_autoptr(GError) error = NULL;
    if (is_there(env, path, text))
        return true;
    *ret_written = true;
    if (env->ops->file_write(env, FILE_STATE, path, text, strlen(text), &error))
        return true;
    if (!fettle_error_is(error, KILLED))
        log_warning("", "var/%s could not be written: %s", path, error->message);
    return false;
}

bool ssconf_update(const struct env *env, const struct announce_args *announced)
{
    /* A master of an older version does not tell the name: what is there stays. */
    if (!*announced->cluster_name)
        return true;
    /* Taken at once: another announcement may come while a file is written. */
    g_autofree char *serial = g_strdup_printf("%" G_GUINT64_FORMAT "\n", announced->serial);
    g_autoptr(GPtrArray) files = ssconf_files(announced);
    bool written = false;
    bool ok = true;
    for (guint i = 0; ok && i < files->len; i++) {
        const struct ssconf_file *file = files->pdata[i];
        ok = update_file(env, file->name, file->text, &written);
    }
    return ok && (!written || update_file(env, "serial", serial, &written));
}

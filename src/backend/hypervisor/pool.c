/* See pool.h. */
#include "backend/hypervisor/pool.h"

#include <string.h>

#include "backend/ceph_conf.h"
#include "backend/tool.h"
#include "base/limits.h"

#define ASK_MS 15000u
#define KEEP_OUT_S                                                                                 \
    "315360000" /* ten years: an entry that ends lets in who was cut off for longer */

#define ADDRESS_LETTERS "0123456789abcdefABCDEF.:[]v"

/* --- Ceph's commands --- */

/* What one says; NULL with the error. `words` do not say which Ceph it is. */
static char *ask(const struct guest_volume *volume, const char *const *words, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *said = NULL, *name = g_strconcat("client.", volume->user, NULL);
    const char *const place[] = {*words, "--conf", volume->conf, "--name", name};
    for (guint i = 0; i < G_N_ELEMENTS(place); i++)
        g_ptr_array_add(argv, (char *)place[i]);
    while (*++words)
        g_ptr_array_add(argv, (char *)*words);
    g_ptr_array_add(argv, NULL);
    int code = tool_run((const char *const *)argv->pdata, NULL, ASK_MS, &said, error);
    if (code == 0)
        return g_steal_pointer(&said);
    g_autofree char *why = tool_last_words(said ? said : "");
    if (code > 0)
        fettle_set_error(error, STORAGE, "volume %s: %s ended with %d: %s", volume->path,
                         (const char *)argv->pdata[0], code, why);
    else
        g_prefix_error(error, "volume %s: ", volume->path);
    return NULL;
}

/* JSON is on one line; what else is said stands on others. */
static json_t *ask_rbd(const struct guest_volume *volume, const char *verb, const char *verb2,
                       GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    const char *const all[] = {"rbd", verb, verb2, "--format", "json", "--pool", volume->pool};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i])
            g_ptr_array_add(words, (char *)all[i]);
    if (*volume->namespace) {
        g_ptr_array_add(words, (char *)"--namespace");
        g_ptr_array_add(words, volume->namespace);
    }
    g_ptr_array_add(words, (char *)"--image");
    g_ptr_array_add(words, volume->image);
    g_ptr_array_add(words, NULL);
    g_autofree char *said = ask(volume, (const char *const *)words->pdata, error);
    const char *line = said;
    while (line && *line != '{' && *line != '[') {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    json_t *json =
        line ? json_parse_limited(line, strcspn(line, "\n"), LIMIT_TOOL_OUTPUT_BYTES, error) : NULL;
    if (said && !line)
        fettle_set_error(error, CORRUPT, "volume %s: rbd %s says nothing", volume->path, verb);
    return json;
}

/* --- opening --- */

static char *read_conf(const struct guest_volume *volume, GError **error)
{
    bool key = false;
    g_auto(GStrv) places = ceph_conf_places(volume->conf, volume->user, error);
    g_autofree char *text = places ? ceph_conf_read(volume->conf, volume->user,
                                                    (const char *const *)places, &key, error)
                                   : NULL;
    if (key || !text)
        return g_steal_pointer(&text);
    g_autofree char *all = g_strjoinv(" ", places);
    fettle_set_error(error, ENVIRONMENT,
                     "there is no key of client.%s on this node; %s names none of the files where "
                     "it could be: %s",
                     volume->user, volume->conf, all);
    return NULL;
}

int pool_conf(const struct guest_volume *volume, GError **error)
{
    g_autofree char *text = read_conf(volume, error);
    if (!text)
        g_prefix_error(error, "volume %s: ", volume->path);
    return text ? tool_text(text, error) : -1;
}

json_t *pool_blockdev(const struct guest_volume *volume, const char *node, int fd)
{
    g_autofree char *file = g_strconcat(node, "f", NULL);
    g_autofree char *conf = g_strdup_printf("/proc/self/fd/%d", fd);
    /* Never read-only below: who only reads is no watcher of its image, and is not shut out. */
    json_t *image = json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:{s:b}}", "driver", "rbd", "node-name",
                              file, "pool", volume->pool, "image", volume->image, "user",
                              volume->user, "conf", conf, "read-only", 0, "cache", "direct", 1);
    if (*volume->namespace)
        json_object_set_new(image, "namespace", json_string(volume->namespace));
    return json_make("{s:s,s:s,s:b,s:{s:b},s:o}", "driver", "raw", "node-name", node, "read-only",
                     volume->readonly, "cache", "direct", 1, "file", image);
}

/* --- who has it open --- */

/* Of one client, by its number: without that it would be all of its host, and any other word could
 * be an option. */
static bool is_client(const char *address)
{
    size_t length = strspn(address, ADDRESS_LETTERS);
    const char *number = address + length;
    return length && *number++ == '/' && strspn(number, "0123456789") == strlen(number) &&
           g_ascii_strtoull(number, NULL, 10) > 0;
}

/* `list` of objects with an address each. False: it is no such list. */
static bool add_addresses(GPtrArray *addresses, json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        const char *address = json_string_value(json_object_get(item, "address"));
        if (!address || !is_client(address))
            return false;
        if (!g_ptr_array_find_with_equal_func(addresses, address, g_str_equal, NULL))
            g_ptr_array_add(addresses, g_strdup(address));
    }
    return json_is_array(list);
}

static bool add_watchers(const struct guest_volume *volume, GPtrArray *addresses, GError **error)
{
    json_autoptr status = ask_rbd(volume, "status", NULL, error);
    if (!status || add_addresses(addresses, json_object_get(status, "watchers")))
        return status != NULL;
    fettle_set_error(error, CORRUPT, "volume %s: Ceph does not say who has it open", volume->path);
    return false;
}

static bool add_owners(const struct guest_volume *volume, GPtrArray *addresses, GError **error)
{
    json_autoptr owners = ask_rbd(volume, "lock", "ls", error);
    if (!owners || add_addresses(addresses, owners))
        return owners != NULL;
    fettle_set_error(error, CORRUPT, "volume %s: Ceph does not say who has its lock", volume->path);
    return false;
}

bool pool_fence(const struct guest_volume *volume, GError **error)
{
    g_autoptr(GPtrArray) addresses = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) known = g_strsplit(volume->clients, ",", -1);
    for (guint i = 0; known[i]; i++) {
        if (!is_client(known[i])) {
            fettle_set_error(error, CORRUPT,
                             "volume %s: \"%.64s\" on record had it open, which is "
                             "no client of a Ceph",
                             volume->path, known[i]);
            return false;
        }
        g_ptr_array_add(addresses, g_strdup(known[i]));
    }
    if (!add_watchers(volume, addresses, error) || !add_owners(volume, addresses, error))
        return false;
    for (guint i = 0; i < addresses->len; i++) {
        const char *const words[] = {"ceph",     "osd", "blocklist", "add", addresses->pdata[i],
                                     KEEP_OUT_S, NULL};
        g_autofree char *said = ask(volume, words, error);
        if (!said)
            return false;
    }
    return true;
}

bool pool_look(struct hypervisor *hv, const struct guest_volume *volume, guint64 *ret_bytes,
               char **ret_clients, GError **error)
{
    g_autoptr(GPtrArray) addresses = g_ptr_array_new_with_free_func(g_free);
    json_autoptr about = ask_rbd(volume, "info", NULL, error);
    *ret_bytes = (guint64)MAX(json_integer_value(json_object_get(about, "size")), 0);
    if (!about || !ret_clients)
        return about != NULL;
    if (!add_watchers(volume, addresses, error))
        return false;
    g_ptr_array_add(addresses, NULL);
    *ret_clients = g_strjoinv(",", (char **)addresses->pdata);
    if (**ret_clients && strlen(*ret_clients) <= LIMIT_CLIENTS_CHARS)
        return true;
    fettle_set_error(error, STORAGE, "volume %s: Ceph says that \"%.64s\" have it open",
                     volume->path, *ret_clients);
    g_clear_pointer(ret_clients, g_free);
    return false;
}

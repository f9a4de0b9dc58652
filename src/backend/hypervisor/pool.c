/* See pool.h. */
#include "backend/hypervisor/pool.h"

#include <string.h>

#include "backend/tool.h"
#include "base/limits.h"
#include "io/files.h"

#define ASK_MS 15000u
#define KEEP_OUT_S                                                                                 \
    "315360000" /* ten years: an entry that ends lets in who was cut off for longer */

#define KEY_LETTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "+/="
#define KEY_CHARS 20u
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

/* What else is said stands on other lines. */
static char *find_key_in(const char *said)
{
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (strlen(g_strstrip(lines[i])) >= KEY_CHARS &&
            strspn(lines[i], KEY_LETTERS) == strlen(lines[i]))
            return g_strdup(lines[i]);
    return NULL;
}

static char *find_key(const struct guest_volume *volume, GError **error)
{
    g_autofree char *said = ask(
        volume, (const char *const[]){"ceph-conf", "--show-config-value", "keyring", NULL}, error);
    g_auto(GStrv) files = g_strsplit_set(said ? said : "", ", \n", -1);
    for (guint i = 0; files[i]; i++) {
        if (!*files[i] || !g_file_test(files[i], G_FILE_TEST_EXISTS))
            continue;
        g_autofree char *keys = ask(
            volume, (const char *const[]){"ceph-authtool", "--print-key", files[i], NULL}, error);
        char *key = keys ? find_key_in(keys) : NULL;
        if (keys && !key)
            fettle_set_error(error, ENVIRONMENT, "volume %s: there is no key of client.%s in %s",
                             volume->path, volume->user, files[i]);
        return key;
    }
    if (said)
        fettle_set_error(error, ENVIRONMENT,
                         "volume %s: there is no key of client.%s on this node; %s names none of "
                         "the files where it could be: %s",
                         volume->path, volume->user, volume->conf, g_strstrip(said));
    return NULL;
}

int pool_conf(const struct guest_volume *volume, GError **error)
{
    g_autofree char *key = find_key(volume, error);
    g_autofree char *conf =
        key ? files_read_path(volume->conf, LIMIT_TOOL_OUTPUT_BYTES, NULL, error) : NULL;
    if (!conf)
        return -1;
    g_autofree char *text = g_strdup_printf("%s\n[client.%s]\nkey = %s\n", conf, volume->user, key);
    return tool_text(text, error);
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

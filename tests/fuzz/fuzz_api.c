/* Requests of block storage and of images, from an administrator: "METHOD TARGET", lines of headers
 * "name: value", an empty line, the body. "@v", "@s", "@b" and "@i" stand for the ids of a volume,
 * a snapshot, a backup and an image that are there. Whatever comes is answered, and nothing of it
 * is our fault. */
#include "fuzz.h"

#include "unit/core/world/api_world.h"

#include <string.h>

#define REQUESTS_PER_WORLD 100 /* they change it */

static const char *ids[128]; /* by the letter behind "@" */

/* --- what is there --- */

static const char *made(const char *path, const char *name, const char *body)
{
    g_autofree char *said = api_ask("POST", path, body);
    const struct http_answer *answer = api_answered();
    g_assert_cmpuint(answer->status, <, 300);
    json_autoptr answered = json_parse_limited(answer->body, answer->body_len, MIB(1), NULL);
    const json_t *object = *name ? json_object_get(answered, name) : answered;
    api_work();
    return g_intern_string(json_string_value(json_object_get(object, "id")));
}

static void begin(void)
{
    api_set_up(NULL);
    ids['v'] = api_volume("one");
    g_autofree char *of = g_strdup_printf("\"volume_id\": \"%s\"", ids['v']);
    g_autofree char *snapshot = g_strdup_printf("{\"snapshot\": {%s}}", of);
    g_autofree char *backup = g_strdup_printf("{\"backup\": {%s, \"container\": \"dir1\"}}", of);
    ids['s'] = made("/snapshots", "snapshot", snapshot);
    ids['b'] = made("/backups", "backup", backup);
    ids['i'] =
        made("/image/v2/images", "", "{\"disk_format\": \"raw\", \"container_format\": \"bare\"}");
}

static char *with_ids(const char *text)
{
    GString *whole = g_string_new(NULL);
    for (; *text; text++) {
        const char *id = *text == '@' && g_ascii_isalpha(text[1]) ? ids[(guint)text[1]] : NULL;
        if (id)
            g_string_append(whole, id);
        else
            g_string_append_c(whole, *text);
        text += id ? 1 : 0;
    }
    return g_string_free(whole, FALSE);
}

/* --- one request --- */

/* As the server gives them. False: they are none. */
static bool set_headers(char **lines)
{
    api_with(NULL, NULL);
    for (; *lines; lines++) {
        g_auto(GStrv) parts = g_strsplit(*lines, ": ", 2);
        if (!parts[0] || !parts[1] || !g_utf8_validate(parts[1], -1, NULL))
            return false;
        g_autofree char *name = g_ascii_strdown(parts[0], -1);
        if (!g_str_has_prefix(name, "x-auth"))
            api_with(name, parts[1]);
    }
    return true;
}

static void ask(const char *method, const char *target, const char *body)
{
    size_t length = strcspn(target, "?");
    g_autofree char *encoded = g_strndup(target, length);
    g_autofree char *path = http_path_decode(encoded);
    /* A path that is asked as it is cannot have a "?"; bytes of images go another way. */
    if (!path || strchr(path, '?') || g_str_has_suffix(path, "/file"))
        return;
    g_autofree char *whole = g_strconcat(path, target + length, NULL);
    g_autofree char *said = api_ask(method, whole, body);
    const struct http_answer *answer = api_answered();
    g_assert_cmpuint(answer->status, >=, 200);
    g_assert_cmpuint(answer->status, <, 500);
    json_autoptr json =
        answer->body_len ? json_loadb(answer->body, answer->body_len, 0, NULL) : NULL;
    g_assert_true(!answer->body_len || json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static guint asked;
    if (!len)
        return 0;
    if (asked++ % REQUESTS_PER_WORLD == 0) {
        if (asked > 1)
            api_tear_down();
        begin();
    }
    g_autofree char *raw = g_strndup((const char *)data, len);
    g_autofree char *text = with_ids(raw);
    g_auto(GStrv) parts = g_strsplit(text, "\n\n", 2);
    g_auto(GStrv) lines = g_strsplit(parts[0] ? parts[0] : "", "\n", -1);
    g_auto(GStrv) words = g_strsplit(lines[0] ? lines[0] : "", " ", 2);
    if (words[0] && *words[0] && words[1] && set_headers(lines + 1))
        ask(words[0], words[1], parts[1] ? parts[1] : "");
    return 0;
}

/*
 * Any path, and any header Accept in its next line, as fettle-mond is asked by whoever reaches it:
 * one answer, which is a report, metrics, or a sentence.
 */
#include <string.h>

#include "fuzz.h"
#include "monitor_world.h"

static void check(const struct http_answer *answer)
{
    const char *type = answer->headers->pdata[1];
    g_assert_true(answer->status == 200 || answer->status == 404);
    g_assert_cmpuint(answer->body_len, ==, strlen(answer->body));
    g_assert_true(g_utf8_validate(answer->body, -1, NULL));
    if (strcmp(type, "application/json") == 0) {
        json_autoptr json = json_loads(answer->body, JSON_DECODE_ANY, NULL);
        g_assert_true(answer->status == 200 && json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autofree char *text = g_strndup(len > 0 ? (const char *)data : "", len);
    char *line = strchr(text, '\n');
    if (line)
        *line++ = '\0';
    g_autofree char *path = http_path_decode(text);
    if (!path)
        return 0;
    struct http_answer *answer = monitor_world_get(path, line ? line : "");
    check(answer);
    http_answer_free(answer);
    return 0;
}

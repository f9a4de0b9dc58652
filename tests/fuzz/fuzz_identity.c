/* Requests of identity v3 from somebody who may ask everything: "METHOD TARGET", and behind the
 * line the body. Whatever comes is answered, and nothing of it is our fault. */
#include "fuzz.h"

#include "unit/core/world/identity_world.h"

#include <string.h>

#define REQUESTS_PER_WORLD 100 /* they change it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    static struct identity_world *world;
    static char *token;
    static guint asked;
    g_autofree char *text = g_strndup((const char *)data, len);
    if (asked++ % REQUESTS_PER_WORLD == 0) {
        if (world)
            identity_world_free(world);
        g_free(token);
        world = identity_world_new();
        token = token_of(world, "root", "red");
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", 2);
    g_auto(GStrv) words = g_strsplit(lines[0] ? lines[0] : "", " ", 2);
    g_auto(GStrv) parts = g_strsplit(words[0] && words[1] ? words[1] : "", "?", 2);
    if (!parts[0] || parts[0][0] != '/' || !g_utf8_validate(parts[0], -1, NULL))
        return 0; /* as the server has it */
    guint status = ask_text(world, words[0], words[1], token, token, lines[1]);
    g_assert_cmpuint(status, >=, 200);
    g_assert_cmpuint(status, <, 500);
    g_assert_true(status == 204 || !strcmp(words[0], "HEAD") || world->json);
    return 0;
}

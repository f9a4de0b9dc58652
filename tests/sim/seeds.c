/*
 * See seeds.h.
 */
#include "seeds.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static GChecksum *digest; /* NULL: nobody asks for it */

guint64 seeds_number(const char *variable, const char *text)
{
    const char *other = g_getenv(variable);
    return g_ascii_strtoull(other != NULL ? other : text, NULL, 10);
}

bool seeds_each(const char *path, bool (*run)(guint64 seed, const char *rest, void *data),
                void *data)
{
    g_autofree char *text = NULL;
    bool ok = g_file_get_contents(path, &text, NULL, NULL);
    guint count = 0;
    g_auto(GStrv) lines = g_strsplit(ok ? text : "", "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        char *rest = NULL;
        if (!g_ascii_isdigit(*lines[i]))
            continue;
        guint64 seed = g_ascii_strtoull(lines[i], &rest, 10);
        count++;
        ok = run(seed, g_strchug(rest), data) && ok;
    }
    return ok && count > 0;
}

static void log_line(const char *line, void *print)
{
    const char *text = strchr(line, ' '); /* behind the time */
    if (print)
        printf("# %s\n", line);
    if (digest && text)
        g_checksum_update(digest, (const guchar *)text, (gssize)strlen(text));
}

void seeds_log(void)
{
    static bool yes = true;
    if (g_getenv("FETTLE_SIM_DIGEST"))
        digest = g_checksum_new(G_CHECKSUM_SHA256);
    log_set_sink(log_line, g_getenv("FETTLE_SIM_LOG") ? &yes : NULL);
}

void seeds_digest(guint64 seed, guint64 steps)
{
    if (!digest)
        return;
    g_autoptr(GChecksum) done = g_checksum_copy(digest);
    printf("# seed %" G_GUINT64_FORMAT ": digest %.16s after %" G_GUINT64_FORMAT " steps\n", seed,
           g_checksum_get_string(done), steps);
    g_checksum_reset(digest);
}

bool seeds_passed(guint64 seed, const char *shape, const char *why)
{
    if (why == NULL)
        return true;
    printf("# seed %" G_GUINT64_FORMAT "%s%s: %s\n", seed, *shape != '\0' ? " " : "", shape, why);
    fflush(stdout);
    return false;
}

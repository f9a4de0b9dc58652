/*
 * See lookout.h.
 */
#include "backend/storage/lookout.h"

#include "base/limits.h"
#include "io/loop.h"

struct lookout {
    char *folder;
    char *(*look)(const char *folder);
    char *found; /* by the last look; NULL: nothing */
    bool looking;
    bool orphan; /* freed while a look was under way, which frees it */
};

struct look {
    struct lookout *lookout; /* only for the loop's thread */
    char *(*look)(const char *folder);
    char *folder;
    char *found;
};

struct lookout *lookout_new(const char *folder, char *(*look)(const char *folder))
{
    struct lookout *lookout = g_new0(struct lookout, 1);
    lookout->folder = g_strdup(folder);
    lookout->look = look;
    return lookout;
}

static void clear_away(struct lookout *lookout)
{
    g_free(lookout->folder);
    g_free(lookout->found);
    g_free(lookout);
}

void lookout_free(struct lookout *lookout)
{
    lookout->orphan = true;
    if (!lookout->looking)
        clear_away(lookout);
}

static void look_done(void *data)
{
    struct look *look = data;
    struct lookout *lookout = look->lookout;
    g_free(lookout->found);
    lookout->found = look->found;
    lookout->looking = false;
    g_free(look->folder);
    g_free(look);
    if (lookout->orphan)
        clear_away(lookout);
}

static void *look_in_thread(void *data)
{
    struct look *look = data;
    look->found = look->look(look->folder);
    loop_post(look_done, look);
    return NULL;
}

static void begin_look(struct lookout *lookout)
{
    struct look *look = g_new0(struct look, 1);
    look->lookout = lookout;
    look->look = lookout->look;
    look->folder = g_strdup(lookout->folder);
    GThread *thread = g_thread_try_new("lookout", look_in_thread, look, NULL);
    lookout->looking = thread != NULL;
    if (thread != NULL) {
        g_thread_unref(thread);
        return;
    }
    g_free(look->folder);
    g_free(look);
}

const char *lookout_see(struct lookout *lookout)
{
    /* One that is under way may have seen what is over. */
    gint64 deadline = loop_boot_ms() + LIMIT_LOOK_MS;
    bool begun = false;
    while (!begun || lookout->looking) {
        if (!lookout->looking) {
            begin_look(lookout);
            begun = true;
        }
        if (loop_boot_ms() >= deadline || !loop_sleep(LOOK_POLL_MS))
            return NULL;
    }
    return lookout->found;
}

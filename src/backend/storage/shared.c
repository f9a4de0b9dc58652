/*
 * See shared.h.
 */
#include "backend/storage/shared.h"

#include "backend/storage/images.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define UUID_LENGTH 36

char *shared_read(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, SHARED_MARKER, NULL);
    g_autofree char *text = files_read_path(path, UUID_LENGTH + 1, NULL, NULL);
    if (text == NULL || !g_uuid_string_is_valid(g_strchomp(text)))
        return NULL;
    return g_steal_pointer(&text);
}

/* A link, so that of two nodes that make it at once one does. */
static bool link_marker(const char *folder, const char *temporary, GError **error)
{
    g_autofree char *path = g_build_filename(folder, SHARED_MARKER, NULL);
    int failed = link(temporary, path) != 0 ? errno : 0;
    unlink(temporary);
    if (failed == 0 || failed == EEXIST)
        return images_sync_folder(folder, error);
    errno = failed;
    return images_fail("make", path, error);
}

bool shared_mark(const char *folder, GError **error)
{
    g_autofree char *there = shared_read(folder);
    if (there != NULL)
        return true;
    g_autofree char *uuid = g_uuid_string_random();
    g_autofree char *line = g_strconcat(uuid, "\n", NULL);
    g_autofree char *temporary = g_strconcat(folder, "/" SHARED_MARKER ".", uuid, NULL);
    return files_write_path(temporary, line, strlen(line), 0644, true, error) &&
           link_marker(folder, temporary, error);
}

/* --- without waiting for a dead server --- */

struct shared_watch {
    char *folder;
    char *found; /* by the last look; NULL: nothing */
    bool looking;
    bool orphan; /* freed while a look was under way, which frees it */
};

struct look {
    struct shared_watch *watch; /* only for the loop's thread */
    char *folder;
    char *found;
};

struct shared_watch *shared_watch_new(const char *folder)
{
    struct shared_watch *watch = g_new0(struct shared_watch, 1);
    watch->folder = g_strdup(folder);
    return watch;
}

static void watch_free(struct shared_watch *watch)
{
    g_free(watch->folder);
    g_free(watch->found);
    g_free(watch);
}

void shared_watch_free(struct shared_watch *watch)
{
    watch->orphan = true;
    if (!watch->looking)
        watch_free(watch);
}

static void look_done(void *data)
{
    struct look *look = data;
    struct shared_watch *watch = look->watch;
    g_free(watch->found);
    watch->found = look->found;
    watch->looking = false;
    g_free(look->folder);
    g_free(look);
    if (watch->orphan)
        watch_free(watch);
}

static void *look_in_thread(void *data)
{
    struct look *look = data;
    look->found = shared_read(look->folder);
    loop_post(look_done, look);
    return NULL;
}

static void begin_look(struct shared_watch *watch)
{
    struct look *look = g_new0(struct look, 1);
    look->watch = watch;
    look->folder = g_strdup(watch->folder);
    GThread *thread = g_thread_try_new("shared", look_in_thread, look, NULL);
    watch->looking = thread != NULL;
    if (thread != NULL) {
        g_thread_unref(thread);
        return;
    }
    g_free(look->folder);
    g_free(look);
}

const char *shared_watch_look(struct shared_watch *watch)
{
    /* One that is under way may have seen what is over. */
    gint64 deadline = loop_boot_ms() + LIMIT_SHARED_LOOK_MS;
    bool begun = false;
    while (!begun || watch->looking) {
        if (!watch->looking) {
            begin_look(watch);
            begun = true;
        }
        if (loop_boot_ms() >= deadline || !loop_sleep(SHARED_LOOK_POLL_MS))
            return "";
    }
    return watch->found != NULL ? watch->found : "";
}

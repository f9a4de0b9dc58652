/* See world.h. */
#include "world.h"

#include "base/task.h"
#include "helper/patience.h"

#include <arpa/inet.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 30000

static void set_text(char **field, const char *text)
{
    g_free(*field);
    *field = g_strdup(text);
}

bool world_own_mounts(void)
{
    g_autofree char *mounts = NULL;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        !g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL))
        return false;
    g_auto(GStrv) lines = g_strsplit(mounts, "\n", 0);
    for (guint i = g_strv_length(lines); i > 0; i--) {
        g_auto(GStrv) words = g_strsplit(lines[i - 1], " ", 6);
        if (strstr(lines[i - 1], " - ext4 /dev/loop") && g_strv_length(words) == 6)
            umount2(words[4], MNT_DETACH);
    }
    return true;
}

struct node_paths *world_new(const char *node)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *root = g_dir_make_tmp("fettle-io-XXXXXX", &error);

    g_assert_no_error(error);
    loop_init();
    struct node_paths *paths = node_paths_new(root, &error);
    g_assert_no_error(error);
    node_paths_make(paths, &error);
    g_assert_no_error(error);
    record_autoptr(node_config) config = node_config_new();
    const char name[] = {'n', 'o', 'd', 'e', '-', node[0], '\0'};
    set_text(&config->node_uuid, node);
    set_text(&config->name, name);
    set_text(&config->cluster_uuid, CLUSTER);
    set_text(&config->address, "127.0.0.1");
    config->port = world_free_port();
    node_config_write(paths, config, &error);
    g_assert_no_error(error);
    return paths;
}

void world_remove(struct node_paths *paths)
{
    const char *argv[] = {"rm", "-rf", paths->root, NULL};

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    node_paths_free(paths);
}

/* Below the range that the kernel takes ports for outgoing connections from: nobody gets it by
 * chance. */
/* Who is to listen there does so later, and may end and come again: for as long as this process
 * lives an abstract socket keeps others from being told the same (scripts/fettlelib.py). */
static bool take_port(guint port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int len = g_snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "fettle-port-%u", port);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    if (bind(fd, (struct sockaddr *)&name, size) == 0)
        return true;
    close(fd);
    return false;
}

guint world_free_port(void)
{
    for (;;) {
        guint port = (guint)g_random_int_range(10000, 32000);
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((guint16)port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (free && take_port(port))
            return port;
    }
}

void world_wait(const bool *done)
{
    g_assert_true(patience_run_until(done, PATIENCE_MS));
}

void world_wait_count(const guint *count, guint wanted)
{
    gint64 since = loop_boot_ms();

    while (*count < wanted) {
        g_assert_false(patience_is_over(since, PATIENCE_MS));
        world_pause(1);
    }
}

void world_pause(guint ms)
{
    const bool never = false;
    loop_run_until(&never, ms);
}

struct task_run {
    void (*fn)(void *unused);
    bool done;
};

static void run_task(void *data)
{
    struct task_run *run = data;
    run->fn(NULL);
    run->done = true;
}

void world_in_task(void (*fn)(void *unused))
{
    struct task_run run = {fn, false};
    struct task_group *group = task_group_new();
    task_spawn(group, run_task, &run);
    g_assert_true(patience_run_until(&run.done, 2 * PATIENCE_MS));
    task_group_unref(group);
}

void world_complain(const char *line, void *lines)
{
    g_ptr_array_add(lines, g_strdup(line));
}

bool world_has_line(const GPtrArray *lines, const char *part)
{
    for (guint i = 0; i < lines->len; i++)
        if (strstr(lines->pdata[i], part) != NULL)
            return true;
    return false;
}

void world_wait_line(const GPtrArray *lines, const char *part)
{
    gint64 since = loop_boot_ms();

    while (!world_has_line(lines, part)) {
        if (patience_is_over(since, PATIENCE_MS))
            g_error("no line \"%s\"; the last one is \"%s\"", part,
                    lines->len > 0 ? (const char *)lines->pdata[lines->len - 1] : "");
        world_pause(5);
    }
}

void answer_cb(json_t *result, const GError *error, void *data)
{
    struct answer *answer = data;

    answer->done = true;
    answer->times++;
    answer->result = json_incref(result);
    answer->error = error != NULL ? g_error_copy(error) : NULL;
}

void answer_clear(struct answer *answer)
{
    json_decref(answer->result);
    g_clear_error(&answer->error);
    *answer = (struct answer){0};
}

void assert_error_at(GError **error, enum fettle_error code, const char *part, const char *where)
{
    if (*error == NULL)
        g_error("%s: no error, expected %d: %s", where, (int)code, part);
    if (!g_error_matches(*error, FETTLE_ERROR, (int)code) ||
        strstr((*error)->message, part) == NULL)
        g_error("%s: got %s: %s; expected %d: %s", where, fettle_error_name(*error),
                (*error)->message, (int)code, part);
    g_clear_error(error);
}

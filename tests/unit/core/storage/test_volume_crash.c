/*
 * A volume service that dies, or is stopped and goes on after another process has taken its name,
 * at every step of every operation: before and after each call to the back end and to wconfd. With
 * FETTLE_LONG=1 at each of them, otherwise at every third, each operation from another one on.
 */
#include <string.h>

#include "unit/core/world/volume_world.h"

#define WHILE_MS (60u * 1000)
#define STRIDE (g_strcmp0(g_getenv("FETTLE_LONG"), "1") == 0 ? 1u : 3u)

enum fate { DIES, GOES_ON };

struct story {
    const char *operation;
    guint size;
    const char *outcomes; /* all that may have become of it, each in bars */
    bool fails;           /* the back end does, once */
};

#define COPY "create-volume from a snapshot"
#define NEW "restore-backup into a new volume"
#define OVER "restore-backup over a volume"
#define MOVE "migrate-volume"
#define OF_IMAGE "create-volume from an image"
#define CASCADE "delete-volume with its snapshots"

static const struct story stories[] = {
    {"create-volume", 2, "|available 2 GiB|error 2 GiB, no data|", false},
    {"create-volume", 2, "|available 2 GiB|error 2 GiB, no data|", true},
    {"extend-volume", 3, "|available 3 GiB|error_extending 2 GiB|", false},
    {"extend-volume", 3, "|available 3 GiB|error_extending 2 GiB|", true},
    {"delete-volume", 0, "|gone|", false},
    {"delete-volume", 0, "|gone|error_deleting 2 GiB, no data|", true},
    {"create-snapshot", 0, "|available 2 GiB|error 2 GiB, no data|", false},
    {"create-snapshot", 0, "|available 2 GiB|error 2 GiB, no data|", true},
    {"delete-snapshot", 0, "|gone|", false},
    {"delete-snapshot", 0, "|gone|error_deleting 2 GiB, no data|", true},
    {COPY, 2, "|available 2 GiB|error 2 GiB, no data|", false},
    {COPY, 2, "|available 2 GiB|error 2 GiB, no data|", true},
    {"back-up-volume", 0, "|available 2 GiB|error 2 GiB, no data|", false},
    {"back-up-volume", 0, "|available 2 GiB|error 2 GiB, no data|", true},
    {NEW, 0, "|available 2 GiB|error 2 GiB, no data|", false},
    {NEW, 0, "|available 2 GiB|error 2 GiB, no data|", true},
    {OVER, 0, "|available 2 GiB|", false},
    {OVER, 0, "|available 2 GiB|", true},
    {"delete-backup", 0, "|gone|", false},
    {"delete-backup", 0, "|gone|error_deleting 2 GiB, no data|", true},
    {MOVE, 0, "|available 2 GiB|", false},
    {MOVE, 0, "|available 2 GiB|", true},
    {"upload-volume", 0, "|active 2 GiB|queued 0 GiB, no data|", false},
    {"upload-volume", 0, "|active 2 GiB|queued 0 GiB, no data|", true},
    {OF_IMAGE, 0, "|available 2 GiB|error 2 GiB, no data|", false},
    {OF_IMAGE, 0, "|available 2 GiB|error 2 GiB, no data|", true},
    {"delete-image", 0, "|gone|", false},
    {"delete-image", 0, "|gone|killed 2 GiB, no data|", true},
    {CASCADE, 0, "|gone|", false},
    {CASCADE, 0, "|gone|error_deleting 2 GiB|", true},
};

static void fail_once(const struct story *story)
{
    const char *op = strcmp(story->operation, "create-volume") == 0   ? "create"
                     : strcmp(story->operation, "extend-volume") == 0 ? "grow"
                     : g_str_has_prefix(story->operation, "delete-")  ? "remove"
                     : g_str_has_prefix(story->operation, "restore-") ? "restore"
                     : g_str_has_prefix(story->operation, "back-up-") ? "back_up"
                     : g_str_has_prefix(story->operation, "upload-")  ? "upload"
                     : strcmp(story->operation, OF_IMAGE) == 0        ? "download"
                                                                      : "copy";
    if (story->fails)
        fake_volumes_fail(volumes, op, FETTLE_ERROR_STORAGE, true, 1);
}

/* dir2 is node2's alone, and dir1 is marked by its first node. */
static guint node_of(const struct story *story)
{
    bool moves = strcmp(story->operation, MOVE) == 0;
    if (moves)
        fake_volumes_mark(volumes, DIR1, config_cluster(wconf_config(world.wconf))->uuid);
    return moves ? 2 : 1;
}

static json_t *wish(const char *type, const char *operation, const char *what, const char *uuid)
{
    return json_make("{s:s,s:s,s:s}", "resource_type", type, "operation", operation, what, uuid);
}

static const char *upload(const char *volume)
{
    volume_ask_for(
        with(wish("Volume", "upload-volume", "resource", volume), "commit_id", json_string(ID_B)));
    return ID_B;
}

/* What there is before: a volume, with a snapshot, a backup or an image where the operation is
 * about one. */
static void prepare(const struct story *story, const char **ret_volume, const char **ret_snapshot)
{
    bool blank = strcmp(story->operation, "create-volume") == 0;
    bool copies = strcmp(story->operation, COPY) == 0 || strcmp(story->operation, CASCADE) == 0 ||
                  strcmp(story->operation, "delete-snapshot") == 0;
    *ret_volume = blank ? "" : volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    bool restores = g_str_has_prefix(story->operation, "restore-") ||
                    strcmp(story->operation, "delete-backup") == 0;
    bool reads =
        strcmp(story->operation, OF_IMAGE) == 0 || strcmp(story->operation, "delete-image") == 0;
    *ret_snapshot =
        reads      ? upload(*ret_volume)
        : copies   ? volume_ask_for(wish("Snapshot", "create-snapshot", "source", *ret_volume))
        : restores ? volume_ask_for(wish("Backup", "back-up-volume", "source", *ret_volume))
                   : "";
    volumes_work();
}

static const char *data_of(const char *volume)
{
    return resource_of(wconf_config(world.wconf), RESOURCE_VOLUME, volume).data;
}

/* The resource that the operation is about. */
static const char *begin(const struct story *story, struct volumed *process, guint at)
{
    const char *volume, *snapshot;
    prepare(story, &volume, &snapshot);
    fake_advance(world.world, 20000);
    fail_once(story);
    volumed_stop_at(process, at);
    if (strcmp(story->operation, "create-snapshot") == 0)
        return volume_ask_for(wish("Snapshot", "create-snapshot", "source", volume));
    if (strcmp(story->operation, "delete-snapshot") == 0)
        return volume_ask_for(wish("Snapshot", "delete-snapshot", "resource", snapshot));
    if (strcmp(story->operation, "back-up-volume") == 0)
        return volume_ask_for(wish("Backup", "back-up-volume", "source", volume));
    if (strcmp(story->operation, "delete-backup") == 0)
        return volume_ask_for(wish("Backup", "delete-backup", "resource", snapshot));
    if (g_str_has_prefix(story->operation, "restore-")) {
        bool over = strcmp(story->operation, OVER) == 0;
        volume_ask_for(with(wish("Backup", "restore-backup", "resource", snapshot),
                            over ? "target" : "commit_id", json_string(over ? volume : ID_B)));
        return over ? volume : ID_B;
    }
    if (strcmp(story->operation, MOVE) == 0) {
        fake_volumes_write(volumes, data_of(volume));
        return volume_ask_for(
            with(wish("Volume", MOVE, "resource", volume), "backend", json_string("dir2")));
    }
    if (strcmp(story->operation, "upload-volume") == 0)
        return upload(volume);
    if (strcmp(story->operation, "delete-image") == 0)
        return volume_ask_for(wish("Image", "delete-image", "resource", snapshot));
    if (strcmp(story->operation, OF_IMAGE) == 0)
        return volume_ask_for(with(wish("Volume", "create-volume", "image", snapshot), "backend",
                                   json_string("dir1")));
    if (strcmp(story->operation, COPY) == 0)
        return volume_ask_for(wish("Volume", "create-volume", "source", snapshot));
    if (strcmp(story->operation, CASCADE) == 0)
        return volume_ask_for(
            with(wish("Volume", "delete-volume", "resource", volume), "cascade", json_true()));
    return volume_ask(story->operation, volume, story->size, *volume ? "" : "dir1");
}

static void assert_outcome(const struct story *story, const char *uuid)
{
    g_autofree char *said = volume_said(uuid);
    g_autofree char *bars = g_strdup_printf("|%s|", said);
    if (!strstr(story->outcomes, bars))
        g_error("%s at step %u: %s", story->operation, volumed_steps(), said);
    /* Wherever it is then, it has what it had, and its record says where. */
    if (strcmp(story->operation, MOVE) == 0) {
        struct resource moved = resource_of(wconf_config(world.wconf), RESOURCE_VOLUME, uuid);
        g_assert_true(fake_volumes_is_on(volumes, moved.data, moved.backend));
        g_assert_cmpuint(fake_volumes_content(volumes, moved.data), ==, 1);
        g_assert_true(volumed_stopped() || story->fails || strcmp(moved.backend, DIR2) == 0 ||
                      *moved.status_why);
    }
    /* Nor is a partner left in what it was meanwhile (SAF-121). */
    g_autoptr(GPtrArray) all = config_list(wconf_config(world.wconf), "volume");
    for (guint i = 0; i < all->len; i++) {
        const struct volume *volume = all->pdata[i];
        g_assert_cmpint(volume->status, !=, VOLUME_BACKING_UP);
        g_assert_cmpint(volume->status, !=, VOLUME_RESTORING_BACKUP);
        g_assert_cmpint(volume->status, !=, VOLUME_UPLOADING);
    }
}

/* What is on record stays so, whatever the one that goes on does. */
static void go_on(struct volumed *process, const char *uuid)
{
    g_autofree char *before = volume_said(uuid);
    fake_resume(process->env);
    fake_advance(world.world, WHILE_MS);
    g_autofree char *after = volume_said(uuid);
    g_assert_cmpstr(after, ==, before);
    g_assert_nonnull(process->ended);
}

/* False: it has no such step. */
static bool walk(const struct story *story, enum fate fate, guint at)
{
    volumes_set_up(NULL);
    guint node = node_of(story);
    struct volumed *first = volumed_start(node);
    const char *uuid = begin(story, first, at);
    volumes_work();
    bool stopped = volumed_stopped();
    if (stopped) {
        volumed_stop_at(NULL, 0);
        if (fate == DIES)
            volumed_kill(first);
        struct volumed *second = volumed_start(node);
        for (guint i = 0; i < 3600 && config_count(wconf_config(world.wconf), "worker"); i++)
            fake_advance(world.world, 1000);
        if (fate == GOES_ON)
            go_on(first, uuid);
        g_assert_null(second->ended);
    }
    fake_advance(world.world, WHILE_MS);
    assert_outcome(story, uuid);
    volumes_assert_clean();
    volumes_tear_down();
    return stopped;
}

static void walk_all(enum fate fate)
{
    for (guint i = 0; i < G_N_ELEMENTS(stories); i++) {
        guint at = 1 + (i + fate) % STRIDE;
        while (walk(&stories[i], fate, at))
            at += STRIDE;
        g_assert_cmpuint(at, >, 6); /* take, the back end, end: before and after */
        g_test_message("%s: %u steps", stories[i].operation, at - 1); /* or a few less */
    }
}

static void test_dies(void)
{
    walk_all(DIES);
}

static void test_goes_on(void)
{
    walk_all(GOES_ON);
}

/* The one that cleans dies at each of its own steps (CLN-24). */
static void test_cleaner_dies(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(stories); i++) {
        bool more = true;
        for (guint at = 1 + i % STRIDE; more; at += STRIDE) {
            volumes_set_up(NULL);
            guint node = node_of(&stories[i]);
            struct volumed *first = volumed_start(node);
            const char *uuid = begin(&stories[i], first, 3); /* taken, nothing done */
            volumes_work();
            g_assert_true(volumed_stopped());
            volumed_stop_at(NULL, 0);
            volumed_kill(first);
            struct volumed *second = volumed_start(node);
            volumed_stop_at(second, at);
            volumes_work();
            more = volumed_stopped();
            if (more) {
                volumed_stop_at(NULL, 0);
                volumed_kill(second);
                volumed_start(node);
            }
            volumes_work();
            fake_advance(world.world, WHILE_MS);
            assert_outcome(&stories[i], uuid);
            volumes_assert_clean();
            volumes_tear_down();
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-crash/dies#CLN-26", test_dies);
    g_test_add_func("/volume-crash/goes-on#SAF-50", test_goes_on);
    g_test_add_func("/volume-crash/cleaner-dies#CLN-24", test_cleaner_dies);
    return g_test_run();
}

/*
 * Volumes in pools of a real Ceph, which this program brings up: the suite of all drivers, and what
 * only pools have. Each test has two namespaces of its own, and a directory for backups.
 */
#include "helper/patience.h"
#include "unit/backend/volume_suite.h"
#include "world.h"

#include "backend/volume/dir_call.h"
#include "backend/volume/rbd_export.h"
#include "backend/volume/volumes_by_kind.h"
#include "io/net/nbd_stream.h"
#include "io/volume_user.h"
#include "lab/ceph.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MS 30000u
#define SHORT_MS 4000u /* of calls that hang */
#define GIB(n) ((guint64)(n) << 30)
#define VOLUME "11111111-0000-4000-8000-000000000001"
#define NAME VOLUME ".17"
#define SNAPSHOT "22222222-0000-4000-8000-000000000002.18"
#define BACKUP "33333333-0000-4000-8000-000000000003.19"
#define COPY VOLUME ".20"
#define ops (suite.driver->ops)

static struct volume_suite suite;
static char *program, *conf;
static GPid daemons[CEPH_DAEMONS];
static guint times;
static int watcher_input = -1;

/* --- a Ceph --- */

static void start_daemon(const char *dir, guint number)
{
    g_auto(GStrv) command = ceph_command(dir, number);
    g_autoptr(GError) error = NULL;
    g_spawn_async(NULL, command, NULL,
                  G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                      G_SPAWN_STDERR_TO_DEV_NULL,
                  NULL, NULL, &daemons[number], &error);
    g_assert_no_error(error);
}

static void start_ceph(void)
{
    g_autofree char *dir = g_build_filename(world_folder(), "ceph", NULL);
    g_autoptr(GError) error = NULL;
    ceph_check(&error);
    g_assert_no_error(error);
    ceph_make(dir, "127.0.0.1", &error);
    g_assert_no_error(error);
    for (guint i = 0; i < CEPH_DAEMONS; i++)
        start_daemon(dir, i);
    ceph_settle(dir, NULL, &error);
    g_assert_no_error(error);
    conf = ceph_conf(dir);
    /* Its manager has to hear of the pool before it can say how much room that has. */
    for (bool known = false; !known;) {
        g_autofree char *said = world_shell("ceph -c %s df --format json", conf);
        known = strstr(said, "\"name\":\"" CEPH_POOL "\"") != NULL;
    }
}

static void stand_still(bool still)
{
    kill(daemons[0], still ? SIGSTOP : SIGCONT);
    kill(daemons[CEPH_DAEMONS - 1], still ? SIGSTOP : SIGCONT);
}

/* Before the programs of that name: who it is that works for a back end, with its configuration
 * from a descriptor, goes into a file; calls at a namespace for which there is a file hang; `rbd`
 * says what stands in `says`, if that is there. */
static const char *const names[] = {"rbd", "rados", "ceph", "qemu-img", "qemu-nbd"};
static void put_programs(void)
{
    g_autofree char *users = g_build_filename(world_folder(), "users", NULL);
    g_autofree char *folder = g_build_filename(world_folder(), "programs", NULL);
    g_autofree char *path = g_strdup_printf("%s:%s", folder, g_getenv("PATH"));
    g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *real = g_find_program_in_path(names[i]);
        g_autofree char *file = g_build_filename(folder, names[i], NULL);
        g_autofree char *text = g_strdup_printf(
            "#!/bin/sh\ncase \"$*\" in */proc/self/fd/*|*--conf*) "
            "echo \"${0##*/} $(id -u) $(id -g) $(grep NoNewPrivs /proc/self/status)"
            " $*\" >>\"%s\";; esac\n[ ${0##*/} = rbd ] && [ -e \"%s/says\" ] && exec cat "
            "\"%s/says\"\nspace=${*#*--namespace }\n"
            "while [ -e \"%s/hangs.${space%%%% *}\" ]; do sleep 0.05; done\n"
            "exec %s \"$@\"\n",
            users, world_folder(), world_folder(), world_folder(), real);
        g_assert_true(g_file_set_contents(file, text, -1, NULL));
        g_assert_cmpint(g_chmod(file, 0755), ==, 0);
    }
    g_assert_true(g_file_set_contents(users, "", 0, NULL));
    g_assert_cmpint(g_chmod(users, 0666), ==, 0);
    g_setenv("PATH", path, TRUE);
}

/* --- the suite's world --- */

static void set(char **field, char *value)
{
    g_free(*field);
    *field = value;
}

static struct backend *pool(const char *name, const char *uuid)
{
    struct backend *made = backend_new();
    made->kind = BACKEND_RBD;
    set(&made->name, g_strdup(name));
    set(&made->uuid, g_strdup(uuid));
    set(&made->pool, g_strdup(CEPH_POOL));
    set(&made->namespace, g_strdup_printf("%s.%u", name, times));
    set(&made->conf, g_strdup(conf));
    set(&made->user, g_strdup(CEPH_USER));
    g_free(world_shell("rbd -c %s namespace create %s/%s", conf, CEPH_POOL, made->namespace));
    return made;
}

static struct backend *directory(void)
{
    struct backend *made = backend_new();
    set(&made->name, g_strdup("dir1"));
    set(&made->uuid, g_strdup("00000000-0000-4000-8000-0000000000d1"));
    set(&made->path, g_strdup_printf("%s/dir1.%u", world_folder(), times));
    g_assert_cmpint(g_mkdir(made->path, 0755), ==, 0);
    return made;
}

static void set_up(void)
{
    loop_init();
    times++;
    suite.driver = volumes_by_kind_new(program, world_folder(), LIMIT_MS);
    suite.first = pool("ceph1", "00000000-0000-4000-8000-0000000000e1");
    suite.second = pool("ceph2", "00000000-0000-4000-8000-0000000000e2");
    suite.backups = directory();
    suite.cluster = cluster_new();
    set(&suite.cluster->uuid, g_strdup("00000000-0000-4000-8000-0000000000c1"));
    set(&suite.cluster->name, g_strdup("berlin"));
}

static void tear_down(void)
{
    volumes_by_kind_free(suite.driver);
    backend_free(suite.first);
    backend_free(suite.second);
    backend_free(suite.backups);
    cluster_free(suite.cluster);
}

static void open_all(void)
{
    g_autoptr(GError) error = NULL;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->open(suite.driver, suite.second, suite.cluster, true, &error);
    ops->open(suite.driver, suite.backups, suite.cluster, true, &error);
    g_assert_no_error(error);
}

/* A shell command at a namespace; what it prints, to be freed. */
#define RBD_SHELL(at, format, ...)                                                                 \
    world_shell("rbd -c %s -n client.%s --pool %s --namespace %s " format, (at)->conf, CEPH_USER,  \
                (at)->pool, (at)->namespace, __VA_ARGS__)

static void put(const struct backend *at, const char *name)
{
    g_free(RBD_SHELL(at, "create --size 1B volumes.%s", name));
}

/* With less patience from then on. */
static void hang(const struct backend *at, bool hangs)
{
    g_autofree char *path = g_strdup_printf("%s/hangs.%s", world_folder(), at->namespace);
    if (!hangs) {
        g_assert_cmpint(unlink(path), ==, 0);
        return;
    }
    volumes_by_kind_free(suite.driver);
    suite.driver = volumes_by_kind_new(program, world_folder(), SHORT_MS);
    open_all();
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
}

/* As QEMU does: who has an image open watches it. */
static void lock(const struct backend *at, const char *name, bool locked)
{
    static GPid watcher;
    g_autofree char *spec = g_strdup_printf("%s/%s/volumes.%s", at->pool, at->namespace, name);
    char *argv[] = {"rbd", "-c", conf, "-n", "client." CEPH_USER, "watch", spec, NULL};
    if (!locked) {
        g_assert_cmpint(write(watcher_input, "\n", 1), ==, 1);
        close(watcher_input);
        waitpid(watcher, NULL, 0);
        return;
    }
    g_assert_true(g_spawn_async_with_pipes(NULL, argv, NULL,
                                           G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                                               G_SPAWN_STDOUT_TO_DEV_NULL,
                                           NULL, NULL, &watcher, &watcher_input, NULL, NULL, NULL));
    for (bool seen = false; !seen;) {
        g_autofree char *status = RBD_SHELL(at, "status volumes.%s", name);
        seen = strstr(status, "watcher=") != NULL;
    }
}

/* --- what only pools have --- */

static void assert_says(bool ok, GError **error, const char *words)
{
    g_assert_false(ok);
    g_assert_cmpstr((*error)->message, ==, words);
    g_clear_error(error);
}

/* One that is there is nobody else's, whatever it is made of. */
static void markers(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    put(suite.first, "somebodys");
    assert_says(ops->open(suite.driver, suite.first, suite.cluster, true, &error), &error,
                "ceph1: pool rbd has no marker of back end 00000000-0000-4000-8000-0000000000e1; a "
                "new one gets it while there is no image");
    g_free(RBD_SHELL(suite.first, "rm --no-progress %s", "volumes.somebodys"));
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_assert_no_error(error);
    suite.first->uuid[0] = '9';
    assert_says(ops->open(suite.driver, suite.first, suite.cluster, true, &error), &error,
                "ceph1: pool rbd belongs to back end 00000000-0000-4000-8000-0000000000e1 of "
                "cluster berlin");
    set(&suite.second->namespace, g_strdup("nowhere"));
    assert_says(ops->open(suite.driver, suite.second, suite.cluster, true, &error), &error,
                "ceph2: pool rbd has no namespace nowhere; this makes it: rbd namespace create "
                "rbd/nowhere");
    g_free(world_shell("rados -c %s -n client.%s -p rbd -N nowhere lock get fettle-backend fettle "
                       "--lock-type shared --lock-tag t --lock-cookie '\"}'",
                       conf, CEPH_USER));
    assert_says(ops->open(suite.driver, suite.second, suite.cluster, true, &error), &error,
                "ceph2: the lock of its marker is none that Fettle has made");
    set(&suite.second->pool, g_strdup("nopool"));
    g_autofree char *no_pool =
        g_strdup_printf("ceph2: there is no pool nopool in the Ceph of %s", conf);
    assert_says(ops->open(suite.driver, suite.second, suite.cluster, true, &error), &error,
                no_pool);
    set(&suite.second->conf, g_strdup("/nowhere/ceph.conf"));
    g_assert_false(ops->open(suite.driver, suite.second, suite.cluster, true, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    tear_down();
}

/* The key that counts is that of the files as they are, not as they were. */
static void other_key(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *words = g_strdup_printf(
        "cd %s/ceph; ls -1 | grep client." CEPH_USER " | head -1 | tr -d '\n'", world_folder());
    g_autofree char *file = world_shell("%s", words);
    set_up();
    open_all();
    g_free(world_shell("cd %s/ceph; mv %s was; sed 's/....==$/AAAA==/' was >%s", world_folder(),
                       file, file));
    g_assert_false(ops->space(suite.driver, suite.first, &(guint64){0}, &(guint64){0}, &error));
    g_clear_error(&error);
    g_assert_false(ops->open(suite.driver, suite.first, suite.cluster, false, &error));
    g_assert_nonnull(strstr(error->message, "does not let client." CEPH_USER " in"));
    g_clear_error(&error);
    g_free(world_shell("cd %s/ceph; mv %s other", world_folder(), file));
    g_assert_false(ops->open(suite.driver, suite.first, suite.cluster, false, &error));
    g_assert_nonnull(strstr(error->message, "is its key beside that file, or where that says?"));
    g_clear_error(&error);
    g_free(world_shell("cd %s/ceph; mv was %s", world_folder(), file));
    ops->open(suite.driver, suite.first, suite.cluster, false, &error);
    g_assert_no_error(error);
    tear_down();
}

static void write_byte(const char *name, const char *where, const char *pattern)
{
    g_free(world_shell("qemu-io -c 'write -P %s %s 4k' 'json:{\"driver\":\"rbd\",\"pool\":"
                       "\"rbd\",\"namespace\":\"%s\",\"image\":\"%s\",\"conf\":\"%s\",\"user\":\""
                       "fettle\"}'",
                       pattern, where, suite.first->namespace, name, conf));
}

static void assert_byte(const char *name, const char *where, const char *pattern)
{
    g_autofree char *said =
        world_shell("qemu-io -r -c 'read -P %s %s 4k' 'json:{\"driver\":\"rbd\",\"pool\":"
                    "\"rbd\",\"namespace\":\"%s\",\"image\":\"%s\",\"conf\":\"%s\",\"user\":\""
                    "fettle\"}'",
                    pattern, where, suite.first->namespace, name, conf);
    g_assert_null(strstr(said, "failed"));
}

/* Byte by byte, from kind to kind and back; and nobody's removal is felt by another. */
static void bytes(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *data = g_strdup(BACKUP);
    struct backup backup = {.data = data};
    set_up();
    open_all();
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 1, &error);
    write_byte("volumes." NAME, "0", "65");
    write_byte("volumes." NAME, "1023m", "90");
    ops->copy(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.first, RESOURCE_SNAPSHOT,
              SNAPSHOT, 1, &error);
    g_assert_no_error(error);
    write_byte("volumes." NAME, "0", "66");
    assert_byte("snapshots." SNAPSHOT, "0", "65");
    ops->copy(suite.driver, suite.first, RESOURCE_SNAPSHOT, SNAPSHOT, suite.backups,
              RESOURCE_VOLUME, COPY, 2, &error);
    g_assert_no_error(error);
    ops->copy(suite.driver, suite.backups, RESOURCE_VOLUME, COPY, suite.first, RESOURCE_VOLUME,
              VOLUME ".21", 2, &error);
    g_assert_no_error(error);
    assert_byte("volumes." VOLUME ".21", "0", "65");
    assert_byte("volumes." VOLUME ".21", "1023m", "90");
    assert_byte("volumes." VOLUME ".21", "2000m", "0");
    ops->back_up(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.backups, BACKUP, 1,
                 &backup.bytes, &backup.sum, &error);
    g_assert_no_error(error);
    /* What it is a copy of goes when the copy has gone. */
    g_assert_false(ops->remove(suite.driver, suite.first, RESOURCE_VOLUME, NAME, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==, "ceph1: copies of " NAME " still share its data");
    g_clear_error(&error);
    assert_byte("snapshots." SNAPSHOT, "0", "65");
    ops->remove(suite.driver, suite.first, RESOURCE_SNAPSHOT, SNAPSHOT, &error);
    g_free(RBD_SHELL(suite.first, "snap create --no-progress %s", "volumes." NAME "@fettle.left"));
    ops->remove(suite.driver, suite.first, RESOURCE_VOLUME, NAME, &error);
    g_assert_no_error(error);
    ops->restore(suite.driver, suite.backups, &backup, suite.first, VOLUME ".22", 1, &error);
    g_assert_no_error(error);
    assert_byte("volumes." VOLUME ".22", "0", "66");
    assert_byte("volumes." VOLUME ".22", "1023m", "90");
    g_free(backup.sum);
    tear_down();
}

#define IMAGE "44444444-0000-4000-8000-000000000004."
#define PATIENCE_MS 30000

/* As a client does; what it sent has come then. */
static void send_file(struct volume_transfer *transfer, const char *file)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *bytes = NULL;
    gsize length = 0;
    const struct nbd_place place = {.path = transfer->path,
                                    .address = transfer->address,
                                    .port = transfer->port,
                                    .key = transfer->key,
                                    .stall_ms = LIMIT_MS};
    g_assert_true(g_file_get_contents(file, &bytes, &length, NULL));
    g_assert_cmpint(ops->transfer_state(transfer), ==, TRANSFER_WAITS);
    struct nbd_stream *stream = nbd_stream_open(&place, &error);
    g_assert_no_error(error);
    g_assert_cmpint(ops->transfer_state(transfer), ==, TRANSFER_STANDS);
    nbd_stream_write(stream, bytes, length, &error);
    nbd_stream_flush(stream, &error);
    g_assert_no_error(error);
    nbd_stream_free(stream);
    until(ops->transfer_state(transfer) == TRANSFER_OVER);
    g_assert_true(ops->transfer_end(transfer));
}

static void receive(const char *name, const char *file, const char *address)
{
    g_autoptr(GError) error = NULL;
    GStatBuf status;
    g_assert_cmpint(g_stat(file, &status), ==, 0);
    struct volume_transfer *transfer =
        ops->transfer(suite.driver, suite.first, name, (guint64)status.st_size, address, &error);
    g_assert_no_error(error);
    send_file(transfer, file);
}

static bool settle(const char *name, enum disk_format format, const char *file,
                   struct image_sums *sums, GError **error)
{
    g_autofree char *said = world_shell("sha512sum %s; stat -c %%s %s", file, file);
    struct image_sums told = {.size = g_ascii_strtoull(strchr(said, '\n') + 1, NULL, 10)};
    g_strlcpy(told.os_hash_value, said, sizeof told.os_hash_value);
    return ops->measure(suite.driver, suite.first, name, format, &told, sums, error);
}

static void download(const char *name, enum disk_format format, const struct backend *to,
                     const char *volume)
{
    g_autoptr(GError) error = NULL;
    const struct image image = {.data = (char *)name, .disk_format = format};
    ops->download(suite.driver, suite.first, &image, to, volume, 1, &error);
    g_assert_no_error(error);
}

/* Whatever works for a back end is nobody, or in the one group of its
 * programs, and has neither key nor file of root's in its words. */
static void users(void *unused)
{
    g_autofree char *path = g_build_filename(world_folder(), "users", NULL), *said = NULL;
    g_autofree char *all = geteuid() ? g_strdup_printf(" %u %u ", geteuid(), getegid())
                                     : g_strdup_printf(" %u %u ", POOL_USER, VOLUME_USER);
    guint seen[G_N_ELEMENTS(names)] = {0};
    g_autofree char *file = g_build_filename(world_folder(), "sent", NULL);
    g_autoptr(GError) error = NULL;
    guint64 room, total;
    set_up();
    open_all();
    ops->space(suite.driver, suite.first, &room, &total, &error);
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 1, &error);
    g_assert_no_error(error);
    ops->copy(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.backups, RESOURCE_VOLUME,
              COPY, 1, &error);
    g_assert_no_error(error);
    ops->copy(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.second, RESOURCE_VOLUME, COPY,
              1, &error);
    g_assert_no_error(error);
    g_assert_true(g_file_set_contents(file, "sent", -1, NULL));
    receive(IMAGE "41", file, NULL);
    g_assert_true(g_file_get_contents(path, &said, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (guint i = 0; lines[i] && *lines[i]; i++) {
        /* What it does at directories alone has no configuration. */
        bool pool = strstr(lines[i], "--conf ") || strstr(lines[i], "\"conf\"");
        for (guint j = 0; pool && j < G_N_ELEMENTS(names); j++)
            seen[j] += g_str_has_prefix(lines[i], names[j]) && lines[i][strlen(names[j])] == ' ';
        if (pool && (!strstr(lines[i], all) || strstr(lines[i], conf) ||
                     !(geteuid() || strstr(lines[i], "NoNewPrivs:\t1"))))
            g_error("\"%s\" is not%sand without privileges", lines[i], all);
    }
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        if (!seen[i])
            g_error("%s was not seen at a pool", names[i]);
    tear_down();
}

/* What came, of any length, is what was sent; volumes are made of it, here and elsewhere. */
static void images(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct image_sums sums;
    g_autofree char *raw = g_build_filename(world_folder(), "raw", NULL);
    g_autofree char *qcow2 = g_build_filename(world_folder(), "qcow2", NULL);
    set_up();
    open_all();
    g_free(world_shell("printf '\\101%%.0s' $(seq 8279) >%s; qemu-img create -q -f qcow2 %s 1G; "
                       "qemu-io -c 'write -P 66 0 4k' %s",
                       raw, qcow2, qcow2));
    receive(IMAGE "11", raw, NULL);
    receive(IMAGE "12", qcow2, "127.0.0.1");
    g_assert_false(settle(IMAGE "11", FORMAT_RAW, qcow2, &sums, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_clear_error(&error);
    settle(IMAGE "11", FORMAT_RAW, raw, &sums, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(sums.size, ==, 8279);
    g_assert_cmpuint(sums.virtual_size, ==, 8279);
    settle(IMAGE "12", FORMAT_QCOW2, qcow2, &sums, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(sums.virtual_size, ==, GIB(1));
    download(IMAGE "11", FORMAT_RAW, suite.first, VOLUME ".31");
    download(IMAGE "12", FORMAT_QCOW2, suite.first, VOLUME ".32");
    download(IMAGE "11", FORMAT_RAW, suite.backups, VOLUME ".33");
    download(IMAGE "12", FORMAT_QCOW2, suite.backups, VOLUME ".34");
    assert_byte("volumes." VOLUME ".31", "4k", "65");
    assert_byte("volumes." VOLUME ".31", "9k", "0");
    assert_byte("volumes." VOLUME ".32", "0", "66");
    g_autofree char *there = world_shell("cd %s/volumes; cmp -n 8279 %s " VOLUME
                                         ".33; head -c 1 " VOLUME ".34; stat -c %%s *",
                                         suite.backups->path, raw);
    g_assert_cmpstr(there, ==, "B1073741824\n1073741824");
    tear_down();
}

/* Whoever could write to the pool has no other file read. */
static void hostile_images(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct image_sums sums;
    const struct image image = {.data = (char *)IMAGE "11", .disk_format = FORMAT_QCOW2};
    g_autofree char *qcow2 = g_build_filename(world_folder(), "based", NULL);
    set_up();
    open_all();
    g_free(world_shell("qemu-img create -q -f qcow2 -u -b /etc/passwd -F raw %s 1G", qcow2));
    receive(IMAGE "11", qcow2, NULL);
    g_assert_false(settle(IMAGE "11", FORMAT_QCOW2, qcow2, &sums, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_clear_error(&error);
    g_assert_false(
        ops->download(suite.driver, suite.first, &image, suite.first, VOLUME ".31", 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_clear_error(&error);
    tear_down();
}

/* What is said is not trusted: what is no answer is an error, what is no image of ours is none. */
static void garbled(void *unused)
{
    static const struct {
        const char *says;
        int found; /* -1: an error */
    } all[] = {
        {"", -1},
        {"no list\n", -1},
        {"[\"volumes." NAME "\"", -1},
        {"{\"a\":1,\"a\":2}\n", -1},
        {"{\"volumes." NAME "\":7}", -1},
        {"a warning\n[\"volumes." NAME "\",{\"image\":\"volumes." NAME
         "\",\"size\":-7}]\nanother\n",
         1},
        {"[\"volumes." NAME "\",7,{},null,{\"image\":7},{\"image\":\"volumes." NAME "\"}]", 1},
        {"[\"volumes.../" NAME "\",\"volumes\",\"volumes.\",\"../volumes." NAME "\",\"." NAME "\"]",
         0}};
    g_autofree char *path = g_build_filename(world_folder(), "says", NULL);
    set_up();
    open_all();
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(g_file_set_contents(path, all[i].says, -1, NULL));
        g_autoptr(GPtrArray) list = ops->list(suite.driver, suite.first, &error);
        g_assert_cmpint(list ? (int)list->len : -1, ==, all[i].found);
        for (guint j = 0; list && j < list->len; j++)
            g_assert_cmpuint(((struct volume_data *)list->pdata[j])->bytes, ==, 0);
        if (!list)
            g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    }
    g_assert_cmpint(unlink(path), ==, 0);
    tear_down();
}

static bool create(const char *name, GError **error)
{
    return ops->create(suite.driver, suite.first, RESOURCE_VOLUME, name, 1, error);
}

/* Each ends with the reason, and what comes after it is whole. */
static void fails(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    open_all();
    volumes_by_kind_free(suite.driver);
    suite.driver = volumes_by_kind_new(program, world_folder(), SHORT_MS);
    open_all();
    stand_still(true);
    assert_says(create(NAME, &error), &error,
                "ceph1: no answer within 4 s: it hangs; see to what is behind it, and ask again "
                "once it answers");
    stand_still(false);
    volumes_by_kind_free(suite.driver);
    suite.driver = volumes_by_kind_new(program, world_folder(), LIMIT_MS);
    open_all();
    g_free(world_shell("ceph -c %s auth get client.%s -o %s/key 2>&1", conf, CEPH_USER,
                       world_folder()));
    g_free(world_shell("ceph -c %s auth del client.%s 2>&1", conf, CEPH_USER));
    g_assert_false(create(VOLUME ".18", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_nonnull(strstr(error->message, "does not let client.fettle in"));
    g_clear_error(&error);
    g_free(world_shell("ceph -c %s auth import -i %s/key 2>&1", conf, world_folder()));
    create(VOLUME ".19", &error);
    g_assert_no_error(error);
    tear_down();
}

static void quota(const char *max_bytes, bool full)
{
    guint64 room = 0, total;
    g_free(world_shell("ceph -c %s osd pool set-quota rbd max_bytes %s 2>&1", conf, max_bytes));
    for (bool is = !full; is != full;) {
        g_autofree char *health = world_shell("ceph -c %s health detail", conf);
        bool told = ops->space(suite.driver, suite.first, &room, &total, NULL);
        is = told && strstr(health, "POOL_FULL") != NULL && room == 0;
    }
}

/* Who writes waits, and is told why in the end. */
static void full(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    open_all();
    create(NAME, &error);
    write_byte("volumes." NAME, "0", "65");
    quota("4096", true);
    volumes_by_kind_free(suite.driver);
    suite.driver = volumes_by_kind_new(program, world_folder(), SHORT_MS);
    open_all();
    g_assert_false(create(VOLUME ".18", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NO_RESOURCES);
    g_assert_cmpstr(error->message, ==, "ceph1: pool rbd is full");
    g_clear_error(&error);
    quota("0", false);
    create(VOLUME ".19", &error);
    g_assert_no_error(error);
    tear_down();
}

static int run_tests(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    start_ceph();
    put_programs();
    suite = (struct volume_suite){.set_up = set_up,
                                  .tear_down = tear_down,
                                  .run = world_run,
                                  .clones = true,
                                  .put = put,
                                  .hang = hang,
                                  .lock = lock};
    volume_suite_add("/volume-rbd", &suite);
    world_test("/volume-rbd/markers-of-pools#SAF-123", markers);
    world_test("/volume-rbd/garbled", garbled);
    world_test("/volume-rbd/bytes#SAF-52", bytes);
    world_test("/volume-rbd/images-in-pools#SAF-60", images);
    world_test("/volume-rbd/hostile-images#SAF-60", hostile_images);
    world_test("/volume-rbd/fails", fails);
    world_test("/volume-rbd/full#SAF-52", full);
    world_test("/volume-rbd/another-key", other_key);
    world_test("/volume-rbd/programs-are-nobody#SAF-110", users);
    return g_test_run();
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], DIR_CALL_OPTION) == 0)
        return dir_call_main(argc, argv);
    if (argc > 3 && strcmp(argv[1], RBD_EXPORT_OPTION) == 0)
        return rbd_export_main(argc, argv);
    program = g_file_read_link("/proc/self/exe", NULL);
    return world_main(argc, argv, run_tests);
}

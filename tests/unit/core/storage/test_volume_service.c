/* Volume services: who takes what, what becomes of it, and of those that hang or are replaced. */
#include <string.h>

#include "unit/core/world/volume_world.h"

static guint64 now(void)
{
    return (guint64)fake_now_ms(world.world);
}

static const struct storage_service *service_of(const char *host, const char *backend)
{
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, backend);
    return config_get(wconf_config(world.wconf), "storage_service", key, NULL);
}

static void test_registers(void)
{
    volumes_set_up(NULL);
    volumed_start(2); /* is not the first of dir1: only of dir2, which it may mark */
    fake_advance(world.world, 60000);
    g_assert_null(service_of("node2", DIR1));
    g_assert_nonnull(service_of("node2", DIR2));
    volumed_start(1);
    fake_advance(world.world, 20000);
    g_assert_nonnull(service_of("node1", DIR1));
    g_assert_nonnull(service_of("node2", DIR1));
    g_assert_null(service_of("node1", DIR2));
    volumed_start(3); /* none names it */
    fake_advance(world.world, 300000);
    g_assert_cmpint(service_of("node1", DIR1)->state, ==, STORAGE_UP);
    g_assert_cmpint(service_of("node2", DIR1)->state, ==, STORAGE_UP);
    volumes_tear_down();
}

/* CLN-02, 10, 66: each operation, to its end. */
static void test_operations(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    volume_ask("extend-volume", uuid, 5, "");
    volumes_work();
    assert_says(volume_said(uuid), "available 5 GiB");
    volumes_assert_clean();
    volume_ask("delete-volume", uuid, 0, "");
    volumes_work();
    assert_says(volume_said(uuid), "gone");
    volumes_assert_clean();
    volumes_tear_down();
}

static json_t *wish(const char *type, const char *operation, const char *what, const char *uuid)
{
    return json_make("{s:s,s:s,s:s}", "resource_type", type, "operation", operation, what, uuid);
}

static guint calls_of(const char *op, const char *uuid)
{
    guint count = 0;
    g_autofree char *part = g_strdup_printf(" %s %s.", op, uuid);
    for (guint i = 0; i < fake_volumes_calls(volumes)->len; i++)
        count += strstr(fake_volumes_calls(volumes)->pdata[i], part) != NULL;
    return count;
}

/* Copies of both kinds, and a volume that goes after its snapshots (CLN-60). */
static void test_snapshots(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    const char *snapshot = volume_ask_for(wish("Snapshot", "create-snapshot", "source", volume));
    volumes_work();
    assert_says(volume_said(snapshot), "available 2 GiB");
    const char *other = volume_ask_for(wish("Snapshot", "create-snapshot", "source", volume));
    const char *copy = volume_ask_for(
        with(wish("Volume", "create-volume", "source", snapshot), "size", json_integer(3)));
    volumes_work();
    assert_says(volume_said(copy), "available 3 GiB");
    g_assert_cmpuint(calls_of("copy", copy), ==, 1);
    g_assert_cmpuint(calls_of("create", copy), ==, 0);
    volumes_assert_clean();
    volume_ask_for(
        with(wish("Volume", "delete-volume", "resource", volume), "cascade", json_true()));
    volumes_work();
    assert_says(volume_said(volume), "gone");
    assert_says(volume_said(snapshot), "gone");
    assert_says(volume_said(other), "gone");
    assert_says(volume_said(copy), "available 3 GiB");
    volumes_assert_clean();
    volumes_tear_down();
}

/* What a volume has now, as a name of data and what is in it. */
static const struct volume *volume_of(const char *uuid)
{
    return config_get(wconf_config(world.wconf), "volume", uuid, NULL);
}

static const char *back_up(const char *volume)
{
    const char *backup = volume_ask_for(wish("Backup", "back-up-volume", "source", volume));
    volumes_work();
    assert_says(volume_said(backup), "available 2 GiB");
    return backup;
}

/* The volume changes and goes; its backup has what it had, and outlives it. */
static void test_backups(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    fake_volumes_write(volumes, volume_of(volume)->data);
    guint64 then = fake_volumes_content(volumes, volume_of(volume)->data);
    const char *backup = back_up(volume);
    g_assert_cmpint(volume_of(volume)->status, ==, VOLUME_AVAILABLE);
    fake_volumes_write(volumes, volume_of(volume)->data);
    g_autofree char *old = g_strdup(volume_of(volume)->data);
    volume_ask_for(
        with(wish("Backup", "restore-backup", "resource", backup), "target", json_string(volume)));
    volumes_work();
    assert_says(volume_said(volume), "available 2 GiB");
    g_assert_cmpstr(volume_of(volume)->data, !=, old);
    g_assert_cmpuint(fake_volumes_content(volumes, volume_of(volume)->data), ==, then);
    volumes_assert_clean(); /* what it had before went by the trash */
    volume_ask("delete-volume", volume, 0, "");
    volumes_work();
    assert_says(volume_said(backup), "available 2 GiB");
    volume_ask_for(
        with(wish("Backup", "restore-backup", "resource", backup), "commit_id", json_string(ID_B)));
    volumes_work();
    g_assert_cmpuint(fake_volumes_content(volumes, volume_of(ID_B)->data), ==, then);
    volume_ask_for(wish("Backup", "delete-backup", "resource", backup));
    volumes_work();
    assert_says(volume_said(backup), "gone");
    volumes_assert_clean();
    volumes_tear_down();
}

static const struct image *image_of(const char *uuid)
{
    return config_get(wconf_config(world.wconf), "image", uuid, NULL);
}

static json_t *of_image(const char *uuid)
{
    return with(wish("Volume", "create-volume", "image", uuid), "backend", json_string("dir1"));
}

/* A volume becomes an image, that another volume; each goes by itself, and a copy that fails leaves
 * nothing. */
static void test_images(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    fake_volumes_write(volumes, volume_of(volume)->data);
    guint64 then = fake_volumes_content(volumes, volume_of(volume)->data);
    json_t *args = wish("Volume", "upload-volume", "resource", volume);
    volume_ask_for(with(args, "commit_id", json_string(ID_A)));
    volumes_work();
    assert_says(volume_said(volume), "available 2 GiB");
    g_assert_cmpint(image_of(ID_A)->status, ==, IMAGE_ACTIVE);
    g_assert_cmpuint(image_of(ID_A)->size, ==, FAKE_BACKUP_BYTES);
    g_assert_cmpuint(fake_volumes_content(volumes, image_of(ID_A)->data), ==, then);
    volume_ask("delete-volume", volume, 0, "");
    volumes_work();
    const char *made = volume_ask_for(of_image(ID_A));
    volumes_work();
    assert_says(volume_said(made), "available 2 GiB");
    g_assert_cmpuint(fake_volumes_content(volumes, volume_of(made)->data), ==, then);
    fake_volumes_fail(volumes, "download", FETTLE_ERROR_CORRUPT, true, 1);
    const char *torn = volume_ask_for(of_image(ID_A));
    volumes_work();
    assert_says(volume_said(torn), "error 2 GiB, no data");
    volume_ask_for(wish("Image", "delete-image", "resource", ID_A));
    volumes_work();
    g_assert_null(image_of(ID_A));
    volumes_assert_clean();
    volumes_tear_down();
}

/* What is no more what it was is not restored; the volume has what it had, and why is said. */
static void test_bad_backup(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    const char *uuid = back_up(volume);
    g_autofree char *old = g_strdup(volume_of(volume)->data);
    const struct backup *backup = config_get(wconf_config(world.wconf), "backup", uuid, NULL);
    fake_volumes_write(volumes, backup->data);
    volume_ask_for(
        with(wish("Backup", "restore-backup", "resource", uuid), "target", json_string(volume)));
    volumes_work();
    assert_says(volume_said(volume), "available 2 GiB");
    g_assert_cmpstr(volume_of(volume)->data, ==, old);
    backup = config_get(wconf_config(world.wconf), "backup", uuid, NULL);
    g_assert_cmpint(backup->status, ==, BACKUP_AVAILABLE);
    g_assert_nonnull(strstr(backup->status_why, "is not what was written"));
    volumes_assert_clean();
    volumes_tear_down();
}

/* A sweep in mid-restore takes nothing that is being made: its row is another resource's. */
static void test_sweep_in_restore(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    const char *backup = back_up(volume);
    fake_advance(world.world, 3590 * 1000);
    fake_volumes_delay(volumes, 60 * 1000);
    volume_ask_for(
        with(wish("Backup", "restore-backup", "resource", backup), "target", json_string(volume)));
    fake_advance(world.world, 30 * 60 * 1000);
    fake_volumes_delay(volumes, 0);
    volumes_work();
    assert_says(volume_said(volume), "available 2 GiB");
    volumes_assert_clean();
    volumes_tear_down();
}

/* One of its snapshots does not go, so neither does it. */
static void test_cascade_fails(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    const char *snapshot = volume_ask_for(wish("Snapshot", "create-snapshot", "source", volume));
    volumes_work();
    fake_volumes_fail(volumes, "remove", FETTLE_ERROR_STORAGE, false, 1);
    volume_ask_for(
        with(wish("Volume", "delete-volume", "resource", volume), "cascade", json_true()));
    volumes_work();
    assert_says(volume_said(snapshot), "error_deleting 2 GiB, no data");
    assert_says(volume_said(volume), "error_deleting 2 GiB");
    volume_ask_for(
        with(wish("Volume", "delete-volume", "resource", volume), "cascade", json_true()));
    volumes_work();
    assert_says(volume_said(volume), "gone");
    volumes_assert_clean();
    volumes_tear_down();
}

/* SAF-120: its source was reset while it was copied; what was made is swept. */
static void test_source_moves(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    fake_volumes_delay(volumes, 5000);
    const char *snapshot = volume_ask_for(wish("Snapshot", "create-snapshot", "source", volume));
    fake_advance(world.world, 2000);
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", volume,
                                 "status", "error")));
    volumes_work();
    assert_says(volume_said(snapshot), "error 2 GiB, no data");
    fake_advance(world.world, 60000);
    volumes_assert_clean();
    volumes_tear_down();
}

static void test_create_fails(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    fake_advance(world.world, 1000);
    fake_volumes_make_half(volumes, 1);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    const struct volume *volume = config_get(wconf_config(world.wconf), "volume", uuid, NULL);
    g_assert_cmpstr(volume->status_why, ==, "dir1: it was made by half");
    fake_advance(world.world, 60000); /* what is left is swept */
    volumes_assert_clean();
    volume_ask("delete-volume", uuid, 0, "");
    volumes_work();
    assert_says(volume_said(uuid), "gone");
    volumes_tear_down();
}

static const char *made(void)
{
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    return uuid;
}

static const char *data_of(const char *uuid)
{
    return g_intern_string(
        ((const struct volume *)config_get(wconf_config(world.wconf), "volume", uuid, NULL))->data);
}

static void test_extend_fails(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *uuid = made();
    fake_volumes_fail(volumes, "grow", FETTLE_ERROR_NO_RESOURCES, false, 1);
    volume_ask("extend-volume", uuid, 3, "");
    volumes_work();
    assert_says(volume_said(uuid), "error_extending 2 GiB");
    volumes_tear_down();
}

#define ITS_NAME VOLUME1 ".7"
#define GIB(n) ((guint64)(n) << 30)

/* A node whose hypervisor cuts the data to what it is told, as QEMU does, and is told by what the
 * node has seen. */
struct guest_node {
    guint64 knows;
    guint64 seen; /* for an extension of before, which the hypervisor carries out first; 0: none */
    guint silent; /* so often it does not answer */
    guint asked;
    bool forgets; /* each word of it cuts the data */
};

static json_t *answer_grown(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    struct guest_node *node = data;
    node->asked++;
    if (node->seen > node->knows || node->forgets) {
        node->knows = node->seen;
        fake_volumes_put(volumes, DIR1, ITS_NAME, node->seen, true);
    }
    if (node->silent > 0) {
        node->silent--;
        fettle_set_error(error, TIMEOUT, "silent");
        return NULL;
    }
    node->knows = MAX(node->knows, fake_volumes_bytes(volumes, ITS_NAME));
    return json_object();
}

static struct volumed *with_guest(struct guest_node *node)
{
    json_t *attached = with(object_volume1(), "attachments",
                            json_make("[{s:s,s:s,s:i,s:s}]", "uuid", VOLUME2, "instance", WEB1,
                                      "slot", 30, "state", "attached"));
    volumes_set_up(changes_of(put("volume", VOLUME1, 1, attached), NULL));
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    fake_volumes_put(volumes, DIR1, ITS_NAME, GIB(2), true);
    fake_script(world.world, NODE1, ROLE_NODED, "volume_grown", fake_answer_nothing, NULL);
    fake_script(world.world, NODE2, ROLE_NODED, "volume_grown", answer_grown, node);
    struct volumed *process = volumed_start(1);
    volume_ask("extend-volume", VOLUME1, 5, "");
    return process;
}

/* Its guest is told, on whichever of the nodes it is, and data that an earlier word of a node has
 * cut is made as large again. A node that never answers keeps nobody from it. */
static void test_extend_attached(void)
{
    struct guest_node cases[] = {{GIB(2), 0, 0, 0},
                                 {GIB(2), GIB(3), 0, 0},
                                 {GIB(2), 0, 2, 0},
                                 {GIB(2), GIB(3), 1, 0},
                                 {GIB(2), 0, 99, 0}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        with_guest(&cases[i]);
        volumes_work();
        assert_says(volume_said(VOLUME1), "available 5 GiB");
        g_assert_cmpuint(fake_volumes_bytes(volumes, ITS_NAME), ==, GIB(5));
        g_assert_cmpuint(cases[i].knows, ==, cases[i].silent ? GIB(2) : GIB(5));
        g_assert_cmpuint(cases[i].asked, >, 0);
        volumes_tear_down();
    }
}

/* Data that is cut whatever is done is not said to be larger, told or not. */
static void test_extend_cut_again(void)
{
    for (guint silent = 0; silent < 2; silent++) {
        struct guest_node node = {
            .knows = GIB(2), .seen = GIB(3), .silent = silent * 99, .forgets = true};
        with_guest(&node);
        volumes_work();
        assert_says(volume_said(VOLUME1), "error_extending 2 GiB");
        g_assert_nonnull(strstr(volume_of(VOLUME1)->status_why, "shorter than it was made"));
        volumes_tear_down();
    }
}

/* Who ends it for a process that has died looks as that one would have. */
static void test_extend_dies(void)
{
    struct guest_node node = {.knows = GIB(2), .silent = 1};
    struct volumed *process = with_guest(&node);
    for (guint i = 0; i < 100 && !node.asked; i++)
        fake_advance(world.world, 100);
    volumed_kill(process);
    node.seen = GIB(3);
    volumed_start(1);
    volumes_work();
    assert_says(volume_said(VOLUME1), "available 5 GiB");
    g_assert_cmpuint(fake_volumes_bytes(volumes, ITS_NAME), ==, GIB(5));
    g_assert_cmpuint(node.knows, ==, GIB(5));
    volumes_tear_down();
}

/* #SAF-53: what a guest has open stays, as trash, until it is free. */
static void test_delete_of_what_is_open(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *uuid = made();
    const char *name = data_of(uuid);
    fake_volumes_lock(volumes, name, true);
    volume_ask("delete-volume", uuid, 0, "");
    volumes_work();
    assert_says(volume_said(uuid), "gone");
    g_assert_true(fake_volumes_has(volumes, name));
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "trash"), ==, 1);
    fake_volumes_lock(volumes, name, false);
    fake_advance(world.world, 3700 * 1000);
    volumes_assert_clean();
    volumes_tear_down();
}

static void test_delete_fails(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *uuid = made();
    fake_volumes_fail(volumes, "remove", FETTLE_ERROR_STORAGE, false, 1);
    volume_ask("delete-volume", uuid, 0, "");
    volumes_work();
    assert_says(volume_said(uuid), "error_deleting 2 GiB, no data");
    volume_ask("delete-volume", uuid, 0, "");
    volumes_work();
    assert_says(volume_said(uuid), "gone");
    fake_advance(world.world, 60000);
    volumes_assert_clean();
    volumes_tear_down();
}

/* One that hangs holds up neither its other back end nor, for more than some seconds, the first. */
static void test_hangs(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    volumed_start(2);
    fake_advance(world.world, 30000);
    fake_volumes_hang(volumes, DIR1, true);
    const char *hung[6];
    for (guint i = 0; i < G_N_ELEMENTS(hung); i++)
        hung[i] = volume_ask("create-volume", "", 1, "dir1");
    const char *other = volume_ask("create-volume", "", 1, "dir2");
    fake_advance(world.world, 5000);
    assert_says(volume_said(other), "available 1 GiB");
    for (guint i = 0; i < G_N_ELEMENTS(hung); i++)
        assert_says(volume_said(hung[i]), "creating 1 GiB, no data");
    guint64 begun = now();
    volumes_work();
    g_assert_cmpuint(now() - begun, <, 10 * FAKE_VOLUME_LIMIT_MS);
    for (guint i = 0; i < G_N_ELEMENTS(hung); i++)
        assert_says(volume_said(hung[i]), "error 1 GiB, no data");
    fake_volumes_hang(volumes, DIR1, false);
    fake_advance(world.world, 1000);
    made();
    volumes_tear_down();
}

static const char *restore(const char *backup)
{
    g_autofree char *id = env_uuid(storage_cli);
    volume_ask_for(with(
        with(wish("Backup", "restore-backup", "resource", backup), "backend", json_string("dir2")),
        "commit_id", json_string(id)));
    return g_intern_string(id);
}

/* What is read from one that hangs waits, and the back end that is to get it goes on. */
static void test_source_hangs(void)
{
    const char *backups[8], *restored[G_N_ELEMENTS(backups)];
    guint waiting = 0;
    volumes_set_up(NULL);
    volumed_start(1);
    volumed_start(2);
    const char *volume = volume_ask("create-volume", "", 2, "dir2");
    volumes_work();
    for (guint i = 0; i < G_N_ELEMENTS(backups); i++)
        backups[i] = back_up(volume); /* on dir1 */
    fake_volumes_hang(volumes, DIR1, true);
    for (guint i = 0; i < G_N_ELEMENTS(backups); i++)
        restored[i] = restore(backups[i]);
    fake_advance(world.world, 10 * FAKE_VOLUME_LIMIT_MS);
    const char *other = volume_ask("create-volume", "", 1, "dir2");
    fake_advance(world.world, 5000);
    assert_says(volume_said(other), "available 1 GiB");
    for (guint i = 0; i < G_N_ELEMENTS(backups); i++)
        waiting += volume_of(restored[i])->status == VOLUME_RESTORING_BACKUP;
    g_assert_cmpuint(waiting, >, LIMIT_BACKEND_CHILDREN);
    fake_volumes_hang(volumes, DIR1, false);
    volumes_work();
    for (guint i = 0; i < G_N_ELEMENTS(backups); i++)
        waiting -= volume_of(restored[i])->status == VOLUME_AVAILABLE;
    g_assert_cmpuint(waiting, ==, 0);
    volumes_tear_down();
}

/* The place that is read is not mounted there: whoever has it takes the row. */
static void test_source_not_mounted(void)
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA512, "0", -1);
    json_t *backup = with(object_backup(ID_A, 1), "sum", json_string(sum));
    volumes_set_up(changes_of(put("backup", ID_A, 1, backup), NULL));
    fake_volumes_put_as(volumes, DIR1, RESOURCE_BACKUP, ID_A ".8", 1, true);
    volumed_start(2);
    const char *volume = restore(ID_A);
    fake_advance(world.world, 10 * 60 * 1000);
    assert_says(volume_said(volume), "restoring-backup 2 GiB, no data");
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    volumes_work();
    assert_says(volume_said(volume), "available 2 GiB");
    volumes_tear_down();
}

/* CLN-10: of two that are up each row is taken by one, at once; of one that is stopped the other
 * takes what was its turn. */
static void test_shares(void)
{
    volumes_set_up(NULL);
    struct volumed *first = volumed_start(1);
    volumed_start(2);
    fake_advance(world.world, 30000);
    for (guint i = 0; i < 20; i++)
        volume_ask("create-volume", "", 1, "dir1");
    volumes_work();
    g_autofree char *by_first = g_strdup(NODE1 " create ");
    guint count = 0;
    for (guint i = 0; i < fake_volumes_calls(volumes)->len; i++)
        count += g_str_has_prefix(fake_volumes_calls(volumes)->pdata[i], by_first) ? 1 : 0;
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "create"), ==, 20);
    g_assert_cmpuint(count, >, 0);
    g_assert_cmpuint(count, <, 20);
    fake_pause(first->env);
    for (guint i = 0; i < 8; i++)
        volume_ask("create-volume", "", 1, "dir1");
    fake_advance(world.world, 6000);
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), ==, 0);
    volumes_assert_clean();
    volumes_tear_down();
}

/* #SAF-123 */
static void test_not_mounted(void)
{
    volumes_set_up(NULL);
    struct volumed *first = volumed_start(1);
    made();
    volumed_kill(first);
    fake_volumes_unmount(volumes, NODE1, true);
    struct volumed *again = volumed_start(1);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    fake_advance(world.world, 60000);
    assert_says(volume_said(uuid), "creating 2 GiB, no data"); /* it waits */
    fake_volumes_unmount(volumes, NODE1, false);
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    g_assert_null(again->ended);
    volumes_tear_down();
}

static json_t *backend_of(const char *first, const char *second)
{
    json_t *nodes = second ? json_make("[s,s]", first, second) : json_make("[s]", first);
    return with(object_backend(DIR1), "nodes", nodes);
}

static guint64 version_of(const char *kind, const char *key)
{
    guint64 version = 0;
    config_get(wconf_config(world.wconf), kind, key, &version);
    return version;
}

static void change_nodes(const char *first, const char *second)
{
    g_free(job_locks(&world, 17, "x cluster", false));
    g_autofree char *said = job_change(
        &world, 17, "change_backend",
        changes_of(put("backend", DIR1, version_of("backend", DIR1), backend_of(first, second)),
                   NULL));
    g_assert_nonnull(strstr(said, "serial"));
}

/* Back ends come and go while it runs, and that ends no process. */
static void test_comes_and_goes(void)
{
    volumes_set_up(NULL);
    struct volumed *first = volumed_start(1);
    struct volumed *third = volumed_start(3);
    made();
    change_nodes(NODE1, NODE3);
    fake_advance(world.world, 20000);
    g_assert_nonnull(service_of("node3", DIR1));
    change_nodes(NODE3, NULL);
    fake_advance(world.world, 200000);
    g_assert_null(service_of("node1", DIR1));
    made();
    change_nodes(NODE1, NODE3);
    fake_advance(world.world, 20000);
    g_assert_cmpint(service_of("node1", DIR1)->state, ==, STORAGE_UP);
    g_assert_null(first->ended);
    g_assert_null(third->ended);
    volumes_tear_down();
}

/* #SAF-56: of two processes of one name the first ends. */
static void test_replaced(void)
{
    volumes_set_up(NULL);
    struct volumed *first = volumed_start(1);
    fake_advance(world.world, 1000);
    struct volumed *second = volumed_start(1);
    fake_advance(world.world, 30000);
    g_assert_nonnull(first->ended);
    g_assert_null(second->ended);
    volumes_tear_down();
}

/* The next master has never heard of it, or of its former process only. */
static void test_registration_lost(void)
{
    for (guint former = 0; former < 2; former++) {
        volumes_set_up(NULL);
        guint64 left = config_serial(wconf_config(world.wconf));
        struct volumed *process = volumed_start(1);
        fake_advance(world.world, 30000);
        if (former) {
            left = service_of("node1", DIR1)->generation;
            volumed_kill(process);
            process = volumed_start(1);
            fake_advance(world.world, 30000);
            g_assert_cmpuint(service_of("node1", DIR1)->generation, >, left);
        }
        g_autoptr(GPtrArray) nothing = changes_of(put("node", NODE3, 0, object_node(NODE3)), NULL);
        config_world_restart(&world);
        fake_engine_lose(world.engine, left, nothing);
        config_world_start(&world);
        made();
        g_assert_null(process->ended);
        fake_advance(world.world, 300000);
        g_assert_cmpint(service_of("node1", DIR1)->state, ==, STORAGE_UP);
        volumes_tear_down();
    }
}

/* #SAF-123: a record without a service, yet somebody has worked there. */
static void test_marks_no_other(void)
{
    g_autofree char *key = config_trash_key(DIR1, VOLUME1 ".1");
    struct change *claimed = put("worker", ROW1, 1, with(object_row1(), "claim", json_integer(1)));
    struct change *signs[] = {put("trash", key, 1, object_trash(VOLUME1 ".1")), claimed};
    for (guint i = 0; i < G_N_ELEMENTS(signs); i++) {
        volumes_set_up(
            changes_of(put("volume", VOLUME1, 1,
                           with(with(object_volume1(), "status", json_string("creating")), "data",
                                json_string(""))),
                       signs[i], NULL));
        volumed_start(1);
        fake_advance(world.world, 60000);
        g_assert_null(service_of("node1", DIR1));
        volumes_tear_down();
    }
}

/* wconfd dies and comes again: what is under way goes on, and each call is answered once. */
static void test_restarts_of_wconfd(void)
{
    volumes_set_up(NULL);
    struct volumed *process = volumed_start(1);
    fake_advance(world.world, 1000);
    fake_volumes_delay(volumes, 5000);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    fake_advance(world.world, 2000);
    storage_restart();
    fake_advance(world.world, 20000);
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    g_assert_null(process->ended);
    volumes_assert_clean();
    volumes_tear_down();
}

static json_t *refuses(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    ++*(guint *)data;
    fettle_set_error(error, PROTOCOL, "wconfd has no method take_work");
    return NULL;
}

/* Whatever is refused for good is asked for again, and not all the time. */
static void test_take_refused(void)
{
    guint asked = 0;
    volumes_set_up(NULL);
    volumed_start(1);
    fake_advance(world.world, 1000);
    fake_script(world.world, NULL, ROLE_WCONFD, "take_work", refuses, &asked);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    fake_advance(world.world, 60000);
    g_assert_cmpuint(asked, >, 1);
    g_assert_cmpuint(asked, <=, 13);
    fake_script(world.world, NULL, ROLE_WCONFD, "take_work", NULL, NULL);
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    volumes_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-service/registers", test_registers);
    g_test_add_func("/volume-service/snapshots#CLN-60", test_snapshots);
    g_test_add_func("/volume-service/backups#SAF-53", test_backups);
    g_test_add_func("/volume-service/images#SAF-60", test_images);
    g_test_add_func("/volume-service/bad-backup#SAF-53", test_bad_backup);
    g_test_add_func("/volume-service/sweep-in-restore#SAF-54", test_sweep_in_restore);
    g_test_add_func("/volume-service/cascade-fails#CLN-60", test_cascade_fails);
    g_test_add_func("/volume-service/source-moves#SAF-120", test_source_moves);
    g_test_add_func("/volume-service/operations#CLN-02", test_operations);
    g_test_add_func("/volume-service/create-fails", test_create_fails);
    g_test_add_func("/volume-service/extend-fails", test_extend_fails);
    g_test_add_func("/volume-service/extend-attached#SAF-53", test_extend_attached);
    g_test_add_func("/volume-service/extend-cut-again#SAF-53", test_extend_cut_again);
    g_test_add_func("/volume-service/extend-dies#SAF-53", test_extend_dies);
    g_test_add_func("/volume-service/delete-of-what-is-open#SAF-53", test_delete_of_what_is_open);
    g_test_add_func("/volume-service/delete-fails", test_delete_fails);
    g_test_add_func("/volume-service/hangs", test_hangs);
    g_test_add_func("/volume-service/source-hangs", test_source_hangs);
    g_test_add_func("/volume-service/source-not-mounted#SAF-123", test_source_not_mounted);
    g_test_add_func("/volume-service/shares#CLN-10", test_shares);
    g_test_add_func("/volume-service/not-mounted#SAF-123", test_not_mounted);
    g_test_add_func("/volume-service/comes-and-goes", test_comes_and_goes);
    g_test_add_func("/volume-service/replaced#SAF-56", test_replaced);
    g_test_add_func("/volume-service/registration-lost#SAF-56", test_registration_lost);
    g_test_add_func("/volume-service/marks-no-other#SAF-123", test_marks_no_other);
    g_test_add_func("/volume-service/restarts-of-wconfd", test_restarts_of_wconfd);
    g_test_add_func("/volume-service/take-refused", test_take_refused);
    return g_test_run();
}

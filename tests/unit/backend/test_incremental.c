/*
 * Replicas of real guests that were away and are brought up to date: exactly what was written
 * meanwhile is copied, both copies are equal then, and nothing that was printed is ever missing.
 *
 * How it is seen what was copied: while the replica is away every block of it that the guest never
 * writes gets another content. A copy of everything mends that, a copy of what was written does
 * not.
 */
#include "world.h"

#include "backend/hypervisor/qemu_private.h"
#include "helper/patience.h"
#include "io/files.h"
#include "io/process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define REPLICA "22222222-2222-4222-8222-222222222222"
#define REPLICA_2 "33333333-3333-4333-8333-333333333333"
#define IMAGES "55555555-5555-4555-8555-555555555555"
#define IMAGES_2 "66666666-6666-4666-8666-666666666666"

#define SIZE_MIB 8
#define GUESTS_BYTES (576 * 1024) /* where the guest writes, in whole blocks of 64 KiB */
#define MARK 0xa5
#define PAGE 4096

struct pair {
    struct world_node *primary, *secondary;
    struct instance *web1;
    struct export_target *target;
    guint round; /* of exports, for their names */
};

static struct hypervisor *hv_of(const struct pair *pair)
{
    return pair->primary->hypervisor;
}

static char *image(const struct pair *pair, const char *replica, guint disk)
{
    const struct world_node *node = *replica ? pair->secondary : pair->primary;
    return g_strdup_printf("%s/disks/%s%s%s.disk%u.raw", node->paths->var, pair->web1->uuid,
                           *replica ? "." : "", replica, disk);
}

/* `lazily`: nothing that is confirmed is on stable storage, as it is while a replica is copied to.
 */
static void open_exports_as(struct pair *pair, const char *replica, const char *words, bool lazily)
{
    struct storage *storage = pair->secondary->storage;
    g_autoptr(GError) error = NULL;
    export_target_free(pair->target);
    pair->target = NULL;
    storage->ops->export_open(storage, 1, pair->web1->uuid, replica, pair->web1->generation,
                              pair->web1->disks, "127.0.0.1", !lazily, &pair->target, &error);
    g_assert_no_error(error);
    g_free(pair->target->images);
    pair->target->images = g_strdup(words);
}

static void open_exports(struct pair *pair, const char *replica, const char *words)
{
    open_exports_as(pair, replica, words, false);
}

static void close_exports(struct pair *pair, const char *replica)
{
    struct storage *storage = pair->secondary->storage;
    g_autoptr(GError) error = NULL;
    storage->ops->export_close(storage, pair->web1->uuid, replica, &error);
    g_assert_no_error(error);
}

static void attach(struct pair *pair, enum mirror_copy copy)
{
    g_autoptr(GError) error = NULL;
    hv_of(pair)->ops->mirror_start(hv_of(pair), pair->web1->uuid, pair->web1->generation,
                                   pair->target, copy, &error);
    g_assert_no_error(error);
}

static void release(struct pair *pair)
{
    g_autoptr(GError) error = NULL;
    hv_of(pair)->ops->mirror_release(hv_of(pair), pair->web1->uuid, pair->web1->generation, &error);
    g_assert_no_error(error);
}

static void await_counts(const struct pair *pair, guint more)
{
    guint32 printed = world_printed(pair->primary, pair->web1);
    g_assert_true(world_await_count(pair->primary, pair->web1, printed + more));
}

/* Number of the bitmaps that are known to tell everything, as it is kept. */
static guint written(const struct pair *pair)
{
    g_autofree char *path =
        g_build_filename(pair->primary->paths->run, "guests", pair->web1->uuid, "state.json", NULL);
    g_autofree char *text = files_read_path(path, 1 << 20, NULL, NULL);
    json_autoptr json = json_parse_limited(text, strlen(text), 1 << 20, NULL);
    return (guint)json_integer_value(
        json_object_get(json_object_get(json, "incremental"), "written"));
}

/* As the mirror's watch does while the replica is on record as in-sync; until there are others than
 * `before`. */
static guint remember(const struct pair *pair, guint before)
{
    for (guint i = 0; i < 3000 && written(pair) == before; i++) {
        g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_READY));
        hv_of(pair)->ops->mirror_remember(hv_of(pair), pair->web1->uuid, pair->web1->generation);
        loop_sleep(20);
    }
    g_assert_cmpuint(written(pair), !=, before);
    return written(pair);
}

static struct pair *pair_new(const char *name, guint disks)
{
    struct pair *pair = g_new0(struct pair, 1);
    g_autofree char *second = g_strconcat(name, "-2", NULL);
    pair->primary = world_node_new(name);
    pair->secondary = world_node_new(second);
    pair->web1 = world_instance(disks, 1);
    for (guint i = 0; i < disks; i++)
        ((struct disk *)pair->web1->disks->pdata[i])->size = SIZE_MIB;
    world_create(pair->primary, pair->web1, "");
    world_create(pair->secondary, pair->web1, REPLICA);
    open_exports(pair, REPLICA, IMAGES);
    world_prepare(pair->primary, pair->web1, NULL);
    attach(pair, COPY_EVERYTHING);
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_READY));
    world_go(pair->primary, pair->web1, 5);
    return pair;
}

static void pair_free(struct pair *pair)
{
    world_end(pair->primary, pair->web1);
    close_exports(pair, pair->target->replica);
    world_node_free(pair->primary);
    world_node_free(pair->secondary);
    instance_free(pair->web1);
    export_target_free(pair->target);
    g_free(pair);
}

/* Its node is cut off: the guest freezes until it is released, and goes on. */
static void lose(struct pair *pair)
{
    guint64 pid = world_export_pid(pair->secondary, pair->web1, pair->target->replica, 0);
    kill((pid_t)pid, SIGKILL);
    world_await_gone(pid);
    close_exports(pair, pair->target->replica);
    loop_sleep(50);
    release(pair);
}

/* One that was in sync on record, and whose replica is away. */
static struct pair *pair_lost(const char *name)
{
    struct pair *pair = pair_new(name, 1);
    remember(pair, 0);
    lose(pair);
    return pair;
}

/* It is there again, and gets what was written since. */
static void copy_again(struct pair *pair)
{
    open_exports(pair, REPLICA, IMAGES);
    attach(pair, COPY_WRITTEN_SINCE);
}

/* --- what was copied --- */

static void write_marks(const struct pair *pair, const char *replica)
{
    g_autofree guint8 *marks = g_malloc(SIZE_MIB << 20);
    memset(marks, MARK, SIZE_MIB << 20);
    for (guint i = 0; i < pair->web1->disks->len; i++) {
        g_autofree char *path = image(pair, replica, i);
        off_t from = i == 0 ? GUESTS_BYTES : 0;
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        size_t count = (SIZE_MIB << 20) - (size_t)from;
        g_assert_cmpint(pwrite(fd, marks, count, from), ==, (gssize)count);
        close(fd);
    }
}

static guint8 *read_image(const struct pair *pair, const char *replica, guint disk)
{
    g_autofree char *path = image(pair, replica, disk);
    char *content = NULL;
    gsize len = 0;
    g_assert_true(g_file_get_contents(path, &content, &len, NULL));
    g_assert_cmpuint(len, ==, SIZE_MIB << 20);
    return (guint8 *)content;
}

/* Of the bytes that were marked. */
static guint marks_left(const struct pair *pair, const char *replica)
{
    guint left = 0;
    for (guint i = 0; i < pair->web1->disks->len; i++) {
        g_autofree guint8 *content = read_image(pair, replica, i);
        for (guint at = i == 0 ? GUESTS_BYTES : 0; at < SIZE_MIB << 20; at++)
            left += content[at] == MARK;
    }
    return left;
}

static guint marks_of(const struct pair *pair)
{
    return (SIZE_MIB << 20) * pair->web1->disks->len - GUESTS_BYTES;
}

/* Where the guest writes both copies are equal once it is paused and its mirror ended in sync; what
 * it never wrote is as it was marked, or as on the primary. */
static void finish_and_compare(struct pair *pair, const char *replica, bool marked)
{
    g_autoptr(GError) error = NULL;
    hv_of(pair)->ops->pause(hv_of(pair), pair->web1->uuid, pair->web1->generation, &error);
    g_assert_no_error(error);
    hv_of(pair)->ops->mirror_finish(hv_of(pair), pair->web1->uuid, pair->web1->generation, &error);
    g_assert_no_error(error);
    world_end(pair->primary, pair->web1);
    close_exports(pair, replica);
    g_autofree guint8 *a = read_image(pair, "", 0);
    g_autofree guint8 *b = read_image(pair, replica, 0);
    g_assert_cmpint(memcmp(a, b, GUESTS_BYTES), ==, 0);
    g_assert_cmpuint(marks_left(pair, replica), ==, marked ? marks_of(pair) : 0);
    world_assert_whole(pair->secondary, pair->web1, replica, pair->primary);
}

/* --- the way it is meant --- */

static void await_ready(const struct pair *pair)
{
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_READY));
}

/* `marked`: what the guest never wrote is still as it was marked. */
static void end_of_copy(struct pair *pair, const char *replica, bool marked)
{
    await_ready(pair);
    await_counts(pair, 5);
    finish_and_compare(pair, replica, marked);
    pair_free(pair);
}

/* Twice, since what is remembered must stay true through the first time. */
static void what_was_written(void *disks)
{
    struct pair *pair = pair_new("written", GPOINTER_TO_UINT(disks));
    guint number = remember(pair, 0);
    for (guint round = 0; round < 2; round++) {
        await_counts(pair, 20); /* what the replica has is not to be copied again */
        lose(pair);
        await_counts(pair, 20);
        write_marks(pair, REPLICA);
        copy_again(pair);
        await_ready(pair);
        await_counts(pair, 20);
        world_assert_whole(pair->secondary, pair->web1, REPLICA, pair->primary);
        g_assert_cmpuint(marks_left(pair, REPLICA), ==, marks_of(pair));
        /* Others take their place, which know no more of the time without the replica. */
        number = remember(pair, number);
    }
    finish_and_compare(pair, REPLICA, true);
    pair_free(pair);
}

/* A guest that is paused stays so. */
static void of_a_paused_guest(void *unused)
{
    struct pair *pair = pair_lost("paused");
    g_autoptr(GError) error = NULL;
    await_counts(pair, 10);
    g_assert_true(hv_of(pair)->ops->pause(hv_of(pair), pair->web1->uuid, 1, &error));
    write_marks(pair, REPLICA);
    copy_again(pair);
    await_ready(pair);
    g_assert_cmpint(world_state(pair->primary, pair->web1), ==, GUEST_PAUSED);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    g_assert_true(hv_of(pair)->ops->run(hv_of(pair), pair->web1->uuid, 1, &error));
    await_counts(pair, 10);
    finish_and_compare(pair, REPLICA, true);
    pair_free(pair);
}

/* --- what is not known is copied as a whole --- */

static void attach_everything(struct pair *pair, const char *replica)
{
    write_marks(pair, replica);
    attach(pair, COPY_WRITTEN_SINCE);
    end_of_copy(pair, replica, false);
}

static void never_in_sync_on_record(void *unused)
{
    struct pair *pair = pair_new("never", 1);
    lose(pair);
    open_exports(pair, REPLICA, IMAGES);
    attach_everything(pair, REPLICA);
}

static void other_images(void *unused)
{
    struct pair *pair = pair_lost("other");
    open_exports(pair, REPLICA, IMAGES_2);
    attach_everything(pair, REPLICA);
}

static void unknown_images(void *unused)
{
    struct pair *pair = pair_lost("unknown");
    open_exports(pair, REPLICA, "");
    attach_everything(pair, REPLICA);
}

static void other_replica(void *unused)
{
    struct pair *pair = pair_lost("replaced");
    world_create(pair->secondary, pair->web1, REPLICA_2);
    open_exports(pair, REPLICA_2, IMAGES);
    attach_everything(pair, REPLICA_2);
}

static void guest_restarted(void *unused)
{
    struct pair *pair = pair_lost("restarted");
    world_end(pair->primary, pair->web1);
    pair->web1->generation = 2;
    world_prepare(pair->primary, pair->web1, NULL);
    world_go(pair->primary, pair->web1, world_printed(pair->primary, pair->web1) + 5);
    open_exports(pair, REPLICA, IMAGES);
    attach_everything(pair, REPLICA);
}

/* A full copy that was asked for leaves nothing of what was known before, also if it is cut off. */
static void full_copy_was_cut_off(void *unused)
{
    struct pair *pair = pair_lost("cutoff");
    open_exports(pair, REPLICA, IMAGES);
    attach(pair, COPY_EVERYTHING);
    lose(pair);
    open_exports(pair, REPLICA, IMAGES);
    attach_everything(pair, REPLICA);
}

/* --- lost again --- */

/* At any moment of it, by the death of the export or (odd rounds) by its silence. The guest goes on
 * each time, and what is known stays true. */
static void lost_again(void *unused)
{
    struct pair *pair = pair_lost("again");
    write_marks(pair, REPLICA);
    for (guint round = 0; round < 12; round++) {
        copy_again(pair);
        loop_sleep((guint)g_test_rand_int_range(0, 40));
        pid_t pid = (pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0);
        kill(pid, round % 2 != 0 ? SIGSTOP : SIGKILL);
        loop_sleep((guint)g_test_rand_int_range(0, 100));
        release(pair);
        g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_NONE));
        await_counts(pair, 5);
        g_assert_cmpint(world_state(pair->primary, pair->web1), ==, GUEST_RUNNING);
        kill(pid, SIGKILL);
        close_exports(pair, REPLICA);
    }
    copy_again(pair);
    end_of_copy(pair, REPLICA, true);
}

/* The power of its node is cut: of what was confirmed since `before` each block of 4 KiB is there
 * or not, as it happens. */
static void lose_lazy_writes(const struct pair *pair, const guint8 *before)
{
    g_autofree guint8 *now = read_image(pair, REPLICA, 0);
    g_autofree char *path = image(pair, REPLICA, 0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (guint at = 0; at < SIZE_MIB << 20; at += PAGE)
        if (memcmp(now + at, before + at, PAGE) != 0 && g_test_rand_bit())
            g_assert_cmpint(pwrite(fd, before + at, PAGE, at), ==, PAGE);
    close(fd);
}

static enum mirror_state mirror_of(const struct pair *pair)
{
    struct mirror_info mirror;
    enum guest_state state;
    g_autoptr(GError) error = NULL;
    hv_of(pair)->ops->query(hv_of(pair), pair->web1->uuid, 1, &state, &mirror, &error);
    g_assert_no_error(error);
    return mirror.state;
}

/* A copy that has begun, and is over by a power cut at any moment of it. True: it was in the middle
 * of it, and had got something there. */
static bool cut_in_mid_copy(struct pair *pair)
{
    g_autofree guint8 *before = read_image(pair, REPLICA, 0);
    open_exports_as(pair, REPLICA, IMAGES, true);
    attach(pair, COPY_WRITTEN_SINCE);
    loop_sleep((guint)g_test_rand_int_range(0, 40));
    enum mirror_state state = mirror_of(pair);
    lose(pair);
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_NONE));
    g_autofree guint8 *after = read_image(pair, REPLICA, 0);
    lose_lazy_writes(pair, before);
    await_counts(pair, 3);
    return state == MIRROR_SYNCING && memcmp(before, after, SIZE_MIB << 20) != 0;
}

/* One after the other; what was confirmed lazily and lost is copied again, what was never written
 * is not. */
static void power_cuts_in_mid_copy(void *unused)
{
    struct pair *pair = pair_lost("cuts");
    guint cut = 0, rounds = 0;
    write_marks(pair, REPLICA);
    while ((cut < 4 || rounds < 8) && rounds < 200) {
        rounds++;
        cut += cut_in_mid_copy(pair);
    }
    g_test_message("%u of %u in the middle of the copy", cut, rounds);
    g_assert_cmpuint(cut, >=, 4);
    copy_again(pair);
    end_of_copy(pair, REPLICA, true);
}

/* --- a copy of everything in its place, cut off --- */

/* It leaves zeros where the guest never wrote, so nothing is known after it. */
static void then_everything(struct pair *pair)
{
    g_assert_cmpuint(written(pair), ==, 0); /* on record before it has begun */
    lose(pair);
    open_exports(pair, REPLICA, IMAGES);
    attach_everything(pair, REPLICA);
}

/* The image cannot be read beside the guest: it is not among the files that QEMU has open. */
static void not_to_be_read_beside(void *unused)
{
    struct pair *pair = pair_lost("beside");
    struct guest *guest =
        g_hash_table_lookup(((struct qemu *)hv_of(pair))->guests, pair->web1->uuid);
    open_exports(pair, REPLICA, IMAGES);
    guint64 inode = guest->images[0].inode;
    guest->images[0].inode = G_MAXUINT64;
    attach(pair, COPY_WRITTEN_SINCE);
    guest->images[0].inode = inode;
    then_everything(pair);
}

/* Each pass of the copy takes long, and meanwhile more is written than is let go as little. QEMU
 * may have begun to wait for the export that stands still: then it takes nothing until that goes
 * on.
 */
static void write_faster(struct pair *pair)
{
    pid_t export = (pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0);
    for (guint i = 0; written(pair) != 0 && mirror_of(pair) == MIRROR_SYNCING; i++) {
        patience_stop(export);
        for (guint k = 0; k < 16; k++)
            if (!world_try_write(pair->primary, pair->web1, i % 100 + 1, 1024 + 256 * k, 128, NULL))
                break;
        loop_sleep(200);
        kill(export, SIGCONT);
        loop_sleep(20);
    }
}

/* A copy may be over before the first of the writes: then it is one more. */
static void written_too_fast(void *unused)
{
    struct pair *pair = pair_new("fast", 1);
    remember(pair, 0);
    for (guint rounds = 0; written(pair) != 0 && rounds < 50; rounds++) {
        lose(pair);
        copy_again(pair);
        write_faster(pair);
    }
    then_everything(pair);
}

/* A replica that answers no more while the guest stands still must not keep it so. */
static void silent_to_the_end(void *unused)
{
    struct pair *pair = pair_lost("silent");
    await_counts(pair, 5);
    open_exports(pair, REPLICA, IMAGES);
    patience_stop((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0));
    struct instance *web1 = pair->web1;
    g_autoptr(GError) error = NULL;
    bool started = hv_of(pair)->ops->mirror_start(hv_of(pair), web1->uuid, 1, pair->target,
                                                  COPY_WRITTEN_SINCE, &error);
    g_assert_false(started);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    kill((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0), SIGCONT);
    attach(pair, COPY_WRITTEN_SINCE);
    patience_stop((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0));
    await_counts(pair, 5); /* whatever it was in the middle of, or frozen as any mirror is */
    release(pair);
    await_counts(pair, 5);
    pair_free(pair);
}

/* --- the node daemon dies --- */

/* In any of its steps: the guest runs, what was begun reads as lost, and can be begun again. */
static void daemon_dies(void *unused)
{
    struct pair *pair = pair_lost("daemon");
    g_autoptr(GError) error = NULL;
    write_marks(pair, REPLICA);
    for (guint round = 0; round < 12; round++) {
        copy_again(pair);
        loop_sleep((guint)g_test_rand_int_range(0, 60));
        qemu_free(pair->primary->hypervisor);
        pair->primary->hypervisor = qemu_new(pair->primary->paths, pair->primary->users);
        g_autoptr(GPtrArray) guests = hv_of(pair)->ops->rediscover(hv_of(pair), &error);
        g_assert_no_error(error);
        g_assert_cmpuint(guests->len, ==, 1);
        const struct guest_report *guest = guests->pdata[0];
        g_test_message("round %u: mirror %d", round, (int)guest->mirror);
        g_assert_cmpint(guest->state, ==, GUEST_RUNNING);
        g_assert_cmpint(guest->mirror, !=, MIRROR_SYNCING);
        await_counts(pair, 5);
        release(pair);
        close_exports(pair, REPLICA);
        await_counts(pair, 5);
    }
    copy_again(pair);
    end_of_copy(pair, REPLICA, true);
}

static void add_tests(void)
{
    world_test_with("/incremental/what-was-written#SAF-13", what_was_written, GUINT_TO_POINTER(1));
    world_test_with("/incremental/what-was-written-on-two-disks", what_was_written,
                    GUINT_TO_POINTER(2));
    world_test("/incremental/of-a-paused-guest", of_a_paused_guest);
    world_test("/incremental/never-in-sync-on-record", never_in_sync_on_record);
    world_test("/incremental/other-images", other_images);
    world_test("/incremental/unknown-images", unknown_images);
    world_test("/incremental/other-replica#SAF-18", other_replica);
    world_test("/incremental/guest-restarted", guest_restarted);
    world_test("/incremental/full-copy-was-cut-off", full_copy_was_cut_off);
    world_test("/incremental/lost-again#SAF-13,SAF-15", lost_again);
    world_test("/incremental/power-cuts-in-mid-copy#SAF-13,SAF-14", power_cuts_in_mid_copy);
    world_test("/incremental/not-to-be-read-beside", not_to_be_read_beside);
    world_test("/incremental/written-too-fast", written_too_fast);
    world_test("/incremental/silent#SAF-15", silent_to_the_end);
    world_test("/incremental/daemon-dies#SAF-19", daemon_dies);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

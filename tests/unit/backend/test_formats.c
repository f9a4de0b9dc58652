/*
 * Images in every format and place: qcow2 sources are judged before they are used, disks grow, what
 * all nodes share is nobody's to judge, and a full disk leaves nothing behind. With the real
 * qemu-img.
 */
#include "world.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define U "11111111-1111-4111-8111-111111111111"
#define REPLICA "22222222-2222-4222-8222-222222222222"

/* --- helpers --- */

#define sh(...) g_free(world_shell(__VA_ARGS__))

static char *below(const struct world_node *node, const char *name)
{
    return g_build_filename(node->paths->var, name, NULL);
}

static struct instance *instance_of(enum disk_template disk_template, guint disks,
                                    enum disk_format format)
{
    struct instance *instance = world_instance(disks, 1);
    instance->disk_template = disk_template;
    for (guint i = 0; i < disks; i++) {
        struct disk *disk = instance->disks->pdata[i];
        disk->format = format;
        disk->size = 4;
    }
    return instance;
}

static bool create(struct world_node *node, const struct instance *instance, const char *replica,
                   const char *os_type, GError **error)
{
    return node->storage->ops->create(node->storage, instance->uuid, replica,
                                      instance->disk_template, instance->disks, os_type, error);
}

static void created(struct world_node *node, const struct instance *instance, const char *os_type)
{
    g_autoptr(GError) error = NULL;
    create(node, instance, "", os_type, &error);
    g_assert_no_error(error);
}

static char *names_in(const struct world_node *node, const char *folder)
{
    return world_shell("cd %s/%s && ls | grep -v -e aside -e lost -e fettle-shared || true",
                       node->paths->var, folder);
}

static void assert_names(const struct world_node *node, const char *folder, const char *expected)
{
    g_autofree char *names = names_in(node, folder);
    g_assert_cmpstr(names, ==, expected);
}

static void assert_refused(struct world_node *node, const struct instance *instance,
                           const char *os_type, enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(create(node, instance, "", os_type, &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    assert_names(node, "disks", "");
}

/* Sources: 3 MiB of which some has data. */
static void make_sources(const struct world_node *node)
{
    sh("cd %s/images && truncate -s 3M plain.raw && "
       "dd if=/dev/urandom of=plain.raw bs=64k count=3 seek=5 conv=notrunc status=none && "
       "qemu-img convert -f raw -O qcow2 plain.raw thin.qcow2 && "
       "qemu-img convert -c -f raw -O qcow2 plain.raw packed && "
       "qemu-img create -q -f qcow2 -b plain.raw -F raw top.qcow2 4M && "
       "qemu-img create -q -f qcow2 -b top.qcow2 -F qcow2 upper.qcow2 && "
       "qemu-io -f qcow2 -c 'write -q -P 7 1M 64k' upper.qcow2 && "
       "qemu-img create -q -f qcow2 -o data_file=data.raw outer.qcow2 3M && "
       "qemu-img convert -n -O qcow2 plain.raw outer.qcow2",
       node->paths->var);
}

/* What qemu-img says about the disk of an image that rests on nothing. */
static void assert_image(const struct world_node *node, const char *name, const char *format,
                         const char *source)
{
    g_autofree char *info =
        world_shell("qemu-img info --output=json -f %s %s/disks/%s | tr -d ' \n'", format,
                    node->paths->var, name);
    g_assert_nonnull(strstr(info, "\"virtual-size\":4194304"));
    g_assert_null(strstr(info, "backing"));
    g_assert_null(strstr(info, "data-file\":"));
    if (source != NULL) /* the rest of a larger disk reads as zeros */
        sh("cd %s && qemu-img compare -f %s disks/%s images/%s", node->paths->var, format, name,
           source);
    g_autofree char *path = g_build_filename(node->paths->var, "disks", name, NULL);
    struct stat status;
    g_assert_cmpint(stat(path, &status), ==, 0);
    g_assert_cmpuint(status.st_uid, ==, 0);
    g_assert_cmpuint(status.st_mode & 0777, ==, 0600);
    g_assert_cmpint(status.st_blocks * 512, <, 1 << 20); /* thin */
}

/* --- import --- */

static void import(void *unused)
{
    static const char *const sources[][2] = {
        {"plain", "plain.raw"},  {"plain.raw", "plain.raw"},     {"thin", "plain.raw"},
        {"packed", "plain.raw"}, {"upper.qcow2", "upper.qcow2"}, {"outer", "plain.raw"}};
    struct world_node *node = world_node_new("import");
    make_sources(node);
    for (int format = FORMAT_RAW; format <= FORMAT_QCOW2; format++) {
        const char *word = enum_word(&disk_format_words, format);
        record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 2, (enum disk_format)format);
        g_autofree char *names = g_strdup_printf(U ".disk0.%s\n" U ".disk1.%s", word, word);
        g_auto(GStrv) name = g_strsplit(names, "\n", 2);
        for (guint i = 0; i < G_N_ELEMENTS(sources); i++) {
            guint64 bytes = 0;
            g_assert_true(
                node->storage->ops->source_size(node->storage, sources[i][0], &bytes, NULL));
            g_assert_cmpuint(bytes, ==, (i == 4 ? 4u : 3u) << 20);
            created(node, web1, sources[i][0]); /* also over what was there in the other format */
            assert_names(node, "disks", names);
            assert_image(node, name[0], word, sources[i][1]);
            assert_image(node, name[1], word, NULL);
        }
    }
    sh("cd %s/images && qemu-img check -q upper.qcow2 && qemu-img check -q thin.qcow2",
       node->paths->var);
    world_node_free(node);
}

struct watched {
    struct world_node *node;
    struct instance *instance;
    bool done;
};

static void create_watched(void *data)
{
    struct watched *watched = data;
    created(watched->node, watched->instance, "large");
    watched->done = true;
}

/* KiB of address space that a qemu-img of ours has had so far; 0: none runs. */
static guint64 tool_peak(void)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
    g_autofree char *children = NULL;
    guint64 peak = 0;
    g_assert_true(g_file_get_contents(path, &children, NULL, NULL));
    g_auto(GStrv) pids = g_strsplit(children, " ", -1);
    for (char **pid = pids; *pid != NULL; pid++) {
        g_autofree char *file = g_strdup_printf("/proc/%s/status", *pid);
        g_autofree char *status = NULL;
        if (!g_file_get_contents(file, &status, NULL, NULL) || !strstr(status, "qemu-img"))
            continue;
        const char *line = strstr(status, "VmPeak:");
        peak = MAX(peak, line != NULL ? g_ascii_strtoull(line + 7, NULL, 10) : 0);
    }
    return peak;
}

/* While a copy is under way it can be asked how far it is; what it says grows. Its address space is
 * for images, not for what each of its threads might take. */
static void import_progress(void *unused)
{
    struct world_node *node = world_node_new("progress");
    guint64 done = 0, total = 0, last = 0, peak = 0;
    guint seen = 0;
    sh("cd %s/images && dd if=/dev/urandom of=some.raw bs=1M count=96 status=none && "
       "qemu-img convert -c -f raw -O qcow2 some.raw large.qcow2 && rm some.raw",
       node->paths->var);
    struct watched watched = {.node = node, .instance = instance_of(TEMPLATE_FILE, 1, FORMAT_RAW)};
    ((struct disk *)watched.instance->disks->pdata[0])->size = 100;
    g_assert_false(node->storage->ops->progress(node->storage, U, &done, &total));
    task_spawn(NULL, create_watched, &watched);
    while (!watched.done) {
        if (node->storage->ops->progress(node->storage, U, &done, &total)) {
            g_assert_cmpuint(total, ==, 96);
            g_assert_cmpuint(done, <=, total);
            g_assert_cmpuint(done, >=, last);
            last = done;
            seen++;
        }
        peak = MAX(peak, tool_peak());
        loop_sleep(5);
    }
    g_assert_cmpuint(seen, >, 0);
    g_assert_cmpuint(peak, >, 0);
    g_assert_cmpuint(peak, <, LIMIT_IMAGE_TOOL_BYTES / KIB(1) / 4);
    g_assert_false(node->storage->ops->progress(node->storage, U, &done, &total));
    instance_free(watched.instance);
    world_node_free(node);
}

static void assert_outside(struct world_node *node, const struct instance *web1,
                           const char *os_type, const char *kind, const char *name)
{
    g_autofree char *message =
        g_strdup_printf("image \"%s\": its %s \"%s\" is outside of %s/images", os_type, kind, name,
                        node->paths->var);
    guint64 bytes;
    g_autoptr(GError) error = NULL;
    assert_refused(node, web1, os_type, FETTLE_ERROR_WRONG_INPUT, message);
    g_assert_false(node->storage->ops->source_size(node->storage, os_type, &bytes, &error));
    g_assert_cmpstr(error->message, ==, message);
}

/* Whoever makes an image must not get at files of the host through it. */
static void references_outside(void *unused)
{
    struct world_node *node = world_node_new("outside");
    record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, FORMAT_RAW);
    const char *var = node->paths->var;
    make_sources(node);
    g_autofree char *secret = g_build_filename(world_folder(), "secret", NULL);
    sh("cd %s/images && head -c 1M /dev/urandom >%s && ln -s %s link && mkdir inner && "
       "ln -s ../.. inner/up && echo x >../target && "
       "qemu-img create -q -f qcow2 -u -b %s -F raw absolute 1M && "
       "qemu-img create -q -f qcow2 -u -b ../../../secret -F raw relative 1M && "
       "qemu-img create -q -f qcow2 -u -b link -F raw linked 1M && "
       "qemu-img create -q -f qcow2 -u -b inner/up/target -F raw through 1M && "
       "qemu-img create -q -f qcow2 -u -b nbd://10.0.0.1/x -F raw network 1M && "
       "qemu-img create -q -f qcow2 -u -b 'json:{\"driver\":\"file\",\"filename\":\"%s\"}' -F raw "
       "json 1M && "
       "qemu-img create -q -f qcow2 -u -b absolute -F qcow2 below 1M && "
       "qemu-img create -q -f qcow2 -o data_file=data2.raw data 1M",
       var, secret, secret, secret, secret);
    assert_outside(node, web1, "absolute", "backing file", secret);
    assert_outside(node, web1, "relative", "backing file", "../../../secret");
    assert_outside(node, web1, "linked", "backing file", "link");
    assert_outside(node, web1, "through", "backing file", "inner/up/target");
    assert_outside(node, web1, "network", "backing file", "nbd://10.0.0.1/x");
    assert_outside(node, web1, "below", "backing file", secret); /* what it rests on too */
    g_autofree char *json =
        g_strdup_printf("json:{\"driver\":\"file\",\"filename\":\"%s\"}", secret);
    assert_outside(node, web1, "json", "backing file", json);
    /* The name of the data file stands in an extension: the same length, another place. */
    sh("cd %s/images && sed -i 's/data2.raw/..\\/x2.raw/' data", var);
    assert_outside(node, web1, "data", "external data file", "../x2.raw");
    world_node_free(node);
}

static void patch(const struct world_node *node, const char *image, off_t offset, const char *bytes,
                  size_t len)
{
    g_autofree char *path = g_build_filename(node->paths->var, "images", image, NULL);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(pwrite(fd, bytes, len, offset), ==, (ssize_t)len);
    close(fd);
}

static void bad_sources(void *unused)
{
    struct world_node *node = world_node_new("bad");
    record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, FORMAT_RAW);
    const char *var = node->paths->var;
    g_autofree char *missing = g_strdup_printf(
        "image \"orphan\": its backing file \"gone.qcow2\" is not in %s/images", var);
    g_autofree char *vmdk = g_strdup_printf(
        "image \"other\": its backing file %s/images/base has the format vmdk; raw and qcow2 are "
        "possible",
        var);
    make_sources(node);
    sh("cd %s/images && cp thin.qcow2 corrupt && cp thin.qcow2 torn && cp thin.qcow2 future && "
       "cp thin.qcow2 newer && cp thin.qcow2 huge && cp thin.qcow2 refs && cp thin.qcow2 tables && "
       "qemu-img create -q -f qcow2 -u -b gone.qcow2 -F qcow2 orphan 1M && cp plain.raw base && "
       "qemu-img create -q -f qcow2 -u -b base -F vmdk other 1M && "
       "qemu-img create -q -f qcow2 -u -b loop -F qcow2 back 1M && "
       "qemu-img create -q -f qcow2 -u -b back -F qcow2 loop 1M && "
       "cp thin.qcow2 locked && "
       "head -c 40 thin.qcow2 >short && echo nothing >text.qcow2 && "
       "qemu-img create -q -f qcow2 wide 5M",
       var);
    /* A real LUKS header is made by timing the processor, which fails on a busy machine. */
    patch(node, "locked", 32, "\0\0\0\2", 4);
    patch(node, "corrupt", 79, "\2", 1);
    patch(node, "torn", 8, "\0\0\0\0\x7f\0\0\0\0\0\0\x10", 12);
    patch(node, "future", 72, "\x80", 1);
    patch(node, "newer", 4, "\0\0\0\4", 4);
    patch(node, "huge", 24, "\x7f\0\0\0\0\0\0\0", 8);
    patch(node, "refs", 3 * 65536, "\x40\0\0\0\0\0\0\1", 8); /* an entry of the first level */
    patch(node, "tables", 36, "\x7f\xff\xff\xff", 4);        /* entries of the first level */
    assert_refused(node, web1, "orphan", FETTLE_ERROR_UNKNOWN_ENTITY, missing);
    assert_refused(node, web1, "other", FETTLE_ERROR_WRONG_INPUT, vmdk);
    assert_refused(
        node, web1, "loop", FETTLE_ERROR_LIMIT,
        "image \"loop\" rests on more than 7 others; flatten it with `qemu-img convert`");
    assert_refused(node, web1, "locked", FETTLE_ERROR_WRONG_INPUT,
                   "image \"locked\" is encrypted; decrypt it first with `qemu-img convert`");
    assert_refused(node, web1, "corrupt", FETTLE_ERROR_CORRUPT,
                   "image \"corrupt\" is marked as corrupt; see whether `qemu-img check -r all` "
                   "mends it");
    assert_refused(node, web1, "torn", FETTLE_ERROR_CORRUPT,
                   "image \"torn\" is damaged: the name of its backing file lies outside of its "
                   "header");
    assert_refused(node, web1, "future", FETTLE_ERROR_CORRUPT,
                   "image \"future\" needs features that are not known here "
                   "(0x8000000000000000)");
    assert_refused(node, web1, "newer", FETTLE_ERROR_CORRUPT,
                   "image \"newer\" has version 4 of qcow2; 2 and 3 are known");
    assert_refused(node, web1, "huge", FETTLE_ERROR_CORRUPT,
                   "image \"huge\" claims a disk of 9151314442816847872 bytes; 1 to "
                   "70368744177664 are possible");
    assert_refused(node, web1, "short", FETTLE_ERROR_CORRUPT,
                   "image \"short\" is damaged: its header is cut short");
    assert_refused(node, web1, "text", FETTLE_ERROR_CORRUPT,
                   "image \"text.qcow2\" is damaged: it does not begin as a qcow2 file does");
    assert_refused(node, web1, "wide", FETTLE_ERROR_WRONG_INPUT,
                   "image \"wide\" is 5 MiB, disk 0 only 4 MiB");
    g_autoptr(GError) error = NULL;
    g_assert_false(create(node, web1, "", "refs", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_assert_true(g_str_has_prefix(error->message, "image \"refs\" is damaged: "));
    g_clear_error(&error);
    g_assert_false(create(node, web1, "", "tables", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_assert_true(g_str_has_suffix(error->message, ": Active L1 table too large"));
    assert_names(node, "disks", "");
    world_node_free(node);
}

static void no_program(void *unused)
{
    struct world_node *node = world_node_new("noprogram");
    record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, FORMAT_QCOW2);
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_autofree char *message =
        g_strdup_printf("cannot create %s/disks/" U ".disk0.qcow2.new: the program qemu-img is "
                        "missing on this node; install qemu-utils",
                        node->paths->var);
    g_setenv("PATH", world_folder(), TRUE);
    g_autoptr(GError) error = NULL;
    bool made = create(node, web1, "", "", &error);
    g_setenv("PATH", path, TRUE);
    g_assert_false(made);
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    assert_names(node, "disks", "");
    world_node_free(node);
}

/* A raw source is never probed: what a guest once wrote to its disk decides nothing. */
static void raw_stays_raw(void *unused)
{
    struct world_node *node = world_node_new("raw");
    record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, FORMAT_RAW);
    make_sources(node);
    sh("cd %s/images && qemu-img create -q -f qcow2 -u -b /etc/hostname -F raw trap.raw 1M",
       node->paths->var);
    created(node, web1, "trap");
    sh("cd %s && cmp -n $(stat -c %%s images/trap.raw) images/trap.raw disks/" U ".disk0.raw",
       node->paths->var);
    world_node_free(node);
}

/* --- a full disk --- */

static void full_disk(void *unused)
{
    struct world_node *node = world_node_new("full");
    sh("cd %s/images && dd if=/dev/urandom of=dense.raw bs=1M count=4 status=none && "
       "qemu-img convert -f raw -O qcow2 dense.raw packed.qcow2",
       node->paths->var);
    world_limit_disks(node, 2048);
    for (int format = FORMAT_RAW; format <= FORMAT_QCOW2; format++) {
        record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, (enum disk_format)format);
        const char *const sources[] = {"dense", "packed"};
        for (guint i = 0; i < 2; i++) {
            g_autoptr(GError) error = NULL;
            g_assert_false(create(node, web1, "", sources[i], &error));
            g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NO_RESOURCES);
            g_assert_nonnull(strstr(error->message, g_strerror(ENOSPC)));
            assert_names(node, "disks", "");
        }
    }
    /* What was there before is there still. */
    record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, FORMAT_QCOW2);
    g_autoptr(GError) error = NULL;
    created(node, web1, "");
    g_assert_false(create(node, web1, "", "packed", &error));
    assert_names(node, "disks", U ".disk0.qcow2");
    assert_image(node, U ".disk0.qcow2", "qcow2", NULL);
    world_node_free(node);
}

static void sweep(void *unused)
{
    struct world_node *node = world_node_new("sweep");
    g_autofree char *left = below(node, "disks/" U ".disk0.qcow2.new");
    g_autofree char *shared = below(node, "shared");
    g_autofree char *others = below(node, "shared/" U ".disk0.raw.new");
    g_mkdir_with_parents(shared, 0755);
    g_assert_true(g_file_set_contents(left, "half", -1, NULL));
    g_assert_true(g_file_set_contents(others, "another node's, under way", -1, NULL));
    world_node_free(node);
    node = world_node_new("sweep");
    assert_names(node, "disks", "");
    assert_names(node, "shared", U ".disk0.raw.new");
    /* The removal that ends a dead creation takes it along. */
    g_autoptr(GError) error = NULL;
    g_assert_true(node->storage->ops->remove(node->storage, U, "", &error));
    assert_names(node, "shared", "");
    world_node_free(node);
}

/* --- growing --- */

static void assert_grow(struct world_node *node, guint disk, guint64 mib, enum fettle_error code,
                        const char *message)
{
    g_autoptr(GError) error = NULL;
    bool grown = node->storage->ops->grow(node->storage, U, "", disk, mib, &error);
    if (message == NULL) {
        g_assert_no_error(error);
        g_assert_true(grown);
        return;
    }
    g_assert_false(grown);
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
}

static int lock_as_qemu(const char *path)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 1};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fcntl(fd, F_OFD_SETLK, &lock), ==, 0);
    return fd;
}

static void grow(void *unused)
{
    struct world_node *node = world_node_new("grow");
    for (int format = FORMAT_RAW; format <= FORMAT_QCOW2; format++) {
        const char *word = enum_word(&disk_format_words, format);
        record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 2, (enum disk_format)format);
        g_autofree char *path = g_strdup_printf("%s/disks/" U ".disk1.%s", node->paths->var, word);
        g_autofree char *smaller =
            g_strdup_printf("image %s has 9 MiB; it cannot become smaller, 8 MiB", path);
        g_autofree char *open_in_guest =
            g_strdup_printf("image %s is open in a running guest", path);
        g_autofree char *missing =
            g_strdup_printf("disk 2 of instance " U " has no image in %s/disks, nor in %s/shared",
                            node->paths->var, node->paths->var);
        created(node, web1, "");
        sh("qemu-io -f %s -c 'write -q -P 5 0 64k' %s", word, path);
        for (guint again = 0; again < 2; again++) {
            assert_grow(node, 1, 9, 0, NULL);
            sh("qemu-img info -f %s %s | grep -q '9 MiB (9437184 bytes)'", word, path);
            sh("qemu-io -f %s -c 'read -q -P 5 0 64k' -c 'read -q -P 0 4M 5M' %s", word, path);
        }
        assert_grow(node, 1, 8, FETTLE_ERROR_WRONG_INPUT, smaller);
        assert_grow(node, 2, 8, FETTLE_ERROR_UNKNOWN_ENTITY, missing);
        assert_grow(node, 16, 8, FETTLE_ERROR_WRONG_INPUT,
                    "disk 16: 8 MiB: must be disk 0 to 15 with 1 to 67108864 MiB");
        int guest = lock_as_qemu(path);
        if (format == FORMAT_RAW)
            assert_grow(node, 1, 10, 0, NULL);
        else
            assert_grow(node, 1, 10, FETTLE_ERROR_WRONG_STATE, open_in_guest);
        close(guest);
        assert_grow(node, 1, 10, 0, NULL);
    }
    world_node_free(node);
}

/* --- demotion --- */

static void mark(const struct world_node *node, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(node->paths->var, "disks", name, NULL);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(pwrite(fd, text, strlen(text), 0), ==, (int)strlen(text));
    close(fd);
}

static void demote(void *unused)
{
    for (guint done = 0; done <= 2; done++) { /* a death after each rename */
        g_autofree char *name = g_strdup_printf("demote%u", done);
        struct world_node *node = world_node_new(name);
        const struct storage_ops *ops = node->storage->ops;
        record_autoptr(instance) web1 = instance_of(TEMPLATE_MIRROR, 2, FORMAT_RAW);
        g_autoptr(GError) error = NULL;
        created(node, web1, "");
        mark(node, U ".disk0.raw", "current");
        for (guint i = 0; i < done; i++)
            sh("cd %s/disks && mv " U ".disk%u.raw " U "." REPLICA ".disk%u.raw", node->paths->var,
               i, i);
        for (guint again = 0; again < 2; again++) {
            g_assert_true(ops->demote(node->storage, U, REPLICA, &error));
            g_assert_no_error(error);
            assert_names(node, "disks", U "." REPLICA ".disk0.raw\n" U "." REPLICA ".disk1.raw");
        }
        sh("grep -q current %s/disks/" U "." REPLICA ".disk0.raw", node->paths->var);
        /* And the other way. */
        g_assert_true(ops->promote(node->storage, U, REPLICA, 3, &error));
        assert_names(node, "disks", U ".disk0.raw\n" U ".disk1.raw");
        assert_names(node, "disks/aside", "");
        world_node_free(node);
    }
}

static void bad_demotions(void *unused)
{
    struct world_node *node = world_node_new("nodemote");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = instance_of(TEMPLATE_MIRROR, 1, FORMAT_RAW);
    g_autoptr(GError) error = NULL;
    g_autofree char *none = g_strdup_printf(
        "replica " REPLICA " of instance " U " has no images in %s/disks", node->paths->var);
    g_autofree char *both =
        g_strdup_printf("%s/disks/" U ".disk0.raw cannot become an image of replica " REPLICA
                        ", which has %s/disks/" U "." REPLICA ".disk0.raw already",
                        node->paths->var, node->paths->var);
    g_assert_false(ops->demote(node->storage, U, REPLICA, &error));
    g_assert_cmpstr(error->message, ==, none);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);
    g_assert_false(ops->demote(node->storage, U, "", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_clear_error(&error);
    created(node, web1, "");
    g_assert_true(create(node, web1, REPLICA, "", &error));
    g_assert_false(ops->demote(node->storage, U, REPLICA, &error));
    g_assert_cmpstr(error->message, ==, both);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    assert_names(node, "disks", U "." REPLICA ".disk0.raw\n" U ".disk0.raw");
    world_node_free(node);
}

/* Renamed under a process that has it open, as an incoming guest has: it goes on writing to it. */
static void promote_while_open(void *unused)
{
    struct world_node *node = world_node_new("open");
    record_autoptr(instance) web1 = instance_of(TEMPLATE_FILE, 1, FORMAT_QCOW2);
    g_autoptr(GError) error = NULL;
    g_assert_true(create(node, web1, REPLICA, "", &error));
    g_autofree char *path = below(node, "disks/" U "." REPLICA ".disk0.qcow2");
    int process = lock_as_qemu(path);
    g_assert_true(node->storage->ops->promote(node->storage, U, REPLICA, 1, &error));
    g_assert_no_error(error);
    assert_names(node, "disks", U ".disk0.qcow2");
    g_assert_cmpint(pwrite(process, "arrived", 7, 3 << 20), ==, 7);
    close(process);
    sh("grep -q arrived %s/disks/" U ".disk0.qcow2", node->paths->var);
    world_node_free(node);
}

/* --- the shared folder --- */

static struct world_node *sharing_node(const char *name, const char *folder)
{
    struct world_node *node = world_node_new(name);
    file_storage_free(node->storage);
    node->storage = file_storage_new(node->paths, folder, node->users);
    return node;
}

static void assert_none_listed(struct world_node *node)
{
    for (guint aside = 0; aside < 2; aside++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) list = node->storage->ops->list(node->storage, aside == 1, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(list->len, ==, 0);
    }
}

/* A guest runs from the shared folder on node 1, and node 2 comes back from the dead with its own
 * ideas about that instance. */
static void shared(void *unused)
{
    g_autofree char *folder = g_build_filename(world_folder(), "server", NULL);
    g_mkdir_with_parents(folder, 0755);
    struct world_node *one = sharing_node("one", folder), *two = sharing_node("two", folder);
    const struct storage_ops *ops = two->storage->ops;
    record_autoptr(instance) web1 = instance_of(TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
    g_autofree char *path = g_build_filename(folder, U ".disk0.raw", NULL);
    g_autofree char *in_use = g_strdup_printf("image %s is open in a running guest", path);
    g_autoptr(GError) error = NULL;
    created(one, web1, "tick");
    assert_names(one, "disks", "");
    world_prepare(one, web1, NULL);
    g_assert_true(one->hypervisor->ops->run(one->hypervisor, web1->uuid, web1->generation, &error));

    g_autoptr(GPtrArray) files = ops->files(two->storage, U, "", 1, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(files->pdata[0], ==, path);
    assert_none_listed(two);
    g_assert_true(ops->set_aside(two->storage, U, "", 5, &error));
    g_assert_true(ops->remove_aside(two->storage, U, &error));
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_false(ops->demote(two->storage, U, REPLICA, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);
    g_assert_true(ops->remove(two->storage, U, REPLICA, &error));
    g_assert_false(ops->remove(two->storage, U, "", &error));
    g_assert_cmpstr(error->message, ==, in_use);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_clear_error(&error);
    g_assert_false(create(two, web1, "", "tick", &error));
    g_assert_cmpstr(error->message, ==, in_use);
    g_clear_error(&error);
    g_assert_true(world_await_count(one, web1, 3));
    assert_none_listed(two);

    g_assert_true(
        one->hypervisor->ops->kill(one->hypervisor, web1->uuid, web1->generation, &error));
    g_assert_true(ops->sync(two->storage, U, "", &error));
    g_assert_true(ops->grow(two->storage, U, "", 0, 6, &error));
    g_assert_true(ops->remove(two->storage, U, "", &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    world_node_free(one);
    world_node_free(two);
}

/* Node 2 boots, and nothing is mounted at its mount point. */
static void shared_unmounted(void *unused)
{
    g_autofree char *folder = g_build_filename(world_folder(), "mounted", NULL);
    g_autofree char *empty = g_build_filename(world_folder(), "mount-point", NULL);
    g_mkdir_with_parents(folder, 0755);
    g_mkdir_with_parents(empty, 0755);
    struct world_node *one = sharing_node("mounts", folder), *two = sharing_node("bare", empty),
                      *three = sharing_node("mounts-too", folder);
    record_autoptr(instance) web1 = instance_of(TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
    g_autoptr(GError) error = NULL;
    g_autofree char *missing = g_strdup_printf(
        "disk 0 of instance " U " has no image in %s/disks, nor in %s, which lacks the file "
        "fettle-shared of the folder that all nodes share: mount that there",
        two->paths->var, empty);
    g_assert_cmpstr(one->storage->ops->shared(one->storage, NULL), ==, ""); /* nobody has used it */
    created(one, web1, "");
    g_autofree char *marker = g_strdup(one->storage->ops->shared(one->storage, NULL));
    g_assert_true(g_uuid_string_is_valid(marker));
    struct storage_space space = {0};
    one->storage->ops->shared(one->storage, &space);
    g_assert_cmpuint(space.total_mib, >, 0);
    g_assert_cmpuint(space.free_mib, <=, space.total_mib);
    two->storage->ops->shared(two->storage, &space);
    g_assert_cmpuint(space.total_mib, ==, 0);
    g_assert_cmpstr(three->storage->ops->shared(three->storage, NULL), ==, marker);
    g_assert_cmpstr(two->storage->ops->shared(two->storage, NULL), ==, "");
    g_assert_null(two->storage->ops->files(two->storage, U, "", 1, &error));
    g_assert_cmpstr(error->message, ==, missing);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    created(three, web1, ""); /* the marker stays what it is */
    g_assert_cmpstr(one->storage->ops->shared(one->storage, NULL), ==, marker);
    sh("echo nonsense > %s/fettle-shared", folder);
    g_assert_cmpstr(one->storage->ops->shared(one->storage, NULL), ==, "");
    world_node_free(one);
    world_node_free(two);
    world_node_free(three);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What lies in var/images, as a report has it; "?": it is not known. */
static char *sources_of(struct world_node *node)
{
    g_autoptr(GPtrArray) names = node->storage->ops->sources(node->storage);
    if (names == NULL)
        return g_strdup("?");
    g_ptr_array_sort(names, by_text);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(" ", (char **)names->pdata);
}

static void sources_are_told(void *unused)
{
    struct world_node *node = world_node_new("sources");
    g_autofree char *folder = below(node, "images");
    g_autofree char *none = sources_of(node);
    g_assert_cmpstr(none, ==, "tick.raw"); /* the world puts it there */
    sh("cd %s && touch debian.raw .hidden \"$(printf 'no\\377text')\" && mkdir sub && ln -s "
       "debian.raw "
       "linked && ln -s nothing broken",
       folder);
    g_autofree char *some = sources_of(node);
    g_assert_cmpstr(some, ==, "debian.raw linked tick.raw");
    sh("cd %s && for i in $(seq 253); do touch more$i; done", folder);
    g_autofree char *full = sources_of(node);
    g_assert_cmpuint(strlen(full), >, 1000);
    sh("touch %s/one-too-many", folder);
    g_autofree char *many = sources_of(node);
    g_assert_cmpstr(many, ==, "?");
    sh("rm -r %s", folder);
    g_autofree char *gone = sources_of(node);
    g_assert_cmpstr(gone, ==, "?");
    world_node_free(node);
}

static void bad_places(void *unused)
{
    struct world_node *node = world_node_new("places");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) common = instance_of(TEMPLATE_SHAREDFILE, 1, FORMAT_QCOW2);
    record_autoptr(instance) own = instance_of(TEMPLATE_FILE, 1, FORMAT_RAW);
    record_autoptr(instance) mirrored = instance_of(TEMPLATE_MIRROR, 1, FORMAT_QCOW2);
    g_autoptr(GError) error = NULL;
    const char *var = node->paths->var;
    g_autofree char *missing = g_strdup_printf(
        "the shared folder %s/shared is missing: mount it on every node, or name another one as "
        "shared_dir in etc/node.json",
        var);
    g_autofree char *shared_one = g_strdup_printf("%s/shared/" U ".disk0.qcow2", var);
    g_autofree char *template = g_strdup_printf(
        "instance " U " has images of another template: %s; remove them first", shared_one);
    g_autofree char *two = g_strdup_printf("disk 0 of instance " U " has two images, %s/disks/" U
                                           ".disk0.raw and %s: move away the "
                                           "one that is not current",
                                           var, shared_one);
    assert_refused(node, common, "", FETTLE_ERROR_ENVIRONMENT, missing);
    sh("mkdir %s/shared", var);
    assert_refused(node, mirrored, "", FETTLE_ERROR_WRONG_INPUT,
                   "disk 0 of instance " U ": a mirrored disk must have the format raw, not qcow2");
    g_assert_false(create(node, common, REPLICA, "", &error));
    g_assert_cmpstr(error->message, ==,
                    "instance " U ": images in a shared folder have no replicas");
    g_clear_error(&error);
    created(node, common, "");
    assert_refused(node, own, "", FETTLE_ERROR_ALREADY_EXISTS, template);
    sh("cp %s %s/disks/" U ".disk0.raw", shared_one, var);
    g_assert_null(ops->files(node->storage, U, "", 1, &error));
    g_assert_cmpstr(error->message, ==, two);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    /* The node's own are what it may remove; the others stay. */
    g_clear_error(&error);
    g_assert_true(ops->remove(node->storage, U, "", &error));
    assert_names(node, "disks", "");
    assert_names(node, "shared", U ".disk0.qcow2");
    world_node_free(node);
}

static void add_tests(void)
{
    world_test("/formats/import-from-every-source", import);
    world_test("/formats/import-tells-its-progress", import_progress);
    world_test("/formats/references-outside-are-refused", references_outside);
    world_test("/formats/bad-sources-leave-nothing", bad_sources);
    world_test("/formats/missing-program", no_program);
    world_test("/formats/raw-is-never-probed", raw_stays_raw);
    world_test("/formats/full-disk-leaves-nothing", full_disk);
    world_test("/formats/leftovers-are-swept", sweep);
    world_test("/formats/grow", grow);
    world_test("/formats/demote-is-idempotent#SAF-17,SAF-20", demote);
    world_test("/formats/bad-demotions", bad_demotions);
    world_test("/formats/promote-while-open#SAF-17", promote_while_open);
    world_test("/formats/shared-belongs-to-no-node#SAF-19,SAF-21", shared);
    world_test("/formats/shared-folder-that-is-not-mounted", shared_unmounted);
    world_test("/formats/sources-are-told", sources_are_told);
    world_test("/formats/bad-places", bad_places);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

/*
 * What goes in and out of a real guest: its serial line both ways, the size of its disks, its
 * network cards, a kernel of its own.
 */
#include "world.h"

#include "base/limits.h"
#include "io/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the serial line --- */

static bool await_text(struct hypervisor *hv, const char *instance, const char *text)
{
    guint64 offset = 0;
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < 600; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) bytes =
            hv->ops->console_read(hv, instance, (gint64)offset, 100, &offset, &error);
        g_assert_no_error(error);
        gsize len = 0;
        const char *data = g_bytes_get_data(bytes, &len);
        g_string_append_len(all, data, (gssize)len);
        if (strstr(all->str, text) != NULL)
            return true;
    }
    return false;
}

/* What it printed before it was paused has come. */
static void await_silence(struct hypervisor *hv, const char *instance)
{
    gsize more = 1;
    guint64 offset = 0;
    while (more > 0) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) bytes =
            hv->ops->console_read(hv, instance, (gint64)offset, 1000, &offset, &error);
        g_assert_no_error(error);
        more = g_bytes_get_size(bytes);
    }
}

static void type(struct hypervisor *hv, const char *instance, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) data = g_bytes_new(text, strlen(text));
    hv->ops->console_write(hv, instance, data, &error);
    g_assert_no_error(error);
}

/* The guest echoes what is typed, one byte for each count, and starts again on `r`. */
static void console(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    guint64 offset = 0, again = 0;
    g_assert_null(hv->ops->console_read(hv, web1->uuid, 0, 0, &offset, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_autofree char *expected =
        g_strdup_printf("no guest of instance %s has printed on this node", web1->uuid);
    g_assert_cmpstr(error->message, ==, expected);
    g_clear_error(&error);
    g_autoptr(GBytes) nothing = g_bytes_new("x", 1);
    g_assert_false(hv->ops->console_write(hv, web1->uuid, nothing, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);

    world_start(node, web1);
    g_assert_true(await_text(hv, web1->uuid, "START"));
    type(hv, web1->uuid, "!?");
    g_assert_true(await_text(hv, web1->uuid, "!COUNT") || await_text(hv, web1->uuid, "!"));
    g_assert_true(await_text(hv, web1->uuid, "?"));
    guint32 printed = world_printed(node, web1);
    type(hv, web1->uuid, "r");
    g_assert_true(await_text(hv, web1->uuid, "BOOT"));
    g_assert_true(world_await_count(node, web1, printed + 1)); /* nobody reads the socket */

    g_assert_true(hv->ops->pause(hv, web1->uuid, 1, &error));
    await_silence(hv, web1->uuid);
    g_autoptr(GBytes) last = hv->ops->console_read(hv, web1->uuid, -7, 0, &offset, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_bytes_get_size(last), ==, 7);
    gint64 before = loop_boot_ms();
    g_autoptr(GBytes) more =
        hv->ops->console_read(hv, web1->uuid, (gint64)offset, 300, &again, &error);
    g_assert_cmpuint(g_bytes_get_size(more), ==, 0);
    g_assert_cmpuint(again, ==, offset);
    g_assert_cmpint(loop_boot_ms() - before, >=, 300);
    g_autoptr(GBytes) beyond =
        hv->ops->console_read(hv, web1->uuid, (gint64)offset + 1000, 0, &again, &error);
    g_assert_cmpuint(g_bytes_get_size(beyond), ==, 0);
    g_assert_cmpuint(again, ==, offset);
    world_end(node, web1);
    g_assert_true(await_text(hv, web1->uuid, "COUNT")); /* also when it is gone */
    g_autoptr(GBytes) none =
        hv->ops->console_read(hv, web1->uuid, CONSOLE_SINCE_START, 0, &offset, &error);
    g_assert_cmpuint(g_bytes_get_size(none), ==, 0);

    /* The next process's words, and nothing that was said before it. */
    web1->generation = 2;
    world_prepare(node, web1, NULL);
    g_assert_true(hv->ops->run(hv, web1->uuid, 2, &error));
    g_assert_true(world_await_count(node, web1, world_printed(node, web1) + 1));
    g_autoptr(GBytes) fresh =
        hv->ops->console_read(hv, web1->uuid, CONSOLE_SINCE_START, 0, &again, &error);
    g_assert_no_error(error);
    g_assert_cmpint(strncmp(g_bytes_get_data(fresh, NULL), "BOOT ", 5), ==, 0);
    g_assert_cmpuint(again - g_bytes_get_size(fresh), ==, offset);
    world_end(node, web1);
}

/* A guest that prints without end: what is old goes, offsets stay. */
static void console_bounded(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path =
        g_strdup_printf("%s/guests/web1-%s.console", node->paths->log, web1->uuid);
    g_autofree char *old = g_strnfill(MIB(1), 'o');
    struct stat status;
    guint64 offset = 0;
    world_start(node, web1);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    for (guint i = 0; i < 16; i++)
        g_assert_cmpint(write(fd, old, MIB(1)), ==, MIB(1));
    close(fd);
    for (guint i = 0; i < 300; i++) {
        g_assert_cmpint(stat(path, &status), ==, 0);
        if ((size_t)status.st_blocks * 512 < MIB(8))
            break;
        loop_sleep(100);
    }
    g_assert_cmpuint((guint64)status.st_size, >, MIB(16));
    g_assert_cmpuint((guint64)status.st_blocks * 512, <=,
                     LIMIT_CONSOLE_BYTES + LIMIT_CONSOLE_BYTES / 4 + MIB(1));
    g_autoptr(GBytes) first = hv->ops->console_read(hv, web1->uuid, 0, 0, &offset, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(offset, >, (guint64)status.st_size - LIMIT_CONSOLE_BYTES - MIB(1));
    g_assert_cmpint(((const char *)g_bytes_get_data(first, NULL))[0], ==, 'o');
    g_assert_true(world_await_count(node, web1, world_printed(node, web1) + 2));
    world_end(node, web1);
}

/* --- disks --- */

static void resize(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    world_start(node, web1);
    g_autoptr(GPtrArray) images =
        node->storage->ops->files(node->storage, web1->uuid, "", 1, &error);
    g_assert_cmpint(truncate(images->pdata[0], (off_t)MIB(8)), ==, 0);
    g_assert_true(hv->ops->disk_resize(hv, web1->uuid, 1, 0, MIB(8), &error));
    g_assert_true(hv->ops->disk_resize(hv, web1->uuid, 1, 0, MIB(8), &error)); /* asked again */
    g_assert_true(world_await_count(node, web1, world_printed(node, web1) + 3));
    g_assert_false(hv->ops->disk_resize(hv, web1->uuid, 1, 1, MIB(8), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, "guest web1 has no disk 1, but 1 disks");
    g_clear_error(&error);

    const char *replica = "22222222-2222-4222-8222-222222222222";
    ((struct disk *)web1->disks->pdata[0])->size = 8;
    world_create(node, web1, replica);
    record_autoptr(export_target) target = world_export(node, web1, replica);
    hv->ops->mirror_start(hv, web1->uuid, 1, target, COPY_EVERYTHING, &error);
    g_assert_no_error(error); /* sizes are equal, so QEMU knows the new one */
    g_assert_false(hv->ops->disk_resize(hv, web1->uuid, 1, 0, MIB(9), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==,
                    "guest web1: disk 0 cannot change its size while it is mirrored; release the "
                    "mirror first");
    g_clear_error(&error);
    g_assert_true(world_await_mirror(node, web1, MIRROR_READY));
    world_end(node, web1);
    g_assert_true(node->storage->ops->export_close(node->storage, web1->uuid, replica, &error));
}

/* --- network cards, kernels --- */

static void make_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    g_strlcpy(request.ifr_name, name, sizeof request.ifr_name);
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    g_assert_cmpint(ioctl(fd, TUNSETIFF, &request), ==, 0);
    g_assert_cmpint(ioctl(fd, TUNSETOWNER, WORLD_USER_BEFORE), ==, 0);
    g_assert_cmpint(ioctl(fd, TUNSETPERSIST, 1), ==, 0);
    close(fd);
}

/* All frames that go out to this device from now on. */
static int listen_on(const char *device)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll here = {.sll_family = AF_PACKET,
                               .sll_protocol = htons(ETH_P_ALL),
                               .sll_ifindex = (int)if_nametoindex(device)};
    g_assert_cmpint(bind(fd, (struct sockaddr *)&here, sizeof here), ==, 0);
    return fd;
}

/* To all, and RARP: "who am I" by the card's address, from which switches learn where it is. */
static bool announces(const guint8 *frame, gssize len)
{
    static const guint8 head[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xaa,
                                  0x00, 0x00, 0x12, 0x34, 0x56, 0x80, 0x35};
    return len >= (gssize)sizeof head && memcmp(frame, head, sizeof head) == 0;
}

static void assert_announced(int fd)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    bool heard = false;
    while (!heard) {
        guint8 frame[256];
        g_assert_cmpint(poll(&watched, 1, 30000), ==, 1);
        heard = announces(frame, recv(fd, frame, sizeof frame, 0));
    }
}

static void nics(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    json_autoptr json = json_make("{s:s,s:s}", "uuid", "55555555-5555-4555-8555-555555555555",
                                  "mac", "aa:00:00:12:34:56");
    struct nic *nic = nic_parse(json, RECORD_KEEP, &error);
    g_assert_no_error(error);
    g_ptr_array_add(web1->nics, nic);
    g_autoptr(GPtrArray) images =
        node->storage->ops->files(node->storage, web1->uuid, "", 1, &error);
    struct guest_spec spec = {.instance = web1, .images = images, .accelerator = ACCEL_TCG};
    g_assert_false(hv->ops->prepare(hv, &spec, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, "guest web1 has 1 network cards, but 0 tap devices");
    g_clear_error(&error);

    g_autoptr(GPtrArray) taps = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(taps, g_strdup("fettle0"));
    make_tap("fettle0");
    spec.taps = taps;
    hv->ops->prepare(hv, &spec, &error);
    g_assert_no_error(error);
    g_autofree char *line = world_command_line(node, web1);
    g_assert_nonnull(strstr(line, "tap,id=n0,fd=8"));
    g_assert_nonnull(strstr(line, "mac=aa:00:00:12:34:56"));
    world_go(node, web1, 3);
    g_free(world_shell("ip link set fettle0 up"));
    int fd = listen_on("fettle0");
    hv->ops->announce(hv, web1->uuid, 1, &error);
    g_assert_no_error(error);
    assert_announced(fd);
    close(fd);
    world_end(node, web1);
}

static void own_kernel(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    g_free(web1->kernel_args);
    web1->kernel_args = g_strdup("console=ttyS0, quiet");
    g_autoptr(GPtrArray) images =
        node->storage->ops->files(node->storage, web1->uuid, "", 1, &error);
    g_autofree char *kernel = g_build_filename(node->paths->var, "images", "vmlinuz", NULL);
    struct guest_spec spec = {
        .instance = web1, .images = images, .kernel = kernel, .accelerator = ACCEL_TCG};
    g_assert_false(hv->ops->prepare(hv, &spec, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_autofree char *missing = g_strdup_printf("cannot open %s: No such file or directory", kernel);
    g_assert_cmpstr(error->message, ==, missing);
    g_clear_error(&error);
    /* Any file will do to be loaded; that it is no kernel shows when it is jumped to. */
    g_autofree char *bytes = g_malloc0(KIB(16));
    memcpy(bytes + 0x202, "HdrS", 4);
    g_assert_true(g_file_set_contents(kernel, bytes, KIB(16), NULL));
    static const int modes[] = {0644, 0600}; /* some distributions let nobody but root read one */
    for (guint i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_assert_cmpint(chmod(kernel, (mode_t)modes[i]), ==, 0);
        g_assert_true(hv->ops->prepare(hv, &spec, &error));
        g_assert_no_error(error);
        g_autofree char *line = world_command_line(node, web1);
        g_assert_nonnull(strstr(line, "-append console=ttyS0, quiet"));
        g_assert_nonnull(strstr(line, "-kernel /proc/self/fd/8"));
        world_end(node, web1);
    }
}

static void version(void *unused)
{
    struct world_node *node = world_node_new("version");
    const char *said = node->hypervisor->ops->version(node->hypervisor);
    g_test_message("%s", said);
    g_assert_true(g_regex_match_simple("^[0-9]+\\.[0-9]+\\.[0-9]+$", said, 0, 0));
    world_node_free(node);
}

static void add_tests(void)
{
    world_guest_test("/guest-io/serial-line-both-ways", "console", console);
    world_guest_test("/guest-io/console-file-is-bounded", "bounded", console_bounded);
    world_guest_test("/guest-io/disk-grows", "resize", resize);
    world_guest_test("/guest-io/network-card-on-a-tap", "nics", nics);
    world_guest_test("/guest-io/own-kernel", "kernel", own_kernel);
    world_test("/guest-io/version", version);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

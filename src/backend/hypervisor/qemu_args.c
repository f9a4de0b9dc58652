/*
 * The argument list of a guest's QEMU. Everything is stated: no default of a QEMU version decides
 * what a guest sees.
 */
#include "backend/hypervisor/accel.h"
#include "backend/hypervisor/qemu_private.h"
#include "backend/unprivileged.h"
#include "base/endpoint.h"

#include <string.h>

/* All that QEMU 7.2 can deny itself; measured: it costs nothing, also not under a mirror with TLS.
 */
#define SANDBOX "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

/* Of the set of descriptors that the file of the console is in; those of disks have their numbers,
 * and what is added later (read_node.c) comes after them. */
#define CONSOLE_SET G_MAXINT32

#define VNC_PORT_0 5900

static void add(GPtrArray *args, const char *option, char *value)
{
    g_ptr_array_add(args, g_strdup(option));
    g_ptr_array_add(args, value);
}

char *qemu_escape_commas(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    return g_strjoinv(",,", parts);
}

static bool check_machine(const char *machine, GError **error)
{
    if (machine[0] != '\0' &&
        strspn(machine, "abcdefghijklmnopqrstuvwxyz0123456789.-+_") == strlen(machine))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "machine type \"%s\": letters, digits, dot, dash and plus are allowed",
                     machine);
    return false;
}

static char *chardev_socket(const char *id, int fd)
{
    return g_strdup_printf("socket,id=%s,fd=%d,server=on,wait=off", id, fd);
}

static void add_monitors(GPtrArray *args)
{
    add(args, "-chardev", chardev_socket("qmp", QEMU_FD_QMP));
    add(args, "-mon", g_strdup("chardev=qmp,mode=control"));
    add(args, "-chardev", chardev_socket("rescue", QEMU_FD_RESCUE));
    add(args, "-mon", g_strdup("chardev=rescue,mode=control"));
}

char *qemu_own_argument(const struct guest *guest)
{
    g_autofree char *folder = guest_path(guest, NULL);
    g_autofree char *escaped = qemu_escape_commas(folder);
    return g_strdup_printf("fd=%d,set=%d,opaque=%s", QEMU_FD_LOG, CONSOLE_SET, escaped);
}

/* What comes in goes through a socket, what goes out also into a file; without a client of the
 * socket it goes there all the same. */
static void add_console(GPtrArray *args, const struct guest *guest)
{
    add(args, "-add-fd", qemu_own_argument(guest));
    add(args, "-chardev",
        g_strdup_printf("socket,id=console,fd=%d,server=on,wait=off,logfile=/dev/fdset/%d,"
                        "logappend=on",
                        QEMU_FD_CONSOLE, CONSOLE_SET));
    add(args, "-serial", g_strdup("chardev:console"));
}

/* A request that finds no room stops the guest and is held, other errors are the guest's to see
 * (disk_io.c). Storage that another node may take over is never cached here (SAF-21). A file that
 * an image would be based on is not opened, whatever its header says. */
static void add_disk(GPtrArray *args, const struct instance *instance, guint index)
{
    const struct disk *disk = index < instance->disks->len ? instance->disks->pdata[index] : NULL;
    bool qcow2 = disk != NULL && disk->format == FORMAT_QCOW2;
    g_autofree char *node = g_strdup_printf("d%u", index);
    g_autofree char *file = g_strdup_printf("d%uf", index);
    g_autofree char *image = g_strdup_printf("/dev/fdset/%u", index);
    add(args, "-add-fd", g_strdup_printf("fd=%u,set=%u", QEMU_FD_OTHERS + index, index));
    json_autoptr blockdev = json_make(
        "{s:s,s:s,s:{s:s,s:s,s:s,s:s,s:{s:b}}}", "driver", qcow2 ? "qcow2" : "raw", "node-name",
        node, "file", "driver", "file", "filename", image, "node-name", file, "locking", "on",
        "cache", "direct", instance->disk_template == TEMPLATE_SHAREDFILE);
    if (qcow2)
        json_object_set_new(blockdev, "backing", json_null());
    add(args, "-blockdev", json_to_text(blockdev));
    add(args, "-device",
        g_strdup_printf("virtio-blk-pci,drive=%s,id=v%s,bootindex=%u,werror=enospc,rerror=report",
                        node, node, index + 1));
}

static void add_volumes(GPtrArray *args, const struct guest_spec *spec, guint fd)
{
    for (guint i = 0; spec->volumes != NULL && i < spec->volumes->len; i++) {
        const struct guest_volume *volume = spec->volumes->pdata[i];
        json_autoptr blockdev = volume_blockdev(volume, (int)(fd + i));
        if (!*volume->conf)
            add(args, "-add-fd", g_strdup_printf("fd=%u,set=%d", fd + i, volume_set(volume->slot)));
        add(args, "-blockdev", json_to_text(blockdev));
        add(args, "-device", volume_device(volume));
    }
}

/* No boot from the network, so no ROM, of which both sides of a migration would need the same. The
 * card does not ask its driver to announce itself (the hypervisor and the node do): QEMU 7.2 frees
 * the timer for that after a migration, and reads it when the guest next resets the card, as at its
 * end. */
static void add_nic(GPtrArray *args, const struct nic *nic, guint index, guint fd)
{
    add(args, "-netdev", g_strdup_printf("tap,id=n%u,fd=%u", index, fd));
    add(args, "-device",
        g_strdup_printf("virtio-net-pci,netdev=n%u,id=vn%u,mac=%s,guest_announce=off,romfile=",
                        index, index, nic->mac));
}

static bool add_nics(GPtrArray *args, const struct guest_spec *spec, guint fd, GError **error)
{
    const struct instance *instance = spec->instance;
    guint taps = spec->taps != NULL ? spec->taps->len : 0;
    if (taps != instance->nics->len) {
        fettle_set_error(error, WRONG_INPUT, "guest %s has %u network cards, but %u tap devices",
                         instance->name, instance->nics->len, taps);
        return false;
    }
    for (guint i = 0; i < taps; i++)
        add_nic(args, instance->nics->pdata[i], i, fd + i);
    return true;
}

/* The screen is seen by VNC, whose display 0 is port 5900; keyboard and mouse are the machine's
 * own. After disks and cards, so that those keep their places on the bus. */
static bool add_display(GPtrArray *args, const struct instance *instance, GError **error)
{
    if (instance->vnc_bind_address[0] == '\0')
        return true;
    if (instance->network_port < VNC_PORT_0 || instance->network_port > 65535) {
        fettle_set_error(error, WRONG_INPUT,
                         "guest %s: port %" G_GUINT64_FORMAT " is none for a display",
                         instance->name, instance->network_port);
        return false;
    }
    add(args, "-vnc",
        endpoint_text(instance->vnc_bind_address, instance->network_port - VNC_PORT_0));
    add(args, "-device", g_strdup("VGA,id=screen"));
    return true;
}

static void add_kernel(GPtrArray *args, const struct guest_spec *spec, guint fd)
{
    if (spec->kernel == NULL)
        return;
    add(args, "-kernel", g_strdup_printf("/proc/self/fd/%u", fd));
    if (spec->initrd != NULL)
        add(args, "-initrd", g_strdup_printf("/proc/self/fd/%u", fd + 1));
    if (spec->instance->kernel_args[0] != '\0')
        add(args, "-append", g_strdup(spec->instance->kernel_args));
}

GPtrArray *qemu_args(const struct guest *guest, const struct guest_spec *spec, bool incoming,
                     bool kvm, GError **error)
{
    const struct instance *instance = spec->instance;
    guint images = spec->images != NULL ? spec->images->len : 0;
    guint taps = spec->taps != NULL ? spec->taps->len : 0;
    if (!check_machine(instance->machine_type, error))
        return NULL;
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    unprivileged_words(args, guest->user, kvm ? ACCEL_DEVICE : NULL);
    g_ptr_array_add(args, g_strdup("qemu-system-x86_64"));
    g_ptr_array_add(args, g_strdup("-S"));
    g_ptr_array_add(args, g_strdup("-nodefaults"));
    g_ptr_array_add(args, g_strdup("-no-user-config"));
    add(args, "-name", g_strdup_printf("guest=%s", guest->name));
    add(args, "-uuid", g_strdup(guest->instance));
    add(args, "-machine", g_strdup(instance->machine_type));
    add(args, "-accel", g_strdup(kvm ? "kvm" : "tcg"));
    if (kvm)
        add(args, "-cpu", g_strdup("host"));
    add(args, "-m", g_strdup_printf("%" G_GUINT64_FORMAT, instance->memory));
    add(args, "-smp", g_strdup_printf("%" G_GUINT64_FORMAT, instance->vcpus));
    add(args, "-display", g_strdup("none"));
    add(args, "-action", g_strdup("shutdown=pause"));
    add(args, "-sandbox", g_strdup(SANDBOX));
    add_monitors(args);
    add_console(args, guest);
    for (guint i = 0; i < images; i++)
        add_disk(args, instance, i);
    if (!add_nics(args, spec, QEMU_FD_OTHERS + images, error) ||
        !add_display(args, instance, error))
        return NULL;
    add_kernel(args, spec, QEMU_FD_OTHERS + images + taps);
    add_volumes(args, spec,
                QEMU_FD_OTHERS + images + taps + (spec->kernel != NULL) + (spec->initrd != NULL));
    if (incoming)
        add(args, "-incoming", g_strdup("defer"));
    g_ptr_array_add(args, NULL);
    return g_steal_pointer(&args);
}

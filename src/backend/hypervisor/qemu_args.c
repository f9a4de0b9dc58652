/*
 * The argument list of a guest's QEMU. Everything is stated: no default of a QEMU version decides
 * what a guest sees.
 */
#include "backend/hypervisor/qemu_private.h"

#include <string.h>

/*
 * The strictest sandbox that QEMU 7.2 survives here, by trial: elevateprivileges=deny and =children
 * both end it with SIGSYS at start, because the filter is in place before -runas gives up root;
 * that no privilege can come back is seen to by no_new_privs, which every -sandbox sets, and by the
 * missing setuid programs among what it may run: none, since spawn=deny. Denying obsolete calls and
 * resource control costs nothing, also not under a mirror with TLS.
 */
#define SANDBOX "on,obsolete=deny,spawn=deny,resourcecontrol=deny"
/* Without a change of user the way to more privilege is shut too. */
#define SANDBOX_SAME_USER SANDBOX ",elevateprivileges=deny"

static void add(GPtrArray *args, const char *option, char *value)
{
    g_ptr_array_add(args, g_strdup(option));
    g_ptr_array_add(args, value);
}

/* In option values of the key=value kind a comma is written twice. */
static char *escape_commas(const char *text)
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
    add(args, "-chardev", chardev_socket("qmp", 3));
    add(args, "-mon", g_strdup("chardev=qmp,mode=control"));
    add(args, "-chardev", chardev_socket("rescue", 4));
    add(args, "-mon", g_strdup("chardev=rescue,mode=control"));
}

static void add_console(GPtrArray *args, const struct guest *guest)
{
    g_autofree char *path = g_strdup_printf("%s/guests/%s-%s.console", guest->qemu->paths->log,
                                            guest->name, guest->instance);
    g_autofree char *escaped = escape_commas(path);
    add(args, "-chardev", g_strdup_printf("file,id=console,path=%s,append=on", escaped));
    add(args, "-serial", g_strdup("chardev:console"));
}

/* Errors of the local disk are the guest's to see; stopping it by itself is left to the node
 * daemon. */
static void add_disk(GPtrArray *args, guint index, const char *image)
{
    g_autofree char *node = g_strdup_printf("d%u", index);
    g_autofree char *file = g_strdup_printf("d%uf", index);
    json_autoptr blockdev =
        json_make("{s:s,s:s,s:{s:s,s:s,s:s,s:s,s:{s:b}}}", "driver", "raw", "node-name", node,
                  "file", "driver", "file", "filename", image, "node-name", file, "locking", "on",
                  "cache", "direct", 0);
    add(args, "-blockdev", json_to_text(blockdev));
    add(args, "-device",
        g_strdup_printf("virtio-blk-pci,drive=%s,id=v%s,bootindex=%u,werror=report,rerror=report",
                        node, node, index + 1));
}

GPtrArray *qemu_args(const struct guest *guest, const struct guest_spec *spec, bool kvm,
                     GError **error)
{
    const struct instance *instance = spec->instance;
    guint32 uid = guest->qemu->uid;
    if (!check_machine(instance->machine_type, error))
        return NULL;
    GPtrArray *args = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(args, g_strdup("qemu-system-x86_64"));
    g_ptr_array_add(args, g_strdup("-S"));
    g_ptr_array_add(args, g_strdup("-nodefaults"));
    g_ptr_array_add(args, g_strdup("-no-user-config"));
    add(args, "-name", g_strdup_printf("guest=%s", guest->name));
    add(args, "-uuid", g_strdup(guest->instance));
    add(args, "-pidfile", guest_path(guest, "pid"));
    add(args, "-machine", g_strdup(instance->machine_type));
    add(args, "-accel", g_strdup(kvm ? "kvm" : "tcg"));
    if (kvm)
        add(args, "-cpu", g_strdup("host"));
    add(args, "-m", g_strdup_printf("%" G_GUINT64_FORMAT, instance->memory));
    add(args, "-smp", g_strdup_printf("%" G_GUINT64_FORMAT, instance->vcpus));
    add(args, "-display", g_strdup("none"));
    add(args, "-action", g_strdup("shutdown=pause"));
    add(args, "-sandbox", g_strdup(uid != 0 ? SANDBOX : SANDBOX_SAME_USER));
    if (uid != 0)
        add(args, "-runas", g_strdup_printf("%u:%u", uid, uid));
    add_monitors(args);
    add_console(args, guest);
    for (guint i = 0; spec->images != NULL && i < spec->images->len; i++)
        add_disk(args, i, spec->images->pdata[i]);
    g_ptr_array_add(args, NULL);
    return args;
}

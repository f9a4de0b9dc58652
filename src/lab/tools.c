/*
 * Checks of the machine (tools.h).
 */
#include "lab/tools.h"

#include "base/error.h"
#include <unistd.h>

static const struct tool {
    const char *program;
    const char *package;
    bool guests;
} TOOLS[] = {
    {"ip", "iproute2", false},        {"mkfs.ext4", "e2fsprogs", false},
    {"openssl", "openssl", true},     {"qemu-system-x86_64", "qemu-system-x86", true},
    {"nbdkit", "nbdkit", true},       {"qemu-img", "qemu-utils", true},
    {"setpriv", "util-linux", false},
};

bool tools_check_root(GError **error)
{
    if (geteuid() == 0)
        return true;
    fettle_set_error(error, ENVIRONMENT,
                     "the lab makes network namespaces and mounts disks, which only root may do: "
                     "run it as root");
    return false;
}

bool tools_check_ipv6(GError **error)
{
    if (access("/proc/sys/net/ipv6/conf", F_OK) == 0)
        return true;
    fettle_set_error(
        error, ENVIRONMENT,
        "--ipv6: the kernel of this machine has no IPv6 (/proc/sys/net/ipv6/conf is "
        "missing; was it booted with ipv6.disable=1?), so a lab here has IPv4 addresses");
    return false;
}

bool tools_check(bool guests, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(TOOLS); i++) {
        if (TOOLS[i].guests && !guests)
            continue;
        g_autofree char *path = g_find_program_in_path(TOOLS[i].program);
        if (path)
            continue;
        fettle_set_error(error, ENVIRONMENT,
                         "the program %s is missing: install it with `apt-get install %s`",
                         TOOLS[i].program, TOOLS[i].package);
        return false;
    }
    return true;
}

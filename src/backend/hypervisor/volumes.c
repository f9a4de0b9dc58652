/*
 * Volumes of a guest (SAF-57, SAF-124): files that other nodes see too, so they are never cached
 * here, and locked, so that a second opener is refused. What QEMU has it is asked, never
 * remembered: names are made of the attachment, which never comes again. One that finds no room
 * stops the guest as its own disks do (disk_io.c); other errors are the guest's to see.
 *
 * A set of descriptors that QEMU still has keeps the lock of a file that it has closed: it goes
 * with the node.
 */
#include "backend/hypervisor/pool.h"
#include "backend/hypervisor/qemu_private.h"
#include "backend/unprivileged.h"
#include "io/loop.h"

#include <fcntl.h>
#include <unistd.h>

#define SERIAL_CHARS 20
#define SET_0 (G_MAXINT32 - 64) /* of descriptors; below that of the console, above all others */
#define POLL_MS 100

char *volume_node(const char *attachment)
{
    return g_strdup_printf(VOLUME_DRIVE, attachment);
}

int volume_set(guint64 slot)
{
    return SET_0 + (int)slot;
}

json_t *volume_blockdev(const struct guest_volume *volume, int fd)
{
    g_autofree char *node = volume_node(volume->attachment);
    if (*volume->conf)
        return pool_blockdev(volume, node, fd);
    g_autofree char *file = g_strconcat(node, "f", NULL);
    g_autofree char *name = g_strdup_printf("/dev/fdset/%d", volume_set(volume->slot));
    return json_make("{s:s,s:s,s:b,s:{s:b},s:{s:s,s:s,s:s,s:b,s:s,s:{s:b}}}", "driver", "raw",
                     "node-name", node, "read-only", volume->readonly, "cache", "direct", 1, "file",
                     "driver", "file", "filename", name, "node-name", file, "read-only",
                     volume->readonly, "locking", "on", "cache", "direct", 1);
}

char *volume_device(const struct guest_volume *volume)
{
    g_autofree char *node = volume_node(volume->attachment);
    return g_strdup_printf("virtio-blk-pci,drive=%s,id=%s,serial=%.*s,addr=0x%x,werror=enospc,"
                           "rerror=report",
                           node, node, SERIAL_CHARS, volume->volume, (guint)volume->slot);
}

int volume_open_flags(bool readonly)
{
    return (readonly ? O_RDONLY : O_RDWR) | O_DIRECT;
}

/* --- what is there --- */

/* Whether a list that QEMU answers has an entry of that name. */
static bool list_has(struct guest *guest, const char *command, json_t *arguments, const char *field,
                     const char *name, bool *ret_has, GError **error)
{
    json_autoptr list = guest_execute(guest, command, arguments, LIMIT_QMP_COMMAND_MS, error);
    *ret_has = false;
    for (size_t i = 0; i < json_array_size(list); i++)
        *ret_has = *ret_has ||
                   g_strcmp0(json_string_value(json_object_get(json_array_get(list, i), field)),
                             name) == 0;
    return list != NULL;
}

static bool has_device(struct guest *guest, const char *name, bool *ret_has, GError **error)
{
    return list_has(guest, "qom-list", json_make("{s:s}", "path", "/machine/peripheral"), "name",
                    name, ret_has, error);
}

bool guest_has_node(struct guest *guest, const char *name, bool *ret_has, GError **error)
{
    return list_has(guest, "query-named-block-nodes", json_make("{s:b}", "flat", 1), "node-name",
                    name, ret_has, error);
}

bool volume_in_pool(struct guest *guest)
{
    bool has = false;
    return list_has(guest, "query-named-block-nodes", json_make("{s:b}", "flat", 1), "drv", "rbd",
                    &has, NULL) &&
           has;
}

/* What a detached volume has left keeps its lock, and must not be found under its number again. */
static void remove_set(struct guest *guest, const struct guest_volume *volume)
{
    guest_command(guest, "remove-fd", json_make("{s:i}", "fdset-id", volume_set(volume->slot)),
                  LIMIT_QMP_COMMAND_MS, NULL);
}

static bool remove_node(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    g_autofree char *name = volume_node(volume->attachment);
    bool there;
    if (!guest_has_node(guest, name, &there, error))
        return false;
    if (there && !guest_command(guest, "blockdev-del", json_make("{s:s}", "node-name", name),
                                LIMIT_QMP_DRAIN_MS, error))
        return false;
    if (there)
        remove_set(guest, volume);
    return true;
}

/* --- attach --- */

static int open_one(const struct guest_volume *volume, bool fences, GError **error)
{
    if (*volume->conf)
        return !fences || pool_fence(volume, error) ? pool_conf(volume, error) : -1;
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_ptr_array_add(paths, volume->path);
    return unprivileged_first(unprivileged_open(paths, volume_open_flags(volume->readonly), false,
                                                LIMIT_GUEST_READY_MS, error));
}

static void close_one(void *fd)
{
    close(*(int *)fd);
}

GArray *volumes_open(const GPtrArray *volumes, bool fences, GError **error)
{
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_set_clear_func(fds, close_one);
    for (guint i = 0; volumes && i < volumes->len; i++) {
        int fd = open_one(volumes->pdata[i], fences, error);
        if (fd < 0)
            return NULL;
        g_array_append_val(fds, fd);
    }
    return g_steal_pointer(&fds);
}

/* The number that QEMU has given to what it was handed last in a set. */
static bool find_fd(struct guest *guest, int set, int *ret_fd, GError **error)
{
    size_t i, j;
    json_t *entry, *one;
    json_autoptr sets = guest_execute(guest, "query-fdsets", NULL, LIMIT_QMP_COMMAND_MS, error);
    *ret_fd = -1;
    json_array_foreach(sets, i, entry) {
        if (json_integer_value(json_object_get(entry, "fdset-id")) == set)
            json_array_foreach(json_object_get(entry, "fds"), j, one)
                *ret_fd = (int)json_integer_value(json_object_get(one, "fd"));
    }
    if (sets && *ret_fd < 0)
        fettle_set_error(error, HYPERVISOR, "guest %s: QEMU has no set %d", guest->name, set);
    return sets && *ret_fd >= 0;
}

static bool add_opened(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    int number = -1;
    return (!*volume->conf || find_fd(guest, volume_set(volume->slot), &number, error)) &&
           guest_command(guest, "blockdev-add", volume_blockdev(volume, number), LIMIT_QMP_DRAIN_MS,
                         error);
}

static bool add_node(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    int set = volume_set(volume->slot), fd = open_one(volume, true, error);
    if (fd < 0)
        return false;
    remove_set(guest, volume);
    bool given =
        guest_give_descriptor(guest, "add-fd", json_make("{s:i}", "fdset-id", set), fd, error);
    close(fd);
    bool added = given && add_opened(guest, volume, error);
    if (!added || *volume->conf)
        remove_set(guest, volume);
    return added;
}

static bool add_device(struct guest *guest, const struct guest_volume *volume, const char *name,
                       GError **error)
{
    g_autofree char *serial = g_strndup(volume->volume, SERIAL_CHARS);
    g_autofree char *place = g_strdup_printf("0x%x", (guint)volume->slot);
    return guest_command(guest, "device_add",
                         json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "driver", "virtio-blk-pci",
                                   "drive", name, "id", name, "serial", serial, "addr", place,
                                   "werror", "enospc", "rerror", "report"),
                         LIMIT_QMP_COMMAND_MS, error);
}

bool volume_open(struct hypervisor *hv, const char *instance, guint64 generation,
                 const struct guest_volume *volume, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    g_autofree char *name = volume_node(volume->attachment);
    bool node;
    return guest && guest_has_node(guest, name, &node, error) &&
           (node || add_node(guest, volume, error));
}

bool volume_attach(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct guest_volume *volume, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    g_autofree char *name = volume_node(volume->attachment);
    bool device, node;
    if (guest == NULL || !has_device(guest, name, &device, error) ||
        !guest_has_node(guest, name, &node, error))
        return false;
    if (device)
        return true;
    if (!node && !add_node(guest, volume, error))
        return false;
    if (add_device(guest, volume, name, error))
        return true;
    g_autoptr(GError) ignored = NULL; /* it is asked for again, by who takes it back */
    remove_node(guest, volume, &ignored);
    return false;
}

/* --- growing --- */

bool guest_node_bytes(struct guest *guest, const char *name, guint64 *ret_bytes, GError **error)
{
    json_autoptr list = guest_execute(guest, "query-named-block-nodes",
                                      json_make("{s:b}", "flat", 1), LIMIT_QMP_COMMAND_MS, error);
    *ret_bytes = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i), *image = json_object_get(entry, "image");
        if (g_strcmp0(json_string_value(json_object_get(entry, "node-name")), name) == 0)
            *ret_bytes = (guint64)json_integer_value(json_object_get(image, "virtual-size"));
    }
    return list != NULL;
}

/* QEMU cuts the file to what it is told, so it is told nothing that it has or had already: what is
 * late finds that it knows more. */
bool volume_resize(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct guest_volume *volume, guint64 bytes, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    g_autofree char *name = volume_node(volume->attachment);
    guint64 known;
    if (guest == NULL || !guest_node_bytes(guest, name, &known, error))
        return false;
    return known == 0 || known >= bytes ||
           guest_command(guest, "block_resize",
                         json_make("{s:s,s:I}", "node-name", name, "size", (json_int_t)bytes),
                         LIMIT_QMP_DRAIN_MS, error);
}

/* --- detach --- */

/* A guest that was asked already is not asked in vain: QEMU refuses, or asks it again. */
static bool wait_gone(struct guest *guest, const char *name, guint wait_ms, bool *ret_gone,
                      GError **error)
{
    bool there;
    if (!has_device(guest, name, &there, error))
        return false;
    if (there)
        guest_command(guest, "device_del", json_make("{s:s}", "id", name), LIMIT_QMP_COMMAND_MS,
                      NULL);
    for (guint waited = 0; there && waited < wait_ms; waited += POLL_MS) {
        if (!loop_sleep(POLL_MS)) {
            fettle_set_error(error, KILLED, "the node daemon ends");
            return false;
        }
        if (!has_device(guest, name, &there, error))
            return false;
    }
    *ret_gone = !there;
    return true;
}

/* What has gone from sight is finished a little later; until then its node is in use. */
static bool wait_node(struct guest *guest, const struct guest_volume *volume, guint wait_ms,
                      bool *ret_gone, GError **error)
{
    for (guint waited = 0;; waited += POLL_MS) {
        g_autoptr(GError) busy = NULL;
        *ret_gone = remove_node(guest, volume, &busy);
        if (*ret_gone || waited >= wait_ms)
            return true;
        if (!loop_sleep(POLL_MS)) {
            fettle_set_error(error, KILLED, "the node daemon ends");
            return false;
        }
    }
}

bool volume_detach(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct guest_volume *volume, guint wait_ms, bool *ret_gone, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    g_autofree char *name = volume_node(volume->attachment);
    *ret_gone = false;
    if (g_hash_table_lookup(qemu->guests, instance) == NULL) {
        *ret_gone = !g_hash_table_contains(qemu->starting, instance);
        return true;
    }
    guest_autoptr guest = guest_find(qemu, instance, generation, error);
    bool gone = false;
    if (guest == NULL || !wait_gone(guest, name, wait_ms, &gone, error) ||
        (gone && !wait_node(guest, volume, wait_ms, ret_gone, error)))
        return false;
    return true;
}

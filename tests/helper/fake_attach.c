/*
 * Hosts without QEMU: volumes that guests have; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

static bool has(const struct fake_guest *guest, const char *attachment, guint *ret_at)
{
    return guest && guest->volumes &&
           g_ptr_array_find_with_equal_func(guest->volumes, attachment, g_str_equal, ret_at);
}

static void give(struct fake_guest *guest, const char *attachment)
{
    if (!guest->volumes)
        guest->volumes = g_ptr_array_new_with_free_func(g_free);
    if (!has(guest, attachment, NULL))
        g_ptr_array_add(guest->volumes, g_strdup(attachment));
}

static bool op_volume_attach(struct hypervisor *hv, const char *instance, guint64 generation,
                             const struct guest_volume *volume, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "volume_attach", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (guest)
        give(guest, volume->attachment);
    return fake_op_end(host, "volume_attach", late, guest != NULL, error);
}

static bool op_volume_detach(struct hypervisor *hv, const char *instance, guint64 generation,
                             const struct guest_volume *volume, guint wait_ms, bool *ret_gone,
                             GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    guint at;
    *ret_gone = false;
    if (!fake_op_begin(host, "volume_detach", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_find(host, instance);
    bool ok = !guest || fake_guest_for(host, instance, generation, error);
    bool there = has(guest, volume->attachment, &at);
    if (ok && there && !host->keeps_volumes)
        g_ptr_array_remove_index(guest->volumes, at);
    *ret_gone = ok && (!there || !host->keeps_volumes);
    return fake_op_end(host, "volume_detach", late, ok, error);
}

static bool op_volume_resize(struct hypervisor *hv, const char *instance, guint64 generation,
                             const struct guest_volume *volume, guint64 bytes, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    guint at;
    if (!fake_op_begin(host, "volume_resize", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (guest && has(guest, volume->attachment, &at))
        guest->volume_bytes = MAX(guest->volume_bytes, bytes);
    return fake_op_end(host, "volume_resize", late, guest != NULL, error);
}

static bool op_point_open(struct hypervisor *hv, const char *instance, guint64 generation,
                          const struct guest_volume *volume, guint64 claim, const char *path,
                          GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "point_open", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (guest)
        guest->point = claim;
    return fake_op_end(host, "point_open", late, guest != NULL, error);
}

static bool op_point_look(struct hypervisor *hv, const char *instance, guint64 generation,
                          guint64 claim, struct point_status *status, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "point_look", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (guest)
        status->state = guest->point != claim ? POINT_NONE
                        : host->keeps_points  ? POINT_COPYING
                                              : POINT_COPIED;
    return fake_op_end(host, "point_look", late, guest != NULL, error);
}

static bool op_point_close(struct hypervisor *hv, const char *instance, guint64 generation,
                           const struct guest_volume *volume, guint64 claim, guint wait_ms,
                           bool *ret_gone, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    *ret_gone = false;
    if (!fake_op_begin(host, "point_close", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_find(host, instance);
    bool ok = !guest || fake_guest_for(host, instance, generation, error);
    if (ok && guest && guest->point == claim && !host->keeps_points)
        guest->point = 0;
    *ret_gone = ok && (!guest || guest->point != claim);
    return fake_op_end(host, "point_close", late, ok, error);
}

guint64 fake_host_point(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->point : 0;
}

void fake_host_keep_points(struct fake_host *host, bool keeps)
{
    host->keeps_points = keeps;
}

guint64 fake_host_volume_bytes(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->volume_bytes : 0;
}

void fake_host_set_volume_bytes(struct fake_host *host, guint64 bytes)
{
    host->volume_bytes = bytes;
}

bool fake_host_has_volume(const struct fake_host *host, const char *instance,
                          const char *attachment)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return has(guest, attachment, NULL);
}

void fake_host_keep_volumes(struct fake_host *host, bool keeps)
{
    host->keeps_volumes = keeps;
}

void fake_guest_give_volumes(struct fake_guest *guest, const struct guest_spec *spec)
{
    for (guint i = 0; spec->volumes && i < spec->volumes->len; i++)
        give(guest, ((struct guest_volume *)spec->volumes->pdata[i])->attachment);
}

void fake_attach_fill(struct hypervisor_ops *ops)
{
    ops->volume_attach = op_volume_attach;
    ops->volume_detach = op_volume_detach;
    ops->volume_resize = op_volume_resize;
    ops->point_open = op_point_open;
    ops->point_look = op_point_look;
    ops->point_close = op_point_close;
}

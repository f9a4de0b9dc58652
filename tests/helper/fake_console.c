/*
 * Hosts without QEMU: the serial lines of their guests; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

static GBytes *op_console_read(struct hypervisor *hv, const char *instance, gint64 offset,
                               guint wait_ms, guint64 *ret_offset, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_op_begin(host, "console_read", instance, NULL, error))
        return NULL;
    for (guint waited = 0;; waited += FAKE_TICK_MS) {
        const struct fake_guest *guest = fake_guest_find(host, instance);
        if (!guest) {
            fettle_set_error(error, WRONG_STATE, "%s has no process", instance);
            return NULL;
        }
        guint64 end = guest->console->len;
        guint64 from = offset < 0 ? end - MIN(end, (guint64)-offset) : MIN(end, (guint64)offset);
        if (from < end || waited >= wait_ms) {
            *ret_offset = end;
            return g_bytes_new(guest->console->str + from, end - from);
        }
        if (!env_sleep(host->env, FAKE_TICK_MS)) {
            fettle_set_error(error, KILLED, "console_read: the calling process has ended");
            return NULL;
        }
    }
}

/* The guest echoes what is typed. */
static bool op_console_write(struct hypervisor *hv, const char *instance, GBytes *data,
                             GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_op_begin(host, "console_write", instance, NULL, error))
        return false;
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (!guest) {
        fettle_set_error(error, WRONG_STATE, "%s has no process", instance);
        return false;
    }
    gsize len = 0;
    const char *text = g_bytes_get_data(data, &len);
    g_string_append_len(guest->console, text, (gssize)len);
    return true;
}

void fake_console_fill(struct hypervisor_ops *ops)
{
    ops->console_read = op_console_read;
    ops->console_write = op_console_write;
}

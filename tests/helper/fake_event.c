/*
 * Hosts without QEMU: what a host tells its node daemon, now or when it goes on, and to whom
 * something has happened; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

void fake_event_free(void *data)
{
    struct fake_event *event = data;
    g_free(event->instance);
    g_free(event->replica);
    g_free(event);
}

static void tell_now(const struct fake_host *host, const struct fake_event *event)
{
    const struct hypervisor_events *guest = &host->guest_events;
    const struct storage_events *disk = &host->export_events;
    if (event->kind == FAKE_SHUTDOWN && guest->shutdown)
        guest->shutdown(event->instance, event->generation, guest->data);
    else if (event->kind == FAKE_EXITED && guest->exited)
        guest->exited(event->instance, event->generation, "", guest->data);
    else if (event->kind == FAKE_EXPORT_ENDED && disk->export_ended)
        disk->export_ended(event->instance, event->replica, event->generation, disk->data);
}

void fake_host_tell(struct fake_host *host, enum fake_event_kind kind, const char *instance,
                    const char *replica, guint64 generation)
{
    if (host->deaf)
        return;
    struct fake_event *event = g_new(struct fake_event, 1);
    *event = (struct fake_event){kind, g_strdup(instance), g_strdup(replica), generation};
    if (host->paused) {
        g_ptr_array_add(host->untold, event);
        return;
    }
    tell_now(host, event);
    fake_event_free(event);
}

void fake_host_set_paused(struct fake_host *host, bool paused)
{
    host->paused = paused;
    if (paused)
        return;
    g_autoptr(GPtrArray) untold = host->untold;
    host->untold = g_ptr_array_new_with_free_func(fake_event_free);
    for (guint i = 0; i < untold->len; i++)
        tell_now(host, untold->pdata[i]);
}

void fake_hosts_touch(struct fake_hosts *hosts, const char *instance)
{
    for (guint i = hosts->touched->len; i > 0; i--)
        if (strcmp(hosts->touched->pdata[i - 1], instance) == 0)
            return;
    g_ptr_array_add(hosts->touched, g_strdup(instance));
}

const GPtrArray *fake_hosts_touched(const struct fake_hosts *hosts)
{
    return hosts->touched;
}

void fake_hosts_untouch(struct fake_hosts *hosts)
{
    g_ptr_array_set_size(hosts->touched, 0);
}

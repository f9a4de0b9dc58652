/* What the collectors have told last, as metrics (proto/metrics/metric.def); see monitor.h. */
#include "core/monitor/monitor_private.h"
#include "proto/metrics/metric_text.h"

#include <string.h>

#define OF_MONITORING "mond"

guint64 monitor_metrics_need(void)
{
    guint64 which = 0;
    for (guint i = 0; i < metrics_count; i++) {
        int id = collector_find(metrics[i].source);
        which |= id >= 0 ? G_GUINT64_CONSTANT(1) << id : 0;
    }
    return which;
}

/* What is told of the collectors themselves. */
static json_t *about_monitoring(const struct monitor *monitor)
{
    gint64 now_ms = monitor_now_ms(monitor);
    json_t *list = json_array();
    for (guint i = 0; i < COLLECTOR_COUNT; i++) {
        const struct collected *collected = &monitor->collected[i];
        if (collected->setting.active && collected->data)
            json_array_append_new(list, json_make("{ss sb sI}", "name", collectors[i].name, "up",
                                                  !collected->failed, "age_us",
                                                  (json_int_t)(now_ms - collected->at_ms) * 1000));
    }
    json_t *about = json_make("{so}", "collectors", list);
    if (monitor->heard_ms >= 0)
        json_object_set_new(about, "configuration_age_us",
                            json_integer((now_ms - monitor->heard_ms) * 1000));
    return about;
}

static const json_t *document_of(const struct monitor *monitor, const char *source,
                                 const json_t *about)
{
    int id = collector_find(source);
    if (id < 0)
        return strcmp(source, OF_MONITORING) == 0 ? about : NULL;
    return monitor->collected[id].setting.active ? monitor->collected[id].data : NULL;
}

char *monitor_metrics(const struct monitor *monitor, const char *accept, const char **ret_type,
                      size_t *ret_len)
{
    enum metric_form form = metric_form_of(accept);
    struct metric_text *text = metric_text_new(form);
    json_autoptr about = about_monitoring(monitor);
    for (guint i = 0; i < metrics_count; i++)
        metric_text_add(text, &metrics[i], document_of(monitor, metrics[i].source, about));
    *ret_type = metric_form_type(form);
    return metric_text_free(text, ret_len);
}

/* See status.h. */
#include "daemons/rconfd/status.h"

#include <string.h>

#include "base/log.h"
#include "io/files.h"
#include "io/loop.h"

static json_t *describe_dropped(const struct confd_counters *counters)
{
    json_t *object = json_object();
    for (guint i = 0; i < CONFD_FAULT_COUNT; i++)
        json_object_set_new(object, confd_fault_name((enum confd_fault)i),
                            json_integer((json_int_t)counters->dropped[i]));
    return object;
}

static char *describe(const struct rconfd_status *status)
{
    const struct confd_copy *copy = confd_copy_of(status->confd);
    const struct config *config = copy ? confd_copy_config(copy) : NULL;
    const struct confd_counters *counters = confd_counters(status->confd);
    json_autoptr object = json_make(
        "{sb ss ss sI sI sI sI sI so}", "answers", status->why == NULL, "why",
        status->why ? status->why : "", "address", status->address, "port",
        (json_int_t)status->port, "history", config ? (json_int_t)config_history(config) : 0,
        "serial", config ? (json_int_t)config_serial(config) : 0, "answered",
        (json_int_t)counters->answered, "failed", (json_int_t)counters->failed, "dropped",
        describe_dropped(counters));
    g_autofree char *text = json_to_text(object);
    return g_strconcat(text, "\n", NULL);
}

static void write_status(struct rconfd_status *status)
{
    g_autofree char *text = describe(status);
    g_autoptr(GError) error = NULL;
    status->written_ms = loop_boot_ms();
    if (g_strcmp0(text, status->written) == 0)
        return;
    if (!files_write(status->paths, FILE_RUN, "rconfd.status", text, strlen(text), &error)) {
        log_warning("", "run/rconfd.status: %s", error->message);
        return;
    }
    g_free(status->written);
    status->written = g_steal_pointer(&text);
}

void rconfd_status_set(struct rconfd_status *status, const char *why)
{
    const struct confd_copy *copy = confd_copy_of(status->confd);
    if (g_strcmp0(status->why, why) == 0 && status->written)
        return;
    g_free(status->why);
    status->why = g_strdup(why);
    if (why)
        log_info("", "does not answer: %s", why);
    else
        log_info("", "answers at %s port %u from serial %" G_GUINT64_FORMAT, status->address,
                 status->port, config_serial(confd_copy_config(copy)));
    write_status(status);
}

static void complain(struct rconfd_status *status)
{
    const struct confd_counters *now = confd_counters(status->confd);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < CONFD_FAULT_COUNT; i++) {
        guint64 more = now->dropped[i] - status->complained.dropped[i];
        if (more > 0)
            g_string_append_printf(text, "%s%s %" G_GUINT64_FORMAT, text->len > 0 ? ", " : "",
                                   confd_fault_name((enum confd_fault)i), more);
    }
    if (text->len > 0)
        log_warning("", "dropped datagrams since the last word about it: %s", text->str);
    status->complained = *now;
    status->complained_ms = loop_boot_ms();
}

void rconfd_status_tick(struct rconfd_status *status)
{
    gint64 now = loop_boot_ms();
    if (now - status->written_ms >= CONFD_STATUS_MS)
        write_status(status);
    if (now - status->complained_ms >= CONFD_COMPLAIN_MS)
        complain(status);
}

void rconfd_status_clear(struct rconfd_status *status)
{
    g_free(status->why);
    g_free(status->written);
}

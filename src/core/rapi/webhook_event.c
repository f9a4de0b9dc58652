/* An event as it is sent to a receiver; see webhooks.h. */
#include "core/rapi/webhooks.h"

#include <string.h>

#define SOURCE "urn:fettle:cluster:"
#define TYPE "fettle." /* before the word of an event */

static char *time_of(gint64 us)
{
    g_autoptr(GDateTime) seconds = g_date_time_new_from_unix_utc(us / G_USEC_PER_SEC);
    g_autofree char *text = seconds ? g_date_time_format(seconds, "%Y-%m-%dT%H:%M:%S") : NULL;
    return g_strdup_printf("%s.%06dZ", text ? text : "1970-01-01T00:00:00",
                           (int)(us % G_USEC_PER_SEC));
}

static json_t *form(const char *cluster, const json_t *event, json_t *data)
{
    g_autofree char *source = g_strconcat(SOURCE, cluster, NULL);
    g_autofree char *type =
        g_strconcat(TYPE, json_string_value(json_object_get(event, "type")), NULL);
    g_autofree char *time = time_of(json_integer_value(json_object_get(event, "time_us")));
    return json_make("{ss ss ss ss ss ss ss so}", "specversion", "1.0", "id",
                     json_string_value(json_object_get(event, "id")), "source", source, "type",
                     type, "subject", json_string_value(json_object_get(event, "subject")), "time",
                     time, "datacontenttype", "application/json", "data", data);
}

char *webhook_event_body(const char *cluster, const json_t *event)
{
    static const char *const long_ones[] = {"evidence", "rejected", "summary", "error", NULL};
    json_autoptr data = json_copy(json_object_get(event, "data"));
    json_autoptr whole = form(cluster, event, json_incref(data));
    char *text = json_to_text(whole);
    for (const char *const *name = long_ones; strlen(text) > LIMIT_WEBHOOK_BODY && *name; name++) {
        json_object_del(data, *name);
        json_object_set_new(data, "shortened", json_true());
        g_free(text);
        text = json_to_text(whole);
    }
    return text;
}

char *webhook_event_signature(const char *secret, gint64 seconds, const char *body)
{
    g_autofree char *signed_text = g_strdup_printf("%" G_GINT64_FORMAT ".%s", seconds, body);
    g_autofree char *hex =
        g_compute_hmac_for_string(G_CHECKSUM_SHA256, (const guchar *)secret, strlen(secret),
                                  signed_text, (gssize)strlen(signed_text));
    return g_strdup_printf("t=%" G_GINT64_FORMAT ",v1=%s", seconds, hex);
}

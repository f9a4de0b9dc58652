/* GET /fettle/v1/events: server-sent events; see events/event_hub.h. */
#include <string.h>

#include "core/rapi/events/event_window.h"
#include "core/rapi/rapi_private.h"

/* 0 with an answer. */
static guint32 kinds_of(struct rapi_call *call, struct http_answer **ret_refused)
{
    const char *text = rapi_query(call, "kinds");
    g_auto(GStrv) words = g_strsplit(text ? text : "event", ",", EVENT_KINDS + 2);
    guint32 kinds = 0;
    for (char **word = words; *word; word++) {
        const struct event_kind_row *kind = event_kind_find(*word);
        if (!kind) {
            g_autofree char *known = event_kinds_known();
            *ret_refused = rapi_refuse(400, "kinds: must be some of %s, not \"%s\"", known, *word);
            return 0;
        }
        kinds |= event_bit(kind);
    }
    if (!kinds)
        *ret_refused = rapi_refuse(400, "kinds: is empty; without it events are told of");
    return kinds;
}

/* False with an error; `ret_filter` NULL: there is none. */
static bool filter_of(const struct rapi_call *call, json_t **ret_filter, GError **error)
{
    g_autoptr(GError) local = NULL;
    const char *text = rapi_query(call, "filter");
    *ret_filter = NULL;
    if (!text)
        return true;
    *ret_filter = json_parse_limited(text, strlen(text), LIMIT_EVENT_FILTER_BYTES, &local);
    if (!*ret_filter)
        fettle_set_error(error, WRONG_INPUT, "filter: %s", local->message);
    return *ret_filter;
}

/* Who was admitted may have become another one since: what goes by for hours is begun by who he is
 * now. */
static char *mark_of(struct rapi_call *call, GError **error)
{
    g_autofree char *name = NULL;
    g_autofree char *mark = rapi_users_mark(call->rapi->users, call->user, error);
    if (!mark)
        return NULL;
    enum rapi_access access = rapi_users_check(call->rapi->users, call->request, &name, error);
    return access >= RAPI_READ ? g_steal_pointer(&mark) : NULL;
}

static struct http_answer *answer_with(struct http_feed *feed)
{
    struct http_answer *answer = http_answer_new(200);
    http_answer_add_header(answer, "Cache-Control", "no-store");
    http_answer_add_header(answer, "X-Accel-Buffering", "no"); /* of a proxy */
    if (feed)
        http_answer_set_feed(answer, "text/event-stream", feed);
    else
        http_answer_set_body(answer, "text/event-stream", g_strdup(""));
    return answer;
}

/* A new EventSource of a browser can set no header. */
static const char *place_of(const struct rapi_call *call)
{
    const char *header = http_request_header(call->request, "last-event-id");
    const char *query = rapi_query(call, "last_event_id");
    return *header || !query ? header : query;
}

struct http_answer *rapi_own_events(struct rapi_call *call, GError **error)
{
    g_autoptr(GError) local = NULL;
    struct http_answer *refused = NULL;
    json_autoptr filter = NULL;
    guint32 kinds = kinds_of(call, &refused);
    if (!kinds)
        return refused;
    if (!filter_of(call, &filter, error))
        return NULL;
    g_autofree char *mark = mark_of(call, &local);
    if (!mark && !local)
        return rapi_answer_unknown();
    if (local) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    const struct event_wish wish = {.kinds = kinds,
                                    .filter = filter,
                                    .place = place_of(call),
                                    .user = call->user,
                                    .mark = mark};
    if (!strcmp(call->request->method, "HEAD"))
        return event_hub_check(call->rapi->hub, &wish, error) ? answer_with(NULL) : NULL;
    struct http_feed *feed = event_hub_join(call->rapi->hub, &wish, error);
    return feed ? answer_with(feed) : NULL;
}

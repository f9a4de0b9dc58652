/* See event_recall.h. */
#include "core/rapi/events/event_recall.h"

#include <string.h>

#include "core/rapi/rapi_rows.h"

#define TURN_ROWS 500      /* that are put before others have their turn */
#define PATIENCE_MS 25000u /* for luxid, besides its wait for a change */

struct event_question {
    GPtrArray *fields[EVENT_KINDS]; /* of char *; NULL: that kind is not wanted */
    guint64 wanted;                 /* of event_window_wanted() */
};

struct event_question *event_question_new(const struct event_window *window,
                                          const struct event_view *view)
{
    struct event_question *question = g_new0(struct event_question, 1);
    guint32 kinds = view ? event_view_kinds(view) : event_window_kinds(window);
    question->wanted = event_window_wanted(window);
    for (size_t i = 0; i < EVENT_KINDS; i++) {
        const struct event_kind_row *kind = &event_kind_rows[i];
        if (!(kinds & event_bit(kind)))
            continue;
        bool rings = kind->on_record && !view;
        question->fields[i] = rings ? g_ptr_array_new_with_free_func(g_free)
                                    : event_window_fields(window, view, kind);
    }
    return question;
}

void event_question_free(struct event_question *question)
{
    for (size_t i = 0; i < EVENT_KINDS; i++)
        g_clear_pointer(&question->fields[i], g_ptr_array_unref);
    g_free(question);
}

static json_t *names_json(const GPtrArray *names)
{
    json_t *list = json_array();
    for (guint i = 0; i < names->len; i++)
        json_array_append_new(list, json_string(names->pdata[i]));
    return list;
}

json_t *event_question_ask(const struct event_question *question, struct rapi_luxid *luxid,
                           const char *stream, guint64 serial, guint wait_s, GError **error)
{
    json_t *kinds = json_object();
    for (size_t i = 0; i < EVENT_KINDS; i++)
        if (question->fields[i])
            json_object_set_new(kinds, event_kind_rows[i].name, names_json(question->fields[i]));
    return luxid->call(luxid, FACE_OWN, "WatchChanges",
                       json_make("[o s I i]", kinds, stream, (json_int_t)serial, (int)wait_s), NULL,
                       wait_s * 1000 + PATIENCE_MS, error);
}

static void take_change(const struct event_question *question, const json_t *change, guint64 serial,
                        struct event_window *window, bool *ret_rings)
{
    const char *name = json_string_value(json_array_get(change, 0));
    const struct event_kind_row *kind = name ? event_kind_find(name) : NULL;
    const char *key = json_string_value(json_array_get(change, 1));
    if (!kind || !key || !question->fields[kind - event_kind_rows])
        return;
    if (kind->on_record) {
        *ret_rings = true;
        return;
    }
    event_window_put(window,
                     &(struct event_row){.kind = kind,
                                         .key = key,
                                         .serial = serial,
                                         .wanted = question->wanted,
                                         .cells = json_array_get(change, 2),
                                         .fields = question->fields[kind - event_kind_rows]});
}

/* A luxid of before tells one serial for all. */
void event_question_take(const struct event_question *question, const json_t *answer,
                         struct event_window *window, bool *ret_rings)
{
    json_t *serials = json_object_get(answer, "serials"), *change;
    size_t i;
    json_array_foreach(json_object_get(answer, "changes"), i, change) {
        json_t *serial = json_array_get(serials, i);
        serial = serial ? serial : json_object_get(answer, "serial");
        take_change(question, change, (guint64)json_integer_value(serial), window, ret_rings);
    }
}

/* --- from before the window --- */

/* Some of it; `*serial` moves to its end. False: there is an error, or luxid has forgotten. */
static bool recall_some(struct rapi_luxid *luxid, struct event_window *window,
                        const struct event_question *question, guint64 *serial, bool *ret_all,
                        GError **error)
{
    bool rings = false;
    g_autofree char *stream = g_strdup(event_window_stream(window));
    json_autoptr answer = event_question_ask(question, luxid, stream, *serial, 0, error);
    if (!answer || json_is_true(json_object_get(answer, "anew")) ||
        strcmp(stream, event_window_stream(window)) != 0)
        return false;
    event_question_take(question, answer, window, &rings);
    guint64 reached = (guint64)json_integer_value(json_object_get(answer, "serial"));
    *ret_all = reached <= *serial || !json_array_size(json_object_get(answer, "changes"));
    *serial = reached;
    return true;
}

bool event_recall_now(struct rapi_luxid *luxid, struct event_window *window, guint64 serial,
                      GError **error)
{
    g_autoptr(GError) local = NULL;
    struct event_question *question = event_question_new(window, NULL);
    guint64 reached = serial;
    bool all = false, more = true;
    while (more && !all)
        more = recall_some(luxid, window, question, &reached, &all, &local);
    guint64 wanted = question->wanted;
    event_question_free(question);
    if (local) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (all)
        event_window_recall(window, EVENT_NOW, serial, wanted);
    return true;
}

/* --- decisions --- */

/* How decisions are asked for. */
struct decisions {
    const struct event_kind_row *event, *decision;
    guint32 kinds; /* that are wanted of them */
    guint64 wanted;
    GPtrArray *fields; /* the last three are `own` */
};

static const char *const own[] = {"uuid", "serial_no", "event"};

static void decisions_init(struct decisions *asked, const struct event_window *window)
{
    *asked = (struct decisions){.event = event_kind_find("event"),
                                .decision = event_kind_find("decision"),
                                .wanted = event_window_wanted(window),
                                .fields = g_ptr_array_new_with_free_func(g_free)};
    const struct event_kind_row *const of[] = {asked->event, asked->decision};
    asked->kinds =
        event_window_kinds(window) & (event_bit(asked->event) | event_bit(asked->decision));
    for (size_t i = 0; i < G_N_ELEMENTS(of); i++) {
        if (!(asked->kinds & event_bit(of[i])))
            continue;
        g_autoptr(GPtrArray) names = event_window_fields(window, NULL, of[i]);
        for (guint at = 0; at < names->len; at++)
            g_ptr_array_add(asked->fields, g_strdup(names->pdata[at]));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
        g_ptr_array_add(asked->fields, g_strdup(own[i]));
}

/* Events are few among decisions. */
static char *ask_decisions(const struct decisions *asked, struct rapi_luxid *luxid, guint64 serial,
                           GError **error)
{
    json_t *filter = json_make("[s, [s, s, I]]", "&", ">", "serial_no", (json_int_t)serial);
    if (!(asked->kinds & event_bit(asked->decision)))
        json_array_append_new(filter, json_make("[s, s, s]", "!=", "event", "none"));
    return luxid->call_text(luxid, FACE_OWN, "Query",
                            json_make("[s o o]", "decision", names_json(asked->fields), filter),
                            NULL, 0, error);
}

static guint64 put_decision(const struct decisions *asked, struct event_window *window,
                            const struct rapi_span *spans)
{
    const GPtrArray *fields = asked->fields;
    json_autoptr cells = json_array();
    for (guint i = 0; i < fields->len; i++) {
        json_t *value = json_loadb(spans[i].at, spans[i].length, JSON_DECODE_ANY, NULL);
        json_array_append_new(cells, json_make("[i o]", 0, value ? value : json_null()));
    }
    json_t *const *value = (json_t *const[]){
        json_array_get(json_array_get(cells, fields->len - 3), 1),
        json_array_get(json_array_get(cells, fields->len - 2), 1),
        json_array_get(json_array_get(cells, fields->len - 1), 1),
    };
    struct event_row row = {.kind = asked->event,
                            .key = json_string_value(value[0]),
                            .serial = (guint64)json_integer_value(value[1]),
                            .wanted = asked->wanted,
                            .cells = cells,
                            .fields = fields};
    const char *event = json_string_value(value[2]);
    if (!row.key)
        return 0;
    if (asked->kinds & event_bit(asked->event) && event && strcmp(event, "none") != 0)
        event_window_put(window, &row);
    row.kind = asked->decision;
    if (asked->kinds & event_bit(asked->decision))
        event_window_put(window, &row);
    return row.serial;
}

/* They may be as many as decisions may be; others have their turn between them. */
static bool put_decisions(const struct decisions *asked, const struct env *env,
                          struct event_window *window, const char *text, guint64 *newest,
                          GError **error)
{
    struct rapi_rows rows;
    g_autofree struct rapi_span *spans = g_new0(struct rapi_span, asked->fields->len);
    guint put = 0;
    rapi_rows_begin(&rows, text, true);
    while (rapi_rows_next(&rows, spans, asked->fields->len)) {
        guint64 of_row = put_decision(asked, window, spans);
        *newest = MAX(*newest, of_row);
        if (++put % TURN_ROWS == 0 && !env_sleep(env, 1)) {
            fettle_set_ended(error, "the server");
            return false;
        }
    }
    if (rows.broken)
        fettle_set_error(error, PROTOCOL, "luxid: Query: the answer is no list of rows");
    return !rows.broken;
}

bool event_recall_record(const struct env *env, struct rapi_luxid *luxid,
                         struct event_window *window, guint64 serial, guint64 *ret_newest,
                         GError **error)
{
    struct decisions asked;
    guint64 newest = serial;
    decisions_init(&asked, window);
    g_autofree char *text = ask_decisions(&asked, luxid, serial, error);
    bool ok = text && put_decisions(&asked, env, window, text, &newest, error);
    if (ok)
        event_window_recall(window, EVENT_RECORD, serial, asked.wanted);
    *ret_newest = asked.wanted == event_window_wanted(window) ? newest : serial;
    g_ptr_array_unref(asked.fields);
    return ok;
}

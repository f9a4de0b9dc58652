/* The window of what has happened: each object once, who is overtaken, texts that are hostile. */
#include "core/rapi/events/event_window.h"

#include <string.h>

#define STREAM "12345678-0000-4000-8000-000000000001"

static GPtrArray *fields;

static void put_text(struct event_window *window, const char *kind, const char *key, guint64 serial,
                     const char *name)
{
    const struct event_row row = {.kind = event_kind_find(kind),
                                  .key = key,
                                  .serial = serial,
                                  .wanted = event_window_wanted(window),
                                  .cells = json_make("[[is]]", 0, name),
                                  .fields = fields};
    event_window_put(window, &row);
    event_window_reach(window, event_line_of(row.kind), serial);
    json_decref((json_t *)row.cells);
}

static void put(struct event_window *window, const char *kind, const char *key, guint64 serial)
{
    put_text(window, kind, key, serial, key);
}

static struct event_window *begin(const char *kind, struct event_view **ret_view)
{
    struct event_window *window = event_window_new();
    event_window_begin(window, STREAM, 0);
    event_window_begin_record(window, 0);
    *ret_view = event_view_take(window, event_bit(event_kind_find(kind)), NULL, NULL);
    return window;
}

static void end(struct event_window *window, struct event_view *view)
{
    event_view_drop(view);
    event_window_free(window);
}

static char *read_all(struct event_view *view, struct event_place *place)
{
    g_autoptr(GString) text = g_string_new(NULL);
    GBytes *piece;
    while ((piece = event_view_next(view, place))) {
        g_string_append_len(text, g_bytes_get_data(piece, NULL), (gssize)g_bytes_get_size(piece));
        g_bytes_unref(piece);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static guint count(const char *text, const char *part)
{
    guint found = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        found++;
    return found;
}

static void test_overtaken(void)
{
    struct event_view *view;
    struct event_window *window = begin("node", &view);
    struct event_place slow = event_window_newest(window), last = slow;
    for (guint i = 1; i <= LIMIT_EVENT_ROWS + 10; i++) {
        g_autofree char *key = g_strdup_printf("n%u", i);
        last = i == 11 ? event_window_newest(window) : last;
        put(window, "node", key, i);
    }
    g_assert_false(event_view_reaches(view, EVENT_NOW, &slow));
    g_assert_true(event_view_reaches(view, EVENT_NOW, &last));
    g_autofree char *text = read_all(view, &last);
    g_assert_cmpuint(count(text, "event: node.changed\n"), ==, LIMIT_EVENT_ROWS);
    g_assert_cmpuint(count(text, "id: " STREAM ":"), ==, LIMIT_EVENT_ROWS);
    g_assert_cmpuint(last.at[EVENT_NOW], ==, LIMIT_EVENT_ROWS + 10);
    end(window, view);
}

/* Few that are large take the place of many. */
static void test_bytes(void)
{
    struct event_view *view;
    struct event_window *window = begin("node", &view);
    struct event_place place = event_window_newest(window);
    g_autofree char *large = g_strnfill(LIMIT_EVENT_BYTES / 4, 'x');
    for (guint i = 1; i <= 8; i++) {
        g_autofree char *key = g_strdup_printf("n%u", i);
        put_text(window, "node", key, i, large);
    }
    g_assert_false(event_view_reaches(view, EVENT_NOW, &place));
    place.at[EVENT_NOW] = 6;
    g_assert_true(event_view_reaches(view, EVENT_NOW, &place));
    g_autofree char *text = read_all(view, &place);
    g_assert_cmpuint(count(text, "event: "), ==, 2);
    end(window, view);
}

/* Nothing that somebody has written ends a line, or is another event. */
static void test_hostile(void)
{
    static const char *const names[] = {"a\nevent: job.error\ndata: {}\n\n",
                                        "\r\r\n",
                                        "\"quoted\"",
                                        "\u202eevil",
                                        "\u2028\u2029\xc2\x85",
                                        ":",
                                        "id: x",
                                        ""};
    struct event_view *view;
    struct event_window *window = begin("node", &view);
    struct event_place place = event_window_newest(window);
    g_autofree char *long_name = g_strnfill(512, 'n');
    for (guint i = 0; i <= G_N_ELEMENTS(names); i++) {
        const char *name = i < G_N_ELEMENTS(names) ? names[i] : long_name;
        g_autofree char *key = g_strdup_printf("n%u", i);
        put_text(window, "node", key, i + 1, name);
        g_autofree char *text = read_all(view, &place);
        g_auto(GStrv) lines = g_strsplit_set(text, "\r\n", -1);
        g_assert_cmpuint(g_strv_length(lines), ==, 5);
        g_assert_true(g_str_has_prefix(lines[0], "id: " STREAM));
        g_assert_cmpstr(lines[1], ==, "event: node.changed");
        json_autoptr data = json_loads(lines[2] + strlen("data: "), 0, NULL);
        g_assert_cmpstr(json_string_value(json_object_get(data, "name")), ==, name);
    }
    end(window, view);
}

/* Those of one change are told of together, or again. */
static void test_record(void)
{
    struct event_view *view;
    struct event_window *window = begin("decision", &view);
    struct event_place place = event_window_newest(window), before = place;
    put(window, "event", "d1", 7);
    put(window, "decision", "d1", 7);
    put(window, "decision", "d2", 7);
    put(window, "node", "n1", 100);
    g_autofree char *text = read_all(view, &place);
    g_assert_cmpuint(count(text, "event: decision."), ==, 2);
    g_assert_cmpuint(count(text, "id: "), ==, 1);
    g_assert_nonnull(strstr(text, "id: " STREAM ":0:7\n"));
    g_assert_cmpuint(place.at[EVENT_RECORD], ==, 7);
    g_assert_cmpuint(place.at[EVENT_NOW], ==, 100);
    event_window_begin(window, "other", 3);
    place = before;
    g_autofree char *again = read_all(view, &place);
    g_assert_cmpuint(count(again, "event: decision."), ==, 2); /* they outlive the stream */
    end(window, view);
}

/* What is put in from before the oldest stands before it. */
static void test_recalled(void)
{
    struct event_view *view;
    struct event_window *window = event_window_new();
    event_window_begin(window, STREAM, 50);
    event_window_begin_record(window, 0);
    view = event_view_take(window, event_bit(event_kind_find("node")), NULL, NULL);
    struct event_place place = {{10, 0}};
    put(window, "node", "n51", 51);
    put(window, "node", "n20", 52); /* was at 20 */
    g_assert_false(event_view_reaches(view, EVENT_NOW, &place));
    put(window, "node", "n15", 15);
    put(window, "node", "n30", 30);
    put(window, "node", "n51", 51);
    put(window, "node", "n20", 52);
    event_window_recall(window, EVENT_NOW, 10, event_window_wanted(window));
    g_assert_true(event_view_reaches(view, EVENT_NOW, &place));
    g_autofree char *text = read_all(view, &place);
    g_assert_cmpuint(count(text, "event: "), ==, 4);
    const char *at = text;
    static const char *const order[] = {"\"n15\"", "\"n30\"", "\"n51\"", "\"n20\""};
    for (size_t i = 0; i < G_N_ELEMENTS(order); i++)
        g_assert_nonnull(at = strstr(at, order[i]));
    end(window, view);
}

/* An answer that is late changes nothing, and what it did not ask for is not known by it. */
static void test_late(void)
{
    struct event_view *view;
    struct event_window *window = begin("node", &view);
    struct event_place place = {{0, 0}};
    put_text(window, "node", "n1", 9, "new");
    put_text(window, "node", "n1", 5, "old");
    g_autofree char *text = read_all(view, &place);
    g_assert_nonnull(strstr(text, "\"name\":\"new\""));
    g_assert_cmpuint(count(text, "event: "), ==, 1);
    guint64 wanted = event_window_wanted(window);
    struct event_view *group =
        event_view_take(window, event_bit(event_kind_find("group")), NULL, NULL);
    place.at[EVENT_NOW] = 0;
    event_window_recall(window, EVENT_NOW, 0, wanted);
    g_assert_true(event_view_reaches(view, EVENT_NOW, &place));
    g_assert_false(event_view_reaches(group, EVENT_NOW, &place));
    event_window_recall(window, EVENT_NOW, 0, event_window_wanted(window));
    g_assert_true(event_view_reaches(group, EVENT_NOW, &place));
    event_view_drop(group);
    end(window, view);
}

/* --- filters --- */

static struct event_view *take(struct event_window *window, const char *filter, GError **error)
{
    json_autoptr json = json_loads(filter, 0, NULL);
    return event_view_take(window, event_bit(event_kind_find("node")), json, error);
}

/* One that costs as much as it may for each change is given up, and takes nobody else with it. */
static void test_too_dear(void)
{
    struct event_view *all;
    struct event_window *window = begin("node", &all);
    struct event_view *cheap = take(window, "[\"=~\",\"name\",\"^a\"]", NULL);
    struct event_view *dear = take(window, "[\"=~\",\"name\",\"(.|.)*(.|.)*[!?]\"]", NULL);
    struct event_place place = event_window_newest(window);
    g_autofree char *name = g_strnfill(100, 'a');
    guint rows = 0;
    while (!event_view_is_too_dear(dear) && ++rows < 100)
        put_text(window, "node", "n1", rows, name);
    g_assert_cmpuint(rows, <, 10);
    for (guint i = 0; i < 1000; i++)
        put_text(window, "node", "n1", ++rows, name);
    g_assert_false(event_view_is_too_dear(cheap));
    g_autofree char *text = read_all(cheap, &place);
    g_assert_cmpuint(count(text, "event: node.changed\n"), ==, 1);
    struct event_view *again = take(window, "[\"=~\",\"name\",\"(.|.)*(.|.)*[!?]\"]", NULL);
    g_assert_true(again != dear && !event_view_is_too_dear(again));
    event_view_drop(again);
    event_view_drop(dear);
    event_view_drop(cheap);
    end(window, all);
}

/* The place of one that is gone says nothing of the next. */
static void test_place_again(void)
{
    struct event_view *all;
    struct event_window *window = begin("node", &all);
    struct event_view *view = take(window, "[\"=\",\"name\",\"n1\"]", NULL);
    struct event_place place = event_window_newest(window);
    put(window, "node", "n1", 1);
    event_view_drop(view);
    view = take(window, "[\"=\",\"name\",\"n2\"]", NULL);
    g_autofree char *text = read_all(view, &place);
    g_assert_cmpstr(text, ==, "");
    event_view_drop(view);
    end(window, all);
}

static void check_refused(struct event_window *window, const char *filter, enum fettle_error code,
                          const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(take(window, filter, &error));
    g_assert_error(error, FETTLE_ERROR, (int)code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_regexes(void)
{
    struct event_view *all, *views[LIMIT_EVENT_REGEXES / LIMIT_EVENT_FILTER_REGEXES];
    struct event_window *window = begin("node", &all);
#define A "[\"=~\",\"name\",\"a\"],"
    check_refused(window, "[\"|\"," A A A A "[\"!\",[\"=~\",\"name\",\"b\"]]]",
                  FETTLE_ERROR_WRONG_INPUT,
                  "filter: has 5 regular expressions, and one of events may have 4; compare with "
                  "\"=\", or choose in your program");
    for (guint i = 0; i < G_N_ELEMENTS(views); i++) {
        g_autofree char *filter = g_strdup_printf("[\"&\"," A A A "[\"=~\",\"name\",\"%u\"]]", i);
        g_assert_nonnull(views[i] = take(window, filter, NULL));
    }
    check_refused(window, "[\"=~\",\"name\",\"b\"]", FETTLE_ERROR_TEMPORARY,
                  "filter: 32 regular expressions are in use by who follows events, of 32; try "
                  "again, or compare with \"=\"");
    event_view_drop(views[0]);
    g_assert_nonnull(views[0] = take(window, "[\"=~\",\"name\",\"b\"]", NULL));
    for (guint i = 0; i < G_N_ELEMENTS(views); i++)
        event_view_drop(views[i]);
    end(window, all);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fields = g_ptr_array_new();
    g_ptr_array_add(fields, (char *)"name");
    g_test_add_func("/rapi-event-window/overtaken", test_overtaken);
    g_test_add_func("/rapi-event-window/bytes", test_bytes);
    g_test_add_func("/rapi-event-window/hostile", test_hostile);
    g_test_add_func("/rapi-event-window/record", test_record);
    g_test_add_func("/rapi-event-window/recalled", test_recalled);
    g_test_add_func("/rapi-event-window/late", test_late);
    g_test_add_func("/rapi-event-window/place-again", test_place_again);
    g_test_add_func("/rapi-event-window/too-dear", test_too_dear);
    g_test_add_func("/rapi-event-window/regexes", test_regexes);
    int code = g_test_run();
    g_ptr_array_unref(fields);
    return code;
}

/* See event_watch.h. */
#include "cli/event/event_watch.h"

#include <stdio.h>
#include <string.h>

#include "cli/filter_text.h"
#include "cli/foreign.h"
#include "cli/interrupt.h"
#include "io/output.h"
#include "proto/events/event_kinds.h"

#define EVENT "event"

/* Of an event, in front of what is shown. */
static const char *const before[] = {"serial_no", "uuid"};
enum { SERIAL, UUID, SHOWN };

struct following {
    struct cli *cli;
    json_t *kinds;     /* as WatchChanges wants them */
    json_t *filter;    /* NULL: all */
    json_t *of_events; /* with that; the same */
    char *stream;
    json_int_t position;
    json_int_t from;   /* serial of the configuration: what was before is not shown */
    GHashTable *shown; /* uuids of those of that serial that were */
    GHashTable *names; /* "kind/key" of what was shown -> what it is called */
    bool begun;
};

/* --- events --- */

/* A cell of a row of an event, by the name of its field. */
static size_t place_of(const char *field)
{
    const struct event_kind_row *what = event_kind_find(EVENT);
    size_t i = 0;
    while (strcmp(what->fields[i], field) != 0)
        i++;
    return SHOWN + i;
}

static void print_event(const struct cli *cli, const json_t *row)
{
    const struct event_kind_row *what = event_kind_find(EVENT);
    if (cli->json) {
        json_autoptr object = json_object();
        for (size_t i = 0; what->fields[i] != NULL; i++) {
            const json_t *value = cli_cell_value(row, SHOWN + i);
            json_object_set_new(object, what->fields[i],
                                value != NULL ? json_deep_copy(value) : json_null());
        }
        g_autofree char *text = foreign_json(json_to_text(object));
        printf("%s\n", text);
        return;
    }
    g_autofree char *at =
        cli_time_text((gint64)json_number_value(cli_cell_value(row, place_of("at"))));
    printf("%s  %-8s  %s: %s\n", at, cli_cell_string(row, place_of("level")),
           cli_cell_string(row, place_of("subject_name")),
           cli_cell_string(row, place_of("summary")));
}

/* Rows come in the order in which they were made. */
static bool show_new(struct following *following, GError **error)
{
    json_t *new = json_make("[ssI]", ">=", "serial_no", following->from);
    const char *fields[SHOWN + EVENT_FIELDS];
    memcpy(fields, before, sizeof before);
    memcpy(fields + SHOWN, event_kind_find(EVENT)->fields, EVENT_FIELDS * sizeof *fields);
    json_autoptr rows = cli_query(following->cli, EVENT, fields,
                                  filter_text_both(new, json_incref(following->of_events)), error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        json_int_t serial = json_integer_value(cli_cell_value(row, SERIAL));
        if (serial > following->from) {
            following->from = serial;
            g_hash_table_remove_all(following->shown);
        }
        if (g_hash_table_add(following->shown, g_strdup(cli_cell_string(row, UUID))))
            print_event(following->cli, row);
    }
    return rows != NULL;
}

/* --- what is no event --- */

static json_t *key_filter(const struct event_kind_row *what, const char *key)
{
    if (!*what->key)
        return NULL;
    if (strcmp(what->key, "id") == 0)
        return json_make("[ssI]", "=", what->key, (json_int_t)g_ascii_strtoll(key, NULL, 10));
    return json_make("[sss]", "=", what->key, key);
}

/* Whether the filter lets it through as it is now. What is gone has no fields any more, so only who
 * wants everything is told. */
static bool passes(const struct following *following, const struct event_kind_row *what,
                   const char *key, const json_t *row, bool *ret_passes, GError **error)
{
    *ret_passes = following->filter == NULL;
    if (*ret_passes || !json_is_array(row))
        return true;
    json_autoptr rows =
        cli_query(following->cli, what->name, what->fields,
                  filter_text_both(key_filter(what, key), json_incref(following->filter)), error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *other = json_array_get(rows, i);
        if (json_equal(json_array_get(other, 0), json_array_get(row, 0)) &&
            json_equal(json_array_get(other, 1), json_array_get(row, 1)))
            *ret_passes = true;
        if (*what->key)
            *ret_passes = true;
    }
    return rows != NULL;
}

static void print_json(const struct event_kind_row *what, const char *key, const json_t *row)
{
    json_autoptr object =
        json_make("{sf, ss, ss, sb}", "at", (double)g_get_real_time() / 1e6, "kind", what->name,
                  "key", key, "gone", (int)!json_is_array(row));
    for (size_t i = 0; json_is_array(row) && what->fields[i] != NULL; i++) {
        const json_t *value = cli_cell_value(row, i);
        json_object_set_new(object, what->fields[i],
                            value != NULL ? json_deep_copy(value) : json_null());
    }
    g_autofree char *text = foreign_json(json_to_text(object));
    printf("%s\n", text);
}

static void print_fields(const struct event_kind_row *what, const json_t *row)
{
    for (size_t i = 1; what->fields[i] != NULL; i++) {
        g_autofree char *text = cli_cell_text(what->name, what->fields[i], json_array_get(row, i));
        printf("%s %s %s", i > 1 ? "," : "", what->fields[i], text);
    }
    printf("\n");
}

static void print_change(struct following *following, const struct event_kind_row *what,
                         const char *key, const json_t *row)
{
    if (following->cli->json) {
        print_json(what, key, row);
        return;
    }
    g_autofree char *at = cli_time_text(g_get_real_time() / G_USEC_PER_SEC);
    g_autofree char *path = g_strdup_printf("%s/%s", what->name, key);
    if (json_is_array(row))
        g_hash_table_replace(following->names, g_strdup(path),
                             cli_cell_text(what->name, what->fields[0], json_array_get(row, 0)));
    const char *name = g_hash_table_lookup(following->names, path);
    printf("%s  %-8s  %s:", at, what->name, name != NULL ? name : key);
    if (json_is_array(row))
        print_fields(what, row);
    else
        printf(" gone\n");
}

/* `ret_events`: there are some among them. */
static bool show_changes(struct following *following, const json_t *changes, bool *ret_events,
                         GError **error)
{
    size_t i;
    const json_t *change;
    json_array_foreach(changes, i, change) {
        const char *kind = json_string_value(json_array_get(change, 0));
        const char *key = json_string_value(json_array_get(change, 1));
        const json_t *row = json_array_get(change, 2);
        const struct event_kind_row *what = kind != NULL ? event_kind_find(kind) : NULL;
        bool shown = false;
        bool is_event = what == NULL || strcmp(what->name, EVENT) == 0;
        *ret_events = *ret_events || is_event;
        if (is_event || key == NULL)
            continue;
        if (!passes(following, what, key, row, &shown, error))
            return false;
        if (shown)
            print_change(following, what, key, row);
    }
    return true;
}

/* --- following --- */

static bool begin(struct following *following, GError **error)
{
    json_autoptr info = cli_call(following->cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL)
        return false;
    following->from = json_integer_value(json_object_get(info, "serial")) + 1;
    following->begun = true;
    return true;
}

/* Of events nothing is lost; what else has changed meanwhile nobody tells. */
static void tell_gap(const struct following *following, const json_t *answer)
{
    bool others = json_object_size(following->kinds) >
                  (json_object_get(following->kinds, EVENT) != NULL ? 1 : 0);
    if (others && *following->stream != '\0' && json_is_true(json_object_get(answer, "anew")))
        fprintf(stderr, "fettle: %s; what has changed meanwhile is shown of events only\n",
                json_string_value(json_object_get(answer, "why")));
}

static bool take(struct following *following, const json_t *answer, GError **error)
{
    bool events = json_is_true(json_object_get(answer, "anew"));
    tell_gap(following, answer);
    if (!show_changes(following, json_object_get(answer, "changes"), &events, error))
        return false;
    bool wanted = json_object_get(following->kinds, EVENT) != NULL;
    return !wanted || !events || show_new(following, error);
}

/* One question, and what follows from its answer. */
static bool follow(struct following *following, GError **error)
{
    if (!following->begun && !begin(following, error))
        return false;
    json_autoptr answer = cli_call(following->cli, "WatchChanges",
                                   json_make("[O s I i]", following->kinds, following->stream,
                                             following->position, LIVE_WAIT_S),
                                   error);
    if (answer == NULL || !take(following, answer, error))
        return false;
    const char *stream = json_string_value(json_object_get(answer, "stream"));
    g_free(following->stream);
    following->stream = g_strdup(stream != NULL ? stream : "");
    following->position = json_integer_value(json_object_get(answer, "serial"));
    g_clear_pointer(&following->cli->away, g_free);
    return output_is_read(error);
}

static int follow_until_left(struct following *following, GError **error)
{
    for (;;) {
        g_autoptr(GError) reason = NULL;
        if (follow(following, &reason))
            continue;
        if (fettle_error_is(reason, DETACHED))
            return 0;
        if (!following->begun || !cli_is_passing(reason)) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return -1;
        }
        if (!cli_wait_for_luxid(following->cli, false, reason))
            return 0;
    }
}

/* --- what is asked --- */

bool event_watch_is_plain(const char *kinds)
{
    return strcmp(kinds, EVENT) == 0;
}

static json_t *kinds_of(const char *text, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    json_t *kinds = json_object();
    for (char **word = words; *word != NULL; word++) {
        const struct event_kind_row *what = event_kind_find(*word);
        if (what == NULL) {
            g_autofree char *known = event_kinds_known();
            fettle_set_error(error, WRONG_INPUT, "--kinds: must be some of %s, not \"%s\"", known,
                             *word);
            json_decref(kinds);
            return NULL;
        }
        json_t *names = json_array();
        for (size_t i = 0; strcmp(what->name, EVENT) != 0 && what->fields[i] != NULL; i++)
            json_array_append_new(names, json_string(what->fields[i]));
        json_object_set_new(kinds, *word, names);
    }
    return kinds;
}

int event_watch_run(struct cli *cli, const char *kinds, json_t *filter, json_t *of_events,
                    GError **error)
{
    struct following following = {
        .cli = cli,
        .kinds = kinds_of(kinds, error),
        .filter = filter,
        .of_events = filter_text_both(of_events, json_incref(filter)),
        .stream = g_strdup(""),
        .shown = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    cli_interrupt_catch();
    cli->interruptible = true;
    int code = following.kinds != NULL ? follow_until_left(&following, error) : -1;
    cli->interruptible = false;
    g_hash_table_unref(following.names);
    g_hash_table_unref(following.shown);
    json_decref(following.of_events);
    json_decref(following.filter);
    json_decref(following.kinds);
    g_free(following.stream);
    return code;
}

/* See event_window.h. */
#include "core/rapi/events/event_window.h"

#include <string.h>

#define RETRY_MS 1000 /* until a client that has lost its connection comes again */

/* An object that has changed. */
struct entry {
    GList link; /* in its line, by serial */
    const struct event_kind_row *kind;
    guint64 serial, order; /* of coming, in both lines */
    guint64 wanted;        /* of what was wanted when it was asked for */
    guint32 passes;        /* filters that let it through */
    char *text;            /* "event: …\ndata: …\n\n" */
    gsize bytes;
    char key[];
};

struct line {
    GQueue entries;
    gsize bytes;
    guint64 floor, newest; /* what is between them is here */
    GList *last;           /* the last that came; NULL: it may be gone */
};

/* A filter that views share. */
struct event_filter {
    char *text; /* by which it is known */
    GPtrArray *names;
    struct filter *filter;
    guint32 kinds; /* that it was asked for */
    guint64 since[EVENT_LINES];
    guint64 wanted; /* of the window, when it came */
    guint64 credit; /* steps that it may still take */
    guint regexes, views;
    bool too_dear; /* its credit was not enough: it is asked no more */
};

struct event_window {
    char stream[LIMIT_EVENT_STREAM];
    struct line lines[EVENT_LINES];
    GHashTable *by_key; /* set of struct entry, which owns them */
    guint64 order;
    guint64 since[EVENT_KINDS]; /* all of that kind is known */
    guint64 wanted;             /* grows when more is wanted: a kind, or a filter */
    guint64 came[EVENT_KINDS];  /* what it was when that kind was wanted */
    struct event_filter *filters[LIMIT_EVENT_FILTERS];
    GPtrArray *views;
};

struct event_view {
    struct event_window *window;
    guint32 kinds;
    int slot; /* of its filter; -1: none */
    guint readers;
    struct event_place from, to; /* of the piece that was made last */
    GBytes *piece;
};

guint32 event_bit(const struct event_kind_row *kind)
{
    return 1u << (kind - event_kind_rows);
}

enum event_line event_line_of(const struct event_kind_row *kind)
{
    return kind->on_record ? EVENT_RECORD : EVENT_NOW;
}

static guint entry_hash(gconstpointer data)
{
    const struct entry *entry = data;
    return g_str_hash(entry->key) + (guint)(entry->kind - event_kind_rows);
}

static gboolean entry_equal(gconstpointer left, gconstpointer right)
{
    const struct entry *a = left, *b = right;
    return a->kind == b->kind && !strcmp(a->key, b->key);
}

static void entry_free(void *data)
{
    g_free(((struct entry *)data)->text);
    g_free(data);
}

struct event_window *event_window_new(void)
{
    struct event_window *window = g_new0(struct event_window, 1);
    window->by_key = g_hash_table_new_full(entry_hash, entry_equal, entry_free, NULL);
    window->views = g_ptr_array_new();
    return window;
}

void event_window_free(struct event_window *window)
{
    g_assert(!window->views->len);
    g_ptr_array_unref(window->views);
    g_hash_table_unref(window->by_key);
    g_free(window);
}

/* --- lines --- */

static void take_out(struct event_window *window, struct entry *entry)
{
    struct line *line = &window->lines[event_line_of(entry->kind)];
    line->last = line->last == &entry->link ? NULL : line->last;
    line->bytes -= entry->bytes;
    g_queue_unlink(&line->entries, &entry->link);
    g_hash_table_remove(window->by_key, entry);
}

static void begin_line(struct event_window *window, enum event_line which, guint64 serial)
{
    struct line *line = &window->lines[which];
    while (line->entries.head)
        take_out(window, line->entries.head->data);
    line->floor = line->newest = serial;
    for (size_t i = 0; i < EVENT_KINDS; i++)
        if (event_line_of(&event_kind_rows[i]) == which)
            window->since[i] = serial;
    for (size_t i = 0; i < LIMIT_EVENT_FILTERS; i++)
        if (window->filters[i])
            window->filters[i]->since[which] = serial;
}

/* Pieces say which stream they are of. */
static void forget_pieces(struct event_window *window)
{
    for (guint i = 0; i < window->views->len; i++)
        g_clear_pointer(&((struct event_view *)window->views->pdata[i])->piece, g_bytes_unref);
}

void event_window_begin(struct event_window *window, const char *stream, guint64 serial)
{
    g_strlcpy(window->stream, stream, sizeof window->stream);
    begin_line(window, EVENT_NOW, serial);
    forget_pieces(window);
}

void event_window_begin_record(struct event_window *window, guint64 serial)
{
    begin_line(window, EVENT_RECORD, serial);
    forget_pieces(window);
}

void event_window_reach(struct event_window *window, enum event_line line, guint64 serial)
{
    window->lines[line].newest = MAX(window->lines[line].newest, serial);
}

void event_window_recall(struct event_window *window, enum event_line which, guint64 serial,
                         guint64 wanted)
{
    struct line *line = &window->lines[which];
    guint64 oldest = line->entries.head ? ((struct entry *)line->entries.head->data)->serial : 0;
    bool whole = line->entries.length < LIMIT_EVENT_ROWS && line->bytes < LIMIT_EVENT_BYTES;
    guint64 since = whole ? serial : MAX(serial, oldest);
    line->floor = MIN(line->floor, since);
    for (size_t i = 0; i < EVENT_KINDS; i++)
        if (event_line_of(&event_kind_rows[i]) == which && window->came[i] <= wanted &&
            event_window_kinds(window) & event_bit(&event_kind_rows[i]))
            window->since[i] = MIN(window->since[i], since);
    for (size_t i = 0; i < LIMIT_EVENT_FILTERS; i++)
        if (window->filters[i] && window->filters[i]->wanted <= wanted)
            window->filters[i]->since[which] = MIN(window->filters[i]->since[which], since);
    forget_pieces(window);
}

guint64 event_window_wanted(const struct event_window *window)
{
    return window->wanted;
}

const char *event_window_stream(const struct event_window *window)
{
    return window->stream;
}

struct event_place event_window_newest(const struct event_window *window)
{
    struct event_place place;
    for (enum event_line line = 0; line < EVENT_LINES; line++)
        place.at[line] = window->lines[line].newest;
    return place;
}

/* --- what has changed --- */

/* NULL: it has none. */
static json_t *value_of(const struct event_row *row, const char *name)
{
    for (guint i = 0; i < row->fields->len; i++) {
        json_t *cell = json_array_get(row->cells, i);
        if (!strcmp(row->fields->pdata[i], name))
            return json_integer_value(json_array_get(cell, 0)) ? NULL : json_array_get(cell, 1);
    }
    return NULL;
}

static json_t *filter_value_of(const void *field, void *data)
{
    return json_incref(value_of(data, field));
}

/* Each row pays a little; who needs more each time has no credit soon. */
static bool let_through(struct event_filter *filter, const struct event_row *row)
{
    guint64 steps = 0;
    filter->credit = MIN(filter->credit + EVENT_FILTER_ROW_STEPS, LIMIT_EVENT_FILTER_STEPS);
    bool through = filter_match(filter->filter, filter_value_of, (void *)row, &steps);
    filter->too_dear = steps > filter->credit;
    filter->credit -= MIN(steps, filter->credit);
    return through;
}

/* What is gone has no fields any more. */
static guint32 passes(const struct event_window *window, const struct event_row *row)
{
    guint32 bits = 0;
    for (size_t i = 0; json_is_array(row->cells) && i < LIMIT_EVENT_FILTERS; i++) {
        struct event_filter *filter = window->filters[i];
        if (filter && !filter->too_dear && filter->kinds & event_bit(row->kind) &&
            let_through(filter, row))
            bits |= 1u << i;
    }
    return bits;
}

/* A word that is one, so that no value can end the line. */
static const char *word_of(const struct event_row *row)
{
    if (!json_is_array(row->cells))
        return EVENT_GONE_WORD;
    const char *word = *row->kind->word ? json_string_value(value_of(row, row->kind->word)) : NULL;
    bool good = word && *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz-_")];
    return good ? word : EVENT_CHANGED;
}

/* No text of JSON has the end of a line in it. */
static char *text_of(const struct event_row *row)
{
    bool gone = !json_is_array(row->cells);
    json_autoptr object =
        json_make("{ss, ss, sb}", "kind", row->kind->name, "key", row->key, "gone", (int)gone);
    for (size_t i = 0; !gone && row->kind->fields[i]; i++) {
        json_t *value = value_of(row, row->kind->fields[i]);
        json_object_set_new(object, row->kind->fields[i], value ? json_incref(value) : json_null());
    }
    g_autofree char *data = json_to_text(object);
    return g_strdup_printf("event: %s.%s\ndata: %s\n\n", row->kind->name, word_of(row), data);
}

/* Behind all that are not newer. */
static void put_in(struct line *line, struct entry *entry)
{
    GList *before = line->entries.tail;
    const struct entry *last = line->last ? line->last->data : NULL;
    const struct entry *next = last && line->last->next ? line->last->next->data : NULL;
    if (last && last->serial <= entry->serial && (!next || next->serial > entry->serial))
        before = line->last;
    while (before && ((const struct entry *)before->data)->serial > entry->serial)
        before = before->prev;
    if (before)
        g_queue_insert_after_link(&line->entries, before, &entry->link);
    else
        g_queue_push_head_link(&line->entries, &entry->link);
    line->last = &entry->link;
    line->bytes += entry->bytes;
}

static void forget_oldest(struct event_window *window, struct line *line)
{
    while (line->entries.length > LIMIT_EVENT_ROWS ||
           (line->bytes > LIMIT_EVENT_BYTES && line->entries.length > 1)) {
        struct entry *oldest = line->entries.head->data;
        line->floor = MAX(line->floor, oldest->serial);
        take_out(window, oldest);
    }
}

/* Of two answers on one object it is not said which comes first. */
static bool is_newer(const struct entry *one, const struct entry *other)
{
    return one->serial != other->serial ? one->serial > other->serial : one->wanted > other->wanted;
}

void event_window_put(struct event_window *window, const struct event_row *row)
{
    struct line *line = &window->lines[event_line_of(row->kind)];
    gsize size = strlen(row->key) + 1;
    struct entry *entry = g_malloc0(sizeof *entry + size);
    memcpy(entry->key, row->key, size);
    entry->kind = row->kind;
    entry->serial = row->serial;
    entry->link.data = entry;
    entry->wanted = row->wanted;
    struct entry *former = g_hash_table_lookup(window->by_key, entry);
    if (former && is_newer(former, entry)) {
        entry_free(entry);
        return;
    }
    entry->order = former && former->serial == row->serial ? former->order : ++window->order;
    if (former)
        take_out(window, former);
    entry->passes = passes(window, row);
    entry->text = text_of(row);
    entry->bytes = sizeof *entry + size + strlen(entry->text);
    g_hash_table_add(window->by_key, entry);
    put_in(line, entry);
    forget_oldest(window, line);
}

/* --- filters --- */

static void filter_drop(struct event_window *window, int slot)
{
    struct event_filter *filter = slot < 0 ? NULL : window->filters[slot];
    if (!filter || --filter->views)
        return;
    filter_free(filter->filter);
    g_ptr_array_unref(filter->names);
    g_free(filter->text);
    g_free(filter);
    window->filters[slot] = NULL;
    GHashTableIter each;
    void *entry;
    g_hash_table_iter_init(&each, window->by_key);
    while (g_hash_table_iter_next(&each, &entry, NULL))
        ((struct entry *)entry)->passes &= ~(1u << slot);
}

/* Any name: luxid knows which there are. */
static const void *resolve(const char *name, void *data)
{
    GPtrArray *names = data;
    for (guint i = 0; i < names->len; i++)
        if (!strcmp(names->pdata[i], name))
            return names->pdata[i];
    g_ptr_array_add(names, g_strdup(name));
    return names->pdata[names->len - 1];
}

/* Its regular expressions. */
static guint count_regexes(const json_t *json)
{
    const char *word = json_string_value(json_array_get(json, 0));
    guint found = word && !strcmp(word, "=~") ? 1 : 0;
    size_t i;
    const json_t *part;
    json_array_foreach(json, i, part)
        found += count_regexes(part);
    return found;
}

/* Each is tried for each change, in the one thread that all readers have. */
static bool may_have_regexes(const struct event_window *window, guint regexes, GError **error)
{
    guint others = 0;
    for (size_t i = 0; i < LIMIT_EVENT_FILTERS; i++)
        others += window->filters[i] ? window->filters[i]->regexes : 0;
    if (regexes > LIMIT_EVENT_FILTER_REGEXES)
        fettle_set_error(error, WRONG_INPUT,
                         "filter: has %u regular expressions, and one of events may have %d; "
                         "compare with \"=\", or choose in your program",
                         regexes, LIMIT_EVENT_FILTER_REGEXES);
    else if (regexes + others > LIMIT_EVENT_REGEXES)
        fettle_set_error(error, TEMPORARY,
                         "filter: %u regular expressions are in use by who follows events, of %d; "
                         "try again, or compare with \"=\"",
                         others, LIMIT_EVENT_REGEXES);
    return regexes <= LIMIT_EVENT_FILTER_REGEXES && regexes + others <= LIMIT_EVENT_REGEXES;
}

static bool filter_make(struct event_window *window, int slot, guint32 kinds, const json_t *json,
                        GError **error)
{
    GError *bad = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    struct filter *parsed = filter_parse(json, resolve, names, &bad);
    guint regexes = bad ? 0 : count_regexes(json);
    if (bad || !may_have_regexes(window, regexes, &bad)) {
        filter_free(parsed);
        g_propagate_error(error, bad);
        return false;
    }
    struct event_filter *filter = g_new0(struct event_filter, 1);
    *filter = (struct event_filter){.text = json_to_text(json),
                                    .names = g_steal_pointer(&names),
                                    .filter = parsed,
                                    .kinds = kinds,
                                    .wanted = ++window->wanted,
                                    .credit = LIMIT_EVENT_FILTER_STEPS,
                                    .regexes = regexes,
                                    .views = 1};
    for (enum event_line line = 0; line < EVENT_LINES; line++)
        filter->since[line] = window->lines[line].newest;
    window->filters[slot] = filter;
    return true;
}

/* Not one that has been given up: whoever comes anew is heard anew. */
static int find_filter(const struct event_window *window, guint32 kinds, const json_t *json)
{
    g_autofree char *text = json_to_text(json);
    for (int i = 0; i < LIMIT_EVENT_FILTERS; i++) {
        const struct event_filter *filter = window->filters[i];
        if (filter && !filter->too_dear && filter->kinds == kinds && !strcmp(filter->text, text))
            return i;
    }
    return -1;
}

bool event_window_has_filter(const struct event_window *window, guint32 kinds, const json_t *json)
{
    return !json || json_is_null(json) || find_filter(window, kinds, json) >= 0;
}

static bool take_filter(struct event_window *window, guint32 kinds, const json_t *json,
                        int *ret_slot, GError **error)
{
    int slot = find_filter(window, kinds, json);
    *ret_slot = slot;
    if (slot >= 0) {
        window->filters[slot]->views++;
        return true;
    }
    for (slot = 0; slot < LIMIT_EVENT_FILTERS && window->filters[slot]; slot++)
        ;
    *ret_slot = slot;
    if (slot < LIMIT_EVENT_FILTERS)
        return filter_make(window, slot, kinds, json, error);
    fettle_set_error(error, TEMPORARY,
                     "filter: %d different ones are in use by who follows events; try again, or "
                     "without one",
                     LIMIT_EVENT_FILTERS);
    return false;
}

/* --- views --- */

guint32 event_window_kinds(const struct event_window *window)
{
    guint32 kinds = 0;
    for (guint i = 0; i < window->views->len; i++)
        kinds |= ((const struct event_view *)window->views->pdata[i])->kinds;
    return kinds;
}

guint32 event_view_kinds(const struct event_view *view)
{
    return view->kinds;
}

bool event_view_has_new_filter(const struct event_view *view)
{
    return view->slot >= 0 && view->readers == 1 && view->window->filters[view->slot]->views == 1;
}

bool event_view_is_too_dear(const struct event_view *view)
{
    return view->slot >= 0 && view->window->filters[view->slot]->too_dear;
}

struct event_view *event_view_take(struct event_window *window, guint32 kinds, const json_t *filter,
                                   GError **error)
{
    guint32 before = event_window_kinds(window);
    int slot = -1;
    if (filter && !json_is_null(filter) && !take_filter(window, kinds, filter, &slot, error))
        return NULL;
    for (guint i = 0; i < window->views->len; i++) {
        struct event_view *view = window->views->pdata[i];
        if (view->kinds == kinds && view->slot == slot) {
            filter_drop(window, slot);
            view->readers++;
            return view;
        }
    }
    for (size_t i = 0; i < EVENT_KINDS; i++)
        if (kinds & ~before & event_bit(&event_kind_rows[i])) {
            window->since[i] = window->lines[event_line_of(&event_kind_rows[i])].newest;
            window->came[i] = ++window->wanted;
        }
    struct event_view *view = g_new0(struct event_view, 1);
    *view = (struct event_view){.window = window, .kinds = kinds, .slot = slot, .readers = 1};
    g_ptr_array_add(window->views, view);
    return view;
}

void event_view_drop(struct event_view *view)
{
    if (--view->readers)
        return;
    g_ptr_array_remove_fast(view->window->views, view);
    filter_drop(view->window, view->slot);
    g_clear_pointer(&view->piece, g_bytes_unref);
    g_free(view);
}

static void add_name(GPtrArray *names, const char *name)
{
    if (!g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
        g_ptr_array_add(names, g_strdup(name));
}

GPtrArray *event_window_fields(const struct event_window *window, const struct event_view *view,
                               const struct event_kind_row *kind)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; kind->fields[i]; i++)
        add_name(names, kind->fields[i]);
    for (int i = 0; i < LIMIT_EVENT_FILTERS; i++) {
        const struct event_filter *filter = window->filters[i];
        for (guint at = 0; filter && filter->kinds & event_bit(kind) &&
                           (!view || view->slot == i) && at < filter->names->len;
             at++)
            add_name(names, filter->names->pdata[at]);
    }
    return names;
}

/* --- reading --- */

guint64 event_view_oldest(const struct event_view *view, enum event_line line)
{
    const struct event_window *window = view->window;
    guint64 least = 0;
    for (size_t i = 0; i < EVENT_KINDS; i++) {
        const struct event_kind_row *kind = &event_kind_rows[i];
        if (view->kinds & event_bit(kind) && event_line_of(kind) == line)
            least = MAX(least, MAX(window->lines[line].floor, window->since[i]));
    }
    if (least && view->slot >= 0)
        least = MAX(least, window->filters[view->slot]->since[line]);
    return least;
}

bool event_view_reaches(const struct event_view *view, enum event_line line,
                        const struct event_place *place)
{
    return place->at[line] >= event_view_oldest(view, line);
}

/* What is beyond the newest was answered to somebody else: it may not have all that is wanted, and
 * comes again. */
static bool wants(const struct event_view *view, const struct entry *entry)
{
    const struct line *line = &view->window->lines[event_line_of(entry->kind)];
    return entry->serial <= line->newest && view->kinds & event_bit(entry->kind) &&
           (view->slot < 0 || entry->passes & (1u << view->slot));
}

/* The first one from there on that is wanted; NULL: none. */
static struct entry *find_wanted(const struct event_view *view, GList *link)
{
    while (link && !wants(view, link->data))
        link = link->next;
    return link ? link->data : NULL;
}

static struct entry *first_behind(const struct event_view *view, enum event_line which,
                                  guint64 serial)
{
    GList *first = NULL;
    for (GList *link = view->window->lines[which].entries.tail;
         link && ((const struct entry *)link->data)->serial > serial; link = link->prev)
        first = link;
    return find_wanted(view, first);
}

static void append_id(GString *out, const struct event_window *window,
                      const struct event_place *place)
{
    g_string_append_printf(out, "id: %s:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT "\n",
                           window->stream, place->at[EVENT_NOW], place->at[EVENT_RECORD]);
}

/* Those of one serial have their place behind the last of them: who loses his connection between
 * them is told of them again. */
static GBytes *make_piece(const struct event_view *view, struct event_place *place)
{
    const struct event_window *window = view->window;
    g_autoptr(GString) out = g_string_new(NULL);
    struct entry *next[EVENT_LINES];
    bool open = false; /* more of the same serial has to follow */
    for (enum event_line line = 0; line < EVENT_LINES; line++)
        next[line] = first_behind(view, line, place->at[line]);
    while ((next[EVENT_NOW] || next[EVENT_RECORD]) &&
           (open || out->len < LIMIT_EVENT_PIECE_BYTES)) {
        enum event_line line =
            !next[EVENT_NOW] || (next[EVENT_RECORD] &&
                                 (open || next[EVENT_RECORD]->order < next[EVENT_NOW]->order))
                ? EVENT_RECORD
                : EVENT_NOW;
        const struct entry *entry = next[line];
        next[line] = find_wanted(view, entry->link.next);
        open = next[line] && next[line]->serial == entry->serial;
        if (!open) {
            place->at[line] = entry->serial;
            append_id(out, window, place);
        }
        g_string_append(out, entry->text);
    }
    for (enum event_line line = 0; line < EVENT_LINES; line++)
        if (!next[line])
            place->at[line] = MAX(place->at[line], window->lines[line].newest);
    return out->len ? g_string_free_to_bytes(g_steal_pointer(&out)) : NULL;
}

static bool are_same(const struct event_place *one, const struct event_place *other)
{
    return !memcmp(one, other, sizeof *one);
}

/* Whoever is at the same place gets the same piece. */
GBytes *event_view_next(struct event_view *view, struct event_place *place)
{
    struct event_place newest = event_window_newest(view->window);
    if (place->at[EVENT_NOW] >= newest.at[EVENT_NOW] &&
        place->at[EVENT_RECORD] >= newest.at[EVENT_RECORD])
        return NULL;
    if (!view->piece || !are_same(&view->from, place)) {
        view->from = view->to = *place;
        g_clear_pointer(&view->piece, g_bytes_unref);
        view->piece = make_piece(view, &view->to);
        if (!view->piece) {
            *place = view->to;
            return NULL;
        }
    }
    *place = view->to;
    return g_bytes_ref(view->piece);
}

/* --- places --- */

bool event_place_parse(const char *text, char *ret_stream, struct event_place *ret)
{
    struct event_place place;
    g_auto(GStrv) parts = strlen(text) < 2 * LIMIT_EVENT_STREAM ? g_strsplit(text, ":", 4) : NULL;
    if (!parts || g_strv_length(parts) != 3 || !g_uuid_string_is_valid(parts[0]))
        return false;
    for (enum event_line line = 0; line < EVENT_LINES; line++)
        if (!g_ascii_string_to_unsigned(parts[line + 1], 10, 0, G_MAXINT64, &place.at[line], NULL))
            return false;
    g_strlcpy(ret_stream, parts[0], LIMIT_EVENT_STREAM);
    *ret = place;
    return true;
}

static GBytes *say(const struct event_window *window, const char *before,
                   const struct event_place *place, const char *behind)
{
    g_autoptr(GString) out = g_string_new(before);
    append_id(out, window, place);
    g_string_append(out, behind);
    return g_string_free_to_bytes(g_steal_pointer(&out));
}

GBytes *event_window_alive(const struct event_window *window, const struct event_place *place)
{
    return say(window, ":\n", place, "\n");
}

GBytes *event_window_hello(const struct event_window *window, const struct event_place *place)
{
    return say(window, "retry: " G_STRINGIFY(RETRY_MS) "\n", place, "\n");
}

static GBytes *say_why(const struct event_window *window, const struct event_place *place,
                       const char *event, const char *why)
{
    json_autoptr object = json_make("{ss}", "why", why);
    g_autofree char *data = json_to_text(object);
    g_autofree char *text = g_strdup_printf("event: %s\ndata: %s\n\n", event, data);
    return say(window, "", place, text);
}

GBytes *event_window_reset(const struct event_window *window, const struct event_place *place,
                           const char *why)
{
    return say_why(window, place, "reset", why);
}

GBytes *event_window_end(const struct event_window *window, const struct event_place *place,
                         const char *why)
{
    return say_why(window, place, "end", why);
}

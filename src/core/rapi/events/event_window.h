/*
 * What has happened of late, once for all who follow it: objects in the order of their last change,
 * each once, as the text that readers are told. A reader has nothing here but his place; whoever is
 * slow finds what has changed twice once, and whoever is behind the oldest has to begin anew. There
 * are two lines: objects as they are now, by their serial in the stream of WatchChanges, and
 * decisions, by the serial of the configuration, which outlives luxid. Pure; for event_hub.c.
 */
#pragma once

#include "core/job/filter.h"
#include "proto/events/event_kinds.h"

#define LIMIT_EVENT_ROWS 4096                 /* of a line … */
#define LIMIT_EVENT_BYTES (2u * 1024 * 1024)  /* … and their texts */
#define LIMIT_EVENT_PIECE_BYTES (16u * 1024)  /* that a reader gets at once, or one row */
#define LIMIT_EVENT_FILTERS 32                /* different ones that are in use at once */
#define LIMIT_EVENT_FILTER_BYTES (16u * 1024) /* of one, as JSON */
#define LIMIT_EVENT_FILTER_REGEXES 4          /* of one */
#define LIMIT_EVENT_REGEXES 32                /* of all that are in use */
#define EVENT_FILTER_ROW_STEPS 200            /* that a filter may take for a row … */
#define LIMIT_EVENT_FILTER_STEPS 20000        /* … and what it may save of that */
#define LIMIT_EVENT_STREAM 64                 /* characters of a stream's name */

enum event_line { EVENT_NOW, EVENT_RECORD, EVENT_LINES };

/* All up to these is known. */
struct event_place {
    guint64 at[EVENT_LINES];
};

struct event_window;
/* What readers want: those of a kind and a filter share one. */
struct event_view;

struct event_window *event_window_new(void);
void event_window_free(struct event_window *window); /* no view is left */

/* The bit of a kind, a row of event_kind_rows. */
guint32 event_bit(const struct event_kind_row *kind);
enum event_line event_line_of(const struct event_kind_row *kind);

/* A line begins at a serial, and has nothing. Of EVENT_NOW: `stream` is that one's from now on. */
void event_window_begin(struct event_window *window, const char *stream, guint64 serial);
void event_window_begin_record(struct event_window *window, guint64 serial);
/* All up to there has been put. */
void event_window_reach(struct event_window *window, enum event_line line, guint64 serial);
/* What is newer than that has been put again, of all that was wanted when it was asked for: by
 * event_window_wanted(). */
void event_window_recall(struct event_window *window, enum event_line line, guint64 serial,
                         guint64 wanted);
/* Grows when a kind or a filter comes; no answer to a question of before has what it needs. */
guint64 event_window_wanted(const struct event_window *window);
const char *event_window_stream(const struct event_window *window); /* "": none has begun */
struct event_place event_window_newest(const struct event_window *window);

/* An object has changed. `fields`: names of the cells, [status, value] each, of `cells`; that is
 * no list: it is gone. */
struct event_row {
    const struct event_kind_row *kind;
    const char *key;
    guint64 serial;
    guint64 wanted; /* of event_window_wanted(), when it was asked for */
    const json_t *cells;
    const GPtrArray *fields;
};
/* One that is older than what is known of it is left out. */
void event_window_put(struct event_window *window, const struct event_row *row);

/* --- views --- */

/* A filter of Query, NULL: none, asked of each of these kinds. WRONG_INPUT with its place;
 * TEMPORARY: too many are in use. */
struct event_view *event_view_take(struct event_window *window, guint32 kinds, const json_t *filter,
                                   GError **error);
void event_view_drop(struct event_view *view);
guint32 event_view_kinds(const struct event_view *view);
/* Its filter costs too much, and is asked no more: what passes it is not known. */
bool event_view_is_too_dear(const struct event_view *view);
/* Nobody else has it, nor its filter. */
bool event_view_has_new_filter(const struct event_view *view);
/* Kinds that any view wants. */
guint32 event_window_kinds(const struct event_window *window);
/* Somebody has it; NULL: anybody has none. */
bool event_window_has_filter(const struct event_window *window, guint32 kinds, const json_t *json);
/* What has to be known of a kind: fields of its row, and those that filters name; of `view` alone,
 * or, NULL, for all views. Of char *, owned. */
GPtrArray *event_window_fields(const struct event_window *window, const struct event_view *view,
                               const struct event_kind_row *kind);

/* All that came after that is here, as far as that view wants it. */
guint64 event_view_oldest(const struct event_view *view, enum event_line line);
/* Whether all that came after a place is here, as far as that view wants it. */
bool event_view_reaches(const struct event_view *view, enum event_line line,
                        const struct event_place *place);
/* What comes behind the place, which moves, as the stream has it; NULL: nothing. */
GBytes *event_view_next(struct event_view *view, struct event_place *place);

/* --- places as clients have them: "STREAM:SERIAL:RECORD" --- */

/* False: it is none. `ret_stream` has LIMIT_EVENT_STREAM bytes. */
bool event_place_parse(const char *text, char *ret_stream, struct event_place *ret);
/* Lines that tell a client where it is: nothing has happened. */
GBytes *event_window_alive(const struct event_window *window, const struct event_place *place);
/* The same, of one who has just come. */
GBytes *event_window_hello(const struct event_window *window, const struct event_place *place);
/* What was before is not known any more. */
GBytes *event_window_reset(const struct event_window *window, const struct event_place *place,
                           const char *why);
/* It ends here. */
GBytes *event_window_end(const struct event_window *window, const struct event_place *place,
                         const char *why);

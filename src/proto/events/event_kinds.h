/*
 * What can be followed as it happens, rows of event_kinds.def: for `fettle event watch` and for
 * REST's stream of events (core/rapi/events/).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define EVENT_KINDS 14
#define EVENT_FIELDS 12 /* of one, with the NULL behind them */
#define EVENT_CHANGED "changed"
#define EVENT_GONE_WORD "gone"

struct event_kind_row {
    const char *name;
    const char *key;  /* "": no field has the key of a change */
    const char *word; /* the field that says what has happened; "": none does */
    bool on_record;   /* with the serial of its change, so that none is lost */
    const char *fields[EVENT_FIELDS];
};

extern const struct event_kind_row event_kind_rows[EVENT_KINDS];

/* NULL: there is no such kind. */
const struct event_kind_row *event_kind_find(const char *name);
/* "event, job, …", for messages; free with g_free(). */
char *event_kinds_known(void);

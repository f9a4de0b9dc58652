/*
 * Reading JSON text straight into records, without a tree between: for requests, which are read all
 * the time and nearly always plainly right. Whatever is not – an unknown member, an escape in a
 * text, a value out of its limits, a fault – ends the reading without a reason: the caller parses
 * the text whole (json_parse_limited(), record_parse()), and that says what is wrong, or that it is
 * right all the same. So this must take nothing that they refuse, and nothing as something else.
 */
#pragma once

#include "proto/record.h"

struct reader {
    const char *at;
    const char *end;
};

/* A piece of the text that is read. */
struct piece {
    const char *text;
    size_t len;
};

/* The next character that is no space; false if it is not this one, which is passed otherwise. */
bool reader_take(struct reader *reader, char wanted);
/* Whether the next character that is no space is this one; it is not passed. */
bool reader_sees(struct reader *reader, char wanted);
/* A text of printable ASCII without escapes. */
bool reader_text(struct reader *reader, struct piece *ret_text);
/* A whole number of at most 15 digits. */
bool reader_number(struct reader *reader, gint64 *ret_number);
/* `"name":` of the next member of an object, exactly. */
bool reader_member(struct reader *reader, const char *name);
/* Nothing but space is left. */
bool reader_is_over(struct reader *reader);

/* One object, as record_parse() of any mode would read it; NULL: not plainly right. */
void *record_read(const struct record *record, struct reader *reader);

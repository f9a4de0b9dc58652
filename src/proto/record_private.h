/*
 * Shared by the files of the record interpreter only: record.c (defaults, copies), record_parse.c
 * (from JSON), record_check.c (what a value must be), record_write.c (to JSON), record_read.c (text
 * without JSON between), record_text.c (settings as text, schema).
 */
#pragma once

#include "proto/record.h"

/* The member of a field, of the C type that its type has (record.h). */
#define MEMBER(value, field, type) (*(type *)(void *)((char *)(value) + (field)->offset))
#define CONST_MEMBER(value, field, type)                                                           \
    (*(const type *)(const void *)((const char *)(value) + (field)->offset))

/* Its unknown fields. */
static inline json_t **record_extra(const struct record *record, void *value)
{
    return (json_t **)(void *)((char *)value + record->extra_offset);
}

/* What a JSON member, or a document, is given of another one: that itself if it is RECORD_SHARED.
 */
json_t *record_json_copy(const struct field *field, const json_t *json);

/* Where a value stands. It becomes a text (`disks[1].size`) only in an error: every message and
 * every object is read through here, and nearly all are right. */
struct place {
    const struct place *outer; /* NULL: the outermost */
    const char *name;          /* of a field of `outer`; NULL: an element of it */
    guint index;
};
char *place_text(const struct place *place); /* "" for NULL */

/* WRONG_INPUT: the place, then what is wrong there. Always false. */
bool record_refuse(GError **error, const struct place *place, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Whether `json` has the type and limits of the field; elements of lists and fields of objects are
 * not looked at. */
bool record_check(const struct field *field, const json_t *json, const struct place *place,
                  GError **error);
/* Whether a list may have `count` elements. */
bool record_check_count(const struct field *field, size_t count, const struct place *place,
                        GError **error);
/* An element of a list of texts. */
bool record_check_text(const json_t *json, const struct place *place, GError **error);

/* What a person or a tool asks for is one line of text that a terminal can show (SAF-108): no
 * control characters. What is on record or comes from another process may have them. */
bool record_check_line(const char *text, const struct place *place, GError **error);

/* The limits alone, for a reader without JSON (reader.h). `count`: characters of a text. */
bool record_number_is_good(const struct field *field, double value, double lowest);
bool record_count_is_good(const struct field *field, size_t count);
bool record_name_is_good(const char *name, size_t len);
bool record_uuid_is_good(const char *text, size_t len);

/* The member of a new struct, all zero there, gets its default. */
void record_init_field(const struct record *record, const struct field *field, void *value);

/* A time that people type in their own words (base/time_text.h), by that sentence: "On the wire in
 * seconds", "in milliseconds", "in seconds since 1970". */
enum record_time { RECORD_TIME_NONE, RECORD_TIME_SECONDS, RECORD_TIME_MS, RECORD_TIME_MOMENT };
enum record_time record_time(const struct field *field);
/* The unit stands in brackets at the end of what is told to people: "Memory (MiB)." -> " (MiB)"; ""
 * if there is none. */
char *record_unit(const struct field *field);

/* Text of a command line or a default as JSON: of a list a list of that one element.
 * Sizes (whole numbers of MiB) may have a unit: 512M, 10G; times are as people write them. */
json_t *record_text_to_json(const struct field *field, const char *text, const char *path,
                            GError **error);

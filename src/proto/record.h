/*
 * Records: the one interpreter of the .def tables. A record is a C struct and a description of its
 * fields; from one row come the struct member, the parser with limits and an error path
 * (`disks[1].size: must be at least 1 (MiB)`), the writer, the CLI flag and its help, and the line
 * in tests/proto/schema.json.
 *
 * Rows (see records.def for all of them):
 *   RECORD_BEGIN(name, "what it is")
 *   FIELD(TYPE, name, NEED, default, LIMIT, "doc, unit last")    TYPE: STRING NAME UUID UINT INT
 * FLOAT BOOL STRINGS JSON FIELD_ENUM(words, name, NEED, default, "doc")                words: an
 * ENUM of enums.def; the member is `enum words` FIELD_OBJECT(record, name, NEED, "doc") the member
 * is `struct record *`, NULL if absent FIELD_OBJECTS(record, name, NEED, max, "doc") the member is
 * `GPtrArray *` of `struct record *` RECORD_END(name) NEED: REQUIRED, or OPTIONAL (absent or null:
 * the default; NULL default: "", 0, false, empty list, NULL object). Members by TYPE:
 * STRING/NAME/UUID char * (never NULL after parsing), UINT guint64, INT gint64, FLOAT double, BOOL
 * bool, STRINGS GPtrArray * of char *, JSON json_t *.
 *
 * Lists own their elements: made by record_new() they free them on removal. JSON members are the
 * record's alone (copied in and out), but for those that nobody changes (RECORD_SHARED).
 *
 * Unknown fields: kept under `extra` of the record and written back for objects (RECORD_KEEP),
 * refused with their name for requests of people and their tools (RECORD_STRICT), which have no
 * control characters in their texts either, ignored between
 * our own processes, of which one may be of a later version (RECORD_LAX). A field that is null asks
 * for nothing, so it is never refused. An opcode on record has been filled in by a luxid that may
 * be of a later version than who runs it: there null, false, 0, "" and [] ask for nothing, and
 * anything else is refused (RECORD_FILLED). So a parameter that is new has one of these as its
 * default.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

enum field_type {
    FIELD_TYPE_STRING,
    FIELD_TYPE_NAME,
    FIELD_TYPE_UUID,
    FIELD_TYPE_UINT,
    FIELD_TYPE_INT,
    FIELD_TYPE_FLOAT,
    FIELD_TYPE_BOOL,
    FIELD_TYPE_STRINGS,
    FIELD_TYPE_JSON,
    FIELD_TYPE_ENUM,
    FIELD_TYPE_OBJECT,
    FIELD_TYPE_OBJECTS,
};

struct enum_words {
    const char *name;
    const char *const *words; /* NULL-terminated; the index is the C enum's value */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    bool required;
    const char *def;                /* default as text, NULL for none */
    double min, max;                /* numbers: value; strings: characters; lists: elements */
    const struct enum_words *words; /* ENUM */
    const struct record *record;    /* OBJECT, OBJECTS */
    const char *doc;
};

struct record {
    const char *name;
    const char *doc;
    size_t size;
    size_t extra_offset;                 /* of `json_t *extra` */
    const struct field *(*fields)(void); /* ends with .name == NULL */
    void (*destroy)(void *value);        /* record_free() of this record, for lists */
};

enum record_mode { RECORD_STRICT, RECORD_FILLED, RECORD_KEEP, RECORD_LAX };

/* Limits of a row: RANGE(min, max), or NO_LIMIT: texts LIMIT_STRING_CHARS, numbers
 * RECORD_NUMBER_MAX either way. */
#define RANGE(min, max) (double)(min), (double)(max)
#define NO_LIMIT -G_MAXDOUBLE, G_MAXDOUBLE
/* In place of a limit, of a JSON member: record, copies and documents have it together, as nobody
 * changes it from the moment that it is in one of them. */
#define RECORD_SHARED RANGE(0, 0)
#define RECORD_NUMBER_MAX 9007199254740992 /* 2^53: exact in every JSON implementation */

/* Parses `json` into a new struct; NULL and WRONG_INPUT with the field's path on error. */
void *record_parse(const struct record *record, const json_t *json, enum record_mode mode,
                   GError **error);
/* A new struct with every default in place. */
void *record_new(const struct record *record);
void *record_copy(const struct record *record, const void *value);
/* Writes every field (and the kept unknown ones); absent objects are left out. */
json_t *record_to_json(const struct record *record, const void *value);
/* One field of it; NULL for an absent object. */
json_t *record_field_to_json(const struct field *field, const void *value);
/* The same as JSON text, at the end of `out`. */
void record_field_append(const struct field *field, const void *value, GString *out);
/* All of it as JSON text, in the order of its fields, without a tree: for what only goes out. */
void record_append(const struct record *record, const void *value, GString *out);
/* Frees the struct; NULL is allowed. */
void record_free(const struct record *record, void *value);
/* Applies one `name=text` setting as given on a command line; lists append. */
bool record_set_text(const struct record *record, void *value, const char *field, const char *text,
                     GError **error);
const struct field *record_field(const struct record *record, const char *name);

/* Index of a word, or -1. */
int enum_parse(const struct enum_words *words, const char *text);
const char *enum_word(const struct enum_words *words, int value);

/* What a doc tells people: without the sentence "On the wire …" at its end, which is for those who
 * write opcodes. To be freed. */
char *record_doc(const char *doc);
/* "string", "uint", ...: as in the rows, lower case. */
const char *field_type_name(enum field_type type);
/* The whole table as JSON, for tests/proto/schema.json and `fettle` help. */
json_t *record_schema(const struct record *record);

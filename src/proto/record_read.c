/* See reader.h. */
#include "proto/reader.h"

#include "proto/record_private.h"

#include <string.h>

#define NUMBER_DIGITS 15
#define RECORDS_DEPTH 8 /* of records in each other, and the frame around them */

/* --- characters --- */

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
                                        *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
}

bool reader_sees(struct reader *reader, char wanted)
{
    skip_space(reader);
    return reader->at < reader->end && *reader->at == wanted;
}

bool reader_take(struct reader *reader, char wanted)
{
    if (!reader_sees(reader, wanted))
        return false;
    reader->at++;
    return true;
}

bool reader_is_over(struct reader *reader)
{
    skip_space(reader);
    return reader->at == reader->end;
}

bool reader_text(struct reader *reader, struct piece *ret_text)
{
    if (!reader_take(reader, '"'))
        return false;
    const char *start = reader->at;
    const char *at = start;
    while (at < reader->end && (guchar)*at >= ' ' && (guchar)*at < 0x7f && *at != '"' &&
           *at != '\\')
        at++;
    if (at == reader->end || *at != '"')
        return false;
    *ret_text = (struct piece){start, (size_t)(at - start)};
    reader->at = at + 1;
    return true;
}

static bool is_digit(const struct reader *reader)
{
    return reader->at < reader->end && g_ascii_isdigit(*reader->at);
}

bool reader_number(struct reader *reader, gint64 *ret_number)
{
    gint64 number = 0;
    bool negative = reader_take(reader, '-');
    const char *start = reader->at;
    for (; is_digit(reader) && reader->at - start < NUMBER_DIGITS; reader->at++)
        number = number * 10 + (*reader->at - '0');
    size_t digits = (size_t)(reader->at - start);
    if (digits == 0 || is_digit(reader) || (digits > 1 && *start == '0'))
        return false;
    if (reader->at < reader->end && strchr(".eE", *reader->at))
        return false; /* also for the character NUL */
    *ret_number = negative ? -number : number;
    return true;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t len = strlen(word);
    skip_space(reader);
    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
        return false;
    reader->at += len;
    return true;
}

static bool is_text(const struct piece *piece, const char *text)
{
    return strncmp(text, piece->text, piece->len) == 0 && text[piece->len] == '\0';
}

bool reader_member(struct reader *reader, const char *name)
{
    struct piece found;
    return reader_text(reader, &found) && is_text(&found, name) && reader_take(reader, ':');
}

/* --- a value that stays JSON --- */

/* Behind the text that begins here. */
static bool skip_text(struct reader *reader)
{
    for (reader->at++; reader->at < reader->end; reader->at++) {
        if (*reader->at == '"') {
            reader->at++;
            return true;
        }
        if (*reader->at == '\\')
            reader->at++;
    }
    return false;
}

/* Behind the list or object that begins here; whether it is right shows when it is parsed. */
static bool skip_brackets(struct reader *reader)
{
    guint depth = 0;
    while (reader->at < reader->end) {
        char c = *reader->at;
        if (c == '"') {
            if (!skip_text(reader))
                return false;
            continue;
        }
        reader->at++;
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && --depth == 0)
            return true;
        if (depth > LIMIT_JSON_DEPTH - RECORDS_DEPTH)
            return false;
    }
    return false;
}

static bool skip_value(struct reader *reader)
{
    if (reader_sees(reader, '"'))
        return skip_text(reader);
    if (reader_sees(reader, '{') || reader_sees(reader, '['))
        return skip_brackets(reader);
    while (reader->at < reader->end && (g_ascii_isalnum(*reader->at) || *reader->at == '-' ||
                                        *reader->at == '+' || *reader->at == '.'))
        reader->at++;
    return true;
}

static bool read_json(struct reader *reader, json_t **member)
{
    skip_space(reader);
    const char *start = reader->at;
    if (!skip_value(reader) || reader->at > reader->end)
        return false;
    *member = json_loadb(start, (size_t)(reader->at - start),
                         JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    return *member != NULL;
}

/* --- fields --- */

static bool read_text(const struct field *field, char **member, struct reader *reader)
{
    struct piece piece;
    if (!reader_text(reader, &piece))
        return false;
    bool good = field->type == FIELD_TYPE_UUID   ? record_uuid_is_good(piece.text, piece.len)
                : field->type == FIELD_TYPE_NAME ? record_name_is_good(piece.text, piece.len)
                                                 : record_count_is_good(field, piece.len);
    if (good)
        *member = g_strndup(piece.text, piece.len);
    return good;
}

static bool read_number(const struct field *field, gint64 *member, struct reader *reader)
{
    double lowest = field->type == FIELD_TYPE_UINT ? 0 : -(double)RECORD_NUMBER_MAX;
    return reader_number(reader, member) && record_number_is_good(field, (double)*member, lowest);
}

static bool read_enum(const struct field *field, int *member, struct reader *reader)
{
    struct piece piece;
    if (!reader_text(reader, &piece))
        return false;
    for (int i = 0; field->words->words[i] != NULL; i++) {
        if (!is_text(&piece, field->words->words[i]))
            continue;
        *member = i;
        return true;
    }
    return false;
}

static bool read_bool(bool *member, struct reader *reader)
{
    *member = take_word(reader, "true");
    return *member || take_word(reader, "false");
}

static bool read_elements(const struct field *field, GPtrArray *list, struct reader *reader)
{
    if (!reader_take(reader, '['))
        return false;
    bool more = !reader_take(reader, ']');
    while (more) {
        struct piece piece;
        void *element = NULL;
        if ((double)list->len >= field->max)
            return false;
        if (field->type == FIELD_TYPE_OBJECTS)
            element = record_read(field->record, reader);
        else if (reader_text(reader, &piece) && piece.len <= LIMIT_STRING_CHARS)
            element = g_strndup(piece.text, piece.len);
        if (element == NULL)
            return false;
        g_ptr_array_add(list, element);
        more = reader_take(reader, ',');
        if (!more && !reader_take(reader, ']'))
            return false;
    }
    return (double)list->len >= field->min;
}

/* Into a member that is all zero. */
static bool read_field(const struct record *record, const struct field *field, void *value,
                       struct reader *reader)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
        return read_text(field, &MEMBER(value, field, char *), reader);
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
        return read_number(field, &MEMBER(value, field, gint64), reader);
    case FIELD_TYPE_BOOL:
        return read_bool(&MEMBER(value, field, bool), reader);
    case FIELD_TYPE_ENUM:
        return read_enum(field, &MEMBER(value, field, int), reader);
    case FIELD_TYPE_JSON:
        return read_json(reader, &MEMBER(value, field, json_t *));
    case FIELD_TYPE_STRINGS:
    case FIELD_TYPE_OBJECTS:
        record_init_field(record, field, value);
        return read_elements(field, MEMBER(value, field, GPtrArray *), reader);
    case FIELD_TYPE_OBJECT:
        MEMBER(value, field, void *) = record_read(field->record, reader);
        return MEMBER(value, field, void *) != NULL;
    case FIELD_TYPE_FLOAT:
        return false;
    }
    g_assert_not_reached();
}

/* Members mostly come in the order of the fields, so the search begins behind the last one. */
static const struct field *find_field(const struct field *fields, const struct field *next,
                                      const struct piece *name)
{
    for (const struct field *field = next; field->name != NULL; field++)
        if (is_text(name, field->name))
            return field;
    for (const struct field *field = fields; field < next; field++)
        if (is_text(name, field->name))
            return field;
    return NULL;
}

/* A null would be the same as nothing; it is rare. */
static bool read_members(const struct record *record, void *value, struct reader *reader,
                         guint64 *seen)
{
    const struct field *fields = record->fields();
    const struct field *next = fields;
    struct piece name;
    if (!reader_take(reader, '{'))
        return false;
    if (reader_take(reader, '}'))
        return true;
    do {
        if (!reader_text(reader, &name) || !reader_take(reader, ':'))
            return false;
        const struct field *field = find_field(fields, next, &name);
        if (field == NULL || field - fields >= 64)
            return false;
        guint64 bit = G_GUINT64_CONSTANT(1) << (field - fields);
        if (*seen & bit || take_word(reader, "null") || !read_field(record, field, value, reader))
            return false;
        *seen |= bit;
        next = field + 1;
    } while (reader_take(reader, ','));
    return reader_take(reader, '}');
}

static bool fill_absent(const struct record *record, void *value, guint64 seen)
{
    const struct field *fields = record->fields();
    for (const struct field *field = fields; field->name != NULL; field++) {
        if (field - fields >= 64)
            return false;
        if (seen >> (field - fields) & 1)
            continue;
        if (field->required)
            return false;
        record_init_field(record, field, value);
    }
    return true;
}

void *record_read(const struct record *record, struct reader *reader)
{
    guint64 seen = 0;
    void *value = g_malloc0(record->size);
    if (read_members(record, value, reader, &seen) && fill_absent(record, value, seen))
        return value;
    record_free(record, value);
    return NULL;
}

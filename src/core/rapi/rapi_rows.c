/* See rapi_rows.h. */
#include "core/rapi/rapi_rows.h"

#include <string.h>

static bool is_space(char mark)
{
    return mark == ' ' || mark == '\t' || mark == '\r' || mark == '\n';
}

/* Mostly there is none, for which strspn() takes longer than for the value behind. */
static const char *past_space(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

static const char *past_text(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* Behind the value that begins there. */
static const char *past_value(const char *at)
{
    guint depth = 0;
    do {
        if (*at == '"') {
            at = past_text(at);
        } else if (*at == '[' || *at == '{') {
            depth++;
            at++;
        } else if (*at == ']' || *at == '}') {
            depth -= depth > 0;
            at++;
        } else if (depth) {
            at += *at != '\0';
        } else {
            at += strcspn(at, ",]} \t\r\n");
        }
    } while (depth && *at);
    return at;
}

/* Takes a mark, with the space around it. */
static bool take(const char **at, char mark)
{
    const char *there = past_space(*at);
    if (*there != mark)
        return false;
    *at = past_space(there + 1);
    return true;
}

static bool find_data(const char **at)
{
    if (!take(at, '{'))
        return false;
    for (;;) {
        bool found = g_str_has_prefix(*at, "\"data\"");
        if (**at != '"')
            return false;
        *at = past_text(*at);
        if (!take(at, ':'))
            return false;
        if (found)
            return true;
        *at = past_value(*at);
        if (!take(at, ','))
            return false;
    }
}

void rapi_rows_begin(struct rapi_rows *rows, const char *text, bool pairs)
{
    *rows = (struct rapi_rows){.at = text, .pairs = pairs};
    rows->broken = (pairs && !find_data(&rows->at)) || !take(&rows->at, '[');
}

static bool take_value(const char **at, struct rapi_span *ret)
{
    const char *end = past_value(*at);
    if (end == *at)
        return false;
    *ret = (struct rapi_span){*at, (gsize)(end - *at)};
    *at = end;
    return true;
}

static bool take_cell(struct rapi_rows *rows, struct rapi_span *ret)
{
    struct rapi_span status;
    if (!rows->pairs)
        return take_value(&rows->at, ret);
    return take(&rows->at, '[') && take_value(&rows->at, &status) && take(&rows->at, ',') &&
           take_value(&rows->at, ret) && take(&rows->at, ']');
}

static bool take_row(struct rapi_rows *rows, struct rapi_span *cells, guint count)
{
    if (!take(&rows->at, '['))
        return false;
    for (guint i = 0; i < count; i++)
        if ((i && !take(&rows->at, ',')) || !take_cell(rows, &cells[i]))
            return false;
    return take(&rows->at, ']');
}

bool rapi_rows_next(struct rapi_rows *rows, struct rapi_span *cells, guint count)
{
    while (!rows->broken && *rows->at != ']') {
        struct rapi_span null;
        bool empty = g_str_has_prefix(rows->at, "null");
        rows->broken = empty ? !take_value(&rows->at, &null) : !take_row(rows, cells, count);
        rows->broken |= !take(&rows->at, ',') && *past_space(rows->at) != ']';
        rows->at = past_space(rows->at);
        if (!rows->broken && !empty)
            return true;
    }
    return false;
}

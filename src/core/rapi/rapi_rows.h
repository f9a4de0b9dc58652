/*
 * Rows of an answer of LuxiD, walked through in its text: no tree is made of a list of thousands.
 * The text is one that LuxiD has written, so what is no JSON is an error, and nothing more.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* A value in the text. */
struct rapi_span {
    const char *at;
    gsize length;
};

struct rapi_rows {
    const char *at;
    bool pairs;  /* cells are [status, value], and the rows are a member `data` */
    bool broken; /* it was no such list */
};

/* Begins at the list in a text, which must stay. */
void rapi_rows_begin(struct rapi_rows *rows, const char *text, bool pairs);
/* The next row that is a list of that many cells, which are set; a null in its place is passed
 * over. False: that was the last, or what comes is broken. */
bool rapi_rows_next(struct rapi_rows *rows, struct rapi_span *cells, guint count);

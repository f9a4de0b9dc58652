/*
 * A request of the outside and its answer, as values, so that who thinks about them (core/api)
 * knows no HTTP library, and a test needs no socket. io/http/ makes them of what comes.
 */
#pragma once

#include "base/error.h"

#include <glib.h>
#include <stdbool.h>

/* Bytes one after the other, for one task, which waits in the calls. */
struct http_bytes {
    /* At most `length` and at least one; 0: that was all; -1: UNREACHABLE: who gives them is gone.
     */
    gssize (*read)(struct http_bytes *bytes, void *place, gsize length, GError **error);
    void (*free)(struct http_bytes *bytes);
};

/* Pieces that come when something happens, for an answer that has no end of its own. No task waits
 * for them: a thousand of these are no more than a thousand places. */
struct http_feed {
    /* The next piece; NULL: there is none now, and `ret_over`: none will come. Asked for when the
     * one before has been written. */
    GBytes *(*next)(struct http_feed *feed, bool *ret_over);
    void (*free)(struct http_feed *feed);
    /* Whoever reads it sets these: to be called when there is another piece, not out of next(). It
     * may be freed out of that. */
    void (*wake)(void *data);
    void *data;
};

struct http_request {
    char *method;        /* as it was sent: "GET" */
    char *path;          /* decoded, UTF-8, begins with "/"; no segment is "." or ".." */
    char *query;         /* as it was sent, behind "?"; "" if there is none */
    GHashTable *headers; /* lower-case name -> value; of several of a name all, with ", " between */
    char *body;          /* ends with a NUL that is none of its bytes; "" if there is none */
    size_t body_len;
    struct http_bytes *stream; /* its body as it comes; NULL: `body` has it */
    char *peer;                /* "192.0.2.7:41234" */
    bool secure;               /* it came by TLS */
    /* What is wrong with it before anybody looks at what it asks for: it is to be answered with
     * this status and nothing else. 0: nothing is. */
    guint refused;
    const char *refused_why;
};

/* "" if there is none; `name` in lower case. */
const char *http_request_header(const struct http_request *request, const char *name);
/* Whether method, query and headers are UTF-8, as answers and logs are made of them. */
bool http_request_is_text(const struct http_request *request);
/* Whether it says that its body is JSON. */
bool http_request_is_json(const struct http_request *request);
/* WRONG_INPUT: its body, as JSON, has more values than that: each takes so much more memory than
 * bytes that a body of nothing else would take all of it. */
bool http_request_has_few_values(const struct http_request *request, guint most, GError **error);
/* What stands behind "?", decoded: char *, names and values by turns. What cannot be read is left
 * out. */
GPtrArray *http_query_parse(const char *query);
void http_request_free(struct http_request *request);
void http_request_free_ptr(struct http_request **request);
#define http_request_autoptr __attribute__((cleanup(http_request_free_ptr))) struct http_request *

struct http_answer {
    guint status;
    GPtrArray *headers; /* char *, name and value by turns */
    char *body;
    size_t body_len;
    struct http_bytes *stream; /* its body, as it is read; NULL: `body` is it */
    guint64 stream_len;        /* so many, in all; HTTP_LENGTH_UNKNOWN: until it ends */
    struct http_feed *feed;    /* the same, as they happen; NULL: it is none */
};

#define HTTP_LENGTH_UNKNOWN G_MAXUINT64

struct http_answer *http_answer_new(guint status);
void http_answer_add_header(struct http_answer *answer, const char *name, const char *value);
/* Takes the text, which is of that type. */
void http_answer_set_body(struct http_answer *answer, const char *type, char *text);
/* Takes the bytes, of which there are that many. */
void http_answer_set_stream(struct http_answer *answer, const char *type, struct http_bytes *stream,
                            guint64 length);
/* Takes the feed, which is of that type. Whoever serves bounds how many there are. */
void http_answer_set_feed(struct http_answer *answer, const char *type, struct http_feed *feed);
void http_answer_free(struct http_answer *answer);

/* Decodes the path of a request: its segments, percent-encoded. NULL: one has a NUL or "/", is no
 * UTF-8, or is "." or ".."; or it does not begin with "/". Free with g_free(). */
char *http_path_decode(const char *path);

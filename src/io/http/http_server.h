/*
 * An HTTP/1.1 server for the outside, on libsoup 3, which leaves some things open that strangers
 * use: it keeps silent connections for ever, gathers the whole body of a request that it has
 * refused already, and answers no earlier than at the end of a body. So connections are accepted
 * here (io/net/acceptor.h), silence and headers have their time, and bodies are gathered here,
 * within limits. What is no good request reaches who serves all the same, with `refused` set
 * (proto/http/http.h), since only they know what errors look like. A body that is too long to be
 * gathered comes, and goes, in pieces (http_stream.h), if whoever serves asks for that.
 */
#pragma once

#include "proto/http/http.h"

#include <gio/gio.h>

#define LIMIT_HTTP_BODY_BYTES (1024 * 1024) /* of a body that is gathered */
#define LIMIT_HTTP_DRAIN_BYTES                                                                     \
    (64 * (guint64)1024 * 1024 * 1024)      /* of one that would come in pieces, and is refused */
#define LIMIT_HTTP_HEADER_BYTES (64 * 1024) /* names and values of a request */
#define LIMIT_HTTP_CONNECTIONS 1024
#define LIMIT_HTTP_CONNECTIONS_ADDRESS 64
#define HTTP_HEADERS_MS 10000 /* from a connection to the end of its first headers */
#define HTTP_SILENCE_S 60     /* after which a connection is ended, in either direction */

struct http_server;
/* One request that is being answered; it outlives its connection. */
struct http_exchange;

struct http_server_events {
    /* A connection has come, and is shown the certificate next: the moment for
     * http_server_renew(). NULL: nobody wants it. */
    void (*arrives)(void *data);
    /* Whether the body of that request, of which no byte has come, is wanted as it comes, of
     * whatever length: it is served at once then. NULL: of none. */
    bool (*streams)(const struct http_request *request, void *data);
    /* To be answered once, now or later. */
    void (*serve)(struct http_exchange *exchange, void *data);
    /* A line for the log; NULL: nobody wants it. */
    void (*complain)(const char *line, void *data);
};

/* A socket that whoever has started this process has made and listens on (FETTLE_LISTEN_FD): the
 * lab's servers are reached from outside of its network. 0: there is none. */
int http_server_given_socket(void);

struct http_server_options {
    const char *address; /* an IP address */
    guint port;
    int fd;                       /* as of acceptor_options */
    const char *settings;         /* where both can be changed, for messages */
    GTlsCertificate *certificate; /* with its key; NULL: no TLS */
    guint headers_ms, silence_s;  /* 0: HTTP_HEADERS_MS, HTTP_SILENCE_S */
    guint64 drain_bytes;          /* 0: LIMIT_HTTP_DRAIN_BYTES */
};

/* Errors as acceptor_new(). */
struct http_server *http_server_new(const struct http_server_options *options,
                                    const struct http_server_events *events, void *data,
                                    GError **error);
/* What is being answered stays its owner's, and reaches nobody. */
void http_server_free(struct http_server *server);
/* Connections made from now on are shown that one, in the place of another. */
void http_server_renew(struct http_server *server, GTlsCertificate *certificate);

const struct http_request *http_exchange_request(const struct http_exchange *exchange);
/* Takes the answer and ends the exchange, also its request. One with a stream is read by a task of
 * the group of the running task. */
void http_exchange_answer(struct http_exchange *exchange, struct http_answer *answer);

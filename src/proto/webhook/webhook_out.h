/*
 * How core/rapi sends events to receivers outside: names are looked up and requests made behind
 * this interface, so that a test needs neither DNS nor a receiver. io/http/post_client.h is the
 * real one.
 */
#pragma once

#include "proto/webhook/webhook.h"

struct webhook_post {
    const struct webhook_url *url;
    const char *address; /* where to connect, as it was looked up: nothing is looked up again */
    bool may_be_here;    /* also if that is an address of this host */
    guint connect_ms;    /* so long the connection may take */
    const char *signature, *body;
};

/* What became of a request. */
struct webhook_said {
    guint status; /* of HTTP; 0: there was no answer */
    char *text;   /* "HTTP 500 Internal Server Error", or why there was none */
};

struct webhook_out {
    /* In tasks; wait so long at most. Addresses of a host, texts, at least one; NULL with an error.
     */
    GPtrArray *(*look_up)(struct webhook_out *out, const char *host, guint timeout_ms,
                          GError **error);
    /* One request: no redirect is followed, of the answer no more than its head is read. False: the
     * connection was not made, so another address may be tried. `ret_said` is set either way, its
     * text to be freed. */
    bool (*post)(struct webhook_out *out, const struct webhook_post *post, guint timeout_ms,
                 struct webhook_said *ret_said);
};

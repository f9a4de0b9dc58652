/*
 * Where a daemon is reached by HTTP from outside, the same for each that is (apid, mond, rapid): at
 * its address, or at all that the host has; the socket that a lab hands over; and the certificate
 * that new connections are shown, which whoever renews it tells nobody of. A process has one, for
 * its whole life.
 */
#pragma once

#include "io/http/http_server.h"

/* When there is no certificate. */
enum outside_without {
    OUTSIDE_FAILS, /* nothing is opened */
    OUTSIDE_PLAIN, /* there is no TLS, until the process is started anew */
    OUTSIDE_WAITS, /* nothing is listened on before there is one, which noded makes */
};

struct outside_options {
    const char *address; /* an IP address; "": all */
    guint port;
    const char *settings;            /* where both can be changed, for messages */
    const char *const *certificates; /* as of tls_files_open(); NULL: it speaks without TLS */
    const char *key;                 /* as there */
    enum outside_without without;
    bool given_alone; /* the socket that is handed over takes the place of address and port */
    /* As of http_server_events; `data` is not for them. */
    bool (*streams)(const struct http_request *request, void *data);
    void (*serve)(struct http_exchange *exchange, void *data);
};

/* The texts of the options stay the caller's until outside_close(), `certificates` only for this
 * call. ENVIRONMENT, and as
 * http_server_new(); what goes wrong after it has waited ends the daemon. */
bool outside_open(const struct outside_options *options, GError **error);
/* Whether it is opened or not. */
void outside_close(void);

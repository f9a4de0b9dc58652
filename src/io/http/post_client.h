/*
 * Requests to receivers outside (proto/webhook/webhook_out.h): one connection each, to an address
 * that the caller has chosen, without proxies and redirects; TLS is checked against the host's
 * authorities and for the name in the URL. Each look-up and each request is a thread of its own,
 * that is left to itself when its time is over: one that hangs holds up nobody, and there is a
 * bound to how many do.
 */
#pragma once

#include "proto/webhook/webhook_out.h"

#include <gio/gio.h>

/* `authorities`: who is believed; NULL: whom the host believes. */
struct webhook_out *post_client_new(GTlsDatabase *authorities);
/* No call is under way any more, or the environment's tasks were killed. */
void post_client_free(struct webhook_out *out);

/*
 * Webhooks as text: which events there are and which a webhook wants, where it sends them to, and
 * which addresses it may be sent to. Pure. Used by the rules of the configuration, by luxid, which
 * chooses events, and by the REST daemon, which delivers (docs/design/outside.md, "Webhooks").
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* --- events --- */

/* What there is: job.error, repair.act, event.alert, …; ends with NULL. */
extern const char *const webhook_words[];
/* A word, the first part of some as "repair.*", or "*": everything. WRONG_INPUT: it fits none. */
bool webhook_pattern_check(const char *pattern, GError **error);
/* Whether one of them, texts, fits that word; none of them at all: whatever it is. */
bool webhook_wants(const GPtrArray *patterns, const char *word);

/* --- receivers --- */

typedef struct webhook_url {
    bool tls;
    char *host; /* a name or an address, without brackets */
    guint port;
    char *authority; /* as the header Host has it */
    char *target;    /* path, and what stands behind "?" */
} webhook_url_t;

/* WRONG_INPUT: "url: must begin with https:// or http://", …; free it with webhook_url_free(). */
struct webhook_url *webhook_url_parse(const char *text, GError **error);
void webhook_url_free(struct webhook_url *url);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(webhook_url_t, webhook_url_free)

/* "192.0.2.0/24", "2001:db8::/32", or one address. WRONG_INPUT. */
bool webhook_network_check(const char *network, GError **error);
/* Whether an address is in one of these networks, texts. An IPv4 address in the form of an IPv6
 * one is that address. */
bool webhook_address_is_in(const char *address, const GPtrArray *networks);
/* Whether events may be sent to it: it is in `allowed`; or it is neither loopback, link-local,
 * unspecified, multicast or broadcast, in whatever form, nor in `refused`. */
bool webhook_address_is_good(const char *address, const GPtrArray *refused,
                             const GPtrArray *allowed);

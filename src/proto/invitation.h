/*
 * A one-time token as text: what `fettle node invite` prints and `fettle-noded join` takes. One
 * word of letters, digits, `-` and `_`, behind `fettle1.`; its last bytes are a checksum, so that a
 * token that was not copied whole is told from one that is not accepted. White space inside is
 * ignored: terminals break long lines.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

#define INVITATION_MARK "fettle1."
#define SECRET_BYTES 32
#define SECRET_HEX_CHARS (2 * SECRET_BYTES)

struct invitation {
    char *address; /* node daemon of the master */
    guint port;
    char *fingerprint; /* SHA-256 of the CA certificate, in hexadecimal digits */
    char *token;       /* UUID */
    char *secret;      /* in hexadecimal digits */
    gint64 expires;    /* seconds since 1970 */
};

/* All members must be set and well-formed. */
char *invitation_format(const struct invitation *invitation);
/* WRONG_INPUT says what is wrong with it, but never repeats it: it holds a secret. */
struct invitation *invitation_parse(const char *text, GError **error);
void invitation_free(struct invitation *invitation);
typedef struct invitation invitation_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(invitation_t, invitation_free)

/* How a node that is on record with this address and port gets new keys, as a person types it;
 * g_free(). */
char *invitation_way_back(const char *node, const char *address, guint64 port);

/* SHA-256 of the first certificate (PEM) of a text, in its DER form, in hexadecimal digits; NULL:
 * there is none. */
char *invitation_fingerprint(const char *certificate);
/* What is stored of a secret: its SHA-256, in hexadecimal digits. `secret` in hexadecimal digits;
 * NULL if it is none. */
char *invitation_secret_hash(const char *secret);
/* Takes as long for a wrong hash as for the right one. */
bool invitation_hash_equal(const char *one, const char *other);

/*
 * Keys of one transfer (TLS-PSK), and what a QEMU that is a server wants beside them, in one
 * folder.
 */
#pragma once

#define PSK_KEYS "keys.psk" /* a line USER:KEY; read at each handshake */
#define PSK_GROUP "dh-params.pem"

/* A new key in hexadecimal digits; free with g_free(). */
char *psk_new(void);
/* What is in PSK_GROUP. A server that finds none makes a group up, which takes a second. */
extern const char psk_group[];

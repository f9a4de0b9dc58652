/* See psk.h. */
#include "backend/psk.h"

#include <glib.h>
#include <sys/random.h>

#define PSK_BYTES 32

/* The group ffdhe2048 of RFC 7919. */
const char psk_group[] = "-----BEGIN DH PARAMETERS-----\n"
                         "MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz\n"
                         "+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a\n"
                         "87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7\n"
                         "YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi\n"
                         "7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD\n"
                         "ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==\n"
                         "-----END DH PARAMETERS-----\n";

char *psk_new(void)
{
    guint8 bytes[PSK_BYTES];
    GString *text = g_string_new(NULL);
    g_assert(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
    for (guint i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

/* Tokens: nothing that is pasted breaks the parser, and what it takes comes out the same again. */
#include "fuzz.h"
#include "proto/invitation.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    g_autofree char *text = g_strndup((const char *)data, len);
    g_autoptr(invitation_t) one = invitation_parse(text, NULL);
    if (one == NULL)
        return 0;
    g_autofree char *again = invitation_format(one);
    g_autoptr(invitation_t) other = invitation_parse(again, NULL);
    g_assert_nonnull(other);
    g_assert_cmpstr(one->address, ==, other->address);
    g_assert_cmpstr(one->secret, ==, other->secret);
    g_assert_cmpint(one->expires, ==, other->expires);
    return 0;
}

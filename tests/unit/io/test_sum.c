/* io/crypto/sum.h beside GLib's: the same digits, in whatever pieces the bytes come. */
#include "io/crypto/sum.h"

#include <string.h>

#define BYTES 300007u

static void assert_as_glib(enum sum_kind kind, GChecksumType type, gsize length, gsize piece)
{
    g_autofree guint8 *bytes = g_malloc(length + 1);
    char digits[SUM_TEXT];
    for (gsize i = 0; i < length; i++)
        bytes[i] = (guint8)(i * 31 + i / 251);
    struct sum *sum = sum_new(kind);
    for (gsize at = 0; at < length; at += piece)
        sum_add(sum, bytes + at, MIN(piece, length - at));
    sum_end(sum, digits);
    g_autofree char *other = g_compute_checksum_for_data(type, bytes, length);
    g_assert_cmpstr(digits, ==, other);
}

static void assert_in_pieces(enum sum_kind kind, GChecksumType type)
{
    assert_as_glib(kind, type, 0, 1);
    assert_as_glib(kind, type, 1, 1);
    assert_as_glib(kind, type, BYTES, BYTES);
    assert_as_glib(kind, type, BYTES, 1);
    assert_as_glib(kind, type, BYTES, 4099);
}

static void test_md5(void)
{
    assert_in_pieces(SUM_MD5, G_CHECKSUM_MD5);
}

static void test_sha512(void)
{
    assert_in_pieces(SUM_SHA512, G_CHECKSUM_SHA512);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sum/md5", test_md5);
    g_test_add_func("/sum/sha512", test_sha512);
    return g_test_run();
}

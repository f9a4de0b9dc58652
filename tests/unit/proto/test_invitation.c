/* Tokens as text. */
#include "proto/invitation.h"

#include <string.h>

static const struct invitation sample = {
    .address = (char *)"192.0.2.17",
    .port = 1811,
    .fingerprint = (char *)"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    .token = (char *)"01234567-89ab-4def-8123-456789abcdef",
    .secret = (char *)"ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100",
    .expires = 1795212345,
};

static void assert_same(const struct invitation *one, const struct invitation *other)
{
    g_assert_cmpstr(one->address, ==, other->address);
    g_assert_cmpuint(one->port, ==, other->port);
    g_assert_cmpstr(one->fingerprint, ==, other->fingerprint);
    g_assert_cmpstr(one->token, ==, other->token);
    g_assert_cmpstr(one->secret, ==, other->secret);
    g_assert_cmpint(one->expires, ==, other->expires);
}

/* Addresses of every length, so that every length of base64 comes up. */
static void test_round_trip(void)
{
    static const char *const addresses[] = {"::1", "10.0.0.1", "10.0.0.12", "10.0.0.123",
                                            "2001:db8:1234:5678:9abc:def0:1234:5678"};
    for (guint i = 0; i < G_N_ELEMENTS(addresses); i++) {
        struct invitation one = sample;
        one.address = (char *)addresses[i];
        g_autofree char *text = invitation_format(&one);
        g_autoptr(GError) error = NULL;
        g_autoptr(invitation_t) read = invitation_parse(text, &error);
        g_assert_no_error(error);
        assert_same(read, &one);
        g_assert_cmpuint(strspn(text + 8, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789-_"),
                         ==, strlen(text) - 8);
    }
}

static void test_copied_by_a_terminal(void)
{
    g_autofree char *text = invitation_format(&sample);
    g_autofree char *broken =
        g_strdup_printf(" %.40s\n%.20s \r\n\t%s\n", text, text + 40, text + 60);
    g_autoptr(GError) error = NULL;
    g_autoptr(invitation_t) read = invitation_parse(broken, &error);
    g_assert_no_error(error);
    assert_same(read, &sample);
}

static void expect(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(invitation_parse(text, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, message);
}

/* Every prefix and every changed character is told from the token, and the secret is not repeated.
 */
static void test_damaged(void)
{
    static const char damaged[] = "the token is damaged: its checksum does not fit; copy the whole "
                                  "line that `fettle node invite` printed";
    static const char no_token[] = "this is no token: tokens begin with fettle1.; copy the whole "
                                   "line that `fettle node invite` printed";
    g_autofree char *text = invitation_format(&sample);
    size_t len = strlen(text);
    expect("", no_token);
    expect("fettle2.abc", no_token);
    for (size_t i = 8; i < len; i++) {
        g_autofree char *prefix = g_strndup(text, i);
        g_autofree char *changed = g_strdup(text);
        changed[i] = changed[i] == 'A' ? 'z' : 'A';
        expect(prefix, damaged);
        expect(changed, damaged);
    }
    g_autofree char *longer = g_strconcat(text, "AAAA", NULL);
    expect(longer, damaged);
    g_autofree char *endless = g_strnfill(100000, 'A');
    expect(endless, no_token);
}

static void test_secret(void)
{
    g_autofree char *hash = invitation_secret_hash(sample.secret);
    g_assert_cmpuint(strlen(hash), ==, 64);
    g_assert_true(invitation_hash_equal(hash, hash));
    g_autofree char *other = g_strdup(hash);
    other[63] = other[63] == '0' ? '1' : '0';
    g_assert_false(invitation_hash_equal(hash, other));
    g_assert_false(invitation_hash_equal(hash, "0"));
    g_assert_null(invitation_secret_hash("12"));
    g_assert_null(invitation_secret_hash("not hexadecimal"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/invitation/round-trip", test_round_trip);
    g_test_add_func("/invitation/copied", test_copied_by_a_terminal);
    g_test_add_func("/invitation/damaged", test_damaged);
    g_test_add_func("/invitation/secret", test_secret);
    return g_test_run();
}

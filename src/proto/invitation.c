/*
 * See invitation.h. The bytes behind `fettle1.`, in base64 of the sort that URLs use, without
 * padding: expiry (8, most significant first), port (2), token (16), fingerprint (32), secret (32),
 * address (the rest), and the first 4 bytes of the SHA-256 of all that.
 */
#include "proto/invitation.h"

#include "base/limits.h"

#include <string.h>

#define UUID_BYTES 16
#define HASH_BYTES 32
#define CHECK_BYTES 4
#define AT_PORT 8
#define AT_TOKEN (AT_PORT + 2)
#define AT_FINGERPRINT (AT_TOKEN + UUID_BYTES)
#define AT_SECRET (AT_FINGERPRINT + HASH_BYTES)
#define AT_ADDRESS (AT_SECRET + SECRET_BYTES)
#define LONGEST_ADDRESS 64

/* --- hexadecimal digits --- */

/* Exactly `len` bytes; dashes are passed over, as UUIDs have them. */
static bool from_hex(const char *text, guint8 *ret_bytes, size_t len)
{
    size_t digits = 0;
    for (; *text; text++) {
        int value = g_ascii_xdigit_value(*text);
        if (*text == '-')
            continue;
        if (value < 0 || digits == 2 * len)
            return false;
        guint8 *byte = &ret_bytes[digits / 2];
        *byte = (guint8)(digits % 2 == 0 ? value << 4 : *byte | value);
        digits++;
    }
    return digits == 2 * len;
}

static char *to_hex(const guint8 *bytes, size_t len)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < len; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

static char *to_uuid(const guint8 *bytes)
{
    g_autofree char *hex = to_hex(bytes, UUID_BYTES);
    return g_strdup_printf("%.8s-%.4s-%.4s-%.4s-%s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* --- hashes --- */

static void sha256(const guint8 *bytes, size_t len, guint8 *ret_hash)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize size = HASH_BYTES;
    g_checksum_update(sum, bytes, (gssize)len);
    g_checksum_get_digest(sum, ret_hash, &size);
}

char *invitation_way_back(const char *node, const char *address, guint64 port)
{
    return g_strdup_printf("fettle node invite %s --primary-ip %s --port %" G_GUINT64_FORMAT
                           ", and on its host: fettle-noded join --new-keys",
                           node, address, port);
}

char *invitation_fingerprint(const char *certificate)
{
    static const char head[] = "-----BEGIN CERTIFICATE-----";
    const char *begin = strstr(certificate, head);
    const char *end = begin != NULL ? strstr(begin, "-----END") : NULL;

    if (end == NULL)
        return NULL;
    begin += strlen(head);
    g_autofree char *base64 = g_strndup(begin, (gsize)(end - begin));
    gsize len = 0;
    g_autofree guchar *bytes = g_base64_decode(base64, &len);
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, bytes, len);
}

char *invitation_secret_hash(const char *secret)
{
    guint8 bytes[SECRET_BYTES];
    guint8 hash[HASH_BYTES];
    if (!from_hex(secret, bytes, sizeof bytes))
        return NULL;
    sha256(bytes, sizeof bytes, hash);
    return to_hex(hash, sizeof hash);
}

bool invitation_hash_equal(const char *one, const char *other)
{
    size_t len = strlen(one);
    volatile guint8 difference = 0;
    if (strlen(other) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        difference = (guint8)(difference | (one[i] ^ other[i]));
    return difference == 0;
}

/* --- the text --- */

char *invitation_format(const struct invitation *invitation)
{
    guint8 bytes[AT_ADDRESS + LONGEST_ADDRESS + CHECK_BYTES];
    guint8 hash[HASH_BYTES];
    size_t address = strlen(invitation->address);
    g_assert(address <= LONGEST_ADDRESS);
    for (guint i = 0; i < AT_PORT; i++)
        bytes[i] = (guint8)((guint64)invitation->expires >> (8 * (AT_PORT - 1 - i)));
    bytes[AT_PORT] = (guint8)(invitation->port >> 8);
    bytes[AT_PORT + 1] = (guint8)invitation->port;
    g_assert(from_hex(invitation->token, bytes + AT_TOKEN, UUID_BYTES));
    g_assert(from_hex(invitation->fingerprint, bytes + AT_FINGERPRINT, HASH_BYTES));
    g_assert(from_hex(invitation->secret, bytes + AT_SECRET, SECRET_BYTES));
    memcpy(bytes + AT_ADDRESS, invitation->address, address);
    size_t len = AT_ADDRESS + address;
    sha256(bytes, len, hash);
    memcpy(bytes + len, hash, CHECK_BYTES);
    g_autofree char *base64 = g_base64_encode(bytes, len + CHECK_BYTES);
    g_strdelimit(base64, "+", '-');
    g_strdelimit(base64, "/", '_');
    base64[strcspn(base64, "=")] = '\0';
    return g_strconcat(INVITATION_MARK, base64, NULL);
}

/* Without white space; NULL if it is too long to be a token. */
static char *squeeze(const char *text)
{
    g_autoptr(GString) squeezed = g_string_new(NULL);
    for (; *text && squeezed->len <= LIMIT_TOKEN_CHARS; text++)
        if (!g_ascii_isspace(*text))
            g_string_append_c(squeezed, *text);
    return squeezed->len > LIMIT_TOKEN_CHARS ? NULL : g_strdup(squeezed->str);
}

static guint8 *decode(const char *text, size_t *ret_len)
{
    g_autofree char *base64 = g_strdup(text);
    size_t len = strlen(base64);
    if (len % 4 == 1 || strspn(base64, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-_") != len)
        return NULL;
    g_strdelimit(base64, "-", '+');
    g_strdelimit(base64, "_", '/');
    g_autofree char *padded = g_strconcat(base64, &"==="[3 - (4 - len % 4) % 4], NULL);
    return g_base64_decode(padded, ret_len);
}

static bool checks_out(const guint8 *bytes, size_t len)
{
    guint8 hash[HASH_BYTES];
    if (len <= AT_ADDRESS + CHECK_BYTES || len > AT_ADDRESS + LONGEST_ADDRESS + CHECK_BYTES)
        return false;
    sha256(bytes, len - CHECK_BYTES, hash);
    return memcmp(hash, bytes + len - CHECK_BYTES, CHECK_BYTES) == 0;
}

static struct invitation *read_bytes(const guint8 *bytes, size_t len)
{
    struct invitation *invitation = g_new0(struct invitation, 1);
    for (guint i = 0; i < AT_PORT; i++)
        invitation->expires = (gint64)((guint64)invitation->expires << 8 | bytes[i]);
    invitation->port = (guint)bytes[AT_PORT] << 8 | bytes[AT_PORT + 1];
    invitation->token = to_uuid(bytes + AT_TOKEN);
    invitation->fingerprint = to_hex(bytes + AT_FINGERPRINT, HASH_BYTES);
    invitation->secret = to_hex(bytes + AT_SECRET, SECRET_BYTES);
    invitation->address =
        g_strndup((const char *)bytes + AT_ADDRESS, len - AT_ADDRESS - CHECK_BYTES);
    return invitation;
}

struct invitation *invitation_parse(const char *text, GError **error)
{
    g_autofree char *token = squeeze(text);
    size_t len = 0;
    if (!token || !g_str_has_prefix(token, INVITATION_MARK)) {
        fettle_set_error(error, WRONG_INPUT,
                         "this is no token: tokens begin with %s; copy the whole line that `fettle "
                         "node invite` printed",
                         INVITATION_MARK);
        return NULL;
    }
    g_autofree guint8 *bytes = decode(token + strlen(INVITATION_MARK), &len);
    struct invitation *invitation = bytes && checks_out(bytes, len) ? read_bytes(bytes, len) : NULL;
    if (invitation && invitation->port > 0 && g_hostname_is_ip_address(invitation->address))
        return invitation;
    invitation_free(invitation);
    fettle_set_error(error, WRONG_INPUT,
                     "the token is damaged: its checksum does not fit; copy the whole line that "
                     "`fettle node invite` printed");
    return NULL;
}

void invitation_free(struct invitation *invitation)
{
    if (!invitation)
        return;
    g_free(invitation->address);
    g_free(invitation->fingerprint);
    g_free(invitation->token);
    g_free(invitation->secret);
    g_free(invitation);
}

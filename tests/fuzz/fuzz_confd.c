/*
 * ConfD's datagrams from any bytes. What is not signed is never answered; and because damage always
 * breaks the signature, the same bytes are also taken as the signed inner message of a request.
 */
#include "core/confd/confd.h"
#include "fuzz.h"

#include <string.h>

#define NODE "aaaaaaaa-0000-4000-8000-000000000001"
#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"
#define KEY "00112233445566778899aabbccddeeff"
#define NOW 1795191280

static void put(struct confd_copy *copy, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(confd_copy_config(copy), kind, key, object);
    g_assert_true(confd_copy_apply(copy, change, &error));
}

static struct confd *make_confd(void)
{
    struct confd *confd = confd_new(NODE);
    struct confd_copy *copy = confd_copy_new();
    put(copy, "cluster", CLUSTER,
        json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE));
    put(copy, "node", NODE,
        json_make("{ss ss ss ss}", "uuid", NODE, "name", "node1", "primary_ip", "10.99.9.10",
                  "group", GROUP));
    put(copy, "secret", "confd", json_make("{ss}", "value", KEY));
    confd_set_copy(confd, copy);
    return confd;
}

static void check_reply(const struct confd_key *key, const char *reply, size_t len)
{
    json_autoptr msg = NULL;
    g_autofree char *salt = NULL;
    enum confd_fault fault;
    g_assert_true(confd_open(key, reply, len, LIMIT_CONFD_REPLY_BYTES, &msg, &salt, &fault));
    g_assert_true(json_is_integer(json_object_get(msg, "status")));
}

/* Signed by the right key or dropped; never both. */
static void play_datagram(struct confd *confd, const struct confd_key *key, const char *data,
                          size_t len)
{
    guint64 dropped = confd_dropped(confd);
    size_t reply_len = 0;
    g_autofree char *reply = confd_handle(confd, NOW, "10.99.9.10", data, len, &reply_len);
    g_assert_cmpuint(confd_dropped(confd), ==, dropped + (reply == NULL));
    if (reply)
        check_reply(key, reply, reply_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct confd *confd;
    if (!confd)
        confd = make_confd();
    g_autoptr(confd_key_t) key = confd_key_new(KEY, strlen(KEY));
    play_datagram(confd, key, (const char *)data, len);
    g_autofree char *text = g_strndup(len > 0 ? (const char *)data : "", len);
    if (!g_utf8_validate(text, -1, NULL))
        return 0;
    size_t sealed_len;
    g_autofree char *sealed = confd_seal(key, "1795191280", text, &sealed_len);
    play_datagram(confd, key, sealed, sealed_len);
    return 0;
}

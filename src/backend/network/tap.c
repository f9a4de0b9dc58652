/*
 * Naming tap devices. See tap.h.
 */
#include "backend/network/tap.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PREFIX "ft"
#define HASH_CHARS 12
#define ALIAS_WORD "fettle"

G_STATIC_ASSERT(LIMIT_NICS <= 10); /* one digit */

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

void tap_name(const char *instance, guint index, char ret_name[TAP_NAME_BYTES])
{
    guint8 hash[32];
    gsize len = sizeof hash;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(sum, (const guchar *)instance, -1);
    g_checksum_get_digest(sum, hash, &len);
    g_assert(index < LIMIT_NICS);
    char name[HASH_CHARS + 1] = "";
    for (guint i = 0; i < HASH_CHARS; i++)
        name[i] = digits[hash[i] % 32];
    g_snprintf(ret_name, TAP_NAME_BYTES, PREFIX "%s%u", name, index);
}

bool tap_is_name(const char *name)
{
    return g_str_has_prefix(name, PREFIX) && strlen(name) == TAP_NAME_BYTES - 1 &&
           strspn(name + strlen(PREFIX), digits) == HASH_CHARS + 1;
}

char *tap_alias(const char *instance, guint index, enum nic_mode mode)
{
    return g_strdup_printf(ALIAS_WORD " %s %s %u", enum_word(&nic_mode_words, (int)mode), instance,
                           index);
}

char *tap_alias_parse(const char *alias, enum nic_mode *ret_mode)
{
    g_auto(GStrv) words = g_strsplit(alias, " ", 5);
    if (g_strv_length(words) != 4 || strcmp(words[0], ALIAS_WORD) != 0 ||
        !g_uuid_string_is_valid(words[2]))
        return NULL;
    int mode = enum_parse(&nic_mode_words, words[1]);
    if (mode < 0)
        return NULL;
    *ret_mode = (enum nic_mode)mode;
    return g_strdup(words[2]);
}

int tap_open(const char *name, GError **error)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    g_strlcpy(request.ifr_name, name, sizeof request.ifr_name);
    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0 &&
        ioctl(fd, TUNSETOWNER, (unsigned long)geteuid()) == 0)
        return fd;
    fettle_set_error(error, ENVIRONMENT, "cannot open tap device %s: %s", name, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

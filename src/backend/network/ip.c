/*
 * Running ip. See ip.h.
 */
#include "backend/network/ip.h"

#include "backend/tool.h"
#include "base/limits.h"

#include <string.h>
#include <sys/socket.h>

bool ip_batch(int family, const char *lines, GError **error)
{
    const char *argv[] = {"ip", family == AF_INET6 ? "-6" : "-4", "-batch", TOOL_INPUT, NULL};
    g_autofree char *output = NULL;
    int code = tool_run(argv, lines, LIMIT_NETWORK_TOOL_MS, &output, error);
    if (code == 0)
        return true;
    if (code > 0) {
        /* The last line names only the line that failed, the one before says why. */
        g_auto(GStrv) said = g_strsplit(output, "\n", 2);
        g_autofree char *words = tool_last_words(said[0] != NULL ? said[0] : "");
        fettle_set_error(error, ENVIRONMENT, "ip: %s", words);
    }
    return false;
}

json_t *ip_links(const char *dev, const char *kind, GError **error)
{
    const char *argv[10] = {"ip", "-details", "-json", "link", "show"};
    guint count = 5;
    if (dev != NULL) {
        argv[count++] = "dev";
        argv[count++] = dev;
    }
    if (kind != NULL) {
        argv[count++] = "type";
        argv[count++] = kind;
    }
    g_autofree char *output = NULL;
    g_autoptr(GError) bad = NULL;
    int code = tool_run(argv, NULL, LIMIT_NETWORK_TOOL_MS, &output, error);
    if (code < 0)
        return NULL;
    if (code > 0 && dev != NULL && strstr(output, "does not exist") != NULL)
        return json_array();
    json_t *links = code == 0 && output[0] != '\0'
                        ? json_parse_limited(output, strlen(output), LIMIT_TOOL_OUTPUT_BYTES, &bad)
                        : NULL;
    if (code == 0 && output[0] == '\0')
        return json_array();
    if (links != NULL && json_is_array(links))
        return links;
    g_autofree char *words =
        code == 0 ? g_strdup("an answer that cannot be read") : tool_last_words(output);
    json_decref(links);
    fettle_set_error(error, ENVIRONMENT, "ip link show: %s", words);
    return NULL;
}

const char *ip_link_text(const json_t *link, const char *member)
{
    const char *text = json_string_value(json_object_get(link, member));
    return text != NULL ? text : "";
}

const char *ip_link_kind(const json_t *link)
{
    return ip_link_text(json_object_get(link, "linkinfo"), "info_kind");
}

guint ip_link_mtu(const json_t *link)
{
    return (guint)json_integer_value(json_object_get(link, "mtu"));
}

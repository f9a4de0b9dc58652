/* See webhook.h. */
#include "proto/webhook/webhook.h"

#include <string.h>

#include "base/error.h"

/* --- events --- */

const char *const webhook_words[] = {
    "job.success",   "job.error",      "job.canceled",  "repair.act",
    "repair.wait",   "repair.leave",   "repair.done",   "decision.act",
    "decision.wait", "decision.leave", "decision.done", "event.recovered",
    "event.alert",   "event.finding",  "event.gone",    NULL,
};

static bool fits(const char *pattern, const char *word)
{
    size_t len = strlen(pattern);
    return !strcmp(pattern, "*") || !strcmp(pattern, word) ||
           (g_str_has_suffix(pattern, ".*") && !strncmp(pattern, word, len - 1));
}

bool webhook_pattern_check(const char *pattern, GError **error)
{
    for (const char *const *word = webhook_words; *word; word++)
        if (fits(pattern, *word))
            return true;
    g_autofree char *words = g_strjoinv(", ", (char **)webhook_words);
    fettle_set_error(error, WRONG_INPUT,
                     "events: there is no event \"%s\"; there are %s, and patterns such as job.* "
                     "or *",
                     pattern, words);
    return false;
}

bool webhook_wants(const GPtrArray *patterns, const char *word)
{
    for (guint i = 0; i < patterns->len; i++)
        if (fits(patterns->pdata[i], word))
            return true;
    return patterns->len == 0;
}

/* --- receivers --- */

static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return true;
}

static bool is_host(const char *host)
{
    size_t letters = strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-_:");
    return *host && !host[letters];
}

/* What is wrong with one that can be read; NULL: nothing. */
static const char *why_not(const char *scheme, const char *host, const char *userinfo,
                           const char *fragment)
{
    return g_ascii_strcasecmp(scheme, "https") != 0 && g_ascii_strcasecmp(scheme, "http") != 0
               ? "must begin with https:// or http://"
           : userinfo ? "may have no user and no password: it is shown in lists; the signature "
                        "says who sends"
           : fragment ? "may have no \"#\""
           : !host || !is_host(host) ? "must name a host, as https://receiver.example/path"
                                     : NULL;
}

/* As the header Host has it: without the port that goes without saying. */
static char *authority_of(const char *host, gint port)
{
    bool six = strchr(host, ':') != NULL;
    g_autofree char *name = g_strdup_printf(six ? "[%s]" : "%s", host);
    return port < 0 ? g_steal_pointer(&name) : g_strdup_printf("%s:%d", name, port);
}

struct webhook_url *webhook_url_parse(const char *text, GError **error)
{
    g_autofree char *scheme = NULL, *userinfo = NULL, *host = NULL, *path = NULL, *query = NULL,
                    *fragment = NULL;
    gint port = -1;
    const char *why = "must begin with https:// or http://";
    if (!is_plain(text))
        why = "may have no blank, no control character, and nothing but ASCII";
    else if (g_uri_split(text, G_URI_FLAGS_ENCODED, &scheme, &userinfo, &host, &port, &path, &query,
                         &fragment, NULL) &&
             scheme)
        why = why_not(scheme, host, userinfo, fragment);
    if (!why && port == 0)
        why = "0 is no port";
    if (why) {
        fettle_set_error(error, WRONG_INPUT, "url: %s", why);
        return NULL;
    }
    struct webhook_url *url = g_new0(struct webhook_url, 1);
    url->tls = g_ascii_strcasecmp(scheme, "https") == 0;
    url->port = port > 0 ? (guint)port : url->tls ? 443 : 80;
    url->authority = authority_of(host, port);
    url->host = g_steal_pointer(&host);
    url->target = g_strconcat(*path ? path : "/", query ? "?" : "", query ? query : "", NULL);
    return url;
}

void webhook_url_free(struct webhook_url *url)
{
    if (!url)
        return;
    g_free(url->host);
    g_free(url->authority);
    g_free(url->target);
    g_free(url);
}

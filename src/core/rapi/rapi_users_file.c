/* See rapi_users_file.h. */
#include "core/rapi/rapi_users_file.h"

#include <string.h>

#include "base/limits.h"
#include "base/text.h"

#define HA1_CHARS 32

struct reading {
    GHashTable *users;
    guint line;
    void (*complain)(const char *line, void *data);
    void *data;
};

void rapi_listed_free(void *data)
{
    struct rapi_listed *listed = data;
    g_free(listed->name);
    g_free(listed->kept);
    g_free(listed);
}

static void leave_out(const struct reading *reading, const char *why)
{
    g_autofree char *line = g_strdup_printf("rapi/users: line %u: %s", reading->line, why);
    reading->complain(line, reading->data);
}

/* "{HA1}…" in whatever letters; without braces it is in clear. False: one that nobody knows. */
static bool find_scheme(const char *word, enum rapi_scheme *ret_scheme, const char **ret_kept)
{
    static const struct {
        const char *prefix;
        enum rapi_scheme scheme;
    } known[] = {{"{CLEARTEXT}", RAPI_CLEARTEXT}, {"{HA1}", RAPI_HA1}, {"{CRYPT}", RAPI_CRYPT}};
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        size_t len = strlen(known[i].prefix);
        if (g_ascii_strncasecmp(word, known[i].prefix, len) == 0) {
            *ret_scheme = known[i].scheme;
            *ret_kept = word + len;
            return true;
        }
    }
    *ret_scheme = RAPI_CLEARTEXT;
    *ret_kept = word;
    return *word != '{' || !strchr(word, '}');
}

static bool name_is_good(const char *name)
{
    g_autofree char *control = text_control(name);
    return !control && !strchr(name, ':') && g_utf8_strlen(name, -1) <= LIMIT_RAPI_USER;
}

static bool kept_is_good(enum rapi_scheme scheme, const char *kept)
{
    switch (scheme) {
    case RAPI_CLEARTEXT:
        break;
    case RAPI_HA1:
        return strlen(kept) == HA1_CHARS && strspn(kept, "0123456789abcdefABCDEF") == HA1_CHARS;
    case RAPI_CRYPT:
        return *kept == '$' && strlen(kept) <= LIMIT_RAPI_HASH;
    }
    return *kept;
}

static bool may_write(char *const *options)
{
    for (; *options; options++) {
        g_auto(GStrv) words = g_strsplit(*options, ",", -1);
        if (g_strv_contains((const char *const *)words, "write"))
            return true;
    }
    return false;
}

/* `words`: without empty ones. */
static void take(struct reading *reading, char *const *words)
{
    enum rapi_scheme scheme;
    const char *kept;
    if (!words[1])
        leave_out(reading, "two fields are needed, a name and a password");
    else if (!name_is_good(words[0]))
        leave_out(reading, "a name has at most " G_STRINGIFY(
                               LIMIT_RAPI_USER) " characters, none of them \":\" or a control "
                                                "character");
    else if (!find_scheme(words[1], &scheme, &kept))
        leave_out(reading, "a password stands in clear, or behind {CLEARTEXT}, {HA1} or {CRYPT}");
    else if (!kept_is_good(scheme, kept))
        leave_out(reading, scheme == RAPI_HA1 ? "behind {HA1} stand 32 hexadecimal digits"
                           : scheme == RAPI_CRYPT
                               ? "behind {CRYPT} stands a password as crypt(3) keeps one, as $y$…"
                               : "the password is empty");
    else if (g_hash_table_size(reading->users) >= LIMIT_RAPI_USERS)
        leave_out(reading, "there are " G_STRINGIFY(LIMIT_RAPI_USERS) " users already");
    else {
        struct rapi_listed *listed = g_new(struct rapi_listed, 1);
        *listed =
            (struct rapi_listed){g_strdup(words[0]), scheme, g_strdup(kept), may_write(words + 2)};
        g_hash_table_replace(reading->users, listed->name, listed);
    }
}

static void read_line(struct reading *reading, const char *line)
{
    if (!g_utf8_validate(line, -1, NULL)) {
        leave_out(reading, "it is no UTF-8");
        return;
    }
    g_auto(GStrv) fields = g_strsplit_set(line, " \t\r\f\v", -1);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    for (char **field = fields; *field; field++)
        if (**field)
            g_ptr_array_add(words, *field);
    g_ptr_array_add(words, NULL);
    const char *first = words->pdata[0];
    if (first && *first != '#')
        take(reading, (char *const *)words->pdata);
}

GHashTable *rapi_users_file_parse(const char *text, void (*complain)(const char *line, void *data),
                                  void *data)
{
    struct reading reading = {
        .users = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, rapi_listed_free),
        .complain = complain,
        .data = data};
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        reading.line++;
        read_line(&reading, *line);
    }
    return reading.users;
}

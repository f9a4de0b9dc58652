/* Names of locks and their order; see locks.h. */
#include "core/locks/locks_private.h"

#include <string.h>

static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '/' || (guchar)*c <= ' ' || *c == 0x7f)
            return false;
    }
    return *text != '\0';
}

/* Of the word before the slash; LEVEL_COUNT: none. Names of level config begin with cluster/. */
static guint level_of(const char *name, const char **ret_rest)
{
    const char *slash = strchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    for (guint level = 0; slash && level < LEVEL_CONFIG; level++) {
        const char *word = enum_word(&lock_level_words, (int)level);
        if (strlen(word) == len && memcmp(word, name, len) == 0) {
            *ret_rest = slash + 1;
            return level;
        }
    }
    return LEVEL_COUNT;
}

static bool no_lock(const char *name, const char *why, GError **error)
{
    fettle_set_error(error, WRONG_INPUT, "lock \"%s\": %s", name, why);
    return false;
}

bool lock_name_parse(const char *name, enum lock_level *ret_level, const char **ret_rest,
                     bool *ret_group, GError **error)
{
    const char *rest;
    guint level = level_of(name, &rest);
    if (level == LEVEL_COUNT)
        return no_lock(name,
                       "must be LEVEL/NAME with one of the levels cluster, instance, nodegroup, "
                       "node, node-param, node-res, network",
                       error);
    if (!is_plain(rest))
        return no_lock(name,
                       "the name after the slash is empty or has a space, slash or control "
                       "character in it",
                       error);
    bool group = strcmp(rest, "[lockset]") == 0;
    bool config = level == LEVEL_CLUSTER && strcmp(rest, "config") == 0;
    if (level == LEVEL_CLUSTER && !group && !config && strcmp(rest, "BGL") != 0)
        return no_lock(name, "level cluster has only [lockset], BGL and config", error);
    *ret_level = config ? LEVEL_CONFIG : (enum lock_level)level;
    *ret_rest = rest;
    *ret_group = group;
    return true;
}

bool locks_check_name(const char *name, GError **error)
{
    enum lock_level level;
    const char *rest;
    bool group;
    return lock_name_parse(name, &level, &rest, &group, error);
}

static int order(enum lock_level level_a, bool group_a, const char *rest_a, enum lock_level level_b,
                 bool group_b, const char *rest_b)
{
    if (level_a != level_b)
        return level_a < level_b ? -1 : 1;
    if (group_a != group_b)
        return group_a ? -1 : 1;
    return strcmp(rest_a, rest_b);
}

int lock_order(const struct lock *a, const struct lock *b)
{
    return order(a->level, a->group, a->rest, b->level, b->group, b->rest);
}

int locks_compare(const char *a, const char *b)
{
    enum lock_level level_a = LEVEL_COUNT;
    enum lock_level level_b = LEVEL_COUNT;
    const char *rest_a = a;
    const char *rest_b = b;
    bool group_a = false;
    bool group_b = false;
    lock_name_parse(a, &level_a, &rest_a, &group_a, NULL);
    lock_name_parse(b, &level_b, &rest_b, &group_b, NULL);
    return order(level_a, group_a, rest_a, level_b, group_b, rest_b);
}

int request_order(const struct request *a, const struct request *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return a->ticket == b->ticket ? 0 : a->ticket < b->ticket ? -1 : 1;
}

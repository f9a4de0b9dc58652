/* The words of a usage; see usage.h. */
#include "cli/usage.h"

#include <stdbool.h>
#include <string.h>

#define SPACE " "
#define ELLIPSIS "…"

/* --- flags --- */

/* The end of a word that begins at `text`. */
static size_t word_length(const char *text)
{
    return strcspn(text, " []()|");
}

/* Calls each(flag, its value or NULL) for every flag, until that says false. */
static void each_flag(const char *usage,
                      bool (*each)(const char *flag, const char *value, void *data), void *data)
{
    const char *at = usage;
    while ((at = strstr(at, "--")) != NULL) {
        size_t length = word_length(at);
        const char *behind = at + length;
        g_autofree char *flag = g_strndup(at, length);
        bool has_value =
            behind[0] == ' ' && behind[1] != '-' && behind[1] != '[' && behind[1] != '(';
        g_autofree char *value =
            has_value ? g_strndup(behind + 1, strcspn(behind + 1, " ]")) : NULL;
        if (length > 2 && !each(flag, value, data))
            return;
        at = behind;
    }
}

static bool add_flag(const char *flag, const char *value, void *data)
{
    g_ptr_array_add(data, g_strdup(flag));
    return true;
}

GPtrArray *usage_flags(const char *usage)
{
    GPtrArray *flags = g_ptr_array_new_with_free_func(g_free);
    each_flag(usage, add_flag, flags);
    g_ptr_array_add(flags, NULL);
    return flags;
}

struct wanted {
    const char *flag;
    char *value;
};

static bool find_value(const char *flag, const char *value, void *data)
{
    struct wanted *wanted = data;
    if (strcmp(flag, wanted->flag) != 0)
        return true;
    wanted->value = g_strdup(value);
    return false;
}

char *usage_value(const char *usage, int count, char *const *words)
{
    struct wanted wanted = {count > 0 ? words[count - 1] : "", NULL};
    each_flag(usage, find_value, &wanted);
    return wanted.value;
}

/* --- words --- */

/* A flag with its value becomes nothing. */
static char *without_flags(const char *usage)
{
    GString *text = g_string_new(NULL);
    for (const char *at = usage; *at != '\0';) {
        if (strncmp(at, "--", 2) != 0 || (at > usage && strchr(" [|", at[-1]) == NULL)) {
            g_string_append_c(text, *at++);
            continue;
        }
        at += word_length(at);
        if (at[0] == ' ' && at[1] != '-' && at[1] != '[' && at[1] != '(')
            at += 1 + strcspn(at + 1, " ]|");
        /* Behind an alternative, "a 1|b 2" of flags. */
        if (*at == '|')
            at++;
    }
    return g_string_free(text, FALSE);
}

/* "a (b|c NAME) d" as "a b d" and "a c NAME d". */
static GStrv sequences(const char *words)
{
    const char *open = strchr(words, '('), *close = open != NULL ? strchr(open, ')') : NULL;
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    if (close == NULL) {
        g_strv_builder_add(builder, words);
        return g_strv_builder_end(builder);
    }
    g_autofree char *before = g_strndup(words, (gsize)(open - words));
    g_autofree char *inside = g_strndup(open + 1, (gsize)(close - open - 1));
    g_auto(GStrv) choices = g_strsplit(inside, "|", -1);
    for (guint i = 0; choices[i] != NULL; i++) {
        g_autofree char *one = g_strconcat(before, choices[i], close + 1, NULL);
        g_strv_builder_add(builder, one);
    }
    return g_strv_builder_end(builder);
}

/* Places of a sequence, each "a|b". */
static GPtrArray *places_of(const char *sequence)
{
    GPtrArray *places = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *plain = g_strdelimit(g_strdup(sequence), "[]", ' ');
    g_auto(GStrv) words = g_strsplit(plain, SPACE, -1);
    for (guint i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], ELLIPSIS) == 0 && places->len > 0) {
            char **last = (char **)&places->pdata[places->len - 1];
            char *repeated = g_strconcat(*last, ELLIPSIS, NULL);
            g_free(*last);
            *last = repeated;
        } else if (*words[i] != '\0') {
            g_ptr_array_add(places, g_strdup(words[i]));
        }
    return places;
}

static bool stands_for_itself(const char *word)
{
    return g_ascii_islower(*word);
}

/* Whether the place takes that word. */
static bool takes(const char *place, const char *word)
{
    g_auto(GStrv) choices = g_strsplit(place, "|", -1);
    for (guint i = 0; choices[i] != NULL; i++)
        if (!stands_for_itself(choices[i]) || strcmp(choices[i], word) == 0)
            return true;
    return false;
}

static const char *place_at(const GPtrArray *places, guint number)
{
    if (number < places->len)
        return places->pdata[number];
    const char *last = places->len > 0 ? places->pdata[places->len - 1] : "";
    return g_str_has_suffix(last, ELLIPSIS) ? last : NULL;
}

static void add_choices(GPtrArray *next, const char *place)
{
    g_auto(GStrv) choices = g_strsplit(place, "|", -1);
    for (guint i = 0; choices[i] != NULL; i++) {
        char *choice = choices[i];
        if (g_str_has_suffix(choice, ELLIPSIS))
            choice[strlen(choice) - strlen(ELLIPSIS)] = '\0';
        if (*choice != '\0' && !g_ptr_array_find_with_equal_func(next, choice, g_str_equal, NULL))
            g_ptr_array_add(next, g_strdup(choice));
    }
}

static void add_next(GPtrArray *next, const char *sequence, const GPtrArray *words)
{
    g_autoptr(GPtrArray) places = places_of(sequence);
    for (guint i = 0; i < words->len; i++) {
        const char *place = place_at(places, i);
        if (place == NULL || !takes(place, words->pdata[i]))
            return;
    }
    const char *place = place_at(places, words->len);
    if (place != NULL)
        add_choices(next, place);
}

/* Without flags and their values. */
static GPtrArray *plain_words(const char *usage, int count, char *const *words)
{
    GPtrArray *plain = g_ptr_array_new();
    for (int i = 0; i < count; i++) {
        g_autofree char *value = usage_value(usage, i, words);
        if (words[i][0] != '-' && value == NULL)
            g_ptr_array_add(plain, words[i]);
    }
    return plain;
}

GPtrArray *usage_next(const char *usage, int count, char *const *words)
{
    GPtrArray *next = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) plain = plain_words(usage, count, words);
    g_autofree char *shape = without_flags(usage);
    g_auto(GStrv) all = sequences(shape);
    for (guint i = 0; all[i] != NULL; i++)
        add_next(next, all[i], plain);
    g_ptr_array_add(next, NULL);
    return next;
}

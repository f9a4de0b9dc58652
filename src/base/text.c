/* See text.h. */
#include "base/text.h"

#include <string.h>

void text_set(char **text, const char *value)
{
    char *old = *text;
    *text = g_strdup(value);
    g_free(old);
}

/* How long the control character is that stands here, and which; 0: it is none. */
static size_t control_at(const char *at, gunichar *ret_code)
{
    guchar first = (guchar)*at;
    *ret_code = first;
    if (first < 0x80)
        return first < ' ' || first == 0x7f;
    gunichar code = g_utf8_get_char_validated(at, -1);
    if (code == (gunichar)-1 || code == (gunichar)-2)
        return 1;
    *ret_code = code;
    bool control =
        code < 0xa0 || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return control ? (size_t)g_unichar_to_utf8(code, NULL) : 0;
}

static const char *next_control(const char *text, size_t *ret_len, gunichar *ret_code)
{
    for (; *text != '\0'; text++) {
        /* In a longer character of UTF-8 no byte but the first is looked at. */
        if ((guchar)*text >= ' ' && (guchar)*text < 0x7f)
            continue;
        *ret_len = control_at(text, ret_code);
        if (*ret_len > 0)
            return text;
        text = g_utf8_next_char(text) - 1;
    }
    return NULL;
}

static void append_code(GString *out, gunichar code)
{
    if (code == '\n')
        g_string_append(out, "\\n");
    else if (code == '\t')
        g_string_append(out, "\\t");
    else if (code == '\r')
        g_string_append(out, "\\r");
    else
        g_string_append_printf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
}

char *text_control(const char *text)
{
    size_t len;
    gunichar code;
    if (next_control(text, &len, &code) == NULL)
        return NULL;
    GString *out = g_string_new(NULL);
    append_code(out, code);
    return g_string_free(out, FALSE);
}

char *text_shown(const char *text)
{
    size_t len;
    gunichar code;
    const char *control = next_control(text, &len, &code);
    if (control == NULL)
        return NULL;
    GString *out = g_string_new(NULL);
    for (; control != NULL; control = next_control(text, &len, &code)) {
        g_string_append_len(out, text, control - text);
        append_code(out, code);
        text = control + len;
    }
    g_string_append(out, text);
    return g_string_free(out, FALSE);
}

char *text_time(gint64 seconds)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(seconds);
    return time == NULL ? g_strdup_printf("%" G_GINT64_FORMAT, seconds)
                        : g_date_time_format(time, "%Y-%m-%d %H:%M:%S UTC");
}

char *text_bits(guint64 bits)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < 64; i++)
        if (bits >> i & 1)
            g_string_append_printf(text, "%s%u", text->len > 0 ? ", " : "", i);
    return g_string_free(text, FALSE);
}

/* Bytes to the next place where a line may end. */
static size_t word_bytes(const char *text)
{
    size_t length = *text != '\0' ? 1 : 0;
    while (text[length] != '\0' && text[length] != ' ' && text[length - 1] != '|' &&
           strncmp(text + length, "[,", 2) != 0)
        length++;
    return length;
}

void text_fold(GString *out, const char *text, int column, int indent, int width)
{
    bool first = true;
    while (*text != '\0') {
        bool space = *text == ' ';
        text += strspn(text, " ");
        size_t bytes = word_bytes(text);
        int letters = (int)g_utf8_strlen(text, (gssize)bytes);
        if (!first && column + space + letters > width) {
            g_string_append_printf(out, "\n%*s", indent, "");
            column = indent;
        } else if (space) {
            g_string_append_c(out, ' ');
            column++;
        }
        g_string_append_len(out, text, (gssize)bytes);
        column += letters;
        text += bytes;
        first = false;
    }
}

char *text_head(const char *text, glong letters)
{
    return g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), letters));
}

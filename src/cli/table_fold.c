/* Cells that are folded within their column; see table_fold.h. */
#include "cli/table_fold.h"

#include <string.h>

int table_fold_width(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

/* Whether a line may end right before this byte, which is not the first one. */
static bool ends_before(const char *at, bool title)
{
    if (at[-1] == ' ' || strchr(",+", at[-1]) != NULL)
        return at[0] != ' ';
    return title && (at[-1] == '_' || (g_ascii_isupper(at[0]) && g_ascii_islower(at[-1])));
}

/* The next place where a line may end, or the end. */
static const char *part_end(const char *text, bool title)
{
    const char *at = text + 1;
    while (*at != '\0' && !ends_before(at, title))
        at++;
    return at;
}

/* Without the spaces at its end. */
static size_t bare_bytes(const char *text, const char *end)
{
    while (end > text && end[-1] == ' ')
        end--;
    return (size_t)(end - text);
}

static int bare_width(const char *text, const char *end)
{
    g_autofree char *bare = g_strndup(text, bare_bytes(text, end));
    return table_fold_width(bare);
}

int table_fold_least(const char *text, bool title)
{
    int least = 0;
    while (*text != '\0') {
        const char *end = part_end(text, title);
        least = MAX(least, bare_width(text, end));
        text = end;
    }
    return least;
}

static int sum_of(const int *widths, guint columns)
{
    int sum = (int)columns - 1;
    for (guint i = 0; i < columns; i++)
        sum += widths[i];
    return sum;
}

bool table_fold_columns(int *widths, const int *least, guint columns, int room)
{
    if (sum_of(least, columns) > room)
        return false;
    for (int over = sum_of(widths, columns) - room; over > 0; over--) {
        guint widest = columns;
        for (guint i = 0; i < columns; i++)
            if (widths[i] > least[i] && (widest == columns || widths[i] > widths[widest]))
                widest = i;
        widths[widest]--;
    }
    return true;
}

size_t table_fold_line(const char *text, int width, bool title, const char **ret_next)
{
    const char *end = text;
    while (*end != '\0') {
        const char *more = part_end(end, title);
        if (end > text && bare_width(text, more) > width)
            break;
        end = more;
    }
    *ret_next = end;
    return bare_bytes(text, end);
}

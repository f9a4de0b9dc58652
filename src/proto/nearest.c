/* See nearest.h. */
#include "proto/nearest.h"

#include <string.h>

#define LONGEST 63 /* letters that are compared */

guint nearest_distance(const char *a, const char *b)
{
    /* Rows of the table of all beginnings: two lines back, one line back, this one. */
    guint rows[3][LONGEST + 2];
    size_t na = MIN(strlen(a), LONGEST), nb = MIN(strlen(b), LONGEST);

    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = (guint)j;
    for (size_t i = 1; i <= na; i++) {
        guint *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = (guint)i;
        for (size_t j = 1; j <= nb; j++) {
            guint other = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = MIN(other, MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = MIN(now[j], before[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

const char *nearest_word(const char *word, const char *const *words)
{
    const char *best = NULL;
    guint least = (guint)MAX(strlen(word) / 3, 1) + 1;

    for (; *words != NULL; words++) {
        bool begins = strlen(word) >= 3 && g_str_has_prefix(*words, word);
        guint distance = begins ? 1 : nearest_distance(word, *words);
        if (distance >= least)
            continue;
        least = distance;
        best = *words;
    }
    return best;
}

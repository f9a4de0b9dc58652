/* See words.h. */
#include "daemons/job/words.h"

#include <glib.h>
#include <string.h>

static char *room;
static size_t room_len;

void words_init(int argc, char **argv)
{
    room = argc > 0 ? argv[0] : NULL;
    room_len = 0;
    /* The kernel puts them one behind the other. */
    for (int i = 0; i < argc && argv[i] == room + room_len; i++)
        room_len += strlen(argv[i]) + 1;
}

bool words_set(const char *const *words)
{
    g_autoptr(GString) list = g_string_new(NULL);
    size_t first = strlen(words[0]);

    for (; *words != NULL; words++)
        g_string_append_len(list, *words, (gssize)strlen(*words) + 1);
    if (list->len > room_len)
        return false;
    /* The end of the first word comes last: whoever reads meanwhile finds no word where it belongs.
     */
    memset(room + list->len, 0, room_len - list->len);
    memcpy(room, list->str, first);
    memcpy(room + first + 1, list->str + first + 1, list->len - first - 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    room[first] = '\0';
    return true;
}

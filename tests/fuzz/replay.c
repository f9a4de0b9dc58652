/*
 * Plays a corpus to a fuzz target without a fuzzer: every file as it is, cut at every length, and
 * with single bytes changed. What is damaged is decided by position alone, so each run is the same.
 * What libFuzzer has found, the second folder if there is one, is damaged already: it is played as
 * it is. Prints TAP.
 */
#include "fuzz.h"

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes that matter to the parsers: frame end, brackets, quotes, escapes, digits, invalid UTF-8. */
static const unsigned char replacements[] = {0x03, '{', '}', '[', ']', '"',  '\\', ',', ':',
                                             '0',  '-', 'e', '.', 'n', 0x00, 0xff, 0xc3};
/* A slow target is given fewer. */
#ifndef FLIPS_PER_FILE
#define FLIPS_PER_FILE 2000
#endif
#define CUTS_PER_FILE (FLIPS_PER_FILE / 4)

static void play_cut(const char *data, size_t len)
{
    size_t step = len / CUTS_PER_FILE + 1;
    for (size_t cut = 0; cut <= len; cut += step) {
        /* a copy of exact size, so that reading past the end is seen */
        g_autofree uint8_t *copy = g_memdup2(data, cut);
        LLVMFuzzerTestOneInput(copy, cut);
    }
}

static void play_changed(const char *data, size_t len)
{
    if (len == 0)
        return;
    g_autofree uint8_t *copy = g_memdup2(data, len);
    for (size_t i = 0; i < FLIPS_PER_FILE; i++) {
        size_t at = (i * 2654435761u) % len;
        uint8_t before = copy[at];
        copy[at] = replacements[(i / len + i) % sizeof replacements];
        LLVMFuzzerTestOneInput(copy, len);
        copy[at] = before;
    }
}

static bool play_file(const char *path, bool damage)
{
    g_autofree char *data = NULL;
    gsize len = 0;
    if (!g_file_get_contents(path, &data, &len, NULL))
        return false;
    g_autofree uint8_t *copy = g_memdup2(data, len);
    LLVMFuzzerTestOneInput(copy, len);
    if (damage) {
        play_cut(data, len);
        play_changed(data, len);
    }
    return true;
}

static bool play_folder(const char *folder, GDir *dir, bool damage, int *played)
{
    bool good = true;
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        bool read = play_file(path, damage);
        printf("%s %d /fuzz/%s\n", read ? "ok" : "not ok", ++*played, name);
        good = good && read;
    }
    return good;
}

int main(int argc, char **argv)
{
    g_autoptr(GDir) dir = argc == 2 || argc == 3 ? g_dir_open(argv[1], 0, NULL) : NULL;
    g_autoptr(GDir) found = argc == 3 ? g_dir_open(argv[2], 0, NULL) : NULL;
    if (dir == NULL) {
        printf("Bail out! usage: %s FOLDER-OF-INPUTS [FOLDER-OF-FOUND-ONES]\n", argv[0]);
        return 1;
    }
    int played = 0;
    bool good = play_folder(argv[1], dir, true, &played);
    if (played == 0) {
        printf("Bail out! the corpus %s is empty\n", argv[1]);
        return 1;
    }
    if (found != NULL)
        good = play_folder(argv[2], found, false, &played) && good;
    printf("1..%d\n", played);
    return good ? 0 : 1;
}

/* Words of directories; see dir_text.h. */
#include "backend/volume/dir_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/tool.h"
#include "backend/volume/dir_check.h"

#define RESOURCE(NAME, kind, word) [RESOURCE_##NAME] = #kind "s",
static const char *const folders[DIR_FOLDERS] = {
#include "proto/storage/resources.def"
};

const char *dir_folder(enum resource_type type)
{
    return folders[type];
}

bool dir_name_parse(const char *text, enum resource_type *ret_type, const char **ret_name)
{
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(text, folders[i], length) != 0 || text[length] != '/')
            continue;
        *ret_type = (enum resource_type)i;
        *ret_name = text + length + 1;
        return true;
    }
    return false;
}

/* The name goes into messages. */
bool dir_marker_parse(const char *text, struct dir_marker *ret)
{
    return sscanf(text, "backend %36[0-9a-f-]\ncluster %36[0-9a-f-] %255[!-~]", ret->backend,
                  ret->cluster, ret->name) == 3;
}

bool dir_whole_parse(const char *text, const char *name, guint64 bytes)
{
    guint64 claim = 0, whole = 0, its = 0;
    g_autofree char *uuid = NULL;
    return volume_data_parse(name, &uuid, &its) &&
           sscanf(text, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, &claim, &whole) == 2 &&
           its == claim && bytes >= whole;
}

bool dir_space_parse(const char *said, guint64 *ret_free, guint64 *ret_total)
{
    return sscanf(said, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, ret_free, ret_total) == 2;
}

bool dir_sum_parse(const char *said, guint64 *ret_bytes, char ret_sum[DIR_SUM_CHARS + 1])
{
    return sscanf(said, "%" G_GUINT64_FORMAT " %128[0-9a-f]", ret_bytes, ret_sum) == 2 &&
           strlen(ret_sum) == DIR_SUM_CHARS;
}

#define QEMU_IMG "qemu-img: "

void dir_qemu_failure_parse(const char *said, GError **error)
{
    g_autofree char *words = tool_last_words(said);
    bool full = strstr(words, g_strerror(ENOSPC)) || strstr(words, g_strerror(EDQUOT));
    g_set_error(error, FETTLE_ERROR, full ? FETTLE_ERROR_NO_RESOURCES : FETTLE_ERROR_STORAGE,
                QEMU_IMG "%s", words);
}

void dir_failure_parse(int code, const char *said, GError **error)
{
    const char *line = strchr(said, '\n');
    if (g_str_has_prefix(said, QEMU_IMG) || strstr(said, "\n" QEMU_IMG)) {
        dir_qemu_failure_parse(said, error);
        return;
    }
    if (code != 1 || !line) {
        g_autofree char *words = tool_last_words(said);
        fettle_set_error(error, STORAGE, "a call at it ended with %d: %s", code, words);
        return;
    }
    g_autofree char *name = g_strndup(said, (gsize)(line - said));
    g_autofree char *message = g_strchomp(g_strdup(line + 1));
    g_set_error_literal(error, FETTLE_ERROR, (gint)fettle_error_from_name(name), message);
}

bool dir_sums_parse(const struct backend *backend, const char *name, const char *said,
                    struct image_sums *ret, GError **error)
{
    struct image_sums sums = {0};
    if (sscanf(said, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %32[0-9a-f] %128[0-9a-f]",
               &sums.size, &sums.virtual_size, sums.checksum, sums.os_hash_value) == 4) {
        *ret = sums;
        return true;
    }
    fettle_set_error(error, STORAGE, "%s: the end of %s said nothing", backend->name, name);
    return false;
}

GPtrArray *dir_list_parse(const char *said)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(volume_data_free);
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        int whole, open;
        guint64 bytes;
        int before = 0;
        enum resource_type type;
        const char *name;
        guint64 claim;
        g_autofree char *uuid = NULL;
        if (sscanf(lines[i], "%d %d %" G_GUINT64_FORMAT " %n", &whole, &open, &bytes, &before) !=
                3 ||
            !dir_name_parse(lines[i] + before, &type, &name) ||
            !volume_data_parse(name, &uuid, &claim))
            continue;
        struct volume_data *data = g_new0(struct volume_data, 1);
        *data = (struct volume_data){type,       g_strdup(name), bytes,
                                     whole == 1, open == 1,      whole == DIR_MUTE};
        g_ptr_array_add(list, data);
    }
    return list;
}

void dir_check_parse(const char *said, struct volume_check *check)
{
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        const char *words = lines[i];
        check->unseen |= strcmp(words, DIR_UNSEEN) == 0;
        if (g_str_has_prefix(words, DIR_PROBLEM))
            g_ptr_array_add(check->problems, g_strdup(words + strlen(DIR_PROBLEM)));
        else if (g_str_has_prefix(words, DIR_NOTE))
            g_ptr_array_add(check->notes, g_strdup(words + strlen(DIR_NOTE)));
    }
}

/* See work_table.h. */
#include "proto/storage/work_table.h"

#include <string.h>

/* Statuses of tasks, by the names of their rows. */
#define TASK(kind, NAME, word, ...) TASK_OF_##kind(NAME, word)
#define TASK_OF_volume(NAME, word) static const char volume_##NAME[] G_GNUC_UNUSED = word;
#define TASK_OF_snapshot(NAME, word) static const char snapshot_##NAME[] G_GNUC_UNUSED = word;
#define TASK_OF_backup(NAME, word) static const char backup_##NAME[] G_GNUC_UNUSED = word;
#define TASK_OF_image(NAME, word) static const char image_##NAME[] G_GNUC_UNUSED = word;
#include "proto/tasks.def"

/* The statuses that an operation begins from are bits. */
#define FINAL(NAME, word) NAME = 1u << TASK_FINAL_##NAME,
enum {
    NONE = 0,
#include "proto/tasks.def"
};
G_STATIC_ASSERT(TASK_FINALS <= 32);

enum { OWN, PARTNERS };
#define WORK(kind, operation, NAME, from, done, routine, cleaned)                                  \
    {TASK_KIND_##kind, TASK_OPERATION_##operation, kind##_##NAME, from, TASK_FINAL_##done,         \
     WORK_##routine,   TASK_FINAL_##cleaned},
#define WORK_WITH(kind, operation, NAME, from, done, routine, cleaned, partner, STATUS, whose)     \
    {TASK_KIND_##kind,     TASK_OPERATION_##operation,                                             \
     kind##_##NAME,        from,                                                                   \
     TASK_FINAL_##done,    WORK_##routine,                                                         \
     TASK_FINAL_##cleaned, partner##_##STATUS,                                                     \
     TASK_KIND_##partner,  (whose) == PARTNERS},
const struct work_row work_rows[] = {
#include "proto/tasks.def"
    {0}};

const struct work_row *work_row_of(const struct work_row *table, enum task_kind kind,
                                   const char *operation)
{
    for (const struct work_row *row = table; row->status; row++)
        if (row->kind == kind && strcmp(task_operation_words[row->operation], operation) == 0)
            return row;
    return NULL;
}

bool work_accepts(const struct work_row *row, const char *status)
{
    for (guint i = 0; i < TASK_FINALS; i++)
        if ((row->from & (1u << i)) && strcmp(task_final_words[i], status) == 0)
            return true;
    return false;
}

char *work_accepted_words(const struct work_row *row)
{
    GString *words = g_string_new(NULL);
    for (guint i = 0, left = row->from; i < TASK_FINALS; i++) {
        if (!(left & (1u << i)))
            continue;
        left &= ~(1u << i);
        g_string_append_printf(words, "%s%s",
                               !words->len ? ""
                               : left      ? ", "
                                           : " or ",
                               task_final_words[i]);
    }
    return g_string_free(words, FALSE);
}

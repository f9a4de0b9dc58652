/*
 * The pages of `fettle … info`: cells of one object (field -> [status, value]) in, text on standard
 * output. Fields that the cluster does not have are left out.
 */
#pragma once

#include "cli/cli.h"

void info_print_instance(struct cli *cli, const json_t *cells);
void info_print_network(struct cli *cli, const json_t *cells);
void info_print_node(struct cli *cli, const json_t *cells);
void info_print_volume(struct cli *cli, const json_t *cells);
void info_print_backup(struct cli *cli, const json_t *cells);
void info_print_volume_type(struct cli *cli, const json_t *cells);
void info_print_image(struct cli *cli, const json_t *cells);
void info_print_snapshot(struct cli *cli, const json_t *cells);
void info_print_cluster(const json_t *info);
/* The last few records of `what` (decision, event) about an object, each with that field of it in
 * front; `all`: the command that shows them all. */
void info_print_records(struct cli *cli, const char *what, const char *word, const char *all,
                        const char *name);

/* --- info.c --- */

/* The row of the only one of that name, or UUID, in an array. NULL: there is none, or there are
 * several, which the error names. */
json_t *info_find(struct cli *cli, const char *what, const char *name, const char *const *fields,
                  GError **error);

/* --- info_fields.c --- */

/* The value of a cell if its status is normal, else NULL. */
const json_t *info_value(const json_t *cells, const char *field);
const char *info_string(const json_t *cells, const char *field); /* "" if it is none */
gint64 info_number(const json_t *cells, const char *field);      /* 0 if it is none */
/* A list joined by commas, "none" if it is empty; free with g_free(). */
char *info_list(const json_t *cells, const char *field);
/* A line "  Head           text". */
void info_line(const char *head, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The same, whose first word has the colour of its meaning on a terminal. */
void info_word(const char *head, const char *word, const char *rest);

/*
 * The cells of a table, column by column. Values come as [status, value] (LUXI's Query); which
 * fields there are, and of which kind, is in proto/fields.def.
 */
#pragma once

#include "cli/cli.h"

enum cell_status { CELL_NORMAL, CELL_UNKNOWN, CELL_NO_DATA, CELL_UNAVAILABLE, CELL_OFFLINE };

/* So many characters of a repair's id name it, as its commands take it. */
#define TABLE_SHORT_ID_CHARS 8

/* One column of a table, looked up once for all of its rows. */
struct column {
    const char *name;
    const struct shown_field *field; /* NULL: not one of the cluster's */
    char units;                      /* of sizes: m, g, t; h: what suits each */
    bool roles;                      /* letters that a person is told as words */
    bool repair_id;                  /* of which the beginning is enough */
};

/* `cli` NULL: for a text, not for a table. */
struct column column_of(const struct cli *cli, const char *what, const char *name);
/* What stands above it; to be freed. */
char *column_title(const char *what, const char *name);
/* What stands in it; made into `*ret_made` unless it is somewhere already. An empty cell is "-", so
 * that every line has as many words as the first. */
const char *table_cell(const struct cli *cli, const struct column *column, const json_t *cell,
                       char **ret_made);

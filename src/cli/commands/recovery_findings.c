/* See recovery_findings.h. What is there is what the newest event about a thing says. */
#include "cli/commands/recovery_findings.h"

#include <string.h>

static const char *const asked[] = {"subject", "event",   "host",     "state", "subject_name",
                                    "at",      "summary", "evidence", NULL};
enum { SUBJECT, EVENT, FIRST };

static const char *const shown[] = {"host", "kind", "name", "since", "summary", "evidence", NULL};
enum { SINCE = 3, SUMMARY = 4 };

/* Rows come in the order in which they were made. */
static json_t *newest_findings(const json_t *rows)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    json_t *list = json_array();
    for (size_t i = json_array_size(rows); i > 0; i--) {
        json_t *row = json_array_get(rows, i - 1);
        bool newest = g_hash_table_add(seen, (char *)cli_cell_string(row, SUBJECT));
        if (newest && strcmp(cli_cell_string(row, EVENT), "finding") == 0)
            json_array_insert(list, 0, row);
    }
    return list;
}

static json_t *cells_of(const struct cli *cli, const json_t *row)
{
    json_t *cells = json_array();
    for (size_t i = FIRST; asked[i] != NULL; i++) {
        size_t at = i - FIRST;
        const json_t *value = cli_cell_value(row, i);
        g_autofree char *since =
            at == SINCE ? cli_time_text((gint64)json_number_value(value)) : NULL;
        if (cli->json || at < SUMMARY)
            json_array_append_new(cells,
                                  json_make("[i o]", 0,
                                            since != NULL && !cli->json ? json_string(since)
                                                                        : json_deep_copy(value)));
    }
    return cells;
}

int recovery_findings(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "recovery findings", error))
        return -1;
    json_autoptr rows =
        cli_query(cli, "event", asked, json_make("[sss]", "=", "subject_kind", "thing"), error);
    if (rows == NULL)
        return -1;
    json_autoptr newest = newest_findings(rows);
    json_autoptr list = json_array();
    for (size_t i = 0; i < json_array_size(newest); i++)
        json_array_append_new(list, cells_of(cli, json_array_get(newest, i)));
    const char *const heads[] = {shown[0], shown[1], shown[2], shown[SINCE], NULL};
    cli_print_rows(cli, NULL, cli->json ? shown : heads, list);
    return 0;
}

/* See why_entry.h. */
#include "cli/why_entry.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/why_subject.h"

static void print_each(const char *head, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("    %-10s %s\n", i == 0 ? head : "", json_string_value(json_array_get(list, i)));
}

bool why_is_of_job(const json_t *row)
{
    return strcmp(cli_cell_string(row, WHY_VERDICT), WHY_OF_JOB) == 0;
}

/* "alert (warning): starting -> active by RCV-54 on node1", with what there is of it. */
static void print_event(const json_t *row)
{
    const char *event = cli_cell_string(row, WHY_EVENT);
    const char *old = cli_cell_string(row, WHY_OLD), *new = cli_cell_string(row, WHY_NEW);
    const char *const parts[][2] = {{"task ", cli_cell_string(row, WHY_TASK)},
                                    {"by ", cli_cell_string(row, WHY_RULE)},
                                    {"on ", cli_cell_string(row, WHY_HOST)}};
    g_autoptr(GString) text = g_string_new(NULL);
    if (*old || *new)
        g_string_append_printf(text, ", %s -> %s", *old ? old : "nothing", *new ? new : "nothing");
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (*parts[i][1])
            g_string_append_printf(text, ", %s%s", parts[i][0], parts[i][1]);
    if (*event && strcmp(event, "none") != 0)
        printf("    %-10s %s (%s)%s\n", "event", event, cli_cell_string(row, WHY_LEVEL), text->str);
    else if (text->len > 2)
        printf("    %-10s %s\n", "about", text->str + 2);
}

void why_print_entry(const json_t *row)
{
    g_autofree char *when = cli_time_text((gint64)json_number_value(cli_cell_value(row, WHY_AT)));
    printf("%s  %s: %s\n", when, cli_cell_string(row, WHY_STATE),
           cli_cell_string(row, WHY_SUMMARY));
    bool job = why_is_of_job(row);
    print_event(row);
    print_each(job ? "by" : "seen", cli_cell_value(row, WHY_EVIDENCE));
    if (*cli_cell_string(row, WHY_POLICY))
        printf("    %-10s %s\n", "policy", cli_cell_string(row, WHY_POLICY));
    print_each("rejected", cli_cell_value(row, WHY_REJECTED));
    if (!job)
        print_each("job", cli_cell_value(row, WHY_JOB_IDS));
    if (*cli_cell_string(row, WHY_REPAIR))
        printf("    %-10s %s\n", "repair", cli_cell_string(row, WHY_REPAIR));
    if (*cli_cell_string(row, WHY_NEXT))
        printf("    %-10s %s\n", job ? "more" : "next look", cli_cell_string(row, WHY_NEXT));
}

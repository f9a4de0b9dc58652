/* `fettle metrics list`: the metrics that daemons show, by their table; docs/reference/metrics.md
 * is made of it. It asks nobody. */
#include "cli/cli.h"

#include "proto/metrics/metric_table.h"
#include "proto/monitor/collector_table.h"

#define USAGE "metrics list"

static char *labels_of(const struct metric *metric)
{
    g_autoptr(GPtrArray) labels = metric_labels(metric);
    g_ptr_array_add(labels, NULL);
    return g_strjoinv(",", (char **)labels->pdata);
}

/* As its samples are called. */
static char *name_of(const struct metric *metric)
{
    return g_strconcat(metric->name, metric->type == METRIC_COUNTER ? "_total" : "", NULL);
}

static void print_json(void)
{
    json_autoptr list = json_array();
    for (guint i = 0; i < metrics_count; i++) {
        const struct metric *metric = &metrics[i];
        g_autofree char *name = name_of(metric);
        g_autofree char *labels = labels_of(metric);
        json_array_append_new(list, json_make("{ss ss ss ss ss ss}", "name", name, "type",
                                              metric_type_name(metric->type), "unit", metric->unit,
                                              "labels", labels, "collector", metric->source, "help",
                                              metric->help));
    }
    cli_print_json(list);
}

static int metrics_list(struct cli *cli, int argc, char **argv, GError **error)
{
    json_autoptr rows = json_array();
    if (!cli_expect(argc, argv, 0, USAGE, error))
        return -1;
    if (cli->json) {
        print_json();
        return 0;
    }
    for (guint i = 0; i < metrics_count; i++) {
        g_autofree char *name = name_of(&metrics[i]);
        g_autofree char *labels = labels_of(&metrics[i]);
        json_array_append_new(rows,
                              json_make("[[is][is][is]]", 0, name, 0, labels, 0, metrics[i].help));
    }
    cli_print_rows(cli, NULL, (const char *const[]){"metric", "labels", "help", NULL}, rows);
    return 0;
}

const struct command metrics_commands[] = {
    {"metrics", "list", "",
     "The metrics that Fettle shows at /metrics, of nodes and of the cluster, with what each of "
     "them "
     "tells.",
     metrics_list},
    {0},
};

/* Runs every scenario folder (golden.h). The log is made of the state machines' lines. */
#include "golden.h"
#include "script.h"

static void log_line(const char *line, void *data)
{
    g_string_append_printf(data, "%s\n", line);
}

static char *run(const char *script, const json_t *cluster, GString *log)
{
    struct sim_options options = {
        .seed = (guint64)json_integer_value(json_object_get(cluster, "seed")),
        .nodes = (guint)json_integer_value(json_object_get(cluster, "nodes")),
        .max_delay_ms = (guint)json_integer_value(json_object_get(cluster, "delay_ms")),
        .cluster = json_object_get(cluster, "cluster"),
        .log = log_line,
        .log_data = log};
    struct sim *sim = sim_new(&options);
    char *failure = script_run(sim, script);
    sim_free(sim);
    return failure;
}

int main(int argc, char **argv)
{
    return golden_main(argc, argv, run);
}

/* See node_figures.h. */
#include "core/queue/metrics/node_figures.h"

#include "core/report/faults.h"
#include "core/report/reports.h"

struct node_figures {
    struct queue_context *context;
    GHashTable *by_node; /* UUID -> struct node_figure; NULL: nobody was asked yet */
    gint64 asked_ms;
    struct task_mutex turn;
    bool refreshing;
};

struct node_figures *node_figures_new(struct queue_context *context)
{
    struct node_figures *figures = g_new0(struct node_figures, 1);
    *figures = (struct node_figures){.context = context, .turn = TASK_MUTEX_INIT};
    return figures;
}

void node_figures_free(struct node_figures *figures)
{
    if (!figures)
        return;
    g_clear_pointer(&figures->by_node, g_hash_table_unref);
    g_free(figures);
}

static gint64 now_ms(const struct node_figures *figures)
{
    const struct env *env = figures->context->env;
    return env->ops->boot_ms(env);
}

gint64 node_figures_age_ms(const struct node_figures *figures)
{
    return now_ms(figures) - figures->asked_ms;
}

const struct node_figure *node_figures_of(const struct node_figures *figures, const char *node)
{
    return figures->by_node ? g_hash_table_lookup(figures->by_node, node) : NULL;
}

/* --- asking --- */

static const char *state_of(const struct reports *reports, const char *node)
{
    const struct node_report *report = reports_of(reports, node);
    switch (reports_state(reports, node)) {
    case REPORT_GIVEN:
        return report->faults->len > 0 ? "faulty" : "well";
    case REPORT_REFUSED:
        return "refused";
    case REPORT_UNREADABLE:
        return "unreadable";
    case REPORT_OFFLINE:
        return "offline";
    case REPORT_SILENT:
        break;
    }
    return "silent";
}

static struct node_figure *figure_of(const struct reports *reports, const char *node)
{
    struct node_figure *figure = g_new0(struct node_figure, 1);
    const struct node_report *report = reports_of(reports, node);
    figure->state = state_of(reports, node);
    if (report)
        *figure = (struct node_figure){figure->state, !faults_find(report, FAULT_MEMBER),
                                       report->memory_total, report->disk_total, report->cpus};
    return figure;
}

static bool ask(struct node_figures *figures)
{
    struct follow *follow = figures->context->follow;
    gint64 asked_ms = now_ms(figures);
    struct reports *reports = reports_ask(figures->context->env, follow, NULL);
    if (!reports)
        return false;
    g_autoptr(GPtrArray) nodes = config_list(follow_config(follow), "node");
    GHashTable *by_node = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint i = 0; i < nodes->len; i++) {
        const char *uuid = ((const struct node *)nodes->pdata[i])->uuid;
        g_hash_table_insert(by_node, g_strdup(uuid), figure_of(reports, uuid));
    }
    g_clear_pointer(&figures->by_node, g_hash_table_unref);
    figures->by_node = by_node;
    figures->asked_ms = asked_ms;
    reports_free(reports);
    return true;
}

static void refresh_task(void *data)
{
    struct node_figures *figures = data;
    ask(figures);
    figures->refreshing = false;
}

static bool is_stale(const struct node_figures *figures)
{
    return !figures->by_node || node_figures_age_ms(figures) > NODE_FIGURES_STALE_MS;
}

/* Who comes meanwhile waits for the same answers. */
static bool ask_in_turn(struct node_figures *figures)
{
    if (!task_mutex_lock(&figures->turn))
        return false;
    bool fine = !is_stale(figures) || ask(figures);
    task_mutex_unlock(&figures->turn);
    return fine;
}

bool node_figures_ask(struct node_figures *figures)
{
    if (is_stale(figures))
        return ask_in_turn(figures);
    if (!figures->refreshing && node_figures_age_ms(figures) > NODE_FIGURES_OLD_MS) {
        figures->refreshing = true;
        task_spawn(figures->context->env->tasks, refresh_task, figures);
    }
    return true;
}

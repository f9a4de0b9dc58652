/* Requests of the outside: Ganeti's paths and answers, and /metrics; see monitor.h. */
#include "core/monitor/monitor_private.h"

#include <string.h>

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"
#define REPORT "/1/report/"
#define ALL ((G_GUINT64_CONSTANT(1) << COLLECTOR_COUNT) - 1)

/* --- reports --- */

json_t *monitor_report(const struct monitor *monitor, enum collector_id id)
{
    const struct collector *about = &collectors[id];
    const struct collected *collected = &monitor->collected[id];
    gint64 at_us = collected->data ? collected->at_us : monitor->env->ops->wall_us(monitor->env);
    json_t *data =
        collected->data
            ? json_incref(collected->data)
            : json_make("{so}", "status",
                        monitor_status_json(MONITOR_FAILED, "it has told nothing yet; ask again"));
    return json_make("{ss ss si sI so si so}", "name", about->name, "version", about->version,
                     "format_version", (int)about->format, "timestamp", (json_int_t)at_us * 1000,
                     "category", *about->category ? json_string(about->category) : json_null(),
                     "kind", (int)about->kind, "data", data);
}

static json_t *list_collectors(const struct monitor *monitor)
{
    json_t *list = json_array();
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        if (monitor->collected[i].setting.active)
            json_array_append_new(list, json_make("[ssi]", collectors[i].name,
                                                  collector_category(&collectors[i]),
                                                  (int)collectors[i].kind));
    return list;
}

/* --- answers --- */

struct serving {
    struct monitor *monitor;
    guint64 which; /* collectors that the answer is made of */
    bool metrics;
    const struct collector *one; /* the only one; NULL: any number */
    char *accept;
    monitor_answer_fn done;
    void *data;
};

static void answer_text(const struct serving *serving, guint status, char *text)
{
    struct http_answer *answer = http_answer_new(status);
    if (status == 405)
        http_answer_add_header(answer, "Allow", "GET, HEAD");
    http_answer_set_body(answer, TEXT, text);
    serving->done(answer, serving->data);
}

static void answer_json(const struct serving *serving, const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    struct http_answer *answer = http_answer_new(200);
    http_answer_set_body(answer, JSON, g_strdup(text));
    free(text);
    serving->done(answer, serving->data);
}

static void answer_off(const struct serving *serving, const struct collector *collector)
{
    answer_text(serving, 404,
                g_strdup_printf("the data collector %s is switched off in this cluster; on again: "
                                "fettle cluster modify --data-collectors %s=yes",
                                collector->name, collector->name));
}

static void answer_metrics(const struct serving *serving)
{
    const char *type;
    size_t len;
    struct http_answer *answer = http_answer_new(200);
    char *text = monitor_metrics(serving->monitor, serving->accept, &type, &len);
    http_answer_set_body(answer, type, text);
    http_answer_add_header(answer, "Vary", "Accept");
    serving->done(answer, serving->data);
}

static void answer_reports(const struct serving *serving)
{
    json_autoptr list = json_array();
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        if (serving->which >> i & 1 && serving->monitor->collected[i].setting.active)
            json_array_append_new(list, monitor_report(serving->monitor, (enum collector_id)i));
    if (serving->one && json_array_size(list) == 0) /* since it was asked for */
        answer_off(serving, serving->one);
    else
        answer_json(serving, serving->one ? json_array_get(list, 0) : list);
}

static void serve_task(void *data)
{
    struct serving *serving = data;
    struct monitor *monitor = serving->monitor;
    bool alive = monitor_refresh(monitor, serving->which) && !monitor->ended;
    if (alive && serving->metrics)
        answer_metrics(serving);
    else if (alive)
        answer_reports(serving);
    monitor_release(monitor);
    g_free(serving->accept);
    g_free(serving);
}

static void begin(const struct serving *asked)
{
    struct serving *serving = g_memdup2(asked, sizeof *asked);
    monitor_hold(serving->monitor);
    task_spawn(serving->monitor->env->tasks, serve_task, serving);
}

/* --- paths --- */

/* The collector of "CATEGORY/NAME"; -1: there is none. */
static int collector_at(const char *rest)
{
    const char *slash = strchr(rest, '/');
    int id = slash ? collector_find(slash + 1) : -1;
    g_autofree char *category = slash ? g_strndup(rest, (gsize)(slash - rest)) : NULL;
    return id >= 0 && strcmp(category, collector_category(&collectors[id])) == 0 ? id : -1;
}

static void serve_report(struct serving *serving, const char *rest)
{
    int id = collector_at(rest);
    if (strcmp(rest, "all") == 0) {
        serving->which = ALL;
        begin(serving);
    } else if (id < 0) {
        answer_text(serving, 404, g_strdup("Resource not found"));
    } else if (!serving->monitor->collected[id].setting.active) {
        answer_off(serving, &collectors[id]);
    } else {
        serving->which = G_GUINT64_CONSTANT(1) << id;
        serving->one = &collectors[id];
        begin(serving);
    }
}

static void serve_path(struct serving *serving, const struct http_request *request)
{
    const char *path = request->path;
    size_t length = strlen(path);
    g_autofree char *plain = g_strndup(path, length > 1 ? length - (path[length - 1] == '/') : 1);
    json_autoptr json = NULL;
    if (strcmp(plain, "/") == 0)
        json = json_make("[i]", 1);
    else if (strcmp(plain, "/1") == 0)
        json = json_null();
    else if (strcmp(plain, "/1/list/collectors") == 0)
        json = list_collectors(serving->monitor);
    if (json) {
        answer_json(serving, json);
    } else if (g_str_has_prefix(plain, REPORT)) {
        serve_report(serving, plain + strlen(REPORT));
    } else if (strcmp(plain, "/metrics") == 0) {
        serving->which = monitor_metrics_need();
        serving->metrics = true;
        serving->accept = g_strdup(http_request_header(request, "accept"));
        begin(serving);
    } else
        answer_text(serving, 404, g_strdup("Resource not found"));
}

void monitor_serve(struct monitor *monitor, const struct http_request *request,
                   monitor_answer_fn done, void *data)
{
    struct serving serving = {.monitor = monitor, .done = done, .data = data};
    bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    if (request->refused)
        answer_text(&serving, request->refused, g_strdup(request->refused_why));
    else if (!reads)
        answer_text(&serving, 405, g_strdup("only GET and HEAD are answered here"));
    else
        serve_path(&serving, request);
}

/*
 * Fields of services (proto/fields.def): the daemons that a node is to run by the configuration,
 * and how the node says that they are. Of a node that says nothing the configuration has the last
 * that was known: version, and since when.
 */
#include "core/query/query_rows.h"

/* What runs where. */
static const struct duty {
    const char *name, *binary;
    bool candidates; /* only there */
    bool master;     /* does its work on the master alone, and stands by elsewhere */
    bool etcd;       /* only with that engine */
    bool api;        /* only where a front end of the API is on record */
    bool heard;      /* only where it has ever run: nobody needs it, and older nodes have none */
} duties[] = {
    {"apid", "fettle-apid", .api = true},
    {"luxid", "fettle-luxid", .candidates = true, .master = true},
    {"mond", "fettle-mond", .heard = true},
    {"noded", "fettle-noded"},
    {"rapid", "fettle-rapid", .candidates = true, .master = true, .heard = true},
    {"rconfd", "fettle-rconfd"},
    {"volumed", "fettle-volumed"},
    {"watcher", "fettle-watcher", .candidates = true, .master = true},
    {"wconfd", "fettle-wconfd", .candidates = true},
    {"etcd", "etcd", .candidates = true, .etcd = true},
};

struct query_service {
    const struct node *node;
    const struct duty *duty;
};

bool query_service_may_stop(const void *row)
{
    return ((const struct query_service *)row)->duty->heard;
}

const struct node *query_service_node(const void *row)
{
    return ((const struct query_service *)row)->node;
}

static bool is_master(const struct config *config, const struct node *node)
{
    const struct cluster *cluster = config_cluster(config);
    return cluster && g_str_equal(cluster->master_node, node->uuid);
}

static bool is_due(const struct duty *duty, const struct config *config, const struct node *node)
{
    const struct cluster *cluster = config_cluster(config);
    bool etcd = cluster && cluster->engine == ENGINE_KIND_ETCD;
    bool candidate = node->master_candidate || is_master(config, node);
    bool api = duty->api && config_get(config, "api_front_end", node->uuid, NULL);
    g_autofree char *key = config_service_key(node->uuid, duty->name);
    bool heard = duty->heard && config_get(config, "service", key, NULL);
    return (candidate || !duty->candidates) && (etcd || !duty->etcd) && (api || !duty->api) &&
           (heard || !duty->heard);
}

GPtrArray *query_service_rows(const struct config *config)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++)
        for (size_t k = 0; k < G_N_ELEMENTS(duties); k++) {
            const struct query_service service = {nodes->pdata[i], &duties[k]};
            if (is_due(service.duty, config, service.node))
                g_ptr_array_add(rows, g_memdup2(&service, sizeof service));
        }
    return rows;
}

void *query_service_row(const struct config *config, const char *key)
{
    const struct service *record = config_get(config, "service", key, NULL);
    const struct node *node = record ? config_get(config, "node", record->node, NULL) : NULL;
    for (size_t i = 0; node && i < G_N_ELEMENTS(duties); i++) {
        const struct query_service service = {node, &duties[i]};
        if (g_str_equal(duties[i].name, record->name) && is_due(service.duty, config, node))
            return g_memdup2(&service, sizeof service);
    }
    return NULL;
}

/* --- configured --- */

json_t *query_get_service_name(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_string(((const struct query_service *)row)->duty->name);
}

json_t *query_get_service_binary(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return json_string(((const struct query_service *)row)->duty->binary);
}

json_t *query_get_service_node(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_string(query_service_node(row)->name);
}

json_t *query_get_service_node_uuid(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return json_string(query_service_node(row)->uuid);
}

json_t *query_get_service_role(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct query_service *service = row;
    if (is_master(source->config, service->node))
        return json_string("master");
    if (!service->node->master_candidate)
        return json_string("regular");
    return json_string(service->duty->master ? "standby" : "candidate");
}

/* --- live --- */

/* What its node says; NULL: nothing, with the status, which is NORMAL if the service has not run
 * since the node's boot. */
static const struct service_report *report_of(const struct query_source *source, const void *row,
                                              enum query_status *ret_status)
{
    const struct query_service *service = row;
    const struct node_report *report = query_node_report(source, service->node->uuid, ret_status);
    if (!report)
        return NULL;
    for (guint i = 0; i < report->services->len; i++) {
        const struct service_report *line = report->services->pdata[i];
        if (g_str_equal(line->name, service->duty->name))
            return line;
    }
    /* A node daemon names itself at least; one of an older version nobody. */
    *ret_status = report->services->len > 0 ? QUERY_NORMAL : QUERY_NO_DATA;
    return NULL;
}

json_t *query_get_service_state(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    enum query_status status = QUERY_NORMAL;
    const struct service_report *line = report_of(source, row, &status);
    if (line && line->state != SERVICE_UNKNOWN)
        return json_string(line->state == SERVICE_RUNNING ? "up" : "down");
    if (!line && status == QUERY_NORMAL)
        return json_string("down");
    *ret_status = line ? QUERY_NO_DATA : status;
    return NULL;
}

json_t *query_get_service_process(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    enum query_status status = QUERY_NORMAL;
    const struct service_report *line = report_of(source, row, &status);
    if (line)
        return json_string(enum_word(&service_state_words, (int)line->state));
    if (status == QUERY_NORMAL)
        return json_string(enum_word(&service_state_words, SERVICE_STOPPED));
    *ret_status = status;
    return NULL;
}

/* The line of one that has run, else NULL and the status of the field. */
static const struct service_report *line_of(const struct query_source *source, const void *row,
                                            enum query_status *ret_status)
{
    enum query_status status = QUERY_NORMAL;
    const struct service_report *line = report_of(source, row, &status);
    *ret_status = status == QUERY_NORMAL ? QUERY_NO_DATA : status;
    return line;
}

static json_t *positive(guint64 number)
{
    return number == 0 ? NULL : json_integer((json_int_t)number);
}

static json_t *words(const char *text)
{
    return *text == '\0' ? NULL : json_string(text);
}

/* What is on record of one whose node says nothing; NULL: nothing is, or the node speaks. */
static const struct service *last_known(const struct query_source *source, const void *row)
{
    const struct query_service *service = row;
    enum query_status status;
    if (report_of(source, row, &status) || status == QUERY_NORMAL)
        return NULL;
    g_autofree char *key = config_service_key(service->node->uuid, service->duty->name);
    return config_get(source->config, "service", key, NULL);
}

json_t *query_get_service_known(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    enum query_status status = QUERY_NORMAL;
    if (report_of(source, row, &status) || status == QUERY_NORMAL)
        return json_string("now");
    if (last_known(source, row))
        return json_string("last known");
    *ret_status = status;
    return NULL;
}

json_t *query_get_service_since(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct service_report *line = line_of(source, row, ret_status);
    const struct service *known = last_known(source, row);
    if (known)
        return positive(known->since);
    return line ? positive(line->since) : NULL;
}

json_t *query_get_service_restarts(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct service_report *line = line_of(source, row, ret_status);
    return line ? json_integer((json_int_t)line->restarts) : NULL;
}

json_t *query_get_service_pid(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct service_report *line = line_of(source, row, ret_status);
    return line ? positive(line->pid) : NULL;
}

json_t *query_get_service_version(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct service_report *line = line_of(source, row, ret_status);
    const struct service *known = last_known(source, row);
    if (known)
        return words(known->version);
    return line ? words(line->version) : NULL;
}

json_t *query_get_service_why(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    enum query_status status = QUERY_NORMAL;
    const struct service_report *line = report_of(source, row, &status);
    if (line)
        return words(line->why);
    if (status == QUERY_NORMAL)
        return json_string("it has not run since the node's boot");
    *ret_status = status;
    return NULL;
}

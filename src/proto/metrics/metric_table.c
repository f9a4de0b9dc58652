/* See metric_table.h. */
#include "proto/metrics/metric_table.h"

#include <string.h>

#define LEVELS 4       /* lists within lists */
#define LABELS_MOST 8  /* of a sample */
#define LABEL_SPACE 32 /* for a label that is a number */

const struct metric metrics[] = {
#define METRIC(name, type, unit, labels, source, path, value, factor, help)                        \
    {name, METRIC_##type, unit, labels, source, path, value, factor, help},
#include "proto/metrics/metric.def"
#undef METRIC
};
const guint metrics_count = G_N_ELEMENTS(metrics);

const char *metric_type_name(enum metric_type type)
{
    static const char *const names[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    return names[type];
}

/* Where one level's labels begin; NULL: it has none. */
static const char *labels_of_level(const struct metric *metric, guint level)
{
    const char *labels = metric->labels;
    for (; labels && level > 0; level--)
        labels = (labels = strchr(labels, '/')) ? labels + 1 : NULL;
    return labels;
}

GPtrArray *metric_labels(const struct metric *metric)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) pairs = g_strsplit_set(metric->labels, ",/", -1);
    for (char **pair = pairs; *pair; pair++)
        if (**pair)
            g_ptr_array_add(names, g_strndup(*pair, strcspn(*pair, "=")));
    return names;
}

struct finding {
    const struct metric *metric;
    metric_sample_fn found;
    void *data;
    const char *labels[2 * LABELS_MOST + 3]; /* a bound, and the end */
    char names[LABELS_MOST][LABEL_SPACE], numbers[LABELS_MOST][LABEL_SPACE];
    guint count;
};

static const char *label_text(const json_t *value, char number[LABEL_SPACE])
{
    if (json_is_integer(value)) {
        g_snprintf(number, LABEL_SPACE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return number;
    }
    return json_is_string(value) ? json_string_value(value) : "";
}

/* Adds those that an object of that level has. */
static void take_labels(struct finding *finding, guint level, const json_t *object)
{
    const char *labels = labels_of_level(finding->metric, level);
    size_t length = labels ? strcspn(labels, "/") : 0;
    for (size_t at = 0; at < length;) {
        size_t end = at + strcspn(labels + at, ",/"), equals = at + strcspn(labels + at, "=");
        char member[LABEL_SPACE];
        guint n = finding->count;
        g_assert(n < LABELS_MOST && equals < end && end - equals <= LABEL_SPACE);
        g_strlcpy(finding->names[n], labels + at, MIN(equals - at + 1, LABEL_SPACE));
        g_strlcpy(member, labels + equals + 1, end - equals);
        finding->labels[2 * n] = finding->names[n];
        finding->labels[2 * n + 1] =
            label_text(json_object_get(object, member), finding->numbers[n]);
        finding->count++;
        at = end + 1;
    }
}

static bool value_of(const struct metric *metric, const json_t *object, double *ret_value)
{
    const char *equals = strchr(metric->value, '=');
    g_autofree char *name =
        equals ? g_strndup(metric->value, (gsize)(equals - metric->value)) : NULL;
    const json_t *value = json_object_get(object, name ? name : metric->value);
    if (!value || json_is_null(value))
        return false;
    if (equals)
        *ret_value = g_strcmp0(json_string_value(value), equals + 1) == 0;
    else if (json_is_boolean(value))
        *ret_value = json_is_true(value);
    else if (json_is_number(value))
        *ret_value = json_number_value(value) * metric->factor;
    else
        return false;
    return true;
}

static void tell(struct finding *finding, const char *suffix, double value)
{
    finding->found(finding->metric, suffix, finding->labels, value, finding->data);
}

/* As OpenMetrics has them: a sample for each bucket, then how many there are, and their sum. */
static void histogram(struct finding *finding, const json_t *value)
{
    const json_t *buckets = json_object_get(value, "buckets");
    const char **end = finding->labels + 2 * finding->count;
    double all = 0;
    size_t i;
    const json_t *bucket;
    json_array_foreach(buckets, i, bucket) {
        const char *bound = json_string_value(json_array_get(bucket, 0));
        all = json_number_value(json_array_get(bucket, 1));
        end[0] = "le";
        end[1] = bound ? bound : "";
        end[2] = NULL;
        tell(finding, "_bucket", all);
    }
    end[0] = NULL;
    if (!json_array_size(buckets))
        return;
    tell(finding, "_count", all);
    tell(finding, "_sum",
         json_number_value(json_object_get(value, "sum")) * finding->metric->factor);
}

static void sample(struct finding *finding, const json_t *object)
{
    double value = 0;
    finding->labels[2 * finding->count] = NULL;
    if (finding->metric->type == METRIC_HISTOGRAM)
        histogram(finding, json_object_get(object, finding->metric->value));
    else if (value_of(finding->metric, object, &value))
        tell(finding, finding->metric->type == METRIC_COUNTER ? "_total" : "", value);
}

/* `path` NULL: what is here is a sample. */
static void go(struct finding *finding, const json_t *here, const char *path, guint level);

static void go_through(struct finding *finding, const json_t *list, const char *rest, guint level)
{
    guint labels = finding->count;
    size_t i;
    const json_t *object;
    json_array_foreach(list, i, object) {
        finding->count = labels;
        take_labels(finding, level, object);
        go(finding, object, rest, level + 1);
    }
    finding->count = labels;
}

static void go(struct finding *finding, const json_t *here, const char *path, guint level)
{
    if (!path) {
        sample(finding, here);
        return;
    }
    const char *slash = strchr(path, '/');
    g_autofree char *name = slash ? g_strndup(path, (gsize)(slash - path)) : g_strdup(path);
    const json_t *list = strcmp(name, "*") == 0 ? here : json_object_get(here, name);
    g_assert(level < LEVELS);
    go_through(finding, list, slash ? slash + 1 : NULL, level);
}

void metric_find(const struct metric *metric, const json_t *document, metric_sample_fn found,
                 void *data)
{
    struct finding finding = {.metric = metric, .found = found, .data = data};
    go(&finding, document, *metric->path ? metric->path : NULL, 0);
}

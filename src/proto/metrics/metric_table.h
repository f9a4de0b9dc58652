/*
 * The metrics that daemons show, as the table has them (metric.def), and how those that are taken
 * out of a document are found in it.
 */
#pragma once

#include "base/json.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* "counter" */
const char *metric_type_name(enum metric_type type);

struct metric {
    const char *name; /* of a counter without the "_total" of its samples */
    enum metric_type type;
    const char *unit; /* "" if it has none; a name ends with it */
    const char *labels;
    const char *source; /* name of a collector, "mond" or "cluster" */
    const char *path, *value;
    double factor;
    const char *help;
};

extern const struct metric metrics[];
extern const guint metrics_count;

/* Labels of a metric, one after the other: "instance", "uuid", "drive". Array of char *. */
GPtrArray *metric_labels(const struct metric *metric);

/* Called for each sample; arguments as metric_text_sample() takes them. */
typedef void (*metric_sample_fn)(const struct metric *metric, const char *suffix,
                                 const char *const *labels, double value, void *data);
/* Finds the samples of a metric in the data of its source. What is not there has none. */
void metric_find(const struct metric *metric, const json_t *document, metric_sample_fn found,
                 void *data);

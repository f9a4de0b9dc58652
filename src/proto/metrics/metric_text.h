/*
 * Metrics as the text that Prometheus reads: its own form (0.0.4), or OpenMetrics 1.0, as the
 * client asks for it. Of a metric all samples come together, which the caller sees to: one
 * metric_text_begin(), then its samples. Nothing here knows what is measured; the names are rows of
 * metric.def.
 */
#pragma once

#include "proto/metrics/metric_table.h"

enum metric_form { METRIC_PROMETHEUS, METRIC_OPENMETRICS };

/* By the header Accept of a request; "": Prometheus. */
enum metric_form metric_form_of(const char *accept);
/* "text/plain; version=0.0.4; charset=utf-8" */
const char *metric_form_type(enum metric_form form);

struct metric_text;
struct metric_text *metric_text_new(enum metric_form form);
/* The samples of another metric follow. */
void metric_text_begin(struct metric_text *text, const struct metric *metric);
/* `suffix`: what its name has behind the metric's, such as "_total". `labels`: names and values by
 * turns, NULL at the end; values are any text in UTF-8. */
void metric_text_sample(struct metric_text *text, const char *suffix, const char *const *labels,
                        double value);
/* A metric with all its samples in the document of its source; nothing, if it has none there. */
void metric_text_add(struct metric_text *text, const struct metric *metric, const json_t *document);
/* Ends it; free with g_free(). */
char *metric_text_free(struct metric_text *text, size_t *ret_len);

struct metric_document {
    const char *source;
    const json_t *document;
};
/* A whole text: all metrics of sources in their documents, of which the last has no source, in the
 * form that the header Accept asks for; free with g_free(). */
char *metrics_of_samples(const struct metric_document *documents, const char *accept,
                         const char **ret_type, size_t *ret_len);

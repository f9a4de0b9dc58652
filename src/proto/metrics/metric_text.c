/* See metric_text.h. */
#include "proto/metrics/metric_text.h"

#include <math.h>
#include <string.h>

#include "proto/http/accept.h"

struct metric_text {
    enum metric_form form;
    GString *out;
    const struct metric *metric;
};

#define OPENMETRICS "application/openmetrics-text"

enum metric_form metric_form_of(const char *accept)
{
    double openmetrics = accept_share(accept, OPENMETRICS);
    double plain = MAX(accept_share(accept, "text/plain"), accept_share(accept, "*/*"));
    return openmetrics > 0 && openmetrics >= plain ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
}

const char *metric_form_type(enum metric_form form)
{
    return form == METRIC_OPENMETRICS ? OPENMETRICS "; version=1.0.0; charset=utf-8"
                                      : "text/plain; version=0.0.4; charset=utf-8";
}

struct metric_text *metric_text_new(enum metric_form form)
{
    struct metric_text *text = g_new0(struct metric_text, 1);
    text->form = form;
    text->out = g_string_new(NULL);
    return text;
}

/* Of help, and between quotes; what stands for itself in either is left as it is. */
static void append_escaped(GString *out, const char *text, bool quoted)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\')
            g_string_append(out, "\\\\");
        else if (*c == '\n')
            g_string_append(out, "\\n");
        else if (*c == '"' && quoted)
            g_string_append(out, "\\\"");
        else
            g_string_append_c(out, *c);
    }
}

static bool is_counter(const struct metric *metric)
{
    return metric->type == METRIC_COUNTER;
}

static void append_about(struct metric_text *text, const char *word, const char *what)
{
    bool as_sample = is_counter(text->metric) && text->form == METRIC_PROMETHEUS;
    g_string_append_printf(text->out, "# %s %s%s ", word, text->metric->name,
                           as_sample ? "_total" : "");
    append_escaped(text->out, what, text->form == METRIC_OPENMETRICS);
    g_string_append_c(text->out, '\n');
}

void metric_text_begin(struct metric_text *text, const struct metric *metric)
{
    text->metric = metric;
    append_about(text, "HELP", metric->help);
    append_about(text, "TYPE", metric_type_name(metric->type));
    if (*metric->unit && text->form == METRIC_OPENMETRICS)
        append_about(text, "UNIT", metric->unit);
}

/* Whole numbers to the last digit, others to the fifteenth. */
static void append_number(GString *out, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    if (isnan(value))
        g_string_append(out, "NaN");
    else if (isinf(value))
        g_string_append(out, value > 0 ? "+Inf" : "-Inf");
    else if (fabs(value) < 1e18 && value == (double)(gint64)value)
        g_string_append_printf(out, "%.0f", value);
    else
        g_string_append(out, g_ascii_formatd(buffer, sizeof buffer, "%.15g", value));
}

void metric_text_sample(struct metric_text *text, const char *suffix, const char *const *labels,
                        double value)
{
    g_string_append_printf(text->out, "%s%s", text->metric->name, suffix);
    for (guint i = 0; labels[i] && labels[i + 1]; i += 2) {
        g_string_append_printf(text->out, "%c%s=\"", i ? ',' : '{', labels[i]);
        append_escaped(text->out, labels[i + 1], true);
        g_string_append_c(text->out, '"');
    }
    g_string_append(text->out, labels[0] ? "} " : " ");
    append_number(text->out, value);
    g_string_append_c(text->out, '\n');
}

struct adding {
    struct metric_text *text;
    bool begun;
};

static void add_sample(const struct metric *metric, const char *suffix, const char *const *labels,
                       double value, void *data)
{
    struct adding *adding = data;
    if (!adding->begun)
        metric_text_begin(adding->text, metric);
    adding->begun = true;
    metric_text_sample(adding->text, suffix, labels, value);
}

void metric_text_add(struct metric_text *text, const struct metric *metric, const json_t *document)
{
    struct adding adding = {text, false};
    metric_find(metric, document, add_sample, &adding);
}

char *metric_text_free(struct metric_text *text, size_t *ret_len)
{
    if (text->form == METRIC_OPENMETRICS)
        g_string_append(text->out, "# EOF\n");
    *ret_len = text->out->len;
    char *result = g_string_free(text->out, FALSE);
    g_free(text);
    return result;
}

char *metrics_of_samples(const struct metric_document *documents, const char *accept,
                         const char **ret_type, size_t *ret_len)
{
    enum metric_form form = metric_form_of(accept);
    struct metric_text *text = metric_text_new(form);
    for (guint i = 0; i < metrics_count; i++)
        for (const struct metric_document *one = documents; one->source; one++)
            if (strcmp(metrics[i].source, one->source) == 0)
                metric_text_add(text, &metrics[i], one->document);
    *ret_type = metric_form_type(form);
    return metric_text_free(text, ret_len);
}

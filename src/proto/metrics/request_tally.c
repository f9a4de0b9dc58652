/* See request_tally.h. */
#include "proto/metrics/request_tally.h"

#include "proto/metrics/counts.h"
#include "proto/metrics/durations.h"

#include <string.h>

/* From what is answered out of memory to what waits for a master. */
static const struct durations_bound bounds[] = {
    {"0.001", 1000},  {"0.01", 10000},    {"0.1", 100000},
    {"1.0", 1000000}, {"10.0", 10000000}, {"+Inf", G_MAXUINT64},
};

static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};

struct request_tally {
    struct counts *requests;
    GTree *seconds; /* service -> struct durations */
};

static gint compare_words(gconstpointer left, gconstpointer right, gpointer unused)
{
    return strcmp(left, right);
}

struct request_tally *request_tally_new(const char *const *services)
{
    struct request_tally *tally = g_new(struct request_tally, 1);
    *tally = (struct request_tally){counts_new(),
                                    g_tree_new_full(compare_words, NULL, g_free, durations_free)};
    for (; *services; services++) {
        for (guint i = 1; i < G_N_ELEMENTS(classes); i++)
            counts_add(tally->requests, *services, classes[i], 0);
        g_tree_insert(tally->seconds, g_strdup(*services), durations_new(bounds));
    }
    return tally;
}

void request_tally_free(struct request_tally *tally)
{
    if (!tally)
        return;
    counts_free(tally->requests);
    g_tree_destroy(tally->seconds);
    g_free(tally);
}

void request_tally_add(struct request_tally *tally, const char *service, guint status, guint64 us)
{
    g_assert(status >= 100 && status < 600);
    counts_add(tally->requests, service, classes[status / 100 - 1], 1);
    durations_add(g_tree_lookup(tally->seconds, service), us);
}

static gboolean tell_service(gpointer service, gpointer durations, gpointer list)
{
    json_array_append_new(
        list, json_make("{ss, so}", "service", service, "seconds", durations_tell(durations)));
    return FALSE;
}

json_t *request_tally_tell(const struct request_tally *tally)
{
    json_t *seconds = json_array();
    g_tree_foreach(tally->seconds, tell_service, seconds);
    return json_make("{so, so}", "requests", counts_tell(tally->requests, "service", "status"),
                     "seconds", seconds);
}

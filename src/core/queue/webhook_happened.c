/*
 * What has happened, in the order of the serials of the configuration: each job's last change is
 * its end, and a decision's is what it is now. So there is no clock in it, and nothing that has to
 * be remembered but a place in that order. See webhook_calls.h.
 */
#include <string.h>

#include "core/job/job_state.h"
#include "core/queue/webhook_calls.h"
#include "core/repair/repair_case.h"
#include "proto/webhook/webhook.h"

#define MOST_OPS 32 /* of a job that are named */

struct happened {
    guint64 serial;
    char *after;
    const char *word; /* of webhook_words[] */
    const struct job *job;
    const struct decision *decision; /* one of the two */
};

static void happened_free(void *data)
{
    struct happened *happened = data;
    g_free(happened->after);
    g_free(happened);
}

/* --- words --- */

/* NULL: it has not ended. */
static const char *word_of_job(const struct job *job)
{
    static const char *const words[] = {"job.success", "job.error", "job.canceled"};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_str_equal(words[i] + strlen("job."), job->status))
            return words[i];
    return NULL;
}

static const char *word_of_decision(const struct decision *decision)
{
    bool event = decision->event != EVENT_NONE;
    const char *last =
        event ? event_kind_words.words[decision->event] : verdict_words.words[decision->verdict];
    const char *first = event                                          ? "event"
                        : g_str_equal(decision->author, REPAIR_AUTHOR) ? "repair"
                                                                       : "decision";
    g_autofree char *word = g_strconcat(first, ".", last, NULL);
    for (const char *const *known = webhook_words; *known; known++)
        if (g_str_equal(*known, word))
            return *known;
    return NULL;
}

/* --- what there is --- */

struct place {
    guint64 serial;
    const char *after;
};

static bool is_later(const struct place *place, guint64 serial, const char *after)
{
    return serial > place->serial || (serial == place->serial && strcmp(after, place->after) > 0);
}

static const char *word_of(const char *kind, const void *object)
{
    return g_str_equal(kind, "job")        ? word_of_job(object)
           : g_str_equal(kind, "decision") ? word_of_decision(object)
                                           : NULL;
}

bool webhook_happens(const struct config *config, const char *kind, const char *key)
{
    const void *object = config_get(config, kind, key, NULL);
    return object && word_of(kind, object);
}

struct search {
    const struct place *place;
    const GPtrArray *patterns;
    GPtrArray *all;
};

/* Most of all there is was told long ago, so that is asked first. */
static void search_visit(const char *kind, const char *key, guint64 serial, const void *value,
                         void *data)
{
    const struct search *search = data;
    if (serial < search->place->serial)
        return;
    const char *word = word_of(kind, value);
    if (!word || !webhook_wants(search->patterns, word))
        return;
    g_autofree char *after = g_strdup_printf("%s/%s", kind, key);
    if (!is_later(search->place, serial, after))
        return;
    struct happened *happened = g_new0(struct happened, 1);
    happened->serial = serial;
    happened->after = g_steal_pointer(&after);
    happened->word = word;
    happened->job = g_str_equal(kind, "job") ? value : NULL;
    happened->decision = happened->job ? NULL : value;
    g_ptr_array_add(search->all, happened);
}

static gint by_place(const void *first, const void *second)
{
    const struct happened *one = *(struct happened *const *)first;
    const struct happened *other = *(struct happened *const *)second;
    return one->serial < other->serial   ? -1
           : one->serial > other->serial ? 1
                                         : strcmp(one->after, other->after);
}

/* --- as it is told --- */

/* The first one that did not go well; "": none says. */
static const char *error_of(const struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        if (!g_str_equal(op->status, "error"))
            continue;
        const json_t *said = json_array_get(json_array_get(op->result, 1), 0);
        const char *text = json_string_value(json_is_string(op->result) ? op->result : said);
        return text ? text : "";
    }
    return "";
}

static json_t *job_data(const struct job *job)
{
    json_t *ops = json_array();
    for (guint i = 0; i < job->ops->len && i < MOST_OPS; i++)
        json_array_append_new(ops, query_op_summary(job->ops->pdata[i]));
    return json_make("{sI ss so sI ss ss sI sI sI}", "id", (json_int_t)job->id, "status",
                     job->status, "summary", ops, "opcodes", (json_int_t)job->ops->len, "error",
                     error_of(job), "user", job->user, "received_us", (json_int_t)job->received_us,
                     "start_us", (json_int_t)job->start_us, "end_us", (json_int_t)job->end_us);
}

/* A job ends once; a decision may become another, which is an event of its own. */
static json_t *told(const struct happened *happened)
{
    const struct decision *decision = happened->decision;
    g_autofree char *id =
        decision ? g_strdup_printf("%s/%" G_GUINT64_FORMAT, happened->after, happened->serial)
                 : g_strdup(happened->after);
    g_autofree char *subject =
        decision
            ? g_strdup_printf("%s/%s", decision->subject_kind,
                              *decision->subject_name ? decision->subject_name : decision->subject)
            : g_strdup(happened->after);
    return json_make("{sI ss ss ss ss sI so}", "serial", (json_int_t)happened->serial, "after",
                     happened->after, "type", happened->word, "id", id, "subject", subject,
                     "time_us", (json_int_t)(decision ? decision->at_us : happened->job->end_us),
                     "data", decision ? decision_to_json(decision) : job_data(happened->job));
}

json_t *webhook_happened(const struct config *config, guint64 serial, const char *after,
                         const GPtrArray *patterns, guint most, bool *ret_more)
{
    const struct place place = {serial, after};
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(happened_free);
    json_t *list = json_array();
    config_each(config, search_visit, &(struct search){&place, patterns, all});
    g_ptr_array_sort(all, by_place);
    for (guint i = 0; i < all->len && i < most; i++)
        json_array_append_new(list, told(all->pdata[i]));
    *ret_more = all->len > most;
    return list;
}

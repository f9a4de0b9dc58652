/* What luxid tells of webhooks, and keeps: who may ask, what has happened in which order, marks,
 * the alert of one that fails. core/queue/webhook_calls.c, webhook_happened.c. */
#include "unit/core/world/query_world.h"

#include <string.h>

#define PAGER "99999999-0000-4000-8000-000000000001"
#define GONE "99999999-0000-4000-8000-000000000002"

static void put_pager(struct queue_world *w, json_int_t round)
{
    store_put(w->store, "webhook", PAGER,
              json_make("{ss ss ss ss s[s] sI}", "uuid", PAGER, "name", "pager", "url",
                        "https://a.example/x", "secret", "hidden", "events", "job.*", "round",
                        round));
    fake_settle(w->world);
}

static json_t *call(struct queue_world *w, const char *method, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = queue_call(w, method, args, &error);
    g_assert_no_error(error);
    return answer;
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* --- who may ask --- */

static void test_secrets(struct queue_world *w)
{
    put_pager(w, 0);
    json_autoptr list = call(w, "QueryWebhooks", json_array());
    g_autofree char *text = json_to_text(list);
    g_assert_cmpuint(json_array_size(list), ==, 1);
    g_assert_null(strstr(text, "hidden"));
    g_assert_true(json_is_null(json_object_get(json_array_get(list, 0), "mark")));
    queue_refuse(w, "TakeWebhooks", json_array(), FETTLE_ERROR_PERMISSION,
                 "TakeWebhooks: is the REST daemon's to ask");
    queue_refuse(w, "KeepWebhookMarks", json_make("[[]]"), FETTLE_ERROR_PERMISSION,
                 "KeepWebhookMarks: is the REST daemon's to ask");
    fake_set_rest(w->world, true);
    json_autoptr taken = call(w, "TakeWebhooks", json_array());
    const json_t *pager = json_array_get(json_object_get(taken, "webhooks"), 0);
    g_assert_cmpstr(text_of(pager, "secret"), ==, "hidden");
    g_assert_cmpuint(json_array_size(json_object_get(taken, "refused")), ==, 3); /* of the nodes */
    g_assert_cmpstr(text_of(taken, "cluster"), ==, CLUSTER);
    g_assert_cmpint(number_of(taken, "serial"), >, 0);
}

/* --- what has happened --- */

static json_t *happened(struct queue_world *w, json_int_t serial, const char *after,
                        const char *pattern)
{
    json_t *patterns = pattern ? json_make("[s]", pattern) : json_array();
    return call(w, "QueryHappened", json_make("[I s o]", serial, after, patterns));
}

static char *types_of(const json_t *answer)
{
    GString *text = g_string_new(NULL);
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(answer, "events"), i, event)
        g_string_append_printf(text, "%s%s", i ? " " : "", text_of(event, "type"));
    return g_string_free(text, FALSE);
}

/* The end of a job is what happened last to it, whenever that one was submitted. */
static void test_happened(struct queue_world *w)
{
    guint64 first = queue_submit_running(w), second = queue_submit(w, NULL);
    queue_job_runs(w, second);
    query_put_decision(w, 1, 5, "act", "none"); /* with a clock that is far behind */
    fake_settle(w->world);
    queue_job_dies(w, first);
    query_put_decision(w, 2, 3, "leave", "alert");
    fake_settle(w->world);
    json_autoptr all = happened(w, 0, "", NULL);
    g_autofree char *types = types_of(all);
    g_assert_true(g_str_has_suffix(types, "event.alert"));
    g_assert_nonnull(strstr(types, "job.success"));
    g_assert_nonnull(strstr(types, "job.error"));
    g_assert_true(json_is_false(json_object_get(all, "more")));
    const json_t *events = json_object_get(all, "events");
    for (size_t i = 1; i < json_array_size(events); i++)
        g_assert_cmpint(number_of(json_array_get(events, i - 1), "serial"), <=,
                        number_of(json_array_get(events, i), "serial"));
    /* Behind each of them stand those that follow it, and none is missing. */
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        json_autoptr rest = happened(w, number_of(event, "serial"), text_of(event, "after"), NULL);
        g_assert_cmpuint(json_array_size(json_object_get(rest, "events")), ==,
                         json_array_size(events) - i - 1);
    }
    json_autoptr chosen = happened(w, 0, "", "job.error");
    const json_t *event = json_array_get(json_object_get(chosen, "events"), 0);
    g_assert_cmpuint(json_array_size(json_object_get(chosen, "events")), ==, 1);
    g_autofree char *id = g_strdup_printf("job/%" G_GUINT64_FORMAT, first);
    g_assert_cmpstr(text_of(event, "id"), ==, id);
    g_assert_cmpstr(text_of(event, "subject"), ==, id);
    g_assert_cmpstr(text_of(json_object_get(event, "data"), "status"), ==, "error");
    json_autoptr none = happened(w, number_of(all, "serial"), "~", NULL);
    g_assert_cmpuint(json_array_size(json_object_get(none, "events")), ==, 0);
}

/* One commit may have many. */
static void test_more(struct queue_world *w)
{
    for (guint i = 0; i < LIMIT_WEBHOOK_EVENTS + 6; i++)
        query_put_decision(w, 100 + i, 1, "wait", "none");
    fake_settle(w->world);
    json_autoptr first = happened(w, 0, "", "*");
    const json_t *events = json_object_get(first, "events");
    g_assert_cmpuint(json_array_size(events), ==, LIMIT_WEBHOOK_EVENTS);
    g_assert_true(json_is_true(json_object_get(first, "more")));
    const json_t *last = json_array_get(events, LIMIT_WEBHOOK_EVENTS - 1);
    json_autoptr rest = happened(w, number_of(last, "serial"), text_of(last, "after"), "*");
    g_assert_cmpuint(json_array_size(json_object_get(rest, "events")), >=, 6);
    g_assert_true(json_is_false(json_object_get(rest, "more")));
}

static json_int_t told_serial(struct queue_world *w)
{
    json_autoptr taken = call(w, "TakeWebhooks", json_array());
    return number_of(taken, "serial");
}

/* While what is told stands, nobody goes through all jobs and decisions. */
static void test_nothing_happens(struct queue_world *w)
{
    fake_set_rest(w->world, true);
    put_pager(w, 0);
    json_int_t before = told_serial(w);
    put_pager(w, 1);
    guint64 job = queue_submit_running(w);
    g_assert_cmpint(told_serial(w), ==, before);
    queue_job_dies(w, job);
    json_int_t ended = told_serial(w);
    g_assert_cmpint(ended, >, before);
    query_put_decision(w, 1, 5, "act", "none");
    fake_settle(w->world);
    g_assert_cmpint(told_serial(w), >, ended);
}

/* --- marks --- */

static void keep(struct queue_world *w, const char *uuid, json_int_t serial, json_int_t round,
                 bool failing)
{
    json_autoptr answer =
        call(w, "KeepWebhookMarks",
             json_make("[[{ss sI ss sI sI sb ss}]]", "uuid", uuid, "serial", serial, "after",
                       "job/1", "round", round, "waited_s", (json_int_t)(failing ? 86400 : 0),
                       "failing", failing, "said", "HTTP 500"));
    g_assert_true(json_is_null(answer));
}

static guint alerts(struct queue_world *w)
{
    g_autofree char *rows = query_ask(w, "event", "subject_kind subject_name level",
                                      "[\"=\",\"author\",\"rapid/webhook\"]");
    guint count = 0;
    for (const char *at = rows; (at = strstr(at, "webhook")); at++)
        count++;
    return count;
}

static void test_marks(struct queue_world *w)
{
    put_pager(w, 0);
    fake_set_rest(w->world, true);
    keep(w, PAGER, 17, 0, false);
    json_autoptr list = call(w, "QueryWebhooks", json_array());
    const json_t *mark = json_object_get(json_array_get(list, 0), "mark");
    g_assert_cmpint(number_of(mark, "serial"), ==, 17);
    g_assert_cmpstr(text_of(mark, "said"), ==, "HTTP 500");
    keep(w, GONE, 17, 0, true); /* its webhook was removed meanwhile */
    g_assert_cmpuint(alerts(w), ==, 0);
    keep(w, PAGER, 18, 0, true);
    keep(w, PAGER, 18, 0, true); /* it is told once */
    g_assert_cmpuint(alerts(w), ==, 1);
    put_pager(w, 1);
    keep(w, PAGER, 18, 0, true); /* of before a person said go on */
    keep(w, PAGER, 19, 1, false);
    g_assert_cmpuint(alerts(w), ==, 1);
    keep(w, PAGER, 19, 1, true);
    g_assert_cmpuint(alerts(w), ==, 2);
    queue_refuse(w, "KeepWebhookMarks", json_make("[{}]"), FETTLE_ERROR_WRONG_INPUT,
                 "marks: must be a list of at most 32 objects");
}

/* Who took the REST daemon over may say what he likes, and pushes no event off the record by it. */
static void test_one_alert_a_round(struct queue_world *w)
{
    put_pager(w, 1);
    fake_set_rest(w->world, true);
    for (guint i = 0; i < 10; i++) {
        keep(w, PAGER, 18 + i, 1, true);
        keep(w, PAGER, 18 + i, 1, false);
        keep(w, PAGER, 18 + i, 0, i % 2);
        keep(w, PAGER, 18 + i, 2, i % 2); /* which nobody has begun */
    }
    g_assert_cmpuint(alerts(w), ==, 1);
    json_autoptr list = call(w, "QueryWebhooks", json_array());
    const json_t *mark = json_object_get(json_array_get(list, 0), "mark");
    g_assert_cmpint(number_of(mark, "round"), ==, 1);
    g_assert_true(json_is_true(json_object_get(mark, "failing")));
    put_pager(w, 2);
    keep(w, PAGER, 30, 2, false);
    keep(w, PAGER, 30, 2, true);
    g_assert_cmpuint(alerts(w), ==, 2);
}

static void test_failing_is_told_by_verify(struct queue_world *w)
{
    query_script_nodes(w, query_answer_report);
    put_pager(w, 0);
    fake_set_rest(w->world, true);
    keep(w, PAGER, 18, 0, true);
    json_autoptr found = call(w, "Verify", json_make("[s]", ""));
    g_autofree char *text = json_to_text(found);
    g_assert_nonnull(strstr(text, "webhook pager has failed for a day (HTTP 500), and what happens "
                                  "is kept for it until: fettle webhook modify pager --resume"));
    put_pager(w, 1);
    json_autoptr after = call(w, "Verify", json_make("[s]", ""));
    g_autofree char *later = json_to_text(after);
    g_assert_null(strstr(later, "webhook"));
}

static void (*const tests[])(struct queue_world *w) = {test_secrets,
                                                       test_happened,
                                                       test_more,
                                                       test_nothing_happens,
                                                       test_marks,
                                                       test_one_alert_a_round,
                                                       test_failing_is_told_by_verify};

static void run(const void *data)
{
    struct queue_world *w = query_world_new();
    tests[GPOINTER_TO_UINT(data)](w);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"secrets", "happened",  "more",  "nothing",
                                        "marks",   "one-alert", "verify"};
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_autofree char *path = g_strconcat("/webhook_calls/", names[i], NULL);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), run);
    }
    return g_test_run();
}

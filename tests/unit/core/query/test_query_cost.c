/* What queries cost: many names, filters that are slow to match, and who is answered meanwhile. */
#include "unit/core/world/query_world.h"

#define MANY 200u

/* Instances besides those of the world, whose names keep a bad regular expression busy. */
static struct queue_world *crowded_world(void)
{
    struct queue_world *w = query_world_new();

    for (guint i = 0; i < MANY; i++) {
        g_autofree char *uuid = g_strdup_printf("dddddddd-0000-4000-8000-1%011u", i);
        g_autofree char *name = g_strdup_printf("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%u", i);

        store_put(w->store, "instance", uuid,
                  json_make("{ss, ss, ss, ss, si, s[], ss, si}", "uuid", uuid, "name", name,
                            "admin_state", "down", "disk_template", "diskless", "memory", 256,
                            "disks", "primary_node", MASTER, "generation", 1));
    }
    fake_settle(w->world);
    return w;
}

/* That no instance matches, and that looks at each of its terms for each of them. */
static json_t *wide_filter(const char *op, const char *value, guint terms)
{
    json_t *filter = json_make("[s]", "|");

    for (guint i = 0; i < terms; i++)
        json_array_append_new(filter, json_make("[s, s, s]", op, i % 2 ? "name" : "uuid", value));
    return filter;
}

static void ask(struct queue_world *w, const char *method, json_t *args, struct fake_reply *reply)
{
    *reply = (struct fake_reply){0};
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, method, args, reply);
    fake_settle(w->world);
}

/* In one turn: ten thousand names are ten thousand looks, in the order asked, with doubles. */
static void test_many_names(void)
{
    struct queue_world *w = query_world_new();
    struct fake_reply reply;
    json_t *names = json_array();

    for (guint i = 0; i < LIMIT_QUERY_NAMES; i++)
        json_array_append_new(names, json_string(i % 3 == 0   ? "web2"
                                                 : i % 3 == 1 ? WEB1
                                                              : "web10"));
    ask(w, "QueryInstances", json_make("[o, [s], b]", names, "name", 0), &reply);
    g_assert_true(reply.done);
    g_assert_no_error(reply.error);
    g_assert_cmpuint(json_array_size(reply.result), ==, LIMIT_QUERY_NAMES);
    for (guint i = 0; i < LIMIT_QUERY_NAMES; i++)
        g_assert_cmpstr(json_string_value(json_array_get(json_array_get(reply.result, i), 0)), ==,
                        i % 3 == 0   ? "web2"
                        : i % 3 == 1 ? "web1"
                                     : "web10");
    fake_reply_clear(&reply);
    queue_world_free(w);
}

/* The same with what nodes have to be asked for. */
static void test_names_live(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    query_script_nodes(w, query_answer_report);
    json_autoptr rows = queue_call(
        w, "QueryInstances",
        json_make("[[s, s, s], [s, s], b]", "web2", WEB1, "web2", "name", "oper_state", 0), &error);
    g_autofree char *text = json_to_text(rows);

    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, "[[\"web2\",false],[\"web1\",true],[\"web2\",false]]");
    queue_world_free(w);
}

/* A long "or" of names is one look for each instance. */
static void test_or_of_names(void)
{
    struct queue_world *w = crowded_world();
    struct fake_reply reply;
    json_t *filter = json_make("[s]", "|");

    for (guint i = 1; i < 4000; i++)
        json_array_append_new(filter,
                              json_make("[s, s, o]", "=", "name", json_sprintf("web%u", i)));
    ask(w, "Query", json_make("[s, [s], o]", "instance", "name", filter), &reply);
    g_assert_true(reply.done);
    g_assert_no_error(reply.error);
    g_assert_cmpuint(json_array_size(json_object_get(reply.result, "data")), ==, 3);
    fake_reply_clear(&reply);
    queue_world_free(w);
}

static void change_meanwhile(struct queue_world *w)
{
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *uuid = g_strdup_printf("dddddddd-0000-4000-8000-1%011u", i);

        store_put(w->store, "instance", uuid, NULL);
    }
    fake_settle(w->world);
}

/* What takes long lets others have their turn, and answers what was when it began. */
static void test_others_meanwhile(void)
{
    struct queue_world *w = crowded_world();
    struct fake_reply slow, quick;

    ask(w, "Query",
        json_make("[s, [s], [s, o]]", "instance", "name", "!", wide_filter("=", "no", 4000)),
        &slow);
    g_assert_false(slow.done);
    ask(w, "QueryInstances", json_make("[[s], [s], b]", "web1", "name", 0), &quick);
    g_assert_true(quick.done);
    g_assert_no_error(quick.error);
    change_meanwhile(w);
    g_assert_false(slow.done);
    for (guint i = 0; i < 60000 && !slow.done; i++)
        fake_advance(w->world, 1);
    g_assert_true(slow.done);
    g_assert_no_error(slow.error);
    g_assert_cmpuint(json_array_size(json_object_get(slow.result, "data")), ==, MANY + 3);
    fake_reply_clear(&slow);
    fake_reply_clear(&quick);
    queue_world_free(w);
}

/* Jobs are rows of their own kind. */
static void test_jobs_meanwhile(void)
{
    struct queue_world *w = query_world_new();
    struct fake_reply slow, quick;
    json_t *filter = json_make("[s]", "|");
    json_t *jobs = json_array();
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < 200; i++)
        json_array_append_new(jobs, json_make("[o]", queue_delay(NULL)));
    json_autoptr ids = queue_call(w, "SubmitManyJobs", json_make("[o]", jobs), &error);
    g_assert_no_error(error);
    for (guint i = 0; i < 4000; i++)
        json_array_append_new(filter, json_make("[s, s, i]", "<", "id", 0));
    ask(w, "Query", json_make("[s, [s], [s, o]]", "job", "id", "!", filter), &slow);
    g_assert_false(slow.done);
    ask(w, "QueryJobs", json_make("[[i], [s]]", 1, "id"), &quick);
    g_assert_true(quick.done);
    for (guint i = 0; i < 60000 && !slow.done; i++)
        fake_advance(w->world, 1);
    g_assert_true(slow.done);
    g_assert_no_error(slow.error);
    g_assert_cmpuint(json_array_size(json_object_get(slow.result, "data")), ==, 200);
    fake_reply_clear(&slow);
    fake_reply_clear(&quick);
    queue_world_free(w);
}

/* A query that would keep on for too long ends with an error that says so. */
static void test_budget(void)
{
    struct queue_world *w = crowded_world();
    struct fake_reply reply;

    ask(w, "Query",
        json_make("[s, [s], o]", "instance", "name",
                  wide_filter("=~", "^(a|aa)+[xy]$", LIMIT_FILTER_REGEXES)),
        &reply);
    for (guint i = 0; i < 60000 && !reply.done; i++)
        fake_advance(w->world, 1);
    g_assert_true(reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(reply.error->message, ==,
                    "Query: given up after 20000000 steps: ask with a simpler filter, for fewer "
                    "fields, or for fewer objects at once");
    fake_reply_clear(&reply);
    queue_world_free(w);
}

/* One after the other, and no more than so many. */
static void test_too_many(void)
{
    struct queue_world *w = crowded_world();
    struct fake_reply replies[LIMIT_LONG_QUERIES + 1];

    for (guint i = 0; i <= LIMIT_LONG_QUERIES; i++)
        ask(w, "Query", json_make("[s, [s], o]", "instance", "name", wide_filter("=", "no", 4000)),
            &replies[i]);
    g_assert_true(replies[LIMIT_LONG_QUERIES].done);
    g_assert_error(replies[LIMIT_LONG_QUERIES].error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_assert_cmpstr(replies[LIMIT_LONG_QUERIES].error->message, ==,
                    "8 queries that take long are under way already; try again later");
    for (guint i = 0; i < 60000 && !replies[LIMIT_LONG_QUERIES - 1].done; i++)
        fake_advance(w->world, 1);
    for (guint i = 0; i < LIMIT_LONG_QUERIES; i++) {
        g_assert_true(replies[i].done);
        g_assert_no_error(replies[i].error);
        fake_reply_clear(&replies[i]);
    }
    fake_reply_clear(&replies[LIMIT_LONG_QUERIES]);
    queue_world_free(w);
}

/* luxid ends with one under way. */
static void test_killed(void)
{
    struct queue_world *w = crowded_world();
    struct fake_reply reply;

    ask(w, "Query", json_make("[s, [s], o]", "instance", "name", wide_filter("=", "no", 4000)),
        &reply);
    g_assert_false(reply.done);
    queue_world_restart_luxid(w);
    query_check(w, "instance", "name", "[\"=\", \"name\", \"web1\"]", "0:\"web1\"\n");
    fake_reply_clear(&reply);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/query-cost/many-names", test_many_names);
    g_test_add_func("/query-cost/names-live#LUX-04", test_names_live);
    g_test_add_func("/query-cost/or-of-names", test_or_of_names);
    g_test_add_func("/query-cost/others-meanwhile", test_others_meanwhile);
    g_test_add_func("/query-cost/jobs-meanwhile", test_jobs_meanwhile);
    g_test_add_func("/query-cost/budget", test_budget);
    g_test_add_func("/query-cost/too-many", test_too_many);
    g_test_add_func("/query-cost/killed", test_killed);
    return g_test_run();
}

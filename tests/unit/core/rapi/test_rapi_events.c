/* Who follows events by REST: what they are told, once each; who comes again; another luxid, none,
 * and another master; who may not read any more; and how many may. */
#include <string.h>

#include "core/rapi/events/event_hub.h"
#include "core/rapi/events/event_window.h"
#include "unit/core/world/rapi_world.h"

#define EVENTS "/fettle/v1/events"
#define OTHER "99999999-0000-4000-8000-000000000001"

/* Lets what has happened come, and reads it. */
static char *told(struct queue_world *w, struct http_feed *feed)
{
    g_autoptr(GString) text = g_string_new(NULL);
    fake_advance(w->world, 200);
    g_assert_true(rapi_read(feed, text));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Names of events of a text, with a space behind each. */
static char *names_of(const char *text)
{
    g_autoptr(GString) names = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        if (g_str_has_prefix(*line, "event: "))
            g_string_append_printf(names, "%s ", *line + strlen("event: "));
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static void check(struct queue_world *w, struct http_feed *feed, const char *names)
{
    g_autofree char *text = told(w, feed), *found = names_of(text);
    g_assert_cmpstr(found, ==, names);
}

/* The last place of a text. */
static char *id_of(const char *text)
{
    const char *last = NULL;
    for (const char *at = strstr(text, "id: "); at; at = strstr(at + 1, "id: "))
        last = at + strlen("id: ");
    g_assert_nonnull(last);
    return g_strndup(last, strcspn(last, "\n"));
}

static struct http_feed *follow(const char *target)
{
    g_autoptr(GString) text = g_string_new(NULL);
    return rapi_follow(target, text);
}

static void leave(struct http_feed *feed)
{
    feed->free(feed);
}

static void count_wake(void *data)
{
    (*(guint *)data)++;
}

/* --- what is told --- */

static void test_told(struct queue_world *w)
{
    guint woken = 0;
    struct http_feed *feed = follow(EVENTS "?kinds=job,instance,event");
    feed->wake = count_wake;
    feed->data = &woken;
    check(w, feed, "");
    g_assert_cmpuint(woken, ==, 0);
    query_put_tag(w, WEB1, "a");
    g_autofree char *text = told(w, feed);
    g_assert_cmpuint(woken, ==, 1);
    g_assert_nonnull(strstr(text, "\nevent: instance.changed\ndata: {"));
    g_assert_nonnull(strstr(text, "\"admin_state\":\"up\",\"gone\":false,\"key\":\"" WEB1
                                  "\",\"kind\":\"instance\",\"name\":\"web1\",\"pnode\":"));
    query_put_decision(w, 1, 100, "act", "alert");
    query_put_decision(w, 2, 100, "act", "none");
    check(w, feed, "event.alert ");
    guint64 id = queue_submit(w, NULL);
    check(w, feed, "job.waiting ");
    queue_child_named(w, id);
    queue_job_ends(w, id);
    check(w, feed, "job.success ");
    leave(feed);
}

static void test_gone(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS "?kinds=instance,decision");
    query_put_decision(w, 3, 100, "wait", "none");
    store_put(w->store, "instance", WEB10, NULL);
    check(w, feed, "instance.gone decision.wait ");
    leave(feed);
}

/* Each as it is now, by one text and one call for all. */
static void test_coalesced(struct queue_world *w)
{
    struct http_feed *slow = follow(EVENTS "?kinds=instance");
    struct http_feed *other = follow(EVENTS "?kinds=instance");
    for (guint i = 0; i < 20; i++) {
        g_autofree char *tag = g_strdup_printf("t%u", i);
        query_put_tag(w, i % 2 ? WEB1 : WEB2, tag);
        check(w, other, "instance.changed ");
    }
    guint calls = rapi_calls();
    query_put_tag(w, WEB2, "last");
    check(w, slow, "instance.changed instance.changed ");
    g_assert_cmpuint(rapi_calls(), <=, calls + 2);
    bool over;
    query_put_tag(w, WEB1, "last");
    fake_advance(w->world, 200);
    GBytes *one = slow->next(slow, &over), *same;
    check(w, other, "instance.changed instance.changed ");
    query_put_tag(w, WEB1, "more");
    fake_advance(w->world, 200);
    g_bytes_unref(one);
    one = slow->next(slow, &over);
    same = other->next(other, &over);
    g_assert_true(one == same);
    g_bytes_unref(one);
    g_bytes_unref(same);
    leave(slow);
    leave(other);
}

static void test_alive(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    guint said = 0;
    for (guint i = 0; i < 60; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        fake_advance(w->world, 1000);
        g_assert_true(rapi_read(feed, text));
        said += text->len ? 1 : 0;
        if (text->len)
            g_assert_true(g_str_has_prefix(text->str, ":\nid: "));
    }
    g_assert_cmpuint(said, >=, 4); /* one at least each 15 s */
    g_assert_cmpuint(said, <=, 6);
    leave(feed);
}

/* --- filters --- */

static void test_filter(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS "?kinds=instance&filter=[\"=[]\",\"tags\",\"wanted\"]");
    struct http_feed *all = follow(EVENTS "?kinds=instance");
    query_put_tag(w, WEB1, "other");
    check(w, all, "instance.changed ");
    check(w, feed, "");
    query_put_tag(w, WEB1, "wanted");
    check(w, all, "instance.changed ");
    check(w, feed, "instance.changed ");
    store_put(w->store, "instance", WEB1, NULL); /* what is gone has no fields */
    check(w, all, "instance.gone ");
    check(w, feed, "");
    leave(feed);
    leave(all);
}

/* Who has it is told why he hears no more, and others hear all. */
static void test_dear_filter(struct queue_world *w)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct http_feed *all = follow(EVENTS "?kinds=instance");
    struct http_feed *dear =
        follow(EVENTS "?kinds=instance&filter=[\"=~\",\"name\",\"((.|.)*)*((.|.)*)*[!$]\"]");
    for (guint i = 0; i < 8; i++) {
        g_autofree char *tag = g_strdup_printf("t%u", i);
        query_put_tag(w, WEB1, tag);
        check(w, all, "instance.changed ");
    }
    g_assert_false(rapi_read(dear, text));
    g_autofree char *names = names_of(text->str);
    g_assert_cmpstr(names, ==, "end ");
    g_assert_nonnull(strstr(text->str, "{\"why\":\"filter: it costs too much for each change; "));
    leave(dear);
    leave(all);
}

static void test_refused(struct queue_world *w)
{
    rapi_refused(400,
                 "kinds: must be some of event, job, instance, node, group, network, service, "
                 "lock, brake, decision, volume, snapshot, backup, image, not \"jobs\"",
                 "GET", EVENTS "?kinds=job,jobs", NULL);
    rapi_refused(400, "kinds: is empty; without it events are told of", "GET",
                 EVENTS "?kinds=", NULL);
    rapi_refused(400, "kinds.instance: there is no field \"nmae\"", "GET",
                 EVENTS "?kinds=instance&filter=[\"=\",\"nmae\",\"web1\"]", NULL);
    rapi_refused(400,
                 "kinds.instance: the nodes are asked for \"oper_state\", so it changes untold; it "
                 "can be had by Query only",
                 "GET", EVENTS "?kinds=instance&filter=[\"?\",\"oper_state\"]", NULL);
    g_autofree char *place = rapi_say("GET", EVENTS "?filter=[\"=\",\"level\"]", NULL);
    g_assert_nonnull(strstr(place, "400 {"));
    g_assert_nonnull(strstr(place, "filter"));
    g_autofree char *json = rapi_say("GET", EVENTS "?filter=[\"=\",", NULL);
    g_assert_nonnull(strstr(json, "400 {"));
    g_assert_nonnull(strstr(json, "\"filter: "));
    g_autofree char *posted = rapi_say("POST", EVENTS, NULL);
    g_assert_true(g_str_has_prefix(posted, "405 "));
    g_assert_cmpstr(rapi_header("Allow"), ==, "GET, HEAD");
    g_autofree char *head = rapi_say("HEAD", EVENTS, NULL);
    g_assert_cmpstr(head, ==, "200 ");
}

/* --- coming again --- */

static void test_resumed(struct queue_world *w)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct http_feed *feed = rapi_follow(EVENTS "?kinds=instance,event", text);
    query_put_tag(w, WEB1, "a");
    query_put_decision(w, 1, 100, "act", "alert");
    g_autofree char *before = told(w, feed);
    g_autofree char *id = id_of(before);
    leave(feed);
    query_put_tag(w, WEB2, "a");
    query_put_decision(w, 2, 100, "act", "finding");
    query_put_tag(w, WEB1, "b");
    fake_advance(w->world, 60000); /* nobody follows: the window is gone */
    rapi_last_id(id);
    g_autoptr(GString) rest = g_string_new(NULL);
    feed = rapi_follow(EVENTS "?kinds=instance,event", rest);
    g_autofree char *more = told(w, feed);
    g_string_append(rest, more);
    g_autofree char *names = names_of(rest->str);
    g_assert_cmpstr(names, ==, "instance.changed instance.changed event.finding ");
    /* The place in the address, where no header can be set. */
    g_autofree char *address = g_strconcat(EVENTS "?kinds=event&last_event_id=", id, NULL);
    rapi_last_id(NULL);
    g_string_assign(text, "");
    struct http_feed *page = rapi_follow(address, text);
    g_autofree char *of_page = names_of(text->str);
    g_assert_cmpstr(of_page, ==, "event.finding ");
    leave(page);
    rapi_last_id(id);
    g_string_assign(text, "");
    /* Another one from there, while the first is there; with other kinds and a filter. */
    struct http_feed *second =
        rapi_follow(EVENTS "?kinds=instance,decision&filter=[\"!=\",\"uuid\",\"" WEB1 "\"]", text);
    g_string_assign(rest, "");
    rapi_read(second, rest);
    g_autofree char *at_once = names_of(text->str), *later = names_of(rest->str);
    g_autofree char *both = g_strconcat(at_once, later, NULL);
    g_assert_cmpstr(both, ==, "instance.changed decision.act ");
    leave(feed);
    leave(second);
}

/* Nothing that was answered to one is missed by the other, who wants something else. */
static void resume_both(struct queue_world *w, const char *one, const char *other,
                        const char *names_one, const char *names_other)
{
    g_autofree char *first = g_strconcat(EVENTS "?kinds=", one, NULL);
    g_autofree char *second = g_strconcat(EVENTS "?kinds=", other, NULL);
    g_autoptr(GPtrArray) feeds = g_ptr_array_new(), targets = g_ptr_array_new();
    g_ptr_array_add(targets, first);
    g_ptr_array_add(targets, second);
    rapi_follow_all(targets, 0, feeds);
    check(w, feeds->pdata[0], names_one);
    check(w, feeds->pdata[1], names_other);
    leave(feeds->pdata[0]);
    leave(feeds->pdata[1]);
    fake_advance(w->world, 60000); /* the window is gone */
}

static void test_resumed_both(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS "?kinds=instance");
    query_put_tag(w, WEB2, "a");
    g_autofree char *text = told(w, feed), *id = id_of(text);
    leave(feed);
    query_put_tag(w, WEB1, "b");
    guint64 job = queue_submit(w, NULL);
    queue_child_named(w, job);
    queue_job_ends(w, job);
    query_put_decision(w, 1, 100, "act", "alert");
    fake_advance(w->world, 60000);
    rapi_last_id(id);
    resume_both(w, "instance", "job", "instance.changed ", "job.success ");
    resume_both(w, "job", "instance", "job.success ", "instance.changed ");
    resume_both(w, "event", "decision", "event.alert ", "decision.act ");
    resume_both(w, "event", "event&filter=[\"=\",\"subject\",\"" WEB1 "\"]", "event.alert ",
                "event.alert ");
    resume_both(w, "instance", "instance&filter=[\"=[]\",\"tags\",\"b\"]", "instance.changed ",
                "instance.changed ");
    rapi_last_id(NULL);
}

/* More than the window holds: the newest of them are told all the same. */
static void test_too_many_on_record(struct queue_world *w)
{
    guint lines = 0;
    g_autoptr(GString) text = g_string_new(NULL);
    struct http_feed *feed = rapi_follow(EVENTS, text);
    g_autofree char *id = id_of(text->str);
    leave(feed);
    for (guint i = 0; i < LIMIT_EVENT_ROWS + 100; i++)
        query_put_decision(w, i, 100, "act", "alert");
    fake_advance(w->world, 60000);
    rapi_last_id(id);
    g_string_assign(text, "");
    feed = rapi_follow(EVENTS, text);
    rapi_last_id(NULL);
    g_assert_nonnull(strstr(text->str, "event: reset\n"));
    for (const char *at = text->str; (at = strstr(at, "event: event.alert\n")); at++)
        lines++;
    g_assert_cmpuint(lines, >, LIMIT_EVENT_ROWS / 2);
    leave(feed);
}

static void check_anew(struct queue_world *w, const char *id, const char *why)
{
    g_autoptr(GString) text = g_string_new(NULL);
    rapi_last_id(id);
    struct http_feed *feed = rapi_follow(EVENTS "?kinds=job", text);
    g_autofree char *names = names_of(text->str);
    g_assert_cmpstr(names, ==, "reset ");
    g_assert_nonnull(strstr(text->str, why));
    leave(feed);
}

static void test_anew(struct queue_world *w)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct http_feed *feed = rapi_follow(EVENTS "?kinds=job", text);
    g_autofree char *id = id_of(text->str);
    g_autofree char *ahead = g_strdup_printf("%.36s:999999:0", id);
    static const char *const none[] = {
        "x",        ":::",         "1:2:3",        "\xff\xfe",
        OTHER ":1", OTHER ":-1:0", OTHER ":1:2:3", OTHER ":1:99999999999999999999"};
    for (size_t i = 0; i < G_N_ELEMENTS(none); i++)
        if (g_utf8_validate(none[i], -1, NULL))
            check_anew(w, none[i], "its last id is none of this stream");
    check_anew(w, ahead, "its last id is none of this stream");
    check_anew(w, OTHER ":3:1", "its last id is of another stream");
    g_autofree char *long_one = g_strnfill(5000, '1');
    check_anew(w, long_one, "its last id is none of this stream");
    leave(feed);
}

/* --- luxid --- */

static void test_restart(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS "?kinds=instance,event");
    query_put_decision(w, 1, 100, "act", "alert");
    check(w, feed, "event.alert ");
    queue_world_kill_luxid(w);
    query_put_decision(w, 2, 100, "act", "finding");
    query_put_tag(w, WEB1, "untold");
    fake_advance(w->world, 5000);
    queue_world_start_luxid(w);
    fake_advance(w->world, 5000);
    check(w, feed, "reset event.finding ");
    query_put_tag(w, WEB1, "told");
    check(w, feed, "instance.changed ");
    leave(feed);
}

/* Nobody was there, and the place is of that luxid: what is on record is told all the same. */
static void test_restart_between(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    query_put_decision(w, 1, 100, "act", "alert");
    g_autofree char *text = told(w, feed), *id = id_of(text);
    leave(feed);
    queue_world_kill_luxid(w);
    query_put_decision(w, 2, 100, "act", "recovered");
    fake_advance(w->world, 30000);
    queue_world_start_luxid(w);
    query_put_decision(w, 3, 100, "act", "finding");
    fake_advance(w->world, 1000);
    rapi_last_id(id);
    g_autoptr(GString) rest = g_string_new(NULL);
    feed = rapi_follow(EVENTS, rest);
    g_autofree char *names = names_of(rest->str);
    g_assert_cmpstr(names, ==, "reset event.recovered event.finding ");
    check(w, feed, "");
    leave(feed);
}

static bool is_over(struct queue_world *w, struct http_feed *feed, guint ms)
{
    g_autoptr(GString) text = g_string_new(NULL);
    fake_advance(w->world, ms);
    return !rapi_read(feed, text);
}

/* Whoever has to be asked is another host: EventSource comes again. */
static void test_other_master(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    rapi_fail_times(0, 1000, FETTLE_ERROR_NOT_MASTER,
                    "node1 is not the master; the master is node2");
    g_assert_true(is_over(w, feed, 6000));
    rapi_refused(503, "node1 is not the master; the master is node2", "GET", EVENTS, NULL);
    leave(feed);
}

static void test_away(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    rapi_fail_on(0, 1000, FETTLE_ERROR_UNREACHABLE, "luxid does not answer");
    g_assert_false(is_over(w, feed, 30000));
    g_assert_true(is_over(w, feed, 60000));
    rapi_refused(502, "luxid does not answer", "GET", EVENTS, NULL);
    leave(feed);
}

/* luxid ends in order, and tells that to whoever waits; another one begins. */
static void test_ended(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    rapi_fail_times(0, 8, FETTLE_ERROR_KILLED, "luxid has ended");
    g_assert_false(is_over(w, feed, 10000));
    query_put_decision(w, 1, 100, "act", "alert");
    check(w, feed, "event.alert ");
    leave(feed);
}

/* --- who may --- */

static void test_removed(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    g_assert_false(is_over(w, feed, 60000));
    rapi_be("alice", RAPI_FAILED); /* nobody knows */
    g_assert_false(is_over(w, feed, 50000));
    rapi_be("alice", RAPI_UNKNOWN);
    g_assert_true(is_over(w, feed, 50000));
    leave(feed);
}

static void test_many(struct queue_world *w)
{
    g_autoptr(GPtrArray) feeds = g_ptr_array_new();
    for (guint i = 0; i < LIMIT_EVENT_READERS; i++)
        g_ptr_array_add(feeds, follow(EVENTS "?kinds=instance"));
    rapi_refused(503, "1000 clients follow events already; try again", "GET", EVENTS, NULL);
    g_assert_cmpstr(rapi_header("Retry-After"), ==, "1");
    guint calls = rapi_calls();
    query_put_tag(w, WEB1, "a");
    for (guint i = 0; i < feeds->len; i++)
        check(w, feeds->pdata[i], "instance.changed ");
    g_assert_cmpuint(rapi_calls(), <=, calls + 120); /* in 200 s, one for all each 2 s, and users */
    for (guint i = 0; i < feeds->len; i++)
        leave(feeds->pdata[i]);
    calls = rapi_calls();
    fake_advance(w->world, 60000);
    g_assert_cmpuint(rapi_calls(), <=, calls + 1); /* it ends with the last */
}

/* luxid has answered no look at users for a minute each, and who is quiet hears something. */
static void test_users_unknown(struct queue_world *w)
{
    struct http_feed *feed = follow(EVENTS);
    rapi_users_last(60000);
    rapi_be("alice", RAPI_FAILED);
    for (guint i = 0; i < 20; i++) {
        g_autofree char *text = NULL;
        fake_advance(w->world, 15000);
        text = told(w, feed);
        g_assert_cmpstr(text, !=, "");
    }
    rapi_users_last(0);
    rapi_be("alice", RAPI_READ);
    leave(feed);
}

/* Each wants something else, all at once: luxid has few calls of theirs, and all are answered. */
static void test_many_at_once(struct queue_world *w)
{
    static const guint count = 30;
    g_autoptr(GPtrArray) feeds = g_ptr_array_new(),
                         targets = g_ptr_array_new_with_free_func(g_free);
    struct http_feed *first = follow(EVENTS "?kinds=job");
    fake_advance(w->world, 100);
    for (guint i = 0; i < count; i++)
        g_ptr_array_add(targets,
                        g_strdup_printf(EVENTS "?kinds=job&filter=[\"!=\",\"id\",%u]", i + 99));
    g_assert_cmpuint(rapi_follow_all(targets, 1, feeds), <=, 10);
    queue_submit(w, NULL);
    for (guint i = 0; i < count; i++) {
        g_autofree char *text = told(w, feeds->pdata[i]);
        g_assert_nonnull(strstr(text, "event: job."));
        leave(feeds->pdata[i]);
    }
    leave(first);
}

static void test_many_filters(struct queue_world *w)
{
    g_autoptr(GPtrArray) feeds = g_ptr_array_new();
    for (guint i = 0; i < LIMIT_EVENT_FILTERS; i++) {
        g_autofree char *target = g_strdup_printf(EVENTS "?kinds=job&filter=[\"=\",\"id\",%u]", i);
        g_ptr_array_add(feeds, follow(target));
        g_ptr_array_add(feeds, follow(target));
    }
    rapi_refused(503,
                 "filter: 32 different ones are in use by who follows events; try again, or "
                 "without one",
                 "GET", EVENTS "?kinds=job&filter=[\"=\",\"id\",99]", NULL);
    for (guint i = 0; i < feeds->len; i++)
        leave(feeds->pdata[i]);
    leave(follow(EVENTS "?kinds=job&filter=[\"=\",\"id\",99]"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    rapi_case("/rapi-events/told", test_told);
    rapi_case("/rapi-events/gone", test_gone);
    rapi_case("/rapi-events/coalesced", test_coalesced);
    rapi_case("/rapi-events/alive", test_alive);
    rapi_case("/rapi-events/filter", test_filter);
    rapi_case("/rapi-events/dear-filter", test_dear_filter);
    rapi_case("/rapi-events/refused", test_refused);
    rapi_case("/rapi-events/resumed", test_resumed);
    rapi_case("/rapi-events/resumed-both", test_resumed_both);
    rapi_case("/rapi-events/too-many-on-record", test_too_many_on_record);
    rapi_case("/rapi-events/anew", test_anew);
    rapi_case("/rapi-events/restart", test_restart);
    rapi_case("/rapi-events/restart-between", test_restart_between);
    rapi_case("/rapi-events/another-master#RAP-01", test_other_master);
    rapi_case("/rapi-events/luxid-is-away#RAP-02", test_away);
    rapi_case("/rapi-events/luxid-ends#RAP-02", test_ended);
    rapi_case("/rapi-events/removed", test_removed);
    rapi_case("/rapi-events/many", test_many);
    rapi_case("/rapi-events/users-unknown", test_users_unknown);
    rapi_case("/rapi-events/many-at-once", test_many_at_once);
    rapi_case("/rapi-events/many-filters", test_many_filters);
    return g_test_run();
}

/* Deliveries to receivers outside: order, tries, marks, masters, addresses. core/rapi/webhooks.c,
 * webhook_event.c. */
#include <string.h>

#include "core/rapi/webhooks.h"
#include "helper/fake_env.h"

#define NODE1 "11111111-0000-4000-8000-000000000001"
#define PAGER "22222222-0000-4000-8000-000000000001"
#define OTHER "22222222-0000-4000-8000-000000000002"
#define SECONDS 1000u
#define SECRET "s3cret"

/* What reached a receiver. */
struct received {
    char *id, *type, *host, *address;
    gint64 at_ms;
    bool taken;
};

struct fixture {
    struct rapi_luxid luxid; /* first */
    struct webhook_out out;
    struct fake_world *world;
    struct env *env;
    struct webhooks *webhooks;
    json_t *webhooks_on_record; /* rows of TakeWebhooks */
    json_t *events, *allowed;
    json_int_t serial;
    guint keeps, happened;
    bool not_master, lies; /* luxid is none; marks are refused */
    GPtrArray *received;
    /* The receiver: what it answers, after how long, which of them fail. */
    guint status, answer_ms, fail_each;
    bool (*hangs)(const char *host);
    GPtrArray *addresses;
    const char *dead;               /* one of them, of which nobody hears */
    bool name_hangs, knows_nothing; /* nobody says what has happened */
};

static struct fixture *the; /* `out` knows no other way */

static void received_free(void *data)
{
    struct received *received = data;
    g_free(received->id);
    g_free(received->type);
    g_free(received->host);
    g_free(received->address);
    g_free(received);
}

/* --- luxid --- */

static json_t *take(void)
{
    return json_make("{sI sI ss s[s] sO sO}", "history", (json_int_t)1, "serial", the->serial,
                     "cluster", NODE1, "refused", "192.0.2.1", "allowed", the->allowed, "webhooks",
                     the->webhooks_on_record);
}

static bool is_wanted(const json_t *patterns, const char *word)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new();
    size_t i;
    json_t *pattern;
    json_array_foreach(patterns, i, pattern)
        g_ptr_array_add(texts, (char *)json_string_value(pattern));
    return webhook_wants(texts, word);
}

static json_t *happened(const json_t *args)
{
    json_int_t serial = json_integer_value(json_array_get(args, 0));
    const char *after = json_string_value(json_array_get(args, 1));
    json_t *list = json_array();
    bool more = false;
    size_t i;
    json_t *event;
    the->happened++;
    json_array_foreach(the->events, i, event) {
        json_int_t at = json_integer_value(json_object_get(event, "serial"));
        const char *key = json_string_value(json_object_get(event, "after"));
        if (at < serial || (at == serial && strcmp(key, after) <= 0) ||
            !is_wanted(json_array_get(args, 2), json_string_value(json_object_get(event, "type"))))
            continue;
        more = json_array_size(list) == LIMIT_WEBHOOK_EVENTS;
        if (more)
            break;
        json_array_append(list, event);
    }
    return json_make("{so sI sb}", "events", list, "serial", the->serial, "more", more);
}

static void keep(const json_t *marks)
{
    size_t i, k;
    json_t *mark, *row;
    the->keeps++;
    json_array_foreach(marks, i, mark)
        json_array_foreach(the->webhooks_on_record, k, row)
            if (json_equal(json_object_get(mark, "uuid"), json_object_get(row, "uuid")))
                json_object_set_new(row, "mark", json_deep_copy(mark));
}

static json_t *call(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                    const char *user, guint timeout_ms, GError **error)
{
    json_autoptr owned = args;
    g_assert_cmpint(face, ==, FACE_OWN);
    g_assert_null(user);
    if (!env_sleep(the->env, 3)) {
        fettle_set_error(error, KILLED, "the calling process ends");
        return NULL;
    }
    if (the->not_master || (the->lies && g_str_equal(method, "KeepWebhookMarks"))) {
        if (the->not_master)
            fettle_set_error(error, NOT_MASTER, "node1 is not the master");
        else
            fettle_set_error(error, STALE_EPOCH, "there is a later mastership");
        return NULL;
    }
    if (g_str_equal(method, "TakeWebhooks")) {
        json_autoptr answer = take();
        return json_deep_copy(answer);
    }
    if (g_str_equal(method, "QueryHappened") && the->knows_nothing) {
        fettle_set_error(error, INTERNAL, "no memory");
        return NULL;
    }
    if (g_str_equal(method, "QueryHappened"))
        return happened(owned);
    g_assert_cmpstr(method, ==, "KeepWebhookMarks");
    keep(json_array_get(owned, 0));
    return json_null();
}

/* --- receivers --- */

static GPtrArray *look_up(struct webhook_out *out, const char *host, guint timeout_ms,
                          GError **error)
{
    g_assert_cmpuint(timeout_ms, <=, WEBHOOK_ANSWER_MS);
    if (the->name_hangs) {
        env_sleep(the->env, timeout_ms);
        fettle_set_error(error, TIMEOUT, "%s: no answer within %u ms", host, timeout_ms);
        return NULL;
    }
    GPtrArray *addresses = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < the->addresses->len; i++)
        g_ptr_array_add(addresses, g_strdup(the->addresses->pdata[i]));
    return addresses;
}

static void check_signature(const struct webhook_post *wanted)
{
    gint64 seconds = g_ascii_strtoll(wanted->signature + 2, NULL, 10);
    g_autofree char *right = webhook_event_signature(SECRET, seconds, wanted->body);
    g_assert_cmpstr(wanted->signature, ==, right);
    gint64 now = the->env->ops->wall_us(the->env) / G_USEC_PER_SEC;
    g_assert_cmpint(seconds, <=, now);
    g_assert_cmpint(seconds, >=, now - WEBHOOK_ANSWER_MS / 1000);
}

static bool post(struct webhook_out *out, const struct webhook_post *wanted, guint timeout_ms,
                 struct webhook_said *ret_said)
{
    bool hangs = the->hangs && the->hangs(wanted->url->host);
    g_assert_cmpuint(timeout_ms, <=, WEBHOOK_ANSWER_MS);
    check_signature(wanted);
    if (g_strcmp0(wanted->address, the->dead) == 0) {
        env_sleep(the->env, wanted->connect_ms);
        *ret_said = (struct webhook_said){.text = g_strdup("no connection")};
        return false;
    }
    json_autoptr body = json_parse_limited(wanted->body, strlen(wanted->body), MIB(1), NULL);
    struct received *received = g_new0(struct received, 1);
    received->id = g_strdup(json_string_value(json_object_get(body, "id")));
    received->type = g_strdup(json_string_value(json_object_get(body, "type")));
    received->host = g_strdup(wanted->url->host);
    received->address = g_strdup(wanted->address);
    received->at_ms = fake_now_ms(the->world);
    g_ptr_array_add(the->received, received);
    bool fails = the->fail_each && the->received->len % the->fail_each == 0;
    received->taken = !hangs && !fails && the->status == 204;
    if (!env_sleep(the->env, hangs ? timeout_ms : the->answer_ms) || hangs)
        *ret_said = (struct webhook_said){.text = g_strdup("no answer within 5000 ms")};
    else
        *ret_said = (struct webhook_said){fails ? 500 : the->status,
                                          g_strdup_printf("HTTP %u", fails ? 500 : the->status)};
    return true;
}

/* --- a world --- */

static void begin(struct fixture *f)
{
    f->env = fake_process(f->world, NODE1, ROLE_RAPID);
    f->webhooks = webhooks_new(f->env, &f->luxid, &f->out);
    webhooks_start(f->webhooks);
    fake_settle(f->world);
}

/* SIGKILL. */
static void end(struct fixture *f)
{
    fake_kill(f->env);
    webhooks_free(f->webhooks);
}

static void set_up(struct fixture *f, gconstpointer unused)
{
    the = f;
    f->luxid.call = call;
    f->out = (struct webhook_out){look_up, post};
    f->world = fake_world_new();
    f->webhooks_on_record = json_array();
    f->events = json_array();
    f->allowed = json_array();
    f->received = g_ptr_array_new_with_free_func(received_free);
    f->addresses = g_ptr_array_new();
    g_ptr_array_add(f->addresses, (char *)"203.0.113.9");
    f->serial = 100;
    f->status = 204;
    f->answer_ms = 10;
    begin(f);
}

static void tear_down(struct fixture *f, gconstpointer unused)
{
    end(f);
    fake_world_free(f->world);
    json_decref(f->webhooks_on_record);
    json_decref(f->events);
    json_decref(f->allowed);
    g_ptr_array_unref(f->received);
    g_ptr_array_unref(f->addresses);
}

/* A person puts one on record. */
static json_t *add(struct fixture *f, const char *uuid, const char *host, const char *pattern)
{
    g_autofree char *url = g_strdup_printf("https://%s/hook", host);
    json_t *row = json_make("{ss ss ss ss s[s] sI sn}", "uuid", uuid, "name", host, "url", url,
                            "secret", SECRET, "events", pattern, "begins", ++f->serial, "mark");
    json_array_append_new(f->webhooks_on_record, row);
    return row;
}

static void happens(struct fixture *f, const char *type)
{
    json_int_t number = ++f->serial;
    g_autofree char *key = g_strdup_printf("job/%" JSON_INTEGER_FORMAT, number);
    json_array_append_new(f->events, json_make("{sI ss ss ss ss sI s{}}", "serial", number, "after",
                                               key, "type", type, "id", key, "subject", key,
                                               "time_us", (json_int_t)1, "data"));
}

static const struct received *received(const struct fixture *f, guint index)
{
    g_assert_cmpuint(index, <, f->received->len);
    return f->received->pdata[index];
}

static const json_t *mark_of(const json_t *row)
{
    return json_object_get(row, "mark");
}

static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static guint taken_count(const struct fixture *f)
{
    guint count = 0;
    for (guint i = 0; i < f->received->len; i++)
        count += received(f, i)->taken;
    return count;
}

/* Each once, and in order. */
static void assert_all_in_order(const struct fixture *f)
{
    guint at = 0;
    for (guint i = 0; i < f->received->len; i++) {
        const json_t *event = json_array_get(f->events, at);
        if (!received(f, i)->taken)
            continue;
        g_assert_cmpstr(received(f, i)->id, ==, text_of(event, "id"));
        at++;
    }
    g_assert_cmpuint(at, ==, json_array_size(f->events));
}

/* --- tests --- */

static void test_in_order(struct fixture *f, gconstpointer unused)
{
    happens(f, "job.error"); /* before it is on record */
    json_array_clear(f->events);
    const json_t *row = add(f, PAGER, "pager.example", "job.error");
    fake_advance(f->world, 3 * SECONDS);
    f->fail_each = 7;
    for (guint i = 0; i < 1000; i++) {
        happens(f, "job.error");
        if (i % 100 == 0)
            fake_advance(f->world, 2 * SECONDS);
    }
    fake_advance(f->world, 900 * SECONDS);
    g_assert_cmpuint(taken_count(f), ==, 1000);
    assert_all_in_order(f);
    g_assert_cmpint(number_of(mark_of(row), "delivered"), ==, 1000);
    g_assert_cmpint(number_of(mark_of(row), "serial"), ==, f->serial);
    g_assert_cmpuint(f->keeps, <=, 930 / 8 + 2);
    guint keeps = f->keeps, asked = f->happened;
    fake_advance(f->world, 3600 * SECONDS); /* nothing happens: nothing is asked or kept */
    g_assert_cmpuint(f->keeps, ==, keeps);
    g_assert_cmpuint(f->happened, ==, asked);
}

static void test_chosen(struct fixture *f, gconstpointer unused)
{
    add(f, PAGER, "pager.example", "job.*");
    fake_advance(f->world, 2 * SECONDS);
    happens(f, "repair.act");
    happens(f, "job.success");
    happens(f, "event.alert");
    happens(f, "job.canceled");
    fake_advance(f->world, 2 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 2);
    g_assert_cmpstr(received(f, 0)->type, ==, "fettle.job.success");
    g_assert_cmpstr(received(f, 1)->type, ==, "fettle.job.canceled");
}

/* Others are wanted: none of those that happened before. */
static void test_other_events(struct fixture *f, gconstpointer unused)
{
    json_t *row = add(f, PAGER, "pager.example", "job.error");
    happens(f, "repair.act");
    fake_advance(f->world, 3 * SECONDS);
    json_object_set_new(row, "events", json_make("[s]", "*"));
    fake_advance(f->world, 3 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 0);
    happens(f, "repair.done");
    fake_advance(f->world, 3 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
    g_assert_cmpstr(received(f, 0)->type, ==, "fettle.repair.done");
}

static void test_backs_off(struct fixture *f, gconstpointer unused)
{
    static const guint pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600};
    json_t *row = add(f, PAGER, "pager.example", "*");
    f->status = 500;
    happens(f, "job.error");
    happens(f, "job.success");
    fake_advance(f->world, 3000 * SECONDS);
    for (guint i = 0; i < G_N_ELEMENTS(pauses); i++) {
        gint64 pause_ms = received(f, i + 1)->at_ms - received(f, i)->at_ms;
        g_assert_cmpstr(received(f, i)->id, ==, received(f, 0)->id);
        g_assert_cmpint(pause_ms, >=, pauses[i] * SECONDS);
        g_assert_cmpint(pause_ms, <, (pauses[i] + 1) * SECONDS);
    }
    g_assert_cmpstr(text_of(mark_of(row), "said"), ==, "HTTP 500");
    g_assert_cmpint(number_of(mark_of(row), "waited_s"), >, 2000);
    g_assert_true(json_is_false(json_object_get(mark_of(row), "failing")));
    fake_advance(f->world, (WEBHOOK_GIVE_UP_S - 2000) * SECONDS);
    g_assert_true(json_is_true(json_object_get(mark_of(row), "failing")));
    guint tries = f->received->len;
    f->status = 204;
    happens(f, "job.error");
    fake_advance(f->world, 7200 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, tries);
    json_object_set_new(row, "round", json_integer(1));
    fake_advance(f->world, 30 * SECONDS);
    g_assert_cmpuint(taken_count(f), ==, 3);
    assert_all_in_order(f);
    g_assert_true(json_is_false(json_object_get(mark_of(row), "failing")));
}

/* How long it has failed is known to the next master, too: it fails for a day, not for ever. */
static void test_fails_across_masters(struct fixture *f, gconstpointer unused)
{
    json_t *row = add(f, PAGER, "pager.example", "*");
    f->status = 301;
    happens(f, "job.error");
    for (guint hour = 0; hour < 30; hour++) {
        fake_advance(f->world, 3600 * SECONDS);
        end(f);
        begin(f);
    }
    g_assert_true(json_is_true(json_object_get(mark_of(row), "failing")));
    g_assert_cmpint(number_of(mark_of(row), "waited_s"), <=, WEBHOOK_GIVE_UP_S + WEBHOOK_PAUSE_S);
}

static bool other_hangs(const char *host)
{
    return g_str_equal(host, "other.example");
}

static void test_others_go_on(struct fixture *f, gconstpointer unused)
{
    guint of_pager = 0;
    add(f, PAGER, "pager.example", "*");
    add(f, OTHER, "other.example", "*");
    f->hangs = other_hangs;
    fake_advance(f->world, 2 * SECONDS);
    for (guint i = 0; i < 50; i++)
        happens(f, "job.error");
    fake_advance(f->world, 3 * SECONDS);
    for (guint i = 0; i < f->received->len; i++)
        of_pager += g_str_equal(received(f, i)->host, "pager.example");
    g_assert_cmpuint(of_pager, ==, 50);
    f->hangs = NULL;
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(taken_count(f), ==, 100);
}

/* A receiver gets each at least once and in order, whenever a master dies; what it gets twice was
 * delivered no longer than the promised time before that. */
static void test_masters_die(struct fixture *f, gconstpointer unused)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    add(f, PAGER, "pager.example", "*");
    f->fail_each = 11;
    f->answer_ms = 40;
    guint looked = 0, doubles = 0, of_this = 0;
    json_int_t last = 0;
    for (guint round = 0; round < 60 || taken_count(f) == 0; round++) {
        for (gint i = g_rand_int_range(rand, 0, 40); i > 0; i--)
            happens(f, "job.error");
        fake_advance(f->world, (guint)g_rand_int_range(rand, 1, 25000));
        for (; looked < f->received->len; looked++) {
            const struct received *one = received(f, looked);
            bool known = g_hash_table_contains(seen, one->id);
            json_int_t number = g_ascii_strtoll(one->id + strlen("job/"), NULL, 10);
            if (!one->taken)
                continue;
            doubles += known;
            if (!known)
                g_assert_cmpint(number, >, last); /* no gap: all are told in this order */
            last = MAX(last, number);
            g_hash_table_add(seen, g_strdup(one->id));
        }
        gint64 died_ms = fake_now_ms(f->world);
        json_int_t kept = number_of(mark_of(json_array_get(f->webhooks_on_record, 0)), "serial");
        for (guint i = of_this; i < f->received->len; i++)
            if (received(f, i)->taken &&
                g_ascii_strtoll(received(f, i)->id + strlen("job/"), NULL, 10) > kept)
                g_assert_cmpint(died_ms - received(f, i)->at_ms, <=,
                                WEBHOOK_AHEAD_MS + (gint64)f->answer_ms + SECONDS);
        of_this = f->received->len;
        end(f);
        begin(f);
    }
    fake_advance(f->world, 120 * SECONDS);
    for (; looked < f->received->len; looked++)
        if (received(f, looked)->taken)
            g_hash_table_add(seen, g_strdup(received(f, looked)->id));
    g_assert_cmpuint(g_hash_table_size(seen), ==, json_array_size(f->events));
    g_assert_cmpuint(doubles, >, 0);
}

/* Who cannot say how far he is delivers nothing for long: there is another one. */
static void test_zombie(struct fixture *f, gconstpointer unused)
{
    add(f, PAGER, "pager.example", "*");
    fake_advance(f->world, 12 * SECONDS);
    f->lies = true;
    gint64 since_ms = fake_now_ms(f->world);
    for (guint i = 0; i < 100; i++) {
        happens(f, "job.error");
        fake_advance(f->world, SECONDS);
    }
    g_assert_cmpuint(f->received->len, >, 5);
    for (guint i = 0; i < f->received->len; i++)
        g_assert_cmpint(received(f, i)->at_ms - since_ms, <=, WEBHOOK_AHEAD_MS + 2 * SECONDS);
    guint until = f->received->len;
    f->not_master = true;
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, until);
    f->not_master = f->lies = false;
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(f->received->len, >=, 100);
}

/* Another master was further while a receiver thought: what he delivered does not come again. */
static void test_mark_never_goes_back(struct fixture *f, gconstpointer unused)
{
    json_t *row = add(f, PAGER, "pager.example", "*");
    fake_advance(f->world, 12 * SECONDS);
    f->answer_ms = 4 * SECONDS;
    for (guint i = 0; i < 3; i++)
        happens(f, "job.error");
    fake_advance(f->world, 2 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1); /* and is not answered yet */
    json_object_set_new(row, "mark",
                        json_make("{ss sI ss}", "uuid", PAGER, "serial", f->serial, "after", "~"));
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
    g_assert_cmpint(number_of(mark_of(row), "serial"), ==, f->serial);
    g_assert_cmpstr(text_of(mark_of(row), "after"), ==, "~");
}

static void test_orderly_end(struct fixture *f, gconstpointer unused)
{
    const json_t *row = add(f, PAGER, "pager.example", "*");
    fake_advance(f->world, 12 * SECONDS);
    happens(f, "job.error");
    fake_advance(f->world, 2 * SECONDS);
    g_assert_cmpuint(taken_count(f), ==, 1);
    g_assert_cmpint(number_of(mark_of(row), "delivered"), ==, 0);
    fake_run(f->env, (task_fn)webhooks_stop, f->webhooks);
    g_assert_cmpint(number_of(mark_of(row), "delivered"), ==, 1);
    end(f);
    begin(f);
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
}

/* What is under way is waited for. */
static void test_orderly_end_under_way(struct fixture *f, gconstpointer unused)
{
    const json_t *row = add(f, PAGER, "pager.example", "*");
    fake_advance(f->world, 12 * SECONDS);
    f->answer_ms = 800;
    happens(f, "job.error");
    while (f->received->len == 0)
        fake_advance(f->world, 10);
    fake_run(f->env, (task_fn)webhooks_stop, f->webhooks);
    g_assert_cmpint(number_of(mark_of(row), "delivered"), ==, 1);
    end(f);
    begin(f);
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
}

/* All addresses are looked at, at each delivery: a name may change its mind. */
static void test_addresses(struct fixture *f, gconstpointer unused)
{
    static const char *const bad[] = {"127.0.0.1",
                                      "::1",
                                      "::ffff:127.0.0.1",
                                      "169.254.1.1",
                                      "0.0.0.0",
                                      "192.0.2.1",
                                      "fe80::1",
                                      "224.0.0.1",
                                      "::",
                                      "ff02::1",
                                      "::127.0.0.1",
                                      "64:ff9b::7f00:1",
                                      "::ffff:192.0.2.1",
                                      "255.255.255.255",
                                      "nonsense"};
    const json_t *row = add(f, PAGER, "pager.example", "*");
    happens(f, "job.error");
    fake_advance(f->world, 3 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
    g_assert_cmpstr(received(f, 0)->address, ==, "203.0.113.9");
    happens(f, "job.error");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *said =
            g_strdup_printf("the address %s is not allowed for webhooks", bad[i]);
        g_ptr_array_set_size(f->addresses, 0);
        g_ptr_array_add(f->addresses, (char *)"203.0.113.9");
        g_ptr_array_add(f->addresses, (char *)bad[i]);
        fake_advance(f->world, 1300 * SECONDS);
        g_assert_cmpstr(text_of(mark_of(row), "said"), ==, said);
    }
    g_assert_cmpuint(f->received->len, ==, 1);
    g_ptr_array_set_size(f->addresses, 0);
    g_ptr_array_add(f->addresses, (char *)"127.0.0.1");
    json_array_append_new(f->allowed, json_string("127.0.0.0/8"));
    fake_advance(f->world, 700 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 2);
    g_assert_cmpstr(received(f, 1)->address, ==, "127.0.0.1");
}

/* Who stands still for another reason than its receiver says so, too. */
static void test_standstill_is_told(struct fixture *f, gconstpointer unused)
{
    const json_t *row = add(f, PAGER, "pager.example", "*");
    f->knows_nothing = true;
    happens(f, "job.error");
    fake_advance(f->world, 20 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 0);
    g_assert_cmpstr(text_of(mark_of(row), "said"), ==,
                    "what has happened is not known, so nothing is sent: no memory");
    guint keeps = f->keeps;
    fake_advance(f->world, 3600 * SECONDS);
    g_assert_cmpuint(f->keeps, ==, keeps); /* once */
    f->knows_nothing = false;
    fake_advance(f->world, 20 * SECONDS);
    g_assert_cmpuint(taken_count(f), ==, 1);
    g_assert_cmpstr(text_of(mark_of(row), "said"), ==, "HTTP 204");
}

/* An address that does not answer takes no more than its part of the time. */
static void test_second_address(struct fixture *f, gconstpointer unused)
{
    const json_t *row = add(f, PAGER, "pager.example", "*");
    f->dead = "203.0.113.8";
    g_ptr_array_insert(f->addresses, 0, (char *)f->dead);
    happens(f, "job.error");
    fake_advance(f->world, 20 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
    g_assert_cmpstr(received(f, 0)->address, ==, "203.0.113.9");
    g_assert_cmpint(number_of(mark_of(row), "delivered"), ==, 1);
}

static void test_hanging_name(struct fixture *f, gconstpointer unused)
{
    const json_t *row = add(f, PAGER, "pager.example", "*");
    f->name_hangs = true;
    happens(f, "job.error");
    fake_advance(f->world, 60 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 0);
    g_assert_cmpstr(text_of(mark_of(row), "said"), ==, "pager.example: no answer within 5000 ms");
    f->name_hangs = false;
    fake_advance(f->world, 120 * SECONDS);
    g_assert_cmpuint(taken_count(f), ==, 1);
}

static void test_paused_and_tested(struct fixture *f, gconstpointer unused)
{
    json_t *row = add(f, PAGER, "pager.example", "*");
    json_object_set_new(row, "paused", json_true());
    happens(f, "job.error");
    fake_advance(f->world, 30 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 0);
    json_object_set_new(row, "test", json_string(OTHER));
    fake_advance(f->world, 4 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 1);
    g_assert_cmpstr(received(f, 0)->type, ==, "fettle.webhook.test");
    g_assert_cmpstr(received(f, 0)->id, ==, "test/" OTHER);
    g_assert_cmpstr(text_of(mark_of(row), "tested"), ==, OTHER);
    g_assert_cmpstr(text_of(mark_of(row), "test_said"), ==, "HTTP 204");
    g_assert_true(json_is_true(json_object_get(mark_of(row), "test_taken")));
    json_object_set_new(row, "paused", json_false());
    fake_advance(f->world, 4 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 2);
    json_array_clear(f->webhooks_on_record);
    happens(f, "job.error");
    fake_advance(f->world, 30 * SECONDS);
    g_assert_cmpuint(f->received->len, ==, 2);
}

static void test_body(void)
{
    static const char strange[] = "a\"b\n\xe2\x80\xae";
    json_autoptr event =
        json_make("{sI ss ss ss ss sI s{ss}}", "serial", (json_int_t)7, "after", "job/17", "type",
                  "job.error", "id", "job/17", "subject", strange, "time_us",
                  (json_int_t)1700000000000001, "data", "error", strange);
    g_autofree char *body = webhook_event_body(NODE1, event);
    json_autoptr read = json_parse_limited(body, strlen(body), MIB(1), NULL);
    g_assert_cmpstr(text_of(read, "specversion"), ==, "1.0");
    g_assert_cmpstr(text_of(read, "id"), ==, "job/17");
    g_assert_cmpstr(text_of(read, "source"), ==, "urn:fettle:cluster:" NODE1);
    g_assert_cmpstr(text_of(read, "type"), ==, "fettle.job.error");
    g_assert_cmpstr(text_of(read, "subject"), ==, strange);
    g_assert_cmpstr(text_of(read, "time"), ==, "2023-11-14T22:13:20.000001Z");
    g_assert_cmpstr(text_of(json_object_get(read, "data"), "error"), ==, strange);
    g_assert_null(strchr(body, '\n'));
    g_autofree char *huge = g_strnfill(LIMIT_WEBHOOK_BODY, 'x');
    json_object_set_new(json_object_get(event, "data"), "evidence", json_string(huge));
    g_autofree char *shorter = webhook_event_body(NODE1, event);
    g_assert_cmpuint(strlen(shorter), <=, LIMIT_WEBHOOK_BODY);
    g_assert_nonnull(strstr(shorter, "\"shortened\":true"));
    g_autofree char *signature =
        g_compute_hmac_for_string(G_CHECKSUM_SHA256, (const guchar *)"Jefe", 4, "1.x", 3);
    g_autofree char *right = g_strconcat("t=1,v1=", signature, NULL);
    g_autofree char *ours = webhook_event_signature("Jefe", 1, "x");
    g_assert_cmpstr(ours, ==, right);
}

#define ADD(name, test) g_test_add("/webhooks/" name, struct fixture, NULL, set_up, test, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/webhooks/body", test_body);
    ADD("in-order", test_in_order);
    ADD("chosen", test_chosen);
    ADD("other-events", test_other_events);
    ADD("backs-off", test_backs_off);
    ADD("fails-across-masters", test_fails_across_masters);
    ADD("others-go-on", test_others_go_on);
    ADD("masters-die", test_masters_die);
    ADD("zombie", test_zombie);
    ADD("mark-never-goes-back", test_mark_never_goes_back);
    ADD("orderly-end", test_orderly_end);
    ADD("orderly-end-under-way", test_orderly_end_under_way);
    ADD("addresses", test_addresses);
    ADD("standstill-is-told", test_standstill_is_told);
    ADD("second-address", test_second_address);
    ADD("hanging-name", test_hanging_name);
    ADD("paused-and-tested", test_paused_and_tested);
    return g_test_run();
}

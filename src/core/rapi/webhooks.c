/* See webhooks.h. */
#include "core/rapi/webhooks.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define TEST_WORD "webhook.test"
#define LOUD_TRIES 4 /* in vain, after which it is logged */
#define STOP_LOOK_MS 20
#define UNKNOWN "what has happened is not known, so nothing is sent"
#define LAST "~" /* in the place of a key: behind all of a serial */

struct webhooks {
    const struct env *env;
    struct rapi_luxid *luxid;
    struct webhook_out *out;
    guint answer_ms;              /* WEBHOOK_ANSWER_MS, but in labs */
    char *cluster;                /* its UUID */
    guint64 history;              /* of the record that `hooks` are of */
    guint64 serial;               /* of it, as luxid said last */
    GPtrArray *refused, *allowed; /* addresses and networks, texts */
    GHashTable *hooks;            /* UUID -> struct hook */
    struct task_mutex keeping;
    guint delivering; /* deliveries under way */
    bool stopped;
    bool look_failed, keep_failed; /* and it was said */
};

/* One webhook, which its task delivers to. */
struct hook {
    struct webhooks *all;
    guint users; /* the table, and its task */
    bool gone;   /* off the table: nothing is delivered any more */
    struct webhook *webhook;
    struct webhook_mark *mark; /* as it will be on record */
    json_t *events;            /* that are to be delivered, oldest first */
    size_t next;               /* of them */
    guint64 seen;              /* serial up to which there are no others */
    gint64 dirty_ms;           /* since when the record lacks something; 0: it does not */
    bool urgent;               /* and somebody waits for it */
    guint64 changes;           /* of the mark, so that one while it is kept is not lost */
    bool fetch_failed;         /* what happened cannot be had, and it was said */
    guint tries;               /* of the next event, in vain */
    gint64 since_ms;           /* of the first of them */
    guint64 waited_s;          /* before that, by whoever tried it before */
    gint64 again_ms;           /* when the next one is due */
    guint64 begun; /* how often it has begun anew: what was asked before counts no more */
    struct env_pause pause;
};

static gint64 now_ms(const struct webhooks *all)
{
    return all->env->ops->boot_ms(all->env);
}

/* --- hooks --- */

static void hook_unref(struct hook *hook)
{
    if (--hook->users > 0)
        return;
    webhook_free(hook->webhook);
    webhook_mark_free(hook->mark);
    json_decref(hook->events);
    g_free(hook);
}

static void drop(void *data)
{
    struct hook *hook = data;
    hook->gone = true;
    env_pause_end(&hook->pause);
    hook_unref(hook);
}

static void changed(struct hook *hook, bool urgent)
{
    hook->changes++;
    hook->urgent = hook->urgent || urgent;
    if (!hook->dirty_ms)
        hook->dirty_ms = MAX(now_ms(hook->all), 1);
}

static bool is_failing(const struct hook *hook)
{
    return hook->mark->failing && hook->mark->round == hook->webhook->round;
}

static bool wants_test(const struct hook *hook)
{
    return *hook->webhook->test && strcmp(hook->webhook->test, hook->mark->tested) != 0;
}

/* What is delivered is not on record for so long that another master would repeat too much. */
static bool is_ahead(const struct hook *hook)
{
    return hook->dirty_ms && now_ms(hook->all) - hook->dirty_ms >= WEBHOOK_AHEAD_MS;
}

/* --- one delivery --- */

static bool refuse(struct webhook_said *said, char *text)
{
    *said = (struct webhook_said){.text = text};
    return false;
}

/* All are looked at, before one is used. */
static bool are_good(const struct webhooks *all, const GPtrArray *addresses,
                     struct webhook_said *said)
{
    for (guint i = 0; i < addresses->len; i++)
        if (!webhook_address_is_good(addresses->pdata[i], all->refused, all->allowed))
            return refuse(said, g_strdup_printf("the address %s is not allowed for webhooks",
                                                (const char *)addresses->pdata[i]));
    return true;
}

/* The first address that does not answer leaves time for the next one; where there is a connection
 * another one is not tried, since the event may have been read there. */
static void post_to(struct hook *hook, struct webhook_post *post, const GPtrArray *addresses,
                    gint64 until_ms, struct webhook_said *said)
{
    struct webhooks *all = hook->all;
    bool connected = false;
    for (guint i = 0; i < addresses->len && !connected && !task_killed(); i++) {
        gint64 left_ms = until_ms - now_ms(all);
        if (left_ms <= 0 && said->text)
            return;
        g_clear_pointer(&said->text, g_free);
        post->address = addresses->pdata[i];
        post->connect_ms = (guint)MAX(left_ms, 1) / (addresses->len - i);
        post->may_be_here = webhook_address_is_in(post->address, all->allowed);
        connected = all->out->post(all->out, post, (guint)MAX(left_ms, 1), said);
    }
}

/* Whether the receiver has taken it; what it said is `said`, its text to be freed. */
static bool deliver_now(struct hook *hook, const json_t *event, struct webhook_said *said)
{
    struct webhooks *all = hook->all;
    gint64 until_ms = now_ms(all) + all->answer_ms;
    g_autoptr(GError) error = NULL;
    g_autoptr(webhook_url_t) url = webhook_url_parse(hook->webhook->url, &error);
    *said = (struct webhook_said){0};
    g_autoptr(GPtrArray) addresses =
        url ? all->out->look_up(all->out, url->host, all->answer_ms, &error) : NULL;
    if (!addresses)
        return refuse(said, g_strdup(error->message));
    if (!are_good(all, addresses, said))
        return false;
    g_autofree char *body = webhook_event_body(all->cluster, event);
    g_autofree char *signature = webhook_event_signature(
        hook->webhook->secret, all->env->ops->wall_us(all->env) / G_USEC_PER_SEC, body);
    struct webhook_post post = {.url = url, .signature = signature, .body = body};
    post_to(hook, &post, addresses, until_ms, said);
    return said->status >= 200 && said->status <= 299;
}

static bool deliver(struct hook *hook, const json_t *event, struct webhook_said *said)
{
    hook->all->delivering++;
    bool taken = deliver_now(hook, event, said);
    hook->all->delivering--;
    return taken;
}

static void keep_words(char **place, const char *said)
{
    g_autofree char *shown = text_shown(said);
    g_autofree char *head = text_head(shown ? shown : said, LIMIT_WEBHOOK_SAID);
    text_set(place, head);
}

/* A test is no event of the cluster: it has no place in their order. */
static void test(struct hook *hook)
{
    struct webhooks *all = hook->all;
    g_autofree char *wanted = g_strdup(hook->webhook->test);
    g_autofree char *id = g_strconcat("test/", wanted, NULL);
    g_autofree char *subject = g_strconcat("webhook/", hook->webhook->name, NULL);
    json_autoptr event = json_make("{ss ss ss sI s{ss}}", "type", TEST_WORD, "id", id, "subject",
                                   subject, "time_us", (json_int_t)all->env->ops->wall_us(all->env),
                                   "data", "webhook", hook->webhook->name);
    struct webhook_said said;
    bool taken = deliver(hook, event, &said);
    if (!task_killed()) {
        text_set(&hook->mark->tested, wanted);
        hook->mark->test_taken = taken;
        keep_words(&hook->mark->test_said, said.text);
        changed(hook, true);
    }
    g_free(said.text);
}

static bool is_further(const struct webhook_mark *mark, guint64 serial, const char *after)
{
    return mark->serial > serial || (mark->serial == serial && strcmp(mark->after, after) > 0);
}

/* Another master may have been further meanwhile: a mark never goes back. */
static void taken(struct hook *hook, const json_t *event, const char *said)
{
    struct webhook_mark *mark = hook->mark;
    guint64 serial = (guint64)json_integer_value(json_object_get(event, "serial"));
    const char *after = json_string_value(json_object_get(event, "after"));
    if (!is_further(mark, serial, after)) {
        mark->serial = serial;
        text_set(&mark->after, after);
    }
    mark->round = hook->webhook->round;
    mark->waited_s = 0;
    mark->failing = false;
    mark->delivered++;
    keep_words(&mark->said, said);
    hook->tries = 0;
    hook->waited_s = 0;
    hook->next++;
    changed(hook, false);
}

static void not_taken(struct hook *hook, gint64 began_ms, const char *said)
{
    struct webhook_mark *mark = hook->mark;
    gint64 now = now_ms(hook->all);
    if (hook->tries++ == 0)
        hook->since_ms = began_ms;
    guint64 pause_s = MIN((guint64)1 << MIN(hook->tries - 1, 16), WEBHOOK_PAUSE_S);
    hook->again_ms = now + (gint64)pause_s * 1000;
    mark->round = hook->webhook->round;
    mark->waited_s = hook->waited_s + (guint64)(now - hook->since_ms) / 1000;
    mark->failing = mark->waited_s >= WEBHOOK_GIVE_UP_S;
    keep_words(&mark->said, said);
    if (hook->tries == LOUD_TRIES || mark->failing)
        log_warning("", "webhook %s: %s%s", hook->webhook->name, mark->said,
                    mark->failing ? "; nothing more is tried" : "; it is tried again");
    changed(hook, mark->failing);
}

static void try_next(struct hook *hook)
{
    json_autoptr event = json_incref(json_array_get(hook->events, hook->next));
    guint64 begun = hook->begun;
    gint64 began_ms = now_ms(hook->all);
    struct webhook_said said;
    bool good = deliver(hook, event, &said);
    if (good)
        taken(hook, event, said.text);
    else if (!task_killed() && !hook->gone && begun == hook->begun)
        not_taken(hook, began_ms, said.text);
    g_free(said.text);
}

/* --- what there is to deliver --- */

/* Said once for each spell of that cause, which its own success ends. NULL: a success. */
static void note(bool *failed, const char *what, const GError *error)
{
    bool quiet = !error || fettle_error_is(error, KILLED) || fettle_error_is(error, NOT_MASTER);
    if (!quiet && !*failed)
        log_warning("", "%s: %s", what, error->message);
    *failed = !quiet;
}

static json_t *patterns_of(const struct webhook *webhook)
{
    json_t *patterns = json_array();
    for (guint i = 0; i < webhook->events->len; i++)
        json_array_append_new(patterns, json_string(webhook->events->pdata[i]));
    return patterns;
}

/* Its list shows it for as long as it lasts: there people look why nothing comes. */
static void note_fetch(struct hook *hook, const GError *error)
{
    g_autofree char *what = g_strdup_printf("webhook %s: " UNKNOWN, hook->webhook->name);
    bool before = hook->fetch_failed;
    note(&hook->fetch_failed, what, error);
    if (before == hook->fetch_failed)
        return;
    g_autofree char *said =
        hook->fetch_failed ? g_strdup_printf(UNKNOWN ": %s", error->message) : g_strdup("");
    keep_words(&hook->mark->said, said);
    changed(hook, false);
}

/* From where on events are new: behind the last one that was delivered, or that there was not. */
static json_t *place_of(const struct hook *hook)
{
    bool seen = hook->seen > hook->mark->serial;
    return json_make("[I s o]", (json_int_t)(seen ? hook->seen : hook->mark->serial),
                     seen ? LAST : hook->mark->after, patterns_of(hook->webhook));
}

/* False: there is nothing, or nobody knows. */
static bool fetch(struct hook *hook)
{
    struct webhooks *all = hook->all;
    guint64 begun = hook->begun;
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        all->luxid->call(all->luxid, FACE_OWN, "QueryHappened", place_of(hook), NULL, 0, &error);
    note_fetch(hook, error);
    if (!answer || hook->gone || begun != hook->begun)
        return false;
    json_decref(hook->events);
    hook->events = json_incref(json_object_get(answer, "events"));
    hook->next = 0;
    if (!json_is_true(json_object_get(answer, "more")) && json_array_size(hook->events) == 0)
        hook->seen = (guint64)json_integer_value(json_object_get(answer, "serial"));
    return json_array_size(hook->events) > 0;
}

static bool has_next(const struct hook *hook)
{
    return hook->next < json_array_size(hook->events);
}

/* What it is to do now: at once (true), or after `ret_pause_ms` at the latest. */
static bool is_due(const struct hook *hook, guint *ret_pause_ms)
{
    gint64 left_ms = hook->tries ? hook->again_ms - now_ms(hook->all) : 0;
    *ret_pause_ms = left_ms > 0 ? (guint)left_ms : WEBHOOK_LOOK_MS;
    return !hook->webhook->paused && !is_failing(hook) && !is_ahead(hook) && left_ms <= 0 &&
           (has_next(hook) || hook->all->serial > hook->seen);
}

static void hook_task(void *data)
{
    struct hook *hook = data;
    guint pause_ms = 0;
    bool running = true;
    while (running && !hook->gone && !hook->all->stopped) {
        if (wants_test(hook))
            test(hook);
        else if (is_due(hook, &pause_ms) && (has_next(hook) || fetch(hook)))
            try_next(hook);
        else
            running = env_pause(hook->all->env, &hook->pause, pause_ms);
        running = running && !task_killed();
    }
    hook_unref(hook);
}

/* --- what is on record --- */

static void begin_round(struct hook *hook)
{
    hook->begun++;
    hook->tries = 0;
    hook->waited_s = hook->mark->round == hook->webhook->round ? hook->mark->waited_s : 0;
    hook->seen = 0;
    g_clear_pointer(&hook->events, json_decref);
    hook->next = 0;
}

static struct webhook_mark *first_mark(const struct webhooks *all, const struct webhook *webhook)
{
    struct webhook_mark *mark = webhook_mark_new();
    text_set(&mark->uuid, webhook->uuid);
    mark->serial = webhook->begins ? webhook->begins : all->serial;
    text_set(&mark->after, LAST);
    mark->round = webhook->round;
    return mark;
}

static void add_hook(struct webhooks *all, struct webhook *webhook, struct webhook_mark *mark)
{
    struct hook *hook = g_new0(struct hook, 1);
    hook->all = all;
    hook->users = 2;
    hook->webhook = webhook;
    hook->mark = mark ? mark : first_mark(all, webhook);
    begin_round(hook);
    if (!mark)
        changed(hook, false);
    g_hash_table_insert(all->hooks, hook->webhook->uuid, hook);
    task_spawn(all->env->tasks, hook_task, hook);
}

static bool are_same(const GPtrArray *one, const GPtrArray *other)
{
    bool same = one->len == other->len;
    for (guint i = 0; same && i < one->len; i++)
        same = g_str_equal(one->pdata[i], other->pdata[i]);
    return same;
}

/* Other events are wanted from now on: of those none is missing that were not wanted before. */
static void go_to_seen(struct hook *hook)
{
    if (has_next(hook) || hook->seen <= hook->mark->serial)
        return;
    hook->mark->serial = hook->seen;
    text_set(&hook->mark->after, LAST);
    changed(hook, true);
}

static void renew_hook(struct hook *hook, struct webhook *webhook, struct webhook_mark *mark)
{
    bool others = !are_same(webhook->events, hook->webhook->events);
    bool round = webhook->round != hook->webhook->round;
    bool further = mark && is_further(mark, hook->mark->serial, hook->mark->after);
    g_hash_table_steal(hook->all->hooks, webhook->uuid);
    webhook_free(hook->webhook);
    hook->webhook = webhook;
    g_hash_table_insert(hook->all->hooks, webhook->uuid, hook);
    if (further) {
        webhook_mark_free(hook->mark);
        hook->mark = g_steal_pointer(&mark);
        hook->dirty_ms = 0;
    }
    webhook_mark_free(mark);
    if (others)
        go_to_seen(hook);
    if (others || round || further)
        begin_round(hook);
    env_pause_end(&hook->pause);
}

static GPtrArray *texts(const json_t *list)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    json_t *text;
    json_array_foreach(list, i, text)
        if (json_is_string(text))
            g_ptr_array_add(all, g_strdup(json_string_value(text)));
    return all;
}

static void take_one(struct webhooks *all, const json_t *row, GHashTable *there)
{
    struct webhook *webhook = record_parse(&webhook_record, row, RECORD_LAX, NULL);
    const json_t *on_record = json_object_get(row, "mark");
    struct webhook_mark *mark =
        json_is_object(on_record) ? record_parse(&webhook_mark_record, on_record, RECORD_LAX, NULL)
                                  : NULL;
    if (!webhook) {
        webhook_mark_free(mark);
        return;
    }
    g_hash_table_add(there, g_strdup(webhook->uuid));
    struct hook *hook = g_hash_table_lookup(all->hooks, webhook->uuid);
    if (hook)
        renew_hook(hook, webhook, mark);
    else
        add_hook(all, webhook, mark);
}

static gboolean is_missing(void *key, void *value, void *there)
{
    return !g_hash_table_contains(there, key);
}

static void take(struct webhooks *all, const json_t *answer)
{
    g_autoptr(GHashTable) there = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint64 history = (guint64)json_integer_value(json_object_get(answer, "history"));
    size_t i;
    json_t *row;
    if (history != all->history)
        g_hash_table_remove_all(all->hooks);
    all->history = history;
    all->serial = (guint64)json_integer_value(json_object_get(answer, "serial"));
    text_set(&all->cluster, json_string_value(json_object_get(answer, "cluster")));
    g_ptr_array_unref(all->refused);
    g_ptr_array_unref(all->allowed);
    all->refused = texts(json_object_get(answer, "refused"));
    all->allowed = texts(json_object_get(answer, "allowed"));
    json_array_foreach(json_object_get(answer, "webhooks"), i, row)
        take_one(all, row, there);
    g_hash_table_foreach_remove(all->hooks, is_missing, there);
}

/* Elsewhere than on the master nothing is delivered. While luxid is away what is known goes on. */
static bool look(struct webhooks *all)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        all->luxid->call(all->luxid, FACE_OWN, "TakeWebhooks", json_array(), NULL, 0, &error);
    if (all->stopped)
        return false;
    if (answer)
        take(all, answer);
    else if (fettle_error_is(error, NOT_MASTER))
        g_hash_table_remove_all(all->hooks);
    note(&all->look_failed, "webhooks: what is on record is not known", error);
    return answer;
}

/* --- how far it is --- */

/* Those that the record lacks, as [hook, changes] to be looked at again afterwards. */
static json_t *marks_to_keep(struct webhooks *all, GPtrArray *hooks, GArray *changes)
{
    json_t *marks = json_array();
    GHashTableIter iter;
    struct hook *hook;
    g_hash_table_iter_init(&iter, all->hooks);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&hook)) {
        if (!hook->dirty_ms)
            continue;
        hook->users++;
        g_ptr_array_add(hooks, hook);
        g_array_append_val(changes, hook->changes);
        json_array_append_new(marks, webhook_mark_to_json(hook->mark));
    }
    return marks;
}

static void hook_free(void *hook)
{
    hook_unref(hook);
}

static void keep(struct webhooks *all)
{
    g_autoptr(GPtrArray) hooks = g_ptr_array_new_with_free_func(hook_free);
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_autoptr(GError) error = NULL;
    if (!task_mutex_lock(&all->keeping))
        return;
    gint64 began_ms = now_ms(all);
    json_t *marks = marks_to_keep(all, hooks, changes);
    json_autoptr args = json_make("[o]", marks);
    bool asked = hooks->len > 0;
    if (asked)
        json_decref(all->luxid->call(all->luxid, FACE_OWN, "KeepWebhookMarks", json_incref(args),
                                     NULL, 0, &error));
    for (guint i = 0; asked && !error && i < hooks->len; i++) {
        struct hook *hook = hooks->pdata[i];
        bool same = hook->changes == g_array_index(changes, guint64, i);
        hook->dirty_ms = same ? 0 : MAX(began_ms, 1);
        hook->urgent = hook->urgent && !same;
        env_pause_end(&hook->pause);
    }
    if (asked)
        note(&all->keep_failed,
             "webhooks: how far they are is not on record, so nothing more is sent", error);
    task_mutex_unlock(&all->keeping);
}

static bool is_time_to_keep(const struct webhooks *all)
{
    GHashTableIter iter;
    const struct hook *hook;
    g_hash_table_iter_init(&iter, all->hooks);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&hook))
        if (hook->dirty_ms && (hook->urgent || now_ms(all) - hook->dirty_ms >= WEBHOOK_KEEP_MS))
            return true;
    return false;
}

static void look_task(void *data)
{
    struct webhooks *all = data;
    do {
        if (look(all) && is_time_to_keep(all))
            keep(all);
    } while (!all->stopped && env_sleep(all->env, WEBHOOK_LOOK_MS));
}

/* --- */

struct webhooks *webhooks_new(const struct env *env, struct rapi_luxid *luxid,
                              struct webhook_out *out)
{
    struct webhooks *all = g_new0(struct webhooks, 1);
    all->env = env;
    all->luxid = luxid;
    all->out = out;
    all->answer_ms = WEBHOOK_ANSWER_MS;
    all->refused = g_ptr_array_new();
    all->allowed = g_ptr_array_new();
    all->hooks = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, drop);
    return all;
}

void webhooks_be_patient(struct webhooks *all, guint times)
{
    all->answer_ms = WEBHOOK_ANSWER_MS * times;
}

void webhooks_free(struct webhooks *all)
{
    g_hash_table_unref(all->hooks);
    g_ptr_array_unref(all->refused);
    g_ptr_array_unref(all->allowed);
    g_free(all->cluster);
    g_free(all);
}

void webhooks_start(struct webhooks *all)
{
    task_spawn(all->env->tasks, look_task, all);
}

void webhooks_stop(struct webhooks *all)
{
    gint64 until_ms = now_ms(all) + WEBHOOK_STOP_MS / 2;
    all->stopped = true;
    while (all->delivering && now_ms(all) < until_ms && env_sleep(all->env, STOP_LOOK_MS))
        ;
    keep(all);
}

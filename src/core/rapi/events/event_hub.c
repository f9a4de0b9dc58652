/* See event_hub.h. */
#include "core/rapi/events/event_hub.h"

#include <string.h>

#include "core/rapi/events/event_recall.h"

#define MOST_LEFT 6 /* calls that know less than is wanted by now, and end by themselves */

/* Who reads, as he was admitted; readers of one share him. */
struct listener {
    char *user, *mark;
    guint readers;
};

struct event_hub {
    const struct env *env;
    struct rapi_luxid *luxid;
    struct rapi_users *users;
    struct event_window *window;
    GQueue readers; /* struct event_reader */
    GPtrArray *listeners;
    struct task_mutex recalling;
    guint64 streams;            /* how often another one has begun */
    guint64 failures;           /* of what was to be recalled */
    guint refs, joining;        /* its owner's and its tasks'; of who is about to be a reader */
    guint round, left;          /* of following; older rounds that have not ended yet */
    bool follows, asked, freed; /* asked: the round has asked for what is wanted */
    bool tends, looks;          /* at the quiet, and at users */
    bool rings;                 /* there may be decisions that are not known yet */
    gint64 heard_ms;            /* when luxid has answered last */
};

struct event_reader {
    struct http_feed feed;
    struct event_hub *hub;
    struct event_view *view;
    struct listener *listener;
    GList link;
    struct event_place place;
    guint64 stream; /* of hub->streams */
    char *why;      /* he has to begin anew; NULL: he need not */
    bool hello, over, quiet;
    gint64 said_ms;
};

struct event_hub *event_hub_new(const struct env *env, struct rapi_luxid *luxid,
                                struct rapi_users *users)
{
    struct event_hub *hub = g_new0(struct event_hub, 1);
    *hub = (struct event_hub){.env = env,
                              .luxid = luxid,
                              .users = users,
                              .window = event_window_new(),
                              .listeners = g_ptr_array_new(),
                              .refs = 1};
    g_queue_init(&hub->readers);
    return hub;
}

static void hub_unref(struct event_hub *hub)
{
    if (--hub->refs)
        return;
    event_window_free(hub->window);
    g_ptr_array_unref(hub->listeners);
    g_free(hub);
}

void event_hub_free(struct event_hub *hub)
{
    hub->freed = true;
    hub_unref(hub);
}

static gint64 now_ms(const struct event_hub *hub)
{
    return hub->env->ops->boot_ms(hub->env);
}

static bool is_wanted(const struct event_hub *hub)
{
    return !hub->freed && !task_killed() && (hub->readers.length || hub->joining);
}

guint event_hub_readers(const struct event_hub *hub)
{
    return hub->readers.length;
}

/* --- readers --- */

static void wake(struct event_reader *reader)
{
    if (reader->feed.wake)
        reader->feed.wake(reader->feed.data);
}

/* A reader may go while he is woken. */
static void wake_all(struct event_hub *hub)
{
    for (GList *link = hub->readers.head, *next; link; link = next) {
        next = link->next;
        wake(link->data);
    }
}

static void let_go(struct event_reader *reader)
{
    reader->over = true;
    wake(reader);
}

static void let_all_go(struct event_hub *hub)
{
    for (GList *link = hub->readers.head, *next; link; link = next) {
        next = link->next;
        let_go(link->data);
    }
}

/* What is told of objects begins with now, and of decisions with the oldest that is here. */
static GBytes *begin_anew(struct event_reader *reader)
{
    const struct event_window *window = reader->hub->window;
    struct event_place newest = event_window_newest(window);
    g_autofree char *why = g_steal_pointer(&reader->why);
    reader->stream = reader->hub->streams;
    reader->place.at[EVENT_NOW] = newest.at[EVENT_NOW];
    guint64 oldest = event_view_oldest(reader->view, EVENT_RECORD);
    reader->place.at[EVENT_RECORD] =
        MIN(MAX(reader->place.at[EVENT_RECORD], oldest), newest.at[EVENT_RECORD]);
    reader->hello = false;
    return event_window_reset(window, &reader->place, why);
}

static bool has_to_begin_anew(struct event_reader *reader)
{
    if (reader->why)
        return true;
    if (reader->stream != reader->hub->streams)
        reader->why = g_strdup("luxid is another one, or has begun anew");
    else if (!event_view_reaches(reader->view, EVENT_NOW, &reader->place) ||
             !event_view_reaches(reader->view, EVENT_RECORD, &reader->place))
        reader->why = g_strdup("more has changed since than is remembered");
    return reader->why != NULL;
}

/* The rest of its way is not known. */
static GBytes *give_up(struct event_reader *reader)
{
    reader->over = true;
    return event_window_end(reader->hub->window, &reader->place,
                            "filter: it costs too much for each change; a simpler one, or one "
                            "without regular expressions, is needed");
}

static GBytes *next_piece(struct event_reader *reader)
{
    if (event_view_is_too_dear(reader->view))
        return give_up(reader);
    if (has_to_begin_anew(reader))
        return begin_anew(reader);
    if (reader->hello) {
        reader->hello = false;
        return event_window_hello(reader->hub->window, &reader->place);
    }
    GBytes *piece = event_view_next(reader->view, &reader->place);
    if (!piece && reader->quiet)
        piece = event_window_alive(reader->hub->window, &reader->place);
    return piece;
}

static GBytes *reader_next(struct http_feed *feed, bool *ret_over)
{
    struct event_reader *reader = (struct event_reader *)feed;
    *ret_over = reader->over;
    GBytes *piece = reader->over ? NULL : next_piece(reader);
    if (piece) {
        reader->said_ms = now_ms(reader->hub);
        reader->quiet = false;
    }
    return piece;
}

static struct listener *listener_of(struct event_hub *hub, const struct event_wish *wish)
{
    for (guint i = 0; i < hub->listeners->len; i++) {
        struct listener *listener = hub->listeners->pdata[i];
        if (!strcmp(listener->user, wish->user) && !strcmp(listener->mark, wish->mark)) {
            listener->readers++;
            return listener;
        }
    }
    struct listener *listener = g_new0(struct listener, 1);
    *listener = (struct listener){g_strdup(wish->user), g_strdup(wish->mark), 1};
    g_ptr_array_add(hub->listeners, listener);
    return listener;
}

static void listener_drop(struct event_hub *hub, struct listener *listener)
{
    if (--listener->readers)
        return;
    g_ptr_array_remove_fast(hub->listeners, listener);
    g_free(listener->user);
    g_free(listener->mark);
    g_free(listener);
}

static void reader_free(struct http_feed *feed)
{
    struct event_reader *reader = (struct event_reader *)feed;
    struct event_hub *hub = reader->hub;
    g_queue_unlink(&hub->readers, &reader->link);
    event_view_drop(reader->view);
    listener_drop(hub, reader->listener);
    g_free(reader->why);
    g_free(reader);
    hub_unref(hub);
}

/* --- who is still there, and who may --- */

/* Readers and listeners may go while luxid is asked. If that fails nobody knows, and each of the
 * others would wait as long for the same. */
static void look_at_users(struct event_hub *hub)
{
    g_autoptr(GPtrArray) known = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < hub->listeners->len; i++) {
        const struct listener *listener = hub->listeners->pdata[i];
        g_ptr_array_add(known, g_strdup(listener->user));
        g_ptr_array_add(known, g_strdup(listener->mark));
    }
    for (guint i = 0; i < known->len && is_wanted(hub); i += 2) {
        g_autoptr(GError) error = NULL;
        g_autofree char *mark = rapi_users_mark(hub->users, known->pdata[i], &error);
        if (error || hub->freed)
            return;
        if (!g_strcmp0(mark, known->pdata[i + 1]))
            continue;
        for (GList *link = hub->readers.head, *next; link; link = next) {
            struct event_reader *reader = link->data;
            next = link->next;
            if (!strcmp(reader->listener->user, known->pdata[i]) &&
                !strcmp(reader->listener->mark, known->pdata[i + 1]))
                let_go(reader);
        }
    }
}

static void look_at_the_quiet(struct event_hub *hub)
{
    gint64 now = now_ms(hub);
    for (GList *link = hub->readers.head, *next; link; link = next) {
        struct event_reader *reader = link->data;
        next = link->next;
        if (now - reader->said_ms < EVENT_ALIVE_MS)
            continue;
        reader->quiet = true;
        wake(reader);
    }
}

/* Two tasks, as who is quiet hears something while luxid stands still, too. */
static void tend_task(void *data)
{
    struct event_hub *hub = data;
    while (is_wanted(hub) && env_sleep(hub->env, EVENT_TEND_MS) && is_wanted(hub))
        look_at_the_quiet(hub);
    hub->tends = false;
    hub_unref(hub);
}

static void users_task(void *data)
{
    struct event_hub *hub = data;
    while (is_wanted(hub) && env_sleep(hub->env, EVENT_USERS_MS) && is_wanted(hub))
        look_at_users(hub);
    hub->looks = false;
    hub_unref(hub);
}

/* --- following --- */

/* False: it has to be tried again; also when more is wanted by now than was asked for. */
static bool take_record(struct event_hub *hub)
{
    struct event_place newest = event_window_newest(hub->window);
    guint64 wanted = event_window_wanted(hub->window), reached;
    hub->rings = false;
    bool ok = event_recall_record(hub->env, hub->luxid, hub->window, newest.at[EVENT_RECORD],
                                  &reached, NULL);
    if (!ok || wanted != event_window_wanted(hub->window))
        hub->rings = true;
    else
        event_window_reach(hub->window, EVENT_RECORD, reached);
    return !hub->rings;
}

static bool wants_record(const struct event_hub *hub)
{
    guint32 kinds = event_window_kinds(hub->window);
    for (size_t i = 0; i < EVENT_KINDS; i++)
        if (event_kind_rows[i].on_record && kinds & event_bit(&event_kind_rows[i]))
            return true;
    return false;
}

/* NULL with an error; else the answer has been taken. */
static bool take(struct event_hub *hub, const struct event_question *question, const json_t *answer)
{
    const char *stream = json_string_value(json_object_get(answer, "stream"));
    guint64 serial = (guint64)json_integer_value(json_object_get(answer, "serial"));
    hub->heard_ms = now_ms(hub);
    if (!stream)
        return false;
    if (json_is_true(json_object_get(answer, "anew"))) {
        event_window_begin(hub->window, stream, serial);
        hub->streams++;
        hub->rings = true;
    } else {
        event_question_take(question, answer, hub->window, &hub->rings);
        event_window_reach(hub->window, EVENT_NOW, serial);
    }
    return true;
}

/* What it may mean that luxid has not answered well. True: it is asked again. KILLED is the word of
 * a luxid that ends, and another one begins. */
static bool goes_on(struct event_hub *hub, const GError *error)
{
    bool passing = fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, TEMPORARY) ||
                   fettle_error_is(error, TIMEOUT) || fettle_error_is(error, UNKNOWN_RESULT) ||
                   fettle_error_is(error, KILLED);
    return passing && now_ms(hub) - hub->heard_ms < EVENT_AWAY_MS &&
           env_sleep(hub->env, EVENT_RETRY_MS);
}

/* One question; false: that was the last of this round. */
static bool follow(struct event_hub *hub, guint round)
{
    g_autoptr(GError) error = NULL;
    struct event_place newest = event_window_newest(hub->window);
    struct event_question *question = event_question_new(hub->window, NULL);
    hub->asked = true;
    json_autoptr answer = event_question_ask(
        question, hub->luxid, event_window_stream(hub->window), newest.at[EVENT_NOW],
        hub->rings && wants_record(hub) ? 0 : EVENT_WATCH_S, &error);
    bool on = !task_killed() && !hub->freed && hub->round == round && is_wanted(hub);
    if (on && answer && !take(hub, question, answer))
        fettle_set_error(&error, PROTOCOL, "luxid: WatchChanges: the answer is none");
    event_question_free(question);
    if (on && error && !goes_on(hub, error)) {
        if (!hub->freed)
            let_all_go(hub);
        return env_sleep(hub->env, EVENT_RETRY_MS) && is_wanted(hub) && hub->round == round;
    }
    if (!on || error)
        return on && is_wanted(hub) && hub->round == round;
    if (hub->rings && wants_record(hub) && !take_record(hub) &&
        !env_sleep(hub->env, EVENT_RETRY_MS))
        return false;
    if (!is_wanted(hub))
        return false;
    wake_all(hub);
    return hub->round == round && is_wanted(hub);
}

struct round {
    struct event_hub *hub;
    guint number;
};

static void follow_task(void *data)
{
    g_autofree struct round *round = data;
    struct event_hub *hub = round->hub;
    while (follow(hub, round->number))
        ;
    if (hub->round == round->number)
        hub->follows = false;
    else
        hub->left--;
    hub_unref(hub);
}

/* A call that waits knows nothing of what is wanted besides since: its round is left to end by
 * itself, and another one begins where it had begun. */
static void follow_anew(struct event_hub *hub)
{
    if (hub->follows && !hub->asked)
        return;
    struct round *round = g_new(struct round, 1);
    hub->left += hub->follows ? 1 : 0;
    *round = (struct round){hub, ++hub->round};
    hub->follows = true;
    hub->asked = false;
    hub->refs++;
    task_spawn(hub->env->tasks, follow_task, round);
}

static void begin_task(struct event_hub *hub, bool *runs, task_fn fn)
{
    if (*runs)
        return;
    *runs = true;
    hub->refs++;
    task_spawn(hub->env->tasks, fn, hub);
}

/* --- coming --- */

/* Where the stream stands by luxid's word, who has looked at all fields. */
struct standing {
    char stream[LIMIT_EVENT_STREAM];
    guint64 serial, record;
};

static bool look(struct event_hub *hub, const struct event_wish *wish, struct standing *ret,
                 GError **error)
{
    struct event_window *window = event_window_new();
    struct event_view *view = event_view_take(window, wish->kinds, wish->filter, error);
    struct event_question *question = view ? event_question_new(window, view) : NULL;
    if (view)
        event_view_drop(view);
    event_window_free(window);
    if (!question)
        return false;
    json_autoptr answer = event_question_ask(question, hub->luxid, "", 0, 0, error);
    event_question_free(question);
    const char *stream = json_string_value(json_object_get(answer, "stream"));
    const json_t *record = json_object_get(answer, "record");
    if (!answer)
        return false;
    if (!record) {
        fettle_set_error(error, TEMPORARY,
                         "luxid is of an older version, and does not say which decisions it knows; "
                         "try again when it has been started anew");
        return false;
    }
    g_strlcpy(ret->stream, stream ? stream : "", sizeof ret->stream);
    ret->serial = (guint64)json_integer_value(json_object_get(answer, "serial"));
    ret->record = (guint64)json_integer_value(record);
    return true;
}

/* What this view wants is followed from now on. */
static void widen(struct event_hub *hub, guint32 before, bool record_before, bool new_filter,
                  const struct standing *standing)
{
    if (!record_before && wants_record(hub))
        event_window_begin_record(hub->window, standing->record);
    if (!hub->follows || new_filter || event_window_kinds(hub->window) & ~before)
        follow_anew(hub);
    begin_task(hub, &hub->tends, tend_task);
    begin_task(hub, &hub->looks, users_task);
}

/* A view, with what is known of it from now on; luxid has been asked before. */
static struct event_view *take_view(struct event_hub *hub, const struct event_wish *wish,
                                    const struct standing *standing, GError **error)
{
    bool first = !event_window_kinds(hub->window);
    if (first) {
        event_window_begin(hub->window, standing->stream, standing->serial);
        event_window_begin_record(hub->window, standing->record);
        hub->streams++;
        hub->rings = false;
        hub->heard_ms = now_ms(hub);
    }
    guint32 before = event_window_kinds(hub->window);
    bool record_before = wants_record(hub);
    struct event_view *view = event_view_take(hub->window, wish->kinds, wish->filter, error);
    if (!view)
        return NULL;
    widen(hub, before, record_before || first, event_view_has_new_filter(view), standing);
    return view;
}

/* Of one who was here before. Why he has to begin anew; NULL: he need not. */
static const char *take_place(struct event_hub *hub, const struct event_wish *wish,
                              const struct standing *standing, struct event_place *place)
{
    char stream[LIMIT_EVENT_STREAM];
    struct event_place said, newest = event_window_newest(hub->window);
    *place = newest;
    if (!*wish->place)
        return NULL;
    if (!event_place_parse(wish->place, stream, &said))
        return "its last id is none of this stream";
    if (said.at[EVENT_RECORD] <= MAX(standing->record, newest.at[EVENT_RECORD]))
        place->at[EVENT_RECORD] = said.at[EVENT_RECORD];
    if (strcmp(stream, standing->stream) != 0 || strcmp(stream, event_window_stream(hub->window)))
        return "its last id is of another stream";
    if (said.at[EVENT_NOW] > standing->serial)
        return "its last id is none of this stream";
    place->at[EVENT_NOW] = said.at[EVENT_NOW];
    return NULL;
}

/* Too many for one answer are not recalled, and whoever asked for them is told `reset`. */
static bool recall_record(struct event_hub *hub, guint64 serial, GError **error)
{
    g_autoptr(GError) local = NULL;
    guint64 newest;
    if (event_recall_record(hub->env, hub->luxid, hub->window, serial, &newest, &local) ||
        fettle_error_is(local, LIMIT))
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* What came after that place, if it is not here and luxid remembers it; once for all who come at
 * once. */
static bool recall(struct event_hub *hub, const struct event_view *view,
                   const struct event_place *place, GError **error)
{
    guint64 failures = hub->failures;
    if (event_view_reaches(view, EVENT_NOW, place) && event_view_reaches(view, EVENT_RECORD, place))
        return true;
    if (!task_mutex_lock(&hub->recalling)) {
        fettle_set_ended(error, "the server");
        return false;
    }
    bool asked = failures == hub->failures; /* else those before have waited for the same */
    bool ok = asked;
    if (ok && !event_view_reaches(view, EVENT_NOW, place))
        ok = event_recall_now(hub->luxid, hub->window, place->at[EVENT_NOW], error);
    if (ok && !event_view_reaches(view, EVENT_RECORD, place))
        ok = recall_record(hub, place->at[EVENT_RECORD], error);
    hub->failures += ok || !asked ? 0 : 1;
    task_mutex_unlock(&hub->recalling);
    if (!asked)
        fettle_set_error(error, TEMPORARY, "luxid could not be asked for what was before");
    return ok;
}

static struct http_feed *reader_new(struct event_hub *hub, const struct event_wish *wish,
                                    struct event_view *view, const struct event_place *place,
                                    guint64 stream, const char *why)
{
    struct event_reader *reader = g_new0(struct event_reader, 1);
    *reader = (struct event_reader){.feed = {.next = reader_next, .free = reader_free},
                                    .hub = hub,
                                    .view = view,
                                    .listener = listener_of(hub, wish),
                                    .place = *place,
                                    .stream = stream,
                                    .why = g_strdup(why),
                                    .hello = true,
                                    .said_ms = now_ms(hub)};
    reader->link.data = reader;
    g_queue_push_tail_link(&hub->readers, &reader->link);
    hub->refs++;
    return &reader->feed;
}

/* Whether what is being asked for lacks what is wished. */
static bool needs_round(const struct event_hub *hub, const struct event_wish *wish)
{
    bool shared = hub->follows && !hub->asked;
    return !shared && (!hub->follows || wish->kinds & ~event_window_kinds(hub->window) ||
                       !event_window_has_filter(hub->window, wish->kinds, wish->filter));
}

static struct http_feed *join(struct event_hub *hub, const struct event_wish *wish, GError **error)
{
    struct standing standing;
    struct event_place place;
    if (!look(hub, wish, &standing, error))
        return NULL;
    /* They end within EVENT_WATCH_S; many who have waited share the next one. */
    while (hub->left >= MOST_LEFT && needs_round(hub, wish))
        if (!env_sleep(hub->env, EVENT_RETRY_MS)) {
            fettle_set_ended(error, "the server");
            return NULL;
        }
    struct event_view *view = take_view(hub, wish, &standing, error);
    if (!view)
        return NULL;
    guint64 stream = hub->streams;
    const char *why = take_place(hub, wish, &standing, &place);
    if (*wish->place && !recall(hub, view, &place, error)) {
        event_view_drop(view);
        return NULL;
    }
    return reader_new(hub, wish, view, &place, stream, why);
}

static bool has_room(const struct event_hub *hub, GError **error)
{
    if (hub->readers.length + hub->joining < LIMIT_EVENT_READERS)
        return true;
    fettle_set_error(error, TEMPORARY, "%d clients follow events already; try again",
                     LIMIT_EVENT_READERS);
    return false;
}

struct http_feed *event_hub_join(struct event_hub *hub, const struct event_wish *wish,
                                 GError **error)
{
    if (!has_room(hub, error))
        return NULL;
    hub->joining++;
    hub->refs++;
    struct http_feed *feed = join(hub, wish, error);
    hub->joining--;
    hub_unref(hub);
    return feed;
}

bool event_hub_check(struct event_hub *hub, const struct event_wish *wish, GError **error)
{
    struct standing standing;
    return has_room(hub, error) && look(hub, wish, &standing, error);
}

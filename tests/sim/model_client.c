/*
 * The way to the model of etcd: io/etcd/etcd_client.h and io/loop.h, as the etcd engine uses them,
 * over virtual time and the network between hosts. As the real client does, a call asks the members
 * in turn; a member that it has left may still do what it was sent, at any time within LATE_MS.
 * That is what makes results unknown, and requests late or twice.
 */
#include "io/etcd/etcd_client.h"

#include <string.h>

#include "base/error.h"
#include "base/task.h"
#include "helper/fake_private.h"
#include "io/etcd/etcd_kv.h"
#include "io/loop.h"
#include "mastership.h"

#define LATE_MS 9000   /* how long a connection tries to bring a request to a member */
#define MEMBER_MS 7000 /* how long a member waits for a leader */
#define RETRY_MS 400

struct ms_host *ms_current;

struct etcd_client {
    struct ms_host *host;
    struct env *env; /* of its wconfd */
    guint member;    /* that is asked first */
    bool ended;
};

static GPtrArray *clients; /* of this run: what is on its way may outlive their processes */

struct etcd_client *model_client_new(struct ms_host *host)
{
    struct etcd_client *client = g_new0(struct etcd_client, 1);
    client->host = host;
    client->env = host->wconfd;
    client->member = host->index;
    if (!clients)
        clients = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(clients, client);
    return client;
}

void model_client_end(struct etcd_client *client)
{
    client->ended = true;
}

const char *etcd_client_url(const struct etcd_client *client)
{
    return client->host->ms->hosts[client->member].uuid;
}

void etcd_client_next(struct etcd_client *client)
{
    client->member = (client->member + 1) % client->host->ms->hosts_count;
}

/* Its time is nobody else's. */
guint etcd_patience(void)
{
    return 1;
}

guint etcd_client_count(const struct etcd_client *client)
{
    return client->host->ms->hosts_count;
}

void model_clients_free(void)
{
    g_clear_pointer(&clients, g_ptr_array_unref);
}

/* --- the loop of a process --- */

struct later {
    struct ms_host *host;
    struct env *env; /* its process; NULL: no more */
    guint handle;
    void (*fn)(void *data);
    void *data;
    bool canceled;
};

static GHashTable *laters; /* handle -> struct later; those that may be canceled */

static void later_run(void *data)
{
    struct later *later = data;
    struct fake_process *process = fake_process_of(later->env);
    if (!later->canceled && !process->dead && fake_late(process, later_run, later))
        return;
    if (later->handle)
        g_hash_table_remove(laters, GUINT_TO_POINTER(later->handle));
    ms_current = later->host;
    if (!later->canceled && !process->dead)
        later->fn(later->data);
    g_free(later);
}

static struct later *later_new(void (*fn)(void *data), void *data)
{
    struct later *later = g_new0(struct later, 1);
    g_assert(ms_current && ms_current->wconfd);
    *later = (struct later){.host = ms_current, .env = ms_current->wconfd, .fn = fn, .data = data};
    return later;
}

guint loop_timer(guint ms, void (*fn)(void *data), void *data)
{
    struct later *later = later_new(fn, data);
    struct ms *sim = ms_current->ms;
    guint real = (guint)((double)ms / ms_current->rate) + 1;
    later->handle = fake_timer_add(sim->world, NULL, real, later_run, later);
    if (!laters)
        laters = g_hash_table_new(NULL, NULL);
    g_hash_table_insert(laters, GUINT_TO_POINTER(later->handle), later);
    return later->handle;
}

void loop_timer_cancel(guint handle)
{
    struct later *later = laters ? g_hash_table_lookup(laters, GUINT_TO_POINTER(handle)) : NULL;
    if (later)
        later->canceled = true;
}

/* What is posted is done, whatever becomes of the process: it frees what it was given. */
static void post_run(void *data)
{
    struct later *later = data;
    struct fake_process *process = fake_process_of(later->env);
    if (!process->dead && fake_late(process, post_run, later))
        return;
    ms_current = later->host;
    later->fn(later->data);
    g_free(later);
}

void loop_post(void (*fn)(void *data), void *data)
{
    struct later *later = later_new(fn, data);
    fake_post(later->host->ms->world, post_run, later);
}

gint64 loop_boot_ms(void)
{
    return ms_boot_ms(ms_current);
}

struct sleep {
    struct promise promise;
    bool left;
};

static void sleep_over(void *data)
{
    struct sleep *sleep = data;
    if (sleep->left)
        g_free(sleep);
    else
        promise_complete(&sleep->promise);
}

bool loop_sleep(guint ms)
{
    struct ms_host *host = ms_current;
    struct sleep *sleep = g_new0(struct sleep, 1);
    if (task_killed()) {
        g_free(sleep);
        return false;
    }
    guint real = (guint)((double)ms / host->rate) + 1;
    struct later *later = later_new(sleep_over, sleep);
    fake_timer_add(host->ms->world, NULL, real, post_run, later);
    bool alive = promise_wait(&sleep->promise);
    ms_current = host;
    if (alive || sleep->promise.done)
        g_free(sleep);
    else
        sleep->left = true;
    return alive;
}

/* --- calls --- */

struct call {
    guint refs; /* the task, each message, each timer */
    struct etcd_client *client;
    char *path;
    json_t *body;
    gint64 deadline_ms; /* boot clock */
    guint tries;
    bool sent; /* to one member at least */
    struct promise promise;
    bool ended;
    json_t *answer;
    GError *error;
};

/* A request to one member. */
struct message {
    struct call *call;
    guint try;
    guint member;
    gint64 sent_ms, arrived_ms;
    json_t *answer; /* on its way back; NULL with `refused` or `doubtful` */
    bool refused, doubtful;
};

static void call_unref(struct call *call)
{
    if (--call->refs > 0)
        return;
    g_free(call->path);
    json_decref(call->body);
    json_decref(call->answer);
    g_clear_error(&call->error);
    g_free(call);
}

static void call_end(struct call *call)
{
    call->ended = true;
    if (!call->promise.done)
        promise_complete(&call->promise);
}

static void message_free(struct message *message)
{
    json_decref(message->answer);
    call_unref(message->call);
    g_free(message);
}

static struct ms *ms_of(const struct message *message)
{
    return message->call->client->host->ms;
}

static void later_message(struct message *message, guint ms, void (*fn)(void *data))
{
    fake_timer_add(ms_of(message)->world, NULL, ms, fn, message);
}

static void attempt(struct call *call);

static void attempt_failed(struct call *call, bool sent, const char *why)
{
    struct etcd_client *client = call->client;
    call->sent = call->sent || sent;
    call->tries++;
    client->member = (client->member + 1) % client->host->ms->hosts_count;
    if (call->tries < client->host->ms->hosts_count &&
        ms_boot_ms(client->host) < call->deadline_ms) {
        attempt(call);
        return;
    }
    if (call->sent)
        fettle_set_error(&call->error, UNKNOWN_RESULT, "etcd: %s", why);
    else
        fettle_set_error(&call->error, UNREACHABLE, "etcd: %s", why);
    call_end(call);
}

/* --- the way back --- */

static void answer_arrives(void *data)
{
    struct message *message = data;
    struct call *call = message->call;
    struct etcd_client *client = call->client;
    struct fake_process *process = fake_process_of(client->env);
    if (!client->ended && fake_late(process, answer_arrives, message))
        return;
    ms_current = client->host;
    bool lost = !ms_linked(client->host->ms, message->member, client->host->index);
    bool wanted = !client->ended && !call->ended && call->tries == message->try;
    if (wanted && !lost) {
        if (message->doubtful) {
            attempt_failed(call, true, "no leader");
        } else if (message->refused) {
            fettle_set_error(&call->error, PROTOCOL, "etcd refused %s", call->path);
            call_end(call);
        } else {
            call->answer = json_incref(message->answer);
            call_end(call);
        }
    }
    message_free(message);
}

static guint travel_ms(const struct message *message)
{
    struct ms *ms = ms_of(message);
    return ms_random(ms, 2 + ms->delay_ms);
}

/* --- at the member --- */

static bool is_write(const struct message *message)
{
    return strcmp(message->call->path, ETCD_RANGE) != 0 &&
           strcmp(message->call->path, ETCD_LEASE_KEEP) != 0;
}

static bool serves(struct ms *ms, guint member)
{
    guint leader = (guint)ms->leader;
    return ms->leader >= 0 &&
           (leader == member || (ms_linked(ms, leader, member) && ms_linked(ms, member, leader)));
}

static void member_does(void *data)
{
    struct message *message = data;
    struct ms *ms = ms_of(message);
    const struct ms_host *host = &ms->hosts[message->member];
    gint64 now = ms_now(ms);
    if (!host->powered || !host->member) {
        message_free(message);
    } else if (host->paused ||
               (!serves(ms, message->member) && now - message->arrived_ms < MEMBER_MS)) {
        later_message(message, RETRY_MS, member_does);
    } else if (!serves(ms, message->member)) {
        message->doubtful = true;
        later_message(message, travel_ms(message), answer_arrives);
    } else {
        const struct call *call = message->call;
        if (message->call->ended || message->call->tries != message->try)
            ms->counts->late += is_write(message);
        message->answer = model_etcd_run(ms->model, model_leader_ms(ms), call->client->host,
                                         call->path, call->body);
        message->refused = !message->answer;
        later_message(message, travel_ms(message), answer_arrives);
    }
}

/* The connection brings it as soon as it can. */
static void message_arrives(void *data)
{
    struct message *message = data;
    struct ms *ms = ms_of(message);
    const struct ms_host *member = &ms->hosts[message->member];
    gint64 now = ms_now(ms);
    if (ms_linked(ms, message->call->client->host->index, message->member) && member->member) {
        message->arrived_ms = now;
        guint disk = is_write(message) && member->sync_ms ? ms_random(ms, member->sync_ms) : 0;
        later_message(message, disk, member_does);
    } else if (now - message->sent_ms < LATE_MS && member->powered && member->member) {
        later_message(message, RETRY_MS, message_arrives);
    } else {
        message_free(message);
    }
}

struct patience {
    struct call *call;
    guint try;
    bool sent;
};

static void patience_over(void *data)
{
    struct patience *patience = data;
    struct call *call = patience->call;
    struct etcd_client *client = call->client;
    if (!client->ended && fake_late(fake_process_of(client->env), patience_over, patience))
        return;
    ms_current = client->host;
    if (!client->ended && !call->ended && call->tries == patience->try)
        attempt_failed(call, patience->sent, "no answer in time");
    call_unref(call);
    g_free(patience);
}

static void attempt(struct call *call)
{
    struct etcd_client *client = call->client;
    struct ms *ms = client->host->ms;
    const struct ms_host *member = &ms->hosts[client->member];
    bool linked = ms_linked(ms, client->host->index, client->member) &&
                  ms_linked(ms, client->member, client->host->index);
    /* Without a way there is perhaps a connection from before. */
    bool sent = member->powered && member->member && (linked || ms_random(ms, 2) == 0);
    bool refused = linked && !member->member;
    gint64 left = call->deadline_ms - ms_boot_ms(client->host);
    gint64 wait = refused ? 1 : CLAMP(left, 1, (gint64)ETCD_MEMBER_MS);
    struct patience *patience = g_new(struct patience, 1);
    *patience = (struct patience){call, call->tries, sent};
    call->refs++;
    fake_timer_add(ms->world, NULL, (guint)((double)wait / client->host->rate) + 1, patience_over,
                   patience);
    if (!sent)
        return;
    struct message *message = g_new0(struct message, 1);
    *message = (struct message){
        .call = call, .try = call->tries, .member = client->member, .sent_ms = ms_now(ms)};
    call->refs++;
    later_message(message, travel_ms(message), message_arrives);
}

json_t *etcd_call_wait(struct etcd_client *client, const char *path, json_t *body, guint timeout_ms,
                       GError **error)
{
    struct call *call = g_new0(struct call, 1);
    ms_current = client->host;
    *call = (struct call){.refs = 1,
                          .client = client,
                          .path = g_strdup(path),
                          .body = body,
                          .deadline_ms = ms_boot_ms(client->host) + timeout_ms};
    bool alive = !client->ended && !task_killed();
    if (alive) {
        attempt(call);
        alive = promise_wait(&call->promise);
    }
    ms_current = client->host;
    json_t *answer = alive ? json_steal(&call->answer) : NULL;
    if (!alive)
        fettle_set_error(error, KILLED, "the process has ended");
    else if (!answer)
        g_propagate_error(error, g_steal_pointer(&call->error));
    if (!alive)
        call->promise = (struct promise){.done = true};
    call->ended = true;
    call_unref(call);
    return answer;
}

/* --- who leads --- */

gint64 model_leader_ms(const struct ms *ms)
{
    return ms->leader_base + (gint64)((double)ms_now(ms) * ms->leader_rate);
}

static bool can_lead(const struct ms *ms, guint host)
{
    guint with = 0;
    for (guint i = 0; i < ms->hosts_count; i++) {
        const struct ms_host *other = &ms->hosts[i];
        with += other->powered && other->member && !other->paused &&
                (i == host || (ms_linked(ms, host, i) && ms_linked(ms, i, host)));
    }
    return ms->hosts[host].powered && ms->hosts[host].member && !ms->hosts[host].paused &&
           with > ms->hosts_count / 2;
}

void model_members_changed(struct ms *ms)
{
    if (!ms->etcd || (ms->leader >= 0 && can_lead(ms, (guint)ms->leader)))
        return;
    gint64 before = model_leader_ms(ms);
    int leader = -1;
    for (guint i = 0; i < ms->hosts_count && leader < 0; i++)
        leader = can_lead(ms, i) ? (int)i : -1;
    if (ms->leader >= 0)
        model_etcd_leader_lost(ms->model, before);
    ms->leader = leader;
    if (leader < 0)
        return;
    /* From here on by its clock. */
    ms->leader_rate = ms->hosts[leader].rate;
    ms->leader_base = before - (gint64)((double)ms_now(ms) * ms->leader_rate);
    model_etcd_leader_new(ms->model, before);
}

/* See acceptor.h. */
#include "io/net/acceptor.h"

#include "base/endpoint.h"
#include "base/error.h"
#include "base/limits.h"
#include "io/crash.h"
#include "io/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer of gcc 12 loses its way in the thread-local storage of modules that are loaded at
 * run time, as GIO loads TLS; its search for leaks then dies at exit, once in a few runs. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0";
}
#endif

struct acceptor {
    GSocketService *service;
    const struct acceptor_events *events;
    void *data;
    const char *name;
    struct acceptor_pots *pots;
    GHashTable *arrivals; /* set of struct arrival */
    GQueue waiting;       /* strangers that have said something, in this order; struct arrival */
    guint strangers;      /* that have begun and are not settled */
};

enum stage { STAGE_SILENT, STAGE_WAITING, STAGE_BEGUN, STAGE_SETTLED };

struct arrival {
    struct acceptor *acceptor; /* NULL: it is gone */
    void *owner;
    char *address; /* "192.0.2.7" */
    char *place;
    bool member;
    enum stage stage;
    bool yielded; /* its place is another one's */
    gint64 came_ms;
    GSocketConnection *base; /* until it begins */
    GSource *heard;          /* while it is silent */
    guint timer;
    guint turn; /* timer: of a stranger that has begun, which others may wait for */
};

static void arrival_free(struct arrival *arrival)
{
    loop_timer_cancel(arrival->timer);
    loop_timer_cancel(arrival->turn);
    if (arrival->heard != NULL) {
        g_source_destroy(arrival->heard);
        g_source_unref(arrival->heard);
    }
    g_clear_object(&arrival->base);
    g_free(arrival->address);
    g_free(arrival->place);
    g_free(arrival);
}

void arrival_set_owner(struct arrival *arrival, void *owner)
{
    arrival->owner = owner;
}

void *arrival_owner(const struct arrival *arrival)
{
    return arrival->owner;
}

const char *arrival_place(const struct arrival *arrival)
{
    return arrival->place;
}

void arrival_complain(const struct arrival *arrival, bool proven, const char *why)
{
    struct acceptor *acceptor = arrival->acceptor;
    guint more = 0;

    if (acceptor == NULL || acceptor->events->complain == NULL ||
        (!proven && !acceptor_pots_may_say(acceptor->pots, arrival->address, &more)))
        return;
    g_autofree char *rest =
        more > 0 ? g_strdup_printf(" (and %u more of that address since the last line)", more)
                 : g_strdup("");
    g_autofree char *line = g_strdup_printf("%s: connection from %s refused: %s%s", acceptor->name,
                                            arrival->place, why, rest);
    acceptor->events->complain(line, acceptor->data);
}

/* --- whose turn it is --- */

static void turn_over_cb(void *data)
{
    struct arrival *arrival = data;
    struct acceptor *acceptor = arrival->acceptor;
    arrival->turn = 0;
    if (!acceptor || arrival->stage != STAGE_BEGUN)
        return;
    if (g_queue_is_empty(&acceptor->waiting))
        arrival->turn = loop_timer(LIMIT_SHAKING_MS, turn_over_cb, arrival);
    else
        acceptor->events->late(arrival, acceptor->data);
}

static void begin(struct arrival *arrival)
{
    struct acceptor *acceptor = arrival->acceptor;
    g_autoptr(GSocketConnection) base = g_steal_pointer(&arrival->base);

    arrival->stage = STAGE_BEGUN;
    acceptor->strangers += arrival->member ? 0 : 1;
    if (!arrival->member)
        arrival->turn = loop_timer(LIMIT_SHAKING_MS, turn_over_cb, arrival);
    acceptor->events->begin(arrival, base, acceptor->data);
}

/* Of the address that has the fewest open; of several the first one. NULL: none waits. */
static struct arrival *take_next(struct acceptor *acceptor)
{
    struct arrival *next = NULL;
    guint fewest = G_MAXUINT;
    for (GList *at = acceptor->waiting.head; at; at = at->next) {
        struct arrival *arrival = at->data;
        guint open = acceptor_pots_taken(acceptor->pots, arrival->address);
        if (open < fewest) {
            next = arrival;
            fewest = open;
        }
    }
    g_queue_remove(&acceptor->waiting, next);
    return next;
}

static void begin_next(struct acceptor *acceptor)
{
    struct arrival *next = acceptor->strangers < LIMIT_SHAKING ? take_next(acceptor) : NULL;
    if (next)
        begin(next);
}

/* It gives back what it has by its stage. */
static void leave_stage(struct arrival *arrival, enum stage next)
{
    struct acceptor *acceptor = arrival->acceptor;
    enum stage stage = arrival->stage;

    arrival->stage = next;
    if (acceptor != NULL && stage == STAGE_WAITING)
        g_queue_remove(&acceptor->waiting, arrival);
    if (acceptor != NULL && stage == STAGE_BEGUN && !arrival->member) {
        acceptor->strangers--;
        begin_next(acceptor);
    }
}

void arrival_settle(struct arrival *arrival)
{
    loop_timer_cancel(arrival->timer);
    loop_timer_cancel(arrival->turn);
    arrival->timer = arrival->turn = 0;
    leave_stage(arrival, STAGE_SETTLED);
}

void arrival_end(struct arrival *arrival)
{
    struct acceptor *acceptor = arrival->acceptor;

    if (acceptor != NULL) {
        g_hash_table_remove(acceptor->arrivals, arrival);
        if (!arrival->yielded)
            acceptor_pots_give(acceptor->pots, arrival->address, arrival->member);
    }
    leave_stage(arrival, STAGE_SETTLED);
    arrival_free(arrival);
}

/* --- who gives way --- */

static gint64 idle_since_ms(struct arrival *arrival)
{
    const struct acceptor *acceptor = arrival->acceptor;
    if (arrival->member || arrival->yielded || arrival->stage == STAGE_BEGUN)
        return 0;
    return arrival->stage == STAGE_SETTLED
               ? acceptor->events->idle_since_ms(arrival, acceptor->data)
               : arrival->came_ms;
}

/* NULL: none waits for its peer. */
static struct arrival *find_idle(const struct acceptor *acceptor)
{
    struct arrival *found = NULL;
    guint most = 0;
    gint64 longest_ms = 0;
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, acceptor->arrivals);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        guint open = acceptor_pots_taken(acceptor->pots, ((struct arrival *)key)->address);
        gint64 since_ms = open >= most ? idle_since_ms(key) : 0;
        if (since_ms && (open > most || since_ms < longest_ms)) {
            found = key;
            most = open;
            longest_ms = since_ms;
        }
    }
    return found;
}

/* So that one more can come of whichever address. */
static void make_room(struct acceptor *acceptor)
{
    struct arrival *idle = acceptor->events->idle_since_ms ? find_idle(acceptor) : NULL;
    if (!idle)
        return;
    acceptor_pots_give(acceptor->pots, idle->address, idle->member);
    idle->yielded = true;
    arrival_complain(idle, false, "it waits, and too many connections are open");
    if (idle->stage == STAGE_SETTLED)
        acceptor->events->late(idle, acceptor->data);
    else
        arrival_end(idle);
}

static gboolean heard_cb(GSocket *socket, GIOCondition condition, gpointer data)
{
    struct arrival *arrival = data;
    struct acceptor *acceptor = arrival->acceptor;

    g_clear_pointer(&arrival->heard, g_source_unref);
    arrival->stage = STAGE_WAITING;
    if (arrival->member) {
        begin(arrival);
    } else {
        g_queue_push_tail(&acceptor->waiting, arrival);
        begin_next(acceptor);
    }
    return G_SOURCE_REMOVE;
}

/* Until it says something, or has hung up, which who begins with it will see. */
static void listen_to(struct arrival *arrival)
{
    arrival->heard =
        g_socket_create_source(g_socket_connection_get_socket(arrival->base), G_IO_IN, NULL);
    g_source_set_callback(arrival->heard, G_SOURCE_FUNC(heard_cb), arrival, NULL);
    g_source_attach(arrival->heard, NULL);
}

static void timeout_cb(void *data)
{
    struct arrival *arrival = data;
    struct acceptor *acceptor = arrival->acceptor;

    arrival->timer = 0;
    if (arrival->stage == STAGE_BEGUN) {
        acceptor->events->late(arrival, acceptor->data);
        return;
    }
    arrival_complain(arrival, false, "the TLS handshake takes too long");
    arrival_end(arrival);
}

/* --- they come --- */

static void find_place(struct arrival *arrival)
{
    g_autoptr(GSocketAddress) address = g_socket_connection_get_remote_address(arrival->base, NULL);

    if (!G_IS_INET_SOCKET_ADDRESS(address)) {
        arrival->address = g_strdup("");
        arrival->place = g_strdup("an unknown address");
        return;
    }
    GInetSocketAddress *inet = G_INET_SOCKET_ADDRESS(address);
    arrival->address = g_inet_address_to_string(g_inet_socket_address_get_address(inet));
    arrival->place = endpoint_text(arrival->address, g_inet_socket_address_get_port(inet));
}

static gboolean incoming_cb(GSocketService *service, GSocketConnection *base, GObject *source,
                            gpointer data)
{
    struct acceptor *acceptor = data;
    struct arrival *arrival = g_new0(struct arrival, 1);
    const char *why;

    arrival->acceptor = acceptor;
    arrival->came_ms = loop_boot_ms();
    arrival->base = g_object_ref(base);
    find_place(arrival);
    arrival->member = acceptor->events->is_member != NULL &&
                      acceptor->events->is_member(arrival->address, acceptor->data);
    if (!arrival->member && acceptor_pots_full(acceptor->pots, arrival->address))
        make_room(acceptor);
    if (!acceptor_pots_take(acceptor->pots, arrival->address, arrival->member, &why)) {
        arrival_complain(arrival, false, why);
        arrival_free(arrival);
        return TRUE;
    }
    g_hash_table_add(acceptor->arrivals, arrival);
    arrival->timer = loop_timer(LIMIT_TLS_MS, timeout_cb, arrival);
    g_socket_set_option(g_socket_connection_get_socket(base), IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    listen_to(arrival);
    return TRUE;
}

static bool take_over(struct acceptor *acceptor, int fd, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(GSocket) socket = g_socket_new_from_fd(fd, &local);
    if (socket)
        g_socket_set_listen_backlog(socket, ACCEPTOR_BACKLOG);
    if (socket && g_socket_listen(socket, &local) && /* as many may wait as with one of ours */
        g_socket_listener_add_socket(G_SOCKET_LISTENER(acceptor->service), socket, NULL, &local))
        return true;
    fettle_set_error(error, ENVIRONMENT, "descriptor %d is no socket that listens: %s", fd,
                     local->message);
    return false;
}

static bool begin_to_listen(struct acceptor *acceptor, const struct acceptor_options *options,
                            GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(GSocketAddress) address =
        g_inet_socket_address_new_from_string(options->address, options->port);

    if (address == NULL) {
        fettle_set_error(error, WRONG_INPUT, "address \"%s\" is no IP address", options->address);
        return false;
    }
    g_socket_listener_set_backlog(G_SOCKET_LISTENER(acceptor->service), ACCEPTOR_BACKLOG);
    crash_point("acceptor: listen");
    if (!g_socket_listener_add_address(G_SOCKET_LISTENER(acceptor->service), address,
                                       G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL, NULL,
                                       &local)) {
        bool used = g_error_matches(local, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE);
        fettle_set_error(error, ENVIRONMENT,
                         "cannot listen on %s port %u: %s; %s, or change address and port in %s",
                         options->address, options->port, local->message,
                         used ? "free the port" : "bring the address up on this host",
                         options->settings);
        return false;
    }
    return true;
}

static bool listen_on(struct acceptor *acceptor, const struct acceptor_options *options,
                      GError **error)
{
    if (!(options->fd ? take_over(acceptor, options->fd, error)
                      : begin_to_listen(acceptor, options, error)))
        return false;
    g_signal_connect(acceptor->service, "incoming", G_CALLBACK(incoming_cb), acceptor);
    g_socket_service_start(acceptor->service);
    return true;
}

struct acceptor *acceptor_new(const struct acceptor_options *options,
                              const struct acceptor_events *events, void *data, GError **error)
{
    struct acceptor *acceptor = g_new0(struct acceptor, 1);

    acceptor->events = events;
    acceptor->data = data;
    acceptor->name = options->name;
    acceptor->pots = acceptor_pots_new(&options->limits);
    acceptor->arrivals = g_hash_table_new(NULL, NULL);
    g_queue_init(&acceptor->waiting);
    acceptor->service = g_socket_service_new();
    if (!listen_on(acceptor, options, error))
        g_clear_pointer(&acceptor, acceptor_free);
    return acceptor;
}

GIOStream *acceptor_tls(GSocketConnection *base, GTlsCertificate *certificate,
                        GTlsDatabase *authority, GError **error)
{
    return g_initable_new(
        g_tls_backend_get_server_connection_type(g_tls_backend_get_default()), NULL, error,
        "base-io-stream", base, "certificate", certificate, "database", authority,
        "require-close-notify", FALSE, "authentication-mode",
        authority ? G_TLS_AUTHENTICATION_REQUIRED : G_TLS_AUTHENTICATION_NONE, NULL);
}

void acceptor_limit(struct acceptor *acceptor, guint strangers)
{
    acceptor_pots_limit(acceptor->pots, strangers);
}

static void orphan(struct arrival *arrival)
{
    arrival->acceptor = NULL;
    if (arrival->stage < STAGE_BEGUN) {
        arrival_free(arrival);
        return;
    }
    loop_timer_cancel(arrival->timer);
    loop_timer_cancel(arrival->turn);
    arrival->timer = arrival->turn = 0;
}

void acceptor_free(struct acceptor *acceptor)
{
    GHashTableIter iter;
    void *arrival;

    if (acceptor == NULL)
        return;
    g_socket_service_stop(acceptor->service);
    g_socket_listener_close(G_SOCKET_LISTENER(acceptor->service));
    g_signal_handlers_disconnect_by_data(acceptor->service, acceptor);
    g_object_unref(acceptor->service);
    g_queue_clear(&acceptor->waiting);
    g_hash_table_iter_init(&iter, acceptor->arrivals);
    while (g_hash_table_iter_next(&iter, &arrival, NULL))
        orphan(arrival);
    g_hash_table_unref(acceptor->arrivals);
    acceptor_pots_free(acceptor->pots);
    g_free(acceptor);
}

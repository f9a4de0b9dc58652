/*
 * See remote.h.
 */
#define NBDKIT_API_VERSION 2
#include "backend/relay/remote.h"

#include <nbdkit-plugin.h>

#include <errno.h>
#include <libnbd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 5000    /* one try, from the first packet to the end of the handshakes */
#define RETRY_MS 200       /* between two tries */
#define SILENCE_MS 5000    /* sent bytes that nobody acknowledges for so long: a broken link */
#define KEEPALIVE_IDLE_S 2 /* the same for a link on which nothing is under way */
#define KEEPALIVE_PROBE_S 1
#define KEEPALIVE_PROBES 3
#define USER "qemu"

struct pending {
    struct remote_request what;
    struct remote *remote;
    uint64_t client;
    bool done;
    pthread_cond_t changed;
    TAILQ_ENTRY(pending) entry;
};
TAILQ_HEAD(pending_list, pending);

struct remote {
    struct remote_place place;
    int wake;                 /* eventfd: something is waiting, or `renew` */
    struct nbd_handle *first; /* of remote_check(), for the thread */

    pthread_mutex_t lock; /* guards what follows */
    uint64_t client;      /* the newest */
    bool renew;           /* the connection has carried requests of an older client */
    struct pending_list waiting, flying;

    /* The thread's own */
    bool faulty;     /* a request has failed: this connection is of no use any more */
    bool complained; /* about this outage */
};

struct remote *remote_new(const struct remote_place *place)
{
    struct remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL)
        return NULL;
    remote->place = *place;
    remote->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TAILQ_INIT(&remote->waiting);
    TAILQ_INIT(&remote->flying);
    if (remote->wake >= 0 && pthread_mutex_init(&remote->lock, NULL) == 0)
        return remote;
    free(remote);
    return NULL;
}

static void wake_thread(const struct remote *remote)
{
    uint64_t one = 1;
    (void)!write(remote->wake, &one, sizeof one); /* full: it is awake */
}

static void wait_ms(int ms)
{
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- connecting --- */

/* Once in an outage, so that a long one fills no log. */
static void complain(struct remote *remote, const char *what, const char *why)
{
    if (!remote->complained)
        nbdkit_error("export %s at %s port %s: %s: %s", remote->place.name, remote->place.address,
                     remote->place.port, what, why);
    remote->complained = true;
}

/* libnbd's words without the name of its function. */
static const char *reason(void)
{
    const char *words = nbd_get_error();
    const char *after =
        words != NULL && strncmp(words, "nbd_", 4) == 0 ? strstr(words, ": ") : NULL;
    return after != NULL ? after + 2 : words != NULL ? words : "no reason given";
}

static bool set_up(struct nbd_handle *nbd, const struct remote_place *place)
{
    return nbd_set_export_name(nbd, place->name) == 0 &&
           nbd_set_tls(nbd, LIBNBD_TLS_REQUIRE) == 0 && nbd_set_tls_username(nbd, USER) == 0 &&
           nbd_set_tls_psk_file(nbd, place->key) == 0;
}

/* 0 when it stands, or why it does not; EINPROGRESS: the time is over. */
static int await_connection(int fd, int64_t deadline)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t len = sizeof failure;
    for (int64_t left = deadline - now_ms(); left > 0; left = deadline - now_ms())
        if (poll(&look, 1, (int)left) > 0)
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &len) == 0 ? failure : errno;
    return EINPROGRESS;
}

/* -1: not this time; the reason has been told. Not by nbd_aio_connect_tcp(), since libnbd takes
 * what that is given for a host's name, which the server is told in the TLS handshake, and GnuTLS
 * takes no IPv6 address for one. */
static int reach(struct remote *remote, int64_t deadline)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *at = NULL;
    int failure = EADDRNOTAVAIL, on = 1, fd = -1;
    if (getaddrinfo(remote->place.address, remote->place.port, &hints, &at) == 0) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        failure = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
        freeaddrinfo(at);
    }
    if (fd >= 0 && failure == EINPROGRESS)
        failure = await_connection(fd, deadline);
    if (failure == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
    }
    complain(remote, "cannot connect", failure == EINPROGRESS ? "no answer" : strerror(failure));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A host that is gone says nothing; this is how long it takes to notice, so that the connection is
 * made again soon after it is back. An export that is slow, or held, acknowledges bytes. */
static void notice_silence(struct nbd_handle *nbd)
{
    int fd = nbd_aio_get_fd(nbd);
    int on = 1, silence = SILENCE_MS, idle = KEEPALIVE_IDLE_S, each = KEEPALIVE_PROBE_S,
        probes = KEEPALIVE_PROBES;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static bool shake_hands(struct remote *remote, struct nbd_handle *nbd, int64_t deadline)
{
    while (nbd_aio_is_connecting(nbd) == 1) {
        int64_t left = deadline - now_ms();
        if (left <= 0) {
            complain(remote, "cannot connect", "no answer");
            return false;
        }
        if (nbd_poll(nbd, (int)left) < 0)
            break;
    }
    if (nbd_aio_is_ready(nbd) == 1)
        return true;
    complain(remote, "cannot connect", reason());
    return false;
}

static bool is_fit(struct remote *remote, struct nbd_handle *nbd)
{
    char why[96];
    int64_t bytes = nbd_get_size(nbd);
    if (bytes < (int64_t)remote->place.bytes) {
        snprintf(why, sizeof why, "it has %lld bytes, fewer than the disk's %lld", (long long)bytes,
                 (long long)remote->place.bytes);
        complain(remote, "cannot be used", why);
        return false;
    }
    if (nbd_is_read_only(nbd) == 0 && nbd_can_flush(nbd) == 1 && nbd_can_fua(nbd) == 1 &&
        nbd_can_zero(nbd) == 1 && nbd_can_trim(nbd) == 1)
        return true;
    complain(remote, "cannot be used", "writes, flushes, FUA, zeroes and trims are all needed");
    return false;
}

/* libnbd takes the socket, whatever comes of it. */
static bool begin(struct remote *remote, struct nbd_handle *nbd, int64_t deadline)
{
    if (nbd == NULL || !set_up(nbd, &remote->place)) {
        complain(remote, "cannot connect", reason());
        return false;
    }
    int fd = reach(remote, deadline);
    if (fd >= 0 && nbd_aio_connect_socket(nbd, fd) == 0)
        return true;
    if (fd >= 0)
        complain(remote, "cannot connect", reason());
    return false;
}

/* NULL: not this time; the reason has been told. */
static struct nbd_handle *dial(struct remote *remote)
{
    int64_t deadline = now_ms() + CONNECT_MS;
    struct nbd_handle *nbd = nbd_create();
    if (begin(remote, nbd, deadline) && shake_hands(remote, nbd, deadline) && is_fit(remote, nbd)) {
        notice_silence(nbd);
        return nbd;
    }
    nbd_close(nbd);
    return NULL;
}

bool remote_check(struct remote *remote)
{
    remote->first = dial(remote);
    return remote->first != NULL;
}

/* --- requests under way --- */

static int answered(void *data, int *error)
{
    struct pending *pending = data;
    struct remote *remote = pending->remote;
    if (*error != 0) {
        if (!remote->faulty)
            complain(remote, "a request was not done", strerror(*error));
        remote->faulty = true;
        return 1;
    }
    pthread_mutex_lock(&remote->lock);
    if (pending->client == remote->client) {
        TAILQ_REMOVE(&remote->flying, pending, entry);
        pending->done = true;
        pthread_cond_signal(&pending->changed);
    }
    pthread_mutex_unlock(&remote->lock);
    return 1;
}

/* False: the connection does not take it. */
static bool send_request(struct nbd_handle *nbd, struct pending *pending)
{
    const struct remote_request *what = &pending->what;
    nbd_completion_callback then = {.callback = answered, .user_data = pending};
    switch (what->kind) {
    case REMOTE_READ:
        return nbd_aio_pread(nbd, what->buffer, what->count, what->offset, then, what->flags) >= 0;
    case REMOTE_WRITE:
        return nbd_aio_pwrite(nbd, what->buffer, what->count, what->offset, then, what->flags) >= 0;
    case REMOTE_ZERO:
        return nbd_aio_zero(nbd, what->count, what->offset, then, what->flags) >= 0;
    case REMOTE_TRIM:
        return nbd_aio_trim(nbd, what->count, what->offset, then, what->flags) >= 0;
    case REMOTE_FLUSH:
        return nbd_aio_flush(nbd, then, what->flags) >= 0;
    }
    return false;
}

/* The next one that waits, which flies from now on; NULL: there is none. `ret_renew`: nothing may
 * be sent on this connection any more. */
static struct pending *take_next(struct remote *remote, bool *ret_renew)
{
    pthread_mutex_lock(&remote->lock);
    struct pending *next = remote->renew ? NULL : TAILQ_FIRST(&remote->waiting);
    *ret_renew = remote->renew;
    if (next != NULL) {
        TAILQ_REMOVE(&remote->waiting, next, entry);
        TAILQ_INSERT_TAIL(&remote->flying, next, entry);
    }
    pthread_mutex_unlock(&remote->lock);
    return next;
}

/* False: this connection is over. The lock is not held while libnbd works, since it may answer from
 * within. */
static bool send_waiting(struct remote *remote, struct nbd_handle *nbd)
{
    bool renew = false;
    struct pending *next;
    while (!remote->faulty && (next = take_next(remote, &renew)) != NULL)
        if (!send_request(nbd, next)) {
            complain(remote, "a request was not taken", reason());
            return false;
        }
    return !renew && !remote->faulty;
}

static bool await_news(const struct remote *remote, struct nbd_handle *nbd)
{
    unsigned direction = nbd_aio_get_direction(nbd);
    struct pollfd fds[] = {
        {.fd = nbd_aio_get_fd(nbd),
         .events = (short)(((direction & LIBNBD_AIO_DIRECTION_READ) != 0 ? POLLIN : 0) |
                           ((direction & LIBNBD_AIO_DIRECTION_WRITE) != 0 ? POLLOUT : 0))},
        {.fd = remote->wake, .events = POLLIN},
    };
    uint64_t count;
    if (fds[0].fd < 0 || (poll(fds, 2, -1) < 0 && errno != EINTR))
        return false;
    if ((fds[1].revents & POLLIN) != 0)
        (void)!read(remote->wake, &count, sizeof count);
    direction = nbd_aio_get_direction(nbd);
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
        (direction & LIBNBD_AIO_DIRECTION_READ) != 0)
        return nbd_aio_notify_read(nbd) == 0;
    if ((fds[0].revents & POLLOUT) != 0 && (direction & LIBNBD_AIO_DIRECTION_WRITE) != 0)
        return nbd_aio_notify_write(nbd) == 0;
    return (fds[0].revents & (POLLERR | POLLNVAL)) == 0;
}

/* Until the connection is lost, or nobody's any more. */
static void serve(struct remote *remote, struct nbd_handle *nbd)
{
    remote->faulty = false;
    remote->complained = false;
    while (send_waiting(remote, nbd) && await_news(remote, nbd) && !remote->faulty &&
           nbd_aio_is_dead(nbd) == 0 && nbd_aio_is_closed(nbd) == 0)
        ;
    if (nbd_aio_is_dead(nbd) == 1)
        complain(remote, "connection lost", reason());
}

/* What had no answer is sent again first, in its order. */
static void take_back(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    remote->renew = false;
    TAILQ_CONCAT(&remote->flying, &remote->waiting, entry);
    TAILQ_CONCAT(&remote->waiting, &remote->flying, entry);
    pthread_mutex_unlock(&remote->lock);
}

static void *run(void *data)
{
    struct remote *remote = data;
    struct nbd_handle *nbd = remote->first != NULL ? remote->first : dial(remote);
    for (;; nbd = dial(remote)) {
        if (nbd != NULL)
            serve(remote, nbd);
        /* Nothing refers to a request of an older client after this. */
        nbd_close(nbd);
        bool again;
        pthread_mutex_lock(&remote->lock);
        again = remote->renew;
        pthread_mutex_unlock(&remote->lock);
        take_back(remote);
        if (!again)
            wait_ms(RETRY_MS);
    }
    return NULL;
}

bool remote_start(struct remote *remote)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, run, remote) == 0 && pthread_detach(thread) == 0;
}

/* --- clients --- */

uint64_t remote_client(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    uint64_t client = ++remote->client;
    if (client > 1) {
        remote->renew = true;
        TAILQ_INIT(&remote->waiting);
        TAILQ_INIT(&remote->flying);
    }
    pthread_mutex_unlock(&remote->lock);
    wake_thread(remote);
    return client;
}

_Noreturn static void hold(void)
{
    for (;;)
        pause();
}

void remote_do(struct remote *remote, uint64_t client, const struct remote_request *request)
{
    struct pending pending = {.what = *request, .remote = remote, .client = client};
    pthread_cond_init(&pending.changed, NULL);
    pthread_mutex_lock(&remote->lock);
    if (client != remote->client) {
        pthread_mutex_unlock(&remote->lock);
        hold();
    }
    TAILQ_INSERT_TAIL(&remote->waiting, &pending, entry);
    pthread_mutex_unlock(&remote->lock);
    wake_thread(remote); /* which would only wait for the lock if we had it */
    pthread_mutex_lock(&remote->lock);
    while (!pending.done)
        pthread_cond_wait(&pending.changed, &remote->lock);
    pthread_mutex_unlock(&remote->lock);
    pthread_cond_destroy(&pending.changed);
}

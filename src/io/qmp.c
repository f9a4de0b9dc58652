/*
 * The QMP client: lines in, lines out, answers matched to waiting tasks by id. See qmp.h.
 */
#include "io/qmp.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A task that waits for one message; on the heap, because its task may be killed before the answer
 * comes. */
struct call {
    struct promise over;
    guint64 id;
    guint timer;
    json_t *answer; /* the whole message */
    GError *error;
};

struct qmp {
    guint refs; /* one of the owner, one of each call under way: an event may close us while a task
                   waits */
    int fd;     /* -1: closed */
    guint source_in;
    guint source_out;
    GString *in;
    GString *out;
    int out_fd; /* goes with what is sent next; -1: nothing */
    guint64 last_id;
    GHashTable *calls;     /* id -> struct call, borrowed from the waiting tasks */
    struct call *greeting; /* who waits for it; NULL after it */
    bool greeted;
    struct qmp_events events;
};

static void qmp_unref(struct qmp *qmp)
{
    if (--qmp->refs > 0)
        return;
    g_assert(qmp->fd < 0);
    g_string_free(qmp->in, TRUE);
    g_string_free(qmp->out, TRUE);
    g_hash_table_unref(qmp->calls);
    g_free(qmp);
}

static void call_finish(struct call *call, json_t *answer, const GError *error)
{
    if (call->over.done)
        return;
    call->answer = answer != NULL ? json_incref(answer) : NULL;
    call->error = error != NULL ? g_error_copy(error) : NULL;
    promise_complete(&call->over);
}

static void qmp_fail_calls(struct qmp *qmp, const GError *why)
{
    GHashTableIter iter;
    gpointer call;
    g_hash_table_iter_init(&iter, qmp->calls);
    while (g_hash_table_iter_next(&iter, NULL, &call))
        call_finish(call, NULL, why);
    if (qmp->greeting != NULL)
        call_finish(qmp->greeting, NULL, why);
}

static void qmp_drop_fd(struct qmp *qmp)
{
    if (qmp->source_in != 0)
        g_source_remove(qmp->source_in);
    if (qmp->source_out != 0)
        g_source_remove(qmp->source_out);
    qmp->source_in = qmp->source_out = 0;
    close(qmp->fd);
    qmp->fd = -1;
}

/* The peer's doing: whoever waits is told, then the owner. Takes the error. */
static void qmp_lost(struct qmp *qmp, GError *why)
{
    g_autoptr(GError) reason = why;
    if (qmp->fd < 0)
        return;
    qmp_drop_fd(qmp);
    qmp_fail_calls(qmp, reason);
    if (qmp->greeted && qmp->events.closed != NULL)
        qmp->events.closed(reason, qmp->events.user);
}

void qmp_close(struct qmp *qmp)
{
    if (qmp == NULL)
        return;
    if (qmp->fd >= 0) {
        g_autoptr(GError) why =
            g_error_new(FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE, "QMP connection was closed");
        qmp_drop_fd(qmp);
        qmp_fail_calls(qmp, why);
    }
    memset(&qmp->events, 0, sizeof qmp->events);
    qmp_unref(qmp);
}

bool qmp_is_open(const struct qmp *qmp)
{
    return qmp->fd >= 0;
}

static bool qmp_take_answer(struct qmp *qmp, json_t *message, GError **error)
{
    const json_t *id = json_object_get(message, "id");
    if (!json_is_integer(id)) {
        const char *desc =
            json_string_value(json_object_get(json_object_get(message, "error"), "desc"));
        fettle_set_error(error, PROTOCOL, "QMP: an answer without an id%s%s",
                         desc != NULL ? ": " : "", desc != NULL ? desc : "");
        return false;
    }
    guint64 number = (guint64)json_integer_value(id);
    if (number == 0 || number > qmp->last_id) {
        fettle_set_error(error, PROTOCOL,
                         "QMP: an answer to command %" G_GUINT64_FORMAT ", which was never sent",
                         number);
        return false;
    }
    struct call *call = g_hash_table_lookup(qmp->calls, &number);
    if (call != NULL) /* else the one who asked has given up */
        call_finish(call, message, NULL);
    return true;
}

static bool qmp_take_message(struct qmp *qmp, json_t *message, GError **error)
{
    if (!qmp->greeted) {
        if (!json_is_object(json_object_get(message, "QMP"))) {
            fettle_set_error(error, PROTOCOL, "QMP: the first line is no greeting");
            return false;
        }
        qmp->greeted = true;
        if (qmp->greeting != NULL)
            call_finish(qmp->greeting, message, NULL);
        return true;
    }
    const char *event = json_string_value(json_object_get(message, "event"));
    if (event != NULL) {
        json_autoptr data = json_incref(json_object_get(message, "data"));
        if (!json_is_object(data)) {
            json_decref(data);
            data = json_object();
        }
        if (qmp->events.event != NULL)
            qmp->events.event(event, data, qmp->events.user);
        return true;
    }
    if (json_object_get(message, "return") != NULL || json_object_get(message, "error") != NULL)
        return qmp_take_answer(qmp, message, error);
    fettle_set_error(error, PROTOCOL, "QMP: a message that is neither an answer nor an event");
    return false;
}

/* Handles every whole line that has come. */
static bool qmp_take_lines(struct qmp *qmp, GError **error)
{
    char *end;
    while (qmp->fd >= 0 && (end = memchr(qmp->in->str, '\n', qmp->in->len)) != NULL) {
        gsize len = (gsize)(end - qmp->in->str);
        if (len > LIMIT_QMP_LINE_BYTES)
            break;
        json_autoptr message = json_parse_limited(qmp->in->str, len, LIMIT_QMP_LINE_BYTES, error);
        if (message == NULL) {
            g_prefix_error(error, "QMP: ");
            return false;
        }
        g_string_erase(qmp->in, 0, (gssize)len + 1);
        if (!json_is_object(message)) {
            fettle_set_error(error, PROTOCOL, "QMP: a message that is no object");
            return false;
        }
        if (!qmp_take_message(qmp, message, error))
            return false;
    }
    if (qmp->in->len <= LIMIT_QMP_LINE_BYTES)
        return true;
    fettle_set_error(error, LIMIT, "QMP: a line of more than %zu bytes",
                     (size_t)LIMIT_QMP_LINE_BYTES);
    return false;
}

static gboolean qmp_readable(gint fd, GIOCondition condition, gpointer data)
{
    struct qmp *qmp = data;
    char chunk[16384];
    GError *error = NULL;
    qmp->refs++; /* an event handler may close us */
    ssize_t got = read(fd, chunk, sizeof chunk);
    if (got > 0) {
        g_string_append_len(qmp->in, chunk, got);
        if (!qmp_take_lines(qmp, &error))
            qmp_lost(qmp, error);
    } else if (got == 0) {
        qmp_lost(qmp, g_error_new(FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE,
                                  "QMP connection was closed by QEMU"));
    } else if (errno != EAGAIN && errno != EINTR) {
        qmp_lost(qmp, g_error_new(FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE, "QMP connection: %s",
                                  g_strerror(errno)));
    }
    gboolean more = qmp->fd >= 0 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
    qmp_unref(qmp);
    return more;
}

/* Writes what fits; returns whether something is left. Errors are seen by the reading side. */
static bool qmp_flush(struct qmp *qmp)
{
    while (qmp->out->len > 0) {
        ssize_t sent = send(qmp->fd, qmp->out->str, qmp->out->len, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        g_string_erase(qmp->out, 0, sent);
    }
    return false;
}

static gboolean qmp_writable(gint fd, GIOCondition condition, gpointer data)
{
    struct qmp *qmp = data;
    if (qmp_flush(qmp))
        return G_SOURCE_CONTINUE;
    qmp->source_out = 0;
    return G_SOURCE_REMOVE;
}

/* The file travels with the first byte. What does not fit is sent without it. */
static void qmp_send_descriptor(struct qmp *qmp)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec text = {qmp->out->str, qmp->out->len};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &qmp->out_fd, sizeof(int));
    ssize_t sent = sendmsg(qmp->fd, &message, MSG_NOSIGNAL);
    if (sent > 0)
        g_string_erase(qmp->out, 0, sent);
}

static void qmp_send(struct qmp *qmp, const json_t *message)
{
    g_autofree char *text = json_to_text(message);
    g_string_append(qmp->out, text);
    g_string_append_c(qmp->out, '\n');
    if (qmp->out_fd >= 0)
        qmp_send_descriptor(qmp);
    qmp->out_fd = -1;
    if (qmp->source_out == 0 && qmp_flush(qmp))
        qmp->source_out = g_unix_fd_add(qmp->fd, G_IO_OUT, qmp_writable, qmp);
}

static void call_expired(void *data)
{
    struct call *call = data;
    call->timer = 0;
    g_autoptr(GError) error = g_error_new(FETTLE_ERROR, FETTLE_ERROR_TIMEOUT, "no answer in time");
    call_finish(call, NULL, error);
}

/* Waits for the message; a new reference, or NULL with the error. */
static json_t *call_wait(struct call *call, guint timeout_ms, GError **error)
{
    call->timer = loop_timer(timeout_ms, call_expired, call);
    bool alive = promise_wait(&call->over);
    loop_timer_cancel(call->timer);
    if (!alive) {
        fettle_set_error(error, KILLED, "the process that waited for QEMU has ended");
        return NULL;
    }
    if (call->answer == NULL)
        g_propagate_error(error, g_steal_pointer(&call->error));
    return json_steal(&call->answer);
}

static void call_free(struct call *call)
{
    json_decref(call->answer);
    g_clear_error(&call->error);
    g_free(call);
}

/* The answer's value, or its error in our terms. */
static json_t *qmp_open_answer(const json_t *message, const char *command, GError **error)
{
    const json_t *failure = json_object_get(message, "error");
    if (failure == NULL)
        return json_incref(json_object_get(message, "return"));
    const char *class = json_string_value(json_object_get(failure, "class"));
    const char *text = json_string_value(json_object_get(failure, "desc"));
    bool absent =
        g_strcmp0(class, "DeviceNotFound") == 0 || g_strcmp0(class, "DeviceNotActive") == 0;
    g_set_error(error, FETTLE_ERROR, absent ? FETTLE_ERROR_UNKNOWN_ENTITY : FETTLE_ERROR_HYPERVISOR,
                "%s: %s", command, text != NULL ? text : "an error without words");
    return NULL;
}

static json_t *qmp_call(struct qmp *qmp, const char *verb, const char *command, json_t *arguments,
                        guint timeout_ms, GError **error)
{
    json_autoptr message = json_object();
    if (arguments != NULL)
        json_object_set_new(message, "arguments", arguments);
    if (qmp->fd < 0) {
        fettle_set_error(error, UNREACHABLE, "%s: no QMP connection", command);
        return NULL;
    }
    struct call *call = g_new0(struct call, 1);
    call->id = ++qmp->last_id;
    json_object_set_new(message, verb, json_string(command));
    json_object_set_new(message, "id", json_integer((json_int_t)call->id));
    g_hash_table_insert(qmp->calls, &call->id, call);
    qmp->refs++;
    crash_point("qmp: command");
    qmp_send(qmp, message);
    json_autoptr answer = call_wait(call, timeout_ms, error);
    g_hash_table_remove(qmp->calls, &call->id);
    call_free(call);
    qmp_unref(qmp);
    if (answer == NULL) {
        g_prefix_error(error, "%s: ", command);
        return NULL;
    }
    return qmp_open_answer(answer, command, error);
}

json_t *qmp_execute(struct qmp *qmp, const char *command, json_t *arguments, guint timeout_ms,
                    GError **error)
{
    return qmp_call(qmp, "execute", command, arguments, timeout_ms, error);
}

json_t *qmp_execute_oob(struct qmp *qmp, const char *command, json_t *arguments, guint timeout_ms,
                        GError **error)
{
    return qmp_call(qmp, "exec-oob", command, arguments, timeout_ms, error);
}

json_t *qmp_give_descriptor(struct qmp *qmp, const char *command, json_t *arguments, int fd,
                            guint timeout_ms, GError **error)
{
    json_autoptr held = arguments;
    if (qmp->fd < 0) {
        fettle_set_error(error, UNREACHABLE, "%s: no QMP connection", command);
        return NULL;
    }
    if (qmp->out->len > 0) {
        fettle_set_error(error, LIMIT, "%s: QEMU has not taken earlier commands yet", command);
        return NULL;
    }
    qmp->out_fd = fd;
    return qmp_call(qmp, "execute", command, json_incref(held), timeout_ms, error);
}

/* A connected socket. A listener's full backlog reads as "nobody listens": QEMU's takes one client
 * at a time. */
static int qmp_open_socket(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fettle_set_error(error, WRONG_INPUT, "socket name %s is too long", path);
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    g_assert(fd >= 0);
    crash_point("qmp: connect");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    fettle_set_error(error, UNREACHABLE, "%s: %s", path, g_strerror(errno));
    close(fd);
    return -1;
}

static bool qmp_await_greeting(struct qmp *qmp, const char *path, guint timeout_ms, GError **error)
{
    struct call *waiting = g_new0(struct call, 1);
    qmp->greeting = waiting;
    json_autoptr greeting = call_wait(waiting, timeout_ms, error);
    qmp->greeting = NULL;
    call_free(waiting);
    if (greeting == NULL)
        g_prefix_error(error, "%s: QMP greeting: ", path);
    return greeting != NULL;
}

struct qmp *qmp_connect(const char *path, guint timeout_ms, const struct qmp_events *events,
                        GError **error)
{
    int fd = qmp_open_socket(path, error);
    if (fd < 0)
        return NULL;
    struct qmp *qmp = g_new0(struct qmp, 1);
    qmp->refs = 1;
    qmp->fd = fd;
    qmp->out_fd = -1;
    qmp->in = g_string_new(NULL);
    qmp->out = g_string_new(NULL);
    qmp->calls = g_hash_table_new(g_int64_hash, g_int64_equal);
    qmp->source_in = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP | G_IO_ERR, qmp_readable, qmp);
    json_autoptr answer = NULL;
    if (qmp_await_greeting(qmp, path, timeout_ms, error))
        answer = qmp_execute(qmp, "qmp_capabilities", json_make("{s:[s]}", "enable", "oob"),
                             timeout_ms, error);
    if (answer == NULL || qmp->fd < 0) {
        if (answer != NULL)
            fettle_set_error(error, UNREACHABLE, "%s: QMP connection was closed by QEMU", path);
        qmp_close(qmp);
        return NULL;
    }
    qmp->events = *events;
    return qmp;
}

/*
 * Commands to the supervisor as bytes (wire.h). Both sides block: the supervisor does one thing at
 * a time.
 */
#include "lab/wire.h"

#include "base/error.h"
#include "base/limits.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WIRE_END '\x03'
#define WIRE_BACKLOG 16
#define WIRE_TIMEOUT_S 240 /* a power cut takes as long as whoever is in the way */

static bool address_of(const char *path, struct sockaddr_un *ret_address, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (g_strlcpy(address.sun_path, path, sizeof(address.sun_path)) >= sizeof(address.sun_path)) {
        fettle_set_error(error, WRONG_INPUT, "the name of the socket %s is too long", path);
        return false;
    }
    *ret_address = address;
    return true;
}

static int unix_socket(GError **error)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fettle_set_error(error, INTERNAL, "cannot make a socket: %s", g_strerror(errno));
    return fd;
}

json_t *wire_receive(int fd, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    for (;;) {
        guint8 chunk[KIB(4)];
        ssize_t len = read(fd, chunk, sizeof(chunk));
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN) {
            fettle_set_error(error, TIMEOUT, "no answer within %d s", WIRE_TIMEOUT_S);
            return NULL;
        }
        if (len <= 0) {
            fettle_set_error(error, PROTOCOL, "the connection ended before its frame did");
            return NULL;
        }
        g_byte_array_append(bytes, chunk, (guint)len);
        if (bytes->len > LIMIT_LAB_FRAME_BYTES) {
            fettle_set_error(error, LIMIT, "a frame has more than %zu bytes",
                             LIMIT_LAB_FRAME_BYTES);
            return NULL;
        }
        if (chunk[len - 1] == WIRE_END)
            return json_parse_limited((const char *)bytes->data, bytes->len - 1,
                                      LIMIT_LAB_FRAME_BYTES, error);
    }
}

bool wire_send(int fd, const json_t *document, GError **error)
{
    g_autofree char *text = json_to_text(document);
    size_t len = strlen(text) + 1;
    text[len - 1] = WIRE_END;
    for (size_t sent = 0; sent < len;) {
        ssize_t part = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0) {
            fettle_set_error(error, UNREACHABLE, "the other side is gone: %s", g_strerror(errno));
            return false;
        }
        sent += (size_t)part;
    }
    return true;
}

static json_t *unpack_answer(json_t *answer, GError **error)
{
    const char *name, *message;
    if (json_unpack(answer, "{s:[s, s]}", "error", &name, &message) == 0) {
        g_set_error_literal(error, FETTLE_ERROR, (gint)fettle_error_from_name(name), message);
        return NULL;
    }
    json_t *result = json_object_get(answer, "result");
    if (!result)
        fettle_set_error(error, PROTOCOL, "the supervisor's answer has neither result nor error");
    return json_incref(result);
}

json_t *wire_call(const char *socket_path, const json_t *request, GError **error)
{
    struct sockaddr_un address;
    int fd = address_of(socket_path, &address, error) ? unix_socket(error) : -1;
    if (fd < 0)
        return NULL;
    struct timeval patience = {.tv_sec = WIRE_TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    json_autoptr answer = NULL;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        fettle_set_error(error, WRONG_STATE,
                         "the lab's supervisor does not run (%s: %s); `fettle lab down` removes "
                         "what is left of the lab",
                         socket_path, g_strerror(errno));
    else if (wire_send(fd, request, error))
        answer = wire_receive(fd, error);
    close(fd);
    return answer ? unpack_answer(answer, error) : NULL;
}

int wire_listen(const char *socket_path, GError **error)
{
    struct sockaddr_un address;
    int fd = address_of(socket_path, &address, error) ? unix_socket(error) : -1;
    if (fd < 0)
        return -1;
    unlink(socket_path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        chmod(socket_path, 0600) == 0 && listen(fd, WIRE_BACKLOG) == 0)
        return fd;
    fettle_set_error(error, STORAGE, "cannot listen on %s: %s", socket_path, g_strerror(errno));
    close(fd);
    return -1;
}

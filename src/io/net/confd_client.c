/* See confd_client.h. */
#include "io/net/confd_client.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/udp.h"
#include "proto/rpc.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONFD_PORT 1814

/* One candidate while it is asked. */
struct asking {
    struct confd_heard *heard;
    int fd; /* -1: it is over */
    char *rsalt;
    char *datagram;
    size_t len;
    gint64 since_us;
};

/* --- candidates --- */

static void candidate_free(void *data)
{
    struct confd_candidate *candidate = data;
    g_free(candidate->name);
    g_free(candidate->address);
    g_free(candidate);
}

static GPtrArray *candidates_new(void)
{
    return g_ptr_array_new_with_free_func(candidate_free);
}

static void candidate_add(GPtrArray *list, const char *name, const char *address, guint port)
{
    struct confd_candidate *candidate = g_new0(struct confd_candidate, 1);
    *candidate = (struct confd_candidate){g_strdup(name), g_strdup(address), port};
    g_ptr_array_add(list, candidate);
}

static struct announce_args *read_announced(const struct node_paths *paths, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text =
        files_read(paths, FILE_STATE, "node/state.json", LIMIT_FRAME_BYTES, &len, &why);
    if (!text && fettle_error_is(why, UNKNOWN_ENTITY)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "this host was not told of any master candidate (there is no "
                         "%s/node/state.json); name them with --candidates",
                         paths->var);
        return NULL;
    }
    json_autoptr json = text ? json_parse_limited(text, len, LIMIT_FRAME_BYTES, &why) : NULL;
    struct announce_args *announced = json ? announce_args_parse(json, RECORD_KEEP, &why) : NULL;
    if (!announced)
        fettle_set_error(error, CORRUPT,
                         "%s/node/state.json: %s; name the candidates with --candidates",
                         paths->var, why->message);
    return announced;
}

GPtrArray *confd_candidates_known(const struct node_paths *paths, GError **error)
{
    record_autoptr(announce_args) announced = read_announced(paths, error);
    record_autoptr(node_config) config = announced ? node_config_read(paths, error) : NULL;
    if (!config)
        return NULL;
    g_autoptr(GPtrArray) list = candidates_new();
    for (guint i = 0; i < announced->members->len && list->len < LIMIT_CONFD_CANDIDATES; i++) {
        const struct member *member = announced->members->pdata[i];
        if (member->master_candidate || strcmp(member->uuid, announced->master_node) == 0)
            candidate_add(list, member->name, member->address, (guint)config->confd_port);
    }
    if (list->len > 0)
        return g_steal_pointer(&list);
    fettle_set_error(error, UNKNOWN_ENTITY,
                     "this host was not told of any master candidate; name them with --candidates");
    return NULL;
}

GPtrArray *confd_candidates_of(const struct monitor_config *config, guint port)
{
    GPtrArray *list = candidates_new();
    for (guint i = 0; i < MIN(config->candidates->len, LIMIT_CONFD_CANDIDATES); i++) {
        const struct monitor_candidate *candidate = config->candidates->pdata[i];
        candidate_add(list, candidate->name, candidate->address, port);
    }
    return list;
}

/* "10.0.0.1", "10.0.0.1:1814", "fd00::1", "[fd00::1]:1814" */
static bool split_place(const char *text, char **ret_address, guint *ret_port)
{
    const char *end = *text == '[' ? strchr(text, ']') : strchr(text, ':');
    bool bare = !end || (*text != '[' && strchr(end + 1, ':'));
    guint64 port = CONFD_PORT;
    const char *rest = bare ? "" : end + (*text == '[');
    if (*rest &&
        (*rest != ':' || !g_ascii_string_to_unsigned(rest + 1, 10, 1, G_MAXUINT16, &port, NULL)))
        return false;
    *ret_address = bare           ? g_strdup(text)
                   : *text == '[' ? g_strndup(text + 1, (gsize)(end - text - 1))
                                  : g_strndup(text, (gsize)(end - text));
    *ret_port = (guint)port;
    return true;
}

GPtrArray *confd_candidates_parse(const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(GPtrArray) list = candidates_new();
    for (guint i = 0; parts[i]; i++) {
        g_autofree char *address = NULL;
        guint port;
        if (list->len == LIMIT_CONFD_CANDIDATES) {
            fettle_set_error(error, LIMIT, "--candidates: at most %d can be asked at once",
                             LIMIT_CONFD_CANDIDATES);
            return NULL;
        }
        if (!split_place(parts[i], &address, &port) || !g_hostname_is_ip_address(address)) {
            fettle_set_error(error, WRONG_INPUT,
                             "--candidates: \"%s\" is no IP address, or address and port",
                             parts[i]);
            return NULL;
        }
        candidate_add(list, "", address, port);
    }
    if (list->len > 0)
        return g_steal_pointer(&list);
    fettle_set_error(error, WRONG_INPUT, "--candidates: is empty");
    return NULL;
}

struct confd_key *confd_key_read(const char *path, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *bytes = files_read_path(path, LIMIT_CONFD_KEY_BYTES, &len, &why);
    if (bytes && len > 0)
        return confd_key_new(bytes, len);
    if (bytes)
        fettle_set_error(error, WRONG_INPUT, "%s is empty: it should be the key of ConfD", path);
    else if (fettle_error_is(why, UNKNOWN_ENTITY))
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no %s: only master candidates have the key of ConfD; ask there, "
                         "or name a copy of it with --key",
                         path);
    else
        g_propagate_error(error, g_steal_pointer(&why));
    return NULL;
}

/* --- asking --- */

static void heard_free(void *data)
{
    struct confd_heard *heard = data;
    json_decref(heard->reply.answer);
    g_free(heard->why);
    g_free(heard);
}

static void end(struct asking *asking, const char *why)
{
    if (asking->fd >= 0)
        close(asking->fd);
    asking->fd = -1;
    asking->heard->took_us = g_get_monotonic_time() - asking->since_us;
    if (why && !asking->heard->why)
        asking->heard->why = g_strdup(why);
}

static void end_by_errno(struct asking *asking, int code)
{
    end(asking, code == ECONNREFUSED ? "nobody answers ConfD there" : g_strerror(code));
}

static void send_question(struct asking *asking)
{
    if (asking->fd < 0 || send(asking->fd, asking->datagram, asking->len, MSG_NOSIGNAL) >= 0)
        return;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
        end_by_errno(asking, errno);
}

static void begin(struct asking *asking, struct confd_heard *heard, const char *from,
                  const struct confd_key *key, enum confd_type type, const json_t *query)
{
    g_autoptr(GError) error = NULL;
    asking->heard = heard;
    asking->since_us = g_get_monotonic_time();
    asking->rsalt = g_uuid_string_random();
    asking->datagram = confd_request_seal(key, loop_wall_us() / G_USEC_PER_SEC, type, query,
                                          asking->rsalt, &asking->len);
    asking->fd = udp_dial_from(from, heard->from->address, heard->from->port, &error);
    if (asking->fd < 0)
        end(asking, error->message);
    send_question(asking);
}

/* A datagram that is not the answer is nobody's word: the wait goes on, but it is told. */
static void take(struct asking *asking, const struct confd_key *key, char *buffer)
{
    struct confd_heard *heard = asking->heard;
    enum confd_fault fault;
    ssize_t len = recv(asking->fd, buffer, LIMIT_CONFD_REPLY_BYTES + 1, MSG_TRUNC);
    if (len < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            end_by_errno(asking, errno);
        return;
    }
    if (confd_reply_open(key, buffer, (size_t)len, asking->rsalt, &heard->reply, &fault)) {
        g_clear_pointer(&heard->why, g_free);
        heard->answered = true;
        end(asking, NULL);
        return;
    }
    g_free(heard->why);
    heard->why = g_strdup_printf("an answer that cannot be trusted (%s)", confd_fault_name(fault));
}

/* Takes what comes within `ms`; false when nobody is left to wait for. */
static bool listen_for(struct asking *all, guint count, const struct confd_key *key, char *buffer,
                       int ms)
{
    struct pollfd polls[LIMIT_CONFD_CANDIDATES];
    guint waiting = 0;
    for (guint i = 0; i < count; i++) {
        polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        waiting += all[i].fd >= 0;
    }
    if (waiting == 0)
        return false;
    if (poll(polls, count, ms) > 0)
        for (guint i = 0; i < count; i++)
            if (all[i].fd >= 0 && polls[i].revents)
                take(&all[i], key, buffer);
    return true;
}

static void ask_all(struct asking *all, guint count, const struct confd_key *key, guint timeout_ms)
{
    gint64 begun = g_get_monotonic_time(), repeated = begun;
    g_autofree char *buffer = g_malloc(LIMIT_CONFD_REPLY_BYTES + 1);
    for (;;) {
        gint64 now = g_get_monotonic_time();
        gint64 left = timeout_ms - (now - begun) / 1000;
        gint64 pause = CONFD_REPEAT_MS - (now - repeated) / 1000;
        if (left <= 0)
            break;
        if (pause <= 0) {
            for (guint i = 0; i < count; i++)
                send_question(&all[i]);
            repeated = now;
            pause = CONFD_REPEAT_MS;
        }
        if (!listen_for(all, count, key, buffer, (int)MIN(left, pause)))
            break;
    }
    for (guint i = 0; i < count; i++)
        if (all[i].fd >= 0)
            end(&all[i], "no answer");
}

GPtrArray *confd_ask(const GPtrArray *candidates, const struct confd_key *key, enum confd_type type,
                     const json_t *query, guint timeout_ms)
{
    return confd_ask_from(NULL, candidates, key, type, query, timeout_ms);
}

GPtrArray *confd_ask_from(const char *from, const GPtrArray *candidates,
                          const struct confd_key *key, enum confd_type type, const json_t *query,
                          guint timeout_ms)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(heard_free);
    struct asking all[LIMIT_CONFD_CANDIDATES];
    g_assert(candidates->len <= LIMIT_CONFD_CANDIDATES);
    for (guint i = 0; i < candidates->len; i++) {
        struct confd_heard *heard = g_new0(struct confd_heard, 1);
        heard->from = candidates->pdata[i];
        g_ptr_array_add(list, heard);
        begin(&all[i], heard, from, key, type, query);
    }
    ask_all(all, candidates->len, key, timeout_ms);
    for (guint i = 0; i < candidates->len; i++) {
        g_free(all[i].rsalt);
        g_free(all[i].datagram);
    }
    return list;
}

const struct confd_heard *confd_newest(const GPtrArray *heard)
{
    const struct confd_heard *newest = NULL;
    for (guint i = 0; i < heard->len; i++) {
        const struct confd_heard *one = heard->pdata[i];
        if (one->answered && (!newest || one->reply.serial > newest->reply.serial))
            newest = one;
    }
    return newest;
}

char *confd_silent_text(const GPtrArray *heard)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < heard->len; i++) {
        const struct confd_heard *one = heard->pdata[i];
        if (one->answered)
            continue;
        g_string_append(text, text->len > 0 ? "; " : "");
        if (*one->from->name)
            g_string_append_printf(text, "%s (%s): %s", one->from->name, one->from->address,
                                   one->why);
        else
            g_string_append_printf(text, "%s: %s", one->from->address, one->why);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

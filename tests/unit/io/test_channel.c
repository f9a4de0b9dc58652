/* What a channel does with a peer that does not read, or too slowly, or in large company
 * (channel.h). Frames, their limits and damage are in test_rpc.c and test_luxi.c. */
#include "world.h"

#include "io/net/channel.h"
#include "proto/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 600000

struct peer {
    struct channel *channel;
    int fd; /* its end */
    GError *why;
    bool broken;
    guint taken;
};

static void frame_cb(struct channel *channel, const char *data, size_t len, void *user)
{
}

static void broken_cb(struct channel *channel, const GError *why, void *user)
{
    struct peer *peer = user;
    g_assert_false(peer->broken);
    peer->broken = true;
    peer->why = why != NULL ? g_error_copy(why) : NULL;
}

static void taken_cb(struct channel *channel, void *user)
{
    ((struct peer *)user)->taken++;
}

static const struct channel_events events = {frame_cb, broken_cb, taken_cb, NULL};

static void peer_init(struct peer *peer, guint patience_ms)
{
    int fds[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), ==, 0);
    *peer = (struct peer){.fd = fds[1]};
    peer->channel = channel_new(transport_fd(fds[0]), KIB(4), &events, peer);
    channel_expect_reader(peer->channel, patience_ms);
}

static void peer_clear(struct peer *peer)
{
    channel_free(peer->channel);
    close(peer->fd);
    g_clear_error(&peer->why);
}

static void give(struct peer *peer, size_t bytes)
{
    g_autofree char *text = g_strnfill(bytes, 'x');
    const struct frame_body body = {.text = text};
    g_assert_true(channel_send_within(peer->channel, "", &body, "", bytes, NULL, NULL));
}

/* How many bytes were there. */
static size_t read_up_to(struct peer *peer, size_t most)
{
    g_autofree char *buffer = g_malloc(most);
    ssize_t got = recv(peer->fd, buffer, most, 0);
    g_assert_true(got >= 0 || errno == EAGAIN);
    return got > 0 ? (size_t)got : 0;
}

/* One that reads gets all, however much that is, is told of once, and nothing is left. */
static void test_reads(void)
{
    const size_t bytes = 3 * LIMIT_UNREAD_BYTES;
    struct peer peer;
    size_t got = 0;
    peer_init(&peer, LONG_MS);
    give(&peer, bytes);
    g_assert_cmpuint(channel_waiting_in_all(), ==, bytes + 1);
    world_pause(1);
    g_assert_cmpuint(channel_waiting(peer.channel), >, LIMIT_UNREAD_BYTES);
    g_assert_cmpuint(peer.taken, ==, 0);
    while (got < bytes + 1) {
        got += read_up_to(&peer, KIB(64));
        world_pause(1);
        g_assert_cmpuint(channel_waiting_in_all(), ==, channel_waiting(peer.channel));
        g_assert_cmpuint(peer.taken, ==,
                         channel_waiting(peer.channel) > LIMIT_UNREAD_BYTES ? 0 : 1);
    }
    give(&peer, 100);
    while (channel_waiting_in_all() > 0)
        world_pause(1);
    g_assert_cmpuint(peer.taken, ==, 1);
    g_assert_cmpuint(channel_written(peer.channel), ==, bytes + 1 + 101);
    g_assert_false(peer.broken);
    peer_clear(&peer);
}

static void assert_dropped(struct peer *peer, const char *message)
{
    guint64 taken = channel_written(peer->channel);
    world_wait(&peer->broken);
    g_assert_cmpuint(channel_written(peer->channel), ==, taken);
    g_assert_true(fettle_error_is(peer->why, LIMIT));
    if (strcmp(peer->why->message, message) != 0)
        g_error("dropped because: %s", peer->why->message);
    g_assert_cmpuint(channel_waiting(peer->channel), ==, 0);
    give(peer, 100); /* behind half a frame: it goes nowhere */
    world_pause(1);
    g_assert_cmpuint(channel_written(peer->channel), ==, taken);
    g_assert_cmpuint(channel_waiting_in_all(), ==, 0);
}

static char *message_of(const struct peer *peer)
{
    return g_strdup_printf("the peer does not read: %zu bytes wait for it",
                           channel_waiting(peer->channel));
}

static void test_never_reads(void)
{
    struct peer peer;
    peer_init(&peer, 200);
    give(&peer, LIMIT_UNREAD_BYTES);
    while (channel_written(peer.channel) == 0)
        world_pause(1);
    g_autofree char *message = message_of(&peer);
    assert_dropped(&peer, message);
    peer_clear(&peer);
}

/* A byte now and then is not what it was given the time for. */
static void test_drips(void)
{
    struct peer peer;
    peer_init(&peer, 200);
    give(&peer, LIMIT_UNREAD_BYTES);
    while (!peer.broken) {
        read_up_to(&peer, 1);
        world_pause(1);
    }
    g_assert_true(g_str_has_prefix(peer.why->message, "the peer does not read: "));
    peer_clear(&peer);
}

/* Who has no time set may let anything wait, up to the limit of one channel. */
static void test_one_limit(void)
{
    struct peer peer;
    peer_init(&peer, 0);
    for (guint i = 0; i < 3; i++)
        give(&peer, LIMIT_CONNECTION_OUT_BYTES / 4);
    world_pause(50);
    g_assert_false(peer.broken);
    give(&peer, LIMIT_CONNECTION_OUT_BYTES / 4);
    give(&peer, LIMIT_CONNECTION_OUT_BYTES / 4);
    world_wait(&peer.broken);
    g_assert_true(fettle_error_is(peer.why, LIMIT));
    g_assert_cmpuint(channel_waiting_in_all(), ==, 0);
    peer_clear(&peer);
}

static void assert_dropped_for_all(const struct peer *peer)
{
    g_assert_true(peer->broken);
    g_assert_true(fettle_error_is(peer->why, LIMIT));
    g_assert_nonnull(strstr(peer->why->message, " bytes wait for it, and "));
    g_assert_true(g_str_has_suffix(peer->why->message, " for all"));
}

static guint count_broken(const struct peer *peers, guint count)
{
    guint broken = 0;
    for (guint i = 0; i < count; i++)
        broken += peers[i].broken;
    return broken;
}

/* Too much in all, at once: whoever has most to take goes before any of them could have read, and
 * what waits is never more than the limit; not even within a turn of the loop. */
static void test_in_all_at_once(void)
{
    enum { PEERS = 9 };
    struct peer peers[PEERS];
    for (guint i = 0; i < PEERS; i++) {
        peer_init(&peers[i], i % 2 ? 0 : LONG_MS); /* whether it has a time does not matter */
        give(&peers[i], MIB(i == 2 ? 60 : 50 - i));
        g_assert_cmpuint(channel_waiting_in_all(), <=, LIMIT_UNREAD_IN_ALL);
    }
    g_assert_cmpuint(channel_waiting(peers[2].channel), ==, 0);
    g_assert_cmpuint(channel_waiting(peers[8].channel), >, 0);
    while (count_broken(peers, PEERS) < 4)
        world_pause(1);
    world_pause(1);
    assert_dropped_for_all(&peers[2]);
    /* 50 + 49 + 60 + 47 + 46: over with the sixth, so 60 go; with the seventh 50; with the eighth
     * 49; with the ninth 47. */
    g_assert_cmpuint(count_broken(peers, PEERS), ==, 4);
    for (guint i = 0; i < PEERS; i++)
        peer_clear(&peers[i]);
    g_assert_cmpuint(channel_waiting_in_all(), ==, 0);
}

/* Who has kept us waiting goes before whoever has just been sent more. */
static void test_in_all_slowest(void)
{
    enum { PEERS = 5 };
    static const size_t mib[PEERS] = {30, 60, 59, 58, 50};
    struct peer peers[PEERS];
    for (;;) {
        peer_init(&peers[0], 2000);
        give(&peers[0], MIB(mib[0]));
        while (channel_written(peers[0].channel) == 0)
            world_pause(1);
        /* A quarter of its time, and however long that takes: it does not lose more than one of
         * them for each turn of the loop. */
        world_pause(600);
        world_pause(1);
        if (!peers[0].broken) /* else it took all of its time */
            break;
        peer_clear(&peers[0]);
    }
    for (guint i = 1; i < PEERS; i++) {
        peer_init(&peers[i], LONG_MS);
        give(&peers[i], MIB(mib[i]));
    }
    world_wait(&peers[0].broken);
    assert_dropped_for_all(&peers[0]);
    g_assert_cmpuint(count_broken(peers, PEERS), ==, 1);
    g_assert_cmpuint(channel_waiting_in_all(), <=, LIMIT_UNREAD_IN_ALL);
    /* One that is closed keeps nothing. */
    channel_close(peers[1].channel);
    g_assert_cmpuint(channel_waiting_in_all(), <=, MIB(59 + 58 + 50) + 3);
    for (guint i = 0; i < PEERS; i++)
        peer_clear(&peers[i]);
    g_assert_cmpuint(channel_waiting_in_all(), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/channel/reads", test_reads);
    g_test_add_func("/channel/never-reads", test_never_reads);
    g_test_add_func("/channel/drips", test_drips);
    g_test_add_func("/channel/one-limit", test_one_limit);
    g_test_add_func("/channel/in-all-at-once", test_in_all_at_once);
    g_test_add_func("/channel/in-all-slowest", test_in_all_slowest);
    return g_test_run();
}

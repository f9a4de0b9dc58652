/*
 * How fast wconfd grants locks: the real daemon over its Unix socket, prepared frames on the
 * client's side so that almost all that is measured is the daemon. Argument: the program
 * fettle-wconfd. Prints one line a figure: name and value. scripts/bench shows them beside the
 * others. A pair is an exclusive lock taken and released by two calls; the floor is the call
 * `ping` on the same connection, measured in turn with the pairs.
 *
 *   floor_ping_per_s              one call after the other
 *   floor_ping_pipelined_per_s    many in flight
 *   lock_pairs_per_s              one client, one call after the other
 *   lock_pairs_of_floor           the same as a share of half the floor, round by round: what else
 * the machine does meanwhile falls on both
 *   lock_pairs_pipelined_per_s    one client, many calls in flight
 *   lock_pair_pipelined_cpu_us    processor time that the daemon takes for one of those pairs;
 * unlike the others it does not depend on what else the machine does
 *   ..._1000_held                 the same while 1,000 other locks are held
 *   wait_grant_us                 from sending the release to having read the waiter's grant
 */
#include <stdio.h>
#include <string.h>

#include "bench_store.h"
#include "bench_wire.h"

#define ROUNDS 5        /* of each figure; the median counts */
#define CALLS 2000      /* of one round, one after the other */
#define PIPELINED 20000 /* of one round, in flight */
#define WINDOW 2000     /* of them at once */
#define GRANTS 200

static struct bench_daemon wconfd;

struct client {
    struct bench_client wire;
    const char *livelock;
};

static void client_open(struct client *client, const char *livelock)
{
    bench_livelock_take(&wconfd, livelock);
    bench_client_open(&client->wire, &wconfd, "luxid");
    client->livelock = livelock;
}

static void add_update(struct client *client, GString *text, const char *name, const char *mode,
                       bool wait)
{
    g_autofree char *args = g_strdup_printf(
        "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"%s\",\"pid\":1},\"locks\":[{\"name\":\"%s\","
        "\"mode\":\"%s\"}]%s}",
        client->livelock, name, mode, wait ? ",\"wait\":true" : "");
    bench_add_request(&client->wire, text, NULL, "update_locks", args);
}

/* --- figures --- */

/* One request after the other, `texts` in turn. */
static double one_by_one(struct client *client, GString *const *texts, guint kinds)
{
    gint64 start = g_get_monotonic_time();
    for (guint i = 0; i < CALLS; i++)
        bench_call(&client->wire, texts[i % kinds], i % kinds ? "\"granted\":true" : "\"result\"");
    return CALLS / kinds / bench_since_s(start);
}

/* A window of requests in one write, then their answers. */
static double in_flight(struct client *client, GString *const *texts, guint kinds)
{
    g_autoptr(GString) window = g_string_new(NULL);
    for (guint i = 0; i < WINDOW; i++)
        g_string_append_len(window, texts[i % kinds]->str, (gssize)texts[i % kinds]->len);
    gint64 start = g_get_monotonic_time();
    bench_send(&client->wire, window->str, window->len);
    for (guint sent = WINDOW; sent < PIPELINED; sent += WINDOW) {
        g_autofree char *last = bench_read(&client->wire, WINDOW / 2);
        bench_send(&client->wire, window->str, window->len);
        g_autofree char *end = bench_read(&client->wire, WINDOW / 2);
        bench_expect(end, "\"result\"");
    }
    g_autofree char *end = bench_read(&client->wire, WINDOW);
    bench_expect(end, "\"result\"");
    return PIPELINED / kinds / bench_since_s(start);
}

static void measure(struct client *client, const char *suffix)
{
    GString *ping = g_string_new(NULL), *take = g_string_new(NULL), *drop = g_string_new(NULL);
    GString *const pings[] = {ping}, *const pair[] = {take, drop};
    double floors[ROUNDS], pairs[ROUNDS], floors_piped[ROUNDS], piped[ROUNDS], cpu[ROUNDS];
    double shares[ROUNDS];
    bench_add_request(&client->wire, ping, NULL, "ping", "{}");
    add_update(client, take, "instance/web1", "exclusive", false);
    add_update(client, drop, "instance/web1", "release", false);
    for (guint i = 0; i < ROUNDS; i++) {
        floors[i] = one_by_one(client, pings, 1);
        pairs[i] = one_by_one(client, pair, 2);
        shares[i] = pairs[i] / (floors[i] / 2);
        floors_piped[i] = in_flight(client, pings, 1);
        double before = bench_daemon_cpu_us(&wconfd);
        piped[i] = in_flight(client, pair, 2);
        cpu[i] = (bench_daemon_cpu_us(&wconfd) - before) / (PIPELINED / 2.0);
    }
    printf("floor_ping_per_s%s %.0f\n", suffix, bench_median(floors, ROUNDS));
    printf("floor_ping_pipelined_per_s%s %.0f\n", suffix, bench_median(floors_piped, ROUNDS));
    printf("lock_pairs_per_s%s %.0f\n", suffix, bench_median(pairs, ROUNDS));
    printf("lock_pairs_of_floor%s %.2f\n", suffix, bench_median(shares, ROUNDS));
    printf("lock_pairs_pipelined_per_s%s %.0f\n", suffix, bench_median(piped, ROUNDS));
    printf("lock_pair_pipelined_cpu_us%s %.1f\n", suffix, bench_median(cpu, ROUNDS));
    g_string_free(ping, TRUE);
    g_string_free(take, TRUE);
    g_string_free(drop, TRUE);
}

static void hold_many(struct client *client, guint count)
{
    g_autoptr(GString) args = g_string_new(NULL), frame = g_string_new(NULL);
    g_string_printf(args,
                    "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"%s\",\"pid\":1},\"locks\":[",
                    client->livelock);
    for (guint i = 0; i < count; i++)
        g_string_append_printf(args, "%s{\"name\":\"instance/held%u\",\"mode\":\"exclusive\"}",
                               i ? "," : "", i);
    g_string_append(args, "]}");
    bench_add_request(&client->wire, frame, NULL, "update_locks", args->str);
    bench_call(&client->wire, frame, "\"granted\":true");
}

static void grants(struct client *holder, struct client *waiter)
{
    double times[GRANTS];
    g_autoptr(GString) take = g_string_new(NULL), drop = g_string_new(NULL);
    g_autoptr(GString) wait = g_string_new(NULL), leave = g_string_new(NULL);
    add_update(holder, take, "instance/wanted", "exclusive", false);
    add_update(holder, drop, "instance/wanted", "release", false);
    add_update(waiter, wait, "instance/wanted", "exclusive", true);
    add_update(waiter, leave, "instance/wanted", "release", false);
    for (guint i = 0; i < GRANTS; i++) {
        bench_call(&holder->wire, take, "\"granted\":true");
        bench_send(&waiter->wire, wait->str, wait->len);
        g_usleep(500); /* it waits by now, and the daemon sleeps */
        gint64 start = g_get_monotonic_time();
        bench_send(&holder->wire, drop->str, drop->len);
        g_autofree char *granted = bench_read(&waiter->wire, 1);
        times[i] = bench_since_s(start) * 1e6;
        bench_expect(granted, "\"granted\":true");
        g_autofree char *released = bench_read(&holder->wire, 1);
        bench_call(&waiter->wire, leave, "\"granted\":true");
    }
    printf("wait_grant_us %.0f\n", bench_median(times, GRANTS));
}

int main(int argc, char **argv)
{
    struct client client, other;
    struct bench_store store;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 2)
        g_error("usage: bench_locks FETTLE-WCONFD");
    char *root = bench_root_new();
    g_autofree char *path = g_build_filename(root, "var", "store.db", NULL);
    bench_store_make(&store, path, 1, 0);
    bench_daemon_start(&wconfd, argv[1], root);
    client_open(&client, "bench-one");
    client_open(&other, "bench-two");
    measure(&client, "");
    grants(&client, &other);
    hold_many(&other, 1000);
    measure(&client, "_1000_held");
    bench_client_close(&client.wire);
    bench_client_close(&other.wire);
    bench_daemon_stop(&wconfd);
    bench_store_clear(&store);
    bench_root_free(root);
    return 0;
}

/*
 * How fast the machine is by itself: nothing here is code of Fettle's. Goals are multiples of these
 * (scripts/bench), so that they mean the same on a slow machine and on a fast one. Argument: a
 * folder on the disk that is measured. Prints one line a figure: name and median.
 *
 *   floor_cpu_ms         processor time of a fixed piece of work of the kinds that the daemons
 * spend theirs with: small blocks of memory, hashes of texts, JSON in and out, sorting
 *   floor_fdatasync_ms   512 bytes behind the last ones, and an fdatasync
 *   floor_exec_ms        a process of /bin/true, from its start to its end
 *   floor_wake_us        a byte to a process on another processor and back
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ITEMS 6000
#define ROUNDS 4
#define RUNS 9
#define SYNCS 200
#define SPAWNS 50
#define WAKES 2000

static double now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1000000;
}

/* The same numbers everywhere (xorshift). */
static guint64 draw(guint64 *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int compare_names(const void *a, const void *b)
{
    return g_strcmp0(*(const char *const *)a, *(const char *const *)b);
}

static json_t *make_list(guint64 *state)
{
    json_t *list = json_array();
    for (guint i = 0; i < ITEMS; i++) {
        g_autofree char *name = g_strdup_printf("instance-%" G_GINT64_MODIFIER "x", draw(state));
        json_array_append_new(list, json_pack("{s:s, s:I, s:b}", "name", name, "memory",
                                              (json_int_t)(draw(state) % 65536), "up", 1));
    }
    return list;
}

/* Length of all names in their order, so that nothing can be left out. */
static guint64 one_round(guint64 *state)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    json_t *made = make_list(state), *item = NULL;
    char *text = json_dumps(made, JSON_COMPACT);
    json_t *list = json_loads(text, 0, NULL);
    size_t at = 0;
    guint64 sum = 0;
    json_array_foreach(list, at, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        g_hash_table_insert(by_name, (void *)name, item);
        g_ptr_array_add(names, (void *)name);
    }
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        const json_t *found = g_hash_table_lookup(by_name, names->pdata[i]);
        sum = sum * 31 + (guint64)json_integer_value(json_object_get(found, "memory"));
    }
    json_decref(list);
    json_decref(made);
    free(text);
    return sum;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void print_median(const char *name, double *times, guint count)
{
    qsort(times, count, sizeof times[0], compare);
    printf("%s %.3f\n", name, times[count / 2]);
}

static void work(void)
{
    double times[RUNS];
    guint64 first = 0;
    for (guint run = 0; run < RUNS; run++) {
        guint64 state = 88172645463325252u, sum = 0;
        double start = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        for (guint round = 0; round < ROUNDS; round++)
            sum += one_round(&state);
        times[run] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
        if (run == 0)
            first = sum;
        if (sum != first)
            g_error("the same work gave another result");
    }
    print_median("floor_cpu_ms", times, RUNS);
}

static void syncs(const char *folder)
{
    double times[SYNCS];
    char block[512] = "floor";
    g_autofree char *path = g_build_filename(folder, "fettle-floor-XXXXXX", NULL);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || unlink(path) != 0)
        g_error("%s: %s", path, g_strerror(errno));
    for (guint i = 0; i < SYNCS; i++) {
        double start = now_ms(CLOCK_MONOTONIC);
        if (write(fd, block, sizeof block) != sizeof block || fdatasync(fd) != 0)
            g_error("%s: %s", path, g_strerror(errno));
        times[i] = now_ms(CLOCK_MONOTONIC) - start;
    }
    close(fd);
    print_median("floor_fdatasync_ms", times, SYNCS);
}

static void spawns(void)
{
    double times[SPAWNS];
    char *words[] = {(char *)"/bin/true", NULL};
    for (guint i = 0; i < SPAWNS; i++) {
        pid_t pid = 0;
        double start = now_ms(CLOCK_MONOTONIC);
        if (posix_spawn(&pid, words[0], NULL, NULL, words, NULL) != 0 ||
            waitpid(pid, NULL, 0) != pid)
            g_error("%s cannot be run", words[0]);
        times[i] = now_ms(CLOCK_MONOTONIC) - start;
    }
    print_median("floor_exec_ms", times, SPAWNS);
}

/* Left to themselves two processes share a processor at times, which is several times as fast. */
static void go_to(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set); /* with one processor they share it */
}

/* Sends back what comes, until nobody is there any more. */
static void echo(int fd)
{
    char byte;
    go_to(1);
    while (read(fd, &byte, 1) == 1) {
        if (write(fd, &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static void wakes(void)
{
    static double times[WAKES];
    int ends[2];
    char byte = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        g_error("socketpair: %s", g_strerror(errno));
    pid_t other = fork();
    if (other < 0)
        g_error("fork: %s", g_strerror(errno));
    close(ends[other == 0 ? 0 : 1]);
    if (other == 0)
        echo(ends[1]);
    go_to(0);
    for (guint i = 0; i < WAKES; i++) {
        double start = now_ms(CLOCK_MONOTONIC);
        if (write(ends[0], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
            g_error("the other process is gone");
        times[i] = (now_ms(CLOCK_MONOTONIC) - start) * 1000;
    }
    close(ends[0]);
    waitpid(other, NULL, 0);
    print_median("floor_wake_us", times, WAKES);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    work();
    syncs(argv[1]);
    spawns();
    wakes();
    return 0;
}

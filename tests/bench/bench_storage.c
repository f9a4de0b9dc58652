/*
 * What volume services cost, in memory, in processor time; prints one line a figure: name and the
 * median of its runs. scripts/bench shows them beside the others.
 *
 *   cleanup_rows_per_s        10,000 rows of a dead service are cleaned for by another one, its
 * back end answering at once: claims, looks, ends, on record with the real wconfd, and its own copy
 *   cleanup_floor_rows_per_s  three objects for each row given to the same wconfd, 256 rows at a
 * time
 *   cleanup_request_ms        request_cleanup that finds them (CLN-40)
 *   volume_work_us            a volume that is created: accepted, taken, made, on record
 *   volume_work_floor_us      four commits of two objects one after the other
 *   volumes_10000_mb          heap that 10,000 volumes with a snapshot each take in a
 * configuration, with all indexes
 */
#include "bench_figure.h"
#include "proto/change.h"
#include "unit/core/world/volume_world.h"

#include <malloc.h>
#include <string.h>

#define RUNS 3
#define ROWS 10000u
#define BATCH 256u
#define VOLUMES 500u

/* --- a service is dead, with much in hand --- */

static char *volume_key(guint number)
{
    return g_strdup_printf("eeeeeeee-1111-4000-8000-%012u", number);
}

static guint rows_left(void)
{
    return config_count(wconf_config(world.wconf), "worker");
}

/* Node1's has all of them in its hands; node2's process is the answer. */
static struct volumed *die_with_rows(void)
{
    fake_volumes_set_space(volumes, DIR1, ROWS);
    struct volumed *first = volumed_start(1);
    struct volumed *second = volumed_start(2);
    fake_advance(world.world, 30000);
    fake_pause(second->env);
    volumed_kill(first);
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    for (guint i = 0; i < ROWS; i++)
        g_ptr_array_add(uuids, (void *)volume_ask("create-volume", "", 1, "dir1"));
    volumes_die_with(uuids);
    fake_resume(second->env);
    return second;
}

static void bench_cleanup(double *ret_rows_per_s, double *ret_request_ms)
{
    volumes_set_up(NULL);
    struct volumed *second = die_with_rows();
    while (volumes_service("node1", DIR1)->state != STORAGE_DOWN)
        fake_advance(world.world, 1000);
    fake_pause(second->env);
    double start = bench_cpu_ms();
    g_autofree char *said = volumes_ask_cleanup(NULL);
    *ret_request_ms = bench_cpu_ms() - start;
    fake_resume(second->env);
    if (strcmp(said, "cleaning: node1@dir1 by node2@dir1 (10000); unavailable: -") != 0)
        g_error("%s", said);
    start = bench_cpu_ms();
    while (rows_left() > 0)
        fake_advance(world.world, 100);
    *ret_rows_per_s = ROWS / (bench_cpu_ms() - start) * 1000;
    volumes_tear_down();
}

static json_t *decision_of(guint number, char **ret_key)
{
    g_autofree char *subject = volume_key(number % ROWS);
    *ret_key = g_strdup_printf("aaaaaaaa-0000-4000-8000-%012u", number);
    return json_make("{s:s,s:s,s:s,s:s,s:i,s:s,s:s}", "uuid", *ret_key, "author", "watcher",
                     "subject_kind", "volume", "subject", subject, "at_us", 1, "verdict", "act",
                     "summary", "Its service is dead; what it had begun is removed.");
}

/* Processor time of so many objects in commits of `batch`. */
static double bench_objects(guint objects, guint batch)
{
    storage_set_up(NULL);
    double start = bench_cpu_ms();
    for (guint from = 0; from < objects; from += batch) {
        GPtrArray *changes = change_list_new();
        for (guint i = from; i < MIN(from + batch, objects); i++) {
            g_autofree char *key = NULL;
            json_t *object = decision_of(i, &key);
            g_ptr_array_add(changes, put("decision", key, 0, object));
        }
        g_autofree char *said = daemon_commit(&world, world.watcher, changes);
        if (!strstr(said, "serial"))
            g_error("%s", said);
    }
    double took = bench_cpu_ms() - start;
    world_tear_down();
    return took;
}

/* --- one volume after the other --- */

static double bench_create(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    fake_advance(world.world, 30000);
    double start = bench_cpu_ms();
    for (guint i = 0; i < VOLUMES; i++) {
        volume_ask("create-volume", "", 1, "dir1");
        while (rows_left() > 0)
            fake_advance(world.world, 10);
    }
    double took = bench_cpu_ms() - start;
    volumes_tear_down();
    return took * 1000 / VOLUMES;
}

/* --- what is on record --- */

static void load(struct config *config, const char *kind, const char *key, json_t *object)
{
    struct config_loading loading = {config, NULL};
    json_autoptr whole = object;
    config_load_object(kind, key, 1, whole, &loading);
    g_assert_no_error(loading.error);
}

static double bench_record(void)
{
    struct config *config = config_new();
    double before = (double)mallinfo2().uordblks;
    load(config, "backend", DIR1, object_backend(DIR1));
    for (guint i = 0; i < ROWS; i++) {
        g_autofree char *volume = volume_key(i), *name = g_strdup_printf("data%u", i);
        g_autofree char *snapshot = g_strdup_printf("eeeeeeee-2222-4000-8000-%012u", i);
        load(config, "volume", volume,
             with(with(object_volume1(), "uuid", json_string(volume)), "name", json_string(name)));
        load(config, "snapshot", snapshot,
             with(with(with(object_snapshot2(), "uuid", json_string(snapshot)), "volume",
                       json_string(volume)),
                  "name", json_string(name)));
    }
    double mb = ((double)mallinfo2().uordblks - before) / 1e6;
    config_free(config);
    return mb;
}

int main(void)
{
    double rows[RUNS], request[RUNS], rows_floor[RUNS], create[RUNS], create_floor[RUNS];
    double record[RUNS];
    for (guint i = 0; i < RUNS; i++) {
        rows_floor[i] = ROWS / bench_objects(3 * ROWS, 3 * BATCH) * 1000;
        bench_cleanup(&rows[i], &request[i]);
        create_floor[i] = bench_objects(2 * 4 * VOLUMES, 2) * 1000 / VOLUMES;
        create[i] = bench_create();
        record[i] = bench_record();
    }
    bench_print_median("cleanup_floor_rows_per_s", rows_floor, RUNS);
    bench_print_median("cleanup_rows_per_s", rows, RUNS);
    bench_print_median("cleanup_request_ms", request, RUNS);
    bench_print_median("volume_work_floor_us", create_floor, RUNS);
    bench_print_median("volume_work_us", create, RUNS);
    bench_print_median("volumes_10000_mb", record, RUNS);
    return 0;
}

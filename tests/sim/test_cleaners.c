/*
 * Twenty cleaners over the same rows (CLN-14, 15, 16, 55): a member has died with 1,000 rows, and
 * whoever is asked, was asked, or only thinks so claims them, by what it has read some time ago,
 * ends some, dies, and comes back. The shipped wconfd decides; each row is cleaned once.
 * Usage: test_cleaners SEEDS [FIRST]
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "seeds.h"
#include "unit/core/world/config_world.h"

#define CLEANERS 20u
#define ROWS 1000u
#define BATCH 48u
#define DEAD "21"
#define DOWN_S 4
#define MOST_STEPS 4000u
#define BACKEND "dddddddd-1111-4000-8000-000000000001"

static struct config_world world;
static struct env *cli;
static guint64 drawn;

struct cleaner {
    struct env *env;
    char *service;
    guint64 generation;
    guint64 versions[ROWS]; /* as it has read them last; 0: there was none */
    guint64 claims[ROWS];   /* 0: it has none */
    bool dead;
};

static struct cleaner cleaners[CLEANERS + 1]; /* the last one has died */
static char *keys[ROWS];
static guint ended[ROWS];
static char *problem;
static guint64 claimed, refused, came_back;

static guint draw(guint below)
{
    drawn =
        drawn * G_GUINT64_CONSTANT(6364136223846793005) + G_GUINT64_CONSTANT(1442695040888963407);
    return (guint)((drawn >> 33) % below);
}

/* --- the cluster --- */

static char *uuid_of(guint kind, guint number)
{
    return g_strdup_printf("%08x-0000-4000-8000-%012x", kind, number + 1);
}

static char *node_of(guint i)
{
    return i ? uuid_of(0xabc, i) : g_strdup(NODE1);
}

static void add_members(GPtrArray *all)
{
    json_t *nodes = json_array();
    for (guint i = 0; i <= CLEANERS; i++) {
        g_autofree char *node = node_of(i);
        g_autofree char *name = g_strdup_printf("host%u", i);
        g_autofree char *address = g_strdup_printf("10.1.0.%u", i + 1);
        json_array_append_new(nodes, json_string(node));
        if (i)
            g_ptr_array_add(all, put("node", node, 1,
                                     json_make("{s:s,s:s,s:s,s:s}", "uuid", node, "name", name,
                                               "primary_ip", address, "group", GROUP)));
        cleaners[i].service = config_storage_service_key(STORAGE_VOLUME, name, BACKEND);
        g_ptr_array_add(all,
                        put("storage_service", cleaners[i].service, 1,
                            json_make("{s:s,s:i,s:s,s:s,s:s,s:s,s:i}", "uuid", cleaners[i].service,
                                      "id", (int)i + 1, "binary", "cinder-volume", "host", name,
                                      "backend", BACKEND, "node", node, "generation", 1)));
        cleaners[i].generation = 1;
    }
    g_ptr_array_add(
        all, put("counter", "storage-service", 1, json_make("{s:i}", "value", (int)CLEANERS + 1)));
    g_ptr_array_add(all, put("backend", BACKEND, 1,
                             json_make("{s:s,s:s,s:s,s:o,s:s}", "uuid", BACKEND, "name", "b1",
                                       "kind", "dir", "nodes", nodes, "path", "/mnt/b1")));
}

static void add_rows(GPtrArray *all)
{
    for (guint i = 0; i < ROWS; i++) {
        g_autofree char *uuid = uuid_of(0xdef, i);
        keys[i] = config_work_key(RESOURCE_VOLUME, uuid);
        g_ptr_array_add(all, put("volume", uuid, 1,
                                 json_make("{s:s,s:i,s:s,s:s}", "uuid", uuid, "size", 1, "status",
                                           "creating", "backend", BACKEND)));
        g_ptr_array_add(
            all,
            put("worker", keys[i], 1,
                json_make("{s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:s,s:i,s:i}", "id", 1, "created_us",
                          (int)i + 1, "updated_us", (int)i + 1, "resource_type", "Volume",
                          "resource_id", uuid, "operation", "create-volume", "status", "creating",
                          "backend", BACKEND, "service_id", (int)CLEANERS + 1, "claim", 1)));
    }
}

static void set_up(void)
{
    GPtrArray *all = initial_changes();
    struct change *cluster = all->pdata[0];
    json_object_set_new(cluster->object, "service_down_time", json_integer(DOWN_S));
    json_object_set_new(cluster->object, "report_interval", json_integer(1));
    add_members(all);
    add_rows(all);
    config_world_init(&world, all);
    config_world_start(&world);
    cli = fake_process(world.world, NODE1, ROLE_CLI);
    for (guint i = 0; i <= CLEANERS; i++) {
        g_autofree char *node = node_of(i);
        cleaners[i].env = fake_process(world.world, node, ROLE_VOLUMED);
    }
}

static void tear_down(void)
{
    config_world_clear(&world);
    for (guint i = 0; i <= CLEANERS; i++)
        g_free(cleaners[i].service);
    for (guint i = 0; i < ROWS; i++)
        g_free(keys[i]);
    memset(cleaners, 0, sizeof cleaners);
    memset(ended, 0, sizeof ended);
}

static const struct config *record(void)
{
    return world.wconf->committed;
}

static const struct storage_service *service_of(const struct cleaner *cleaner)
{
    return config_get(record(), "storage_service", cleaner->service, NULL);
}

/* --- calls --- */

static json_t *ask(const struct env *from, const char *method, json_t *args)
{
    g_autofree char *id = env_uuid(from);
    if (strcmp(method, "beat") != 0)
        json_object_set_new(args, "commit_id", json_string(id));
    g_autofree char *said = ask_wconf(&world, from, method, args);
    return json_loads(said, 0, NULL);
}

static json_t *of_cleaner(const struct cleaner *cleaner)
{
    return json_make("{s:s,s:i}", "service", cleaner->service, "generation",
                     (int)cleaner->generation);
}

/* A second passes; all but the dead give a sign of life. */
static void pass(void)
{
    fake_advance(world.world, 1000);
    for (guint i = 0; i < CLEANERS; i++)
        if (!cleaners[i].dead)
            json_decref(ask(cleaners[i].env, "beat",
                            json_make("{s:[o]}", "services", of_cleaner(&cleaners[i]))));
}

static void read_rows(struct cleaner *cleaner)
{
    for (guint i = 0; i < ROWS; i++) {
        cleaner->versions[i] = 0;
        config_get(record(), "worker", keys[i], &cleaner->versions[i]);
    }
}

static guint index_of(const char *key)
{
    return (guint)g_ascii_strtoull(strrchr(key, '-') + 1, NULL, 16) - 1;
}

/* Nobody who lives has it under a claim of before. */
static void note_claim(struct cleaner *cleaner, guint row, guint64 claim)
{
    for (guint i = 0; i < CLEANERS && !problem; i++) {
        const struct cleaner *other = &cleaners[i];
        if (other->claims[row] && other != cleaner && service_of(other)->state == STORAGE_UP)
            problem = g_strdup_printf("%s is claimed by two that are up", keys[row]);
        cleaners[i].claims[row] = 0;
    }
    cleaner->claims[row] = claim;
    claimed++;
}

static void claim(struct cleaner *cleaner, const char *cleanup)
{
    json_t *items = json_array();
    guint first = draw(ROWS);
    for (guint i = 0; i < ROWS && json_array_size(items) < BATCH; i++) {
        guint row = (first + i) % ROWS;
        if (cleaner->versions[row] && !cleaner->claims[row])
            json_array_append_new(items, json_make("{s:s,s:I}", "key", keys[row], "version",
                                                   (json_int_t)cleaner->versions[row]));
    }
    json_t *args = with(of_cleaner(cleaner), "items", items);
    json_autoptr answer = json_array_size(items) ? ask(cleaner->env, "claim_work",
                                                       with(args, "cleanup", json_string(cleanup)))
                                                 : (json_decref(args), NULL);
    size_t i;
    json_t *item;
    refused += !answer;
    json_array_foreach(json_object_get(answer, "items"), i, item) {
        bool passed = !strcmp(json_string_value(json_object_get(item, "answer")), "passed");
        refused += !passed;
        if (passed)
            note_claim(cleaner, index_of(json_string_value(json_object_get(item, "key"))),
                       (guint64)json_integer_value(json_object_get(answer, "serial")));
    }
}

/* Of some, or of all, that it thinks are its own. */
static void end(struct cleaner *cleaner, const char *cleanup)
{
    json_t *items = json_array();
    bool all = draw(2) == 0;
    for (guint i = 0; i < ROWS && json_array_size(items) < BATCH; i++)
        if (cleaner->claims[i] && (all || draw(3) == 0))
            json_array_append_new(items, json_make("{s:s,s:I,s:b,s:s}", "key", keys[i], "claim",
                                                   (json_int_t)cleaner->claims[i], "failed", 1,
                                                   "why", "it has died"));
    json_t *args = with(of_cleaner(cleaner), "items", items);
    json_autoptr answer = json_array_size(items) ? ask(cleaner->env, "end_work",
                                                       with(args, "cleanup", json_string(cleanup)))
                                                 : (json_decref(args), NULL);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(answer, "items"), i, item) {
        guint row = index_of(json_string_value(json_object_get(item, "key")));
        cleaner->claims[row] = 0;
        if (!strcmp(json_string_value(json_object_get(item, "answer")), "passed") &&
            ++ended[row] > 1 && !problem)
            problem = g_strdup_printf("%s is cleaned twice", keys[row]);
    }
}

static void ask_for_cleanup(void)
{
    json_decref(ask(cli, "request_cleanup", json_make("{s:s}", "requester", "person")));
}

/* As its next process, which knows of no claim; what it had it cleans as its own. */
static void comes_back(struct cleaner *cleaner, guint number)
{
    g_autofree char *host = g_strdup_printf("host%u", number);
    json_autoptr answer = ask(cleaner->env, "register_storage",
                              json_make("{s:s,s:s,s:s,s:i,s:s}", "binary", "cinder-volume", "host",
                                        host, "backend", BACKEND, "wire", 1, "version", "0.1"));
    cleaner->generation = (guint64)json_integer_value(json_object_get(answer, "generation"));
    cleaner->dead = false;
    memset(cleaner->claims, 0, sizeof cleaner->claims);
    came_back++;
    read_rows(cleaner);
    claim(cleaner, "");
}

static guint asked(void)
{
    g_autoptr(GPtrArray) all = config_list(record(), "cleanup");
    for (guint i = 0; i < all->len; i++) {
        const struct cleanup *cleanup = all->pdata[i];
        if (cleanup->by && cleanup->by <= CLEANERS && draw(2))
            return (guint)cleanup->by - 1;
    }
    return draw(CLEANERS);
}

/* --- a run --- */

static void one_step(void)
{
    static const char *const of[] = {DEAD, DEAD, DEAD, "1", "2", "3", ""};
    guint number = asked();
    struct cleaner *cleaner = &cleaners[number];
    g_autofree char *any = g_strdup_printf("%u", 1 + draw(CLEANERS + 1));
    const char *cleanup = draw(4) ? of[draw(G_N_ELEMENTS(of))] : any;
    guint what = draw(20);
    if (what < 2)
        ask_for_cleanup();
    else if (what < 4)
        pass();
    else if (cleaner->dead)
        comes_back(cleaner, number);
    else if (what < 7)
        read_rows(cleaner);
    else if (what < 14)
        claim(cleaner, cleanup);
    else if (what < 18)
        end(cleaner, cleanup);
    else
        cleaner->dead = true;
}

static char *run(guint64 seed)
{
    drawn = seed;
    set_up();
    for (guint i = 0; i < DOWN_S + 2; i++)
        pass();
    ask_for_cleanup();
    guint steps = 0;
    while (config_count(record(), "worker") && !problem && ++steps < MOST_STEPS)
        one_step();
    if (!problem && config_count(record(), "worker"))
        problem = g_strdup_printf("%u rows are left", config_count(record(), "worker"));
    for (guint i = 0; i < ROWS && !problem; i++)
        if (ended[i] != 1)
            problem = g_strdup_printf("%s was cleaned %u times", keys[i], ended[i]);
    tear_down();
    return g_steal_pointer(&problem);
}

static void tell_line(const char *line, void *data)
{
    if (data)
        printf("# %s\n", line);
}

int main(int argc, char **argv)
{
    bool ok = argc > 1;
    guint64 seeds = seeds_number("FETTLE_SIM_SEEDS", ok ? argv[1] : "1");
    guint64 first = seeds_number("FETTLE_SIM_FIRST", argc > 2 ? argv[2] : "1");
    log_set_sink(tell_line, g_getenv("FETTLE_SIM_LOG") ? &ok : NULL);
    printf("1..1\n");
    for (guint64 seed = first; seed < first + seeds; seed++) {
        g_autofree char *why = run(seed);
        ok = seeds_passed(seed, "", why) && ok;
    }
    printf("# %u rows claimed, %u claims refused, cleaners came back %u times\n", (guint)claimed,
           (guint)refused, (guint)came_back);
    ok = ok && claimed > seeds * ROWS && refused > seeds * ROWS && came_back > seeds;
    printf("%s 1 /sim/cleaners-%" G_GUINT64_FORMAT "-seeds#CLN-14,CLN-15,CLN-16,CLN-55\n",
           ok ? "ok" : "not ok", seeds);
    return ok ? 0 : 1;
}

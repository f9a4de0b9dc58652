/*
 * Random runs: a cluster with instances of all templates, random commands of an operator, random
 * power cuts, pulled cables and deaths; checked after each event. When the faults stop, the cluster
 * must be whole again within a stated bound.
 *
 * Usage: test_random SEEDS [FIRST [NODES [ROUNDS]]], or test_random --seeds FILE, which runs the
 * seeds that a file names, one a line. A failing seed is named and can be run alone: test_random 1
 * SEED; with FETTLE_SIM_LOG=1 it tells what happens.
 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define NODES 5
#define ROUNDS 25
#define ROUND_MS 4000
#define QUIET_MS 400000

struct counts {
    guint jobs, power_cuts, cables, deaths, job_deaths, guest_deaths, moves;
};

struct shape {
    guint nodes, rounds;
};

static const char *const templates[] = {"mirror",   "mirror", "sharedfile",
                                        "diskless", "file",   "mirror"};
#define INSTANCES G_N_ELEMENTS(templates)

struct run {
    struct sim *sim;
    struct counts *counts;
    struct shape shape;
};

/* The master is node1. */
static char *pick_node(const struct run *run, bool with_master)
{
    guint first = with_master ? 1 : 2;
    return g_strdup_printf("node%u", first + sim_random(run->sim, run->shape.nodes - first + 1));
}

static char *pick_instance(const struct run *run)
{
    return g_strdup_printf("web%u", 1 + sim_random(run->sim, INSTANCES));
}

static void submit(const struct run *run, json_t *opcode)
{
    run->counts->jobs += sim_submit(run->sim, opcode, NULL) != 0 ? 1 : 0;
}

static void set_node(const struct run *run, const char *node, const char *field, const char *value)
{
    json_t *opcode =
        json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", node, field, value);
    if (strcmp(field, "offline") == 0 && strcmp(value, "yes") == 0)
        json_object_set_new(opcode, "statement", json_string("random"));
    submit(run, opcode);
}

static void set_tag(const struct run *run, const char *op, const char *kind, const char *name,
                    const char *tag)
{
    g_autofree char *text = g_strconcat("ganeti:watcher:autorepair:", tag, NULL);
    submit(run,
           json_make("{ss ss ss s[s]}", "OP_ID", op, "kind", kind, "name", name, "tags", text));
}

static void create_instances(const struct run *run)
{
    static const char *const policies[] = {"failover", "failover", "reinstall", "migrate",
                                           "fix-storage"};
    set_tag(run, "OP_TAGS_SET", "cluster", "",
            policies[sim_random(run->sim, G_N_ELEMENTS(policies))]);
    for (guint i = 1; i <= INSTANCES; i++) {
        g_autofree char *name = g_strdup_printf("web%u", i);
        json_t *opcode =
            json_make("{ss ss ss si s[]}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name", name,
                      "disk_template", templates[i - 1], "memory", 64, "disks");
        for (guint k = 0; strcmp(templates[i - 1], "diskless") != 0 && k <= i / INSTANCES; k++)
            json_array_append_new(json_object_get(opcode, "disks"), json_make("{si}", "size", 4));
        submit(run, opcode);
    }
    sim_pass(run->sim, 5000);
}

/* --- the operator --- */

static void change_instance(const struct run *run)
{
    static const char *const ops[] = {"OP_INSTANCE_STARTUP",       "OP_INSTANCE_SHUTDOWN",
                                      "OP_INSTANCE_REBOOT",        "OP_INSTANCE_FAILOVER",
                                      "OP_INSTANCE_REPLACE_DISKS", "OP_INSTANCE_MIGRATE",
                                      "OP_INSTANCE_MIGRATE",       "OP_INSTANCE_MIGRATE"};
    g_autofree char *name = pick_instance(run);
    submit(run, json_make("{ss ss}", "OP_ID", ops[sim_random(run->sim, G_N_ELEMENTS(ops))],
                          "instance_name", name));
}

static void change_node(const struct run *run)
{
    g_autofree char *node = pick_node(run, true);
    switch (sim_random(run->sim, 4)) {
    case 0:
        set_node(run, node, "drained", "yes");
        break;
    case 1:
        set_node(run, node, "drained", "no");
        break;
    case 2:
        submit(run, json_make("{ss ss}", "OP_ID", "OP_NODE_EVACUATE", "node_name", node));
        break;
    default:
        submit(run, json_make("{ss ss}", "OP_ID", "OP_NODE_MIGRATE", "node_name", node));
    }
}

static void change_policy(const struct run *run)
{
    static const char *const types[] = {"fix-storage", "migrate", "failover"};
    g_autofree char *name = pick_instance(run);
    const char *type = types[sim_random(run->sim, G_N_ELEMENTS(types))];
    g_autofree char *pending =
        g_strdup_printf("pending:%s:outside-%u:%u:", type, sim_random(run->sim, G_MAXINT32),
                        1700000000 + sim_random(run->sim, 1000));
    switch (sim_random(run->sim, 5)) {
    case 0:
        set_tag(run, "OP_TAGS_SET", "instance", name, "suspend");
        break;
    case 1:
        set_tag(run, "OP_TAGS_DEL", "instance", name, "suspend");
        break;
    case 2:
        set_tag(run, "OP_TAGS_SET", "instance", name, pending);
        break;
    case 3:
        set_tag(run, "OP_TAGS_SET", "instance", name, type);
        break;
    default:
        submit(run, json_make("{ss}", "OP_ID", "OP_REPAIR_CONTINUE"));
    }
}

static void operator_acts(const struct run *run)
{
    guint what = sim_random(run->sim, 10);
    if (what < 6)
        change_instance(run);
    else if (what < 8)
        change_node(run);
    else
        change_policy(run);
}

/* --- fate --- */

static void kill_guest(const struct run *run)
{
    g_autofree char *name = pick_instance(run);
    const struct instance *instance = config_find(sim_config(run->sim), "instance", name, NULL);
    if (instance == NULL || *instance->holder == '\0')
        return;
    g_autofree char *uuid = g_strdup(instance->uuid), *holder = g_strdup(instance->holder);
    run->counts->guest_deaths++;
    sim_kill_guest(run->sim, uuid, holder);
}

static void kill_daemon(const struct run *run, const char *node)
{
    static const char *const daemons[] = {"wconfd", "luxid", "watcher"};
    run->counts->deaths++;
    if (sim_random(run->sim, 2) == 0 && sim_powered(run->sim, "node1"))
        sim_kill(run->sim, daemons[sim_random(run->sim, 3)], "node1");
    else if (sim_powered(run->sim, node))
        sim_kill(run->sim, "noded", node);
}

static void fate_acts(const struct run *run)
{
    struct sim *sim = run->sim;
    g_autofree char *node = pick_node(run, true);
    /* Jobs are short: the best moment for a fault is soon after something began. */
    if (sim_random(sim, 2) == 0 && sim_powered(sim, "node1"))
        operator_acts(run);
    sim_pass(sim, sim_random(sim, 250));
    switch (sim_random(sim, 7)) {
    case 0:
    case 1:
        run->counts->power_cuts++;
        sim_power(sim, node, !sim_powered(sim, node));
        break;
    case 2:
        run->counts->cables++;
        sim_link(sim, node, !sim_linked(sim, node));
        break;
    case 3:
    case 4:
        kill_daemon(run, node);
        break;
    case 5:
        kill_guest(run);
        break;
    default:
        run->counts->job_deaths += sim_kill_job(sim, 0) ? 1 : 0;
    }
}

/* Somebody notices dead nodes, sooner or later, and says so. */
static void person_looks(const struct run *run)
{
    g_autofree char *node = pick_node(run, false);
    if (!sim_powered(run->sim, "node1"))
        return;
    if (!sim_powered(run->sim, node))
        set_node(run, node, "offline", "yes");
    else if (sim_linked(run->sim, node))
        set_node(run, node, "offline", "no");
}

/* --- the end of the faults --- */

static void heal_everything(const struct run *run)
{
    for (guint i = 1; i <= run->shape.nodes; i++) {
        g_autofree char *node = g_strdup_printf("node%u", i);
        sim_link(run->sim, node, true);
        sim_power(run->sim, node, true);
    }
    sim_pass(run->sim, 10000);
    for (guint i = 1; i <= run->shape.nodes; i++) {
        g_autofree char *node = g_strdup_printf("node%u", i);
        if (i > 1)
            set_node(run, node, "offline", "no");
        set_node(run, node, "drained", "no");
    }
}

/* What only a person ends: suspensions, the storm brake, and repairs that failed. */
static void person_tidies(const struct run *run)
{
    g_autoptr(GPtrArray) tags = config_list(sim_config(run->sim), "tag");
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < tags->len; i++) {
        const struct tag *tag = tags->pdata[i];
        if (tag->kind == TAG_INSTANCE &&
            (strstr(tag->tag, ":failure:") != NULL || g_str_has_suffix(tag->tag, ":suspend"))) {
            g_ptr_array_add(texts, g_strdup(tag->object));
            g_ptr_array_add(texts, g_strdup(tag->tag));
        }
    }
    for (guint i = 0; i + 1 < texts->len; i += 2)
        sim_submit(run->sim,
                   json_make("{ss ss ss s[s]}", "OP_ID", "OP_TAGS_DEL", "kind", "instance", "name",
                             texts->pdata[i], "tags", texts->pdata[i + 1]),
                   NULL);
    if (config_get(sim_config(run->sim), "repair_brake", "cluster", NULL) != NULL)
        sim_submit(run->sim, json_make("{ss}", "OP_ID", "OP_REPAIR_CONTINUE"), NULL);
}

/* Why it is not whole again; NULL if it is. */
static char *wait_for_rest(const struct run *run)
{
    char *why = NULL;
    heal_everything(run);
    for (guint waited = 0; waited < QUIET_MS && sim_problem(run->sim) == NULL; waited += 5000) {
        sim_pass(run->sim, 5000);
        person_tidies(run);
        g_free(why);
        if ((why = sim_unrest(run->sim)) == NULL)
            break;
    }
    return why;
}

static void one_round(const struct run *run)
{
    sim_pass(run->sim, sim_random(run->sim, ROUND_MS));
    guint what = sim_random(run->sim, 10);
    if (what < 5)
        fate_acts(run);
    else if (what < 7)
        person_looks(run);
    else if (sim_powered(run->sim, "node1"))
        operator_acts(run);
}

static void log_line(const char *line, void *data)
{
    printf("# %s\n", line);
}

static char *one_run(guint64 seed, struct shape shape, struct counts *counts)
{
    json_autoptr cluster = json_make("{si si}", "repair_storm_percent", seed % 4 == 0 ? 40 : 100,
                                     "repair_max_running", (int)(1 + seed % 5));
    struct sim_options options = {.seed = seed,
                                  .nodes = shape.nodes,
                                  .max_delay_ms = 20,
                                  .cluster = cluster,
                                  .log = g_getenv("FETTLE_SIM_LOG") != NULL ? log_line : NULL};
    struct run run = {sim_new(&options), counts, shape};
    sim_pass(run.sim, 3000);
    create_instances(&run);
    for (guint round = 0; round < shape.rounds && sim_problem(run.sim) == NULL; round++)
        one_round(&run);
    char *why = wait_for_rest(&run);
    if (sim_problem(run.sim) != NULL) {
        g_free(why);
        why = g_strdup(sim_problem(run.sim));
    }
    counts->moves += sim_moves(run.sim);
    sim_free(run.sim);
    return why;
}

static bool run_seed(guint64 seed, struct shape shape, struct counts *counts)
{
    g_autofree char *why = one_run(seed, shape, counts);
    if (why == NULL)
        return true;
    printf("# seed %" G_GUINT64_FORMAT ": %s\n", seed, why);
    fflush(stdout);
    return false;
}

/* A run in which nothing happens proves nothing. */
static bool enough_happened(guint64 seeds, const struct counts *counts)
{
    return seeds < 100 ||
           (counts->power_cuts > seeds && counts->job_deaths > seeds / 4 &&
            counts->guest_deaths > seeds / 4 && counts->moves > seeds && counts->jobs > 10 * seeds);
}

static int report(const char *name, guint64 seeds, bool ok, const struct counts *counts)
{
    printf("# %u jobs, %u power cuts, %u cables, %u deaths, %u deaths of jobs, %u of guests, %u "
           "migrations\n",
           counts->jobs, counts->power_cuts, counts->cables, counts->deaths, counts->job_deaths,
           counts->guest_deaths, counts->moves);
    bool enough = enough_happened(seeds, counts);
    printf("%s 1 /sim/%s-%" G_GUINT64_FORMAT
           "-seeds#SAF-04,SAF-10,SAF-13,SAF-16,SAF-17,SAF-19,SAF-22,SAF-30,LUX-28,ARP-13,ARP-31,"
           "ARP-42,ARP-60\n",
           ok && enough ? "ok" : "not ok", name, seeds);
    fflush(stdout);
    return ok && enough ? 0 : 1;
}

/* Seeds that have found something stay for ever: "SEED what it found", "#" begins a comment. */
static int run_file(const char *path)
{
    g_autofree char *text = NULL;
    struct counts counts = {0};
    struct shape shape = {NODES, ROUNDS};
    bool ok = g_file_get_contents(path, &text, NULL, NULL);
    guint64 seeds = 0;
    g_auto(GStrv) lines = g_strsplit(ok ? text : "", "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        if (!g_ascii_isdigit(*lines[i]))
            continue;
        seeds++;
        ok = run_seed(g_ascii_strtoull(lines[i], NULL, 10), shape, &counts) && ok;
    }
    if (ok && seeds == 0) {
        printf("ok 1 /sim/kept-seeds # SKIP no seed has found anything yet\n");
        return 0;
    }
    return report("kept", seeds, ok, &counts);
}

static guint64 number(int argc, char **argv, int index, guint64 otherwise)
{
    return argc > index ? g_ascii_strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    printf("1..1\n");
    if (argc > 2 && strcmp(argv[1], "--seeds") == 0)
        return run_file(argv[2]);
    guint64 seeds = number(argc, argv, 1, 200), first = number(argc, argv, 2, 1);
    struct shape shape = {(guint)number(argc, argv, 3, NODES),
                          (guint)number(argc, argv, 4, ROUNDS)};
    struct counts counts = {0};
    bool ok = true;
    for (guint64 seed = first; seed < first + seeds; seed++)
        ok = run_seed(seed, shape, &counts) && ok;
    return report("random", seeds, ok, &counts);
}

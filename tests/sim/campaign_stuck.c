/*
 * Jobs that die in the middle, as often as can be, and what stands in the way of recovery then:
 * requests that come late, hosts that are silent or hang, changes of master in a pass, users who
 * act meanwhile (docs/design/recovery.md). What must hold: check_recovery.c. See campaign.h.
 */
#include <string.h>

#include "campaign.h"

#define MARK_MS 3000    /* a mark is waited for so long */
#define STEP_MS 3       /* … and looked for so often */
#define IN_TASK_MS 80   /* most jobs are over after that */
#define WATCHED_MS 9000 /* so long a user and fate look at what recovery does */

/* Instances as campaign_create() makes them: 1, 2 and 6 are mirrored, 3 is on shared disks, 4 has
 * none, 5 is in plain files; 2 has an operating system of ours. */
static const struct {
    const char *op;
    enum task_state mark;
    const char *instances;
    bool stopped; /* it has to be */
} works[] = {
    {"OP_INSTANCE_CREATE", TASK_CREATING, "123456", false}, /* again */
    {"OP_INSTANCE_REMOVE", TASK_REMOVING, "123456", false},
    {"OP_INSTANCE_STARTUP", TASK_STARTING, "123456", true},
    {"OP_INSTANCE_SHUTDOWN", TASK_STOPPING, "123456", false},
    {"OP_INSTANCE_FAILOVER", TASK_FAILING_OVER, "1236", false},
    {"OP_INSTANCE_REPLACE_DISKS", TASK_REPLACING_DISKS, "126", false},
    {"OP_INSTANCE_MIGRATE", TASK_MIGRATING, "12356", false},
    {"OP_INSTANCE_GROW_DISK", TASK_GROWING_DISK, "12356", false},
    {"OP_INSTANCE_REINSTALL", TASK_REINSTALLING, "2", true},
    {"OP_INSTANCE_RECREATE_DISKS", TASK_RECREATING_DISKS, "5", true}, /* its images are lost */
};

static const struct instance *find(const struct campaign *campaign, const char *name)
{
    return config_find(sim_config(campaign->sim), "instance", name, NULL);
}

/* Before what the watcher has in the queue. */
static void submit(const struct campaign *campaign, json_t *opcode)
{
    json_object_set_new(opcode, "priority", json_integer(-20));
    campaign->counts->jobs += sim_submit(campaign->sim, opcode, NULL) != 0 ? 1 : 0;
}

static json_t *opcode_of(const char *op, const char *name)
{
    guint64 number = g_ascii_strtoull(name + strlen("web"), NULL, 10);
    json_t *opcode = json_make("{ss ss}", "OP_ID", op, "instance_name", name);
    if (strcmp(op, "OP_INSTANCE_REMOVE") == 0)
        json_object_update_new(opcode, json_make("{si}", "shutdown_timeout", 0));
    if (strcmp(op, "OP_INSTANCE_SHUTDOWN") == 0)
        json_object_update_new(opcode, json_make("{si}", "timeout", (int)(number % 3)));
    if (strcmp(op, "OP_INSTANCE_REPLACE_DISKS") == 0)
        json_object_update_new(opcode, json_make("{ss}", "mode", "replace_new_secondary"));
    if (strcmp(op, "OP_INSTANCE_GROW_DISK") == 0)
        json_object_update_new(opcode, json_make("{si si}", "disk", 0, "amount", 1));
    return opcode;
}

/* --- users --- */

/* What a person says of it has been looked at: that it could be started, too. */
static bool seems(const struct campaign *campaign, const char *name, const char *state)
{
    struct sim *sim = campaign->sim;
    const struct instance *instance = find(campaign, name);
    if (instance == NULL || strcmp(state, "stopped") != 0)
        return instance != NULL;
    const struct replica *replica = config_get(sim_config(sim), "replica", instance->replica, NULL);
    if (replica != NULL &&
        !fake_hosts_replica_whole(sim_hosts(sim), replica->node, instance->uuid, replica->uuid))
        return false; /* half of it has been removed: that is no stopped one */
    return fake_hosts_running(sim_hosts(sim), instance->uuid) == 0 &&
           (instance->disks->len == 0 ||
            fake_hosts_whole(sim_hosts(sim), instance->primary_node, instance->uuid, ""));
}

static void reset(const struct campaign *campaign, const char *name, const char *state)
{
    json_t *reason = json_make("[[s s i]]", "user", "it was looked at", 1);
    json_t *opcode = json_make("{ss ss ss so}", "OP_ID", "OP_RECOVERY_RESET", "instance_name", name,
                               "state", state, "reason", reason);
    if (!seems(campaign, name, state)) {
        json_decref(opcode);
        return;
    }
    campaign->counts->resets++;
    submit(campaign, opcode);
}

static void retry(const struct campaign *campaign, const char *name)
{
    json_decref(sim_ask(campaign->sim, "RetryRecovery", json_make("[ss]", "instance", name), NULL));
}

static void user_acts(const struct campaign *campaign, const char *name)
{
    static const char *const states[] = {"active", "stopped", "error"};
    struct sim *sim = campaign->sim;
    if (!sim_powered(sim, "node1"))
        return;
    campaign->counts->meanwhile++;
    switch (sim_random(sim, 8)) {
    case 0:
    case 1:
    case 2:
        reset(campaign, name, states[sim_random(sim, G_N_ELEMENTS(states))]);
        break;
    case 3:
        retry(campaign, name);
        break;
    case 4:
        submit(campaign, opcode_of("OP_INSTANCE_SHUTDOWN", name));
        break;
    case 5:
        submit(campaign, opcode_of("OP_INSTANCE_FAILOVER", name));
        break;
    default:
        submit(campaign, opcode_of("OP_INSTANCE_STARTUP", name));
    }
}

/* Submitted, and not begun. */
static bool is_to_be_finished(const struct campaign *campaign, const char *uuid)
{
    g_autoptr(GPtrArray) jobs = config_list(sim_config(campaign->sim), "job");
    g_autofree char *prefix = g_strdup_printf("finish/%s/", uuid);
    bool found = false;
    for (guint i = 0; i < jobs->len && !found; i++) {
        const struct job *job = jobs->pdata[i];
        found = g_str_has_prefix(job->request_id, prefix) && !job->started &&
                sim_job_final(campaign->sim, job->id) == NULL;
    }
    return found;
}

/* --- a job in the middle --- */

static bool has_mark(const struct campaign *campaign, const char *name, enum task_state mark)
{
    const struct instance *instance = find(campaign, name);
    return instance != NULL && instance->task_state == mark;
}

static bool is_gone(const struct campaign *campaign, const char *name, enum task_state mark)
{
    return find(campaign, name) == NULL;
}

static bool is_stopped(const struct campaign *campaign, const char *name, enum task_state mark)
{
    return has_mark(campaign, name, TASK_NONE) && *find(campaign, name)->holder == '\0';
}

static void wait_until(const struct campaign *campaign, const char *name, enum task_state mark,
                       bool (*is)(const struct campaign *, const char *, enum task_state))
{
    for (guint i = 0; i < MARK_MS / STEP_MS && !is(campaign, name, mark); i++)
        sim_pass(campaign->sim, STEP_MS);
}

static void prepare(const struct campaign *campaign, const char *name, guint what)
{
    bool creates = works[what].mark == TASK_CREATING;
    if (creates && find(campaign, name) != NULL) {
        submit(campaign, opcode_of("OP_INSTANCE_REMOVE", name));
        wait_until(campaign, name, TASK_NONE, is_gone);
    } else if (!creates && find(campaign, name) == NULL) {
        campaign_make_again(campaign, name);
        wait_until(campaign, name, TASK_NONE, has_mark);
    }
    if (works[what].stopped && !is_stopped(campaign, name, TASK_NONE)) {
        submit(campaign, opcode_of("OP_INSTANCE_SHUTDOWN", name));
        wait_until(campaign, name, TASK_NONE, is_stopped);
    }
    if (works[what].mark == TASK_RECREATING_DISKS && is_stopped(campaign, name, TASK_NONE))
        sim_lose_images(campaign->sim, find(campaign, name), false);
}

/* The job that is at it now; 0: none. */
static guint64 begin_work(const struct campaign *campaign, const char *name, guint what)
{
    enum task_state mark = works[what].mark;
    if (mark == TASK_CREATING)
        campaign_make_again(campaign, name);
    else
        submit(campaign, opcode_of(works[what].op, name));
    wait_until(campaign, name, mark, has_mark);
    return has_mark(campaign, name, mark) ? find(campaign, name)->task_owner : 0;
}

/* Of the nodes that have to do with it one; else any. Free with g_free(). */
static char *pick_its_node(const struct campaign *campaign, const char *name)
{
    const struct instance *instance = find(campaign, name);
    const char *uuids[3] = {"", "", ""};
    if (instance != NULL) {
        uuids[0] = instance->primary_node;
        uuids[1] = instance->secondary_node;
        uuids[2] = instance->migration_node;
    }
    const char *uuid = uuids[sim_random(campaign->sim, 3)];
    uuid = *uuid != '\0' ? uuid : uuids[0];
    return *uuid != '\0' ? g_strdup(sim_node_name(campaign->sim, uuid))
                         : campaign_pick_node(campaign, true);
}

static void change_master(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    campaign->counts->masters++;
    if (sim_random(sim, 3) == 0) {
        sim_power(sim, "node1", false);
        sim_pass(sim, sim_random(sim, 500));
        sim_power(sim, "node1", true);
        return;
    }
    sim_kill(sim, "wconfd", "node1");
    if (sim_random(sim, 2) == 0)
        sim_kill(sim, "watcher", "node1");
}

/* Its process dies, or its master does, or it only stands still: that is no death. */
static void end_work(const struct campaign *campaign, guint64 job)
{
    struct sim *sim = campaign->sim;
    guint what = sim_random(sim, 12);
    if (what < 2) {
        change_master(campaign);
        sim_kill_job(sim, job);
    } else if (what < 4 && sim_stop_job(sim)) {
        campaign->counts->stops++;
        sim_pass(sim, sim_random(sim, 8000));
        sim_continue_jobs(sim);
    } else {
        campaign->counts->job_deaths += sim_kill_job(sim, job);
    }
}

/* --- what stands in the way --- */

static void obstruct(const struct campaign *campaign, const char *name, const char *node)
{
    struct sim *sim = campaign->sim;
    const struct instance *instance = find(campaign, name);
    switch (sim_random(sim, 12)) {
    case 0:
        campaign->counts->power_cuts++;
        sim_power(sim, node, false);
        break;
    case 1:
        campaign->counts->cables++;
        sim_link(sim, node, false);
        break;
    case 2:
        campaign->counts->stops++;
        sim_stop(sim, "noded", node, true);
        break;
    case 3:
        campaign->counts->deaths++;
        if (sim_powered(sim, node))
            sim_kill(sim, "noded", node);
        break;
    case 4:
        campaign->counts->hangs++;
        sim_hang(sim, node, sim_random(sim, 2) == 0 ? "list" : "space", true);
        break;
    case 5:
        campaign->counts->hangs++;
        if (instance != NULL)
            sim_hang(sim, node, instance->uuid, true);
        break;
    case 6:
        campaign->counts->read_only++;
        sim_read_only(sim, node, true);
        break;
    case 7:
        campaign->counts->congestions++;
        sim_congest(sim, node, sim_random(sim, 3000));
        break;
    case 8:
        campaign->counts->one_way++;
        sim_one_way(sim, node, "node1", true);
        break;
    default:
        break;
    }
}

static void clear_way(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    for (guint i = 1; i <= campaign->shape->nodes; i++) {
        g_autofree char *node = g_strdup_printf("node%u", i);
        sim_let_requests(sim, node);
        sim_stop(sim, "noded", node, false);
    }
    campaign_fate_ends(campaign);
}

/* --- what recovery does meanwhile --- */

/* It is on record that recovery has settled something since. */
static bool has_settled(const struct campaign *campaign, guint64 before)
{
    const struct sim_recovery_counts *counts = sim_recovery_counts(campaign->sim);
    return counts->settled + counts->errors + counts->finishing > before;
}

static void watch(const struct campaign *campaign, const char *name, const char *held)
{
    struct sim *sim = campaign->sim;
    const struct sim_recovery_counts *counts = sim_recovery_counts(sim);
    guint64 before = counts->settled + counts->errors + counts->finishing;
    const struct instance *instance = find(campaign, name);
    g_autofree char *uuid = g_strdup(instance != NULL ? instance->uuid : "");
    bool master = sim_random(sim, 3) == 0, user = sim_random(sim, 2) == 0;
    guint acts_at = sim_random(sim, 4) == 0 ? sim_random(sim, WATCHED_MS) : WATCHED_MS;
    guint late = sim_random(sim, 400), end = 2000 + sim_random(sim, WATCHED_MS - 2000);
    for (guint ms = 0; ms < end && sim_problem(sim) == NULL; ms += STEP_MS) {
        if (master && sim_recovery_looks(sim)) {
            master = false;
            campaign->counts->in_pass++;
            sim_pass(sim, sim_random(sim, 30));
            change_master(campaign);
        }
        if (user && is_to_be_finished(campaign, uuid)) {
            user = false;
            campaign->counts->before_finish++;
            user_acts(campaign, name);
        }
        if (ms / STEP_MS == acts_at / STEP_MS)
            user_acts(campaign, name);
        if (held != NULL && has_settled(campaign, before) && late-- == 0) {
            sim_let_requests(sim, held);
            held = NULL;
        }
        sim_pass(sim, STEP_MS);
    }
}

static char *pick_for(const struct campaign *campaign, guint what)
{
    const char *all = works[what].instances;
    return g_strdup_printf("web%c", all[sim_random(campaign->sim, (guint)strlen(all))]);
}

/* Most jobs have set their mark for as little, some copy. */
static guint in_task_ms(const struct campaign *campaign)
{
    static const guint ms[] = {1, 20, IN_TASK_MS, 10 * IN_TASK_MS};
    return ms[sim_random(campaign->sim, G_N_ELEMENTS(ms))];
}

/* What is submitted now waits for a while. */
static void fill_queue(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    if (sim_random(sim, 3) != 0 || !sim_powered(sim, "node1"))
        return;
    for (guint i = 0; i < STUCK_RUNNING_JOBS; i++)
        submit(campaign, json_make("{ss si}", "OP_ID", "OP_TEST_DELAY", "duration",
                                   (int)(1 + sim_random(sim, 4))));
}

void campaign_stuck_round(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    sim_pass(sim, sim_random(sim, campaign->shape->round_ms));
    if (!sim_powered(sim, "node1"))
        clear_way(campaign);
    guint what = sim_random(sim, G_N_ELEMENTS(works));
    bool holds = sim_random(sim, 2) == 0;
    g_autofree char *name = pick_for(campaign, what);
    prepare(campaign, name, what);
    g_autofree char *held = pick_its_node(campaign, name);
    sim_hold_requests(sim, held, holds);
    guint64 job = begin_work(campaign, name, what);
    sim_pass(sim, sim_random(sim, in_task_ms(campaign)));
    if (job != 0 && sim_job_final(sim, job) == NULL) {
        campaign->counts->marks[works[what].mark]++;
        g_autofree char *node = pick_its_node(campaign, name);
        bool first = sim_random(sim, 2) == 0;
        if (first)
            obstruct(campaign, name, node);
        end_work(campaign, job);
        fill_queue(campaign);
        if (!first)
            obstruct(campaign, name, node);
    }
    sim_hold_requests(sim, held, false);
    watch(campaign, name, holds ? held : NULL);
    sim_let_requests(sim, held);
    if (sim_random(sim, 3) != 0)
        clear_way(campaign);
}

/* --- the end --- */

void campaign_stuck_ends(const struct campaign *campaign)
{
    clear_way(campaign);
}

/* Its guest ended in a way that leaves its images in doubt, as a power cut does: a start says that
 * its replica has them. */
static bool goes_on_elsewhere(const struct campaign *campaign, const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_MIRROR && !instance->clean &&
           instance->sound != SOUND_YES && sim_random(campaign->sim, 2) == 0;
}

/* Of one in plain files fate has taken the images, and nobody has made new ones. */
static const char *start_of(const struct campaign *campaign, const struct instance *instance)
{
    const char *primary = sim_node_name(campaign->sim, instance->primary_node);
    if (instance->disk_template == TEMPLATE_FILE &&
        !fake_host_has_disks(sim_host(campaign->sim, primary), instance->uuid, ""))
        return instance->admin_state == ADMIN_UP ? "OP_INSTANCE_SHUTDOWN"
                                                 : "OP_INSTANCE_RECREATE_DISKS";
    if (instance->admin_state == ADMIN_UP)
        return NULL;
    return goes_on_elsewhere(campaign, instance) ? "OP_INSTANCE_FAILOVER" : "OP_INSTANCE_STARTUP";
}

/* All that is there can be started: none of it lacks anything. */
void campaign_stuck_starts(const struct campaign *campaign)
{
    g_autoptr(GPtrArray) instances = config_list(sim_config(campaign->sim), "instance");
    g_autoptr(GPtrArray) opcodes = g_ptr_array_new();
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (start_of(campaign, instance) != NULL)
            g_ptr_array_add(opcodes, opcode_of(start_of(campaign, instance), instance->name));
    }
    for (guint i = 0; i < opcodes->len; i++)
        submit(campaign, opcodes->pdata[i]);
}

/* What recovery leaves to a person, who reads `fettle recovery list`. */
void campaign_stuck_person(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    g_autoptr(GPtrArray) faults = config_list(sim_config(sim), "fault");
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < faults->len; i++) {
        const struct fault *fault = faults->pdata[i];
        if (!fault->blind)
            g_ptr_array_add(uuids, g_strdup(fault->subject));
    }
    for (guint i = 0; i < uuids->len; i++) {
        const struct instance *instance =
            config_get(sim_config(sim), "instance", uuids->pdata[i], NULL);
        if (instance == NULL)
            continue;
        g_autofree char *name = g_strdup(instance->name);
        bool runs = fake_hosts_running(sim_hosts(sim), uuids->pdata[i]) > 0;
        json_t *cleanup = opcode_of("OP_INSTANCE_MIGRATE", name);
        json_object_set_new(cleanup, "cleanup", json_true());
        if (*instance->migration != '\0')
            submit(campaign, cleanup);
        else
            json_decref(cleanup);
        if (sim_random(sim, 2) == 0)
            retry(campaign, name);
        else
            reset(campaign, name, runs ? "active" : "stopped");
    }
}

/* Whatever has died in between: nobody is in ERROR because a host could not be asked, and all that
 * is not made anew is whole. */
char *campaign_stuck_unrest(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    g_autoptr(GPtrArray) faults = config_list(sim_config(sim), "fault");
    for (guint i = 0; i < faults->len; i++) {
        const struct fault *fault = faults->pdata[i];
        return g_strdup_printf("%s is in ERROR%s: %s", fault->subject,
                               fault->blind ? ", blindly" : "", fault->message);
    }
    g_autoptr(GPtrArray) stuck = config_list(sim_config(sim), "stuck");
    if (stuck->len > 0)
        return g_strdup_printf("looks at %s are still counted",
                               ((const struct stuck *)stuck->pdata[0])->subject);
    g_autoptr(GPtrArray) instances = config_list(sim_config(sim), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (instance->admin_state != ADMIN_UP)
            return g_strdup_printf("%s is not started", instance->name);
        if (instance->disks->len > 0 &&
            !fake_hosts_whole(sim_hosts(sim), instance->primary_node, instance->uuid, ""))
            return g_strdup_printf("%s has lost writes", instance->name);
    }
    return NULL;
}

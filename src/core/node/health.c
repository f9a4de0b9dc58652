/* See health.h. */
#include "core/node/health.h"

#include <string.h>

#include "base/text.h"
#include "core/member/member_care.h"
#include "core/node/guest.h"
#include "core/node/volume/volumes.h"
#include "core/report/faults.h"

enum { LOOK_STATE, LOOK_DISKS, LOOK_COPY, LOOKS };

/* A report that waits for looks. */
struct waiter {
    struct env_pause pause;
    guint open;
};

struct health_look {
    struct health *health;
    guint64 begun, ended;       /* how many */
    gint64 begun_ms, failed_ms; /* the newest one; since when it fails, 0: it does not */
    bool under_way;
    bool again;          /* a report came meanwhile: another shall begin */
    char *why;           /* what the last one found; NULL: all is well */
    GHashTable *waiters; /* struct waiter -> the number that it waits for */
};

struct health {
    struct node_core *node;
    guint users; /* the owner, and each look under way */
    struct health_look looks[LOOKS];
    GHashTable *since; /* kind of what needs no look -> gint64 *: boot clock, since when */
    guint64 copy_history, copy_serial; /* what the last look has found; 0: there is none */
    guint64 settled_serial;            /* what was there LIMIT_COPY_BEHIND_S ago … */
    guint64 settling_serial;           /* … and what will have been */
    gint64 settling_ms;
    char *rest; /* what was said of REST; NULL: nothing */
};

static gint64 now_ms(const struct health *health)
{
    return health->node->env->ops->boot_ms(health->node->env);
}

/* --- what is looked at --- */

static char *look_at_state(struct health *health)
{
    const struct env *env = health->node->env;
    g_autoptr(GError) error = NULL;
    if (env->ops->state_trial(env, &error) || fettle_error_is(error, TEMPORARY))
        return NULL;
    return g_strdup_printf("cannot write its state: %s", error->message);
}

/* That they are full is no failure of theirs: choices see it in the room that they have. Nor is it
 * one, of these or of the state, that the daemon lacks what a look takes: that is a fault of its
 * own. */
static char *look_at_disks(struct health *health)
{
    struct storage *storage = health->node->storage;
    g_autoptr(GError) error = NULL;
    if (storage->ops->trial(storage, &error) || fettle_error_is(error, NO_RESOURCES) ||
        fettle_error_is(error, TEMPORARY))
        return NULL;
    return g_strdup_printf("cannot write to its disks: %s", error->message);
}

static void settle(struct health *health)
{
    gint64 now = now_ms(health);
    if (health->settling_ms != 0 &&
        now - health->settling_ms < LIMIT_COPY_BEHIND_S * G_GINT64_CONSTANT(1000))
        return;
    health->settled_serial = health->settling_serial;
    health->settling_serial = health->copy_serial;
    health->settling_ms = now;
}

static bool is_candidate(const struct node_core *node)
{
    const GPtrArray *members = epoch_fence_announced(node->fence)->members;
    for (guint i = 0; members && i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (strcmp(member->uuid, node->env->node_uuid) == 0)
            return member->master_candidate;
    }
    return false;
}

/* A daemon that does not run is told among the services. */
static char *look_at_copy(struct health *health)
{
    static const struct wait_role_args at_once = {0};
    const struct node_core *node = health->node;
    record_autoptr(role_status) status =
        is_candidate(node)
            ? env_call_record(node->env, NODE_LOCAL, ROLE_WCONFD, "wait_role", &at_once,
                              (struct stamp){0}, 0, LIMIT_REPORT_WAIT_MS, NULL)
            : NULL;
    bool another = status && status->history != health->copy_history;
    health->copy_history = status ? status->history : 0;
    health->copy_serial = status ? status->serial : 0;
    if (!status || another) {
        health->settling_ms = 0;
        health->settling_serial = 0;
    }
    settle(health);
    return NULL;
}

static const struct kind {
    const char *kind;
    char *(*look)(struct health *health); /* in a task: why it is a fault, or NULL */
    const char *silent;
} kinds[LOOKS] = {
    [LOOK_STATE] = {FAULT_STATE, look_at_state, "gets no answer from the disk of its state"},
    [LOOK_DISKS] = {FAULT_DISKS, look_at_disks, "gets no answer from its disks"},
    [LOOK_COPY] = {FAULT_COPY, look_at_copy, "gets no answer from its fettle-wconfd"}, /* bounded */
};

/* --- one look --- */

static void health_unref(struct health *health)
{
    if (--health->users > 0)
        return;
    for (guint i = 0; i < LOOKS; i++) {
        g_free(health->looks[i].why);
        g_hash_table_unref(health->looks[i].waiters);
    }
    g_hash_table_unref(health->since);
    g_free(health->rest);
    g_free(health);
}

static void tell_waiters(struct health_look *look)
{
    GHashTableIter iter;
    void *key, *number;
    g_hash_table_iter_init(&iter, look->waiters);
    while (g_hash_table_iter_next(&iter, &key, &number)) {
        struct waiter *waiter = key;
        if (GPOINTER_TO_SIZE(number) > look->ended)
            continue;
        g_hash_table_iter_remove(&iter);
        if (--waiter->open == 0)
            env_pause_end(&waiter->pause);
    }
}

static void take_in(struct health_look *look, char *why)
{
    if (!why)
        look->failed_ms = 0;
    else if (look->failed_ms == 0)
        look->failed_ms = MAX(look->begun_ms, 1);
    g_free(look->why);
    look->why = why;
    look->ended = look->begun;
}

static void note_begin(struct health_look *look)
{
    look->again = false;
    look->under_way = true;
    look->begun++;
    look->begun_ms = now_ms(look->health);
}

static void look_run(void *data)
{
    struct health_look *look = data;
    struct health *health = look->health;
    struct node_core *node = health->node;
    bool more = true;
    while (more) {
        char *why = kinds[look - health->looks].look(health);
        take_in(look, why);
        tell_waiters(look);
        more = look->again && !node->ended && !task_killed();
        if (more)
            note_begin(look);
    }
    look->under_way = false;
    health_unref(health);
    node_release(node);
}

/* The number of the look that a report is to wait for; 0: none is due. */
static guint64 begin(struct health_look *look, bool acts)
{
    struct health *health = look->health;
    bool well = look->ended > 0 && !look->why;
    if (look->under_way) {
        look->again = true;
        return look->begun + 1;
    }
    if (well && !acts && now_ms(health) - look->begun_ms < HEALTH_PAUSE_MS)
        return 0;
    note_begin(look);
    health->users++;
    node_hold(health->node);
    task_spawn(health->node->env->tasks, look_run, look);
    return look->begun;
}

/* --- the report --- */

static void add(struct node_report *report, const char *kind, const char *text, gint64 age_ms,
                bool silent, bool fresh)
{
    struct node_fault *fault = node_fault_new();
    text_set(&fault->kind, kind);
    g_free(fault->text);
    fault->text = g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), LIMIT_FAULT_CHARS));
    fault->age_s = (guint64)MAX(age_ms, 0) / 1000;
    fault->silent = silent;
    fault->fresh = fresh;
    g_ptr_array_add(report->faults, fault);
}

static void add_look(struct node_report *report, const struct health_look *look, guint64 wanted)
{
    const struct kind *kind = &kinds[look - look->health->looks];
    gint64 now = now_ms(look->health);
    if (look->under_way && now - look->begun_ms >= LIMIT_LOOK_SILENT_MS)
        add(report, kind->kind, kind->silent, now - look->begun_ms, true, false);
    else if (look->why)
        add(report, kind->kind, look->why, now - look->failed_ms, false,
            wanted != 0 && look->ended >= wanted);
}

/* What is to be had without waiting. `text` NULL: there is no such fault. */
static void add_plain(struct health *health, struct node_report *report, const char *kind,
                      const char *text)
{
    gint64 now = now_ms(health);
    const gint64 *since = g_hash_table_lookup(health->since, kind);
    if (!text) {
        g_hash_table_remove(health->since, kind);
        return;
    }
    add(report, kind, text, since ? now - *since : 0, false, true);
    if (!since)
        g_hash_table_insert(health->since, (void *)kind, g_memdup2(&now, sizeof now));
}

static void add_member(struct health *health, struct node_report *report)
{
    struct service_report *member = member_care_service(health->node->care);
    bool fails = member && member->state != SERVICE_RUNNING && *member->why;
    g_autofree char *text =
        fails ? g_strdup_printf("does not run its member of etcd: %s", member->why) : NULL;
    add_plain(health, report, FAULT_MEMBER, text);
    if (member)
        service_report_free(member);
}

static void add_users(struct health *health, struct node_report *report)
{
    struct hypervisor *hv = health->node->hv;
    guint used = 0, all = hv->ops->users != NULL ? hv->ops->users(hv, &used) : 0;
    g_autofree char *text =
        all > 0 && used >= all
            ? g_strdup_printf("has no free user for one more guest (%u in use): raise guest_users "
                              "in node.json",
                              used)
            : NULL;
    add_plain(health, report, FAULT_USERS, text);
}

static void add_volumes(struct health *health, struct node_report *report)
{
    g_autofree char *text = volumes_strange_text(health->node);
    add_plain(health, report, FAULT_VOLUMES, text);
}

static void add_host(struct health *health, struct node_report *report)
{
    const struct env *env = health->node->env;
    guint64 open = 0, most = 0;
    env->ops->descriptors(env, &open, &most);
    g_autofree char *descriptors =
        open >= most / 100 * MOST_DESCRIPTORS_PERCENT && most > 0
            ? g_strdup_printf("has %" G_GUINT64_FORMAT " descriptors open in its fettle-noded, of "
                              "%" G_GUINT64_FORMAT,
                              open, most)
            : NULL;
    add_plain(health, report, FAULT_DESCRIPTORS, descriptors);
    bool short_of = report->memory_free < report->memory_total / 100 * LEAST_MEMORY_PERCENT;
    add_plain(health, report, FAULT_MEMORY,
              short_of ? "has less than 1 % of its memory available" : NULL);
}

static bool wait_for_looks(struct health *health, bool acts, guint64 *wanted)
{
    struct waiter waiter = {0};
    for (guint i = 0; i < LOOKS; i++) {
        wanted[i] = begin(&health->looks[i], acts);
        if (wanted[i] == 0)
            continue;
        waiter.open++;
        g_hash_table_insert(health->looks[i].waiters, &waiter, GSIZE_TO_POINTER(wanted[i]));
    }
    bool alive = waiter.open == 0 || env_pause(health->node->env, &waiter.pause, HEALTH_WAIT_MS);
    for (guint i = 0; i < LOOKS; i++)
        g_hash_table_remove(health->looks[i].waiters, &waiter);
    return alive;
}

void health_report(struct node_core *node, bool acts, struct node_report *report)
{
    struct health *health = node->health;
    guint64 wanted[LOOKS];
    health->users++;
    if (wait_for_looks(health, acts, wanted)) {
        for (guint i = 0; i < LOOKS; i++)
            add_look(report, &health->looks[i], wanted[i]);
        add_member(health, report);
        add_host(health, report);
        add_users(health, report);
        add_volumes(health, report);
        add_plain(health, report, FAULT_REST, health->rest);
        report->faults_known = true;
        report->copy_history = health->copy_history;
        report->copy_serial = health->copy_serial;
        report->copy_settled = health->settled_serial;
    }
    health_unref(health);
}

void health_set_rest_fault(struct health *health, const char *text)
{
    text_set(&health->rest, text);
}

struct health *health_new(struct node_core *node)
{
    struct health *health = g_new0(struct health, 1);
    health->node = node;
    health->users = 1;
    health->since = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    for (guint i = 0; i < LOOKS; i++) {
        health->looks[i].health = health;
        health->looks[i].waiters = g_hash_table_new(NULL, NULL);
    }
    return health;
}

void health_free(struct health *health)
{
    health_unref(health);
}

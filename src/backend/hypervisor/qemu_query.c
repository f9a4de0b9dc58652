/*
 * What guests are like: one that is asked about, and all that outlived the node daemon.
 */
#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/quiesce.h"
#include "backend/hypervisor/relay.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"

#include <string.h>

#define ASK_POLL_MS 5u

/* --- asking --- */

/* A guest that waits for its first `cont` is prepared; one that runs while it sleeps (S3) runs, and
 * so does one that stands still for a moment or that QEMU has stopped by itself; whatever else
 * holds its CPUs still is paused. */
static enum guest_state state_of(const struct guest *guest, const json_t *status)
{
    const char *word = json_string_value(json_object_get(status, "status"));
    if (guest->migration.side == SIDE_TARGET && !guest->migration.arrived)
        return GUEST_INCOMING;
    if (json_is_true(json_object_get(status, "running")) || g_strcmp0(word, "suspended") == 0 ||
        (guest->resume && !guest->off && g_strcmp0(word, "paused") == 0) ||
        (guest->migration.side != SIDE_TARGET && disk_io_stopped(word)))
        return GUEST_RUNNING;
    /* A guest that has arrived waits for its first `cont` here too. */
    if (g_strcmp0(word, "prelaunch") == 0 ||
        (guest->migration.side == SIDE_TARGET &&
         (g_strcmp0(word, "paused") == 0 || disk_io_stopped(word))))
        return GUEST_PREPARED;
    return g_strcmp0(word, "shutdown") == 0 || guest->off ? GUEST_SHUTDOWN : GUEST_PAUSED;
}

/* The run state does not tell: a guest that was paused for its migration stands in the same one
 * after a failure as after the end, and QEMU says that the migration is over a moment before it
 * leaves "finish-migrate". So the migration itself is asked. */
static bool tell_migrated(struct guest *guest, enum guest_state *ret_state, GError **error)
{
    enum migration_step step = STEP_NONE;
    if (!migrate_step(guest, &step, error))
        return false;
    if (step == STEP_DONE)
        *ret_state = GUEST_MIGRATED;
    return true;
}

static bool query_guest(struct guest *guest, enum guest_state *ret_state,
                        struct mirror_info *ret_mirror, GError **error)
{
    json_autoptr status = guest_execute(guest, "query-status", NULL, LIMIT_QMP_COMMAND_MS, error);
    struct mirror_info mirror = {MIRROR_NONE, 0};
    if (status == NULL || !mirror_query(guest, &mirror, error))
        return false;
    enum guest_state state = state_of(guest, status);
    if (!tell_migrated(guest, &state, error))
        return false;
    *ret_state = state;
    *ret_mirror = mirror;
    return true;
}

bool qemu_query(struct hypervisor *hv, const char *instance, guint64 generation,
                enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    struct mirror_info none = {MIRROR_NONE, 0};
    guest_autoptr guest = NULL;
    if (g_hash_table_lookup(qemu->guests, instance) != NULL) {
        guest = guest_find(qemu, instance, generation, error);
        if (guest == NULL)
            return false;
        g_autoptr(GError) failure = NULL;
        if (query_guest(guest, ret_state, ret_mirror, &failure))
            return true;
        /* One that hangs up is about to end. */
        if (fettle_error_is(failure, UNREACHABLE) && !guest->gone)
            process_wait(guest->process, LIMIT_LAST_WORDS_MS);
        if (!guest->gone) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
    }
    *ret_state = GUEST_ABSENT;
    *ret_mirror = none;
    return true;
}

/* --- after a restart --- */

/* What one process answers when the node daemon begins. Asked beside the others: it goes on if it
 * is not waited for any more. */
struct question {
    guint refs; /* the task's, and the asker's */
    struct guest *guest;
    bool answered;
    enum guest_state state;
    struct mirror_info mirror;
    enum migration_state migrating;
};

static enum migration_state migration_state_of(const struct guest *guest, enum migration_step step)
{
    static const enum migration_state states[] = {
        [STEP_NONE] = MIGRATION_CANCELED,     [STEP_COPYING] = MIGRATION_COPYING,
        [STEP_STOPPED] = MIGRATION_SWITCHING, [STEP_DONE] = MIGRATION_MOVED,
        [STEP_FAILED] = MIGRATION_FAILED,
    };
    if (guest->migration.side == SIDE_NONE)
        return MIGRATION_NONE;
    if (guest->migration.side == SIDE_TARGET)
        return guest->migration.arrived ? MIGRATION_MOVED : MIGRATION_COPYING;
    return states[step];
}

static void question_unref(void *data)
{
    struct question *question = data;
    if (--question->refs > 0)
        return;
    guest_unref(question->guest);
    g_free(question);
}

static void ask(void *data)
{
    struct question *question = data;
    struct guest *guest = question->guest;
    enum migration_step step = STEP_STOPPED;
    query_guest(guest, &question->state, &question->mirror, NULL);
    if (guest->migration.side == SIDE_SOURCE)
        migrate_step(guest, &step, NULL);
    question->migrating = migration_state_of(guest, step);
    question->answered = true;
    question_unref(question);
}

/* One that does not answer is reported as running, with its mirror lost, and in the middle of what
 * it was about: of all that it may be, that is what must be treated most carefully. */
static struct question *question_new(struct guest *guest)
{
    struct question *question = g_new0(struct question, 1);
    question->refs = 2;
    question->guest = guest_ref(guest);
    question->state = GUEST_RUNNING;
    question->mirror.state = guest->mirror.attached ? MIRROR_LOST : MIRROR_NONE;
    question->migrating = migration_state_of(guest, STEP_STOPPED);
    task_spawn(guest->qemu->tasks, ask, question);
    return question;
}

static struct guest_report *report_guest(const struct question *question)
{
    const struct guest *guest = question->guest;
    struct guest_report *report = guest_report_new();
    g_free(report->instance);
    g_free(report->replica);
    report->instance = g_strdup(guest->instance);
    report->generation = guest->generation;
    report->state = question->state;
    report->mirror = question->mirror.state;
    report->replica = g_strdup(guest->mirror.attached ? guest->replica : "");
    report->progress = question->mirror.progress;
    report->memory = guest->memory;
    g_free(report->migration);
    report->migration = g_strdup(guest->migration.uuid);
    report->migrating = question->migrating;
    return report;
}

static bool rediscover_one(struct qemu *qemu, const char *instance, GPtrArray *questions,
                           GError **error)
{
    if (g_hash_table_lookup(qemu->guests, instance) != NULL)
        return true;
    if (!guest_state_exists(qemu, instance)) {
        /* It is written before a process is started, so there is none. */
        guest_autoptr leftover = guest_new(qemu, instance, 0);
        guest_remove_folder(leftover);
        return true;
    }
    guest_autoptr guest = guest_state_read(qemu, instance, error);
    if (guest == NULL)
        return false;
    relay_rediscover(guest);
    if (guest->process == NULL) {
        guest_remove_folder(guest); /* it ended while nobody watched */
        return true;
    }
    guest->prepared = true;
    /* One whose mirror was being taken away goes on when that is done. */
    if (guest->incremental.active)
        quiesce_recover(guest, NULL);
    g_hash_table_insert(qemu->guests, guest->instance, guest_ref(guest));
    g_ptr_array_add(questions, question_new(guest));
    return true;
}

/* However many hang, the node daemon must not take longer to begin than for one of them. */
static void await(const GPtrArray *questions)
{
    gint64 deadline = loop_boot_ms() + LIMIT_QMP_COMMAND_MS;
    for (guint i = 0; i < questions->len; i++)
        while (!((struct question *)questions->pdata[i])->answered && loop_boot_ms() < deadline)
            if (!loop_sleep(ASK_POLL_MS))
                return;
}

GPtrArray *qemu_rediscover(struct hypervisor *hv, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    g_autoptr(GPtrArray) names = files_list(qemu->paths, FILE_RUN, "guests", error);
    g_autoptr(GPtrArray) questions = g_ptr_array_new_with_free_func(question_unref);
    if (names == NULL)
        return NULL;
    for (guint i = 0; i < names->len; i++)
        if (g_uuid_string_is_valid(names->pdata[i]) &&
            !rediscover_one(qemu, names->pdata[i], questions, error))
            return NULL;
    await(questions);
    GPtrArray *reports = g_ptr_array_new_with_free_func((GDestroyNotify)guest_report_free);
    for (guint i = 0; i < questions->len; i++) {
        const struct question *question = questions->pdata[i];
        if (!question->guest->gone)
            g_ptr_array_add(reports, report_guest(question));
    }
    return reports;
}

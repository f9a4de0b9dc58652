/*
 * See incremental.h.
 */
#include "backend/hypervisor/incremental.h"

#include "backend/hypervisor/bitmaps.h"
#include "backend/hypervisor/block_jobs.h"
#include "backend/hypervisor/quiesce.h"
#include "backend/hypervisor/read_node.h"
#include "base/limits.h"
#include "io/loop.h"

#include <string.h>

#define PASS_PREFIX "pass-"
#define FIRST_PASS_PERCENT 95 /* the others are short */
#define HELD_POLL_MS 1
#define EVENT_MS 100 /* then it is asked whether one was lost */

/* The jobs that copy, beside the target nodes of the mirror to come. */
static struct job_set copies_of(const struct guest *guest)
{
    return (struct job_set){.kind = 'r', .number = guest->mirror.number, .attached = true};
}

/* What is written from the beginning of a pass on. */
static char *pass_name(guint pass)
{
    return g_strdup_printf(PASS_PREFIX "%u", pass);
}

static bool is_over(const struct guest *guest)
{
    return guest->incremental.giving_up || guest->gone || task_killed();
}

/* --- one pass --- */

/* Before the blocks are chosen: a bitmap of each disk for what is written from now on, and one of
 * its second node for what is to be copied. */
static bool pass_prepare(struct guest *guest, guint pass, GError **error)
{
    g_autofree char *name = pass_name(pass);
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *device = block_jobs_disk(i);
        g_autofree char *second = read_node_name(guest, i);
        if (!bitmap_add(guest, device, name, true, error) ||
            !bitmap_add(guest, second, name, false, error))
            return false;
    }
    return true;
}

/* Of one disk: the bits of bitmap `from` are what is to be copied. */
static void add_actions(const struct guest *guest, guint pass, guint disk, const char *from,
                        json_t *actions)
{
    struct job_set copies = copies_of(guest);
    g_autofree char *name = pass_name(pass);
    g_autofree char *device = block_jobs_disk(disk);
    g_autofree char *second = read_node_name(guest, disk);
    g_autofree char *job = block_jobs_name(&copies, disk);
    g_autofree char *target = block_jobs_name(&guest->mirror, disk);
    json_array_append_new(actions,
                          json_make("{s:s,s:{s:s,s:s,s:[{s:s,s:s}]}}", "type",
                                    "block-dirty-bitmap-merge", "data", "node", second, "target",
                                    name, "bitmaps", "node", device, "name", from));
    json_array_append_new(actions,
                          json_make("{s:s,s:{s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:s,s:s}}", "type",
                                    "blockdev-backup", "data", "job-id", job, "device", second,
                                    "target", target, "sync", "bitmap", "bitmap", name,
                                    "bitmap-mode", "never", "auto-dismiss", 0, "on-source-error",
                                    "report", "on-target-error", "report"));
}

/* Copies what has a bit in the bitmaps `from`; of all disks by one command, since the guest may
 * stand still for it. */
static bool pass_begin(struct guest *guest, guint pass, const char *from, GError **error)
{
    struct job_set copies = copies_of(guest);
    json_t *actions = json_array();
    for (guint i = 0; i < guest->disks; i++)
        add_actions(guest, pass, i, from, actions);
    block_jobs_outcome_clear(guest, &copies);
    return guest_command(guest, "transaction", json_make("{s:o}", "actions", actions),
                         LIMIT_QMP_COMMAND_MS, error);
}

struct pass_look {
    bool running, failed;
    guint64 done, all;
};

static void look_at_job(const json_t *job, struct pass_look *look)
{
    const char *status = json_string_value(json_object_get(job, "status"));
    bool concluded = g_strcmp0(status, "concluded") == 0;
    look->running = look->running || !concluded;
    look->failed = look->failed || (concluded && json_object_get(job, "error") != NULL);
    look->done += (guint64)json_integer_value(json_object_get(job, "current-progress"));
    look->all += (guint64)json_integer_value(json_object_get(job, "total-progress"));
}

/* Jobs that have ended stay until they are dismissed, so none can be missed; `missing`: some were
 * never begun. */
static bool pass_look(struct guest *guest, struct pass_look *ret_look, bool *ret_missing,
                      GError **error)
{
    struct job_set copies = copies_of(guest);
    json_autoptr jobs = guest_execute(guest, "query-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
    struct pass_look look = {0};
    guint found = 0;
    for (guint i = 0; jobs != NULL && i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(&copies, i);
        for (size_t k = 0; k < json_array_size(jobs); k++) {
            const json_t *job = json_array_get(jobs, k);
            if (g_strcmp0(json_string_value(json_object_get(job, "id")), name) != 0)
                continue;
            look_at_job(job, &look);
            found++;
        }
    }
    *ret_missing = found < guest->disks;
    *ret_look = look;
    return jobs != NULL;
}

static bool pass_dismiss(struct guest *guest, GError **error)
{
    struct job_set copies = copies_of(guest);
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(&copies, i);
        GError *failure = NULL;
        bool done = guest_command(guest, "job-dismiss", json_make("{s:s}", "id", name),
                                  LIMIT_QMP_COMMAND_MS, &failure);
        if (!block_jobs_absent_is_fine(done, &failure, error))
            return false;
    }
    return true;
}

/* Until every job has ended well. `deadline`: 0 for none. */
static bool pass_await(struct guest *guest, guint pass, gint64 deadline, guint64 *ret_bytes,
                       GError **error)
{
    for (;;) {
        struct pass_look look;
        bool missing;
        if (!pass_look(guest, &look, &missing, error))
            return false;
        if (pass == 0 && look.all > 0)
            guest->incremental.progress = (guint)(look.done * FIRST_PASS_PERCENT / look.all);
        if (missing || look.failed) {
            fettle_set_error(error, HYPERVISOR, "guest %s: replica %s was lost while it was copied",
                             guest->name, guest->replica);
            return false;
        }
        *ret_bytes = look.done;
        if (!look.running)
            return true;
        bool late = deadline != 0 && loop_boot_ms() >= deadline;
        if (is_over(guest) || late || !loop_sleep(deadline != 0 ? HELD_POLL_MS : JOB_POLL_MS)) {
            fettle_set_error(error, TIMEOUT,
                             "guest %s: replica %s takes its last blocks too slowly", guest->name,
                             guest->replica);
            return false;
        }
    }
}

/* --- the guest stands still --- */

/* Whether all jobs of a set have told so, in the time in which an event comes. Nothing is asked:
 * each question is a way there and back on which the guest stands still. */
static bool await_event(struct guest *guest, const struct job_set *set, enum job_outcome wanted)
{
    gint64 deadline = loop_boot_ms() + EVENT_MS;
    enum job_outcome outcome;
    while ((outcome = block_jobs_outcome(guest, set)) != wanted && outcome != JOB_FAILED &&
           !is_over(guest) && loop_boot_ms() < deadline)
        if (!loop_sleep(HELD_POLL_MS))
            break;
    return outcome == wanted;
}

static bool attach(struct guest *guest, enum mirror_copy copy, GError **error)
{
    for (guint i = 0; i < guest->disks; i++)
        if (!block_jobs_add_mirror(guest, &guest->mirror, i, copy, true, 0, error))
            return false;
    return true;
}

/* One that is not ready in time is a mirror all the same: it holds writes back, and whoever watches
 * it sees whether its replica is lost. */
static void await_ready(struct guest *guest, gint64 deadline)
{
    struct jobs_progress progress = {.state = MIRROR_SYNCING};
    while (progress.state == MIRROR_SYNCING && loop_boot_ms() < deadline) {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, NULL);
        if (jobs == NULL)
            return;
        block_jobs_look(guest, &guest->mirror, jobs, &progress);
        if (progress.state == MIRROR_SYNCING && !loop_sleep(HELD_POLL_MS))
            return;
    }
}

static bool switch_held(struct guest *guest, guint pass, const char *from, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_INCREMENTAL_HELD_MS;
    struct job_set copies = copies_of(guest);
    guint64 bytes;
    if (!pass_begin(guest, pass, from, error) ||
        (!await_event(guest, &copies, JOB_DONE) &&
         !pass_await(guest, pass, deadline, &bytes, error)) ||
        !quiesce_check(guest, error) || !attach(guest, COPY_NOTHING, error))
        return false;
    if (!await_event(guest, &guest->mirror, JOB_READY))
        await_ready(guest, deadline);
    return quiesce_check(guest, error);
}

/* A guest that stands still goes on, whatever became of the copy. */
static void let_go(struct guest *guest)
{
    bool goes_on = quiesce_end(guest, NULL);
    while (!goes_on && !guest->gone && loop_sleep(LET_GO_RETRY_MS))
        goes_on = quiesce_recover(guest, NULL);
}

/* The last blocks while it stands still; then the mirror, whose replica lacks nothing. */
static bool switch_over(struct guest *guest, guint pass, const char *from, GError **error)
{
    if (!pass_prepare(guest, pass, error) || !quiesce_begin(guest, error))
        return false;
    bool ok = switch_held(guest, pass, from, error);
    /* The mirror's own jobs tell from here on. */
    guest->incremental.active = !ok;
    let_go(guest);
    return ok;
}

/* --- all of it --- */

/* How long the rest would take at the pace of the pass before. */
static guint64 expected_ms(guint64 rest, guint64 bytes, gint64 took_ms)
{
    return bytes > 0 ? rest * (guint64)MAX(took_ms, 1) / bytes : 0;
}

/* Which pass is to be the last: either what is left is little, or it gets no less. */
static bool is_little(guint pass, guint64 rest, guint64 expected)
{
    return rest <= INCREMENTAL_LITTLE_BYTES || expected <= INCREMENTAL_SHORT_MS ||
           (pass + 1 >= LIMIT_INCREMENTAL_PASSES && expected <= INCREMENTAL_TOLERABLE_MS);
}

static bool copy_pass(struct guest *guest, guint pass, const char *from, bool *ret_little,
                      GError **error)
{
    g_autofree char *name = pass_name(pass);
    gint64 began = loop_boot_ms();
    guint64 bytes = 0, rest = 0;
    if (!pass_prepare(guest, pass, error) || !pass_begin(guest, pass, from, error) ||
        !pass_await(guest, pass, 0, &bytes, error) || !pass_dismiss(guest, error) ||
        !bitmaps_count(guest, name, &rest, error))
        return false;
    *ret_little = is_little(pass, rest, expected_ms(rest, bytes, loop_boot_ms() - began));
    return !is_over(guest);
}

/* A guest that writes faster than its replica takes it gets a mirror that slows it down. */
static bool copy_everything(struct guest *guest, GError **error)
{
    bitmaps_void(guest);
    if (!guest_state_write(guest, error) || !attach(guest, COPY_EVERYTHING, error))
        return false;
    guest->incremental.active = false;
    return guest_state_write(guest, error);
}

static bool bring_up_to_date(struct guest *guest, GError **error)
{
    g_autofree char *from = bitmaps_name(guest);
    bool little = false;
    for (guint pass = 0; pass < LIMIT_INCREMENTAL_PASSES; pass++) {
        if (!copy_pass(guest, pass, from, &little, error))
            return false;
        g_free(from);
        from = pass_name(pass);
        if (little)
            return switch_over(guest, pass + 1, from, error);
    }
    return copy_everything(guest, error);
}

/* What it has made and a mirror does not need. Whatever is left here is in nobody's way, and goes
 * with the next one. */
static bool take_away(struct guest *guest, GError **error)
{
    return pass_dismiss(guest, error) && read_nodes_remove(guest, error) &&
           bitmaps_sweep(guest, PASS_PREFIX, NULL, error);
}

static void run(struct guest *guest)
{
    if (!guest->incremental.giving_up && bring_up_to_date(guest, NULL)) {
        guest->written.begun_at = G_MAXUINT64; /* there is much in the bitmaps */
        take_away(guest, NULL);
    } else {
        guest->incremental.failed = true;
    }
    guest->incremental.tasks--;
}

bool incremental_prepare(struct guest *guest, GError **error)
{
    guest->incremental.failed = guest->incremental.giving_up = false;
    guest->incremental.progress = 0;
    if (guest->written.number == 0) {
        fettle_set_error(error, WRONG_STATE,
                         "what guest %s has written since then is not known (its images are not "
                         "raw, or it was restarted, or it is another replica)",
                         guest->name);
        return false;
    }
    if (bitmaps_sweep(guest, PASS_PREFIX, NULL, error) && read_nodes_add(guest, error)) {
        guest->incremental.active = true;
        if (guest_state_write(guest, error))
            return true;
    }
    guest->incremental.active = false;
    read_nodes_remove(guest, NULL);
    return false;
}

void incremental_start(struct guest *guest)
{
    guest->incremental.tasks++;
    guest_spawn(guest, run);
}

bool incremental_query(const struct guest *guest, struct mirror_info *ret_info)
{
    const struct incremental *incremental = &guest->incremental;
    if (!incremental->active)
        return false;
    ret_info->state = incremental->failed ? MIRROR_LOST : MIRROR_SYNCING;
    ret_info->progress = incremental->progress;
    return true;
}

/* --- giving up --- */

static bool await_end(struct guest *guest, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIRROR_END_MS;
    struct pass_look look;
    bool missing;
    do {
        if (!pass_look(guest, &look, &missing, error))
            return false;
        if (!look.running && guest->incremental.tasks == 0)
            return true;
    } while (loop_sleep(JOB_POLL_MS) && loop_boot_ms() < deadline);
    fettle_set_error(error, TIMEOUT, "guest %s: the copy to its replica has not ended in %u ms",
                     guest->name, LIMIT_MIRROR_END_MS);
    return false;
}

static bool end_copies(struct guest *guest, GError **error)
{
    struct job_set copies = copies_of(guest);
    /* A job that waits for a reconnection ends by this alone. */
    return block_jobs_cancel(guest, &copies, error) && await_end(guest, error) &&
           take_away(guest, error);
}

bool incremental_give_up(struct guest *guest, GError **error)
{
    struct incremental *incremental = &guest->incremental;
    if (!incremental->active && incremental->tasks == 0)
        return true;
    incremental->giving_up = true;
    bool ended = end_copies(guest, error);
    incremental->giving_up = false;
    if (!ended)
        return false;
    incremental->active = incremental->failed = false;
    return guest_state_write(guest, error);
}

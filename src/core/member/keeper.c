/*
 * See keeper.h. Everything that changes the member is done under one lock; turns – starts after a
 * pause, looks – are tasks that a timer begins.
 */
#include "core/member/keeper_private.h"

#include "base/log.h"

#define WHY_CHARS 512 /* of member_status */

/* --- lifetime --- */

void keeper_release(struct keeper *keeper)
{
    if (--keeper->users > 0)
        return;
    member_record_free(keeper->record);
    g_free(keeper->why);
    g_free(keeper);
}

static gint64 now_ms(const struct keeper *keeper)
{
    return keeper->env->ops->boot_ms(keeper->env);
}

static void set_why(struct keeper *keeper, const char *why)
{
    g_free(keeper->why);
    keeper->why = g_utf8_substring(why, 0, MIN(g_utf8_strlen(why, -1), WHY_CHARS));
}

/* --- turns --- */

/* Twice as long after each failure in a row. */
static guint next_pause(const struct keeper *keeper)
{
    guint pause = MEMBER_FIRST_PAUSE_MS;
    for (guint i = 1; i < keeper->failures && pause < MEMBER_LONGEST_PAUSE_MS; i++)
        pause *= 2;
    return MIN(pause, MEMBER_LONGEST_PAUSE_MS);
}

static void failed(struct keeper *keeper, const char *why)
{
    keeper->failures++;
    set_why(keeper, why);
    log_warning("", "member of etcd: %s; it is started again in %u ms", why, next_pause(keeper));
    keeper_turn_later(keeper, next_pause(keeper));
}

bool keeper_is_lost(const struct keeper *keeper)
{
    return keeper->record != NULL && keeper->record->made &&
           !keeper->members->ops->has_data(keeper->members);
}

bool keeper_start_process(struct keeper *keeper, GError **error)
{
    struct members *members = keeper->members;
    if (keeper_is_lost(keeper)) {
        fettle_set_error(error, WRONG_STATE, "%s", WHY_LOST);
        return false;
    }
    record_autoptr(engine_config) config = members->ops->config_read(members, error);
    if (config == NULL)
        return false;
    if (strcmp(config->token, keeper->record->token) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "var/etcd belongs to the founding %s, etc/engine.json is of \"%s\"; put "
                         "the data aside first",
                         keeper->record->token, config->token);
        return false;
    }
    if (!members->ops->start(members, config, keeper->record->initial, error))
        return false;
    keeper->running_since_ms = now_ms(keeper);
    keeper->upkeep = (struct upkeep){.limit = keeper->members->store_bytes};
    return true;
}

static void disarm(struct keeper *keeper, const struct member_status *status)
{
    g_autoptr(GError) error = NULL;
    if (keeper->members->ops->disarm(keeper->members, status->id, &error))
        log_info("",
                 "member of etcd: its file of %" G_GUINT64_FORMAT
                 " MiB has room again; the alarm is taken back, and etcd takes changes",
                 status->store_bytes >> 20);
    else if (!task_killed())
        log_warning("", "member of etcd: the alarm NOSPACE is not taken back: %s", error->message);
}

/* Said once: who is full looks again soon. */
static void wait_for_others(struct keeper *keeper, const struct member_status *status, bool urgent,
                            const struct members_others *others)
{
    if (!urgent || keeper->upkeep.waits)
        return;
    keeper->upkeep.waits = true;
    log_warning("",
                "member of etcd: its file of %" G_GUINT64_FORMAT
                " MiB has reached its limit; room is made after others: of %u other members %u do "
                "not answer and %u come first",
                status->store_bytes >> 20, others->count, others->silent, others->full_before);
}

static bool may_defragment(struct keeper *keeper, const struct member_status *status, bool urgent)
{
    struct members_others others = {0};
    g_autoptr(GError) error = NULL;
    if (!keeper->members->ops->ask_others(keeper->members, status->id, &others, &error)) {
        if (!task_killed())
            log_warning("", "member of etcd: its file is not rewritten: %s", error->message);
        return false;
    }
    if (upkeep_may_defragment(&keeper->upkeep, urgent, &others, now_ms(keeper)))
        return true;
    wait_for_others(keeper, status, urgent, &others);
    return false;
}

/* Whether the next look is to come soon. */
static bool run_upkeep(struct keeper *keeper, const struct member_status *status)
{
    struct members *members = keeper->members;
    g_autoptr(GError) error = NULL;
    struct upkeep_due due = upkeep_look(&keeper->upkeep, status, now_ms(keeper));
    if (due.disarm)
        disarm(keeper, status);
    if (due.compact != 0 && members->ops->compact(members, due.compact, &error))
        upkeep_compacted(&keeper->upkeep, due.compact, now_ms(keeper));
    if (error != NULL && !task_killed())
        log_warning("", "member of etcd: old revisions are not dropped: %s", error->message);
    g_clear_error(&error);
    if (!due.defragment || task_killed())
        return false;
    if (!may_defragment(keeper, status, due.urgent))
        return due.urgent;
    if (due.urgent)
        log_error("",
                  "member of etcd: its file of %" G_GUINT64_FORMAT
                  " MiB has reached its limit, and no member takes changes; room is being made",
                  status->store_bytes >> 20);
    if (members->ops->defragment(members, due.urgent, &error))
        log_info("",
                 "member of etcd: its file of %" G_GUINT64_FORMAT
                 " MiB was rewritten, %" G_GUINT64_FORMAT " MiB of it were in use",
                 status->store_bytes >> 20, status->used_bytes >> 20);
    else if (fettle_error_is(error, TEMPORARY) || task_killed())
        return false; /* another's turn */
    else
        log_warning("", "member of etcd: its file is not rewritten: %s", error->message);
    upkeep_defragmented(&keeper->upkeep, now_ms(keeper));
    return due.urgent;
}

/* Once it was healthy it counts: from then on its data must not be missing. */
static void remember_made(struct keeper *keeper)
{
    g_autoptr(GError) error = NULL;
    if (keeper->record->made)
        return;
    record_autoptr(member_record) made = member_record_copy(keeper->record);
    made->made = true;
    if (!keeper_save(keeper, made, &error) && !task_killed())
        log_warning("", "%s", error->message);
}

static void look(struct keeper *keeper)
{
    struct members *members = keeper->members;
    record_autoptr(member_status) status = member_status_new();
    g_autoptr(GError) error = NULL;
    members->ops->trim_log(members);
    if (!members->ops->ask(members, status, &error))
        return;
    if (status->healthy) {
        remember_made(keeper);
        g_clear_pointer(&keeper->why, g_free);
    }
    if (now_ms(keeper) - keeper->running_since_ms >= MEMBER_SETTLED_MS)
        keeper->failures = 0;
    bool soon = run_upkeep(keeper, status) || !keeper->record->made;
    keeper_turn_later(keeper, soon ? MEMBER_FIRST_LOOK_MS : MEMBER_LOOK_MS);
}

static void turn(struct keeper *keeper)
{
    struct members *members = keeper->members;
    g_autoptr(GError) error = NULL;
    if (keeper->record == NULL || !keeper->record->run)
        return;
    if (members->ops->running(members))
        look(keeper);
    else if (keeper_start_process(keeper, &error)) {
        keeper->restarts += keeper->failures > 0;
        keeper_turn_later(keeper, MEMBER_FIRST_LOOK_MS);
    } else if (!task_killed())
        failed(keeper, error->message);
}

static void turn_task(void *data)
{
    struct keeper *keeper = data;
    if (!keeper->ended && task_mutex_lock(&keeper->lock)) {
        if (!keeper->ended)
            turn(keeper);
        task_mutex_unlock(&keeper->lock);
    }
    keeper_release(keeper);
}

static void turn_cb(void *data)
{
    struct keeper *keeper = data;
    keeper->timer = 0;
    keeper->users++;
    task_spawn(keeper->env->tasks, turn_task, keeper);
}

void keeper_no_turn(struct keeper *keeper)
{
    if (keeper->timer != 0)
        keeper->env->ops->timer_cancel(keeper->env, keeper->timer);
    keeper->timer = 0;
}

void keeper_turn_later(struct keeper *keeper, guint ms)
{
    keeper_no_turn(keeper);
    if (!keeper->ended)
        keeper->timer = keeper->env->ops->timer(keeper->env, ms, turn_cb, keeper);
}

static void member_ended(const char *why, void *data)
{
    struct keeper *keeper = data;
    if (keeper->record != NULL && keeper->record->run)
        failed(keeper, why);
}

/* --- start and end of the care --- */

struct keeper *keeper_new(const struct env *env)
{
    if (env->members == NULL)
        return NULL;
    struct keeper *keeper = g_new0(struct keeper, 1);
    keeper->env = env;
    keeper->members = env->members;
    keeper->upkeep.limit = keeper->members->store_bytes;
    keeper->users = 1;
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    if (keeper == NULL)
        return;
    keeper->ended = true;
    keeper_no_turn(keeper);
    keeper->members->ops->set_ended(keeper->members, NULL, NULL);
    keeper_release(keeper);
}

void keeper_start(struct keeper *keeper)
{
    g_autoptr(GError) error = NULL;
    bool running = false;
    if (keeper == NULL)
        return;
    struct members *members = keeper->members;
    members->ops->set_ended(members, member_ended, keeper);
    if (!keeper_load(keeper, &error) || !members->ops->adopt(members, &running, &error)) {
        if (task_killed())
            return;
        log_error("", "member of etcd: %s", error->message);
        set_why(keeper, error->message);
        return;
    }
    keeper->running_since_ms = now_ms(keeper);
    if (keeper->record != NULL && keeper->record->run)
        keeper_turn_later(keeper, running ? MEMBER_FIRST_LOOK_MS : 1);
}

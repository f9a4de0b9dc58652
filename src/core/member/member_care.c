/*
 * See member_care.h. Everything that changes the member is done under one lock; turns – starts
 * after a pause, looks – are tasks that a timer begins.
 */
#include "core/member/member_private.h"

#include "base/log.h"

#define WHY_CHARS 512 /* of member_status */

/* --- lifetime --- */

void member_care_release(struct member_care *care)
{
    if (--care->users > 0)
        return;
    member_record_free(care->record);
    g_free(care->why);
    g_free(care);
}

static gint64 now_ms(const struct member_care *care)
{
    return care->env->ops->boot_ms(care->env);
}

static void set_why(struct member_care *care, const char *why)
{
    g_free(care->why);
    care->why = g_utf8_substring(why, 0, MIN(g_utf8_strlen(why, -1), WHY_CHARS));
}

/* --- turns --- */

void member_care_give_turn(struct member_care *care)
{
    if (care->in_turn)
        care->members->ops->turn_give(care->members);
    care->in_turn = false;
}

/* Twice as long after each failure in a row. */
static guint next_pause(const struct member_care *care)
{
    guint pause = MEMBER_FIRST_PAUSE_MS;
    for (guint i = 1; i < care->failures && pause < MEMBER_LONGEST_PAUSE_MS; i++)
        pause *= 2;
    return MIN(pause, MEMBER_LONGEST_PAUSE_MS);
}

static void failed(struct member_care *care, const char *why)
{
    care->failures++;
    set_why(care, why);
    log_warning("", "member of etcd: %s; it is started again in %u ms", why, next_pause(care));
    member_care_turn_later(care, next_pause(care));
}

bool member_care_is_lost(const struct member_care *care)
{
    return care->record != NULL && care->record->made &&
           !care->members->ops->has_data(care->members);
}

bool member_care_start_process(struct member_care *care, GError **error)
{
    struct members *members = care->members;
    if (member_care_is_lost(care)) {
        fettle_set_error(error, WRONG_STATE, "%s", WHY_LOST);
        return false;
    }
    record_autoptr(engine_config) config = members->ops->config_read(members, error);
    if (config == NULL)
        return false;
    if (strcmp(config->token, care->record->token) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "var/etcd belongs to the founding %s, etc/engine.json is of \"%s\"; put "
                         "the data aside first",
                         care->record->token, config->token);
        return false;
    }
    if (!members->ops->start(members, config, care->record->initial, error))
        return false;
    care->running_since_ms = now_ms(care);
    care->upkeep = (struct member_maintenance){.limit = care->members->store_bytes};
    return true;
}

static void disarm(struct member_care *care, const struct member_status *status)
{
    g_autoptr(GError) error = NULL;
    if (care->members->ops->disarm(care->members, status->id, &error))
        log_info("",
                 "member of etcd: its file of %" G_GUINT64_FORMAT
                 " MiB has room again; the alarm is taken back, and etcd takes changes",
                 status->store_bytes >> 20);
    else if (!task_killed())
        log_warning("", "member of etcd: the alarm NOSPACE is not taken back: %s", error->message);
}

/* Said once: who is full looks again soon. */
static void wait_for_others(struct member_care *care, const struct member_status *status,
                            bool urgent, const struct members_others *others)
{
    if (!urgent || care->upkeep.waits)
        return;
    care->upkeep.waits = true;
    log_warning("",
                "member of etcd: its file of %" G_GUINT64_FORMAT
                " MiB has reached its limit; room is made after others: of %u other members %u do "
                "not answer and %u come first",
                status->store_bytes >> 20, others->count, others->silent, others->full_before);
}

static bool may_defragment(struct member_care *care, const struct member_status *status,
                           bool urgent)
{
    struct members_others others = {0};
    g_autoptr(GError) error = NULL;
    if (!care->members->ops->ask_others(care->members, status->id, &others, &error)) {
        if (!task_killed())
            log_warning("", "member of etcd: its file is not rewritten: %s", error->message);
        return false;
    }
    if (member_maintenance_may_defragment(&care->upkeep, urgent, &others, now_ms(care)))
        return true;
    wait_for_others(care, status, urgent, &others);
    return false;
}

/* With a file at its limit nobody can take a turn. */
static bool defragment(struct members *members, bool urgent, GError **error)
{
    if (!urgent && !members->ops->turn_take(members, error))
        return false;
    bool ok = members->ops->defragment(members, error);
    if (!urgent)
        members->ops->turn_give(members);
    return ok;
}

/* Whether the next look is to come soon. */
static bool run_upkeep(struct member_care *care, const struct member_status *status)
{
    struct members *members = care->members;
    g_autoptr(GError) error = NULL;
    struct member_maintenance_due due =
        member_maintenance_look(&care->upkeep, status, now_ms(care));
    if (due.disarm)
        disarm(care, status);
    if (due.compact != 0 && members->ops->compact(members, due.compact, &error))
        member_maintenance_compacted(&care->upkeep, due.compact, now_ms(care));
    if (error != NULL && !task_killed())
        log_warning("", "member of etcd: old revisions are not dropped: %s", error->message);
    g_clear_error(&error);
    if (!due.defragment || task_killed())
        return false;
    if (!may_defragment(care, status, due.urgent))
        return due.urgent;
    if (due.urgent)
        log_error("",
                  "member of etcd: its file of %" G_GUINT64_FORMAT
                  " MiB has reached its limit, and no member takes changes; room is being made",
                  status->store_bytes >> 20);
    if (defragment(members, due.urgent, &error))
        log_info("",
                 "member of etcd: its file of %" G_GUINT64_FORMAT
                 " MiB was rewritten, %" G_GUINT64_FORMAT " MiB of it were in use",
                 status->store_bytes >> 20, status->used_bytes >> 20);
    else if (fettle_error_is(error, TEMPORARY) || task_killed())
        return false; /* another's turn */
    else
        log_warning("", "member of etcd: its file is not rewritten: %s", error->message);
    member_maintenance_defragmented(&care->upkeep, now_ms(care));
    return due.urgent;
}

/* Once it was healthy it counts: from then on its data must not be missing. */
static void remember_made(struct member_care *care)
{
    g_autoptr(GError) error = NULL;
    if (care->record->made)
        return;
    record_autoptr(member_record) made = member_record_copy(care->record);
    made->made = true;
    if (!member_care_save(care, made, &error) && !task_killed())
        log_warning("", "%s", error->message);
}

static void look(struct member_care *care)
{
    struct members *members = care->members;
    record_autoptr(member_status) status = member_status_new();
    g_autoptr(GError) error = NULL;
    members->ops->trim_log(members);
    if (!members->ops->ask(members, status, &error))
        return;
    if (status->healthy) {
        remember_made(care);
        g_clear_pointer(&care->why, g_free);
        member_care_give_turn(care);
    }
    bool settled = now_ms(care) - care->running_since_ms >= MEMBER_SETTLED_MS;
    if (settled)
        care->failures = 0;
    /* One that is not well by then is looked at like others; its turn lasts until it is. */
    bool soon = run_upkeep(care, status) || !care->record->made || (care->in_turn && !settled);
    member_care_turn_later(care, soon ? MEMBER_FIRST_LOOK_MS : MEMBER_LOOK_MS);
}

static void turn(struct member_care *care)
{
    struct members *members = care->members;
    g_autoptr(GError) error = NULL;
    if (care->record == NULL || !care->record->run)
        return;
    if (members->ops->running(members))
        look(care);
    else if (member_care_start_process(care, &error)) {
        care->restarts += care->failures > 0;
        member_care_turn_later(care, MEMBER_FIRST_LOOK_MS);
    } else if (!task_killed())
        failed(care, error->message);
}

static void turn_task(void *data)
{
    struct member_care *care = data;
    if (!care->ended && task_mutex_lock(&care->lock)) {
        if (!care->ended)
            turn(care);
        task_mutex_unlock(&care->lock);
    }
    member_care_release(care);
}

static void turn_cb(void *data)
{
    struct member_care *care = data;
    care->timer = 0;
    care->users++;
    task_spawn(care->env->tasks, turn_task, care);
}

void member_care_no_turn(struct member_care *care)
{
    if (care->timer != 0)
        care->env->ops->timer_cancel(care->env, care->timer);
    care->timer = 0;
}

void member_care_turn_later(struct member_care *care, guint ms)
{
    member_care_no_turn(care);
    if (!care->ended)
        care->timer = care->env->ops->timer(care->env, ms, turn_cb, care);
}

static void member_ended(const char *why, void *data)
{
    struct member_care *care = data;
    if (care->record != NULL && care->record->run)
        failed(care, why);
}

/* --- start and end of the care --- */

struct member_care *member_care_new(const struct env *env)
{
    if (env->members == NULL)
        return NULL;
    struct member_care *care = g_new0(struct member_care, 1);
    care->env = env;
    care->members = env->members;
    care->upkeep.limit = care->members->store_bytes;
    care->users = 1;
    return care;
}

void member_care_free(struct member_care *care)
{
    if (care == NULL)
        return;
    care->ended = true;
    member_care_no_turn(care);
    care->members->ops->set_ended(care->members, NULL, NULL);
    member_care_release(care);
}

void member_care_start(struct member_care *care)
{
    g_autoptr(GError) error = NULL;
    bool running = false;
    if (care == NULL)
        return;
    struct members *members = care->members;
    members->ops->set_ended(members, member_ended, care);
    if (!member_care_load(care, &error) || !members->ops->adopt(members, &running, &error)) {
        if (task_killed())
            return;
        log_error("", "member of etcd: %s", error->message);
        set_why(care, error->message);
        return;
    }
    care->running_since_ms = now_ms(care);
    /* The daemon before may have had the turn. */
    care->in_turn = care->record != NULL && care->record->run;
    if (care->in_turn)
        member_care_turn_later(care, running ? MEMBER_FIRST_LOOK_MS : 1);
}

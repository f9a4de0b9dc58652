/*
 * See keeper.h. Everything that changes the member is done under one lock; turns – starts after a
 * pause, looks – are tasks that a timer begins.
 */
#include "core/guest/keeper.h"

#include "base/log.h"
#include "core/guest/guest.h"
#include "core/guest/upkeep.h"

#define RECORD_FILE "node/member.json"
#define LOST                                                                                       \
    "its data is gone: var/etcd is not there; it must not begin anew as the member that it was "   \
    "(SAF-07): remove it from the members and add it as a new one"

#define WHY_CHARS 512 /* of member_status */

struct keeper {
    const struct env *env;
    struct members *members;
    struct task_mutex lock;
    struct member_record *record; /* NULL: no member was ever started here, or it was removed */
    char *why;                    /* the last end or failed start; NULL: all is well */
    guint failures;               /* ends and failed starts since it was settled */
    gint64 running_since_ms;
    guint timer;
    struct upkeep upkeep;
    guint users; /* the owner, and each task */
    bool ended;
};

/* --- lifetime --- */

static void keeper_release(struct keeper *keeper)
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

/* --- what is wanted --- */

static bool save(struct keeper *keeper, const struct member_record *record, GError **error)
{
    json_autoptr json = member_record_to_json(record);
    g_autofree char *text = json_to_text(json);
    if (!keeper->env->ops->file_write(keeper->env, FILE_STATE, RECORD_FILE, text, strlen(text),
                                      error))
        return false;
    struct member_record *copy = member_record_copy(record);
    member_record_free(keeper->record);
    keeper->record = copy;
    return true;
}

static bool save_run(struct keeper *keeper, bool run, GError **error)
{
    if (keeper->record == NULL || keeper->record->run == run)
        return true;
    record_autoptr(member_record) changed = member_record_copy(keeper->record);
    changed->run = run;
    return save(keeper, changed, error);
}

static bool forget_record(struct keeper *keeper, GError **error)
{
    if (!keeper->env->ops->file_remove(keeper->env, FILE_STATE, RECORD_FILE, error))
        return false;
    member_record_free(keeper->record);
    keeper->record = NULL;
    return true;
}

static bool load(struct keeper *keeper, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text = keeper->env->ops->file_read(keeper->env, FILE_STATE, RECORD_FILE,
                                                        LIMIT_STATE_FILE_BYTES, &len, &why);
    if (text == NULL && fettle_error_is(why, UNKNOWN_ENTITY))
        return true;
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &why) : NULL;
    keeper->record = json != NULL ? member_record_parse(json, RECORD_KEEP, &why) : NULL;
    if (keeper->record == NULL)
        fettle_set_error(error, CORRUPT,
                         "var/" RECORD_FILE " is damaged (%s); put back the file as it was",
                         why->message);
    return keeper->record != NULL;
}

/* --- turns --- */

static void turn_later(struct keeper *keeper, guint ms);

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
    turn_later(keeper, next_pause(keeper));
}

static bool is_lost(const struct keeper *keeper)
{
    return keeper->record != NULL && keeper->record->made &&
           !keeper->members->ops->has_data(keeper->members);
}

static bool start_process(struct keeper *keeper, GError **error)
{
    struct members *members = keeper->members;
    if (is_lost(keeper)) {
        fettle_set_error(error, WRONG_STATE, "%s", LOST);
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
    memset(&keeper->upkeep, 0, sizeof keeper->upkeep);
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

/* Whether the next look is to come soon. */
static bool run_upkeep(struct keeper *keeper, const struct member_status *status)
{
    struct members *members = keeper->members;
    g_autoptr(GError) error = NULL;
    struct upkeep_due due = upkeep_look(&keeper->upkeep, status, now_ms(keeper));
    if (due.disarm)
        disarm(keeper, status);
    if (due.urgent)
        log_error("",
                  "member of etcd: its file of %" G_GUINT64_FORMAT
                  " MiB has reached its limit, and no member takes changes; room is being made",
                  status->store_bytes >> 20);
    if (due.compact != 0 && members->ops->compact(members, due.compact, &error))
        upkeep_compacted(&keeper->upkeep, due.compact, now_ms(keeper));
    if (error != NULL && !task_killed())
        log_warning("", "member of etcd: old revisions are not dropped: %s", error->message);
    g_clear_error(&error);
    if (!due.defragment || task_killed())
        return false;
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
    if (!save(keeper, made, &error) && !task_killed())
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
    turn_later(keeper, soon ? MEMBER_FIRST_LOOK_MS : MEMBER_LOOK_MS);
}

static void turn(struct keeper *keeper)
{
    struct members *members = keeper->members;
    g_autoptr(GError) error = NULL;
    if (keeper->record == NULL || !keeper->record->run)
        return;
    if (members->ops->running(members))
        look(keeper);
    else if (start_process(keeper, &error))
        turn_later(keeper, MEMBER_FIRST_LOOK_MS);
    else if (!task_killed())
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

static void no_turn(struct keeper *keeper)
{
    if (keeper->timer != 0)
        keeper->env->ops->timer_cancel(keeper->env, keeper->timer);
    keeper->timer = 0;
}

static void turn_later(struct keeper *keeper, guint ms)
{
    no_turn(keeper);
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
    keeper->users = 1;
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    if (keeper == NULL)
        return;
    keeper->ended = true;
    no_turn(keeper);
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
    if (!load(keeper, &error) || !members->ops->adopt(members, &running, &error)) {
        if (task_killed())
            return;
        log_error("", "member of etcd: %s", error->message);
        set_why(keeper, error->message);
        return;
    }
    keeper->running_since_ms = now_ms(keeper);
    if (keeper->record != NULL && keeper->record->run)
        turn_later(keeper, running ? MEMBER_FIRST_LOOK_MS : 1);
}

/* --- methods --- */

/* The keeper, locked; NULL with an error. */
static struct keeper *enter(struct node_core *node, GError **error)
{
    struct keeper *keeper = node->keeper;
    if (keeper == NULL) {
        fettle_set_error(error, WRONG_STATE, "this node daemon cares for no member of etcd");
        return NULL;
    }
    keeper->users++;
    if (task_mutex_lock(&keeper->lock))
        return keeper;
    keeper_release(keeper);
    node_killed(error);
    return NULL;
}

static json_t *leave(struct keeper *keeper, bool ok)
{
    task_mutex_unlock(&keeper->lock);
    keeper_release(keeper);
    return ok ? json_object() : NULL;
}

json_t *keeper_engine_set(struct node_core *node, struct fence_op *op, const void *args,
                          GError **error)
{
    const struct engine_config_args *set = args;
    struct keeper *keeper = enter(node, error);
    if (keeper == NULL)
        return NULL;
    bool ok = keeper->members->ops->config_write(keeper->members, set->config, error);
    if (ok)
        log_info(
            "", "engine: %s, %s",
            enum_word(&engine_kind_words,
                      set->config ? (int)set->config->kind : ENGINE_KIND_SQLITE),
            enum_word(&engine_phase_words, set->config ? (int)set->config->state : ENGINE_ACTIVE));
    return leave(keeper, ok);
}

bool keeper_may_promise(const struct keeper *keeper, const char *node, const char *master,
                        guint64 serial, GError **error)
{
    if (keeper == NULL || strcmp(node, keeper->env->node_uuid) == 0)
        return true;
    record_autoptr(engine_config) config =
        keeper->members->ops->config_read(keeper->members, error);
    if (config == NULL)
        return false;
    if (config->kind == ENGINE_KIND_SQLITE || config->state == ENGINE_PREPARING)
        return true;
    bool not_made = config->serial && serial >= config->serial;
    if (config->state == ENGINE_DECIDING && (strcmp(node, master) == 0 || not_made))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "this node promises no mastership of the engine sqlite: etc/engine.json says "
                     "etcd, %s",
                     enum_word(&engine_phase_words, (int)config->state));
    return false;
}

static enum member_state state_of(const struct keeper *keeper)
{
    if (keeper->members->ops->running(keeper->members))
        return MEMBER_RUNNING;
    if (is_lost(keeper))
        return MEMBER_LOST;
    if (keeper->record == NULL)
        return MEMBER_ABSENT;
    return keeper->record->run ? MEMBER_WAITING : MEMBER_STOPPED;
}

/* What the keeper knows, on top of what the member says. Not locked: a status is no change. */
static void complete(const struct keeper *keeper, struct member_status *status)
{
    status->state = state_of(keeper);
    status->restarts = keeper->failures;
    set_string(&status->token, keeper->record != NULL ? keeper->record->token : "");
    if (status->state == MEMBER_LOST)
        set_string(&status->why, LOST);
    else if (status->state != MEMBER_RUNNING)
        set_string(&status->why, keeper->why != NULL ? keeper->why : "");
}

json_t *keeper_engine_status(struct node_core *node, struct fence_op *op, const void *args,
                             GError **error)
{
    struct keeper *keeper = node->keeper;
    if (keeper == NULL) {
        fettle_set_error(error, WRONG_STATE, "this node daemon cares for no member of etcd");
        return NULL;
    }
    struct members *members = keeper->members;
    record_autoptr(engine_report) report = engine_report_new();
    report->config = members->ops->config_read(members, error);
    report->member = member_status_new();
    if (report->config == NULL)
        return NULL;
    keeper->users++;
    bool ok = members->ops->ask(members, report->member, error);
    complete(keeper, report->member);
    keeper_release(keeper);
    return ok ? engine_report_to_json(report) : NULL;
}

json_t *keeper_member_prepare(struct node_core *node, struct fence_op *op, const void *args,
                              GError **error)
{
    record_autoptr(member_requests) requests = member_requests_new();
    struct keeper *keeper = enter(node, error);
    if (keeper == NULL)
        return NULL;
    g_autofree char *member = NULL;
    g_autofree char *client = NULL;
    bool ok = keeper->members->ops->prepare(keeper->members, &member, &client, error);
    json_decref(leave(keeper, ok));
    set_string(&requests->member, member);
    set_string(&requests->client, client);
    return ok ? member_requests_to_json(requests) : NULL;
}

json_t *keeper_member_certify(struct node_core *node, struct fence_op *op, const void *args,
                              GError **error)
{
    const struct member_certificates *given = args;
    struct keeper *keeper = enter(node, error);
    if (keeper == NULL)
        return NULL;
    return leave(keeper, keeper->members->ops->certify(keeper->members, given->member,
                                                       given->client, error));
}

/* The record with which the member of etc/engine.json begins; NULL with an error. */
static struct member_record *begin(struct keeper *keeper, enum member_initial initial,
                                   GError **error)
{
    struct members *members = keeper->members;
    record_autoptr(engine_config) config = members->ops->config_read(members, error);
    const struct member_record *before = keeper->record;
    if (config == NULL)
        return NULL;
    if (!engine_config_member(config, keeper->env->node_uuid)) {
        fettle_set_error(error, WRONG_STATE,
                         "etc/engine.json has no member for this node; it is to be written first");
        return NULL;
    }
    bool same = before != NULL && strcmp(before->token, config->token) == 0;
    if (!same && members->ops->has_data(members)) {
        fettle_set_error(error, WRONG_STATE,
                         "var/etcd has data of %s%s, not of the founding %s; put it aside first",
                         before != NULL ? "the founding " : "an unknown founding",
                         before != NULL ? before->token : "", config->token);
        return NULL;
    }
    struct member_record *record = same ? member_record_copy(before) : member_record_new();
    record->run = true;
    set_string(&record->token, config->token);
    if (!record->made)
        record->initial = initial;
    return record;
}

static bool start_member(struct keeper *keeper, enum member_initial initial, GError **error)
{
    record_autoptr(member_record) record = begin(keeper, initial, error);
    if (record == NULL || !save(keeper, record, error))
        return false;
    keeper->failures = 0;
    g_clear_pointer(&keeper->why, g_free);
    if (start_process(keeper, error)) {
        turn_later(keeper, MEMBER_FIRST_LOOK_MS);
        return true;
    }
    save_run(keeper, false, NULL);
    return false;
}

json_t *keeper_member_start(struct node_core *node, struct fence_op *op, const void *args,
                            GError **error)
{
    const struct member_start_args *start = args;
    struct keeper *keeper = enter(node, error);
    if (keeper == NULL)
        return NULL;
    return leave(keeper, start_member(keeper, start->initial, error));
}

static bool stop_member(struct keeper *keeper, GError **error)
{
    no_turn(keeper);
    g_clear_pointer(&keeper->why, g_free);
    return save_run(keeper, false, error) && keeper->members->ops->stop(keeper->members, error);
}

json_t *keeper_member_stop(struct node_core *node, struct fence_op *op, const void *args,
                           GError **error)
{
    struct keeper *keeper = enter(node, error);
    return keeper != NULL ? leave(keeper, stop_member(keeper, error)) : NULL;
}

/* The data goes first: a death in between leaves a member that is lost, not one that begins anew.
 */
static bool put_aside(struct keeper *keeper, char **ret_folder, GError **error)
{
    return keeper->members->ops->aside(keeper->members, ret_folder, error) &&
           forget_record(keeper, error);
}

json_t *keeper_member_aside(struct node_core *node, struct fence_op *op, const void *args,
                            GError **error)
{
    record_autoptr(member_aside_result) result = member_aside_result_new();
    g_autofree char *folder = NULL;
    struct keeper *keeper = enter(node, error);
    if (keeper == NULL)
        return NULL;
    bool ok = put_aside(keeper, &folder, error);
    json_decref(leave(keeper, ok));
    set_string(&result->folder, folder != NULL ? folder : "");
    return ok ? member_aside_result_to_json(result) : NULL;
}

json_t *keeper_member_remove(struct node_core *node, struct fence_op *op, const void *args,
                             GError **error)
{
    g_autofree char *folder = NULL;
    struct keeper *keeper = enter(node, error);
    if (keeper == NULL)
        return NULL;
    return leave(keeper, stop_member(keeper, error) && put_aside(keeper, &folder, error) &&
                             keeper->members->ops->forget(keeper->members, error));
}

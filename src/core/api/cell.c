/* See cell.h. */
#include "core/api/cell.h"

#include <string.h>

#include "base/log.h"
#include "proto/records.h"

#define CELL_AGAIN_MS 200
#define CELL_PATIENCE_MS 10000 /* as long as a client's request waits for a master */
#define CELL_LOOK_MS 200       /* a later master may have lost what is waited for */
#define CELL_REFUSED_MS 5000   /* between first questions of a node that may not ask (yet) */

struct cell {
    const struct env *env;
    struct follow *follow;
    struct stamp owed;   /* what the copy is to have: of that mastership, */
    guint64 owed_serial; /* that serial */
};

struct cell *cell_new(const struct env *env)
{
    struct cell *cell = g_new0(struct cell, 1);
    cell->env = env;
    cell->follow = follow_new(env, NULL, NULL);
    follow_from_anywhere(cell->follow);
    follow_only(cell->follow, object_is_front);
    return cell;
}

void cell_free(struct cell *cell)
{
    if (!cell)
        return;
    follow_free(cell->follow);
    g_free(cell);
}

/* Until there is a first copy. On a node that may not ask yet it waits until it may. */
static void cell_start_cb(void *data)
{
    struct cell *cell = data;
    for (bool told = false;; told = true) {
        g_autoptr(GError) error = NULL;
        if (follow_start(cell->follow, &error) || task_killed())
            return;
        if (!told)
            log_info("", "there is no copy of the configuration yet: %s", error->message);
        if (!env_sleep(cell->env, CELL_REFUSED_MS))
            return;
    }
}

void cell_start(struct cell *cell)
{
    task_spawn(cell->env->tasks, cell_start_cb, cell);
}

const struct config *cell_config(const struct cell *cell)
{
    const struct config *config = follow_config(cell->follow);
    return config_history(config) ? config : NULL;
}

gint64 cell_age_ms(const struct cell *cell)
{
    return cell_config(cell) ? follow_silent_ms(cell->follow) : 0;
}

/* --- calls --- */

/* It may be answered yet: by the same master, or by the next one. What is not permitted is not for
 * this node (yet), and nothing of who asks the API. */
static bool is_passing(const GError *error)
{
    return env_no_answer(error) || fettle_error_is(error, TEMPORARY) ||
           fettle_error_is(error, NOT_MASTER) || fettle_error_is(error, STALE_EPOCH) ||
           fettle_error_is(error, PERMISSION);
}

/* What is left of its time, `begun` being when it began (boot clock). */
static guint patience_ms(const struct cell *cell, gint64 begun)
{
    gint64 waited = cell->env->ops->boot_ms(cell->env) - begun;
    return (guint)MAX(CELL_PATIENCE_MS - waited, 0);
}

/* As long as the configuration is the one that the caller has decided on: what it was before a
 * backup was restored is nothing any more. */
static bool may_go_on(const struct cell *cell, guint64 history, const char *method, GError **error)
{
    const struct config *config = cell_config(cell);
    if (config && history && config_history(config) == history)
        return true;
    fettle_set_error(error, TEMPORARY, "%s: %s", method,
                     config && history ? "a backup of the configuration was restored meanwhile"
                                       : "no master has been heard of since this front end began");
    return false;
}

/* It has reached somebody who may do it. */
static bool is_unknown(const GError *error)
{
    return fettle_error_is(error, TIMEOUT) || fettle_error_is(error, UNKNOWN_RESULT);
}

/* The time is over. What nobody can have done may be asked for again by who asks the API, or by his
 * program on its own; what may be done may not (docs/design/api.md, 24). */
static void give_up(const char *method, bool unknown, const GError *last, GError **error)
{
    if (unknown)
        fettle_set_error(error, UNKNOWN_RESULT,
                         "%s: no master answers, and it may have been done; look before you ask "
                         "again: %s",
                         method, last->message);
    else
        fettle_set_error(error, TEMPORARY, "%s: no master answers: %s", method, last->message);
}

/* Asks until there is an answer, or the time is over. */
static void *ask(struct cell *cell, const char *method, const void *args, GError **error)
{
    const struct config *config = cell_config(cell);
    guint64 history = config ? config_history(config) : 0;
    gint64 begun = cell->env->ops->boot_ms(cell->env);
    bool unknown = false;
    for (guint left = CELL_PATIENCE_MS; may_go_on(cell, history, method, error);) {
        g_autoptr(GError) local = NULL;
        void *answer = env_call_record(cell->env, NODE_MASTER, ROLE_WCONFD, method, args,
                                       follow_stamp(cell->follow), 0, left, &local);
        if (answer)
            return answer;
        unknown = unknown || is_unknown(local);
        if (fettle_error_is(local, STALE_EPOCH))
            follow_refresh(cell->follow, NULL);
        left = patience_ms(cell, begun);
        if (is_passing(local) && left > CELL_AGAIN_MS && env_sleep(cell->env, CELL_AGAIN_MS)) {
            left = patience_ms(cell, begun);
            continue;
        }
        if (is_passing(local))
            give_up(method, unknown, local, error);
        else
            g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    return NULL;
}

/* The serial of what was committed; 0: the answer has none. */
static guint64 serial_of(const struct record *record, const void *answer)
{
    const struct field *field = record_field(record, "serial");
    return field ? *(const guint64 *)((const char *)answer + field->offset) : 0;
}

/* A later mastership has it, or has lost it. */
bool cell_has_own(const struct cell *cell)
{
    int order = stamp_compare(follow_stamp(cell->follow), cell->owed);
    return order > 0 || (!order && config_serial(follow_config(cell->follow)) >= cell->owed_serial);
}

bool cell_await_own(struct cell *cell, GError **error)
{
    gint64 begun = cell->env->ops->boot_ms(cell->env);
    while (!cell_has_own(cell) && patience_ms(cell, begun) && !task_killed())
        follow_wait_ms(cell->follow, cell->owed_serial, CELL_LOOK_MS);
    if (cell_has_own(cell))
        return true;
    fettle_set_error(error, TEMPORARY,
                     "what was asked for here lately is on record, and not to be seen here yet: no "
                     "news comes from the master; try again, or at another front end");
    return false;
}

/* What is stored is stored, also when the copy does not get to it. */
void *cell_call(struct cell *cell, const char *method, const void *args, GError **error)
{
    const struct record *record = method_find(ROLE_WCONFD, method)->answer;
    void *answer = ask(cell, method, args, error);
    guint64 serial = answer ? serial_of(record, answer) : 0;
    struct stamp stamp = follow_stamp(cell->follow);
    if (serial && (stamp_compare(stamp, cell->owed) || serial > cell->owed_serial)) {
        cell->owed = stamp;
        cell->owed_serial = serial;
    }
    if (serial)
        cell_await_own(cell, NULL);
    return answer;
}

/* The master has let this front end in, or there were no copy: who refuses it has a copy that does
 * not know of it yet, as its node's member has right after `fettle api init`. */
void *cell_call_at(struct cell *cell, const char *node, const char *role, const char *method,
                   const void *args, GError **error)
{
    gint64 begun = cell->env->ops->boot_ms(cell->env);
    for (;;) {
        g_autoptr(GError) local = NULL;
        void *answer = env_call_record(cell->env, node, role, method, args,
                                       follow_stamp(cell->follow), 0, 0, &local);
        if (answer)
            return answer;
        bool early = fettle_error_is(local, PERMISSION) && cell_config(cell);
        if (early && patience_ms(cell, begun) > CELL_AGAIN_MS &&
            env_sleep(cell->env, CELL_AGAIN_MS))
            continue;
        if (early)
            fettle_set_error(error, TEMPORARY, "%s: %s", method, local->message);
        else
            g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
}

guint64 cell_submit(struct cell *cell, const char *op, const void *params, const char *request_id,
                    GError **error)
{
    json_autoptr opcode = record_to_json(opcode_find(op)->params, params);
    json_object_set_new(opcode, "OP_ID", json_string(op));
    const struct submit_job_args args = {.request_id = (char *)request_id, .opcode = opcode};
    record_autoptr(submitted_job) answer = ask(cell, "submit_job", &args, error);
    return answer ? answer->job : 0;
}

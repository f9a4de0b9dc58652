/* See seat.h. */
#include <string.h>

#include "core/candidate/seat_private.h"
#include "core/host/announced.h"

#define END_PAUSE_MS 50u

/* A wait_role with nothing new yet. */
struct role_wait {
    struct seat *seat;
    struct rpc_request *request;
    guint timer;
};

void seat_on_end(struct seat *seat, void (*fn)(const GError *reason, void *data), void *data)
{
    seat->on_end = fn;
    seat->on_end_data = data;
}

/* --- wait_role --- */

/* What keeps it from its duty; NULL: nothing. */
static char *why_known(const struct seat *seat)
{
    struct replication_state state = {.why = NULL};
    if (seat->replication)
        replication_state(seat->replication, &state);
    const char *why = seat->barred ? seat->barred : seat->trouble ? seat->trouble : state.why;
    g_autofree char *cut = g_strndup(why ? why : "", LIMIT_ROLE_WHY_CHARS);
    return why ? g_utf8_make_valid(cut, -1) : NULL;
}

/* A replicated engine knows it before anybody is told. */
static char *master_known(const struct seat *seat)
{
    record_autoptr(announce_args) announced = announced_read(seat->env);
    return g_strdup(seat->observed.epoch || !announced ? seat->observed.node
                                                       : announced->master_node);
}

struct role_status *seat_status(const struct seat *seat)
{
    static const enum seat_role seats[] = {[FOLLOWS] = SEAT_FOLLOWS,
                                           [CAMPAIGNS] = SEAT_CAMPAIGNS,
                                           [IS_MASTER] = SEAT_MASTER,
                                           [ENDED] = SEAT_FOLLOWS};
    struct role_status *status = role_status_new();
    status->seat = seats[seat->state];
    status->engine = seat->engine;
    if (seat->undecided)
        status->undecided = seat->step ? seat->step : RECORD_NUMBER_MAX;
    if (seat->wconf && seat->state != ENDED) {
        wconf_position(seat->wconf, &status->history, &status->epoch, &status->serial);
        g_free(status->master_node);
        status->master_node = g_strdup(seat->env->node_uuid);
    } else if (seat->copy) {
        struct copy_position at;
        struct replication_state state;
        gint64 now = seat->env->ops->boot_ms(seat->env);
        seat->copy->ops->position(seat->copy, &at);
        replication_state(seat->replication, &state);
        if (!state.damaged) { /* else nobody is to choose it */
            status->history = at.history;
            status->epoch = at.epoch;
            status->serial = at.serial;
        }
        status->contact = state.contact_ms >= 0;
        status->contact_ms =
            state.contact_ms < 0 ? (guint64)now : (guint64)(now - state.contact_ms);
        if (at.role == COPY_RETIRED)
            status->seat = SEAT_RETIRED;
        g_free(status->master_node);
        status->master_node = master_known(seat);
    }
    g_free(status->why);
    status->why = why_known(seat);
    return status;
}

static void answer_role(struct seat *seat, struct rpc_request *request)
{
    record_autoptr(role_status) status = seat_status(seat);
    rpc_answer(request, role_status_to_json(status));
}

static void role_wait_end(struct role_wait *wait)
{
    if (wait->timer)
        wait->seat->env->ops->timer_cancel(wait->seat->env, wait->timer);
    answer_role(wait->seat, wait->request);
    g_free(wait);
}

static void role_timeout(void *data)
{
    struct role_wait *wait = data;
    wait->timer = 0;
    g_ptr_array_remove(wait->seat->waits, wait);
    role_wait_end(wait);
}

void seat_tell_role(struct seat *seat)
{
    g_autoptr(GPtrArray) waits = seat->waits;
    seat->waits = g_ptr_array_new();
    for (guint i = 0; i < waits->len; i++)
        role_wait_end(waits->pdata[i]);
}

static void handle_wait_role(struct seat *seat, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(wait_role_args) args = rpc_request_args(request, &wait_role_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    record_autoptr(role_status) status = seat_status(seat);
    if (args->wait_ms == 0 || status->seat != args->seat || status->epoch != args->epoch) {
        rpc_answer(request, role_status_to_json(status));
        return;
    }
    struct role_wait *wait = g_new0(struct role_wait, 1);
    wait->seat = seat;
    wait->request = request;
    wait->timer = seat->env->ops->timer(seat->env, (guint)args->wait_ms, role_timeout, wait);
    g_ptr_array_add(seat->waits, wait);
}

/* --- calls --- */

static void refuse(struct seat *seat, struct rpc_request *request)
{
    if (seat->state == ENDED)
        rpc_fail(request, seat->end);
    else if (seat->state == CAMPAIGNS)
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, "this node is becoming master; try again");
    else
        announced_refuse(seat->env, request);
}

void seat_handle(struct seat *seat, struct rpc_request *request)
{
    static const struct {
        const char *method;
        void (*handle)(struct seat *seat, struct rpc_request *request);
    } own[] = {{"wait_role", handle_wait_role},
               {"candidates", seat_handle_candidates},
               {"check_renewal", seat_handle_check_renewal},
               {"take_over", seat_handle_take_over}};
    for (guint i = 0; i < G_N_ELEMENTS(own); i++) {
        if (strcmp(request->name, own[i].method) != 0)
            continue;
        own[i].handle(seat, request);
        return;
    }
    if (seat->state == IS_MASTER)
        wconf_handle(seat->wconf, request);
    else
        refuse(seat, request);
}

/* --- the end --- */

void seat_end(struct seat *seat, const GError *reason)
{
    if (seat->state == ENDED)
        return;
    seat->state = ENDED;
    seat->end = g_error_copy(reason);
    seat_tell_role(seat);
    if (seat->on_end)
        seat->on_end(reason, seat->on_end_data);
}

static void end_cb(void *data)
{
    struct seat *seat = data;
    seat->end_timer = 0;
    if (seat->on_end)
        seat->on_end(seat->end, seat->on_end_data);
}

void seat_end_soon(struct seat *seat, GError *end)
{
    seat->state = ENDED;
    seat->end = end;
    seat_tell_role(seat);
    seat->end_timer = seat->env->ops->timer(seat->env, END_PAUSE_MS, end_cb, seat);
}

/* --- life --- */

bool seat_start(struct seat *seat, GError **error)
{
    struct engine *engine = seat->env->engine;
    if (engine && !engine->replicated)
        return seat_become_master(seat, error);
    replication_start(seat->replication);
    if (engine)
        seat_candidate_start(seat);
    return true;
}

static void copy_changed(void *data)
{
    seat_tell_role(data);
}

void seat_set_engine(struct seat *seat, enum engine_kind kind, const char *barred, bool undecided)
{
    seat->engine = kind;
    g_free(seat->barred);
    seat->barred = g_strdup(barred);
    seat->undecided = undecided;
}

void seat_set_step(struct seat *seat, guint64 serial)
{
    seat->step = serial;
}

bool seat_is_master(const struct seat *seat)
{
    return seat->state == IS_MASTER;
}

struct seat *seat_new(const struct env *env, struct copy *copy)
{
    struct seat *seat = g_new0(struct seat, 1);
    seat->env = env;
    seat->copy = copy;
    seat->engine = env->engine && env->engine->replicated ? ENGINE_KIND_ETCD : ENGINE_KIND_SQLITE;
    seat->state = env->engine && !env->engine->replicated ? CAMPAIGNS : FOLLOWS;
    seat->waits = g_ptr_array_new();
    if (copy)
        seat->replication = replication_new(env, copy, copy_changed, seat);
    return seat;
}

void seat_free(struct seat *seat)
{
    if (!seat)
        return;
    seat->on_end = NULL;
    if (seat->end_timer)
        seat->env->ops->timer_cancel(seat->env, seat->end_timer);
    seat_tell_role(seat);
    replication_free(seat->replication);
    wconf_free(seat->wconf);
    g_ptr_array_unref(seat->waits);
    g_clear_error(&seat->end);
    if (seat->word)
        g_ptr_array_unref(seat->word);
    g_free(seat->barred);
    g_free(seat->trouble);
    g_free(seat);
}

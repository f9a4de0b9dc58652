/* The fake world: virtual time, posted work, processes and calls between them. See fake_env.h. */
#include "helper/fake_authority.h"
#include "helper/fake_private.h"

#include <string.h>

#include "proto/records.h"

struct fake_flight {
    struct fake_world *world;
    struct fake_process *from;
    const char *to_node; /* interned, as names of processes are: most are looked up for each call */
    const char *to_role;
    const char *method;
    json_t *args;
    struct stamp stamp;
    guint job;
    guint timer;
    rpc_reply_fn done;
    void *data;
    json_t *result;
    GError *error;
    bool delivered;
    guint place;   /* in world->in_flight */
    guint travels; /* requests and answers on their way */
    bool finished; /* the caller has its answer; a later one is dropped */
    bool answered; /* the handler has let go of the request */
};

static struct fake_world *the_world;
static struct env_ops fake_ops;

/* --- work and time --- */

void fake_post(struct fake_world *world, void (*fn)(void *data), void *data)
{
    struct fake_work work = {fn, data};
    g_array_append_val(world->work, work);
}

static void post_to_world(void (*fn)(void *data), void *data, void *ctx)
{
    fake_post(ctx, fn, data);
}

void fake_settle(struct fake_world *world)
{
    while (world->work_next < world->work->len) {
        struct fake_work work = g_array_index(world->work, struct fake_work, world->work_next++);
        work.fn(work.data);
    }
    g_array_set_size(world->work, 0);
    world->work_next = 0;
}

guint64 fake_steps(const struct fake_world *world)
{
    return world->steps;
}

gint64 fake_now_ms(const struct fake_world *world)
{
    return world->now_ms;
}

static struct fake_timer *timer_at(GArray *timers, guint place)
{
    return &g_array_index(timers, struct fake_timer, place);
}

static void timer_insert(struct fake_world *world, const struct fake_timer *timer)
{
    guint low = 0, high = world->timers->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (timer_at(world->timers, middle)->due_ms <= timer->due_ms)
            high = middle;
        else
            low = middle + 1;
    }
    g_array_insert_val(world->timers, low, *timer);
}

static struct fake_timer timer_of(struct fake_world *world, const struct env *owner, guint ms,
                                  void (*fn)(void *data), void *data)
{
    return (struct fake_timer){world->now_ms + ms, ++world->last_handle, owner, fn, data};
}

guint fake_timer_add(struct fake_world *world, const struct env *owner, guint ms,
                     void (*fn)(void *data), void *data)
{
    struct fake_timer timer = timer_of(world, owner, ms, fn, data);
    timer_insert(world, &timer);
    return timer.handle;
}

static bool remove_handle(GArray *timers, guint handle)
{
    for (guint i = timers->len; i > 0; i--) {
        if (timer_at(timers, i - 1)->handle == handle) {
            g_array_remove_index(timers, i - 1);
            return true;
        }
    }
    return false;
}

void fake_timer_remove(struct fake_world *world, guint handle)
{
    bool found = remove_handle(world->timers, handle);
    for (guint i = 0; !found && i < world->processes->len; i++) {
        const struct fake_process *process = world->processes->pdata[i];
        found = process->late->len > 0 && remove_handle(process->late, handle);
    }
}

/* --- processes that are stopped --- */

bool fake_late(struct fake_process *process, void (*fn)(void *data), void *data)
{
    if (!process->paused)
        return false;
    struct fake_timer timer = timer_of(process->world, NULL, 0, fn, data);
    g_array_append_val(process->late, timer);
    return true;
}

void fake_pause(const struct env *env)
{
    struct fake_process *process = fake_process_of(env);
    process->paused = !process->dead;
}

static void flight_deliver(void *data);

static void resume(struct fake_process *process, bool requests, bool others)
{
    for (guint i = 0; i < process->late->len; i++) {
        struct fake_timer *timer = timer_at(process->late, i);
        timer->due_ms = process->world->now_ms;
        if (timer->fn == flight_deliver ? requests : others)
            timer_insert(process->world, timer);
    }
    process->paused = false;
}

void fake_resume(const struct env *env)
{
    resume(fake_process_of(env), true, true);
    g_array_set_size(fake_process_of(env)->late, 0);
}

void fake_resume_reading(const struct env *env)
{
    resume(fake_process_of(env), true, false);
    resume(fake_process_of(env), false, true);
    g_array_set_size(fake_process_of(env)->late, 0);
}

bool fake_paused(const struct env *env)
{
    return fake_process_of(env)->paused;
}

/* Fires the next timer that is due at `limit_ms` or earlier. */
static bool fire_next(struct fake_world *world, gint64 limit_ms)
{
    if (!world->timers->len)
        return false;
    struct fake_timer next = *timer_at(world->timers, world->timers->len - 1);
    if (next.due_ms > limit_ms)
        return false;
    world->now_ms = MAX(world->now_ms, next.due_ms);
    world->steps++;
    g_array_set_size(world->timers, world->timers->len - 1);
    if (next.owner && fake_process_of(next.owner)->paused) {
        g_array_append_val(fake_process_of(next.owner)->late, next);
        return true;
    }
    next.fn(next.data);
    fake_settle(world);
    return true;
}

bool fake_step(struct fake_world *world, gint64 limit_ms)
{
    fake_settle(world);
    if (fire_next(world, limit_ms))
        return true;
    world->now_ms = MAX(world->now_ms, limit_ms);
    return false;
}

void fake_set_delay(struct fake_world *world, fake_delay delay, void *data)
{
    world->delay = delay;
    world->delay_data = data;
}

void fake_advance(struct fake_world *world, guint ms)
{
    gint64 limit = world->now_ms + ms;
    fake_settle(world);
    while (fire_next(world, limit)) {
    }
    world->now_ms = limit;
}

struct run {
    task_fn fn;
    void *data;
    bool ended;
};

static void run_task(void *data)
{
    struct run *run = data;
    run->fn(run->data);
    run->ended = true;
}

static void run_until(struct fake_world *world, const bool *done)
{
    gint64 limit = world->now_ms + 3600 * 1000;
    fake_settle(world);
    while (!*done) {
        if (!fire_next(world, limit))
            g_error("fake world: nothing more will happen, but the test still waits");
    }
}

void fake_run(const struct env *env, task_fn fn, void *data)
{
    struct run run = {fn, data, false};
    task_spawn(env->tasks, run_task, &run);
    run_until(fake_process_of(env)->world, &run.ended);
}

/* --- env_ops: time --- */

static gint64 op_boot_ms(const struct env *env)
{
    return fake_process_of(env)->world->now_ms;
}

void fake_set_clock(struct fake_world *world, const char *node, gint64 ahead_ms)
{
    const gint64 clock[] = {ahead_ms, 0};
    g_hash_table_replace(world->clocks, g_strdup(node), g_memdup2(clock, sizeof clock));
}

static gint64 op_wall_us(const struct env *env)
{
    const struct fake_world *world = fake_process_of(env)->world;
    const gint64 *clock = g_hash_table_lookup(world->clocks, env->node_uuid);
    gint64 now_ms = clock && clock[1] ? clock[1] : world->now_ms;
    return G_GINT64_CONSTANT(1700000000000000) + (now_ms + (clock ? clock[0] : 0)) * 1000;
}

static guint op_timer(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    return fake_timer_add(fake_process_of(env)->world, env, ms, fn, data);
}

static void op_timer_cancel(const struct env *env, guint handle)
{
    fake_timer_remove(fake_process_of(env)->world, handle);
}

static void op_random(const struct env *env, void *ret_bytes, size_t len)
{
    struct fake_world *world = fake_process_of(env)->world;
    guint8 *bytes = ret_bytes;
    for (size_t i = 0; i < len; i++) {
        world->random_state += G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
        guint64 mixed = (world->random_state ^ (world->random_state >> 30)) *
                        G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
        bytes[i] = (guint8)(mixed >> 56);
    }
}

/* --- calls --- */

static void flight_free(void *data)
{
    struct fake_flight *flight = data;
    json_decref(flight->args);
    json_decref(flight->result);
    g_clear_error(&flight->error);
    g_free(flight);
}

/* A flight is dropped when its caller has the answer and no handler holds its request. */
static void flight_drop_if_over(struct fake_flight *flight)
{
    GPtrArray *all = flight->world->in_flight;
    if (!flight->finished || flight->travels > 0 || (flight->delivered && !flight->answered))
        return;
    ((struct fake_flight *)all->pdata[all->len - 1])->place = flight->place;
    g_ptr_array_remove_index_fast(all, flight->place);
}

/* Whether a message gets from one node to the other. */
static bool way_is_cut(const struct fake_world *world, const char *from, const char *to)
{
    if (strcmp(from, to) == 0)
        return false;
    return g_hash_table_contains(world->cut, to) || g_hash_table_contains(world->cut, from) ||
           (world->passes && !world->passes(from, to, world->passes_data));
}

static void flight_later(struct fake_flight *flight, void (*fn)(void *data))
{
    const struct fake_world *world = flight->world;
    bool at_once = !world->delay || flight->from->dead; /* the dead hear of their end at once */
    guint ms = at_once ? 0 : world->delay(flight->from->node, flight->to_node, world->delay_data);
    flight->travels++;
    if (ms)
        fake_timer_add(flight->world, NULL, ms, fn, flight);
    else
        fake_post(flight->world, fn, flight);
}

static void flight_reply(void *data)
{
    struct fake_flight *flight = data;
    if (fake_late(flight->from, flight_reply, flight))
        return;
    flight->travels--;
    if (flight->delivered && flight->result &&
        way_is_cut(flight->world, flight->to_node, flight->from->node)) {
        json_decref(flight->result);
        flight->result = NULL;
        flight->error = g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_RESULT,
                                            "the connection was lost");
    }
    if (!flight->finished) {
        flight->finished = true;
        if (flight->timer)
            fake_timer_remove(flight->world, flight->timer);
        if (flight->done)
            flight->done(flight->error ? NULL : flight->result, flight->error, flight->data);
    }
    flight_drop_if_over(flight);
}

/* `result` is stolen. */
static void flight_end(struct fake_flight *flight, json_t *result, const GError *error)
{
    if (flight->finished || flight->result || flight->error) {
        json_decref(result);
        if (flight->finished)
            flight_drop_if_over(flight);
        return;
    }
    flight->result = error ? NULL : result ? result : json_object();
    if (error) {
        json_decref(result);
        flight->error = g_error_copy(error);
    }
    flight_later(flight, flight_reply);
}

static void flight_fail(struct fake_flight *flight, enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, (gint)code, message);
    flight_end(flight, NULL, error);
}

static void flight_timeout_cb(void *data)
{
    struct fake_flight *flight = data;
    flight->timer = 0;
    /* An answer that is still on its way is too late. */
    g_clear_pointer(&flight->result, json_decref);
    g_clear_error(&flight->error);
    flight_fail(flight, FETTLE_ERROR_TIMEOUT, "no answer in time");
}

static void request_answer(struct rpc_request *request, json_t *result, const GError *error)
{
    struct fake_flight *flight = request->carrier;
    rpc_request_free(request);
    flight->answered = true;
    flight_end(flight, result, error);
}

static const struct fake_script_row *script_find(const struct fake_world *world,
                                                 const struct fake_flight *flight)
{
    for (guint i = world->scripts->len; i > 0; i--) {
        const struct fake_script_row *row = world->scripts->pdata[i - 1];
        if ((!row->node || !strcmp(row->node, flight->to_node)) &&
            !strcmp(row->role, flight->to_role) && !strcmp(row->method, flight->method))
            return row->fn ? row : NULL;
    }
    return NULL;
}

/* Of interned names. */
static struct fake_process *process_find(const struct fake_world *world, const char *node,
                                         const char *role)
{
    for (guint i = world->processes->len; i > 0; i--) {
        struct fake_process *process = world->processes->pdata[i - 1];
        if (process->node == node && process->role == role && !process->dead && process->handler)
            return process;
    }
    return NULL;
}

static struct rpc_request *request_new(struct fake_flight *flight, const struct method *method)
{
    struct rpc_request *request = g_new0(struct rpc_request, 1);
    request->method = method;
    request->name = g_strdup(flight->method);
    request->from_node = g_strdup(flight->from->node);
    request->signed_by = g_strdup(flight->from->world->signed_by);
    request->from_role = g_strdup(flight->from->role);
    request->from_job = flight->job;
    request->stamp = flight->stamp;
    request->face = flight->from->world->face;
    request->is_rest = flight->from->world->is_rest;
    request->args = json_incref(flight->args);
    request->answer = request_answer;
    request->carrier = flight;
    return request;
}

static bool flight_check(const struct fake_flight *flight, const struct method *method,
                         GError **error)
{
    if (!strcmp(flight->to_role, ROLE_LUXID))
        return true;
    if (!method) {
        fettle_set_error(error, PROTOCOL, "%s has no method %s", flight->to_role, flight->method);
        return false;
    }
    if (!method_allows(method, flight->from->role)) {
        fettle_set_error(error, PERMISSION, "role %s may not call %s.%s", flight->from->role,
                         flight->to_role, flight->method);
        return false;
    }
    void *args = record_parse(method->args, flight->args, RECORD_STRICT, error);
    record_free(method->args, args);
    return args != NULL;
}

static void flight_answer_script(struct fake_flight *flight, const struct fake_script_row *row,
                                 const struct method *method)
{
    g_autoptr(GError) error = NULL;
    struct rpc_request *request = request_new(flight, method);
    json_t *result = row->fn(request, flight->to_node, row->data, &error);
    rpc_request_free(request);
    flight->answered = true;
    flight_end(flight, result, error);
}

static void flight_deliver(void *data)
{
    struct fake_flight *flight = data;
    struct fake_world *world = flight->world;
    struct fake_process *process = process_find(world, flight->to_node, flight->to_role);
    if (process && fake_late(process, flight_deliver, flight))
        return;
    flight->travels--;
    g_autoptr(GError) error = NULL;
    if (flight->finished) {
        flight_drop_if_over(flight);
        return;
    }
    if (!*flight->to_node || way_is_cut(world, flight->from->node, flight->to_node)) {
        flight_fail(flight, FETTLE_ERROR_UNREACHABLE, "the node cannot be reached");
        return;
    }
    const struct method *method = method_find(flight->to_role, flight->method);
    if (!flight_check(flight, method, &error)) {
        flight_end(flight, NULL, error);
        return;
    }
    const struct fake_script_row *row = script_find(world, flight);
    flight->delivered = true;
    if (row) {
        flight_answer_script(flight, row, method);
        return;
    }
    if (!process) {
        flight->delivered = false;
        flight_fail(flight, FETTLE_ERROR_UNREACHABLE, "nobody listens");
        return;
    }
    process->handler(request_new(flight, method), process->handler_data);
}

static guint flight_timeout_ms(const struct rpc_call *call, const struct method *method)
{
    if (call->timeout_ms || !method)
        return call->timeout_ms;
    switch (method->timeout) {
    case TIMEOUT_QUICK:
    case TIMEOUT_FRESH:
        return 5000;
    case TIMEOUT_NORMAL:
        return 30000;
    case TIMEOUT_COPY:
        return 0;
    case TIMEOUT_WAIT:
        return (guint)json_integer_value(json_object_get(call->args, "wait_ms")) + 5000;
    }
    return 0;
}

static void remember_call(struct fake_world *world, const struct fake_flight *flight)
{
    g_autofree char *args = json_to_text(flight->args);
    g_ptr_array_add(world->calls, g_strdup_printf("%s/%s %s %s", flight->to_node, flight->to_role,
                                                  flight->method, args));
}

static void op_call(const struct env *env, const struct rpc_call *call, rpc_reply_fn done,
                    void *data)
{
    struct fake_process *from = fake_process_of(env);
    struct fake_world *world = from->world;
    struct fake_flight *flight = g_new0(struct fake_flight, 1);
    bool local = !call->to_node || !*call->to_node;
    bool master = !local && !strcmp(call->to_node, NODE_MASTER);
    flight->world = world;
    flight->from = from;
    flight->to_node = local    ? from->node
                      : master ? g_intern_string(world->master ? world->master : "")
                               : g_intern_string(call->to_node);
    flight->to_role = g_intern_string(call->to_role);
    flight->method = g_intern_string(call->method);
    flight->args = call->args ? call->args : json_object();
    flight->stamp = call->stamp;
    flight->job = call->job;
    flight->done = done;
    flight->data = data;
    guint timeout_ms = flight_timeout_ms(call, method_find(call->to_role, call->method));
    if (timeout_ms)
        flight->timer = fake_timer_add(world, NULL, timeout_ms, flight_timeout_cb, flight);
    flight->place = world->in_flight->len;
    g_ptr_array_add(world->in_flight, flight);
    if (!world->forgets)
        remember_call(world, flight);
    flight_later(flight, flight_deliver);
}

void fake_serve(const struct env *env, fake_handler handler, void *data)
{
    struct fake_process *process = fake_process_of(env);
    process->handler = handler;
    process->handler_data = data;
}

static void script_row_free(void *data)
{
    struct fake_script_row *row = data;
    g_free(row->node);
    g_free(row->role);
    g_free(row->method);
    g_free(row);
}

void fake_script(struct fake_world *world, const char *node, const char *role, const char *method,
                 fake_answer fn, void *data)
{
    struct fake_script_row *row = g_new(struct fake_script_row, 1);
    *row = (struct fake_script_row){g_strdup(node), g_strdup(role), g_strdup(method), fn, data};
    g_ptr_array_add(world->scripts, row);
}

json_t *fake_answer_nothing(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    return json_object();
}

void fake_cut(struct fake_world *world, const char *node_uuid, bool cut)
{
    if (cut)
        g_hash_table_add(world->cut, g_strdup(node_uuid));
    else
        g_hash_table_remove(world->cut, node_uuid);
}

void fake_set_path(struct fake_world *world, fake_path passes, void *data)
{
    world->passes = passes;
    world->passes_data = data;
}

const GPtrArray *fake_calls(const struct fake_world *world)
{
    return world->calls;
}

void fake_forget_calls(struct fake_world *world)
{
    world->forgets = true;
    g_ptr_array_set_size(world->calls, 0);
}

guint fake_count_calls(const struct fake_world *world, const char *prefix)
{
    guint count = 0;
    for (guint i = 0; i < world->calls->len; i++)
        count += g_str_has_prefix(world->calls->pdata[i], prefix) ? 1 : 0;
    return count;
}

static void fake_reply_cb(json_t *result, const GError *error, void *data)
{
    struct fake_reply *reply = data;
    reply->done = true;
    reply->result = json_incref(result);
    reply->error = error ? g_error_copy(error) : NULL;
}

void fake_call_start_stamped(const struct env *from, guint job, struct stamp stamp,
                             const char *to_node, const char *to_role, const char *method,
                             json_t *args, struct fake_reply *reply)
{
    *reply = (struct fake_reply){0};
    struct rpc_call call = {.to_node = to_node,
                            .to_role = to_role,
                            .method = method,
                            .args = args,
                            .stamp = stamp,
                            .job = job};
    op_call(from, &call, fake_reply_cb, reply);
}

void fake_call_start(const struct env *from, guint job, const char *to_node, const char *to_role,
                     const char *method, json_t *args, struct fake_reply *reply)
{
    fake_call_start_stamped(from, job, (struct stamp){0}, to_node, to_role, method, args, reply);
}

void fake_reply_clear(struct fake_reply *reply)
{
    json_decref(reply->result);
    g_clear_error(&reply->error);
    *reply = (struct fake_reply){0};
}

json_t *fake_call(const struct env *from, const char *to_node, const char *to_role,
                  const char *method, json_t *args, GError **error)
{
    struct fake_reply reply;
    fake_call_start(from, 0, to_node, to_role, method, args, &reply);
    run_until(fake_process_of(from)->world, &reply.done);
    if (reply.error)
        g_propagate_error(error, reply.error);
    return reply.result;
}

/* --- processes and the world --- */

static void process_free(void *data)
{
    struct fake_process *process = data;
    task_group_unref(process->env.tasks);
    g_array_unref(process->late);
    g_free(process->boot_id);
    g_free(process);
}

struct env *fake_process(struct fake_world *world, const char *node_uuid, const char *role)
{
    struct fake_process *process = g_new0(struct fake_process, 1);
    const char *boot = g_hash_table_lookup(world->boots, node_uuid);
    if (!boot) {
        g_hash_table_insert(world->boots, g_strdup(node_uuid),
                            g_strdup_printf("boot-%.8s-1", node_uuid));
        boot = g_hash_table_lookup(world->boots, node_uuid);
    }
    process->world = world;
    process->late = g_array_new(FALSE, FALSE, sizeof(struct fake_timer));
    process->node = g_intern_string(node_uuid);
    process->role = g_intern_string(role);
    process->boot_id = g_strdup(boot);
    process->env = (struct env){.ops = &fake_ops,
                                .tasks = task_group_new(),
                                .node_uuid = process->node,
                                .role = process->role,
                                .boot_id = process->boot_id};
    if (strcmp(role, ROLE_NODED) == 0)
        process->env.authority = fake_authority_of(false);
    g_ptr_array_add(world->processes, process);
    return &process->env;
}

/* Whoever called the dead gets UNKNOWN_RESULT if the request had arrived; the dead's own calls end
 * with KILLED. */
static void process_end_calls(struct fake_process *process)
{
    struct fake_world *world = process->world;
    for (guint i = 0; i < world->in_flight->len; i++) {
        struct fake_flight *flight = world->in_flight->pdata[i];
        if (flight->from == process)
            flight_fail(flight, FETTLE_ERROR_KILLED, "the calling process has ended");
        else if (flight->delivered && !flight->answered && flight->to_node == process->node &&
                 flight->to_role == process->role)
            flight_fail(flight, FETTLE_ERROR_UNKNOWN_RESULT, "the connection was lost");
    }
}

void fake_kill(const struct env *env)
{
    struct fake_process *process = fake_process_of(env);
    struct fake_world *world = process->world;
    if (process->dead)
        return;
    fake_resume(env);
    process->dead = true;
    for (guint i = world->timers->len; i > 0; i--) {
        if (timer_at(world->timers, i - 1)->owner == env)
            g_array_remove_index(world->timers, i - 1);
    }
    task_group_kill(env->tasks);
    process_end_calls(process);
    fake_node_process_died(process);
    fake_settle(world);
    g_ptr_array_remove(world->processes, process);
    g_ptr_array_add(world->dead, process);
}

void fake_world_set_master(struct fake_world *world, const char *node_uuid)
{
    g_free(world->master);
    world->master = g_strdup(node_uuid);
}

struct fake_world *fake_world_new(void)
{
    g_assert(!the_world);
    struct fake_world *world = g_new0(struct fake_world, 1);
    world->now_ms = 1000;
    world->work = g_array_new(FALSE, FALSE, sizeof(struct fake_work));
    world->timers = g_array_new(FALSE, FALSE, sizeof(struct fake_timer));
    world->processes = g_ptr_array_new();
    world->dead = g_ptr_array_new_with_free_func(process_free);
    world->scripts = g_ptr_array_new_with_free_func(script_row_free);
    world->calls = g_ptr_array_new_with_free_func(g_free);
    world->in_flight = g_ptr_array_new_with_free_func(flight_free);
    world->cut = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world->boots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    fake_node_init(world);
    fake_ops = (struct env_ops){.boot_ms = op_boot_ms,
                                .wall_us = op_wall_us,
                                .timer = op_timer,
                                .timer_cancel = op_timer_cancel,
                                .random = op_random,
                                .call = op_call};
    fake_node_fill(&fake_ops);
    task_set_poster(post_to_world, world);
    the_world = world;
    return world;
}

/* Nobody waits for an answer that was still on its way when the world ended. */
static void calls_end(struct fake_world *world)
{
    g_autoptr(GError) error =
        g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_KILLED, "the world has ended");
    for (guint i = 0; i < world->in_flight->len; i++) {
        struct fake_flight *flight = world->in_flight->pdata[i];
        if (!flight->finished && flight->done)
            flight->done(NULL, error, flight->data);
        flight->finished = true;
    }
}

void fake_world_free(struct fake_world *world)
{
    while (world->processes->len > 0)
        fake_kill(world->processes->pdata[0]);
    fake_settle(world);
    calls_end(world);
    /* Requests that a handler never answered are its leak, not ours: their flights are freed all
     * the same. */
    g_ptr_array_unref(world->in_flight);
    g_ptr_array_unref(world->processes);
    g_ptr_array_unref(world->dead);
    g_array_unref(world->timers);
    g_array_unref(world->work);
    g_ptr_array_unref(world->scripts);
    g_ptr_array_unref(world->calls);
    g_hash_table_unref(world->cut);
    g_hash_table_unref(world->boots);
    fake_node_clear(world);
    g_free(world->master);
    g_free(world);
    the_world = NULL;
}

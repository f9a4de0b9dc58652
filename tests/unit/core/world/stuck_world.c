/* See stuck_world.h. */
#include "unit/core/world/stuck_world.h"

#include <string.h>

#include "proto/change.h"

static const char *const nodes[] = {NODE1, NODE2, NODE3};

char *stuck_uuid(guint number)
{
    return g_strdup_printf("aaaaaaaa-0000-4000-8000-%012u", number + 100);
}

static guint number_of(const char *uuid)
{
    return (guint)g_ascii_strtoull(strrchr(uuid, '-') + 1, NULL, 10) - 100;
}

static bool is_silent(const struct stuck_world *w, guint number)
{
    return w->silent > 0 && number % w->silent == 0;
}

/* --- objects --- */

static json_t *object_of(guint number, bool stuck)
{
    static const char *const tasks[] = {"starting", "stopping", "failing-over", "growing-disk"};
    g_autofree char *uuid = stuck_uuid(number), *name = g_strdup_printf("i%u", number);
    const char *node = nodes[number % G_N_ELEMENTS(nodes)];
    json_t *object = json_make("{ss ss ss si ss si ss ss}", "uuid", uuid, "name", name,
                               "disk_template", "diskless", "memory", 64, "primary_node", node,
                               "generation", 4, "holder", node, "admin_state", "up");
    if (stuck)
        json_object_update_new(object, json_make("{ss si si}", "task_state",
                                                 tasks[number % G_N_ELEMENTS(tasks)], "task_owner",
                                                 900, "task_since", 1600000000));
    return object;
}

static GPtrArray *objects_of(guint count, bool stuck)
{
    GPtrArray *objects = initial_changes();
    while (objects->len > 5) /* cluster, group, nodes */
        g_ptr_array_remove_index(objects, objects->len - 1);
    json_object_update_new(((struct change *)objects->pdata[0])->object,
                           json_make("{si ss}", "candidate_pool_size", 1, "engine", "sqlite"));
    g_ptr_array_add(objects,
                    put("counter", "job", 1, json_make("{ss si}", "name", "job", "value", 901)));
    for (guint i = 0; i < count; i++) {
        g_autofree char *uuid = stuck_uuid(i);
        g_ptr_array_add(objects, put("instance", uuid, 1, object_of(i, stuck)));
    }
    return objects;
}

/* --- nodes, luxid --- */

static guint place_of(const char *node)
{
    guint i = 0;
    while (strcmp(nodes[i], node) != 0)
        i++;
    return i;
}

static json_t *make_report(const struct stuck_world *w, guint place)
{
    json_t *guests = json_array();
    for (guint i = place; i < w->count; i += G_N_ELEMENTS(nodes)) {
        g_autofree char *uuid = stuck_uuid(i);
        json_array_append_new(
            guests, json_make("{ss si ss}", "instance", uuid, "generation", 4, "state", "running"));
    }
    return json_make("{ss si si si si so}", "node", nodes[place], "memory_total", 100000000,
                     "memory_free", 100000000, "disk_total", 4096, "disk_free", 4096, "guests",
                     guests);
}

static json_t *report(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    struct stuck_world *w = data;
    return json_incref(w->report[place_of(to_node)]);
}

static json_t *collect(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    struct stuck_world *w = data;
    json_t *sights = json_array();
    size_t i;
    const json_t *subject;
    json_array_foreach(json_object_get(request->args, "subjects"), i, subject) {
        const char *uuid = json_string_value(json_object_get(subject, "instance"));
        guint number = number_of(uuid);
        bool there = number % G_N_ELEMENTS(nodes) == place_of(to_node);
        bool silent = there && is_silent(w, number);
        json_array_append_new(sights, json_make("{ss ss ss si sI}", "instance", uuid, "silent",
                                                silent ? "its monitor does not answer" : "",
                                                "state", there ? "running" : "absent", "generation",
                                                there ? 4 : 0, "taken_us", (json_int_t)1));
    }
    return json_make("{ss so}", "node", to_node, "sights", sights);
}

static void keep(struct rpc_request *request, void *data)
{
    g_ptr_array_add(((struct stuck_world *)data)->hung, request);
}

void stuck_hang(struct stuck_world *w)
{
    fake_script(w->base.world, NODE3, ROLE_NODED, "collect", NULL, NULL);
    fake_serve(fake_process(w->base.world, NODE3, ROLE_NODED), keep, w);
}

static void serve_luxid(struct rpc_request *request, void *data)
{
    struct stuck_world *w = data;
    rpc_answer(request, json_integer((json_int_t)++w->jobs));
}

static guint travel_ms(const char *from, const char *to, void *data)
{
    struct stuck_world *w = data;
    if (w->random == 0)
        return 1;
    w->random = w->random * G_GUINT64_CONSTANT(6364136223846793005) + 1442695040888963407u;
    return 1 + (guint)(w->random >> 33) % 40;
}

/* --- the world --- */

struct starting {
    struct stuck_world *w;
    guint which;
};

static void start_task(void *data)
{
    const struct starting *starting = data;
    g_autoptr(GError) error = NULL;
    watcher_start(starting->w->watcher[starting->which], &error);
    g_assert_no_error(error);
}

void stuck_watcher_start(struct stuck_world *w, guint which)
{
    struct starting starting = {w, which};
    w->env[which] = fake_process(w->base.world, NODE1, ROLE_WATCHER);
    w->watcher[which] = watcher_new(w->env[which], &repair_duties);
    fake_run(w->env[which], start_task, &starting);
}

void stuck_watcher_kill(struct stuck_world *w, guint which)
{
    if (w->watcher[which] == NULL)
        return;
    fake_kill(w->env[which]);
    watcher_free(g_steal_pointer(&w->watcher[which]));
}

struct stuck_world *stuck_world_new(guint count, bool stuck)
{
    struct stuck_world *w = g_new0(struct stuck_world, 1);
    w->count = count;
    w->hung = g_ptr_array_new_with_free_func((GDestroyNotify)rpc_request_free);
    w->view = config_new();
    config_world_init(&w->base, objects_of(count, stuck));
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        w->report[i] = make_report(w, i);
    fake_forget_calls(w->base.world);
    fake_script(w->base.world, NULL, ROLE_NODED, "node_report", report, w);
    fake_script(w->base.world, NULL, ROLE_NODED, "collect", collect, w);
    fake_serve(w->base.luxid, serve_luxid, w);
    config_world_start(&w->base);
    fake_set_delay(w->base.world, travel_ms, w);
    return w;
}

void stuck_world_free(struct stuck_world *w)
{
    for (guint i = 0; i < STUCK_WATCHERS; i++)
        stuck_watcher_kill(w, i);
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        json_decref(w->report[i]);
    g_ptr_array_unref(w->hung);
    config_world_clear(&w->base);
    config_free(w->view);
    g_free(w);
}

/* --- what is on record --- */

void stuck_look(struct stuck_world *w)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    config_free(w->view);
    w->view = config_new();
    fake_engine_changes(w->base.engine, 0, changes);
    for (guint i = 0; i < changes->len; i++)
        g_assert_true(config_apply(w->view, changes->pdata[i], NULL));
}

void stuck_check_told(struct stuck_world *w)
{
    stuck_look(w);
    g_autofree guint *told = g_new0(guint, w->count);
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        if (decision->event == EVENT_RECOVERED)
            told[number_of(decision->subject)]++;
    }
    for (guint i = 0; i < w->count; i++) {
        g_autofree char *uuid = stuck_uuid(i);
        const struct instance *instance = config_get(w->view, "instance", uuid, NULL);
        bool silent = is_silent(w, i);
        g_assert_cmpuint(told[i], ==, !silent);
        g_assert_true((instance->task_state == TASK_NONE) != silent);
    }
}

guint64 stuck_looks(struct stuck_world *w)
{
    guint64 looks = 0;
    stuck_look(w);
    g_autoptr(GPtrArray) all = config_list(w->view, "stuck");
    for (guint i = 0; i < all->len; i++)
        looks += ((const struct stuck *)all->pdata[i])->looks;
    return looks;
}

guint stuck_locks(struct stuck_world *w)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        fake_call(w->base.luxid, NODE1, ROLE_WCONFD, "list_all_locks", NULL, &error);
    g_assert_no_error(error);
    const json_t *locks = json_object_get(answer, "locks"), *lock;
    size_t i;
    guint owners = 0;
    json_array_foreach(locks, i, lock)
        owners += json_object_get(lock, "owner") != NULL;
    return owners;
}

/* Two nodes and a master for unit tests of core/node; see node_world.h. */
#include "helper/node_world.h"

#include "core/config/voucher.h"
#include "helper/fake_authority.h"

#define STEP_MS 5

/* --- the master --- */

static bool master_makes_disks(const struct master_record *web1, const char *from,
                               const struct confirm_item *item)
{
    if (item->generation > web1->generation)
        return web1->recreating && item->generation == web1->generation + 1;
    return (web1->new_disk && strcmp(web1->new_disk, item->replica) == 0 &&
            strcmp(web1->primary, from) == 0) ||
           (strcmp(web1->replica, item->replica) == 0 && strcmp(web1->secondary, from) == 0);
}

static json_t *master_confirm_one(const struct node_world *nw, const char *from,
                                  const struct confirm_item *item)
{
    const struct master_record *web1 = &nw->web1;
    bool known = strcmp(item->instance, WEB1) == 0 && web1->generation > 0;
    bool current = known && !web1->removed && item->generation == web1->generation;
    bool its_replica = known && *web1->secondary && strcmp(item->replica, web1->replica) == 0;
    bool yes = false;
    switch (item->role) {
    case CONFIRM_RUN:
    case CONFIRM_START:
        yes = current && strcmp(web1->holder, from) == 0;
        break;
    case CONFIRM_EXPORT:
        yes = current && its_replica && strcmp(web1->secondary, from) == 0 && *web1->holder;
        break;
    case CONFIRM_MIRROR:
        yes = current && its_replica && strcmp(web1->holder, from) == 0;
        break;
    case CONFIRM_INCOMING:
        yes = known && !web1->removed && item->generation == web1->generation + 1 &&
              web1->migration && strcmp(web1->migration, item->replica) == 0 &&
              strcmp(web1->migration_node, from) == 0;
        break;
    case CONFIRM_ATTACH:
        yes = current && strcmp(web1->holder, from) == 0 && web1->attachment &&
              strcmp(web1->attachment, item->replica) == 0;
        break;
    case CONFIRM_POINT:
        yes = current && strcmp(web1->holder, from) == 0 && web1->attachment &&
              strcmp(web1->attachment, item->replica) == 0 && web1->claim == item->claim;
        break;
    case CONFIRM_NEW_DISKS:
        yes = known && !web1->removed && master_makes_disks(web1, from, item);
        break;
    }
    record_autoptr(confirm_result) result = confirm_result_new();
    result->answer = yes ? CONFIRM_CONFIRMED : CONFIRM_REFUSED;
    result->generation = known ? web1->generation : 0;
    result->other = current && item->role == CONFIRM_RUN && !yes;
    result->removed = known && web1->removed;
    g_free(result->replica_state);
    result->replica_state = g_strdup(
        its_replica && !web1->removed ? enum_word(&replica_state_words, (int)web1->state) : "");
    result->sync = its_replica ? web1->sync : 0;
    result->kept = nw->kept;
    g_free(result->primary_node);
    result->primary_node = g_strdup(known && !web1->removed ? web1->primary : "");
    if (yes && item->role == CONFIRM_EXPORT) {
        g_free(result->holder);
        result->holder = g_strdup(web1->holder);
    }
    return confirm_result_to_json(result);
}

static json_t *master_confirm(const struct node_world *nw, const struct rpc_request *request)
{
    record_autoptr(confirm_args) args = confirm_args_parse(request->args, RECORD_STRICT, NULL);
    json_t *items = json_array();
    g_assert_nonnull(args);
    for (guint i = 0; i < args->items->len; i++)
        json_array_append_new(items,
                              master_confirm_one(nw, request->from_node, args->items->pdata[i]));
    return json_make("{s:o}", "items", items);
}

static json_t *master_set_replica_state(struct node_world *nw, const struct rpc_request *request,
                                        GError **error)
{
    struct master_record *web1 = &nw->web1;
    record_autoptr(set_replica_state_args) args =
        set_replica_state_args_parse(request->args, RECORD_STRICT, NULL);
    g_assert_nonnull(args);
    bool again = web1->sync == args->sync + 1 && web1->state == args->state;
    if (web1->removed || web1->generation > args->generation) {
        fettle_set_error(error, REFUSED, "generation %" G_GUINT64_FORMAT " is on record",
                         web1->generation);
        return NULL;
    }
    if (strcmp(web1->holder, request->from_node) != 0 || web1->generation != args->generation) {
        fettle_set_error(error, PERMISSION, "only the holder's node may say so");
        return NULL;
    }
    if (!*web1->secondary || strcmp(web1->replica, args->replica) != 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "replica %s does not exist", args->replica);
        return NULL;
    }
    if (!again && web1->sync != args->sync) {
        fettle_set_error(error, VERSION_CONFLICT, "the replica's sync is %" G_GUINT64_FORMAT,
                         web1->sync);
        return NULL;
    }
    if (!again) {
        web1->state = args->state;
        web1->keep = args->state == REPLICA_IN_SYNC ? 0 : web1->keep;
        web1->sync++;
    }
    return json_make("{s:I}", "sync", (json_int_t)web1->sync);
}

/* The other side becomes the holder, and what this one has left a replica that is not in sync. */
static void move_record(struct node_world *nw, const struct set_migrated_args *args)
{
    struct master_record *web1 = &nw->web1;
    const char *from = web1->holder;
    web1->generation++;
    web1->primary = web1->holder = web1->migration_node;
    web1->clean = false;
    web1->moved_clean = args->clean;
    if (web1->disk_template != TEMPLATE_MIRROR)
        return;
    web1->secondary = from;
    g_strlcpy(web1->replica, args->migration, sizeof web1->replica);
    web1->replica_generation = web1->generation;
    web1->state = args->clean ? REPLICA_SYNCING : REPLICA_STALE;
    web1->sync = 1;
}

static json_t *master_set_migrated(struct node_world *nw, const struct rpc_request *request,
                                   GError **error)
{
    struct master_record *web1 = &nw->web1;
    record_autoptr(set_migrated_args) args =
        set_migrated_args_parse(request->args, RECORD_STRICT, NULL);
    g_assert_nonnull(args);
    bool on_record = web1->migration && strcmp(web1->migration, args->migration) == 0;
    bool again = on_record && web1->generation == args->generation + 1 &&
                 strcmp(web1->primary, web1->migration_node) == 0;
    if (!again && (web1->removed || web1->generation > args->generation)) {
        fettle_set_error(error, REFUSED, "generation %" G_GUINT64_FORMAT " is on record",
                         web1->generation);
        return NULL;
    }
    if (!again && (!on_record || strcmp(web1->holder, request->from_node) != 0)) {
        fettle_set_error(error, WRONG_STATE, "migration %s is not on record", args->migration);
        return NULL;
    }
    if (!again) {
        const struct test_node *source = nw_node(nw, web1->holder);
        g_assert_cmpint(fake_host_state(source->host, WEB1, NULL), ==, GUEST_ABSENT);
        move_record(nw, args);
    }
    return json_make("{s:i}", "serial", 1);
}

static json_t *master_answer(struct node_world *nw, const struct rpc_request *request,
                             GError **error)
{
    if (strcmp(request->name, "confirm") == 0)
        return master_confirm(nw, request);
    if (strcmp(request->name, "set_attachment") == 0)
        return nw_set_attachment(nw, request, error);
    if (strcmp(request->name, "set_migrated") == 0)
        return master_set_migrated(nw, request, error);
    return master_set_replica_state(nw, request, error);
}

static void master_reply(struct node_world *nw, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = master_answer(nw, request, &error);
    if (answer)
        rpc_answer(request, answer);
    else
        rpc_fail(request, error);
}

void nw_master_answers(struct node_world *nw)
{
    nw->mood = MASTER_ANSWERS;
    while (nw->unanswered->len > 0)
        master_reply(nw, g_ptr_array_steal_index(nw->unanswered, 0));
}

static void master_handle(struct rpc_request *request, void *data)
{
    struct node_world *nw = data;
    if (nw->mood == MASTER_DEPOSED) {
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER, "the master is another node");
        return;
    }
    if (nw->mood == MASTER_SILENT) {
        g_ptr_array_add(nw->unanswered, request);
        return;
    }
    if (nw->mood != MASTER_LOSES_ANSWER) {
        master_reply(nw, request);
        return;
    }
    g_autoptr(GError) error = NULL;
    json_decref(master_answer(nw, request, &error));
    g_ptr_array_add(nw->unanswered, request);
}

/* --- time --- */

static void check(struct node_world *nw)
{
    const struct master_record *web1 = &nw->web1;
    const char *problem = fake_hosts_problem(nw->hosts);
    if (problem)
        g_error("%s", problem);
    if (web1->removed || !*web1->secondary || web1->state != REPLICA_IN_SYNC)
        return;
    if (!fake_hosts_replica_whole(nw->hosts, web1->secondary, WEB1, web1->replica))
        g_error("SAF-13: the replica of generation %" G_GUINT64_FORMAT
                " is on record as in-sync and lacks an acknowledged write",
                web1->generation);
}

void nw_pass(struct node_world *nw, guint ms)
{
    for (guint passed = 0; passed < ms; passed += STEP_MS) {
        fake_advance(nw->world, STEP_MS);
        check(nw);
        if (nw->each_step)
            nw->each_step(nw, nw->each_step_data);
    }
}

/* --- nodes --- */

static void node_handle(struct rpc_request *request, void *data)
{
    struct test_node *node = data;
    g_autoptr(GError) error = NULL;
    if (node_core_admit(node->core, request->from_node, request->from_role, request->method,
                        request->stamp, &error))
        node_core_handle(node->core, request);
    else
        rpc_fail(request, error);
}

static void node_start_task(void *data)
{
    struct test_node *node = data;
    g_autoptr(GError) error = NULL;
    if (!node_core_start(node->core, &error) && !fettle_error_is(error, KILLED))
        g_error("node_core_start: %s", error->message);
}

static void daemon_make(struct node_world *nw, struct test_node *node)
{
    g_assert_null(node->env);
    node->env = fake_process(nw->world, node->uuid, ROLE_NODED);
    node->env->hypervisor = fake_host_hypervisor(node->host);
    node->env->storage = fake_host_storage(node->host);
    node->env->network = fake_host_network(node->host);
    node->env->members = node->members;
    node->core = node_core_new(node->env, CLUSTER, node == &nw->a ? "10.0.0.1" : "10.0.0.2");
    node_core_set_image_folder(node->core, "/fake/images");
    if (nw->monitored)
        node_core_set_monitored(node->core);
}

void nw_daemon_start(struct node_world *nw, struct test_node *node)
{
    daemon_make(nw, node);
    fake_serve(node->env, node_handle, node);
    task_spawn(node->env->tasks, node_start_task, node);
    fake_settle(nw->world);
    nw_pass(nw, 20);
}

struct start_attempt {
    struct node_core *core;
    bool ok;
    GError *error;
};

static void attempt_task(void *data)
{
    struct start_attempt *attempt = data;
    attempt->ok = node_core_start(attempt->core, &attempt->error);
}

bool nw_try_start(struct env *env, struct node_core *core, GError **error)
{
    struct start_attempt attempt = {.core = core};
    fake_run(env, attempt_task, &attempt);
    if (attempt.error)
        g_propagate_error(error, attempt.error);
    return attempt.ok;
}

char *nw_daemon_refuses(struct node_world *nw, struct test_node *node)
{
    g_autoptr(GError) error = NULL;
    daemon_make(nw, node);
    g_assert_false(nw_try_start(node->env, node->core, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    return g_strdup(error->message);
}

void nw_daemon_kill(struct node_world *nw, struct test_node *node)
{
    if (!node->env)
        return;
    fake_host_set_hook(node->host, NULL, NULL);
    fake_kill(node->env);
    node_core_free(node->core);
    node->env = NULL;
    node->core = NULL;
    check(nw);
}

void nw_power_cut(struct node_world *nw, struct test_node *node)
{
    fake_host_power_off(node->host);
    nw_daemon_kill(nw, node);
    fake_host_power_off(node->host);
    fake_reboot(nw->world, node->uuid);
    check(nw);
}

void nw_cut(struct node_world *nw, struct test_node *node, bool cut)
{
    node->cut = cut;
    fake_cut(nw->world, node->uuid, cut);
}

struct test_node *nw_node(struct node_world *nw, const char *uuid)
{
    return strcmp(uuid, NODE_A) == 0 ? &nw->a : &nw->b;
}

static bool path_passes(const char *from, const char *to, void *data)
{
    struct node_world *nw = data;
    return strcmp(from, to) == 0 || (!nw_node(nw, from)->cut && !nw_node(nw, to)->cut);
}

/* --- calls --- */

static void call_cb(json_t *result, const GError *error, void *data)
{
    struct fake_reply *reply = data;
    reply->done = true;
    reply->result = json_incref(result);
    reply->error = error ? g_error_copy(error) : NULL;
}

static void call_as_job(const struct env *from, struct test_node *node, guint job,
                        const char *method, struct stamp stamp, json_t *args,
                        struct fake_reply *reply)
{
    *reply = (struct fake_reply){0};
    struct rpc_call call = {.to_node = node->uuid,
                            .to_role = ROLE_NODED,
                            .method = method,
                            .args = args,
                            .stamp = stamp,
                            .job = job};
    from->ops->call(from, &call, call_cb, reply);
}

static void call_as(const struct env *from, struct test_node *node, const char *method,
                    struct stamp stamp, json_t *args, struct fake_reply *reply)
{
    call_as_job(from, node, 1, method, stamp, args, reply);
}

void nw_call_start(struct node_world *nw, struct test_node *node, const char *method,
                   struct stamp stamp, json_t *args, struct fake_reply *reply)
{
    call_as(nw->job, node, method, stamp, args, reply);
}

static json_t *wait_reply(struct node_world *nw, struct fake_reply *reply, GError **error)
{
    nw_until(nw, reply->done);
    if (reply->error)
        g_propagate_error(error, g_steal_pointer(&reply->error));
    return reply->result;
}

json_t *nw_call(struct node_world *nw, struct test_node *node, const char *method, json_t *args,
                GError **error)
{
    struct fake_reply reply;
    nw_call_start(nw, node, method, nw->stamp, args, &reply);
    return wait_reply(nw, &reply, error);
}

json_t *nw_call_as_job(struct node_world *nw, struct test_node *node, guint job, const char *method,
                       json_t *args)
{
    struct fake_reply reply;
    g_autoptr(GError) error = NULL;
    call_as_job(nw->job, node, job, method, nw->stamp, args, &reply);
    json_t *answer = wait_reply(nw, &reply, &error);
    g_assert_no_error(error);
    return answer;
}

static json_t *announcement(const struct node_world *nw)
{
    static const char *const nodes[] = {NODE_A, NODE_B, NODE_M};
    json_t *members = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autofree char *name = g_strdup_printf("node%u", i + 1);
        bool candidate = nodes[i] != nodes[0];
        json_array_append_new(members, json_make("{s:s,s:s,s:s,s:i,s:b}", "uuid", nodes[i], "name",
                                                 name, "address", "10.0.0.9", "port", 1811,
                                                 "master_candidate", (int)candidate));
    }
    char signature[LIMIT_VOUCHER_CHARS + 1];
    voucher_sign(nw->master, CLUSTER, nw->stamp, true, signature);
    return json_make("{s:I,s:I,s:s,s:s,s:I,s:o,s:i,s:s}", "history", (json_int_t)nw->stamp.history,
                     "epoch", (json_int_t)nw->stamp.epoch, "cluster", CLUSTER, "master_node",
                     NODE_M, "serial", (json_int_t)nw->serial, "members", members,
                     "replica_lost_ms", 1500, "signature", signature);
}

bool nw_announce(struct node_world *nw, struct test_node *node, GError **error)
{
    struct fake_reply reply;
    call_as(nw->master, node, "announce", nw->stamp, announcement(nw), &reply);
    json_autoptr answer = wait_reply(nw, &reply, error);
    return answer != NULL;
}

char *nw_statement(struct node_world *nw, struct test_node *node)
{
    struct fake_reply reply;
    json_t *args = announcement(nw);
    g_autoptr(GError) error = NULL;
    json_object_set_new(args, "asks", json_true());
    call_as(nw->master, node, "announce", nw->stamp, args, &reply);
    json_autoptr answer = wait_reply(nw, &reply, &error);
    g_assert_no_error(error);
    record_autoptr(announce_result) result = announce_result_parse(answer, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_true(result->states);
    g_assert_cmpuint(result->guests->len, <=, 1);
    if (result->guests->len == 0)
        return g_strdup("");
    const struct guest_statement *web1 = result->guests->pdata[0];
    return g_strdup_printf("g%u%s, %s%s%s s%u%s%s", (guint)web1->generation,
                           web1->runs ? " runs" : "", *web1->replica ? "replica " : "no replica ",
                           enum_word(&replica_state_words, (int)web1->state),
                           web1->told ? " told" : "", (guint)web1->sync,
                           *web1->gone_to ? " gone to " : "", web1->gone_to);
}

json_t *nw_report(struct node_world *nw, struct test_node *node)
{
    g_autoptr(GError) error = NULL;
    json_t *report = nw_call(nw, node, "node_report", json_object(), &error);
    g_assert_no_error(error);
    return report;
}

/* --- jobs --- */

static json_t *nics_of(const struct master_record *web1)
{
    json_t *nics = json_array();
    for (guint i = 0; i < web1->nics; i++) {
        g_autofree char *uuid = g_strdup_printf("44444444-4444-4444-8444-44444444444%u", i);
        g_autofree char *mac = g_strdup_printf("aa:00:00:00:00:0%u", i);
        json_array_append_new(
            nics, web1->routed
                      ? json_make("{s:s,s:s,s:s,s:s}", "uuid", uuid, "mac", mac, "mode", "routed",
                                  "ip", "192.0.2.7")
                      : json_make("{s:s,s:s,s:s}", "uuid", uuid, "mac", mac, "link", "br0"));
    }
    return nics;
}

struct instance *nw_instance(const struct node_world *nw)
{
    const struct master_record *web1 = &nw->web1;
    json_t *disks = json_array();
    for (guint i = 0; i < web1->disks; i++) {
        g_autofree char *uuid = g_strdup_printf("22222222-2222-4222-8222-22222222222%u", i);
        json_array_append_new(disks, json_make("{s:s,s:i}", "uuid", uuid, "size", 1));
    }
    const char *template_word = enum_word(&disk_template_words, (int)web1->disk_template);
    json_autoptr json = json_make(
        "{s:s,s:s,s:s,s:i,s:o,s:s,s:s,s:s,s:I,s:s,s:o,s:s,s:s,s:s}", "uuid", WEB1, "name", "web1",
        "disk_template", template_word, "memory", 128, "disks", disks, "primary_node",
        web1->primary, "secondary_node", web1->secondary, "replica",
        *web1->secondary ? web1->replica : "", "generation", (json_int_t)web1->generation, "holder",
        web1->holder, "nics", nics_of(web1), "kernel_path", web1->kernel ? web1->kernel : "",
        "migration", web1->migration ? web1->migration : "", "migration_node",
        web1->migration ? web1->migration_node : "");
    g_autoptr(GError) error = NULL;
    struct instance *instance = instance_parse(json, RECORD_STRICT, &error);
    g_assert_no_error(error);
    return instance;
}

json_t *nw_start_args(const struct node_world *nw, json_t *target, bool full, bool run)
{
    record_autoptr(instance) instance = nw_instance(nw);
    json_t *args = json_make("{s:o,s:I,s:b,s:b}", "instance", instance_to_json(instance), "sync",
                             (json_int_t)nw->web1.sync, "full", full ? 1 : 0, "run", run ? 1 : 0);
    if (target)
        json_object_set(args, "target", target);
    if (nw->web1.attachment)
        json_object_set_new(args, "volumes", json_make("[o]", nw_volume(nw)));
    return args;
}

json_t *nw_guest_args(const struct node_world *nw)
{
    return json_make("{s:s,s:I}", "instance", WEB1, "generation", (json_int_t)nw->web1.generation);
}

json_t *nw_stop_args(const struct node_world *nw, guint timeout_ms)
{
    json_t *args = nw_guest_args(nw);
    json_object_set_new(args, "timeout_ms", json_integer(timeout_ms));
    return args;
}

static json_t *replica_args(const struct node_world *nw)
{
    record_autoptr(instance) instance = nw_instance(nw);
    json_autoptr json = instance_to_json(instance);
    return json_make("{s:s,s:s,s:I,s:O}", "instance", WEB1, "replica", nw->web1.replica,
                     "generation", (json_int_t)nw->web1.generation, "disks",
                     json_object_get(json, "disks"));
}

static json_t *close_args(const struct node_world *nw)
{
    json_t *args = replica_args(nw);
    json_object_del(args, "disks");
    return args;
}

static bool create_images(struct node_world *nw, const char *node, const char *replica,
                          GError **error)
{
    json_t *args = replica_args(nw);
    json_object_del(args, "generation");
    json_object_set_new(args, "replica", json_string(replica));
    json_object_set_new(args, "disk_template",
                        json_string(enum_word(&disk_template_words, (int)nw->web1.disk_template)));
    json_autoptr answer = nw_call(nw, nw_node(nw, node), "disks_create", args, error);
    return answer != NULL;
}

static void new_replica(struct node_world *nw, const char *node)
{
    struct master_record *web1 = &nw->web1;
    g_snprintf(web1->replica, sizeof web1->replica, "33333333-3333-4333-8333-%012x",
               ++nw->replicas_made);
    web1->secondary = node;
    web1->replica_generation = web1->generation;
    web1->keep = 0;
    web1->state = REPLICA_SYNCING;
    web1->sync = 1;
}

/* A test may have chosen one beforehand. */
static enum disk_template template_of(const struct node_world *nw, guint disks)
{
    if (disks == 0)
        return TEMPLATE_DISKLESS;
    return nw->web1.disk_template == TEMPLATE_DISKLESS ? TEMPLATE_MIRROR : nw->web1.disk_template;
}

bool nw_create(struct node_world *nw, const char *primary, const char *secondary, guint disks,
               GError **error)
{
    nw->web1 = (struct master_record){.generation = 1,
                                      .primary = primary,
                                      .holder = "",
                                      .secondary = "",
                                      .disks = disks,
                                      .disk_template = template_of(nw, disks),
                                      .nics = nw->web1.nics,
                                      .routed = nw->web1.routed,
                                      .kernel = nw->web1.kernel,
                                      .migration_node = "",
                                      .state = REPLICA_STALE};
    if (*secondary)
        new_replica(nw, secondary);
    return (disks == 0 || create_images(nw, primary, "", error)) &&
           (!*secondary || create_images(nw, secondary, nw->web1.replica, error));
}

bool nw_commit_start(struct node_world *nw)
{
    struct master_record *web1 = &nw->web1;
    bool full = !(web1->clean && web1->state == REPLICA_IN_SYNC);
    web1->generation++;
    web1->holder = web1->primary;
    web1->clean = false;
    if (*web1->secondary) {
        if (full && web1->state == REPLICA_IN_SYNC)
            web1->keep = web1->replica_generation;
        web1->state = full ? REPLICA_SYNCING : REPLICA_IN_SYNC;
        web1->replica_generation = web1->generation;
        web1->sync++;
    }
    return full;
}

json_t *nw_open_replica(struct node_world *nw, GError **error)
{
    json_t *args = replica_args(nw);
    json_object_set_new(args, "keep", json_integer((json_int_t)nw->web1.keep));
    return nw_call(nw, nw_node(nw, nw->web1.secondary), "replica_open", args, error);
}

bool nw_start(struct node_world *nw, GError **error)
{
    struct master_record *web1 = &nw->web1;
    bool full = nw_commit_start(nw);
    json_autoptr target = *web1->secondary ? nw_open_replica(nw, NULL) : NULL;
    if (*web1->secondary && !target) {
        web1->state = REPLICA_STALE;
        web1->sync++;
    }
    json_autoptr answer = nw_call(nw, nw_node(nw, web1->primary), "guest_start",
                                  nw_start_args(nw, target, full, true), error);
    return answer != NULL;
}

bool nw_stop(struct node_world *nw, guint timeout_ms, GError **error)
{
    struct master_record *web1 = &nw->web1;
    json_autoptr answer =
        nw_call(nw, nw_node(nw, web1->primary), "guest_stop", nw_stop_args(nw, timeout_ms), error);
    if (!answer)
        return false;
    bool clean = json_is_true(json_object_get(answer, "clean")) && web1->state == REPLICA_IN_SYNC;
    if (*web1->secondary) {
        json_autoptr closed =
            nw_call(nw, nw_node(nw, web1->secondary), "replica_close", close_args(nw), NULL);
        if (!closed)
            clean = false;
    }
    web1->generation++;
    web1->holder = "";
    web1->clean = clean;
    if (*web1->secondary) {
        web1->state = web1->state == REPLICA_IN_SYNC ? REPLICA_IN_SYNC : REPLICA_STALE;
        web1->replica_generation = web1->generation;
        web1->sync++;
    }
    return true;
}

bool nw_failover(struct node_world *nw, GError **error)
{
    struct master_record *web1 = &nw->web1;
    g_assert_cmpint(web1->state, ==, REPLICA_IN_SYNC);
    bool was_up = *web1->holder;
    json_t *close = close_args(nw);
    json_object_set_new(close, "generation", json_integer((json_int_t)web1->generation + 1));
    json_object_set_new(close, "promote", json_true());
    web1->generation++;
    web1->primary = web1->secondary;
    web1->holder = was_up ? web1->primary : "";
    web1->secondary = "";
    web1->clean = false;
    struct test_node *node = nw_node(nw, web1->primary);
    json_autoptr closed = nw_call(nw, node, "replica_close", close, error);
    if (!closed || !was_up)
        return closed != NULL;
    json_autoptr answer =
        nw_call(nw, node, "guest_start", nw_start_args(nw, NULL, true, true), error);
    return answer != NULL;
}

static bool replace_replica(struct node_world *nw, GError **error)
{
    struct master_record *web1 = &nw->web1;
    struct test_node *primary = nw_node(nw, web1->primary);
    const char *other = primary == &nw->a ? NODE_B : NODE_A;
    if (*web1->secondary) {
        web1->state = REPLICA_STALE;
        web1->sync++;
        json_autoptr detached = nw_call(nw, primary, "mirror_detach", nw_guest_args(nw), error);
        if (!detached)
            return false;
        json_autoptr gone =
            nw_call(nw, nw_node(nw, other), "disks_remove",
                    json_make("{s:s,s:s,s:I}", "instance", WEB1, "replica", web1->replica,
                              "generation", (json_int_t)web1->generation),
                    error);
        if (!gone)
            return false;
    }
    new_replica(nw, other);
    if (!create_images(nw, other, web1->replica, error))
        return false;
    json_autoptr target = nw_open_replica(nw, error);
    if (!target)
        return false;
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "sync", json_integer((json_int_t)web1->sync));
    json_autoptr answer = nw_call(nw, primary, "mirror_attach", args, error);
    return answer != NULL;
}

bool nw_replace_replica(struct node_world *nw, GError **error)
{
    struct master_record *web1 = &nw->web1;
    if (replace_replica(nw, error))
        return true;
    if (web1->state != REPLICA_STALE) { /* the job's last commit */
        web1->state = REPLICA_STALE;
        web1->sync++;
    }
    return false;
}

bool nw_create_and_start(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    g_assert_no_error(error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    return true;
}

/* --- life --- */

static void node_init(struct node_world *nw, struct test_node *node, const char *uuid)
{
    node->uuid = uuid;
    node->host_env = fake_process(nw->world, uuid, "host");
    node->host = fake_host_add(nw->hosts, uuid, node->host_env);
    nw_daemon_start(nw, node);
    g_autoptr(GError) error = NULL;
    nw_announce(nw, node, &error);
    g_assert_no_error(error);
}

struct node_world *node_world_new(guint64 seed)
{
    struct node_world *nw = g_new0(struct node_world, 1);
    nw->world = fake_world_new();
    nw->hosts = fake_hosts_new(seed);
    nw->unanswered = g_ptr_array_new();
    nw->stamp = (struct stamp){1, 1};
    nw->serial = 1;
    nw->web1 =
        (struct master_record){.primary = "", .holder = "", .secondary = "", .migration_node = ""};
    fake_hosts_set_path(nw->hosts, path_passes, nw);
    fake_world_set_master(nw->world, NODE_M);
    nw->master = fake_process(nw->world, NODE_M, ROLE_WCONFD);
    nw->master->authority = fake_authority_of(true);
    fake_serve(nw->master, master_handle, nw);
    nw->job = fake_process(nw->world, NODE_M, ROLE_JOB);
    node_init(nw, &nw->a, NODE_A);
    node_init(nw, &nw->b, NODE_B);
    return nw;
}

bool nw_die_before_release(struct fake_host *host, const char *op, bool after, void *data)
{
    bool *dead = data;
    *dead = *dead || (!after && strcmp(op, "mirror_release") == 0);
    return *dead;
}

void node_world_free(struct node_world *nw)
{
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_kill(nw, &nw->b);
    g_autoptr(GError) over =
        g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_KILLED, "the test is over");
    for (guint i = 0; i < nw->unanswered->len; i++)
        rpc_fail(nw->unanswered->pdata[i], over);
    fake_settle(nw->world);
    g_ptr_array_unref(nw->unanswered);
    fake_hosts_free(nw->hosts);
    fake_world_free(nw->world);
    g_free(nw);
}

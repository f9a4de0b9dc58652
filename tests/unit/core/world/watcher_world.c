/* See watcher_world.h. */
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define TEST_JOB 17

/* --- looking --- */

void look(struct watcher_world *w)
{
    g_autofree char *text =
        ask_wconf(&w->base, w->base.luxid, "wait_changes", json_make("{s:i}", "serial", 0));
    json_autoptr json = json_loads(text, 0, NULL);
    record_autoptr(changes) all = changes_parse(json, RECORD_LAX, NULL);
    g_assert_nonnull(all);
    config_reset(w->view);
    for (guint i = 0; i < all->changes->len; i++) {
        g_autoptr(GError) error = NULL;
        config_apply(w->view, all->changes->pdata[i], &error);
        g_assert_no_error(error);
    }
    config_set_position(w->view, all->history, all->serial);
}

/* A record of a job is changed by that very job. */
static guint writer_of(const GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (g_str_equal(change->kind, "job"))
            return (guint)g_ascii_strtoull(change->key, NULL, 10);
    }
    return TEST_JOB;
}

static void commit(struct watcher_world *w, GPtrArray *changes)
{
    g_autofree char *said = job_commit_of(&w->base, writer_of(changes), TEST_JOB, changes);
    if (strstr(said, "serial") == NULL)
        g_error("the test's commit was refused: %s", said);
}

/* The object with members changed, as a change. */
static struct change *patched(const struct watcher_world *w, const char *kind, const char *key,
                              json_t *patch)
{
    json_t *object = config_get(w->view, kind, key, NULL) ? config_object_json(w->view, kind, key)
                                                          : json_object();
    json_object_update(object, patch);
    json_decref(patch);
    return config_put(w->view, kind, key, object);
}

void change_object(struct watcher_world *w, const char *kind, const char *key, json_t *patch)
{
    look(w);
    commit(w, changes_of(patched(w, kind, key, patch), NULL));
}

#define ALL_BUT_WEB1                                                                               \
    "x instance/db1, x instance/more1, x instance/more2, x instance/more3, x instance/more4, "     \
    "x instance/more5, x node/" NODE1 ", x node/" NODE2 ", x node/" NODE3 ", x node/" NODE4

void take_locks(struct watcher_world *w)
{
    g_autofree char *released =
        ask_wconf(&w->base, w->base.job, "free_locks", json_make("{s:o}", "owner", owner_json(17)));
    g_autofree char *locks =
        job_locks(&w->base, TEST_JOB, "x cluster/BGL, x instance/web1, " ALL_BUT_WEB1, true);
    g_assert_nonnull(strstr(locks, "true"));
}

void patch_web1(struct watcher_world *w, json_t *patch)
{
    take_locks(w);
    change_object(w, "instance", WEB1, patch);
    g_free(job_locks(&w->base, TEST_JOB, "r instance/web1", false));
}

/* --- luxid --- */

struct submitting {
    struct watcher_world *w;
    struct rpc_request *request;
    guint64 id;
    json_t *ops;
};

static void submission_free(void *data)
{
    struct submission *submission = data;
    g_free(submission->op_id);
    g_free(submission->request_id);
    g_free(submission->body);
    g_free(submission->instance);
    g_free(submission);
}

static void committed_cb(json_t *result, const GError *error, void *data)
{
    struct submitting *submitting = data;
    g_assert_no_error(error);
    rpc_answer(submitting->request, json_integer((json_int_t)submitting->id));
    g_free(submitting);
}

static const char *text_of(const json_t *json, const char *member)
{
    const char *text = json_string_value(json_object_get(json, member));
    return text != NULL ? text : "";
}

static void commit_job(void *data)
{
    struct submitting *submitting = data;
    struct watcher_world *w = submitting->w;
    const struct submission *submission = w->submissions->pdata[submitting->id - 1];
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, submission->id);
    g_autofree char *commit_id = env_uuid(w->base.luxid);
    json_t *ops = json_array();
    size_t index;
    json_t *op;
    json_array_foreach(submitting->ops, index, op)
        json_array_append_new(ops, json_make("{s:O,s:s}", "input", op, "status", "queued"));
    json_decref(submitting->ops);
    json_t *object =
        json_make("{s:I,s:o,s:s,s:s,s:I}", "id", (json_int_t)submission->id, "ops", ops, "status",
                  "queued", "request_id", submission->request_id, "received_us",
                  (json_int_t)w->base.luxid->ops->wall_us(w->base.luxid));
    struct rpc_call call = {.to_node = NODE_LOCAL,
                            .to_role = ROLE_WCONFD,
                            .method = "commit",
                            .args = json_make("{s:{s:s,s:s},s:s,s:[{s:s,s:s,s:s,s:o}]}", "owner",
                                              "job", "luxid", "livelock", "luxid-1", "commit_id",
                                              commit_id, "changes", "op", "put", "kind", "job",
                                              "key", key, "object", object)};
    w->base.luxid->ops->call(w->base.luxid, &call, committed_cb, submitting);
}

static void commit_job_later(struct watcher_world *w, struct rpc_request *request, guint64 id,
                             json_t *ops)
{
    struct submitting *submitting = g_new(struct submitting, 1);
    *submitting = (struct submitting){w, request, id, json_incref(ops)};
    if (w->luxid_pause_ms == 0)
        commit_job(submitting);
    else
        w->base.luxid->ops->timer(w->base.luxid, w->luxid_pause_ms, commit_job, submitting);
}

static struct submission *find_request(const struct watcher_world *w, const char *request_id)
{
    for (guint i = 0; i < w->submissions->len; i++) {
        struct submission *known = w->submissions->pdata[i];
        if (g_str_equal(known->request_id, request_id))
            return known;
    }
    return NULL;
}

static void serve_luxid(struct rpc_request *request, void *data)
{
    struct watcher_world *w = data;
    json_t *ops = json_array_get(request->args, 0);
    json_t *op = json_array_get(ops, 0);
    g_assert_cmpstr(request->name, ==, "SubmitJob");
    g_assert_cmpuint(json_array_size(ops), >=, 1);
    if (w->luxid_refuses != NULL) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, "%s", w->luxid_refuses);
        return;
    }
    g_autofree char *body = json_to_text(ops);
    struct submission *known = find_request(w, text_of(op, "request_id"));
    if (known != NULL) {
        bool same = g_str_equal(known->body, body);
        w->repeats += same;
        w->conflicts += !same;
        rpc_answer(request, json_integer((json_int_t)known->id));
        return;
    }
    struct submission *fresh = g_new0(struct submission, 1);
    *fresh = (struct submission){.id = w->submissions->len + 1,
                                 .op_id = g_strdup(text_of(op, "OP_ID")),
                                 .request_id = g_strdup(text_of(op, "request_id")),
                                 .body = g_steal_pointer(&body),
                                 .instance = g_strdup(text_of(op, "instance_name"))};
    g_ptr_array_add(w->submissions, fresh);
    commit_job_later(w, request, fresh->id, ops);
}

/* --- nodes --- */

static void add_images(const struct watcher_world *w, const char *node, json_t *answer)
{
    json_t *images = json_array(), *sets = json_array();
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    const struct replica *replica =
        web1 == NULL ? NULL : config_get(w->view, "replica", web1->replica, NULL);
    if (replica != NULL && g_str_equal(replica->node, node) && !w->replica_gone) {
        json_array_append_new(images, json_sprintf("%s %s", WEB1, replica->uuid));
        json_array_append_new(sets, json_make("{ss ss si}", "instance", WEB1, "replica",
                                              replica->uuid, "disks", w->disk_gone ? 1 : 3));
    }
    json_object_set_new(answer, "images", images);
    if (!w->old_version)
        json_object_set_new(answer, "image_sets", sets);
    else
        json_decref(sets);
}

static json_t *report(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    struct watcher_world *w = data;
    if (w->silent != NULL && (g_str_equal(w->silent, to_node) || g_str_equal(w->silent, "all"))) {
        fettle_set_error(error, UNREACHABLE, "nobody listens");
        return NULL;
    }
    if (g_strcmp0(w->refuses, to_node) == 0) {
        fettle_set_error(error, TEMPORARY, "the disks of this node do not answer");
        return NULL;
    }
    json_t *guests = json_array();
    if (w->guest_node != NULL && g_str_equal(w->guest_node, to_node))
        json_array_append_new(
            guests, json_make("{s:s,s:I,s:s,s:s,s:i,s:s,s:s,s:b}", "instance", WEB1, "generation",
                              (json_int_t)w->guest_generation, "state", w->guest_state, "mirror",
                              w->mirror, "io_errors", (int)w->io_errors, "io_stop",
                              w->io_stop != NULL ? w->io_stop : "none", "io_volume",
                              w->io_volume != NULL ? w->io_volume : "", "late", w->late_guest));
    if (w->io_errors > 0 && !w->errors_past)
        w->io_errors++;
    bool full = w->full != NULL && g_str_equal(w->full, to_node);
    bool failed = w->failed != NULL && g_str_equal(w->failed, to_node);
    json_t *answer = json_make(
        "{s:s,s:i,s:i,s:i,s:i,s:o,s:s}", "node", to_node, "memory_total", (int)w->memory,
        "memory_free", (int)w->memory, "disk_total", failed ? 0 : 4096, "disk_free",
        failed ? 0
        : full ? 0
               : (int)w->disk_free,
        "guests", guests, "qemu_version", g_strcmp0(w->newer, to_node) == 0 ? "8.1" : "8.0");
    if (g_strcmp0(w->fault, to_node) == 0)
        json_object_set_new(answer, "faults",
                            json_make("[{s:s,s:s,s:b,s:b}]", "kind",
                                      w->fault_kind != NULL ? w->fault_kind : "disks", "text",
                                      "cannot write to its disks: Input/output error", "silent",
                                      w->silent_trial, "fresh", true));
    json_object_set_new(answer, "faults_known", json_boolean(w->fault != NULL || w->well));
    if (w->tell_images)
        add_images(w, to_node, answer);
    if (g_strcmp0(w->late, to_node) == 0) {
        json_object_set_new(answer, "late", json_make("[{s:s,s:i}]", "part", "disks", "age_ms", 9));
        json_object_set_new(json_array_get(guests, 0), "late", json_true());
    }
    const char *part;
    json_t *more;
    json_object_foreach(json_object_get(w->things, to_node), part, more) {
        json_t *list = json_object_get(answer, part);
        if (list != NULL)
            json_array_extend(list, more);
        else
            json_object_set(answer, part, more);
    }
    if (json_object_get(w->services, to_node) != NULL)
        json_object_set(answer, "services", json_object_get(w->services, to_node));
    return answer;
}

/* --- what they show of one instance --- */

static json_t *image_set(const char *replica, guint disks)
{
    return json_make("{s:s,s:s,s:i}", "instance", WEB1, "replica", replica, "disks", (int)disks);
}

static json_t *images_of(const struct watcher_world *w, const char *node)
{
    json_t *images = json_array();
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    if (w->own_disks != 0 && g_str_equal(node, NODE1))
        json_array_append_new(images, image_set("", w->own_disks));
    if (w->left_disks != 0 && g_str_equal(node, NODE1))
        json_array_append_new(images, image_set(REPLICA2, w->left_disks));
    if (web1 != NULL && g_str_equal(node, web1->secondary_node) && !w->replica_gone)
        json_array_append_new(images, image_set(web1->replica, 3));
    return images;
}

static json_t *sight(const struct watcher_world *w, const char *node, const char *instance)
{
    bool web1 = g_str_equal(instance, WEB1);
    bool there = web1 && w->guest_node != NULL && g_str_equal(w->guest_node, node);
    json_t *disks = json_array();
    for (guint i = 0; web1 && g_str_equal(node, NODE1) && i < 2; i++)
        json_array_append_new(disks, json_make("{s:I}", "bytes",
                                               w->own_disks & (1u << i)
                                                   ? (json_int_t)w->disk_mib * 1024 * 1024
                                                   : (json_int_t)0));
    return json_make("{s:s,s:s,s:I,s:s,s:s,s:I,s:s,s:o,s:o,s:O*,s:O*,s:I}", "instance", instance,
                     "busy", g_strcmp0(w->busy, node) == 0 ? "its images are made by job 900" : "",
                     "busy_job", g_strcmp0(w->busy, node) == 0 ? (json_int_t)w->busy_job : 0,
                     "silent", there && w->late_guest ? "its monitor does not answer" : "", "state",
                     there ? w->guest_state : "absent", "generation",
                     (json_int_t)(there ? w->guest_generation : 0), "crashed",
                     !there && w->crashed != NULL ? w->crashed : "", "images",
                     web1 ? images_of(w, node) : json_array(), "disks", disks, "volumes",
                     there ? w->volumes : NULL, "drives", there ? w->drives : NULL, "taken_us",
                     (json_int_t)1);
}

static json_t *collect(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    struct watcher_world *w = data;
    size_t index;
    const json_t *subject;
    w->collects++;
    if (g_strcmp0(w->unasked, to_node) == 0) {
        fettle_set_error(error, PROTOCOL, "the node daemon has no method collect");
        return NULL;
    }
    json_t *sights = json_array();
    look(w);
    json_array_foreach(json_object_get(request->args, "subjects"), index, subject) {
        w->refused = (guint64)json_integer_value(json_object_get(subject, "dead_job"));
        json_array_append_new(
            sights, sight(w, to_node, json_string_value(json_object_get(subject, "instance"))));
    }
    w->answers_late = true;
    return json_make("{s:s,s:o}", "node", to_node, "sights", sights);
}

static guint delay_of(const char *from_node, const char *to_node, void *data)
{
    struct watcher_world *w = data;
    bool late = w->answers_late;
    w->answers_late = false;
    return late ? w->collect_ms : 0;
}

static json_t *list_strays(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    struct watcher_world *w = data;
    json_t *answer = json_object_get(w->strays, to_node);
    w->strays_asked++;
    if (json_is_null(answer)) {
        fettle_set_error(error, PROTOCOL, "the node daemon has no method list_strays");
        return NULL;
    }
    return answer != NULL ? json_incref(answer)
                          : json_make("{s:s,s:b,s:b}", "node", to_node, "processes_known", true,
                                      "files_known", true);
}

/* --- the world --- */

static void start_task(void *data)
{
    struct watcher_world *w = data;
    g_autoptr(GError) error = NULL;
    watcher_start(w->watcher, &error);
    g_assert_no_error(error);
}

void watcher_world_start(struct watcher_world *w)
{
    w->env = fake_process(w->base.world, NODE1, ROLE_WATCHER);
    w->watcher = watcher_new(w->env, &repair_duties);
    fake_run(w->env, start_task, w);
}

void watcher_world_kill(struct watcher_world *w)
{
    fake_kill(w->env);
    watcher_free(g_steal_pointer(&w->watcher));
}

/* The other instance stays out of the way, on node3. */
static GPtrArray *without_db1_on_node1(const char *engine, GPtrArray *more)
{
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < objects->len; i++) {
        struct change *change = objects->pdata[i];
        if (g_str_equal(change->key, DB1))
            json_object_set_new(change->object, "primary_node", json_string(NODE3));
        if (!g_str_equal(change->kind, "cluster"))
            continue;
        json_object_set_new(change->object, "engine", json_string(engine));
        /* Tests of candidates say how many there should be. */
        json_object_set_new(change->object, "candidate_pool_size", json_integer(1));
    }
    if (more)
        g_ptr_array_extend_and_steal(objects, more);
    return objects;
}

struct watcher_world *watcher_world_new(void)
{
    return watcher_world_new_with("sqlite", NULL);
}

struct watcher_world *watcher_world_new_with(const char *engine, GPtrArray *more)
{
    struct watcher_world *w = g_new0(struct watcher_world, 1);
    w->view = config_new();
    w->submissions = g_ptr_array_new_with_free_func(submission_free);
    w->guest_node = NODE1;
    w->guest_state = "running";
    w->mirror = "ready";
    w->guest_generation = 4;
    w->disk_free = w->memory = 4096;
    w->own_disks = 3;
    w->disk_mib = 4096;
    config_world_init(&w->base, without_db1_on_node1(engine, more));
    fake_script(w->base.world, NULL, ROLE_NODED, "node_report", report, w);
    fake_script(w->base.world, NULL, ROLE_NODED, "collect", collect, w);
    fake_set_delay(w->base.world, delay_of, w);
    fake_script(w->base.world, NULL, ROLE_NODED, "list_strays", list_strays, w);
    fake_serve(w->base.luxid, serve_luxid, w);
    config_world_start(&w->base);
    take_locks(w);
    watcher_world_start(w);
    return w;
}

void watcher_world_free(struct watcher_world *w)
{
    if (w->watcher != NULL)
        watcher_world_kill(w);
    config_world_clear(&w->base);
    config_free(w->view);
    json_decref(w->services);
    json_decref(w->things);
    json_decref(w->strays);
    json_decref(w->volumes);
    json_decref(w->drives);
    g_ptr_array_unref(w->submissions);
    g_free(w);
}

void passes(struct watcher_world *w, guint n)
{
    fake_settle(w->base.world);
    fake_advance(w->base.world, n * 1000 + 200);
}

/* --- changes --- */

void set_tag(struct watcher_world *w, enum tag_kind kind, const char *object, const char *text)
{
    look(w);
    g_autofree char *tag = g_strconcat(TAG_PREFIX, text, NULL);
    g_autofree char *key = config_tag_key(kind, object, tag);
    json_t *json = json_make("{s:s,s:s,s:s}", "kind", enum_word(&tag_kind_words, (int)kind),
                             "object", object, "tag", tag);
    commit(w, changes_of(config_put(w->view, "tag", key, json), NULL));
}

void drop_tag(struct watcher_world *w, enum tag_kind kind, const char *object, const char *text)
{
    look(w);
    g_autofree char *tag = g_strconcat(TAG_PREFIX, text, NULL);
    g_autofree char *key = config_tag_key(kind, object, tag);
    commit(w, changes_of(config_delete(w->view, "tag", key), NULL));
}

void set_node(struct watcher_world *w, const char *node, const char *state)
{
    change_object(w, "node", node,
                  json_make("{s:b,s:b}", "offline", g_str_equal(state, "offline"), "drained",
                            g_str_equal(state, "drained")));
}

void add_node4(struct watcher_world *w)
{
    look(w);
    commit(w, changes_of(config_put(w->view, "node", NODE4,
                                    json_make("{ss ss ss ss}", "uuid", NODE4, "name", "node4",
                                              "primary_ip", "10.0.0.4", "group", GROUP)),
                         NULL));
}

/* Only the holder's node daemon may say that a replica is in sync. */
static void holder_says(struct watcher_world *w, const char *state)
{
    look(w);
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    const struct replica *replica = config_get(w->view, "replica", web1->replica, NULL);
    guint at = (guint)(web1->holder[0] - '1');
    g_autofree char *said =
        ask_wconf(&w->base, w->base.noded[at], "set_replica_state",
                  json_make("{s:s,s:s,s:I,s:I,s:s,s:s}", "instance", WEB1, "replica", replica->uuid,
                            "generation", (json_int_t)web1->generation, "sync",
                            (json_int_t)replica->sync, "state", state, "why", "the test says so"));
    g_assert_nonnull(strstr(said, "sync"));
}

void set_replica(struct watcher_world *w, const char *state)
{
    holder_says(w, state);
}

static struct change *ended(struct watcher_world *w, guint n, const char *status, json_t *result)
{
    struct submission *submission = w->submissions->pdata[n];
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, submission->id);
    const struct job *job = config_get(w->view, "job", key, NULL);
    g_assert_nonnull(job);
    bool failed = g_str_equal(status, "error");
    json_t *rows = json_array();
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        bool this = !failed || i == w->fail_at;
        json_array_append_new(rows,
                              json_make("{s:O,s:s,s:O}", "input", op->input, "status",
                                        this             ? status
                                        : i < w->fail_at ? "success"
                                                         : "error",
                                        "result", this && result != NULL ? result : json_null()));
    }
    json_decref(result);
    submission->ended = true;
    return patched(w, "job", key,
                   json_make("{s:s,s:o,s:I}", "status", status, "ops", rows, "end_us",
                             (json_int_t)w->base.luxid->ops->wall_us(w->base.luxid)));
}

void end_job(struct watcher_world *w, guint n, const char *status, json_t *result)
{
    look(w);
    commit(w, changes_of(ended(w, n, status, result), NULL));
}

/* A node that can take a replica, and is neither of the two. */
static const char *other_node(const struct watcher_world *w, const char *a, const char *b)
{
    const char *const nodes[] = {NODE3, NODE2, NODE1};
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        const struct node *node = config_get(w->view, "node", nodes[i], NULL);
        if (!g_str_equal(nodes[i], a) && !g_str_equal(nodes[i], b) && !node->offline &&
            !node->drained)
            return nodes[i];
    }
    g_assert_not_reached();
}

void end_guest(struct watcher_world *w, guint64 job, bool clean, const char *sound)
{
    look(w);
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    const struct replica *replica = config_get(w->view, "replica", web1->replica, NULL);
    json_int_t generation = (json_int_t)web1->generation + 1;
    w->guest_node = NULL;
    commit(w, changes_of(
                  patched(w, "instance", WEB1,
                          json_make("{s:s,s:I,s:b,s:s,s:s,s:I}", "holder", "", "generation",
                                    generation, "clean", clean, "sound", sound, "task_state",
                                    job != 0 ? "failing-over" : "", "task_owner", (json_int_t)job)),
                  patched(w, "replica", replica->uuid,
                          json_make("{s:I,s:I}", "generation", generation, "sync",
                                    (json_int_t)replica->sync + 1)),
                  NULL));
}

static void play_failover(struct watcher_world *w, guint n)
{
    look(w);
    const struct instance *before = config_get(w->view, "instance", WEB1, NULL);
    const struct node *from = config_get(w->view, "node", before->primary_node, NULL);
    if (*before->holder != '\0' && !from->offline) /* the mark is the job's until it ends */
        end_guest(w, job(w, n)->id, true, "yes");
    look(w);
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    const char *to = g_intern_string(web1->secondary_node);
    guint64 generation = web1->generation + 1;
    g_autofree char *replica = g_strdup(web1->replica);
    w->guest_node = to;
    w->guest_generation = generation;
    w->mirror = "none";
    commit(w, changes_of(patched(w, "instance", WEB1,
                                 json_make("{s:s,s:s,s:s,s:s,s:I,s:b,s:s,s:i}", "primary_node", to,
                                           "holder", to, "secondary_node", "", "replica", "",
                                           "generation", (json_int_t)generation, "clean", 0,
                                           "task_state", "", "task_owner", 0)),
                         config_delete(w->view, "replica", replica), ended(w, n, "success", NULL),
                         NULL));
}

static void play_replace(struct watcher_world *w, guint n)
{
    look(w);
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    g_autofree char *old = g_strdup(web1->replica);
    const char *third = other_node(w, web1->primary_node, web1->secondary_node);
    g_autofree char *uuid = env_uuid(w->base.luxid);
    json_t *replica =
        json_make("{s:s,s:s,s:s,s:I,s:i,s:s}", "uuid", uuid, "instance", WEB1, "node", third,
                  "generation", (json_int_t)web1->generation, "sync", 1, "state", "syncing");
    GPtrArray *changes =
        changes_of(patched(w, "instance", WEB1,
                           json_make("{s:s,s:s}", "secondary_node", third, "replica", uuid)),
                   config_put(w->view, "replica", uuid, replica), NULL);
    if (*old != '\0')
        g_ptr_array_add(changes, config_delete(w->view, "replica", old));
    w->mirror = "syncing";
    commit(w, changes);
    holder_says(w, "in-sync");
    w->mirror = "ready";
    end_job(w, n, "success", NULL);
}

/* The secondary becomes primary, and the replica is where the guest was, in sync again. */
static void play_migrate(struct watcher_world *w, guint n)
{
    look(w);
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    const char *from = g_intern_string(web1->primary_node);
    const char *to = g_intern_string(web1->secondary_node);
    g_autofree char *old = g_strdup(web1->replica);
    g_autofree char *migration = env_uuid(w->base.luxid);
    guint64 generation = web1->generation;
    change_object(w, "instance", WEB1,
                  json_make("{s:s,s:s,s:s,s:I}", "migration", migration, "migration_node", to,
                            "task_state", "migrating", "task_owner", (json_int_t)job(w, n)->id));
    g_autofree char *said =
        ask_wconf(&w->base, w->base.noded[(guint)(from[0] - '1')], "set_migrated",
                  json_make("{s:s,s:I,s:s,s:b}", "instance", WEB1, "generation",
                            (json_int_t)generation, "migration", migration, "clean", 1));
    g_assert_nonnull(strstr(said, "serial"));
    w->guest_node = to;
    w->guest_generation = generation + 1;
    w->mirror = "syncing";
    change_object(w, "instance", WEB1,
                  json_make("{s:s,s:s,s:s,s:i}", "migration", "", "migration_node", "",
                            "task_state", "", "task_owner", 0));
    holder_says(w, "in-sync");
    w->mirror = "ready";
    end_job(w, n, "success", NULL);
}

bool job_committed(struct watcher_world *w, guint n)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, job(w, n)->id);
    look(w);
    return config_get(w->view, "job", key, NULL) != NULL;
}

void play_job(struct watcher_world *w, guint n)
{
    const struct submission *submission = w->submissions->pdata[n];
    if (g_str_equal(submission->op_id, "OP_INSTANCE_FAILOVER"))
        play_failover(w, n);
    else if (g_str_equal(submission->op_id, "OP_INSTANCE_REPLACE_DISKS"))
        play_replace(w, n);
    else if (g_str_equal(submission->op_id, "OP_INSTANCE_MIGRATE"))
        play_migrate(w, n);
    else
        end_job(w, n, "success", NULL);
}

json_t *job_error(const char *message, const char *code, bool changed)
{
    return json_make("[s,[s,s,b]]", "OpExecError", message, code, (int)changed);
}

/* --- seeing --- */

guint jobs(const struct watcher_world *w)
{
    return w->submissions->len;
}

const struct submission *job(const struct watcher_world *w, guint n)
{
    g_assert_cmpuint(n, <, w->submissions->len);
    return w->submissions->pdata[n];
}

/* ID and TIME of pending and result tags are not for comparing. */
static char *without_names(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", -1);
    bool record = g_str_equal(parts[0], "pending") || g_str_equal(parts[0], "result");
    for (guint i = 2; record && i < 4 && parts[i] != NULL; i++) {
        g_free(parts[i]);
        parts[i] = g_strdup(i == 2 ? "I" : "T");
    }
    return g_strjoinv(":", parts);
}

char *web1_tags(struct watcher_world *w)
{
    look(w);
    g_autoptr(GPtrArray) tags = config_tags(w->view, TAG_INSTANCE, WEB1);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < tags->len; i++)
        g_ptr_array_add(texts, without_names((const char *)tags->pdata[i] + strlen(TAG_PREFIX)));
    g_ptr_array_add(texts, NULL);
    return g_strjoinv(" ", (char **)texts->pdata);
}

char *web1_tag(struct watcher_world *w, const char *kind)
{
    look(w);
    g_autofree char *prefix = g_strconcat(TAG_PREFIX, kind, NULL);
    char *found = NULL;
    g_autoptr(GPtrArray) tags = config_tags(w->view, TAG_INSTANCE, WEB1);
    for (guint i = 0; i < tags->len; i++) {
        if (!g_str_has_prefix(tags->pdata[i], prefix))
            continue;
        g_assert_null(found);
        found = g_strdup(tags->pdata[i]);
    }
    return found;
}

const struct decision *latest_about(struct watcher_world *w, const char *subject,
                                    const char *author)
{
    look(w);
    const struct decision *latest = NULL;
    guint64 newest = 0, version = 0;
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        config_get(w->view, "decision", decision->uuid, &version);
        bool later = latest == NULL || version > newest ||
                     (version == newest && decision->at_us > latest->at_us);
        if (!later || !g_str_equal(decision->subject, subject) ||
            !g_str_equal(decision->author, author))
            continue;
        latest = decision;
        newest = version;
    }
    return latest;
}

guint decisions_count(struct watcher_world *w)
{
    look(w);
    return config_count(w->view, "decision");
}

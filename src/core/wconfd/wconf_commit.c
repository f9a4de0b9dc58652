/*
 * Transactions: from the request to the engine and back. A commit is checked against the head,
 * which has all commits before it, also those that the engine has not stored yet; so many can be on
 * their way at once. Nobody is told of one before the engine says that it is stored. If the engine
 * ever says anything else, what stands behind that commit was built on sand: wconfd steps down, and
 * a restart begins with what is really stored (SAF-04, 08).
 */
#include <string.h>

#include "base/log.h"
#include "core/config/fault.h"
#include "core/config/named_change.h"
#include "core/config/resource.h"
#include "core/config/restored.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

struct reply {
    struct rpc_request *request;
    json_t *answer; /* NULL: a commit_result */
};

struct commit {
    struct wconf *wconf;
    char *id;
    guint64 serial;
    GPtrArray *changes; /* struct change */
    GPtrArray *objects; /* struct config_object of each, NULL for a delete */
    json_t *answer;     /* to who sends it; NULL: a commit_result */
    GPtrArray *replies; /* struct reply; none if nobody waits, several if the same id came again */
    bool sent;          /* the engine has it */
};

static void object_unref(void *data)
{
    if (data)
        config_object_unref(data);
}

static void commit_free(struct commit *commit)
{
    g_free(commit->id);
    g_ptr_array_unref(commit->changes);
    g_ptr_array_unref(commit->objects);
    g_ptr_array_unref(commit->replies);
    json_decref(commit->answer);
    g_free(commit);
}

static json_t *reply_json(const struct reply *reply, guint64 serial)
{
    if (reply->answer)
        return json_incref(reply->answer);
    struct commit_result result = {.serial = serial};
    return commit_result_to_json(&result);
}

static void reply_free(void *data)
{
    struct reply *reply = data;
    json_decref(reply->answer);
    g_free(reply);
}

static void commit_reply_all(struct commit *commit, const GError *error)
{
    for (guint i = 0; i < commit->replies->len; i++) {
        struct reply *reply = commit->replies->pdata[i];
        if (error)
            rpc_fail(reply->request, error);
        else
            rpc_answer(reply->request, reply_json(reply, commit->serial));
    }
    g_ptr_array_set_size(commit->replies, 0);
}

static void commit_add_reply(struct commit *commit, struct rpc_request *request, json_t *answer)
{
    struct reply *reply = g_new(struct reply, 1);
    *reply = (struct reply){request, answer};
    g_ptr_array_add(commit->replies, reply);
}

/* --- the engine has spoken --- */

/* Makes it visible; returns whether it concerns the list of members. */
static bool commit_publish(struct commit *commit)
{
    struct wconf *wconf = commit->wconf;
    bool members = false;
    for (guint i = 0; i < commit->changes->len; i++) {
        const struct change *change = commit->changes->pdata[i];
        config_set(wconf->committed, change->kind, change->key, commit->objects->pdata[i]);
        wconf_stream_add(wconf, commit->serial, change->kind, change->key);
        members = members || !strcmp(change->kind, "node") || !strcmp(change->kind, "cluster");
    }
    config_set_position(wconf->committed, config_history(wconf->committed), commit->serial);
    wconf_commit_ids_note(wconf, commit->id, commit->serial);
    wconf_followers_note(wconf);
    return members;
}

static void commit_failed(struct commit *commit, enum engine_result result, const GError *error)
{
    const char *why = error ? error->message : "no reason given";
    g_autoptr(GError) answer = NULL;
    if (result == ENGINE_UNKNOWN)
        fettle_set_error(&answer, UNKNOWN_RESULT,
                         "whether the commit is stored is unknown (%s); repeat it with its id",
                         why);
    else
        fettle_set_error(&answer, TEMPORARY, "the commit was not stored: %s", why);
    wconf_step_down(commit->wconf, (enum fettle_error)answer->code,
                    "serial %" G_GUINT64_FORMAT ": %s", commit->serial, answer->message);
    commit_reply_all(commit, answer);
}

/* Enough copies have it, or nobody is waited for any more. */
static void copied_cb(void *data)
{
    struct commit *commit = data;
    struct wconf *wconf = commit->wconf;
    g_autoptr(GError) unknown = NULL;
    if (wconf->down)
        fettle_set_error(&unknown, UNKNOWN_RESULT, "repeat the commit with its id: %s",
                         wconf->down->message);
    commit_reply_all(commit, unknown);
    g_hash_table_remove(wconf->pending_ids, commit->id);
    commit_free(commit);
}

static void commit_done(enum engine_result result, const GError *error, void *data)
{
    struct commit *commit = data;
    struct wconf *wconf = commit->wconf;
    g_assert(g_queue_pop_head(&wconf->pending) == commit);
    if (wconf->down && result == ENGINE_DONE) {
        /* Stored all the same; but we must not speak as a master any more. */
        g_autoptr(GError) unknown = NULL;
        fettle_set_error(&unknown, UNKNOWN_RESULT, "repeat the commit with its id: %s",
                         wconf->down->message);
        commit_reply_all(commit, unknown);
    } else if (result == ENGINE_DONE) {
        bool members = commit_publish(commit);
        wconf_stream_wake(wconf);
        if (members)
            wconf_announce(wconf);
        wconf_followers_wait(wconf, commit->serial, copied_cb, commit);
        return;
    } else {
        commit_failed(commit, result, error);
    }
    g_hash_table_remove(wconf->pending_ids, commit->id);
    commit_free(commit);
}

/* --- checking --- */

static bool version_conflict(const struct config *head, const struct change *change, guint64 now,
                             GError **error)
{
    g_autofree char *subject = invariants_subject(
        change->kind, change->key, config_get(head, change->kind, change->key, NULL));
    if (now && change->version)
        fettle_set_error(error, VERSION_CONFLICT,
                         "%s: was read at version %" G_GUINT64_FORMAT
                         ", it is at %" G_GUINT64_FORMAT " now",
                         subject, change->version, now);
    else if (now)
        fettle_set_error(error, VERSION_CONFLICT,
                         "%s: exists already (version %" G_GUINT64_FORMAT ")", subject, now);
    else
        fettle_set_error(error, VERSION_CONFLICT,
                         "%s: was read at version %" G_GUINT64_FORMAT ", it does not exist now",
                         subject, change->version);
    return false;
}

guint wconf_most_changes(const struct wconf *wconf)
{
    return wconf->engine->replicated ? LIMIT_COMMIT_CHANGES : LIMIT_STORE_CHANGES;
}

static bool check_versions(const struct wconf *wconf, const GPtrArray *changes, GError **error)
{
    const struct config *head = wconf->head;
    guint most = wconf_most_changes(wconf);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (changes->len == 0) {
        fettle_set_error(error, WRONG_INPUT, "changes: must have at least 1 element");
        return false;
    }
    if (changes->len > most) {
        fettle_set_error(error, LIMIT,
                         "%u changes in one transaction, which takes %u: make several",
                         changes->len, most);
        return false;
    }
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        guint64 now = 0;
        if (!object_record(change->kind)) {
            fettle_set_error(error, WRONG_INPUT, "changes[%u].kind: \"%s\" is no kind of object", i,
                             change->kind);
            return false;
        }
        if (!g_hash_table_add(seen, g_strdup_printf("%s %s", change->kind, change->key))) {
            fettle_set_error(error, WRONG_INPUT,
                             "changes[%u]: %s %s is changed twice in one transaction", i,
                             change->kind, change->key);
            return false;
        }
        config_get(head, change->kind, change->key, &now);
        if (now != change->version || (!now && change->op == CHANGE_DELETE))
            return version_conflict(head, change, now, error);
    }
    return true;
}

/* They may be tried again: each has the version that it was made for. */
static void undo_all(struct config *head, const GPtrArray *changes, const GPtrArray *before)
{
    for (guint i = before->len; i > 0; i--) {
        struct change *change = changes->pdata[i - 1];
        config_set(head, change->kind, change->key, before->pdata[i - 1]);
        change->version = 0;
        config_get(head, change->kind, change->key, &change->version);
    }
}

/* Puts the changes into the head; `before` gets what was there. */
static bool apply_all(struct config *head, GPtrArray *changes, guint64 serial, GPtrArray *before,
                      GError **error)
{
    for (guint i = 0; i < changes->len; i++) {
        struct change *change = changes->pdata[i];
        struct config_object *old = config_peek(head, change->kind, change->key);
        if (old)
            config_object_ref(old);
        change->version = serial;
        if (!config_apply(head, change, error)) {
            g_prefix_error(error, "changes[%u]: ", i);
            object_unref(old);
            return false;
        }
        g_ptr_array_add(before, old);
    }
    return true;
}

static GPtrArray *make_deltas(const struct config *head, const GPtrArray *changes,
                              const GPtrArray *before)
{
    GPtrArray *deltas = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        const struct config_object *old = before->pdata[i];
        struct config_delta *delta = g_new(struct config_delta, 1);
        *delta =
            (struct config_delta){change->kind, change->key, old ? config_object_value(old) : NULL,
                                  config_get(head, change->kind, change->key, NULL)};
        g_ptr_array_add(deltas, delta);
    }
    return deltas;
}

static bool check_changed(struct wconf *wconf, const GPtrArray *changes, const GPtrArray *before,
                          const struct owner *owner, enum invariants_author author, GError **error)
{
    g_autoptr(GPtrArray) deltas = make_deltas(wconf->head, changes, before);
    if (owner && !wconf_covered(wconf, owner, deltas, error))
        return false;
    return invariants_check(wconf->head, deltas, author, error);
}

/* --- on its way --- */

static struct commit *commit_new(struct wconf *wconf, const char *id, guint64 serial,
                                 GPtrArray *changes, json_t *answer)
{
    struct commit *commit = g_new0(struct commit, 1);
    commit->wconf = wconf;
    commit->id = g_strdup(id);
    commit->serial = serial;
    commit->changes = g_ptr_array_ref(changes);
    commit->answer = json_incref(answer);
    commit->objects = g_ptr_array_new_with_free_func(object_unref);
    commit->replies = g_ptr_array_new_with_free_func(reply_free);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        struct config_object *object = config_peek(wconf->head, change->kind, change->key);
        g_ptr_array_add(commit->objects, object ? config_object_ref(object) : NULL);
    }
    return commit;
}

static void send_commit(struct commit *commit)
{
    struct wconf *wconf = commit->wconf;
    struct engine_commit stored = {commit->id, wconf->epoch, commit->serial, commit->changes};
    commit->sent = true;
    wconf->engine->ops->commit(wconf->engine, &stored, commit_done, commit);
}

void wconf_hold_commits(struct wconf *wconf)
{
    wconf->held = true;
}

bool wconf_is_still(const struct wconf *wconf)
{
    const struct commit *first = g_queue_peek_head((GQueue *)&wconf->pending);
    return wconf->held && (!first || !first->sent);
}

/* Calls back from the loop, so the queue stays as it is meanwhile. */
void wconf_release_commits(struct wconf *wconf)
{
    wconf->held = false;
    for (GList *link = wconf->pending.head; link; link = link->next) {
        struct commit *commit = link->data;
        if (!commit->sent)
            send_commit(commit);
    }
}

void wconf_refuse_held_commits(struct wconf *wconf)
{
    struct commit *commit;
    g_autoptr(GError) answer = NULL;
    fettle_set_error(&answer, TEMPORARY, "the commit was not stored: %s", wconf->down->message);
    while ((commit = g_queue_peek_tail(&wconf->pending)) && !commit->sent) {
        g_queue_pop_tail(&wconf->pending);
        g_hash_table_remove(wconf->pending_ids, commit->id);
        commit_reply_all(commit, answer);
        commit_free(commit);
    }
}

/* Puts them into the head if they may be there. */
static bool try_all(struct wconf *wconf, GPtrArray *changes, const struct owner *owner,
                    enum invariants_author author, GPtrArray *before, GError **error)
{
    guint64 serial = config_serial(wconf->head) + 1;
    if (!check_versions(wconf, changes, error))
        return false;
    if (apply_all(wconf->head, changes, serial, before, error) &&
        check_changed(wconf, changes, before, owner, author, error))
        return true;
    undo_all(wconf->head, changes, before);
    return false;
}

bool wconf_would_commit(struct wconf *wconf, GPtrArray *changes, enum invariants_author author,
                        GError **error)
{
    g_autoptr(GPtrArray) before = g_ptr_array_new_with_free_func(object_unref);
    bool would = try_all(wconf, changes, NULL, author, before, error);
    if (would)
        undo_all(wconf->head, changes, before);
    return would;
}

/* Resources say when they were changed last. By this clock, whoever asks: jobs do, and nodes. */
static void stamp_changed(const struct wconf *wconf, GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        struct change *change = changes->pdata[i];
        if (change->op == CHANGE_PUT && resource_type_named(change->kind) >= 0)
            json_object_set_new(change->object, "updated_us",
                                json_integer(wconf->env->ops->wall_us(wconf->env)));
    }
}

bool wconf_commit(struct wconf *wconf, const char *commit_id, GPtrArray *changes_in,
                  const struct owner *owner, enum invariants_author author,
                  struct rpc_request *request, json_t *answer, GError **error)
{
    g_autoptr(GPtrArray) changes = changes_in;
    g_autoptr(GPtrArray) before = g_ptr_array_new_with_free_func(object_unref);
    guint64 serial = config_serial(wconf->head) + 1;
    stamp_changed(wconf, changes);
    if (!wconf_outlives(wconf, error) || !try_all(wconf, changes, owner, author, before, error))
        return false;
    config_set_position(wconf->head, config_history(wconf->head), serial);
    if (wconf->decisions)
        decisions_update(wconf->decisions, wconf->head, changes);
    struct commit *commit = commit_new(wconf, commit_id, serial, changes, answer);
    if (request)
        commit_add_reply(commit, request, json_incref(answer));
    g_queue_push_tail(&wconf->pending, commit);
    g_hash_table_insert(wconf->pending_ids, commit->id, commit);
    if (!wconf->held)
        send_commit(commit);
    return true;
}

void wconf_decide(struct wconf *wconf, struct decision *decision, GPtrArray *changes)
{
    if (!wconf->decisions) {
        wconf->decisions = decisions_new();
        decisions_update(wconf->decisions, wconf->head, NULL);
    }
    decisions_add(wconf->decisions, wconf->head, wconf->env, decision, changes);
}

void wconf_commit_free_all(struct wconf *wconf)
{
    struct commit *commit;
    while ((commit = g_queue_pop_head(&wconf->pending))) {
        g_autoptr(GError) error = NULL;
        fettle_set_error(&error, UNKNOWN_RESULT,
                         "the configuration daemon ends; repeat the commit with its id");
        commit_reply_all(commit, error);
        commit_free(commit);
    }
}

/* What is stored already, and whose answer may have been lost with another process. */
struct repeated {
    struct wconf *wconf;
    struct rpc_request *request;
    json_t *answer;
};

static void repeated_copied_cb(void *data)
{
    g_autofree struct repeated *repeated = data;
    json_autoptr answer = repeated->answer;
    if (repeated->wconf->down)
        rpc_fail_new(repeated->request, FETTLE_ERROR_UNKNOWN_RESULT,
                     "repeat the commit with its id: %s", repeated->wconf->down->message);
    else
        wconf_answer_after_barrier(repeated->wconf, repeated->request, g_steal_pointer(&answer));
}

static struct commit *pending_at(const struct wconf *wconf, guint64 serial)
{
    for (GList *link = wconf->pending.tail; link; link = link->prev) {
        struct commit *commit = link->data;
        if (commit->serial == serial)
            return commit;
    }
    return NULL;
}

void wconf_answer_when_stored(struct wconf *wconf, guint64 serial, struct rpc_request *request,
                              json_t *answer)
{
    struct commit *pending = pending_at(wconf, serial);
    if (pending) {
        commit_add_reply(pending, request, answer);
        return;
    }
    struct repeated *repeated = g_new(struct repeated, 1);
    *repeated = (struct repeated){wconf, request, answer};
    wconf_followers_wait(wconf, serial, repeated_copied_cb, repeated);
}

bool wconf_answer_pending(struct wconf *wconf, const char *id, struct rpc_request *request)
{
    struct commit *pending = g_hash_table_lookup(wconf->pending_ids, id);
    if (!pending)
        return false;
    commit_add_reply(pending, request, json_incref(pending->answer));
    return true;
}

char *wconf_commit_id(const struct wconf *wconf, const char *named)
{
    bool used = g_hash_table_contains(wconf->pending_ids, named) ||
                wconf->engine->ops->lookup(wconf->engine, named);
    return used ? env_uuid(wconf->env) : g_strdup(named);
}

bool wconf_answer_repeated(struct wconf *wconf, const char *id, struct rpc_request *request)
{
    if (wconf_answer_pending(wconf, id, request))
        return true;
    guint64 serial = wconf->engine->ops->lookup(wconf->engine, id);
    if (!serial)
        return false;
    struct commit_result result = {.serial = serial};
    wconf_answer_when_stored(wconf, serial, request, commit_result_to_json(&result));
    return true;
}

/* Jobs of this version name their changes; for those of the one before nothing was said of what
 * they may touch. End-to-end tests look for this line. */
static void tell_wide_commit(const struct rpc_request *request, const GPtrArray *changes)
{
    if (strcmp(request->from_role, ROLE_JOB) != 0 || named_change_exists(request->name) ||
        !changes->len)
        return;
    const struct change *first = changes->pdata[0];
    g_autofree char *fields = g_strdup_printf("JOB=%u", request->from_job);
    log_warning(fields, "job %u uses the wide commit: %u changes, the first of the kind %s",
                request->from_job, changes->len, first->kind);
}

static void add_gone(const struct config *head, const char *kind, const char *key,
                     GPtrArray *changes)
{
    if (!change_list_has(changes, kind, key))
        g_ptr_array_add(changes, config_delete(head, kind, key));
}

/* Services go with their node or back end; with the brake of a restore the rows of before it, of
 * which nobody knows how far they came (SAF-122). */
static void add_storage_of_gone(const struct config *head, const struct change *gone,
                                GPtrArray *changes)
{
    bool place = !strcmp(gone->kind, "node") || !strcmp(gone->kind, "backend");
    bool restored = !strcmp(gone->kind, "repair_brake") && restored_brake(head);
    g_autoptr(GPtrArray) services = place ? config_list(head, "storage_service") : NULL;
    g_autoptr(GPtrArray) rows = restored ? config_keys(head, "worker") : NULL;
    for (guint i = 0; services && i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (!strcmp(service->node, gone->key) || !strcmp(service->backend, gone->key))
            add_gone(head, "storage_service", service->uuid, changes);
    }
    for (guint i = 0; rows && i < rows->len; i++)
        add_gone(head, "worker", rows->pdata[i], changes);
}

/* Who deletes a node or an instance need not know of these, as jobs and older versions do not, and
 * the watcher may just have put one there. */
static void add_of_gone(const struct config *head, const struct change *gone, GPtrArray *changes)
{
    static const char *const told[] = {"fault", "stuck"};
    g_autofree char *key = fault_key(gone->kind, gone->key);
    g_autoptr(GPtrArray) services =
        strcmp(gone->kind, "node") == 0 ? config_list(head, "service") : NULL;
    for (guint i = 0; services && i < services->len; i++) {
        const struct service *service = services->pdata[i];
        if (!strcmp(service->node, gone->key))
            g_ptr_array_add(changes, config_delete(head, "service", service->uuid));
    }
    add_storage_of_gone(head, gone, changes);
    for (guint i = 0; i < G_N_ELEMENTS(told); i++)
        if (config_get(head, told[i], key, NULL) && !change_list_has(changes, told[i], key))
            g_ptr_array_add(changes, config_delete(head, told[i], key));
}

static bool serves(const struct backend *backend, const struct storage_service *service)
{
    return !strcmp(service->backend, backend->uuid) &&
           g_ptr_array_find_with_equal_func(backend->nodes, service->node, g_str_equal, NULL);
}

/* A node that leaves its back end takes its service there along, as nobody would beat for that any
 * more. One with work stays, and the rules say so; and so does the last one: without any, the place
 * counts as one that nobody has seen, and is marked where it is not mounted. */
static void add_of_left(const struct config *head, const struct change *put, GPtrArray *changes)
{
    record_autoptr(backend) after = backend_parse(put->object, RECORD_LAX, NULL);
    g_autoptr(GPtrArray) services = config_list(head, "storage_service");
    bool seen = false;
    for (guint i = 0; after && i < services->len && !seen; i++)
        seen = serves(after, services->pdata[i]);
    for (guint i = 0; seen && i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (!strcmp(service->backend, after->uuid) && !serves(after, service) &&
            invariants_no_work(head, service, NULL))
            add_gone(head, "storage_service", service->uuid, changes);
    }
}

static void add_all_of_gone(const struct config *head, GPtrArray *changes)
{
    for (guint i = 0, asked = changes->len; i < asked; i++) {
        const struct change *change = changes->pdata[i];
        if (change->op == CHANGE_DELETE)
            add_of_gone(head, change, changes);
        else if (!strcmp(change->kind, "backend"))
            add_of_left(head, change, changes);
    }
}

void wconf_handle_commit(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(commit_args) args = rpc_request_args(request, &commit_args_record, &error);
    if (!args || !wconf_check_owner(wconf, request, args->owner, &error)) {
        rpc_fail(request, error);
        return;
    }
    if (wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    if (!wconf_admit_owner(wconf, request, args->owner, &error) ||
        !wconf_may_write(wconf, request, args->changes, &error) ||
        !wconf_may_make(wconf, args->changes, &error)) {
        rpc_fail(request, error);
        return;
    }
    if (named_change_exists(request->name) &&
        !named_change_check(request->name, wconf->head, args->changes, &error)) {
        rpc_fail(request, error);
        return;
    }
    tell_wide_commit(request, args->changes);
    add_all_of_gone(wconf->head, args->changes);
    if (!wconf_commit(wconf, args->commit_id, g_ptr_array_ref(args->changes), args->owner,
                      AUTHOR_COMMIT, request, NULL, &error))
        rpc_fail(request, error);
}

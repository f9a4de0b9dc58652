/*
 * write_config: the configuration from a document. The plan is made first, by one call, and shown
 * to a person; a second call with the digest of that plan carries it out, if it is still the same.
 * Who calls holds cluster/config, nobody else holds or awaits a lock, and no job is under way: then
 * nobody is in the middle of what is being replaced.
 */
#include <string.h>

#include "core/import/ganeti.h"
#include "core/import/import.h"
#include "core/wconfd/wconf_private.h"

#define CONFIG_LOCK "cluster/config"

static bool is_final(const char *status)
{
    return !strcmp(status, "success") || !strcmp(status, "error") || !strcmp(status, "canceled");
}

static bool no_job_runs(const struct config *config, GError **error)
{
    g_autoptr(GPtrArray) jobs = config_list(config, "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        if (!job->started || is_final(job->status))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "job %" G_GUINT64_FORMAT
                         " is under way; nothing is imported while jobs run. Wait for its end "
                         "(fettle job watch %" G_GUINT64_FORMAT ") and try again",
                         job->id, job->id);
        return false;
    }
    return true;
}

static bool no_other_locks(const struct locks *locks, const struct owner *owner, GError **error)
{
    g_autoptr(GPtrArray) states = locks_list(locks, NULL);
    for (guint i = 0; i < states->len; i++) {
        const struct lock_state *state = states->pdata[i];
        if (owner_equal(state->owner, owner))
            continue;
        g_autofree char *who = locks_owner_name(state->owner);
        fettle_set_error(error, WRONG_STATE,
                         "%s %s the lock %s; nothing is imported while others have locks. Try "
                         "again when it is free (fettle lock list)",
                         who, state->waiting ? "waits for" : "holds", state->name);
        return false;
    }
    return true;
}

static bool may_write(const struct wconf *wconf, const struct owner *owner, GError **error)
{
    if (locks_held(wconf->locks, owner, CONFIG_LOCK) != LOCK_EXCLUSIVE) {
        g_autofree char *who = locks_owner_name(owner);
        fettle_set_error(error, LOCK_MISSING, "%s does not hold the lock %s exclusively", who,
                         CONFIG_LOCK);
        return false;
    }
    return no_job_runs(wconf->head, error) && no_other_locks(wconf->locks, owner, error);
}

/* Of which one is the record of the import. */
static void check_size(const struct wconf *wconf, struct import *import)
{
    guint most = wconf_most_changes(wconf) - 1;
    if (import->changes->len <= most || import->problems->len)
        return;
    if (wconf->engine->replicated && import->changes->len < LIMIT_STORE_CHANGES)
        import_problem(import,
                       "%u objects would change, and with the engine etcd one import changes %u "
                       "at most, because a transaction of etcd takes no more. Import with the "
                       "engine sqlite, which takes %d, and change it after that: fettle cluster "
                       "engine sqlite, fettle cluster engine etcd",
                       import->changes->len, most, LIMIT_STORE_CHANGES - 1);
    else
        import_problem(import,
                       "%u objects would change, and one import changes %u at most. Import in "
                       "parts: take some of what is new out of the file, import it, put that back, "
                       "and import it again",
                       import->changes->len, most);
}

static struct import *make_plan(const struct wconf *wconf, const struct write_config_args *args,
                                GError **error)
{
    g_autoptr(import_t) import = import_new();
    bool ok = args->source == DOCUMENT_GANETI
                  ? import_ganeti(import, wconf->head, args->document, error)
                  : import_document(import, wconf->head, args->document, error);
    if (ok)
        check_size(wconf, import);
    return ok ? g_steal_pointer(&import) : NULL;
}

static json_t *plan_json(const struct import *import, guint64 serial, const char *digest)
{
    const struct write_config_result result = {.serial = serial,
                                               .plan = (char *)digest,
                                               .changes = import->lines,
                                               .notes = import->notes,
                                               .problems = import->problems};
    return write_config_result_to_json(&result);
}

/* --- carrying it out --- */

/* The same call again, whose answer was lost (SAF-04). */
static bool answer_repeated(struct wconf *wconf, const struct write_config_args *args,
                            struct rpc_request *request)
{
    if (g_hash_table_contains(wconf->pending_ids, args->commit_id)) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, "the same import is under way; ask again");
        return true;
    }
    guint64 serial = wconf->engine->ops->lookup(wconf->engine, args->commit_id);
    if (!serial)
        return false;
    g_autoptr(import_t) nothing = import_new();
    wconf_answer_when_stored(wconf, serial, request, plan_json(nothing, serial, args->plan));
    return true;
}

/* Who asks later why the configuration is as it is finds the import. */
static void add_record(struct wconf *wconf, struct import *import)
{
    const struct cluster *cluster = config_cluster(wconf->head);
    struct decision *decision =
        decision_about("cluster", cluster->uuid, cluster->name, "person", VERDICT_ACT, "Imported");
    decision_set(&decision->summary,
                 "A person wrote a document into the configuration; changes: %u.",
                 import->lines->len);
    for (guint i = 0; i < MIN(import->lines->len, LIMIT_REPAIR_EVIDENCE); i++)
        g_ptr_array_add(decision->evidence, g_strdup(import->lines->pdata[i]));
    wconf_decide(wconf, decision, import->changes);
}

/* True: the commit is on its way and answers. */
static bool carry_out(struct wconf *wconf, const struct write_config_args *args,
                      struct import *import, const char *digest, struct rpc_request *request,
                      GError **error)
{
    if (strcmp(digest, args->plan) != 0) {
        fettle_set_error(error, VERSION_CONFLICT,
                         "the configuration has changed since the plan was made; nothing was "
                         "imported, look at the new plan");
        return false;
    }
    if (import->problems->len) {
        fettle_set_error(error, WRONG_INPUT, "%s", (const char *)import->problems->pdata[0]);
        return false;
    }
    if (!g_uuid_string_is_valid(args->commit_id)) {
        fettle_set_error(error, WRONG_INPUT, "commit_id: \"%s\" is no UUID", args->commit_id);
        return false;
    }
    if (!may_write(wconf, args->owner, error))
        return false;
    if (!import->changes->len) {
        wconf_answer_after_barrier(wconf, request,
                                   plan_json(import, config_serial(wconf->head), digest));
        return true;
    }
    add_record(wconf, import);
    json_autoptr answer = plan_json(import, config_serial(wconf->head) + 1, digest);
    return wconf_commit(wconf, args->commit_id, g_ptr_array_ref(import->changes), NULL,
                        AUTHOR_COMMIT, request, answer, error);
}

void wconf_handle_write_config(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(write_config_args) args =
        rpc_request_args(request, &write_config_args_record, &error);
    if (!args || !wconf_admit_owner(wconf, request, args->owner, &error)) {
        rpc_fail(request, error);
        return;
    }
    if (*args->plan && answer_repeated(wconf, args, request))
        return;
    g_autoptr(import_t) import = make_plan(wconf, args, &error);
    g_autofree char *digest = import ? import_digest(import) : NULL;
    if (import && !*args->plan)
        wconf_answer_after_barrier(wconf, request,
                                   plan_json(import, config_serial(wconf->head), digest));
    else if (!import || !carry_out(wconf, args, import, digest, request, &error))
        rpc_fail(request, error);
}

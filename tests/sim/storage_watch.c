/*
 * What was asked for, who was heard, and what must hold of acts on data at the moment when they
 * are done. See storage_sim.h.
 */
#include "storage_sim.h"

#include <string.h>

#include "core/config/resource.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"

#define GAP_MS 3000
#define ON_ITS_WAY_MS 4000 /* an answer, and the child that is started by it */

/* A call that is being answered: stands between wconfd and whoever asked. */
struct watched {
    struct storage_world *storage;
    struct ms_host *host;
    json_t *args;               /* of a beat; NULL */
    struct storage_host *asker; /* whose member asks what there is; NULL */
    gint64 at_ms;               /* boot clock of the host */
    void (*answer)(struct rpc_request *request, json_t *result, const GError *error);
    void *carrier;
};

/* Of a row that is gone by now it is to look at its copy. */
static void count_refused(struct storage_world *storage, const json_t *result)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(result, "items"), i, item) {
        const char *answer = json_string_value(json_object_get(item, "answer"));
        storage->counts->refused += g_strcmp0(answer, "passed") != 0;
    }
}

/* --- who is heard --- */

struct heard {
    gint64 at_ms;
    guint64 generation;
};

/* Whoever was answered was heard when it asked. */
static void note_beats(const struct watched *watched)
{
    GHashTable *beats = watched->storage->ears[watched->host->index].beats;
    size_t i;
    json_t *beat;
    json_array_foreach(json_object_get(watched->args, "services"), i, beat) {
        const char *uuid = json_string_value(json_object_get(beat, "service"));
        const struct storage_service *service =
            config_get(watched->storage->truth, "storage_service", uuid, NULL);
        const struct heard heard = {
            watched->at_ms, (guint64)json_integer_value(json_object_get(beat, "generation"))};
        if (service && service->generation == heard.generation)
            g_hash_table_replace(beats, g_strdup(uuid), g_memdup2(&heard, sizeof heard));
    }
}

void storage_step(struct ms *ms)
{
    struct storage_world *storage = storage_of(ms);
    for (guint i = 0; i < ms->hosts_count; i++) {
        const struct ms_host *host = &ms->hosts[i];
        struct storage_ear *ear = &storage->ears[i];
        bool stands = host->paused || host->frozen;
        if (ear->epoch != host->epoch)
            ear->since_ms = ms_boot_ms(host);
        ear->epoch = host->epoch;
        if (stands && !ear->stood_since_ms)
            ear->stood_since_ms = ms_boot_ms(host);
        if (stands || !ear->stood_since_ms)
            continue;
        if (ms_boot_ms(host) - ear->stood_since_ms > GAP_MS + 1000)
            ear->since_ms = ms_boot_ms(host);
        ear->stood_since_ms = 0;
    }
}

/* SAF-55. */
void storage_given(struct ms_host *host, const GPtrArray *changes)
{
    struct storage_world *storage = storage_of(host->ms);
    const struct storage_ear *ear = &storage->ears[host->index];
    storage_step(host->ms); /* it may have gone on just now */
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        const struct storage_service *old =
            strcmp(change->kind, "storage_service")
                ? NULL
                : config_get(storage->truth, "storage_service", change->key, NULL);
        const char *state =
            old ? json_string_value(json_object_get(change->object, "state")) : NULL;
        if (!state || strcmp(state, "down") != 0 || old->state == STORAGE_DOWN)
            continue;
        /* That of a registration before counts for nothing, even if it came while the next one was
         * on its way. */
        const struct heard *beat = g_hash_table_lookup(ear->beats, change->key);
        bool counts = beat && beat->generation == old->generation;
        gint64 heard = MAX(counts ? beat->at_ms : 0, ear->since_ms);
        if (ms_boot_ms(host) - heard < MS_DOWN_S * 1000)
            ms_problem(host->ms, "%s is said to be down after %" G_GINT64_FORMAT " ms", old->host,
                       ms_boot_ms(host) - heard);
    }
}

/* --- calls --- */

static void answered(struct rpc_request *request, json_t *result, const GError *error)
{
    g_autofree struct watched *watched = request->carrier;
    request->carrier = watched->carrier;
    request->answer = watched->answer;
    watched->storage->counts->refused +=
        error && !watched->args && !watched->asker && fettle_error_is(error, REFUSED);
    if (!error && watched->asker)
        watched->asker->asked_ms = ms_now(watched->storage->ms);
    else if (!error && watched->args)
        note_beats(watched);
    else if (!error)
        count_refused(watched->storage, result);
    json_decref(watched->args);
    if (error && !watched->asker && fettle_error_is(error, REFUSED))
        storage_tell(watched->storage, "%s is refused: %s", request->name, error->message);
    request->answer(request, result, error);
}

static bool is_under_claim(const char *method)
{
    static const char *const all[] = {"step_work", "end_work", "give_back", "claim_work", NULL};
    return g_strv_contains(all, method);
}

/* Whose member wants to know what there is now, and waits for nothing. */
static struct storage_host *asker_of(struct storage_world *storage,
                                     const struct rpc_request *request)
{
    if (strcmp(request->name, "wait_changes") != 0 ||
        strcmp(request->from_role, ROLE_VOLUMED) != 0 ||
        json_integer_value(json_object_get(request->args, "wait_ms")) > 0)
        return NULL;
    for (guint i = 0; i < storage->ms->hosts_count; i++)
        if (!strcmp(storage->hosts[i].host->uuid, request->from_node))
            return &storage->hosts[i];
    return NULL;
}

void storage_asked(struct ms_host *host, struct rpc_request *request)
{
    struct storage_world *storage = storage_of(host->ms);
    bool beats = !strcmp(request->name, "beat");
    struct storage_host *asker = asker_of(storage, request);
    const char *id = json_string_value(json_object_get(request->args, "commit_id"));
    if (id && !strcmp(request->name, "reset_state"))
        g_hash_table_add(storage->reset_ids, g_strdup(id));
    if (!beats && !asker && !is_under_claim(request->name))
        return;
    if (id)
        g_hash_table_replace(storage->asked, g_strdup(id), json_incref(request->args));
    struct watched *watched = g_new(struct watched, 1);
    *watched = (struct watched){.storage = storage,
                                .host = host,
                                .args = beats ? json_incref(request->args) : NULL,
                                .asker = asker,
                                .at_ms = ms_boot_ms(host),
                                .answer = request->answer,
                                .carrier = request->carrier};
    request->answer = answered;
    request->carrier = watched;
}

/* --- data --- */

/* SAF-52: nobody else ever works under that claim. */
void storage_makes(struct storage_world *storage, const struct env *env, const char *name)
{
    const struct env *before = g_hash_table_lookup(storage->makers, name);
    if (storage_opened(storage, name))
        ms_problem(storage->ms, "somebody makes %s, which a guest has open", name);
    if (before && before != env)
        ms_problem(storage->ms, "two processes make %s", name);
    storage_tell(storage, "data is made");
    g_hash_table_replace(storage->makers, g_strdup(name), (void *)env);
}

const struct worker *storage_row_of(const struct config *config, const struct resource *resource)
{
    g_autofree char *key = config_work_key(resource->type, resource->uuid);
    const struct worker *own = config_get(config, "worker", key, NULL);
    g_autoptr(GPtrArray) held = config_held_work(config, resource->type, resource->uuid);
    for (guint i = 0; !own && i < held->len; i++) {
        const struct worker *row = held->pdata[i];
        if (row->partner_type == resource->type && !strcmp(row->partner_id, resource->uuid))
            own = row;
    }
    return own;
}

/* Of a name that a record names, or that is being made under its claim. NULL: it is nobody's. */
static const char *whose(const struct config *config, const char *uuid, guint64 claim,
                         const char *name)
{
    for (guint type = 0; resource_type_words.words[type]; type++) {
        const struct resource resource = resource_of(config, type, uuid);
        const struct worker *row = storage_row_of(config, &resource);
        if (!strcmp(resource.data, name))
            return "the record names";
        if (row && row->claim == claim)
            return "is being made";
    }
    return NULL;
}

const struct config *storage_lost_since(const struct storage_world *storage, gint64 asked_ms)
{
    for (guint i = 0; i < storage->losses->len; i++) {
        const struct storage_loss *loss = storage->losses->pdata[i];
        if (loss->at_ms >= asked_ms)
            return loss->truth;
    }
    return NULL;
}

void storage_makes_beside(struct storage_world *storage, const struct env *env, const char *name)
{
    storage_makes(storage, env, name);
    g_hash_table_add(storage->beside, g_strdup(name));
}

/* Of what a guest has a backup is made of a copy beside the volume, which no record ever names, by
 * who removes it then. */
static bool is_own(const struct storage_world *storage, const struct env *env, const char *name)
{
    return g_hash_table_contains(storage->beside, name) &&
           g_hash_table_lookup(storage->makers, name) == env;
}

void storage_moment(struct storage_world *storage, guint64 claim, guint64 content)
{
    g_hash_table_replace(storage->moments, g_memdup2(&claim, sizeof claim),
                         g_memdup2(&content, sizeof content));
}

/* SAF-53, SAF-54: the master was asked just before, and had nothing that names it; what it had may
 * be lost by now. */
void storage_removes(struct storage_world *storage, const struct storage_host *host,
                     const struct env *env, gint64 asked_ms, gint64 begun_ms, const char *name)
{
    g_autofree char *uuid = NULL;
    guint64 claim = 0;
    if (!volume_data_parse(name, &uuid, &claim) || !fake_volumes_has(storage->volumes, name))
        return;
    storage_tell(storage, "data is removed");
    guint index = host->host->index + 1;
    bool own = is_own(storage, env, name);
    if (!own && begun_ms - asked_ms > ON_ITS_WAY_MS && host->resumed_ms < asked_ms)
        ms_problem(storage->ms, "host %u removes %s, and has not asked", index, name);
    const char *is = own ? NULL : whose(storage->truth, uuid, claim, name);
    bool of_lost = !ms_commit_at(storage->ms, claim);
    const struct config *lost = storage_lost_since(storage, asked_ms);
    if (!lost && !own && storage_is_held(storage))
        ms_problem(storage->ms, "host %u removes %s before anybody says continue", index, name);
    const struct storage_guest *guest = storage_opened(storage, name);
    if (!lost && guest && !guest->stray)
        ms_problem(storage->ms, "host %u removes %s, which a guest has open", index, name);
    if (own || (!is && !of_lost))
        return;
    if (!lost || whose(lost, uuid, claim, name))
        ms_problem(storage->ms, "host %u removes %s, which %s", index, name,
                   is ? is : "only what is lost knows");
    storage->counts->lost_late++;
    g_hash_table_add(storage->forsaken, g_strdup(name));
}

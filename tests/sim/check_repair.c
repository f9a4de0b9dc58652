/* What auto-repair promises (requirements-auto-repair.md), judged from commits; see sim.h. */
#include "sim_private.h"

#include <string.h>

#include "core/repair/tags.h"
#include "proto/repair_tag.h"

/* An instance that has been healthy on record for so long gets no repair job: the watcher's copy is
 * never older. */
#define HEALTHY_MS 5000
#define RESULT_LATE_S 60 /* between writing a result and its commit: the master may be away */

struct request {
    char *repair, *step;
    bool first;
};

/* "ID/2-failover/1"; false if the job serves no repair. */
static bool parse_request(const char *request_id, struct request *ret)
{
    g_auto(GStrv) parts = g_strsplit(request_id, "/", -1);
    guint count = g_strv_length(parts);
    const char *dash = count >= 3 ? strchr(parts[count - 2], '-') : NULL;
    if (dash == NULL)
        return false;
    const char *middle = g_strrstr(request_id, parts[count - 2]);
    *ret = (struct request){
        g_strndup(request_id, (gsize)(middle - request_id) - 1), g_strdup(dash + 1),
        g_str_has_prefix(parts[count - 2], "1-") && strcmp(parts[count - 1], "1") == 0};
    return true;
}

static void request_clear(struct request *request)
{
    g_free(request->repair);
    g_free(request->step);
}

static const struct instance *job_instance(const struct sim *sim, const struct job *job)
{
    const json_t *input = ((const struct job_op *)job->ops->pdata[0])->input;
    const char *name = json_string_value(json_object_get(input, "instance_name"));
    return name != NULL ? config_find(sim->mirror, "instance", name, NULL) : NULL;
}

/* Type of the pending tag with that id; -1 if there is none. */
static int pending_type(const struct sim *sim, const char *instance, const char *id)
{
    int type = -1;
    g_autoptr(GPtrArray) tags = config_tags(sim->mirror, TAG_INSTANCE, instance);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_PENDING && strcmp(tag.id, id) == 0)
            type = (int)tag.type;
        repair_tag_clear(&tag);
    }
    return type;
}

/* What each opcode needs at least (ARP-07 to ARP-13); one that serves no repair is above all. */
static int type_of_opcode(const char *op)
{
    static const struct {
        const char *op;
        enum repair_type type;
    } types[] = {{"OP_INSTANCE_REPLACE_DISKS", REPAIR_FIX_STORAGE},
                 {"OP_INSTANCE_MIGRATE", REPAIR_MIGRATE},
                 {"OP_INSTANCE_FAILOVER", REPAIR_FAILOVER},
                 {"OP_INSTANCE_RECREATE_DISKS", REPAIR_REINSTALL},
                 {"OP_INSTANCE_REINSTALL", REPAIR_REINSTALL},
                 {"OP_INSTANCE_STARTUP", REPAIR_REINSTALL}};
    for (guint i = 0; i < G_N_ELEMENTS(types); i++)
        if (strcmp(types[i].op, op) == 0)
            return (int)types[i].type;
    return REPAIR_REINSTALL + 1;
}

/* ARP-13 */
static void check_types(struct sim *sim, const struct job *job, const struct instance *instance,
                        const char *repair)
{
    int allowed = pending_type(sim, instance->uuid, repair);
    for (guint i = 0; i < job->ops->len; i++) {
        const json_t *input = ((const struct job_op *)job->ops->pdata[i])->input;
        const char *op = json_string_value(json_object_get(input, "OP_ID"));
        if (type_of_opcode(op) > allowed)
            sim_find(sim, "%s of %s is above the pending tag of repair %s", op, instance->name,
                     repair);
    }
}

/* By a clock that nobody sets; a job is received a moment before it is seen on record. */
static bool within_the_hour(struct sim *sim, guint64 id)
{
    const gint64 *seen = g_hash_table_lookup(sim->seen, &id);
    gint64 now = sim_now_ms(sim);
    if (seen == NULL)
        g_hash_table_insert(sim->seen, g_memdup2(&id, sizeof id), g_memdup2(&now, sizeof now));
    return seen == NULL || now - *seen < 3599 * 1000;
}

/* A watcher that begins anew after that takes what is dated before it for old (SAF-93). */
static bool set_forward_lately(const struct sim *sim)
{
    return sim->forward_ms != 0 && sim_now_ms(sim) - sim->forward_ms < 3600 * 1000;
}

/* Limits of the cluster: repairs under way, and begun within an hour. */
static void check_budget(struct sim *sim, bool first)
{
    const struct cluster *cluster = config_get(sim->mirror, "cluster", SIM_CLUSTER, NULL);
    guint64 running = 1, begun = first ? 1 : 0;
    g_autoptr(GPtrArray) jobs = config_list(sim->mirror, "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        struct request request;
        if (!parse_request(job->request_id, &request))
            continue;
        running += sim_is_final(job->status) ? 0 : 1;
        begun += within_the_hour(sim, job->id) && request.first;
        request_clear(&request);
    }
    if (running > cluster->repair_max_running)
        sim_find(sim, "%" G_GUINT64_FORMAT " repairs are under way at once", running);
    if (first && !set_forward_lately(sim) && begun > cluster->repair_max_per_hour)
        sim_find(sim, "%" G_GUINT64_FORMAT " repairs have begun within an hour", begun);
}

/* Down, on a node that can start nothing, or could a moment ago (SAF-92). Of what runs that is no
 * matter. */
static bool is_barred(struct sim *sim, const struct instance *instance)
{
    const struct sim_node *node = sim_node(sim, sim_node_name(sim, instance->primary_node));
    guint64 generation;
    bool lately =
        node->written_since_ms > 0 && sim_now_ms(sim) - node->written_since_ms < HEALTHY_MS;
    return (node->read_only || lately) &&
           fake_host_state(node->host, instance->uuid, &generation) == GUEST_ABSENT;
}

static void check_repair_job(struct sim *sim, const struct job *job, const struct request *request)
{
    const struct instance *instance = job_instance(sim, job);
    const struct cluster *cluster = config_get(sim->mirror, "cluster", SIM_CLUSTER, NULL);
    if (instance == NULL)
        return;
    check_types(sim, job, instance, request->repair);
    const gint64 *since = g_hash_table_lookup(sim->healthy, instance->uuid);
    const struct node *primary = config_get(sim->mirror, "node", instance->primary_node, NULL);
    bool stood = primary != NULL &&
                 fake_host_stood_still(sim_host(sim, primary->name), instance->uuid, HEALTHY_MS);
    bool barred = primary != NULL && is_barred(sim, instance);
    if (since != NULL && sim_now_ms(sim) - *since > HEALTHY_MS && !stood && !barred &&
        !g_hash_table_contains(sim->lost, instance->replica))
        sim_find(sim, "%s is healthy and gets repair job %" G_GUINT64_FORMAT, instance->name,
                 job->id);
    if (config_get(sim->mirror, "repair_brake", "cluster", NULL) != NULL)
        sim_find(sim, "repair job %" G_GUINT64_FORMAT " under the storm brake", job->id);
    if (cluster->repair_shadow)
        sim_find(sim, "repair job %" G_GUINT64_FORMAT " in shadow mode", job->id);
    within_the_hour(sim, job->id); /* notes it */
    check_budget(sim, request->first);
}

static void check_new_job(struct sim *sim, const struct change *change)
{
    if (change->op != CHANGE_PUT || config_get(sim->mirror, "job", change->key, NULL) != NULL)
        return;
    record_autoptr(job) job = job_parse(change->object, RECORD_KEEP, NULL);
    struct request request;
    if (job == NULL || !parse_request(job->request_id, &request))
        return;
    check_repair_job(sim, job, &request);
    request_clear(&request);
}

/* --- tags --- */

/* A person or a tool is at it: a job with that opcode is under way. */
static bool somebody_does(const struct sim *sim, const char *wanted)
{
    g_autoptr(GPtrArray) jobs = config_list(sim->mirror, "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        for (guint k = 0; k < job->ops->len && !sim_is_final(job->status); k++) {
            const json_t *input = ((const struct job_op *)job->ops->pdata[k])->input;
            const char *op = json_string_value(json_object_get(input, "OP_ID"));
            if (strcmp(op, wanted) == 0)
                return true;
        }
    }
    return false;
}

static bool somebody_removes(const struct sim *sim)
{
    return somebody_does(sim, "OP_TAGS_DEL") || somebody_does(sim, "OP_INSTANCE_REMOVE") ||
           somebody_does(sim, "OP_INSTANCE_SETTLE"); /* of a removal that was cut off */
}

/* Whether this commit adds a tag of that repair: another copy, or its result (ARP-31). */
static bool adds_copy(const GPtrArray *changes, guint first, const struct change *removal,
                      const struct tag *old, const char *id)
{
    bool found = false;
    for (guint i = first; i < changes->len && !found; i++) {
        const struct change *change = changes->pdata[i];
        if (change->version != removal->version)
            break;
        if (change->op != CHANGE_PUT || strcmp(change->kind, "tag") != 0)
            continue;
        record_autoptr(tag) tag = tag_parse(change->object, RECORD_KEEP, NULL);
        struct repair_tag parsed;
        repair_tag_parse(tag->tag, &parsed);
        found = parsed.id != NULL && strcmp(parsed.id, id) == 0 &&
                strcmp(tag->object, old->object) == 0;
        repair_tag_clear(&parsed);
    }
    return found;
}

/* In the same transaction: nothing is left of it, so its tags go as well. */
static bool its_object_goes(const GPtrArray *changes, const struct change *removal,
                            const struct tag *tag)
{
    bool goes = false;
    for (guint i = 0; i < changes->len && !goes; i++) {
        const struct change *change = changes->pdata[i];
        goes = change->version == removal->version && change->op == CHANGE_DELETE &&
               strcmp(change->kind, "instance") == 0 && strcmp(change->key, tag->object) == 0;
    }
    return goes;
}

static void check_removed_tag(struct sim *sim, const GPtrArray *changes, guint first,
                              const struct change *change)
{
    const struct tag *tag = config_get(sim->mirror, "tag", change->key, NULL);
    struct repair_tag parsed;
    if (tag == NULL || change->op != CHANGE_DELETE)
        return;
    repair_tag_parse(tag->tag, &parsed);
    bool failure = parsed.kind == REPAIR_TAG_RESULT && parsed.outcome == REPAIR_FAILURE;
    bool enabling = parsed.kind == REPAIR_TAG_ENABLE;
    if ((failure || enabling) && !somebody_removes(sim) && !its_object_goes(changes, change, tag))
        sim_find(sim, "%s was removed, and not by a person (ARP-50, ARP-60)", tag->tag);
    if (parsed.kind == REPAIR_TAG_PENDING && !adds_copy(changes, first, change, tag, parsed.id) &&
        pending_type(sim, tag->object, parsed.id) < 0 && !somebody_removes(sim))
        sim_find(sim, "%s was removed without a result (ARP-31)", tag->tag);
    repair_tag_clear(&parsed);
}

/* What the watcher writes of a repair's end is readable, of now, with the jobs that its pending tag
 * had in the same commit's past (ARP-37 to ARP-39); a person or a tool may write anything. */
static void check_result(struct sim *sim, const struct tag *tag)
{
    static const char prefix[] = "ganeti:watcher:autorepair:result:";
    struct repair_tag parsed;
    if (!g_str_has_prefix(tag->tag, prefix) || somebody_does(sim, "OP_TAGS_SET"))
        return;
    g_auto(GStrv) words = g_strsplit(tag->tag + strlen(prefix), ":", -1);
    static const char *const outcomes[] = {"success", "failure", "enoperm", NULL};
    if (g_strv_length(words) != 5 || !g_strv_contains(outcomes, words[3])) {
        sim_find(sim, "%s has no known result (ARP-38)", tag->tag);
        return;
    }
    gint64 now = sim->operator->ops->wall_us(sim->operator) / G_USEC_PER_SEC;
    gint64 at = g_ascii_strtoll(words[2], NULL, 10);
    if (at > now || at + RESULT_LATE_S < now)
        sim_find(sim, "%s is not of now, %" G_GINT64_FORMAT " (ARP-37)", tag->tag, now);
    g_autoptr(GPtrArray) tags = config_tags(sim->mirror, TAG_INSTANCE, tag->object);
    for (guint i = 0; i < tags->len; i++) {
        repair_tag_parse(tags->pdata[i], &parsed);
        bool pending = parsed.kind == REPAIR_TAG_PENDING && strcmp(parsed.id, words[1]) == 0;
        g_autofree char *jobs = pending ? g_strjoinv("+", parsed.jobs) : NULL;
        if (pending && !g_str_has_prefix(words[4], jobs))
            sim_find(sim, "%s lacks jobs of its pending tag, %s (ARP-39)", tag->tag, jobs);
        repair_tag_clear(&parsed);
    }
}

static void check_added_tag(struct sim *sim, const struct change *change)
{
    if (change->op != CHANGE_PUT || config_get(sim->mirror, "tag", change->key, NULL) != NULL)
        return;
    record_autoptr(tag) tag = tag_parse(change->object, RECORD_KEEP, NULL);
    if (tag != NULL && tag->kind == TAG_INSTANCE)
        check_result(sim, tag);
}

void sim_check_repair(struct sim *sim, const GPtrArray *changes, guint first,
                      const struct change *change)
{
    if (strcmp(change->kind, "job") == 0)
        check_new_job(sim, change);
    else if (strcmp(change->kind, "tag") == 0) {
        check_removed_tag(sim, changes, first, change);
        check_added_tag(sim, change);
    }
}

/* --- health on record (ARP-41) --- */

static bool node_is_well(const struct sim *sim, const char *uuid)
{
    const struct node *node = config_get(sim->mirror, "node", uuid, NULL);
    return node != NULL && !node->offline && !node->drained;
}

static bool disks_work(struct sim *sim, const char *uuid)
{
    return !sim_disks_fail(sim, sim_node_name(sim, uuid));
}

/* What a guest was answered by its disks, and an end that left its images in doubt, outlive the
 * failure itself (SAF-25). */
static bool disks_are_well(struct sim *sim, const struct instance *instance)
{
    const struct fake_host *host = sim_host(sim, sim_node_name(sim, instance->primary_node));
    bool whole = *instance->holder != '\0' || instance->clean || instance->sound == SOUND_YES;
    return disks_work(sim, instance->primary_node) && whole &&
           fake_host_io_errors(host, instance->uuid) == 0 &&
           (*instance->secondary_node == '\0' || disks_work(sim, instance->secondary_node));
}

/* A failover that died has told its old node nothing: that has images, and none of a replica. */
static bool has_replica(struct sim *sim, const struct replica *replica)
{
    return fake_host_has_image(sim_host(sim, sim_node_name(sim, replica->node)), replica->instance,
                               replica->uuid);
}

static bool is_healthy(struct sim *sim, const struct instance *instance)
{
    const struct replica *replica = config_get(sim->mirror, "replica", instance->replica, NULL);
    if (instance->disk_template == TEMPLATE_MIRROR && !disks_are_well(sim, instance))
        return false;
    return node_is_well(sim, instance->primary_node) &&
           (instance->disk_template != TEMPLATE_MIRROR ||
            (replica != NULL && replica->state == REPLICA_IN_SYNC &&
             node_is_well(sim, replica->node) && has_replica(sim, replica)));
}

static void note_health(struct sim *sim)
{
    g_autoptr(GPtrArray) instances = config_list(sim->mirror, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (!is_healthy(sim, instance)) {
            g_hash_table_remove(sim->healthy, instance->uuid);
        } else if (!g_hash_table_contains(sim->healthy, instance->uuid)) {
            gint64 *since = g_new(gint64, 1);
            *since = sim_now_ms(sim);
            g_hash_table_insert(sim->healthy, g_strdup(instance->uuid), since);
        }
    }
}

/* One copy of each pending tag, except of what a person or a tool has set (ARP-28, ARP-31). */
static void check_copies(struct sim *sim, const struct tag *changed)
{
    g_autoptr(GHashTable) ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) tags = config_tags(sim->mirror, changed->kind, changed->object);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_PENDING && strlen(tag.id) == 36 &&
            !g_hash_table_add(ids, g_strdup(tag.id)))
            sim_find(sim, "two pending tags of repair %s", tag.id);
        repair_tag_clear(&tag);
    }
}

void sim_check_tags(struct sim *sim, const GPtrArray *changes, guint first, guint end)
{
    bool health = false;
    for (guint i = first; i < end; i++) {
        const struct change *change = changes->pdata[i];
        health |= strcmp(change->kind, "instance") == 0 || strcmp(change->kind, "replica") == 0 ||
                  strcmp(change->kind, "node") == 0;
        const struct tag *tag = strcmp(change->kind, "tag") == 0
                                    ? config_get(sim->mirror, "tag", change->key, NULL)
                                    : NULL;
        if (tag != NULL)
            check_copies(sim, tag);
    }
    if (health)
        note_health(sim);
}

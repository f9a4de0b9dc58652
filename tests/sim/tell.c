/* What commits say, as lines of the golden log: who holds what, replicas, tags of auto-repair, what
 * was decided. Times and UUIDs of repairs are left out: they say nothing to a reader. */
#include "sim_private.h"

#include <string.h>

#include "core/repair/tags.h"
#include "proto/repair_tag.h"

static void tell_instance(struct sim *sim, const struct change *change)
{
    const struct instance *before = config_get(sim->mirror, "instance", change->key, NULL);
    record_autoptr(instance) after =
        change->op == CHANGE_PUT ? instance_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (after == NULL) {
        sim_log(sim, "record: %s is gone", before != NULL ? before->name : change->key);
        return;
    }
    if (before == NULL || after->generation != before->generation)
        sim_log(sim, "record: %s generation %" G_GUINT64_FORMAT " on %s, held by %s", after->name,
                after->generation, sim_node_name(sim, after->primary_node),
                sim_node_name(sim, after->holder));
    if (before != NULL && (*before->migration == '\0') != (*after->migration == '\0'))
        sim_log(sim, "record: %s %s", after->name,
                *after->migration != '\0' ? "begins to migrate" : "migrates no more");
}

static void tell_replica(struct sim *sim, const struct change *change)
{
    const struct replica *before = config_get(sim->mirror, "replica", change->key, NULL);
    record_autoptr(replica) after =
        change->op == CHANGE_PUT ? replica_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (after == NULL && before != NULL)
        sim_log(sim, "record: replica on %s dropped", sim_node_name(sim, before->node));
    else if (after != NULL && (before == NULL || before->state != after->state))
        sim_log(sim, "record: replica on %s %s", sim_node_name(sim, after->node),
                enum_word(&replica_state_words, (int)after->state));
}

static const char *object_name(const struct sim *sim, const struct tag *tag)
{
    const struct instance *instance = config_get(sim->mirror, "instance", tag->object, NULL);
    return tag->kind != TAG_INSTANCE ? enum_word(&tag_kind_words, (int)tag->kind)
           : instance != NULL        ? instance->name
                                     : tag->object;
}

static void tell_tag(struct sim *sim, const struct change *change)
{
    const struct tag *before = config_get(sim->mirror, "tag", change->key, NULL);
    record_autoptr(tag) after =
        change->op == CHANGE_PUT ? tag_parse(change->object, RECORD_KEEP, NULL) : NULL;
    const struct tag *tag = after != NULL ? after : before;
    struct repair_tag parsed;
    if (tag == NULL || !g_str_has_prefix(tag->tag, REPAIR_TAG_PREFIX))
        return;
    repair_tag_parse(tag->tag, &parsed);
    const char *sign = after != NULL ? "+" : "-", *name = object_name(sim, tag);
    g_autofree char *jobs = parsed.jobs != NULL ? g_strjoinv("+", parsed.jobs) : NULL;
    if (parsed.kind == REPAIR_TAG_PENDING)
        sim_log(sim, "tag: %s %s pending:%s:%s", name, sign, repair_type_name(parsed.type), jobs);
    else if (parsed.kind == REPAIR_TAG_RESULT)
        sim_log(sim, "tag: %s %s result:%s:%s:%s", name, sign, repair_type_name(parsed.type),
                repair_outcome_name(parsed.outcome), jobs);
    else
        sim_log(sim, "tag: %s %s %s", name, sign, tag->tag + strlen(REPAIR_TAG_PREFIX));
    repair_tag_clear(&parsed);
}

static void tell_decision(struct sim *sim, const struct change *change)
{
    record_autoptr(decision) decision =
        change->op == CHANGE_PUT ? decision_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (decision == NULL || config_get(sim->mirror, "decision", change->key, NULL) != NULL)
        return;
    g_autoptr(GRegex) uuids = g_regex_new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", 0, 0, NULL);
    g_autofree char *summary =
        g_regex_replace_literal(uuids, decision->summary, -1, 0, "ID", 0, NULL);
    sim_log(sim, "decided: %s: %s: %s", decision->subject_name, decision->state, summary);
}

/* Jobs that nobody typed: the watcher's, and those that jobs asked for. */
static void tell_job(struct sim *sim, const struct change *change)
{
    if (change->op != CHANGE_PUT || config_get(sim->mirror, "job", change->key, NULL) != NULL)
        return;
    record_autoptr(job) job = job_parse(change->object, RECORD_KEEP, NULL);
    g_autoptr(GString) ops = g_string_new(NULL);
    for (guint i = 0; job != NULL && i < job->ops->len; i++) {
        const json_t *input = ((const struct job_op *)job->ops->pdata[i])->input;
        g_string_append_printf(ops, " %s", json_string_value(json_object_get(input, "OP_ID")));
    }
    const json_t *first = job != NULL && job->ops->len > 0
                              ? ((const struct job_op *)job->ops->pdata[0])->input
                              : NULL;
    const char *name = json_string_value(json_object_get(first, "instance_name"));
    sim_log(sim, "record: job %s:%s%s%s", change->key, ops->str, name != NULL ? " of " : "",
            name != NULL ? name : "");
}

/* Why one has failed. */
static void tell_end(struct sim *sim, const struct change *change)
{
    const struct job *before = config_get(sim->mirror, "job", change->key, NULL);
    record_autoptr(job) job =
        change->op == CHANGE_PUT ? job_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (job == NULL || strcmp(job->status, "error") != 0 ||
        (before != NULL && sim_is_final(before->status)))
        return;
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        const json_t *message = json_array_get(json_array_get(op->result, 1), 0);
        if (strcmp(op->status, "error") == 0)
            sim_log(sim, "record: job %s failed: %s", change->key,
                    json_is_string(message) ? json_string_value(message) : "it was found dead");
    }
}

void sim_tell(struct sim *sim, const struct change *change)
{
    if (sim->options.log == NULL)
        return;
    if (strcmp(change->kind, "instance") == 0)
        tell_instance(sim, change);
    else if (strcmp(change->kind, "replica") == 0)
        tell_replica(sim, change);
    else if (strcmp(change->kind, "tag") == 0)
        tell_tag(sim, change);
    else if (strcmp(change->kind, "decision") == 0)
        tell_decision(sim, change);
    if (strcmp(change->kind, "job") == 0) {
        tell_job(sim, change);
        tell_end(sim, change);
    }
}

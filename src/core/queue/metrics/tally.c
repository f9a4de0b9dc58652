/* See tally.h. */
#include "core/queue/metrics/tally.h"

#include "core/repair/tags.h"
#include "proto/metrics/counts.h"
#include "proto/metrics/durations.h"

/* Bounds in seconds, each as OpenMetrics writes it; from a no-op to the copy of a disk. */
static const struct durations_bound bounds[] = {
    {"0.1", 100000},    {"1.0", 1000000},     {"10.0", 10000000},
    {"60.0", 60000000}, {"600.0", 600000000}, {"+Inf", G_MAXUINT64},
};

struct tally {
    struct counts *jobs; /* by opcode and status */
    struct counts *repairs, *events;
    GTree *seconds; /* opcode -> struct durations */
    struct durations *waits;
};

static gint compare_opcodes(gconstpointer left, gconstpointer right, gpointer unused)
{
    return g_strcmp0(left, right);
}

/* All that there can be are told of from the beginning: so a rate has a first value. */
static struct counts *all_repairs(void)
{
    struct counts *counts = counts_new();
    for (int type = 0; repair_type_words.words[type]; type++)
        for (int outcome = REPAIR_SUCCESS; outcome <= REPAIR_ENOPERM; outcome++)
            counts_add(counts, enum_word(&repair_type_words, type),
                       repair_outcome_name((enum repair_outcome)outcome), 0);
    return counts;
}

struct tally *tally_new(void)
{
    struct tally *tally = g_new0(struct tally, 1);
    tally->jobs = counts_new();
    tally->repairs = all_repairs();
    tally->events = counts_new();
    tally->seconds = g_tree_new_full(compare_opcodes, NULL, g_free, durations_free);
    tally->waits = durations_new(bounds);
    return tally;
}

void tally_free(struct tally *tally)
{
    if (!tally)
        return;
    counts_free(tally->jobs);
    counts_free(tally->repairs);
    counts_free(tally->events);
    g_tree_destroy(tally->seconds);
    durations_free(tally->waits);
    g_free(tally);
}

/* A clock that was set back makes it no time at all. */
static void add_duration(struct durations *durations, guint64 from_us, guint64 to_us)
{
    durations_add(durations, to_us > from_us ? to_us - from_us : 0);
}

static void add_opcode(struct tally *tally, const struct job_op *op)
{
    const char *name = json_string_value(json_object_get(op->input, "OP_ID"));
    if (!name)
        return;
    counts_add(tally->jobs, name, op->status, 1);
    if (op->start_us == 0)
        return;
    struct durations *durations = g_tree_lookup(tally->seconds, name);
    if (!durations) {
        durations = durations_new(bounds);
        g_tree_insert(tally->seconds, g_strdup(name), durations);
    }
    add_duration(durations, op->start_us, op->end_us);
}

void tally_job(struct tally *tally, const struct job *record)
{
    for (guint i = 0; i < record->ops->len; i++)
        add_opcode(tally, record->ops->pdata[i]);
    if (record->start_us != 0)
        add_duration(tally->waits, record->received_us, record->start_us);
}

void tally_tag(struct tally *tally, const char *text)
{
    struct repair_tag tag;
    repair_tag_parse(text, &tag);
    if (tag.kind == REPAIR_TAG_RESULT)
        counts_add(tally->repairs, repair_type_name(tag.type), repair_outcome_name(tag.outcome), 1);
    repair_tag_clear(&tag);
}

void tally_decision(struct tally *tally, const struct decision *decision)
{
    if (decision->event != EVENT_NONE)
        counts_add(tally->events, enum_word(&event_kind_words, (int)decision->event),
                   enum_word(&event_level_words, (int)decision->level), 1);
}

static gboolean tell_seconds(gpointer opcode, gpointer durations, gpointer list)
{
    json_array_append_new(
        list, json_make("{ss, so}", "opcode", opcode, "seconds", durations_tell(durations)));
    return FALSE;
}

void tally_tell(const struct tally *tally, json_t *document)
{
    json_t *seconds = json_array();
    g_tree_foreach(tally->seconds, tell_seconds, seconds);
    json_object_set_new(document, "jobs_ended", counts_tell(tally->jobs, "opcode", "status"));
    json_object_set_new(document, "job_seconds", seconds);
    json_object_set_new(document, "queue_wait", durations_tell(tally->waits));
    json_object_set_new(document, "repairs_ended", counts_tell(tally->repairs, "type", "result"));
    json_object_set_new(document, "events", counts_tell(tally->events, "event", "level"));
}

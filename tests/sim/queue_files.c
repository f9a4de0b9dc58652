/* The files of jobs: who writes them, and that file, record and what clients are told agree, also
 * about jobs that are canceled or get another priority meanwhile (LUX-31); see queue_sim.h. */
#include "queue_sim.h"

#include <stdio.h>
#include <string.h>

#include "core/job/job_file.h"
#include "core/job/job_state.h"

#define ID G_GUINT64_FORMAT

/* Its program has begun and has not ended. */
static bool is_at_work(const struct jq *jq, guint64 id)
{
    for (guint i = 0; i < jq->processes->len; i++) {
        const struct jq_process *process = jq->processes->pdata[i];
        if (process->id == id && process->confirmed && !process->ended)
            return true;
    }
    return false;
}

static const json_t *record_of(const struct jq *jq, guint64 id)
{
    return g_hash_table_lookup(jq->records, &id);
}

void jq_recorded(struct jq *jq, guint64 id, const json_t *record)
{
    if (record)
        g_hash_table_replace(jq->records, g_memdup2(&id, sizeof id), json_incref((json_t *)record));
    else
        g_hash_table_remove(jq->records, &id);
}

static bool ended_on_record(const struct jq *jq, guint64 id)
{
    const char *status = json_string_value(json_object_get(record_of(jq, id), "status"));
    unsigned state;
    return !status || (sm_parse(&job_sm, status, &state) && job_state_final(state));
}

void jq_luxid_touches(struct jq *jq, const char *name, bool removes)
{
    guint64 id;
    if (!job_file_parse_name(name, &id))
        return;
    jq->counts->touched++;
    if (!is_at_work(jq, id))
        return;
    jq_look(jq);
    if (!removes)
        jq_find(jq, "luxid writes the file of job %" ID ", whose process is at work", id);
    else if (!ended_on_record(jq, id))
        jq_find(jq, "luxid removes the file of job %" ID ", whose process is at work", id);
}

/* --- agreement --- */

/* Of each opcode, as one text: its state, and its priority if wanted. */
static char *of_ops(const json_t *ops, bool priorities)
{
    GString *text = g_string_new(NULL);
    size_t i;
    const json_t *op;
    json_array_foreach(ops, i, op) {
        const json_t *priority = json_object_get(json_object_get(op, "input"), "priority");
        g_string_append_printf(text, "%s ", json_string_value(json_object_get(op, "status")));
        if (priorities)
            g_string_append_printf(text, "%" JSON_INTEGER_FORMAT " ", json_integer_value(priority));
    }
    return g_string_free(text, FALSE);
}

static char *of_answer(const json_t *statuses, const json_t *priorities, bool with_priorities)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(statuses); i++) {
        g_string_append_printf(text, "%s ", json_string_value(json_array_get(statuses, i)));
        if (with_priorities)
            g_string_append_printf(text, "%" JSON_INTEGER_FORMAT " ",
                                   json_integer_value(json_array_get(priorities, i)));
    }
    return g_string_free(text, FALSE);
}

static json_t *file_of(const struct jq *jq, guint64 id)
{
    g_autofree char *name = job_file_name(id);
    const char *text = fake_file(jq->world, jq->master, FILE_QUEUE, name);
    return text ? json_loads(text, 0, NULL) : NULL;
}

static bool is_final(const json_t *job)
{
    unsigned state;
    return sm_parse(&job_sm, json_string_value(json_object_get(job, "status")), &state) &&
           job_state_final(state);
}

static void compare_file(struct jq *jq, guint64 id, const json_t *file, const json_t *record,
                         const json_t *statuses)
{
    g_autofree char *in_file = of_ops(json_object_get(file, "ops"), false);
    g_autofree char *told = of_answer(statuses, NULL, false);
    if (is_final(file))
        return; /* told only once it is on record */
    jq->counts->files++;
    if (strcmp(in_file, told) != 0)
        jq_find(jq, "job %" ID ": its file says %s, clients are told %s", id, in_file, told);
    if (json_array_size(json_object_get(file, "ops")) !=
        json_array_size(json_object_get(record, "ops")))
        jq_find(jq, "job %" ID ": file and record have other numbers of opcodes", id);
}

void jq_compare_job(struct jq *jq, guint64 id, const json_t *row)
{
    const json_t *record = record_of(jq, id);
    const json_t *statuses = json_array_get(row, 2), *priorities = json_array_get(row, 3);
    json_autoptr file = file_of(jq, id);
    if (!record) {
        jq_find(jq, "job %" ID " is told of, and not on record", id);
        return;
    }
    if (is_at_work(jq, id)) {
        if (!file)
            jq_find(jq, "job %" ID " is at work without a file", id);
        else
            compare_file(jq, id, file, record, statuses);
        return;
    }
    g_autofree char *recorded = of_ops(json_object_get(record, "ops"), true);
    g_autofree char *told = of_answer(statuses, priorities, true);
    if (file && !is_final(record))
        return; /* about to begin, or just dead */
    if (strcmp(recorded, told) != 0)
        jq_find(jq, "job %" ID " is on record as %s, clients are told %s", id, recorded, told);
}

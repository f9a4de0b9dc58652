/* See why_running.h. */
#include "cli/commands/why_running.h"

#include <stdio.h>
#include <string.h>

#include "cli/progress.h"

const char *const why_wait_fields[] = {"job", "since", "blockers", "nodes", NULL};

const json_t *why_waiter_of(const json_t *waiters, const char *job)
{
    for (size_t i = 0; i < json_array_size(waiters); i++) {
        const json_t *row = json_array_get(waiters, i);
        if (strcmp(cli_cell_string(row, WHY_JOB), job) == 0)
            return row;
    }
    return NULL;
}

/* The value of a field of the row, by its name. */
static const json_t *value_of(const json_t *row, const char *const *fields, const char *name)
{
    size_t at = 0;
    while (strcmp(fields[at], name) != 0)
        at++;
    return cli_cell_value(row, at);
}

/* --- what it is at --- */

json_t *why_last_entry(const json_t *row, const char *const *fields)
{
    const json_t *logs = value_of(row, fields, "oplog");
    json_t *last = json_null();
    for (size_t i = 0; i < json_array_size(logs); i++) {
        const json_t *log = json_array_get(logs, i);
        if (json_array_size(log) > 0)
            last = json_array_get(log, json_array_size(log) - 1);
    }
    return last;
}

static void print_log(const json_t *entry)
{
    struct progress progress = {0};
    if (json_is_null(entry))
        return;
    g_autofree char *when =
        cli_time_text(json_integer_value(json_array_get(json_array_get(entry, 1), 0)));
    const json_t *message = json_array_get(entry, 3);
    if (progress_take(&progress, entry))
        printf("  said last, at %s: %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " %s\n", when,
               progress.what, progress.done, progress.total, progress.unit);
    else if (json_is_string(message))
        printf("  said last, at %s: %s\n", when, json_string_value(message));
    progress_clear(&progress);
}

/* The first that has not ended. */
static void print_opcode(const json_t *row, const char *const *fields)
{
    const json_t *states = value_of(row, fields, "opstatus");
    size_t at = 0, count = json_array_size(states);
    while (at < count && cli_job_final(json_string_value(json_array_get(states, at))))
        at++;
    if (at == count)
        return;
    const json_t *since = json_array_get(value_of(row, fields, "opexec"), at);
    if (!json_is_array(since))
        since = json_array_get(value_of(row, fields, "opstart"), at);
    g_autofree char *when = cli_time_text(json_integer_value(json_array_get(since, 0)));
    const char *what = json_string_value(json_array_get(value_of(row, fields, "summary"), at));
    printf("  is at %s", what != NULL ? what : "its next step");
    if (count > 1)
        printf(", step %zu of %zu", at + 1, count);
    if (json_is_array(since))
        printf(", since %s", when);
    printf("\n");
}

/* --- whether it is to end --- */

static void print_end(guint64 id, const json_t *row, const char *const *fields)
{
    const json_t *kill_at = value_of(row, fields, "kill_at");
    g_autofree char *when = cli_time_text(json_integer_value(kill_at));
    if (json_is_integer(kill_at))
        printf("  has been asked to give up; if it has not by then, its process is killed at %s\n",
               when);
    else if (json_is_true(value_of(row, fields, "cancel")))
        printf("  has been asked to give up, and does at its next safe point; to end it in any "
               "case: fettle job cancel --kill %" G_GUINT64_FORMAT "\n",
               id);
    else
        printf("  to end it: fettle job cancel %" G_GUINT64_FORMAT "\n", id);
}

/* --- what it waits for --- */

struct blocker {
    const char *owner, *lock, *mode;
    int waiting;
    json_int_t since;
    bool job; /* the owner is one */
};

static bool read_blocker(const json_t *json, struct blocker *ret_blocker)
{
    struct blocker *blocker = ret_blocker;
    *blocker = (struct blocker){0};
    if (json_unpack((json_t *)json, "[s, s, s, b, I]", &blocker->owner, &blocker->lock,
                    &blocker->mode, &blocker->waiting, &blocker->since) != 0)
        return false;
    blocker->job = g_ascii_isdigit(*blocker->owner);
    return true;
}

/* Each line is one edge of the wait-for graph, indented by its distance. */
static void print_waits(const json_t *waiters, const char *job, GHashTable *told, int depth)
{
    const json_t *row = why_waiter_of(waiters, job);
    if (row == NULL || !g_hash_table_add(told, (void *)job))
        return;
    const json_t *blockers = cli_cell_value(row, WHY_BLOCKERS),
                 *nodes = cli_cell_value(row, WHY_NODES);
    for (size_t i = 0; i < json_array_size(nodes); i++)
        printf("%*swaits for node %s to answer this master\n", depth, "",
               json_string_value(json_array_get(nodes, i)));
    for (size_t i = 0; i < json_array_size(blockers); i++) {
        struct blocker blocker;
        if (!read_blocker(json_array_get(blockers, i), &blocker))
            continue;
        g_autofree char *when = cli_time_text((gint64)blocker.since);
        printf("%*swaits for %s, %s by %s%s (%s) since %s%s\n", depth, "", blocker.lock,
               blocker.waiting ? "wanted first" : "held", blocker.job ? "job " : "", blocker.owner,
               blocker.mode, when, why_waiter_of(waiters, blocker.owner) != NULL ? ", which" : "");
        print_waits(waiters, blocker.owner, told, depth + 2);
    }
}

/* What would let it go, of one owner: once for all of its locks. */
static void print_way(const struct blocker *blocker)
{
    if (!blocker->job) {
        printf("  goes on once %s has let go of it, by itself\n", blocker->owner);
        return;
    }
    printf("  goes on once job %s has ended%s\n", blocker->owner,
           blocker->waiting ? ", or has had its locks and wants them no more" : "");
    printf("  what that one is at: fettle why %s; to end it: fettle job cancel %s\n",
           blocker->owner, blocker->owner);
}

static void print_ways(const json_t *row)
{
    g_autoptr(GHashTable) said = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *blockers = cli_cell_value(row, WHY_BLOCKERS),
                 *nodes = cli_cell_value(row, WHY_NODES);
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *node = json_string_value(json_array_get(nodes, i));
        printf("  goes on once node %s answers, or, if it is dead, is marked offline: fettle node "
               "modify %s --offline yes --statement \"…\"\n",
               node, node);
    }
    for (size_t i = 0; i < json_array_size(blockers); i++) {
        struct blocker blocker;
        if (read_blocker(json_array_get(blockers, i), &blocker) &&
            g_hash_table_add(said, (void *)blocker.owner))
            print_way(&blocker);
    }
}

/* Of a job of a master that is over. */
static void print_over(const json_t *pending)
{
    printf("  began under a master that is over. It ends by itself, in an error, once every node "
           "has heard of this one; to cancel it changes nothing\n");
    for (size_t i = 0; i < json_array_size(pending); i++) {
        const char *node = json_string_value(json_array_get(pending, i));
        printf("  waits for node %s to answer this master\n"
               "  ends once node %s answers, or, if it is dead, is marked offline: fettle node "
               "modify %s --offline yes --statement \"…\"\n",
               node, node, node);
    }
}

void why_running_print(guint64 id, const json_t *row, const char *const *fields,
                       const json_t *waiters, const json_t *pending)
{
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *wait = why_waiter_of(waiters, job);
    print_opcode(row, fields);
    print_log(why_last_entry(row, fields));
    if (pending != NULL) {
        print_over(pending);
        return;
    }
    if (wait == NULL) {
        printf("  waits for no locks\n");
    } else {
        g_autofree char *since = cli_time_text(json_integer_value(cli_cell_value(wait, WHY_SINCE)));
        printf("  has waited for locks since %s:\n", since);
        print_waits(waiters, job, told, 2);
        print_ways(wait);
    }
    print_end(id, row, fields);
}

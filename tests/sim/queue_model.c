/* A plain model of the job queue; see queue_model.h. */
#include "queue_model.h"

#include <string.h>

#define PRIORITY_US (300 * (gint64)G_USEC_PER_SEC) /* what a step of priority is worth */

struct qm_rule {
    char *uuid;
    json_t *filter; /* the object */
};

static void lock_free(void *data)
{
    struct qm_lock *lock = data;
    g_free(lock->name);
    g_free(lock);
}

static void op_free(void *data)
{
    struct qm_op *op = data;
    json_decref(op->input);
    if (op->locks)
        g_ptr_array_unref(op->locks);
    g_free(op);
}

static void job_free(void *data)
{
    struct qm_job *job = data;
    g_ptr_array_unref(job->ops);
    g_free(job->user);
    g_free(job);
}

static void rule_free(void *data)
{
    struct qm_rule *rule = data;
    g_free(rule->uuid);
    json_decref(rule->filter);
    g_free(rule);
}

static gint compare_ids(gconstpointer left, gconstpointer right, gpointer unused)
{
    guint64 a = *(const guint64 *)left, b = *(const guint64 *)right;
    return a < b ? -1 : a > b;
}

struct qm *qm_new(guint slots)
{
    struct qm *qm = g_new0(struct qm, 1);
    qm->jobs = g_tree_new_full(compare_ids, NULL, NULL, job_free);
    qm->active = g_ptr_array_new();
    qm->queued = g_ptr_array_new();
    qm->rules = g_ptr_array_new_with_free_func(rule_free);
    qm->slots = slots;
    return qm;
}

void qm_free(struct qm *qm)
{
    g_tree_destroy(qm->jobs);
    g_ptr_array_unref(qm->active);
    g_ptr_array_unref(qm->queued);
    g_ptr_array_unref(qm->rules);
    g_free(qm);
}

/* --- opcodes --- */

static void add_lock(struct qm_op *op, const char *level, const char *name, bool exclusive)
{
    struct qm_lock *lock = g_new(struct qm_lock, 1);
    *lock = (struct qm_lock){g_strdup_printf("%s/%s", level, name), exclusive};
    g_ptr_array_add(op->locks, lock);
}

static void lock_each(struct qm_op *op, const char *field, const char *level, bool exclusive)
{
    size_t i;
    const json_t *name;
    json_array_foreach(json_object_get(op->input, field), i, name) {
        if (strcmp(json_string_value(name), "nowhere") != 0)
            add_lock(op, level, json_string_value(name), exclusive);
        else
            op->fails = true;
    }
}

/* "Which ones opcodes take" of procedures.md, for the few that the campaigns submit. */
static struct qm_op *op_new(const json_t *input)
{
    struct qm_op *op = g_new0(struct qm_op, 1);
    const char *id = json_string_value(json_object_get(input, "OP_ID"));
    op->input = json_deep_copy(input);
    op->locks = g_ptr_array_new_with_free_func(lock_free);
    if (!strcmp(id, "OP_TEST_DELAY") && !json_is_true(json_object_get(input, "no_locks"))) {
        lock_each(op, "on_instances", "instance", true);
        lock_each(op, "on_nodes", "node", false);
    } else if (!strcmp(id, "OP_NODE_SET_PARAMS")) {
        add_lock(op, "node-param", json_string_value(json_object_get(input, "node_name")), true);
        op->urgent = true;
    } else if (!strcmp(id, "OP_CLUSTER_SET_PARAMS")) {
        add_lock(op, "cluster", "BGL", true);
    }
    if (op->fails)
        g_clear_pointer(&op->locks, g_ptr_array_unref);
    return op;
}

static guint expected_end(const struct qm_job *job)
{
    for (guint i = 0; i < job->ops->len; i++)
        if (((const struct qm_op *)job->ops->pdata[i])->fails)
            return QM_SET(QM_ERROR);
    return QM_SET(QM_SUCCESS);
}

static struct qm_job *job_new(guint64 id, const char *user, const json_t *ops)
{
    struct qm_job *job = g_new0(struct qm_job, 1);
    size_t i;
    const json_t *input;
    job->id = id;
    job->user = g_strdup(user);
    job->ops = g_ptr_array_new_with_free_func(op_free);
    json_array_foreach(ops, i, input)
        g_ptr_array_add(job->ops, op_new(input));
    job->may_end = expected_end(job);
    return job;
}

struct qm_job *qm_add(struct qm *qm, guint64 id, guint64 received_us, const char *user,
                      const json_t *ops)
{
    struct qm_job *job = job_new(id, user, ops);
    job->received_us = received_us;
    g_tree_insert(qm->jobs, &job->id, job);
    g_ptr_array_add(qm->queued, job);
    qm->newest = MAX(qm->newest, id);
    return job;
}

struct qm_job *qm_find(const struct qm *qm, guint64 id)
{
    return g_tree_lookup(qm->jobs, &id);
}

void qm_set_state(struct qm *qm, struct qm_job *job, enum qm_state state)
{
    g_ptr_array_remove(job->state == QM_QUEUED ? qm->queued : qm->active, job);
    job->state = state;
    if (state == QM_ACTIVE)
        g_ptr_array_add(qm->active, job);
}

void qm_linger(struct qm_job *job, enum qm_state state)
{
    job->state = state;
    job->at = job->ops->len;
}

void qm_unpick(struct qm *qm, struct qm_job *job)
{
    g_ptr_array_remove(qm->active, job);
    g_ptr_array_add(qm->queued, job);
    job->state = QM_QUEUED;
}

bool qm_final(enum qm_state state)
{
    return state != QM_QUEUED && state != QM_ACTIVE;
}

gint64 qm_priority(const struct qm_job *job)
{
    gint64 least = G_MAXINT64;
    for (guint i = job->at; i < job->ops->len; i++) {
        const struct qm_op *op = job->ops->pdata[i];
        least = MIN(least, json_integer_value(json_object_get(op->input, "priority")));
    }
    return least;
}

void qm_set_priority(struct qm_job *job, gint64 priority)
{
    for (guint i = job->at; i < job->ops->len; i++)
        json_object_set_new(((struct qm_op *)job->ops->pdata[i])->input, "priority",
                            json_integer(priority));
}

/* --- rules --- */

static gint64 number_of(const struct qm_rule *rule, const char *field)
{
    return json_integer_value(json_object_get(rule->filter, field));
}

static gint compare_rules(gconstpointer left, gconstpointer right)
{
    const struct qm_rule *a = *(const struct qm_rule *const *)left,
                         *b = *(const struct qm_rule *const *)right;
    gint64 by = number_of(a, "priority") - number_of(b, "priority");
    by = by ? by : number_of(a, "watermark") - number_of(b, "watermark");
    return by ? (by < 0 ? -1 : 1) : strcmp(a->uuid, b->uuid);
}

void qm_set_rule(struct qm *qm, const char *uuid, const json_t *filter)
{
    for (guint i = 0; i < qm->rules->len; i++) {
        if (!strcmp(((struct qm_rule *)qm->rules->pdata[i])->uuid, uuid)) {
            g_ptr_array_remove_index(qm->rules, i);
            break;
        }
    }
    if (!filter)
        return;
    struct qm_rule *rule = g_new(struct qm_rule, 1);
    *rule = (struct qm_rule){g_strdup(uuid), json_deep_copy(filter)};
    g_ptr_array_add(qm->rules, rule);
    g_ptr_array_sort(qm->rules, compare_rules);
}

const char *qm_any_rule(const struct qm *qm)
{
    return qm->rules->len > 0 ? ((const struct qm_rule *)qm->rules->pdata[0])->uuid : NULL;
}

/* A condition of a rule, about the object `row`. */
static bool condition(const json_t *filter, const json_t *row, gint64 watermark)
{
    const char *word = json_string_value(json_array_get(filter, 0));
    bool all = !strcmp(word, "&");
    if (all || !strcmp(word, "|")) {
        for (size_t i = 1; i < json_array_size(filter); i++)
            if (condition(json_array_get(filter, i), row, watermark) != all)
                return !all;
        return all;
    }
    if (!strcmp(word, "!"))
        return !condition(json_array_get(filter, 1), row, watermark);
    const json_t *has = json_object_get(row, json_string_value(json_array_get(filter, 1)));
    const json_t *value = json_array_get(filter, 2);
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        if (!json_is_integer(has))
            return json_is_string(has) && !strcmp(text, json_string_value(has)) == (*word == '=');
    }
    gint64 than = json_is_string(value) ? watermark : json_integer_value(value);
    if (!json_is_integer(has))
        return *word == '!';
    gint64 number = json_integer_value(has);
    return *word == '<'   ? number < than
           : *word == '>' ? number > than
           : *word == '!' ? number != than
                          : number == than;
}

/* `row` is stolen. */
static bool row_holds(const json_t *filter, json_t *row)
{
    bool holds = condition(filter, row, 0);
    json_decref(row);
    return holds;
}

/* The entry that luxid adds to what was submitted is one of them. */
static bool reason_holds(const json_t *filter, const struct qm_job *job, guint at)
{
    const json_t *input = ((const struct qm_op *)job->ops->pdata[at])->input;
    g_autofree char *id =
        g_ascii_strdown(json_string_value(json_object_get(input, "OP_ID")) + strlen("OP_"), -1);
    g_autofree char *source = g_strconcat("gnt:opcode:", id, NULL);
    g_autofree char *text = g_strdup_printf("job=%" G_GUINT64_FORMAT ";index=%u", job->id, at);
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(input, "reason"), i, entry) {
        if (row_holds(filter, json_pack("{s:O, s:O}", "source", json_array_get(entry, 0), "reason",
                                        json_array_get(entry, 1))))
            return true;
    }
    return row_holds(filter, json_pack("{s:s, s:s}", "source", source, "reason", text));
}

static bool predicate_holds(const json_t *predicate, const struct qm_job *job, gint64 watermark)
{
    const char *about = json_string_value(json_array_get(predicate, 0));
    const json_t *filter = json_array_get(predicate, 1);
    if (!strcmp(about, "jobid") || !strcmp(about, "user")) {
        json_t *row = json_pack("{s:I, s:s}", "id", (json_int_t)job->id, "user", job->user);
        bool holds = condition(filter, row, watermark);
        json_decref(row);
        return holds;
    }
    for (guint i = 0; i < job->ops->len; i++) {
        const json_t *input = ((const struct qm_op *)job->ops->pdata[i])->input;
        if (!strcmp(about, "opcode") ? condition(filter, input, 0) : reason_holds(filter, job, i))
            return true;
    }
    return false;
}

/* The rule that decides about a job; NULL: none does. */
static const struct qm_rule *ruling(const struct qm *qm, const struct qm_job *job)
{
    for (guint i = 0; i < qm->rules->len; i++) {
        const struct qm_rule *rule = qm->rules->pdata[i];
        const json_t *action = json_object_get(rule->filter, "action");
        bool holds = g_strcmp0(json_string_value(action), "CONTINUE") != 0;
        size_t at;
        const json_t *predicate;
        json_array_foreach(json_object_get(rule->filter, "predicates"), at, predicate)
            holds = holds && predicate_holds(predicate, job, number_of(rule, "watermark"));
        if (holds)
            return rule;
    }
    return NULL;
}

static bool says(const struct qm_rule *rule, const char *action)
{
    return rule && !g_strcmp0(json_string_value(json_object_get(rule->filter, "action")), action);
}

bool qm_refuses(const struct qm *qm, guint64 id, const char *user, const json_t *ops)
{
    struct qm_job *job = job_new(id, user, ops);
    bool refuses = says(ruling(qm, job), "REJECT");
    job_free(job);
    return refuses;
}

/* --- questions about all --- */

static bool has_reason(const struct qm_job *job, const char *text)
{
    for (guint i = 0; i < job->ops->len; i++) {
        size_t at;
        const json_t *entry;
        json_array_foreach(
            json_object_get(((const struct qm_op *)job->ops->pdata[i])->input, "reason"), at, entry)
            if (!strcmp(json_string_value(json_array_get(entry, 1)), text))
                return true;
    }
    return false;
}

/* Active jobs about which the rule decides, that have the reason; NULL: any. */
static guint count(const struct qm *qm, const struct qm_rule *rule, const char *text)
{
    guint count = 0;
    for (guint i = 0; i < qm->active->len; i++) {
        const struct qm_job *job = qm->active->pdata[i];
        if ((!text || has_reason(job, text)) && (!rule || ruling(qm, job) == rule))
            count++;
    }
    return count;
}

static bool rule_is_full(const struct qm *qm, const struct qm_rule *rule)
{
    const json_t *action = rule ? json_object_get(rule->filter, "action") : NULL;
    return json_is_array(action) &&
           count(qm, rule, NULL) >= json_integer_value(json_array_get(action, 1));
}

/* "rate-limit:N:NAME" */
static bool own_limit_is_full(const struct qm *qm, const struct qm_job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        size_t at;
        const json_t *entry;
        json_array_foreach(
            json_object_get(((const struct qm_op *)job->ops->pdata[i])->input, "reason"), at,
            entry) {
            const char *text = json_string_value(json_array_get(entry, 1));
            if (g_str_has_prefix(text, "rate-limit:") &&
                count(qm, NULL, text) >= (guint)atoi(text + strlen("rate-limit:")))
                return true;
        }
    }
    return false;
}

static bool exclude(const GPtrArray *left, const GPtrArray *right)
{
    for (guint i = 0; left && i < left->len; i++) {
        const struct qm_lock *a = left->pdata[i];
        for (guint j = 0; right && j < right->len; j++) {
            const struct qm_lock *b = right->pdata[j];
            if ((a->exclusive || b->exclusive) && !strcmp(a->name, b->name))
                return true;
        }
    }
    return false;
}

static const GPtrArray *locks_at(const struct qm_job *job, guint at)
{
    return at < job->ops->len ? ((const struct qm_op *)job->ops->pdata[at])->locks : NULL;
}

bool qm_in_the_way(const struct qm_job *job, const struct qm_job *other)
{
    return job != other && exclude(locks_at(job, 0), locks_at(other, other->at));
}

static bool would_wait(const struct qm *qm, const struct qm_job *job)
{
    bool found = false;
    for (guint i = 0; i < qm->active->len; i++)
        found = found || qm_in_the_way(job, qm->active->pdata[i]);
    return found && !((const struct qm_op *)job->ops->pdata[0])->urgent;
}

/* --- the verdict --- */

static bool wants(const json_t *words, enum qm_state state)
{
    static const char *const names[] = {
        [QM_CANCELED] = "canceled", [QM_SUCCESS] = "success", [QM_ERROR] = "error"};
    size_t i;
    const json_t *word;
    json_array_foreach(words, i, word)
        if (!strcmp(json_string_value(word), names[state]))
            return true;
    return json_array_size(words) == 0;
}

/* QM_SET() of what the ended dependencies make of it; 0: nothing. `ret_unmet`: one has not ended.
 */
static guint doom_of(const struct qm *qm, const struct qm_job *job, bool *ret_unmet)
{
    guint doom = 0;
    *ret_unmet = false;
    for (guint i = 0; i < job->ops->len; i++) {
        size_t at;
        const json_t *item;
        json_array_foreach(
            json_object_get(((const struct qm_op *)job->ops->pdata[i])->input, "depends"), at,
            item) {
            const struct qm_job *on =
                qm_find(qm, (guint64)json_integer_value(json_array_get(item, 0)));
            if (!qm_final(on->state))
                *ret_unmet = true;
            else if (!wants(json_array_get(item, 1), on->state))
                doom |= QM_SET(on->state == QM_CANCELED ? QM_CANCELED : QM_ERROR);
        }
    }
    return doom;
}

static bool depends_on(const json_t *input, guint64 id)
{
    size_t at;
    const json_t *item;
    json_array_foreach(json_object_get(input, "depends"), at, item)
        if ((guint64)json_integer_value(json_array_get(item, 0)) == id)
            return true;
    return false;
}

static bool any_depends_on(const GPtrArray *jobs, guint64 id)
{
    for (guint i = 0; i < jobs->len; i++) {
        const struct qm_job *job = jobs->pdata[i];
        for (guint k = 0; k < job->ops->len; k++)
            if (depends_on(((const struct qm_op *)job->ops->pdata[k])->input, id))
                return true;
    }
    return false;
}

bool qm_is_wanted(const struct qm *qm, guint64 id)
{
    return any_depends_on(qm->queued, id) || any_depends_on(qm->active, id);
}

bool qm_lacks(const struct qm *qm, const json_t *ops)
{
    size_t i, at;
    const json_t *op, *item;
    json_array_foreach(ops, i, op) {
        json_array_foreach(json_object_get(op, "depends"), at, item) {
            json_int_t id = json_integer_value(json_array_get(item, 0));
            const struct qm_job *on = id > 0 ? qm_find(qm, (guint64)id) : NULL;
            if (on && on->archived)
                return true;
        }
    }
    return false;
}

guint qm_doom(const struct qm *qm, const struct qm_job *job)
{
    bool unmet;
    return doom_of(qm, job, &unmet) | (says(ruling(qm, job), "REJECT") ? QM_SET(QM_CANCELED) : 0);
}

enum qm_verdict qm_judge(const struct qm *qm, const struct qm_job *job)
{
    const struct qm_rule *rule = ruling(qm, job);
    bool unmet;
    if (doom_of(qm, job, &unmet))
        return QM_DOOMED;
    if (says(rule, "REJECT"))
        return QM_REJECTED;
    if (unmet)
        return QM_UNMET;
    if (says(rule, "PAUSE") || rule_is_full(qm, rule))
        return QM_RULED;
    if (own_limit_is_full(qm, job))
        return QM_LIMITED;
    return would_wait(qm, job) ? QM_LOCKED : QM_READY;
}

bool qm_paused(const struct qm *qm, const struct qm_job *job)
{
    return says(ruling(qm, job), "PAUSE");
}

const char *qm_verdict_text(enum qm_verdict verdict)
{
    static const char *const texts[] = {"ready",
                                        "waits for others",
                                        "doomed",
                                        "rejected",
                                        "held by a rule",
                                        "held by its own limit",
                                        "would wait for locks"};
    return texts[verdict];
}

/* --- the line --- */

static gint64 due_of(const struct qm_job *job)
{
    return (gint64)job->received_us + qm_priority(job) * PRIORITY_US;
}

static gint compare_turns(gconstpointer left, gconstpointer right)
{
    const struct qm_job *a = *(const struct qm_job *const *)left,
                        *b = *(const struct qm_job *const *)right;
    gint64 x = due_of(a), y = due_of(b);
    return x != y ? (x < y ? -1 : 1) : compare_ids(&a->id, &b->id, NULL);
}

GPtrArray *qm_line(const struct qm *qm)
{
    GPtrArray *line = g_ptr_array_sized_new(qm->queued->len + 1);
    for (guint i = 0; i < qm->queued->len; i++)
        g_ptr_array_add(line, qm->queued->pdata[i]);
    g_ptr_array_sort(line, compare_turns);
    return line;
}

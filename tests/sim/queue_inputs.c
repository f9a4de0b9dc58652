/* Jobs and rules drawn at random; see queue_sim.h. What a rule asks for stands in every opcode, so
 * that no default matters. */
#include "queue_sim.h"

static const char *const users[] = {"anna", "bert", "root"};
static const char *const reasons[] = {"nightly", "by hand", "rate-limit:1:one", "rate-limit:2:two",
                                      "rate-limit:1:other"};

const char *jq_draw_user(struct jq *jq)
{
    return users[jq_random(jq, G_N_ELEMENTS(users))];
}

static gint64 draw_priority(struct jq *jq)
{
    return jq_random(jq, 3) > 0 ? 0 : (gint64)jq_random(jq, 40) - 20;
}

/* --- opcodes --- */

static json_t *draw_names(struct jq *jq, const char *stem, guint of, guint most)
{
    json_t *names = json_array();
    guint count = jq_random(jq, most + 1), first = jq_random(jq, of);
    for (guint i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("%s%u", stem, (first + i) % of + 1);
        json_array_append_new(names, json_string(name));
    }
    return names;
}

static json_t *draw_delay(struct jq *jq)
{
    bool locks = jq_random(jq, 3) > 0;
    json_t *nodes = draw_names(jq, "node", 2, 2);
    guint steps = jq_random(jq, 4) == 0 ? 20 : 3;
    if (jq_random(jq, 20) == 0)
        json_array_append_new(nodes, json_string("nowhere"));
    return json_make("{ss sf sb so so}", "OP_ID", "OP_TEST_DELAY", "duration",
                     0.5 + 0.5 * jq_random(jq, steps), "no_locks", (int)!locks, "on_nodes", nodes,
                     "on_instances", draw_names(jq, "web", 4, 3));
}

/* One of two locks; now and then all that there are. Where one job runs at a time they only wait
 * for their turn. */
static json_t *draw_crowd(struct jq *jq)
{
    bool all = jq_random(jq, 16) == 0;
    return json_make("{ss sf sb s[] so}", "OP_ID", "OP_TEST_DELAY", "duration",
                     2.0 + 0.5 * jq_random(jq, 5), "no_locks", (int)(jq->model->slots == 1),
                     "on_nodes", "on_instances",
                     all ? json_make("[s, s]", "web1", "web2")
                         : json_make("[s]", jq_random(jq, 2) ? "web1" : "web2"));
}

static json_t *draw_op(struct jq *jq)
{
    if (jq->theme == JQ_CROWD)
        return draw_crowd(jq);
    guint what = jq_random(jq, 40);
    g_autofree char *name = g_strdup_printf("t%u", jq_random(jq, 5));
    if (what == 0 && !jq->rough)
        return json_make("{ss si}", "OP_ID", "OP_CLUSTER_SET_PARAMS", "max_running_jobs",
                         1 + (int)jq_random(jq, 6));
    if (what == 1)
        return json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name",
                         jq_random(jq, 2) ? "node1" : "node2", "drained",
                         jq_random(jq, 2) ? "yes" : "no");
    if (what < 5)
        return json_make("{ss ss s[s]}", "OP_ID", "OP_TAGS_SET", "kind", "cluster", "tags", name);
    return draw_delay(jq);
}

/* --- what all opcodes have --- */

static json_t *draw_wanted(struct jq *jq)
{
    static const char *const words[] = {"success", "error", "canceled"};
    json_t *wanted = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (jq_random(jq, 2) == 0)
            json_array_append_new(wanted, json_string(words[i]));
    return wanted;
}

static json_t *draw_depends(struct jq *jq, guint earlier)
{
    json_t *depends = json_array();
    guint count = 1 + jq_random(jq, 2);
    for (guint i = 0; i < count; i++) {
        guint back = jq_random(jq, 12);
        if (earlier > 0 && jq_random(jq, 2) == 0)
            json_array_append_new(
                depends, json_make("[I, o]", -(json_int_t)(1 + back % earlier), draw_wanted(jq)));
        else if (back < jq->model->newest)
            json_array_append_new(
                depends,
                json_make("[I, o]", (json_int_t)(jq->model->newest - back), draw_wanted(jq)));
    }
    return depends;
}

static json_t *draw_reasons(struct jq *jq)
{
    json_t *trail = json_array();
    guint count = jq->theme == JQ_LIMITS ? 1 + jq_random(jq, 3) : jq_random(jq, 3);
    for (guint i = 0; i < count; i++)
        json_array_append_new(trail, json_make("[s, s, i]", "user",
                                               reasons[jq_random(jq, G_N_ELEMENTS(reasons))], 1));
    return trail;
}

json_t *jq_draw_job(struct jq *jq, guint earlier)
{
    json_t *ops = json_array();
    bool crowd = jq->theme == JQ_CROWD;
    guint count = !crowd && jq_random(jq, 4) == 0 ? 1 + jq_random(jq, 3) : 1;
    /* A step of priority is worth less than the time that a crowd waits. */
    gint64 priority = crowd ? jq_random(jq, 4) == 0 : draw_priority(jq);
    bool limited = jq_random(jq, jq->theme == JQ_LIMITS ? 2 : 6) == 0;
    for (guint i = 0; i < count; i++) {
        json_t *op = draw_op(jq);
        json_object_set_new(op, "priority", json_integer(priority));
        json_object_set_new(op, "dry_run", json_boolean(jq_random(jq, 30) == 0));
        json_object_set_new(op, "reason", limited ? draw_reasons(jq) : json_array());
        json_array_append_new(ops, op);
    }
    if (!crowd && jq_random(jq, 5) == 0)
        json_object_set_new(json_array_get(ops, 0), "depends", draw_depends(jq, earlier));
    g_autofree char *comment = g_strdup_printf("s%u", ++jq->submitted);
    json_object_set_new(json_array_get(ops, 0), "comment", json_string(comment));
    return ops;
}

/* --- rules --- */

static json_t *draw_condition(struct jq *jq, guint about)
{
    switch (about) {
    case 0:
        return jq_random(jq, 2)
                   ? json_make("[s, s, s]", jq_random(jq, 2) ? "<" : ">", "id", "watermark")
                   : json_make("[s, s, I]", jq_random(jq, 2) ? "<" : "!=", "id",
                               (json_int_t)(jq->model->newest + jq_random(jq, 5)));
    case 1:
        switch (jq_random(jq, 3)) {
        case 0:
            return json_make("[s, s, s]", jq_random(jq, 2) ? "=" : "!=", "OP_ID",
                             jq_random(jq, 2) ? "OP_TEST_DELAY" : "OP_TAGS_SET");
        case 1:
            return json_make("[s, s, i]", jq_random(jq, 2) ? "<" : ">", "priority",
                             (int)jq_random(jq, 20) - 10);
        default:
            return json_make("[s, [s, s, i], [s, s, s]]", "&", "<", "priority", 5, "=", "OP_ID",
                             "OP_TEST_DELAY");
        }
    case 2:
        return json_make("[s, s, s]", "=", "reason", reasons[jq_random(jq, G_N_ELEMENTS(reasons))]);
    default:
        return json_make("[s, s, s]", jq_random(jq, 2) ? "=" : "!=", "user", jq_draw_user(jq));
    }
}

json_t *jq_draw_rule(struct jq *jq, json_t **ret_action)
{
    static const char *const words[] = {"ACCEPT", "CONTINUE", "PAUSE", "REJECT"};
    static const char *const abouts[] = {"jobid", "opcode", "reason", "user"};
    json_t *predicates = json_array();
    guint count = 1 + jq_random(jq, 2), what = jq_random(jq, 8);
    for (guint i = 0; i < count; i++) {
        guint about = jq_random(jq, G_N_ELEMENTS(abouts));
        json_t *condition = draw_condition(jq, about);
        if (jq_random(jq, 6) == 0)
            condition = json_make("[s, o]", "!", condition);
        json_array_append_new(predicates, json_make("[s, o]", abouts[about], condition));
    }
    *ret_action = what < 4 ? json_string(words[what])
                           : json_make("[s, i]", "RATE_LIMIT", 1 + (int)jq_random(jq, 3));
    return predicates;
}

/* See matrix.h. */
#include "matrix.h"

#include <string.h>

#define SETTLE_S 150 /* after the event: for whatever is done then */
#define IDLE_MS 1000 /* between two writes of a guest */

/* --- what is said --- */

static void append(GString *text, const char *prefix, const json_t *list)
{
    size_t i;
    const json_t *line;
    json_array_foreach(list, i, line)
        g_string_append_printf(text, "%s%s\n", prefix, json_string_value(line));
}

static char *verify_text(struct sim *sim)
{
    g_autoptr(GError) error = NULL;
    json_autoptr found = sim_ask(sim, "Verify", json_array(), &error);
    GString *text = g_string_new(NULL);
    if (error)
        g_string_append_printf(text, "error: %s\n", error->message);
    append(text, "", json_object_get(found, "problems"));
    append(text, "note: ", json_object_get(found, "notes"));
    return g_string_free(text, FALSE);
}

static char *why_text(struct sim *sim, const char *subject)
{
    const struct config *config = sim_config(sim);
    g_autoptr(GPtrArray) all = config_list(config, "decision");
    const struct decision *latest = NULL;
    guint64 newest = 0, version;
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        config_get(config, "decision", decision->uuid, &version);
        if (strcmp(decision->subject_name, subject) || version < newest)
            continue;
        latest = decision;
        newest = version;
    }
    return latest ? g_strdup_printf("%s %s: %s\n", subject, latest->state, latest->summary)
                  : g_strdup_printf("%s \n", subject);
}

/* "RESOURCE NAME FIELD VALUE" as it really is. */
static char *list_text(struct sim *sim, const char *expected)
{
    g_auto(GStrv) words = g_strsplit(expected, " ", 4);
    json_autoptr answer = sim_ask(
        sim, "Query", json_make("[s [s] [sss]]", words[0], words[2], "=", "name", words[1]), NULL);
    const json_t *cell = json_array_get(json_array_get(json_object_get(answer, "data"), 0), 0);
    g_autofree char *value = json_dumps(json_array_get(cell, 1), JSON_ENCODE_ANY | JSON_COMPACT);
    const char *plain = json_is_string(json_array_get(cell, 1))
                            ? json_string_value(json_array_get(cell, 1))
                            : value;
    return g_strdup_printf("%s %s %s %s\n", words[0], words[1], words[2], plain ? plain : "");
}

static char *joined(const json_t *list, const char *separator)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(list); i++)
        g_string_append_printf(text, "%s%s", i ? separator : "",
                               json_string_value(json_array_get(list, i)));
    return g_string_free(text, FALSE);
}

static json_t *ask_plan(struct sim *sim, const char *event)
{
    g_auto(GStrv) words = g_strsplit(event, " ", 2);
    g_autoptr(GError) error = NULL;
    json_t *plan = sim_ask(sim, "PlanNode", json_make("[ss]", words[1], words[0]), &error);
    g_assert_no_error(error);
    return plan;
}

static char *plan_text(const json_t *plan)
{
    GString *text = g_string_new(json_is_true(json_object_get(plan, "held")) ? "held\n" : "");
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(plan, "moves"), i, each) {
        g_autofree char *to = joined(json_object_get(each, "to"), " ");
        g_autofree char *by = joined(json_object_get(each, "operations"), ", ");
        const char *left = json_string_value(json_object_get(each, "left"));
        g_string_append_printf(text, "%s to %s by %s%s%s\n",
                               json_string_value(json_object_get(each, "instance")), to, by,
                               left ? " left " : "", left ? left : "");
    }
    json_array_foreach(json_object_get(plan, "blocked"), i, each)
        g_string_append_printf(text, "%s blocked %s\n",
                               json_string_value(json_object_get(each, "instance")),
                               json_string_value(json_object_get(each, "reason")));
    return g_string_free(text, FALSE);
}

/* --- comparing --- */

/* Line by line; what differs is told as it could be copied into the table. */
static void compare(const struct situation *situation, const char *what, const char *expected,
                    const char *got)
{
    g_auto(GStrv) patterns = g_strsplit(expected, "\n", -1), lines = g_strsplit(got, "\n", -1);
    guint i = 0;
    while (patterns[i] && lines[i] && g_pattern_match_simple(patterns[i], lines[i]))
        i++;
    bool same = (!patterns[i] || (!*patterns[i] && !patterns[i + 1])) && (!lines[i] || !*lines[i]);
    if (same)
        return;
    g_test_message("%s: %s: line %u is not as in the table:\n%s", situation->name, what, i + 1,
                   got);
    g_test_fail();
}

static const struct instance *instance_of(struct sim *sim, const char *name)
{
    return config_find(sim_config(sim), "instance", name, NULL);
}

/* Where the record has it, by the names of nodes. */
static char *places_of(struct sim *sim, const struct instance *instance)
{
    bool second = *instance->secondary_node != '\0';
    return g_strdup_printf("%s%s%s", sim_node_name(sim, instance->primary_node), second ? " " : "",
                           second ? sim_node_name(sim, instance->secondary_node) : "");
}

/* A guest that is to run does, on its new node. */
static bool runs_there(struct sim *sim, const struct instance *instance)
{
    g_autofree char *name = g_strdup_printf("instance %s status running", instance->name);
    g_autofree char *status = list_text(sim, name);
    return instance->admin_state != ADMIN_UP || g_str_has_suffix(status, " running\n");
}

/* Where several go at once each job chooses the node of its replica when it runs, so only the
 * primary is compared. */
static void check_move(struct sim *sim, const struct situation *situation, const json_t *move,
                       bool alone)
{
    const char *name = json_string_value(json_object_get(move, "instance"));
    const char *left = json_string_value(json_object_get(move, "left"));
    const struct instance *instance = instance_of(sim, name);
    g_autofree char *to = joined(json_object_get(move, "to"), " ");
    g_autofree char *places = places_of(sim, instance);
    bool rests = left && strstr(left, "starts nothing");
    bool there = alone ? strcmp(to, places) == 0
                       : g_str_has_prefix(to, sim_node_name(sim, instance->primary_node));
    if (there && runs_there(sim, instance) == !rests)
        return;
    g_test_message("%s: plan said that %s goes to %s; it is on %s%s", situation->name, name, to,
                   places, runs_there(sim, instance) ? "" : ", and does not run");
    g_test_fail();
}

static void check_stays(struct sim *sim, const struct situation *situation, const json_t *blocked)
{
    const char *name = json_string_value(json_object_get(blocked, "instance"));
    g_autofree char *from = joined(json_object_get(blocked, "from"), " ");
    g_autofree char *places = places_of(sim, instance_of(sim, name));
    if (strcmp(from, places) == 0)
        return;
    g_test_message("%s: plan said that %s stays on %s; it is on %s", situation->name, name, from,
                   places);
    g_test_fail();
}

static void check_outcome(struct sim *sim, const struct situation *situation, const json_t *plan)
{
    bool freed = situation->happens && strstr(situation->happens, "SetWatcherPause [null]");
    bool held = json_is_true(json_object_get(plan, "held")) && !freed;
    bool alone = json_array_size(json_object_get(plan, "moves")) == 1;
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(plan, "moves"), i, each) {
        if (held)
            check_stays(sim, situation, each);
        else
            check_move(sim, situation, each, alone);
    }
    json_array_foreach(json_object_get(plan, "blocked"), i, each)
        check_stays(sim, situation, each);
}

/* --- a row --- */

static void play(struct sim *sim, const struct situation *situation, const char *script)
{
    g_autofree char *failure = script_run(sim, script);
    if (!failure)
        return;
    g_test_message("%s: %s", situation->name, failure);
    g_test_fail();
}

static void let_it_happen(struct sim *sim, const struct situation *situation)
{
    g_auto(GStrv) words = g_strsplit(situation->event, " ", 2);
    bool fail = strcmp(words[0], "fail") == 0;
    g_autofree char *script =
        situation->happens ? g_strdup(situation->happens)
        : fail             ? g_strdup_printf("power %s off\noffline %s yes\n", words[1], words[1])
                           : g_strdup_printf("drain %s yes\n", words[1]);
    play(sim, situation, script);
    sim_pass(sim, SETTLE_S * 1000);
}

void matrix_run(const struct situation *situation)
{
    json_autoptr cluster = situation->cluster ? json_loads(situation->cluster, 0, NULL) : NULL;
    const struct sim_options options = {.seed = 1, .nodes = situation->nodes, .cluster = cluster};
    struct sim *sim = sim_new(&options);
    sim_set_idle_ms(sim, IDLE_MS);
    play(sim, situation, situation->script);
    if (!g_test_failed()) {
        g_autofree char *verify = verify_text(sim);
        g_auto(GStrv) words = g_strsplit(situation->why ? situation->why : "", " ", 2);
        g_autofree char *why = why_text(sim, situation->why ? words[0] : "");
        g_autofree char *list = list_text(sim, situation->list);
        json_autoptr plan = ask_plan(sim, situation->event);
        g_autofree char *text = plan_text(plan);
        compare(situation, "verify", situation->verify, verify);
        if (situation->why)
            compare(situation, "why", situation->why, why);
        compare(situation, "list", situation->list, list);
        compare(situation, "plan", situation->plan, text);
        let_it_happen(sim, situation);
        check_outcome(sim, situation, plan);
    }
    if (sim_problem(sim)) {
        g_test_message("%s: %s", situation->name, sim_problem(sim));
        g_test_fail();
    }
    sim_free(sim);
}

/* The language of scenario scripts; see script.h and README. */
#include "script.h"

#include <string.h>

#define STEP_MS 20

struct line {
    struct sim *sim;
    guint number;
    GStrv words;
    guint count;
    char *failure;
};

static void fail(struct line *line, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void fail(struct line *line, const char *format, ...)
{
    va_list args;
    if (line->failure != NULL)
        return;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    line->failure = g_strdup_printf("line %u: %s", line->number, text);
}

static const char *word(const struct line *line, guint index)
{
    return index < line->count ? line->words[index] : "";
}

static bool is(const struct line *line, guint index, const char *text)
{
    return strcmp(word(line, index), text) == 0;
}

/* "40s" or "500ms" at the end of the line, after "within". */
static guint duration(struct line *line, const char *text)
{
    char *end;
    guint64 value = g_ascii_strtoull(text, &end, 10);
    if (strcmp(end, "s") == 0)
        return (guint)value * 1000;
    if (strcmp(end, "ms") != 0)
        fail(line, "\"%s\" is no time", text);
    return (guint)value;
}

static const struct instance *find_instance(const struct line *line, const char *name)
{
    return config_find(sim_config(line->sim), "instance", name, NULL);
}

/* --- commands --- */

static void submit(struct line *line, json_t *opcode)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = json_to_text(opcode);
    guint64 job = sim_submit(line->sim, opcode, &error);
    if (job == 0)
        fail(line, "%s was refused: %s", text, error->message);
    else
        sim_log(line->sim, "operator: job %" G_GUINT64_FORMAT " %s", job, text);
}

static void do_create(struct line *line)
{
    bool mirror = is(line, 2, "mirror");
    json_t *opcode =
        json_make("{ss ss ss si ss}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name", word(line, 1),
                  "disk_template", word(line, 2), "memory", 64, "pnode", word(line, 3));
    if (mirror) {
        json_object_set_new(opcode, "disks", json_make("[{si}]", "size", 8));
        json_object_set_new(opcode, "snode", json_string(word(line, 4)));
    }
    submit(line, opcode);
}

/* OP_NAME key=value … */
static void do_submit(struct line *line)
{
    json_t *opcode = json_make("{ss}", "OP_ID", word(line, 1));
    for (guint i = 2; i < line->count; i++) {
        g_auto(GStrv) pair = g_strsplit(line->words[i], "=", 2);
        guint64 number;
        json_t *value = g_ascii_string_to_unsigned(pair[1], 10, 0, G_MAXINT32, &number, NULL)
                            ? json_integer((json_int_t)number)
                        : strcmp(pair[1], "true") == 0  ? json_true()
                        : strcmp(pair[1], "false") == 0 ? json_false()
                                                        : json_string(pair[1]);
        json_object_set_new(opcode, pair[0], value);
    }
    submit(line, opcode);
}

/* tag|untag KIND NAME TAG; `{now+N}` in a tag is a time. */
static void do_tag(struct line *line)
{
    GString *tag = g_string_new(word(line, 3));
    const char *mark = strstr(tag->str, "{now+");
    if (mark != NULL) {
        guint64 seconds = g_ascii_strtoull(mark + 5, NULL, 10) + 1700000001 +
                          (guint64)sim_now_ms(line->sim) / 1000;
        g_string_truncate(tag, (gsize)(mark - tag->str));
        g_string_append_printf(tag, "%" G_GUINT64_FORMAT, seconds);
    }
    g_string_prepend(tag, "ganeti:watcher:autorepair:");
    submit(line,
           json_make("{ss ss ss s[s]}", "OP_ID", is(line, 0, "tag") ? "OP_TAGS_SET" : "OP_TAGS_DEL",
                     "kind", word(line, 1), "name", is(line, 1, "cluster") ? "" : word(line, 2),
                     "tags", tag->str));
    g_string_free(tag, TRUE);
}

static void do_offline(struct line *line)
{
    submit(line,
           json_make("{ss ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", word(line, 1),
                     "offline", word(line, 2), "statement", "the script says so"));
}

static void do_power(struct line *line)
{
    sim_power(line->sim, word(line, 1), is(line, 2, "on"));
}

static void do_link(struct line *line)
{
    sim_link(line->sim, word(line, 1), is(line, 2, "up"));
}

static void do_kill(struct line *line)
{
    if (is(line, 1, "job")) {
        if (!sim_kill_job(line->sim, 0))
            fail(line, "no job runs");
        return;
    }
    sim_kill(line->sim, word(line, 1), word(line, 2));
}

/* The disk below a replica fails. */
static void do_break(struct line *line)
{
    const struct instance *instance = find_instance(line, word(line, 1));
    if (instance == NULL || *instance->secondary_node == '\0')
        fail(line, "%s has no replica", word(line, 1));
    else
        fake_host_export_fail(sim_host(line->sim, instance->secondary_node), instance->uuid);
}

/* For whoever writes a script: what a host was asked to do so far. */
static void do_show(struct line *line)
{
    const GPtrArray *calls = fake_host_calls(sim_host(line->sim, word(line, 1)));
    for (guint i = 0; i < calls->len; i++)
        sim_log(line->sim, "host %s: %s", word(line, 1), (const char *)calls->pdata[i]);
}

static void do_wait(struct line *line)
{
    sim_pass(line->sim, duration(line, word(line, 1)));
}

/* --- expectations --- */

static bool decision_is(struct line *line, const struct instance *instance, const char *state)
{
    g_autoptr(GPtrArray) all = config_list(sim_config(line->sim), "decision");
    const struct decision *latest = NULL;
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        if (strcmp(decision->subject, instance->uuid) == 0 &&
            (latest == NULL || decision->at_us > latest->at_us))
            latest = decision;
    }
    return latest != NULL && strcmp(latest->state, state) == 0;
}

static bool tag_matches(struct line *line, const struct instance *instance, const char *pattern)
{
    g_autoptr(GPtrArray) tags = config_tags(sim_config(line->sim), TAG_INSTANCE, instance->uuid);
    g_autofree char *glob = g_strdup_printf("ganeti:watcher:autorepair:%s", pattern);
    for (guint i = 0; i < tags->len; i++)
        if (g_pattern_match_simple(glob, tags->pdata[i]))
            return true;
    return false;
}

static bool runs_on(struct line *line, const struct instance *instance, const char *node)
{
    guint64 generation = 0;
    return fake_host_state(sim_host(line->sim, node), instance->uuid, &generation) ==
               GUEST_RUNNING &&
           generation == instance->generation;
}

/* instance NAME running on NODE | healthy | stopped | without replica | decision STATE… | tag
 * PATTERN | no-tag PATTERN */
static bool instance_is(struct line *line)
{
    const struct instance *instance = find_instance(line, word(line, 2));
    if (instance == NULL)
        return is(line, 3, "gone");
    const struct replica *replica =
        *instance->replica != '\0'
            ? config_get(sim_config(line->sim), "replica", instance->replica, NULL)
            : NULL;
    if (is(line, 3, "running")) {
        return runs_on(line, instance, word(line, 5));
    }
    if (is(line, 3, "stopped"))
        return instance->admin_state == ADMIN_DOWN && *instance->holder == '\0' &&
               fake_hosts_running(sim_hosts(line->sim), instance->uuid) == 0;
    if (is(line, 3, "healthy"))
        return instance->task_state == TASK_NONE && replica != NULL &&
               replica->state == REPLICA_IN_SYNC &&
               runs_on(line, instance, sim_node_name(line->sim, instance->primary_node));
    if (is(line, 3, "replica"))
        return replica != NULL && is(line, 4, enum_word(&replica_state_words, (int)replica->state));
    if (is(line, 3, "decision")) {
        GString *state = g_string_new(NULL);
        for (guint i = 4; i < line->count && !is(line, i, "within"); i++)
            g_string_append_printf(state, "%s%s", state->len > 0 ? " " : "", line->words[i]);
        bool same = decision_is(line, instance, state->str);
        g_string_free(state, TRUE);
        return same;
    }
    if (is(line, 3, "tag"))
        return tag_matches(line, instance, word(line, 4));
    if (is(line, 3, "no-tag"))
        return !tag_matches(line, instance, word(line, 4));
    fail(line, "what is \"%s\"?", word(line, 3));
    return false;
}

static bool expectation_holds(struct line *line)
{
    if (is(line, 1, "instance"))
        return instance_is(line);
    if (is(line, 1, "jobs")) {
        g_autofree char *count = g_strdup_printf("%u", config_count(sim_config(line->sim), "job"));
        return is(line, 2, count);
    }
    if (is(line, 1, "rest")) {
        g_autofree char *unrest = sim_unrest(line->sim);
        return unrest == NULL;
    }
    fail(line, "what is \"%s\"?", word(line, 1));
    return false;
}

static void do_expect(struct line *line)
{
    guint limit = 0;
    for (guint i = 1; i + 1 < line->count; i++)
        if (is(line, i, "within"))
            limit = duration(line, line->words[i + 1]);
    gint64 end = sim_now_ms(line->sim) + limit;
    while (!expectation_holds(line) && line->failure == NULL && sim_problem(line->sim) == NULL) {
        if (sim_now_ms(line->sim) >= end) {
            g_autofree char *unrest = is(line, 1, "rest") ? sim_unrest(line->sim) : NULL;
            fail(line, "it did not come true%s%s", unrest != NULL ? ": " : "",
                 unrest != NULL ? unrest : "");
        }
        sim_pass(line->sim, STEP_MS);
    }
}

static const struct {
    const char *name;
    void (*run)(struct line *line);
} commands[] = {
    {"create", do_create},   {"submit", do_submit}, {"tag", do_tag},   {"untag", do_tag},
    {"offline", do_offline}, {"power", do_power},   {"link", do_link}, {"kill", do_kill},
    {"break", do_break},     {"show", do_show},     {"wait", do_wait}, {"expect", do_expect},
};

static void run_line(struct line *line)
{
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++)
        if (is(line, 0, commands[i].name)) {
            commands[i].run(line);
            return;
        }
    fail(line, "there is no command \"%s\"", word(line, 0));
}

char *script_run(struct sim *sim, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_strstrip(lines[i]);
        if (*lines[i] == '\0' || *lines[i] == '#')
            continue;
        g_auto(GStrv) words = g_strsplit(lines[i], " ", -1);
        struct line line = {
            .sim = sim, .number = i + 1, .words = words, .count = g_strv_length(words)};
        run_line(&line);
        if (line.failure == NULL && sim_problem(sim) != NULL)
            fail(&line, "%s", sim_problem(sim));
        if (line.failure != NULL)
            return line.failure;
    }
    return NULL;
}

/* The language of scenario scripts; see script.h and README. */
#include "script_private.h"

#include <string.h>

void script_fail(struct line *line, const char *format, ...)
{
    va_list args;
    if (line->failure != NULL)
        return;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    line->failure = g_strdup_printf("line %u: %s", line->number, text);
}

const char *script_word(const struct line *line, guint index)
{
    return index < line->count ? line->words[index] : "";
}

bool script_is(const struct line *line, guint index, const char *text)
{
    return strcmp(script_word(line, index), text) == 0;
}

/* "40s" or "500ms" at the end of the line, after "within". */
guint script_duration(struct line *line, const char *text)
{
    char *end;
    guint64 value = g_ascii_strtoull(text, &end, 10);
    if (strcmp(end, "s") == 0)
        return (guint)value * 1000;
    if (strcmp(end, "ms") != 0)
        script_fail(line, "\"%s\" is no time", text);
    return (guint)value;
}

const struct instance *script_find_instance(const struct line *line, const char *name)
{
    return config_find(sim_config(line->sim), "instance", name, NULL);
}

static guint64 seconds_now(const struct line *line)
{
    return 1700000001 + (guint64)sim_now_ms(line->sim) / 1000;
}

/* --- commands --- */

static void submit(struct line *line, json_t *opcode)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = json_to_text(opcode);
    guint64 job = sim_submit(line->sim, opcode, &error);
    if (job == 0)
        script_fail(line, "%s was refused: %s", text, error->message);
    else
        sim_log(line->sim, "operator: job %" G_GUINT64_FORMAT " %s", job, text);
}

/* create NAME TEMPLATE NODE [SECONDARY] [disks=N] [os=IMAGE] [start=no] */
static void do_create(struct line *line)
{
    guint64 disks = script_is(line, 2, "diskless") ? 0 : 1;
    json_t *opcode = json_make("{ss ss ss si ss}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name",
                               script_word(line, 1), "disk_template", script_word(line, 2),
                               "memory", 64, "pnode", script_word(line, 3));
    for (guint i = 4; i < line->count; i++) {
        const char *word = script_word(line, i);
        if (g_str_has_prefix(word, "disks="))
            disks = g_ascii_strtoull(word + strlen("disks="), NULL, 10);
        else if (g_str_has_prefix(word, "os="))
            json_object_set_new(opcode, "os_type", json_string(word + strlen("os=")));
        else if (strcmp(word, "start=no") == 0)
            json_object_set_new(opcode, "start", json_false());
        else
            json_object_set_new(opcode, "snode", json_string(word));
    }
    json_t *list = json_array();
    for (guint64 i = 0; i < disks; i++)
        json_array_append_new(list, json_make("{si}", "size", 8));
    json_object_set_new(opcode, "disks", list);
    submit(line, opcode);
}

/* key=value … from a word on, into an opcode. `{now+N}` as a value is a time. */
static void add_pairs(const struct line *line, guint first, json_t *opcode)
{
    for (guint i = first; i < line->count; i++) {
        g_auto(GStrv) pair = g_strsplit(line->words[i], "=", 2);
        const char *text = pair[1] != NULL ? pair[1] : "";
        guint64 number;
        json_t *value = g_str_has_prefix(text, "{now+")
                            ? json_integer((json_int_t)(seconds_now(line) +
                                                        g_ascii_strtoull(text + 5, NULL, 10)))
                        : g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT32, &number, NULL)
                            ? json_integer((json_int_t)number)
                        : *text == '['               ? json_loads(text, 0, NULL)
                        : strcmp(text, "true") == 0  ? json_true()
                        : strcmp(text, "false") == 0 ? json_false()
                                                     : json_string(text);
        json_object_set_new(opcode, pair[0], value);
    }
}

/* OP_NAME key=value … */
static void do_submit(struct line *line)
{
    json_t *opcode = json_make("{ss}", "OP_ID", script_word(line, 1));
    add_pairs(line, 2, opcode);
    submit(line, opcode);
}

/* What Submit answers when it refuses, as a pattern: refused PATTERN OP_NAME key=value … */
static void do_refused(struct line *line)
{
    g_autoptr(GError) error = NULL;
    json_t *opcode = json_make("{ss}", "OP_ID", script_word(line, 2));
    add_pairs(line, 3, opcode);
    if (sim_submit(line->sim, opcode, &error) != 0)
        script_fail(line, "it was not refused");
    else if (!g_pattern_match_simple(script_word(line, 1), error->message))
        script_fail(line, "it was refused with: %s", error->message);
}

/* modify cluster key=value … */
static void do_modify(struct line *line)
{
    json_t *opcode = json_make("{ss}", "OP_ID", "OP_CLUSTER_SET_PARAMS");
    add_pairs(line, 2, opcode);
    submit(line, opcode);
}

/* migrate NAME key=value … */
static void do_migrate(struct line *line)
{
    json_t *opcode =
        json_make("{ss ss}", "OP_ID", "OP_INSTANCE_MIGRATE", "instance_name", script_word(line, 1));
    add_pairs(line, 2, opcode);
    submit(line, opcode);
}

/* evacuate NODE key=value … */
static void do_evacuate(struct line *line)
{
    json_t *opcode =
        json_make("{ss ss}", "OP_ID", "OP_NODE_EVACUATE", "node_name", script_word(line, 1));
    add_pairs(line, 2, opcode);
    submit(line, opcode);
}

/* advise NODE avoid|withdraw [until] */
static void do_advise(struct line *line)
{
    json_t *opcode = json_make("{ss ss ss ss}", "OP_ID", "OP_ADVICE_SET", "node_name",
                               script_word(line, 1), "author", "script", "why", "new disks");
    if (script_is(line, 2, "withdraw"))
        json_object_set_new(opcode, "withdraw", json_true());
    add_pairs(line, 3, opcode);
    submit(line, opcode);
}

/* drain NODE yes|no */
static void do_drain(struct line *line)
{
    submit(line, json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name",
                           script_word(line, 1), "drained", script_word(line, 2)));
}

/* continue: a person releases the storm brake. */
static void do_continue(struct line *line)
{
    submit(line,
           json_make("{ss ss}", "OP_ID", "OP_REPAIR_CONTINUE", "statement", "the script says so"));
}

/* tag|untag KIND NAME TAG; `{now+N}` in a tag is a time. */
static void do_tag(struct line *line)
{
    GString *tag = g_string_new(script_word(line, 3));
    const char *mark = strstr(tag->str, "{now+");
    if (mark != NULL) {
        guint64 seconds = g_ascii_strtoull(mark + 5, NULL, 10) + seconds_now(line);
        g_string_truncate(tag, (gsize)(mark - tag->str));
        g_string_append_printf(tag, "%" G_GUINT64_FORMAT, seconds);
    }
    g_string_prepend(tag, "ganeti:watcher:autorepair:");
    submit(line,
           json_make("{ss ss ss s[s]}", "OP_ID",
                     script_is(line, 0, "tag") ? "OP_TAGS_SET" : "OP_TAGS_DEL", "kind",
                     script_word(line, 1), "name",
                     script_is(line, 1, "cluster") ? "" : script_word(line, 2), "tags", tag->str));
    g_string_free(tag, TRUE);
}

static void do_offline(struct line *line)
{
    json_t *opcode = json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name",
                               script_word(line, 1), "offline", script_word(line, 2));
    if (script_is(line, 2, "yes"))
        json_object_set_new(opcode, "statement", json_string("the script says so"));
    submit(line, opcode);
}

static void do_power(struct line *line)
{
    sim_power(line->sim, script_word(line, 1), script_is(line, 2, "on"));
}

static void do_link(struct line *line)
{
    sim_link(line->sim, script_word(line, 1), script_is(line, 2, "up"));
}

static void do_kill(struct line *line)
{
    if (script_is(line, 1, "job")) {
        if (!sim_kill_job(line->sim, 0))
            script_fail(line, "no job runs");
        return;
    }
    if (script_is(line, 1, "qemu")) {
        const struct instance *instance = script_find_instance(line, script_word(line, 2));
        if (instance == NULL)
            script_fail(line, "there is no instance %s", script_word(line, 2));
        else
            sim_kill_guest(line->sim, instance->uuid, instance->holder);
        return;
    }
    sim_kill(line->sim, script_word(line, 1), script_word(line, 2));
}

/* slow NODE TIME: its guests' memory takes longer to be sent. */
static void do_slow(struct line *line)
{
    fake_host_set_slow(sim_host(line->sim, script_word(line, 1)),
                       script_duration(line, script_word(line, 2)));
}

/* slow-start NODE TIME: so long it takes until the process of a guest is made there. */
static void do_slow_start(struct line *line)
{
    fake_host_set_prepare_ms(sim_host(line->sim, script_word(line, 1)),
                             script_duration(line, script_word(line, 2)));
}

/* stop|go DAEMON NODE, stop|go job: SIGSTOP, SIGCONT */
static void do_stop(struct line *line)
{
    bool stop = script_is(line, 0, "stop");
    if (!script_is(line, 1, "job"))
        sim_stop(line->sim, script_word(line, 1), script_word(line, 2), stop);
    else if (!stop)
        sim_continue_jobs(line->sim);
    else if (!sim_stop_job(line->sim))
        script_fail(line, "no job runs");
}

/* mute NODE NODE yes|no: the second gets nothing that the first one sends. */
static void do_mute(struct line *line)
{
    sim_one_way(line->sim, script_word(line, 1), script_word(line, 2), script_is(line, 3, "yes"));
}

/* congest NODE TIME: its messages take up to so long. */
static void do_congest(struct line *line)
{
    sim_congest(line->sim, script_word(line, 1), script_duration(line, script_word(line, 2)));
}

/* cancel JOB */
static void do_cancel(struct line *line)
{
    sim_log(line->sim, "operator: cancels job %s", script_word(line, 1));
    if (!sim_cancel(line->sim, g_ascii_strtoull(script_word(line, 1), NULL, 10)))
        script_fail(line, "job %s cannot be canceled", script_word(line, 1));
}

/* lose-images NAME primary|replica [DISK] */
static void do_lose_images(struct line *line)
{
    const struct instance *instance = script_find_instance(line, script_word(line, 1));
    const char *disk = script_word(line, 3);
    bool replica = script_is(line, 2, "replica");
    if (instance == NULL)
        script_fail(line, "there is no instance %s", script_word(line, 1));
    else if (*disk != '\0')
        sim_lose_disk(line->sim, instance, replica, (guint)g_ascii_strtoull(disk, NULL, 10));
    else
        sim_lose_images(line->sim, instance, replica);
}

/* disks NODE fail|work|full|free */
static void do_disks(struct line *line)
{
    struct fake_host *host = sim_host(line->sim, script_word(line, 1));
    bool room = script_is(line, 2, "full") || script_is(line, 2, "free");
    if (!room) {
        sim_fail_disks(line->sim, script_word(line, 1), script_is(line, 2, "fail"));
        return;
    }
    sim_log(line->sim, "fate: the disks of %s are %s", script_word(line, 1), script_word(line, 2));
    fake_host_set_full(host, script_is(line, 2, "full"));
}

/* hang|unhang NODE INSTANCE|space|list|shared|sources|bridges */
static void do_hang(struct line *line)
{
    const struct instance *instance =
        config_find(sim_config(line->sim), "instance", script_word(line, 2), NULL);
    sim_hang(line->sim, script_word(line, 1),
             instance != NULL ? instance->uuid : script_word(line, 2), script_is(line, 0, "hang"));
}

static void do_root(struct line *line)
{
    if (script_is(line, 2, "full"))
        sim_fill_state(line->sim, script_word(line, 1));
    else if (script_is(line, 2, "hang"))
        sim_hang_state(line->sim, script_word(line, 1));
    else
        sim_read_only(line->sim, script_word(line, 1), script_is(line, 2, "read-only"));
}

/* The next `stale` that a master accepts is lost with it. */
static void do_lose_word(struct line *line)
{
    sim_lose_word(line->sim);
}

static void do_clock(struct line *line)
{
    if (script_is(line, 2, "stands"))
        sim_stop_clock(line->sim, script_word(line, 1));
    else
        sim_set_clock(line->sim, script_word(line, 1),
                      g_ascii_strtoll(script_word(line, 2), NULL, 10));
}

/* stray NODE process|file NAME yes|no: what no record knows is there. */
static void do_stray(struct line *line)
{
    bool there = script_is(line, 4, "yes");
    sim_log(line->sim, "fate: %s %s is %s on %s", script_word(line, 2), script_word(line, 3),
            there ? "there" : "gone", script_word(line, 1));
    (script_is(line, 2, "file") ? fake_host_set_file : fake_host_set_process)(
        sim_host(line->sim, script_word(line, 1)), script_word(line, 3), there);
}

/* What the running guest writes fails, and its hypervisor holds it for that. */
static void do_hold(struct line *line)
{
    const struct instance *instance = script_find_instance(line, script_word(line, 1));
    if (instance == NULL)
        script_fail(line, "there is no instance %s", script_word(line, 1));
    else
        fake_host_hold(sim_host(line->sim, instance->primary_node), instance->uuid);
}

/* The disk below a replica fails. */
static void do_break(struct line *line)
{
    const struct instance *instance = script_find_instance(line, script_word(line, 1));
    if (instance == NULL || *instance->secondary_node == '\0')
        script_fail(line, "%s has no replica", script_word(line, 1));
    else
        fake_host_export_fail(sim_host(line->sim, instance->secondary_node), instance->uuid);
}

/* For whoever writes a script: what a host was asked to do so far. */
static void do_show(struct line *line)
{
    const GPtrArray *calls = fake_host_calls(sim_host(line->sim, script_word(line, 1)));
    for (guint i = 0; i < calls->len; i++)
        sim_log(line->sim, "host %s: %s", script_word(line, 1), (const char *)calls->pdata[i]);
}

static void do_luxi(struct line *line)
{
    g_autoptr(GError) error = NULL;
    const char *text = script_word(line, 2);
    json_t *args = json_parse_limited(text, strlen(text), KIB(64), &error);
    json_autoptr answer =
        args != NULL ? sim_ask(line->sim, script_word(line, 1), args, &error) : NULL;
    if (error != NULL)
        script_fail(line, "%s: %s", script_word(line, 1), error->message);
}

static void do_wait(struct line *line)
{
    sim_pass(line->sim, script_duration(line, script_word(line, 1)));
}

static const struct {
    const char *name;
    void (*run)(struct line *line);
} commands[] = {
    {"create", do_create},     {"submit", do_submit},
    {"refused", do_refused},   {"modify", do_modify},
    {"migrate", do_migrate},   {"evacuate", do_evacuate},
    {"advise", do_advise},     {"drain", do_drain},
    {"continue", do_continue}, {"tag", do_tag},
    {"untag", do_tag},         {"offline", do_offline},
    {"power", do_power},       {"link", do_link},
    {"kill", do_kill},         {"stop", do_stop},
    {"go", do_stop},           {"mute", do_mute},
    {"congest", do_congest},   {"cancel", do_cancel},
    {"slow", do_slow},         {"lose-images", do_lose_images},
    {"disks", do_disks},       {"break", do_break},
    {"hang", do_hang},         {"unhang", do_hang},
    {"root", do_root},         {"clock", do_clock},
    {"luxi", do_luxi},         {"show", do_show},
    {"wait", do_wait},         {"slow-start", do_slow_start},
    {"expect", script_expect}, {"lose-word", do_lose_word},
    {"hold", do_hold},         {"stray", do_stray},
};

static void run_line(struct line *line)
{
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++)
        if (script_is(line, 0, commands[i].name)) {
            commands[i].run(line);
            return;
        }
    script_fail(line, "there is no command \"%s\"", script_word(line, 0));
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
            script_fail(&line, "%s", sim_problem(sim));
        if (line.failure != NULL)
            return line.failure;
    }
    return NULL;
}

/*
 * Scenarios of storage (golden.h) in the world of storage_sim.h, where nothing is left to chance.
 * The log is made of what is committed and of acts on data, in virtual time. cluster.json: "etcd"
 * says which engine, "cleans" whether automatic cleanup is on (after two of MS_DOWN_S).
 *
 * Commands of a script, one a line:
 *   create NAME BACKEND   delete NAME   extend NAME SIZE   reset NAME STATUS
 *   slow TIME (each call at a back end takes so long)   hang|unhang BACKEND
 *   end|start|kill|stop|go NODE (its volumed)   namesake NODE (it stops, another of its name
 * begins) former NODE (it goes on)   stop-master|go-master (SIGSTOP of its wconfd) wait TIME expect
 * NAME STATUS within TIME   expect rows COUNT   expect service NODE BACKEND up|down
 * A node is nodeN, @NAME (whose member works on that volume), or @ (the same as last)
 */
#include <string.h>

#include "base/log.h"
#include "golden.h"
#include "storage_sim.h"

struct line {
    struct storage_world *storage;
    char **words;
    guint count, number;
    char *failure;
};

static const char *word(const struct line *line, guint index)
{
    return index < line->count ? line->words[index] : "";
}

static void fail(struct line *line, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void fail(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    if (!line->failure)
        line->failure = g_strdup_printf("line %u: %s", line->number, text);
}

static guint time_of(struct line *line, const char *text)
{
    char *end;
    guint64 value = g_ascii_strtoull(text, &end, 10);
    if (!strcmp(end, "ms"))
        return (guint)value;
    if (strcmp(end, "s") != 0)
        fail(line, "\"%s\" is no time", text);
    return (guint)value * 1000;
}

static struct storage_host *noted; /* who was meant by @NAME last */

/* nodeN; @NAME: whose member works on that volume; @: the same as last. */
static struct storage_host *host_of(struct line *line, guint at)
{
    struct storage_world *storage = line->storage;
    const char *name = word(line, at);
    guint64 number =
        g_str_has_prefix(name, "node") ? g_ascii_strtoull(name + strlen("node"), NULL, 10) : 0;
    g_autoptr(GPtrArray) rows = config_list(storage->truth, "worker");
    const struct volume *volume =
        *name == '@' && name[1] ? config_find(storage->truth, "volume", name + 1, NULL) : NULL;
    for (guint i = 0; volume && i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        for (guint j = 0; !strcmp(row->resource_id, volume->uuid) && j < MS_HOSTS; j++)
            if (storage->hosts[j].host && storage_works_on(storage, &storage->hosts[j], row))
                noted = &storage->hosts[j];
    }
    if (number && number <= storage->ms->hosts_count)
        return &storage->hosts[number - 1];
    if (*name == '@' && noted)
        return noted;
    fail(line, "there is no node \"%s\"", name);
    return &storage->hosts[0];
}

/* --- commands --- */

static void do_work(struct line *line)
{
    g_autofree char *operation = g_strdup_printf("%s-volume", word(line, 0));
    json_t *args = json_make("{s:s,s:s}", "resource_type", "Volume", "operation", operation);
    bool creates = !strcmp(word(line, 0), "create");
    json_object_set_new(args, creates ? "name" : "resource", json_string(word(line, 1)));
    if (creates && line->count > 2)
        json_object_set_new(args, "backend", json_string(word(line, 2)));
    if (creates || line->count > 2)
        json_object_set_new(args, "size",
                            json_integer(creates ? 1 : strtol(word(line, 2), NULL, 10)));
    storage_person(line->storage, "accept_work", args);
}

static void do_reset(struct line *line)
{
    storage_person(line->storage, "reset_state",
                   json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", word(line, 1),
                             "status", word(line, 2)));
}

static void do_slow(struct line *line)
{
    line->storage->slow_ms = time_of(line, word(line, 1));
}

static void do_hang(struct line *line)
{
    guint index = !strcmp(word(line, 1), "b2");
    line->storage->hanging[index] = !strcmp(word(line, 0), "hang");
}

static void do_process(struct line *line)
{
    struct storage_host *host = host_of(line, 1);
    const char *what = word(line, 0);
    if (!strcmp(what, "end"))
        storage_end_volumed(host);
    else if (!strcmp(what, "start"))
        storage_start_volumed(host);
    else if (!strcmp(what, "kill"))
        storage_kill_volumed(host);
    else if (!strcmp(what, "namesake"))
        storage_namesake(host);
    else if (!strcmp(what, "former"))
        storage_former_goes(host);
    else
        storage_pause_volumed(host, !strcmp(what, "stop"));
}

static void do_master(struct line *line)
{
    struct ms *ms = line->storage->ms;
    ms_freeze(&ms->hosts[ms->newest_host], !strcmp(word(line, 0), "stop-master"));
}

static void do_scheduler(struct line *line)
{
    struct storage_host *host = host_of(line, 1);
    (!strcmp(word(line, 0), "end-scheduler") ? storage_end_scheduler
                                             : storage_start_scheduler)(host);
}

static void do_clean(struct line *line)
{
    storage_person(line->storage, "request_cleanup", json_make("{s:s}", "requester", "person"));
}

static void do_wait(struct line *line)
{
    ms_pass(line->storage->ms, time_of(line, word(line, 1)));
}

/* --- expectations --- */

static const char *status_of(const struct line *line)
{
    const struct volume *volume = config_find(line->storage->truth, "volume", word(line, 1), NULL);
    return volume ? enum_word(&volume_status_words, (int)volume->status) : "gone";
}

static void expect_volume(struct line *line)
{
    guint within = line->count > 4 ? time_of(line, word(line, 4)) : 0;
    for (guint waited = 0; strcmp(status_of(line), word(line, 2)) != 0; waited += 100) {
        if (waited >= within || line->storage->ms->problem) {
            fail(line, "%s is %s", word(line, 1), status_of(line));
            return;
        }
        ms_pass(line->storage->ms, 100);
    }
}

static void expect_service(struct line *line)
{
    struct storage_host *host = host_of(line, 2);
    g_autofree char *name =
        g_strdup_printf("cinder-volume node%u@%s", host->host->index + 1, word(line, 3));
    g_autoptr(GPtrArray) all = config_list(line->storage->truth, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        g_autofree char *is = config_storage_service_name(line->storage->truth, service);
        const char *state = service->state == STORAGE_DOWN ? "down" : "up";
        if (strcmp(is, name) != 0)
            continue;
        if (strcmp(state, word(line, 4)) != 0)
            fail(line, "%s is %s", name, state);
        return;
    }
    fail(line, "there is no %s", name);
}

static void do_expect(struct line *line)
{
    guint rows = config_count(line->storage->truth, "worker");
    if (!strcmp(word(line, 1), "service"))
        expect_service(line);
    else if (strcmp(word(line, 1), "rows") != 0)
        expect_volume(line);
    else if (rows != strtoul(word(line, 2), NULL, 10))
        fail(line, "there are %u rows", rows);
}

static const struct {
    const char *name;
    void (*run)(struct line *line);
} commands[] = {{"create", do_work},
                {"delete", do_work},
                {"extend", do_work},
                {"reset", do_reset},
                {"slow", do_slow},
                {"hang", do_hang},
                {"unhang", do_hang},
                {"end", do_process},
                {"start", do_process},
                {"kill", do_process},
                {"stop", do_process},
                {"go", do_process},
                {"namesake", do_process},
                {"former", do_process},
                {"wait", do_wait},
                {"end-scheduler", do_scheduler},
                {"start-scheduler", do_scheduler},
                {"clean", do_clean},
                {"stop-master", do_master},
                {"go-master", do_master},
                {"expect", do_expect}};

static void run_line(struct line *line)
{
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++)
        if (!strcmp(commands[i].name, word(line, 0))) {
            commands[i].run(line);
            return;
        }
    fail(line, "there is no command \"%s\"", word(line, 0));
}

static void split(struct line *line, const char *text)
{
    line->words = g_strsplit_set(text, " ", -1);
    line->count = g_strv_length(line->words);
}

static char *run_script(struct storage_world *storage, const char *script)
{
    g_auto(GStrv) lines = g_strsplit(script, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        struct line line = {.storage = storage, .number = i + 1};
        if (!*lines[i])
            continue;
        storage_tell(storage, "> %s", lines[i]);
        split(&line, lines[i]);
        run_line(&line);
        ms_pass(storage->ms, 1);
        g_strfreev(line.words);
        if (line.failure || storage->ms->problem)
            return line.failure ? line.failure : g_strdup(storage->ms->problem);
    }
    return NULL;
}

static char *run(const char *script, const json_t *cluster, GString *log)
{
    struct ms_counts masters = {0};
    struct storage_counts counts = {0};
    guint64 seed = json_is_true(json_object_get(cluster, "cleans")) ? 4 : 2;
    seed += json_is_true(json_object_get(cluster, "etcd"));
    struct ms *ms = ms_new(seed, &storage_plain_theme, &masters, &counts);
    struct storage_world *storage = storage_of(ms);
    storage->log = log;
    noted = NULL;
    ms_pass(ms, 15000);
    char *failure = run_script(storage, script);
    storage->log = NULL;
    ms->over = true;
    ms_free(ms);
    return failure;
}

static void tell_line(const char *line, void *data)
{
    if (data)
        g_test_message("%s", line);
}

int main(int argc, char **argv)
{
    log_set_sink(tell_line, g_getenv("FETTLE_SIM_LOG") ? argv : NULL);
    return golden_main(argc, argv, run);
}

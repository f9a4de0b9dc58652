/*
 * `fettle cluster engine status`: which engine this candidate uses, and how its members are. It
 * asks the members themselves, from this node, with this node's certificate: so it works without a
 * master and without any daemon of ours. Exit code 1 if something is wrong.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/engine.h"
#include "cli/foreign.h"
#include "cli/wconfd.h"
#include "io/files.h"

#define WORDS "(status|etcd|sqlite|renew NODE) [--yes]"
#define LAG_ENTRIES 5000 /* of Raft's log; etcd sends a whole snapshot to who lacks so many */

/* --- judging --- */

static void advise(struct survey *survey, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void advise(struct survey *survey, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(survey->advice, foreign_text(text));
}

static guint64 newest_index(const struct survey *survey)
{
    guint64 newest = 0;
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        newest = MAX(newest, asked->status->index);
    }
    return newest;
}

static guint64 lag_of(const struct survey *survey, const struct asked *asked)
{
    return *asked->status->id ? newest_index(survey) - asked->status->applied : 0;
}

static void judge_member(struct survey *survey, const struct asked *asked)
{
    const struct member_status *status = asked->status;
    const char *name = asked->member->name;
    if (!status->healthy)
        advise(survey,
               "%s: %s; see log/etcd.log and the log of fettle-noded there; if they say that its "
               "data is damaged, give it that of the others: fettle cluster engine renew %s",
               name, *status->why ? status->why : "no answer in time", name);
    for (guint i = 0; i < status->alarms->len; i++)
        if (!strcmp(status->alarms->pdata[i], "NOSPACE"))
            advise(survey,
                   "%s: its file has reached its limit of %zu MiB, and no member takes changes; "
                   "its node daemon makes room and takes the alarm back within two minutes; if it "
                   "does not, the log of fettle-noded there says why",
                   name, LIMIT_ETCD_STORE_BYTES >> 20);
        else
            advise(survey,
                   "%s: alarm %s: its data differs from the others'; give it theirs: fettle "
                   "cluster engine renew %s",
                   name, (const char *)status->alarms->pdata[i], name);
    if (status->healthy && lag_of(survey, asked) > LAG_ENTRIES)
        advise(survey,
               "%s: it is %" G_GUINT64_FORMAT
               " entries behind; its disk or its connection is too slow",
               name, lag_of(survey, asked));
    if (status->healthy && status->learner)
        advise(survey, "%s: it has no vote yet; it gets one when it is up to date", name);
}

static const char *who_is_right(const struct survey *survey)
{
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, survey->members->len);
    for (guint i = 0; i < survey->members->len; i++)
        contents[i] = ((const struct asked *)survey->members->pdata[i])->content;
    return etcd_contents_who_is_right(contents, survey->members->len);
}

/* What was asked at one revision. */
static void judge_contents(struct survey *survey)
{
    g_autoptr(GString) names = g_string_new(NULL);
    if (survey->verdict == ETCD_CONTENTS_SAME)
        return;
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        const char *name = asked->member->name;
        if (asked->content.odd)
            advise(survey,
                   "%s: its data is damaged: at revision %" G_GUINT64_FORMAT
                   " it is not what most members have; give it theirs: fettle cluster engine "
                   "renew %s",
                   name, survey->revision, name);
        if (asked->content.known)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", name);
    }
    if (survey->verdict == ETCD_CONTENTS_UNDECIDED)
        advise(survey,
               "%s: their data differs at revision %" G_GUINT64_FORMAT
               ", and of so many nobody can say which is right; %s",
               names->str, survey->revision, who_is_right(survey));
}

/* Members that etcd knows and etc/engine.json does not, or the other way round. */
static void judge_list(struct survey *survey, const GPtrArray *listed)
{
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        if (!etcd_members_find(listed, asked->member->peer_url))
            advise(survey, "%s: it is in etc/engine.json, but no member of etcd",
                   asked->member->name);
    }
    for (guint i = 0; i < listed->len; i++) {
        const struct etcd_listed *one = listed->pdata[i];
        bool known = false;
        for (guint k = 0; k < survey->members->len; k++) {
            const struct asked *asked = survey->members->pdata[k];
            known = known || !strcmp(asked->member->peer_url, one->peer_url);
        }
        if (!known)
            advise(survey, "%s (%s) is a member of etcd, but not in etc/engine.json of this node",
                   *one->name ? one->name : "a member that has not started", one->peer_url);
    }
}

static void judge(struct survey *survey)
{
    const GPtrArray *listed = NULL;
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        survey->healthy += asked->status->healthy && !asked->status->learner;
        survey->voters += !asked->status->learner;
        if (asked->listed && (!listed || asked->status->healthy))
            listed = asked->listed;
        judge_member(survey, asked);
    }
    judge_contents(survey);
    if (survey->healthy < survey->voters / 2 + 1)
        advise(survey,
               "%u of %u members with a vote are healthy, and %u are needed: nothing can be "
               "changed until more of them run and reach each other",
               survey->healthy, survey->voters, survey->voters / 2 + 1);
    if (listed)
        judge_list(survey, listed);
}

/* --- showing --- */

static const char *role_of(const struct asked *asked)
{
    if (!asked->status->healthy)
        return "-";
    return asked->status->leads ? "leader" : asked->status->learner ? "learner" : "follower";
}

static json_t *describe(const struct survey *survey, const struct asked *asked)
{
    const struct member_status *status = asked->status;
    json_t *object = member_status_to_json(status);
    json_autoptr more =
        json_make("{s:s, s:s, s:s, s:s, s:I}", "name", asked->member->name, "node",
                  asked->member->node, "client_url", asked->member->client_url, "peer_url",
                  asked->member->peer_url, "lag", (json_int_t)lag_of(survey, asked));
    static const char *const unknown[] = {"state", "restarts", "pid", "start_ticks", "token"};
    for (guint i = 0; i < G_N_ELEMENTS(unknown); i++)
        json_object_del(object, unknown[i]);
    json_object_update(object, more);
    return object;
}

static json_t *strings(const GPtrArray *list)
{
    json_t *array = json_array();
    for (guint i = 0; i < list->len; i++)
        json_array_append_new(array, json_string(list->pdata[i]));
    return array;
}

static void show_json(const struct survey *survey)
{
    json_autoptr members = json_array();
    for (guint i = 0; i < survey->members->len; i++)
        json_array_append_new(members, describe(survey, survey->members->pdata[i]));
    json_autoptr document = json_make(
        "{s:s, s:s, s:O, s:o}", "engine", enum_word(&engine_kind_words, (int)survey->config->kind),
        "state", enum_word(&engine_phase_words, (int)survey->config->state), "members", members,
        "advice", strings(survey->advice));
    cli_print_json(document);
}

static json_t *cell(json_t *value)
{
    return json_make("[i,o]", 0, value);
}

static json_t *mib(guint64 bytes)
{
    g_autofree char *text = g_strdup_printf("%.1f MiB", (double)bytes / (1024 * 1024));
    return json_string(text);
}

static json_t *row_of(const struct survey *survey, const struct asked *asked)
{
    const struct member_status *status = asked->status;
    bool known = *status->id != '\0';
    return json_make(
        "[o,o,o,o,o,o,o]", cell(json_string(asked->member->name)),
        cell(json_string(asked->member->client_url)),
        cell(json_string(status->healthy ? "yes" : "no")), cell(json_string(role_of(asked))),
        cell(known ? mib(status->store_bytes) : json_string("-")),
        cell(known ? json_integer((json_int_t)lag_of(survey, asked)) : json_string("-")),
        cell(json_string(known ? status->version : "-")));
}

static void show_table(const struct cli *cli, const struct survey *survey)
{
    static const char *const names[] = {"member", "address", "healthy", "role",
                                        "store",  "lag",     "version", NULL};
    json_autoptr rows = json_array();
    printf("engine: etcd, %s\n", enum_word(&engine_phase_words, (int)survey->config->state));
    for (guint i = 0; i < survey->members->len; i++)
        json_array_append_new(rows, row_of(survey, survey->members->pdata[i]));
    cli_print_rows(cli, NULL, names, rows);
    for (guint i = 0; i < survey->advice->len; i++)
        printf("%s\n", (const char *)survey->advice->pdata[i]);
}

/* Names of the candidates, if this node is none of them; NULL: it is, or that is not known. Free
 * with g_free(). */
static char *other_candidates(const struct node_paths *paths)
{
    size_t len = 0;
    record_autoptr(node_config) self = node_config_read(paths, NULL);
    g_autofree char *text = files_read(paths, FILE_STATE, "ssconf/master_candidates",
                                       LIMIT_STATE_FILE_BYTES, &len, NULL);
    if (!self || !text || !*g_strstrip(text))
        return NULL;
    g_auto(GStrv) names = g_strsplit(text, "\n", -1);
    return g_strv_contains((const char *const *)names, self->name) ? NULL : g_strjoinv(", ", names);
}

/* Whether fettle-wconfd of this node serves with SQLite although etc/engine.json tells of members:
 * what is left of them is being taken away. */
static bool is_left_behind(const struct survey *survey, const struct cli *cli)
{
    if (survey->config->state != ENGINE_ACTIVE || survey->advice->len == 0)
        return false;
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, NULL);
    record_autoptr(role_status) role = line ? wconfd_role(line, NULL) : NULL;
    return role && role->engine == ENGINE_KIND_SQLITE && role->seat != SEAT_NONE;
}

static void show_left_behind(struct survey *survey, const struct cli *cli)
{
    engine_config_free(survey->config);
    survey->config = engine_config_new();
    g_ptr_array_set_size(survey->members, 0);
    g_ptr_array_set_size(survey->advice, 0);
    if (cli->json)
        show_json(survey);
    else
        printf("engine: sqlite\nCommits become final in the store of the master; what is left of "
               "etcd on this node is being taken away.\n");
}

static void show_sqlite(const struct cli *cli, const struct survey *survey)
{
    if (cli->json)
        show_json(survey);
    else
        printf("engine: sqlite\nCommits become final in the store of the master; this node has no "
               "etc/engine.json that names another engine.\n");
}

/* --- the command --- */

static int show_status(struct survey *survey, struct cli *cli, const struct node_paths *paths,
                       GError **error)
{
    if (!survey_read(survey, paths, error))
        return -1;
    g_autofree char *others = other_candidates(paths);
    if (survey->config->kind == ENGINE_KIND_SQLITE && others) {
        fettle_set_error(error, WRONG_STATE,
                         "this node is no master candidate, and does not know where changes "
                         "become final: ask on one of %s",
                         others);
        return -1;
    }
    if (survey->config->kind == ENGINE_KIND_SQLITE) {
        show_sqlite(cli, survey);
        return 0;
    }
    g_autoptr(GError) bad = NULL;
    if (survey_ask(survey, paths, &bad))
        judge(survey);
    else
        g_ptr_array_add(survey->advice, g_strdup(bad->message));
    if (is_left_behind(survey, cli)) {
        show_left_behind(survey, cli);
        return 0;
    }
    if (bad) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return -1;
    }
    if (cli->json)
        show_json(survey);
    else
        show_table(cli, survey);
    return survey->advice->len > 0 ? 1 : 0;
}

static int engine_status(struct cli *cli, GError **error)
{
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    struct survey *survey = survey_new();
    cli_join_lab(cli);
    int code = paths ? show_status(survey, cli, paths, error) : -1;
    survey_free(survey);
    return code;
}

static int cluster_engine(struct cli *cli, int argc, char **argv, GError **error)
{
    bool yes = cli_take_flag(&argc, argv, "--yes");
    if (argc == 2 && strcmp(argv[0], "renew") == 0)
        return engine_renew(cli, argv[1], yes, error);
    if (!cli_expect(argc, argv, 1, "cluster engine " WORDS, error))
        return -1;
    if (strcmp(argv[0], "status") == 0)
        return engine_status(cli, error);
    int kind = enum_parse(&engine_kind_words, argv[0]);
    if (kind >= 0)
        return engine_change(cli, (enum engine_kind)kind, yes, error);
    fettle_set_error(error, WRONG_INPUT, "usage: fettle cluster engine " WORDS);
    return -1;
}

const struct command engine_commands[] = {
    {"cluster", "engine", WORDS,
     "Say where changes become final, and how the members of etcd are (asked from this node, also "
     "without a master; exit code 1 if something is wrong); or change it: to etcd on all master "
     "candidates, or back to the store of the master; or take a damaged member of etcd out and in "
     "again with the data of the others.",
     cluster_engine},
    {0},
};

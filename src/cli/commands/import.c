/*
 * `fettle cluster import` and `import-ganeti`: a document becomes the configuration, as far as it
 * describes wishes and not what really is. What it would do is worked out by fettle-wconfd and
 * shown first; a person agrees to exactly that, or nothing is changed.
 */
#include "cli/wconfd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"

struct importing {
    struct cli *cli;
    const char *file;
    const char *source; /* "fettle", "ganeti" */
    bool dry_run, yes;
    json_t *document;
};

/* --- the file --- */

/* What happened is no wish, can be large, and is not taken from a document anyway. */
static void drop_past(json_t *document)
{
    json_t *objects = json_object_get(document, "objects");
    json_object_del(objects, "job");
    json_object_del(objects, "decision");
}

/* It travels to fettle-wconfd in one frame, with a few words about who asks. */
static bool check_size(const struct importing *importing, const json_t *document, GError **error)
{
    size_t most = LIMIT_FRAME_BYTES - KIB(64);
    size_t size = json_dumpb(document, NULL, 0, JSON_COMPACT);
    if (size <= most)
        return true;
    fettle_set_error(error, LIMIT,
                     "%s: has %zu bytes that count (without blanks, jobs and decisions), and an "
                     "import takes %zu; nothing was changed. Import in parts: take some of what is "
                     "new out of the file, import it, put that back, and import it again. A "
                     "cluster that is as large already gets its configuration back from a backup "
                     "(fettle cluster restore)",
                     importing->file, size, most);
    return false;
}

static json_t *read_document(const struct importing *importing, GError **error)
{
    size_t len = 0;
    g_autofree char *text = files_read_path(importing->file, LIMIT_ARCHIVE_BYTES, &len, error);
    if (text == NULL)
        return NULL;
    json_t *document = json_parse_limited(text, len, LIMIT_ARCHIVE_BYTES, error);
    if (document == NULL) {
        g_prefix_error(error, "%s: ", importing->file);
        return NULL;
    }
    if (strcmp(importing->source, "fettle") == 0)
        drop_past(document);
    if (!check_size(importing, document, error))
        g_clear_pointer(&document, json_decref);
    return document;
}

/* --- plans --- */

static json_t *ask(const struct importing *importing, struct wconfd_line *line, const char *plan,
                   GError **error)
{
    g_autofree char *commit_id = g_uuid_string_random();
    json_t *answer = wconfd_call(
        line, "write_config",
        json_make("{s:o,s:s,s:O,s:s,s:s}", "owner", wconfd_owner(line), "source", importing->source,
                  "document", importing->document, "plan", plan, "commit_id", commit_id),
        error);
    if (answer == NULL)
        g_prefix_error(error, "%s: ", importing->file);
    return answer;
}

static void print_list(FILE *out, const char *mark, const json_t *lines)
{
    size_t index;
    const json_t *line;
    json_array_foreach(lines, index, line)
        fprintf(out, "%s%s\n", mark, json_string_value(line));
}

static void print_plan(const struct importing *importing, const json_t *plan)
{
    if (importing->cli->json)
        return;
    print_list(stdout, "", json_object_get(plan, "changes"));
    print_list(stdout, "note: ", json_object_get(plan, "notes"));
}

/* All of them: whoever mends a file wants to mend it once. One, or a program that reads, gets them
 * in the error itself. */
static bool no_problems(const struct importing *importing, const json_t *plan, GError **error)
{
    const json_t *problems = json_object_get(plan, "problems");
    size_t count = json_array_size(problems), index;
    const json_t *problem;
    if (count == 0)
        return true;
    if (count > 1 && !importing->cli->json) {
        print_list(stderr, "", problems);
        fettle_set_error(error, WRONG_INPUT, "%s: %zu things are in the way; nothing was changed",
                         importing->file, count);
        return false;
    }
    g_autoptr(GString) all = g_string_new(NULL);
    json_array_foreach(problems, index, problem)
        g_string_append_printf(all, "%s%s", index > 0 ? "; " : "", json_string_value(problem));
    fettle_set_error(error, WRONG_INPUT, "%s: %s; nothing was changed", importing->file, all->str);
    return false;
}

static bool agreed(const struct importing *importing, size_t changes, GError **error)
{
    if (importing->yes)
        return true;
    if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !importing->cli->json)
        return cli_is_sure(
            changes == 1 ? "This change will be made." : "These changes will be made.", error);
    fettle_set_error(error, WRONG_INPUT,
                     "changes would be made: %zu; none was: look at them with --dry-run, then give "
                     "--yes",
                     changes);
    return false;
}

static int carry_out(const struct importing *importing, struct wconfd_line *line, json_t *plan,
                     GError **error)
{
    struct cli *cli = importing->cli;
    size_t changes = json_array_size(json_object_get(plan, "changes"));
    const char *noun = changes == 1 ? "change" : "changes";
    if (changes == 0 || importing->dry_run) {
        if (changes == 0)
            cli_say(cli, json_incref(plan), "Nothing to change: the cluster is as the file says.");
        else
            cli_say(cli, json_incref(plan), "%zu %s would be made; none was.", changes, noun);
        return 0;
    }
    if (!agreed(importing, changes, error))
        return -1;
    const char *digest = json_string_value(json_object_get(plan, "plan"));
    json_autoptr done = ask(importing, line, digest, error);
    if (done == NULL)
        return -1;
    cli_say(cli, json_incref(done), "%zu %s made.", changes,
            changes == 1 ? "change is" : "changes are");
    return 0;
}

static int run(struct importing *importing, GError **error)
{
    g_autoptr(wconfd_line_t) line = wconfd_open(importing->cli, error);
    if (line == NULL || (!importing->dry_run && !wconfd_lock(line, "cluster/config", error)))
        return -1;
    json_autoptr plan = ask(importing, line, "", error);
    if (plan == NULL)
        return -1;
    print_plan(importing, plan);
    return no_problems(importing, plan, error) ? carry_out(importing, line, plan, error) : -1;
}

static int import_file(struct cli *cli, const char *verb, const char *source, int argc, char **argv,
                       GError **error)
{
    struct importing importing = {.cli = cli,
                                  .source = source,
                                  .dry_run = cli_take_flag(&argc, argv, "--dry-run"),
                                  .yes = cli_take_flag(&argc, argv, "--yes")};
    g_autofree char *usage = g_strdup_printf("cluster %s FILE [--dry-run] [--yes]", verb);
    if (!cli_expect(argc, argv, 1, usage, error))
        return -1;
    importing.file = argv[0];
    json_autoptr document = read_document(&importing, error);
    importing.document = document;
    return document != NULL ? run(&importing, error) : -1;
}

static int cluster_import(struct cli *cli, int argc, char **argv, GError **error)
{
    return import_file(cli, "import", "fettle", argc, argv, error);
}

static int cluster_import_ganeti(struct cli *cli, int argc, char **argv, GError **error)
{
    return import_file(cli, "import-ganeti", "ganeti", argc, argv, error);
}

const struct command import_commands[] = {
    {"cluster", "import", "FILE [--dry-run] [--yes]",
     "Write an exported configuration back: settings, groups, networks, instances, tags, rules "
     "about jobs; shows the difference first.",
     cluster_import},
    {"cluster", "import-ganeti", "FILE [--dry-run] [--yes]",
     "Take over a cluster of Ganeti from its config.data; says what has no counterpart here.",
     cluster_import_ganeti},
    {0},
};

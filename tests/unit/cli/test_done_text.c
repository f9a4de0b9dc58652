/* Tests of cli/done_text.c: the sentence of every command that is an opcode (proto/cli.def) is
 * filled in from what was submitted. */
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "proto/cli/cli_table.h"

#include <string.h>

static bool can_be_filled_in(const struct record *params, const char *name)
{
    return !strcmp(name, "@instance") || !strcmp(name, "@node") || record_field(params, name);
}

/* What a sentence is filled in with is there. */
static void check_sentence(const struct cli_command *command, const char *sentence)
{
    const struct record *params = opcode_find(command->op_id)->params;
    g_auto(GStrv) parts = g_strsplit_set(sentence, "{}", -1);
    if (*sentence == '\0')
        g_error("cli.def: no sentence for %s", command->op_id);
    for (guint i = 1; i < g_strv_length(parts); i += 2)
        if (!can_be_filled_in(params, parts[i]))
            g_error("cli.def: %s has no field {%s}", command->op_id, parts[i]);
}

static void test_every_command(void)
{
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct record *params = opcode_find(table[i].op_id)->params;
        check_sentence(&table[i], table[i].done);
        g_assert_null(table[i].done_if[G_N_ELEMENTS(table[i].done_if) - 1].field);
        for (const struct cli_done_case *done = table[i].done_if; done->field; done++) {
            if (!record_field(params, done->field))
                g_error("cli.def: %s has no field %s", table[i].op_id, done->field);
            check_sentence(&table[i], done->sentence);
        }
        g_assert_true(cli_command_of(table[i].op_id) == &table[i]);
    }
}

static void says(const char *line, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    /* Nobody answers there: what would be asked of the cluster is left out. */
    struct cli cli = {.root = (char *)"/nonexistent"};
    json_autoptr opcode = cli_command_parse(cli_command_find(words[0], words[1]),
                                            (const char *const *)words + 2, &error);
    g_assert_no_error(error);
    g_autofree char *text = cli_done_text(&cli, opcode);
    g_assert_cmpstr(text, ==, expected);
}

static void test_sentences(void)
{
    says("test delay 0.5", "Waited for 0.5 s.");
    says("instance remove web1", "Instance web1 and its disks are removed.");
    says("instance remove web1 --dry-run",
         "Checked only, nothing was changed: it could be done now.");
    says("instance startup web1", "Instance web1: done.");
    says("node modify n1 --offline yes",
         "Node n1 is offline on your word; what ran there may run elsewhere.");
    says("node modify n1 --drained no", "Node n1 takes instances.");
    says("tag add cluster a b", "The cluster has these tags now: a,b.");
    says("tag remove node n1 a", "The node n1 has these tags no more: a.");
    says("instance grow-disk web1 0 1G --absolute", "Disk 0 of instance web1 has 1024 MiB.");
    says("instance grow-disk web1 1 5", "Disk 1 of instance web1 is 5 MiB larger.");
}

/* What Ctrl-C leaves behind: one job, or those of `node evacuate`. */
static void test_detached(void)
{
    static const guint64 jobs[] = {24, 27, 28};
    g_autoptr(GError) one = NULL, more = NULL;
    cli_set_detached(jobs, 1, &one);
    g_assert_true(fettle_error_is(one, DETACHED));
    g_assert_cmpstr(one->message, ==, "job 24 goes on; come back to it with: fettle job watch 24");
    cli_set_detached(jobs, 3, &more);
    g_assert_cmpstr(more->message, ==,
                    "jobs 24 27 28 go on; come back to one with: fettle job watch ID, or see them "
                    "with: fettle job list");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/say/every-command", test_every_command);
    g_test_add_func("/say/sentences", test_sentences);
    g_test_add_func("/say/detached", test_detached);
    return g_test_run();
}

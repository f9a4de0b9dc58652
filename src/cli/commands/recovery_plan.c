/* See recovery_plan.h. */
#include "cli/commands/recovery_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands/info.h"

static const char *text(const json_t *object, const char *member)
{
    const char *said = json_string_value(json_object_get(object, member));
    return said != NULL ? said : "";
}

static gint64 number(const json_t *object, const char *member)
{
    return (gint64)json_integer_value(json_object_get(object, member));
}

#define RESOURCE(NAME, kind, word) "|" #kind
const char recovery_subject[] = "instance"
#include "proto/storage/resources.def"
                                " NAME";
#define RESOURCE(NAME, kind, word) "|" #kind
const char recovery_any_subject[] = "[instance"
#include "proto/storage/resources.def"
                                    " NAME]";

bool recovery_is_subject(const char *verb, int argc, char **argv, GError **error)
{
    g_autofree char *usage = g_strdup_printf("recovery %s %s", verb, recovery_subject);
    if (!cli_expect(argc, argv, 2, usage, error))
        return false;
    if (*recovery_kind_text(argv[0]))
        return true;
    fettle_set_error(error, WRONG_INPUT, "\"%s\": no such kind; usage: fettle %s", argv[0], usage);
    return false;
}

const char *recovery_kind_text(const char *kind)
{
    static const char *const words[][2] = {
        {"instance", "Instance"},
#define RESOURCE(NAME, name, word) {#name, word},
#include "proto/storage/resources.def"
    };
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(words[i][0], kind) == 0)
            return words[i][1];
    return "";
}

json_t *recovery_ask(struct cli *cli, char **subject, bool hosts, GError **error)
{
    return cli_call(cli, "PlanRecovery", json_make("[ssb]", subject[0], subject[1], hosts), error);
}

const json_t *recovery_row(const json_t *answer)
{
    return json_array_get(json_object_get(answer, "rows"), 0);
}

void recovery_print_lines(const char *head, const json_t *lines)
{
    const json_t *line;
    size_t i;
    json_array_foreach(lines, i, line)
        info_line(i == 0 ? head : "", "%s", json_string_value(line));
}

/* --- what would be done --- */

/* "settled as active: its guest runs"; free with g_free(). */
static char *does_text(const json_t *row)
{
    static const struct {
        const char *outcome, *words;
    } all[] = {
        {"settled", "settled as "}, {"removed", "its record goes"},
        {"error", "ERROR"},         {"finished", "finished by "},
        {"waits", "waits"},         {"unknown", "not known yet"},
        {"left", "left alone"},     {"discarded", "it goes"},
    };
    const char *outcome = text(row, "outcome"), *words = outcome;
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        words = strcmp(all[i].outcome, outcome) == 0 ? all[i].words : words;
    const char *as = strcmp(outcome, "settled") == 0    ? text(row, "state")
                     : strcmp(outcome, "finished") == 0 ? text(row, "finisher")
                                                        : "";
    return g_strdup_printf("%s%s%s%s%s",
                           json_is_true(json_object_get(row, "on_retry")) ? "on retry: " : "",
                           words, as, *text(row, "why") != '\0' ? ": " : "", text(row, "why"));
}

static json_t *cells_of(const json_t *row)
{
    g_autofree char *does = does_text(row);
    json_t *job = json_object_get(row, "owner");
    g_autofree char *owner =
        json_is_integer(job) ? g_strdup_printf("%" JSON_INTEGER_FORMAT " (%s)",
                                               json_integer_value(job), text(row, "owner_state"))
                             : g_strdup(text(row, "owner_state"));
    return json_make("[[is][is][is][is][is][is]]", 0, text(row, "subject_kind"), 0,
                     text(row, "subject_name"), 0, text(row, "task"), 0, owner, 0, does, 0,
                     text(row, "rule"));
}

static void print_notes(const json_t *answer)
{
    const json_t *note;
    size_t i;
    json_array_foreach(json_object_get(answer, "notes"), i, note)
        printf("%s\n", json_string_value(note));
}

static void print_table(const struct cli *cli, const json_t *answer)
{
    static const char *const titles[] = {"kind", "name", "task", "job", "what", "rule", NULL};
    json_autoptr cells = json_array();
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(answer, "rows"), i, row)
        json_array_append_new(cells, cells_of(row));
    print_notes(answer);
    if (json_array_size(cells) > 0)
        cli_print_rows(cli, NULL, titles, cells);
    else
        printf("No task was left behind.\n");
}

void recovery_print_outcome(const json_t *answer)
{
    const json_t *row = recovery_row(answer), *note;
    size_t i;
    g_autofree char *does = does_text(row);
    recovery_print_lines("Seen now", json_object_get(row, "evidence"));
    if (*text(row, "rule") != '\0')
        info_line("Outcome", "%s (%s)", does, text(row, "rule"));
    else
        info_line("Outcome", "%s", does);
    info_line("Next", "%s", text(row, "next"));
    json_array_foreach(json_object_get(answer, "notes"), i, note)
        info_line(i == 0 ? "Held up" : "", "%s", json_string_value(note));
}

int recovery_plan(struct cli *cli, int argc, char **argv, GError **error)
{
    if (argc > 0 && !recovery_is_subject("plan", argc, argv, error))
        return -1;
    json_autoptr answer = argc > 0 ? recovery_ask(cli, argv, false, error)
                                   : cli_call(cli, "PlanRecovery", json_array(), error);
    if (answer == NULL)
        return -1;
    if (cli->json)
        cli_print_json(answer);
    else
        print_table(cli, answer);
    return 0;
}

/* --- what hosts show --- */

static void print_images(const json_t *sets)
{
    const json_t *set;
    size_t i;
    json_array_foreach(sets, i, set) {
        const char *replica = text(set, "replica");
        g_autofree char *disks = text_bits((guint64)number(set, "disks"));
        info_line(i == 0 ? "Images" : "", "%s%s: disks %s",
                  *replica != '\0' ? "of replica " : "its own", replica, disks);
    }
}

static void print_disks(const json_t *disks)
{
    const json_t *disk;
    size_t i;
    json_array_foreach(disks, i, disk) {
        const char *damage = text(disk, "damage");
        if (number(disk, "bytes") > 0)
            info_line(i == 0 ? "Own disks" : "", "%zu: %" G_GINT64_FORMAT " MiB", i,
                      number(disk, "bytes") / (1024 * 1024));
        else
            info_line(i == 0 ? "Own disks" : "", "%zu: %s", i, *damage != '\0' ? damage : "none");
    }
}

static void print_word(const char *head, const char *word)
{
    if (*word != '\0' && strcmp(word, "none") != 0)
        info_line(head, "%s", word);
}

static void print_stored(const json_t *sight)
{
    const json_t *data;
    size_t i;
    json_array_foreach(json_object_get(sight, "data"), i, data)
        info_line(i == 0 ? "Data" : "", "%s: %" G_GINT64_FORMAT " MiB, %s%s", text(data, "name"),
                  number(data, "bytes") / (1024 * 1024),
                  json_is_true(json_object_get(data, "whole")) ? "whole" : "not whole",
                  json_is_true(json_object_get(data, "open")) ? ", open in a guest" : "");
    if (i == 0)
        info_line("Data", "none");
}

static void print_sight(const json_t *host)
{
    const json_t *sight = json_object_get(host, "sight");
    bool busy = strcmp(text(host, "answer"), "busy") == 0;
    g_autofree char *taken = cli_time_text(number(sight, "taken_us") / G_USEC_PER_SEC);
    if (!json_is_object(sight))
        return;
    if (json_object_get(sight, "data") != NULL) {
        info_line("Seen", "%s", taken);
        if (strcmp(text(host, "answer"), "given") == 0)
            print_stored(sight);
        return;
    }
    info_line("Seen", "%s, boot %s", taken, text(host, "boot_id"));
    if (busy)
        return;
    info_line("Guest", "%s, generation %" G_GINT64_FORMAT, text(sight, "state"),
              number(sight, "generation"));
    print_word("Stands still", text(sight, "io_stop"));
    print_word("Went by itself", text(sight, "crashed"));
    print_word("Migration", text(sight, "migration"));
    recovery_print_lines("Drives", json_object_get(sight, "drives"));
    recovery_print_lines("Tap devices", json_object_get(sight, "taps"));
    print_images(json_object_get(sight, "images"));
    print_disks(json_object_get(sight, "disks"));
}

static const char *answer_text(const char *answer)
{
    static const struct {
        const char *answer, *text;
    } all[] = {
        {"busy", "busy: "},
        {"silent", "cannot tell: "},
        {"refused", "refuses: "},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        if (strcmp(all[i].answer, answer) == 0)
            return all[i].text;
    return "";
}

static void print_hosts(const json_t *row)
{
    const json_t *host;
    size_t i;
    bool job = json_is_integer(json_object_get(row, "owner"));
    printf("%s %s", recovery_kind_text(text(row, "subject_kind")), text(row, "subject_name"));
    if (*text(row, "task") != '\0' && !job)
        printf(", %s by nobody any more", text(row, "task"));
    else if (*text(row, "task") != '\0')
        printf(", %s by job %" G_GINT64_FORMAT " (%s)", text(row, "task"), number(row, "owner"),
               text(row, "owner_state"));
    printf("\n");
    json_array_foreach(json_object_get(row, "hosts"), i, host) {
        const char *answer = text(host, "answer");
        bool given = strcmp(answer, "given") == 0;
        printf("Node %s%s%s%s\n", text(host, "node"), given ? "" : ": ", answer_text(answer),
               text(host, "why"));
        print_sight(host);
    }
}

int recovery_collect(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!recovery_is_subject("collect", argc, argv, error))
        return -1;
    json_autoptr answer = recovery_ask(cli, argv, true, error);
    const json_t *row = recovery_row(answer);
    if (answer != NULL && row == NULL)
        fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", argv[0], argv[1]);
    if (row == NULL)
        return -1;
    if (cli->json)
        cli_print_json(row);
    else
        print_hosts(row);
    return 0;
}

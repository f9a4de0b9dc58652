/* See volume_ask.h. */
#include "cli/volume/volume_ask.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/volume/storage_ask.h"
#include "proto/record_private.h"

#define SEE "fettle volume list"

bool volume_ask(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr answer = storage_ask(cli, method, args, SEE, error);
    return answer != NULL;
}

/* Word of the enum resource_type. */
static const char *resource_word(const char *kind)
{
    static const char *const words[][2] = {
#define RESOURCE(NAME, name, word) {#name, word},
#include "proto/storage/resources.def"
    };
    size_t i = 0;
    while (strcmp(words[i][0], kind) != 0)
        i++;
    return words[i][1];
}

/* --- work --- */

bool volume_name_given(const char *name, GError **error)
{
    if (*name == '\0')
        fettle_set_error(error, WRONG_INPUT, "the name is empty");
    return *name != '\0';
}

bool volume_take(int *argc, char **argv, const char *name, const char **ret_value, GError **error)
{
    g_autoptr(GError) bad = NULL;
    *ret_value = cli_take_option(argc, argv, name, &bad);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

bool volume_take_wait(int *argc, char **argv, bool *ret_no_wait, GError **error)
{
    bool wait;
    if (!cli_take_switch(argc, argv, "--wait", &wait, error) ||
        !cli_take_switch(argc, argv, "--no-wait", ret_no_wait, error))
        return false;
    if (wait && *ret_no_wait)
        fettle_set_error(error, WRONG_INPUT, "--wait and --no-wait exclude each other");
    return !wait || !*ret_no_wait;
}

bool volume_may_delete(const struct cli *cli, const char *what, bool yes, GError **error)
{
    if (yes || cli->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    g_autofree char *question = g_strdup_printf("%s will be gone.", what);
    return cli_is_sure(question, error);
}

bool volume_size(const char *text, bool needed, guint64 *ret_size, GError **error)
{
    if (text == NULL && !needed)
        return true;
    if (text == NULL) {
        fettle_set_error(error, WRONG_INPUT, "--size is missing: how many GiB, such as 10 or 1T");
        return false;
    }
    return volume_gib("--size", text, ret_size, error);
}

bool volume_gib(const char *flag, const char *text, guint64 *ret_size, GError **error)
{
    const struct place place = {.name = flag};
    const struct field *field = record_field(&volume_record, "size");
    json_autoptr size = record_text_to_json(field, text, place.name, error);
    if (size == NULL || !record_check(field, size, &place, error))
        return false;
    *ret_size = (guint64)json_integer_value(size);
    return true;
}

static int ask_for(struct cli *cli, struct volume_request *work, bool no_wait, json_t *args,
                   GError **error)
{
    json_object_set_new(args, "resource_type", json_string(resource_word(work->kind)));
    json_object_set_new(args, "operation", json_string(work->operation));
    json_autoptr answer = storage_ask(cli, "accept_work", args, SEE, error);
    record_autoptr(accepted_work) accepted =
        answer != NULL ? accepted_work_parse(answer, RECORD_LAX, error) : NULL;
    if (accepted == NULL)
        return -1;
    work->uuid = g_strdup(accepted->resource);
    work->row = accepted->serial;
    if (!no_wait)
        return volume_follow(cli, work, error);
    cli_say(cli, json_make("{ss sI}", work->kind, work->uuid, "worker", (json_int_t)work->row),
            "%s of %s %s is on record; see how it stands with: fettle %s info %s", work->operation,
            work->kind, work->name, work->kind, work->uuid);
    return 0;
}

int volume_work(struct cli *cli, struct volume_request *work, bool no_wait, json_t *args,
                GError **error)
{
    int code = ask_for(cli, work, no_wait, args, error);
    volume_request_clear(work);
    return code;
}

/* `Snapshot data1`. */
static char *titled(const char *kind, const char *name)
{
    return g_strdup_printf("%c%s %s", g_ascii_toupper(*kind), kind + 1, name);
}

int volume_delete_of(struct cli *cli, const char *kind, int argc, char **argv, GError **error)
{
    bool no_wait, yes;
    g_autofree char *usage = g_strdup_printf("%s delete NAME", kind);
    g_autofree char *operation = g_strdup_printf("delete-%s", kind);
    struct volume_request work = {.kind = kind, .operation = operation};
    if (!volume_take_wait(&argc, argv, &no_wait, error) ||
        !cli_take_switch(&argc, argv, "--yes", &yes, error) ||
        !cli_expect(argc, argv, 1, usage, error))
        return -1;
    g_autofree char *title = titled(kind, argv[0]);
    g_autofree char *what = g_strdup_printf("%s and its data", title);
    if (!volume_may_delete(cli, what, yes, error))
        return -1;
    work.name = argv[0];
    return volume_work(cli, &work, no_wait, json_make("{ss}", "resource", argv[0]), error);
}

/* --- what needs no work --- */

int volume_rename(struct cli *cli, const char *kind, int argc, char **argv, GError **error)
{
    g_autofree char *method = g_strdup_printf("change_%s", kind);
    g_autofree char *usage = g_strdup_printf("%s rename NAME NEW-NAME", kind);
    if (!cli_expect(argc, argv, 2, usage, error) ||
        !volume_ask(cli, method,
                    json_make("{ss ss sb}", kind, argv[0], "name", argv[1], "unique_name", true),
                    error))
        return -1;
    g_autofree char *what = titled(kind, argv[0]);
    cli_say(cli, json_make("{ss}", "name", argv[1]), "%s is called %s.", what, argv[1]);
    return 0;
}

int volume_reset(struct cli *cli, const char *kind, int argc, char **argv, GError **error)
{
    const char *status;
    g_autofree char *usage = g_strdup_printf("%s reset-state NAME --status STATUS", kind);
    if (!volume_take(&argc, argv, "--status", &status, error) ||
        !cli_expect(argc, argv, 1, usage, error))
        return -1;
    if (status == NULL) {
        fettle_set_error(error, WRONG_INPUT,
                         "--status is missing: what the %s is, such as available or error", kind);
        return -1;
    }
    json_t *args = json_make("{ss ss ss}", "resource_type", resource_word(kind), "resource",
                             argv[0], "status", status);
    if (!volume_ask(cli, "reset_state", args, error))
        return -1;
    g_autofree char *what = titled(kind, argv[0]);
    cli_say(cli, json_make("{ss ss}", kind, argv[0], "status", status), "%s is %s, on your word.",
            what, status);
    return 0;
}

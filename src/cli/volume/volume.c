/*
 * `fettle volume create|delete|extend|rename|modify|reset-state`: asks fettle-wconfd of the master,
 * which puts it on record in one commit, and follows what the volume services make of it.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/volume/volume_follow.h"
#include "cli/wconfd.h"
#include "io/loop.h"
#include "proto/record_private.h"

#define RESULT_PATIENCE_MS 30000
#define RESULT_PAUSE_MS 200

/* --- the call --- */

/* Whether the same may be asked again, as its commit id says that it is the same. */
static bool may_repeat(const GError *error, bool *sent)
{
    *sent = *sent || fettle_error_is(error, UNKNOWN_RESULT) || fettle_error_is(error, TIMEOUT);
    return *sent && cli_is_passing(error);
}

/* In the name of whoever is the master now, but not of one after a restore: that may be another
 * past. `history`: 0 at first. */
static json_t *ask_once(struct wconfd_line *line, const char *method, json_t *args,
                        guint64 *history, GError **error)
{
    record_autoptr(role_status) status = wconfd_role(line, error);
    if (status == NULL)
        return NULL;
    if (*history != 0 && *history != status->history) {
        fettle_set_error(error, STALE_EPOCH, "the configuration was restored meanwhile");
        return NULL;
    }
    *history = status->history;
    return wconfd_call(line, method, json_incref(args), error);
}

/* `args` is stolen. */
static json_t *ask(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr request = args;
    g_autofree char *id = g_uuid_string_random();
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    json_object_set_new(request, "commit_id", json_string(id));
    if (line == NULL)
        return NULL;
    bool sent = false, never = false;
    guint64 history = 0;
    for (gint64 until = loop_boot_ms() + RESULT_PATIENCE_MS;;) {
        GError *reason = NULL;
        json_t *answer = ask_once(line, method, request, &history, &reason);
        if (answer != NULL)
            return answer;
        if (!may_repeat(reason, &sent) || loop_boot_ms() > until) {
            g_propagate_error(error, reason);
            if (sent)
                g_prefix_error(error,
                               "whether it is on record is not known (fettle volume list): ");
            return NULL;
        }
        g_error_free(reason);
        loop_run_until(&never, RESULT_PAUSE_MS);
    }
}

/* --- work --- */

static const char *const operations[] = {"create-volume", "extend-volume", "delete-volume"};

/* What the flags and words of one of these say. */
struct request {
    const char *size, *backend, *description, *status;
    bool no_wait, yes;
};

static bool take(int *argc, char **argv, const char *name, const char **ret_value, GError **error)
{
    g_autoptr(GError) bad = NULL;
    *ret_value = cli_take_option(argc, argv, name, &bad);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

static bool take_wait(int *argc, char **argv, struct request *request, GError **error)
{
    bool wait;
    if (!cli_take_switch(argc, argv, "--wait", &wait, error) ||
        !cli_take_switch(argc, argv, "--no-wait", &request->no_wait, error))
        return false;
    if (wait && request->no_wait)
        fettle_set_error(error, WRONG_INPUT, "--wait and --no-wait exclude each other");
    return !wait || !request->no_wait;
}

/* GiB; false with an error that names the flag. */
static bool size_of(const char *text, guint64 *ret_size, GError **error)
{
    if (text == NULL) {
        fettle_set_error(error, WRONG_INPUT, "--size is missing: how many GiB, such as 10 or 1T");
        return false;
    }
    const struct place place = {.name = "--size"};
    const struct field *field = record_field(&volume_record, "size");
    json_autoptr size = record_text_to_json(field, text, place.name, error);
    if (size == NULL || !record_check(field, size, &place, error))
        return false;
    *ret_size = (guint64)json_integer_value(size);
    return true;
}

/* Asks for it, and says so or follows it. `args` is stolen. */
static int do_work(struct cli *cli, struct volume_request *work, bool no_wait, json_t *args,
                   GError **error)
{
    json_object_set_new(args, "resource_type", json_string("Volume"));
    json_object_set_new(args, "operation", json_string(work->operation));
    json_autoptr answer = ask(cli, "accept_work", args, error);
    record_autoptr(accepted_work) accepted =
        answer != NULL ? accepted_work_parse(answer, RECORD_LAX, error) : NULL;
    if (accepted == NULL)
        return -1;
    work->uuid = g_strdup(accepted->resource);
    work->row = accepted->serial;
    if (!no_wait)
        return volume_follow(cli, work, error);
    cli_say(cli, json_make("{ss sI}", "volume", work->uuid, "worker", (json_int_t)work->row),
            "%s of volume %s is on record; see how it stands with: fettle volume info %s",
            work->operation, work->name, work->uuid);
    return 0;
}

static int volume_create(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.operation = operations[0]};
    if (!take(&argc, argv, "--size", &request.size, error) ||
        !take(&argc, argv, "--backend", &request.backend, error) ||
        !take(&argc, argv, "--description", &request.description, error) ||
        !take_wait(&argc, argv, &request, error) ||
        !cli_expect(argc, argv, 1, "volume create NAME --size SIZE", error) ||
        !size_of(request.size, &work.size, error))
        return -1;
    work.name = argv[0];
    json_t *args = json_make("{ss sI ss ss}", "name", argv[0], "size", (json_int_t)work.size,
                             "backend", request.backend ? request.backend : "", "description",
                             request.description ? request.description : "");
    int code = do_work(cli, &work, request.no_wait, args, error);
    volume_request_clear(&work);
    return code;
}

static int volume_extend(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.operation = operations[1]};
    if (!take(&argc, argv, "--size", &request.size, error) ||
        !take_wait(&argc, argv, &request, error) ||
        !cli_expect(argc, argv, 1, "volume extend VOLUME --size SIZE", error) ||
        !size_of(request.size, &work.size, error))
        return -1;
    work.name = argv[0];
    json_t *args = json_make("{ss sI}", "resource", argv[0], "size", (json_int_t)work.size);
    int code = do_work(cli, &work, request.no_wait, args, error);
    volume_request_clear(&work);
    return code;
}

static bool may_delete(const struct cli *cli, const char *name, bool yes, GError **error)
{
    if (yes || cli->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    g_autofree char *question = g_strdup_printf("Volume %s and its data will be gone.", name);
    return cli_is_sure(question, error);
}

static int volume_delete(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.operation = operations[2]};
    if (!take_wait(&argc, argv, &request, error) ||
        !cli_take_switch(&argc, argv, "--yes", &request.yes, error) ||
        !cli_expect(argc, argv, 1, "volume delete VOLUME", error) ||
        !may_delete(cli, argv[0], request.yes, error))
        return -1;
    work.name = argv[0];
    int code = do_work(cli, &work, request.no_wait, json_make("{ss}", "resource", argv[0]), error);
    volume_request_clear(&work);
    return code;
}

/* --- what needs no work --- */

/* `args` is stolen. */
static bool done(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr answer = ask(cli, method, args, error);
    return answer != NULL;
}

static int volume_rename(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 2, "volume rename VOLUME NAME", error))
        return -1;
    json_t *args = json_make("{ss ss}", "volume", argv[0], "name", argv[1]);
    if (!done(cli, "change_volume", args, error))
        return -1;
    cli_say(cli, json_make("{ss}", "name", argv[1]), "Volume %s is called %s.", argv[0], argv[1]);
    return 0;
}

static int volume_modify(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *description;
    if (!take(&argc, argv, "--description", &description, error) ||
        !cli_expect(argc, argv, 1, "volume modify VOLUME --description TEXT", error))
        return -1;
    if (description == NULL || *description == '\0') {
        fettle_set_error(error, WRONG_INPUT,
                         "nothing to change: name at least one flag; see \"fettle volume modify "
                         "--help\"");
        return -1;
    }
    json_t *args = json_make("{ss ss}", "volume", argv[0], "description", description);
    if (!done(cli, "change_volume", args, error))
        return -1;
    cli_say(cli, json_make("{ss}", "volume", argv[0]), "Volume %s is changed.", argv[0]);
    return 0;
}

static int volume_reset(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    if (!take(&argc, argv, "--status", &request.status, error) ||
        !cli_expect(argc, argv, 1, "volume reset-state VOLUME --status STATUS", error))
        return -1;
    if (request.status == NULL) {
        fettle_set_error(error, WRONG_INPUT,
                         "--status is missing: what the volume is, such as available or error");
        return -1;
    }
    json_t *args = json_make("{ss ss ss}", "resource_type", "Volume", "resource", argv[0], "status",
                             request.status);
    if (!done(cli, "reset_state", args, error))
        return -1;
    cli_say(cli, json_make("{ss ss}", "volume", argv[0], "status", request.status),
            "Volume %s is %s, on your word.", argv[0], request.status);
    return 0;
}

const struct command volume_commands[] = {
    {"volume", "create",
     "VOLUME-NAME --size SIZE [--backend BACKEND] [--description TEXT] [--wait|--no-wait]",
     "Make a blank volume, of so many GiB or as 10G or 1T, and wait until it is available. Without "
     "--backend on the only one that there is.",
     volume_create},
    {"volume", "delete", "VOLUME [--yes] [--wait|--no-wait]",
     "Delete a volume and its data, and wait until it is gone.", volume_delete},
    {"volume", "extend", "VOLUME --size SIZE [--wait|--no-wait]",
     "Make a volume larger: the size (GiB, or as 10G or 1T) that it has then.", volume_extend},
    {"volume", "rename", "VOLUME VOLUME-NAME", "Give a volume another name.", volume_rename},
    {"volume", "modify", "VOLUME --description TEXT", "Say what a volume is for.", volume_modify},
    {"volume", "reset-state", "VOLUME --status available|error|error_extending|error_deleting",
     "Say what a volume is, on your word; what is under way on it counts no more.", volume_reset},
    {0},
};

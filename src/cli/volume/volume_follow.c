/* See volume_follow.h. */
#include "cli/volume/volume_follow.h"

#include <string.h>

#include "cli/interrupt.h"
#include "cli/screen.h"
#include "io/loop.h"

#define BEHIND_MS 50  /* luxid's copy is a moment behind what wconfd has answered */
#define WAITS_MS 3000 /* that long nobody takes it: it is no moment any more */

struct following {
    struct cli *cli;
    const struct volume_request *work;
    bool seen;       /* luxid's copy has the commit that made the row */
    bool told;       /* that it waits */
    bool waits;      /* nobody has taken it yet */
    gint64 since_ms; /* boot clock: since when that is seen */
    char *stream;
    json_int_t position;
    json_t *end; /* the resource's cells once the row is gone; an empty list: it is gone, too */
};

void volume_request_clear(struct volume_request *work)
{
    g_clear_pointer(&work->uuid, g_free);
}

/* --- how it stands --- */

static bool makes(const struct volume_request *work)
{
    return g_str_has_prefix(work->operation, "create-") ||
           strcmp(work->operation, "back-up-volume") == 0;
}

/* Nobody takes the row while no member of its back end is there. */
static bool has_nobody(struct following *following, const char *backend)
{
    json_autoptr rows = cli_query(following->cli, "backend", (const char *const[]){"up", NULL},
                                  json_make("[sss]", "=", "name", backend), NULL);
    const json_t *row = json_array_get(rows, 0);
    return row != NULL && json_array_size(cli_cell_value(row, 0)) == 0;
}

/* Once, on whatever standard error is: who reads that through a pipe sees nothing drawn. */
static void tell_waiting(struct following *following, const char *backend)
{
    const struct volume_request *work = following->work;
    bool nobody = *backend != '\0' && !following->told && has_nobody(following, backend);
    bool long_enough = loop_boot_ms() - following->since_ms >= WAITS_MS;
    if (following->told || !(nobody || long_enough))
        return;
    g_autofree char *what =
        nobody     ? g_strdup_printf("no volume service of %s is up (fettle storage-service list)",
                                     backend)
        : *backend ? g_strdup_printf("waits for a member of %s (fettle why %s %s)", backend,
                                     work->kind, work->name)
                   : g_strdup_printf("waits for a back end to be chosen (fettle why %s %s)",
                                     work->kind, work->name);
    g_autofree char *line = g_strdup_printf("%s %s %s%s; Ctrl-C leaves it waiting", work->kind,
                                            work->name, nobody ? "waits: " : "", what);
    screen_print(line);
    following->told = true;
}

static void show(struct following *following, const json_t *row)
{
    const char *status = cli_cell_string(row, 0), *backend = cli_cell_string(row, 1);
    following->waits = cli_cell_value(row, 2) == NULL;
    if (!following->waits)
        following->since_ms = loop_boot_ms();
    else
        tell_waiting(following, backend);
    if (following->cli->json)
        return;
    g_autofree char *line =
        g_strdup_printf("%s %s: %s%s%s", following->work->kind, following->work->name, status,
                        !following->waits ? ""
                        : *backend        ? ", waits for a member of "
                                          : ", waits for a back end to be chosen",
                        following->waits ? backend : "");
    screen_draw((const char *const[]){line, NULL});
}

/* Before that, a row that is not there is not there yet. */
static bool see(struct following *following, GError **error)
{
    json_autoptr info = cli_call(following->cli, "QueryClusterInfo", json_array(), error);
    following->seen =
        json_integer_value(json_object_get(info, "serial")) >= (json_int_t)following->work->row;
    return info != NULL;
}

/* `end` is set when its row is gone. */
static bool look(struct following *following, GError **error)
{
    const struct volume_request *work = following->work;
    if (!following->seen && !see(following, error))
        return false;
    if (!following->seen)
        return true;
    json_autoptr rows = cli_query(following->cli, "worker",
                                  (const char *const[]){"status", "backend", "service", NULL},
                                  json_make("[s[ssI][sss]]", "&", "=", "id", (json_int_t)work->row,
                                            "=", "resource_id", work->uuid),
                                  error);
    if (rows != NULL && json_array_size(rows) > 0)
        show(following, json_array_get(rows, 0));
    else if (rows != NULL)
        following->end = cli_query(following->cli, work->kind,
                                   (const char *const[]){"status", "why", "size", "backend", NULL},
                                   json_make("[sss]", "=", "uuid", work->uuid), error);
    return rows != NULL && (json_array_size(rows) > 0 || following->end != NULL);
}

/* Until something changes about resources of its kind. */
static bool wait_for_news(struct following *following, GError **error)
{
    if (!following->seen) {
        if (cli_wait_readable(-1, BEHIND_MS, true) != CLI_WAIT_INTERRUPTED)
            return true;
        fettle_set_error(error, DETACHED, "interrupted");
        return false;
    }
    json_autoptr answer = cli_call(following->cli, "WatchChanges",
                                   json_make("[{s[s]} s I i]", following->work->kind, "status",
                                             following->stream, following->position, LIVE_WAIT_S),
                                   error);
    const char *stream = json_string_value(json_object_get(answer, "stream"));
    g_free(following->stream);
    following->stream = g_strdup(stream != NULL ? stream : "");
    following->position = json_integer_value(json_object_get(answer, "serial"));
    return answer != NULL;
}

static void set_left(const struct following *following, GError **error)
{
    const struct volume_request *work = following->work;
    if (following->waits && makes(work))
        fettle_set_error(
            error, DETACHED,
            "%s of %s %s waits; see for what with: fettle why %s %s; withdraw it with: "
            "fettle %s delete %s",
            work->operation, work->kind, work->name, work->kind, work->name, work->kind,
            work->name);
    else
        fettle_set_error(error, DETACHED,
                         "%s of %s %s goes on; see how it stands with: fettle %s info %s",
                         work->operation, work->kind, work->name, work->kind, work->name);
}

static bool follow(struct following *following, GError **error)
{
    while (following->end == NULL) {
        g_autoptr(GError) reason = NULL;
        if (look(following, &reason) &&
            (following->end != NULL || wait_for_news(following, &reason)))
            continue;
        bool left = fettle_error_is(reason, DETACHED);
        if (!left && !cli_is_passing(reason)) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return false;
        }
        if (left || !cli_wait_for_luxid(following->cli, following->cli->json, reason)) {
            set_left(following, error);
            return false;
        }
    }
    return true;
}

/* --- what has come of it --- */

static bool deletes(const struct volume_request *work)
{
    return g_str_has_prefix(work->operation, "delete-");
}

static bool uploads(const struct volume_request *work)
{
    return strcmp(work->operation, "upload-volume") == 0;
}

/* `Volume`, of the kind of what was asked for. */
static char *title(const struct volume_request *work)
{
    return g_strdup_printf("%c%s", g_ascii_toupper(*work->kind), work->kind + 1);
}

static int say_gone(struct cli *cli, const struct volume_request *work, GError **error)
{
    g_autofree char *kind = title(work);
    if (deletes(work)) {
        cli_say(cli, json_make("{ss}", work->kind, work->uuid), "%s %s is deleted.", kind,
                work->name);
        return 0;
    }
    fettle_set_error(error, WRONG_STATE, "%s %s is gone: it was deleted meanwhile", work->kind,
                     work->name);
    return -1;
}

/* What an attachment says is shown of an available one alone. */
static bool is_well(const char *status)
{
    static const char *const words[] = {"available", "active",    "reserved", "attaching",
                                        "in-use",    "detaching", NULL};
    return g_strv_contains(words, status);
}

static int say_end(struct cli *cli, const struct volume_request *work, const json_t *row,
                   GError **error)
{
    const char *status = cli_cell_string(row, 0), *why = cli_cell_string(row, 1);
    json_int_t size = json_integer_value(cli_cell_value(row, 2));
    bool meant = is_well(status) && size >= (json_int_t)work->size && !deletes(work) &&
                 *why == '\0'; /* what could not be restored, moved or read is available still */
    g_autofree char *kind = title(work);
    if (meant) {
        json_t *object =
            json_make("{ss ss sI}", work->kind, work->uuid, "status", status, "size", size);
        if (strcmp(work->operation, "extend-volume") == 0)
            cli_say(cli, object, "Volume %s has %" JSON_INTEGER_FORMAT " GiB.", work->name, size);
        else if (strcmp(work->operation, "restore-backup") == 0)
            cli_say(cli, object, "Backup %s is restored into volume %s.", work->name, work->into);
        else if (strcmp(work->operation, "migrate-volume") == 0)
            cli_say(cli, object, "Volume %s is on %s.", work->name, cli_cell_string(row, 3));
        else if (strcmp(work->operation, "retype-volume") == 0)
            cli_say(cli, object, "Volume %s has type %s, and is on %s.", work->name, work->into,
                    cli_cell_string(row, 3));
        else if (uploads(work))
            cli_say(cli, object, "Image %s is made of volume %s.", work->into, work->name);
        else
            cli_say(cli, object, "%s %s is %s.", kind, work->name, status);
        return 0;
    }
    if (*why != '\0' && is_well(status))
        fettle_set_error(error, STORAGE, "%s %s could not be %s: %s", work->kind, work->name,
                         uploads(work)                       ? "uploaded"
                         : strcmp(work->kind, "volume") == 0 ? "moved"
                                                             : "restored",
                         why);
    else if (*why != '\0')
        fettle_set_error(error, STORAGE, "%s %s: %s: %s", work->kind, work->name, status, why);
    else
        fettle_set_error(error, WRONG_STATE,
                         "%s %s is %s: somebody has ended what was asked for; see: fettle %s "
                         "info %s",
                         work->kind, work->name, status, work->kind, work->name);
    return -1;
}

int volume_follow(struct cli *cli, const struct volume_request *work, GError **error)
{
    struct following following = {
        .cli = cli, .work = work, .stream = g_strdup(""), .since_ms = loop_boot_ms()};
    cli_interrupt_catch();
    cli->interruptible = true;
    bool ended = follow(&following, error);
    cli->interruptible = false;
    screen_clear();
    int code = -1;
    if (ended && json_array_size(following.end) == 0)
        code = say_gone(cli, work, error);
    else if (ended)
        code = say_end(cli, work, json_array_get(following.end, 0), error);
    json_decref(following.end);
    g_free(following.stream);
    return code;
}

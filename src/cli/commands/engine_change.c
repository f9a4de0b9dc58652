/*
 * `fettle cluster engine etcd|sqlite`: asks fettle-wconfd of the master for the change, prints what
 * it says, and waits until the process that comes after it serves with the new engine.
 */
#include "cli/commands/engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/wconfd.h"
#include "io/loop.h"
#include "proto/engine_config.h"

#define PROGRESS_WAIT_MS 5000
#define SEAT_PATIENCE_MS 60000
#define SEAT_PAUSE_MS 200
#define OLD_PATIENCE_MS 5000

static bool is_sure(const struct cli *cli, enum engine_kind kind, bool yes, GError **error)
{
    if (yes || cli->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    g_autofree char *question = g_strdup_printf(
        "Changes of the configuration will become final %s. They wait for some seconds meanwhile, "
        "the master's daemons start anew, and jobs that run now end with an error. Instances run "
        "on.",
        kind == ENGINE_KIND_ETCD ? "in etcd on all master candidates" : "in the master's store");
    return cli_is_sure(question, error);
}

/* --- what the master says --- */

struct talk {
    struct cli *cli;
    struct wconfd_line *line;
    enum engine_kind kind;
    guint seen; /* lines */
    bool ended; /* it does not answer any more: the next process has the new engine */
};

static struct engine_progress *ask(struct talk *talk, GError **error)
{
    g_autoptr(GError) local = NULL;
    json_t *args =
        json_make("{sI si}", "seen", (json_int_t)talk->seen, "wait_ms", PROGRESS_WAIT_MS);
    json_autoptr answer = wconfd_call(talk->line, "engine_progress", args, &local);
    struct engine_progress *progress =
        answer != NULL ? engine_progress_parse(answer, RECORD_LAX, error) : NULL;
    talk->ended = local != NULL;
    return progress;
}

static void show(struct talk *talk, const struct engine_progress *progress)
{
    for (guint i = 0; i < progress->lines->len; i++)
        if (!talk->cli->json)
            printf("%s\n", (const char *)progress->lines->pdata[i]);
    fflush(stdout);
    talk->seen += progress->lines->len;
}

/* Until the change has ended, or the process that carried it out. */
static bool follow(struct talk *talk, GError **error)
{
    for (;;) {
        record_autoptr(engine_progress) progress = ask(talk, error);
        if (progress == NULL)
            return talk->ended;
        show(talk, progress);
        if (*progress->code != '\0') {
            g_set_error(error, FETTLE_ERROR, (gint)fettle_error_from_name(progress->code), "%s",
                        progress->why);
            return false;
        }
        if (!progress->running)
            return true;
    }
}

/* --- afterwards --- */

static bool wait_for_seat(struct talk *talk, GError **error)
{
    gint64 until = loop_boot_ms() + SEAT_PATIENCE_MS;
    bool never = false, changed = false;
    gint64 old_since = 0; /* a master serves with the old engine; after the step back it does not */
    while (loop_boot_ms() < until) {
        record_autoptr(role_status) status = wconfd_role(talk->line, NULL);
        changed = status != NULL && status->engine == (guint64)talk->kind;
        bool old = status != NULL && status->seat == SEAT_MASTER && !changed;
        old_since = !old ? 0 : old_since != 0 ? old_since : loop_boot_ms();
        if (old && loop_boot_ms() - old_since > OLD_PATIENCE_MS)
            break;
        bool served = status != NULL && engine_has_master(status, wconfd_node(talk->line));
        if (changed && served)
            return true;
        loop_run_until(&never, SEAT_PAUSE_MS);
    }
    if (old_since != 0)
        fettle_set_error(
            error, CANCELED,
            "the engine has not changed: fettle-wconfd ended in the middle, and goes on "
            "as before; what that has left on the nodes is being taken back");
    else if (changed)
        fettle_set_error(error, TIMEOUT,
                         "the engine has changed, but nobody is master after %d s; look at `fettle "
                         "cluster engine status` and at the log of fettle-wconfd",
                         SEAT_PATIENCE_MS / 1000);
    else
        fettle_set_error(error, UNKNOWN_RESULT,
                         "fettle-wconfd of this node has not come back with the new engine within "
                         "%d s; whether it has changed says `fettle cluster engine status`",
                         SEAT_PATIENCE_MS / 1000);
    return false;
}

int engine_change(struct cli *cli, enum engine_kind kind, bool yes, GError **error)
{
    const char *word = enum_word(&engine_kind_words, (int)kind);
    if (!is_sure(cli, kind, yes, error))
        return -1;
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    struct talk talk = {.cli = cli, .line = line, .kind = kind};
    json_autoptr begun =
        line != NULL ? wconfd_call(line, "change_engine", json_make("{ss}", "engine", word), error)
                     : NULL;
    if (begun == NULL || !follow(&talk, error) || !wait_for_seat(&talk, error))
        return -1;
    cli_say(cli, json_make("{ss}", "engine", word), "The engine of the cluster is %s.", word);
    return 0;
}

/* See storage_ask.h. */
#include "cli/volume/storage_ask.h"

#include "cli/wconfd.h"
#include "io/loop.h"

#define RESULT_PATIENCE_MS 30000
#define RESULT_PAUSE_MS 200

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

json_t *storage_ask(struct cli *cli, const char *method, json_t *args, const char *see,
                    GError **error)
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
                g_prefix_error(error, "whether it is on record is not known (%s): ", see);
            return NULL;
        }
        g_error_free(reason);
        loop_run_until(&never, RESULT_PAUSE_MS);
    }
}

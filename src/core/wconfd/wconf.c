/* wconfd's thinking: its life, from taking the seat to stepping down. See wconf.h and
 * wconf_private.h. */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/key_renewal.h"
#include "core/wconfd/wconf_private.h"

/* --- stepping down --- */

void wconf_on_step_down(struct wconf *wconf, void (*fn)(const GError *reason, void *data),
                        void *data)
{
    wconf->on_down = fn;
    wconf->on_down_data = data;
}

void wconf_step_down(struct wconf *wconf, enum fettle_error code, const char *format, ...)
{
    if (wconf->down)
        return;
    va_list args;
    va_start(args, format);
    wconf->down = g_error_new_valist(FETTLE_ERROR, (gint)code, format, args);
    va_end(args);
    wconf->serving = false;
    log_error("", "stepping down: %s", wconf->down->message);
    wconf_stream_end(wconf);
    wconf_join_end(wconf);
    wconf_owners_end(wconf);
    wconf_locks_end(wconf);
    wconf_announce_end(wconf);
    wconf_promise_watch_end(wconf);
    wconf_followers_end(wconf);
    wconf_refuse_held_commits(wconf);
    wconf_engine_end(wconf);
    key_renewal_end(wconf);
    wconf_services_end(wconf);
    if (wconf->on_down)
        wconf->on_down(wconf->down, wconf->on_down_data);
}

/* This boot's mastership cannot go on: without its journal the next one begins under a new epoch,
 * if the other candidates let it. */
void wconf_replaced(struct wconf *wconf, const GError *why)
{
    g_autoptr(GError) error = NULL;
    if (wconf->down)
        return;
    if (!wconf->env->ops->file_remove(wconf->env, FILE_RUN, JOURNAL_FILE, &error))
        log_error("", "run/" JOURNAL_FILE ": %s", error->message);
    wconf_step_down(wconf, FETTLE_ERROR_NOT_MASTER, "%s", why->message);
}

/* --- start --- */

static void lost_cb(const char *why, void *data)
{
    wconf_step_down(data, FETTLE_ERROR_NOT_MASTER, "mastership is lost: %s", why);
}

bool wconf_start(struct wconf *wconf, GError **error)
{
    g_autofree char *note = NULL;
    wconf->journal = locks_journal_open(wconf->env, wconf->locks, &note, error);
    if (!wconf->journal || !wconf_campaign(wconf, error))
        return false;
    wconf->engine->ops->on_lost(wconf->engine, lost_cb, wconf);
    log_info("",
             "master of history %" G_GUINT64_FORMAT ", epoch %" G_GUINT64_FORMAT
             ", serial %" G_GUINT64_FORMAT "; lock journal: %s, %u locks",
             config_history(wconf->committed), wconf->epoch, config_serial(wconf->committed),
             note ? note : "continued", locks_count(wconf->locks));
    wconf_followers_begin(wconf);
    if (!wconf_record_seat(wconf, error))
        return false;
    wconf_announce(wconf);
    wconf_owners_start(wconf);
    wconf_promise_watch_start(wconf);
    if (wconf->down) {
        g_propagate_error(error, g_error_copy(wconf->down));
        return false;
    }
    wconf->serving = true;
    wconf_engine_start(wconf);
    key_renewal_start(wconf);
    wconf_services_start(wconf);
    return true;
}

void wconf_position(const struct wconf *wconf, guint64 *ret_history, guint64 *ret_epoch,
                    guint64 *ret_serial)
{
    *ret_history = config_history(wconf->committed);
    *ret_epoch = wconf->epoch ? wconf->epoch : wconf_campaign_since(wconf);
    *ret_serial = config_serial(wconf->committed);
}

const struct config *wconf_config(const struct wconf *wconf)
{
    return wconf->committed;
}

struct wconf *wconf_new(const struct env *env)
{
    struct wconf *wconf = g_new0(struct wconf, 1);
    wconf->env = env;
    wconf->engine = env->engine;
    wconf->committed = config_new();
    wconf->head = config_new();
    g_queue_init(&wconf->pending);
    wconf->pending_ids = g_hash_table_new(g_str_hash, g_str_equal);
    wconf->locks = locks_new(wconf_gate, wconf);
    wconf->announce = wconf_announce_new();
    wconf->barrier = wconf_barrier_new();
    wconf->campaign = wconf_campaign_new();
    wconf->changing = wconf_engine_new();
    wconf->flush = wconf_flush_new();
    wconf->followers = wconf_followers_new();
    wconf->ids = wconf_commit_ids_new();
    wconf->join = wconf_join_new();
    wconf->lock_waits = wconf_lock_waits_new();
    wconf->owners = wconf_owners_new();
    wconf->services = wconf_services_new();
    wconf->stream = wconf_stream_new();
    wconf->work_table = work_rows;
    return wconf;
}

static void free_duties(struct wconf *wconf)
{
    wconf_announce_free(wconf->announce);
    wconf_barrier_free(wconf->barrier);
    wconf_campaign_free(wconf->campaign);
    wconf_engine_free(wconf->changing);
    wconf_flush_free(wconf->flush);
    wconf_followers_free(wconf->followers);
    wconf_commit_ids_free(wconf->ids);
    wconf_join_free(wconf->join);
    wconf_lock_waits_free(wconf->lock_waits);
    wconf_owners_free(wconf->owners);
    wconf_services_free(wconf->services);
    wconf_stream_free(wconf->stream);
}

void wconf_free(struct wconf *wconf)
{
    if (!wconf)
        return;
    wconf->on_down = NULL;
    if (!wconf->down)
        wconf->down = g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_TEMPORARY,
                                          "the configuration daemon ends");
    wconf_promise_watch_end(wconf);
    wconf_stream_end(wconf);
    wconf_join_end(wconf);
    wconf_owners_end(wconf);
    wconf_locks_end(wconf);
    wconf_followers_end(wconf);
    wconf_engine_end(wconf);
    key_renewal_end(wconf);
    wconf_services_end(wconf);
    wconf_commit_free_all(wconf);
    wconf_barriers_end(wconf); /* answers about locks wait there */
    locks_free(wconf->locks);  /* asks the gate about nodes, so it goes before them */
    wconf_announce_end(wconf);
    free_duties(wconf);
    g_hash_table_unref(wconf->pending_ids);
    locks_journal_free(wconf->journal);
    decisions_free(wconf->decisions);
    g_clear_pointer(&wconf->problems, g_ptr_array_unref);
    config_free(wconf->head);
    config_free(wconf->committed);
    g_error_free(wconf->down);
    g_free(wconf);
}

/*
 * flush_config: answered when every candidate in reach has the newest change on its disk (WCF-04).
 * A commit waits for as many copies as cluster.commit_copies says; who is about to switch the
 * master off, or a candidate, wants to know it of all. See wconf_private.h.
 */
#include "core/wconfd/wconf_private.h"

/* Who is in reach also changes with the time alone (wconf_followers.c). */
#define FLUSH_LOOK_MS 500

struct wconf_flush {
    GPtrArray *waiting; /* struct flush: calls not answered yet */
};

struct flush {
    struct wconf *wconf;
    struct rpc_request *request;
    guint64 serial; /* the newest change when it was asked */
    guint wait_ms;
    gint64 until_ms; /* boot clock */
    guint timer;
};

struct wconf_flush *wconf_flush_new(void)
{
    struct wconf_flush *flush = g_new0(struct wconf_flush, 1);
    flush->waiting = g_ptr_array_new();
    return flush;
}

void wconf_flush_free(struct wconf_flush *flush)
{
    g_ptr_array_unref(flush->waiting);
    g_free(flush);
}

/* Candidates in reach that lack the serial, in words; "": none. Free with g_free(). */
static char *who_lacks(const struct wconf *wconf, const GPtrArray *copies, guint64 serial)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < copies->len; i++) {
        const struct copy_status *copy = copies->pdata[i];
        const char *name = config_node_name(wconf->committed, copy->node);
        if (!copy->reachable || copy->serial >= serial)
            continue;
        if (copy->serial)
            g_string_append_printf(text, "%s%s is at serial %" G_GUINT64_FORMAT,
                                   text->len ? ", " : "", name, copy->serial);
        else
            g_string_append_printf(text, "%s%s has not been heard of yet", text->len ? ", " : "",
                                   name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static json_t *result_of(const struct flush *flush, const GPtrArray *copies)
{
    const struct wconf *wconf = flush->wconf;
    record_autoptr(flush_config_result) result = flush_config_result_new();
    result->history = config_history(wconf->committed);
    result->epoch = wconf->epoch;
    result->serial = flush->serial;
    for (guint i = 0; i < copies->len; i++) {
        const struct copy_status *copy = copies->pdata[i];
        struct flushed_copy from = {.node = copy->node,
                                    .name = (char *)config_node_name(wconf->committed, copy->node),
                                    .serial = copy->serial,
                                    .reachable = copy->reachable};
        g_ptr_array_add(result->copies, flushed_copy_copy(&from));
    }
    return flush_config_result_to_json(result);
}

static void fail_late(struct flush *flush, const char *lacking)
{
    rpc_fail_new(flush->request, FETTLE_ERROR_TIMEOUT,
                 "serial %" G_GUINT64_FORMAT " is stored, but after %u ms not on the disk of every "
                 "candidate in reach: %s; they get it by themselves, ask again",
                 flush->serial, flush->wait_ms, lacking);
}

/* Answers it if that is possible by now. */
static bool has_ended(struct flush *flush)
{
    struct wconf *wconf = flush->wconf;
    if (wconf->down) {
        rpc_fail(flush->request, wconf->down);
        return true;
    }
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func((GDestroyNotify)copy_status_free);
    wconf_followers_list(wconf, copies);
    g_autofree char *lacking = who_lacks(wconf, copies, flush->serial);
    if (!*lacking) /* the newest there is, only if this is the master still (SAF-03) */
        wconf_answer_after_barrier(wconf, flush->request, result_of(flush, copies));
    else if (wconf->env->ops->boot_ms(wconf->env) >= flush->until_ms)
        fail_late(flush, lacking);
    else
        return false;
    return true;
}

static void look_cb(void *data)
{
    struct flush *flush = data;
    flush->timer = 0;
    wconf_flush_look(flush->wconf);
}

static void flush_wait(struct flush *flush)
{
    const struct env *env = flush->wconf->env;
    gint64 left = flush->until_ms - env->ops->boot_ms(env);
    if (!flush->timer)
        flush->timer = env->ops->timer(env, (guint)CLAMP(left, 1, FLUSH_LOOK_MS), look_cb, flush);
}

static void flush_free(struct flush *flush)
{
    if (flush->timer)
        flush->wconf->env->ops->timer_cancel(flush->wconf->env, flush->timer);
    g_free(flush);
}

void wconf_flush_look(struct wconf *wconf)
{
    if (wconf->flush->waiting->len == 0) /* as with nearly every commit */
        return;
    g_autoptr(GPtrArray) flushes = wconf->flush->waiting;
    wconf->flush->waiting = g_ptr_array_new();
    for (guint i = 0; i < flushes->len; i++) {
        struct flush *flush = flushes->pdata[i];
        if (has_ended(flush)) {
            flush_free(flush);
        } else {
            flush_wait(flush);
            g_ptr_array_add(wconf->flush->waiting, flush);
        }
    }
}

void wconf_handle_flush_config(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(flush_config_args) args =
        rpc_request_args(request, &flush_config_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    if (wconf->flush->waiting->len >= LIMIT_FLUSHES) {
        rpc_fail_new(request, FETTLE_ERROR_LIMIT,
                     "%d calls wait for the copies of all candidates already; try again later",
                     LIMIT_FLUSHES);
        return;
    }
    struct flush *flush = g_new0(struct flush, 1);
    flush->wconf = wconf;
    flush->request = request;
    flush->serial = config_serial(wconf->committed);
    flush->wait_ms = (guint)args->wait_ms;
    flush->until_ms = wconf->env->ops->boot_ms(wconf->env) + (gint64)args->wait_ms;
    wconf_followers_hurry(wconf, flush->serial);
    g_ptr_array_add(wconf->flush->waiting, flush);
    wconf_flush_look(wconf);
}

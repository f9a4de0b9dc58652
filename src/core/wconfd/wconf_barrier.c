/* Answers that rest on being the master still: barriers of the engine (SAF-03). See
 * wconf_private.h.
 */
#include "core/wconfd/wconf_private.h"

struct barrier_wait {
    void (*fn)(struct wconf *wconf, void *data);
    void *data;
};

/* Those that wait for the barrier under way; lives until the engine calls back. */
struct barrier_round {
    struct wconf *wconf;
    GPtrArray *waits;
};

struct wconf_barrier {
    GPtrArray *next;             /* struct barrier_wait of the next barrier */
    struct barrier_round *round; /* under way; NULL for none */
};

struct wconf_barrier *wconf_barrier_new(void)
{
    struct wconf_barrier *barrier = g_new0(struct wconf_barrier, 1);
    barrier->next = g_ptr_array_new_with_free_func(g_free);
    return barrier;
}

void wconf_barrier_free(struct wconf_barrier *barrier)
{
    g_free(barrier);
}

static void barrier_start(struct wconf *wconf);

static void run_waits(struct wconf *wconf, GPtrArray *waits)
{
    for (guint i = 0; i < waits->len; i++) {
        struct barrier_wait *wait = waits->pdata[i];
        wait->fn(wconf, wait->data);
    }
    g_ptr_array_unref(waits);
}

static void barrier_start_cb(bool still_master, void *data)
{
    struct barrier_round *round = data;
    struct wconf *wconf = round->wconf;
    wconf->barrier->round = NULL;
    if (!still_master)
        wconf_step_down(wconf, FETTLE_ERROR_NOT_MASTER,
                        "mastership is lost: the engine says that another is master");
    run_waits(wconf, round->waits);
    g_free(round);
    if (wconf->barrier->next->len > 0)
        barrier_start(wconf);
}

/* Questions that come while a barrier is under way share the next one: it must begin after they
 * were asked. */
static void barrier_start(struct wconf *wconf)
{
    struct wconf_barrier *barrier = wconf->barrier;
    struct barrier_round *round = g_new(struct barrier_round, 1);
    *round = (struct barrier_round){wconf, barrier->next};
    barrier->next = g_ptr_array_new_with_free_func(g_free);
    barrier->round = round;
    wconf->engine->ops->barrier(wconf->engine, barrier_start_cb, round);
}

void wconf_barrier(struct wconf *wconf, void (*fn)(struct wconf *wconf, void *data), void *data)
{
    struct barrier_wait *wait = g_new(struct barrier_wait, 1);
    *wait = (struct barrier_wait){fn, data};
    g_ptr_array_add(wconf->barrier->next, wait);
    if (!wconf->barrier->round)
        barrier_start(wconf);
}

void wconf_barriers_end(struct wconf *wconf)
{
    struct wconf_barrier *barrier = wconf->barrier;
    if (barrier->round) {
        run_waits(wconf, barrier->round->waits);
        g_free(barrier->round);
    }
    run_waits(wconf, barrier->next);
}

/* --- late answers --- */

struct late_answer {
    struct rpc_request *request;
    json_t *result;
};

static void answer_late(struct wconf *wconf, void *data)
{
    struct late_answer *late = data;
    if (wconf->down) {
        json_decref(late->result);
        rpc_fail(late->request, wconf->down);
    } else {
        rpc_answer(late->request, late->result);
    }
    g_free(late);
}

void wconf_answer_after_barrier(struct wconf *wconf, struct rpc_request *request, json_t *result)
{
    struct late_answer *late = g_new(struct late_answer, 1);
    *late = (struct late_answer){request, result};
    wconf_barrier(wconf, answer_late, late);
}

/* --- answers that rest on a change --- */

struct judged {
    struct wconf *wconf;
    struct rpc_request *request;
    guint64 serial; /* the newest change that it rests on */
    json_t *result; /* one of the two */
    GError *error;
};

static void answer_copied(void *data)
{
    struct judged *judged = data;
    const GError *error = judged->wconf->down ? judged->wconf->down : judged->error;
    if (error) {
        rpc_fail(judged->request, error);
        json_decref(judged->result);
    } else {
        rpc_answer(judged->request, judged->result);
    }
    g_clear_error(&judged->error);
    g_free(judged);
}

static void answer_judged(struct wconf *wconf, void *data)
{
    struct judged *judged = data;
    if (!wconf->down && judged->serial <= config_serial(wconf->committed)) {
        wconf_followers_wait(wconf, judged->serial, answer_copied, judged);
        return;
    }
    g_autoptr(GError) why = g_steal_pointer(&judged->error);
    fettle_set_error(&judged->error, TEMPORARY,
                     "%s; but that change is not stored yet, and may still be refused: ask again",
                     why ? why->message : "it was judged by a change");
    answer_copied(judged);
}

static void judge(struct wconf *wconf, struct judged from)
{
    struct judged *judged = g_new(struct judged, 1);
    *judged = from;
    wconf_barrier(wconf, answer_judged, judged);
}

void wconf_refuse_after_barrier(struct wconf *wconf, struct rpc_request *request, guint64 serial,
                                GError *error)
{
    judge(wconf, (struct judged){wconf, request, serial, .error = error});
}

void wconf_answer_judged(struct wconf *wconf, struct rpc_request *request, guint64 serial,
                         json_t *result)
{
    judge(wconf, (struct judged){wconf, request, serial, .result = result});
}

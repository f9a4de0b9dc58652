/* See watcher.h: the loop, what one pass sees, and what all parts of it share. */
#include "core/watcher/watcher_private.h"

#include "base/log.h"
#include "proto/change.h"

gint64 watcher_now(const struct watcher *watcher)
{
    return watcher->env->ops->wall_us(watcher->env) / G_USEC_PER_SEC;
}

const struct guest_report *watcher_guest(const struct watcher *watcher,
                                         const struct instance *instance, bool *ret_reported)
{
    const struct guest_report *guest =
        reports_guest(watcher->reports, instance->primary_node, instance->uuid);
    *ret_reported = reports_of(watcher->reports, instance->primary_node) != NULL;
    return guest != NULL && guest->generation == instance->generation ? guest : NULL;
}

bool watcher_guest_absent(const struct instance *instance, const struct guest_report *guest)
{
    return guest == NULL || guest->state == GUEST_ABSENT ||
           (guest->state == GUEST_INCOMING && *instance->migration == '\0');
}

bool watcher_node_online(const struct watcher *watcher, const char *uuid)
{
    const struct node *node = config_get(follow_config(watcher->follow), "node", uuid, NULL);
    return node != NULL && !node->offline;
}

const struct cluster *watcher_cluster(const struct watcher *watcher)
{
    return config_cluster(follow_config(watcher->follow));
}

const struct replica *watcher_replica(const struct watcher *watcher,
                                      const struct instance *instance)
{
    return *instance->replica == '\0'
               ? NULL
               : config_get(follow_config(watcher->follow), "replica", instance->replica, NULL);
}

bool watcher_record(const struct watcher *watcher, struct decision *decision, GPtrArray *changes)
{
    const struct config *config = follow_config(watcher->follow);
    if (decision->event == EVENT_NONE)
        return decisions_record(watcher->decisions, config, watcher->env, decision, changes);
    /* Each is told, also one like that before it (RCV-27). */
    decisions_add(watcher->decisions, config, watcher->env, decision, changes);
    return true;
}

const struct decision *watcher_latest(const struct watcher *watcher, const char *subject,
                                      const char *author)
{
    return decisions_latest(watcher->decisions, follow_config(watcher->follow), subject, author);
}

const struct decision *watcher_latest_event(const struct watcher *watcher, const char *subject,
                                            const char *author)
{
    return decisions_latest_event(watcher->decisions, follow_config(watcher->follow), subject,
                                  author);
}

gint64 watcher_pause_ms(guint tries)
{
    return 1000 * MIN(G_GINT64_CONSTANT(1) << MIN(tries, 20), (gint64)LIMIT_REPAIR_PAUSE_S);
}

/* --- commits --- */

GPtrArray *watcher_changes_new(void)
{
    return change_list_new();
}

bool watcher_commit_as(struct watcher *watcher, const char *change, GPtrArray *changes)
{
    g_autoptr(GError) error = NULL;
    if (changes->len == 0 || follow_commit(watcher->follow, change, watcher->owner, changes,
                                           follow_stamp(watcher->follow), 0, &error))
        return true;
    if (!fettle_error_is(error, KILLED) && !fettle_error_is(error, VERSION_CONFLICT))
        log_warning("", "what was decided could not be committed, the next pass tries again: %s",
                    error->message);
    return false;
}

bool watcher_commit(struct watcher *watcher, GPtrArray *changes)
{
    return watcher_commit_as(watcher, "record_repairs", changes);
}

GPtrArray *watcher_batch_new(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
}

void watcher_batch_add(GPtrArray *batch, GPtrArray *changes)
{
    if (changes->len > 0)
        g_ptr_array_add(batch, changes);
    else
        g_ptr_array_unref(changes);
}

/* Some subjects of a batch in one commit, borrowed. */
static bool commit_some(struct watcher *watcher, const char *change, const GPtrArray *batch,
                        guint from, guint to)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (guint i = from; i < to; i++)
        g_ptr_array_extend(all, batch->pdata[i], NULL, NULL);
    return watcher_commit_as(watcher, change, all);
}

bool watcher_batch_commit_as(struct watcher *watcher, const char *change, const GPtrArray *batch)
{
    bool good = true;
    for (guint from = 0, to; from < batch->len; from = to) {
        guint sum = 0;
        for (to = from; to < batch->len; to++) {
            guint more = ((const GPtrArray *)batch->pdata[to])->len;
            if (to > from && sum + more > LIMIT_REPAIR_BATCH)
                break;
            sum += more;
        }
        if (commit_some(watcher, change, batch, from, to))
            continue;
        for (guint i = from; i < to && !task_killed(); i++)
            good = (to - from > 1 && commit_some(watcher, change, batch, i, i + 1)) && good;
    }
    return good && !task_killed();
}

bool watcher_batch_commit(struct watcher *watcher, const GPtrArray *batch)
{
    return watcher_batch_commit_as(watcher, "record_repairs", batch);
}

/* --- the loop --- */

struct watcher_loop {
    gint64 row_ms; /* boot clock: the end of the last pass that news have started */
    guint row_passes, row_pause_ms;      /* of such passes that soon follow each other */
    gint64 next_tend_ms, next_repair_ms; /* boot clock: when each duty is due without news */
    struct task *sleeper;                /* the loop, while it waits for the next pass */
    guint timer;
    bool paused; /* a person has asked for quiet */
    bool news;   /* something that matters changed since the pass began */
};

static bool ask_nodes(struct watcher *watcher)
{
    watcher->reports_serial = config_serial(follow_config(watcher->follow));
    g_clear_pointer(&watcher->reports, reports_free);
    watcher->reports = reports_ask(watcher->env, watcher->follow, NULL);
    return watcher->reports != NULL;
}

/* One look at every instance, because reading them all is what a quiet pass costs. What changes
 * while the duties wait is looked at again by them, or is news for the next pass. UUIDs: the list
 * borrows from the copy. */
static void look(struct watcher *watcher, GPtrArray *const concerned[WATCHER_DUTIES])
{
    const struct watcher_duties *duties = watcher->duties;
    g_autoptr(GPtrArray) instances = config_list(follow_config(watcher->follow), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        for (guint at = 0; at < duties->count; at++)
            if (concerned[at] != NULL && duties->rows[at].concerns(watcher, instance))
                g_ptr_array_add(concerned[at], g_strdup(instance->uuid));
    }
}

/* `due`: by enum watcher_due. */
static void run_duties(struct watcher *watcher, const bool due[])
{
    const struct watcher_duties *duties = watcher->duties;
    GPtrArray *concerned[WATCHER_DUTIES] = {NULL};
    bool looked = false;
    for (guint i = 0; i < duties->count; i++)
        if (due[duties->rows[i].due] && duties->rows[i].concerns != NULL)
            concerned[i] = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < duties->count; i++) {
        if (concerned[i] != NULL && !looked)
            look(watcher, concerned);
        looked |= concerned[i] != NULL;
        if (concerned[i] != NULL)
            duties->rows[i].run_for(watcher, concerned[i]);
        else if (due[duties->rows[i].due])
            duties->rows[i].run(watcher);
        g_clear_pointer(&concerned[i], g_ptr_array_unref);
    }
}

/* A person has asked for quiet for a while. What was new meanwhile is looked at afterwards. */
static bool is_paused(struct watcher *watcher)
{
    const struct switches *switches = config_switches(follow_config(watcher->follow));
    guint64 now = (guint64)(watcher->env->ops->wall_us(watcher->env) / G_USEC_PER_SEC);
    bool paused = switches != NULL && switches->watcher_paused_until > now;
    if (paused != watcher->loop->paused)
        log_info("", paused ? "the watcher is paused" : "the watcher works again");
    watcher->loop->paused = paused;
    return paused;
}

/* Auto-repair keeps its own time if it has an interval of its own (ARP-02); else news wake all
 * duties. */
static void one_pass(struct watcher *watcher)
{
    if (watcher_cluster(watcher) == NULL || is_paused(watcher))
        return;
    struct watcher_loop *loop = watcher->loop;
    bool news = loop->news;
    loop->news = false;
    if (!ask_nodes(watcher))
        return;
    const struct cluster *cluster = watcher_cluster(watcher);
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    gint64 own_ms = (gint64)cluster->repair_interval_ms;
    bool tend = news || now_ms >= loop->next_tend_ms;
    bool repair = own_ms == 0 ? tend : now_ms >= loop->next_repair_ms;
    if (tend)
        loop->next_tend_ms = now_ms + (gint64)cluster->watcher_interval_ms;
    if (repair)
        loop->next_repair_ms = now_ms + own_ms;
    watcher->pass++;
    watcher_jobs_begin(watcher);
    const bool due[] = {[DUE_ALWAYS] = true, [DUE_TEND] = tend, [DUE_REPAIR] = repair};
    run_duties(watcher, due);
}

/* How long there is nothing to do if nothing happens. */
static guint pause_ms(const struct watcher *watcher)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    if (cluster == NULL)
        return 1000;
    const struct watcher_loop *loop = watcher->loop;
    gint64 due = cluster->repair_interval_ms == 0 ? loop->next_tend_ms
                                                  : MIN(loop->next_tend_ms, loop->next_repair_ms);
    /* Never longer than the interval as it is now: it may have been changed. */
    gint64 most = (gint64)cluster->watcher_interval_ms;
    return (guint)CLAMP(due - watcher->env->ops->boot_ms(watcher->env), 1, most);
}

/* Where news do not end, as while jobs end one after the other, the passes that they start stand
 * further and further apart: each asks every node for its report and looks at every instance. */
static guint row_pause_ms(struct watcher *watcher)
{
    gint64 now = watcher->env->ops->boot_ms(watcher->env);
    struct watcher_loop *loop = watcher->loop;
    gint64 apart = 2 * (gint64)MAX(loop->row_pause_ms, LIMIT_WATCHER_PAUSE_MS);
    if (now - loop->row_ms > apart)
        loop->row_passes = loop->row_pause_ms = 0;
    loop->row_ms = now;
    if (++loop->row_passes > WATCHER_ROW_PASSES)
        loop->row_pause_ms =
            CLAMP(2 * loop->row_pause_ms, LIMIT_WATCHER_PAUSE_MS, LIMIT_WATCHER_ROW_MS);
    return loop->row_pause_ms;
}

/* How long the next pass is waited for in any case. */
static guint least_pause_ms(struct watcher *watcher, bool by_news)
{
    guint pause = by_news ? row_pause_ms(watcher) : 0;
    return watcher->loop->news ? MAX(pause, LIMIT_WATCHER_PAUSE_MS) : pause;
}

static void wake(struct watcher *watcher)
{
    if (watcher->loop->sleeper != NULL)
        task_wake(g_steal_pointer(&watcher->loop->sleeper));
}

static void timer_cb(void *data)
{
    struct watcher *watcher = data;
    watcher->loop->timer = 0;
    wake(watcher);
}

/* Records, numbers and jobs on their way change nothing that a pass looks at. */
static bool matters(const struct watcher *watcher, const struct change *change)
{
    if (g_str_equal(change->kind, "decision") || g_str_equal(change->kind, "counter") ||
        g_str_equal(change->kind, "service"))
        return false;
    const struct job *job =
        g_str_equal(change->kind, "job")
            ? config_get(follow_config(watcher->follow), "job", change->key, NULL)
            : NULL;
    return job == NULL || watcher_job_ended(job);
}

/* What happens is looked at when it happens; a change that an own commit made starts one more pass
 * at most. */
static void changed_cb(const GPtrArray *changes, void *data)
{
    struct watcher *watcher = data;
    bool news = changes == NULL;
    decisions_update(watcher->decisions, follow_config(watcher->follow), changes);
    watcher->duties->changed(watcher, changes);
    for (guint i = 0; changes != NULL && i < changes->len; i++)
        news |= matters(watcher, changes->pdata[i]);
    if (!news)
        return;
    watcher->loop->news = true;
    wake(watcher);
}

static void loop_task(void *data)
{
    struct watcher *watcher = data;
    struct watcher_loop *loop = watcher->loop;
    for (;;) {
        bool by_news = loop->news;
        one_pass(watcher);
        if (task_group_killed(watcher->env->tasks))
            return;
        guint pause = least_pause_ms(watcher, by_news);
        if (pause > 0 && !env_sleep(watcher->env, pause))
            return;
        if (loop->news)
            continue;
        loop->sleeper = task_self();
        loop->timer = watcher->env->ops->timer(watcher->env, pause_ms(watcher), timer_cb, watcher);
        bool alive = task_wait();
        loop->sleeper = NULL;
        if (loop->timer != 0)
            watcher->env->ops->timer_cancel(watcher->env, loop->timer);
        loop->timer = 0;
        if (!alive)
            return;
    }
}

void suspicion_clear(struct suspicion *suspicion)
{
    g_free(suspicion->text);
    *suspicion = (struct suspicion){0};
}

static void node_memory_free(void *data)
{
    struct node_memory *memory = data;
    suspicion_clear(&memory->disks);
    suspicion_clear(&memory->state);
    g_free(memory);
}

/* All but the copy of the configuration. */
static struct watcher *make(const struct env *env, const struct watcher_duties *duties)
{
    g_assert(duties->count <= WATCHER_DUTIES);
    struct watcher *watcher = g_new0(struct watcher, 1);
    watcher->env = env;
    watcher->duties = duties;
    watcher->repair = duties->make();
    watcher->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, node_memory_free);
    watcher->decisions = decisions_new();
    watcher->ages = ages_new(env);
    watcher->loop = g_new0(struct watcher_loop, 1);
    watcher->brake = watcher_brake_new();
    watcher->jobs = watcher_jobs_new();
    watcher->promotion = watcher_promotion_new();
    watcher->services = watcher_services_new();
    return watcher;
}

struct watcher *watcher_new(const struct env *env, const struct watcher_duties *duties)
{
    struct watcher *watcher = make(env, duties);
    watcher->follow = follow_new(env, changed_cb, watcher);
    return watcher;
}

bool watcher_start(struct watcher *watcher, GError **error)
{
    g_autofree char *livelock = watcher->env->ops->livelock_make(watcher->env, "watcher", error);
    if (livelock == NULL || !follow_start(watcher->follow, error))
        return false;
    watcher->owner = owner_new();
    g_free(watcher->owner->job);
    watcher->owner->job = g_strdup(ROLE_WATCHER);
    g_free(watcher->owner->livelock);
    watcher->owner->livelock = g_steal_pointer(&livelock);
    task_spawn(watcher->env->tasks, loop_task, watcher);
    return true;
}

struct watcher *watcher_view(const struct env *env, struct follow *follow,
                             const struct watcher_duties *duties)
{
    struct watcher *view = make(env, duties);
    view->follow = follow;
    if (ask_nodes(view)) {
        view->pass++;
        watcher_jobs_begin(view);
        return view;
    }
    watcher_view_free(view);
    return NULL;
}

void watcher_view_free(struct watcher *view)
{
    if (view != NULL)
        view->follow = NULL;
    watcher_free(view);
}

void watcher_free(struct watcher *watcher)
{
    if (watcher == NULL)
        return;
    follow_free(watcher->follow);
    owner_free(watcher->owner);
    ages_free(watcher->ages);
    g_hash_table_unref(watcher->nodes);
    watcher->duties->free(watcher->repair);
    reports_free(watcher->reports);
    decisions_free(watcher->decisions);
    watcher_services_free(watcher->services);
    watcher_promotion_free(watcher->promotion);
    watcher_jobs_free(watcher->jobs);
    watcher_brake_free(watcher->brake);
    g_free(watcher->loop);
    g_free(watcher);
}

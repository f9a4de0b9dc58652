/* See recovery.h: one pass. */
#include "core/recovery/recovery_private.h"
#include "core/recovery/stored.h"

#include <string.h>

#include "base/log.h"
#include "core/config/fault.h"

static void remembered_free(void *data)
{
    g_free(data);
}

struct recovery *recovery_new(recovery_waits_fn waits)
{
    struct recovery *recovery = g_new0(struct recovery, 1);
    recovery->waits = waits;
    recovery->silent = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    recovery->subjects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, remembered_free);
    return recovery;
}

void recovery_free(struct recovery *recovery)
{
    if (recovery == NULL)
        return;
    g_hash_table_unref(recovery->subjects);
    g_hash_table_unref(recovery->silent);
    g_free(recovery);
}

static struct remembered *remembered_of(struct recovery *recovery, const char *instance)
{
    struct remembered *remembered = g_hash_table_lookup(recovery->subjects, instance);
    if (remembered == NULL) {
        remembered = g_new0(struct remembered, 1);
        g_hash_table_insert(recovery->subjects, g_strdup(instance), remembered);
    }
    return remembered;
}

bool recovery_finishes(const struct recovery *recovery, const struct watcher *watcher,
                       const char *instance)
{
    const struct remembered *remembered = g_hash_table_lookup(recovery->subjects, instance);
    return remembered != NULL && watcher_job_under_way(watcher, remembered->tries.job);
}

bool recovery_concerns(const struct watcher *watcher, const struct instance *instance)
{
    const struct config *config = follow_config(watcher->follow);
    if (instance->task_state != TASK_NONE)
        return true;
    if (config_count(config, "fault") == 0)
        return false;
    const struct fault *fault = fault_of(config, "instance", instance->uuid);
    return fault != NULL && *fault->task != '\0' && (fault->blind || fault->again);
}

/* --- one subject --- */

static struct recovery_case *case_new(struct recovery *recovery, const struct watcher *watcher,
                                      const struct instance *record, guint64 version)
{
    struct recovery_case *subject = recovery_case_new(watcher, record, version);
    const struct stuck *stuck = subject->stuck;
    subject->remembered = remembered_of(recovery, record->uuid);
    /* Another master counts on, and begins the period anew: later, and never sooner. */
    if (subject->remembered->version == 0 && stuck != NULL && stuck->looks > 0)
        subject->remembered->next_ms =
            watcher->env->ops->boot_ms(watcher->env) +
            (gint64)watcher_cluster(watcher)->recovery_resync_interval * 1000;
    if (subject->remembered->version != version) {
        subject->remembered->version = version;
        subject->remembered->seen_ms = watcher->env->ops->boot_ms(watcher->env);
        subject->remembered->alerts = 0;
        subject->remembered->looks = 0;
        subject->remembered->half = false;
        subject->remembered->held_ms = 0;
        if (stuck == NULL)
            subject->remembered->next_ms = 0;
    }
    return subject;
}

/* --- who is a candidate --- */

/* What nobody has news of is looked at periodically (RCV-02). */
static bool is_time_for_the_living(const struct watcher *watcher, struct recovery_case *subject)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (now_ms < subject->remembered->lives_ms)
        return false;
    subject->remembered->lives_ms =
        now_ms + (gint64)watcher_cluster(watcher)->recovery_interval_period * 1000;
    return true;
}

/* Ages by the boot clock, since this master saw that version of the record: no wall clock, and no
 * master before, makes it older (RCV-03). */
static bool is_stale(const struct watcher *watcher, struct recovery_case *subject)
{
    struct remembered *remembered = subject->remembered;
    gint64 age_ms = watcher->env->ops->boot_ms(watcher->env) - remembered->seen_ms;
    gint64 period_ms = (gint64)watcher_cluster(watcher)->recovery_stale_period * 1000;
    if (age_ms <= period_ms * (remembered->alerts + 1))
        return false;
    remembered->alerts++;
    return true;
}

/* Somebody wants it to be judged anew. */
static bool is_asked(const struct recovery_case *subject)
{
    return (subject->stuck != NULL && subject->stuck->again) ||
           (subject->fault != NULL && subject->fault->again);
}

/* Whether it is time for a look: the first at once, later ones at their distance, or as soon as all
 * answer again, or a job that it lacks may be submitted. */
static bool is_due(const struct watcher *watcher, const struct recovery_case *subject)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    bool over = now_ms >= subject->remembered->next_ms;
    if (now_ms < subject->remembered->held_ms)
        return false;
    if (is_asked(subject))
        return true;
    if (subject->remembered->half)
        return over || now_ms >= subject->remembered->tries.after_ms;
    if (subject->fault != NULL && subject->record->task_state == TASK_NONE)
        return over && recovery_hosts_answer(watcher, subject);
    return over || (subject->remembered->unheard && recovery_hosts_answer(watcher, subject));
}

static void record_now(struct watcher *watcher, GPtrArray *changes)
{
    watcher_commit_as(watcher, "recover", changes);
    g_ptr_array_unref(changes);
}

/* A dead owner's, and nobody else's: it is looked at in this pass. What is left alone is told. */
static bool is_candidate(struct recovery *recovery, struct watcher *watcher,
                         struct recovery_case *subject, GPtrArray *batch)
{
    enum recovery_owner owner = recovery_case_owner(watcher, subject);
    GPtrArray *changes = watcher_changes_new();
    bool good = false;
    if (owner == OWNER_LIVES || owner == OWNER_UNKNOWN) {
        if (is_time_for_the_living(watcher, subject) && is_stale(watcher, subject))
            recovery_tell_stale(watcher, subject, owner, changes);
    } else if (owner == OWNER_DEAD && recovery_may_finish(watcher, subject)) {
        g_autofree char *waits = recovery->waits(watcher, subject->instance);
        if (waits != NULL)
            recovery_tell_wait(watcher, subject, waits, changes);
        else
            good = is_due(watcher, subject);
    }
    watcher_batch_add(batch, changes);
    return good;
}

/* --- locks --- */

static bool call_locks(struct watcher *watcher, const char *method, const void *args,
                       struct acquired_locks **ret)
{
    g_autoptr(GError) error = NULL;
    void *answer = env_call_record(watcher->env, NODE_LOCAL, ROLE_WCONFD, method, args,
                                   follow_stamp(watcher->follow), 0, 0, &error);
    if (answer == NULL && !fettle_error_is(error, KILLED))
        log_warning("", "locks for what is stuck: %s", error->message);
    *ret = answer;
    return answer != NULL;
}

static void free_request(void *request)
{
    lock_request_free(request);
}

/* By opportunistic unions: what is not got has a user that lives, and is not waited for. */
static GHashTable *lock_all(struct watcher *watcher, const GPtrArray *cases)
{
    GHashTable *got = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint from = 0; from < cases->len; from += LIMIT_LOCKS_PER_CALL) {
        g_autoptr(GPtrArray) wanted = g_ptr_array_new_with_free_func(free_request);
        for (guint i = from; i < MIN(cases->len, from + LIMIT_LOCKS_PER_CALL); i++) {
            const struct recovery_case *subject = cases->pdata[i];
            struct lock_request *request = lock_request_new();
            g_free(request->name);
            request->name = g_strconcat("instance/", subject->record->name, NULL);
            request->mode = LOCK_EXCLUSIVE;
            g_ptr_array_add(wanted, request);
        }
        struct union_locks_args args = {.owner = watcher->owner, .locks = wanted};
        struct acquired_locks *acquired = NULL;
        if (!call_locks(watcher, "union_locks", &args, &acquired))
            break;
        for (guint i = 0; i < acquired->locks->len; i++)
            g_hash_table_add(got, g_strdup(acquired->locks->pdata[i]));
        acquired_locks_free(acquired);
    }
    return got;
}

/* Until that has succeeded nothing is submitted that would wait for them; the next pass tries it
 * again. */
static bool unlock_all(struct recovery *recovery, struct watcher *watcher)
{
    struct owner_args args = {.owner = watcher->owner};
    struct acquired_locks *ignored = NULL;
    if (recovery->holds && call_locks(watcher, "free_locks", &args, &ignored)) {
        nothing_free((struct nothing *)ignored);
        recovery->holds = false;
    }
    return !recovery->holds;
}

static bool has_lock(GHashTable *got, const struct recovery_case *subject)
{
    g_autofree char *name = g_strconcat("instance/", subject->record->name, NULL);
    return g_hash_table_contains(got, name);
}

/* --- judgements --- */

/* Its event was made with the first try, whatever was told since of looks that failed (RCV-32). */
static bool is_told(const struct watcher *watcher, const struct recovery_case *subject)
{
    const struct decision *latest =
        watcher_latest_event(watcher, subject->record->uuid, RECOVERY_AUTHOR);
    g_autofree char *job = g_strdup_printf(
        "Job %" G_GUINT64_FORMAT " ended while %s it; it is %s", subject->instance->task_owner,
        latest != NULL ? latest->task : "", judge_finisher_text(subject->judgement->finisher));
    return latest != NULL && g_str_has_prefix(latest->summary, job);
}

/* When it is looked at again if nothing else comes of it. */
static void remember(const struct watcher *watcher, const struct recovery_case *subject)
{
    const struct judgement *judgement = subject->judgement;
    const struct instance *instance = subject->instance;
    struct remembered *remembered = subject->remembered;
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    remembered->half = judgement->how == JUDGED_FINISH;
    remembered->down = instance->admin_state == ADMIN_UP && !judgement->runs;
    gint64 later_ms = now_ms + (gint64)watcher_cluster(watcher)->recovery_interval_period * 1000;
    remembered->next_ms = remembered->half ? later_ms : 0;
    if (judgement->how == JUDGED_BUSY)
        remembered->held_ms = now_ms + LIMIT_COLLECT_AGAIN_MS;
    else if (judgement->how == JUDGED_ERROR && !watcher_may_make(watcher, "fault"))
        remembered->held_ms = later_ms;
}

void recovery_judge(struct watcher *watcher, struct recovery_case *subject,
                    const struct sights *sights, GPtrArray *changes)
{
    const struct recovery_view view = {follow_config(watcher->follow), watcher->reports, sights};
    subject->judgement = judge_instance(&view, subject->instance);
    if (subject->judgement == NULL)
        return;
    enum judged how = subject->judgement->how;
    subject->finish = how == JUDGED_FINISH;
    remember(watcher, subject);
    if (how == JUDGED_BUSY) {
        g_autofree char *why = g_strdup_printf("on %s", subject->judgement->why);
        recovery_tell_wait(watcher, subject, why, changes);
    } else if (how == JUDGED_BLIND) {
        recovery_look_failed(watcher, subject, changes);
    } else if (how != JUDGED_FINISH || !is_told(watcher, subject)) {
        recovery_apply(watcher, subject, changes);
        if (how == JUDGED_SETTLED)
            recovery_settle_volumes(watcher, subject, sights, changes);
    }
}

/* --- rounds --- */

/* Its hosts, without those that have not answered a question of this pass. */
static GPtrArray *hosts_to_ask(const struct recovery *recovery, const struct recovery_case *subject)
{
    GPtrArray *hosts = recovery_hosts(subject->instance, NULL);
    for (guint i = hosts->len; i > 0; i--)
        if (g_hash_table_contains(recovery->silent, hosts->pdata[i - 1]))
            g_ptr_array_remove_index(hosts, i - 1);
    return hosts;
}

/* Whether its hosts are asked about one more in this round. `asked`: host -> about how many. */
static bool has_room(const struct recovery *recovery, GHashTable *asked,
                     const struct recovery_case *subject)
{
    g_autoptr(GPtrArray) hosts = hosts_to_ask(recovery, subject);
    for (guint i = 0; i < hosts->len; i++)
        if (GPOINTER_TO_UINT(g_hash_table_lookup(asked, hosts->pdata[i])) >= LIMIT_COLLECT)
            return false;
    for (guint i = 0; i < hosts->len; i++) {
        guint count = GPOINTER_TO_UINT(g_hash_table_lookup(asked, hosts->pdata[i]));
        g_hash_table_insert(asked, hosts->pdata[i], GUINT_TO_POINTER(count + 1));
    }
    return true;
}

/* As many of them as hosts look at in one call; those are taken off the list. */
static GPtrArray *take_round(const struct recovery *recovery, GPtrArray *waiting)
{
    GPtrArray *taken = g_ptr_array_sized_new(waiting->len);
    g_autoptr(GHashTable) asked = g_hash_table_new(g_str_hash, g_str_equal);
    guint left = 0;
    for (guint i = 0; i < waiting->len; i++) {
        struct recovery_case *subject = waiting->pdata[i];
        if (has_room(recovery, asked, subject))
            g_ptr_array_add(taken, subject);
        else
            waiting->pdata[left++] = subject;
    }
    g_ptr_array_set_size(waiting, (gint)left);
    return taken;
}

/* A host that has not answered is not waited for again in this pass. */
static void remember_silent(struct recovery *recovery, const struct sights *sights)
{
    g_autoptr(GPtrArray) nodes = sights_silent(sights);
    for (guint i = 0; i < nodes->len; i++)
        g_hash_table_add(recovery->silent, g_strdup(nodes->pdata[i]));
}

static void ask_about(const struct recovery *recovery, const struct watcher *watcher,
                      const struct recovery_case *subject, struct sights *sights)
{
    g_autoptr(GPtrArray) hosts = hosts_to_ask(recovery, subject);
    recovery_case_want(watcher, subject, hosts, subject->instance->task_owner, sights);
}

static bool one_round(struct recovery *recovery, struct watcher *watcher, GPtrArray *waiting)
{
    struct sights *sights = sights_new();
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func(recovery_case_free);
    g_autoptr(GPtrArray) taken = take_round(recovery, waiting);
    recovery->holds = true;
    g_autoptr(GHashTable) got = lock_all(watcher, taken);
    for (guint i = 0; i < taken->len; i++) {
        struct recovery_case *subject = taken->pdata[i];
        if (!has_lock(got, subject)) {
            recovery_case_free(subject);
            continue;
        }
        ask_about(recovery, watcher, subject, sights);
        g_ptr_array_add(cases, subject);
    }
    bool alive =
        sights_ask(sights, watcher->env, follow_stamp(watcher->follow), LIMIT_COLLECT_WAIT_MS);
    remember_silent(recovery, sights);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    for (guint i = 0; alive && i < cases->len; i++) {
        GPtrArray *changes = watcher_changes_new();
        recovery_judge(watcher, cases->pdata[i], sights, changes);
        watcher_batch_add(batch, changes);
    }
    sights_free(sights);
    if (!alive)
        return false;
    /* One that is refused has changed meanwhile: its job would end without an act (SAF-83). */
    watcher_batch_commit_as(watcher, "recover", batch);
    bool free = unlock_all(recovery, watcher);
    if (free && !task_killed())
        recovery_finish(watcher, cases);
    return free && !task_killed();
}

/* --- the pass --- */

/* Of a task that has ended, or is another one now. */
static void drop_counters(struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    g_autoptr(GPtrArray) all = config_list(config, "stuck");
    GPtrArray *changes = watcher_changes_new();
    for (guint i = 0; i < all->len && changes->len < LIMIT_REPAIR_BATCH; i++) {
        const struct stuck *stuck = all->pdata[i];
        const struct instance *instance = config_get(config, "instance", stuck->subject, NULL);
        g_autofree char *key = fault_key(stuck->subject_kind, stuck->subject);
        bool same = strcmp(stuck->subject_kind, "instance") != 0
                        ? stored_counts(config, stuck)
                        : instance != NULL && instance->task_owner == stuck->owner &&
                              strcmp(enum_word(&task_state_words, (int)instance->task_state),
                                     stuck->task) == 0;
        if (!same)
            g_ptr_array_add(changes, config_delete(config, "stuck", key));
    }
    record_now(watcher, changes);
}

static gboolean is_gone(gpointer uuid, gpointer remembered, gpointer config)
{
    return config_get(config, "instance", uuid, NULL) == NULL;
}

/* It is looked at for a job alone. */
static bool wants_a_job(const struct watcher *watcher, const struct recovery_case *subject)
{
    const struct remembered *remembered = subject->remembered;
    return remembered->half && !is_asked(subject) &&
           watcher->env->ops->boot_ms(watcher->env) < remembered->next_ms;
}

/* Nobody is asked about what there is no room for. */
static void leave_out_beyond_room(const struct watcher *watcher, GPtrArray *candidates)
{
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    g_autoptr(GPtrArray) those = g_ptr_array_new();
    for (guint i = 0; i < candidates->len; i++)
        g_ptr_array_add(wants_a_job(watcher, candidates->pdata[i]) ? those : others,
                        candidates->pdata[i]);
    if (those->len == 0)
        return;
    g_ptr_array_sort(those, recovery_down_first);
    guint room = recovery_room(watcher);
    for (guint i = room; i < those->len; i++)
        recovery_case_free(those->pdata[i]);
    g_ptr_array_set_size(those, (gint)MIN(those->len, room));
    g_ptr_array_set_size(candidates, 0);
    g_ptr_array_extend(candidates, those, NULL, NULL);
    g_ptr_array_extend(candidates, others, NULL, NULL);
}

static GPtrArray *find_candidates(struct recovery *recovery, struct watcher *watcher,
                                  const GPtrArray *uuids, GPtrArray *batch)
{
    const struct config *config = follow_config(watcher->follow);
    GPtrArray *candidates = g_ptr_array_new();
    for (guint i = 0; i < uuids->len; i++) {
        guint64 version = 0;
        const struct instance *record = config_get(config, "instance", uuids->pdata[i], &version);
        if (record == NULL || !recovery_concerns(watcher, record))
            continue;
        struct recovery_case *subject = case_new(recovery, watcher, record, version);
        if (is_candidate(recovery, watcher, subject, batch))
            g_ptr_array_add(candidates, subject);
        else
            recovery_case_free(subject);
    }
    leave_out_beyond_room(watcher, candidates);
    return candidates;
}

/* Decided and on record as what would be done. */
static void tell_shadow(struct watcher *watcher, const GPtrArray *candidates)
{
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    for (guint i = 0; i < candidates->len; i++) {
        GPtrArray *changes = watcher_changes_new();
        recovery_tell_wait(watcher, candidates->pdata[i],
                           "shadow mode; it would be looked at, and settled", changes);
        watcher_batch_add(batch, changes);
    }
    watcher_batch_commit_as(watcher, "recover", batch);
}

void recovery_run(struct recovery *recovery, struct watcher *watcher, const GPtrArray *uuids)
{
    /* Older than reality: what looks stuck may be done (RCV-06). */
    if (watcher_is_restored(watcher))
        return;
    g_hash_table_foreach_remove(recovery->subjects, is_gone,
                                (gpointer)follow_config(watcher->follow));
    g_hash_table_remove_all(recovery->silent);
    if (!unlock_all(recovery, watcher))
        return;
    drop_counters(watcher);
    g_autoptr(GPtrArray) told = watcher_batch_new();
    g_autoptr(GPtrArray) waiting = find_candidates(recovery, watcher, uuids, told);
    watcher_batch_commit_as(watcher, "recover", told);
    bool good = !task_killed();
    if (good && watcher_shadow(watcher))
        tell_shadow(watcher, waiting);
    else
        while (good && waiting->len > 0)
            good = one_round(recovery, watcher, waiting);
    g_ptr_array_foreach(waiting, (GFunc)(void (*)(void))recovery_case_free, NULL);
}

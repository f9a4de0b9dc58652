/*
 * What must hold after every step (safety.md, "What checkers watch"; SAF-01, 03, 05, 06, 07). What
 * has been committed is known from the engine's own side: each transaction of the model of etcd,
 * each one of the store that is the engine. So nothing here asks the code that is under test.
 */
#include <string.h>

#include "base/log.h"
#include "io/etcd/etcd_private.h"
#include "mastership.h"
#include "proto/digest.h"

#define STEP_DOWN_MS 6000
#define STEADY_MS 10000 /* whoever has stood still within it may be wrong about its lease */
#define LOOK_MS 15000   /* a copy in reach for so long must not be passed over */

struct epoch_owner {
    guint host;
    char boot_id[64], journal_id[37];
};

void ms_problem(struct ms *ms, const char *format, ...)
{
    if (ms->problem)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    ms->problem = g_strdup_printf("at %" G_GINT64_FORMAT " ms: %s", ms_now(ms), text);
}

void ms_tell(const struct ms *ms, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    log_info("", "[%" G_GINT64_FORMAT "] %s", ms_now(ms), text);
}

bool ms_steady(const struct ms *ms, guint a, guint b, gint64 since_ms)
{
    const struct ms_host *one = &ms->hosts[a], *other = &ms->hosts[b];
    return one->fence_ready && other->fence_ready && one->powered && other->powered &&
           !one->paused && !other->paused && !one->frozen && !other->frozen && one->sync_ms == 0 &&
           other->sync_ms == 0 && ms->delay_ms < 100 && !ms->cut[a][b] && !ms->cut[b][a] &&
           one->steady_ms < since_ms && other->steady_ms < since_ms &&
           ms->linked_ms[a][b] < since_ms && ms->linked_ms[b][a] < since_ms &&
           ms->delayed_ms < since_ms;
}

/* --- the log of what was committed --- */

static void commit_free(void *data)
{
    struct ms_commit *commit = data;
    g_free(commit->id);
    g_free(commit);
}

static struct ms_commit *commit_of(const struct ms *ms, guint64 index)
{
    return index > 0 && index < ms->log->len ? ms->log->pdata[index] : NULL;
}

guint64 ms_last_serial(const struct ms *ms)
{
    return ((const struct ms_commit *)ms->log->pdata[ms->log->len - 1])->serial;
}

struct ms_commit *ms_commit_at(const struct ms *ms, guint64 serial)
{
    struct ms_commit *commit = commit_of(ms, serial % LIMIT_SERIALS_PER_SECOND);
    return commit && commit->serial == serial ? commit : NULL;
}

struct ms_commit *ms_commit_after(const struct ms *ms, guint64 serial)
{
    return commit_of(ms, serial % LIMIT_SERIALS_PER_SECOND + 1);
}

static void note_tag(struct ms *ms, const char *id, guint64 serial)
{
    const struct ms_wish *wish = id ? g_hash_table_lookup(ms->wishes, id) : NULL;
    if (wish && wish->deletes)
        g_hash_table_remove(ms->tags, wish->key);
    else if (wish)
        g_hash_table_insert(ms->tags, g_strdup(wish->key), GSIZE_TO_POINTER(serial));
}

static void tell_theme(struct ms *ms, const char *id, guint64 serial)
{
    const GPtrArray *changes = id ? g_hash_table_lookup(ms->given, id) : NULL;
    if (ms->theme && changes)
        ms->theme->committed(ms, id, serial, changes);
    if (id)
        g_hash_table_remove(ms->given, id);
}

void ms_saw_given(struct ms *ms, const struct engine_commit *commit)
{
    g_hash_table_replace(ms->given, g_strdup(commit->commit_id),
                         g_ptr_array_ref((GPtrArray *)commit->changes));
}

static void log_add(struct ms *ms, const char *id, guint64 serial, guint64 epoch, guint64 digest)
{
    const struct ms_wish *wish = id ? g_hash_table_lookup(ms->wishes, id) : NULL;
    struct ms_commit *commit = g_new0(struct ms_commit, 1);
    *commit = (struct ms_commit){.id = g_strdup(id),
                                 .serial = serial,
                                 .epoch = epoch,
                                 .digest = digest,
                                 .stored_ms = ms->world ? ms_now(ms) : 0};
    g_ptr_array_add(ms->log, commit);
    if (id && g_hash_table_contains(ms->ids, id))
        ms_problem(ms, "commit %s is stored twice", id);
    if (id)
        g_hash_table_insert(ms->ids, commit->id, GSIZE_TO_POINTER(serial));
    if (wish && wish->epoch && wish->epoch != epoch)
        ms_problem(ms,
                   "a job of epoch %" G_GUINT64_FORMAT " has committed in epoch "
                   "%" G_GUINT64_FORMAT,
                   wish->epoch, epoch);
    note_tag(ms, id, serial);
    tell_theme(ms, id, serial);
}

/* What was lost may come to a copy all the same, if its wconfd stood still with the answer. */
static void note_lost(struct ms *ms, const struct ms_commit *commit)
{
    g_hash_table_insert(ms->lost, g_memdup2(&commit->serial, sizeof commit->serial),
                        g_memdup2(commit, sizeof *commit));
}

static bool was_lost(const struct ms *ms, const struct copy_position *at)
{
    const struct ms_commit *commit = g_hash_table_lookup(ms->lost, &at->serial);
    return commit && commit->digest == at->digest && commit->epoch == at->epoch &&
           at->epoch < ms->newest_epoch;
}

/* Changes after `serial` are lost with a master of the SQLite engine. */
static void log_cut(struct ms *ms, guint64 serial)
{
    while (ms_last_serial(ms) > serial) {
        const struct ms_commit *commit = commit_of(ms, ms->log->len - 1);
        note_lost(ms, commit);
        ms->counts->lost_changes += commit->answered;
        ms->counts->lost_alone += commit->alone;
        if (commit->id)
            g_hash_table_remove(ms->ids, commit->id);
        g_ptr_array_set_size(ms->log, (int)ms->log->len - 1);
    }
    g_hash_table_remove_all(ms->tags);
    for (guint i = 1; i < ms->log->len; i++)
        note_tag(ms, commit_of(ms, i)->id, commit_of(ms, i)->serial);
}

/* --- masterships --- */

/* A copy that a person has made an engine is the configuration from the moment on that it begins;
 * what its node had not is lost. */
static void begin_taken(struct ms_host *host)
{
    struct ms *ms = host->ms;
    log_cut(ms, host->taken.base.serial);
    for (guint i = 0; i < host->taken.count; i++)
        log_add(ms, NULL, host->taken.to[i].serial, host->taken.to[i].epoch,
                host->taken.to[i].digest);
    host->taken.now = false;
}

/* The store of a master has everything. */
static void check_store(struct ms_host *host)
{
    struct ms *ms = host->ms;
    struct copy_position at;
    if (host->taken.now)
        begin_taken(host);
    model_store_position(host->store, &at);
    if (host->word && at.serial < ms_last_serial(ms))
        log_cut(ms, at.serial);
    host->word = false;
    if (at.serial != ms_last_serial(ms) || ms_commit_at(ms, at.serial)->digest != at.digest)
        ms_problem(
            ms, "%s begins with serial %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT " was the last",
            host->uuid, at.serial, ms_last_serial(ms));
}

static void epoch_begins(struct ms_host *host, const struct mastership *me)
{
    struct ms *ms = host->ms;
    struct epoch_owner *owner = g_new(struct epoch_owner, 1);
    if (me->epoch <= ms->newest_epoch)
        ms_problem(ms,
                   "%s becomes master of epoch %" G_GUINT64_FORMAT ", behind %" G_GUINT64_FORMAT,
                   host->uuid, me->epoch, ms->newest_epoch);
    owner->host = host->index;
    g_strlcpy(owner->boot_id, me->boot_id, sizeof owner->boot_id);
    g_strlcpy(owner->journal_id, me->journal_id, sizeof owner->journal_id);
    g_hash_table_insert(ms->epochs, GSIZE_TO_POINTER(me->epoch), owner);
    ms->newest_epoch = me->epoch;
    ms->newest_host = (int)host->index;
    ms->counts->masters++;
}

static struct epoch_owner *epoch_owner(const struct ms *ms, guint64 epoch)
{
    return g_hash_table_lookup(ms->epochs, GSIZE_TO_POINTER(epoch));
}

/* Each epoch is of one host, boot and journal (SAF-01). */
static void check_owner(struct ms_host *host, const struct mastership *me)
{
    const struct epoch_owner *owner = epoch_owner(host->ms, me->epoch);
    if (!owner || owner->host != host->index || strcmp(owner->boot_id, me->boot_id) != 0 ||
        strcmp(owner->journal_id, me->journal_id) != 0)
        ms_problem(host->ms, "%s becomes master of epoch %" G_GUINT64_FORMAT ", which is another's",
                   host->uuid, me->epoch);
}

void ms_saw_campaign(struct ms_host *host, const struct mastership *me)
{
    struct ms *ms = host->ms;
    if (!epoch_owner(ms, me->epoch) && !ms->etcd)
        epoch_begins(host, me);
    check_owner(host, me);
    if (strcmp(host->wconfd->boot_id, me->boot_id) != 0)
        ms_problem(ms, "%s becomes master of a boot that is over", host->uuid);
    if (!ms->etcd)
        check_store(host);
    if (!ms->etcd && ms->theme)
        ms->theme->reloaded(ms, host->store);
    host->epoch = me->epoch;
    host->epoch_ms = ms_now(ms);
    ms_copies_forget(host);
    ms_tell(ms, "host %u has epoch %" G_GUINT64_FORMAT, host->index + 1, me->epoch);
}

/* --- etcd: every transaction --- */

static guint64 head_serial(const char *value)
{
    json_autoptr head = value ? json_loads(value, 0, NULL) : NULL;
    return (guint64)json_integer_value(json_object_get(head, "serial"));
}

/* Who the key says is master, and whether that is the host that writes. */
static bool is_master(struct ms *ms, gint64 now_ms, const struct ms_host *writer,
                      guint64 *ret_epoch)
{
    gint64 created = 0;
    const char *value = model_etcd_value(ms->model, now_ms, MS_PREFIX "master", &created);
    json_autoptr master = value ? json_loads(value, 0, NULL) : NULL;
    *ret_epoch = (guint64)created + MS_EPOCH_BASE;
    return master && !strcmp(json_string_value(json_object_get(master, "node")), writer->uuid);
}

/* The key is made: an epoch begins, whether its node hears of it or not. Or it is written once more
 * by the next process of its owner. */
static void take_master(struct ms *ms, gint64 now_ms, struct ms_host *writer, const char *value)
{
    gint64 created = 0;
    json_autoptr master = json_loads(value, 0, NULL);
    struct mastership me = {0};
    model_etcd_value(ms->model, now_ms, MS_PREFIX "master", &created);
    me.epoch = (guint64)created + MS_EPOCH_BASE;
    g_strlcpy(me.boot_id, json_string_value(json_object_get(master, "boot_id")), sizeof me.boot_id);
    g_strlcpy(me.journal_id, json_string_value(json_object_get(master, "journal_id")),
              sizeof me.journal_id);
    if (!epoch_owner(ms, me.epoch))
        epoch_begins(writer, &me);
    check_owner(writer, &me);
    ms->key_epoch = me.epoch;
}

static void note_object(struct ms *ms, const char *kind, const char *key, guint64 version)
{
    char *name = g_strdup_printf("%s %s", kind, key);
    guint old = GPOINTER_TO_UINT(g_hash_table_lookup(ms->objects, name));
    if (old)
        ms->digest ^= digest_object(kind, key, old);
    if (version)
        ms->digest ^= digest_object(kind, key, version);
    if (version)
        g_hash_table_replace(ms->objects, name, GUINT_TO_POINTER((guint)version));
    else
        g_hash_table_remove(ms->objects, name);
    if (!version)
        g_free(name);
}

/* Objects of one commit of a batch: later ones of it may have written over them. */
static void note_digest(struct ms *ms, const char *id, guint64 serial)
{
    const GPtrArray *changes = g_hash_table_lookup(ms->given, id);
    for (guint i = 0; changes && i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        note_object(ms, change->kind, change->key, change->op == CHANGE_PUT ? serial : 0);
    }
}

static void take_batch(struct ms *ms, guint64 epoch, const char *text)
{
    json_autoptr ids = json_loads(text, 0, NULL);
    size_t index;
    json_t *item;
    json_array_foreach(ids, index, item) {
        if (!json_is_array(item))
            continue; /* what one of them has deleted */
        const char *id = json_string_value(json_array_get(item, 0));
        guint64 serial = (guint64)json_integer_value(json_array_get(item, 1));
        if (serial != ms_last_serial(ms) + 1)
            ms_problem(ms, "serial %" G_GUINT64_FORMAT " is stored behind %" G_GUINT64_FORMAT,
                       serial, ms_last_serial(ms));
        note_digest(ms, id, serial);
        log_add(ms, id, serial, epoch, ms->digest);
    }
}

/* SAF-08: a master gives up before its lease ends, unless its clock has stood still meanwhile. */
static void check_lease(struct ms *ms)
{
    struct ms_host *current = ms_current;
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *host = &ms->hosts[i];
        if (!host->epoch || host->epoch != ms->key_epoch || !host->real || host->stopped_ms ||
            host->steady_ms > ms_now(ms) - STEADY_MS)
            continue;
        ms_current = host;
        if (etcd_engine_holds((const struct etcd_engine *)host->real))
            ms_problem(ms, "%s takes itself for the master while its lease has ended", host->uuid);
    }
    ms_current = current;
}

void ms_saw_write(gint64 now_ms, void *writer, const struct model_write *writes, guint count,
                  void *data)
{
    struct ms *ms = data;
    const struct model_write *head = NULL, *batch = NULL;
    bool objects = false;
    guint64 epoch = 0;
    for (guint i = 0; i < count; i++) {
        const char *name = writes[i].key + strlen(MS_PREFIX);
        head = strcmp(name, "head") == 0 ? &writes[i] : head;
        batch = g_str_has_prefix(name, "c/") ? &writes[i] : batch;
        objects = objects || g_str_has_prefix(name, "o/");
        if (strcmp(name, "master") == 0 && !writer)
            check_lease(ms);
        if (strcmp(name, "master") == 0 && !writes[i].value)
            ms->key_epoch = 0;
        else if (strcmp(name, "master") == 0)
            take_master(ms, now_ms, writer, writes[i].value);
    }
    if (!writer || (!head && !objects && !batch))
        return;
    if (!is_master(ms, now_ms, writer, &epoch))
        ms_problem(ms, "%s writes the configuration and is not the master",
                   ((const struct ms_host *)writer)->uuid);
    if (!head || (objects && !batch))
        ms_problem(ms, "objects are written without the head or without ids");
    if (batch)
        take_batch(ms, epoch, batch->value);
    if (head && head_serial(head->value) != ms_last_serial(ms))
        ms_problem(ms, "the head goes from serial %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                   ms_last_serial(ms), head_serial(head->value));
}

/* --- SQLite: every transaction of a store --- */

static bool is_on_branch(const struct ms *ms, const struct copy_position *at)
{
    const struct ms_commit *commit = ms_commit_at(ms, at->serial);
    return commit && commit->digest == at->digest;
}

static void note_taken(struct ms_host *host, const struct copy_position *at)
{
    g_assert_cmpuint(host->taken.count, <, MS_WORDS);
    host->taken.to[host->taken.count++] = *at;
    host->taken.now = true;
}

static void saw_commit(struct model_store *store, const char *id, guint64 epoch, void *data)
{
    struct ms *ms = data;
    struct ms_host *host = ms_host_of(ms, model_store_node(store));
    struct copy_position at;
    model_store_position(store, &at);
    if (!id) {
        at.epoch = epoch;
        note_taken(host, &at);
        return;
    }
    if (at.serial != ms_last_serial(ms) + 1)
        ms_problem(ms, "%s commits serial %" G_GUINT64_FORMAT " behind %" G_GUINT64_FORMAT,
                   host->uuid, at.serial, ms_last_serial(ms));
    if (epoch != ms->newest_epoch || (int)host->index != ms->newest_host)
        ms_problem(ms,
                   "%s commits in epoch %" G_GUINT64_FORMAT " while %" G_GUINT64_FORMAT
                   " is the newest",
                   host->uuid, epoch, ms->newest_epoch);
    log_add(ms, id, at.serial, epoch, at.digest);
}

/* What only others have seen is lost, by a person's word on the master's own store. */
static bool leaps(const struct copy_position *before, const struct copy_position *at)
{
    return before->role == COPY_ENGINE && at->role == COPY_ENGINE && at->epoch > before->epoch &&
           at->serial > before->serial;
}

/* (history, epoch, serial) never goes back; a copy is what the master had. */
static void saw_move(struct model_store *store, const struct copy_position *before, void *data)
{
    struct ms *ms = data;
    struct copy_position at;
    model_store_position(store, &at);
    if (at.history < before->history ||
        (at.history == before->history &&
         (at.epoch < before->epoch || (at.epoch == before->epoch && at.serial < before->serial))))
        ms_problem(ms,
                   "%s goes back from epoch %" G_GUINT64_FORMAT " serial %" G_GUINT64_FORMAT
                   " to epoch %" G_GUINT64_FORMAT " serial %" G_GUINT64_FORMAT,
                   model_store_node(store), before->epoch, before->serial, at.epoch, at.serial);
    struct ms_host *host = ms_host_of(ms, model_store_node(store));
    if (leaps(before, &at) && host->taken.now) {
        note_taken(host, &at);
    } else if (leaps(before, &at)) {
        log_cut(ms, before->serial);
        log_add(ms, NULL, at.serial, at.epoch, at.digest);
    }
    if (at.role == COPY_FOLLOWS && !is_on_branch(ms, &at) && !was_lost(ms, &at))
        ms_problem(ms, "%s has a copy at serial %" G_GUINT64_FORMAT " that no master had",
                   model_store_node(store), at.serial);
}

bool ms_is_whole(const struct ms *ms, const struct ms_host *host)
{
    struct copy_position at;
    model_store_position(host->store, &at);
    return is_on_branch(ms, &at);
}

bool ms_is_given_up(const struct ms *ms, const struct ms_host *host)
{
    struct copy_position at;
    model_store_position(host->store, &at);
    return !is_on_branch(ms, &at) && was_lost(ms, &at);
}

static int compare_positions(const struct copy_position *a, const struct copy_position *b)
{
    if (a->history != b->history)
        return a->history < b->history ? -1 : 1;
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

/* An engine by an earlier word that was made a copy again before it began: it still has what its
 * base had, and that may be the most that is left. */
static bool never_began(const struct ms *ms, const struct ms_host *host,
                        const struct copy_position *at)
{
    const struct copy_position *to = host->taken.to + host->taken.count - 1;
    return host->taken.count && at->serial == to->serial && at->digest == to->digest &&
           is_on_branch(ms, &host->taken.base);
}

/* A person's word: no copy in reach may be newer. What is lost with it nobody in reach had. */
static void saw_take_over(struct model_store *store, const struct copy_batch *last, void *data)
{
    struct ms *ms = data;
    struct ms_host *host = ms_host_of(ms, model_store_node(store));
    struct copy_position at, other;
    model_store_position(store, &at);
    for (guint i = 0; i < ms->hosts_count; i++) {
        const struct ms_host *candidate = &ms->hosts[i];
        model_store_position(candidate->store, &other);
        if (i != host->index && ms_steady(ms, i, host->index, ms_now(ms) - LOOK_MS) &&
            other.role == COPY_FOLLOWS && compare_positions(&other, &at) > 0)
            ms_problem(ms, "%s becomes master although the copy of %s is newer", host->uuid,
                       candidate->uuid);
    }
    if (!is_on_branch(ms, &at) && !never_began(ms, host, &at))
        ms_problem(ms, "%s becomes master with what no master had", host->uuid);
    if (is_on_branch(ms, &at)) {
        host->taken.base = at;
        host->taken.count = 0;
    }
    ms->counts->takeovers++;
}

GPtrArray *ms_keep_log(const struct ms *ms)
{
    GPtrArray *kept = g_ptr_array_new_with_free_func(commit_free);
    for (guint i = 0; i < ms->log->len; i++) {
        struct ms_commit *commit = g_memdup2(ms->log->pdata[i], sizeof *commit);
        commit->id = g_strdup(commit->id);
        g_ptr_array_add(kept, commit);
    }
    return kept;
}

static bool is_same(const struct ms_commit *a, const struct ms_commit *b)
{
    return a->serial == b->serial && a->digest == b->digest;
}

/* What was lost with a master since the backup comes back with it. */
static void log_restore(struct ms *ms, GPtrArray *kept)
{
    guint same = 1;
    while (same < MIN(kept->len, ms->log->len) && is_same(kept->pdata[same], ms->log->pdata[same]))
        same++;
    log_cut(ms, ((struct ms_commit *)kept->pdata[same - 1])->serial);
    while (same < kept->len) {
        struct ms_commit *commit = g_ptr_array_steal_index(kept, same);
        g_ptr_array_add(ms->log, commit);
        if (commit->id)
            g_hash_table_insert(ms->ids, commit->id, GSIZE_TO_POINTER(commit->serial));
        note_tag(ms, commit->id, commit->serial);
    }
}

void ms_saw_restore(struct ms_host *host, GPtrArray *kept)
{
    struct copy_position at;
    model_store_position(host->store, &at);
    log_restore(host->ms, kept);
    for (guint i = 1; i < host->ms->log->len; i++) {
        const struct ms_commit *commit = commit_of(host->ms, i);
        if (commit->id)
            model_store_know(host->store, commit->id, commit->serial);
    }
    log_add(host->ms, NULL, at.serial, at.epoch, at.digest);
    host->ms->theme->reloaded(host->ms, host->store);
}

struct model_store_events ms_store_events(struct ms *ms)
{
    return (struct model_store_events){
        .committed = saw_commit, .moved = saw_move, .takes_over = saw_take_over, .data = ms};
}

/* --- after every step --- */

void ms_saw_promise(struct ms_host *host, guint64 history, guint64 epoch)
{
    struct stamp *answered = &host->ms->fenced[host->index];
    struct stamp stamp = {history, epoch};
    if (stamp_compare(stamp, *answered) > 0)
        *answered = stamp;
}

/* What a node daemon has promised or taken over it never forgets. */
static void check_fence(struct ms_host *host)
{
    const struct stamp *answered = &host->ms->fenced[host->index];
    if (host->fence && host->fence_ready &&
        stamp_compare(epoch_fence_highest(host->fence), *answered) < 0)
        ms_problem(host->ms, "%s has forgotten epoch %" G_GUINT64_FORMAT, host->uuid,
                   answered->epoch);
}

/* SAF-08: who cannot be master any more ends, once it runs. */
static void check_steps_down(struct ms_host *host)
{
    struct ms *ms = host->ms;
    bool over = host->epoch && host->epoch != ms->key_epoch && !host->paused && !host->frozen;
    if (!over || !host->wrong_ms)
        host->wrong_ms = over ? ms_now(ms) : 0;
    if (over && ms_now(ms) - host->wrong_ms > STEP_DOWN_MS)
        ms_problem(ms, "%s still is master of epoch %" G_GUINT64_FORMAT ", which is over",
                   host->uuid, host->epoch);
}

void ms_check_step(struct ms *ms)
{
    for (guint i = 0; i < ms->hosts_count; i++) {
        check_fence(&ms->hosts[i]);
        if (ms->etcd)
            check_steps_down(&ms->hosts[i]);
    }
    if (ms->theme)
        ms->theme->step(ms);
}

/* --- life --- */

void ms_check_first(struct ms *ms, const GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        note_object(ms, change->kind, change->key, 1);
    }
    log_add(ms, NULL, 1, 0, ms->digest);
    if (ms->theme)
        ms->theme->committed(ms, NULL, 1, changes);
}

void ms_check_free(struct ms *ms)
{
    g_ptr_array_unref(ms->log);
    g_hash_table_unref(ms->ids);
    g_hash_table_unref(ms->lost);
    g_hash_table_unref(ms->wishes);
    g_hash_table_unref(ms->given);
    json_decref(ms->unanswered);
    g_hash_table_unref(ms->epochs);
    g_hash_table_unref(ms->locks);
    g_hash_table_unref(ms->ended);
    g_hash_table_unref(ms->tags);
    g_hash_table_unref(ms->objects);
    g_free(ms->problem);
}

static void wish_free(void *data)
{
    struct ms_wish *wish = data;
    g_free(wish->key);
    g_free(wish);
}

static void changes_unref(void *changes)
{
    g_ptr_array_unref(changes);
}

void ms_check_init(struct ms *ms)
{
    ms->log = g_ptr_array_new_with_free_func(commit_free);
    g_ptr_array_add(ms->log, g_new0(struct ms_commit, 1));
    ms->ids = g_hash_table_new(g_str_hash, g_str_equal);
    ms->lost = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    ms->wishes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, wish_free);
    ms->given = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, changes_unref);
    ms->epochs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    ms->ended = g_hash_table_new(NULL, NULL);
    ms->locks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    ms->tags = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    ms->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

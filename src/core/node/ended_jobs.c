/*
 * Jobs that have been given up; see ended_jobs.h. In memory one counts at once, so that requests
 * are refused from the first moment; on the disk it stands before anything is looked at.
 */
#include "core/node/ended_jobs.h"

#include "base/log.h"
#include "core/node/guest.h"
#include "proto/seal.h"

#define ENDED_FILE "node/ended_jobs.json"

struct ended_jobs {
    struct ended_jobs_file *file; /* as it is, or is to be */
    GHashTable *pairs;            /* "JOB INSTANCE" -> whether that was logged, as a pointer */
    guint64 changes;              /* so far … */
    guint64 kept;                 /* … and as many are on the disk */
    struct look write;            /* one at a time, each of what there is when it begins */
    GError *error;                /* of the last one; NULL: it stands */
};

static char *pair_of(guint64 job, const char *instance)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT " %s", job, instance);
}

struct ended_jobs *ended_jobs_new(void)
{
    struct ended_jobs *ended = g_new0(struct ended_jobs, 1);
    ended->file = ended_jobs_file_new();
    ended->pairs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return ended;
}

void ended_jobs_free(struct ended_jobs *ended)
{
    ended_jobs_file_free(ended->file);
    g_hash_table_unref(ended->pairs);
    g_clear_error(&ended->error);
    look_clear(&ended->write);
    g_free(ended);
}

/* --- its file --- */

static bool take(struct ended_jobs *ended, const char *text, size_t len, GError **error)
{
    json_autoptr json = seal_from_text(text, len, LIMIT_FRAME_BYTES, error);
    struct ended_jobs_file *file =
        json ? record_parse(&ended_jobs_file_record, json, RECORD_KEEP, error) : NULL;
    if (!file)
        return false;
    ended_jobs_file_free(ended->file);
    ended->file = file;
    for (guint i = 0; i < file->jobs->len; i++) {
        const struct ended_job *each = file->jobs->pdata[i];
        g_hash_table_insert(ended->pairs, pair_of(each->job, each->instance), NULL);
    }
    return true;
}

bool ended_jobs_load(struct node_core *node, GError **error)
{
    const struct env *env = node->env;
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATE, ENDED_FILE, LIMIT_FRAME_BYTES, &len, &why);
    if (!text && fettle_error_is(why, UNKNOWN_ENTITY))
        return true;
    if (!text) {
        g_propagate_prefixed_error(error, g_steal_pointer(&why), "var/" ENDED_FILE ": ");
        return false;
    }
    if (take(node->ended_jobs, text, len, &why))
        return true;
    fettle_set_error(error, CORRUPT,
                     "var/" ENDED_FILE " is damaged (%s): this node does not know which jobs have "
                     "been given up; remove the file only if no job runs anywhere",
                     why->message);
    return false;
}

/* In a task of its own, as the disk may hang. */
static bool write_run(struct node_core *node, void *thing)
{
    struct ended_jobs *ended = thing;
    const struct env *env = node->env;
    guint64 changes = ended->changes;
    g_autoptr(GError) error = NULL;
    json_autoptr json = ended_jobs_file_to_json(ended->file);
    g_autofree char *text = seal_to_text(json);
    if (env->ops->file_write(env, FILE_STATE, ENDED_FILE, text, strlen(text), &error))
        ended->kept = changes;
    g_clear_error(&ended->error);
    ended->error = g_steal_pointer(&error);
    return true;
}

/* Everything until now is on the disk. */
static bool keep(struct node_core *node, GError **error)
{
    struct ended_jobs *ended = node->ended_jobs;
    guint64 wanted = ended->changes;
    if (ended->kept >= wanted)
        return true;
    struct look_round *round = look_round_new(node);
    look_round_add(round, &ended->write, write_run, ended);
    bool alive = look_round_wait_long(round, LIMIT_NOTE_MS);
    look_round_free(round);
    if (!alive || task_killed())
        return node_killed(error);
    if (ended->kept >= wanted)
        return true;
    fettle_set_error(error, STORAGE, "var/" ENDED_FILE ": %s; see to that disk, then try again",
                     ended->error ? ended->error->message
                                  : "the disk of this node's state does not answer");
    return false;
}

/* --- noting --- */

static struct stamp stamp_of(const struct ended_jobs *ended)
{
    return (struct stamp){ended->file->history, ended->file->epoch};
}

/* Those of an earlier epoch are refused by it. */
static void begin_epoch(struct ended_jobs *ended, struct stamp stamp)
{
    g_hash_table_remove_all(ended->pairs);
    g_ptr_array_set_size(ended->file->jobs, 0);
    ended->file->history = stamp.history;
    ended->file->epoch = stamp.epoch;
    ended->changes++;
}

static bool is_new(const struct ended_jobs *ended, const struct collect_subject *subject)
{
    g_autofree char *pair = pair_of(subject->dead_job, subject->instance);
    return subject->dead_job != 0 && !g_hash_table_contains(ended->pairs, pair);
}

static bool has_room(const struct ended_jobs *ended, const GPtrArray *subjects, GError **error)
{
    guint wanted = ended->file->jobs->len;
    for (guint i = 0; i < subjects->len; i++)
        wanted += is_new(ended, subjects->pdata[i]);
    if (wanted <= LIMIT_ENDED_JOBS)
        return true;
    fettle_set_error(error, LIMIT,
                     "this node refuses the requests of %u ended jobs already; it forgets them "
                     "when the next mastership gives one up",
                     ended->file->jobs->len);
    return false;
}

static void add(struct ended_jobs *ended, const struct collect_subject *subject)
{
    if (!is_new(ended, subject))
        return;
    struct ended_job *each = ended_job_new();
    each->job = subject->dead_job;
    text_set(&each->instance, subject->instance);
    g_ptr_array_add(ended->file->jobs, each);
    g_hash_table_insert(ended->pairs, pair_of(each->job, each->instance), NULL);
    ended->changes++;
}

static bool names_a_job(const GPtrArray *subjects)
{
    bool any = false;
    for (guint i = 0; i < subjects->len && !any; i++)
        any = ((const struct collect_subject *)subjects->pdata[i])->dead_job != 0;
    return any;
}

bool ended_jobs_note(struct node_core *node, const struct epoch_fence_op *op,
                     const GPtrArray *subjects, GError **error)
{
    struct ended_jobs *ended = node->ended_jobs;
    struct stamp stamp = epoch_fence_op_stamp(op);
    if (!names_a_job(subjects))
        return true;
    int order = stamp_compare(stamp, stamp_of(ended));
    if (epoch_fence_overtaken(op) || order < 0) {
        fettle_set_error(error, STALE_EPOCH, "a later master has announced itself here");
        return false;
    }
    if (order > 0)
        begin_epoch(ended, stamp);
    if (!has_room(ended, subjects, error))
        return false;
    for (guint i = 0; i < subjects->len; i++)
        add(ended, subjects->pdata[i]);
    return keep(node, error);
}

/* --- refusing --- */

static char *name_of(struct node_core *node, const char *instance)
{
    const struct guest *guest = guest_lookup(node, instance);
    const struct instance *spec = guest ? guest->record->spec : NULL;
    return g_strdup(spec ? spec->name : instance);
}

bool ended_jobs_admit(struct node_core *node, struct stamp stamp, guint job, const char *instance,
                      GError **error)
{
    struct ended_jobs *ended = node->ended_jobs;
    g_autofree char *pair = pair_of(job, instance);
    gpointer logged = NULL;
    if (job == 0 || stamp_compare(stamp, stamp_of(ended)) != 0 ||
        !g_hash_table_lookup_extended(ended->pairs, pair, NULL, &logged))
        return true;
    g_autofree char *name = name_of(node, instance);
    fettle_set_error(error, STALE_EPOCH,
                     "job %u has been given up for instance \"%s\"; nothing was done", job, name);
    if (!logged) {
        g_autofree char *fields = g_strdup_printf("JOB=%u INSTANCE=%s", job, instance);
        log_warning(fields,
                    "job %u has been given up for instance \"%s\"; a late request of it was "
                    "refused",
                    job, name);
        g_hash_table_insert(ended->pairs, g_steal_pointer(&pair), GINT_TO_POINTER(true));
    }
    return false;
}

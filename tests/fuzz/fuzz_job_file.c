/*
 * Job files from any bytes, as luxid reads them after a crash or a power cut: refused as corrupt,
 * or a job that can be asked for everything that luxid asks, ended, written, and read again.
 */
#include <string.h>

#include "core/job/job_file.h"
#include "core/job/job_state.h"
#include "core/job/rules.h"
#include "core/ops/op.h"
#include "core/queue/child_jobs.h"
#include "fuzz.h"

#define JOB 17

/* The only file of this world. */
static GString *file;

static char *file_read(const struct env *env, enum file_area area, const char *name, size_t limit,
                       size_t *ret_len, GError **error)
{
    g_assert_cmpstr(name, ==, "job-17");
    *ret_len = file->len;
    return g_strndup(file->str, file->len);
}

static bool file_write(const struct env *env, enum file_area area, const char *name,
                       const char *data, size_t len, GError **error)
{
    g_string_truncate(file, 0);
    g_string_append_len(file, data, (gssize)len);
    return true;
}

static const struct env_ops ops = {.file_read = file_read, .file_write = file_write};
static const struct env env = {.ops = &ops};

static void ask_everything(const struct job *job)
{
    g_autoptr(GPtrArray) limits = rules_own_limits(job);
    size_t bytes = 0;
    g_assert_cmpuint(job_state_of(job), <, JOB_STATE_COUNT);
    g_assert_true(op_wants_jobs(job) == (child_jobs_count(job, &bytes) > 0));
    job_priority(job);
    if (job_untouched(job) && job->ops->len > 0)
        g_assert_false(job_state_final(job_state_of(job)));
}

/* What luxid makes of a job whose process died. */
static void end(struct job *job)
{
    json_autoptr result = json_string("detected death of job 17");
    enum job_state before = job_state_of(job);
    job_end(job, JOB_ERROR, result, 1);
    g_assert_true(job_state_final(job_state_of(job)));
    if (job_state_final(before) && before != JOB_SUCCESS)
        g_assert_cmpuint(job_state_of(job), ==, before);
}

static void check_again(const struct job *job)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(job_file_write(&env, job, &error));
    record_autoptr(job) again = job_file_read(&env, JOB, &error);
    if (again == NULL) { /* only because the text has become too large */
        g_assert_cmpuint(file->len, >, LIMIT_JOB_FILE_BYTES);
        return;
    }
    json_autoptr one = job_to_json(job);
    json_autoptr other = job_to_json(again);
    g_assert_true(json_equal(one, other));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GError) error = NULL;
    file = g_string_new_len((const char *)data, (gssize)len);
    record_autoptr(job) job = job_file_read(&env, JOB, &error);
    if (job == NULL) {
        g_assert_true(fettle_error_is(error, CORRUPT));
    } else {
        ask_everything(job);
        check_again(job);
        end(job);
        check_again(job);
    }
    g_string_free(file, TRUE);
    return 0;
}

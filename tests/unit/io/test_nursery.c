/* The nursery of job processes (nursery.c, fettle-job): the process that it has ready for the next
 * job, and what an upgrade of its program brings. */
#include "starter_world.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

/* --- the warm process --- */

/* Not if it has ended meanwhile. */
static bool is_no_job_yet(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/cmdline", (guint)pid);
    g_autofree char *text = NULL;
    gsize len = 0;

    return g_file_get_contents(path, &text, &len, NULL) &&
           memmem(text, len, NURSERY_WORDS, strlen(NURSERY_WORDS)) != NULL;
}

/* What the nursery has made and that is no job's yet; 0: nothing. */
static guint64 find_warm(guint64 nursery)
{
    g_autofree char *path =
        g_strdup_printf("/proc/%u/task/%u/children", (guint)nursery, (guint)nursery);
    g_autofree char *text = NULL;
    guint64 warm = 0;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    g_auto(GStrv) pids = g_strsplit(text, " ", -1);
    for (guint i = 0; pids[i] != NULL && *pids[i] != '\0'; i++) {
        guint64 pid = g_ascii_strtoull(pids[i], NULL, 10);
        if (is_no_job_yet(pid)) {
            g_assert_cmpuint(warm, ==, 0); /* one at most */
            warm = pid;
        }
    }
    return warm;
}

static bool lives(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/stat", (guint)pid);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) && !strstr(text, ") Z ");
}

static void wait_ended(guint64 pid)
{
    while (lives(pid))
        world_pause(2);
}

static guint64 wait_warm(guint64 nursery)
{
    guint64 warm = 0;

    while ((warm = find_warm(nursery)) == 0)
        world_pause(2);
    return warm;
}

/* Begins a job, and ends it. */
static guint64 process_of(struct fixture *fixture, guint64 job)
{
    fixture->broken = 0;
    g_clear_pointer(&fixture->name, g_free);
    begin(fixture, job);
    guint64 pid = fixture->pid;
    g_assert_true(g_str_has_prefix(fixture->name, "job-"));
    end(fixture);
    return pid;
}

static guint64 first_nursery(struct fixture *fixture)
{
    begin(fixture, 1);
    guint64 nursery = parent_of(fixture->pid);
    end(fixture);
    return nursery;
}

/* It is there before its job, has no lock file until then, and becomes that. */
static void test_warm(struct fixture *fixture, gconstpointer unused)
{
    guint64 nursery = first_nursery(fixture);

    for (guint64 job = 2; job < 5; job++) {
        guint64 warm = wait_warm(nursery);
        g_autofree char *part = g_strdup_printf("-%u-", (guint)warm);
        g_autoptr(GPtrArray) names = fixture->env->ops->livelock_list(fixture->env);
        for (guint i = 0; i < names->len; i++)
            g_assert_null(strstr(names->pdata[i], part));
        g_assert_false(has_begun(fixture, 20)); /* it has talked to nobody */
        g_assert_cmpuint(process_of(fixture, job), ==, warm);
    }
}

/* Nobody waits for it: the next job gets another process. */
static void test_warm_killed(struct fixture *fixture, gconstpointer unused)
{
    guint64 nursery = first_nursery(fixture);

    for (guint64 job = 2; job < 5; job++) {
        guint64 warm = wait_warm(nursery);
        kill((pid_t)warm, SIGKILL);
        wait_ended(warm);
        guint64 pid = process_of(fixture, job);
        g_assert_cmpuint(pid, !=, warm);
        g_assert_true(lives(nursery));
    }
    wait_warm(nursery);
}

/* Each of them: every job is forked when it comes. */
static void test_warm_never_lives(struct fixture *fixture, gconstpointer unused)
{
    g_setenv("FETTLE_CRASH_AT_NURSERY", "nursery: prepare", TRUE);
    guint64 nursery = first_nursery(fixture);
    for (guint64 job = 2; job < 5; job++)
        process_of(fixture, job);
    g_assert_true(lives(nursery));
    g_unsetenv("FETTLE_CRASH_AT_NURSERY");
}

/* It would keep requests that nobody takes. */
static void test_warm_ends_with_nursery(struct fixture *fixture, gconstpointer unused)
{
    guint64 nursery = first_nursery(fixture), warm = wait_warm(nursery);

    kill((pid_t)nursery, SIGKILL);
    wait_ended(warm);
    wait_no_child();
    for (guint64 job = 2; job < 5; job++)
        process_of(fixture, job);
}

static void test_warm_ends_with_luxid(struct fixture *fixture, gconstpointer unused)
{
    guint64 nursery = first_nursery(fixture), warm = wait_warm(nursery);

    real_env_free(fixture->env); /* closes what luxid has */
    fixture->env = real_env_new(fixture->paths->root, ROLE_LUXID, NULL, NULL);
    wait_ended(warm);
    wait_ended(nursery);
    g_autoptr(GPtrArray) names = fixture->env->ops->livelock_list(fixture->env);
    g_assert_cmpuint(names->len, ==, 1); /* that of the job that was killed */
}

/* --- an upgrade --- */

static char *program_of(guint64 pid)
{
    g_autofree char *link = g_strdup_printf("/proc/%u/exe", (guint)pid);
    return g_file_read_link(link, NULL);
}

/* As a package manager does it: a new file under the old name. */
static void replace_program(struct fixture *fixture, char **ret_path)
{
    g_autofree char *path = g_build_filename(fixture->bin, NURSERY_PROGRAM, NULL);
    g_autofree char *fresh = g_strconcat(path, ".new", NULL);
    g_autofree char *text = NULL;
    gsize len = 0;

    g_assert_true(g_file_get_contents(job_program, &text, &len, NULL));
    g_assert_true(g_file_set_contents(fresh, text, (gssize)len, NULL));
    g_assert_cmpint(g_chmod(fresh, 0755), ==, 0);
    g_assert_cmpint(g_rename(fresh, path), ==, 0);
    *ret_path = g_steal_pointer(&path);
}

/* Neither the nursery of the old one nor what that has ready gets a job any more; a job that it has
 * started stays. */
static void test_program_replaced(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = NULL;

    begin(fixture, 1);
    guint64 running = fixture->pid, nursery = parent_of(running), warm = wait_warm(nursery);
    g_autofree char *before = program_of(running);
    replace_program(fixture, &path);
    fixture->broken = 0;
    g_clear_pointer(&fixture->name, g_free);
    begin(fixture, 2);
    g_autofree char *after = program_of(fixture->pid);
    g_assert_cmpstr(before, ==, job_program);
    g_assert_cmpstr(after, ==, path);
    g_assert_cmpuint(fixture->pid, !=, warm);
    wait_ended(warm);
    wait_ended(nursery);
    g_assert_true(lives(running));
    kill((pid_t)running, SIGKILL);
    end(fixture);
}

/* In the middle of it the program may be missing, or be none: the old one goes on. */
static void test_program_missing(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = g_build_filename(fixture->bin, NURSERY_PROGRAM, NULL);
    guint64 nursery = first_nursery(fixture), warm = wait_warm(nursery);

    g_unlink(path);
    g_assert_cmpuint(process_of(fixture, 2), ==, warm);
    warm = wait_warm(nursery);
    g_assert_true(g_file_set_contents(path, "half of it", -1, NULL)); /* nobody can run that */
    g_assert_cmpuint(process_of(fixture, 3), ==, warm);
    g_assert_true(lives(nursery));
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    job_program = g_canonicalize_filename(argv[1], NULL);
    ADD("/nursery/warm#LUX-19,DTH-07", test_warm);
    ADD("/nursery/warm-killed#LUX-07", test_warm_killed);
    ADD("/nursery/warm-never-lives#LUX-07", test_warm_never_lives);
    ADD("/nursery/warm-ends-with-the-nursery#LUX-23", test_warm_ends_with_nursery);
    ADD("/nursery/warm-ends-with-luxid", test_warm_ends_with_luxid);
    ADD("/nursery/program-replaced", test_program_replaced);
    ADD("/nursery/program-missing", test_program_missing);
    int code = g_test_run();
    g_free(job_program);
    return code;
}

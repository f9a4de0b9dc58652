/* The audit log of a front end: lines are whole, it is turned when it is full, and what cannot be
 * written ends nothing. src/daemons/apid/ */
#include "daemons/apid/audit.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder, *path, *older;

static void set_up(void)
{
    folder = g_dir_make_tmp("fettle-audit-XXXXXX", NULL);
    path = g_build_filename(folder, "audit.log", NULL);
    older = g_strconcat(path, ".1", NULL);
}

static void tear_down(void)
{
    g_remove(path);
    g_remove(older);
    g_rmdir(folder);
    g_free(folder);
    g_free(path);
    g_free(older);
}

static void assert_file(const char *file, const char *expected)
{
    g_autofree char *text = NULL;
    g_file_get_contents(file, &text, NULL, NULL);
    g_assert_cmpstr(text, ==, expected);
}

static void test_turns(void)
{
    set_up();
    struct audit *audit = audit_open(path, 10, NULL);
    audit_write(audit, "first");
    assert_file(path, "first\n");
    audit_write(audit, "abc");
    assert_file(path, "first\nabc\n");
    audit_write(audit, "x");
    assert_file(path, "x\n");
    assert_file(older, "first\nabc\n");
    audit_write(audit, "longer than all of it");
    assert_file(path, "longer than all of it\n");
    assert_file(older, "x\n");
    audit_free(audit);
    /* It goes on where it was. */
    audit = audit_open(path, 30, NULL);
    audit_write(audit, "again");
    assert_file(path, "longer than all of it\nagain\n");
    audit_write(audit, "again");
    assert_file(path, "again\n");
    audit_free(audit);
    tear_down();
}

static void test_no_file(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(audit_open("/nowhere/audit.log", 10, &error));
    g_assert_true(g_str_has_prefix(error->message, "cannot open /nowhere/audit.log: "));
}

/* A folder stands where the older one would: nothing can be turned. It is told once, and again
 * when it has been well meanwhile. */
static void test_goes_on(void)
{
    set_up();
    g_autofree char *inside = g_build_filename(older, "x", NULL);
    struct audit *audit = audit_open(path, 4, NULL);
    g_assert_cmpint(g_mkdir_with_parents(inside, 0700), ==, 0);
    audit_write(audit, "one");
    audit_write(audit, "two");
    assert_file(path, "one\n");
    g_rmdir(inside);
    g_rmdir(older);
    audit_write(audit, "three");
    assert_file(path, "three\n");
    assert_file(older, "one\n");
    audit_free(audit);
    tear_down();
}

#define WRITERS 4
#define LINES 2000
#define LINE "a line of the audit"
#define MOST (10 * (sizeof LINE))

/* What is turned has been full: nobody turns what another one has just begun. */
static int write_many(void)
{
    struct audit *audit = audit_open(path, MOST, NULL);
    for (guint i = 0; i < LINES; i++) {
        struct stat about;
        audit_write(audit, LINE);
        if (stat(older, &about) == 0 && (gsize)about.st_size < MOST)
            return 1;
    }
    audit_free(audit);
    return 0;
}

static void test_several(void)
{
    pid_t writers[WRITERS];
    int status;
    set_up();
    for (guint i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        if (!writers[i])
            _exit(write_many());
    }
    for (guint i = 0; i < WRITERS; i++) {
        g_assert_cmpint(waitpid(writers[i], &status, 0), ==, writers[i]);
        g_assert_cmpint(status, ==, 0);
    }
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/audit/turns", test_turns);
    g_test_add_func("/audit/no-file", test_no_file);
    g_test_add_func("/audit/goes-on", test_goes_on);
    g_test_add_func("/audit/several-processes", test_several);
    return g_test_run();
}

/*
 * The file of a guest on a disk that does not answer: core/node guest.c, mirror_watch.c.
 */
#include "core/node/guest.h"
#include "helper/node_world.h"

static guint64 told(struct node_world *nw)
{
    return fake_hosts_acknowledged(nw->hosts, WEB1);
}

/* The disk of A's state hangs, and B is lost to it. */
static struct node_world *hung_without_replica(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_set_hung(nw->world, NODE_A, true);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    return nw;
}

static void assert_goes_on(struct node_world *nw)
{
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    guint64 before = told(nw);
    nw_pass(nw, 1000);
    g_assert_cmpuint(told(nw), >, before);
}

/* After a power cut its file is all that is left. */
static void assert_promises_no_more(struct node_world *nw)
{
    nw_daemon_kill(nw, &nw->a);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    g_assert_true(nw_announce(nw, &nw->a, NULL));
    g_autofree char *stated = nw_statement(nw, &nw->a);
    g_assert_null(strstr(stated, "in-sync"));
}

/* As its node reports it; "" if not. */
static char *held(struct node_world *nw)
{
    json_autoptr report = nw_report(nw, &nw->a);
    const json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    const char *why = json_string_value(json_object_get(guest, "held"));
    return g_strdup(why ? why : "");
}

/* Like one that cannot be written: held until the note stands or another candidate has it. */
static void test_note_hangs(gconstpointer data)
{
    bool kept = GPOINTER_TO_INT(data);
    struct node_world *nw = hung_without_replica();
    nw_pass(nw, 20000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    g_autofree char *why = held(nw);
    g_assert_nonnull(strstr(why, "does not answer since"));
    nw->kept = kept;
    fake_set_hung(nw->world, NODE_A, kept);
    assert_goes_on(nw);
    g_autofree char *over = held(nw);
    g_assert_cmpstr(over, ==, "");
    fake_set_hung(nw->world, NODE_A, false);
    nw_pass(nw, 5000); /* what was owed has followed */
    assert_promises_no_more(nw);
    node_world_free(nw);
}

static const char *file_of_web1(struct node_world *nw)
{
    return fake_file(nw->world, NODE_A, FILE_STATE, GUEST_FOLDER "/" WEB1 ".json");
}

/* Slower than anybody waits for it: what counts is that it stands. */
static void test_slow(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    g_assert_nonnull(strstr(file_of_web1(nw), "\"attached\":true"));
    fake_set_slow(nw->world, NODE_A, 3000);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_count(nw->a.host, "mirror_release") > 0);
    g_assert_null(strstr(file_of_web1(nw), "\"attached\":true"));
    assert_goes_on(nw);
    nw_pass(nw, 10000);
    assert_promises_no_more(nw);
    node_world_free(nw);
}

/* An end that is kept late is kept. */
static void test_slow_stop(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 1000);
    fake_set_slow(nw->world, NODE_A, 3000);
    json_autoptr stopped = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 10000), &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(stopped, "clean")));
    g_assert_cmpstr(json_string_value(json_object_get(stopped, "sound")), ==, "yes");
    g_assert_nonnull(strstr(file_of_web1(nw), "\"clean\":true"));
    node_world_free(nw);
}

static void save_dying(void *data)
{
    struct node_world *nw = data;
    struct guest *guest = guest_lookup(nw->a.core, WEB1);
    g_autoptr(GError) error = NULL;
    guest->record->sync += 1000;
    task_group_kill(nw->a.env->tasks);
    g_assert_false(guest_save(guest, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_KILLED);
}

/* What is dead writes nothing. */
static void test_killed(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    g_autofree char *before = g_strdup(file_of_web1(nw));
    task_spawn(nw->a.env->tasks, save_dying, nw);
    nw_daemon_kill(nw, &nw->a);
    g_assert_cmpstr(file_of_web1(nw), ==, before);
    node_world_free(nw);
}

/* It goes on by the word of others, and the write that hung fails at last: what it went on with is
 * noted as soon as that can be. */
static void test_owed_after_failure(void)
{
    struct node_world *nw = hung_without_replica();
    nw->kept = true;
    assert_goes_on(nw);
    fake_set_read_only(nw->world, NODE_A, true);
    fake_set_hung(nw->world, NODE_A, false);
    nw_pass(nw, 10000);
    fake_set_read_only(nw->world, NODE_A, false);
    nw_pass(nw, 5000);
    assert_promises_no_more(nw);
    node_world_free(nw);
}

/* "Kept" of another generation is said of another record. */
static void test_kept_of_this_word(void)
{
    struct node_world *nw = hung_without_replica();
    nw->kept = true;
    nw->web1.generation++;
    nw_pass(nw, 10000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    node_world_free(nw);
}

/* Nothing waits for the disk without end: what needs it on the disk is refused, what does not is
 * done. */
static void test_acts(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 1, &error);
    g_assert_no_error(error);
    fake_set_hung(nw->world, NODE_A, true);
    g_assert_false(nw_start(nw, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_nonnull(strstr(error->message, "does not answer since 2 s"));
    g_clear_error(&error);
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 0);
    fake_set_hung(nw->world, NODE_A, false);
    nw_pass(nw, 1000);
    g_assert_true(nw_start(nw, &error));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    fake_set_hung(nw->world, NODE_A, true);
    json_autoptr stopped = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 10000), &error);
    g_assert_no_error(error);
    g_assert_nonnull(stopped);
    node_world_free(nw);
}

/* A second one does not wait as long again. */
static void test_attach_refused(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    nw_cut(nw, &nw->b, false);
    fake_set_hung(nw->world, NODE_A, true);
    g_assert_false(nw_replace_replica(nw, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_nonnull(strstr(error->message, "does not answer since"));
    g_assert_cmpint(fake_host_mirror(nw->a.host, WEB1), ==, MIRROR_NONE);
    guint64 before = told(nw);
    nw_pass(nw, 1000);
    g_assert_cmpuint(told(nw), >, before);
    node_world_free(nw);
}

/* Noted as over, and the node daemon dies before it ends: however it looks, no master hears again
 * that it is whole. */
static void test_statement_goes_by_the_note(void)
{
    struct node_world *nw = node_world_new(1);
    bool dead = false;
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, nw_die_before_release, &dead);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, dead);
    nw_daemon_kill(nw, &nw->a);
    fake_host_set_hook(nw->a.host, NULL, NULL);
    nw->mood = MASTER_SILENT;
    nw_daemon_start(nw, &nw->a);
    g_autofree char *stated = nw_statement(nw, &nw->a);
    g_assert_true(g_str_has_prefix(stated, "g2 runs"));
    g_assert_null(strstr(stated, "in-sync"));
    nw_master_answers(nw);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/note/hangs/not-kept#SAF-09,SAF-13", GINT_TO_POINTER(false),
                         test_note_hangs);
    g_test_add_data_func("/note/hangs/kept#SAF-09,SAF-13", GINT_TO_POINTER(true), test_note_hangs);
    g_test_add_func("/note/slow#SAF-09", test_slow);
    g_test_add_func("/note/slow-stop#SAF-11,SAF-24", test_slow_stop);
    g_test_add_func("/note/killed", test_killed);
    g_test_add_func("/note/owed-after-failure#SAF-09", test_owed_after_failure);
    g_test_add_func("/note/kept-of-this-word#SAF-09", test_kept_of_this_word);
    g_test_add_func("/note/acts#SAF-10,SAF-25", test_acts);
    g_test_add_func("/note/attach-refused#SAF-09", test_attach_refused);
    g_test_add_func("/note/statement#SAF-09", test_statement_goes_by_the_note);
    return g_test_run();
}

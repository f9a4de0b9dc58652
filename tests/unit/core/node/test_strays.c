/* What a node tells that its node daemon has not made (core/node/strays.c, RCV-26), and that it
 * says so when it could not look. */
#include "helper/node_world.h"

#include "base/limits.h"

static struct strays *ask(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    struct fake_reply reply;
    fake_call_start_stamped(fake_process(nw->world, NODE_M, ROLE_WATCHER), 0, nw->stamp, NODE_A,
                            ROLE_NODED, "list_strays", json_object(), &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    json_autoptr answer = json_incref(reply.result);
    fake_reply_clear(&reply);
    struct strays *strays = record_parse(&strays_record, answer, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(strays->node, ==, NODE_A);
    return strays;
}

static void expect(struct node_world *nw, bool processes, guint count, bool files, guint names)
{
    record_autoptr(strays) strays = ask(nw);
    g_assert_cmpint(strays->processes_known, ==, processes);
    g_assert_cmpuint(strays->processes->len, ==, count);
    g_assert_cmpint(strays->files_known, ==, files);
    g_assert_cmpuint(strays->files->len, ==, names);
}

static void test_both(void)
{
    struct node_world *nw = node_world_new(1);
    expect(nw, true, 0, true, 0);
    fake_host_set_process(nw->a.host, "foreign", true);
    fake_host_set_file(nw->a.host, "notes.txt", true);
    record_autoptr(strays) strays = ask(nw);
    const struct stray *stray = strays->processes->pdata[0];
    g_assert_cmpstr(stray->name, ==, "foreign");
    g_assert_cmpstr(stray->identity, ==, "name foreign");
    g_assert_cmpstr(strays->files->pdata[0], ==, "notes.txt");
    node_world_free(nw);
}

/* Each that hangs, or fails, is not known, beside the other; the answer comes in time, and what was
 * seen before is none. */
static void test_silent(void)
{
    static const char *const ops[] = {"processes", "files", "space"};
    for (guint i = 0; i < G_N_ELEMENTS(ops); i++) {
        struct node_world *nw = node_world_new(1);
        bool process = i == 0;
        fake_host_set_process(nw->a.host, "foreign", true);
        fake_host_set_file(nw->a.host, "notes.txt", true);
        expect(nw, true, 1, true, 1);
        fake_host_fault(nw->a.host, ops[i], FAKE_FAULT_FAILS, 1);
        expect(nw, !process, !process, process, process);
        fake_host_hang(nw->a.host, ops[i], true);
        gint64 before = nw->a.env->ops->boot_ms(nw->a.env);
        expect(nw, !process, !process, process, process);
        g_assert_cmpint(nw->a.env->ops->boot_ms(nw->a.env) - before, <, LIMIT_REPORT_WAIT_MS);
        fake_host_hang(nw->a.host, NULL, false);
        nw_pass(nw, 100);
        expect(nw, true, 1, true, 1);
        node_world_free(nw);
    }
}

/* Disks that have failed may list nothing. */
static void test_failed_disks(void)
{
    struct node_world *nw = node_world_new(1);
    fake_host_set_disks_failed(nw->a.host, true);
    expect(nw, true, 0, false, 0);
    node_world_free(nw);
}

/* Too many are not all; and whatever a file is called, it is a text. */
static void test_many(void)
{
    struct node_world *nw = node_world_new(1);
    for (guint i = 0; i <= LIMIT_STRAYS; i++) {
        g_autofree char *name = g_strdup_printf("\xff\n%u", i);
        fake_host_set_file(nw->a.host, name, true);
    }
    expect(nw, true, 0, false, LIMIT_STRAYS);
    record_autoptr(strays) strays = ask(nw);
    g_assert_cmpstr(strays->files->pdata[0], ==, "\xef\xbf\xbd?0");
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/strays/both#RCV-26", test_both);
    g_test_add_func("/strays/silent#SAF-91", test_silent);
    g_test_add_func("/strays/failed-disks#SAF-91", test_failed_disks);
    g_test_add_func("/strays/many", test_many);
    return g_test_run();
}

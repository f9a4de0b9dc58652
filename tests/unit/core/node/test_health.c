/* What a node finds out about itself, and tells in its report. core/node/health.c. */
#include <string.h>

#include "core/report/faults.h"
#include "helper/node_world.h"

static struct node_report *report_of(struct node_world *nw, struct test_node *node)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = nw_call(nw, node, "node_report", json_object(), &error);
    g_assert_no_error(error);
    struct node_report *report = node_report_parse(answer, RECORD_STRICT, &error);
    g_assert_no_error(error);
    return report;
}

/* All faults in words, "" for none. */
#define assert_faults(nw, node, expected)                                                          \
    do {                                                                                           \
        record_autoptr(node_report) report_ = report_of(nw, node);                                 \
        g_autofree char *text_ = faults_text(report_);                                             \
        g_assert_true(report_->faults_known);                                                      \
        g_assert_cmpstr(text_ ? text_ : "", ==, expected);                                         \
    } while (0)

static void test_well(void)
{
    struct node_world *nw = node_world_new(1);
    assert_faults(nw, &nw->a, "");
    record_autoptr(node_report) report = report_of(nw, &nw->a);
    gint64 age_us = nw->a.env->ops->wall_us(nw->a.env) - (gint64)report->clock_us;
    g_assert_cmpint(age_us, >=, 0);
    g_assert_cmpint(age_us, <, 100000);
    node_world_free(nw);
}

/* It is seen within HEALTH_PAUSE_MS, with its age, and gone as soon as it is mended. */
static void test_read_only(void)
{
    struct node_world *nw = node_world_new(1);
    assert_faults(nw, &nw->a, "");
    fake_set_read_only(nw->world, NODE_A, true);
    nw_pass(nw, HEALTH_PAUSE_MS);
    assert_faults(nw, &nw->a, "cannot write its state: var: Read-only file system");
    nw_pass(nw, 12000);
    record_autoptr(node_report) report = report_of(nw, &nw->a);
    const struct node_fault *fault = faults_find(report, FAULT_STATE);
    g_autofree char *text = faults_one_text(fault);
    g_assert_cmpstr(text, ==, "cannot write its state: var: Read-only file system (for 12 s)");
    g_assert_true(fault->fresh);
    g_assert_false(fault->silent);
    assert_faults(nw, &nw->b, "");
    fake_set_read_only(nw->world, NODE_A, false);
    assert_faults(nw, &nw->a, "");
    node_world_free(nw);
}

/* Whoever acts on it gets no verdict of before the question, good or bad. */
static void test_acts(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    assert_faults(nw, &nw->a, "");
    fake_host_set_disks_failed(nw->a.host, true);
    assert_faults(nw, &nw->a, "");
    json_autoptr answer =
        nw_call(nw, &nw->a, "node_report", json_make("{s:b, s:b}", "looks", 1, "acts", 1), &error);
    g_assert_no_error(error);
    record_autoptr(node_report) report = node_report_parse(answer, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_nonnull(faults_proven(report, FAULT_DISKS));
    node_world_free(nw);
}

static void test_disks(void)
{
    struct node_world *nw = node_world_new(1);
    fake_host_set_disks_failed(nw->a.host, true);
    assert_faults(nw, &nw->a, "cannot write to its disks: disks: Input/output error");
    fake_host_set_disks_failed(nw->a.host, false);
    assert_faults(nw, &nw->a, "");
    node_world_free(nw);
}

/* Said from outside, until it is taken back. */
static void test_rest(void)
{
    struct node_world *nw = node_world_new(1);
    node_core_set_rest_fault(nw->a.core, "has no certificate for REST");
    assert_faults(nw, &nw->a, "has no certificate for REST");
    nw_pass(nw, 12000);
    record_autoptr(node_report) report = report_of(nw, &nw->a);
    g_autofree char *text = faults_one_text(faults_find(report, FAULT_REST));
    g_assert_cmpstr(text, ==, "has no certificate for REST (for 12 s)");
    node_core_set_rest_fault(nw->a.core, NULL);
    assert_faults(nw, &nw->a, "");
    node_world_free(nw);
}

/* A daemon that lacks what a look takes has learnt nothing of the disk. */
static void test_descriptors(void)
{
    struct node_world *nw = node_world_new(1);
    fake_set_descriptors_used_up(nw->world, NODE_A, true);
    assert_faults(nw, &nw->a, "has 1024 descriptors open in its fettle-noded, of 1024");
    record_autoptr(node_report) report = report_of(nw, &nw->a);
    g_assert_null(faults_forbids(report, true));
    fake_set_descriptors_used_up(nw->world, NODE_A, false);
    assert_faults(nw, &nw->a, "");
    node_world_free(nw);
}

/* A look that does not come back holds up no report, is told after LIMIT_LOOK_SILENT_MS, and proves
 * nothing. */
static void test_hangs(void)
{
    struct node_world *nw = node_world_new(1);
    assert_faults(nw, &nw->a, "");
    fake_set_hung(nw->world, NODE_A, true);
    nw_pass(nw, HEALTH_PAUSE_MS);
    gint64 before = fake_now_ms(nw->world);
    assert_faults(nw, &nw->a, "");
    g_assert_cmpint(fake_now_ms(nw->world) - before, <, 1000);
    nw_pass(nw, LIMIT_LOOK_SILENT_MS);
    record_autoptr(node_report) report = report_of(nw, &nw->a);
    const struct node_fault *fault = faults_find(report, FAULT_STATE);
    g_assert_cmpstr(fault->text, ==, "gets no answer from the disk of its state");
    g_assert_true(fault->silent);
    g_assert_null(faults_forbids(report, true));
    g_assert_cmpuint(faults_rank(report), >, 0);
    fake_set_hung(nw->world, NODE_A, false);
    nw_pass(nw, 1000);
    assert_faults(nw, &nw->a, "");
    node_world_free(nw);
}

/* A guest is not started where that cannot be remembered (SAF-10): the fault makes it impossible.
 */
static void test_starts_nothing(void)
{
    struct node_world *nw = node_world_new(1);
    fake_set_read_only(nw->world, NODE_A, true);
    record_autoptr(node_report) report = report_of(nw, &nw->a);
    g_assert_cmpstr(faults_forbids(report, false), ==,
                    "cannot write its state: var: Read-only file system");
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/health/well#SAF-92", test_well);
    g_test_add_func("/health/read-only#SAF-92", test_read_only);
    g_test_add_func("/health/acts#SAF-24,SAF-92", test_acts);
    g_test_add_func("/health/disks#SAF-92", test_disks);
    g_test_add_func("/health/no-descriptors#SAF-92", test_descriptors);
    g_test_add_func("/health/rest#SAF-92", test_rest);
    g_test_add_func("/health/a-look-hangs#SAF-92", test_hangs);
    g_test_add_func("/health/starts-nothing#SAF-92", test_starts_nothing);
    return g_test_run();
}

/* The tags of auto-repair: every form is read and written back, nothing malformed is guessed. */
#include "base/limits.h"
#include "core/repair/tags.h"

#define P "ganeti:watcher:autorepair:"

static void check_kind(const char *text, enum repair_tag_kind kind)
{
    struct repair_tag tag;
    repair_tag_parse(text, &tag);
    g_assert_cmpint(tag.kind, ==, kind);
    repair_tag_clear(&tag);
}

static void test_enabling(void)
{
    const char *const words[] = {"fix-storage", "migrate", "failover", "reinstall"};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *text = g_strconcat(P, words[i], NULL);
        struct repair_tag tag;
        repair_tag_parse(text, &tag);
        g_assert_cmpint(tag.kind, ==, REPAIR_TAG_ENABLE);
        g_assert_cmpint((int)tag.type, ==, (int)i);
        g_assert_cmpstr(repair_type_name(tag.type), ==, words[i]);
        repair_tag_clear(&tag);
    }
    check_kind(P "reboot", REPAIR_TAG_MALFORMED);
    check_kind(P "failover:now", REPAIR_TAG_MALFORMED);
    check_kind("autorepair:failover", REPAIR_TAG_NONE);
    check_kind("color:red", REPAIR_TAG_NONE);
}

static void test_suspend(void)
{
    struct repair_tag tag;
    repair_tag_parse(P "suspend:1700000000", &tag);
    g_assert_cmpint(tag.kind, ==, REPAIR_TAG_SUSPEND);
    g_assert_false(tag.forever);
    g_assert_cmpint(tag.timestamp, ==, 1700000000);
    const char *const endless[] = {P "suspend", P "suspend:", P "suspend:tomorrow", P "suspend:-1",
                                   P "suspend:5:6"};
    for (guint i = 0; i < G_N_ELEMENTS(endless); i++) {
        repair_tag_parse(endless[i], &tag);
        g_assert_cmpint(tag.kind, ==, REPAIR_TAG_SUSPEND);
        g_assert_true(tag.forever);
        g_assert_cmpint(tag.unreadable, ==, i >= 2);
    }
}

static void test_pending(void)
{
    const char *const jobs[] = {"12", "15", NULL};
    g_autofree char *text = repair_tag_pending(REPAIR_FAILOVER, "a-b", 1700000001, jobs);
    g_assert_cmpstr(text, ==, P "pending:failover:a-b:1700000001:12+15");
    g_autofree char *empty = repair_tag_pending(REPAIR_FIX_STORAGE, "a-b", 5, NULL);
    g_assert_cmpstr(empty, ==, P "pending:fix-storage:a-b:5:");
    struct repair_tag tag;
    repair_tag_parse(text, &tag);
    g_assert_cmpint(tag.kind, ==, REPAIR_TAG_PENDING);
    g_assert_cmpint((int)tag.type, ==, REPAIR_FAILOVER);
    g_assert_cmpstr(tag.id, ==, "a-b");
    g_assert_cmpint(tag.timestamp, ==, 1700000001);
    g_assert_cmpstrv(tag.jobs, jobs);
    repair_tag_clear(&tag);
    repair_tag_parse(empty, &tag);
    g_assert_cmpint(tag.kind, ==, REPAIR_TAG_PENDING);
    g_assert_cmpuint(g_strv_length(tag.jobs), ==, 0);
    repair_tag_clear(&tag);
}

static void test_result(void)
{
    const char *const jobs[] = {"7", NULL};
    for (int outcome = REPAIR_SUCCESS; outcome <= REPAIR_ENOPERM; outcome++) {
        g_autofree char *text =
            repair_tag_result(REPAIR_REINSTALL, "id", 9, (enum repair_outcome)outcome, jobs);
        struct repair_tag tag;
        repair_tag_parse(text, &tag);
        g_assert_cmpint(tag.kind, ==, REPAIR_TAG_RESULT);
        g_assert_cmpint((int)tag.outcome, ==, outcome);
        g_assert_cmpstrv(tag.jobs, jobs);
        repair_tag_clear(&tag);
    }
}

static void test_malformed(void)
{
    const char *const bad[] = {
        P "pending",
        P "pending:failover:id:5",
        P "pending:failover:id:soon:",
        P "pending:failover::5:",
        P "pending:reboot:id:5:",
        P "pending:failover:id:5:1+x",
        P "pending:failover:id:5:+",
        P "result:failover:id:5:maybe:1",
        P "result:failover:id:5:success",
        P "",
        P ":",
        P "pending:failover:id:5:0",
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        check_kind(bad[i], REPAIR_TAG_MALFORMED);
    g_autofree char *longest = g_strnfill(LIMIT_REPAIR_ID_CHARS, 'x');
    g_autofree char *good = g_strdup_printf(P "pending:failover:%s:5:", longest);
    g_autofree char *too_long = g_strdup_printf(P "pending:failover:%sx:5:", longest);
    check_kind(good, REPAIR_TAG_PENDING);
    check_kind(too_long, REPAIR_TAG_MALFORMED);
}

static void check_said(const char *text, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(repair_tag_check(text, &error) == !expected);
    g_assert_cmpstr(error ? error->message : NULL, ==, expected);
}

/* What people set is either understood or named, with the nearest. */
static void test_check(void)
{
    check_said("owner:mail", NULL);
    check_said(P "failover", NULL);
    check_said(P "suspend", NULL);
    check_said(P "result:failover:id:5:success:1", NULL);
    check_said(P "failovr", "tags: \"" P "failovr\" says nothing to auto-repair; behind " P
                            " stands one of fix-storage, migrate, failover, reinstall, suspend; "
                            "did you mean " P "failover?");
    check_said(P "suspend:tomorrow",
               "tags: \"" P "suspend:tomorrow\" says nothing to auto-repair; behind " P
               " stands one of fix-storage, migrate, failover, reinstall, suspend; did you mean " P
               "suspend?");
    check_said(P "", "tags: \"" P "\" says nothing to auto-repair; behind " P
                     " stands one of fix-storage, migrate, failover, reinstall, suspend");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/repair-tags/enabling#ARP-07", test_enabling);
    g_test_add_func("/repair-tags/suspend", test_suspend);
    g_test_add_func("/repair-tags/pending#ARP-32,ARP-33", test_pending);
    g_test_add_func("/repair-tags/result#ARP-38,ARP-39", test_result);
    g_test_add_func("/repair-tags/malformed", test_malformed);
    g_test_add_func("/repair-tags/what-people-set-is-understood-or-named", test_check);
    return g_test_run();
}

/* Tests of the rules of `fettle cluster engine renew`: which member may leave the others. */
#include "cli/commands/engine.h"

#include <string.h>

#define CASE_MEMBERS 5

/* Members as letters, one each: the content they hold; a capital one does not answer. '.': it is
 * well, but its content is not known. */
struct rig {
    struct engine_member members[CASE_MEMBERS];
    struct member_status status[CASE_MEMBERS];
    struct asked asked[CASE_MEMBERS];
    struct survey survey;
};

static void rig_fill(struct rig *rig, const char *letters)
{
    static char *const names[CASE_MEMBERS] = {"node1", "node2", "node3", "node4", "node5"};
    struct etcd_content contents[CASE_MEMBERS] = {0};
    guint count = (guint)strlen(letters);
    *rig = (struct rig){.survey = {.members = g_ptr_array_new()}};
    for (guint i = 0; i < count; i++) {
        bool answers = !g_ascii_isupper(letters[i]);
        contents[i].known = answers && letters[i] != '.';
        contents[i].hash = (guint64)letters[i];
        rig->members[i].name = rig->members[i].node = names[i];
        rig->status[i].healthy = answers;
        rig->asked[i] = (struct asked){.member = &rig->members[i],
                                       .status = &rig->status[i],
                                       .listed = answers ? rig->survey.members : NULL,
                                       .survey = &rig->survey};
        g_ptr_array_add(rig->survey.members, &rig->asked[i]);
    }
    rig->survey.verdict = etcd_contents_judge(contents, count);
    for (guint i = 0; i < count; i++)
        rig->asked[i].content = contents[i];
}

/* "ok", "a person's word" or the refusal. */
static char *said(const char *letters, guint node)
{
    struct rig rig;
    g_autoptr(GError) error = NULL;
    rig_fill(&rig, letters);
    bool disputed = false;
    bool ok = survey_may_leave(&rig.survey, &rig.asked[node - 1], &disputed, &error);
    g_ptr_array_unref(rig.survey.members);
    if (ok)
        return g_strdup(disputed ? "a person's word" : "ok");
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    return g_strdup(error->message);
}

/* The refusal has these words. */
static void refused(const char *letters, guint node, const char *words)
{
    g_autofree char *text = said(letters, node);
    if (strstr(text, words) == NULL)
        g_error("%s, node%u: \"%s\" has no \"%s\"", letters, node, text, words);
}

static void is_said(const char *letters, guint node, const char *expected)
{
    g_autofree char *text = said(letters, node);
    g_assert_cmpstr(text, ==, expected);
}

static void test_majority(void)
{
    is_said("aab", 3, "ok");
    is_said("aaA", 3, "ok");
    is_said("aaa", 1, "ok");
    is_said("aab.", 3, "ok");
    refused("aAb", 3, "no majority of the others is left: not well are node2;");
    refused("aab", 1, "no majority of the others is left: not well are node3;");
    refused("a", 1, "none, but there are too few");
}

/* With fresh data of the others the new one would make a majority of whom it takes after. */
static void test_undecided(void)
{
    refused("abA", 3, "the data of node1, node2 differs, and nobody can say which is right");
    refused("abc", 1, "the data of node2, node3 differs");
    refused("abcA", 4, "the data of node1, node2, node3 differs");
    refused("aabb.", 5, "the data of node1, node2, node3, node4 differs");
}

/* Those that stay agree, and the one that leaves says otherwise: it may be right. */
static void test_disputed(void)
{
    is_said("ab", 2, "a person's word");
    is_said("ab", 1, "a person's word");
    is_said("aabb", 4, "a person's word");
    is_said("aa", 1, "ok");
    is_said("aA", 2, "ok");
}

/* What helps is something else where all answer: there is nobody to bring back. */
static void test_who_is_right(void)
{
    static const struct {
        const char *letters, *words;
    } cases[] = {{"abA", "bring the other members back"},
                 {"ab.", "bring the other members back"},
                 {"ab", "names a member that answered what was never stored"},
                 {"abc", "names a member that answered what was never stored"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct rig rig;
        rig_fill(&rig, cases[i].letters);
        g_assert_nonnull(strstr(survey_who_is_right(&rig.survey), cases[i].words));
        g_ptr_array_unref(rig.survey.members);
    }
}

static void test_has_master(void)
{
    static const struct {
        struct role_status status;
        bool has;
    } cases[] = {
        {{.seat = SEAT_MASTER, .master_node = "", .why = ""}, true},
        {{.seat = SEAT_FOLLOWS, .master_node = "node2", .why = ""}, true},
        {{.seat = SEAT_FOLLOWS, .master_node = "node1", .why = ""}, false},
        {{.seat = SEAT_FOLLOWS, .master_node = "", .why = ""}, false},
        {{.seat = SEAT_FOLLOWS, .master_node = "node2", .why = "it is silent"}, false},
        {{.seat = SEAT_CAMPAIGNS, .master_node = "node2", .why = ""}, false},
        {{.seat = SEAT_RETIRED, .master_node = "", .why = ""}, false},
        {{.seat = SEAT_NONE, .master_node = "", .why = ""}, false},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(engine_has_master(&cases[i].status, "node1"), ==, cases[i].has);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine-rules/majority#SAF-07", test_majority);
    g_test_add_func("/engine-rules/undecided#SAF-07", test_undecided);
    g_test_add_func("/engine-rules/disputed#SAF-07", test_disputed);
    g_test_add_func("/engine-rules/who-is-right", test_who_is_right);
    g_test_add_func("/engine-rules/has-master", test_has_master);
    return g_test_run();
}

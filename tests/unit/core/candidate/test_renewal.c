/* Which member of etcd may leave the others, to come in again: the rules, and the method
 * check_renewal of each candidate. */
#include "core/candidate/renewal.h"

#include <string.h>

#include "helper/fake_ensemble.h"
#include "unit/core/world/seat_world.h"

#define MEMBERS_MOST 5

static struct engine_config *config_of(guint count)
{
    struct engine_config *config = engine_config_new();
    config->kind = ENGINE_KIND_ETCD;
    for (guint i = 1; i <= count; i++) {
        g_autofree char *text =
            g_strdup_printf("{\"node\": \"aaaaaaaa-0000-4000-8000-%012u\", \"name\": \"node%u\", "
                            "\"client_url\": \"https://10.0.0.%u:2379\", \"peer_url\": "
                            "\"https://10.0.0.%u:2380\"}",
                            i, i, i, i);
        json_autoptr json = json_loads(text, 0, NULL);
        struct engine_member *member = engine_member_parse(json, RECORD_LAX, NULL);
        g_assert_nonnull(member);
        g_ptr_array_add(config->members, member);
    }
    return config;
}

/* "ok", "a person's word" or the refusal. Members as letters (helper/fake_ensemble.h). */
static char *said(const char *letters, guint node)
{
    record_autoptr(engine_config) config = config_of((guint)strlen(letters));
    struct engine_config *const known = config;
    struct fake_ensemble *fake = fake_ensemble_new(NULL, &known);
    struct ensemble_seen seen[MEMBERS_MOST];
    g_autoptr(GError) error = NULL;
    enum etcd_verdict verdict;
    bool disputed = false;
    fake->letters = letters;
    g_assert_true(fake->base.ops->survey(&fake->base, config, seen, &verdict, NULL));
    bool ok = renewal_may_leave(config, seen, verdict, node - 1, &disputed, &error);
    fake_ensemble_free(fake);
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
        bool known;
        const char *words;
    } cases[] = {{false, "bring the other members back"},
                 {true, "names a member that answered what was never stored"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct etcd_content contents[] = {{.known = true, .hash = 1},
                                                {.known = cases[i].known, .hash = 2}};
        g_assert_nonnull(strstr(etcd_contents_who_is_right(contents, 2), cases[i].words));
    }
    refused("abA", 3, "bring the other members back");
    refused("abc", 1, "names a member that answered what was never stored");
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

/* --- the method --- */

/* What node2's wconfd says; "member other disputed", or the error. */
static char *checked(const char *letters, const char *node)
{
    record_autoptr(engine_config) config = config_of((guint)strlen(letters));
    struct engine_config *const known = config;
    struct fake_ensemble *fake = fake_ensemble_new(hosts[1].wconfd, &known);
    g_autoptr(GError) error = NULL;
    fake->letters = letters;
    hosts[1].wconfd->ensemble = *letters ? &fake->base : NULL;
    json_autoptr answer = fake_call(hosts[1].cli, uuids[1], ROLE_WCONFD, "check_renewal",
                                    json_make("{ss}", "node", node), &error);
    hosts[1].wconfd->ensemble = NULL;
    fake_ensemble_free(fake);
    if (!answer)
        return g_strdup(error->message);
    return g_strdup_printf("%s %s %d", json_string_value(json_object_get(answer, "member")),
                           json_string_value(json_object_get(answer, "other")),
                           json_is_true(json_object_get(answer, "disputed")));
}

#define assert_checked(letters, node, expected)                                                    \
    do {                                                                                           \
        g_autofree char *text_ = checked(letters, node);                                           \
        g_assert_cmpstr(text_, ==, expected);                                                      \
    } while (0)

/* Also on a candidate that is not the master; the name and the UUID are the same member. */
static void test_method(void)
{
    set_up();
    assert_checked("aab", "node3", "node3 node1 0");
    assert_checked("Aaa", "aaaaaaaa-0000-4000-8000-000000000001", "node1 node2 0");
    assert_checked("ab", "node2", "node2 node1 1");
    assert_checked("aAb", "node3",
                   "without the member of node3 no majority of the others is left: not well are "
                   "node2; bring them back first, see fettle cluster engine status");
    assert_checked("aab", "node9",
                   "node \"node9\" has no member of etcd; there are those of node1, node2, node3");
    assert_checked("", "node2",
                   "the engine is sqlite: there are no members of etcd; a damaged copy of a "
                   "candidate is made anew by itself");
    tear_down();
}

/* Nobody would let it in again. */
static void test_no_master(void)
{
    set_up();
    lose_master();
    fake_advance(world, 60000);
    g_autofree char *text = checked("aab", "node3");
    g_assert_nonnull(strstr(text, "this node sees no master, who would let the member come in "));
    g_assert_nonnull(strstr(text, "; nothing has changed; run it on the master"));
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/renewal/majority#SAF-07", test_majority);
    g_test_add_func("/renewal/undecided#SAF-07", test_undecided);
    g_test_add_func("/renewal/disputed#SAF-07", test_disputed);
    g_test_add_func("/renewal/who-is-right", test_who_is_right);
    g_test_add_func("/renewal/has-master", test_has_master);
    g_test_add_func("/renewal/method", test_method);
    g_test_add_func("/renewal/no-master", test_no_master);
    return g_test_run();
}

/* Whether there are enough master candidates, and who should become one: every rule of
 * candidate_pool.h. */
#include "core/watcher/candidate_pool.h"
#include "proto/change.h"

#include <string.h>

#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"
#define NOW 1700000000

struct pool_case {
    /* Nodes by name and what is so of them, the first being the master: c candidate, o offline, d
     * drained, s silent for long, l silent for a minute, q silent for a moment, f its disks have
     * failed, n not to be one by a person's word, a avoided, x failed once, y twice. */
    const char *nodes;
    guint size;
    const char *expected; /* verdict, node, "for" whom, usable/goal */
    const char *evidence, *rejected;
};

static void apply(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    struct change *change = change_make(CHANGE_PUT, kind, key, 1, object);
    config_apply(config, change, &error);
    g_assert_no_error(error);
    change_free(change);
}

static char *uuid_of(guint i)
{
    return g_strdup_printf("11111111-0000-4000-8000-%012u", i + 1);
}

static void add_advice(struct config *config, const char *node)
{
    apply(config, "advice", node,
          json_make("{ss ss ss ss ss ss}", "uuid", node, "author", "ops", "subject_kind", "node",
                    "subject", node, "advice", "avoid", "reason", "new disks"));
}

static void add_node(struct config *config, guint i, const char *name, const char *flags)
{
    g_autofree char *uuid = uuid_of(i);
    apply(config, "node", uuid,
          json_make("{ss ss ss ss sb sb sb sb}", "uuid", uuid, "name", name, "primary_ip", name,
                    "group", GROUP, "master_candidate", strchr(flags, 'c') != NULL, "offline",
                    strchr(flags, 'o') != NULL, "drained", strchr(flags, 'd') != NULL,
                    "master_capable", strchr(flags, 'n') == NULL));
    if (strchr(flags, 'a') != NULL)
        add_advice(config, uuid);
}

static gint64 unheard_ms(const char *flags)
{
    return strchr(flags, 's') != NULL   ? LIMIT_CANDIDATE_SILENT_S * 1000
           : strchr(flags, 'l') != NULL ? 60000
           : strchr(flags, 'q') != NULL ? 10000
                                        : 0;
}

static char *judgement_text(const struct candidate_pool_judgement *judgement)
{
    static const char *const verdicts[] = {
        [POOL_FULL] = "full", [POOL_UNSURE] = "unsure",   [POOL_PROMOTE] = "promote",
        [POOL_EVEN] = "even", [POOL_BLOCKED] = "blocked", [POOL_NOBODY] = "nobody"};
    GString *text = g_string_new(verdicts[judgement->verdict]);
    if (judgement->node != NULL)
        g_string_append_printf(text, " %s", judgement->node->name);
    for (guint i = 0; i < judgement->replaced->len; i++)
        g_string_append_printf(text, "%s %s", i == 0 ? " for" : "",
                               ((const struct node *)judgement->replaced->pdata[i])->name);
    if (judgement->silent != NULL)
        g_string_append_printf(text, ", %s silent", judgement->silent->name);
    g_string_append_printf(text, " %u/%u", judgement->usable, judgement->goal);
    return g_string_free(text, FALSE);
}

static void assert_list(GPtrArray *list, const char *expected)
{
    if (expected == NULL)
        return;
    g_ptr_array_add(list, NULL);
    g_autofree char *text = g_strjoinv("; ", (char **)list->pdata);
    g_ptr_array_remove_index(list, list->len - 1);
    g_assert_cmpstr(text, ==, expected);
}

static void judge_one(const struct pool_case *one, const char *engine)
{
    struct config *config = config_new();
    g_auto(GStrv) words = g_strsplit(one->nodes, " ", -1);
    g_autofree char *master = uuid_of(0);
    apply(config, "cluster", CLUSTER,
          json_make("{ss ss ss ss si}", "uuid", CLUSTER, "name", "c1", "master_node", master,
                    "engine", engine, "candidate_pool_size", (int)one->size));
    g_autoptr(GArray) nodes = g_array_new(false, false, sizeof(struct candidate_pool_node));
    for (guint i = g_strv_length(words); i > 0; i--) { /* the order must not matter */
        g_auto(GStrv) parts = g_strsplit(words[i - 1], ":", 2);
        g_autofree char *uuid = uuid_of(i - 1);
        add_node(config, i - 1, parts[0], parts[1]);
        struct candidate_pool_node seen = {.node = config_get(config, "node", uuid, NULL),
                                           .unheard_ms = unheard_ms(parts[1]),
                                           .disks_failed = strchr(parts[1], 'f') != NULL,
                                           .failures = strchr(parts[1], 'y') != NULL   ? 2
                                                       : strchr(parts[1], 'x') != NULL ? 1
                                                                                       : 0};
        g_array_append_val(nodes, seen);
    }
    struct candidate_pool_judgement judgement = candidate_pool_judge(config, nodes, NOW);
    g_autofree char *text = judgement_text(&judgement);
    g_test_message("%s, of %u, %s: %s", one->nodes, one->size, engine, text);
    g_assert_cmpstr(text, ==, one->expected);
    assert_list(judgement.evidence, one->evidence);
    assert_list(judgement.rejected, one->rejected);
    candidate_pool_judgement_clear(&judgement);
    config_free(config);
}

static void test_usable(void)
{
    static const struct pool_case cases[] = {
        {"a:c b:c c:c d:", 3, "full 3/3", "", ""},
        {"a:c b:c c:c d:c", 3, "full 4/3", "", ""}, /* surplus is left alone */
        {"a:c b:c c: d:", 3, "promote c 2/3", "", ""},
        {"a:c b:co c:c d:", 3, "promote d 2/3", "candidate b is offline on record", ""},
        {"a:c b:cd c:c d:", 3, "promote d 2/3", "candidate b is drained", ""},
        {"a:c b:cq c:c d:", 3, "full 3/3", "", ""}, /* it reboots, perhaps */
        {"a:c b:cl c:c d:", 3, "full 3/3", "", ""},
        {"a:c b:cn c:c d:", 3, "full 3/3", "", ""}, /* a person has made it one */
        /* The master serves. */
        {"a: b:c c:c d:", 3, "full 3/3", "", ""},
        {"a:cd b:c c:c d:", 3, "full 3/3", "", ""},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        judge_one(&cases[i], "sqlite");
}

static void test_choice(void)
{
    static const struct pool_case cases[] = {
        {"a:c b:c d: c:", 3, "promote c 2/3", "", ""}, /* by name */
        {"a:c b:c c:x d:", 3, "promote d 2/3", "", ""},
        {"a:c b:c c:y d:x", 3, "promote d 2/3", "", ""},
        {"a:c b:c c:n d:o e:d f:l g:f h:a i:", 3, "promote i 2/3", "",
         "c shall be none (master_capable is no); d is offline on record; e is drained; f does not "
         "answer; the disks of g fail; h is to be avoided, says ops: new disks"},
        {"a:c b:c c:o d:d", 3, "nobody 2/3", "", "c is offline on record; d is drained"},
        {"a:c b:c c:q", 3, "unsure c 2/3", NULL, ""},
        {"a:c b:c c:q d:", 3, "unsure c 2/3", NULL, ""},
        {"a:c b:c c:l", 3, "nobody 2/3", NULL, "c does not answer"},
        {"a:c b:c c:qo", 3, "nobody 2/3", NULL, NULL},
        {"a:c b:c c:qd d:", 3, "promote d 2/3", NULL, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        judge_one(&cases[i], "sqlite");
}

/* Small clusters are not told for ever that they are small, and two nodes stay as they were made.
 */
static void test_small(void)
{
    static const struct pool_case cases[] = {
        {"a:c", 3, "full 1/1", "", ""},
        {"a:c b:", 3, "full 1/1", "", ""},
        {"a:c b:c", 3, "full 2/1", "", ""},
        {"a:c b:", 2, "promote b 1/2", "", ""}, /* it was asked for */
        {"a:c b: c:", 3, "promote b 1/3", "", ""},
        {"a:c b: c:n", 3, "even b 1/3", "", "c shall be none (master_capable is no)"},
        {"a:c b:n c:n", 3, "nobody 1/3", NULL, NULL},
        {"a:c b:c c:c d:", 5, "full 3/3", "", ""},
        {"a:c b:c c:c d:", 4, "promote d 3/4", "", ""},
        {"a:c b:c c:c d: e:", 5, "promote d 3/5", "", ""},
        {"a:c b: c:", 1, "full 1/1", "", ""},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        judge_one(&cases[i], "sqlite");
}

/* Nobody is added who would only make every majority larger. */
static void test_even(void)
{
    static const struct pool_case cases[] = {
        {"a:c b:cs c:c d:", 3, "even d, b silent 2/3", "candidate b does not answer any more", ""},
        {"a:c b:cs c:c d: e:", 3, "even d, b silent 2/3", NULL, ""},
        {"a:c b:cs c: d:", 3, "promote c, b silent 1/3", NULL, NULL},
        {"a:c b:cs c:", 2, "promote c, b silent 1/2", NULL, NULL},
        {"a:c b:cs c:cs d:", 3, "even d, b silent 1/3", NULL, NULL},
        {"a:c b: c:o", 3, "even b 1/3", "", "c is offline on record"},
        {"a:c b: c:q", 3, "promote b 1/3", NULL, NULL},
        {"a:c b:c c:o d:o", 3, "nobody 2/3", NULL, NULL},
        /* What is offline counts for no majority of SQLite. */
        {"a:c b:co c:c d:", 3, "promote d 2/3", NULL, NULL},
        {"a:c b:co c:", 3, "even c 1/3", NULL, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        judge_one(&cases[i], "sqlite");
}

/* With etcd a dead member counts until it is taken out, and nobody comes in beside it: so its place
 * is what another one gets, and one of whom nobody knows whether it is dead keeps all out. */
static void test_etcd(void)
{
    static const struct pool_case cases[] = {
        {"a:c b:co c:c d:", 3, "promote d for b 2/3", NULL, NULL},
        {"a:c b:co c:co d: e:", 3, "promote d for b c 1/3", NULL, NULL},
        {"a:c b:c c:c d:co e:co f:", 5, "promote f for d e 3/5", NULL, NULL},
        {"a:c b:c c: d:", 3, "promote c 2/3", NULL, NULL},
        {"a:c b:cs c:c d:", 3, "blocked d, b silent 2/3", NULL, NULL},
        {"a:c b:c c:c d:cs e:cs f: g:", 5, "blocked f, d silent 3/5", NULL, NULL},
        {"a:c b:co c:cs d:c e:", 3, "blocked e, c silent 2/3", NULL, NULL},
        {"a:c b:co c:c d:c e:", 3, "full 3/3", NULL, NULL},
        {"a:c b:co c:c", 3, "nobody 2/3", NULL, NULL},
        {"a:co b:c c:c d:", 3, "full 3/3", NULL, NULL}, /* the master's seat is not for taking */
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        judge_one(&cases[i], "etcd");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pool/usable#ARP-71", test_usable);
    g_test_add_func("/pool/choice#ARP-69,ARP-71", test_choice);
    g_test_add_func("/pool/small#ARP-71", test_small);
    g_test_add_func("/pool/even#ARP-71", test_even);
    g_test_add_func("/pool/etcd#ARP-71", test_etcd);
    return g_test_run();
}

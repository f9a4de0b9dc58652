/* Tests of proto/task_table.h: each arrow of the requirement document, and what must hold for every
 * task and everything that can be found. */
#include "proto/task_table.h"

#include <string.h>

#include "proto/records.h"

static char **arrows;

/* --- the arrows --- */

struct arrow {
    char *rule, *kind, **words, *final, *finisher;
    bool moves;
    guint flags; /* of enum outcome_flags those that are spelled */
    GStrv facts;
};

/* In the order in which they stand after the record, from the last on. */
static const struct spelling {
    const char *suffix;
    guint flag;
} spellings[] = {
    {"+free", OUTCOME_RELEASE_ALL},
    {"+free-source", OUTCOME_RELEASE_SOURCE},
    {"+free-target", OUTCOME_RELEASE_TARGET},
    {"+take", OUTCOME_TAKE_TARGET},
    {"!!", OUTCOME_ALERT_HIGH},
    {"!", OUTCOME_ALERT},
};

static bool take_suffix(char *text, const char *suffix)
{
    if (!g_str_has_suffix(text, suffix))
        return false;
    text[strlen(text) - strlen(suffix)] = '\0';
    g_strstrip(text);
    return true;
}

/* The flags at the end of the text, which is cut off there. */
static guint take_flags(char *text)
{
    guint flags = 0;
    for (guint i = 0; i < G_N_ELEMENTS(spellings); i++)
        if (take_suffix(text, spellings[i].suffix))
            flags |= spellings[i].flag;
    return flags;
}

static guint spelled_flags(void)
{
    guint flags = 0;
    for (guint i = 0; i < G_N_ELEMENTS(spellings); i++)
        flags |= spellings[i].flag;
    return flags;
}

static void arrow_parse(const char *line, struct arrow *arrow)
{
    g_auto(GStrv) parts = g_strsplit(line, "|", -1);
    guint count = g_strv_length(parts);
    g_assert_true(count == 3 || count == 4);
    g_auto(GStrv) head = g_strsplit(g_strstrip(parts[0]), " ", -1);
    g_assert_cmpuint(g_strv_length(head), ==, 3);
    g_strstrip(parts[1]);
    arrow->rule = g_strdup(head[0]);
    arrow->kind = g_strdup(head[1]);
    arrow->words = g_strsplit(head[2], ",", -1);
    arrow->moves = g_str_has_prefix(parts[1], "moves ");
    arrow->facts = g_strsplit(parts[1] + (arrow->moves ? strlen("moves ") : 0), " ", -1);
    arrow->final = g_strdup(g_strstrip(parts[2]));
    arrow->flags = take_flags(arrow->final);
    arrow->finisher = count == 4 ? g_strdup(g_strstrip(parts[3])) : NULL;
}

static void arrow_clear(struct arrow *arrow)
{
    g_free(arrow->rule);
    g_free(arrow->kind);
    g_strfreev(arrow->words);
    g_free(arrow->final);
    g_free(arrow->finisher);
    g_strfreev(arrow->facts);
}

static enum task_kind kind_of(const char *word)
{
    for (guint i = 0; i < TASK_KINDS; i++)
        if (strcmp(task_kind_rows[i].word, word) == 0)
            return (enum task_kind)i;
    g_error("no kind %s", word);
}

/* Calls `each` with everything that can be found, as far as `wanted` (NULL: all of it) leaves it
 * open. */
static void for_all_facts(enum task_kind kind, const GStrv wanted,
                          void (*each)(const struct task_facts *facts, void *data), void *data)
{
    const struct task_kind_row *row = &task_kind_rows[kind];
    struct task_facts facts;
    guint used = 0;
    for (guint i = 0; i < TASK_FACT_SETS; i++)
        used += row->values[i] > 1;
    if (wanted)
        g_assert_cmpuint(g_strv_length(wanted), ==, used);
    guint total = row->values[0] * row->values[1] * row->values[2] * row->values[3], seen = 0;
    for (guint n = 0; n < total; n++) {
        bool is_wanted = true;
        for (guint i = 0, rest = n; i < TASK_FACT_SETS; rest /= row->values[i], i++) {
            facts.values[i] = rest % row->values[i];
            const char *word = row->words[i][facts.values[i]];
            if (wanted && i < used && strcmp(wanted[i], "*") != 0 && strcmp(wanted[i], word) != 0)
                is_wanted = false;
        }
        seen += is_wanted;
        if (is_wanted)
            each(&facts, data);
    }
    g_assert_cmpuint(seen, >, 0); /* else a word of the arrow is in no set */
}

static bool is_of_rule(const char *line, const char *rule)
{
    gsize len = strlen(rule);
    return g_str_has_prefix(line, rule) && line[len] == ' ';
}

struct arrow_case {
    const struct arrow *arrow;
    const struct task_row *row;
};

static void check_arrow(const struct task_facts *facts, void *data)
{
    const struct arrow_case *of = data;
    const struct arrow *arrow = of->arrow;
    for (int rectify = RECTIFY_NO; rectify <= RECTIFY_JOBS; rectify++) {
        struct task_outcome outcome =
            task_outcome_of(of->row, facts, arrow->moves, (enum rectify_unstable)rectify);
        g_assert_cmpstr(outcome.rule, ==, arrow->rule);
        g_assert_cmpstr(task_final_words[outcome.final], ==, arrow->final);
        g_assert_cmphex(outcome.flags & spelled_flags(), ==, arrow->flags);
        g_assert_cmpstr(outcome.finisher, ==, rectify == RECTIFY_NO ? NULL : arrow->finisher);
    }
}

/* Those of one rule. */
static void test_arrows(gconstpointer rule)
{
    guint cases = 0;
    for (char **line = arrows; *line; line++) {
        struct arrow arrow = {0};
        if (!is_of_rule(*line, rule))
            continue;
        g_test_message("%s", *line);
        arrow_parse(*line, &arrow);
        enum task_kind kind = kind_of(arrow.kind);
        for (char **word = arrow.words; *word; word++, cases++) {
            struct arrow_case of = {&arrow, task_row_of(kind, *word)};
            g_assert_nonnull(of.row);
            for_all_facts(kind, arrow.facts, check_arrow, &of);
        }
        arrow_clear(&arrow);
    }
    g_assert_cmpuint(cases, >, 0);
}

/* Each rule of the file is one case, named by its id; tagged with it are those of tasks that
 * something sets, as the others are not proven by made-up evidence alone. */
static GHashTable *add_arrows(void)
{
    static const char *const set[] = {"RCV-47", "RCV-49", "RCV-54", "RCV-69",
                                      "RCV-70", "RCV-79", "RCV-81", NULL};
    GHashTable *rules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **line = arrows; *line; line++) {
        g_autofree char *rule = g_strndup(*line, strcspn(*line, " "));
        if (*rule == '#' || *rule == '\0' || g_hash_table_contains(rules, rule))
            continue;
        g_autofree char *path = g_strdup_printf(
            "/tasks/arrows/%s%s%s", g_str_has_prefix(rule, "D9/") ? rule + 3 : rule,
            g_strv_contains(set, rule) ? "#" : "", g_strv_contains(set, rule) ? rule : "");
        g_test_add_data_func_full(path, g_strdup(rule), test_arrows, g_free);
        g_hash_table_add(rules, g_steal_pointer(&rule));
    }
    return rules;
}

/* No arrow of the document is missing. */
static void test_all_rules(gconstpointer data)
{
    GHashTable *rules = (GHashTable *)data;
    for (guint i = 46; i <= 88; i++) {
        g_autofree char *rule = g_strdup_printf("RCV-%u", i);
        if (i != 80) /* test_crashed */
            g_assert_true(g_hash_table_contains(rules, rule));
    }
}

/* --- what holds for all --- */

struct sweep {
    const struct task_row *row;
    GHashTable *hit;      /* indices of outcomes that something leads to */
    GHashTable *finished; /* tasks whose opcode something leads to */
};

static bool finishes(const struct task_outcome *outcome, const char *opcode)
{
    return g_strcmp0(outcome->finisher, opcode) == 0;
}

static bool is_deletion(enum task_operation operation)
{
    return operation == TASK_OPERATION_DELETE || operation == TASK_OPERATION_SOFT_DELETE ||
           operation == TASK_OPERATION_DELETE_VOLUME ||
           operation == TASK_OPERATION_DELETE_SNAPSHOT ||
           operation == TASK_OPERATION_DELETE_BACKUP || operation == TASK_OPERATION_DELETE_IMAGE ||
           operation == TASK_OPERATION_DELETE_NETWORK;
}

/* Nothing whole, nothing in use, and nothing whose guest may be anywhere, goes (SAF-82); and a
 * record goes only with what was to be deleted, or with an attachment that nobody has. */
static void check_removal(const struct task_row *row, const struct task_facts *facts,
                          const struct task_outcome *outcome)
{
    const guint *found = facts->values;
    bool removed = outcome->final == TASK_FINAL_REMOVED;
    if (outcome->final == TASK_FINAL_DISCONNECTED) {
        g_assert_cmpint(row->operation, ==, TASK_OPERATION_DISCONNECT_NETWORK);
        g_assert_cmpuint(found[0], ==, TASK_FACT_ON_NONE);
    }
    if (row->kind == TASK_KIND_port) {
        bool gone = found[0] == TASK_FACT_UNUSED && found[1] == TASK_FACT_INSTANCE_GONE;
        g_assert_false(removed);
        g_assert_cmpint(outcome->final == TASK_FINAL_RELEASED, ==, gone);
        g_assert_cmpint((outcome->flags & OUTCOME_RELEASE_ALL) != 0, ==, gone);
    }
    if (removed && row->kind != TASK_KIND_attachment)
        g_assert_true(is_deletion(row->operation));
    if (!removed && !finishes(outcome, "OP_INSTANCE_SETTLE"))
        return;
    switch (row->kind) {
    case TASK_KIND_instance:
        g_assert_cmpuint(found[0], ==, TASK_FACT_NOWHERE);
        g_assert_cmpuint(found[1], ==, TASK_FACT_ABSENT);
        g_assert_cmpuint(found[2], !=, TASK_FACT_WHOLE);
        break;
    case TASK_KIND_volume:
        g_assert_cmpuint(found[1], ==, TASK_FACT_GONE);
        g_assert_cmpuint(found[3], ==, TASK_FACT_UNUSED);
        break;
    case TASK_KIND_attachment:
        g_assert_cmpuint(found[0], ==, TASK_FACT_UNUSED);
        break;
    case TASK_KIND_network:
        g_assert_cmpuint(found[0], ==, TASK_FACT_ON_NONE);
        break;
    case TASK_KIND_snapshot:
    case TASK_KIND_backup:
    case TASK_KIND_image:
        g_assert_cmpuint(found[0], ==, TASK_FACT_GONE);
        break;
    case TASK_KIND_port: /* above */
    case TASK_KINDS:
        break;
    }
}

/* A job that writes disks anew finds nobody on them, and knows which they are. */
static void check_rewriting(const struct task_facts *facts, const struct task_outcome *outcome)
{
    bool grows = finishes(outcome, "OP_INSTANCE_GROW_DISK");
    guint place = facts->values[0], guest = facts->values[1];
    if (!grows && !finishes(outcome, "OP_INSTANCE_REINSTALL") &&
        !finishes(outcome, "OP_INSTANCE_RECREATE_DISKS"))
        return;
    g_assert_true(place == TASK_FACT_SOURCE || place == TASK_FACT_NOWHERE ||
                  (place == TASK_FACT_TARGET && !grows));
    g_assert_true(guest == TASK_FACT_SHUT_OFF || guest == TASK_FACT_CRASHED ||
                  guest == TASK_FACT_ABSENT || guest == TASK_FACT_PREPARED ||
                  guest == TASK_FACT_PAUSED || guest == TASK_FACT_ENDED ||
                  (guest == TASK_FACT_RUNNING && grows));
}

/* A record is right only of what is where the record has it, or where it was to go (SAF-81). */
static void check_place(const struct task_row *row, const struct task_facts *facts,
                        const struct task_outcome *outcome)
{
    guint place = facts->values[0];
    bool at_target = place == TASK_FACT_TARGET || place == TASK_FACT_TARGET_REST;
    bool confirmed = place == TASK_FACT_BOTH &&
                     (outcome->crashed || facts->values[1] == TASK_FACT_SHUT_OFF) &&
                     row->operation == TASK_OPERATION_CONFIRM_RESIZE;
    if (row->kind != TASK_KIND_instance)
        return;
    if (outcome->final == TASK_FINAL_KEEP)
        g_assert_cmpuint(place, ==, TASK_FACT_SOURCE);
    if (outcome->flags & OUTCOME_TAKE_TARGET)
        g_assert_true(at_target || confirmed);
    if (outcome->flags & OUTCOME_RELEASE_SOURCE)
        g_assert_true(at_target);
    if (outcome->flags & OUTCOME_RELEASE_TARGET)
        g_assert_true(place == TASK_FACT_SOURCE || place == TASK_FACT_NOWHERE);
    if (place == TASK_FACT_ELSEWHERE || (place == TASK_FACT_BOTH && !confirmed))
        g_assert_cmpint(outcome->final, ==, TASK_FINAL_ERROR);
    else if (at_target && outcome->final != TASK_FINAL_ERROR)
        g_assert_true(outcome->flags & OUTCOME_TAKE_TARGET);
}

/* What a migration on record has come to, its job says alone (SAF-17). */
static void check_migration(const struct task_row *row, bool moves, enum rectify_unstable rectify,
                            const struct task_facts *facts, const struct task_outcome *outcome)
{
    bool two = facts->values[0] == TASK_FACT_BOTH && facts->values[1] == TASK_FACT_RUNNING;
    if (row->operation != TASK_OPERATION_MIGRATE)
        return;
    g_assert_cmpint(finishes(outcome, "OP_INSTANCE_MIGRATE"), ==,
                    moves && !two && rectify != RECTIFY_NO);
    g_assert_false(outcome->flags & OUTCOME_TAKE_TARGET);
    if (moves)
        g_assert_cmpint(outcome->final, ==, TASK_FINAL_ERROR);
    if (outcome->final == TASK_FINAL_ERROR)
        g_assert_true(outcome->flags & (OUTCOME_ALERT | OUTCOME_ALERT_HIGH));
}

static void check_two_guests(const struct task_row *row, const struct task_facts *facts,
                             const struct task_outcome *outcome)
{
    if (row->kind != TASK_KIND_instance || facts->values[0] != TASK_FACT_BOTH ||
        facts->values[1] != TASK_FACT_RUNNING)
        return;
    g_assert_cmpint(outcome->final, ==, TASK_FINAL_ERROR);
    g_assert_true(outcome->flags & OUTCOME_ALERT_HIGH);
    g_assert_null(outcome->finisher);
}

static void check_any(const struct task_facts *facts, void *data)
{
    const struct sweep *sweep = data;
    for (int n = 0; n < 6; n++) {
        enum rectify_unstable rectify = (enum rectify_unstable)(n / 2);
        bool moves = n % 2;
        int index = task_outcome_index(sweep->row, facts, moves);
        if (index >= 0)
            g_hash_table_add(sweep->hit, GINT_TO_POINTER(index + 1));
        struct task_outcome outcome = task_outcome_of(sweep->row, facts, moves, rectify);
        g_assert_nonnull(outcome.rule);
        if (rectify == RECTIFY_NO)
            g_assert_null(outcome.finisher);
        if (outcome.finisher)
            g_assert_true(sweep->row->flags & TASK_KEEPS_OFF); /* RD-06 */
        if (outcome.finisher)
            g_assert_true(outcome.flags & OUTCOME_ALERT); /* with `no` that is all (RCV-23) */
        if (finishes(&outcome, sweep->row->finisher))
            g_hash_table_add(sweep->finished, (void *)sweep->row);
        check_removal(sweep->row, facts, &outcome);
        check_two_guests(sweep->row, facts, &outcome);
        check_rewriting(facts, &outcome);
        check_place(sweep->row, facts, &outcome);
        check_migration(sweep->row, moves, rectify, facts, &outcome);
    }
}

static void test_everything(void)
{
    g_autoptr(GHashTable) hit = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) finished = g_hash_table_new(NULL, NULL);
    for (const struct task_row *row = task_rows; row->word; row++) {
        struct sweep sweep = {row, hit, finished};
        for_all_facts(row->kind, NULL, check_any, &sweep);
        if (*row->finisher && !g_hash_table_contains(finished, row))
            g_error("nothing leads to %s of task %s", row->finisher, row->word);
    }
    for (guint i = 0; i < task_outcome_count(); i++)
        if (!g_hash_table_contains(hit, GINT_TO_POINTER(i + 1)))
            g_error("row %u of the outcomes (%s) never counts", i + 1, task_outcome_rule(i));
}

static void check_crashed_one(const struct task_row *row, const struct task_facts *facts,
                              bool moves)
{
    struct task_facts off = *facts;
    if (facts->values[1] != TASK_FACT_CRASHED)
        return;
    bool whole = facts->values[2] == TASK_FACT_WHOLE;
    off.values[1] = TASK_FACT_SHUT_OFF;
    struct task_outcome of_off = task_outcome_of(row, &off, moves, RECTIFY_JOBS);
    struct task_outcome outcome = task_outcome_of(row, facts, moves, RECTIFY_JOBS);
    g_assert_cmpint(outcome.crashed, ==, whole);
    if (!whole)
        return;
    g_assert_cmpstr(outcome.rule, ==, of_off.rule);
    g_assert_cmpint(outcome.final, ==, of_off.final);
    g_assert_cmpstr(outcome.finisher, ==, of_off.finisher);
    g_assert_true(outcome.flags & OUTCOME_ALERT);
}

static void check_crashed(const struct task_facts *facts, void *data)
{
    check_crashed_one(data, facts, false);
    check_crashed_one(data, facts, true);
}

static void test_crashed(void)
{
    for (const struct task_row *row = task_rows; row->word; row++)
        if (row->kind == TASK_KIND_instance)
            for_all_facts(row->kind, NULL, check_crashed, (void *)row);
}

/* --- the words --- */

/* Whose disks may be half written stays off limits (SAF-84); and of whose job may remove images,
 * every host refuses that first (SAF-81). */
static void test_flags(void)
{
    static const enum task_operation writing[] = {
        TASK_OPERATION_REBUILD,        TASK_OPERATION_UNSHELVE,       TASK_OPERATION_RESIZE,
        TASK_OPERATION_REVERT_RESIZE,  TASK_OPERATION_CONFIRM_RESIZE, TASK_OPERATION_MIGRATE,
        TASK_OPERATION_RECREATE_DISKS, TASK_OPERATION_GROW_DISK,      TASK_OPERATION_DELETE,
        TASK_OPERATION_SOFT_DELETE,    TASK_OPERATION_OFFLOAD,        TASK_OPERATION_CREATE};
    static const enum task_operation removing[] = {
        TASK_OPERATION_REVERT_RESIZE, TASK_OPERATION_CONFIRM_RESIZE, TASK_OPERATION_DELETE,
        TASK_OPERATION_SOFT_DELETE, TASK_OPERATION_OFFLOAD};
    for (const struct task_row *row = task_rows; row->word; row++) {
        if (row->kind != TASK_KIND_instance)
            continue;
        for (guint i = 0; i < G_N_ELEMENTS(writing); i++)
            if (row->operation == writing[i] && !(row->flags & TASK_KEEPS_OFF))
                g_error("task %s keeps nobody off", row->word);
        for (guint i = 0; i < G_N_ELEMENTS(removing); i++)
            if (row->operation == removing[i] && !(row->flags & TASK_FENCE_ALL))
                g_error("not every host refuses what task %s was about", row->word);
    }
}

static void test_words(void)
{
    for (const struct task_row *row = task_rows; row->word; row++) {
        g_assert_cmpstr(row->word, !=, "");
        g_assert_true(task_row_of(row->kind, row->word) == row); /* once in its kind (RCV-08) */
    }
    for (const char *const *word = task_state_words.words; *word; word++)
        if (**word)
            g_assert_nonnull(task_row_of(TASK_KIND_instance, *word));
    g_assert_null(task_row_of(TASK_KIND_instance, ""));
    g_assert_null(task_row_of(TASK_KIND_instance, "nix"));
    g_assert_null(task_row_of(TASK_KIND_port, "creating"));
}

int main(int argc, char **argv)
{
    g_autofree char *text = NULL;
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    g_assert_true(g_file_get_contents(argv[1], &text, NULL, NULL));
    arrows = g_strsplit(text, "\n", -1);
    g_autoptr(GHashTable) rules = add_arrows();
    g_test_add_data_func("/tasks/each-arrow-of-the-document", rules, test_all_rules);
    g_test_add_func("/tasks/one-outcome-for-everything#RCV-82", test_everything);
    g_test_add_func("/tasks/crashed-is-shut-off-with-an-alert#RCV-80", test_crashed);
    g_test_add_func("/tasks/what-keeps-off-and-is-refused#SAF-84", test_flags);
    g_test_add_func("/tasks/each-word-has-one-row#RCV-08", test_words);
    int failed = g_test_run();
    g_strfreev(arrows);
    return failed;
}

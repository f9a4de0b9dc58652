/* Live data for one query; see reports.h. */
#include "core/report/reports.h"

#include "core/config/faults.h"
#include "core/config/late.h"

struct reports {
    GHashTable *answers;   /* node uuid -> struct answer * */
    const char *last_node; /* that was looked up, with what was found; NULL: none */
    struct answer *last;
    struct faults_round *round; /* until all have answered */
    struct promise all;
    guint missing;
    bool abandoned;   /* nobody waits any more */
    guint references; /* the query, and each call under way */
};

struct answer {
    struct reports *reports;
    enum report_state state;
    struct node_report *report;
    char *refusal;      /* the error that it answered with */
    GHashTable *guests; /* instance -> const struct guest_report *, of it; made when first needed */
};

static void answer_free(gpointer data)
{
    struct answer *answer = data;

    g_clear_pointer(&answer->guests, g_hash_table_unref);
    node_report_free(answer->report);
    g_free(answer->refusal);
    g_free(answer);
}

static void reports_unref(struct reports *reports)
{
    if (--reports->references > 0)
        return;
    faults_round_free(reports->round);
    g_hash_table_unref(reports->answers);
    g_free(reports);
}

void reports_free(struct reports *reports)
{
    if (reports != NULL)
        reports_unref(reports);
}

/* Nothing but its silence is the silence of a node. */
static void take_refusal(struct answer *answer, const GError *error)
{
    if (env_no_answer(error) || fettle_error_is(error, KILLED))
        return;
    answer->state = REPORT_REFUSED;
    answer->refusal = g_strdup(error->message);
}

static void ask_cb(json_t *result, const GError *error, void *data)
{
    struct answer *answer = data;
    struct reports *reports = answer->reports;
    g_autoptr(GError) unread = NULL;

    answer->report = result == NULL ? NULL : node_report_parse(result, RECORD_LAX, &unread);
    if (answer->report != NULL) {
        answer->state = REPORT_ANSWERED;
        faults_round_heard(reports->round, answer->report);
    } else {
        take_refusal(answer, unread != NULL ? unread : error);
    }
    if (--reports->missing == 0 && !reports->abandoned)
        promise_complete(&reports->all);
    reports_unref(reports);
}

static void ask(const struct env *env, struct follow *follow, struct reports *reports,
                const char *node)
{
    const struct node *record = config_get(follow_config(follow), "node", node, NULL);
    struct answer *answer = g_new0(struct answer, 1);
    const struct rpc_call call = {.to_node = node,
                                  .to_role = ROLE_NODED,
                                  .method = "node_report",
                                  .args = late_known(),
                                  .stamp = follow_stamp(follow),
                                  .timeout_ms = LIMIT_REPORT_WAIT_MS};

    answer->reports = reports;
    answer->state = record != NULL && record->offline ? REPORT_OFFLINE : REPORT_SILENT;
    g_hash_table_insert(reports->answers, g_strdup(node), answer);
    if (answer->state == REPORT_OFFLINE) {
        json_decref(call.args);
        return;
    }
    reports->missing++;
    reports->references++;
    env->ops->call(env, &call, ask_cb, answer);
}

struct reports *reports_ask(const struct env *env, struct follow *follow, GHashTable *nodes)
{
    struct reports *reports = g_new0(struct reports, 1);
    GHashTableIter iter;
    gpointer node;

    reports->answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, answer_free);
    reports->references = 1;
    reports->round = faults_round_new(env);
    g_hash_table_iter_init(&iter, nodes);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        ask(env, follow, reports, node);
    if (reports->missing == 0 || promise_wait(&reports->all)) {
        faults_round_end(g_steal_pointer(&reports->round), follow_config(follow));
        return reports;
    }
    reports->abandoned = true;
    reports_unref(reports);
    return NULL;
}

/* Rows of one node mostly stand together. */
static struct answer *answer_of(const struct reports *reports, const char *node)
{
    struct reports *remembers = (struct reports *)reports;
    if (reports == NULL || node[0] == '\0')
        return NULL;
    if (reports->last_node == NULL || strcmp(reports->last_node, node) != 0) {
        remembers->last_node = NULL;
        remembers->last = NULL;
        g_hash_table_lookup_extended(reports->answers, node, (gpointer *)&remembers->last_node,
                                     (gpointer *)&remembers->last);
    }
    return reports->last;
}

const struct node_report *reports_find(const struct reports *reports, const char *node,
                                       enum report_state *ret_state)
{
    const struct answer *answer = answer_of(reports, node);

    *ret_state = answer == NULL ? REPORT_SILENT : answer->state;
    return answer == NULL ? NULL : answer->report;
}

const char *reports_refusal(const struct reports *reports, const char *node)
{
    const struct answer *answer = answer_of(reports, node);

    return answer == NULL ? NULL : answer->refusal;
}

static GHashTable *index_guests(const struct node_report *report)
{
    GHashTable *guests = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < report->guests->len; i++) {
        struct guest_report *guest = g_ptr_array_index(report->guests, i);

        if (!g_hash_table_contains(guests, guest->instance))
            g_hash_table_insert(guests, guest->instance, guest);
    }
    return guests;
}

const struct guest_report *reports_guest(const struct reports *reports, const char *node,
                                         const char *instance)
{
    struct answer *answer = answer_of(reports, node);

    if (answer == NULL || answer->report == NULL)
        return NULL;
    if (answer->guests == NULL)
        answer->guests = index_guests(answer->report);
    return g_hash_table_lookup(answer->guests, instance);
}

/* Live data for one query; see live.h. */
#include "core/report/live.h"

#include "core/config/faults.h"
#include "core/config/late.h"

struct live {
    GHashTable *answers;   /* node uuid -> struct live_answer * */
    const char *last_node; /* that was looked up, with what was found; NULL: none */
    struct live_answer *last;
    struct faults_round *round; /* until all have answered */
    struct promise all;
    guint missing;
    bool abandoned;   /* nobody waits any more */
    guint references; /* the query, and each call under way */
};

struct live_answer {
    struct live *live;
    enum live_state state;
    struct node_report *report;
    char *refusal;      /* the error that it answered with */
    GHashTable *guests; /* instance -> const struct guest_report *, of it; made when first needed */
};

static void answer_free(gpointer data)
{
    struct live_answer *answer = data;

    g_clear_pointer(&answer->guests, g_hash_table_unref);
    node_report_free(answer->report);
    g_free(answer->refusal);
    g_free(answer);
}

static void live_unref(struct live *live)
{
    if (--live->references > 0)
        return;
    faults_round_free(live->round);
    g_hash_table_unref(live->answers);
    g_free(live);
}

void live_free(struct live *live)
{
    if (live != NULL)
        live_unref(live);
}

/* Nothing but its silence is the silence of a node. */
static void take_refusal(struct live_answer *answer, const GError *error)
{
    if (env_no_answer(error) || fettle_error_is(error, KILLED))
        return;
    answer->state = LIVE_REFUSED;
    answer->refusal = g_strdup(error->message);
}

static void ask_cb(json_t *result, const GError *error, void *data)
{
    struct live_answer *answer = data;
    struct live *live = answer->live;
    g_autoptr(GError) unread = NULL;

    answer->report = result == NULL ? NULL : node_report_parse(result, RECORD_LAX, &unread);
    if (answer->report != NULL) {
        answer->state = LIVE_ANSWERED;
        faults_round_heard(live->round, answer->report);
    } else {
        take_refusal(answer, unread != NULL ? unread : error);
    }
    if (--live->missing == 0 && !live->abandoned)
        promise_complete(&live->all);
    live_unref(live);
}

static void ask(const struct env *env, struct follow *follow, struct live *live, const char *node)
{
    const struct node *record = config_get(follow_config(follow), "node", node, NULL);
    struct live_answer *answer = g_new0(struct live_answer, 1);
    const struct rpc_call call = {.to_node = node,
                                  .to_role = ROLE_NODED,
                                  .method = "node_report",
                                  .args = late_known(),
                                  .stamp = follow_stamp(follow),
                                  .timeout_ms = LIMIT_REPORT_WAIT_MS};

    answer->live = live;
    answer->state = record != NULL && record->offline ? LIVE_OFFLINE : LIVE_SILENT;
    g_hash_table_insert(live->answers, g_strdup(node), answer);
    if (answer->state == LIVE_OFFLINE) {
        json_decref(call.args);
        return;
    }
    live->missing++;
    live->references++;
    env->ops->call(env, &call, ask_cb, answer);
}

struct live *live_fetch(const struct env *env, struct follow *follow, GHashTable *nodes)
{
    struct live *live = g_new0(struct live, 1);
    GHashTableIter iter;
    gpointer node;

    live->answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, answer_free);
    live->references = 1;
    live->round = faults_round_new(env);
    g_hash_table_iter_init(&iter, nodes);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        ask(env, follow, live, node);
    if (live->missing == 0 || promise_wait(&live->all)) {
        faults_round_end(g_steal_pointer(&live->round), follow_config(follow));
        return live;
    }
    live->abandoned = true;
    live_unref(live);
    return NULL;
}

/* Rows of one node mostly stand together. */
static struct live_answer *answer_of(const struct live *live, const char *node)
{
    struct live *remembers = (struct live *)live;
    if (live == NULL || node[0] == '\0')
        return NULL;
    if (live->last_node == NULL || strcmp(live->last_node, node) != 0) {
        remembers->last_node = NULL;
        remembers->last = NULL;
        g_hash_table_lookup_extended(live->answers, node, (gpointer *)&remembers->last_node,
                                     (gpointer *)&remembers->last);
    }
    return live->last;
}

const struct node_report *live_report(const struct live *live, const char *node,
                                      enum live_state *ret_state)
{
    const struct live_answer *answer = answer_of(live, node);

    *ret_state = answer == NULL ? LIVE_SILENT : answer->state;
    return answer == NULL ? NULL : answer->report;
}

const char *live_refusal(const struct live *live, const char *node)
{
    const struct live_answer *answer = answer_of(live, node);

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

const struct guest_report *live_guest(const struct live *live, const char *node,
                                      const char *instance)
{
    struct live_answer *answer = answer_of(live, node);

    if (answer == NULL || answer->report == NULL)
        return NULL;
    if (answer->guests == NULL)
        answer->guests = index_guests(answer->report);
    return g_hash_table_lookup(answer->guests, instance);
}

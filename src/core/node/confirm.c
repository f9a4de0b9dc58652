/*
 * Questions to the master; see confirm.h.
 */
#include "core/node/confirm.h"

#define CONFIRM_TRIES_MS 10000
#define CONFIRM_PAUSE_MS 500

/* Another master has been told how things are here, without what this one has answered: it may not
 * know it (SAF-09). */
static bool another_was_told(const struct node_core *node, struct stamp asked)
{
    return stamp_compare(epoch_fence_stamp(node->fence), asked) != 0;
}

struct confirm_answers *confirm_ask(struct node_core *node, GPtrArray *items, GError **error)
{
    struct stamp stamp = epoch_fence_stamp(node->fence);
    if (stamp.epoch == 0) {
        fettle_set_error(error, TEMPORARY, "no master has announced itself to this node yet");
        return NULL;
    }
    struct confirm_args args = {.items = items};
    struct confirm_answers *answers =
        env_call_record(node->env, NODE_MASTER, ROLE_WCONFD, "confirm", &args, stamp, 0, 0, error);
    if (!answers)
        return NULL;
    if (another_was_told(node, stamp)) {
        fettle_set_error(error, TEMPORARY, "another master has announced itself meanwhile");
        confirm_answers_free(answers);
        return NULL;
    }
    if (answers->items->len != items->len) {
        fettle_set_error(error, PROTOCOL, "the master gave %u answers to %u questions",
                         answers->items->len, items->len);
        confirm_answers_free(answers);
        return NULL;
    }
    return answers;
}

bool confirm_superseded(const struct confirm_result *answer, guint64 generation)
{
    return answer->answer == CONFIRM_REFUSED &&
           (answer->removed || answer->generation > generation);
}

/* The only question; the answer's array keeps one element. */
static struct confirm_answers *confirm_ask_one(struct node_core *node,
                                               const struct confirm_item *item, GError **error)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_ptr_array_add(items, (void *)item);
    return confirm_ask(node, items, error);
}

/* Not confirmed. Only a higher generation makes it a refusal (SAF-04). */
static void confirm_refusal(const char *instance, guint64 generation, const char *what,
                            const struct confirm_result *answer, GError **error)
{
    if (answer->removed)
        fettle_set_error(error, REFUSED,
                         "generation %" G_GUINT64_FORMAT " of instance %s may not %s here: the "
                         "instance was removed",
                         generation, instance, what);
    else if (confirm_superseded(answer, generation))
        fettle_set_error(error, REFUSED,
                         "generation %" G_GUINT64_FORMAT " of instance %s may not %s here: "
                         "generation %" G_GUINT64_FORMAT " is on record",
                         generation, instance, what, answer->generation);
    else
        fettle_set_error(error, WRONG_STATE,
                         "generation %" G_GUINT64_FORMAT " of instance %s may not %s here: the "
                         "record (generation %" G_GUINT64_FORMAT ") does not say so",
                         generation, instance, what, answer->generation);
}

/* The answer if it is yes; NULL with the error. */
static struct confirm_answers *confirm_patiently(struct node_core *node,
                                                 const struct epoch_fence_op *op,
                                                 const struct confirm_item *item, GError **error)
{
    enum confirm_role role = item->role;
    const char *instance = item->instance;
    guint64 generation = item->generation;
    const char *what =
        role == CONFIRM_NEW_DISKS ? "have new disks" : enum_word(&confirm_role_words, (int)role);
    g_autoptr(GError) why = NULL;
    for (guint waited = 0;; waited += CONFIRM_PAUSE_MS) {
        g_clear_error(&why);
        struct confirm_answers *answers = confirm_ask_one(node, item, &why);
        if (answers) {
            const struct confirm_result *answer = answers->items->pdata[0];
            if (answer->answer == CONFIRM_CONFIRMED)
                return answers;
            confirm_refusal(instance, generation, what, answer, error);
            confirm_answers_free(answers);
            return NULL;
        }
        if (!fettle_error_is(why, KILLED) &&
            (waited >= CONFIRM_TRIES_MS || (op && epoch_fence_overtaken(op))))
            break;
        if (fettle_error_is(why, KILLED) || !env_sleep(node->env, CONFIRM_PAUSE_MS)) {
            node_killed(error);
            return NULL;
        }
    }
    fettle_set_error(error, TEMPORARY,
                     "the master did not confirm that generation %" G_GUINT64_FORMAT
                     " of instance %s may %s here (%s); nothing was changed, try again",
                     generation, instance, what, why->message);
    return NULL;
}

static bool confirmed(struct node_core *node, const struct epoch_fence_op *op,
                      const struct confirm_item *item, GError **error)
{
    struct confirm_answers *answers = confirm_patiently(node, op, item, error);
    if (!answers)
        return false;
    confirm_answers_free(answers);
    return true;
}

bool confirm_one(struct node_core *node, const struct epoch_fence_op *op, enum confirm_role role,
                 const char *instance, guint64 generation, const char *replica, GError **error)
{
    return confirmed(node, op,
                     &(struct confirm_item){role, (char *)instance, generation, (char *)replica, 0},
                     error);
}

bool confirm_point(struct node_core *node, const char *instance, guint64 generation,
                   const char *attachment, guint64 claim, GError **error)
{
    return confirmed(node, NULL,
                     &(struct confirm_item){CONFIRM_POINT, (char *)instance, generation,
                                            (char *)attachment, claim},
                     error);
}

bool confirm_export(struct node_core *node, const struct epoch_fence_op *op, const char *instance,
                    guint64 generation, const char *replica, enum replica_state *ret_state,
                    char **ret_holder, GError **error)
{
    const struct confirm_item item = {CONFIRM_EXPORT, (char *)instance, generation, (char *)replica,
                                      0};
    struct confirm_answers *answers = confirm_patiently(node, op, &item, error);
    if (!answers)
        return false;
    const struct confirm_result *answer = answers->items->pdata[0];
    int state = enum_parse(&replica_state_words, answer->replica_state);
    /* A state that is not known promises the most. */
    *ret_state = state >= 0 ? (enum replica_state)state : REPLICA_IN_SYNC;
    *ret_holder = g_strdup(answer->holder);
    confirm_answers_free(answers);
    return true;
}

enum replica_word confirm_replica_look(struct guest *guest)
{
    const char *replica = guest->record->target->replica;
    guint64 generation = guest->record->generation;
    g_autoptr(GError) error = NULL;
    const struct confirm_item item = {CONFIRM_MIRROR, guest->record->instance, generation,
                                      (char *)replica, 0};
    struct confirm_answers *answers = confirm_ask_one(guest->node, &item, &error);
    if (!answers)
        return REPLICA_WORD_NO_ANSWER;

    const struct confirm_result *answer = answers->items->pdata[0];
    enum replica_word word = REPLICA_WORD_NO_ANSWER;
    int state = enum_parse(&replica_state_words, answer->replica_state);
    if (confirm_superseded(answer, generation)) {
        word = REPLICA_WORD_REFUSED;
    } else if (answer->generation == generation && state >= 0) {
        guest->replica_state = (enum replica_state)state;
        guest->replica_sync = answer->sync;
        word = REPLICA_WORD_ACCEPTED;
    } else if (answer->generation == generation && answer->answer == CONFIRM_REFUSED) {
        word = REPLICA_WORD_GONE;
    }
    confirm_answers_free(answers);
    return word;
}

bool confirm_replica_kept(struct guest *guest)
{
    const struct guest_record *record = guest->record;
    guint64 generation = record->generation;
    const struct confirm_item item = {CONFIRM_MIRROR, record->instance, generation,
                                      record->target->replica, 0};
    struct confirm_answers *answers = confirm_ask_one(guest->node, &item, NULL);
    if (!answers)
        return false;
    const struct confirm_result *answer = answers->items->pdata[0];
    bool gone = answer->answer == CONFIRM_REFUSED && !*answer->replica_state;
    bool stale = enum_parse(&replica_state_words, answer->replica_state) == REPLICA_STALE;
    bool kept = answer->kept && answer->generation == generation &&
                record->generation == generation && (stale || gone);
    confirm_answers_free(answers);
    return kept;
}

/* The master has answered no: what does its record say? */
static enum replica_word replica_state_after_no(struct guest *guest, enum replica_state wanted)
{
    guint64 sync = guest->replica_sync;
    enum replica_state state = guest->replica_state;
    enum replica_word word = confirm_replica_look(guest);
    if (word != REPLICA_WORD_ACCEPTED || guest->replica_state == wanted)
        return word;
    if (guest->replica_sync == sync && guest->replica_state == state)
        return REPLICA_WORD_NO_ANSWER;
    return REPLICA_WORD_CHANGED;
}

static bool is_an_answer(const GError *error)
{
    return fettle_error_is(error, VERSION_CONFLICT) || fettle_error_is(error, UNKNOWN_ENTITY) ||
           fettle_error_is(error, WRONG_STATE) || fettle_error_is(error, WRONG_INPUT) ||
           fettle_error_is(error, UNSAFE);
}

enum replica_word confirm_replica_state(struct guest *guest, enum replica_state state,
                                        const char *why)
{
    struct node_core *node = guest->node;
    struct set_replica_state_args args = {.instance = guest->record->instance,
                                          .replica = guest->record->target->replica,
                                          .generation = guest->record->generation,
                                          .sync = guest->replica_sync,
                                          .state = state,
                                          .why = (char *)why};
    g_autoptr(GError) error = NULL;
    struct stamp asked = epoch_fence_stamp(node->fence);
    struct set_replica_state_result *result =
        env_call_record(node->env, NODE_MASTER, ROLE_WCONFD, "set_replica_state", &args, asked, 0,
                        TIMEOUT_QUICK_MS, &error);
    if (another_was_told(node, asked)) {
        set_replica_state_result_free(result);
        return REPLICA_WORD_NO_ANSWER;
    }
    if (result) {
        g_assert(guest->record->generation == args.generation); /* see guest_lock() */
        guest->replica_state = state;
        guest->replica_sync = result->sync;
        set_replica_state_result_free(result);
        return REPLICA_WORD_ACCEPTED;
    }
    if (fettle_error_is(error, REFUSED))
        return REPLICA_WORD_REFUSED;
    if (is_an_answer(error))
        return replica_state_after_no(guest, state);
    return REPLICA_WORD_NO_ANSWER;
}

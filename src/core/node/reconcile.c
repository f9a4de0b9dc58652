/*
 * What comes back from the dead asks first; see reconcile.h.
 */
#include "core/node/reconcile.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/disks.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/mirror_watch.h"
#include "core/node/replica.h"
#include "core/node/taps.h"

#define RETURN_INTERVAL_MS 5000
#define RETURN_ITEMS_PER_CALL 1024

/* One question. A refusal stays true for ever, so an answer counts whenever it comes, as long as
 * the generation that was asked about is still the one (question_still_stands). */
struct question {
    struct guest *guest;
    struct confirm_item *item;
};

static void question_free(void *data)
{
    struct question *question = data;
    confirm_item_free(question->item);
    g_free(question);
}

static void ask_about(GPtrArray *questions, struct guest *guest, enum confirm_role role,
                      guint64 generation, const char *replica)
{
    struct question *question = g_new0(struct question, 1);
    question->guest = guest;
    question->item = confirm_item_new();
    question->item->role = role;
    question->item->generation = generation;
    text_set(&question->item->instance, guest->record->instance);
    text_set(&question->item->replica, replica);
    g_ptr_array_add(questions, question);
}

/* A process, or images that its last generation left here, unless they are known to be over. */
static bool has_images(const struct guest *guest)
{
    const struct guest_record *record = guest->record;
    return guest->live || record->phase == PHASE_USED || record->phase == PHASE_STARTED ||
           record->phase == PHASE_STOPPED || (record->phase == PHASE_MIGRATED && !guest->outgoing);
}

/* The replica that the record may have made of its images; "": none. */
static const char *left_replica(const struct guest *guest)
{
    const struct guest_record *record = guest->record;
    return *record->left ? record->left : record->migration;
}

static void ask_about_guest(GPtrArray *questions, struct guest *guest)
{
    const struct guest_record *record = guest->record;
    if (record->generation > 0 &&
        has_images(guest)) /* a migration may have made them a replica's */
        ask_about(questions, guest, CONFIRM_RUN, record->generation, left_replica(guest));
    if (record->incoming)
        ask_about(questions, guest, CONFIRM_INCOMING, incoming_generation(guest),
                  record->incoming->migration);
    if (guest->live && record->target && !guest->watch && record->phase == PHASE_STARTED)
        ask_about(questions, guest, CONFIRM_MIRROR, record->generation, record->target->replica);
    if (*record->replica)
        ask_about(questions, guest, CONFIRM_EXPORT, record->replica_generation, record->replica);
    if (*record->made)
        ask_about(questions, guest, CONFIRM_NEW_DISKS, record->made_generation, record->made);
}

/* Current images are never set aside: only what a removed instance or another node's copy left. */
static bool images_are_over(const struct guest *guest, const struct confirm_result *answer)
{
    return answer->removed || (*answer->primary_node &&
                               strcmp(answer->primary_node, guest->node->env->node_uuid) != 0);
}

static bool save_or_log(struct guest *guest)
{
    g_autoptr(GError) error = NULL;
    if (guest_save(guest, &error))
        return true;
    if (!fettle_error_is(error, KILLED))
        log_warning("", "%s", error->message);
    return false;
}

static bool set_aside(struct guest *guest, const char *replica, guint64 generation)
{
    struct storage *storage = guest->node->storage;
    g_autoptr(GError) error = NULL;
    if (storage->ops->set_aside(storage, guest->record->instance, replica, generation, &error))
        return true;
    if (!task_killed())
        log_warning("", "images of instance %s could not be set aside: %s", guest->record->instance,
                    error->message);
    return false;
}

/* The generation is the committed one, in the history that the master speaks for (SAF-02). */
static bool apply_confirmed(struct guest *guest)
{
    guint64 history = epoch_fence_stamp(guest->node->fence).history;
    guest->adopted = guest->live;
    if (!guest->live || guest->record->history == history)
        return true;
    guest->record->history = history;
    return save_or_log(guest) || !task_killed();
}

/* The guest has moved away, and the replica of that name is on record: these images are its own. */
static bool images_are_a_replicas(const struct guest *guest, const struct confirm_item *item,
                                  const struct confirm_result *answer)
{
    return replica_is_left(guest, item->replica) && *answer->replica_state;
}

/* What has come of a superseded guest. Shared images belong to no node and stay (SAF-21). */
static const char *superseded_word(const struct guest *guest, bool was_live)
{
    const struct instance *spec = guest->record->spec;
    bool own = !spec || (spec->disk_template != TEMPLATE_SHAREDFILE &&
                         spec->disk_template != TEMPLATE_DISKLESS);
    if (!own)
        return was_live ? "guest ended" : "another generation is on record";
    return was_live ? "guest ended, images set aside" : "images set aside";
}

/* After a migration replica_open does it, with what the target needs to know; a failover whose job
 * has died may have nobody who opens it. */
static bool leave_to_replica(struct guest *guest, const char *replica)
{
    g_autoptr(GError) error = NULL;
    if (replica_take_left(guest, replica, &error))
        return save_or_log(guest) || !task_killed();
    if (!task_killed())
        log_warning("", "images of instance %s cannot become those of replica %s: %s",
                    guest->record->instance, replica, error->message);
    return !task_killed();
}

/* SAF-19: killed, exit seen, and only then are its images touched. */
static bool apply_run(struct guest *guest, const struct confirm_item *item,
                      const struct confirm_result *answer)
{
    g_autoptr(GError) error = NULL;
    if (answer->answer == CONFIRM_CONFIRMED)
        return apply_confirmed(guest);
    bool other = answer->other && (guest->live || item->generation > answer->generation);
    if (!confirm_superseded(answer, guest->record->generation) && !other)
        return true;
    bool was_live = guest->live;
    if (!outgoing_drop(guest))
        return false;
    if (was_live && !guest_kill(guest, &error)) {
        if (!task_killed())
            log_error("", "%s", error->message);
        return !task_killed();
    }
    guest->adopted = false;
    bool over = images_are_over(guest, answer);
    bool left = images_are_a_replicas(guest, item, answer);
    if (over && left && guest->record->phase == PHASE_STOPPED)
        return leave_to_replica(guest, item->replica);
    if (over && !left) {
        if (!set_aside(guest, "", guest->record->generation))
            return !task_killed();
        guest_move(guest, PHASE_SUPERSEDED, superseded_word(guest, was_live));
    } else if (was_live) {
        guest_move(guest, PHASE_STOPPED, "superseded");
    } else {
        return true;
    }
    guest->record->clean = false;
    return save_or_log(guest) || !task_killed();
}

static bool apply_mirror(struct guest *guest, const struct confirm_result *answer)
{
    struct guest_record *record = guest->record;
    int state = enum_parse(&replica_state_words, answer->replica_state);
    if (!guest->live || !guest->adopted || !record->target || guest->watch)
        return true;
    if (answer->generation != record->generation)
        return true;
    if (state >= 0) {
        guest->replica_state = (enum replica_state)state;
        guest->replica_sync = answer->sync;
    } else if (answer->answer == CONFIRM_REFUSED) {
        guest->replica_state = REPLICA_STALE; /* another replica stands on record by now */
    } else {
        return true;
    }
    const char *lost = NULL;
    if (guest->replica_state == REPLICA_STALE)
        lost = "it is on record as stale";
    else if (!record->attached)
        lost = "its mirror was never complete, or given up";
    mirror_watch_start(guest, lost);
    return true;
}

/* What was kept aside of this instance has served when this node holds a replica in sync again
 * (SAF-19). */
static bool clear_aside(struct guest *guest, const struct confirm_result *answer)
{
    const struct guest_record *record = guest->record;
    struct storage *storage = guest->node->storage;
    g_autoptr(GError) error = NULL;
    if (strcmp(answer->replica_state, enum_word(&replica_state_words, (int)REPLICA_IN_SYNC)) != 0 ||
        strcmp(guest->aside_cleared, record->replica) == 0)
        return true;
    if (storage->ops->remove_aside(storage, record->instance, &error))
        g_strlcpy(guest->aside_cleared, record->replica, sizeof(guest->aside_cleared));
    else if (!task_killed())
        log_warning("", "images kept aside of instance %s could not be removed: %s",
                    record->instance, error->message);
    return !task_killed();
}

static bool apply_export(struct guest *guest, const struct confirm_result *answer)
{
    struct guest_record *record = guest->record;
    struct storage *storage = guest->node->storage;
    g_autoptr(GError) error = NULL;
    if (answer->answer == CONFIRM_CONFIRMED)
        return clear_aside(guest, answer);
    if (record->exported || guest->export_live) {
        if (!storage->ops->export_close(storage, record->instance, record->replica, &error)) {
            if (!task_killed())
                log_warning("", "export of instance %s: %s", record->instance, error->message);
            return !task_killed();
        }
        log_info("", "export of instance %s closed: generation %" G_GUINT64_FORMAT " is superseded",
                 record->instance, record->replica_generation);
        guest->export_live = false;
        record->exported = false;
        if (!save_or_log(guest))
            return !task_killed();
    }
    if (*answer->replica_state || !images_are_over(guest, answer))
        return true;
    if (!set_aside(guest, record->replica, record->replica_generation))
        return !task_killed();
    text_set(&record->replica, "");
    record->replica_generation = 0;
    return save_or_log(guest) || !task_killed();
}

/* Nothing was ever written to them, and the mark under which they were made is gone: whatever the
 * record says instead, it is not about them. */
static bool apply_new_disks(struct guest *guest, const struct confirm_result *answer)
{
    g_autoptr(GError) error = NULL;
    if (answer->answer != CONFIRM_CONFIRMED && !disks_forget_made(guest, &error) && !task_killed())
        log_warning("", "new images of instance %s could not be removed: %s",
                    guest->record->instance, error->message);
    return !task_killed();
}

static bool question_still_stands(const struct question *question)
{
    const struct guest_record *record = question->guest->record;
    const struct confirm_item *item = question->item;
    switch (item->role) {
    case CONFIRM_RUN: /* what was noted meanwhile is asked about anew */
        return item->generation == record->generation &&
               strcmp(item->replica, left_replica(question->guest)) == 0;
    case CONFIRM_MIRROR:
        return item->generation == record->generation && record->target &&
               strcmp(item->replica, record->target->replica) == 0;
    case CONFIRM_EXPORT:
        return item->generation == record->replica_generation &&
               strcmp(item->replica, record->replica) == 0;
    case CONFIRM_INCOMING:
        return record->incoming && strcmp(item->replica, record->incoming->migration) == 0;
    case CONFIRM_NEW_DISKS:
        return item->generation == record->made_generation &&
               strcmp(item->replica, record->made) == 0;
    case CONFIRM_START: /* is asked by the start itself, or by the attaching or copying */
    case CONFIRM_ATTACH:
    case CONFIRM_POINT:
        break;
    }
    return false;
}

/* With the guest locked. False: the process was killed. */
static bool question_apply(const struct question *question, const struct confirm_result *answer)
{
    if (!question_still_stands(question))
        return true;
    switch (question->item->role) {
    case CONFIRM_RUN:
        return apply_run(question->guest, question->item, answer);
    case CONFIRM_MIRROR:
        return apply_mirror(question->guest, answer);
    case CONFIRM_EXPORT:
        return apply_export(question->guest, answer);
    case CONFIRM_INCOMING:
        return incoming_apply(question->guest, answer);
    case CONFIRM_NEW_DISKS:
        return apply_new_disks(question->guest, answer);
    case CONFIRM_START:
    case CONFIRM_ATTACH:
    case CONFIRM_POINT:
        break;
    }
    return true;
}

/* Asks questions[first..first+count) at once. NULL: no answer. */
static struct confirm_answers *questions_ask(struct node_core *node, const GPtrArray *questions,
                                             guint first, guint count, GError **error)
{
    g_autoptr(GPtrArray) items = g_ptr_array_sized_new(count);
    for (guint i = first; i < first + count; i++)
        g_ptr_array_add(items, ((struct question *)questions->pdata[i])->item);
    return confirm_ask(node, items, error);
}

/* All questions of one guest stand next to each other and are applied under one lock. A guest that
 * a procedure is busy with is left for the next round: one long stop must not delay all others. */
static bool answers_apply(const GPtrArray *questions, guint first,
                          const struct confirm_answers *answers)
{
    for (guint i = 0; i < answers->items->len;) {
        const struct question *head = questions->pdata[first + i];
        struct guest *guest = head->guest;
        bool current = !guest->procedure.locked;
        if (current && !guest_lock(guest, NULL, NULL))
            return false;
        bool alive = true;
        for (; i < answers->items->len; i++) {
            const struct question *question = questions->pdata[first + i];
            if (question->guest != guest)
                break;
            if (current && alive)
                alive = question_apply(question, answers->items->pdata[i]);
        }
        if (current)
            guest_unlock(guest);
        if (!alive)
            return false;
    }
    return true;
}

/* False: the process was killed. */
static bool return_round(struct node_core *node)
{
    g_autoptr(GPtrArray) questions = g_ptr_array_new_with_free_func(question_free);
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        ask_about_guest(questions, value);

    for (guint first = 0; first < questions->len; first += RETURN_ITEMS_PER_CALL) {
        g_autoptr(GError) error = NULL;
        guint count = MIN(RETURN_ITEMS_PER_CALL, questions->len - first);
        struct confirm_answers *answers = questions_ask(node, questions, first, count, &error);
        if (!answers)
            return !task_killed(); /* no answer: stay as you are */
        bool alive = answers_apply(questions, first, answers);
        confirm_answers_free(answers);
        if (!alive)
            return false;
    }
    return taps_sweep(node) && !task_killed();
}

static void return_run(void *data)
{
    struct node_core *node = data;
    /* A round at the interval, or when somebody asks for one. */
    while (!node->ended && return_round(node) &&
           env_pause(node->env, &node->pause, RETURN_INTERVAL_MS))
        ;
    node_release(node);
}

void reconcile_start(struct node_core *node)
{
    node_hold(node);
    task_spawn(node->env->tasks, return_run, node);
}

void reconcile_kick(struct node_core *node)
{
    env_pause_end(&node->pause);
}

bool reconcile_adopt(struct guest *guest, GError **error)
{
    if (!guest->live)
        return true;
    if (guest->adopted && guest->record->history == epoch_fence_stamp(guest->node->fence).history)
        return true;
    guest->adopted = false;
    g_autoptr(GPtrArray) questions = g_ptr_array_new_with_free_func(question_free);
    ask_about_guest(questions, guest);
    g_autoptr(GError) why = NULL;
    struct confirm_answers *answers =
        questions_ask(guest->node, questions, 0, questions->len, &why);
    if (!answers) {
        fettle_set_error(error, TEMPORARY,
                         "the master has not confirmed instance %s since the node daemon began "
                         "(%s); nothing was changed, try again",
                         guest->record->instance, why->message);
        return false;
    }
    for (guint i = 0; i < questions->len; i++)
        question_apply(questions->pdata[i], answers->items->pdata[i]);
    confirm_answers_free(answers);
    if (task_killed())
        return node_killed(error);
    if (guest->adopted)
        return true;
    fettle_set_error(error, REFUSED,
                     "generation %" G_GUINT64_FORMAT " of instance %s is superseded",
                     guest->record->generation, guest->record->instance);
    return false;
}

bool reconcile_renew(struct guest *guest, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (!guest->live || guest->record->history == epoch_fence_stamp(guest->node->fence).history ||
        reconcile_adopt(guest, &why) || !guest->live)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/*
 * confirm: may this generation run, start, export, mirror on the asking node (SAF-03, 04)? Answered
 * after a barrier begun after the question, from committed records, once the copies have those as
 * they have what a commit is answered for (SAF-07): a node acts on it, and the next master must
 * know what it acts on. Confirmed is what the record
 * says in every point. Everything else shows the record; the node takes it for a refusal only if it
 * shows a higher generation, or that the instance was removed.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/fault.h"
#include "core/config/restored.h"
#include "core/config/unheard.h"
#include "core/wconfd/wconf_private.h"

struct question {
    struct wconf *wconf;
    struct rpc_request *request;
    struct confirm_args *args;
    json_t *answers; /* that the copies lack something of; NULL: not known yet */
};

static bool replica_is_here(const struct confirm_item *item, const struct instance *instance,
                            const struct replica *replica, const char *node)
{
    return replica && !strcmp(instance->replica, item->replica) && !strcmp(replica->node, node);
}

/* New disks (SAF-22): of the next generation while they are being made, then as the record names
 * them. */
static bool disks_are_made(const struct config *config, const struct confirm_item *item,
                           const struct instance *instance, const struct replica *replica,
                           const char *node)
{
    if (item->generation > instance->generation)
        return item->generation == instance->generation + 1 &&
               fault_mark(config, instance, NULL) == TASK_RECREATING_DISKS;
    const struct disk *first = instance->disks->len ? instance->disks->pdata[0] : NULL;
    bool its_disks =
        first && !strcmp(first->uuid, item->replica) && !strcmp(instance->primary_node, node);
    return its_disks || replica_is_here(item, instance, replica, node);
}

/* On a person's word that the node is dead others take over what it held: nothing may begin there,
 * also if it has come back, until that word is taken back (SAF-10). */
static bool may_start(const struct config *config, const struct instance *instance,
                      const char *uuid)
{
    const struct node *node = config_get(config, "node", uuid, NULL);
    return !strcmp(instance->holder, uuid) && node && !node->offline;
}

/* A volume that this very guest may open: the attachment stands in place of a replica (SAF-57). Not
 * one that is being detached: whoever does that may have heard already that it is not there. */
static bool is_attached(const struct config *config, const struct instance *instance,
                        const char *uuid)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance->uuid);
    for (guint i = 0; i < volumes->len; i++) {
        const struct attachment *attachment = attachment_of(volumes->pdata[i]);
        if (!strcmp(attachment->uuid, uuid))
            return attachment->state == ATTACHMENT_ATTACHING ||
                   attachment->state == ATTACHMENT_ATTACHED;
    }
    return false;
}

/* A row reads that volume under that claim (SAF-59). */
static bool is_copied(const struct config *config, const struct confirm_item *item)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, item->instance);
    bool found = false;
    for (guint i = 0; i < volumes->len; i++) {
        const struct volume *volume = volumes->pdata[i];
        g_autoptr(GPtrArray) rows = config_held_work(config, RESOURCE_VOLUME, volume->uuid);
        for (guint k = 0; k < rows->len && !strcmp(attachment_of(volume)->uuid, item->replica); k++)
            found = found || ((const struct worker *)rows->pdata[k])->claim == item->claim;
    }
    return found;
}

static bool item_confirmed(const struct config *config, const struct confirm_item *item,
                           const struct instance *instance, const struct replica *replica,
                           const char *node)
{
    /* The migration stands in place of a replica, and the generation is the one that it leads to.
     */
    if (item->role == CONFIRM_INCOMING)
        return item->generation == instance->generation + 1 && invariants_migrating(instance) &&
               !strcmp(instance->migration, item->replica) &&
               !strcmp(instance->migration_node, node);
    if (item->role == CONFIRM_NEW_DISKS)
        return disks_are_made(config, item, instance, replica, node);
    if (instance->generation != item->generation)
        return false;
    if (item->role == CONFIRM_ATTACH)
        return may_start(config, instance, node) && is_attached(config, instance, item->replica);
    if (item->role == CONFIRM_POINT)
        return !strcmp(instance->holder, node) && is_copied(config, item);
    switch (item->role) {
    case CONFIRM_RUN:
        return !strcmp(instance->holder, node);
    case CONFIRM_START:
        return may_start(config, instance, node);
    case CONFIRM_MIRROR:
        return !strcmp(instance->holder, node) && replica &&
               !strcmp(instance->replica, item->replica);
    case CONFIRM_EXPORT:
        return replica_is_here(item, instance, replica, node);
    case CONFIRM_INCOMING:
    case CONFIRM_NEW_DISKS:
    case CONFIRM_ATTACH:
    case CONFIRM_POINT:
        break;
    }
    return false;
}

static struct confirm_result *answer_item(const struct config *config,
                                          const struct confirm_item *item, const char *node)
{
    struct confirm_result *result = confirm_result_new();
    const struct instance *instance = config_get(config, "instance", item->instance, NULL);
    const struct removed *removed = config_get(config, "removed", item->instance, NULL);
    result->answer = CONFIRM_REFUSED;
    if (!instance) {
        result->removed = removed != NULL;
        result->generation = removed ? removed->generation : 0;
        return result;
    }
    const char *uuid = *item->replica ? item->replica : instance->replica;
    const struct replica *replica = config_get(config, "replica", uuid, NULL);
    if (replica && strcmp(replica->instance, instance->uuid) != 0)
        replica = NULL;
    result->answer =
        item_confirmed(config, item, instance, replica, node) ? CONFIRM_CONFIRMED : CONFIRM_REFUSED;
    result->generation = instance->generation;
    bool given_again = item->generation == instance->generation ||
                       (item->generation > instance->generation && instance_is_stated(instance));
    result->other = item->role == CONFIRM_RUN && given_again &&
                    strcmp(instance->holder, node) != 0 && !restored_brake(config);
    text_set(&result->primary_node, instance->primary_node);
    if (item->role == CONFIRM_EXPORT && result->answer == CONFIRM_CONFIRMED)
        text_set(&result->holder, instance->holder);
    if (replica) {
        text_set(&result->replica_state, enum_word(&replica_state_words, (int)replica->state));
        result->sync = replica->sync;
    }
    return result;
}

/* The newest change that an answer rests on; 0: none is known. */
static guint64 rests_on(const struct config *config, const struct confirm_item *item,
                        const char *node)
{
    const struct instance *instance = config_get(config, "instance", item->instance, NULL);
    const char *on_record = instance ? instance->replica : "";
    const char *replica = *item->replica ? item->replica : on_record;
    guint64 newest = wconf_newest_change(config, item->instance, replica, node);
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, item->instance);
    bool of_volumes = item->role == CONFIRM_ATTACH || item->role == CONFIRM_POINT;
    if (item->role == CONFIRM_POINT) /* the serial that has made the row its owner's */
        newest = MAX(newest, MIN(item->claim, config_serial(config)));
    for (guint i = 0; i < volumes->len && of_volumes; i++) {
        guint64 version = 0;
        config_get(config, "volume", ((const struct volume *)volumes->pdata[i])->uuid, &version);
        newest = MAX(newest, version);
    }
    return newest;
}

static void free_result(void *data)
{
    confirm_result_free(data);
}

static json_t *answer_items(const struct wconf *wconf, const struct confirm_args *args,
                            const char *node, guint64 *ret_serial)
{
    const struct config *config = wconf->committed;
    record_autoptr(confirm_answers) answers = confirm_answers_new();
    g_ptr_array_set_free_func(answers->items, free_result);
    *ret_serial = 0;
    for (guint i = 0; i < args->items->len; i++) {
        const struct confirm_item *item = args->items->pdata[i];
        struct confirm_result *result = answer_item(config, item, node);
        guint64 serial = rests_on(config, item, node);
        result->kept = wconf_followers_keep(wconf, serial);
        g_ptr_array_add(answers->items, result);
        *ret_serial = MAX(*ret_serial, serial);
    }
    return confirm_answers_to_json(answers);
}

static void question_free(struct question *question)
{
    json_decref(question->answers);
    confirm_args_free(question->args);
    g_free(question);
}

static void answer_copied(void *data)
{
    struct question *question = data;
    if (question->wconf->down)
        rpc_fail(question->request, question->wconf->down);
    else
        rpc_answer(question->request, g_steal_pointer(&question->answers));
    question_free(question);
}

static void answer_question(struct wconf *wconf, void *data)
{
    struct question *question = data;
    guint64 serial = 0;
    if (!wconf->down)
        question->answers =
            answer_items(wconf, question->args, question->request->from_node, &serial);
    /* Hardly ever anything but what all have long had; that does not queue behind what is new. */
    if (wconf->down || wconf_followers_have(wconf, serial))
        answer_copied(question);
    else
        wconf_followers_wait(wconf, serial, answer_copied, question);
}

void wconf_handle_confirm(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct confirm_args *args = rpc_request_args(request, &confirm_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    struct question *question = g_new(struct question, 1);
    *question = (struct question){wconf, request, args, NULL};
    wconf_barrier(wconf, answer_question, question);
}

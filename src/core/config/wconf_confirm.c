/*
 * confirm: may this generation run, start, export, mirror on the asking node (SAF-03, 04)? Answered
 * after a barrier begun after the question, from committed records. Confirmed is what the record
 * says in every point. Everything else shows the record; the node takes it for a refusal only if it
 * shows a higher generation, or that the instance was removed.
 */
#include <string.h>

#include "core/config/wconf_private.h"

struct question {
    struct rpc_request *request;
    struct confirm_args *args;
};

static void set_text(char **member, const char *text)
{
    g_free(*member);
    *member = g_strdup(text);
}

static bool replica_is_here(const struct confirm_item *item, const struct instance *instance,
                            const struct replica *replica, const char *node)
{
    return replica && !strcmp(instance->replica, item->replica) && !strcmp(replica->node, node);
}

/* New disks (SAF-22): of the next generation while they are being made, then as the record names
 * them. */
static bool disks_are_made(const struct confirm_item *item, const struct instance *instance,
                           const struct replica *replica, const char *node)
{
    if (item->generation > instance->generation)
        return item->generation == instance->generation + 1 &&
               instance->task_state == TASK_RECREATING_DISKS;
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
        return disks_are_made(item, instance, replica, node);
    if (instance->generation != item->generation)
        return false;
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
    set_text(&result->primary_node, instance->primary_node);
    if (replica) {
        set_text(&result->replica_state, enum_word(&replica_state_words, (int)replica->state));
        result->sync = replica->sync;
    }
    return result;
}

static void free_result(void *data)
{
    confirm_result_free(data);
}

static void answer_question(struct wconf *wconf, void *data)
{
    struct question *question = data;
    if (wconf->down) {
        rpc_fail(question->request, wconf->down);
    } else {
        record_autoptr(confirm_answers) answers = confirm_answers_new();
        g_ptr_array_set_free_func(answers->items, free_result);
        for (guint i = 0; i < question->args->items->len; i++)
            g_ptr_array_add(answers->items,
                            answer_item(wconf->committed, question->args->items->pdata[i],
                                        question->request->from_node));
        rpc_answer(question->request, confirm_answers_to_json(answers));
    }
    confirm_args_free(question->args);
    g_free(question);
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
    *question = (struct question){request, args};
    wconf_barrier(wconf, answer_question, question);
}

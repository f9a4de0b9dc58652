/*
 * A guest that has left: the master gets to know, however often it must be told; see outgoing.h.
 */
#include "core/node/migration/outgoing_private.h"

#include "base/limits.h"
#include "core/node/confirm.h"

/* The master has another generation on record: did the guest get where it was sent? */
static void told_superseded(struct outgoing *out)
{
    struct guest *guest = out->guest;
    record_autoptr(confirm_item) item = confirm_item_new();
    item->role = CONFIRM_RUN;
    text_set(&item->instance, guest->record->instance);
    item->generation = out->generation;
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_ptr_array_add(items, item);
    struct confirm_answers *answers = confirm_ask(guest->node, items, NULL);
    if (!answers)
        return; /* asked again */
    const struct confirm_result *answer = answers->items->pdata[0];
    bool there = strcmp(answer->primary_node, out->target_node) == 0;
    if (!outgoing_is_over(out) && confirm_superseded(answer, out->generation))
        outgoing_note_end(out, there ? MIGRATION_MOVED : MIGRATION_FAILED,
                          there ? NULL : "another generation is on record");
    confirm_answers_free(answers);
}

/* The migration is not on record any more and never will be: the images here are the current ones.
 */
static void told_no(struct outgoing *out, const char *why)
{
    struct guest *guest = out->guest;
    guest->record->clean = false;
    guest_move(guest, PHASE_STOPPED, "its migration is not on record any more");
    outgoing_note_end(out, MIGRATION_FAILED, why);
}

static bool is_no(const GError *error)
{
    return fettle_error_is(error, WRONG_STATE) || fettle_error_is(error, VERSION_CONFLICT) ||
           fettle_error_is(error, WRONG_INPUT) || fettle_error_is(error, UNSAFE) ||
           fettle_error_is(error, UNKNOWN_ENTITY);
}

static void tell_once(struct outgoing *out)
{
    struct guest *guest = out->guest;
    struct node_core *node = guest->node;
    struct set_migrated_args args = {.instance = guest->record->instance,
                                     .generation = out->generation,
                                     .migration = out->migration,
                                     .clean = guest->record->clean};
    g_autoptr(GError) error = NULL;
    struct commit_result *result =
        env_call_record(node->env, NODE_MASTER, ROLE_WCONFD, "set_migrated", &args,
                        epoch_fence_stamp(node->fence), 0, TIMEOUT_QUICK_MS, &error);
    if (outgoing_is_over(out)) {
        commit_result_free(result);
        return;
    }
    if (result)
        outgoing_note_end(out, MIGRATION_MOVED, NULL);
    else if (fettle_error_is(error, REFUSED))
        told_superseded(out);
    else if (is_no(error))
        told_no(out, error->message);
    commit_result_free(result);
}

void outgoing_tell(struct outgoing *out)
{
    struct guest *guest = out->guest;
    while (!outgoing_is_over(out)) {
        tell_once(out);
        if (guest->record->migrating != MIGRATION_SWITCHING)
            break;
        if (!env_sleep(guest->node->env, MOVE_RETRY_MS))
            return;
    }
    if (!task_killed() && !out->dropped)
        outgoing_save(guest);
}

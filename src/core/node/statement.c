/* See statement.h. */
#include "core/node/statement.h"

#include "core/node/guest.h"

/* Without a word of a master since this process began: what the mirror looks like, but for one that
 * was noted as over. One that lasted until the host or the guest died was whole if it ever was. */
static enum replica_state looks_like(const struct guest *guest)
{
    bool whole = guest->note.attached && (!guest->live || guest->last_mirror.state == MIRROR_READY);
    return whole ? REPLICA_IN_SYNC : REPLICA_SYNCING;
}

static void add_mirror(const struct guest *guest, struct guest_statement *line)
{
    const struct guest_record *record = guest->record;
    if (!record->target)
        return;
    text_set(&line->replica, record->target->replica);
    line->told = guest->replica_sync > 0;
    line->state = line->told ? guest->replica_state : looks_like(guest);
    line->sync = line->told ? guest->replica_sync : record->sync;
}

/* Of what was closed in order the record of the replica tells all, unless it was not in sync; of a
 * guest that is handed over its migration tells, until a master has answered. */
static bool has_word(const struct guest *guest)
{
    const struct guest_record *record = guest->record;
    return guest->live || record->phase == PHASE_USED || record->phase == PHASE_STARTED ||
           (record->phase == PHASE_STOPPED && record->ended_alone) ||
           (record->phase == PHASE_MIGRATED && !guest->outgoing);
}

struct announce_result *statement_make(const struct node_core *node)
{
    struct announce_result *result = announce_result_new();
    GHashTableIter iter;
    void *value;
    result->states = true;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct guest *guest = value;
        const struct guest_record *record = guest->record;
        if (record->generation == 0 || !has_word(guest))
            continue;
        struct guest_statement *line = guest_statement_new();
        text_set(&line->instance, record->instance);
        line->generation = record->generation;
        line->runs = guest->live;
        if (record->phase == PHASE_MIGRATED && !guest->live)
            text_set(&line->gone_to, record->migration_node);
        add_mirror(guest, line);
        g_ptr_array_add(result->guests, line);
    }
    return result;
}

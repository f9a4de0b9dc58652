/*
 * A word that is lost with its master (SAF-09): the master of the engine sqlite accepts that a
 * replica is stale while none of its copies is in reach, and is lost right after. By a person's
 * word its place is taken by one that has everything but that commit. Here that is a new process on
 * the same node, which makes no difference to anybody else. Until a word is to be lost the copies
 * are in reach, and nodes are told that what is confirmed is kept.
 */
#include "sim_private.h"

#include <string.h>

#include "core/config/unheard.h"
#include "core/locks/locks_journal.h"
#include "proto/change.h"

#define LOSE_WITHIN_MS 60 /* its holder has the answer by then, or not yet */

void sim_lose_word(struct sim *sim)
{
    sim->loses_word = true;
}

guint sim_lost_words(const struct sim *sim)
{
    return sim->lost_words;
}

/* A question to the master, from its arrival to its answer. */
struct question {
    struct sim *sim;
    void (*answer)(struct rpc_request *request, json_t *result, const GError *error);
    void *carrier;
};

static void answer(struct rpc_request *request, json_t *result, const GError *error)
{
    struct question *question = request->carrier;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(result, "items"), i, item)
        if (!question->sim->loses_word)
            json_object_set_new(item, "kept", json_true());
    request->answer = question->answer;
    request->carrier = question->carrier;
    g_hash_table_remove(question->sim->questions, question);
    request->answer(request, result, error);
}

void sim_note_question(struct sim *sim, struct rpc_request *request)
{
    if (strcmp(request->name, "confirm") != 0)
        return;
    struct question *question = g_new(struct question, 1);
    *question = (struct question){sim, request->answer, request->carrier};
    g_hash_table_add(sim->questions, question);
    request->answer = answer;
    request->carrier = question;
}

/* Before the change is applied. */
void sim_lost_word_sees(struct sim *sim, const struct change *change)
{
    const struct replica *before = config_get(sim->mirror, "replica", change->key, NULL);
    record_autoptr(replica) after =
        change->op == CHANGE_PUT ? replica_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (!sim->loses_word || before == NULL || after == NULL || before->state != REPLICA_IN_SYNC ||
        after->state != REPLICA_STALE)
        return;
    g_clear_pointer(&sim->word_before, replica_free);
    sim->word_before = replica_copy(before);
    sim->word_serial = change->version;
    sim->word_due_ms = sim_now_ms(sim) + sim_random(sim, LOSE_WITHIN_MS);
    config_get(sim->mirror, "replica", change->key, &sim->word_version);
}

/* What a take-over commits of the nodes. */
static GPtrArray *nobody_was_heard(const struct sim *sim)
{
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < sim->nodes->len; i++) {
        const struct sim_node *node = sim->nodes->pdata[i];
        const struct node *record = config_get(sim->mirror, "node", node->uuid, NULL);
        json_t *object = unheard_node(sim->mirror, record, (guint64)(sim_now_ms(sim) / 1000) + 1);
        g_ptr_array_add(changes, config_put(sim->mirror, "node", node->uuid, object));
    }
    return changes;
}

static void end_master(struct sim *sim, struct sim_node *master)
{
    const struct env *env = master->processes[SIM_WCONFD].env;
    env->ops->file_remove(env, FILE_RUN, JOURNAL_FILE, NULL); /* the next epoch is another one */
    for (enum sim_role role = SIM_WCONFD; role <= SIM_WATCHER; role++)
        sim_process_end(sim, master, role);
    sim_jobs_end(sim, master);
}

/* If nothing was committed since. */
static void lose(struct sim *sim)
{
    struct sim_node *master = sim->nodes->pdata[0];
    g_autoptr(GError) error = NULL;
    if (fake_engine_serial(sim->engine) != sim->word_serial ||
        master->processes[SIM_WCONFD].env == NULL)
        return;
    sim_log(sim, "fate: the master is lost with its last word, that replica %.8s is stale",
            sim->word_before->uuid);
    sim->loses_word = false;
    sim->lost_words++;
    end_master(sim, master);
    g_autoptr(GPtrArray) changes = nobody_was_heard(sim);
    fake_engine_lose(sim->engine, sim->word_serial - 1, changes);
    g_autoptr(GPtrArray) back = change_list_new();
    g_ptr_array_add(back, change_make(CHANGE_PUT, "replica", sim->word_before->uuid,
                                      sim->word_version, replica_to_json(sim->word_before)));
    config_apply(sim->mirror, back->pdata[0], &error);
    g_assert_no_error(error);
    for (enum sim_role role = SIM_WCONFD; role <= SIM_WATCHER; role++)
        sim_start_again_later(sim, master, role);
}

void sim_lost_word_passes(struct sim *sim)
{
    if (sim->word_before == NULL || sim_now_ms(sim) < sim->word_due_ms)
        return;
    lose(sim);
    g_clear_pointer(&sim->word_before, replica_free);
}

/* Until the node of its guest has told, nobody knows of any replica what the lost word said. */
bool sim_is_unheard(const struct sim *sim, const struct replica *replica)
{
    const struct instance *instance = config_get(sim->mirror, "instance", replica->instance, NULL);
    const struct node *node =
        instance != NULL ? config_get(sim->mirror, "node", instance->primary_node, NULL) : NULL;
    return node != NULL && node->unheard_since > 0;
}

/* What a person's job has submitted, as the evacuation of a node: all that the watcher submits has
 * a request id. */
static bool is_of_a_persons_job(const struct sim *sim, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(sim->mirror, "job", key, NULL);
    return job != NULL && *job->request_id == '\0';
}

/* A person may promote it all the same, and is told; nothing else may. */
void sim_check_unheard(struct sim *sim, const struct instance *before, const struct instance *after,
                       const struct replica *replica)
{
    bool person = is_of_a_persons_job(sim, after->task_owner);
    if (replica == NULL || unheard_since(sim->mirror, before, replica) == 0)
        return;
    for (guint i = 0; i < sim->accepted->len; i++)
        person = person || g_array_index(sim->accepted, guint64, i) == after->task_owner;
    if (!person)
        sim_find(sim, "%s was promoted by itself although its node could not tell what it knew",
                 after->name);
    else if (!fake_hosts_whole(sim->hosts, replica->node, before->uuid, replica->uuid))
        fake_hosts_give_up(sim->hosts, before->uuid, LIMIT_DISKS);
}

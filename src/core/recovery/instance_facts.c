/* See instance_facts.h. */
#include "core/recovery/instance_facts.h"

#include "base/text.h"
#include "core/report/report_lookup.h"

#include <string.h>

/* --- hosts --- */

static void add_host(GPtrArray *hosts, const char *node)
{
    if (*node && !g_ptr_array_find_with_equal_func(hosts, node, g_str_equal, NULL))
        g_ptr_array_add(hosts, (char *)node);
}

GPtrArray *recovery_hosts(const struct instance *instance, const struct task_row *task)
{
    bool all = !task || task->asked != TASK_AT_HOLDER;
    GPtrArray *hosts = g_ptr_array_new();
    add_host(hosts, instance->primary_node);
    add_host(hosts, instance->holder);
    add_host(hosts, all ? instance->secondary_node : "");
    add_host(hosts, all ? instance->migration_node : "");
    return hosts;
}

bool recovery_host_dead(const struct config *config, const char *node)
{
    const struct node *record = config_get(config, "node", node, NULL);
    return !record || record->offline;
}

/* --- processes --- */

struct processes {
    guint running;
    const char *runs_on;    /* the first of those */
    const char *at;         /* of what does not run: where, the primary first … */
    enum guest_state state; /* … and what it is */
    bool primary_seen;
    char *missing; /* a host that could not be asked */
};

static void add_process(struct processes *all, const char *node, enum guest_state state)
{
    if (state == GUEST_ABSENT)
        return;
    if (state == GUEST_RUNNING) {
        all->running++;
        all->runs_on = all->runs_on ? all->runs_on : node;
    } else if (!all->at || (all->state == GUEST_INCOMING && state != GUEST_INCOMING)) {
        all->at = node;
        all->state = state;
    }
}

static void add_evidence(GPtrArray *evidence, const struct config *config, const char *node,
                         const struct sight *sight)
{
    g_autoptr(GString) line = g_string_new(config_node_name(config, node));
    g_string_append_printf(line, ": %s", enum_word(&guest_state_words, (int)sight->state));
    if (sight->state != GUEST_ABSENT)
        g_string_append_printf(line, ", generation %" G_GUINT64_FORMAT, sight->generation);
    if (*sight->crashed)
        g_string_append_printf(line, ", went by itself: %s", sight->crashed);
    if (sight->io_stop != IO_STOP_NONE)
        g_string_append_printf(line, ", stands still: %s",
                               enum_word(&io_stop_words, (int)sight->io_stop));
    for (guint i = 0; i < sight->images->len; i++) {
        const struct image_set *set = sight->images->pdata[i];
        g_autofree char *disks = text_bits(set->disks);
        g_string_append_printf(line, "; images of %s: disks %s",
                               *set->replica ? set->replica : "its own", disks);
    }
    g_ptr_array_add(evidence, g_strdup(line->str));
}

/* A process of another generation is ended, or taken over, by its own node and the master. */
static char *why_not_ours(const struct instance *instance, const struct sight *sight)
{
    if (sight->state == GUEST_ABSENT || sight->state == GUEST_INCOMING ||
        sight->generation == instance->generation)
        return NULL;
    return g_strdup_printf("has a process of generation %" G_GUINT64_FORMAT
                           ", and %" G_GUINT64_FORMAT " is on record",
                           sight->generation, instance->generation);
}

/* Why what a host shows cannot be used; NULL: it can. */
static char *why_blind(const struct recovery_view *view, const struct instance *instance,
                       const char *node, const struct sight *sight)
{
    if (sight)
        return *sight->silent ? g_strdup_printf("cannot tell: %s", sight->silent)
                              : why_not_ours(instance, sight);
    const char *refusal = sights_refusal(view->sights, node);
    return g_strdup(refusal ? refusal : "gave no answer");
}

static enum look_end add_host_seen(const struct recovery_view *view,
                                   const struct instance *instance, const char *node,
                                   struct processes *all, GPtrArray *evidence, char **ret_why)
{
    const char *name = config_node_name(view->config, node);
    bool primary = strcmp(node, instance->primary_node) == 0;
    if (recovery_host_dead(view->config, node)) {
        g_ptr_array_add(evidence, g_strdup_printf("%s is on record as dead", name));
        if (primary && instance->disks->len > 0)
            all->missing = g_strdup_printf("%s is dead, and what it has of it is not known", name);
        all->primary_seen |= primary;
        return LOOK_SEEN;
    }
    const struct sight *sight = sights_of(view->sights, node, instance->uuid);
    if (sight && *sight->busy) {
        *ret_why = g_strdup_printf("%s: %s", name, sight->busy);
        return LOOK_BUSY;
    }
    if (sights_older(view->sights, node)) {
        *ret_why = g_strdup_printf("%s: its node daemon is of a version before, and cannot be "
                                   "asked; upgrade it",
                                   name);
        return LOOK_BUSY;
    }
    g_autofree char *blind = why_blind(view, instance, node, sight);
    if (blind) {
        g_ptr_array_add(evidence, g_strdup_printf("%s %s", name, blind));
        g_free(all->missing);
        all->missing = g_strdup_printf("%s %s", name, blind);
        return LOOK_SEEN;
    }
    all->primary_seen |= primary;
    add_evidence(evidence, view->config, node, sight);
    add_process(all, node, sight->state);
    return LOOK_SEEN;
}

/* Also what is told from memory makes a guest. */
static void add_strangers(const struct recovery_view *view, const struct instance *instance,
                          const GPtrArray *hosts, struct processes *all, GPtrArray *evidence)
{
    const GPtrArray *reports = reports_list(view->reports);
    for (guint i = 0; reports && i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        if (g_ptr_array_find_with_equal_func((GPtrArray *)hosts, report->node, g_str_equal, NULL))
            continue;
        const struct guest_report *guest =
            reports_guest(view->reports, report->node, instance->uuid);
        if (!guest || guest->state == GUEST_ABSENT)
            continue;
        g_ptr_array_add(evidence,
                        g_strdup_printf("%s: %s, generation %" G_GUINT64_FORMAT ", where it has no "
                                        "place",
                                        config_node_name(view->config, report->node),
                                        enum_word(&guest_state_words, (int)guest->state),
                                        guest->generation));
        add_process(all, report->node, guest->state);
    }
}

static guint place_of(const struct instance *instance, const char *node)
{
    if (strcmp(node, instance->primary_node) == 0)
        return TASK_FACT_SOURCE;
    return strcmp(node, instance->migration_node) == 0 ? TASK_FACT_TARGET : TASK_FACT_ELSEWHERE;
}

static guint guest_of(enum guest_state state)
{
    return state == GUEST_PREPARED   ? TASK_FACT_PREPARED
           : state == GUEST_PAUSED   ? TASK_FACT_PAUSED
           : state == GUEST_INCOMING ? TASK_FACT_INCOMING
                                     : TASK_FACT_ENDED;
}

/* --- disks --- */

static guint64 all_disks(const struct instance *instance)
{
    return (G_GUINT64_CONSTANT(1) << instance->disks->len) - 1;
}

/* Under its own name. Shared ones are in no set. */
static guint64 own_disks(const struct sight *sight)
{
    guint64 there = 0;
    for (guint i = 0; sight && i < sight->disks->len; i++)
        if (((const struct sight_disk *)sight->disks->pdata[i])->bytes > 0)
            there |= G_GUINT64_CONSTANT(1) << i;
    for (guint i = 0; sight && i < sight->images->len; i++) {
        const struct image_set *set = sight->images->pdata[i];
        there |= *set->replica ? 0 : set->disks;
    }
    return there;
}

/* All under one name, whichever that is: those of a failover that died wait to be promoted. Parts
 * of several sets make no disk. */
static bool one_set_is_whole(const struct instance *instance, const struct sight *sight)
{
    guint64 all = all_disks(instance);
    bool whole = (own_disks(sight) & all) == all;
    for (guint i = 0; sight && i < sight->images->len; i++)
        whole |= (((const struct image_set *)sight->images->pdata[i])->disks & all) == all;
    return whole;
}

static bool any_disk(const struct sight *sight)
{
    bool any = own_disks(sight) != 0;
    for (guint i = 0; sight && i < sight->images->len; i++)
        any |= ((const struct image_set *)sight->images->pdata[i])->disks != 0;
    return any;
}

static bool have_their_size(const struct instance *instance, const struct sight *sight)
{
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        const struct sight_disk *seen = i < sight->disks->len ? sight->disks->pdata[i] : NULL;
        if (!seen || seen->bytes / MIB(1) < disk->size)
            return false;
    }
    return true;
}

/* Something of it on any host. */
static bool any_left(const struct recovery_view *view, const struct instance *instance,
                     const GPtrArray *hosts)
{
    for (guint i = 0; i < hosts->len; i++)
        if (any_disk(sights_of(view->sights, hosts->pdata[i], instance->uuid)))
            return true;
    return false;
}

static guint disks_of(const struct recovery_view *view, const struct instance *instance,
                      const GPtrArray *hosts)
{
    const struct sight *sight = sights_of(view->sights, instance->primary_node, instance->uuid);
    if (instance->task_state == TASK_REINSTALLING)
        return *instance->holder ? TASK_FACT_WHOLE : TASK_FACT_PARTIAL;
    if (!one_set_is_whole(instance, sight))
        return any_left(view, instance, hosts) ? TASK_FACT_PARTIAL : TASK_FACT_GONE;
    return instance->task_state != TASK_GROWING_DISK || have_their_size(instance, sight)
               ? TASK_FACT_WHOLE
               : TASK_FACT_PARTIAL;
}

/* Without a process it is where it can be started from. */
static void without_process(const struct recovery_view *view, const struct instance *instance,
                            guint disks, struct task_facts *ret)
{
    const struct sight *sight = sights_of(view->sights, instance->primary_node, instance->uuid);
    bool whole = disks == TASK_FACT_WHOLE || instance->task_state == TASK_GROWING_DISK ||
                 instance->task_state == TASK_REINSTALLING;
    whole = whole && disks != TASK_FACT_GONE;
    ret->values[0] = whole ? TASK_FACT_SOURCE : TASK_FACT_NOWHERE;
    ret->values[1] = !whole                     ? TASK_FACT_ABSENT
                     : sight && *sight->crashed ? TASK_FACT_CRASHED
                                                : TASK_FACT_SHUT_OFF;
}

static void from_all(const struct recovery_view *view, const struct instance *instance,
                     const GPtrArray *hosts, const struct processes *all, struct task_facts *ret)
{
    guint disks = disks_of(view, instance, hosts);
    *ret = (struct task_facts){{TASK_FACT_NOWHERE, TASK_FACT_ABSENT, disks, TASK_FACT_GONE}};
    if (all->running > 0) {
        ret->values[0] = all->running > 1 ? TASK_FACT_BOTH : place_of(instance, all->runs_on);
        ret->values[1] = TASK_FACT_RUNNING;
    } else if (all->at) {
        ret->values[0] = place_of(instance, all->at);
        ret->values[1] = guest_of(all->state);
    } else {
        without_process(view, instance, disks, ret);
    }
    /* Whoever holds it only copies what has been written: the new disk is whole. */
    if (instance->task_state == TASK_REINSTALLING && *instance->holder &&
        ret->values[0] == TASK_FACT_SOURCE)
        ret->values[0] = TASK_FACT_TARGET;
}

/* One that runs where the record has it is there, whatever else could not be asked. */
static bool stands_alone(const struct instance *instance, const struct task_row *task,
                         const struct processes *all)
{
    return !(task->flags & TASK_FENCE_ALL) && all->primary_seen && all->running == 1 &&
           strcmp(all->runs_on, instance->primary_node) == 0;
}

enum look_end instance_facts(const struct recovery_view *view, const struct instance *instance,
                             const struct task_row *task, struct task_facts *ret,
                             GPtrArray *evidence, char **ret_why)
{
    g_autoptr(GPtrArray) hosts = recovery_hosts(instance, task);
    struct processes all = {0};
    enum look_end end = LOOK_SEEN;
    *ret_why = NULL;
    for (guint i = 0; i < hosts->len && end == LOOK_SEEN; i++)
        end = add_host_seen(view, instance, hosts->pdata[i], &all, evidence, ret_why);
    add_strangers(view, instance, hosts, &all, evidence);
    if (end == LOOK_SEEN && all.missing && !stands_alone(instance, task, &all)) {
        *ret_why = g_steal_pointer(&all.missing);
        end = LOOK_BLIND;
    }
    g_free(all.missing);
    if (end == LOOK_SEEN)
        from_all(view, instance, hosts, &all, ret);
    return end;
}

bool instance_replica_gone(const struct recovery_view *view, const struct instance *instance)
{
    const struct replica *replica =
        *instance->replica ? config_get(view->config, "replica", instance->replica, NULL) : NULL;
    if (!replica || replica->state == REPLICA_STALE)
        return false;
    const struct sight *sight = sights_of(view->sights, replica->node, instance->uuid);
    if (!sight || *sight->silent || *sight->busy)
        return instance->task_state == TASK_REMOVING;
    for (guint i = 0; i < sight->images->len; i++) {
        const struct image_set *set = sight->images->pdata[i];
        if (strcmp(set->replica, instance->replica) == 0)
            return !images_are_whole(instance, set->disks);
    }
    return instance->disks->len > 0;
}

char *instance_facts_text(const struct task_facts *facts)
{
    const struct task_kind_row *kind = &task_kind_rows[TASK_KIND_instance];
    return g_strdup_printf("guest %s, place %s, disks %s", kind->words[1][facts->values[1]],
                           kind->words[0][facts->values[0]], kind->words[2][facts->values[2]]);
}

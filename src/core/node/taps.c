/*
 * Tap devices of guests; see taps.h.
 */
#include "core/node/taps.h"

#include "base/limits.h"
#include "base/log.h"

/* One card; of an incoming guest a routed one gets its device only, without address and so without
 * a route. */
static char *taps_create_one(struct guest *guest, const struct nic *nic, guint index,
                             enum taps_for what, GError **error)
{
    struct network_driver *network = guest->node->env->network;
    record_autoptr(nic) copy = nic_copy(nic);
    if (what == TAPS_INCOMING && nic->mode == NIC_ROUTED)
        text_set(&copy->ip, "");
    char *tap = network->ops->tap_create(network, guest->record->instance, index, copy, error);
    if (!tap)
        g_prefix_error(error, "network card %u: ", index);
    return tap;
}

GPtrArray *taps_create(struct guest *guest, const struct instance *instance, enum taps_for what,
                       GError **error)
{
    g_autoptr(GPtrArray) taps = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < instance->nics->len; i++) {
        char *tap = taps_create_one(guest, instance->nics->pdata[i], i, what, error);
        if (!tap) {
            if (!task_killed() && !guest->live && !guest->incoming_live)
                taps_remove(guest, instance);
            return NULL;
        }
        g_ptr_array_add(taps, tap);
    }
    return g_steal_pointer(&taps);
}

void taps_remove(struct guest *guest, const struct instance *instance)
{
    struct network_driver *network = guest->node->env->network;
    g_autoptr(GError) error = NULL;
    if (!instance || instance->nics->len == 0 ||
        network->ops->tap_remove(network, guest->record->instance, &error))
        return;
    guest->node->taps_left = true;
    if (!task_killed())
        log_warning("", "tap devices of instance %s: %s; trying again", guest->record->instance,
                    error->message);
}

/* --- where it is now --- */

struct telling {
    struct guest *guest;
    struct instance *instance; /* as it was started */
};

static bool has_routed(const struct instance *instance)
{
    bool routed = false;
    for (guint i = 0; i < instance->nics->len && !routed; i++)
        routed = ((const struct nic *)instance->nics->pdata[i])->mode == NIC_ROUTED;
    return routed;
}

/* The neighbours know their next hop by its address, and would send to the old one for a while. */
static void telling_once(const struct telling *telling, bool first)
{
    struct network_driver *network = telling->guest->node->env->network;
    const struct instance *instance = telling->instance;
    for (guint i = 0; i < instance->nics->len; i++) {
        g_autoptr(GError) error = NULL;
        if (!network->ops->nic_announce(network, instance->nics->pdata[i], &error) && first &&
            !task_killed())
            log_warning("", "instance %s: network card %u was not announced: %s", instance->name, i,
                        error->message);
    }
}

static bool telling_holds(const struct telling *telling)
{
    const struct guest *guest = telling->guest;
    return !task_killed() && guest->live &&
           guest->record->generation == telling->instance->generation &&
           guest->record->phase == PHASE_STARTED;
}

static void telling_run(void *data)
{
    struct telling *telling = data;
    struct node_core *node = telling->guest->node;
    for (guint i = 0; i < ROUTED_TELLS && telling_holds(telling); i++) {
        telling_once(telling, i == 0);
        if (!env_sleep(node->env, ROUTED_TELL_MS))
            break;
    }
    instance_free(telling->instance);
    g_free(telling);
    node_release(node);
}

void taps_announce(struct guest *guest)
{
    const struct instance *spec = guest->record->spec;
    if (!spec || !has_routed(spec))
        return;
    struct telling *telling = g_new0(struct telling, 1);
    *telling = (struct telling){guest, instance_copy(spec)};
    node_hold(guest->node);
    task_spawn(guest->node->env->tasks, telling_run, telling);
}

/* --- what nobody uses --- */

/* Nobody has, or is about to have, a process of it here. */
static bool taps_unused(struct node_core *node, const char *instance)
{
    const struct guest *guest = guest_lookup(node, instance);
    return !guest || (!guest->live && !guest->incoming_live && !guest->procedure.locked);
}

static bool taps_sweep_one(struct node_core *node, const char *instance)
{
    struct network_driver *network = node->env->network;
    struct guest *guest = guest_lookup(node, instance);
    g_autoptr(GError) error = NULL;
    if (!taps_unused(node, instance)) {
        node->taps_left = node->taps_left || (guest && guest->procedure.locked);
        return true;
    }
    if (guest && !guest_lock(guest, NULL, NULL))
        return false;
    if ((!guest || (!guest->live && !guest->incoming_live)) &&
        !network->ops->tap_remove(network, instance, &error)) {
        node->taps_left = true;
        if (!task_killed())
            log_warning("", "tap devices of instance %s: %s", instance, error->message);
    }
    if (guest)
        guest_unlock(guest);
    return !task_killed();
}

bool taps_sweep(struct node_core *node)
{
    struct network_driver *network = node->env->network;
    g_autoptr(GError) error = NULL;
    if (!node->taps_left)
        return true;
    g_autoptr(GPtrArray) instances = network->ops->list(network, &error);
    if (!instances) {
        if (!task_killed())
            log_warning("", "tap devices: %s", error->message);
        return !task_killed();
    }
    node->taps_left = false;
    for (guint i = 0; i < instances->len; i++)
        if (!taps_sweep_one(node, instances->pdata[i]))
            return false;
    return true;
}

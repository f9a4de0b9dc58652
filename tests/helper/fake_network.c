/*
 * Hosts without network cards: tap devices and the bridges that they are connected to; see
 * fake_hv.h.
 */
#include "helper/fake_hv_private.h"

static struct fake_host *host_of(struct network *network)
{
    return (struct fake_host *)((char *)network - G_STRUCT_OFFSET(struct fake_host, network));
}

static void tap_free(void *data)
{
    struct fake_tap *tap = data;
    g_free(tap->instance);
    g_free(tap->link);
    g_free(tap);
}

static bool nic_fits(const struct fake_host *host, const struct nic *nic, GError **error)
{
    if (nic->mode == NIC_ROUTED ||
        g_ptr_array_find_with_equal_func(host->bridges, nic->link, g_str_equal, NULL))
        return true;
    fettle_set_error(error, ENVIRONMENT, "this node has no bridge %s", nic->link);
    return false;
}

static bool op_check(struct network *network, const struct nic *nic, GError **error)
{
    struct fake_host *host = host_of(network);
    return fake_op_begin(host, "nic_check", nic->mac, NULL, error) && nic_fits(host, nic, error);
}

static struct fake_tap *tap_find(const struct fake_host *host, const char *instance, guint index)
{
    for (guint i = 0; i < host->taps->len; i++) {
        struct fake_tap *tap = host->taps->pdata[i];
        if (strcmp(tap->instance, instance) == 0 && tap->index == index)
            return tap;
    }
    return NULL;
}

static char *op_tap_create(struct network *network, const char *instance, guint index,
                           const struct nic *nic, GError **error)
{
    struct fake_host *host = host_of(network);
    bool late;
    if (!fake_op_begin(host, "tap_create", instance, &late, error))
        return NULL;
    bool ok = nic_fits(host, nic, error);
    if (ok && !tap_find(host, instance, index)) {
        struct fake_tap *tap = g_new0(struct fake_tap, 1);
        *tap = (struct fake_tap){g_strdup(instance), index, g_strdup(nic->link)};
        g_ptr_array_add(host->taps, tap);
    }
    if (!fake_op_end(host, "tap_create", late, ok, error))
        return NULL;
    return g_strdup_printf("tap.%.8s.%u", instance, index);
}

static bool op_tap_remove(struct network *network, const char *instance, GError **error)
{
    struct fake_host *host = host_of(network);
    bool late;
    if (!fake_op_begin(host, "tap_remove", instance, &late, error))
        return false;
    if (fake_guest_find(host, instance) && fake_host_taps(host, instance) > 0)
        fake_truth_problem(host->hosts, "tap devices of %s on %s were removed under its process",
                           instance, host->node);
    for (guint i = host->taps->len; i > 0; i--)
        if (strcmp(((struct fake_tap *)host->taps->pdata[i - 1])->instance, instance) == 0)
            g_ptr_array_remove_index(host->taps, i - 1);
    return fake_op_end(host, "tap_remove", late, true, error);
}

static GPtrArray *op_list(struct network *network, GError **error)
{
    struct fake_host *host = host_of(network);
    if (!fake_op_begin(host, "tap_list", "", NULL, error))
        return NULL;
    GPtrArray *instances = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < host->taps->len; i++) {
        const struct fake_tap *tap = host->taps->pdata[i];
        if (!g_ptr_array_find_with_equal_func(instances, tap->instance, g_str_equal, NULL))
            g_ptr_array_add(instances, g_strdup(tap->instance));
    }
    return instances;
}

static GPtrArray *op_bridges(struct network *network, GError **error)
{
    struct fake_host *host = host_of(network);
    if (!fake_op_begin(host, "bridges", "", NULL, error))
        return NULL;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < host->bridges->len; i++)
        g_ptr_array_add(names, g_strdup(host->bridges->pdata[i]));
    return names;
}

void fake_network_init(struct fake_host *host)
{
    static const struct network_ops ops = {
        .check = op_check,
        .tap_create = op_tap_create,
        .tap_remove = op_tap_remove,
        .list = op_list,
        .bridges = op_bridges,
    };
    host->network.ops = &ops;
    host->taps = g_ptr_array_new_with_free_func(tap_free);
    host->bridges = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(host->bridges, g_strdup("br0"));
}

void fake_network_clear(struct fake_host *host)
{
    g_ptr_array_unref(host->taps);
    g_ptr_array_unref(host->bridges);
}

guint fake_host_taps(const struct fake_host *host, const char *instance)
{
    guint count = 0;
    for (guint i = 0; i < host->taps->len; i++)
        count += strcmp(((struct fake_tap *)host->taps->pdata[i])->instance, instance) == 0;
    return count;
}

void fake_host_set_bridge(struct fake_host *host, const char *name, bool there)
{
    guint at = 0;
    bool has = g_ptr_array_find_with_equal_func(host->bridges, name, g_str_equal, &at);
    if (there && !has)
        g_ptr_array_add(host->bridges, g_strdup(name));
    else if (!there && has)
        g_ptr_array_remove_index(host->bridges, at);
}

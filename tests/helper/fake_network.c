/*
 * Hosts without network cards: tap devices and the bridges that they are connected to; see
 * fake_hv.h.
 */
#include "helper/fake_hv_private.h"

static struct fake_host *host_of(struct network_driver *network)
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

static bool op_check(struct network_driver *network, const struct nic *nic, GError **error)
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

static char *op_tap_create(struct network_driver *network, const char *instance, guint index,
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

static bool op_tap_remove(struct network_driver *network, const char *instance, GError **error)
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

static bool op_nic_announce(struct network_driver *network, const struct nic *nic, GError **error)
{
    return fake_op_begin(host_of(network), "nic_announce", nic->ip, NULL, error);
}

static GPtrArray *op_list(struct network_driver *network, GError **error)
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

static GPtrArray *op_taps(struct network_driver *network, GError **error)
{
    struct fake_host *host = host_of(network);
    if (!fake_op_begin(host, "taps", "", NULL, error))
        return NULL;
    GPtrArray *taps = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < host->taps->len; i++) {
        const struct fake_tap *tap = host->taps->pdata[i];
        g_ptr_array_add(taps, g_strdup_printf("%s tap.%.8s.%u %s", tap->instance, tap->instance,
                                              tap->index, tap->link));
    }
    return taps;
}

static GPtrArray *op_bridges(struct network_driver *network, GError **error)
{
    struct fake_host *host = host_of(network);
    if (!fake_op_begin(host, "bridges", "", NULL, error))
        return NULL;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < host->bridges->len; i++)
        g_ptr_array_add(names, g_strdup(host->bridges->pdata[i]));
    return names;
}

/* --- addresses of the host itself --- */

static bool op_device_check(struct network_driver *network, const char *device, GError **error)
{
    const struct fake_host *host = host_of(network);
    if (g_ptr_array_find_with_equal_func(host->devices, device, g_str_equal, NULL))
        return true;
    fettle_set_error(error, ENVIRONMENT, "network device %s does not exist on this node", device);
    return false;
}

static GPtrArray *op_address_devices(struct network_driver *network, const char *address,
                                     GError **error)
{
    struct fake_host *host = host_of(network);
    if (!fake_op_begin(host, "address_devices", address, NULL, error))
        return NULL;
    GPtrArray *devices = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *part = g_strdup_printf(" %s/", address);
    for (guint i = 0; i < host->addresses->len; i++) {
        const char *text = host->addresses->pdata[i];
        if (strstr(text, part))
            g_ptr_array_add(devices, g_strndup(text, strcspn(text, " ")));
    }
    return devices;
}

static bool op_address_add(struct network_driver *network, const char *device, const char *address,
                           guint netmask, GError **error)
{
    struct fake_host *host = host_of(network);
    bool late;
    if (!fake_op_begin(host, "address_add", address, &late, error) ||
        !op_device_check(network, device, error))
        return false;
    g_autofree char *text = g_strdup_printf("%s %s/%u", device, address, netmask);
    if (!g_ptr_array_find_with_equal_func(host->addresses, text, g_str_equal, NULL))
        g_ptr_array_add(host->addresses, g_steal_pointer(&text));
    return fake_op_end(host, "address_add", late, true, error);
}

static bool op_address_remove(struct network_driver *network, const char *device,
                              const char *address, GError **error)
{
    struct fake_host *host = host_of(network);
    bool late;
    g_autofree char *part = g_strdup_printf("%s %s/", device, address);
    if (!fake_op_begin(host, "address_remove", address, &late, error))
        return false;
    for (guint i = host->addresses->len; i > 0; i--)
        if (g_str_has_prefix(host->addresses->pdata[i - 1], part))
            g_ptr_array_remove_index(host->addresses, i - 1);
    return fake_op_end(host, "address_remove", late, true, error);
}

static bool op_address_announce(struct network_driver *network, const char *device,
                                const char *address, GError **error)
{
    host_of(network)->announced++;
    return true;
}

char *fake_host_addresses(const struct fake_host *host)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < host->addresses->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "",
                               (const char *)host->addresses->pdata[i]);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

void fake_host_set_address(struct fake_host *host, const char *text, bool there)
{
    guint at = 0;
    bool has = g_ptr_array_find_with_equal_func(host->addresses, text, g_str_equal, &at);
    if (there && !has)
        g_ptr_array_add(host->addresses, g_strdup(text));
    else if (!there && has)
        g_ptr_array_remove_index(host->addresses, at);
}

guint fake_host_announced(const struct fake_host *host)
{
    return host->announced;
}

static void op_count(struct network_driver *network, const char *instance, GPtrArray *ret_cards)
{
}

void fake_network_init(struct fake_host *host)
{
    static const struct network_ops ops = {
        .check = op_check,
        .tap_create = op_tap_create,
        .tap_remove = op_tap_remove,
        .nic_announce = op_nic_announce,
        .list = op_list,
        .taps = op_taps,
        .count = op_count,
        .bridges = op_bridges,
        .device_check = op_device_check,
        .address_devices = op_address_devices,
        .address_add = op_address_add,
        .address_remove = op_address_remove,
        .address_announce = op_address_announce,
    };
    host->network.ops = &ops;
    host->taps = g_ptr_array_new_with_free_func(tap_free);
    host->bridges = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(host->bridges, g_strdup("br0"));
    host->addresses = g_ptr_array_new_with_free_func(g_free);
    host->devices = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(host->devices, g_strdup("eth0"));
    g_ptr_array_add(host->devices, g_strdup("eth1"));
}

void fake_network_clear(struct fake_host *host)
{
    g_ptr_array_unref(host->taps);
    g_ptr_array_unref(host->bridges);
    g_ptr_array_unref(host->addresses);
    g_ptr_array_unref(host->devices);
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

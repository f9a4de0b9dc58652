/* See display.h. */
#include "core/ops/display.h"

#include "core/config/ports.h"

#include <string.h>

#define NONE "none"

const char *display_address(const char *word)
{
    return strcmp(word, NONE) != 0 ? word : "";
}

bool display_check(const struct op *op, const char *word, guint64 port, GError **error)
{
    const char *address = display_address(word);
    if (!display_address_check(address, error))
        return false;
    if (!port)
        return true;
    if (*address)
        return port_is_in_range(op_config(op), port, error);
    fettle_set_error(error, WRONG_INPUT,
                     "network_port: is the port of a display; give vnc_bind_address too");
    return false;
}

static bool port_is_free(const struct op *op, guint64 port, GError **error)
{
    g_autofree char *key = config_port_key(port);
    g_autofree char *user = NULL;
    if (!op_address_user(op, key, &user, error))
        return false;
    if (user)
        fettle_set_error(error, ALREADY_EXISTS,
                         "network_port: %" G_GUINT64_FORMAT " is taken by %s", port, user);
    return user == NULL;
}

bool display_set(const struct op *op, struct instance *instance, const char *word, guint64 port,
                 GError **error)
{
    const char *address = display_address(word);
    guint64 wanted = !*address ? 0 : port ? port : instance->network_port;
    bool drawn = *address && !wanted;
    bool other = wanted && wanted != instance->network_port;
    if ((drawn && !op_draw_port(op, &wanted, error)) || (other && !port_is_free(op, wanted, error)))
        return false;
    text_set(&instance->vnc_bind_address, address);
    instance->network_port = wanted;
    return true;
}

void display_warn(struct op *op, const struct instance *instance)
{
    if (!display_is_everywhere(instance->vnc_bind_address))
        return;
    op_log(op,
           "warning: whoever reaches port %" G_GUINT64_FORMAT
           " of the node that runs %s can see its screen and type: VNC has no password here; with "
           "vnc_bind_address 127.0.0.1 it takes a login on that node",
           instance->network_port, instance->name);
}

/* See display.h. There is no viewer of ours: any VNC viewer does. */
#include "cli/commands/display.h"

#include "base/endpoint.h"

#include <stdio.h>
#include <string.h>

enum { NAME, NODE, STATUS, BIND, PORT };
static const char *const asked[] = {"name",         "pnode", "status", "hv/vnc_bind_address",
                                    "network_port", NULL};

/* Address of its node; the node's name if that cannot be had. */
static char *address_of(struct cli *cli, const char *node)
{
    static const char *const fields[] = {"pip", NULL};
    json_autoptr rows = cli_query(cli, "node", fields, json_make("[sss]", "=", "name", node), NULL);
    const char *address = cli_cell_string(json_array_get(rows, 0), 0);
    return g_strdup(*address ? address : node);
}

static void print_ways(const json_t *row, const char *host, gint64 port)
{
    bool everywhere = strcmp(cli_cell_string(row, BIND), "127.0.0.1") != 0;
    g_autofree char *viewed = endpoint_host(host);
    printf("Screen of %s: on node %s, port %" G_GINT64_FORMAT ", %s\n", cli_cell_string(row, NAME),
           cli_cell_string(row, NODE), port,
           everywhere ? "for whoever reaches that node, without a password"
                      : "for viewers on that node itself (127.0.0.1)");
    if (strcmp(cli_cell_string(row, STATUS), "running") != 0)
        printf("It does not run now (%s); the display comes with it.\n",
               cli_cell_string(row, STATUS));
    printf("By a tunnel, which stays open as long as you look:\n"
           "    ssh -N -L %" G_GINT64_FORMAT ":127.0.0.1:%" G_GINT64_FORMAT " root@%s\n"
           "    vncviewer 127.0.0.1::%" G_GINT64_FORMAT "\n",
           port, port, host, port);
    if (everywhere)
        printf("Directly, which others on the way can read:\n"
               "    vncviewer %s::%" G_GINT64_FORMAT "\n",
               viewed, port);
}

static json_t *find_row(struct cli *cli, const char *name, GError **error)
{
    json_autoptr rows =
        cli_query(cli, "instance", asked,
                  json_make("[s[sss][sss]]", "|", "=", "name", name, "=", "uuid", name), error);
    const json_t *row = json_array_get(rows, 0);
    if (rows != NULL && row == NULL)
        fettle_set_error(error, UNKNOWN_ENTITY, "instance \"%s\" does not exist", name);
    else if (row != NULL && *cli_cell_string(row, BIND) == '\0')
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" has no display; give it one while it is stopped: fettle "
                         "instance modify --vnc-bind-address 127.0.0.1 %s",
                         cli_cell_string(row, NAME), cli_cell_string(row, NAME));
    else
        return json_incref((json_t *)row);
    return NULL;
}

bool display_print(struct cli *cli, const char *name, GError **error)
{
    json_autoptr row = find_row(cli, name, error);
    if (row == NULL)
        return false;
    g_autofree char *host = address_of(cli, cli_cell_string(row, NODE));
    gint64 port = (gint64)json_integer_value(cli_cell_value(row, PORT));
    if (!cli->json) {
        print_ways(row, host, port);
        return true;
    }
    json_autoptr object = json_make("{ss ss ss ss ss sI}", "instance", cli_cell_string(row, NAME),
                                    "node", cli_cell_string(row, NODE), "node_address", host,
                                    "status", cli_cell_string(row, STATUS), "vnc_bind_address",
                                    cli_cell_string(row, BIND), "network_port", (json_int_t)port);
    cli_print_json(object);
    return true;
}

/* The page of one network; see info.h. */
#include "cli/commands/info.h"

#include <stdio.h>

static void print_used(const json_t *cells)
{
    const json_t *used = info_value(cells, "used");
    size_t i;
    json_t *pair;
    json_array_foreach(used, i, pair) {
        const char *address, *who;
        if (json_unpack(pair, "[ss]", &address, &who) == 0)
            info_line(i == 0 ? "In use" : "", "%-15s  %s", address, who);
    }
}

void info_print_network(struct cli *cli, const json_t *cells)
{
    const char *link = info_string(cells, "link"), *gateway = info_string(cells, "gateway");
    const char *prefix = info_string(cells, "mac_prefix");
    g_autofree char *reserved = info_list(cells, "external_reservations");
    g_autofree char *instances = info_list(cells, "inst_list");
    gint64 free = info_number(cells, "free_count");
    printf("Network %s\n", info_string(cells, "name"));
    info_line("Addresses", "%s, gateway %s", info_string(cells, "network"),
              *gateway ? gateway : "none");
    info_line("Cards", "%s%s%s, MAC addresses %s", info_string(cells, "mode"), *link ? " on " : "",
              link, *prefix ? prefix : "as the cluster gives them out");
    info_line("Free", "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT, free,
              free + info_number(cells, "reserved_count"));
    info_line("Reserved", "%s", reserved);
    info_line("Instances", "%s", instances);
    print_used(cells);
    info_line("UUID", "%s", info_string(cells, "uuid"));
}

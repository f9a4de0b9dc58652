/*
 * Networks of a config.data; see ganeti.h. There each node group connects a network in its own way,
 * here the network says how its cards are connected: one that the groups connect differently is not
 * taken over, and its cards keep what their group gives them.
 */
#include <string.h>

#include "core/config/addresses.h"
#include "core/config/invariants.h"
#include "core/import/ganeti_private.h"

struct network_reader {
    struct reader *reader;
    const char *uuid;
    char *subject;
    const char *group; /* that connects it; NULL: none does */
    const char *mode;
    const char *link;
};

/* --- how node groups connect it --- */

const char *ganeti_connected(const struct reader *reader, const json_t *connection,
                             const char *name)
{
    const json_t *defaults =
        json_object_get(json_object_get(reader->cluster, "nicparams"), "default");
    const char *text = ganeti_text(connection, name);
    return *text ? text : ganeti_text(defaults, name);
}

/* False, and a note, if it is connected in two ways. */
static bool take_connection(struct network_reader *network, const json_t *group)
{
    const json_t *connection = json_object_get(json_object_get(group, "networks"), network->uuid);
    const char *given = ganeti_connected(network->reader, connection, "mode");
    const char *mode = *given ? given : "bridged";
    const char *link = ganeti_connected(network->reader, connection, "link");
    const char *vlan = ganeti_text(connection, "vlan"), *name = ganeti_text(group, "name");
    if (!json_is_object(connection))
        return true;
    if (*vlan)
        import_note(network->reader->import, "%s: vlan %s of node group %s has no counterpart here",
                    network->subject, vlan, name);
    if (network->group && (strcmp(mode, network->mode) != 0 || strcmp(link, network->link) != 0)) {
        import_note(network->reader->import,
                    "%s: is not taken over: node group %s connects it %s on \"%s\", and %s %s on "
                    "\"%s\"; here a network is connected in one way",
                    network->subject, network->group, network->mode, network->link, name, mode,
                    link);
        return false;
    }
    network->group = name;
    network->mode = mode;
    network->link = link;
    return true;
}

static bool find_connection(struct network_reader *network)
{
    const json_t *groups = json_object_get(network->reader->data, "nodegroups");
    g_autoptr(GPtrArray) uuids = ganeti_names(groups);
    for (guint i = 0; i < uuids->len; i++) {
        if (!take_connection(network, json_object_get(groups, uuids->pdata[i])))
            return false;
    }
    if (!network->group)
        import_note(network->reader->import,
                    "%s: is not taken over: no node group connects it, so there is no mode and no "
                    "link for it",
                    network->subject);
    return network->group != NULL;
}

/* --- what is reserved --- */

/* What no card gets anyway does not stand at an end. */
static void add_range(json_t *reserved, const struct ip_range *all, guint32 gateway,
                      struct ip_range range)
{
    while (range.first <= range.last && (range.first == all->first || range.first == gateway))
        range.first++;
    while (range.first <= range.last && (range.last == all->last || range.last == gateway))
        range.last--;
    if (range.first > range.last)
        return;
    g_autofree char *first = ip_text(range.first);
    g_autofree char *last = ip_text(range.last);
    json_array_append_new(reserved, range.first == range.last ? json_string(first)
                                                              : json_sprintf("%s-%s", first, last));
}

/* One digit for each address, 1: reserved. Theirs for instances (`reservations`) follow from the
 * cards here. NULL and an error if the digits are not those of the network. */
static json_t *read_reserved(const json_t *from, GError **error)
{
    const char *digits = ganeti_text(from, "ext_reservations");
    size_t count = strlen(digits);
    struct ip_range all;
    guint32 gateway = 0;
    if (!ip_range_of_network(ganeti_text(from, "network"), &all, error)) {
        g_prefix_error(error, "network: ");
        return NULL;
    }
    if (count && (count != (size_t)(all.last - all.first) + 1 || strspn(digits, "01") != count)) {
        fettle_set_error(error, WRONG_INPUT,
                         "ext_reservations: must be a digit 0 or 1 for each of %u addresses",
                         all.last - all.first + 1);
        return NULL;
    }
    ip_parse(ganeti_text(from, "gateway"), &gateway);
    json_t *reserved = json_array();
    for (size_t at = strcspn(digits, "1"); at < count; at += strcspn(digits + at, "1")) {
        size_t run = strspn(digits + at, "1");
        add_range(reserved, &all, gateway,
                  (struct ip_range){all.first + (guint32)at, all.first + (guint32)(at + run - 1)});
        at += run;
    }
    return reserved;
}

/* --- the network --- */

/* Stolen `reserved`. By the rules of every commit, except towards others of the file. */
static struct network *make_network(const struct network_reader *network, const json_t *from,
                                    json_t *reserved, GError **error)
{
    g_autofree char *prefix = g_ascii_strdown(ganeti_text(from, "mac_prefix"), -1);
    json_autoptr json =
        json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o}", "uuid", network->uuid, "name",
                  ganeti_text(from, "name"), "network", ganeti_text(from, "network"), "gateway",
                  ganeti_text(from, "gateway"), "mode", network->mode, "link", network->link,
                  "mac_prefix", prefix, "reserved", reserved);
    struct network *made = record_parse(&network_record, json, RECORD_STRICT, error);
    if (made && invariants_network(network->reader->now, made, error))
        return made;
    record_free(&network_record, made);
    return NULL;
}

static void note_rest(struct network_reader *network, const json_t *from)
{
    static const char *const known[] = {"network",      "gateway",          "mac_prefix",
                                        "reservations", "ext_reservations", NULL};
    const json_t *tags = json_object_get(from, "tags");
    g_autofree char *text = ganeti_is_empty(tags) ? NULL : ganeti_value_text(tags);
    if (text)
        import_note(network->reader->import, "%s: tags have no counterpart here: %s",
                    network->subject, text);
    ganeti_note_rest(network->reader, network->subject, from, known);
}

static void add_network(struct network_reader *network, const json_t *from)
{
    g_autoptr(GError) error = NULL;
    json_t *reserved = read_reserved(from, &error);
    struct network *made = reserved ? make_network(network, from, reserved, &error) : NULL;
    if (!made) {
        import_note(network->reader->import, "%s: is not taken over: %s", network->subject,
                    error->message);
        return;
    }
    ganeti_put(network->reader, "network", network->uuid, network_to_json(made));
    g_hash_table_insert(network->reader->networks, g_strdup(network->uuid), made);
    note_rest(network, from);
}

void ganeti_network(struct reader *reader, const char *uuid, const json_t *from)
{
    const char *name = ganeti_text(from, "name");
    g_autofree char *subject = g_strdup_printf("network %s", *name ? name : uuid);
    struct network_reader network = {.reader = reader, .uuid = uuid, .subject = subject};
    const struct network *here = config_find(reader->now, "network", name, NULL);
    if (!here)
        here = config_get(reader->now, "network", uuid, NULL);
    if (here) {
        import_note(reader->import, "%s: is here already and is left as it is", subject);
        g_hash_table_insert(reader->networks, g_strdup(uuid), network_copy(here));
        return;
    }
    if (find_connection(&network))
        add_network(&network, from);
}

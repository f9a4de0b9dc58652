/*
 * Shared by ganeti.c (cluster, groups, nodes, tags), ganeti_network.c, ganeti_instance.c and
 * ganeti_filter.c only.
 */
#pragma once

#include "core/import/ganeti.h"

struct reader {
    struct import *import;
    const struct config *now;
    const json_t *data;    /* the whole file */
    const json_t *cluster; /* its part "cluster" */
    json_t *objects;       /* of the document that is made: kind -> key -> object */
    GHashTable *nodes;     /* their UUID -> ours */
    GHashTable *groups;    /* the same of node groups */
    GHashTable *ports;     /* config_port_key() of those that displays have been given */
    GHashTable *networks;  /* their UUID -> struct network, as it is or will be here */
};

/* A member as text; "" if it is missing or something else. */
const char *ganeti_text(const json_t *object, const char *member);
/* A number, cut to a whole one; `fallback` if it is none, or negative. */
json_int_t ganeti_number(const json_t *object, const char *member, json_int_t fallback);
/* What says nothing: null, false, 0, empty. */
bool ganeti_is_empty(const json_t *value);
/* A value as JSON, cut if it is long; free with g_free(). */
char *ganeti_value_text(const json_t *value);
/* Members of an object, sorted; borrowed of it. */
GPtrArray *ganeti_names(const json_t *object);
/* Notes every member of `object` that says something and is not in the NULL-terminated list. */
void ganeti_note_rest(struct reader *reader, const char *subject, const json_t *object,
                      const char *const *known);
/* Puts an object into the document; `object` is stolen. */
void ganeti_put(struct reader *reader, const char *kind, const char *key, json_t *object);
/* The tags of one of their objects, on ours. */
void ganeti_tags(struct reader *reader, const char *kind, const char *uuid, const json_t *object);
/* Our name of one of their nodes, "" if it is none of ours. */
const char *ganeti_node(const struct reader *reader, const char *uuid);

/* --- ganeti_network.c --- */
void ganeti_network(struct reader *reader, const char *uuid, const json_t *from);
/* "mode", "link" or "vlan" of a connection or a card, or else the cluster's; "": neither has it. */
const char *ganeti_connected(const struct reader *reader, const json_t *connection,
                             const char *name);

/* --- ganeti_filter.c --- */
void ganeti_filters(struct reader *reader);

/* --- ganeti_instance.c --- */
void ganeti_instance(struct reader *reader, const char *uuid, const json_t *from);

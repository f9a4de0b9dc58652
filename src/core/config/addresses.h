/*
 * IPv4 addresses of networks: ranges, and the pool of a network, of which cards get what nobody has
 * and nothing keeps. Who has an address stands in the configuration (instances and reservations,
 * config_address_user()), so there is no second list that could differ. Pure.
 */
#pragma once

#include "core/config/model.h"

/* First and last address, host byte order. */
struct ip_range {
    guint32 first, last;
};

/* Four numbers with dots and no leading zeros, so that equal addresses are equal texts. */
bool ip_parse(const char *text, guint32 *ret_address);
/* Free with g_free(). */
char *ip_text(guint32 address);
/* "192.0.2.0/24", /16 to /30, whose address is the first of it; WRONG_INPUT. */
bool ip_range_of_network(const char *text, struct ip_range *ret_range, GError **error);
/* "192.0.2.5" or "192.0.2.5-192.0.2.9"; WRONG_INPUT. */
bool ip_range_of_reserved(const char *text, struct ip_range *ret_range, GError **error);

/* The key under which an address in it is looked up (config_ip_key()); free with g_free(). */
char *network_key(const struct network *network, const char *address);
/* Why no card gets that address: "is its gateway", "is reserved", "is not in 192.0.2.0/24"; NULL: a
 * card may have it. Free with g_free(). */
char *network_keeps(const struct network *network, const char *address);
/* The lowest address that no card has, none in `nics` (struct nic, may be NULL) included. LIMIT if
 * there is none; free with g_free(). */
char *network_draw(const struct config *config, const struct network *network,
                   const GPtrArray *nics, GError **error);
/* How many there are, and how many of them can be given out. */
void network_count(const struct config *config, const struct network *network, guint *ret_all,
                   guint *ret_free);
/* A character for each, the first and last included: '.' can be given out, 'X' cannot. Free with
 * g_free(). */
char *network_map(const struct config *config, const struct network *network);
/* Calls taken(address, who) for each that is in use or promised, in order; `who` as
 * config_address_user() says it. */
void network_each_taken(const struct config *config, const struct network *network,
                        void (*taken)(const char *address, const char *who, void *data),
                        void *data);
/* Whether one of its cards is in it. */
bool network_has(const struct network *network, const struct instance *instance);

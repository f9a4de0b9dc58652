/*
 * Names of tap devices.
 *
 * The kernel allows 15 characters, fewer than a UUID has, so a name is "ft", 60 bits of a hash of
 * the instance's UUID in 12 characters, and the number of the card in one. That two instances of
 * one node get the same is as good as impossible (with 4096 of them about 1 in 10^11), and if it
 * happened nothing would be mixed up: the alias of the device has the whole UUID, and a name whose
 * alias is another's is refused.
 */
#pragma once

#include "proto/records.h"

#include <stdbool.h>

#define TAP_NAME_BYTES 16 /* with the NUL, as IFNAMSIZ */

void tap_name(const char *instance, guint index, char ret_name[TAP_NAME_BYTES]);

/* Whether it looks like one of these names. */
bool tap_is_name(const char *name);

/* "fettle MODE UUID INDEX"; free with g_free(). */
char *tap_alias(const char *instance, guint index, enum nic_mode mode);
/* Instance (free with g_free()) and mode of an alias; NULL if it is none of ours. */
char *tap_alias_parse(const char *alias, enum nic_mode *ret_mode);

/* The device, to be handed to a hypervisor that may not open it itself: with a header before each
 * frame that tells of checksums and segments, as QEMU opens one by its name. From then on it is
 * ours, whosever it was. -1 with ENVIRONMENT, naming it. */
int tap_open(const char *name, GError **error);

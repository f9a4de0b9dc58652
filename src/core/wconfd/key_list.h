/*
 * A list of certificates in PEM, one behind the other, as the record of the cluster has those of
 * its authorities. Used by a renewal of keys.
 */
#pragma once

#include <glib.h>

guint key_list_count(const char *certificates);
/* Where the last one begins. */
const char *key_list_last(const char *certificates);
/* The first one alone; free with g_free(). */
char *key_list_first(const char *certificates);
/* The last one in front of the others; free with g_free(). */
char *key_list_turn(const char *certificates);
/* All but the last one; free with g_free(). */
char *key_list_without_last(const char *certificates);
/* SHA-256 of each, in order; NULL: one cannot be read, or there is none. */
GStrv key_list_fingerprints(const char *certificates);

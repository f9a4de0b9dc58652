/*
 * A sum of what has gigabytes: images, backups. GnuTLS takes a SHA-512 in less than half the time
 * that GLib takes for one. Of a few bytes GLib's g_compute_checksum_for_data() does as well, and
 * core/ has no other.
 */
#pragma once

#include <glib.h>

enum sum_kind { SUM_MD5, SUM_SHA512 };
#define SUM_TEXT 129 /* bytes of the longest one as text, with its end */

struct sum;
struct sum *sum_new(enum sum_kind kind);
void sum_add(struct sum *sum, const void *bytes, gsize length);
/* In hexadecimal, as a text that there is room for; frees it. */
void sum_end(struct sum *sum, char *ret);

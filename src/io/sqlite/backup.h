/*
 * The file that `fettle cluster backup` writes: a header in JSON, then the parts one after another,
 * each with its length and checksum. Nothing of it is used before all of it was found whole.
 *
 *   fettle-backup VERSION\n
 *   SHA-256 of the header, a space, the header: one line of JSON (record backup_header)\n
 *   the parts, in the order of the header
 *
 * The parts are the store and what stands in etc/: the authority, this node's key and identity. So
 * the file is a secret, and has mode 0600.
 */
#pragma once

#include "proto/records.h"

#define BACKUP_VERSION 1

struct store_backup {
    struct backup_header *header;
    GPtrArray *parts; /* GBytes, in the order of header->parts */
};

struct store_backup *store_backup_new(void);
void store_backup_free(struct store_backup *backup);
typedef struct store_backup store_backup_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(store_backup_t, store_backup_free)

/* Adds a part; length and checksum go into the header. `data` is stolen. */
void backup_add(struct store_backup *backup, const char *name, GBytes *data);
/* A part's bytes, borrowed; NULL if there is none of that name. */
GBytes *backup_part(const struct store_backup *backup, const char *name);

/* Written beside, synced, renamed: an older file of that name is there until the new one is whole.
 */
bool backup_write(const struct store_backup *backup, const char *path, GError **error);
/* WRONG_INPUT: no backup, or of a newer version. CORRUPT: cut off, or damaged, and where. */
struct store_backup *backup_read(const char *path, GError **error);

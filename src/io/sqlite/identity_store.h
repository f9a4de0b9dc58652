/*
 * The identities of the API in a file of SQLite (proto/api/identity.h): objects(kind, key, object,
 * sum), each row with a checksum, and meta(key, value) with the version, which each commit raises;
 * failures(user, at) of logins.
 * Any number of processes may have it open. A commit is synced when it is answered.
 */
#pragma once

#include "proto/api/identity.h"

/* Makes the file with these objects (of array of struct change), readable for its owner alone;
 * synced. ALREADY_EXISTS. */
bool identity_store_create(const char *path, const GPtrArray *changes, GError **error);
/* UNKNOWN_ENTITY: there is no such file. CORRUPT: it is torn, or of a later format. */
struct identity_store *identity_store_open(const char *path, GError **error);
/* No commit is waited for any more. */
void identity_store_close(struct identity_store *store);

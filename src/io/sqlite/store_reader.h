/*
 * Reads a store (sqlite_store.h) that another process writes, and never writes it: for
 * fettle-rconfd, which needs nobody else. It keeps its handle open, so that to see whether anything
 * is new costs two system calls, and gives what is new by the store's change log. A store that was
 * replaced, refilled or put back, so that the log does not go on where the reader was, is given
 * anew as a whole.
 */
#pragma once

#include "proto/copy.h"
#include "proto/records.h"

struct store_reader;

struct store_position {
    guint64 history;
    guint64 epoch; /* of the master that the last changes came from */
    guint64 serial;
    enum copy_role role; /* what the store says that it is; retired: not kept up to date any more */
};

struct store_reader_client {
    /* Whether objects of the kind are wanted at all. */
    bool (*keeps)(const char *kind);
    /* Everything comes anew; what was given before stays valid until `done`. */
    void (*begin)(void *data);
    /* One object put or deleted; borrowed. */
    bool (*change)(const struct change *change, void *data, GError **error);
    /* What came since begin(), or since the last done(), belongs to this position. */
    void (*done)(const struct store_position *position, void *data);
    /* There is no store (any more), or the last changes could be taken only in part: what was given
     * is to be thrown away. */
    void (*gone)(void *data);
    void *data;
};

/* Opens nothing yet; `path` need not exist. */
struct store_reader *store_reader_new(const char *path, const struct store_reader_client *client);
void store_reader_free(struct store_reader *reader);

/* Looks whether anything is new, and gives it. False with CORRUPT or STORAGE: it could not be read;
 * what the client has is what it had before, or gone() was called. Blocks while it reads. */
bool store_reader_refresh(struct store_reader *reader, GError **error);

/*
 * The far end of one disk of a relay: a connection to the export of a replica that is made again
 * whenever it is lost, and the requests that wait for its answer. Used by plugin.c only.
 *
 * A request comes back when the export has answered that it is done. Whatever else may happen – no
 * connection, an error reply, a smaller export – is the same to its caller: it waits,
 * and the request is sent again on the next connection. Repeating is harmless, since QEMU's mirror
 * never has two writes of one place under way, and an export takes nothing any more from a
 * connection that a newer one has superseded.
 *
 * One thread per disk has the connection; requests of any thread are queued for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct remote;

struct remote_place {
    const char *address; /* numeric; all are kept by reference */
    const char *key;     /* file "qemu:HEX" */
    char *port;
    char *name; /* of the export */
    uint64_t bytes;
};

enum remote_kind { REMOTE_READ, REMOTE_WRITE, REMOTE_ZERO, REMOTE_TRIM, REMOTE_FLUSH };

struct remote_request {
    enum remote_kind kind;
    void *buffer;
    uint32_t count;
    uint64_t offset;
    uint32_t flags; /* LIBNBD_CMD_FLAG_… */
};

/* Does not connect. NULL: out of memory, threads or descriptors. */
struct remote *remote_new(const struct remote_place *place);

/* Connects for the first time. False, with the reason told by nbdkit_error(): nobody answers, the
 * key or the name is wrong, it is smaller than the disk or cannot do what a mirror needs. */
bool remote_check(struct remote *remote);

/* From here on the connection is kept, by a thread. False: there is none to be had. */
bool remote_start(struct remote *remote);

/* A new client, whose number is returned. What older ones have asked for is never answered, and
 * goes nowhere any more: a client that comes again repeats what it has no answer to. */
uint64_t remote_client(struct remote *remote);

/* Returns when it is done; until then, and for a superseded client for ever, the caller waits. */
void remote_do(struct remote *remote, uint64_t client, const struct remote_request *request);

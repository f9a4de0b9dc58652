/*
 * A client of QEMU's machine protocol (QMP) over a Unix socket. Used by backend/hypervisor only.
 *
 * Every command waits in a task and has a timeout: a QEMU that drains a disk towards an unreachable
 * replica answers nothing for as long as that lasts (SAF-15). Out-of-band execution is always
 * negotiated, so that `yank` is answered even then. Bytes that are no QMP close the connection;
 * nothing of them reaches a caller.
 *
 * QEMU serves one client per socket (a second one gets no greeting), and events sent while nobody
 * is connected are lost: who connects asks for the state.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

struct qmp;

struct qmp_events {
    /* `data` is borrowed, and an empty object if the event has none. */
    void (*event)(const char *name, const json_t *data, void *user);
    /* The connection is over: end of file, or an error of the peer's making. Called once, not after
     * qmp_close(). */
    void (*closed)(const GError *why, void *user);
    void *user;
};

/* In a task: connects, waits for the greeting, negotiates. UNREACHABLE: nobody listens, or it was
 * closed at once. TIMEOUT: no greeting (frozen, or another client is connected). PROTOCOL: it
 * speaks something else. `events` is copied. */
struct qmp *qmp_connect(const char *path, guint timeout_ms, const struct qmp_events *events,
                        GError **error);

/* In a task: one command. `arguments` is stolen, NULL for none. The answer is a new reference.
 * Errors: HYPERVISOR with QEMU's own words (UNKNOWN_ENTITY if its class says that something does
 * not exist or is not active), TIMEOUT, UNREACHABLE if the connection is over. After a TIMEOUT the
 * command may still happen. */
json_t *qmp_execute(struct qmp *qmp, const char *command, json_t *arguments, guint timeout_ms,
                    GError **error);

/* The same out of band: answered even while another command holds QEMU up. Only for `yank`. */
json_t *qmp_execute_oob(struct qmp *qmp, const char *command, json_t *arguments, guint timeout_ms,
                        GError **error);

/* The same with an open file that goes with it (`getfd`, `add-fd`). It stays open here. LIMIT if
 * what was sent before has not been taken yet. */
json_t *qmp_give_descriptor(struct qmp *qmp, const char *command, json_t *arguments, int fd,
                            guint timeout_ms, GError **error);

bool qmp_is_open(const struct qmp *qmp);

/* Closes and forgets; commands under way end with UNREACHABLE. NULL is allowed. */
void qmp_close(struct qmp *qmp);

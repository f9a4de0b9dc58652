/*
 * The parts of a guest's relay: what is kept of it and its files (relay_state.c), one process of it
 * (relay_process.c). Used by relay.c, which says which process is to be there when.
 */
#pragma once

#include "backend/hypervisor/relay.h"

/* In the folder of the guest; see relay.h. */
#define RELAY_FOLDER "relay"
#define RELAY_SOCKET RELAY_FOLDER "/sock"
#define RELAY_KEY RELAY_FOLDER "/keys.psk"
#define RELAY_LOG RELAY_FOLDER "/log"

struct relay {
    /* Kept */
    struct export_target *target;
    guint64 bytes[LIMIT_DISKS];
    bool refuse;              /* nothing may be forwarded any more */
    guint number;             /* the last process that was started, or is about to be */
    bool placed;              /* it is the one at the socket */
    guint64 pid, start_ticks; /* of the one at the socket; 0: none yet */

    struct process *process; /* the one at the socket; NULL: none */
    bool refusing;           /* it is one that refuses */
    bool reviving;           /* a task sees to it that there is one */
    bool ending;
    gint64 ended_ms; /* boot clock; since when there is none that is well; 0: there is */
};

/* Free with relay_free(). */
struct relay *relay_new(void);

/* The N-th process's socket until it is in its place; free with g_free(). */
char *relay_numbered(const struct guest *guest, guint number);
/* The argument by which it is found if we die before its pid is written down, `socket=` (of the
 * version before: `--unix=`) and that name; free with g_free(). */
char *relay_argument(const struct guest *guest, guint number, const char *word);
#define RELAY_ARGUMENT "socket="
#define RELAY_ARGUMENT_BEFORE "--unix="

/* What is kept of guest->relay. */
bool relay_state_write(const struct guest *guest, GError **error);
/* NULL: there is none, or nothing that can be used is known of it. */
struct relay *relay_state_read(const struct guest *guest);

/* The folder and the key. */
bool relay_files_make(const struct guest *guest, GError **error);
void relay_files_remove(const struct guest *guest);

/* In a task: the next process, ready at its own socket; NULL with the reason, and nothing runs.
 * `patient`: it is ready without an answer of the exports. `exited` gets the guest. */
struct process *relay_spawn(struct guest *guest, bool patient, process_exit_fn exited,
                            GError **error);

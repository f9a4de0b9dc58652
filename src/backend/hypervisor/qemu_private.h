/*
 * What the parts of the QEMU driver share: qemu.c (the calls), guest.c (one process and its QMP
 * connection), mirror.c, qemu_args.c, guest_state.c.
 */
#pragma once

#include "backend/hypervisor/qemu.h"
#include "base/task.h"
#include "io/process.h"
#include "io/qmp.h"

struct qemu {
    struct hypervisor base;
    const struct node_paths *paths;
    guint32 uid;
    struct hypervisor_events events;
    GHashTable *guests; /* instance -> struct guest */
};

enum job_outcome { JOB_UNKNOWN, JOB_DONE, JOB_FAILED };

struct guest {
    guint refs; /* the table's, and one of each call under way */
    struct qemu *qemu;

    /* What it was started for; kept in state.json. */
    char *instance;
    char *name;
    guint64 generation;
    guint64 memory;
    guint disks;

    struct process *process; /* NULL before it was started */
    bool prepared;           /* its end is news */
    bool gone;

    struct qmp *qmp;
    struct task_mutex connecting;

    /* Its mirror. Each attachment has a number of its own, so that what is left of an old one is in
     * nobody's way. */
    guint attachment;     /* kept */
    bool mirrored;        /* kept */
    char *replica;        /* kept; "" */
    bool finished;        /* the last mirror ended in sync and nothing ran since */
    GHashTable *outcomes; /* job -> enum job_outcome, from events */
};

/* guest.c */
struct guest *guest_new(struct qemu *qemu, const char *instance, guint64 generation);
struct guest *guest_ref(struct guest *guest);
void guest_unref(struct guest *guest);
static inline void guest_unrefp(struct guest **guest)
{
    if (*guest != NULL)
        guest_unref(*guest);
}
#define guest_autoptr __attribute__((cleanup(guest_unrefp))) struct guest *

/* A new reference. UNKNOWN_ENTITY if there is no such guest, REFUSED if it has another generation.
 */
struct guest *guest_find(struct qemu *qemu, const char *instance, guint64 generation,
                         GError **error);
/* File or folder in run/guests/UUID; free with g_free(). */
char *guest_path(const struct guest *guest, const char *name);
/* Process exit handler: forgets the guest, removes its folder, tells. */
void guest_exited(struct process *process, void *data);
void guest_remove_folder(const struct guest *guest);
/* In a task: connects if there is no connection. */
bool guest_connect(struct guest *guest, guint timeout_ms, GError **error);
/* In a task: one QMP command; `arguments` is stolen. The error is prefixed with the guest's name.
 */
json_t *guest_execute(struct guest *guest, const char *command, json_t *arguments, guint timeout_ms,
                      GError **error);
/* The same without an answer worth looking at. */
bool guest_command(struct guest *guest, const char *command, json_t *arguments, guint timeout_ms,
                   GError **error);
bool guest_yank(struct guest *guest, const char *node, GError **error);

/* guest_state.c */
bool guest_state_write(const struct guest *guest, GError **error);
bool guest_state_exists(const struct qemu *qemu, const char *instance);
/* A guest from run/guests/UUID/state.json, its process adopted or (not alive any more) NULL. */
struct guest *guest_state_read(struct qemu *qemu, const char *instance, GError **error);

/* qemu_args.c: NULL-terminated; descriptors 3 and 4 are the listening QMP sockets. */
GPtrArray *qemu_args(const struct guest *guest, const struct guest_spec *spec, bool kvm,
                     GError **error);

/* mirror.c */
bool mirror_query(struct guest *guest, struct mirror_info *ret_mirror, GError **error);
bool mirror_start(struct hypervisor *hv, const char *instance, guint64 generation,
                  const struct export_target *target, enum mirror_copy copy, GError **error);
bool mirror_finish(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
bool mirror_release(struct hypervisor *hv, const char *instance, guint64 generation,
                    GError **error);

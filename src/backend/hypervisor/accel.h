/*
 * Which accelerator a guest runs under. KVM that opens is not KVM that works (it may be nested and
 * crawl, or abort), so `auto` boots a tiny guest under both and takes KVM only if it boots there,
 * and sooner. Used by qemu.c and prepare.c.
 *
 * What came of it is kept in run/accelerator.json and counts until the next boot of the host. A
 * trial that was cut off, or did not come to an end in its time (the host may have been busy), has
 * shown nothing: guests run under TCG then, and it is repeated beside them.
 */
#pragma once

#include "base/task.h"
#include "io/node_config.h"

struct accel;

#define ACCEL_DEVICE "/dev/kvm"

struct accel_options {
    const char *device; /* NULL: ACCEL_DEVICE */
    guint trial_ms;     /* longest time of one boot; 0: LIMIT_ACCEL_PROBE_MS */
    guint again_ms;     /* before a trial is repeated, doubled each time; 0: LIMIT_ACCEL_AGAIN_MS */
    guint32 uid;        /* that a trial runs as, as guests do; 0: what we are */
};

/* `paths` and `options->device` are kept by reference; `tasks`: in which trials are repeated. */
struct accel *accel_new(const struct node_paths *paths, struct task_group *tasks,
                        const struct accel_options *options);
/* NULL is allowed. */
void accel_unref(struct accel *accel);

/* In a task, which waits for the first trial only. ACCEL_TCG never touches the device, nor does
 * ACCEL_AUTO on a host that has none; ACCEL_KVM is taken at its word. ENVIRONMENT: a guest boots
 * under neither. */
bool accel_choose(struct accel *accel, enum accelerator wanted, bool *ret_kvm, GError **error);

/* Why guests of ACCEL_AUTO run without KVM although the host has the device; NULL if they do not,
 * or nothing was tried yet. Does not wait; free with g_free(). */
char *accel_without_kvm(const struct accel *accel);

/*
 * The daemons of the lab's Ceph (ceph.h), in the network of its switch. Only the supervisor has
 * these. They lose their power as a machine that is shut down does: what it keeps in memory is
 * written, and read again.
 */
#pragma once

#include "base/json.h"
#include "lab/layout.h"

struct ceph_run;

/* Makes it, starts it and waits until it works. */
struct ceph_run *ceph_run_new(const struct layout *layout, GError **error);
bool ceph_run_power(struct ceph_run *run, bool on, GError **error);
/* All of them stand still, or go on. WRONG_STATE without power. */
bool ceph_run_pause(struct ceph_run *run, bool pause, GError **error);
/* {"address","conf","power":bool,"paused":bool} */
json_t *ceph_run_to_json(const struct ceph_run *run);

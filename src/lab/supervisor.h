/*
 * The supervisor of one lab: builds it, keeps its daemons running, and does what the library asks
 * for over DIR/lab.sock, one command at a time. The program fettle-lab is this and nothing else.
 */
#pragma once

#include "lab/layout.h"

struct supervisor;

/* Makes disks, switch and nodes, listens, and starts the daemons. */
struct supervisor *supervisor_new(const struct layout *layout, GError **error);

/* Serves until the process is killed. */
void supervisor_run(struct supervisor *supervisor) G_GNUC_NORETURN;

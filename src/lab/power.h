/*
 * One node's power, without its daemons: disks, mounts and cable. The supervisor calls this.
 */
#pragma once

#include "lab/layout.h"

/* Makes and mounts the folder that all nodes share, once in the lab's life. No node's power
 * concerns it, as if it were on a server of its own. */
bool power_make_shared(const struct layout *layout, GError **error);

/* Makes the images of a node's two disks, once in its life. */
bool power_make_disks(const struct layout *layout, guint node, GError **error);

/* Mounts root, var/disks, var/shared, run/ and log/, plugs the cable in. A failure leaves nothing
 * mounted or plugged. */
bool power_on(const struct layout *layout, guint node, bool link, GError **error);

/* Cable, both disks, processes, mounts, namespace, in this order: nobody outside sees a farewell of
 * what dies. */
bool power_off(const struct layout *layout, guint node, GError **error);

/*
 * Does an NBD server answer? Asked by noded about the replica it mirrors to, and before a mirror is
 * attached: QEMU must not be let connect to what does not answer, since that holds its monitor up.
 */
#pragma once

#include "proto/records.h"

#include <stdbool.h>

/* In a task: connects to every disk of the target at once and waits for NBD's greeting, at most
 * `timeout_ms` in all. A server that is stopped has its connections accepted by the kernel, but
 * greets nobody. */
bool nbd_probe(const struct export_target *target, guint timeout_ms);
/* The same at a Unix socket. False early if its server ends. */
bool nbd_probe_at(const char *path, guint timeout_ms);

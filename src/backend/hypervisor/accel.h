/*
 * Which accelerator a guest runs under. KVM that opens is not KVM that works (it may be nested and
 * crawl, or abort), so `auto` boots a tiny guest under both and takes KVM only if it boots there,
 * and sooner. Used by qemu.c.
 */
#pragma once

#include "io/node_config.h"

/* In a task. The result of the trial is kept in run/accelerator.json until the next boot. ACCEL_TCG
 * never touches /dev/kvm; ACCEL_KVM is taken at its word. */
bool accel_choose(const struct node_paths *paths, enum accelerator wanted, bool *ret_kvm,
                  GError **error);

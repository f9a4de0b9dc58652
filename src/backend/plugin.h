/*
 * What nbdkit does by itself and a process of ours must not do. Used by our two plugins, which know
 * nothing else of each other: the fail-stop export (storage/failstop_plugin.c) and the relay
 * (relay/plugin.c).
 *
 * Both outlive the node daemon that started them, and neither may ever answer an error only because
 * it is about to end: a guest would go on without its replica, which nobody has on record as stale
 * (SAF-14).
 */
#pragma once

/* The plugin's .load: nbdkit in the foreground has asked to be ended with its parent. (The kernel
 * forgets that when a process changes its user, but not every one of ours does.) */
void plugin_outlive_parent(void);

/* The plugin's .after_fork: told to end, nbdkit would answer requests with an error while it ends
 * in form. From here on it ends at once: what it has not answered it never will. */
void plugin_end_at_once(void);

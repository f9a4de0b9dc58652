/*
 * Finding and ending processes without ever hitting a stranger: a pid is opened as a pidfd first,
 * then checked, then signalled.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* A pidfd; -1 with errno. */
int proc_open(pid_t pid);
bool proc_signal(int pidfd, int signal);
/* True once it has ended. */
bool proc_wait(int pidfd, guint timeout_ms);

/* Ends every process in the network namespaces of these names, again and again until none is found;
 * the caller's own is spared. INTERNAL if one does not go. */
bool proc_kill_netns(const GPtrArray *names, GError **error);

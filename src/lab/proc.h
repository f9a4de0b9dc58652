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
/* Stops a child: true once all of it stands still, or has ended. Where others have the processors
 * it runs on for a while after the signal. */
bool proc_stop(int pidfd, guint timeout_ms);
/* True once it has ended. */
bool proc_wait(int pidfd, guint timeout_ms);

/* Ends every process in the network namespaces of these names, again and again until none is found;
 * the caller's own is spared. INTERNAL if one does not go. */
bool proc_kill_netns(const GPtrArray *names, GError **error);

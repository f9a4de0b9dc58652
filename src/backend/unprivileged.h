/*
 * Programs that run as a user without privileges from their first instruction (SAF-105): how they
 * are started, and what they are given, since they can open nothing of root's by its name. `uid` 0
 * everywhere: what we are ourselves.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Puts the words before a program's that make it that user, whose group has the same number, with
 * no other group but that of `device` (NULL: none), if that is how others get at the device, and
 * with no way back to privileges. The process stays the same. */
void unprivileged_words(GPtrArray *argv, guint32 uid, const char *device);

/* A listening socket of that name, open to us and to `uid` only; -1 with the error. What is named
 * so already makes it fail. */
int unprivileged_listen(const char *path, int backlog, guint32 uid, GError **error);

/* In a task: opens files with these flags of open(), in a thread of its own, which hangs alone if
 * the files' disk or server does. With `ours` they become root's where they are not. The
 * descriptors (int) in the order of `paths` are closed with the array. STORAGE with the name;
 * TIMEOUT after `timeout_ms`; KILLED. */
GArray *unprivileged_open(const GPtrArray *paths, int flags, bool ours, guint timeout_ms,
                          GError **error);

/* Takes the first descriptor out and frees the others and the array; NULL: -1. */
int unprivileged_first(GArray *fds);

/* In a task: a file that any user may open by the name of its descriptor (/proc/self/fd/N). What
 * others may not read is copied into memory, at most LIMIT_KERNEL_BYTES, for as long as the
 * descriptor is open anywhere. Otherwise the same. */
int unprivileged_read(const char *path, guint timeout_ms, GError **error);

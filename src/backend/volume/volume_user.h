/*
 * What the programs of a volume service get of its data while they run as others than root
 * (SAF-110): files stay root's, in folders that are root's alone, so they are reached by
 * descriptors only; of what is handed on its group, which is that of those users, may read, or
 * write, too. For the children at a directory (dir_call.h), which become such a program, for
 * programs at a pool (rbd_call.h), and the service that looks at them. If we are not root there is
 * no other user.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "io/volume_user.h"

/* Puts the words before a program's that make it `user` (VOLUME_USER, or POOL_USER if it has the
 * key of a pool), with no group but the one that files are lent to, no way back to privileges, and
 * an end with its parent. */
void volume_user_words(GPtrArray *argv, guint32 user, pid_t parent);

/* An open file, for the program that is started next. False: it cannot be lent. */
bool volume_user_lend(int fd, bool writes, GError **error);
/* It is root's alone again. */
bool volume_user_take_back(int fd, GError **error);

/* Between them files of /proc about a process of that user are read as itself: without the
 * capability to look at all of the host's. */
void volume_user_become(void);
void volume_user_return(void);

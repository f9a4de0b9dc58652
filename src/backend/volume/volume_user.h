/*
 * What the programs of a volume service get of its data while they run as VOLUME_USER (SAF-110):
 * files stay root's, in folders that are root's alone, so they are reached by descriptors only; of
 * what is handed on its group, which is that user's, may read, or write, too. For the children at a
 * directory (dir_call.h), which become such a program, and the service that looks at it. If we are
 * not root there is no other user.
 */
#pragma once

#include "base/error.h"

/* Puts the words before a program's that make it that user, with no group but its own, no way back
 * to privileges, and an end with the parent that we have now. */
void volume_user_words(GPtrArray *argv);

/* An open file, for the program that is started next. False: it cannot be lent. */
bool volume_user_lend(int fd, bool writes, GError **error);
/* It is root's alone again. */
bool volume_user_take_back(int fd, GError **error);

/* Between them files of /proc about a process of that user are read as itself: without the
 * capability to look at all of the host's. */
void volume_user_become(void);
void volume_user_return(void);

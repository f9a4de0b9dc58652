/*
 * Whether a directory does what volumes need of it, between nodes too. One node makes a file there
 * and holds locks on it; each of the others has to see the file, and to be refused the locks. For
 * dir_call.c, in its child; what is found goes to standard output, a line each.
 *
 * Each makes files of its own, under names that nothing else has, removes them, and touches no
 * other one.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define DIR_PROBLEM "problem "
#define DIR_NOTE "note "
#define DIR_UNSEEN "unseen" /* the file of the first node is not there */

/* The first node; it goes on until so many others have tried. False: errno says why nothing could
 * be written. */
bool dir_check_hold(int folder, const char *token, guint others);
/* Another one, which has that place among them. */
bool dir_check_try(int folder, const char *token, guint place);

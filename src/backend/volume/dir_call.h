/*
 * What touches the directory of a back end of kind `dir`, in a child process: one call, by its
 * arguments, and its answer on standard output. fettle-volumed is its program (DIR_CALL_OPTION as
 * the first argument); dir_volumes.c starts it.
 *
 * Each call opens the directory once, reads the marker there, and does the rest relative to it: a
 * mount that comes or goes meanwhile cannot put two places into one call (SAF-123).
 */
#pragma once

#include "proto/records.h"

#define DIR_CALL_OPTION "--at-directory"
#define DIR_CALL_ARGUMENTS 13
#define DIR_MARKER "fettle-backend"

/* Folder of a kind of resource in the directory; names below are FOLDER/UUID.CLAIM. */
const char *dir_folder(enum resource_type type);
/* The parts of such a name; false: it is none. `*ret_name` is in `text`. */
bool dir_name_parse(const char *text, enum resource_type *ret_type, const char **ret_name);

/* The whole of main(): PROGRAM OPTION VERB PATH BACKEND CLUSTER CLUSTER-NAME NAME NUMBER SOURCE
 * FROM-PATH FROM-BACKEND SUM; FROM-…: of the source, if that is another place; else empty.
 * What a verb prints, one line each:
 *   open NUMBER (1: make the marker)  nothing      space            FREE TOTAL (MiB)
 *   create NAME NUMBER (bytes)        nothing      look NAME        WHOLE BYTES NAME
 *   copy NAME NUMBER (bytes) SOURCE   nothing      list             0 BYTES NAME, of all
 *   prepare, settle NAME NUMBER       nothing
 *   grow NAME NUMBER (bytes)          nothing      remove NAME      nothing
 *   pack NAME NUMBER (bytes) SOURCE   what qemu-img says, which it becomes
 *   pack-end NAME SOURCE              BYTES SUM
 *   unpack NAME NUMBER (bytes) SOURCE … SUM, and unpack-end NAME NUMBER SOURCE likewise
 * Exit code 0; else 1, the name of the error in the first line, and the message. */
int dir_call_main(int argc, char **argv);

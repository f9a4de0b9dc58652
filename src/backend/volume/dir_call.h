/*
 * What touches the directory of a back end of kind `dir`, in a child process: one call, by its
 * arguments, and its answer on standard output. fettle-volumed is its program (DIR_CALL_OPTION as
 * the first argument); dir_volumes.c starts it.
 *
 * Each call opens the directory once, reads the marker there, and does the rest relative to it: a
 * mount that comes or goes meanwhile cannot put two places into one call (SAF-123).
 */
#pragma once

#define DIR_CALL_OPTION "--at-directory"
#define DIR_CALL_ARGUMENTS 9
#define DIR_MARKER "fettle-backend"

/* The whole of main(): PROGRAM OPTION VERB PATH BACKEND CLUSTER CLUSTER-NAME NAME NUMBER. What a
 * verb prints, one line each:
 *   open NUMBER (1: make the marker)  nothing      space            FREE TOTAL (MiB)
 *   create NAME NUMBER (bytes)        nothing      look NAME        WHOLE BYTES NAME
 *   grow NAME NUMBER (bytes)          nothing      list             0 BYTES NAME, of all
 *   remove NAME                       nothing
 * Exit code 0; else 1, the name of the error in the first line, and the message. */
int dir_call_main(int argc, char **argv);

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
#define DIR_CALL_ARGUMENTS 14
#define DIR_MARKER "fettle-backend"

/* The whole of main(): PROGRAM OPTION VERB PATH BACKEND CLUSTER CLUSTER-NAME NAME NUMBER SOURCE
 * FROM-PATH FROM-BACKEND WORD OUTSIDE; FROM-…: of the source, if that is another place; else empty.
 * WORD: a sum, a format, a folder, a token. OUTSIDE: what is of a back end of another kind, as
 * qemu-img opens it (dir_backup.h); it is the source if NAME is there, else the target; empty:
 * nothing is.
 * What a verb prints, one line each:
 *   open NUMBER (1: make the marker)  nothing      space            FREE TOTAL (MiB)
 *   create NAME NUMBER (bytes)        nothing      look NAME        WHOLE BYTES NAME
 *   copy NAME NUMBER (bytes) SOURCE   nothing      list             0 BYTES NAME, of all
 *   prepare, fill-end NAME NUMBER     nothing
 *   grow NAME NUMBER (bytes)          nothing      remove NAME      nothing
 *   pack NAME NUMBER (bytes) SOURCE   what qemu-img says, which it becomes
 *   pack-end NAME SOURCE              BYTES SUM
 *   unpack NAME NUMBER (bytes) SOURCE … SUM, and unpack-end NAME NUMBER SOURCE likewise
 *   take NAME NUMBER (bytes) OUTSIDE  what qemu-img says; unpack-end is its end
 *   give NUMBER (bytes) SOURCE OUTSIDE  likewise; unused SOURCE is its end: nothing
 *   upload NAME NUMBER (bytes) SOURCE … FORMAT, of an image, as pack
 *   measure NAME [SOURCE …] FORMAT    SIZE VIRTUAL-SIZE MD5 SHA-512
 *   convert NAME NUMBER (bytes) SOURCE, of a qcow2 image, as unpack
 *   settle NAME NUMBER (bytes) … FORMAT MD5 SHA-512, that were said or -, likewise
 *   receive NAME NUMBER (bytes) … FOLDER of the key, or none: what qemu-nbd says, which it becomes
 *   send NAME … FOLDER                likewise (dir_transfer.h)
 *   check-hold NUMBER (others) … TOKEN, and check-try NUMBER (place) … TOKEN: see dir_check.h
 * Exit code 0; else 1, the name of the error in the first line, and the message. */
int dir_call_main(int argc, char **argv);

/*
 * What reads an image of a pool through, or serves it to one client: a child of the service
 * (RBD_EXPORT_OPTION is the first argument of its program), as dir_call.h is for directories.
 */
#pragma once

#define RBD_EXPORT_OPTION "--at-pool"

/* The whole of main(): PROGRAM OPTION …
 *   measure FORMAT BYTES COMMAND…  SIZE VIRTUAL-SIZE MD5 SHA-512 of the first BYTES of what it says
 *   header FORMAT BYTES COMMAND…   VIRTUAL-SIZE, of which it reads no more than it needs
 *   receive, send FILE FOLDER      what qemu-nbd says, which it becomes (dir_transfer.h)
 * FILE is as qemu-img opens it, FOLDER that of the key, or empty. Exit code 0; else 1, the name of
 * the error in the first line, and the message. */
int rbd_export_main(int argc, char **argv);

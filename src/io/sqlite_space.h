/*
 * Room for what SQLite maps into memory. Called by whoever opens a store, before it does.
 */
#pragma once

/* The index of a write-ahead log (STORE-shm) is a file that all processes with the store open have
 * mapped. SQLite extends it by writing the last byte of each 4 KiB: on a file system with smaller
 * blocks the rest is holes, and who touches one when the disk is full dies of SIGBUS. From this
 * call on whoever extends one in this process gets all of its room, or is told that there is none.
 * May be called any number of times; changes nothing where SQLite is built without pwrite. */
void sqlite_space_init(void);

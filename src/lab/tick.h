/*
 * The counting guest of the lab, the demo and the tests: 512 bytes that boot from their own disk,
 * count on it and print `COUNT n` on the serial console only after the disk has confirmed n. So a
 * printed count must be found on whatever copy of the disk runs next: that is how lost writes are
 * seen. Source: tests/helper/tick.asm.
 *
 * It boots in 0.2 s in 4 MiB of memory, answers the power button, and lives through pause, reset
 * and failover.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

#define TICK_NAME_CHARS 20 /* of the name it prints at boot */
#define TICK_DELAY_MS 55   /* length of one delay tick */

/* Writes a new image of `size_mib` MiB; one count per `delay_ticks` ticks, 0: as fast as the disk
 * allows. STORAGE with the file; WRONG_INPUT for a name or a delay (0-255) that does not fit. */
bool tick_image_write(const char *path, const char *name, guint delay_ticks, guint size_mib,
                      GError **error);

/* The count on an image; 0 if it has never run. CORRUPT if the sector is neither. */
bool tick_read_state(const char *path, guint32 *ret_count, GError **error);

/* The highest count printed in a console file, whole lines only; 0 if none or if there is no such
 * file yet. */
bool tick_console_last(const char *path, guint32 *ret_count, GError **error);

/*
 * "Did you mean …?" for names of objects: `instance "wbe1" does not exist`. Used by main.c for
 * every command's error.
 */
#pragma once

#include "cli/cli.h"

/* Adds the nearest name that there is to an error about one that there is not; asks luxid for it,
 * for a short while only. Any other error stays as it is. */
void nearest_object_add(struct cli *cli, GError *error);

/*
 * proto/api/image_pipe.h over libnbd: bytes are hashed as they pass, and whoever is slower –
 * client, disk – holds the other one back, so that each takes 1.3 MiB, also where both stand still.
 */
#pragma once

#include "proto/api/image_pipe.h"

/* Needs nothing, and is nobody's to free. */
struct image_pipe *image_pipe_nbd(void);

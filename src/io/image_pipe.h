/*
 * proto/api/image_pipe.h over libnbd: bytes are hashed as they pass, a MiB at a time, and whoever
 * is slower – client, disk – holds the other one back, so that each takes ten MiB at most.
 */
#pragma once

#include "proto/api/image_pipe.h"

/* Needs nothing, and is nobody's to free. */
struct image_pipe *image_pipe_nbd(void);

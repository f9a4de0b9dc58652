/*
 * Why a guest stands still by itself, in words: for whoever tells people of it (SAF-27).
 */
#pragma once

#include "core/config/model.h"

/* "there is no room for its disks on node2", "there is no room for its volume data1 on back end
 * dir1", "its disk on node2 fails though there is room"; NULL: it does not. `node`: UUID of its
 * node. Free with g_free(). */
char *stop_why(const struct config *config, const struct guest_report *guest, const char *node);

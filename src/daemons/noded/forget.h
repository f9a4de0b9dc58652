/* `fettle-noded --forget-mastership`: core/node/forget.h with this host's bus, and no daemon. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Until it is done, and printed. ENVIRONMENT: the node daemon runs. */
bool noded_forget(const char *root, bool alone, const char *statement, GError **error);

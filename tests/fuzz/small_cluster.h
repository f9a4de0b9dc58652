/*
 * A cluster of three nodes for the fuzz targets that read documents, and what must hold of every
 * plan made for it.
 */
#pragma once

#include <string.h>

#include "core/config/invariants.h"
#include "core/import/import.h"

#define CLUSTER "cccccccc-0000-4000-8000-000000000001"

struct config *small_cluster(void);
/* A plan without problems is one that the invariants let pass. */
void check_plan(struct config *config, const struct import *import);

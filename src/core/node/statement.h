/*
 * What this node knows of each guest that it had or has, told to a master who may lack words of the
 * one before (SAF-09), with the answer to its announcement. From memory: it waits for nothing.
 */
#pragma once

#include "core/node/node_private.h"

struct announce_result *statement_make(const struct node_core *node);

/*
 * How tags of auto-repair begin, so that tags set by people and tools of Ganeti hold. Only two
 * parts include this (ARP-05): core/repair/, which reads them and acts on them, and
 * cli/commands/repair.c, which writes policies for a person. To everything else they are tags like
 * any other.
 */
#pragma once

#define REPAIR_TAG_PREFIX "ganeti:watcher:autorepair:"

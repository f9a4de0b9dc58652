/*
 * What of a node's report is an answer to the question, and what only memory (SAF-90). Used by
 * whoever concludes something from what a report does *not* say, or from what it says of a state:
 * watcher, jobs, queries. A report of an older version has no memory in it: nothing of it is late.
 */
#pragma once

#include "base/json.h"
#include "proto/records.h"

#include <stdbool.h>

/* Arguments of node_report, by which an asker says that it knows of this. A new reference. */
json_t *late_known(void);
/* The same of who acts on the answer: what was well a moment ago is looked at anew for it. */
json_t *late_known_to_actor(void);

/* Parts of a node, as late_part.part has them. */
#define PART_DISKS "disks"     /* their space, images, what is kept aside */
#define PART_SHARED "shared"   /* the folder for sharedfile: shared, shared_total, shared_free */
#define PART_SOURCES "sources" /* var/images */
#define PART_BRIDGES "bridges"

/* NULL: it has answered a look that began after the report was asked for. */
const struct late_part *late_part_of(const struct node_report *report, const char *part);

/* "no answer, last heard 12 s ago", "no answer since its node daemon began 3 min ago", "cannot be
 * read: Input/output error"; of a guest "does not answer, last heard 12 s ago". g_free() them. */
char *late_part_words(const struct late_part *part);
char *late_guest_words(const struct guest_report *guest);

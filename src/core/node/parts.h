/*
 * The parts of a node that a report asks beside its guests: its disks, the folder that all nodes
 * mount, var/images, its bridges; and what each has answered last. Used by report.c, and parts of
 * it by image_look.c and collect.c.
 */
#pragma once

#include "core/node/look.h"

struct parts;
struct parts *parts_new(const struct env *env);
void parts_free(struct parts *parts);

/* Adds a look at each. */
void parts_ask(struct parts *parts, struct look_round *round);
/* Puts what is known of them into the report, and which are late. `looks`: the asker understands
 * that; otherwise only what cannot mislead it is told from memory, and without an answer of the
 * disks there is no report (TEMPORARY). */
bool parts_report(const struct parts *parts, const struct look_round *round, bool looks,
                  struct node_report *report, GError **error);
#define IMAGES_NOT_KNOWN "whether the images are there is not known"

/* The disks alone, with the images; `shared`: the folder that all nodes mount. */
void parts_ask_images(struct parts *parts, struct look_round *round, bool shared);
/* Whether an image that was not found there is missing; TEMPORARY: nobody knows. */
bool parts_tell_images(const struct parts *parts, const struct look_round *round, bool shared,
                       GError **error);
/* Tap devices of guests, and what was seen of them: "INSTANCE TAP BRIDGE", borrowed. NULL: no
 * answer, TEMPORARY. */
void parts_ask_taps(struct parts *parts, struct look_round *round);
const GPtrArray *parts_taps(const struct parts *parts, const struct look_round *round,
                            GError **error);
/* The sets of images that were seen last: struct image_set, borrowed; NULL: none ever. */
const GPtrArray *parts_images(const struct parts *parts);

/*
 * What one report of a node says of an instance: its guest, and which of its images are there. Used
 * by whoever has asked nodes for reports: jobs, the watcher.
 */
#pragma once

#include "proto/records.h"

/* Whether the report says that the generation on record runs there. */
bool report_runs(const struct node_report *report, const struct instance *instance);
/* The version of QEMU under which it runs there; NULL: it does not. */
const char *report_qemu(const struct node_report *report, const struct instance *instance);
/* The guest of that instance in a report; NULL if it is not there. */
const struct guest_report *report_guest(const struct node_report *report,
                                        const struct instance *instance);

/* The disks that have an image in a report, as in record image_set (`replica` "": the images that
 * the instance runs from). A node of an older version names only sets: all disks, then; also while
 * its disks do not answer, because what is not seen is not missing (SAF-90): whoever needs more
 * than that asks late_part_of(). No report: none. */
guint64 report_images(const struct node_report *report, const struct instance *instance,
                      const char *replica);
/* The same of the n-th set that a report names. */
guint64 report_images_at(const struct node_report *report, guint set);
/* Whether these are all disks of the instance: a set that lacks any of its images is of no more use
 * than one that lacks all. */
bool images_are_whole(const struct instance *instance, guint64 disks);
/* Both at once. */
bool report_has_images(const struct node_report *report, const struct instance *instance,
                       const char *replica);
/* What is missing then, for a sentence: "the images", "the image of disk 1"; g_free(). */
char *images_missing(const struct instance *instance, guint64 disks);

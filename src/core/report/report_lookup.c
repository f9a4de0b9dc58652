/* See report_lookup.h. */
#include "core/report/report_lookup.h"

#include "core/report/late.h"

#include <string.h>

/* --- guests --- */

const struct guest_report *report_guest(const struct node_report *report,
                                        const struct instance *instance)
{
    for (guint i = 0; report && report->guests && i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (!strcmp(guest->instance, instance->uuid) && guest->state != GUEST_ABSENT)
            return guest;
    }
    return NULL;
}

bool report_runs(const struct node_report *report, const struct instance *instance)
{
    const struct guest_report *guest = report_guest(report, instance);
    return guest && *instance->holder && guest->generation == instance->generation &&
           guest->state == GUEST_RUNNING;
}

const char *report_qemu(const struct node_report *report, const struct instance *instance)
{
    return report_runs(report, instance) ? report->qemu_version : NULL;
}

/* --- images --- */

#define ALL_DISKS G_MAXUINT64

static guint64 disks_of(const struct instance *instance)
{
    return (G_GUINT64_CONSTANT(1) << instance->disks->len) - 1;
}

static bool is_among(const GPtrArray *names, const char *name, guint *ret_at)
{
    return names && g_ptr_array_find_with_equal_func((GPtrArray *)names, name, g_str_equal, ret_at);
}

guint64 report_images(const struct node_report *report, const struct instance *instance,
                      const char *replica)
{
    g_autofree char *name = g_strdup_printf("%s%s%s", instance->uuid, *replica ? " " : "", replica);
    guint at = 0;
    if (report && late_part_of(report, PART_DISKS))
        return ALL_DISKS; /* whatever is not in memory may be there */
    if (!report)
        return 0;
    if (is_among(report->images, name, &at))
        return report_images_at(report, at);
    /* What was left for it has another name yet. */
    return *replica && is_among(report->left, name, NULL) ? report_images(report, instance, "") : 0;
}

guint64 report_images_at(const struct node_report *report, guint set)
{
    bool told = report->image_sets && report->image_sets->len == report->images->len;
    return told ? ((const struct image_set *)report->image_sets->pdata[set])->disks : ALL_DISKS;
}

bool images_are_whole(const struct instance *instance, guint64 disks)
{
    return (disks_of(instance) & ~disks) == 0;
}

bool report_has_images(const struct node_report *report, const struct instance *instance,
                       const char *replica)
{
    return images_are_whole(instance, report_images(report, instance, replica));
}

char *images_missing(const struct instance *instance, guint64 disks)
{
    guint64 missing = disks_of(instance) & ~disks;
    g_autoptr(GString) numbers = g_string_new(NULL);
    guint count = 0;
    if (missing == disks_of(instance))
        return g_strdup("the images");
    for (guint i = 0; i < instance->disks->len; i++)
        if (missing & G_GUINT64_CONSTANT(1) << i)
            g_string_append_printf(numbers, "%s%u", count++ ? ", " : "", i);
    return g_strdup_printf(count == 1 ? "the image of disk %s" : "the images of disks %s",
                           numbers->str);
}

/*
 * The limits of instances as Ganeti's clients know them, its "instance policy". They take no
 * cluster and no group without one, and none with keys that Ganeti 3.0 does not have. Nobody sets
 * these limits here: they are the bounds of the parameters of OP_INSTANCE_CREATE.
 */
#include "core/query/query_rows.h"

/* Processors and spindles are never counted when an instance is placed, so their ratios are what no
 * node can exceed. */
#define NO_VCPU_RATIO ((double)LIMIT_NODE_GUESTS * LIMIT_VCPUS)
#define NO_SPINDLE_RATIO ((double)LIMIT_NODE_GUESTS)

/* Of what clients try to place when they ask for room. */
#define COMMON_MEMORY_MIB 128
#define COMMON_DISK_MIB 1024

static json_t *spec(guint memory, guint cpus, guint disk, guint disks, guint nics)
{
    return json_make("{si, si, si, si, si, si}", "memory-size", memory, "cpu-count", cpus,
                     "disk-size", disk, "disk-count", disks, "nic-count", nics, "spindle-use", 1);
}

/* Those who read this take it as a whole or not at all, and "mirror" is no word that they know:
 * only who is shown another one for it has it in the list. */
static json_t *templates(enum face face)
{
    static const enum disk_template known[] = {TEMPLATE_MIRROR, TEMPLATE_FILE, TEMPLATE_SHAREDFILE,
                                               TEMPLATE_DISKLESS};
    json_t *list = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        const char *word = enum_word(&disk_template_words, (int)known[i]);
        if (known[i] != TEMPLATE_MIRROR || face_word(face, "disk-templates", word) != word)
            json_array_append_new(list, json_string(word));
    }
    return list;
}

json_t *query_ipolicy(enum face face)
{
    json_t *least = spec(1, 1, 1, 0, 0);
    json_t *most = spec(LIMIT_MEMORY_MIB, LIMIT_VCPUS, LIMIT_DISK_MIB, LIMIT_DISKS, LIMIT_NICS);
    return json_make("{s[{so, so}], so, so, sf, sf}", "minmax", "min", least, "max", most, "std",
                     spec(COMMON_MEMORY_MIB, 1, COMMON_DISK_MIB, 1, 1), "disk-templates",
                     templates(face), "vcpu-ratio", NO_VCPU_RATIO, "spindle-ratio",
                     NO_SPINDLE_RATIO);
}

json_t *query_get_group_ipolicy(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return query_ipolicy(source->face);
}

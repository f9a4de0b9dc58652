/* See columns.h. */
#include "cli/columns.h"

#include <glib.h>
#include <string.h>

/* `word`: what people say; NULL: as the field. */
static const struct column_row {
    const char *what, *field, *title, *word;
} rows[] = {
    {"instance", "name", "Name", NULL},
    {"instance", "status", "State", "state"},
    {"instance", "pnode", "Node", "node"},
    {"instance", "snodes", "Secondary", "secondary"},
    {"instance", "replica.at", "Replica", NULL},
    {"instance", "replica.state", "ReplicaState", NULL},
    {"instance", "disk_template", "Template", "template"},
    {"instance", "be/memory", "Memory", "memory"},
    {"instance", "be/vcpus", "CPUs", "cpus"},
    {"instance", "nic.ips", "Address", "address"},
    {"node", "name", "Name", NULL},
    {"node", "pip", "Address", "address"},
    {"node", "pinst_cnt", "Guests", "guests"},
    {"node", "sinst_cnt", "Replicas", "replicas"},
    {"node", "mtotal", "Memory", "memory"},
    {"node", "mfree", "MemFree", "memfree"},
    {"node", "dtotal", "Disk", "disk"},
    {"node", "dfree", "DiskFree", "diskfree"},
    {"node", "ctotal", "CPUs", "cpus"},
    {"group", "name", "Name", NULL},
    {"group", "node_cnt", "Nodes", "nodes"},
    {"group", "pinst_cnt", "Guests", "guests"},
    {"service", "name", "Name", NULL},
    {"network", "name", "Name", NULL},
    {"network", "inst_cnt", "Guests", "guests"},
    {"network", "free_count", "Free", "free"},
    {"backend", "name", "Name", NULL},
    {"backend", "size", "GiB", "gib"},
    {"volume", "name", "Name", NULL},
    {"volume", "size", "GiB", "gib"},
    {"volume_type", "name", "Name", NULL},
    {"snapshot", "name", "Name", NULL},
    {"snapshot", "size", "GiB", "gib"},
    {"backup", "name", "Name", NULL},
    {"backup", "size", "GiB", "gib"},
    {"image", "name", "Name", NULL},
    {"image", "gib", "GiB", "gib"},
    {"task", "subject_name", "Name", "name"},
    {"job", "status", "State", "state"},
    {"job", "received_ts", "Received", "received"},
    {"job", "start_ts", "Started", "started"},
    {"job", "end_ts", "Ended", "ended"},
};

const char *columns_field(const char *what, const char *word)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].word != NULL && strcmp(rows[i].what, what) == 0 &&
            strcmp(rows[i].word, word) == 0)
            return rows[i].field;
    return word;
}

const char *columns_title(const char *what, const char *field)
{
    for (gsize i = 0; what != NULL && i < G_N_ELEMENTS(rows); i++)
        if (strcmp(rows[i].what, what) == 0 && strcmp(rows[i].field, field) == 0)
            return rows[i].title;
    return NULL;
}

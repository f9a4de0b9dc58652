/*
 * What guests were told: every acknowledged write, and every one that may or may not be found after
 * a crash; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

struct fake_truth *fake_truth_get(struct fake_hosts *hosts, const char *instance, guint count)
{
    struct fake_truth *truth = g_hash_table_lookup(hosts->truths, instance);
    if (truth)
        return truth;
    truth = g_new0(struct fake_truth, 1);
    truth->instance = g_strdup(instance);
    truth->count = count;
    truth->acked = g_new0(guint64, LIMIT_DISKS * FAKE_BLOCKS + 1); /* disks may be added */
    truth->maybe = g_array_new(FALSE, TRUE, sizeof(struct fake_write));
    g_hash_table_insert(hosts->truths, truth->instance, truth);
    return truth;
}

void fake_truth_free(void *data)
{
    struct fake_truth *truth = data;
    g_array_unref(truth->maybe);
    g_free(truth->acked);
    g_free(truth->instance);
    g_free(truth);
}

void fake_truth_problem(struct fake_hosts *hosts, const char *format, ...)
{
    va_list args;
    if (hosts->problem)
        return; /* the first one tells most */
    va_start(args, format);
    hosts->problem = g_strdup_vprintf(format, args);
    va_end(args);
}

void fake_hosts_set_witness(struct fake_hosts *hosts, fake_hosts_witness witness, void *data)
{
    hosts->witness = witness;
    hosts->witness_data = data;
}

static bool block_is_good(const struct fake_truth *truth, guint block, guint64 value)
{
    if (value == truth->acked[block])
        return true;
    for (guint i = 0; i < truth->maybe->len; i++) {
        const struct fake_write *write = &g_array_index(truth->maybe, struct fake_write, i);
        if (write->block == block && write->value == value)
            return true;
    }
    return false;
}

/* A copy that is cut off from its replica runs, too, but nothing that it writes is acknowledged. */
void fake_truth_resume(const struct fake_guest *guest)
{
    const struct fake_hosts *hosts = guest->host->hosts;
    for (guint i = 0; i < hosts->all->len; i++) {
        const struct fake_host *host = hosts->all->pdata[i];
        const struct fake_guest *other = fake_guest_find(host, guest->instance);
        if (other && other != guest && other->state == GUEST_RUNNING && !fake_guest_mirrors(other))
            fake_truth_problem(guest->host->hosts,
                               "%s runs on %s (generation %" G_GUINT64_FORMAT
                               ") and on %s (generation %" G_GUINT64_FORMAT ")",
                               guest->instance, guest->host->node, guest->generation, host->node,
                               other->generation);
    }
}

void fake_truth_run(struct fake_guest *guest)
{
    fake_truth_resume(guest);
    struct fake_hosts *hosts = guest->host->hosts;
    const struct fake_image *image = guest->image;
    fake_hosts_touch(hosts, guest->instance);
    guint count = image ? image->count : 0;
    struct fake_truth *truth = fake_truth_get(hosts, guest->instance, count);
    if (guest->generation < truth->generation)
        fake_truth_problem(hosts,
                           "generation %" G_GUINT64_FORMAT " of %s runs on %s after generation "
                           "%" G_GUINT64_FORMAT,
                           guest->generation, guest->instance, guest->host->node,
                           truth->generation);
    for (guint i = 0; i < count; i++) {
        if (!block_is_good(truth, i, image->blocks[i]))
            fake_truth_problem(hosts,
                               "generation %" G_GUINT64_FORMAT " of %s on %s finds write "
                               "%" G_GUINT64_FORMAT " in block %u where %" G_GUINT64_FORMAT
                               " was acknowledged",
                               guest->generation, guest->instance, guest->host->node,
                               image->blocks[i], i, truth->acked[i]);
        truth->acked[i] = image->blocks[i]; /* from now on it is what the guest has seen */
    }
    if (guest->generation != truth->generation)
        g_array_set_size(truth->maybe, 0);
    truth->generation = MAX(truth->generation, guest->generation);
}

void fake_truth_issue(struct fake_guest *guest, const struct fake_write *write)
{
    struct fake_truth *truth =
        fake_truth_get(guest->host->hosts, guest->instance, guest->image->count);
    if (truth->generation == guest->generation)
        g_array_append_val(truth->maybe, *write);
}

void fake_truth_acknowledge(struct fake_guest *guest, const struct fake_write *write)
{
    struct fake_hosts *hosts = guest->host->hosts;
    struct fake_truth *truth = fake_truth_get(hosts, guest->instance, guest->image->count);
    if (truth->generation != guest->generation) {
        if (write->remote)
            return; /* it had reached the replica before that was promoted: nothing is missing */
        fake_truth_problem(hosts,
                           "a write was acknowledged to generation %" G_GUINT64_FORMAT
                           " of %s on %s after generation %" G_GUINT64_FORMAT " ran",
                           guest->generation, guest->instance, guest->host->node,
                           truth->generation);
        return;
    }
    fake_hosts_touch(hosts, guest->instance);
    truth->acked[write->block] = write->value;
    truth->acknowledged++;
    for (guint i = truth->maybe->len; i > 0; i--) {
        const struct fake_write *other = &g_array_index(truth->maybe, struct fake_write, i - 1);
        if (other->block == write->block)
            g_array_remove_index_fast(truth->maybe, i - 1);
    }
}

bool fake_hosts_whole(const struct fake_hosts *hosts, const char *node_uuid, const char *instance,
                      const char *replica)
{
    const struct fake_host *host = fake_host_find(hosts, node_uuid);
    const struct fake_image *image = host ? fake_image_find(host, instance, replica) : NULL;
    const struct fake_truth *truth = g_hash_table_lookup(hosts->truths, instance);
    if (!image)
        return false;
    for (guint i = 0; truth && i < image->count; i++)
        if (!block_is_good(truth, i, image->blocks[i]))
            return false;
    return true;
}

bool fake_hosts_replica_whole(const struct fake_hosts *hosts, const char *node_uuid,
                              const char *instance, const char *replica)
{
    const struct fake_host *host = fake_host_find(hosts, node_uuid);
    bool named = host && fake_image_find(host, instance, replica);
    return fake_hosts_whole(hosts, node_uuid, instance, named ? replica : "");
}

bool fake_hosts_primary_whole(const struct fake_hosts *hosts, const char *node_uuid,
                              const char *instance)
{
    const struct fake_host *host = fake_host_find(hosts, node_uuid);
    bool whole = fake_hosts_whole(hosts, node_uuid, instance, "");
    bool named = host && fake_image_find(host, instance, "");
    for (guint i = 0; host && !named && !whole && i < host->images->len; i++) {
        const struct fake_image *image = host->images->pdata[i];
        whole = strcmp(image->instance, instance) == 0 &&
                fake_hosts_whole(hosts, node_uuid, instance, image->replica);
    }
    return whole;
}

bool fake_hosts_kept_whole(const struct fake_hosts *hosts, const char *node_uuid,
                           const char *instance)
{
    const struct fake_host *host = fake_host_find(hosts, node_uuid);
    const struct fake_truth *truth = g_hash_table_lookup(hosts->truths, instance);
    bool whole = false;
    for (guint i = 0; host && truth && !whole && i < host->aside->len; i++) {
        const struct fake_image *image = host->aside->pdata[i];
        whole = strcmp(image->instance, instance) == 0;
        for (guint j = 0; whole && j < image->count; j++)
            whole = block_is_good(truth, j, image->blocks[j]);
    }
    return whole;
}

bool fake_hosts_equal(const struct fake_hosts *hosts, const char *instance, const char *node_a,
                      const char *replica_a, const char *node_b, const char *replica_b)
{
    const struct fake_host *host_a = fake_host_find(hosts, node_a);
    const struct fake_host *host_b = fake_host_find(hosts, node_b);
    const struct fake_image *a = fake_image_find(host_a, instance, replica_a);
    const struct fake_image *b = fake_image_find(host_b, instance, replica_b);
    return a && b && a->count == b->count &&
           memcmp(a->blocks, b->blocks, a->count * sizeof *a->blocks) == 0;
}

guint64 fake_hosts_acknowledged(const struct fake_hosts *hosts, const char *instance)
{
    const struct fake_truth *truth = g_hash_table_lookup(hosts->truths, instance);
    return truth ? truth->acknowledged : 0;
}

void fake_hosts_give_up(struct fake_hosts *hosts, const char *instance, guint disks)
{
    struct fake_truth *truth = g_hash_table_lookup(hosts->truths, instance);
    if (!truth)
        return;
    fake_hosts_touch(hosts, instance);
    /* What may be there stays that, also after a second one: none has run in between. */
    for (guint i = 0; i < MIN(truth->count, disks * FAKE_BLOCKS); i++) {
        struct fake_write old = {.block = i, .value = truth->acked[i]};
        if (old.value != 0)
            g_array_append_val(truth->maybe, old); /* whoever fails may have left it */
        truth->acked[i] = 0;
    }
}

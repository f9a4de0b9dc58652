/*
 * From nodes to a cluster (form.h).
 */
#include "lab/form.h"

#include "io/process.h"
#include "lab/run.h"

#define REPLICA_LOST_MS                                                                            \
    1000 /* the lab's own choice: shorter than a real cluster's, so that tests are quick */
#define WATCHER_INTERVAL_MS 200
#define CANDIDATES "1" /* who is a candidate in a lab is what was asked for, and nobody else */

/* Runs `fettle --root NODE1 …`; the list of arguments ends with NULL. */
static bool fettle(const struct layout *layout, const char *const *arguments, GError **error)
{
    g_autofree char *program = program_path("fettle");
    g_autofree char *root = layout_root(layout, 1);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, program);
    g_ptr_array_add(argv, (void *)"--root");
    g_ptr_array_add(argv, root);
    for (; *arguments; arguments++)
        g_ptr_array_add(argv, (void *)*arguments);
    g_ptr_array_add(argv, NULL);
    return run_program((const char *const *)argv->pdata, NULL, error);
}

static bool init_cluster(const struct layout *layout, const struct lab_options *options,
                         GError **error)
{
    guint lost_ms = options->replica_lost_ms ? options->replica_lost_ms : REPLICA_LOST_MS;
    guint interval_ms =
        options->watcher_interval_ms ? options->watcher_interval_ms : WATCHER_INTERVAL_MS;
    g_autofree char *address = layout_address(layout, 1);
    g_autofree char *lost = g_strdup_printf("%u", lost_ms);
    g_autofree char *interval = g_strdup_printf("%u", interval_ms);
    const char *accelerator = options->accelerator ? options->accelerator : "tcg";
    const char *arguments[] = {"cluster",   "init",
                               "lab",       "--node-name",
                               "node1",     "--primary-ip",
                               address,     "--accelerator",
                               accelerator, "--replica-lost-ms",
                               lost,        "--watcher-interval-ms",
                               interval,    "--candidate-pool-size",
                               CANDIDATES,  NULL};
    return fettle(layout, arguments, error);
}

static bool add_node(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *name = g_strdup_printf("node%u", node);
    g_autofree char *address = layout_address(layout, node);
    const char *uuid = g_ptr_array_index(layout->node_uuids, node - 1);
    bool candidate = node <= layout->candidates;
    const char *arguments[] = {
        "node",  "add",         name, "--primary-ip",
        address, "--node-uuid", uuid, candidate ? "--master-candidate" : NULL,
        NULL};
    return fettle(layout, arguments, error);
}

static bool change_to_etcd(const struct layout *layout, GError **error)
{
    const char *arguments[] = {"cluster", "engine", "etcd", "--yes", NULL};
    return fettle(layout, arguments, error) &&
           lab_wait_ready(layout->dir, NULL, LAB_READY_MS, error);
}

bool form_cluster(const struct layout *layout, const struct lab_options *options, GError **error)
{
    if (!init_cluster(layout, options, error) || !lab_enable_master(layout->dir, error) ||
        !lab_wait_ready(layout->dir, "node1", LAB_READY_MS, error))
        return false;
    for (guint node = 2; node <= layout->nodes; node++)
        if (!add_node(layout, node, error))
            return false;
    for (guint node = 2; node <= layout->candidates; node++) {
        g_autofree char *name = g_strdup_printf("node%u", node);
        if (!lab_wait_ready(layout->dir, name, LAB_READY_MS, error))
            return false;
    }
    return !options->etcd || change_to_etcd(layout, error);
}

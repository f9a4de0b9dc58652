/*
 * Hosts on which something hangs; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

void fake_host_hang(struct fake_host *host, const char *what, bool hangs)
{
    if (hangs)
        g_hash_table_add(host->hangs, g_strdup(what));
    else if (what == NULL)
        g_hash_table_remove_all(host->hangs);
    else
        g_hash_table_remove(host->hangs, what);
}

bool fake_host_hangs(const struct fake_host *host, const char *what)
{
    return g_hash_table_size(host->hangs) > 0 &&
           (what == NULL || g_hash_table_contains(host->hangs, what));
}

bool fake_op_comes_back(const struct fake_host *host, const char *op)
{
    while (fake_host_hangs(host, op))
        if (!env_sleep(host->env, FAKE_TICK_MS))
            return false;
    return true;
}

/* Whether the op is one that the process of the guest has to answer. */
static bool asks_monitor(const char *op)
{
    static const char *const ops[] = {
        "query",          "run",           "pause",         "reset",
        "powerdown",      "mirror_start",  "mirror_finish", "mirror_release",
        "announce",       "migrate_start", "migrate_query", "migrate_continue",
        "migrate_cancel", "disk_resize",   "io_query",      "go_on",
        "drives"};
    for (guint i = 0; i < G_N_ELEMENTS(ops); i++)
        if (strcmp(ops[i], op) == 0)
            return true;
    return false;
}

bool fake_op_hangs(const struct fake_host *host, const char *op, const char *instance)
{
    return asks_monitor(op) && fake_host_hangs(host, instance);
}

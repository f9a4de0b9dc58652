/* What is on a fake host that no node daemon has made; see fake_hv.h. */
#include "helper/fake_hv_private.h"

void fake_strays_init(struct fake_host *host)
{
    host->stray_processes = g_ptr_array_new_with_free_func(g_free);
    host->stray_files = g_ptr_array_new_with_free_func(g_free);
}

void fake_strays_clear(struct fake_host *host)
{
    g_ptr_array_unref(host->stray_processes);
    g_ptr_array_unref(host->stray_files);
}

GPtrArray *fake_hv_strays(struct hypervisor *hv, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_op_begin(host, "processes", "", NULL, error))
        return NULL;
    GPtrArray *strays = g_ptr_array_new_with_free_func((GDestroyNotify)stray_free);
    for (guint i = 0; i < host->stray_processes->len; i++) {
        const char *name = host->stray_processes->pdata[i];
        struct stray *stray = stray_new();
        g_free(stray->identity);
        stray->identity = g_strdup_printf("name %s", name);
        g_free(stray->name);
        stray->name = g_strdup(name);
        stray->pid = 4000 + i;
        g_ptr_array_add(strays, stray);
    }
    return strays;
}

GPtrArray *fake_storage_strays(struct storage *storage, GError **error)
{
    struct fake_host *host =
        (struct fake_host *)((char *)storage - G_STRUCT_OFFSET(struct fake_host, storage));
    if (!fake_op_begin(host, "files", "", NULL, error))
        return NULL;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < host->stray_files->len; i++)
        g_ptr_array_add(names, g_strdup(host->stray_files->pdata[i]));
    return names;
}

static void set(GPtrArray *list, const char *name, bool there)
{
    guint at = 0;
    bool has = g_ptr_array_find_with_equal_func(list, name, g_str_equal, &at);
    if (there && !has)
        g_ptr_array_add(list, g_strdup(name));
    else if (!there && has)
        g_ptr_array_remove_index(list, at);
}

void fake_host_set_process(struct fake_host *host, const char *name, bool there)
{
    set(host->stray_processes, name, there);
}

void fake_host_set_file(struct fake_host *host, const char *name, bool there)
{
    set(host->stray_files, name, there);
}

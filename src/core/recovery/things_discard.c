/* See things_discard.h. */
#include "core/recovery/things_discard.h"

#include <string.h>

#include "base/log.h"
#include "core/recovery/stored_sights.h"
#include "proto/storage/volume_driver.h"

/* As it is now; NULL: nobody knows, or it is to stay. */
static const struct stored_data *half_made(const struct stored_sights *sights,
                                           const struct resource *resource, const char *name)
{
    const char *silent;
    const struct stored_sight *sight = stored_sights_of(sights, resource, &silent);
    if (!sight || *sight->busy || *sight->silent)
        return NULL;
    for (guint i = 0; i < sight->data->len; i++) {
        const struct stored_data *data = sight->data->pdata[i];
        if (!strcmp(data->name, name))
            return data->half && !data->open ? data : NULL;
    }
    return NULL;
}

/* What is refused was told already, and a person sees it there. */
static void discard(const struct watcher *watcher, const char *backend,
                    const struct stored_data *data)
{
    g_autofree char *commit_id = env_uuid(watcher->env);
    const struct discard_data_args args = {.commit_id = commit_id,
                                           .backend = (char *)backend,
                                           .resource_type = data->resource_type,
                                           .name = data->name,
                                           .bytes = data->bytes};
    g_autoptr(GError) error = NULL;
    record_autoptr(commit_result) result =
        env_call_record(watcher->env, NODE_LOCAL, ROLE_WCONFD, "discard_data", &args,
                        follow_stamp(watcher->follow), 0, 0, &error);
    if (!result && !fettle_error_is(error, KILLED))
        log_warning("", "%s stays: %s", data->name, error->message);
}

void things_discard(const struct watcher *watcher, const char *backend, const GPtrArray *found)
{
    if (watcher_shadow(watcher) || !found->len ||
        watcher_cluster(watcher)->recovery_rectify_unstable != RECTIFY_ALL)
        return;
    g_autoptr(GPtrArray) subjects = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < MIN(found->len, LIMIT_WORK_ITEMS); i++) {
        const struct stored_data *data = found->pdata[i];
        struct stored_subject_now subject = {.resource = resource_read(data->resource_type, NULL)};
        char *uuid = NULL;
        guint64 claim;
        volume_data_parse(data->name, &uuid, &claim);
        g_ptr_array_add(uuids, uuid);
        subject.resource.uuid = uuid ? uuid : "";
        subject.resource.backend = backend;
        g_ptr_array_add(subjects, g_memdup2(&subject, sizeof subject));
    }
    struct stored_sights *sights = stored_sights_ask(watcher, subjects);
    for (guint i = 0; sights && i < subjects->len && !task_killed(); i++) {
        const struct stored_subject_now *subject = subjects->pdata[i];
        const struct stored_data *data = found->pdata[i];
        const struct stored_data *half = half_made(sights, &subject->resource, data->name);
        if (half)
            discard(watcher, backend, half);
    }
    stored_sights_free(sights);
}

/* See things_discard.h. */
#include "core/recovery/things_discard.h"

#include <string.h>

#include "base/log.h"
#include "core/config/resource.h"
#include "core/recovery/stored_sights.h"
#include "core/recovery/things.h"
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
                    const struct stored_data *half, void *data)
{
    g_autofree char *commit_id = env_uuid(watcher->env);
    const struct discard_data_args args = {.commit_id = commit_id,
                                           .backend = (char *)backend,
                                           .resource_type = half->resource_type,
                                           .name = half->name,
                                           .bytes = half->bytes};
    g_autoptr(GError) error = NULL;
    record_autoptr(commit_result) result =
        env_call_record(watcher->env, NODE_LOCAL, ROLE_WCONFD, "discard_data", &args,
                        follow_stamp(watcher->follow), 0, 0, &error);
    if (!result && !fettle_error_is(error, KILLED))
        log_warning("", "%s stays: %s", half->name, error->message);
}

/* What the head would refuse for sure (discard_data): it may be what a record without data comes
 * to, or is on its way. */
static bool is_nobodys(const struct config *config, const char *backend,
                       const struct stored_data *one, const char *uuid, guint64 claim)
{
    const struct resource resource = resource_of(config, one->resource_type, uuid);
    g_autofree char *key = config_trash_key(backend, one->name);
    return !(resource.exists && !*resource.data) && strcmp(resource.data, one->name) != 0 &&
           claim <= config_serial(config) && !config_get(config, "trash", key, NULL);
}

typedef void (*half_made_fn)(const struct watcher *watcher, const char *backend,
                             const struct stored_data *half, void *data);

/* Members look at each of them once more. False: the process is killed. */
static bool each_half_made(const struct watcher *watcher, const char *backend,
                           const GPtrArray *found, half_made_fn take, void *data)
{
    g_autoptr(GPtrArray) subjects = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) asked = g_ptr_array_new();
    for (guint i = 0; i < found->len && asked->len < LIMIT_WORK_ITEMS; i++) {
        const struct stored_data *one = found->pdata[i];
        struct stored_subject_now subject = {.resource = resource_read(one->resource_type, NULL)};
        char *uuid = NULL;
        guint64 claim;
        if (!volume_data_parse(one->name, &uuid, &claim))
            continue;
        g_ptr_array_add(uuids, uuid);
        if (!is_nobodys(follow_config(watcher->follow), backend, one, uuid, claim))
            continue;
        g_ptr_array_add(asked, found->pdata[i]);
        subject.resource.uuid = uuid;
        subject.resource.backend = backend;
        g_ptr_array_add(subjects, g_memdup2(&subject, sizeof subject));
    }
    if (!asked->len)
        return true;
    struct stored_sights *sights = stored_sights_ask(watcher, subjects);
    for (guint i = 0; sights && i < subjects->len && !task_killed(); i++) {
        const struct stored_subject_now *subject = subjects->pdata[i];
        const struct stored_data *one = asked->pdata[i];
        const struct stored_data *half = half_made(sights, &subject->resource, one->name);
        if (half)
            take(watcher, backend, half, data);
    }
    bool alive = sights != NULL;
    stored_sights_free(sights);
    return alive;
}

static bool discards(const struct watcher *watcher)
{
    return watcher_cluster(watcher)->recovery_rectify_unstable == RECTIFY_ALL;
}

void things_discard(const struct watcher *watcher, const char *backend, const GPtrArray *found)
{
    if (!watcher_shadow(watcher) && discards(watcher))
        each_half_made(watcher, backend, found, discard, NULL);
}

/* --- what would be --- */

static void add_row(const struct watcher *watcher, const char *backend,
                    const struct stored_data *half, void *rows)
{
    const struct backend *at = config_get(follow_config(watcher->follow), "backend", backend, NULL);
    g_autofree char *name =
        g_strdup_printf("%ss/%s", resource_kind(half->resource_type), half->name);
    g_autofree char *why =
        g_strdup_printf("it is not marked whole, no record names it, and recovery_rectify_unstable "
                        "is all; %" G_GUINT64_FORMAT " MiB of back end %s",
                        half->bytes / MIB(1), at ? at->name : backend);
    json_array_append_new(
        rows, json_make("{ss ss ss ss so so ss ss si ss sb ss so ss ss ss s[] ss}", "subject_kind",
                        "data", "subject", half->name, "subject_name", name, "task", "", "since",
                        json_null(), "owner", json_null(), "owner_state", "", "owner_why", "",
                        "looks", 0, "outcome", "discarded", "on_retry", false, "state", "",
                        "finisher", json_null(), "why", why, "rule", "RCV-23", "summary", "",
                        "evidence", "next", "at the next look at the back end"));
}

/* As it was told: "volumes/NAME". */
static struct stored_data *data_of(const struct decision *decision)
{
    const char *slash = strchr(decision->subject_name, '/');
    for (guint type = 0; slash && resource_type_words.words[type]; type++) {
        g_autofree char *folder = g_strdup_printf("%ss", resource_kind((enum resource_type)type));
        if (strlen(folder) != (gsize)(slash - decision->subject_name) ||
            !g_str_has_prefix(decision->subject_name, folder))
            continue;
        struct stored_data *data = stored_data_new();
        data->resource_type = (enum resource_type)type;
        text_set(&data->name, slash + 1);
        return data;
    }
    return NULL;
}

static void free_data(void *data)
{
    stored_data_free(data);
}

static GPtrArray *told_of(const struct watcher *view, const struct decisions *decisions,
                          const struct backend *backend)
{
    const struct config *config = follow_config(view->follow);
    g_autofree char *host = things_host_name(backend);
    g_autoptr(GPtrArray) subjects = decisions_open_subjects(decisions, THINGS_AUTHOR);
    GPtrArray *told = g_ptr_array_new_with_free_func(free_data);
    for (guint i = 0; i < subjects->len; i++) {
        const struct decision *decision =
            decisions_latest(decisions, config, subjects->pdata[i], THINGS_AUTHOR);
        bool goes =
            strcmp(decision->host, host) == 0 && !things_is_ignored(view, decision->subject_name);
        struct stored_data *data = goes ? data_of(decision) : NULL;
        if (data)
            g_ptr_array_add(told, data);
    }
    return told;
}

bool things_discard_plan(const struct watcher *view, json_t *rows)
{
    const struct config *config = follow_config(view->follow);
    g_autoptr(GPtrArray) backends = config_list(config, "backend");
    struct decisions *decisions = decisions_new();
    bool alive = true;
    if (discards(view))
        decisions_update(decisions, config, NULL);
    for (guint i = 0; alive && i < backends->len; i++) {
        const struct backend *backend = backends->pdata[i];
        g_autoptr(GPtrArray) told = told_of(view, decisions, backend);
        alive = each_half_made(view, backend->uuid, told, add_row, rows);
    }
    decisions_free(decisions);
    return alive;
}

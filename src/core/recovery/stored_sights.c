/* See stored_sights.h. */
#include "core/recovery/stored_sights.h"

#include <string.h>

#include "proto/env_many.h"

struct stored_sights {
    GPtrArray *asked; /* struct stored_asked */
};

static void asked_free(void *data)
{
    struct stored_asked *asked = data;
    g_free(asked->backend);
    g_free(asked->node);
    g_free(asked->silent);
    if (asked->result)
        collect_stored_result_free(asked->result);
    g_ptr_array_unref(asked->subjects);
    g_free(asked);
}

void stored_sights_free(struct stored_sights *sights)
{
    if (!sights)
        return;
    g_ptr_array_unref(sights->asked);
    g_free(sights);
}

static void free_subject(void *subject)
{
    stored_subject_free(subject);
}

/* --- whom to ask --- */

/* Up on record, of a node that has given a report: a dead one holds nobody up. */
static bool may_ask(const struct watcher *watcher, const struct storage_service *service,
                    const char *backend)
{
    return !strcmp(service->backend, backend) && service->binary == STORAGE_VOLUME &&
           service->state == STORAGE_UP && reports_of(watcher->reports, service->node);
}

static bool is_asked(const struct stored_sights *sights, const char *backend)
{
    for (guint i = 0; i < sights->asked->len; i++)
        if (!strcmp(((const struct stored_asked *)sights->asked->pdata[i])->backend, backend))
            return true;
    return false;
}

static GPtrArray *subjects_of(const GPtrArray *subjects, const char *backend)
{
    GPtrArray *those = g_ptr_array_new_with_free_func(free_subject);
    for (guint i = 0; i < subjects->len; i++) {
        const struct resource *resource =
            &((const struct stored_subject_now *)subjects->pdata[i])->resource;
        const struct stored_subject question = {resource->type, (char *)resource->uuid};
        if (!strcmp(resource->backend, backend))
            g_ptr_array_add(those, stored_subject_copy(&question));
    }
    return those;
}

static void want(const struct watcher *watcher, struct stored_sights *sights,
                 const GPtrArray *subjects, const char *backend)
{
    g_autoptr(GPtrArray) services = config_list(follow_config(watcher->follow), "storage_service");
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (!may_ask(watcher, service, backend))
            continue;
        struct stored_asked *asked = g_new0(struct stored_asked, 1);
        asked->backend = g_strdup(backend);
        asked->node = g_strdup(service->node);
        asked->subjects = subjects_of(subjects, backend);
        g_ptr_array_add(sights->asked, asked);
    }
}

/* --- their answers --- */

/* An answer that is not one to the question counts for nothing (RCV-20). */
static bool answers(const struct stored_asked *asked, const struct collect_stored_result *result)
{
    bool same = !strcmp(result->node, asked->node) && result->sights->len == asked->subjects->len;
    for (guint i = 0; same && i < result->sights->len; i++) {
        const struct stored_sight *sight = result->sights->pdata[i];
        const struct stored_subject *subject = asked->subjects->pdata[i];
        same = sight->resource_type == subject->resource_type &&
               !strcmp(sight->resource, subject->resource);
    }
    return same;
}

static bool take_answer(struct env_answer *heard, void *data)
{
    struct stored_sights *sights = data;
    struct stored_asked *asked = sights->asked->pdata[heard->index];
    if (!heard->record)
        asked->silent =
            g_strdup(env_no_answer(heard->error) ? "gave no answer" : heard->error->message);
    else if (!answers(asked, heard->record))
        asked->silent = g_strdup("answered about something else");
    else
        asked->result = g_steal_pointer(&heard->record);
    return false;
}

static bool ask_all(const struct watcher *watcher, struct stored_sights *sights)
{
    guint count = sights->asked->len;
    g_autofree json_t **each = g_new0(json_t *, count + 1);
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    for (guint i = 0; i < count; i++) {
        struct stored_asked *asked = sights->asked->pdata[i];
        const struct collect_stored_args args = {asked->backend, asked->subjects};
        g_ptr_array_add(nodes, asked->node);
        each[i] = collect_stored_args_to_json(&args);
    }
    const struct env_question question = {.nodes = nodes,
                                          .role = ROLE_VOLUMED,
                                          .method = "collect_stored",
                                          .each = each,
                                          .stamp = follow_stamp(watcher->follow),
                                          .limit_ms = LIMIT_COLLECT_WAIT_MS};
    bool alive = !count || env_many(watcher->env, &question, take_answer, sights);
    for (guint i = 0; i < count; i++)
        json_decref(each[i]);
    return alive;
}

struct stored_sights *stored_sights_ask(const struct watcher *watcher, const GPtrArray *subjects)
{
    struct stored_sights *sights = g_new0(struct stored_sights, 1);
    sights->asked = g_ptr_array_new_with_free_func(asked_free);
    for (guint i = 0; i < subjects->len; i++) {
        const char *backend =
            ((const struct stored_subject_now *)subjects->pdata[i])->resource.backend;
        if (*backend && !is_asked(sights, backend))
            want(watcher, sights, subjects, backend);
    }
    if (ask_all(watcher, sights))
        return sights;
    stored_sights_free(sights);
    return NULL;
}

const struct stored_sight *stored_sights_by(const struct stored_asked *asked,
                                            const struct resource *resource)
{
    for (guint i = 0; asked->result && i < asked->result->sights->len; i++) {
        const struct stored_sight *sight = asked->result->sights->pdata[i];
        if (sight->resource_type == resource->type && !strcmp(sight->resource, resource->uuid))
            return sight;
    }
    return NULL;
}

const struct stored_sight *stored_sights_of(const struct stored_sights *sights,
                                            const struct resource *resource,
                                            const char **ret_silent)
{
    const struct stored_sight *best = NULL;
    *ret_silent = "no volume service of its back end is up";
    for (guint i = 0; i < sights->asked->len; i++) {
        const struct stored_asked *asked = sights->asked->pdata[i];
        const struct stored_sight *sight = stored_sights_by(asked, resource);
        if (strcmp(asked->backend, resource->backend) != 0)
            continue;
        if (asked->silent)
            *ret_silent = asked->silent;
        if (sight && (*sight->busy || !best || (*best->silent && !*sight->silent)) &&
            !(best && *best->busy))
            best = sight;
    }
    return best;
}

GPtrArray *stored_sights_asked(const struct stored_sights *sights, const char *backend)
{
    GPtrArray *those = g_ptr_array_new();
    for (guint i = 0; i < sights->asked->len; i++) {
        struct stored_asked *asked = sights->asked->pdata[i];
        if (!strcmp(asked->backend, backend))
            g_ptr_array_add(those, asked);
    }
    return those;
}

/* Data that no record knows, and records whose data is not there; see verify_look.h. */
#include "core/verify/verify_look.h"

#include <string.h>

#include "base/limits.h"
#include "core/config/resource.h"
#include "proto/env_many.h"

/* One member of one back end. */
struct compared {
    char *backend, *node; /* UUIDs */
    char *why;            /* it has not; NULL: `result` */
    struct compare_stored_result *result;
};

static void compared_free(void *data)
{
    struct compared *compared = data;
    g_free(compared->backend);
    g_free(compared->node);
    g_free(compared->why);
    if (compared->result)
        compare_stored_result_free(compared->result);
    g_free(compared);
}

static bool take_answer(struct env_answer *answer, void *data)
{
    struct look *look = data;
    struct compared *compared = look->stored->pdata[answer->index];
    if (answer->record)
        compared->result = g_steal_pointer(&answer->record);
    else
        compared->why =
            g_strdup(env_no_answer(answer->error) ? "no answer" : answer->error->message);
    return false;
}

/* All at once, so that one whose back end hangs holds up no other for long. Of nodes that are
 * silent, and services that are down, is said that. */
bool stored_ask(struct look *look)
{
    const struct config *config = follow_config(look->queries->follow);
    g_autoptr(GPtrArray) services = config_list(config, "storage_service");
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    g_autofree json_t **each = g_new0(json_t *, services->len + 1);
    look->stored = g_ptr_array_new_with_free_func(compared_free);
    for (guint i = 0; look_whole(look) && i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        const struct compare_stored_args args = {.backend = service->backend};
        if (service->binary != STORAGE_VOLUME || service->state != STORAGE_UP ||
            !reports_of(look->reports, service->node))
            continue;
        struct compared *compared = g_new0(struct compared, 1);
        compared->backend = g_strdup(service->backend);
        compared->node = g_strdup(service->node);
        each[look->stored->len] = compare_stored_args_to_json(&args);
        g_ptr_array_add(look->stored, compared);
        g_ptr_array_add(nodes, compared->node);
    }
    const struct env_question question = {.nodes = nodes,
                                          .role = ROLE_VOLUMED,
                                          .method = "compare_stored",
                                          .each = each,
                                          .stamp = follow_stamp(look->queries->follow),
                                          .limit_ms = LIMIT_COLLECT_WAIT_MS};
    bool alive = !nodes->len || env_many(look->queries->env, &question, take_answer, look);
    for (guint i = 0; i < look->stored->len; i++)
        json_decref(each[i]);
    return alive;
}

/* --- findings --- */

static void find_unknown(struct look *look, const struct backend *backend,
                         const struct stored_data *data)
{
    const char *kind = resource_kind(data->resource_type);
    look_note(look,
              "back end %s: has data of %s %s that no record knows: %ss/%s, %" G_GUINT64_FORMAT
              " MiB. What may be of a record that was lost stays there, everything else is swept "
              "within an hour (docs/guide/volumes.md)",
              backend->name, resource_article(data->resource_type), kind, kind, data->name,
              data->bytes / MIB(1));
}

/* By what is on record now. */
static void find_missing(struct look *look, const struct backend *backend,
                         const struct missing_data *data)
{
    struct resource resource = resource_of(look->config, data->resource_type, data->resource);
    const char *kind = resource_kind(data->resource_type);
    if (!resource.exists || strcmp(resource.data, data->name) != 0)
        return;
    g_autofree char *share = resource_share_text(&resource, data->bytes);
    look_problem(
        look,
        "%s %s: its data %s %s%s on back end %s; whoever uses it gets errors. If it cannot "
        "be put back: fettle %s reset-state %s --status %s, and delete it",
        kind, resource_name(&resource), data->name, data->there ? "has " : "is not there",
        data->there ? share : "", backend->name, kind, resource_name(&resource),
        resource_error_status(resource.type));
}

static void find_all(struct look *look, const struct backend *backend,
                     const struct compare_stored_result *result)
{
    for (guint i = 0; i < result->missing->len && look_pause(look); i++)
        find_missing(look, backend, result->missing->pdata[i]);
    for (guint i = 0; i < result->unknown->len && look_pause(look); i++)
        find_unknown(look, backend, result->unknown->pdata[i]);
    if (result->more)
        look_note(look, "back end %s: there is more of that than is told", backend->name);
}

/* All members see the same. */
static void verify_one(struct look *look, const struct backend *backend)
{
    const struct compared *told = NULL;
    for (guint i = 0; i < look->stored->len && (!told || !told->result); i++) {
        const struct compared *compared = look->stored->pdata[i];
        if (!strcmp(compared->backend, backend->uuid))
            told = compared;
    }
    if (told && told->result)
        find_all(look, backend, told->result);
    else if (told)
        look_problem(look,
                     "back end %s: what it has could not be compared with the record: node %s: %s",
                     backend->name, look_node_name(look, told->node), told->why);
}

void verify_stored(struct look *look)
{
    g_autoptr(GPtrArray) backends = config_list(look->config, "backend");
    for (guint i = 0; i < backends->len; i++)
        verify_one(look, backends->pdata[i]);
}

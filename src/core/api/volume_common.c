/* See volume_common.h. */
#include "core/api/volume_common.h"

#include <string.h>

#include "core/api/identity_model.h"
#include "proto/env.h"

/* --- what there is --- */

const void *block_find(struct api_call *call, enum resource_type type, const char *id,
                       GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const void *record = config_get(config, resource_kind(type), id, NULL);
    struct resource resource = resource_read(type, record);
    if (record && (api_is_admin(call) || !strcmp(resource.project, call->token->project_id))) {
        text_set(&call->resource, id);
        return record;
    }
    const char *word = enum_word(&resource_type_words, (int)type);
    fettle_set_error(error, UNKNOWN_ENTITY, "%s %s could not be found.", word, id);
    return NULL;
}

const void *block_found(struct api_call *call, enum resource_type type, GError **error)
{
    return block_find(call, type, api_var(call, "id"), error);
}

bool block_made(struct api_call *call, enum resource_type type, const char *id, GError **error)
{
    bool seen = block_find(call, type, id, NULL);
    if (!seen)
        fettle_set_error(
            error, UNKNOWN_RESULT, "%s %s is accepted, and %s; look for it before you ask again",
            enum_word(&resource_type_words, (int)type), id,
            cell_has_own(call->api->cell) ? "is gone already" : "not to be seen here yet");
    return seen;
}

/* --- what bodies say --- */

bool block_says(const struct api_call *call, const char *member)
{
    const struct route *route = call->route;
    const char *wrapper = route->action[0] ? route->action : route->wrapper;
    const json_t *inner = wrapper[0] ? json_object_get(call->json, wrapper) : call->json;
    const json_t *value = json_object_get(inner, member);
    return value && !json_is_null(value);
}

bool block_size(const json_t *json, guint64 *ret, GError **error)
{
    guint64 size = 0;
    if (json_is_integer(json) && json_integer_value(json) > 0)
        size = (guint64)json_integer_value(json);
    else if (json_is_string(json) &&
             !g_ascii_string_to_unsigned(json_string_value(json), 10, 1, G_MAXINT64, &size, NULL))
        size = 0;
    *ret = size;
    if (size && size <= LIMIT_VOLUME_GIB)
        return true;
    g_autofree char *said = json ? json_dumps(json, JSON_ENCODE_ANY) : g_strdup("None");
    g_autofree char *head = text_head(said, 64);
    fettle_set_error(error, WRONG_INPUT,
                     "Invalid input received: Invalid volume size provided for create request: %s "
                     "(size argument must be an integer (or string representation of an integer) "
                     "and greater than zero, and not greater than %d).",
                     head, LIMIT_VOLUME_GIB);
    return false;
}

bool block_truth(const json_t *json, const char *field, bool otherwise, bool *ret, GError **error)
{
    static const char *const yes[] = {"1", "t", "true", "on", "y", "yes", NULL};
    static const char *const no[] = {"0", "f", "false", "off", "n", "no", NULL};
    const char *text = json_string_value(json);
    g_autofree char *lower = text ? g_ascii_strdown(text, -1) : NULL;
    bool is_yes = json_is_true(json) || (lower && g_strv_contains(yes, lower));
    bool is_no = json_is_false(json) || (lower && g_strv_contains(no, lower));
    *ret = is_yes || (!json && otherwise);
    if (!json || is_yes || is_no)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: must be a boolean", field);
    return false;
}

bool block_read_names(const struct api_call *call, char **name, char **description,
                      bool *ret_no_name, bool *ret_no_description)
{
    const struct volume_update_body *body = call->body;
    text_set(name, *body->name ? body->name : body->display_name);
    text_set(description, *body->description ? body->description : body->display_description);
    *ret_no_name = !**name && (block_says(call, "name") || block_says(call, "display_name"));
    *ret_no_description = !**description && (block_says(call, "description") ||
                                             block_says(call, "display_description"));
    return **name || **description || *ret_no_name || *ret_no_description;
}

void block_set_words(GPtrArray **list, GPtrArray *words)
{
    g_ptr_array_unref(*list);
    *list = words;
}

/* --- what answers have --- */

json_t *block_text(const char *text)
{
    return *text ? json_string(text) : json_null();
}

json_t *block_metadata(const GPtrArray *words)
{
    json_t *object = json_object();
    for (guint i = 0; i < words->len; i++) {
        const char *word = words->pdata[i];
        size_t length = strcspn(word, "=");
        g_autofree char *key = g_strndup(word, length);
        json_object_set_new(object, key, json_string(word[length] ? word + length + 1 : ""));
    }
    return object;
}

const char *block_word(const GPtrArray *words, const char *key)
{
    size_t length = strlen(key);
    for (guint i = 0; i < words->len; i++) {
        const char *word = words->pdata[i];
        if (!strncmp(word, key, length) && word[length] == '=')
            return word + length + 1;
    }
    return NULL;
}

json_t *block_links(const struct api_call *call, const char *plural, const char *id)
{
    const char *project = call->token->project_id;
    g_autofree char *self =
        g_strdup_printf("%s/volume/v3/%s/%s/%s", call->base, project, plural, id);
    g_autofree char *bookmark =
        g_strdup_printf("%s/volume/%s/%s/%s", call->base, project, plural, id);
    return json_make("[{s:s, s:s}, {s:s, s:s}]", "rel", "self", "href", self, "rel", "bookmark",
                     "href", bookmark);
}

char *block_host(const struct config *config, const char *host, const char *backend)
{
    const struct backend *known = config_get(config, "backend", backend, NULL);
    return *host && known ? g_strdup_printf("%s#%s", host, known->name) : NULL;
}

/* --- lists --- */

static bool is_filter(const char *name)
{
    static const char *const others[] = {"limit",      "offset",   "marker", "sort",
                                         "sort_key",   "sort_dir", "fields", "all_tenants",
                                         "with_count", "metadata", NULL};
    return !g_strv_contains(others, name);
}

/* `{'key': 'value'}`, as clients written in Python put it. */
static json_t *read_metadata(const char *asked)
{
    g_autofree char *text = g_strdelimit(g_strdup(asked), "'", '"');
    return json_parse_limited(text, strlen(text), strlen(text) + 1, NULL);
}

static bool metadata_fits(const json_t *wanted, const struct config *config,
                          const struct block_list *list, const void *record)
{
    const char *key;
    json_t *value;
    char scratch[BLOCK_SCRATCH];
    json_object_foreach((json_t *)wanted, key, value) {
        g_autofree char *name = g_strconcat("metadata:", key, NULL);
        const char *has = list->text(config, record, name, scratch);
        if (!has || !json_is_string(value) || strcmp(has, json_string_value(value)) != 0)
            return false;
    }
    return json_is_object(wanted);
}

/* Where something is, administrators alone learn: also not by asking for it. */
static bool may_ask(const struct api_call *call, const char *key)
{
    return api_is_admin(call) || strcmp(key, "host") != 0;
}

/* One filter of the query; what the kind knows nothing of restricts nothing. */
static bool filter_fits(const struct api_call *call, const struct config *config,
                        const struct block_list *list, const void *record, const char *name,
                        const char *value)
{
    char scratch[BLOCK_SCRATCH];
    size_t length = strlen(name);
    bool like = length && name[length - 1] == '~' && call->minor >= 34;
    g_autofree char *key = g_strndup(name, like ? length - 1 : length);
    const char *has = may_ask(call, key) ? list->text(config, record, key, scratch) : NULL;
    return !has || (like ? strstr(has, value) != NULL : !g_ascii_strcasecmp(has, value));
}

/* `metadata`: what the filter of this name asks for, if there is one. */
static bool record_fits(const struct api_call *call, const struct config *config,
                        const struct block_list *list, const json_t *metadata, const void *record)
{
    GHashTableIter iter;
    void *name, *value;
    g_hash_table_iter_init(&iter, call->query);
    while (g_hash_table_iter_next(&iter, &name, &value))
        if (!strcmp(name, "metadata")
                ? !metadata_fits(metadata, config, list, record)
                : is_filter(name) && !filter_fits(call, config, list, record, name, value))
            return false;
    return true;
}

struct sort_key {
    char *name;
    bool ascending;
};

struct sorting {
    const struct config *config;
    const struct block_list *list;
    struct sort_key keys[8];
    guint count;
};

static void sorting_clear(struct sorting *sorting)
{
    for (guint i = 0; i < sorting->count; i++)
        g_free(sorting->keys[i].name);
}

static bool add_key(struct sorting *sorting, const char *name, const char *direction,
                    GError **error)
{
    bool down = !*direction || !strcmp(direction, "desc");
    if (!down && strcmp(direction, "asc") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "Invalid input received: Unknown sort direction, must be 'desc' or "
                         "'asc'.");
        return false;
    }
    if (sorting->count < G_N_ELEMENTS(sorting->keys) - 1) /* one is left for the id */
        sorting->keys[sorting->count++] = (struct sort_key){g_strdup(name), !down};
    return true;
}

/* sort=KEY:DIRECTION,… or sort_key and sort_dir; otherwise the newest is the first. */
static bool read_sorting(const struct api_call *call, struct sorting *sorting, GError **error)
{
    const char *sort = api_query(call, "sort"), *key = api_query(call, "sort_key");
    const char *direction = api_query(call, "sort_dir");
    g_auto(GStrv) parts = g_strsplit(sort ? sort : "", ",", -1);
    for (char **part = parts; *part; part++) {
        char *colon = strchr(g_strstrip(*part), ':');
        if (colon)
            *colon++ = '\0';
        if (!add_key(sorting, *part, colon ? colon : "", error))
            return false;
    }
    if (!sorting->count &&
        !add_key(sorting, key ? key : "created_at", direction ? direction : "", error))
        return false;
    bool ascending = sorting->keys[sorting->count - 1].ascending;
    sorting->keys[sorting->count++] = (struct sort_key){g_strdup("id"), ascending};
    return true;
}

static bool is_number(const char *key)
{
    return !strcmp(key, "created_at") || !strcmp(key, "updated_at") || !strcmp(key, "size");
}

/* A record, and the number that it is sorted by first, if it is one: read once, not at each
 * comparison. */
struct sort_item {
    const void *record;
    guint64 number;
};

static int compare_by(const struct sorting *sorting, const char *key, const void *one,
                      const void *other)
{
    char first[BLOCK_SCRATCH], second[BLOCK_SCRATCH];
    const char *x = sorting->list->text(sorting->config, one, key, first);
    const char *y = sorting->list->text(sorting->config, other, key, second);
    if (!x || !y)
        return (x != NULL) - (y != NULL);
    if (!is_number(key))
        return strcmp(x, y);
    guint64 a = g_ascii_strtoull(x, NULL, 10), b = g_ascii_strtoull(y, NULL, 10);
    return a < b ? -1 : a > b;
}

static int compare_items(const void *a, const void *b, void *data)
{
    const struct sorting *sorting = data;
    const struct sort_item *one = a, *other = b;
    if (one->number != other->number)
        return (one->number < other->number) == sorting->keys[0].ascending ? -1 : 1;
    for (guint i = 0; i < sorting->count; i++) {
        int order = compare_by(sorting, sorting->keys[i].name, one->record, other->record);
        if (order)
            return sorting->keys[i].ascending ? order : -order;
    }
    return 0;
}

static guint64 number_of(const struct sorting *sorting, const void *record, const char *key)
{
    char scratch[BLOCK_SCRATCH];
    if (sorting->list->number)
        return sorting->list->number(record, key);
    const char *text = sorting->list->text(sorting->config, record, key, scratch);
    return text ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static void sort_records(const struct sorting *sorting, GPtrArray *records)
{
    const char *key = sorting->keys[0].name;
    bool number = is_number(key);
    g_autoptr(GArray) items =
        g_array_sized_new(FALSE, FALSE, sizeof(struct sort_item), records->len);
    for (guint i = 0; i < records->len; i++) {
        const void *record = records->pdata[i];
        const struct sort_item item = {record, number ? number_of(sorting, record, key) : 0};
        g_array_append_val(items, item);
    }
    g_array_sort_with_data(items, compare_items, (void *)sorting);
    for (guint i = 0; i < items->len; i++)
        records->pdata[i] = (void *)g_array_index(items, struct sort_item, i).record;
}

/* Also of a list that is empty: an empty record knows the keys as well. */
static bool check_keys(const struct api_call *call, const struct sorting *sorting, GError **error)
{
    char scratch[BLOCK_SCRATCH];
    const char *bad = NULL;
    void *blank = record_new(sorting->list->record);
    for (guint i = 0; i < sorting->count && !bad; i++) {
        const char *name = sorting->keys[i].name;
        if (!may_ask(call, name) || !sorting->list->text(sorting->config, blank, name, scratch))
            bad = name;
    }
    record_free(sorting->list->record, blank);
    if (bad)
        fettle_set_error(error, WRONG_INPUT,
                         "Invalid input received: Sort key supplied is invalid: %s", bad);
    return !bad;
}

static json_t *view_page(struct api_call *call, const struct config *config,
                         const struct block_list *list, bool detail, const struct api_page *page,
                         const GPtrArray *items)
{
    json_t *array = json_array();
    for (guint i = page->from; i < page->until; i++)
        json_array_append_new(array,
                              (detail ? list->detail : list->view)(call, config, items->pdata[i]));
    json_t *json = json_make("{s:o}", list->plural, array);
    if (page->next) {
        g_autofree char *name = g_strconcat(list->plural, "_links", NULL);
        g_autofree char *url = g_strconcat(call->base, page->next, NULL);
        json_object_set_new(json, name, json_make("[{s:s, s:s}]", "rel", "next", "href", url));
    }
    return json;
}

struct http_answer *block_answer_list(struct api_call *call, const struct block_list *list,
                                      bool detail, GError **error)
{
    const struct config *config = api_config(call, error);
    g_autoptr(GPtrArray) all = list->items;
    g_autoptr(GPtrArray) items = g_ptr_array_new(), ids = g_ptr_array_new();
    bool with_count = false;
    struct sorting sorting = {.config = config, .list = list};
    const char *marker = api_query(call, "marker"), *asked = api_query(call, "metadata");
    json_autoptr metadata = asked ? read_metadata(asked) : NULL;
    guint more = 0; /* the last one of the page before has its place, also if it fits no more */
    for (guint i = 0; i < all->len; i++) {
        bool fits = record_fits(call, config, list, metadata, all->pdata[i]);
        bool marks = marker && !strcmp(list->id(all->pdata[i]), marker);
        if (fits || marks)
            g_ptr_array_add(items, all->pdata[i]);
        more += marks && !fits;
    }
    bool good = api_no_times(call, error) &&
                api_query_bool(call, "with_count", false, &with_count, error) &&
                read_sorting(call, &sorting, error) && check_keys(call, &sorting, error);
    if (good)
        sort_records(&sorting, items);
    sorting_clear(&sorting);
    for (guint i = 0; i < items->len; i++)
        g_ptr_array_add(ids, (char *)list->id(items->pdata[i]));
    struct api_page page;
    if (!good || !api_page(call, ids, &page, error))
        return NULL;
    json_t *json = view_page(call, config, list, detail, &page, items);
    api_page_clear(&page);
    if (with_count && call->minor >= 45)
        json_object_set_new(json, "count", json_integer(items->len - more));
    return api_answer(call, json);
}

GPtrArray *block_items(const struct api_call *call, const struct config *config,
                       enum resource_type type)
{
    if (type == RESOURCE_VOLUME && !api_all_tenants(call))
        return config_project_volumes(config, call->token->project_id);
    GPtrArray *items = g_ptr_array_new();
    g_autoptr(GPtrArray) all = config_list(config, resource_kind(type));
    for (guint i = 0; i < all->len; i++) {
        struct resource resource = resource_read(type, all->pdata[i]);
        if (api_all_tenants(call) || !strcmp(resource.project, call->token->project_id))
            g_ptr_array_add(items, all->pdata[i]);
    }
    return items;
}

const char *block_resource_text(const struct config *config, const struct resource *resource,
                                const char *key, char *scratch)
{
    if (is_number(key)) {
        g_snprintf(scratch, BLOCK_SCRATCH, "%" G_GUINT64_FORMAT,
                   *key == 'c'   ? resource->created_us
                   : *key == 'u' ? resource->updated_us
                                 : resource->size);
        return scratch;
    }
    return !strcmp(key, "id")                                     ? resource->uuid
           : !strcmp(key, "name") || !strcmp(key, "display_name") ? resource->name
           : !strcmp(key, "description") || !strcmp(key, "display_description")
               ? resource->description
           : !strcmp(key, "status")                                         ? resource->status
           : !strcmp(key, "project_id") || !strcmp(key, "tenant_id")        ? resource->project
           : !strcmp(key, "availability_zone")                              ? BLOCK_ZONE
           : !strcmp(key, "volume_id") && resource->type != RESOURCE_VOLUME ? resource->volume
                                                                            : NULL;
}

/* --- what is asked of wconfd --- */

struct accept_work_args *block_work(struct api_call *call, enum resource_type type,
                                    const char *operation, const char *resource)
{
    struct accept_work_args *args = accept_work_args_new();
    g_free(args->commit_id);
    args->commit_id = env_uuid(call->api->env);
    args->resource_type = type;
    text_set(&args->operation, operation);
    text_set(&args->resource, resource);
    text_set(&args->request_id, call->request_id);
    return args;
}

struct accepted_work *block_accept(struct api_call *call, struct accept_work_args *args,
                                   GError **error)
{
    struct accepted_work *accepted = cell_call(call->api->cell, "accept_work", args, error);
    accept_work_args_free(args);
    if (accepted)
        text_set(&call->resource, accepted->resource);
    return accepted;
}

bool block_change(struct api_call *call, const char *method, const struct record *record,
                  void *args, char **commit_id, GError **error)
{
    g_free(*commit_id);
    *commit_id = env_uuid(call->api->env);
    struct commit_result *result = cell_call(call->api->cell, method, args, error);
    bool done = result && cell_has_own(call->api->cell);
    if (result && !done)
        fettle_set_error(error, UNKNOWN_RESULT,
                         "it is on record, and not to be seen here yet: no news comes from the "
                         "master; try again");
    commit_result_free(result);
    record_free(record, args);
    return done;
}

const struct api_quota *block_quota(const struct api_call *call, const char *project)
{
    static struct api_quota *otherwise;
    const struct api_quota *quota = identity_get(call->api->identity, "api_quota", project);
    quota = quota ? quota : identity_get(call->api->identity, "api_quota", "default");
    if (!otherwise)
        otherwise = api_quota_new();
    return quota ? quota : otherwise;
}

void block_add_quota(const struct api_call *call, struct accept_work_args *args,
                     const char *project)
{
    const struct api_quota *quota = block_quota(call, project);
    if (!*project)
        return;
    args->quota = quota_limits_new();
    args->quota->volumes = quota->volumes;
    args->quota->snapshots = quota->snapshots;
    args->quota->gigabytes = quota->gigabytes;
    args->quota->backups = quota->backups;
    args->quota->backup_gigabytes = quota->backup_gigabytes;
    args->quota->per_volume_gigabytes = quota->per_volume_gigabytes;
}

bool block_reset(struct api_call *call, enum resource_type type, const char *id, const char *status,
                 GError **error)
{
    struct reset_state_args *args = reset_state_args_new();
    args->resource_type = type;
    text_set(&args->resource, id);
    text_set(&args->status, status);
    return block_change(call, "reset_state", &reset_state_args_record, args, &args->commit_id,
                        error);
}

struct http_answer *block_accept_act(struct api_call *call, struct accept_work_args *args,
                                     GError **error)
{
    record_autoptr(accepted_work) accepted = block_accept(call, args, error);
    return accepted ? api_answer(call, NULL) : NULL;
}

struct http_answer *block_reset_act(struct api_call *call, enum resource_type type, GError **error)
{
    const struct reset_status_body *body = call->body;
    if (!block_found(call, type, error))
        return NULL;
    if (!*body->status || *body->attach_status || *body->migration_status)
        return api_refuse(call, 400, "os-reset_status: status alone is to be given");
    return block_reset(call, type, api_var(call, "id"), body->status, error)
               ? api_answer(call, NULL)
               : NULL;
}

struct http_answer *block_force_delete_act(struct api_call *call, enum resource_type type,
                                           const char *operation, GError **error)
{
    if (!block_found(call, type, error))
        return NULL;
    struct accept_work_args *args = block_work(call, type, operation, api_var(call, "id"));
    args->force = true;
    return block_accept_act(call, args, error);
}

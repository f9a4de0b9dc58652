/* See cleanup_plan.h. */
#include "core/storage/cleanup_plan.h"

#include <string.h>

#include "core/storage/volume_lot.h"

/* --- filters --- */

enum wish { WISH_ANY, WISH_NO, WISH_YES };

/* What a request says, understood. Texts are the request's, or live for ever. */
struct filters {
    guint64 number; /* 0: any */
    const char *cluster, *host, *binary, *type;
    char resource[37]; /* UUID; "": any */
    guint64 owner;     /* of its row */
    enum wish up, disabled;
};

static bool read_wish(const char *field, const char *text, enum wish unless, enum wish *ret,
                      GError **error)
{
    /* As OpenStack's clients write them. */
    static const char *const yes[] = {"1", "t", "true", "on", "y", "yes", NULL};
    static const char *const no[] = {"0", "f", "false", "off", "n", "no", NULL};
    g_autofree char *word = g_ascii_strdown(text, -1);
    bool is_yes = g_strv_contains(yes, word);
    if (*word && !is_yes && !g_strv_contains(no, word)) {
        fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is neither true nor false", field, text);
        return false;
    }
    *ret = !*word ? unless : is_yes ? WISH_YES : WISH_NO;
    return true;
}

/* The word as we write it, "" if none was given. */
static bool read_word(const char *field, const char *text, const struct enum_words *words,
                      const char **ret, GError **error)
{
    *ret = "";
    for (guint i = 0; *text && words->words[i]; i++)
        if (!g_ascii_strcasecmp(words->words[i], text))
            *ret = words->words[i];
    if (!*text || **ret)
        return true;
    g_autofree char *all = g_strjoinv(" or ", (char **)words->words);
    fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is not valid, must be %s", field, text, all);
    return false;
}

static bool read_number(const char *text, guint64 *ret, GError **error)
{
    if (!*text || g_ascii_string_to_unsigned(text, 10, 1, RECORD_NUMBER_MAX, ret, NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT, "service_id: \"%s\" is not the number of a service", text);
    return false;
}

/* One has a row at most, of whatever kind it is. */
static const struct worker *row_of(const struct config *config, const struct filters *filters)
{
    for (guint i = 0; resource_type_words.words[i]; i++) {
        g_autofree char *key = config_work_key((enum resource_type)i, filters->resource);
        const struct worker *row = config_get(config, "worker", key, NULL);
        if (row && (!*filters->type || !strcmp(resource_type_words.words[i], filters->type)))
            return row;
    }
    return NULL;
}

static bool read_resource(const struct config *config, const char *text, struct filters *filters,
                          GError **error)
{
    if (!*text)
        return true;
    if (!g_uuid_string_is_valid(text)) {
        fettle_set_error(error, WRONG_INPUT, "resource_id: \"%s\" is not a UUID", text);
        return false;
    }
    g_autofree char *uuid = g_ascii_strdown(text, -1);
    g_strlcpy(filters->resource, uuid, sizeof filters->resource);
    const struct worker *row = row_of(config, filters);
    if (!row) {
        fettle_set_error(error, WRONG_INPUT, "resource_id: no work is under way on %s%s%s",
                         filters->type, *filters->type ? " " : "", text);
        return false;
    }
    filters->type = enum_word(&resource_type_words, (int)row->resource_type);
    filters->owner = row->service_id;
    return true;
}

static bool read_filters(const struct config *config, const struct request_cleanup_args *args,
                         struct filters *ret, GError **error)
{
    struct filters filters = {.cluster = args->cluster_name, .host = args->host};
    bool good = read_number(args->service_id, &filters.number, error) &&
                read_word("binary", args->binary, &storage_binary_words, &filters.binary, error) &&
                read_wish("is_up", args->is_up, WISH_NO, &filters.up, error) &&
                read_wish("disabled", args->disabled, WISH_ANY, &filters.disabled, error) &&
                read_word("resource_type", args->resource_type, &resource_type_words, &filters.type,
                          error) &&
                read_resource(config, args->resource_id, &filters, error);
    *ret = filters;
    return good;
}

static bool wished(enum wish wish, bool is)
{
    return wish == WISH_ANY || (wish == WISH_YES) == is;
}

/* HOST@BACKEND, or HOST alone: all of that host. */
static bool host_fits(const struct config *config, const struct storage_service *service,
                      const char *host)
{
    g_autofree char *whole = config_storage_service_host(config, service);
    return !*host || !strcmp(host, service->host) || !strcmp(host, whole);
}

static bool cluster_fits(const struct config *config, const struct storage_service *service,
                         const char *cluster)
{
    g_autofree char *own = config_storage_service_cluster(config, service);
    return !*cluster || !strcmp(cluster, own);
}

static bool fits(const struct config *config, const struct filters *filters,
                 const struct storage_service *service)
{
    const char *binary = enum_word(&storage_binary_words, (int)service->binary);
    return (!filters->number || filters->number == service->id) &&
           (!*filters->resource || filters->owner == service->id) &&
           (!*filters->binary || !strcmp(filters->binary, binary)) &&
           wished(filters->up, service->state == STORAGE_UP) &&
           wished(filters->disabled, service->disabled) &&
           host_fits(config, service, filters->host) &&
           cluster_fits(config, service, filters->cluster);
}

/* --- who cleans --- */

/* One that is to take no new work cleans only if nobody else can: that is not new. */
static bool goes_before(const struct storage_service *one, const struct storage_service *other,
                        guint64 service_id)
{
    if (one->disabled != other->disabled)
        return other->disabled;
    return volume_lot(service_id, one->id) > volume_lot(service_id, other->id);
}

/* Any of the same back end, or any scheduler, that is up. Nobody cleans for himself: whoever lives
 * does so at his start. For an automatic cleanup it has been up for a while: who was cut off
 * together with the other had the same time to come back. A person who asks has judged. */
static const struct storage_service *stand_in(const struct config *config,
                                              const struct storage_service *service, bool automatic,
                                              const struct cleanup_clock *clock)
{
    gint64 least_ms = automatic ? (gint64)config_cluster(config)->report_interval * 2000 : 0;
    const struct storage_service *first = NULL;
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *other = all->pdata[i];
        if (other->id != service->id && other->binary == service->binary &&
            !strcmp(other->backend, service->backend) && other->state == STORAGE_UP &&
            (!least_ms || clock->state_ms(clock->data, other) >= least_ms) &&
            (!first || goes_before(other, first, service->id)))
            first = other;
    }
    return first;
}

const struct storage_service *cleanup_next(const struct config *config,
                                           const struct cleanup *cleanup,
                                           const struct cleanup_clock *clock)
{
    const struct storage_service *service = config_storage_service_of(config, cleanup->service_id);
    const struct storage_service *by = config_storage_service_of(config, cleanup->by);
    if (!service || cleanup->state == CLEANUP_DONE || cleanup_is_void(config, cleanup) ||
        (by && by->state == STORAGE_UP))
        return NULL;
    return stand_in(config, service, !cleanup->manual, clock);
}

/* --- which --- */

bool cleanup_covers(const struct cleanup *cleanup, const struct worker *row)
{
    const char *type = enum_word(&resource_type_words, (int)row->resource_type);
    return row->service_id == cleanup->service_id && row->updated_us < cleanup->requested_us &&
           (!*cleanup->resource_type || !strcmp(cleanup->resource_type, type)) &&
           (!*cleanup->resource_id || !strcmp(cleanup->resource_id, row->resource_id));
}

guint cleanup_left(const struct config *config, const struct cleanup *cleanup)
{
    guint left = 0;
    g_autoptr(GPtrArray) rows = config_service_work(config, cleanup->service_id);
    for (guint i = 0; i < rows->len; i++)
        left += cleanup_covers(cleanup, rows->pdata[i]);
    return left;
}

bool cleanup_is_void(const struct config *config, const struct cleanup *cleanup)
{
    const struct storage_service *service = config_storage_service_of(config, cleanup->service_id);
    return service && service->state == STORAGE_UP && !cleanup->is_up;
}

bool cleanup_is_over(const struct config *config, const struct cleanup *cleanup)
{
    const struct storage_service *service = config_storage_service_of(config, cleanup->service_id);
    const struct storage_service *by = config_storage_service_of(config, cleanup->by);
    bool cleans = cleanup->state == CLEANUP_RUNNING && by && by->state == STORAGE_UP;
    return !service || (cleanup_is_void(config, cleanup) && !cleans) ||
           (service->state == STORAGE_UP && cleanup->state == CLEANUP_DONE);
}

/* --- the plan --- */

static void item_free(void *data)
{
    struct cleanup_item *item = data;
    cleanup_free(item->cleanup);
    g_free(item);
}

/* Of this very death, and somebody has it in hand: stand_in sees to it that it stays so. */
static bool is_in_hand(const struct cleanup *old, const struct storage_service *service)
{
    return old && old->died_us == service->state_since_us &&
           (old->state == CLEANUP_ASKED || old->state == CLEANUP_RUNNING);
}

static bool is_due(const struct config *config, const struct storage_service *service,
                   const struct cleanup_clock *clock)
{
    const struct cluster *cluster = config_cluster(config);
    gint64 most_ms = (gint64)(cluster->auto_cleanup_checks * cluster->service_down_time) * 1000;
    return service->state == STORAGE_DOWN && clock->state_ms(clock->data, service) >= most_ms;
}

static struct cleanup *wanted(const struct request_cleanup_args *args,
                              const struct filters *filters, const struct storage_service *service)
{
    struct cleanup *cleanup = cleanup_new();
    cleanup->service_id = service->id;
    text_set(&cleanup->resource_type, filters->type);
    text_set(&cleanup->resource_id, filters->resource);
    text_set(&cleanup->requester, args->requester);
    cleanup->died_us = service->state_since_us;
    cleanup->manual = !args->automatic;
    cleanup->is_up = service->state == STORAGE_UP;
    cleanup->requested_us = G_MAXUINT64; /* later than each row */
    return cleanup;
}

static void plan_service(const struct config *config, const struct request_cleanup_args *args,
                         const struct filters *filters, const struct storage_service *service,
                         const struct cleanup_clock *clock, GPtrArray *plan)
{
    record_autoptr(cleanup) cleanup = wanted(args, filters, service);
    g_autofree char *key =
        config_cleanup_key(service->id, cleanup->resource_type, cleanup->resource_id);
    const struct cleanup *old = config_get(config, "cleanup", key, NULL);
    const struct storage_service *by = stand_in(config, service, args->automatic, clock);
    guint found = cleanup_left(config, cleanup);
    bool waits = old && old->died_us == service->state_since_us && !old->by && !by;
    if (args->automatic && (!found || is_in_hand(old, service) || !is_due(config, service, clock)))
        return;
    cleanup->found = found;
    cleanup->by = by ? by->id : 0;
    cleanup->state = by ? CLEANUP_ASKED : CLEANUP_UNAVAILABLE;
    struct cleanup_item *item = g_new0(struct cleanup_item, 1);
    *item = (struct cleanup_item){service, by, found, NULL};
    /* That nobody can do it is kept of whole services: of resources there would be no end. */
    if (found && (by || !*cleanup->resource_type) && !(args->automatic && waits))
        item->cleanup = g_steal_pointer(&cleanup);
    g_ptr_array_add(plan, item);
}

static int compare_numbers(const void *a, const void *b)
{
    const struct storage_service *one = *(const struct storage_service *const *)a;
    const struct storage_service *other = *(const struct storage_service *const *)b;
    return one->id < other->id ? -1 : one->id > other->id;
}

/* Whoever lives of another version may know another way to clean (CLN-43). */
static bool is_upgrading(const struct config *config, const GPtrArray *services)
{
    const struct storage_service *first = NULL;
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (service->state == STORAGE_DOWN)
            continue;
        if (first && first->wire != service->wire)
            return true;
        first = service;
    }
    return config_cluster(config)->upgrading;
}

GPtrArray *cleanup_plan(const struct config *config, const struct request_cleanup_args *args,
                        const struct cleanup_clock *clock, GError **error)
{
    struct filters filters;
    g_autoptr(GPtrArray) services = config_list(config, "storage_service");
    g_autoptr(GPtrArray) plan = g_ptr_array_new_with_free_func(item_free);
    g_ptr_array_sort(services, compare_numbers);
    if (is_upgrading(config, services)) {
        fettle_set_error(error, WRONG_INPUT,
                         "Cannot perform workers cleanup during system upgrade.");
        return NULL;
    }
    if (!read_filters(config, args, &filters, error))
        return NULL;
    for (guint i = 0; i < services->len; i++)
        if (fits(config, &filters, services->pdata[i]))
            plan_service(config, args, &filters, services->pdata[i], clock, plan);
    return g_steal_pointer(&plan);
}

/*
 * Storage services: who is registered, who lives (docs/design/safety.md, SAF-55, 56). Beats stay in
 * memory; only what they change is committed. Down is said here alone, after a whole
 * service_down_time on this master's boot clock without a beat, and without a gap of its own: who
 * was stopped itself has heard nobody.
 */
#include <string.h>

#include "base/log.h"
#include "core/storage/cleanup_plan.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

#define LOOK_PAUSE_MS 1000
#define LOOK_GAP_MS 3000

struct wconf_services {
    GHashTable *heard; /* uuid -> struct heard */
    gint64 since_ms;   /* all counts begin here */
    gint64 looked_ms;
    guint timer;        /* 0: no service was ever registered */
    guint64 last_stamp; /* 0: none was given yet */
};

/* What this master knows of a service beside its record. */
struct heard {
    gint64 beat_ms;
    gint64 state_ms;  /* it saw the state on record then that began at … */
    guint64 since_us; /* … this stamp */
    guint64 free_mib, total_mib;
    gint64 measured_ms; /* when that was so */
    gint64 doubted_ms;  /* since when a newer word of it is wanted */
};

struct wconf_services *wconf_services_new(void)
{
    struct wconf_services *services = g_new0(struct wconf_services, 1);
    services->heard = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return services;
}

void wconf_services_free(struct wconf_services *services)
{
    g_hash_table_unref(services->heard);
    g_free(services);
}

/* --- stamps --- */

static void note_highest(guint64 *highest, guint64 stamp)
{
    *highest = MAX(*highest, stamp);
}

static guint64 highest_stamp(const struct config *config)
{
    guint64 highest = 0;
    g_autoptr(GPtrArray) rows = config_list(config, "worker");
    g_autoptr(GPtrArray) volumes = config_list(config, "volume");
    g_autoptr(GPtrArray) snapshots = config_list(config, "snapshot");
    g_autoptr(GPtrArray) backups = config_list(config, "backup");
    g_autoptr(GPtrArray) images = config_list(config, "image");
    g_autoptr(GPtrArray) services = config_list(config, "storage_service");
    g_autoptr(GPtrArray) trash = config_list(config, "trash");
    g_autoptr(GPtrArray) cleanups = config_list(config, "cleanup");
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        note_highest(&highest, MAX(row->updated_us, row->was_updated_us));
    }
    for (guint i = 0; i < volumes->len; i++)
        note_highest(&highest, ((const struct volume *)volumes->pdata[i])->created_us);
    for (guint i = 0; i < snapshots->len; i++)
        note_highest(&highest, ((const struct snapshot *)snapshots->pdata[i])->created_us);
    for (guint i = 0; i < backups->len; i++)
        note_highest(&highest, ((const struct backup *)backups->pdata[i])->created_us);
    for (guint i = 0; i < images->len; i++)
        note_highest(&highest, ((const struct image *)images->pdata[i])->created_us);
    for (guint i = 0; i < services->len; i++)
        note_highest(&highest,
                     ((const struct storage_service *)services->pdata[i])->state_since_us);
    for (guint i = 0; i < trash->len; i++)
        note_highest(&highest, ((const struct trash *)trash->pdata[i])->since_us);
    for (guint i = 0; i < cleanups->len; i++)
        note_highest(&highest, ((const struct cleanup *)cleanups->pdata[i])->requested_us);
    return highest;
}

guint64 wconf_stamp(struct wconf *wconf)
{
    guint64 *last = &wconf->services->last_stamp;
    if (!*last)
        *last = highest_stamp(wconf->head);
    *last = MAX((guint64)wconf->env->ops->wall_us(wconf->env), *last + 1);
    return *last;
}

/* --- up and down --- */

static struct heard *hear(struct wconf *wconf, const char *service)
{
    struct heard *heard = g_hash_table_lookup(wconf->services->heard, service);
    if (heard)
        return heard;
    heard = g_new0(struct heard, 1);
    g_hash_table_insert(wconf->services->heard, g_strdup(service), heard);
    return heard;
}

static void note_beat(struct wconf *wconf, const char *service)
{
    hear(wconf, service)->beat_ms = wconf->env->ops->boot_ms(wconf->env);
}

static gint64 silent_ms(const struct wconf *wconf, const struct storage_service *service)
{
    const struct wconf_services *services = wconf->services;
    const struct heard *heard = g_hash_table_lookup(services->heard, service->uuid);
    return services->looked_ms - MAX(heard ? heard->beat_ms : 0, services->since_ms);
}

static void note_state(struct wconf *wconf, const struct storage_service *service)
{
    struct heard *heard = hear(wconf, service->uuid);
    if (heard->since_us == service->state_since_us && heard->state_ms)
        return;
    heard->since_us = service->state_since_us;
    heard->state_ms = wconf->services->looked_ms;
}

gint64 wconf_services_state_ms(const struct wconf *wconf, const struct storage_service *service)
{
    const struct wconf_services *services = wconf->services;
    const struct heard *heard = g_hash_table_lookup(services->heard, service->uuid);
    if (!heard || !heard->state_ms || heard->since_us != service->state_since_us)
        return 0;
    return services->looked_ms - MAX(heard->state_ms, services->since_ms);
}

static void put_state(struct wconf *wconf, const struct storage_service *old,
                      enum storage_life state, GPtrArray *changes)
{
    record_autoptr(storage_service) service = storage_service_copy(old);
    if (service->state != state)
        service->state_since_us = wconf_stamp(wconf);
    service->state = state;
    g_ptr_array_add(changes, config_put(wconf->head, "storage_service", service->uuid,
                                        storage_service_to_json(service)));
}

/* Who has work waits for somebody to look after it. */
static void tell_down(struct wconf *wconf, const struct storage_service *service, gint64 silent,
                      GPtrArray *changes)
{
    g_autoptr(GPtrArray) rows = config_service_work(wconf->head, service->id);
    g_autofree char *name = config_storage_service_name(wconf->head, service);
    log_warning("", "%s is down: no beat for %" G_GINT64_FORMAT " s", name, silent / 1000);
    if (!rows->len)
        return;
    struct decision *decision = decision_about("storage_service", service->uuid, name,
                                               "wconfd/services", VERDICT_LEAVE, "Down");
    decision_set(&decision->summary,
                 "%s is down: no beat for %" G_GINT64_FORMAT
                 " s. Rows of work that nobody goes on with: %u.",
                 name, silent / 1000, rows->len);
    for (guint i = 0; i < MIN(rows->len, LIMIT_REPAIR_EVIDENCE); i++)
        g_ptr_array_add(decision->evidence, wconf_work_said(wconf, rows->pdata[i]));
    decision->event = EVENT_ALERT;
    decision->level = EVENT_LEVEL_WARNING;
    wconf_decide(wconf, decision, changes);
}

static void commit_states(struct wconf *wconf, GPtrArray *changes)
{
    g_autofree char *id = env_uuid(wconf->env);
    g_autoptr(GError) error = NULL;
    if (!changes->len)
        g_ptr_array_unref(changes);
    else if (!wconf_commit(wconf, id, changes, NULL, AUTHOR_WORK, NULL, NULL, &error))
        log_error("", "storage services stay up or down on record: %s", error->message);
}

static void mark_down(struct wconf *wconf)
{
    gint64 most = (gint64)config_cluster(wconf->head)->service_down_time * 1000;
    GPtrArray *changes = change_list_new();
    g_autoptr(GPtrArray) all = config_list(wconf->head, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        gint64 silent = silent_ms(wconf, service);
        note_state(wconf, service);
        if (service->state == STORAGE_DOWN || silent < most)
            continue;
        put_state(wconf, service, STORAGE_DOWN, changes);
        tell_down(wconf, service, silent, changes);
    }
    commit_states(wconf, changes);
}

/* What nobody needs any more goes, so that as many stay as there are services. */
static void end_cleanups(struct wconf *wconf)
{
    GPtrArray *changes = change_list_new();
    g_autoptr(GPtrArray) all = config_list(wconf->head, "cleanup");
    for (guint i = 0; i < all->len; i++) {
        const struct cleanup *cleanup = all->pdata[i];
        g_autofree char *key =
            config_cleanup_key(cleanup->service_id, cleanup->resource_type, cleanup->resource_id);
        if (cleanup_is_over(wconf->head, cleanup))
            g_ptr_array_add(changes, config_delete(wconf->head, "cleanup", key));
    }
    commit_states(wconf, changes);
}

static void look(void *data);

static void rest(struct wconf *wconf)
{
    wconf->services->timer = wconf->env->ops->timer(wconf->env, LOOK_PAUSE_MS, look, wconf);
}

static void look(void *data)
{
    struct wconf *wconf = data;
    struct wconf_services *services = wconf->services;
    gint64 now = wconf->env->ops->boot_ms(wconf->env);
    if (now - services->looked_ms > LOOK_GAP_MS)
        services->since_ms = now;
    services->looked_ms = now;
    rest(wconf);
    mark_down(wconf);
    end_cleanups(wconf);
}

static void begin_looks(struct wconf *wconf)
{
    struct wconf_services *services = wconf->services;
    if (services->timer || wconf->down)
        return;
    services->since_ms = services->looked_ms = wconf->env->ops->boot_ms(wconf->env);
    rest(wconf);
}

void wconf_services_start(struct wconf *wconf)
{
    if (config_has_any(wconf->head, "storage_service") || config_has_any(wconf->head, "cleanup"))
        begin_looks(wconf);
}

void wconf_services_end(struct wconf *wconf)
{
    if (wconf->services->timer)
        wconf->env->ops->timer_cancel(wconf->env, wconf->services->timer);
    wconf->services->timer = 0;
}

/* --- beat --- */

/* A registration that is only on its way ends nobody's. One that is not on record is over too: it
 * was lost, with a master or by a restore. */
static bool is_over(const struct wconf *wconf, const struct rpc_request *request,
                    const struct storage_beat *beat)
{
    const struct storage_service *service =
        config_get(wconf->committed, "storage_service", beat->service, NULL);
    return !service || service->generation != beat->generation ||
           strcmp(service->node, request->from_node) != 0;
}

static void hear_space(struct wconf *wconf, const struct storage_beat *beat,
                       struct beat_result *result)
{
    struct heard *heard = hear(wconf, beat->service);
    heard->free_mib = beat->free_mib;
    heard->total_mib = beat->total_mib;
    heard->measured_ms = heard->beat_ms - (gint64)MIN(beat->space_age_ms, (guint64)heard->beat_ms);
    if (heard->measured_ms < heard->doubted_ms)
        g_ptr_array_add(result->measure, g_strdup(beat->service));
}

static void take_beat(struct wconf *wconf, const struct storage_beat *beat,
                      struct beat_result *result, GPtrArray *changes)
{
    const struct storage_service *service =
        config_get(wconf->head, "storage_service", beat->service, NULL);
    if (!service || service->generation != beat->generation)
        return;
    note_beat(wconf, service->uuid);
    hear_space(wconf, beat, result);
    if (change_list_has(changes, "storage_service", beat->service) ||
        (service->state == STORAGE_UP && service->hanging == beat->hanging))
        return;
    record_autoptr(storage_service) next = storage_service_copy(service);
    next->hanging = beat->hanging;
    put_state(wconf, next, STORAGE_UP, changes);
}

struct backend_space *wconf_services_space(const struct wconf *wconf, const char *backend)
{
    g_autoptr(GPtrArray) services = config_list(wconf->head, "storage_service");
    const struct heard *last = NULL;
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        const struct heard *heard = g_hash_table_lookup(wconf->services->heard, service->uuid);
        if (!strcmp(service->backend, backend) && heard && heard->total_mib &&
            (!last || heard->measured_ms > last->measured_ms))
            last = heard;
    }
    if (!last)
        return NULL;
    struct backend_space *space = backend_space_new();
    text_set(&space->backend, backend);
    space->free_mib = last->free_mib;
    space->total_mib = last->total_mib;
    return space;
}

void wconf_services_doubt(struct wconf *wconf, const char *backend)
{
    g_autoptr(GPtrArray) services = config_list(wconf->head, "storage_service");
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (!strcmp(service->backend, backend))
            hear(wconf, service->uuid)->doubted_ms = wconf->env->ops->boot_ms(wconf->env);
    }
}

void wconf_services_spaces(const struct wconf *wconf, GPtrArray *spaces)
{
    g_autoptr(GPtrArray) backends = config_list(wconf->head, "backend");
    for (guint i = 0; i < MIN(backends->len, 1024); i++) {
        const struct backend *backend = backends->pdata[i];
        struct backend_space *space = wconf_services_space(wconf, backend->uuid);
        if (space)
            g_ptr_array_add(spaces, space);
    }
}

static void take_beats(struct wconf *wconf, struct rpc_request *request,
                       const struct beat_args *args)
{
    record_autoptr(beat_result) result = beat_result_new();
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < args->services->len; i++) {
        const struct storage_beat *beat = args->services->pdata[i];
        if (is_over(wconf, request, beat))
            g_ptr_array_add(result->over, g_strdup(beat->service));
        else
            take_beat(wconf, beat, result, changes);
    }
    commit_states(wconf, changes);
    if (!strcmp(request->from_role, ROLE_SCHEDULER))
        wconf_services_spaces(wconf, result->spaces);
    json_t *answer = beat_result_to_json(result);
    if (result->over->len)
        wconf_answer_after_barrier(wconf, request, answer);
    else
        rpc_answer(request, answer);
}

void wconf_handle_beat(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(beat_args) args = rpc_request_args(request, &beat_args_record, &error);
    if (args)
        take_beats(wconf, request, args);
    else
        rpc_fail(request, error);
}

/* --- register --- */

static bool may_serve(const struct config *head, const struct rpc_request *request,
                      const struct register_storage_args *args, GError **error)
{
    bool volumed = !strcmp(request->from_role, ROLE_VOLUMED);
    if (volumed != (args->binary == STORAGE_VOLUME)) {
        fettle_set_error(error, PERMISSION, "binary: %s is no %s", request->from_role,
                         enum_word(&storage_binary_words, (int)args->binary));
        return false;
    }
    if (!volumed)
        return true;
    const struct backend *backend = config_get(head, "backend", args->backend, NULL);
    if (backend)
        return wconf_work_serves(head, backend, request->from_node, error);
    fettle_set_error(error, UNKNOWN_ENTITY, "backend: there is no backend %s", args->backend);
    return false;
}

static bool is_free(const struct config *head, const struct rpc_request *request,
                    const struct storage_service *old, GError **error)
{
    if (!old && config_count(head, "storage_service") >= LIMIT_STORAGE_SERVICES) {
        fettle_set_error(error, LIMIT, "there are %d storage services on record already",
                         LIMIT_STORAGE_SERVICES);
        return false;
    }
    if (!old || old->state == STORAGE_DOWN || !strcmp(old->node, request->from_node))
        return true;
    g_autofree char *name = config_storage_service_name(head, old);
    fettle_set_error(error, REFUSED, "%s is up on %s", name, config_node_name(head, old->node));
    return false;
}

/* The next number; once given it stays with its name. */
static guint64 give_number(const struct config *head, GPtrArray *changes)
{
    const struct counter *old = config_get(head, "counter", "storage-service", NULL);
    const struct counter next = {.value = old ? old->value + 1 : 1};
    g_ptr_array_add(changes,
                    config_put(head, "counter", "storage-service", counter_to_json(&next)));
    return next.value;
}

static json_t *registered_json(const struct storage_service *service)
{
    const struct registered_storage answer = {
        .service = service->uuid, .id = service->id, .generation = service->generation};
    return registered_storage_to_json(&answer);
}

static void put_service(struct wconf *wconf, struct rpc_request *request,
                        const struct register_storage_args *args, const struct storage_service *old)
{
    g_autofree char *key = config_storage_service_key(args->binary, args->host, args->backend);
    GPtrArray *changes = change_list_new();
    record_autoptr(storage_service) service =
        old ? storage_service_copy(old) : storage_service_new();
    bool came_up = !old || old->state == STORAGE_DOWN;
    text_set(&service->uuid, key);
    service->id = old ? old->id : give_number(wconf->head, changes);
    service->binary = args->binary;
    text_set(&service->host, args->host);
    text_set(&service->backend, args->backend);
    text_set(&service->node, request->from_node);
    service->generation = wconf_work_serial(wconf);
    service->wire = args->wire;
    service->hanging = 0;
    text_set(&service->version, args->version);
    service->state = STORAGE_UP;
    if (came_up)
        service->state_since_us = wconf_stamp(wconf);
    g_ptr_array_add(
        changes, config_put(wconf->head, "storage_service", key, storage_service_to_json(service)));
    json_autoptr answer = registered_json(service);
    if (!wconf_work_commit(wconf, request, args->commit_id, changes, answer))
        return;
    begin_looks(wconf);
    note_beat(wconf, key);
}

/* Its answer was lost. Somebody who registered since has ended what it gave. */
static void answer_again(struct wconf *wconf, struct rpc_request *request,
                         const struct storage_service *service, guint64 serial)
{
    GError *error = NULL;
    if (service && service->generation == serial) {
        wconf_answer_when_stored(wconf, serial, request, registered_json(service));
        return;
    }
    fettle_set_error(&error, REFUSED,
                     "registration %" G_GUINT64_FORMAT " is over, %" G_GUINT64_FORMAT
                     " is on record",
                     serial, service ? service->generation : 0);
    wconf_work_refuse(wconf, request, error);
}

static void register_storage(struct wconf *wconf, struct rpc_request *request,
                             const struct register_storage_args *args)
{
    GError *error = NULL;
    g_autofree char *key = config_storage_service_key(args->binary, args->host, args->backend);
    const struct storage_service *old = config_get(wconf->head, "storage_service", key, NULL);
    guint64 serial = 0;
    if (wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    if (serial)
        answer_again(wconf, request, old, serial);
    else if (may_serve(wconf->head, request, args, &error) &&
             is_free(wconf->head, request, old, &error))
        put_service(wconf, request, args, old);
    else
        wconf_work_refuse(wconf, request, error);
}

void wconf_handle_register_storage(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(register_storage_args) args =
        rpc_request_args(request, &register_storage_args_record, &error);
    if (args)
        register_storage(wconf, request, args);
    else
        rpc_fail(request, error);
}

/* --- change_storage_service --- */

static const struct storage_service *find_service(const struct config *head,
                                                  const struct change_storage_service_args *args,
                                                  GError **error)
{
    const struct storage_service *service =
        config_get(head, "storage_service", args->service, NULL);
    if (!service)
        fettle_set_error(error, UNKNOWN_ENTITY, "storage service %s is off record", args->service);
    if (args->disabled || !*args->reason)
        return service;
    fettle_set_error(service ? error : NULL, WRONG_INPUT,
                     "reason: of a service that is disabled alone");
    return NULL;
}

static void change_service(struct wconf *wconf, struct rpc_request *request,
                           const struct change_storage_service_args *args,
                           const struct storage_service *old)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(storage_service) service = storage_service_copy(old);
    service->disabled = args->disabled;
    if (!args->disabled || *args->reason) /* who says it again keeps why */
        text_set(&service->disabled_reason, args->reason);
    g_ptr_array_add(changes, config_put(wconf->head, "storage_service", service->uuid,
                                        storage_service_to_json(service)));
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_change_storage_service(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(change_storage_service_args) args =
        rpc_request_args(request, &change_storage_service_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct storage_service *service = args ? find_service(wconf->head, args, &error) : NULL;
    if (service)
        change_service(wconf, request, args, service);
    else
        wconf_work_refuse(wconf, request, error);
}

/* Faults of what has to do with storage, the life of the theme, and what must hold when the faults
 * have stopped; see storage_sim.h. */
#include "storage_front.h"

#include <string.h>

#include "core/config/attachments.h"
#include "proto/change.h"

#define RESETS 7        /* of all that a member works on, while news is late */
#define SPARED_MS 14000 /* what has died is to be cleaned */
#define HOUR_MS G_GINT64_CONSTANT(3600000)
/* Beyond the pause of rows that could not be cleaned (volume_member.c). */
#define STORAGE_REST_MS 480000

struct storage_world *storage_of(const struct ms *ms)
{
    return ms->themed;
}

/* --- faults --- */

static struct storage_host *any_host(struct storage_world *storage)
{
    return &storage->hosts[ms_random(storage->ms, storage->ms->hosts_count)];
}

static guint rows_of(const struct storage_world *storage, const struct storage_host *host)
{
    guint count = 0;
    g_autoptr(GPtrArray) rows = config_list(storage->truth, "worker");
    for (guint i = 0; i < rows->len; i++)
        count += storage_works_on(storage, host, rows->pdata[i]);
    return count;
}

/* Who has most to do. */
static struct storage_host *busiest(struct storage_world *storage)
{
    struct storage_host *most = any_host(storage);
    for (guint i = 0; i < storage->ms->hosts_count; i++)
        if (rows_of(storage, &storage->hosts[i]) > rows_of(storage, most))
            most = &storage->hosts[i];
    return most;
}

static void kill_volumed(struct storage_world *storage, struct storage_host *host)
{
    storage->counts->kills += host->volumed != NULL;
    storage_kill_volumed(host);
}

/* All that work, or one. */
static void die_in_work(struct ms *ms, struct ms_host *host, guint more)
{
    struct storage_world *storage = storage_of(ms);
    bool all = ms_random(ms, 4) > 0;
    kill_volumed(storage, busiest(storage));
    for (guint i = 0; all && i < ms->hosts_count; i++)
        if (rows_of(storage, &storage->hosts[i]))
            kill_volumed(storage, &storage->hosts[i]);
}

static void volumed_goes_on(struct ms *ms, struct ms_host *host, guint more)
{
    storage_pause_volumed(&storage_of(ms)->hosts[host->index], false);
}

static void pause_volumed(struct storage_world *storage, struct storage_host *host)
{
    storage->counts->pauses += host->volumed != NULL;
    storage_pause_volumed(host, true);
    ms_later(storage->ms, host->host, 0, 200 + ms_random(storage->ms, 12000), volumed_goes_on);
}

static void is_reset(struct ms *ms, struct ms_host *host, guint more)
{
    if (ms_now(ms) > storage_of(ms)->spared_ms)
        storage_reset_work(&storage_of(ms)->hosts[host->index]);
}

/* What it works on is reset meanwhile; it knows nothing of that, and goes on. */
static void pause_in_work(struct storage_world *storage, struct storage_host *host)
{
    struct storage_host *busy = busiest(storage);
    pause_volumed(storage, busy);
    ms_later(storage->ms, busy->host, 0, ms_random(storage->ms, 1500), is_reset);
}

static void stop_in_work(struct ms *ms, struct ms_host *host, guint more)
{
    pause_in_work(storage_of(ms), NULL);
}

static void news_flows(struct ms *ms, struct ms_host *host, guint more)
{
    ms->delay_ms = 0;
    ms->delayed_ms = ms_now(ms);
}

/* What becomes of their work its members hear late. */
static void late_news(struct storage_world *storage, struct storage_host *host)
{
    struct ms *ms = storage->ms;
    guint late_ms = 4000 + ms_random(ms, 4000);
    ms->delay_ms = 1000 + ms_random(ms, 2000);
    ms->delayed_ms = ms_now(ms);
    for (guint i = 0; i < RESETS * ms->hosts_count; i++)
        ms_later(ms, &ms->hosts[i % ms->hosts_count], 0, ms_random(ms, late_ms), is_reset);
    ms_later(ms, host->host, 0, late_ms, news_flows);
}

static void volumed_begins(struct ms *ms, struct ms_host *host, guint more)
{
    struct storage_host *own = &storage_of(ms)->hosts[host->index];
    if (host->powered && !host->paused && !own->volumed && !own->restart)
        storage_start_volumed(own);
}

/* It does not come back before others have had the time to clean for it. */
static void stays_away(struct storage_world *storage, struct storage_host *host)
{
    struct storage_host *busy = busiest(storage);
    storage_end_volumed(busy);
    storage->spared_ms = ms_now(storage->ms) + SPARED_MS;
    ms_later(storage->ms, busy->host, 0, 12000 + ms_random(storage->ms, 20000), volumed_begins);
}

static void kill_scheduler(struct storage_world *storage, struct storage_host *host)
{
    storage_kill_scheduler(host);
}

static void former_goes(struct ms *ms, struct ms_host *host, guint more)
{
    storage_former_goes(&storage_of(ms)->hosts[host->index]);
}

/* The one that had the name before goes on with what it was at. */
static void namesake(struct storage_world *storage, struct storage_host *host)
{
    struct storage_host *busy = busiest(storage);
    storage_namesake(busy);
    storage->spared_ms = ms_now(storage->ms) + SPARED_MS;
    ms_later(storage->ms, busy->host, 0, 500 + ms_random(storage->ms, 12000), former_goes);
}

static void place_goes_on(struct ms *ms, struct ms_host *host, guint which)
{
    storage_of(ms)->hanging[which] = false;
}

static void hang_place(struct storage_world *storage, struct storage_host *host)
{
    guint which = ms_random(storage->ms, STORAGE_BACKENDS);
    storage->hanging[which] = true;
    storage->counts->hangs++;
    ms_later(storage->ms, host->host, which,
             ms_random(storage->ms, ms_random(storage->ms, 3) ? 5000 : 40000), place_goes_on);
}

/* Work piles up at a back end that is slow, and then its members die, or stop. */
static void pile_up(struct storage_world *storage, struct storage_host *host)
{
    struct ms *ms = storage->ms;
    bool dies = ms_random(ms, 4) > 0;
    storage->spared_ms = dies ? ms_now(ms) + SPARED_MS : 0;
    for (guint i = 0; i < STORAGE_BACKENDS; i++) {
        guint piled_ms = 5000 + ms_random(ms, 3000);
        storage->hanging[i] = true;
        ms_later(ms, host->host, i, piled_ms, place_goes_on);
    }
    ms_later(ms, host->host, 0, 4000 + ms_random(ms, 2000), dies ? die_in_work : stop_in_work);
}

static void place_works(struct ms *ms, struct ms_host *host, guint more)
{
    storage_of(ms)->failing = 1;
    fake_volumes_make_half(storage_of(ms)->volumes, 0);
}

static void place_fails(struct storage_world *storage, struct storage_host *host)
{
    storage->failing = 1 + ms_random(storage->ms, 50);
    fake_volumes_make_half(storage->volumes, ms_random(storage->ms, 3));
    ms_later(storage->ms, host->host, 0, ms_random(storage->ms, 6000), place_works);
}

static void place_returns(struct ms *ms, struct ms_host *host, guint more)
{
    fake_volumes_unmount(storage_of(ms)->volumes, host->uuid, false);
}

static void unmount_place(struct storage_world *storage, struct storage_host *host)
{
    fake_volumes_unmount(storage->volumes, host->host->uuid, true);
    ms_later(storage->ms, host->host, 0, ms_random(storage->ms, 8000), place_returns);
}

/* An hour ahead or behind, or it stands. */
static void set_clock(struct storage_world *storage, struct storage_host *host)
{
    struct ms *ms = storage->ms;
    storage->counts->clocks++;
    if (ms_random(ms, 3) == 0)
        fake_stop_clock(ms->world, host->host->uuid);
    else
        fake_set_clock(ms->world, host->host->uuid,
                       (gint64)ms_random(ms, (guint)(2 * HOUR_MS)) - HOUR_MS);
}

static void front_goes_on(struct ms *ms, struct ms_host *host, guint more)
{
    storage_front_pause(storage_front_of(&storage_of(ms)->hosts[host->index]), false);
}

/* A front end dies, or stands still. */
static void front_fails(struct ms *ms)
{
    struct storage_host *host = any_host(storage_of(ms));
    struct storage_front *front = storage_front_of(host);
    host->storage->counts->front_faults++;
    ms_tell(ms, "the front end of host %u fails", host->host->index + 1);
    if (ms_random(ms, 2)) {
        storage_front_kill(front);
        return;
    }
    storage_front_pause(front, true);
    ms_later(ms, host->host, 0, 200 + ms_random(ms, 15000), front_goes_on);
}

void storage_fault(struct ms *ms)
{
    static void (*const faults[])(struct storage_world * storage, struct storage_host * host) = {
        stays_away, stays_away,   stays_away,    kill_scheduler, namesake,   namesake,
        namesake,   kill_volumed, pause_volumed, pause_in_work,  pile_up,    pile_up,
        pile_up,    pile_up,      pile_up,       pile_up,        pile_up,    late_news,
        late_news,  late_news,    late_news,     late_news,      hang_place, place_fails,
        set_clock,  unmount_place};
    struct storage_world *storage = storage_of(ms);
    if (ms->theme == &storage_restores_theme)
        storage_may_restore(storage);
    if (storage->fronts && ms_random(ms, 3) == 0) {
        front_fails(ms);
        return;
    }
    guint which = ms_random(ms, G_N_ELEMENTS(faults));
    struct storage_host *host = any_host(storage);
    ms_tell(ms, "fault %u of storage on host %u", which, host->host->index + 1);
    faults[which](storage, host);
}

void storage_faults_end(struct ms *ms)
{
    struct storage_world *storage = storage_of(ms);
    storage->failing = 0;
    fake_volumes_make_half(storage->volumes, 0);
    for (guint i = 0; i < STORAGE_BACKENDS; i++)
        storage->hanging[i] = false;
    for (guint i = 0; i < ms->hosts_count; i++) {
        storage_pause_volumed(&storage->hosts[i], false);
        storage_former_goes(&storage->hosts[i]);
        volumed_begins(ms, &ms->hosts[i], 0);
        if (storage->fronts)
            front_goes_on(ms, &ms->hosts[i], 0);
        fake_volumes_unmount(storage->volumes, ms->hosts[i].uuid, false);
    }
}

/* --- rest --- */

static char *service_unrest(const struct storage_world *storage)
{
    g_autoptr(GPtrArray) services = config_list(storage->truth, "storage_service");
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (service->state == STORAGE_DOWN)
            return g_strdup_printf("%s is down on record", service->host);
    }
    return NULL;
}

/* What a job has left recovery has settled, and what was asked for is given up. */
static char *guests_unrest(const struct storage_world *storage)
{
    g_autoptr(GPtrArray) instances = config_list(storage->truth, "instance");
    g_autoptr(GPtrArray) volumes = config_list(storage->truth, "volume");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (instance->task_state != TASK_NONE)
            return g_strdup_printf("%s has the mark of job %" G_GUINT64_FORMAT, instance->name,
                                   instance->task_owner);
    }
    for (guint i = 0; i < volumes->len; i++) {
        const struct attachment *attachment = attachment_of(volumes->pdata[i]);
        const struct instance *instance =
            attachment ? config_get(storage->truth, "instance", attachment->instance, NULL) : NULL;
        if (instance && *instance->holder && attachment->leaving_us &&
            storage_opened(storage, ((const struct volume *)volumes->pdata[i])->data))
            return g_strdup_printf("%s is asked to give a volume up", instance->name);
    }
    return NULL;
}

char *storage_unrest(struct ms *ms)
{
    const struct storage_world *storage = storage_of(ms);
    g_autoptr(GPtrArray) rows = config_list(storage->truth, "worker");
    if (rows->len) {
        const struct worker *row = rows->pdata[0];
        return g_strdup_printf("%s of %s (%u rows) is with service %" G_GUINT64_FORMAT,
                               row->operation, row->resource_id, rows->len, row->service_id);
    }
    if (storage_is_held(storage))
        return g_strdup("nobody has said continue");
    char *why = guests_unrest(storage);
    why = why ? why : service_unrest(storage);
    return why ? why : storage_fronts_unrest(storage);
}

/* --- life --- */

static void add(GPtrArray *changes, const char *kind, const char *key, json_t *object)
{
    void *value = record_parse(object_record(kind), object, RECORD_STRICT, NULL);
    json_t *whole = record_to_json(object_record(kind), value);
    record_free(object_record(kind), value);
    json_decref(object);
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, 1, whole));
}

static char *guest_uuid(guint index)
{
    return g_strdup_printf("eeeeeeee-0000-4000-8000-00000000000%u", index + 1);
}

static void add_guests(const struct ms *ms, GPtrArray *changes)
{
    for (guint i = 0; i < STORAGE_GUESTS && storage_has_guests(ms); i++) {
        g_autofree char *name = g_strdup_printf("web%u", i + 1);
        g_autofree char *uuid = guest_uuid(i);
        add(changes, "instance", uuid,
            json_make("{s:s,s:s,s:s,s:i,s:s}", "uuid", uuid, "name", name, "disk_template",
                      "diskless", "memory", 64, "primary_node",
                      ms->hosts[i % ms->hosts_count].uuid));
    }
}

static void add_objects(const struct ms *ms, GPtrArray *changes)
{
    add_guests(ms, changes);
    if (ms->theme == &storage_api_theme)
        storage_fronts_add(ms, changes, add);
    for (guint i = 0; i < STORAGE_BACKENDS; i++) {
        g_autofree char *uuid = g_strdup_printf("dddddddd-0000-4000-8000-00000000000%u", i + 1);
        g_autofree char *name = g_strdup_printf("b%u", i + 1);
        g_autofree char *path = g_strdup_printf("/mnt/%s", name);
        json_t *nodes = json_array();
        for (guint j = 0; j < ms->hosts_count; j++)
            json_array_append_new(nodes, json_string(ms->hosts[(i + j) % ms->hosts_count].uuid));
        add(changes, "backend", uuid,
            json_make("{s:s,s:s,s:s,s:o,s:s,s:b,s:b}", "uuid", uuid, "name", name, "kind", "dir",
                      "nodes", nodes, "path", path, "backups", 1, "images", 1));
    }
}

static void json_free(void *json)
{
    json_decref(json);
}

static void loss_free(void *data)
{
    struct storage_loss *loss = data;
    config_free(loss->truth);
    g_free(loss);
}

static void begin(struct ms *ms, void *counts)
{
    struct storage_world *storage = g_new0(struct storage_world, 1);
    ms->themed = storage;
    storage->ms = ms;
    storage->counts = counts;
    storage->counts->seeds++;
    storage->volumes = fake_volumes_new();
    storage->lives = g_ptr_array_new_with_free_func(storage_process_free);
    storage->places = g_ptr_array_new_with_free_func(storage_place_free);
    storage->losses = g_ptr_array_new_with_free_func(loss_free);
    storage->truth = config_new();
    storage->failing = ms->theme->plain ? 0 : 1;
    storage->makers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    storage->left = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    storage->beside = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    storage->resets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    storage->reset_ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    storage->asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, json_free);
    storage->forsaken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < STORAGE_BACKENDS; i++)
        storage->backends[i] = g_strdup_printf("dddddddd-0000-4000-8000-00000000000%u", i + 1);
    storage->doors = g_ptr_array_new_with_free_func(storage_door_free);
    storage->lies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    storage->frames = g_ptr_array_new_with_free_func(storage_frame_free);
    storage->jobs = g_hash_table_new(NULL, NULL);
    storage->moments = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    for (guint i = 0; i < STORAGE_GUESTS; i++) {
        struct storage_guest *guest = &storage->guests[i];
        *guest = (struct storage_guest){.storage = storage,
                                        .host = &storage->hosts[i % ms->hosts_count],
                                        .index = i,
                                        .over = true,
                                        .opens = g_ptr_array_new_with_free_func(storage_open_free)};
        g_autofree char *uuid = guest_uuid(i);
        g_strlcpy(guest->uuid, uuid, sizeof guest->uuid);
    }
    if (ms->theme == &storage_api_theme)
        storage_fronts_begin(storage);
    for (guint i = 0; i < ms->hosts_count; i++) {
        storage->hosts[i].storage = storage;
        storage->hosts[i].host = &ms->hosts[i];
        storage->ears[i].beats = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    }
}

static void end(struct ms *ms)
{
    struct storage_world *storage = storage_of(ms);
    storage_fronts_end(storage);
    for (guint i = 0; i < ms->hosts_count; i++)
        g_hash_table_unref(storage->ears[i].beats);
    for (guint i = 0; i < STORAGE_BACKENDS; i++)
        g_free(storage->backends[i]);
    g_hash_table_unref(storage->makers);
    g_hash_table_unref(storage->beside);
    g_hash_table_unref(storage->left);
    g_hash_table_unref(storage->resets);
    g_hash_table_unref(storage->reset_ids);
    g_hash_table_unref(storage->asked);
    g_hash_table_unref(storage->forsaken);
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        g_ptr_array_unref(storage->guests[i].opens);
    g_clear_pointer(&storage->backup, g_ptr_array_unref);
    g_clear_pointer(&storage->backup_log, g_ptr_array_unref);
    g_ptr_array_unref(storage->doors);
    g_hash_table_unref(storage->lies);
    g_ptr_array_unref(storage->frames);
    g_hash_table_unref(storage->jobs);
    g_hash_table_unref(storage->moments);
    g_ptr_array_unref(storage->losses);
    g_ptr_array_unref(storage->lives);
    g_ptr_array_unref(storage->places);
    config_free(storage->truth);
    fake_volumes_free(storage->volumes);
    g_free(storage);
}

static void noded_starts(struct ms_host *host)
{
    if (storage_has_guests(host->ms))
        storage_noded_starts(host);
}

#define STORAGE_THEME(is_plain, is_sqlite)                                                         \
    {                                                                                              \
        .plain = is_plain, .sqlite = is_sqlite, .rest_ms = STORAGE_REST_MS, .begin = begin,        \
        .end = end, .add_objects = add_objects, .boots = storage_boots, .ends = storage_ends,      \
        .pauses = storage_pauses, .noded_starts = noded_starts, .noded = storage_noded,            \
        .asked = storage_asked, .given = storage_given, .committed = storage_committed,            \
        .reloaded = storage_reloaded, .step = storage_step, .fault = storage_fault,                \
        .faults_end = storage_faults_end, .unrest = storage_unrest                                 \
    }

const struct ms_theme storage_theme = STORAGE_THEME(false, false);
const struct ms_theme storage_plain_theme = STORAGE_THEME(true, false);
const struct ms_theme storage_copies_theme = STORAGE_THEME(false, false);
const struct ms_theme storage_guests_theme = STORAGE_THEME(false, false);
const struct ms_theme storage_images_theme = STORAGE_THEME(false, false);
const struct ms_theme storage_restores_theme = STORAGE_THEME(false, true);
const struct ms_theme storage_api_theme = STORAGE_THEME(false, false);

bool storage_has_guests(const struct ms *ms)
{
    return ms->theme == &storage_guests_theme || ms->theme == &storage_restores_theme;
}

/* Insides of the fake hosts, shared by fake_hv.c (guests), fake_mirror.c (what they write),
 * fake_migration.c (how they move),
 * fake_room.c (disks without room), fake_storage.c (images, exports), fake_network.c (tap devices),
 * fake_strays.c (what is nobody's)
 * and fake_truth.c (who was told what). */
#pragma once

#include "helper/fake_hv.h"

struct fake_image {
    char *instance;
    char *replica;
    enum disk_template disk_template;
    guint64 *blocks;
    guint64 *stable; /* what a power cut leaves of them, at least */
    guint count;
    guint64 size_mib[LIMIT_DISKS];
    guint64 lost; /* disks whose image somebody removed, as bits */
};

struct fake_export {
    struct fake_host *host;
    char *instance;
    char *replica;
    guint64 generation;
    struct export_target *target;
    bool alive;
    bool lazy;                       /* writes are not stable before it is settled */
    const struct fake_guest *server; /* an incoming guest that serves its own disks, or NULL */
};

struct fake_write {
    guint block;
    guint64 value;
    bool local, remote;
    bool stopped; /* it found no room: held by the hypervisor, and begun again when it goes on */
};

struct fake_guest {
    struct fake_host *host;
    char *instance;
    guint64 generation;
    guint64 memory;
    enum guest_state state;
    struct fake_image *image; /* NULL: diskless */
    GArray *writes;           /* struct fake_write, in flight */
    struct export_target *target;
    enum mirror_state mirror;
    bool *copied; /* by block, while the mirror syncs */
    guint spared; /* blocks that it need not copy, as it was attached */
    bool frozen;  /* the monitor */
    guint drains; /* a command waits for the writes in flight; no new ones meanwhile */
    guint tick;   /* timer */
    bool sleeps;  /* its next tick is later than usual */
    guint powerdown;
    bool *dirty;  /* by block: written since `since` was in sync; NULL: unknown */
    char *since;  /* replica, and the word for its images */
    bool current; /* it is in sync right now, so what is answered needs no note */
    GString *console;
    GPtrArray *volumes;            /* char *: attachments that it has; NULL: none */
    guint64 volume_bytes;          /* how large it knows them to be */
    guint64 point;                 /* claim by which one is copied; 0: none is */
    struct io_info io;             /* what its disks have answered */
    bool disk_short, volume_short; /* one of them has found no room */
    bool finished;                 /* its mirror was ended in sync, and it has not run since */
    bool held;                     /* its disk has failed: it stops whenever it goes on */

    /* On either side of a migration (fake_migration.c). */
    char *migration;                /* UUID; NULL: none */
    struct migration_target *waits; /* incoming: where it waits; NULL: not an incoming one */
    bool whole;                     /* incoming: everything has arrived */
    bool broken;                    /* incoming: and never will */
    struct migration_target *to;    /* outgoing; NULL: not sending */
    struct migration_limits limits;
    enum migration_step step;
    guint memory_left; /* ticks */
    guint handing;     /* ticks until the other side has everything; 0: not asked to */
    bool resumes;      /* it ran before it was stopped for the switch */
    bool stuck;        /* its monitor, in ending a mirror whose replica is gone */
    gint64 stopped_ms;
    char *why;
};

struct fake_tap {
    char *instance;
    guint index;
    char *link;
};

enum fake_event_kind { FAKE_SHUTDOWN, FAKE_EXITED, FAKE_EXPORT_ENDED };

struct fake_event {
    enum fake_event_kind kind;
    char *instance;
    char *replica;
    guint64 generation;
};

struct fake_truth {
    char *instance;
    guint count;
    guint64 *acked;
    GArray *maybe;      /* struct fake_write: issued, not acknowledged; may or may not be found */
    guint64 generation; /* that ran last */
    guint64 acknowledged;
};

/* What a test wants of an operation, so many times. */
struct made_fault {
    enum fake_fault kind;
    guint count;
};

struct fake_host {
    struct hypervisor hv;
    struct storage storage;
    struct network_driver network;
    struct fake_hosts *hosts;
    const struct env *env;
    char *node;
    GPtrArray *guests;
    GPtrArray *images;
    GPtrArray *aside; /* struct fake_image; replica is the generation */
    GPtrArray *exports;
    GHashTable *faults; /* op -> struct made_fault */
    GHashTable *hangs;  /* ops and instances */
    GHashTable *stood;  /* instance -> boot time at which it last ceased to stand still for lack of
                         * room, gint64 */
    GPtrArray *calls;
    struct hypervisor_events guest_events;
    struct storage_events export_events;
    GPtrArray *taps;                          /* struct fake_tap */
    GPtrArray *bridges;                       /* char * */
    GPtrArray *stray_processes, *stray_files; /* char *: names */
    GPtrArray *addresses; /* char *: "DEVICE ADDRESS/NETMASK" of the host itself */
    GPtrArray *devices;   /* char * */
    guint announced;      /* how often neighbours were told */
    bool keeps_volumes;   /* its guests give none up */
    bool keeps_points;    /* copies under them do not end */
    guint powerdown_ms;
    guint prepare_ms;
    guint create_ms;
    char *creating; /* instance */
    struct env_pause create_pause;
    bool create_given_up;
    char *version;
    bool quiet;
    bool deaf;
    bool paused;       /* the node daemon */
    GPtrArray *untold; /* struct fake_event: what it hears when it goes on */
    bool disks_failed;
    bool full;            /* its disks have no room */
    bool volumes_full;    /* nor have the back ends of volumes */
    guint64 volume_bytes; /* how large each of these is */
    bool space_lies;      /* it tells some */
    const char *sources;  /* what lies in its var/images; NULL: it does not tell */
    bool shared_away;     /* the folder that all nodes mount is not mounted here */
    bool settle_lies;
    guint slow_ms;
    fake_host_hook hook;
    void *hook_data;
};

struct fake_hosts {
    GPtrArray *all;
    GPtrArray *shared; /* struct fake_image: on every host */
    GHashTable *truths;
    GRand *random;
    guint64 last_value;
    guint last_port;
    guint idle_ms;
    GPtrArray *touched; /* char * */
    bool forgets;       /* the calls */
    char *problem;
    bool (*passes)(const char *from, const char *to, void *data);
    void *passes_data;
    fake_hosts_witness witness;
    void *witness_data;
};

/* --- fake_strays.c --- */
void fake_strays_init(struct fake_host *host);
void fake_strays_clear(struct fake_host *host);
GPtrArray *fake_hv_strays(struct hypervisor *hv, GError **error);
GPtrArray *fake_storage_strays(struct storage *storage, GError **error);

/* Begins an op: logs it, waits a little, lets faults and the hook have their way. False: it fails
 * now with `error`. `*ret_late`: do it, then fail with TIMEOUT. */
bool fake_op_begin(struct fake_host *host, const char *op, const char *instance, bool *ret_late,
                   GError **error);
/* Waits while that op hangs; false: the caller was killed meanwhile. */
bool fake_op_comes_back(const struct fake_host *host, const char *op);
/* Whether it asks the process of an instance that hangs. */
bool fake_op_hangs(const struct fake_host *host, const char *op, const char *instance);
/* Ends it: `ok` unless a late fault turns it into TIMEOUT. */
bool fake_op_end(struct fake_host *host, const char *op, bool late, bool ok, GError **error);

void fake_event_free(void *data);
/* Blocks of an image, or what was acknowledged, are others now; or an image has come or gone. */
void fake_hosts_touch(struct fake_hosts *hosts, const char *instance);
/* Tells the node daemon, now or when it goes on. */
void fake_host_tell(struct fake_host *host, enum fake_event_kind kind, const char *instance,
                    const char *replica, guint64 generation);

#define FAKE_TICK_MS 5

/* Whether that image is on disks that fail; one of the folder that all nodes mount never is. */
bool fake_disks_fail(const struct fake_host *host, const struct fake_image *image);

/* --- fake_mirror.c --- */

/* From now on it writes, copies, moves; by a timer that is the guest's. */
void fake_guest_tick(struct fake_guest *guest);
/* Something begins: the next tick comes soon, however idle it was. */
void fake_guest_wake(struct fake_guest *guest);
bool fake_guest_mirrors(const struct fake_guest *guest);
/* Writes that a command which drains waits for: one that is held for lack of room is none. */
guint fake_guest_under_way(const struct fake_guest *guest);
/* The guest ends, or goes on: notes when, if it has stood still for lack of room. */
void fake_guest_stands_no_more(const struct fake_guest *guest);
/* What is held for lack of room begins again. */
void fake_guest_repeat(struct fake_guest *guest);
/* The export of its replica, if it can be reached. */
struct fake_export *fake_guest_replica(const struct fake_guest *guest);
/* The mirror is over, whatever became of it; what the replica lacks is remembered. */
void fake_guest_unmirror(struct fake_guest *guest, enum mirror_state state);
bool fake_guest_coin(const struct fake_guest *guest);
void fake_mirror_remember(struct fake_guest *guest);
bool fake_mirror_begin(struct fake_guest *guest, const struct export_target *target,
                       enum mirror_copy copy, GError **error);

/* --- fake_hv.c --- */

/* The living guest of that generation; WRONG_STATE if there is none, TIMEOUT if its monitor is
 * frozen. */
struct fake_guest *fake_guest_for(struct fake_host *host, const char *instance, guint64 generation,
                                  GError **error);
/* A new process with stopped processors. */
struct fake_guest *fake_guest_add(struct fake_host *host, const struct instance *instance,
                                  struct fake_image *image);
struct fake_host *fake_host_of_hv(struct hypervisor *hv);

/* --- fake_migration.c --- */

void fake_migration_fill(struct hypervisor_ops *ops);
void fake_migration_tick(struct fake_guest *guest);
void fake_migration_clear(struct fake_guest *guest); /* the process ends */
/* An incoming guest may run only when it is whole. */
bool fake_migration_may_run(struct fake_guest *guest, GError **error);
enum migration_state fake_migration_report(const struct fake_guest *guest);

/* --- fake_room.c --- */

void fake_room_fill(struct hypervisor_ops *ops);
void fake_attach_fill(struct hypervisor_ops *ops);
/* What its process begins with. */
void fake_guest_give_volumes(struct fake_guest *guest, const struct guest_spec *spec);
/* How large images are: of struct storage_ops. */
GPtrArray *fake_op_sizes(struct storage *storage, const char *instance, bool shared, guint count,
                         GError **error);
void fake_console_fill(struct hypervisor_ops *ops);
/* Its state as a hypervisor tells it: one that stands still was stopped by nobody else. */
enum guest_state fake_guest_told(const struct fake_guest *guest);
/* No room: the hypervisor stops the guest, and waits for all other writes, with its monitor, while
 * it does. Its replica gets no such write. */
void fake_guest_finds_no_room(struct fake_guest *guest, struct fake_write *write);
/* storage_ops.look_at, of the file of a volume. */
bool fake_room_look_at(struct storage *storage, const char *path, struct storage_file *ret_file,
                       GError **error);
/* Whether what it writes finds none. */
bool fake_guest_lacks_room(const struct fake_guest *guest);

/* --- fake_network.c --- */

void fake_network_init(struct fake_host *host);
void fake_network_clear(struct fake_host *host);

/* --- fake_storage.c --- */

struct export_target *fake_target_new(struct fake_host *host, guint64 history, const char *replica,
                                      guint64 generation, guint disks, const char *address);
void fake_storage_init(struct fake_host *host);
void fake_storage_clear(struct fake_host *host);
struct fake_image *fake_image_find(const struct fake_host *host, const char *instance,
                                   const char *replica);
void fake_image_free(void *data);
/* A power cut: each block that was written lazily is there or not. */
void fake_images_lose(struct fake_host *host);
void fake_image_write(const struct fake_host *host, struct fake_image *image, guint block,
                      guint64 value, bool stable);
/* False: its disk has no room, so it has ended. */
bool fake_export_write(struct fake_export *export, guint block, guint64 value);
/* The living export that a target names, reachable from `from`; NULL if there is none. With
 * `one_way` it is enough that data get there, whether or not answers come back. */
struct fake_export *fake_export_reach(const struct fake_host *from,
                                      const struct export_target *target, bool one_way);
bool fake_path_passes(const struct fake_host *from, const struct fake_host *to);
struct fake_host *fake_host_find(const struct fake_hosts *hosts, const char *node_uuid);
struct fake_guest *fake_guest_find(const struct fake_host *host, const char *instance);

struct fake_truth *fake_truth_get(struct fake_hosts *hosts, const char *instance, guint count);
void fake_truth_free(void *data);
void fake_truth_problem(struct fake_hosts *hosts, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A guest begins to run on this image: it must find everything that was acknowledged, and no other
 * copy may run whose writes are acknowledged (a mirrored one without its replica has none). */
void fake_truth_run(struct fake_guest *guest);
/* It goes on after a pause: with what it knows, so only the other copies matter. */
void fake_truth_resume(const struct fake_guest *guest);
void fake_truth_issue(struct fake_guest *guest, const struct fake_write *write);
void fake_truth_acknowledge(struct fake_guest *guest, const struct fake_write *write);

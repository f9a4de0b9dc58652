/* Insides of the fake hosts, shared by fake_hv.c (guests), fake_storage.c (images, exports) and
 * fake_truth.c (who was told what). */
#pragma once

#include "helper/fake_hv.h"

struct fake_image {
    char *instance;
    char *replica;
    guint64 *blocks;
    guint count;
};

struct fake_export {
    struct fake_host *host;
    char *instance;
    char *replica;
    guint64 generation;
    struct export_target *target;
    bool alive;
};

struct fake_write {
    guint block;
    guint64 value;
    bool local, remote;
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
    bool frozen;  /* the monitor */
    guint drains; /* a command waits for the writes in flight; no new ones meanwhile */
    guint tick;   /* timer */
    guint powerdown;
};

struct fake_truth {
    char *instance;
    guint count;
    guint64 *acked;
    GArray *maybe;      /* struct fake_write: issued, not acknowledged; may or may not be found */
    guint64 generation; /* that ran last */
    guint64 acknowledged;
};

struct fake_host {
    struct hypervisor hv;
    struct storage storage;
    struct fake_hosts *hosts;
    const struct env *env;
    char *node;
    GPtrArray *guests;
    GPtrArray *images;
    GPtrArray *aside; /* struct fake_image; replica is the generation */
    GPtrArray *exports;
    GHashTable *faults; /* op -> struct fault */
    GPtrArray *calls;
    struct hypervisor_events guest_events;
    struct storage_events export_events;
    guint powerdown_ms;
    bool quiet;
    fake_host_hook hook;
    void *hook_data;
};

struct fake_hosts {
    GPtrArray *all;
    GHashTable *truths;
    GRand *random;
    guint64 last_value;
    guint last_port;
    char *problem;
    bool (*passes)(const char *from, const char *to, void *data);
    void *passes_data;
};

/* Begins an op: logs it, waits a little, lets faults and the hook have their way. False: it fails
 * now with `error`. `*ret_late`: do it, then fail with TIMEOUT. */
bool fake_op_begin(struct fake_host *host, const char *op, const char *instance, bool *ret_late,
                   GError **error);
/* Ends it: `ok` unless a late fault turns it into TIMEOUT. */
bool fake_op_end(struct fake_host *host, const char *op, bool late, bool ok, GError **error);

void fake_storage_init(struct fake_host *host);
void fake_storage_clear(struct fake_host *host);
struct fake_image *fake_image_find(const struct fake_host *host, const char *instance,
                                   const char *replica);
void fake_image_free(void *data);
/* The living export that a target names, reachable from `from`; NULL if there is none. */
struct fake_export *fake_export_reach(const struct fake_host *from,
                                      const struct export_target *target);
struct fake_host *fake_host_find(const struct fake_hosts *hosts, const char *node_uuid);
struct fake_guest *fake_guest_find(const struct fake_host *host, const char *instance);

struct fake_truth *fake_truth_get(struct fake_hosts *hosts, const char *instance, guint count);
void fake_truth_free(void *data);
void fake_truth_problem(struct fake_hosts *hosts, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A guest begins to run on this image: it must find everything that was acknowledged. */
void fake_truth_run(struct fake_guest *guest);
void fake_truth_issue(struct fake_guest *guest, const struct fake_write *write);
void fake_truth_acknowledge(struct fake_guest *guest, const struct fake_write *write);

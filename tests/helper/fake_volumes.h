/*
 * Back ends in memory, behind proto/storage/volume_driver.h: what several nodes see of them, who
 * did what to them, and whatever a test wants to go wrong there.
 */
#pragma once

#include "helper/fake_env.h"

struct fake_volumes;

#define FAKE_BACKUP_BYTES 4096u     /* length of any backup, of any image made of a volume */
#define FAKE_VOLUME_LIMIT_MS 60000u /* after which a call that hangs is given up */

struct fake_volumes *fake_volumes_new(void);
void fake_volumes_free(struct fake_volumes *volumes);
/* What that process sees; lives as long as the back ends. */
struct volume_driver *fake_volumes_at(struct fake_volumes *volumes, const struct env *env);

/* --- what goes wrong --- */

/* The next `count` calls of `op` (NULL: of any, `open` too) fail so; `late`: after they have done
 * their work. */
void fake_volumes_fail(struct fake_volumes *volumes, const char *op, enum fettle_error code,
                       bool late, guint count);
/* Data that is made is half made, and the call fails (STORAGE), so often. */
void fake_volumes_make_half(struct fake_volumes *volumes, guint count);
/* From now on calls at this back end (UUID) hang, or they go on. */
void fake_volumes_hang(struct fake_volumes *volumes, const char *backend, bool hang);
/* Each call takes so long. */
void fake_volumes_delay(struct fake_volumes *volumes, guint ms);
/* A guest has it open, or has not. */
void fake_volumes_lock(struct fake_volumes *volumes, const char *name, bool locked);
bool fake_volumes_locked(const struct fake_volumes *volumes, const char *name);
/* Nothing is mounted where the back end should be on that node. */
void fake_volumes_unmount(struct fake_volumes *volumes, const char *node, bool away);
/* So much it says that it has, all of it free. */
void fake_volumes_set_space(struct fake_volumes *volumes, const char *backend, guint64 gib);
/* Transfers of images that stand open; their clients come, or go. */
guint fake_volumes_transfers(const struct fake_volumes *volumes);
void fake_volumes_client(struct fake_volumes *volumes, bool there);
void fake_volumes_set_client(struct fake_volumes *volumes, enum volume_transfer_state state);
/* Called before and after whatever a call does to the back end; in the task that waits. */
typedef void (*fake_volumes_step)(const struct env *env, void *data);
void fake_volumes_set_step(struct fake_volumes *volumes, fake_volumes_step step, void *data);
/* Called before data goes. */
typedef void (*fake_volumes_goes)(const char *name, void *data);
void fake_volumes_set_goes(struct fake_volumes *volumes, fake_volumes_goes goes, void *data);

/* --- what is there --- */

/* It has the marker of that cluster (UUID). */
void fake_volumes_mark(struct fake_volumes *volumes, const char *backend, const char *cluster);
/* What is there already becomes so large, or so small. */
void fake_volumes_put(struct fake_volumes *volumes, const char *backend, const char *name,
                      guint64 bytes, bool whole);
/* The same of any kind. */
void fake_volumes_put_as(struct fake_volumes *volumes, const char *backend, enum resource_type type,
                         const char *name, guint64 bytes, bool whole);
bool fake_volumes_has(const struct fake_volumes *volumes, const char *name);
bool fake_volumes_is_on(const struct fake_volumes *volumes, const char *name, const char *backend);
/* 0: there is none. */
guint64 fake_volumes_bytes(const struct fake_volumes *volumes, const char *name);
/* Whether it says so of itself. */
bool fake_volumes_whole(const struct fake_volumes *volumes, const char *name);
/* A number that each write changes, and a copy has of its source; 0: never written, or not there.
 */
guint64 fake_volumes_content(const struct fake_volumes *volumes, const char *name);
void fake_volumes_write(struct fake_volumes *volumes, const char *name);
/* It has what had that number. */
void fake_volumes_set_content(struct fake_volumes *volumes, const char *name, guint64 content);
/* By which an image is known that has what has that number; no lengths of disks. */
void fake_volumes_sums(guint64 content, struct image_sums *ret);
guint fake_volumes_count(const struct fake_volumes *volumes);
/* "NODE op NAME", oldest first, of all calls. */
const GPtrArray *fake_volumes_calls(const struct fake_volumes *volumes);
guint fake_volumes_count_calls(const struct fake_volumes *volumes, const char *op);

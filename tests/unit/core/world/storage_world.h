/*
 * What tests of stored things share: back ends dir1 (node1, node2) and dir2 (node2), a volume with
 * data and its row, as JSON.
 */
#pragma once

#include "unit/core/world/wconf_world.h"

#define DIR1 "dddddddd-1111-4000-8000-000000000001"
#define DIR2 "dddddddd-2222-4000-8000-000000000002"
#define VOLUME1 "eeeeeeee-1111-4000-8000-000000000001"
#define VOLUME2 "eeeeeeee-2222-4000-8000-000000000002"
#define BACKUP3 "eeeeeeee-3333-4000-8000-000000000003"

json_t *object_backend(const char *uuid); /* of the two; dir1 may hold backups and images */
/* data1 on dir1, available, 2 GiB, with data of claim 7. */
json_t *object_volume1(void);
/* before, of data1, available, with UUID VOLUME2 and data of claim 8. */
json_t *object_snapshot2(void);
/* Of data1, available, 2 GiB, on dir1 with data of claim 8 and that length. */
json_t *object_backup(const char *uuid, guint64 bytes);
/* One of those, called monday, with UUID BACKUP3, 4096 bytes, and data of claim 9. */
json_t *object_backup3(void);
/* tick, active, qcow2 of 1.5 GiB, on dir1 with data of claim 8 and that length. */
json_t *object_image(const char *uuid, guint64 bytes);
/* cinder-volume of node1 or node2 for dir1; number 1 or 2. */
json_t *object_service(const char *node);
/* Key of that, kept for ever. */
const char *service_key(const char *node);
/* deleting VOLUME1, with nobody; id 9. */
json_t *object_row1(void);
#define ROW1 "Volume/" VOLUME1
#define TYPE1 "ffffffff-1111-4000-8000-000000000001"
/* fast, public, with that extra spec (NULL: none). */
json_t *object_type(const char *spec);
json_t *object_trash(const char *name); /* on dir1 */

/* The usual cluster with both back ends. */
GPtrArray *initial_storage(void);

/* --- calls, in world; volumed[] and schedulers[] are of node1 to node3 --- */
extern struct env *volumed[3];
extern struct env *schedulers[3];
extern struct env *storage_cli;

/* Started, nobody registered; `more`: changes on record before (stolen; NULL: none). */
void storage_set_up(GPtrArray *more);
/* wconfd is killed and comes again. */
void storage_restart(void);
/* The answer, or "error_name: message", as ask_wconf(); args as for json_make(). A commit id is
 * added if there is none. */
char *storage_ask(const struct env *from, const char *method, json_t *args);
/* One member of an answer, which must be one. */
guint64 storage_number(char *said, const char *member);
/* Node N's member of dir1 registers; its generation. */
guint64 storage_register(guint node);
/* Node N's scheduler registers; its generation. Key of its record, kept for ever. */
guint64 storage_register_scheduler(guint node);
const char *scheduler_key(guint node);
/* Its arguments: service and generation. */
json_t *storage_of_scheduler(guint node, guint64 generation);
/* A request is accepted; `size` 0: none. */
void storage_accept(const char *operation, const char *resource, guint size);
/* A volume of that name on dir1, being created; its key, valid for ever. */
const char *storage_create(const char *name);
/* The same for which a back end is to be chosen. */
const char *storage_create_anywhere(const char *name);
/* Node N's member takes the row; the claim. */
guint64 storage_take(guint node, guint64 generation, const char *key);
/* The same with any end: takes a row, and ends it well. */
void storage_made(const char *key, guint64 generation);
/* One item of end_work; `with()` adds to it. */
json_t *storage_end(const char *key, guint64 claim);
/* end_work of node N with these (array, stolen); verdicts as `passed` or `refused: why`, joined by
 * "; ", or the error. */
char *storage_end_all(guint node, guint64 generation, json_t *items);
char *storage_verdicts(char *said);
/* On record now. */
const struct config *storage_committed(void);
const struct volume *storage_volume(const char *key);
const struct worker *storage_row(const char *key);
/* Writes of a kind that are stored behind a serial. */
guint storage_writes(guint64 since, const char *kind);
/* A job gives a back end that one node. */
void storage_set_nodes(const char *backend, const char *node);

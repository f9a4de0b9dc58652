/*
 * Guests that move between two nodes of a test: the steps of a live migration as the node daemons
 * take them (docs/design/procedures.md, "Migration"), and what must hold after them.
 */
#pragma once

#include "world.h"

#define MOVING_MIGRATION "44444444-4444-4444-8444-444444444444"
#define MOVING_REPLICA "22222222-2222-4222-8222-222222222222"

struct moving {
    struct world_node *a, *b;
    char *name;                      /* of node a; that of b ends with -2 */
    struct instance *before, *after; /* generations 1 and 2; one more each after a turn */
    GPtrArray *images_a, *images_b;
    struct export_target *replica; /* NULL: the template has none */
    struct migration_target *target;
    GPtrArray *volumes; /* struct guest_volume; NULL: none */
};

/* A guest of generation 1 that runs on node a, has counted, and is in sync with its replica if its
 * template has one. `format`: of its disks. */
struct moving *moving_new(const char *name, enum disk_template disk_template, guint disks,
                          enum disk_format format);
/* A volume, which both nodes see. */
void moving_attach(struct moving *moving);
/* Whether anybody has the right to write to it. */
bool moving_volume_locked(const struct moving *moving);
/* Ends what is left. */
void moving_free(struct moving *moving);

/* The process on node b that waits. */
void moving_open(struct moving *moving);
void moving_start(struct moving *moving, bool live);
/* So slowly that something can happen in between. */
void moving_start_slowly(struct moving *moving);
/* Until something has been sent. */
void moving_await_bytes(struct moving *moving);
enum migration_step moving_step(struct moving *moving, char **ret_why);
/* False after a minute. */
bool moving_await(struct moving *moving, enum migration_step step);
/* From STEP_STOPPED to STEP_DONE: the mirrors are ended, the exports closed. */
void moving_finish_mirrors(struct moving *moving);
void moving_hand_over(struct moving *moving);
/* The old process is killed, the images are the new one's, which runs. */
void moving_take(struct moving *moving);
void moving_cancel(struct moving *moving);
/* It is about to go back: b becomes a. Of template file only. */
void moving_turn(struct moving *moving);

/* The node daemon of a (or b) dies and comes back; what it finds. Free with guest_report_free(). */
struct guest_report *moving_restart(struct moving *moving, bool a);

/* Everything printed on a is on the images of b, and b counts on from there without a gap. */
void moving_check_whole(struct moving *moving);
/* The guest runs on a, and on a alone; and it goes on counting. */
void moving_check_stayed(struct moving *moving);
void moving_kill_b(struct moving *moving);

/* Insides of the fake world, shared by fake_env.c (time, calls) and fake_node.c (files, lock files,
 * starters). */
#pragma once

#include <stdint.h>

#include "helper/fake_env.h"

struct fake_work {
    void (*fn)(void *data);
    void *data;
};

struct fake_timer {
    gint64 due_ms;
    guint handle;
    const struct env *owner; /* NULL: the world's own */
    void (*fn)(void *data);
    void *data;
};

struct fake_script_row {
    char *node; /* NULL: any */
    char *role;
    char *method;
    fake_answer fn;
    void *data;
};

/* A process: `env` is first, so that a struct env leads back to it. */
struct fake_process {
    struct env env;
    struct fake_world *world;
    const char *node; /* interned */
    const char *role;
    char *boot_id;
    bool dead;
    bool paused;
    void (*asked)(void *data); /* of on_asked() */
    void *asked_data;
    GArray *late; /* struct fake_timer: what waits for it to go on, in order */
    fake_handler handler;
    void *handler_data;
};

struct fake_livelock {
    char *path; /* node/name */
    const struct fake_process *holder;
    enum livelock_verdict verdict; /* LIVELOCK_ALIVE: held, by `holder` or by the test */
};

struct fake_lock_watch {
    struct fake_process *owner;
    char *path;
    void (*released)(const char *name, void *data);
    void *data;
};

struct fake_file_watch {
    struct fake_process *owner;
    char *folder; /* "node/area/folder" */
    void (*changed)(const char *name, void *data);
    void *data;
};

struct starter {
    struct fake_world *world;
    struct fake_process *owner;
    guint64 job;
    struct starter_events events;
    void *data;
    bool confirmed;
    bool broken;
};

struct fake_world {
    gint64 now_ms;
    guint64 random_state;
    guint last_handle;
    GArray *work; /* struct fake_work, from `work_next` on */
    guint work_next;
    GArray *timers;       /* struct fake_timer: the last fires first, of the same time the oldest */
    GPtrArray *processes; /* that live */
    GPtrArray *dead;      /* their envs stay until the end */
    GPtrArray *scripts;
    GPtrArray *calls;     /* char * */
    bool forgets;         /* the calls */
    guint64 steps;        /* timers fired */
    GPtrArray *in_flight; /* struct fake_flight */
    GHashTable *cut;      /* node uuids */
    fake_path passes;
    void *passes_data;
    GHashTable *files;     /* node -> its files: "node/area/name" -> GString */
    GHashTable *livelocks; /* path -> struct fake_livelock */
    GHashTable *boots;     /* node -> boot id */
    GPtrArray *lock_watches;
    GPtrArray *file_watches;
    GPtrArray *starters;
    guint starters_busy; /* so many are refused */
    fake_delay delay;
    void *delay_data;
    fake_starter_hook starter_hook;
    void *starter_hook_data;
    fake_kill_hook kill_hook;
    void *kill_hook_data;
    GPtrArray *signals; /* char * */
    bool holders_hidden;
    enum face face; /* of who calls luxid */
    bool is_rest;   /* it is the REST daemon */
    const char *signed_by;
    char *master;
    char *fail_part;
    guint fail_count;
    GHashTable *read_only; /* node uuids: why their FILE_STATE cannot be written */
    GHashTable *hung;      /* node uuids: trials of their FILE_STATE do not come back */
    const char *slow_node; /* each write of its FILE_STATE takes so long, one after the other */
    guint slow_ms;
    gint64 slow_until_ms; /* the last one that was asked for */
    GHashTable *used_up;  /* node uuids: without a descriptor left */
    GHashTable *clocks;   /* node uuid -> gint64[2]: its wall clock is ahead by so much; when it
                             stopped, 0: not (ms) */
};

static inline struct fake_process *fake_process_of(const struct env *env)
{
    return (struct fake_process *)(uintptr_t)env;
}

void fake_post(struct fake_world *world, void (*fn)(void *data), void *data);
guint fake_timer_add(struct fake_world *world, const struct env *owner, guint ms,
                     void (*fn)(void *data), void *data);
void fake_timer_remove(struct fake_world *world, guint handle);

/* If the process is stopped: true, and fn(data) is called when it goes on (or has ended). */
bool fake_late(struct fake_process *process, void (*fn)(void *data), void *data);

/* fake_node.c */
void fake_node_init(struct fake_world *world);
void fake_node_clear(struct fake_world *world);
void fake_node_fill(struct env_ops *ops);
void fake_node_process_died(struct fake_process *process);

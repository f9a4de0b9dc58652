/*
 * What the cases of the suite for engines are made of (test_engines.c): the engine under test as a
 * process that begins and ends, changes, commits and their answers, everything that is stored as
 * one text; and where the engines differ on purpose.
 */
#pragma once

#include "engine_rigs.h"

#define SUITE_BOOT "11111111-2222-4333-8444-555555555555"
#define SUITE_JOURNAL "66666666-7777-4888-8999-000000000000"

/* What a commit or a barrier got. */
struct outcome {
    bool done;
    guint order;
    enum engine_result result;
    GError *error;
    GPtrArray *changes; /* of a commit, which borrows them */
};

/* The case that runs. */
struct suite {
    const struct rig_kind *kind;
    struct rig *rig;
    struct engine *engine;
    struct mastership me;
    guint order;       /* of the answers */
    GPtrArray *parked; /* struct outcome: what comes too late is not to find them gone */
};
extern struct suite *suite;

/* --- what is expected --- */

/* This code with exactly this text (with * where a path stands), or what the table of differences
 * has for this engine `when`. */
void suite_expect_error(const GError *error, const char *when, enum fettle_error code,
                        const char *text);
/* Waits for it. */
void suite_expect_refusal(struct outcome *outcome, const char *when, enum fettle_error code,
                          const char *text);

/* --- changes; new --- */

struct change *suite_put(const char *kind, const char *key, json_t *object);
struct change *suite_drop(const char *kind, const char *key);
json_t *suite_object(const char *text);
/* NULL at the end; a version is set when it is committed. */
GPtrArray *suite_list(struct change *first, ...);
/* One put. */
GPtrArray *suite_tag(const char *key, const char *text);

/* --- a process --- */

void suite_open(void);
void suite_close(void);
void suite_set_seat(struct mastership *seat, const char *node, const char *boot,
                    const char *journal);
bool suite_campaign(struct mastership *me, GError **error);
bool suite_resign(const char *next, GError **error);
bool suite_observe(struct mastership *ret_master);
/* Reads first what is to be read first. */
void suite_take_seat(void);
/* And finds this serial. */
void suite_become_master(guint64 serial);
/* The next process of the same seat. It keeps the epoch, unless there is a lease, and it was away
 * for longer than that because this machine has too much to do. */
void suite_restart(guint64 serial);

/* --- reading everything --- */

struct loaded {
    GPtrArray *lines; /* "kind key version json" of each object */
    GPtrArray *deleted;
    guint64 history, serial;
    bool ok;
    GError *error;
};

/* `data`: struct loaded, with two lists. */
void suite_load_task(void *data);
/* Of two lines, for g_ptr_array_sort(). */
int suite_compare_lines(const void *a, const void *b);
/* What is there as one text, sorted; to be freed. */
char *suite_load(guint64 wanted_serial);
/* The deletions that are told with everything else, in the order of the log; to be freed. */
char *suite_load_deleted(void);

/* --- commits --- */

/* Begun, not waited for; `changes` is stolen. The answer lives as long as the suite. */
struct outcome *suite_commit_as(guint64 epoch, const char *id, guint64 serial, GPtrArray *changes);
/* Must be done. */
void suite_commit(const char *id, guint64 serial, GPtrArray *changes);
guint64 suite_lookup(const char *id);
struct outcome *suite_barrier(void);
void suite_outcome_free(void *data);

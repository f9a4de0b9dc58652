/*
 * A node with a luxid's environment, in which processes of jobs are begun: for test_starter.c and
 * test_nursery.c. wconfd is a socket that takes connections and says nothing.
 */
#pragma once

#include "world.h"

#include "io/nursery.h"
#include "io/real_env.h"

extern char *job_program; /* path of fettle-job, from the command line */

struct fixture {
    struct node_paths *paths;
    char *bin;
    struct env *env;
    int wconfd; /* its socket: who asks there for the configuration has begun with the job */
    /* what was heard */
    char *name;
    guint64 pid, ticks;
    guint named, broken;
    bool confirmed;
    bool confirm_at_once;
    bool dying; /* it may be dead when its name is heard */
};

extern const struct starter_events events;

/* What is in the place of fettle-job. */
void put_program(struct fixture *fixture, const char *script);
void put_job_file(struct fixture *fixture, guint64 job);
/* Whether a job has begun within that time: it reads its file, and asks wconfd. */
bool has_begun(struct fixture *fixture, int timeout_ms);
void set_up(struct fixture *fixture, gconstpointer unused);
void tear_down(struct fixture *fixture, gconstpointer unused);
struct starter *start(struct fixture *fixture, guint64 job);
void wait_gone(struct fixture *fixture);
/* Words of a process, as everybody sees them. */
char **words_of(guint64 pid);
/* A job that has begun; it waits for wconfd, which never answers, until it is killed. */
void begin(struct fixture *fixture, guint64 job);
void end(struct fixture *fixture);
guint64 parent_of(guint64 pid);
/* Until it is reaped, which is after its socket is closed. */
void wait_no_child(void);
void named_cb(struct starter *starter, const char *livelock, guint64 pid, guint64 ticks,
              void *data);
void broken_cb(struct starter *starter, bool confirmed, void *data);

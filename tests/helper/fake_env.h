/*
 * A small world in memory for unit tests of core/: virtual time, files, lock files, a network of
 * handlers, an engine (fake_engine.h). One world has any number of processes; each process is a
 * struct env. Nothing happens unless the test lets it: fake_settle() runs what is posted,
 * fake_advance() lets time pass, fake_run() runs a task to its end.
 *
 * A call goes, in this order: to a script of the test (fake_script), to the handler of the process
 * with that node and role (fake_serve), else it fails with UNREACHABLE. Arguments are checked
 * against the method table as a carrier does.
 */
#pragma once

#include "proto/env.h"

struct fake_world;

/* At most one world exists at a time, because tasks have one poster. */
struct fake_world *fake_world_new(void);
void fake_world_free(struct fake_world *world);
/* The node that NODE_MASTER means; none at first. */
void fake_world_set_master(struct fake_world *world, const char *node_uuid);
/* As whom luxid takes those that call it from now on; FACE_OWN at first. */
void fake_set_face(struct fake_world *world, enum face face);
/* Whether those are the REST daemon; not so at first. */
void fake_set_rest(struct fake_world *world, bool is_rest);
/* Which authority has signed the certificates of those who ask from now on (rpc_request.signed_by),
 * borrowed; NULL at first: nobody tells. */
void fake_set_signed_by(struct fake_world *world, const char *fingerprint);

/* A new process. `role` is a ROLE_ word. The env lives until fake_world_free(). engine, hypervisor
 * and storage are NULL until the test sets them: the env is the test's to write. */
struct env *fake_process(struct fake_world *world, const char *node_uuid, const char *role);
/* SIGKILL: its tasks unwind, its timers, calls and handlers are gone, its lock files are released.
 * Settles. */
void fake_kill(const struct env *env);

/* SIGSTOP: time goes on without it; its timers, its answers, requests to it, and what its lock
 * files and folders would tell it come when it goes on. What its tasks wait for on a host
 * (fake_hv.h) comes all the same: a test that needs that stopped, too, says so there. */
void fake_pause(const struct env *env);
void fake_resume(const struct env *env);
/* The same for a process whose loop reads what has come before it looks at its timers. */
void fake_resume_reading(const struct env *env);
bool fake_paused(const struct env *env);

/* --- time and work --- */

gint64 fake_now_ms(const struct fake_world *world);
/* How many timers have fired: what a run costs. */
guint64 fake_steps(const struct fake_world *world);
/* Runs everything that is posted, and what that posts, without letting time pass. */
void fake_settle(struct fake_world *world);
/* Lets `ms` pass: timers fire in order, posted work runs after each. */
void fake_advance(struct fake_world *world, guint ms);
/* Runs fn(data) as a task of the process; time passes as needed; returns when it has ended. It is
 * an error of the test if that takes more than an hour of virtual time. */
void fake_run(const struct env *env, task_fn fn, void *data);

/* Somebody sets the wall clock of a node: it is so much ahead of the others' from now on; or it
 * stands still until it is set. */
void fake_set_clock(struct fake_world *world, const char *node, gint64 ahead_ms);
void fake_stop_clock(struct fake_world *world, const char *node);

/* --- calls --- */

typedef void (*fake_handler)(struct rpc_request *request, void *data);
/* Calls to (node, role of `env`) are given to `handler`. */
void fake_serve(const struct env *env, fake_handler handler, void *data);
/* Answers a method instead of any process; return NULL and set `error`, or the answer. `fn` NULL
 * ends the script. `node` NULL: on any node. */
typedef json_t *(*fake_answer)(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error);
void fake_script(struct fake_world *world, const char *node, const char *role, const char *method,
                 fake_answer fn, void *data);
/* A ready script: the answer is always an empty object. */
json_t *fake_answer_nothing(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error);
/* Nothing passes to or from the node until it is healed. */
void fake_cut(struct fake_world *world, const char *node_uuid, bool cut);
/* Whether a message gets from one node to another, asked when it arrives; a cut one-way path loses
 * requests in one direction and answers in the other. NULL: always. */
typedef bool (*fake_path)(const char *from_node, const char *to_node, void *data);
void fake_set_path(struct fake_world *world, fake_path passes, void *data);
/* "NODE/role method {args}" of every call made, oldest first. */
const GPtrArray *fake_calls(const struct fake_world *world);
/* Remembers no calls from now on: a long run has millions. */
void fake_forget_calls(struct fake_world *world);
guint fake_count_calls(const struct fake_world *world, const char *prefix);
/* Calls and waits outside of any task; `args` is stolen. NULL with the error that was answered. */
json_t *fake_call(const struct env *from, const char *to_node, const char *to_role,
                  const char *method, json_t *args, GError **error);
/* The same without waiting: the reply is kept in `*reply` when it comes (which must live until
 * then). */
struct fake_reply {
    bool done;
    json_t *result;
    GError *error;
};
void fake_call_start(const struct env *from, guint job, const char *to_node, const char *to_role,
                     const char *method, json_t *args, struct fake_reply *reply);
/* With the history and epoch of the calling job. */
void fake_call_start_stamped(const struct env *from, guint job, struct stamp stamp,
                             const char *to_node, const char *to_role, const char *method,
                             json_t *args, struct fake_reply *reply);
void fake_reply_clear(struct fake_reply *reply);

/* --- files --- */

/* The next `count` operations on files whose name contains `part` fail with STORAGE. */
void fake_fail_files(struct fake_world *world, const char *part, guint count);
/* Nothing of FILE_STATE of that node can be written any more, or again: its root is read-only. */
void fake_set_read_only(struct fake_world *world, const char *node, bool read_only);
/* The same for lack of room, until it is not read-only. */
void fake_fill_state(struct fake_world *world, const char *node);
/* Processes on that node have as many descriptors open as they may, or have some left again. */
void fake_set_descriptors_used_up(struct fake_world *world, const char *node, bool used_up);
/* Whether they may open one; TEMPORARY. For trials. */
bool fake_descriptor_left(const struct env *env, GError **error);
/* A trial of FILE_STATE on that node, and a write of it in a task, does not come back until this is
 * over. */
void fake_set_hung(struct fake_world *world, const char *node, bool hung);
/* A write of FILE_STATE on that node in a task takes so long from now on, and waits for those
 * before it. `node` is borrowed; one at a time. */
void fake_set_slow(struct fake_world *world, const char *node, guint ms);
/* Direct access, as a test sees the disk; NULL if there is none. Borrowed. */
const char *fake_file(struct fake_world *world, const char *node, enum file_area area,
                      const char *name);
void fake_file_put(struct fake_world *world, const char *node, enum file_area area,
                   const char *name, const char *text);
/* The node boots: run/ and its lock files are gone, the boot id is another. Kill its processes
 * first. */
void fake_reboot(struct fake_world *world, const char *node);

/* --- lock files --- */

/* A lock file held by nobody's process but the test, and what the probe says of it. */
void fake_livelock(struct fake_world *world, const char *node, const char *name,
                   enum livelock_verdict verdict);

/* --- starters (luxid) --- */

/* The next `count` that are asked for are refused for now (TEMPORARY). */
void fake_starters_busy(struct fake_world *world, guint count);
/* Number of starters spawned so far; `index` in order of their birth. */
guint fake_starters(const struct fake_world *world);
guint64 fake_starter_job(const struct fake_world *world, guint index);
bool fake_starter_confirmed(const struct fake_world *world, guint index);
/* The child reports its lock file, which from then on is held; the child's pipe breaks. Both are
 * posted. */
void fake_starter_named(struct fake_world *world, guint index, const char *livelock);
void fake_starter_break(struct fake_world *world, guint index);
/* The same for a child that is a process of this world and has made its lock file itself. */
void fake_starter_report(struct fake_world *world, guint index, const char *livelock);

/* --- for whole clusters (tests/sim) --- */

/* Fires the next timer due until `limit_ms` (and all that it posts); false: none is, and time is
 * then `limit_ms`. */
bool fake_step(struct fake_world *world, gint64 limit_ms);
/* How long a request or an answer travels; NULL: no time. */
typedef guint (*fake_delay)(const char *from_node, const char *to_node, void *data);
void fake_set_delay(struct fake_world *world, fake_delay delay, void *data);
/* Called, posted, after a starter was spawned and after it was confirmed. */
typedef void (*fake_starter_hook)(guint index, bool confirmed, void *data);
void fake_set_starter_hook(struct fake_world *world, fake_starter_hook hook, void *data);
/* Signals to processes of jobs: "job-17 TERM", "job-17 KILL", oldest first; borrowed. A process of
 * this world that holds that lock file is asked, or given to the hook, which kills it; posted. */
const GPtrArray *fake_signals(const struct fake_world *world);
/* From now on nobody can tell which process has a lock file. */
void fake_hide_holders(struct fake_world *world);
/* SIGTERM, posted, for a process whose lock file the test made. */
void fake_ask(struct env *env);
typedef void (*fake_kill_hook)(const struct env *env, void *data);
void fake_set_kill_hook(struct fake_world *world, fake_kill_hook hook, void *data);
/* A power cut: what was written and not synced may be lost, whole or in part, as `chance` (a number
 * from 0 to 99) says for each file. Kill the node's processes first; fake_reboot() follows. */
void fake_lose_unsynced(struct fake_world *world, const char *node, guint (*chance)(void *data),
                        void *data);

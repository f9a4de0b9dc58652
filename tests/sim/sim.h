/*
 * The simulator: a whole cluster in virtual time. It runs the shipped thinking of wconfd, luxid,
 * jobs, noded and the watcher on the fake world (helper/fake_env.h) and on hosts whose guests
 * really write (helper/fake_hv.h), injects faults, and after each event checks what safety.md lists
 * under "What checkers watch". Same seed, same run.
 */
#pragma once

#include "core/config/model.h"
#include "helper/fake_engine.h"
#include "helper/fake_env.h"
#include "helper/fake_hv.h"

struct sim;

struct sim_options {
    guint64 seed;
    guint nodes;        /* node1 is the master */
    guint max_delay_ms; /* of a message; 0: none, for golden logs */
    const json_t
        *cluster; /* settings of the cluster that are not the usual ones, borrowed; NULL: none */
    void (*log)(const char *line, void *data); /* every line of the golden log; NULL: none */
    void *log_data;
};

struct sim *sim_new(const struct sim_options *options);
void sim_free(struct sim *sim);

/* What a checker found, in words; NULL: nothing so far. The first finding stays. */
const char *sim_problem(const struct sim *sim);

gint64 sim_now_ms(const struct sim *sim);
/* Timers that have fired: what a run costs. */
guint64 sim_steps(const struct sim *sim);
/* Lets time pass; checks after each event. */
void sim_pass(struct sim *sim, guint ms);
/* The committed configuration, as a client of the master sees it. */
const struct config *sim_config(struct sim *sim);
guint sim_random(struct sim *sim, guint below);
void sim_log(struct sim *sim, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* --- as an operator --- */

/* Submits one opcode (stolen); the job's id, 0 with the error if it was refused. */
guint64 sim_submit(struct sim *sim, json_t *opcode, GError **error);
/* A call of LUXI; `args` is stolen. */
json_t *sim_ask(struct sim *sim, const char *method, json_t *args, GError **error);
/* Asks for the end of a job; whether luxid took it. */
bool sim_cancel(struct sim *sim, guint64 job);
/* Final state of a job, NULL while it has none (or is unknown). */
const char *sim_job_final(struct sim *sim, guint64 job);

/* --- as fate; nodes are "node1"… --- */

bool sim_has_node(const struct sim *sim, const char *node);
bool sim_powered(const struct sim *sim, const char *node);
bool sim_linked(const struct sim *sim, const char *node);
void sim_power(struct sim *sim, const char *node, bool on);
void sim_link(struct sim *sim, const char *node, bool up);
/* "wconfd", "luxid", "watcher" (of the master) or "noded": it starts again after a moment. */
void sim_kill(struct sim *sim, const char *daemon, const char *node);
/* SIGSTOP (or SIGCONT) of such a daemon: time goes on without it. */
void sim_stop(struct sim *sim, const char *daemon, const char *node, bool stop);
/* Stops the process of a running job, and lets all stopped ones go on. */
bool sim_stop_job(struct sim *sim);
void sim_continue_jobs(struct sim *sim);
/* What `from` sends does not get to `to` (or does again); the other way is not touched. */
void sim_one_way(struct sim *sim, const char *from, const char *to, bool cut);
/* Messages from and to the node take up to so long, and overtake each other; 0: as usual. */
void sim_congest(struct sim *sim, const char *node, guint ms);
/* Whether one of the two is so; everything that the node sends gets through in time again. */
/* Its daemons cannot write what must survive a power cut; what runs there goes on. */
void sim_read_only(struct sim *sim, const char *node, bool read_only);
/* The same, as there is no room, until it is not read-only. */
void sim_fill_state(struct sim *sim, const char *node);
/* The same, as its disk does not answer. */
void sim_hang_state(struct sim *sim, const char *node);
/* Somebody sets its wall clock: so much ahead of what it was in the beginning. */
void sim_set_clock(struct sim *sim, const char *node, gint64 ahead_s);
/* It stands still until it is set again. */
void sim_stop_clock(struct sim *sim, const char *node);
bool sim_troubled(const struct sim *sim, const char *node);
void sim_ease(struct sim *sim, const char *node);
/* How often guests that have nothing under way look for something to write (fake_hv.h). */
void sim_set_idle_ms(struct sim *sim, guint ms);
/* Kills the process of a running job; `id` 0: the youngest. False if there is none. */
bool sim_kill_job(struct sim *sim, guint64 id);
/* The process of a guest dies on its holder (UUIDs). */
void sim_kill_guest(struct sim *sim, const char *instance, const char *holder);
/* All disks of a node fail, or work again with what they had. */
void sim_fail_disks(struct sim *sim, const char *name, bool fail);
bool sim_disks_fail(const struct sim *sim, const char *name);
/* The images on its primary are whole, and can be read: without its replica's all is there. */
bool sim_primary_is_whole(struct sim *sim, const struct instance *instance);
/* Somebody removes the images of an instance or of its replica. */
void sim_lose_images(struct sim *sim, const struct instance *instance, bool replica);
/* What hangs there (fake_host_hang()); NULL: whatever does. */
void sim_hang(struct sim *sim, const char *node, const char *what, bool hangs);
/* The image of one disk only; nothing ends by that. */
void sim_lose_disk(struct sim *sim, const struct instance *instance, bool replica, guint disk);
/* Migrations that are on record as done, so far. */
guint sim_moves(const struct sim *sim);
/* The next word that a replica is stale is lost with its master (SAF-09); so many were. */
void sim_lose_word(struct sim *sim);
guint sim_lost_words(const struct sim *sim);
/* What jobs ask of a node about an instance stays on its way, as long as `hold` says, and until it
 * is let through: whether who has asked still lives or not. */
void sim_hold_requests(struct sim *sim, const char *node, bool hold);
void sim_let_requests(struct sim *sim, const char *node);
guint sim_held_requests(const struct sim *sim, const char *node);
guint sim_running_jobs(const struct sim *sim);
struct fake_host *sim_host(struct sim *sim, const char *node);
struct fake_hosts *sim_hosts(struct sim *sim);
const char *sim_node_uuid(const struct sim *sim, const char *node);
const char *sim_node_name(const struct sim *sim, const char *uuid);
/* Whether everything that was accepted has ended and nothing is broken that could be mended: why
 * not, NULL if so. */
char *sim_unrest(struct sim *sim);
/* What recovery has done so far. */
struct sim_recovery_counts {
    guint64 settled, errors, blind, taken_back, finishing, looks, alerts;
    guint64 refused; /* requests of dead jobs that came too late */
};
const struct sim_recovery_counts *sim_recovery_counts(const struct sim *sim);
/* Whether a node daemon is at a look for it: a pass is under way. */
bool sim_recovery_looks(const struct sim *sim);
/* How long the longest pause between two tries of a repair lasts still, by what its decision says
 * of its next check; 0: none pauses. */
guint sim_pause_ms(const struct sim *sim);

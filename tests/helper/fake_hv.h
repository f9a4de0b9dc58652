/*
 * Hosts without QEMU and disks: a hypervisor and a storage for each host, in which guests really
 * write, mirrors really copy, and replicas are really lost, so that a test can check that no
 * acknowledged write is ever missing where the record says that it is (SAF-13).
 *
 * Every image is a few blocks, every write has a number that no other write has. A running guest
 * issues writes; a write is acknowledged when it is on the local image and, while a mirror exists,
 * on the replica. A replica that cannot be reached holds the writes of its guest until it is
 * reachable again or the mirror is released. A command that drains (pause, reset, mirror_finish)
 * while a write is held freezes the monitor, as QEMU's does.
 *
 * A guest that is sent to another host (SAF-17) stands still when its memory is over there, waits
 * to be told to hand over, and goes on by itself if that fails; a hand-over that is cut can leave
 * the other side whole while this one goes on. An incoming guest runs only when it is told to; told
 * before everything has arrived it is a fault.
 *
 * Everything happens by timers of the env that a host was added with. That env stands for the host,
 * not for its node daemon: it must outlive the node daemon, as QEMU does. Guests go on when
 * the node daemon is gone; set_events() by a new one reaches them again.
 */
#pragma once

#include "proto/env.h"

#define FAKE_BLOCKS 4 /* of each disk */

struct fake_hosts; /* all hosts, and what their guests were told */
struct fake_host;

struct fake_hosts *fake_hosts_new(guint64 seed);
void fake_hosts_free(struct fake_hosts *hosts);
struct fake_host *fake_host_add(struct fake_hosts *hosts, const char *node_uuid,
                                const struct env *env);
struct hypervisor *fake_host_hypervisor(struct fake_host *host);
struct storage *fake_host_storage(struct fake_host *host);
struct network_driver *fake_host_network(struct fake_host *host);

/* Whether data get from one host to another; NULL: always. A connection needs both ways. */
void fake_hosts_set_path(struct fake_hosts *hosts,
                         bool (*passes)(const char *from, const char *to, void *data), void *data);

/* Is told of each op on a host before it is done; NULL: nobody is. */
typedef void (*fake_hosts_witness)(const char *node_uuid, const char *op, const char *instance,
                                   void *data);
void fake_hosts_set_witness(struct fake_hosts *hosts, fake_hosts_witness witness, void *data);

/* Guests with nothing under way look only so often whether there is something to write (0, as at
 * first: all the time), so that quiet hours cost little. */
void fake_hosts_set_idle_ms(struct fake_hosts *hosts, guint ms);
/* Hosts remember no calls from now on: a long run has millions. */
void fake_hosts_forget_calls(struct fake_hosts *hosts);
/* Instances (char *) whose images, or what was acknowledged to them, have changed since
 * fake_hosts_untouch(): what fake_hosts_whole() says of all others is as it was. Borrowed. */
const GPtrArray *fake_hosts_touched(const struct fake_hosts *hosts);
void fake_hosts_untouch(struct fake_hosts *hosts);

/* --- what is true --- */

/* What went wrong so far, in words: an acknowledged write that a started guest does not find, a
 * write acknowledged to a superseded guest, two openers of one image. NULL: nothing. */
const char *fake_hosts_problem(const struct fake_hosts *hosts);
/* Does this image have every acknowledged write of the instance (and nothing that nobody wrote)?
 * `replica` "" for the primary's. */
bool fake_hosts_whole(const struct fake_hosts *hosts, const char *node_uuid, const char *instance,
                      const char *replica);
/* The same of a replica; what a failover has left is it before its images have its name (SAF-26).
 */
bool fake_hosts_replica_whole(const struct fake_hosts *hosts, const char *node_uuid,
                              const char *instance, const char *replica);
/* The same of what a failover has made the instance's, also before its images are called so: its
 * job may have died. */
bool fake_hosts_primary_whole(const struct fake_hosts *hosts, const char *node_uuid,
                              const char *instance);
/* The same of images that are kept aside there. */
bool fake_hosts_kept_whole(const struct fake_hosts *hosts, const char *node_uuid,
                           const char *instance);
/* Do the two images have the same content (SAF-11)? */
bool fake_hosts_equal(const struct fake_hosts *hosts, const char *instance, const char *node_a,
                      const char *replica_a, const char *node_b, const char *replica_b);
guint64 fake_hosts_acknowledged(const struct fake_hosts *hosts, const char *instance);
/* The data of the first `disks` disks are given up on purpose (reinstall, recreate-disks): the next
 * run finds them blank, or as they were if that has failed. */
void fake_hosts_give_up(struct fake_hosts *hosts, const char *instance, guint disks);
/* Guests of the instance whose processors run, on all hosts. */
guint fake_hosts_running(const struct fake_hosts *hosts, const char *instance);

/* Memory that its process there was started with (MiB); 0: there is none. */
guint64 fake_host_memory(const struct fake_host *host, const char *instance);

enum guest_state fake_host_state(const struct fake_host *host, const char *instance,
                                 guint64 *ret_generation);
enum mirror_state fake_host_mirror(const struct fake_host *host, const char *instance);
/* Blocks that its mirror took as equal when it was attached last, because nobody had written them.
 */
guint fake_host_spared(const struct fake_host *host, const char *instance);
/* Requests of its disks that have failed, as its hypervisor counts them. */
guint64 fake_host_io_errors(const struct fake_host *host, const char *instance);
/* A write of the guest waits for an unreachable replica. */
bool fake_host_held(const struct fake_host *host, const char *instance);
bool fake_host_exports(const struct fake_host *host, const char *instance);
bool fake_host_has_image(const struct fake_host *host, const char *instance, const char *replica);
/* Of every disk that it was made for. */
bool fake_host_has_disks(const struct fake_host *host, const char *instance, const char *replica);
/* An incoming guest waits here (of that migration, unless NULL); a guest is being sent. */
bool fake_host_waits(const struct fake_host *host, const char *instance, const char *migration);
enum migration_step fake_host_step(const struct fake_host *host, const char *instance);
/* With which it was sent last; borrowed. */
const struct migration_limits *fake_host_limits(const struct fake_host *host, const char *instance);
guint fake_host_taps(const struct fake_host *host, const char *instance);
guint64 fake_host_disk_mib(const struct fake_host *host, const char *instance, const char *replica,
                           guint disk);
/* "op instance …" of every call so far, oldest first. */
const GPtrArray *fake_host_calls(const struct fake_host *host);
guint fake_host_count(const struct fake_host *host, const char *prefix);

/* --- what a test does to a host --- */

/* Every process is gone at once; images keep what was written, and of what a lazy export was
 * written and not settled any part. */
void fake_host_power_off(struct fake_host *host);
/* The guest switches itself off (paused, event), or its process dies (event). */
void fake_host_guest_poweroff(struct fake_host *host, const char *instance);
void fake_host_guest_crash(struct fake_host *host, const char *instance);
/* The job of the mirror ends by itself; the guest's writes go on. */
void fake_host_mirror_vanish(struct fake_host *host, const char *instance);
/* The migration that is being sent breaks; a guest that stands still for it goes on by itself. */
void fake_host_migration_break(struct fake_host *host, const char *instance);
/* By how much longer the memory of its guests takes to be sent. */
void fake_host_set_slow(struct fake_host *host, guint ms);
/* Nothing that happens to guests and exports is told any more (or again): events are lost. */
void fake_host_set_deaf(struct fake_host *host, bool deaf);
/* The node daemon is stopped (fake_pause), its guests and exports are not: what it asked the host
 * for ends when it goes on, and what happened meanwhile is told then. */
void fake_host_set_paused(struct fake_host *host, bool paused);
/* What hangs until it does not any more: an instance's process (its processors, and its monitor,
 * which answers nothing; it can be killed), or an op that looks ("space", "list", "shared",
 * "sources", "bridges", "processes", "files"), which comes back then. NULL: whatever hangs goes on.
 */
void fake_host_hang(struct fake_host *host, const char *what, bool hangs);
bool fake_host_hangs(const struct fake_host *host, const char *what); /* NULL: anything */
/* Of the hypervisor; "7.2.22" at first. */
void fake_host_set_version(struct fake_host *host, const char *version);
/* A bridge is made; `br0` is there at first. With `there` false it is removed. */
void fake_host_set_bridge(struct fake_host *host, const char *name, bool there);
/* What no node daemon has made (fake_strays.c): a process of a hypervisor, a file among the images.
 */
void fake_host_set_process(struct fake_host *host, const char *name, bool there);
void fake_host_set_file(struct fake_host *host, const char *name, bool there);
/* Addresses of the host itself, "DEVICE ADDRESS/NETMASK", in the order in which they came; free
 * with g_free(). It has the devices eth0 and eth1. */
char *fake_host_addresses(const struct fake_host *host);
void fake_host_set_address(struct fake_host *host, const char *text, bool there);
/* How often neighbours were told of one. */
guint fake_host_announced(const struct fake_host *host);
/* What lies in its var/images, with spaces between (borrowed); NULL, as in the beginning: the host
 * does not tell. */
void fake_host_set_sources(struct fake_host *host, const char *names);
/* The folder that all nodes mount is not mounted on this host (or again). */
void fake_host_set_shared(struct fake_host *host, bool there);
/* How long the process of a guest takes to be made, beyond the usual; 0 at first. */
void fake_host_set_prepare_ms(struct fake_host *host, guint ms);
/* How long images take to be made; 0 at first. */
void fake_host_set_create_ms(struct fake_host *host, guint ms);
/* The disk below an export fails: it ends by itself (SAF-14). */
void fake_host_export_fail(struct fake_host *host, const char *instance);
/* Exports that are settled say so and keep nothing: what a test can show to be found out. */
void fake_host_set_settle_lies(struct fake_host *host, bool lies);
/* Somebody removes the images of an instance or of its replica; an export of them fails. */
void fake_host_lose_images(struct fake_host *host, const char *instance, const char *replica);
/* The same of one disk; whoever has it open, such as an export, notices nothing. */
void fake_host_lose_disk(struct fake_host *host, const char *instance, const char *replica,
                         guint disk);
/* Its disks have failed as a whole (or work again): no space at all, nothing can be made, renamed
 * or removed there, guests are told that their writes have failed, exports end. What they had is as
 * it was when they work again. */
void fake_host_set_disks_failed(struct fake_host *host, bool failed);
bool fake_host_disks_failed(const struct fake_host *host);
/* Its disks have no room (or have some again): nothing can be made there, a write of a guest stops
 * it and is held, one of an export ends that. */
void fake_host_set_full(struct fake_host *host, bool full);
bool fake_host_is_full(const struct fake_host *host);
/* The same of what volumes are on: it stops guests that have one. */
void fake_host_set_volumes_full(struct fake_host *host, bool full);
/* It says that there is room, whether there is or not. */
void fake_host_set_space_lies(struct fake_host *host, bool lies);
/* A person stops a guest's processors, or lets them go on. */
void fake_host_guest_pause(struct fake_host *host, const char *instance, bool paused);
/* The guest's monitor answers nothing, as it waits for writes that are held. */
bool fake_host_frozen(const struct fake_host *host, const char *instance);
/* A running guest stands still although there is room, and again whenever it goes on: its disk has
 * failed. */
void fake_host_hold(struct fake_host *host, const char *instance);
/* Whether a guest stands still for lack of room, or did so a short while ago, even if it has ended
 * since. */
bool fake_host_stood_still(const struct fake_host *host, const char *instance, guint within_ms);
/* Whether its process has a volume, by its attachment. */
bool fake_host_has_volume(const struct fake_host *host, const char *instance,
                          const char *attachment);
/* How large the data of volumes are here, and how large a guest knows its volumes to be. */
void fake_host_set_volume_bytes(struct fake_host *host, guint64 bytes);
guint64 fake_host_volume_bytes(const struct fake_host *host, const char *instance);
/* Claim for which a volume is copied under that guest; 0: none is. */
guint64 fake_host_point(const struct fake_host *host, const char *instance);
/* Such copies do not come to an end. */
void fake_host_keep_points(struct fake_host *host, bool keeps);
/* Its guests give no volume up. */
void fake_host_keep_volumes(struct fake_host *host, bool keeps);
/* Why the hypervisor has stopped a guest by itself. */
enum io_stop fake_host_io_stop(const struct fake_host *host, const char *instance);
/* How long guests take to obey a powerdown; 0: they ignore it. 20 at first. */
void fake_host_set_powerdown_ms(struct fake_host *host, guint ms);
/* Guests of this host write nothing from now on (or again). */
void fake_host_set_quiet(struct fake_host *host, bool quiet);

enum fake_fault {
    FAKE_FAULT_FAILS,  /* error, nothing was done */
    FAKE_FAULT_LATE,   /* error TIMEOUT, but it was done */
    FAKE_FAULT_SILENT, /* error TIMEOUT, nothing was done */
};
/* The next `count` calls of the op ("prepare", "query", "probe", "export_open", "sync" …) go wrong.
 */
void fake_host_fault(struct fake_host *host, const char *op, enum fake_fault fault, guint count);

void fake_host_clear_faults(struct fake_host *host);

/* Called before and after each op. True: the caller never comes back from it (until its process is
 * killed): the way to kill a node daemon at each step. */
typedef bool (*fake_host_hook)(struct fake_host *host, const char *op, bool after, void *data);
void fake_host_set_hook(struct fake_host *host, fake_host_hook hook, void *data);

/*
 * The lab: a whole cluster on one machine, with power cuts that are real. `fettle lab …` and the
 * end-to-end tests call this; both only name what they want.
 *
 * Each node is a network namespace on a switch of its own lab (address 10.99.0.N, or fd99::N in
 * hexadecimal digits, on its bridge br0, to which guests are connected too), and its root DIR/nodeN
 * is an ext4 on a loop file, with var/disks an ext4 of its own, run/ a tmpfs, and log/ bound to
 * DIR/log/nodeN outside (as a serial console would record it: what was printed stays known after a
 * power cut). var/shared is DIR/shared on all nodes: an ext4 of its own that no node's power cut
 * concerns. Programs in DIR/nodeN.programs are found first by that node's daemons: another QEMU,
 * for example. A supervisor (the program fettle-lab, one per lab) starts the daemons, restarts
 * those that die, and reaps what they orphan. Its own death is no harm to the nodes, and lab_down()
 * cleans up after any crash, of anything, at any moment: it works from DIR alone.
 *
 * All functions need root and block; times are seconds at most. `dir` is the folder of the lab;
 * nodes are "node1"…, daemons are named "DAEMON@NODE" ("noded@node2"). Errors: ENVIRONMENT (no
 * root, a program is missing, a name is occupied), WRONG_INPUT, UNKNOWN_ENTITY (no lab there, no
 * such node or daemon), WRONG_STATE (no power, no supervisor), TIMEOUT.
 */
#pragma once

#include "base/json.h"
#include <glib.h>
#include <stdbool.h>

#define LAB_DEFAULT_DIR "/var/tmp/fettle-lab"

/* A daemon that the supervisor keeps running. `command` is its argv, ended by NULL; it gets
 * FETTLE_ROOT, FETTLE_BOOT_ID (new at each power-on) and FETTLE_NODE, and is ready when
 * run/NAME.ready is there. With `master_only` it runs on master candidates, once
 * lab_enable_master() was called. */
struct lab_daemon {
    const char *name; /* "noded" */
    const char *const *command;
    bool master_only;
};

struct lab_options {
    const char *dir;  /* must not exist or be empty */
    guint nodes;      /* 0: 3 */
    guint candidates; /* node1 to this one may be master; 0: 1 */
    bool ipv6;        /* nodes have IPv6 addresses, and no others */
    bool ceph;        /* there is a Ceph: DIR/ceph/ceph.conf, pool rbd, user fettle */
    bool etcd;        /* the engine is etcd on the candidates, of which there are 3 at least */
    guint root_mib;   /* size of a node's root, MiB; 0: 256, with etcd 1024 */
    guint disks_mib;  /* size of its var/disks, MiB; 0: 256 */

    /* Passed to `fettle cluster init`; 0 or NULL: the lab's own choice (tcg, and short times). */
    guint replica_lost_ms;
    guint watcher_interval_ms;
    const char *accelerator;

    bool no_init;     /* leave the nodes without a cluster: certificates are there, only the node
                         daemons run */
    bool no_identity; /* not even certificates and etc/node.json; implies no_init */

    /* Other daemons instead of Fettle's, ended by one without a name; NULL: noded, rconfd, volumed
     * and mond everywhere, wconfd, luxid, rapid and watcher on candidates, and apid where `fettle
     * api init` has made a front end. */
    const struct lab_daemon *daemons;
};

/* Builds the lab, starts the daemons and forms the cluster with the same commands that a user would
 * type. On failure everything that was made is removed again, unless FETTLE_LAB_KEEP is set: then
 * it stays for a look. */
bool lab_up(const struct lab_options *options, GError **error);

/* Removes every trace: processes, mounts, loop devices, namespaces, files. Safe to repeat; a `dir`
 * without a lab is left alone (not an error if it is missing or empty). */
bool lab_down(const char *dir, GError **error);

/* {"dir","supervisor":bool,"ceph":{"address","conf","power":bool,"paused":bool} or
 * null,"nodes":[{"name","uuid","address","root","power":bool,"link":bool,"boot_id",
 * "daemons":[{"name","state":"running|paused|waiting","pid","restarts","ready":bool,"port"}]}]};
 * `port`: of monitoring and REST alone, at 127.0.0.1 of this machine. */
json_t *lab_status(const char *dir, GError **error);

/* Off: the cable is cut, both file systems are shut down without flushing their journals, every
 * process in the namespace is killed, the mounts are gone. On: mounted again, a new boot id, the
 * daemons started. Already so: true. Of the lab's Ceph ("ceph") it is shut down in order. */
bool lab_power(const char *dir, const char *node, bool on, GError **error);

/* The node's cable, at the switch: nothing passes in either direction; stays so over a power cycle.
 */
bool lab_link(const char *dir, const char *node, bool up, GError **error);

enum lab_signal { LAB_KILL, LAB_PAUSE, LAB_RESUME };

/* Kill, which is not for "ceph": returns when the process has ended; it is started again after a
 * short pause. Its children live on. */
bool lab_signal(const char *dir, const char *daemon_at_node, enum lab_signal what, GError **error);

/* Kills the daemon and starts it at once with these variables ("FETTLE_CRASH_AT=17") added, for
 * this one start only; "+FETTLE_CRASH_AT=17" stays until the next call. */
bool lab_restart_with(const char *dir, const char *daemon_at_node, const char *const *variables,
                      GError **error);

/* Starts the daemons that are for the master only, from now on at every power-on too. lab_up() does
 * it by itself unless no_init. */
bool lab_enable_master(const char *dir, GError **error);

#define LAB_READY_MS 90000 /* enough, also on a machine that has much else to do */
/* Waits until every daemon of `node` (NULL: of all nodes with power) that should run is ready. */
bool lab_wait_ready(const char *dir, const char *node, guint timeout_ms, GError **error);

/* The disks of a node fail: EXT4_IOC_SHUTDOWN of var/disks alone. A power cycle mends it. */
bool lab_disk_shutdown(const char *dir, const char *node, GError **error);

/* Fills var/disks until `leave_mib` MiB are free; unfill gives the space back. */
bool lab_disk_fill(const char *dir, const char *node, guint leave_mib, GError **error);
bool lab_disk_unfill(const char *dir, const char *node, GError **error);
/* The same of the file system in which its daemons keep their state. */
bool lab_state_fill(const char *dir, const char *node, bool full, GError **error);
/* That file system goes read-only, as the kernel makes one after an error. A power cycle mends it.
 */
bool lab_state_read_only(const char *dir, const char *node, GError **error);

enum lab_shared { LAB_SHARED_OK, LAB_SHARED_FULL, LAB_SHARED_READ_ONLY, LAB_SHARED_HANGS };

/* The folder that all nodes share (DIR/shared) breaks in that one way, and in no other one any
 * more. Hangs: whoever writes to it waits, and cannot be killed. Read-only: WRONG_STATE while
 * something in it is open for writing. */
bool lab_shared(const char *dir, enum lab_shared how, GError **error);

/* Becomes the command (ended by NULL, looked up in PATH) in the network of a node, or of the switch
 * ("switch", 10.99.0.254 or fd99::fe): for a ping of guests, say. Returns only on failure. */
bool lab_exec(const char *dir, const char *where, const char *const *command, GError **error);

/* If `root` is the root folder of a lab's node, this thread goes into the node's network, as a
 * command on that node would be; without power, or for anybody but root, it stays where it is. Call
 * it before there are other threads. */
void lab_join(const char *root);

/* Root folder of a node; name of its network namespace (for `ip netns exec`). Free with g_free().
 */
char *lab_node_root(const char *dir, const char *node);
char *lab_node_netns(const char *dir, const char *node);

/*
 * The table of situations (matrix.h). Each says what verify, why, lists and plan have to tell, word
 * for word where it matters, and the run shows that what plan tells is what happens: the same code
 * of the watcher, on the same state.
 */
#include "matrix.h"

#define POLICY(type) "tag cluster - " type "\n"
#define WEB1(template, nodes)                                                                      \
    "create web1 " template " " nodes "\nexpect instance web1 healthy within 60s\n"
#define MIRROR POLICY("failover") WEB1("mirror", "node2 node3")
/* From here on nothing is repaired: what is broken stays as it is. */
#define PAUSE "luxi SetWatcherPause [99999999999]\n"
#define GO_ON "luxi SetWatcherPause [null]\n"
#define PAUSED                                                                                     \
    "note: the watcher is paused until *, so nothing is repaired; to end that: fettle queue "      \
    "pause-watcher 0\n"
#define FAIL2 "power node2 off\noffline node2 yes\n"

static const struct situation situations[] = {
    /* --- room for the repair, or none --- */
    {"well", 4, NULL, MIRROR, "", "web1 ", "instance web1 status running", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"two-nodes", 3, NULL, MIRROR "drain node1 yes\nwait 5s\n", "", "web1 ",
     "node node1 drained true", "fail node2",
     "web1 to node3 by failover left no node can be a new secondary node: node1 is drained; node2 "
     "is offline; node3 is its primary node\n"},
    {"one-of-three-drained", 4, NULL, MIRROR "drain node1 yes\ndrain node4 yes\nwait 5s\n", "",
     "web1 ", "node node4 role D", "fail node2",
     "web1 to node3 by failover left no node can be a new secondary node: node1 is drained; node2 "
     "is offline; node3 is its primary node; node4 is drained\n"},
    {"secondary-lost", 4, NULL, MIRROR, "", "web1 ", "instance web1 replica.state in-sync",
     "fail node3", "web1 to node2 node1 by replace-disks\n"},
    {"drain", 4, NULL, MIRROR, "", "web1 ", "instance web1 status running", "drain node2",
     "web1 to node3 node1 by migrate, replace-disks\n"},
    {"drain-secondary", 4, NULL, MIRROR, "", "web1 ", "instance web1 status running", "drain node3",
     "web1 to node2 node1 by replace-disks\n"},
    {"drain-without-room", 3, NULL, MIRROR "drain node1 yes\nwait 5s\n", "", "web1 ",
     "instance web1 status running", "drain node2",
     "web1 to node3 node2 by migrate left no node can be a new secondary node: node1 is drained; "
     "node2 is its secondary node now; node3 is its primary node\n"},
    {"empty-node", 4, NULL, MIRROR, "", "web1 ", "node node4 pinst_cnt 0", "fail node4", ""},
    {"both-drained", 4, NULL, PAUSE MIRROR "drain node3 yes\n", PAUSED, "web1 ",
     "node node3 drained true", "drain node2",
     "held\n"
     "web1 to node1 node4 by replace-disks, migrate, replace-disks\n",
     "drain node2 yes\n" GO_ON},
    {"advice", 4, NULL, MIRROR "advise node4 avoid\nwait 5s\n", "", "web1 ",
     "instance web1 status running", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"node-offline", 4, NULL, MIRROR "power node4 off\noffline node4 yes\nwait 5s\n",
     "node node4: is offline\n", "web1 ", "node node4 role O", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    /* --- what may be done --- */
    {"not-enabled", 4, NULL, WEB1("mirror", "node2 node3"), "", "web1 ",
     "instance web1 status running", "fail node2",
     "web1 blocked repair is not enabled: no policy tag on the instance, its node group or the "
     "cluster\n"},
    {"policy-too-weak", 4, NULL, POLICY("fix-storage") WEB1("mirror", "node2 node3"), "", "web1 ",
     "policy web1 type fix-storage", "fail node2",
     "web1 blocked it needs failover, the policy allows fix-storage\n"},
    {"policy-migrate-drain", 4, NULL, POLICY("migrate") WEB1("mirror", "node2 node3"), "", "web1 ",
     "policy web1 type migrate", "drain node2", "web1 to node3 node1 by migrate, replace-disks\n"},
    {"suspended", 4, NULL, MIRROR "tag instance web1 suspend\nwait 15s\n",
     "note: instance web1: auto-repair is suspended by its tag ganeti:watcher:autorepair:suspend; "
     "to end that: fettle repair resume instance web1\n",
     "web1 Suspended: Repair is suspended: nothing is touched.", "policy web1 state suspended",
     "fail node2", "web1 blocked repair is suspended, by a tag of the instance\n"},
    {"group-suspended", 4, NULL, MIRROR "tag nodegroup default suspend\nwait 15s\n",
     "note: nodegroup default: auto-repair is suspended by its tag "
     "ganeti:watcher:autorepair:suspend; to end that: fettle repair resume nodegroup default\n",
     "web1 Suspended: Repair is suspended: nothing is touched.", "instance web1 status running",
     "fail node2", "web1 blocked repair is suspended, by a tag of the node group\n"},
    {"earlier-repair-failed", 4, NULL,
     MIRROR "tag instance web1 result:failover:11111111-0000-4000-8000-000000000001:1600000000:"
            "failure:7\nwait 15s\n",
     "instance web1: an earlier repair failed, and nothing is repaired there until somebody has "
     "looked into that and taken its tag away: fettle tag remove instance web1 "
     "ganeti:watcher:autorepair:result:failover:11111111-0000-4000-8000-000000000001:1600000000:"
     "failure:7\n",
     "web1 Failed: An earlier repair failed: nothing is touched until its failure tag is removed.",
     "instance web1 status running", "fail node2",
     "web1 blocked an earlier repair failed, and nothing is touched until you have looked into "
     "that and taken its tag away: fettle tag remove instance web1 "
     "ganeti:watcher:autorepair:result:failover:11111111-0000-4000-8000-000000000001:1600000000:"
     "failure:7\n"},
    {"unreadable-policy", 4, NULL, MIRROR "tag instance web1 failovr\nwait 15s\n",
     "instance web1: its tag ganeti:watcher:autorepair:failovr cannot be read as a policy of "
     "auto-repair, so it allows nothing and forbids nothing; remove it: fettle tag remove instance "
     "web1 ganeti:watcher:autorepair:failovr. Policies are set with: fettle repair policy\n",
     "web1 Unreadable tags: Some of its tags of auto-repair cannot be read: they are left alone, "
     "and a suspension without a readable end has none. Mend or remove them.",
     "policy web1 type failover", "fail node2", "web1 to node3 node1 by failover, replace-disks\n"},
    {"unreadable-policy-of-the-cluster", 4, NULL,
     POLICY("failovr") WEB1("mirror", "node2 node3") "wait 15s\n",
     "cluster: its tag ganeti:watcher:autorepair:failovr cannot be read as a policy of "
     "auto-repair, so it allows nothing and forbids nothing; remove it: fettle tag remove cluster "
     "ganeti:watcher:autorepair:failovr. Policies are set with: fettle repair policy\n",
     "sim Unreadable tags: Some of its tags of auto-repair cannot be read: they are left alone, "
     "and a suspension without a readable end has none. Mend or remove them.",
     "instance web1 status running", "fail node2",
     "web1 blocked repair is not enabled: no policy tag on the instance, its node group or the "
     "cluster\n"},
    /* --- switched off, or held up --- */
    {"watcher-paused", 4, NULL, MIRROR PAUSE, PAUSED, "web1 ", "instance web1 status running",
     "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"queue-drained", 4, NULL, MIRROR "luxi SetDrainFlag [true]\n",
     "note: the queue is drained: no job is taken, none of auto-repair either, until: fettle queue "
     "undrain\n",
     "web1 ", "instance web1 status running", "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     "power node2 off\n"},
    {"shadow-mode", 4, "{\"repair_shadow\": true}", MIRROR,
     "note: auto-repair is in shadow mode: what it would do is only put on record; to end that: "
     "fettle cluster modify --repair-shadow no\n",
     "web1 ", "instance web1 status running", "fail node2",
     "held\nweb1 to node3 node1 by failover, replace-disks\n"},
    {"storm-brake-on", 8, NULL,
     MIRROR "power node4 off\npower node5 off\npower node6 off\npower node7 off\npower node8 off\n"
            "offline node4 yes\noffline node5 yes\noffline node6 yes\noffline node7 yes\n"
            "offline node8 yes\nexpect brake on within 60s\n",
     "node node4: is offline\nnode node5: is offline\nnode node6: is offline\n"
     "node node7: is offline\nnode node8: is offline\n"
     "note: auto-repair stands still, its storm brake is on since *: 5 of 8 nodes were lost within "
     "* s, more than 50 %. Look around, then: fettle repair continue\n",
     "sim Storm brake on: 5 of 8 nodes were lost *", "instance web1 status running", "fail node2",
     "held\nweb1 to node3 node1 by failover, replace-disks\n"},
    {"would-pull-the-brake", 5, NULL, MIRROR "power node4 off\npower node5 off\nwait 5s\n",
     "node node4: does not answer\n"
     "node node5: does not answer\n",
     "web1 ", "instance web1 status running", "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     "power node2 off\nwait 60s\noffline node2 yes\n"},
    /* --- nodes that fail in part --- */
    {"disks-of-the-secondary-fail", 4, NULL, PAUSE MIRROR "disks node3 fail\nwait 40s\n",
     "node node3: cannot write to its disks: disks: Input/output error\n"
     "instance web1: its replica is stale: no answer from its export for * ms\n" PAUSED,
     "web1 ", "node node3 health disks", "fail node2",
     "held\n"
     "web1 blocked it needs reinstall, the policy allows failover\n",
     FAIL2 GO_ON},
    {"disks-of-the-primary-fail", 4, NULL, PAUSE MIRROR "disks node2 fail\nwait 40s\n",
     "node node2: cannot write to its disks: disks: Input/output error\n"
     "instance web1: * requests of its disks on node2 have failed since it was started, the last "
     "of disk 0\n" PAUSED,
     "web1 ", "node node2 health disks", "drain node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     "drain node2 yes\n" GO_ON},
    {"disks-of-the-only-room-fail", 4, NULL, MIRROR "drain node1 yes\ndisks node4 fail\nwait 40s\n",
     "node node4: cannot write to its disks: disks: Input/output error (for * s)\n", "web1 ",
     "node node4 health disks", "fail node2",
     "web1 to node3 by failover left no node can be a new secondary node: node1 is drained; node2 "
     "is offline; node3 is its primary node; node4 cannot write to its disks: disks: Input/output "
     "error\n"},
    {"full-disk-of-the-secondary", 4, NULL, PAUSE MIRROR "disks node3 full\nwait 5s\n",
     "node node3: 100 % of its disk space are used (0 MiB left), guests there stand still when "
     "there is none left; make room, or: fettle node evacuate node3\n"
     "instance web1: its replica is stale: no answer from its export for * ms\n" PAUSED,
     "web1 ", "node node3 dfree 0", "fail node2",
     "held\n"
     "web1 blocked it needs reinstall, the policy allows failover\n",
     FAIL2 GO_ON},
    {"full-disk-elsewhere", 4, NULL, MIRROR "drain node1 yes\ndisks node4 full\nwait 5s\n",
     "node node4: 100 % of its disk space are used (0 MiB left), guests there stand still when "
     "there is none left; make room, or: fettle node evacuate node4\n",
     "node4 Full: 95 % of its disk space and more are used; guests there stand still when there is "
     "none left. Make room, or move instances to other nodes: fettle node evacuate node4.",
     "node node4 dfree 0", "fail node2",
     "web1 to node3 by failover left no node can be a new secondary node: node1 is drained; node2 "
     "is offline; node3 is its primary node; node4 has 0 MiB of disk left, 8 MiB are needed\n"},
    {"read-only-secondary", 4, NULL, MIRROR "root node3 read-only\nwait 20s\n",
     "node node3: cannot write its state: var: Read-only file system (for * s)\n", "web1 ",
     "node node3 health state", "fail node2",
     "web1 to node3 by failover left node3 cannot write its state: var: Read-only file system, and "
     "starts nothing until it can\n"},
    {"full-state-of-the-secondary", 4, NULL, MIRROR "root node3 full\nwait 20s\n",
     "node node3: cannot write its state: var: No space left on device (for * s)\n", "web1 ",
     "node node3 health state", "fail node2",
     "web1 to node3 by failover left node3 cannot write its state: var: No space left on device, "
     "and starts nothing until it can\n"},
    {"read-only-elsewhere", 4, NULL, MIRROR "drain node1 yes\nroot node4 read-only\nwait 20s\n",
     "node node4: cannot write its state: var: Read-only file system (for * s)\n", "web1 ",
     "node node4 health state", "fail node2",
     "web1 to node3 by failover left no node can be a new secondary node: node1 is drained; node2 "
     "is offline; node3 is its primary node; node4 cannot write its state: var: Read-only file "
     "system\n"},
    {"clock-ahead", 4, NULL, MIRROR "clock node3 7200\nwait 20s\n",
     "node node3: has a clock that is 2 h 0 min ahead of the others'\n", "web1 ",
     "node node3 health clock", "fail node2", "web1 to node3 node1 by failover, replace-disks\n"},
    {"hung-disks", 4, NULL, MIRROR "hang node4 space\nwait 10s\n",
     "node node4: disks: no answer, last heard * s ago\n", "web1 ", "instance web1 status running",
     "fail node2", "web1 to node3 node1 by failover, replace-disks\n"},
    {"hung-bridges", 4, NULL, MIRROR "hang node3 bridges\nwait 10s\n",
     "node node3: bridges: no answer, last heard * s ago\n", "web1 ",
     "instance web1 status running", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"silent-guest", 4, NULL, MIRROR "hang node2 web1\nwait 20s\n",
     "instance web1: does not answer, last heard * s ago\n", "web1 ",
     "instance web1 status running", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"silent-secondary", 4, NULL, PAUSE MIRROR "link node3 down\nwait 1s\n",
     "node node3: does not answer\n" PAUSED, "web1 ", "node node3 health null", "fail node2",
     "held\n"
     "web1 blocked it cannot go to node3: it does not answer\n",
     FAIL2 GO_ON},
    {"silent-primary-drained", 4, NULL, MIRROR "link node2 down\nwait 1s\n",
     "node node2: does not answer\n"
     "instance web1: status is ERROR_nodedown\n",
     "web1 ", "instance web1 status ERROR_nodedown", "drain node2",
     "web1 blocked its primary node node2 does not answer, and migrate needs it\n"},
    {"silent-primary", 4, NULL, MIRROR "link node2 down\nwait 1s\n",
     "node node2: does not answer\n"
     "instance web1: status is ERROR_nodedown\n",
     "web1 ", "instance web1 status ERROR_nodedown", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"node-daemon-stands-still", 4, NULL, PAUSE MIRROR "stop noded node3\nwait 1s\n",
     "node node3: does not answer\n" PAUSED, "web1 ", "node node3 mfree null", "fail node2",
     "held\n"
     "web1 blocked it cannot go to node3: it does not answer\n",
     FAIL2 GO_ON},
    {"full-disk-of-the-primary", 4, NULL, PAUSE MIRROR "disks node2 full\nwait 20s\n",
     "node node2: 100 % of its disk space are used (0 MiB left), guests there stand still when "
     "there is none left; make room, or: fettle node evacuate node2\n"
     "instance web1: status is ERROR_nospace: it stands still: there is no room for its disks on "
     "node2\n" PAUSED,
     "web1 ", "instance web1 status ERROR_nospace", "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     FAIL2 GO_ON},
    {"read-only-primary", 4, NULL, MIRROR "root node2 read-only\nwait 20s\n",
     "node node2: cannot write its state: var: Read-only file system (for * s)\n", "web1 ",
     "node node2 health state", "fail node2", "web1 to node3 node1 by failover, replace-disks\n"},
    {"read-only-primary-loses-its-replica", 4, NULL, MIRROR "root node2 read-only\nwait 20s\n",
     "node node2: cannot write its state: var: Read-only file system (for * s)\n", "web1 ",
     "node node2 health state", "fail node3", "web1 to node2 node1 by replace-disks\n"},
    {"ended-on-a-read-only-primary", 4, NULL,
     PAUSE MIRROR "root node2 read-only\nkill qemu web1\nwait 20s\n",
     "node node2: cannot write its state: var: Read-only file system*\n"
     "instance web1: status is ERROR_down\n" PAUSED,
     "web1 ", "instance web1 status ERROR_down", "fail node3",
     "held\n"
     "web1 blocked No other node has a whole copy of its data: it goes on when the state of its "
     "node can be written again.\n"},
    {"hung-list-of-images", 4, NULL, MIRROR "hang node3 list\nwait 10s\n",
     "node node3: disks: no answer, last heard * s ago\n", "web1 ", "instance web1 status running",
     "fail node2",
     "web1 blocked it cannot go to node3: it has disks that do not answer (no answer, last heard * "
     "s ago)\n"},
    {"hung-folder-of-sources", 4, NULL, MIRROR "hang node4 sources\nwait 10s\n",
     "node node4: sources: no answer, last heard * s ago\n", "web1 ",
     "instance web1 status running", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"hung-shared-folder", 4, NULL,
     POLICY("failover") WEB1("sharedfile", "node2") "hang node1 shared\nhang node3 shared\nwait "
                                                    "10s\n",
     "node node1: shared: no answer, last heard * s ago\n"
     "node node3: shared: no answer, last heard * s ago\n",
     "web1 ", "instance web1 status running", "fail node2", "web1 to node4 by failover\n"},
    {"one-way-cut", 4, NULL, PAUSE MIRROR "mute node3 node1 yes\nwait 2s\n",
     "node node3: does not answer\n" PAUSED, "web1 ", "node node3 mfree null", "fail node2",
     "held\n"
     "web1 blocked it cannot go to node3: it does not answer\n",
     FAIL2 GO_ON},
    /* --- replicas and guests --- */
    {"creating-job-died", 4, NULL,
     POLICY("failover") PAUSE
     "wait 2s\ncreate web1 mirror node2 node3\nwait 100ms\nkill job\nwait 5s\n",
     "instance web1: job 2 is or was creating it\n" PAUSED, "web1 ", "node node2 pinst_cnt 1",
     "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     FAIL2 GO_ON},
    {"migrating", 4, NULL,
     MIRROR "slow node2 60s\nmigrate web1\nexpect instance web1 migrating within 10s\n",
     "instance web1: job 3 is or was migrating it\n", "web1 ", "instance web1 status running",
     "drain node4", ""},
    {"replica-lost", 4, NULL, PAUSE MIRROR "break web1\nwait 30s\n",
     "instance web1: its replica is stale: no answer from its export for * ms\n" PAUSED, "web1 ",
     "instance web1 replica.state stale", "fail node2",
     "held\n"
     "web1 blocked it needs reinstall, the policy allows failover\n",
     FAIL2 GO_ON},
    {"replica-without-images", 4, NULL, PAUSE MIRROR "lose-images web1 replica\nwait 30s\n",
     "instance web1: its replica is stale: no answer from its export for * ms\n" PAUSED, "web1 ",
     "instance web1 status running", "fail node2",
     "held\n"
     "web1 blocked it needs reinstall, the policy allows failover\n",
     FAIL2 GO_ON},
    {"replica-lacks-an-image", 4, NULL, PAUSE MIRROR "lose-images web1 replica 0\nwait 30s\n",
     PAUSED, "web1 ", "instance web1 status running", "fail node2",
     "held\n"
     "web1 blocked it needs reinstall, the policy allows failover\n",
     FAIL2 GO_ON},
    {"disk-of-the-guest-failed", 4, NULL, PAUSE MIRROR "hold web1\nwait 30s\n",
     "instance web1: status is ERROR_diskfailed*\n" PAUSED, "web1 ",
     "instance web1 status ERROR_diskfailed", "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     FAIL2 GO_ON},
    {"half-synced", 4, NULL,
     MIRROR PAUSE "submit OP_INSTANCE_REPLACE_DISKS instance_name=web1 mode=replace_new_secondary "
                  "remote_node=node4\nwait 100ms\n",
     "instance web1: job 3 is or was replacing-disks it\n"
     "instance web1: its replica is stale: is being replaced\n" PAUSED,
     "web1 ", "instance web1 replica.state stale", "fail node2",
     "held\n"
     "web1 blocked it needs reinstall, the policy allows failover\n",
     FAIL2 GO_ON},
    {"guest-ended", 4, NULL, PAUSE MIRROR "kill qemu web1\nwait 2s\n",
     "instance web1: status is ERROR_down\n" PAUSED, "web1 ", "instance web1 status ERROR_down",
     "fail node2",
     "held\n"
     "web1 to node3 node1 by failover, replace-disks\n",
     FAIL2 GO_ON},
    {"stopped", 4, NULL, MIRROR "submit OP_INSTANCE_SHUTDOWN instance_name=web1\nwait 20s\n", "",
     "web1 ", "instance web1 status ADMIN_down", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"},
    {"images-aside", 4, NULL,
     MIRROR "power node2 off\noffline node2 yes\nexpect instance web1 running on node3 within 60s\n"
            "expect instance web1 healthy within 60s\npower node2 on\noffline node2 no\nwait 30s\n",
     "note: node node2: keeps images of instance web1 aside, generation 1; they go when it holds "
     "an in-sync replica again. If nobody needs them: they are the files var/disks/aside/* there\n",
     "web1 Healthy: All its nodes are online and its replica is in sync: repaired.",
     "instance web1 status running", "fail node3",
     "web1 to node1 node2 by failover, replace-disks\n"},
    {"diskless", 4, NULL, POLICY("failover") WEB1("diskless", "node2"), "", "web1 ",
     "instance web1 status running", "fail node2", "web1 to node1 by failover\n"},
    {"sharedfile", 4, NULL, POLICY("failover") WEB1("sharedfile", "node2"), "", "web1 ",
     "instance web1 status running", "fail node2", "web1 to node1 by failover\n"},
    {"file", 4, NULL, POLICY("failover") WEB1("file", "node2"), "", "web1 ",
     "instance web1 status running", "fail node2",
     "web1 blocked it needs reinstall, the policy allows failover\n"},
    {"file-reinstall", 4, NULL,
     POLICY(
         "reinstall") "create web1 file node2 os=tick\nexpect instance web1 healthy within 60s\n",
     "", "web1 ", "instance web1 status running", "fail node2",
     "web1 to node1 by recreate-disks, reinstall\n"},
    {"file-drained", 4, NULL, POLICY("reinstall") WEB1("file", "node2"), "", "web1 ",
     "instance web1 status running", "drain node2",
     "web1 blocked Its only data is there and alive: reinstalling would destroy it. Move it by "
     "hand: fettle instance migrate.\n"},
    {"two-of-them", 5, NULL,
     MIRROR "create web2 mirror node2 node4\nexpect instance web2 healthy within 60s\n", "",
     "web1 ", "node node2 pinst_cnt 2", "fail node2",
     "web1 to node3 node1 by failover, replace-disks\n"
     "web2 to node4 node5 by failover, replace-disks\n"},
    /* --- the master --- */
    {"the-master-alone", 4, NULL, POLICY("failover") WEB1("mirror", "node1 node3"), "", "web1 ",
     "node node1 role M", "fail node1",
     "held\n"
     "web1 blocked it is down until its node, the master, is back\n",
     "power node1 off\n"},
    {"the-master-was-lost-with-its-last-word", 4, NULL,
     PAUSE MIRROR "lose-word\nbreak web1\nwait 2050ms\npower node2 off\nwait 20s\n",
     "node node2: has not answered this epoch yet; no lock that covers it is granted\n"
     "node node2: does not answer\n"
     "instance web1: status is ERROR_nodedown\n" PAUSED,
     "web1 ", "instance web1 status ERROR_nodedown", "fail node2",
     "held\n"
     "web1 blocked A master that is lost may have put on record that its replica is stale, and its "
     "node cannot tell: if that may be promoted all the same, say: fettle instance failover.\n",
     "offline node2 yes\n" GO_ON},
    {"drain-the-master", 4, NULL, POLICY("failover") WEB1("mirror", "node1 node3"), "", "web1 ",
     "node node1 role M", "drain node1", "web1 to node3 node2 by migrate, replace-disks\n"},
};

static void run(const void *data)
{
    matrix_run(data);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(situations); i++) {
        g_autofree char *name = g_strdup_printf("/matrix/%s#ARP-70", situations[i].name);
        g_test_add_data_func(name, &situations[i], run);
    }
    return g_test_run();
}

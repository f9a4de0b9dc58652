/*
 * Every bound in Fettle, by name. Anything sized by a peer is compared with one of these before
 * memory is taken.
 */
#pragma once

#define KIB(n) ((size_t)(n)*1024)
#define MIB(n) ((size_t)(n)*1024 * 1024)

/* Daemons */
#define SPARE_MEMORY_BYTES MIB(8) /* freed, and not wanted again: given back to the system */
#define SPARE_LOOK_MS 15000u      /* between two looks at that */

/* Wire */
#define LIMIT_FRAME_BYTES MIB(16)       /* one internal frame */
#define LIMIT_LUXI_FRAME_BYTES MIB(8)   /* one LUXI request */
#define LIMIT_LUXI_ANSWER_BYTES MIB(48) /* one LUXI answer as luxid makes it */
#define LIMIT_ANSWER_BYTES MIB(256)     /* … and as a client takes it */
#define LIMIT_HELLO_BYTES KIB(4)        /* a peer that is not known yet may send no more */
#define LIMIT_HELLO_WAIT_MS 5000        /* from connecting to the hello */
#define LIMIT_JSON_DEPTH 32
#define LIMIT_UNREAD_BYTES MIB(1)          /* of answers, before LUXI requests are not looked at */
#define LIMIT_CONNECTION_OUT_BYTES MIB(64) /* unsent bytes before a slow reader is dropped */
#define LIMIT_UNREAD_IN_ALL MIB(256)       /* … of all connections: the slowest one is */
#define LIMIT_SLOW_READER_MS 30000         /* within which what waits for a client must be taken */
#define LIMIT_CONNECTIONS 2048             /* per listening socket */
#define LIMIT_CALLS_IN_FLIGHT 8192         /* per connection: one to each node, and all others */
#define LIMIT_DIAL_MS 3000                 /* from dialling another node to the TCP connection */
#define LIMIT_FRESH_DIAL_MS 1000           /* … if it is asked whether it is there at all */
#define LIMIT_TLS_MS 10000                 /* from there to the end of the TLS handshake */
#define LIMIT_HANDSHAKES 256               /* TLS handshakes under way with strangers, */
#define LIMIT_HANDSHAKES_ADDRESS 16        /* with one address, a member's or not */
#define LIMIT_SHAKING 4                    /* strangers whose handshake is being made */
#define HANDSHAKES_COMPLAIN_MS 60000       /* between two lines about one address */
#define LIMIT_HANDSHAKE_ADDRESSES 1024     /* that are remembered for that */
#define ACCEPTOR_BACKLOG 1024              /* connections that wait to be taken */
#define LIMIT_QMP_LINE_BYTES MIB(4)

/* Objects */
#define LIMIT_STRING_CHARS 1024
#define LIMIT_NAME_CHARS 63
#define LIMIT_TAG_CHARS 128
#define LIMIT_TAGS_PER_OBJECT 4096
#define LIMIT_KERNEL_BYTES MIB(256) /* of a kernel or initrd that others may not read */
#define LIMIT_DISKS 16
#define LIMIT_NICS 8
#define LIMIT_VOLUME_GIB 65536 /* of one volume */
#define LIMIT_TYPE_WORDS 64    /* extra specs, and projects, of one type of volumes */
#define LIMIT_PROJECT_CHARS 64
#define LIMIT_VOLUME_SNAPSHOTS 256
#define LIMIT_IMAGE_PROPERTIES 64
#define LIMIT_IMAGE_TAGS 128
#define LIMIT_IMAGE_MEMBERS 128
#define LIMIT_METADATA 128        /* keys of a volume, a snapshot or a backup */
#define LIMIT_RAPI_USER 64        /* characters of the name of a user of the REST daemon */
#define LIMIT_RAPI_HASH 256       /* of his password as it is kept */
#define LIMIT_RAPI_USERS 4096     /* on record, and in its file */
#define LIMIT_RAPI_CONNECTIONS 32 /* of the REST daemon to luxid, some of them idle */
#define LIMIT_RAPI_CALLS 24       /* that are under way there */
#define LIMIT_RAPI_LONG_CALLS 12  /* of them, that wait for something, or ask each node */
#define LIMIT_RAPI_WAITING 1024   /* that wait for their turn */
#define LIMIT_RAPI_CALL_MS 60000u /* of one call */
#define LIMIT_WEBHOOKS 32
#define LIMIT_WEBHOOK_NAME 64
#define LIMIT_WEBHOOK_URL 1024   /* characters */
#define LIMIT_WEBHOOK_SECRET 256 /* likewise */
/* Each is a word of events, or the beginning of one. */
#define LIMIT_WEBHOOK_PATTERNS 32
#define LIMIT_WEBHOOK_ALLOW 64 /* networks of webhook_allow */
#define LIMIT_WEBHOOK_ALLOW_CHARS 1024
#define LIMIT_WEBHOOK_SAID 256     /* characters of what a receiver said */
#define LIMIT_WEBHOOK_BODY KIB(64) /* bytes of one event */
#define LIMIT_WEBHOOK_EVENTS 64    /* in one answer */
#define LIMIT_VOLUME_NAME 255      /* characters of its name */
#define LIMIT_GUEST_VOLUMES 16     /* that one instance has */
#define LIMIT_VOLUME_SLOT 30       /* of a guest's bus: volumes fill it from here downwards */
#define LIMIT_CLIENTS_CHARS 512    /* addresses at a Ceph by which one volume is open */
#define LIMIT_DATA_NAME 64         /* of what a back end keeps: UUID.CLAIM */
#define LIMIT_WORK_ITEMS 256       /* rows of work in one call */
#define LIMIT_STORAGE_SERVICES 1024
#define LIMIT_CLEANUPS 4096 /* that are asked for, or done, at once */
#define LIMIT_PATH_CHARS 255
#define LIMIT_CEPH_WORD 64 /* characters of a pool, a namespace, a user */
#define LIMIT_BACKEND_CHILDREN                                                                     \
    4 /* of a storage service at one back end, and its operations there */
#define LIMIT_VOLUME_CHILDREN 16        /* the same at all of its back ends */
#define LIMIT_BACKEND_CHECK_MS 10000u   /* one node waits for another at a back end */
#define LIMIT_VOLUME_CALL_MS 60000u     /* of one call to a back end */
#define LIMIT_VOLUME_BACKUP_MS 240000u  /* and that it compresses, or unpacks */
#define LIMIT_IMAGE_MEASURE_MS 3600000u /* and that reads a file of whatever length */
#define LIMIT_VOLUME_COPY_MS 60000u     /* besides, for each GiB that it copies */
#define LIMIT_TRANSFER_WAIT_MS 60000    /* for the client of an image that comes or goes */
#define LIMIT_TRANSFER_STALL_MS 120000u /* of it that gets no further */
#define LIMIT_IMAGE_BYTES                                                                          \
    (1024 * 1024 * MIB(1))    /* that may come if it is not said how many will                     \
                               */
#define LIMIT_SHOWN_IMAGES 40 /* of a node, on its page */
#define LIMIT_DISK_MIB (64u * 1024 * 1024)
#define LIMIT_MEMORY_MIB (16u * 1024 * 1024)
#define LIMIT_VCPUS 256
#define LIMIT_NODES 4096
#define LIMIT_ADVICE 4096 /* pieces of advice on record */

/* Queue */
#define LIMIT_OPCODES_PER_JOB 256
#define LIMIT_JOBS_PER_CALL 1024
#define LIMIT_QUEUED_JOBS 100000
#define LIMIT_JOB_LOG_ENTRIES 1000             /* of one opcode */
#define LIMIT_JOB_LOG_BYTES MIB(1)             /* of all opcodes of a job */
#define LIMIT_JOB_MESSAGE_BYTES KIB(16)        /* one of them, and why an opcode failed */
#define LIMIT_JOB_RESULT_BYTES MIB(1)          /* what all opcodes of a job answer */
#define LIMIT_JOB_FILE_BYTES MIB(4)            /* more than all of that and LIMIT_JOB_BYTES */
#define LIMIT_ARCHIVED_BYTES LIMIT_FRAME_BYTES /* a record comes in one */
#define LIMIT_NURSERY_REQUESTS 1000
#define LIMIT_NURSERY_REQUEST_COST 1024
#define LIMIT_JOB_BYTES MIB(1)    /* one job as submitted, defaults filled in */
#define LIMIT_COMMIT_BYTES MIB(8) /* one transaction of luxid, so that it fits a frame */
#define LIMIT_DEPENDENCIES 256    /* of one opcode */
#define LIMIT_JOB_WAITERS 4096    /* WaitForJobChange calls under way */
#define LIMIT_WATCHERS 1024       /* WatchChanges calls under way */
#define LIMIT_WATCH_WAIT_S 600    /* one of them, in seconds */
#define LIMIT_WATCH_LOG                                                                            \
    16384 /* changed objects that luxid remembers; who is further behind begins anew */
#define LIMIT_WATCH_CHANGES 1000 /* in one answer … */
#define LIMIT_WATCH_BYTES MIB(1) /* … whose rows have so much in all, or which is one row */
#define WATCH_GATHER_MS 10       /* from a change to the answers: what comes meanwhile is in them */
#define LIMIT_QUEUE_RETRY_MS                                                                       \
    1000 /* pause before luxid tries again what failed for a passing reason */
#define QUEUE_DRAIN_MS                                                                             \
    10000u /* luxid is asked to end: jobs that are being started are waited for */
#define QUEUE_DRAIN_LOOK_MS 10u    /* between two looks at them */
#define LIMIT_CHILD_NAME_MS 120000 /* within which the process of a job must name its lock file */
#define LIMIT_LOCK_RELEASE_LAG_MS                                                                  \
    20 /* from the event that a lock file is closed to the release of its lock */
#define LIMIT_FINAL_STATE_LAG_MS                                                                   \
    200 /* how long luxid waits for a final state to arrive that a job has committed */

#define ARCHIVE_FOLDER_JOBS 10000 /* ids that share a folder of the archive */
#define LIMIT_ARCHIVE_STEP 64     /* jobs that are archived, or copied, at once */
#define LIMIT_ARCHIVE_ROWS 100000 /* archived jobs that one query reads */
#define ARCHIVE_LOOK_MS 60000u    /* between two looks for jobs that are old enough … */
#define ARCHIVE_RETRY_MS 10000u   /* … when one did not get on … */
#define ARCHIVE_STEP_MS 200u      /* … and between two steps, while there are more */
#define ARCHIVE_END_MS 2000u /* for the process of a job that has ended, before it is archived */
#define LIMIT_ARCHIVE_AGE_S 31536000

#define LIMIT_WAIT_S 86400 /* longest wait that a client may ask for */

/* Queries */
#define LIMIT_QUERY_FIELDS 512 /* a client may ask for all that a resource has */
#define LIMIT_QUERY_NAMES 10000
#define LIMIT_QUERY_DATA 200 /* instances that one OP_INSTANCE_QUERY_DATA tells of */
#define LIMIT_FILTER_DEPTH 16
#define LIMIT_FILTER_TERMS 4096
#define LIMIT_FILTER_REGEXES 256
#define LIMIT_FILTER_REGEX_STEPS 100000 /* of one match */
#define FILTER_REGEX_EASY_STEPS 1000    /* most matches need fewer */
#define FILTER_REGEX_COST 5000u         /* of one that does not, in steps of the query */
/* Steps of a query: terms of a filter that are looked at, cells and bytes of the answer. */
#define QUERY_QUICK_STEPS 500000u   /* then it is done bit by bit, so that others have a turn … */
#define QUERY_TURN_STEPS 50000u     /* … after so many each time … */
#define LIMIT_QUERY_STEPS 20000000u /* … and given up */
#define QUERY_BYTES_STEP 64u        /* bytes of an answer that count as one */
#define LIMIT_LONG_QUERIES 8        /* of those that are done bit by bit, one after the other */

/* Locks and commits */
#define LIMIT_LOCKS_PER_CALL 4096
#define LIMIT_LOCK_RETURN_MS                                                                       \
    30000 /* a waiting request that the journal knew: its client comes back until then */
#define LIMIT_JOURNAL_SLACK 4096 /* entries of the lock journal beyond twice what is held */
#define LIMIT_JOURNAL_BYTES MIB(64)
/* More changes than are lost with a master, or made after a backup was taken. */
#define LIMIT_SERIAL_LEAP 1000000000
#define LIMIT_SERIALS_PER_SECOND 1000000 /* more changes than any master makes in one */
#define LIMIT_CHANGES_PER_COMMIT 4096
#define LIMIT_COMMIT_CHANGES 8000 /* of any commit with etcd, which takes 8192 operations */
#define LIMIT_STORE_CHANGES 40000 /* … and with the store of one node: an import */
#define LIMIT_CHANGE_LOG 65536    /* older subscribers get a snapshot */
#define LIMIT_EPOCH_LEAP 1000000  /* more masterships than lost candidates can have had */
#define LIMIT_HORIZON_S (50ull * 365 * 86400) /* further ahead no clock is believed (SAF-103) */
#define LIMIT_HORIZON_STORED 1000000          /* … but this far above what is stored already */
#define LIMIT_DIGESTS_KEPT 4096     /* digests of the newest serials, to compare copies with */
#define LIMIT_FLUSHES 64            /* flush_config calls under way */
#define LIMIT_KINDS 64              /* of objects: a set of them is the bits of a number */
#define LIMIT_SNAPSHOT_OBJECTS 4096 /* more are fetched in pieces */
#define LIMIT_SNAPSHOT_BYTES MIB(1) /* of one piece */
#define LIMIT_CHANGES_BYTES MIB(8)  /* of changes in one answer; more are fetched in pieces */
#define LIMIT_ANNOUNCE_BYTES MIB(8) /* of announcements to the nodes, at once */
#define LIMIT_COMMITS_PER_BATCH 256
#define LIMIT_COMMIT_IDS 65536          /* by which a commit can be looked up later */
#define LIMIT_IDS_PIECE 4096            /* of them, in one answer or one key of etcd */
#define LIMIT_HANDOVER_LAG 1000         /* serials that the copy of the next master may lack */
#define LIMIT_ROLE_WHY_CHARS 500        /* of what keeps a candidate from its duty */
#define LIMIT_SCRUB_ROWS 1024           /* of a store, that are read anew at once … */
#define LIMIT_SCRUB_BYTES MIB(1)        /* … with so much in them, and one more … */
#define SCRUB_STEP_MS 20000u            /* … so often, while nothing else is to be done … */
#define SCRUB_LONGEST_MS 60000u         /* … and also while there is */
#define LIMIT_ETCD_OPERATIONS 4096      /* of several commits in one transaction */
#define LIMIT_ETCD_BATCH_BYTES MIB(1)   /* of several commits in one transaction */
#define LIMIT_ETCD_ANSWER_BYTES MIB(64) /* one answer of etcd */
#define LIMIT_ETCD_CONNECTIONS 8        /* to one member */
#define LIMIT_ETCD_PAGE 1000            /* keys that are read at once */
#define LIMIT_PROBLEMS 1000             /* broken invariants listed in one answer */

/* Members of etcd */
#define LIMIT_ENGINE_MEMBERS 7          /* as many as etcd's authors advise at most */
#define LIMIT_ENGINE_FILE_BYTES KIB(64) /* etc/engine.json */
#define LIMIT_ETCD_STORE_BYTES                                                                     \
    MIB(4096)                           /* of one member; beyond it etcd takes no more writes      \
                                         */
#define LIMIT_ETCD_LOG_BYTES MIB(8)     /* of log/etcd.log; the newer half is kept */
#define ETCD_STOP_MS 10000u             /* from SIGTERM to SIGKILL */
#define ETCD_ASK_MS 2000u               /* one question about how a member is */
#define ETCD_CHANGE_MS 10000u           /* a change of the members, decided by all */
#define ETCD_UPKEEP_MS 60000u           /* compaction, defragmentation of one member */
#define ETCD_KEYS_MS 10000u             /* openssl makes a key, or a request */
#define MEMBER_FIRST_PAUSE_MS 500u      /* before a member that ended is started again … */
#define MEMBER_LONGEST_PAUSE_MS 60000u  /* … twice as long each time, up to this */
#define MEMBER_SETTLED_MS 60000u        /* one that ran so long begins with the first pause */
#define MEMBER_FIRST_LOOK_MS 1000u      /* between two looks until it is healthy once */
#define MEMBER_LOOK_MS 60000u           /* and from then on */
#define ENGINE_SETTLE_MS 60000u         /* new members of etcd must be well after that */
#define ENGINE_TEND_MS 3000u            /* between two looks at the members of etcd … */
#define ENGINE_COMPARE_MS 600000u       /* between two comparisons of what the members hold … */
#define ENGINE_COMPARE_SOON_MS 20000u   /* … while they differ, and before the first */
#define ENGINE_SOON_MS 500u             /* … after one that changed something */
#define ENGINE_STILL_MS 10000u          /* commits on their way must have ended after that */
#define COMPACT_INTERVAL_MS 3600000u    /* old revisions of etcd are dropped each hour … */
#define COMPACT_REVISIONS 1000000       /* … and when so many were made */
#define DEFRAGMENT_LEAST_BYTES MIB(16)  /* smaller files are left as they are */
#define DEFRAGMENT_INTERVAL_MS 3600000u /* between two of one member */
#define MEMBER_FULL_PAUSE_MS 600000u    /* between two tries to make room in a file at its limit */
#define UPKEEP_TURN_S 120u              /* how long one member has the others' turn at most */

/* Scheduling */
#define LIMIT_PRIORITY_STEP_S 300 /* one step of priority is worth so much waiting */
#define LIMIT_HOLD_PATIENCE_S 60  /* set aside for locks so long, a job reserves them */
#define LIMIT_RULE_PREDICATES 32
#define LIMIT_RULES 1024
#define LIMIT_RULE_BYTES KIB(32)

/* Healing */
#define LIMIT_REPAIR_TRIES 3
#define LIMIT_REPAIR_DEATHS 6         /* of jobs that had not begun: these are no tries */
#define LIMIT_REPAIR_FIRST_PAUSE_S 10 /* after a try that failed for a passing reason … */
#define LIMIT_REPAIR_NEXT_PAUSE_S 60  /* … and after every further one */
#define LIMIT_REPAIR_JOBS 16          /* of one repair, so that its list fits a tag */
#define LIMIT_REPAIR_ID_CHARS 64      /* of ids that outside tools choose */
#define LIMIT_REPAIR_EVIDENCE 32      /* sentences, or tags, that one record names */
#define LIMIT_REPAIR_PAUSE_S 1024     /* the longest pause between two tries */
#define LIMIT_REPAIR_BATCH 1024       /* changes that one commit of the watcher has, at most */
#define LIMIT_RESULT_TAGS 10       /* success and enoperm results kept for an instance (ARP A-16) */
#define LIMIT_REASON_CHARS 400     /* of a person's reason that a fault or decision repeats */
#define LIMIT_COLLECT 1000         /* subjects of one question to a node */
#define LIMIT_ENDED_JOBS 65536     /* pairs (job, instance) that a node refuses */
#define LIMIT_COLLECT_BUSY_MS 2000 /* until an instance whose lock is not free is told as busy */
#define LIMIT_COLLECT_WAIT_MS 10000 /* a node takes so long at most: its note, locks, looks */
#define LIMIT_COLLECT_AGAIN_MS 5000 /* from an answer that it is busy to the next question */
#define LIMIT_SIGHT_NAMES 64        /* drives, or tap devices, that a look at an instance names */
#define LIMIT_COLLECT_LOOK_MS 5000  /* a member looks for so long at what it is asked about */
#define LIMIT_STORED_DATA 64        /* names of data of one resource that are told */
#define LIMIT_STRAYS 1024           /* of one kind that a node tells without having made them */
#define LIMIT_STRAY_CHARS 256       /* of a name of theirs */
#define LIMIT_STRAYS_PERIOD_S 3600  /* between two looks for them at a host */
#define LIMIT_THINGS                                                                               \
    256 /* without a record, of a host, that are told; then that there are more                    \
         */
#define LIMIT_THING_PROCESSES 16 /* … processes of these: whoever may run QEMU there makes them */
#define LIMIT_IGNORE_CHARS 1024  /* of recovery_ignore */
#define LIMIT_IGNORE_PATTERNS 64 /* in it … */
#define LIMIT_IGNORE_PATTERN 64  /* … each of so many characters */
#define LIMIT_EVENTS 10000       /* decisions that are events: so many stay, … */
#define LIMIT_EVENT_AGE_S 604800 /* … and younger ones */
#define LIMIT_DECISIONS_PER_SUBJECT 20
#define LIMIT_DECISIONS_GONE_S 86400 /* how long records of what exists no more are kept */
#define LIMIT_DECISION_SWEEP_S 3600  /* between two looks for such records */
#define LIMIT_REPAIR_SILENT_S                                                                      \
    30                          /* a node is silent after so long: it is told, counts in a storm   \
                                 */
#define LIMIT_OWN_DISK_MS 60000 /* a replica is held on to so long after the own disks failed */
#define LIMIT_REPAIR_FAULT_S 30 /* disks have failed if they were seen to for so long … */
#define LIMIT_REPAIR_FAULT_PASSES 3  /* … and in so many passes of the watcher */
#define LIMIT_CANDIDATE_SILENT_S 300 /* a silent candidate is usable for so long */
#define LIMIT_POOL_PATIENCE_S 30     /* too few candidates for so long: one is promoted */
#define LIMIT_PLAN_STEPS 8           /* operations of one repair that a forecast follows */
#define LIMIT_WATCHER_PAUSE_MS 50    /* between passes that news start … */
#define WATCHER_ROW_PASSES 8         /* … behind so many in a row twice as long each time … */
#define LIMIT_WATCHER_ROW_MS 400     /* … up to this */
#define LIMIT_REPORT_WAIT_MS 2000    /* a silent node delays a pass or a query by this at most */
#define LIMIT_NODE_OPERATIONS 1024   /* procedures under way on one node */
#define LIMIT_DISK_WARN_PERCENT 90   /* of the disk space of a node in use: a warning … */
#define LIMIT_DISK_FULL_PERCENT 95   /* … and another */
#define LIMIT_ROOM_LEAST_MIB 16      /* with which a guest goes on that has found no room */
#define LIMIT_NODE_GUESTS 4096       /* instances that one node remembers */
#define LIMIT_GUEST_FILE_BYTES KIB(256)

/* Processes */
#define LIMIT_LOG_LINE_BYTES 4096
#define LIMIT_TASK_STACKS_KEPT 64 /* stacks of ended tasks that are kept for new ones */
#if defined(__SANITIZE_ADDRESS__)
#define TASK_STACK_BYTES KIB(512) /* red zones make frames larger */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TASK_STACK_BYTES KIB(512)
#endif
#endif
#ifndef TASK_STACK_BYTES
#define TASK_STACK_BYTES KIB(256)
#endif

/* Joining */
#define LIMIT_VOUCHER_CHARS 255    /* the authority's signature over a mastership */
#define LIMIT_PEM_CHARS 2048       /* a certificate, a request for one */
#define LIMIT_AUTHORITIES 4        /* that a node trusts at once, while keys are renewed */
#define LIMIT_TRUST_CHARS 8192     /* their certificates in one text */
#define KEYS_PASS_MS 1000          /* between two looks of a renewal of keys */
#define KEYS_END_SOON_S 7776000u   /* a certificate that ends so soon is shown as a fault */
#define LIMIT_JOIN_TOKENS 4096     /* on record, used ones too: a whole cluster may join at once */
#define LIMIT_JOIN_TRIES 5         /* wrong secrets, then a token is void */
#define LIMIT_JOINERS 8            /* hosts without a certificate that are listened to at once */
#define LIMIT_JOIN_BYTES KIB(4)    /* what one of them may send in one frame */
#define LIMIT_JOIN_MS 20000u       /* how long it may stay */
#define LIMIT_TOKEN_CHARS 512      /* a token as text */
#define JOIN_TOKEN_KEPT_S 604800u  /* a token is remembered so long after it has ended */
#define JOIN_ANSWER_BYTES MIB(2)   /* what a joining host takes: it names LIMIT_NODES members */
#define MASTER_IP_LOOK_MS 500      /* between two looks of the node that carries it */
#define MASTER_IP_SWEEP_MS 30000u  /* and of the others */
#define MASTER_IP_ASK_MS 2000u     /* for an answer of wconfd on the same node */
#define MASTER_IP_PATIENCE_MS 5000 /* with one that is silent */
#define ROUTED_TELLS 5u            /* neighbours hear so often where a routed card is … */
#define ROUTED_TELL_MS 200         /* … with so much time between */
#define MASTER_IP_TELLS 5u         /* so often the neighbours are told … */
#define MASTER_IP_TELL_MS 1000     /* … with so much time between */
#define JOIN_SIGN_MS 10000u        /* openssl signs one certificate */

/* Archives of the configuration */
#define LIMIT_PLAN_LINES 100000      /* sentences about what a document changes */
#define LIMIT_ARCHIVE_BYTES MIB(256) /* an exported configuration, a file of Ganeti */
#define LIMIT_BACKUP_BYTES MIB(1024) /* a backup */
#define LIMIT_BACKUP_HEADER_BYTES KIB(64)
#define LIMIT_BACKUP_PARTS 16
#define RESTORE_JOB_GAP 10000 /* job ids that a restored cluster passes over */

/* ConfD */
#define LIMIT_CONFD_REQUEST_BYTES KIB(16) /* one datagram of a client */
#define LIMIT_CONFD_REPLY_BYTES 61440     /* what clients of ConfD take at most */
#define LIMIT_CONFD_SALT_CHARS 128        /* what a client wants back in its reply */
#define LIMIT_CONFD_ADDRESSES 512         /* that one request may ask for */
#define LIMIT_CONFD_OBJECTS 256           /* of one kind, in one answer */
#define LIMIT_CONFD_KEY_BYTES KIB(1)      /* a file with the key */
#define LIMIT_CONFD_BATCH 64              /* datagrams taken before anything else gets its turn */
#define LIMIT_CONFD_CANDIDATES 64         /* that a client asks at once */
#define CONFD_SALT_WINDOW_S 300           /* a request is as old, or as far ahead, at most */
#define CONFD_KEY_BYTES 32                /* of a new cluster */
#define CONFD_LOOK_MS 1000u               /* between two looks at the copy when nobody asks */
#define CONFD_STATUS_MS 5000u             /* between two writings of run/rconfd.status */
#define CONFD_COMPLAIN_MS 60000u          /* between two lines about datagrams that were dropped */
#define CONFD_WAIT_MS 2000u               /* for the answers of all candidates */
#define CONFD_REPEAT_MS 300u              /* a question is repeated to who is silent */

/* Answers */
#define TIMEOUT_QUICK_MS 5000u
#define TIMEOUT_NORMAL_MS 30000u
#define TIMEOUT_WAIT_EXTRA_MS 5000u /* on top of the wait that a call names */

/* Console of a guest, as a client reads and types it */
#define CONSOLE_TAIL_BYTES 4096 /* shown first */
#define CONSOLE_WAIT_MS 1000    /* one question for more; how soon a move is seen */
#define CONSOLE_RETRY_MS 300    /* after one that failed */
#define CONSOLE_PATIENCE_MS                                                                        \
    10000 /* for an answer of luxid, and for a guest to take the rest of a pipe */
#define CONSOLE_TYPE_BYTES 1024 /* typed at once */
#define CONSOLE_QUIET_MS 1000   /* the input has ended: nothing came for so long */
#define CONSOLE_LEAVE_MS 3000   /* the input has ended: so long at most */

/* `fettle job list --live` */
#define LIVE_WAIT_S 20 /* one call; without a change its answer is the sign of life */

/* Commands that wait for jobs */
#define LUXID_SILENCE_MS                                                                           \
    15000u /* without an answer, then it is asked something simple; so long without one to that:   \
              it does not answer at all */
#define LUXID_RETRY_MS 1000   /* between two tries to reach a luxid that does not answer */
#define SUBMIT_PATIENCE_S 120 /* so long a submission is sent again whose answer was cut off */

/* Completion in shells */
#define COMPLETE_WAIT_MS 700 /* for names of objects; then none are offered */

/* Lab */
#define LIMIT_LAB_NODES 32
#define LIMIT_LAB_DIR_CHARS 40 /* sockets deep below it must fit into a sockaddr_un */
#define LIMIT_LAB_FRAME_BYTES KIB(64)
#define LIMIT_LAB_JSON_BYTES KIB(64)
#define LIMIT_LAB_LOOP_TRIES 64 /* free loop devices that others took first */

/* Jobs */
#define LIMIT_LOCK_RESTARTS 10 /* declarations that grew after the locks were granted */
#define LOCK_PRIORITY_URGENT (-20)
#define LOCK_WAIT_MS 60000u    /* one request for locks; repeated for as long as it takes */
#define LIMIT_COMMIT_TRIES 8   /* commits built anew because an object changed meanwhile */
#define COMMIT_PAUSE_MS 20u    /* between two of them in luxid */
#define LIMIT_ACT_TRIES 4      /* calls to a node whose fate stays unknown */
#define ACT_PAUSE_MS 250u      /* between two of them */
#define ACT_PATIENCE_MS 10000u /* for a node daemon that is being restarted */
#define JOB_RELEASE_MS 30000u  /* a job waits for wconfd at its start and end */
#define JOB_RETRY_MS 250u
#define JOB_KILL_GRACE_MS 10000u /* between asking a job to give up and killing it */
#define LIMIT_START_TRIES 2      /* generations that one job uses up for a start */
#define OPEN_PATIENCE_MS 1500u   /* for the replica; then the guest starts without it */
#define NODE_ADD_WAIT_MS 20000u  /* for the first answer of a new node */
#define NODE_ADD_POLL_MS 200u
#define ATTEND_MS 1000u            /* between two looks after a call to a node that takes long */
#define LIMIT_NETWORK_RESERVED 256 /* reserved addresses, or ranges of them, of one network */
#define LIMIT_MAC_TRIES 64         /* addresses drawn before the pool counts as full */
#define LIMIT_RESERVE_TRIES 1024   /* reservations of one creation that others were faster than */
#define LIMIT_RESERVED_CHARS 200   /* names of reservations in one message, about */
#define MIRROR_WAIT_MS 2000u       /* one question about a copy */
#define MIGRATION_WAIT_MS 1000u    /* one question about a migration; how soon a cancel is seen */
#define PROGRESS_PAUSE_MS 500u     /* between two entries of the same progress in a job's log */
#define MIRROR_STALL_MS 600000u    /* a copy that gets no further is given up */

/* Guests and exports on one node */
#define LIMIT_KILL_WAIT_MS 10000u         /* from SIGKILL to the exit seen */
#define LIMIT_GUEST_READY_MS 20000u       /* from the start of QEMU to its greeting */
#define LIMIT_QMP_COMMAND_MS 5000u        /* a command that only asks or starts something */
#define LIMIT_QMP_DRAIN_MS 30000u         /* a command that first waits for writes under way */
#define LIMIT_MIRROR_END_MS 10000u        /* until a mirror that was told to end has ended */
#define LIMIT_MIRROR_BUFFER_BYTES MIB(10) /* of a copy, what is under way at once; */
#define MIRROR_BUFFER_LEAST_BYTES KIB(256)
#define MIRROR_FILLS_PER_S 10      /* a slower copy gets a smaller one, filled so often */
#define WRITTEN_TURN_MS 1000u      /* between two beginnings of new bitmaps of what is written */
#define LIMIT_INCREMENTAL_PASSES 8 /* copies of what was written during the one before */
#define INCREMENTAL_LITTLE_BYTES KIB(256) /* so little is copied while the guest stands still, */
#define INCREMENTAL_SHORT_MS 10u          /* or what takes no longer, */
#define INCREMENTAL_TOLERABLE_MS 100u     /* or this if it does not get less */
#define LIMIT_INCREMENTAL_HELD_MS 1000u   /* then the guest goes on, with or without its replica */
#define LET_GO_RETRY_MS 50u
#define LIMIT_EXPORT_READY_MS 10000u /* from the start of an export to its greeting */
#define LIMIT_EXPORT_POLL_MS 20u     /* between two looks whether it greets */
#define LIMIT_EXPORT_PORT_TRIES                                                                    \
    8 /* a free port may be taken by another before the export has it                              \
       */
#define LIMIT_RELAY_LOST_MS                                                                        \
    10000u                          /* a relay that cannot be started for so long: a lost replica  \
                                     */
#define LIMIT_PROBE_MS 1000u        /* an export that shall be mirrored to */
#define LIMIT_SETTLE_MS 20000u      /* an export that puts on stable storage what it was written */
#define LIMIT_GREETING_BYTES 32     /* what a server says first, NBD or one of ours */
#define LIMIT_ACCEL_PROBE_MS 10000u /* a boot to see whether an accelerator works */
#define LIMIT_ACCEL_AGAIN_MS 30000u /* before one is repeated; doubled each time */
#define LIMIT_ACCEL_AGAIN_MOST_MS 600000u
#define LIMIT_IMAGE_THREADS 4                /* images that are copied or synced at once */
#define LIMIT_IMAGE_LAYERS 8                 /* a qcow2 image and what it rests on */
#define LIMIT_QCOW2_HEADER_BYTES KIB(64)     /* what is read of an image to judge it */
#define LIMIT_IMAGE_COPY_BYTES MIB(64)       /* one step of a copy, for its progress to be seen */
#define LIMIT_IMAGE_TOOL_BYTES MIB(1024)     /* address space of qemu-img */
#define LIMIT_IMAGE_TOOL_STACK_BYTES MIB(1)  /* of each of its threads */
#define LIMIT_IMAGE_TOOL_OUTPUT_BYTES MIB(1) /* what it may say about a damaged image */
#define LIMIT_IMAGE_CHECK_CPU_S 60           /* processor time of looking through an image */
#define LIMIT_IMAGE_CONVERT_CPU_S 14400      /* and of copying one */
#define LIMIT_IMAGE_STALL_MS 600000u         /* a copy that gets no further is given up */
#define LIMIT_IMAGE_POLL_MS 100u             /* between two looks at its progress */
#define LIMIT_TOOL_OUTPUT_BYTES MIB(16)      /* what is taken of a program's output */
#define LIMIT_NETWORK_TOOL_MS 10000u         /* one run of ip or ovs-vsctl */
#define LIMIT_BRIDGES_MS 10000u              /* what they say of bridges is asked anew after that */
#define LIMIT_SERVICES 32                    /* daemons that a node reports */
#define LIMIT_BAD_JOB_FILES 100              /* that are named as set aside */
#define LIMIT_SERVICE_RECORD_S 60            /* news of a node's daemons are on record so often */
#define LIMIT_SERVICE_CHARS 32               /* of the name of one */
#define LIMIT_SERVICE_FILE_BYTES KIB(16)     /* what it says of itself */
#define LIMIT_NOTE_MS 2000                   /* a write of it is waited for; it goes on behind */
#define LIMIT_NOTE_END_MS 30000              /* at an end; and all writes before it, at most */
#define LIMIT_STATE_FILE_BYTES KIB(256)      /* what is kept about one guest or replica */
#define LIMIT_TREE_ENTRIES 1000000u          /* names that are removed in one call (tree.h) */
/* Whether a node can do its work (core/node/health.c, core/report/faults.c). */
#define LIMIT_FAULTS 16 /* in one report */
#define LIMIT_FAULT_CHARS 256
#define HEALTH_PAUSE_MS 5000       /* what was well is looked at anew after that */
#define HEALTH_WAIT_MS 500u        /* a report waits so long for looks … */
#define HEALTH_ROOM_BYTES MIB(1)   /* where less is free nothing can be written */
#define LIMIT_LOOK_SILENT_MS 10000 /* … and one that takes so long is a fault */
#define LIMIT_CLOCK_OFF_MS 2000    /* a clock that differs more from the others' is a fault */
#define LIMIT_JOIN_CLOCK_S 60  /* a host whose clock differs more from the master's cannot join */
#define LIMIT_COPY_BEHIND_S 30 /* a copy that lacks for so long what others have is one */
#define LEAST_MEMORY_PERCENT 1 /* available, of a host */
#define MOST_DESCRIPTORS_PERCENT 90
#define LOOK_WAIT_MS 1000u     /* a report waits so long for who is silent … */
#define LOOK_LATE_MS 100u      /* … and so long for who was so the last time */
#define UNDO_LOOK_MS 5000u     /* so long whoever is to undo what a dead job has left */
#define LIMIT_SHARED_MS 500u   /* a look at the shared folder: else it hangs */
#define LIMIT_SOURCES 256      /* files for guests that a node reports */
#define LIMIT_SOURCE_CHARS 128 /* of the name of one */
#define LIMIT_COMPLAINT_BYTES                                                                      \
    KIB(16) /* what is read of a program's standard error for a message                            \
             */

/* Moving guests, and their serial lines */
#define MOVE_STALL_MS 60000u       /* a migration that sends nothing for so long is given up */
#define MOVE_STOP_WAIT_MS 60000u   /* for its end, by a procedure that wants the guest back */
#define MOVE_LOST_WAIT_MS 3000u    /* the same by the mirror watch, before it releases the mirror */
#define MOVE_FROZEN_KILL_MS 30000u /* a QEMU that takes no cancel for so long is ended (SAF-15) */
#define MOVE_PROBE_INTERVAL_MS 500u /* between two probes of what its disks are copied to */
#define MOVE_PROBE_MS 500u          /* each of them */
#define MOVE_STALE_WAIT_MS 5000u    /* for the master's word; the guest stands still meanwhile */
#define MOVE_SWITCH_WAIT_MS 5000u   /* for the other node to close its exports */
#define MOVE_HAND_OVER_MS 10000u    /* for QEMU to end what it has begun */
#define MOVE_HAND_OVER_POLL_MS 10u
#define LIMIT_MOVE_SAVE_TRIES                                                                      \
    3                         /* writes of the guest's record, before the master is told anyway    \
                               */
#define MOVE_POLL_MS 100u     /* between two looks at a migration under way */
#define MOVE_RETRY_MS 500u    /* between two tries of what must succeed */
#define MOVE_WAIT_POLL_MS 20u /* of those who wait for its end */
#define LIMIT_MIGRATION_CONNECT_MS 10000u /* to the process that waits for a guest's memory */
#define LIMIT_MIGRATION_END_MS 10000u     /* until a migration that was cancelled has ended */
#define LIMIT_LAST_WORDS_MS 1000u         /* from a QEMU's hanging up to its exit */
#define LIMIT_CONSOLE_BYTES MIB(4)        /* kept of what a guest has printed */
#define LIMIT_CONSOLE_READ_BYTES KIB(64)  /* one answer */
#define CONSOLE_TRIM_MS 10000u            /* between two looks whether there is more */
#define CONSOLE_WRITE_MS 2000u            /* for a guest to take what was typed */

/* Monitoring of a node, and what its daemons leave for it */
#define LIMIT_PROC_BYTES MIB(4)       /* of a file of /proc */
#define LIMIT_STATS_FILE_BYTES MIB(1) /* of a file of run/stats */
#define LIMIT_STATS_DRIVES 256        /* of one guest, in its figures */
#define LIMIT_CPU_SAMPLES 1024        /* kept for the average of the processors */
#define LIMIT_COLLECTORS 64           /* that the cluster has settings for */
#define STATS_PERIOD_MS 5000u         /* between two writings of figures */
#define MONITOR_STALE_MS 15000        /* three times that */
#define MONITOR_WAIT_MS 900u          /* for collectors, before what they told last is told again */
#define MONITOR_CONFD_MS 700u         /* for the answers of all candidates' ConfD */
#define MONITOR_FILES_MS 500 /* what was read of run/stats serves all collectors for so long */
#define MONITOR_SETTINGS_MS 10000u   /* between two questions for settings */
#define MONITOR_CPU_WINDOW_MS 600000 /* that processors' load is the average of */

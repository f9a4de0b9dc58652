/*
 * struct env of a real process: clocks, files, lock files, calls over sockets, job starters of this
 * host. Made once in a daemon's main() and handed to core.
 *
 *     loop_init();
 *     struct env *env = real_env_new(root, ROLE_WCONFD, NULL, &error);
 *     env->engine = sqlite_engine_open(path, &error);
 */
#pragma once

#include "io/livelock.h"
#include "io/node_config.h"
#include "proto/env.h"

struct bus;

struct real_env_options {
    /* Folder of the program fettle-job; NULL: FETTLE_BINDIR, else that of this program. */
    const char *bin_folder;
    bool folders_made; /* by another process: a job's finds all of them, and the API's user may
                        * make none */
};

/* `root`: as for node_paths_new(). Reads etc/node.json; makes missing folders. Members engine,
 * hypervisor and storage are the caller's to set. */
struct env *real_env_new(const char *root, const char *role, const struct real_env_options *options,
                         GError **error);
void real_env_free(struct env *env);

/* The environment's from then on: env's livelock_drop() of its name unlocks and removes it. */
void real_env_take_livelock(struct env *env, struct livelock *livelock);

/* Changes with every boot of the host. FETTLE_BOOT_ID stands in for the kernel's in a lab, where
 * "power off" does not reboot the host. Free with g_free(). */
char *real_env_boot_id(GError **error);

const struct node_paths *real_env_paths(const struct env *env);
const struct node_config *real_env_config(const struct env *env);

/* Another way for calls than rpc_client.h's. `carrier` is the first argument of `call`. */
typedef void (*real_env_call)(void *carrier, const struct rpc_call *call, rpc_reply_fn done,
                              void *data);
void real_env_set_call(struct env *env, real_env_call call, void *carrier);

/* Only fettle-noded (it stands in bus.c, so that no other program needs TLS): calls to other nodes
 * and to the master go through the bus itself instead of noded's socket. */
void real_env_set_bus(struct env *env, struct bus *bus);

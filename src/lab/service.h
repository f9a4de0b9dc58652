/*
 * Daemons of the nodes, kept running as an init system would: started inside their node's network,
 * restarted with growing pauses when they end, reaped together with what they orphan. Only the
 * supervisor has these; it must be a subreaper and have no threads.
 */
#pragma once

#include "lab/lab.h"
#include "lab/layout.h"

struct services;
struct lab_service;

struct services *services_new(const struct layout *layout);

/* Starts all daemons of a node that has just got power; `boot_id` goes into their environment. */
void services_start_node(struct services *services, guint node, const char *boot_id);
/* From now on nothing is started on that node; who runs is the caller's to kill. */
void services_stop_node(struct services *services, guint node);
/* Daemons of the master count from now on. */
void services_enable_master(struct services *services);

/* Collects every child that has ended; call when SIGCHLD says so. */
void services_reap(struct services *services);

/* UNKNOWN_ENTITY for a name that is none. */
struct lab_service *services_find(struct services *services, const char *daemon_at_node,
                                  GError **error);
bool service_signal(struct lab_service *service, enum lab_signal what, GError **error);
/* Kills it and starts it at once, with variables ("NAME=value", NULL-terminated) for this start
 * only; "+NAME=value" stays until the next call. */
bool service_restart_with(struct lab_service *service, const char *const *variables,
                          GError **error);

/* List of {"name","state","pid","restarts","ready"}. */
json_t *services_to_json(const struct services *services, guint node);

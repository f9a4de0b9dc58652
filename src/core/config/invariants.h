/*
 * What must be true of the configuration, and of every change of it: the safety rules SAF-10 to
 * SAF-12, SAF-16 and SAF-30 as far as records can show them, and that references hold. wconfd
 * checks each commit; `cluster verify` lists what is broken. Pure.
 *
 * Two sorts of rules: about a state (invariants.c, invariants_instance.c: names are unique,
 * references exist, holder is primary) and about a step from one state to the next (transitions.c,
 * transitions_move.c: a generation never falls, only an in-sync replica is promoted). Every refusal
 * names the object, the rule and the values.
 */
#pragma once

#include "core/config/model.h"

/* One changed object. `before` or `after` is NULL for a new or deleted one; typed structs,
 * borrowed. */
struct config_delta {
    const char *kind;
    const char *key;
    const void *before;
    const void *after;
};

/* Who asks: only a holder's node daemon may make a replica in-sync (set_replica_state) and move a
 * guest that it was running to the node of its migration (set_migrated). A statement is a node's
 * word on what an earlier master had answered it, which is lost (wconf_stated.c, SAF-09). Work: the
 * methods of work, which alone write rows of it and the guarded fields of volumes (SAF-50). */
enum invariants_author { AUTHOR_COMMIT, AUTHOR_HOLDER, AUTHOR_STATEMENT, AUTHOR_WORK };

/* Whether a back end could go: WRONG_STATE with what is on it. */
bool invariants_backend_empty(const struct config *config, const struct backend *backend,
                              GError **error);

/* `after` is the configuration with the changes in it; `deltas`: GPtrArray of struct config_delta,
 * each object once. */
bool invariants_check(const struct config *after, const GPtrArray *deltas,
                      enum invariants_author author, GError **error);

/* Every broken rule about the state, in words; GPtrArray of char *, at most `max`. */
GPtrArray *invariants_problems(const struct config *config, guint max);

/* Parts of invariants_check: about the state of the changed objects and of those that refer to
 * them, and about the step. */
bool invariants_check_state(const struct config *after, const GPtrArray *deltas, GError **error);
bool invariants_check_steps(const struct config *after, const GPtrArray *deltas,
                            enum invariants_author author, GError **error);

/* Whether a migration is on record that has not moved the guest yet; one that has moved it stays on
 * record until it is settled, with its node as the primary. */
bool invariants_migrating(const struct instance *instance);

/* The state rule of instances (invariants_instance.c). */
bool invariants_instance(const struct config *config, const void *object, GError **error);
/* Those of networks (invariants_network.c): a network, and a card that may be in one. */
bool invariants_network(const struct config *config, const void *object, GError **error);
bool invariants_card_in_network(const struct config *config, const struct instance *instance,
                                guint index, GError **error);
/* Those of what is stored (invariants_storage.c). */
bool invariants_backend(const struct config *config, const void *object, GError **error);
bool invariants_storage_service(const struct config *config, const void *object, GError **error);
bool invariants_worker(const struct config *config, const void *object, GError **error);
bool invariants_volume_type(const struct config *config, const void *object, GError **error);
bool invariants_volume(const struct config *config, const void *object, GError **error);
bool invariants_backup(const struct config *config, const void *object, GError **error);
bool invariants_image(const struct config *config, const void *object, GError **error);
bool invariants_snapshot(const struct config *config, const void *object, GError **error);
bool invariants_trash(const struct config *config, const void *object, GError **error);
bool invariants_cleanup(const struct config *config, const void *object, GError **error);
bool invariants_front_end(const struct config *config, const void *object, GError **error);
/* Of what was deleted (invariants_deleted.c): nothing refers to it. */
bool invariants_deleted(const struct config *config, const struct config_delta *delta,
                        GError **error);
/* WRONG_STATE with the way out: rows of work are this service's, so it stays on record. */
bool invariants_no_work(const struct config *config, const struct storage_service *service,
                        GError **error);

/* What several of them ask (invariants_common.c). */
bool invariants_exists(const struct config *config, const char *kind, const char *key,
                       const char *field, GError **error);
bool invariants_unique_name(const struct config *config, const char *kind, const char *name,
                            GError **error);
/* Whether an address of a node or guest is free of the master IP; ALREADY_EXISTS with the field. */
bool invariants_no_master_ip(const struct config *config, const char *field, const char *address,
                             GError **error);
/* Six bytes in one spelling (lower case, colons), so that equal addresses are equal texts; of one
 * card, not of a group. */
bool invariants_mac_is_good(const char *mac);
/* "instance web1 (UUID)": how messages name an object; free with g_free(). */
char *invariants_subject(const char *kind, const char *key, const void *object);

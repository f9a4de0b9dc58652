/*
 * What commands about volumes, snapshots and backups ask fettle-wconfd of the master for: it puts
 * it on record in one commit, by an id of its own, so that it may be asked for again.
 */
#pragma once

#include "cli/volume/volume_follow.h"

/* A method that only commits. `args` is stolen. */
bool volume_ask(struct cli *cli, const char *method, json_t *args, GError **error);
/* accept_work: says that it is on record, or follows it to its end. `args` is stolen, `work`
 * cleared. -1 with an error. */
int volume_work(struct cli *cli, struct volume_request *work, bool no_wait, json_t *args,
                GError **error);
/* WRONG_INPUT: it is empty. */
bool volume_name_given(const char *name, GError **error);
/* Takes a flag with a value; NULL: it is not there. */
bool volume_take(int *argc, char **argv, const char *name, const char **ret_value, GError **error);
bool volume_take_wait(int *argc, char **argv, bool *ret_no_wait, GError **error);
/* `--size` as GiB; false with an error that names the flag. */
bool volume_size(const char *text, bool needed, guint64 *ret_size, GError **error);
/* The value of such a flag. */
bool volume_gib(const char *flag, const char *text, guint64 *ret_size, GError **error);
/* `fettle KIND delete NAME`, of what has nothing that goes with it. */
int volume_delete_of(struct cli *cli, const char *kind, int argc, char **argv, GError **error);
/* `fettle KIND rename NAME NEW-NAME`, `fettle KIND reset-state NAME --status STATUS`. */
int volume_rename(struct cli *cli, const char *kind, int argc, char **argv, GError **error);
int volume_reset(struct cli *cli, const char *kind, int argc, char **argv, GError **error);
/* Asks a person at a terminal, unless `yes`. `what`: `Volume data1 and its data`. */
bool volume_may_delete(const struct cli *cli, const char *what, bool yes, GError **error);

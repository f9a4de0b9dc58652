/*
 * Shared by the parts of `fettle cluster engine`: engine.c (status, the command itself),
 * engine_change.c.
 */
#pragma once

#include "cli/cli.h"

/* `fettle cluster engine etcd|sqlite`: begins the change, shows what is done, and returns when the
 * new engine has a master. */
int engine_change(struct cli *cli, enum engine_kind kind, bool yes, GError **error);

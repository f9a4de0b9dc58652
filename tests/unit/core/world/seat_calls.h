/*
 * What a person, or luxid, asks of the wconfd of its own node, for tests of seats. Each is a
 * process of that node in the fake world.
 */
#pragma once

#include "helper/fake_env.h"
#include "proto/records.h"

struct role_status *ask_seat(const struct env *cli);
/* "node SERIAL", or the error; g_free() it. `statement` not empty: no other node is left. */
char *ask_take_over(const struct env *cli, const char *to, const char *statement);
/* The `number`th tag of web1, by a commit with an id of that number. */
void ask_commit_tag(const struct env *luxid, guint number, const char *tag);

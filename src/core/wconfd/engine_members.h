/*
 * The members of etcd as candidates come and go (docs/design/mastership.md, "etcd"): the master of
 * that engine compares now and then who is a candidate on record with whom etcd has as a member and
 * with what the nodes have been told, and does the next step of whatever differs. Every step may be
 * done twice; a death in between is the next master's first difference.
 */
#pragma once

#include <stdbool.h>

struct wconf;

/* Begins; nothing if this engine has no members to tend. */
void engine_members_start(struct wconf *wconf);
/* Which members hold something else than most, by two comparisons in a row; NULL: none, as far as
 * is known. Borrowed. */
const char *engine_members_odd(const struct wconf *wconf);
/* Whether more than one has a vote, so that what is committed is on more than one disk; false also
 * as long as that was not seen. */
bool engine_members_several(const struct wconf *wconf);
/* Nobody is tended from now on; what is under way is ended after its step. */
void engine_members_end(struct wconf *wconf);

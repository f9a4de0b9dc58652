/*
 * A candidate's copy in memory, for unit tests (proto/copy.h): it outlives the wconfd that used it,
 * as a store on disk does.
 */
#pragma once

#include "proto/copy.h"

struct fake_copy;

struct fake_copy *fake_copy_new(void); /* empty */
void fake_copy_free(struct fake_copy *copy);
struct copy *fake_copy_base(struct fake_copy *copy);
/* The next `count` calls that write fail with STORAGE. */
void fake_copy_fail(struct fake_copy *copy, guint count);
/* The serial of a commit that it was told of; 0: it knows none with that id. */
guint64 fake_copy_lookup(const struct fake_copy *copy, const char *commit_id);
guint fake_copy_refills(const struct fake_copy *copy); /* that came to their end */
/* Makes its content another without its position. */
void fake_copy_corrupt(struct fake_copy *copy);
/* Who reads it anew finds this damaged (CORRUPT), until it begins with an empty one. */
void fake_copy_rot(struct fake_copy *copy, const char *what);

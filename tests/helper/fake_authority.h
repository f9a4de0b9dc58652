/*
 * The certificate authority's key on one node, for unit tests (proto/authority.h): a word that fits
 * if it begins with the authority's name. It outlives the wconfd that used it. Texts are signed,
 * with any key; certificates are not.
 */
#pragma once

#include "proto/authority.h"

struct fake_authority;

/* `name` is also its certificate; `key` NULL: there is none. */
struct fake_authority *fake_authority_new(const char *name, const char *key);
void fake_authority_free(struct fake_authority *authority);
struct authority *fake_authority_base(struct fake_authority *authority);
/* The key that lies there, whether it fits or not; NULL: none. */
const char *fake_authority_key(const struct fake_authority *authority);
void fake_authority_put(struct fake_authority *authority, const char *key);
/* The next `count` keys that come cannot be written. */
void fake_authority_fail(struct fake_authority *authority, guint count);

/* One of "ca" that nobody keeps: with the key, as a candidate's wconfd has it, or without, as every
 * node daemon, which the fake world gives it to. */
struct authority *fake_authority_of(bool key);

/*
 * Secrets of a front end of the API (proto/api/crypto.h). Passwords are kept by yescrypt, as
 * Debian's own are, in two threads. Tokens are sealed with AES-256-GCM; the keys stand in a file
 * that only the front end's user may read, two of them: the first one seals, both open. A file that
 * was changed meanwhile counts from the next token on, so that keys can be turned while front ends
 * run; several have the same ones if it is copied.
 */
#pragma once

#include "proto/api/crypto.h"

/* UNKNOWN_ENTITY: there is no such file; PERMISSION: others may read it; CORRUPT. */
struct crypto *crypto_open(const char *keys_path, GError **error);
/* One that only checks passwords, and has no keys to seal with. */
struct crypto *crypto_open_passwords(void);
void crypto_close(struct crypto *crypto);
/* Makes the file, with fresh keys; synced. ALREADY_EXISTS. */
bool crypto_keys_make(const char *path, GError **error);
/* A fresh key seals from now on; the one before still opens. Owner and mode stay. Errors as
 * crypto_open(). */
bool crypto_keys_rotate(const char *path, GError **error);

/*
 * Locks, requests and answers as short texts, for tests of the lock manager: "x instance/a, s
 * node/n1, r node/n2" asks for an exclusive and a shared lock and releases one. Owner 17 is (job
 * 17, lock file job-17).
 */
#pragma once

#include "core/locks/locks.h"

/* Registers a test that gets a lock manager of its own, without a gate. */
void locks_case(const char *path, void (*test)(struct locks *locks));

struct owner *lock_owner_of(guint number);
GPtrArray *lock_requests_new(void);
void lock_request_add(GPtrArray *requests, const char *name, enum lock_mode mode);
/* An array that owns its requests. */
GPtrArray *lock_requests(const char *text);
/* What the owner holds, as text in the same form; w: waits for. */
char *locks_held_text(const struct locks *locks, guint number);
/* "granted", "blocked by 1 2 gate node/x", "waits", or "error_name: message". */
char *locks_ask(struct locks *locks, guint number, const char *text, bool wait, gint64 priority);
/* Numbers of the owners that were granted what they waited for: "2 3". */
char *locks_grants_text(struct locks *locks);
void locks_release(struct locks *locks, guint number);

#define assert_held(locks, number, text)                                                           \
    do {                                                                                           \
        g_autofree char *held_ = locks_held_text(locks, number);                                   \
        g_assert_cmpstr(held_, ==, text);                                                          \
    } while (0)
#define assert_try(locks, number, text, expected)                                                  \
    do {                                                                                           \
        g_autofree char *said_ = locks_ask(locks, number, text, false, 0);                         \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)
#define assert_wait(locks, number, text, expected)                                                 \
    do {                                                                                           \
        g_autofree char *said_ = locks_ask(locks, number, text, true, 0);                          \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)
#define assert_grants(locks, text)                                                                 \
    do {                                                                                           \
        g_autofree char *grants_ = locks_grants_text(locks);                                       \
        g_assert_cmpstr(grants_, ==, text);                                                        \
    } while (0)

/* Which routes the tests of a process have seen answered: a route that none has seen fails the last
 * one. */
#pragma once

#include <glib.h>

/* A request was answered. Noted if the status is that of its route; `path` as the server has it,
 * `body` as it was sent, "" or NULL: none. */
void routes_seen_note(const char *method, const char *path, guint minor, const char *body,
                      guint status);
/* Each route whose name begins with one of these words (NULL at the end) has been seen answered
 * with its status. */
void routes_seen_assert(const char *const *words);

/*
 * The one error domain. Every function that can fail takes `GError **error` last and uses these
 * codes; callers add context with g_prefix_error(), so that a message reads `node2: disk 0:
 * replica: connection refused`. The list is error.def; the numbers are never sent, the names are.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

enum fettle_error {
#define ERROR(NAME, wire, exit_code, http_status, doc) FETTLE_ERROR_##NAME,
#include "base/error.def"
#undef ERROR
    FETTLE_ERROR_COUNT
};

#define FETTLE_ERROR (fettle_error_quark())
GQuark fettle_error_quark(void);

/* Name on the wire ("wrong_input"); codes of other domains read as "internal_error". */
const char *fettle_error_name(const GError *error);

/* Code for a wire name; FETTLE_ERROR_INTERNAL for an unknown one, so that a newer peer's errors
 * stay errors. */
enum fettle_error fettle_error_from_name(const char *name);

/* Exit code of a command that failed with `error`. */
int fettle_error_exit_code(const GError *error);

/* One sentence on what the code means, for documentation. */
const char *fettle_error_doc(enum fettle_error code);

/* A wait has failed because its process has ended: KILLED, "WHO has ended", unless whoever waited
 * inside has said so already; false. */
bool fettle_set_ended(GError **error, const char *who);

#define fettle_set_error(error, NAME, ...)                                                         \
    g_set_error((error), FETTLE_ERROR, FETTLE_ERROR_##NAME, __VA_ARGS__)
#define fettle_error_is(error, NAME) g_error_matches((error), FETTLE_ERROR, FETTLE_ERROR_##NAME)

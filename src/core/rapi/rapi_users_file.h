/*
 * A file of users of REST, as Ganeti has it: NAME PASSWORD [read,write], one a line; "#" begins a
 * comment. A password stands there in clear, as {CLEARTEXT}PASSWORD, as {HA1}HEX, the MD5 of
 * NAME:REALM:PASSWORD, or as {CRYPT}HASH, as crypt(3) keeps one. See rapi_users.h.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

enum rapi_scheme { RAPI_CLEARTEXT, RAPI_HA1, RAPI_CRYPT };

struct rapi_listed {
    char *name;
    enum rapi_scheme scheme;
    char *kept; /* of that scheme */
    bool write;
};
void rapi_listed_free(void *listed);

/* Its users by name, of which the last line of a name counts; unref them. `complain` is told each
 * line that is left out: "rapi/users: line 4: …". */
GHashTable *rapi_users_file_parse(const char *text, void (*complain)(const char *line, void *data),
                                  void *data);

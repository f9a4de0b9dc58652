/*
 * The bridges of a host as it was last asked for them. A report wants them each second, and asking
 * starts programs: what they said is given again until a device comes, goes or is renamed, and at
 * the most for LIMIT_BRIDGES_MS (a device may also become a bridge without another name). Used by
 * network_linux.
 */
#pragma once

#include <glib.h>

/* Embedded; zero: nothing is known. */
struct known_bridges {
    GPtrArray *names; /* char * */
    char *devices;    /* who had which names then */
    gint64 until_ms;
};

/* Every device of the host with its number and name, as text; g_free() it. */
char *known_bridges_devices(void);

/* A new list of char *, or NULL if it has to be asked for. `now_ms` is of the boot clock. */
GPtrArray *known_bridges_get(const struct known_bridges *known, const char *devices, gint64 now_ms);
/* `devices` as they were before the programs were asked. */
void known_bridges_set(struct known_bridges *known, const GPtrArray *names, const char *devices,
                       gint64 now_ms);
void known_bridges_clear(struct known_bridges *known);

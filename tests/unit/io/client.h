/*
 * A client of a server under test: it says bytes, so that they may be anything, and reads all that
 * comes until the end.
 */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

struct client {
    GSocketConnection *connection;
    GString *said; /* by the server */
    bool over;
    char bytes[4096];
};

/* Connects to that port of 127.0.0.1, and reads. Free with client_free(). */
struct client *client_dial(guint port);
/* From that address, and reads nothing until client_read_on(). */
struct client *client_dial_silently(const char *address, guint port);
void client_read_on(struct client *client);
/* Waits for its end, if it reads. */
void client_free(struct client *client);

/* Runs the loop meanwhile. False: the server has hung up. */
bool client_say_bytes(const struct client *client, const char *bytes, size_t len);
void client_say(const struct client *client, const char *text);

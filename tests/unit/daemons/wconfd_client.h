/*
 * Processes that talk to a real fettle-wconfd as jobs do, each with a lock file and a connection of
 * its own. The test's own program is started once more for each (client_main()) and told by lines
 * what to ask.
 *
 *     METHOD ARGS        the answer as JSON, or `error_name: message`; asked again while nobody
 *                        listens. In ARGS "owner": 1 or 2 stands for the client with its first or
 *                        second lock file (job N and N+100), "commit_id": true for a new one.
 *     !tags WORD COUNT   adds so many tags WORD-0, WORD-1, … to the cluster, one after the other
 *     !drop              gives the second lock file up
 *     !cut               breaks all connections
 *     !keep              starts a process that keeps nothing but the connections open
 */
#pragma once

#include "wconfd_host.h"

struct client {
    GSubprocess *process;
    GDataInputStream *out;
    char *livelock[2];
};

/* The program of a client; `argv` is ROOT ROLE JOB. */
int client_main(char **argv);

void client_start(struct client *client, const struct host *host, const char *role, guint job);
void client_tell(struct client *client, const char *line);
/* The next line that it says; free with g_free(). */
char *client_hear(struct client *client);
char *client_ask(struct client *client, const char *line);
/* SIGKILL; the rest goes with client_clear(). */
void client_kill(struct client *client);
void client_clear(struct client *client);

/* The answer must match; `*` stands for anything. */
#define assert_answer(client, line, pattern)                                                       \
    do {                                                                                           \
        g_autofree char *answer_ = client_ask(client, line);                                       \
        if (!g_pattern_match_simple(pattern, answer_))                                             \
            g_assert_cmpstr(answer_, ==, pattern);                                                 \
    } while (0)

/*
 * The two halves of a guest's serial line for `fettle instance console` (console.c): one question
 * for what it prints and one request to type are under way at a time, each on a connection of its
 * own, so that a node that does not answer holds up neither the terminal nor the other half.
 *
 * The line follows its instance: when that runs on another node, reading goes on there from where
 * it began to print (a live migration loses and repeats nothing). What was typed meanwhile is kept
 * until the guest takes it.
 */
#pragma once

#include "cli/cli.h"

struct line {
    const char *name;
    bool patient; /* a person is there: no trouble but the end of the instance ends it */
    void (*note)(const char *text); /* a sentence for that person, without an end */

    struct cli read, type, ask;
    bool reading, typing;          /* asked, not answered */
    gint64 read_again, type_again; /* not before, in microseconds */
    char *node;                    /* that the offset is of; NULL before the first answer */
    gint64 offset;                 /* bytes seen; negative: so many before the end */
    GByteArray *typed;             /* not taken by the guest yet */
    guint sent;                    /* of these, in the request that is under way */
    bool silent, deaf;             /* nothing is heard, nothing taken, and that was noted */
};

void line_init(struct line *line, const struct cli *cli, const char *name, gint64 offset);
void line_clear(struct line *line);

/* Asks and types as far as it is time to. False: as for line_hear(). */
bool line_go(struct line *line, GError **error);
/* What to poll for; negative descriptors are none. */
void line_descriptors(const struct line *line, int *ret_read, int *ret_type);
/* Milliseconds until line_go() has something to do by itself; -1: nothing. */
int line_wait(const struct line *line);
/* An answer to the question has come: what was printed, free with g_bytes_unref(); NULL: nothing,
 * or the line is over: the instance is gone, nothing was ever heard, or nobody is there to wait. */
GBytes *line_hear(struct line *line, GError **error);
/* An answer to the request to type has come. False: the line is over. */
bool line_typed(struct line *line, GError **error);
/* Whether there is room for more of what is typed, and more of it. */
bool line_has_room(const struct line *line);
void line_type(struct line *line, const guint8 *data, gsize len);
/* Whether all that was typed has been taken. */
bool line_is_idle(const struct line *line);

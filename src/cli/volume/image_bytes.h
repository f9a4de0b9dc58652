/*
 * The bytes of an image between a file and the node that keeps it, with their sums, while a person
 * sees how far they are and may end it (Ctrl-C).
 */
#pragma once

#include "cli/cli.h"
#include "io/crypto/sum.h"

struct image_bytes {
    const char *name; /* for what is shown */
    int fd;
    guint64 bytes;      /* that are to come; 0: as many as there are */
    guint64 done;       /* that have */
    char sum[SUM_TEXT]; /* their SHA-512, in hexadecimal */
};

/* All that `fd` has, to where `door` leads (an answer of ReceiveImage); it is on stable storage
 * there. The connection stands until image_bytes_end(). NULL with an error: it is ended. */
struct image_line;
struct image_line *image_bytes_send(const struct cli *cli, const json_t *door,
                                    struct image_bytes *bytes, GError **error);
void image_bytes_end(struct image_line *line); /* NULL is allowed */
/* From there (SendImage) to `fd`, whose zeroes are holes; it is not synced. */
bool image_bytes_fetch(const struct cli *cli, const json_t *door, struct image_bytes *bytes,
                       GError **error);

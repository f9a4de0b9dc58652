/* See image_bytes.h. */
#include "cli/volume/image_bytes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/task.h"
#include "cli/interrupt.h"
#include "cli/screen.h"
#include "io/loop.h"
#include "io/net/nbd_stream.h"

#define PIECE_BYTES MIB(1)
#define LOOK_MS 100
#define SHOW_MS 250

struct image_line {
    const struct cli *cli;
    const json_t *door;
    struct image_bytes *bytes;
    struct nbd_stream *stream;
    struct sum *sum;
    guint8 *piece;
    gint64 shown_ms;
    bool done;
    GError *error;
};

/* --- how far it is --- */

static void show(struct image_line *line)
{
    const struct image_bytes *bytes = line->bytes;
    gint64 now = loop_boot_ms();
    if (line->cli->json || now < line->shown_ms + SHOW_MS)
        return;
    line->shown_ms = now;
    guint64 done = bytes->done / MIB(1);
    g_autofree char *text =
        bytes->bytes ? g_strdup_printf("image %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                                       " MiB, %" G_GUINT64_FORMAT " %%",
                                       bytes->name, done, bytes->bytes / MIB(1),
                                       bytes->done * 100 / bytes->bytes)
                     : g_strdup_printf("image %s: %" G_GUINT64_FORMAT " MiB", bytes->name, done);
    screen_draw((const char *const[]){text, NULL});
}

static void count(struct image_line *line, gsize some)
{
    sum_add(line->sum, line->piece, some);
    line->bytes->done += some;
    show(line);
}

/* --- in the task --- */

static bool connect_to(struct image_line *line)
{
    const char *path = json_string_value(json_object_get(line->door, "path"));
    const struct nbd_place place = {
        .path = path && *path ? path : NULL,
        .address = json_string_value(json_object_get(line->door, "address")),
        .port = (guint64)json_integer_value(json_object_get(line->door, "port")),
        .key = json_string_value(json_object_get(line->door, "psk")),
        .stall_ms = LIMIT_TRANSFER_STALL_MS};
    if (!place.path)
        cli_join_lab(line->cli);
    line->stream = nbd_stream_open(&place, &line->error);
    return line->stream != NULL;
}

/* Ctrl-C is looked at in a wait alone, and not in one for what can be read already. */
static bool is_left(void)
{
    return cli_wait_readable(-1, 0, true) == CLI_WAIT_INTERRUPTED;
}

/* A pipe may have nothing for long. -1 with the error; 0: the end. */
static gssize read_piece(struct image_line *line)
{
    while (!is_left()) {
        if (cli_wait_readable(line->bytes->fd, 0, true) == CLI_WAIT_READABLE) {
            gssize got = read(line->bytes->fd, line->piece, PIECE_BYTES);
            if (got < 0)
                fettle_set_error(&line->error, WRONG_INPUT, "cannot read it: %s",
                                 g_strerror(errno));
            return got;
        }
        if (!nbd_stream_rest(line->stream, line->bytes->fd, LOOK_MS, &line->error))
            return -1;
    }
    fettle_set_error(&line->error, DETACHED, "interrupted");
    return -1;
}

static void send_task(void *data)
{
    struct image_line *line = data;
    gssize got = connect_to(line) ? 1 : -1;
    while (got > 0) {
        got = read_piece(line);
        if (got > 0)
            count(line, (gsize)got);
        if (got > 0 && !nbd_stream_write(line->stream, line->piece, (gsize)got, &line->error))
            got = -1;
    }
    if (got == 0)
        nbd_stream_flush(line->stream, &line->error);
    line->done = true;
}

static bool is_blank(const guint8 *bytes, gsize length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static bool put_piece(struct image_line *line, gsize length)
{
    const guint8 *rest = line->piece;
    off_t at = (off_t)line->bytes->done;
    for (gsize left = is_blank(rest, length) ? 0 : length; left > 0;) {
        gssize put = pwrite(line->bytes->fd, rest, left, at);
        if (put <= 0) {
            fettle_set_error(&line->error, STORAGE, "cannot write it: %s", g_strerror(errno));
            return false;
        }
        rest += put;
        at += put;
        left -= (gsize)put;
    }
    return true;
}

static void fetch_task(void *data)
{
    struct image_line *line = data;
    struct image_bytes *bytes = line->bytes;
    bool ok = connect_to(line);
    while (ok && bytes->done < bytes->bytes) {
        gsize wanted = (gsize)MIN(PIECE_BYTES, bytes->bytes - bytes->done);
        gssize got = nbd_stream_read(line->stream, line->piece, wanted, &line->error);
        if (got == 0)
            fettle_set_error(&line->error, CORRUPT, "there is less of it than is on record");
        ok = got > 0 && put_piece(line, (gsize)got);
        if (ok)
            count(line, (gsize)got);
    }
    line->done = true;
}

/* --- its frame --- */

static void run(struct image_line *line, task_fn task)
{
    struct task_group *group = task_group_new();
    loop_init();
    cli_interrupt_catch();
    task_spawn(group, task, line);
    while (!loop_run_until(&line->done, LOOK_MS) && !is_left())
        continue;
    task_group_kill(group);
    while (!line->done)
        loop_run_until(&line->done, LOOK_MS);
    task_group_unref(group);
    screen_clear();
    if (line->error && cli_interrupted()) {
        g_clear_error(&line->error);
        fettle_set_error(&line->error, DETACHED, "interrupted");
    }
    sum_end(g_steal_pointer(&line->sum), line->bytes->sum);
}

static struct image_line *line_new(const struct cli *cli, const json_t *door,
                                   struct image_bytes *bytes)
{
    struct image_line *line = g_new0(struct image_line, 1);
    line->cli = cli;
    line->door = door;
    line->bytes = bytes;
    line->sum = sum_new(SUM_SHA512);
    line->piece = g_malloc(PIECE_BYTES);
    return line;
}

void image_bytes_end(struct image_line *line)
{
    if (!line)
        return;
    nbd_stream_free(line->stream);
    g_free(line->piece);
    g_clear_error(&line->error);
    g_free(line);
}

struct image_line *image_bytes_send(const struct cli *cli, const json_t *door,
                                    struct image_bytes *bytes, GError **error)
{
    struct image_line *line = line_new(cli, door, bytes);
    run(line, send_task);
    if (!line->error)
        return line;
    g_propagate_error(error, g_steal_pointer(&line->error));
    image_bytes_end(line);
    return NULL;
}

bool image_bytes_fetch(const struct cli *cli, const json_t *door, struct image_bytes *bytes,
                       GError **error)
{
    struct image_line *line = line_new(cli, door, bytes);
    run(line, fetch_task);
    bool ok = !line->error;
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&line->error));
    image_bytes_end(line);
    return ok;
}

/*
 * See image_file.h. The record is made, its bytes are asked for, sent, and said to be all; the
 * volume service of whichever node judges them. What fails on the way leaves no record behind, as
 * far as that can be asked for.
 */
#include "cli/volume/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/screen.h"
#include "cli/volume/image_bytes.h"
#include "cli/volume/storage_ask.h"
#include "io/loop.h"

#define SEE "fettle image list"
#define AGAIN_MS 100
#define BEHIND_MS 20
#define PATIENCE_MS 10000 /* until it is told that nobody has begun with it, or has ended it */

/* --- the file --- */

static int open_file(const char *file, guint64 *ret_bytes, GError **error)
{
    struct stat status = {0};
    int fd = strcmp(file, "-") == 0 ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        fettle_set_error(error, WRONG_INPUT, "--file: cannot read %s: %s", file, g_strerror(errno));
    else if (S_ISDIR(status.st_mode))
        fettle_set_error(error, WRONG_INPUT, "--file: %s is a directory", file);
    else if (S_ISREG(status.st_mode) && status.st_size == 0)
        fettle_set_error(error, WRONG_INPUT, "--file: %s is empty", file);
    else {
        *ret_bytes = S_ISREG(status.st_mode) ? (guint64)status.st_size : 0;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* --- the record --- */

static char *add_record(struct cli *cli, const struct image_file *image, GError **error)
{
    json_autoptr args =
        json_make("{ss sb ss ss ss}", "name", image->name, "unique_name", true, "backend",
                  image->backend ? image->backend : "", "description",
                  image->description ? image->description : "", "disk_format", image->format);
    json_autoptr answer = storage_ask(cli, "add_image", json_incref(args), SEE, error);
    return answer ? g_strdup(json_string_value(json_object_get(args, "commit_id"))) : NULL;
}

static bool begin(struct cli *cli, struct volume_request *work, GError **error)
{
    json_autoptr answer = storage_ask(cli, "accept_work",
                                      json_make("{ss ss ss}", "resource_type", "Image", "operation",
                                                work->operation, "resource", work->uuid),
                                      SEE, error);
    record_autoptr(accepted_work) accepted =
        answer ? accepted_work_parse(answer, RECORD_LAX, error) : NULL;
    work->row = accepted ? accepted->serial : 0;
    return accepted != NULL;
}

static bool ask_delete(struct cli *cli, const struct volume_request *work, GError **error)
{
    json_autoptr gone = storage_ask(cli, "accept_work",
                                    json_make("{ss ss ss}", "resource_type", "Image", "operation",
                                              "delete-image", "resource", work->uuid),
                                    SEE, error);
    return gone != NULL;
}

/* Whoever receives it ends that himself, and takes away what has come, as soon as he sees that we
 * have gone; if nobody does, it is ended on our word. */
static bool remove_record(struct cli *cli, const struct volume_request *work)
{
    bool never = false;
    for (gint64 until_ms = loop_boot_ms() + PATIENCE_MS; loop_boot_ms() < until_ms;) {
        g_autoptr(GError) error = NULL;
        if (ask_delete(cli, work, &error))
            return true;
        if (!fettle_error_is(error, WRONG_STATE))
            return false;
        loop_run_until(&never, AGAIN_MS);
    }
    json_autoptr reset = storage_ask(cli, "reset_state",
                                     json_make("{ss ss ss}", "resource_type", "Image", "resource",
                                               work->uuid, "status", "queued"),
                                     SEE, NULL);
    return reset && ask_delete(cli, work, NULL);
}

static void take_back(struct cli *cli, const struct volume_request *work, GError **error)
{
    if (remove_record(cli, work))
        g_prefix_error(error, "image %s is not made, and its record is removed: ", work->name);
    else
        g_prefix_error(error,
                       "image %s is not made; remove its record with: fettle image delete %s: ",
                       work->name, work->uuid);
}

/* --- its bytes --- */

/* Of a luxid that is away, or a service that has not begun. False: it was left. */
static bool wait_again(struct cli *cli, const struct volume_request *work, gint64 *since_ms,
                       const GError *reason)
{
    gint64 now = loop_boot_ms();
    *since_ms = *since_ms ? *since_ms : now;
    if (now - *since_ms > PATIENCE_MS && !cli->json) {
        g_autofree char *line = g_strdup_printf("image %s waits: %s", work->name, reason->message);
        screen_draw((const char *const[]){line, NULL});
    }
    if (!fettle_error_is(reason, TEMPORARY))
        cli_disconnect(cli);
    return cli_wait_readable(-1, AGAIN_MS, true) != CLI_WAIT_INTERRUPTED;
}

/* `ret_repeated` (may be NULL): it may have been done before it was refused. */
static json_t *ask_again(struct cli *cli, const struct volume_request *work, const char *method,
                         json_t *args, bool *ret_repeated, GError **error)
{
    json_autoptr asked = args;
    for (gint64 since_ms = 0;;) {
        g_autoptr(GError) reason = NULL;
        json_t *answer = cli_call(cli, method, json_incref(asked), &reason);
        if (answer)
            return answer;
        if (ret_repeated)
            *ret_repeated = since_ms > 0;
        if (cli_is_passing(reason) && wait_again(cli, work, &since_ms, reason))
            continue;
        if (cli_interrupted())
            fettle_set_error(error, DETACHED, "interrupted");
        else
            g_propagate_error(error, g_steal_pointer(&reason));
        return NULL;
    }
}

/* That it was all. Where the answer was lost, the record tells what has come of it. */
static bool finish(struct cli *cli, const struct volume_request *work,
                   const struct image_bytes *bytes, const json_t *door, GError **error)
{
    bool repeated = false;
    g_autoptr(GError) reason = NULL;
    json_int_t claim = json_integer_value(json_object_get(door, "claim"));
    json_autoptr done =
        ask_again(cli, work, "FinishImage",
                  json_make("[sIIs]", work->uuid, claim, (json_int_t)bytes->done, bytes->sum),
                  &repeated, &reason);
    bool unknown = repeated && !cli_interrupted();
    if (!done && !unknown)
        g_propagate_error(error, g_steal_pointer(&reason));
    return done || unknown;
}

/* luxid's copy is a moment behind what wconfd has answered; of what is not there it says so. */
static bool is_known(struct cli *cli, const struct volume_request *work, GError **error)
{
    json_int_t serial = 0;
    while (serial < (json_int_t)work->row) {
        json_autoptr info = ask_again(cli, work, "QueryClusterInfo", json_array(), NULL, error);
        if (!info)
            return false;
        serial = json_integer_value(json_object_get(info, "serial"));
        if (serial < (json_int_t)work->row &&
            cli_wait_readable(-1, BEHIND_MS, true) == CLI_WAIT_INTERRUPTED) {
            fettle_set_error(error, DETACHED, "interrupted");
            return false;
        }
    }
    return true;
}

/* What came is judged when it is said that it was all; the connection stands until then. */
static bool send(struct cli *cli, const struct volume_request *work, struct image_bytes *bytes,
                 GError **error)
{
    json_autoptr door =
        is_known(cli, work, error)
            ? ask_again(cli, work, "ReceiveImage",
                        json_make("[sI]", work->uuid, (json_int_t)bytes->bytes), NULL, error)
            : NULL;
    struct image_line *line = door ? image_bytes_send(cli, door, bytes, error) : NULL;
    bool ok = line && bytes->done > 0;
    if (line && !ok)
        fettle_set_error(error, WRONG_INPUT, "there is nothing in it");
    ok = ok && finish(cli, work, bytes, door, error);
    image_bytes_end(line);
    return ok;
}

/* What is being judged is left to itself by Ctrl-C: it becomes active whole, or not at all. */
static int make(struct cli *cli, struct volume_request *work, int fd, guint64 bytes_there,
                GError **error)
{
    struct image_bytes bytes = {.name = work->name, .fd = fd, .bytes = bytes_there};
    g_autoptr(GError) reason = NULL;
    cli_interrupt_catch();
    bool sent = begin(cli, work, &reason) && send(cli, work, &bytes, &reason);
    if (sent && volume_follow(cli, work, &reason) == 0)
        return 0;
    bool left = sent && fettle_error_is(reason, DETACHED);
    g_propagate_error(error, g_steal_pointer(&reason));
    if (!left)
        take_back(cli, work, error);
    return -1;
}

int image_from_file(struct cli *cli, const struct image_file *image, GError **error)
{
    struct volume_request work = {.kind = "image", .operation = "save-image", .name = image->name};
    guint64 bytes;
    if (!image->format) {
        fettle_set_error(error, WRONG_INPUT,
                         "--disk-format is missing: how %s is laid out, raw or qcow2", image->file);
        return -1;
    }
    int fd = open_file(image->file, &bytes, error);
    work.uuid = fd >= 0 ? add_record(cli, image, error) : NULL;
    int code = work.uuid ? make(cli, &work, fd, bytes, error) : -1;
    if (fd >= 0)
        close(fd);
    volume_request_clear(&work);
    return code;
}

/* --- out of it --- */

struct saved {
    char *uuid, *status, *sum;
    guint64 bytes;
};

static bool find(struct cli *cli, const char *name, struct saved *ret, GError **error)
{
    json_autoptr rows = cli_query(
        cli, "image", (const char *const[]){"uuid", "status", "size", "os_hash_value", NULL},
        json_make("[s[sss][sss]]", "|", "=", "name", name, "=", "uuid", name), error);
    const json_t *row = json_array_get(rows, 0);
    if (rows && json_array_size(rows) > 1)
        fettle_set_error(error, WRONG_INPUT,
                         "several images are called %s; name it by its UUID: %s", name, SEE);
    else if (rows && !row)
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no image %s; see: " SEE, name);
    if (json_array_size(rows) != 1)
        return false;
    *ret = (struct saved){g_strdup(cli_cell_string(row, 0)), g_strdup(cli_cell_string(row, 1)),
                          g_strdup(cli_cell_string(row, 3)),
                          (guint64)json_integer_value(cli_cell_value(row, 2))};
    return true;
}

/* Beside the file that it is to be, with the rights of any new file. */
static int open_beside(const char *file, char **ret_name, GError **error)
{
    g_autofree char *name = g_strconcat(file, ".XXXXXX", NULL);
    int fd = g_mkstemp_full(name, O_RDWR | O_CLOEXEC, 0666);
    if (fd >= 0)
        *ret_name = g_steal_pointer(&name);
    else
        fettle_set_error(error, WRONG_INPUT, "--file: cannot write %s: %s", file,
                         g_strerror(errno));
    return fd;
}

static bool fetch(struct cli *cli, const char *name, const struct saved *saved, int fd,
                  GError **error)
{
    struct volume_request work = {.kind = "image", .name = name};
    struct image_bytes bytes = {.name = name, .fd = fd, .bytes = saved->bytes};
    json_autoptr door =
        ask_again(cli, &work, "SendImage", json_make("[s]", saved->uuid), NULL, error);
    if (!door || !image_bytes_fetch(cli, door, &bytes, error))
        return false;
    if (strcmp(bytes.sum, saved->sum) == 0)
        return true;
    fettle_set_error(error, CORRUPT,
                     "image %s is not what it was: its SHA-512 is %.16s…, and on record is %.16s…; "
                     "nothing is saved",
                     name, bytes.sum, saved->sum);
    return false;
}

/* Over a file of that name only if that was said. */
static bool put_in_place(const char *beside, const char *file, bool force, int fd, guint64 bytes,
                         GError **error)
{
    if (ftruncate(fd, (off_t)bytes) == 0 && fsync(fd) == 0 &&
        renameat2(AT_FDCWD, beside, AT_FDCWD, file, force ? 0 : RENAME_NOREPLACE) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot write %s: %s", file, g_strerror(errno));
    return false;
}

static bool save(struct cli *cli, const char *name, const struct saved *saved, const char *file,
                 bool force, GError **error)
{
    g_autofree char *beside = NULL;
    int fd = open_beside(file, &beside, error);
    if (fd < 0)
        return false;
    bool ok = fetch(cli, name, saved, fd, error) &&
              put_in_place(beside, file, force, fd, saved->bytes, error);
    if (!ok)
        unlink(beside);
    close(fd);
    return ok;
}

int image_save(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *file;
    bool force;
    struct saved saved = {0};
    if (!volume_take(&argc, argv, "--file", &file, error) ||
        !cli_take_switch(&argc, argv, "--force", &force, error) ||
        !cli_expect(argc, argv, 1, "image save IMAGE --file FILE", error))
        return -1;
    if (!file) {
        fettle_set_error(error, WRONG_INPUT, "--file is missing: where the image is to be saved");
        return -1;
    }
    if (!force && g_access(file, F_OK) == 0) {
        fettle_set_error(error, ALREADY_EXISTS, "%s is there already; --force replaces it", file);
        return -1;
    }
    cli_interrupt_catch();
    bool ok = find(cli, argv[0], &saved, error) && save(cli, argv[0], &saved, file, force, error);
    if (ok)
        cli_say(cli,
                json_make("{ss ss sI}", "image", saved.uuid, "file", file, "size",
                          (json_int_t)saved.bytes),
                "Image %s is saved as %s, %" G_GUINT64_FORMAT " bytes.", argv[0], file,
                saved.bytes);
    g_free(saved.uuid);
    g_free(saved.status);
    g_free(saved.sum);
    return ok ? 0 : -1;
}

/*
 * The bytes of an image: in by PUT, out by GET, in pieces, through this process to and from the
 * node that keeps them (proto/api/image_pipe.h). Which bytes count is decided there, by what is on
 * stable storage (SAF-60); a client that goes, a front end or a member that dies leave the image
 * queued, with nothing of it.
 */
#include <string.h>

#include "core/api/image_common.h"
#include "core/config/storage/image_way.h"
#include "proto/api/image_pipe.h"
#include "proto/env.h"

#define LOOK_MS 50
#define DOOR_PATIENCE_MS 30000 /* until a member has begun with it */
#define BACK_PATIENCE_MS 5000  /* until it has seen that nothing comes any more */
#define STREAM_TYPE "application/octet-stream"

static gint64 now_ms(const struct api_call *call)
{
    return call->api->env->ops->boot_ms(call->api->env);
}

/* --- what one request puts in --- */

struct upload {
    struct api_call *call;
    char *image;                 /* its UUID */
    char *key;                   /* of its row */
    guint64 row;                 /* id of that */
    guint64 claim;               /* under which it is received */
    char *node;                  /* that does so */
    guint64 service, generation; /* of the member there */
    struct passed_bytes passed;
};

static void upload_clear(struct upload *upload)
{
    g_free(upload->image);
    g_free(upload->key);
    g_free(upload->node);
}

/* Its row, if it is this request's yet. */
static const struct worker *row_of(const struct upload *upload)
{
    const struct config *config = cell_config(upload->call->api->cell);
    const struct worker *row = config ? config_get(config, "worker", upload->key, NULL) : NULL;
    return row && row->id == upload->row ? row : NULL;
}

static const struct image *image_of(const struct upload *upload)
{
    const struct config *config = cell_config(upload->call->api->cell);
    return config ? config_get(config, "image", upload->image, NULL) : NULL;
}

/* Whether what was passed on is an image now, whatever was heard of it. */
static bool is_whole(const struct upload *upload)
{
    const struct image *image = image_of(upload);
    return image && image->status == IMAGE_ACTIVE && *upload->passed.sha512 &&
           !strcmp(image->os_hash_value, upload->passed.sha512);
}

/* Of that service as it is registered, while it is up; 0: it is not. */
static guint64 generation_of(const struct config *config, guint64 id)
{
    const struct storage_service *service = config_storage_service_of(config, id);
    return service && service->state == STORAGE_UP ? service->generation : 0;
}

/* A member has it: the way there. TEMPORARY: nobody has yet, or the row is gone. */
static bool find_member(struct upload *upload, GError **error)
{
    struct image_way way;
    const struct config *config = cell_config(upload->call->api->cell);
    if (!row_of(upload)) {
        fettle_set_error(error, TEMPORARY, "image %s: its upload was ended by somebody else",
                         upload->image);
        return false;
    }
    if (!image_way_in(config, upload->image, &way, error))
        return false;
    upload->claim = way.row->claim;
    text_set(&upload->node, way.node);
    upload->service = way.row->service_id;
    upload->generation = generation_of(config, upload->service);
    return true;
}

/* The row is the member's before that has begun with it, and another's when it dies; nothing was
 * sent yet. TEMPORARY: nobody begins. */
static struct image_door *open_door(struct upload *upload, guint64 bytes, GError **error)
{
    const struct api *api = upload->call->api;
    gint64 until = now_ms(upload->call) + DOOR_PATIENCE_MS;
    for (;;) {
        g_autoptr(GError) local = NULL;
        struct image_door *door = NULL;
        if (find_member(upload, &local)) {
            struct receive_image_args args = {upload->key, upload->claim, bytes};
            door =
                cell_call_at(api->cell, upload->node, ROLE_VOLUMED, "receive_image", &args, &local);
        }
        if (door)
            return door;
        if (!fettle_error_is(local, TEMPORARY) || !row_of(upload) ||
            now_ms(upload->call) >= until || !env_sleep(api->env, LOOK_MS)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return NULL;
        }
    }
}

/* Said twice, it is said once; unheard, all that came would be thrown away. */
static bool finish(struct upload *upload, GError **error)
{
    const struct api *api = upload->call->api;
    gint64 until = now_ms(upload->call) + DOOR_PATIENCE_MS;
    struct passed_bytes *passed = &upload->passed;
    struct finish_image_args args = {upload->key, upload->claim, passed->bytes, passed->sha512,
                                     (char *)""};
    for (;;) {
        g_autoptr(GError) local = NULL;
        void *done =
            cell_call_at(api->cell, upload->node, ROLE_VOLUMED, "finish_image", &args, &local);
        record_free(&nothing_record, done);
        if (done)
            return true;
        if (!env_no_answer(local) || !row_of(upload) || now_ms(upload->call) >= until ||
            !env_sleep(api->env, LOOK_MS)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
    }
}

/* Until the member has judged what came. WRONG_INPUT: it is no good; TEMPORARY: the member died
 * before. */
static bool await_verdict(struct upload *upload, GError **error)
{
    const struct api *api = upload->call->api;
    while (row_of(upload))
        if (!env_sleep(api->env, LOOK_MS))
            return fettle_set_ended(error, "the front end");
    if (is_whole(upload))
        return true;
    const struct image *image = image_of(upload);
    bool judged = generation_of(cell_config(api->cell), upload->service) == upload->generation;
    g_set_error(error, FETTLE_ERROR, judged ? FETTLE_ERROR_WRONG_INPUT : FETTLE_ERROR_TEMPORARY,
                "image %s is %s%s%s", upload->image, image ? image_status_shown(image) : "gone",
                image && *image->status_why ? ": " : "", image ? image->status_why : "");
    return false;
}

/* Whoever is told that it failed may send it again at once. A member sees the end of the
 * connection; a row of one that does not, or that nobody has begun with, would wait for bytes that
 * are gone. */
static void take_back(struct upload *upload)
{
    const struct api *api = upload->call->api;
    gint64 until = now_ms(upload->call) + BACK_PATIENCE_MS;
    const struct worker *row;
    while ((row = row_of(upload)) && row->service_id && now_ms(upload->call) < until)
        if (!env_sleep(api->env, LOOK_MS))
            return;
    if (!row)
        return;
    g_autofree char *commit_id = env_uuid(api->env);
    struct reset_state_args args = {.commit_id = commit_id,
                                    .resource_type = RESOURCE_IMAGE,
                                    .resource = upload->image,
                                    .status = (char *)"queued",
                                    .row = upload->row};
    record_autoptr(commit_result) result = cell_call(api->cell, "reset_state", &args, NULL);
}

static bool pass_on(struct upload *upload, guint64 promised, GError **error)
{
    const struct api *api = upload->call->api;
    record_autoptr(image_door) door = open_door(upload, promised, error);
    struct image_line *line =
        door ? api->images->ops->send(api->images, door, upload->call->request->stream,
                                      &upload->passed, error)
             : NULL;
    if (!line)
        return false;
    bool ok = true;
    if (promised && upload->passed.bytes != promised) {
        fettle_set_error(error, WRONG_INPUT,
                         "%" G_GUINT64_FORMAT " bytes came, and %" G_GUINT64_FORMAT
                         " were promised",
                         upload->passed.bytes, promised);
        ok = false;
    } else if (!upload->passed.bytes) {
        fettle_set_error(error, WRONG_INPUT, "an image has at least one byte");
        ok = false;
    }
    ok = ok && finish(upload, error);
    api->images->ops->hang_up(api->images, line);
    return ok && await_verdict(upload, error);
}

struct http_answer *api_image_upload(struct api_call *call, GError **error)
{
    const char *type = http_request_header(call->request, "content-type");
    const char *length = http_request_header(call->request, "content-length");
    const struct image *image = image_owned(call, error);
    guint64 promised = 0;
    if (!image)
        return NULL;
    if (strcmp(type, STREAM_TYPE) != 0)
        return api_refuse(call, 415, "Content-Type must be " STREAM_TYPE);
    if (image->status != IMAGE_QUEUED)
        return api_refuse(call, 409, "Image status transition from %s to saving is not allowed",
                          image_status_shown(image));
    if (*length)
        g_ascii_string_to_unsigned(length, 10, 0, G_MAXINT64, &promised, NULL);
    if (*length && !promised) /* on record it would be an upload that others may be the rest of */
        return api_refuse(call, 400, "an image has at least one byte");
    if (!call->request->stream || promised > LIMIT_IMAGE_BYTES)
        return api_refuse(call, 413, "an image has %" G_GUINT64_FORMAT " bytes at most",
                          (guint64)LIMIT_IMAGE_BYTES);
    struct upload upload = {.call = call, .image = g_strdup(image->uuid)};
    upload.key = config_work_key(RESOURCE_IMAGE, upload.image);
    record_autoptr(accepted_work) accepted = image_work(
        call, TASK_OPERATION_SAVE_IMAGE, upload.image, promised ? (gint64)promised : -1, error);
    upload.row = accepted ? accepted->serial : 0;
    bool ok = accepted && pass_on(&upload, promised, error);
    if (accepted && !ok)
        take_back(&upload);
    if (accepted && !ok && is_whole(&upload)) { /* the member's word alone was lost */
        g_clear_error(error);
        ok = true;
    }
    /* Not if a master of the version before has accepted it, or one that is lost with that. */
    const struct image *now = accepted && !ok ? image_of(&upload) : NULL;
    call->guarded = now && promised && now->promised == (gint64)promised;
    /* What came of it is known now: nothing. And a member's refusal is not the client's. */
    if (accepted && !ok && (env_no_answer(*error) || fettle_error_is(*error, PERMISSION)))
        (*error)->code = FETTLE_ERROR_TEMPORARY;
    upload_clear(&upload);
    return ok ? api_answer(call, NULL) : NULL;
}

/* --- what goes out --- */

enum range_verdict { RANGE_NONE, RANGE_GOOD, RANGE_BAD };

/* "bytes=FROM-UNTIL", "bytes=FROM-", "bytes=-LAST". */
static enum range_verdict read_range(const char *header, guint64 size, guint64 *ret_from,
                                     guint64 *ret_length)
{
    guint64 from = 0, until = size - 1, number;
    *ret_from = 0;
    *ret_length = size;
    if (!*header)
        return RANGE_NONE;
    g_auto(GStrv) ends = g_str_has_prefix(header, "bytes=") ? g_strsplit(header + 6, "-", 3) : NULL;
    if (!ends || g_strv_length(ends) != 2 || (!*ends[0] && !*ends[1]))
        return RANGE_BAD;
    if (*ends[0] && !g_ascii_string_to_unsigned(ends[0], 10, 0, G_MAXINT64, &from, NULL))
        return RANGE_BAD;
    if (*ends[1] && !g_ascii_string_to_unsigned(ends[1], 10, 0, G_MAXINT64, &number, NULL))
        return RANGE_BAD;
    if (!*ends[0])
        from = size - MIN(number, size);
    else if (*ends[1])
        until = MIN(number, size - 1);
    if (from >= size || until < from)
        return RANGE_BAD;
    *ret_from = from;
    *ret_length = until - from + 1;
    return RANGE_GOOD;
}

static struct image_door *door_out(struct api_call *call, const char *image, GError **error)
{
    struct image_way way;
    const struct config *config = api_config(call, error);
    if (!config || !image_way_out(config, image, call->api->env->node_uuid, &way, error))
        return NULL;
    g_autofree char *node = g_strdup(way.node), *uuid = g_strdup(way.image);
    g_autofree char *backend = g_strdup(way.backend);
    struct send_image_args args = {backend, uuid};
    return cell_call_at(call->api->cell, node, ROLE_VOLUMED, "send_image", &args, error);
}

struct http_answer *api_image_download(struct api_call *call, GError **error)
{
    const struct image *image = image_found(call, error);
    guint64 from, length;
    if (!image)
        return NULL;
    if (image->deactivated && !api_is_admin(call))
        return api_refuse(call, 403,
                          "The requested image has been deactivated. Image data download "
                          "is forbidden.");
    if (image->status != IMAGE_ACTIVE)
        return http_answer_new(204); /* as Glance: it has no bytes */
    guint64 size = image->size;
    const char *header = http_request_header(call->request, "range");
    enum range_verdict verdict = read_range(header, size, &from, &length);
    if (verdict == RANGE_BAD) {
        struct http_answer *answer = api_refuse(call, 416, "Range: \"%s\" is none of it", header);
        g_autofree char *whole = g_strdup_printf("bytes */%" G_GUINT64_FORMAT, size);
        http_answer_add_header(answer, "Content-Range", whole);
        return answer;
    }
    g_autofree char *md5 = g_strdup(image->checksum);
    record_autoptr(image_door) door = door_out(call, image->uuid, error);
    struct image_pipe *images = call->api->images;
    struct http_bytes *bytes = door ? images->ops->fetch(images, door, from, error) : NULL;
    if (!bytes)
        return NULL;
    struct http_answer *answer = http_answer_new(verdict == RANGE_GOOD ? 206 : 200);
    http_answer_set_stream(answer, STREAM_TYPE, bytes, length);
    if (verdict == RANGE_GOOD) {
        g_autofree char *place =
            g_strdup_printf("bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                            from, from + length - 1, size);
        http_answer_add_header(answer, "Content-Range", place);
    } else if (*md5) /* in hexadecimal, as Glance has it and its clients want it */
        http_answer_add_header(answer, "Content-MD5", md5);
    http_answer_add_header(answer, "Accept-Ranges", "bytes");
    return answer;
}

/* --- import --- */

struct http_answer *api_image_import(struct api_call *call, GError **error)
{
    const json_t *method = json_object_get(json_object_get(call->json, "method"), "name");
    return api_refuse(call, 400,
                      "Import method %s is not there: bytes come by PUT of "
                      "/v2/images/{id}/file alone",
                      json_is_string(method) ? json_string_value(method) : "");
}

struct http_answer *api_image_stage(struct api_call *call, GError **error)
{
    return api_refuse(call, 400,
                      "Import method glance-direct is not there: bytes come by PUT of "
                      "/v2/images/{id}/file alone");
}

struct http_answer *api_image_import_info(struct api_call *call, GError **error)
{
    return api_answer(call, json_make("{s:{s:s, s:s, s:[]}}", "import-methods", "description",
                                      "Import methods available.", "type", "array", "value"));
}

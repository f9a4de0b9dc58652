/* Images as stock clients of image v2 ask for them, over a real wconfd: lists, one, made, changed,
 * shared, deleted, and their bytes through a front end. core/api/image_*.c */
#include <string.h>

#include "helper/fake_env.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/api_world.h"
#include "unit/core/world/routes_seen.h"

#define IMAGES "/image/v2/images"
#define PATCH_TYPE "application/openstack-images-v2.1-json-patch"

static char *path_of(const char *id, const char *rest)
{
    return g_strdup_printf(IMAGES "/%s%s", id, rest);
}

/* An image of whoever asks; its id, kept for ever. */
static const char *make(const char *name, const char *more)
{
    g_autofree char *body = g_strdup_printf("{\"name\": \"%s\", \"disk_format\": \"raw\", "
                                            "\"container_format\": \"bare\"%s}",
                                            name, more);
    json_autoptr made = api_get(201, "POST", IMAGES, body);
    g_autofree char *id = api_text(made, "id");
    fake_advance(world.world, 1000); /* so that lists have an order */
    return g_intern_string(id);
}

static json_t *show(const char *id)
{
    g_autofree char *path = path_of(id, "");
    return api_get(200, "GET", path, "");
}

#define image_says(id, member, expected)                                                           \
    do {                                                                                           \
        json_autoptr shown_ = show(id);                                                            \
        api_says(shown_, member, expected);                                                        \
    } while (0)

/* Glance's errors have another form. */
static void refused(guint status, const char *message, const char *method, const char *path,
                    const char *body)
{
    json_autoptr json = api_get(status, method, path, body);
    api_says(json, "message", message);
}

static char *patch(const char *id, const char *operations)
{
    g_autofree char *path = path_of(id, "");
    api_with("content-type", PATCH_TYPE);
    char *said = api_ask("PATCH", path, operations);
    api_with(NULL, NULL);
    return said;
}

static void patched(const char *id, const char *operations)
{
    g_autofree char *said = patch(id, operations);
    if (!g_str_has_prefix(said, "200 "))
        g_error("%s: %s", operations, said);
}

static void not_patched(const char *id, const char *operations, const char *status,
                        const char *part)
{
    g_autofree char *said = patch(id, operations);
    if (!g_str_has_prefix(said, status) || !strstr(said, part))
        g_error("%s: %s, not %s… %s", operations, said, status, part);
}

static void set_up(void)
{
    api_set_up(NULL);
    api_be("member");
}

/* --- what is said of them --- */

static void test_life(void)
{
    set_up();
    const char *id =
        make("tick", ", \"os_distro\": \"none\", \"owner_specified.openstack.md5\": \"\""
                     ", \"min_disk\": 1, \"min_ram\": 64, \"tags\": [\"b\", \"a\"]");
    json_autoptr shown = show(id);
    api_says(shown, "status", "queued");
    api_says(shown, "visibility", "shared");
    api_says(shown, "owner", PROJECT1);
    api_says(shown, "os_distro", "none");
    api_says(shown, "tags", "[\"b\",\"a\"]");
    api_says(shown, "min_disk", "1");
    api_says(shown, "min_ram", "64");
    api_says(shown, "size", "");
    api_says(shown, "checksum", "");
    api_says(shown, "os_hash_algo", "");
    g_assert_cmpstr(json_string_value(json_object_get(shown, "owner_specified.openstack.md5")), ==,
                    "");
    g_autofree char *file = g_strdup_printf("/v2/images/%s/file", id);
    api_says(shown, "file", file);
    patched(id, "[{\"op\": \"replace\", \"path\": \"/name\", \"value\": \"tock\"}, "
                "{\"op\": \"add\", \"path\": \"/a~1b\", \"value\": \"1=2\"}, "
                "{\"op\": \"remove\", \"path\": \"/os_distro\"}, "
                "{\"op\": \"replace\", \"path\": \"/tags\", \"value\": [\"a\", \"c\"]}, "
                "{\"op\": \"replace\", \"path\": \"/disk_format\", \"value\": \"qcow2\"}, "
                "{\"op\": \"add\", \"path\": \"/description\", \"value\": \"d\"}, "
                "{\"op\": \"replace\", \"path\": \"/protected\", \"value\": true}]");
    json_autoptr then = show(id);
    api_says(then, "name", "tock");
    api_says(then, "a/b", "1=2");
    api_says(then, "os_distro", "(absent)");
    api_says(then, "tags", "[\"a\",\"c\"]");
    api_says(then, "disk_format", "qcow2");
    api_says(then, "description", "d");
    g_autofree char *path = path_of(id, "");
    g_autofree char *kept = g_strdup_printf("Image %s is protected and cannot be deleted.", id);
    refused(403, kept, "DELETE", path, "");
    patched(id, "[{\"op\": \"replace\", \"path\": \"/protected\", \"value\": false}, "
                "{\"op\": \"remove\", \"path\": \"/description\"}, "
                "{\"op\": \"replace\", \"path\": \"/name\", \"value\": null}]");
    image_says(id, "description", "(absent)");
    image_says(id, "name", "");
    json_decref(api_get(204, "DELETE", path, ""));
    g_autofree char *going = g_strdup_printf("No image found with ID %s", id);
    refused(404, going, "DELETE", path, "");
    api_work();
    g_autofree char *gone = g_strdup_printf("No image found with ID %s", id);
    refused(404, gone, "GET", path, "");
    api_tear_down();
}

static void test_bad_input(void)
{
    static const struct {
        guint status;
        const char *body, *message;
    } rows[] = {
        {400, "{\"name\": 7}", "name: must be a text of 255 letters at most"},
        {400, "{\"disk_format\": \"vmdk\"}", "disk_format: must be raw or qcow2, not \"vmdk\""},
        {400, "{\"container_format\": \"ovf\"}",
         "container_format: must be bare: an image is its bytes, and nothing is around them"},
        {400, "{\"visibility\": \"all\"}",
         "visibility: must be private, public, shared or community, not \"all\""},
        {400, "{\"min_disk\": -1}",
         "min_disk: must be a number, and not larger than anything here has"},
        {400, "{\"protected\": \"yes\"}", "protected: must be true or false"},
        {400, "{\"tags\": [1]}", "tags: must be a list of texts of 255 letters at most"},
        {400, "{\"os_distro\": 7}", "os_distro: a property is a text"},
        {400, "{\"a=b\": \"\"}",
         "\"a=b\": a property's name has 1 to 255 letters, none of which is ="},
        {400, "{\"id\": \"7\"}", "id: must be a UUID"},
        {400, "[]", "the body must be an object"},
        {403, "{\"status\": \"active\"}", "Attribute 'status' is read-only."},
        {403, "{\"owner\": \"me\"}", "Attribute 'owner' is read-only."},
        {403, "{\"visibility\": \"public\"}", "only an administrator makes an image public"},
    };
    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        refused(rows[i].status, rows[i].message, "POST", IMAGES, rows[i].body);
    g_autofree char *commas = g_strnfill(50001, ',');
    g_autofree char *many = g_strdup_printf("{\"tags\": [%s]}", commas);
    refused(400, "the body has more than 50000 values", "POST", IMAGES, many);
    const char *id = make("tick", "");
    g_autofree char *again = g_strdup_printf("{\"id\": \"%s\"}", id);
    g_autofree char *exists = g_strdup_printf("Image ID %s already exists!", id);
    refused(409, exists, "POST", IMAGES, again);
    not_patched(id, "{}", "400", "the body must be a list of at most 256 operations");
    not_patched(id, "[{\"op\": \"test\", \"path\": \"/name\"}]", "400",
                "op: must be add, replace or remove");
    not_patched(id, "[{\"op\": \"add\", \"path\": \"/a/b\", \"value\": \"\"}]", "400",
                "is not that of one member");
    not_patched(id, "[{\"op\": \"add\", \"path\": \"/a\"}]", "400", "requires a member");
    not_patched(id, "[{\"op\": \"replace\", \"path\": \"/a\", \"value\": \"\"}]", "409",
                "Property a does not exist.");
    not_patched(id, "[{\"op\": \"replace\", \"path\": \"/checksum\", \"value\": \"\"}]", "403",
                "Attribute 'checksum' is read-only.");
    not_patched(id, "[{\"op\": \"remove\", \"path\": \"/name\"}]", "403", "cannot be removed");
    not_patched(id, "[{\"op\": \"add\", \"path\": \"/locations\", \"value\": []}]", "403",
                "bytes come by PUT of the file alone");
    g_autofree char *path = path_of(id, "");
    refused(415, "Content-Type must be " PATCH_TYPE, "PATCH", path, "[]");
    api_be("reader");
    refused(403, "image_create needs the role member, or one above it, in the project of the token",
            "POST", IMAGES, "{}");
    api_be("");
    refused(401, "The request you have made requires authentication: it has no X-Auth-Token.",
            "GET", IMAGES, "");
    api_tear_down();
}

static void assert_names(const char *query, const char *expected)
{
    g_autofree char *path = g_strconcat(IMAGES, query, NULL);
    json_autoptr json = api_get(200, "GET", path, "");
    g_autoptr(GString) names = g_string_new(NULL);
    size_t at;
    json_t *image;
    json_array_foreach(json_object_get(json, "images"), at, image)
        g_string_append_printf(names, "%s%s", at ? " " : "",
                               json_string_value(json_object_get(image, "name")));
    if (strcmp(names->str, expected) != 0)
        g_error("%s: %s, not %s", path, names->str, expected);
}

static void test_old_patch(void)
{
    set_up();
    const char *id = make("tick", "");
    g_autofree char *path = path_of(id, "");
    api_with("content-type", "application/openstack-images-v2.0-json-patch");
    g_autofree char *said = api_ask("PATCH", path,
                                    "[{\"replace\": \"/name\", \"value\": \"tock\"}, "
                                    "{\"add\": \"/os_distro\", \"value\": \"none\"}]");
    g_assert_true(g_str_has_prefix(said, "200 "));
    g_autofree char *gone = api_ask("PATCH", path, "[{\"remove\": \"/os_distro\"}]");
    g_assert_true(g_str_has_prefix(gone, "200 ") && !strstr(gone, "os_distro"));
    api_with(NULL, NULL);
    image_says(id, "name", "tock");
    api_tear_down();
}

/* glanceclient takes either, and breaks at JSON that is not what other services have: it gets the
 * page that Glance gives who prefers nothing. */
static void test_errors_as_pages(void)
{
    set_up();
    api_with("accept", "*/*");
    g_autofree char *page = api_ask("GET", IMAGES "/<b>", "");
    g_assert_cmpstr(page, ==,
                    "404 <html><head><title>404 Not Found</title></head><body>"
                    "<h1>404 Not Found</h1>No image found with ID &lt;b&gt;<br /></body></html>");
    g_assert_cmpstr(api_header("content-type"), ==, "text/html; charset=UTF-8");
    api_with("accept", "application/json");
    g_autofree char *json = api_ask("GET", IMAGES "/<b>", "");
    g_assert_true(g_str_has_prefix(json, "404 {"));
    api_with(NULL, NULL);
    api_tear_down();
}

static void test_lists(void)
{
    set_up();
    make("a", ", \"os_distro\": \"x\", \"tags\": [\"t\"]");
    make("b", ", \"visibility\": \"private\"");
    make("c", ", \"os_hidden\": true");
    api_be("other");
    make("d", ", \"visibility\": \"community\"");
    make("e", ", \"visibility\": \"private\"");
    api_be("admin");
    make("f", ", \"visibility\": \"public\"");
    assert_names("", "f e d b a");
    api_be("member");
    assert_names("", "f b a");
    assert_names("?sort=name:asc", "a b f");
    assert_names("?sort_key=name&sort_dir=desc", "f b a");
    assert_names("?visibility=community", "d");
    assert_names("?visibility=all", "f d b a");
    assert_names("?os_hidden=true", "c");
    assert_names("?name=a", "a");
    assert_names("?name=in:a,b", "b a");
    assert_names("?os_distro=x", "a");
    assert_names("?os_distro=y", "");
    assert_names("?tag=t", "a");
    assert_names("?status=queued&owner=" PROJECT1, "f b a");
    assert_names("?size_min=1", "");
    assert_names("?limit=1", "f");
    assert_names("?protected=true", "");
    json_autoptr first = api_get(200, "GET", IMAGES "?limit=2&sort=name:asc", "");
    g_autofree char *next = api_text(first, "next");
    g_autofree char *second = g_strconcat("/image", next, NULL);
    json_autoptr more = api_get(200, "GET", second, "");
    api_says(more, "images.0.name", "f");
    refused(400, "Invalid sort key provided: colour", "GET", IMAGES "?sort_key=colour", "");
    refused(400, "Invalid sort direction: up", "GET", IMAGES "?sort=name:up", "");
    refused(400, "limit: \"abc\" is no number from 0 to 2147483647", "GET", IMAGES "?limit=abc",
            "");
    refused(400, "size_min: \"x\" is no number of bytes", "GET", IMAGES "?size_min=x", "");
    refused(400, "created_at: lists are not restricted by times here; sort by created_at", "GET",
            IMAGES "?created_at=gte:2026-01-01T00:00:00Z", "");
    refused(400, "marker x: there is none of that id in this list", "GET", IMAGES "?marker=x", "");
    api_tear_down();
}

static void test_members(void)
{
    set_up();
    const char *id = make("tick", "");
    g_autofree char *path = path_of(id, ""), *members = path_of(id, "/members");
    g_autofree char *one = path_of(id, "/members/" PROJECT2);
    g_autofree char *gone = g_strdup_printf("No image found with ID %s", id);
    api_be("other");
    refused(404, gone, "GET", path, "");
    api_be("member");
    json_decref(api_get(200, "POST", members, "{\"member\": \"" PROJECT2 "\"}"));
    refused(404, "there is no project x", "POST", members, "{\"member\": \"x\"}");
    refused(403, "how it takes that says project " PROJECT2 " itself", "PUT", one,
            "{\"status\": \"accepted\"}");
    api_be("other");
    image_says(id, "name", "tick");
    assert_names("", "");
    assert_names("?member_status=pending", "tick");
    refused(400, "status: must be pending, accepted or rejected, not \"x\"", "PUT", one,
            "{\"status\": \"x\"}");
    json_autoptr taken = api_get(200, "PUT", one, /* openstack says who, too */
                                 "{\"status\": \"accepted\", \"member\": \"" PROJECT2 "\"}");
    api_says(taken, "status", "accepted");
    json_decref(api_get(200, "GET", one, ""));
    assert_names("", "tick");
    json_autoptr list = api_get(200, "GET", members, "");
    api_says(list, "members.0.member_id", PROJECT2);
    g_autofree char *not_his = g_strdup_printf("image %s is another project's", id);
    refused(403, not_his, "DELETE", path, "");
    api_be("member");
    json_decref(api_get(204, "DELETE", one, ""));
    api_be("other");
    refused(404, gone, "GET", path, "");
    api_tear_down();
}

static void test_tags_and_schemas(void)
{
    static const char *const schemas[] = {"image", "images", "member", "members"};
    set_up();
    const char *id = make("tick", "");
    g_autofree char *tag = path_of(id, "/tags/t"), *none = path_of(id, "/tags/u");
    json_decref(api_get(204, "PUT", tag, ""));
    json_decref(api_get(204, "PUT", tag, ""));
    image_says(id, "tags", "[\"t\"]");
    g_autofree char *why = g_strdup_printf("Image %s has no tag u", id);
    refused(404, why, "DELETE", none, "");
    json_decref(api_get(204, "DELETE", tag, ""));
    image_says(id, "tags", "[]");
    for (guint i = 0; i < G_N_ELEMENTS(schemas); i++) {
        g_autofree char *path = g_strconcat("/image/v2/schemas/", schemas[i], NULL);
        json_autoptr schema = api_get(200, "GET", path, "");
        api_says(schema, "name", schemas[i]);
    }
    g_autofree char *import = path_of(id, "/import"), *stage = path_of(id, "/stage");
    refused(400,
            "Import method web-download is not there: bytes come by PUT of /v2/images/{id}/file "
            "alone",
            "POST", import, "{\"method\": {\"name\": \"web-download\"}}");
    refused(400,
            "Import method glance-direct is not there: bytes come by PUT of /v2/images/{id}/file "
            "alone",
            "PUT", stage, "x");
    json_autoptr ways = api_get(200, "GET", "/image/v2/info/import", "");
    api_says(ways, "import-methods.value", "[]");
    api_be("");
    json_decref(api_get(300, "GET", "/image/", ""));
    json_decref(api_get(200, "GET", "/image/versions", ""));
    api_tear_down();
}

/* --- bytes --- */

#define TEXT "twelve bytes"
#define QUARTER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SUM QUARTER QUARTER QUARTER QUARTER
#define MD5 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct {
    const char *key; /* row of the image that comes */
    guint64 claim;
    bool takes, finished, drops; /* the member takes the row; all was said; what came is no good */
    bool came;                   /* somebody, to send it */
    guint deaf;                  /* so often the last word does not reach it */
    bool unheard;                /* its word that it has heard the end is lost */
    json_t *without;             /* the request, as a master of the version before understands it */
    guint not_yet;               /* so often the door is asked for before the member is ready */
    guint sees_end;              /* so many looks later it sees that he has gone; 0: never */
    guint looks;
    guint lines; /* connections that stand */
    GString *got;
} bytes;

static struct image_line *send(struct image_pipe *pipe, const struct image_door *door,
                               struct http_bytes *from, struct passed_bytes *ret, GError **error)
{
    g_assert_cmpstr(door->path, ==, "/door");
    char place[7];
    gssize some;
    bytes.came = true;
    while ((some = from->read(from, place, sizeof place, error)) > 0)
        g_string_append_len(bytes.got, place, some);
    if (some < 0)
        return NULL;
    *ret = (struct passed_bytes){.bytes = bytes.got->len, .sha512 = SUM};
    bytes.lines++;
    return (struct image_line *)bytes.got;
}

static void hang_up(struct image_pipe *pipe, struct image_line *line)
{
    bytes.lines--;
}

static struct http_bytes *fetch(struct image_pipe *pipe, const struct image_door *door,
                                guint64 from, GError **error)
{
    g_assert_cmpstr(door->path, ==, "/door");
    return api_stream(TEXT + from);
}

static json_t *open_door(const struct rpc_request *request, const char *node, void *data,
                         GError **error)
{
    if (!strcmp(request->name, "receive_image") && bytes.not_yet > 0) {
        bytes.not_yet--;
        fettle_set_error(error, TEMPORARY, "%s is not being received here", bytes.key);
        return NULL;
    }
    return json_make("{s:s}", "path", "/door");
}

static json_t *hear_end(const struct rpc_request *request, const char *node, void *data,
                        GError **error)
{
    g_assert_cmpuint(bytes.lines, ==, 1);
    g_assert_cmpstr(json_string_value(json_object_get(request->args, "sum")), ==, SUM);
    g_assert_cmpint(json_integer_value(json_object_get(request->args, "bytes")), ==, strlen(TEXT));
    if (bytes.deaf > 0) {
        bytes.deaf--;
        fettle_set_error(error, UNREACHABLE, "not delivered");
        return NULL;
    }
    bytes.finished = true;
    if (!bytes.unheard)
        return json_object();
    fettle_set_error(error, UNKNOWN_RESULT, "the connection was lost");
    return NULL;
}

static json_t *understand_less(const struct rpc_request *request, const char *node, void *data,
                               GError **error)
{
    bytes.without = json_deep_copy(request->args);
    json_object_del(bytes.without, "promised");
    fettle_set_error(error, TEMPORARY, "it is being looked at");
    return NULL;
}

/* What node1's member does while an upload waits. */
static void work(void)
{
    if (bytes.without) {
        fake_script(world.world, NULL, ROLE_WCONFD, "accept_work", NULL, NULL);
        g_free(storage_ask(storage_cli, "accept_work", g_steal_pointer(&bytes.without)));
    }
    const struct worker *row = bytes.key ? storage_row(bytes.key) : NULL;
    if (row && !row->service_id && bytes.takes) {
        bytes.claim = api_take(bytes.key);
        bytes.came = false;
        bytes.looks = 0;
    } else if (row && bytes.came && !bytes.lines && !bytes.finished) {
        if (++bytes.looks != bytes.sees_end)
            return;
        g_autofree char *said =
            api_end(with(storage_end(bytes.key, bytes.claim), "failed", json_true()));
        g_assert_cmpstr(said, ==, "passed");
    } else if (row && bytes.finished) {
        json_t *end = storage_end(bytes.key, bytes.claim);
        g_autofree char *data = volume_data_name(strchr(bytes.key, '/') + 1, bytes.claim);
        bytes.finished = false;
        if (bytes.drops) {
            json_object_set_new(end, "failed", json_true());
            json_object_set_new(end, "why", json_string("another SHA-512 is on disk"));
        } else {
            json_object_set_new(end, "data", json_string(data));
            json_object_set_new(end, "bytes", json_integer((json_int_t)strlen(TEXT)));
            json_object_set_new(end, "virtual_size", json_integer((json_int_t)strlen(TEXT)));
            json_object_set_new(end, "sum", json_string(SUM));
            json_object_set_new(end, "checksum", json_string(MD5));
        }
        g_autofree char *said = api_end(end);
        g_assert_cmpstr(said, ==, "passed");
    }
}

/* What uploads say to have; "": they do not say it. */
static const char *length_said;

static const char *set_up_bytes(void)
{
    static const struct image_pipe_ops ops = {.send = send, .hang_up = hang_up, .fetch = fetch};
    static struct image_pipe pipe = {&ops};
    api_images = &pipe;
    api_meanwhile = work;
    set_up();
    fake_script(world.world, NULL, ROLE_VOLUMED, "receive_image", open_door, NULL);
    fake_script(world.world, NULL, ROLE_VOLUMED, "send_image", open_door, NULL);
    fake_script(world.world, NULL, ROLE_VOLUMED, "finish_image", hear_end, NULL);
    const char *id = make("tick", "");
    g_autofree char *key = g_strconcat("Image/", id, NULL);
    memset(&bytes, 0, sizeof bytes);
    bytes.key = g_intern_string(key);
    bytes.takes = true;
    bytes.sees_end = 30;
    bytes.got = g_string_new(NULL);
    length_said = "12";
    return id;
}

static void tear_down_bytes(void)
{
    g_assert_cmpuint(bytes.lines, ==, 0);
    g_string_free(bytes.got, TRUE);
    api_images = NULL;
    api_meanwhile = NULL;
    api_tear_down();
}

static char *upload(const char *id, const char *body)
{
    g_autofree char *path = path_of(id, "/file");
    api_with("content-type", "application/octet-stream");
    if (*length_said)
        api_with("content-length", length_said);
    else
        api_with("transfer-encoding", "chunked");
    char *said = api_ask("PUT", path, body);
    api_with(NULL, NULL);
    return said;
}

static void assert_upload(const char *id, const char *body, const char *expected)
{
    g_autofree char *said = upload(id, body);
    if (!g_str_has_prefix(said, expected))
        g_error("answered: %s\nexpected: %s", said, expected);
}

static char *download(const char *id, const char *range)
{
    g_autofree char *path = path_of(id, "/file");
    api_with("range", range);
    g_autofree char *said = api_ask("GET", path, "");
    api_with(NULL, NULL);
    const struct http_answer *answer = api_answered();
    g_autofree char *text = g_malloc0(64);
    gsize length = 0;
    while (answer->stream && length < answer->stream_len)
        length += (gsize)answer->stream->read(answer->stream, text + length,
                                              answer->stream_len - length, NULL);
    return g_strdup_printf("%.3s %s", said, answer->stream ? text : api_header("content-range"));
}

static void assert_download(const char *id, const char *range, const char *expected)
{
    g_autofree char *said = download(id, range);
    g_assert_cmpstr(said, ==, expected);
}

static void test_bytes(void)
{
    const char *id = set_up_bytes();
    assert_download(id, "", "204 ");
    assert_upload(id, TEXT, "204 ");
    g_assert_cmpstr(bytes.got->str, ==, TEXT);
    json_autoptr shown = show(id);
    api_says(shown, "status", "active");
    api_says(shown, "size", "12");
    api_says(shown, "os_hash_algo", "sha512");
    api_says(shown, "os_hash_value", SUM);
    assert_upload(id, TEXT, "409 ");
    assert_download(id, "", "200 " TEXT);
    g_assert_cmpstr(api_header("content-md5"), ==, MD5);
    assert_download(id, "bytes=7-", "206 bytes");
    g_assert_cmpstr(api_header("content-range"), ==, "bytes 7-11/12");
    assert_download(id, "bytes=0-5", "206 twelve");
    assert_download(id, "bytes=-5", "206 bytes");
    assert_download(id, "bytes=7-100", "206 bytes");
    assert_download(id, "bytes=12-", "416 bytes */12");
    assert_download(id, "bytes=5-3", "416 bytes */12");
    assert_download(id, "bytes=x-3", "416 bytes */12");
    assert_download(id, "pages=1-3", "416 bytes */12");
    g_autofree char *off = path_of(id, "/actions/deactivate");
    g_autofree char *on = path_of(id, "/actions/reactivate"), *file = path_of(id, "/file");
    json_decref(api_get(204, "POST", off, ""));
    image_says(id, "status", "deactivated");
    refused(403, "The requested image has been deactivated. Image data download is forbidden.",
            "GET", file, "");
    g_autofree char *volume =
        g_strdup_printf("{\"volume\": {\"size\": 1, \"imageRef\": \"%s\"}}", id);
    g_autofree char *said = api_ask("POST", "/volumes", volume);
    g_assert_nonnull(strstr(said, "is deactivated; nobody may read it until it is reactivated"));
    api_be("admin");
    json_decref(api_get(204, "POST", on, ""));
    api_be("member");
    assert_download(id, "", "200 " TEXT);
    /* a volume of it: by its name, whoever else calls his like that, and by whoever sees it */
    json_autoptr shown_again = show(id);
    g_autofree char *name = api_text(shown_again, "name");
    g_autofree char *by_name =
        g_strdup_printf("{\"volume\": {\"size\": 1, \"imageRef\": \"%s\"}}", name);
    api_be("other");
    make(name, "");
    api_be("member");
    json_decref(api_get(202, "POST", "/volumes", by_name));
    api_be("other");
    json_decref(api_get(400, "POST", "/volumes", volume));
    api_be("member");
    patched(id, "[{\"op\": \"replace\", \"path\": \"/visibility\", \"value\": \"community\"}]");
    api_be("other");
    json_decref(api_get(202, "POST", "/volumes", volume));
    tear_down_bytes();
}

static void assert_given_back(void)
{
    g_assert_null(storage_row(bytes.key));
    image_says(strchr(bytes.key, '/') + 1, "status", "queued");
    g_string_truncate(bytes.got, 0);
}

/* When it is answered the image is queued again, and who says the same length can send it again
 * with success; another length may be that of the rest. */
static void test_bad_bytes(void)
{
    const char *id = set_up_bytes();
    assert_upload(id, "twelve" API_CLIENT_GONE, "503 ");
    assert_given_back();
    bytes.sees_end = 0; /* it is cut off, and says nothing */
    assert_upload(id, "twelve" API_CLIENT_GONE, "503 ");
    assert_given_back();
    bytes.not_yet = G_MAXUINT; /* it never opens */
    assert_upload(id, TEXT, "503 ");
    g_assert_nonnull(strstr(api_answered()->body, "is not being received here"));
    assert_given_back();
    bytes.not_yet = 0;
    length_said = "6";
    assert_upload(id, TEXT, "409 ");
    g_assert_nonnull(strstr(api_answered()->body, "what is sent now may be the rest of that"));
    length_said = "";
    assert_upload(id, TEXT, "409 ");
    length_said = "12";
    bytes.drops = true;
    assert_upload(id, TEXT, "400 ");
    g_assert_nonnull(strstr(api_answered()->body, "is queued: another SHA-512 is on disk"));
    assert_given_back();
    bytes.drops = false;
    bytes.takes = false; /* nobody begins */
    assert_upload(id, TEXT, "503 ");
    assert_given_back();
    bytes.takes = true;
    assert_upload(id, TEXT, "204 ");
    g_autofree char *path = path_of(id, "/file");
    refused(415, "Content-Type must be application/octet-stream", "PUT", path, "x");
    tear_down_bytes();
}

/* Clients repeat what was answered with 503, and with a new token after 401: of a pipe the rest. So
 * there is no such answer to bytes of which nobody knows how many there were, and the image of a
 * pipe that broke gets no others. */
static void test_rest_of_a_pipe(void)
{
    const char *id = set_up_bytes();
    length_said = "";
    api_be("");
    assert_upload(id, "twelve", "403 ");
    api_be("member");
    api_deafen(true);
    g_autofree char *path = path_of(id, "/tags/seen");
    refused(504,
            "it is on record, and not to be seen here yet: no news comes from the master; try "
            "again",
            "PUT", path, "");
    assert_upload(id, "twelve", "409 ");
    g_assert_nonnull(strstr(api_answered()->body, "nothing of the image is kept: send all of it"));
    g_assert_cmpstr(api_header("retry-after"), ==, "");
    api_deafen(false);
    g_assert_null(storage_row(bytes.key)); /* so far nobody had begun */
    assert_upload(id, "twelve" API_CLIENT_GONE, "409 ");
    assert_given_back();
    assert_upload(id, " bytes", "409 ");
    g_assert_nonnull(strstr(api_answered()->body, "delete it and make another one"));
    length_said = "6";
    assert_upload(id, " bytes", "409 ");
    image_says(id, "status", "queued");
    tear_down_bytes();
}

/* A master of the version before, or one that has lost what the last one had stored: nobody will
 * know what the first upload had. */
static void test_not_on_record(void)
{
    const char *id = set_up_bytes();
    fake_script(world.world, NULL, ROLE_WCONFD, "accept_work", understand_less, NULL);
    assert_upload(id, "twelve" API_CLIENT_GONE, "409 ");
    g_assert_nonnull(strstr(api_answered()->body, "nothing of the image is kept: send all of it"));
    assert_given_back();
    assert_upload(id, TEXT, "204 ");
    tear_down_bytes();
}

/* So it says nothing of how much is to come. */
static void test_front_end_before(void)
{
    const char *id = set_up_bytes();
    assert_upload(id, "twelve" API_CLIENT_GONE, "503 ");
    assert_given_back();
    json_t *args = json_make("{s:s,s:s,s:s}", "resource_type", "Image", "operation", "save-image",
                             "resource", id);
    g_autofree char *rest = storage_ask(api_front(), "accept_work", json_deep_copy(args));
    g_assert_nonnull(strstr(rest, "what is sent now may be the rest of that"));
    const char *other = make("tock", "");
    json_object_set_new(args, "resource", json_string(other));
    g_autofree char *first = storage_ask(api_front(), "accept_work", json_deep_copy(args));
    g_assert_nonnull(strstr(first, "serial"));
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Image", "resource", other,
                                 "status", "queued")));
    bytes.key = NULL;
    assert_upload(other, TEXT, "409 ");
    g_autofree char *whole = storage_ask(storage_cli, "accept_work", args);
    g_assert_nonnull(strstr(whole, "serial")); /* who begins at the beginning may */
    tear_down_bytes();
}

/* What has come counts, and is kept: whoever sent it is told so. */
static void test_lost_word(void)
{
    const char *id = set_up_bytes();
    bytes.unheard = true;
    assert_upload(id, TEXT, "204 ");
    image_says(id, "status", "active");
    tear_down_bytes();
    id = set_up_bytes();
    bytes.deaf =
        3; /* and is told again until he has heard it: all that came would be thrown away */
    assert_upload(id, TEXT, "204 ");
    g_assert_cmpuint(bytes.deaf, ==, 0);
    image_says(id, "status", "active");
    tear_down_bytes();
}

/* The row is the member's before that has begun with it: nothing was sent yet, so it is asked
 * again.
 */
static void test_slow_member(void)
{
    const char *id = set_up_bytes();
    bytes.not_yet = 3;
    assert_upload(id, TEXT, "204 ");
    g_assert_cmpuint(bytes.not_yet, ==, 0);
    g_assert_cmpstr(bytes.got->str, ==, TEXT);
    image_says(id, "status", "active");
    tear_down_bytes();
}

static void test_promised(void)
{
    const char *id = set_up_bytes();
    length_said = "0"; /* no bytes are the rest of nothing */
    assert_upload(id, "", "400 ");
    g_autofree char *path = path_of(id, "/file");
    api_with("content-length", "13");
    api_with("content-type", "application/octet-stream");
    refused(400, "12 bytes came, and 13 were promised", "PUT", path, TEXT);
    api_with(NULL, NULL);
    g_assert_false(bytes.finished);
    tear_down_bytes();
}

static void test_all_seen(void)
{
    static const char *const routes[] = {"image", NULL};
    routes_seen_assert(routes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api-images/life", test_life);
    g_test_add_func("/api-images/bad-input", test_bad_input);
    g_test_add_func("/api-images/old-patch", test_old_patch);
    g_test_add_func("/api-images/errors-as-pages", test_errors_as_pages);
    g_test_add_func("/api-images/lists", test_lists);
    g_test_add_func("/api-images/members", test_members);
    g_test_add_func("/api-images/tags-and-schemas", test_tags_and_schemas);
    g_test_add_func("/api-images/bytes", test_bytes);
    g_test_add_func("/api-images/bad-bytes", test_bad_bytes);
    g_test_add_func("/api-images/rest-of-a-pipe", test_rest_of_a_pipe);
    g_test_add_func("/api-images/not-on-record", test_not_on_record);
    g_test_add_func("/api-images/front-end-before", test_front_end_before);
    g_test_add_func("/api-images/lost-word", test_lost_word);
    g_test_add_func("/api-images/slow-member", test_slow_member);
    g_test_add_func("/api-images/promised", test_promised);
    g_test_add_func("/api-images/all-seen", test_all_seen);
    return g_test_run();
}

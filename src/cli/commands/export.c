/*
 * `fettle cluster export`: the whole configuration as one JSON document (docs/guide/backup.md),
 * read from the store of this host; so it works on every node that has one, also when no daemon
 * runs, and on a candidate without a master. What it has belongs to one serial, which stands in its
 * head with history and epoch, and with what the store is: only a person can judge whether a copy
 * of that serial is new enough.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/foreign.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/sqlite/store_reader.h"

#define DOCUMENT_FORMAT "fettle-configuration"
#define DOCUMENT_VERSION 1

/* What the store says that it is. */
static const struct {
    const char *word; /* in the document's head */
    const char *of;   /* behind the serial, for people */
} roles[] = {
    [COPY_ENGINE] = {"engine", ""},
    [COPY_FOLLOWS] = {"follows", ", by this host's copy,"},
    [COPY_RETIRED] = {"retired", ", by a copy that is not kept up to date any more,"},
};

struct exporting {
    bool secrets;
    json_t *objects; /* kind -> key -> object */
    struct store_position position;
    bool whole;
};

/* Work that is under way is worth nothing later, and neither is who was at it. */
static bool keeps(const char *kind)
{
    static const char *const passing[] = {"worker",  "trash",         "storage_service",
                                          "cleanup", "api_front_end", NULL};
    return !g_strv_contains(passing, kind);
}

/* Keys, and hashes of passwords. A document that may have them says so also where there is none: to
 * an import one that does not name them says nothing of them. */
static const char *const secrets[] = {"rapi_user", "webhook", "secret", NULL};

static void begin(void *data)
{
    struct exporting *exporting = data;
    json_object_clear(exporting->objects);
    for (const char *const *kind = secrets; exporting->secrets && *kind; kind++)
        json_object_set_new(exporting->objects, *kind, json_object());
    exporting->whole = false;
}

static bool change(const struct change *change, void *data, GError **error)
{
    struct exporting *exporting = data;
    if (!exporting->secrets && g_strv_contains(secrets, change->kind))
        return true;
    json_t *objects = json_object_get(exporting->objects, change->kind);
    if (objects == NULL) {
        objects = json_object();
        json_object_set_new(exporting->objects, change->kind, objects);
    }
    if (change->op == CHANGE_DELETE)
        json_object_del(objects, change->key);
    else
        json_object_set(objects, change->key, change->object);
    return true;
}

static void done(const struct store_position *position, void *data)
{
    struct exporting *exporting = data;
    exporting->position = *position;
    exporting->whole = true;
}

static void gone(void *data)
{
    begin(data);
}

static bool is_known(const char *path, const struct store_position *position, GError **error)
{
    if ((guint)position->role >= G_N_ELEMENTS(roles))
        fettle_set_error(error, CORRUPT, "%s says that it is of sort %d, which there is not", path,
                         (int)position->role);
    else if (position->history == 0)
        fettle_set_error(error, TEMPORARY,
                         "%s is empty: the copy of this host has not come from a master yet; give "
                         "the command on the master or another candidate",
                         path);
    else
        return true;
    return false;
}

static bool read_store(const struct node_paths *paths, struct exporting *exporting, GError **error)
{
    g_autofree char *path = g_build_filename(paths->var, "store.db", NULL);
    const struct store_reader_client client = {keeps, begin, change, done, gone, exporting};
    struct store_reader *reader = store_reader_new(path, &client);
    bool ok = store_reader_refresh(reader, error);
    store_reader_free(reader);
    if (ok && !exporting->whole) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no %s: this host has no copy of a configuration; give the "
                         "command on the master or another candidate",
                         path);
        return false;
    }
    return ok && is_known(path, &exporting->position, error);
}

static json_t *make_document(const struct exporting *exporting, GError **error)
{
    json_t *clusters = json_object_get(exporting->objects, "cluster");
    json_t *cluster = json_object_iter_value(json_object_iter(clusters));
    if (cluster == NULL) {
        fettle_set_error(error, CORRUPT, "the store has no cluster in it");
        return NULL;
    }
    const struct store_position *at = &exporting->position;
    return json_make("{s:s,s:i,s:{s:O,s:O},s:I,s:I,s:I,s:s,s:I,s:b,s:O}", "format", DOCUMENT_FORMAT,
                     "version", DOCUMENT_VERSION, "cluster", "uuid",
                     json_object_get(cluster, "uuid"), "name", json_object_get(cluster, "name"),
                     "history", (json_int_t)at->history, "epoch", (json_int_t)at->epoch, "serial",
                     (json_int_t)at->serial, "store", roles[at->role].word, "taken",
                     (json_int_t)(loop_wall_us() / G_USEC_PER_SEC), "secrets",
                     exporting->secrets ? 1 : 0, "objects", exporting->objects);
}

static int put_out(const struct cli *cli, const struct exporting *exporting, const json_t *document,
                   const char *to, GError **error)
{
    g_autofree char *text = foreign_json(json_dumps(document, JSON_INDENT(2) | JSON_SORT_KEYS));
    g_autofree char *lines = g_strconcat(text, "\n", NULL);
    if (to == NULL) {
        fputs(lines, stdout);
        return 0;
    }
    if (!files_write_typed(to, lines, strlen(lines), error))
        return -1;
    const struct store_position *at = &exporting->position;
    cli_say(cli,
            json_make("{s:s,s:I,s:I,s:I,s:s}", "file", to, "history", (json_int_t)at->history,
                      "epoch", (json_int_t)at->epoch, "serial", (json_int_t)at->serial, "store",
                      roles[at->role].word),
            "The configuration of serial %" G_GUINT64_FORMAT "%s is in %s.", at->serial,
            roles[at->role].of, to);
    return 0;
}

static int cluster_export(struct cli *cli, int argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    struct exporting exporting = {.secrets = cli_take_flag(&argc, argv, "--with-secrets")};
    const char *to = cli_take_option(&argc, argv, "--to", &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return -1;
    }
    if (!cli_expect(argc, argv, 0, "cluster export [--to FILE] [--with-secrets]", error))
        return -1;
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    json_autoptr objects = json_object();
    exporting.objects = objects;
    if (paths == NULL || !read_store(paths, &exporting, error))
        return -1;
    json_autoptr document = make_document(&exporting, error);
    return document != NULL ? put_out(cli, &exporting, document, to, error) : -1;
}

const struct command export_commands[] = {
    {"cluster", "export", "[--to FILE] [--with-secrets]",
     "Write the whole configuration as JSON, for import, comparison and other tools; keys and "
     "secrets only if asked.",
     cluster_export},
    {0},
};

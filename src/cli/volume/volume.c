/*
 * `fettle volume create|delete|extend|migrate|retype|rename|modify|reset-state`: asks fettle-wconfd
 * of the master, which puts it on record in one commit, and follows what the volume services make
 * of it.
 */
#include "cli/cli.h"

#include "cli/volume/volume_ask.h"

/* --- work --- */

static const char *const operations[] = {"create-volume", "extend-volume", "delete-volume",
                                         "migrate-volume", "retype-volume"};

/* What the flags of one of these say. */
struct request {
    const char *size, *backend, *description, *snapshot, *image, *type;
    bool no_wait, yes, cascade;
};

static int volume_create(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.kind = "volume", .operation = operations[0]};
    if (!volume_take(&argc, argv, "--size", &request.size, error) ||
        !volume_take(&argc, argv, "--backend", &request.backend, error) ||
        !volume_take(&argc, argv, "--description", &request.description, error) ||
        !volume_take(&argc, argv, "--snapshot", &request.snapshot, error) ||
        !volume_take(&argc, argv, "--image", &request.image, error) ||
        !volume_take(&argc, argv, "--type", &request.type, error) ||
        !volume_take_wait(&argc, argv, &request.no_wait, error) ||
        !cli_expect(argc, argv, 1, "volume create NAME --size SIZE", error) ||
        !volume_name_given(argv[0], error) ||
        !volume_size(request.size, request.snapshot == NULL && request.image == NULL, &work.size,
                     error))
        return -1;
    work.name = argv[0];
    json_t *args =
        json_make("{ss sb sI ss ss ss}", "name", argv[0], "unique_name", true, "size",
                  (json_int_t)work.size, "backend", request.backend ? request.backend : "",
                  "description", request.description ? request.description : "", "source",
                  request.snapshot ? request.snapshot : "");
    if (request.type != NULL)
        json_object_set_new(args, "volume_type", json_string(request.type));
    if (request.image != NULL)
        json_object_set_new(args, "image", json_string(request.image));
    return volume_work(cli, &work, request.no_wait, args, error);
}

static int volume_extend(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.kind = "volume", .operation = operations[1]};
    if (!volume_take(&argc, argv, "--size", &request.size, error) ||
        !volume_take_wait(&argc, argv, &request.no_wait, error) ||
        !cli_expect(argc, argv, 1, "volume extend VOLUME --size SIZE", error) ||
        !volume_size(request.size, true, &work.size, error))
        return -1;
    work.name = argv[0];
    json_t *args = json_make("{ss sI}", "resource", argv[0], "size", (json_int_t)work.size);
    return volume_work(cli, &work, request.no_wait, args, error);
}

static int volume_delete(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.kind = "volume", .operation = operations[2]};
    if (!volume_take_wait(&argc, argv, &request.no_wait, error) ||
        !cli_take_switch(&argc, argv, "--yes", &request.yes, error) ||
        !cli_take_switch(&argc, argv, "--cascade", &request.cascade, error) ||
        !cli_expect(argc, argv, 1, "volume delete VOLUME", error))
        return -1;
    g_autofree char *what = g_strdup_printf("Volume %s and its data%s", argv[0],
                                            request.cascade ? ", and all its snapshots," : "");
    if (!volume_may_delete(cli, what, request.yes, error))
        return -1;
    work.name = argv[0];
    json_t *args = json_make("{ss sb}", "resource", argv[0], "cascade", request.cascade);
    return volume_work(cli, &work, request.no_wait, args, error);
}

static int volume_migrate(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    struct volume_request work = {.kind = "volume", .operation = operations[3]};
    if (!volume_take(&argc, argv, "--backend", &request.backend, error) ||
        !volume_take_wait(&argc, argv, &request.no_wait, error) ||
        !cli_expect(argc, argv, 1, "volume migrate VOLUME [--backend BACKEND]", error))
        return -1;
    work.name = argv[0];
    json_t *args = json_make("{ss ss}", "resource", argv[0], "backend",
                             request.backend ? request.backend : "");
    return volume_work(cli, &work, request.no_wait, args, error);
}

static int volume_retype(struct cli *cli, int argc, char **argv, GError **error)
{
    struct request request = {0};
    bool migrate;
    struct volume_request work = {.kind = "volume", .operation = operations[4]};
    if (!volume_take(&argc, argv, "--type", &request.type, error) ||
        !volume_take_wait(&argc, argv, &request.no_wait, error) ||
        !cli_take_switch(&argc, argv, "--migrate", &migrate, error) ||
        !cli_expect(argc, argv, 1, "volume retype VOLUME --type TYPE [--migrate]", error))
        return -1;
    if (request.type == NULL) {
        fettle_set_error(error, WRONG_INPUT,
                         "--type is missing: which it is to have; see: fettle volume-type list");
        return -1;
    }
    work.name = argv[0];
    work.into = request.type;
    json_t *args = json_make("{ss ss sb}", "resource", argv[0], "volume_type", request.type,
                             "migrate", migrate);
    return volume_work(cli, &work, request.no_wait, args, error);
}

/* --- what needs no work --- */

static int rename_volume(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_rename(cli, "volume", argc, argv, error);
}

static int volume_modify(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *description;
    if (!volume_take(&argc, argv, "--description", &description, error) ||
        !cli_expect(argc, argv, 1, "volume modify VOLUME --description TEXT", error))
        return -1;
    if (description == NULL || *description == '\0') {
        fettle_set_error(error, WRONG_INPUT,
                         "nothing to change: name at least one flag; see \"fettle volume modify "
                         "--help\"");
        return -1;
    }
    json_t *args = json_make("{ss ss}", "volume", argv[0], "description", description);
    if (!volume_ask(cli, "change_volume", args, error))
        return -1;
    cli_say(cli, json_make("{ss}", "volume", argv[0]), "Volume %s is changed.", argv[0]);
    return 0;
}

static int reset_volume(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_reset(cli, "volume", argc, argv, error);
}

const struct command volume_commands[] = {
    {"volume", "create",
     "VOLUME-NAME [--size SIZE] [--backend BACKEND] [--type TYPE] [--snapshot SNAPSHOT] "
     "[--image IMAGE] [--description TEXT] [--wait|--no-wait]",
     "Make a volume, of so many GiB or as 10G or 1T, and wait until it is available. Blank, or "
     "from an image, without --backend on the only one that there is, or that is for its type; or "
     "from a snapshot, on the back end of that. Without --size as large as what it is made from.",
     volume_create},
    {"volume", "delete", "VOLUME [--cascade] [--yes] [--wait|--no-wait]",
     "Delete a volume and its data, and wait until it is gone. One that has snapshots only with "
     "--cascade, which deletes them before it.",
     volume_delete},
    {"volume", "extend", "VOLUME --size SIZE [--wait|--no-wait]",
     "Make a volume larger: the size (GiB, or as 10G or 1T) that it has then.", volume_extend},
    {"volume", "migrate", "VOLUME [--backend BACKEND] [--wait|--no-wait]",
     "Move a volume that nobody uses, and that has no snapshots, to another back end, and wait "
     "until it is there; without --backend to the one with the most space of those that can have "
     "it. Until its data is there it is where it was.",
     volume_migrate},
    {"volume", "retype", "VOLUME --type TYPE [--migrate] [--wait|--no-wait]",
     "Give a volume another type. If its back end is not one for that, it is moved to one that is, "
     "as by migrate, but only with --migrate.",
     volume_retype},
    {"volume", "rename", "VOLUME VOLUME-NAME", "Give a volume another name.", rename_volume},
    {"volume", "modify", "VOLUME --description TEXT", "Say what a volume is for.", volume_modify},
    {"volume", "reset-state", "VOLUME --status available|error|error_extending|error_deleting",
     "Say what a volume is, on your word; what is under way on it counts no more.", reset_volume},
    {0},
};

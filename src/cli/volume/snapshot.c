/* `fettle snapshot create|delete|rename|reset-state`: as of volumes (volume.c). */
#include "cli/volume/volume_ask.h"

static int snapshot_create(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *volume, *description;
    bool no_wait;
    struct volume_request work = {.kind = "snapshot", .operation = "create-snapshot"};
    if (!volume_take(&argc, argv, "--volume", &volume, error) ||
        !volume_take(&argc, argv, "--description", &description, error) ||
        !volume_take_wait(&argc, argv, &no_wait, error) ||
        !cli_expect(argc, argv, 1, "snapshot create NAME --volume VOLUME", error) ||
        !volume_name_given(argv[0], error))
        return -1;
    if (volume == NULL) {
        fettle_set_error(error, WRONG_INPUT, "--volume is missing: what it is to be a snapshot of");
        return -1;
    }
    work.name = argv[0];
    json_t *args = json_make("{ss sb ss ss}", "name", argv[0], "unique_name", true, "source",
                             volume, "description", description ? description : "");
    return volume_work(cli, &work, no_wait, args, error);
}

static int snapshot_delete(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_delete_of(cli, "snapshot", argc, argv, error);
}

static int snapshot_rename(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_rename(cli, "snapshot", argc, argv, error);
}

static int snapshot_reset(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_reset(cli, "snapshot", argc, argv, error);
}

const struct command snapshot_commands[] = {
    {"snapshot", "create", "SNAPSHOT-NAME --volume VOLUME [--description TEXT] [--wait|--no-wait]",
     "Keep what a volume has now as data of its own, and wait until it is there. Of a volume that "
     "nobody writes to.",
     snapshot_create},
    {"snapshot", "delete", "SNAPSHOT [--yes] [--wait|--no-wait]",
     "Delete a snapshot and its data, and wait until it is gone.", snapshot_delete},
    {"snapshot", "rename", "SNAPSHOT SNAPSHOT-NAME", "Give a snapshot another name.",
     snapshot_rename},
    {"snapshot", "reset-state", "SNAPSHOT --status available|error|error_deleting",
     "Say what a snapshot is, on your word; what is under way on it counts no more.",
     snapshot_reset},
    {0},
};

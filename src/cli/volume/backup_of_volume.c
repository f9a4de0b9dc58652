/* `fettle backup create|restore|delete|reset-state`: as of volumes (volume.c). */
#include "cli/volume/volume_ask.h"

static int backup_create(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *name, *snapshot, *backend, *description;
    bool no_wait;
    struct volume_request work = {.kind = "backup", .operation = "back-up-volume"};
    if (!volume_take(&argc, argv, "--name", &name, error) ||
        !volume_take(&argc, argv, "--snapshot", &snapshot, error) ||
        !volume_take(&argc, argv, "--backend", &backend, error) ||
        !volume_take(&argc, argv, "--description", &description, error) ||
        !volume_take_wait(&argc, argv, &no_wait, error) ||
        !cli_expect(argc, argv, 1, "backup create VOLUME --name NAME", error))
        return -1;
    if (name == NULL) {
        fettle_set_error(error, WRONG_INPUT, "--name is missing: what the backup is to be called");
        return -1;
    }
    if (!volume_name_given(name, error))
        return -1;
    work.name = name;
    json_t *args = json_make("{ss sb ss ss ss ss}", "name", name, "unique_name", true, "source",
                             argv[0], "snapshot", snapshot ? snapshot : "", "backend",
                             backend ? backend : "", "description", description ? description : "");
    return volume_work(cli, &work, no_wait, args, error);
}

static int backup_restore(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *name, *volume, *backend, *size;
    bool no_wait, yes;
    guint64 gib = 0;
    struct volume_request work = {.kind = "backup", .operation = "restore-backup"};
    if (!volume_take(&argc, argv, "--new", &name, error) ||
        !volume_take(&argc, argv, "--volume", &volume, error) ||
        !volume_take(&argc, argv, "--backend", &backend, error) ||
        !volume_take(&argc, argv, "--size", &size, error) ||
        !volume_take_wait(&argc, argv, &no_wait, error) ||
        !cli_take_switch(&argc, argv, "--yes", &yes, error) ||
        !cli_expect(argc, argv, 1, "backup restore BACKUP (--new NAME | --volume VOLUME)", error) ||
        !volume_size(size, false, &gib, error))
        return -1;
    if (!name == !volume) {
        fettle_set_error(error, WRONG_INPUT,
                         "into what: --new NAME of a new volume, or --volume VOLUME, which loses "
                         "what it has");
        return -1;
    }
    g_autofree char *what = g_strdup_printf("What volume %s has", volume);
    if ((name && !volume_name_given(name, error)) ||
        (volume && !volume_may_delete(cli, what, yes, error)))
        return -1;
    work.name = argv[0];
    work.into = name ? name : volume;
    json_t *args = json_make("{ss ss sb ss ss sI}", "resource", argv[0], "name", name ? name : "",
                             "unique_name", name != NULL, "target", volume ? volume : "", "backend",
                             backend ? backend : "", "size", (json_int_t)gib);
    return volume_work(cli, &work, no_wait, args, error);
}

static int backup_delete(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_delete_of(cli, "backup", argc, argv, error);
}

static int backup_reset(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_reset(cli, "backup", argc, argv, error);
}

const struct command volume_backup_commands[] = {
    {"backup", "create",
     "VOLUME --name BACKUP-NAME [--snapshot SNAPSHOT] [--backend BACKEND] [--description TEXT] "
     "[--wait|--no-wait]",
     "Write what a volume that nobody writes to has, or had at one of its snapshots, into a "
     "compressed file with a checksum, and wait until it is there. Without --backend on the "
     "volume's own back end if that may hold backups, else on the only one that may.",
     backup_create},
    {"backup", "restore",
     "BACKUP [--new VOLUME-NAME] [--volume VOLUME] [--backend BACKEND] [--size SIZE] [--yes] "
     "[--wait|--no-wait]",
     "Make a new volume of a backup, or give a volume that nobody uses what the backup has: it "
     "keeps what it had until all is there.",
     backup_restore},
    {"backup", "delete", "BACKUP [--yes] [--wait|--no-wait]",
     "Delete a backup and its data, and wait until it is gone.", backup_delete},
    {"backup", "reset-state", "BACKUP --status available|error|error_deleting",
     "Say what a backup is, on your word; what is under way on it counts no more.", backup_reset},
    {0},
};

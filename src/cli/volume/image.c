/* `fettle image create|modify|delete|reset-state`: as of volumes (volume.c). */
#include "cli/volume/image_file.h"

#include <string.h>

static bool has_one_source(const char *volume, const char *file, bool no_wait, GError **error)
{
    if (volume == NULL && file == NULL)
        fettle_set_error(
            error, WRONG_INPUT,
            "--volume is missing, what it is to be an image of, or --file, which it is");
    else if (volume != NULL && file != NULL)
        fettle_set_error(error, WRONG_INPUT, "--volume and --file exclude each other");
    else if (file != NULL && no_wait)
        fettle_set_error(error, WRONG_INPUT, "--no-wait: it is this command that sends the file");
    else
        return true;
    return false;
}

static int image_create(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *volume, *file, *format, *backend, *description;
    bool no_wait;
    struct volume_request work = {.kind = "volume", .operation = "upload-volume"};
    if (!volume_take(&argc, argv, "--volume", &volume, error) ||
        !volume_take(&argc, argv, "--file", &file, error) ||
        !volume_take(&argc, argv, "--disk-format", &format, error) ||
        !volume_take(&argc, argv, "--backend", &backend, error) ||
        !volume_take(&argc, argv, "--description", &description, error) ||
        !volume_take_wait(&argc, argv, &no_wait, error) ||
        !cli_expect(argc, argv, 1, "image create NAME --volume VOLUME|--file FILE", error) ||
        !volume_name_given(argv[0], error))
        return -1;
    if (!has_one_source(volume, file, no_wait, error))
        return -1;
    if (file != NULL)
        return image_from_file(
            cli, &(struct image_file){argv[0], file, format, backend, description}, error);
    work.name = volume;
    work.into = argv[0];
    json_t *args =
        json_make("{ss ss sb ss ss}", "resource", volume, "name", argv[0], "unique_name", true,
                  "backend", backend ? backend : "", "description", description ? description : "");
    if (format != NULL)
        json_object_set_new(args, "disk_format", json_string(format));
    return volume_work(cli, &work, no_wait, args, error);
}

/* --- what needs no work --- */

/* `a,b` into a list. */
static json_t *list_of(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    json_t *list = json_array();
    for (char **word = words; *word != NULL; word++)
        if (**word != '\0')
            json_array_append_new(list, json_string(*word));
    return list;
}

/* `KEY=VALUE,KEY=`: sets one, takes one away. */
static void add_properties(json_t *args, const char *text)
{
    json_autoptr pairs = list_of(text);
    json_t *set = json_array(), *removed = json_array();
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const char *pair = json_string_value(json_array_get(pairs, i));
        size_t length = strlen(pair);
        if (length > 1 && pair[length - 1] == '=' && strchr(pair, '=') == pair + length - 1)
            json_array_append_new(removed, json_stringn(pair, length - 1));
        else
            json_array_append_new(set, json_string(pair));
    }
    json_object_set_new(args, "properties", set);
    json_object_set_new(args, "remove_properties", removed);
}

static bool add_protected(json_t *args, const char *text, GError **error)
{
    bool yes = strcmp(text, "yes") == 0;
    if (!yes && strcmp(text, "no") != 0) {
        fettle_set_error(error, WRONG_INPUT, "--protected: must be yes or no, not \"%s\"", text);
        return false;
    }
    json_object_set_new(args, "protected", json_integer(yes));
    return true;
}

/* The flags that are there. */
static bool add_changes(int *argc, char **argv, json_t *args, GError **error)
{
    static const char *const texts[][2] = {
        {"--name", "name"}, {"--description", "description"}, {"--visibility", "visibility"}};
    const char *text, *protected, *properties, *min_disk;
    guint64 gib;
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (!volume_take(argc, argv, texts[i][0], &text, error))
            return false;
        if (text != NULL)
            json_object_set_new(args, texts[i][1], json_string(text));
    }
    if (!volume_take(argc, argv, "--protected", &protected, error) ||
        !volume_take(argc, argv, "--properties", &properties, error) ||
        !volume_take(argc, argv, "--min-disk", &min_disk, error) ||
        (protected != NULL && !add_protected(args, protected, error)))
        return false;
    if (properties != NULL)
        add_properties(args, properties);
    if (min_disk == NULL)
        return true;
    if (!volume_gib("--min-disk", min_disk, &gib, error))
        return false;
    json_object_set_new(args, "min_disk", json_integer((json_int_t)gib));
    return true;
}

static int image_modify(struct cli *cli, int argc, char **argv, GError **error)
{
    json_autoptr args = json_object();
    if (!add_changes(&argc, argv, args, error) ||
        !cli_expect(argc, argv, 1, "image modify IMAGE", error))
        return -1;
    if (json_object_size(args) == 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "nothing to change: name at least one flag; see \"fettle image modify "
                         "--help\"");
        return -1;
    }
    json_object_set_new(args, "image", json_string(argv[0]));
    json_object_set_new(args, "unique_name", json_true());
    if (!volume_ask(cli, "change_image", json_incref(args), error))
        return -1;
    cli_say(cli, json_make("{ss}", "image", argv[0]), "Image %s is changed.", argv[0]);
    return 0;
}

static int image_delete(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_delete_of(cli, "image", argc, argv, error);
}

static int image_reset(struct cli *cli, int argc, char **argv, GError **error)
{
    return volume_reset(cli, "image", argc, argv, error);
}

const struct command image_commands[] = {
    {"image", "create",
     "IMAGE-NAME --volume VOLUME|--file FILE [--disk-format raw|qcow2] [--backend BACKEND] "
     "[--description TEXT] [--wait|--no-wait]",
     "Make an image that volumes can be made of, and wait until it is there: of what a volume that "
     "nobody writes to has, or of a file of this host, as it is (-: of standard input), whose "
     "format has to be named. Without --backend on the volume's own back end if that may hold "
     "images, else on the only one that may.",
     image_create},
    {"image", "save", "IMAGE --file FILE [--force]",
     "Save an image as a file of this host, if it is what it was by its SHA-512. A file of that "
     "name is replaced with --force alone.",
     image_save},
    {"image", "modify",
     "IMAGE [--name IMAGE-NAME] [--description TEXT] [--visibility "
     "private|public|shared|community] [--protected yes|no] [--min-disk SIZE] [--properties "
     "KEY=VALUE,…]",
     "Change what is said of an image; KEY= takes a property away. One that is protected is not "
     "deleted.",
     image_modify},
    {"image", "delete", "IMAGE [--yes] [--wait|--no-wait]",
     "Delete an image and its data, and wait until it is gone. Volumes that were made of it stay.",
     image_delete},
    {"image", "reset-state", "IMAGE --status queued|active|killed",
     "Say what an image is, on your word; what is under way on it counts no more.", image_reset},
    {0},
};

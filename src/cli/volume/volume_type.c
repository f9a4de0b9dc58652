/*
 * `fettle volume-type create|modify|delete`: asks fettle-wconfd of the master, which puts it on
 * record in one commit.
 */
#include "cli/volume/storage_ask.h"
#include "cli/volume/volume_ask.h"

#include <string.h>

#define SEE "fettle volume-type list"

static bool ask(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr answer = storage_ask(cli, method, args, SEE, error);
    return answer != NULL;
}

/* `a,b` into a list; NULL: it is left out. */
static void add_list(json_t *args, const char *name, const char *text)
{
    if (text == NULL)
        return;
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    json_t *list = json_array();
    for (char **word = words; *word != NULL; word++)
        if (**word != '\0')
            json_array_append_new(list, json_string(*word));
    json_object_set_new(args, name, list);
}

/* 1 or 0, -1: it is not there; false with an error. */
static bool take_public(int *argc, char **argv, int *ret_public, GError **error)
{
    const char *text;
    if (!volume_take(argc, argv, "--public", &text, error))
        return false;
    *ret_public = text == NULL ? -1 : strcmp(text, "yes") == 0;
    if (text == NULL || strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
        return true;
    fettle_set_error(error, WRONG_INPUT, "--public: must be yes or no, not \"%s\"", text);
    return false;
}

static int type_create(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *specs, *projects, *description;
    int public;
    if (!volume_take(&argc, argv, "--extra-specs", &specs, error) ||
        !volume_take(&argc, argv, "--projects", &projects, error) ||
        !volume_take(&argc, argv, "--description", &description, error) ||
        !take_public(&argc, argv, &public, error) ||
        !cli_expect(argc, argv, 1, "volume-type create NAME", error) ||
        !volume_name_given(argv[0], error))
        return -1;
    json_t *args = json_make("{ss sb ss}", "name", argv[0], "public", public != 0, "description",
                             description ? description : "");
    add_list(args, "extra_specs", specs);
    add_list(args, "projects", projects);
    if (!ask(cli, "add_volume_type", args, error))
        return -1;
    cli_say(cli, json_make("{ss}", "volume_type", argv[0]), "Volume type %s is on record.",
            argv[0]);
    return 0;
}

static int type_modify(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *specs, *more, *fewer, *name, *description;
    int public;
    if (!volume_take(&argc, argv, "--extra-specs", &specs, error) ||
        !volume_take(&argc, argv, "--add-projects", &more, error) ||
        !volume_take(&argc, argv, "--remove-projects", &fewer, error) ||
        !volume_take(&argc, argv, "--name", &name, error) ||
        !volume_take(&argc, argv, "--description", &description, error) ||
        !take_public(&argc, argv, &public, error) ||
        !cli_expect(argc, argv, 1, "volume-type modify NAME", error))
        return -1;
    if (public < 0 && specs == NULL && more == NULL && fewer == NULL && name == NULL &&
        description == NULL) {
        fettle_set_error(error, WRONG_INPUT,
                         "nothing to change: name at least one flag; see \"fettle volume-type "
                         "modify --help\"");
        return -1;
    }
    json_t *args = json_make("{ss si ss ss}", "volume_type", argv[0], "public", public, "name",
                             name ? name : "", "description", description ? description : "");
    add_list(args, "extra_specs", specs);
    add_list(args, "add_projects", more);
    add_list(args, "remove_projects", fewer);
    if (!ask(cli, "change_volume_type", args, error))
        return -1;
    cli_say(cli, json_make("{ss}", "volume_type", argv[0]), "Volume type %s is changed.", argv[0]);
    return 0;
}

static int type_delete(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "volume-type delete NAME", error) ||
        !ask(cli, "remove_volume_type", json_make("{ss}", "volume_type", argv[0]), error))
        return -1;
    cli_say(cli, json_make("{ss}", "volume_type", argv[0]), "Volume type %s is deleted.", argv[0]);
    return 0;
}

const struct command volume_type_commands[] = {
    {"volume-type", "create",
     "TYPE-NAME [--extra-specs KEY=VALUE,…] [--public yes|no] [--projects PROJECT,…] "
     "[--description TEXT]",
     "Make a type of volumes. With --extra-specs volume_backend_name=BACKEND its volumes are on "
     "that back end alone.",
     type_create},
    {"volume-type", "modify",
     "TYPE [--name TYPE-NAME] [--extra-specs KEY=VALUE,…] [--public yes|no] "
     "[--add-projects PROJECT,…] [--remove-projects PROJECT,…] [--description TEXT]",
     "Change a type of volumes; KEY= takes an extra spec away. Extra specs only of a type that no "
     "volume has.",
     type_modify},
    {"volume-type", "delete", "TYPE", "Delete a type that no volume has.", type_delete},
    {0},
};

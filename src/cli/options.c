/* Taking options out of a command line; see cli.h. */
#include "cli/cli.h"

#include <string.h>

static void remove_at(int *argc, char **argv, int index, int count)
{
    for (int i = index; i + count <= *argc; i++)
        argv[i] = argv[i + count];
    *argc -= count;
}

const char *cli_take_option(int *argc, char **argv, const char *name, GError **error)
{
    size_t len = strlen(name);
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            break;
        if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=') {
            const char *value = argv[i] + len + 1;
            remove_at(argc, argv, i, 1);
            return value;
        }
        if (strcmp(argv[i], name) != 0)
            continue;
        if (i + 1 >= *argc) {
            fettle_set_error(error, WRONG_INPUT, "%s needs a value", name);
            return NULL;
        }
        const char *value = argv[i + 1];
        remove_at(argc, argv, i, 2);
        return value;
    }
    return NULL;
}

bool cli_take_flag(int *argc, char **argv, const char *name)
{
    for (int i = 0; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        remove_at(argc, argv, i, 1);
        return true;
    }
    return false;
}

bool cli_take_switch(int *argc, char **argv, const char *name, bool *ret_given, GError **error)
{
    size_t len = strlen(name);
    for (int i = 0; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], name, len) != 0 || argv[i][len] != '=')
            continue;
        fettle_set_error(error, WRONG_INPUT, "%s: takes no value", name);
        return false;
    }
    *ret_given = cli_take_flag(argc, argv, name);
    return true;
}

bool cli_expect(int argc, char **argv, int count, const char *usage, GError **error)
{
    for (int i = 0; i < argc; i++)
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            fettle_set_error(error, WRONG_INPUT, "unknown option %s; usage: fettle %s", argv[i],
                             usage);
            return false;
        }
    if (argc != count) {
        fettle_set_error(error, WRONG_INPUT, "%s; usage: fettle %s",
                         argc < count ? "an argument is missing" : "too many arguments", usage);
        return false;
    }
    return true;
}

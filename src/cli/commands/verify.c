/*
 * `fettle cluster verify` and `fettle node verify`: what is not as it should be, of the whole
 * cluster or only as far as it concerns one node (ARP-70). luxid looks (core/verify/verify.h).
 * `fettle backend verify`: back ends of volumes, tried out on their nodes (check_backends.h).
 */
#include "cli/cli.h"

#include <stdio.h>

static void print_texts(const char *prefix, const json_t *list)
{
    size_t i;
    const json_t *text;
    json_array_foreach(list, i, text)
        printf("%s%s\n", prefix, json_string_value(text));
}

/* `whole`: the sentence if nothing was found. Returns the exit code. */
static int print_findings(const struct cli *cli, const json_t *found, const char *whole)
{
    json_t *problems = json_object_get(found, "problems"), *notes = json_object_get(found, "notes");
    size_t count = json_array_size(problems);
    if (!cli->json) {
        print_texts("", problems);
        print_texts("note: ", notes);
    }
    json_t *object = json_make("{sO sO}", "problems", problems, "notes", notes);
    if (count == 0)
        cli_say(cli, object, "%s", whole);
    else
        cli_say(cli, object, "%zu thing%s not as it should be.", count,
                count == 1 ? " is" : "s are");
    return count == 0 ? 0 : 1;
}

static int cluster_verify(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "cluster verify", error))
        return -1;
    json_autoptr found = cli_call(cli, "Verify", json_array(), error);
    return found != NULL ? print_findings(cli, found, "The cluster is as it should be.") : -1;
}

static int node_verify(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "node verify NODE", error))
        return -1;
    json_autoptr found = cli_call(cli, "Verify", json_make("[s]", argv[0]), error);
    if (found == NULL)
        return -1;
    g_autofree char *whole = g_strdup_printf("Node %s is as it should be.",
                                             json_string_value(json_object_get(found, "node")));
    return print_findings(cli, found, whole);
}

static int backend_verify(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, argc, "backend verify [BACKEND…]", error))
        return -1;
    json_autoptr names = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(names, json_string(argv[i]));
    json_autoptr found = cli_call(cli, "VerifyBackends", json_make("[O]", names), error);
    return found ? print_findings(cli, found, "The back ends are as they should be.") : -1;
}

const struct command verify_commands[] = {
    {"cluster", "verify", "", "Say what is not as it should be; exit code 1 if anything is.",
     cluster_verify},
    {"node", "verify", "NODE",
     "Say what is not as it should be with a node and the instances on it; exit code 1 if anything "
     "is.",
     node_verify},
    {"backend", "verify", "[BACKEND…]",
     "Try back ends out on each of their nodes, and between them: marker, writing, locks; all, or "
     "those that are named. Data is not touched; exit code 1 if anything is not as it should be.",
     backend_verify},
    {0},
};

/*
 * `fettle cleanup` asks for the rows of work of services to be cleaned by others;
 * `fettle storage-service enable|disable` says whether one is to take new work.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/volume/storage_ask.h"

#define SEE "fettle why storage-service"

/* --- cleanup --- */

/* Flags are the words of the request, and are judged there. */
static const char *const filters[] = {"service_id",    "cluster_name", "host",
                                      "binary",        "is_up",        "disabled",
                                      "resource_type", "resource_id",  NULL};

static bool take_filters(int *argc, char **argv, json_t *args, GError **error)
{
    for (size_t i = 0; filters[i] != NULL; i++) {
        g_autoptr(GError) bad = NULL;
        g_autofree char *flag = g_strdup_printf("--%s", filters[i]);
        g_strdelimit(flag, "_", '-');
        const char *value = cli_take_option(argc, argv, flag, &bad);
        if (bad != NULL) {
            g_propagate_error(error, g_steal_pointer(&bad));
            return false;
        }
        if (value != NULL)
            json_object_set_new(args, filters[i], json_string(value));
    }
    return true;
}

/* "cleaning: node1@dir1 by node2@dir1 (3 rows)", for each. */
static void print_list(const char *head, const GPtrArray *services)
{
    for (guint i = 0; i < services->len; i++) {
        const struct cleanup_service *service = services->pdata[i];
        printf("%s %s%s%s (%" G_GUINT64_FORMAT " row%s)\n", head, service->host,
               *service->by ? " by " : "", service->by, service->found,
               service->found == 1 ? "" : "s");
    }
    if (services->len == 0)
        printf("%s -\n", head);
}

static int cleanup(struct cli *cli, int argc, char **argv, GError **error)
{
    json_autoptr args = json_make("{ss}", "requester", "fettle cleanup");
    bool automatic;
    if (!cli_take_switch(&argc, argv, "--auto", &automatic, error) ||
        !take_filters(&argc, argv, args, error) || !cli_expect(argc, argv, 0, "cleanup", error))
        return -1;
    bool filtered = json_object_size(args) > 1;
    json_object_set_new(args, "automatic", json_boolean(automatic));
    json_autoptr answer =
        storage_ask(cli, "request_cleanup", json_incref(args), "fettle worker list", error);
    record_autoptr(cleanup_requested) requested =
        answer != NULL ? cleanup_requested_parse(answer, RECORD_LAX, error) : NULL;
    if (requested == NULL)
        return -1;
    if (cli->json) {
        cli_print_json(answer);
        return 0;
    }
    print_list("cleaning:", requested->cleaning);
    print_list("unavailable:", requested->unavailable);
    if (requested->cleaning->len + requested->unavailable->len == 0)
        printf("No service is down%s; see: fettle storage-service list\n",
               filtered ? " that all of this fits" : "");
    if (requested->cleaning->len > 0)
        printf("It goes on by itself; see what has come of it with: fettle why storage-service "
               "HOST\n");
    return 0;
}

/* --- services --- */

/* The one of that name in lists; a scheduler and no other has a name without a back end. */
static char *find_service(struct cli *cli, const char *host, GError **error)
{
    json_autoptr rows = cli_query(cli, "storage_service", (const char *const[]){"uuid", NULL},
                                  json_make("[sss]", "=", "host", host), error);
    if (rows == NULL)
        return NULL;
    if (json_array_size(rows) > 0)
        return g_strdup(cli_cell_string(json_array_get(rows, 0), 0));
    fettle_set_error(error, UNKNOWN_ENTITY,
                     "storage service \"%s\" does not exist; see: fettle storage-service list",
                     host);
    return NULL;
}

static int change(struct cli *cli, const char *host, bool disabled, const char *reason,
                  GError **error)
{
    g_autofree char *uuid = find_service(cli, host, error);
    json_autoptr answer = uuid == NULL
                              ? NULL
                              : storage_ask(cli, "change_storage_service",
                                            json_make("{ss sb ss}", "service", uuid, "disabled",
                                                      disabled, "reason", reason ? reason : ""),
                                            "fettle storage-service list", error);
    if (answer == NULL)
        return -1;
    cli_say(cli, json_make("{ss sb}", "host", host, "disabled", disabled),
            disabled ? "%s takes no new work." : "%s takes work.", host);
    return 0;
}

static int enable(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "storage-service enable HOST", error))
        return -1;
    return change(cli, argv[0], false, NULL, error);
}

static int disable(struct cli *cli, int argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *reason = cli_take_option(&argc, argv, "--reason", &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return -1;
    }
    if (!cli_expect(argc, argv, 1, "storage-service disable HOST [--reason TEXT]", error))
        return -1;
    return change(cli, argv[0], true, reason, error);
}

const struct command cleanup_commands[] = {
    {"cleanup", NULL,
     "[--service-id ID] [--cluster-name fettle@BACKEND] [--host HOST] [--binary BINARY] [--is-up "
     "BOOL] [--disabled BOOL] [--resource-type TYPE] [--resource-id UUID] [--auto]",
     "Have what services that are down were working on cleaned by others; several flags restrict "
     "together. It does not wait for the cleaning. With --auto: by the rules of the automatic "
     "pass, also while that is off.",
     cleanup},
    {"storage-service", "enable", "HOST", "Let a service of what is stored take new work again.",
     enable},
    {"storage-service", "disable", "HOST [--reason TEXT]",
     "Have a service of what is stored take no new work; what it has it goes on with.", disable},
    {0},
};

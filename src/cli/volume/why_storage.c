/* See why_storage.h. */
#include "cli/volume/why_storage.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/info.h"
#include "cli/commands/why_subject.h"
#include "cli/why_entry.h"
#include "proto/task_table.h"

/* --- decisions --- */

/* A batch of rows is told of in one decision about who has done it; its evidence names each. */
static bool names(const json_t *row, const char *line)
{
    const json_t *evidence = cli_cell_value(row, WHY_EVIDENCE), *one;
    size_t i;
    json_array_foreach(evidence, i, one)
        if (g_str_has_prefix(json_string_value(one), line))
            return true;
    return false;
}

/* Those about it, and of services those that name it (`line`; NULL: none do); newest first. */
static json_t *decisions(struct cli *cli, const char *uuid, const char *line, GError **error)
{
    json_autoptr own =
        cli_query(cli, "decision", why_fields, json_make("[sss]", "=", "subject", uuid), error);
    json_autoptr others =
        own == NULL || line == NULL
            ? json_array()
            : cli_query(cli, "decision", why_fields,
                        json_make("[sss]", "=", "subject_kind", "storage_service"), error);
    if (own == NULL || others == NULL)
        return NULL;
    for (size_t i = 0; i < json_array_size(others); i++)
        if (names(json_array_get(others, i), line))
            json_array_append(own, json_array_get(others, i));
    json_autoptr nothing = json_array();
    return why_merge(own, nothing);
}

static void print_entries(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        why_print_entry(json_array_get(list, i));
}

/* --- a resource --- */

/* Whom its work waits for, its size in GiB, whose it is, and who asked for work on it last. */
#define FIELDS(backend, size, whose)                                                               \
    {                                                                                              \
        "name", "uuid", "status", "why", "operation", "waits_since", backend, "worker", size,      \
            whose, "request_id", NULL                                                              \
    }
static const char *const volume_fields[] = FIELDS("work_backend", "size", "instance");
static const char *const snapshot_fields[] = FIELDS("backend", "size", "volume");
static const char *const backup_fields[] = FIELDS("backend", "size", "volume");
static const char *const image_fields[] = FIELDS("backend", "gib", "project");
enum { NAME, UUID, STATUS, WHY, OPERATION, WAITS_SINCE, BACKEND, WORKER, SIZE, WHOSE, REQUEST };

static const struct of_kind {
    const char *kind;
    const char *const *fields;
    enum task_kind task_kind;
} kinds[] = {
#define RESOURCE(NAME, k, word) {#k, k##_fields, TASK_KIND_##k},
#include "proto/storage/resources.def"
};

static const struct of_kind *kind_of(const char *kind)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return &kinds[i];
    return NULL;
}

bool why_storage_knows(const char *kind)
{
    return kind_of(kind) != NULL;
}

static const char *const service_fields[] = {"host",       "state",   "disabled", "state_since",
                                             "backend",    "cleanup", "binary",   "uuid",
                                             "worker_cnt", NULL};
enum { HOST, STATE, DISABLED, STATE_SINCE, OF_BACKEND, CLEANUP, BINARY, SERVICE_UUID, WORK };

/* "node1@dir1 (up), node2@dir1 (down)" of those that may take it; "" of none. */
static char *who_may(const json_t *services, const char *backend)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(services); i++) {
        const json_t *row = json_array_get(services, i);
        bool scheduler = strcmp(cli_cell_string(row, BINARY), "cinder-scheduler") == 0;
        if (strcmp(cli_cell_string(row, OF_BACKEND), backend) != 0 || scheduler != !*backend)
            continue;
        g_string_append_printf(text, "%s%s (%s%s)", text->len > 0 ? ", " : "",
                               cli_cell_string(row, HOST), cli_cell_string(row, STATE),
                               json_is_true(cli_cell_value(row, DISABLED)) ? ", disabled" : "");
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Of each back end what speaks against it, or not. */
static void print_room(struct cli *cli)
{
    static const char *const fields[] = {"name",     "up",         "free", "total",
                                         "promised", "overcommit", NULL};
    json_autoptr rows = cli_query(cli, "backend", fields, NULL, NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0);
        g_autofree char *left = cli_cell_text("backend", fields[2], json_array_get(row, 2));
        g_autofree char *total = cli_cell_text("backend", fields[3], json_array_get(row, 3));
        g_autofree char *promised = cli_cell_text("backend", fields[4], json_array_get(row, 4));
        if (json_array_size(cli_cell_value(row, 1)) == 0)
            printf("    %s: no volume service is up\n", name);
        else if (cli_cell_value(row, 2) == NULL)
            printf("    %s: has not said yet how much space it has\n", name);
        else
            printf("    %s: %s of %s MiB are free, and %s are promised (overcommit "
                   "%" JSON_INTEGER_FORMAT " %%)\n",
                   name, left, total, promised, json_integer_value(cli_cell_value(row, 5)));
    }
    if (rows != NULL && json_array_size(rows) == 0)
        printf("    no back end; add one: fettle backend add\n");
}

static void print_waiting(struct cli *cli, const json_t *volume, const json_t *services)
{
    const char *backend = cli_cell_string(volume, BACKEND);
    g_autofree char *since =
        cli_time_text((gint64)json_number_value(cli_cell_value(volume, WAITS_SINCE)));
    g_autofree char *who = who_may(services, backend);
    if (*backend)
        printf("Its work (%s) waits for a member of %s since %s: %s.\n",
               cli_cell_string(volume, OPERATION), backend, since,
               *who ? who : "none has registered");
    else
        printf("Its work (%s) waits for a scheduler to choose a back end for %" JSON_INTEGER_FORMAT
               " GiB since %s: %s. What there is:\n",
               cli_cell_string(volume, OPERATION), json_integer_value(cli_cell_value(volume, SIZE)),
               since, *who ? who : "none has registered");
    if (!*backend)
        print_room(cli);
}

static void print_worker(const json_t *volume, const json_t *services)
{
    const char *worker = cli_cell_string(volume, WORKER);
    printf("%s works on it (%s).\n", worker, cli_cell_string(volume, OPERATION));
    for (size_t i = 0; i < json_array_size(services); i++) {
        const json_t *row = json_array_get(services, i);
        if (strcmp(cli_cell_string(row, HOST), worker) != 0 ||
            strcmp(cli_cell_string(row, STATE), "down") != 0)
            continue;
        g_autofree char *since =
            cli_time_text((gint64)json_number_value(cli_cell_value(row, STATE_SINCE)));
        printf("%s is down since %s. To have another service clean what it has left:\n    fettle "
               "cleanup --host %s\n",
               worker, since, worker);
    }
}

/* In the middle of work that nobody has. */
static void print_left(const struct of_kind *of, const json_t *row)
{
    const char *name = cli_cell_string(row, NAME);
    const struct task_row *task = task_row_of(of->task_kind, cli_cell_string(row, STATUS));
    if (task && task->owner == TASK_BY_ROW)
        printf("Nobody has that work any more; recovery judges it by what its back end has:\n    "
               "fettle recovery show %s %s\n",
               of->kind, *name ? name : cli_cell_string(row, UUID));
}

static void print_resource(struct cli *cli, const struct of_kind *of, const json_t *row,
                           const json_t *services)
{
    const char *why = cli_cell_string(row, WHY), *whose = cli_cell_string(row, WHOSE);
    g_autofree char *tail =
        *whose ? g_strdup_printf(", of %s %s", of->fields[WHOSE], whose) : g_strdup("");
    printf("Now: %s %s is %s%s%s%s.\n", of->kind, cli_cell_string(row, NAME),
           cli_cell_string(row, STATUS), tail, *why ? ": " : "", why);
    if (*cli_cell_string(row, REQUEST))
        printf("Work on it was asked for last by request %s.\n", cli_cell_string(row, REQUEST));
    if (*cli_cell_string(row, WORKER))
        print_worker(row, services);
    else if (*cli_cell_string(row, OPERATION))
        print_waiting(cli, row, services);
    else
        print_left(of, row);
}

static json_t *find_resource(struct cli *cli, const struct of_kind *of, const char *name,
                             GError **error)
{
    json_autoptr rows = info_find(cli, of->kind, name, of->fields, error);
    return rows != NULL ? json_incref(json_array_get(rows, 0)) : NULL;
}

int why_storage_resource(struct cli *cli, const char *kind, const char *name, GError **error)
{
    const struct of_kind *of = kind_of(kind);
    json_autoptr row = find_resource(cli, of, name, error);
    if (row == NULL)
        return -1;
    const char *own = cli_cell_string(row, NAME), *uuid = cli_cell_string(row, UUID);
    g_autofree char *line = g_strdup_printf("%s %s:", kind, *own ? own : uuid);
    json_autoptr list = decisions(cli, uuid, line, error);
    json_autoptr services =
        list == NULL ? NULL : cli_query(cli, "storage_service", service_fields, NULL, error);
    if (services == NULL)
        return -1;
    if (cli->json) {
        cli_print_rows(cli, "decision", why_fields, list);
        return 0;
    }
    print_entries(list);
    print_resource(cli, of, row, services);
    return cli_print_brake(cli, error) ? 0 : -1;
}

/* --- a service --- */

static void print_service(const json_t *row)
{
    const char *host = cli_cell_string(row, HOST), *cleanup = cli_cell_string(row, CLEANUP);
    json_int_t work = json_integer_value(cli_cell_value(row, WORK));
    g_autofree char *since =
        cli_time_text((gint64)json_number_value(cli_cell_value(row, STATE_SINCE)));
    printf("Now: %s %s is %s since %s%s. Rows of work that it has: %" JSON_INTEGER_FORMAT ".\n",
           cli_cell_string(row, BINARY), host, cli_cell_string(row, STATE), since,
           json_is_true(cli_cell_value(row, DISABLED)) ? ", and takes no new work" : "", work);
    if (*cleanup)
        printf("Cleanup: %s.\n", cleanup);
    else if (work > 0 && strcmp(cli_cell_string(row, STATE), "down") == 0)
        printf("To have them cleaned by another service:\n    fettle cleanup --host %s\n", host);
}

int why_storage_of_service(struct cli *cli, const char *host, GError **error)
{
    json_autoptr rows = cli_query(cli, "storage_service", service_fields,
                                  json_make("[sss]", "=", "host", host), error);
    if (rows != NULL && json_array_size(rows) == 0)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "storage service \"%s\" does not exist; see: fettle storage-service list",
                         host);
    const json_t *row = json_array_get(rows, 0);
    json_autoptr list =
        row == NULL ? NULL : decisions(cli, cli_cell_string(row, SERVICE_UUID), NULL, error);
    if (list == NULL)
        return -1;
    if (cli->json) {
        cli_print_rows(cli, "decision", why_fields, list);
        return 0;
    }
    print_entries(list);
    print_service(row);
    return cli_print_brake(cli, error) ? 0 : -1;
}

/* The pages of one volume, snapshot, backup, image and type; see info.h. */
#include "cli/commands/info.h"

#include <stdio.h>

/* What a row of work asks for, and who has it. */
static void print_work(const json_t *cells)
{
    const char *operation = info_string(cells, "operation"), *worker = info_string(cells, "worker");
    const char *backend =
        info_string(cells, json_object_get(cells, "work_backend") ? "work_backend" : "backend");
    if (*operation == '\0')
        return;
    if (*worker != '\0') {
        info_line("Work", "%s, by %s", operation, worker);
        return;
    }
    g_autofree char *since = cli_time_text(info_number(cells, "waits_since"));
    if (*backend != '\0')
        info_line("Work", "%s; waits for a member of %s since %s", operation, backend, since);
    else
        info_line("Work", "%s; waits for a back end to be chosen since %s", operation, since);
}

static void print_attachment(const json_t *cells)
{
    const char *instance = info_string(cells, "instance");
    gint64 leaving = info_number(cells, "leaving_since");
    if (*instance == '\0')
        return;
    info_line("Attached to", "%s, as %s there", instance, info_string(cells, "device"));
    if (leaving == 0)
        return;
    g_autofree char *since = cli_time_text(leaving);
    info_line("Leaving", "the guest is asked to give it up since %s; it goes with its next stop",
              since);
}

/* `title`: what it is called there. */
static void print(const json_t *cells, const char *title)
{
    const char *why = info_string(cells, "why"), *data = info_string(cells, "data");
    const char *host = info_string(cells, "host");
    const char *description = info_string(cells, "description");
    bool well = strcmp(info_string(cells, "status"), "available") == 0;
    const char *last = strcmp(title, "Volume") == 0 ? "Last work" : "Last restore";
    g_autofree char *rest = g_strdup_printf("%s%s", *why && !well ? ": " : "", well ? "" : why);
    g_autofree char *created = cli_time_text(info_number(cells, "created"));
    printf("%s %s\n", title, info_string(cells, "name"));
    info_word("Status", info_string(cells, "status"), rest);
    if (well && *why)
        info_line(last, "failed: %s", why);
    print_work(cells);
    if (*info_string(cells, "volume") != '\0')
        info_line("Of volume", "%s", info_string(cells, "volume"));
    if (*info_string(cells, "snapshot") != '\0')
        info_line("Of snapshot", "%s", info_string(cells, "snapshot"));
    print_attachment(cells);
    if (!json_object_get(cells, "disk_format"))
        info_line("Size", "%" G_GINT64_FORMAT " GiB", info_number(cells, "size"));
    info_line("Back end", "%s%s%s", info_string(cells, "backend"), *host ? ", made by " : "", host);
    if (*info_string(cells, "volume_type") != '\0')
        info_line("Type", "%s", info_string(cells, "volume_type"));
    info_line("Data", "%s", *data ? data : "none");
    info_line("Created", "%s", created);
    if (*description != '\0')
        info_line("For", "%s", description);
    info_line("UUID", "%s", info_string(cells, "uuid"));
}

void info_print_volume(struct cli *cli, const json_t *cells)
{
    print(cells, "Volume");
}

void info_print_backup(struct cli *cli, const json_t *cells)
{
    print(cells, "Backup");
    if (*info_string(cells, "sum") == '\0')
        return;
    info_line("Length", "%" G_GINT64_FORMAT " bytes", info_number(cells, "bytes"));
    info_line("SHA-512", "%s", info_string(cells, "sum"));
}

static void print_properties(const json_t *cells)
{
    size_t i;
    json_t *pair;
    json_array_foreach(json_object_get(cells, "properties"), i, pair)
        info_line(i == 0 ? "Properties" : "", "%s", json_string_value(pair));
}

void info_print_image(struct cli *cli, const json_t *cells)
{
    gint64 most = MAX(info_number(cells, "gib"), info_number(cells, "min_disk"));
    const char *project = info_string(cells, "project");
    print(cells, "Image");
    info_line("Format", "%s", info_string(cells, "disk_format"));
    info_line("Visibility", "%s%s%s%s", info_string(cells, "visibility"),
              *project != '\0' ? ", of project " : "", project,
              json_is_true(json_object_get(cells, "protected")) ? "; protected" : "");
    print_properties(cells);
    if (*info_string(cells, "os_hash_value") == '\0')
        return;
    info_line("For volumes", "of %" G_GINT64_FORMAT " GiB or more", most);
    info_line("Length", "%" G_GINT64_FORMAT " bytes", info_number(cells, "size"));
    info_line("Disk", "%" G_GINT64_FORMAT " bytes", info_number(cells, "virtual_size"));
    info_line("MD5", "%s", info_string(cells, "checksum"));
    info_line("SHA-512", "%s", info_string(cells, "os_hash_value"));
}

void info_print_snapshot(struct cli *cli, const json_t *cells)
{
    print(cells, "Snapshot");
}

void info_print_volume_type(struct cli *cli, const json_t *cells)
{
    g_autofree char *specs = info_list(cells, "extra_specs"),
                    *projects = info_list(cells, "projects");
    const char *description = info_string(cells, "description");
    bool public = json_is_true(info_value(cells, "public"));
    printf("Volume type %s\n", info_string(cells, "name"));
    info_line("Extra specs", "%s", specs);
    info_line("For projects", "%s", public ? "all" : projects);
    info_line("Volumes", "%" G_GINT64_FORMAT, info_number(cells, "volume_cnt"));
    if (*description != '\0')
        info_line("For", "%s", description);
    info_line("UUID", "%s", info_string(cells, "uuid"));
}

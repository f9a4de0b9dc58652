/*
 * Reading and writing run/exports/REPLICA.json. See export_state.h.
 */
#include "backend/storage/export_state.h"

#include "io/files.h"

#include <string.h>
#include <unistd.h>

#define FOLDER "exports"
#define FORMAT 1

struct export_state *export_state_new(const char *instance, guint64 history, guint64 generation,
                                      struct export_target *target)
{
    struct export_state *state = g_new0(struct export_state, 1);
    state->instance = g_strdup(instance);
    state->history = history;
    state->generation = generation;
    state->target = target;
    state->processes = g_array_new(FALSE, TRUE, sizeof(struct export_process));
    g_array_set_size(state->processes, target->disks->len);
    return state;
}

void export_state_free(struct export_state *state)
{
    if (state == NULL)
        return;
    g_free(state->instance);
    export_target_free(state->target);
    g_array_unref(state->processes);
    g_free(state);
}

char *export_state_path(const struct node_paths *paths, const char *replica, const char *kind)
{
    return g_strdup_printf("%s/" FOLDER "/%s.%s", paths->run, replica, kind);
}

char *export_state_disk_path(const struct node_paths *paths, const char *replica, const char *kind,
                             guint disk)
{
    return g_strdup_printf("%s/" FOLDER "/%s.%s%u", paths->run, replica, kind, disk);
}

static char *state_name(const char *replica)
{
    return g_strdup_printf(FOLDER "/%s.json", replica);
}

bool export_state_write(const struct node_paths *paths, const struct export_state *state,
                        GError **error)
{
    json_autoptr processes = json_array();
    for (guint i = 0; i < state->processes->len; i++) {
        const struct export_process *process =
            &g_array_index(state->processes, struct export_process, i);
        json_array_append_new(processes, json_make("[I,I]", (json_int_t)process->pid,
                                                   (json_int_t)process->start_ticks));
    }
    json_autoptr json = json_make("{s:i,s:s,s:I,s:I,s:o,s:O}", "format", FORMAT, "instance",
                                  state->instance, "history", (json_int_t)state->history,
                                  "generation", (json_int_t)state->generation, "target",
                                  export_target_to_json(state->target), "processes", processes);
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = state_name(state->target->replica);
    g_autofree char *path = files_path(paths, FILE_RUN, name, error);
    return path != NULL && files_write_path(path, text, strlen(text), 0600, false, error);
}

void export_state_remove(const struct node_paths *paths, const struct export_state *state)
{
    const char *replica = state->target->replica;
    g_autofree char *name = state_name(replica);
    static const char *const beside[] = {EXPORT_KEY, EXPORT_TLS};
    for (guint i = 0; i < G_N_ELEMENTS(beside); i++) {
        g_autofree char *path = export_state_path(paths, replica, beside[i]);
        unlink(path);
    }
    for (guint i = 0; i < state->processes->len; i++) {
        g_autofree char *log = export_state_disk_path(paths, replica, EXPORT_LOG, i);
        g_autofree char *control = export_state_disk_path(paths, replica, EXPORT_CONTROL, i);
        unlink(log);
        unlink(control);
    }
    files_remove(paths, FILE_RUN, name, NULL);
}

static bool parse_processes(const json_t *list, struct export_state *state)
{
    if (!json_is_array(list) || json_array_size(list) != state->processes->len)
        return false;
    for (guint i = 0; i < state->processes->len; i++) {
        json_int_t pid, start;
        if (json_unpack(json_array_get(list, i), "[I,I!]", &pid, &start) != 0 || pid < 0 ||
            start < 0)
            return false;
        g_array_index(state->processes, struct export_process, i) =
            (struct export_process){(guint64)pid, (guint64)start};
    }
    return true;
}

static struct export_state *state_parse(json_t *json, GError **error)
{
    const char *instance;
    json_int_t format, history, generation;
    json_t *target, *processes;
    if (json_unpack(json, "{s:I,s:s,s:I,s:I,s:o,s:o}", "format", &format, "instance", &instance,
                    "history", &history, "generation", &generation, "target", &target, "processes",
                    &processes) != 0 ||
        format != FORMAT || history < 0 || generation < 0 || !g_uuid_string_is_valid(instance)) {
        fettle_set_error(error, CORRUPT,
                         "format, instance, history, generation, target or processes is wrong");
        return NULL;
    }
    struct export_target *where = export_target_parse(target, RECORD_LAX, error);
    if (where == NULL)
        return NULL;
    struct export_state *state =
        export_state_new(instance, (guint64)history, (guint64)generation, where);
    if (parse_processes(processes, state))
        return state;
    export_state_free(state);
    fettle_set_error(error, CORRUPT, "processes: a [pid, start] for each disk is needed");
    return NULL;
}

static struct export_state *state_read(const struct node_paths *paths, const char *file,
                                       GError **error)
{
    g_autofree char *name = g_build_filename(FOLDER, file, NULL);
    g_autoptr(GError) failure = NULL;
    size_t len = 0;
    g_autofree char *text =
        files_read(paths, FILE_RUN, name, LIMIT_STATE_FILE_BYTES, &len, &failure);
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &failure) : NULL;
    struct export_state *state = json != NULL ? state_parse(json, &failure) : NULL;
    if (state == NULL)
        fettle_set_error(error, CORRUPT, "%s/%s: %s; end its nbdkit processes and remove the file",
                         paths->run, name, failure->message);
    return state;
}

GPtrArray *export_state_read_all(const struct node_paths *paths, GError **error)
{
    g_autoptr(GPtrArray) names = files_list(paths, FILE_RUN, FOLDER, error);
    g_autoptr(GPtrArray) states = g_ptr_array_new_with_free_func((GDestroyNotify)export_state_free);
    if (names == NULL)
        return NULL;
    for (guint i = 0; i < names->len; i++) {
        if (!g_str_has_suffix(names->pdata[i], ".json"))
            continue;
        struct export_state *state = state_read(paths, names->pdata[i], error);
        if (state == NULL)
            return NULL;
        g_ptr_array_add(states, state);
    }
    return g_steal_pointer(&states);
}

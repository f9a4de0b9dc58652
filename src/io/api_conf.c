/* See api_conf.h. */
#include "io/api_conf.h"

#include <string.h>

#include "io/files.h"

#define LIMIT_API_CONF_BYTES KIB(64)

char *api_conf_path(const struct node_paths *paths)
{
    return g_build_filename(paths->etc, "apid.conf", NULL);
}

char *api_store_path(const struct node_paths *paths)
{
    return g_build_filename(paths->var, "api", "api.db", NULL);
}

char *api_keys_path(const struct node_paths *paths)
{
    return g_build_filename(paths->etc, "api-keys", NULL);
}

/* One line, without its end. */
static bool take_line(struct api_conf *conf, char *line, GHashTable *seen, GError **error)
{
    char *value = strchr(g_strstrip(line), '=');
    if (!*line || *line == '#')
        return true;
    if (!value) {
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is no `name = value`", line);
        return false;
    }
    *value++ = '\0';
    g_strchomp(line);
    if (!record_field(&api_conf_record, line)) {
        fettle_set_error(error, WRONG_INPUT, "there is no setting \"%s\"", line);
        return false;
    }
    if (!g_hash_table_add(seen, line)) {
        fettle_set_error(error, WRONG_INPUT, "%s stands in an earlier line already", line);
        return false;
    }
    return record_set_text(&api_conf_record, conf, line, g_strstrip(value), error);
}

/* What each line alone does not tell. */
static bool check_whole(const struct api_conf *conf, GError **error)
{
    const char *const files[] = {"certificate", conf->certificate, "key", conf->key};
    for (guint i = 0; i < G_N_ELEMENTS(files); i += 2) {
        if (*files[i + 1] && !g_path_is_absolute(files[i + 1])) {
            fettle_set_error(error, WRONG_INPUT, "%s: %s must begin with /", files[i],
                             files[i + 1]);
            return false;
        }
    }
    if (*conf->key && !*conf->certificate)
        fettle_set_error(error, WRONG_INPUT, "key: there is no certificate");
    else if (*conf->public_url && !g_str_has_prefix(conf->public_url, "http://") &&
             !g_str_has_prefix(conf->public_url, "https://"))
        fettle_set_error(error, WRONG_INPUT,
                         "public_url: \"%s\" begins with no http:// or https://", conf->public_url);
    else
        return true;
    return false;
}

static struct api_conf *parse(const char *path, char *text, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    record_autoptr(api_conf) conf = api_conf_new();
    for (guint i = 0; lines[i]; i++) {
        if (take_line(conf, lines[i], seen, error))
            continue;
        g_prefix_error(error, "%s, line %u: ", path, i + 1);
        return NULL;
    }
    if (check_whole(conf, error))
        return g_steal_pointer(&conf);
    g_prefix_error(error, "%s: ", path);
    return NULL;
}

struct api_conf *api_conf_read(const struct node_paths *paths, GError **error)
{
    size_t len;
    g_autoptr(GError) local = NULL;
    g_autofree char *path = api_conf_path(paths);
    g_autofree char *text = files_read_path(path, LIMIT_API_CONF_BYTES, &len, &local);
    if (text && g_utf8_validate(text, (gssize)len, NULL))
        return parse(path, text, error);
    if (text)
        fettle_set_error(error, WRONG_INPUT, "%s: is no UTF-8", path);
    else if (fettle_error_is(local, UNKNOWN_ENTITY))
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no %s: this node has no front end of the API; make one with: "
                         "fettle api init",
                         path);
    else
        g_propagate_error(error, g_steal_pointer(&local));
    return NULL;
}

bool api_conf_write(const struct node_paths *paths, const struct api_conf *conf, GError **error)
{
    g_autofree char *path = api_conf_path(paths);
    g_autoptr(GString) text = g_string_new(
        "# Front end of the API of this node, fettle-apid, which reads this when it starts.\n");
    for (const struct field *field = api_conf_record.fields(); field->name; field++) {
        json_autoptr value = record_field_to_json(field, conf);
        g_autofree char *number = json_is_integer(value) ? json_to_text(value) : NULL;
        g_autofree char *doc = record_doc(field->doc);
        g_string_append_printf(text, "\n# %s\n%s = %s\n", doc, field->name,
                               number ? number : json_string_value(value));
    }
    return files_write_path(path, text->str, text->len, 0644, true, error);
}

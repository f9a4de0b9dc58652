/* Cleanup on request: workers/cleanup and workers/auto_cleanup (CLN-34 to 43, 50, 51). What is
 * cleaned, and by whom, is judged where it is put on record; here a body is read word by word. */
#include <string.h>

#include "core/api/volume_common.h"
#include "proto/env.h"

/* Texts, each checked by `good`, whose rule follows the name of the field. */
struct cleanup_word {
    const char *name;
    size_t offset;
    bool (*good)(const json_t *value);
    const char *rule;
};

static bool is_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) <= 255;
}

static bool is_number(const json_t *value)
{
    guint64 number;
    return (json_is_integer(value) && json_integer_value(value) > 0) ||
           (json_is_string(value) && g_ascii_string_to_unsigned(json_string_value(value), 10, 1,
                                                                RECORD_NUMBER_MAX, &number, NULL));
}

static bool is_truth(const json_t *value)
{
    bool truth;
    return block_truth(value, "", false, &truth, NULL);
}

static bool is_uuid(const json_t *value)
{
    return json_is_string(value) && g_uuid_string_is_valid(json_string_value(value));
}

/* One of these words, in any case. */
static bool is_word(const json_t *value, const char *const *words)
{
    bool is = false;
    for (; json_is_string(value) && *words; words++)
        is = is || !g_ascii_strcasecmp(*words, json_string_value(value));
    return is;
}

static bool is_type(const json_t *value)
{
    static const char *const words[] = {"Volume", "Snapshot", "Backup", NULL};
    return is_word(value, words);
}

static bool is_binary(const json_t *value)
{
    static const char *const words[] = {"cinder-volume", "cinder-scheduler", NULL};
    return is_word(value, words);
}

#define AT(member) offsetof(struct request_cleanup_args, member)
static const struct cleanup_word fields[] = {
    {"service_id", AT(service_id), is_number, "must be an integer"},
    {"cluster_name", AT(cluster_name), is_text, "must be a text of 255 letters at most"},
    {"host", AT(host), is_text, "must be a text of 255 letters at most"},
    {"binary", AT(binary), is_binary, "must be cinder-volume or cinder-scheduler"},
    {"is_up", AT(is_up), is_truth, "must be a boolean"},
    {"disabled", AT(disabled), is_truth, "must be a boolean"},
    {"resource_type", AT(resource_type), is_type, "must be Volume, Snapshot or Backup"},
    {"resource_id", AT(resource_id), is_uuid, "must be a UUID"},
};

static bool read_field(const char *name, const json_t *value, struct request_cleanup_args *args,
                       GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (strcmp(fields[i].name, name) != 0)
            continue;
        if (!fields[i].good(value)) {
            fettle_set_error(error, WRONG_INPUT, "%s: %s", name, fields[i].rule);
            return false;
        }
        g_autofree char *number =
            json_is_integer(value)
                ? g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value))
                : NULL;
        text_set(&G_STRUCT_MEMBER(char *, args, fields[i].offset), number ? number
                                                                   : json_is_string(value)
                                                                       ? json_string_value(value)
                                                                   : json_is_true(value) ? "true"
                                                                                         : "false");
        return true;
    }
    fettle_set_error(error, WRONG_INPUT,
                     "Additional properties are not allowed ('%s' was unexpected)", name);
    return false;
}

static json_t *view_services(const GPtrArray *services)
{
    json_t *list = json_array();
    for (guint i = 0; i < services->len; i++) {
        const struct cleanup_service *service = services->pdata[i];
        g_autofree char *name = g_strdup_printf("%s:%s", service->binary, service->host);
        json_array_append_new(list, json_make("{s:I, s:s, s:s, s:s, s:s, s:o}", "id",
                                              (json_int_t)service->id, "name", name, "state",
                                              enum_word(&storage_life_words, (int)service->state),
                                              "host", service->host, "binary", service->binary,
                                              "cluster_name", block_text(service->cluster_name)));
    }
    return list;
}

static struct http_answer *request_cleanup(struct api_call *call, bool automatic, GError **error)
{
    record_autoptr(request_cleanup_args) args = request_cleanup_args_new();
    const char *name;
    json_t *value;
    json_object_foreach(call->json, name, value)
        if (!read_field(name, value, args, error))
            return NULL;
    g_free(args->commit_id);
    args->commit_id = env_uuid(call->api->env);
    args->automatic = automatic;
    g_autofree char *who = g_strdup_printf("%s, %s", call->token->user_name, call->request_id);
    text_set(&args->requester, who);
    record_autoptr(cleanup_requested) answer =
        cell_call(call->api->cell, "request_cleanup", args, error);
    return answer ? api_answer(call,
                               json_make("{s:o, s:o}", "cleaning", view_services(answer->cleaning),
                                         "unavailable", view_services(answer->unavailable)))
                  : NULL;
}

struct http_answer *api_workers_cleanup(struct api_call *call, GError **error)
{
    return request_cleanup(call, false, error);
}

struct http_answer *api_workers_auto_cleanup(struct api_call *call, GError **error)
{
    return request_cleanup(call, true, error);
}

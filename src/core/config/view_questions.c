/* See view_questions.h. */
#include "core/config/view_questions.h"

#include <string.h>

#include "core/config/addresses.h"
#include "core/config/allocated.h"
#include "core/config/invariants.h"
#include "core/config/ports.h"

static guint64 memory_running(const struct config *config, const struct node_guests *asked)
{
    guint64 sum = 0;
    for (guint i = 0; i < asked->guests->len; i++) {
        const struct instance *instance =
            config_get(config, "instance", asked->guests->pdata[i], NULL);
        if (instance)
            sum += allocated_now(instance, asked->node);
    }
    return sum;
}

static struct node_promised *node_promised(const struct config *config,
                                           const struct node_guests *asked)
{
    struct allocated promised = config_promised(config, asked->node);
    struct node_promised *answer = node_promised_new();
    g_free(answer->node);
    answer->node = g_strdup(asked->node);
    answer->memory = promised.memory;
    answer->memory_running = memory_running(config, asked);
    answer->disk = promised.disk;
    answer->disk_waiting = promised.disk_waiting;
    answer->instances = promised.instances;
    return answer;
}

static json_t *answer_promised(const struct config *config, const void *data, GError **error)
{
    const struct promised_args *args = data;
    record_autoptr(promised_result) result = promised_result_new();
    for (guint i = 0; i < args->nodes->len; i++)
        g_ptr_array_add(result->nodes, node_promised(config, args->nodes->pdata[i]));
    return promised_result_to_json(result);
}

static json_t *answer_user(const struct config *config, const void *data, GError **error)
{
    const struct address_user_args *args = data;
    g_autofree char *user = config_address_user(config, args->address, "");
    const struct address_user_result result = {.user = user ? user : (char[]){""}};
    return address_user_result_to_json(&result);
}

static json_t *answer_draw(const struct config *config, const void *data, GError **error)
{
    const struct draw_address_args *args = data;
    const struct network *network = config_find(config, "network", args->network, error);
    g_autofree char *address = network ? network_draw(config, network, args->nics, error) : NULL;
    const struct draw_address_result result = {.address = address};
    return address ? draw_address_result_to_json(&result) : NULL;
}

static json_t *answer_port(const struct config *config, const void *data, GError **error)
{
    struct draw_port_result result = {0};
    return port_draw(config, &result.port, error) ? draw_port_result_to_json(&result) : NULL;
}

static json_t *answer_empty(const struct config *config, const void *data, GError **error)
{
    const struct backend_empty_args *args = data;
    const struct backend *backend = config_find(config, "backend", args->backend, error);
    return backend && invariants_backend_empty(config, backend, error) ? json_object() : NULL;
}

static const struct {
    const char *method;
    json_t *(*answer)(const struct config *config, const void *args, GError **error);
} answers[] = {
    {"promised", answer_promised}, {"address_user", answer_user},   {"draw_address", answer_draw},
    {"draw_port", answer_port},    {"backend_empty", answer_empty},
};

json_t *view_questions_answer(const struct config *config, const char *method, const void *args,
                              GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(answers); i++) {
        if (!strcmp(answers[i].method, method))
            return answers[i].answer(config, args, error);
    }
    g_error("%s is no question about the configuration", method);
}

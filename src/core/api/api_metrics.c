/* /metrics of a front end: the requests that it has answered, and how old its copy of the cluster
 * is. Nothing there is of a project, a user or a resource. */
#include <arpa/inet.h>
#include <string.h>

#include "core/api/api_private.h"
#include "proto/metrics/metric_text.h"
#include "proto/metrics/request_tally.h"

#define OTHERS "other" /* of no service: /metrics, and what is nowhere */

struct request_tally *api_tally_new(void)
{
    const char *services[API_SERVICES + 2] = {NULL};
    for (enum api_service service = 0; service < API_SERVICES; service++)
        services[service] = api_service_name(service);
    services[API_SERVICES] = OTHERS;
    return request_tally_new(services);
}

void api_count(const struct api_call *call, guint status)
{
    const struct env *env = call->api->env;
    gint64 took_ms = env->ops->boot_ms(env) - call->since_ms;
    request_tally_add(call->api->tally, call->counted_as ? call->counted_as : OTHERS, status,
                      (guint64)took_ms * 1000);
}

/* As IPv6 has it, also one of IPv4. */
static bool parse_address(const char *text, struct in6_addr *ret)
{
    g_autofree char *mapped = g_strconcat("::ffff:", text, NULL);
    return inet_pton(AF_INET6, text, ret) == 1 || inet_pton(AF_INET6, mapped, ret) == 1;
}

/* "127.0.0.1:41234", "[::1]:41234", or from where it listens, as who asks there from this host
 * comes from there. */
static bool is_of_this_host(const struct api *api, const char *peer)
{
    struct in6_addr from, own;
    bool bracket = peer[0] == '[';
    g_autofree char *host = g_strndup(peer + bracket, strcspn(peer + bracket, bracket ? "]" : ":"));
    if (!parse_address(host, &from))
        return false;
    return IN6_IS_ADDR_LOOPBACK(&from) ||
           (IN6_IS_ADDR_V4MAPPED(&from) && from.s6_addr[12] == 127) ||
           (parse_address(api->address, &own) && IN6_ARE_ADDR_EQUAL(&from, &own));
}

/* Whether who asks may see them; `*ret_refusal`: he may not, else an error says why. */
static bool admit(struct api_call *call, struct http_answer **ret_refusal, GError **error)
{
    if (is_of_this_host(call->api, call->request->peer))
        return true;
    if (!api_authenticate(call, error))
        return false;
    if (call->token->highest == NEED_ADMIN)
        return true;
    *ret_refusal =
        api_refuse(call, 403, "metrics are for administrators, and for this host itself");
    return false;
}

struct http_answer *api_metrics(struct api_call *call, GError **error)
{
    const struct http_request *request = call->request;
    struct http_answer *refusal = NULL;
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        struct http_answer *answer =
            api_refuse(call, 405, "%s is answered to GET, HEAD alone", request->path);
        http_answer_add_header(answer, "Allow", "GET, HEAD");
        return answer;
    }
    if (!admit(call, &refusal, error))
        return refusal;
    json_autoptr document = request_tally_tell(call->api->tally);
    gint64 age_ms = cell_age_ms(call->api->cell);
    if (age_ms >= 0)
        json_object_set_new(document, "age_ms", json_integer(age_ms));
    const char *type;
    size_t length;
    char *text =
        metrics_of_samples((const struct metric_document[]){{"apid", document}, {NULL, NULL}},
                           http_request_header(request, "accept"), &type, &length);
    struct http_answer *answer = http_answer_new(200);
    http_answer_set_body(answer, type, text);
    http_answer_add_header(answer, "Vary", "Accept");
    return answer;
}

/* See certificate.h. */
#include "cli/api/certificate.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/call.h"
#include "io/api_place.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/certs.h"

/* --- one call --- */

static json_t *ask_under(const struct front_end *end, struct stamp stamp, const char *method,
                         json_t *args, GError **error)
{
    loop_init();
    struct rpc_client *client = rpc_client_new(end->paths, end->config->node_uuid, ROLE_APID);
    const struct rpc_call call = {.to_node = NODE_MASTER,
                                  .to_role = ROLE_WCONFD,
                                  .method = method,
                                  .args = args,
                                  .stamp = stamp};
    json_t *answer = cli_call_rpc(client, &call, error);
    rpc_client_free(client);
    return answer;
}

/* Whose mastership it is, as any question but this one has to say: a look at the configuration,
 * which who is not on record may not have. */
static bool find_master(const struct front_end *end, struct stamp *ret, GError **error)
{
    json_t *args = json_make("{s:i, s:[s]}", "serial", 0, "kinds", "cluster");
    json_autoptr answer = ask_under(end, (struct stamp){0}, "wait_changes", args, error);
    record_autoptr(changes) changes = answer ? changes_parse(answer, RECORD_LAX, error) : NULL;
    if (changes)
        *ret = (struct stamp){.history = changes->history, .epoch = changes->epoch};
    return changes;
}

static json_t *ask(const struct front_end *end, const char *method, json_t *args, GError **error)
{
    struct stamp stamp;
    if (find_master(end, &stamp, error))
        return ask_under(end, stamp, method, args, error);
    json_decref(args);
    return NULL;
}

bool front_end_on_record(const struct front_end *end, bool *ret_is, GError **error)
{
    struct stamp stamp;
    g_autoptr(GError) failure = NULL;
    *ret_is = find_master(end, &stamp, &failure);
    if (*ret_is || fettle_error_is(failure, PERMISSION))
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

/* --- its certificate --- */

/* The key's and the request's text. */
static bool make_key(const char *folder, char **ret_key, char **ret_request, GError **error)
{
    g_autofree char *key = g_build_filename(folder, "key", NULL);
    g_autofree char *request = g_build_filename(folder, "request", NULL);
    if (certs_make_key(key, error) && certs_make_request(key, request, error)) {
        *ret_key = files_read_path(key, LIMIT_PEM_CHARS, NULL, error);
        *ret_request = *ret_key ? files_read_path(request, LIMIT_PEM_CHARS, NULL, error) : NULL;
    }
    g_unlink(key);
    g_unlink(request);
    return *ret_request;
}

bool front_end_certify(const struct front_end *end, GError **error)
{
    g_autofree char *folder = g_build_filename(end->paths->run, "api-XXXXXX", NULL);
    g_autofree char *key = NULL, *request = NULL, *pem = api_pem_path(end->paths);
    if (!g_mkdtemp(folder))
        return files_error("make", folder, error);
    bool made = make_key(folder, &key, &request, error);
    g_rmdir(folder);
    json_autoptr answer =
        made ? ask(end, "certify_front_end", json_make("{ss}", "request", request), error) : NULL;
    record_autoptr(front_end_certificate) signed_key =
        answer ? front_end_certificate_parse(answer, RECORD_LAX, error) : NULL;
    if (!signed_key)
        return false;
    g_autofree char *text = g_strconcat(signed_key->certificate, key, NULL);
    return files_write_path(pem, text, strlen(text), 0600, true, error);
}

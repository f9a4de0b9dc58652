/* Jobs of users of REST: luxid takes what some route queues, and nothing else
 * (core/queue/submit.c).
 */
#include "unit/core/world/queue_world.h"

struct said {
    json_t *result;
    GError *error;
};

static void hear(struct rpc_request *request, json_t *result, const GError *error)
{
    struct said *said = request->carrier;
    said->result = result;
    said->error = error ? g_error_copy(error) : NULL;
    rpc_request_free(request);
}

/* To be cleared. */
static struct said submit_as(struct queue_world *w, const char *user, const char *method,
                             const char *opcodes)
{
    struct said said = {0};
    struct rpc_request *request = g_new0(struct rpc_request, 1);
    g_autofree char *args = g_strdup_printf("[%s]", opcodes);
    request->name = g_strdup(method);
    request->from_node = g_strdup(MASTER);
    request->from_role = g_strdup(ROLE_CLI);
    request->user = g_strdup(user);
    request->args = json_loads(args, 0, NULL);
    request->answer = hear;
    request->carrier = &said;
    g_assert_nonnull(request->args);
    luxi_handle(w->luxi, request);
    for (guint turn = 0; turn < 100 && !said.result && !said.error; turn++)
        fake_advance(w->world, 100);
    return said;
}

#define NOT_OF_REST                                                                                \
    "ops[%u].OP_ID: %s is not taken of the REST daemon, as no route of it queues that; use the "   \
    "command line"
#define INVITE                                                                                     \
    "{\"OP_ID\":\"OP_NODE_INVITE\",\"node_name\":\"node9\",\"primary_ip\":\"192.0.2.9\","          \
    "\"secret_hash\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}"
#define TAGS "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"cluster\",\"tags\":[\"x\"]}"

/* Whoever has taken the REST daemon over gets no host into the cluster. */
static void test_users_of_rest(struct queue_world *w)
{
    static const struct {
        const char *user, *ops;
        int refused; /* the place of the opcode; -1: it is taken */
    } rows[] = {
        {"rapi:alice", "[" INVITE "]", 0}, {"rapi:alice", "[" TAGS "," INVITE "]", 1},
        {"rapi:", "[" INVITE "]", 0}, /* of the daemon itself */
        {"rapi:alice", "[" TAGS "]", -1},  {"root", "[" INVITE "]", -1},
    };
    static const char *const methods[] = {"SubmitJob", "SubmitJobToDrainedQueue"};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (size_t at = 0; at < G_N_ELEMENTS(methods); at++) {
            struct said said = submit_as(w, rows[i].user, methods[at], rows[i].ops);
            if (rows[i].refused < 0) {
                g_assert_no_error(said.error);
                g_assert_true(json_is_integer(said.result));
            } else {
                g_autofree char *words =
                    g_strdup_printf(NOT_OF_REST, (guint)rows[i].refused, "OP_NODE_INVITE");
                g_assert_error(said.error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION);
                g_assert_cmpstr(said.error->message, ==, words);
            }
            json_decref(said.result);
            g_clear_error(&said.error);
        }
    }
    struct said many = submit_as(w, "rapi:alice", "SubmitManyJobs", "[[" INVITE "],[" TAGS "]]");
    g_autofree char *words = g_strdup_printf(NOT_OF_REST, 0u, "OP_NODE_INVITE");
    g_assert_no_error(many.error);
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(many.result, 0), 1)), ==,
                    words);
    g_assert_true(json_is_true(json_array_get(json_array_get(many.result, 1), 0)));
    json_decref(many.result);
    for (guint64 id = 1; id <= 4; id++) {
        record_autoptr(job) record = queue_record(w, id);
        g_assert_nonnull(record);
        g_assert_cmpstr(record->user, ==, id == 3 || id == 4 ? "root" : "rapi:alice");
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    queue_case("/submit-rest/opcodes-of-routes#RAP-02", 1, test_users_of_rest);
    return g_test_run();
}

/* The certificate of REST: when another one is asked for, with a master that answers as it is told.
 * daemons/noded/rest_certificate.c */
#include "daemons/noded/rest_certificate.h"

#include <glib/gstdio.h>
#include <string.h>

#include "base/task.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/rapid_place.h"
#include "proto/records.h"

#define NODE "11111111-1111-4111-8111-111111111111"
#define MASTER "22222222-2222-4222-8222-222222222222"
#define PATIENCE_MS 60000
#define SOON_MS 5000u
#define LATER_MS 60000u

static struct member node = {.uuid = NODE, .master_candidate = true};
static GPtrArray *members;
static enum fettle_error refusal; /* 0: it signs */
static guint asked, paused_ms;
static bool pauses;
static char *written;

/* --- what the node knows --- */

const GPtrArray *node_core_members(const struct node_core *core)
{
    return members;
}

const char *node_core_master(const struct node_core *core)
{
    return MASTER;
}

const struct announce_args *node_core_announced(const struct node_core *core)
{
    static const struct announce_args announced = {.cluster_name = "", .master_ip = ""};
    return &announced;
}

void node_core_set_rest_fault(struct node_core *core, const char *text)
{
}

struct stamp node_core_stamp(const struct node_core *core)
{
    return (struct stamp){0};
}

/* --- its environment --- */

static void call(const struct env *env, const struct rpc_call *call, rpc_reply_fn done, void *data)
{
    g_autoptr(GError) error = NULL;
    json_autoptr args = call->args;
    json_autoptr result = json_make("{ss}", "certificate", "signed\n");
    g_assert_cmpstr(call->method, ==, "certify_front_end");
    g_assert_nonnull(strstr(json_string_value(json_object_get(args, "request")), "BEGIN "));
    asked++;
    if (refusal)
        g_set_error(&error, FETTLE_ERROR, (gint)refusal, "the master says so");
    done(error ? NULL : result, error, data);
}

static guint pause_begins(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    paused_ms = ms;
    pauses = true;
    return 1;
}

static void pause_ends(const struct env *env, guint handle)
{
}

static gint64 wall_us(const struct env *env)
{
    return loop_wall_us();
}

static bool file_write(const struct env *env, enum file_area area, const char *name,
                       const char *data, size_t len, GError **error)
{
    g_assert_cmpint(area, ==, FILE_RAPI);
    g_assert_cmpstr(name, ==, "rapi.pem");
    g_free(written);
    written = g_strndup(data, len);
    return true;
}

static const struct env_ops ops = {.call = call,
                                   .timer = pause_begins,
                                   .timer_cancel = pause_ends,
                                   .wall_us = wall_us,
                                   .file_write = file_write};

/* --- what it does --- */

/* A look at how things are, up to the pause after it. */
static guint look(struct rest_certificate *certificate)
{
    pauses = false;
    rest_certificate_kick(certificate);
    g_assert_true(loop_run_until(&pauses, PATIENCE_MS));
    return paused_ms;
}

/* Each time it is asked a key is made, so who has refused is not asked again at once. */
static void test_asks(void)
{
    g_autofree char *root = g_dir_make_tmp("fettle-rest-XXXXXX", NULL);
    g_autoptr(node_paths_t) paths = node_paths_new(root, NULL);
    struct env env = {.ops = &ops, .tasks = task_group_new(), .node_uuid = NODE};
    g_assert_true(files_make_folder(paths->run, 0700, NULL));
    members = g_ptr_array_new();
    g_ptr_array_add(members, &node);
    refusal = FETTLE_ERROR_UNREACHABLE;
    struct rest_certificate *certificate = rest_certificate_new(&env, paths, NULL);
    g_assert_true(loop_run_until(&pauses, PATIENCE_MS));
    g_assert_cmpuint(paused_ms, ==, SOON_MS);
    g_assert_cmpuint(asked, ==, 1);
    /* A master of the version before knows no node that asks. */
    refusal = FETTLE_ERROR_PERMISSION;
    g_assert_cmpuint(look(certificate), ==, LATER_MS);
    refusal = FETTLE_ERROR_PROTOCOL;
    g_assert_cmpuint(look(certificate), ==, LATER_MS);
    refusal = FETTLE_ERROR_TIMEOUT;
    g_assert_cmpuint(look(certificate), ==, SOON_MS);
    g_assert_cmpuint(asked, ==, 4);
    g_assert_null(written);
    refusal = 0;
    g_assert_cmpuint(look(certificate), ==, LATER_MS);
    g_assert_true(g_str_has_prefix(written, "signed\n-----BEGIN "));
    node.master_candidate = false;
    g_assert_cmpuint(look(certificate), ==, LATER_MS);
    g_assert_cmpuint(asked, ==, 5);
    rest_certificate_free(certificate);
    task_group_unref(env.tasks);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_ptr_array_unref(members);
    g_free(written);
    g_assert_cmpint(g_rmdir(paths->run), ==, 0);
    g_assert_cmpint(g_rmdir(root), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rest-certificate/asks", test_asks);
    return g_test_run();
}

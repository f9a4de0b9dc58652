/*
 * Exports of replicas: opening, finding again, refusing.
 */
#include "world.h"

#include "backend/storage/nbd_probe.h"
#include "io/process.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define U "11111111-1111-4111-8111-111111111111"
#define REPLICA "22222222-2222-4222-8222-222222222222"
#define PATIENCE_S 60 /* with what must answer */

/* --- opening and closing --- */

static bool open_generation(struct world_node *node, guint64 history, guint64 generation,
                            const char *address, struct export_target **ret_target, GError **error)
{
    record_autoptr(instance) web1 = world_instance(2, generation);
    return node->storage->ops->export_open(node->storage, history, U, REPLICA, generation,
                                           web1->disks, address, true, ret_target, error);
}

static void assert_same(const struct export_target *a, const struct export_target *b)
{
    json_autoptr one = export_target_to_json(a);
    json_autoptr two = export_target_to_json(b);
    g_assert_true(json_equal(one, two));
}

/* The bytes of a qcow2 file are not those of the disk. */
static void only_raw(void *unused)
{
    struct world_node *node = world_node_new("onlyraw");
    record_autoptr(instance) web1 = world_instance(1, 3);
    struct export_target *none = NULL;
    g_autoptr(GError) error = NULL;
    web1->disk_template = TEMPLATE_FILE;
    ((struct disk *)web1->disks->pdata[0])->format = FORMAT_QCOW2;
    world_create(node, web1, REPLICA);
    g_autofree char *message =
        g_strdup_printf("image %s/disks/" U "." REPLICA
                        ".disk0.qcow2 cannot be exported: only those in format raw can",
                        node->paths->var);
    g_assert_false(node->storage->ops->export_open(node->storage, 1, U, REPLICA, 3, web1->disks,
                                                   "127.0.0.1", true, &none, &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    world_node_free(node);
}

/* While it is exported an image is neither renamed nor resized nor made anew. */
static void exported_is_left_alone(void *unused)
{
    struct world_node *node = world_node_new("alone");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = world_instance(1, 3);
    const char *message = "replica " REPLICA " is exported; close its exports first";
    world_create(node, web1, REPLICA);
    record_autoptr(export_target) target = world_export(node, web1, REPLICA);
    g_assert_nonnull(target);
    for (guint i = 0; i < 5; i++) {
        g_autoptr(GError) error = NULL;
        bool done = i == 0   ? ops->grow(node->storage, U, REPLICA, 0, 9, &error)
                    : i == 1 ? ops->demote(node->storage, U, REPLICA, &error)
                    : i == 2 ? ops->remove(node->storage, U, REPLICA, &error)
                    : i == 3 ? ops->set_aside(node->storage, U, REPLICA, 3, &error)
                             : ops->create(node->storage, U, REPLICA, TEMPLATE_MIRROR, web1->disks,
                                           "", &error);
        g_assert_false(done);
        g_assert_cmpstr(error->message, ==, message);
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    }
    g_autoptr(GError) error = NULL;
    g_assert_true(ops->export_close(node->storage, U, REPLICA, &error));
    g_assert_true(ops->grow(node->storage, U, REPLICA, 0, 9, &error));
    world_node_free(node);
}

static void open_and_close(void *unused)
{
    struct world_node *node = world_node_new("open");
    record_autoptr(instance) web1 = world_instance(2, 3);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, REPLICA);
    record_autoptr(export_target) first = world_export(node, web1, REPLICA);
    g_assert_cmpuint(strlen(first->psk), ==, 64);
    g_assert_cmpstr(((struct export_disk *)first->disks->pdata[1])->name, ==, "1." REPLICA ".3.1");
    g_assert_true(node->storage->ops->probe(node->storage, first, PATIENCE_S * 1000));
    record_autoptr(export_target) again = world_export(node, web1, REPLICA);
    assert_same(first, again);

    struct export_target *none = NULL;
    g_assert_false(open_generation(node, 1, 2, "127.0.0.1", &none, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    g_assert_cmpstr(error->message, ==,
                    "replica " REPLICA
                    " is exported for history 1, generation 3, which is newer than 1, 2");
    g_clear_error(&error);
    g_assert_false(node->storage->ops->promote(node->storage, U, REPLICA, 3, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==, "replica " REPLICA " is exported; close its exports first");
    g_clear_error(&error);

    record_autoptr(export_target) newer = NULL;
    g_assert_true(open_generation(node, 2, 1, "127.0.0.1", &newer, &error)); /* another history */
    g_assert_cmpstr(newer->psk, !=, first->psk);
    g_assert_false(node->storage->ops->probe(node->storage, first, 300));
    g_assert_true(node->storage->ops->probe(node->storage, newer, PATIENCE_S * 1000));
    g_assert_cmpuint(node->exports_ended, ==, 0);

    for (guint twice = 0; twice < 2; twice++)
        g_assert_true(node->storage->ops->export_close(node->storage, U, REPLICA, &error));
    g_assert_cmpuint(world_export_pid(node, web1, REPLICA, 0), ==, 0);
    g_assert_false(node->storage->ops->probe(node->storage, newer, 300));
    g_autofree char *folder = g_build_filename(node->paths->run, "exports", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_assert_cmpstr(g_dir_read_name(dir), ==, NULL); /* no key is left */
    world_node_free(node);
}

static void assert_not_opened(struct world_node *node, const char *address, enum fettle_error code,
                              const char *message)
{
    g_autoptr(GError) error = NULL;
    struct export_target *target = NULL;
    g_assert_false(open_generation(node, 1, 1, address, &target, &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_null(target);
}

static void bad_openings(void *unused)
{
    struct world_node *node = world_node_new("bad");
    record_autoptr(instance) web1 = world_instance(2, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *missing =
        g_strdup_printf("disk 0 of replica " REPLICA " of instance " U " has no image in %s/disks",
                        node->paths->var);
    assert_not_opened(node, "127.0.0.1", FETTLE_ERROR_UNKNOWN_ENTITY, missing);
    world_create(node, web1, REPLICA);
    assert_not_opened(node, "nowhere", FETTLE_ERROR_WRONG_INPUT,
                      "address \"nowhere\" of an export: Name or service not known");
    assert_not_opened(node, "192.0.2.1", FETTLE_ERROR_ENVIRONMENT,
                      "cannot listen on 192.0.2.1 for an export: Cannot assign requested address");
    /* A running guest has the image: neither may have it twice. */
    world_create(node, web1, "");
    world_prepare(node, web1, NULL);
    g_autofree char *primary = g_strdup_printf("%s/disks/" U ".disk1.raw", node->paths->var);
    g_autofree char *replica =
        g_strdup_printf("%s/disks/" U "." REPLICA ".disk1.raw", node->paths->var);
    g_assert_cmpint(unlink(replica), ==, 0);
    g_assert_cmpint(link(primary, replica), ==, 0);
    g_autofree char *in_use = g_strdup_printf(
        "export of %s does not start: %s: is in use by another process", replica, replica);
    struct export_target *target = NULL;
    g_assert_false(open_generation(node, 1, 1, "127.0.0.1", &target, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_cmpstr(error->message, ==, in_use);
    g_assert_cmpuint(world_export_pid(node, web1, REPLICA, 0), ==, 0); /* all or none */
    g_clear_error(&error);
    g_assert_true(node->hypervisor->ops->kill(node->hypervisor, U, 1, &error));
    record_autoptr(export_target) opened = world_export(node, web1, REPLICA);
    g_assert_nonnull(opened);
    world_prepare(node, web1, &error); /* and the other way round */
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR);
    g_assert_nonnull(strstr(error->message, "lock"));
    world_node_free(node);
}

static void missing_plugin(void *unused)
{
    struct world_node *node = world_node_new("plugin");
    record_autoptr(instance) web1 = world_instance(2, 1);
    world_create(node, web1, REPLICA);
    g_assert_true(g_setenv("FETTLE_LIBEXEC_DIR", "/nowhere", TRUE));
    assert_not_opened(node, "127.0.0.1", FETTLE_ERROR_ENVIRONMENT,
                      "the nbdkit plugin /nowhere/fettle-failstop.so is missing");
    g_unsetenv("FETTLE_LIBEXEC_DIR");
    world_node_free(node);
}

static void closed_folder(void *unused)
{
    struct world_node *node = world_node_new("shut");
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autoptr(GError) error = NULL;
    struct export_target *target = NULL;
    world_create(node, web1, REPLICA);
    g_assert_cmpint(chmod(node->paths->run, 0700), ==, 0);
    g_assert_false(node->storage->ops->export_open(node->storage, 1, U, REPLICA, 1, web1->disks,
                                                   "127.0.0.1", true, &target, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_autofree char *expected =
        g_strdup_printf("folder %s lets user 12345670?*, as which guests run, not pass to "
                        "%s/exports/" REPLICA ".psk; add the mode o+x to it",
                        node->paths->run, node->paths->run);
    g_assert_true(g_pattern_match_simple(expected, error->message));
    world_node_free(node);
}

static void unprivileged(void *unused)
{
    struct world_node *node = world_node_new("user");
    record_autoptr(instance) web1 = world_instance(1, 1);
    world_create(node, web1, REPLICA);
    record_autoptr(export_target) target = world_export(node, web1, REPLICA);
    g_assert_nonnull(target);
    world_assert_unprivileged(world_export_pid(node, web1, REPLICA, 0));
    world_node_free(node);
}

static struct export_target *open_lazily(struct world_node *node, const struct instance *instance)
{
    g_autoptr(GError) error = NULL;
    struct export_target *target = NULL;
    node->storage->ops->export_open(node->storage, 1, U, REPLICA, instance->generation,
                                    instance->disks, "127.0.0.1", false, &target, &error);
    g_assert_no_error(error);
    return target;
}

static void assert_not_settled(struct world_node *node, const struct export_target *target,
                               enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(node->storage->ops->export_settle(node->storage, target, &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
}

/* Only the very opening that is asked about may answer, and only if all of its exports do. */
static void settling(void *unused)
{
    struct world_node *node = world_node_new("settle");
    const struct storage_ops *ops = node->storage->ops;
    const char *closed =
        "the exports of replica " REPLICA " that this mirror was attached to are closed";
    record_autoptr(instance) web1 = world_instance(2, 3);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, REPLICA);
    record_autoptr(export_target) first = open_lazily(node, web1);
    for (guint twice = 0; twice < 2; twice++)
        g_assert_true(ops->export_settle(node->storage, first, &error));
    /* Found again by another node daemon, which does not know how it was opened. */
    world_node_free(node);
    node = world_node_new("settle");
    g_autoptr(GPtrArray) reports = ops->export_rediscover(node->storage, &error);
    g_assert_cmpuint(reports->len, ==, 1);
    g_assert_true(ops->export_settle(node->storage, first, &error));
    record_autoptr(export_target) durable = world_export(node, web1, REPLICA);
    assert_same(first, durable);

    g_assert_true(ops->export_close(node->storage, U, REPLICA, &error));
    assert_not_settled(node, first, FETTLE_ERROR_WRONG_STATE, closed);
    record_autoptr(export_target) second = open_lazily(node, web1);
    assert_not_settled(node, first, FETTLE_ERROR_WRONG_STATE, closed);
    /* A disk that does not answer: nothing is said for the others either. */
    pid_t pid = (pid_t)world_export_pid(node, web1, REPLICA, 1);
    g_autofree char *control = g_strdup_printf("%s/exports/" REPLICA ".ctl1", node->paths->run);
    g_assert_cmpint(unlink(control), ==, 0);
    assert_not_settled(node, second, FETTLE_ERROR_STORAGE,
                       "the exports of replica " REPLICA
                       " have not said within 20000 ms that everything is on stable storage; "
                       "nothing is promised, ask again");
    kill(pid, SIGKILL);
    while (node->exports_ended == 0)
        loop_sleep(5);
    assert_not_settled(node, second, FETTLE_ERROR_WRONG_STATE, closed);
    world_node_free(node);
}

/* A copy through TLS is as fast as the processor allows: see export.c. */
static void cheap_cipher(void *unused)
{
    struct world_node *node = world_node_new("cipher");
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autofree char *cpu = NULL, *variables = NULL;
    gsize len = 0;
    world_create(node, web1, REPLICA);
    record_autoptr(export_target) target = world_export(node, web1, REPLICA);
    g_assert_nonnull(target);
    g_assert_true(g_file_get_contents("/proc/cpuinfo", &cpu, NULL, NULL));
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/environ",
                                            world_export_pid(node, web1, REPLICA, 0));
    g_assert_true(g_file_get_contents(path, &variables, &len, NULL));
    g_autofree char *wanted =
        g_strdup_printf("GNUTLS_SYSTEM_PRIORITY_FILE=%s/exports/" REPLICA ".tls", node->paths->run);
    bool helps = strstr(cpu, " aes ") != NULL;
    g_assert_true((memmem(variables, len, wanted, strlen(wanted)) != NULL) == helps);
    world_node_free(node);
}

/* --- dying and being found --- */

static void found_again(void *unused)
{
    struct world_node *node = world_node_new("again");
    record_autoptr(instance) web1 = world_instance(2, 4);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, REPLICA);
    record_autoptr(export_target) before = world_export(node, web1, REPLICA);
    world_node_free(node);
    node = world_node_new("again");
    g_autoptr(GPtrArray) reports = node->storage->ops->export_rediscover(node->storage, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(reports->len, ==, 1);
    record_autoptr(export_target) after = world_export(node, web1, REPLICA);
    assert_same(before, after);
    world_node_free(node);

    /* One of two died meanwhile: nothing is found, and the other does not stay. */
    node = world_node_new("again");
    guint64 pid = world_export_pid(node, web1, REPLICA, 1);
    kill((pid_t)pid, SIGKILL);
    world_await_gone(pid);
    g_autoptr(GPtrArray) none = node->storage->ops->export_rediscover(node->storage, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(none->len, ==, 0);
    g_assert_cmpuint(world_export_pid(node, web1, REPLICA, 0), ==, 0);
    world_node_free(node);
}

static void damaged_state(void *unused)
{
    static const char *const damaged[][2] = {
        {"{", "broken JSON at byte 1 (line 1)"},
        {"[]", "format, instance, history, generation, target or processes is wrong"},
        {"{\"format\":2,\"instance\":\"" U
         "\",\"history\":1,\"generation\":1,\"target\":{},\"processes\":[]}",
         "format, instance, history, generation, target or processes is wrong"},
        {"{\"format\":1,\"instance\":\"" U
         "\",\"history\":1,\"generation\":1,\"target\":{},\"processes\":[]}",
         "replica: "},
    };
    struct world_node *node = world_node_new("damaged");
    g_autofree char *path = g_build_filename(node->paths->run, "exports", REPLICA ".json", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(damaged); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(g_file_set_contents(path, damaged[i][0], -1, NULL));
        g_assert_null(node->storage->ops->export_rediscover(node->storage, &error));
        g_test_message("%s", error->message);
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_true(g_str_has_prefix(error->message, path));
        g_assert_nonnull(strstr(error->message, damaged[i][1]));
        g_assert_true(
            g_str_has_suffix(error->message, "; end its nbdkit processes and remove the file"));
    }
    world_node_free(node);
}

static void probing(void *unused)
{
    json_autoptr json =
        json_make("{s:s,s:s,s:s,s:[{s:i,s:s}]}", "replica", REPLICA, "address", "127.0.0.1", "psk",
                  "00000000000000000000000000000000", "disks", "port", 1, "name", "x");
    record_autoptr(export_target) target = export_target_parse(json, RECORD_LAX, NULL);
    struct export_disk *disk = target->disks->pdata[0];
    g_assert_false(nbd_probe(target, 1000)); /* nobody listens */
    /* Somebody who says nothing, and then something else. */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(listener, (struct sockaddr *)&address, len), ==, 0);
    g_assert_cmpint(listen(listener, 5), ==, 0);
    g_assert_cmpint(getsockname(listener, (struct sockaddr *)&address, &len), ==, 0);
    disk->port = ntohs(address.sin_port);
    g_assert_false(nbd_probe(target, 200));
    g_free(target->address);
    target->address = g_strdup("not an address");
    g_assert_false(nbd_probe(target, 200));
    close(listener);
}

static void add_tests(void)
{
    world_test("/export/only-raw", only_raw);
    world_test("/export/what-is-exported-is-left-alone", exported_is_left_alone);
    world_test("/export/open-again-newer-older-close#SAF-14,SAF-16,SAF-20", open_and_close);
    world_test("/export/bad-openings#SAF-14", bad_openings);
    world_test("/export/missing-plugin", missing_plugin);
    world_test("/export/unreachable-key", closed_folder);
    world_test("/export/unprivileged", unprivileged);
    world_test("/export/found-after-restart#SAF-19", found_again);
    world_test("/export/damaged-state", damaged_state);
    world_test("/export/probe-needs-a-greeting#SAF-15", probing);
    world_test("/export/settles-the-very-opening#SAF-12,SAF-14", settling);
    world_test("/export/cheap-cipher", cheap_cipher);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

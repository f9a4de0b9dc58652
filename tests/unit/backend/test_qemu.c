/*
 * The QEMU driver on real guests without mirrors: starting, stopping, finding again.
 */
#include "world.h"

#include "backend/hypervisor/qemu_private.h"
#include "backend/storage/disk_images.h"
#include "helper/patience.h"
#include "io/files.h"
#include "io/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char *self; /* this program's file */

/* --- starting and stopping --- */

static void start_and_kill(void *unused)
{
    struct world_node *node = world_node_new("start");
    struct hypervisor *hv = node->hypervisor;
    record_autoptr(instance) web1 = world_instance(1, 4);
    record_autoptr(instance) other = world_instance(1, 5);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    g_assert_cmpint(world_state(node, web1), ==, GUEST_ABSENT);
    world_prepare(node, web1, NULL);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_PREPARED);
    loop_sleep(400); /* longer than a boot */
    g_assert_cmpint(world_printed(node, web1), ==, 0);

    world_prepare(node, web1, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ALREADY_EXISTS);
    g_assert_cmpstr(error->message, ==, "guest web1 of generation 4 is there already");
    g_clear_error(&error);
    world_prepare(node, other, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    g_assert_cmpstr(error->message, ==,
                    "guest web1 of generation 4 is there; 5 cannot be started beside it");
    g_clear_error(&error);

    g_assert_false(hv->ops->run(hv, web1->uuid, 5, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    g_assert_cmpstr(error->message, ==, "guest web1 is of generation 4, not 5");
    g_clear_error(&error);
    g_assert_false(hv->ops->kill(hv, web1->uuid, 3, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    g_clear_error(&error);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_PREPARED);

    world_go(node, web1, 3);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_RUNNING);
    g_assert_true(hv->ops->pause(hv, web1->uuid, 4, &error));
    g_assert_cmpint(world_state(node, web1), ==, GUEST_PAUSED);
    g_assert_true(world_is_frozen(node, web1));
    g_assert_true(hv->ops->run(hv, web1->uuid, 4, &error));
    g_assert_true(world_await_count(node, web1, world_printed(node, web1)));
    g_assert_true(hv->ops->reset(hv, web1->uuid, 4, &error));
    g_assert_true(world_await_count(node, web1, world_printed(node, web1)));

    guint64 pid = world_guest_pid(node, web1);
    g_assert_cmpuint(pid, !=, 0);
    g_assert_cmpuint(node->exited, ==, 0);
    world_end(node, web1);
    g_assert_cmpuint(node->exited, ==, 1);
    g_assert_cmpuint(process_read_start_ticks(pid), ==, 0);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_ABSENT);
    world_end(node, web1);
    g_assert_no_error(error);
    world_assert_whole(node, web1, "", node);
    world_node_free(node);
}

/* Whether the first disk's image is written past this host's memory. */
static bool is_direct(const struct world_node *node, const struct instance *web1)
{
    g_autoptr(GError) error = NULL;
    json_autoptr all = world_monitor(node, web1, "query-named-block-nodes", NULL, &error);
    const json_t *direct = NULL;
    size_t i;
    json_t *found;
    g_assert_no_error(error);
    json_array_foreach(all, i, found)
        if (strcmp(json_string_value(json_object_get(found, "node-name")), "d0f") == 0)
            direct = json_object_get(json_object_get(found, "cache"), "direct");
    g_assert_true(json_is_boolean(direct));
    return json_is_true(direct);
}

/* Whether it is remembered which file its first image is, for which the daemon's loop asks. */
static bool is_remembered(const struct world_node *node, const struct instance *web1)
{
    g_autofree char *path =
        g_build_filename(node->paths->run, "guests", web1->uuid, "state.json", NULL);
    json_autoptr state = json_load_file(path, 0, NULL);
    const json_t *images = json_object_get(json_object_get(state, "incremental"), "images");
    g_assert_cmpuint(json_array_size(images), ==, 1);
    return json_integer_value(json_array_get(json_array_get(images, 0), 1)) != 0;
}

/* Another node that takes over what both reach finds all of it there. */
static void shared_is_not_cached(struct world_node *node, struct instance *web1)
{
    static const enum disk_template templates[] = {TEMPLATE_FILE, TEMPLATE_SHAREDFILE};
    world_create(node, web1, "");
    for (guint i = 0; i < G_N_ELEMENTS(templates); i++) {
        web1->disk_template = templates[i];
        world_prepare(node, web1, NULL);
        g_assert_true(is_direct(node, web1) == (templates[i] == TEMPLATE_SHAREDFILE));
        g_assert_true(is_remembered(node, web1) == (templates[i] == TEMPLATE_FILE));
        world_end(node, web1);
    }
}

/* --- display --- */

#define PORT 11007

static void give_display(struct instance *web1)
{
    g_free(web1->vnc_bind_address);
    web1->vnc_bind_address = g_strdup("127.0.0.1");
    web1->network_port = PORT;
}

/* A socket at the display's port: connected, or listening. */
static int socket_at_display(bool listening)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), ==, 0);
    g_assert_cmpint((listening ? bind : connect)(fd, (struct sockaddr *)&at, sizeof at), ==, 0);
    if (listening)
        g_assert_cmpint(listen(fd, 1), ==, 0);
    return fd;
}

/* A prepared guest stands still, and greets all the same: the display is QEMU's. */
static void display(struct world_node *node, struct instance *web1)
{
    char greeting[13] = "";
    give_display(web1);
    world_make(node, web1);
    int fd = socket_at_display(false);
    g_assert_cmpint(recv(fd, greeting, 12, MSG_WAITALL), ==, 12);
    g_assert_cmpstr(greeting, ==, "RFB 003.008\n");
    world_end(node, web1);
    close(fd);
    /* At once again, although the connection still lingers. */
    world_prepare(node, web1, NULL);
    world_end(node, web1);
}

static void display_taken(struct world_node *node, struct instance *web1)
{
    g_autoptr(GError) error = NULL;
    give_display(web1);
    world_create(node, web1, "");
    int fd = socket_at_display(true);
    world_prepare(node, web1, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_cmpstr(error->message, ==,
                    "another process of this host listens on port 11007, where its "
                    "display has to be; end that process (ss -ltnp shows it), or give the instance "
                    "another port while it is stopped: fettle instance modify --network-port PORT "
                    "web1");
    g_assert_cmpint(world_state(node, web1), ==, GUEST_ABSENT);
    g_autofree char *left = g_build_filename(node->paths->run, "guests", web1->uuid, NULL);
    g_assert_false(g_file_test(left, G_FILE_TEST_EXISTS));
    close(fd);
    world_prepare(node, web1, NULL);
    g_clear_error(&error);
    world_end(node, web1);
}

static void powerdown(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    world_make(node, web1);
    world_go(node, web1, 0);
    g_assert_true(hv->ops->powerdown(hv, web1->uuid, 1, &error));
    for (guint i = 0; node->shutdowns == 0 && i < 3000; i++)
        loop_sleep(20);
    g_assert_cmpuint(node->shutdowns, ==, 1);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_SHUTDOWN);
    g_assert_cmpuint(node->exited, ==, 0);
    world_end(node, web1);
}

/* --- what does not start --- */

static void image_lock(void *unused)
{
    struct world_node *node = world_node_new("lock");
    struct world_node *twin = world_node_new("lock-twin");
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autoptr(GError) error = NULL;
    world_make(node, web1);
    /* Another node daemon that knows nothing of the first, on the same image. */
    g_autoptr(GPtrArray) images =
        node->storage->ops->files(node->storage, web1->uuid, "", 1, &error);
    struct guest_spec spec = {.instance = web1, .images = images, .accelerator = ACCEL_TCG};
    g_assert_false(twin->hypervisor->ops->prepare(twin->hypervisor, &spec, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR);
    g_assert_nonnull(strstr(error->message, "Failed to get \"write\" lock"));
    g_assert_cmpuint(world_guest_pid(twin, web1), ==, 0);
    g_assert_cmpuint(twin->exited, ==, 0);
    g_clear_error(&error);
    /* And it leaves nothing that would hinder a later start. */
    world_end(node, web1);
    g_assert_true(twin->hypervisor->ops->prepare(twin->hypervisor, &spec, &error));
    world_end(twin, web1);
    world_node_free(node);
    world_node_free(twin);
}

static void bad_machine(struct world_node *node, struct instance *web1)
{
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    g_free(web1->machine_type);
    web1->machine_type = g_strdup("pc,accel=kvm");
    world_prepare(node, web1, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(
        error->message, ==,
        "machine type \"pc,accel=kvm\": letters, digits, dot, dash and plus are allowed");
    g_clear_error(&error);
    g_free(web1->machine_type);
    web1->machine_type = g_strdup("pc-i440fx-77.1");
    world_prepare(node, web1, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR);
    g_assert_nonnull(strstr(error->message, "guest web1: QEMU does not start: "));
    g_assert_nonnull(strstr(error->message, "unsupported machine type"));
    g_assert_cmpint(world_state(node, web1), ==, GUEST_ABSENT);
}

static void unprivileged(struct world_node *node, struct instance *web1)
{
    world_make(node, web1);
    guint64 pid = world_guest_pid(node, web1);
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/status", pid);
    g_autofree char *status = NULL;
    g_assert_true(g_file_get_contents(path, &status, NULL, NULL));
    g_assert_nonnull(strstr(status, "Seccomp:\t2"));
    world_assert_unprivileged(pid);
    g_autofree char *line = world_command_line(node, web1);
    g_assert_null(strstr(line, "kvm"));
    world_end(node, web1);
}

static void accelerator(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *result = g_build_filename(node->paths->run, "accelerator.json", NULL);
    world_make(node, web1); /* tcg is taken without a trial */
    g_assert_false(g_file_test(result, G_FILE_TEST_EXISTS));
    world_end(node, web1);

    g_autoptr(GPtrArray) images =
        node->storage->ops->files(node->storage, web1->uuid, "", 1, &error);
    struct guest_spec spec = {.instance = web1, .images = images};
    hv->ops->prepare(hv, &spec, &error);
    g_assert_no_error(error);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(result, &text, NULL, NULL));
    g_autofree char *line = world_command_line(node, web1);
    g_assert_nonnull(
        strstr(line, strstr(text, "\"kvm\":true") != NULL ? "-accel kvm" : "-accel tcg"));
    world_go(node, web1, 0);
    world_end(node, web1);
}

/* --- dying and being found --- */

/* What QEMU says when it ends is told, unless it was ended by us. */
static void last_words(struct world_node *node, struct instance *web1)
{
    world_make(node, web1);
    kill((pid_t)world_guest_pid(node, web1), SIGTERM);
    for (guint i = 0; node->exited == 0 && i < 3000; i++)
        loop_sleep(10);
    g_assert_cmpuint(node->exited, ==, 1);
    g_assert_nonnull(strstr(node->said, "terminating on signal 15"));
    web1->generation = 2;
    world_prepare(node, web1, NULL);
    world_end(node, web1);
    g_assert_cmpuint(node->exited, ==, 2);
    g_assert_cmpstr(node->said, ==, "");
}

static void killed_by_others(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    world_make(node, web1);
    world_go(node, web1, 5);
    kill((pid_t)world_guest_pid(node, web1), SIGKILL);
    for (guint i = 0; node->exited == 0 && i < 3000; i++)
        loop_sleep(10);
    g_assert_cmpuint(node->exited, ==, 1);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_ABSENT);
    g_assert_false(hv->ops->run(hv, web1->uuid, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);
}

/* The part of another node daemon: starts a guest and waits to be killed. */
static void first_daemon(void *unused)
{
    struct world_node *node = world_node_new("again");
    record_autoptr(instance) web1 = world_instance(1, 7);
    world_start(node, web1);
    loop_sleep(600000);
}

static struct process *start_first_daemon(void)
{
    const char *argv[] = {self, "first-daemon", NULL};
    struct process_options options = {.argv = argv};
    struct process *daemon = process_spawn(&options, NULL);
    g_assert_nonnull(daemon);
    return daemon;
}

static void found_again(void *unused)
{
    struct world_node *node = world_node_new("again");
    struct process *daemon = start_first_daemon();
    struct hypervisor *hv = node->hypervisor;
    record_autoptr(instance) web1 = world_instance(1, 7);
    g_autoptr(GError) error = NULL;
    g_assert_true(world_await_count(node, web1, 3));
    loop_sleep(200);
    g_assert_true(process_kill(daemon, &error));
    process_free(daemon);

    g_assert_true(world_await_count(node, web1, world_printed(node, web1))); /* it does not mind */
    g_autoptr(GPtrArray) reports = hv->ops->rediscover(hv, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(reports->len, ==, 1);
    const struct guest_report *report = reports->pdata[0];
    g_assert_cmpstr(report->instance, ==, web1->uuid);
    g_assert_cmpuint(report->generation, ==, 7);
    g_assert_cmpint(report->state, ==, GUEST_RUNNING);
    g_assert_cmpint(report->mirror, ==, MIRROR_NONE);
    g_assert_cmpuint(report->memory, ==, 4);
    world_prepare(node, web1, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ALREADY_EXISTS);
    g_clear_error(&error);
    g_assert_true(hv->ops->pause(hv, web1->uuid, 7, &error));
    g_assert_cmpint(world_state(node, web1), ==, GUEST_PAUSED);
    g_assert_cmpuint(node->exited, ==, 0);
    world_end(node, web1);
    g_assert_cmpuint(node->exited, ==, 1);
    g_autoptr(GPtrArray) none = hv->ops->rediscover(hv, &error);
    g_assert_cmpuint(none->len, ==, 0);
    world_node_free(node);
}

/* The daemon died between starting QEMU and writing down its pid. */
static void found_without_pid(void *unused)
{
    struct world_node *node = world_node_new("nopid");
    record_autoptr(instance) web1 = world_instance(1, 2);
    g_autoptr(GError) error = NULL;
    world_make(node, web1);
    g_autofree char *path =
        g_build_filename(node->paths->run, "guests", web1->uuid, "state.json", NULL);
    json_autoptr state = json_load_file(path, 0, NULL);
    json_object_set_new(state, "pid", json_integer(0));
    json_object_set_new(state, "start", json_integer(0));
    g_assert_cmpint(json_dump_file(state, path, 0), ==, 0);
    world_node_free(node);

    node = world_node_new("nopid");
    g_autoptr(GPtrArray) reports = node->hypervisor->ops->rediscover(node->hypervisor, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(reports->len, ==, 1);
    g_assert_cmpint(((struct guest_report *)reports->pdata[0])->state, ==, GUEST_PREPARED);
    world_end(node, web1);
    g_assert_cmpuint(world_guest_pid(node, web1), ==, 0);
    world_node_free(node);
}

static void dead_and_damaged_state(void *unused)
{
    struct world_node *node = world_node_new("damaged");
    struct hypervisor *hv = node->hypervisor;
    record_autoptr(instance) web1 = world_instance(1, 2);
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_build_filename(node->paths->run, "guests", web1->uuid, NULL);
    g_autofree char *path = g_build_filename(folder, "state.json", NULL);
    g_mkdir_with_parents(folder, 0711);
    /* Its pid is ours by now, its start time is not. */
    g_autofree char *dead = g_strdup_printf(
        "{\"format\":1,\"name\":\"web1\",\"generation\":2,\"memory\":4,\"disks\":1,"
        "\"pid\":%d,\"start\":1,\"attachment\":0,\"mirrored\":false,\"replica\":\"\"}",
        (int)getpid());
    g_assert_true(g_file_set_contents(path, dead, -1, NULL));
    GPtrArray *reports = hv->ops->rediscover(hv, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(reports->len, ==, 0);
    g_ptr_array_unref(reports);
    g_assert_false(g_file_test(folder, G_FILE_TEST_EXISTS));

    g_mkdir_with_parents(folder, 0711);
    g_assert_true(g_file_set_contents(path, "{\"format\":1,\"name\":\"web1\"}", -1, NULL));
    g_assert_null(hv->ops->rediscover(hv, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_autofree char *expected =
        g_strdup_printf("%s/guests/%s/state.json: a field is missing or out of range; end its "
                        "QEMU process and remove the folder",
                        node->paths->run, web1->uuid);
    g_assert_cmpstr(error->message, ==, expected);
    world_node_free(node);
}

static void host(void *unused)
{
    struct world_node *node = world_node_new("host");
    guint64 total = 0, available = 0;
    guint cpus = 0;
    g_assert_true(node->hypervisor->ops->host(node->hypervisor, &total, &available, &cpus));
    g_assert_cmpuint(total, >=, available);
    g_assert_cmpuint(available, >, 0);
    g_assert_cmpuint(cpus, ==, g_get_num_processors());
    world_node_free(node);
}

/* --- volumes --- */

/* A guest without ACPI gives a device up when it is reset; QEMU has finished with it a little
 * later. Each time: that is when the volume's data may be another's. */
static void volume_comes_and_goes(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(world_folder(), "a-volume", NULL);
    struct guest_volume volume = {.volume = (char *)"eeeeeeee-1111-4000-8000-000000000001",
                                  .attachment = (char *)"ffffffff-0000-4000-8000-000000000001",
                                  .path = path,
                                  .conf = (char *)"",
                                  .clients = (char *)"",
                                  .slot = 30};
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_cmpint(truncate(path, 1 << 20), ==, 0);
    world_make(node, web1);
    world_go(node, web1, 3);
    for (guint i = 0; i < 12; i++) {
        bool gone = true;
        g_assert_true(hv->ops->volume_attach(hv, web1->uuid, 1, &volume, &error));
        g_assert_true(hv->ops->volume_detach(hv, web1->uuid, 1, &volume, 0, &gone, &error));
        g_assert_false(gone);
        g_assert_true(hv->ops->reset(hv, web1->uuid, 1, &error));
        for (guint tries = 0; tries < 10 && !gone; tries++)
            g_assert_true(hv->ops->volume_detach(hv, web1->uuid, 1, &volume, 2000, &gone, &error));
        g_assert_true(gone);
    }
    g_assert_no_error(error);
    world_end(node, web1);
}

/* QEMU cuts a file to what it is told; what is late, or comes again, is told to it no more, and
 * what another has made larger meanwhile stays so. */
static void volume_grows(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(world_folder(), "a-growing-volume", NULL);
    struct guest_volume volume = {.volume = (char *)"eeeeeeee-1111-4000-8000-000000000001",
                                  .attachment = (char *)"eeeeeeee-2222-4000-8000-000000000001",
                                  .path = path,
                                  .conf = (char *)"",
                                  .clients = (char *)"",
                                  .slot = 30};
    static const struct {
        guint file, told, becomes;
    } steps[] = {{2, 2, 2}, {5, 3, 3}, {5, 5, 5}, {5, 3, 5}, {7, 5, 7}, {7, 7, 7}};
    world_make(node, web1);
    world_go(node, web1, 3);
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        struct stat status;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(fallocate(fd, 0, (off_t)MIB(steps[i].file) - 1, 1), ==, 0);
        g_assert_true(i > 0 || hv->ops->volume_attach(hv, web1->uuid, 1, &volume, &error));
        g_assert_no_error(error);
        g_assert_true(
            hv->ops->volume_resize(hv, web1->uuid, 1, &volume, MIB(steps[i].told), &error));
        g_assert_no_error(error);
        g_assert_cmpint(fstat(fd, &status), ==, 0);
        g_assert_cmpuint((guint64)status.st_size, ==, MIB(steps[i].becomes));
        close(fd);
    }
    world_end(node, web1);
}

/* The volume that the next tests copy, and the file that it is copied into. */
static struct guest_volume copied = {.volume = (char *)"eeeeeeee-1111-4000-8000-000000000001",
                                     .attachment = (char *)"eeeeeeee-3333-4000-8000-000000000001",
                                     .conf = (char *)"",
                                     .clients = (char *)"",
                                     .slot = 30};

static char *make_file(const char *name, guint mib)
{
    char *path = g_build_filename(world_folder(), name, NULL);
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_cmpint(truncate(path, (off_t)MIB(mib)), ==, 0);
    return path;
}

static json_t *ask_qemu(struct world_node *node, const struct instance *web1, const char *command,
                        json_t *arguments)
{
    g_autoptr(GError) error = NULL;
    guest_autoptr guest =
        guest_find((struct qemu *)node->hypervisor, web1->uuid, web1->generation, &error);
    g_assert_no_error(error);
    json_t *answer = guest_execute(guest, command, arguments, 5000, &error);
    g_assert_no_error(error);
    return answer;
}

/* As its guest would, through what its device has. */
static void write_as_guest(struct world_node *node, const struct instance *web1, const char *line)
{
    g_autofree char *command =
        g_strdup_printf("qemu-io -d /machine/peripheral/" VOLUME_DRIVE "/virtio-backend \"%s\"",
                        copied.attachment, line);
    json_autoptr said =
        ask_qemu(node, web1, "human-monitor-command", json_make("{s:s}", "command-line", command));
    g_assert_null(strstr(json_string_value(said), "rror"));
}

static enum point_state await_copied(struct hypervisor *hv, const struct instance *web1,
                                     guint64 claim, char **ret_why)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(point_status) status = point_status_new();
    do
        g_assert_true(hv->ops->point_look(hv, web1->uuid, 1, claim, status, &error));
    while (status->state == POINT_COPYING && loop_sleep(20));
    if (ret_why)
        *ret_why = g_strdup(status->why);
    return status->state;
}

/* Of the copy nothing is left in QEMU, and the guest's writes go where they belong. */
static void assert_gone(struct world_node *node, const struct instance *web1, const char *target)
{
    json_autoptr nodes =
        ask_qemu(node, web1, "query-named-block-nodes", json_make("{s:b}", "flat", 1));
    json_autoptr jobs = ask_qemu(node, web1, "query-jobs", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_cmpuint(json_array_size(jobs), ==, 0);
    for (size_t i = 0; i < json_array_size(nodes); i++)
        g_assert_false(
            json_string_value(json_object_get(json_array_get(nodes, i), "node-name"))[0] == 'p');
    g_assert_true(images_check_unused(target, &error));
    g_assert_no_error(error);
}

static void close_point(struct world_node *node, const struct instance *web1, guint64 claim)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    bool gone = false;
    for (guint tries = 0; tries < 10 && !gone; tries++)
        g_assert_true(hv->ops->point_close(hv, web1->uuid, 1, &copied, claim, 2000, &gone, &error));
    g_assert_no_error(error);
    g_assert_true(gone);
}

static char byte_at(const char *path, guint64 at)
{
    char byte = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(pread(fd, &byte, 1, (off_t)at), ==, 1);
    close(fd);
    return byte;
}

static guint64 blocks_of(const char *path)
{
    struct stat status;
    g_assert_cmpint(stat(path, &status), ==, 0);
    return (guint64)status.st_blocks;
}

/* What the guest writes after the moment is in the volume, and not in the copy, which has the
 * volume's holes; asked for again it is under way already; nothing is left of it, and the next one
 * is of another moment. */
static void point_in_time(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = make_file("copied-volume", 64), *target = make_file("copy", 96);
    copied.path = path;
    world_make(node, web1);
    world_go(node, web1, 3);
    g_assert_true(hv->ops->volume_attach(hv, web1->uuid, 1, &copied, &error));
    write_as_guest(node, web1, "write -P 1 0 1M");
    write_as_guest(node, web1, "write -P 1 30M 33M");
    write_as_guest(node, web1, "write -P 1 63M 1M");
    for (guint64 claim = 7; claim < 9; claim++) {
        for (guint i = 0; i < 2; i++)
            g_assert_true(hv->ops->point_open(hv, web1->uuid, 1, &copied, claim, target, &error));
        g_assert_no_error(error);
        write_as_guest(node, web1, claim == 7 ? "write -P 2 0 1M" : "write -P 3 0 1M");
        write_as_guest(node, web1, claim == 7 ? "write -P 2 63M 1M" : "write -P 3 63M 1M");
        g_assert_cmpint(await_copied(hv, web1, claim, NULL), ==, POINT_COPIED);
        g_assert_cmpint(byte_at(target, 0), ==, claim == 7 ? 1 : 2);
        g_assert_cmpint(byte_at(target, MIB(63)), ==, claim == 7 ? 1 : 2);
        g_assert_cmpint(byte_at(target, MIB(30)), ==, 1);
        g_assert_cmpuint(blocks_of(target), <, MIB(40) / 512);
        close_point(node, web1, claim);
        assert_gone(node, web1, target);
        g_assert_cmpint(byte_at(path, MIB(63)), ==, claim == 7 ? 2 : 3);
        g_assert_cmpint(await_copied(hv, web1, claim, NULL), ==, POINT_NONE);
        close_point(node, web1, claim);
    }
    world_end(node, web1);
}

/* What a guest may only read its device refuses to write, whether it came to the guest or the guest
 * began with it; and it can be copied as any other. */
static void only_read(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = make_file("a-read-volume", 4), *target = make_file("copy-of-it", 4);
    struct guest_volume volume = copied;
    volume.path = path;
    volume.readonly = true;
    world_make(node, web1);
    world_go(node, web1, 3);
    g_assert_true(hv->ops->volume_attach(hv, web1->uuid, 1, &volume, &error));
    g_assert_no_error(error);
    g_autofree char *command = g_strdup_printf("qemu-io -d /machine/peripheral/" VOLUME_DRIVE
                                               "/virtio-backend \"write -P 1 0 1M\"",
                                               copied.attachment);
    json_autoptr said =
        ask_qemu(node, web1, "human-monitor-command", json_make("{s:s}", "command-line", command));
    g_assert_cmpstr(json_string_value(said), ==, "Block node is read-only\r\n");
    g_assert_cmpint(byte_at(path, 0), ==, 0);
    g_assert_true(hv->ops->point_open(hv, web1->uuid, 1, &volume, 21, target, &error));
    g_assert_no_error(error);
    g_assert_cmpint(await_copied(hv, web1, 21, NULL), ==, POINT_COPIED);
    close_point(node, web1, 21);
    assert_gone(node, web1, target);
    world_end(node, web1);
}

/* One that is ended in the middle, or cannot begin, leaves nothing, and the guest's writes land. */
static void point_ends_early(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = make_file("copied-volume-2", 64), *target = make_file("copy-2", 64);
    copied.path = path;
    world_make(node, web1);
    world_go(node, web1, 3);
    g_assert_true(hv->ops->volume_attach(hv, web1->uuid, 1, &copied, &error));
    write_as_guest(node, web1, "write -P 1 0 64M");
    g_assert_true(hv->ops->point_open(hv, web1->uuid, 1, &copied, 11, target, &error));
    close_point(node, web1, 11);
    assert_gone(node, web1, target);
    write_as_guest(node, web1, "write -P 2 0 64M");
    g_assert_cmpint(byte_at(path, MIB(5)), ==, 2);
    g_assert_false(hv->ops->point_open(hv, web1->uuid, 1, &copied, 12, "/nowhere/12", &error));
    g_assert_nonnull(error);
    assert_gone(node, web1, target);
    write_as_guest(node, web1, "write -P 3 0 64M");
    g_assert_cmpint(byte_at(path, MIB(5)), ==, 3);
    world_end(node, web1);
}

/* Who looks between the end of a copy that was given up and its dismissal sees no failure. */
static void point_given_up(struct world_node *node, struct instance *web1)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = make_file("copied-volume-3", 64), *target = make_file("copy-3", 64);
    copied.path = path;
    world_make(node, web1);
    world_go(node, web1, 3);
    g_assert_true(hv->ops->volume_attach(hv, web1->uuid, 1, &copied, &error));
    write_as_guest(node, web1, "write -P 1 0 64M");
    g_assert_true(hv->ops->point_open(hv, web1->uuid, 1, &copied, 11, target, &error));
    json_decref(ask_qemu(node, web1, "job-cancel", json_make("{s:s}", "id", "p11j")));
    gint64 since = loop_boot_ms();
    for (;;) {
        g_autofree char *why = NULL;
        enum point_state state = await_copied(hv, web1, 11, &why);
        g_assert_cmpint(state, !=, POINT_FAILED);
        if (state == POINT_NONE) {
            g_assert_cmpstr(why, ==, "");
            break;
        }
        loop_sleep(20);
        g_assert_false(patience_is_over(since, 10000));
    }
    close_point(node, web1, 11);
    assert_gone(node, web1, target);
    world_end(node, web1);
}

static int tests(int argc, char **argv)
{
    loop_init();
    if (argc > 1 && strcmp(argv[1], "first-daemon") == 0) {
        world_run(first_daemon, NULL);
        return 0;
    }
    g_test_init(&argc, &argv, NULL);
    self = g_file_read_link("/proc/self/exe", NULL);
    world_test("/qemu/start-run-pause-reset-kill#SAF-10,SAF-20", start_and_kill);
    world_guest_test("/qemu/shared-is-not-cached#SAF-21", "shared", shared_is_not_cached);
    world_guest_test("/qemu/display", "display", display);
    world_guest_test("/qemu/display/port-taken", "taken", display_taken);
    world_guest_test("/qemu/own-shutdown-leaves-it-paused#SAF-11", "powerdown", powerdown);
    world_test("/qemu/second-start-is-refused-by-image-lock#SAF-10", image_lock);
    world_guest_test("/qemu/bad-machine-type", "machine", bad_machine);
    world_guest_test("/qemu/unprivileged-and-confined", "user", unprivileged);
    world_guest_test("/qemu/accelerator-by-trial", "accel", accelerator);
    world_guest_test("/qemu/death-is-an-event", "killed", killed_by_others);
    world_guest_test("/qemu/last-words", "words", last_words);
    world_guest_test("/qemu/volume-comes-and-goes#SAF-57", "volume", volume_comes_and_goes);
    world_guest_test("/qemu/volume-grows#SAF-53", "volume-grows", volume_grows);
    world_guest_test("/qemu/volume-that-is-only-read", "only-read", only_read);
    world_guest_test("/qemu/point-in-time#SAF-59", "point", point_in_time);
    world_guest_test("/qemu/point-that-ends-early#SAF-59", "point-ends", point_ends_early);
    world_guest_test("/qemu/point-given-up#SAF-59", "point-given", point_given_up);
    world_test("/qemu/found-after-restart#SAF-19", found_again);
    world_test("/qemu/found-without-pid#SAF-19", found_without_pid);
    world_test("/qemu/dead-and-damaged-state", dead_and_damaged_state);
    world_test("/qemu/what-the-host-offers", host);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}

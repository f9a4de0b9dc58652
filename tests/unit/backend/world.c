/*
 * See world.h.
 */
#include "world.h"

#include "base/limits.h"
#include "helper/patience.h"
#include "io/process.h"
#include "io/qmp.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000
#define QUIET_MS 500
#define TORN_READS 100
#define INSTANCE_UUID "11111111-1111-4111-8111-111111111111"

static char folder[64];

/* --- the guard --- */

static pid_t parent_of(pid_t pid)
{
    char name[64], line[512];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "re");
    int parent = 0;
    if (file != NULL && fgets(line, sizeof line, file) != NULL && strrchr(line, ')') != NULL)
        sscanf(strrchr(line, ')') + 2, "%*c %d", &parent);
    if (file != NULL)
        fclose(file);
    return parent;
}

/* We are the reaper of our descendants, so what the tests left has become our child. */
static void end_children(void)
{
    for (bool any = true; any;) {
        any = false;
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        while ((entry = readdir(proc)) != NULL) {
            pid_t pid = atoi(entry->d_name);
            if (pid <= 0 || parent_of(pid) != getpid())
                continue;
            kill(pid, SIGKILL); /* ours and unreaped, so the number is still its own */
            waitpid(pid, NULL, 0);
            any = true;
        }
        closedir(proc);
    }
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    if (type == FTW_DP)
        umount2(path, MNT_DETACH); /* most are no mount points, which is fine */
    if (remove(path) != 0 && errno == EBUSY && umount2(path, MNT_DETACH) == 0)
        remove(path);
    return 0;
}

static pid_t tests_pid;

/* Told to end, the guard ends the tests, and then cleans up as ever. */
static void end_tests(int signal)
{
    kill(tests_pid, SIGKILL);
}

struct task_test {
    void (*fn)(void *data);
    void *data;
};

static void run_task_test(const void *data)
{
    const struct task_test *test = data;
    world_run(test->fn, test->data);
}

void world_test_with(const char *path, void (*fn)(void *data), void *data)
{
    struct task_test *test = g_new(struct task_test, 1);
    *test = (struct task_test){fn, data};
    g_test_add_data_func_full(path, test, run_task_test, g_free);
}

void world_test(const char *path, void (*fn)(void *data))
{
    world_test_with(path, fn, NULL);
}

struct guest_test {
    const char *name;
    world_guest_fn fn;
};

static void run_guest_task(void *data)
{
    const struct guest_test *test = data;
    struct world_node *node = world_node_new(test->name);
    record_autoptr(instance) web1 = world_instance(1, 1);
    test->fn(node, web1);
    world_node_free(node);
}

static void run_guest_test(const void *data)
{
    world_run(run_guest_task, (void *)data);
}

void world_guest_test(const char *path, const char *name, world_guest_fn fn)
{
    struct guest_test *test = g_new(struct guest_test, 1);
    *test = (struct guest_test){name, fn};
    g_test_add_data_func_full(path, test, run_guest_test, g_free);
}

/* What is left is what the unit of the node daemon grants (etc/systemd), and SYS_ADMIN for the
 * tests' own mounts. The rest of its sandbox is in force in tests/e2e/test_deb.py. */
static void give_up_capabilities(void)
{
    static const int kept[] = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_CHOWN, CAP_DAC_OVERRIDE,
                               CAP_SETUID,    CAP_SETGID,  CAP_KILL,  CAP_SYS_ADMIN};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};
    guint64 mask = 0;
    for (guint i = 0; i < G_N_ELEMENTS(kept); i++)
        mask |= 1ull << kept[i];
    for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
        if ((mask & 1ull << i) == 0)
            g_assert_cmpint(prctl(PR_CAPBSET_DROP, i), ==, 0);
    caps[0].effective = caps[0].permitted = (guint32)mask;
    g_assert_cmpint(syscall(SYS_capset, &header, caps), ==, 0);
}

int world_main(int argc, char **argv, int (*tests)(int argc, char **argv))
{
    strcpy(folder, "/tmp/fettle-backend-XXXXXX");
    const char *given = getenv("WORLD_FOLDER"); /* we are a second process of a test */
    if (given != NULL) {
        g_strlcpy(folder, given, sizeof folder);
        return tests(argc, argv);
    }
    if (mkdtemp(folder) == NULL || chmod(folder, 0755) != 0)
        return 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (unshare(CLONE_NEWNET) != 0)
        return 1;
    world_link(true);
    tests_pid = fork();
    if (tests_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("WORLD_FOLDER", folder, 1);
        give_up_capabilities();
        exit(tests(argc, argv));
    }
    signal(SIGTERM, end_tests);
    signal(SIGINT, end_tests);
    int status = 0;
    while (waitpid(tests_pid, &status, 0) < 0 && errno == EINTR)
        ;
    end_children();
    /* Twice: what a mount had covered shows only when that is gone. */
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void (*add_tests)(void);

static int run_tests(int argc, char **argv)
{
    loop_init();
    g_test_init(&argc, &argv, NULL);
    add_tests();
    return g_test_run();
}

int world_tests(int argc, char **argv, void (*add)(void))
{
    add_tests = add;
    return world_main(argc, argv, run_tests);
}

char *world_shell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *command = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *errors = NULL;
    char *output = NULL;
    int status = 0;
    g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &output,
                               &errors, &status, &error));
    g_assert_no_error(error);
    if (status != 0)
        g_error("%s: %s", command, errors);
    return g_strchomp(output);
}

void world_link(bool up)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(ioctl(fd, SIOCSIFFLAGS, &request), ==, 0);
    close(fd);
}

const char *world_folder(void)
{
    return folder;
}

/* --- nodes --- */

static void exited(const char *instance, guint64 generation, const char *said, void *data)
{
    struct world_node *node = data;
    node->exited++;
    g_strlcpy(node->said, said, sizeof node->said);
}

static void shut_down(const char *instance, guint64 generation, void *data)
{
    ((struct world_node *)data)->shutdowns++;
}

static void export_ended(const char *instance, const char *replica, guint64 generation, void *data)
{
    ((struct world_node *)data)->exports_ended++;
}

static char *status_line(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    g_assert_nonnull(line);
    g_autofree char *rest = g_strndup(line + strlen(name), strcspn(line + strlen(name), "\n"));
    return g_strdup(g_strstrip(rest));
}

void world_assert_unprivileged(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/status", pid);
    g_autofree char *status = NULL;
    guint32 uid[4];
    g_assert_true(g_file_get_contents(path, &status, NULL, NULL));
    g_autofree char *users = status_line(status, "\nUid:");
    g_autofree char *own_groups = status_line(status, "\nGid:");
    g_autofree char *groups = status_line(status, "\nGroups:");
    g_autofree char *permitted = status_line(status, "\nCapPrm:");
    g_autofree char *no_new = status_line(status, "\nNoNewPrivs:");
    g_assert_cmpint(sscanf(users, "%u %u %u %u", uid, uid + 1, uid + 2, uid + 3), ==, 4);
    g_assert_cmpuint(uid[0], >=, WORLD_USER);
    g_assert_cmpuint(uid[0], <=, WORLD_USER + WORLD_USERS);
    for (guint i = 1; i < 4; i++)
        g_assert_cmpuint(uid[i], ==, uid[0]);
    g_assert_cmpstr(own_groups, ==, users);
    g_assert_cmpstr(groups, ==, "");
    g_assert_cmpstr(permitted, ==, "0000000000000000");
    g_assert_cmpstr(no_new, ==, "1");
}

struct world_node *world_node_new(const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *root = g_build_filename(folder, name, NULL);
    g_mkdir_with_parents(root, 0755);
    struct world_node *node = g_new0(struct world_node, 1);
    node->paths = node_paths_new(root, &error);
    g_assert_no_error(error);
    node_paths_make(node->paths, &error);
    g_assert_no_error(error);
    g_autofree char *tick = g_build_filename(node->paths->var, "images", "tick.raw", NULL);
    if (!g_file_test(tick, G_FILE_TEST_EXISTS))
        tick_image_write(tick, name, 1, 1, &error);
    g_assert_no_error(error);
    record_autoptr(node_config) config = node_config_new();
    config->guest_user_first = WORLD_USER;
    config->guest_users = WORLD_USERS;
    node->users = guest_users_new(config);
    node->hypervisor = qemu_new(node->paths, node->users);
    node->storage = file_storage_new(node->paths, NULL, node->users);
    const struct hypervisor_events guests = {exited, shut_down, NULL, node};
    const struct storage_events exports = {export_ended, node};
    node->hypervisor->ops->set_events(node->hypervisor, &guests);
    node->storage->ops->set_events(node->storage, &exports);
    return node;
}

void world_node_free(struct world_node *node)
{
    qemu_free(node->hypervisor);
    file_storage_free(node->storage);
    guest_users_unref(node->users);
    node_paths_free(node->paths);
    g_free(node);
}

void world_limit_disks(const struct world_node *node, guint kib)
{
    g_autofree char *disks = g_build_filename(node->paths->var, "disks", NULL);
    g_autofree char *aside = g_build_filename(disks, "aside", NULL);
    g_autofree char *options = g_strdup_printf("size=%uk,mode=755", kib);
    g_assert_cmpint(mount("tmpfs", disks, "tmpfs", 0, options), ==, 0);
    g_assert_cmpint(mkdir(aside, 0755), ==, 0);
}

/* --- tasks --- */

struct run {
    void (*fn)(void *data);
    void *data;
    bool done;
};

static void run_task(void *data)
{
    struct run *run = data;
    run->fn(run->data);
    run->done = true;
}

void world_run(void (*fn)(void *data), void *data)
{
    struct run run = {fn, data, false};
    struct task_group *group = task_group_new();
    task_spawn(group, run_task, &run);
    g_assert_true(patience_run_until(&run.done, 600000));
    task_group_unref(group);
}

/* --- guests --- */

struct instance *world_instance(guint disks, guint64 generation)
{
    json_autoptr json = json_make("{s:s,s:s,s:s,s:i,s:s,s:I}", "uuid", INSTANCE_UUID, "name",
                                  "web1", "disk_template", "mirror", "memory", 4, "primary_node",
                                  INSTANCE_UUID, "generation", (json_int_t)generation);
    json_t *list = json_array();
    for (guint i = 0; i < disks; i++)
        json_array_append_new(list, json_make("{s:s,s:i}", "uuid", INSTANCE_UUID, "size", 2));
    json_object_set_new(json, "disks", list);
    g_autoptr(GError) error = NULL;
    struct instance *instance = instance_parse(json, RECORD_KEEP, &error);
    g_assert_no_error(error);
    return instance;
}

void world_create(struct world_node *node, const struct instance *instance, const char *replica)
{
    g_autoptr(GError) error = NULL;
    node->storage->ops->create(node->storage, instance->uuid, replica, instance->disk_template,
                               instance->disks, replica[0] == '\0' ? "tick" : "", &error);
    g_assert_no_error(error);
}

struct export_target *world_export(struct world_node *node, const struct instance *instance,
                                   const char *replica)
{
    g_autoptr(GError) error = NULL;
    struct export_target *target = NULL;
    node->storage->ops->export_open(node->storage, 1, instance->uuid, replica, instance->generation,
                                    instance->disks, "127.0.0.1", true, &target, &error);
    g_assert_no_error(error);
    return target;
}

void world_prepare(struct world_node *node, const struct instance *instance, GError **error)
{
    g_autoptr(GError) missing = NULL;
    g_autoptr(GPtrArray) images = node->storage->ops->files(node->storage, instance->uuid, "",
                                                            instance->disks->len, &missing);
    g_assert_no_error(missing);
    struct guest_spec spec = {.instance = instance, .images = images, .accelerator = ACCEL_TCG};
    g_autoptr(GError) failure = NULL;
    bool prepared = node->hypervisor->ops->prepare(node->hypervisor, &spec, &failure);
    g_assert_true(prepared == (failure == NULL));
    if (error == NULL)
        g_assert_no_error(failure);
    if (failure != NULL)
        g_propagate_error(error, g_steal_pointer(&failure));
}

void world_make(struct world_node *node, const struct instance *instance)
{
    world_create(node, instance, "");
    world_prepare(node, instance, NULL);
}

void world_go(struct world_node *node, const struct instance *instance, guint32 above)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_assert_true(hv->ops->run(hv, instance->uuid, instance->generation, &error));
    g_assert_true(world_await_count(node, instance, above));
}

void world_start(struct world_node *node, const struct instance *instance)
{
    world_make(node, instance);
    world_go(node, instance, 3);
}

void world_end(struct world_node *node, const struct instance *instance)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_assert_true(hv->ops->kill(hv, instance->uuid, instance->generation, &error));
}

guint32 world_printed(const struct world_node *node, const struct instance *instance)
{
    g_autofree char *path = g_strdup_printf("%s/guests/%s-%s.console", node->paths->log,
                                            instance->name, instance->uuid);
    g_autoptr(GError) error = NULL;
    guint32 count = 0;
    tick_console_last(path, &count, &error);
    g_assert_no_error(error);
    return count;
}

guint32 world_counted(const struct world_node *node, const struct instance *instance,
                      const char *replica)
{
    g_autofree char *path = g_strdup_printf("%s/disks/%s%s%s.disk0.raw", node->paths->var,
                                            instance->uuid, replica[0] != '\0' ? "." : "", replica);
    g_autoptr(GError) error = NULL;
    guint32 count = 0;
    /* Read in the middle of a write it may be half of each. */
    for (guint i = 0; !tick_read_state(path, &count, &error) && i < TORN_READS; i++) {
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_clear_error(&error);
        g_usleep(1000);
    }
    g_assert_no_error(error);
    return count;
}

void world_assert_whole(const struct world_node *node, const struct instance *instance,
                        const char *replica, const struct world_node *printer)
{
    guint32 printed = world_printed(printer, instance); /* first: the guest may count on */
    g_assert_cmpuint(world_counted(node, instance, replica), >=, printed);
}

bool world_await_count(const struct world_node *node, const struct instance *instance,
                       guint32 above)
{
    for (guint waited = 0; waited < WAIT_MS; waited += 20) {
        if (world_printed(node, instance) > above)
            return true;
        loop_sleep(20);
    }
    return false;
}

bool world_is_frozen(const struct world_node *node, const struct instance *instance)
{
    /* What was answered before the fault is still being printed for a while. */
    for (guint waited = 0; waited < WAIT_MS; waited += QUIET_MS) {
        guint32 before = world_printed(node, instance);
        loop_sleep(QUIET_MS);
        if (world_printed(node, instance) == before)
            return true;
    }
    return false;
}

bool world_await_mirror(struct world_node *node, const struct instance *instance,
                        enum mirror_state state)
{
    enum guest_state guest;
    struct mirror_info mirror;
    for (guint waited = 0; waited < WAIT_MS; waited += 20) {
        g_autoptr(GError) error = NULL;
        node->hypervisor->ops->query(node->hypervisor, instance->uuid, instance->generation, &guest,
                                     &mirror, &error);
        g_assert_no_error(error);
        if (mirror.state == state)
            return true;
        loop_sleep(20);
    }
    return false;
}

enum guest_state world_state(struct world_node *node, const struct instance *instance)
{
    enum guest_state state = GUEST_ABSENT;
    struct mirror_info mirror;
    g_autoptr(GError) error = NULL;
    node->hypervisor->ops->query(node->hypervisor, instance->uuid, instance->generation, &state,
                                 &mirror, &error);
    g_assert_no_error(error);
    return state;
}

json_t *world_monitor(const struct world_node *node, const struct instance *instance,
                      const char *command, json_t *arguments, GError **error)
{
    const struct qmp_events none = {0};
    g_autofree char *path =
        g_build_filename(node->paths->run, "guests", instance->uuid, "rescue.sock", NULL);
    struct qmp *qmp = qmp_connect(path, LIMIT_QMP_COMMAND_MS, &none, error);
    if (!qmp) {
        json_decref(arguments);
        return NULL;
    }
    json_t *answer = qmp_execute(qmp, command, arguments, LIMIT_QMP_COMMAND_MS, error);
    qmp_close(qmp);
    return answer;
}

bool world_try_write(const struct world_node *node, const struct instance *instance, guint pattern,
                     guint offset, guint count, GError **error)
{
    g_autofree char *line = g_strdup_printf(
        "qemu-io -d /machine/peripheral/vd0/virtio-backend \"aio_write -P %u %uk %uk\"", pattern,
        offset, count);
    json_autoptr answer = world_monitor(node, instance, "human-monitor-command",
                                        json_make("{s:s}", "command-line", line), error);
    if (answer)
        g_assert_cmpstr(json_string_value(answer), ==, "");
    return answer != NULL;
}

void world_write(const struct world_node *node, const struct instance *instance, guint pattern,
                 guint offset, guint count)
{
    g_autoptr(GError) error = NULL;
    world_try_write(node, instance, pattern, offset, count, &error);
    g_assert_no_error(error);
}

void world_await_gone(guint64 pid)
{
    for (guint waited = 0; process_read_start_ticks(pid) != 0 && waited < WAIT_MS; waited += 5)
        loop_sleep(5);
    g_assert_cmpuint(process_read_start_ticks(pid), ==, 0);
}

void world_await_removed(const char *path)
{
    for (guint waited = 0; g_file_test(path, G_FILE_TEST_EXISTS) && waited < WAIT_MS; waited += 5)
        loop_sleep(5);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

guint64 world_export_pid(const struct world_node *node, const struct instance *instance,
                         const char *replica, guint disk)
{
    g_autofree char *argument = g_strdup_printf("file=%s/disks/%s.%s.disk%u.raw", node->paths->var,
                                                instance->uuid, replica, disk);
    return process_find_by_argument(argument);
}

guint64 world_guest_pid(const struct world_node *node, const struct instance *instance)
{
    g_autofree char *argument = g_strdup_printf("fd=6,set=%d,opaque=%s/guests/%s", G_MAXINT32,
                                                node->paths->run, instance->uuid);
    return process_find_by_argument(argument);
}

char *world_command_line(const struct world_node *node, const struct instance *instance)
{
    g_autofree char *path =
        g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/cmdline", world_guest_pid(node, instance));
    char *text = NULL;
    gsize len = 0;
    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    for (gsize i = 0; i + 1 < len; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    return text;
}

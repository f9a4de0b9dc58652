/*
 * The choice of an accelerator, with a program that stands in for QEMU: what shows something, what
 * shows nothing, and what is remembered.
 */
#include "backend/hypervisor/accel.h"

#include "world.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define BOOTS "exit 33"
#define BOOTS_LATE "sleep 1; exit 33"
#define FAILS "echo first >&2; echo 'could not do it' >&2; exit 1"
#define HANGS "while :; do sleep 0.05; done"

static char *place; /* of the stand-in and its orders */

static void order(const char *name, const char *what)
{
    g_autofree char *path = g_build_filename(place, name, NULL);
    g_assert_true(g_file_set_contents(path, what, -1, NULL));
}

static const char script[] = "#!/bin/sh\n"
                             "while [ \"$1\" != -accel ]; do shift; done\n"
                             "here=$(dirname \"$0\")\n"
                             "echo $2 >>\"$here/calls\"\n"
                             ". \"$here/$2\"\n";

/* The first program in PATH; the device is any file. */
static char *stand_in(const char *name, const char *kvm, const char *tcg)
{
    char *before = g_strdup(g_getenv("PATH"));
    place = g_build_filename(world_folder(), name, NULL);
    g_autofree char *path = g_strconcat(place, ":", before, NULL);
    g_autofree char *program = g_build_filename(place, "qemu-system-x86_64", NULL);
    g_assert_cmpint(g_mkdir_with_parents(place, 0755), ==, 0);
    order("qemu-system-x86_64", script);
    g_assert_cmpint(g_chmod(program, 0755), ==, 0);
    order("device", "");
    order("calls", "");
    order("kvm", kvm);
    order("tcg", tcg);
    g_setenv("PATH", path, TRUE);
    return before;
}

static void stand_back(char *before)
{
    g_setenv("PATH", before, TRUE);
    g_free(before);
    g_clear_pointer(&place, g_free);
}

static guint calls(void)
{
    g_autofree char *path = g_build_filename(place, "calls", NULL);
    g_autofree char *text = NULL;
    guint count = 0;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    for (const char *at = text; *at; at++)
        count += *at == '\n';
    return count;
}

struct bench {
    struct world_node *node;
    struct task_group *tasks;
    struct accel *accel;
    char *device, *result;
};

static void bench_open(struct bench *bench, guint trial_ms, guint again_ms)
{
    const struct accel_options options = {bench->device, trial_ms, again_ms};
    bench->tasks = task_group_new();
    bench->accel = accel_new(bench->node->paths, bench->tasks, &options);
}

static void bench_new(struct bench *bench, const char *name, guint trial_ms, guint again_ms)
{
    bench->node = world_node_new(name);
    bench->device = g_build_filename(place, "device", NULL);
    bench->result = g_build_filename(bench->node->paths->run, "accelerator.json", NULL);
    unlink(bench->result);
    bench_open(bench, trial_ms, again_ms);
}

/* As a node daemon ends. */
static void bench_close(struct bench *bench)
{
    task_group_kill(bench->tasks);
    task_group_unref(bench->tasks);
    accel_unref(bench->accel);
}

static void bench_free(struct bench *bench)
{
    bench_close(bench);
    world_node_free(bench->node);
    g_free(bench->device);
    g_free(bench->result);
}

static void assert_choice(struct bench *bench, bool wanted, const char *why)
{
    g_autoptr(GError) error = NULL;
    bool kvm = !wanted;
    accel_choose(bench->accel, ACCEL_AUTO, &kvm, &error);
    g_assert_no_error(error);
    g_assert_true(kvm == wanted);
    g_autofree char *said = accel_without_kvm(bench->accel);
    g_assert_cmpstr(said, ==, why);
}

/* --- tests --- */

/* Nothing is tried where there is nothing to choose. */
static void no_device(void *unused)
{
    char *before = stand_in("none", FAILS, FAILS);
    struct bench bench;
    bool kvm = true;
    bench_new(&bench, "none", 0, 0);
    unlink(bench.device);
    assert_choice(&bench, false, NULL);
    g_assert_true(accel_choose(bench.accel, ACCEL_KVM, &kvm, NULL) && kvm);
    g_assert_true(accel_choose(bench.accel, ACCEL_TCG, &kvm, NULL) && !kvm);
    g_assert_cmpuint(calls(), ==, 0);
    g_assert_false(g_file_test(bench.result, G_FILE_TEST_EXISTS));
    bench_free(&bench);
    stand_back(before);
}

/* The result outlives the node daemon, and not the boot. */
static void works(void *unused)
{
    char *before = stand_in("works", BOOTS, BOOTS_LATE);
    struct bench bench;
    g_setenv("FETTLE_BOOT_ID", "boot-1", TRUE);
    bench_new(&bench, "works", 0, 0);
    assert_choice(&bench, true, NULL);
    g_assert_cmpuint(calls(), ==, 2);
    assert_choice(&bench, true, NULL);
    bench_close(&bench);
    order("kvm", FAILS);
    bench_open(&bench, 0, 0);
    assert_choice(&bench, true, NULL);
    g_assert_cmpuint(calls(), ==, 2);
    bench_close(&bench);
    g_setenv("FETTLE_BOOT_ID", "boot-2", TRUE);
    bench_open(&bench, 0, 0);
    assert_choice(&bench, false, "a guest does not boot under it: could not do it");
    g_assert_cmpuint(calls(), ==, 4);
    bench_close(&bench);
    bench_open(&bench, 0, 0);
    assert_choice(&bench, false, "a guest does not boot under it: could not do it");
    g_assert_cmpuint(calls(), ==, 4);
    g_unsetenv("FETTLE_BOOT_ID");
    bench_free(&bench);
    stand_back(before);
}

static void is_slower(void *unused)
{
    char *before = stand_in("slower", "sleep 2; exit 33", BOOTS);
    struct bench bench;
    bench_new(&bench, "slower", 0, 0);
    bool kvm = true;
    g_assert_true(accel_choose(bench.accel, ACCEL_AUTO, &kvm, NULL));
    g_assert_false(kvm);
    g_autofree char *said = accel_without_kvm(bench.accel);
    g_assert_true(g_str_has_prefix(said, "a guest boots later under it, in "));
    bench_free(&bench);
    stand_back(before);
}

/* No end in its time is no result: guests do not wait for it, and it is tried again beside them. */
static void shows_nothing(void *unused)
{
    char *before = stand_in("nothing", HANGS, BOOTS);
    static const char why[] = "when it was tried out, a guest did not boot under it within 1500 "
                              "ms, which may be the load; it is tried again";
    struct bench bench;
    bench_new(&bench, "nothing", 1500, 100);
    assert_choice(&bench, false, why);
    g_assert_false(g_file_test(bench.result, G_FILE_TEST_EXISTS));
    guint tried = calls();
    assert_choice(&bench, false, why);
    g_assert_cmpuint(calls(), ==, tried);
    order("tcg", BOOTS_LATE);
    order("kvm", BOOTS);
    for (guint i = 0; i < 600 && !g_file_test(bench.result, G_FILE_TEST_EXISTS); i++)
        loop_sleep(100);
    assert_choice(&bench, true, NULL);
    bench_free(&bench);
    stand_back(before);
}

static void choose_killed(void *data)
{
    struct bench *bench = data;
    g_autoptr(GError) error = NULL;
    bool kvm = false;
    g_assert_false(accel_choose(bench->accel, ACCEL_AUTO, &kvm, &error));
    g_assert_cmpstr(error->message, ==, "the process that tried accelerators has ended");
}

/* Neither is one that was cut off, whose process the next trial ends. */
static void is_cut_off(void *unused)
{
    char *before = stand_in("cut", HANGS, HANGS);
    struct bench bench;
    bench_new(&bench, "cut", 60000, 0);
    struct task_group *daemon = task_group_new();
    task_spawn(daemon, choose_killed, &bench);
    for (guint i = 0; i < 600 && calls() == 0; i++)
        loop_sleep(100);
    g_autofree char *hanging =
        world_shell("pgrep -f '[q]emu-system-x86_64.*%s'", bench.node->paths->run);
    g_free(world_shell("kill -STOP %s", hanging));
    task_group_kill(daemon);
    task_group_unref(daemon);
    loop_sleep(50);
    g_assert_false(g_file_test(bench.result, G_FILE_TEST_EXISTS));
    bench_close(&bench);
    order("kvm", BOOTS);
    order("tcg", BOOTS_LATE);
    bench_open(&bench, 0, 0);
    assert_choice(&bench, true, NULL);
    g_autofree char *left =
        world_shell("pgrep -f '[q]emu-system-x86_64.*%s' || echo none", bench.node->paths->run);
    g_assert_cmpstr(left, ==, "none");
    bench_free(&bench);
    stand_back(before);
}

static void boots_nowhere(void *unused)
{
    char *before = stand_in("nowhere", FAILS, "exit 3");
    struct bench bench;
    g_autoptr(GError) error = NULL;
    bool kvm = true;
    bench_new(&bench, "nowhere", 0, 0);
    g_assert_false(accel_choose(bench.accel, ACCEL_AUTO, &kvm, &error));
    g_assert_cmpstr(error->message, ==,
                    "no guest boots on this node, neither under kvm nor under tcg (QEMU ended with "
                    "code 3); is qemu-system-x86_64 installed?");
    g_assert_false(g_file_test(bench.result, G_FILE_TEST_EXISTS));
    bench_free(&bench);
    stand_back(before);
}

/* What is damaged, or of a version that kept what had shown nothing, does not count. */
static void old_results(void *unused)
{
    static const char *const texts[] = {"{", "{\"kvm\":false,\"kvm_ms\":-1,\"tcg_ms\":150}",
                                        "{\"boot_id\":\"another\",\"kvm\":false,\"why\":\"\"}",
                                        "{\"boot_id\":7,\"kvm\":false,\"why\":\"\"}"};
    char *before = stand_in("old", BOOTS, BOOTS_LATE);
    struct bench bench;
    bench_new(&bench, "old", 0, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        bench_close(&bench);
        g_assert_true(g_file_set_contents(bench.result, texts[i], -1, NULL));
        bench_open(&bench, 0, 0);
        assert_choice(&bench, true, NULL);
        g_assert_cmpuint(calls(), ==, 2 * (i + 1));
    }
    bench_free(&bench);
    stand_back(before);
}

static void add_tests(void)
{
    world_test("/accel/no-device", no_device);
    world_test("/accel/result-outlives-the-daemon-not-the-boot", works);
    world_test("/accel/slower", is_slower);
    world_test("/accel/no-end-is-no-result", shows_nothing);
    world_test("/accel/cut-off-is-no-result", is_cut_off);
    world_test("/accel/neither", boots_nowhere);
    world_test("/accel/results-that-do-not-count", old_results);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

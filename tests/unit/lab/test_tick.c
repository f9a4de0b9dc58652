/* The counting guest on a disk that fails once: what it prints afterwards is on the disk too. */
#include "lab/tick.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <sys/wait.h>

#define WAIT_S 120 /* far longer than a guest takes on a busy machine */
#define LOOK_US 20000

static GPid start_guest(const char *image, const char *console)
{
    g_autofree char *file =
        g_strdup_printf("driver=file,node-name=file,filename=%s,cache.direct=off", image);
    g_autofree char *serial = g_strdup_printf("file:%s", console);
    const char *argv[] = {
        "qemu-system-x86_64", "-accel", "tcg", "-machine", "pc", "-m", "4", "-nodefaults",
        "-display", "none", "-serial", serial, "-blockdev", file,
        /* The first write fails, and nothing after it. */
        "-blockdev",
        "{\"driver\":\"blkdebug\",\"node-name\":\"fails\",\"image\":\"file\",\"inject-error\":"
        "[{\"event\":\"none\",\"iotype\":\"write\",\"errno\":5,\"once\":true}]}",
        "-blockdev", "driver=raw,node-name=disk,file=fails", "-device",
        "virtio-blk-pci,drive=disk,werror=report,rerror=report", NULL};
    g_autoptr(GError) error = NULL;
    GPid pid = 0;
    g_spawn_async(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL,
                  NULL, &pid, &error);
    g_assert_no_error(error);
    return pid;
}

static guint32 wait_printed(const char *console, guint32 wanted)
{
    g_autoptr(GError) error = NULL;
    guint32 printed = 0;
    for (guint i = 0; i < WAIT_S * G_USEC_PER_SEC / LOOK_US && printed < wanted; i++) {
        g_usleep(LOOK_US);
        g_assert_true(tick_console_last(console, &printed, &error));
        g_assert_no_error(error);
    }
    g_assert_cmpuint(printed, >=, wanted);
    return printed;
}

static void test_error(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("fettle-tick-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *image = g_build_filename(folder, "tick.raw", NULL);
    g_autofree char *console = g_build_filename(folder, "console", NULL);
    g_autofree char *said = NULL;
    guint32 count = 0;
    tick_image_write(image, "tick", 1, 1, &error);
    g_assert_no_error(error);
    GPid pid = start_guest(image, console);
    guint32 printed = wait_printed(console, 4);
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    g_assert_true(g_file_get_contents(console, &said, NULL, NULL));
    g_assert_nonnull(strstr(said, "DISKERR "));
    g_assert_true(tick_read_state(image, &count, &error));
    g_assert_no_error(error);
    g_test_message("it printed %u, and its disk has %u", printed, count);
    g_assert_cmpuint(count, >=, printed);
    g_remove(image);
    g_remove(console);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tick/after-an-error", test_error);
    return g_test_run();
}

/*
 * Trying accelerators out. See accel.h.
 */
#include "backend/hypervisor/accel.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/process.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RESULT "accelerator.json"
#define EXIT_BOOTED 33 /* isa-debug-exit: (0x10 << 1) | 1 */

/* A boot sector: three million turns of a loop, so that a crawling CPU shows, then 0x10 to the
 * debug exit port. cli; mov ecx, 3000000; 1: dec ecx; jnz 1b; mov al, 0x10; mov dx, 0xf4; out dx,
 * al; 2: hlt; jmp 2b */
static const guint8 boot_code[] = {0xfa, 0x66, 0xb9, 0xc0, 0xc6, 0x2d, 0x00, 0x66, 0x49, 0x75,
                                   0xfc, 0xb0, 0x10, 0xba, 0xf4, 0x00, 0xee, 0xf4, 0xeb, 0xfd};

/* A disk of less than a mebibyte is none to the BIOS. */
static bool write_boot_image(const char *path, GError **error)
{
    char sector[512] = {0};
    memcpy(sector, boot_code, sizeof boot_code);
    sector[510] = 0x55;
    sector[511] = (char)0xaa;
    if (!files_write_path(path, sector, sizeof sector, 0600, false, error))
        return false;
    if (truncate(path, (off_t)MIB(1)) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot write %s: %s", path, g_strerror(errno));
    return false;
}

/* Milliseconds from start to the guest's sign of life; -1 if there was none. */
static gint64 boot_under(const char *accel, const char *cpu, const char *image)
{
    g_autofree char *blockdev =
        g_strdup_printf("{\"driver\":\"raw\",\"node-name\":\"d0\",\"read-only\":true,"
                        "\"file\":{\"driver\":\"file\",\"filename\":\"%s\"}}",
                        image);
    const char *argv[] = {"qemu-system-x86_64",
                          "-machine",
                          "pc",
                          "-accel",
                          accel,
                          "-cpu",
                          cpu,
                          "-m",
                          "4",
                          "-nodefaults",
                          "-no-user-config",
                          "-display",
                          "none",
                          "-blockdev",
                          blockdev,
                          "-device",
                          "virtio-blk-pci,drive=d0,bootindex=1",
                          "-device",
                          "isa-debug-exit,iobase=0xf4,iosize=0x04",
                          NULL};
    struct process_options options = {.argv = argv};
    gint64 start = loop_boot_ms();
    struct process *process = process_spawn(&options, NULL);
    if (process == NULL)
        return -1;
    if (!process_wait(process, LIMIT_ACCEL_PROBE_MS))
        process_kill(process, NULL);
    gint64 took = process_exit_code(process) == EXIT_BOOTED ? loop_boot_ms() - start : -1;
    process_free(process);
    return took;
}

static bool read_result(const struct node_paths *paths, bool *ret_kvm)
{
    size_t len = 0;
    g_autofree char *text = files_read(paths, FILE_RUN, RESULT, KIB(4), &len, NULL);
    json_autoptr json = text != NULL ? json_parse_limited(text, len, KIB(4), NULL) : NULL;
    const json_t *kvm = json_object_get(json, "kvm");
    if (!json_is_boolean(kvm))
        return false; /* damaged counts as not there: it is tried anew */
    *ret_kvm = json_is_true(kvm);
    return true;
}

static bool try_out(const struct node_paths *paths, bool *ret_kvm, GError **error)
{
    g_autofree char *image = g_build_filename(paths->run, "accelerator.img", NULL);
    if (!write_boot_image(image, error))
        return false;
    gint64 kvm_ms = access("/dev/kvm", R_OK | W_OK) == 0 ? boot_under("kvm", "host", image) : -1;
    gint64 tcg_ms = boot_under("tcg", "qemu64", image);
    unlink(image);
    if (kvm_ms < 0 && tcg_ms < 0) {
        fettle_set_error(
            error, ENVIRONMENT,
            "no guest boots on this node within %u ms, neither under kvm nor under tcg; is "
            "qemu-system-x86_64 installed?",
            LIMIT_ACCEL_PROBE_MS);
        return false;
    }
    bool kvm = kvm_ms >= 0 && (tcg_ms < 0 || kvm_ms < tcg_ms);
    json_autoptr result = json_make("{s:b,s:I,s:I}", "kvm", kvm, "kvm_ms", (json_int_t)kvm_ms,
                                    "tcg_ms", (json_int_t)tcg_ms);
    g_autofree char *text = json_to_text(result);
    if (!files_write(paths, FILE_RUN, RESULT, text, strlen(text), error))
        return false;
    *ret_kvm = kvm;
    return true;
}

bool accel_choose(const struct node_paths *paths, enum accelerator wanted, bool *ret_kvm,
                  GError **error)
{
    /* Many guests may be started at once; one trial is enough, and trials side by side would
     * disturb each other. */
    static struct task_mutex trying = TASK_MUTEX_INIT;
    if (wanted != ACCEL_AUTO) {
        *ret_kvm = wanted == ACCEL_KVM;
        return true;
    }
    if (!task_mutex_lock(&trying)) {
        fettle_set_error(error, KILLED, "the process that tried accelerators has ended");
        return false;
    }
    bool done = read_result(paths, ret_kvm) || try_out(paths, ret_kvm, error);
    task_mutex_unlock(&trying);
    return done;
}

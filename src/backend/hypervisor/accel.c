/*
 * Trying accelerators out. See accel.h.
 */
#include "backend/hypervisor/accel.h"

#include "backend/hypervisor/qemu_private.h"
#include "backend/unprivileged.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/process.h"
#include "io/real_env.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define RESULT "accelerator.json"
#define IMAGE "accelerator.img"
#define WORDS "accelerator.log"
#define LAST_WORDS_BYTES 200
#define ROUNDS_MOST 3  /* of trials that are too close to tell */
#define CLEARLY 4      /* times as long: nothing but the accelerator explains that */
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

struct accel {
    const struct node_paths *paths;
    struct task_group *tasks;
    struct accel_options options;
    struct task_mutex trying; /* the first time: trials side by side would disturb each other */
    bool known, kvm;          /* what came of them */
    bool repeating;           /* a task does, so nobody waits */
    enum accelerator wanted;  /* by the guest that came last */
    char *why;                /* KVM is not used; NULL: it is, or nothing was tried */
};

/* What came of one boot. */
enum trial_end { TRIAL_NOTHING, TRIAL_BOOTED, TRIAL_FAILED };

struct trial {
    enum trial_end end;
    gint64 ms;
    char *words; /* of a failure */
};

static void trial_clear(struct trial *trial)
{
    g_clear_pointer(&trial->words, g_free);
}
#define trial_auto __attribute__((cleanup(trial_clear))) struct trial

/* --- one boot --- */

static char *run_file(const struct accel *accel, const char *name)
{
    return g_build_filename(accel->paths->run, name, NULL);
}

/* Of the image, handed over open; no other process has it. */
static char *own_argument(const char *image)
{
    g_autofree char *escaped = qemu_escape_commas(image);
    return g_strdup_printf("fd=3,set=0,opaque=%s", escaped);
}

/* One that an earlier node daemon has left: it would disturb, and may never end. */
static void end_leftover(const char *argument)
{
    guint64 pid = process_find_by_argument(argument);
    struct process *process =
        pid != 0 ? process_adopt(pid, process_read_start_ticks(pid), NULL, NULL, NULL) : NULL;
    if (process != NULL)
        process_kill(process, NULL);
    process_free(process);
}

static GPtrArray *trial_words(const struct accel *accel, const char *name, const char *cpu,
                              const char *argument)
{
    const char *const words[] = {"qemu-system-x86_64",
                                 "-machine",
                                 "pc",
                                 "-accel",
                                 name,
                                 "-cpu",
                                 cpu,
                                 "-m",
                                 "4",
                                 "-nodefaults",
                                 "-no-user-config",
                                 "-display",
                                 "none",
                                 "-add-fd",
                                 argument,
                                 "-blockdev",
                                 "{\"driver\":\"raw\",\"node-name\":\"d0\",\"read-only\":true,"
                                 "\"file\":{\"driver\":\"file\",\"filename\":\"/dev/fdset/0\"}}",
                                 "-device",
                                 "virtio-blk-pci,drive=d0,bootindex=1",
                                 "-device",
                                 "isa-debug-exit,iobase=0xf4,iosize=0x04"};
    bool kvm = strcmp(name, "kvm") == 0;
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    unprivileged_words(argv, accel->options.uid, kvm ? accel->options.device : NULL);
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_ptr_array_add(argv, g_strdup(words[i]));
    g_ptr_array_add(argv, NULL);
    return argv;
}

static struct process *spawn(const struct accel *accel, const char *name, const char *cpu,
                             const char *image, GError **error)
{
    g_autofree char *log = run_file(accel, WORDS);
    g_autofree char *argument = own_argument(image);
    g_autoptr(GPtrArray) argv = trial_words(accel, name, cpu, argument);
    int fd = open(image, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct process_options options = {.argv = (const char *const *)argv->pdata,
                                      .errors_path = log,
                                      .keep_fds = &fd,
                                      .keep_fd_count = 1};
    if (fd < 0) {
        fettle_set_error(error, STORAGE, "cannot open %s: %s", image, g_strerror(errno));
        return NULL;
    }
    unlink(log);
    struct process *process = process_spawn(&options, error);
    close(fd);
    return process;
}

/* The last line of what QEMU said, or how it ended. */
static char *last_words(const struct accel *accel, int code)
{
    g_autofree char *path = run_file(accel, WORDS);
    g_autofree char *said = files_read_path(path, LIMIT_COMPLAINT_BYTES, NULL, NULL);
    if (said == NULL || *g_strstrip(said) == '\0')
        return g_strdup_printf(code > 128 ? "QEMU ended by signal %d" : "QEMU ended with code %d",
                               code > 128 ? code - 128 : code);
    const char *line = strrchr(said, '\n');
    g_autofree char *cut = g_strndup(line != NULL ? line + 1 : said, LAST_WORDS_BYTES);
    return g_utf8_make_valid(cut, -1);
}

/* A process that somebody has ended has shown nothing. */
static struct trial judge(const struct accel *accel, const struct process *process, gint64 took)
{
    int code = process_exit_code(process);
    if (code == EXIT_BOOTED)
        return (struct trial){.end = TRIAL_BOOTED, .ms = took};
    if (code == 128 + SIGKILL || code == 128 + SIGTERM || code < 0)
        return (struct trial){.end = TRIAL_NOTHING};
    return (struct trial){.end = TRIAL_FAILED, .words = last_words(accel, code)};
}

static struct trial boot_under(const struct accel *accel, const char *name, const char *cpu,
                               const char *image)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *argument = own_argument(image);
    gint64 start = loop_boot_ms();
    end_leftover(argument);
    struct process *process = task_killed() ? NULL : spawn(accel, name, cpu, image, &failure);
    if (process == NULL)
        return failure == NULL
                   ? (struct trial){.end = TRIAL_NOTHING}
                   : (struct trial){.end = TRIAL_FAILED, .words = g_strdup(failure->message)};
    bool ended = process_wait(process, accel->options.trial_ms);
    if (!ended)
        process_kill(process, NULL);
    struct trial trial = {.end = TRIAL_NOTHING};
    if (ended)
        trial = judge(accel, process, loop_boot_ms() - start);
    process_free(process);
    return trial;
}

/* --- both, and what follows --- */

static bool is_sooner(const struct trial *kvm, const struct trial *tcg)
{
    return kvm->end == TRIAL_BOOTED && (tcg->end != TRIAL_BOOTED || kvm->ms < tcg->ms);
}

/* Most of such a boot is QEMU's own start, and on a busy host chance. */
static bool is_close(const struct trial *kvm, const struct trial *tcg)
{
    return kvm->end == TRIAL_BOOTED && tcg->end == TRIAL_BOOTED && kvm->ms >= tcg->ms &&
           kvm->ms < CLEARLY * tcg->ms;
}

static void keep_better(struct trial *best, struct trial *again)
{
    if (again->end == TRIAL_BOOTED && again->ms < best->ms)
        best->ms = again->ms;
    trial_clear(again);
}

static void try_both(const struct accel *accel, const char *image, struct trial *ret_kvm,
                     struct trial *ret_tcg)
{
    struct trial tcg = boot_under(accel, "tcg", "qemu64", image);
    struct trial kvm = boot_under(accel, "kvm", "host", image);
    for (guint i = 1; i < ROUNDS_MOST && is_close(&kvm, &tcg); i++) {
        struct trial again = boot_under(accel, "kvm", "host", image);
        keep_better(&kvm, &again);
    }
    *ret_kvm = kvm;
    *ret_tcg = tcg;
}

static char *why_not(const struct accel *accel, const struct trial *kvm, const struct trial *tcg)
{
    if (kvm->end == TRIAL_NOTHING)
        return g_strdup_printf("when it was tried out, a guest did not boot under it within %u ms, "
                               "which may be the load; it is tried again",
                               accel->options.trial_ms);
    if (kvm->end == TRIAL_FAILED)
        return g_strdup_printf("a guest does not boot under it: %s", kvm->words);
    return g_strdup_printf("a guest boots later under it, in %" G_GINT64_FORMAT
                           " ms, than without it, in %" G_GINT64_FORMAT " ms",
                           kvm->ms, tcg->ms);
}

/* Not kept: tried again after the next start of the node daemon, no more. */
static void keep(const struct accel *accel)
{
    g_autofree char *boot_id = real_env_boot_id(NULL);
    if (boot_id == NULL)
        return;
    json_autoptr result = json_make("{s:s,s:b,s:s}", "boot_id", boot_id, "kvm", accel->kvm, "why",
                                    accel->why != NULL ? accel->why : "");
    g_autofree char *text = json_to_text(result);
    files_write(accel->paths, FILE_RUN, RESULT, text, strlen(text), NULL);
}

static void conclude(struct accel *accel, const struct trial *kvm, const struct trial *tcg)
{
    accel->known = kvm->end != TRIAL_NOTHING;
    accel->kvm = is_sooner(kvm, tcg);
    g_free(accel->why);
    accel->why = accel->kvm ? NULL : why_not(accel, kvm, tcg);
    if (accel->known)
        keep(accel);
}

static bool try_out(struct accel *accel, GError **error)
{
    trial_auto kvm = {TRIAL_NOTHING, 0, NULL};
    trial_auto tcg = {TRIAL_NOTHING, 0, NULL};
    g_autofree char *image = run_file(accel, IMAGE);
    if (!write_boot_image(image, error))
        return false;
    try_both(accel, image, &kvm, &tcg);
    if (task_killed()) {
        fettle_set_error(error, KILLED, "the process that tried accelerators has ended");
        return false;
    }
    unlink(image);
    if (kvm.end != TRIAL_BOOTED && tcg.end == TRIAL_FAILED) {
        fettle_set_error(error, ENVIRONMENT,
                         "no guest boots on this node, neither under kvm nor under tcg (%s); is "
                         "qemu-system-x86_64 installed?",
                         tcg.words);
        return false;
    }
    conclude(accel, &kvm, &tcg);
    return true;
}

/* --- again, beside the guests --- */

static bool has_device(const struct accel *accel)
{
    return access(accel->options.device, R_OK | W_OK) == 0;
}

static void repeat(void *data)
{
    struct accel *accel = data;
    guint pause_ms = accel->options.again_ms;
    while (!accel->known && loop_sleep(pause_ms)) {
        if (has_device(accel) && accel->wanted == ACCEL_AUTO)
            try_out(accel, NULL);
        pause_ms = MIN(2 * pause_ms, LIMIT_ACCEL_AGAIN_MOST_MS);
    }
    accel->repeating = false;
    accel_unref(accel);
}

static bool try_first(struct accel *accel, GError **error)
{
    if (!task_mutex_lock(&accel->trying)) {
        fettle_set_error(error, KILLED, "the process that tried accelerators has ended");
        return false;
    }
    bool done = accel->known || accel->repeating || try_out(accel, error);
    if (done && !accel->known && !accel->repeating) {
        accel->repeating = true;
        task_spawn(accel->tasks, repeat, g_rc_box_acquire(accel));
    }
    task_mutex_unlock(&accel->trying);
    return done;
}

bool accel_choose(struct accel *accel, enum accelerator wanted, bool *ret_kvm, GError **error)
{
    *ret_kvm = wanted == ACCEL_KVM;
    accel->wanted = wanted;
    if (wanted != ACCEL_AUTO || !has_device(accel))
        return true;
    g_rc_box_acquire(accel);
    bool chosen = accel->known || accel->repeating || try_first(accel, error);
    if (chosen)
        *ret_kvm = accel->known && accel->kvm;
    accel_unref(accel);
    return chosen;
}

char *accel_without_kvm(const struct accel *accel)
{
    return accel->why != NULL && has_device(accel) ? g_strdup(accel->why) : NULL;
}

/* --- life --- */

/* What is damaged, of another boot, or of a version that took a trial without an end for one that
 * had failed, is as if it were not there. */
static void load(struct accel *accel)
{
    size_t len = 0;
    g_autofree char *boot_id = real_env_boot_id(NULL);
    g_autofree char *text =
        files_read(accel->paths, FILE_RUN, RESULT, LIMIT_STATE_FILE_BYTES, &len, NULL);
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, NULL) : NULL;
    const char *of_boot = NULL, *why = NULL;
    int kvm = 0;
    if (json == NULL || boot_id == NULL ||
        json_unpack(json, "{s:s,s:b,s:s}", "boot_id", &of_boot, "kvm", &kvm, "why", &why) != 0 ||
        strcmp(of_boot, boot_id) != 0)
        return;
    accel->known = true;
    accel->kvm = kvm != 0;
    accel->why = accel->kvm ? NULL : g_strdup(why);
}

struct accel *accel_new(const struct node_paths *paths, struct task_group *tasks,
                        const struct accel_options *options)
{
    struct accel *accel = g_rc_box_new0(struct accel);
    accel->paths = paths;
    accel->tasks = tasks;
    accel->options = *options;
    if (accel->options.device == NULL)
        accel->options.device = ACCEL_DEVICE;
    if (accel->options.trial_ms == 0)
        accel->options.trial_ms = LIMIT_ACCEL_PROBE_MS;
    if (accel->options.again_ms == 0)
        accel->options.again_ms = LIMIT_ACCEL_AGAIN_MS;
    g_queue_init(&accel->trying.waiters);
    load(accel);
    return accel;
}

static void accel_clear(void *data)
{
    struct accel *accel = data;
    g_free(accel->why);
}

void accel_unref(struct accel *accel)
{
    if (accel != NULL)
        g_rc_box_release_full(accel, accel_clear);
}

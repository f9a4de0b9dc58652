/*
 * Helper programs of the lab (run.h). Input and output pass through memory files, so nothing can
 * block half-way.
 */
#include "lab/run.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/process.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int memory_file(const char *content, GError **error)
{
    int fd = memfd_create("lab", MFD_CLOEXEC);
    size_t len = content ? strlen(content) : 0;
    if (fd >= 0 && write(fd, content ? content : "", len) == (ssize_t)len &&
        lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    fettle_set_error(error, ENVIRONMENT, "cannot make a memory file: %s", g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static char *text_of(int fd)
{
    char buffer[KIB(4)];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof(buffer) ? size - (off_t)sizeof(buffer) : 0;
    ssize_t len = pread(fd, buffer, sizeof(buffer), from);
    return g_strstrip(g_strndup(buffer, len > 0 ? (size_t)len : 0));
}

static int spawn(const char *const *argv, int input, int output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    /* What a killed supervisor had begun must not go on while the lab is being removed. */
    g_auto(GStrv) words = process_bound(argv);
    int failed = posix_spawnp(ret_pid, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static bool finish(const char *const *argv, pid_t pid, int output, GError **error)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    g_autofree char *command = g_strjoinv(" ", (char **)argv);
    g_autofree char *text = text_of(output);
    fettle_set_error(error, ENVIRONMENT, "`%s` failed: %s", command,
                     *text ? text : "it wrote no message");
    return false;
}

bool run_program(const char *const *argv, const char *input, GError **error)
{
    int in = memory_file(input, error);
    int out = in >= 0 ? memory_file(NULL, error) : -1;
    bool ok = false;
    if (out >= 0) {
        pid_t pid;
        g_autofree char *found = g_find_program_in_path(argv[0]);
        int failed = found ? spawn(argv, in, out, &pid) : ENOENT;
        if (failed)
            fettle_set_error(error, ENVIRONMENT, "cannot start %s: %s", argv[0],
                             g_strerror(failed));
        else
            ok = finish(argv, pid, out, error);
        close(out);
    }
    if (in >= 0)
        close(in);
    return ok;
}

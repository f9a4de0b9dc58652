/* Data and log of a member; see etcd_private.h. */
#include "backend/members/etcd_private.h"
#include "backend/reach.h"
#include "base/limits.h"
#include "base/log.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_WORDS_BYTES KIB(64) /* Go prints every call that was under way */
#define LAST_WORDS_CHARS 300
#define LIMIT_ASIDE_TRIES 100 /* data put aside within one second */
#define ASIDE_PREFIX "etcd.aside-"
#define ASIDE_KEPT 3 /* each has a log of 64 MiB and more */

bool etcd_user(uid_t *ret_uid, gid_t *ret_gid, GError **error)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("etcd") : NULL;
    if (geteuid() == 0 && user == NULL) {
        fettle_set_error(error, ENVIRONMENT,
                         "there is no user etcd on this node; install the package etcd-server");
        return false;
    }
    *ret_uid = user != NULL ? user->pw_uid : 0;
    *ret_gid = user != NULL ? user->pw_gid : 0;
    return true;
}

/* --- data --- */

char *etcd_data_folder(const struct etcd_host *host)
{
    return g_build_filename(host->paths->var, "etcd", NULL);
}

bool etcd_has_data(struct members *members)
{
    g_autofree char *folder = etcd_data_folder((const struct etcd_host *)members);
    g_autofree char *member = g_build_filename(folder, "member", NULL);
    return g_file_test(member, G_FILE_TEST_EXISTS);
}

/* Before it is given away: only the owner of a folder, or CAP_FOWNER, may change its mode. */
static bool set_mode(const char *folder, GError **error)
{
    struct stat now;
    if (stat(folder, &now) != 0)
        return files_error("look at the folder", folder, error);
    if ((now.st_mode & 07777) == 0700)
        return true;
    if (now.st_uid != geteuid() && chown(folder, geteuid(), (gid_t)-1) != 0)
        return files_error("change the owner of", folder, error);
    return chmod(folder, 0700) == 0 || files_error("change the mode of", folder, error);
}

bool etcd_make_data(const struct etcd_host *host, GError **error)
{
    g_autofree char *folder = etcd_data_folder(host);
    uid_t uid = 0;
    gid_t gid = 0;
    if (!etcd_user(&uid, &gid, error) || !reach_check(folder, uid, error))
        return false;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return files_error("make the folder", folder, error);
    if (!set_mode(folder, error))
        return false;
    return uid == 0 || chown(folder, uid, gid) == 0 ||
           files_error("change the owner of", folder, error);
}

static bool sync_var(const struct etcd_host *host, GError **error)
{
    int fd = open(host->paths->var, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        files_error("sync the folder", host->paths->var, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

static char *aside_name(guint try)
{
    g_autoptr(GDateTime) now = g_date_time_new_from_unix_utc(loop_wall_us() / G_USEC_PER_SEC);
    g_autofree char *time = g_date_time_format(now, "%Y%m%dT%H%M%SZ");
    return try == 0 ? g_strdup_printf(ASIDE_PREFIX "%s", time)
                    : g_strdup_printf(ASIDE_PREFIX "%s-%u", time, try);
}

static int compare_newest(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}

/* Older ones than the newest few: nobody else would ever remove them. */
static void prune_aside(const struct etcd_host *host)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(host->paths->var, 0, NULL);
    for (const char *name = dir ? g_dir_read_name(dir) : NULL; name; name = g_dir_read_name(dir))
        if (g_str_has_prefix(name, ASIDE_PREFIX))
            g_ptr_array_add(names, g_strdup(name));
    if (dir)
        g_dir_close(dir);
    g_ptr_array_sort(names, compare_newest);
    for (guint i = ASIDE_KEPT; i < names->len; i++) {
        g_autofree char *path = g_build_filename(host->paths->var, names->pdata[i], NULL);
        g_autoptr(GError) error = NULL;
        if (tree_remove(path, &error))
            log_info("", "%s is removed: %d newer ones are kept", path, ASIDE_KEPT);
        else
            log_warning("", "%s", error->message);
    }
}

bool etcd_aside(struct members *members, char **ret_folder, GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    g_autofree char *folder = etcd_data_folder(host);
    if (!etcd_is_down(host, "its data cannot be put aside", error))
        return false;
    *ret_folder = NULL;
    for (guint i = 0; g_file_test(folder, G_FILE_TEST_EXISTS); i++) {
        g_autofree char *name = aside_name(i);
        g_autofree char *path = g_build_filename(host->paths->var, name, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS) && i < LIMIT_ASIDE_TRIES)
            continue;
        if (rename(folder, path) != 0)
            return files_error("put aside", folder, error);
        *ret_folder = g_steal_pointer(&name);
        prune_aside(host);
        break;
    }
    return sync_var(host, error);
}

/* --- log --- */

char *etcd_log_path(const struct etcd_host *host)
{
    return g_build_filename(host->paths->log, "etcd.log", NULL);
}

/* The last `size` bytes, from the first whole line on. */
static char *read_tail(int fd, off_t length, size_t size)
{
    off_t from = length > (off_t)size ? length - (off_t)size : 0;
    char *text = g_malloc0(size + 1);
    ssize_t got = pread(fd, text, size, from);
    text[MAX(got, 0)] = '\0';
    char *line = from > 0 ? strchr(text, '\n') : NULL;
    if (line != NULL)
        memmove(text, line + 1, strlen(line + 1) + 1);
    return text;
}

/* The process has the file open for appending, so it is emptied in place; a line that is written in
 * this very moment may be lost. */
void etcd_trim_log(struct members *members)
{
    g_autofree char *path = etcd_log_path((const struct etcd_host *)members);
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > (off_t)LIMIT_ETCD_LOG_BYTES) {
        g_autofree char *kept = read_tail(fd, status.st_size, LIMIT_ETCD_LOG_BYTES / 2);
        ssize_t written = ftruncate(fd, 0) == 0 ? write(fd, kept, strlen(kept)) : 0;
        (void)written; /* what could not be kept is lost, the limit counts more */
    }
    if (fd >= 0)
        close(fd);
}

/* Lines are JSON documents, or what a library or the kernel's loader printed. */
static char *line_words(const char *line)
{
    json_autoptr entry = json_parse_limited(line, strlen(line), LAST_WORDS_BYTES, NULL);
    const char *message = json_string_value(json_object_get(entry, "msg"));
    const char *reason = json_string_value(json_object_get(entry, "error"));
    if (message == NULL)
        return g_strndup(line, LAST_WORDS_CHARS);
    g_autofree char *all =
        reason != NULL ? g_strdup_printf("%s: %s", message, reason) : g_strdup(message);
    return g_strndup(all, LAST_WORDS_CHARS);
}

static bool is_fatal(const char *line)
{
    return strstr(line, "\"level\":\"fatal\"") != NULL ||
           strstr(line, "\"level\":\"panic\"") != NULL || g_str_has_prefix(line, "panic: ") ||
           g_str_has_prefix(line, "[signal SIG");
}

/* What was said before is of an earlier process. */
static bool is_start(const char *line)
{
    return strstr(line, "\"msg\":\"starting an etcd server\"") != NULL;
}

/* Not as the end of a path, which stands before what the kernel refused. */
static bool names_part(const char *words, const char *part)
{
    for (const char *at = strstr(words, part); at != NULL; at = strstr(at + 1, part))
        if (at == words || at[-1] == ' ' || at[-1] == '(')
            return true;
    return false;
}

/* The data may be whole: the machine did not let etcd use it. */
static bool is_refused(const char *words)
{
    static const char *const reasons[] = {
        "no space left on device", "disk quota exceeded",    "permission denied",
        "too many open files",     "cannot allocate memory", "read-only file system",
    };
    for (guint i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (strstr(words, reasons[i]) != NULL)
            return true;
    return false;
}

bool etcd_says_damaged(const char *words)
{
    static const char *const damages[] = {
        "crc mismatch",                  /* its log */
        "is out of range [lastIndex",    /* its log lacks its end */
        "has already been bootstrapped", /* its log is gone */
        "failed to open database",       /* its file: both first pages */
        "freepages: ",                   /* other pages of it */
        "SIGBUS",                        /* it is shorter than it says */
        "failed to recover v3 backend",  /* it is older than its log */
    };
    if (is_refused(words))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(damages); i++)
        if (strstr(words, damages[i]) != NULL)
            return true;
    return names_part(words, "wal: ") || /* its log lacks a file, or more */
           names_part(words, "snap: ");  /* a snapshot */
}

char *etcd_last_words(const struct etcd_host *host)
{
    g_autofree char *path = etcd_log_path(host);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    g_autofree char *tail = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0)
        tail = read_tail(fd, status.st_size, LAST_WORDS_BYTES);
    if (fd >= 0)
        close(fd);
    g_auto(GStrv) lines = g_strsplit(tail != NULL ? tail : "", "\n", -1);
    const char *last = NULL;
    for (guint i = 0; lines[i] != NULL; i++)
        if (*g_strstrip(lines[i]) != '\0' &&
            (is_fatal(lines[i]) || is_start(lines[i]) || !last || !is_fatal(last)))
            last = lines[i];
    g_autofree char *words = last != NULL ? line_words(last) : g_strdup("it said nothing");
    return g_utf8_make_valid(words, -1);
}

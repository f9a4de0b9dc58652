/* See ceph.h. */
#include "lab/ceph.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/files.h"
#include "lab/run.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define MONITOR_PORT 6789
#define MEMORY_BYTES MIB(256)
#define KEY_BYTES 16
#define POOL_PARTS "8"
#define WRITE_TRIES 200
#define WRITE_PAUSE_US 50000

static const char *const daemons[CEPH_DAEMONS] = {"mon", "mgr", "osd"};

/* Who there is, and what each may. */
static const struct {
    const char *name, *mon, *osd, *mgr;
} users[] = {{"mon.", "allow *", NULL, NULL},
             {"client.admin", "allow *", "allow *", "allow *"},
             {"mgr.a", "allow profile mgr", "allow *", NULL},
             {"osd.0", "allow profile osd", "allow *", "allow profile osd"},
             {"client." CEPH_USER, "profile rbd", "profile rbd", "profile rbd"}};

bool ceph_check(GError **error)
{
    static const char *const programs[] = {"ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "rbd"};
    bool found = true;
    for (guint i = 0; i < G_N_ELEMENTS(programs) && found; i++) {
        g_autofree char *path = g_find_program_in_path(programs[i]);
        if (!path)
            fettle_set_error(error, ENVIRONMENT,
                             "--ceph: the program %s is missing; this installs what is needed: "
                             "apt-get install --no-install-recommends " CEPH_PACKAGES,
                             programs[i]);
        found = path != NULL;
    }
    return found;
}

char *ceph_conf(const char *dir)
{
    return g_build_filename(dir, "ceph.conf", NULL);
}

static bool write_in(const char *dir, const char *name, const char *text, guint mode,
                     GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    return files_write_path(path, text, strlen(text), mode, false, error);
}

static bool write_conf(const char *dir, const char *address, const char *uuid, GError **error)
{
    bool ipv6 = strchr(address, ':');
    g_autofree char *text =
        g_strdup_printf("[global]\n"
                        "fsid = %s\n"
                        "mon host = v1:%s%s%s:%d\n"
                        "mon initial members = a\n"
                        "public addr = %s\n"
                        "cluster addr = %s\n"
                        "ms bind ipv6 = %s\n"
                        "ms bind ipv4 = %s\n"
                        "auth cluster required = cephx\n"
                        "auth service required = cephx\n"
                        "auth client required = cephx\n"
                        "auth allow insecure global id reclaim = false\n"
                        "keyring = %s/daemons.keyring\n"
                        "run dir = %s\n"
                        "pid file =\n"
                        "admin socket =\n"
                        "log file =\n"
                        "log to stderr = true\n"
                        "mon data = %s/mon\n"
                        "mon data avail crit = 1\n"
                        "mon data avail warn = 1\n"
                        "mon allow pool size one = true\n"
                        "mon warn on pool no redundancy = false\n"
                        "mon warn on msgr2 not enabled = false\n"
                        "paxos propose interval = 0.05\n"
                        "paxos min wait = 0.01\n"
                        "mgr data = %s/mgr\n"
                        "mgr initial modules =\n"
                        "mgr stats period = 1\n"
                        "osd data = %s/osd\n"
                        "osd objectstore = memstore\n"
                        "osd fast shutdown = false\n"
                        "memstore device bytes = %zu\n"
                        "osd pool default size = 1\n"
                        "osd pool default min size = 1\n"
                        "osd pool default pg autoscale mode = off\n"
                        "osd crush chooseleaf type = 0\n"
                        "[client]\n"
                        "keyring = %s/$cluster.$name.keyring\n"
                        "log to stderr = false\n",
                        uuid, ipv6 ? "[" : "", address, ipv6 ? "]" : "", MONITOR_PORT, address,
                        address, ipv6 ? "true" : "false", ipv6 ? "false" : "true", dir, dir, dir,
                        dir, dir, (size_t)MEMORY_BYTES, dir);
    return write_in(dir, "ceph.conf", text, 0644, error);
}

/* As Ceph writes one: its type, when it was made, its length. */
static char *new_key(void)
{
    guint8 key[12 + KEY_BYTES] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, KEY_BYTES, 0};
    g_assert_cmpint(getrandom(key + 12, KEY_BYTES, 0), ==, KEY_BYTES);
    return g_base64_encode(key, sizeof key);
}

static void append_cap(GString *text, const char *where, const char *what)
{
    if (what)
        g_string_append_printf(text, "\tcaps %s = \"%s\"\n", where, what);
}

/* One file with all of them, for the daemons; one for each client. */
static bool write_keys(const char *dir, GError **error)
{
    g_autoptr(GString) all = g_string_new(NULL);
    bool ok = true;
    for (guint i = 0; i < G_N_ELEMENTS(users) && ok; i++) {
        g_autofree char *key = new_key();
        g_autofree char *own = g_strdup_printf("[%s]\n\tkey = %s\n", users[i].name, key);
        g_autofree char *file = g_strdup_printf("ceph.%s.keyring", users[i].name);
        ok = !g_str_has_prefix(users[i].name, "client.") || write_in(dir, file, own, 0600, error);
        g_string_append(all, own);
        append_cap(all, "mon", users[i].mon);
        append_cap(all, "osd", users[i].osd);
        append_cap(all, "mgr", users[i].mgr);
    }
    return ok && write_in(dir, "daemons.keyring", all->str, 0600, error);
}

bool ceph_make(const char *dir, const char *address, GError **error)
{
    g_autofree char *uuid = g_uuid_string_random(), *osd_uuid = g_uuid_string_random();
    g_autofree char *conf = ceph_conf(dir);
    g_autofree char *map = g_build_filename(dir, "monmap", NULL);
    g_autofree char *keys = g_build_filename(dir, "daemons.keyring", NULL);
    g_autofree char *where = g_strdup_printf(strchr(address, ':') ? "[v1:[%s]:%d]" : "[v1:%s:%d]",
                                             address, MONITOR_PORT);
    const char *make_map[] = {"monmaptool", "--create", "--fsid", uuid, "--addv",
                              "a",          where,      map,      NULL};
    const char *make_mon[] = {"ceph-mon",  "--mkfs", "-i", "a",  "--monmap", map,
                              "--keyring", keys,     "-c", conf, NULL};
    const char *make_osd[] = {"ceph-osd",   "-i",     "0",  "--mkfs", "--no-mon-config",
                              "--osd-uuid", osd_uuid, "-c", conf,     NULL};
    bool ok = files_make_folder(dir, 0755, error);
    for (guint i = 0; i < CEPH_DAEMONS && ok; i++) {
        g_autofree char *data = g_build_filename(dir, daemons[i], NULL);
        ok = files_make_folder(data, 0700, error);
    }
    return ok && write_conf(dir, address, uuid, error) && write_keys(dir, error) &&
           write_in(dir, "osd.uuid", osd_uuid, 0644, error) && run_program(make_map, NULL, error) &&
           run_program(make_mon, NULL, error) && run_program(make_osd, NULL, error);
}

const char *ceph_daemon(guint number)
{
    return daemons[number];
}

char **ceph_command(const char *dir, guint number)
{
    g_autofree char *program = g_strdup_printf("ceph-%s", daemons[number]);
    g_autofree char *conf = ceph_conf(dir);
    const char *words[] = {program, "-f", "-i", number == CEPH_DAEMONS - 1 ? "0" : "a",
                           "-c",    conf, NULL};
    return g_strdupv((char **)words);
}

char **ceph_inside(const char *netns, const char *const *words)
{
    GPtrArray *argv = g_ptr_array_new();
    if (netns) {
        g_ptr_array_add(argv, g_strdup("nsenter"));
        g_ptr_array_add(argv, g_strdup_printf("--net=/run/netns/%s", netns));
    }
    while (*words)
        g_ptr_array_add(argv, g_strdup(*words++));
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, FALSE);
}

/* `words`, ended by NULL, of a program that asks it, which waits for its monitor. */
static bool ask(const char *dir, const char *netns, const char *const *words, GError **error)
{
    g_autofree char *conf = ceph_conf(dir);
    g_autoptr(GPtrArray) command = g_ptr_array_new();
    g_ptr_array_add(command, (char *)*words);
    g_ptr_array_add(command, (char *)"-c");
    g_ptr_array_add(command, conf);
    while (*++words)
        g_ptr_array_add(command, (char *)*words);
    g_ptr_array_add(command, NULL);
    g_auto(GStrv) argv = ceph_inside(netns, (const char *const *)command->pdata);
    return run_program((const char *const *)argv, NULL, error);
}

/* A monitor that has just begun to answer does not yet write. */
static bool add_osd(const char *dir, const char *netns, const char *uuid, GError **error)
{
    const char *const words[] = {"ceph", "osd", "new", uuid, NULL};
    g_autoptr(GError) local = NULL;
    for (guint i = 0; i < WRITE_TRIES; i++) {
        g_clear_error(&local);
        if (ask(dir, netns, words, &local))
            return true;
        if (!strstr(local->message, "EAGAIN"))
            break;
        g_usleep(WRITE_PAUSE_US);
    }
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

bool ceph_settle(const char *dir, const char *netns, GError **error)
{
    g_autofree char *path = g_build_filename(dir, "osd.uuid", NULL);
    g_autofree char *uuid = files_read_path(path, KIB(1), NULL, error);
    const char *const pool[] = {"ceph", "osd", "pool", "create", CEPH_POOL, POOL_PARTS, NULL};
    const char *const init[] = {"rbd", "pool", "init", CEPH_POOL, NULL};
    return uuid && add_osd(dir, netns, uuid, error) && ask(dir, netns, pool, error) &&
           ask(dir, netns, init, error);
}

/* Volumes of guests in pools of a Ceph, beside commands that say what a test has them say: the key
 * that QEMU gets, and who is shut out. With a real Ceph: tests/e2e/test_ceph.py. */
#include "world.h"

#include "backend/hypervisor/pool.h"
#include "backend/volume/volumes_by_kind.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define KEY "AQAbcdefFettleXAABAAabcdefghijklmnop+/=="
#define NOISE "2026-11-28T00:00:00.000+0000 7f0000000000 -1 "
#define ONE "192.0.2.1:0/17"
#define OTHER "[2001:db8::1]:0/4294967295"

static char *folder;

static char *path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void put(const char *name, const char *text)
{
    g_autofree char *path = path_of(name);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_chmod(path, 0755);
}

static void rbd_says(const char *watcher, const char *owner)
{
    g_autofree char *watchers =
        g_strdup_printf("{\"watchers\":[{\"address\":\"%s\",\"client\":4,\"cookie\":1}]}", watcher);
    g_autofree char *owners = g_strdup_printf("[{\"id\":\"a\",\"address\":\"%s\"}]", owner);
    put("status", watchers);
    put("lock", owners);
    put("info", "{\"size\":1048576}");
}

/* A folder of programs, before all others, and a configuration that they do not read. */
static struct guest_volume *new_volume(const char *clients)
{
    struct guest_volume *volume = guest_volume_new();
    g_autofree char *asked = path_of("asked"), *keys = path_of("keys"), *conf = path_of("conf");
    g_autofree char *finds = g_strdup_printf(
        "#!/bin/sh\necho '" NOISE "an option of an older version' >&2\necho '/none,%s'\n", keys);
    g_autofree char *asks = g_strdup_printf("#!/bin/sh\necho $* >>%s\n", asked);
    g_autofree char *says = g_strdup_printf("#!/bin/sh\n\n"
                                            "echo '" NOISE "words' >&2\ncat %s/$5\n",
                                            folder);
    put("keys", "");
    put("conf", "[global]\n");
    put("ceph-conf", finds);
    put("ceph-authtool", "#!/bin/sh\necho '" NOISE "an option of an older version' >&2\n"
                         "echo " KEY "\n");
    put("ceph", asks);
    put("rbd", says);
    g_unlink(asked);
    text_set(&volume->path, "rbd/volumes.a");
    text_set(&volume->conf, conf);
    text_set(&volume->user, "fettle");
    text_set(&volume->pool, "rbd");
    text_set(&volume->image, "volumes.a");
    text_set(&volume->clients, clients);
    return volume;
}

/* What else its commands say gets into no line of it. */
static void keeps_key(void *unused)
{
    struct guest_volume *volume = new_volume("");
    g_autoptr(GError) error = NULL;
    char text[256] = "";
    int fd = pool_conf(volume, &error);
    g_assert_no_error(error);
    g_assert_cmpint(pread(fd, text, sizeof text - 1, 0), >, 0);
    g_assert_cmpstr(text, ==, "[global]\n\n[client.fettle]\nkey = " KEY "\n");
    close(fd);
    put("ceph-authtool", "#!/bin/sh\necho no key\n");
    g_assert_cmpint(pool_conf(volume, &error), ==, -1);
    g_assert_true(fettle_error_is(error, ENVIRONMENT));
    guest_volume_free(volume);
}

static void shuts_out(void *unused)
{
    struct guest_volume *volume = new_volume(ONE);
    g_autofree char *asked = path_of("asked"), *said = NULL, *clients = NULL;
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    rbd_says(OTHER, ONE);
    g_assert_true(pool_fence(volume, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(asked, &said, NULL, NULL));
    g_assert_true(pool_look(NULL, volume, &bytes, &clients, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(bytes, ==, 1048576);
    g_assert_cmpstr(clients, ==, OTHER);
    g_assert_nonnull(strstr(said, "osd blocklist add " ONE " 315360000\n"));
    g_assert_nonnull(strstr(said, "osd blocklist add " OTHER " 315360000\n"));
    guest_volume_free(volume);
}

/* An address without the number of a client is its whole host: all guests and members there. Who
 * says such a thing shuts out nobody, and puts nothing on record. */
static void shuts_out_no_host(void *unused)
{
    static const char *const wrong[] = {"192.0.2.1:0/0", "192.0.2.1", "192.0.2.1:0/", "--help",
                                        "-h/1",          "range",     "192.0.2.0/24 "};
    g_autofree char *asked = path_of("asked");
    for (guint i = 0; i < 3 * G_N_ELEMENTS(wrong); i++) {
        const char *it = wrong[i / 3];
        struct guest_volume *volume = new_volume(i % 3 == 0 ? it : ONE);
        g_autofree char *clients = NULL;
        g_autoptr(GError) error = NULL;
        guint64 bytes;
        rbd_says(i % 3 == 1 ? it : OTHER, i % 3 == 2 ? it : OTHER);
        g_assert_false(pool_fence(volume, &error));
        g_assert_true(fettle_error_is(error, CORRUPT));
        g_assert_false(g_file_test(asked, G_FILE_TEST_EXISTS));
        if (i % 3 == 1)
            g_assert_false(pool_look(NULL, volume, &bytes, &clients, NULL));
        guest_volume_free(volume);
    }
}

#define BACKEND "00000000-0000-4000-8000-0000000000e1"
#define CLUSTER "00000000-0000-4000-8000-0000000000c1"
#define NAME "11111111-0000-4000-8000-000000000001.17"

/* Ceph removes each object of an image by itself: a large one is none that hangs. */
static void removes_large_ones(void *unused)
{
    g_autofree char *conf = path_of("conf");
    struct backend *backend = backend_new();
    struct cluster *cluster = cluster_new();
    struct volume_driver *driver = volumes_by_kind_new("/bin/false", world_folder(), 2000);
    g_autoptr(GError) error = NULL;
    backend->kind = BACKEND_RBD;
    text_set(&backend->uuid, BACKEND);
    text_set(&backend->name, "ceph1");
    text_set(&backend->pool, "rbd");
    text_set(&backend->conf, conf);
    put("conf", "[global]\n");
    text_set(&cluster->uuid, CLUSTER);
    put("rados",
        "#!/bin/sh\necho '{\"type\":\"exclusive\",\"lockers\":[{\"cookie\":\"backend " BACKEND
        " cluster " CLUSTER " a\"}]}'\n");
    put("rbd",
        "#!/bin/sh\n[ $5 = info ] && echo '{\"size\":10737418240}'\n[ $5 != rm ] || sleep 3\n");
    driver->ops->open(driver, backend, cluster, false, &error);
    g_assert_no_error(error);
    driver->ops->remove(driver, backend, RESOURCE_VOLUME, NAME, &error);
    g_assert_no_error(error);
    volumes_by_kind_free(driver);
    cluster_free(cluster);
    backend_free(backend);
}

static void add_tests(void)
{
    folder = g_build_filename(world_folder(), "programs", NULL);
    g_autofree char *path = g_strdup_printf("%s:%s", folder, g_getenv("PATH"));
    g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
    g_setenv("PATH", path, TRUE);
    world_test("/pool/a-key-and-nothing-else", keeps_key);
    world_test("/pool/shuts-out-who-has-it#SAF-58", shuts_out);
    world_test("/pool/shuts-out-no-host#SAF-58", shuts_out_no_host);
    world_test("/pool/removes-large-ones", removes_large_ones);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

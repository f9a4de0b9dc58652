/*
 * Headers of qcow2 files: any bytes, and those of an instance's own images, which the user of its
 * guest can write. With the real qemu-img.
 */
#include "world.h"

#include "backend/storage/qcow2.h"
#include "base/limits.h"

#include <string.h>

#define U "11111111-1111-4111-8111-111111111111"
#define sh(...) g_free(world_shell(__VA_ARGS__))

/* Any bytes: read or refused, never believed beyond what is there. */
static void header_fuzz(void)
{
    GRand *random = g_rand_new_with_seed(7);
    guint accepted = 0;
    static const guint places[] = {4, 8, 12, 16, 20, 24, 32, 72, 76, 96, 100, 104, 108, 112};
    for (guint round = 0; round < 50000; round++) {
        gsize len = (gsize)g_rand_int_range(random, 0, 600);
        g_autofree guint8 *bytes = g_malloc0(len + 1);
        for (gsize i = 0; i < len; i++)
            bytes[i] = g_rand_int_range(random, 0, 3) == 0 ? (guint8)g_rand_int(random) : 0;
        memcpy(bytes, "QFI\xfb\0\0\0\3", MIN(len, 8));
        if (len > 128) { /* mostly sound, so that the later checks are reached */
            memset(bytes + 8, 0, 24);
            bytes[23] = 16;
            bytes[29] = 16;
            memset(bytes + 32, 0, 72);
            bytes[103] = 104;
            guint at = places[g_rand_int_range(random, 0, G_N_ELEMENTS(places))];
            bytes[at + 3] = (guint8)g_rand_int(random);
            if (g_rand_boolean(random))
                memset(bytes + 112, 'a', len - 112);
            bytes[15] = g_rand_boolean(random) ? (guint8)g_rand_int(random) : 0;
            bytes[19] = (guint8)g_rand_int_range(random, 0, 40);
            memcpy(bytes + 104, g_rand_boolean(random) ? "\xe2\x79\x2a\xca" : "DATA", 4);
            memset(bytes + 108, 0, 3);
        }
        struct qcow2_header header;
        g_autoptr(GError) error = NULL;
        if (qcow2_parse(bytes, len, &header, &error)) {
            accepted++;
            g_assert_cmpuint(header.size / MIB(1), <=, LIMIT_DISK_MIB);
            qcow2_header_clear(&header);
        } else {
            g_assert_nonnull(error);
        }
    }
    g_assert_cmpuint(accepted, >, 100); /* else nothing beyond the first check was tried */
    g_rand_free(random);
}

/* An instance's own image, whose header the user of its guest has written (SAF-105). */
static void assert_own_header(struct world_node *node, const char *options, const char *names)
{
    g_autofree char *path = g_strdup_printf("%s/disks/" U ".disk0.qcow2", node->paths->var);
    g_autofree char *message = g_strdup_printf(
        "image \"%s\": its header names a %s, which no image of an instance rests on; not opened",
        path, names);
    for (guint i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        sh("cd / && qemu-img create -q -f qcow2 -u %s %s 4M", options, path);
        g_autoptr(GPtrArray) files =
            i == 0 ? node->storage->ops->files(node->storage, U, "", 1, &error) : NULL;
        g_assert_null(files);
        g_assert_false(i == 1 && node->storage->ops->grow(node->storage, U, "", 0, 5, &error));
        g_assert_cmpstr(error->message, ==, message);
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    }
}

static void own_header(void *unused)
{
    struct world_node *node = world_node_new("own");
    g_autofree char *secret = g_build_filename(node->paths->var, "secret", NULL);
    g_autofree char *data = g_strdup_printf("-o data_file=%s", secret);
    g_autofree char *backing = g_strdup_printf("-b %s -F raw", secret);
    g_autofree char *names_data = g_strdup_printf("data file (%s)", secret);
    g_autofree char *names_backing = g_strdup_printf("backing file (%s)", secret);
    sh("qemu-img create -q -f qcow2 %s/disks/" U ".disk0.qcow2 4M", node->paths->var);
    g_autoptr(GPtrArray) files = node->storage->ops->files(node->storage, U, "", 1, NULL);
    g_assert_nonnull(files);
    assert_own_header(node, data, names_data);
    assert_own_header(node, backing, names_backing);
    world_node_free(node);
}

static void add_tests(void)
{
    g_test_add_func("/qcow2/any-header", header_fuzz);
    world_test("/qcow2/own-header-names-nothing#SAF-105", own_header);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}

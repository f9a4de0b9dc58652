/* The certificate of a server of the outside: changed files are taken by themselves once they
 * belong together, and until then the one before goes on. */
#include "io/http/tls_files.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "io/net/certs.h"

#define CLUSTER "6f9b2e0c-5f0a-4c1e-9d55-0a4b3c2d1e0f"
#define NODE "0c8d7e6f-1a2b-4c3d-8e9f-a0b1c2d3e4f5"

static const char *const names[] = {"ca.crt",    "ca.key",    "crt",     "key",
                                    "other.crt", "other.key", "both.pem"};
static char *folder, *paths[G_N_ELEMENTS(names)];
enum { CA, CA_KEY, CRT, KEY, OTHER, OTHER_KEY, BOTH };

static void set_up(void)
{
    g_autoptr(GError) error = NULL;
    folder = g_dir_make_tmp("fettle-tls-XXXXXX", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        paths[i] = g_build_filename(folder, names[i], NULL);
    g_assert_true(certs_make_ca(paths[CA], paths[CA_KEY], CLUSTER, &error));
    for (guint i = CRT; i <= OTHER; i += 2)
        g_assert_true(certs_make_node(paths[CA], paths[CA_KEY], CLUSTER, NODE, paths[i],
                                      paths[i + 1], &error));
}

static void tear_down(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_unlink(paths[i]);
        g_free(paths[i]);
    }
    g_rmdir(folder);
    g_free(folder);
}

static void assert_good(struct tls_files *files, GTlsCertificate *as, bool same)
{
    g_assert_cmpint(g_tls_certificate_is_same(tls_files_certificate(files), as), ==, same);
}

static void assert_still(struct tls_files *files)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(tls_files_look(files, &error));
    g_assert_no_error(error);
}

static void assert_refused(struct tls_files *files, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(tls_files_look(files, &error));
    g_assert_true(fettle_error_is(error, ENVIRONMENT));
    g_assert_nonnull(strstr(error->message, words));
    assert_still(files); /* it is told once */
}

/* One is replaced, then the other: each by a rename, as tools do. */
static void test_two_files(void)
{
    g_autoptr(GError) error = NULL;
    set_up();
    struct tls_files *files =
        tls_files_open((const char *[]){paths[CRT], NULL}, paths[KEY], &error);
    g_assert_no_error(error);
    g_autoptr(GTlsCertificate) first = g_object_ref(tls_files_certificate(files));
    assert_still(files);
    g_assert_no_errno(g_rename(paths[OTHER], paths[CRT]));
    assert_refused(files, paths[KEY]);
    assert_good(files, first, true);
    g_assert_no_errno(g_rename(paths[OTHER_KEY], paths[KEY]));
    g_assert_true(tls_files_look(files, &error));
    g_assert_no_error(error);
    assert_good(files, first, false);
    assert_still(files);
    g_assert_no_errno(g_unlink(paths[CRT]));
    assert_refused(files, paths[CRT]);
    g_assert_nonnull(tls_files_certificate(files));
    tls_files_free(files);
    tear_down();
}

static char *joined(guint certificate, guint key)
{
    g_autofree char *one = NULL, *other = NULL;
    g_assert_true(g_file_get_contents(paths[certificate], &one, NULL, NULL));
    g_assert_true(g_file_get_contents(paths[key], &other, NULL, NULL));
    return g_strconcat(one, other, NULL);
}

static void write_text(const char *text)
{
    g_assert_true(g_file_set_contents(paths[BOTH], text, -1, NULL));
}

/* A certificate with its key, as apid.pem. */
static void test_one_file(void)
{
    g_autoptr(GError) error = NULL;
    set_up();
    g_autofree char *first = joined(CRT, KEY), *second = joined(OTHER, OTHER_KEY);
    write_text(first);
    struct tls_files *files = tls_files_open((const char *[]){paths[BOTH], NULL}, "", &error);
    g_assert_no_error(error);
    g_autoptr(GTlsCertificate) shown = g_object_ref(tls_files_certificate(files));
    write_text("half");
    assert_refused(files, paths[BOTH]);
    assert_good(files, shown, true);
    write_text(second);
    g_assert_true(tls_files_look(files, &error));
    assert_good(files, shown, false);
    tls_files_free(files);
    tear_down();
}

/* The operator's, which comes later and goes again, before the one that is made for a daemon. */
static void test_first_that_is_there(void)
{
    g_autoptr(GError) error = NULL;
    set_up();
    g_autofree char *given = g_strconcat(paths[BOTH], ".given", NULL);
    const char *const certificates[] = {given, paths[BOTH], NULL};
    g_assert_false(tls_files_are_there(certificates));
    g_autofree char *own = joined(CRT, KEY), *other = joined(OTHER, OTHER_KEY);
    write_text(own);
    g_assert_true(tls_files_are_there(certificates));
    struct tls_files *files = tls_files_open(certificates, "", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(tls_files_shown(files), ==, paths[BOTH]);
    g_autoptr(GTlsCertificate) first = g_object_ref(tls_files_certificate(files));
    g_assert_no_errno(symlink("nowhere", given));
    assert_refused(files, given); /* it is there, and cannot be read */
    assert_good(files, first, true);
    g_assert_cmpstr(tls_files_shown(files), ==, paths[BOTH]);
    g_assert_no_errno(g_unlink(given));
    g_assert_true(g_file_set_contents(given, other, -1, NULL));
    g_assert_true(tls_files_look(files, &error));
    assert_good(files, first, false);
    g_assert_cmpstr(tls_files_shown(files), ==, given);
    g_assert_no_errno(g_unlink(given));
    g_assert_true(tls_files_look(files, &error));
    assert_good(files, first, true);
    g_assert_no_errno(g_unlink(paths[BOTH]));
    assert_refused(files, paths[BOTH]);
    assert_good(files, first, true);
    tls_files_free(files);
    tear_down();
}

/* What no handshake would come to its end with is told at once. */
static void test_no_pair(void)
{
    g_autoptr(GError) error = NULL;
    set_up();
    g_assert_null(tls_files_open((const char *[]){paths[CRT], NULL}, paths[OTHER_KEY], &error));
    g_assert_true(fettle_error_is(error, ENVIRONMENT));
    g_assert_nonnull(strstr(error->message, paths[OTHER_KEY]));
    g_clear_error(&error);
    g_assert_null(tls_files_open((const char *[]){paths[BOTH], NULL}, "", &error));
    g_assert_true(fettle_error_is(error, ENVIRONMENT));
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tls-files/two", test_two_files);
    g_test_add_func("/tls-files/one", test_one_file);
    g_test_add_func("/tls-files/first-that-is-there", test_first_that_is_there);
    g_test_add_func("/tls-files/no-pair", test_no_pair);
    return g_test_run();
}

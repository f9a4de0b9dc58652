/* Secrets of the API, and their keys in a file. */
#include "world.h"

#include "base/task.h"
#include "io/crypto/crypto.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

static char *folder, *path;

static void set_up(void)
{
    folder = g_dir_make_tmp("fettle-XXXXXX", NULL);
    path = g_build_filename(folder, "api-keys", NULL);
}

static void tear_down(void)
{
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
}

static struct crypto *opened(void)
{
    g_autoptr(GError) error = NULL;
    struct crypto *crypto = crypto_open(path, &error);
    g_assert_no_error(error);
    return crypto;
}

static char *sealed(struct crypto *crypto, const char *text)
{
    g_autoptr(GError) error = NULL;
    char *seal = crypto->ops->seal(crypto, text, strlen(text), &error);
    g_assert_no_error(error);
    return seal;
}

/* NULL: it does not open. */
static char *unsealed(struct crypto *crypto, const char *seal)
{
    g_autoptr(GError) error = NULL;
    size_t len;
    g_autofree char *data = crypto->ops->open(crypto, seal, &len, &error);
    if (data)
        return g_strndup(data, len);
    assert_error(&error, PERMISSION, "none of the keys");
    return NULL;
}

static void make_keys(void)
{
    g_autoptr(GError) error = NULL;
    crypto_keys_make(path, &error);
    g_assert_no_error(error);
}

static void test_seals(void)
{
    set_up();
    make_keys();
    struct crypto *crypto = opened();
    g_autofree char *one = sealed(crypto, "who I am"), *two = sealed(crypto, "who I am");
    g_assert_cmpstr(one, !=, two);
    g_assert_cmpuint(strspn(one, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_"), ==, strlen(one));
    g_autofree char *plain = unsealed(crypto, one);
    g_assert_cmpstr(plain, ==, "who I am");
    for (size_t i = 0; i < strlen(one); i++) { /* changed at any place, or cut off there */
        g_autofree char *changed = g_strdup(one);
        changed[i] = changed[i] == 'A' ? 'Q' : 'A'; /* differ in a bit that counts */
        g_assert_null(unsealed(crypto, changed));
        changed[i] = '\0';
        g_assert_null(unsealed(crypto, changed));
    }
    static const char *const nonsense[] = {"", "A", "AAAA", "====", "a b", "\xc3\xa4", "+/+/"};
    for (guint i = 0; i < G_N_ELEMENTS(nonsense); i++)
        g_assert_null(unsealed(crypto, nonsense[i]));
    crypto_close(crypto);
    tear_down();
}

/* Two front ends with one file: a key that was turned once opens yet, twice no more; nobody
 * restarts. */
static void test_rotation(void)
{
    set_up();
    make_keys();
    struct crypto *one = opened(), *other = opened();
    g_autofree char *seal = sealed(one, "me"), *first = unsealed(other, seal);
    g_assert_cmpstr(first, ==, "me");
    g_autoptr(GError) error = NULL;
    crypto_keys_rotate(path, &error);
    g_assert_no_error(error);
    g_autofree char *second = unsealed(other, seal), *newer = sealed(other, "newer");
    g_assert_cmpstr(second, ==, "me");
    g_autofree char *third = unsealed(one, newer);
    g_assert_cmpstr(third, ==, "newer");
    crypto_keys_rotate(path, &error);
    g_assert_no_error(error);
    g_assert_null(unsealed(one, seal));
    g_assert_null(unsealed(other, seal));
    /* what cannot be read leaves them as they are */
    g_autofree char *kept = sealed(one, "kept");
    g_chmod(path, 0644);
    g_unlink(path);
    g_autofree char *fourth = unsealed(one, kept);
    g_assert_cmpstr(fourth, ==, "kept");
    crypto_close(one);
    crypto_close(other);
    tear_down();
}

static void check_refused(const char *text, guint mode, enum fettle_error code, const char *words)
{
    g_autoptr(GError) error = NULL;
    if (text) {
        g_file_set_contents(path, text, -1, NULL);
        g_chmod(path, mode);
    }
    g_assert_null(crypto_open(path, &error));
    assert_error_at(&error, code, words, G_STRLOC);
}

static void test_files(void)
{
    set_up();
    check_refused(NULL, 0, FETTLE_ERROR_UNKNOWN_ENTITY, "run `fettle api init`");
    make_keys();
    g_autoptr(GError) error = NULL;
    g_assert_false(crypto_keys_make(path, &error));
    assert_error(&error, ALREADY_EXISTS, "there are keys already");
    struct stat state;
    g_assert_cmpint(stat(path, &state), ==, 0);
    g_assert_cmpuint(state.st_mode & 07777, ==, 0600);
    g_autofree char *text = NULL;
    g_file_get_contents(path, &text, NULL, NULL);
    check_refused(text, 0644, FETTLE_ERROR_PERMISSION, "others may read it (mode 0644)");
    check_refused(text, 0640, FETTLE_ERROR_PERMISSION, "chmod 600");
    check_refused("", 0600, FETTLE_ERROR_CORRUPT, "no keys of the API");
    text[strlen(text) - 5] = '\0'; /* torn */
    check_refused(text, 0600, FETTLE_ERROR_CORRUPT, "no keys of the API");
    tear_down();
}

/* --- passwords --- */

static struct crypto *ring;
static guint good, busy, finished;

static void check_password(void *unused)
{
    g_autoptr(GError) error = NULL;
    bool is = false;
    g_autofree char *kept = ring->ops->password_keep(ring, "secret", &error);
    g_assert_no_error(error);
    g_assert_true(g_str_has_prefix(kept, "$y$"));
    ring->ops->password_is(ring, kept, "secret", &is, &error);
    g_assert_no_error(error);
    g_assert_true(is);
    g_autofree char *again = ring->ops->password_keep(ring, "secret", &error);
    g_assert_cmpstr(again, !=, kept); /* each with a salt of its own */
    static const char *const wrong[] = {"", "Secret", "secret ", "secre"};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_true(ring->ops->password_is(ring, kept, wrong[i], &is, &error));
        g_assert_false(is);
    }
    static const char *const never[] = {"", "*", "*0", "secret", "$y$", "$y$j9T$"};
    for (guint i = 0; i < G_N_ELEMENTS(never); i++) {
        g_assert_true(ring->ops->password_is(ring, never[i], "secret", &is, &error));
        g_assert_false(is);
    }
    g_autofree char *most = g_strnfill(511, 'x'), *more = g_strnfill(512, 'x');
    g_autofree char *long_kept = ring->ops->password_keep(ring, most, &error);
    g_assert_no_error(error);
    g_assert_null(ring->ops->password_keep(ring, more, &error));
    assert_error(&error, WRONG_INPUT, "less than 512 bytes");
    g_assert_true(ring->ops->password_is(ring, long_kept, more, &is, &error));
    g_assert_false(is);
}

static void log_in(void *kept)
{
    g_autoptr(GError) error = NULL;
    bool is = false;
    if (ring->ops->password_is(ring, kept, "secret", &is, &error))
        good += is;
    else
        busy += fettle_error_is(error, TEMPORARY) ? 1 : 0;
    finished++;
}

static void test_passwords(void)
{
    set_up();
    make_keys();
    ring = opened();
    world_in_task(check_password);
    g_autofree char *kept = ring->ops->password_keep(ring, "secret", NULL); /* outside of a task */
    struct task_group *group = task_group_new();
    for (guint i = 0; i < 100; i++)
        task_spawn(group, log_in, kept);
    world_wait_count(&finished, 100);
    g_assert_cmpuint(good, ==, 66); /* two are checked, 64 wait */
    g_assert_cmpuint(busy, ==, 34);
    finished = 0;
    for (guint i = 0; i < 10; i++) /* nobody waits any more */
        task_spawn(group, log_in, kept);
    world_pause(1);
    task_group_kill(group);
    world_wait_count(&finished, 10);
    task_group_unref(group);
    crypto_close(ring);
    world_pause(1);
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/crypto/seals", test_seals);
    g_test_add_func("/crypto/keys are turned", test_rotation);
    g_test_add_func("/crypto/files that are refused", test_files);
    g_test_add_func("/crypto/passwords", test_passwords);
    return g_test_run();
}

/* Names of data on back ends. */
#include "proto/storage/volume_driver.h"

#define DISK "abcdefab-0000-4000-8000-000000000001"

static void test_round(void)
{
    static const guint64 claims[] = {1, 10, 9007199254740991};
    for (guint i = 0; i < G_N_ELEMENTS(claims); i++) {
        g_autofree char *name = volume_data_name(DISK, claims[i]);
        g_autofree char *uuid = NULL;
        guint64 claim = 0;
        g_assert_true(volume_data_parse(name, &uuid, &claim));
        g_assert_cmpstr(uuid, ==, DISK);
        g_assert_cmpuint(claim, ==, claims[i]);
    }
}

static void test_no_names(void)
{
    static const char *const texts[] = {"",
                                        "7",
                                        DISK,
                                        DISK ".",
                                        DISK ".0",
                                        DISK ".07",
                                        DISK ".7.tmp",
                                        DISK ".-7",
                                        DISK "-7",
                                        DISK ".12345678901234567",
                                        "ABCDEFAB-0000-4000-8000-000000000001.7",
                                        "abcdefab-0000-4000-8000-00000000000g.7",
                                        "../defab-0000-4000-8000-000000000001.7"};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        char *uuid = NULL;
        guint64 claim = 0;
        g_assert_false(volume_data_parse(texts[i], &uuid, &claim));
        g_assert_null(uuid);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume_driver/names#SAF-52", test_round);
    g_test_add_func("/volume_driver/no-names", test_no_names);
    return g_test_run();
}

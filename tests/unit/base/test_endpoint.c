/*
 * Addresses with ports in one text.
 */
#include "base/endpoint.h"

static void texts(void)
{
    static const struct {
        const char *address, *text;
    } cases[] = {{"192.0.2.1", "192.0.2.1:1811"},
                 {"2001:db8::1", "[2001:db8::1]:1811"},
                 {"::", "[::]:1811"},
                 {"node1.example", "node1.example:1811"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = endpoint_text(cases[i].address, 1811);
        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/endpoint/texts", texts);
    return g_test_run();
}

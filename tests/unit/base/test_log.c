/* Tests of base/log.h: the form of a line, and that a message cannot forge a second one. */
#include "base/limits.h"
#include "base/log.h"

#include <string.h>

static char *last_line;

static void sink(const char *line, void *ctx)
{
    g_free(last_line);
    last_line = g_strdup(line);
}

static void assert_line(const char *pattern)
{
    if (!g_regex_match_simple(pattern, last_line, 0, 0))
        g_error("\"%s\" does not match \"%s\"", last_line, pattern);
}

#define STAMP "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z"

static void test_form(void)
{
    log_set_sink(sink, NULL);
    log_init("fettle-noded");
    log_info("INSTANCE=web1 GENERATION=4", "guest %s", "started");
    assert_line("^<6>" STAMP " fettle-noded: guest started INSTANCE=web1 GENERATION=4$");
    log_warning("", "slow");
    assert_line("^<4>" STAMP " fettle-noded: slow$");
    log_error("", "gone");
    assert_line("^<3>" STAMP " fettle-noded: gone$");
    log_set_sink(NULL, NULL);
}

static void test_one_line(void)
{
    log_set_sink(sink, NULL);
    log_info("A=b\nC=d", "first\n<3>forged\tx\x1b[31m");
    g_assert_null(strpbrk(last_line, "\n\t\x1b"));
    assert_line(": first <3>forged x \\[31m A=b C=d$");
    g_autofree char *long_text = g_strnfill(3 * LIMIT_LOG_LINE_BYTES, 'x');
    log_info("", "%s", long_text);
    g_assert_cmpuint(strlen(last_line), ==, LIMIT_LOG_LINE_BYTES);
    log_set_sink(NULL, NULL);
}

static void test_stderr(void)
{
    if (g_test_subprocess()) {
        log_init("fettle-x");
        log_warning("K=v", "two");
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("<4>*Z fettle-x: two K=v\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/log/form", test_form);
    g_test_add_func("/log/one-line", test_one_line);
    g_test_add_func("/log/stderr", test_stderr);
    int result = g_test_run();
    g_free(last_line);
    return result;
}

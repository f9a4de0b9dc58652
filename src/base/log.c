/* See log.h. One write per line, so that lines of several processes do not mix; the prefix is the
 * one sd-daemon reads. */
#include "base/log.h"

#include "base/limits.h"

#include <string.h>
#include <unistd.h>

enum priority { PRIORITY_ERROR = 3, PRIORITY_WARNING = 4, PRIORITY_INFO = 6 };

static const char *program_name = "fettle";
static log_sink line_sink;
static void *line_ctx;

void log_init(const char *program)
{
    program_name = program;
}

void log_set_sink(log_sink sink, void *ctx)
{
    line_sink = sink;
    line_ctx = ctx;
}

static void write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t done = write(STDERR_FILENO, data, len);
        if (done <= 0)
            return; /* nobody to tell */
        data += done;
        len -= (size_t)done;
    }
}

/* What a peer put into a message must not look like a second line. */
static void flatten(GString *line)
{
    for (size_t i = 0; i < line->len; i++)
        if ((unsigned char)line->str[i] < 0x20 || line->str[i] == 0x7f)
            line->str[i] = ' ';
    if (line->len > LIMIT_LOG_LINE_BYTES)
        g_string_truncate(line, LIMIT_LOG_LINE_BYTES);
}

static void G_GNUC_PRINTF(3, 0)
    emit(enum priority priority, const char *fields, const char *format, va_list args)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *stamp = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S");
    g_autoptr(GString) line = g_string_sized_new(160);
    g_string_printf(line, "<%d>%s.%03dZ %s: ", (int)priority, stamp,
                    g_date_time_get_microsecond(now) / 1000, program_name);
    g_string_append_vprintf(line, format, args);
    if (fields != NULL && fields[0] != '\0')
        g_string_append_printf(line, " %s", fields);
    flatten(line);
    if (line_sink != NULL) {
        line_sink(line->str, line_ctx);
        return;
    }
    g_string_append_c(line, '\n');
    write_all(line->str, line->len);
}

void log_info(const char *fields, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    emit(PRIORITY_INFO, fields, format, args);
    va_end(args);
}

void log_warning(const char *fields, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    emit(PRIORITY_WARNING, fields, format, args);
    va_end(args);
}

void log_error(const char *fields, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    emit(PRIORITY_ERROR, fields, format, args);
    va_end(args);
}

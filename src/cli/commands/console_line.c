/* See console_line.h. */
#include "cli/commands/console_line.h"

#include <string.h>

void line_init(struct line *line, const struct cli *cli, const char *name, gint64 offset)
{
    *line = (struct line){.name = name,
                          .read = *cli,
                          .type = *cli,
                          .ask = *cli,
                          .offset = offset,
                          .typed = g_byte_array_new()};
    line->read.luxi = line->type.luxi = line->ask.luxi = NULL;
    line->read.patience_ms = line->type.patience_ms = line->ask.patience_ms = CONSOLE_PATIENCE_MS;
}

void line_clear(struct line *line)
{
    cli_disconnect(&line->read);
    cli_disconnect(&line->type);
    cli_disconnect(&line->ask);
    g_byte_array_unref(line->typed);
    g_free(line->node);
}

/* --- what is said about it --- */

/* Once, until all is well again. */
static void note_trouble(struct line *line, bool *noted, const char *what, const GError *failure)
{
    g_autofree char *text = g_strdup_printf("%s: %s", what, failure->message);
    if (!*noted)
        line->note(text);
    *noted = true;
}

/* After an answer of `node`. */
static void note_place(struct line *line, const char *node)
{
    bool moved = line->node != NULL && strcmp(line->node, node) != 0;
    g_autofree char *text =
        moved ? g_strdup_printf("%s has moved from %s to %s", line->name, line->node, node)
              : g_strdup_printf("%s is heard again", line->name);
    if (moved || line->silent)
        line->note(text);
    line->silent = false;
    if (moved || line->node == NULL) {
        g_free(line->node);
        line->node = g_strdup(node);
    }
}

/* --- what became of the instance when a half of its line fails --- */

static const char *const fields[] = {"pnode", "task_state", NULL};

enum fate { OVER, MOVING, STAYING };

/* Whether to go on in spite of `failure`; OVER: it, or a better error, is in `error`. */
static enum fate look(struct line *line, const GError *failure, GError **error)
{
    json_autoptr rows = cli_query(&line->ask, "instance", fields,
                                  json_make("[sss]", "=", "name", line->name), NULL);
    if (rows == NULL)
        cli_disconnect(&line->ask);
    const json_t *row = json_array_get(rows, 0);
    if (rows != NULL && row == NULL && line->node != NULL) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance \"%s\" has been removed", line->name);
        return OVER;
    }
    if (row != NULL && line->node != NULL &&
        (*cli_cell_string(row, 1) != '\0' || strcmp(cli_cell_string(row, 0), line->node) != 0))
        return MOVING;
    if (line->node != NULL && line->patient)
        return STAYING;
    g_propagate_error(error, g_error_copy(failure));
    return OVER;
}

/* --- reading --- */

static bool ask_more(struct line *line, GError **error)
{
    return cli_send(&line->read, "ConsoleRead",
                    json_make("[sIis]", line->name, (json_int_t)line->offset, CONSOLE_WAIT_MS,
                              line->node != NULL ? line->node : ""),
                    error);
}

static GBytes *parse_answer(struct line *line, const json_t *answer, GError **error)
{
    const char *text = json_string_value(json_array_get(answer, 0));
    const json_t *offset = json_array_get(answer, 1);
    const char *node = json_string_value(json_array_get(answer, 2));
    if (text == NULL || !json_is_integer(offset) || node == NULL) {
        fettle_set_error(error, PROTOCOL, "ConsoleRead: the answer is no [base64, offset, node]");
        return NULL;
    }
    gsize len = 0;
    guint8 *data = g_base64_decode(text, &len);
    note_place(line, node);
    line->offset = json_integer_value(offset);
    return g_bytes_new_take(data, len);
}

static bool read_failed(struct line *line, const GError *failure, GError **error)
{
    line->read_again = g_get_monotonic_time() + CONSOLE_RETRY_MS * 1000;
    cli_disconnect(&line->read);
    enum fate fate = look(line, failure, error);
    if (fate == STAYING)
        note_trouble(line, &line->silent, "nothing is heard", failure);
    return fate != OVER;
}

GBytes *line_hear(struct line *line, GError **error)
{
    g_autoptr(GError) failure = NULL;
    json_autoptr answer = cli_receive(&line->read, &failure);
    line->reading = false;
    GBytes *bytes = answer == NULL ? NULL : parse_answer(line, answer, &failure);
    if (bytes == NULL)
        read_failed(line, failure, error);
    return bytes;
}

/* --- typing --- */

static bool type_more(struct line *line, GError **error)
{
    line->sent = MIN(line->typed->len, CONSOLE_TYPE_BYTES);
    g_autofree char *text = g_base64_encode(line->typed->data, line->sent);
    return cli_send(&line->type, "ConsoleWrite", json_make("[ss]", line->name, text), error);
}

/* What may have been typed is not typed again; what cannot be now is, when it has moved. */
static bool type_failed(struct line *line, const GError *failure, GError **error)
{
    bool unknown = g_error_matches(failure, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_RESULT) ||
                   g_error_matches(failure, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    line->type_again = g_get_monotonic_time() + CONSOLE_RETRY_MS * 1000;
    cli_disconnect(&line->type);
    enum fate fate = look(line, failure, error);
    if (fate == STAYING)
        note_trouble(line, &line->deaf, "what is typed is lost", failure);
    if (unknown || fate == STAYING)
        g_byte_array_remove_range(line->typed, 0, line->sent);
    return fate != OVER;
}

bool line_typed(struct line *line, GError **error)
{
    g_autoptr(GError) failure = NULL;
    json_autoptr answer = cli_receive(&line->type, &failure);
    line->typing = false;
    if (answer == NULL)
        return type_failed(line, failure, error);
    line->deaf = false;
    g_byte_array_remove_range(line->typed, 0, line->sent);
    return true;
}

bool line_has_room(const struct line *line)
{
    return line->typed->len < CONSOLE_TYPE_BYTES;
}

void line_type(struct line *line, const guint8 *data, gsize len)
{
    g_byte_array_append(line->typed, data, (guint)len);
}

bool line_is_idle(const struct line *line)
{
    return line->typed->len == 0;
}

/* --- both --- */

bool line_go(struct line *line, GError **error)
{
    gint64 now = g_get_monotonic_time();
    g_autoptr(GError) failure = NULL;
    if (!line->reading && now >= line->read_again) {
        line->reading = ask_more(line, &failure);
        if (!line->reading && !read_failed(line, failure, error))
            return false;
        g_clear_error(&failure);
    }
    if (!line->typing && line->typed->len > 0 && now >= line->type_again) {
        line->typing = type_more(line, &failure);
        if (!line->typing && !type_failed(line, failure, error))
            return false;
    }
    return true;
}

void line_descriptors(const struct line *line, int *ret_read, int *ret_type)
{
    *ret_read = line->reading ? cli_descriptor(&line->read) : -1;
    *ret_type = line->typing ? cli_descriptor(&line->type) : -1;
}

int line_wait(const struct line *line)
{
    gint64 next = -1;
    if (!line->reading)
        next = line->read_again;
    if (!line->typing && line->typed->len > 0)
        next = next < 0 ? line->type_again : MIN(next, line->type_again);
    return next < 0 ? -1 : (int)(MAX(next - g_get_monotonic_time(), 0) / 1000 + 1);
}

/* See cli_table.h: errors about fields of an opcode, told with the flags that were typed. */
#include "proto/cli/cli_args.h"

#include <string.h>

/* "nics[1].ip: rest" in its parts; false: it does not look so. */
struct complaint {
    char *field, *part;
    int index; /* -1: none */
    const char *rest;
};

static void complaint_clear(struct complaint *complaint)
{
    g_free(complaint->field);
    g_free(complaint->part);
}

static bool read_complaint(const char *message, struct complaint *complaint)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t length = strspn(message, letters);
    const char *at = message + length;
    *complaint = (struct complaint){.field = g_strndup(message, length), .index = -1};
    if (length > 0 && *at == '[') {
        char *end = NULL;
        complaint->index = (int)g_ascii_strtoull(at + 1, &end, 10);
        at = *end == ']' ? end + 1 : "";
    }
    if (length > 0 && *at == '.') {
        size_t part = strspn(at + 1, letters);
        complaint->part = g_strndup(at + 1, part);
        at += 1 + part;
    }
    complaint->rest = at + 2;
    return length > 0 && g_str_has_prefix(at, ": ");
}

static const struct cli_arg *arg_of(const GPtrArray *args, const char *field)
{
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (strcmp(arg->field->name, field) == 0)
            return arg;
    }
    return NULL;
}

/* How often a flag was typed, by whichever of its names; `*ret_name` is the one that it was. */
static int times_typed(const struct cli_arg *arg, const char *const *words, const char **ret_name)
{
    int times = 0;
    *ret_name = arg->name;
    for (; words != NULL && *words != NULL; words++) {
        size_t length = strcspn(*words, "=");
        const char *const names[] = {arg->name, arg->also};
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
            if (names[i] != NULL && strlen(names[i]) == length &&
                strncmp(names[i], *words, length) == 0) {
                times++;
                *ret_name = names[i];
            }
    }
    return times;
}

void cli_command_explain(const struct cli_command *command, const char *const *words,
                         GError **error)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    struct complaint complaint;
    if (error == NULL || *error == NULL)
        return;
    bool read = read_complaint((*error)->message, &complaint);
    const struct cli_arg *arg = read ? arg_of(args, complaint.field) : NULL;
    if (arg != NULL) {
        const char *name;
        int times = times_typed(arg, words, &name);
        GString *text = g_string_new(name);
        if (times > 1 && complaint.index >= 0)
            g_string_append_printf(text, " %d", complaint.index + 1);
        g_string_append(text, ": ");
        if (complaint.part != NULL)
            g_string_append_printf(text, "%s: ", complaint.part);
        g_string_append(text, complaint.rest);
        if (arg->example != NULL && fettle_error_is(*error, WRONG_INPUT))
            g_string_append_printf(text, "; as in %s %s", name, arg->example);
        g_free((*error)->message);
        (*error)->message = g_string_free(text, FALSE);
    }
    complaint_clear(&complaint);
}

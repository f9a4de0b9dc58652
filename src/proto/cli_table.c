/* See cli_table.h. Values are checked field by field with the flag's name in the error, then the
 * whole as an opcode. */
#include "proto/cli_args.h"

#include "proto/nearest.h"

#include <string.h>

static const struct cli_command commands[] = {
#define COMMAND(noun, verb, OPCODE, words) {noun, verb, "OP_" #OPCODE, words},
#define FLAG(field, flag, words, shape)
#include "proto/cli.def"
#undef COMMAND
#undef FLAG
};

const struct cli_command *cli_command_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(commands);
    return commands;
}

const struct cli_command *cli_command_find(const char *noun, const char *verb)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        if (g_strcmp0(commands[i].noun, noun) == 0 && g_strcmp0(commands[i].verb, verb) == 0)
            return &commands[i];
    return NULL;
}

const char *cli_command_doc(const struct cli_command *command)
{
    return opcode_find(command->op_id)->doc;
}

struct parser {
    const struct cli_command *command;
    const GPtrArray *args; /* of struct cli_arg */
    guint next_word;
    json_t *opcode; /* being built */
};

static const struct cli_arg *arg_at(const struct parser *parser, guint index)
{
    return index < parser->args->len ? g_ptr_array_index(parser->args, index) : NULL;
}

static bool set_value(struct parser *parser, const struct cli_arg *arg, const char *name,
                      const char *text, GError **error)
{
    json_t *there = json_object_get(parser->opcode, arg->field->name);
    if (there != NULL && !cli_arg_repeats(arg)) {
        fettle_set_error(error, WRONG_INPUT, "%s: is given twice", name);
        return false;
    }
    json_autoptr value = cli_arg_value(arg, name, text, error);
    if (value == NULL)
        return false;
    if (there != NULL)
        json_array_extend(there, value);
    else
        json_object_set(parser->opcode, arg->field->name, value);
    return true;
}

static bool parse_word(struct parser *parser, const char *text, GError **error)
{
    const struct cli_arg *arg;
    while ((arg = arg_at(parser, parser->next_word)) != NULL && arg->word) {
        if (!arg->rest)
            parser->next_word++;
        if (arg->unless_field != NULL) {
            const json_t *other = json_object_get(parser->opcode, arg->unless_field);
            if (g_strcmp0(json_string_value(other), arg->unless_word) == 0)
                continue;
        }
        return set_value(parser, arg, arg->name, text, error);
    }
    fettle_set_error(error, WRONG_INPUT, "\"%s\": one word too many; see \"fettle %s %s --help\"",
                     text, parser->command->noun, parser->command->verb);
    return false;
}

static void set_unknown_flag(const struct parser *parser, const char *flag, GError **error)
{
    g_autoptr(GPtrArray) names = cli_arg_flag_names(parser->args);
    const char *near = nearest_word(flag, (const char *const *)names->pdata);
    g_autofree char *hint =
        near != NULL ? g_strdup_printf(" did you mean %s?", near) : g_strdup("");
    fettle_set_error(error, WRONG_INPUT, "%s: unknown flag;%s see \"fettle %s %s --help\"", flag,
                     hint, parser->command->noun, parser->command->verb);
}

/* `next`: the word after the flag, NULL at the end. Tells whether it was taken as the flag's value.
 */
static bool parse_flag(struct parser *parser, const char *word, const char *next, bool *ret_took,
                       GError **error)
{
    const char *equals = strchr(word, '=');
    g_autofree char *flag =
        equals != NULL ? g_strndup(word, (size_t)(equals - word)) : g_strdup(word);
    bool no;
    const struct cli_arg *arg = cli_arg_flag(parser->args, flag, &no);
    *ret_took = false;
    if (arg == NULL) {
        set_unknown_flag(parser, flag, error);
        return false;
    }
    if (no && equals != NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: takes no value", flag);
        return false;
    }
    if (equals != NULL)
        return set_value(parser, arg, flag, equals + 1, error);
    if (arg->field->type == FIELD_TYPE_BOOL)
        return set_value(parser, arg, flag, no ? "false" : "true", error);
    if (next == NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: needs a value", flag);
        return false;
    }
    *ret_took = true;
    return set_value(parser, arg, flag, next, error);
}

static bool parse_words(struct parser *parser, const char *const *words, GError **error)
{
    bool only_words = false;
    for (int i = 0; words[i] != NULL; i++) {
        bool took = false;
        if (!only_words && strcmp(words[i], "--") == 0)
            only_words = true;
        else if (!only_words && g_str_has_prefix(words[i], "--")) {
            if (!parse_flag(parser, words[i], words[i + 1], &took, error))
                return false;
        } else if (!parse_word(parser, words[i], error)) {
            return false;
        }
        if (took)
            i++;
    }
    return true;
}

static bool nothing_missing(const struct parser *parser, GError **error)
{
    for (guint i = 0; i < parser->args->len; i++) {
        const struct cli_arg *arg = g_ptr_array_index(parser->args, i);
        if (!arg->field->required || json_object_get(parser->opcode, arg->field->name) != NULL)
            continue;
        fettle_set_error(error, WRONG_INPUT, "%s: is missing; see \"fettle %s %s --help\"",
                         arg->name, parser->command->noun, parser->command->verb);
        return false;
    }
    return true;
}

json_t *cli_command_parse(const struct cli_command *command, const char *const *words,
                          GError **error)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    json_autoptr opcode = json_make("{s:s}", "OP_ID", command->op_id);
    struct parser parser = {.command = command, .args = args, .opcode = opcode};
    if (!parse_words(&parser, words, error) || !nothing_missing(&parser, error))
        return NULL;
    record_autoptr(op_common) common = NULL;
    void *params = NULL;
    const struct opcode *row;
    if (!opcode_parse(opcode, &common, &params, &row, error))
        return NULL;
    record_free(row->params, params);
    return json_steal(&opcode);
}

/* See cli_table.h. Values are checked field by field with the flag's name in the error, then the
 * whole as an opcode. */
#include "proto/cli/cli_args.h"

#include "proto/nearest.h"

#include <string.h>

static const struct cli_command commands[] = {
#define COMMAND(noun, verb, OPCODE, words, done, ...)                                              \
    {noun, verb, "OP_" #OPCODE, words, done, {__VA_ARGS__}},
#define FLAG(field, flag, words, shape, example)
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

const struct cli_command *cli_command_of(const char *op_id)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        if (g_strcmp0(commands[i].op_id, op_id) == 0)
            return &commands[i];
    return NULL;
}

bool cli_command_is_job(const struct cli_command *command)
{
    return strcmp(command->op_id, "OP_CLUSTER_INIT") != 0;
}

const char *cli_command_doc(const struct cli_command *command)
{
    return opcode_find(command->op_id)->doc;
}

struct parser {
    const struct cli_command *command;
    const GPtrArray *args; /* of struct cli_arg */
    guint next_word;
    json_t *opcode;   /* being built */
    GPtrArray *names; /* all words of an argument that takes many objects; NULL: it takes one */
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

/* The opcode gets the first one; each is checked. */
static bool add_name(struct parser *parser, const struct cli_arg *arg, const char *text,
                     GError **error)
{
    json_autoptr value = cli_arg_value(arg, arg->name, text, error);
    if (value == NULL)
        return false;
    if (parser->names->len == 0)
        json_object_set(parser->opcode, arg->field->name, value);
    g_ptr_array_add(parser->names, g_strdup(text));
    return true;
}

static bool parse_word(struct parser *parser, const char *text, GError **error)
{
    const struct cli_arg *arg;
    while ((arg = arg_at(parser, parser->next_word)) != NULL && arg->word) {
        if (!arg->rest && !(arg->many && parser->names != NULL))
            parser->next_word++;
        if (arg->many && parser->names != NULL)
            return add_name(parser, arg, text, error);
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

/* Flags of one letter, as Ganeti's clients have them. */
static const char *long_flag(const char *flag)
{
    static const char *const letters[][2] = {
        {"-t", "--disk-template"}, {"-n", "--pnode"},       {"-s", "--disk"},
        {"-B", "--memory"},        {"-f", "--yes"},         {"-m", "--memory"},
        {"-H", "--kernel-path"},   {"-O", "--kernel-args"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(letters); i++)
        if (strcmp(letters[i][0], flag) == 0)
            return letters[i][1];
    return NULL;
}

static void set_unknown_flag(const struct parser *parser, const char *flag, GError **error)
{
    g_autoptr(GPtrArray) names = cli_arg_flag_names(parser->args);
    const char *const *list = (const char *const *)names->pdata;
    const char *spelt = long_flag(flag);
    bool there = spelt != NULL && (strcmp(spelt, "--yes") == 0 || g_strv_contains(list, spelt));
    const char *near = there ? spelt : nearest_word(flag, list);
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
        } else if (!only_words && words[i][0] == '-' && g_ascii_isalpha(words[i][1])) {
            g_autofree char *flag = g_strndup(words[i], 2);
            set_unknown_flag(parser, flag, error);
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

/* "" and an empty list leave things as they are. */
static bool is_said(const json_t *value)
{
    return value != NULL && !(json_is_string(value) && json_string_length(value) == 0) &&
           !(json_is_array(value) && json_array_size(value) == 0);
}

/* On the wire 0 stands for a number that stays; of a person it would be another wish. */
static bool is_no_number(const struct cli_arg *arg, const json_t *value)
{
    return arg->field->type == FIELD_TYPE_UINT && json_is_integer(value) &&
           json_integer_value(value) == 0;
}

/* A command that changes something is not submitted if it could only fail. */
static bool changes_something(const struct parser *parser, GError **error)
{
    bool said = false;
    if (g_strcmp0(parser->command->verb, "modify") != 0)
        return true;
    for (guint i = 0; i < parser->args->len; i++) {
        const struct cli_arg *arg = g_ptr_array_index(parser->args, i);
        const json_t *value = json_object_get(parser->opcode, arg->field->name);
        if (arg->common || arg->field->required)
            continue;
        if (is_no_number(arg, value)) {
            fettle_set_error(error, WRONG_INPUT,
                             "%s: must be at least 1; without the flag it stays as it is",
                             arg->name);
            return false;
        }
        said = said || is_said(value);
    }
    if (!said)
        fettle_set_error(error, WRONG_INPUT,
                         "nothing to change: name at least one flag; see \"fettle %s %s --help\"",
                         parser->command->noun, parser->command->verb);
    return said;
}

static json_t *parse_line(struct parser *parser, const char *const *words, GError **error)
{
    json_autoptr opcode = json_make("{s:s}", "OP_ID", parser->command->op_id);
    parser->opcode = opcode;
    if (!parse_words(parser, words, error) || !nothing_missing(parser, error) ||
        !changes_something(parser, error))
        return NULL;
    record_autoptr(op_common) common = NULL;
    g_autoptr(GError) bad = NULL;
    void *params = NULL;
    const struct opcode *row;
    if (!opcode_parse(opcode, &common, &params, &row, &bad)) {
        cli_command_explain(parser->command, words, &bad);
        g_propagate_error(error, g_steal_pointer(&bad));
        return NULL;
    }
    record_free(row->params, params);
    return json_steal(&opcode);
}

json_t *cli_command_parse(const struct cli_command *command, const char *const *words,
                          GError **error)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    struct parser parser = {.command = command, .args = args};
    return parse_line(&parser, words, error);
}

json_t *cli_command_parse_many(const struct cli_command *command, const char *const *words,
                               GPtrArray **ret_names, GError **error)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    struct parser parser = {.command = command, .args = args, .names = names};
    json_t *opcode = parse_line(&parser, words, error);
    if (opcode == NULL)
        return NULL;
    g_ptr_array_add(names, NULL);
    *ret_names = names->len > 1 ? g_steal_pointer(&names) : NULL;
    return opcode;
}

const char *cli_command_many(const struct cli_command *command)
{
    static const char *const fields[][2] = {{"instance_name*", "instance"},
                                            {"node_name*", "node"},
                                            {"network_name*", "network"},
                                            {"backend_name*", "backend"}};
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (strcmp(command->words, fields[i][0]) == 0)
            return fields[i][1];
    return NULL;
}

/* The flags of every job, of any command that is one. */
static GPtrArray *common_args(void)
{
    GPtrArray *args = cli_args(cli_command_find("test", "delay"));
    for (guint i = args->len; i > 0; i--)
        if (!((const struct cli_arg *)args->pdata[i - 1])->common)
            g_ptr_array_remove_index(args, i - 1);
    return args;
}

static bool is_flag_of(const GPtrArray *args, const char *word)
{
    g_autofree char *name = g_strndup(word, strcspn(word, "="));
    bool no;
    return cli_arg_flag(args, name, &no) != NULL;
}

json_t *cli_common_take(int *argc, char **argv, GError **error)
{
    g_autoptr(GPtrArray) args = common_args();
    json_autoptr fields = json_object();
    struct parser parser = {.args = args, .opcode = fields};
    int kept = 0, i = 0;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        bool took = false;
        if (!is_flag_of(args, argv[i]))
            argv[kept++] = argv[i];
        else if (!parse_flag(&parser, argv[i], i + 1 < *argc ? argv[i + 1] : NULL, &took, error))
            return NULL;
        if (took)
            i++;
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    *argc = kept;
    return json_steal(&fields);
}

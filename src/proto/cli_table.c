/* See cli_table.h. Values are checked field by field with the flag's name in the error, then the
 * whole as an opcode. */
#include "proto/cli_table.h"

#include "proto/record_internal.h"

#include <string.h>

static const struct cli_command commands[] = {
#define COMMAND(noun, verb, OPCODE, words) {noun, verb, "OP_" #OPCODE, words},
#include "proto/cli.def"
#undef COMMAND
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

/* --- names --- */

static char *flag_name(const struct field *field)
{
    char *flag = g_strconcat("--", field->name, NULL);
    return g_strdelimit(flag, "_", '-');
}

static char *word_name(const struct field *field)
{
    g_autofree char *upper = g_ascii_strup(field->name, -1);
    return g_strdup(g_strdelimit(upper, "_", '-'));
}

/* One entry of `words`. */
struct word {
    const struct field *field;
    bool rest;                        /* takes all that is left */
    char *unless_field, *unless_word; /* takes nothing then; NULL: always takes one */
};

static void word_free(void *data)
{
    struct word *word = data;
    g_free(word->unless_field);
    g_free(word->unless_word);
    g_free(word);
}

static GPtrArray *words_of(const struct cli_command *command)
{
    const struct record *params = opcode_find(command->op_id)->params;
    GPtrArray *list = g_ptr_array_new_with_free_func(word_free);
    g_auto(GStrv) parts = g_strsplit(command->words, " ", -1);
    for (int i = 0; parts[i] != NULL; i++) {
        struct word *word = g_new0(struct word, 1);
        g_auto(GStrv) halves = g_strsplit_set(parts[i], "~=", 3);
        if (g_strv_length(halves) == 3) {
            word->unless_field = g_strdup(halves[1]);
            word->unless_word = g_strdup(halves[2]);
        }
        word->rest = g_str_has_suffix(halves[0], "+");
        if (word->rest)
            halves[0][strlen(halves[0]) - 1] = '\0';
        word->field = record_field(params, halves[0]);
        g_assert(word->field != NULL);
        g_ptr_array_add(list, word);
    }
    return list;
}

static bool is_word(const GPtrArray *words, const struct field *field)
{
    for (guint i = 0; i < words->len; i++)
        if (((const struct word *)g_ptr_array_index(words, i))->field == field)
            return true;
    return false;
}

/* --- parsing --- */

struct parser {
    const struct cli_command *command;
    const struct record *params;
    GPtrArray *words; /* of struct word */
    guint next_word;
    json_t *opcode; /* being built */
};

static bool set_value(struct parser *parser, const struct field *field, const char *name,
                      const char *text, GError **error)
{
    json_t *there = json_object_get(parser->opcode, field->name);
    bool list = field->type == FIELD_TYPE_STRINGS || field->type == FIELD_TYPE_OBJECTS;
    if (there != NULL && !list) {
        fettle_set_error(error, WRONG_INPUT, "%s: is given twice", name);
        return false;
    }
    json_autoptr value = record_text_to_json(field, text, name, error);
    if (value == NULL || !record_check(field, value, name, error))
        return false;
    if (there != NULL)
        json_array_extend(there, value);
    else
        json_object_set(parser->opcode, field->name, value);
    return true;
}

static bool parse_word(struct parser *parser, const char *text, GError **error)
{
    while (parser->next_word < parser->words->len) {
        const struct word *word = g_ptr_array_index(parser->words, parser->next_word);
        if (!word->rest)
            parser->next_word++;
        if (word->unless_field != NULL) {
            const json_t *other = json_object_get(parser->opcode, word->unless_field);
            if (g_strcmp0(json_string_value(other), word->unless_word) == 0)
                continue;
        }
        g_autofree char *name = word_name(word->field);
        return set_value(parser, word->field, name, text, error);
    }
    fettle_set_error(error, WRONG_INPUT, "\"%s\": one word too many; see \"fettle %s %s --help\"",
                     text, parser->command->noun, parser->command->verb);
    return false;
}

/* The field of a flag without its dashes; `no-` in front of a bool is taken off. */
static const struct field *flag_field(const struct parser *parser, const char *flag, bool *ret_no)
{
    g_autofree char *name = g_strdelimit(g_strdup(flag), "-", '_');
    const struct record *const records[] = {parser->params, &op_common_record};
    for (size_t i = 0; i < G_N_ELEMENTS(records); i++) {
        const struct field *field = record_field(records[i], name);
        *ret_no = false;
        if (field == NULL && g_str_has_prefix(name, "no_")) {
            field = record_field(records[i], name + 3);
            *ret_no = true;
        }
        if (field != NULL && (!*ret_no || field->type == FIELD_TYPE_BOOL) &&
            strcmp(field->name, "OP_ID") != 0 && !is_word(parser->words, field))
            return field;
    }
    return NULL;
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
    const struct field *field = flag_field(parser, flag + 2, &no);
    *ret_took = false;
    if (field == NULL || strchr(flag, '_') != NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: unknown flag; see \"fettle %s %s --help\"", flag,
                         parser->command->noun, parser->command->verb);
        return false;
    }
    if (no && equals != NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: takes no value", flag);
        return false;
    }
    if (equals != NULL)
        return set_value(parser, field, flag, equals + 1, error);
    if (field->type == FIELD_TYPE_BOOL)
        return set_value(parser, field, flag, no ? "false" : "true", error);
    if (next == NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: needs a value", flag);
        return false;
    }
    *ret_took = true;
    return set_value(parser, field, flag, next, error);
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
    for (const struct field *field = parser->params->fields(); field->name != NULL; field++) {
        if (!field->required || json_object_get(parser->opcode, field->name) != NULL)
            continue;
        g_autofree char *name = is_word(parser->words, field) ? word_name(field) : flag_name(field);
        fettle_set_error(error, WRONG_INPUT, "%s: is missing; see \"fettle %s %s --help\"", name,
                         parser->command->noun, parser->command->verb);
        return false;
    }
    return true;
}

json_t *cli_command_parse(const struct cli_command *command, const char *const *words,
                          GError **error)
{
    g_autoptr(GPtrArray) positions = words_of(command);
    json_autoptr opcode = json_make("{s:s}", "OP_ID", command->op_id);
    struct parser parser = {
        .command = command,
        .params = opcode_find(command->op_id)->params,
        .words = positions,
        .opcode = opcode,
    };
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

/* --- help --- */

static const char *placeholder(const struct field *field)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_STRINGS:
        return " TEXT";
    case FIELD_TYPE_NAME:
        return " NAME";
    case FIELD_TYPE_UUID:
        return " UUID";
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
    case FIELD_TYPE_FLOAT:
        return " NUMBER";
    case FIELD_TYPE_JSON:
        return " JSON";
    case FIELD_TYPE_ENUM:
        return " WORD";
    case FIELD_TYPE_OBJECT:
    case FIELD_TYPE_OBJECTS:
        return " NAME=VALUE,...";
    case FIELD_TYPE_BOOL:
        return "";
    }
    g_assert_not_reached();
}

static void help_line(GString *text, const char *name, const struct field *field, bool word)
{
    g_string_append_printf(text, "  %-28s %s", name, field->doc);
    if (field->type == FIELD_TYPE_ENUM) {
        g_autofree char *list = g_strjoinv(", ", (char **)field->words->words);
        g_string_append_printf(text, " One of: %s.", list);
    }
    if (field->type == FIELD_TYPE_STRINGS || field->type == FIELD_TYPE_OBJECTS)
        g_string_append(text, word ? " One or more." : " May be repeated.");
    if (field->def != NULL)
        g_string_append_printf(text, " Default: %s.", field->def);
    else if (field->required && !word)
        g_string_append(text, " Required.");
    g_string_append_c(text, '\n');
}

static void help_flags(GString *text, const char *title, const struct record *record,
                       const GPtrArray *words)
{
    size_t before = text->len;
    g_string_append_printf(text, "\n%s\n", title);
    size_t lines = text->len;
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        if (is_word(words, field) || strcmp(field->name, "OP_ID") == 0)
            continue;
        g_autofree char *flag = flag_name(field);
        g_autofree char *name =
            g_strdup_printf("--%s%s%s", field->type == FIELD_TYPE_BOOL ? "[no-]" : "", flag + 2,
                            placeholder(field));
        help_line(text, name, field, false);
    }
    if (text->len == lines)
        g_string_truncate(text, before);
}

char *cli_command_help(const struct cli_command *command)
{
    const struct opcode *opcode = opcode_find(command->op_id);
    g_autoptr(GPtrArray) words = words_of(command);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "Usage: fettle %s %s", command->noun, command->verb);
    for (guint i = 0; i < words->len; i++) {
        const struct word *word = g_ptr_array_index(words, i);
        g_autofree char *name = word_name(word->field);
        g_string_append_printf(text, word->unless_field != NULL ? " [%s]%s" : " %s%s", name,
                               word->rest ? "..." : "");
    }
    g_string_append_printf(text, " [flags]\n\n%s\n\n", opcode->doc);
    for (guint i = 0; i < words->len; i++) {
        const struct word *word = g_ptr_array_index(words, i);
        g_autofree char *name = word_name(word->field);
        help_line(text, name, word->field, true);
    }
    help_flags(text, "Flags:", opcode->params, words);
    help_flags(text, "Flags of every job:", &op_common_record, words);
    return g_string_free(text, FALSE);
}

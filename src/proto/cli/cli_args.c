/* See cli_args.h. */
#include "proto/cli/cli_args.h"

#include "proto/record_private.h"

#include <string.h>

static const struct flag_row {
    const char *field, *flag, *words, *shape, *example;
} flag_rows[] = {
#define COMMAND(noun, verb, OPCODE, words, done, ...)
#define FLAG(field, flag, words, shape, example) {field, flag, words, shape, example},
#include "proto/cli.def"
#undef COMMAND
#undef FLAG
};

static const struct flag_row *row_of(const struct field *field)
{
    for (size_t i = 0; i < G_N_ELEMENTS(flag_rows); i++)
        if (strcmp(flag_rows[i].field, field->name) == 0)
            return &flag_rows[i];
    return NULL;
}

static void arg_free(void *data)
{
    struct cli_arg *arg = data;
    g_free(arg->name);
    g_free(arg->also);
    g_free(arg->shape);
    g_strfreev(arg->words);
    g_free(arg->unless_field);
    g_free(arg->unless_word);
    g_free(arg);
}

static const char *shape_of(const struct field *field)
{
    g_autofree char *unit = record_unit(field);
    enum record_time time = record_time(field);
    if (time != RECORD_TIME_NONE)
        return time == RECORD_TIME_MOMENT ? "WHEN" : "TIME";
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_STRINGS:
        return "TEXT";
    case FIELD_TYPE_NAME:
        return "NAME";
    case FIELD_TYPE_UUID:
        return "UUID";
    case FIELD_TYPE_UINT:
        return strcmp(unit, " (MiB)") == 0 ? "SIZE" : "NUMBER";
    case FIELD_TYPE_INT:
    case FIELD_TYPE_FLOAT:
        return "NUMBER";
    case FIELD_TYPE_JSON:
        return "JSON";
    case FIELD_TYPE_ENUM:
        return "WORD";
    case FIELD_TYPE_OBJECT:
    case FIELD_TYPE_OBJECTS:
        return "NAME=VALUE,…";
    case FIELD_TYPE_BOOL:
        return "";
    }
    g_assert_not_reached();
}

static struct cli_arg *arg_new(const struct field *field)
{
    struct cli_arg *arg = g_new0(struct cli_arg, 1);
    const struct flag_row *row = row_of(field);
    arg->field = field;
    arg->example = row != NULL ? row->example : NULL;
    arg->shape = g_strdup(row != NULL && row->shape != NULL ? row->shape : shape_of(field));
    if (row != NULL && row->words != NULL)
        arg->words = g_strsplit(row->words, "|", -1);
    else if (field->words != NULL)
        arg->words = g_strdupv((char **)field->words->words);
    if (row != NULL && row->words != NULL && row->shape == NULL) {
        g_free(arg->shape);
        arg->shape = g_strdup(row->words);
    }
    return arg;
}

/* One entry of `words` in cli.def. */
static struct cli_arg *word_new(const struct record *params, const char *text)
{
    g_auto(GStrv) halves = g_strsplit_set(text, "~=", 3);
    bool rest = g_str_has_suffix(halves[0], "+"), many = g_str_has_suffix(halves[0], "*");
    if (rest || many)
        halves[0][strlen(halves[0]) - 1] = '\0';
    const struct field *field = record_field(params, halves[0]);
    g_assert(field != NULL);
    struct cli_arg *arg = arg_new(field);
    arg->word = true;
    arg->rest = rest;
    arg->many = many;
    arg->name = g_strdelimit(g_ascii_strup(field->name, -1), "_", '-');
    if (g_strv_length(halves) == 3) {
        arg->unless_field = g_strdup(halves[1]);
        arg->unless_word = g_strdup(halves[2]);
    }
    return arg;
}

static bool has_field(const GPtrArray *args, const struct field *field)
{
    for (guint i = 0; i < args->len; i++)
        if (((const struct cli_arg *)args->pdata[i])->field == field)
            return true;
    return false;
}

static char *flag_name(const char *name)
{
    return g_strdelimit(g_strconcat("--", name, NULL), "_", '-');
}

static void add_flags(GPtrArray *args, const struct record *record, bool common)
{
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        if (has_field(args, field) || strcmp(field->name, "OP_ID") == 0)
            continue;
        struct cli_arg *arg = arg_new(field);
        const struct flag_row *row = row_of(field);
        bool renamed = row != NULL && row->flag != NULL;
        arg->name = flag_name(renamed ? row->flag : field->name);
        arg->also = renamed ? flag_name(field->name) : NULL;
        arg->common = common;
        g_ptr_array_add(args, arg);
    }
}

/* A number of OP_CLUSTER_SET_PARAMS is that of the cluster's record of the same name. */
static void find_setting(struct cli_arg *arg)
{
    if (arg->field->type == FIELD_TYPE_INT || arg->field->type == FIELD_TYPE_FLOAT)
        arg->setting = record_field(&cluster_record, arg->field->name);
}

GPtrArray *cli_args(const struct cli_command *command)
{
    const struct record *params = opcode_find(command->op_id)->params;
    GPtrArray *args = g_ptr_array_new_with_free_func(arg_free);
    g_auto(GStrv) words = g_strsplit(command->words, " ", -1);
    for (int i = 0; words[i] != NULL; i++)
        g_ptr_array_add(args, word_new(params, words[i]));
    add_flags(args, params, false);
    for (guint i = 0; i < args->len && params == &op_cluster_set_params_record; i++)
        find_setting(args->pdata[i]);
    if (cli_command_is_job(command))
        add_flags(args, &op_common_record, true);
    return args;
}

bool cli_arg_repeats(const struct cli_arg *arg)
{
    return arg->field->type == FIELD_TYPE_STRINGS || arg->field->type == FIELD_TYPE_OBJECTS;
}

static const struct cli_arg *find_flag(const GPtrArray *args, const char *name)
{
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (!arg->word && (strcmp(arg->name, name) == 0 || g_strcmp0(arg->also, name) == 0))
            return arg;
    }
    return NULL;
}

const struct cli_arg *cli_arg_flag(const GPtrArray *args, const char *name, bool *ret_no)
{
    const struct cli_arg *arg = find_flag(args, name);
    *ret_no = false;
    if (arg != NULL || !g_str_has_prefix(name, "--no-"))
        return arg;
    g_autofree char *positive = g_strconcat("--", name + 5, NULL);
    arg = find_flag(args, positive);
    *ret_no = arg != NULL && arg->field->type == FIELD_TYPE_BOOL;
    return *ret_no ? arg : NULL;
}

GPtrArray *cli_arg_flag_names(const GPtrArray *args)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (arg->word)
            continue;
        g_ptr_array_add(names, arg->name);
        if (arg->also != NULL)
            g_ptr_array_add(names, arg->also);
    }
    g_ptr_array_add(names, NULL);
    return names;
}

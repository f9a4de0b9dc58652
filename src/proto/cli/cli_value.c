/* See cli_args.h: the text of one argument as JSON, in the plain words that people type. */
#include "proto/cli/cli_args.h"

#include "proto/record_private.h"

#include <string.h>

/* --- --depends 12:success,15 --- */

static const char *const end_states[] = {"success", "error", "canceled", "any", NULL};

static bool add_states(json_t *list, const char *text, const char *name, GError **error)
{
    g_auto(GStrv) states = g_strsplit(text, "+", -1);
    for (int i = 0; states[i] != NULL; i++) {
        if (!g_strv_contains(end_states, states[i])) {
            fettle_set_error(error, WRONG_INPUT,
                             "%s: \"%s\" is no state that a job ends in; it must be success, "
                             "error, canceled or any",
                             name, states[i]);
            return false;
        }
        bool any = strcmp(states[i], "any") == 0;
        for (int n = 0; n < 3 && any; n++)
            json_array_append_new(list, json_string(end_states[n]));
        if (!any)
            json_array_append_new(list, json_string(states[i]));
    }
    return true;
}

static json_t *dependency_of(const char *text, const char *name, GError **error)
{
    g_auto(GStrv) halves = g_strsplit(text, ":", 2);
    guint64 job;
    if (halves[0] == NULL ||
        !g_ascii_string_to_unsigned(halves[0], 10, 1, (guint64)RECORD_NUMBER_MAX, &job, NULL)) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s: must be job ids, each with the states that are wanted if it is not "
                         "success, such as 12,15:success+error; not \"%s\"",
                         name, text);
        return NULL;
    }
    json_autoptr states = json_array();
    if (!add_states(states, halves[1] != NULL ? halves[1] : "success", name, error))
        return NULL;
    return json_make("[IO]", (json_int_t)job, states);
}

static json_t *depends_of(const char *text, const char *name, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    json_autoptr list = json_array();
    for (int i = 0; parts[i] != NULL || i == 0; i++) {
        json_t *one = dependency_of(parts[i] != NULL ? parts[i] : "", name, error);
        if (one == NULL)
            return NULL;
        json_array_append_new(list, one);
    }
    return json_steal(&list);
}

/* --- --reason TEXT, --priority high --- */

static json_t *reason_of(const char *text, const char *name, GError **error)
{
    json_t *valid = json_string(text);
    if (valid == NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: must be UTF-8", name);
        return NULL;
    }
    return json_make("[[soI]]", "fettle:client", valid,
                     (json_int_t)g_get_real_time() * (json_int_t)1000);
}

/* NULL without an error for a text that is no word. */
static json_t *priority_of(const char *text)
{
    static const struct {
        const char *word;
        int number;
    } words[] = {{"low", 10}, {"normal", 0}, {"high", -10}};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(words[i].word, text) == 0)
            return json_integer(words[i].number);
    return NULL;
}

static json_t *common_value(const struct cli_arg *arg, const char *name, const char *text,
                            GError **error)
{
    const char *field = arg->field->name;
    bool json = text[0] == '['; /* as it stands on the wire */
    if (strcmp(field, "reason") == 0 && !json)
        return reason_of(text, name, error);
    if (strcmp(field, "depends") == 0 && !json)
        return depends_of(text, name, error);
    json_t *priority = strcmp(field, "priority") == 0 ? priority_of(text) : NULL;
    return priority != NULL ? priority : record_text_to_json(arg->field, text, name, error);
}

/* --- any argument --- */

/* Names of nodes may stand behind each other; no name has a comma. */
static json_t *names_of(const struct cli_arg *arg, const char *name, const char *text,
                        GError **error)
{
    if (arg->field->type != FIELD_TYPE_STRINGS || strcmp(arg->shape, "NODE") != 0)
        return record_text_to_json(arg->field, text, name, error);
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    json_t *list = json_array();
    for (int i = 0; parts[i] != NULL; i++)
        json_array_append_new(list, json_string(parts[i]));
    return list;
}

static bool is_allowed(const struct cli_arg *arg, const char *name, const char *text,
                       GError **error)
{
    /* The interpreter knows the words of an enum. */
    if (arg->words == NULL || arg->field->words != NULL ||
        g_strv_contains((const char *const *)arg->words, text))
        return true;
    bool two = g_strv_length(arg->words) <= 2;
    g_autofree char *list = g_strjoinv(two ? " or " : ", ", arg->words);
    fettle_set_error(error, WRONG_INPUT, "%s: must be %s%s, not \"%s\"", name, two ? "" : "one of ",
                     list, text);
    return false;
}

/* What is called otherwise by Ganeti. */
static void hint_at_word(const struct cli_arg *arg, const char *text, GError **error)
{
    static const struct {
        const char *field, *word, *means;
    } words[] = {{"disk_template", "drbd", "mirror"},
                 {"disk_template", "drbd8", "mirror"},
                 {"disk_template", "plain", "file"},
                 {"disk_template", "lvm", "file"},
                 {"disk_template", "shared", "sharedfile"}};
    for (size_t i = 0; error != NULL && i < G_N_ELEMENTS(words); i++) {
        if (strcmp(words[i].field, arg->field->name) != 0 || strcmp(words[i].word, text) != 0)
            continue;
        char *longer =
            g_strdup_printf("%s; %s is %s here", (*error)->message, text, words[i].means);
        g_free((*error)->message);
        (*error)->message = longer;
    }
}

static void show_example(const struct cli_arg *arg, const char *name, GError **error)
{
    if (error == NULL || arg->example == NULL || arg->word)
        return;
    char *longer = g_strdup_printf("%s; as in %s %s", (*error)->message, name, arg->example);
    g_free((*error)->message);
    (*error)->message = longer;
}

json_t *cli_arg_value(const struct cli_arg *arg, const char *name, const char *text, GError **error)
{
    json_autoptr value = NULL;
    const struct place place = {.name = name};
    if (is_allowed(arg, name, text, error))
        value =
            arg->common ? common_value(arg, name, text, error) : names_of(arg, name, text, error);
    const struct field *bounds = arg->setting != NULL ? arg->setting : arg->field;
    if (value != NULL && record_check(bounds, value, &place, error))
        return json_steal(&value);
    hint_at_word(arg, text, error);
    show_example(arg, name, error);
    return NULL;
}

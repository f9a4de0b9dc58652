/* See opcodes_ganeti.h. */
#include "proto/opcodes_ganeti.h"

#include <string.h>

static const struct ganeti_parameter table[] = {
#define TAKEN(ID, name, value, why)                                                                \
    {"OP_" #ID, #name, value, why, false, {NULL}, {NULL}, NULL, false},
#define ANY(ID, name, why) {"OP_" #ID, #name, NULL, why, false, {NULL}, {NULL}, NULL, false},
#define LIST(ID, name, added, changed, removed, member)                                            \
    {"OP_" #ID, #name, NULL, "", false, {added, changed, removed, member}, {NULL}, NULL, false},
#define YES_NO(ID, name) {"OP_" #ID, #name, NULL, "", true, {NULL}, {NULL}, NULL, false},
#define DICT(ID, name, prefix, empty)                                                              \
    {"OP_" #ID, #name, NULL, "", false, {NULL}, {prefix, empty}, NULL, false},
#define NAMED(ID, name, ours) {"OP_" #ID, #name, NULL, "", false, {NULL}, {NULL}, ours, false},
#define PAIRS(ID, name, ours) {"OP_" #ID, #name, NULL, "", false, {NULL}, {NULL}, ours, true},
#include "proto/opcodes_ganeti.def"
#undef TAKEN
#undef ANY
#undef LIST
#undef YES_NO
#undef DICT
#undef NAMED
#undef PAIRS
};

const struct ganeti_parameter *ganeti_parameter_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(table);
    return table;
}

const struct ganeti_parameter *ganeti_parameter_find(const char *opcode, const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (strcmp(table[i].name, name) == 0 && strcmp(table[i].opcode, opcode) == 0)
            return &table[i];
    return NULL;
}

static bool is_taken(const struct ganeti_parameter *parameter, const json_t *value, GError **error)
{
    if (parameter->taken == NULL || json_is_null(value) ||
        g_strcmp0(json_string_value(value), "") == 0)
        return true;
    json_autoptr only = json_loads(parameter->taken, JSON_DECODE_ANY, NULL);
    if (json_equal(value, only))
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: only %s is taken: %s", parameter->name,
                     parameter->taken, parameter->why);
    return false;
}

/* --- lists of changes --- */

/* ["add", {…}], ["remove", 2, {}], ["modify", "aa:00:…", {…}]; without a place it is -1: at the
 * end. */
struct list_change {
    const char *verb;
    json_t *what;
    char place[20];
};

static bool read_change(const json_t *json, struct list_change *ret_change)
{
    size_t size = json_array_size(json);
    const json_t *place = size == 3 ? json_array_get(json, 1) : NULL;
    const char *text = json_string_value(place);
    ret_change->verb = json_string_value(json_array_get(json, 0));
    ret_change->what = json_array_get(json, size == 3 ? 2 : 1);
    if (size < 2 || size > 3 || ret_change->verb == NULL ||
        (place != NULL && text == NULL && !json_is_integer(place)))
        return false;
    if (text != NULL)
        return g_strlcpy(ret_change->place, text, sizeof ret_change->place) <
               sizeof ret_change->place;
    g_snprintf(ret_change->place, sizeof ret_change->place, "%" JSON_INTEGER_FORMAT,
               place != NULL ? json_integer_value(place) : -1);
    return true;
}

/* Under the name that it has here, if it can be done at all. */
static const char *name_of_change(const struct ganeti_parameter *parameter,
                                  const struct list_change *change)
{
    bool last = strcmp(change->place, "-1") == 0;
    if (strcmp(change->verb, "add") == 0)
        return last && json_is_object(change->what) ? parameter->list.added : NULL;
    if (strcmp(change->verb, "modify") == 0)
        return json_is_object(change->what) ? parameter->list.changed : NULL;
    return strcmp(change->verb, "remove") == 0 ? parameter->list.removed : NULL;
}

/* To a list of its own: the one that is there may be whose opcode it is. */
static void append(json_t *own, const char *name, json_t *value)
{
    json_t *there = json_object_get(own, name);
    json_t *list = json_is_array(there) ? json_copy(there) : json_array();
    json_array_append_new(list, value);
    json_object_set_new(own, name, list);
}

/* What asks for nothing else than what is done anyway. */
static json_t *own_shape(const json_t *what)
{
    json_t *shape = json_copy((json_t *)what);
    if (g_strcmp0(json_string_value(json_object_get(shape, "mode")), "rw") == 0)
        json_object_del(shape, "mode");
    return shape;
}

static bool take_list(const struct ganeti_parameter *parameter, const json_t *list, json_t *own,
                      GError **error)
{
    const struct ganeti_list *names = &parameter->list;
    size_t i;
    const json_t *json;
    json_array_foreach(list, i, json) {
        struct list_change change;
        bool read = read_change(json, &change);
        const char *name = read ? name_of_change(parameter, &change) : NULL;
        if (name == NULL) {
            fettle_set_error(error, WRONG_INPUT,
                             "%s[%zu]: must be [\"add\", {…}] (at the end)%s or [\"remove\", "
                             "NUMBER, {}]%s",
                             parameter->name, i,
                             names->changed != NULL ? ", [\"modify\", NUMBER, {…}]" : "",
                             names->changed != NULL ? "" : "; what is there stays as it is");
            return false;
        }
        bool gone = name == names->removed;
        json_t *value = gone ? json_string(change.place) : own_shape(change.what);
        if (name == names->changed)
            json_object_set_new(value, names->member, json_string(change.place));
        append(own, name, value);
    }
    return true;
}

static bool settle_list(const struct ganeti_parameter *parameter, json_t *own, GError **error)
{
    json_autoptr list = json_incref(json_object_get(own, parameter->name));
    json_object_del(own, parameter->name);
    if (json_is_null(list) || json_is_array(list))
        return take_list(parameter, list, own, error);
    fettle_set_error(error, WRONG_INPUT, "%s: must be a list of changes", parameter->name);
    return false;
}

/* --- settings by name --- */

/* What an instance has of Ganeti's settings: a parameter of ours, or a fixed value. */
struct setting {
    const char *field;  /* "be/memory" */
    const char *member; /* NULL: it is fixed */
    const char *fixed;  /* JSON */
};

static const struct setting settings[] = {
#define MEMBER(resource, record, name, title, kind, member, doc) {name, #member, NULL},
#define GETTER(resource, name, title, kind, source, function, doc)
#define FIXED(resource, name, title, kind, value, doc) {name, NULL, value},
#define ELEMENT(resource, name, title, kind, function, index, doc)
#define NONE(resource, name, title, kind, doc)
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
#undef FIXED
#undef ELEMENT
#undef NONE
};

static const struct setting *setting_find(const char *prefix, const char *name)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++)
        if (strncmp(settings[i].field, prefix, length) == 0 &&
            strcmp(settings[i].field + length, name) == 0)
            return &settings[i];
    return NULL;
}

/* Those that are parameters of ours, for people. */
static char *settings_known(const struct opcode *opcode, const char *prefix)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++)
        if (strncmp(settings[i].field, prefix, strlen(prefix)) == 0 && settings[i].member != NULL &&
            record_field(opcode->params, settings[i].member) != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "",
                                   settings[i].field + strlen(prefix));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Says it as the parameter of ours, which another setting may have said already. `name`: of a
 * member of the parameter, or NULL. */
static bool say_once(const struct ganeti_parameter *parameter, const char *name, const char *member,
                     json_t *value, json_t *own, GError **error)
{
    bool empty = parameter->dict.empty != NULL && g_strcmp0(json_string_value(value), "") == 0;
    json_autoptr mine = empty ? json_string(parameter->dict.empty) : json_incref(value);
    const json_t *said = json_object_get(own, member);
    if (said == NULL || json_is_null(said)) {
        json_object_set(own, member, mine);
        return true;
    }
    if (json_equal(said, mine))
        return true;
    g_autofree char *first = json_dumps(said, JSON_ENCODE_ANY);
    fettle_set_error(error, WRONG_INPUT, "%s%s%s: must be %s, as %s is: there is one value here",
                     parameter->name, name ? "." : "", name ? name : "", first, member);
    return false;
}

static bool take_setting(const struct opcode *opcode, const struct ganeti_parameter *parameter,
                         const char *name, json_t *value, json_t *own, GError **error)
{
    const struct setting *setting = setting_find(parameter->dict.prefix, name);
    if (json_is_null(value))
        return true;
    if (setting != NULL && setting->fixed != NULL) {
        json_autoptr only = json_loads(setting->fixed, JSON_DECODE_ANY, NULL);
        if (json_equal(value, only))
            return true;
        fettle_set_error(error, WRONG_INPUT, "%s.%s: only %s is taken: it cannot be changed here",
                         parameter->name, name, setting->fixed);
        return false;
    }
    if (setting == NULL || record_field(opcode->params, setting->member) == NULL) {
        g_autofree char *known = settings_known(opcode, parameter->dict.prefix);
        fettle_set_error(error, WRONG_INPUT, "%s.%s: cannot be set here; what can: %s",
                         parameter->name, name, known);
        return false;
    }
    return say_once(parameter, name, setting->member, value, own, error);
}

/* What a guest has at the least says nothing by itself: it is what it has at the most. */
#define LEAST_MEMORY "minmem"

static bool take_settings(const struct opcode *opcode, const struct ganeti_parameter *parameter,
                          const json_t *dict, json_t *own, GError **error)
{
    const char *name;
    json_t *value;
    json_t *least = json_object_get(dict, LEAST_MEMORY);
    json_object_foreach((json_t *)dict, name, value)
        if (value != least && !take_setting(opcode, parameter, name, value, own, error))
            return false;
    if (least != NULL && json_object_get(own, "memory") == NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s." LEAST_MEMORY ": say memory, which is both here",
                         parameter->name);
        return false;
    }
    return least == NULL || take_setting(opcode, parameter, LEAST_MEMORY, least, own, error);
}

static bool settle_dict(const struct opcode *opcode, const struct ganeti_parameter *parameter,
                        json_t *own, GError **error)
{
    json_autoptr dict = json_incref(json_object_get(own, parameter->name));
    json_object_del(own, parameter->name);
    if (json_is_null(dict) || json_is_object(dict))
        return take_settings(opcode, parameter, dict, own, error);
    fettle_set_error(error, WRONG_INPUT, "%s: must be settings by name", parameter->name);
    return false;
}

/* --- pairs --- */

static char *pair_of(const char *name, const json_t *value)
{
    char seconds[G_ASCII_DTOSTR_BUF_SIZE];
    if (json_is_boolean(value))
        return g_strdup_printf("%s=%s", name, json_is_true(value) ? "yes" : "no");
    if (!json_is_integer(value))
        return NULL;
    g_ascii_formatd(seconds, sizeof seconds, "%.6g",
                    (double)json_integer_value(value) / G_USEC_PER_SEC);
    return g_strdup_printf("%s=%s", name, seconds);
}

/* A list is ours already. */
static bool settle_pairs(const struct ganeti_parameter *parameter, json_t *own, GError **error)
{
    json_autoptr dict = json_incref(json_object_get(own, parameter->name));
    const char *name;
    json_t *value;
    if (!json_is_object(dict) && strcmp(parameter->name, parameter->ours) == 0)
        return true;
    json_object_del(own, parameter->name);
    if (json_is_null(dict))
        return true;
    json_autoptr list = json_array();
    json_object_foreach(dict, name, value) {
        g_autofree char *pair = pair_of(name, value);
        if (!pair) {
            fettle_set_error(error, WRONG_INPUT,
                             "%s.%s: must be true, false or a number of microseconds",
                             parameter->name, name);
            return false;
        }
        json_array_append_new(list, json_string(pair));
    }
    if (!json_is_object(dict)) {
        fettle_set_error(error, WRONG_INPUT, "%s: must be settings by name", parameter->name);
        return false;
    }
    return json_array_size(list) == 0 ||
           say_once(parameter, NULL, parameter->ours, list, own, error);
}

/* --- all that is taken apart, or has another name --- */

static bool settle_name(const struct ganeti_parameter *parameter, json_t *own, GError **error)
{
    json_t *value = json_object_get(own, parameter->name);
    if (!json_is_null(value) && !say_once(parameter, NULL, parameter->ours, value, own, error))
        return false;
    json_object_del(own, parameter->name);
    return true;
}

static bool settle_apart(const struct opcode *opcode, json_t *own, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (strcmp(table[i].opcode, opcode->id) == 0 &&
            json_object_get(own, table[i].name) != NULL &&
            !(table[i].list.added != NULL    ? settle_list(&table[i], own, error)
              : table[i].dict.prefix != NULL ? settle_dict(opcode, &table[i], own, error)
              : table[i].pairs               ? settle_pairs(&table[i], own, error)
              : table[i].ours != NULL        ? settle_name(&table[i], own, error)
                                             : true))
            return false;
    return true;
}

bool ganeti_parameters_settle(const struct opcode *opcode, json_t *own, GError **error)
{
    const char *name;
    json_t *value;
    void *next;
    if (!settle_apart(opcode, own, error))
        return false;
    json_object_foreach_safe(own, next, name, value) {
        const struct ganeti_parameter *parameter = ganeti_parameter_find(opcode->id, name);
        if (parameter == NULL || parameter->pairs)
            continue;
        if (parameter->yes_no && json_is_boolean(value))
            json_object_set_new(own, name, json_string(json_is_true(value) ? "yes" : "no"));
        if (parameter->yes_no)
            continue;
        if (!is_taken(parameter, value, error))
            return false;
        json_object_del(own, name);
    }
    return true;
}

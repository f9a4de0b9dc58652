/* See opcodes_ganeti.h. */
#include "proto/opcodes_ganeti.h"

#include <string.h>

static const struct ganeti_parameter table[] = {
#define TAKEN(ID, name, value, why) {"OP_" #ID, #name, value, why, false, {NULL}},
#define ANY(ID, name, why) {"OP_" #ID, #name, NULL, why, false, {NULL}},
#define LIST(ID, name, added, changed, removed, member)                                            \
    {"OP_" #ID, #name, NULL, "", false, {added, changed, removed, member}},
#define YES_NO(ID, name) {"OP_" #ID, #name, NULL, "", true, {NULL}},
#include "proto/opcodes_ganeti.def"
#undef TAKEN
#undef ANY
#undef LIST
#undef YES_NO
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
    if (parameter->taken == NULL || json_is_null(value))
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

static void append(json_t *own, const char *name, json_t *value)
{
    if (!json_is_array(json_object_get(own, name)))
        json_object_set_new(own, name, json_array());
    json_array_append_new(json_object_get(own, name), value);
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

static bool settle_lists(const struct opcode *opcode, json_t *own, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (table[i].list.added != NULL && strcmp(table[i].opcode, opcode->id) == 0 &&
            json_object_get(own, table[i].name) != NULL && !settle_list(&table[i], own, error))
            return false;
    return true;
}

bool ganeti_parameters_settle(const struct opcode *opcode, json_t *own, GError **error)
{
    const char *name;
    json_t *value;
    void *next;
    if (!settle_lists(opcode, own, error))
        return false;
    json_object_foreach_safe(own, next, name, value) {
        const struct ganeti_parameter *parameter = ganeti_parameter_find(opcode->id, name);
        if (parameter == NULL)
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

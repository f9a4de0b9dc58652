/* See opcodes_ganeti.h. */
#include "proto/opcodes_ganeti.h"

#include <string.h>

static const struct ganeti_parameter table[] = {
#define TAKEN(ID, name, value, why) {"OP_" #ID, #name, value, why, false},
#define ANY(ID, name, why) {"OP_" #ID, #name, NULL, why, false},
#define YES_NO(ID, name) {"OP_" #ID, #name, NULL, "", true},
#include "proto/opcodes_ganeti.def"
#undef TAKEN
#undef ANY
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

bool ganeti_parameters_settle(const struct opcode *opcode, json_t *own, GError **error)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(own, next, name, value)
    {
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

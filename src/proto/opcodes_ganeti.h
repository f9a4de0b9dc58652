/*
 * What Ganeti's clients send with an opcode and Fettle has no counterpart of: opcodes_ganeti.def.
 * Used by opcode_parse() alone, and by the test of the table.
 */
#pragma once

#include "proto/records.h"

/* A list of changes that is taken apart; names of parameters of ours, or NULL. */
struct ganeti_list {
    const char *added, *changed, *removed;
    const char *member; /* of what is changed: says which one */
};

/* Settings by name that are taken apart. */
struct ganeti_dict {
    const char *prefix; /* of the fields of instances that know these names */
    const char *empty;  /* what an empty text becomes; NULL: it stays one */
};

struct ganeti_parameter {
    const char *opcode; /* "OP_INSTANCE_STARTUP" */
    const char *name;
    const char *taken; /* JSON of the only value that is, beside null and ""; NULL: any */
    const char *why;
    bool yes_no;             /* a parameter of ours */
    struct ganeti_list list; /* added NULL: it is none */
    struct ganeti_dict dict; /* prefix NULL: it is none */
    const char *ours;        /* the parameter that it is under another name; NULL: none */
    bool pairs;              /* … which is a list of pairs, and may have the same name */
};

const struct ganeti_parameter *ganeti_parameter_table(size_t *ret_count);
const struct ganeti_parameter *ganeti_parameter_find(const char *opcode, const char *name);
/* Takes out of an opcode's own parameters what Ganeti has and Fettle has not, and makes yes and no
 * of booleans where ours is such a text. WRONG_INPUT names a parameter that asks for what cannot be
 * done. */
bool ganeti_parameters_settle(const struct opcode *opcode, json_t *own, GError **error);

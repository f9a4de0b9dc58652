/*
 * See records.h: the tables of every record, opcode and method, made from the .def files. A row
 * does not know its record's name, so each list of fields stands in a function where the typedef
 * `self` says it.
 */
#include "proto/records.h"

#include <string.h>

#include "proto/luxi.h"
#include "proto/opcodes_ganeti.h"
#include "proto/rpc.h"

#include <string.h>

/* --- words --- */

#define ENUM_BEGIN(type) static const char *const type##_list[] = {
#define ENUM_WORD(NAME, word) [NAME] = word,
#define ENUM_END(type)                                                                             \
    NULL                                                                                           \
    }                                                                                              \
    ;                                                                                              \
    const struct enum_words type##_words = {#type, type##_list};
#include "proto/enums.def"
#undef ENUM_BEGIN
#undef ENUM_WORD
#undef ENUM_END

/* --- fields --- */

#define REQUIRED true
#define OPTIONAL false

#define RECORD_BEGIN(type, doc)                                                                    \
    static const struct field *type##_fields(void)                                                 \
    {                                                                                              \
        typedef struct type self G_GNUC_UNUSED;                                                    \
        static const struct field fields[] = {
#define FIELD(TYPE, name, need, def, limit, doc)                                                   \
    {#name, FIELD_TYPE_##TYPE, G_STRUCT_OFFSET(self, name), need, def, limit, NULL, NULL, doc},
#define FIELD_ENUM(words, name, need, def, doc)                                                    \
    {                                                                                              \
        #name,                                                                                     \
        FIELD_TYPE_ENUM,                                                                           \
        G_STRUCT_OFFSET(self, name),                                                               \
        need,                                                                                      \
        def,                                                                                       \
        NO_LIMIT,                                                                                  \
        &words##_words,                                                                            \
        NULL,                                                                                      \
        doc},
#define FIELD_OBJECT(type, name, need, doc)                                                        \
    {#name,                                                                                        \
     FIELD_TYPE_OBJECT,                                                                            \
     G_STRUCT_OFFSET(self, name),                                                                  \
     need,                                                                                         \
     NULL,                                                                                         \
     NO_LIMIT,                                                                                     \
     NULL,                                                                                         \
     &type##_record,                                                                               \
     doc},
#define FIELD_OBJECTS(type, name, need, max, doc)                                                  \
    {#name,                                                                                        \
     FIELD_TYPE_OBJECTS,                                                                           \
     G_STRUCT_OFFSET(self, name),                                                                  \
     need,                                                                                         \
     NULL,                                                                                         \
     RANGE(0, max),                                                                                \
     NULL,                                                                                         \
     &type##_record,                                                                               \
     doc},
#define RECORD_END(type)                                                                           \
    RECORD_NEWER                                                                                   \
    {                                                                                              \
        .name = NULL                                                                               \
    }                                                                                              \
    }                                                                                              \
    ;                                                                                              \
    return fields;                                                                                 \
    }                                                                                              \
    static void type##_destroy(void *value)                                                        \
    {                                                                                              \
        record_free(&type##_record, value);                                                        \
    }
#define OP_BEGIN(ID, type, doc) RECORD_BEGIN(type, doc)
#define OP_END(ID, type)                                                                           \
    RECORD_END                                                                                     \
    (type)
#define ARGS_BEGIN(type, doc) RECORD_BEGIN(type, doc)
#define ARGS_END(type)                                                                             \
    RECORD_END                                                                                     \
    (type)
#define LUXI_BEGIN(NAME, type, doc) RECORD_BEGIN(type, doc)
#define LUXI_END(NAME, type)                                                                       \
    RECORD_END                                                                                     \
    (type)
#define METHOD(server, name, args, answer, callers, place, fence, timeout, doc)
#include "proto/luxi.def"
#include "proto/methods.def"
#include "proto/opcodes.def"
#include "proto/records.def"
#undef RECORD_BEGIN
#undef RECORD_END
#undef FIELD
#undef FIELD_ENUM
#undef FIELD_OBJECT
#undef FIELD_OBJECTS

/* --- records --- */

#define FIELD(TYPE, name, need, def, limit, doc)
#define FIELD_ENUM(words, name, need, def, doc)
#define FIELD_OBJECT(type, name, need, doc)
#define FIELD_OBJECTS(type, name, need, max, doc)
#define RECORD_BEGIN(type, doc)                                                                    \
    const struct record type##_record = {                                                          \
        #type,         doc,           sizeof(struct type), G_STRUCT_OFFSET(struct type, extra),    \
        type##_fields, type##_destroy};
#define RECORD_END(type)
#include "proto/luxi.def"
#include "proto/methods.def"
#include "proto/opcodes.def"
#include "proto/records.def"
#undef RECORD_BEGIN

enum since { KNOWN, NEW };
enum reach { INSIDE, FRONT };

static const struct record *const objects[] = {
#define OBJECT(type, cover, view, writers, since, reach) &type##_record,
#include "proto/objects.def"
#undef OBJECT
};

static const struct {
    enum object_view view;
    enum since since;
    enum reach reach;
} object_rows[] = {
#define OBJECT(type, cover, view, writers, since, reach) {VIEW_##view, since, reach},
#include "proto/objects.def"
#undef OBJECT
};
G_STATIC_ASSERT(G_N_ELEMENTS(objects) <= LIMIT_KINDS);

static const struct record *const records[] = {
#define RECORD_BEGIN(type, doc) &type##_record,
#include "proto/luxi.def"
#include "proto/methods.def"
#include "proto/opcodes.def"
#include "proto/records.def"
#undef RECORD_BEGIN
};

const struct record *const *record_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(records);
    return records;
}

const struct record *const *object_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(objects);
    return objects;
}

/* G_N_ELEMENTS(objects): there is no such kind. */
static size_t object_place(const char *kind)
{
    size_t place = 0;
    while (place < G_N_ELEMENTS(objects) && g_strcmp0(objects[place]->name, kind) != 0)
        place++;
    return place;
}

const struct record *object_record(const char *kind)
{
    size_t place = object_place(kind);
    return place < G_N_ELEMENTS(objects) ? objects[place] : NULL;
}

guint64 object_bit(const char *kind)
{
    size_t place = object_place(kind);
    return place < G_N_ELEMENTS(objects) ? G_GUINT64_CONSTANT(1) << place : 0;
}

enum object_view object_view(const char *kind)
{
    size_t place = object_place(kind);
    g_assert(place < G_N_ELEMENTS(objects));
    return object_rows[place].view;
}

bool object_is_front(const char *kind)
{
    size_t place = object_place(kind);
    return place < G_N_ELEMENTS(objects) && object_rows[place].reach == FRONT;
}

bool object_is_new(const char *kind)
{
    size_t place = object_place(kind);
    return place < G_N_ELEMENTS(objects) && object_rows[place].since == NEW;
}

static const struct enum_words *const all_words[] = {
#define ENUM_BEGIN(type) &type##_words,
#define ENUM_WORD(NAME, word)
#define ENUM_END(type)
#include "proto/enums.def"
#undef ENUM_BEGIN
#undef ENUM_WORD
#undef ENUM_END
};

const struct enum_words *const *enum_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(all_words);
    return all_words;
}

/* --- opcodes --- */

#define RECORD_BEGIN(type, doc)
#undef OP_BEGIN
static const struct opcode opcodes[] = {
#define OP_BEGIN(ID, type, doc) {"OP_" #ID, &type##_record, doc},
#include "proto/opcodes.def"
};

const struct opcode *opcode_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(opcodes);
    return opcodes;
}

const struct opcode *opcode_find(const char *id)
{
    for (size_t i = 0; i < G_N_ELEMENTS(opcodes); i++)
        if (g_strcmp0(opcodes[i].id, id) == 0)
            return &opcodes[i];
    return NULL;
}

/* Sorts the members of an opcode into those that every opcode has and the rest. */
static void opcode_split(const json_t *input, json_t *ret_common, json_t *ret_own)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)input, name, member) {
        bool common = record_field(&op_common_record, name) != NULL;
        json_object_set(common ? ret_common : ret_own, name, member);
    }
}

/* Of what has other words there, the sentence is to name those. */
static bool check_words(enum face face, const struct record *params, const json_t *own,
                        GError **error)
{
    for (const struct field *field = params->fields(); field->name != NULL; field++) {
        const char *word = json_string_value(json_object_get(own, field->name));
        if (field->type != FIELD_TYPE_ENUM || word == NULL || !face_differs(face, field->name) ||
            enum_parse(field->words, word) >= 0)
            continue;
        g_autoptr(GString) list = g_string_new(NULL);
        for (const char *const *known = field->words->words; *known != NULL; known++)
            g_string_append_printf(list, "%s%s", list->len > 0 ? ", " : "",
                                   face_word(face, field->name, *known));
        fettle_set_error(error, WRONG_INPUT, "%s: must be one of %s", field->name, list->str);
        return false;
    }
    return true;
}

static bool parse_opcode(enum face face, const json_t *input, enum record_mode mode,
                         struct op_common **ret_common, void **ret_params,
                         const struct opcode **ret_opcode, GError **error)
{
    if (!json_is_object(input)) {
        fettle_set_error(error, WRONG_INPUT, "opcode: must be an object");
        return false;
    }
    json_autoptr common_part = json_object();
    json_autoptr split_part = json_object();
    opcode_split(input, common_part, split_part);
    json_autoptr own_part = face_read(face, NULL, split_part);
    record_autoptr(op_common) common = op_common_parse(common_part, mode, error);
    if (common == NULL)
        return false;
    const struct opcode *opcode = opcode_find(common->OP_ID);
    if (opcode == NULL) {
        fettle_set_error(error, WRONG_INPUT, "OP_ID: unknown opcode \"%s\"", common->OP_ID);
        return false;
    }
    if (!ganeti_parameters_settle(opcode, own_part, error) ||
        !check_words(face, opcode->params, own_part, error))
        return false;
    void *params = record_parse(opcode->params, own_part, mode, error);
    if (params == NULL)
        return false;
    *ret_common = g_steal_pointer(&common);
    *ret_params = params;
    *ret_opcode = opcode;
    return true;
}

bool opcode_parse(const json_t *input, struct op_common **ret_common, void **ret_params,
                  const struct opcode **ret_opcode, GError **error)
{
    return opcode_parse_as(FACE_OWN, input, ret_common, ret_params, ret_opcode, error);
}

bool opcode_parse_as(enum face face, const json_t *input, struct op_common **ret_common,
                     void **ret_params, const struct opcode **ret_opcode, GError **error)
{
    return parse_opcode(face, input, RECORD_STRICT, ret_common, ret_params, ret_opcode, error);
}

bool opcode_parse_filled(const json_t *input, struct op_common **ret_common, void **ret_params,
                         const struct opcode **ret_opcode, GError **error)
{
    return parse_opcode(FACE_OWN, input, RECORD_FILLED, ret_common, ret_params, ret_opcode, error);
}

/* --- methods --- */

#undef METHOD
static const struct method methods[] = {
#define METHOD(server, name, args, answer, callers, place, fence, timeout, doc)                    \
    {#server, #name,         &args##_record, &answer##_record,                                     \
     callers, PLACE_##place, METHOD_##fence, TIMEOUT_##timeout,                                    \
     doc},
#include "proto/methods.def"
};

const struct method *method_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(methods);
    return methods;
}

static guint method_hash(const void *key)
{
    const struct method *method = key;
    return g_str_hash(method->name) * 31 + g_str_hash(method->server);
}

static gboolean method_same(const void *a, const void *b)
{
    const struct method *one = a, *other = b;
    return strcmp(one->name, other->name) == 0 && strcmp(one->server, other->server) == 0;
}

static GHashTable *methods_index(void)
{
    GHashTable *index = g_hash_table_new(method_hash, method_same);
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
        g_hash_table_add(index, (void *)&methods[i]);
    return index;
}

const struct method *method_find(const char *server, const char *name)
{
    static gsize made;
    static GHashTable *index; /* never changed, so any thread may look */
    const struct method wanted = {.server = server, .name = name};
    if (server == NULL || name == NULL)
        return NULL;
    if (g_once_init_enter(&made)) {
        index = methods_index();
        g_once_init_leave(&made, 1);
    }
    return g_hash_table_lookup(index, &wanted);
}

bool method_allows(const struct method *method, const char *role)
{
    size_t len = role != NULL ? strlen(role) : 0;
    for (const char *caller = method->callers; len > 0 && caller != NULL;) {
        const char *bar = strchr(caller, '|');
        size_t this = bar != NULL ? (size_t)(bar - caller) : strlen(caller);
        if (this == len && strncmp(caller, role, len) == 0)
            return true;
        caller = bar != NULL ? bar + 1 : NULL;
    }
    return false;
}

enum method_place method_place_of(const struct method *method, const char *role)
{
    static const struct {
        const char *role;
        enum method_place place;
    } places[] = {
        {ROLE_LUXID, PLACE_MASTER},
        {ROLE_JOB, PLACE_MASTER},
        {ROLE_WATCHER, PLACE_MASTER},
        {ROLE_WCONFD, PLACE_CANDIDATE},
        {ROLE_SCHEDULER, PLACE_CANDIDATE},
        {ROLE_NODED, PLACE_MEMBER},
        {ROLE_CLI, PLACE_HERE},
        {ROLE_VOLUMED, PLACE_MEMBER},
        {ROLE_APID, PLACE_MEMBER},
        {ROLE_JOINING, PLACE_STRANGER},
    };
    for (size_t i = 0; method->place == PLACE_BY_ROLE && i < G_N_ELEMENTS(places); i++) {
        if (strcmp(places[i].role, role) == 0)
            return places[i].place;
    }
    return method->place == PLACE_BY_ROLE ? PLACE_HERE : method->place;
}

bool method_fences(const struct method *method, const char *role)
{
    return method->fence == METHOD_FENCED ||
           (method->fence == METHOD_JOB_FENCED && strcmp(role, ROLE_JOB) == 0);
}

/* --- LUXI --- */

#undef LUXI_BEGIN
static const struct luxi_method luxi_methods[] = {
#define LUXI_BEGIN(NAME, type, doc) {#NAME, &type##_record, doc},
#include "proto/luxi.def"
};

const struct luxi_method *luxi_method_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(luxi_methods);
    return luxi_methods;
}

const struct luxi_method *luxi_method_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(luxi_methods); i++)
        if (g_strcmp0(luxi_methods[i].name, name) == 0)
            return &luxi_methods[i];
    return NULL;
}

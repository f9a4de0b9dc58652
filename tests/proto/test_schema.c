/*
 * The wire is frozen in schema.json: what the tables say now must be what stands there. A change is
 * allowed, but never by accident: this test fails, says where the first difference is and how to
 * accept it (docs of fields are not wire and may change freely).
 */
#include "proto/cli/cli_table.h"
#include "proto/envelope.h"
#include "proto/luxi.h"
#include "proto/rpc.h"

#include <string.h>

static json_t *errors_now(void)
{
    json_t *errors = json_array();
    for (int code = 0; code < FETTLE_ERROR_COUNT; code++) {
        g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, code, "");
        json_array_append_new(errors, json_make("{s:s, s:i}", "name", fettle_error_name(error),
                                                "exit_code", fettle_error_exit_code(error)));
    }
    return errors;
}

static json_t *enums_now(void)
{
    json_t *enums = json_object();
    size_t count;
    const struct enum_words *const *table = enum_table(&count);
    for (size_t i = 0; i < count; i++) {
        json_t *words = json_array();
        for (int n = 0; table[i]->words[n] != NULL; n++)
            json_array_append_new(words, json_string(table[i]->words[n]));
        json_object_set_new(enums, table[i]->name, words);
    }
    return enums;
}

static json_t *records_now(void)
{
    json_t *records = json_object();
    size_t count;
    const struct record *const *table = record_table(&count);
    for (size_t i = 0; i < count; i++) {
        json_autoptr schema = record_schema(table[i]);
        json_t *fields = json_object_get(schema, "fields");
        size_t n;
        json_t *field;
        json_array_foreach(fields, n, field)
            json_object_del(field, "doc");
        json_object_set(records, table[i]->name, fields);
    }
    return records;
}

static json_t *methods_now(void)
{
    static const char *const classes[] = {"quick", "normal", "copy", "wait", "fresh"};
    json_t *methods = json_object();
    size_t count;
    const struct method *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("%s/%s", table[i].server, table[i].name);
        json_object_set_new(methods, name,
                            json_make("{s:s, s:s, s:s, s:s}", "args", table[i].args->name, "answer",
                                      table[i].answer->name, "callers", table[i].callers, "timeout",
                                      classes[table[i].timeout]));
    }
    return methods;
}

static json_t *opcodes_now(void)
{
    json_t *opcodes = json_object();
    size_t count;
    const struct opcode *table = opcode_table(&count);
    for (size_t i = 0; i < count; i++)
        json_object_set_new(opcodes, table[i].id, json_string(table[i].params->name));
    return opcodes;
}

static json_t *luxi_now(void)
{
    json_t *methods = json_object();
    size_t count;
    const struct luxi_method *table = luxi_method_table(&count);
    for (size_t i = 0; i < count; i++)
        json_object_set_new(methods, table[i].name, json_string(table[i].args->name));
    return methods;
}

static json_t *commands_now(void)
{
    json_t *commands = json_object();
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("%s %s", table[i].noun, table[i].verb);
        json_object_set_new(commands, name, json_make("[s, s]", table[i].op_id, table[i].words));
    }
    return commands;
}

static void add_field(json_t *fields, const char *resource, const char *name, const char *kind)
{
    g_autofree char *path = g_strdup_printf("%s/%s", resource, name);
    json_object_set_new(fields, path, json_string(kind));
}

static json_t *query_fields_now(void)
{
    json_t *fields = json_object();
#define MEMBER(resource, record, name, title, kind, member, doc)                                   \
    add_field(fields, #resource, name, #kind);
#define GETTER(resource, name, title, kind, source, function, doc)                                 \
    add_field(fields, #resource, name, #kind);
#define FIXED(resource, name, title, kind, value, doc) add_field(fields, #resource, name, #kind);
#define ELEMENT(resource, name, title, kind, function, index, doc)                                 \
    add_field(fields, #resource, name, #kind);
#define NONE(resource, name, title, kind, doc) add_field(fields, #resource, name, #kind);
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
#undef FIXED
#undef ELEMENT
#undef NONE
    return fields;
}

static json_t *schema_now(void)
{
    return json_make("{s:[i,i], s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "protocol",
                     PROTOCOL_VERSION_MIN, PROTOCOL_VERSION_MAX, "errors", errors_now(), "enums",
                     enums_now(), "records", records_now(), "methods", methods_now(), "opcodes",
                     opcodes_now(), "luxi", luxi_now(), "query_fields", query_fields_now(),
                     "commands", commands_now());
}

/* --- comparing --- */

/* Path of the first place where both differ; NULL if nowhere. */
static char *first_difference(const json_t *frozen, const json_t *now, const char *path)
{
    if (frozen == NULL || now == NULL)
        return g_strdup_printf("%s (%s)", path, frozen == NULL ? "new" : "gone");
    if (json_equal(frozen, now))
        return NULL;
    if (json_is_object(frozen) && json_is_object(now)) {
        json_autoptr all = json_copy((json_t *)frozen);
        json_object_update_missing(all, (json_t *)now);
        const char *name;
        json_t *member;
        json_object_foreach(all, name, member) {
            g_autofree char *at = g_strdup_printf("%s/%s", path, name);
            char *found =
                first_difference(json_object_get(frozen, name), json_object_get(now, name), at);
            if (found != NULL)
                return found;
        }
    }
    if (json_is_array(frozen) && json_is_array(now)) {
        size_t count = MAX(json_array_size(frozen), json_array_size(now));
        for (size_t i = 0; i < count; i++) {
            g_autofree char *at = g_strdup_printf("%s[%zu]", path, i);
            char *found = first_difference(json_array_get(frozen, i), json_array_get(now, i), at);
            if (found != NULL)
                return found;
        }
    }
    g_autofree char *before = json_to_text(frozen);
    g_autofree char *after = json_to_text(now);
    return g_strdup_printf("%s: was %s, is %s", path, before, after);
}

static void test_frozen(void)
{
    json_autoptr now = schema_now();
    if (g_getenv("FETTLE_BLESS") != NULL) {
        g_assert_cmpint(json_dump_file(now, SCHEMA_FILE, JSON_INDENT(1) | JSON_SORT_KEYS), ==, 0);
        g_test_message("wrote %s", SCHEMA_FILE);
    }
    json_autoptr frozen = json_load_file(SCHEMA_FILE, 0, NULL);
    g_autofree char *difference = first_difference(frozen, now, "");
    if (difference == NULL)
        return;
    g_test_message("the wire changed at %s", difference);
    g_test_message("if that is meant, and an older peer still understands it: "
                   "FETTLE_BLESS=1 meson test -C BUILD schema, and commit tests/proto/schema.json");
    g_test_fail();
}

/* The comparison itself: it must find what it is for. */
static void test_differences(void)
{
    json_autoptr one = json_make("{s:[i,{s:s}], s:i}", "a", 1, "x", "y", "b", 2);
    json_autoptr two = json_make("{s:[i,{s:s}], s:i}", "a", 1, "x", "z", "b", 2);
    json_autoptr less = json_make("{s:[i,{s:s}]}", "a", 1, "x", "y");
    g_assert_null(first_difference(one, one, ""));
    g_autofree char *changed = first_difference(one, two, "");
    g_assert_cmpstr(changed, ==, "/a[1]/x: was \"y\", is \"z\"");
    g_autofree char *gone = first_difference(one, less, "");
    g_assert_cmpstr(gone, ==, "/b (gone)");
    g_autofree char *added = first_difference(less, one, "");
    g_assert_cmpstr(added, ==, "/b (new)");
    g_autofree char *no_file = first_difference(NULL, one, "");
    g_assert_cmpstr(no_file, ==, " (new)");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schema/differences", test_differences);
    g_test_add_func("/schema/frozen", test_frozen);
    return g_test_run();
}

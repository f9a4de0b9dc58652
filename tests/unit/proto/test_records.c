/*
 * Tests of the tables: every record, opcode, method, LUXI method and enum of the .def files is
 * walked. A row whose default does not parse, that does not come back from JSON as it went in, or
 * that accepts a wrong value, fails here.
 */
#include "proto/luxi.h"
#include "proto/rpc.h"
#include "sample.h"

#include <string.h>

static void assert_round_trip(const struct record *record, const json_t *json, bool whole)
{
    g_autoptr(GError) error = NULL;
    void *value = record_parse(record, json, RECORD_STRICT, &error);
    g_assert_no_error(error);
    json_autoptr out = record_to_json(record, value);
    void *copy = record_copy(record, value);
    json_autoptr copied = record_to_json(record, copy);
    void *again = record_parse(record, out, RECORD_STRICT, &error);
    g_assert_no_error(error);
    json_autoptr repeated = record_to_json(record, again);
    g_assert_true(json_equal(out, copied));
    g_assert_true(json_equal(out, repeated));
    if (whole && !json_equal(out, json))
        g_error("%s: a field is lost between JSON and struct", record->name);
    record_free(record, value);
    record_free(record, copy);
    record_free(record, again);
}

static void test_round_trips(void)
{
    size_t count;
    const struct record *const *records = record_table(&count);
    g_assert_cmpuint(count, >, 60);
    for (size_t i = 0; i < count; i++) {
        json_autoptr full = sample_record(records[i], true);
        json_autoptr least = sample_record(records[i], false);
        assert_round_trip(records[i], full, true);
        assert_round_trip(records[i], least, false);
    }
}

/* What has only its required fields has the text of each default in the others. */
static void test_defaults(void)
{
    size_t count;
    const struct record *const *records = record_table(&count);
    for (size_t i = 0; i < count; i++) {
        json_autoptr least = sample_record(records[i], false);
        g_autoptr(GError) error = NULL;
        void *value = record_parse(records[i], least, RECORD_STRICT, &error);
        g_assert_no_error(error);
        json_autoptr json = record_to_json(records[i], value);
        for (const struct field *field = records[i]->fields(); field->name != NULL; field++) {
            if (field->def == NULL)
                continue;
            void *by_text = record_new(records[i]);
            g_assert_true(record_set_text(records[i], by_text, field->name, field->def, &error));
            json_autoptr expected = record_to_json(records[i], by_text);
            g_assert_true(json_equal(json_object_get(json, field->name),
                                     json_object_get(expected, field->name)));
            record_free(records[i], by_text);
        }
        record_free(records[i], value);
    }
}

static json_t *wrong_value(const struct field *field)
{
    bool texts = field->type == FIELD_TYPE_STRING || field->type == FIELD_TYPE_NAME ||
                 field->type == FIELD_TYPE_UUID || field->type == FIELD_TYPE_ENUM;
    return texts ? json_integer(1) : json_string("wrong");
}

/* Each field of each record refuses a value of another type by its own name, and each required one
 * its absence. */
static void test_every_field_is_checked(void)
{
    size_t count;
    const struct record *const *records = record_table(&count);
    for (size_t i = 0; i < count; i++) {
        for (const struct field *field = records[i]->fields(); field->name != NULL; field++) {
            if (field->type == FIELD_TYPE_JSON)
                continue;
            json_autoptr json = sample_record(records[i], true);
            json_object_set_new(json, field->name, wrong_value(field));
            g_autoptr(GError) error = NULL;
            g_autofree char *start = g_strdup_printf("%s: must be ", field->name);
            g_assert_null(record_parse(records[i], json, RECORD_STRICT, &error));
            g_assert_true(g_str_has_prefix(error->message, start));
        }
        for (const struct field *field = records[i]->fields(); field->name != NULL; field++) {
            if (!field->required)
                continue;
            json_autoptr json = sample_record(records[i], true);
            json_object_del(json, field->name);
            g_autoptr(GError) error = NULL;
            g_autofree char *message = g_strdup_printf("%s: is missing", field->name);
            g_assert_null(record_parse(records[i], json, RECORD_STRICT, &error));
            g_assert_cmpstr(error->message, ==, message);
        }
    }
}

/* Docs are sentences: they are the help texts. */
static void test_docs(void)
{
    size_t count;
    const struct record *const *records = record_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (!g_str_has_suffix(records[i]->doc, "."))
            g_error("%s: its doc is no sentence", records[i]->name);
        for (const struct field *field = records[i]->fields(); field->name != NULL; field++)
            if (!g_str_has_suffix(field->doc, "."))
                g_error("%s.%s: its doc is no sentence", records[i]->name, field->name);
    }
}

static void test_enums(void)
{
    size_t count;
    const struct enum_words *const *enums = enum_table(&count);
    for (size_t i = 0; i < count; i++) {
        int value = 0;
        for (; enums[i]->words[value] != NULL; value++) {
            g_assert_cmpint(enum_parse(enums[i], enums[i]->words[value]), ==, value);
            g_assert_cmpstr(enum_word(enums[i], value), ==, enums[i]->words[value]);
        }
        g_assert_cmpint(value, >=, 1);
    }
    g_assert_cmpstr(enum_word(&replica_state_words, REPLICA_IN_SYNC), ==, "in-sync");
}

/* --- objects --- */

static void test_objects(void)
{
    g_assert_true(object_record("instance") == &instance_record);
    g_assert_true(object_record("decision") == &decision_record);
    g_assert_null(object_record("disk")); /* a part, no object */
    g_assert_null(object_record("op_instance_create"));
    g_assert_null(object_record("nope"));
    g_assert_null(object_record(NULL));
}

static void test_typed(void)
{
    record_autoptr(instance) web = instance_new();
    g_assert_cmpuint(web->vcpus, ==, 1);
    g_assert_cmpint(web->admin_state, ==, ADMIN_DOWN);
    g_assert_cmpstr(web->machine_type, ==, "pc-i440fx-7.2");
    struct disk *disk = disk_new();
    disk->size = 64;
    g_ptr_array_add(web->disks, disk);
    record_autoptr(instance) copy = instance_copy(web);
    g_assert_cmpuint(((struct disk *)g_ptr_array_index(copy->disks, 0))->size, ==, 64);
}

/* --- opcodes --- */

static void test_opcodes(void)
{
    size_t count;
    const struct opcode *table = opcode_table(&count);
    g_assert_cmpuint(count, >=, 14);
    for (size_t i = 0; i < count; i++) {
        g_assert_true(opcode_find(table[i].id) == &table[i]);
        json_autoptr input = sample_record(table[i].params, true);
        json_object_set_new(input, "OP_ID", json_string(table[i].id));
        json_object_set_new(input, "comment", json_string("why"));
        record_autoptr(op_common) common = NULL;
        void *params = NULL;
        const struct opcode *opcode = NULL;
        g_autoptr(GError) error = NULL;
        g_assert_true(opcode_parse(input, &common, &params, &opcode, &error));
        g_assert_true(opcode == &table[i]);
        g_assert_cmpstr(common->comment, ==, "why");
        json_autoptr back = record_to_json(opcode->params, params);
        json_object_del(input, "OP_ID");
        json_object_del(input, "comment");
        g_assert_true(json_equal(back, input));
        record_free(opcode->params, params);
        /* no opcode has a field that every opcode has */
        for (const struct field *field = table[i].params->fields(); field->name != NULL; field++)
            g_assert_null(record_field(&op_common_record, field->name));
    }
}

/* One that a luxid of a later version has filled in: what nobody here knows asks for nothing, or it
 * is refused. */
static void test_filled_opcode(void)
{
    static const char *const nothing[] = {"null", "false", "0", "0.0", "\"\"", "[]", "{}"};
    static const char *const something[] = {"true", "1", "-0.5", "\"x\"", "[null]", "{\"x\":0}"};
    const char *form = "{\"OP_ID\":\"OP_INSTANCE_CREATE\",\"instance_name\":\"web1\","
                       "\"disk_template\":\"file\",\"disks\":[{\"size\":8%s}]%s}";
    for (size_t i = 0; i < G_N_ELEMENTS(nothing) + G_N_ELEMENTS(something) * 2; i++) {
        size_t at = i - G_N_ELEMENTS(nothing);
        bool taken = i < G_N_ELEMENTS(nothing);
        bool inside = taken || at % 2;
        g_autofree char *member =
            g_strdup_printf(",\"later\":%s", taken ? nothing[i] : something[at / 2]);
        g_autofree char *text = g_strdup_printf(form, inside ? member : "", inside ? "" : member);
        json_autoptr input = json_loads(text, 0, NULL);
        record_autoptr(op_common) common = NULL;
        void *params = NULL;
        const struct opcode *opcode = NULL;
        g_autoptr(GError) error = NULL;
        g_assert_nonnull(input);
        g_assert_true(opcode_parse_filled(input, &common, &params, &opcode, &error) == taken);
        g_assert_cmpstr(error ? error->message : NULL, ==,
                        taken    ? NULL
                        : inside ? "disks[0].later: is not known"
                                 : "later: is not known");
        if (taken)
            record_free(opcode->params, params);
    }
}

static void assert_opcode_refused(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    json_autoptr input = json_parse_limited(text, strlen(text), MIB(1), &error);
    g_assert_no_error(error);
    struct op_common *common;
    void *params;
    const struct opcode *opcode;
    g_assert_false(opcode_parse(input, &common, &params, &opcode, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_bad_opcodes(void)
{
    assert_opcode_refused("[]", "opcode: must be an object");
    assert_opcode_refused("{}", "OP_ID: is missing");
    assert_opcode_refused("{\"OP_ID\":7}", "OP_ID: must be a text");
    assert_opcode_refused("{\"OP_ID\":\"OP_NOPE\"}", "OP_ID: unknown opcode \"OP_NOPE\"");
    assert_opcode_refused("{\"OP_ID\":\"OP_INSTANCE_STARTUP\"}", "instance_name: is missing");
    assert_opcode_refused(
        "{\"OP_ID\":\"OP_INSTANCE_STARTUP\",\"instance_name\":\"a\",\"priority\":20}",
        "priority: must be at most 19");
    assert_opcode_refused("{\"OP_ID\":\"OP_INSTANCE_STARTUP\",\"instance_name\":\"a\",\"vcpus\":2}",
                          "vcpus: is not known");
#define CREATE "{\"OP_ID\":\"OP_INSTANCE_CREATE\",\"instance_name\":\"web1\","
    assert_opcode_refused(CREATE
                          "\"disk_template\":\"mirror\",\"disks\":[{\"size\":1},{\"size\":0}]}",
                          "disks[1].size: must be at least 1 (MiB)");
    assert_opcode_refused(CREATE "\"disk_template\":\"mirror\",\"disks\":[{}]}",
                          "disks[0].size: is missing");
    assert_opcode_refused(CREATE "\"disk_template\":\"drbd\"}",
                          "disk_template: must be one of diskless, mirror, file, sharedfile");
    assert_opcode_refused(CREATE "\"disk_template\":\"diskless\",\"memory\":\"1\"}",
                          "memory: must be a number");
}

/* --- methods --- */

static const char *const roles[] = {ROLE_WCONFD,    ROLE_LUXID, ROLE_JOB,     ROLE_NODED,
                                    ROLE_WATCHER,   ROLE_CLI,   ROLE_JOINING, ROLE_VOLUMED,
                                    ROLE_SCHEDULER, ROLE_APID};

static bool is_role(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++)
        if (strcmp(roles[i], name) == 0)
            return true;
    return false;
}

static void test_methods(void)
{
    size_t count;
    const struct method *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        g_assert_true(method_find(table[i].server, table[i].name) == &table[i]);
        g_assert_true(is_role(table[i].server));
        g_auto(GStrv) callers = g_strsplit(table[i].callers, "|", -1);
        for (int n = 0; callers[n] != NULL; n++) {
            g_assert_true(is_role(callers[n]));
            g_assert_true(method_allows(&table[i], callers[n]));
        }
        g_assert_true(table[i].fence == METHOD_OPEN || !strcmp(table[i].server, ROLE_WCONFD));
        if (table[i].timeout == TIMEOUT_WAIT)
            g_assert_nonnull(record_field(table[i].args, "wait_ms"));
    }
    g_assert_null(method_find("noded", "commit"));
    g_assert_null(method_find("wconfd", "nope"));
}

static void test_allows(void)
{
    const struct method *method = method_find(ROLE_WCONFD, "set_replica_state");
    g_assert_true(method_allows(method, ROLE_NODED));
    g_assert_false(method_allows(method, ROLE_JOB));
    g_assert_false(method_allows(method, "node"));
    g_assert_false(method_allows(method, ""));
    g_assert_false(method_allows(method, NULL));
    g_assert_false(method_allows(method_find(ROLE_WCONFD, "commit"), "luxid|job"));
}

static void test_luxi_methods(void)
{
    size_t count;
    const struct luxi_method *table = luxi_method_table(&count);
    for (size_t i = 0; i < count; i++)
        g_assert_true(luxi_method_find(table[i].name) == &table[i]);
    g_assert_null(luxi_method_find("Nope"));
}

/* Commits and what follows them pass the same objects from hand to hand. */
static void test_shared(void)
{
    json_autoptr json = sample_record(&change_record, true);
    record_autoptr(change) change = change_parse(json, RECORD_STRICT, NULL);
    record_autoptr(change) copy = change_copy(change);
    json_autoptr out = change_to_json(copy);
    const json_t *object = json_object_get(json, "object");
    g_assert_nonnull(object);
    g_assert_true(change->object == object);
    g_assert_true(copy->object == object);
    g_assert_true(json_object_get(out, "object") == object);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/records/round-trips", test_round_trips);
    g_test_add_func("/records/defaults", test_defaults);
    g_test_add_func("/records/every-field-is-checked", test_every_field_is_checked);
    g_test_add_func("/records/docs", test_docs);
    g_test_add_func("/records/enums", test_enums);
    g_test_add_func("/records/objects", test_objects);
    g_test_add_func("/records/typed", test_typed);
    g_test_add_func("/records/opcodes", test_opcodes);
    g_test_add_func("/records/filled-opcode#FUT-12", test_filled_opcode);
    g_test_add_func("/records/bad-opcodes", test_bad_opcodes);
    g_test_add_func("/records/methods", test_methods);
    g_test_add_func("/records/shared", test_shared);
    g_test_add_func("/records/allows", test_allows);
    g_test_add_func("/records/luxi-methods", test_luxi_methods);
    return g_test_run();
}

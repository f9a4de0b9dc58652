/*
 * Opcodes as Ganeti's clients send them. What those have is taken from a list of its own,
 * ganeti-opcodes.txt, made from Ganeti 3.0.2: every parameter of an opcode that Fettle has too is
 * known, and at its default accepted.
 */
#include "proto/opcodes_ganeti.h"
#include "sample.h"

#include <string.h>

static const char *list;

/* A default as Python writes it. */
static json_t *python(const char *text)
{
    if (strcmp(text, "None") == 0)
        return json_null();
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return json_boolean(text[0] == 'T');
    if (text[0] == '\'')
        return json_stringn(text + 1, strlen(text) - 2);
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

/* An opcode's required fields, and what Ganeti's clients send beside them. */
static json_t *opcode_new(const struct opcode *opcode)
{
    json_t *json = sample_record(opcode->params, false);
    json_object_set_new(json, "OP_ID", json_string(opcode->id));
    return json;
}

static bool parses(const json_t *json, json_t **ret_own, char **ret_message)
{
    record_autoptr(op_common) common = NULL;
    g_autoptr(GError) error = NULL;
    const struct opcode *opcode;
    void *params;
    if (!opcode_parse(json, &common, &params, &opcode, &error)) {
        *ret_message = g_strdup(error->message);
        return false;
    }
    *ret_own = record_to_json(opcode->params, params);
    record_free(opcode->params, params);
    return true;
}

static void check_accepted(const json_t *json)
{
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    if (!parses(json, &own, &message))
        g_error("%s: %s", json_string_value(json_object_get(json, "OP_ID")), message);
}

/* Reads one line of the list: the opcode it begins, or a parameter with its default. */
static void take_line(const char *line, json_t **opcode_json, guint *parameters)
{
    g_auto(GStrv) parts = g_strsplit(line, " | ", 3);
    if (g_str_has_prefix(line, "OP_")) {
        if (*opcode_json != NULL)
            check_accepted(*opcode_json);
        json_decref(*opcode_json);
        *opcode_json = opcode_new(opcode_find(line));
        return;
    }
    if (g_strv_length(parts) != 3)
        return;
    json_autoptr value = python(parts[1]);
    g_assert_nonnull(value);
    if (json_object_get(*opcode_json, g_strstrip(parts[0])) == NULL)
        json_object_set(*opcode_json, parts[0], value);
    *parameters += 1;
}

static void test_defaults(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(list, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    json_t *json = NULL;
    guint parameters = 0;
    for (guint i = 0; lines[i] != NULL; i++)
        take_line(lines[i], &json, &parameters);
    check_accepted(json);
    json_decref(json);
    g_assert_cmpuint(parameters, ==, 296);
}

/* Each is known by its name, also if it asks for something. */
static void test_names(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(list, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    const struct opcode *opcode = NULL;
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], " | ", 3);
        if (g_str_has_prefix(lines[i], "OP_"))
            opcode = opcode_find(lines[i]);
        if (g_strv_length(parts) != 3)
            continue;
        const char *name = g_strstrip(parts[0]);
        if (record_field(opcode->params, name) == NULL &&
            ganeti_parameter_find(opcode->id, name) == NULL)
            g_error("%s: %s is not known", opcode->id, name);
    }
}

/* An opcode that is neither in the list nor none of Ganeti's has been forgotten there. */
static void test_every_opcode(void)
{
    static const char *const own[] = {"OP_ADVICE_SET",
                                      "OP_BACKEND_ADD",
                                      "OP_INSTANCE_ATTACH_VOLUME",
                                      "OP_INSTANCE_DETACH_VOLUME",
                                      "OP_BACKEND_REMOVE",
                                      "OP_BACKEND_SET_PARAMS",
                                      "OP_CLUSTER_INIT",
                                      "OP_NODE_INVITE",
                                      "OP_NODE_WITHDRAW_INVITATION",
                                      "OP_INSTANCE_SETTLE",
                                      "OP_INSTANCE_VERIFY",
                                      "OP_RECOVERY_RESET",
                                      "OP_REPAIR_CONTINUE",
                                      NULL};
    g_autofree char *text = NULL;
    size_t count;
    const struct opcode *table = opcode_table(&count);
    g_assert_true(g_file_get_contents(list, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (size_t i = 0; i < count; i++) {
        bool listed = g_strv_contains((const char *const *)lines, table[i].id);
        if (listed == g_strv_contains(own, table[i].id))
            g_error("%s is in ganeti-opcodes.txt, or Fettle's own: one of the two", table[i].id);
    }
}

/* A row is about an opcode of ours and about no parameter of it, but for YES_NO and PAIRS. */
static void test_rows(void)
{
    size_t count;
    const struct ganeti_parameter *table = ganeti_parameter_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct opcode *opcode = opcode_find(table[i].opcode);
        const struct field *field = record_field(opcode->params, table[i].name);
        bool same = table[i].pairs && strcmp(table[i].name, table[i].ours) == 0;
        g_assert_true((field != NULL) == (table[i].yes_no || same));
        g_assert_true(ganeti_parameter_find(table[i].opcode, table[i].name) == &table[i]);
        json_autoptr value =
            table[i].taken == NULL ? NULL : json_loads(table[i].taken, JSON_DECODE_ANY, NULL);
        g_assert_true((value == NULL) == (table[i].taken == NULL));
        if (table[i].yes_no)
            g_assert_cmpint(field->type, ==, FIELD_TYPE_STRING);
    }
}

static void check_refused(const char *opcode, const char *name, json_t *value, const char *expected)
{
    json_autoptr json = opcode_new(opcode_find(opcode));
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    json_object_set_new(json, name, value);
    g_assert_false(parses(json, &own, &message));
    g_assert_cmpstr(message, ==, expected);
}

static void test_refusals(void)
{
    check_refused("OP_INSTANCE_STARTUP", "startup_paused", json_true(),
                  "startup_paused: only false is taken: guests are not started paused");
    check_refused("OP_INSTANCE_STARTUP", "hvparams", json_make("{ss}", "acpi", "no"),
                  "hvparams: only {} is taken: a guest is started with the settings on record");
    check_refused("OP_INSTANCE_FAILOVER", "ignore_consistency", json_true(),
                  "ignore_consistency: only false is taken: a replica that lacks acknowledged "
                  "writes is never promoted");
    check_refused("OP_INSTANCE_REPLACE_DISKS", "disks", json_make("[i]", 1),
                  "disks: only [] is taken: a replica is copied whole");
    check_refused(
        "OP_INSTANCE_FAILOVER", "iallocator", json_string("mine"),
        "iallocator: only \"hail\" is taken: Fettle chooses nodes by itself, or takes the "
        "one that is named");
    check_refused("OP_CLUSTER_SET_PARAMS", "vg_name", json_string("xenvg"),
                  "vg_name: only null is taken: disks are files; there are no volume groups");
    check_refused("OP_CLUSTER_SET_PARAMS", "beparams", json_make("{si}", "memory", 1),
                  "beparams: only {} is taken: instances have their settings themselves, and no "
                  "others of the cluster");
    check_refused("OP_INSTANCE_SET_PARAMS", "instance_uuid", json_string("x"),
                  "instance_uuid: only null is taken: an instance is named by instance_name, which "
                  "may be its UUID");
    check_refused("OP_INSTANCE_STARTUP", "nonsense", json_false(), "nonsense: is not known");
    check_refused("OP_INSTANCE_MIGRATE", "force", json_false(), "force: is not known");
    check_refused("OP_NODE_SET_PARAMS", "drained", json_integer(1), "drained: must be a text");
    check_refused("OP_NODE_SET_PARAMS", "statement", json_true(), "statement: must be a text");
}

static char *taken_apart(const char *name, json_t *changes)
{
    json_autoptr json = opcode_new(opcode_find("OP_INSTANCE_SET_PARAMS"));
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    json_object_set_new(json, name, changes);
    if (!parses(json, &own, &message))
        return g_steal_pointer(&message);
    json_autoptr rest = json_object();
    const char *key;
    json_t *value;
    json_object_foreach(own, key, value)
        if (json_array_size(value) > 0)
            json_object_set(rest, key, value);
    g_assert_null(json_object_get(own, name));
    return json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
}

static void check_apart(const char *name, const char *changes, const char *expected)
{
    g_autofree char *text = taken_apart(name, json_loads(changes, 0, NULL));
    g_assert_cmpstr(text, ==, expected);
}

/* What gnt-instance modify sends for --disk and --net. */
static void test_lists(void)
{
    check_apart("disks", "[[\"add\",-1,{\"size\":1024,\"mode\":\"rw\"}],[\"remove\",-1,{}]]",
                "{\"add_disks\":[{\"format\":\"raw\",\"size\":1024}],\"remove_disks\":[\"-1\"]}");
    check_apart("disks", "[[\"remove\",2,{}]]", "{\"remove_disks\":[\"2\"]}");
    check_apart("nics", "[[\"modify\",0,{\"link\":\"br1\"}],[\"remove\",\"aa:00:00:00:00:01\",{}]]",
                "{\"change_nics\":[{\"card\":\"0\",\"ip\":\"\",\"link\":\"br1\",\"mac\":\"\","
                "\"mode\":\"\"}],\"remove_nics\":[\"aa:00:00:00:00:01\"]}");
    check_apart(
        "disks", "[[\"modify\",0,{\"mode\":\"ro\"}]]",
        "disks[0]: must be [\"add\", {…}] (at the end) or [\"remove\", NUMBER, {}]; what is "
        "there stays as it is");
    check_apart(
        "disks", "[[\"add\",0,{\"size\":1024}]]",
        "disks[0]: must be [\"add\", {…}] (at the end) or [\"remove\", NUMBER, {}]; what is "
        "there stays as it is");
    check_apart("nics", "[[\"detach\",0,{}]]",
                "nics[0]: must be [\"add\", {…}] (at the end), [\"modify\", NUMBER, {…}] or "
                "[\"remove\", NUMBER, {}]");
    check_apart("nics", "[[\"add\",{\"bridge\":\"br1\"}]]", "add_nics[0].bridge: is not known");
    check_apart("disks", "{}", "disks: must be a list of changes");
}

/* Whose opcode it is may read it again. */
static void test_lists_stay(void)
{
    json_autoptr json = opcode_new(opcode_find("OP_INSTANCE_SET_PARAMS"));
    json_object_set_new(json, "add_disks", json_make("[{si}]", "size", 64));
    json_object_set_new(json, "disks", json_make("[[s, {si}]]", "add", "size", 1024));
    json_autoptr before = json_deep_copy(json);
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    g_assert_true(parses(json, &own, &message));
    g_assert_cmpuint(json_array_size(json_object_get(own, "add_disks")), ==, 2);
    g_assert_true(json_equal(json, before));
}

static void check_settings(const char *id, const char *name, const char *dict, const char *expected)
{
    json_autoptr json = opcode_new(opcode_find(id));
    json_autoptr own = NULL;
    g_autofree char *text = NULL;
    json_object_set_new(json, name, json_loads(dict, JSON_DECODE_ANY, NULL));
    if (parses(json, &own, &text)) {
        g_assert_null(json_object_get(own, name));
        text = g_strdup_printf("%" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT " '%s' '%s'",
                               json_integer_value(json_object_get(own, "memory")),
                               json_integer_value(json_object_get(own, "vcpus")),
                               json_string_value(json_object_get(own, "kernel_path")),
                               json_string_value(json_object_get(own, "vnc_bind_address")));
    }
    g_assert_cmpstr(text, ==, expected);
}

/* What gnt-instance add and modify send for -B and -H. */
static void test_settings(void)
{
    static const char *const create = "OP_INSTANCE_CREATE", *const modify =
                                                                "OP_INSTANCE_SET_PARAMS";
    check_settings(create, "beparams", "{\"memory\": 1024, \"vcpus\": 2}", "1024 2 '' ''");
    check_settings(create, "beparams", "{\"minmem\": 512, \"maxmem\": 512}", "512 1 '' ''");
    check_settings(modify, "beparams", "{\"maxmem\": 512, \"auto_balance\": true}", "512 0 '' ''");
    check_settings(create, "beparams",
                   "{\"auto_balance\": true, \"spindle_use\": 1, \"always_failover\": false}",
                   "128 1 '' ''");
    check_settings(create, "hvparams",
                   "{\"acpi\": true, \"kernel_path\": \"k\", \"vnc_bind_address\": \"\"}",
                   "128 1 'k' ''");
    check_settings(modify, "hvparams", "{\"kernel_path\": \"\", \"vnc_bind_address\": \"::\"}",
                   "0 0 'none' '::'");
    check_settings(create, "beparams", "{\"memory\": 1024, \"minmem\": 512}",
                   "beparams.minmem: must be 1024, as memory is: there is one value here");
    check_settings(modify, "beparams", "{\"minmem\": 512}",
                   "beparams.minmem: say memory, which is both here");
    check_settings(modify, "beparams", "{\"memory\": 1, \"maxmem\": 2}",
                   "beparams.maxmem: must be 1, as memory is: there is one value here");
    check_settings(create, "beparams", "{\"memory\": \"x\"}", "memory: must be a number");
    check_settings(create, "beparams", "{\"always_failover\": true}",
                   "beparams.always_failover: only false is taken: it cannot be changed here");
    check_settings(
        create, "beparams", "{\"nonsense\": 1}",
        "beparams.nonsense: cannot be set here; what can: memory, maxmem, minmem, vcpus");
    check_settings(modify, "hvparams", "{\"cpu_type\": \"host\"}",
                   "hvparams.cpu_type: cannot be set here; what can: initrd_path, kernel_args, "
                   "kernel_path, vnc_bind_address");
    check_settings(modify, "hvparams", "{\"machine_version\": \"pc\"}",
                   "hvparams.machine_version: cannot be set here; what can: initrd_path, "
                   "kernel_args, kernel_path, vnc_bind_address");
    check_settings(create, "beparams", "[]", "beparams: must be settings by name");
}

/* What hbal sends; what it permits is not made use of. */
static void test_permissions(void)
{
    json_autoptr json = opcode_new(opcode_find("OP_INSTANCE_MIGRATE"));
    json_object_set_new(json, "allow_runtime_changes", json_false());
    json_object_set_new(json, "ignore_hvversions", json_true());
    json_object_set_new(json, "ignore_ipolicy", json_true());
    check_accepted(json);
}

static char *query_data(json_t *theirs, json_t *ours)
{
    json_autoptr json = opcode_new(opcode_find("OP_INSTANCE_QUERY_DATA"));
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    json_object_set_new(json, "static", theirs);
    if (ours)
        json_object_set_new(json, "on_record", ours);
    if (!parses(json, &own, &message))
        return g_steal_pointer(&message);
    g_assert_null(json_object_get(own, "static"));
    return g_strdup(json_is_true(json_object_get(own, "on_record")) ? "yes" : "no");
}

/* One value that is said twice, in their name for it and in ours. */
static void test_other_name(void)
{
    g_autofree char *theirs = query_data(json_true(), NULL);
    g_autofree char *none = query_data(json_null(), NULL);
    g_autofree char *ours = query_data(json_null(), json_true());
    g_autofree char *both = query_data(json_true(), json_true());
    g_autofree char *parted = query_data(json_false(), json_true());
    g_assert_cmpstr(theirs, ==, "yes");
    g_assert_cmpstr(none, ==, "no");
    g_assert_cmpstr(ours, ==, "yes");
    g_assert_cmpstr(both, ==, "yes");
    g_assert_cmpstr(parted, ==, "static: must be true, as on_record is: there is one value here");
}

static void test_yes_no(void)
{
    json_autoptr json = opcode_new(opcode_find("OP_NODE_SET_PARAMS"));
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    json_object_set_new(json, "drained", json_true());
    json_object_set_new(json, "offline", json_false());
    json_object_set_new(json, "master_candidate", json_null());
    json_object_set_new(json, "master_capable", json_string("yes"));
    g_assert_true(parses(json, &own, &message));
    g_assert_cmpstr(json_string_value(json_object_get(own, "drained")), ==, "yes");
    g_assert_cmpstr(json_string_value(json_object_get(own, "offline")), ==, "no");
    g_assert_cmpstr(json_string_value(json_object_get(own, "master_candidate")), ==, "");
    g_assert_cmpstr(json_string_value(json_object_get(own, "master_capable")), ==, "yes");
}

static char *collectors_of(const char *name, json_t *value, const char *ours)
{
    json_autoptr json = opcode_new(opcode_find("OP_CLUSTER_SET_PARAMS"));
    json_autoptr own = NULL;
    g_autofree char *message = NULL;
    json_object_set_new(json, name, value);
    if (!parses(json, &own, &message))
        return g_steal_pointer(&message);
    return json_to_text(json_object_get(own, ours));
}

#define assert_collectors(name, value, ours, expected)                                             \
    do {                                                                                           \
        g_autofree char *text = collectors_of(name, value, ours);                                  \
        g_assert_cmpstr(text, ==, expected);                                                       \
    } while (0)

static void test_pairs(void)
{
    assert_collectors("enabled_data_collectors", json_make("{sb sb}", "lv", 0, "drbd", 1),
                      "data_collectors", "[\"lv=no\",\"drbd=yes\"]");
    assert_collectors("enabled_data_collectors", json_object(), "data_collectors", "[]");
    assert_collectors("data_collector_interval", json_make("{si}", "lv", 2500000),
                      "data_collector_interval", "[\"lv=2.5\"]");
    assert_collectors("data_collector_interval", json_make("[s]", "lv=7"),
                      "data_collector_interval", "[\"lv=7\"]");
    assert_collectors("enabled_data_collectors", json_make("{ss}", "lv", "no"), "data_collectors",
                      "enabled_data_collectors.lv: must be true, false or a number of "
                      "microseconds");
    assert_collectors("enabled_data_collectors", json_make("[s]", "lv=no"), "data_collectors",
                      "enabled_data_collectors: must be settings by name");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    list = argv[1];
    g_test_add_func("/opcodes-ganeti/defaults-are-accepted#LUX-02", test_defaults);
    g_test_add_func("/opcodes-ganeti/every-parameter-is-known-by-name#LUX-02", test_names);
    g_test_add_func("/opcodes-ganeti/every-opcode-is-listed#LUX-02", test_every_opcode);
    g_test_add_func("/opcodes-ganeti/rows", test_rows);
    g_test_add_func("/opcodes-ganeti/what-cannot-be-done-is-refused-by-name", test_refusals);
    g_test_add_func("/opcodes-ganeti/permissions-need-not-be-used", test_permissions);
    g_test_add_func("/opcodes-ganeti/lists#LUX-02", test_lists);
    g_test_add_func("/opcodes-ganeti/lists-stay-as-they-were", test_lists_stay);
    g_test_add_func("/opcodes-ganeti/settings-by-name#LUX-02", test_settings);
    g_test_add_func("/opcodes-ganeti/another-name#LUX-02", test_other_name);
    g_test_add_func("/opcodes-ganeti/booleans-for-yes-and-no", test_yes_no);
    g_test_add_func("/opcodes-ganeti/pairs", test_pairs);
    return g_test_run();
}

/* What a connection's face changes (face.def): words both ways, and opcodes in them. */
#include "proto/records.h"

static json_t *json(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    g_assert_nonnull(value);
    return value;
}

static void check(const char *expected, json_t *found)
{
    json_autoptr wanted = json(expected);
    json_autoptr owned = found;
    g_autofree char *text = json_dumps(owned, JSON_ENCODE_ANY);
    if (!json_equal(wanted, owned))
        g_error("%s, not %s", text, expected);
}

static void check_read(const char *member, const char *text, const char *expected)
{
    json_autoptr value = json(text);
    check(expected, face_read(FACE_GANETI, member, value));
    check(text, face_read(FACE_OWN, member, value));
}

/* Each row does what its kind says, and what is of ours both ways comes back as it was. */
static void test_rows(void)
{
    size_t count;
    const struct face_word *rows = face_word_table(&count);
    for (size_t i = 0; i < count; i++) {
        json_autoptr ours = json_string(rows[i].ours);
        json_autoptr theirs = json_string(rows[i].theirs);
        json_autoptr shown = face_show(rows[i].face, rows[i].member, json_incref(ours));
        json_autoptr read = face_read(rows[i].face, rows[i].member, theirs);
        g_assert_cmpint(json_equal(shown, theirs), ==, rows[i].shown);
        g_assert_cmpint(json_equal(read, ours), ==, rows[i].read);
        g_assert_true(face_differs(rows[i].face, rows[i].member));
        g_assert_false(face_differs(FACE_OWN, rows[i].member));
        check("\"some\"", face_show(rows[i].face, rows[i].member, json_string("some")));
    }
}

static void test_places(void)
{
    check_read(NULL, "{\"disk_template\": \"drbd\", \"name\": \"drbd\"}",
               "{\"disk_template\": \"mirror\", \"name\": \"drbd\"}");
    check_read(NULL, "{\"nics\": [[\"add\", -1, {\"mac\": \"generate\"}]]}",
               "{\"nics\": [[\"add\", -1, {\"mac\": \"auto\"}]]}");
    check_read(NULL, "{\"disk_template\": 7, \"nics\": null}",
               "{\"disk_template\": 7, \"nics\": null}");
    check("[[\"drbd\", {\"disk_template\": \"drbd\"}], 1, true, null]",
          face_show(FACE_GANETI, "disk_template",
                    json("[[\"mirror\", {\"disk_template\": \"mirror\"}], 1, true, null]")));
    check("{\"tags\": [\"mirror\"], \"enabled_disk_templates\": [\"diskless\", \"drbd\"]}",
          face_show(FACE_GANETI, NULL,
                    json("{\"tags\": [\"mirror\"], \"enabled_disk_templates\": [\"diskless\", "
                         "\"mirror\"]}")));
    check("{\"disk_template\": \"mirror\"}",
          face_show(FACE_OWN, NULL, json("{\"disk_template\": \"mirror\"}")));
    check("\"mirror\"", face_show(FACE_GANETI, NULL, json_string("mirror")));
}

/* What has nothing in it that differs is not made anew; what has stays as it was. */
static void test_copies(void)
{
    json_autoptr same = json("{\"name\": \"web1\", \"disks\": [{\"size\": 1}, []]}");
    json_autoptr shown = face_show(FACE_GANETI, NULL, json_incref(same));
    json_autoptr read = face_read(FACE_GANETI, NULL, same);
    g_assert_true(shown == same && read == same);
    json_autoptr ours = json("[{\"a\": [{\"disk_template\": \"mirror\"}], \"b\": [7]}]");
    json_autoptr before = json_deep_copy(ours);
    check("[{\"a\": [{\"disk_template\": \"drbd\"}], \"b\": [7]}]",
          face_show(FACE_GANETI, NULL, json_incref(ours)));
    g_assert_true(json_equal(ours, before));
}

/* A list of three is a condition in filters alone. */
static void test_filters(void)
{
    static const char shown[] = "[[\"opcode\", [\"|\", [\"=\", \"disk_template\", \"drbd\"], "
                                "[\"=\", \"status\", \"x\"]]]]";
    static const char ours[] = "[[\"opcode\", [\"|\", [\"=\", \"disk_template\", \"mirror\"], "
                               "[\"=\", \"status\", \"x\"]]]]";
    static const char tags[] = "{\"tags\": [\"a\", \"disk_template\", \"drbd\"]}";
    static const char seen[] = "[\"a\", \"status\", \"ERROR_nospace\"]";
    check_read("predicates", shown, ours);
    check(shown, face_show(FACE_GANETI, "predicates", json(ours)));
    check_read("predicates", "[\"=\", \"name\", \"drbd\"]", "[\"=\", \"name\", \"drbd\"]");
    check_read(NULL, tags, tags);
    check_read(NULL, shown, shown);
    check(seen, face_show(FACE_GANETI, "tags", json(seen)));
    check("{\"ops\": [{\"tags\": [\"a\", \"disk_template\", \"mirror\"]}]}",
          face_show(FACE_GANETI, NULL,
                    json("{\"ops\": [{\"tags\": [\"a\", \"disk_template\", \"mirror\"]}]}")));
}

static void check_opcode(enum face face, const char *template, const char *mac,
                         const char *expected)
{
    json_autoptr input =
        json_make("{ss, ss, ss, s[{ss}]}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name", "web1",
                  "disk_template", template, "nics", "mac", mac);
    json_autoptr before = json_deep_copy(input);
    record_autoptr(op_common) common = NULL;
    g_autoptr(GError) error = NULL;
    const struct opcode *opcode;
    void *params = NULL;
    bool taken = opcode_parse_as(face, input, &common, &params, &opcode, &error);
    g_assert_true(json_equal(input, before));
    if (!taken) {
        g_assert_cmpstr(error->message, ==, expected);
        return;
    }
    const struct op_instance_create *create = params;
    const struct nic_spec *nic = create->nics->pdata[0];
    g_assert_cmpstr(enum_word(&disk_template_words, (int)create->disk_template), ==, expected);
    g_assert_cmpstr(nic->mac, ==, "auto");
    record_free(opcode->params, params);
}

/* The job has our words, whatever face has submitted it. */
static void test_opcodes(void)
{
    check_opcode(FACE_OWN, "mirror", "auto", "mirror");
    check_opcode(FACE_OWN, "drbd", "auto",
                 "disk_template: must be one of diskless, mirror, file, sharedfile");
    check_opcode(FACE_GANETI, "drbd", "generate", "mirror");
    check_opcode(FACE_GANETI, "file", "auto", "file");
    check_opcode(FACE_GANETI, "plain", "auto",
                 "disk_template: must be one of diskless, drbd, file, sharedfile");
}

/* Each listens at a place of its own. */
static void test_sockets(void)
{
    g_assert_cmpstr(face_socket(FACE_OWN), ==, "luxid.sock");
    g_assert_cmpstr(face_socket(FACE_GANETI), ==, "ganeti-query");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/face/rows#LUX-02", test_rows);
    g_test_add_func("/face/words-wherever-they-stand#LUX-02", test_places);
    g_test_add_func("/face/copies-only-what-differs", test_copies);
    g_test_add_func("/face/lists-of-three-that-are-no-condition#LUX-02", test_filters);
    g_test_add_func("/face/opcodes-in-its-words#LUX-02", test_opcodes);
    g_test_add_func("/face/sockets", test_sockets);
    return g_test_run();
}

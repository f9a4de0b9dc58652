/*
 * Tests of proto/record.h on a record of its own that has every type: what is accepted, each
 * refusal in its exact words, defaults, unknown fields, copies, settings as text, the schema.
 */
#include "proto/record.h"

#include <string.h>

static const char *const colour_list[] = {"", "red", "green", NULL};
static const struct enum_words colour_words = {"colour", colour_list};

struct part {
    guint64 size;
    char *label;
    json_t *extra;
};

struct probe {
    char *text;
    char *name;
    char *uuid;
    guint64 count;
    gint64 level;
    double share;
    bool flag;
    GPtrArray *tags;
    json_t *any;
    int colour;
    struct part *one;
    GPtrArray *parts;
    json_t *extra;
};

static const struct record part_record;
static const struct record probe_record;

static const struct field *part_fields(void)
{
    static const struct field fields[] = {
        {"size", FIELD_TYPE_UINT, G_STRUCT_OFFSET(struct part, size), true, NULL, RANGE(1, 100),
         NULL, NULL, "Size (MiB)."},
        {"label", FIELD_TYPE_STRING, G_STRUCT_OFFSET(struct part, label), false, "none",
         RANGE(1, 8), NULL, NULL, "Label."},
        {.name = NULL}};
    return fields;
}

static void part_destroy(void *value)
{
    record_free(&part_record, value);
}

static const struct record part_record = {
    "part",      "A part.",   sizeof(struct part), G_STRUCT_OFFSET(struct part, extra),
    part_fields, part_destroy};

#define ROW(name, TYPE, need, def, limit, words, record)                                           \
    {#name,  FIELD_TYPE_##TYPE,  G_STRUCT_OFFSET(struct probe, name), need, def, limit, words,     \
     record, "Doc of " #name "."},

static const struct field *probe_fields(void)
{
    static const struct field fields[] = {
        ROW(text, STRING, true, NULL, RANGE(2, 5), NULL, NULL)
            ROW(name, NAME, false, NULL, NO_LIMIT, NULL, NULL) ROW(uuid, UUID, false, NULL,
                                                                   NO_LIMIT, NULL, NULL)
                ROW(count, UINT, false, "7", NO_LIMIT, NULL, NULL) ROW(level, INT, false, "-3",
                                                                       RANGE(-20, 19), NULL, NULL)
                    ROW(share, FLOAT, false, "0.5", RANGE(0, 1), NULL, NULL)
                        ROW(flag, BOOL, false, "true", NO_LIMIT, NULL, NULL)
                            ROW(tags, STRINGS, false, NULL, RANGE(1, 3), NULL, NULL)
                                ROW(any, JSON, false, NULL, NO_LIMIT, NULL, NULL)
                                    ROW(colour, ENUM, false, "green", NO_LIMIT, &colour_words, NULL)
                                        ROW(one, OBJECT, false, NULL, NO_LIMIT, NULL, &part_record)
                                            ROW(parts, OBJECTS, false, NULL, RANGE(0, 2), NULL,
                                                &part_record){.name = NULL}};
    return fields;
}

static void probe_destroy(void *value)
{
    record_free(&probe_record, value);
}

static const struct record probe_record = {
    "probe",      "A probe.",   sizeof(struct probe), G_STRUCT_OFFSET(struct probe, extra),
    probe_fields, probe_destroy};

static void probe_freep(struct probe **value)
{
    record_free(&probe_record, *value);
}
#define probe_autoptr __attribute__((cleanup(probe_freep))) struct probe *

static struct probe *parse(const char *text, enum record_mode mode, GError **error)
{
    json_autoptr json = json_parse_limited(text, strlen(text), MIB(1), error);
    g_assert_nonnull(json);
    return record_parse(&probe_record, json, mode, error);
}

static void assert_refused(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(parse(text, RECORD_STRICT, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, message);
}

static void assert_json(const struct probe *value, const char *expected)
{
    json_autoptr json = record_to_json(&probe_record, value);
    g_autofree char *text = json_to_text(json);
    g_assert_cmpstr(text, ==, expected);
    /* Written as text it is the same. */
    g_autoptr(GString) written = g_string_new("before ");
    record_append(&probe_record, value, written);
    json_autoptr read = json_loads(written->str + strlen("before "), JSON_REJECT_DUPLICATES, NULL);
    g_assert_nonnull(read);
    g_assert_true(json_equal(read, json));
}

/* --- what is accepted --- */

static void test_full(void)
{
    g_autoptr(GError) error = NULL;
    const char *text =
        "{\"any\":{\"x\":[1]},\"colour\":\"red\",\"count\":9007199254740992,\"flag\":false,"
        "\"level\":-20,\"name\":\"web-1.example\",\"one\":{\"label\":\"a\",\"size\":1},"
        "\"parts\":[{\"label\":\"none\",\"size\":100}],\"share\":0.25,\"tags\":[\"\",\"b\"],"
        "\"text\":\"äöüß\",\"uuid\":\"0123abcd-0000-4000-8000-0123456789ab\"}";
    probe_autoptr value = parse(text, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(value->text, ==, "äöüß");
    g_assert_cmpuint(value->count, ==, G_GUINT64_CONSTANT(9007199254740992));
    g_assert_cmpint(value->level, ==, -20);
    g_assert_false(value->flag);
    g_assert_cmpint(value->colour, ==, 1);
    g_assert_cmpuint(value->one->size, ==, 1);
    g_assert_cmpuint(value->tags->len, ==, 2);
    g_assert_cmpstr(((struct part *)g_ptr_array_index(value->parts, 0))->label, ==, "none");
    assert_json(value, text);
}

#define DEFAULTS                                                                                   \
    "{\"colour\":\"green\",\"count\":7,\"flag\":true,\"level\":-3,\"name\":\"\",\"parts\":[],"     \
    "\"share\":0.5,\"tags\":[],\"text\":\"ab\",\"uuid\":\"\"}"

static void test_defaults(void)
{
    g_autoptr(GError) error = NULL;
    probe_autoptr absent = parse("{\"text\":\"ab\"}", RECORD_STRICT, &error);
    g_assert_no_error(error);
    assert_json(absent, DEFAULTS);
    g_assert_null(absent->one);
    g_assert_null(absent->any);
    probe_autoptr null = parse("{\"text\":\"ab\",\"count\":null,\"one\":null,\"parts\":null,"
                               "\"any\":null,\"flag\":null,\"tags\":null,\"name\":null}",
                               RECORD_STRICT, &error);
    g_assert_no_error(error);
    assert_json(null, DEFAULTS);
    probe_autoptr fresh = record_new(&probe_record);
    g_assert_cmpstr(fresh->text, ==, "");
    g_assert_cmpint(fresh->level, ==, -3);
}

static void test_float_takes_integers(void)
{
    g_autoptr(GError) error = NULL;
    probe_autoptr value = parse("{\"text\":\"ab\",\"share\":1}", RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(value->share, ==, 1.0);
}

/* --- what is refused --- */

static void test_wrong_types(void)
{
    assert_refused("[]", "probe: must be an object");
    assert_refused("{}", "text: is missing");
    assert_refused("{\"text\":null}", "text: is missing");
    assert_refused("{\"text\":1}", "text: must be a text");
    assert_refused("{\"text\":\"ab\",\"name\":[]}", "name: must be a text");
    assert_refused("{\"text\":\"ab\",\"uuid\":1}", "uuid: must be a text");
    assert_refused("{\"text\":\"ab\",\"count\":\"1\"}", "count: must be a number");
    assert_refused("{\"text\":\"ab\",\"count\":1.0}", "count: must be a whole number");
    assert_refused("{\"text\":\"ab\",\"level\":true}", "level: must be a number");
    assert_refused("{\"text\":\"ab\",\"level\":1e3}", "level: must be a whole number");
    assert_refused("{\"text\":\"ab\",\"share\":\"1\"}", "share: must be a number");
    assert_refused("{\"text\":\"ab\",\"flag\":1}", "flag: must be true or false");
    assert_refused("{\"text\":\"ab\",\"colour\":2}", "colour: must be a text");
    assert_refused("{\"text\":\"ab\",\"tags\":\"a\"}", "tags: must be a list of texts");
    assert_refused("{\"text\":\"ab\",\"tags\":[\"a\",1]}", "tags[1]: must be a text");
    assert_refused("{\"text\":\"ab\",\"one\":[]}", "one: must be an object");
    assert_refused("{\"text\":\"ab\",\"parts\":{}}", "parts: must be a list of objects");
    assert_refused("{\"text\":\"ab\",\"parts\":[{\"size\":1},null]}",
                   "parts[1]: must be an object");
}

static void test_limits(void)
{
    assert_refused("{\"text\":\"a\"}", "text: must have at least 2 characters, has 1");
    assert_refused("{\"text\":\"\"}", "text: must not be empty");
    assert_refused("{\"text\":\"abcdef\"}", "text: must have at most 5 characters, has 6");
    assert_refused("{\"text\":\"ab\",\"count\":-1}", "count: must be at least 0");
    assert_refused("{\"text\":\"ab\",\"count\":9007199254740993}",
                   "count: must be at most 9007199254740992");
    assert_refused("{\"text\":\"ab\",\"level\":-21}", "level: must be at least -20");
    assert_refused("{\"text\":\"ab\",\"level\":20}", "level: must be at most 19");
    assert_refused("{\"text\":\"ab\",\"share\":-0.1}", "share: must be at least 0");
    assert_refused("{\"text\":\"ab\",\"share\":1.5}", "share: must be at most 1");
    assert_refused("{\"text\":\"ab\",\"colour\":\"blue\"}",
                   "colour: must be one of \"\", red, green");
    assert_refused("{\"text\":\"ab\",\"tags\":[]}", "tags: must have at least 1 elements, has 0");
    assert_refused("{\"text\":\"ab\",\"tags\":[\"\",\"\",\"\",\"\"]}",
                   "tags: must have at most 3 elements, has 4");
    assert_refused("{\"text\":\"ab\",\"parts\":[{},{},{}]}",
                   "parts: must have at most 2 elements, has 3");
}

static void test_long_strings(void)
{
    g_autofree char *chars = g_strnfill(LIMIT_STRING_CHARS + 1, 'x');
    g_autofree char *in_list = g_strdup_printf("{\"text\":\"ab\",\"tags\":[\"a\",\"%s\"]}", chars);
    assert_refused(in_list, "tags[1]: must have at most 1024 characters");
}

static void test_paths(void)
{
    assert_refused("{\"text\":\"ab\",\"parts\":[{\"size\":1},{\"size\":0}]}",
                   "parts[1].size: must be at least 1 (MiB)");
    assert_refused("{\"text\":\"ab\",\"parts\":[{\"size\":101}]}",
                   "parts[0].size: must be at most 100 (MiB)");
    assert_refused("{\"text\":\"ab\",\"parts\":[{}]}", "parts[0].size: is missing");
    assert_refused("{\"text\":\"ab\",\"one\":{\"size\":1,\"label\":3}}",
                   "one.label: must be a text");
    assert_refused("{\"text\":\"ab\",\"one\":{\"size\":1,\"x\":3}}", "one.x: is not known");
}

static void test_names(void)
{
    const char *words = "must be a name: 1 to 63 of a-z, 0-9, '.' and '-' (no upper case), the "
                        "first a letter or digit";
    g_autofree char *message = g_strdup_printf("name: %s", words);
    g_autofree char *too_long = g_strnfill(64, 'a');
    const char *const bad[] = {"",      "Web1", "-web", ".web",  "web 1",
                               "web_1", "wéb",  "a/b",  too_long};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text = g_strdup_printf("{\"text\":\"ab\",\"name\":\"%s\"}", bad[i]);
        assert_refused(text, message);
    }
    g_autoptr(GError) error = NULL;
    too_long[63] = '\0';
    g_autofree char *good = g_strdup_printf("{\"text\":\"ab\",\"name\":\"%s\"}", too_long);
    probe_autoptr value = parse(good, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(value->name, ==, too_long);
}

static void test_uuids(void)
{
    const char *const bad[] = {"",
                               "0123ABCD-0000-4000-8000-0123456789ab",
                               "0123abcd-0000-4000-8000-0123456789a",
                               "0123abcd-0000-4000-8000-0123456789abc",
                               "0123abcd00000-4000-8000-0123456789ab",
                               "0123abcg-0000-4000-8000-0123456789ab"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text = g_strdup_printf("{\"text\":\"ab\",\"uuid\":\"%s\"}", bad[i]);
        assert_refused(text, "uuid: must be a UUID in lower case");
    }
}

/* --- unknown fields --- */

static void test_unknown(void)
{
    const char *text = "{\"text\":\"ab\",\"new\":{\"a\":[1]},\"one\":{\"size\":1,\"late\":true}}";
    assert_refused(text, "one.late: is not known");
    assert_refused("{\"text\":\"ab\",\"new\":0}", "new: is not known");
    g_autoptr(GError) error = NULL;
    probe_autoptr kept = parse(text, RECORD_KEEP, &error);
    g_assert_no_error(error);
    json_autoptr json = record_to_json(&probe_record, kept);
    g_autofree char *new_part = json_to_text(json_object_get(json, "new"));
    g_autofree char *one_part = json_to_text(json_object_get(json, "one"));
    g_assert_cmpstr(new_part, ==, "{\"a\":[1]}");
    g_assert_cmpstr(one_part, ==, "{\"label\":\"none\",\"late\":true,\"size\":1}");
    probe_autoptr copy = record_copy(&probe_record, kept);
    json_autoptr again = record_to_json(&probe_record, copy);
    g_assert_true(json_equal(json, again));
    g_autofree char *all = json_to_text(json);
    assert_json(kept, all);
    probe_autoptr lax = parse(text, RECORD_LAX, &error);
    g_assert_no_error(error);
    json_autoptr without = record_to_json(&probe_record, lax);
    g_assert_null(json_object_get(without, "new"));
}

/* Ganeti's clients name every parameter they know, most of them null. */
static void test_unknown_null(void)
{
    g_autoptr(GError) error = NULL;
    probe_autoptr value = parse("{\"text\":\"ab\",\"on_node_uuids\":null}", RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_nonnull(value);
}

/* --- ownership --- */

static void test_copy_is_deep(void)
{
    g_autoptr(GError) error = NULL;
    probe_autoptr value =
        parse("{\"text\":\"ab\",\"any\":[1],\"tags\":[\"t\"],\"one\":{\"size\":5},"
              "\"parts\":[{\"size\":6}]}",
              RECORD_STRICT, &error);
    g_assert_no_error(error);
    probe_autoptr copy = record_copy(&probe_record, value);
    json_autoptr before = record_to_json(&probe_record, copy);
    json_array_append_new(value->any, json_integer(2));
    value->one->size = 50;
    value->text[0] = 'z';
    ((struct part *)g_ptr_array_index(value->parts, 0))->size = 60;
    g_ptr_array_remove_index(value->tags, 0);
    g_ptr_array_remove_index(value->parts, 0); /* frees the element */
    json_autoptr after = record_to_json(&probe_record, copy);
    g_assert_true(json_equal(before, after));
    g_assert_null(record_copy(&probe_record, NULL));
    record_free(&probe_record, NULL);
}

/* Lists that somebody made without a free function, or did not make at all. */
static void test_foreign_lists(void)
{
    probe_autoptr value = record_new(&probe_record);
    g_ptr_array_unref(value->parts);
    value->parts = g_ptr_array_new();
    g_ptr_array_add(value->parts, record_new(&part_record));
    g_ptr_array_unref(value->tags);
    value->tags = NULL;
    json_autoptr json = record_to_json(&probe_record, value);
    g_assert_cmpuint(json_array_size(json_object_get(json, "parts")), ==, 1);
    g_assert_cmpuint(json_array_size(json_object_get(json, "tags")), ==, 0);
}

static void test_bytes_that_are_no_text(void)
{
    probe_autoptr value = record_new(&probe_record);
    g_free(value->text);
    value->text = g_strdup("a\xff"
                           "b");
    json_autoptr json = record_to_json(&probe_record, value);
    g_assert_cmpstr(json_string_value(json_object_get(json, "text")), ==,
                    "a\xef\xbf\xbd"
                    "b");
}

/* --- settings as text --- */

static void set(struct probe *value, const char *name, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(record_set_text(&probe_record, value, name, text, &error));
    g_assert_no_error(error);
}

static void assert_set_refused(const char *name, const char *text, const char *message)
{
    probe_autoptr value = record_new(&probe_record);
    g_autoptr(GError) error = NULL;
    set(value, "parts", "size=1");
    g_assert_false(record_set_text(&probe_record, value, name, text, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_set_text(void)
{
    probe_autoptr value = record_new(&probe_record);
    set(value, "text", "a=b,c");
    set(value, "count", "12");
    set(value, "level", "-5");
    set(value, "share", "0.75");
    set(value, "flag", "no");
    set(value, "colour", "red");
    set(value, "any", "[1]");
    set(value, "tags", "x,y");
    set(value, "tags", "z");
    set(value, "parts", "size=64");
    set(value, "parts", "size=32,label=log");
    set(value, "one", "size=2");
    assert_json(value,
                "{\"any\":[1],\"colour\":\"red\",\"count\":12,\"flag\":false,\"level\":-5,"
                "\"name\":\"\",\"one\":{\"label\":\"none\",\"size\":2},"
                "\"parts\":[{\"label\":\"none\",\"size\":64},{\"label\":\"log\",\"size\":32}],"
                "\"share\":0.75,\"tags\":[\"x,y\",\"z\"],\"text\":\"a=b,c\",\"uuid\":\"\"}");
}

static void test_set_text_refused(void)
{
    assert_set_refused("colours", "red", "colours: is not known");
    assert_set_refused("count", "12x", "count: must be a whole number, not \"12x\"");
    assert_set_refused("count", "", "count: must be a whole number, not \"\"");
    assert_set_refused("count", "-1", "count: must be at least 0");
    assert_set_refused("count", "99999999999999999999",
                       "count: must be a whole number, not \"99999999999999999999\"");
    assert_set_refused("share", "half", "share: must be a number, not \"half\"");
    assert_set_refused("share", "nan", "share: must be a number, not \"nan\"");
    assert_set_refused("flag", "1", "flag: must be true or false, not \"1\"");
    assert_set_refused("colour", "blue", "colour: must be one of \"\", red, green");
    assert_set_refused("text", "a\xff", "text: must be UTF-8");
    assert_set_refused("parts", "64", "parts: must be NAME=VALUE,..., not \"64\"");
    assert_set_refused("parts", "size=0", "parts[1].size: must be at least 1 (MiB)");
    assert_set_refused("parts", "label=x", "parts[1].size: is missing");
    assert_set_refused("parts", "size=1,weight=2", "parts.weight: is not known");
    assert_set_refused(
        "parts", "size=x",
        "parts.size: must be a size in whole MiB, such as 512, 512M, 10G or 1T, not \"x\"");
    assert_set_refused("parts", "size=1,size=2", "parts.size: is given twice");
}

static void test_set_text_json(void)
{
    probe_autoptr value = record_new(&probe_record);
    g_autoptr(GError) error = NULL;
    g_assert_false(record_set_text(&probe_record, value, "any", "[1", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
    g_assert_cmpstr(error->message, ==,
                    "any: broken JSON at byte 2 (line 1): ']' expected near end of file");
}

static void test_list_full(void)
{
    probe_autoptr value = record_new(&probe_record);
    g_autoptr(GError) error = NULL;
    set(value, "parts", "size=1");
    set(value, "parts", "size=2");
    g_assert_false(record_set_text(&probe_record, value, "parts", "size=3", &error));
    g_assert_cmpstr(error->message, ==, "parts: must have at most 2 elements, has 3");
}

/* --- the rest --- */

static void test_words(void)
{
    g_assert_cmpint(enum_parse(&colour_words, "green"), ==, 2);
    g_assert_cmpint(enum_parse(&colour_words, ""), ==, 0);
    g_assert_cmpint(enum_parse(&colour_words, "blue"), ==, -1);
    g_assert_cmpint(enum_parse(&colour_words, NULL), ==, -1);
    g_assert_cmpstr(enum_word(&colour_words, 1), ==, "red");
}

static void test_word_out_of_range(void)
{
    if (g_test_subprocess()) {
        enum_word(&colour_words, 3);
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*colour has no word for 3*");
}

static void test_schema(void)
{
    json_autoptr schema = record_schema(&part_record);
    g_autofree char *text = json_to_text(schema);
    g_assert_cmpstr(text, ==,
                    "{\"doc\":\"A part.\",\"fields\":["
                    "{\"doc\":\"Size (MiB).\",\"max\":100,\"min\":1,\"name\":\"size\","
                    "\"required\":true,\"type\":\"uint\"},"
                    "{\"default\":\"none\",\"doc\":\"Label.\",\"max\":8,\"min\":1,"
                    "\"name\":\"label\",\"required\":false,\"type\":\"string\"}],"
                    "\"name\":\"part\"}");
    g_assert_cmpstr(record_field(&part_record, "label")->name, ==, "label");
    g_assert_null(record_field(&part_record, "Label"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/record/full", test_full);
    g_test_add_func("/record/defaults", test_defaults);
    g_test_add_func("/record/float-takes-integers", test_float_takes_integers);
    g_test_add_func("/record/wrong-types", test_wrong_types);
    g_test_add_func("/record/limits", test_limits);
    g_test_add_func("/record/long-strings", test_long_strings);
    g_test_add_func("/record/paths", test_paths);
    g_test_add_func("/record/names", test_names);
    g_test_add_func("/record/uuids", test_uuids);
    g_test_add_func("/record/unknown", test_unknown);
    g_test_add_func("/record/unknown-null", test_unknown_null);
    g_test_add_func("/record/copy-is-deep", test_copy_is_deep);
    g_test_add_func("/record/foreign-lists", test_foreign_lists);
    g_test_add_func("/record/bytes-that-are-no-text", test_bytes_that_are_no_text);
    g_test_add_func("/record/set-text", test_set_text);
    g_test_add_func("/record/set-text-refused", test_set_text_refused);
    g_test_add_func("/record/set-text-json", test_set_text_json);
    g_test_add_func("/record/list-full", test_list_full);
    g_test_add_func("/record/words", test_words);
    g_test_add_func("/record/word-out-of-range", test_word_out_of_range);
    g_test_add_func("/record/schema", test_schema);
    return g_test_run();
}

/*
 * Filters of queries and predicates of rules from any bytes: refused with the path of what is
 * wrong, or they decide about every row, the opposite about its opposite, and again the same.
 */
#include "core/job/filter.h"
#include "core/job/rules.h"
#include "fuzz.h"

static const void *resolve(const char *name, void *data)
{
    return json_object_get(data, name);
}

static json_t *value(const void *field, void *data)
{
    return json_incref((json_t *)(uintptr_t)field);
}

/* A field of each kind; null: it has no value. */
static json_t *make_row(void)
{
    return json_make("{ss si sf sb s[ssi] s{} sn}", "name", "web1", "number", 17, "share", 0.5,
                     "offline", 1, "tags", "a", "b", 3, "object", "nothing");
}

static void check_refusal(const GError *error)
{
    g_assert_true(fettle_error_is(error, WRONG_INPUT) || fettle_error_is(error, LIMIT));
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
}

/* The same wrapped in "!" is one deeper, so it may be refused. */
static void check_opposite(const json_t *json, json_t *row, bool matches)
{
    json_autoptr wrapped = json_make("[s, O]", "!", json);
    g_autoptr(GError) error = NULL;
    struct filter *opposite = filter_parse(wrapped, resolve, row, &error);
    if (opposite != NULL)
        g_assert_true(filter_match(opposite, value, NULL, NULL) != matches);
    else
        g_assert_true(fettle_error_is(error, LIMIT));
    filter_free(opposite);
}

static void check_filter(const json_t *json)
{
    json_autoptr row = make_row();
    g_autoptr(GError) error = NULL;
    struct filter *filter = filter_parse(json, resolve, row, &error);
    if (error != NULL) {
        g_assert_null(filter);
        check_refusal(error);
        return;
    }
    guint64 steps = 0, again = 0;
    bool matches = filter_match(filter, value, NULL, &steps);
    g_assert_true(filter_match(filter, value, NULL, &again) == matches && again == steps);
    if (filter != NULL)
        check_opposite(json, row, matches);
    else
        g_assert_true(matches);
    filter_free(filter);
}

/* {"predicates": …, "action": …} */
static void check_rule(const json_t *json)
{
    g_autoptr(GError) error = NULL;
    if (!rules_check(json_object_get(json, "predicates"), json_object_get(json, "action"), &error))
        check_refusal(error);
    else
        g_assert_no_error(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr json = json_parse_limited((const char *)data, len, LIMIT_LUXI_FRAME_BYTES, NULL);
    if (json == NULL)
        return 0;
    if (json_is_object(json))
        check_rule(json);
    else
        check_filter(json);
    return 0;
}

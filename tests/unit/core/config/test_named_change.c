/* Named changes: each may touch what its row says, and nothing else. */
#include <string.h>

#include "core/config/named_change.h"
#include "unit/core/world/config_world.h"

static struct config *config;

static void set_up(void)
{
    g_autoptr(GPtrArray) objects = initial_changes();
    config = config_new();
    for (guint i = 0; i < objects->len; i++) {
        struct change *change = objects->pdata[i];
        change->version = 1;
        g_assert_true(config_apply(config, change, NULL));
    }
}

/* "ok", or the refusal. */
static char *check(const char *name, struct change *change)
{
    g_autoptr(GPtrArray) changes = changes_of(change, NULL);
    g_autoptr(GError) error = NULL;
    if (named_change_check(name, config, changes, &error))
        return g_strdup("ok");
    return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

static struct change *web(const char *field, json_t *value)
{
    return put("instance", WEB1, 1, with(object_web1(), field, value));
}

static void test_fields(void)
{
    set_up();
    assert_says(check("mark_instance", web("task_state", json_string("stopping"))), "ok");
    assert_says(check("mark_instance", web("task_owner", json_integer(9))), "ok");
    assert_says(check("mark_instance", web("memory", json_integer(9))),
                "permission_denied: instance web1 (" WEB1
                "): mark_instance may not change its memory");
    assert_says(check("mark_instance", web("primary_node", json_string(NODE2))),
                "permission_denied: instance web1 (" WEB1
                "): mark_instance may not change its primary_node");
    assert_says(check("promote_replica", web("primary_node", json_string(NODE2))), "ok");
    assert_says(check("begin_migration", web("migration_node", json_string(NODE2))), "ok");
    assert_says(check("mark_instance", web("later", json_integer(1))),
                "permission_denied: instance web1 (" WEB1
                "): mark_instance may not change fields that this version does not know");
    config_free(config);
}

static void test_objects(void)
{
    set_up();
    assert_says(check("change_tags",
                      put("node", NODE3, 1, with(object_node(NODE3), "drained", json_true()))),
                "permission_denied: node node3 (" NODE3
                "): change_tags may not change its drained");
    assert_says(check("change_node",
                      put("node", NODE3, 1, with(object_node(NODE3), "drained", json_true()))),
                "ok");
    assert_says(check("change_node", del("node", NODE3, 1)),
                "permission_denied: node node3 (" NODE3 "): change_node may not delete it");
    assert_says(check("mark_instance", del("instance", WEB1, 1)),
                "permission_denied: instance web1 (" WEB1 "): mark_instance may not delete it");
    assert_says(check("remove_instance", del("instance", WEB1, 1)), "ok");
    assert_says(check("mark_instance", put("instance", NODE1, 0, object_web1())),
                "permission_denied: instance " NODE1 ": mark_instance may not make it");
    config_free(config);
}

/* What is stale or cannot be read is for the commit to refuse, which says why. */
static void test_left_to_the_commit(void)
{
    set_up();
    assert_says(check("mark_instance",
                      put("instance", WEB1, 7, with(object_web1(), "memory", json_integer(9)))),
                "ok");
    assert_says(check("mark_instance", put("instance", WEB1, 1, json_object())), "ok");
    assert_says(check("mark_instance", put("gadget", WEB1, 0, json_object())), "ok");
    config_free(config);
}

static bool is_kind(const char *word, size_t len)
{
    g_autofree char *kind = g_strndup(word, len);
    return object_record(kind) != NULL;
}

static bool is_field(const char *word, size_t len)
{
    g_autofree char *text = g_strndup(word, len);
    char *dot = strchr(text, '.');
    *dot = '\0';
    const struct record *record = object_record(text);
    size_t begin = strcspn(dot + 1, "*");
    for (const struct field *field = record ? record->fields() : NULL; field && field->name;
         field++) {
        bool found = dot[1 + begin] ? strncmp(field->name, dot + 1, begin) == 0
                                    : strcmp(field->name, dot + 1) == 0;
        if (found)
            return true;
    }
    return false;
}

/* Every word of the table names something that exists, and every row is a method with the one
 * form of arguments. */
static void test_table(void)
{
    static const struct {
        const char *name, *callers, *may;
    } rows[] = {
#define CHANGE(name, callers, place, fence, may, doc) {#name, callers, may},
#include "proto/changes.def"
#undef CHANGE
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const struct method *method = method_find(ROLE_WCONFD, rows[i].name);
        g_assert_nonnull(method);
        g_assert_true(method->args == &commit_args_record);
        g_assert_cmpstr(method->callers, ==, rows[i].callers);
        g_assert_true(named_change_exists(rows[i].name));
        g_auto(GStrv) words = g_strsplit(rows[i].may, " ", -1);
        for (guint k = 0; words[k]; k++) {
            const char *word = words[k] + (words[k][0] == '+' || words[k][0] == '-');
            if (!(strchr(word, '.') ? is_field(word, strlen(word)) : is_kind(word, strlen(word))))
                g_error("%s: %s names nothing", rows[i].name, words[k]);
        }
    }
    g_assert_false(named_change_exists("commit"));
    g_assert_false(named_change_exists("ping"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/narrow/fields#WCF-22", test_fields);
    g_test_add_func("/narrow/objects#WCF-22", test_objects);
    g_test_add_func("/narrow/left-to-the-commit", test_left_to_the_commit);
    g_test_add_func("/narrow/table#WCF-22,WCF-23", test_table);
    return g_test_run();
}

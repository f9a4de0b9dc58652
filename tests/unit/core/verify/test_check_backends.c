/* Back ends tried out on their nodes: who is asked what, and what is said of it. */
#include "unit/core/world/query_world.h"

#include <string.h>

#define BACKEND "b0b0b0b0-0000-4000-8000-000000000001"

static void append(GString *text, const char *prefix, const json_t *list)
{
    size_t i;
    const json_t *line;
    json_array_foreach(list, i, line)
        g_string_append_printf(text, "%s%s\n", prefix, json_string_value(line));
}

/* What nodes find alone ("NODE"), and together ("NODE together"); the order in which they are asked
 * is noted. */
struct finds {
    json_t *by;
    GString *asked;
};

static json_t *answer_check(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    struct finds *finds = data;
    json_int_t place = json_integer_value(json_object_get(request->args, "place"));
    json_int_t nodes = json_integer_value(json_object_get(request->args, "nodes"));
    g_autofree char *key = g_strdup_printf("%s%s", to_node, nodes > 1 ? " together" : "");
    json_t *found = json_object_get(finds->by, key);
    g_string_append_printf(finds->asked, "%s %d/%d\n", to_node, (int)place, (int)nodes);
    if (!json_is_null(found))
        return found ? json_incref(found) : json_make("{ss}", "node", to_node);
    fettle_set_error(error, UNREACHABLE, "no link");
    return NULL;
}

static char *try_backends(struct queue_world *w, const char *name)
{
    g_autoptr(GError) error = NULL;
    json_autoptr found = queue_call(w, "VerifyBackends", json_make("[[s]]", name), &error);
    if (!found)
        return g_strdup(error->message);
    GString *text = g_string_new(NULL);
    append(text, "", json_object_get(found, "problems"));
    append(text, "note: ", json_object_get(found, "notes"));
    return g_string_free(text, FALSE);
}

#define OFFLINE "note: back end dir1: node node3: was not asked, as it is offline\n"
#define NOTES                                                                                      \
    OFFLINE "note: back end dir1: node node1: keeps nothing\n"                                     \
            "note: back end dir1: 5 of 9 MiB are free\n"

/* Each alone, then those for whom it works together. */
static void test_tried(void)
{
    struct queue_world *w = query_world_new();
    json_autoptr by = json_object();
    struct finds finds = {by, g_string_new(NULL)};
    fake_script(w->world, NULL, ROLE_VOLUMED, "backend_check", answer_check, &finds);
    store_put(w->store, "backend", BACKEND,
              json_make("{ss ss ss s[sss] ss}", "uuid", BACKEND, "name", "dir1", "kind", "dir",
                        "nodes", MASTER, NODE2, NODE3, "path", "/mnt/v"));
    fake_settle(w->world);
    g_autofree char *well = try_backends(w, "dir1");
    g_assert_cmpstr(well, ==, OFFLINE);
    g_assert_cmpstr(finds.asked->str, ==,
                    MASTER " 0/1\n" NODE2 " 0/1\n" MASTER " 0/2\n" NODE2 " 1/2\n");
    json_object_set_new(by, MASTER,
                        json_make("{ss s[s] si si}", "node", MASTER, "notes", "keeps nothing",
                                  "free_mib", 5, "total_mib", 9));
    json_object_set_new(by, NODE2 " together", json_make("{ss sb}", "node", NODE2, "unseen", 1));
    g_autofree char *apart = try_backends(w, "dir1");
    g_assert_cmpstr(apart, ==,
                    "back end dir1: node node2: does not see what node node1 has just made there; "
                    "/mnt/v is another directory on it: mount the same one on both\n" NOTES);
    /* Nobody sees what the first could not make. */
    json_object_set_new(by, MASTER " together",
                        json_make("{ss s[s]}", "node", MASTER, "problems", "no locks"));
    g_autofree char *held = try_backends(w, BACKEND);
    g_assert_cmpstr(held, ==, "back end dir1: node node1: no locks\n" NOTES);
    /* Where it does not work alone nothing is tried together. */
    json_object_set_new(by, NODE2,
                        json_make("{ss s[s]}", "node", NODE2, "problems", "dir1: is it mounted?"));
    g_autofree char *away = try_backends(w, "dir1");
    g_assert_cmpstr(away, ==, "back end dir1: node node2: is it mounted?\n" NOTES);
    json_object_set_new(by, NODE2, json_null());
    g_autofree char *silent = try_backends(w, "dir1");
    g_assert_cmpstr(silent, ==,
                    "back end dir1: node node2: its volume service does not answer\n" NOTES);
    g_autofree char *unknown = try_backends(w, "dir2");
    g_assert_cmpstr(unknown, ==, "backend \"dir2\" does not exist");
    g_string_free(finds.asked, TRUE);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check-backends/alone-and-together", test_tried);
    return g_test_run();
}

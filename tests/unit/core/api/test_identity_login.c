/* Who gets a token, for what, and what refuses him. core/api/identity_login.c, identity_token.c */
#include <string.h>

#include "unit/core/world/identity_world.h"

static struct identity_world *world;

static guint log_in(const char *user, const char *password, const char *project)
{
    return ask(world, "POST", "/v3/auth/tokens", NULL, login_body(user, password, project));
}

static void check_by_password(void)
{
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 201);
    g_assert_cmpstr(at(world, "token.methods"), ==, "[\"password\"]");
    g_assert_cmpstr(at(world, "token.user.id"), ==, "id-ann");
    g_assert_cmpstr(at(world, "token.user.name"), ==, "ann");
    g_assert_cmpstr(at(world, "token.user.domain"), ==,
                    "{\"id\":\"default\",\"name\":\"Default\"}");
    g_assert_cmpstr(at(world, "token.user.password_expires_at"), ==, "null");
    g_assert_cmpstr(at(world, "token.project.id"), ==, "id-red");
    g_assert_cmpstr(at(world, "token.project.domain.name"), ==, "Default");
    g_assert_cmpstr(at(world, "token.is_domain"), ==, "false");
    g_assert_cmpstr(at(world, "token.roles"), ==, "[{\"id\":\"id-member\",\"name\":\"member\"}]");
    g_assert_cmpstr(at(world, "token.catalog.1.type"), ==, "volumev3");
    g_assert_cmpstr(at(world, "token.catalog.1.endpoints.0.url"), ==,
                    "http://api.example.org:8774/volume/v3/id-red");
    g_assert_cmpstr(at(world, "token.catalog.0.endpoints.0.url"), ==,
                    "http://api.example.org:8774/identity");
    g_assert_cmpstr(at(world, "token.catalog.2.endpoints.2.interface"), ==, "admin");
    g_assert_cmpuint(strlen(at(world, "token.audit_ids.0")), ==, 22);
    g_assert_true(g_str_has_suffix(at(world, "token.expires_at"), "Z"));
    g_assert_cmpstr(header(world, "Vary"), ==, "X-Auth-Token");
    g_assert_cmpstr(header(world, "X-Subject-Token"), !=, "");
}

static void check_without_project(void)
{
    g_assert_cmpuint(log_in("tim", "pw-tim", NULL), ==, 201);
    g_assert_cmpstr(at(world, "token.project"), ==, "");
    g_assert_cmpstr(at(world, "token.catalog"), ==, "");
    g_assert_cmpstr(at(world, "token.roles"), ==, "");
    g_assert_cmpuint(log_in("ann", "pw-ann", ""), ==, 201);
    g_assert_cmpstr(at(world, "token.project"), ==, "");
    g_assert_cmpuint(log_in("tim", "pw-tim", "red"), ==, 401);
    g_assert_cmpuint(log_in("tim", "pw-tim", "green"), ==, 401);
}

static void check_refused(void)
{
    g_assert_cmpuint(log_in("ann", "pw-bob", "red"), ==, 401);
    g_assert_cmpstr(header(world, "WWW-Authenticate"), ==,
                    "Keystone uri=\"http://api.example.org:8774/identity\"");
    g_assert_cmpstr(at(world, "error.code"), ==, "401");
    g_assert_cmpstr(at(world, "error.title"), ==, "Unauthorized");
    g_autofree char *wrong = g_strdup(at(world, "error.message"));
    guint checked = world->crypto->checked;
    g_assert_cmpuint(log_in("nobody", "pw", "red"), ==, 401);
    g_assert_cmpstr(at(world, "error.message"), ==, wrong); /* it does not tell who is there */
    g_assert_cmpuint(world->crypto->checked, ==, checked + 1);
    world->crypto->full = true;
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 503);
    g_assert_cmpstr(header(world, "Retry-After"), !=, "");
    world->crypto->full = false;
}

static void run(void (*check)(void))
{
    world = identity_world_new();
    check();
    identity_world_free(world);
}

static void test(const void *check)
{
    run(check);
}

#define TEST(path, check) g_test_add_data_func("/identity/login/" path, check, test)
int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    TEST("by password", check_by_password);
    TEST("without a project", check_without_project);
    TEST("what is refused", check_refused);
    return g_test_run();
}

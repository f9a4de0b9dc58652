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

static void check_default_project(void)
{
    fake_identity_put(world->store, "api_user", "id-tim",
                      json_make("{s:s, s:s, s:s, s:s}", "id", "id-tim", "name", "tim", "password",
                                "kept pw-tim", "default_project_id", "id-red"));
    g_assert_cmpuint(log_in("tim", "pw-tim", ""), ==, 201); /* no role there yet */
    g_assert_cmpstr(at(world, "token.project"), ==, "");
    fake_identity_put(world->store, "api_assignment", "id-tim/id-red/id-reader",
                      json_make("{s:s, s:s, s:s}", "user_id", "id-tim", "project_id", "id-red",
                                "role_id", "id-reader"));
    g_assert_cmpuint(log_in("tim", "pw-tim", ""), ==, 201);
    g_assert_cmpstr(at(world, "token.project.name"), ==, "red");
    g_assert_cmpuint(log_in("tim", "pw-tim", NULL), ==, 201);
    g_assert_cmpstr(at(world, "token.project"), ==, "");
}

static guint log_in_text(const char *auth)
{
    g_autofree char *body = g_strdup_printf("{\"auth\":%s}", auth);
    return ask_text(world, "POST", "/v3/auth/tokens?nocatalog", NULL, NULL, body);
}

#define BY_PASSWORD(user)                                                                          \
    "\"identity\":{\"methods\":[\"password\"],\"password\":{\"user\":{" user                       \
    ",\"password\":\"pw-ann\"}}}"

static void check_bodies(void)
{
    static const struct {
        const char *auth;
        guint status;
    } logins[] = {
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") "}", 201},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":null}", 201},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":{\"unscoped\":{}}}", 201},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":{\"project\":{\"id\":\"id-red\"}}}", 201},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":{\"domain\":{\"id\":\"default\"}}}", 401},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":{\"system\":{\"all\":true}}}", 401},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":\"all\"}", 400},
        {"{" BY_PASSWORD("\"id\":\"id-ann\"") ",\"scope\":{\"planet\":1}}", 400},
        {"{" BY_PASSWORD("\"name\":\"ann\",\"domain\":{\"id\":\"other\"}") "}", 401},
        {"{" BY_PASSWORD("\"shoe\":1") "}", 400},
        {"{\"identity\":{\"methods\":[]}}", 400},
        {"{\"identity\":{\"methods\":[\"password\"]}}", 400},
        {"{\"identity\":{\"methods\":[\"token\"]}}", 400},
        {"{\"identity\":{\"methods\":[\"application_credential\"]}}", 400},
        {"{\"identity\":{\"methods\":[\"totp\"]}}", 401},
        {"{\"identity\":{\"methods\":[\"token\"],\"token\":{\"id\":\"x\"}}}", 401},
        {"{}", 400},
        {"7", 400},
    };
    for (guint i = 0; i < G_N_ELEMENTS(logins); i++) {
        guint status = log_in_text(logins[i].auth);
        if (status != logins[i].status)
            g_error("%s: %u", logins[i].auth, status);
    }
    g_assert_cmpuint(log_in_text(logins[3].auth), ==, 201);
    g_assert_cmpstr(at(world, "token.catalog"), ==, "");
    g_assert_cmpstr(at(world, "token.project.id"), ==, "id-red");
}

/* --- by another token --- */

static guint log_in_by_token(const char *token, const char *project)
{
    json_t *body = json_make("{s:{s:{s:[s], s:{s:s}}}}", "auth", "identity", "methods", "token",
                             "token", "id", token);
    if (project)
        json_object_set_new(json_object_get(body, "auth"), "scope",
                            json_make("{s:{s:s}}", "project", "id", project));
    return ask(world, "POST", "/v3/auth/tokens", NULL, body);
}

static void check_by_token(void)
{
    g_autofree char *first = token_of(world, "ann", NULL);
    g_autofree char *audit = g_strdup(at(world, "token.audit_ids.0"));
    g_autofree char *expires = g_strdup(at(world, "token.expires_at"));
    fake_advance(world->world, 1000);
    g_assert_cmpuint(log_in_by_token(first, "id-blue"), ==, 201);
    g_assert_cmpstr(at(world, "token.methods"), ==, "[\"token\",\"password\"]");
    g_assert_cmpstr(at(world, "token.roles.0.name"), ==, "reader");
    g_assert_cmpstr(at(world, "token.expires_at"), ==, expires); /* no longer life by that */
    g_assert_cmpstr(at(world, "token.audit_ids.1"), ==, audit);
    g_autofree char *second = g_strdup(header(world, "X-Subject-Token"));
    g_assert_cmpuint(log_in_by_token(second, "id-red"), ==, 201);
    g_assert_cmpstr(at(world, "token.audit_ids.1"), ==, audit);
    g_assert_cmpstr(at(world, "token.expires_at"), ==, expires);
    g_assert_cmpuint(log_in_by_token(second, "id-green"), ==, 401);
    guint status = ask_text(world, "DELETE", "/v3/auth/tokens", second, second, NULL);
    g_assert_cmpuint(status, ==, 204);
    g_assert_cmpuint(log_in_by_token(second, "id-red"), ==, 401);
    g_assert_cmpuint(log_in_by_token(first, "id-red"), ==, 201); /* the one before is good yet */
    fake_advance(world->world, 3599 * 1000);
    g_assert_cmpuint(log_in_by_token(first, NULL), ==, 401);
}

/* --- failures --- */

static bool audit_has(const char *words)
{
    return strstr(world->audit->pdata[world->audit->len - 1], words);
}

static void fail(const char *user, guint times)
{
    for (guint i = 0; i < times; i++)
        g_assert_cmpuint(log_in(user, "guess", "red"), ==, 401);
}

static void check_lockout(void)
{
    fail("ann", 4);
    g_assert_false(audit_has("five logins"));
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 201);
    g_autofree char *token = g_strdup(header(world, "X-Subject-Token"));
    fail("ann", 1);
    g_assert_true(audit_has("five logins of this user failed"));
    g_assert_true(audit_has("id-ann"));
    guint checked = world->crypto->checked;
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 401);
    /* as of who is not there, or a quick answer would tell strangers who is */
    g_assert_cmpuint(world->crypto->checked, ==, checked + 1);
    g_assert_true(audit_has("too many logins"));
    world->front_end = 1; /* the other one knows */
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 401);
    world->front_end = 0;
    g_assert_cmpuint(log_in("bob", "pw-bob", "blue"), ==, 201); /* his alone */
    g_assert_cmpuint(ask(world, "GET", "/v3/auth/projects", token, NULL), ==, 200);
    fake_advance(world->world, 59 * 1000);
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 401);
    fake_advance(world->world, 1000);
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 201);
    /* five in more than a minute cost nothing */
    fail("ann", 3);
    fake_advance(world->world, 60 * 1000);
    fail("ann", 4);
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 201);
    fail("nobody", 20);
    g_assert_cmpuint(g_hash_table_size(world->store->failures), ==, 1); /* of who is there */
}

/* The password is another's before the check of the old one has ended. */
static void change_ann(void *unused)
{
    fake_identity_put(
        world->store, "api_user", "id-ann",
        json_make("{s:s, s:s, s:s}", "id", "id-ann", "name", "ann", "password", "kept other"));
}

static void check_changed_meanwhile(void)
{
    world->crypto->meanwhile = change_ann;
    g_assert_cmpuint(log_in("ann", "pw-ann", "red"), ==, 401);
    g_assert_cmpuint(log_in("ann", "other", "red"), ==, 201);
}

static void test(const void *check)
{
    world = identity_world_new();
    ((void (*)(void))check)();
    identity_world_free(world);
}

#define TEST(path, check) g_test_add_data_func("/identity/login/" path, check, test)
int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    TEST("by password", check_by_password);
    TEST("without a project", check_without_project);
    TEST("what is refused", check_refused);
    TEST("the default project", check_default_project);
    TEST("what bodies say", check_bodies);
    TEST("by another token", check_by_token);
    TEST("five failures cost a minute", check_lockout);
    TEST("a password that is changed meanwhile", check_changed_meanwhile);
    return g_test_run();
}

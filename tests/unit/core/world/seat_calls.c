/* See seat_calls.h. */
#include "unit/core/world/seat_calls.h"

#include "unit/core/world/config_world.h"

struct role_status *ask_seat(const struct env *cli)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json =
        fake_call(cli, cli->node_uuid, ROLE_WCONFD, "wait_role", json_object(), &error);
    g_assert_no_error(error);
    struct role_status *status = role_status_parse(json, RECORD_LAX, &error);
    g_assert_no_error(error);
    return status;
}

char *ask_take_over(const struct env *cli, const char *to, const char *statement)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = fake_call(
        cli, cli->node_uuid, ROLE_WCONFD, "take_over",
        json_make("{s:s,s:b,s:s}", "node", to, "alone", *statement != '\0', "statement", statement),
        &error);
    if (!json)
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    return g_strdup_printf(
        "%s %d", json_string_value(json_object_get(json, "name")),
        (int)(json_integer_value(json_object_get(json, "serial")) % LIMIT_SERIALS_PER_SECOND));
}

void ask_commit_tag(const struct env *luxid, guint number, const char *tag)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", tag);
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012x", number);
    json_autoptr answer = fake_call(
        luxid, luxid->node_uuid, ROLE_WCONFD, "commit",
        json_make("{s:{s:s,s:s},s:s,s:[{s:s,s:s,s:s,s:{s:s,s:s,s:s}}]}", "owner", "job", "luxid",
                  "livelock", "luxid-1", "commit_id", id, "changes", "op", "put", "kind", "tag",
                  "key", key, "object", "kind", "instance", "object", WEB1, "tag", tag),
        &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

/* What tests of the configuration daemon share; see wconf_world.h. */
#include "unit/core/world/wconf_world.h"

#include <string.h>

#include "proto/records.h"

struct config_world world;

void world_set_up(void)
{
    config_world_init(&world, initial_changes());
    config_world_start(&world);
}

void world_tear_down(void)
{
    config_world_clear(&world);
}

char *world_status(const char *member)
{
    g_autofree char *text = ask_wconf(&world, world.luxid, "cluster_status", json_object());
    json_autoptr json = json_parse_limited(text, strlen(text), KIB(64), NULL);
    return json ? json_to_text(json_object_get(json, member)) : g_strdup(text);
}

struct change *put_memory(guint64 version, int mib)
{
    return put("instance", WEB1, version, with(object_web1(), "memory", json_integer(mib)));
}

struct change *put_tag(const char *text)
{
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", text);
    return put("tag", key, 0,
               json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", text));
}

static void commit_start(const struct env *from, const char *commit_id, GPtrArray *changes,
                         struct fake_reply *reply)
{
    g_autofree char *livelock = g_strconcat(from->role, "-1", NULL);
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = g_strdup(commit_id);
    g_ptr_array_unref(args->changes);
    args->changes = changes;
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner",
                        json_make("{s:s,s:s}", "job", from->role, "livelock", livelock));
    fake_call_start(from, 0, NODE1, ROLE_WCONFD, "commit", json, reply);
    fake_settle(world.world);
}

void luxid_commit_start(const char *commit_id, GPtrArray *changes, struct fake_reply *reply)
{
    commit_start(world.luxid, commit_id, changes, reply);
}

void watcher_commit_start(const char *commit_id, GPtrArray *changes, struct fake_reply *reply)
{
    commit_start(world.watcher, commit_id, changes, reply);
}

/* What came: "", the answer, or the error. Clears it. */
char *world_reply(struct fake_reply *reply)
{
    char *text = !reply->done   ? g_strdup("")
                 : reply->error ? g_strdup_printf("%s: %s", fettle_error_name(reply->error),
                                                  reply->error->message)
                                : json_to_text(reply->result);
    if (reply->done)
        fake_reply_clear(reply);
    return text;
}

void job_locks_start_as(guint job, const char *name, const char *mode, guint wait_ms,
                        struct fake_reply *reply)
{
    g_autofree char *livelock = g_strdup_printf("job-%u", job);
    fake_livelock(world.world, NODE1, livelock, LIVELOCK_ALIVE);
    fake_call_start_stamped(
        world.job, job, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD, "update_locks",
        json_make("{s:o,s:[{s:s,s:s}],s:b,s:i}", "owner", owner_json(job), "locks", "name", name,
                  "mode", mode, "wait", 1, "wait_ms", wait_ms),
        reply);
    fake_settle(world.world);
}

void job_locks_start(guint job, const char *name, guint wait_ms, struct fake_reply *reply)
{
    job_locks_start_as(job, name, "exclusive", wait_ms, reply);
}

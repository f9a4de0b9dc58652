/* What stays on record, and for how long. core/config/decisions.c */
#include <string.h>

#include "core/config/decisions.h"
#include "helper/fake_env.h"
#include "proto/change.h"

#define NODE "11111111-0000-4000-8000-000000000001"
#define WEB1 "aaaaaaaa-0000-4000-8000-000000000001"
#define WEB2 "aaaaaaaa-0000-4000-8000-000000000002"
#define BRIDGE "eeeeeeee-0000-4000-8000-000000000001"

struct scene {
    struct fake_world *world;
    struct env *env;
    struct config *config;
    struct decisions *decisions;
    struct ages *ages;
};

static struct scene *begin(void)
{
    struct scene *scene = g_new0(struct scene, 1);
    scene->world = fake_world_new();
    scene->env = fake_process(scene->world, NODE, ROLE_WATCHER);
    scene->config = config_new();
    scene->decisions = decisions_new();
    scene->ages = ages_new(scene->env);
    return scene;
}

static void end(struct scene *scene)
{
    ages_free(scene->ages);
    decisions_free(scene->decisions);
    config_free(scene->config);
    fake_world_free(scene->world);
    g_free(scene);
}

/* All of one commit. */
static void apply(struct scene *scene, GPtrArray *changes)
{
    guint64 serial = config_serial(scene->config) + 1;
    for (guint i = 0; i < changes->len; i++) {
        struct change *change = changes->pdata[i];
        g_autoptr(GError) error = NULL;
        change->version = serial;
        config_apply(scene->config, change, &error);
        g_assert_no_error(error);
    }
    config_set_position(scene->config, 1, serial);
    decisions_update(scene->decisions, scene->config, changes);
}

static struct decision *make(const char *kind, const char *subject, enum event_kind event,
                             const char *summary)
{
    struct decision *decision =
        decision_about(kind, subject, "x", "watcher/recovery", VERDICT_ACT, "Recovered");
    decision->event = event;
    decision_set(&decision->summary, "%s", summary);
    return decision;
}

static void tell(struct scene *scene, const char *kind, const char *subject, enum event_kind event,
                 const char *summary)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    struct decision *decision = make(kind, subject, event, summary);
    if (event != EVENT_NONE)
        decisions_add(scene->decisions, scene->config, scene->env, decision, changes);
    else
        decisions_record(scene->decisions, scene->config, scene->env, decision, changes);
    if (changes->len > 0)
        apply(scene, changes);
}

static guint count(const struct scene *scene, bool events)
{
    guint found = 0;
    g_autoptr(GPtrArray) all = config_list(scene->config, "decision");
    for (guint i = 0; i < all->len; i++)
        found += (((const struct decision *)all->pdata[i])->event != EVENT_NONE) == events;
    if (events)
        g_assert_cmpuint(found, ==, decisions_events(scene->decisions));
    return found;
}

/* How many go; with what a sweep does. */
static guint sweep(struct scene *scene)
{
    g_autoptr(GPtrArray) old = decisions_old_events(scene->decisions, scene->config, scene->ages);
    g_autoptr(GPtrArray) changes = change_list_new();
    for (guint i = 0; i < old->len; i++)
        g_ptr_array_add(changes, config_delete(scene->config, "decision",
                                               ((const struct decision *)old->pdata[i])->uuid));
    if (changes->len > 0)
        apply(scene, changes);
    return changes->len;
}

static void test_each_is_written(void)
{
    struct scene *scene = begin();
    for (guint i = 0; i < 3; i++)
        tell(scene, "instance", WEB1, EVENT_RECOVERED, "the same");
    g_assert_cmpuint(count(scene, true), ==, 3);
    for (guint i = 0; i < 3; i++)
        tell(scene, "instance", WEB2, EVENT_NONE, "the same");
    g_assert_cmpuint(count(scene, false), ==, 1);
    /* Several of one commit keep their order. */
    g_autoptr(GPtrArray) changes = change_list_new();
    decisions_add(scene->decisions, scene->config, scene->env,
                  make("instance", WEB1, EVENT_ALERT, "a"), changes);
    g_assert_cmpuint(changes->len, ==, 1);
    end(scene);
}

static void test_beside_the_others(void)
{
    struct scene *scene = begin();
    for (guint i = 0; i < 2 * LIMIT_DECISIONS_PER_SUBJECT; i++) {
        g_autofree char *text = g_strdup_printf("number %u", i);
        tell(scene, "instance", WEB1, EVENT_RECOVERED, text);
        tell(scene, "instance", WEB1, EVENT_NONE, text);
    }
    g_assert_cmpuint(count(scene, true), ==, 2 * LIMIT_DECISIONS_PER_SUBJECT);
    g_assert_cmpuint(count(scene, false), ==, LIMIT_DECISIONS_PER_SUBJECT);
    /* Several of one commit: nothing goes twice. */
    g_autoptr(GPtrArray) changes = change_list_new();
    for (guint i = 0; i < 3; i++) {
        decisions_add(scene->decisions, scene->config, scene->env,
                      make("instance", WEB1, EVENT_ALERT, "a"), changes);
        g_autofree char *text = g_strdup_printf("another %u", i);
        decisions_record(scene->decisions, scene->config, scene->env,
                         make("instance", WEB1, EVENT_NONE, text), changes);
    }
    g_autoptr(GHashTable) keys = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < changes->len; i++)
        g_assert_true(g_hash_table_add(keys, ((const struct change *)changes->pdata[i])->key));
    /* An index made anew says the same. */
    decisions_update(scene->decisions, scene->config, NULL);
    g_assert_cmpuint(count(scene, true), ==, 2 * LIMIT_DECISIONS_PER_SUBJECT);
    g_assert_cmpuint(sweep(scene), ==, 0);
    end(scene);
}

static void test_age(void)
{
    struct scene *scene = begin();
    tell(scene, "instance", WEB1, EVENT_RECOVERED, "first");
    g_assert_cmpuint(sweep(scene), ==, 0);
    fake_set_clock(scene->world, NODE,
                   LIMIT_EVENT_AGE_S * (gint64)2000); /* a clock that is set ages nothing */
    g_assert_cmpuint(sweep(scene), ==, 0);
    for (guint day = 0; day < 7; day++) {
        fake_advance(scene->world, 86400 * 1000);
        g_assert_cmpuint(sweep(scene), ==, 0);
    }
    tell(scene, "instance", WEB1, EVENT_RECOVERED, "second");
    fake_advance(scene->world, 2000);
    g_assert_cmpuint(sweep(scene), ==, 1);
    g_assert_cmpuint(count(scene, true), ==, 1);
    end(scene);
}

static void test_number(void)
{
    struct scene *scene = begin();
    for (guint i = 0; i < LIMIT_EVENTS + 5; i++)
        tell(scene, "instance", i % 2 ? WEB1 : WEB2, EVENT_ALERT, i < 5 ? "old" : "new");
    g_assert_cmpuint(sweep(scene), ==, 5);
    g_autoptr(GPtrArray) all = config_list(scene->config, "decision");
    g_assert_cmpuint(all->len, ==, LIMIT_EVENTS);
    for (guint i = 0; i < all->len; i++)
        g_assert_cmpstr(((const struct decision *)all->pdata[i])->summary, ==, "new");
    end(scene);
}

/* RCV-26: it is told once, for as long as it is there. */
static void test_what_is_there(void)
{
    struct scene *scene = begin();
    tell(scene, "thing", BRIDGE, EVENT_FINDING, "br7 is on node1");
    tell(scene, "instance", WEB1, EVENT_FINDING, "of a record");
    for (guint day = 0; day < 8; day++) {
        fake_advance(scene->world, 86400 * 1000);
        sweep(scene);
    }
    g_assert_cmpuint(count(scene, true), ==, 1);
    tell(scene, "thing", BRIDGE, EVENT_GONE, "br7 is gone");
    g_assert_cmpuint(sweep(scene), ==, 1); /* the finding, which is old */
    for (guint day = 0; day < 8; day++) {
        fake_advance(scene->world, 86400 * 1000);
        sweep(scene);
    }
    g_assert_cmpuint(count(scene, true), ==, 0);
    end(scene);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/decisions/events/each-is-written#RCV-27", test_each_is_written);
    g_test_add_func("/decisions/events/beside-the-others#RCV-32", test_beside_the_others);
    g_test_add_func("/decisions/events/age#SAF-93", test_age);
    g_test_add_func("/decisions/events/number", test_number);
    g_test_add_func("/decisions/events/what-is-there#RCV-26", test_what_is_there);
    return g_test_run();
}

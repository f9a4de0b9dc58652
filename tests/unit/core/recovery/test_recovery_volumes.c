/* Volumes of instances whose attaching or detaching job has died (RCV-75): what is on record of
 * them afterwards, by what the guest has. */
#include "core/config/attachments.h"
#include "unit/core/world/watcher_world.h"

#define DIR1 "dddddddd-1111-4000-8000-000000000001"
#define VOLUME1 "eeeeeeee-1111-4000-8000-000000000001"
#define ATTACHMENT "ffffffff-0000-4000-8000-000000000001"
#define DRIVE "wffffffff-0000-4000-8000"

static struct watcher_world *world_with(const char *state)
{
    json_t *volume =
        json_make("{ss ss si ss ss ss ss s[{ss ss ss si si}]}", "uuid", VOLUME1, "name", "data1",
                  "size", 2, "status", "available", "backend", DIR1, "host", "node1@dir1", "data",
                  VOLUME1 ".7", "attachments", "uuid", ATTACHMENT, "instance", WEB1, "state", state,
                  "job", 900, "slot", 30);
    json_t *backend = json_make("{ss ss ss ss s[s]}", "uuid", DIR1, "name", "dir1", "kind", "dir",
                                "path", "/mnt/a", "nodes", NODE1);
    struct watcher_world *w = watcher_world_new_with(
        "sqlite",
        changes_of(put("counter", "job", 1, json_make("{ss si}", "name", "job", "value", 901)),
                   put("backend", DIR1, 1, backend), put("volume", VOLUME1, 1, volume), NULL));
    return w;
}

/* As its node has it. */
static void note(struct watcher_world *w, bool leaving)
{
    w->volumes = json_make("[{ss ss ss si sb}]", "volume", VOLUME1, "attachment", ATTACHMENT,
                           "path", "/mnt/a/volumes/x", "slot", 30, "leaving", (int)leaving);
}

static const struct volume *judged(struct watcher_world *w, const char *mark)
{
    patch_web1(w, json_make("{ss si si}", "task_state", mark, "task_owner", 900, "task_since",
                            1600000000));
    passes(w, 2);
    look(w);
    const struct instance *web1 = config_get(w->view, "instance", WEB1, NULL);
    g_assert_true(!web1 || web1->task_state == TASK_NONE);
    return config_get(w->view, "volume", VOLUME1, NULL);
}

static void test_settled(void)
{
    static const struct {
        const char *state, *mark;
        bool noted, leaving, device;
        const char *then; /* "leaving": attached, and asked to be given up */
    } cases[] = {
        {"attaching", "attaching-volume", false, false, false, "available"},
        {"attaching", "attaching-volume", true, false, true, "in-use"},
        {"detaching", "detaching-volume", false, false, false, "available"},
        {"detaching", "detaching-volume", true, false, true, "in-use"},
        {"detaching", "detaching-volume", true, true, true, "leaving"},
        {"detaching", "detaching-volume", true, true, false, "leaving"}, /* its node ends it */
        {"attaching", "detaching-volume", true, true, true, "leaving"},
        {"attaching", "attaching-volume", false, false, true, "in-use"}, /* a note was lost */
        /* Opened perhaps, and not plugged in: whoever repeats it finds out. */
        {"attaching", "attaching-volume", true, false, false, "attaching"},
        {"detaching", "detaching-volume", true, false, false, "detaching"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct watcher_world *w = world_with(cases[i].state);
        g_test_message("case %u", i);
        if (cases[i].noted)
            note(w, cases[i].leaving);
        w->drives = cases[i].device ? json_make("[s,s]", "vd0", DRIVE) : NULL;
        const struct volume *volume = judged(w, cases[i].mark);
        const struct attachment *is = attachment_of(volume);
        bool leaving = g_str_equal(cases[i].then, "leaving");
        g_assert_cmpstr(attachment_status_word(volume), ==, leaving ? "in-use" : cases[i].then);
        g_assert_true(leaving == (is && is->leaving_us > 0));
        g_assert_true(!is || is->state != ATTACHMENT_ATTACHED || is->job == 0);
        g_assert_cmpuint(w->refused, ==, 900);
        watcher_world_free(w);
    }
}

/* No process has it, so nobody has. */
static void test_down(void)
{
    struct watcher_world *w = world_with("attaching");
    w->guest_node = NULL;
    g_assert_cmpstr(attachment_status_word(judged(w, "attaching-volume")), ==, "available");
    watcher_world_free(w);
}

/* Another job's, which nobody was asked to refuse. */
static void test_other_job(void)
{
    struct watcher_world *w = world_with("attaching");
    patch_web1(w, json_make("{ss si si}", "task_state", "starting", "task_owner", 899, "task_since",
                            1600000000));
    passes(w, 2);
    look(w);
    g_assert_cmpstr(attachment_status_word(config_get(w->view, "volume", VOLUME1, NULL)), ==,
                    "attaching");
    watcher_world_free(w);
}

/* With its instance, of which all hosts have said that nothing is left. */
static void test_all_gone(void)
{
    struct watcher_world *w = world_with("attached");
    w->guest_node = NULL;
    w->own_disks = 0;
    w->replica_gone = true;
    g_assert_null(attachment_of(judged(w, "removing")));
    g_assert_null(config_get(w->view, "instance", WEB1, NULL));
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recovery/volumes/settled#RCV-75,CLN-62", test_settled);
    g_test_add_func("/recovery/volumes/down#RCV-75", test_down);
    g_test_add_func("/recovery/volumes/other-job#SAF-81", test_other_job);
    g_test_add_func("/recovery/volumes/all-gone#SAF-57", test_all_gone);
    return g_test_run();
}

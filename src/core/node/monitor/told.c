/* See told.h. */
#include "core/node/monitor/told.h"

#include <string.h>

#include "base/log.h"

#define FILE_NAME "node.json"
#define TOLD_PAUSE_MS 60000u
#define AGAIN_MS 5000u

struct told {
    struct node_core *node;
    void (*heard)(void *data);
    void *data;
    struct monitor_config *config; /* as it is to stand in the file */
    char *written;                 /* as it does; NULL: not known */
    char *said;                    /* the last complaint */
    struct env_pause pause;
    guint users; /* the owner, and the task */
    bool ended;
};

struct told *told_new(struct node_core *node, void (*heard)(void *data), void *data)
{
    struct told *told = g_new0(struct told, 1);
    *told = (struct told){
        .node = node, .heard = heard, .data = data, .config = monitor_config_new(), .users = 1};
    return told;
}

static void unref(struct told *told)
{
    if (--told->users > 0)
        return;
    monitor_config_free(told->config);
    g_free(told->written);
    g_free(told->said);
    g_free(told);
}

void told_kick(struct told *told)
{
    if (told)
        env_pause_end(&told->pause);
}

void told_free(struct told *told)
{
    if (!told)
        return;
    told->ended = true;
    told_kick(told);
    unref(told);
}

/* --- the file --- */

/* The key of an earlier life; anything odd is asked for anew. */
static void load(struct told *told)
{
    const struct env *env = told->node->env;
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_MOND, FILE_NAME, LIMIT_STATE_FILE_BYTES, &len, NULL);
    json_autoptr json = text ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, NULL) : NULL;
    struct monitor_config *config = json ? monitor_config_parse(json, RECORD_LAX, NULL) : NULL;
    if (!config)
        return;
    monitor_config_free(told->config);
    told->config = config;
    told->written = g_steal_pointer(&text);
}

static void save(struct told *told)
{
    const struct env *env = told->node->env;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    record_append(&monitor_config_record, told->config, text);
    if (g_strcmp0(told->written, text->str) == 0)
        return;
    bool ok = env->ops->file_write(env, FILE_MOND, FILE_NAME, text->str, text->len, &error);
    if (!ok && !fettle_error_is(error, KILLED) && g_strcmp0(told->said, error->message) != 0)
        log_warning("", "monitoring is not told whom it may ask: %s", error->message);
    text_set(&told->said, ok ? "" : error->message);
    g_free(told->written);
    told->written = ok ? g_strdup(text->str) : NULL;
}

/* --- what stands in it --- */

static void add_candidate(GPtrArray *list, const struct member *member)
{
    struct monitor_candidate *candidate = monitor_candidate_new();
    text_set(&candidate->name, member->name);
    text_set(&candidate->address, member->address);
    g_ptr_array_add(list, candidate);
}

/* Nobody has announced himself in this life or before: as it was. */
static void take_candidates(struct told *told)
{
    const struct announce_args *announced = epoch_fence_announced(told->node->fence);
    GPtrArray *list = told->config->candidates;
    if (announced->members->len == 0)
        return;
    g_ptr_array_set_size(list, 0);
    for (guint i = 0; i < announced->members->len && list->len < LIMIT_CONFD_CANDIDATES; i++) {
        const struct member *member = announced->members->pdata[i];
        if (member->master_candidate || strcmp(member->uuid, announced->master_node) == 0)
            add_candidate(list, member);
    }
}

/* Whether there was an answer, be it an error: a master of the version before, or of a cluster
 * without a secret of ConfD, has no key to give. */
static bool ask_for_key(struct told *told)
{
    struct node_core *node = told->node;
    struct stamp stamp = epoch_fence_stamp(node->fence);
    g_autoptr(GError) error = NULL;
    if (stamp.epoch == 0)
        return false;
    record_autoptr(monitor_key) answer = env_call_record(node->env, NODE_MASTER, ROLE_WCONFD,
                                                         "monitor_key", NULL, stamp, 0, 0, &error);
    if (told->ended || (!answer && (env_no_answer(error) || fettle_error_is(error, KILLED) ||
                                    fettle_error_is(error, NOT_MASTER))))
        return false;
    if (answer)
        text_set(&told->config->key, answer->key);
    told->heard(told->data);
    return true;
}

static void run_task(void *data)
{
    struct told *told = data;
    struct node_core *node = told->node;
    bool alive = true;
    load(told);
    while (alive && !told->ended) {
        take_candidates(told);
        save(told);
        bool answered = ask_for_key(told);
        if (!told->ended && !task_killed())
            save(told);
        alive = env_pause(node->env, &told->pause, answered ? TOLD_PAUSE_MS : AGAIN_MS);
    }
    unref(told);
    node_release(node);
}

void told_start(struct told *told)
{
    told->users++;
    node_hold(told->node);
    task_spawn(told->node->env->tasks, run_task, told);
}

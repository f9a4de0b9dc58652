/* Asking all members of etcd how they are, and whether they hold the same; see engine.h. */
#include "cli/commands/engine.h"

#include <unistd.h>

#include "base/task.h"
#include "io/engine_file.h"
#include "io/loop.h"

#define PATIENCE_MS (4 * ETCD_ASK_MS)

/* --- asking --- */

static void asked_free(void *data)
{
    struct asked *asked = data;
    etcd_client_free(asked->client);
    member_status_free(asked->status);
    g_clear_pointer(&asked->listed, g_ptr_array_unref);
    g_free(asked);
}

static void one_done(struct survey *survey)
{
    if (--survey->left == 0)
        survey->done = true;
}

static void ask_task(void *data)
{
    struct asked *asked = data;
    if (etcd_member_ask(asked->client, asked->status, NULL) && *asked->status->id)
        asked->listed = etcd_members(asked->client, NULL);
    one_done(asked->survey);
}

static void content_task(void *data)
{
    struct asked *asked = data;
    if (asked->status->healthy)
        etcd_content_ask(asked->client, asked->survey->revision, &asked->content, NULL);
    one_done(asked->survey);
}

/* `fn` for every member at once. */
static void for_all(struct survey *survey, void (*fn)(void *data), guint patience_ms)
{
    struct task_group *group = task_group_new();
    survey->left = survey->members->len;
    survey->done = false;
    for (guint i = 0; i < survey->members->len; i++)
        task_spawn(group, fn, survey->members->pdata[i]);
    loop_run_until(&survey->done, patience_ms);
    task_group_kill(group);
    task_group_unref(group);
}

/* The newest revision that all who are well have. */
static guint64 common_revision(const struct survey *survey)
{
    guint64 common = 0;
    for (guint i = 0; i < survey->members->len; i++) {
        const struct member_status *status = ((struct asked *)survey->members->pdata[i])->status;
        if (status->healthy && (common == 0 || status->revision < common))
            common = status->revision;
    }
    return common;
}

static void compare_contents(struct survey *survey)
{
    guint count = survey->members->len;
    survey->revision = common_revision(survey);
    if (survey->revision == 0)
        return;
    for_all(survey, content_task, ETCD_CHANGE_MS);
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, count);
    for (guint i = 0; i < count; i++)
        contents[i] = ((struct asked *)survey->members->pdata[i])->content;
    survey->verdict = etcd_contents_judge(contents, count);
    for (guint i = 0; i < count; i++)
        ((struct asked *)survey->members->pdata[i])->content = contents[i];
}

bool survey_may_ask(const struct node_paths *paths, GError **error)
{
    g_autofree char *key = engine_file_key(paths, ENGINE_FILE_CLIENT);
    if (access(key, R_OK) == 0)
        return true;
    fettle_set_error(error, PERMISSION,
                     "members are asked with the key %s, which cannot be read here; run this "
                     "command as root on a candidate",
                     key);
    return false;
}

struct etcd_client *survey_client(const struct node_paths *paths,
                                  const struct engine_member *member, GError **error)
{
    g_autofree char *authority = engine_file_authority(paths);
    g_autofree char *certificate = engine_file_certificate(paths, ENGINE_FILE_CLIENT);
    g_autofree char *key = engine_file_key(paths, ENGINE_FILE_CLIENT);
    const char *urls[] = {member->client_url, NULL};
    const struct etcd_options options = {.urls = urls,
                                         .ca = authority,
                                         .certificate = certificate,
                                         .key = key,
                                         .member_ms = ETCD_ASK_MS};
    return etcd_client_new(&options, error);
}

bool survey_read(struct survey *survey, const struct node_paths *paths, GError **error)
{
    record_autoptr(node_config) self = node_config_read(paths, error);
    survey->config = self ? engine_file_read(paths, error) : NULL;
    return survey->config != NULL;
}

bool survey_ask(struct survey *survey, const struct node_paths *paths, GError **error)
{
    const GPtrArray *members = survey->config->members;
    if (!survey_may_ask(paths, error))
        return false;
    loop_init();
    for (guint i = 0; i < members->len; i++) {
        struct asked *asked = g_new0(struct asked, 1);
        g_ptr_array_add(survey->members, asked);
        asked->member = members->pdata[i];
        asked->status = member_status_new();
        asked->survey = survey;
        asked->client = survey_client(paths, asked->member, error);
        if (!asked->client)
            return false;
    }
    for_all(survey, ask_task, PATIENCE_MS);
    compare_contents(survey);
    return true;
}

/* --- life --- */

struct survey *survey_new(void)
{
    struct survey *survey = g_new0(struct survey, 1);
    survey->members = g_ptr_array_new_with_free_func(asked_free);
    survey->advice = g_ptr_array_new_with_free_func(g_free);
    return survey;
}

void survey_free(struct survey *survey)
{
    g_ptr_array_unref(survey->members);
    g_ptr_array_unref(survey->advice);
    engine_config_free(survey->config);
    g_free(survey);
}

/* See forget.h. What was here is kept beside it; a death in between is mended by the same command.
 */
#include "core/node/forget.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/epoch/believe.h"
#include "core/node/guest.h"
#include "core/node/node_private.h"
#include "proto/env_many.h"
#include "proto/seal.h"

#define FORGET_MS 10000u

struct forgetting {
    const struct env *env;
    struct epoch_fence *fence;
    GPtrArray *others; /* struct member, borrowed from the fence */
    GString *silent;   /* their names */
    GString *said;     /* what each has seen, a line each */
    struct stamp lowest;
    char *master;    /* of `lowest`; NULL: no candidate follows any */
    char *confirmer; /* name of the candidate that does */
};

static void forgetting_clear(struct forgetting *forgetting)
{
    g_ptr_array_unref(forgetting->others);
    g_string_free(forgetting->silent, TRUE);
    g_string_free(forgetting->said, TRUE);
    g_free(forgetting->master);
    g_free(forgetting->confirmer);
    epoch_fence_free(forgetting->fence);
}
typedef struct forgetting forgetting_t;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(forgetting_t, forgetting_clear)

/* --- what the others say --- */

static bool take_known(struct env_answer *heard, void *data)
{
    struct forgetting *forgetting = data;
    const struct member *member = forgetting->others->pdata[heard->index];
    const struct promise_epoch_result *answer = heard->record;
    if (!answer) {
        g_string_append_printf(forgetting->silent, "%s%s (%s)", forgetting->silent->len ? ", " : "",
                               member->name, heard->error->message);
        return false;
    }
    struct stamp known = {answer->history, answer->epoch};
    g_string_append_printf(
        forgetting->said,
        "node %s has %s history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT "\n", member->name,
        answer->begun ? "seen" : "promised", known.history, known.epoch);
    if (!member->master_candidate || !answer->begun ||
        (forgetting->master && stamp_compare(known, forgetting->lowest) <= 0))
        return false;
    forgetting->lowest = known;
    g_free(forgetting->master);
    forgetting->master = g_strdup(answer->node);
    g_free(forgetting->confirmer);
    forgetting->confirmer = g_strdup(member->name);
    return false;
}

static bool ask_all(struct forgetting *forgetting, GError **error)
{
    const struct env *env = forgetting->env;
    const GPtrArray *members = epoch_fence_announced(forgetting->fence)->members;
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    struct promise_epoch_args args = {.node = (char *)env->node_uuid};
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (!strcmp(member->uuid, env->node_uuid))
            continue;
        g_ptr_array_add(forgetting->others, (void *)member);
        g_ptr_array_add(uuids, member->uuid);
    }
    const struct env_question question = {.nodes = uuids,
                                          .role = ROLE_NODED,
                                          .method = "promise_epoch",
                                          .args = &args,
                                          .stamp = epoch_fence_stamp(forgetting->fence),
                                          .limit_ms = FORGET_MS};
    return env_many(env, &question, take_known, forgetting) || node_killed(error);
}

/* --- what is here --- */

static bool history_of_guest(const struct env *env, const char *name, guint64 *ret_history,
                             GError **error)
{
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATE, name, LIMIT_FRAME_BYTES, &len, error);
    json_autoptr json = text ? seal_from_text(text, len, LIMIT_FRAME_BYTES, error) : NULL;
    if (!json) {
        g_prefix_error(error, "var/%s: ", name);
        return false;
    }
    *ret_history = (guint64)json_integer_value(json_object_get(json, "history"));
    return true;
}

/* No guest's generation may become a later one than anybody knows. */
static bool check_guests(const struct forgetting *forgetting, GError **error)
{
    const struct env *env = forgetting->env;
    g_autoptr(GPtrArray) names = env->ops->file_list(env, FILE_STATE, GUEST_FOLDER, error);
    for (guint i = 0; names && i < names->len; i++) {
        const char *base = names->pdata[i];
        g_autofree char *name = g_strdup_printf(GUEST_FOLDER "/%s", base);
        guint64 history = 0;
        if (!g_str_has_suffix(base, ".json"))
            continue;
        if (!history_of_guest(env, name, &history, error))
            return false;
        if (history <= forgetting->lowest.history)
            continue;
        fettle_set_error(error, UNSAFE,
                         "var/%s is of history %" G_GUINT64_FORMAT
                         ", later than what node %s follows; nothing was changed",
                         name, history, forgetting->confirmer);
        return false;
    }
    return names != NULL;
}

static bool check(const struct forgetting *forgetting, bool alone, GError **error)
{
    if (forgetting->silent->len && !alone)
        fettle_set_error(error, UNSAFE,
                         "silent: %s. They may have seen what must not be forgotten; if they are "
                         "gone for good, say so: --alone. Nothing was changed",
                         forgetting->silent->str);
    else if (!forgetting->master)
        fettle_set_error(error, WRONG_STATE,
                         "no other candidate answers and follows a mastership, so there is nothing "
                         "to go back to: put a backup back (fettle cluster restore). Nothing was "
                         "changed");
    else if (stamp_compare(forgetting->lowest, epoch_fence_highest(forgetting->fence)) >= 0)
        fettle_set_error(error, WRONG_STATE,
                         "node %s follows history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                         ", and this node has seen nothing later: there is nothing to forget",
                         forgetting->confirmer, forgetting->lowest.history,
                         forgetting->lowest.epoch);
    else
        return check_guests(forgetting, error);
    return false;
}

/* --- the step --- */

static bool put(const struct env *env, const char *name, json_t *json, GError **error)
{
    g_autofree char *text = seal_to_text(json);
    json_decref(json);
    if (env->ops->file_write(env, FILE_STATE, name, text, strlen(text), error))
        return true;
    g_prefix_error(error, "var/%s: ", name);
    return false;
}

/* The promise first: with the announcement in its place nothing would be left to forget. */
static bool lower(struct forgetting *forgetting, const char *aside, GError **error)
{
    struct epoch_fence *fence = forgetting->fence;
    g_autofree char *announced = g_strconcat(ANNOUNCED_FILE, aside, NULL);
    g_autofree char *promised = g_strconcat(PROMISE_FILE, aside, NULL);
    record_autoptr(announce_args) now = announce_args_copy(fence->announced);
    struct epoch_promise promise = {.history = forgetting->lowest.history,
                                    .epoch = forgetting->lowest.epoch,
                                    .node = forgetting->master,
                                    .begun = true};
    now->history = forgetting->lowest.history;
    now->epoch = forgetting->lowest.epoch;
    now->serial = 0; /* whatever its master says of members next is news */
    text_set(&now->master_node, forgetting->master);
    text_set(&now->signature, "");
    return put(forgetting->env, announced, announce_args_to_json(fence->announced), error) &&
           put(forgetting->env, promised, epoch_promise_to_json(fence->promised), error) &&
           put(forgetting->env, PROMISE_FILE, epoch_promise_to_json(&promise), error) &&
           put(forgetting->env, ANNOUNCED_FILE, announce_args_to_json(now), error);
}

bool forget_check_statement(const char *statement, GError **error)
{
    g_autofree char *control = text_control(statement);
    if (*statement && !control)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "statement: %s; who says that what this node has seen is nobody's "
                     "mastership, and why",
                     control ? "must have no control characters" : "must not be empty");
    return false;
}

char *forget_mastership(const struct env *env, const char *cluster_uuid, bool alone,
                        const char *statement, GError **error)
{
    g_auto(forgetting_t) forgetting = {.env = env,
                                       .fence = epoch_fence_new(env, cluster_uuid),
                                       .others = g_ptr_array_new(),
                                       .silent = g_string_new(NULL),
                                       .said = g_string_new(NULL)};
    if (!forget_check_statement(statement, error) || !epoch_fence_load(forgetting.fence, error) ||
        !ask_all(&forgetting, error) || !check(&forgetting, alone, error))
        return NULL;
    struct stamp seen = epoch_fence_highest(forgetting.fence);
    g_autofree char *aside =
        g_strdup_printf(".of-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT, seen.history, seen.epoch);
    if (!lower(&forgetting, aside, error))
        return NULL;
    log_warning("",
                "the mastership of history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                " is forgotten by a person's word: %s",
                seen.history, seen.epoch, statement);
    return g_strdup_printf(
        "%sThis node had seen history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
        ", and follows history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
        " now, as node %s does. What it had is kept as var/" ANNOUNCED_FILE
        "%s and var/" PROMISE_FILE "%s.%s%s\n",
        forgetting.said->str, seen.history, seen.epoch, forgetting.lowest.history,
        forgetting.lowest.epoch, forgetting.confirmer, aside, aside,
        forgetting.silent->len ? " Silent: " : "", forgetting.silent->str);
}

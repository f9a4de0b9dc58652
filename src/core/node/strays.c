/*
 * See strays.h. Both are looked at beside each other and in bounded time; what does not answer, or
 * is too much, is said to be not known, so that nobody takes it for gone.
 */
#include "core/node/strays.h"

#include "core/node/look.h"

struct strays_look {
    struct look processes_look, files_look;
    GPtrArray *processes; /* struct stray, as they were seen last; NULL: never */
    GPtrArray *files;     /* char * */
};

struct strays_look *strays_look_new(void)
{
    return g_new0(struct strays_look, 1);
}

void strays_look_free(struct strays_look *strays)
{
    look_clear(&strays->processes_look);
    look_clear(&strays->files_look);
    g_clear_pointer(&strays->processes, g_ptr_array_unref);
    g_clear_pointer(&strays->files, g_ptr_array_unref);
    g_free(strays);
}

static bool take(GPtrArray **to, GPtrArray *seen)
{
    if (!seen)
        return false;
    g_clear_pointer(to, g_ptr_array_unref);
    *to = seen;
    return true;
}

static bool look_at_processes(struct node_core *node, void *thing)
{
    struct strays_look *strays = thing;
    return take(&strays->processes, node->hv->ops->strays(node->hv, NULL));
}

/* A folder on disks that have failed may list nothing, or anything. */
static bool look_at_files(struct node_core *node, void *thing)
{
    struct strays_look *strays = thing;
    struct storage *storage = node->storage;
    struct storage_space space = {0};
    return storage->ops->space(storage, &space, NULL) && space.total_mib > 0 &&
           take(&strays->files, storage->ops->strays(storage, NULL));
}

/* Whatever others have written there becomes a text that the record can have. */
static void clean(char **text)
{
    g_autofree char *valid = g_utf8_make_valid(*text, -1);
    for (char *at = valid; *at; at++)
        if (g_ascii_iscntrl(*at))
            *at = '?';
    g_free(*text);
    *text = text_head(valid, LIMIT_STRAY_CHARS);
}

static void tell_processes(const GPtrArray *seen, struct strays *answer)
{
    answer->processes_known = seen->len <= LIMIT_STRAYS;
    for (guint i = 0; i < MIN(seen->len, LIMIT_STRAYS); i++) {
        struct stray *stray = stray_copy(seen->pdata[i]);
        clean(&stray->identity);
        clean(&stray->name);
        g_ptr_array_add(answer->processes, stray);
    }
}

static void tell_files(const GPtrArray *seen, struct strays *answer)
{
    answer->files_known = seen->len <= LIMIT_STRAYS;
    for (guint i = 0; i < MIN(seen->len, LIMIT_STRAYS); i++) {
        char *name = g_strdup(seen->pdata[i]);
        clean(&name);
        g_ptr_array_add(answer->files, name);
    }
}

json_t *strays_list(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    struct strays_look *strays = node->strays;
    struct look_round *round = look_round_new(node);
    look_round_add(round, &strays->processes_look, look_at_processes, strays);
    look_round_add(round, &strays->files_look, look_at_files, strays);
    json_t *answer = NULL;
    if (look_round_wait(round)) {
        record_autoptr(strays) all = strays_new();
        text_set(&all->node, node->env->node_uuid);
        if (look_round_answered(round, &strays->processes_look))
            tell_processes(strays->processes, all);
        if (look_round_answered(round, &strays->files_look))
            tell_files(strays->files, all);
        answer = strays_to_json(all);
    } else {
        node_killed(error);
    }
    look_round_free(round);
    return answer;
}

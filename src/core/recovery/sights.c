/* See sights.h. */
#include "core/recovery/sights.h"

#include "proto/env_many.h"

#include <string.h>

struct asked {
    GPtrArray *subjects;           /* struct collect_subject */
    struct collect_result *answer; /* NULL: none, or none that counts */
    GHashTable *by_instance;       /* UUID -> struct sight, of it */
    char *refusal;
    bool heard; /* it has said something */
    bool older; /* it does not know the question */
};

struct sights {
    GHashTable *nodes; /* UUID -> struct asked */
    GPtrArray *order;  /* of these, borrowed */
};

static void asked_free(void *data)
{
    struct asked *asked = data;
    g_ptr_array_unref(asked->subjects);
    g_hash_table_unref(asked->by_instance);
    if (asked->answer)
        collect_result_free(asked->answer);
    g_free(asked->refusal);
    g_free(asked);
}

struct sights *sights_new(void)
{
    struct sights *sights = g_new0(struct sights, 1);
    sights->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, asked_free);
    sights->order = g_ptr_array_new();
    return sights;
}

void sights_free(struct sights *sights)
{
    if (!sights)
        return;
    g_ptr_array_unref(sights->order);
    g_hash_table_unref(sights->nodes);
    g_free(sights);
}

static void free_subject(void *subject)
{
    collect_subject_free(subject);
}

static struct asked *asked_of(struct sights *sights, const char *node)
{
    struct asked *asked = g_hash_table_lookup(sights->nodes, node);
    if (asked)
        return asked;
    asked = g_new0(struct asked, 1);
    asked->subjects = g_ptr_array_new_with_free_func(free_subject);
    asked->by_instance = g_hash_table_new(g_str_hash, g_str_equal);
    char *key = g_strdup(node);
    g_hash_table_insert(sights->nodes, key, asked);
    g_ptr_array_add(sights->order, key);
    return asked;
}

bool sights_has_room(const struct sights *sights, const char *node)
{
    const struct asked *asked = g_hash_table_lookup(sights->nodes, node);
    return !asked || asked->subjects->len < LIMIT_COLLECT;
}

void sights_want(struct sights *sights, const char *node, const struct instance *instance,
                 guint64 dead_job)
{
    struct asked *asked = asked_of(sights, node);
    struct collect_subject question = {.instance = instance->uuid,
                                       .dead_job = dead_job,
                                       .disks = instance->disks,
                                       .disk_template = instance->disk_template};
    g_ptr_array_add(asked->subjects, collect_subject_copy(&question));
}

/* An answer that is not one to the question counts for nothing (RCV-20). */
static bool answers(const struct collect_result *answer, const char *node,
                    const struct asked *asked, char **ret_why)
{
    if (strcmp(answer->node, node) != 0)
        *ret_why = g_strdup_printf("answered as another node (%s)", answer->node);
    else if (answer->sights->len != asked->subjects->len)
        *ret_why =
            g_strdup_printf("answered about %u of %u", answer->sights->len, asked->subjects->len);
    for (guint i = 0; !*ret_why && i < asked->subjects->len; i++) {
        const struct collect_subject *subject = asked->subjects->pdata[i];
        const struct sight *sight = answer->sights->pdata[i];
        if (strcmp(sight->instance, subject->instance) != 0)
            *ret_why = g_strdup("answered about something else");
    }
    return *ret_why == NULL;
}

static bool take_answer(struct env_answer *heard, void *data)
{
    struct sights *sights = data;
    struct asked *asked = g_hash_table_lookup(sights->nodes, heard->node);
    asked->heard = heard->json || !env_no_answer(heard->error);
    if (!heard->record) {
        asked->older = !heard->json && fettle_error_is(heard->error, PROTOCOL);
        asked->refusal = env_no_answer(heard->error)
                             ? g_strdup("gave no answer")
                             : g_strdup_printf("answered: %s", heard->error->message);
        return false;
    }
    if (!answers(heard->record, heard->node, asked, &asked->refusal))
        return false;
    asked->answer = g_steal_pointer(&heard->record);
    for (guint i = 0; i < asked->answer->sights->len; i++) {
        struct sight *sight = asked->answer->sights->pdata[i];
        g_hash_table_insert(asked->by_instance, sight->instance, sight);
    }
    return false;
}

bool sights_ask(struct sights *sights, const struct env *env, struct stamp stamp, guint limit_ms)
{
    guint count = sights->order->len;
    g_autofree json_t **each = g_new0(json_t *, count + 1);
    for (guint i = 0; i < count; i++) {
        struct asked *asked = g_hash_table_lookup(sights->nodes, sights->order->pdata[i]);
        struct collect_args args = {.subjects = asked->subjects};
        each[i] = collect_args_to_json(&args);
    }
    const struct env_question question = {.nodes = sights->order,
                                          .role = ROLE_NODED,
                                          .method = "collect",
                                          .each = each,
                                          .stamp = stamp,
                                          .limit_ms = limit_ms};
    bool alive = env_many(env, &question, take_answer, sights);
    for (guint i = 0; i < count; i++)
        json_decref(each[i]);
    return alive;
}

GPtrArray *sights_silent(const struct sights *sights)
{
    GPtrArray *silent = g_ptr_array_new();
    for (guint i = 0; i < sights->order->len; i++) {
        const struct asked *asked = g_hash_table_lookup(sights->nodes, sights->order->pdata[i]);
        if (!asked->heard)
            g_ptr_array_add(silent, sights->order->pdata[i]);
    }
    return silent;
}

const struct sight *sights_of(const struct sights *sights, const char *node, const char *instance)
{
    const struct asked *asked = sights ? g_hash_table_lookup(sights->nodes, node) : NULL;
    return asked ? g_hash_table_lookup(asked->by_instance, instance) : NULL;
}

const char *sights_boot_id(const struct sights *sights, const char *node)
{
    const struct asked *asked = sights ? g_hash_table_lookup(sights->nodes, node) : NULL;
    return asked && asked->answer ? asked->answer->boot_id : "";
}

bool sights_older(const struct sights *sights, const char *node)
{
    const struct asked *asked = sights ? g_hash_table_lookup(sights->nodes, node) : NULL;
    return asked && asked->older;
}

const char *sights_refusal(const struct sights *sights, const char *node)
{
    const struct asked *asked = sights ? g_hash_table_lookup(sights->nodes, node) : NULL;
    return !asked || asked->answer ? NULL : asked->refusal ? asked->refusal : "gave no answer";
}

/* Jobs that auto-repair still needs; see retained_jobs.h. */
#include "core/repair/retained_jobs.h"

#include "core/repair/tags.h"

#include <string.h>

/* Repairs that began within the last hour count against repair_max_per_hour. */
#define COUNTED_US (3600 * (gint64)G_USEC_PER_SEC)

struct retained_jobs {
    const struct config *config;
    struct ages *ages;
    GHashTable *repairs; /* ids of repairs that are under way */
    GHashTable *jobs;    /* ids of their jobs, as texts */
    GHashTable *owners;  /* ids of jobs whose marks are on instances, as guint64 * */
};

static void add_tag(struct retained_jobs *kept, const char *text)
{
    struct repair_tag tag;

    repair_tag_parse(text, &tag);
    if (tag.kind == REPAIR_TAG_PENDING) {
        g_hash_table_add(kept->repairs, g_strdup(tag.id));
        for (guint i = 0; tag.jobs[i] != NULL; i++)
            g_hash_table_add(kept->jobs, g_strdup(tag.jobs[i]));
    }
    repair_tag_clear(&tag);
}

struct retained_jobs *retained_jobs_new(const struct config *config, struct ages *ages)
{
    struct retained_jobs *kept = g_new0(struct retained_jobs, 1);
    g_autoptr(GPtrArray) tags = config_list(config, "tag");
    g_autoptr(GPtrArray) instances = config_list(config, "instance");

    kept->config = config;
    kept->ages = ages;
    kept->repairs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    kept->jobs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    kept->owners = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < tags->len; i++)
        add_tag(kept, ((const struct tag *)g_ptr_array_index(tags, i))->tag);
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = g_ptr_array_index(instances, i);

        if (instance->task_state != TASK_NONE)
            g_hash_table_add(kept->owners, g_memdup2(&instance->task_owner, sizeof(guint64)));
    }
    return kept;
}

void retained_jobs_free(struct retained_jobs *kept)
{
    g_hash_table_unref(kept->repairs);
    g_hash_table_unref(kept->jobs);
    g_hash_table_unref(kept->owners);
    g_free(kept);
}

/* "restart/INSTANCE/GENERATION/TRY" and "finish/INSTANCE/OWNER/GENERATION/TRY"
 * (core/watcher/tries.h): the next try of that generation gets the next number. */
static bool may_be_tried_again(const struct retained_jobs *kept, GStrv parts)
{
    guint count = g_strv_length(parts);
    bool restart = count == 4 && g_str_equal(parts[0], "restart");
    bool finish = count == 5 && g_str_equal(parts[0], "finish");
    const struct instance *instance =
        restart || finish ? config_get(kept->config, "instance", parts[1], NULL) : NULL;
    guint64 generation = 0;

    return instance != NULL &&
           g_ascii_string_to_unsigned(parts[count - 2], 10, 0, G_MAXUINT64, &generation, NULL) &&
           instance->generation == generation;
}

/* "promote/NODE/VERSION/TRY" (candidates.c), likewise while the record of the node is that. */
static bool may_be_promoted_again(const struct retained_jobs *kept, GStrv parts)
{
    guint64 version = 0, tried = 0;

    return g_strv_length(parts) == 4 && g_str_equal(parts[0], "promote") &&
           config_get(kept->config, "node", parts[1], &version) != NULL &&
           g_ascii_string_to_unsigned(parts[2], 10, 0, G_MAXUINT64, &tried, NULL) &&
           version == tried;
}

/* "REPAIR/NUMBER-STEP/TRY" (repair_step.c); ids of repairs that outside tools chose may have
 * slashes. */
static const char *why_of_request(const struct retained_jobs *kept, const struct job *job)
{
    g_auto(GStrv) parts = g_strsplit(job->request_id, "/", -1);
    guint count = g_strv_length(parts);
    g_autofree char *repair = NULL;

    if (may_be_tried_again(kept, parts) || may_be_promoted_again(kept, parts))
        return "the watcher counts its tries by it";
    if (count < 3)
        return NULL;
    repair = g_strndup(job->request_id, strlen(job->request_id) - strlen(parts[count - 1]) -
                                            strlen(parts[count - 2]) - 2);
    if (g_hash_table_contains(kept->repairs, repair))
        return "the repair that it belongs to is under way";
    g_autofree char *key = g_strdup_printf("begun/%" G_GUINT64_FORMAT, job->id);
    if (strchr(parts[count - 2], '-') != NULL &&
        ages_us(kept->ages, key, job->received_us) < COUNTED_US)
        return "it counts as a repair of the last hour";
    return NULL;
}

const char *retained_jobs_why(const struct retained_jobs *kept, const struct job *job)
{
    char key[24];

    g_snprintf(key, sizeof(key), "%" G_GUINT64_FORMAT, job->id);
    if (g_hash_table_contains(kept->jobs, key))
        return "the repair that it belongs to is under way";
    if (g_hash_table_contains(kept->owners, &job->id))
        return "what it left of an instance is not settled yet";
    return job->request_id[0] == '\0' ? NULL : why_of_request(kept, job);
}

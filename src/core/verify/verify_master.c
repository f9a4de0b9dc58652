/* What the master says of itself, and what is on record and cannot be read; see verify_look.h. */
#include "core/job/job_file.h"
#include "core/repair/tags.h"
#include "core/verify/verify_look.h"

#include <string.h>

/* Hosts can join as long as the master has the key, whoever that is. */
static void verify_authority(struct look *look)
{
    if (look_concerns(look, look->cluster->master_node) && !look->status->authority)
        look_problem(look, "master: /etc/fettle/ca.key is missing, so no host can join; put it "
                           "back from a backup or from a node that has it, with mode 0600");
}

/* "run/queue/bad-job-17-TIME": what luxid could not read, and has set aside (job_file.h). */
static void find_bad_job_file(struct look *look, const char *path)
{
    g_auto(GStrv) words = g_strsplit(strrchr(path, '/') + 1, "-", 4);
    look_problem(look,
                 "job file %s of node %s: is no record of job %s and was set aside; the log of its "
                 "fettle-luxid says why. What became of the job is on record: fettle job info %s. "
                 "Look at the disk and at the file, then remove it",
                 path, look_node_name(look, look->cluster->master_node), words[2], words[2]);
}

void verify_master(struct look *look)
{
    const struct cluster_status *status = look->status;
    g_autoptr(GPtrArray) bad_files = job_file_list_bad(look->queries->env);
    for (guint i = 0; look_whole(look) && i < status->problems->len; i++)
        look_problem(look, "configuration: %s", (const char *)status->problems->pdata[i]);
    for (guint i = 0; i < status->nodes_pending->len; i++) {
        const char *node = status->nodes_pending->pdata[i];
        if (look_concerns(look, node))
            look_problem(look,
                         "node %s: has not answered this epoch yet; no lock that covers it is "
                         "granted",
                         look_node_name(look, node));
    }
    for (guint i = 0; look_concerns(look, look->cluster->master_node) && i < bad_files->len; i++)
        find_bad_job_file(look, bad_files->pdata[i]);
    verify_authority(look);
}

/* --- tags --- */

/* Only the cluster's and a node group's concern no node. */
static bool tag_concerns(const struct look *look, const struct tag *tag, const char **ret_name)
{
    const struct instance *instance;
    switch (tag->kind) {
    case TAG_INSTANCE:
        instance = config_get(look->config, "instance", tag->object, NULL);
        *ret_name = instance ? instance->name : tag->object;
        return instance && look_concerns(look, instance->primary_node);
    case TAG_NODE:
        *ret_name = look_node_name(look, tag->object);
        return look_concerns(look, tag->object);
    case TAG_NODEGROUP:
    case TAG_CLUSTER:
        break;
    }
    const struct nodegroup *group = config_get(look->config, "nodegroup", tag->object, NULL);
    *ret_name = group ? group->name : "";
    return look_whole(look);
}

/* "instance web1": what it is of, as commands take it too; "cluster" for that. */
static char *subject_of(const struct tag *tag, const char *name)
{
    const char *kind = enum_word(&tag_kind_words, (int)tag->kind);
    return tag->kind == TAG_CLUSTER ? g_strdup(kind) : g_strdup_printf("%s %s", kind, name);
}

static void verify_tag(struct look *look, const struct tag *tag, const struct repair_tag *parsed,
                       const char *subject)
{
    const struct env *env = look->queries->env;
    if (parsed->kind == REPAIR_TAG_MALFORMED || parsed->unreadable)
        look_problem(look,
                     "%s: its tag %s cannot be read as a policy of auto-repair, so it allows "
                     "nothing and forbids nothing; remove it: fettle tag remove %s %s. Policies "
                     "are set with: fettle repair policy",
                     subject, tag->tag, subject, tag->tag);
    else if (parsed->kind == REPAIR_TAG_RESULT && parsed->outcome == REPAIR_FAILURE)
        look_problem(look,
                     "%s: an earlier repair failed, and nothing is repaired there until somebody "
                     "has looked into that and taken its tag away: fettle tag remove %s %s",
                     subject, subject, tag->tag);
    else if (parsed->kind == REPAIR_TAG_SUSPEND &&
             (parsed->forever || parsed->timestamp > env->ops->wall_us(env) / G_USEC_PER_SEC))
        look_note(look,
                  "%s: auto-repair is suspended by its tag %s; to end that: fettle repair resume "
                  "%s",
                  subject, tag->tag, subject);
}

void verify_tags(struct look *look)
{
    g_autoptr(GPtrArray) tags = config_list(look->config, "tag");
    for (guint i = 0; i < tags->len && look_pause(look); i++) {
        const struct tag *tag = tags->pdata[i];
        const char *name = "";
        struct repair_tag parsed;
        repair_tag_parse(tag->tag, &parsed);
        g_autofree char *subject = tag_concerns(look, tag, &name) ? subject_of(tag, name) : NULL;
        if (subject)
            verify_tag(look, tag, &parsed, subject);
        repair_tag_clear(&parsed);
    }
}

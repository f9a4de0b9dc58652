/* The keys of the cluster: what ends soon, a renewal that waits, nodes with old ones; see
 * verify_look.h. */
#include "core/verify/verify_look.h"

#include <string.h>

#include "proto/invitation.h"

#define RENEW "; renew the keys: fettle cluster renew-keys"

/* Beginning of a line, or NULL if it is time enough. */
static char *ends_soon(const struct look *look, guint64 ends)
{
    const struct env *env = look->queries->env;
    guint64 now = (guint64)MAX(env->ops->wall_us(env) / G_USEC_PER_SEC, 0);
    g_autofree char *time = look_time_text((gint64)ends);
    if (!ends || ends > now + KEYS_END_SOON_S)
        return NULL;
    return g_strdup_printf("%s %s", ends <= now ? "has ended" : "ends", time);
}

static void verify_cluster(struct look *look, const struct keys_progress *keys)
{
    g_autofree char *soon = ends_soon(look, keys->ends);
    if (soon)
        look_problem(look, "keys: the certificate of the authority %s" RENEW, soon);
    if (keys->phase == RENEWAL_NONE)
        return;
    look_note(look,
              "the keys of the cluster are being renewed (%s); follow it on the master with: "
              "fettle cluster renew-keys",
              enum_word(&renewal_phase_words, (int)keys->phase));
    for (guint i = 0; i < keys->waits->len; i++)
        look_problem(look, "keys: the renewal waits for %s", (const char *)keys->waits->pdata[i]);
}

/* Whether both trust the same authorities. */
static bool is_same(const struct keys_status *one, const struct keys_status *other)
{
    if (one->trusts->len != other->trusts->len)
        return false;
    for (guint i = 0; i < one->trusts->len; i++)
        if (strcmp(one->trusts->pdata[i], other->trusts->pdata[i]) != 0)
            return false;
    return true;
}

static void verify_front_end(struct look *look, const struct node *node,
                             const struct keys_status *keys)
{
    g_autofree char *soon = ends_soon(look, keys->front_end_ends);
    if (!config_get(look->config, "api_front_end", node->uuid, NULL) || !keys->front_end_ends)
        return;
    if (keys->front_end_strange)
        look_problem(
            look,
            "node %s: the certificate of its front end of the API is of no authority of "
            "the cluster any more, so clients with the new ca.crt refuse it; there: fettle "
            "api renew-certificate",
            node->name);
    else if (soon)
        look_problem(look,
                     "node %s: the certificate of its front end of the API %s; make another one "
                     "there: fettle api renew-certificate",
                     node->name, soon);
}

static void verify_certificate(struct look *look, const struct node *node,
                               const struct keys_status *keys)
{
    const struct node_report *master = reports_of(look->reports, look->cluster->master_node);
    g_autofree char *soon = ends_soon(look, keys->ends);
    if (soon)
        look_problem(look, "node %s: its certificate %s" RENEW, node->name, soon);
    if (!*keys->issuer)
        look_problem(look,
                     "node %s: its certificate is of no authority that it trusts: its next "
                     "connections are refused; put back etc/node.crt and etc/ca.crt",
                     node->name);
    else if (look->cluster->renewal == RENEWAL_NONE && master && master->keys &&
             !is_same(keys, master->keys))
        look_problem(look,
                     "node %s: does not trust the same authorities as the master; the master's "
                     "log of fettle-wconfd says why",
                     node->name);
}

static void verify_node(struct look *look, const struct node *node)
{
    const struct node_report *report = reports_of(look->reports, node->uuid);
    g_autofree char *back = invitation_way_back(node->name, node->primary_ip, node->port);
    if (node->keys_missed)
        look_problem(look,
                     "node %s: was offline while the keys of the cluster were renewed, and nobody "
                     "believes it; when it is back: %s",
                     node->name, back);
    else if (report && report->keys) {
        verify_certificate(look, node, report->keys);
        verify_front_end(look, node, report->keys);
    }
}

void verify_keys(struct look *look)
{
    g_autoptr(GPtrArray) nodes = config_list(look->config, "node");
    if (look->status->keys && look_whole(look))
        verify_cluster(look, look->status->keys);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (look_concerns(look, node->uuid))
            verify_node(look, node);
    }
}

/* See confd.h. */
#include "core/confd/confd.h"

#include <string.h>

#include "core/confd/answer.h"

struct confd {
    char *node_uuid;
    struct confd_copy *copy;
    void (*catch_up)(void *data);
    void *data;
    struct confd_counters counters;
};

struct confd *confd_new(const char *node_uuid)
{
    struct confd *confd = g_new0(struct confd, 1);
    confd->node_uuid = g_strdup(node_uuid);
    return confd;
}

void confd_free(struct confd *confd)
{
    if (!confd)
        return;
    confd_copy_free(confd->copy);
    g_free(confd->node_uuid);
    g_free(confd);
}

void confd_set_copy(struct confd *confd, struct confd_copy *copy)
{
    if (copy != confd->copy)
        confd_copy_free(confd->copy);
    confd->copy = copy;
}

struct confd_copy *confd_copy_of(const struct confd *confd)
{
    return confd->copy;
}

void confd_on_request(struct confd *confd, void (*catch_up)(void *data), void *data)
{
    confd->catch_up = catch_up;
    confd->data = data;
}

const char *confd_silent_because(const struct confd *confd)
{
    if (!confd->copy)
        return "there is no copy of the configuration here";
    const struct config *config = confd_copy_config(confd->copy);
    const struct cluster *cluster = config_cluster(config);
    const struct node *node = config_get(config, "node", confd->node_uuid, NULL);
    if (!cluster || !node)
        return "this node is not in the configuration";
    if (!node->master_candidate && strcmp(cluster->master_node, node->uuid) != 0)
        return "this node is no master candidate";
    if (confd_copy_retired(confd->copy))
        return "its copy of the configuration is retired";
    if (!confd_copy_key(confd->copy))
        return "the configuration has no key for ConfD";
    return NULL;
}

/* Who asks. */
struct asker {
    const struct confd_key *key;
    struct confd_key *own; /* that key, if it is a node's; else NULL */
    char *node;            /* whose monitoring it is, by UUID; NULL: who has the cluster's key */
};

static void asker_clear(struct asker *asker)
{
    confd_key_free(asker->own);
    g_free(asker->node);
}

/* A reply that fits; one that does not becomes a sentence about that. */
static char *seal(const struct asker *asker, const struct confd_request *request,
                  struct confd_reply *reply, size_t *ret_len)
{
    g_autofree char *datagram = confd_reply_seal(asker->key, reply, request->rsalt, ret_len);
    if (*ret_len <= LIMIT_CONFD_REPLY_BYTES)
        return g_steal_pointer(&datagram);
    g_autofree char *text =
        g_strdup_printf("The answer has %zu bytes, and a datagram at most %d; ask for a part of it",
                        *ret_len, LIMIT_CONFD_REPLY_BYTES);
    json_decref(reply->answer);
    reply->answer = json_string(text);
    reply->status = CONFD_ERROR;
    return confd_reply_seal(asker->key, reply, request->rsalt, ret_len);
}

/* Signed with the key of the monitoring of the node that has the address. */
static struct confd_request *open_of_node(struct confd *confd, gint64 now_s, const char *from,
                                          const char *data, size_t len, struct asker *ret_asker,
                                          enum confd_fault *ret_fault)
{
    const struct node *node = confd_copy_node_at(confd->copy, from);
    struct confd_key *key = node ? confd_copy_node_key(confd->copy, node) : NULL;
    struct confd_request *request =
        key ? confd_request_open(key, now_s, data, len, ret_fault) : NULL;
    if (request)
        *ret_asker = (struct asker){key, key, g_strdup(node->uuid)};
    else
        confd_key_free(key);
    return request;
}

static struct confd_request *open_request(struct confd *confd, gint64 now_s, const char *from,
                                          const char *data, size_t len, struct asker *ret_asker,
                                          enum confd_fault *ret_fault)
{
    const struct confd_key *key = confd_copy_key(confd->copy);
    struct confd_request *request = confd_request_open(key, now_s, data, len, ret_fault);
    *ret_asker = (struct asker){key, NULL, NULL};
    if (request || *ret_fault != CONFD_FAULT_HMAC)
        return request;
    return open_of_node(confd, now_s, from, data, len, ret_asker, ret_fault);
}

/* The copy may have become another one since it was asked: a key that is over answers nothing. */
static bool still_asks(const struct confd *confd, struct asker *asker, const struct node **ret_node)
{
    *ret_node = NULL;
    if (confd_silent_because(confd))
        return false;
    if (!asker->node) {
        asker->key = confd_copy_key(confd->copy);
        return true;
    }
    *ret_node = config_get(confd_copy_config(confd->copy), "node", asker->node, NULL);
    return *ret_node != NULL;
}

char *confd_handle(struct confd *confd, gint64 now_s, const char *from, const char *data,
                   size_t len, size_t *ret_len)
{
    enum confd_fault fault = CONFD_FAULT_REQUEST;
    struct confd_reply reply;
    struct asker asker;
    const struct node *node;
    char *datagram = NULL;
    if (confd_silent_because(confd))
        return NULL;
    g_autoptr(confd_request_t) request =
        open_request(confd, now_s, from, data, len, &asker, &fault);
    if (!request) {
        confd->counters.dropped[fault]++;
        return NULL;
    }
    if (confd->catch_up)
        confd->catch_up(confd->data);
    if (still_asks(confd, &asker, &node)) {
        confd_answer(confd->copy, request, node, &reply);
        datagram = seal(&asker, request, &reply, ret_len);
        if (reply.status == CONFD_OK)
            confd->counters.answered++;
        else
            confd->counters.failed++;
        json_decref(reply.answer);
    }
    asker_clear(&asker);
    return datagram;
}

const struct confd_counters *confd_counters(const struct confd *confd)
{
    return &confd->counters;
}

guint64 confd_dropped(const struct confd *confd)
{
    guint64 sum = 0;
    for (guint i = 0; i < CONFD_FAULT_COUNT; i++)
        sum += confd->counters.dropped[i];
    return sum;
}

/* Fields of instances (proto/fields.def). */
#include "core/query/query_rows.h"

#include "core/report/late.h"
#include "core/report/stop_why.h"

/* --- configured --- */

json_t *query_get_instance_admin_up(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct instance *instance = row;
    return json_boolean(instance->admin_state == ADMIN_UP);
}

/* Ganeti's name for what runs guests by QEMU, with or without KVM. */
json_t *query_get_instance_hypervisor(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    return json_string("kvm");
}

static void json_unref(gpointer json)
{
    json_decref(json);
}

/* Many rows have the same few. */
static json_t *node_name(struct query_source *source, const char *uuid)
{
    if (uuid[0] == '\0')
        return NULL;
    if (!source->names)
        source->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, json_unref);
    json_t *name = g_hash_table_lookup(source->names, uuid);
    if (!name) {
        name = json_string(config_node_name(source->config, uuid));
        g_hash_table_insert(source->names, g_strdup(uuid), name);
    }
    return json_incref(name);
}

json_t *query_get_instance_pnode(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return node_name(source, ((const struct instance *)row)->primary_node);
}

static const struct nodegroup *primary_group(const struct query_source *source,
                                             const struct instance *instance)
{
    const struct node *node = config_get(source->config, "node", instance->primary_node, NULL);
    return node ? config_get(source->config, "nodegroup", node->group, NULL) : NULL;
}

json_t *query_get_instance_pnode_group(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct nodegroup *group = primary_group(source, row);
    return group ? json_string(group->name) : NULL;
}

json_t *query_get_instance_pnode_group_uuid(struct query_source *source, const void *row,
                                            enum query_status *ret_status)
{
    const struct nodegroup *group = primary_group(source, row);
    return group ? json_string(group->uuid) : NULL;
}

json_t *query_get_instance_snodes(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *nodes = json_array();
    if (instance->secondary_node[0] != '\0')
        json_array_append_new(nodes, node_name(source, instance->secondary_node));
    return nodes;
}

json_t *query_get_instance_disk_count(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    return json_integer(((const struct instance *)row)->disks->len);
}

json_t *query_get_instance_disk_sizes(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *sizes = json_array();
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        json_array_append_new(sizes, json_integer((json_int_t)disk->size));
    }
    return sizes;
}

json_t *query_get_instance_disk_uuids(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *uuids = json_array();
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        json_array_append_new(uuids, json_string(disk->uuid));
    }
    return uuids;
}

json_t *query_get_instance_disk_usage(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct instance *instance = row;
    guint64 sum = 0;
    for (guint i = 0; i < instance->disks->len; i++)
        sum += ((const struct disk *)instance->disks->pdata[i])->size;
    return json_integer((json_int_t)sum);
}

json_t *query_get_instance_tags(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return query_tags(source, TAG_INSTANCE, ((const struct instance *)row)->uuid);
}

json_t *query_get_instance_serial_no(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return query_serial_no(source, "instance", ((const struct instance *)row)->uuid);
}

json_t *query_get_instance_holder(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return node_name(source, ((const struct instance *)row)->holder);
}

static const struct replica *replica_of(const struct query_source *source, const void *row)
{
    const struct instance *instance = row;
    return instance->replica[0] == '\0'
               ? NULL
               : config_get(source->config, "replica", instance->replica, NULL);
}

json_t *query_get_instance_replica_state(struct query_source *source, const void *row,
                                         enum query_status *ret_status)
{
    const struct replica *replica = replica_of(source, row);
    return replica ? json_string(enum_word(&replica_state_words, (int)replica->state)) : NULL;
}

json_t *query_get_instance_pending(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct instance *instance = row;
    g_autoptr(GString) text = g_string_new(NULL);
    if (instance->memory_next)
        g_string_append_printf(text, "%" G_GUINT64_FORMAT " MiB of memory", instance->memory_next);
    if (instance->vcpus_next)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " processor%s", text->len ? ", " : "",
                               instance->vcpus_next, instance->vcpus_next == 1 ? "" : "s");
    return text->len ? json_string(text->str) : NULL;
}

json_t *query_get_instance_replica_at(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct replica *replica = replica_of(source, row);
    if (!replica)
        return NULL;
    const char *node =
        config_node_name(source->config, ((const struct instance *)row)->secondary_node);
    return json_sprintf("%s %s", node, enum_word(&replica_state_words, (int)replica->state));
}

json_t *query_get_instance_replica_sync(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct replica *replica = replica_of(source, row);
    return replica ? json_integer((json_int_t)replica->sync) : NULL;
}

json_t *query_get_instance_replica_why(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct replica *replica = replica_of(source, row);
    return replica ? json_string(replica->why) : NULL;
}

json_t *query_get_instance_replica_since(struct query_source *source, const void *row,
                                         enum query_status *ret_status)
{
    const struct replica *replica = replica_of(source, row);
    return !replica || replica->since == 0 ? NULL : json_integer((json_int_t)replica->since);
}

/* --- live --- */

/* The guest on the primary node; false with the status if that node did not answer. */
static bool primary_guest(const struct query_source *source, const struct instance *instance,
                          const struct guest_report **ret_guest, enum query_status *ret_status)
{
    if (!query_node_report(source, instance->primary_node, ret_status))
        return false;
    *ret_guest = reports_guest(source->reports, instance->primary_node, instance->uuid);
    return true;
}

/* That guest; NULL with the status if nothing is told of it. */
static const struct guest_report *guest_of(const struct query_source *source, const void *row,
                                           enum query_status *ret_status)
{
    const struct guest_report *guest = NULL;
    return primary_guest(source, row, &guest, ret_status) ? guest : NULL;
}

/* A guest that exists for the hypervisor and was not switched off. */
static bool is_up(const struct guest_report *guest)
{
    return guest && (guest->state == GUEST_RUNNING || guest->state == GUEST_PAUSED);
}

static bool runs_elsewhere(const struct query_source *source, const struct instance *instance)
{
    return is_up(reports_guest(source->reports, instance->secondary_node, instance->uuid));
}

/* No word of Ganeti's fits a node that answers with an error: what it runs is not known. */
static json_t *status_unheard(enum query_status reached)
{
    if (reached == QUERY_NO_DATA)
        return NULL;
    return json_string(reached == QUERY_OFFLINE ? "ERROR_nodeoffline" : "ERROR_nodedown");
}

json_t *query_get_instance_status(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct instance *instance = row;
    bool wanted = instance->admin_state == ADMIN_UP;
    const struct guest_report *guest = NULL;
    enum query_status reached = QUERY_NORMAL;
    if (query_instance_fault(source, instance))
        return json_string("ERROR_task");
    if (!primary_guest(source, instance, &guest, &reached))
        return status_unheard(reached);
    if (is_up(guest) && wanted && guest->io_stop != IO_STOP_NONE)
        return json_string(guest->io_stop == IO_STOP_FAILED ? "ERROR_diskfailed" : "ERROR_nospace");
    if (is_up(guest))
        return json_string(wanted ? "running" : "ERROR_up");
    if (runs_elsewhere(source, instance))
        return json_string("ERROR_wrongnode");
    return json_string(wanted ? "ERROR_down" : "ADMIN_down");
}

json_t *query_get_instance_oper_state(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct guest_report *guest = NULL;
    return primary_guest(source, row, &guest, ret_status) ? json_boolean(is_up(guest)) : NULL;
}

json_t *query_get_instance_oper_ram(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return is_up(guest) ? json_integer((json_int_t)guest->memory) : NULL;
}

json_t *query_get_instance_guest_state(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct guest_report *guest = NULL;
    if (!primary_guest(source, row, &guest, ret_status))
        return NULL;
    return json_string(enum_word(&guest_state_words, guest ? (int)guest->state : GUEST_ABSENT));
}

json_t *query_get_instance_io_stop(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return guest ? json_string(enum_word(&io_stop_words, (int)guest->io_stop)) : NULL;
}

json_t *query_get_instance_io_why(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct instance *instance = row;
    const struct guest_report *guest = guest_of(source, row, ret_status);
    if (!guest)
        return NULL;
    g_autofree char *why = stop_why(source->config, guest, instance->primary_node);
    return json_string(why ? why : "");
}

json_t *query_get_instance_io_volume(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    const struct volume *volume =
        guest ? config_get(source->config, "volume", guest->io_volume, NULL) : NULL;
    return guest ? json_string(volume ? config_volume_name(volume) : guest->io_volume) : NULL;
}

json_t *query_get_instance_guest_held(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return guest ? json_string(guest->held) : NULL;
}

json_t *query_get_instance_io_errors(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return guest ? json_integer((json_int_t)guest->io_errors) : NULL;
}

json_t *query_get_instance_io_disk(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return !guest || guest->io_errors == 0 ? NULL : json_integer((json_int_t)guest->io_disk);
}

json_t *query_get_instance_guest_late(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    const char *node = ((const struct instance *)row)->primary_node;
    const char *refusal = reports_refusal(source->reports, node);
    if (refusal) {
        g_autofree char *text =
            g_strdup_printf("is not told of by %s, which answers with an error: %s",
                            config_node_name(source->config, node), refusal);
        return json_string(text);
    }
    if (!guest || !guest->late)
        return NULL;
    g_autofree char *words = late_guest_words(guest);
    return json_string(words);
}

json_t *query_get_instance_mirror_state(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return guest ? json_string(enum_word(&mirror_state_words, (int)guest->mirror)) : NULL;
}

json_t *query_get_instance_mirror_progress(struct query_source *source, const void *row,
                                           enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return guest ? json_integer((json_int_t)guest->progress) : NULL;
}

json_t *query_get_instance_oper_vcpus(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct guest_report *guest = guest_of(source, row, ret_status);
    return is_up(guest) ? json_integer((json_int_t)((const struct instance *)row)->vcpus) : NULL;
}

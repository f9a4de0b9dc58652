/*
 * See master_ip.h. One task does what is to be done; another asks wconfd, which may be frozen, so
 * that an announcement of another master is followed in any case.
 */
#include "core/node/master_ip.h"

#include "base/log.h"
#include "core/node/guest.h"

#define RECORD_FILE "node/master_ip.json"
#define NEVER (-1)

struct master_ip {
    struct node_core *node;
    struct held_address *held; /* may be on this host; NULL: not by us */
    gint64 heard_ms;           /* when wconfd said last that it is master; NEVER */
    bool confirmed;            /* it has, since this node daemon began */
    bool asking;
    gint64 asked_ms;
    guint tells;    /* how often the neighbours are still told */
    gint64 told_ms; /* when they were last */
    char *said;     /* the last complaint */
    struct env_pause pause;
    guint users; /* the owner, and each task */
    bool ended;
};

struct master_ip *master_ip_new(struct node_core *node)
{
    struct master_ip *ip = g_new0(struct master_ip, 1);
    ip->node = node;
    ip->heard_ms = NEVER;
    ip->asked_ms = -MASTER_IP_LOOK_MS;
    ip->users = 1;
    return ip;
}

static void release(struct master_ip *ip)
{
    if (--ip->users > 0)
        return;
    if (ip->held)
        held_address_free(ip->held);
    g_free(ip->said);
    g_free(ip);
}

void master_ip_kick(struct master_ip *ip)
{
    env_pause_end(&ip->pause);
}

void master_ip_free(struct master_ip *ip)
{
    ip->ended = true;
    master_ip_kick(ip);
    release(ip);
}

static gint64 now_ms(const struct master_ip *ip)
{
    return ip->node->env->ops->boot_ms(ip->node->env);
}

static void complain(struct master_ip *ip, const GError *error)
{
    if (fettle_error_is(error, KILLED) || g_strcmp0(ip->said, error->message) == 0)
        return;
    log_warning("", "master IP: %s; trying on", error->message);
    text_set(&ip->said, error->message);
}

/* --- what is remembered --- */

static bool save(struct master_ip *ip, const char *address, const char *netdev, GError **error)
{
    const struct env *env = ip->node->env;
    const struct held_address from = {.address = (char *)address, .netdev = (char *)netdev};
    json_autoptr json = held_address_to_json(&from);
    g_autofree char *text = json_to_text(json);
    if (!env->ops->file_write(env, FILE_STATE, RECORD_FILE, text, strlen(text), error))
        return false;
    if (ip->held)
        held_address_free(ip->held);
    ip->held = held_address_copy(&from);
    return true;
}

static bool forget(struct master_ip *ip, GError **error)
{
    const struct env *env = ip->node->env;
    if (!env->ops->file_remove(env, FILE_STATE, RECORD_FILE, error))
        return false;
    g_clear_pointer(&ip->held, held_address_free);
    return true;
}

/* One that cannot be read is as good as none: the address that was announced is looked for all the
 * same, and only one that was configured before would stay. */
static void load(struct master_ip *ip)
{
    const struct env *env = ip->node->env;
    g_autoptr(GError) error = NULL;
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATE, RECORD_FILE, LIMIT_STATE_FILE_BYTES, &len, &error);
    json_autoptr json = text ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &error) : NULL;
    ip->held = json ? held_address_parse(json, RECORD_KEEP, &error) : NULL;
    if (error && !fettle_error_is(error, UNKNOWN_ENTITY) && !fettle_error_is(error, KILLED))
        log_warning("",
                    "var/" RECORD_FILE ": %s; if this host carries a master IP of earlier "
                    "times, remove it by hand",
                    error->message);
    /* What is on the host may stay until wconfd, which may have been restarted with us, is heard.
     */
    if (ip->held)
        ip->heard_ms = now_ms(ip);
}

/* --- whose it is --- */

/* By what was announced and promised: nothing newer is known here. */
static bool is_announced(const struct master_ip *ip)
{
    const struct epoch_fence *fence = ip->node->fence;
    const struct announce_args *announced = epoch_fence_announced(fence);
    return *announced->master_ip && !strcmp(announced->master_node, ip->node->env->node_uuid) &&
           stamp_compare(epoch_fence_highest(fence), epoch_fence_stamp(fence)) == 0;
}

/* A wconfd that is silent for a moment, or is being restarted, is no end yet. */
static bool is_ours(const struct master_ip *ip)
{
    return is_announced(ip) && ip->heard_ms != NEVER &&
           now_ms(ip) - ip->heard_ms <= MASTER_IP_PATIENCE_MS;
}

/* Silence, and one that is on its way to be master, say nothing. */
static void take_role(struct master_ip *ip, const struct role_status *status)
{
    struct stamp stamp = {status->history, status->epoch};
    bool master = status->seat == SEAT_MASTER;
    if (master && stamp_compare(stamp, epoch_fence_stamp(ip->node->fence)) == 0) {
        ip->heard_ms = now_ms(ip);
        if (!ip->confirmed)
            ip->tells = MASTER_IP_TELLS;
        ip->confirmed = true;
    } else if (!master && status->seat != SEAT_CAMPAIGNS) {
        ip->heard_ms = NEVER;
        ip->confirmed = false;
    }
}

static void ask_task(void *data)
{
    struct master_ip *ip = data;
    struct wait_role_args args = {0};
    struct stamp stamp = epoch_fence_stamp(ip->node->fence);
    record_autoptr(role_status) status =
        env_call_record(ip->node->env, NODE_LOCAL, ROLE_WCONFD, "wait_role", &args, stamp, 0,
                        MASTER_IP_ASK_MS, NULL);
    struct node_core *node = ip->node;
    ip->asking = false;
    if (status && !ip->ended) {
        take_role(ip, status);
        master_ip_kick(ip);
    }
    release(ip);
    node_release(node);
}

static void ask(struct master_ip *ip)
{
    if (ip->asking || now_ms(ip) - ip->asked_ms < MASTER_IP_LOOK_MS)
        return;
    ip->asking = true;
    ip->asked_ms = now_ms(ip);
    ip->users++;
    node_hold(ip->node);
    task_spawn(ip->node->env->tasks, ask_task, ip);
}

/* --- doing it --- */

static bool is_on(const struct master_ip *ip, const char *address, const char *netdev,
                  bool *ret_there, GError **error)
{
    struct network_driver *network = ip->node->env->network;
    g_autoptr(GPtrArray) devices = network->ops->address_devices(network, address, error);
    *ret_there = devices && g_ptr_array_find_with_equal_func(devices, netdev, g_str_equal, NULL);
    return devices != NULL;
}

static bool take_away(struct master_ip *ip, const char *address, const char *netdev, GError **error)
{
    struct network_driver *network = ip->node->env->network;
    bool there;
    if (!is_on(ip, address, netdev, &there, error))
        return false;
    if (there && !network->ops->address_remove(network, netdev, address, error))
        return false;
    if (there)
        log_info("", "the master IP %s was removed from %s", address, netdev);
    return true;
}

/* Ours, and what stands where it would be. */
static bool drop(struct master_ip *ip, GError **error)
{
    /* Another announcement may come while the host works. */
    record_autoptr(announce_args) announced =
        announce_args_copy(epoch_fence_announced(ip->node->fence));
    ip->tells = 0;
    if (ip->held &&
        (!take_away(ip, ip->held->address, ip->held->netdev, error) || !forget(ip, error)))
        return false;
    return !*announced->master_ip ||
           take_away(ip, announced->master_ip, announced->master_netdev, error);
}

static bool tell(struct master_ip *ip, const struct announce_args *wanted, GError **error)
{
    struct network_driver *network = ip->node->env->network;
    if (ip->tells == 0 || now_ms(ip) - ip->told_ms < MASTER_IP_TELL_MS)
        return true;
    ip->tells--;
    ip->told_ms = now_ms(ip);
    return network->ops->address_announce(network, wanted->master_netdev, wanted->master_ip, error);
}

static bool add(struct master_ip *ip, const struct announce_args *wanted, GError **error)
{
    struct network_driver *network = ip->node->env->network;
    /* Remembered first: whatever dies in between, the next node daemon knows what may be there. */
    if (!save(ip, wanted->master_ip, wanted->master_netdev, error))
        return false;
    /* Another master may have been announced while that was written. */
    if (!is_ours(ip))
        return true;
    if (!network->ops->address_add(network, wanted->master_netdev, wanted->master_ip,
                                   (guint)wanted->master_netmask, error))
        return false;
    log_info("", "this node is the master: %s/%" G_GUINT64_FORMAT " was added to %s",
             wanted->master_ip, wanted->master_netmask, wanted->master_netdev);
    ip->tells = MASTER_IP_TELLS;
    ip->told_ms = now_ms(ip) - MASTER_IP_TELL_MS;
    return true;
}

static bool is_held(const struct master_ip *ip, const struct announce_args *wanted)
{
    return ip->held && !strcmp(ip->held->address, wanted->master_ip) &&
           !strcmp(ip->held->netdev, wanted->master_netdev);
}

static bool carry(struct master_ip *ip, GError **error)
{
    record_autoptr(announce_args) wanted =
        announce_args_copy(epoch_fence_announced(ip->node->fence));
    bool there;
    if (ip->held && !is_held(ip, wanted) &&
        (!take_away(ip, ip->held->address, ip->held->netdev, error) || !forget(ip, error)))
        return false;
    if (!is_on(ip, wanted->master_ip, wanted->master_netdev, &there, error))
        return false;
    if ((!there || !is_held(ip, wanted)) && ip->confirmed && !add(ip, wanted, error))
        return false;
    return !is_ours(ip) || !ip->confirmed || tell(ip, wanted, error);
}

static void turn(struct master_ip *ip)
{
    g_autoptr(GError) error = NULL;
    bool ours = is_ours(ip);
    if (ours ? carry(ip, &error) : drop(ip, &error))
        g_clear_pointer(&ip->said, g_free);
    else if (error)
        complain(ip, error);
}

/* --- the task --- */

static void run(void *data)
{
    struct master_ip *ip = data;
    struct node_core *node = ip->node;
    bool alive = !ip->ended;
    if (alive)
        load(ip);
    while (alive && !task_killed()) {
        bool announced = is_announced(ip);
        if (announced)
            ask(ip);
        turn(ip);
        alive =
            !ip->ended &&
            env_pause(node->env, &ip->pause, announced ? MASTER_IP_LOOK_MS : MASTER_IP_SWEEP_MS) &&
            !ip->ended;
    }
    release(ip);
    node_release(node);
}

void master_ip_start(struct master_ip *ip)
{
    ip->users++;
    node_hold(ip->node);
    task_spawn(ip->node->env->tasks, run, ip);
}

/* --- may it become one? --- */

json_t *master_ip_check(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error)
{
    const struct address_check_args *check = args;
    struct network_driver *network = node->env->network;
    const struct announce_args *announced = epoch_fence_announced(node->fence);
    bool present = !strcmp(announced->master_ip, check->address);
    if (!network->ops->device_check(network, check->netdev, error))
        return NULL;
    g_autoptr(GPtrArray) devices =
        present ? g_ptr_array_new() : network->ops->address_devices(network, check->address, error);
    if (!devices)
        return NULL;
    if (devices->len == 0)
        return json_object();
    fettle_set_error(error, ALREADY_EXISTS,
                     "%s is an address of this node already, on %s; the master IP needs one that "
                     "no host has",
                     check->address, (const char *)devices->pdata[0]);
    return NULL;
}

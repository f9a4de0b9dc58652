/*
 * Telling the nodes who is master (SAF-05, 06): one task for each node that has to be told, which
 * tries until it has answered. Until a node has answered the epoch once, its locks are not granted;
 * a node on record as offline is not waited for. What is on its way at once is bounded: all nodes
 * of a large cluster, each with the list of all, would be more than the way to noded takes.
 */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/wconf_private.h"

#define ANNOUNCE_PAUSE_MS 1000
#define ANNOUNCE_SHARE_MS                                                                          \
    1000 /* an announcement that is not answered by then is on its way no more */

/* It outlives wconf: until the last task has ended. */
struct announce_window {
    const struct env *env;
    size_t bytes;
    GQueue waiting; /* struct promise, of tasks */
};

struct wconf_announce {
    GHashTable *nodes;      /* uuid -> struct node_link */
    guint64 members_serial; /* of the list that all are told; 0: nobody was told of anything yet */
    guint64 round;          /* counts how often all of it was said anew */
    guint64 spoken_serial;
    json_t *spoken[2]; /* the announcement of `spoken_serial`, whole and said again; or NULL */
    size_t spoken_bytes[2];
    struct announce_window *window; /* of those that are on their way; NULL: not begun, or over */
};

/* What one announcement takes of it. */
struct share {
    struct announce_window *window;
    size_t bytes;
    guint timer;
};

struct node_link {
    struct wconf *wconf;
    struct announce_window *window;
    char *uuid;
    bool answered;   /* this epoch */
    bool newborn;    /* became a member in this epoch: it has no operations of lower ones */
    bool offline;    /* on record */
    bool gone;       /* not a member any more, or wconf has ended */
    bool running;    /* its task lives, and frees it if it is gone */
    guint64 told;    /* serial of the list that it was told in this round; 0: none */
    guint64 has;     /* serial of the list that it has answered; 0: perhaps none */
    bool complained; /* about its not answering */
    bool doubted;    /* it says that this mastership is over, and does not prove it */
};

struct wconf_announce *wconf_announce_new(void)
{
    struct wconf_announce *announce = g_new0(struct wconf_announce, 1);
    announce->nodes = g_hash_table_new(g_str_hash, g_str_equal);
    return announce;
}

void wconf_announce_free(struct wconf_announce *announce)
{
    g_hash_table_unref(announce->nodes);
    g_free(announce);
}

static void clear_window(void *data)
{
    struct announce_window *window = data;
    g_queue_clear(&window->waiting);
}

static void window_unref(struct announce_window *window)
{
    g_rc_box_release_full(window, clear_window);
}

static void link_free(struct node_link *link)
{
    window_unref(link->window);
    g_free(link->uuid);
    g_free(link);
}

/* --- what is told --- */

static void free_member(void *data)
{
    member_free(data);
}

static GPtrArray *make_members(const struct config *config)
{
    GPtrArray *members = g_ptr_array_new_with_free_func(free_member);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct member from = {.uuid = node->uuid,
                              .name = node->name,
                              .address = node->primary_ip,
                              .port = node->port,
                              .master_candidate = node->master_candidate,
                              .offline = node->offline};
        g_ptr_array_add(members, member_copy(&from));
    }
    return members;
}

static struct announce_args *announcement(const struct wconf *wconf, bool again)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    struct announce_args *args = announce_args_new();
    args->history = config_history(wconf->committed);
    args->epoch = wconf->epoch;
    text_set(&args->cluster, cluster->uuid);
    /* A new master's own name may be on its way into the record still. */
    text_set(&args->master_node, wconf->env->node_uuid);
    args->serial = wconf->announce->members_serial;
    args->again = again;
    if (!again) {
        g_ptr_array_unref(args->members);
        args->members = make_members(wconf->committed);
    }
    args->replica_lost_ms = cluster->replica_lost_ms;
    args->accelerator = cluster->accelerator;
    text_set(&args->signature, wconf_signature(wconf));
    text_set(&args->cluster_name, cluster->name);
    text_set(&args->master_ip, cluster->master_ip);
    args->master_netmask = cluster->master_netmask;
    text_set(&args->master_netdev, cluster->master_netdev);
    return args;
}

struct announce_args *wconf_announcement(const struct wconf *wconf)
{
    return announcement(wconf, false);
}

/* Written once for all nodes: whatever it says changes with the serial of the members. */
static json_t *spoken(struct wconf *wconf, bool again)
{
    struct wconf_announce *announce = wconf->announce;
    if (announce->spoken_serial != announce->members_serial) {
        g_clear_pointer(&announce->spoken[false], json_decref);
        g_clear_pointer(&announce->spoken[true], json_decref);
        announce->spoken_serial = announce->members_serial;
    }
    if (!announce->spoken[again]) {
        record_autoptr(announce_args) args = announcement(wconf, again);
        announce->spoken[again] = announce_args_to_json(args);
        announce->spoken_bytes[again] = json_dumpb(announce->spoken[again], NULL, 0, JSON_COMPACT);
    }
    return json_incref(announce->spoken[again]);
}

/* Whether it would say anything else than it says already. */
static bool is_news(struct wconf *wconf)
{
    if (!wconf->announce->members_serial)
        return true;
    record_autoptr(announce_args) args = announcement(wconf, false);
    json_autoptr now = announce_args_to_json(args);
    json_autoptr before = spoken(wconf, false);
    return !json_equal(now, before);
}

/* --- how much is on its way --- */

static void window_next(struct announce_window *window)
{
    struct promise *first = g_queue_pop_head(&window->waiting);
    if (first)
        promise_complete(first);
}

static void share_return(struct share *share)
{
    share->window->bytes -= share->bytes;
    share->bytes = 0;
    window_next(share->window);
}

static void share_timeout(void *data)
{
    struct share *share = data;
    share->timer = 0;
    share_return(share);
}

static size_t link_bytes(const struct node_link *link)
{
    struct wconf *wconf = link->wconf;
    bool again = link->has == wconf->announce->members_serial;
    json_decref(spoken(wconf, again));
    return wconf->announce->spoken_bytes[again];
}

/* Waits for room; one announcement of any size has it if there is no other. False: the node is to
 * be told nothing any more, or the process ends. */
static bool share_take(struct share *share, const struct node_link *link)
{
    struct announce_window *window = share->window;
    bool alive = true;
    while (alive && !link->gone && window->bytes > 0 &&
           window->bytes + link_bytes(link) > LIMIT_ANNOUNCE_BYTES) {
        struct promise room = {0};
        g_queue_push_tail(&window->waiting, &room);
        alive = promise_wait(&room);
        if (!alive)
            g_queue_remove(&window->waiting, &room);
    }
    if (!alive || link->gone) {
        window_next(window);
        return false;
    }
    share->bytes = link_bytes(link);
    window->bytes += share->bytes;
    if (window->bytes + share->bytes <= LIMIT_ANNOUNCE_BYTES)
        window_next(window);
    share->timer = window->env->ops->timer(window->env, ANNOUNCE_SHARE_MS, share_timeout, share);
    return true;
}

static void share_end(struct share *share)
{
    if (!share->timer)
        return;
    share->window->env->ops->timer_cancel(share->window->env, share->timer);
    share->timer = 0;
    share_return(share);
}

/* --- telling --- */

/* The same, and the node is to tell its guests (SAF-09). Steals. */
static json_t *with_question(json_t *args)
{
    json_t *asking = json_copy(args);
    json_object_set_new(asking, "asks", json_true());
    json_decref(args);
    return asking;
}

/* What it has told, or, of the version before, what its report says. */
static bool hear(const struct node_link *link, struct stamp stamp, const json_t *answer,
                 GError **error)
{
    record_autoptr(announce_result) result = announce_result_parse(answer, RECORD_LAX, error);
    if (!result || link->gone)
        return result != NULL;
    if (result->states)
        return wconf_stated(link->wconf, link->uuid, result->guests, error);
    record_autoptr(node_report) report = env_call_record(link->wconf->env, link->uuid, ROLE_NODED,
                                                         "node_report", NULL, stamp, 0, 0, error);
    if (!report || link->gone)
        return report != NULL;
    g_autoptr(GPtrArray) statements = wconf_statements_of(report);
    return wconf_stated(link->wconf, link->uuid, statements, error);
}

/* The list goes to each node once: in every round to all of them it would be what a large cluster
 * at rest does most of the time. */
static bool tell(const struct node_link *link, GError **error)
{
    struct wconf *wconf = link->wconf;
    struct stamp stamp = {config_history(wconf->committed), wconf->epoch};
    bool asks = wconf_node_unheard(wconf, link->uuid);
    json_t *args = spoken(wconf, link->has == wconf->announce->members_serial);
    struct rpc_call call = {.to_node = link->uuid,
                            .to_role = ROLE_NODED,
                            .method = "announce",
                            .args = asks ? with_question(args) : args,
                            .stamp = stamp};
    json_autoptr answer = env_call_wait(wconf->env, &call, error);
    return answer && (!asks || hear(link, stamp, answer, error));
}

/* --- the tasks --- */

static void open_gates(struct wconf *wconf, const char *uuid)
{
    static const char *const levels[] = {"node", "node-res"};
    for (guint i = 0; i < G_N_ELEMENTS(levels); i++) {
        g_autofree char *member = g_strdup_printf("%s/%s", levels[i], uuid);
        g_autofree char *group = g_strdup_printf("%s/[lockset]", levels[i]);
        locks_gate_changed(wconf->locks, member);
        locks_gate_changed(wconf->locks, group);
    }
    wconf_locks_publish(wconf);
}

static void link_answered(struct node_link *link)
{
    struct wconf *wconf = link->wconf;
    link->complained = link->doubted = false;
    if (link->answered || link->offline)
        return;
    link->answered = true;
    log_info("", "node %s has answered epoch %" G_GUINT64_FORMAT,
             config_node_name(wconf->committed, link->uuid), wconf->epoch);
    open_gates(wconf, link->uuid);
}

static void link_failed(struct node_link *link, const GError *error)
{
    if (!link->complained && !fettle_error_is(error, KILLED))
        log_warning("", "node %s does not answer the announcement: %s; trying on",
                    config_node_name(link->wconf->committed, link->uuid), error->message);
    link->complained = true;
}

static char *doubt_words(const struct node_link *link)
{
    return g_strdup_printf(
        "node %s says that a later mastership has begun, and does not prove it: it counts as "
        "silent. If no other node follows that one, let it forget it there: fettle-noded "
        "--forget-mastership",
        config_node_name(link->wconf->committed, link->uuid));
}

static void link_doubted(struct node_link *link)
{
    g_autofree char *words = doubt_words(link);
    if (!link->doubted)
        log_warning("", "%s", words);
    link->doubted = true;
}

/* A candidate that says so is believed: it may have promised that later one, or be it. Any other
 * node has to show that its master is one (SAF-102). */
static bool is_over(const struct node_link *link, const GError *refusal, GError **ret_why)
{
    const struct wconf *wconf = link->wconf;
    g_autoptr(config_t) config = config_hold(wconf->committed); /* both may end meanwhile */
    const struct node *node = config_get(config, "node", link->uuid, NULL);
    if (!node || !node->master_candidate)
        return node && !promises_hold_of(wconf->env, config, node, wconf->epoch, ret_why);
    *ret_why = g_error_copy(refusal);
    g_prefix_error(ret_why, "node %s says: ", config_node_name(config, link->uuid));
    return true;
}

/* It refuses this mastership. */
static void link_refused(struct node_link *link, const GError *refusal)
{
    g_autoptr(GError) why = NULL;
    bool over = is_over(link, refusal, &why);
    if (link->gone)
        return;
    if (over)
        wconf_replaced(link->wconf, why);
    else
        link_doubted(link);
}

/* Whether there is anything to tell it. */
static bool is_behind(const struct node_link *link)
{
    return !link->offline && link->told < link->wconf->announce->members_serial;
}

static void link_task(void *data)
{
    struct node_link *link = data;
    bool alive = true;
    struct share share = {.window = link->window};
    while (alive && !link->gone && is_behind(link)) {
        g_autoptr(GError) error = NULL;
        alive = share_take(&share, link);
        if (!alive)
            break;
        const struct wconf_announce *announce = link->wconf->announce;
        guint64 serial = announce->members_serial, round = announce->round;
        bool answered = tell(link, &error);
        share_end(&share);
        if (link->gone)
            break;
        if (round != announce->round)
            serial = 0; /* it has heard what is not said any more */
        link->has = answered ? serial : 0;
        if (fettle_error_is(error, STALE_EPOCH)) {
            link_refused(link, error);
            alive = link->gone || env_sleep(link->wconf->env, ANNOUNCE_PAUSE_MS);
        } else if (answered) {
            link->told = serial;
            link_answered(link);
        } else {
            link_failed(link, error);
            alive = env_sleep(link->wconf->env, ANNOUNCE_PAUSE_MS);
        }
    }
    link->running = false;
    if (link->gone)
        link_free(link);
}

static void link_run(struct node_link *link)
{
    if (link->running || !is_behind(link))
        return;
    link->running = true;
    task_spawn(link->wconf->env->tasks, link_task, link);
}

/* --- members --- */

static void link_end(struct node_link *link)
{
    link->gone = true;
    if (!link->running)
        link_free(link);
}

/* Nothing waits for the answer of a newborn (SAF-06); what reaches it before the announcement it
 * refuses for now. Once it was offline it may be anything. */
static void link_refresh(struct wconf *wconf, const struct node *node, bool newborn)
{
    struct wconf_announce *announce = wconf->announce;
    struct node_link *link = g_hash_table_lookup(announce->nodes, node->uuid);
    if (!link) {
        link = g_new0(struct node_link, 1);
        link->wconf = wconf;
        link->window = g_rc_box_acquire(announce->window);
        link->uuid = g_strdup(node->uuid);
        link->newborn = newborn;
        g_hash_table_insert(announce->nodes, link->uuid, link);
    }
    /* Who comes back from offline may not have heard of this epoch, or may have forgotten. */
    bool opens = node->offline && !link->offline && !link->answered;
    if (node->offline) {
        link->answered = link->newborn = link->doubted = false;
        link->told = link->has = 0;
    }
    link->offline = node->offline;
    if (opens)
        open_gates(wconf, node->uuid);
    link_run(link);
}

static gboolean drop_if_no_member(void *key, void *value, void *data)
{
    const struct wconf *wconf = data;
    if (config_get(wconf->committed, "node", key, NULL))
        return FALSE;
    link_end(value);
    return TRUE;
}

void wconf_announce(struct wconf *wconf)
{
    struct wconf_announce *announce = wconf->announce;
    bool first = g_hash_table_size(announce->nodes) == 0;
    if (!announce->window) {
        announce->window = g_rc_box_new0(struct announce_window);
        announce->window->env = wconf->env;
        g_queue_init(&announce->window->waiting);
    }
    if (is_news(wconf))
        announce->members_serial = config_serial(wconf->committed);
    bool fewer = g_hash_table_foreach_remove(announce->nodes, drop_if_no_member, wconf) > 0;
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    for (guint i = 0; i < nodes->len && !wconf->down; i++)
        link_refresh(wconf, nodes->pdata[i], !first);
    if (fewer && !wconf->down)
        open_gates(wconf, "[lockset]");
}

void wconf_announce_again(struct wconf *wconf)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, wconf->announce->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct node_link *link = value;
        link->told = 0;
        link_run(link);
    }
}

/* What it says has changed without a change of the configuration. */
void wconf_announce_anew(struct wconf *wconf)
{
    wconf->announce->spoken_serial = 0;
    wconf->announce->round++;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, wconf->announce->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        ((struct node_link *)value)->has = 0;
    wconf_announce_again(wconf);
}

bool wconf_node_told(const struct wconf *wconf, const char *uuid)
{
    const struct node_link *link = g_hash_table_lookup(wconf->announce->nodes, uuid);
    return link && link->has && link->has == wconf->announce->members_serial;
}

void wconf_announce_end(struct wconf *wconf)
{
    struct wconf_announce *announce = wconf->announce;
    g_clear_pointer(&announce->spoken[false], json_decref);
    g_clear_pointer(&announce->spoken[true], json_decref);
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, announce->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        g_hash_table_iter_steal(&iter);
        link_end(value);
    }
    if (announce->window) {
        window_next(announce->window);
        g_clear_pointer(&announce->window, window_unref);
    }
}

/* --- who has not answered --- */

static bool is_pending(const struct node_link *link)
{
    return !link->offline && !link->answered;
}

bool wconf_node_gated(const struct wconf *wconf, const char *uuid)
{
    const struct node_link *link = g_hash_table_lookup(wconf->announce->nodes, uuid);
    return link && is_pending(link) && !link->newborn;
}

void wconf_list_doubted(const struct wconf *wconf, GPtrArray *problems)
{
    GHashTableIter iter;
    void *link;
    g_hash_table_iter_init(&iter, wconf->announce->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &link))
        if (((const struct node_link *)link)->doubted)
            g_ptr_array_add(problems, doubt_words(link));
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *wconf_nodes_pending(const struct wconf *wconf)
{
    GPtrArray *pending = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    void *uuid, *link;
    g_hash_table_iter_init(&iter, wconf->announce->nodes);
    while (g_hash_table_iter_next(&iter, &uuid, &link)) {
        if (is_pending(link))
            g_ptr_array_add(pending, g_strdup(uuid));
    }
    g_ptr_array_sort(pending, compare_strings);
    return pending;
}

bool wconf_gate(const char *name, void *data)
{
    const struct wconf *wconf = data;
    const char *rest = strchr(name, '/') + 1;
    if (!g_str_has_prefix(name, "node/") && !g_str_has_prefix(name, "node-res/"))
        return false;
    /* Requests that the journal knew ask before anybody has been told of anything. */
    if (!wconf->announce->members_serial)
        return true;
    if (strcmp(rest, "[lockset]") != 0)
        return wconf_node_gated(wconf, rest);
    GHashTableIter iter;
    void *uuid;
    g_hash_table_iter_init(&iter, wconf->announce->nodes);
    while (g_hash_table_iter_next(&iter, &uuid, NULL)) {
        if (wconf_node_gated(wconf, uuid))
            return true;
    }
    return false;
}

/*
 * See things.h. What hosts have is known from the reports of each pass (guests, images, bridges),
 * and from a look at each host now and then (processes, files). What is on record is the newest
 * decision about the thing. Whatever of the two has differed for recovery_interval_period, in two
 * looks at least, is told: until then it may be about to be made or removed, or live shorter than
 * anybody could look at it.
 */
#include "core/recovery/things.h"

#include "core/config/resource.h"
#include "core/recovery/things_discard.h"
#include "core/report/late.h"
#include "core/watcher/watcher_private.h"
#include "proto/env_many.h"

#include <string.h>

#define NAME_CHARS 64 /* as the record of a decision has it */
#define MORE_NAME "more than " G_STRINGIFY(LIMIT_THINGS)
#define MORE_PROCESSES_NAME "more than " G_STRINGIFY(LIMIT_THING_PROCESSES) " processes"

/* What differs from the record, and has not been told yet. */
struct difference {
    enum thing_kind kind;
    gint64 since_ms; /* boot clock */
    guint64 pass;    /* the last in which it did */
};

/* What is remembered of a host; nothing of it is needed after a restart. */
struct host {
    gint64 next_ms;                       /* boot clock: when it is looked at */
    bool away;                            /* it gave no report in the last pass */
    struct strays *seen;                  /* of the look of this pass; NULL: there was none */
    struct compare_stored_result *stored; /* the same of a back end, which is one, too */
    GPtrArray *data;                      /* of that what was told before; NULL: not looked at */
    GHashTable *differs;                  /* subject -> struct difference */
};

struct things {
    GHashTable *hosts; /* UUID of a node, or of a back end -> struct host */
};

struct thing {
    enum thing_kind kind;
    char *subject;  /* UUID made of host, kind and identity */
    char *name;     /* NAME_CHARS at most */
    char *evidence; /* what it is told from others by */
};

/* One host in one pass. */
struct look {
    struct things *things;
    struct watcher *watcher;
    const char *uuid;
    const char *name; /* as decisions have it: "node1", "back end dir1" */
    struct host *host;
    bool known[THING_MORE + 1]; /* kinds of which all are in `there`; THING_MORE: of every kind */
    GHashTable *there;          /* subject -> struct thing */
    GHashTable *told;           /* subject -> const struct decision, on record as there */
    GHashTable **bridges;       /* names that the record knows; NULL: not asked yet in this pass */
    GPtrArray *batch;
    guint count;      /* that are on record, or about to be … */
    guint processes;  /* … processes of these */
    const char *more; /* why some are not told; NULL: all are */
};

static void forget_stored(struct host *host)
{
    g_clear_pointer(&host->data, g_ptr_array_unref);
    g_clear_pointer(&host->stored, compare_stored_result_free);
}

static void host_free(void *data)
{
    struct host *host = data;
    g_hash_table_unref(host->differs);
    if (host->seen)
        strays_free(host->seen);
    forget_stored(host);
    g_free(host);
}

static void thing_free(void *data)
{
    struct thing *thing = data;
    g_free(thing->subject);
    g_free(thing->name);
    g_free(thing->evidence);
    g_free(thing);
}

struct things *things_new(void)
{
    struct things *things = g_new0(struct things, 1);
    things->hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, host_free);
    return things;
}

void things_free(struct things *things)
{
    g_hash_table_unref(things->hosts);
    g_free(things);
}

static gint64 now_ms(const struct watcher *watcher)
{
    return watcher->env->ops->boot_ms(watcher->env);
}

static gint64 interval_ms(const struct watcher *watcher)
{
    return (gint64)watcher_cluster(watcher)->recovery_interval_period * 1000;
}

/* --- looks --- */

static struct host *host_of(struct things *things, const struct watcher *watcher, const char *node)
{
    struct host *host = g_hash_table_lookup(things->hosts, node);
    if (!host) {
        host = g_new0(struct host, 1);
        host->differs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        host->away = true;
        g_hash_table_insert(things->hosts, g_strdup(node), host);
    }
    return host;
}

/* Once an hour, and soon after it is there again, or this master is new: what comes and goes with
 * that is over by then. */
static bool is_due(struct host *host, const struct watcher *watcher, bool here)
{
    gint64 soon = now_ms(watcher) + interval_ms(watcher);
    /* One that comes and goes is looked at all the same, at what was its time. */
    if (here && host->away && (host->next_ms < now_ms(watcher) || host->next_ms > soon))
        host->next_ms = soon;
    host->away = !here;
    return here && now_ms(watcher) >= host->next_ms;
}

struct asking {
    struct things *things;
    const struct watcher *watcher;
};

/* Who does not know the question is of the version before, and cannot be looked at; nor is what
 * answers with something else. */
static bool take_answer(struct env_answer *heard, void *data)
{
    const struct asking *asking = data;
    struct host *host = g_hash_table_lookup(asking->things->hosts, heard->node);
    const struct strays *strays = heard->record;
    if (strays && strcmp(strays->node, heard->node) == 0)
        host->seen = g_steal_pointer(&heard->record);
    else if (!strays && env_no_answer(heard->error))
        host->next_ms = now_ms(asking->watcher) + interval_ms(asking->watcher);
    return false;
}

static bool ask_hosts(struct things *things, struct watcher *watcher)
{
    g_autoptr(GPtrArray) due = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) nodes = config_list(follow_config(watcher->follow), "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct host *host = host_of(things, watcher, node->uuid);
        g_clear_pointer(&host->seen, strays_free);
        if (!is_due(host, watcher, reports_of(watcher->reports, node->uuid) != NULL))
            continue;
        host->next_ms = now_ms(watcher) + LIMIT_STRAYS_PERIOD_S * G_GINT64_CONSTANT(1000);
        g_ptr_array_add(due, g_strdup(node->uuid));
    }
    struct asking asking = {things, watcher};
    const struct env_question question = {.nodes = due,
                                          .role = ROLE_NODED,
                                          .method = "list_strays",
                                          .stamp = follow_stamp(watcher->follow),
                                          .limit_ms = LIMIT_REPORT_WAIT_MS};
    return due->len == 0 || env_many(watcher->env, &question, take_answer, &asking);
}

/* --- looks at back ends --- */

/* Nodes whose member could be asked; all see the same. */
static GPtrArray *members_of(const struct watcher *watcher, const char *backend)
{
    GPtrArray *members = g_ptr_array_new();
    g_autoptr(GPtrArray) services = config_list(follow_config(watcher->follow), "storage_service");
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (!strcmp(service->backend, backend) && service->binary == STORAGE_VOLUME &&
            service->state == STORAGE_UP && reports_of(watcher->reports, service->node))
            g_ptr_array_add(members, service->node);
    }
    return members;
}

struct asking_stored {
    struct things *things;
    const struct watcher *watcher;
    GPtrArray *backends; /* UUIDs, in the order in which they are asked about */
};

static bool take_stored(struct env_answer *heard, void *data)
{
    const struct asking_stored *asking = data;
    const char *backend = asking->backends->pdata[heard->index];
    struct host *host = g_hash_table_lookup(asking->things->hosts, backend);
    if (heard->record)
        host->stored = g_steal_pointer(&heard->record);
    else
        host->next_ms = now_ms(asking->watcher) + interval_ms(asking->watcher);
    return false;
}

/* Of each that is due one member, another one in the next pass, as this one may hang. */
static bool ask_members(struct things *things, struct watcher *watcher)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) due = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) backends = config_list(follow_config(watcher->follow), "backend");
    g_autofree json_t **each = g_new0(json_t *, backends->len + 1);
    for (guint i = 0; i < backends->len; i++) {
        const struct backend *backend = backends->pdata[i];
        struct host *host = host_of(things, watcher, backend->uuid);
        g_autoptr(GPtrArray) members = members_of(watcher, backend->uuid);
        forget_stored(host);
        if (!is_due(host, watcher, members->len > 0))
            continue;
        const struct compare_stored_args args = {.backend = backend->uuid};
        host->next_ms = now_ms(watcher) + LIMIT_STRAYS_PERIOD_S * G_GINT64_CONSTANT(1000);
        each[due->len] = compare_stored_args_to_json(&args);
        g_ptr_array_add(due, g_strdup(backend->uuid));
        g_ptr_array_add(nodes, g_strdup(members->pdata[watcher->pass % members->len]));
    }
    struct asking_stored asking = {things, watcher, due};
    const struct env_question question = {.nodes = nodes,
                                          .role = ROLE_VOLUMED,
                                          .method = "compare_stored",
                                          .each = each,
                                          .stamp = follow_stamp(watcher->follow),
                                          .limit_ms = LIMIT_COLLECT_WAIT_MS};
    bool alive = due->len == 0 || env_many(watcher->env, &question, take_stored, &asking);
    for (guint i = 0; i < due->len; i++)
        json_decref(each[i]);
    return alive;
}

/* --- what is there --- */

bool things_is_ignored(const struct watcher *watcher, const char *name)
{
    g_auto(GStrv) patterns = g_strsplit(watcher_cluster(watcher)->recovery_ignore, " ", -1);
    bool ignored = false;
    for (char **pattern = patterns; *pattern && !ignored; pattern++)
        ignored = **pattern && g_pattern_match_simple(*pattern, name);
    return ignored;
}

static char *subject_of(const struct look *look, enum thing_kind kind, const char *identity)
{
    g_autofree char *what =
        g_strdup_printf("%s %s", enum_word(&thing_kind_words, (int)kind), identity);
    return config_derived_uuid(look->uuid, what);
}

static void add(struct look *look, enum thing_kind kind, const char *identity, const char *name,
                char *evidence)
{
    struct thing *thing = g_new0(struct thing, 1);
    *thing = (struct thing){kind, subject_of(look, kind, identity), text_head(name, NAME_CHARS),
                            evidence};
    if (things_is_ignored(look->watcher, thing->name))
        thing_free(thing);
    else
        g_hash_table_replace(look->there, thing->subject, thing);
}

/* Also of one that was removed since the node was asked. */
static bool on_record(const struct look *look, const char *instance)
{
    const struct config *config = follow_config(look->watcher->follow);
    return config_get(config, "instance", instance, NULL) ||
           config_get(config, "removed", instance, NULL);
}

static void add_guests(struct look *look, const struct node_report *report)
{
    look->known[THING_GUEST] = true;
    for (guint i = 0; i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (!on_record(look, guest->instance))
            add(look, THING_GUEST, guest->instance, *guest->name ? guest->name : guest->instance,
                g_strdup_printf("instance %s, generation %" G_GUINT64_FORMAT, guest->instance,
                                guest->generation));
    }
}

/* A node of the version before tells the names alone: that is no proof that they are gone. */
static void add_images(struct look *look, const struct node_report *report)
{
    if (late_part_of(report, PART_DISKS) || report->image_sets->len < report->images->len ||
        report->disk_total == 0)
        return;
    look->known[THING_IMAGES] = true;
    for (guint i = 0; i < report->image_sets->len; i++) {
        const struct image_set *set = report->image_sets->pdata[i];
        if (!on_record(look, set->instance))
            add(look, THING_IMAGES, set->instance, set->instance,
                g_strdup_printf("var/disks/%s.*", set->instance));
    }
}

/* All that is named in the cluster, on whichever node it is to be. */
static GHashTable *bridges_of(const struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) networks = config_list(config, "network");
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    g_hash_table_add(names, watcher_cluster(watcher)->default_link);
    g_hash_table_add(names, watcher_cluster(watcher)->master_netdev);
    for (guint i = 0; i < networks->len; i++)
        g_hash_table_add(names, ((const struct network *)networks->pdata[i])->link);
    for (guint i = 0; i < instances->len; i++) {
        const GPtrArray *nics = ((const struct instance *)instances->pdata[i])->nics;
        for (guint at = 0; at < nics->len; at++)
            g_hash_table_add(names, ((const struct nic *)nics->pdata[at])->link);
    }
    return names;
}

static bool is_named(struct look *look, const char *name)
{
    if (strcmp(name, watcher_cluster(look->watcher)->default_link) == 0 ||
        things_is_ignored(look->watcher, name))
        return true;
    if (!*look->bridges)
        *look->bridges = bridges_of(look->watcher);
    return g_hash_table_contains(*look->bridges, name);
}

static void add_bridges(struct look *look, const struct node_report *report)
{
    if (late_part_of(report, PART_BRIDGES))
        return;
    look->known[THING_BRIDGE] = true;
    for (guint i = 0; i < report->bridges->len; i++) {
        const char *name = report->bridges->pdata[i];
        if (!is_named(look, name))
            add(look, THING_BRIDGE, name, name, g_strdup_printf("device %s", name));
    }
}

static void add_strays(struct look *look, const struct strays *seen)
{
    look->known[THING_PROCESS] = seen->processes_known;
    look->known[THING_FILE] = seen->files_known;
    for (guint i = 0; i < seen->processes->len; i++) {
        const struct stray *stray = seen->processes->pdata[i];
        if (!*stray->instance || !on_record(look, stray->instance))
            add(look, THING_PROCESS, stray->identity, stray->name,
                g_strdup_printf("%s, process %" G_GUINT64_FORMAT, stray->identity, stray->pid));
    }
    for (guint i = 0; i < seen->files->len; i++) {
        const char *name = seen->files->pdata[i];
        add(look, THING_FILE, name, name, g_strdup_printf("var/disks/%s", name));
    }
}

static char *name_of_data(const struct stored_data *data)
{
    return g_strdup_printf("%ss/%s", resource_kind(data->resource_type), data->name);
}

/* What the sweep may remove it will. */
static void add_stored(struct look *look, const struct compare_stored_result *stored)
{
    look->known[THING_DATA] = !stored->more;
    for (guint i = 0; i < stored->unknown->len; i++) {
        const struct stored_data *data = stored->unknown->pdata[i];
        g_autofree char *name = name_of_data(data);
        if (data->kept)
            add(look, THING_DATA, name, name,
                g_strdup_printf("%s, %" G_GUINT64_FORMAT " MiB", name, data->bytes / MIB(1)));
    }
}

/* --- decisions --- */

static const char *what_of(enum thing_kind kind)
{
    static const char *const words[] = {
        [THING_GUEST] = "guest that is not on record",
        [THING_IMAGES] = "images of an instance that is not on record",
        [THING_PROCESS] = "process of QEMU that is none of this cluster",
        [THING_FILE] = "file that no record names",
        [THING_BRIDGE] = "bridge that no record names",
        [THING_DATA] = "data that no record names",
        [THING_MORE] = "things without a record that are not told one by one",
    };
    return words[kind];
}

/* Its key follows from the decision before it: made twice – by two passes, or two masters – it is
 * the same object, and the second commit is refused. */
static void tell(struct look *look, enum event_kind event, enum thing_kind kind,
                 const char *subject, const char *name, const char *evidence)
{
    bool gone = event == EVENT_GONE;
    const struct decision *latest = watcher_latest(look->watcher, subject, THINGS_AUTHOR);
    g_autofree char *key = g_strdup_printf("%s %s", enum_word(&event_kind_words, (int)event),
                                           latest ? latest->uuid : "");
    struct decision *decision =
        decision_about("thing", subject, name, THINGS_AUTHOR, gone ? VERDICT_DONE : VERDICT_LEAVE,
                       enum_word(&thing_kind_words, (int)kind));
    g_free(decision->uuid);
    decision->uuid = config_derived_uuid(subject, key);
    decision->event = event;
    decision->level = gone || kind == THING_BRIDGE ? EVENT_LEVEL_INFO : EVENT_LEVEL_WARNING;
    text_set(&decision->rule, "RCV-26");
    text_set(&decision->host, look->name);
    decision_set(&decision->summary,
                 gone ? "Gone from %s%s: %s, %s."
                      : "On %s%s: %s, %s. "
                        "It is left alone.",
                 strchr(look->name, ' ') ? "" : "node ", look->name, what_of(kind), name);
    g_ptr_array_add(decision->evidence, g_strdup(evidence));
    decision_set(&decision->next_check, "%s", gone ? "" : "when it is gone");
    GPtrArray *changes = watcher_changes_new();
    watcher_record(look->watcher, decision, changes);
    watcher_batch_add(look->batch, changes);
}

/* Whether it has differed for long enough. */
static bool differs(struct look *look, const char *subject, enum thing_kind kind)
{
    struct difference *difference = g_hash_table_lookup(look->host->differs, subject);
    gint64 now = now_ms(look->watcher);
    if (!difference) {
        difference = g_new0(struct difference, 1);
        *difference = (struct difference){kind, now, 0};
        g_hash_table_insert(look->host->differs, g_strdup(subject), difference);
        difference->pass = look->watcher->pass;
        return false;
    }
    difference->pass = look->watcher->pass;
    return now - difference->since_ms >= interval_ms(look->watcher);
}

static void compare_there(struct look *look)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, look->there);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct thing *thing = value;
        if (g_hash_table_contains(look->told, thing->subject))
            continue;
        bool process = thing->kind == THING_PROCESS;
        if (look->count >= LIMIT_THINGS)
            look->more = MORE_NAME;
        else if (process && look->processes >= LIMIT_THING_PROCESSES && !look->more)
            look->more = MORE_PROCESSES_NAME;
        if (look->count >= LIMIT_THINGS || (process && look->processes >= LIMIT_THING_PROCESSES))
            continue;
        look->count++;
        look->processes += process;
        if (differs(look, thing->subject, thing->kind))
            tell(look, EVENT_FINDING, thing->kind, thing->subject, thing->name, thing->evidence);
    }
}

static const char *evidence_of(const struct decision *decision)
{
    return decision->evidence->len > 0 ? decision->evidence->pdata[0] : "";
}

static void compare_told(struct look *look)
{
    GHashTableIter iter;
    void *subject, *value;
    g_hash_table_iter_init(&iter, look->told);
    while (g_hash_table_iter_next(&iter, &subject, &value)) {
        const struct decision *decision = value;
        int kind = enum_parse(&thing_kind_words, decision->state);
        if (kind >= 0 && kind < THING_MORE && look->known[kind] &&
            !g_hash_table_contains(look->there, subject) &&
            differs(look, subject, (enum thing_kind)kind))
            tell(look, EVENT_GONE, (enum thing_kind)kind, subject, decision->subject_name,
                 evidence_of(decision));
    }
}

static char *more_of(const struct look *look)
{
    return config_derived_uuid(look->uuid, "more");
}

/* That there are more is over when everything was looked at, and told. */
static void compare_more(struct look *look)
{
    g_autofree char *subject = more_of(look);
    const struct decision *told = g_hash_table_lookup(look->told, subject);
    bool all = true;
    for (guint kind = 0; kind < THING_MORE; kind++)
        all = all && look->known[kind];
    look->known[THING_MORE] = all;
    if (look->more && !told && differs(look, subject, THING_MORE))
        tell(look, EVENT_FINDING, THING_MORE, subject, look->more,
             "as many as are told of one node: " G_STRINGIFY(LIMIT_THINGS) ", " G_STRINGIFY(
                 LIMIT_THING_PROCESSES) " of them processes");
    else if (told && !look->more && all && differs(look, subject, THING_MORE))
        tell(look, EVENT_GONE, THING_MORE, subject, told->subject_name, "");
}

static gboolean is_settled(gpointer subject, gpointer value, gpointer data)
{
    const struct difference *difference = value;
    const struct look *look = data;
    return look->known[difference->kind] && difference->pass != look->watcher->pass;
}

/* Also for what has just been told: had that been refused, it would not wait for an hour. */
static bool waits_for_look(const struct host *host)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, host->differs);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct difference *difference = value;
        if (difference->kind == THING_PROCESS || difference->kind == THING_FILE ||
            difference->kind == THING_DATA)
            return true;
    }
    return false;
}

/* --- the pass --- */

static guint count_processes(GHashTable *told)
{
    GHashTableIter iter;
    void *decision;
    guint count = 0;
    g_hash_table_iter_init(&iter, told);
    while (g_hash_table_iter_next(&iter, NULL, &decision))
        count += enum_parse(&thing_kind_words, ((const struct decision *)decision)->state) ==
                 THING_PROCESS;
    return count;
}

static void compare(struct look *look)
{
    g_autofree char *more = more_of(look);
    look->count = g_hash_table_size(look->told) - (g_hash_table_contains(look->told, more) ? 1 : 0);
    look->processes = count_processes(look->told);
    compare_there(look);
    compare_told(look);
    compare_more(look);
    g_hash_table_foreach_remove(look->host->differs, is_settled, look);
    gint64 soon = now_ms(look->watcher) + interval_ms(look->watcher);
    if ((look->host->seen || look->host->stored) && waits_for_look(look->host))
        look->host->next_ms = MIN(look->host->next_ms, soon);
}

static void look_at_node(struct look *look)
{
    const struct node_report *report = reports_of(look->watcher->reports, look->uuid);
    if (!report)
        return;
    look->there = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, thing_free);
    look->known[THING_DATA] = true;
    add_guests(look, report);
    add_images(look, report);
    add_bridges(look, report);
    if (look->host->seen)
        add_strays(look, look->host->seen);
    compare(look);
    g_hash_table_unref(look->there);
}

/* Of what no sweep may remove that which is on record as there; what is ignored is not. */
static GPtrArray *told_data(const struct look *look)
{
    GPtrArray *told = g_ptr_array_new();
    for (guint i = 0; i < look->host->stored->unknown->len; i++) {
        struct stored_data *data = look->host->stored->unknown->pdata[i];
        g_autofree char *name = name_of_data(data);
        g_autofree char *subject = subject_of(look, THING_DATA, name);
        if (data->kept && g_hash_table_contains(look->told, subject) &&
            g_hash_table_contains(look->there, subject))
            g_ptr_array_add(told, data);
    }
    return told;
}

static void look_at_backend(struct look *look)
{
    if (!look->host->stored)
        return;
    look->there = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, thing_free);
    for (guint kind = 0; kind < THING_MORE; kind++)
        look->known[kind] = kind != THING_DATA;
    add_stored(look, look->host->stored);
    compare(look);
    look->host->data = told_data(look);
    g_hash_table_unref(look->there);
}

/* No node is called so. */
char *things_host_name(const struct backend *backend)
{
    g_autofree char *name = g_strdup_printf("back end %s", backend->name);
    return text_head(name, LIMIT_NAME_CHARS);
}

/* What is on record as there: name of a host -> subject -> decision. What is ignored now, or was on
 * a host that is none of the cluster any more, goes without a word. */
static GHashTable *things_told(struct things *things, struct watcher *watcher, GPtrArray *batch)
{
    const struct config *config = follow_config(watcher->follow);
    GHashTable *hosts =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_unref);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    g_autoptr(GPtrArray) backends = config_list(config, "backend");
    for (guint i = 0; i < nodes->len; i++)
        g_hash_table_insert(hosts, g_strdup(((const struct node *)nodes->pdata[i])->name),
                            g_hash_table_new(g_str_hash, g_str_equal));
    for (guint i = 0; i < backends->len; i++)
        g_hash_table_insert(hosts, things_host_name(backends->pdata[i]),
                            g_hash_table_new(g_str_hash, g_str_equal));
    g_autoptr(GPtrArray) subjects = decisions_open_subjects(watcher->decisions, THINGS_AUTHOR);
    for (guint i = 0; i < subjects->len; i++) {
        const struct decision *decision =
            watcher_latest(watcher, subjects->pdata[i], THINGS_AUTHOR);
        GHashTable *told = g_hash_table_lookup(hosts, decision->host);
        if (told && !things_is_ignored(watcher, decision->subject_name)) {
            g_hash_table_insert(told, decision->subject, (void *)decision);
            continue;
        }
        GPtrArray *changes = watcher_changes_new();
        g_ptr_array_add(changes, config_delete(config, "decision", decision->uuid));
        watcher_batch_add(batch, changes);
    }
    return hosts;
}

static gboolean has_left(gpointer node, gpointer host, gpointer config)
{
    return !config_get(config, "node", node, NULL) && !config_get(config, "backend", node, NULL);
}

/* Last, as the copy goes on while members look. */
static void discard_data(struct things *things, const struct watcher *watcher)
{
    GHashTableIter iter;
    void *uuid, *value;
    g_hash_table_iter_init(&iter, things->hosts);
    while (!task_killed() && g_hash_table_iter_next(&iter, &uuid, &value)) {
        const struct host *host = value;
        if (host->data)
            things_discard(watcher, uuid, host->data);
    }
}

void things_run(struct things *things, struct watcher *watcher)
{
    /* Older than reality: what no record knows may be all that was made since. */
    if (watcher_is_restored(watcher) || !ask_hosts(things, watcher) ||
        !ask_members(things, watcher))
        return;
    const struct config *config = follow_config(watcher->follow);
    g_hash_table_foreach_remove(things->hosts, has_left, (gpointer)config);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    g_autoptr(GHashTable) told = things_told(things, watcher, batch);
    g_autoptr(GHashTable) bridges = NULL;
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct look look = {.things = things,
                            .watcher = watcher,
                            .uuid = node->uuid,
                            .name = node->name,
                            .host = host_of(things, watcher, node->uuid),
                            .told = g_hash_table_lookup(told, node->name),
                            .bridges = &bridges,
                            .batch = batch};
        look_at_node(&look);
    }
    g_autoptr(GPtrArray) backends = config_list(config, "backend");
    for (guint i = 0; i < backends->len; i++) {
        const struct backend *backend = backends->pdata[i];
        g_autofree char *name = things_host_name(backend);
        struct look look = {.things = things,
                            .watcher = watcher,
                            .uuid = backend->uuid,
                            .name = name,
                            .host = host_of(things, watcher, backend->uuid),
                            .told = g_hash_table_lookup(told, name),
                            .bridges = &bridges,
                            .batch = batch};
        look_at_backend(&look);
    }
    watcher_batch_commit_as(watcher, "recover", batch);
    discard_data(things, watcher);
}

/* See import.h. Object by object the document is laid over what is there; then the whole is judged
 * by the invariants that every commit has to keep. */
#include "core/import/import.h"

#include <string.h>

#include "core/config/invariants.h"
#include "core/config/ports.h"
#include "core/job/rules.h"
#include "proto/change.h"

#define SAID_CHARS 900 /* of one sentence; a record takes LIMIT_STRING_CHARS */

/* What a document may say about a kind. Kinds that are not here are the cluster's own. */
struct kind_rule {
    const char *kind;
    const char *const *keeps; /* fields that describe reality, or identity */
    const char *const *told;  /* those of them whose difference is worth a note */
    const char *missing;      /* why an object that the document lacks stays; NULL: it goes */
    const char *added;        /* why one that is not there cannot be added; NULL: it can */
    bool secret;              /* a document without any word of them says nothing of them */
};

static const char *const cluster_keeps[] = {"uuid",    "master_node",   "engine",
                                            "alone",   "authority",     "etcd_authority",
                                            "renewal", "renewal_since", NULL};
static const char *const cluster_told[] = {"engine", NULL};
static const char *const node_keeps[] = {
    "primary_ip",    "port",          "master_candidate", "offline",  "offline_statement",
    "offline_since", "unheard_since", "keys_missed",      "key_hash", NULL};
static const char *const node_told[] = {"primary_ip", "port", "master_candidate", "offline", NULL};
static const char *const instance_keeps[] = {"ctime",
                                             "disk_template",
                                             "disks",
                                             "primary_node",
                                             "secondary_node",
                                             "replica",
                                             "generation",
                                             "holder",
                                             "clean",
                                             "sound",
                                             "task_state",
                                             "task_owner",
                                             "task_since",
                                             "task_over",
                                             "migration",
                                             "migration_node",
                                             NULL};
static const char *const instance_told[] = {"disk_template", "disks", "primary_node",
                                            "secondary_node", NULL};
static const char *const backend_keeps[] = {"kind", "path", NULL};
static const char *const volume_keeps[] = {"created_us", "updated_us", "request_id",  "size",
                                           "status",     "status_why", "backend",     "host",
                                           "data",       "project",    "volume_type", NULL};
static const char *const snapshot_keeps[] = {"created_us", "updated_us", "request_id", "volume",
                                             "size",       "status",     "status_why", "backend",
                                             "host",       "data",       "project",    NULL};
static const char *const backup_keeps[] = {
    "created_us", "updated_us", "request_id", "volume", "size", "status",  "status_why",
    "backend",    "host",       "data",       "bytes",  "sum",  "project", NULL};
static const char *const image_keeps[] = {
    "created_us",   "updated_us", "request_id",    "size",    "status",
    "status_why",   "backend",    "host",          "data",    "disk_format",
    "virtual_size", "checksum",   "os_hash_value", "project", NULL};
static const char *const volume_told[] = {"size", "backend", NULL};
static const char *const webhook_keeps[] = {"begins", "round", "test", NULL};
static const char *const nothing_kept[] = {NULL};

/* In this order, so that what is referred to is there first. */
static const struct kind_rule rules[] = {
    {"nodegroup", nothing_kept, nothing_kept, NULL, NULL},
    {"cluster", cluster_keeps, cluster_told, "it is this cluster", "a store has one cluster"},
    {"network", nothing_kept, nothing_kept, NULL, NULL},
    {"node", node_keeps, node_told,
     "an import removes no node; take it out with `fettle node remove`, or put it into the file",
     "a host becomes a node with a token of `fettle node invite`; take it out of the file"},
    {"instance", instance_keeps, instance_told,
     "an import removes no instance; use `fettle instance remove`, or put it into the file", NULL},
    {"backend", backend_keeps, backend_keeps,
     "an import removes no back end; use `fettle backend remove`, or put it into the file",
     "its nodes are asked first: make it with `fettle backend add`, and take it out of the file"},
    {"volume_type", nothing_kept, nothing_kept, NULL, NULL},
    {"volume", volume_keeps, volume_told,
     "an import deletes no volume; use `fettle volume delete`, or put it into the file",
     "its data is not in the file; take it out"},
    {"snapshot", snapshot_keeps, volume_told,
     "an import deletes no snapshot; use `fettle snapshot delete`, or put it into the file",
     "its data is not in the file; take it out"},
    {"backup", backup_keeps, volume_told,
     "an import deletes no backup; use `fettle backup delete`, or put it into the file",
     "its data is not in the file; take it out"},
    {"image", image_keeps, volume_told,
     "an import deletes no image; use `fettle image delete`, or put it into the file",
     "its data is not in the file; take it out"},
    {"tag", nothing_kept, nothing_kept, NULL, NULL},
    {"rapi_user", nothing_kept, nothing_kept, NULL, NULL, .secret = true},
    {"webhook", webhook_keeps, nothing_kept, NULL, NULL, .secret = true},
    {"advice", nothing_kept, nothing_kept, NULL, NULL},
    {"job_filter", nothing_kept, nothing_kept, NULL, NULL},
};

struct work {
    struct import *import;
    const struct config *now;
    const json_t *objects; /* of the document */
};

/* --- sentences --- */

struct import *import_new(void)
{
    struct import *import = g_new0(struct import, 1);
    import->changes = change_list_new();
    import->lines = g_ptr_array_new_with_free_func(g_free);
    import->notes = g_ptr_array_new_with_free_func(g_free);
    import->problems = g_ptr_array_new_with_free_func(g_free);
    return import;
}

void import_free(struct import *import)
{
    if (!import)
        return;
    g_ptr_array_unref(import->changes);
    g_ptr_array_unref(import->lines);
    g_ptr_array_unref(import->notes);
    g_ptr_array_unref(import->problems);
    g_free(import);
}

/* One line of text, whatever the document has in it. */
static void add_said(GPtrArray *list, const char *format, va_list args)
{
    if (list->len >= LIMIT_PLAN_LINES)
        return;
    g_autofree char *raw = g_strdup_vprintf(format, args);
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    for (char *at = text; *at; at++)
        *at = (guchar)*at < ' ' ? ' ' : *at;
    if (g_utf8_strlen(text, -1) > SAID_CHARS) {
        g_autofree char *head = g_utf8_substring(text, 0, SAID_CHARS);
        g_ptr_array_add(list, g_strconcat(head, " …", NULL));
    } else {
        g_ptr_array_add(list, g_steal_pointer(&text));
    }
}

static void say(GPtrArray *list, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void say(GPtrArray *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_said(list, format, args);
    va_end(args);
}

void import_note(struct import *import, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_said(import->notes, format, args);
    va_end(args);
}

void import_problem(struct import *import, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_said(import->problems, format, args);
    va_end(args);
}

char *import_digest(const struct import *import)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    const GPtrArray *const lists[] = {import->lines, import->notes, import->problems};
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (guint j = 0; j < lists[i]->len; j++) {
            const char *line = lists[i]->pdata[j];
            g_checksum_update(sum, (const guchar *)line, (gssize)strlen(line) + 1);
        }
        g_checksum_update(sum, (const guchar *)"\n", 1);
    }
    return g_strdup(g_checksum_get_string(sum));
}

/* A value as a person reads it. */
static char *value_text(const json_t *value)
{
    if (!value)
        return g_strdup("nothing");
    if (json_is_string(value))
        return *json_string_value(value) ? g_strdup(json_string_value(value)) : g_strdup("nothing");
    return json_is_object(value) || json_is_array(value)
               ? json_to_text(value)
               : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* "instance web1", "tag x of instance web1": shorter than what an error says. */
static char *subject_of(const struct work *work, const char *kind, const char *key,
                        const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    if (strcmp(kind, "tag") != 0)
        return g_strdup_printf("%s %s", kind, name ? name : key);
    const char *of = json_string_value(json_object_get(object, "kind"));
    const char *uuid = json_string_value(json_object_get(object, "object"));
    const char *text = json_string_value(json_object_get(object, "tag"));
    if (!of || !uuid || !text)
        return g_strdup_printf("tag %s", key);
    json_autoptr here = config_object_json(work->now, of, uuid);
    const json_t *said = json_object_get(json_object_get(work->objects, of), uuid);
    const char *owner_name = json_string_value(json_object_get(here ? here : said, "name"));
    return g_strdup_printf("tag %s of %s %s", text, of, owner_name ? owner_name : uuid);
}

/* What nobody may read who sees what was imported. */
static bool is_secret(const char *field)
{
    static const char *const fields[] = {"hash", "secret", NULL};
    return g_strv_contains(fields, field);
}

/* "memory: 128 -> 256, vcpus: 1 -> 2, secret: another one" */
static char *differences(const struct kind_rule *rule, const json_t *before, const json_t *after)
{
    GString *text = g_string_new(NULL);
    const char *field;
    json_t *value;
    json_object_foreach((json_t *)after, field, value) {
        json_t *old = json_object_get(before, field);
        if (json_equal(old, value))
            continue;
        g_string_append_printf(text, "%s%s: ", text->len ? ", " : "", field);
        if (rule->secret && is_secret(field)) {
            g_string_append(text, "another one");
            continue;
        }
        g_autofree char *from = value_text(old);
        g_autofree char *to = value_text(value);
        g_string_append_printf(text, "%s -> %s", from, to);
    }
    return g_string_free(text, FALSE);
}

/* --- one object --- */

/* A rule about jobs that cannot be read would be passed over. */
static bool can_be_used(const char *kind, const void *value, GError **error)
{
    return strcmp(kind, "job_filter") != 0 || rules_check_filter(value, error);
}

/* As every object of the cluster is written, so that the two can be compared; NULL and a problem
 * that names object and field. */
static json_t *normal_form(struct work *work, const char *kind, const char *key,
                           const json_t *object)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *subject = subject_of(work, kind, key, object);
    const struct record *record = object_record(kind);
    void *value = record_parse(record, object, RECORD_KEEP, &error);
    json_t *normal = NULL;
    if (value && can_be_used(kind, value, &error))
        normal = record_to_json(record, value);
    else
        import_problem(work->import, "%s: %s", subject, error->message);
    record_free(record, value);
    return normal;
}

static bool has(const char *const *list, const char *word)
{
    return g_strv_contains(list, word);
}

/* What describes reality stays. */
static void keep_reality(struct work *work, const struct kind_rule *rule, const char *subject,
                         const json_t *before, json_t *after)
{
    for (const char *const *field = rule->keeps; *field; field++) {
        json_t *is = json_object_get(before, *field);
        json_t *said = json_object_get(after, *field);
        if (json_equal(is, said))
            continue;
        if (has(rule->told, *field)) {
            g_autofree char *stays = value_text(is);
            g_autofree char *wish = value_text(said);
            import_note(work->import, "%s: %s stays %s (the file has %s)", subject, *field, stays,
                        wish);
        }
        json_object_set(after, *field, is);
    }
}

/* A display stays while the guest may run, and a port that is not given out is not taken. */
static void keep_display(struct work *work, const char *subject, const json_t *before,
                         json_t *after)
{
    static const char *const fields[] = {"vnc_bind_address", "network_port", NULL};
    static const struct kind_rule shown = {"instance", fields, fields, NULL, NULL};
    json_autoptr none = json_make("{ss si}", "vnc_bind_address", "", "network_port", 0);
    const char *holder = json_string_value(json_object_get(before, "holder"));
    const json_t *is = before ? before : none;
    guint64 port = (guint64)json_integer_value(json_object_get(after, "network_port"));
    bool other = port && !json_equal(json_object_get(after, "network_port"),
                                     json_object_get(is, "network_port"));
    if ((holder && *holder) || (other && !port_is_in_range(work->now, port, NULL)))
        keep_reality(work, &shown, subject, is, after);
}

/* A new instance has nothing yet but its record. */
static void make_new(struct work *work, const char *subject, json_t *instance)
{
    static const char *const emptied[] = {"secondary_node", "replica",   "holder",
                                          "task_state",     "task_over", "migration",
                                          "migration_node"};
    for (guint i = 0; i < G_N_ELEMENTS(emptied); i++)
        json_object_set_new(instance, emptied[i], json_string(""));
    static const char *const zeroed[] = {"generation", "task_owner", "task_since"};
    for (guint i = 0; i < G_N_ELEMENTS(zeroed); i++)
        json_object_set_new(instance, zeroed[i], json_integer(0));
    json_object_set_new(instance, "clean", json_false());
    json_object_set_new(instance, "sound", json_string("unknown"));
    json_object_set_new(instance, "admin_state", json_string("down"));
    bool disks = json_array_size(json_object_get(instance, "disks")) > 0;
    const char *name = json_string_value(json_object_get(instance, "name"));
    if (disks)
        import_note(work->import,
                    "%s: comes stopped and without images; `fettle instance recreate-disks %s` "
                    "makes blank ones",
                    subject, name);
}

static void add_put(struct work *work, const char *kind, const char *key, json_t *object)
{
    g_ptr_array_add(work->import->changes, config_put(work->now, kind, key, object));
}

static void lay_over(struct work *work, const struct kind_rule *rule, const char *key,
                     const json_t *object)
{
    json_autoptr before = config_object_json(work->now, rule->kind, key);
    g_autofree char *subject = subject_of(work, rule->kind, key, before ? before : object);
    if (!before && rule->added) {
        import_problem(work->import, "%s (%s): is not in this cluster; %s", subject, key,
                       rule->added);
        return;
    }
    json_autoptr after = normal_form(work, rule->kind, key, object);
    if (!after)
        return;
    if (!strcmp(rule->kind, "instance"))
        keep_display(work, subject, before, after);
    if (before) {
        keep_reality(work, rule, subject, before, after);
        if (json_equal(before, after))
            return;
        g_autofree char *what = differences(rule, before, after);
        say(work->import->lines, "change %s: %s", subject, what);
    } else {
        if (!strcmp(rule->kind, "instance"))
            make_new(work, subject, after);
        say(work->import->lines, "add %s", subject);
    }
    add_put(work, rule->kind, key, json_steal(&after));
}

/* --- what the document lacks --- */

struct lack {
    struct work *work;
    const struct kind_rule *rule;
    GPtrArray *keys;
};

static void find_lack(const char *kind, const char *key, guint64 version, const void *value,
                      void *data)
{
    struct lack *lack = data;
    if (!strcmp(kind, lack->rule->kind) &&
        !json_object_get(json_object_get(lack->work->objects, kind), key))
        g_ptr_array_add(lack->keys, g_strdup(key));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void take_away(struct work *work, const struct kind_rule *rule)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    struct lack lack = {work, rule, keys};
    if (rule->secret && !json_object_get(work->objects, rule->kind))
        return;
    config_each(work->now, find_lack, &lack);
    g_ptr_array_sort(keys, compare_texts);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = keys->pdata[i];
        json_autoptr object = config_object_json(work->now, rule->kind, key);
        g_autofree char *subject = subject_of(work, rule->kind, key, object);
        if (rule->missing) {
            import_problem(work->import, "%s (%s): is not in the file; %s", subject, key,
                           rule->missing);
            continue;
        }
        say(work->import->lines, "remove %s", subject);
        if (!strcmp(rule->kind, "webhook") && config_get(work->now, "webhook_mark", key, NULL))
            g_ptr_array_add(work->import->changes, config_delete(work->now, "webhook_mark", key));
        g_ptr_array_add(work->import->changes, config_delete(work->now, rule->kind, key));
    }
}

/* --- the document --- */

static bool check_head(const struct config *now, const json_t *document, GError **error)
{
    const struct cluster *cluster = config_cluster(now);
    const json_t *of = json_object_get(document, "cluster");
    const char *format = json_string_value(json_object_get(document, "format"));
    const char *uuid = json_string_value(json_object_get(of, "uuid"));
    const char *name = json_string_value(json_object_get(of, "name"));
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (g_strcmp0(format, DOCUMENT_FORMAT) != 0)
        fettle_set_error(error, WRONG_INPUT,
                         "format: is not \"" DOCUMENT_FORMAT
                         "\"; this is no file of `fettle cluster export`");
    else if (version > DOCUMENT_VERSION)
        fettle_set_error(error, WRONG_INPUT,
                         "version: is %" JSON_INTEGER_FORMAT
                         "; this version of Fettle reads %d and older: import it with the newer "
                         "Fettle that wrote it",
                         version, DOCUMENT_VERSION);
    else if (version < 1)
        fettle_set_error(error, WRONG_INPUT, "version: must be a number from 1 on");
    else if (g_strcmp0(uuid, cluster->uuid) != 0)
        fettle_set_error(error, WRONG_INPUT,
                         "cluster.uuid: is %s (%s), and this is the cluster %s (%s); a document "
                         "goes back only into the cluster that it came from",
                         uuid ? uuid : "missing", name ? name : "without a name", cluster->uuid,
                         cluster->name);
    else if (!json_is_object(json_object_get(document, "objects")))
        fettle_set_error(error, WRONG_INPUT, "objects: must be an object");
    else
        return true;
    return false;
}

static const struct kind_rule *rule_of(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(rules); i++) {
        if (!strcmp(rules[i].kind, kind))
            return &rules[i];
    }
    return NULL;
}

/* Kinds that this version does not know would be lost without a word. */
static bool check_kinds(struct work *work, GError **error)
{
    g_autoptr(GString) own = g_string_new(NULL);
    const char *kind;
    json_t *objects;
    json_object_foreach((json_t *)work->objects, kind, objects) {
        if (!object_record(kind)) {
            fettle_set_error(error, WRONG_INPUT, "objects.%s: is no kind of object", kind);
            return false;
        }
        if (!json_is_object(objects)) {
            fettle_set_error(error, WRONG_INPUT, "objects.%s: must be an object", kind);
            return false;
        }
        if (!rule_of(kind) && json_object_size(objects))
            g_string_append_printf(own, "%s%s (%zu)", own->len ? ", " : "", kind,
                                   json_object_size(objects));
    }
    if (own->len)
        import_note(work->import, "not taken from the file, because the cluster has its own: %s",
                    own->str);
    return true;
}

static void check_number(struct work *work)
{
    size_t count = json_object_size(json_object_get(work->objects, "job_filter"));
    if (count > LIMIT_RULES)
        import_problem(work->import,
                       "job_filter: there would be %zu rules about jobs; at most %d "
                       "are taken",
                       count, LIMIT_RULES);
}

static void lay_over_kind(struct work *work, const struct kind_rule *rule)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    json_t *objects = json_object_get(work->objects, rule->kind);
    const char *key;
    json_t *object;
    json_object_foreach(objects, key, object)
        g_ptr_array_add(keys, (char *)key);
    g_ptr_array_sort(keys, compare_texts);
    for (guint i = 0; i < keys->len; i++) {
        object = json_object_get(objects, keys->pdata[i]);
        if (json_is_object(object))
            lay_over(work, rule, keys->pdata[i], object);
        else
            import_problem(work->import, "%s %s: must be an object", rule->kind,
                           (const char *)keys->pdata[i]);
    }
}

/* --- the whole --- */

static void share_object(const char *kind, const char *key, guint64 version, const void *value,
                         void *data)
{
    struct config *const *pair = data;
    config_set(pair[1], kind, key, config_peek(pair[0], kind, key));
}

/* By the rules of every commit; the first that is broken is enough of a problem. */
static void judge(struct work *work)
{
    GPtrArray *changes = work->import->changes;
    struct config *after = config_new();
    struct config *pair[] = {(struct config *)work->now, after};
    g_autoptr(GPtrArray) deltas = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    config_each(work->now, share_object, pair);
    bool good = true;
    for (guint i = 0; good && i < changes->len; i++)
        good = config_apply(after, changes->pdata[i], &error);
    for (guint i = 0; good && i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        struct config_delta *delta = g_new(struct config_delta, 1);
        *delta = (struct config_delta){change->kind, change->key,
                                       config_get(work->now, change->kind, change->key, NULL),
                                       config_get(after, change->kind, change->key, NULL)};
        g_ptr_array_add(deltas, delta);
    }
    if (!good || !invariants_check(after, deltas, AUTHOR_COMMIT, &error))
        import_problem(work->import, "%s", error->message);
    config_free(after);
}

bool import_document(struct import *import, const struct config *now, const json_t *document,
                     GError **error)
{
    struct work work = {import, now, json_object_get(document, "objects")};
    if (!check_head(now, document, error) || !check_kinds(&work, error))
        return false;
    check_number(&work);
    for (guint i = 0; i < G_N_ELEMENTS(rules); i++)
        lay_over_kind(&work, &rules[i]);
    for (guint i = G_N_ELEMENTS(rules); i > 0; i--)
        take_away(&work, &rules[i - 1]);
    if (!import->problems->len)
        judge(&work);
    return true;
}

/*
 * Answers of etcd's gateway from any bytes, and values that a member may have damaged. The first
 * byte says what it is (table `kinds`); anything else is an answer to a question for keys: keys
 * with values or words, never both. What is accepted is written and read back as it was.
 */
#include "fuzz.h"
#include "io/etcd/etcd_compare.h"
#include "io/etcd/etcd_member.h"
#include "io/etcd/etcd_private.h"
#include "io/etcd/etcd_value.h"

#include <string.h>

static void check_head(const GPtrArray *kvs)
{
    g_autoptr(GError) error = NULL;
    struct etcd_head head = {0}, again = {0};
    if (!etcd_head_parse(kvs, &head, &error)) {
        g_assert_nonnull(error);
        return;
    }
    g_assert_no_error(error);
    if (kvs->len == 0) {
        g_assert_cmpint(head.revision, ==, 0);
        return;
    }
    const struct etcd_kv *first = kvs->pdata[0];
    g_autofree char *text = etcd_head_text(&head);
    struct etcd_kv kv = *first;
    kv.value = text;
    g_autoptr(GPtrArray) written = g_ptr_array_new();
    g_ptr_array_add(written, &kv);
    g_assert_true(etcd_head_parse(written, &again, &error));
    g_assert_cmpuint(again.history, ==, head.history);
    g_assert_cmpuint(again.serial, ==, head.serial);
    g_assert_cmpint(again.revision, ==, head.revision);
    g_assert_cmpstr(again.batch, ==, head.batch);
}

static void check_kvs(GPtrArray *kvs, GError *error)
{
    g_assert_true((kvs != NULL) != (error != NULL));
    for (guint i = 0; kvs != NULL && i < kvs->len; i++) {
        const struct etcd_kv *kv = kvs->pdata[i];
        g_assert_nonnull(kv->key);
        g_assert_nonnull(kv->value);
    }
    if (kvs != NULL) {
        check_head(kvs);
        g_ptr_array_unref(kvs);
    }
    g_clear_error(&error);
}

static void try_keys(const json_t *answer)
{
    (void)etcd_revision(answer);
    (void)etcd_succeeded(answer);
    (void)etcd_number(answer, "ID");
    GError *error = NULL;
    bool more = false;
    GPtrArray *kvs = etcd_kvs(answer, &more, &error);
    check_kvs(kvs, error);
    for (guint i = 0; i < 3; i++) {
        error = NULL;
        kvs = etcd_txn_kvs(answer, i, &error);
        check_kvs(kvs, error);
    }
}

/* --- members --- */

static void try_members(const json_t *answer)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) members = etcd_members_parse(answer, &error);
    g_assert_true((members != NULL) != (error != NULL));
    for (guint i = 0; members != NULL && i < members->len; i++) {
        const struct etcd_listed *listed = members->pdata[i];
        g_autofree char *id = etcd_id_text(listed->id);
        g_assert_cmpuint(listed->id, !=, 0);
        g_assert_cmpuint(etcd_id_parse(id), ==, listed->id);
        g_assert_nonnull(listed->name);
        g_assert_nonnull(listed->client_url);
        g_assert_nonnull(etcd_members_find(members, listed->peer_url));
    }
}

/* It goes to other nodes as a record: what it takes in must pass there. */
static void try_status(const json_t *answer)
{
    record_autoptr(member_status) status = member_status_new();
    g_autoptr(GError) error = NULL;
    etcd_status_parse(answer, status);
    etcd_alarms_parse(answer, status);
    json_autoptr told = member_status_to_json(status);
    record_autoptr(member_status) again = member_status_parse(told, RECORD_LAX, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(again->id, ==, status->id);
    g_assert_cmpuint(again->alarms->len, ==, status->alarms->len);
}

static void try_alarms(const json_t *answer)
{
    g_assert_cmpuint(etcd_alarms_count(answer, "NOSPACE", 5), <=,
                     etcd_alarms_count(answer, "NOSPACE", G_MAXUINT64));
    try_status(answer);
}

/* One member of three says this. */
static void try_hash(const json_t *answer)
{
    struct etcd_content contents[3] = {{.known = true, .hash = 5, .compacted = 7},
                                       {.known = true, .hash = 5, .compacted = 7}};
    etcd_content_parse(answer, &contents[2]);
    g_assert_true(contents[2].known);
    bool same = contents[2].hash == 5 || contents[2].compacted != 7;
    enum etcd_verdict verdict = etcd_contents_judge(contents, 3);
    g_assert_cmpint(verdict, ==, same ? ETCD_CONTENTS_SAME : ETCD_CONTENTS_ODD);
    g_assert_cmpint(contents[2].odd, ==, !same);
}

static void try_lease(const json_t *answer)
{
    (void)etcd_lease_left(answer);
}

/* The status is a number in it. */
static void try_refusal(const json_t *answer)
{
    guint status = (guint)etcd_number(answer, "status");
    for (guint sent = 0; sent < 2; sent++) {
        g_autoptr(GError) reason = NULL;
        bool refused = etcd_refusal(status, answer, "/v3/kv/txn", sent != 0, &reason);
        g_assert_nonnull(reason);
        g_assert_true(refused == (reason->domain == FETTLE_ERROR));
    }
}

/* --- values, behind the name of their key and the end of a line --- */

static void try_object(const char *name, const char *value)
{
    const char *slash = strchr(name, '/');
    guint64 version = 0, again = 0;
    bool sound = etcd_object_sound(name, value);
    g_autofree char *text = etcd_object_parse(value, &version);
    json_autoptr object =
        text != NULL ? json_parse_limited(text, strlen(text), MIB(1), NULL) : NULL;
    g_assert_true(!sound || !etcd_value_is_checked(value) || object != NULL || text == NULL);
    if (!json_is_object(object) || slash == NULL)
        return;
    g_autofree char *kind = g_strndup(name, (gsize)(slash - name));
    g_autofree char *written = etcd_object_text(kind, slash + 1, version, object);
    g_assert_true(etcd_object_sound(name, written));
    g_assert_true(etcd_value_is_checked(written));
    g_autofree char *read = etcd_object_parse(written, &again);
    g_assert_nonnull(read);
    g_assert_cmpuint(again, ==, version);
}

static void try_list(const char *name, const char *value)
{
    json_autoptr list = json_parse_limited(value, strlen(value), MIB(1), NULL);
    g_assert_true(!etcd_list_sound(name, value) || etcd_value_is_checked(value) ||
                  json_is_array(list));
    if (json_array_size(list) == 0)
        return;
    g_autofree char *written = etcd_list_text(name, list);
    g_assert_true(etcd_list_sound(name, written));
    json_autoptr read = json_parse_limited(written, strlen(written), MIB(2), NULL);
    g_assert_cmpuint(json_array_size(read), ==, json_array_size(list) + 1);
}

static void count_id(const char *id, guint64 serial, void *data)
{
    g_assert_nonnull(id);
    ++*(guint *)data;
}

static void try_ids(const char *value)
{
    json_autoptr list = json_parse_limited(value, strlen(value), MIB(1), NULL);
    guint ids = 0, deleted = 0;
    etcd_ids_each(list, count_id, count_id, &ids);
    etcd_ids_each(list, count_id, NULL, &deleted);
    g_assert_cmpuint(deleted, <=, ids);
    g_assert_cmpuint(etcd_ids_first(list, 100), <=, 101);
}

static void try_count(const char *name, const char *value)
{
    guint64 count = 0, again = 0;
    if (!etcd_count_parse(name, value, &count))
        return;
    g_autofree char *written = etcd_count_text(name, count);
    g_assert_true(etcd_count_parse(name, written, &again));
    g_assert_cmpuint(again, ==, count);
}

static void try_value(const char *text)
{
    const char *end = strchr(text, '\n');
    struct mastership mastership;
    if (end == NULL)
        return;
    g_autofree char *name = g_strndup(text, (gsize)(end - text));
    try_object(name, end + 1);
    try_list(name, end + 1);
    try_ids(end + 1);
    try_count(name, end + 1);
    (void)etcd_mastership_parse(end + 1, &mastership);
}

static const struct {
    char letter;
    void (*fn)(const json_t *answer);
} kinds[] = {
    {'m', try_members}, {'s', try_status}, {'a', try_alarms},
    {'h', try_hash},    {'k', try_lease},  {'e', try_refusal},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    void (*fn)(const json_t *answer) = try_keys;
    if (len > 0 && data[0] == 'v') { /* a value has no NUL: etcd_kvs() takes none */
        g_autofree char *text = g_strndup((const char *)data + 1, len - 1);
        try_value(text);
        return 0;
    }
    for (guint i = 0; len > 0 && i < G_N_ELEMENTS(kinds); i++)
        if (data[0] == kinds[i].letter)
            fn = kinds[i].fn;
    size_t skip = fn == try_keys ? 0 : 1;
    json_autoptr answer = json_parse_limited((const char *)data + skip, len - skip, MIB(1), NULL);
    if (answer != NULL)
        fn(answer);
    return 0;
}

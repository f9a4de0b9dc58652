/* See rapi_users.h. */
#include "core/rapi/rapi_users.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/rapi/rapi_users_file.h"

#define USERS_FILE "users"
#define FRESH_MS 1000 /* so old may be what is known of who may ask */
#define SCHEME "Basic "
#define SECRET_BYTES 32
/* Of a password that nobody has: whoever has no name here takes as long as whoever has one. */
#define NOBODYS "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7"

struct rapi_users {
    const struct env *env;
    struct rapi_luxid *luxid;
    struct crypto *crypto;
    char *file;            /* as it was read last; NULL: there is none */
    char *said;            /* why it cannot be read, as it was said last */
    GHashTable *of_file;   /* name -> struct rapi_listed */
    GHashTable *on_record; /* the same; NULL: they are not known */
    bool anonymous_reads;
    gint64 file_ms, record_ms; /* when they were looked at */
    struct task_mutex reading, asking;
    guint64 questions;     /* to luxid, that are over */
    GError *failure;       /* of the last one; NULL: it was answered */
    GHashTable *addresses; /* of host_of() -> struct address */
    GHashTable *checked; /* name -> sum of what was right, so that it is not checked slowly again */
    guchar secret[SECRET_BYTES]; /* of these sums */
};

/* Who has given wrong passwords lately, or gives one now. */
struct address {
    gint64 since_ms; /* of the first one of them */
    guint failures;
    guint users; /* requests that are being checked */
    struct task_mutex checking;
};

struct rapi_users *rapi_users_new(const struct env *env, struct rapi_luxid *luxid,
                                  struct crypto *crypto)
{
    struct rapi_users *users = g_new0(struct rapi_users, 1);
    users->env = env;
    users->luxid = luxid;
    users->crypto = crypto;
    users->of_file = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, rapi_listed_free);
    users->file_ms = users->record_ms = -FRESH_MS;
    users->addresses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    users->checked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    crypto->ops->random(crypto, users->secret, sizeof users->secret);
    return users;
}

void rapi_users_free(struct rapi_users *users)
{
    g_hash_table_unref(users->of_file);
    if (users->on_record)
        g_hash_table_unref(users->on_record);
    g_hash_table_unref(users->addresses);
    g_hash_table_unref(users->checked);
    g_clear_error(&users->failure);
    g_free(users->file);
    g_free(users->said);
    g_free(users);
}

static gint64 now_ms(const struct rapi_users *users)
{
    return users->env->ops->boot_ms(users->env);
}

/* --- those of the file --- */

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

static void take_file(struct rapi_users *users, const char *text)
{
    if (users->file && g_strcmp0(users->file, text) == 0)
        return;
    text_set(&users->file, text);
    g_hash_table_unref(users->of_file);
    users->of_file = rapi_users_file_parse(text, complain, users);
}

static bool lock(struct task_mutex *mutex, GError **error)
{
    if (task_mutex_lock(mutex))
        return true;
    fettle_set_error(error, KILLED, "the calling process ends");
    return false;
}

/* One that cannot be read has no users, and is told of once. */
static void look_at_file(struct rapi_users *users)
{
    const struct env *env = users->env;
    g_autoptr(GError) error = NULL;
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_RAPI, USERS_FILE, LIMIT_RAPI_USERS_BYTES, &len, &error);
    if (fettle_error_is(error, KILLED))
        return;
    users->file_ms = now_ms(users);
    take_file(users, text ? text : "");
    bool unreadable = error && !fettle_error_is(error, UNKNOWN_ENTITY);
    if (unreadable && g_strcmp0(users->said, error->message) != 0)
        log_warning("", "rapi/users: nobody of it counts: %s", error->message);
    text_set(&users->said, unreadable ? error->message : NULL);
}

/* One after the other, so that a crowd reads it once. */
static bool know_file(struct rapi_users *users, GError **error)
{
    if (!lock(&users->reading, error))
        return false;
    if (now_ms(users) - users->file_ms >= FRESH_MS)
        look_at_file(users);
    task_mutex_unlock(&users->reading);
    return true;
}

/* --- those on record --- */

static void take_record(struct rapi_users *users, const json_t *answer)
{
    if (users->on_record)
        g_hash_table_unref(users->on_record);
    users->on_record = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, rapi_listed_free);
    users->anonymous_reads = json_is_true(json_object_get(answer, "anonymous_reads"));
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(answer, "users"), i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        const char *hash = json_string_value(json_object_get(row, "hash"));
        if (!name || !hash)
            continue;
        struct rapi_listed *listed = g_new(struct rapi_listed, 1);
        *listed = (struct rapi_listed){g_strdup(name), RAPI_CRYPT, g_strdup(hash),
                                       json_is_true(json_object_get(row, "write"))};
        g_hash_table_replace(users->on_record, listed->name, listed);
    }
}

static bool is_fresh(const struct rapi_users *users)
{
    return users->on_record && now_ms(users) - users->record_ms < FRESH_MS;
}

static void ask(struct rapi_users *users)
{
    gint64 asked_ms = now_ms(users);
    g_clear_error(&users->failure);
    json_autoptr answer = users->luxid->call(users->luxid, FACE_OWN, "QueryRapiUsers", json_array(),
                                             NULL, 0, &users->failure);
    if (answer) {
        take_record(users, answer);
        users->record_ms = asked_ms;
    }
    users->questions++;
}

/* One question at a time. What becomes of it, also if nothing does, is the answer to all who came
 * while it was under way: a luxid that stands still keeps nobody longer than one call. */
static bool know_record(struct rapi_users *users, GError **error)
{
    guint64 questions = users->questions;
    if (is_fresh(users))
        return true;
    if (!lock(&users->asking, error))
        return false;
    if (users->questions == questions && !is_fresh(users))
        ask(users);
    if (users->failure)
        g_propagate_error(error, g_error_copy(users->failure));
    bool known = !users->failure;
    task_mutex_unlock(&users->asking);
    return known;
}

/* A copy of what is known of him; NULL: nobody has that name, or an error. */
static struct rapi_listed *find(struct rapi_users *users, const char *name, GError **error)
{
    if (!know_file(users, error))
        return NULL;
    const struct rapi_listed *listed = g_hash_table_lookup(users->of_file, name);
    if (!listed && know_record(users, error))
        listed = g_hash_table_lookup(users->on_record, name);
    if (!listed)
        return NULL;
    struct rapi_listed *copy = g_new(struct rapi_listed, 1);
    *copy = (struct rapi_listed){g_strdup(listed->name), listed->scheme, g_strdup(listed->kept),
                                 listed->write};
    return copy;
}

/* --- passwords --- */

/* A sum that nobody else can make: texts are compared by theirs, in whatever time. */
static char *sum_of(const struct rapi_users *users, const char *kept, const char *password)
{
    g_autofree char *both = g_strconcat(kept, "\n", password, NULL);
    return g_compute_hmac_for_string(G_CHECKSUM_SHA256, users->secret, sizeof users->secret, both,
                                     -1);
}

static bool are_same(const struct rapi_users *users, const char *one, const char *other)
{
    g_autofree char *sum = sum_of(users, "", one), *other_sum = sum_of(users, "", other);
    return strcmp(sum, other_sum) == 0;
}

static bool is_ha1(const struct rapi_users *users, const struct rapi_listed *listed,
                   const char *password)
{
    g_autofree char *text = g_strjoin(":", listed->name, RAPI_REALM, password, NULL);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_MD5, text, -1);
    g_autofree char *kept = g_ascii_strdown(listed->kept, -1);
    return are_same(users, sum, kept);
}

/* One that was right is not computed again as long as the same is kept. */
static bool was_right(const struct rapi_users *users, const struct rapi_listed *listed,
                      const char *password)
{
    const char *right = listed && listed->scheme == RAPI_CRYPT
                            ? g_hash_table_lookup(users->checked, listed->name)
                            : NULL;
    g_autofree char *sum = right ? sum_of(users, listed->kept, password) : NULL;
    return right && strcmp(sum, right) == 0;
}

/* `listed` NULL: nobody. */
static bool is_right(struct rapi_users *users, const struct rapi_listed *listed,
                     const char *password, bool *ret_is, GError **error)
{
    if (listed && listed->scheme != RAPI_CRYPT) {
        *ret_is = listed->scheme == RAPI_HA1 ? is_ha1(users, listed, password)
                                             : are_same(users, listed->kept, password);
        return true;
    }
    const char *kept = listed ? listed->kept : NOBODYS;
    if (!users->crypto->ops->password_is(users->crypto, kept, password, ret_is, error))
        return false;
    *ret_is = *ret_is && listed;
    if (*ret_is)
        g_hash_table_replace(users->checked, g_strdup(listed->name), sum_of(users, kept, password));
    return true;
}

/* --- addresses --- */

static bool is_over(const struct rapi_users *users, const struct address *address)
{
    return now_ms(users) - address->since_ms >= RAPI_FAILURES_MS;
}

/* Of "192.0.2.7:41234" and "[::ffff:192.0.2.7]:41234" 192.0.2.7. Of "[2001:db8::7]:41234"
 * 2001:db8::/64: whoever has one address of IPv6 mostly has all of these. */
static char *host_of(const char *peer)
{
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    const char *colon = strrchr(peer, ':');
    if (peer[0] != '[')
        return colon ? g_strndup(peer, (gsize)(colon - peer)) : g_strdup(peer);
    g_autofree char *bare = g_strndup(peer + 1, strcspn(peer + 1, "%]"));
    if (inet_pton(AF_INET6, bare, &address) != 1)
        return g_steal_pointer(&bare);
    if (IN6_IS_ADDR_V4MAPPED(&address))
        return g_strdup(inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text));
    memset(&address.s6_addr[8], 0, 8);
    return g_strconcat(inet_ntop(AF_INET6, &address, text, sizeof text), "/64", NULL);
}

/* Of those for whom nothing is being checked; false: there is none. */
static bool forget_oldest(struct rapi_users *users)
{
    GHashTableIter iter;
    void *key, *value;
    const char *oldest = NULL;
    gint64 since_ms = G_MAXINT64;
    g_hash_table_iter_init(&iter, users->addresses);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const struct address *address = value;
        if (address->users || address->since_ms >= since_ms)
            continue;
        oldest = key;
        since_ms = address->since_ms;
    }
    return oldest && g_hash_table_remove(users->addresses, oldest);
}

static struct address *enter(struct rapi_users *users, const char *host)
{
    struct address *address = g_hash_table_lookup(users->addresses, host);
    if (!address) {
        while (g_hash_table_size(users->addresses) >= LIMIT_RAPI_ADDRESSES && forget_oldest(users))
            ;
        address = g_new0(struct address, 1);
        g_hash_table_insert(users->addresses, g_strdup(host), address);
    }
    address->users++;
    return address;
}

static void leave(struct rapi_users *users, struct address *address, const char *host)
{
    address->users--;
    if (!address->users && (!address->failures || is_over(users, address)))
        g_hash_table_remove(users->addresses, host);
}

static bool is_barred(const struct rapi_users *users, const struct address *address)
{
    return address->failures >= RAPI_FAILURES && !is_over(users, address);
}

static void count_failure(const struct rapi_users *users, struct address *address)
{
    if (!address->failures || is_over(users, address)) {
        address->since_ms = now_ms(users);
        address->failures = 0;
    }
    address->failures++;
}

/* --- a request --- */

/* Of "Basic BASE64"; to be freed. False: it has none, or what nobody can read. */
static bool credentials(const struct http_request *request, char **ret_name, char **ret_password)
{
    const char *header = http_request_header(request, "authorization");
    if (g_ascii_strncasecmp(header, SCHEME, strlen(SCHEME)) != 0)
        return false;
    gsize len = 0;
    g_autofree guchar *bytes = g_base64_decode(header + strlen(SCHEME), &len);
    g_autofree char *text = g_strndup((const char *)bytes, len);
    char *colon = strchr(text, ':');
    if (!colon || strlen(text) != len || !g_utf8_validate(text, -1, NULL))
        return false;
    *ret_name = g_strndup(text, (gsize)(colon - text));
    *ret_password = g_strdup(colon + 1);
    return true;
}

static enum rapi_access access_of(const struct rapi_listed *listed, char **ret_name)
{
    *ret_name = g_strdup(listed->name);
    return listed->write ? RAPI_WRITE : RAPI_READ;
}

/* One password of an address after the other, so that its tries are counted before more begin. */
static enum rapi_access check_slowly(struct rapi_users *users, struct address *address,
                                     const struct rapi_listed *listed, const char *password,
                                     char **ret_name, GError **error)
{
    bool right = false;
    if (!lock(&address->checking, error))
        return RAPI_FAILED;
    enum rapi_access access = RAPI_UNKNOWN;
    if (is_barred(users, address))
        access = RAPI_BARRED;
    else if (was_right(users, listed, password))
        right = true;
    else if (!is_right(users, listed, password, &right, error))
        access = RAPI_FAILED;
    else if (!right)
        count_failure(users, address);
    task_mutex_unlock(&address->checking);
    return right ? access_of(listed, ret_name) : access;
}

static enum rapi_access check(struct rapi_users *users, const char *peer, const char *name,
                              const char *password, char **ret_name, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autofree char *host = host_of(peer);
    struct address *address = enter(users, host);
    struct rapi_listed *listed = is_barred(users, address) ? NULL : find(users, name, &local);
    enum rapi_access access = RAPI_FAILED;
    if (local)
        g_propagate_error(error, g_steal_pointer(&local));
    else if (is_barred(users, address))
        access = RAPI_BARRED;
    else if (was_right(users, listed, password))
        access = access_of(listed, ret_name);
    else
        access = check_slowly(users, address, listed, password, ret_name, error);
    leave(users, address, host);
    if (listed)
        rapi_listed_free(listed);
    return access;
}

static enum rapi_access check_nobody(struct rapi_users *users, char **ret_name, GError **error)
{
    if (!know_record(users, error))
        return RAPI_FAILED;
    if (!users->anonymous_reads)
        return RAPI_UNKNOWN;
    *ret_name = g_strdup("");
    return RAPI_READ;
}

enum rapi_access rapi_users_check(struct rapi_users *users, const struct http_request *request,
                                  char **ret_name, GError **error)
{
    g_autofree char *name = NULL, *password = NULL;
    if (!*http_request_header(request, "authorization"))
        return check_nobody(users, ret_name, error);
    if (!credentials(request, &name, &password))
        return RAPI_UNKNOWN;
    return check(users, request->peer, name, password, ret_name, error);
}

char *rapi_users_mark(struct rapi_users *users, const char *name, GError **error)
{
    if (!*name)
        return know_record(users, error) && users->anonymous_reads ? g_strdup("") : NULL;
    struct rapi_listed *listed = find(users, name, error);
    char *mark = listed ? sum_of(users, listed->kept, "") : NULL;
    if (listed)
        rapi_listed_free(listed);
    return mark;
}

/*
 * The process of a member; see etcd_private.h. It is found again by (pid, start time) in
 * run/etcd.json, which is written before the start too: then a process whose number could not be
 * noted any more is known to be possible, and found by the name of its data folder.
 */
#include "backend/members/etcd_private.h"
#include "backend/reach.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/task.h"
#include "io/engine_file.h"
#include "io/etcd/etcd_client.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/certs.h"

#include <signal.h>
#include <string.h>

#define STATE "etcd.json"
#define FORMAT 1
#define HEARTBEAT_MS 100

/* --- run/etcd.json --- */

static bool write_state(const struct etcd_host *host, guint64 pid, guint64 start_ticks,
                        GError **error)
{
    json_autoptr json = json_make("{s:i, s:I, s:I, s:s}", "format", FORMAT, "pid", (json_int_t)pid,
                                  "start_ticks", (json_int_t)start_ticks, "trusts",
                                  host->started_with != NULL ? host->started_with : "");
    g_autofree char *text = json_to_text(json);
    return files_write(host->paths, FILE_RUN, STATE, text, strlen(text), error);
}

/* False: there is no such file, or, with the error, it cannot be read. */
static bool read_state(struct etcd_host *host, guint64 *ret_pid, guint64 *ret_ticks, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    json_int_t format = 0, pid = 0, ticks = 0;
    g_autofree char *text =
        files_read(host->paths, FILE_RUN, STATE, LIMIT_STATE_FILE_BYTES, &len, &why);
    if (text == NULL && fettle_error_is(why, UNKNOWN_ENTITY))
        return false;
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &why) : NULL;
    bool ok = json != NULL &&
              json_unpack(json, "{s:I, s:I, s:I}", "format", &format, "pid", &pid, "start_ticks",
                          &ticks) == 0 &&
              format == FORMAT && pid >= 0 && ticks >= 0;
    text_set(&host->started_with, json_string_value(json_object_get(json, "trusts")));
    *ret_pid = (guint64)pid;
    *ret_ticks = (guint64)ticks;
    if (!ok)
        fettle_set_error(error, CORRUPT,
                         "%s/" STATE ": %s; end the etcd process of this node and remove the file",
                         host->paths->run,
                         why != NULL ? why->message : "format, pid or start_ticks is wrong");
    return ok;
}

/* --- its end --- */

static void exited_cb(struct process *process, void *data)
{
    struct etcd_host *host = data;
    int code = process_exit_code(process);
    if (host->stopping || host->ended == NULL)
        return;
    g_autofree char *words = etcd_last_words(host);
    g_autofree char *advice =
        etcd_says_damaged(words)
            ? g_strdup_printf("; its data is damaged, which no new start mends: give it that of "
                              "the others with fettle cluster engine renew %s",
                              host->config->name)
            : g_strdup("");
    g_autofree char *why = code < 0
                               ? g_strdup_printf("etcd ended; it said last: %s%s", words, advice)
                               : g_strdup_printf("etcd ended with exit code %d; it said "
                                                 "last: %s%s",
                                                 code, words, advice);
    host->ended(why, host->data);
}

bool etcd_running(struct members *members)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    return host->process != NULL && !process_ended(host->process);
}

bool etcd_is_down(const struct etcd_host *host, const char *doing, GError **error)
{
    if (host->process == NULL || process_ended(host->process))
        return true;
    fettle_set_error(error, WRONG_STATE, "the member runs (process %" G_GUINT64_FORMAT "); %s",
                     process_pid(host->process), doing);
    return false;
}

static void drop(struct etcd_host *host)
{
    process_free(host->process);
    host->process = NULL;
    g_clear_pointer(&host->started_with, g_free);
    files_remove(host->paths, FILE_RUN, STATE, NULL);
}

bool etcd_stop(struct members *members, GError **error)
{
    struct etcd_host *host = (struct etcd_host *)members;
    if (host->process == NULL)
        return true;
    host->stopping = true;
    process_signal(host->process, SIGTERM);
    bool ok = process_wait(host->process, ETCD_STOP_MS) ||
              (!task_killed() && process_kill(host->process, error));
    host->stopping = false;
    if (ok)
        drop(host);
    else if (task_killed())
        fettle_set_error(error, KILLED, "the node daemon that was ending etcd has ended");
    return ok;
}

/* --- its start --- */

static void add(GPtrArray *words, const char *flag, const char *value)
{
    g_ptr_array_add(words, g_strdup_printf("--%s=%s", flag, value));
}

/* Rights are given up by setpriv, which becomes etcd: the process stays the same. */
static bool add_user(GPtrArray *words, GError **error)
{
    uid_t uid = 0;
    gid_t gid = 0;
    if (!etcd_user(&uid, &gid, error))
        return false;
    g_ptr_array_add(words, g_strdup("setpriv"));
    g_ptr_array_add(words, g_strdup("--no-new-privs"));
    if (uid != 0) {
        g_ptr_array_add(words, g_strdup_printf("--reuid=%u", uid));
        g_ptr_array_add(words, g_strdup_printf("--regid=%u", gid));
        g_ptr_array_add(words, g_strdup("--clear-groups"));
    }
    return true;
}

static void add_tls(GPtrArray *words, const struct etcd_host *host)
{
    g_autofree char *authority = engine_file_authority(host->paths);
    g_autofree char *certificate = engine_file_certificate(host->paths, ENGINE_FILE_MEMBER);
    g_autofree char *key = engine_file_key(host->paths, ENGINE_FILE_MEMBER);
    add(words, "cert-file", certificate);
    add(words, "key-file", key);
    add(words, "trusted-ca-file", authority);
    add(words, "client-cert-auth", "true");
    add(words, "peer-cert-file", certificate);
    add(words, "peer-key-file", key);
    add(words, "peer-trusted-ca-file", authority);
    add(words, "peer-client-cert-auth", "true");
    add(words, "peer-cert-allowed-cn", CERTS_ETCD_MEMBER);
}

static void add_settings(GPtrArray *words, const struct etcd_host *host)
{
    static const char *const settings[][2] = {
        {"max-txn-ops", "8192"},           /* LIMIT_ETCD_OPERATIONS, with what is compared */
        {"max-request-bytes", "33554432"}, /* one commit, in base64 */
        {"pre-vote", "true"},              /* who was cut off unseats nobody */
        {"logger", "zap"},                 /* one JSON document a line */
        {"log-outputs", "stderr"},
        {"enable-v2", "false"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(settings); i++)
        add(words, settings[i][0], settings[i][1]);
    /* Milliseconds; an election begins after five that were missed: mastership has 4 s (lease). */
    g_autofree char *heartbeat = g_strdup_printf("%u", HEARTBEAT_MS * etcd_patience());
    g_autofree char *election = g_strdup_printf("%u", 5 * HEARTBEAT_MS * etcd_patience());
    add(words, "heartbeat-interval", heartbeat);
    add(words, "election-timeout", election);
    g_autofree char *quota = g_strdup_printf("%" G_GUINT64_FORMAT, host->base.store_bytes);
    add(words, "quota-backend-bytes", quota);
}

static GPtrArray *make_words(const struct etcd_host *host, const struct engine_config *config,
                             const struct engine_member *self, enum member_initial initial,
                             GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *folder = etcd_data_folder(host);
    g_autofree char *cluster = engine_initial_cluster(config);
    if (!add_user(words, error))
        return NULL;
    g_ptr_array_add(words, g_strdup("etcd"));
    add(words, "data-dir", folder);
    add(words, "name", self->name);
    add(words, "listen-peer-urls", self->peer_url);
    add(words, "initial-advertise-peer-urls", self->peer_url);
    add(words, "listen-client-urls", self->client_url);
    add(words, "advertise-client-urls", self->client_url);
    add(words, "initial-cluster", cluster);
    add(words, "initial-cluster-token", config->token);
    add(words, "initial-cluster-state", enum_word(&member_initial_words, (int)initial));
    add_tls(words, host);
    add_settings(words, host);
    g_ptr_array_add(words, NULL);
    return g_steal_pointer(&words);
}

static bool has_program(GError **error)
{
    g_autofree char *found = g_find_program_in_path("etcd");
    if (found == NULL)
        fettle_set_error(error, ENVIRONMENT,
                         "the program etcd is missing on this node; install the package "
                         "etcd-server");
    return found != NULL;
}

/* Whether the user can read what it is told to. */
static bool can_reach(const struct etcd_host *host, GError **error)
{
    g_autofree char *key = engine_file_key(host->paths, ENGINE_FILE_MEMBER);
    uid_t uid = 0;
    gid_t gid = 0;
    return etcd_user(&uid, &gid, error) && reach_check(key, uid, error);
}

/* With several processors Go's threads look for work, and wake each other, about as much as they
 * work. A person who wants it otherwise says so in the node daemon's environment. */
static const char *const *environment(void)
{
    static const char *const one[] = {"GOMAXPROCS=1", NULL};
    return g_getenv("GOMAXPROCS") == NULL ? one : NULL;
}

static bool spawn(struct etcd_host *host, const GPtrArray *words, GError **error)
{
    g_autofree char *log = etcd_log_path(host);
    const struct process_options options = {
        .argv = (const char *const *)words->pdata,
        .errors_path = log,
        .environment = environment(),
        .exited = exited_cb,
        .data = host,
    };
    /* Written before and after: whenever we die, the next node daemon finds it. */
    g_free(host->started_with);
    host->started_with = etcd_trust_digest(host);
    if (!write_state(host, 0, 0, error))
        return false;
    host->process = process_spawn(&options, error);
    if (host->process == NULL) {
        drop(host);
        return false;
    }
    if (write_state(host, process_pid(host->process), process_start_ticks(host->process), error))
        return true;
    etcd_stop(&host->base, NULL);
    return false;
}

bool etcd_start(struct members *members, const struct engine_config *config,
                enum member_initial initial, GError **error)
{
    struct etcd_host *host = (struct etcd_host *)members;
    const struct engine_member *self = engine_config_member(config, host->config->node_uuid);
    if (etcd_running(members))
        return true;
    if (self == NULL) {
        fettle_set_error(error, WRONG_STATE, "etc/engine.json has no member for this node");
        return false;
    }
    g_autoptr(GPtrArray) words = make_words(host, config, self, initial, error);
    if (words == NULL || !has_program(error) || !etcd_has_keys(host, error) ||
        !can_reach(host, error) || !etcd_make_data(host, error))
        return false;
    etcd_trim_log(members);
    process_free(host->process);
    host->process = NULL;
    return spawn(host, words, error);
}

/* --- after our restart --- */

static bool find_process(struct members *members, bool *ret_running, GError **error)
{
    struct etcd_host *host = (struct etcd_host *)members;
    g_autoptr(GError) why = NULL;
    guint64 pid = 0, ticks = 0;
    *ret_running = etcd_running(members);
    if (*ret_running)
        return true;
    if (!read_state(host, &pid, &ticks, &why)) {
        bool none = why == NULL;
        if (!none)
            g_propagate_error(error, g_steal_pointer(&why));
        return none;
    }
    if (pid == 0) {
        g_autofree char *folder = etcd_data_folder(host);
        g_autofree char *argument = g_strconcat("--data-dir=", folder, NULL);
        pid = process_find_by_argument(argument);
        ticks = process_read_start_ticks(pid);
    }
    host->process = process_adopt(pid, ticks, exited_cb, host, NULL);
    *ret_running = host->process != NULL;
    if (*ret_running)
        return write_state(host, pid, ticks, error);
    return files_remove(host->paths, FILE_RUN, STATE, error);
}

/* Its keys afterwards: a process that nobody knows would be worse than one with keys of before. */
bool etcd_adopt(struct members *members, bool *ret_running, GError **error)
{
    g_autoptr(GError) why = NULL;
    bool ok = find_process(members, ret_running, error);
    if (ok && !etcd_settle_keys((const struct etcd_host *)members, &why))
        log_warning("", "member of etcd: %s", why->message);
    return ok;
}

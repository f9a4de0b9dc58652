/* See authority_key.h. The key is never logged, nor is anything that is said about its content. */
#include "core/candidate/authority_key.h"

#include <string.h>

#include "base/log.h"
#include "core/host/announced.h"
#include "proto/records.h"

#define AUTHORITY_KEY_PAUSE_MS 5000 /* after a failure */

struct candidate_key {
    const struct env *env;
    char *of;       /* the authority whose key was read or taken, and fits; NULL: of none yet */
    char *said;     /* the last complaint; NULL: all is well */
    gint64 next_ms; /* no try before */
};

struct candidate_key *candidate_key_new(const struct env *env)
{
    struct candidate_key *keyring = g_new0(struct candidate_key, 1);
    keyring->env = env;
    return keyring;
}

void candidate_key_free(struct candidate_key *keyring)
{
    g_free(keyring->said);
    g_free(keyring->of);
    g_free(keyring);
}

/* The authority that signs, by its certificate here; NULL: that cannot be read. */
static char *authority_now(const struct candidate_key *keyring)
{
    struct authority *authority = keyring->env->authority;
    g_autofree char *certificate = NULL;
    char *fingerprint = NULL;
    return authority->ops->show(authority, &certificate, &fingerprint, NULL) ? fingerprint : NULL;
}

const char *candidate_key_of(const struct candidate_key *keyring)
{
    struct authority *authority = keyring->env->authority;
    if (!authority || !keyring->of || !authority->ops->has_key(authority))
        return "";
    g_autofree char *now = authority_now(keyring);
    return g_strcmp0(now, keyring->of) == 0 ? keyring->of : "";
}

bool candidate_key_has(const struct candidate_key *keyring)
{
    return *candidate_key_of(keyring) != '\0';
}

static void done(struct candidate_key *keyring)
{
    g_clear_pointer(&keyring->said, g_free);
    keyring->next_ms = 0;
}

static void failed(struct candidate_key *keyring, const char *what, const GError *error)
{
    g_autofree char *text = g_strdup_printf("%s: %s", what, error->message);
    keyring->next_ms = keyring->env->ops->boot_ms(keyring->env) + AUTHORITY_KEY_PAUSE_MS;
    if (fettle_error_is(error, KILLED) || g_strcmp0(keyring->said, text) == 0)
        return;
    log_warning("", "%s; trying on", text);
    g_free(keyring->said);
    keyring->said = g_steal_pointer(&text);
}

/* Only under the epoch that was announced here does the master's node pass it on. */
static void *ask_master(const struct candidate_key *keyring, const char *method, GError **error)
{
    record_autoptr(announce_args) announced = announced_read(keyring->env);
    if (!announced) {
        fettle_set_error(error, TEMPORARY, "no master was announced to this node yet");
        return NULL;
    }
    struct stamp stamp = {announced->history, announced->epoch};
    return env_call_record(keyring->env, NODE_MASTER, ROLE_WCONFD, method, NULL, stamp, 0, 0,
                           error);
}

/* --- a candidate --- */

static bool look(struct candidate_key *keyring)
{
    struct authority *authority = keyring->env->authority;
    g_autoptr(GError) error = NULL;
    g_autofree char *key = NULL;
    g_free(keyring->of);
    keyring->of = authority_now(keyring);
    if (!authority->ops->has_key(authority) || !authority->ops->read_key(authority, &key, &error))
        g_clear_pointer(&keyring->of, g_free);
    if (error && !fettle_error_is(error, KILLED))
        log_warning("", "the key of the cluster's authority: %s; it is fetched anew",
                    error->message);
    return keyring->of != NULL;
}

static bool fetch(struct candidate_key *keyring, GError **error)
{
    struct authority *authority = keyring->env->authority;
    g_autofree char *now = authority_now(keyring);
    record_autoptr(authority_key) given = ask_master(keyring, "authority_key", error);
    if (!given || !authority->ops->take_key(authority, given->key, error))
        return false;
    g_free(keyring->of);
    keyring->of = g_steal_pointer(&now);
    log_info("", "the key of the cluster's authority has come from the master: as master this "
                 "node can let hosts in");
    return true;
}

/* The master gives it to nobody whose certificate another authority has signed: while the keys are
 * renewed this node gets one first. */
static bool may_have(const struct candidate_key *keyring)
{
    struct authority *authority = keyring->env->authority;
    g_autofree char *now = authority_now(keyring);
    record_autoptr(keys_status) status = keys_status_new();
    return !authority->ops->status || !authority->ops->status(authority, status, NULL) ||
           g_strcmp0(status->issuer, now) == 0;
}

static bool is_due(const struct candidate_key *keyring)
{
    return keyring->env->authority && keyring->env->ops->boot_ms(keyring->env) >= keyring->next_ms;
}

void candidate_key_keep(struct candidate_key *keyring)
{
    g_autoptr(GError) error = NULL;
    if (candidate_key_has(keyring) || !is_due(keyring))
        return;
    bool here = look(keyring) || task_killed();
    if (!here && !may_have(keyring))
        return;
    if (here || fetch(keyring, &error))
        done(keyring);
    else
        failed(keyring, "the key of the cluster's authority is not here", error);
}

/* --- no candidate any more --- */

/* The only key that there is must not go. */
static bool master_has_it(const struct candidate_key *keyring, GError **error)
{
    struct authority *authority = keyring->env->authority;
    g_autofree char *certificate = NULL;
    g_autofree char *fingerprint = NULL;
    record_autoptr(ca_info) info = ask_master(keyring, "ca_info", error);
    if (!info || !authority->ops->show(authority, &certificate, &fingerprint, error))
        return false;
    if (info->key && !strcmp(info->fingerprint, fingerprint))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "the master does not have the key of this authority; copy etc/ca.key to it, "
                     "with mode 0600");
    return false;
}

void candidate_key_leave(struct candidate_key *keyring)
{
    struct authority *authority = keyring->env->authority;
    g_autoptr(GError) error = NULL;
    if (!is_due(keyring) || !authority->ops->has_key(authority))
        return;
    if (!master_has_it(keyring, &error) || !authority->ops->drop_key(authority, &error)) {
        failed(keyring,
               "the key of the cluster's authority stays on this node, which is no "
               "candidate",
               error);
        return;
    }
    g_clear_pointer(&keyring->of, g_free);
    done(keyring);
    log_info("", "the key of the cluster's authority was removed: this node is no candidate");
}

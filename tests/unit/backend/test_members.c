/*
 * A node's member of etcd with a real process: keys and certificates, start, adoption, its end, its
 * data, its log (backend/members/). Three nodes share the loopback of this test.
 */
#include "backend/members/etcd.h"
#include "backend/members/etcd_private.h"
#include "helper/patience.h"
#include "io/engine_file.h"
#include "io/etcd/etcd_client.h"
#include "io/etcd/etcd_kv.h"
#include "io/etcd/etcd_member.h"
#include "io/files.h"
#include "io/net/authority.h"
#include "io/net/certs.h"
#include "io/process.h"
#include "places.h"
#include "world.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uid_t owner_of(const char *folder, const char *name, mode_t *ret_mode)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    struct stat status;
    g_assert_cmpint(stat(path, &status), ==, 0);
    *ret_mode = status.st_mode & 0777;
    return status.st_uid;
}

/* --- one member --- */

static void process_is_confined(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/status", pid);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "NoNewPrivs:\t1"));
    g_assert_nonnull(strstr(text, "CapEff:\t0000000000000000"));
    g_assert_null(strstr(text, "Uid:\t0\t"));
}

/* It keeps to one processor, or to what the node daemon's environment says. */
static void has_processors(guint64 pid, const char *count)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/environ", pid);
    g_autofree char *wanted = g_strconcat("GOMAXPROCS=", count, NULL);
    g_autofree char *text = NULL;
    gsize len = 0;
    bool found = false;
    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    for (const char *entry = text; entry < text + len; entry += strlen(entry) + 1)
        found = found || strcmp(entry, wanted) == 0;
    g_assert_true(found);
}

static void say_in_log(const struct place *node, const char *line)
{
    g_autofree char *path = g_build_filename(node->paths->log, "etcd.log", NULL);
    FILE *file = fopen(path, "a");
    g_assert_nonnull(file);
    fputs(line, file);
    fclose(file);
}

static void one_life(void)
{
    places_make();
    struct place *node = &nodes[0];
    struct members *members = node->members;
    record_autoptr(engine_config) config = places_config(1, 23400);
    g_autoptr(GError) error = NULL;
    bool running = true;
    mode_t mode = 0;

    /* Nothing is there yet. */
    record_autoptr(engine_config) sqlite = members->ops->config_read(members, &error);
    g_assert_cmpint(sqlite->kind, ==, ENGINE_KIND_SQLITE);
    g_assert_true(members->ops->adopt(members, &running, &error));
    g_assert_false(running);
    g_autofree char *crt = engine_file_certificate(node->paths, ENGINE_FILE_MEMBER);
    g_autofree char *missing =
        g_strdup_printf("there is no %s; the member is to be prepared and certified first", crt);
    g_assert_true(members->ops->config_write(members, config, &error));
    assert_refused(members->ops->start(members, config, MEMBER_NEW, &error), error, WRONG_STATE,
                   missing);
    g_assert_false(members->ops->has_data(members));

    places_found(config);
    until(places_healthy(0));
    record_autoptr(member_status) status = places_ask(0);
    g_assert_true(status->leads);
    g_assert_cmpuint(status->pid, !=, 0);
    process_is_confined(status->pid);
    has_processors(status->pid, "1");
    g_assert_cmpuint(owner_of(node->paths->var, "etcd", &mode), !=, 0);
    g_assert_cmpuint(mode, ==, 0700);
    g_assert_cmpuint(owner_of(node->paths->etc, "etcd/member.key", &mode), !=, 0);
    g_assert_cmpuint(mode, ==, 0600);
    g_assert_cmpuint(owner_of(node->paths->etc, "etcd/client.key", &mode), ==, 0);
    g_assert_cmpuint(mode, ==, 0600);
    g_autofree char *runs = g_strdup_printf("the member runs (process %" G_GUINT64_FORMAT
                                            "); its data cannot be put aside",
                                            status->pid);
    char *folder = NULL;
    assert_refused(members->ops->aside(members, &folder, &error), error, WRONG_STATE, runs);

    /* The node daemon is started anew: the same process, told apart by its start. */
    etcd_host_free(members);
    places_open(node);
    members = node->members;
    g_assert_true(members->ops->adopt(members, &running, &error));
    g_assert_true(running);
    record_autoptr(member_status) again = places_ask(0);
    g_assert_cmpuint(again->pid, ==, status->pid);
    g_assert_cmpuint(again->start_ticks, ==, status->start_ticks);
    g_assert_true(members->ops->start(members, config, MEMBER_NEW, &error)); /* runs already */

    /* Stopped: told to nobody. Started: with what it had. */
    g_assert_true(members->ops->stop(members, &error));
    g_assert_false(members->ops->running(members));
    g_assert_cmpuint(node->ended, ==, 0);
    g_assert_cmpuint(process_read_start_ticks(status->pid), ==, 0);
    g_assert_true(members->ops->has_data(members));
    say_in_log(node, "{\"level\":\"panic\",\"msg\":\"walpb: crc mismatch\"}\n");
    g_setenv("GOMAXPROCS", "3", TRUE);
    g_assert_true(members->ops->start(members, config, MEMBER_NEW, &error));
    g_unsetenv("GOMAXPROCS");
    until(places_healthy(0));
    record_autoptr(member_status) back = places_ask(0);
    has_processors(back->pid, "3");
    g_assert_cmpstr(back->id, ==, status->id);

    /* Killed: told, and why. */
    kill((pid_t)back->pid, SIGKILL);
    until(node->ended == 1);
    g_assert_true(g_str_has_prefix(node->why, "etcd ended with exit code 137; it said last: "));
    g_assert_null(strstr(node->why, "damaged")); /* that was the process before */
    record_autoptr(member_status) dead = places_ask(0);
    g_assert_false(dead->healthy);
    g_assert_cmpstr(dead->why, ==, "its process does not run");

    /* Aside, twice within a second; then nothing is left of keys. */
    g_autofree char *first = NULL, *second = NULL, *third = NULL;
    g_assert_true(members->ops->aside(members, &first, &error));
    g_assert_true(g_str_has_prefix(first, "etcd.aside-2"));
    g_autofree char *empty = g_build_filename(node->paths->var, "etcd", NULL);
    g_assert_cmpint(g_mkdir(empty, 0700), ==, 0);
    g_assert_true(members->ops->aside(members, &second, &error));
    g_assert_cmpstr(first, !=, second);
    g_assert_true(members->ops->aside(members, &third, &error));
    g_assert_null(third);
    /* The newest few are kept. */
    const char *const others[] = {"etcd.aside-20010101T000000Z", "etcd.aside-20020101T000000Z",
                                  "etcd.aside-20030101T000000Z", first, second};
    for (guint i = 0; i < 3; i++) {
        g_autofree char *old = g_build_filename(node->paths->var, others[i], "member", "wal", NULL);
        g_assert_cmpint(g_mkdir_with_parents(old, 0700), ==, 0);
    }
    g_autofree char *fourth = NULL;
    g_assert_cmpint(g_mkdir(empty, 0700), ==, 0);
    g_assert_true(members->ops->aside(members, &fourth, &error));
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *path = g_build_filename(node->paths->var, others[i], NULL);
        g_assert_true(g_file_test(path, G_FILE_TEST_IS_DIR) == (i >= 3));
    }
    g_assert_true(members->ops->forget(members, &error));
    g_assert_false(g_file_test(crt, G_FILE_TEST_EXISTS));
    g_assert_true(members->ops->config_write(members, NULL, &error));
    g_assert_true(members->ops->config_write(members, NULL, &error));
    places_remove();
}

static void run_one_life(void *data)
{
    one_life();
}

static void test_one_life(void)
{
    world_run(run_one_life, NULL);
}

/* --- a node daemon that dies between the start and the note of the process --- */

static void lost_note(void)
{
    places_make();
    struct place *node = &nodes[0];
    record_autoptr(engine_config) config = places_config(1, 23410);
    g_autoptr(GError) error = NULL;
    bool running = false;
    places_found(config);
    until(places_healthy(0));
    record_autoptr(member_status) status = places_ask(0);
    etcd_host_free(node->members);
    const char *note = "{\"format\":1,\"pid\":0,\"start_ticks\":0}";
    g_assert_true(files_write(node->paths, FILE_RUN, "etcd.json", note, strlen(note), &error));
    places_open(node);
    g_assert_true(node->members->ops->adopt(node->members, &running, &error));
    g_assert_true(running);
    record_autoptr(member_status) again = places_ask(0);
    g_assert_cmpuint(again->pid, ==, status->pid);

    /* Somebody else has the number by now: not ours, never touched. */
    g_assert_true(node->members->ops->stop(node->members, &error));
    etcd_host_free(node->members);
    g_autofree char *other =
        g_strdup_printf("{\"format\":1,\"pid\":%d,\"start_ticks\":1}", getpid());
    g_assert_true(files_write(node->paths, FILE_RUN, "etcd.json", other, strlen(other), &error));
    places_open(node);
    g_assert_true(node->members->ops->adopt(node->members, &running, &error));
    g_assert_false(running);

    /* A note that cannot be read. */
    const char *bad = "{\"format\":2,\"pid\":0,\"start_ticks\":0}";
    g_assert_true(files_write(node->paths, FILE_RUN, "etcd.json", bad, strlen(bad), &error));
    g_autofree char *text =
        g_strdup_printf("%s/etcd.json: format, pid or start_ticks is wrong; end the etcd process "
                        "of this node and remove the file",
                        node->paths->run);
    assert_refused(node->members->ops->adopt(node->members, &running, &error), error, CORRUPT,
                   text);
    places_remove();
}

static void run_lost_note(void *data)
{
    lost_note();
}

static void test_lost_note(void)
{
    world_run(run_lost_note, NULL);
}

/* --- who is let in --- */

/* Writes a key with that certificate, and says how it ended; free with g_free(). */
static char *write_as(const char *url, const char *certificate, const char *key)
{
    const char *urls[] = {url, NULL};
    g_autofree char *ca = engine_file_authority(nodes[0].paths);
    const struct etcd_options options = {
        .urls = urls, .ca = ca, .certificate = certificate, .key = key, .member_ms = 15000};
    g_autoptr(GError) error = NULL;
    struct etcd_client *client = etcd_client_new(&options, &error);
    g_assert_no_error(error);
    json_t *put = json_array();
    json_array_append_new(put, etcd_put("/fettle/x", "written", 0));
    json_autoptr answer =
        etcd_call_wait(client, ETCD_TXN, etcd_txn(json_array(), put, NULL), 30000, &error);
    etcd_client_free(client);
    if (answer != NULL)
        return g_strdup(etcd_succeeded(answer) ? "written" : "not written");
    return g_strdup(error->message);
}

/* Connections whose certificate the member did not trust: the client only sees them end, maybe
 * before the member has written it down. */
static guint count_refused(void)
{
    g_autofree char *path = g_build_filename(nodes[0].paths->log, "etcd.log", NULL);
    g_autofree char *text = files_read_path(path, MIB(1), NULL, NULL);
    guint count = 0;
    const char *at = text;
    while (at != NULL &&
           (at = strstr(at, "x509: certificate signed by unknown authority")) != NULL) {
        at++;
        count++;
    }
    return count;
}

/* What is let in is a certificate for engines, not any of the same authority: a node that is no
 * candidate has one of those. */
static void strangers(void)
{
    places_make();
    record_autoptr(engine_config) config = places_config(1, 23440);
    const struct engine_member *self = config->members->pdata[0];
    g_autoptr(GError) error = NULL;
    places_found(config);
    until(places_healthy(0));
    g_autofree char *ca = g_build_filename(nodes[0].paths->etc, "ca.crt", NULL);
    g_autofree char *ca_key = g_build_filename(nodes[0].paths->etc, "ca.key", NULL);
    g_autofree char *crt = g_build_filename(nodes[1].paths->etc, "node.crt", NULL);
    g_autofree char *key = g_build_filename(nodes[1].paths->etc, "node.key", NULL);
    g_assert_true(
        certs_make_node(ca, ca_key, CLUSTER, nodes[1].config->node_uuid, crt, key, &error));
    g_autofree char *plain = write_as(self->client_url, crt, key);
    g_test_message("a plain node: %s", plain);
    g_assert_null(strstr(plain, "written"));
    until(count_refused() == 1);

    /* Nor with the issuer's certificate, which is no secret, behind its own. */
    g_autofree char *authority_crt = engine_file_authority(nodes[0].paths);
    g_autofree char *issuer = files_read_path(authority_crt, LIMIT_PEM_CHARS, NULL, &error);
    g_autofree char *own_crt = files_read_path(crt, LIMIT_PEM_CHARS, NULL, &error);
    g_autofree char *chain = g_strconcat(own_crt, issuer, NULL);
    g_assert_true(files_write_path(crt, chain, strlen(chain), 0644, false, &error));
    g_autofree char *chained = write_as(self->client_url, crt, key);
    g_assert_null(strstr(chained, "written"));
    until(count_refused() == 2);

    g_autofree char *own = engine_file_certificate(nodes[0].paths, ENGINE_FILE_CLIENT);
    g_autofree char *own_key = engine_file_key(nodes[0].paths, ENGINE_FILE_CLIENT);
    g_autofree char *let_in = write_as(self->client_url, own, own_key);
    g_assert_cmpstr(let_in, ==, "written");
    g_assert_cmpuint(count_refused(), ==, 2);
    places_remove();
}

static void run_strangers(void *data)
{
    strangers();
}

static void test_strangers(void)
{
    GLogLevelFlags fatal = g_log_set_always_fatal(G_LOG_FATAL_MASK); /* as in test_etcd_member.c */
    world_run(run_strangers, NULL);
    g_log_set_always_fatal(fatal);
}

/* --- three --- */

/* As if its file had reached its limit. */
static void raise_alarm(const struct engine_config *config, guint index)
{
    const struct node_paths *paths = nodes[index].paths;
    const struct engine_member *member = config->members->pdata[index];
    record_autoptr(member_status) status = places_ask(index);
    const char *urls[] = {member->client_url, NULL};
    g_autofree char *ca = engine_file_authority(paths);
    g_autofree char *certificate = engine_file_certificate(paths, ENGINE_FILE_CLIENT);
    g_autofree char *key = engine_file_key(paths, ENGINE_FILE_CLIENT);
    const struct etcd_options options = {
        .urls = urls, .ca = ca, .certificate = certificate, .key = key, .member_ms = 15000};
    g_autoptr(GError) error = NULL;
    struct etcd_client *client = etcd_client_new(&options, &error);
    g_assert_no_error(error);
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, etcd_id_parse(status->id));
    json_autoptr answer = etcd_call_wait(
        client, "/v3/maintenance/alarm",
        json_make("{s:s, s:s, s:s}", "action", "ACTIVATE", "memberID", id, "alarm", ALARM_NOSPACE),
        30000, &error);
    g_assert_no_error(error);
    etcd_client_free(client);
}

/* What the others say, as node `index` hears it. */
static void assert_others(guint index, guint silent, guint full_before)
{
    struct members *members = nodes[index].members;
    record_autoptr(member_status) own = places_ask(index);
    struct members_others others = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(members->ops->ask_others(members, own->id, &others, &error));
    g_assert_cmpuint(others.count, ==, NODES - 1);
    g_assert_cmpuint(others.silent, ==, silent);
    g_assert_cmpuint(others.full_before, ==, full_before);
}

static void three(void)
{
    places_make();
    record_autoptr(engine_config) config = places_config(NODES, 23420);
    g_autoptr(GError) error = NULL;
    places_found(config);
    guint leaders = 0;
    for (guint i = 0; i < NODES; i++)
        until(places_healthy(i));
    for (guint i = 0; i < NODES; i++) {
        record_autoptr(member_status) status = places_ask(i);
        leaders += status->leads;
        g_assert_cmpstr(status->leader, !=, "");
    }
    g_assert_cmpuint(leaders, ==, 1);
    assert_others(0, 0, 0);
    /* One stops: the two others go on; without a second one nothing is healthy. */
    g_assert_true(nodes[2].members->ops->stop(nodes[2].members, &error));
    until(places_healthy(0) && places_healthy(1));
    assert_others(0, 1, 0);
    g_assert_true(nodes[1].members->ops->stop(nodes[1].members, &error));
    until(!places_healthy(0));
    record_autoptr(member_status) alone = places_ask(0);
    g_assert_cmpuint(alone->pid, !=, 0);
    g_assert_cmpuint(strlen(alone->why), >, 0);
    g_assert_true(nodes[1].members->ops->start(nodes[1].members, config, MEMBER_NEW, &error));
    until(places_healthy(0) && places_healthy(1));

    /* Upkeep through the interface; turns are given back. */
    g_assert_true(nodes[0].members->ops->compact(nodes[0].members, 1, &error));
    g_assert_true(nodes[0].members->ops->turn_take(nodes[0].members, &error));
    assert_refused(nodes[1].members->ops->turn_take(nodes[1].members, &error), error, TEMPORARY,
                   "/fettle/" CLUSTER "/upkeep is the turn of node1");
    g_assert_true(nodes[0].members->ops->defragment(nodes[0].members, &error));
    nodes[0].members->ops->turn_give(nodes[0].members);
    g_assert_true(nodes[1].members->ops->turn_take(nodes[1].members, &error));
    nodes[1].members->ops->turn_give(nodes[1].members);
    record_autoptr(member_status) quiet = places_ask(1); /* no alarm: nothing to take back */
    g_assert_true(nodes[1].members->ops->disarm(nodes[1].members, quiet->id, &error));

    /* Those that are full stand in the order of their ids; a stopped one is silent. */
    raise_alarm(config, 0);
    raise_alarm(config, 1);
    record_autoptr(member_status) other = places_ask(0);
    guint last = strcmp(other->id, quiet->id) > 0 ? 0 : 1;
    assert_others(last, 1, 1);
    assert_others(1 - last, 1, 0);
    places_remove();
}

static void run_three(void *data)
{
    three();
}

static void test_three(void)
{
    world_run(run_three, NULL);
}

/* --- certificates --- */

static void wrong_certificates(void)
{
    places_make();
    struct members *members = nodes[0].members;
    g_autoptr(GError) error = NULL;
    g_autofree char *member = NULL, *client = NULL, *crt = NULL, *other = NULL;
    g_autofree char *key = engine_file_key(nodes[0].paths, ENGINE_FILE_MEMBER);
    g_autofree char *early =
        g_strdup_printf("there is no %s; the member is to be prepared first", key);
    assert_refused(members->ops->certify(members, "x", "y", "", &error), error, WRONG_STATE, early);

    g_assert_true(members->ops->prepare(members, false, &member, &client, &error));
    g_assert_true(authority->ops->sign_etcd(authority, member, CLUSTER, "127.0.0.1", &crt, &error));
    g_assert_true(authority->ops->sign_etcd(authority, client, CLUSTER, NULL, &other, &error));
    g_autofree char *ca = g_build_filename(nodes[0].paths->etc, "ca.crt", NULL);
    g_autofree char *none = g_strdup_printf(
        "member: is no certificate of this cluster's authority (%s), with its issuer behind it",
        ca);
    assert_refused(members->ops->certify(members, "x", other, "", &error), error, WRONG_INPUT,
                   none);
    assert_refused(members->ops->certify(members, other, crt, "", &error), error, WRONG_INPUT,
                   "member: the certificate is not for the key of this node");
    assert_refused(members->ops->certify(members, crt, crt, "", &error), error, WRONG_INPUT,
                   "client: the certificate is not for the key of this node");

    /* Of another authority. */
    g_autofree char *foreign_ca = g_build_filename(nodes[1].paths->etc, "foreign.crt", NULL);
    g_autofree char *foreign_key = g_build_filename(nodes[1].paths->etc, "foreign.key", NULL);
    g_autofree char *foreign_crt = g_build_filename(nodes[1].paths->etc, "f.crt", NULL);
    g_autofree char *f_key = g_build_filename(nodes[1].paths->etc, "f.key", NULL);
    g_assert_true(certs_make_ca(foreign_ca, foreign_key, CLUSTER, &error));
    g_assert_true(
        certs_make_node(foreign_ca, foreign_key, CLUSTER, TOKEN, foreign_crt, f_key, &error));
    g_autofree char *foreign = files_read_path(foreign_crt, LIMIT_PEM_CHARS, NULL, &error);
    assert_refused(members->ops->certify(members, foreign, other, "", &error), error, WRONG_INPUT,
                   none);

    /* Keys stay when it is prepared again. */
    g_autofree char *before = files_read_path(key, LIMIT_PEM_CHARS, NULL, &error);
    g_clear_pointer(&member, g_free);
    g_clear_pointer(&client, g_free);
    g_assert_true(members->ops->prepare(members, false, &member, &client, &error));
    g_autofree char *after = files_read_path(key, LIMIT_PEM_CHARS, NULL, &error);
    g_assert_cmpstr(before, ==, after);
    g_assert_true(members->ops->certify(members, crt, other, "", &error));
    places_remove();
}

static void run_wrong_certificates(void *data)
{
    wrong_certificates();
}

static void test_wrong_certificates(void)
{
    world_run(run_wrong_certificates, NULL);
}

static void refuse_trust(const char *authority_text, int code, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(nodes[0].members->ops->trust(nodes[0].members, authority_text, &error));
    g_assert_error(error, FETTLE_ERROR, code);
    g_assert_cmpstr(error->message, ==, what);
}

/* A list that would lock out is refused; key and certificate change together, whatever the power
 * does in between, and the same again does nothing. */
static void renewed_keys(void *data)
{
    places_make();
    places_certify(0);
    struct members *members = nodes[0].members;
    g_autoptr(GError) error = NULL;
    g_autofree char *old = NULL, *next = NULL, *issuer = NULL, *member = NULL, *client = NULL;
    g_autofree char *crt = NULL, *other = NULL;
    g_autofree char *ca = g_build_filename(nodes[0].paths->etc, "ca.crt", NULL);
    g_autofree char *trusted = files_read_path(ca, LIMIT_PEM_CHARS, NULL, &error);
    g_assert_true(authority->ops->etcd_issuers(authority, &old, &error));
    g_assert_true(authority->ops->make_next(authority, CLUSTER, &next, &issuer, &error));
    g_autofree char *turned = g_strconcat(issuer, old, NULL);
    g_autofree char *strange = g_strdup_printf(
        "authority: certificate 1 is no issuer of etcd under the key of an authority that this "
        "node trusts (%s)",
        ca);
    refuse_trust(turned, FETTLE_ERROR_WRONG_INPUT, strange);
    refuse_trust(trusted, FETTLE_ERROR_WRONG_INPUT, strange); /* it signs for every node */
    refuse_trust("x", FETTLE_ERROR_WRONG_INPUT, "authority: has 0 certificates; 1 to 4 can be");
    g_autofree char *both = g_strconcat(next, trusted, NULL);
    g_assert_true(files_write_path(ca, both, strlen(both), 0644, true, &error));
    refuse_trust(issuer, FETTLE_ERROR_WRONG_STATE,
                 "authority: none of these has issued the certificate of this node's member");
    g_assert_true(members->ops->trust(members, turned, &error));
    g_assert_true(members->ops->prepare(members, true, &member, &client, &error));
    g_assert_true(authority->ops->sign_etcd(authority, member, CLUSTER, "127.0.0.1", &crt, &error));
    g_assert_true(authority->ops->sign_etcd(authority, client, CLUSTER, NULL, &other, &error));
    g_autofree char *cut = engine_file_certificate(nodes[0].paths, "member-next");
    g_assert_true(files_write_path(cut, crt, strlen(crt), 0644, true, &error));
    bool running = true;
    g_assert_true(members->ops->adopt(members, &running, &error) && !running);
    g_assert_false(g_file_test(cut, G_FILE_TEST_EXISTS));
    for (guint i = 0; i < 2; i++)
        g_assert_true(members->ops->certify(members, crt, other, turned, &error));
    record_autoptr(member_status) status = places_ask(0);
    g_assert_true(status->by_first);
    refuse_trust(old, FETTLE_ERROR_WRONG_STATE,
                 "authority: none of these has issued the certificate of this node's member");
    g_assert_true(members->ops->trust(members, issuer, &error));
    places_remove();
}

static void test_renewed_keys(void)
{
    world_run(renewed_keys, NULL);
}

/* --- log --- */

static void test_log(void)
{
    places_make();
    struct members *members = nodes[0].members;
    g_autofree char *path = g_build_filename(nodes[0].paths->log, "etcd.log", NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    while (text->len <= LIMIT_ETCD_LOG_BYTES)
        g_string_append_printf(text, "{\"msg\":\"%zu\"}\n", text->len);
    gsize whole = text->len;
    g_assert_true(g_file_set_contents(path, text->str, (gssize)text->len, NULL));
    members->ops->trim_log(members);
    g_autofree char *kept = NULL;
    gsize len = 0;
    g_assert_true(g_file_get_contents(path, &kept, &len, NULL));
    g_assert_cmpuint(len, <=, LIMIT_ETCD_LOG_BYTES / 2);
    g_assert_cmpuint(len, >, LIMIT_ETCD_LOG_BYTES / 2 - 100);
    g_assert_true(g_str_has_prefix(kept, "{\"msg\""));
    g_assert_cmpint(strcmp(kept, text->str + whole - len), ==, 0);
    members->ops->trim_log(members); /* small enough */
    gsize still = 0;
    g_autofree char *same = NULL;
    g_assert_true(g_file_get_contents(path, &same, &still, NULL));
    g_assert_cmpuint(still, ==, len);
    places_remove();
}

/* What etcd says when its data is damaged, and when it is not let at data that may be whole. */
static void test_words(void)
{
    static const struct {
        const char *words;
        bool damaged;
    } lines[] = {
        {"failed to read WAL, cannot be repaired: walpb: crc mismatch", true},
        {"failed to open WAL: wal: file not found", true},
        {"wal: snapshot not found", true},
        {"failed to load (wal: slice bounds out of range)", true},
        {"failed to load the newest snapshot: snap: empty snapshot", true},
        {"failed to open database: invalid database", true},
        {"panic: freepages: failed to get all reachable pages (page 5: multiple references)", true},
        {"[signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x1]", true},
        {"failed to recover v3 backend from snapshot", true},
        {"tocommit(9) is out of range [lastIndex(4)]. Was the raft log corrupted, truncated, or "
         "lost?",
         true},
        {"member 1a has already been bootstrapped", true},
        {"failed to save Raft hard state and entries: write "
         "/var/lib/fettle/etcd/member/wal/0000000000000000-0000000000000000.wal: no space left on "
         "device",
         false},
        {"failed to save snapshot: write /var/lib/fettle/etcd/member/snap/0000000000000002.snap: "
         "disk quota exceeded",
         false},
        {"failed to open WAL: open /var/lib/fettle/etcd/member/wal/0000000000000000.wal: input/"
         "output error",
         false},
        {"failed to open WAL: wal: open 0.tmp: permission denied", false},
        {"failed to open database: open /var/lib/fettle/etcd/member/snap/db: permission denied",
         false},
        {"failed to open database: open /var/lib/fettle/etcd/member/snap/db: too many open files",
         false},
        {"it said nothing", false},
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        if (etcd_says_damaged(lines[i].words) != lines[i].damaged)
            g_error("%s: %s", lines[i].damaged ? "not taken for damaged" : "taken for damaged",
                    lines[i].words);
}

static int tests(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/members/one-life#SAF-07", test_one_life);
    g_test_add_func("/members/lost-note", test_lost_note);
    g_test_add_func("/members/strangers", test_strangers);
    g_test_add_func("/members/three", test_three);
    g_test_add_func("/members/wrong-certificates", test_wrong_certificates);
    g_test_add_func("/members/renewed-keys#SAF-94", test_renewed_keys);
    g_test_add_func("/members/log", test_log);
    g_test_add_func("/members/words#SAF-07", test_words);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}

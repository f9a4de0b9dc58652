/*
 * `fettle api …`: front ends of the API. Their files are on their node, where these commands run;
 * which nodes may have one is on record, which a person changes on the master: of another node than
 * that init and remove are given there first, then on the node itself.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/api/certificate.h"
#include "cli/api/first_users.h"
#include "cli/volume/storage_ask.h"
#include "io/api_conf.h"
#include "io/api_place.h"
#include "io/crypto/crypto.h"
#include "io/files.h"
#include "lab/lab.h"
#include "proto/records.h"

#define INIT_WORDS                                                                                 \
    "[--node NODE] [--listen [ADDRESS:]PORT] [--public-url URL] [--region NAME] "                  \
    "[--tls yes|no] [--certificate FILE [--key FILE]] [--user USER]"
#define REMOVE_WORDS "[--node NODE] [--yes]"

/* --- its settings --- */

static bool take_setting(int *argc, char **argv, struct api_conf *conf, const char *flag,
                         const char *name, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *value = cli_take_option(argc, argv, flag, &bad);
    if (bad) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return false;
    }
    return !value || record_set_text(&api_conf_record, conf, name, value, error);
}

/* "8774", "192.0.2.1:8774", "[2001:db8::1]:8774". */
static bool take_listen(int *argc, char **argv, struct api_conf *conf, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *value = cli_take_option(argc, argv, "--listen", &bad);
    if (bad) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return false;
    }
    if (!value)
        return true;
    const char *colon = strrchr(value, ':');
    bool bracket = *value == '[' && colon && colon[-1] == ']';
    g_autofree char *address =
        !colon ? NULL : g_strndup(value + bracket, (size_t)(colon - value) - (bracket ? 2 : 0));
    return (!address || record_set_text(&api_conf_record, conf, "listen", address, error)) &&
           record_set_text(&api_conf_record, conf, "port", colon ? colon + 1 : value, error);
}

static bool take_conf(int *argc, char **argv, struct api_conf *conf, GError **error)
{
    return take_listen(argc, argv, conf, error) &&
           take_setting(argc, argv, conf, "--public-url", "public_url", error) &&
           take_setting(argc, argv, conf, "--region", "region", error) &&
           take_setting(argc, argv, conf, "--certificate", "certificate", error) &&
           take_setting(argc, argv, conf, "--key", "key", error);
}

/* NULL: none is named; false: it is no good. */
static bool take_text(int *argc, char **argv, const char *flag, const char **ret, GError **error)
{
    g_autoptr(GError) bad = NULL;
    *ret = cli_take_option(argc, argv, flag, &bad);
    if (!bad)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

static bool take_node(int *argc, char **argv, const char **ret_node, GError **error)
{
    return take_text(argc, argv, "--node", ret_node, error);
}

/* What is no setting of the daemon's. A lab's clients are on its machine, and it is root's. */
struct wish {
    bool tls;
    struct api_owner owner;
};

static bool take_wish(int *argc, char **argv, const struct front_end *end, struct wish *ret,
                      GError **error)
{
    const char *tls, *user;
    if (!take_text(argc, argv, "--tls", &tls, error) ||
        !take_text(argc, argv, "--user", &user, error))
        return false;
    if (tls && strcmp(tls, "yes") != 0 && strcmp(tls, "no") != 0) {
        fettle_set_error(error, WRONG_INPUT, "--tls: \"%s\" is neither yes nor no", tls);
        return false;
    }
    *ret = (struct wish){.tls = tls ? !strcmp(tls, "yes") : !end->lab};
    if (end->elsewhere || (!user && end->lab))
        return true;
    return api_user_find(user ? user : API_USER, &ret->owner, error);
}

/* --- init --- */

static bool put_on_record(struct cli *cli, const struct front_end *end, const char *method,
                          GError **error)
{
    json_autoptr answer = storage_ask(cli, method, json_make("{ss}", "node", end->node),
                                      "fettle service list apid", error);
    return answer;
}

/* The last resort where this node is not the master: whether somebody has done it there. */
static bool settle_record(struct cli *cli, const struct front_end *end, bool has, GError **error)
{
    g_autoptr(GError) refused = NULL;
    bool is;
    if (put_on_record(cli, end, has ? "add_front_end" : "remove_front_end", &refused) ||
        fettle_error_is(refused, WRONG_STATE))
        return true;
    if (end->elsewhere || !front_end_on_record(end, &is, NULL)) {
        g_propagate_error(error, g_steal_pointer(&refused));
        return false;
    }
    if (is != has)
        fettle_set_error(error, WRONG_STATE,
                         has ? "node \"%s\" is not on record for a front end of the API: give "
                               "`fettle api init --node %s` on the master first"
                             : "node \"%s\" is on record for a front end of the API: give "
                               "`fettle api remove --node %s` on the master first",
                         end->node, end->node);
    return is == has;
}

static char *clouds_text(const struct front_end *end, const struct api_conf *conf,
                         const char *password)
{
    g_autofree char *url = front_end_url(end, conf), *pem = api_pem_path(end->paths);
    bool own = !strcmp(conf->certificate, pem);
    g_autofree char *authority = own ? g_strconcat(end->paths->etc, "/ca.crt", NULL) : NULL;
    return g_strdup_printf("clouds:\n"
                           "  fettle:\n"
                           "    auth:\n"
                           "      auth_url: %s/identity/v3\n"
                           "      username: admin\n"
                           "      password: \"%s\"\n"
                           "      project_name: admin\n"
                           "      user_domain_id: default\n"
                           "      project_domain_id: default\n"
                           "    region_name: %s\n"
                           "    identity_api_version: 3\n"
                           "    volume_api_version: 3\n"
                           "%s%s%s",
                           url, password, conf->region, own ? "    cacert: " : "",
                           own ? authority : "", own ? "\n" : "");
}

/* Where the lab starts it, it is started; clients find their file in the lab's folder. */
static bool start_in_lab(const struct front_end *end, const char *clouds, GError **error)
{
    static const char *const none[] = {NULL};
    g_autofree char *daemon = g_strdup_printf("apid@%s", end->node);
    g_autofree char *path = g_build_filename(end->lab, "clouds.yaml", NULL);
    return files_write_path(path, clouds, strlen(clouds), 0600, false, error) &&
           lab_restart_with(end->lab, daemon, none, error) &&
           lab_wait_ready(end->lab, end->node, LAB_READY_MS, error);
}

/* Files of a front end that is there already; true: there are none. */
static bool is_free(const struct front_end *end, GError **error)
{
    g_autofree char *left = front_end_left(end);
    if (!*left)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "node \"%s\" has a front end already: %s; to make it anew, and lose its "
                     "users: fettle api remove --node %s",
                     end->node, left, end->node);
    return false;
}

static bool certify(const struct front_end *end, struct api_conf *conf, const struct wish *wish,
                    GError **error)
{
    g_autofree char *pem = api_pem_path(end->paths);
    if (!wish->tls || *conf->certificate)
        return true;
    text_set(&conf->certificate, pem);
    return front_end_certify(end, error);
}

static bool make(struct cli *cli, const struct front_end *end, struct api_conf *conf,
                 const struct wish *wish, char **ret_password, GError **error)
{
    if (!is_free(end, error) || !front_end_can_show(end, conf, &wish->owner, error))
        return false;
    bool made =
        api_place_make(end->paths, &wish->owner, error) &&
        (*ret_password = first_users_make(end, error)) && settle_record(cli, end, true, error) &&
        certify(end, conf, wish, error) && api_conf_write(end->paths, conf, error) &&
        api_place_give(end->paths, &wish->owner, error) && api_place_admit(end->paths, error);
    if (!made)
        front_end_remove(end, NULL);
    return made;
}

static void say_made(struct cli *cli, const struct front_end *end, const struct api_conf *conf,
                     const char *clouds, const char *password)
{
    g_autofree char *url = front_end_url(end, conf);
    json_t *object = json_make("{s:s, s:s, s:s, s:s}", "node", end->node, "url", url, "password",
                               password, "clouds", clouds);
    if (!cli->json)
        printf("%s\n", clouds);
    if (end->lab)
        cli_say(cli, object,
                "The API is at %s. What is above, with the password of its administrator, stands "
                "in %s/clouds.yaml and is not told again.",
                url, end->lab);
    else
        cli_say(cli, object,
                "The API will be at %s: systemctl enable --now fettle-apid. Put what is above, "
                "with the password of its administrator, into clouds.yaml of who is that; it is "
                "not told again.",
                url);
}

/* An earlier version made them root's. */
static int give_files(struct cli *cli, const struct front_end *end, const struct wish *wish,
                      GError **error)
{
    record_autoptr(api_conf) conf = api_conf_read(end->paths, error);
    if (!conf || !front_end_can_show(end, conf, &wish->owner, error) ||
        !api_place_give(end->paths, &wish->owner, error) || !api_place_admit(end->paths, error))
        return -1;
    cli_say(cli, json_make("{ss}", "node", end->node),
            "The files of the front end are its user's now; its settings and users are as they "
            "were.");
    return 0;
}

static int init_elsewhere(struct cli *cli, const struct front_end *end, GError **error)
{
    if (!settle_record(cli, end, true, error))
        return -1;
    cli_say(cli, json_make("{ss}", "node", end->node),
            "Node %s may have a front end of the API. Make it there: fettle api init", end->node);
    return 0;
}

static int init_here(struct cli *cli, const struct front_end *end, struct api_conf *conf,
                     const struct wish *wish, GError **error)
{
    g_autofree char *password = NULL;
    if (wish->owner.uid && front_end_is_whole(end) && !front_end_is_of(end, &wish->owner))
        return give_files(cli, end, wish, error);
    if (!make(cli, end, conf, wish, &password, error))
        return -1;
    g_autofree char *clouds = clouds_text(end, conf, password);
    say_made(cli, end, conf, clouds, password);
    return !end->lab || start_in_lab(end, clouds, error) ? 0 : -1;
}

static int api_init(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *node;
    struct wish wish;
    record_autoptr(api_conf) conf = api_conf_new();
    if (!take_node(&argc, argv, &node, error))
        return -1;
    g_autoptr(front_end_t) end = front_end_find(cli, node, error);
    if (!end || !take_wish(&argc, argv, end, &wish, error))
        return -1;
    /* What its certificate is good for, and what clients are told: also an IPv6 address. */
    text_set(&conf->listen, end->lab || !wish.tls ? "127.0.0.1" : end->config->address);
    if (!take_conf(&argc, argv, conf, error) ||
        !cli_expect(argc, argv, 0, "api init " INIT_WORDS, error))
        return -1;
    return end->elsewhere ? init_elsewhere(cli, end, error)
                          : init_here(cli, end, conf, &wish, error);
}

/* --- remove --- */

static bool is_sure(const struct cli *cli, const struct front_end *end, bool yes, GError **error)
{
    g_autofree char *question = g_strdup_printf(
        "The front end of the API on %s goes, with its users, projects, roles and quotas.",
        end->node);
    if (yes)
        return true;
    if (!cli->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        return cli_is_sure(question, error);
    fettle_set_error(error, WRONG_INPUT, "%s Give --yes for that.", question);
    return false;
}

/* The lab ends it, as it has no files any more. */
static void stop_in_lab(const struct front_end *end)
{
    g_autofree char *daemon = g_strdup_printf("apid@%s", end->node);
    g_autofree char *clouds = g_build_filename(end->lab, "clouds.yaml", NULL);
    lab_signal(end->lab, daemon, LAB_KILL, NULL);
    unlink(clouds);
}

static int remove_elsewhere(struct cli *cli, const struct front_end *end, GError **error)
{
    if (!put_on_record(cli, end, "remove_front_end", error))
        return -1;
    cli_say(cli, json_make("{ss}", "node", end->node),
            "The front end of node %s is heard no more. Now take its files away there: fettle api "
            "remove",
            end->node);
    return 0;
}

static int remove_here(struct cli *cli, const struct front_end *end, GError **error)
{
    g_autofree char *left = front_end_left(end);
    bool off = *left ? settle_record(cli, end, false, error)
                     : put_on_record(cli, end, "remove_front_end", error);
    if (!off || !front_end_remove(end, error) || !api_place_admit(end->paths, error))
        return -1;
    if (end->lab)
        stop_in_lab(end);
    cli_say(cli, json_make("{ss}", "node", end->node), "Node %s has no front end of the API.%s",
            end->node, end->lab ? "" : " Now stop it: systemctl disable --now fettle-apid");
    return 0;
}

static int api_remove(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *node;
    bool yes;
    if (!cli_take_switch(&argc, argv, "--yes", &yes, error) ||
        !take_node(&argc, argv, &node, error) ||
        !cli_expect(argc, argv, 0, "api remove " REMOVE_WORDS, error))
        return -1;
    g_autoptr(front_end_t) end = front_end_find(cli, node, error);
    if (!end || !is_sure(cli, end, yes, error))
        return -1;
    return end->elsewhere ? remove_elsewhere(cli, end, error) : remove_here(cli, end, error);
}
/* --- secrets --- */

static int rotate_keys(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "api rotate-keys", error))
        return -1;
    g_autoptr(front_end_t) end = front_end_find(cli, NULL, error);
    g_autofree char *keys = end ? api_keys_path(end->paths) : NULL;
    if (!end || !crypto_keys_rotate(keys, error))
        return -1;
    cli_say(cli, json_make("{ss}", "keys", keys),
            "Tokens are sealed with a new key; those of the one before are good as long as they "
            "last, those of the one before that are not any more.");
    return 0;
}

static int renew_certificate(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "api renew-certificate", error))
        return -1;
    g_autoptr(front_end_t) end = front_end_find(cli, NULL, error);
    record_autoptr(api_conf) conf = end ? api_conf_read(end->paths, error) : NULL;
    g_autofree char *pem = conf ? api_pem_path(end->paths) : NULL;
    struct api_owner owner = {0};
    if (!conf)
        return -1;
    if (strcmp(conf->certificate, pem) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "the front end shows %s, which is not of the cluster's authority",
                         *conf->certificate ? conf->certificate : "no certificate");
        return -1;
    }
    api_user_of(end->paths, &owner);
    if (!front_end_certify(end, error) || !api_place_give(end->paths, &owner, error))
        return -1;
    cli_say(cli, json_make("{ss}", "certificate", pem),
            "There is another certificate, with a key of its own. New connections are shown it.");
    return 0;
}

static int reset_password(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "api reset-password USER", error))
        return -1;
    g_autoptr(front_end_t) end = front_end_find(cli, NULL, error);
    g_autofree char *password = end ? first_users_reset(end, argv[0], error) : NULL;
    if (!password)
        return -1;
    cli_say(cli, json_make("{ss ss}", "user", argv[0], "password", password),
            "The password of %s is %s, and is not told again. Tokens of before are no good any "
            "more.",
            argv[0], password);
    return 0;
}

const struct command api_commands[] = {
    {"api", "init", INIT_WORDS,
     "Make a front end of the API on this node, with an administrator of its own.", api_init},
    {"api", "remove", REMOVE_WORDS, "Take it away again, with its users.", api_remove},
    {"api", "rotate-keys", "", "Seal tokens with a new key from now on.", rotate_keys},
    {"api", "renew-certificate", "", "Have another certificate made by the cluster's authority.",
     renew_certificate},
    {"api", "reset-password", "USER", "Give a user of the API another password.", reset_password},
    {0},
};

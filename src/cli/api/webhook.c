/*
 * `fettle webhook add|list|modify|test|remove`: where the REST daemon of the master delivers what
 * happens (docs/guide/events.md). A secret is shown once, when it is made.
 */
#include "cli/volume/storage_ask.h"
#include "cli/volume/volume_ask.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/crypto/crypto.h"
#include "io/files.h"
#include "io/loop.h"

#define SEE "fettle webhook list"
#define SECRET_BYTES 32
#define SECRET_LEAST 16 /* characters; of one that can be guessed a signature says nothing */
#define TEST_MS 60000   /* that the test of a receiver is waited for */
#define TEST_LOOK_MS 200

/* --- secrets --- */

static char *make_secret(void)
{
    guchar bytes[SECRET_BYTES];
    struct crypto *crypto = crypto_open_passwords();
    crypto->ops->random(crypto, bytes, sizeof bytes);
    crypto_close(crypto);
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

/* One line of a file. */
static char *read_secret(const char *path, GError **error)
{
    size_t len = 0;
    g_autofree char *text = files_read_path(path, LIMIT_WEBHOOK_SECRET + 2, &len, error);
    if (!text)
        return NULL;
    g_strchomp(text);
    g_autofree char *control = text_control(text);
    if (strlen(text) < SECRET_LEAST || control || strlen(text) > LIMIT_WEBHOOK_SECRET ||
        len > strlen(text) + 2)
        fettle_set_error(error, WRONG_INPUT,
                         "%s: a secret is one line of %d to %d characters, none of them a "
                         "control character",
                         path, SECRET_LEAST, LIMIT_WEBHOOK_SECRET);
    else
        return g_steal_pointer(&text);
    return NULL;
}

/* --- the commands --- */

static bool ask(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr answer = storage_ask(cli, method, args, SEE, error);
    return answer;
}

static json_t *words_of(const char *events)
{
    g_auto(GStrv) words = g_strsplit(events, ",", -1);
    json_t *list = json_array();
    for (char **word = words; *word; word++)
        if (**word)
            json_array_append_new(list, json_string(*word));
    return list;
}

/* `events` NULL: they are not to change. */
static bool has_word(const char *events, GError **error)
{
    if (!events || strspn(events, ",") < strlen(events))
        return true;
    fettle_set_error(error, WRONG_INPUT, "--events: at least one is needed, such as job.error");
    return false;
}

static void say_secret(struct cli *cli, const char *name, const char *secret, const char *what)
{
    json_t *object = json_make("{ss}", "webhook", name);
    if (!secret) {
        cli_say(cli, object, "Webhook %s %s.", name, what);
        return;
    }
    json_object_set_new(object, "secret", json_string(secret));
    cli_say(cli, object,
            "Webhook %s %s. What is delivered is signed with this secret, which is "
            "shown this once: %s",
            name, what, secret);
}

static int add(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *url, *events, *file;
    if (!volume_take(&argc, argv, "--url", &url, error) ||
        !volume_take(&argc, argv, "--events", &events, error) ||
        !volume_take(&argc, argv, "--secret-file", &file, error) ||
        !cli_expect(argc, argv, 1, "webhook add NAME --url URL --events EVENT,…", error))
        return -1;
    if (!url || !events) {
        fettle_set_error(error, WRONG_INPUT, "%s is needed; see \"fettle webhook add --help\"",
                         url ? "--events" : "--url");
        return -1;
    }
    if (!has_word(events, error))
        return -1;
    g_autofree char *secret = file ? read_secret(file, error) : make_secret();
    if (!secret || !ask(cli, "add_webhook",
                        json_make("{ss ss ss so}", "name", argv[0], "url", url, "secret", secret,
                                  "events", words_of(events)),
                        error))
        return -1;
    say_secret(cli, argv[0], file ? NULL : secret,
               "is on record; what happens from now on is sent "
               "to it");
    return 0;
}

static bool at_most_one(bool one, bool other, const char *names, GError **error)
{
    if (one && other)
        fettle_set_error(error, WRONG_INPUT, "%s exclude each other", names);
    return !one || !other;
}

static int modify(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *url, *events, *file;
    bool pause = cli_take_flag(&argc, argv, "--pause");
    bool resume = cli_take_flag(&argc, argv, "--resume");
    bool anew = cli_take_flag(&argc, argv, "--new-secret");
    if (!volume_take(&argc, argv, "--url", &url, error) ||
        !volume_take(&argc, argv, "--events", &events, error) ||
        !volume_take(&argc, argv, "--secret-file", &file, error) ||
        !cli_expect(argc, argv, 1, "webhook modify NAME", error) ||
        !at_most_one(pause, resume, "--pause and --resume", error) ||
        !at_most_one(anew, file, "--new-secret and --secret-file", error) ||
        !has_word(events, error))
        return -1;
    if (!url && !events && !file && !pause && !resume && !anew) {
        fettle_set_error(error, WRONG_INPUT,
                         "nothing to change: name at least one flag; see \"fettle webhook modify "
                         "--help\"");
        return -1;
    }
    g_autofree char *secret = file ? read_secret(file, error) : anew ? make_secret() : g_strdup("");
    if (!secret ||
        !ask(cli, "change_webhook",
             json_make("{ss ss ss so si}", "webhook", argv[0], "url", url ? url : "", "secret",
                       secret, "events", words_of(events ? events : ""), "pause",
                       pause    ? 1
                       : resume ? 0
                                : -1),
             error))
        return -1;
    say_secret(cli, argv[0], anew ? secret : NULL, "is changed");
    return 0;
}

static int take_away(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "webhook remove NAME", error) ||
        !ask(cli, "remove_webhook", json_make("{ss}", "webhook", argv[0]), error))
        return -1;
    cli_say(cli, json_make("{ss}", "webhook", argv[0]), "Nothing is sent to webhook %s any more.",
            argv[0]);
    return 0;
}

/* --- how it goes --- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *state_of(const json_t *webhook)
{
    const json_t *mark = json_object_get(webhook, "mark");
    bool now = number_of(mark, "round") == number_of(webhook, "round");
    return json_is_true(json_object_get(webhook, "paused"))        ? "paused"
           : now && json_is_true(json_object_get(mark, "failing")) ? "failing"
           : now && number_of(mark, "waited_s") > 0                ? "retrying"
                                                                   : "active";
}

static char *events_of(const json_t *webhook)
{
    GString *text = g_string_new(NULL);
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(webhook, "events"), i, word)
        g_string_append_printf(text, "%s%s", i ? "," : "", json_string_value(word));
    return g_string_free(text, FALSE);
}

static int list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "webhook list", error))
        return -1;
    json_autoptr answer = cli_call(cli, "QueryWebhooks", json_array(), error);
    if (!answer)
        return -1;
    json_autoptr told = json_array();
    json_autoptr rows = json_array();
    size_t i;
    json_t *webhook;
    json_array_foreach(answer, i, webhook) {
        const json_t *mark = json_object_get(webhook, "mark");
        g_autofree char *events = events_of(webhook);
        const char *name = text_of(webhook, "name"), *url = text_of(webhook, "url");
        json_array_append_new(told, json_make("{ss ss sO ss sI ss}", "name", name, "url", url,
                                              "events", json_object_get(webhook, "events"), "state",
                                              state_of(webhook), "delivered",
                                              number_of(mark, "delivered"), "said",
                                              text_of(mark, "said")));
        json_array_append_new(rows, json_make("[[is][is][iI][is][is][is]]", 0, name, 0,
                                              state_of(webhook), 0, number_of(mark, "delivered"), 0,
                                              events, 0, url, 0, text_of(mark, "said")));
    }
    if (cli->json)
        cli_print_json(told);
    else
        cli_print_rows(cli, NULL,
                       (const char *const[]){"webhook", "state", "delivered", "events", "url",
                                             "said last", NULL},
                       rows);
    return 0;
}

/* A new reference; NULL with an error. */
static json_t *find(struct cli *cli, const char *name, GError **error)
{
    json_autoptr answer = cli_call(cli, "QueryWebhooks", json_array(), error);
    size_t i;
    json_t *webhook;
    if (!answer)
        return NULL;
    json_array_foreach(answer, i, webhook)
        if (g_str_equal(text_of(webhook, "name"), name) ||
            g_str_equal(text_of(webhook, "uuid"), name))
            return json_incref(webhook);
    fettle_set_error(error, UNKNOWN_ENTITY, "webhook \"%s\" does not exist", name);
    return NULL;
}

/* Until the test that came after `before` was made: as it is on record then. */
static json_t *wait_for_test(struct cli *cli, const char *name, const char *before, GError **error)
{
    bool never = false;
    for (gint64 until = loop_boot_ms() + TEST_MS; loop_boot_ms() < until;) {
        json_t *webhook = find(cli, name, error);
        const char *wanted = text_of(webhook, "test");
        if (!webhook || (strcmp(wanted, before) != 0 &&
                         !strcmp(wanted, text_of(json_object_get(webhook, "mark"), "tested"))))
            return webhook;
        json_decref(webhook);
        loop_run_until(&never, TEST_LOOK_MS);
    }
    fettle_set_error(error, TIMEOUT,
                     "webhook \"%s\": nobody has sent the test for %d s; the REST daemon of the "
                     "master does: see fettle service list",
                     name, TEST_MS / 1000);
    return NULL;
}

static int test(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "webhook test NAME", error))
        return -1;
    json_autoptr before = find(cli, argv[0], error);
    if (!before ||
        !ask(cli, "change_webhook", json_make("{ss sb}", "webhook", argv[0], "test", 1), error))
        return -1;
    json_autoptr webhook = wait_for_test(cli, argv[0], text_of(before, "test"), error);
    if (!webhook)
        return -1;
    const json_t *mark = json_object_get(webhook, "mark");
    const char *said = text_of(mark, "test_said");
    if (!json_is_true(json_object_get(mark, "test_taken"))) {
        fettle_set_error(error, UNREACHABLE, "webhook \"%s\": the test was not taken: %s", argv[0],
                         said);
        return -1;
    }
    cli_say(cli, json_make("{ss ss}", "webhook", argv[0], "said", said),
            "The receiver of webhook %s has taken the test: %s", argv[0], said);
    return 0;
}

const struct command webhook_commands[] = {
    {"webhook", "add", "NAME --url URL --events EVENT,… [--secret-file FILE]",
     "Deliver events to a receiver outside, by HTTPS or HTTP: job.error, repair.*, event.alert, … "
     "What is sent is signed with a secret: the line of a file, or one that is made and shown "
     "once.",
     add},
    {"webhook", "list", "", "Receivers of events, and how deliveries go.", list},
    {"webhook", "modify",
     "NAME [--url URL] [--events EVENT,…] [--secret-file FILE|--new-secret] [--pause|--resume]",
     "Another receiver, other events, another secret. --pause: keep what happens for it; --resume: "
     "go on, also where a receiver has failed for a day.",
     modify},
    {"webhook", "test", "NAME",
     "Have the REST daemon of the master send an event now that is a test, and say what the "
     "receiver answers.",
     test},
    {"webhook", "remove", "NAME", "Nothing is sent there any more.", take_away},
    {0},
};

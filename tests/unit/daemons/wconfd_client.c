/* See wconfd_client.h. */
#include "wconfd_client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/loop.h"
#include "io/real_env.h"
#include "proto/records.h"

/* --- the other process --- */

struct asker {
    struct env *env;
    struct stamp stamp;
    guint job;
    char *livelock[2];
};

struct answer {
    bool done;
    json_t *result;
    char *error;
    bool away; /* nobody answered: the same is asked again */
};

static void answer_cb(json_t *result, const GError *error, void *data)
{
    struct answer *answer = data;
    answer->done = true;
    answer->result = json_incref(result);
    answer->away = fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, UNKNOWN_RESULT) ||
                   fettle_error_is(error, TEMPORARY);
    answer->error =
        error ? g_strdup_printf("%s: %s", fettle_error_name(error), error->message) : NULL;
}

static json_t *owner_of(const struct asker *asker, json_int_t number)
{
    g_autofree char *job = g_strdup_printf("%u", asker->job + (number == 2 ? 100 : 0));
    bool cli = !strcmp(asker->env->role, ROLE_CLI);
    return json_make("{s:s,s:s}", "job", cli ? "cli" : job, "livelock",
                     asker->livelock[number == 2]);
}

static char *ask(const struct asker *asker, const char *method, const json_t *args)
{
    for (;;) {
        struct answer answer = {false};
        struct rpc_call call = {.to_node = NODE_LOCAL,
                                .to_role = ROLE_WCONFD,
                                .method = method,
                                .args = json_deep_copy(args),
                                .stamp = asker->stamp,
                                .job = asker->job};
        asker->env->ops->call(asker->env, &call, answer_cb, &answer);
        while (!answer.done)
            loop_run_until(&answer.done, 1000);
        if (!answer.away) {
            char *text = answer.error ? answer.error : json_to_text(answer.result);
            json_decref(answer.result);
            return text;
        }
        g_free(answer.error);
        bool never = false;
        loop_run_until(&never, 5);
    }
}

static char *ask_line(const struct asker *asker, const char *line)
{
    const char *space = strchr(line, ' ');
    g_autofree char *method = space ? g_strndup(line, (gsize)(space - line)) : g_strdup(line);
    json_autoptr args = space ? json_loads(space + 1, 0, NULL) : json_object();
    g_assert_nonnull(args);
    json_int_t owner = json_integer_value(json_object_get(args, "owner"));
    if (owner)
        json_object_set_new(args, "owner", owner_of(asker, owner));
    g_autofree char *id = env_uuid(asker->env);
    if (json_is_true(json_object_get(args, "commit_id")))
        json_object_set_new(args, "commit_id", json_string(id));
    return ask(asker, method, args);
}

static char *add_tags(const struct asker *asker, const char *word, guint count)
{
    for (guint i = 0; i < count; i++) {
        g_autofree char *line = g_strdup_printf(
            "change_tags {\"owner\":1,\"commit_id\":true,\"changes\":[{\"op\":\"put\",\"kind\":"
            "\"tag\",\"key\":\"cluster/" CLUSTER "/%s-%u\",\"object\":{\"kind\":\"cluster\","
            "\"object\":\"" CLUSTER "\",\"tag\":\"%s-%u\"}}]}",
            word, i, word, i);
        g_autofree char *answer = ask_line(asker, line);
        if (!g_str_has_prefix(answer, "{\"serial\":"))
            return g_steal_pointer(&answer);
    }
    return g_strdup("done");
}

static bool is_socket(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

static char *cut(void)
{
    for (int fd = 3; fd < 256; fd++)
        if (is_socket(fd))
            shutdown(fd, SHUT_RDWR);
    return g_strdup("done");
}

/* It inherits the lock file as well, and closes it: the lock would be held by two. */
static char *keep(void)
{
    int pipes[2];
    char byte = 0;
    g_assert_cmpint(pipe(pipes), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd < 256; fd++)
            if (!is_socket(fd) && fd != pipes[1])
                close(fd);
        (void)!write(pipes[1], "x", 1);
        for (;;)
            pause();
    }
    g_assert_cmpint(read(pipes[0], &byte, 1), ==, 1);
    close(pipes[0]);
    close(pipes[1]);
    return g_strdup_printf("%d", (int)pid);
}

static char *obey(struct asker *asker, const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    if (!strcmp(words[0], "!tags"))
        return add_tags(asker, words[1], (guint)g_ascii_strtoull(words[2], NULL, 10));
    if (!strcmp(words[0], "!cut"))
        return cut();
    if (!strcmp(words[0], "!keep"))
        return keep();
    if (strcmp(words[0], "!drop") != 0)
        return ask_line(asker, line);
    asker->env->ops->livelock_drop(asker->env, asker->livelock[1]);
    return g_strdup("done");
}

/* Under which history and epoch jobs run now. */
static void read_stamp(struct asker *asker)
{
    json_autoptr args = json_make("{s:i}", "serial", 0);
    g_autofree char *text = ask(asker, "wait_changes", args);
    json_autoptr answer = json_loads(text, 0, NULL);
    g_assert_nonnull(answer);
    asker->stamp.history = (guint64)json_integer_value(json_object_get(answer, "history"));
    asker->stamp.epoch = (guint64)json_integer_value(json_object_get(answer, "epoch"));
}

int client_main(char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *stem = g_strdup_printf("job-%s", argv[2]);
    char *line = NULL;
    size_t size = 0;
    loop_init();
    struct asker asker = {.env = real_env_new(argv[0], argv[1], NULL, &error),
                          .job = (guint)g_ascii_strtoull(argv[2], NULL, 10)};
    g_assert_no_error(error);
    for (int i = 0; i < 2; i++) {
        asker.livelock[i] = asker.env->ops->livelock_make(asker.env, stem, &error);
        g_assert_no_error(error);
    }
    printf("%s %s\n", asker.livelock[0], asker.livelock[1]);
    fflush(stdout);
    if (!strcmp(argv[1], ROLE_JOB))
        read_stamp(&asker);
    while (getline(&line, &size, stdin) > 0) {
        g_autofree char *answer = obey(&asker, g_strchomp(line));
        printf("%s\n", answer);
        fflush(stdout);
    }
    real_env_free(asker.env);
    free(line);
    g_free(asker.livelock[0]);
    g_free(asker.livelock[1]);
    return 0;
}

/* --- this process --- */

void client_start(struct client *client, const struct host *host, const char *role, guint job)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *number = g_strdup_printf("%u", job);
    *client = (struct client){NULL};
    client->process =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error,
                         "/proc/self/exe", "--client", host->root, role, number, NULL);
    g_assert_no_error(error);
    client->out = g_data_input_stream_new(g_subprocess_get_stdout_pipe(client->process));
    g_autofree char *names = client_hear(client);
    g_auto(GStrv) words = g_strsplit(names, " ", 2);
    client->livelock[0] = g_strdup(words[0]);
    client->livelock[1] = g_strdup(words[1]);
}

void client_tell(struct client *client, const char *line)
{
    g_autofree char *text = g_strconcat(line, "\n", NULL);
    g_assert_true(g_output_stream_write_all(g_subprocess_get_stdin_pipe(client->process), text,
                                            strlen(text), NULL, NULL, NULL));
}

char *client_hear(struct client *client)
{
    char *line = g_data_input_stream_read_line(client->out, NULL, NULL, NULL);
    g_assert_nonnull(line);
    return line;
}

char *client_ask(struct client *client, const char *line)
{
    client_tell(client, line);
    return client_hear(client);
}

void client_kill(struct client *client)
{
    g_subprocess_send_signal(client->process, SIGKILL);
    g_assert_true(g_subprocess_wait(client->process, NULL, NULL));
}

void client_clear(struct client *client)
{
    if (g_subprocess_get_identifier(client->process))
        client_kill(client);
    g_object_unref(client->out);
    g_object_unref(client->process);
    g_free(client->livelock[0]);
    g_free(client->livelock[1]);
}

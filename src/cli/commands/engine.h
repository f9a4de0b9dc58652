/*
 * Shared by the parts of `fettle cluster engine`: engine.c (status, the command itself),
 * engine_survey.c (asking all members), engine_change.c, engine_renew.c.
 */
#pragma once

#include "cli/cli.h"
#include "io/etcd/etcd_compare.h"
#include "io/etcd/etcd_member.h"
#include "io/node_config.h"

/* One member, asked in a task of its own. */
struct asked {
    const struct engine_member *member;
    struct etcd_client *client;
    struct member_status *status;
    GPtrArray *listed; /* the members as it knows them; NULL: it did not answer */
    struct etcd_content content;
    struct survey *survey;
};

struct survey {
    struct engine_config *config;
    GPtrArray *members; /* struct asked */
    GPtrArray *advice;  /* char * */
    guint healthy, voters;
    guint64 revision; /* at which contents were compared; 0: they were not */
    enum etcd_verdict verdict;
    guint left;
    bool done;
};

struct survey *survey_new(void);
void survey_free(struct survey *survey);
/* Reads which members there are. */
bool survey_read(struct survey *survey, const struct node_paths *paths, GError **error);
/* Asks all of them at once, with this node's certificate. A member that does not answer is no
 * error. PERMISSION: only root may. */
bool survey_ask(struct survey *survey, const struct node_paths *paths, GError **error);
/* The key that members are asked with is root's alone. */
bool survey_may_ask(const struct node_paths *paths, GError **error);
/* Asks that member alone. */
struct etcd_client *survey_client(const struct node_paths *paths,
                                  const struct engine_member *member, GError **error);

/* `fettle cluster engine etcd|sqlite`: begins the change, shows what is done, and returns when the
 * new engine has a master. */
int engine_change(struct cli *cli, enum engine_kind kind, bool yes, GError **error);
/* `fettle cluster engine renew NODE`: takes that node's member out; the master adds it anew, with
 * the data of the others. Returns when it has a vote again. */
int engine_renew(struct cli *cli, const char *node, bool yes, GError **error);

/*
 * Shared by the parts of `fettle cluster engine`: engine.c (status, the command itself),
 * engine_survey.c (asking all members), engine_rules.c, engine_change.c, engine_renew.c.
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

/* --- engine_rules.c: when a member may leave --- */
/* One of the members that stay, to be asked; NULL: none answers. */
const struct asked *survey_other(const struct survey *survey, const struct asked *one);
/* Those that stay must be able to go on without it, and agree about what it gets from them.
 * `ret_disputed`: they do, but whether they are right, or the one that leaves, only a person can
 * know. */
bool survey_may_leave(const struct survey *survey, const struct asked *one, bool *ret_disputed,
                      GError **error);
/* What helps where members differ, and as many say the one as the other. */
const char *survey_who_is_right(const struct survey *survey);
/* Whether there is a master, as far as fettle-wconfd of this node knows: what it followed when it
 * was told may be this very node. */
bool engine_has_master(const struct role_status *status, const char *node);

/* `fettle cluster engine etcd|sqlite`: begins the change, shows what is done, and returns when the
 * new engine has a master. */
int engine_change(struct cli *cli, enum engine_kind kind, bool yes, GError **error);
/* `fettle cluster engine renew NODE`: takes that node's member out; the master adds it anew, with
 * the data of the others. Returns when it has a vote again. */
int engine_renew(struct cli *cli, const char *node, bool yes, GError **error);

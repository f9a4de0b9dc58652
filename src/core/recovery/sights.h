/*
 * What hosts show of instances whose tasks were left behind: the collector's half (RCV-15). Asked
 * of the node daemons by `collect`, of all hosts at once, one call to each; with a dead job they
 * refuse it from then on before they look (SAF-81).
 */
#pragma once

#include "core/config/follow.h"

struct sights;

struct sights *sights_new(void);
void sights_free(struct sights *sights);
/* Whether that node may be asked about one more. */
bool sights_has_room(const struct sights *sights, const char *node);
/* One more question to that node; `dead_job` 0: nobody is refused anything there. */
void sights_want(struct sights *sights, const char *node, const struct instance *instance,
                 guint64 dead_job);
/* In a task: asks. No node is waited for longer than `limit_ms`. False: the process is killed. */
bool sights_ask(struct sights *sights, const struct env *env, struct stamp stamp, guint limit_ms);
/* Nodes that were asked and have not answered at all, borrowed; to be unreffed. */
GPtrArray *sights_silent(const struct sights *sights);
/* NULL: the node was not asked, or has not answered. Lives as long as `sights`. */
const struct sight *sights_of(const struct sights *sights, const char *node, const char *instance);
/* Changes with every boot of it; "": it has not answered, or not said. */
const char *sights_boot_id(const struct sights *sights, const char *node);
/* Whether it has answered that it does not know the question: its node daemon is of the version
 * before. */
bool sights_older(const struct sights *sights, const char *node);
/* Why it has not: "gave no answer", what it answered instead. NULL: it has, or was not asked. */
const char *sights_refusal(const struct sights *sights, const char *node);

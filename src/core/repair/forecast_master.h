/*
 * What the loss of a node means for those without whom nobody repairs anything: the master, and
 * the majority of etcd's members. Only forecast.c includes this.
 */
#pragma once

#include "core/config/model.h"

/* Who takes the master's place when it is lost (docs/guide/engines.md, candidates.md). */
enum heir {
    HEIR_NONE,     /* nobody can */
    HEIR_BY_WORD,  /* a candidate that a person names */
    HEIR_BY_ITSELF /* one that the candidates choose; or the master is not touched */
};

/* What the loss leaves; `reports`: of struct node_report, of the nodes that answer. */
struct forecast_master {
    enum heir heir;
    bool master;   /* the node is the master */
    bool alone;    /* the person's word needs --alone: the others are no majority */
    bool minority; /* it is not, but no majority of etcd's members is left without it */
};
struct forecast_master forecast_master_of(const struct config *config, const GPtrArray *reports,
                                          const struct node *node);
/* Whether somebody is left who does what auto-repair does. */
bool forecast_master_repairs(const struct forecast_master *master);
/* What becomes of an instance if not: continues no sentence; g_free(). */
char *forecast_master_without(const struct forecast_master *master, const struct instance *instance,
                              const struct node *node);
/* Sentences for the notes. */
void forecast_master_note(const struct forecast_master *master, const struct config *config,
                          const struct node *node, json_t *notes);

/*
 * The one way to say that a node which somebody named, or on which an instance has its replica,
 * cannot take it: the same code for the same reason in every operation, and what to do next. Used
 * by whatever asks placement_fits().
 */
#pragma once

#include "core/placement/placement.h"

/* `sentence` names node and reason; what to do is added. WRONG_INPUT: it is excluded; WRONG_STATE:
 * offline or drained; TEMPORARY: it does not answer (`report` NULL); ENVIRONMENT: it has no such
 * bridge or shared folder; NO_RESOURCES otherwise. */
void placement_refusal_set(const struct config *config, GError **error, const struct node *node,
                           const struct node_report *report, const struct placement_need *need,
                           const char *sentence);

/* They continue a sentence that says that a node has no such bridge, or no room. */
#define PLACEMENT_REFUSAL_NO_BRIDGE                                                                \
    "; make that bridge there, give the card another link, or take a node that has it"
#define PLACEMENT_REFUSAL_NO_ROOM "; make room there, or take another node: fettle node list"

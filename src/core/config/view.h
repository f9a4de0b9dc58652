/*
 * What somebody is given of the configuration: of which kinds, and who, says `view` in
 * proto/objects.def; of these he may want some kinds only. A secret goes to other candidates'
 * copies and to nobody else (SAF-101). A job's process is given what its opcodes may look at, not
 * what there is, so that a job costs the same with one instance and with ten thousand. If it has
 * names, then of instances and of what belongs to one (config_instance_of()) only those of these
 * names, of volumes those and the ones of these instances, with their instance; all else whole.
 * What such a job needs to know of other instances are sums and single addresses, for which it asks
 * (`promised`, `address_user`, `draw_address`, `draw_port`, `backend_empty` in methods.def).
 */
#pragma once

#include "core/config/model.h"

struct view {
    guint64 job;       /* 0: everything, for whom is no job */
    GHashTable *names; /* set of names and UUIDs of instances, volumes; NULL: of all instances */
    guint64 kinds;     /* bits of the kinds that are wanted (object_bit()); 0: all */
    bool secrets;      /* it is a candidate's copy */
    bool front;        /* it is a front end's of the API: what those are not given is not there */
};

/* `named`, `names` (of char *): as in wait_changes_args. */
struct view view_new(guint64 job, bool named, const GPtrArray *names);
void view_clear(struct view *view);
/* `kinds` (of char *): as in wait_changes_args. WRONG_INPUT: one is none. */
bool view_want(struct view *view, const GPtrArray *kinds, GError **error);
/* Whether it is given anything of a kind. */
bool view_has_kind(const struct view *view, const char *kind);
/* Objects of these kinds, those left out that belong to somebody else. */
guint view_count(const struct view *view, const struct config *config);

/* Whether it is given an object of `config`; one that is not there any more counts as gone from it
 * in any case, which does no harm. What is left of a removed instance is found by its UUID alone:
 * another one may have its name by now. */
bool view_has(const struct view *view, const struct config *config, const char *kind,
              const char *key);
/* Whether objects of the kind come to belong to another instance, or to none: one that it is not
 * given any more is gone for it. */
bool view_loses(const struct view *view, const char *kind);
/* Each object that it is given. With names that costs no look at any other instance. */
void view_each(const struct view *view, const struct config *config, config_visit visit,
               void *data);

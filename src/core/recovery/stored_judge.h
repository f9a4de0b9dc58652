/*
 * What becomes of one resource in a status of work that nobody has: the table of tasks, applied to
 * what a member of its back end shows (RCV-73 to 78). Pure, so that a pass of the watcher and
 * `fettle recovery plan` say the same.
 */
#pragma once

#include "core/config/resource.h"
#include "core/recovery/judge.h"

/* Texts are borrowed of the record and of its fault. */
struct stored_subject_now {
    struct resource resource;
    guint64 version;
    const struct task_row *task; /* its status, or what its fault says */
    const struct fault *fault;   /* NULL: none */
    const struct stuck *stuck;   /* NULL: nothing is counted */
    bool attached;
    guint snapshots;      /* of a volume, on record … */
    guint snapshots_left; /* … and of these in a status of work */
};

struct stored_judgement {
    enum judged how;          /* never FINISH */
    const char *rule, *final; /* "gone": its record goes */
    char *data;               /* that it has from now on; "": as it is */
    guint64 size;             /* likewise; 0 */
    bool alert;
    enum event_level level;
    char *why;           /* of BUSY and BLIND, as of a judgement; else what was found */
    GPtrArray *evidence; /* char * */
};

/* False: it is nobody's patient. Of one that somebody has work on, cleanup is the healer (RCV-13).
 */
bool stored_subject(const struct config *config, enum resource_type type, const char *uuid,
                    struct stored_subject_now *ret);
/* `sight` NULL: nobody has looked, because of `silent`. Free with
 * stored_judgement_free(). */
struct stored_judgement *stored_judge(const struct config *config,
                                      const struct stored_subject_now *subject,
                                      const struct stored_sight *sight, const char *silent);
void stored_judgement_free(struct stored_judgement *judgement);
/* "Nobody has the work on volume data1 (creating) any more; …", whole. Free with g_free(). */
char *stored_summary(const struct stored_subject_now *subject,
                     const struct stored_judgement *judgement);

/*
 * What becomes of one stuck instance: the table of tasks, applied to what hosts show. Pure, so that
 * a pass of the watcher and `fettle recovery plan` say the same.
 */
#pragma once

#include "core/recovery/instance_facts.h"

enum judged {
    JUDGED_BUSY,    /* again later */
    JUDGED_BLIND,   /* hosts could not be asked (RCV-35) */
    JUDGED_SETTLED, /* the task goes, and the record says `final` */
    JUDGED_REMOVED, /* nothing of it is left: the record goes */
    JUDGED_ERROR,   /* a fault takes the task's place */
    JUDGED_FINISH,  /* the task stays until a job has finished or undone it */
};

struct judgement {
    enum judged how;
    const struct task_row *task;
    const char *rule;     /* RCV-47, D9/failing-over */
    const char *final;    /* state that the record gets; "": it stays as it is */
    const char *finisher; /* opcode; NULL: none */
    bool runs;            /* its guest does, where the record has it */
    bool alert;           /* a person should look */
    enum event_level level;
    char *why;           /* of BUSY and BLIND: continues "it is not known how it is: "; of
                            ERROR: what cannot be settled */
    GPtrArray *evidence; /* char * */
};

/* What its task is: the record's own, or that of its fault (config/fault.h), which stands in
 * `instance` as if it were its own. NULL: the table does not know it. Free with judgement_free().
 */
struct judgement *judge_instance(const struct recovery_view *view, const struct instance *instance);
void judgement_free(struct judgement *judgement);

/* "kept if it runs or is whole, else removed": what the finishing job does. */
const char *judge_finisher_text(const char *finisher);

/*
 * The tags of auto-repair (requirements-auto-repair.md, sections 2 and 3), read and written here
 * and nowhere else (ARP-05). For their prefix see proto/repair_tag.h.
 */
#pragma once

#include "proto/records.h"

enum repair_tag_kind {
    REPAIR_TAG_NONE,      /* not one of ours */
    REPAIR_TAG_MALFORMED, /* ours, but unreadable: reported, never removed */
    REPAIR_TAG_ENABLE,
    REPAIR_TAG_SUSPEND,
    REPAIR_TAG_PENDING,
    REPAIR_TAG_RESULT,
};

enum repair_outcome { REPAIR_SUCCESS, REPAIR_FAILURE, REPAIR_ENOPERM };

struct repair_tag {
    enum repair_tag_kind kind;
    enum repair_type type;       /* enable, pending, result */
    bool forever;                /* suspend without (readable) timestamp */
    bool unreadable;             /* suspend whose timestamp cannot be read: reported */
    gint64 timestamp;            /* suspend, pending, result: seconds since 1970 */
    char *id;                    /* pending, result */
    enum repair_outcome outcome; /* result */
    GStrv jobs;                  /* pending, result; never NULL there */
};

void repair_tag_parse(const char *text, struct repair_tag *ret_tag);
/* WRONG_INPUT, with the nearest that can be, for a tag that would be one of ours and is unreadable.
 * For who has just set it: what is set already is only reported. */
bool repair_tag_check(const char *text, GError **error);
void repair_tag_clear(struct repair_tag *tag);

const char *repair_type_name(enum repair_type type);
const char *repair_outcome_name(enum repair_outcome outcome);
/* Texts of new tags; `jobs` may be NULL for none. Free with g_free(). */
char *repair_tag_pending(enum repair_type type, const char *id, gint64 timestamp,
                         const char *const *jobs);
char *repair_tag_result(enum repair_type type, const char *id, gint64 timestamp,
                        enum repair_outcome outcome, const char *const *jobs);

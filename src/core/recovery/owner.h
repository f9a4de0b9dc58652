/*
 * Whether who has set a task still works on it (docs/design/recovery.md, "Whose task it is"). Pure:
 * recovery, and lists of what is stuck, judge by it.
 */
#pragma once

#include "core/config/model.h"

enum recovery_owner {
    OWNER_DEAD,    /* it writes nothing any more */
    OWNER_LIVES,   /* it has been started, and may write at any time */
    OWNER_QUEUED,  /* it has not been started */
    OWNER_UNKNOWN, /* nothing is known of it: an id that was not given out yet */
};

/* Of a task whose owner is a job. A final state counts as death: luxid commits one only after its
 * lock file has proved it, or its epoch is over (SAF-06). An id that was given out, and which
 * nobody knows, is of a job that was archived, and so had a final state too. */
enum recovery_owner recovery_owner_of(const struct config *config, guint64 job);
/* Why that is so, a clause: "it ended (error) at TIME". Free with g_free(). */
char *recovery_owner_text(const struct config *config, guint64 job);
/* dead, lives, queued, unknown */
const char *recovery_owner_word(enum recovery_owner owner);

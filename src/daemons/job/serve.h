/*
 * The nursery's part of fettle-job: it forks a process for each request that luxid sends
 * (io/nursery.h), the next one ahead: the warm process. That one has done before the request what
 * is the same for every job, and takes the request itself, so the nursery is in nobody's way.
 *
 * A warm process is no job: it has no lock file, has talked to nobody, and nobody counts it. It
 * ends when luxid does, or lets go of its nursery. One that dies is followed by the next; if that
 * was in its preparation, the nursery takes the next request itself and forks for that. So what
 * kills warm processes stops no job.
 */
#pragma once

#include <glib.h>

struct serve_work {
    void (*prepare)(void); /* what a process can do before it has a job; in the warm process */
    int (*run)(guint64 job, int channel); /* the process of a job, to its end; its exit code */
    void (*discard)(void);                /* after prepare(), if there will be no job */
};

/* Until luxid has ended. Comes back in each process of a job, too: with what main() is to end with.
 * In the nursery and in the warm process an error says what was wrong with a request. */
int serve_requests(const struct serve_work *work, GError **error);

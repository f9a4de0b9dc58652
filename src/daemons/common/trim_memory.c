/* Freed memory goes back to the system; see trim_memory.h. */
#include "daemons/common/trim_memory.h"

#include <malloc.h>

#include "base/limits.h"
#include "io/loop.h"

static struct spare spare;
static guint timer;

bool trim_memory_look(struct spare *before, size_t free_bytes)
{
    /* What is used and freed again and again would only be fetched anew each time. */
    size_t idle = MIN(before->last, free_bytes);
    before->kept = MIN(before->kept, free_bytes);
    before->last = free_bytes;
    return idle - MIN(idle, before->kept) >= SPARE_MEMORY_BYTES;
}

static void look_cb(void *unused)
{
    if (trim_memory_look(&spare, mallinfo2().fordblks)) {
        malloc_trim(0);
        spare.kept = mallinfo2().fordblks;
    }
    timer = loop_timer(SPARE_LOOK_MS, look_cb, NULL);
}

void trim_memory_start(void)
{
    timer = loop_timer(SPARE_LOOK_MS, look_cb, NULL);
}

void trim_memory_stop(void)
{
    loop_timer_cancel(timer);
    timer = 0;
}

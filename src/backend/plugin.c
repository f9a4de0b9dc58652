/*
 * See plugin.h.
 */
#include "backend/plugin.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>

void plugin_outlive_parent(void)
{
    prctl(PR_SET_PDEATHSIG, 0);
}

void plugin_end_at_once(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
}

/* See sm.h. */
#include "base/sm.h"

#include "base/log.h"

static void sink_log(const char *line, void *ctx)
{
    log_info("", "%s", line);
}

static sm_sink current_sink = sink_log;
static void *current_ctx;

void sm_set_sink(sm_sink sink, void *ctx)
{
    current_sink = sink != NULL ? sink : sink_log;
    current_ctx = ctx;
}

bool sm_may_move(const struct sm *machine, unsigned from, unsigned to)
{
    return from < machine->count && to < machine->count &&
           (machine->states[from].successors & SM_TO(to)) != 0;
}

void sm_move(const struct sm *machine, const char *id, unsigned *state, unsigned to,
             const char *why)
{
    unsigned from = *state;
    if (!sm_may_move(machine, from, to))
        g_error("%s %s: may not move from %s to %s", machine->what, id, sm_name(machine, from),
                sm_name(machine, to));
    *state = to;
    g_autofree char *line = why != NULL
                                ? g_strdup_printf("%s %s: %s -> %s (%s)", machine->what, id,
                                                  sm_name(machine, from), sm_name(machine, to), why)
                                : g_strdup_printf("%s %s: %s -> %s", machine->what, id,
                                                  sm_name(machine, from), sm_name(machine, to));
    current_sink(line, current_ctx);
}

const char *sm_name(const struct sm *machine, unsigned state)
{
    return state < machine->count ? machine->states[state].name : "(no state)";
}

bool sm_parse(const struct sm *machine, const char *name, unsigned *ret_state)
{
    for (unsigned i = 0; i < machine->count; i++) {
        if (g_strcmp0(machine->states[i].name, name) == 0) {
            *ret_state = i;
            return true;
        }
    }
    return false;
}

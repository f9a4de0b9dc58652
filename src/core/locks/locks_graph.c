/*
 * The wait-for graph: a waiting request's owner points to everybody who is in its way. Without
 * out-of-order requests it never has a circle (locks.h tells why); with them every circle goes
 * through one of them, which is where the search begins.
 */
#include "core/locks/locks_private.h"

/* How the search came to an owner. */
struct step {
    const struct holder *holder;
    const struct step *from;
    struct blocker edge; /* from `from` to here */
};

struct search {
    const struct holder *goal;
    const struct step *at;
    GHashTable *seen;  /* struct holder */
    GPtrArray *steps;  /* struct step, in the order of finding */
    struct step *last; /* back at the goal */
};

static void follow_edge(const struct blocker *blocker, void *data)
{
    struct search *search = data;
    bool home = blocker->holder == search->goal;
    if (search->last || (!home && !g_hash_table_add(search->seen, (void *)blocker->holder)))
        return;
    struct step *step = g_new(struct step, 1);
    *step = (struct step){blocker->holder, search->at, *blocker};
    g_ptr_array_add(search->steps, step);
    if (home)
        search->last = step;
}

/* Breadth first, so the circle that is found is a shortest one. */
static void search_run(const struct locks *locks, struct search *search)
{
    struct step *start = g_new0(struct step, 1);
    start->holder = search->goal;
    g_ptr_array_add(search->steps, start);
    for (guint i = 0; i < search->steps->len && !search->last; i++) {
        search->at = search->steps->pdata[i];
        if (search->at->holder->waiting)
            request_each_blocker(locks, search->at->holder->waiting, follow_edge, search);
    }
}

static void tell_step(GString *text, const struct step *step)
{
    if (!step->from) {
        g_autofree char *name = locks_owner_name(step->holder->id);
        g_string_append_printf(text, "%s waits for ", name);
        return;
    }
    tell_step(text, step->from);
    g_autofree char *name = locks_owner_name(step->holder->id);
    g_string_append_printf(text, "%s%s, %s %s", step->from->from ? ", which waits for " : "",
                           step->edge.lock->name,
                           step->edge.waiting ? "for which comes first" : "held by", name);
}

char *graph_circle(const struct locks *locks, const struct request *request)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) steps = g_ptr_array_new_with_free_func(g_free);
    struct search search = {.goal = request->holder, .seen = seen, .steps = steps};
    search_run(locks, &search);
    if (!search.last)
        return NULL;
    GString *text = g_string_new(NULL);
    tell_step(text, search.last);
    return g_string_free(text, FALSE);
}

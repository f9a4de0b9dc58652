/* Locks, requests and answers as text; see lock_text.h. */
#include "unit/core/world/lock_text.h"

#include <string.h>

struct locks_case {
    void (*test)(struct locks *locks);
};

static void run_case(const void *data)
{
    struct locks *locks = locks_new(NULL, NULL);
    ((const struct locks_case *)data)->test(locks);
    locks_free(locks);
}

void locks_case(const char *path, void (*test)(struct locks *locks))
{
    struct locks_case *data = g_new(struct locks_case, 1);
    data->test = test;
    g_test_add_data_func_full(path, data, run_case, g_free);
}

struct owner *lock_owner_of(guint number)
{
    struct owner *owner = owner_new();
    g_free(owner->job);
    g_free(owner->livelock);
    owner->job = g_strdup_printf("%u", number);
    owner->livelock = g_strdup_printf("job-%u", number);
    return owner;
}

static void lock_request_drop(void *data)
{
    lock_request_free(data);
}

GPtrArray *lock_requests_new(void)
{
    return g_ptr_array_new_with_free_func(lock_request_drop);
}

void lock_request_add(GPtrArray *requests, const char *name, enum lock_mode mode)
{
    struct lock_request *request = lock_request_new();
    g_free(request->name);
    request->name = g_strdup(name);
    request->mode = mode;
    g_ptr_array_add(requests, request);
}

/* "x instance/a, s node/n1, r node/n2" */
GPtrArray *lock_requests(const char *text)
{
    GPtrArray *requests = lock_requests_new();
    g_auto(GStrv) parts = g_strsplit(text, ", ", -1);
    for (guint i = 0; parts[i]; i++)
        lock_request_add(requests, parts[i] + 2,
                         parts[i][0] == 'x'   ? LOCK_EXCLUSIVE
                         : parts[i][0] == 's' ? LOCK_SHARED
                                              : LOCK_RELEASE);
    return requests;
}

/* What the owner holds, as text in the same form. */
char *locks_held_text(const struct locks *locks, guint number)
{
    record_autoptr(owner) owner = lock_owner_of(number);
    g_autoptr(GPtrArray) list = locks_list(locks, owner);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++) {
        const struct lock_state *state = list->pdata[i];
        g_string_append_printf(text, "%s%c %s", text->len ? ", " : "",
                               state->waiting                  ? 'w'
                               : state->mode == LOCK_EXCLUSIVE ? 'x'
                                                               : 's',
                               state->name);
    }
    return g_string_free(text, FALSE);
}

/* "granted", "blocked by 1 2", "waits", or the error's text. */
char *locks_ask(struct locks *locks, guint number, const char *text, bool wait, gint64 priority)
{
    record_autoptr(owner) owner = lock_owner_of(number);
    g_autoptr(GPtrArray) requests = lock_requests(text);
    g_autoptr(GError) error = NULL;
    struct locks_wait how = {.priority = priority, .tag = GUINT_TO_POINTER(number)};
    enum locks_outcome outcome;
    if (!locks_update(locks, owner, requests, wait ? &how : NULL, &outcome, &error))
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    if (outcome == LOCKS_GRANTED)
        return g_strdup("granted");
    if (outcome == LOCKS_WAITS)
        return g_strdup("waits");
    record_autoptr(update_locks_result) result = locks_explain(locks, owner, requests, &how);
    GString *blockers = g_string_new("blocked by");
    for (guint i = 0; i < result->blockers->len; i++)
        g_string_append_printf(blockers, " %s", ((struct owner *)result->blockers->pdata[i])->job);
    for (guint i = 0; i < result->pending_nodes->len; i++)
        g_string_append_printf(blockers, " gate %s", (char *)result->pending_nodes->pdata[i]);
    return g_string_free(blockers, FALSE);
}

/* Numbers of the owners that were granted what they waited for: "2 3". */
char *locks_grants_text(struct locks *locks)
{
    g_autoptr(GPtrArray) grants = locks_take_grants(locks);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < grants->len; i++)
        g_string_append_printf(text, "%s%u", i ? " " : "",
                               GPOINTER_TO_UINT(((struct locks_grant *)grants->pdata[i])->tag));
    return g_string_free(text, FALSE);
}

void locks_release(struct locks *locks, guint number)
{
    record_autoptr(owner) owner = lock_owner_of(number);
    locks_free_owner(locks, owner);
}

/*
 * See guest_users.h.
 */
#include "backend/guest_users.h"

#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where systemd, subordinate ids, containers and network file systems have none. */
#define FIRST 1879048192u
#define COUNT 4096u

enum use {
    FREE,
    USED,  /* a process had it at the last look */
    TAKEN, /* given out, and not given back */
};

struct guest_users {
    guint32 first, shared;
    guint count;
    guint
        next; /* where the search for a free one goes on: the one that rested longest comes first */
    enum use *use;
};

/* False: it could not be read, although the process may be there. */
static bool read_status(const char *pid, char *text, size_t size)
{
    g_autofree char *path = g_build_filename("/proc", pid, "status", NULL);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (file == NULL)
        return errno == ENOENT || errno == ESRCH;
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return true;
}

static void see(const struct guest_users *users, guint32 uid, enum use *seen)
{
    guint index = uid - users->first;
    if (uid >= users->first && index < users->count)
        seen[index] = USED;
}

/* Whatever of its four ids it is: a process may have changed some of them. */
static bool see_process(const struct guest_users *users, const char *pid, enum use *seen)
{
    char status[4096];
    guint32 ids[4];
    if (!read_status(pid, status, sizeof status))
        return false;
    const char *line = strstr(status, "\nUid:");
    if (line != NULL && sscanf(line, "\nUid: %u %u %u %u", ids, ids + 1, ids + 2, ids + 3) == 4)
        for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
            see(users, ids[i], seen);
    return true;
}

/* A look that has not seen everything frees nothing. */
static void look(struct guest_users *users)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    g_autofree enum use *seen = g_new0(enum use, users->count);
    const char *name;
    bool all = proc != NULL;
    while (proc != NULL && (name = g_dir_read_name(proc)) != NULL)
        if (g_ascii_isdigit(name[0]))
            all = see_process(users, name, seen) && all;
    for (guint i = 0; i < users->count; i++)
        if (users->use[i] != TAKEN && (all || seen[i] == USED))
            users->use[i] = seen[i];
}

static bool find_free(const struct guest_users *users, guint *ret_index)
{
    for (guint i = 0; i < users->count; i++) {
        guint index = (users->next + i) % users->count;
        if (users->use[index] == FREE) {
            *ret_index = index;
            return true;
        }
    }
    return false;
}

struct guest_users *guest_users_new(const struct node_config *config)
{
    struct guest_users *users = g_rc_box_new0(struct guest_users);
    if (geteuid() != 0)
        return users;
    users->first = config->guest_user_first != 0 ? (guint32)config->guest_user_first : FIRST;
    users->count = config->guest_users != 0 ? (guint)config->guest_users : COUNT;
    users->shared = config->qemu_uid != 0 ? (guint32)config->qemu_uid : users->first + users->count;
    users->use = g_new0(enum use, users->count);
    users->next = (guint)g_random_int_range(0, (gint32)users->count);
    look(users);
    return users;
}

struct guest_users *guest_users_ref(struct guest_users *users)
{
    return g_rc_box_acquire(users);
}

static void clear(void *data)
{
    g_free(((struct guest_users *)data)->use);
}

void guest_users_unref(struct guest_users *users)
{
    if (users != NULL)
        g_rc_box_release_full(users, clear);
}

guint32 guest_users_take(struct guest_users *users)
{
    guint index;
    if (users->count == 0)
        return 0;
    look(users);
    if (!find_free(users, &index))
        return users->shared;
    users->use[index] = TAKEN;
    users->next = (index + 1) % users->count;
    return users->first + index;
}

void guest_users_give_back(struct guest_users *users, guint32 uid)
{
    guint index = uid - users->first;
    if (uid >= users->first && index < users->count && users->use[index] == TAKEN)
        users->use[index] = USED;
}

guint32 guest_users_shared(const struct guest_users *users)
{
    return users->shared;
}

guint guest_users_count(struct guest_users *users, guint *ret_used)
{
    guint index;
    *ret_used = 0;
    if (users->count > 0 && !find_free(users, &index))
        look(users); /* some may have ended since */
    for (guint i = 0; i < users->count; i++)
        *ret_used += users->use[i] != FREE;
    return users->count;
}

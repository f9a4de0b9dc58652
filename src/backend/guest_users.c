/*
 * See guest_users.h.
 */
#include "backend/guest_users.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where systemd, subordinate ids, containers and network file systems have none. */
#define FIRST 1879048192u
#define COUNT 4096u

enum use {
    FREE,
    USED,  /* a process had it at the last look, or was to get it since */
    TAKEN, /* and it is not given back */
};

struct guest_users {
    guint32 first, shared;
    guint count;
    guint
        next; /* where the search for a free one goes on: the one that rested longest comes first */
    enum use *use;
};

static bool read_status(const char *pid, char *text, size_t size)
{
    g_autofree char *path = g_build_filename("/proc", pid, "status", NULL);
    FILE *file = g_ascii_isdigit(pid[0]) ? fopen(path, "re") : NULL;
    size_t got = file != NULL ? fread(text, 1, size - 1, file) : 0;
    text[got] = '\0';
    if (file != NULL)
        fclose(file);
    return got > 0;
}

static void see(struct guest_users *users, guint32 uid)
{
    guint index = uid - users->first;
    if (uid >= users->first && index < users->count && users->use[index] == FREE)
        users->use[index] = USED;
}

/* Whatever of its four ids it is: a process may have changed some of them. */
static void see_process(struct guest_users *users, const char *pid)
{
    char status[4096];
    guint32 ids[4];
    const char *line = read_status(pid, status, sizeof status) ? strstr(status, "\nUid:") : NULL;
    if (line != NULL && sscanf(line, "\nUid: %u %u %u %u", ids, ids + 1, ids + 2, ids + 3) == 4)
        for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
            see(users, ids[i]);
}

static void look(struct guest_users *users)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    const char *name;
    for (guint i = 0; proc != NULL && i < users->count; i++)
        if (users->use[i] == USED)
            users->use[i] = FREE;
    while (proc != NULL && (name = g_dir_read_name(proc)) != NULL)
        see_process(users, name);
}

static bool find_free(struct guest_users *users, guint *ret_index)
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
    struct guest_users *users = g_new0(struct guest_users, 1);
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

void guest_users_free(struct guest_users *users)
{
    if (users == NULL)
        return;
    g_free(users->use);
    g_free(users);
}

guint32 guest_users_take(struct guest_users *users)
{
    guint index;
    if (!find_free(users, &index)) {
        look(users);
        if (!find_free(users, &index))
            return users->shared;
    }
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
    if (!find_free(users, &index))
        look(users);
    for (guint i = 0; i < users->count; i++)
        *ret_used += users->use[i] != FREE;
    return users->count;
}

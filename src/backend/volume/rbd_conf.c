/* See rbd_conf.h. */
#include "backend/volume/rbd_conf.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/ceph_conf.h"

/* Of one back end. */
struct known {
    char *of; /* the words and files that the text was made of, as they were then */
    char **places;
    char *text;
};

struct rbd_confs {
    GHashTable *known; /* UUID -> struct known */
};

static void known_free(void *data)
{
    struct known *known = data;
    g_free(known->of);
    g_strfreev(known->places);
    g_free(known->text);
    g_free(known);
}

struct rbd_confs *rbd_confs_new(void)
{
    struct rbd_confs *confs = g_new0(struct rbd_confs, 1);
    confs->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, known_free);
    return confs;
}

void rbd_confs_free(struct rbd_confs *confs)
{
    g_hash_table_unref(confs->known);
    g_free(confs);
}

static const char *user_of(const struct backend *backend)
{
    return *backend->user ? backend->user : "admin";
}

static void add_file(GString *all, const char *path)
{
    struct stat status;
    g_string_append_printf(all, "%s ", path);
    if (*path && stat(path, &status) == 0)
        g_string_append_printf(all, "%ju %ju %jd %jd.%09ld", (uintmax_t)status.st_dev,
                               (uintmax_t)status.st_ino, (intmax_t)status.st_size,
                               (intmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    g_string_append_c(all, '\n');
}

/* What a text depends on. The configuration as it was before it has said where keys are. */
static GString *look_at_conf(const struct backend *backend)
{
    GString *all = g_string_new(user_of(backend));
    g_string_append_c(all, '\n');
    add_file(all, backend->conf);
    return all;
}

static void look_at_keys(GString *all, char **places)
{
    while (*places)
        add_file(all, *places++);
}

static struct known *read_anew(const struct backend *backend, GError **error)
{
    GString *all = look_at_conf(backend);
    const char *user = user_of(backend);
    bool key;
    char **places = ceph_conf_places(backend->conf, user, error);
    if (places)
        look_at_keys(all, places);
    char *text = places
                     ? ceph_conf_read(backend->conf, user, (const char *const *)places, &key, error)
                     : NULL;
    struct known *known = g_new0(struct known, 1);
    *known = (struct known){g_string_free(all, FALSE), places, text};
    if (text)
        return known;
    known_free(known);
    g_prefix_error(error, "%s: ", backend->name);
    return NULL;
}

char *rbd_conf_text(struct rbd_confs *confs, const struct backend *backend, GError **error)
{
    struct known *known = g_hash_table_lookup(confs->known, backend->uuid);
    GString *now = look_at_conf(backend);
    if (known)
        look_at_keys(now, known->places);
    bool same = known && strcmp(known->of, now->str) == 0;
    g_string_free(now, TRUE);
    if (same)
        return g_strdup(known->text);
    known = read_anew(backend, error);
    if (!known)
        return NULL;
    char *text = g_strdup(known->text);
    g_hash_table_insert(confs->known, g_strdup(backend->uuid), known);
    return text;
}

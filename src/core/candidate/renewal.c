/* See renewal.h. */
#include "core/candidate/renewal.h"

static const char *name_of(const struct engine_config *config, guint i)
{
    return ((const struct engine_member *)config->members->pdata[i])->name;
}

static void append_name(GString *names, const char *name)
{
    g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", name);
}

gint renewal_other(const struct ensemble_seen *seen, guint count, guint one)
{
    for (guint i = 0; i < count; i++)
        if (i != one && seen[i].lists && seen[i].healthy)
            return (gint)i;
    return -1;
}

static bool is_majority_left(const struct engine_config *config, const struct ensemble_seen *seen,
                             guint one, GError **error)
{
    g_autoptr(GString) ill = g_string_new(NULL);
    guint voters = 0, well = 0;
    for (guint i = 0; i < config->members->len; i++) {
        if (i == one || seen[i].learner)
            continue;
        voters++;
        well += seen[i].healthy && !seen[i].content.odd;
        if (!seen[i].healthy || seen[i].content.odd)
            append_name(ill, name_of(config, i));
    }
    if (well > voters / 2 && renewal_other(seen, config->members->len, one) >= 0)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "without the member of %s no majority of the others is left: not well are %s; "
                     "bring them back first, see fettle cluster engine status",
                     name_of(config, one), ill->len > 0 ? ill->str : "none, but there are too few");
    return false;
}

/* Names of those whose data was compared. */
static char *names_of_known(const struct engine_config *config, const struct ensemble_seen *seen,
                            guint one)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < config->members->len; i++)
        if (i != one && seen[i].content.known)
            append_name(names, name_of(config, i));
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static bool do_others_differ(const struct ensemble_seen *seen, guint count, guint one)
{
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, count);
    for (guint i = 0; i < count; i++)
        if (i != one)
            contents[i] = seen[i].content;
    return etcd_contents_judge(contents, count) == ETCD_CONTENTS_UNDECIDED;
}

static const char *who_is_right(const struct ensemble_seen *seen, guint count)
{
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, count);
    for (guint i = 0; i < count; i++)
        contents[i] = seen[i].content;
    return etcd_contents_who_is_right(contents, count);
}

bool renewal_may_leave(const struct engine_config *config, const struct ensemble_seen *seen,
                       enum etcd_verdict verdict, guint one, bool *ret_disputed, GError **error)
{
    guint count = config->members->len;
    *ret_disputed = verdict == ETCD_CONTENTS_UNDECIDED;
    if (!is_majority_left(config, seen, one, error))
        return false;
    if (!*ret_disputed || !do_others_differ(seen, count, one))
        return true;
    g_autofree char *names = names_of_known(config, seen, one);
    fettle_set_error(error, WRONG_STATE,
                     "the data of %s differs, and nobody can say which is right; with that of one "
                     "of them the member of %s would make it that of most; %s",
                     names, name_of(config, one), who_is_right(seen, count));
    return false;
}

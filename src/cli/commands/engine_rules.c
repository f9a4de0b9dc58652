/* When a member may leave; see engine.h. */
#include "cli/commands/engine.h"

#include <string.h>

const struct asked *survey_other(const struct survey *survey, const struct asked *one)
{
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        if (asked != one && asked->listed && asked->status->healthy)
            return asked;
    }
    return NULL;
}

static bool is_majority_left(const struct survey *survey, const struct asked *one, GError **error)
{
    g_autoptr(GString) ill = g_string_new(NULL);
    guint voters = 0, well = 0;
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        if (asked == one || asked->status->learner)
            continue;
        voters++;
        well += asked->status->healthy && !asked->content.odd;
        if (!asked->status->healthy || asked->content.odd)
            g_string_append_printf(ill, "%s%s", ill->len > 0 ? ", " : "", asked->member->name);
    }
    if (well > voters / 2 && survey_other(survey, one) != NULL)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "without the member of %s no majority of the others is left: not well are %s; "
                     "bring them back first, see fettle cluster engine status",
                     one->member->name, ill->len > 0 ? ill->str : "none, but there are too few");
    return false;
}

/* Names of those whose data was compared. */
static char *names_of_known(const struct survey *survey, const struct asked *one)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        if (asked != one && asked->content.known)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", asked->member->name);
    }
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static bool do_others_differ(const struct survey *survey, const struct asked *one)
{
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, survey->members->len);
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        if (asked != one)
            contents[i] = asked->content;
    }
    return etcd_contents_judge(contents, survey->members->len) == ETCD_CONTENTS_UNDECIDED;
}

const char *survey_who_is_right(const struct survey *survey)
{
    for (guint i = 0; i < survey->members->len; i++) {
        const struct asked *asked = survey->members->pdata[i];
        if (!asked->content.known)
            return "bring the other members back first, then ask again";
    }
    return "the log of the fettle-wconfd that was master names a member that answered what was "
           "never stored: renew that one";
}

bool survey_may_leave(const struct survey *survey, const struct asked *one, bool *ret_disputed,
                      GError **error)
{
    *ret_disputed = survey->verdict == ETCD_CONTENTS_UNDECIDED;
    if (!is_majority_left(survey, one, error))
        return false;
    if (!*ret_disputed || !do_others_differ(survey, one))
        return true;
    g_autofree char *names = names_of_known(survey, one);
    fettle_set_error(error, WRONG_STATE,
                     "the data of %s differs, and nobody can say which is right; with that of one "
                     "of them the member of %s would make it that of most; %s",
                     names, one->member->name, survey_who_is_right(survey));
    return false;
}

bool engine_has_master(const struct role_status *status, const char *node)
{
    return status->seat == SEAT_MASTER ||
           (status->seat == SEAT_FOLLOWS && *status->why == '\0' && *status->master_node != '\0' &&
            strcmp(status->master_node, node) != 0);
}

/* See error.h. */
#include "base/error.h"

struct error_row {
    const char *name;
    int exit_code;
    const char *doc;
};

static const struct error_row rows[FETTLE_ERROR_COUNT] = {
#define ERROR(NAME, wire, exit_code, http_status, doc)                                             \
    [FETTLE_ERROR_##NAME] = {wire, exit_code, doc},
#include "base/error.def"
#undef ERROR
};

G_DEFINE_QUARK(fettle - error - quark, fettle_error)

static const struct error_row *row_of(const GError *error)
{
    if (error == NULL || error->domain != FETTLE_ERROR || error->code < 0 ||
        error->code >= FETTLE_ERROR_COUNT)
        return &rows[FETTLE_ERROR_INTERNAL];
    return &rows[error->code];
}

const char *fettle_error_name(const GError *error)
{
    return row_of(error)->name;
}

enum fettle_error fettle_error_from_name(const char *name)
{
    for (int i = 0; i < FETTLE_ERROR_COUNT; i++)
        if (g_strcmp0(rows[i].name, name) == 0)
            return (enum fettle_error)i;
    return FETTLE_ERROR_INTERNAL;
}

int fettle_error_exit_code(const GError *error)
{
    return row_of(error)->exit_code;
}

const char *fettle_error_doc(enum fettle_error code)
{
    return rows[code].doc;
}

bool fettle_set_ended(GError **error, const char *who)
{
    if (error == NULL || *error == NULL)
        fettle_set_error(error, KILLED, "%s has ended", who);
    return false;
}

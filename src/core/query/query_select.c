/* See query_select.h. */
#include "core/query/query_select.h"

#include "core/job/filter.h"
#include "core/query/query.h"

struct selection {
    struct query_source source;
    const struct instance *row;
    const struct query_field *live; /* one that the filter names; NULL: none */
};

static const void *find_field(const char *name, void *data)
{
    return query_field_find("instance", name);
}

static void note_live(const void *field, void *data)
{
    struct selection *selection = data;
    const struct query_field *named = field;
    if (named->live)
        selection->live = named;
}

static json_t *row_value(const void *field, void *data)
{
    struct selection *selection = data;
    enum query_status status;
    return query_field_value(field, &selection->source, selection->row, &status);
}

static void collect(struct selection *selection, const struct filter *filter, GPtrArray *found)
{
    g_autoptr(GPtrArray) all = config_list(selection->source.config, "instance");
    for (guint i = 0; i < all->len; i++) {
        selection->row = all->pdata[i];
        if (filter_match(filter, row_value, selection, NULL))
            g_ptr_array_add(found, g_strdup(selection->row->uuid));
    }
}

GPtrArray *query_select_instances(const struct config *config, const json_t *filter_json,
                                  GError **error)
{
    struct selection selection = {.source = {.config = config}};
    GError *bad = NULL;
    struct filter *filter = filter_parse(filter_json, find_field, NULL, &bad);
    if (bad) {
        g_propagate_error(error, bad);
        return NULL;
    }
    filter_fields(filter, note_live, &selection);
    GPtrArray *found = NULL;
    if (selection.live) {
        fettle_set_error(error, WRONG_INPUT,
                         "filter: field \"%s\" is asked of the nodes; only what is on record can "
                         "be matched here",
                         selection.live->name);
    } else {
        found = g_ptr_array_new_with_free_func(g_free);
        collect(&selection, filter, found);
    }
    query_source_clear(&selection.source);
    filter_free(filter);
    return found;
}

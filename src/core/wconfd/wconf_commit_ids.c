/*
 * The ids of the newest commits, by which one is known whose answer was lost (SAF-04). The engine
 * looks them up; here they are kept in order, to go along where the configuration goes: with the
 * changes to the candidates' copies, and into another engine (docs/design/mastership.md, "Commits
 * that are repeated").
 */
#include "core/wconfd/wconf_private.h"

struct known_id {
    guint64 serial;
    char id[37];
};

struct wconf_commit_ids {
    GArray *known; /* struct known_id: of the newest commits, in order of serial */
};

struct wconf_commit_ids *wconf_commit_ids_new(void)
{
    struct wconf_commit_ids *ids = g_new0(struct wconf_commit_ids, 1);
    ids->known = g_array_new(FALSE, FALSE, sizeof(struct known_id));
    return ids;
}

void wconf_commit_ids_free(struct wconf_commit_ids *ids)
{
    g_array_unref(ids->known);
    g_free(ids);
}

void wconf_commit_ids_note(struct wconf *wconf, const char *id, guint64 serial)
{
    struct known_id known = {.serial = serial};
    g_strlcpy(known.id, id, sizeof known.id);
    /* Some at a time, so that it is not done with every commit. */
    if (wconf->ids->known->len >= LIMIT_COMMIT_IDS + LIMIT_IDS_PIECE)
        g_array_remove_range(wconf->ids->known, 0, LIMIT_IDS_PIECE);
    g_array_append_val(wconf->ids->known, known);
}

/* What is no id cannot be repeated either; it must not keep copies from being filled. */
static void note_cb(const char *id, guint64 serial, void *data)
{
    if (g_uuid_string_is_valid(id))
        wconf_commit_ids_note(data, id, serial);
}

bool wconf_commit_ids_load(struct wconf *wconf, GError **error)
{
    struct engine *engine = wconf->engine;
    g_array_set_size(wconf->ids->known, 0);
    return engine->ops->each_id(engine, note_cb, wconf, error);
}

/* Index of the first one behind a serial. */
static guint first_after(const struct wconf *wconf, guint64 after)
{
    const GArray *known = wconf->ids->known;
    guint low = 0, high = known->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(known, struct known_id, middle).serial <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void wconf_commit_ids_list(const struct wconf *wconf, guint64 after, guint max, GPtrArray *commits)
{
    const GArray *ids = wconf->ids->known;
    for (guint i = first_after(wconf, after); i < ids->len && commits->len < max; i++) {
        struct known_id *known = &g_array_index(ids, struct known_id, i);
        struct stored_commit from = {.id = known->id, .serial = known->serial};
        g_ptr_array_add(commits, stored_commit_copy(&from));
    }
}

void wconf_handle_commit_ids(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(commit_ids_args) args =
        rpc_request_args(request, &commit_ids_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    record_autoptr(commit_ids_piece) piece = commit_ids_piece_new();
    piece->history = config_history(wconf->committed);
    piece->epoch = wconf->epoch;
    wconf_commit_ids_list(wconf, args->after, LIMIT_IDS_PIECE, piece->commits);
    piece->more = wconf->ids->known->len - first_after(wconf, args->after) > piece->commits->len;
    rpc_answer(request, commit_ids_piece_to_json(piece));
}

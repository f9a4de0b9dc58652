/*
 * What is wanted of this node's member of etcd, in var/node/member.json. See keeper_private.h.
 */
#include "core/member/keeper_private.h"

#define RECORD_FILE "node/member.json"

bool keeper_save(struct keeper *keeper, const struct member_record *record, GError **error)
{
    json_autoptr json = member_record_to_json(record);
    g_autofree char *text = json_to_text(json);
    if (!keeper->env->ops->file_write(keeper->env, FILE_STATE, RECORD_FILE, text, strlen(text),
                                      error))
        return false;
    struct member_record *copy = member_record_copy(record);
    member_record_free(keeper->record);
    keeper->record = copy;
    return true;
}

bool keeper_save_run(struct keeper *keeper, bool run, GError **error)
{
    if (keeper->record == NULL || keeper->record->run == run)
        return true;
    record_autoptr(member_record) changed = member_record_copy(keeper->record);
    changed->run = run;
    return keeper_save(keeper, changed, error);
}

bool keeper_forget(struct keeper *keeper, GError **error)
{
    if (!keeper->env->ops->file_remove(keeper->env, FILE_STATE, RECORD_FILE, error))
        return false;
    member_record_free(keeper->record);
    keeper->record = NULL;
    return true;
}

bool keeper_load(struct keeper *keeper, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text = keeper->env->ops->file_read(keeper->env, FILE_STATE, RECORD_FILE,
                                                        LIMIT_STATE_FILE_BYTES, &len, &why);
    if (text == NULL && fettle_error_is(why, UNKNOWN_ENTITY))
        return true;
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &why) : NULL;
    keeper->record = json != NULL ? member_record_parse(json, RECORD_KEEP, &why) : NULL;
    if (keeper->record == NULL)
        fettle_set_error(error, CORRUPT,
                         "var/" RECORD_FILE " is damaged (%s); put back the file as it was",
                         why->message);
    return keeper->record != NULL;
}

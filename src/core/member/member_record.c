/*
 * What is wanted of this node's member of etcd, in var/node/member.json. See member_private.h.
 */
#include "core/member/member_private.h"

#define RECORD_FILE "node/member.json"

bool member_care_save(struct member_care *care, const struct member_record *record, GError **error)
{
    json_autoptr json = member_record_to_json(record);
    g_autofree char *text = json_to_text(json);
    if (!care->env->ops->file_write(care->env, FILE_STATE, RECORD_FILE, text, strlen(text), error))
        return false;
    struct member_record *copy = member_record_copy(record);
    member_record_free(care->record);
    care->record = copy;
    return true;
}

bool member_care_save_run(struct member_care *care, bool run, GError **error)
{
    if (care->record == NULL || care->record->run == run)
        return true;
    record_autoptr(member_record) changed = member_record_copy(care->record);
    changed->run = run;
    return member_care_save(care, changed, error);
}

bool member_care_forget(struct member_care *care, GError **error)
{
    if (!care->env->ops->file_remove(care->env, FILE_STATE, RECORD_FILE, error))
        return false;
    member_record_free(care->record);
    care->record = NULL;
    return true;
}

bool member_care_load(struct member_care *care, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text = care->env->ops->file_read(care->env, FILE_STATE, RECORD_FILE,
                                                      LIMIT_STATE_FILE_BYTES, &len, &why);
    if (text == NULL && fettle_error_is(why, UNKNOWN_ENTITY))
        return true;
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &why) : NULL;
    care->record = json != NULL ? member_record_parse(json, RECORD_KEEP, &why) : NULL;
    if (care->record == NULL)
        fettle_set_error(error, CORRUPT,
                         "var/" RECORD_FILE " is damaged (%s); put back the file as it was",
                         why->message);
    return care->record != NULL;
}

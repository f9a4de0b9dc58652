/*
 * What the files of block storage v3 share (volume_*.c, one for each thing that clients speak of):
 * finding what a project has, what bodies say, what answers have, lists, and how something is asked
 * of wconfd. Whatever is decided is decided there.
 */
#pragma once

#include "core/api/api_private.h"
#include "core/config/resource.h"

#define BLOCK_ZONE "nova" /* the only availability zone */

/* --- what there is --- */

/* By its id, if it is the project's that asks, or an administrator asks; its record. It is what the
 * call is about then. UNKNOWN_ENTITY, in Cinder's words. */
const void *block_find(struct api_call *call, enum resource_type type, const char *id,
                       GError **error);
/* That of the path. */
const void *block_found(struct api_call *call, enum resource_type type, GError **error);

/* The same of what has just been made. TEMPORARY: it is on record, and not to be seen here (yet).
 */
bool block_made(struct api_call *call, enum resource_type type, const char *id, GError **error);
/* The type of the project's volumes that name none, if it has one of its own. */
const struct volume_type *block_default_type(const struct api_call *call);

/* --- what bodies say --- */

/* Whether the body has that member, at its wrapper, and it is not null. */
bool block_says(const struct api_call *call, const char *member);
/* 7, or "7". WRONG_INPUT: it is no number from 1 to LIMIT_VOLUME_GIB. */
bool block_size(const json_t *json, guint64 *ret, GError **error);
/* true, or "true" as clients write it; NULL: `otherwise`. WRONG_INPUT, names the field. */
bool block_truth(const json_t *json, const char *field, bool otherwise, bool *ret, GError **error);
/* What a volume_update_body says of names; whether that is to be different. */
bool block_read_names(const struct api_call *call, char **name, char **description,
                      bool *ret_no_name, bool *ret_no_description);
/* Replaces a list of a record. */
void block_set_words(GPtrArray **list, GPtrArray *words);

/* --- what answers have --- */

/* null for "". */
json_t *block_text(const char *text);
json_t *block_metadata(const GPtrArray *words);
/* The value of a key of such words; NULL: there is none. */
const char *block_word(const GPtrArray *words, const char *key);
/* self and bookmark of `volumes/ID`. */
json_t *block_links(const struct api_call *call, const char *plural, const char *id);
/* "node1@dir1#dir1"; NULL: no service has it. Free with g_free(). */
char *block_host(const struct config *config, const char *host, const char *backend);

/* --- lists --- */

struct block_list {
    const char *plural;          /* "volumes" */
    GPtrArray *items;            /* records, borrowed */
    const struct record *record; /* that they are of */
    const char *(*id)(const void *record);
    /* By a key of filters and of sorting, as a text; NULL: it has none of that name. `scratch` has
     * room for a number. */
    const char *(*text)(const struct config *config, const void *record, const char *key,
                        char *scratch);
    /* What it is sorted by as a number: `size`, `created_at`, `updated_at`; NULL: by its text. */
    guint64 (*number)(const void *record, const char *key);
    json_t *(*view)(const struct api_call *call, const struct config *config, const void *record);
    json_t *(*detail)(const struct api_call *call, const struct config *config, const void *record);
};
#define BLOCK_SCRATCH 32

/* Filters, sorts and cuts `items`, which it unrefs, as the query says, and answers with that page.
 */
struct http_answer *block_answer_list(struct api_call *call, const struct block_list *list,
                                      bool detail, GError **error);
/* Of that kind what the project has, or with all_tenants what there is. */
GPtrArray *block_items(const struct api_call *call, const struct config *config,
                       enum resource_type type);
/* What resources of all kinds have of `text`. */
const char *block_resource_text(const struct config *config, const struct resource *resource,
                                const char *key, char *scratch);

/* --- what is asked of wconfd --- */

struct accept_work_args *block_work(struct api_call *call, enum resource_type type,
                                    const char *operation, const char *resource);
/* `args` is stolen. The answer is to be freed. */
struct accepted_work *block_accept(struct api_call *call, struct accept_work_args *args,
                                   GError **error);
/* The same of a method that answers with nothing but its serial; `args`, of that record, is stolen,
 * and gets a commit id, which is a member of it. */
bool block_change(struct api_call *call, const char *method, const struct record *record,
                  void *args, char **commit_id, GError **error);
/* What that project may have; valid until the next wait. */
const struct api_quota *block_quota(const struct api_call *call, const char *project);
/* It goes with the request. */
void block_add_quota(const struct api_call *call, struct accept_work_args *args,
                     const char *project);
/* What a new volume of that backup is asked for by, with what was said of the volume that it is of;
 * the id of the new one is its commit id. */
struct accept_work_args *block_restore_new(struct api_call *call, const struct backup *backup,
                                           const char *name);
/* Sets a status on a person's word. */
bool block_reset(struct api_call *call, enum resource_type type, const char *id, const char *status,
                 GError **error);
/* Whole acts on what the path names: its work is accepted; its status is set by the body; it is
 * deleted whatever is done to it. `args` is stolen. */
struct http_answer *block_accept_act(struct api_call *call, struct accept_work_args *args,
                                     GError **error);
struct http_answer *block_reset_act(struct api_call *call, enum resource_type type, GError **error);
struct http_answer *block_force_delete_act(struct api_call *call, enum resource_type type,
                                           const char *operation, GError **error);

/*
 * LUXI as Ganeti speaks it: the documents of requests and replies, and its methods (luxi.def),
 * whose positional arguments become records. luxid and the simulator serve it, the CLI and the
 * watcher call it.
 */
#pragma once

#include "proto/records.h"

/* What the names of users begin with for whom the REST daemon asks. */
#define LUXI_REST_USER "rapi:"

struct luxi_method {
    const char *name;
    const struct record *args; /* the order of the fields is the order of the arguments */
    const char *doc;
};
/* NULL for an unknown method. */
const struct luxi_method *luxi_method_find(const char *name);
const struct luxi_method *luxi_method_table(size_t *ret_count);

/* Positional arguments as the record of the method; WRONG_INPUT as `SubmitJob: ops: is missing`.
 * Free with record_free(). */
void *luxi_args_parse(const struct luxi_method *method, const json_t *args, GError **error);
/* The other way, for callers. */
json_t *luxi_args_write(const struct luxi_method *method, const void *args);

/* A request {"method","args"[,"version"][,"user"]}. The parts are new: free the texts with
 * g_free(). `user`: whom it is for, of those who may say so (luxi_server.h); NULL: nobody else.
 * PROTOCOL and LIMIT for what is no request at all: reply with luxi_reply_unparsed() and close the
 * connection. Whether the method exists is luxi_check_method()'s. */
bool luxi_request_parse(const char *data, size_t len, char **ret_method, json_t **ret_args,
                        char **ret_user, GError **error);
/* `user` may be NULL. */
json_t *luxi_request_make(const char *method, json_t *args /* stolen */, const char *user);
/* PROTOCOL in Ganeti's words for a method that LUXI does not have; the connection ends then too. */
const struct luxi_method *luxi_check_method(const char *name, GError **error);

/* {"success":true,"result":X}; `result` is stolen, NULL is null. */
json_t *luxi_reply_result(json_t *result);
/* What stands around the text of a result in such a reply. */
#define LUXI_RESULT_BEFORE "{\"result\":"
#define LUXI_RESULT_AFTER ",\"success\":true}"
/* {"success":false,"result":"Failed to parse request: ..."}. */
json_t *luxi_reply_unparsed(const GError *error);
/* {"success":false,"result":[class,[message,code]]} */
json_t *luxi_reply_error(const GError *error);
/* [class, [message, code]]: how errors stand in replies and in results of opcodes. */
json_t *luxi_error_make(const GError *error);
/* The error that such a value stands for; also of a plain text. */
GError *luxi_error_parse(const json_t *value);
/* The result of a reply (a new reference), or the error it carries; PROTOCOL if it is no reply. */
json_t *luxi_reply_parse(const json_t *reply, GError **error);

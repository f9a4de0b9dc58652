/* See rapi_users.h. */
#include "core/rapi/rapi_users.h"

struct rapi_users {
    const struct env *env;
    struct rapi_luxid *luxid;
    struct crypto *crypto;
};

struct rapi_users *rapi_users_new(const struct env *env, struct rapi_luxid *luxid,
                                  struct crypto *crypto)
{
    struct rapi_users *users = g_new(struct rapi_users, 1);
    *users = (struct rapi_users){env, luxid, crypto};
    return users;
}

void rapi_users_free(struct rapi_users *users)
{
    g_free(users);
}

enum rapi_access rapi_users_check(struct rapi_users *users, const struct http_request *request,
                                  char **ret_name, GError **error)
{
    return RAPI_UNKNOWN;
}

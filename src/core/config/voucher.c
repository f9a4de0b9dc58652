/* See voucher.h. The text begins as no certificate does, which the same key signs. */
#include "core/config/voucher.h"

#include "base/log.h"

static char *text_of(const char *cluster, struct stamp stamp, bool begun, const char *node)
{
    return g_strdup_printf("fettle %s\n%s\n%" G_GUINT64_FORMAT "\n%" G_GUINT64_FORMAT "\n%s\n",
                           begun ? "mastership" : "candidacy", cluster, stamp.history, stamp.epoch,
                           node);
}

void voucher_sign(const struct env *env, const char *cluster, struct stamp stamp, bool begun,
                  char ret[LIMIT_VOUCHER_CHARS + 1])
{
    struct authority *authority = env->authority;
    g_autofree char *text = text_of(cluster, stamp, begun, env->node_uuid);
    g_autofree char *signature = NULL;
    g_autoptr(GError) error = NULL;
    *ret = '\0';
    if (!authority || !authority->ops->has_key(authority))
        return;
    if (!authority->ops->sign_text(authority, text, &signature, &error)) {
        if (!fettle_error_is(error, KILLED))
            log_warning("", "this mastership goes unsigned: %s", error->message);
        return;
    }
    g_strlcpy(ret, signature, LIMIT_VOUCHER_CHARS + 1);
}

bool voucher_check(const struct env *env, const char *cluster, struct stamp stamp, bool begun,
                   const char *node, const char *signature, GError **error)
{
    struct authority *authority = env->authority;
    g_autofree char *text = text_of(cluster, stamp, begun, node);
    if (authority)
        return authority->ops->check_text(authority, text, signature, error);
    fettle_set_error(error, TEMPORARY, "this node has no authority to check signatures with");
    return false;
}

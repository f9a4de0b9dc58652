/*
 * See trust.h.
 */
#include "io/trust.h"

#include <gio/gio.h>

/* Without any of its functions: whoever asks it whether a certificate is good is told no. */
struct nobody {
    GTlsDatabase parent;
};
struct nobody_class {
    GTlsDatabaseClass parent;
};
typedef struct nobody nobody_t;
typedef struct nobody_class nobody_tClass;
GType nobody_get_type(void);
G_DEFINE_TYPE(nobody_t, nobody, G_TYPE_TLS_DATABASE)

static GTlsCertificateFlags no(GTlsDatabase *self, GTlsCertificate *chain, const gchar *purpose,
                               GSocketConnectable *identity, GTlsInteraction *interaction,
                               GTlsDatabaseVerifyFlags flags, GCancellable *cancellable,
                               GError **error)
{
    return G_TLS_CERTIFICATE_UNKNOWN_CA;
}

static void nobody_class_init(nobody_tClass *class)
{
    class->parent.verify_chain = no;
}

static void nobody_init(nobody_t *self)
{
}

void trust_nobody(void)
{
    static GTlsDatabase *nobody;
    if (nobody != NULL)
        return;
    nobody = g_object_new(nobody_get_type(), NULL);
    g_tls_backend_set_default_database(g_tls_backend_get_default(), nobody);
}

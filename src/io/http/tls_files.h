/*
 * The certificate that a server of the outside shows, and its key, as its settings name them.
 * Whoever renews them – the operator's tools, `fettle api renew-certificate` – tells nobody, so
 * they are looked at whenever a connection comes. While what is there is no good, as between the
 * writing of two files, the one before goes on.
 */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

struct tls_files;

/* Whether one of them is, also if it cannot be read. `certificates`: paths, NULL at the end. */
bool tls_files_are_there(const char *const *certificates);
/* `certificates`: at least one, of which the first that is there is shown: it may come and go.
 * `key`: "": it is in the same file. ENVIRONMENT: they cannot be read, or do not belong together.
 * Free with tls_files_free(). */
struct tls_files *tls_files_open(const char *const *certificates, const char *key, GError **error);
void tls_files_free(struct tls_files *files);
/* Reads them if they have changed since; true: they show another one from now on. False with an
 * error as above: they have changed to what is no good, told once for each change. */
bool tls_files_look(struct tls_files *files, GError **error);
/* The last good one; the files' own. */
GTlsCertificate *tls_files_certificate(const struct tls_files *files);
/* The file that it is of. */
const char *tls_files_shown(const struct tls_files *files);

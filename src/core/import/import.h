/*
 * Writing the whole configuration from a document (`fettle cluster import`, and import-ganeti by
 * way of ganeti.h). Pure; wconf_import.c is who calls it.
 *
 * A document says what is wished: settings, groups, instances, tags, advice. What describes reality
 * – where images are, which generation runs, how new a replica is, which nodes have a certificate –
 * is never taken from a document: that of the cluster stays. So an old document can be written back
 * without making anybody start a stale image.
 *
 * Form of a document, version 1 (docs/guide/backup.md):
 *   {"format": "fettle-configuration", "version": 1, "cluster": {"uuid", "name"}, "history",
 *    "serial", "taken", "secrets", "objects": {KIND: {KEY: OBJECT}}}
 */
#pragma once

#include "core/config/model.h"

#define DOCUMENT_FORMAT "fettle-configuration"
#define DOCUMENT_VERSION 1

/* What a document would do to a configuration. */
struct import {
    GPtrArray *changes;  /* struct change, for one commit */
    GPtrArray *lines;    /* char *: each change as a sentence */
    GPtrArray *notes;    /* char *: what stays although the document says otherwise */
    GPtrArray *problems; /* char *: why it cannot be done; then `changes` are of no use */
};

struct import *import_new(void);
void import_free(struct import *import);
typedef struct import import_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(import_t, import_free)

void import_note(struct import *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
void import_problem(struct import *import, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Adds what `document` would change of `now`. What is wrong with single objects goes to the
 * problems, all of them; WRONG_INPUT: it is no such document, of a newer version, or of another
 * cluster. */
bool import_document(struct import *import, const struct config *now, const json_t *document,
                     GError **error);

/* SHA-256 of the sentences, in hexadecimal digits: whether a plan is the one that was shown. Free
 * with g_free(). */
char *import_digest(const struct import *import);

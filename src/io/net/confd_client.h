/*
 * Asking ConfD: all candidates at once, and the newest answer counts (RCF-05). For `fettle confd`;
 * a call blocks until all have answered or its time is over.
 */
#pragma once

#include "io/node_config.h"
#include "proto/confd.h"

struct confd_candidate {
    char *name; /* "" if it is not known */
    char *address;
    guint port;
};

/* The candidates that this host was told of, from var/node/state.json and etc/node.json; array that
 * frees them. UNKNOWN_ENTITY if it was told of none. */
GPtrArray *confd_candidates_known(const struct node_paths *paths, GError **error);
/* Those that monitoring was told of. */
GPtrArray *confd_candidates_of(const struct monitor_config *config, guint port);
/* From "ADDRESS[:PORT],[ADDRESS6]:PORT,…". */
GPtrArray *confd_candidates_parse(const char *text, GError **error);

/* var/confd.key of a candidate, or any file with the key; its bytes as they are. */
struct confd_key *confd_key_read(const char *path, GError **error);

/* What came from one candidate. */
struct confd_heard {
    const struct confd_candidate *from; /* borrowed */
    bool answered;
    struct confd_reply reply; /* if it has answered */
    gint64 took_us;
    char *why; /* if it has not: "no answer", "nobody answers ConfD there" */
};

/* One entry for each candidate, in their order. `query` is borrowed. Never fails as a whole. */
GPtrArray *confd_ask(const GPtrArray *candidates, const struct confd_key *key, enum confd_type type,
                     const json_t *query, guint timeout_ms);
/* The same from an address of this host, which a node's own key is believed from alone. */
GPtrArray *confd_ask_from(const char *from, const GPtrArray *candidates,
                          const struct confd_key *key, enum confd_type type, const json_t *query,
                          guint timeout_ms);
/* The answer with the highest serial, of equals the first; NULL: nobody has answered. */
const struct confd_heard *confd_newest(const GPtrArray *heard);
/* Who did not answer, and why: "node2 (10.0.0.2): no answer; …"; "" if all did. */
char *confd_silent_text(const GPtrArray *heard);
